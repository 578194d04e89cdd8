//! Tests of text tables of any dialect, and columns of any name: the same numbers as in the plain log.

#![allow(clippy::unwrap_used)]

use crate::common::{arm, clean, csv, python};
use inertial_data::{ColumnMap, CsvReader, Error, Log, Options, PreparedLog, Reader, Source, open, prepare};

fn read(text: &str) -> Log {
    Log::collect(CsvReader::new(text.as_bytes(), "log.csv").unwrap()).unwrap()
}

fn same(found: &Log, expected: &Log) {
    assert_eq!(found.names(), expected.names());
    for k in 0..expected.names().len() {
        assert_eq!(found.column_at(k), expected.column_at(k), "{}", expected.names()[k]);
    }
}

/// Tests that the units in the row below the header are used.
#[test]
fn units_below_the_header() {
    let (mut names, columns) = clean(200, 100.0);
    let expected = read(&csv(&names, &columns));
    for named in [false, true] {
        if named {
            let joints = ["shoulder", "elbow", "slide"];
            for (k, joint) in joints.iter().enumerate() {
                names[1 + k] = format!("q.{joint}");
                names[4 + k] = format!("tau.{joint}");
            }
        }
        let mut scaled = columns.clone();
        scaled[0].iter_mut().for_each(|t| *t *= 1e3);
        scaled[1].iter_mut().for_each(|q| *q = q.to_degrees());
        scaled[5].iter_mut().for_each(|tau| *tau *= 1e3);
        let text = csv(&names, &scaled).replacen('\n', "\nms;°;rad;m;Nm;mNm;N\n", 1).replace(';', ",");
        let log = opened("log.csv", &text, &Source::default()).unwrap();
        for (k, name) in names.iter().enumerate() {
            let found = log.column(name).unwrap_or_else(|| panic!("no {name} in {:?}", log.names()));
            let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * (1.0 + b.abs());
            assert!(found.iter().zip(expected.column_at(k)).all(close), "{name}");
        }
    }
}

/// Tests that empty lines before the header are skipped together, and that their size is bounded. Removing them one by one would move
/// some terabytes here.
#[test]
fn empty_lines_before_the_header_are_bounded() {
    const MOST: usize = 64 << 20;
    let table = |size: usize| {
        // Lines of 64 bytes.
        let mut text = [b" ".repeat(63), vec![b'\n']].concat().repeat(MOST / 64);
        text.extend(b"\n".repeat(size - MOST));
        text.extend(b"t,q1\n0,1\n0.01,2\n");
        text
    };
    let log = Log::collect(CsvReader::new(&table(MOST)[..], "log.csv").unwrap()).unwrap();
    assert_eq!(
        (log.names(), log.column("q1").unwrap()),
        (&["t".to_owned(), "q1".to_owned()][..], &[1.0, 2.0][..])
    );
    let error = CsvReader::new(&table(MOST + 1)[..], "log.csv").err().unwrap().to_string();
    assert_eq!(error, format!("log.csv: row {}: 64 MB of empty lines: is this a log?", MOST / 64 + 2));
}

/// Tests that rows have the numbers of their lines after empty lines, comments and marks in any order.
#[test]
fn skipped_lines_are_counted() {
    let blank = "\n".repeat(70_000);
    let text = format!("\u{feff}{blank}# made by hand\n{blank}t,q1\n0,1\n0.01,x\n");
    let error = CsvReader::new(text.as_bytes(), "log.csv").and_then(Log::collect).unwrap_err().to_string();
    assert!(error.contains("row 140004"), "{error}");
}

#[test]
fn dates_with_points_are_times() {
    let text = "Zeit;eff_1;pos_1\n29.02.2024 12:30:15,250;1,5;2\n29.02.2024 12:30:15,260;1,5;2\n";
    let log = opened("log.csv", text, &Source::default()).unwrap();
    assert_eq!(log.names(), ["t", "tau1", "q1"]);
    assert_eq!(log.column("t").unwrap(), [1_709_209_815.25, 1_709_209_815.26]);
    let log = opened("log.csv", "tout,q1\n0,1\n0.01,2\n", &Source::default()).unwrap();
    assert_eq!(log.names(), ["t", "q1"]);
}

/// Reads a file with the standard names and units.
fn opened(name: &str, text: &str, source: &Source) -> inertial_data::Result<Log> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    Log::collect(open(&path, source)?)
}

#[test]
fn separators_and_decimal_commas() {
    let (names, columns) = clean(200, 100.0);
    let text = csv(&names, &columns);
    let expected = read(&text);
    let decimal = text.replace(',', ";").replace('.', ",");
    for other in [
        text.replace(',', ";"),
        text.replace(',', "\t"),
        text.replace(',', "   "),
        text.replace(',', ", "),
        text.replace(',', ",\t"),
        text.replace('\n', ",\n"),
        text.replace('\n', " \r\n"),
        decimal.clone(),
        decimal.replace(';', "\t"),
        decimal.replace(';', " "),
        text.replace(',', "|"),
        decimal.replace(';', "|"),
        format!("sep=;\n{decimal}"),
        format!("\u{feff}\"sep=,\"\r\n{text}"),
        format!("Robot log 2024\nSerial: 123\n\n{text}"),
        format!("Robot;UR5\nRate;500\nMass;3,2\n{decimal}"),
        format!("sep=;\nRobot;UR5\n\n{decimal}"),
        text.replacen('\n', "\ns,rad,rad,m,Nm,Nm,N\n", 1),
        text.replacen('\n', "\n[s],[rad],[rad],[-],[Nm],[N m],\n", 1),
        format!("# by me\n#\n{text}"),
        format!("# {text}"),
        format!("%{}", text.replace(',', " ")),
        text.replacen("\n0.01,", "\n# a comment\n0.01,", 1),
    ] {
        same(&read(&other), &expected);
    }
    // The first column of pandas.DataFrame.to_csv is an unnamed index.
    let indexed: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(k, line)| if k == 0 { format!(",{line}") } else { format!("{k},{line}") })
        .collect();
    let log = read(&indexed.join("\n"));
    assert_eq!((log.names()[0].as_str(), log.column("q1")), ("column_1", expected.column("q1")));
}

#[test]
fn dates_are_times() {
    let log = read(
        "time,q1,state\n2024-05-01T12:00:00.000Z,1,ok\n2024-05-01T12:00:00.250Z,2,ok\n"
            .replace(",ok", ",1")
            .as_str(),
    );
    let t = log.column("time").unwrap();
    assert_eq!(t[1] - t[0], 0.25);
    let error =
        CsvReader::new(&b"t,q1\n0,1\n2024-13-01T00:00:00,2\n"[..], "x").and_then(Log::collect).unwrap_err();
    assert_eq!(error.to_string(), "x: row 3: column t: `2024-13-01T00:00:00` is not a finite number");
}

#[test]
fn files_without_a_header_need_a_map() {
    let (names, columns) = clean(50, 100.0);
    let text = csv(&names, &columns);
    let expected = read(&text);
    let bare = text.split_once('\n').unwrap().1;
    let error = opened("log.txt", bare, &Source::default()).unwrap_err().to_string();
    assert!(error.contains("there is no header: name the 7 columns in a column map"), "{error}");
    let map = "[columns]\nt = \"column_1\"\nq = \"column_{2..4}\"\ntau = \"column_{5..7}\"\n";
    let source = Source::default().with(|s| s.map = Some(ColumnMap::parse(map, "map.toml").unwrap()));
    same(&opened("log.txt", bare, &source).unwrap(), &expected);
    let map = map.replace("5..7", "5..8");
    let source = Source::default().with(|s| s.map = Some(ColumnMap::parse(&map, "map.toml").unwrap()));
    let error = opened("log.txt", bare, &source).unwrap_err().to_string();
    assert_eq!(error, "map.toml: column tau: there is no column column_8");
}

/// Tests that a log of the arm with the names of a controller is prepared like the plain one.
#[test]
fn names_of_controllers_are_prepared_alike() {
    let (names, columns) = clean(1000, 100.0);
    let text = csv(&names, &columns);
    let plain = prepare(&arm(), &read(&text), &Options::default()).unwrap();
    let header = |names: [&str; 7]| {
        format!("{}\n{}", names.join(";"), text.split_once('\n').unwrap().1.replace(',', ";"))
    };
    for text in [
        header(["timestamp", "actual_q_0", "actual_q_1", "actual_q_2", "torque_0", "torque_1", "torque_2"]),
        header(["Time [s]", "q0", "q1", "q2", "tau0", "tau1", "tau2"]),
        header([
            "__time",
            "/js/shoulder/position",
            "/js/elbow/position",
            "/js/slide/position",
            "/js/shoulder/effort",
            "/js/elbow/effort",
            "/js/slide/effort",
        ]),
    ] {
        let source =
            Source::default().with(|s| s.joints = ["shoulder", "elbow", "slide"].map(String::from).into());
        let log = opened("log.csv", &text, &source).unwrap();
        let found = prepare(&arm(), &log, &Options::default()).unwrap();
        assert_eq!((&found.q, &found.tau), (&plain.q, &plain.tau), "{}", text.lines().next().unwrap());
    }
}

/// Returns a log of the arm as text whose rows list the joints in another order than the model; `names` has the cells with names
/// and their header, `column` names the column of a quantity and number from 0.
fn listed(names: [&str; 2], column: impl Fn(&str, usize) -> String) -> String {
    let (_, columns) = clean(300, 100.0);
    let mut header = vec!["time".to_owned(), names[0].to_owned()];
    for quantity in ["position", "effort"] {
        header.extend((0..3).map(|i| column(quantity, i)));
    }
    // Joints slide, shoulder, elbow.
    let order = [3, 1, 2];
    let mut text = header.join(",") + "\n";
    for i in 0..columns[0].len() {
        let mut row = vec![format!("{:?}", columns[0][i]), names[1].to_owned()];
        row.extend([0, 3].iter().flat_map(|k| order.map(|j| format!("{:?}", columns[k + j][i]))));
        text += &(row.join(",") + "\n");
    }
    text
}

/// Tests that numbered columns belong to the joints that the log lists.
#[test]
fn listed_joints_name_numbered_columns() {
    let (names, columns) = clean(300, 100.0);
    let plain = prepare(&arm(), &read(&csv(&names, &columns)), &Options::default()).unwrap();
    let joints = ["shoulder", "elbow", "slide"].map(String::from).to_vec();
    let rostopic = listed(["field.name0,field.name1,field.name2", "slide,shoulder,elbow"], |q, i| {
        format!("field.{q}{i}")
    });
    let standard = |q: &str, i: usize| format!("{}{i}", if q == "effort" { "tau" } else { "q" });
    let texts = [
        rostopic.clone(),
        format!("%{rostopic}"),
        // bagpy and Foxglove.
        listed(["name", "\"['slide', 'shoulder', 'elbow']\""], |q, i| format!("{q}_{i}")),
        listed(["name[0],name[1],name[2]", "slide,shoulder,elbow"], |q, i| format!("{q}[{i}]")),
        // Columns with standard names by number, and numbers from 0.
        listed(["joint_names", "[slide shoulder elbow]"], |q, i| standard(q, i + 1)),
        listed(["joint_names", "[slide shoulder elbow]"], standard),
    ];
    let map = "units = { q = \"rad\" }\n[columns]\nt = \"time\"\n";
    let patterns =
        "[columns]\nq = \"field.position{i}\"\ntau = { column = \"field.effort{i}\", unit = \"Nm\" }\n";
    let aliases = "joints = { slide = \"slide\" }\n";
    let mut cases: Vec<(&str, Option<&str>)> = texts.iter().map(|text| (text.as_str(), None)).collect();
    cases.extend([(texts[0].as_str(), Some(patterns)), (&texts[0], Some(aliases)), (&texts[4], Some(map))]);
    for (text, map) in cases {
        let source = Source::default().with(|s| {
            s.joints.clone_from(&joints);
            s.map = map.map(|map| ColumnMap::parse(map, "map.toml").unwrap());
        });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        std::fs::write(&path, text).unwrap();
        let mut reader = open(&path, &source).unwrap();
        let mut log = PreparedLog::new(&arm(), &mut reader, &Options::default()).unwrap();
        let notes = log.notes().join("; ");
        let found = log.read_all().unwrap();
        let case = format!("{text:.60} with {map:?}");
        assert_eq!((&found.q, &found.tau), (&plain.q, &plain.tau), "{case}");
        assert!(
            notes.contains("q: ") && notes.contains("tau: ") && notes.contains(", named by "),
            "{case}: {notes}"
        );
    }
}

#[test]
fn the_unit_of_stamps_is_inferred() {
    let row = |t: u64| format!("{t},1\n");
    for (scale, unit) in [(1u64, 1.0), (1000, 1e-3), (1_000_000, 1e-6), (1_000_000_000, 1e-9)] {
        let start = 1_700_000_000 * scale;
        let text = format!("timestamp,q1\n{}{}", row(start), row(start + scale));
        let log = opened("log.csv", &text, &Source::default()).unwrap();
        let t = log.column("t").unwrap();
        assert!((t[0] - 1.7e9).abs() < 1e-3 && (t[1] - t[0] - 1.0).abs() < 1e-5, "{unit}: {t:?}");
    }
    let text = "sec,nanosec,q1\n1700000000,250000000,1\n1700000000,750000000,2\n";
    let log = opened("log.csv", text, &Source::default()).unwrap();
    let t = log.column("t").unwrap();
    assert_eq!(t[1] - t[0], 0.5);
    // Nanoseconds are read although only the time is selected.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv");
    std::fs::write(&path, text).unwrap();
    let mut reader = open(&path, &Source::default()).unwrap();
    reader.select(&[2, 0]);
    let rows = reader.next_rows().unwrap().unwrap();
    assert_eq!((rows.width, rows.values), (2, vec![1.0, 1_700_000_000.25, 2.0, 1_700_000_000.75]));
}

#[test]
fn currents_need_a_scale() {
    let (_, columns) = clean(300, 100.0);
    let names = [
        "timestamp",
        "actual_q_0",
        "actual_q_1",
        "actual_q_2",
        "actual_current_0",
        "actual_current_1",
        "actual_current_2",
    ];
    let text = csv(&names.map(String::from), &columns);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv");
    std::fs::write(&path, &text).unwrap();
    let prepared = |source: &Source| {
        let mut reader = open(&path, source)?;
        PreparedLog::new(&arm(), &mut reader, &Options::default())
    };
    let error = prepared(&Source::default()).err().unwrap();
    assert!(matches!(error, Error::Columns { .. }));
    assert!(error.to_string().contains("there is no column tau1 for shoulder"), "{error}");
    assert!(error.to_string().contains("actual_current_{i} are currents"), "{error}");
    let map = "[columns]\ntau = { column = \"actual_current_{i}\", unit = \"A\", scale = [2.0, 3.0, 4.0] }\n";
    let source = Source::default().with(|s| s.map = Some(ColumnMap::parse(map, "map.toml").unwrap()));
    let log = Log::collect(open(&path, &source).unwrap()).unwrap();
    assert_eq!(log.column("tau3").unwrap()[7], 4.0 * columns[6][7]);
    let log = prepared(&source).unwrap();
    assert!(log.notes().iter().any(|n| n == "q: taken from actual_q_{i} (UR RTDE)"), "{:?}", log.notes());
    let short = map.replace(", 4.0", "");
    let source = Source::default().with(|s| s.map = Some(ColumnMap::parse(&short, "map.toml").unwrap()));
    let error = prepared(&source).err().unwrap().to_string();
    assert_eq!(error, "map.toml: column tau: 2 numbers for 3 columns");
}

#[test]
fn other_file_formats_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for (bytes, expected) in [
        (&b"\x89HDF\r\n\x1a\n0000"[..], "the HDF5 file is truncated or damaged"),
        (b"#ROSBAG V2.0\n", "no message of type sensor_msgs/JointState"),
        (b"<?xml version=\"1.0\"?><robot/>", "was a model given in its place?"),
        (b"{\"t\": [0]}", "is JSON"),
        (b"[[0, 1]]", "is JSON"),
        (b"ARROW1\0\0", "is an Arrow"),
        (b"\x80\x04\x95\x10", "is a Python pickle"),
        (b"\x28\xb5\x2f\xfd\x10", "the zstd data are truncated"),
        (b"ULog\x01\x12\x35\x01\0\0", "is a PX4 log (ULog); convert it to CSV: ulog2csv"),
        (b"MDF     4.10    ", "is a measurement file (MDF)"),
        (b"TDSm\x0e\0\0\0", "is a LabVIEW file (TDMS)"),
        (b"ORC\n\x03\0\0", "is an ORC file"),
        (b"<stata_dta><header>", "is a Stata file"),
        (b"\x72\x02\x01\x00\x01\x00\x02\x00", "is a Stata file"),
        (b"header:\n  stamp:\n    sec: 1\n", "use `ros2 topic echo --csv`, or record a bag"),
        (b"header: \n  seq: 1\n", "use `ros2 topic echo --csv`, or record a bag"),
        (b"---\njoints: 2\n", "is YAML"),
    ] {
        let path = folder.path().join("log");
        std::fs::write(&path, bytes).unwrap();
        let error = open(&path, &Source::default()).err().unwrap().to_string();
        assert!(error.contains(expected) && error.lines().count() == 1, "{error}");
    }
}

/// Tests tables as written by NumPy and pandas.
#[test]
fn tables_written_in_python_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap();
    if python::run("write_tables.py", &[at]).is_none() {
        return;
    }
    let read =
        |name: &str| Log::collect(open(&folder.path().join(name), &Source::default()).unwrap()).unwrap();
    let expected = read("plain.csv");
    assert_eq!(expected.names(), ["t", "q1", "q2", "tau1", "tau2"]);
    for name in ["savetxt.txt", "german.csv", "tabs.tsv", "zero_based.csv"] {
        let log = read(name);
        for column in expected.names() {
            assert_eq!(log.column(column), expected.column(column), "{name}: {column}");
        }
    }
    let dates = read("dates.csv");
    let (found, wanted) = (dates.column("t").unwrap(), expected.column("t").unwrap());
    for (a, b) in found.iter().zip(wanted) {
        // Seconds since 1970 have a resolution of 2.4e-7 s.
        assert!((a - found[0] - (b - wanted[0])).abs() < 1e-6);
    }
}

/// Tests that values in a stated unit are converted, and that a unit without a known size gives a line of a column map that works.
#[test]
fn stated_units_are_applied_or_refused() {
    let table = |unit: &str| {
        format!(
            "t,q1,q2,q3,tau1 [{unit}],tau2 [{unit}],tau3 [{unit}]\n0,0,0,0,8,16,24\n0.1,1,1,1,-8,-16,-24\n"
        )
    };
    let read = |text: &str, source: &Source| opened("log.csv", text, source).unwrap();
    for (unit, size) in [("Nmm", 1e-3), ("daNm", 10.0), ("kgf.cm", 0.098_066_5), ("Nm", 1.0)] {
        let log = read(&table(unit), &Source::default());
        assert!((log.column("tau2").unwrap()[0] / (16.0 * size) - 1.0).abs() < 1e-15, "{unit}");
    }
    for unit in ["%", "V", "kg.m", "counts", "rad"] {
        let text = table(unit);
        let log = read(&text, &Source::default());
        assert_eq!(log.column("tau2"), None, "{unit}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        std::fs::write(&path, &text).unwrap();
        let mut reader = open(&path, &Source::default()).unwrap();
        let advice = inertial_data::Reader::advice(&reader).unwrap();
        let error = inertial_data::PreparedLog::new(&arm(), &mut reader, &Options::default()).err().unwrap();
        assert!(error.to_string().contains(&advice), "{error}");
        // The line at the end of the advice is valid.
        let (_, line) = advice.split_once("in a column map: ").unwrap();
        let map = format!("[columns]\n{}\n", line.replacen("1.0", "0.5", 1));
        let source = Source::default().with(|s| s.map = Some(ColumnMap::parse(&map, "map.toml").unwrap()));
        assert_eq!(read(&text, &source).column("tau1").unwrap(), [4.0, -4.0], "{unit}");
    }
}

/// Tests that columns in the unit of a row below the header are refused if that unit is unknown.
#[test]
fn unknown_units_below_the_header() {
    let text = "t;q1;tau1;mode\nms;Grad;Nm;-\n0;1;2;0\n10;2;3;0\n";
    let log = opened("log.csv", text, &Source::default()).unwrap();
    assert_eq!(log.names(), ["t", "q1 [Grad]", "tau1", "mode"]);
    assert_eq!(log.column("t"), Some(&[0.0, 0.01][..]));
    let map =
        ColumnMap::parse("[columns]\nq1 = { column = \"q1 [Grad]\", unit = \"gon\" }\n", "map.toml").unwrap();
    let log = opened("log.csv", text, &Source::default().with(|s| s.map = Some(map))).unwrap();
    assert!((log.column("q1").unwrap()[1] - std::f64::consts::PI / 100.0).abs() < 1e-15);
}

/// Tests indices of dates and durations without a name, as pandas writes them.
#[test]
fn unnamed_dates_are_the_time() {
    for [first, second] in [
        ["2023-11-14 22:13:20.000000", "2023-11-14 22:13:20.002000"],
        ["0 days 00:00:00", "0 days 00:00:00.002000"],
        ["11/14/2023 10:13:20.000 PM", "11/14/2023 10:13:20.002 PM"],
        ["20231114T221320Z", "20231114T221320.002Z"],
    ] {
        for name in ["", "time"] {
            let text = format!("{name},q1,tau1\n{first},1,2\n{second},2,3\n");
            let log = opened("log.csv", &text, &Source::default()).unwrap();
            let t = log.column("t").unwrap();
            // Seconds since 1970 have a resolution of 2.4e-7 s.
            assert!((t[1] - t[0] - 0.002).abs() < 1e-6, "{first}");
        }
    }
    // A number of the row is no time.
    let log = opened("log.csv", ",q1,tau1\n0,1,2\n1,2,3\n", &Source::default()).unwrap();
    assert_eq!(log.names(), ["column_1", "q1", "tau1"]);
}
