//! Loop closure: assembly to rounding error, continuation, and the dynamics on the independent coordinates.

#![allow(clippy::unwrap_used)]

use crate::machines;
use std::collections::BTreeSet;
use std::path::Path;

use crate::common::data::{golden, shared};

use crate::common::{Rng, assert_close};
use inertial::dynamics::ClosedMechanism;
use inertial::mechanism::read::{model, no_includes};
use inertial::mechanism::{BuildOptions, JointType, Mechanism, MechanismBuilder};
use inertial::spatial::Pose;
use nalgebra::Vector3;

/// Closure error due to rounding for a loop of ten joints (rad, or relative to the length of the loop).
const ROUNDING: f64 = 3e-15;

/// Returns a closed configuration at some distance from the assembly, away from dead points and on the same branch.
fn wander(closed: &ClosedMechanism<'_>, rng: &mut Rng, size: f64) -> Vec<f64> {
    let mut ws = closed.workspace();
    let mut q = closed.assembled().to_vec();
    let mut v = vec![0.0; closed.mechanism().nv()];
    let step: Vec<f64> = rng.values(closed.dof(), size / 16.0);
    for _ in 0..16 {
        closed.velocities(&mut ws, &q, &step, &mut v).unwrap();
        let mut next = q.clone();
        closed.mechanism().integrate(&mut next, &v);
        let predicted = next.clone();
        // Dependent joints that turn much faster than the independent ones indicate a dead point.
        if closed.close(&mut ws, &mut next).is_err()
            || next.iter().zip(&predicted).any(|(x, p)| (x - p).abs() > 0.02)
            || closed.velocity_map(&mut ws, &next).map_or(true, |g| g.amax() > 4.0)
        {
            break;
        }
        q = next;
    }
    q
}

#[test]
fn machines_assemble_to_rounding_with_their_known_mobility() {
    for (name, mechanism, mobility) in machines::all() {
        let closed = ClosedMechanism::new(&mechanism).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut ws = closed.workspace();
        let residual = closed.residual(&mut ws, closed.assembled()).unwrap();
        println!(
            "{name}: mobility {}, independent {:?}, {} constraints of rank {:?}, residual {residual:.1e}, {:?}",
            closed.dof(),
            closed.independent_names(),
            closed.constraint_count(),
            closed.rank(),
            closed.warnings()
        );
        assert_eq!(closed.dof(), mobility, "{name}");
        assert!(residual < ROUNDING, "{name}: residual {residual:.1e}");
        // The rank decision has a wide margin.
        assert!(closed.rank().margin() > 1e8, "{name}: {:?}", closed.rank());
    }
}

#[test]
fn motions_stay_closed_to_rounding() {
    let mut rng = Rng(7);
    for (name, mechanism, _) in machines::all() {
        let closed = ClosedMechanism::new(&mechanism).unwrap();
        let mut ws = closed.workspace();
        for _ in 0..5 {
            let q = wander(&closed, &mut rng, 0.6);
            let residual = closed.residual(&mut ws, &q).unwrap();
            assert!(residual < ROUNDING, "{name}: residual {residual:.1e}");
            // Continuation back to the assembly and to the target again.
            let place = |q: &[f64]| closed.independent_positions().iter().map(|&k| q[k]).collect::<Vec<_>>();
            if closed.independent_positions().len() < closed.dof() {
                continue;
            }
            let (home, target) = (place(closed.assembled()), place(&q));
            let mut back = q.clone();
            closed.move_to(&mut ws, &mut back, &home).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_close(&back, closed.assembled(), 1e-9, &name);
            closed.move_to(&mut ws, &mut back, &target).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_close(&back, &q, 1e-9, &name);
        }
    }
}

/// Returns `q(t)` of a motion with independent velocities `v` and accelerations `a` at zero, closed at each point.
fn along(closed: &ClosedMechanism<'_>, q: &[f64], v: &[f64], a: &[f64], t: f64) -> Vec<f64> {
    let mut ws = closed.workspace();
    let (nv, mechanism) = (closed.mechanism().nv(), closed.mechanism());
    let mut moved = q.to_vec();
    // Quasi-coordinates: a constant body velocity v + a t/2 over the time t moves the independent joints so that their velocity
    // at time t is v + a t to first order, which is sufficient for the differences below.
    let step: Vec<f64> = v.iter().zip(a).map(|(v, a)| t * v + 0.5 * t * t * a).collect();
    let mut tree = vec![0.0; nv];
    closed.velocities(&mut ws, q, &step, &mut tree).unwrap();
    mechanism.integrate(&mut moved, &tree);
    closed.close(&mut ws, &mut moved).unwrap();
    moved
}

#[test]
fn velocity_and_acceleration_maps_match_finite_differences() {
    let mut rng = Rng(11);
    for (name, mechanism, _) in machines::all() {
        let closed = ClosedMechanism::new(&mechanism).unwrap();
        let mut ws = closed.workspace();
        let q = wander(&closed, &mut rng, 0.4);
        let (n, nv) = (closed.dof(), mechanism.nv());
        let (v_ind, a_ind) = (rng.values(n, 1.0), rng.values(n, 1.0));
        let (mut v, mut a) = (vec![0.0; nv], vec![0.0; nv]);
        closed.accelerations(&mut ws, &q, &v_ind, &a_ind, &mut v, &mut a).unwrap();
        let difference = |from: &[f64], to: &[f64]| {
            let mut out = vec![0.0; nv];
            for j in mechanism.joints().iter().filter(|j| j.follows.is_none()) {
                j.joint_type.difference(&from[j.q_range()], &to[j.q_range()], &mut out[j.v_range()]);
            }
            out
        };
        // Differences from q in the exponential coordinates of each joint, whose second derivatives are accelerations.
        let at = |t: f64| difference(&q, &along(&closed, &q, &v_ind, &a_ind, t));
        let central = |h: f64| {
            let (ahead, behind) = (at(h), at(-h));
            let first = ahead.iter().zip(&behind).map(|(p, m)| (p - m) / (2.0 * h)).collect::<Vec<_>>();
            let second = ahead.iter().zip(&behind).map(|(p, m)| (p + m) / (h * h)).collect::<Vec<_>>();
            (first, second)
        };
        // Extrapolation to fourth order, over times in which no joint moves by more than about 1e-3: the truncation error is
        // 1e-12 times a moderate factor, the rounding error 1e-16/1e-6.
        let fastest = v.iter().map(|v| v.abs()).chain(a.iter().map(|a| a.abs().sqrt())).fold(1.0, f64::max);
        let h = 1e-3 / fastest;
        let ((v1, a1), (v2, a2)) = (central(0.5 * h), central(h));
        let extrapolated = |one: &[f64], two: &[f64]| {
            one.iter().zip(two).map(|(one, two)| (4.0 * one - two) / 3.0).collect::<Vec<_>>()
        };
        assert_close(&extrapolated(&v1, &v2), &v, 1e-6, &name);
        assert_close(&extrapolated(&a1, &a2), &a, 1e-6, &name);
    }
}

fn read(path: &Path) -> Mechanism {
    let text = std::fs::read_to_string(path).unwrap();
    model(&text, &no_includes).and_then(|b| b.build(&BuildOptions::default())).unwrap()
}

#[test]
fn golden_mechanisms_close_to_rounding_with_their_known_mobility() {
    let folder = golden("loops");
    let truth = std::fs::read_to_string(folder.join("truth.json")).unwrap();
    let truth: serde_json::Value = serde_json::from_str(&truth).unwrap();
    let mut rng = Rng(5);
    let mut seen = BTreeSet::new();
    for case in truth["cases"].as_array().unwrap() {
        let name = case["mechanism"].as_str().unwrap();
        if !seen.insert(name) {
            continue;
        }
        let mechanism = read(&folder.join(format!("{name}.json")));
        let closed = ClosedMechanism::new(&mechanism).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(closed.dof() as u64, case["dof"].as_u64().unwrap(), "{name}");
        assert!(closed.warnings().is_empty(), "{name}: {:?}", closed.warnings());
        let mut ws = closed.workspace();
        let mut worst = closed.residual(&mut ws, closed.assembled()).unwrap();
        for _ in 0..10 {
            let q = wander(&closed, &mut rng, 0.8);
            worst = worst.max(closed.residual(&mut ws, &q).unwrap());
        }
        println!("{name}: mobility {}, residual {worst:.1e}", closed.dof());
        assert!(worst < ROUNDING, "{name}: {worst:.1e}");
    }
    assert_eq!(seen.len(), 19);
}

#[test]
fn urdf_plus_models_leave_their_singular_zero() {
    let Some(folder) = shared("models/urdf_plus") else { return };
    let files = [
        "four_bar",
        "planar_leg_linkage",
        "double_pendulum",
        "mini_cheetah",
        "mini_cheetah_leg",
        "revolute_rotor_chain",
    ];
    for (file, dof) in files.into_iter().zip([1, 2, 2, 18, 3, 3]) {
        let mechanism = read(&folder.join(format!("{file}.urdf")));
        let closed = ClosedMechanism::new(&mechanism).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert_eq!(closed.dof(), dof, "{file}");
        let residual = closed.residual(&mut closed.workspace(), closed.assembled()).unwrap();
        println!(
            "{file}: {:?} at {:?}, residual {residual:.1e}",
            closed.independent_names(),
            closed.assembled()
        );
        assert!(residual < ROUNDING, "{file}: {residual:.1e}");
        // Two branches meet in the stretched configuration of both linkages; the parallelogram is the branch with the smallest
        // motion.
        assert_eq!(closed.warnings().len(), mechanism.loops().len(), "{file}: {:?}", closed.warnings());
        let q = closed.assembled();
        match file {
            "four_bar" => assert!((q[1] + q[0]).abs() < 1e-14 && (q[2] - q[0]).abs() < 1e-14, "{q:?}"),
            "planar_leg_linkage" => {
                assert!((q[3] + q[1]).abs() < 1e-14 && (q[2] - q[1]).abs() < 1e-14, "{q:?}");
            }
            _ => {}
        }
    }
}

#[test]
fn a_rough_assembly_is_closed_with_the_independent_joints_held() {
    let mut rng = Rng(21);
    let mut plan = machines::four_bar(&mut rng).cut_blueprint(2, &[0]);
    plan.builder.assembly =
        vec![("j0".into(), vec![0.3]), ("j1".into(), vec![-0.4]), ("j3".into(), vec![0.3])];
    let mechanism = plan.build();
    let closed = ClosedMechanism::new(&mechanism).unwrap();
    let mut ws = closed.workspace();
    assert!(closed.residual(&mut ws, mechanism.assembly()).unwrap() > 0.01);
    assert!(closed.residual(&mut ws, closed.assembled()).unwrap() < ROUNDING);
    assert_eq!(closed.assembled()[0], 0.3);
    // Equal to continuation from zero.
    let at_zero = machines::four_bar(&mut Rng(21)).cut(2, &[0]);
    let other = ClosedMechanism::new(&at_zero).unwrap();
    let mut q = other.assembled().to_vec();
    other.move_to(&mut ws, &mut q, &[0.3]).unwrap();
    assert_close(&q, closed.assembled(), 1e-13, "continuation");
}

#[test]
fn a_dead_point_of_the_independent_joint_is_left() {
    // A slider-crank driven by its slider at the end of the stroke: the mechanism is regular, but the slider is at a dead point.
    let mut joints = machines::planar(&[(0.0, 0.0), (0.3, 0.0), (1.0, 0.0), (1.0, 0.0)]);
    joints[3].0 = JointType::Prismatic { axis: Vector3::x() };
    let mechanism = machines::Ring::new("dead slider", &mut Rng(4), joints).cut(2, &[3]);
    let closed = ClosedMechanism::new(&mechanism).unwrap();
    assert!(
        closed.warnings()[0].contains("a dead point of the independent joints"),
        "{:?}",
        closed.warnings()
    );
    assert_eq!((closed.warnings().len(), closed.motions().len()), (1, 0));
    assert!(closed.assembled()[0].abs() > 0.01);
    let mut ws = closed.workspace();
    assert!(closed.velocity_map(&mut ws, closed.assembled()).is_ok());
    let error = closed.velocity_map(&mut ws, mechanism.assembly()).unwrap_err().to_string();
    assert!(error.contains("dead point"), "{error}");
}

#[test]
fn rounded_geometry_closes_approximately_with_a_warning() {
    // A planar four-bar in space with one axis off by 1.5708 − π/2, a common rounding: with the literal numbers it cannot move.
    let mut joints = machines::planar(&[(0.0, 0.0), (0.1, 0.4), (0.9, 0.6), (0.8, -0.1)]);
    joints[2].1 = joints[2].1 * Pose::from_xyz_rpy([0.0; 3], [3.7e-6, 0.0, 0.0]);
    for cut in [2, 3] {
        let mechanism = machines::Ring::new("rounded", &mut Rng(4), joints.clone()).cut(cut, &[0]);
        let closed = ClosedMechanism::new(&mechanism).unwrap();
        assert_eq!(closed.dof(), 1);
        assert!(closed.warnings().iter().any(|w| w.contains("approximately")), "{:?}", closed.warnings());
        let mut ws = closed.workspace();
        let mut q = closed.assembled().to_vec();
        let residual = closed.move_to(&mut ws, &mut q, &[0.5]).unwrap();
        // The residual does not exceed the error of the axis.
        assert!((1e-9..1e-5).contains(&residual), "{residual:.1e}");
    }
}

fn error(plan: &MechanismBuilder) -> String {
    let mechanism = plan.build(&BuildOptions::default()).unwrap();
    let message = ClosedMechanism::new(&mechanism).unwrap_err().to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

#[test]
fn loops_that_cannot_be_assembled_are_named_with_their_residual() {
    let mut plan = machines::four_bar(&mut Rng(1)).cut_blueprint(2, &[0]).builder;
    plan.loops[0].predecessor.origin.translation.x += 5.0;
    let message = error(&plan);
    assert!(message.starts_with("loop cut: it cannot be closed near the assembly"), "{message}");
    let residual: f64 = message.rsplit_once("residual ").unwrap().1.trim_end_matches(')').parse().unwrap();
    assert!((1.0..6.0).contains(&residual), "{message}");

    // A second loop with a conflicting pose of the same two bodies.
    let mut plan = machines::four_bar(&mut Rng(1)).cut_blueprint(2, &[0]).builder;
    let mut other = plan.loops[0].clone();
    other.name = "other".into();
    other.successor.origin.translation.x += 0.05;
    plan.loops.push(other);
    let message = error(&plan);
    assert!(message.contains("contradict each other"), "{message}");
}

#[test]
fn the_same_loop_twice_changes_nothing() {
    let single = machines::four_bar(&mut Rng(1)).cut_blueprint(2, &[0]).builder;
    let mut twice = single.clone();
    let mut again = twice.loops[0].clone();
    again.name = "again".into();
    twice.loops.push(again);
    let (single, twice) = [single, twice].map(|b| b.build(&BuildOptions::default()).unwrap()).into();
    let (single, twice) = (ClosedMechanism::new(&single).unwrap(), ClosedMechanism::new(&twice).unwrap());
    assert_eq!((single.rank().rank, single.constraint_count()), (2, 5));
    assert_eq!((twice.rank().rank, twice.constraint_count()), (2, 10));
    let (mut q, mut p) = (single.assembled().to_vec(), twice.assembled().to_vec());
    single.move_to(&mut single.workspace(), &mut q, &[0.4]).unwrap();
    twice.move_to(&mut twice.workspace(), &mut p, &[0.4]).unwrap();
    assert_close(&p, &q, 1e-14, "configuration");
}

#[test]
fn mobility_and_independent_joints_are_checked() {
    let triangle =
        machines::Ring::new("triangle", &mut Rng(1), machines::planar(&[(0.0, 0.0), (1.0, 0.0), (0.4, 0.7)]));
    let message = error(&triangle.cut_blueprint(1, &[]).builder);
    assert_eq!(message, "the loops leave no freedom to move: 2 joint coordinates, 2 independent constraints");
    // A triangle whose corners lie on a line has infinitesimal but no finite mobility, for every cut.
    for cut in 0..3 {
        let joints = machines::planar(&[(0.0, 0.0), (0.3, 0.0), (0.8, 0.0)]);
        let message =
            error(&machines::Ring::new("flat triangle", &mut Rng(4), joints).cut_blueprint(cut, &[]).builder);
        assert!(message.contains("only infinitely small motions are possible"), "{message}");
    }

    let four_bar = machines::four_bar(&mut Rng(1));
    let message = error(&four_bar.cut_blueprint(2, &[0, 1]).builder);
    assert_eq!(
        message,
        "the mobility is 1 but 2 coordinates are marked as independent: mark 1, for example j0"
    );

    let five = machines::Ring::new(
        "five-bar",
        &mut Rng(1),
        machines::planar(&[(0.0, 0.0), (-0.3, 0.5), (0.4, 1.0), (1.1, 0.6), (0.8, 0.0)]),
    );
    let message = error(&five.cut_blueprint(2, &[1]).builder);
    assert_eq!(
        message,
        "the mobility is 2 but 1 coordinates are marked as independent: mark 2, for example j0, j1"
    );

    // Two four-bars with one degree of freedom each; both marked joints are in the first.
    let mut plan = four_bar.cut_blueprint(2, &[0, 1]).builder;
    let second = four_bar.cut_blueprint(2, &[0]).builder;
    for link in second.links {
        plan = plan.link(format!("{}'", link.name), link.inertia.unwrap());
    }
    for mut joint in second.joints {
        let prime = |name: &str| if name == "ground" { name.to_owned() } else { format!("{name}'") };
        (joint.parent, joint.child, joint.independent) = (prime(&joint.parent), prime(&joint.child), None);
        joint.name.push('\'');
        plan.joints.push(joint);
    }
    for mut l in second.loops {
        l.name.push('\'');
        l.predecessor.link.push('\'');
        l.successor.link.push('\'');
        plan.loops.push(l);
    }
    let message = error(&plan);
    assert_eq!(
        message,
        "the independent coordinates (j0, j1) do not determine the motion of the loops: choose others, for example j0, j0'"
    );
}

#[test]
fn the_end_of_the_motion_is_an_error_and_leaves_the_configuration() {
    // The crank of this linkage can rotate fully, the rocker cannot.
    let mechanism = machines::four_bar(&mut Rng(1)).cut(2, &[3]);
    let closed = ClosedMechanism::new(&mechanism).unwrap();
    let mut ws = closed.workspace();
    let mut q = closed.assembled().to_vec();
    let message = [3.0, -3.0]
        .into_iter()
        .find_map(|target| closed.move_to(&mut ws, &mut q, &[target]).err())
        .expect("the rocker cannot turn both ways by three radians")
        .to_string();
    println!("{message}");
    assert!(message.contains("loop cut") || message.contains("dead point"), "{message}");
    let residual = closed.residual(&mut ws, &q).unwrap();
    assert!(residual < ROUNDING);
    assert!(closed.move_to(&mut ws, &mut q, &[f64::NAN]).is_err());
    assert!(closed.move_to(&mut ws, &mut q, &[0.1, 0.2]).is_err());
    assert!(closed.close(&mut ws, &mut [0.0]).is_err());
}

/// Checks the mobility of a ring and closes it again from a disturbed assembly.
fn check_ring(ring: &machines::Ring, rng: &mut Rng, mobility: usize, label: &str) {
    let cut = rng.below(ring.joints.len());
    let mut plan = ring.cut_blueprint(cut, &[]);
    let mechanism = plan.build();
    let closed = ClosedMechanism::new(&mechanism).unwrap_or_else(|e| panic!("{label} cut at {cut}: {e}"));
    assert_eq!(closed.dof(), mobility, "{label} cut at {cut}: {:?}", closed.rank());
    let mut ws = closed.workspace();
    for _ in 0..3 {
        let q = wander(&closed, rng, 0.5);
        assert!(closed.residual(&mut ws, &q).unwrap() < ROUNDING, "{label} cut at {cut}");
    }
    for joint in mechanism.joints() {
        let mut q = mechanism.assembly()[joint.q_range()].to_vec();
        joint.joint_type.integrate(&mut q, &rng.values(joint.joint_type.nv(), 0.1));
        plan.builder.assembly.push((joint.name.clone(), q));
    }
    let disturbed = plan.build();
    let closed =
        ClosedMechanism::new(&disturbed).unwrap_or_else(|e| panic!("disturbed {label} cut at {cut}: {e}"));
    assert_eq!(closed.dof(), mobility, "disturbed {label} cut at {cut}: {:?}", closed.rank());
    assert!(
        closed.residual(&mut ws, closed.assembled()).unwrap() < ROUNDING,
        "disturbed {label} cut at {cut}"
    );
}

#[test]
fn random_rings_in_the_plane_and_in_space() {
    let mut rng = Rng(77);
    for k in 0..60 {
        let count = 4 + rng.below(3);
        let mut points: Vec<(f64, f64)> = Vec::new();
        while points.len() < count {
            points.push((rng.range(-1.0, 1.0), rng.range(-1.0, 1.0)));
        }
        let mut joints = machines::planar(&points);
        if rng.chance(0.4) {
            let angle = rng.range(0.0, 3.0);
            joints[rng.below(count)].0 =
                JointType::Prismatic { axis: Vector3::new(angle.cos(), angle.sin(), 0.0) };
        }
        // The plane has an arbitrary pose in space.
        let place = rng.pose();
        for joint in &mut joints {
            joint.1 = place * joint.1;
        }
        let ring = machines::Ring::new("planar", &mut rng, joints);
        check_ring(&ring, &mut rng, count - 3, &format!("planar ring {k} of {count}"));
    }
    for k in 0..60 {
        let ring = machines::random_spatial_ring(&mut rng);
        check_ring(&ring, &mut rng, 1, &format!("spatial ring {k}: {}", ring.name));
    }
}
