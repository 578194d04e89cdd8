//! Tests of Parquet and MCAP against the same log in CSV, written by their own crates and, if Python is available, by other writers.

#![allow(clippy::unwrap_used)]

use crate::common;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::common::clean;
use inertial_data::{ColumnMap, CsvReader, Log, Reader, Source, open};
use parquet::data_type::{DoubleType, FloatType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

fn read(path: &Path, source: &Source) -> inertial_data::Result<Log> {
    Log::collect(open(path, source)?)
}

/// Writes columns as doubles (missing values as nulls) in row groups of `group` rows.
fn write_parquet(path: &Path, names: &[String], columns: &[Vec<f64>], group: usize) {
    let fields: Vec<String> = names.iter().map(|n| format!("optional double {n};")).collect();
    let schema = Arc::new(parse_message_type(&format!("message log {{ {} }}", fields.join("\n"))).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(parquet::basic::Compression::SNAPPY)
        .set_data_page_row_count_limit(100)
        .build();
    let mut file =
        SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::new(properties)).unwrap();
    for first in (0..columns[0].len()).step_by(group) {
        let mut rows = file.next_row_group().unwrap();
        for column in columns {
            let part = &column[first..column.len().min(first + group)];
            let levels: Vec<i16> = part.iter().map(|x| i16::from(!x.is_nan())).collect();
            let values: Vec<f64> = part.iter().copied().filter(|x| !x.is_nan()).collect();
            let mut writer = rows.next_column().unwrap().unwrap();
            writer.typed::<DoubleType>().write_batch(&values, Some(&levels), None).unwrap();
            writer.close().unwrap();
        }
        rows.close().unwrap();
    }
    file.close().unwrap();
}

/// Asserts that two logs have the same numbers and the same missing values.
fn same(a: &Log, b: &Log) {
    assert_eq!(a.names(), b.names());
    for k in 0..a.names().len() {
        let bits = |log: &Log| log.column_at(k).iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(a), bits(b), "{}", a.names()[k]);
    }
}

/// Tests that the reported share of a file increases to one in every format; the length of a stream is unknown.
#[test]
fn readers_know_how_much_they_have_read() {
    let folder = tempfile::tempdir().unwrap();
    let (names, columns) = clean(60_000, 500.0);
    let text = common::csv(&names, &columns);
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("log.csv"), &text).unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, text.as_bytes()).unwrap();
    std::fs::write(path("log.csv.gz"), packed.finish().unwrap()).unwrap();
    write_parquet(&path("log.parquet"), &names, &columns, 9000);
    for name in ["log.csv", "log.csv.gz", "log.parquet"] {
        let mut reader = open(&path(name), &Source::default()).unwrap();
        let mut shares = Vec::new();
        while reader.next_rows().unwrap().is_some() {
            shares.push(reader.fraction_read().unwrap());
        }
        assert!(shares.len() > 2 && shares.windows(2).all(|w| w[0] <= w[1]), "{name}: {shares:?}");
        assert_eq!(shares.last(), Some(&1.0), "{name}");
    }
    assert_eq!(CsvReader::new(text.as_bytes(), "stream").unwrap().fraction_read(), None);
}

#[test]
fn parquet_is_read_like_csv() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv");
    let (names, mut columns) = clean(10_000, 500.0);
    columns[3][17..40].fill(f64::NAN);
    write_parquet(&path, &names, &columns, 3000);
    let log = read(&path, &Source::default()).unwrap();
    same(&log, &Log::new("", names, columns).unwrap());
    assert_eq!((log.rows()[0], log.rows()[9999]), (1, 10_000));
    // Only some columns, in another order.
    let mut reader = open(&path, &Source::default()).unwrap();
    reader.select(&[2, 0]);
    let rows = reader.next_rows().unwrap().unwrap();
    assert_eq!(rows.values[2..4], [log.column_at(2)[1], log.column_at(0)[1]]);
}

#[test]
fn parquet_numbers_of_any_width_and_stamps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stamps.parquet");
    let schema =
        "message log { required int64 t (TIMESTAMP(MICROS,true)); required float q1; required binary mode; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file = SerializedFileWriter::new(
        File::create(&path).unwrap(),
        schema,
        Arc::new(WriterProperties::default()),
    )
    .unwrap();
    let mut rows = file.next_row_group().unwrap();
    let mut writer = rows.next_column().unwrap().unwrap();
    writer.typed::<Int64Type>().write_batch(&[1_000_000, 1_010_000], None, None).unwrap();
    writer.close().unwrap();
    let mut writer = rows.next_column().unwrap().unwrap();
    writer.typed::<FloatType>().write_batch(&[0.5, -0.25], None, None).unwrap();
    writer.close().unwrap();
    let mut writer = rows.next_column().unwrap().unwrap();
    let words = ["run".into(), "stop".into()];
    writer.typed::<parquet::data_type::ByteArrayType>().write_batch(&words, None, None).unwrap();
    writer.close().unwrap();
    rows.close().unwrap();
    file.close().unwrap();
    let mut reader = open(&path, &Source::default()).unwrap();
    reader.select(&[0, 1]);
    assert_eq!(reader.next_rows().unwrap().unwrap().values, [1.0, 0.5, 1.01, -0.25]);
    let error = read(&path, &Source::default()).unwrap_err().to_string();
    assert!(error.ends_with("column mode: holds BYTE_ARRAY: expected one number per row"), "{error}");
}

#[derive(serde::Serialize, Clone)]
struct Stamp {
    sec: i32,
    nanosec: u32,
}

#[derive(serde::Serialize, Clone)]
struct Header {
    stamp: Stamp,
    frame_id: String,
}

#[derive(serde::Serialize, Clone)]
struct JointState {
    header: Header,
    name: Vec<String>,
    position: Vec<f64>,
    velocity: Vec<f64>,
    effort: Vec<f64>,
}

/// Creates messages of three joints in changing order, some without effort, on one topic beside another type.
fn states(count: i32) -> Vec<JointState> {
    (0..count)
        .map(|i| {
            let order = if i % 2 == 0 { [0, 1, 2] } else { [2, 0, 1] };
            let value = |k: usize| f64::from(i) + 0.1 * k as f64;
            JointState {
                header: Header {
                    stamp: Stamp { sec: 1000 + i / 10, nanosec: 100_000_000 * (i % 10).unsigned_abs() },
                    frame_id: "world".repeat((i % 3).unsigned_abs() as usize),
                },
                name: order.iter().map(|k| ["shoulder", "elbow", "slide"][*k].to_owned()).collect(),
                position: order.iter().map(|&k| value(k)).collect(),
                velocity: Vec::new(),
                effort: if i == 7 { Vec::new() } else { order.iter().map(|&k| -value(k)).collect() },
            }
        })
        .collect()
}

fn write_mcap(path: &Path, topics: &[(&str, &[JointState])], zero_stamps: bool, big_endian: bool) {
    let mut writer = mcap::Writer::new(std::io::BufWriter::new(File::create(path).unwrap())).unwrap();
    let other = writer.add_schema("std_msgs/msg/String", "ros2msg", b"string data").unwrap();
    let noise = writer.add_channel(other, "/chatter", "cdr", &BTreeMap::new()).unwrap();
    let schema = writer.add_schema("sensor_msgs/msg/JointState", "ros2msg", b"").unwrap();
    for (topic, states) in topics {
        let channel = writer.add_channel(schema, topic, "cdr", &BTreeMap::new()).unwrap();
        for (i, state) in states.iter().enumerate() {
            let mut state = state.clone();
            if zero_stamps {
                state.header.stamp = Stamp { sec: 0, nanosec: 0 };
            }
            let header = |channel_id| mcap::records::MessageHeader {
                channel_id,
                sequence: i as u32,
                log_time: 5_000_000_000 + 10_000_000 * i as u64,
                publish_time: 0,
            };
            let body = if big_endian {
                cdr_encoding::to_vec::<_, byteorder::BigEndian>(&state).unwrap()
            } else {
                cdr_encoding::to_vec::<_, byteorder::LittleEndian>(&state).unwrap()
            };
            let message = [&[0, u8::from(!big_endian), 0, 0][..], &body].concat();
            writer.write_to_known_channel(&header(channel), &message).unwrap();
            writer.write_to_known_channel(&header(noise), b"hello").unwrap();
        }
    }
    writer.finish().unwrap();
}

#[test]
fn joint_states_are_read_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.bin");
    for big_endian in [false, true] {
        write_mcap(&path, &[("/joint_states", &states(3000))], false, big_endian);
        let log = read(&path, &Source::default()).unwrap();
        let expected = ["t", "q.shoulder", "tau.shoulder", "q.elbow", "tau.elbow", "q.slide", "tau.slide"];
        assert_eq!(log.names(), expected);
        assert_eq!(log.len(), 3000);
        for i in 0..3000 {
            let value = |k: usize| i as f64 + 0.1 * k as f64;
            // The stamp is a sum of seconds and nanoseconds.
            assert!((log.column("t").unwrap()[i] - (1000.0 + 0.1 * i as f64)).abs() < 1e-9);
            for (k, joint) in ["shoulder", "elbow", "slide"].into_iter().enumerate() {
                assert_eq!(log.column(&format!("q.{joint}")).unwrap()[i], value(k));
                let effort = log.column(&format!("tau.{joint}")).unwrap()[i];
                assert!(if i == 7 { effort.is_nan() } else { effort == -value(k) });
            }
        }
    }
    write_mcap(&path, &[("/joint_states", &states(20))], true, false);
    assert_eq!(read(&path, &Source::default()).unwrap().column("t").unwrap()[..2], [5.0, 5.01]);
}

/// Tests a gripper whose publisher starts after that of the arm, on the same topic.
#[test]
fn publishers_may_start_late() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.mcap");
    let with_gripper = |count: i32, start: usize| -> Vec<JointState> {
        let arm = states(count).into_iter().enumerate();
        arm.flat_map(|(i, state)| {
            let (name, position) = (vec!["finger".to_owned()], vec![0.5 * i as f64]);
            let gripper = JointState { name, position, effort: Vec::new(), ..state.clone() };
            std::iter::once(state).chain((i >= start).then_some(gripper))
        })
        .collect()
    };
    write_mcap(&path, &[("/joint_states", &with_gripper(3000, 1500))], false, false);
    let log = read(&path, &Source::default()).unwrap();
    assert_eq!((log.len(), *log.names().last().unwrap() == "q.finger"), (3000, true), "{:?}", log.names());
    let finger = log.column("q.finger").unwrap();
    for (i, q) in finger.iter().enumerate() {
        assert!(if i < 1500 { q.is_nan() } else { *q == 0.5 * i as f64 }, "{i}: {q}");
    }
    // Beyond the messages that are examined, a note names the joint.
    write_mcap(&path, &[("/joint_states", &with_gripper(100_100, 100_050))], false, false);
    let mut reader = open(&path, &Source::default()).unwrap();
    reader.select(&[0, 1]);
    let mut count = 0;
    while let Some(rows) = reader.next_rows().unwrap() {
        count += rows.len();
    }
    assert_eq!(count, 100_100);
    let notes = reader.notes();
    assert!(notes.len() == 1 && notes[0].ends_with("are not read: finger"), "{notes:?}");
}

#[test]
fn topics_are_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.mcap");
    write_mcap(
        &path,
        &[("/left/joint_states", &states(5)), ("/right/joint_states", &states(9))],
        false,
        false,
    );
    let error = read(&path, &Source::default()).unwrap_err().to_string();
    assert!(error.ends_with("has joint states on /left/joint_states, /right/joint_states: choose one topic"));
    let source = |topic: &str| Source::default().with(|s| s.topic = Some(topic.into()));
    assert_eq!(read(&path, &source("/right/joint_states")).unwrap().len(), 9);
    let error = read(&path, &source("/right/joint_state")).unwrap_err().to_string();
    assert!(error.ends_with("the nearest is /right/joint_states"), "{error}");
    write_mcap(&path, &[], false, false);
    let error = read(&path, &Source::default()).unwrap_err().to_string();
    let expected = "there is no message of type sensor_msgs/JointState; it has /chatter (std_msgs/String)";
    assert!(error.ends_with(expected), "{error}");
}

/// Regression test: on these files, the crate that reads Parquet panics with a message on the terminal, or skips billions of entries.
#[test]
fn damaged_parquet_files_are_refused_at_once() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let small = ["long-number", "negative-place", "endless-list"].map(|name| format!("small/parquet/{name}"));
    for name in small.into_iter().chain(["parquet/missing-dictionary".to_owned()]) {
        let error = read(&seeds.join(format!("{name}.parquet")), &Source::default()).unwrap_err().to_string();
        assert!(error.contains("damaged") && error.lines().count() == 1, "{name}: {error}");
    }
}

#[test]
fn truncated_and_damaged_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
    let (names, columns) = clean(3000, 500.0);
    let (mut failures, mut tries) = (0, 0);
    for parquet in [true, false] {
        if parquet {
            write_parquet(&whole, &names, &columns, 1000);
        } else {
            write_mcap(&whole, &[("/joint_states", &states(2000))], false, false);
        }
        let bytes = std::fs::read(&whole).unwrap();
        for k in 1..20 {
            std::fs::write(&cut, &bytes[..bytes.len() * k / 20]).unwrap();
            let error = read(&cut, &Source::default()).unwrap_err().to_string();
            assert!(error.contains("truncated") && error.lines().count() == 1, "{parquet} {k}: {error}");
        }
        // One changed byte results in a one-line error or (in the values themselves) in other numbers, never in a panic.
        let mut state = 1u64;
        for _ in 0..200 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut damaged = bytes.clone();
            damaged[(state >> 33) as usize % bytes.len()] ^= 1 << (state >> 20 & 7);
            std::fs::write(&cut, &damaged).unwrap();
            tries += 1;
            if let Err(error) = read(&cut, &Source::default()) {
                assert_eq!(error.to_string().lines().count(), 1, "{error}");
                failures += 1;
            }
        }
    }
    assert!(failures > tries / 10, "{failures} of {tries}");
}

const MAP: &str = r#"
units = { t = "ms", q = "deg", tau = "mN m" }
joints = { axis_1 = "shoulder" }
[columns]
t = "stamp"
"q.slide" = { column = "x", unit = "mm", offset = 0.5 }
"tau.elbow" = { column = "i2", unit = "A", scale = 2.0 }
"ft.fz" = "Fz"
"#;

fn mapped(map: &str, text: &str) -> inertial_data::Result<Log> {
    Log::collect(ColumnMap::parse(map, "map.toml")?.apply(CsvReader::new(text.as_bytes(), "log.csv")?)?)
}

#[test]
fn maps_rename_and_scale() {
    let text = "stamp,q.axis_1,q.elbow,x,tau.axis_1,i2,Fz,t\n0,180,90,100,1500,3,7,0\n5,0,0,0,0,0,8,1\n";
    let log = mapped(MAP, text).unwrap();
    let names =
        ["t", "q.shoulder", "q.elbow", "q.slide", "tau.shoulder", "tau.elbow", "ft.fz", "t of the log"];
    assert_eq!(log.names(), names);
    let first: Vec<f64> = (0..7).map(|k| log.column_at(k)[0]).collect();
    let pi = std::f64::consts::PI;
    // Products of rounded factors: one unit in the last place.
    for (found, expected) in first.iter().zip([0.0, pi, 0.5 * pi, 0.6, 1.5, 6.0, 7.0]) {
        assert!((found - expected).abs() < 1e-15, "{first:?}");
    }
    assert_eq!(log.column("t").unwrap()[1], 0.005);
}

#[test]
fn maps_without_matching_columns_are_refused() {
    let text = "t,q.axis_1,i2\n0,1,2\n";
    let failure = |map: &str| mapped(map, text).unwrap_err().to_string();
    let cases = [
        (
            "[columns]\n\"q.a\" = \"q.axis1\"",
            "log.csv: map.toml: there is no column q.axis1; the nearest is q.axis_1",
        ),
        (
            "joints = { axis1 = \"a\" }",
            "log.csv: map.toml: no column belongs to the joint axis1; the nearest is axis_1",
        ),
        (
            "[columns]\n\"q.a\" = { column = \"i2\", unit = \"Nm\" }",
            "map.toml: column q.a: unit Nm: expected one of rad ",
        ),
        ("units = { t = \"hours\" }", "map.toml: column t: unit hours: expected one of s ms us ns min"),
        (
            "[columns]\n\"tau.a\" = { column = \"i2\", unit = \"A\" }",
            "map.toml: column tau.a: unit A needs a scale",
        ),
        ("[columns]\n\"tau.a\" = { column = \"i2\", scale = 0.0 }", "map.toml: column tau.a: a scale is"),
        ("[columns]\nposition = \"i2\"", "map.toml: column position: is not a log column"),
        (
            "[columns]\n\"q.a\" = \"i2\"\n\"q.b\" = \"i2\"",
            "log.csv: map.toml: column i2 is used for q.a and q.b",
        ),
        ("[column]\nt = \"i2\"", "map.toml: row 1: "),
        ("units = [", "map.toml: row 1: "),
    ];
    for (map, expected) in cases {
        let found = failure(map);
        assert!(found.starts_with(expected) && found.lines().count() == 1, "{map}: {found}");
    }
}

/// Tests files of other writers: pyarrow, and the ROS 2 support of mcap.
#[test]
fn files_written_in_python_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap();
    if common::python::run("write_logs.py", &[at]).is_none() {
        return;
    }
    let read = |name: &str| read(&folder.path().join(name), &Source::default()).unwrap();
    let text = std::fs::read_to_string(folder.path().join("log.csv")).unwrap();
    let expected = common::parse(&text).unwrap();
    same(&read("log.parquet"), &expected);
    let states = read("log.mcap");
    for name in expected.names() {
        let (found, expected) = (states.column(name).unwrap(), expected.column(name).unwrap());
        assert_eq!(found.len(), expected.len());
        // Only stamps are rounded, to nanoseconds.
        assert!(found.iter().zip(expected).all(|(a, b)| if name == "t" {
            (a - b).abs() < 1e-8
        } else {
            a == b
        }));
    }
}
