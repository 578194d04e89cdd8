//! Inverse dynamics and the torque regressor against each other and against plain reference algorithms.

mod common;

use common::{Case, Features, assert_close, cases, reference_regressor, reference_rnea};
use inertial::Error;
use inertial::dynamics::InverseDynamics;

/// Rounding of a few hundred operations on well-scaled mechanisms of up to ten links.
const ROUNDING: f64 = 1e-11;

fn product(y: &[f64], p: &[f64]) -> Vec<f64> {
    y.chunks_exact(p.len()).map(|row| row.iter().zip(p).map(|(y, p)| y * p).sum()).collect()
}

#[test]
fn rnea_agrees_with_world_coordinates() {
    for case in cases(600, Features::ALL) {
        let Case { mechanism, q, v, a, .. } = &case;
        let dynamics = InverseDynamics::new(mechanism);
        let mut tau = vec![f64::NAN; mechanism.nv()];
        dynamics.rnea(&mut dynamics.scratch(), q, v, a, &mut tau).unwrap();
        assert_close(&tau, &reference_rnea(mechanism, q, v, a), ROUNDING, "rnea");
    }
}

#[test]
fn regressor_times_parameters_is_rnea() {
    for case in cases(600, Features::LINEAR) {
        let Case { mechanism, q, v, a, .. } = &case;
        let dynamics = InverseDynamics::new(mechanism);
        let mut scratch = dynamics.scratch();
        let mut tau = vec![f64::NAN; mechanism.nv()];
        dynamics.rnea(&mut scratch, q, v, a, &mut tau).unwrap();
        let y = dynamics.torque_regressor(&mut scratch, q, v, a).unwrap();
        assert_close(&product(y, &mechanism.parameters()), &tau, ROUNDING, "Y π");
        let reference = reference_regressor(mechanism, q, v, a).transpose();
        assert_close(y, reference.as_slice(), ROUNDING, "regressor");
    }
}

#[test]
fn wrong_sizes_are_refused() {
    let Some(case) = cases(1, Features::PLAIN).next() else { return };
    let Case { mechanism, q, v, a, .. } = &case;
    let dynamics = InverseDynamics::new(mechanism);
    let mut scratch = dynamics.scratch();
    let mut tau = vec![0.0; mechanism.nv() + 1];
    let error = dynamics.rnea(&mut scratch, q, v, a, &mut tau).unwrap_err();
    let (expected, found) = (mechanism.nv(), mechanism.nv() + 1);
    assert_eq!(error, Error::Dimension { what: "tau", expected, found });
    assert!(dynamics.torque_regressor(&mut scratch, &q[1..], v, a).is_err());
}
