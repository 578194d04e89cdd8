//! Single bodies behind a sensor, payloads from torques, and the online filter, compared with known parameters.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common;
use crate::common::{Rng, reference_rnea};
use crate::payload_from_torques::{TERMS, loaded};
use inertial::consistency::{DEFAULT_TOLERANCE, check_inertia};
use inertial::dynamics::{InverseDynamics, Samples, Workspace, base_wrench, forward_kinematics};
use inertial::estimation::{
    Equations, Estimator, IdentifyOptions, LeastSquares, Measurements, Online, SensorMotion, SingleBody,
    Solver, Summary, Weighting, Wrenches, identify, measured_prior,
};
use inertial::mechanism::{BuildOptions, DEFAULT_SNAP, Mechanism, builtin};
use inertial::spatial::{Inertia, PseudoInertia};
use nalgebra::{DMatrix, DVector, Matrix3, Vector3};

pub fn normal(rng: &mut Rng) -> f64 {
    // Box-Muller transform.
    let (u, w) = (rng.range(1e-300, 1.0), rng.range(0.0, std::f64::consts::TAU));
    (-2.0 * u.ln()).sqrt() * w.cos()
}

/// Simulates a random motion of a sensor and the wrench of a body on it by the Newton-Euler equations.
fn sensor_log(body: &Inertia<f64>, count: usize, rng: &mut Rng) -> (SensorMotion, Vec<f64>) {
    let (mut acc, mut gyro, mut alpha, mut wrench) = (vec![], vec![], vec![], vec![]);
    let com = body.com().unwrap();
    for _ in 0..count {
        let (d, w, dw) = (rng.vector(15.0), rng.vector(3.0), rng.vector(10.0));
        // The force accelerates the centre of mass; the moment is computed about it, then about the origin.
        let force = (d + dw.cross(&com) + w.cross(&w.cross(&com))) * body.mass;
        let about = body.about_com();
        let moment = about * dw + w.cross(&(about * w)) + com.cross(&force);
        acc.extend(d.iter());
        gyro.extend(w.iter());
        alpha.extend(dw.iter());
        wrench.extend(force.iter().chain(moment.iter()));
    }
    (SensorMotion::from_imu(acc, gyro, alpha).unwrap(), wrench)
}

/// Every estimator of a payload; the consistent one with two solvers.
pub const ESTIMATORS: [(Estimator, Solver); 4] = [
    (Estimator::Ols, Solver::Barrier),
    (Estimator::Wls, Solver::Barrier),
    (Estimator::Consistent, Solver::Barrier),
    (Estimator::Consistent, Solver::Manifold),
];

/// Returns whether the estimator is least squares without constraints.
pub fn plain(estimator: Estimator) -> bool {
    matches!(estimator, Estimator::Ols | Estimator::Wls)
}

const OFFSET: [f64; 6] = [4.0, -1.0, 2.5, 0.3, -0.2, 0.1];

fn with_offset(wrench: &[f64]) -> Vec<f64> {
    wrench.iter().enumerate().map(|(i, x)| x + OFFSET[i % 6]).collect()
}

#[test]
fn a_single_body_is_returned_exactly_with_its_offsets() {
    let mut rng = Rng(11);
    let single = SingleBody::new("bench", "tool").unwrap();
    let equations = single.equations().unwrap();
    assert_eq!((equations.rank(), equations.len()), (10, 16));
    for _ in 0..20 {
        let truth = rng.inertia();
        let (motion, wrench) = sensor_log(&truth, 60, &mut rng);
        for sign in [1.0, -1.0] {
            // Some sensors report the wrench on themselves.
            let readings: Vec<f64> = with_offset(&wrench).iter().map(|x| sign * x).collect();
            let summary = single.summary(&equations, &motion, &Wrenches::new(&readings)).unwrap();
            for (estimator, solver) in ESTIMATORS {
                let options = IdentifyOptions::default().with(|o| {
                    o.estimator = estimator;
                    o.solver = solver;
                });
                let found = single.identify(&equations, &summary, None, &options).unwrap();
                let scale = truth.parameters().amax();
                // The conic solver uses squared factors and assumes a noise of at least a millionth of the forces.
                let tolerance = if plain(estimator) { 1e-9 } else { 1e-6 };
                for (x, y) in truth.parameters().iter().zip(&found.parameters) {
                    assert!((x - y).abs() < tolerance * scale, "{estimator:?}: {x} {y}");
                }
                for (joint, offset) in found.joints.iter().zip(OFFSET) {
                    assert!(
                        (joint.offset.unwrap() - sign * offset).abs() < 100.0 * tolerance,
                        "{estimator:?}"
                    );
                }
                assert_eq!(found.joints[3].name, "ft.tx");
                assert_eq!(found.fit[5].joint, "ft.tz");
                assert_eq!((found.rank, found.excited), (10, 10));
                assert_eq!(found.warnings.has("wrench-negated"), sign < 0.0);
            }
        }
    }
}

#[test]
fn a_sensor_on_an_arm_measures_the_wrench_of_the_ground() {
    let mut rng = Rng(12);
    let arm = builtin::get("puma560").unwrap().build(&BuildOptions::default()).unwrap();
    let payload = rng.inertia();
    // A robot whose last link is the payload and whose other links are massless: the ground carries the payload alone.
    let mut parameters = vec![0.0; arm.parameter_count()];
    let at = parameters.len() - 10;
    parameters[at..].copy_from_slice(payload.parameters().as_slice());
    let light = arm.clone().with_parameters(&parameters).unwrap();
    let (mut q, mut v, mut a, mut wrench) = (vec![], vec![], vec![], vec![]);
    let mut workspace = Workspace::new(&light);
    for _ in 0..80 {
        let state = (rng.positions(&arm), rng.values(6, 2.0), rng.values(6, 5.0));
        let on_ground = base_wrench(&light, &mut workspace, &state.0, &state.1, &state.2).unwrap();
        forward_kinematics(&light, &mut workspace, &state.0).unwrap();
        let here = workspace.poses()[5].pull_force(&on_ground);
        wrench.extend(here.linear.iter().chain(here.angular.iter()));
        q.extend(state.0);
        v.extend(state.1);
        a.extend(state.2);
    }
    let motion = SensorMotion::from_joints(&arm, "link6", &q, &v, &a).unwrap();
    let single = SingleBody::new("puma560", "tool").unwrap();
    let equations = single.equations().unwrap();
    let summary = single.summary(&equations, &motion, &Wrenches::new(&with_offset(&wrench))).unwrap();
    let options = IdentifyOptions::default().with(|o| o.estimator = Estimator::Wls);
    let found = single.identify(&equations, &summary, None, &options).unwrap();
    let scale = payload.parameters().amax();
    for (x, y) in payload.parameters().iter().zip(&found.parameters) {
        assert!((x - y).abs() < 1e-9 * scale, "{x} {y}");
    }
    let error = SensorMotion::from_joints(&arm, "link66", &q, &v, &a).unwrap_err().to_string();
    assert!(error.contains("no link link66; the nearest is link6"), "{error}");
    assert!(SensorMotion::from_joints(&arm, "link6", &q, &v[1..], &a).is_err());
}

#[test]
#[ignore = "long: repeated experiments"]
fn errors_of_a_single_body_are_as_large_as_stated() {
    const DRAWS: usize = 200;
    let mut rng = Rng(13);
    let single = SingleBody::new("bench", "tool").unwrap();
    let equations = single.equations().unwrap();
    let truth = rng.inertia();
    let (motion, clean) = sensor_log(&truth, 200, &mut rng);
    let noise = [0.5, 0.5, 0.8, 0.02, 0.02, 0.01];
    let expected = DVector::from_iterator(16, truth.parameters().iter().copied().chain(OFFSET));
    let (mut chi, mut sums) = (0.0, DVector::zeros(16));
    for _ in 0..DRAWS {
        let readings: Vec<f64> = with_offset(&clean)
            .iter()
            .enumerate()
            .map(|(i, x)| x + noise[i % 6] * normal(&mut rng))
            .collect();
        let summary = single.summary(&equations, &motion, &Wrenches::new(&readings)).unwrap();
        let found = LeastSquares::new(&equations, &summary, Weighting::Weighted).unwrap();
        let error = &found.values - &expected;
        chi += error.dot(&found.covariance.clone().cholesky().unwrap().solve(&error));
        sums += error.component_div(&DVector::from_vec(found.std_errors()));
        let options = IdentifyOptions::default();
        let possible = single.identify(&equations, &summary, None, &options).unwrap();
        assert!(possible.bodies[0].consistent);
    }
    // Chi-square with 3200 degrees of freedom, approximately normal: outside 4.9 deviations once in a million. Estimating the
    // noise from 200 samples each widens the squares by about 1 + 2/200, half a deviation here.
    let freedom = (DRAWS * 16) as f64;
    let deviation = (chi - freedom) / (2.0 * freedom).sqrt();
    assert!(deviation.abs() < 4.9, "{deviation}");
    // The means are zero: beyond 5.5 once in 2.6e7, times sixteen.
    assert!(sums.amax() / (DRAWS as f64).sqrt() < 5.5, "{sums}");
}

#[test]
fn logs_at_rest_or_too_short_are_reported() {
    let mut rng = Rng(14);
    let single = SingleBody::new("bench", "tool").unwrap();
    let equations = single.equations().unwrap();
    let truth = rng.inertia();
    let com = truth.com().unwrap();
    let (mut acc, mut wrench) = (vec![], vec![]);
    for _ in 0..50 {
        let up = Vector3::from(rng.unit::<3>()) * 9.81;
        let force = up * truth.mass;
        acc.extend(up.iter());
        wrench.extend(force.iter().chain(com.cross(&force).iter()).map(|x| x + 0.01 * normal(&mut rng)));
    }
    let still = vec![0.0; acc.len()];
    let motion = SensorMotion::from_imu(acc.clone(), still.clone(), still.clone()).unwrap();
    let summary = single.summary(&equations, &motion, &Wrenches::new(&with_offset(&wrench))).unwrap();
    let found = single.identify(&equations, &summary, None, &IdentifyOptions::default()).unwrap();
    assert_eq!((found.rank, found.excited), (10, 4));
    assert!(found.warnings.has("not-excited"), "{:?}", found.warnings);
    assert!((found.bodies[0].mass - truth.mass).abs() < 0.01 * truth.mass && found.bodies[0].consistent);
    // Inertias that are not excited are those of a ball of water: of a plausible order of magnitude, not of rounding errors.
    let ball = 0.4 * truth.mass * (0.75 * truth.mass / (std::f64::consts::PI * 1000.0)).powf(2.0 / 3.0);
    assert!((found.bodies[0].inertia.ixx / ball - 1.0).abs() < 0.1, "{:?} {ball}", found.bodies[0].inertia);

    let few = SensorMotion::from_imu(acc[..6].to_vec(), vec![0.0; 6], vec![0.0; 6]).unwrap();
    let short = single.summary(&equations, &few, &Wrenches::new(&wrench[..12])).unwrap();
    let error =
        single.identify(&equations, &short, None, &IdentifyOptions::default()).unwrap_err().to_string();
    assert!(error.contains("12 usable forces are fewer than the 16 unknowns"), "{error}");
    assert!(SensorMotion::from_imu(acc, still.clone(), vec![0.0]).is_err());
    assert!(single.summary(&equations, &motion, &Wrenches::new(&wrench[1..])).is_err());
}

/// Log of a robot in random states; a payload is part of the mechanism.
pub struct Logs {
    pub q: Vec<f64>,
    pub v: Vec<f64>,
    pub a: Vec<f64>,
    pub tau: Vec<f64>,
    pub count: usize,
}

pub fn robot_log(robot: &Mechanism, count: usize, noise: f64, rng: &mut Rng) -> Logs {
    let nv = robot.nv();
    let mut log = Logs { q: vec![], v: vec![], a: vec![], tau: vec![], count };
    for _ in 0..count {
        let (q, v, a) = (rng.positions(robot), rng.values(nv, 2.0), rng.values(nv, 5.0));
        let mut tau = reference_rnea(robot, &q, &v, &a);
        for i in 0..nv {
            tau[i] += 0.4 * v[i] + 0.7 * v[i].signum() + 0.3 * i as f64 + noise * normal(rng);
        }
        log.q.extend(q);
        log.v.extend(v);
        log.a.extend(a);
        log.tau.extend(tau);
    }
    log
}

impl Logs {
    fn with(
        &self,
        range: std::ops::Range<usize>,
        f: &mut impl FnMut(&Measurements<'_>),
        dynamics: &InverseDynamics,
    ) {
        let (nq, nv) = (dynamics.nq(), dynamics.nv());
        let rows = |x: &'_ [f64], n: usize| x[range.start * n..range.end * n].to_vec();
        let (q, v, a, tau) = (rows(&self.q, nq), rows(&self.v, nv), rows(&self.a, nv), rows(&self.tau, nv));
        let samples = Samples::new(dynamics, range.len(), &q, &v, &a).unwrap();
        f(&Measurements::new(samples, &tau));
    }

    pub fn summary(&self, equations: &Equations<'_>) -> Summary {
        let mut out = None;
        let dynamics = InverseDynamics::new(equations.mechanism());
        self.with(0..self.count, &mut |m| out = Some(Summary::new(equations, m).unwrap()), &dynamics);
        out.unwrap()
    }
}

#[test]
fn the_online_filter_without_forgetting_equals_the_batch() {
    let mut rng = Rng(17);
    let [robot, _] = loaded("puma560", &rng.inertia());
    let equations = Equations::new(&robot, TERMS, DEFAULT_SNAP).unwrap();
    let dynamics = InverseDynamics::new(&robot);
    let log = robot_log(&robot, 300, 0.3, &mut rng);
    let batch = log.summary(&equations);
    let mut online = Online::new(&equations, 1.0).unwrap();
    let mut start = 0;
    while start < log.count {
        let end = log.count.min(start + 1 + rng.below(9));
        log.with(start..end, &mut |m| online.update(m).unwrap(), &dynamics);
        start = end;
        if online.samples() > 100 && rng.chance(0.1) {
            let now = identify(&equations, &online.summary(), None, &IdentifyOptions::default()).unwrap();
            assert!(now.bodies.iter().all(|b| b.consistent));
        }
    }
    let (a, b) = (
        LeastSquares::new(&equations, &online.summary(), Weighting::Weighted).unwrap(),
        // The online filter has no blocks.
        LeastSquares::new(&equations, &batch.without_blocks(), Weighting::Weighted).unwrap(),
    );
    assert!((&a.values - &b.values).amax() < 1e-9 * b.values.amax());
    for (x, y) in a.std_errors().iter().zip(b.std_errors()) {
        assert!((x - y).abs() < 1e-9 * y);
    }
    assert!(Online::new(&equations, 0.0).is_err() && Online::new(&equations, 1.1).is_err());
    // A refused block changes nothing.
    let before = online.summary();
    let mut bad = robot_log(&robot, 2, 0.0, &mut rng);
    bad.tau[3] = f64::NAN;
    bad.with(0..2, &mut |m| assert!(online.update(m).is_err()), &dynamics);
    assert_eq!(online.summary(), before);
}

#[test]
fn forgetting_weighs_old_samples_less_and_follows_a_change() {
    let mut rng = Rng(18);
    let payload = rng.inertia();
    let [robot, with] = loaded("planar-2r", &payload);
    let equations = Equations::new(&robot, TERMS, DEFAULT_SNAP).unwrap();
    let dynamics = InverseDynamics::new(&robot);
    let logs = [robot_log(&robot, 400, 0.2, &mut rng), robot_log(&with, 400, 0.2, &mut rng)];
    let keep: f64 = 0.98;
    let mut online = Online::new(&equations, keep).unwrap();
    for log in &logs {
        for k in 0..log.count {
            log.with(k..k + 1, &mut |m| online.update(m).unwrap(), &dynamics);
        }
    }
    let found = LeastSquares::new(&equations, &online.summary(), Weighting::Ordinary).unwrap();
    // The same estimate by weighted normal equations of the rows.
    let (n, nv) = (equations.len(), robot.nv());
    let (mut gram, mut rhs) = (DMatrix::zeros(n, n), DVector::zeros(n));
    for (age, (log, k)) in (0..800).rev().zip(logs.iter().flat_map(|l| (0..400).map(move |k| (l, k)))) {
        let (q, v, a) = (&log.q[k * nv..], &log.v[k * nv..], &log.a[k * nv..]);
        let y = common::reference_regressor(&robot, &q[..nv], &v[..nv], &a[..nv]);
        for i in 0..nv {
            let mut row = DVector::zeros(n);
            for (j, &column) in equations.regrouping.base.iter().enumerate() {
                row[j] = y[(i, column)];
            }
            for (j, &(c, _)) in equations.terms.iter().enumerate().filter(|(_, (c, _))| *c == i) {
                row[equations.rank() + j] = match equations.names[equations.rank() + j].rsplit('.').next() {
                    Some("viscous") => v[c],
                    Some("coulomb") => v[c].signum(),
                    _ => 1.0,
                };
            }
            let weight = keep.powi(age);
            gram += &row * row.transpose() * weight;
            rhs += row * (weight * log.tau[k * nv + i]);
        }
    }
    let expected = gram.cholesky().unwrap().solve(&rhs);
    // Normal equations square the condition number, which is some thousands here.
    assert!((&found.values - &expected).amax() < 1e-8 * expected.amax());
    // The 400 samples before the change have a weight of e⁻⁸: the estimate is that of the loaded robot, within its standard
    // errors.
    let truth = equations.regrouping.regroup(&with.parameters()).unwrap();
    let found = LeastSquares::new(&equations, &online.summary(), Weighting::Weighted).unwrap();
    for (k, x) in truth.iter().enumerate() {
        let z = (found.values[k] - x) / found.std_errors()[k];
        // Normal errors exceed 5.5 once in 2.6e7; the memory of 50 samples makes them Student-distributed, so the bound is 7.
        assert!(z.abs() < 7.0, "{}: {z}", equations.names[k]);
    }
    let now = identify(&equations, &online.summary(), None, &IdentifyOptions::default()).unwrap();
    assert!(now.bodies.iter().all(|b| b.consistent));
}

#[test]
fn the_measured_prior_is_a_body() {
    let mut rng = Rng(19);
    for _ in 0..50 {
        // Arbitrary least-squares results, including implausible ones.
        let values = std::array::from_fn(|_| rng.range(-2.0, 2.0));
        let errors = std::array::from_fn(|_| rng.range(0.0, 2.0));
        let prior = measured_prior(&values, &errors);
        assert!(check_inertia(&prior, DEFAULT_TOLERANCE).unwrap().is_consistent());
        assert!(PseudoInertia::from(&prior).0.cholesky().is_some());
    }
}

/// The prior has the size of the measured body where the data show it, and the size of a ball of average density elsewhere.
#[test]
fn the_measured_prior_has_the_size_of_the_measured_body() {
    // Homogeneous plate: the second moment along an edge of length a is m a²/12.
    let (mass, edges, centre) = (0.6, Vector3::new(0.30, 0.24, 0.003), Vector3::new(0.02, -0.01, 0.05));
    let moments = edges.map(|a| mass * a * a / 12.0);
    let central = Matrix3::from_diagonal(&moments.map(|x| moments.sum() - x));
    let values: [f64; 10] = Inertia::from_com(mass, centre, central).parameters().into();
    // Second moment of the prior along each axis, from its inertia about the centre of mass.
    let moment = |errors: [f64; 10]| {
        let prior = measured_prior(&values, &errors);
        let central = prior.about_com();
        assert!((prior.com().unwrap() - centre).norm() < 1e-12);
        central.trace() / 6.0
    };
    let small = values.map(|x| 1e-3 * x.abs());
    assert!((moment(small) / (moments.sum() / 3.0) - 1.0).abs() < 1e-12);
    // Inertias that the data do not show: ball of water, with the second moment m r²/5.
    let mut unknown = small;
    unknown[4..].fill(1.0);
    let ball = mass * (0.75 * mass / (std::f64::consts::PI * 1000.0)).powf(2.0 / 3.0) / 5.0;
    // The uncertainty of the centre adds the square of 0.1 % of its distance.
    assert!((moment(unknown) / ball - 1.0).abs() < 1e-4);
}
