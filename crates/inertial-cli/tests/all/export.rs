//! Tests of `inertial export`: C code compared with the library, loads of controllers, inertias for simulators.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::process::Command;

use crate::common::{Folder, data, python, refused, run, urdf};

/// Mechanism with every joint type, a follower and rotors.
const ALL_JOINTS: &str = r#"{"schema": "inertial/mechanism/1", "name": "all joints", "gravity": [1, 2, -9],
  "bodies": [
    {"name": "a", "parent": "ground", "joint": {"name": "j1", "type": "planar", "axis": [0.6, 0, 0.8], "origin": {"xyz": [0.1, 0, 0], "rpy": [0.1, 0.2, 0.3]}},
     "inertial": {"mass": 2, "com": [0.1, 0.2, 0.3], "inertia": {"ixx": 0.3, "ixy": 0.01, "ixz": 0.02, "iyy": 0.25, "iyz": 0.03, "izz": 0.2}}},
    {"name": "b", "parent": "a", "joint": {"name": "j2", "type": "universal", "axes": [[1, 0, 0], [0, 0.8, 0.6]], "origin": {"xyz": [0, 0.2, 0]}},
     "inertial": {"mass": 1, "com": [0, 0.1, 0], "inertia": {"ixx": 0.1, "ixy": 0, "ixz": 0, "iyy": 0.1, "iyz": 0, "izz": 0.1}}},
    {"name": "c", "parent": "b", "joint": {"name": "j3", "type": "spherical", "origin": {"xyz": [0.3, 0, 0.1], "rpy": [0, 1, 0]}},
     "inertial": {"mass": 1.5, "com": [0, 0.1, 0.2], "inertia": {"ixx": 0.1, "ixy": 0, "ixz": 0, "iyy": 0.15, "iyz": 0, "izz": 0.1}}},
    {"name": "d", "parent": "c", "joint": {"name": "j4", "type": "helical", "axis": [0, 1, 0], "pitch": 0.1, "origin": {"xyz": [0.2, 0, 0]}},
     "inertial": {"mass": 0.5, "com": [0.05, 0, 0], "inertia": {"ixx": 0.01, "ixy": 0, "ixz": 0, "iyy": 0.02, "iyz": 0, "izz": 0.02}}},
    {"name": "e", "parent": "a", "joint": {"name": "j5", "type": "cylindrical", "axis": [0, 0, 1], "origin": {"xyz": [0, -0.2, 0]}},
     "inertial": {"mass": 0.7, "com": [0.05, 0, 0.1], "inertia": {"ixx": 0.01, "ixy": 0, "ixz": 0, "iyy": 0.02, "iyz": 0, "izz": 0.02}}},
    {"name": "f", "parent": "e", "joint": {"name": "j6", "type": "prismatic", "axis": [1, 0, 0], "dynamics": {"damping": 0.5, "friction": 0.2, "armature": 0.3}},
     "inertial": {"mass": 0.3, "com": [0, 0.02, 0], "inertia": {"ixx": 0.01, "ixy": 0, "ixz": 0, "iyy": 0.01, "iyz": 0, "izz": 0.01}}},
    {"name": "g", "parent": "f", "joint": {"name": "j7", "type": "revolute", "axis": [0, 1, 0], "origin": {"xyz": [0.1, 0, 0]}},
     "inertial": {"mass": 0.2, "com": [0, 0.02, 0.1], "inertia": {"ixx": 0.01, "ixy": 0, "ixz": 0, "iyy": 0.01, "iyz": 0, "izz": 0.01}}},
    {"name": "h", "parent": "ground", "joint": {"name": "free", "type": "floating"},
     "inertial": {"mass": 3, "com": [0.1, 0.02, 0.1], "inertia": {"ixx": 0.1, "ixy": 0, "ixz": 0, "iyy": 0.1, "iyz": 0, "izz": 0.1}}}],
  "rotors": [{"joint": "j7", "carrier": "e", "ratio": 6.0, "origin": {"xyz": [0.1, 0, 0]}, "axis": [0, 1, 0], "symmetric": true,
     "inertial": {"mass": 0.1, "com": [0, 0, 0], "inertia": {"ixx": 1e-4, "ixy": 0, "ixz": 0, "iyy": 2e-4, "iyz": 0, "izz": 1e-4}}}]}"#;

/// Returns a gripper whose fingers follow one joint.
fn gripper() -> String {
    let link = |name: &str, mass: f64| {
        format!(
            "<link name='{name}'><inertial><origin xyz='0.01 0.02 0.03'/><mass value='{mass}'/>\
             <inertia ixx='0.01' ixy='0.001' ixz='0' iyy='0.012' iyz='0' izz='0.009'/></inertial></link>"
        )
    };
    let joint = |name: &str, kind: &str, parent: &str, child: &str, more: &str| {
        format!(
            "<joint name='{name}' type='{kind}'><origin xyz='0.1 0 0.2' rpy='0 1.5708 0'/><parent link='{parent}'/>\
             <child link='{child}'/><axis xyz='0 0 1'/>{more}</joint>"
        )
    };
    let limit = "<limit lower='-1' upper='1' effort='1' velocity='1'/>";
    let follow = format!("{limit}<mimic joint='left' multiplier='-2' offset='0.1'/>");
    [
        "<robot name='7 fingers*/'><link name='base'/>".to_owned(),
        link("arm", 2.0),
        link("hand", 1.0),
        link("finger_left", 0.2),
        link("finger_right", 0.2),
        joint("elbow", "continuous", "base", "arm", "<dynamics damping='0.3' friction='0.1'/>"),
        joint("mount", "fixed", "arm", "hand", ""),
        joint("left", "prismatic", "hand", "finger_left", limit),
        joint("right", "revolute", "hand", "finger_right", &follow),
        "</robot>".to_owned(),
    ]
    .concat()
}

/// Returns the compilers that are installed.
fn compilers() -> Vec<&'static str> {
    let found = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    ["gcc", "clang"].into_iter().filter(found).collect()
}

/// Compiles the exported files without warnings and runs the self-test.
fn passes(folder: &Folder, stem: &str) {
    let compilers = compilers();
    if compilers.is_empty() {
        data::skip("there is no C compiler");
    }
    for compiler in compilers {
        let path = |name: &str| folder.path(name).to_str().unwrap().to_owned();
        let program = path(&format!("{stem}_{compiler}"));
        let built = Command::new(compiler)
            .args(["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o", &program])
            .args([path(&format!("{stem}.c")), path(&format!("{stem}_test.c")), "-lm".to_owned()])
            .output()
            .unwrap();
        assert!(built.status.success(), "{compiler}: {}", String::from_utf8_lossy(&built.stderr));
        let tested = Command::new(&program).output().unwrap();
        assert!(tested.status.success(), "{compiler}: {}", String::from_utf8_lossy(&tested.stdout));
    }
}

/// The self-test allows 1e-12 of the largest number, which is about a thousand rounding errors.
#[test]
fn c_code_equals_the_library_on_ten_robots() {
    let folder = Folder::new();
    let (all, gripper) = (folder.file("all.json", ALL_JOINTS), folder.file("gripper.urdf", gripper()));
    let builtin =
        ["puma560", "scara", "arm7", "planar-2r", "quadruped", "space-dual-arm", "space-dual-arm-offset"];
    let builtin = builtin.map(|name| format!("builtin:{name}"));
    let mut robots: Vec<Vec<&str>> = builtin.iter().map(|name| vec![name.as_str()]).collect();
    robots.extend([
        vec!["builtin:quadruped", "--base", "fixed", "--rotors", "none"],
        vec![&all, "--rotors", "general"],
        vec![&all],
        vec![&gripper],
    ]);
    assert!(robots.len() >= 10);
    for (k, robot) in robots.iter().enumerate() {
        let out = folder.path(&format!("robot{k}.c"));
        let done = run(&[&["export"], &robot[..], &["--to", "c", "--out", out.to_str().unwrap()]].concat());
        assert_eq!(done.status, 0, "{robot:?}: {}", done.stderr);
        assert_eq!(done.stdout, "");
        passes(&folder, &format!("robot{k}"));
    }
}

#[test]
fn c_code_takes_the_values_of_a_result() {
    let folder = Folder::new();
    let (log, result) = (folder.path("log.csv"), folder.path("result.json"));
    let motion = folder.path("motion.csv");
    let [log, motion] = [&log, &motion].map(|p| p.to_str().unwrap().to_owned());
    let model = "builtin:planar-2r";
    assert_eq!(run(&["design", model, "--out", &motion, "--time-limit", "1", "--duration", "10"]).status, 0);
    assert_eq!(run(&["simulate", model, &motion, "--out", &log]).status, 0);
    let found = run(&["identify", model, &log, "--json"]);
    assert_eq!(found.status, 0, "{}", found.stderr);
    // Modified mass, and friction of every kind.
    let mut values = found.json();
    values["bodies"][1]["mass"] = 0.75.into();
    values["joints"][0] = serde_json::json!({"name": values["joints"][0]["name"], "viscous": 0.5, "coulomb_positive": 0.25,
        "coulomb_negative": 0.125, "stribeck": 0.5, "stribeck_velocity": 0.1, "stribeck_exponent": 2.0, "offset": -1.0,
        "rotor_inertia": 0.75});
    std::fs::write(&result, values.to_string()).unwrap();
    let out = folder.path("arm.c");
    let args = ["--to", "c", "--values", result.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let done = run(&[&["export", model], &args[..]].concat());
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert!(done.stderr.contains("arm.h") && done.stderr.contains("arm_test.c"), "{}", done.stderr);
    passes(&folder, "arm");
    let source = std::fs::read_to_string(&out).unwrap();
    assert!(
        source.contains("0.5 * v[0]") && source.contains("exp(-pow(fabs(v[0]) / 0.1, 2.0)) + -1.0;"),
        "{source}"
    );
    assert!(source.contains("const double arm_armature[ARM_NV] = {\n    0.75,\n    0.0,\n};"), "{source}");
    // Result of another robot.
    let wrong = refused(&[
        "export",
        "builtin:scara",
        "--to",
        "c",
        "--values",
        result.to_str().unwrap(),
        "--out",
        "x.c",
    ]);
    assert!(wrong.contains("it is the result of another model"), "{wrong}");
}

/// Payload of 1.5 kg as printed by `identify --payload --json`.
const LOAD: &str = r#"{"schema": "inertial/identification/1", "link": "tool0", "bodies": [{"name": "payload", "mass": 1.5, "com": [0.01, -0.02, 0.05],
  "inertia": {"ixx": 0.003, "ixy": 0.0002, "ixz": 0, "iyy": 0.004, "iyz": 0, "izz": 0.002}, "consistent": true}], "joints": []}"#;

#[test]
fn loads_of_controllers() {
    let folder = Folder::new();
    let load = folder.file("load.json", LOAD);
    let text = |to: &str| {
        let done = run(&["export", &load, "--to", to]);
        let said = if to == "franka-desk" { "inertial: load: payload; in the frame of tool0\n" } else { "" };
        assert_eq!((done.status, done.stderr.as_str()), (0, said));
        done.stdout
    };
    let script = text("ur");
    assert!(script.contains("\nset_payload(1.5, [0.01, -0.02, 0.05])\n"), "{script}");
    let tensor = "[0.003, 0.004, 0.002, 0.0002, 0.0, 0.0]";
    assert!(
        script.contains(&format!("\nset_target_payload(1.5, [0.01, -0.02, 0.05], {tensor})\n")),
        "{script}"
    );
    let call = text("franka");
    let rows = "{{0.003, 0.0002, 0.0, 0.0002, 0.004, 0.0, 0.0, 0.0, 0.002}}";
    assert!(call.contains(&format!("robot.setLoad(1.5, {{{{0.01, -0.02, 0.05}}}}, {rows});")), "{call}");
    let desk: serde_json::Value = serde_json::from_str(&text("franka-desk")).unwrap();
    assert_eq!(desk["mass"], 1.5);
    assert_eq!(desk["inertia"].as_array().unwrap().len(), 9);
    assert_eq!(desk["transformation"].as_array().unwrap().len(), 16);
    let data = text("kuka");
    assert!(data.contains("LOAD_DATA[1]={M 1.5,CM {X 10.0,Y -20.0,Z 50.0,A "), "{data}");
    let yaml = text("ros2-control");
    assert!(yaml.contains("pos: [0.01, -0.02, 0.05]\n        force: 14.715\n"), "{yaml}");
    assert!(yaml.contains("force: [0.0, 0.0, -14.715]\n"), "{yaml}");
    assert!(yaml.contains("id: \"tool0\"\n") && yaml.contains("sensor_frame: \"tool0\"\n"), "{yaml}");
    // Results of earlier versions do not name the link.
    let old = folder.file("old.json", LOAD.replace(r#""link": "tool0", "#, ""));
    let said = refused(&["export", &old, "--to", "ros2-control"]);
    assert!(said.contains("--frame: the result does not name the link"), "{said}");
    let named = run(&["export", &old, "--to", "ros2-control", "--frame", "wrist"]).stdout;
    assert!(named.contains("id: \"wrist\"\n"), "{named}");
    let said = refused(&["export", &load, "--to", "ur", "--frame", "wrist"]);
    assert!(said.contains("to convert it to wrist, give the model too"), "{said}");
    let said = refused(&["export", "builtin:scara", "--to", "gazebo", "--frame", "wrist"]);
    assert!(said.contains("--frame: applies to loads of controllers only, not to gazebo"), "{said}");
    // Link of a model, and a missing link.
    let robot = folder.file("robot.urdf", gripper());
    let hand = run(&["export", &robot, "--to", "ur", "--link", "hand"]);
    assert!(hand.stdout.contains("set_payload(1.0, [0.01, 0.02, 0.03])"), "{}{}", hand.stdout, hand.stderr);
    assert!(
        refused(&["export", &robot, "--to", "ur"]).contains("--link: expected the link that is the load")
    );
    assert!(refused(&["export", &robot, "--to", "ur", "--link", "hnad"]).contains("the nearest is hand"));
}

/// Numbers of the first `set_payload` statement: mass and centre of mass.
fn payload_numbers(script: &str) -> [f64; 4] {
    let line = script.lines().find_map(|l| l.strip_prefix("set_payload(")).unwrap();
    let numbers = line.split(|c: char| "[](), ".contains(c)).filter_map(|t| t.parse().ok());
    numbers.collect::<Vec<f64>>().try_into().unwrap()
}

/// Locked fingers belong to the load of the hand. The expected centre of mass is that of three points.
#[test]
fn loads_include_attached_links() {
    let folder = Folder::new();
    let robot = folder.file("robot.urdf", gripper());
    let open = run(&["export", &robot, "--to", "ur", "--link", "hand"]);
    assert!(open.stdout.starts_with("# Load: hand.\n# Frame: hand. "), "{}", open.stdout);
    assert!(
        open.stderr.contains("does not include finger_left, finger_right (moved by left, right)"),
        "{}",
        open.stderr
    );
    // The right finger follows: -2 * 0.05 + 0.1 = 0.
    let hand = ["export", &robot, "--link", "hand", "--lock", "left=0.05"];
    let done = run(&[&hand[..], &["--to", "ur"]].concat());
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
    let named = "# Load: hand, finger_left, finger_right.\n# Frame: hand. ";
    assert!(done.stdout.starts_with(named), "{}", done.stdout);
    // The angle as the file has it.
    let (s, c) = "1.5708".parse::<f64>().unwrap().sin_cos();
    let turned = |[x, y, z]: [f64; 3]| [0.1 + c * x + s * z, y, 0.2 - s * x + c * z];
    let points =
        [(1.0, [0.01, 0.02, 0.03]), (0.2, turned([0.01, 0.02, 0.08])), (0.2, turned([0.01, 0.02, 0.03]))];
    let centre = [0, 1, 2].map(|k| points.iter().map(|(m, x)| m * x[k]).sum::<f64>() / 1.4);
    let [mass, com @ ..] = payload_numbers(&done.stdout);
    // A dozen operations in double precision.
    let near = |found: [f64; 3], expected: [f64; 3]| (0..3).all(|k| (found[k] - expected[k]).abs() < 1e-14);
    assert!((mass - 1.4).abs() < 1e-14 && near(com, centre), "{mass} {com:?} {centre:?}");
    // The same in the frame of the arm, to which the hand is fixed.
    let done = run(&[&hand[..], &["--to", "ur", "--frame", "arm"]].concat());
    let [mass, com @ ..] = payload_numbers(&done.stdout);
    assert!(done.stdout.contains("# Frame: arm. "), "{}", done.stdout);
    assert!((mass - 1.4).abs() < 1e-14 && near(com, turned(centre)), "{mass} {com:?}");
    let said = refused(&[&hand[..], &["--to", "ur", "--frame", "base"]].concat());
    assert!(said.contains("--frame: base moves relative to hand"), "{said}");
    // The other formats have the same mass.
    for to in ["franka", "franka-desk", "kuka", "ros2-control"] {
        let done = run(&[&hand[..], &["--to", to]].concat());
        let all = done.stdout.clone() + &done.stderr;
        assert!(all.contains("1.4") && all.contains("hand, finger_left, finger_right"), "{all}");
        let json = run(&[&hand[..], &["--to", to, "--json"]].concat()).json();
        assert_eq!(json["load"]["links"], serde_json::json!(["hand", "finger_left", "finger_right"]));
        assert_eq!(json["load"]["frame"], "hand");
    }
    let yaml = run(&[&hand[..], &["--to", "ros2-control"]].concat()).stdout;
    assert!(yaml.contains("id: \"hand\""), "{yaml}");
}

#[test]
fn simulators_and_libraries_take_the_values() {
    let folder = Folder::new();
    let robot = folder.file("robot.urdf", gripper());
    let mut paths = Vec::new();
    for (to, name) in
        [("pinocchio", "pin.py"), ("drake", "drake.py"), ("mujoco", "part.xml"), ("gazebo", "part.sdf")]
    {
        let path = folder.path(name).to_str().unwrap().to_owned();
        assert_eq!(run(&["export", &robot, "--to", to, "--out", &path]).status, 0);
        paths.push(path);
    }
    let arguments: Vec<&str> = [robot.as_str()].into_iter().chain(paths.iter().map(String::as_str)).collect();
    if let Some(reported) = python::run("export_check.py", &arguments) {
        assert_eq!(reported.trim(), "all agree");
    }
    let sdf = std::fs::read_to_string(&paths[3]).unwrap();
    assert!(
        sdf.contains("<!-- hand -->\n<inertial>\n  <pose>0.01 0.02 0.03 0 0 0</pose>\n  <mass>1.0</mass>"),
        "{sdf}"
    );
}

#[test]
fn wrong_exports_are_refused() {
    let folder = Folder::new();
    let load = folder.file("load.json", LOAD);
    let loop_model = refused(&["export", "builtin:four-bar", "--to", "c", "--out", "x.c"]);
    assert!(loop_model.contains("C code is not available for robots with loops"), "{loop_model}");
    assert!(refused(&["export", &load, "--to", "c", "--out", "x.c"]).contains("a result has no geometry"));
    assert!(
        refused(&["export", "builtin:scara", "--to", "c"]).contains("give the name of the source with --out")
    );
    assert!(refused(&["export", "builtin:scara", "--to", "c", "--out", "arm.txt"]).contains("such as arm.c"));
    assert!(refused(&["export", "builtin:scara", "--to", "c", "--out", "9 x.c"]).contains("such as arm.c"));
    let bent = folder.file("bent.json", LOAD.replace("1.5", "\"much\""));
    assert!(refused(&["export", &bent, "--to", "ur"]).contains("bent.json: invalid type: string \"much\""));
    let cut = folder.file("cut.json", &LOAD[..120]);
    assert!(refused(&["export", &cut, "--to", "ur"]).contains("cut.json: "));
    let model = folder.file("model.urdf", urdf(""));
    let text = refused(&["export", "builtin:scara", "--values", &model, "--to", "c", "--out", "x.c"]);
    assert!(text.contains("is not a result of identify"), "{text}");
    assert!(refused(&["export", "absent.json", "--to", "ur"]).contains("there is no such file"));
    assert!(!std::path::Path::new("x.c").exists());
}

/// Result with a body of two links.
const MERGED: &str = r#"{"schema": "inertial/identification/1", "bodies": [{"name": "arm", "links": ["arm", "hand"], "mass": 3,
  "com": [0, 0, 0.1], "inertia": {"ixx": 0.03, "ixy": 0, "ixz": 0, "iyy": 0.04, "iyz": 0, "izz": 0.02}}], "joints": []}"#;

#[test]
fn merged_bodies_are_named() {
    let folder = Folder::new();
    let result = folder.file("result.json", MERGED);
    for to in ["mujoco", "gazebo", "drake"] {
        let done = run(&["export", &result, "--to", to]);
        assert!(done.stderr.contains("exported as one body: arm (arm + hand)"), "{}", done.stderr);
        assert!(done.stderr.contains("--values RESULT"), "{}", done.stderr);
        let json = run(&["export", &result, "--to", to, "--json"]).json();
        assert_eq!(json["warning_codes"], serde_json::json!(["merged-bodies"]));
    }
    let elements = run(&["export", &result, "--to", "mujoco"]).stdout;
    assert!(elements.starts_with("<!-- arm: sum of arm, hand -->"), "{elements}");
    // The function for Pinocchio replaces the sum of the links of a joint, and loads list their links.
    assert_eq!(run(&["export", &result, "--to", "pinocchio"]).stderr, "");
    let load = run(&["export", &result, "--to", "ur"]);
    assert!(load.stderr.is_empty() && load.stdout.starts_with("# Load: arm, hand.\n"), "{}", load.stdout);
}

/// The result of an identification names the links of merged bodies.
#[test]
fn identified_bodies_name_their_links() {
    let folder = Folder::new();
    let fixed = "<link name='tool'><inertial><mass value='1'/><inertia ixx='0.01' ixy='0' ixz='0' iyy='0.01' iyz='0' izz='0.01'/>\
                 </inertial></link><joint name='flange' type='fixed'><parent link='arm'/><child link='tool'/></joint></robot>";
    let arm = "<inertial><origin xyz='0.1 0 0'/><mass value='2'/><inertia ixx='0.01' ixy='0' ixz='0' iyy='0.01' iyz='0' izz='0.01'/>\
               </inertial>";
    let robot = folder.file("robot.urdf", urdf(arm).replace("</robot>", fixed));
    let mut log = String::from("t,q1,tau1\n");
    for i in 0..2000 {
        let t = f64::from(i) / 200.0;
        let _ = writeln!(log, "{t},{},{}", 0.9 * (3.0 * t).sin(), -0.9 * 9.0 * 0.05 * (3.0 * t).sin());
    }
    let log = folder.file("log.csv", log);
    let found = run(&["identify", &robot, &log, "--json"]).json();
    assert_eq!(found["bodies"][0]["links"], serde_json::json!(["arm", "tool"]));
    let alone = folder.file("alone.urdf", urdf(arm));
    assert!(run(&["identify", &alone, &log, "--json"]).json()["bodies"][0]["links"].is_null());
}
