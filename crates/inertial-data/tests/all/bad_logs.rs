//! Tests that every bad log results in a one-line message with the location and the problem.

#![allow(clippy::unwrap_used)]

use crate::common;
use crate::common::{arm, clean, columns_at};
use inertial_data::{Cutoff, Error, Log, Options, prepare};

fn failure_with(names: Vec<String>, columns: Vec<Vec<f64>>, options: &Options) -> Error {
    let log = Log::new("log.csv", names, columns).unwrap();
    let error = prepare(&arm(), &log, options).unwrap_err();
    assert_eq!(error.to_string().lines().count(), 1);
    error
}

fn failure(names: Vec<String>, columns: Vec<Vec<f64>>) -> Error {
    failure_with(names, columns, &Options::default())
}

/// Returns the message after a change to a clean log.
fn damaged(change: impl FnOnce(&mut Vec<String>, &mut Vec<Vec<f64>>)) -> String {
    let (mut names, mut columns) = clean(1000, 100.0);
    change(&mut names, &mut columns);
    failure(names, columns).to_string()
}

fn named(name: &str) -> Vec<String> {
    ["t", "q.shoulder", "q.elbow", "q.slide", "tau.shoulder", "tau.elbow", "tau.slide"]
        .map(|n| if n == name { n.replace("elbow", "elbw") } else { n.to_owned() })
        .to_vec()
}

#[test]
fn columns_that_do_not_match() {
    let (_, columns) = clean(1000, 100.0);
    assert_eq!(
        failure(named("q.elbow"), columns.clone()).to_string(),
        "log.csv: there is no column q.elbow for elbow; the nearest is q.elbw"
    );
    assert!(failure(named("tau.elbow"), columns.clone()).to_string().ends_with("the nearest is tau.elbw"));
    let options = Options::default().with(|o| o.torque_joints = vec!["shoulder".into()]);
    let log = Log::new("log.csv", named("tau.elbow"), columns.clone()).unwrap();
    let p = prepare(&arm(), &log, &options).unwrap();
    assert!(p.keep.iter().skip(1).step_by(3).all(|k| !k));
    assert!(p.notes.iter().any(|n| n.contains("not used: tau.elbw")), "{:?}", p.notes);
    // A joint without a torque sensor, such as a gripper.
    let without = |columns: &[Vec<f64>]| columns[..6].to_vec();
    let log = Log::new("log.csv", named("")[..6].to_vec(), without(&columns)).unwrap();
    let p = prepare(&arm(), &log, &Options::default()).unwrap();
    assert!(p.keep.iter().skip(2).step_by(3).all(|k| !k) && p.keep.iter().any(|k| *k));
    let note = "there is no column tau.slide: the torque of slide counts as not measured";
    assert!(p.notes.iter().any(|n| n == note), "{:?}", p.notes);
    let options = Options::default().with(|o| o.torque_joints = vec!["shouldr".into()]);
    assert_eq!(
        failure_with(named(""), columns, &options).to_string(),
        "log.csv: the model has no joint shouldr; the nearest is shoulder"
    );

    assert!(damaged(|n, _| n[0] = "T".into()).contains("no column t (time in seconds); the nearest is T"));
    assert!(damaged(|n, _| n[3] = "q.slide".into()).contains("both by joint (q.slide) and by number (q1)"));
    assert!(damaged(|n, _| n[3] = "x".into()).contains("no column q3 for slide"));
    assert!(damaged(|n, _| n[6] = "x".into()).contains("no column tau3 for slide"));
    let extra = damaged(|n, c| {
        n.push("q4".into());
        c.push(c[1].clone());
    });
    assert_eq!(extra, "log.csv: column q4: the model has 3 joint coordinates");
}

#[test]
fn time_that_cannot_be_repaired() {
    assert_eq!(
        damaged(|_, c| c[0][500..].iter_mut().for_each(|t| *t -= 5.0)),
        "log.csv: row 502: column t: time runs backwards, from 4.99 to 0"
    );
    assert_eq!(damaged(|_, c| c[0][7] = f64::NAN), "log.csv: row 9: column t: there is no time stamp");
    assert_eq!(
        damaged(|_, c| c[0].fill(1.0)),
        "log.csv: row 3: column t: time does not advance: it is 1, as in the row before"
    );
    assert_eq!(
        damaged(|_, c| c[0].reverse()),
        "log.csv: row 3: column t: time runs backwards, from 9.99 to 9.98"
    );
    let coarse = damaged(|_, c| c[0].iter_mut().for_each(|t| *t = (*t * 50.0).floor() / 50.0));
    assert!(coarse.contains("row 3: column t: 500 of 1000 rows have the time of the row before"), "{coarse}");
    let gap = damaged(|_, c| c[0][600..].iter_mut().for_each(|t| *t += 4.0));
    assert!(gap.contains("row 602") && gap.contains("29 % of the time is in gaps"), "{gap}");
    let endless = damaged(|_, c| c[0][600..].iter_mut().for_each(|t| *t += 4e9));
    assert!(endless.contains("row 602") && endless.contains("the time jumps by 4e9 s here"), "{endless}");
    assert!(endless.contains("split the log before this row"), "{endless}");
}

#[test]
fn units_that_are_unlikely() {
    let scaled = |k: usize, factor: f64| damaged(move |_, c| c[k].iter_mut().for_each(|x| *x *= factor));
    assert!(scaled(0, 1e3).contains("column t: a step of 10.0000 s is too long"), "{}", scaled(0, 1e3));
    assert!(scaled(0, 1e3).contains("milliseconds"));
    assert!(scaled(0, 1e6).contains("microseconds"));
    assert!(scaled(0, 1e9).contains("nanoseconds"));
    let degrees = scaled(2, 57.3);
    assert!(degrees.contains("column q2: an angle of 57.3 rad (the limit is 3)"), "{degrees}");
    assert!(degrees.contains("degrees"));
    // Positions of a slide in millimetres.
    let millimetres = scaled(3, 1e3);
    assert!(
        millimetres.contains("column q3: a position of 1000 m (the limit is 3) is unlikely"),
        "{millimetres}"
    );
    assert!(millimetres.contains(r#""q3" = { column = "q3", unit = "mm" }"#), "{millimetres}");
    let (names, mut columns) = clean(1000, 100.0);
    columns[3].iter_mut().for_each(|x| *x *= 1e3);
    let trusted = Options::default().with(|o| o.trust_units = true);
    assert!(prepare(&arm(), &Log::new("log.csv", names, columns).unwrap(), &trusted).is_ok());
    // A prismatic joint may exceed the limits of the model.
    let (names, mut columns) = clean(1000, 100.0);
    columns[3].iter_mut().for_each(|x| *x *= 57.3);
    assert!(prepare(&arm(), &Log::new("log.csv", names, columns).unwrap(), &Options::default()).is_ok());
    let speed = damaged(|n, c| {
        n.push("dq1".into());
        let velocity = |t: f64| common::motion(0, t)[1] * 57.3;
        c.push(c[0].iter().map(|&t| velocity(t)).collect());
    });
    assert!(speed.contains("column dq1") && speed.contains("degrees per second"), "{speed}");
    // Accelerations are compared with velocities.
    let acceleration = |factor: f64| {
        damaged(move |n, c| {
            n.push("ddq1".into());
            c.push(c[0].iter().map(|&t| common::motion(0, t)[2] * factor).collect());
        })
    };
    let degrees = acceleration(180.0 / std::f64::consts::PI);
    assert!(degrees.contains("column ddq1: is 57.") && degrees.contains("degrees per second²"), "{degrees}");
    assert!(acceleration(1e-6).contains("per millisecond²"), "{}", acceleration(1e-6));
    assert_eq!(
        acceleration(-1.0),
        "log.csv: column ddq1: has the opposite sign of the derivative of its velocity"
    );
    // The user may override the check.
    let (names, mut columns) = clean(1000, 100.0);
    columns[2].iter_mut().for_each(|x| *x *= 5.0);
    let log = Log::new("log.csv", names, columns).unwrap();
    assert!(prepare(&arm(), &log, &Options::default()).is_err());
    assert!(prepare(&arm(), &log, &Options::default().with(|o| o.trust_units = true)).is_ok());
}

/// Tests that without position limits, the speed limit reveals degrees: 10° at 3 rad/s appear as 30 for a limit of 10 rad/s.
#[test]
fn small_motions_of_continuous_joints_in_degrees() {
    let text = r#"<robot name="wheel"><link name="base"/><link name="a"/><joint name="axle" type="continuous"><parent link="base"/>
        <child link="a"/><axis xyz="0 1 0"/><limit effort="100" velocity="10"/></joint></robot>"#;
    let builder = inertial::mechanism::read::model(text, &inertial::mechanism::read::no_includes).unwrap();
    let wheel = builder.build(&inertial::mechanism::BuildOptions::default()).unwrap();
    let prepared = |scale: f64, trust_units: bool| {
        let (names, mut columns) = clean(1000, 100.0);
        columns[1].iter_mut().for_each(|x| *x *= scale);
        let keep = [0, 1, 4];
        let names = keep.map(|k| names[k].clone()).to_vec();
        let log = Log::new("log.csv", names, keep.map(|k| columns[k].clone()).to_vec()).unwrap();
        prepare(&wheel, &log, &Options::default().with(|o| o.trust_units = trust_units))
    };
    assert!(prepared(10.0 / 57.3, false).is_ok() && prepared(10.0, true).is_ok());
    let error = prepared(10.0, false).unwrap_err().to_string();
    assert!(
        error.starts_with("log.csv: column q1: moves at 30.") && error.contains("are these degrees?"),
        "{error}"
    );
}

#[test]
fn logs_without_information_are_refused() {
    assert_eq!(
        damaged(|_, c| c[5].fill(2.0)),
        "log.csv: column tau2: the torque is constant (2): was it measured?"
    );
    let still = damaged(|_, c| (1..4).for_each(|k| c[k].fill(0.5)));
    assert!(still.contains("no joint moves"), "{still}");
    let flat = damaged(|n, c| {
        n.push("dq1".into());
        c.push(vec![0.0; 1000]);
    });
    assert!(flat.contains("column dq1: the velocity is constant although the position changes"), "{flat}");
    let flat = damaged(|n, c| {
        n.push("ddq2".into());
        c.push(vec![0.0; 1000]);
    });
    assert!(
        flat.contains("column ddq2: the acceleration is constant although the position changes"),
        "{flat}"
    );
    let clipped = damaged(|_, c| c[4].iter_mut().for_each(|x| *x = x.clamp(-4.0, 8.0)));
    assert!(clipped.contains("column tau1") && clipped.contains("saturated"), "{clipped}");
    let gaps = damaged(|_, c| c[4][100..300].fill(f64::NAN));
    assert_eq!(gaps, "log.csv: row 102: column tau1: 200 of 1000 values are missing, the first in this row");
    let empty = damaged(|_, c| c[1].fill(f64::NAN));
    assert!(empty.contains("column q1"), "{empty}");

    let few = |n: usize| {
        let t: Vec<f64> = (0..n).map(|i| i as f64 / 100.0).collect();
        let (names, columns) = columns_at(&t);
        failure(names, columns).to_string()
    };
    assert!(few(3).contains("3 samples are too few"));
    assert!(few(9).contains("fewer than the 30 parameters"), "{}", few(9));
    let ends = few(14);
    assert!(
        ends.contains(
            "usable, fewer than the 30 parameters of the model: 1 are of slow joints, 35 within 0.05 s"
        ),
        "{ends}"
    );
    assert!(ends.contains("of a gap, a saturated torque or an end of the log"), "{ends}");
}

#[test]
fn a_little_saturation_is_left_out() {
    let (names, mut columns) = clean(1000, 100.0);
    columns[4].iter_mut().for_each(|x| *x = x.min(12.8));
    let log = Log::new("log.csv", names, columns).unwrap();
    let p = prepare(&arm(), &log, &Options::default()).unwrap();
    assert!(p.notes.iter().any(|n| n.contains("column tau1: the torque saturates")), "{:?}", p.notes);
    for i in 0..p.len() {
        assert!(!(p.keep[3 * i] && p.tau_raw[3 * i] == 12.8));
    }
}

/// A small torque with a coarse resolution stays at its extreme levels without saturation.
#[test]
fn a_coarse_torque_is_not_saturated() {
    let (names, mut columns) = clean(1000, 100.0);
    for (i, tau) in columns[6].iter_mut().enumerate() {
        *tau = 0.01 * (2.4 * (0.05 * i as f64).sin()).round();
    }
    let log = Log::new("log.csv", names, columns).unwrap();
    let p = prepare(&arm(), &log, &Options::default()).unwrap();
    assert!(p.notes.iter().any(|n| n.contains("column tau3: the torque has only 5 levels")), "{:?}", p.notes);
    assert!(!p.notes.iter().any(|n| n.contains("saturates")), "{:?}", p.notes);
    assert!((0..p.len()).any(|i| p.keep[3 * i + 2]));
}

#[test]
fn options_that_fit_no_log() {
    for options in [
        Options::default().with(|o| o.cutoff = Cutoff::Hz(80.0)),
        Options::default().with(|o| o.cutoff = Cutoff::Hz(f64::NAN)),
        Options::default().with(|o| o.slow = 2.0),
        Options::default().with(|o| o.bandwidths = 0.5),
    ] {
        let (names, columns) = clean(1000, 100.0);
        assert!(matches!(failure_with(names, columns, &options), Error::Option(_)));
    }
}
