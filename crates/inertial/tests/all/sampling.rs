//! Exact sampling, compared with the recursion, singular values and inverse dynamics; other sensors than all torques.

#![allow(clippy::unwrap_used)]

use crate::common::{Features, cases, reference_regressor, reference_rnea};
use crate::golden;
use inertial::identifiability::certificate::{RankProblem, Real, numeric_recursion};
use inertial::identifiability::{
    AnalyzeOptions, Experiment, Measured, Method, Regime, Rpna, Sampler, Topology, analyze,
};
use inertial::linalg::{First, Second, rank};
use inertial::mechanism::{Base, ExactGeometry, Mechanism};
use nalgebra::DMatrix;

fn problem<'a>(mechanism: &'a Mechanism, experiment: &'a Experiment) -> RankProblem<'a> {
    RankProblem {
        mechanism,
        experiment,
        order: (0..mechanism.parameter_count()).collect(),
        seed: 3,
        literal: false,
    }
}

fn complete(mechanism: &Mechanism, regime: Regime) -> Experiment {
    Experiment::complete(mechanism.base() == Base::Floating, regime)
}

/// The recursion over both primes and in floating point, exact sampling and singular values agree on every kind of tree.
#[test]
fn all_methods_agree_on_random_trees() {
    let (mut covered, mut clear, mut unclear) = (0, 0, 0);
    for case in cases(100, Features::LINEAR) {
        let m = &case.mechanism;
        for regime in [Regime::Full, Regime::Static, Regime::Kinetic] {
            let experiment = complete(m, regime);
            let problem = problem(m, &experiment);
            let geometry = ExactGeometry::new(m, 1e-4);
            let rank = problem.sampled_rank::<First>(&geometry);
            assert_eq!(problem.sampled_rank::<Second>(&geometry), rank, "{regime:?}");
            let singular = problem.numeric_rank(&geometry).unwrap();
            // A clear gap of the singular values gives the correct rank.
            if singular.margin() > 1e4 {
                clear += 1;
                assert_eq!(singular.rank, rank, "{regime:?} {singular:?}");
            }
            let Ok(topology) = Topology::new(&geometry.to::<First>()) else { continue };
            covered += 1;
            let first = Rpna::new(&geometry.to::<First>(), &topology, regime).nullity(&topology);
            let second = Rpna::new(&geometry.to::<Second>(), &topology, regime).nullity(&topology);
            let all = m.parameter_count();
            assert_eq!((all - first, all - second), (rank, rank), "{regime:?}");
            let (rough, gap) = numeric_recursion(&geometry, &topology, regime);
            // Rounding errors may hide the rank, but not if the gap is clear.
            if gap.kept > 1e4 * gap.dropped {
                assert_eq!(all - rough, rank, "{regime:?} {gap:?}");
            } else {
                unclear += 1;
            }
        }
    }
    assert!(covered > 100 && clear > 250 && unclear < 15, "{covered} {clear} {unclear}");
}

/// Changes along the null space of the analysis do not change the torques.
#[test]
fn null_vectors_leave_inverse_dynamics_unchanged() {
    for mut case in cases(60, Features::LINEAR) {
        let m = &case.mechanism;
        let answer = analyze(m, &AnalyzeOptions::default()).unwrap();
        let r = &answer.regrouping;
        let given = m.parameters();
        // Other parameters with the same base parameters.
        let noise: Vec<f64> = given.iter().map(|x| x + case.rng.range(-1.0, 1.0)).collect();
        let other = r.expand(&r.regroup(&given).unwrap(), &noise).unwrap();
        let changed = m.clone().with_parameters(&other).unwrap();
        let (before, after) = (
            reference_rnea(m, &case.q, &case.v, &case.a),
            reference_rnea(&changed, &case.q, &case.v, &case.a),
        );
        let size = before.iter().chain(&other).fold(1.0f64, |s, x| s.max(x.abs()));
        for (a, b) in before.iter().zip(&after) {
            assert!((a - b).abs() < 1e-7 * size * size, "{a} {b} of {size}");
        }
    }
}

/// Torque regressors at random states, computed independently, have the rank of the energy regressor (section 7.4).
#[test]
fn energy_and_torque_regressors_have_equal_rank() {
    let mut clear = 0;
    for mut case in cases(40, Features::LINEAR) {
        let m = &case.mechanism;
        let (nv, width) = (m.nv(), m.parameter_count());
        let states = 2 * width / nv + 20;
        let mut rows = DMatrix::zeros(states * nv, width);
        for k in 0..states {
            let q = case.rng.positions(m);
            let (v, a) = (case.rng.values(nv, 1.0), case.rng.values(nv, 1.0));
            rows.rows_mut(k * nv, nv).copy_from(&reference_regressor(m, &q, &v, &a));
        }
        let found = rank(&rows, 1e-10).unwrap();
        let answer = analyze(m, &AnalyzeOptions::default()).unwrap();
        assert!(answer.certificate.exact);
        // A clear gap of the singular values gives the correct rank.
        if found.margin() > 1e3 {
            clear += 1;
            assert_eq!(answer.rank, found.rank, "{found:?}");
        }
    }
    assert!(clear > 30, "only {clear} of 40 have a clear gap");
}

#[test]
fn the_base_wrench_identifies_links_but_not_rotors() {
    for name in ["puma560", "cheetah_leg", "scara"] {
        let g = golden::file(name);
        let rank = |rotors: bool, measured| {
            let m = golden::model(&g, true, true, rotors);
            let options = AnalyzeOptions::default().with(|o| o.measured = Some(measured));
            let answer = analyze(&m, &options).unwrap();
            assert!(answer.certificate.exact);
            answer.rank
        };
        // Ayusawa's theorem (appendix H), and the footnote of section 8.
        assert_eq!(rank(false, Measured::BaseWrench), rank(false, Measured::Both));
        assert!(rank(true, Measured::BaseWrench) < rank(true, Measured::Both));
        assert_eq!(rank(false, Measured::Momentum), rank(false, Measured::BaseWrench));
    }
}

#[test]
fn free_flight_loses_at_least_the_total_mass() {
    let g = golden::file("puma560");
    let m = golden::model(&g, true, true, false);
    let flight = |measured| {
        let options = AnalyzeOptions::default().with(|o| {
            o.ballistic = true;
            o.measured = Some(measured);
        });
        let answer = analyze(&m, &options).unwrap();
        assert!(answer.certificate.exact);
        answer.rank
    };
    let full = analyze(&m, &AnalyzeOptions::default()).unwrap();
    // Without a torque every equation is homogeneous and the scale is not identifiable (remark 10); a torque sensor determines
    // it.
    assert_eq!((flight(Measured::BaseWrench), flight(Measured::Both), full.rank), (51, 52, 52));
    let options = AnalyzeOptions::default().with(|o| o.ballistic = true);
    let fixed = golden::model(&g, false, true, false);
    assert!(analyze(&fixed, &options).is_err());
}

#[test]
fn fewer_torque_sensors_reduce_the_rank() {
    let g = golden::file("puma560");
    let m = golden::model(&g, false, true, false);
    let rank = |names: &[&str]| {
        let torque_joints = Some(names.iter().map(|&n| n.to_owned()).collect());
        analyze(&m, &AnalyzeOptions::default().with(|o| o.torque_joints = torque_joints)).unwrap().rank
    };
    let all = ["joint1", "joint2", "joint3", "joint4", "joint5", "joint6"];
    assert_eq!(rank(&all), 36);
    assert_eq!(rank(&[]), 0);
    assert!(rank(&all[3..]) < rank(&all[2..]) && rank(&all[2..]) < 36);
    // The last joint alone: hx, hy and the inertias of the last link that affect its own axis.
    assert_eq!(rank(&["joint6"]), 7);
    let wrong = AnalyzeOptions::default().with(|o| o.torque_joints = Some(vec!["elbow".into()]));
    assert_eq!(
        analyze(&m, &wrong).unwrap_err().to_string(),
        "joint \"elbow\": there is no moving joint of that name; there are joint1, joint2, joint3, joint4, joint5, joint6"
    );
}

#[test]
fn every_method_gives_the_same_base_parameters() {
    for name in ["puma560", "scara", "y_tree"] {
        let g = golden::file(name);
        let m = golden::model(&g, false, true, true);
        let by = |method| analyze(&m, &AnalyzeOptions::default().with(|o| o.method = method)).unwrap();
        let (rpna, exact, numeric) = (by(Method::Rpna), by(Method::Exact), by(Method::Numeric));
        for other in [&exact, &numeric] {
            assert_eq!(rpna.regrouping.base, other.regrouping.base, "{name} {}", other.method);
            assert_eq!(rpna.regrouping.status, other.regrouping.status, "{name} {}", other.method);
            for (a, b) in rpna.regrouping.combinations.iter().zip(&other.regrouping.combinations) {
                assert_eq!(a.len(), b.len());
                assert!(a.iter().zip(b).all(|(x, y)| x.0 == y.0 && (x.1 - y.1).abs() < 1e-8), "{a:?} {b:?}");
            }
            let spans = |a: &inertial::identifiability::Analysis| {
                let links = a.bodies.iter().filter(|b| b.joint_type != "rotor");
                links.map(|b| (b.velocity_span, b.identifiable_span)).collect::<Vec<_>>()
            };
            assert_eq!(spans(&rpna), spans(other), "{name} {}", other.method);
        }
        assert!(exact.certificate.exact && !numeric.certificate.exact);
    }
}

/// The basis of appendix G lies exactly in the null space at random configurations.
#[test]
fn null_vectors_of_the_recursion_vanish_exactly() {
    let (mut covered, mut vectors) = (0, 0);
    for case in cases(60, Features { mimics: false, ..Features::LINEAR }) {
        let m = &case.mechanism;
        let exact = ExactGeometry::new(m, 1e-4);
        let geometry = exact.to::<Real>();
        let Ok(topology) = Topology::new(&geometry) else { continue };
        covered += 1;
        let found = Rpna::new(&geometry, &topology, Regime::Full);
        let experiment = complete(m, Regime::Full);
        let field = exact.to::<First>();
        let mut sampler = Sampler::new(m, &field, &experiment, 5);
        let mut row = Vec::new();
        let mut offsets = vec![0; m.bodies().len()];
        m.parameter_blocks().iter().for_each(|b| offsets[b.body] = b.offset);
        for (_, vector) in found.null_vectors(&geometry, &topology) {
            sampler.row(&mut row);
            let mut sum = First::new(0);
            for (body, values) in vector {
                let len = m.bodies()[body].parameter_count();
                for (k, x) in values.as_slice()[10 - len..].iter().enumerate() {
                    sum += row[offsets[body] + k] * x.exact;
                }
            }
            assert_eq!(sum.value(), 0);
            vectors += 1;
        }
    }
    assert!(covered > 20 && vectors > 200, "only {covered} mechanisms, {vectors} vectors");
}
