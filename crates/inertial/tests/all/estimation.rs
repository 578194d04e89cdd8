//! Estimation from simulated logs with known parameters.

#![allow(clippy::unwrap_used)]

use crate::common::logs::{FRICTION, Log, model, normal, simulate, true_values, truth_of};
use crate::common::{Rng, reference_regressor, reference_rnea};
use inertial::consistency::{DEFAULT_TOLERANCE, check_inertia};
use inertial::estimation::consistent::ConsistentProblem;
use inertial::estimation::{
    Carried, Consistency, ConsistentFit, Equations, Estimator, IdentifyOptions, JointTerms, LeastSquares,
    PayloadLink, Prior, Solver, Summary, Term, Weighting, identify, identify_fleet, validate,
};
use inertial::linalg::Svd;
use inertial::mechanism::{BodyKind, DEFAULT_SNAP, Mechanism};
use inertial::spatial::{Inertia, PseudoInertia};
use nalgebra::{DMatrix, DVector, Matrix3, vector};

#[test]
fn noise_free_data_return_the_base_parameters() {
    let mut rng = Rng(1);
    for name in ["arm7", "puma560", "quadruped"] {
        let mechanism = model(name);
        let equations = Equations::new(&mechanism, FRICTION, DEFAULT_SNAP).unwrap();
        let summary = simulate(&mechanism, FRICTION, 400, &mut rng).summary(&equations);
        let truth = true_values(&equations);
        let scale = truth.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        for weighting in [Weighting::Ordinary, Weighting::Weighted] {
            let found = LeastSquares::new(&equations, &summary, weighting).unwrap();
            assert_eq!(found.excited, equations.len(), "{name}");
            for ((name, x), y) in equations.names.iter().zip(&truth).zip(found.values.iter()) {
                // Relative to the value, or to a thousandth of the largest value for those near zero.
                assert!((x - y).abs() <= 1e-9 * x.abs().max(1e-3 * scale), "{name}: {x} {y}");
            }
            let fit = validate(&equations, &summary, found.values.as_slice()).unwrap();
            assert!(fit.relative_rms < 1e-10, "{name}: {:e}", fit.relative_rms);
        }
    }
}

#[test]
fn rotors_near_the_ground_are_part_of_their_links() {
    let mut rng = Rng(2);
    let terms = FRICTION.with(|t| t.rotor_inertia = true);
    let mechanism = model("arm7");
    let equations = Equations::new(&mechanism, terms, DEFAULT_SNAP).unwrap();
    // The second axis is perpendicular to the first: the link rotates about it only with its own joint.
    assert_eq!(equations.absorbed, [(0, Term::RotorInertia), (1, Term::RotorInertia)]);
    let summary = simulate(&mechanism, terms, 400, &mut rng).summary(&equations);
    let found = LeastSquares::new(&equations, &summary, Weighting::Weighted).unwrap();
    assert_eq!(found.excited, equations.len());
    let truth = true_values(&equations);
    let mut shifted = 0;
    for ((name, x), y) in equations.names.iter().zip(&truth).zip(found.values.iter()) {
        let rotor = match name.as_str() {
            "link1.Izz" => truth_of(Term::RotorInertia, 0),
            "link2.Izz" => truth_of(Term::RotorInertia, 1),
            _ => 0.0,
        };
        shifted += usize::from(rotor > 0.0);
        assert!((x + rotor - y).abs() < 1e-9, "{name}: {x} + {rotor}, {y}");
    }
    assert_eq!(shifted, 2);
}

#[test]
fn errors_agree_with_standard_errors() {
    const DRAWS: usize = 200;
    let mut rng = Rng(3);
    let mechanism = model("planar-2r");
    let equations = Equations::new(&mechanism, FRICTION, DEFAULT_SNAP).unwrap();
    let truth = DVector::from_vec(true_values(&equations));
    let clean = simulate(&mechanism, FRICTION, 600, &mut rng);
    // Joints with very different noise.
    let noise = [0.5, 0.02];
    for weighting in [Weighting::Ordinary, Weighting::Weighted] {
        let (mut chi, mut sums) = (0.0, DVector::zeros(truth.len()));
        for _ in 0..DRAWS {
            let mut tau = clean.tau.clone();
            tau.iter_mut().enumerate().for_each(|(k, t)| *t += noise[k % 2] * normal(&mut rng));
            let log =
                Log { tau, q: clean.q.clone(), v: clean.v.clone(), a: clean.a.clone(), count: clean.count };
            // The noise is independent and needs no blocks.
            let summary = log.summary(&equations).without_blocks();
            let found = LeastSquares::new(&equations, &summary, weighting).unwrap();
            let error = &found.values - &truth;
            chi += error.dot(&found.covariance.clone().cholesky().unwrap().solve(&error));
            sums += error.component_div(&DVector::from_vec(found.std_errors()));
        }
        // Chi-square with 200·p degrees of freedom, approximately normal: outside 4.9 deviations once in a million. Estimating
        // the noise from 600 samples widens it by less than a hundredth.
        let freedom = (DRAWS * truth.len()) as f64;
        let deviation = (chi - freedom) / (2.0 * freedom).sqrt();
        assert!(deviation.abs() < 4.9, "{weighting:?}: {deviation}");
        // The mean of each error is zero: |z| beyond 5.5 once in 2.6e7, times the number of unknowns.
        assert!(sums.amax() / (DRAWS as f64).sqrt() < 5.5, "{weighting:?}: {sums}");
    }
}

/// Computes the documented cost of the consistent estimator from the samples.
fn cost(
    mechanism: &Mechanism,
    log: &Log,
    equations: &Equations<'_>,
    weights: &[f64],
    prior: &Prior,
    parameters: &[f64],
    terms: &[f64],
) -> f64 {
    let (nq, nv) = (mechanism.nq(), mechanism.nv());
    let mut out = 0.0;
    for s in 0..log.count {
        let (v, a) = (&log.v[s * nv..(s + 1) * nv], &log.a[s * nv..(s + 1) * nv]);
        let y = reference_regressor(mechanism, &log.q[s * nq..(s + 1) * nq], v, a);
        let mut tau = &y * DVector::from_column_slice(parameters);
        for (&(i, term), value) in equations.terms.iter().zip(terms) {
            tau[i] += value * column(term, v[i], a[i]);
        }
        for i in 0..nv {
            out += 0.5 * (weights[i] * (tau[i] - log.tau[s * nv + i])).powi(2);
        }
    }
    let with = mechanism.clone().with_parameters(parameters).unwrap();
    for (body, prior) in with.bodies().iter().zip(&prior.bodies) {
        if body.kind == BodyKind::Link {
            let p = PseudoInertia::from(&body.inertia).0;
            let inverse = PseudoInertia::from(prior).0.cholesky().unwrap().inverse();
            out += (inverse * p).trace() - p.determinant().ln();
        }
    }
    out
}

/// Returns the regressor entry of a joint term in the force of its coordinate.
fn column(term: Term, v: f64, a: f64) -> f64 {
    match term {
        Term::Viscous => v,
        Term::Coulomb => v.signum(),
        Term::Offset => 1.0,
        Term::RotorInertia => a,
        _ => 0.0,
    }
}

/// Returns the mean and width of the normal prior of each joint term: the part of the problem beyond the sums over the samples.
fn prior_of_terms(
    problem: &ConsistentProblem,
    log: &Log,
    equations: &Equations<'_>,
    weights: &[f64],
) -> Vec<(f64, f64)> {
    let (nv, first) = (weights.len(), equations.regrouping.parameters);
    let one = |(k, &(i, term)): (usize, &(usize, Term))| {
        let (mut square, mut product) = (0.0, 0.0);
        for s in 0..log.count {
            let x = weights[i] * column(term, log.v[s * nv + i], log.a[s * nv + i]);
            square += x * x;
            product += x * weights[i] * log.tau[s * nv + i];
        }
        let weight = problem.conic.gram[(first + k, first + k)] - square;
        ((problem.conic.rhs[first + k] - product) / weight, weight.recip().sqrt())
    };
    equations.terms.iter().enumerate().map(one).collect()
}

#[test]
fn the_consistent_estimate_is_the_best_consistent_body() {
    let mut rng = Rng(4);
    let mechanism = model("arm7");
    let equations = Equations::new(&mechanism, FRICTION, DEFAULT_SNAP).unwrap();
    let mut log = simulate(&mechanism, FRICTION, 60, &mut rng);
    log.tau.iter_mut().for_each(|t| *t += 2.0 * normal(&mut rng));
    let summary = log.summary(&equations);
    let squares = LeastSquares::new(&equations, &summary, Weighting::Weighted).unwrap();
    let prior = Prior::new(&mechanism).unwrap();
    let fit = ConsistentFit::new(&equations, &summary, &squares, &Consistency::new(&prior, 1.0)).unwrap();
    assert!(fit.status.is_converged(), "{:e} {:e}", fit.cost, fit.lower_bound);
    let rank = equations.rank();
    let problem =
        ConsistentProblem::new(&equations, &summary, &squares, &Consistency::new(&prior, 1.0)).unwrap();
    let terms_prior = prior_of_terms(&problem, &log, &equations, &squares.weights);
    let (model, errors) = (equations.model_values().unwrap(), squares.std_errors());
    for (k, &(mean, width)) in terms_prior.iter().enumerate() {
        // The prior is centred at the value of the model; its weight is a small difference of large sums.
        assert!((mean - model[rank + k]).abs() < 1e-6 * width, "{k}: {mean} {}", model[rank + k]);
        // The prior shifts no term by more than a tenth of its standard error.
        let (error, away) = (errors[rank + k], fit.values[rank + k] - mean);
        assert!((away * error / (width * width)).abs() < 0.1, "{k}: {away} {error} {width}");
    }
    let measure = |parameters: &[f64], terms: &[f64]| {
        let of_terms = terms.iter().zip(&terms_prior).map(|(x, (mean, width))| ((x - mean) / width).powi(2));
        cost(&mechanism, &log, &equations, &squares.weights, &prior, parameters, terms)
            + 0.5 * of_terms.sum::<f64>()
    };
    let again = measure(&fit.parameters, &fit.values[rank..]);
    // The same sum in another order, from squared factors.
    assert!((again - fit.cost).abs() < 1e-9 * again.abs(), "{again} {}", fit.cost);
    for _ in 0..40 {
        // The cost does not decrease towards other consistent bodies: convex combinations of consistent bodies are consistent.
        let step = rng.range(1e-4, 0.3);
        let mut parameters = fit.parameters.clone();
        for (block, prior) in mechanism.parameter_blocks().iter().map(|b| (b, &prior.bodies[b.body])) {
            let scale = rng.range(0.3, 3.0);
            for (k, p) in prior.parameters().iter().enumerate() {
                let own = &mut parameters[block.offset + k];
                *own += step * (scale * p - *own);
            }
        }
        let terms: Vec<f64> =
            fit.values[rank..].iter().map(|t| t * (1.0 + step * rng.range(-1.0, 1.0))).collect();
        assert!(measure(&parameters, &terms) >= fit.lower_bound - 1e-6 * again.abs());
    }
}

#[test]
fn bodies_are_consistent_and_excited_parameters_unchanged() {
    let mut rng = Rng(5);
    for name in ["arm7", "puma560", "quadruped"] {
        let mechanism = model(name);
        let equations = Equations::new(&mechanism, FRICTION, DEFAULT_SNAP).unwrap();
        for (count, noise) in [(40, 5.0), (400, 0.1)] {
            let mut log = simulate(&mechanism, FRICTION, count, &mut rng);
            log.tau.iter_mut().for_each(|t| *t += noise * normal(&mut rng));
            let summary = log.summary(&equations);
            // A prior that is wrong by a factor of two.
            let mut prior = Prior::new(&mechanism).unwrap();
            prior.bodies.iter_mut().for_each(|b| *b = *b + *b);
            let options = IdentifyOptions::default().with(|o| o.prior = Some(prior));
            let found = identify(&equations, &summary, None, &options).unwrap();
            let with = mechanism.clone().with_parameters(&found.parameters).unwrap();
            for body in with.bodies().iter().filter(|b| b.kind == BodyKind::Link) {
                assert!(
                    check_inertia(&body.inertia, DEFAULT_TOLERANCE).unwrap().is_consistent(),
                    "{name} {}",
                    body.name
                );
            }
            assert!(found.bodies.iter().all(|b| b.consistent));
            assert!(found.joints.iter().all(|j| j.coulomb.is_none_or(|c| c >= 0.0)));
            let plain =
                identify(&equations, &summary, None, &options.clone().with(|o| o.estimator = Estimator::Wls))
                    .unwrap();
            // The prior increases the residual only insignificantly.
            assert!(found.fit_relative_rms < plain.fit_relative_rms * if count == 400 { 1.01 } else { 1.5 });
        }
    }
}

#[test]
fn parts_merge_to_the_whole_in_any_order() {
    let mut rng = Rng(6);
    let mechanism = model("arm7");
    let equations = Equations::new(&mechanism, FRICTION, DEFAULT_SNAP).unwrap();
    let mut log = simulate(&mechanism, FRICTION, 1000, &mut rng);
    log.tau.iter_mut().for_each(|t| *t += 0.1 * normal(&mut rng));
    let estimators = [
        (Estimator::Ols, Solver::default()),
        (Estimator::Wls, Solver::default()),
        (Estimator::Consistent, Solver::Barrier),
        (Estimator::Consistent, Solver::Manifold),
        (Estimator::Consistent, Solver::LogCholesky),
    ];
    let of = |summary: &Summary| {
        estimators.map(|(estimator, solver)| {
            let options = IdentifyOptions::default().with(|o| {
                o.estimator = estimator;
                o.solver = solver;
            });
            identify(&equations, summary, None, &options).unwrap()
        })
    };
    let whole = of(&log.summary(&equations));
    for parts in [1, 7, 64] {
        let cuts: Vec<usize> = (0..=parts).map(|k| k * log.count / parts).collect();
        let mut order: Vec<usize> = (0..parts).collect();
        (1..parts).for_each(|i| order.swap(i, rng.below(i + 1)));
        let mut merged = Summary::empty(&equations);
        for k in order {
            let part = log.part(&equations, cuts[k], cuts[k + 1] - cuts[k]);
            // A round trip through a file preserves every digit.
            let text = serde_json::to_string(&part).unwrap();
            let read: Summary = serde_json::from_str(&text).unwrap();
            assert_eq!(read, part);
            merged.merge(&read).unwrap();
        }
        assert_eq!(merged.samples, log.count);
        for (found, whole) in of(&merged).iter().zip(&whole) {
            // Base parameters and joint terms, and every parameter of every body, most of which the data do not determine.
            for (found, whole) in [(&found.values, &whole.values), (&found.parameters, &whole.parameters)] {
                let largest = whole.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
                let apart = found.iter().zip(whole).fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
                assert!(apart < 1e-10 * largest, "{parts} parts: {apart:e} of {largest}");
            }
        }
    }
    // Three solvers find the same optimum.
    let [lmi, manifold, log_cholesky] = [2, 3, 4].map(|k| DVector::from_vec(whole[k].parameters.clone()));
    assert!(
        (&manifold - &lmi).amax() < 1e-10 * lmi.amax() && (log_cholesky - &lmi).amax() < 1e-10 * lmi.amax()
    );
}

#[test]
fn the_summary_is_the_same_for_any_number_of_threads() {
    let mechanism = model("planar-2r");
    let equations = Equations::new(&mechanism, FRICTION, DEFAULT_SNAP).unwrap();
    let log = simulate(&mechanism, FRICTION, 20_000, &mut Rng(7));
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| log.summary(&equations))
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn parameters_that_are_not_excited_are_reported() {
    let mut rng = Rng(8);
    let mechanism = model("puma560");
    let equations = Equations::new(&mechanism, JointTerms::default(), DEFAULT_SNAP).unwrap();
    // At rest, only gravity terms are excited.
    let mut log = simulate(&mechanism, JointTerms::default(), 1, &mut rng);
    log = Log { q: vec![], v: vec![], a: vec![], tau: vec![], ..log };
    log.count = 200;
    for _ in 0..log.count {
        let q = rng.positions(&mechanism);
        log.tau.extend(reference_rnea(&mechanism, &q, &[0.0; 6], &[0.0; 6]));
        log.q.extend(q);
        log.v.extend([0.0; 6]);
        log.a.extend([0.0; 6]);
    }
    let options = IdentifyOptions::default().with(|o| o.estimator = Estimator::Ols);
    let found = identify(&equations, &log.summary(&equations), None, &options).unwrap();
    let gravity = DMatrix::from_rows(
        &(0..log.count)
            .flat_map(|s| {
                let y = reference_regressor(&mechanism, &log.q[6 * s..6 * s + 6], &[0.0; 6], &[0.0; 6]);
                y.row_iter().map(nalgebra::Matrix::into_owned).collect::<Vec<_>>()
            })
            .collect::<Vec<_>>(),
    );
    let rank = inertial::linalg::rank(&gravity, 1e-10).unwrap().rank;
    assert_eq!((found.rank, found.excited), (36, rank));
    assert!(found.warnings.has("not-excited"), "{:?}", found.warnings);
    assert!(found.fit_relative_rms < 1e-9, "{}", found.fit_relative_rms);
}

/// Robots of one type with individual friction; the second and the third carry a payload on their last link.
struct Robots {
    mechanism: Mechanism,
    viscous: [f64; 3],
    payloads: [Option<Inertia<f64>>; 3],
    logs: Vec<Log>,
}

const CARRIES: [bool; 3] = [false, true, true];

impl Robots {
    fn new(noise: f64) -> Self {
        let mechanism = model("puma560");
        let viscous = [0.2, 0.7, 1.1];
        let box_of = |mass: f64, centre, d: [f64; 3]| {
            Some(Inertia::from_com(mass, centre, Matrix3::from_diagonal(&d.into())))
        };
        let payloads = [
            None,
            box_of(2.0, vector![0.02, -0.05, 0.1], [0.01, 0.012, 0.008]),
            box_of(0.7, vector![-0.1, 0.0, 0.15], [0.004, 0.003, 0.002]),
        ];
        let mut rng = Rng(17);
        let mut logs = Vec::new();
        for k in 0..3 {
            let mut parameters = mechanism.parameters();
            let last = parameters.len() - 10;
            if let Some(payload) = &payloads[k] {
                parameters[last..].iter_mut().zip(payload.parameters().iter()).for_each(|(x, y)| *x += y);
            }
            let with = mechanism.clone().with_parameters(&parameters).unwrap();
            let mut log = simulate(&with, JointTerms::default(), 700, &mut rng);
            for (tau, v) in log.tau.iter_mut().zip(&log.v) {
                *tau += viscous[k] * v + noise * normal(&mut rng);
            }
            logs.push(log);
        }
        Self { mechanism, viscous, payloads, logs }
    }

    fn equations(&self) -> Equations<'_> {
        let terms = JointTerms::default().with(|t| t.viscous = true);
        Equations::new(&self.mechanism, terms, DEFAULT_SNAP).unwrap()
    }
}

#[test]
fn a_fleet_with_payloads_is_identified_exactly() {
    let robots = Robots::new(0.0);
    let equations = robots.equations();
    let link = PayloadLink::new(&equations, "link6").unwrap();
    let summaries: Vec<Summary> = robots.logs.iter().map(|log| log.summary(&equations)).collect();
    let truth = equations.regrouping.regroup(&robots.mechanism.parameters()).unwrap();
    for (estimator, tolerance) in
        [(Estimator::Ols, 1e-8), (Estimator::Wls, 1e-8), (Estimator::Consistent, 1e-4)]
    {
        let options = IdentifyOptions::default().with(|o| o.estimator = estimator);
        let carried = Carried { link: &link, carries: &CARRIES };
        let fleet = identify_fleet(&equations, &summaries, Some(carried), &options).unwrap();
        assert_eq!(fleet.common.samples, 2100);
        for (found, truth) in fleet.common.base_parameters.iter().zip(&truth) {
            assert!((found.value - truth).abs() < tolerance, "{estimator:?} {found:?} {truth}");
        }
        if estimator == Estimator::Consistent {
            assert!(fleet.common.bodies.iter().all(|b| b.consistent));
        }
        for (k, robot) in fleet.robots.iter().enumerate() {
            assert!(robot.relative_rms < tolerance, "{}", robot.relative_rms);
            assert!(robot.joints.iter().all(|j| (j.viscous.unwrap() - robots.viscous[k]).abs() < tolerance));
            assert_eq!(robot.payload.is_some(), CARRIES[k]);
            let (Some(payload), Some(given)) = (&robot.payload, &robots.payloads[k]) else { continue };
            assert_eq!(payload.excited, link.regrouping.rank());
            let expected = link.regrouping.regroup(given.parameters().as_slice()).unwrap();
            for (found, expected) in payload.base_parameters.iter().zip(expected) {
                assert!((found.value - expected).abs() < tolerance, "{estimator:?} {found:?} {expected}");
            }
            assert!(estimator != Estimator::Consistent || payload.body.consistent);
        }
    }
    let refused = |carries: &[bool]| {
        let carried = Carried { link: &link, carries };
        identify_fleet(&equations, &summaries, Some(carried), &IdentifyOptions::default())
            .unwrap_err()
            .to_string()
    };
    assert!(refused(&[true; 3]).contains("one without is needed"));
    assert!(refused(&[false, true]).contains("expected 3"), "{}", refused(&[false, true]));
}

/// A fleet with payloads equals one large least-squares problem: common base columns, and friction and ten columns of the last
/// link for each robot.
#[test]
fn a_fleet_with_payloads_is_one_least_squares_problem() {
    let noise = 0.05;
    let robots = Robots::new(noise);
    let equations = robots.equations();
    let link = PayloadLink::new(&equations, "link6").unwrap();
    let summaries: Vec<Summary> = robots.logs.iter().map(|log| log.summary(&equations)).collect();
    let options = IdentifyOptions::default().with(|o| o.estimator = Estimator::Ols);
    let carried = Carried { link: &link, carries: &CARRIES };
    let fleet = identify_fleet(&equations, &summaries, Some(carried), &options).unwrap();

    let (nq, nv, rank) = (robots.mechanism.nq(), robots.mechanism.nv(), equations.rank());
    let width = rank + 3 * nv + 20;
    let rows = 3 * 700 * nv;
    let (mut a, mut b) = (DMatrix::zeros(rows, width), DVector::zeros(rows));
    for (k, log) in robots.logs.iter().enumerate() {
        for s in 0..700 {
            let at = |x: &[f64], n: usize| x[s * n..(s + 1) * n].to_vec();
            let (q, v) = (at(&log.q, nq), at(&log.v, nv));
            let y = reference_regressor(&robots.mechanism, &q, &v, &at(&log.a, nv));
            for i in 0..nv {
                let row = (k * 700 + s) * nv + i;
                b[row] = log.tau[s * nv + i];
                for (j, &column) in equations.regrouping.base.iter().enumerate() {
                    a[(row, j)] = y[(i, column)];
                }
                a[(row, rank + k * nv + i)] = v[i];
                for j in 0..10 {
                    if k > 0 {
                        a[(row, rank + 3 * nv + 10 * (k - 1) + j)] = y[(i, y.ncols() - 10 + j)];
                    }
                }
            }
        }
    }
    // Components of a payload that no motion excites have least norm and do not contribute to its combinations.
    let qr = a.qr();
    qr.q_tr_mul(&mut b);
    let svd = Svd::new(&qr.r()).unwrap();
    let rank_of_all = svd.rank(1e-9).rank;
    let solution = svd.solve(&b.rows(0, width).into_owned(), rank_of_all, 0.0);
    let covariance = |row: &DVector<f64>| -> f64 {
        (0..rank_of_all).map(|i| (svd.v.column(i).dot(row) / svd.values[i]).powi(2)).sum()
    };
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-7, "{found} {expected}");
    // The noise is estimated from some thousand forces, to a few percent.
    let similar =
        |error: f64, expected: f64| assert!((error / expected - 1.0).abs() < 0.15, "{error} {expected}");
    for (j, found) in fleet.common.base_parameters.iter().enumerate() {
        near(found.value, solution[j]);
        let mut row = DVector::zeros(width);
        row[j] = 1.0;
        similar(found.std_error, noise * covariance(&row).sqrt());
    }
    for (k, robot) in fleet.robots.iter().enumerate() {
        for (i, joint) in robot.joints.iter().enumerate() {
            near(joint.viscous.unwrap(), solution[rank + k * nv + i]);
        }
        let Some(payload) = &robot.payload else { continue };
        for (found, combination) in payload.base_parameters.iter().zip(&link.regrouping.combinations) {
            let mut row = DVector::zeros(width);
            combination.iter().for_each(|&(c, x)| row[rank + 3 * nv + 10 * (k - 1) + c] = x);
            near(found.value, row.dot(&solution));
            similar(found.std_error, noise * covariance(&row).sqrt());
        }
    }
}
