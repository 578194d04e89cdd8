//! The whole analysis: invariance of the result, snapping, and real robots.

#![allow(clippy::unwrap_used)]

use crate::common;
use crate::common::Rng;
use crate::golden;
use inertial::identifiability::{Analysis, AnalyzeOptions, Method, Regime, analyze};
use inertial::mechanism::{
    Base, BuildOptions, JointSpec, JointType, LinkSpec, Mechanism, MechanismBuilder, RotorModel, builtin,
    read,
};
use inertial::spatial::{Inertia, Pose};
use nalgebra::{Vector3, vector};

fn answer(m: &Mechanism) -> Analysis {
    analyze(m, &AnalyzeOptions::default()).unwrap()
}

fn with_snap(m: &Mechanism, snap: f64) -> Analysis {
    analyze(m, &AnalyzeOptions::default().with(|o| o.snap = snap)).unwrap()
}

fn build(b: &MechanismBuilder) -> Mechanism {
    b.build(&BuildOptions::default().with(|o| o.rotors = Some(RotorModel::Symmetric))).unwrap()
}

/// Calls `check` with a label, the description and the rank of every golden model.
fn for_each_golden_builder(mut check: impl FnMut(&str, &MechanismBuilder, usize)) {
    for name in golden::MODELS {
        let g = golden::file(name);
        for (floating, gravity) in [(false, true), (false, false), (true, true)] {
            let b = golden::builder(&g, floating, gravity);
            let label = format!("{name} floating {floating} gravity {gravity}");
            let rank = answer(&build(&b)).rank;
            check(&label, &b, rank);
        }
    }
}

#[test]
fn the_unit_of_length_does_not_matter() {
    for_each_golden_builder(|label, b, rank| {
        for factor in [1e-6, 1e-3, 0.3, 1e3, 1e6] {
            let mut scaled = b.clone();
            scaled.joints.iter_mut().for_each(|j| j.origin.translation *= factor);
            scaled.rotors.iter_mut().for_each(|r| r.origin.translation *= factor);
            for snap in [0.0, 1e-4] {
                let found = with_snap(&build(&scaled), snap);
                assert_eq!(
                    (found.rank, found.certificate.exact),
                    (rank, true),
                    "{label} × {factor}, snap {snap}"
                );
                assert!(found.warnings.is_empty(), "{label} × {factor}: {:?}", found.warnings);
            }
        }
    });
}

#[test]
fn the_order_of_siblings_does_not_matter() {
    for_each_golden_builder(|label, b, rank| {
        let mut other = b.clone();
        other.joints.reverse();
        other.rotors.reverse();
        assert_eq!(answer(&build(&other)).rank, rank, "{label}");
    });
}

/// Link frames are rotated at random and moved along the axis of their joint, which hides special positions in rounded numbers.
#[test]
fn the_choice_of_link_frames_does_not_matter() {
    let mut rng = Rng(11);
    for_each_golden_builder(|label, b, rank| {
        let mut other = b.clone();
        for k in 0..other.joints.len() {
            let (along, free) = match other.joints[k].joint_type {
                JointType::Revolute { axis } => (axis * rng.range(-1.0, 1.0), Vector3::zeros()),
                _ => (Vector3::zeros(), rng.vector(0.5)),
            };
            let change = Pose::new(rng.rotation(), along + free);
            let back = change.inverse();
            other.joints[k].origin = other.joints[k].origin * change;
            if let JointType::Revolute { axis } | JointType::Prismatic { axis } =
                &mut other.joints[k].joint_type
            {
                *axis = back.rotation * *axis;
            }
            let child = other.joints[k].child.clone();
            other.joints.iter_mut().filter(|j| j.parent == child).for_each(|j| j.origin = back * j.origin);
            other.rotors.iter_mut().filter(|r| r.carrier == child).for_each(|r| r.origin = back * r.origin);
        }
        for rotor in &mut other.rotors {
            let turn = rng.rotation();
            rotor.origin.rotation *= turn;
            rotor.axis = turn.transpose() * rotor.axis;
        }
        for snap in [0.0, 1e-4] {
            let found = with_snap(&build(&other), snap);
            assert_eq!(
                (found.rank, found.rank_literal),
                (rank, rank),
                "{label}, snap {snap}: {:?}",
                found.warnings
            );
            assert!(found.certificate.exact, "{label}");
        }
    });
}

#[test]
fn splitting_a_link_by_fixed_joints_does_not_matter() {
    let mut rng = Rng(12);
    for_each_golden_builder(|label, b, rank| {
        let mut other = b.clone();
        other.joints.clear();
        for joint in &b.joints {
            // One part of the pose by a fixed joint, the rest by the joint itself.
            let (seat, pose) = (format!("{}.seat", joint.name), rng.pose());
            other.links.push(LinkSpec { name: seat.clone(), inertia: None, line: None });
            other.joints.push(JointSpec::new(&seat, JointType::Fixed, &joint.parent, &seat).at(pose));
            let origin = pose.inverse() * joint.origin;
            other.joints.push(JointSpec { parent: seat, origin, ..joint.clone() });
        }
        for snap in [0.0, 1e-4] {
            let found = with_snap(&build(&other), snap);
            assert_eq!(
                (found.rank, found.rank_literal),
                (rank, rank),
                "{label}, snap {snap}: {:?}",
                found.warnings
            );
        }
    });
}

#[test]
fn rounded_angles_are_snapped_and_named() {
    let g = golden::file("robustness_cases");
    let case = |name: &str| {
        let cases = g["cases"].as_array().unwrap();
        golden::robustness(cases.iter().find(|c| c["name"] == name).unwrap())
    };
    for (name, meant, literal, joints) in [
        ("planar_2r_axis_tilt_1e-5", 4, 8, vec!["joint2"]),
        ("planar_2r_axis_tilt_1e-12", 4, 8, vec!["joint2"]),
        ("puma560_angles_off_1e-6_rotors", 40, 41, vec!["joint2"]),
        ("scara_third_axis_tilt_2e-6", 8, 14, vec!["joint3"]),
    ] {
        let found = answer(&case(name));
        assert_eq!((found.rank, found.rank_literal), (meant, literal), "{name}: {:?}", found.warnings);
        assert_eq!(found.warnings.len(), 1, "{name}: {:?}", found.warnings);
        assert!(
            joints.iter().all(|j| found.warnings[0].to_string().contains(j)),
            "{name}: {:?}",
            found.warnings
        );
        assert!(found.certificate.exact);
        let strict = with_snap(&case(name), 0.0);
        assert_eq!(
            (strict.rank, strict.rank_literal, strict.certificate.exact),
            (literal, literal, true),
            "{name}"
        );
    }
    for c in g["cases"].as_array().unwrap() {
        let want = c["exact"]["n_base_parameters"].as_u64().unwrap() as usize;
        let (strict, snapped) = (with_snap(&golden::robustness(c), 0.0), answer(&golden::robustness(c)));
        assert_eq!((strict.rank, strict.certificate.exact), (want, true), "{}", c["name"]);
        assert_eq!((snapped.rank_literal, snapped.certificate.exact), (want, true), "{}", c["name"]);
        let named = snapped.warnings.iter().any(|w| w.to_string().contains("taken literally"));
        assert_eq!(named, snapped.rank != want, "{}", c["name"]);
    }
}

#[test]
fn closed_forms_of_simple_robots() {
    let hinge = |axis| JointType::Revolute { axis };
    let one = |joint_type| {
        let b = MechanismBuilder::new("one", "ground").link("a", Inertia::zero());
        build(&b.joint(JointSpec::new("j", joint_type, "ground", "a")))
    };
    let rank = |m: &Mechanism, regime| {
        analyze(m, &AnalyzeOptions::default().with(|o| o.regime = regime)).unwrap().rank
    };
    // A pendulum: two first moments and one inertia; the moments at rest, the inertia without gravity.
    let pendulum = one(hinge(Vector3::y()));
    let by_regime = [Regime::Full, Regime::Static, Regime::Kinetic].map(|r| rank(&pendulum, r));
    assert_eq!(by_regime, [3, 2, 1]);
    // A wheel about the vertical axis; a lift; a ball joint; a free body, moving and at rest (mass and first moments).
    assert_eq!(rank(&one(hinge(Vector3::z())), Regime::Full), 1);
    assert_eq!(rank(&one(JointType::Prismatic { axis: Vector3::z() }), Regime::Full), 1);
    assert_eq!(rank(&one(JointType::Spherical), Regime::Full), 9);
    assert_eq!(rank(&one(JointType::Floating), Regime::Full), 10);
    assert_eq!(rank(&one(JointType::Floating), Regime::Static), 4);
    // A universal joint on the ground with the first axis along gravity: the first moment along the second axis is not
    // identifiable.
    let universal = |axes| one(JointType::Universal { axes });
    let upright = answer(&universal([Vector3::z(), Vector3::x()]));
    assert!(upright.certificate.exact);
    assert_eq!(upright.bodies.len(), 1);
    let status = |a: &Analysis, n: &str| a.bodies[0].parameters.iter().find(|p| p.0 == n).unwrap().1;
    assert_eq!(status(&upright, "hx"), inertial::identifiability::Status::Unidentifiable);
    // A mechanism without joints has no parameters.
    let none = build(&MechanismBuilder::new("rock", "ground"));
    let found = answer(&none);
    assert_eq!((found.rank, found.parameters, found.certificate.exact), (0, 0, true));
}

/// Axes that intersect, are parallel or perpendicular only to within the rounding of a file are treated as special.
#[test]
fn nearly_special_positions_are_treated_as_special() {
    let arm = |axis: Vector3<f64>, offset: Vector3<f64>| {
        let hinge = |axis| JointType::Revolute { axis };
        let b =
            MechanismBuilder::new("wrist", "ground").link("a", Inertia::zero()).link("b", Inertia::zero());
        let b = b.joint(JointSpec::new("j1", hinge(Vector3::z()), "ground", "a"));
        let b = b.joint(JointSpec::new("j2", hinge(axis), "a", "b").at(Pose::from_translation(offset)));
        let b = b.link("c", Inertia::zero());
        let far = Pose::from_translation(vector![0.0, 0.0, 1.0]);
        let b = b.joint(JointSpec::new("j3", hinge(Vector3::y()), "b", "c").at(far));
        build(&MechanismBuilder { gravity: Vector3::zeros(), ..b })
    };
    let meeting = answer(&arm(Vector3::x(), Vector3::zeros()));
    let nearly = answer(&arm(Vector3::x(), vector![0.3, 2e-5, 0.0]));
    let missing = answer(&arm(Vector3::x(), vector![0.3, 2e-2, 0.0]));
    assert_eq!(nearly.rank, meeting.rank);
    assert_eq!(nearly.rank_literal, missing.rank);
    assert!(missing.rank > meeting.rank, "{} {}", missing.rank, meeting.rank);
    assert!(nearly.warnings[0].to_string().contains("joint j2 lies"), "{:?}", nearly.warnings);
    let tilted = answer(&arm(vector![1.0, 0.0, 3e-5], Vector3::zeros()));
    assert_eq!(tilted.rank, meeting.rank);
}

#[test]
fn wrong_options_are_one_clear_line() {
    let pendulum = MechanismBuilder::new("one", "ground").link("a", Inertia::zero());
    let hinge = JointType::Revolute { axis: Vector3::y() };
    let m = build(&pendulum.joint(JointSpec::new("j", hinge, "ground", "a")));
    for snap in [-1.0, f64::NAN, 1.0] {
        let e = analyze(&m, &AnalyzeOptions::default().with(|o| o.snap = snap)).unwrap_err().to_string();
        assert!(e.contains("snapping tolerance") && e.lines().count() == 1, "{e}");
    }
}

/// The published base parameters of a free-flying robot with two arms follow from its published inertias.
#[test]
fn space_robot() {
    let m = builtin::get("space-dual-arm").and_then(|b| b.build(&BuildOptions::default())).unwrap();
    let found = answer(&m);
    assert_eq!((found.rank, found.certificate.exact), (52, true));
    let text = std::fs::read_to_string(common::data::golden("space/dual_arm_12dof.json")).unwrap();
    let golden: serde_json::Value = serde_json::from_str(&text).unwrap();
    let values = found.regrouping.regroup(&m.parameters()).unwrap();
    for row in golden["table4"].as_array().unwrap() {
        // Names of the paper: first moments mx, the product Izx, and Ixx minus Iyy.
        let (body, leading) = row["leading"].as_str().unwrap().split_once('.').unwrap();
        let name = match leading {
            "Ixx-Iyy" => "Ixx",
            "Izx" => "Ixz",
            "mx" => "hx",
            "my" => "hy",
            "mz" => "hz",
            other => other,
        };
        let at = found.base_parameters.iter().position(|b| b.name == format!("{body}.{name}")).unwrap();
        let want = row["true_computed"].as_f64().unwrap();
        assert!(
            (values[at] - want).abs() < 1e-9 * want.abs().max(1.0),
            "{body}.{name}: {} {want}",
            values[at]
        );
    }
}

#[test]
fn builtin_open_chains() {
    for (name, rank) in [
        ("puma560", 36),
        ("arm7", 43),
        ("planar-2r", 6),
        ("quadruped", 94),
        ("cheetah-leg", 17),
        ("scara", 8),
    ] {
        let options = BuildOptions::default().with(|o| o.rotors = Some(RotorModel::None));
        let m = builtin::get(name).and_then(|b| b.build(&options)).unwrap();
        let found = answer(&m);
        assert_eq!((found.rank, found.certificate.exact), (rank, true), "{name}: {:?}", found.warnings);
    }
}

/// Ranks of real robots agree with the singular values of Pinocchio's regressor.
#[test]
fn real_robots() {
    let Some(list) = common::python::run("oracle_pinocchio.py", &["list"]) else { return };
    let down = [0.0, 0.0, -9.81];
    for (robot, floating, gravity, rank) in [
        ("ur5_robot.urdf", false, down, 36),
        ("panda.urdf", false, down, 48),
        // The arm without its fingers.
        ("panda.urdf arm", false, down, 43),
        ("panda.urdf arm", false, [0.0; 3], 39),
        ("panda.urdf arm", false, [3.0, 4.0, -5.0], 45),
        ("xarm7.urdf", false, down, 43),
        ("go1.urdf", true, down, 94),
        ("go1.urdf", false, down, 68),
        ("solo12.urdf", true, down, 94),
        ("anymal.urdf", true, down, 94),
        ("g1_29dof_rev_1_0.urdf", true, down, 213),
        ("talos_reduced.urdf", true, down, 234),
        ("pr2.urdf", false, down, 138),
    ] {
        let (file, arm) = robot.strip_suffix(" arm").map_or((robot, false), |file| (file, true));
        let Some(path) = list.lines().find(|p| p.ends_with(&format!("/{file}"))) else {
            common::data::skip(robot);
            continue;
        };
        let mut builder = read::urdf::read(&std::fs::read_to_string(path).unwrap()).unwrap();
        for joint in builder.joints.iter_mut().filter(|j| arm && j.name.contains("finger")) {
            joint.joint_type = JointType::Fixed;
            joint.mimic = None;
        }
        let base = floating.then_some(Base::Floating);
        let options = BuildOptions::default().with(|o| {
            o.base = base;
            o.gravity = Some(gravity.into());
        });
        let m = builder.build(&options).unwrap();
        let found = answer(&m);
        assert_eq!(found.rank, rank, "{robot} floating {floating}: {:?}", found.warnings);
        assert!(found.certificate.exact, "{robot}: {:?}", found.certificate);
        assert_eq!(found.method, if file == "pr2.urdf" { "exact" } else { "rpna" });
        if m.parameter_count() < 150 {
            let method = Method::Numeric;
            let numeric = analyze(&m, &AnalyzeOptions::default().with(|o| o.method = method)).unwrap();
            assert_eq!(numeric.rank, rank, "{robot}: {:?}", numeric.certificate);
        }
    }
}
