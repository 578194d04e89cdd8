//! Automatically selected joint terms, and standard errors with correlated residuals, on simulated logs with known parameters.

#![allow(clippy::unwrap_used)]

use crate::common::logs::{model, normal};
use crate::common::{Rng, reference_regressor, reference_rnea};
use inertial::dynamics::{InverseDynamics, Samples};
use inertial::estimation::{
    AutoTerms, BLOCKS, BlockPlan, Equations, Estimator, Identification, IdentifyOptions, JointModel,
    JointTerms, LeastSquares, Measurements, Summary, TermChoice, Verdict, Weighting, identify,
};
use inertial::mechanism::{DEFAULT_SNAP, Mechanism};
use nalgebra::{DMatrix, DVector};

/// Log of a motion along sums of sines, with the torques of the rigid bodies.
pub(crate) struct Log {
    pub q: Vec<f64>,
    pub v: Vec<f64>,
    pub a: Vec<f64>,
    pub tau: Vec<f64>,
    pub nv: usize,
}

impl Log {
    pub fn new(mechanism: &Mechanism, count: usize, rng: &mut Rng) -> Self {
        Self::of_size(mechanism, count, 1.0, rng)
    }

    /// Creates a log with the given time between samples.
    pub fn sampled(mechanism: &Mechanism, count: usize, step: f64, rng: &mut Rng) -> Self {
        Self::simulated(mechanism, count, 1.0, step, rng)
    }

    /// Creates a log whose amplitudes are `size` times the default ones.
    fn of_size(mechanism: &Mechanism, count: usize, size: f64, rng: &mut Rng) -> Self {
        Self::simulated(mechanism, count, size, 0.02, rng)
    }

    fn simulated(mechanism: &Mechanism, count: usize, size: f64, step: f64, rng: &mut Rng) -> Self {
        let nv = mechanism.nv();
        let waves: Vec<[f64; 3]> = (0..4 * nv)
            .map(|_| [size * rng.range(0.2, 0.6), rng.range(0.5, 4.0), rng.range(0.0, 6.0)])
            .collect();
        let mut out = Self { q: vec![], v: vec![], a: vec![], tau: vec![], nv };
        for k in 0..count {
            let t = step * k as f64;
            let of = |f: fn(f64, f64, f64, f64) -> f64| -> Vec<f64> {
                (0..nv)
                    .map(|j| waves[4 * j..4 * j + 4].iter().map(|w| f(w[0], w[1], w[2], t)).sum())
                    .collect()
            };
            let q = of(|a, w, p, t| a * (w * t + p).sin());
            let v = of(|a, w, p, t| a * w * (w * t + p).cos());
            let a = of(|a, w, p, t| -a * w * w * (w * t + p).sin());
            out.tau.extend(reference_rnea(mechanism, &q, &v, &a));
            out.q.extend(q);
            out.v.extend(v);
            out.a.extend(a);
        }
        out
    }

    pub fn len(&self) -> usize {
        self.tau.len() / self.nv
    }

    /// Adds the joint forces `joints(joint, velocity, acceleration)` to the torques.
    pub fn with(mut self, mut joints: impl FnMut(usize, f64, f64) -> f64) -> Self {
        for (k, tau) in self.tau.iter_mut().enumerate() {
            *tau += joints(k % self.nv, self.v[k], self.a[k]);
        }
        self
    }

    /// Adds noise with the given correlation between neighbouring samples.
    pub fn noisy(mut self, sigma: f64, correlation: f64, rng: &mut Rng) -> Self {
        for joint in 0..self.nv {
            let mut noise = sigma * normal(rng);
            for tau in self.tau.iter_mut().skip(joint).step_by(self.nv) {
                *tau += noise;
                noise = correlation * noise + (1.0 - correlation * correlation).sqrt() * sigma * normal(rng);
            }
        }
        self
    }

    pub fn measurements<'a>(
        &'a self,
        dynamics: &'a InverseDynamics,
        from: usize,
        to: usize,
    ) -> Measurements<'a> {
        let own = from * self.nv..to * self.nv;
        let samples = Samples::new(
            dynamics,
            to - from,
            &self.q[own.clone()],
            &self.v[own.clone()],
            &self.a[own.clone()],
        );
        Measurements::new(samples.unwrap(), &self.tau[own])
    }

    /// Returns the columns of the base parameters for all samples, computed in world coordinates.
    fn base_regressor(&self, equations: &Equations<'_>) -> DMatrix<f64> {
        let (n, base) = (self.nv, &equations.regrouping.base);
        let mut out = DMatrix::zeros(self.tau.len(), base.len());
        for k in 0..self.len() {
            let own = k * n..(k + 1) * n;
            let (q, v, a) = (&self.q[own.clone()], &self.v[own.clone()], &self.a[own]);
            out.rows_mut(k * n, n)
                .copy_from(&reference_regressor(equations.mechanism(), q, v, a).select_columns(base));
        }
        out
    }

    pub fn summary(&self, equations: &Equations<'_>) -> Summary {
        let dynamics = InverseDynamics::new(equations.mechanism());
        Summary::new(equations, &self.measurements(&dynamics, 0, self.len())).unwrap()
    }
}

pub(crate) fn automatic() -> JointModel {
    let terms = JointTerms::default().with(|t| {
        t.viscous = true;
        t.coulomb = true;
        t.offset = true;
        t.rotor_inertia = true;
    });
    let auto = AutoTerms::default().with(|t| {
        t.friction = true;
        t.offset = true;
        t.rotor_inertia = true;
    });
    JointModel::from(terms).with(|m| {
        m.stribeck = true;
        m.search_couplings = true;
        m.auto = auto;
    })
}

fn found(mechanism: &Mechanism, log: &Log) -> Identification {
    let equations = Equations::new(mechanism, automatic(), DEFAULT_SNAP).unwrap();
    identify(&equations, &log.summary(&equations), None, &IdentifyOptions::default()).unwrap()
}

/// Terms that the data need; undecided ones may be kept in addition.
fn chosen(result: &Identification) -> Vec<String> {
    result
        .terms
        .iter()
        .filter(|t| t.chosen && !t.is_undecided())
        .map(|t| format!("{}.{}", t.joint, t.term))
        .collect()
}

#[test]
fn no_terms_are_chosen_if_none_were_simulated() {
    for name in ["planar-2r", "puma560", "arm7"] {
        let mechanism = model(name);
        for seed in 0..3 {
            let mut rng = Rng(seed + 1);
            let log = Log::new(&mechanism, 1600, &mut rng).noisy(0.2, 0.8, &mut rng);
            let result = found(&mechanism, &log);
            assert_eq!(chosen(&result), Vec::<String>::new(), "{name} {seed}");
            assert!(!result.terms.is_empty());
        }
    }
}

#[test]
fn the_terms_that_were_simulated_are_chosen() {
    let mechanism = model("puma560");
    let mut rng = Rng(7);
    // Viscous friction of two joints, Coulomb friction of three, an offset of one.
    let joints = |j: usize, v: f64, _: f64| match j {
        0 => 3.0 * v + 4.0 * v.signum(),
        1 => 5.0 * v,
        3 => 2.0 * v.signum(),
        5 => 1.0 * v.signum() + 1.5,
        _ => 0.0,
    };
    let log = Log::new(&mechanism, 3200, &mut rng).with(joints).noisy(0.1, 0.5, &mut rng);
    let result = found(&mechanism, &log);
    let names = mechanism.velocity_names();
    let expected =
        [(0, "viscous"), (0, "coulomb"), (1, "viscous"), (3, "coulomb"), (5, "coulomb"), (5, "offset")];
    let mut expected: Vec<String> =
        expected.iter().map(|(j, term)| format!("{}.{term}", names[*j])).collect();
    let mut chosen = chosen(&result);
    expected.sort();
    chosen.sort();
    assert_eq!(chosen, expected);
    assert_eq!(result.verdict, Some(Verdict::Good), "{:?}", result.reasons);
}

/// Errors of base parameters from logs that are too short to decide which terms exist.
#[test]
fn standard_errors_of_short_logs_include_undecided_terms() {
    let mechanism = model("puma560");
    let equations = Equations::new(&mechanism, automatic(), DEFAULT_SNAP).unwrap();
    let truth = equations.regrouping.regroup(&mechanism.parameters()).unwrap();
    let mut pulls = Vec::new();
    for seed in 0..6 {
        let mut rng = Rng(seed + 20);
        let joints = |j: usize, v: f64, _: f64| {
            let size = 1.0 / (1.0 + j as f64);
            6.0 * size * v + 5.0 * size * v.signum() + if j.is_multiple_of(2) { 2.0 * size } else { 0.0 }
        };
        let log = Log::sampled(&mechanism, 150, 0.01, &mut rng).with(joints).noisy(0.1, 0.3, &mut rng);
        let result = found(&mechanism, &log);
        assert!(result.terms.iter().any(TermChoice::is_undecided), "{seed}");
        let base = result.base_parameters.iter().zip(&truth);
        pulls.extend(
            base.filter(|(p, _)| p.std_error > 0.0).map(|(p, truth)| (p.value - truth) / p.std_error),
        );
    }
    let rms = (pulls.iter().map(|p| p * p).sum::<f64>() / pulls.len() as f64).sqrt();
    let largest = pulls.iter().map(|p| p.abs()).fold(0.0, f64::max);
    // Over 200 values, a normal distribution has a largest one of about 3. Errors may be too large, but hardly too small.
    assert!(rms < 1.2 && largest < 5.0, "{rms} {largest}");
}

#[test]
fn friction_that_bends_and_rotors_are_chosen() {
    let mechanism = model("puma560");
    let mut rng = Rng(3);
    let joints = |j: usize, v: f64, a: f64| {
        let rotor = if j >= 2 { 0.5 * a } else { 0.0 };
        let bend = if j == 1 { 6.0 * v.signum() * (-(v.abs() / 0.3)).exp() } else { 0.0 };
        2.0 * v + 4.0 * v.signum() + bend + rotor
    };
    let log = Log::new(&mechanism, 3200, &mut rng).with(joints).noisy(0.05, 0.3, &mut rng);
    let chosen = chosen(&found(&mechanism, &log));
    let names = mechanism.velocity_names();
    let has = |j: usize, term: &str| chosen.contains(&format!("{}.{term}", names[j]));
    assert!((0..6).all(|j| has(j, "viscous") && has(j, "coulomb")), "{chosen:?}");
    assert!((2..6).all(|j| has(j, "rotor_inertia")), "{chosen:?}");
    assert!(has(1, "stribeck") && !(2..6).any(|j| has(j, "stribeck")), "{chosen:?}");
}

/// A large rotor inertia of a joint on the ground acts like an inertia of its link, which no physical link of this robot could have.
#[test]
fn a_rotor_on_the_ground_is_assumed_if_consistent_links_cannot_replace_it() {
    let mechanism = model("puma560");
    let equations = Equations::new(&mechanism, automatic(), DEFAULT_SNAP).unwrap();
    let truth = equations.regrouping.regroup(&mechanism.parameters()).unwrap();
    let mut rng = Rng(12);
    let joints = |j: usize, v: f64, a: f64| 2.0 * v + 4.0 * v.signum() + if j == 1 { 20.0 * a } else { 0.0 };
    let log = Log::new(&mechanism, 1600, &mut rng).with(joints).noisy(0.1, 0.5, &mut rng);
    let result = found(&mechanism, &log);
    assert_eq!(result.verdict, Some(Verdict::Good), "{:?}", result.reasons);
    assert!(result.joints[1].rotor_inertia.is_some_and(|x| x > 5.0), "{:?}", result.joints[1]);
    for (p, truth) in result.base_parameters.iter().zip(&truth) {
        // The base parameter is the sum of the inertias of link and rotor.
        let rotor = if p.name == "link2.Izz" { 20.0 } else { 0.0 };
        assert!((p.value - truth - rotor).abs() < 5.0 * p.std_error, "{p:?} {truth}");
    }
    // Without such a rotor none is assumed.
    let log = Log::new(&mechanism, 1600, &mut rng).with(|_, v, _| 2.0 * v).noisy(0.1, 0.5, &mut rng);
    let result = found(&mechanism, &log);
    assert!(result.joints.iter().all(|j| j.rotor_inertia.is_none()), "{:?}", result.joints);
}

/// In slow motion, torques of usual rotors are far below a tenth of the gravity torque. They counted as absent, and the base parameters that
/// contain those of joints on the ground were wrong by up to 49 stated errors.
#[test]
fn rotors_that_a_slow_motion_does_not_show_are_not_ruled_out() {
    let mechanism = model("puma560");
    let equations = Equations::new(&mechanism, automatic(), DEFAULT_SNAP).unwrap();
    let rotor = |j: usize| [3.0, 4.0, 1.5, 0.2, 0.2, 0.2][j];
    let truth = equations.regrouping.regroup(&mechanism.parameters()).unwrap();
    for seed in 0..3 {
        let mut rng = Rng(seed + 70);
        let joints = |j: usize, v: f64, a: f64| (v + 3.0 * v.signum()) / (1.0 + j as f64) + rotor(j) * a;
        let log = Log::of_size(&mechanism, 800, 0.1, &mut rng).with(joints).noisy(0.3, 0.5, &mut rng);
        let result = found(&mechanism, &log);
        for (p, truth) in result.base_parameters.iter().zip(&truth) {
            let on_ground = match p.name.as_str() {
                "link1.Izz" => rotor(0),
                "link2.Izz" => rotor(1),
                _ => 0.0,
            };
            assert!((p.value - truth - on_ground).abs() < 5.0 * p.std_error, "{seed} {p:?} {truth}");
        }
    }
}

/// Returns the principal directions of the unknowns: eigenvectors of the normal matrix with normalized columns, each scaled to
/// unit information.
fn principal_directions(regressor: &DMatrix<f64>) -> DMatrix<f64> {
    let sizes = DVector::from_fn(regressor.ncols(), |j, _| regressor.column(j).norm());
    let scaled = regressor * DMatrix::from_diagonal(&sizes.map(f64::recip));
    let eigen = (scaled.transpose() * scaled).symmetric_eigen();
    DMatrix::from_diagonal(&sizes.map(f64::recip))
        * eigen.eigenvectors
        * DMatrix::from_diagonal(&eigen.eigenvalues.map(|l| l.sqrt().recip()))
}

/// Returns the mean square changes of the estimate along each direction (rows) if one block (columns) is left out, for forces
/// that consist of unit noise.
fn changes_of_noise(regressor: &DMatrix<f64>, root: &DMatrix<f64>, rng: &mut Rng) -> DMatrix<f64> {
    const DRAWS: usize = 2000;
    let n = regressor.nrows() / BLOCKS;
    let whole = regressor * root;
    let blocks: Vec<DMatrix<f64>> = (0..BLOCKS).map(|k| whole.rows(k * n, n).into_owned()).collect();
    let grams: Vec<DMatrix<f64>> = blocks.iter().map(|b| b.transpose() * b).collect();
    let solved = |gram: DMatrix<f64>| gram.try_inverse().unwrap();
    let all: DMatrix<f64> = grams.iter().sum();
    let without: Vec<DMatrix<f64>> = grams.iter().map(|gram| solved(&all - gram)).collect();
    let inverse = solved(all);
    let mut out = DMatrix::zeros(root.ncols(), BLOCKS);
    for _ in 0..DRAWS {
        let right: Vec<DVector<f64>> =
            blocks.iter().map(|b| b.transpose() * DVector::from_fn(n, |_, _| normal(rng))).collect();
        let sum: DVector<f64> = right.iter().sum();
        let fit = &inverse * &sum;
        for (k, (inverse, right)) in without.iter().zip(&right).enumerate() {
            let change = inverse * (&sum - right) - &fit;
            out.set_column(k, &(out.column(k) + change.map(|x| x * x / DRAWS as f64)));
        }
    }
    out
}

/// Standard errors agree with estimates that leave out one block after the other.
#[test]
fn errors_are_those_of_estimates_without_each_block() {
    let mechanism = model("planar-2r");
    let mut rng = Rng(5);
    let log = Log::new(&mechanism, 1600, &mut rng).noisy(0.3, 0.9, &mut rng);
    let equations = Equations::new(&mechanism, JointTerms::default(), DEFAULT_SNAP).unwrap();
    let summary = log.summary(&equations);
    let whole = LeastSquares::new(&equations, &summary, Weighting::Ordinary).unwrap();
    let plain = LeastSquares::new(&equations, &summary.without_blocks(), Weighting::Ordinary).unwrap();
    let dynamics = InverseDynamics::new(&mechanism);
    let size = 1600 / BLOCKS;
    let mut changes = DMatrix::zeros(equations.len(), BLOCKS);
    for block in 0..BLOCKS {
        let mut rest = Summary::empty(&equations);
        for (from, to) in [(0, block * size), ((block + 1) * size, 1600)] {
            if from < to {
                let mut data = log.measurements(&dynamics, from, to);
                data.blocks = Some(BlockPlan::NONE);
                rest.merge(&Summary::new(&equations, &data).unwrap()).unwrap();
            }
        }
        let without = LeastSquares::new(&equations, &rest, Weighting::Ordinary).unwrap();
        changes.set_column(block, &(&without.values - &whole.values));
    }
    // Variances along the principal directions of the unknowns, scaled to unit information: independent noise leaves them
    // uncorrelated. Each variance is relative to that of independent noise of unit variance.
    let regressor = log.base_regressor(&equations);
    let root = principal_directions(&regressor);
    let directions = root.clone().try_inverse().unwrap() * &changes;
    let usual = changes_of_noise(&regressor, &root, &mut rng);
    let n = BLOCKS as f64;
    let spread = DVector::from_fn(root.ncols(), |i, _| n * directions.row(i).variance() / usual.row(i).sum());
    let jackknife = |i: usize| root.row(i).iter().zip(&spread).map(|(x, v)| x * x * v).sum::<f64>();
    // Directions that only few blocks excite have fewer degrees of freedom and a smaller weight.
    let weight = |i: usize| {
        let freedom = usual.row(i).sum().powi(2) / usual.row(i).norm_squared() - 1.0;
        freedom / (freedom + n - 1.0)
    };
    assert!((0..root.ncols()).all(|i| (0.2..0.51).contains(&weight(i))));
    let independent: Vec<f64> = plain.std_errors().iter().map(|e| e * e).collect();
    let mut growth: Vec<f64> = independent.iter().enumerate().map(|(i, own)| jackknife(i) / own).collect();
    growth.sort_by(f64::total_cmp);
    // The median of a variance with fifteen degrees of freedom is 0.956 of its mean (median of χ²(15): 14.339).
    let growth = growth[growth.len() / 2] / (14.339 / 15.0);
    // Neighbouring samples have a correlation of 0.9: for slow motion the variance is (1 + 0.9) / (1 - 0.9) times that of
    // independent noise.
    assert!(growth > 5.0, "{growth}");
    let noise = {
        let inverse = root.clone().try_inverse().unwrap();
        &inverse * &plain.covariance * inverse.transpose()
    };
    for (i, error) in whole.std_errors().into_iter().enumerate() {
        let mut expected = 0.0;
        for j in 0..root.ncols() {
            expected += root[(i, j)].powi(2) * weight(j) * spread[j];
            for k in 0..root.ncols() {
                let rest = ((1.0 - weight(j)) * (1.0 - weight(k))).sqrt();
                expected += growth * rest * root[(i, j)] * noise[(j, k)] * root[(i, k)];
            }
        }
        let expected = expected.sqrt();
        // The implementation regularizes the remaining information of each direction by two percent; 2000 draws of sixteen blocks
        // determine a variance to one percent.
        assert!((error / expected - 1.0).abs() < 0.05, "{i}: {error} {expected}");
    }
}

#[test]
fn standard_errors_hold_for_coloured_noise() {
    let mechanism = model("planar-2r");
    let mut rng = Rng(11);
    let equations = Equations::new(&mechanism, JointTerms::default(), DEFAULT_SNAP).unwrap();
    let truth = equations.regrouping.regroup(&mechanism.parameters()).unwrap();
    let options = IdentifyOptions::default().with(|o| o.estimator = Estimator::Wls);
    let (mut inside, mut all) = (0, 0);
    let clean = Log::new(&mechanism, 2000, &mut rng);
    for _ in 0..200 {
        let copy =
            Log { q: clean.q.clone(), v: clean.v.clone(), a: clean.a.clone(), tau: clean.tau.clone(), nv: 2 };
        let log = copy.noisy(0.5, 0.9, &mut rng);
        let result = identify(&equations, &log.summary(&equations), None, &options).unwrap();
        for (parameter, truth) in result.base_parameters.iter().zip(&truth) {
            inside += usize::from((parameter.value - truth).abs() < 1.96 * parameter.std_error);
            all += 1;
        }
    }
    let covered = inside as f64 / f64::from(all);
    assert!((covered - 0.95).abs() < 0.04, "{covered}");
}

/// An offset is nearly collinear with the weight of a link if the motion is small. An offset that is left out or undecided must not
/// reduce the standard error of the weight.
#[test]
fn standard_errors_include_the_doubt_of_omitted_terms() {
    let mechanism = model("puma560");
    let options = IdentifyOptions::from(Estimator::Wls);
    let (mut squares, mut count, mut left_out) = (0.0, 0, 0);
    for seed in 0..12 {
        let mut rng = Rng(seed + 40);
        let log = Log::of_size(&mechanism, 1600, 0.15, &mut rng)
            .with(|j, _, _| if j == 0 { 2.0 } else { 0.6 })
            .noisy(1.0, 0.3, &mut rng);
        let equations = Equations::new(&mechanism, automatic(), DEFAULT_SNAP).unwrap();
        let result = identify(&equations, &log.summary(&equations), None, &options).unwrap();
        let is_open = |t: &&TermChoice| t.term == "offset" && (!t.chosen || t.is_undecided());
        left_out += result.terms.iter().filter(is_open).count();
        let truth = equations.chosen(&result).unwrap().model_values().unwrap();
        for (found, truth) in result.base_parameters.iter().zip(&truth) {
            squares += ((found.value - truth) / found.std_error).powi(2);
            count += 1;
        }
    }
    assert!(left_out > 12, "{left_out}");
    let ratio = (squares / f64::from(count)).sqrt();
    assert!((0.7..1.5).contains(&ratio), "{ratio}");
}

#[test]
fn blocks_of_parts_are_those_of_the_whole() {
    let mechanism = model("planar-2r");
    let mut rng = Rng(2);
    let log = Log::new(&mechanism, 1000, &mut rng).noisy(0.3, 0.9, &mut rng);
    let equations = Equations::new(&mechanism, JointTerms::default(), DEFAULT_SNAP).unwrap();
    let dynamics = InverseDynamics::new(&mechanism);
    let mut parts = Summary::empty(&equations);
    let plan = BlockPlan::of_log(1000);
    for (from, to) in [(0, 130), (130, 777), (777, 1000)] {
        let mut data = log.measurements(&dynamics, from, to);
        data.blocks = Some(plan.after(from));
        parts.continue_with(&Summary::new(&equations, &data).unwrap()).unwrap();
    }
    let errors =
        |summary: &Summary| LeastSquares::new(&equations, summary, Weighting::Weighted).unwrap().std_errors();
    let stored: Summary = serde_json::from_str(&serde_json::to_string(&parts).unwrap()).unwrap();
    for (a, (b, c)) in errors(&log.summary(&equations)).iter().zip(errors(&parts).iter().zip(errors(&stored)))
    {
        // Equal up to the order of summation.
        assert!((a / b - 1.0).abs() < 1e-6 && (a / c - 1.0).abs() < 1e-6, "{a} {b} {c}");
    }
}

/// On a vertical slide, a rotor acts like a mass and an offset together. The parts of the result must predict the torques that the fit
/// explains: the split between link and rotor changed the mass, but not the offset (residual 1 %, torques of the result wrong by 99 %).
#[test]
fn the_parts_of_a_result_with_a_vertical_slide_predict_its_torques() {
    let mechanism = model("scara");
    let mut rng = Rng(71);
    let terms = JointTerms::default().with(|t| {
        (t.viscous, t.coulomb, t.offset, t.rotor_inertia) = (true, true, true, true);
    });
    let log = crate::common::logs::simulate(&mechanism, terms, 400, &mut rng);
    for model in [JointModel::from(terms), automatic()] {
        let equations = Equations::new(&mechanism, model, DEFAULT_SNAP).unwrap();
        let result =
            identify(&equations, &log.summary(&equations), None, &IdentifyOptions::default()).unwrap();
        let estimated = mechanism.clone().with_parameters(&result.parameters).unwrap();
        let (nq, nv) = (mechanism.nq(), mechanism.nv());
        let (mut left, mut size) = (0.0, 0.0);
        for s in 0..log.count {
            let (q, v, a) = (&log.q[s * nq..][..nq], &log.v[s * nv..][..nv], &log.a[s * nv..][..nv]);
            let torques = reference_rnea(&estimated, q, v, a);
            for (i, joint) in result.joints.iter().enumerate() {
                let part = |x: Option<f64>| x.unwrap_or(0.0);
                let friction = part(joint.viscous) * v[i] + part(joint.coulomb) * v[i].signum();
                let all = torques[i] + friction + part(joint.offset) + part(joint.rotor_inertia) * a[i];
                left += (all - log.tau[s * nv + i]).powi(2);
                size += log.tau[s * nv + i].powi(2);
            }
        }
        // The log has no noise and the terms are those of the simulation: only rounding errors remain.
        assert!(left.sqrt() < 1e-11 * size.sqrt(), "{} {:?}", (left / size).sqrt(), result.joints);
    }
}
