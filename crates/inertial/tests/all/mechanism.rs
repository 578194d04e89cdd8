//! Building mechanisms from descriptions: lumping, couplings, numbering and errors.

use crate::common::{Rng, assert_close};
use inertial::mechanism::{
    Base, BodyKind, BuildOptions, JointSpec, JointType, LoopEnd, LoopSpec, Mechanism, MechanismBuilder,
    Mimic, RotorModel, RotorSpec,
};
use inertial::spatial::{Inertia, Pose};
use inertial::{Error, Result};
use nalgebra::{Matrix3, Vector3, vector};

const HINGE: JointType = JointType::Revolute { axis: Vector3::new(0.0, 0.0, 1.0) };
const SLIDE: JointType = JointType::Prismatic { axis: Vector3::new(0.0, 0.0, 1.0) };

fn bar() -> Inertia<f64> {
    Inertia::from_com(2.0, vector![0.5, 0.0, 0.0], Matrix3::from_diagonal(&vector![0.01, 0.2, 0.2]))
}

fn along_x(x: f64) -> Pose<f64> {
    Pose::from_translation(vector![x, 0.0, 0.0])
}

/// Creates a chain `ground – a – b – c …` of hinges `ja jb jc …`, one metre apart.
fn chain(names: &[&str]) -> MechanismBuilder {
    let mut out = MechanismBuilder::new("chain", "ground");
    let mut parent = "ground";
    for name in names {
        out = out
            .link(*name, bar())
            .joint(JointSpec::new(format!("j{name}"), HINGE, parent, *name).at(along_x(1.0)));
        parent = name;
    }
    out
}

fn build(builder: &MechanismBuilder) -> Result<Mechanism> {
    builder.build(&BuildOptions::default())
}

fn with_base(builder: &MechanismBuilder, base: Base) -> Result<Mechanism> {
    builder.build(&BuildOptions::default().with(|o| o.base = Some(base)))
}

fn with_rotors(builder: &MechanismBuilder, model: RotorModel) -> Result<Mechanism> {
    builder.build(&BuildOptions::default().with(|o| o.rotors = Some(model)))
}

fn mimic(builder: &mut MechanismBuilder, follower: usize, joint: &str, ratio: f64, offset: f64) {
    builder.joints[follower].mimic = Some(Mimic::new(joint, ratio, offset));
}

fn rotor(joint: &str, carrier: &str) -> RotorSpec {
    let inertia = Inertia::from_com(0.5, Vector3::zeros(), Matrix3::from_diagonal(&vector![2.0, 2.0, 3.0]));
    RotorSpec {
        joint: joint.into(),
        carrier: carrier.into(),
        ratio: 50.0,
        origin: along_x(0.2),
        axis: Vector3::z(),
        inertia,
        symmetric: true,
        line: None,
    }
}

fn loop_between(name: &str, predecessor: &str, successor: &str) -> LoopSpec {
    let end = |link: &str| LoopEnd { link: link.into(), origin: Pose::identity() };
    LoopSpec {
        name: name.into(),
        joint_type: HINGE,
        predecessor: end(predecessor),
        successor: end(successor),
        line: None,
    }
}

/// Asserts that a description is refused with a one-line message that contains `words`.
#[track_caller]
fn refused(result: Result<Mechanism>, words: &str) {
    let message = result.expect_err("this should not build").to_string();
    assert!(message.contains(words), "{message:?} does not say {words:?}");
    assert!(!message.contains('\n'), "{message:?} has several lines");
}

// Joints

#[test]
fn integrating_moves_along_the_free_modes() {
    let mut rng = Rng(1);
    for _ in 0..200 {
        let joint = rng.joint();
        let mut q = rng.values(joint.nq(), 2.0);
        if matches!(joint, JointType::Spherical | JointType::Floating) {
            let end = joint.nq();
            q[end - 4..].copy_from_slice(&rng.unit::<4>());
        }
        let universal = matches!(joint, JointType::Universal { .. });
        // Constant modes are followed exactly below half a turn, those of a universal joint to first order.
        let size = if universal { 1e-7 } else { 1.0 };
        let v = rng.values(joint.nv(), size);
        let mut moved = q.clone();
        joint.integrate(&mut moved, &v);
        let step = (joint.pose(&q).inverse() * joint.pose(&moved)).log().to_vector() / size;
        let modes = joint.free_modes_at(&q);
        let expected = modes
            .iter()
            .zip(&v)
            .fold(nalgebra::Vector6::zeros(), |sum, (mode, v)| sum + mode.to_vector() * (v / size));
        assert_close(
            step.as_slice(),
            expected.as_slice(),
            if universal { 1e-6 } else { 1e-12 },
            joint.name(),
        );
    }
}

#[test]
fn joints_agree_with_their_own_sizes_and_names() {
    let mut rng = Rng(2);
    for _ in 0..100 {
        let joint = rng.joint();
        let mut q = vec![f64::NAN; joint.nq()];
        joint.neutral(&mut q);
        assert_eq!(joint.pose(&q), Pose::identity());
        assert_eq!(joint.free_modes().len(), joint.nv());
        if joint.nv() > 1 {
            assert_eq!(joint.coordinate_suffixes().len(), joint.nq());
            assert_eq!(joint.velocity_suffixes().len(), joint.nv());
        }
    }
}

#[test]
fn a_zero_quaternion_counts_as_no_rotation() {
    let mut q = [0.0; 4];
    assert_eq!(JointType::Spherical.pose(&q), Pose::identity());
    JointType::Spherical.integrate(&mut q, &[0.0, 0.0, 1.0]);
    assert_close(&q, &[0.0, 0.0, 0.5f64.sin(), 0.5f64.cos()], 1e-15, "quaternion");
}

// Lumping

#[test]
fn fixed_links_become_one_body_in_the_frame_nearest_the_base() {
    let arm = chain(&["a", "b"])
        .link("plate", bar())
        .joint(JointSpec::new("w1", JointType::Fixed, "a", "plate").at(along_x(3.0)))
        .link("tool", bar())
        .joint(JointSpec::new("w2", JointType::Fixed, "plate", "tool").at(along_x(1.0)))
        .link("stand", bar())
        .joint(JointSpec::new("w3", JointType::Fixed, "ground", "stand").at(along_x(-1.0)))
        .link("lamp", bar())
        .joint(JointSpec::new("lamp", SLIDE, "tool", "lamp").at(along_x(0.25)));
    let arm = build(&arm).unwrap();
    let names: Vec<_> = arm.bodies().iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "lamp"]);
    let a = &arm.bodies()[0];
    assert_eq!(a.inertia.mass, 6.0);
    assert_eq!(a.inertia.com(), Some(vector![(0.5 + 3.5 + 4.5) / 3.0, 0.0, 0.0]));
    let lamp = &arm.bodies()[2];
    assert_eq!((lamp.parent, lamp.placement), (Some(0), along_x(4.25)));
    let link = |name: &str| arm.links().iter().find(|l| l.name == name).unwrap();
    assert_eq!((link("tool").body, link("tool").pose), (Some(0), along_x(4.0)));
    assert_eq!((link("stand").body, link("stand").pose), (None, along_x(-1.0)));
    assert_eq!(link("tool").inertia, Some(bar()), "each link keeps what the description says of it");
}

#[test]
fn bodies_are_in_the_order_of_the_description_but_none_before_its_parent() {
    let tree = chain(&["a", "b", "c"])
        .link("d", bar())
        .joint(JointSpec::new("jd", HINGE, "a", "d"))
        .link("e", bar())
        .joint(JointSpec::new("je", HINGE, "b", "e"));
    let names = |tree: &MechanismBuilder| -> Vec<String> {
        build(tree).unwrap().bodies().iter().map(|b| b.name.clone()).collect()
    };
    assert_eq!(names(&tree), ["a", "b", "c", "d", "e"]);
    let mut backwards = tree;
    backwards.joints.reverse();
    assert_eq!(names(&backwards), ["a", "d", "b", "e", "c"]);
}

#[test]
fn a_massless_link_has_no_parameters_until_something_is_fixed_to_it() {
    let mut arm = chain(&["a", "b"]);
    arm.links[0].inertia = None;
    arm.massless.insert("a".into());
    let plain = build(&arm).unwrap();
    assert_eq!((plain.bodies()[0].kind, plain.parameter_count()), (BodyKind::Massless, 10));
    let laden = arm.clone().link("box", bar()).joint(JointSpec::new("w", JointType::Fixed, "a", "box"));
    let laden = build(&laden).unwrap();
    assert_eq!((laden.bodies()[0].kind, laden.parameter_count()), (BodyKind::Link, 20));
    let driven = build(&arm.rotor(rotor("jb", "a"))).unwrap();
    assert_eq!((driven.bodies()[0].kind, driven.parameter_count()), (BodyKind::Link, 21));
}

// Couplings

#[test]
fn followers_share_the_coordinate_that_finally_moves_them() {
    let mut hand = chain(&["a", "b", "c"]);
    // c follows a, which follows b: the leader comes after one of its followers.
    mimic(&mut hand, 2, "ja", 2.0, 0.5);
    mimic(&mut hand, 0, "jb", -3.0, 0.1);
    hand.joints[2].dynamics.armature = 0.25;
    let hand = build(&hand).unwrap();
    assert_eq!((hand.nq(), hand.nv()), (1, 1));
    assert_eq!(hand.velocity_names(), ["jb"]);
    let drives: Vec<_> =
        hand.bodies().iter().map(|b| (b.drive.q, b.drive.v, b.drive.ratio, b.drive.offset)).collect();
    assert_eq!(drives, [(0, 0, -3.0, 0.1), (0, 0, 1.0, 0.0), (0, 0, -6.0, 0.7)]);
    assert_eq!(hand.joints()[2].follows, Some(1));
    assert_eq!(hand.armature(), [0.25 * 36.0]);
}

#[test]
fn followers_of_several_joints_add_their_motions() {
    let mut hand = chain(&["a", "b", "c", "d"]);
    let several = |leaders: &[(&str, f64)], offset| {
        let leaders = leaders.iter().map(|(name, ratio)| ((*name).to_owned(), *ratio)).collect();
        Some(Mimic { leaders, offset })
    };
    // d follows c and a, c follows a and b: the ratios of a cancel.
    hand.joints[3].mimic = several(&[("jc", 2.0), ("ja", -6.0)], 0.5);
    hand.joints[2].mimic = several(&[("ja", 3.0), ("jb", 0.25)], 0.1);
    let built = build(&hand).unwrap();
    let drives: Vec<_> =
        built.bodies().iter().map(|b| (b.kind, b.drive.v, b.drive.ratio, b.drive.offset)).collect();
    let expected = [
        (BodyKind::Link, 0, 1.0, 0.0),
        (BodyKind::Link, 1, 1.0, 0.0),
        (BodyKind::Massless, 0, 3.0, 0.0),
        (BodyKind::Link, 1, 0.25, 0.1),
        (BodyKind::Link, 1, 0.5, 0.7),
    ];
    assert_eq!(drives, expected);
    let mut heavy = hand.clone();
    heavy.joints[2].dynamics.armature = 0.1;
    refused(build(&heavy), "armature at a joint that follows several others is not supported");
    refused(build(&hand.clone().rotor(rotor("jc", "b"))), "its joint follows several others");
    hand.joints[0].mimic = several(&[], 0.0);
    refused(build(&hand), "it can follow (mimic) one to 100 joints");
}

#[test]
fn impossible_couplings_are_refused() {
    let two = chain(&["a", "b"]);
    let with = |leader: &str, ratio: f64| {
        let mut out = two.clone();
        mimic(&mut out, 1, leader, ratio, 0.0);
        out
    };
    refused(build(&with("jb", 1.0)), "cycle");
    refused(build(&with("jz", 1.0)), "joint \"jb\": it follows \"jz\", which is not a moving joint");
    refused(build(&with("ja", f64::NAN)), "not a finite number");
    let mut circle = with("ja", 1.0);
    mimic(&mut circle, 0, "jb", 1.0, 0.0);
    refused(build(&circle), "cycle");
    let mut ball = with("ja", 1.0);
    ball.joints[0].joint_type = JointType::Spherical;
    refused(build(&ball), "several axes");
    let mut ball = with("ja", 1.0);
    ball.joints[1].joint_type = JointType::Spherical;
    refused(build(&ball), "one degree of freedom");
    let mut steep = chain(&["a", "b", "c"]);
    mimic(&mut steep, 1, "ja", 1e200, 0.0);
    mimic(&mut steep, 2, "jb", 1e200, 0.0);
    refused(build(&steep), "not a finite number");
}

// Rotors

#[test]
fn a_symmetric_rotor_keeps_its_spin_and_gives_the_rest_to_its_carrier() {
    let arm = chain(&["a", "b"]).rotor(rotor("jb", "a"));
    let one = build(&arm).unwrap();
    assert_eq!(one.bodies()[2].kind, BodyKind::SymmetricRotor);
    assert_eq!(one.parameter_names().last().unwrap(), "jb.rotor.Izz");
    assert_eq!(one.parameters().last(), Some(&3.0));
    let carried = Inertia::from_com(0.5, Vector3::zeros(), Matrix3::from_diagonal(&vector![2.0, 2.0, 0.0]));
    assert_eq!(one.bodies()[0].inertia, bar() + carried.transformed(&along_x(0.2)));
    assert_eq!((one.bodies()[2].drive.v, one.bodies()[2].drive.ratio), (1, 50.0));

    let none = with_rotors(&arm, RotorModel::None).unwrap();
    assert_eq!((none.bodies().len(), none.parameter_count()), (2, 20));
    assert_eq!(none.bodies()[0].inertia, bar() + arm.rotors[0].inertia.transformed(&along_x(0.2)));

    let ten = with_rotors(&arm, RotorModel::General).unwrap();
    assert_eq!((ten.parameter_count(), ten.bodies()[2].kind), (30, BodyKind::Rotor));
    assert_eq!(ten.bodies()[0].inertia, bar());
    assert_eq!(ten.parameter_names()[20], "jb.rotor.m");
}

#[test]
fn a_rotor_may_point_anywhere() {
    let mut rng = Rng(3);
    for axis in [Vector3::x(), -Vector3::z(), Vector3::from(rng.unit::<3>()), vector![0.0, 3.0, -4.0]] {
        let unit = axis.normalize();
        let spec = RotorSpec { axis, inertia: rng.symmetric_inertia(&unit), ..rotor("ja", "ground") };
        let spin = unit.dot(&(spec.inertia.rotational * unit));
        let arm = build(&chain(&["a"]).rotor(spec)).unwrap();
        let body = &arm.bodies()[1];
        let turned = body.placement.rotation.column(2).into_owned();
        assert_close(turned.as_slice(), unit.as_slice(), 1e-15, "axis");
        assert_close(&[arm.parameters()[10]], &[spin], 1e-14, "spin");
        assert_eq!(body.joint_type, HINGE);
        assert_eq!(arm.warnings(), [] as [String; 0]);
    }
}

#[test]
fn rotors_of_followers_and_several_rotors_of_one_joint() {
    let mut hand = chain(&["a", "b"]).rotor(rotor("jb", "a")).rotor(rotor("jb", "ground"));
    mimic(&mut hand, 1, "ja", -2.0, 0.5);
    let hand = build(&hand).unwrap();
    assert_eq!((hand.nv(), hand.bodies().len()), (1, 4));
    assert_eq!((hand.bodies()[2].name.as_str(), hand.bodies()[3].name.as_str()), ("jb.rotor", "jb.rotor2"));
    let drive = hand.bodies()[2].drive;
    assert_eq!((drive.v, drive.ratio, drive.offset), (0, -100.0, 25.0));
}

#[test]
fn a_rotor_without_symmetry_causes_a_warning() {
    let mut lame = rotor("ja", "ground");
    lame.inertia.first_moment.x = 0.1;
    let arm = chain(&["a"]).rotor(lame);
    assert!(build(&arm).unwrap().warnings()[0].contains("not symmetric about its axis"));
    assert!(with_rotors(&arm, RotorModel::General).unwrap().warnings().is_empty());
}

#[test]
fn impossible_rotors_are_refused() {
    let arm = chain(&["a"]);
    let with = |change: fn(&mut RotorSpec)| {
        let mut spec = rotor("ja", "ground");
        change(&mut spec);
        build(&arm.clone().rotor(spec))
    };
    refused(with(|r| r.joint = "jz".into()), "rotor of joint \"jz\": there is no moving joint of that name");
    refused(with(|r| r.carrier = "z".into()), "its carrier \"z\" does not exist");
    refused(with(|r| r.axis = Vector3::zeros()), "its axis has no length");
    refused(with(|r| r.ratio = f64::INFINITY), "inf is not a finite number");
    refused(with(|r| r.inertia.mass = f64::NAN), "NaN is not a finite number");
    refused(with(|r| r.origin.rotation *= 2.0), "orthogonal");
    let mut ball = arm.clone().rotor(rotor("ja", "ground"));
    ball.joints[0].joint_type = JointType::Spherical;
    refused(build(&ball), "one degree of freedom");
    let mut taken = arm.clone().rotor(rotor("ja", "ground"));
    taken.links[0].name = "ja.rotor".into();
    taken.joints[0].child = "ja.rotor".into();
    refused(build(&taken), "two bodies have this name");
}

// Base

#[test]
fn the_base_floats_by_the_model_or_by_option() {
    let arm = chain(&["a", "b"]).link("ground", bar());
    let fixed = build(&arm).unwrap();
    assert_eq!((fixed.base(), fixed.nv(), fixed.parameter_count()), (Base::Fixed, 2, 20));
    let floating = with_base(&arm, Base::Floating).unwrap();
    assert_eq!((floating.base(), floating.nq(), floating.nv()), (Base::Floating, 9, 8));
    // The ground of the description has become a body and needs another name.
    assert_eq!(floating.bodies()[0].name, "base");
    assert_eq!(floating.bodies()[0].inertia, bar());
    assert_eq!(floating.velocity_names()[..2], ["root.vx", "root.vy"]);
    assert_eq!(floating.force_names()[2..5], ["root.fz", "root.tx", "root.ty"]);
    assert_eq!(floating.force_names()[6..], floating.velocity_names()[6..]);
    let taken = chain(&["base"]);
    assert_eq!(with_base(&taken, Base::Floating).unwrap().bodies()[0].name, "base_");

    let mut robot = chain(&["a", "b"]);
    robot.joints[0].joint_type = JointType::Floating;
    robot.assembly.push(("ja".into(), vec![0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]));
    let free = build(&robot).unwrap();
    assert_eq!((free.base(), free.nv(), free.assembly()[2]), (Base::Floating, 7, 1.0));
    assert_eq!(with_base(&robot, Base::Floating).unwrap().nv(), 7, "it floats already");
    let bolted = with_base(&robot, Base::Fixed).unwrap();
    assert_eq!((bolted.base(), bolted.nv(), bolted.bodies()[0].name.as_str()), (Base::Fixed, 1, "b"));
}

#[test]
fn a_base_that_does_not_carry_everything_is_not_the_base() {
    let mut two = chain(&["a"]).link("b", bar()).joint(JointSpec::new("jb", HINGE, "ground", "b"));
    two.joints[0].joint_type = JointType::Floating;
    assert_eq!(build(&two).unwrap().base(), Base::Fixed);
    let mut winch = chain(&["a", "b"]).rotor(rotor("jb", "ground"));
    winch.joints[0].joint_type = JointType::Floating;
    assert_eq!(build(&winch).unwrap().base(), Base::Fixed);
}

// Loops

#[test]
fn coordinates_off_loops_are_independent_and_marks_decide_on_them() {
    // A loop through b and c; a comes before it, and d is attached after it.
    let open = chain(&["a", "b", "c"])
        .link("d", bar())
        .joint(JointSpec::new("jd", HINGE, "c", "d"))
        .close_loop(loop_between("l", "c", "a"));
    let marks = |b: &MechanismBuilder| build(b).unwrap().independent_marks().to_vec();
    assert_eq!(marks(&open), [Some(true), None, None, Some(true)]);
    let mut marked = open.clone();
    marked.joints[2].independent = Some(true);
    assert_eq!(marks(&marked), [Some(true), Some(false), Some(true), Some(true)]);
    let mut dependent = open.clone();
    dependent.joints[1].independent = Some(false);
    assert_eq!(marks(&dependent), [Some(true), Some(false), None, Some(true)]);
    let mut wrong = open;
    wrong.joints[3].independent = Some(false);
    refused(build(&wrong), "marked as dependent but lies on no loop");
}

#[test]
fn impossible_loops_are_refused() {
    let arm = chain(&["a", "b"]);
    let with = |spec| build(&arm.clone().close_loop(spec));
    refused(with(loop_between("l", "a", "z")), "loop \"l\": its link \"z\" does not exist");
    refused(with(loop_between("l", "b", "b")), "same rigid body");
    let mut bent = loop_between("l", "a", "ground");
    bent.joint_type = JointType::Universal { axes: [Vector3::x(), Vector3::x() * -2.0] };
    refused(with(bent), "must not be parallel");
    let twice = arm.close_loop(loop_between("l", "a", "ground")).close_loop(loop_between("l", "b", "ground"));
    refused(build(&twice), "the name is taken");
}

// Invalid mechanisms

#[test]
fn wrong_trees_are_refused() {
    let hinge = |name: &str, parent: &str, child: &str| JointSpec::new(name, HINGE, parent, child);
    refused(build(&chain(&["a", "a"])), "link \"a\": the name is taken");
    let arm = chain(&["a", "b"]);
    refused(
        build(&arm.clone().link("c", bar()).joint(hinge("ja", "b", "c"))),
        "joint \"ja\": the name is taken",
    );
    refused(build(&arm.clone().joint(hinge("j", "a", "z"))), "its child link \"z\" does not exist");
    refused(build(&arm.clone().joint(hinge("j", "z", "a"))), "its parent link \"z\" does not exist");
    refused(build(&arm.clone().joint(hinge("j", "b", "ground"))), "root link \"ground\" cannot be a child");
    refused(build(&arm.clone().joint(hinge("j", "ground", "b"))), "already has the parent joint \"jb\"");
    let island = arm.clone().link("y", bar()).link("x", bar()).joint(hinge("jy", "x", "y"));
    refused(build(&island), "link \"x\": it is not connected to the rest");
    let ring = arm.clone().link("x", bar()).link("y", bar());
    let ring = ring.joint(hinge("jx", "y", "x")).joint(hinge("jy", "x", "y"));
    refused(build(&ring), "cycle");
    let below = ring.link("w", bar()).joint(hinge("jw", "x", "w"));
    refused(build(&below), "cycle");
    refused(build(&arm.link("x", bar()).joint(hinge("jx", "x", "x"))), "cycle");
}

#[test]
fn wrong_numbers_are_refused() {
    let with = |change: fn(&mut MechanismBuilder)| {
        let mut out = chain(&["a"]);
        change(&mut out);
        build(&out)
    };
    let axis = |axis| JointType::Revolute { axis };
    refused(with(|b| b.gravity.x = f64::NAN), "gravity: NaN is not a finite number");
    refused(
        with(|b| b.links[0].inertia = Some(bar() + Inertia { mass: f64::INFINITY, ..Inertia::zero() })),
        "inf",
    );
    refused(with(|b| b.joints[0].origin.translation.y = f64::NAN), "joint \"ja\": NaN");
    refused(with(|b| b.joints[0].origin.rotation[(0, 0)] = -1.0), "right-handed orthogonal");
    refused(with(|b| b.joints[0].origin.rotation *= 1.01), "right-handed orthogonal");
    refused(with(|b| b.joints[0].joint_type = HINGE_WITHOUT_AXIS), "its axis has no length");
    refused(
        with(|b| b.joints[0].joint_type = JointType::Helical { axis: Vector3::x(), pitch: f64::NAN }),
        "NaN",
    );
    refused(with(|b| b.joints[0].dynamics.armature = f64::NAN), "NaN");
    refused(with(|b| b.joints[0].limits.upper = f64::NAN), "limit");
    refused(with(|b| b.assembly.push(("jz".into(), vec![0.0]))), "assembly of joint \"jz\"");
    refused(with(|b| b.assembly.push(("ja".into(), vec![0.0; 2]))), "it needs 1 numbers, not 2");
    refused(with(|b| b.assembly.push(("ja".into(), vec![f64::NAN]))), "NaN");
    let long = build(&MechanismBuilder {
        joints: vec![JointSpec::new("ja", axis(vector![0.0, 3e200, -4e200]), "ground", "a")],
        ..chain(&["a"])
    });
    assert_eq!(long.unwrap().bodies()[0].joint_type, axis(vector![0.0, 0.6, -0.8]));
}

const HINGE_WITHOUT_AXIS: JointType = JointType::Revolute { axis: Vector3::new(0.0, 1e-300, 0.0) };

#[test]
fn rounded_rotations_are_made_orthogonal() {
    let mut arm = chain(&["a"]);
    let exact = Rng(5).rotation();
    arm.joints[0].origin.rotation = exact.map(|x| (x * 1e4).round() / 1e4);
    let r = build(&arm).unwrap().bodies()[0].placement.rotation;
    assert!((r.transpose() * r - Matrix3::identity()).amax() < 1e-15);
    assert!((r - exact).amax() < 1e-4);
}

// The parameter vector

#[test]
fn parameters_can_be_replaced() {
    let arm = build(&chain(&["a", "b"]).rotor(rotor("ja", "ground"))).unwrap();
    let values: Vec<f64> = (0..21).map(f64::from).collect();
    let other = arm.clone().with_parameters(&values).unwrap();
    assert_eq!(other.parameters(), values);
    assert_eq!(other.bodies()[2].inertia.rotational[(2, 2)], 20.0);
    let wrong = arm.with_parameters(&[0.0; 3]).unwrap_err();
    assert_eq!(wrong, Error::Dimension { what: "parameter vector", expected: 21, found: 3 });
}

// Size

#[test]
fn long_chains_build() {
    let count = 10_000;
    for weld in [false, true] {
        let names: Vec<String> = (0..count).map(|k| k.to_string()).collect();
        let mut arm = chain(&names.iter().map(String::as_str).collect::<Vec<_>>());
        if weld {
            arm.joints.iter_mut().skip(1).for_each(|j| j.joint_type = JointType::Fixed);
        } else {
            (1..count).for_each(|k| mimic(&mut arm, k, &format!("j{}", (k - 1) / 2), 1.0, 0.0));
            arm.assembly.push(("j0".into(), vec![0.5]));
        }
        let arm = build(&arm).unwrap();
        assert_eq!(arm.nv(), 1);
        assert_eq!(arm.bodies().len(), if weld { 1 } else { count });
    }
}
