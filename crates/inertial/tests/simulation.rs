//! Simulated motion obeys the laws of mechanics, and agrees with other ways to the same numbers.

#![allow(clippy::unwrap_used, clippy::default_trait_access)]

mod common;

use common::Rng;
use inertial::dynamics::{Frame, Workspace, forward_kinematics, momentum};
use inertial::mechanism::{
    BuildOptions, JointSpec, JointType, LinkSpec, Mechanism, MechanismBuilder, WheelSpec, builtin,
};
use inertial::simulation::{FreeFlyer, PoseRule};
use inertial::spatial::{Force, Inertia, Pose};
use nalgebra::{Matrix3, Vector3, vector};

/// The dual-arm robot with a wheel more, on an arm, and a momentum.
fn flying() -> MechanismBuilder {
    let mut builder = builtin::get("space-dual-arm").unwrap();
    builder.wheels.push(WheelSpec {
        name: "skew".into(),
        carrier: "L4".into(),
        axis: vector![0.36, 0.48, 0.8],
        inertia: 0.7,
        limits: Default::default(),
        line: None,
    });
    builder
}

const TOTAL: [f64; 6] = [30.0, -20.0, 10.0, 40.0, 5.0, -25.0];

fn total() -> Force<f64> {
    let [x, y, z, a, b, c] = TOTAL;
    Force::new(vector![a, b, c], vector![x, y, z])
}

/// A smooth motion of everything that is not the base.
fn swing(t: f64, q: &mut [f64], v: &mut [f64], wheels: &mut [f64]) {
    for (k, (q, v)) in q[7..].iter_mut().zip(&mut v[6..]).enumerate() {
        let (phase, rate) = (k as f64, 0.5 + 0.1 * k as f64);
        (*q, *v) = ((rate * t + phase).sin(), rate * (rate * t + phase).cos());
    }
    for (k, w) in wheels.iter_mut().enumerate() {
        *w = 8.0 * (0.3 * t + k as f64).sin();
    }
}

/// Follows [`swing`] and calls `visit(t, q, v, wheels, momentum)` at each sample.
fn fly(
    flyer: &mut FreeFlyer<'_>,
    step: f64,
    samples: usize,
    mut visit: impl FnMut(f64, &[f64], &[f64], &[f64], &Force<f64>),
) -> Vec<f64> {
    let robot = flyer.mechanism();
    let (mut q, mut v, mut wheels) =
        (robot.neutral(), vec![0.0; robot.nv()], vec![0.0; robot.wheels().len()]);
    for k in 0..samples {
        let t = step * k as f64;
        swing(t, &mut q, &mut v, &mut wheels);
        let own = flyer.respond(&q, &mut v, &wheels).unwrap();
        visit(t, &q, &v, &wheels, &own);
        flyer.advance(t, t + step, &mut q, swing).unwrap();
    }
    q
}

#[test]
fn a_free_flight_keeps_momentum_and_its_centre_of_mass_goes_straight() {
    let robot = flying().build(&Default::default()).unwrap();
    let mut flyer = FreeFlyer::new(&robot).unwrap().with_momentum(total());
    let mut ws = Workspace::new(&robot);
    let mut start = None;
    let mass: f64 = robot.bodies().iter().map(|b| b.inertia.mass).sum();
    let mut last = (0.0, 0.0);
    fly(&mut flyer, 0.1, 601, |t, q, v, wheels, own| {
        // The sum over bodies in the world's frame shares no step with the solution for the base.
        let mut at_world = momentum(&robot, &mut ws, q, v, Frame::World).unwrap();
        let in_base = momentum(&robot, &mut ws, q, v, Frame::Base).unwrap();
        assert!((in_base - *own).to_vector().amax() < 1e-9 * 300.0, "{:?}", in_base - *own);
        for (wheel, rate) in robot.wheels().iter().zip(wheels) {
            at_world.angular += ws.poses()[wheel.body].rotation * wheel.axis * (wheel.inertia * rate);
        }
        last.0 = f64::max(last.0, (at_world - total()).to_vector().amax());
        let moments = robot.bodies().iter().zip(ws.poses());
        let centre: Vector3<f64> = moments
            .map(|(b, pose)| pose.translation * b.inertia.mass + pose.rotation * b.inertia.first_moment)
            .sum::<Vector3<f64>>()
            / mass;
        let start = *start.get_or_insert(centre);
        last.1 = f64::max(last.1, (centre - start - total().linear * (t / mass)).norm());
    });
    // Momentum is up to 300 N m s: rounding. The centre of mass shows the error of the integration.
    assert!(last.0 < 1e-9, "momentum drifts by {}", last.0);
    assert!(last.1 < 1e-9, "the centre of mass strays by {}", last.1);
}

#[test]
fn wheels_are_bodies_that_only_spin() {
    let described = flying();
    let robot = described.build(&Default::default()).unwrap();
    // The same robot with its wheels as links on hinges of their own: what they weigh when locked leaves the carrier.
    let mut explicit = described.clone();
    explicit.wheels.clear();
    for (k, wheel) in described.wheels.iter().enumerate() {
        let axis = wheel.axis.normalize();
        let spin = Inertia { rotational: axis * axis.transpose() * wheel.inertia, ..Inertia::zero() };
        let carrier = explicit.links.iter_mut().find(|l| l.name == wheel.carrier).unwrap();
        carrier.inertia = Some(carrier.inertia.unwrap() - spin);
        let name = format!("body of {}", wheel.name);
        explicit.links.push(LinkSpec { name: name.clone(), inertia: Some(spin), line: None });
        let joint = JointSpec::new(format!("spin{k}"), JointType::Revolute { axis }, &wheel.carrier, name);
        explicit.joints.push(joint);
    }
    let explicit = explicit.build(&Default::default()).unwrap();
    assert_eq!((explicit.nv(), robot.nv()), (16, 12));
    let end = fly(&mut FreeFlyer::new(&robot).unwrap().with_momentum(total()), 0.5, 40, |_, _, _, _, _| {});
    let mut flyer = FreeFlyer::new(&explicit).unwrap().with_momentum(total());
    let mut q = explicit.neutral();
    let mut wheels = [0.0; 4];
    let mut motion = |t: f64, q: &mut [f64], v: &mut [f64], _: &mut [f64]| {
        swing(t, &mut q[..13], &mut v[..12], &mut wheels);
        v[12..].copy_from_slice(&wheels);
        // Its angle does not matter: a wheel is symmetric.
        q[13..].fill(t);
    };
    for k in 0..40 {
        let t = 0.5 * f64::from(k);
        flyer.advance(t, t + 0.5, &mut q, &mut motion).unwrap();
    }
    for k in 0..13 {
        assert!((q[k] - end[k]).abs() < 1e-10, "{k}: {} {}", q[k], end[k]);
    }
}

#[test]
fn the_simple_rules_for_the_pose_have_their_order() {
    let robot = flying().build(&Default::default()).unwrap();
    let end = |rule, step: f64| {
        let mut flyer = FreeFlyer::new(&robot).unwrap().with_momentum(total()).with_rule(rule);
        let samples = (4.0 / step).round() as usize;
        fly(&mut flyer, step, samples, |_, _, _, _, _| {})
    };
    let exact = end(PoseRule::Exact, 0.1);
    let coarse_exact = end(PoseRule::Exact, 2.0);
    let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart(&exact, &coarse_exact) < 1e-11, "{}", apart(&exact, &coarse_exact));
    for (rule, ratio) in [(PoseRule::Euler, 2.0), (PoseRule::Trapezoid, 4.0)] {
        let (coarse, fine) = (apart(&end(rule, 0.02), &exact), apart(&end(rule, 0.01), &exact));
        assert!((coarse / fine / ratio - 1.0).abs() < 0.05, "{rule:?}: {coarse:.2e} {fine:.2e}");
    }
}

#[test]
fn a_robot_that_cannot_fly_is_told_so() {
    let error = |m: &Mechanism| FreeFlyer::new(m).err().unwrap().to_string();
    let arm = builtin::get("arm7").unwrap().build(&Default::default()).unwrap();
    assert!(error(&arm).contains("floating base"), "{}", error(&arm));
    let massless = MechanismBuilder::new("ghost", "space")
        .link("body", Inertia::from_com(1.0, Vector3::zeros(), Matrix3::zeros()))
        .joint(JointSpec::new("free", JointType::Floating, "space", "body"))
        .build(&BuildOptions::default())
        .unwrap();
    let mut flyer = FreeFlyer::new(&massless).unwrap();
    let error = flyer.respond(&massless.neutral(), &mut [0.0; 6], &[]).unwrap_err().to_string();
    assert!(error.contains("the inertia of the whole robot is not positive"), "{error}");
    assert!(flyer.respond(&[0.0], &mut [0.0; 6], &[]).is_err());
}

#[test]
fn rates_of_positions_are_what_integration_does() {
    let mut rng = Rng(5);
    for round in 0..60 {
        let joint = rng.joint();
        let (nq, nv) = (joint.nq(), joint.nv());
        let mut q = rng.values(nq, 1.0);
        joint.normalize(&mut q);
        let v = rng.values(nv, 1.0);
        let mut rates = vec![0.0; nq];
        joint.position_rates(&q, &v, &mut rates);
        let h = 1e-5;
        let moved = |h: f64| {
            let mut q = q.clone();
            joint.integrate(&mut q, &v.iter().map(|v| v * h).collect::<Vec<_>>());
            q
        };
        for ((plus, minus), rate) in moved(h).iter().zip(moved(-h)).zip(&rates) {
            // The error of central differences is some h² = 1e-10.
            assert!(((plus - minus) / (2.0 * h) - rate).abs() < 1e-9, "{round} {joint:?}");
        }
    }
}

#[test]
fn a_wheel_must_be_one() {
    let build = |change: &dyn Fn(&mut WheelSpec)| {
        let mut builder = flying();
        change(builder.wheels.last_mut().unwrap());
        builder.build(&Default::default()).err().unwrap().to_string()
    };
    let expected: [(&str, &dyn Fn(&mut WheelSpec)); 6] = [
        ("an inertia above zero", &|w| w.inertia = 0.0),
        ("not a finite number", &|w| w.inertia = f64::NAN),
        ("its axis has no length", &|w| w.axis = Vector3::zeros()),
        ("its carrier \"L9\" does not exist", &|w| w.carrier = "L9".into()),
        ("its carrier does not move", &|w| w.carrier = "ground".into()),
        ("the name is taken", &|w| w.name = "joint3".into()),
    ];
    for (message, change) in expected {
        let error = build(change);
        assert!(error.contains(message) && error.contains("wheel \""), "{error}");
    }
    // A carrier that is lumped into another body turns the axis.
    let mut builder = flying();
    let turn = Pose::from_xyz_rpy([0.1, 0.2, 0.3], [0.0, 0.0, std::f64::consts::FRAC_PI_2]);
    builder.links.push(LinkSpec { name: "box".into(), inertia: None, line: None });
    builder.joints.push(JointSpec::new("bolts", JointType::Fixed, "L1", "box").at(turn));
    builder.wheels[0].carrier = "box".into();
    let robot = builder.build(&Default::default()).unwrap();
    assert_eq!(robot.wheels()[0].body, 1);
    assert!((robot.wheels()[0].axis - Vector3::y()).norm() < 1e-15);
    // Bolted down, the base takes its wheels along; that of the arm stays.
    let options = BuildOptions { base: Some(inertial::mechanism::Base::Fixed), ..Default::default() };
    let fixed = flying().build(&options).unwrap();
    assert_eq!(fixed.wheels().iter().map(|w| w.name.as_str()).collect::<Vec<_>>(), ["skew"]);
    let mut ws = Workspace::new(&fixed);
    forward_kinematics(&fixed, &mut ws, &fixed.neutral()).unwrap();
}
