//! Least-norm solution, compared with the pseudo-inverse of the regressor in all parameters.

#![allow(clippy::unwrap_used)]

use crate::common::logs::{FRICTION, Log, model, simulate};
use crate::common::{Rng, reference_regressor};
use inertial::estimation::{Equations, Estimator, IdentifyOptions, JointTerms, identify};
use inertial::linalg::Svd;
use inertial::mechanism::{DEFAULT_SNAP, Mechanism};
use nalgebra::{DMatrix, DVector};

/// Returns the parameters of the least-norm solution in all parameters and joint terms, computed from the samples alone.
fn pseudo_inverse(mechanism: &Mechanism, terms: JointTerms, log: &Log) -> Vec<f64> {
    let (nq, nv, np) = (mechanism.nq(), mechanism.nv(), mechanism.parameter_count());
    let each = if terms.viscous { 3 } else { 0 };
    let mut rows = DMatrix::zeros(log.count * nv, np + each * nv);
    for t in 0..log.count {
        let (q, v, a) =
            (&log.q[t * nq..(t + 1) * nq], &log.v[t * nv..(t + 1) * nv], &log.a[t * nv..(t + 1) * nv]);
        rows.view_mut((t * nv, 0), (nv, np)).copy_from(&reference_regressor(mechanism, q, v, a));
        for i in (0..nv).filter(|_| each > 0) {
            let own = [v[i], if v[i] == 0.0 { 0.0 } else { v[i].signum() }, 1.0];
            (0..3).for_each(|k| rows[(t * nv + i, np + 3 * i + k)] = own[k]);
        }
    }
    let svd = Svd::new(&rows).unwrap();
    svd.solve(&DVector::from_column_slice(&log.tau), svd.rank(1e-10).rank, 0.0).as_slice()[..np].to_vec()
}

fn least_norm(mechanism: &Mechanism, terms: JointTerms, log: &Log) -> Vec<f64> {
    let equations = Equations::new(mechanism, terms, DEFAULT_SNAP).unwrap();
    let options = IdentifyOptions::default().with(|o| {
        o.estimator = Estimator::Ols;
        o.least_norm = true;
    });
    let found = identify(&equations, &log.summary(&equations), None, &options).unwrap();
    // The residuals are those of the fit.
    assert!(found.fit_relative_rms < 0.2, "{}", found.fit_relative_rms);
    found.parameters
}

#[test]
fn ols_without_prior_is_the_pseudo_inverse() {
    let mut rng = Rng(4);
    let none = JointTerms::default().with(|t| {
        t.viscous = false;
        t.coulomb = false;
        t.offset = false;
        t.rotor_inertia = false;
    });
    for (name, terms) in [("planar-2r", FRICTION), ("puma560", none), ("scara", none), ("quadruped", none)] {
        let mechanism = model(name);
        let mut log = simulate(&mechanism, terms, 250, &mut rng);
        log.tau.iter_mut().for_each(|t| *t += rng.range(-0.1, 0.1));
        let expected = pseudo_inverse(&mechanism, terms, &log);
        let found = least_norm(&mechanism, terms, &log);
        let scale = expected.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        for (x, y) in expected.iter().zip(&found) {
            assert!((x - y).abs() < 1e-8 * scale, "{name}: {x} {y}");
        }
    }
}

/// A robot at rest excites gravity terms only: unknowns that the motion does not excite have least norm, too.
#[test]
fn unknowns_that_are_not_excited_have_least_norm() {
    let mut rng = Rng(5);
    let none = JointTerms::default().with(|t| {
        t.viscous = false;
        t.coulomb = false;
        t.offset = false;
        t.rotor_inertia = false;
    });
    let mechanism = model("puma560");
    let mut log = simulate(&mechanism, none, 200, &mut rng);
    log.v.fill(0.0);
    log.a.fill(0.0);
    let (nq, nv) = (mechanism.nq(), mechanism.nv());
    for t in 0..log.count {
        let rest = vec![0.0; nv];
        let tau = crate::common::reference_rnea(&mechanism, &log.q[t * nq..(t + 1) * nq], &rest, &rest);
        log.tau[t * nv..(t + 1) * nv].copy_from_slice(&tau);
    }
    let expected = pseudo_inverse(&mechanism, none, &log);
    let found = least_norm(&mechanism, none, &log);
    let scale = expected.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    for (x, y) in expected.iter().zip(&found) {
        assert!((x - y).abs() < 1e-8 * scale, "{x} {y}");
    }
}
