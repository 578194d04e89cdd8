//! Certificates for mechanisms with loops: rounded files, seeds, and the bound of the error probability.

#![allow(clippy::unwrap_used)]

use crate::common::tiny::{Tiny, assert_rate};
use crate::loops::mechanism;
use inertial::dynamics::ClosedMechanism;
use inertial::identifiability::lifting::Start;
use inertial::identifiability::probe::{Lifted, ProbeInputs, lift};
use inertial::identifiability::{AnalyzeOptions, Experiment, Method, Regime, analyze};
use inertial::linalg::{First, Number, Pivot};
use inertial::mechanism::{BuildOptions, DEFAULT_SNAP, ExactAssembly, ExactGeometry, Mechanism, builtin};
use nalgebra::{Isometry3, Rotation3, Translation3, UnitQuaternion, Vector3};
use serde_json::{Value, json};

/// Number format of a file: numbers of decimals of orientations and lengths.
#[derive(Debug, Clone, Copy)]
enum Written {
    Rpy(i32, i32),
    Quaternion(i32, i32),
    Matrix(i32, i32),
}

fn rounded(x: f64, decimals: i32) -> f64 {
    let unit = 10f64.powi(decimals);
    (x * unit).round() / unit
}

fn frame(pose: &Isometry3<f64>, written: Written) -> Value {
    let (Written::Rpy(_, lengths) | Written::Quaternion(_, lengths) | Written::Matrix(_, lengths)) = written;
    let xyz: Vec<f64> = pose.translation.vector.iter().map(|&x| rounded(x, lengths)).collect();
    match written {
        Written::Rpy(decimals, _) => {
            let (r, p, y) = pose.rotation.euler_angles();
            let rpy = [r, p, y].map(|x| rounded(x, decimals));
            json!({ "xyz": xyz, "rpy": rpy })
        }
        Written::Quaternion(decimals, _) => {
            let q = pose.rotation;
            let quaternion = [q.i, q.j, q.k, q.w].map(|x| rounded(x, decimals));
            json!({ "xyz": xyz, "quaternion": quaternion })
        }
        Written::Matrix(decimals, _) => {
            let m = pose.rotation.to_rotation_matrix();
            let rows: Vec<Vec<f64>> = m
                .matrix()
                .row_iter()
                .map(|row| row.iter().map(|&x| rounded(x, decimals)).collect())
                .collect();
            json!({ "xyz": xyz, "rotation": rows })
        }
    }
}

fn about(axis: Vector3<f64>, angle: f64) -> Isometry3<f64> {
    let turn = Rotation3::from_axis_angle(&nalgebra::Unit::new_normalize(axis), angle);
    Isometry3::from_parts(Translation3::identity(), UnitQuaternion::from_rotation_matrix(&turn))
}

/// Creates Bennett's linkage with twists of `alpha` and `beta` degrees: four hinges, equal opposite links, lengths proportional
/// to the sines of the twists.
fn bennett(alpha: f64, beta: f64, written: Written) -> Value {
    let (alpha, beta) = (alpha.to_radians(), beta.to_radians());
    let (a, b) = (0.3, 0.3 * beta.sin() / alpha.sin());
    let link =
        |length: f64, twist: f64| Isometry3::translation(length, 0.0, 0.0) * about(Vector3::x(), twist);
    let first = 70f64.to_radians();
    let ratio = (0.5 * (alpha + beta)).sin() / (0.5 * (beta - alpha)).sin();
    let second = 2.0 * (ratio / (0.5 * first).tan()).atan();
    let turned = |angle: f64| about(Vector3::z(), angle);
    let hinge = |name: &str, parent: &str, pose: &Isometry3<f64>| {
        json!({ "name": name, "parent": parent, "joint": {
            "type": "revolute", "axis": [0, 0, 1], "name": format!("j_{name}"), "origin": frame(pose, written) } })
    };
    json!({
        "schema": "inertial/mechanism/1", "name": "bennett", "gravity": [0, 0, -9.81],
        "bodies": [
            hinge("b1", "ground", &turned(first)),
            hinge("b2", "b1", &(link(a, alpha) * turned(second))),
            hinge("b3", "b2", &(link(b, beta) * turned(-first))),
        ],
        "loops": [{
            "type": "revolute", "axis": [0, 0, 1], "name": "loop",
            "predecessor": { "body": "b3", "origin": frame(&link(a, alpha), written) },
            "successor": { "body": "ground", "origin": frame(&link(b, beta).inverse(), written) },
        }],
    })
}

#[test]
fn rounded_bennett_linkages_move_again_and_are_certified() {
    for (alpha, beta) in [(20.0, 55.0), (45.0, 90.0), (35.0, 62.0)] {
        for written in [
            Written::Rpy(4, 4),
            Written::Rpy(5, 6),
            Written::Quaternion(6, 5),
            Written::Matrix(6, 6),
            Written::Rpy(15, 15),
        ] {
            let robot = mechanism(&bennett(alpha, beta, written).to_string());
            let answer = analyze(&robot, &AnalyzeOptions::default()).unwrap();
            let certificate = answer.certificate;
            assert_eq!(
                (answer.rank, certificate.exact),
                (7, true),
                "{alpha} {beta} {written:?}: {certificate:?}"
            );
        }
    }
}

/// A Bennett linkage that carries an open arm and a pendulum is certified.
#[test]
fn bennett_linkages_in_larger_machines_are_certified() {
    let mut file = bennett(20.0, 55.0, Written::Rpy(15, 15));
    let pose = |x: f64, angle: f64| {
        frame(&(Isometry3::translation(x, 0.1, -0.2) * about(Vector3::x(), angle)), Written::Rpy(15, 15))
    };
    let hinge = |name: &str, parent: &str, origin: Value| {
        json!({ "name": name, "parent": parent, "joint": {
            "type": "revolute", "axis": [0, 0, 1], "name": format!("j_{name}"), "origin": origin } })
    };
    let bodies = file["bodies"].as_array_mut().unwrap();
    bodies.push(hinge("arm", "b2", pose(0.3, 0.4)));
    bodies.push(hinge("hand", "arm", pose(0.5, 1.1)));
    bodies.push(hinge("pendulum", "b3", pose(0.2, 0.7)));
    let robot = mechanism(&file.to_string());
    let answer = analyze(&robot, &AnalyzeOptions::default()).unwrap();
    let numeric = analyze(&robot, &AnalyzeOptions::default().with(|o| o.method = Method::Numeric)).unwrap();
    assert_eq!((answer.rank, answer.certificate.exact), (numeric.rank, true), "{:?}", answer.certificate);
}

/// Creates a loop of hinges from directions and points in the world.
fn linkage(name: &str, lines: &[(Vector3<f64>, Vector3<f64>)], written: Written) -> Value {
    let poses: Vec<Isometry3<f64>> = lines
        .iter()
        .map(|(u, p)| {
            let turn = UnitQuaternion::rotation_between(&Vector3::z(), u).unwrap();
            Isometry3::from_parts(Translation3::from(*p), turn)
        })
        .collect();
    let last = lines.len() - 1;
    let bodies: Vec<Value> = (0..last)
        .map(|i| {
            let (parent, pose) = match i {
                0 => ("ground".to_owned(), poses[0]),
                _ => (format!("b{}", i - 1), poses[i - 1].inverse() * poses[i]),
            };
            json!({ "name": format!("b{i}"), "parent": parent, "joint": {
                "type": "revolute", "axis": [0, 0, 1], "name": format!("j{i}"), "origin": frame(&pose, written) } })
        })
        .collect();
    json!({
        "schema": "inertial/mechanism/1", "name": name, "gravity": [0, 0, -9.81], "bodies": bodies,
        "loops": [{
            "type": "revolute", "axis": [0, 0, 1], "name": "loop",
            "predecessor": {
                "body": format!("b{}", last - 1), "origin": frame(&(poses[last - 1].inverse() * poses[last]), written) },
            "successor": { "body": "ground", "origin": frame(&poses[last], written) },
        }],
    })
}

/// Bricard's linkages with a half-turn and with a mirror. Their rank, 24, was computed with 132 digits by a program in Python.
#[test]
fn symmetric_loops_of_six_hinges_are_certified() {
    let unit = |x: f64, y: f64, z: f64| Vector3::new(x, y, z).normalize();
    let half: [(Vector3<f64>, Vector3<f64>); 3] = [
        (unit(1.0, 2.0, 3.0), Vector3::new(0.31, -0.12, 0.25)),
        (unit(-2.0, 1.0, 1.0), Vector3::new(0.17, 0.43, -0.28)),
        (unit(1.0, -1.0, 2.0), Vector3::new(-0.38, 0.21, 0.14)),
    ];
    let turned = |v: Vector3<f64>| Vector3::new(-v.x, -v.y, v.z);
    let line: Vec<_> = half.into_iter().chain(half.map(|(u, p)| (turned(u), turned(p)))).collect();
    let mirrored = |(u, p): (Vector3<f64>, Vector3<f64>)| {
        let image = |v: Vector3<f64>| Vector3::new(-v.x, v.y, v.z);
        (image(u), image(p))
    };
    let sides = [
        (unit(1.0, 2.0, -1.0), Vector3::new(0.35, 0.11, 0.18)),
        (unit(-1.0, 1.0, 2.0), Vector3::new(0.24, -0.29, -0.13)),
    ];
    let within = |y: f64, z: f64, at: [f64; 2]| (unit(0.0, y, z), Vector3::new(0.0, at[0], at[1]));
    let (first, last) = (within(1.0, 1.0, [0.32, 0.1]), within(1.0, 3.0, [-0.41, 0.2]));
    let plane = vec![first, sides[0], sides[1], last, mirrored(sides[1]), mirrored(sides[0])];
    for (name, lines) in [("line", line), ("plane", plane)] {
        for written in
            [Written::Rpy(17, 17), Written::Rpy(6, 6), Written::Quaternion(8, 8), Written::Matrix(5, 5)]
        {
            let robot = mechanism(&linkage(name, &lines, written).to_string());
            let answer = analyze(&robot, &AnalyzeOptions::default()).unwrap();
            let certificate = answer.certificate;
            assert_eq!((answer.rank, certificate.exact), (24, true), "{name} {written:?}: {certificate:?}");
        }
    }
}

#[test]
fn answers_with_loops_do_not_depend_on_the_seed() {
    let model = |name: &str| builtin::get(name).unwrap().build(&BuildOptions::default()).unwrap();
    for robot in [model("2rru-1rrs"), model("2prs-1psr"), model("four-bar")] {
        let answer = |seed: u64| {
            let found = analyze(&robot, &AnalyzeOptions::default().with(|o| o.seed = seed)).unwrap();
            serde_json::to_string(&found).unwrap()
        };
        let first = answer(1);
        for seed in [2, 77] {
            assert_eq!(answer(seed), first, "{} with seed {seed}", robot.name());
        }
    }
}

/// Returns the rows of a mechanism along random curves from its assembly configuration.
fn lifted<T: Number>(robot: &Mechanism, seed: u64) -> (Lifted<T>, usize) {
    let closed = ClosedMechanism::new(robot).unwrap();
    let geometry = ExactGeometry::new(robot, DEFAULT_SNAP);
    let assembled = ExactAssembly::new(robot, &geometry, closed.assembled(), DEFAULT_SNAP).to::<T>();
    let mut dependent = vec![true; robot.nv()];
    closed.independent().iter().for_each(|&v| dependent[v] = false);
    let start = Start::new(&assembled, &dependent).unwrap();
    let experiment = Experiment::complete(false, Regime::Full);
    let inputs = ProbeInputs { blocks: robot.parameter_blocks(), experiment: &experiment, floating: false };
    let constraints = robot.nv() - start.mobility() + 1;
    (lift(&start, inputs, Pivot::First, seed).unwrap(), constraints)
}

/// Checks that curves modulo a small prime miss the full rank no more often than the stated bound.
fn shortfall<const P: u64>(robot: &Mechanism) {
    let (exact, constraints) = lifted::<First>(robot, 1);
    let (rank, order) = (exact.rows.rank(), exact.order + 1);
    let (mut short, runs) = (0u32, 300u32);
    for seed in 0..runs {
        let found = lifted::<Tiny<P>>(robot, u64::from(seed)).0.rows.rank();
        assert!(found <= rank, "modulo {P}: {found}");
        short += u32::from(found < rank);
    }
    let bound = (rank * (2 * order + 1) * constraints) as f64 / P as f64;
    assert_rate(short, runs, bound, &format!("{} modulo {P}", robot.name()));
}

#[test]
fn tiny_primes_fail_no_more_often_than_the_bound_says_for_loops() {
    let hinge = |name: &str, parent: &str, xyz: [f64; 3]| {
        json!({ "name": name, "parent": parent, "joint": {
            "type": "revolute", "axis": [0, 0, 1], "name": format!("j_{name}"), "origin": { "xyz": xyz } } })
    };
    let four_bar = |name: &str, ground: [f64; 3], coupler: [f64; 3], rocker: [f64; 3]| {
        json!({
            "schema": "inertial/mechanism/1", "name": name, "gravity": [0, -9.81, 0],
            "bodies": [hinge("a", "ground", [0.0; 3]), hinge("b", "a", [0.1, 0.4, 0.0]), hinge("c", "ground", ground)],
            "loops": [{
                "type": "revolute", "axis": [0, 0, 1], "name": "loop",
                "predecessor": { "body": "b", "origin": { "xyz": coupler } },
                "successor": { "body": "c", "origin": { "xyz": rocker } },
            }],
        })
    };
    // Both close with the literal numbers: 0.1 + 0.8 = 0.8 + 0.1, and 0.1 + 0.7 = 0.9 − 0.1.
    let parallelogram = four_bar("parallelogram", [0.8, 0.0, 0.0], [0.8, 0.0, 0.0], [0.1, 0.4, 0.0]);
    let generic = four_bar("four-bar", [0.9, 0.0, 0.0], [0.7, 0.2, 0.0], [-0.1, 0.6, 0.0]);
    for file in [parallelogram, generic] {
        let robot = mechanism(&file.to_string());
        shortfall::<101>(&robot);
        shortfall::<1009>(&robot);
        shortfall::<10007>(&robot);
    }
}
