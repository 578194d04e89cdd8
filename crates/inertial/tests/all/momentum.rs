//! Momentum model of free-flying robots: closed form, regressors, and estimates from noisy rates (paper 002).

#![allow(clippy::unwrap_used)]

use crate::common::{Rng, assert_close};
use inertial::dynamics::{Frame, Workspace, mass_matrix, momentum, momentum_regressor};
use inertial::estimation::momentum::{MomentumEquations, MomentumSamples, RateNoise};
use inertial::identifiability::momentum::MinimalParameters;
use inertial::identifiability::{AnalyzeOptions, Measured, analyze};
use inertial::linalg::rank;
use inertial::mechanism::{
    BuildOptions, JointSpec, JointType, LinkSpec, Mechanism, MechanismBuilder, builtin,
};
use inertial::spatial::Pose;
use nalgebra::{DMatrix, DVector, Matrix6, Vector6};

fn space_robot() -> Mechanism {
    builtin::get("space-dual-arm").unwrap().build(&BuildOptions::default()).unwrap()
}

/// Creates a floating base with `size` bodies attached to each other at random poses.
fn random_tree(rng: &mut Rng, size: usize, mut joint: impl FnMut(&mut Rng) -> JointType) -> Mechanism {
    let mut out = MechanismBuilder::new("tree", "space");
    out.gravity = nalgebra::Vector3::zeros();
    for k in 0..=size {
        let name = format!("link{k}");
        out.links.push(LinkSpec { name: name.clone(), inertia: Some(rng.inertia()), line: None });
        let (kind, parent, at) = match k {
            0 => (JointType::Floating, "space".to_owned(), Pose::identity()),
            _ => (joint(rng), format!("link{}", rng.below(k)), rng.pose()),
        };
        out.joints.push(JointSpec::new(format!("joint{k}"), kind, parent, &name).at(at));
    }
    out.build(&BuildOptions::default()).unwrap()
}

fn measured_momentum() -> AnalyzeOptions {
    AnalyzeOptions::default().with(|o| o.measured = Some(Measured::Momentum))
}

/// Returns the stacked regressors of `count` random states.
fn stacked(robot: &Mechanism, rng: &mut Rng, count: usize, frame: Frame) -> DMatrix<f64> {
    let np = robot.parameter_count();
    let mut out = DMatrix::zeros(6 * count, np);
    let (mut workspace, mut k) = (Workspace::new(robot), vec![0.0; 6 * np]);
    for t in 0..count {
        let (q, v) = (rng.positions(robot), rng.values(robot.nv(), 1.0));
        momentum_regressor(robot, &mut workspace, &q, &v, frame, &mut k).unwrap();
        out.rows_mut(6 * t, 6).copy_from(&DMatrix::from_row_slice(6, np, &k));
    }
    out
}

/// Reads the published figures.
fn golden() -> serde_json::Value {
    let path = crate::common::data::golden("space/dual_arm_12dof.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn minimal_parameters_of_the_published_robot() {
    let golden = golden();
    let robot = space_robot();
    let minimal = MinimalParameters::new(&robot).unwrap();
    let values = minimal.values(&robot.parameters()).unwrap();
    let table = golden["table4"].as_array().unwrap();
    assert_eq!((values.len(), table.len()), (52, 52));
    for (row, value) in table.iter().zip(&values) {
        // The table prints three digits after the decimal point.
        if let Some(printed) = row["true_printed"].as_f64() {
            assert!((value - printed).abs() <= 5.01e-4, "{}: {value} for {printed}", row["leading"]);
        }
        let computed = row["true_computed"].as_f64().unwrap();
        assert!((value - computed).abs() <= 1e-9 * computed.abs().max(1.0), "{}", row["leading"]);
    }
    let answer = analyze(&robot, &measured_momentum()).unwrap();
    assert_eq!((answer.rank, answer.method, answer.certificate.exact), (52, "rpna", true));
    assert_eq!(rank(&stacked(&robot, &mut Rng(1), 40, Frame::Base), 1e-10).unwrap().rank, 52);
}

#[test]
fn closed_form_is_the_recursions_regrouping() {
    let mut rng = Rng(2);
    for case in 0..12 {
        let size = 1 + case % 6;
        let robot = random_tree(&mut rng, size, |r| JointType::Revolute { axis: r.axis() });
        let minimal = MinimalParameters::new(&robot).unwrap();
        assert_eq!(minimal.len(), 10 + 7 * size);
        let answer = analyze(&robot, &measured_momentum()).unwrap();
        // A hinge collinear with another one would have fewer parameters; random hinges are not collinear.
        assert_eq!((answer.rank, answer.certificate.exact), (10 + 7 * size, true), "case {case}");
        // The minimal parameters give the full momentum in both frames.
        for frame in [Frame::Base, Frame::World] {
            let k = stacked(&robot, &mut rng, 4 * (size + 1), frame);
            let again = &k * &minimal.columns * &minimal.regroup;
            assert_close(again.as_slice(), k.as_slice(), 1e-12, "K");
            assert_eq!(rank(&(&k * &minimal.columns), 1e-10).unwrap().rank, minimal.len());
        }
        // Minimal parameters span the identifiable combinations: both maps have the same row space.
        let identity = &minimal.regroup * &minimal.columns;
        let one = DMatrix::<f64>::identity(minimal.len(), minimal.len());
        assert_close(identity.as_slice(), one.as_slice(), 1e-12, "regroup ∘ columns");
        let mut both = DMatrix::zeros(2 * minimal.len(), robot.parameter_count());
        both.rows_mut(0, minimal.len()).copy_from(&minimal.regroup);
        for (i, combination) in answer.regrouping.combinations.iter().enumerate() {
            combination.iter().for_each(|&(c, x)| both[(minimal.len() + i, c)] = x);
        }
        assert_eq!(rank(&both, 1e-10).unwrap().rank, minimal.len());
    }
}

#[test]
fn the_recursion_answers_for_every_joint() {
    let mut rng = Rng(3);
    for case in 0..12 {
        let robot = random_tree(&mut rng, 1 + case % 4, Rng::joint);
        let answer = analyze(&robot, &measured_momentum()).unwrap();
        assert!(answer.certificate.exact, "case {case}: {:?}", answer.certificate);
        assert_eq!(answer.method, "rpna");
        let count = robot.parameter_count();
        let found = rank(&stacked(&robot, &mut rng, count, Frame::Base), 1e-10).unwrap();
        assert_eq!(found.rank, answer.rank, "case {case}");
    }
    let error = MinimalParameters::new(&random_tree(&mut rng, 1, |_| JointType::Spherical)).unwrap_err();
    assert!(error.to_string().contains("joint1"), "{error}");
}

#[test]
fn frames_agree_and_wheels_are_known_momentum() {
    let mut rng = Rng(4);
    let robot = space_robot();
    let np = robot.parameter_count();
    let parameters = DVector::from_vec(robot.parameters());
    let mut workspace = Workspace::new(&robot);
    for _ in 0..5 {
        let (q, v) = (rng.positions(&robot), rng.values(robot.nv(), 1.0));
        let mut k = [vec![0.0; 6 * np], vec![0.0; 6 * np]];
        for (k, frame) in k.iter_mut().zip([Frame::Base, Frame::World]) {
            momentum_regressor(&robot, &mut workspace, &q, &v, frame, k).unwrap();
        }
        let [base, world] = k.map(|k| DMatrix::from_row_slice(6, np, &k));
        // Angular momentum in the world frame is about the world origin: it has the additional term r × p, in world axes.
        let pose = robot.bodies()[0].joint_type.pose(&q[..7]);
        let mut map = Matrix6::zeros();
        map.fixed_view_mut::<3, 3>(0, 0).copy_from(&pose.rotation);
        map.fixed_view_mut::<3, 3>(3, 3).copy_from(&pose.rotation);
        let lever = inertial::spatial::skew(&pose.translation) * pose.rotation;
        map.fixed_view_mut::<3, 3>(3, 0).copy_from(&lever);
        assert_close((map * base.clone()).as_slice(), world.as_slice(), 1e-12, "frames");
        // Both regressors give the momentum, which also equals the base rows of the mass matrix times the rates.
        let total = momentum(&robot, &mut workspace, &q, &v, Frame::Base).unwrap();
        let expected: Vec<f64> = total.linear.iter().chain(&total.angular).copied().collect();
        assert_close((&base * &parameters).as_slice(), &expected, 1e-12, "K φ");
        let mut mass = vec![0.0; robot.nv() * robot.nv()];
        mass_matrix(&robot, &mut workspace, &q, &mut mass).unwrap();
        let a = DMatrix::from_row_slice(robot.nv(), robot.nv(), &mass);
        assert_close((a.rows(0, 6) * DVector::from_vec(v)).as_slice(), &expected, 1e-12, "A ν");
    }
}

/// Rates and momenta of a robot whose joints and momentum vary smoothly; the base follows from the momentum.
struct Data {
    q: Vec<f64>,
    v: Vec<f64>,
    momentum: Vec<f64>,
}

impl Data {
    fn new(robot: &Mechanism, rng: &mut Rng, count: usize, linear: f64) -> Self {
        let (nq, nv) = (robot.nq(), robot.nv());
        let mut out = Self { q: vec![0.0; count * nq], v: vec![0.0; count * nv], momentum: Vec::new() };
        let mut workspace = Workspace::new(robot);
        let mut mass = vec![0.0; nv * nv];
        for t in 0..count {
            let q = &mut out.q[t * nq..(t + 1) * nq];
            q.copy_from_slice(&rng.positions(robot));
            mass_matrix(robot, &mut workspace, q, &mut mass).unwrap();
            let a = DMatrix::from_row_slice(nv, nv, &mass);
            let joints = DVector::from_vec(rng.values(nv - 6, 0.1));
            let m = Vector6::from_fn(|r, _| rng.range(-1.0, 1.0) * if r < 3 { linear } else { 20.0 });
            let base = a.view((0, 0), (6, 6)).into_owned();
            let right = m - a.view((0, 6), (6, nv - 6)) * &joints;
            let twist = inertial::linalg::Cholesky::new(&base)
                .unwrap()
                .solve(&DVector::from_column_slice(right.as_slice()))
                .unwrap();
            out.v[t * nv..t * nv + 6].copy_from_slice(twist.as_slice());
            out.v[t * nv + 6..(t + 1) * nv].copy_from_slice(joints.as_slice());
            out.momentum.extend_from_slice(m.as_slice());
        }
        out
    }

    fn samples<'a>(&'a self, v: &'a [f64]) -> MomentumSamples<'a> {
        MomentumSamples { q: &self.q, v, momentum: &self.momentum }
    }

    fn noisy(&self, noise: &RateNoise, rng: &mut Rng) -> Vec<f64> {
        let nv = noise.rates.len();
        self.v.iter().enumerate().map(|(i, v)| v + noise.rates[i % nv] * normal(rng)).collect()
    }
}

/// Returns a normal random number by the Box-Muller transform.
fn normal(rng: &mut Rng) -> f64 {
    let (u, w) = (rng.range(0.0, 1.0), rng.range(0.0, 1.0));
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * w).cos()
}

#[test]
fn estimates_are_exact_without_noise() {
    let mut rng = Rng(5);
    let other = random_tree(&mut rng, 3, Rng::joint);
    // With and without a known linear momentum.
    for (robot, linear) in [(space_robot(), 0.0), (space_robot(), 30.0), (other, 1.0)] {
        let data = Data::new(&robot, &mut rng, 80, linear);
        let equations = MomentumEquations::new(&robot, 1e-4).unwrap();
        let truth = equations.regrouping.regroup(&robot.parameters()).unwrap();
        let samples = data.samples(&data.v);
        // The noise is so small that its compensation is below the asserted tolerance.
        let noise = RateNoise::new(&robot, 1e-9, 1e-9, 1e-9);
        for fit in [
            equations.least_squares(&samples, None).unwrap(),
            equations.bias_compensated(&samples, &noise).unwrap(),
            equations.errors_in_variables(&samples, &RateNoise::new(&robot, 5e-5, 8e-5, 5e-5)).unwrap(),
        ] {
            assert_eq!(fit.excited, equations.len());
            for ((found, expected), name) in fit.values.iter().zip(&truth).zip(&equations.names) {
                let error = (found - expected).abs() / expected.abs().max(1e-2);
                assert!(error < 1e-8, "{name}: {found} for {expected}");
            }
        }
    }
}

#[test]
#[ignore = "long: repeated experiments"]
fn standard_errors_are_those_of_repeated_experiments() {
    let mut rng = Rng(6);
    let robot = space_robot();
    let data = Data::new(&robot, &mut rng, 100, 0.0);
    let equations = MomentumEquations::new(&robot, 1e-4).unwrap();
    let truth = equations.regrouping.regroup(&robot.parameters()).unwrap();
    let noise = RateNoise::new(&robot, 3e-4, 4e-4, 3e-4);
    let (draws, n) = (30, equations.len() as f64);
    let (mut squares, mut chi, mut plain, mut ours, mut compensated) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for _ in 0..draws {
        let v = data.noisy(&noise, &mut rng);
        let samples = data.samples(&v);
        let fit = equations.errors_in_variables(&samples, &noise).unwrap();
        assert!(fit.status.is_converged());
        let errors = fit.std_errors();
        let score = |values: &DVector<f64>| -> f64 {
            let scaled = values.iter().zip(&truth).zip(&errors).map(|((x, y), s)| ((x - y) / s).powi(2));
            scaled.sum::<f64>() / n
        };
        let off = DVector::from_iterator(truth.len(), fit.values.iter().zip(&truth).map(|(x, y)| x - y));
        squares +=
            off.dot(&inertial::linalg::Cholesky::new(&fit.covariance).unwrap().solve(&off).unwrap()) / n;
        chi += fit.chi_squared.unwrap() / (6.0 * 100.0 - n);
        ours += score(&fit.values);
        plain += score(&equations.least_squares(&samples, None).unwrap().values);
        compensated += score(&equations.bias_compensated(&samples, &noise).unwrap().values);
    }
    let mean = |x: f64| x / f64::from(draws);
    // Mean of 30 × 52 squares of unit variance (standard deviation √(2/1560) = 0.036; the bound neglects terms of second order in
    // the noise), and of 30 × 548 residuals (0.011).
    assert!((mean(squares) - 1.0).abs() < 0.14, "error²/σ² {}", mean(squares));
    assert!((mean(chi) - 1.0).abs() < 0.04, "χ² {}", mean(chi));
    // Ignoring the noise gives much larger errors; bias compensation is nearly as good.
    assert!(mean(plain) > 4.0 * mean(ours), "least squares {} against {}", mean(plain), mean(ours));
    assert!(mean(compensated) < 1.3 * mean(ours), "{} against {}", mean(compensated), mean(ours));
}

#[test]
fn bad_samples_are_refused() {
    let mut rng = Rng(7);
    let robot = space_robot();
    let data = Data::new(&robot, &mut rng, 60, 0.0);
    let equations = MomentumEquations::new(&robot, 1e-4).unwrap();
    let samples = data.samples(&data.v);
    let says = |result: inertial::Result<inertial::estimation::momentum::MomentumFit>, words: &str| {
        let message = result.map(|_| ()).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    };
    let short = MomentumSamples { momentum: &data.momentum[..6], ..samples };
    says(equations.least_squares(&short, None), "positions");
    let none = RateNoise::new(&robot, 5e-5, 0.0, 0.0);
    says(equations.errors_in_variables(&samples, &none), "noise of the base's twist");
    let negative = RateNoise::new(&robot, -1.0, 1.0, 1.0);
    says(equations.errors_in_variables(&samples, &negative), "-1");
    let loud = RateNoise::new(&robot, 1.0, 1.0, 1.0);
    says(equations.bias_compensated(&samples, &loud), "larger than the motion");
    let mut broken = data.v.clone();
    broken[3] = f64::NAN;
    says(equations.least_squares(&data.samples(&broken), None), "not finite");
    let arm = builtin::get("puma560").unwrap().build(&BuildOptions::default()).unwrap();
    assert!(MomentumEquations::new(&arm, 1e-4).unwrap_err().to_string().contains("this one is fixed"));
}
