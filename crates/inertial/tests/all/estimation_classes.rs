//! Estimation for every class of mechanism and measurement: exact values without noise, standard errors with coloured noise,
//! outliers.

#![allow(clippy::unwrap_used)]

use crate::common::{Features, Rng, cases, reference_rnea};
use inertial::dynamics::{InverseDynamics, Samples, Workspace, base_wrench};
use inertial::estimation::{
    Equations, Estimator, Huber, Identification, IdentifyOptions, JointTerms, LeastSquares, Measurements,
    Summary, Term, Weighting, identify, identify_robust,
};
use inertial::identifiability::Measured;
use inertial::mechanism::{Base, BuildOptions, DEFAULT_SNAP, Mechanism, builtin};
use nalgebra::DVector;

const VISCOUS: JointTerms = {
    let mut terms = JointTerms::friction();
    terms.coulomb = false;
    terms.offset = true;
    terms
};

fn built(name: &str, base: Option<Base>) -> Mechanism {
    let mut builder = builtin::get(name).unwrap();
    builder.joints.iter_mut().for_each(|j| j.dynamics.armature = 0.0);
    builder.build(&BuildOptions::default().with(|o| o.base = base)).unwrap()
}

/// Measured motion and forces.
#[derive(Clone, Default)]
struct Log {
    q: Vec<f64>,
    v: Vec<f64>,
    a: Vec<f64>,
    tau: Vec<f64>,
    count: usize,
    independent: f64,
}

impl Log {
    fn summary(&self, equations: &Equations<'_>, huber: Option<Huber<'_>>) -> Summary {
        let dynamics = InverseDynamics::new(equations.mechanism());
        let samples = match equations.closed() {
            Some(closed) => Samples::closed(closed, self.count, &self.q, &self.v, &self.a),
            None => Samples::new(&dynamics, self.count, &self.q, &self.v, &self.a),
        };
        let mut data = Measurements::new(samples.unwrap(), &self.tau);
        data.independent = self.independent;
        data.huber = huber;
        Summary::new(equations, &data).unwrap()
    }
}

fn truth_of(term: Term, row: usize) -> f64 {
    match term {
        Term::Viscous => 0.3 + 0.1 * row as f64,
        Term::Coulomb => 0.5 / (1.0 + row as f64),
        Term::Offset => 0.2 - 0.1 * row as f64,
        _ => 0.0,
    }
}

fn true_values(equations: &Equations<'_>) -> Vec<f64> {
    let mut out = equations.regrouping.regroup(&equations.mechanism().parameters()).unwrap();
    out.extend(equations.terms.iter().map(|&(row, term)| truth_of(term, row)));
    out
}

/// Adds a state and its forces to a log: recursion for trees, projection for loops, and the base wrench if it is measured.
fn push(equations: &Equations<'_>, log: &mut Log, q: &[f64], v: &[f64], a: &[f64]) {
    let mechanism = equations.mechanism();
    let mut tau = if let Some(closed) = equations.closed() {
        let mut tau = vec![0.0; closed.dof()];
        closed.inverse_dynamics(&mut closed.workspace(), q, v, a, &mut tau).unwrap();
        tau
    } else {
        reference_rnea(mechanism, q, v, a)
    };
    for &(row, term) in &equations.terms {
        tau[row] += truth_of(term, row)
            * match term {
                Term::Viscous => v[row],
                Term::Coulomb => v[row].signum(),
                Term::Offset => 1.0,
                _ => 0.0,
            };
    }
    if equations.has_base_wrench() {
        let wrench = match equations.closed() {
            Some(closed) => closed.base_wrench(&mut closed.workspace(), q, v, a),
            None => base_wrench(mechanism, &mut Workspace::new(mechanism), q, v, a),
        };
        let wrench = wrench.unwrap();
        tau.extend(wrench.linear.iter().chain(wrench.angular.iter()));
    }
    log.q.extend_from_slice(q);
    log.v.extend_from_slice(v);
    log.a.extend_from_slice(a);
    log.tau.extend(tau);
    log.count += 1;
    log.independent = 1.0;
}

fn random_log(equations: &Equations<'_>, count: usize, rng: &mut Rng) -> Log {
    let (mut log, nv) = (Log::default(), equations.coordinates());
    let mut assembled = equations.closed().map_or_else(Vec::new, |c| c.assembled().to_vec());
    while log.count < count {
        let q = match equations.closed() {
            None => rng.positions(equations.mechanism()),
            Some(closed) => {
                let around = closed.independent_positions().iter().map(|&k| closed.assembled()[k]);
                let target: Vec<f64> = around.map(|x| x + rng.range(-0.5, 0.5)).collect();
                let mut trial = assembled.clone();
                if closed.move_to(&mut closed.workspace(), &mut trial, &target).is_ok() {
                    assembled = trial;
                }
                assembled.clone()
            }
        };
        let (v, a) = (rng.values(nv, 2.0), rng.values(nv, 5.0));
        push(equations, &mut log, &q, &v, &a);
    }
    log
}

/// Asserts that the estimate is the truth, up to directions that the motion does not excite.
fn assert_truth(equations: &Equations<'_>, log: &Log, what: &str) {
    let found = LeastSquares::new(equations, &log.summary(equations, None), Weighting::Weighted).unwrap();
    let truth = true_values(equations);
    let scale = truth.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let mut error: Vec<f64> = found.values.iter().zip(&truth).map(|(x, y)| x - y).collect();
    let unexcited = found.unexcited_combinations();
    assert_eq!(unexcited.len() + found.excited, equations.len());
    for (pivot, direction) in unexcited {
        let amount = error[pivot];
        direction.iter().for_each(|(i, c)| error[*i] -= amount * c);
    }
    for (name, error) in equations.names.iter().zip(error) {
        // Relative to the largest parameter: small parameters have no smaller absolute error than large ones.
        assert!(error.abs() <= 1e-9 * scale, "{what} {name}: error {error} beside {scale}");
    }
}

#[test]
fn noise_free_data_are_identified_exactly_for_every_class() {
    let mut rng = Rng(11);
    // Random trees with every joint type, mimic joints and rotors, on fixed and floating bases.
    for case in cases(24, Features::LINEAR) {
        let equations = Equations::new(&case.mechanism, VISCOUS, 0.0).unwrap();
        let log = random_log(&equations, 200 + 6 * equations.len(), &mut rng);
        assert_truth(&equations, &log, &case.label);
    }
    // Loops, and a robot on a force plate.
    let all = VISCOUS.with(|t| t.coulomb = true);
    let mut holds = |mechanism: &Mechanism, measured: Measured| {
        let equations = Equations::measuring(mechanism, all, DEFAULT_SNAP, measured).unwrap();
        let log = random_log(&equations, 40 + 3 * equations.len(), &mut rng);
        assert_truth(&equations, &log, mechanism.name());
    };
    for name in ["four-bar", "2rru-1rrs", "scara", "puma560"] {
        holds(&built(name, None), Measured::JointTorques);
    }
    for measured in [Measured::BaseWrench, Measured::Both] {
        for name in ["puma560", "four-bar", "2rru-1rrs"] {
            holds(&built(name, None), measured);
        }
    }
}

fn normal(rng: &mut Rng) -> f64 {
    // Box-Muller transform.
    let (u, w) = (rng.range(1e-300, 1.0), rng.range(0.0, std::f64::consts::TAU));
    (-2.0 * u.ln()).sqrt() * w.cos()
}

/// Returns noise within a band of `share / 2` of the sampling rate: one independent number for every `1 / share` samples, through
/// an ideal low-pass filter.
fn coloured(count: usize, share: f64, rng: &mut Rng) -> Vec<f64> {
    let reach = 60.0;
    let numbers: Vec<f64> = (0..(count as f64 * share) as usize + 122).map(|_| normal(rng)).collect();
    (0..count)
        .map(|s| {
            let at = s as f64 * share + reach;
            let (from, to) = ((at - reach) as usize, (at + reach) as usize);
            let sinc = |x: f64| {
                let x = std::f64::consts::PI * x;
                if x.abs() < 1e-9 { 1.0 } else { x.sin() / x }
            };
            (from..=to).map(|k| numbers[k] * sinc(at - k as f64)).sum()
        })
        .collect()
}

/// Simulates a smooth motion well within the band of the noise; mechanisms with loops move about the assembly.
fn smooth_log(equations: &Equations<'_>, count: usize, rng: &mut Rng) -> Log {
    let (mut log, nv) = (Log::default(), equations.coordinates());
    let waves: Vec<[f64; 3]> =
        (0..3 * nv).map(|_| [rng.range(0.1, 0.25), rng.range(0.02, 0.06), rng.range(0.0, 6.0)]).collect();
    let mechanism = equations.mechanism();
    let mut position = equations.closed().map_or_else(|| mechanism.neutral(), |c| c.assembled().to_vec());
    for s in 0..count {
        // 100 samples per second.
        let t = s as f64;
        let (mut x, mut v, mut a) = (vec![0.0; nv], vec![0.0; nv], vec![0.0; nv]);
        for (k, &[size, w, phase]) in waves.iter().enumerate() {
            let (i, speed) = (k / 3, 100.0 * w);
            x[i] += size * (w * t + phase).sin();
            v[i] += size * speed * (w * t + phase).cos();
            a[i] -= size * speed * speed * (w * t + phase).sin();
        }
        let q = if let Some(closed) = equations.closed() {
            let around = closed.independent_positions().iter().map(|&k| closed.assembled()[k]);
            let target: Vec<f64> = around.zip(&x).map(|(start, x)| start + x).collect();
            closed.move_to(&mut closed.workspace(), &mut position, &target).unwrap();
            position.clone()
        } else {
            let mut q = mechanism.neutral();
            mechanism.integrate(&mut q, &x);
            q
        };
        push(equations, &mut log, &q, &v, &a);
    }
    log
}

#[test]
#[ignore = "long: repeated experiments"]
fn standard_errors_hold_under_filtered_noise_for_every_class() {
    const DRAWS: usize = 200;
    let share = 0.25;
    let mut rng = Rng(12);
    for (name, base) in
        [("planar-2r", None), ("planar-2r", Some(Base::Floating)), ("four-bar", None), ("scara", None)]
    {
        let mechanism = built(name, base);
        let equations = Equations::new(&mechanism, VISCOUS, DEFAULT_SNAP).unwrap();
        let clean = smooth_log(&equations, 1200, &mut rng);
        let rows = equations.coordinates();
        let (mut chi, mut freedom) = (0.0, 0.0);
        for _ in 0..DRAWS {
            let mut log = clean.clone();
            log.independent = share;
            for row in 0..rows {
                let noise = coloured(log.count, share, &mut rng);
                let size = 0.02 + 0.1 * row as f64;
                (0..log.count).for_each(|s| log.tau[s * rows + row] += size * noise[s]);
            }
            let found =
                LeastSquares::new(&equations, &log.summary(&equations, None), Weighting::Weighted).unwrap();
            let error = &found.values - DVector::from_vec(true_values(&equations));
            // Errors along the excited directions: eigenvectors of the covariance, scaled to unit standard errors.
            let sigma = DVector::from_vec(found.std_errors());
            let scaled = |i: usize| if sigma[i] > 0.0 { 1.0 / sigma[i] } else { 0.0 };
            let correlation = nalgebra::DMatrix::from_fn(sigma.len(), sigma.len(), |i, j| {
                found.covariance[(i, j)] * scaled(i) * scaled(j)
            });
            let unit = DVector::from_fn(sigma.len(), |i, _| error[i] * scaled(i));
            let eigen = nalgebra::SymmetricEigen::new(correlation);
            for (value, vector) in eigen.eigenvalues.iter().zip(eigen.eigenvectors.column_iter()) {
                if *value > 1e-9 {
                    chi += vector.dot(&unit).powi(2) / value;
                    freedom += 1.0;
                }
            }
        }
        // Chi-square, approximately normal: outside 5 deviations once in 1.7e6. Estimating the noise from 300 independent samples
        // per row adds a part in 150, below a third of a deviation.
        let deviation = (chi - freedom) / f64::sqrt(2.0 * freedom);
        println!("{name} {base:?}: {chi:.0} of {freedom}, {deviation:.2}");
        assert!(deviation.abs() < 5.0, "{name} {base:?}: {chi} of {freedom}, {deviation}");
    }
}

fn with_estimator(estimator: Estimator) -> IdentifyOptions {
    IdentifyOptions::default().with(|o| o.estimator = estimator)
}

fn worst(equations: &Equations<'_>, found: &Identification) -> f64 {
    let truth = true_values(equations);
    let base = found.base_parameters.iter().zip(&truth);
    base.map(|(b, x)| ((b.value - x) / b.std_error).abs()).fold(0.0, f64::max)
}

#[test]
fn outliers_do_not_move_the_robust_estimate() {
    let mut rng = Rng(13);
    let mechanism = built("puma560", None);
    let equations = Equations::new(&mechanism, VISCOUS, DEFAULT_SNAP).unwrap();
    let mut log = random_log(&equations, 1500, &mut rng);
    for tau in &mut log.tau {
        *tau += 0.1 * normal(&mut rng);
        // One sample in fifty is a large one-sided outlier.
        if rng.chance(0.02) {
            *tau += rng.range(20.0, 60.0);
        }
    }
    let summary = log.summary(&equations, None);
    let mut passes = 0;
    let robust =
        identify_robust(&equations, &summary, None, &with_estimator(Estimator::Irls), |equations, huber| {
            passes += 1;
            Ok(log.summary(equations, Some(huber)))
        })
        .unwrap();
    assert_eq!(robust.estimator, "irls");
    let truth = true_values(&equations);
    let error = |found: &Identification| {
        let pairs = found.values.iter().zip(&truth);
        pairs.map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
    };
    let plain = identify(&equations, &summary, None, &with_estimator(Estimator::Wls)).unwrap();
    println!("errors: robust {:.3}, plain {:.3}, {passes} passes", error(&robust), error(&plain));
    assert!(error(&robust) < 0.1 * error(&plain));
    // One-sided outliers give Huber's estimate a bias of a few hundredths of the noise. The bound is five standard errors plus
    // this bias.
    assert!(worst(&equations, &robust) < 8.0, "{}", worst(&equations, &robust));
    // A summary contains no samples that could be reweighted.
    assert!(identify(&equations, &summary, None, &with_estimator(Estimator::Irls)).is_err());
}

#[test]
fn without_outliers_the_robust_errors_are_as_stated() {
    const DRAWS: usize = 60;
    let mut rng = Rng(14);
    let mechanism = built("planar-2r", None);
    let equations = Equations::new(&mechanism, VISCOUS, DEFAULT_SNAP).unwrap();
    let clean = random_log(&equations, 300, &mut rng);
    let (mut chi, mut freedom) = (0.0, 0.0);
    for _ in 0..DRAWS {
        let mut log = clean.clone();
        log.tau.iter_mut().for_each(|t| *t += 0.3 * normal(&mut rng));
        // The noise is independent and needs no blocks.
        let summary = log.summary(&equations, None).without_blocks();
        let (found, settled) = inertial::estimation::robust(&equations, &summary, |huber| {
            Ok(log.summary(&equations, Some(huber)).without_blocks())
        })
        .unwrap();
        assert!(settled);
        let error = &found.values - DVector::from_vec(true_values(&equations));
        chi += error.dot(&found.covariance.clone().cholesky().unwrap().solve(&error));
        freedom += error.len() as f64;
    }
    // Chi-square: outside 5 deviations once in 1.7e6; approximations in the standard errors contribute a hundredth.
    let deviation = (chi - freedom) / f64::sqrt(2.0 * freedom);
    assert!(deviation.abs() < 5.0, "{deviation}");
}

#[test]
fn parameters_below_the_noise_are_not_essential() {
    let mut rng = Rng(15);
    let mechanism = built("planar-2r", None);
    let terms = VISCOUS.with(|t| t.coulomb = true);
    let equations = Equations::new(&mechanism, terms, DEFAULT_SNAP).unwrap();
    let mut log = random_log(&equations, 500, &mut rng);
    // Coulomb friction of the second joint is removed, and the offsets are small compared with the noise.
    for s in 0..log.count {
        let v = log.v[2 * s + 1];
        log.tau[2 * s + 1] += 0.05 * normal(&mut rng) - truth_of(Term::Coulomb, 1) * v.signum();
        log.tau[2 * s] += 0.05 * normal(&mut rng);
    }
    let options = with_estimator(Estimator::Wls).with(|o| {
        o.essential = true;
        o.covariance = true;
    });
    let found = identify(&equations, &log.summary(&equations, None), None, &options).unwrap();
    let essential = found.essential.as_ref().unwrap();
    let name = |v: usize, term: &str| format!("{}.{term}", mechanism.velocity_names()[v]);
    assert!(essential.dropped.contains(&name(1, "coulomb")), "{:?}", essential.dropped);
    for v in 0..2 {
        assert!(essential.parameters.contains(&name(v, "viscous")));
    }
    assert_eq!(found.joints[1].coulomb, Some(0.0));
    assert_eq!(found.covariance.len(), equations.rank());
    for (p, row) in
        found.base_parameters.iter().zip(&found.covariance).enumerate().map(|(i, (p, r))| (p, r[i]))
    {
        assert!((row.sqrt() - p.std_error).abs() < 1e-12 * p.std_error.max(1e-12));
    }
}

#[test]
fn covariance_is_that_of_the_estimate() {
    // A short, poorly exciting motion: the prior matters, and plain least squares would be far less certain.
    let mut rng = Rng(3);
    let mechanism = built("planar-2r", None);
    let equations = Equations::new(&mechanism, VISCOUS, DEFAULT_SNAP).unwrap();
    let mut log = random_log(&equations, 60, &mut rng);
    log.tau.iter_mut().for_each(|x| *x += 0.05 * normal(&mut rng));
    let summary = log.summary(&equations, None);
    for estimator in [Estimator::Wls, Estimator::Consistent] {
        let options = IdentifyOptions::default().with(|o| {
            o.estimator = estimator;
            o.covariance = true;
        });
        let found = identify(&equations, &summary, None, &options).unwrap();
        assert_eq!(found.names, equations.names);
        assert_eq!(found.value_covariance.nrows(), equations.len());
        for (i, p) in found.base_parameters.iter().enumerate() {
            assert_eq!(found.covariance[i][i], found.value_covariance[(i, i)]);
            assert!((found.covariance[i][i].sqrt() - p.std_error).abs() <= 1e-12 * p.std_error, "{}", p.name);
        }
    }
}

#[test]
fn white_residuals_pass_the_whiteness_tests() {
    let mut rng = Rng(16);
    let mechanism = built("planar-2r", None);
    let equations = Equations::new(&mechanism, VISCOUS, DEFAULT_SNAP).unwrap();
    let clean = smooth_log(&equations, 2000, &mut rng);
    for (independent, share, white) in [(1.0, 1.0, true), (0.25, 0.25, true), (1.0, 0.25, false)] {
        let mut log = clean.clone();
        log.independent = independent;
        for row in 0..2 {
            let noise = coloured(log.count, share, &mut rng);
            (0..log.count).for_each(|s| log.tau[2 * s + row] += 0.1 * noise[s]);
        }
        let found =
            identify(&equations, &log.summary(&equations, None), None, &with_estimator(Estimator::Wls))
                .unwrap();
        for residual in &found.fit {
            assert_eq!(residual.white, Some(white), "{residual:?}");
            let statistic = residual.durbin_watson.unwrap();
            assert!((statistic - 2.0).abs() < 0.5 || !white && statistic < 1.0, "{residual:?}");
            let chance = residual.ljung_box_p.unwrap();
            assert_eq!(chance > 1e-6, white, "{residual:?}");
        }
    }
}

/// The p-values of white residuals are uniformly distributed.
#[test]
fn p_values_of_white_residuals_are_uniform() {
    const DRAWS: usize = 200;
    let mut rng = Rng(18);
    let mechanism = built("planar-2r", None);
    let equations = Equations::new(&mechanism, VISCOUS, DEFAULT_SNAP).unwrap();
    let clean = smooth_log(&equations, 600, &mut rng);
    let mut below = [0.0; 3];
    for _ in 0..DRAWS {
        let mut log = clean.clone();
        log.tau.iter_mut().for_each(|t| *t += 0.1 * normal(&mut rng));
        let found =
            identify(&equations, &log.summary(&equations, None), None, &with_estimator(Estimator::Wls))
                .unwrap();
        for residual in &found.fit {
            for (count, level) in below.iter_mut().zip([0.05, 0.3, 0.7]) {
                *count += f64::from(u8::from(residual.ljung_box_p.unwrap() < level));
            }
        }
    }
    let n = 2.0 * DRAWS as f64;
    for (count, level) in below.into_iter().zip([0.05, 0.3, 0.7]) {
        // Binomial distribution: outside 5 deviations once in 1.7e6.
        let deviation = (count - n * level) / f64::sqrt(n * level * (1.0 - level));
        println!("p < {level}: {count} of {n}, {deviation:.2}");
        assert!(deviation.abs() < 5.0, "p < {level}: {count} of {n}");
    }
}

#[test]
fn combinations_that_are_not_excited_are_named() {
    let mut rng = Rng(17);
    let mechanism = built("planar-2r", None);
    let equations = Equations::new(&mechanism, VISCOUS, DEFAULT_SNAP).unwrap();
    let mut log = Log::default();
    for _ in 0..200 {
        // The second joint never moves: its viscous friction is not excited, and its offset cannot be separated from gravity.
        let (q, v, a) = (rng.range(-3.0, 3.0), rng.range(-2.0, 2.0), rng.range(-5.0, 5.0));
        push(&equations, &mut log, &[q, 0.4], &[v, 0.0], &[a, 0.0]);
    }
    let found =
        identify(&equations, &log.summary(&equations, None), None, &with_estimator(Estimator::Wls)).unwrap();
    let hidden = equations.len()
        - LeastSquares::new(&equations, &log.summary(&equations, None), Weighting::Weighted).unwrap().excited;
    assert_eq!(found.unexcited.len(), hidden);
    let viscous = format!("{}.viscous", mechanism.velocity_names()[1]);
    assert!(
        found.unexcited.iter().any(|c| c.len() == 1 && c.contains_key(&viscous)),
        "{:?}",
        found.unexcited
    );
    // Adding such a combination changes no force.
    for combination in &found.unexcited {
        let mut values = true_values(&equations);
        for (name, x) in combination {
            values[equations.names.iter().position(|n| n == name).unwrap()] += x;
        }
        let residual =
            inertial::estimation::validate(&equations, &log.summary(&equations, None), &values).unwrap();
        assert!(residual.relative_rms < 1e-9, "{combination:?}: {}", residual.relative_rms);
    }
}
