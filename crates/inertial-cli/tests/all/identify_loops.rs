//! Tests of `identify` for mechanisms with loops: torques, wrenches on the ground and on a floating base, contacts; and of written models.

#![allow(clippy::unwrap_used)]

use std::f64::consts::TAU;
use std::fmt::Write as _;

use crate::common::{Folder, run};
use inertial::dynamics::{ClosedMechanism, InverseDynamics, Workspace, forward_kinematics};
use inertial::identifiability::{AnalyzeOptions, Measured, analyze};
use inertial::mechanism::{BuildOptions, Mechanism, builtin, read};
use inertial::spatial::Pose;
use nalgebra::{UnitQuaternion, Vector3};
use serde_json::{Value, json};

const AS_IT_IS: [&str; 5] = ["--cutoff", "off", "--slow", "0", "--json"];

/// Returns a four-bar linkage on a floating torso.
fn floating_four_bar() -> Value {
    let inertial = |mass: f64, com: [f64; 3]| {
        let i = 0.02 * mass;
        json!({"mass": mass, "com": com,
               "inertia": {"ixx": i, "ixy": 0.1 * i, "ixz": -0.1 * i, "iyy": 1.2 * i, "iyz": 0.2 * i, "izz": 1.4 * i}})
    };
    let body = |name: &str, parent: &str, joint: &str, xyz: [f64; 3], mass: f64, com: [f64; 3]| {
        json!({"name": name, "parent": parent, "inertial": inertial(mass, com),
               "joint": {"name": joint, "type": "revolute", "origin": {"xyz": xyz}, "axis": [0, 0, 1], "independent": joint == "j1"}})
    };
    json!({
        "schema": "inertial/mechanism/1", "name": "floating-four-bar",
        "bodies": [
            {"name": "torso", "parent": "ground", "inertial": inertial(5.0, [0.02, -0.01, 0.03]),
             "joint": {"name": "free", "type": "floating", "independent": true}},
            body("crank", "torso", "j1", [0.0, 0.0, 0.0], 1.0, [0.15, 0.05, 0.01]),
            body("coupler", "crank", "j2", [0.3, 0.1, 0.0], 1.4, [0.1, 0.225, -0.02]),
            body("rocker", "coupler", "j3", [0.2, 0.45, 0.0], 1.6, [-0.3, 0.075, 0.03]),
        ],
        "loops": [{"name": "loop1", "type": "revolute", "predecessor": {"body": "torso", "origin": {"xyz": [-0.1, 0.7, 0.0]}},
                   "successor": {"body": "rocker", "origin": {"xyz": [-0.6, 0.15, 0.0]}}}]})
}

/// Returns the largest error of the base parameters, relative to the largest of them.
fn error(mechanism: &Mechanism, measured: Measured, found: &Value) -> f64 {
    let options = AnalyzeOptions::default().with(|o| o.measured = Some(measured));
    let truth = analyze(mechanism, &options).unwrap().regrouping.regroup(&mechanism.parameters()).unwrap();
    let values: Vec<f64> =
        found["base_parameters"].as_array().unwrap().iter().map(|p| p["value"].as_f64().unwrap()).collect();
    assert_eq!(values.len(), truth.len());
    let scale = truth.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    values.iter().zip(&truth).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max) / scale
}

/// Returns sums of three sines with their derivatives.
fn waves(t: f64, size: f64, speed: f64, phase: f64) -> [f64; 3] {
    let mut out = [0.0; 3];
    for (part, factor) in [(1.0, 1.0), (0.6, 1.7), (0.3, 2.9)] {
        let (a, w) = (size * part, TAU * speed * factor);
        let (sin, cos) = (w * t + phase * factor).sin_cos();
        out[0] += a * sin;
        out[1] += a * w * cos;
        out[2] -= a * w * w * sin;
    }
    out
}

/// Returns the generalized force of a force at the origin of a link, in its frame: the force times the derivative of
/// the origin with respect to the driven joint.
fn felt(closed: &ClosedMechanism<'_>, q: &[f64], body: usize, force: Vector3<f64>) -> f64 {
    let mechanism = closed.mechanism();
    let (mut closure, mut tree) = (closed.workspace(), Workspace::new(mechanism));
    let driven = closed.independent_positions()[0];
    let mut pose = |step: f64| -> Pose<f64> {
        let mut there = q.to_vec();
        closed.move_to(&mut closure, &mut there, &[q[driven] + step]).unwrap();
        forward_kinematics(mechanism, &mut tree, &there).unwrap();
        tree.poses()[body]
    };
    let world = pose(0.0).rotation * force;
    // Fourth-order differences: their error is below 1e-12, the closure error below 1e-9.
    let h = 1e-3;
    let mut at = |step: f64| pose(step).translation.dot(&world);
    (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h)
}

#[test]
fn a_linkage_on_a_force_plate_with_a_known_contact() {
    let mechanism = builtin::get("four-bar").unwrap().build(&BuildOptions::default()).unwrap();
    let closed = ClosedMechanism::new(&mechanism).unwrap();
    let rocker = mechanism.bodies().iter().position(|b| b.name == "rocker").unwrap();
    let (mut workspace, mut tree) = (closed.workspace(), Workspace::new(&mechanism));
    let start = closed.assembled()[closed.independent_positions()[0]];
    let mut q = closed.assembled().to_vec();
    let mut text = String::from(
        "t,q.j1,dq.j1,ddq.j1,wrench.fx,wrench.fy,wrench.fz,wrench.tx,wrench.ty,wrench.tz,tau.j1,contact.rocker.fx,contact.rocker.fy,contact.rocker.fz\n",
    );
    for k in 0..500 {
        let t = f64::from(k) * 0.01;
        let [x, v, a] = waves(t, 0.25, 0.4, 0.5);
        closed.move_to(&mut workspace, &mut q, &[start + x]).unwrap();
        let push = Vector3::new(3.0 * (5.0 * t).sin(), 2.0 * (7.0 * t).cos(), 0.0);
        let mut tau = [0.0];
        closed.inverse_dynamics(&mut workspace, &q, &[v], &[a], &mut tau).unwrap();
        let total = closed.base_wrench(&mut workspace, &q, &[v], &[a]).unwrap();
        tau[0] -= felt(&closed, &q, rocker, push);
        // The wrench of the ground is the total wrench minus the push.
        forward_kinematics(&mechanism, &mut tree, &q).unwrap();
        let at = tree.poses()[rocker];
        let force = at.rotation * push;
        let (linear, angular) = (total.linear - force, total.angular - at.translation.cross(&force));
        let row = [t, start + x, v, a];
        let values = row.iter().chain(&linear).chain(&angular).chain(&tau).chain(&push);
        let _ = writeln!(text, "{}", values.map(|x| format!("{x}")).collect::<Vec<_>>().join(","));
    }
    let folder = Folder::new();
    let log = folder.file("log.csv", text);
    for (name, measured, rows) in [
        ("joint-torques", Measured::JointTorques, 1),
        ("base-wrench", Measured::BaseWrench, 6),
        ("both", Measured::Both, 7),
    ] {
        let call = ["identify", "builtin:four-bar", &log, "--measured", name, "--estimator", "wls"];
        let found = run(&[&call[..], &AS_IT_IS].concat());
        assert_eq!(found.status, 0, "{}", found.stderr);
        let found = found.json();
        assert_eq!(found["fit"].as_array().unwrap().len(), rows);
        assert!(found["fit_relative_rms"].as_f64().unwrap() < 1e-8, "{name}: {}", found["fit_relative_rms"]);
        assert_eq!(found["rank"], found["excited"], "{name}: {}", found["warnings"]);
        // Closure errors are 1e-9, and motion about the assembly excites some combinations a thousand times less than others.
        let error = error(&mechanism, measured, &found);
        println!("{name}: {error:.1e}");
        assert!(error < 1e-6, "{name}: {error}");
        let possible =
            run(&[&["identify", "builtin:four-bar", &log, "--measured", name][..], &AS_IT_IS].concat());
        assert_eq!(possible.status, 0, "{}", possible.stderr);
        // Errors of positions are not searched for; that must be stated.
        assert!(
            possible.json()["warnings"].to_string().contains("are not checked for mechanisms with loops")
        );
        assert!(possible.json()["bodies"].as_array().unwrap().iter().all(|b| b["consistent"] == true));
    }
}

#[test]
fn a_linkage_on_a_floating_base() {
    let model = floating_four_bar();
    let mechanism = read::file::read(&model.to_string()).unwrap().build(&BuildOptions::default()).unwrap();
    let closed = ClosedMechanism::new(&mechanism).unwrap();
    assert_eq!(closed.independent(), [0, 1, 2, 3, 4, 5, 6]);
    let mut workspace = closed.workspace();
    let start = closed.assembled()[7];
    let mut q = closed.assembled().to_vec();
    let base = |kind: &[&str]| kind.iter().map(|c| format!("base.{c}")).collect::<Vec<_>>().join(",");
    let mut text = format!(
        "t,{},{},{},q.j1,dq.j1,ddq.j1,wrench.fx,wrench.fy,wrench.fz,wrench.tx,wrench.ty,wrench.tz,tau.j1\n",
        base(&["x", "y", "z", "qx", "qy", "qz", "qw"]),
        base(&["vx", "vy", "vz", "wx", "wy", "wz"]),
        base(&["ax", "ay", "az", "alx", "aly", "alz"])
    );
    for k in 0..600 {
        // Samples are independent states, since the equations hold at each instant.
        let t = f64::from(k) * 0.01;
        let [x, v, a] = waves(t, 0.25, 0.4, 0.5);
        let all: Vec<[f64; 3]> =
            (0..6).map(|i| waves(t, 0.2, 0.2 + 0.07 * f64::from(i), f64::from(i))).collect();
        let turn = UnitQuaternion::from_scaled_axis(Vector3::new(all[3][0], all[4][0], all[5][0]));
        let pose = [all[0][0], all[1][0], all[2][0], turn.i, turn.j, turn.k, turn.w];
        let rates: Vec<f64> = all.iter().map(|w| w[1]).chain([v]).collect();
        let accelerations: Vec<f64> = all.iter().map(|w| w[2]).chain([a]).collect();
        let target: Vec<f64> = pose.iter().copied().chain([start + x]).collect();
        closed.move_to(&mut workspace, &mut q, &target).unwrap();
        let mut tau = [0.0; 7];
        closed.inverse_dynamics(&mut workspace, &q, &rates, &accelerations, &mut tau).unwrap();
        let values = [t].into_iter().chain(pose).chain(rates[..6].iter().copied());
        let values = values.chain(accelerations[..6].iter().copied()).chain([start + x, v, a]).chain(tau);
        let _ = writeln!(text, "{}", values.map(|x| format!("{x}")).collect::<Vec<_>>().join(","));
    }
    let folder = Folder::new();
    let (file, log) = (folder.file("robot.json", model.to_string()), folder.file("log.csv", text));
    for (name, rows) in [("both", 7), ("base-wrench", 6), ("joint-torques", 1)] {
        let call = ["identify", &file, &log, "--measured", name, "--estimator", "wls"];
        let found = run(&[&call[..], &AS_IT_IS].concat());
        assert_eq!(found.status, 0, "{}", found.stderr);
        let found = found.json();
        assert_eq!(found["fit"].as_array().unwrap().len(), rows);
        assert!(found["fit_relative_rms"].as_f64().unwrap() < 1e-8, "{name}: {}", found["fit_relative_rms"]);
        if name == "both" {
            assert_eq!(found["rank"], found["excited"], "{}", found["warnings"]);
            let error = error(&mechanism, Measured::Both, &found);
            println!("{name}: {error:.1e}");
            assert!(error < 1e-6, "{error}");
        }
    }
}

/// Mechanism in a vertical plane: a crank whose armature acts like its inertia, and an elbow whose armature does not.
const TWO: &str = r#"
schema = "inertial/mechanism/1"
name = "two"

[[bodies]]
name = "upper"
parent = "ground"
joint = { name = "shoulder", type = "revolute", axis = [0, 1, 0], dynamics = { armature = 0.3, damping = 0.1 } }
inertial = { mass = 2, com = [0.2, 0, 0.02], inertia = { ixx = 0.01, ixy = 0, ixz = 0, iyy = 0.05, iyz = 0, izz = 0.05 } }

[[bodies]]
name = "lower"
parent = "upper"
joint = { name = "elbow", type = "revolute", axis = [0, 1, 0], origin = { xyz = [0.4, 0, 0] }, dynamics = { armature = 0.2 } }
inertial = { mass = 1, com = [0.15, 0, 0], inertia = { ixx = 0.01, ixy = 0, ixz = 0, iyy = 0.03, iyz = 0, izz = 0.03 } }
"#;

#[test]
fn a_written_armature_is_counted_once() {
    let built = |text: &str| read::file::read(text).unwrap().build(&BuildOptions::default()).unwrap();
    let torques = |mechanism: &Mechanism, q: &[f64], v: &[f64], a: &[f64]| {
        let dynamics = InverseDynamics::new(mechanism);
        let mut tau = vec![0.0; 2];
        dynamics.rnea(&mut dynamics.scratch(), q, v, a, &mut tau).unwrap();
        tau
    };
    let truth = built(TWO);
    let motion = |k: i32| {
        let t = f64::from(k) * 0.01;
        let (x, y) = (waves(t, 0.6, 0.5, 0.2), waves(t, 0.7, 0.7, 1.1));
        (t, [x[0], y[0]], [x[1], y[1]], [x[2], y[2]])
    };
    let friction = |v: &[f64; 2]| [0.4 * v[0], 0.25 * v[1]];
    let mut text = String::from("t,q1,q2,dq1,dq2,ddq1,ddq2,tau1,tau2\n");
    for k in 0..600 {
        let (t, q, v, a) = motion(k);
        let tau = torques(&truth, &q, &v, &a);
        let f = friction(&v);
        let row = [t, q[0], q[1], v[0], v[1], a[0], a[1], tau[0] + f[0], tau[1] + f[1]];
        let _ = writeln!(text, "{}", row.map(|x| format!("{x}")).join(","));
    }
    let folder = Folder::new();
    let log = folder.file("log.csv", text);
    let body = |name: &str, parent: &str, joint: Value, mass: f64, com: [f64; 3], i: [f64; 2]| {
        json!({"name": name, "parent": parent, "joint": joint, "inertial": {"mass": mass, "com": com,
            "inertia": {"ixx": i[0], "ixy": 0, "ixz": 0, "iyy": i[1], "iyz": 0, "izz": i[1]}}})
    };
    // The elbow has empty dynamics, and its armature is identified.
    let shoulder =
        json!({"name": "shoulder", "type": "revolute", "axis": [0, 1, 0], "dynamics": {"armature": 0.3}});
    let elbow = json!({"name": "elbow", "type": "revolute", "axis": [0, 1, 0], "origin": {"xyz": [0.4, 0, 0]}, "dynamics": {}});
    let json = json!({
        "schema": "inertial/mechanism/1", "name": "two",
        "bodies": [body("upper", "ground", shoulder, 2.0, [0.2, 0.0, 0.02], [0.01, 0.05]),
                   body("lower", "upper", elbow, 1.0, [0.15, 0.0, 0.0], [0.01, 0.03])]});
    // Tables with their own headers, and a joint without dynamics, into which values must be inserted.
    let headers = TWO
        .replace(", dynamics = { armature = 0.3, damping = 0.1 } }\ninertial", " }\ninertial")
        .replace(
            "joint = { name = \"elbow\", type = \"revolute\", axis = [0, 1, 0], origin = { xyz = [0.4, 0, 0] }, dynamics = { armature = 0.2 } }\n",
            "",
        )
        + "[bodies.joint]\nname = \"elbow\" # of the arm\ntype = \"revolute\"\naxis = [0, 1, 0]\norigin = { xyz = [0.4, 0, 0] }\n\
           [bodies.joint.dynamics]\narmature = 0.2\n";
    for (name, model) in
        [("two.toml", TWO.to_owned()), ("two.json", json.to_string()), ("headers.toml", headers)]
    {
        let (file, out) = (folder.file(name, model), folder.path(&format!("identified-{name}")));
        let call = [
            "identify",
            &file,
            &log,
            "--friction",
            "viscous",
            "--rotors",
            "symmetric",
            "--out",
            out.to_str().unwrap(),
        ];
        let found = run(&[&call[..], &AS_IT_IS].concat());
        assert_eq!(found.status, 0, "{}", found.stderr);
        let joints = found.json()["joints"].clone();
        // The armature of the shoulder acts like the inertia of its link; the model or a wide prior separates the two.
        let rotors = [0, 1].map(|j: usize| joints[j]["rotor_inertia"].as_f64().unwrap());
        let written = built(&std::fs::read_to_string(&out).unwrap());
        assert_eq!(written.armature(), rotors);
        let dynamics = |j: usize| written.joints()[j].dynamics;
        for (j, viscous) in [(0, 0.4), (1, 0.25)] {
            assert_eq!(dynamics(j).damping, joints[j]["viscous"].as_f64().unwrap());
            assert!((dynamics(j).damping - viscous).abs() < 1e-3);
        }
        // The written model reproduces the measured torques; the prior changes them by 1e-6 (data without noise).
        for k in (0..600).step_by(37) {
            let (_, q, v, a) = motion(k);
            let (expected, found) = (torques(&truth, &q, &v, &a), torques(&written, &q, &v, &a));
            for j in 0..2 {
                let difference = (found[j] - expected[j]).abs();
                assert!(difference < 1e-4 * expected[j].abs().max(10.0), "{name}: {difference}");
            }
        }
    }
}
