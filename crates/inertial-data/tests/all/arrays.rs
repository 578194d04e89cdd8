//! Tests of NumPy and MATLAB arrays and ROS 2 bags, written by the usual libraries, against the same log as text.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use crate::common::{arm, python};
use inertial_data::{ColumnMap, Log, Options, PreparedLog, Reader as _, Source, open};

fn read(path: &Path, source: &Source) -> inertial_data::Result<Log> {
    Log::collect(open(path, source)?)
}

/// Reads the columns that contain numbers.
fn numbers(path: &Path) -> Log {
    let raw = open(path, &Source::default().with(|s| s.raw = true)).unwrap();
    let columns: Vec<usize> = (0..raw.names().len()).filter(|&k| raw.is_number(k)).collect();
    let mut reader = open(path, &Source::default()).unwrap();
    let names: Vec<String> = columns.iter().map(|&k| reader.names()[k].clone()).collect();
    reader.select(&columns);
    let mut values = vec![Vec::new(); names.len()];
    while let Some(rows) = reader.next_rows().unwrap() {
        for row in rows.values.chunks_exact(rows.width) {
            values.iter_mut().zip(row).for_each(|(column, x)| column.push(*x));
        }
    }
    Log::new(path.display().to_string(), names, values).unwrap()
}

/// Returns a folder with files of all kinds; `None` if Python is missing.
fn written() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    python::run("write_arrays.py", &[folder.path().to_str().unwrap()])?;
    Some(folder)
}

/// Asserts that the columns of `expected`, renamed by `rename`, are equal bit for bit.
fn same(found: &Log, expected: &Log, rename: impl Fn(&str) -> String, what: &str) {
    for name in expected.names() {
        let own = rename(name);
        let column = found.column(&own).unwrap_or_else(|| panic!("{what}: no {own} in {:?}", found.names()));
        assert_eq!(column, expected.column(name).unwrap(), "{what}: {name}");
    }
}

#[test]
fn arrays_are_read_like_text() {
    let Some(folder) = written() else { return };
    let at = |name: &str| folder.path().join(name);
    let expected = read(&at("plain.csv"), &Source::default()).unwrap();
    let files = [
        "plain.npz",
        "packed.npz",
        "fortran.npz",
        "records.npy",
        "plain.mat",
        "packed.mat",
        "struct.mat",
        "packed.h5",
        "lzf.h5",
        "records.h5",
        "v73.mat",
    ];
    for name in files {
        let log = read(&at(name), &Source::default()).unwrap();
        same(&log, &expected, str::to_owned, name);
        assert_eq!(log.len(), expected.len());
    }
    let joints = |name: &str| match name.split_at(name.len() - 1) {
        (quantity, "1") => format!("{quantity}.shoulder"),
        (quantity, "2") => format!("{quantity}.elbow"),
        (quantity, "3") => format!("{quantity}.slide"),
        _ => name.to_owned(),
    };
    let named = [
        "named.npz",
        "plain.h5",
        "names.parquet",
        "name_columns.parquet",
        "names_bytes.npz",
        "names_text.npz",
        "names_numbers.npz",
        "names_char.mat",
        "names_cell.mat",
        "names_packed.mat",
        "names_attribute.h5",
        "names_bytes.h5",
        "names_group.h5",
        "names_char_73.mat",
        "names_cell_73.mat",
    ];
    for name in named {
        same(&numbers(&at(name)), &expected, joints, name);
    }
    // Standard names stay whole; other names of structure fields are shortened.
    let groups = read(&at("groups.npz"), &Source::default()).unwrap();
    assert_eq!(groups.column("base.x").unwrap(), expected.column("q1").unwrap());
    assert_eq!(groups.column("ft.fx").unwrap(), expected.column("q2").unwrap());
    assert_eq!(groups.column("wrench.tz").unwrap(), expected.column("q3").unwrap());
    assert_eq!(groups.column("note").unwrap(), expected.column("dq1").unwrap());
    let narrow = read(&at("narrow.npz"), &Source::default()).unwrap();
    for (a, b) in narrow.column("q2").unwrap().iter().zip(expected.column("q2").unwrap()) {
        assert_eq!(*a, (1000.0 * b).trunc());
    }
    // A matrix has no names; a map provides them.
    let error = read(&at("matrix.npy"), &Source::default()).unwrap_err().to_string();
    assert!(error.contains("name the 10 columns in a column map"), "{error}");
    let map = "[columns]\nt = \"column_1\"\nq = \"column_{2..4}\"\ndq = \"column_{5..7}\"\ntau = \"column_{8..10}\"\n";
    let source = Source::default().with(|s| s.map = Some(ColumnMap::parse(map, "map.toml").unwrap()));
    same(&read(&at("matrix.npy"), &source).unwrap(), &expected, str::to_owned, "matrix.npy");
    // Lists of Parquet: a map defines the meaning of `state`.
    let map = "[columns]\nq = \"observation.state_{i}\"\n";
    let source = Source::default().with(|s| s.map = Some(ColumnMap::parse(map, "map.toml").unwrap()));
    let mut reader = open(&at("lists.parquet"), &source).unwrap();
    let numbers: Vec<usize> = (0..reader.names().len()).filter(|&k| reader.names()[k] != "task").collect();
    let names: Vec<String> = numbers.iter().map(|&k| reader.names()[k].clone()).collect();
    reader.select(&numbers);
    let mut columns = vec![Vec::new(); names.len()];
    while let Some(rows) = reader.next_rows().unwrap() {
        for row in rows.values.chunks_exact(rows.width) {
            columns.iter_mut().zip(row).for_each(|(column, x)| column.push(*x));
        }
    }
    same(&Log::new("lists.parquet", names, columns).unwrap(), &expected, str::to_owned, "lists.parquet");
    let error = read(&at("uneven.parquet"), &Source::default()).unwrap_err().to_string();
    assert!(error.ends_with("row 2: column q.list.element: a list of 1, but the first row has 2"), "{error}");
    for codec in ["zstd", "lz4", "snappy", "gzip"] {
        for version in ["1.0", "2.0"] {
            let name = format!("{codec}_{version}.parquet");
            same(&read(&at(&name), &Source::default()).unwrap(), &expected, str::to_owned, &name);
        }
    }
    for bag in [
        "bag_db3",
        "bag_db3_file",
        "bag_db3_message",
        "bag_mcap",
        "bag_mcap_file",
        "bag_mcap_chunks",
        "bag_db3/bag_db3.db3",
        "bag_db3_file/bag_db3_file.db3.zstd",
        "bag_mcap/bag_mcap.mcap",
    ] {
        let log = read(&at(bag), &Source::default()).unwrap();
        for name in expected.names() {
            let (found, expected) = (log.column(&joints(name)).unwrap(), expected.column(name).unwrap());
            // Stamps are rounded to nanoseconds.
            let tolerance = if name == "t" { 1e-9 } else { 0.0 };
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= tolerance), "{bag}: {name}");
            assert_eq!(found.len(), expected.len());
        }
        let other = Source::default().with(|s| s.topic = Some("/joint_stats".into()));
        let error = read(&at(bag), &other).unwrap_err().to_string();
        assert!(error.contains("there is no message on the topic /joint_stats"), "{error}");
    }
    let topic = Source::default().with(|s| s.topic = Some("/a".into()));
    let error = read(&at("plain.npz"), &topic).unwrap_err().to_string();
    assert!(error.ends_with("has no topic /a: it is not a ROS bag"), "{error}");
}

#[test]
fn arrays_of_other_lengths_are_named() {
    let Some(folder) = written() else { return };
    let mut reader = open(&folder.path().join("uneven.h5"), &Source::default()).unwrap();
    let options = Options::default();
    let error = PreparedLog::new(&arm(), &mut reader, &options).err().unwrap().to_string();
    let expected = "arrays that have not as many rows as t (5000) are not read: q (4999 × 3); give all the same number of rows";
    assert!(error.contains("there is no column q1 for shoulder") && error.ends_with(expected), "{error}");
}

#[test]
fn arrays_of_other_types_are_named() {
    let Some(folder) = written() else { return };
    for name in ["others.npz", "others.h5"] {
        let mut reader = open(&folder.path().join(name), &Source::default()).unwrap();
        let error = PreparedLog::new(&arm(), &mut reader, &Options::default()).err().unwrap().to_string();
        let expected = "arrays of other types or with more than two dimensions are not read: q, tau; convert them to double \
                        precision, one row for each sample";
        assert!(error.contains("there is no column q1") && error.ends_with(expected), "{error}");
    }
}

/// Tests names of joints that only Python can read.
#[test]
fn names_that_are_objects_are_refused() {
    let Some(folder) = written() else { return };
    let at = |name: &str| folder.path().join(name);
    for (name, what) in [("names_objects.npz", "Python objects"), ("names_object.npz", "a Python object")] {
        let error = read(&at(name), &Source::default()).unwrap_err().to_string();
        let expected = format!(
            "{name}: holds the names of joints joint_names as {what}: save them as text, np.array(joint_names, dtype=str)"
        );
        assert!(error.ends_with(&expected), "{error}");
    }
    // Two names of files are not the names of three joints.
    assert!(read(&at("other_objects.npz"), &Source::default()).unwrap().column("q3").is_some());
}

/// Tests that a codec that is not supported is named again if reading continues.
#[test]
fn codecs_of_parquet_that_are_not_supported_are_named() {
    let Some(folder) = written() else { return };
    let mut reader = open(&folder.path().join("brotli.parquet"), &Source::default()).unwrap();
    for _ in 0..2 {
        let error = reader.next_rows().unwrap_err().to_string();
        assert!(
            error.ends_with("is compressed with brotli, which is not supported: use zstd, gzip or snappy"),
            "{error}"
        );
    }
}

#[test]
fn checksums_of_entries_are_verified() {
    let Some(folder) = written() else { return };
    let path = folder.path().join("damaged.npz");
    let mut state = 7_usize;
    for (name, fewest) in [("plain.npz", 50), ("packed.npz", 1)] {
        let bytes = std::fs::read(folder.path().join(name)).unwrap();
        let mut differing = 0;
        for _ in 0..50 {
            // The content of the middle entries, without the headers and the directory.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut damaged = bytes.clone();
            damaged[bytes.len() / 5 + (state >> 33) % 10_000] ^= 1 << (state >> 20 & 7);
            std::fs::write(&path, damaged).unwrap();
            let error = read(&path, &Source::default()).unwrap_err().to_string();
            assert!(error.contains("the .npz is truncated or damaged: ") && error.len() < 300, "{error}");
            differing += usize::from(error.contains("the checksum of ") && error.ends_with(".npy differs"));
        }
        assert!(differing >= fewest, "{name}: {differing}");
    }
}

/// Tests a file whose filter is changed to one that needs a plugin.
#[test]
fn filters_of_hdf5_that_are_not_supported_are_named() {
    let Some(folder) = written() else { return };
    let path = folder.path().join("lzf.h5");
    let mut bytes = std::fs::read(&path).unwrap();
    // Number, length of the name, flags, number of values, name.
    let places: Vec<usize> = memchr::memmem::find_iter(&bytes, b"lzf\0").collect();
    assert!(!places.is_empty());
    for at in places {
        assert_eq!(bytes[at - 8..at - 6], 32000_u16.to_le_bytes());
        bytes[at - 8..at - 6].copy_from_slice(&32015_u16.to_le_bytes());
    }
    std::fs::write(&path, bytes).unwrap();
    let error = read(&path, &Source::default()).unwrap_err().to_string();
    let expected = "which is compressed with Zstandard (filter 32015): that is not supported; compress it with gzip instead";
    assert!(error.contains(expected) && !error.contains("damaged"), "{error}");
}

#[test]
fn bags_of_ros_1_are_read_like_text() {
    let Some(folder) = written() else { return };
    let at = |name: &str| folder.path().join(name);
    let expected = read(&at("plain.csv"), &Source::default()).unwrap();
    for bag in ["plain.bag", "bz2.bag", "lz4.bag"] {
        let log = read(&at(bag), &Source::default()).unwrap();
        assert_eq!(log.len(), expected.len());
        for name in expected.names() {
            let own = match name.split_at(name.len() - 1) {
                (quantity, "1") => format!("{quantity}.shoulder"),
                (quantity, "2") => format!("{quantity}.elbow"),
                (quantity, "3") => format!("{quantity}.slide"),
                _ => name.clone(),
            };
            let (found, expected) = (log.column(&own).unwrap(), expected.column(name).unwrap());
            // Stamps are nanoseconds after 2001 in one double.
            let (shift, tolerance) = if name == "t" { (1e9, 2e-7) } else { (0.0, 0.0) };
            assert!(
                found.iter().zip(expected).all(|(a, b)| (a - shift - b).abs() <= tolerance),
                "{bag}: {name}"
            );
        }
    }
    let error = |name: &str, topic: Option<&str>| {
        let source = Source::default().with(|s| s.topic = topic.map(str::to_owned));
        read(&at(name), &source).unwrap_err().to_string()
    };
    assert!(
        error("plain.bag", Some("/joint_stats")).contains("there is no message on the topic /joint_stats")
    );
    let other = error("other.bag", None);
    assert!(
        other.contains("no message of type sensor_msgs/JointState; it has /chatter (std_msgs/String)"),
        "{other}"
    );
    std::fs::write(at("old.bag"), b"#ROSBAG V1.2\n0000").unwrap();
    assert!(error("old.bag", None).contains("only format 2.0 is read"));
}

#[test]
fn datasets_of_lerobot_are_read_like_text() {
    let Some(folder) = written() else { return };
    let at = |name: &str| folder.path().join(name);
    let expected = read(&at("plain.csv"), &Source::default()).unwrap();
    let map = "[columns]\nq = \"observation.state.{joint}\"\n";
    let joints = ["shoulder", "elbow", "slide"].map(str::to_owned).to_vec();
    let map = Some(ColumnMap::parse(map, "map.toml").unwrap());
    let source = Source::default().with(|s| {
        s.map = map;
        s.joints = joints;
    });
    for name in ["lerobot_v2", "lerobot_v3"] {
        let log = read(&at(name), &source).unwrap();
        assert_eq!(log.len(), expected.len(), "{name}");
        for (own, other) in
            [("q.shoulder", "q1"), ("q.slide", "q3"), ("dq.elbow", "dq2"), ("tau.slide", "tau3")]
        {
            let column = log.column(own).unwrap_or_else(|| panic!("{name}: no {own} in {:?}", log.names()));
            assert_eq!(column, expected.column(other).unwrap(), "{name}: {own}");
        }
        // The second episode starts one second after the first.
        let (t, step) = (log.column("t").unwrap(), 0.004);
        let half = t.len() / 2;
        assert!((t[half] - t[half - 1] - 1.0).abs() < 1e-9 && (t[half + 1] - t[half] - step).abs() < 1e-9);
    }
    let error = |expected: &str| {
        let text = read(&at("lerobot_v2"), &Source::default()).unwrap_err().to_string();
        assert!(text.contains(expected) && text.lines().count() == 1, "{text}");
    };
    let topic = Source::default().with(|s| s.topic = Some("/a".into()));
    assert!(read(&at("lerobot_v3"), &topic).unwrap_err().to_string().contains("not a ROS bag"));
    let second = at("lerobot_v2/data/chunk-000/episode_000001.parquet");
    std::fs::copy(at("lists.parquet"), &second).unwrap();
    error("other columns than the first file");
    std::fs::write(at("lerobot_v2/data/chunk-000/episode_000000.parquet"), b"PAR1").unwrap();
    error("episode_000000.parquet");
    std::fs::write(at("lerobot_v2/meta/info.json"), b"[1, 2").unwrap();
    error("does not have the LeRobot format");
    std::fs::write(at("lerobot_v2/meta/info.json"), b"{}").unwrap();
    std::fs::remove_dir_all(at("lerobot_v2/data")).unwrap();
    error("data cannot be read");
}

/// Tests truncated files, and files with one changed bit: a one-line error or other numbers, never a panic.
#[test]
fn damaged_files_are_named() {
    let Some(folder) = written() else { return };
    let files: Vec<PathBuf> = [
        "plain.npz",
        "packed.npz",
        "records.npy",
        "plain.mat",
        "packed.mat",
        "struct.mat",
        "bag_db3/bag_db3.db3",
        "plain.bag",
        "bz2.bag",
        "lz4.bag",
        "packed.h5",
        "lzf.h5",
        "records.h5",
        "v73.mat",
    ]
    .map(|name| folder.path().join(name))
    .into();
    let cut = folder.path().join("cut");
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let name = file.display();
        let one_line = |bytes: &[u8]| {
            std::fs::write(&cut, bytes).unwrap();
            read(&cut, &Source::default()).map_err(|e| {
                let text = e.to_string();
                assert_eq!(text.lines().count(), 1, "{text}");
                text
            })
        };
        for k in 1..20 {
            let error = one_line(&bytes[..bytes.len() * k / 20]);
            // Truncation removes whole pages at the end of a bag, to which other pages refer.
            assert!(error.is_err(), "{name} {k}/20");
            assert!(error.unwrap_err().contains("damaged"), "{name}");
        }
        let mut state = 7u64;
        for round in 0..150 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut damaged = bytes.clone();
            // Half of the changes are in the first bytes, which contain the structure.
            let reach = if round % 2 == 0 { 600.min(bytes.len()) } else { bytes.len() };
            damaged[(state >> 33) as usize % reach] ^= 1 << (state >> 20 & 7);
            let _ = one_line(&damaged);
        }
    }
}

/// Tests files whose content is not what their names promise.
#[test]
fn files_with_wrong_names_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let random: Vec<u8> = (0..4096_u32).map(|k| (k.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for (name, expected) in [
        ("a.db3", "a.db3: is not an SQLite database, although its name ends in .db3"),
        ("a.mcap", "is not an MCAP file, although"),
        ("a.bag", "is not a ROS 1 bag, although"),
        ("a.H5", "is not an HDF5 file, although its name ends in .h5"),
        ("a.parquet", "is not a Parquet file, although"),
        ("a.csv", "is neither text nor a known format"),
    ] {
        for bytes in [&random[..], b""] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let error = read(&path, &Source::default()).unwrap_err().to_string();
            let expected = if bytes.is_empty() && name == "a.csv" { "is empty" } else { expected };
            assert!(error.contains(expected), "{error}");
        }
    }
    // The content counts, not the name.
    std::fs::write(folder.path().join("a.mat"), "t,q1\n0,1\n0.1,2\n").unwrap();
    assert_eq!(read(&folder.path().join("a.mat"), &Source::default()).unwrap().len(), 2);
}

#[test]
fn folders_that_are_no_bags_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = |what: &str| {
        let error = open(folder.path(), &Source::default()).err().unwrap().to_string();
        assert!(error.contains(what) && error.lines().count() == 1, "{error}");
    };
    error("is a folder, but neither a ROS 2 bag");
    let list = |file: &str| {
        let text =
            format!("rosbag2_bagfile_information:\n  relative_file_paths:\n    - {file}\n  version: 5\n");
        std::fs::write(folder.path().join("metadata.yaml"), text).unwrap();
    };
    std::fs::write(folder.path().join("bag_0.db3.zstd"), b"\x28\xb5\x2f\xfd\x10").unwrap();
    list("bag_0.db3.zstd");
    error("bag_0.db3.zstd: cannot be read: the zstd data are truncated");
    list("bag_0.mcap");
    error("bag_0.mcap: cannot be opened: there is no such file");
    std::fs::write(folder.path().join("bag_0.db3"), b"SQLite format 3\0").unwrap();
    list("bag_0.db3");
    error("the bag is truncated or damaged: it ends early");
    std::fs::write(folder.path().join("bag_0.db3"), [7; 5000]).unwrap();
    error("bag_0.db3: is not an SQLite database");
    std::fs::write(folder.path().join("bag_0.mcap"), [7; 5000]).unwrap();
    list("bag_0.mcap");
    error("bag_0.mcap: is not an MCAP file");
}
