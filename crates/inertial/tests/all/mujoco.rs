//! Against MuJoCo, which reads the same files: placements, mass matrices and inverse dynamics.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::{Rng, python, relative_error};
use inertial::dynamics::{ClosedMechanism, InverseDynamics, Workspace, forward_kinematics, mass_matrix};
use inertial::mechanism::write::file::NewDynamics;
use inertial::mechanism::write::mjcf::write_bodies;
use inertial::mechanism::{BodyKind, BuildOptions, Mechanism, read};
use nalgebra::{DMatrix, DVector, Matrix3, Vector3};
use serde_json::Value;

/// MuJoCo goes through principal axes and quaternions, each rounded; beyond that both compute the same numbers.
const TOLERANCE: f64 = 1e-10;

fn load(path: &Path) -> Result<Mechanism, inertial::Error> {
    let text = std::fs::read_to_string(path).expect("the oracle read it");
    let folder = path.parent().expect("a file is in a folder");
    let include = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|e| format!("{name}: {e}"));
    read::model(&text, &include)?.build(&inertial::mechanism::BuildOptions::default())
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        other => vec![other.as_f64().expect("a number")],
    }
}

/// Compares one model; the largest relative error.
fn compare(mechanism: &Mechanism, expected: &Value) -> f64 {
    let path = expected["path"].as_str().unwrap();
    let names: Vec<&str> =
        expected["bodies"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    let name = |i: usize| if names[i].is_empty() { format!("body{i}") } else { names[i].to_owned() };
    let link = |name: &str| mechanism.links().iter().find(|l| l.name == name);
    let joints: Vec<_> = mechanism.joints().iter().filter(|j| j.follows.is_none()).collect();
    for (i, joint) in joints.iter().enumerate() {
        let named = expected["joints"][i].as_str().unwrap();
        assert!(named.is_empty() || named == joint.name, "{path}: joint {i} is {} for {named}", joint.name);
        for (what, found) in [
            ("damping", joint.dynamics.damping),
            ("friction", joint.dynamics.friction),
            ("stiffness", joint.dynamics.stiffness),
        ] {
            let expected = expected[what][i].as_f64().unwrap();
            assert!(
                (found - expected).abs() <= TOLERANCE * (1.0 + expected.abs()),
                "{path}: {what} of {named}: {found} for {expected}"
            );
        }
        if joint.joint_type.nv() == 1 {
            assert!(
                (joint.dynamics.rest - expected["rest"][i].as_f64().unwrap()).abs() < 1e-12,
                "{path}: {named}"
            );
            match expected["limits"][i].as_array() {
                None => assert!(joint.limits.upper.is_infinite(), "{path}: {named} has limits"),
                Some(range) => {
                    assert!(
                        (joint.limits.lower - range[0].as_f64().unwrap()).abs() < 1e-12,
                        "{path}: {named}"
                    );
                    assert!(
                        (joint.limits.upper - range[1].as_f64().unwrap()).abs() < 1e-12,
                        "{path}: {named}"
                    );
                }
            }
        }
    }
    assert_eq!(joints.len(), expected["joints"].as_array().unwrap().len(), "{path}");
    let masses = numbers(&expected["masses"]);
    for i in 1..names.len() {
        let link = link(&name(i)).unwrap_or_else(|| panic!("{path}: no link {}", name(i)));
        // The mass of a mesh that never moves is not asked for.
        let found = link.inertia.map_or(if link.body.is_some() { 0.0 } else { masses[i] }, |m| m.mass);
        assert!(
            (found - masses[i]).abs() <= TOLERANCE * (1.0 + masses[i]),
            "{path}: mass of {}: {found} for {}",
            name(i),
            masses[i]
        );
    }
    assert_eq!(mechanism.gravity().as_slice(), numbers(&expected["gravity"]), "{path}: gravity");
    let mut worst = 0.0f64;
    for sample in expected["samples"].as_array().unwrap() {
        let [q, v, a] = ["q", "v", "a"].map(|k| numbers(&sample[k]));
        assert_eq!((q.len(), v.len()), (mechanism.nq(), mechanism.nv()), "{path}: numbers of coordinates");
        let mut workspace = Workspace::new(mechanism);
        forward_kinematics(mechanism, &mut workspace, &q).unwrap();
        let poses = workspace.poses();
        for i in 1..names.len() {
            let name = name(i);
            let marked = link(&format!("{name}.frame")).or(link(&name)).unwrap();
            let pose = marked.body.map_or(marked.pose, |b| poses[b] * marked.pose);
            let position = Vector3::from_row_slice(&numbers(&sample["positions"][i]));
            let rotation = Matrix3::from_row_slice(&numbers(&sample["rotations"][i]));
            assert!(
                (pose.translation - position).amax() < 1e-10 * (1.0 + position.amax()),
                "{path}: place of {name}"
            );
            assert!((pose.rotation - rotation).amax() < 1e-10, "{path}: orientation of {name}");
        }
        let mut matrix = vec![0.0; v.len() * v.len()];
        mass_matrix(mechanism, &mut workspace, &q, &mut matrix).unwrap();
        let mut torques = vec![0.0; v.len()];
        let dynamics = InverseDynamics::new(mechanism);
        dynamics.rnea(&mut dynamics.scratch(), &q, &v, &a, &mut torques).unwrap();
        for (what, found, expected) in [
            ("mass matrix", &matrix, numbers(&sample["mass_matrix"])),
            ("torques", &torques, numbers(&sample["torques"])),
        ] {
            let error = relative_error(found, &expected, 0.0);
            assert!(error < TOLERANCE, "{path}: {what} differ by {error:.1e}");
            worst = worst.max(error);
        }
    }
    worst
}

/// Compares what the script prints; the names of the models compared.
fn compare_all(output: &str) -> Vec<String> {
    let mut compared = Vec::new();
    for line in output.lines() {
        let expected: Value = serde_json::from_str(line).unwrap();
        let path = Path::new(expected["path"].as_str().unwrap());
        let short: Vec<_> = path.iter().rev().take(3).map(|p| p.to_string_lossy()).collect();
        let short = short.into_iter().rev().collect::<Vec<_>>().join("/");
        let loaded = load(path);
        if let Some(reason) = expected["refused"].as_str() {
            println!("{short}: MuJoCo refuses it: {reason}");
            continue;
        }
        match loaded {
            Err(inertial::Error::Unsupported { place, feature }) => {
                println!("{short}: not supported: {place}{feature}");
            }
            Err(error) => panic!("{short}: {error}"),
            Ok(mechanism) => {
                let worst = compare(&mechanism, &expected);
                println!("{short}: {} coordinates, largest relative error {worst:.1e}", mechanism.nv());
                if mechanism.nv() > 0 {
                    compared.push(short);
                }
            }
        }
    }
    compared
}

fn models(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut paths: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "xml"))
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    paths.sort();
    paths
}

#[test]
fn own_models() {
    let paths = models("mjcf_models");
    let arguments: Vec<&str> = paths.iter().map(String::as_str).collect();
    let Some(output) = python::run("oracle_mujoco.py", &arguments) else { return };
    assert_eq!(compare_all(&output).len(), paths.len());
}

/// New inertias of all bodies and new dynamics of all joints, written and read by MuJoCo.
#[test]
fn written_models() {
    let folder = std::env::temp_dir().join(format!("inertial-written-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (mut rng, mut written) = (Rng(3), Vec::new());
    for path in models("mjcf_models") {
        // A total mass, and inertias of actuators, would change what is written.
        let changing = [" settotalmass=\"12\"", " armature=\"0.05\" damping=\"0.2\"", " armature=\"0.01\""];
        let text = std::fs::read_to_string(&path).unwrap();
        let text = changing.iter().fold(text, |text, part| text.replace(part, ""));
        let old = read::model(&text, &read::no_includes).unwrap().build(&BuildOptions::default()).unwrap();
        let parts = || old.bodies().iter().filter(|b| b.kind == BodyKind::Link);
        let bodies: Vec<_> = parts().map(|b| (b.name.as_str(), rng.inertia())).collect();
        let joints: Vec<_> = old
            .joints()
            .iter()
            .filter(|j| j.joint_type.nv() == 1 && j.follows.is_none())
            .map(|j| {
                (j.name.as_str(), NewDynamics { armature: Some(rng.range(0.0, 0.1)), ..Default::default() })
            })
            .collect();
        let new = write_bodies(&text, &BuildOptions::default(), &bodies, &joints).unwrap();
        let name = folder.join(Path::new(&path).file_name().unwrap());
        std::fs::write(&name, &new.text).unwrap();
        let new = load(&name).unwrap();
        for (body, (_, wanted)) in new.bodies().iter().filter(|b| b.kind == BodyKind::Link).zip(&bodies) {
            let found = body.inertia.parameters();
            let error = relative_error(found.as_slice(), wanted.parameters().as_slice(), 1e-9);
            assert!(error < 1e-12, "{path} {}: {error}", body.name);
        }
        written.push(name.to_string_lossy().into_owned());
    }
    let arguments: Vec<&str> = written.iter().map(String::as_str).collect();
    let output = python::run("oracle_mujoco.py", &arguments);
    let compared = output.map(|output| compare_all(&output).len());
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(compared.is_none_or(|compared| compared == written.len()), "{compared:?} of {}", written.len());
}

#[test]
#[ignore = "long: every model of two packages, by MuJoCo"]
fn shipped_models() {
    let Some(output) = python::run("oracle_mujoco.py", &["--shipped"]) else { return };
    let compared = compare_all(&output);
    println!("{} shipped models agree with MuJoCo", compared.len());
    // Those of the pinned packages that have coordinates and no unsupported feature: fewer means a reader got worse.
    assert!(compared.len() >= 41);
}

/// Closed states of MuJoCo's making: what depends on the independent joints, and the torques there. MuJoCo cuts the loops; with the
/// map `G` from the independent joints, for which `J G = 0` with its constraint Jacobian `J`, these are `Gᵀ τ`.
#[test]
fn loops_move_as_in_mujoco() {
    let paths = models("mjcf_loops");
    let mut arguments = vec!["--loops"];
    arguments.extend(paths.iter().map(String::as_str));
    let Some(output) = python::run("oracle_mujoco.py", &arguments) else { return };
    assert_eq!(output.lines().count(), paths.len());
    for line in output.lines() {
        let expected: Value = serde_json::from_str(line).unwrap();
        let path = expected["path"].as_str().unwrap();
        let robot = load(Path::new(path)).unwrap();
        let closed = ClosedMechanism::new(&robot).unwrap();
        let mut ws = closed.workspace();
        let (nv, n) = (robot.nv(), closed.dof());
        let mut worst = 0.0f64;
        for sample in expected["samples"].as_array().unwrap() {
            let [q, v, a, torques] = ["q", "v", "a", "torques"].map(|k| numbers(&sample[k]));
            assert!(closed.residual(&mut ws, &q).unwrap() < 1e-11, "{path}: the loops are other ones");
            let pick = |x: &[f64]| -> Vec<f64> { closed.independent().iter().map(|&i| x[i]).collect() };
            let (mut full_v, mut full_a) = (vec![0.0; nv], vec![0.0; nv]);
            closed.accelerations(&mut ws, &q, &pick(&v), &pick(&a), &mut full_v, &mut full_a).unwrap();
            let mut tau = vec![0.0; n];
            closed.inverse_dynamics(&mut ws, &q, &pick(&v), &pick(&a), &mut tau).unwrap();
            let rows = numbers(&sample["jacobian"]);
            let jacobian = DMatrix::from_row_slice(rows.len() / nv, nv, &rows);
            let map = closed.velocity_map(&mut ws, &q).unwrap().clone();
            assert!((jacobian * &map).amax() < 1e-10, "{path}: the map leaves MuJoCo's loops open");
            let reduced: Vec<f64> = map.tr_mul(&DVector::from_vec(torques)).data.into();
            // The oracle differentiates its Jacobian numerically (1e-10); all else is rounding.
            for (what, found, expected) in
                [("velocities", &full_v, &v), ("accelerations", &full_a, &a), ("torques", &tau, &reduced)]
            {
                let error = relative_error(found, expected, 0.0);
                assert!(error < 1e-8, "{path}: {what} differ by {error:.1e}");
                worst = worst.max(error);
            }
        }
        println!("{path}: {n} of {nv} coordinates independent, largest relative error {worst:.1e}");
    }
}
