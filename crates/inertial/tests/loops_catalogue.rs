//! Machines with loops from the textbooks, and the same machine told in several formats.

#![allow(clippy::unwrap_used)]

mod common;
mod loops;
mod machines;

use common::Rng;
use inertial::identifiability::{Analysis, AnalyzeOptions, Measured, Method, Regime, analyze};
use inertial::linalg::rank;
use inertial::mechanism::{JointType, Mechanism};
use inertial::spatial::Pose;
use loops::{by, check_extended, check_null_vectors, check_sound, mechanism, null_space, regressor};
use machines::{Blueprint, Ring};
use nalgebra::{DMatrix, Vector3, vector};

/// A point of the plane `y = 0`, turned about z.
fn around(degrees: f64, x: f64, z: f64) -> Vector3<f64> {
    let angle = degrees.to_radians();
    vector![x * angle.cos(), x * angle.sin(), z]
}

fn frame(p: Vector3<f64>) -> Pose<f64> {
    Pose::from_translation(p)
}

/// The Delta robot: three arms, each with two rods on ball joints. The parallelograms let the platform only translate,
/// though no joint says so; each rod may spin.
fn delta(rng: &mut Rng) -> Blueprint {
    let mut plan = Blueprint::new("Delta");
    // Right triangles 3-4-5 keep all lengths decimal: elbow at (0.44, −0.2), foot 0.3 inward and 0.4 below it.
    for k in 0..3u8 {
        let turn = 120.0 * f64::from(k);
        let across = around(turn + 90.0, 0.05, 0.0);
        let (elbow, foot) = (around(turn, 0.44, -0.2), around(turn, 0.14, -0.6));
        let arm = format!("arm{k}");
        let axis = across.normalize();
        plan.link(
            &arm,
            rng.inertia(),
            "ground",
            JointType::Revolute { axis },
            frame(around(turn, 0.24, 0.0)),
        );
        for (side, sign) in [("left", 1.0), ("right", -1.0)] {
            let rod = format!("rod{k}{side}");
            plan.link(&rod, rng.inertia(), &arm, JointType::Spherical, frame(elbow + sign * across));
            let hip = frame(foot + sign * across);
            if k == 0 && sign > 0.0 {
                plan.link("platform", rng.inertia(), &rod, JointType::Spherical, hip);
            } else {
                plan.close(&format!("hip{k}{side}"), &rod, "platform", JointType::Spherical, hip);
            }
        }
    }
    plan
}

/// A platform on three legs, each of an inner joint, a middle one and an outer one.
fn three_legs(name: &str, rng: &mut Rng, leg: impl Fn(f64) -> [(JointType, Vector3<f64>); 3]) -> Blueprint {
    let mut plan = Blueprint::new(name);
    for k in 0..3u8 {
        let [(inner, p), (middle, q), (outer, r)] = leg(120.0 * f64::from(k));
        plan.link(&format!("lower{k}"), rng.inertia(), "ground", inner, frame(p));
        plan.link(&format!("upper{k}"), rng.inertia(), &format!("lower{k}"), middle, frame(q));
        if k == 0 {
            plan.link("platform", rng.inertia(), "upper0", outer, frame(r));
        } else {
            plan.close(&format!("leg{k}"), &format!("upper{k}"), "platform", outer, frame(r));
        }
    }
    plan
}

fn tangent(turn: f64) -> Vector3<f64> {
    around(turn + 90.0, 1.0, 0.0)
}

fn catalogue() -> Vec<(Blueprint, usize)> {
    let rng = &mut Rng(51);
    let revolute = |axis: Vector3<f64>| JointType::Revolute { axis };
    let prismatic = |axis: Vector3<f64>| JointType::Prismatic { axis: axis.normalize() };
    // Legs from (0.5, 0) to (0.2, 0.4): a 3-4-5 triangle.
    let (foot, hip) = (|turn| around(turn, 0.5, 0.0), |turn| around(turn, 0.2, 0.4));
    let along = |turn| hip(turn) - foot(turn);
    let across = |turn: f64| along(turn).cross(&tangent(turn)).normalize();
    let universal = |a: Vector3<f64>, b: Vector3<f64>| JointType::Universal { axes: [a, b] };
    let mut out = vec![(delta(rng), 9)];
    out.push((
        three_legs("translational 3-UPU", rng, |t| {
            [
                (universal(tangent(t), across(t)), foot(t)),
                (prismatic(along(t)), 0.5 * (foot(t) + hip(t))),
                (universal(across(t), tangent(t)), hip(t)),
            ]
        }),
        3,
    ));
    out.push((
        three_legs("translational 3-RUU", rng, |t| {
            let (knee, ankle) = (around(t, 0.7, 0.0), around(t, 0.4, 0.4));
            let n = (ankle - knee).cross(&tangent(t)).normalize();
            [
                (revolute(tangent(t)), around(t, 0.5, 0.0)),
                (universal(tangent(t), n), knee),
                (universal(n, tangent(t)), ankle),
            ]
        }),
        3,
    ));
    out.push((
        three_legs("3-RPS", rng, |t| {
            [
                (revolute(tangent(t)), foot(t)),
                (prismatic(along(t)), 0.5 * (foot(t) + hip(t))),
                (JointType::Spherical, hip(t)),
            ]
        }),
        3,
    ));
    out.push((
        three_legs("spherical 3-RRR", rng, |t| {
            let (inner, middle) = (around(t, 0.6, 0.8), tangent(t));
            let outer = inner.cross(&middle);
            [(revolute(inner), inner), (revolute(middle), 0.5 * middle), (revolute(outer), 0.4 * outer)]
        }),
        3,
    ));
    out
}

/// The exact answer (or, where dimensions are special beyond what exact curves can keep, that of 31 digits) is the rank of the
/// torque regressor in double precision, which none of them uses.
#[test]
fn machines_of_the_textbooks() {
    for (plan, mobility) in catalogue() {
        let name = plan.builder.name.clone();
        let robot = plan.build();
        let answer = analyze(&robot, &by(Method::Drng)).unwrap_or_else(|e| panic!("{name}: {e}"));
        println!("{name}: rank {} of {}, {}", answer.rank, answer.parameters, answer.method);
        assert_eq!(answer.model.dof, mobility, "{name}");
        check_null_vectors(&name, &robot, &answer);
        check_sound(&name, &robot);
        check_extended(&name, &robot, &answer, inertial::mechanism::DEFAULT_SNAP);
        if mobility > 1 {
            // With several freedoms singular values of order 1e-6 and up are separated clearly from rounding.
            let sampled = rank(&regressor(&robot, 2 * answer.parameters, 3), 1e-10).unwrap();
            assert_eq!(sampled.rank, answer.rank, "{name}: {sampled:?}");
        }
    }
}

/// The Delta's platform keeps its orientation, so its inertia and the direction of its first moment never show.
#[test]
fn a_platform_that_only_translates_has_no_inertia_to_show() {
    let robot = delta(&mut Rng(52)).build();
    let answer = analyze(&robot, &AnalyzeOptions::default()).unwrap();
    let platform = answer.bodies.iter().find(|b| b.name == "platform").unwrap();
    // The three velocities, gravity among them.
    assert_eq!(platform.velocity_span, 3, "{platform:?}");
    assert_eq!(platform.identifiable_span, 1, "{platform:?}");
}

/// Every kind of measurement, decided in 31 digits too.
#[test]
fn other_sensors_and_motions_in_extended_precision() {
    let rng = &mut Rng(53);
    let ring = Ring::new(
        "five-bar",
        rng,
        machines::planar(&[(0.0, 0.0), (-0.3, 0.5), (0.4, 1.0), (1.1, 0.6), (0.8, 0.0)]),
    );
    let robots = [ring.cut(2, &[]), machines::floating_leg(rng).build()];
    for robot in &robots {
        let mut asked = vec![
            AnalyzeOptions { regime: Regime::Static, ..Default::default() },
            AnalyzeOptions { regime: Regime::Kinetic, ..Default::default() },
        ];
        for measured in [Measured::JointTorques, Measured::BaseWrench, Measured::Both, Measured::Momentum] {
            asked.push(AnalyzeOptions { measured: Some(measured), ..Default::default() });
        }
        for options in asked {
            let exact = analyze(robot, &AnalyzeOptions { method: Method::Exact, ..options.clone() }).unwrap();
            let numeric =
                analyze(robot, &AnalyzeOptions { method: Method::Numeric, ..options.clone() }).unwrap();
            let what = format!("{} {options:?}", robot.name());
            assert_eq!(exact.rank, numeric.rank, "{what}: {}", numeric.certificate.lower_by);
            assert!(exact.certificate.exact && !numeric.certificate.exact, "{what}");
        }
    }
}

/// That two descriptions leave the same unknown.
fn assert_same(a: &Mechanism, b: &Mechanism) {
    assert_eq!(a.parameter_names(), b.parameter_names());
    let answer = |m: &Mechanism| -> Analysis { analyze(m, &by(Method::Drng)).unwrap() };
    let (x, y) = (answer(a), answer(b));
    assert_eq!((x.rank, x.certificate.exact), (y.rank, y.certificate.exact), "{}", a.name());
    let (x, y) = (null_space(&x), null_space(&y));
    let both = DMatrix::from_columns(&x.column_iter().chain(y.column_iter()).collect::<Vec<_>>());
    assert_eq!(rank(&both, 1e-8).unwrap().rank, x.ncols(), "{}", a.name());
}

#[test]
fn mjcf_equalities_are_the_loops_of_mechanism_files() {
    let inertial = "<inertial pos='0.1 0 0' mass='1' diaginertia='0.1 0.1 0.1'/>";
    let bar = |name: &str, at: &str, inside: &str| {
        format!(
            "<body name='{name}' pos='{at}'><joint name='j_{name}' axis='0 0 1'/>{inertial}{inside}</body>"
        )
    };
    let world = |bodies: &str, equality: &str| {
        mechanism(&format!(
            "<mujoco model='linkage'><compiler angle='radian'/><option gravity='0 -9.81 0'/>
             <worldbody>{bodies}</worldbody><equality>{equality}</equality></mujoco>"
        ))
    };
    let file = |bodies: &[(&str, &str, &str)], rest: &str| {
        let bodies = bodies.iter().map(|(name, parent, xyz)| {
            format!(
                r#"{{"name": "{name}", "parent": "{parent}",
                    "joint": {{"name": "j_{name}", "type": "revolute", "origin": {{"xyz": {xyz}}}, "axis": [0, 0, 1]}}}}"#
            )
        });
        let bodies = bodies.collect::<Vec<_>>().join(",");
        mechanism(&format!(
            r#"{{"schema": "inertial/mechanism/1", "name": "linkage", "gravity": [0, -9.81, 0], "bodies": [{bodies}], {rest}}}"#
        ))
    };
    // A four-bar closed by a ball joint.
    let coupler = bar("b", "0.1 0.4 0", "");
    let cranks = format!("{}{}", bar("a", "0 0 0", &coupler), bar("c", "0.8 -0.1 0", ""));
    let connect = world(&cranks, "<connect body1='b' body2='c' anchor='0.8 0.2 0'/>");
    let bars = [("a", "ground", "[0, 0, 0]"), ("b", "a", "[0.1, 0.4, 0]"), ("c", "ground", "[0.8, -0.1, 0]")];
    let ends = |kind: &str, last: &str, xyz: &str| {
        format!(
            r#""loops": [{{"name": "l", "type": "{kind}", "predecessor": {{"body": "b", "origin": {{"xyz": [0.8, 0.2, 0]}}}},
               "successor": {{"body": "{last}", "origin": {{"xyz": {xyz}}}}}}}]"#
        )
    };
    assert_same(&connect, &file(&bars, &ends("spherical", "c", "[0.1, 0.7, 0]")));
    // The same closed by gluing the coupler to a body that hangs from the rocker.
    let glued =
        format!("{}{}", bar("a", "0 0 0", &coupler), bar("c", "0.8 -0.1 0", &bar("d", "0.1 0.7 0", "")));
    let weld = world(&glued, "<weld body1='b' body2='d'/>");
    let longer = [bars[0], bars[1], bars[2], ("d", "c", "[0.1, 0.7, 0]")];
    assert_same(&weld, &file(&longer, &ends("fixed", "d", "[0, 0, 0]")));
    // A five-bar whose cranks are geared together: a loop and a coupling.
    let two =
        format!("{}{}", bar("a", "0 0 0", &coupler), bar("c", "0.8 -0.1 0", &bar("d", "0.3 0.4 0", "")));
    let geared = world(
        &two,
        "<connect body1='b' body2='d' anchor='0.8 0.2 0'/><joint joint1='j_c' joint2='j_a' polycoef='0 -0.5 0 0 0'/>",
    );
    let text = ends("spherical", "d", "[-0.2, 0.3, 0]");
    let mut cut = [bars[0], bars[1], bars[2], ("d", "c", "[0.3, 0.4, 0]")].to_vec();
    let plain = file(&cut, &text);
    assert_eq!(plain.nv(), geared.nv() + 1);
    cut[2].0 = "c";
    let with_mimic = {
        let bodies = cut.iter().map(|(name, parent, xyz)| {
            let mimic = if *name == "c" { r#", "mimic": {"joint": "j_a", "ratio": -0.5}"# } else { "" };
            format!(
                r#"{{"name": "{name}", "parent": "{parent}",
                    "joint": {{"name": "j_{name}", "type": "revolute", "origin": {{"xyz": {xyz}}}, "axis": [0, 0, 1]{mimic}}}}}"#
            )
        });
        let bodies = bodies.collect::<Vec<_>>().join(",");
        mechanism(&format!(
            r#"{{"schema": "inertial/mechanism/1", "name": "linkage", "gravity": [0, -9.81, 0], "bodies": [{bodies}], {text}}}"#
        ))
    };
    assert_same(&geared, &with_mimic);
}
