//! Payloads identified from joint torques, compared with known parameters.

#![allow(clippy::unwrap_used)]

use crate::common::Rng;
use crate::payload::{ESTIMATORS, Logs, normal, plain, robot_log};
use inertial::dynamics::{InverseDynamics, Samples};
use inertial::estimation::{
    BlockPlan, Equations, Estimator, Identification, IdentifyOptions, JointTerms, Measurements, PayloadLink,
    ReasonCode, Summary, TRACE_OF_PRIOR, Term, TermKnowledge, Unloaded, Verdict, identify_payload,
};
use inertial::identifiability::Status;
use inertial::mechanism::{BuildOptions, DEFAULT_SNAP, Mechanism, builtin};
use inertial::spatial::Inertia;
use nalgebra::DVector;

/// Builds the built-in robot without armature (which the reference recursion lacks), and the same robot with a payload on its
/// last link.
pub fn loaded(name: &str, payload: &Inertia<f64>) -> [Mechanism; 2] {
    let mut builder = builtin::get(name).unwrap();
    for joint in &mut builder.joints {
        joint.dynamics.armature = 0.0;
        (joint.dynamics.damping, joint.dynamics.friction) = (0.4, 0.7);
    }
    let robot = builder.build(&BuildOptions::default()).unwrap();
    let mut parameters = robot.parameters();
    let last = parameters.len() - 10;
    parameters[last..].iter_mut().zip(payload.parameters().iter()).for_each(|(x, y)| *x += y);
    let with = robot.clone().with_parameters(&parameters).unwrap();
    [robot, with]
}

pub const TERMS: JointTerms = {
    let mut terms = JointTerms::friction();
    terms.offset = true;
    terms
};

/// Knowledge of joint terms that are given by the model, except offsets.
fn only_offsets_unknown(equations: &Equations<'_>) -> Vec<TermKnowledge> {
    let known = |(_, term): &(usize, Term)| match term {
        Term::Offset => TermKnowledge::Unknown,
        _ => TermKnowledge::Fixed,
    };
    equations.terms.iter().map(known).collect()
}

#[test]
fn a_payload_is_the_difference_between_two_logs_or_a_log_and_a_model() {
    let mut rng = Rng(15);
    for name in ["puma560", "arm7", "scara"] {
        let payload = rng.inertia();
        let [robot, with] = loaded(name, &payload);
        let equations = Equations::with_all_terms(&robot, TERMS, DEFAULT_SNAP).unwrap();
        let (first, second) = (robot_log(&robot, 300, 0.0, &mut rng), robot_log(&with, 300, 0.0, &mut rng));
        let (first, second) = (first.summary(&equations), second.summary(&equations));
        let last = robot.links().last().unwrap().name.clone();
        let link = PayloadLink::new(&equations, &last).unwrap();
        let truth = link.regrouping.regroup(payload.parameters().as_slice()).unwrap();
        // Friction is taken from the model; offsets are not part of a model.
        let (values, terms) = (equations.model_values().unwrap(), only_offsets_unknown(&equations));
        let model = Unloaded::Model { values: &values, terms: &terms };
        for unloaded in [model, Unloaded::Log(&first)] {
            for (estimator, solver) in ESTIMATORS {
                // Parameters that the robot cannot determine need a prior.
                let prior_weight = if link.regrouping.rank() == 10 { TRACE_OF_PRIOR } else { 1.0 };
                let options = IdentifyOptions::default().with(|o| {
                    o.estimator = estimator;
                    o.solver = solver;
                    o.prior_weight = prior_weight;
                });
                let found = identify_payload(&equations, &link, &second, unloaded, &options).unwrap();
                if prior_weight == 1.0 && !plain(estimator) {
                    assert!(
                        found.bodies[0].consistent && found.fit_relative_rms < 0.02,
                        "{name} {estimator:?}"
                    );
                    continue;
                }
                assert_eq!(
                    (found.rank, found.excited),
                    (link.regrouping.rank(), link.regrouping.rank()),
                    "{name}"
                );
                let tolerance = if plain(estimator) { 1e-9 } else { 1e-5 };
                for (x, y) in truth.iter().zip(&found.base_parameters) {
                    let scale = payload.parameters().amax();
                    assert!(
                        (x - y.value).abs() < tolerance * scale,
                        "{name} {estimator:?} {}: {x} {}",
                        y.name,
                        y.value
                    );
                }
                assert!(found.fit_relative_rms < 10.0 * tolerance, "{name}: {:e}", found.fit_relative_rms);
                assert!(plain(estimator) || found.bodies[0].consistent);
                assert!((found.joints[1].offset.unwrap() - 0.3).abs() < 1e-3, "{name} {estimator:?}");
                let asked = matches!(unloaded, Unloaded::Log(_));
                assert_eq!(found.joints[0].viscous.is_some(), asked);
            }
        }
        // Adding the payload to the model gives the loaded robot.
        let added = link.add(&robot, &payload).unwrap();
        let expected = DVector::from_vec(with.parameters());
        assert!((DVector::from_vec(added) - expected).amax() < 1e-12);
    }
}

/// The verdict of a payload from torques is that of its residuals.
#[test]
fn a_payload_from_a_log_with_a_negated_torque_is_not_good() {
    let mut rng = Rng(16);
    let payload = rng.inertia();
    let [robot, with] = loaded("puma560", &payload);
    let equations = Equations::with_all_terms(&robot, TERMS, DEFAULT_SNAP).unwrap();
    let mut log = robot_log(&with, 300, 0.1, &mut rng);
    let link = PayloadLink::new(&equations, &robot.links().last().unwrap().name.clone()).unwrap();
    let (values, terms) = (equations.model_values().unwrap(), only_offsets_unknown(&equations));
    let verdict = |log: &Logs| {
        let unloaded = Unloaded::Model { values: &values, terms: &terms };
        let options = IdentifyOptions::default();
        identify_payload(&equations, &link, &log.summary(&equations), unloaded, &options).unwrap().verdict
    };
    assert_eq!(verdict(&log), Some(Verdict::Good));
    log.tau.iter_mut().skip(1).step_by(robot.nv()).for_each(|tau| *tau = -*tau);
    assert_eq!(verdict(&log), Some(Verdict::DoNotUse));
}

#[test]
fn identifiable_parameters_of_a_payload() {
    let of = |name: &str, link: &str| {
        let robot = builtin::get(name).unwrap().build(&BuildOptions::default()).unwrap();
        let equations = Equations::new(&robot, JointTerms::default(), DEFAULT_SNAP).unwrap();
        PayloadLink::new(&equations, link).map(|l| (l.regrouping.rank(), l.regrouping.status))
    };
    // The last link of a six-axis arm moves in every direction: all ten parameters are identifiable individually.
    let (rank, status) = of("puma560", "link6").unwrap();
    assert!(rank == 10 && status.iter().all(|s| *s == Status::Identifiable));
    // The first link only rotates about its vertical axis: only Izz is identifiable.
    let (rank, status) = of("puma560", "link1").unwrap();
    assert_eq!((rank, status[9]), (1, Status::Identifiable));
    assert!(status[..9].iter().all(|s| *s == Status::Unidentifiable));
    let error = of("puma560", "lnk6").unwrap_err().to_string();
    assert!(error.contains("the nearest is link6"), "{error}");
    assert!(of("puma560", "ground").unwrap_err().to_string().contains("never moves"));
}

#[test]
#[ignore = "long: repeated experiments"]
fn errors_of_a_payload_are_as_large_as_stated() {
    const DRAWS: usize = 200;
    let mut rng = Rng(16);
    let payload = rng.inertia();
    let [robot, with] = loaded("planar-2r", &payload);
    let equations = Equations::with_all_terms(&robot, TERMS, DEFAULT_SNAP).unwrap();
    let link = PayloadLink::new(&equations, &robot.links().last().unwrap().name).unwrap();
    let truth = link.regrouping.regroup(payload.parameters().as_slice()).unwrap();
    let (values, terms) = (equations.model_values().unwrap(), only_offsets_unknown(&equations));
    for two_logs in [false, true] {
        let (mut squares, mut sums) = (0.0, vec![0.0; truth.len()]);
        for _ in 0..DRAWS {
            let summary = |m: &Mechanism, rng: &mut Rng| robot_log(m, 150, 0.5, rng).summary(&equations);
            let (first, second) = (summary(&robot, &mut rng), summary(&with, &mut rng));
            let model = Unloaded::Model { values: &values, terms: &terms };
            let unloaded = if two_logs { Unloaded::Log(&first) } else { model };
            let options = IdentifyOptions::default().with(|o| o.estimator = Estimator::Wls);
            let found = identify_payload(&equations, &link, &second, unloaded, &options).unwrap();
            for (k, (x, y)) in truth.iter().zip(&found.base_parameters).enumerate() {
                let z = (y.value - x) / y.std_error;
                squares += z * z;
                sums[k] += z;
            }
            let options = IdentifyOptions::default();
            assert!(
                identify_payload(&equations, &link, &second, unloaded, &options).unwrap().bodies[0]
                    .consistent
            );
        }
        // Errors of a few correlated unknowns: the mean square of each draw has at most the variance 2 of a single one, so 200
        // draws stay within 5 · √(2/200) = 0.5 except once in two million.
        let mean = squares / (DRAWS * truth.len()) as f64;
        assert!((mean - 1.0).abs() < 0.5, "{two_logs}: {mean}");
        let most = sums.iter().fold(0.0, |m: f64, x| m.max(x.abs())) / (DRAWS as f64).sqrt();
        assert!(most < 5.5, "{two_logs}: {most}");
    }
}

/// Joint terms of which nothing is known.
fn all_unknown(equations: &Equations<'_>) -> Vec<TermKnowledge> {
    vec![TermKnowledge::Unknown; equations.terms.len()]
}

/// Identifies a payload on the last link of a robot of which the model gives the inertias and the friction, times a factor.
fn with_model(
    model: &Mechanism,
    log: &Logs,
    terms: impl Fn(&Equations<'_>) -> Vec<TermKnowledge>,
    friction: f64,
    blocks: Option<BlockPlan>,
) -> Identification {
    let rotors = TERMS.with(|terms| terms.rotor_inertia = true);
    let equations = Equations::with_all_terms(model, rotors, DEFAULT_SNAP).unwrap();
    let link = PayloadLink::new(&equations, &model.links().last().unwrap().name).unwrap();
    let (mut values, terms) = (equations.model_values().unwrap(), terms(&equations));
    values[equations.rank()..].iter_mut().for_each(|x| *x *= friction);
    let unloaded = Unloaded::Model { values: &values, terms: &terms };
    let dynamics = InverseDynamics::new(model);
    let samples = Samples::new(&dynamics, log.count, &log.q, &log.v, &log.a).unwrap();
    let mut data = Measurements::new(samples, &log.tau);
    data.blocks = blocks;
    let summary = Summary::new(&equations, &data).unwrap();
    let options = IdentifyOptions::default().with(|o| o.estimator = Estimator::Wls);
    identify_payload(&equations, &link, &summary, unloaded, &options).unwrap()
}

/// Returns the errors of the identified combinations in stated errors.
fn errors(found: &Identification, model: &Mechanism, payload: &Inertia<f64>) -> Vec<f64> {
    let equations = Equations::new(model, JointTerms::default(), DEFAULT_SNAP).unwrap();
    let link = PayloadLink::new(&equations, &model.links().last().unwrap().name).unwrap();
    let truth = link.regrouping.regroup(payload.parameters().as_slice()).unwrap();
    found.base_parameters.iter().zip(truth).map(|(own, truth)| (own.value - truth) / own.std_error).collect()
}

/// The model has half of the friction of the robot, and no rotors.
#[test]
fn contradicted_friction_and_unknown_rotors_are_estimated_with_the_payload() {
    let mut rng = Rng(31);
    let payload = rng.inertia();
    let [robot, with] = loaded("puma560", &payload);
    let mut log = robot_log(&with, 400, 0.05, &mut rng);
    for (tau, a) in log.tau.iter_mut().zip(&log.a) {
        *tau += 0.2 * a;
    }
    let presumed = |equations: &Equations<'_>| {
        let known = |(_, term): &(usize, Term)| match term {
            Term::Viscous | Term::Coulomb => TermKnowledge::Presumed,
            _ => TermKnowledge::Unknown,
        };
        equations.terms.iter().map(known).collect()
    };
    let found = with_model(&robot, &log, presumed, 0.5, None);
    let most = errors(&found, &robot, &payload).iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    assert!(most < 4.0, "{most}");
    assert!(found.warnings.has("terms-contradicted"), "{:?}", found.warnings);
    assert!((found.joints[2].rotor_inertia.unwrap() - 0.2).abs() < 0.02);
    assert!(found.joints.iter().all(|joint| joint.coulomb.is_some()), "{:?}", found.joints);
    // With the right friction, nothing is contradicted.
    let found = with_model(&robot, &log, presumed, 1.0, None);
    assert!(!found.warnings.has("terms-contradicted") && found.joints[1].viscous.is_none());
}

/// Models whose links are heavier or lighter as a whole, and models with errors of all parameters: the payload was up to 40 stated errors
/// away.
#[test]
fn errors_of_the_model_widen_the_errors_of_the_payload() {
    for of_whole_links in [true, false] {
        let (mut squares, mut count, mut doubtful) = (0.0, 0, 0);
        for seed in 0..20 {
            let mut rng = Rng(300 + seed);
            let payload = rng.inertia();
            let [robot, with] = loaded("puma560", &payload);
            let log = robot_log(&with, 300, 0.05, &mut rng);
            let mut parameters = robot.parameters();
            for block in robot.parameter_blocks().iter().filter(|b| b.len == 10) {
                let factor = 1.0 + 0.1 * normal(&mut rng);
                let own = &mut parameters[block.offset..block.offset + 10];
                if of_whole_links {
                    own.iter_mut().for_each(|x| *x *= factor);
                } else {
                    // Half the trace of the inertia is the mass times the square of the radius of gyration.
                    let (mass, square) = (own[0], 0.5 * (own[4] + own[7] + own[9]));
                    for (k, x) in own.iter_mut().enumerate() {
                        let size =
                            [mass, (mass * square).sqrt(), square][usize::from(k > 0) + usize::from(k > 3)];
                        *x += 0.1 * size * normal(&mut rng);
                    }
                }
            }
            let wrong = robot.clone().with_parameters(&parameters).unwrap();
            let found = with_model(&wrong, &log, all_unknown, 1.0, None);
            doubtful += usize::from(found.reasons.iter().any(|r| r.code == ReasonCode::Model));
            for z in errors(&found, &robot, &payload) {
                squares += z * z;
                count += 1;
            }
            let found = with_model(&robot, &log, all_unknown, 1.0, None);
            assert_eq!(found.verdict, Some(Verdict::Good), "{:?}", found.reasons);
        }
        // The distribution of the errors is not the assumed one: the stated errors hold within a factor of two.
        let rms = (squares / f64::from(count)).sqrt();
        assert!((0.5..2.0).contains(&rms), "{of_whole_links}: {rms}, {doubtful} of 20 doubtful");
        assert!(of_whole_links || doubtful > 10, "{doubtful} of 20");
    }
}

/// The jackknife widens errors if residuals are correlated in time; states are random, so that nothing else correlates.
#[test]
fn correlated_residuals_widen_the_errors_of_the_payload() {
    let (mut squares, mut count) = ([0.0; 2], 0);
    for seed in 0..30 {
        let mut rng = Rng(500 + seed);
        let payload = rng.inertia();
        let [robot, with] = loaded("puma560", &payload);
        let nv = robot.nv();
        let mut log = robot_log(&with, 640, 0.05, &mut rng);
        // Friction that changes between sixteen parts of the log.
        for part in log.tau.chunks_mut(nv * 40).zip(log.v.chunks(nv * 40)) {
            let change = rng.values(nv, 0.3);
            part.0
                .iter_mut()
                .zip(part.1)
                .enumerate()
                .for_each(|(k, (tau, v))| *tau += change[k % nv] * v.signum());
        }
        let blocks = [Some(BlockPlan::NONE), None];
        for (blocks, squares) in blocks.into_iter().zip(&mut squares) {
            let found = with_model(&robot, &log, all_unknown, 1.0, blocks);
            *squares += errors(&found, &robot, &payload).iter().map(|z| z * z).sum::<f64>();
        }
        count += 10;
    }
    let [independent, jackknife] = squares.map(|x| (x / f64::from(count)).sqrt());
    assert!((0.7..1.5).contains(&jackknife), "{jackknife}, independent {independent}");
}
