//! Reasons of null vectors where not every force is measured.

#![allow(clippy::unwrap_used)]

use crate::common::{Rng, reference_regressor};
use inertial::identifiability::{AnalyzeOptions, Measured, analyze};
use inertial::linalg::Svd;
use inertial::mechanism::{BuildOptions, Mechanism, builtin};
use nalgebra::DMatrix;

fn model(name: &str) -> Mechanism {
    builtin::get(name).unwrap().build(&BuildOptions::default()).unwrap()
}

/// Returns rows of the regressor at random states.
fn regressors(m: &Mechanism, count: usize) -> Vec<DMatrix<f64>> {
    let mut rng = Rng(9);
    let mut state = || {
        let q = rng.positions(m);
        let (v, a) = (rng.values(m.nv(), 2.0), rng.values(m.nv(), 5.0));
        reference_regressor(m, &q, &v, &a)
    };
    (0..count).map(|_| state()).collect()
}

/// Null vectors of single torque sensors were all "found by computation". Transfers change no force; the others change some force, but
/// none that is measured.
#[test]
fn null_vectors_of_few_sensors_have_reasons() {
    for (name, sensors) in [
        ("puma560", vec!["joint1"]),
        ("puma560", vec!["joint6"]),
        ("puma560", vec!["joint2", "joint4"]),
        ("arm7", vec!["joint3"]),
        ("quadruped", vec![]),
    ] {
        let m = model(name);
        let names = m.parameter_names();
        // The base wrench of the quadruped alone determines everything; its joint torques do not.
        let measured = (name == "quadruped").then_some(Measured::JointTorques);
        let torque_joints = (!sensors.is_empty()).then(|| sensors.iter().map(|&s| s.into()).collect());
        let options = AnalyzeOptions::default().with(|o| {
            o.measured = measured;
            o.torque_joints = torque_joints;
        });
        let found = analyze(&m, &options).unwrap();
        let complete = analyze(&m, &AnalyzeOptions::default()).unwrap();
        let transfers = found.null_space.iter().filter(|v| v.reason.starts_with("transfer across joint "));
        assert_eq!(transfers.count(), complete.nullity, "{name} {sensors:?}");
        let regressors = regressors(&m, 20);
        let is_measured = |row: usize| match &options.torque_joints {
            Some(list) => m.joints().iter().any(|j| list.contains(&j.name) && j.v_range().contains(&row)),
            None => row >= 6,
        };
        let mut basis = DMatrix::zeros(names.len(), found.nullity);
        assert_eq!(found.null_space.len(), found.nullity, "{name} {sensors:?}");
        for (k, vector) in found.null_space.iter().enumerate() {
            for (parameter, x) in &vector.combination {
                basis[(names.iter().position(|n| n == parameter).unwrap(), k)] = *x;
            }
            let column = basis.column(k);
            let (mut seen, mut hidden) = (0.0_f64, 0.0_f64);
            for y in &regressors {
                let forces = y * column;
                for (row, force) in forces.iter().enumerate() {
                    let part = force.abs() / y.row(row).norm().max(1e-9) / column.norm();
                    let largest = if is_measured(row) { &mut seen } else { &mut hidden };
                    *largest = largest.max(part);
                }
            }
            // Rounding errors of the reference and of coefficients, for distances up to a metre.
            assert!(seen < 1e-11, "{name} {sensors:?} {vector:?} {seen:e}");
            match vector.reason.as_str() {
                "changes only forces that are not measured" => {
                    assert!(hidden > 1e-6, "{vector:?} {hidden:e}");
                }
                _ => assert!(hidden < 1e-11, "{name} {sensors:?} {vector:?} {hidden:e}"),
            }
        }
        basis.column_iter_mut().for_each(|mut c| c /= c.norm());
        let values = Svd::new(&basis).unwrap().values;
        assert!(values.iter().all(|s| *s > 1e-4), "{name} {sensors:?}: {values:?}");
    }
}
