//! Estimates from poorly exciting logs: joints at rest, slow motions, few samples.

#![allow(clippy::unwrap_used)]

use crate::common::logs::{Log, model, normal, true_values, truth_of};
use crate::common::{Rng, reference_rnea};
use inertial::dynamics::{InverseDynamics, Samples};
use inertial::estimation::{
    Equations, Identification, IdentifyOptions, JointTerms, Measurements, Summary, Term, identify,
};
use inertial::mechanism::{DEFAULT_SNAP, Mechanism};

const TERMS: JointTerms = {
    let mut terms = JointTerms::friction();
    terms.offset = true;
    terms
};

/// Simulates sums of sines, slowed down by the factor `slow`; `noise` is relative to the force of each joint.
fn log(arm: &Mechanism, count: usize, slow: f64, noise: f64, rng: &mut Rng) -> Log {
    let n = arm.nv();
    let mut out = Log { q: vec![], v: vec![], a: vec![], tau: vec![], count };
    let waves: Vec<[f64; 3]> =
        (0..3 * n).map(|_| [rng.range(0.2, 0.6), rng.range(0.5, 6.0) / slow, rng.range(0.0, 6.0)]).collect();
    for k in 0..count {
        let t = 10.0 * slow * k as f64 / count as f64;
        let (mut q, mut v, mut a) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        for (j, [size, w, phase]) in waves.iter().enumerate() {
            let (sin, cos) = (w * t + phase).sin_cos();
            q[j % n] += size * sin;
            v[j % n] += size * w * cos;
            a[j % n] -= size * w * w * sin;
        }
        let mut tau = reference_rnea(arm, &q, &v, &a);
        for i in 0..n {
            tau[i] += truth_of(Term::Viscous, i) * v[i]
                + truth_of(Term::Coulomb, i) * v[i].signum()
                + truth_of(Term::Offset, i);
        }
        out.q.extend(q);
        out.v.extend(v);
        out.a.extend(a);
        out.tau.extend(tau);
    }
    let size =
        |i: usize| (out.tau.iter().skip(i).step_by(n).map(|x| x * x).sum::<f64>() / count as f64).sqrt();
    let sizes: Vec<f64> = (0..n).map(size).collect();
    out.tau.iter_mut().enumerate().for_each(|(k, t)| *t += noise * sizes[k % n] * normal(rng));
    out
}

fn found(equations: &Equations<'_>, log: &Log, independent: f64) -> Identification {
    let dynamics = InverseDynamics::new(equations.mechanism());
    let samples = Samples::new(&dynamics, log.count, &log.q, &log.v, &log.a).unwrap();
    let mut data = Measurements::new(samples, &log.tau);
    data.independent = independent;
    let summary = Summary::new(equations, &data).unwrap();
    identify(equations, &summary, None, &IdentifyOptions::default()).unwrap()
}

/// Returns the root mean square of errors divided by standard errors.
fn score(equations: &Equations<'_>, found: &Identification) -> f64 {
    let truth = true_values(equations);
    let base = found.base_parameters.iter().zip(&truth).map(|(b, x)| ((b.value - x) / b.std_error).powi(2));
    (base.sum::<f64>() / equations.rank() as f64).sqrt()
}

#[test]
fn terms_of_a_held_joint_are_not_rounding_errors() {
    let mut rng = Rng(71);
    let arm = model("puma560");
    let equations = Equations::new(&arm, TERMS, DEFAULT_SNAP).unwrap();
    for (held, shake) in [(2, 0.0), (3, 1e-13), (5, 1e-11), (4, 1e-8)] {
        let mut log = log(&arm, 800, 1.0, 1e-3, &mut rng);
        // A filtered constant: rounding errors, or the remaining noise of an encoder. The force is that of the joint at rest.
        for k in 0..log.count {
            let row = 6 * k..6 * k + 6;
            let i = 6 * k + held;
            (log.q[i], log.v[i], log.a[i]) = (0.3, 0.0, 0.0);
            let noise = log.tau[i] * 1e-3 * normal(&mut rng);
            let tau = reference_rnea(&arm, &log.q[row.clone()], &log.v[row.clone()], &log.a[row]);
            for j in 0..6 {
                let moves = f64::from(j != held);
                log.tau[6 * k + j] = tau[j]
                    + moves
                        * (truth_of(Term::Viscous, j) * log.v[6 * k + j]
                            + truth_of(Term::Coulomb, j) * log.v[6 * k + j].signum())
                    + truth_of(Term::Offset, j);
            }
            log.tau[i] += noise;
            (log.v[i], log.a[i]) = (shake * normal(&mut rng), 30.0 * shake * normal(&mut rng));
        }
        let out = found(&equations, &log, 1.0);
        let joint = &out.joints[held];
        // The width of the prior follows from the forces: it keeps the term within a few times that (below 100 N m s here).
        assert!(joint.viscous.unwrap() < 100.0, "{held} {shake}: {:?}", joint.viscous);
        let reported =
            out.unexcited.iter().any(|c| c.keys().any(|k| k.ends_with(&format!("{}.viscous", joint.name))));
        assert!(reported, "{held} {shake}: {:?}", out.unexcited);
        assert!(joint.std_errors["viscous"] > 1.0, "{:?}", joint.std_errors);
    }
}

#[test]
fn directions_excited_by_noise_alone_are_not_excited() {
    let mut rng = Rng(72);
    let arm = model("puma560");
    let equations = Equations::new(&arm, TERMS, DEFAULT_SNAP).unwrap();
    let mut all = log(&arm, 2000, 1.0, 1e-2, &mut rng);
    assert_eq!(found(&equations, &all, 1.0).excited, equations.rank());
    // Only the second joint moves; the others are at rest, or nearly.
    let mut shown = |rest: f64| {
        for k in 0..all.count {
            for j in (0..6).filter(|j| *j != 1) {
                let i = 6 * k + j;
                all.q[i] = 0.1 * j as f64 + 0.1 * rest * normal(&mut rng);
                (all.v[i], all.a[i]) = (rest * normal(&mut rng), 10.0 * rest * normal(&mut rng));
            }
            let row = 6 * k..6 * k + 6;
            let tau = reference_rnea(&arm, &all.q[row.clone()], &all.v[row.clone()], &all.a[row.clone()]);
            all.tau[row].iter_mut().zip(tau).for_each(|(t, x)| *t = x + 0.3 * normal(&mut rng));
        }
        let out = found(&equations, &all, 1.0);
        assert!(out.bodies.iter().all(|b| b.consistent));
        out.excited
    };
    let still = shown(0.0);
    assert!(still < equations.rank() && shown(1e-8) == still && shown(1e-10) == still, "{still}");
}

/// Standard errors hold for slow motions with few independent samples, in 24 draws of 36 base parameters each. The mean square of
/// as many standard normal numbers, even with only six independent ones per draw, exceeds two with a probability below 1e-9.
#[test]
fn standard_errors_hold_for_few_independent_samples() {
    let mut rng = Rng(73);
    let arm = model("puma560");
    let equations = Equations::new(&arm, TERMS, DEFAULT_SNAP).unwrap();
    let mut sum = 0.0;
    for _ in 0..24 {
        let log = log(&arm, 40, 8.0, 5e-3, &mut rng);
        let out = found(&equations, &log, 0.5);
        assert!(out.warnings.has("short-log"), "{:?}", out.warnings);
        sum += score(&equations, &out).powi(2);
        assert!(out.bodies.iter().all(|b| b.consistent && b.mass < 3.0 * 40.0));
    }
    assert!(sum / 24.0 < 2.0, "{}", sum / 24.0);
}
