//! Diagnosis of faulty logs and models, on simulated logs with known parameters.

#![allow(clippy::unwrap_used)]

use std::f64::consts::PI;

use crate::automatic_terms::{Log, automatic};
use crate::common::logs::{model, normal};
use crate::common::{Rng, reference_rnea};
use inertial::dynamics::InverseDynamics;
use inertial::estimation::{
    Deviation, DeviationKind, Equations, Excerpt, Identification, IdentifyOptions, JointTerms, OtherLength,
    ReasonCode, Summary, Verdict, diagnose, identify,
};
use inertial::mechanism::{BuildOptions, DEFAULT_SNAP, Mechanism, builtin};

/// Returns the result of a log with a diagnosis.
fn diagnosed(mechanism: &Mechanism, log: &Log, lengths: Vec<OtherLength>) -> Identification {
    diagnosed_at(mechanism, log, 0.02, lengths)
}

/// Returns the result of a log whose samples are `step` seconds apart, with a diagnosis.
fn diagnosed_at(mechanism: &Mechanism, log: &Log, step: f64, lengths: Vec<OtherLength>) -> Identification {
    let equations = Equations::new(mechanism, automatic(), DEFAULT_SNAP).unwrap();
    let options = IdentifyOptions::default();
    let mut result = identify(&equations, &log.summary(&equations), None, &options).unwrap();
    let mut excerpt = Excerpt::default();
    let dynamics = InverseDynamics::new(mechanism);
    excerpt.add(&equations, &log.measurements(&dynamics, 0, log.len()), step, log.len() / 800).unwrap();
    diagnose(&equations.chosen(&result).unwrap(), &mut result, &excerpt, lengths, &options).unwrap();
    result
}

/// Simulates a log of the Puma with friction and little noise.
fn puma(mechanism: &Mechanism, seed: u64) -> Log {
    let mut rng = Rng(seed);
    let joints = |_: usize, v: f64, _: f64| 2.0 * v + 4.0 * v.signum();
    Log::new(mechanism, 1600, &mut rng).with(joints).noisy(0.1, 0.5, &mut rng)
}

fn has(result: &Identification, code: ReasonCode, name: &str) -> bool {
    result.reasons.iter().any(|r| r.code == code && r.message.contains(name))
}

#[test]
fn a_sound_log_raises_no_reason() {
    let mechanism = model("puma560");
    for seed in 1..4 {
        let result = diagnosed(&mechanism, &puma(&mechanism, seed), Vec::new());
        assert_eq!(result.verdict, Some(Verdict::Good), "{:?}", result.reasons);
        let lag = result.deviations.iter().find(|d| d.kind == DeviationKind::Lag).unwrap();
        // Five standard errors plus the truncation error of central differences over 40 ms.
        assert!(lag.value.abs() < 5.0 * lag.std_error + 1e-4, "{lag:?}");
    }
}

#[test]
fn negated_and_exchanged_torques_are_named() {
    let mechanism = model("puma560");
    let names = mechanism.velocity_names();
    let mut log = puma(&mechanism, 9);
    log.tau.iter_mut().skip(1).step_by(6).for_each(|tau| *tau = -*tau);
    let result = diagnosed(&mechanism, &log, Vec::new());
    assert_eq!(result.verdict, Some(Verdict::DoNotUse));
    assert!(has(&result, ReasonCode::Sign, &names[1]), "{:?}", result.reasons);
    let mut log = puma(&mechanism, 9);
    log.tau.chunks_exact_mut(6).for_each(|tau| tau.swap(1, 2));
    let result = diagnosed(&mechanism, &log, Vec::new());
    assert!(has(&result, ReasonCode::Order, &names[1]), "{:?}", result.reasons);
    assert!(has(&result, ReasonCode::Order, &names[2]), "{:?}", result.reasons);
    assert!(result.joints.iter().all(|j| j.turns_with.is_empty()), "a coupling was adopted instead");
    assert!(!result.warnings.has("coupling-possible"), "{:?}", result.warnings);
}

#[test]
fn a_lag_is_measured() {
    let mechanism = model("puma560");
    let mut rng = Rng(4);
    // Coulomb friction would jump within the lag, whereas a prepared log is smooth.
    let mut log = Log::new(&mechanism, 1600, &mut rng).with(|_, v, _| 2.0 * v).noisy(0.1, 0.5, &mut rng);
    // A lag of one sample (20 ms).
    let late = log.nv;
    log.tau.rotate_right(late);
    log.tau.copy_within(late..2 * late, 0);
    let result = diagnosed(&mechanism, &log, Vec::new());
    let lag = result.deviations.iter().find(|d| d.kind == DeviationKind::Lag).unwrap();
    // Five standard errors plus the effect of the curvature of the torques over the lag.
    assert!((lag.value - 0.02).abs() < 5.0 * lag.std_error + 0.002, "{lag:?}");
    assert!(has(&result, ReasonCode::Lag, "ms"), "{:?}", result.reasons);
}

/// The lag of one torque was silent, or a lag of all torques was corrected instead.
#[test]
fn the_lag_of_one_torque_is_measured() {
    let mechanism = model("puma560");
    for joint in [1, 2] {
        let mut rng = Rng(4);
        let mut log = Log::new(&mechanism, 1600, &mut rng).with(|_, v, _| 2.0 * v).noisy(0.1, 0.5, &mut rng);
        let nv = log.nv;
        for k in (1..log.tau.len() / nv).rev() {
            log.tau[k * nv + joint] = log.tau[(k - 1) * nv + joint];
        }
        let result = diagnosed(&mechanism, &log, Vec::new());
        let name = &mechanism.velocity_names()[joint];
        let own = |d: &&Deviation| d.kind == DeviationKind::JointLag && d.of.as_ref() == Some(name);
        let lag = result.deviations.iter().find(own).unwrap();
        // Five standard errors plus the effect of the curvature of the torques over the lag.
        assert!((lag.value - 0.02).abs() < 5.0 * lag.std_error + 0.002, "{lag:?}");
        assert!(has(&result, ReasonCode::Lag, name), "{:?}", result.reasons);
        assert!(result.certain_lag().is_none(), "{:?}", result.deviations);
    }
}

#[test]
fn noise_does_not_make_a_lag_smaller() {
    let mechanism = model("puma560");
    for seed in 0..3 {
        let mut rng = Rng(seed + 20);
        // Noise of about a tenth of the torques.
        let mut log = Log::new(&mechanism, 1600, &mut rng).with(|_, v, _| 2.0 * v).noisy(3.0, 0.5, &mut rng);
        let late = log.nv;
        log.tau.rotate_right(late);
        log.tau.copy_within(late..2 * late, 0);
        let result = diagnosed(&mechanism, &log, Vec::new());
        let lag = result.deviations.iter().find(|d| d.kind == DeviationKind::Lag).unwrap();
        assert!((lag.value - 0.02).abs() < 4.0 * lag.std_error + 0.002, "{lag:?}");
    }
}

/// Noise of the acceleration in a wide band makes a lag appear far too small there; the low band contains little of it.
#[test]
fn a_lag_is_measured_despite_noisy_motion() {
    let mechanism = model("puma560");
    let (step, late) = (0.0025, 8);
    let mut rng = Rng(31);
    let mut log =
        Log::sampled(&mechanism, 8000, step, &mut rng).with(|_, v, _| 2.0 * v).noisy(0.1, 0.5, &mut rng);
    // Eight samples are 20 ms.
    log.tau.rotate_right(late * log.nv);
    log.a.iter_mut().for_each(|a| *a += 0.5 * normal(&mut rng));
    let result = diagnosed_at(&mechanism, &log, step, Vec::new());
    let lag = result.deviations.iter().find(|d| d.kind == DeviationKind::Lag).unwrap();
    // The nearest of the lags that are tried are 15 and 25 ms.
    assert!((lag.value - 0.02).abs() < 0.006, "{lag:?}");
    assert!(result.certain_lag().is_some());
}

/// In the low band, Coulomb friction was that of the filtered speed, which jumps: a small lag was not trusted there and not corrected.
#[test]
fn a_small_lag_is_measured_despite_noisy_motion_and_friction() {
    let mechanism = model("puma560");
    let (step, late) = (0.0025, 1);
    for seed in 0..2 {
        let mut rng = Rng(41 + seed);
        let joints = |_: usize, v: f64, _: f64| 2.0 * v + 4.0 * v.signum();
        let mut log = Log::sampled(&mechanism, 8000, step, &mut rng).with(joints).noisy(0.1, 0.5, &mut rng);
        // One sample is 2.5 ms.
        log.tau.rotate_right(late * log.nv);
        log.a.iter_mut().for_each(|a| *a += 3.0 * normal(&mut rng));
        let result = diagnosed_at(&mechanism, &log, step, Vec::new());
        let lag = result.deviations.iter().find(|d| d.kind == DeviationKind::Lag).unwrap();
        // The rest of the noise of the acceleration makes it an eighth smaller; a correction is repeated.
        assert!((lag.value - 0.0025).abs() < 8e-4, "{lag:?}");
        assert!(result.certain_lag().is_some(), "{lag:?}");
    }
}

/// A lag made viscous friction of joints with gravity small, so that it was left out; the lag then took its place (10 ± 1 ms instead of 6).
#[test]
fn viscous_friction_that_was_left_out_is_no_lag() {
    let mechanism = model("puma560");
    let mut rng = Rng(51);
    let log =
        Log::sampled(&mechanism, 4000, 0.005, &mut rng).with(|_, v, _| 4.0 * v).noisy(0.1, 0.5, &mut rng);
    // Least squares without friction, as if none had been selected.
    let equations = Equations::new(&mechanism, JointTerms::default(), DEFAULT_SNAP).unwrap();
    let options = IdentifyOptions::default();
    let mut result = identify(&equations, &log.summary(&equations), None, &options).unwrap();
    let mut excerpt = Excerpt::default();
    let dynamics = InverseDynamics::new(&mechanism);
    excerpt.add(&equations, &log.measurements(&dynamics, 0, log.len()), 0.005, 5).unwrap();
    diagnose(&equations, &mut result, &excerpt, Vec::new(), &options).unwrap();
    let lag = result.deviations.iter().find(|d| d.kind == DeviationKind::Lag).unwrap();
    assert!(lag.value.abs() < 5.0 * lag.std_error + 2e-4, "{lag:?}");
}

/// Masses and offsets explain most of a spring's torque, so that it explains little of the residual, but clearly.
#[test]
fn an_evident_spring_is_named_although_bodies_explain_most_of_it() {
    let mechanism = model("puma560");
    let mut log = puma(&mechanism, 52);
    for (tau, q) in log.tau.chunks_exact_mut(6).zip(log.q.chunks_exact(6)) {
        tau[1] += 2.0 * q[1];
    }
    let result = diagnosed(&mechanism, &log, Vec::new());
    let name = mechanism.velocity_names()[1].clone();
    // The share of the joint's residual alone would not be sufficient.
    let spring = |d: &&Deviation| d.kind == DeviationKind::Spring && d.of.as_ref() == Some(&name);
    let explains = result.deviations.iter().find(spring).unwrap().explains;
    assert!(6.0 * explains < 0.5, "{explains}");
    assert!(has(&result, ReasonCode::Spring, &name), "{:?} {:?}", result.reasons, result.deviations);
}

/// Halves of a repeated motion determine the same unknowns, interleaved parts do not.
#[test]
fn a_repeated_motion_with_one_measured_joint_has_no_drift() {
    let mechanism = model("puma560");
    for seed in 0..4 {
        let mut rng = Rng(seed + 60);
        let mut log = Log::sampled(&mechanism, 1000, 0.01, &mut rng);
        for x in [&mut log.q, &mut log.v, &mut log.a, &mut log.tau] {
            x.extend_from_within(..);
        }
        let log = log.noisy(0.1, 0.0, &mut rng);
        let keep: Vec<bool> = (0..log.tau.len()).map(|k| k % 6 == 2).collect();
        let dynamics = InverseDynamics::new(&mechanism);
        let mut data = log.measurements(&dynamics, 0, log.len());
        data.keep = Some(&keep);
        let equations = Equations::new(&mechanism, automatic(), DEFAULT_SNAP).unwrap();
        let summary = Summary::new(&equations, &data).unwrap();
        let result = identify(&equations, &summary, None, &IdentifyOptions::default()).unwrap();
        assert!(result.reasons.iter().all(|r| r.code != ReasonCode::Drift), "{:?}", result.reasons);
    }
}

/// Deviations of a motion that reverses once or twice have no valid standard errors.
#[test]
fn a_motion_with_few_reversals_is_not_diagnosed() {
    let mechanism = model("puma560");
    let mut rng = Rng(5);
    let log = Log::sampled(&mechanism, 150, 0.01, &mut rng).noisy(0.05, 0.0, &mut rng);
    let result = diagnosed_at(&mechanism, &log, 0.01, Vec::new());
    assert!(result.deviations.is_empty());
    assert!(result.warnings.has("not-diagnosed"), "{:?}", result.warnings);
}

/// The torque of a joint that sticks is arbitrary within its friction.
#[test]
fn a_held_gripper_is_not_doubtful() {
    let mechanism = model("puma560");
    let mut log = puma_with_light_wrist(&mechanism);
    let held = 5;
    log.q.iter_mut().skip(held).step_by(6).for_each(|q| *q = 0.2);
    for x in [&mut log.v, &mut log.a] {
        x.iter_mut().skip(held).step_by(6).for_each(|x| *x = 0.0);
    }
    let mut rng = Rng(8);
    let mut stiction = 0.0;
    for k in 0..log.len() {
        let own = 6 * k..6 * (k + 1);
        let (q, v, a) = (&log.q[own.clone()], &log.v[own.clone()], &log.a[own.clone()]);
        let rigid = reference_rnea(&mechanism, q, v, a);
        for (j, tau) in log.tau[own].iter_mut().enumerate() {
            let friction =
                if j < 3 { 2.0 * v[j] + 4.0 * v[j].signum() } else { 0.2 * v[j] + 0.3 * v[j].signum() };
            *tau = rigid[j] + friction + 0.02 * normal(&mut rng);
        }
        stiction = 0.99 * stiction + 0.01 * normal(&mut rng);
        log.tau[6 * k + held] = stiction;
    }
    let result = diagnosed(&mechanism, &log, Vec::new());
    assert!(result.fit[held].relative_rms > 0.25, "{:?}", result.fit[held]);
    assert_eq!(result.verdict, Some(Verdict::Good), "{:?}", result.reasons);
}

#[test]
fn a_link_heavier_than_the_robot_is_doubtful() {
    let mechanism = model("puma560");
    let mut log = puma(&mechanism, 3);
    log.tau.iter_mut().for_each(|tau| *tau *= 10.0);
    let result = diagnosed(&mechanism, &log, Vec::new());
    assert!(result.warnings.has("implausible"), "{:?}", result.warnings);
    assert!(has(&result, ReasonCode::Mass, "three times the whole robot"), "{:?}", result.reasons);
    assert_eq!(result.verdict, Some(Verdict::Doubtful));
}

/// The guess for a link of which only the length is known is not heavier than the rest of the robot.
#[test]
fn guessed_masses_are_limited_by_those_of_other_links() {
    let mut builder = builtin::get("puma560").unwrap();
    builder.joints.iter_mut().for_each(|j| j.dynamics.armature = 0.0);
    builder.joints[1].origin.translation.z += 1.4;
    let mechanism = builder.build(&BuildOptions::default()).unwrap();
    let log = puma(&mechanism, 6);
    let unknown = mechanism.clone().with_parameters(&vec![0.0; mechanism.parameter_count()]).unwrap();
    let result = diagnosed(&unknown, &log, Vec::new());
    assert!(result.warnings.has("guessed-prior"), "{:?}", result.warnings);
    let masses: Vec<f64> = result.bodies.iter().map(|b| b.mass).collect();
    let heaviest = masses.iter().copied().fold(0.0, f64::max);
    assert!(heaviest < 1.5 * (masses.iter().sum::<f64>() - heaviest), "{masses:?}");
}

#[test]
fn torques_in_other_units_are_doubtful() {
    let mechanism = model("puma560");
    for unit in [1e-3, 0.1, 10.0, 1e3] {
        let mut log = puma(&mechanism, 3);
        log.tau.iter_mut().for_each(|tau| *tau *= unit);
        let result = diagnosed(&mechanism, &log, Vec::new());
        assert!(has(&result, ReasonCode::Mass, "unit of the torques"), "{unit}: {:?}", result.reasons);
        assert!(result.verdict > Some(Verdict::Good));
    }
}

#[test]
fn zeros_that_are_off_by_quarter_turns_are_named() {
    let mechanism = model("puma560");
    let names = mechanism.velocity_names();
    // Other zeros have no effect, or only on the light wrist.
    let joint = 1;
    for (turn, corrected) in [(0.5, "-1.5708"), (-0.5, "1.5708"), (1.0, "3.1416")] {
        let mut log = puma(&mechanism, 12);
        log.q.iter_mut().skip(joint).step_by(6).for_each(|q| *q += turn * PI);
        let result = diagnosed(&mechanism, &log, Vec::new());
        assert!(has(&result, ReasonCode::Zero, &names[joint]), "{turn}: {:?}", result.reasons);
        assert!(has(&result, ReasonCode::Zero, corrected), "{turn}: {:?}", result.reasons);
        assert_eq!(result.verdict, Some(Verdict::DoNotUse));
    }
}

#[test]
fn a_tilted_base_is_measured() {
    let upright = model("puma560");
    let log = puma(&upright, 5);
    // The base of the model is tilted by 0.15 rad about y.
    let g = upright.gravity();
    let tilted = upright.clone().with_gravity(nalgebra::Rotation3::from_euler_angles(0.0, 0.15, 0.0) * g);
    let result = diagnosed(&tilted, &log, Vec::new());
    let tilt = result.deviations.iter().filter(|d| d.kind == DeviationKind::Tilt);
    let tilt = tilt.max_by(|a, b| a.explains.total_cmp(&b.explains)).unwrap();
    // The bodies were fitted with the wrong gravity, so one step gives the tilt only approximately.
    assert!(tilt.of.as_deref() == Some("y") && tilt.value < -0.05 && tilt.value > -0.3, "{tilt:?}");
    assert!(has(&result, ReasonCode::Gravity, "tilted"), "{:?}", result.reasons);
}

/// Simulates a log of the Puma whose wrist torques are hundredths of those of the other joints.
fn puma_with_light_wrist(mechanism: &Mechanism) -> Log {
    let mut rng = Rng(11);
    let joints = |j: usize, v: f64, _: f64| {
        if j < 3 { 2.0 * v + 4.0 * v.signum() } else { 0.2 * v + 0.3 * v.signum() }
    };
    Log::new(mechanism, 1600, &mut rng).with(joints).noisy(0.02, 0.5, &mut rng)
}

/// Faults of small torques are named although they hardly change the overall residual.
#[test]
fn negated_and_exchanged_torques_of_a_light_wrist_are_named() {
    let mechanism = model("puma560");
    let names = mechanism.velocity_names();
    for joint in 3..6 {
        let mut log = puma_with_light_wrist(&mechanism);
        log.tau.iter_mut().skip(joint).step_by(6).for_each(|tau| *tau = -*tau);
        let result = diagnosed(&mechanism, &log, Vec::new());
        assert!(result.fit_relative_rms < 0.05, "{}", result.fit_relative_rms);
        assert!(has(&result, ReasonCode::Sign, &names[joint]), "{:?}", result.reasons);
        assert_eq!(result.verdict, Some(Verdict::DoNotUse));
    }
    let mut log = puma_with_light_wrist(&mechanism);
    log.tau.chunks_exact_mut(6).for_each(|tau| tau.swap(3, 5));
    let result = diagnosed(&mechanism, &log, Vec::new());
    assert!(has(&result, ReasonCode::Order, &names[3]), "{:?}", result.reasons);
    assert!(has(&result, ReasonCode::Order, &names[5]), "{:?}", result.reasons);
    let result = diagnosed(&mechanism, &puma_with_light_wrist(&mechanism), Vec::new());
    assert_eq!(result.verdict, Some(Verdict::Good), "{:?}", result.reasons);
}

/// The torque of a joint with a stuck encoder follows the neighbouring joints, as that of a coupled drive does.
#[test]
fn a_stuck_encoder_is_named_and_no_coupling_adopted() {
    let mechanism = model("puma560");
    for joint in [1, 4] {
        let mut log = puma(&mechanism, 12);
        let first = log.q[joint];
        log.q.iter_mut().skip(joint).step_by(6).for_each(|q| *q = first);
        for x in [&mut log.v, &mut log.a] {
            x.iter_mut().skip(joint).step_by(6).for_each(|x| *x = 0.0);
        }
        let result = diagnosed(&mechanism, &log, Vec::new());
        assert!(has(&result, ReasonCode::Motion, &mechanism.velocity_names()[joint]), "{:?}", result.reasons);
        assert!(result.joints[joint].turns_with.is_empty(), "{:?}", result.joints[joint]);
    }
}

#[test]
fn outliers_are_named() {
    let mechanism = model("puma560");
    let mut log = puma(&mechanism, 13);
    log.tau.iter_mut().skip(1).step_by(6 * 39).for_each(|tau| *tau += 400.0);
    let result = diagnosed(&mechanism, &log, Vec::new());
    assert!(has(&result, ReasonCode::Outliers, &mechanism.velocity_names()[1]), "{:?}", result.reasons);
    assert!(result.verdict > Some(Verdict::Good));
}

/// A wrong torque constant is found although heavier links explain most of its effect.
#[test]
fn a_wrong_torque_constant_is_measured() {
    let mechanism = model("puma560");
    let mut log = puma(&mechanism, 14);
    log.tau.iter_mut().skip(1).step_by(6).for_each(|tau| *tau *= 1.3);
    let result = diagnosed(&mechanism, &log, Vec::new());
    let name = &mechanism.velocity_names()[1];
    let gain = result
        .deviations
        .iter()
        .find(|d| d.kind == DeviationKind::Gain && d.of.as_ref() == Some(name))
        .unwrap();
    // Five standard errors plus the error of one step from bodies that were fitted to the wrong torque.
    assert!((gain.value - 0.3).abs() < 5.0 * gain.std_error + 0.1, "{gain:?}");
    assert!(has(&result, ReasonCode::Gain, name), "{:?}", result.reasons);
}

/// A spring is found although gravity explains a part of its torque.
#[test]
fn a_spring_is_measured() {
    let mechanism = model("puma560");
    let name = &mechanism.velocity_names()[2];
    let mut log = puma(&mechanism, 15);
    let clean = diagnosed(&mechanism, &log, Vec::new());
    assert!(!has(&clean, ReasonCode::Spring, ""), "{:?}", clean.reasons);
    for (k, tau) in log.tau.iter_mut().enumerate().filter(|(k, _)| k % 6 == 2) {
        *tau += 8.0 * (log.q[k] - 0.3);
    }
    let result = diagnosed(&mechanism, &log, Vec::new());
    let is_spring = |d: &&Deviation| d.kind == DeviationKind::Spring && d.of.as_ref() == Some(name);
    let spring = result.deviations.iter().find(is_spring).unwrap();
    assert!((spring.value - 8.0).abs() < 5.0 * spring.std_error, "{spring:?}");
    assert!(has(&result, ReasonCode::Spring, name), "{:?}", result.reasons);
    assert_eq!(result.verdict, Some(Verdict::Doubtful), "{:?}", result.reasons);
}

/// The position controller of a held joint deflects it in proportion to the torque: this looked like a spring. Its torque within the
/// friction is arbitrary: this made the verdict "do not use".
#[test]
fn a_held_joint_is_no_spring_and_does_not_condemn_the_others() {
    let mechanism = model("puma560");
    let (joint, name) = (4, mechanism.velocity_names()[4].clone());
    let mut log = puma(&mechanism, 16);
    let mut rng = Rng(17);
    let (held, stiffness, mut friction) = (0.3, 1e4, 0.0);
    for k in 0..log.len() {
        let row = k * log.nv..(k + 1) * log.nv;
        let (q, v, a) = (&mut log.q[row.clone()], &mut log.v[row.clone()], &mut log.a[row.clone()]);
        let moved = reference_rnea(&mechanism, q, v, a);
        (q[joint], v[joint], a[joint]) = (held, 0.0, 0.0);
        let still = reference_rnea(&mechanism, q, v, a);
        let tau = &mut log.tau[row];
        tau.iter_mut().zip(still.iter().zip(&moved)).for_each(|(tau, (still, moved))| *tau += still - moved);
        friction = 0.95 * friction + 0.9 * normal(&mut rng);
        tau[joint] = still[joint] + friction;
        q[joint] -= tau[joint] / stiffness;
    }
    let result = diagnosed(&mechanism, &log, Vec::new());
    assert!(has(&result, ReasonCode::Motion, &name), "{:?}", result.reasons);
    assert!(!has(&result, ReasonCode::Spring, ""), "{:?}", result.reasons);
    assert_eq!(result.verdict, Some(Verdict::Doubtful), "{:?}", result.reasons);
}
