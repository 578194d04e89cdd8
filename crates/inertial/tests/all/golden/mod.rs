//! Mechanisms of the golden figures, built from their JSON.

use crate::common::data::golden;
use inertial::mechanism::{
    BuildOptions, JointSpec, JointType, Mechanism, MechanismBuilder, RotorModel, RotorSpec,
};
use inertial::spatial::{Inertia, Pose};
use nalgebra::{Matrix3, Vector3};
use serde_json::Value;

/// Reads the golden figures of the recursion for a model.
pub fn file(name: &str) -> Value {
    let path = golden(&format!("rpna/{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("golden figures are JSON")
}

/// Names of the nine models.
pub const MODELS: [&str; 9] = [
    "cheetah_leg",
    "go2_legs",
    "perp_2r",
    "planar_2r",
    "planar_2r_vertical_axis",
    "puma560",
    "scara",
    "tx40",
    "y_tree",
];

/// Parses a number, or a fraction in a string.
pub fn number(v: &Value) -> f64 {
    match v {
        Value::String(s) => match s.split_once('/') {
            Some((n, d)) => n.parse::<f64>().unwrap() / d.parse::<f64>().unwrap(),
            None => s.parse().unwrap(),
        },
        v => v.as_f64().unwrap(),
    }
}

fn vector(v: &Value) -> Vector3<f64> {
    Vector3::from_fn(|i, _| number(&v[i]))
}

fn pose(p: &Value, r: &Value) -> Pose<f64> {
    Pose::new(Matrix3::from_fn(|i, j| number(&r[i][j])), vector(p))
}

fn joint_type(kind: &str, axis: Vector3<f64>) -> JointType {
    match kind {
        "revolute" | "R" => JointType::Revolute { axis },
        "prismatic" | "P" => JointType::Prismatic { axis },
        other => panic!("joint type {other}"),
    }
}

fn index(v: &Value) -> usize {
    v.as_u64().unwrap() as usize
}

fn rotor(joint: String, carrier: String, ratio: f64, origin: Pose<f64>, axis: Vector3<f64>) -> RotorSpec {
    RotorSpec { joint, carrier, ratio, origin, axis, inertia: Inertia::zero(), symmetric: true, line: None }
}

fn finish(builder: &MechanismBuilder, rotors: bool) -> Mechanism {
    let rotors = Some(if rotors { RotorModel::Symmetric } else { RotorModel::None });
    builder.build(&BuildOptions::default().with(|o| o.rotors = rotors)).unwrap()
}

/// Builds one of the nine models in one of its eight variants.
pub fn model(g: &Value, floating: bool, gravity: bool, rotors: bool) -> Mechanism {
    finish(&builder(g, floating, gravity), rotors)
}

/// Returns the description of one of the nine models, including rotors.
pub fn builder(g: &Value, floating: bool, gravity: bool) -> MechanismBuilder {
    let m = &g["model"];
    let root = if floating { "torso" } else { "ground" };
    let name = |i: usize| if i == 0 { root.to_owned() } else { format!("link{i}") };
    let mut b = MechanismBuilder::new(g["name"].as_str().unwrap(), "ground");
    b.gravity = if gravity { vector(&m["gravity"]) } else { Vector3::zeros() };
    if floating {
        b = b.link("torso", Inertia::zero());
        b = b.joint(JointSpec::new("root", JointType::Floating, "ground", "torso"));
    }
    for (i, j) in m["joints"].as_array().unwrap().iter().enumerate() {
        let kind = joint_type(j["type"].as_str().unwrap(), vector(&j["axis"]));
        let parent = name(index(&m["parent"][i]));
        b = b.link(name(i + 1), Inertia::zero());
        b = b.joint(
            JointSpec::new(format!("joint{}", i + 1), kind, parent, name(i + 1))
                .at(pose(&j["p"], &j["R_parent_child"])),
        );
    }
    for r in m["rotors"].as_array().unwrap() {
        let origin = pose(&r["p_rotor"], &r["R_parent_rotor"]);
        let joint = format!("joint{}", index(&r["joint"]));
        b = b.rotor(rotor(
            joint,
            name(index(&r["carrier_body"])),
            number(&r["gear_ratio"]),
            origin,
            vector(&r["axis"]),
        ));
    }
    b
}

fn unit(letter: &str) -> Vector3<f64> {
    match letter {
        "x" => Vector3::x(),
        "y" => Vector3::y(),
        _ => Vector3::z(),
    }
}

/// Builds one of the ill-conditioned cases.
pub fn robustness(c: &Value) -> Mechanism {
    let m = &c["model"];
    let name = |i: usize| if i == 0 { "ground".to_owned() } else { format!("link{i}") };
    let mut b = MechanismBuilder::new(c["name"].as_str().unwrap(), "ground");
    b.gravity = if m["gravity_direction"].is_array() {
        vector(&m["gravity_direction"]) * 9.81
    } else {
        Vector3::zeros()
    };
    for (i, f) in m["frames"].as_array().unwrap().iter().enumerate() {
        let code = m["joint"][i].as_str().unwrap();
        let kind = joint_type(&code[..1], unit(&code[1..]));
        let parent = name(index(&m["parent"][i]));
        b = b.link(name(i + 1), Inertia::zero());
        b = b.joint(
            JointSpec::new(format!("joint{}", i + 1), kind, parent, name(i + 1))
                .at(pose(&f["p"], &f["R_parent_child"])),
        );
    }
    let rotors = c["rotors"].as_bool().unwrap();
    if rotors {
        for (i, r) in m["rotors"].as_array().unwrap().iter().enumerate() {
            let origin = pose(&r["p_rotor"], &r["R_parent_rotor"]);
            let carrier = name(index(&m["parent"][i]));
            let ratio = number(&r["gear_ratio"]);
            b = b.rotor(rotor(
                format!("joint{}", i + 1),
                carrier,
                ratio,
                origin,
                unit(r["axis"].as_str().unwrap()),
            ));
        }
    }
    finish(&b, rotors)
}
