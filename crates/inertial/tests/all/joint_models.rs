//! Joint models on simulated logs with known parameters: coupled drives, Stribeck and asymmetric friction, terms by formula.

#![allow(clippy::unwrap_used)]

use crate::common::{Rng, reference_rnea};
use inertial::dynamics::{InverseDynamics, Samples};
use inertial::estimation::{
    Coupling, Equations, Estimator, Gains, Identification, IdentifyOptions, JointModel, JointTerms,
    KnownPayload, LeastSquares, Measurements, PayloadLink, RowFilter, Summary, Term, Verdict, Weighting,
    identify, validate,
};
use inertial::mechanism::{BuildOptions, DEFAULT_SNAP, Mechanism, builtin};
use inertial::spatial::Inertia;
use nalgebra::{Matrix3, Vector3};

const ALL: JointTerms = {
    let mut terms = JointTerms::friction();
    terms.offset = true;
    terms.rotor_inertia = true;
    terms
};

fn model(name: &str) -> Mechanism {
    let mut builder = builtin::get(name).unwrap();
    builder.joints.iter_mut().for_each(|j| j.dynamics.armature = 0.0);
    builder.build(&BuildOptions::default()).unwrap()
}

struct Log {
    q: Vec<f64>,
    v: Vec<f64>,
    a: Vec<f64>,
    tau: Vec<f64>,
    columns: Vec<f64>,
}

/// Simulates random states; `joints` adds the joint forces.
fn simulate(
    mechanism: &Mechanism,
    count: usize,
    rng: &mut Rng,
    mut joints: impl FnMut(&[f64], &[f64], &[f64], f64, &mut [f64]),
) -> Log {
    let nv = mechanism.nv();
    let mut log = Log { q: vec![], v: vec![], a: vec![], tau: vec![], columns: vec![] };
    for _ in 0..count {
        let q = rng.positions(mechanism);
        let (v, a) = (rng.values(nv, 2.0), rng.values(nv, 5.0));
        let pressure = rng.range(-1.0, 1.0);
        let mut tau = reference_rnea(mechanism, &q, &v, &a);
        joints(&q, &v, &a, pressure, &mut tau);
        log.q.extend(q);
        log.v.extend(v);
        log.a.extend(a);
        log.tau.extend(tau);
        log.columns.push(pressure);
    }
    log
}

impl Log {
    fn summary(&self, equations: &Equations<'_>) -> Summary {
        let dynamics = InverseDynamics::new(equations.mechanism());
        let count = self.columns.len();
        let samples = Samples::new(&dynamics, count, &self.q, &self.v, &self.a).unwrap();
        let mut data = Measurements::new(samples, &self.tau);
        if !equations.joint_model().columns.is_empty() {
            data.columns = Some(&self.columns);
        }
        Summary::new(equations, &data).unwrap()
    }

    fn noisy(mut self, sigma: f64, rng: &mut Rng) -> Self {
        // Box-Muller transform.
        let mut normal = || {
            let (u, w) = (rng.range(1e-300, 1.0), rng.range(0.0, std::f64::consts::TAU));
            (-2.0 * u.ln()).sqrt() * w.cos()
        };
        self.tau.iter_mut().for_each(|t| *t += sigma * normal());
        self
    }
}

/// Adds the friction and rotor inertia of drives that turn with `shafts`, by virtual work.
fn drives(shafts: &[Vec<(usize, f64)>], v: &[f64], a: &[f64], tau: &mut [f64]) {
    for (i, shaft) in shafts.iter().enumerate() {
        let k = 1.0 + i as f64;
        let along = |x: &[f64]| shaft.iter().map(|(j, c)| c * x[*j]).sum::<f64>();
        let force = 0.3 * k * along(v) + 2.0 / k * along(v).signum() + 0.05 * k * along(a);
        shaft.iter().for_each(|(j, c)| tau[*j] += c * force);
    }
}

fn own_shafts(nv: usize) -> Vec<Vec<(usize, f64)>> {
    (0..nv).map(|v| vec![(v, 1.0)]).collect()
}

fn plain(equations: &Equations<'_>, summary: &Summary) -> Identification {
    let options = IdentifyOptions::default().with(|o| o.estimator = Estimator::Wls);
    identify(equations, summary, None, &options).unwrap()
}

#[test]
fn a_known_coupling_is_identified_exactly() {
    let mechanism = model("puma560");
    let mut shafts = own_shafts(6);
    // A coefficient other than one, and a drive with three joints.
    shafts[5] = vec![(3, -0.5), (4, 1.0), (5, 1.0)];
    let log = simulate(&mechanism, 400, &mut Rng(1), |_, v, a, _, tau| drives(&shafts, v, a, tau));
    let mut joints = JointModel::from(ALL);
    joints.couplings.push(Coupling { motor: 5, shaft: vec![(5, 1.0), (3, -0.5), (4, 1.0)] });
    let equations = Equations::new(&mechanism, joints, DEFAULT_SNAP).unwrap();
    let found = LeastSquares::new(&equations, &log.summary(&equations), Weighting::Weighted).unwrap();
    assert_eq!(found.excited, equations.len());
    for (&(v, term), x) in equations.terms.iter().zip(&found.values.as_slice()[equations.rank()..]) {
        let k = 1.0 + v as f64;
        let truth = match term {
            Term::Viscous => 0.3 * k,
            Term::Coulomb => 2.0 / k,
            Term::RotorInertia => 0.05 * k,
            _ => 0.0,
        };
        assert!((x - truth).abs() < 1e-9, "{v} {term:?}: {x} {truth}");
    }
}

#[test]
fn predictions_are_those_of_the_model_that_was_found() {
    let mechanism = model("puma560");
    let joints = JointModel::from(ALL).with(|m| m.search_couplings = true);
    let wide = Equations::new(&mechanism, joints, DEFAULT_SNAP).unwrap();
    let mut rng = Rng(5);
    let mut shafts = own_shafts(6);
    shafts[5] = vec![(4, 1.0), (5, 1.0)];
    let log = simulate(&mechanism, 400, &mut rng, |_, v, a, _, tau| drives(&shafts, v, a, tau));
    let log = log.noisy(0.2, &mut rng);
    let found = plain(&wide, &log.summary(&wide));
    let chosen = wide.chosen(&found).unwrap();
    let samples = Samples::new(&InverseDynamics::new(&mechanism), 400, &log.q, &log.v, &log.a).unwrap();
    let mut data = Measurements::new(samples, &log.tau);
    data.columns = None;
    let predicted = chosen.predict(&data, &found.values).unwrap();
    for (j, reported) in found.fit.iter().enumerate() {
        let squares =
            (0..400).map(|s| (log.tau[6 * s + j] - predicted.force[6 * s + j]).powi(2)).sum::<f64>();
        // The summary is computed from triangular factors; only rounding errors differ.
        assert!(((squares / 400.0).sqrt() / reported.rms - 1.0).abs() < 1e-9, "{}", reported.joint);
    }
    for s in 0..400 {
        let mut expected = [0.0; 6];
        for (i, shaft) in shafts.iter().enumerate() {
            let speed: f64 = shaft.iter().map(|(j, c)| c * log.v[6 * s + j]).sum();
            let drive = &found.joints[i];
            let force = drive.viscous.unwrap() * speed + drive.coulomb.unwrap() * speed.signum();
            shaft.iter().for_each(|(j, c)| expected[*j] += c * force);
        }
        for (j, x) in expected.iter().enumerate() {
            assert!((predicted.friction[6 * s + j] - x).abs() < 1e-12, "{j}");
        }
    }
}

#[test]
fn only_existing_couplings_are_found() {
    let mechanism = model("puma560");
    let joints = JointModel::from(ALL).with(|m| m.search_couplings = true);
    let equations = Equations::new(&mechanism, joints, DEFAULT_SNAP).unwrap();
    let mut rng = Rng(2);
    let (sum, difference) = (vec![(4, 1.0), (5, 1.0)], vec![(4, -1.0), (5, 1.0)]);
    for (fifth, sixth) in [
        (vec![(4, 1.0)], sum.clone()),
        (vec![(4, 1.0)], difference.clone()),
        (sum.clone(), vec![(5, 1.0)]),
        (sum, difference),
    ] {
        let mut shafts = own_shafts(6);
        (shafts[4], shafts[5]) = (fifth, sixth);
        let log = simulate(&mechanism, 400, &mut rng, |_, v, a, _, tau| drives(&shafts, v, a, tau));
        let found = plain(&equations, &log.noisy(0.2, &mut rng).summary(&equations));
        for (v, shaft) in shafts.iter().enumerate() {
            let names = mechanism.velocity_names();
            let expected = if shaft.len() == 1 {
                std::collections::BTreeMap::new()
            } else {
                shaft.iter().map(|&(k, c)| (names[k].clone(), c)).collect()
            };
            assert_eq!(found.joints[v].turns_with, expected);
        }
        assert!(found.warnings.has("coupling-adopted"), "{:?}", found.warnings);
        assert!((found.joints[5].coulomb.unwrap() - 2.0 / 6.0).abs() < 0.1);
    }
    // Without couplings the decrease of the weighted sum of squares is approximately chi-square with a few degrees of freedom:
    // above 30 less than once in 1e5 pairs; there are 50 pairs here.
    for _ in 0..10 {
        let log = simulate(&mechanism, 400, &mut rng, |_, v, a, _, tau| drives(&own_shafts(6), v, a, tau));
        let found = plain(&equations, &log.noisy(2.0, &mut rng).summary(&equations));
        assert!(found.joints.iter().all(|j| j.turns_with.is_empty()));
        assert!(!found.warnings.has("coupling-adopted") && !found.warnings.has("coupling-possible"));
    }
}

#[test]
fn no_coupling_is_adopted_if_consistent_bodies_do_not_fit() {
    let mechanism = model("puma560");
    // Bodies of negative mass: plain least squares finds them together with the coupled drives.
    let negative: Vec<f64> = mechanism.parameters().iter().map(|x| -x).collect();
    let impossible = mechanism.clone().with_parameters(&negative).unwrap();
    let mut shafts = own_shafts(6);
    shafts[5] = vec![(4, 1.0), (5, 1.0)];
    let mut rng = Rng(7);
    let log = simulate(&impossible, 400, &mut rng, |_, v, a, _, tau| drives(&shafts, v, a, tau));
    let joints = JointModel::from(ALL).with(|m| m.search_couplings = true);
    let equations = Equations::new(&mechanism, joints, DEFAULT_SNAP).unwrap();
    let summary = log.noisy(0.2, &mut rng).summary(&equations);
    assert!(!plain(&equations, &summary).joints[5].turns_with.is_empty());
    let found = identify(&equations, &summary, None, &IdentifyOptions::default()).unwrap();
    assert_eq!(found.verdict, Some(Verdict::DoNotUse));
    assert!(found.joints.iter().all(|j| j.turns_with.is_empty()));
    assert!(found.warnings.has("coupling-rejected"), "{:?}", found.warnings);
}

#[test]
fn a_selected_model_gives_the_result_of_a_given_one() {
    let mechanism = model("puma560");
    let mut shafts = own_shafts(6);
    shafts[5] = vec![(4, 1.0), (5, 1.0)];
    let mut rng = Rng(3);
    let log = simulate(&mechanism, 300, &mut rng, |_, v, a, _, tau| drives(&shafts, v, a, tau));
    let log = log.noisy(0.1, &mut rng);
    let mut joints = JointModel::from(ALL).with(|m| m.search_couplings = true);
    let wide = Equations::new(&mechanism, joints.clone(), DEFAULT_SNAP).unwrap();
    joints.search_couplings = false;
    joints.couplings.push(Coupling { motor: 5, shaft: shafts[5].clone() });
    let reported = Equations::new(&mechanism, joints, DEFAULT_SNAP).unwrap();
    let (x, y) = (plain(&wide, &log.summary(&wide)), plain(&reported, &log.summary(&reported)));
    assert_eq!(x.values.len(), y.values.len());
    for (x, y) in x.values.iter().zip(&y.values) {
        // Two reductions of the same data differ by rounding errors.
        assert!((x - y).abs() < 1e-9, "{x} {y}");
    }
}

#[test]
fn stribeck_speed_shape_and_force_are_found() {
    let mechanism = model("planar-2r");
    let joints = JointModel::from(ALL.with(|t| t.rotor_inertia = false)).with(|m| m.stribeck = true);
    let equations = Equations::new(&mechanism, joints, DEFAULT_SNAP).unwrap();
    for (speeds, exponent) in [([0.05, 0.4], 2.0), ([0.2, 0.03], 1.0)] {
        let friction = |_: &[f64], v: &[f64], _: &[f64], _: f64, tau: &mut [f64]| {
            for i in 0..2 {
                let rest = 1.5 * (-(v[i].abs() / speeds[i]).powf(exponent)).exp();
                tau[i] += 0.3 * v[i] + (0.8 + rest) * v[i].signum();
            }
        };
        let log = simulate(&mechanism, 4000, &mut Rng(4), friction);
        let found = plain(&equations, &log.summary(&equations));
        for (joint, speed) in found.joints.iter().zip(speeds) {
            assert_eq!(joint.stribeck_exponent, Some(exponent));
            // The column is interpolated to two thousandths of its height.
            assert!((joint.stribeck_velocity.unwrap() / speed - 1.0).abs() < 0.01, "{joint:?}");
            assert!((joint.stribeck.unwrap() / 1.5 - 1.0).abs() < 0.01, "{joint:?}");
            assert!(
                (joint.coulomb.unwrap() - 0.8).abs() < 0.003 && (joint.viscous.unwrap() - 0.3).abs() < 0.003
            );
        }
    }
}

#[test]
fn friction_of_each_direction_is_found_apart() {
    let mechanism = model("planar-2r");
    let terms = JointTerms::default().with(|t| t.viscous = true);
    let joints = JointModel::from(terms).with(|m| m.asymmetric = true);
    let equations = Equations::new(&mechanism, joints.clone(), DEFAULT_SNAP).unwrap();
    let log = simulate(&mechanism, 200, &mut Rng(5), |_, v, _, _, tau| {
        for i in 0..2 {
            tau[i] += 0.3 * v[i] + if v[i] > 0.0 { 0.7 } else { -0.4 };
        }
    });
    for joint in plain(&equations, &log.summary(&equations)).joints {
        assert!((joint.coulomb_positive.unwrap() - 0.7).abs() < 1e-9);
        assert!((joint.coulomb_negative.unwrap() - 0.4).abs() < 1e-9);
        assert_eq!(joint.coulomb, None);
    }
    let both = joints.with(|m| m.terms = terms.with(|t| t.offset = true));
    assert!(Equations::new(&mechanism, both, DEFAULT_SNAP).is_err());
}

#[test]
fn terms_by_formula_take_part() {
    let mechanism = model("planar-2r");
    let names = mechanism.velocity_names();
    let text = format!(
        r#"
        [define]
        angle = "q.{0} - offset"
        offset = "pi/3"
        [[term]]
        joint = "{0}"
        name = "spring"
        formula = "angle^3"
        nonnegative = true
        [[term]]
        joint = "{1}"
        name = "balance"
        formula = "log.pressure * dq2"
        "#,
        names[0], names[1]
    );
    let terms = JointTerms::default().with(|t| t.viscous = true);
    let joints = JointModel::parse(&mechanism, terms, &text).unwrap();
    assert_eq!(joints.columns, ["pressure"]);
    let equations = Equations::new(&mechanism, joints, DEFAULT_SNAP).unwrap();
    let log = simulate(&mechanism, 200, &mut Rng(6), |q, v, _, pressure, tau| {
        tau[0] += 0.2 * v[0] + 1.3 * (q[0] - std::f64::consts::FRAC_PI_3).powi(3);
        tau[1] += 0.2 * v[1] - 0.6 * pressure * v[1];
    });
    let found = plain(&equations, &log.summary(&equations));
    assert!((found.joints[0].terms["spring"] - 1.3).abs() < 1e-9);
    assert!((found.joints[1].terms["balance"] + 0.6).abs() < 1e-9);

    for (bad, message) in [
        ("[[term]]\njoint = \"x\"\nname = \"n\"\nformula = \"1\"", "no joint x"),
        ("[[term]]\nname = \"n\"\nformula = \"1\"", "missing field `joint`"),
        (
            "[define]\na = \"b\"\nb = \"a\"\n[[term]]\njoint = \"J\"\nname = \"n\"\nformula = \"a\"",
            "defined by itself",
        ),
        ("[[term]]\njoint = \"J\"\nname = \"n\"\nformula = \"q9\"", "unknown name q9"),
        ("spring = 1", "line 1"),
    ] {
        let text = bad.replace('J', &names[0]);
        let error = JointModel::parse(&mechanism, terms, &text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

/// Tests each limit of a joint model at its value and one above it.
#[test]
fn joint_models_beyond_a_limit_are_refused() {
    let mechanism = model("planar-2r");
    let joint = &mechanism.velocity_names()[0];
    let parse = |text: &str| JointModel::parse(&mechanism, JointTerms::default(), text);
    let refused = |text: &str, message: &str| {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(message) && !error.contains('\n'), "{error}");
    };
    let term = |k: usize, formula: &str| {
        format!("[[term]]\njoint = \"{joint}\"\nname = \"n{k}\"\nformula = \"{formula}\"\n")
    };
    let terms = |count: usize| (0..count).map(|k| term(k, &format!("sin({k}*q1)"))).collect::<String>();
    assert_eq!(parse(&terms(300)).unwrap().given.len(), 300);
    refused(&terms(301), "301 terms, expected at most 300");
    let columns = |count: usize| {
        let names: Vec<String> = (0..count).map(|k| format!("log.c{k}")).collect();
        term(0, &names.join("+"))
    };
    assert_eq!(parse(&columns(1000)).unwrap().columns.len(), 1000);
    refused(&columns(1001), "log.c1000: expected at most 1000 columns of the log");
    // Every definition has as many brackets as a formula may have.
    let nested = |count: usize| {
        let (open, close) = ("(".repeat(99), ")".repeat(99));
        let lines = (1..count).map(|k| format!("a{k} = \"{open}a{}{close}\"\n", k + 1));
        let define = lines.collect::<Vec<_>>().concat();
        format!("[define]\n{define}a{count} = \"{open}q1{close}\"\n{}", term(0, "a1"))
    };
    assert!(parse(&nested(20)).is_ok());
    refused(&nested(21), "a21: more than 20 nested definitions");
    refused(&nested(20_000), "a21: more than 20 nested definitions");
}

#[test]
fn filtered_equations_hold_for_measured_forces() {
    let mechanism = model("puma560");
    let terms = ALL.with(|t| t.coulomb = false);
    let equations = Equations::new(&mechanism, terms, DEFAULT_SNAP).unwrap();
    let plain_drives = |v: &[f64], a: &[f64], tau: &mut [f64]| {
        (0..6).for_each(|k| tau[k] += 0.7 * v[k] + 0.2 * a[k] - 0.5);
    };
    // More samples than one block of the reduction holds.
    let count = 3000;
    let log = simulate(&mechanism, count, &mut Rng(3), |_, v, a, _, tau| plain_drives(v, a, tau));
    let filter = RowFilter::new(1.0, 13.0).unwrap();
    assert_eq!((filter.half(), filter.every(), filter.weights().len()), (20, 3, 41));
    let summary = |first: usize, count: usize, beyond: [usize; 2], tau: &[f64], keep: Option<&[bool]>| {
        let dynamics = InverseDynamics::new(&mechanism);
        let part = |x: &[f64]| x[6 * first..6 * (first + count)].to_vec();
        let (q, v, a, tau) = (part(&log.q), part(&log.v), part(&log.a), part(tau));
        let samples = Samples::new(&dynamics, count, &q, &v, &a).unwrap();
        let mut data = Measurements::new(samples, &tau);
        (data.filter, data.beyond, data.keep) = (Some(&filter), beyond, keep);
        Summary::new(&equations, &data).unwrap()
    };
    let whole = summary(0, count, [0; 2], &log.tau, None);
    let found = LeastSquares::new(&equations, &whole, Weighting::Weighted).unwrap().values;
    for (&(_, term), x) in equations.terms.iter().zip(&found.as_slice()[equations.rank()..]) {
        let truth = match term {
            Term::Viscous => 0.7,
            Term::Offset => -0.5,
            _ => 0.2,
        };
        // Noise-free data: rounding errors of some hundred numbers of about 10 each.
        assert!((x - truth).abs() < 1e-9, "{term:?}: {x}");
    }
    // Residuals of disturbed forces, filtered separately.
    let mut rng = Rng(4);
    let error = rng.values(6 * count, 1.0);
    let disturbed: Vec<f64> = log.tau.iter().zip(&error).map(|(t, e)| t + e).collect();
    let residuals = validate(&equations, &summary(0, count, [0; 2], &disturbed, None), found.as_slice());
    let half = filter.half();
    for (k, residual) in residuals.unwrap().joints.iter().enumerate() {
        let rows: Vec<f64> = (half.next_multiple_of(3)..count - half)
            .step_by(3)
            .map(|c| filter.weights().iter().zip(c - half..).map(|(w, s)| w * error[6 * s + k]).sum())
            .collect();
        let rms = (rows.iter().map(|x: &f64| x * x).sum::<f64>() / rows.len() as f64).sqrt();
        assert!((residual.rms / rms - 1.0).abs() < 1e-9, "{}: {rms}", residual.rms);
    }
    // Overlapping parts give the same result as the whole log; their borders are multiples of the row spacing.
    let mut merged = summary(0, 1200 + half, [0, half], &disturbed, None);
    merged.merge(&summary(1200 - 21, count - 1200 + 21, [21, 0], &disturbed, None)).unwrap();
    let all = summary(0, count, [0; 2], &disturbed, None);
    let [one, two] =
        [&merged, &all].map(|s| LeastSquares::new(&equations, s, Weighting::Weighted).unwrap().values);
    assert!((&one - &two).amax() < 1e-10 * two.amax(), "{:e}", (&one - &two).amax());
    // An excluded sample affects only the rows around it.
    let mut broken = disturbed.clone();
    broken[6 * 700] = 1e6;
    let keep: Vec<bool> = (0..6 * count).map(|i| (i / 6).abs_diff(700) > 12).collect();
    let rms = |keep: Option<&[bool]>| {
        let summary = summary(0, count, [0; 2], &broken, keep);
        validate(&equations, &summary, found.as_slice()).unwrap().joints[0].rms
    };
    // The weights beyond twelve samples sum to the tenth that a row may lose, so that part of the outlier of 1e6 remains visible.
    assert!(rms(None) > 1e3 && rms(Some(&keep)) < 0.01 * rms(None));
}

/// Simulates logs of a robot without and with a payload on its last link, with torques divided by `gains`.
fn with_gains(mechanism: &Mechanism, payload: &Inertia<f64>, gains: &[f64], rng: &mut Rng) -> [Log; 2] {
    let last = mechanism.bodies().len() - 1;
    let mut loaded = mechanism.parameters();
    let block = mechanism.parameter_blocks().iter().find(|b| b.body == last).unwrap();
    loaded[block.offset..block.offset + 10]
        .iter_mut()
        .zip(payload.parameters().iter())
        .for_each(|(x, p)| *x += p);
    let loaded = mechanism.clone().with_parameters(&loaded).unwrap();
    [mechanism, &loaded].map(|robot| {
        let mut log = simulate(robot, 300, rng, |_, v, a, _, tau| {
            drives(&own_shafts(v.len()), v, a, tau);
        });
        log.tau.iter_mut().enumerate().for_each(|(i, t)| *t /= gains[i % gains.len()]);
        log
    })
}

#[test]
fn gains_of_drives_follow_from_a_known_payload() {
    let mechanism = model("puma560");
    let equations = Equations::new(&mechanism, ALL, DEFAULT_SNAP).unwrap();
    let truth = [0.7, 1.4, 1.0, 2.0, 0.5, 1.1];
    let payload = Inertia::from_com(2.0, Vector3::new(0.05, -0.02, 0.15), Matrix3::identity() * 0.01);
    let link = mechanism.links().iter().rfind(|l| l.body == Some(mechanism.bodies().len() - 1)).unwrap();
    let carrier = PayloadLink::new(&equations, &link.name).unwrap();
    let logs = with_gains(&mechanism, &payload, &truth, &mut Rng(21));
    let [empty, loaded] = logs.each_ref().map(|log| log.summary(&equations));
    let known = KnownPayload { summary: &loaded, link: &carrier, payload, is_free: false };
    // Only the mass of the payload is known: its other parameters are estimated.
    let weighed = Gains::new(&equations, &empty, Some(KnownPayload { is_free: true, ..known }), 0.5).unwrap();
    for (g, t) in weighed.values.iter().zip(truth) {
        assert!((g / t - 1.0).abs() < 1e-5, "{:?}", weighed.values);
    }
    let (found, _) = weighed.payload.unwrap();
    assert!((found - payload.parameters()).amax() < 1e-4, "{found}");
    let gains = Gains::new(&equations, &empty, Some(known), 0.5).unwrap();
    assert!(gains.status.is_converged());
    for (g, t) in gains.values.iter().zip(truth) {
        // The noise is assumed to be at least 1e-9 of the largest force, and the prior is weighted relative to it.
        assert!((g / t - 1.0).abs() < 1e-7, "{:?}", gains.values);
    }
    let mut all = gains.apply(&equations, &empty, false).unwrap();
    all.merge(&gains.apply(&equations, &loaded, true).unwrap()).unwrap();
    let mut found = plain(&equations, &all);
    gains.note(&equations, &mut found);
    let exact = plain(&equations, &simulate_again(&mechanism, &equations));
    for (a, b) in found.base_parameters.iter().zip(&exact.base_parameters) {
        assert!(
            (a.value - b.value).abs() < 1e-6 * (1.0 + b.value.abs()),
            "{} {} {}",
            a.name,
            a.value,
            b.value
        );
    }
    assert!(found.joints.iter().all(|j| j.gain.is_some()) && found.fit_relative_rms < 1e-6);

    // Without a payload only ratios are identifiable: the common factor is that of the prior, with the uncertainty of the mean of
    // six such gains.
    let alone = Gains::new(&equations, &empty, None, 0.5).unwrap();
    let ratio = alone.values[0] / truth[0];
    assert!(alone.values.iter().zip(truth).all(|(g, t)| (g / t / ratio - 1.0).abs() < 1e-5));
    let mean: f64 = alone.values.iter().map(|g| g.ln()).sum();
    assert!(mean.abs() < 1e-4, "{mean}");
    let relative = alone.std_errors[0] / alone.values[0];
    assert!((relative - 0.5 / 6.0_f64.sqrt()).abs() < 1e-3, "{relative}");
    let mut uncertain = plain(&equations, &alone.apply(&equations, &empty, false).unwrap());
    alone.note(&equations, &mut uncertain);
    assert!(uncertain.warnings.has("uncertain-gains"), "{:?}", uncertain.warnings);
    assert!(Gains::new(&equations, &empty, None, 0.0).is_err());
    assert!(Gains::new(&equations, &Summary::empty(&equations), None, 0.5).is_err());
}

/// Returns the summary of a log with correct torques.
fn simulate_again(mechanism: &Mechanism, equations: &Equations<'_>) -> Summary {
    let log = simulate(mechanism, 300, &mut Rng(22), |_, v, a, _, tau| {
        drives(&own_shafts(v.len()), v, a, tau);
    });
    log.summary(equations)
}

#[test]
fn errors_of_gains_are_as_stated() {
    const DRAWS: usize = 60;
    let mechanism = model("planar-2r");
    let equations = Equations::new(&mechanism, ALL, DEFAULT_SNAP).unwrap();
    let truth = [0.8, 1.3];
    let payload = Inertia::from_com(1.0, Vector3::new(0.2, 0.0, 0.0), Matrix3::identity() * 0.01);
    let link = mechanism.links().iter().rfind(|l| l.body == Some(mechanism.bodies().len() - 1)).unwrap();
    let carrier = PayloadLink::new(&equations, &link.name).unwrap();
    let mut rng = Rng(23);
    let mut squares = [0.0; 4];
    let exact = plain(&equations, &simulate_again(&mechanism, &equations));
    for draw in 0..DRAWS {
        let logs = with_gains(&mechanism, &payload, &truth, &mut rng).map(|log| log.noisy(0.3, &mut rng));
        let [empty, loaded] = logs.each_ref().map(|log| log.summary(&equations));
        // The centre of mass is free in every second draw.
        let known = KnownPayload { summary: &loaded, link: &carrier, payload, is_free: draw % 2 == 1 };
        // The prior is so wide that it is negligible compared with the data.
        let gains = Gains::new(&equations, &empty, Some(known), 10.0).unwrap();
        for k in 0..2 {
            squares[k] += ((gains.values[k] - truth[k]) / gains.std_errors[k]).powi(2);
        }
        let mut all = gains.apply(&equations, &empty, false).unwrap();
        all.merge(&gains.apply(&equations, &loaded, true).unwrap()).unwrap();
        let mut found = plain(&equations, &all);
        gains.note(&equations, &mut found);
        let (a, b) = (&found.base_parameters[0], &exact.base_parameters[0]);
        squares[2] += ((a.value - b.value) / a.std_error).powi(2);
        let (a, b) = (&found.joints[1], &exact.joints[1]);
        squares[3] += ((a.viscous.unwrap() - b.viscous.unwrap()) / a.std_errors["viscous"]).powi(2);
    }
    // Mean of 60 squared standard normals: 1 ± 0.18; outside 5 deviations less than once in a hundred thousand (the upper tail is
    // heavier than the normal one).
    for s in squares {
        assert!((s / DRAWS as f64 - 1.0).abs() < 0.92, "{squares:?}");
    }
}
