//! Tests of logs without a column, or with a column that has no values.

#![allow(clippy::unwrap_used)]

use crate::common::{arm, clean, motion, torque};
use inertial_data::{Cutoff, Log, Options, Requirement, prepare};

fn log(names: &[String], columns: &[Vec<f64>]) -> Log {
    Log::new("log.csv", names.to_vec(), columns.to_vec()).unwrap()
}

/// Tests that columns without values count as not measured, and that all other samples are used as without these columns.
#[test]
fn columns_without_values_are_not_measured() {
    let mechanism = arm();
    let (mut names, mut columns) = clean(1000, 100.0);
    columns[6].fill(f64::NAN);
    for k in 0..3 {
        names.push(format!("dq{}", k + 1));
        columns.push(vec![f64::NAN; 1000]);
    }
    let options = Options::default().with(|o| o.cutoff = Cutoff::Off);
    let found = prepare(&mechanism, &log(&names, &columns), &options).unwrap();
    for note in
        ["column tau3: it has no values: the torque counts as not measured", "column dq1: it has no values"]
    {
        assert!(found.notes.iter().any(|n| n.contains(note)), "{note}: {:?}", found.notes);
    }
    let mut used = [0; 3];
    for (i, &t) in found.t.iter().enumerate() {
        for k in 0..3 {
            let at = 3 * i + k;
            used[k] += usize::from(found.keep[at]);
            if found.keep[at] {
                // The velocity has the error of a derivative of fourth order, below 1e-4 here.
                assert!((found.tau[at] - torque(k, t)).abs() < 1e-12);
                assert!((found.v[at] - motion(k, t)[1]).abs() < 1e-4);
            }
        }
    }
    assert!(used[0] > 900 && used[1] > 900 && used[2] == 0, "{used:?}");
    // A torque that was asked for must have values, and so must one torque at least.
    let named = options.clone().with(|o| o.torque_joints = vec!["slide".to_owned()]);
    let error = prepare(&mechanism, &log(&names, &columns), &named).unwrap_err().to_string();
    assert!(error.contains("tau3: 1000 of 1000 values are missing"), "{error}");
    columns[4].fill(f64::NAN);
    columns[5].fill(f64::NAN);
    let error = prepare(&mechanism, &log(&names, &columns), &options).unwrap_err().to_string();
    assert!(error.contains("tau1: 1000 of 1000 values are missing"), "{error}");
    let optional = options.with(|o| o.torques = Requirement::Optional);
    assert!(prepare(&mechanism, &log(&names, &columns), &optional).is_ok());
    // Positions have no substitute.
    columns[1].fill(f64::NAN);
    let error = prepare(&mechanism, &log(&names, &columns), &optional).unwrap_err().to_string();
    assert!(error.contains("q1: 1000 of 1000 values are missing"), "{error}");
}
