//! Simulated motion obeys the laws of mechanics and agrees with independent computations.

#![allow(clippy::unwrap_used, clippy::default_trait_access)]

use crate::common::Rng;
use inertial::dynamics::{ClosedMechanism, Frame, Workspace, forward_kinematics, momentum};
use inertial::mechanism::{
    BuildOptions, JointSpec, JointType, LinkSpec, Mechanism, MechanismBuilder, WheelSpec, builtin,
};
use inertial::simulation::{Forward, FreeFlyer, JointForces, PoseRule, Prescribed, SensorReading};
use inertial::spatial::{Force, Inertia, Pose};
use nalgebra::{Matrix3, Vector3, vector};

/// Returns the dual-arm robot with an additional wheel on an arm.
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

/// Sets a smooth motion of all coordinates except those of the base.
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
    let robot = flying().build(&BuildOptions::default()).unwrap();
    let mut flyer = FreeFlyer::new(&robot).unwrap().with_momentum(total());
    let mut ws = Workspace::new(&robot);
    let mut start = None;
    let mass: f64 = robot.bodies().iter().map(|b| b.inertia.mass).sum();
    let mut last = (0.0, 0.0);
    fly(&mut flyer, 0.1, 601, |t, q, v, wheels, own| {
        // The sum over bodies in the world frame is independent of the solution for the base.
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
    // The momentum is up to 300 N m s: its error is rounding error. The centre of mass shows the integration error.
    assert!(last.0 < 1e-9, "momentum drifts by {}", last.0);
    assert!(last.1 < 1e-9, "the centre of mass strays by {}", last.1);
}

#[test]
fn wheels_are_bodies_that_only_spin() {
    let described = flying();
    let robot = described.build(&BuildOptions::default()).unwrap();
    // The same robot with its wheels as links on separate hinges: the inertia of the locked wheels is removed from the carrier.
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
    let explicit = explicit.build(&BuildOptions::default()).unwrap();
    assert_eq!((explicit.nv(), robot.nv()), (16, 12));
    let end = fly(&mut FreeFlyer::new(&robot).unwrap().with_momentum(total()), 0.5, 40, |_, _, _, _, _| {});
    let mut flyer = FreeFlyer::new(&explicit).unwrap().with_momentum(total());
    let mut q = explicit.neutral();
    let mut wheels = [0.0; 4];
    let mut motion = |t: f64, q: &mut [f64], v: &mut [f64], _: &mut [f64]| {
        swing(t, &mut q[..13], &mut v[..12], &mut wheels);
        v[12..].copy_from_slice(&wheels);
        // The angle has no effect: a wheel is symmetric.
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
    let robot = flying().build(&BuildOptions::default()).unwrap();
    let end = |rule, samples: u16| {
        let mut flyer = FreeFlyer::new(&robot).unwrap().with_momentum(total()).with_rule(rule);
        fly(&mut flyer, 4.0 / f64::from(samples), samples.into(), |_, _, _, _, _| {})
    };
    let exact = end(PoseRule::Exact, 40);
    let coarse_exact = end(PoseRule::Exact, 2);
    let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart(&exact, &coarse_exact) < 1e-11, "{}", apart(&exact, &coarse_exact));
    for (rule, ratio) in [(PoseRule::Euler, 2.0), (PoseRule::Trapezoid, 4.0)] {
        let (coarse, fine) = (apart(&end(rule, 200), &exact), apart(&end(rule, 400), &exact));
        assert!((coarse / fine / ratio - 1.0).abs() < 0.05, "{rule:?}: {coarse:.2e} {fine:.2e}");
    }
}

#[test]
fn robots_that_cannot_fly_are_refused() {
    let error = |m: &Mechanism| FreeFlyer::new(m).err().unwrap().to_string();
    let arm = builtin::get("arm7").unwrap().build(&BuildOptions::default()).unwrap();
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
fn invalid_wheels_are_refused() {
    type Change = dyn Fn(&mut WheelSpec);
    let build = |change: &Change| {
        let mut builder = flying();
        change(builder.wheels.last_mut().unwrap());
        builder.build(&BuildOptions::default()).err().unwrap().to_string()
    };
    let expected: [(&str, &Change); 6] = [
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
    // A carrier that is lumped into another body rotates the axis.
    let mut builder = flying();
    let turn = Pose::from_xyz_rpy([0.1, 0.2, 0.3], [0.0, 0.0, std::f64::consts::FRAC_PI_2]);
    builder.links.push(LinkSpec { name: "box".into(), inertia: None, line: None });
    builder.joints.push(JointSpec::new("bolts", JointType::Fixed, "L1", "box").at(turn));
    builder.wheels[0].carrier = "box".into();
    let robot = builder.build(&BuildOptions::default()).unwrap();
    assert_eq!(robot.wheels()[0].body, 1);
    assert!((robot.wheels()[0].axis - Vector3::y()).norm() < 1e-15);
    // A fixed base has no wheels; the wheel of the arm remains.
    let options = BuildOptions::default().with(|o| o.base = Some(inertial::mechanism::Base::Fixed));
    let fixed = flying().build(&options).unwrap();
    assert_eq!(fixed.wheels().iter().map(|w| w.name.as_str()).collect::<Vec<_>>(), ["skew"]);
    let mut ws = Workspace::new(&fixed);
    forward_kinematics(&fixed, &mut ws, &fixed.neutral()).unwrap();
}

fn model(name: &str) -> Mechanism {
    builtin::get(name).unwrap().build(&BuildOptions::default()).unwrap()
}

#[test]
fn passive_motion_keeps_energy_for_a_minute() {
    // A double pendulum that turns over (its motion is chaotic), and linkages that swing.
    let cases: [(&str, &[f64], f64); 3] =
        [("planar-2r", &[2.0, 1.0], 0.5), ("arm7", &[], 0.0), ("four-bar", &[], 3.0)];
    for (name, start, speed) in cases {
        let m = model(name);
        let closed = ClosedMechanism::new(&m).unwrap();
        let mut q = closed.assembled().to_vec();
        q[..start.len()].copy_from_slice(start);
        // The arm is simulated for a fifth of the time: it is the slowest case and has the largest energy.
        let seconds = if name == "arm7" { 12 } else { 60 };
        let mut forward = Forward::new(&closed, JointForces::none(&m), &q, &vec![speed; m.nv()]).unwrap();
        let mut reading = SensorReading::new(&closed);
        let mut worst = 0.0f64;
        for k in 0..10 * seconds {
            let t = 0.1 * f64::from(k);
            forward.advance(t, t + 0.1, |_, _| {}).unwrap();
            worst = worst.max(forward.balance().unwrap().energy);
        }
        forward.read(&vec![0.0; m.nv()], &mut reading).unwrap();
        assert!(worst < 1e-9, "{name}: energy drifts by {worst:.1e} J");
        let open = closed.residual(&mut closed.workspace(), &reading.q).unwrap();
        assert!(open < 1e-11, "{name}: open by {open:.1e}");
    }
}

#[test]
fn energy_and_momentum_balance_in_free_fall() {
    // Every kind of joint, in free fall, with motors and an external wrench: the balance includes all of them.
    let mut rng = Rng(11);
    let rod =
        Inertia::from_com(1.5, vector![0.1, 0.05, -0.2], Matrix3::from_diagonal(&vector![0.05, 0.06, 0.04]));
    let m = MechanismBuilder::new("thing", "world")
        .link(
            "body",
            Inertia::from_com(5.0, vector![0.02, 0.0, 0.01], Matrix3::from_diagonal(&vector![0.3, 0.2, 0.4])),
        )
        .joint(JointSpec::new("free", JointType::Floating, "world", "body"))
        .link("ball", rod)
        .joint(JointSpec::new("socket", JointType::Spherical, "body", "ball").at(rng.pose()))
        .link("slider", rod)
        .joint(
            JointSpec::new("table", JointType::Planar { normal: Vector3::y() }, "body", "slider")
                .at(rng.pose()),
        )
        .link("nut", rod)
        .joint(
            JointSpec::new("screw", JointType::Helical { axis: Vector3::x(), pitch: 0.05 }, "ball", "nut")
                .at(rng.pose()),
        )
        .build(&BuildOptions::default())
        .unwrap();
    let closed = ClosedMechanism::new(&m).unwrap();
    let v = rng.values(m.nv(), 1.0);
    let q = m.neutral();
    let mut forward = Forward::new(&closed, JointForces::none(&m), &q, &v).unwrap();
    let torque = |t: f64, tau: &mut [f64]| {
        for (k, tau) in tau.iter_mut().enumerate() {
            *tau = 0.4 * (2.0 * t + k as f64).sin();
        }
    };
    for k in 0..30 {
        let t = 0.1 * f64::from(k);
        forward.advance(t, t + 0.1, torque).unwrap();
    }
    let balance = forward.balance().unwrap();
    // After three seconds of free fall it has some 4000 J and 300 N s.
    assert!(balance.energy < 1e-9 && balance.momentum.unwrap() < 1e-9, "{balance:?}");
    assert!(balance.energy_scale > 1e3, "{balance:?}");
    // Without gravity and forces the momentum is constant.
    let free = m.clone().with_gravity(Vector3::zeros());
    let closed = ClosedMechanism::new(&free).unwrap();
    let mut forward = Forward::new(&closed, JointForces::none(&free), &q, &v).unwrap();
    let mut ws = Workspace::new(&free);
    let before = momentum(&free, &mut ws, &q, &v, Frame::World).unwrap();
    let mut reading = SensorReading::new(&closed);
    for k in 0..60 {
        forward.advance(f64::from(k), f64::from(k + 1), |_, _| {}).unwrap();
    }
    forward.read(&vec![0.0; free.nv()], &mut reading).unwrap();
    let after = momentum(&free, &mut ws, &reading.q, &reading.v, Frame::World).unwrap();
    assert!((after - before).to_vector().amax() < 1e-9, "{:?}", after - before);
    assert!(forward.balance().unwrap().energy < 1e-9);
}

#[test]
fn forward_and_inverse_dynamics_agree() {
    // Joints follow a motion; its forces, with friction and springs, reproduce the motion.
    for name in ["cheetah-leg", "2rru-1rrs", "four-bar"] {
        let mut builder = builtin::get(name).unwrap();
        for (k, joint) in builder.joints.iter_mut().enumerate() {
            joint.dynamics.damping = 0.1 + 0.02 * k as f64;
            let hinge = matches!(joint.joint_type, JointType::Revolute { .. });
            joint.dynamics.stiffness = if hinge { 0.3 } else { 0.0 };
            joint.dynamics.rest = 0.1;
        }
        let m = builder.build(&BuildOptions::default()).unwrap();
        let closed = ClosedMechanism::new(&m).unwrap();
        let independent = closed.independent_positions().to_vec();
        let swing = |t: f64, reading: &mut SensorReading| {
            for (i, (&q, &v)) in independent.iter().zip(closed.independent()).enumerate() {
                let (rate, size) = (2.0 + i as f64, 0.1);
                reading.q[q] = closed.assembled()[q] + size * (rate * t).sin();
                reading.v[v] = size * rate * (rate * t).cos();
                reading.a[v] = -size * rate * rate * (rate * t).sin();
            }
        };
        let mut inverse = Prescribed::new(&closed, JointForces::of(&m).unwrap()).unwrap();
        let mut given = SensorReading::new(&closed);
        swing(0.0, &mut given);
        inverse.complete(&mut given).unwrap();
        let mut forward = Forward::new(&closed, JointForces::of(&m).unwrap(), &given.q, &given.v).unwrap();
        let mut found = SensorReading::new(&closed);
        for k in 0..5 {
            let t = 0.1 * f64::from(k);
            let mut at = given.clone();
            forward
                .advance(t, t + 0.1, |t, tau| {
                    swing(t, &mut at);
                    inverse.complete(&mut at).unwrap();
                    tau.copy_from_slice(&at.tau);
                })
                .unwrap();
            swing(t + 0.1, &mut given);
            inverse.complete(&mut given).unwrap();
            forward.read(&given.tau, &mut found).unwrap();
            for (what, a, b) in
                [("q", &given.q, &found.q), ("v", &given.v, &found.v), ("a", &given.a, &found.a)]
            {
                let apart = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                // Errors of the state grow little in half a second; accelerations are functions of the state.
                assert!(apart < 1e-8, "{name} {t}: {what} differs by {apart:.1e}");
            }
            assert!((0..6).all(|k| (given.wrench[k] - found.wrench[k]).abs() < 1e-6), "{name}");
        }
    }
}

#[test]
fn free_flight_and_forward_dynamics_agree() {
    // The forces of a free flight, applied to the robot, reproduce that flight.
    let mut builder = builtin::get("space-dual-arm").unwrap();
    builder.wheels.clear();
    let m = builder.build(&BuildOptions::default()).unwrap();
    let closed = ClosedMechanism::new(&m).unwrap();
    let mut flyer = FreeFlyer::new(&m).unwrap().with_momentum(total());
    let (mut q, mut v) = (m.neutral(), vec![0.0; m.nv()]);
    swing(0.0, &mut q, &mut v, &mut []);
    flyer.respond(&q, &mut v, &[]).unwrap();
    let mut forward = Forward::new(&closed, JointForces::none(&m), &q, &v).unwrap();
    let dynamics = inertial::dynamics::InverseDynamics::new(&m);
    let mut scratch = dynamics.scratch();
    let mut probe = FreeFlyer::new(&m).unwrap().with_momentum(total());
    // Accelerations by differences would be too inaccurate: those of the base follow from zero external wrench at given joint
    // accelerations.
    let mut mass = vec![0.0; m.nv() * m.nv()];
    let mut ws = Workspace::new(&m);
    let mut pose = q.clone();
    for k in 0..10 {
        let t = 0.05 * f64::from(k);
        flyer.advance(t, t + 0.05, &mut q, swing).unwrap();
        forward
            .advance(t, t + 0.05, |s, tau| {
                // State of the flight at s, from the exact pose at the start of the sample.
                let (mut qs, mut vs, mut a) = (pose.clone(), vec![0.0; m.nv()], vec![0.0; m.nv()]);
                if s > t {
                    probe.advance(t, s, &mut qs, swing).unwrap();
                }
                swing(s, &mut qs, &mut vs, &mut []);
                probe.respond(&qs, &mut vs, &[]).unwrap();
                for (k, a) in a[6..].iter_mut().enumerate() {
                    let rate = 0.5 + 0.1 * k as f64;
                    *a = -rate * rate * (rate * s + k as f64).sin();
                }
                let mut rest = vec![0.0; m.nv()];
                dynamics.rnea(&mut scratch, &qs, &vs, &a, &mut rest).unwrap();
                inertial::dynamics::mass_matrix(&m, &mut ws, &qs, &mut mass).unwrap();
                let h = nalgebra::DMatrix::from_row_slice(m.nv(), m.nv(), &mass);
                let base = h.view((0, 0), (6, 6)).into_owned();
                let wanted = nalgebra::DVector::from_iterator(6, rest[..6].iter().map(|f| -f));
                let base = base.lu().solve(&wanted).unwrap();
                a[..6].copy_from_slice(base.as_slice());
                dynamics.rnea(&mut scratch, &qs, &vs, &a, tau).unwrap();
                assert!(tau[..6].iter().all(|f| f.abs() < 1e-8), "no wrench from outside");
                tau[..6].fill(0.0);
            })
            .unwrap();
        pose.copy_from_slice(&q);
    }
    let mut reading = SensorReading::new(&closed);
    forward.read(&vec![0.0; m.nv()], &mut reading).unwrap();
    for k in 0..m.nq() {
        assert!((reading.q[k] - q[k]).abs() < 1e-9, "{k}: {} {}", reading.q[k], q[k]);
    }
}
