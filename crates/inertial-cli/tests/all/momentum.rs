//! Tests of free-flying robots with momentum from the command line: three arms, a prismatic joint, four wheels, no special code.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use crate::common::{Folder, page, refused, run};
use inertial::excitation::{Basis, Trajectory};
use inertial::mechanism::{BuildOptions, Mechanism, read};
use inertial::simulation::FlightSamples;
use serde_json::{Value, json};

const NOISE: &str = "dq=2e-4,base.v=1e-4,base.w=2e-4";

fn body(name: &str, parent: &str, kind: &str, xyz: [f64; 3], axis: [f64; 3], mass: f64) -> Value {
    let i = 0.08 * mass;
    json!({
        "name": name, "parent": parent,
        "joint": {"name": format!("j_{name}"), "type": kind, "origin": {"xyz": xyz, "rpy": [0.3, -0.2, 0.1]}, "axis": axis,
                  "limits": {"lower": -1.5, "upper": 1.5, "velocity": 0.5, "effort": 100}},
        "inertial": {"mass": mass, "com": [0.3, 0.05, -0.1],
                     "inertia": {"ixx": i, "ixy": 0.1 * i, "ixz": -0.2 * i, "iyy": 1.3 * i, "iyz": 0.1 * i, "izz": 1.1 * i}}})
}

/// Returns a model with three different arms, one with a prismatic joint, and four wheels on a pyramid.
fn model() -> Value {
    let wheels: Vec<Value> = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]
        .iter()
        .enumerate()
        .map(|(k, [x, y])| {
            json!({"name": format!("wheel{k}"), "carrier": "bus", "axis": [x, y, 1.0], "inertia": 0.2, "limits": {"velocity": 50}})
        })
        .collect();
    json!({
        "schema": "inertial/mechanism/1", "name": "three_arms", "gravity": [0, 0, 0],
        "bodies": [
            {"name": "bus", "parent": "ground", "joint": {"name": "free", "type": "floating"},
             "inertial": {"mass": 120, "com": [0.02, -0.03, 0.05],
                          "inertia": {"ixx": 30, "ixy": 1, "ixz": -0.5, "iyy": 25, "iyz": 0.8, "izz": 20}}},
            body("upper", "bus", "revolute", [0.6, 0.0, 0.1], [0.0, 0.0, 1.0], 12.0),
            body("lower", "upper", "revolute", [0.7, 0.0, 0.0], [0.0, 1.0, 0.0], 8.0),
            body("boom", "bus", "prismatic", [-0.5, 0.3, 0.0], [1.0, 0.0, 0.0], 10.0),
            body("hand", "boom", "revolute", [-0.4, 0.0, 0.1], [1.0, 0.0, 0.0], 6.0),
            body("tail", "bus", "continuous", [0.0, -0.6, -0.2], [0.0, 1.0, 0.0], 9.0),
        ],
        "wheels": wheels})
}

fn without_limits(mut model: Value) -> Value {
    // A continuous joint has no position limits.
    let tail = model["bodies"][5]["joint"].as_object_mut().unwrap();
    tail.insert("limits".into(), json!({"velocity": 0.5}));
    model
}

fn built(model: &Value) -> Mechanism {
    read::file::read(&model.to_string()).unwrap().build(&BuildOptions::default()).unwrap()
}

/// Returns a log of a fast motion, as written by the simulator.
fn log(robot: &Mechanism, seconds: f64, linear: bool) -> String {
    let names: Vec<String> = robot.velocity_names().into_iter().skip(6).collect();
    let moved: Vec<String> =
        names.iter().cloned().chain(robot.wheels().iter().map(|w| w.name.clone())).collect();
    let knots: Vec<f64> = (0..=seconds as usize).map(|k| k as f64).collect();
    let rows: Vec<Vec<f64>> = (0..moved.len())
        .map(|j| {
            let size = if moved[j].starts_with("wheel") { 50.0 } else { 0.4 };
            (0..knots.len() - 1).map(|k| size * ((7 * k + 3 * j * j) as f64 * 1.7).sin()).collect()
        })
        .collect();
    let motion = Trajectory::new(moved, seconds, Basis::VelocityKnots { knots }, &rows).unwrap();
    let flown = FlightSamples::new(robot, &motion, 20.0).unwrap();
    let mut text = String::from("t");
    names.iter().for_each(|n| write!(text, ",q.{n}").unwrap());
    text += ",base.vx,base.vy,base.vz,base.wx,base.wy,base.wz";
    names.iter().for_each(|n| write!(text, ",dq.{n}").unwrap());
    text += if linear { ",momentum.px,momentum.py,momentum.pz" } else { "" };
    text += ",momentum.lx,momentum.ly,momentum.lz\n";
    let (nq, nv) = (robot.nq(), robot.nv());
    for t in 0..flown.len() {
        write!(text, "{}", flown.t[t]).unwrap();
        let first = if linear { 0 } else { 3 };
        let q = &flown.q[t * nq + 7..(t + 1) * nq];
        let momentum = &flown.momentum[6 * t + first..6 * t + 6];
        for x in q.iter().chain(&flown.v[t * nv..(t + 1) * nv]).chain(momentum) {
            write!(text, ",{x}").unwrap();
        }
        text.push('\n');
    }
    text
}

/// The true model predicts its momentum; one with a body twice as heavy does not. The total linear momentum is zero,
/// so residuals are relative to the momenta of the bodies.
#[test]
fn a_flight_validates_a_model() {
    let folder = Folder::new();
    let right = without_limits(model());
    let flight = folder.file("flight.csv", log(&built(&right), 20.0, true));
    let validate = |model: &Value, threshold: &str| {
        let file = folder.file("robot.json", model.to_string());
        run(&["validate", &file, &flight, "--measured", "momentum", "--threshold", threshold, "--json"])
    };
    let exact = validate(&right, "1e-9");
    assert_eq!(exact.status, 0, "{}{}", exact.stderr, exact.stdout);
    assert_eq!(exact.json()["joints"].as_array().unwrap().len(), 6);
    let mut wrong = right.clone();
    wrong["bodies"][1]["inertial"]["mass"] = json!(24);
    let found = validate(&wrong, "0.01");
    assert_eq!(found.status, 1, "{}{}", found.stderr, found.stdout);
    for component in found.json()["joints"].as_array().unwrap() {
        // A tenth of the moving mass of the robot is doubled.
        let relative = component["relative_rms"].as_f64().unwrap();
        assert!((1e-3..10.0).contains(&relative), "{component}");
    }
    assert_eq!(found.json()["measured"], "momentum");
    // The table names momentum, not torques.
    let file = folder.file("robot.json", right.to_string());
    let table = run(&["validate", &file, &flight, "--measured", "momentum"]).stdout;
    assert!(
        table.contains("rms (N s, N m s)  of momentum") && table.contains("\nall components: "),
        "{table}"
    );
    assert!(!table.contains("torque") && !table.contains("joint"), "{table}");
    let fixed = refused(&["validate", "builtin:puma560", &flight, "--measured", "momentum"]);
    assert!(fixed.contains("base floating"), "{fixed}");
}

/// Returns the largest relative error with respect to the model, and the root mean square of differences in standard errors.
fn judged(result: &Value) -> (f64, f64) {
    let parameters = result["base_parameters"].as_array().unwrap();
    let number = |p: &Value, key: &str| p[key].as_f64().unwrap();
    let relative = parameters
        .iter()
        .map(|p| (number(p, "value") - number(p, "model")).abs() / number(p, "model").abs().max(0.1));
    let scaled: f64 = parameters.iter().map(|p| number(p, "difference_in_std_errors").powi(2)).sum();
    (relative.fold(0.0, f64::max), (scaled / parameters.len() as f64).sqrt())
}

#[test]
fn another_robot_from_logs() {
    let folder = Folder::new();
    let model = without_limits(model());
    let robot = built(&model);
    let file = folder.file("robot.json", model.to_string());
    for linear in [true, false] {
        let flight = folder.file("flight.csv", log(&robot, 40.0, linear));
        let exact = run(&["identify", &file, &flight, "--measured", "momentum", "--json"]);
        assert_eq!(exact.status, 0, "{}", exact.stderr);
        let exact = exact.json();
        assert_eq!((&exact["estimator"], &exact["measured"]), (&json!("ols"), &json!("momentum")));
        assert_eq!(exact["rank"], exact["excited"]);
        assert!(judged(&exact).0 < 1e-8, "{}", judged(&exact).0);
    }
    let flight = folder.file("flight.csv", log(&robot, 40.0, false));
    let call = ["identify", &file, &flight, "--measured", "momentum", "--noise", NOISE];
    let table = run(&call);
    assert_eq!(table.status, 0, "{}", table.stderr);
    assert!(
        table.stdout.contains("(estimator: eiv; momentum)") && table.stdout.contains("momentum.lz"),
        "{}",
        table.stdout
    );
    // The page predicts each sample separately; the residuals are equal up to rounding error.
    let path = folder.path("page.html");
    let drawn = ["--holdout", "0.25", "--json", "--report", path.to_str().unwrap()];
    let result = run(&[&call[..], &drawn].concat()).json();
    let page = page::with_curves(&path, &result, &["fit", "validation"], 1e-9);
    assert_eq!(page["identification"], result);
    assert_eq!(page["motions"].as_array().unwrap().len(), 2);
    // Positions integrated from exact rates at 20 Hz: the trapezoidal rule is more accurate than Euler's method.
    let with = |rule: &str| {
        let mut call = call.to_vec();
        call.extend(["--positions", rule, "--json", "--holdout", "0.2"]);
        let result = run(&call).json();
        assert_eq!(result["validation"].as_array().unwrap().len(), 6);
        judged(&result).0
    };
    assert!(with("trapezoid") < 0.1 * with("euler"));
}

/// Returns a model with wrong masses and inertias, by up to a half.
fn guessed(model: &Value) -> Value {
    let mut model = model.clone();
    for (k, body) in model["bodies"].as_array_mut().unwrap().iter_mut().enumerate() {
        let factor = 0.7 + 0.15 * k as f64;
        let scaled = |x: &mut Value| *x = json!(x.as_f64().unwrap() * factor);
        scaled(&mut body["inertial"]["mass"]);
        body["inertial"]["inertia"].as_object_mut().unwrap().values_mut().for_each(scaled);
    }
    model
}

/// Physically consistent estimates with a wrong model as prior agree with the true values in all base parameters;
/// they are certified and written.
#[test]
fn bodies_that_can_exist() {
    let folder = Folder::new();
    let truth = without_limits(model());
    let robot = built(&truth);
    let exact = folder.file("exact.csv", log(&robot, 40.0, false));
    let (right, wrong) = (
        folder.file("right.json", truth.to_string()),
        folder.file("wrong.json", guessed(&truth).to_string()),
    );
    let out = folder.path("identified.json");
    let names = |result: &Value| -> Vec<(String, f64, f64)> {
        let all = result["base_parameters"].as_array().unwrap().iter();
        let number = |p: &Value, key: &str| p[key].as_f64().unwrap();
        all.map(|p| (p["name"].to_string(), number(p, "value"), number(p, "std_error"))).collect()
    };
    let expected = run(&["identify", &right, &exact, "--measured", "momentum", "--json"]).json();
    // Without noise, and without specified noise.
    for estimator in ["lmi", "manifold", "log-cholesky"] {
        let call = ["identify", &wrong, &exact, "--measured", "momentum", "--estimator", estimator, "--json"];
        let found = run(&[&call[..], &["--out", out.to_str().unwrap()]].concat());
        assert_eq!(found.status, 0, "{}", found.stderr);
        let found = found.json();
        assert_eq!(found["estimator"], estimator);
        assert!(found["bodies"].as_array().unwrap().iter().all(|b| b["consistent"] == true), "{estimator}");
        for ((name, x, _), (_, y, _)) in names(&found).iter().zip(names(&expected)) {
            // Noise is assumed to be at least a millionth of the momentum; the prior changes the worst excited parameter by a thousandth.
            assert!((x - y).abs() < 1e-3 * y.abs().max(1.0), "{estimator} {name}: {x} {y}");
        }
        let written = std::fs::read_to_string(&out).unwrap();
        let again = built(&serde_json::from_str(&written).unwrap());
        for (body, reported) in again.bodies().iter().zip(found["bodies"].as_array().unwrap()) {
            assert_eq!(body.name, reported["name"]);
            assert!((body.inertia.mass / reported["mass"].as_f64().unwrap() - 1.0).abs() < 1e-12);
        }
        assert_eq!(run(&["check", out.to_str().unwrap()]).status, 0);
    }
    // With noise: errors as stated, and the same certified optimum with three solvers.
    let (motion, flight) = (folder.path("motion.json"), folder.path("flight.csv"));
    let (motion, flight) = (motion.to_str().unwrap(), flight.to_str().unwrap());
    let quick = ["--duration", "30", "--rate", "10", "--starts", "1", "--iterations", "20", "--out", motion];
    let designed =
        run(&[&["design", &right, "--measured", "momentum", "--noise", NOISE][..], &quick].concat());
    assert_eq!(designed.status, 0, "{}", designed.stderr);
    let fly = ["simulate", &right, motion, "--measured", "momentum", "--rate", "10", "--noise", NOISE];
    assert_eq!(run(&[&fly[..], &["--seed", "5", "--out", flight]].concat()).status, 0);
    let with = |estimator: &str| {
        let call = ["identify", &wrong, flight, "--measured", "momentum", "--noise", NOISE, "--json"];
        let found = run(&[&call[..], &["--estimator", estimator]].concat());
        assert_eq!(found.status, 0, "{}", found.stderr);
        found.json()
    };
    let (lmi, free) = (with("lmi"), with("eiv"));
    let (mut scaled, mut apart) = (0.0, 0.0_f64);
    for (((_, x, sigma), (_, y, _)), (_, free, own)) in
        names(&lmi).iter().zip(names(&expected)).zip(names(&free))
    {
        scaled += ((x - y) / sigma).powi(2);
        assert!(*sigma <= 1.001 * own, "a prior takes nothing away: {sigma} {own}");
        apart = apart.max((x - free).abs() / own);
    }
    let scaled = (scaled / names(&lmi).len() as f64).sqrt();
    println!("rms error/σ {scaled:.2}, at most {apart:.2} standard errors from eiv");
    // Some fifty errors of standard deviation one, with a small effect of the prior.
    assert!((0.6..1.5).contains(&scaled), "{scaled}");
    let gap = lmi["duality_gap"].as_f64().unwrap();
    assert!((0.0..1e-3).contains(&gap), "{gap}");
    for other in ["manifold", "log-cholesky"] {
        for ((name, x, sigma), (_, y, _)) in names(&with(other)).iter().zip(names(&lmi)) {
            // Steps stop at a ten-thousandth of a standard error; the optima of convex problems agree more closely.
            assert!((x - y).abs() < 1e-3 * sigma, "{other} {name}: {x} {y} {sigma}");
        }
    }
}

/// Workflow of three commands: design, simulate, identify.
/// Limits of a flight include torques and distances, and its page shows joints and wheels.
#[test]
fn a_flight_has_limits_of_torque_and_room_and_a_page() {
    let folder = Folder::new();
    let mut model = without_limits(model());
    for body in model["bodies"].as_array_mut().unwrap().iter_mut().skip(1) {
        body["joint"]["limits"]["effort"] = json!(1.0);
    }
    let file = folder.file("robot.json", model.to_string());
    let page = folder.path("page.html");
    let quick =
        ["--duration", "20", "--rate", "5", "--starts", "1", "--iterations", "2", "--link-radius", "0.01"];
    let call = ["design", &file, "--measured", "momentum", "--json", "--report", page.to_str().unwrap()];
    let designed = run(&[&call[..], &quick].concat());
    assert_eq!(designed.status, 0, "{}", designed.stderr);
    let json = designed.json();
    let limits = json["limits"].as_array().unwrap();
    let about = |words: &str| {
        let named = limits.iter().filter(|l| l["limit"].as_str().unwrap().starts_with(words));
        named.map(|l| l["used"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    let torques = about("the torque of j_");
    let distances: Vec<f64> = limits.iter().filter_map(|l| l["left"].as_f64()).collect();
    assert!(limits.iter().all(|l| l["used"].as_f64().unwrap() <= 1.0), "{limits:?}");
    assert!(!torques.is_empty() && torques.iter().all(|used| *used > 0.0 && *used <= 1.0), "{torques:?}");
    assert!(!distances.is_empty() && distances.iter().all(|left| *left >= 0.0), "{distances:?}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("wheel3") && page.contains("model force"));
}

#[test]
fn another_robot_is_designed_flown_and_identified() {
    let folder = Folder::new();
    let model = without_limits(model());
    let file = folder.file("robot.json", model.to_string());
    let path = |name: &str| folder.path(name).to_str().unwrap().to_owned();
    let (motion, table, flight) = (path("motion.json"), path("motion.csv"), path("flight.csv"));
    let quick = ["--duration", "30", "--rate", "10", "--starts", "1", "--iterations", "20"];
    let call = ["design", &file, "--measured", "momentum", "--noise", NOISE, "--json"];
    let designed = run(&[&call[..], &quick, &["--out", &motion, "--out", &table]].concat());
    assert_eq!((designed.status, designed.stderr.as_str()), (0, ""));
    let designed = designed.json();
    assert_eq!((&designed["measured"], &designed["criterion"]["name"]), (&json!("momentum"), &json!("d")));
    assert_eq!(designed["rank"], designed["structural_rank"]);
    assert!(designed["limits"][0]["used"].as_f64().unwrap() <= 1.0);
    let header = std::fs::read_to_string(&table).unwrap();
    assert!(header.lines().next().unwrap().contains("dq.wheel3"), "{header}");
    for source in [&motion, &table] {
        let call = ["simulate", &file, source, "--measured", "momentum", "--rate", "10", "--noise", NOISE];
        let flown = run(&[&call[..], &["--seed", "3", "--out", &flight]].concat());
        assert_eq!(flown.status, 0, "{}", flown.stderr);
        let call = ["identify", &file, &flight, "--measured", "momentum", "--noise", NOISE, "--json"];
        let found = run(&call);
        assert_eq!(found.status, 0, "{}", found.stderr);
        let found = found.json();
        assert_eq!((&found["rank"], &found["excited"]), (&designed["rank"], &designed["rank"]));
        // Some fifty errors of standard deviation one.
        let scaled = judged(&found).1;
        assert!((0.6..1.5).contains(&scaled), "{scaled}");
        // The standard errors equal those expected by the design, except for the effect of noise in the regressor.
        let of = |result: &Value| -> Vec<f64> {
            let all = result["base_parameters"].as_array().unwrap();
            all.iter().map(|p| p["std_error"].as_f64().unwrap()).collect()
        };
        for (promised, found) in of(&designed).iter().zip(of(&found)) {
            assert!((found / promised - 1.0).abs() < 0.1, "{promised} {found}");
        }
    }
}

#[test]
fn impossible_flight_designs_are_refused_in_one_line() {
    let folder = Folder::new();
    let robot = without_limits(model());
    let with = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut model = robot.clone();
        change(&mut model);
        folder.file(name, model.to_string())
    };
    let file = with("robot.json", &|_| {});
    let bare = with("bare.json", &|m| m["wheels"] = json!([]));
    let flat = with("flat.json", &|m| {
        for (k, wheel) in m["wheels"].as_array_mut().unwrap().iter_mut().enumerate() {
            wheel["axis"] = json!([1.0, k, 0.0]);
        }
    });
    let endless = with("endless.json", &|m| {
        let wheel = m["wheels"][1].as_object_mut().unwrap();
        wheel.remove("limits");
    });
    let stuck = with("stuck.json", &|m| {
        m["bodies"][2]["joint"]["limits"] = json!({"lower": 0.1, "upper": 0.1, "velocity": 0.5});
    });
    let cases: [(&str, &[&str], &str); 13] = [
        (&bare, &[], "no reaction wheels"),
        (&flat, &[], "lie in one plane"),
        (&endless, &[], "wheel1 has no velocity limit"),
        (&stuck, &[], "j_lower may move from 0.1 to 0.1 only"),
        (
            &file,
            &["--duration", "2", "--rate", "5"],
            "no motion of 2 s with knots every 1 s within the limits excites",
        ),
        (&file, &["--noise", "dq=1e-4"], "noise of the base's twist"),
        (&file, &["--noise", "tau=1"], "there is no column tau"),
        (&file, &["--noise", "dq"], "NAME=NUMBER"),
        (&file, &["--trajectory", "fourier"], "expected velocity or cycloid for a free flight"),
        (&file, &["--ground", "0"], "--ground: cannot be used for free flights"),
        (&file, &["--robust", "builtin:puma560"], "expected the same robot with other values"),
        (&file, &["--criterion", "paper"], "expected another for velocity knots"),
        ("builtin:puma560", &[], "needs a free-flying robot"),
    ];
    for (model, more, expected) in cases {
        let line = refused(&[&["design", model, "--measured", "momentum"], more].concat());
        assert!(line.contains(expected), "{more:?}: {line}");
    }
}

#[test]
fn wrong_calls_are_refused() {
    let folder = Folder::new();
    let model = without_limits(model());
    let robot = built(&model);
    let file = folder.file("robot.json", model.to_string());
    let text = log(&robot, 20.0, true);
    let flight = folder.file("flight.csv", &text);
    let says = |call: &[&str], words: &str| {
        let line = refused(call);
        assert!(line.contains(words), "{line}");
    };
    let call = |further: &[&'static str]| -> Vec<String> {
        let start = ["identify", &file, &flight, "--measured", "momentum"];
        start.iter().chain(further).map(|s| (*s).to_owned()).collect()
    };
    for (further, words) in [
        (&["--estimator", "eiv"][..], "needs the noise of the rates"),
        (&["--estimator", "wls"], "expected ols, bcls, eiv or consistent"),
        (&["--noise", "dq"], "NAME=NUMBER"),
        (&["--noise", "torque=1"], "there is no column torque"),
        (&["--noise", "dq=-1"], "standard deviation"),
        (&["--noise", "base.v=1e-4"], "noise of the base's twist"),
        (&["--summary-out", "x.summary"], "--summary-out"),
    ] {
        let line = refused(&call(further));
        assert!(line.contains(words), "{further:?}: {line}");
    }
    let missing = folder.file("missing.csv", text.replace("momentum.ly", "momentum.yy"));
    says(&["identify", &file, &missing, "--measured", "momentum"], "momentum.ly");
    let blind = folder.file("blind.csv", text.replace("base.wz", "base.zz"));
    says(&["identify", &file, &blind, "--measured", "momentum"], "base.vx … base.wz");
    says(&["identify", "builtin:puma560", &flight, "--measured", "momentum"], "floating base");
    says(&["identify", &file, &flight, "--estimator", "eiv"], "need measured momentum");
    says(&["identify", &file, &flight, "--noise", "dq=1"], "--measured momentum");
}
