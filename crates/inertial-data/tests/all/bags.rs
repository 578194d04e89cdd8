//! Tests of bags with several topics, types and rates, as written by rosbags.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use inertial::mechanism::{BuildOptions, Mechanism, read as models};
use inertial_data::{ColumnMap, Columns, Log, Options, Reader as _, Selection, Source, open};

use crate::common::python::run;

fn written() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    run("write_bags.py", &[folder.path().to_str().unwrap()])?;
    Some(folder)
}

fn bags(folder: &Path) -> Vec<PathBuf> {
    let names = ["several_db3", "several_mcap", "several_mcap/several_mcap.mcap", "several.bag"];
    names.iter().map(|name| folder.join(name)).collect()
}

fn read(path: &Path, source: &Source) -> Result<Log, String> {
    open(path, source).and_then(Log::collect).map_err(|e| e.to_string())
}

/// Returns a model with the joints of the bags.
fn model() -> Mechanism {
    let joint = |name: &str, parent: &str, child: &str| {
        format!(
            "<joint name=\"{name}\" type=\"continuous\"><parent link=\"{parent}\"/><child link=\"{child}\"/>\
             <axis xyz=\"0 1 0\"/></joint><link name=\"{child}\"/>"
        )
    };
    let (shoulder, elbow) = (joint("shoulder", "base", "a"), joint("elbow", "a", "b"));
    let text = format!("<robot name=\"arm\"><link name=\"base\"/>{shoulder}{elbow}</robot>");
    models::model(&text, &models::no_includes).unwrap().build(&BuildOptions::default()).unwrap()
}

fn topic(topic: &str) -> Source {
    Source::default().with(|s| s.topic = Some(topic.to_owned()))
}

fn mapped(columns: &str) -> Source {
    Source::default().with(|s| s.map = Some(ColumnMap::parse(columns, "map.toml").unwrap()))
}

/// Returns the signals that the script writes.
fn signal(k: u32, t: f64) -> f64 {
    let k = f64::from(k);
    (k + 1.0) * ((1.0 + 0.3 * k) * t + k).sin()
}

/// Compares a column with a signal at the stamps of the log; `gap` is the time between interpolated messages.
fn compare(log: &Log, name: &str, k: u32, gap: f64, place: &str) {
    let (t, values) =
        (log.column("t").unwrap(), log.column(name).unwrap_or_else(|| panic!("{place}: no {name}")));
    // Linear interpolation has an error of at most h²/8 times the second derivative; single precision and stamps in seconds since 1970 add
    // rounding errors.
    let (amplitude, rate) = (f64::from(k) + 1.0, 1.0 + 0.3 * f64::from(k));
    let tolerance = amplitude * rate * rate * gap * gap / 8.0 + 1e-6 * amplitude;
    let mut compared = 0;
    for (t, value) in t.iter().zip(values).filter(|(_, value)| !value.is_nan()) {
        let expected = signal(k, t - 1000.0);
        assert!((value - expected).abs() <= tolerance, "{place}: {name} at {t}: {value}, not {expected}");
        compared += 1;
    }
    // The other topics start later and end earlier than the first one by less than one of their messages.
    assert!(compared + 30 >= t.len() && compared > 300, "{place}: {name}: {compared} of {}", t.len());
}

#[test]
fn known_types_have_names_of_the_contract() {
    let Some(folder) = written() else { return };
    for bag in bags(folder.path()) {
        let place = bag.display().to_string();
        let log = read(&bag, &topic("/ft")).unwrap();
        assert_eq!(log.names(), ["t", "ft.fx", "ft.fy", "ft.fz", "ft.tx", "ft.ty", "ft.tz"]);
        (0..6).for_each(|k| compare(&log, &log.names()[k as usize + 1].clone(), 4 + k, 0.0, &place));
        let log = read(&bag, &topic("/imu")).unwrap();
        compare(&log, "gyro.x", 10, 0.0, &place);
        compare(&log, "acc.z", 15, 0.0, &place);
        assert_eq!(log.names().len(), 7);
        let log = read(&bag, &topic("/odom")).unwrap();
        for (k, name) in
            ["x", "y", "z", "qx", "qy", "qz", "qw", "vx", "vy", "vz", "wx", "wy", "wz"].iter().enumerate()
        {
            compare(&log, &format!("base.{name}"), u32::try_from(k).unwrap(), 0.0, &place);
        }
        let log = read(&bag, &topic("/dynamic")).unwrap();
        assert_eq!(log.names(), ["t", "q.shoulder", "tau.shoulder", "q.elbow", "tau.elbow"]);
        compare(&log, "q.elbow", 1, 0.0, &place);
        compare(&log, "tau.shoulder", 2, 0.0, &place);
    }
}

#[test]
fn topics_of_other_rates_are_interpolated() {
    let Some(folder) = written() else { return };
    for bag in bags(folder.path()) {
        let place = bag.display().to_string();
        // Joint states define the rows regardless of their position in the list.
        let log = read(&bag, &topic("/ft, /joint_states,/imu")).unwrap();
        assert_eq!(log.len(), 2000, "{place}");
        compare(&log, "q.shoulder", 0, 0.0, &place);
        compare(&log, "tau.elbow", 3, 0.0, &place);
        compare(&log, "ft.tz", 9, 0.01, &place);
        compare(&log, "acc.x", 13, 0.0025, &place);
    }
}

/// Tests a topic on which an arm and a gripper publish their own joints.
#[test]
fn publishers_on_one_topic_are_interpolated() {
    let Some(folder) = written() else { return };
    for name in ["publishers_db3", "publishers_mcap", "publishers.bag"] {
        let bag = folder.path().join(name);
        let log = read(&bag, &Source::default()).unwrap();
        // The stream with most joints comes first; both have two joints here, and the arm has more messages.
        assert_eq!(
            log.names(),
            ["t", "q.shoulder", "tau.shoulder", "q.elbow", "tau.elbow", "q.left", "q.right"],
            "{name}"
        );
        assert_eq!(log.len(), 2000, "{name}");
        compare(&log, "q.shoulder", 0, 0.0, name);
        compare(&log, "tau.elbow", 3, 0.0, name);
        compare(&log, "q.left", 4, 0.01, name);
        // Only the rows before the first and after the last message of the gripper have no value.
        for joint in ["q.shoulder", "tau.elbow", "q.right"] {
            let missing = log.column(joint).unwrap().iter().filter(|x| x.is_nan()).count();
            assert!(missing <= 3, "{name}: {joint}: {missing}");
        }
        // Field paths would mix the joints of the two publishers.
        let error = read(&bag, &mapped("[columns]\nq = \"/joint_states.position[{i}]\"\n")).unwrap_err();
        assert!(error.contains("its messages name different joints"), "{error}");
    }
}

#[test]
fn any_message_is_read_by_the_paths_of_its_fields() {
    let Some(folder) = written() else { return };
    for bag in bags(folder.path()) {
        let place = bag.display().to_string();
        let source = mapped(
            "[columns]\nq = \"/low_state.motor_state[{i}].q\"\ntau = { column = \"/low_state.motor_state[{i}].tau_est\", scale = 2 }\n",
        );
        let log = read(&bag, &source).unwrap();
        assert_eq!(log.len(), 1000, "{place}");
        compare(&log, "q1", 0, 0.0, &place);
        compare(&log, "q2", 1, 0.0, &place);
        let (t, tau) = (log.column("t").unwrap(), log.column("tau2").unwrap());
        assert!(
            t.iter().zip(tau).all(|(t, tau)| (tau - 2.0 * signal(3, t - 1000.0)).abs() < 1e-5),
            "{place}"
        );
        // Two topics in one map.
        let source = mapped(
            "[columns]\nq = \"/joint_states.position[{i}]\"\ntau = \"/low_state.motor_state[{i}].tau_est\"\n",
        );
        let log = read(&bag, &source).unwrap();
        assert_eq!(log.len(), 2000, "{place}");
        compare(&log, "q1", 0, 0.0, &place);
        compare(&log, "tau2", 3, 0.008, &place);
        // All numbers of a topic of any meaning; long sequences are omitted.
        let raw = topic("/low_state").with(|s| s.raw = true);
        let names = open(&bag, &raw).unwrap().names().to_vec();
        assert!(names.contains(&"/low_state.motor_state[1].spare[0]".to_owned()), "{names:?}");
        assert!(names.contains(&"/low_state.tick".to_owned()) && names.len() < 20, "{names:?}");
    }
}

/// Tests messages that list their joints in another order than the model.
#[test]
fn listed_joints_name_the_numbers_of_a_message() {
    let Some(folder) = written() else { return };
    let joints = ["shoulder", "elbow"].map(String::from).to_vec();
    let map = "[columns]\nq = \"/joints.positions[{i}]\"\ntau = \"/joints.efforts[{i}]\"\n";
    for bag in bags(folder.path()) {
        let place = bag.display().to_string();
        for source in [topic("/joints"), mapped(map)] {
            let source = source.with(|s| s.joints.clone_from(&joints));
            let log = read(&bag, &source).unwrap();
            assert_eq!(log.names(), ["t", "q.elbow", "q.shoulder", "tau.elbow", "tau.shoulder"], "{place}");
            compare(&log, "q.shoulder", 0, 0.0, &place);
            compare(&log, "q.elbow", 1, 0.0, &place);
            compare(&log, "tau.shoulder", 2, 0.0, &place);
            compare(&log, "tau.elbow", 3, 0.0, &place);
            let notes = open(&bag, &source).unwrap().notes().join("; ");
            assert!(notes.contains("named by /joints.joint_names"), "{notes}");
        }
        // Columns that a map numbers one by one keep their numbers, with a note.
        let map = "[columns]\nq1 = \"/joints.positions[0]\"\nq2 = \"/joints.positions[1]\"\n";
        let source = mapped(map).with(|s| s.joints.clone_from(&joints));
        let log = read(&bag, &source).unwrap();
        compare(&log, "q1", 1, 0.0, &place);
        compare(&log, "tau.shoulder", 2, 0.0, &place);
        let notes = open(&bag, &source).unwrap().notes().join("; ");
        assert!(notes.contains("although /joints.joint_names lists them as elbow shoulder"), "{notes}");
    }
}

/// Tests a map that gives only the torques: positions come from the joint states.
#[test]
fn partial_maps_complete_the_joint_states() {
    let Some(folder) = written() else { return };
    for bag in bags(folder.path()) {
        let place = bag.display().to_string();
        let map = "[columns]\ntau = { column = \"/low_state.motor_state[{i}].tau_est\", scale = 2 }\n";
        let log = read(&bag, &mapped(map)).unwrap();
        assert_eq!(log.len(), 2000, "{place}");
        compare(&log, "q.shoulder", 0, 0.0, &place);
        compare(&log, "q.elbow", 1, 0.0, &place);
        let (t, tau) = (log.column("t").unwrap(), log.column("tau2").unwrap());
        // Linear interpolation between messages 8 ms apart; the largest second derivative is 2 · 4 · 1.9².
        let close = |(t, tau): (&f64, &f64)| {
            tau.is_nan() || (tau - 2.0 * signal(3, t - 1000.0)).abs() < 29.0 * 0.008 * 0.008 / 8.0 + 1e-5
        };
        assert!(t.iter().zip(tau).all(close), "{place}");
        assert!(tau.iter().filter(|x| x.is_nan()).count() < 10, "{place}");
        // The torques of the map replace those of the joint states, and numbers count in the order of the model's joints.
        let numbered = Columns::matching(&model(), &place, log.names(), &Options::default());
        let columns = numbered.unwrap();
        let name = |k: &Option<usize>| k.map(|k| log.names()[k].clone()).unwrap();
        assert_eq!(columns.q.iter().map(name).collect::<Vec<_>>(), ["q.shoulder", "q.elbow"]);
        assert_eq!(columns.tau.iter().map(name).collect::<Vec<_>>(), ["tau1", "tau2"]);
    }
}

#[test]
fn all_topics_can_be_listed() {
    let Some(folder) = written() else { return };
    let source = Source::default().with(|s| (s.raw, s.every_topic) = (true, true));
    for bag in bags(folder.path()) {
        let reader = open(&bag, &source).unwrap();
        let names = reader.names();
        let selection = |name: &str| names.iter().position(|n| n == name).map(|k| reader.selection(k));
        assert_eq!(names[..3], ["t", "q.shoulder", "tau.shoulder"], "{}", bag.display());
        assert_eq!(selection("t"), Some(Selection::Automatic));
        assert_eq!(selection("q.elbow"), Some(Selection::Automatic));
        assert_eq!(selection("/dynamic: tau.elbow"), Some(Selection::Topic));
        for name in ["/low_state.motor_state[0].q", "/ft.wrench.torque.z"] {
            assert_eq!(selection(name), Some(Selection::Map), "{name} in {names:?}");
        }
    }
}

#[test]
fn missing_topics_are_named() {
    let Some(folder) = written() else { return };
    for bag in bags(folder.path()) {
        let error = read(&bag, &topic("/joint_states,/fd")).unwrap_err();
        assert!(error.contains("there is no message on the topic /fd") && error.contains("/ft"), "{error}");
        let error = read(&bag, &topic("/joint_states,/dynamic")).unwrap_err();
        assert!(error.contains("several topics have q.shoulder: choose one of them"), "{error}");
        let error = read(&bag, &mapped("[columns]\nq = \"/low_state.motors[{i}].q\"\n")).unwrap_err();
        assert!(error.contains("no column of the log matches"), "{error}");
    }
}

/// Tests that damaged messages and definitions result in other values or a one-line error.
#[test]
fn damaged_bags_end_in_one_line() {
    let Some(folder) = written() else { return };
    let map = "[columns]\nq = \"/low_state.motor_state[{i}].q\"\ntau = \"/dynamic.interface_values[{i}].values[2]\"\n";
    let sources = [topic("/joint_states,/ft,/low_state"), topic("/dynamic"), mapped(map)];
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % n as u64).unwrap()
    };
    for name in ["several_db3/several_db3.db3", "several_mcap/several_mcap.mcap", "several.bag"] {
        let whole = std::fs::read(folder.path().join(name)).unwrap();
        for _ in 0..12 {
            let mut bytes = whole.clone();
            // Definitions and the first messages are near the start.
            let near = if random(2) == 0 { bytes.len() } else { bytes.len().min(20_000) };
            for _ in 0..=random(4) {
                let at = random(near);
                bytes[at] = [0, 0xff, b'[', b'9', bytes[at] ^ 1][random(5)];
            }
            if random(4) == 0 {
                bytes.truncate(random(near).max(20));
            }
            let path = folder.path().join("damaged");
            std::fs::write(&path, &bytes).unwrap();
            for source in &sources {
                if let Err(message) = read(&path, source) {
                    assert!(!message.contains('\n') && message.len() < 2000, "{message}");
                }
            }
        }
    }
}
