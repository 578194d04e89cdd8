//! Tests of `inertial columns`, and of logs with column names of controllers.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use crate::common::{Folder, python, refused, run};

const MODEL: &str = "builtin:planar-2r";

/// Returns a log of two joints with the given names of time, positions and torques, in units of `scale` per SI unit.
fn log(names: [&str; 5], scale: [f64; 3]) -> String {
    let mut text = names.join(";") + "\n";
    for i in 0..1500 {
        let t = f64::from(i) / 100.0;
        let q = [(3.0 * t).sin(), (4.0 * t + 0.3).cos()];
        let tau = [(5.0 * t).sin() + 3.0 * q[0], (7.0 * t).cos() + q[1]];
        let numbers = [t * scale[0], q[0] * scale[1], q[1] * scale[1], tau[0] * scale[2], tau[1] * scale[2]];
        let _ = writeln!(text, "{}", numbers.map(|x| x.to_string()).join(";"));
    }
    text
}

#[test]
fn columns_are_listed_with_a_map_that_works() {
    let folder = Folder::new();
    let degrees = 180.0 / std::f64::consts::PI;
    let names = ["time_ms", "J1 position [deg]", "J2 position [deg]", "actual_current_0", "actual_current_1"];
    let path = folder.file("log.csv", log(names, [1e3, degrees, 2.0]));
    let listed = run(&["columns", &path, MODEL, "--json"]);
    // The torques are currents, so the log has no torque columns.
    assert_eq!(listed.status, 1, "{}", listed.stderr);
    let found = listed.json();
    let column = |k: usize| (found["columns"][k]["target"].as_str(), found["columns"][k]["unit"].as_str());
    assert_eq!(column(0), (Some("t"), Some("ms")));
    assert_eq!(column(2), (Some("q2"), Some("deg")));
    assert_eq!(column(3), (None, None));
    assert!(found["missing"].as_str().unwrap().contains("actual_current_{i} are currents"));
    assert_eq!(found["columns"][0]["greatest"], 14990.0);
    let text = run(&["columns", &path]);
    assert_eq!(text.status, 0);
    for words in [
        "J1 position [deg]",
        "5 columns, 3 recognized",
        "t = { column = \"time_ms\", unit = \"ms\" }",
        "[columns]",
    ] {
        assert!(text.stdout.contains(words), "{words}: {}", text.stdout);
    }
    // Written map, with the line for currents completed.
    let map = folder.path("map.toml");
    let map = map.to_str().unwrap();
    assert_eq!(run(&["columns", &path, "--out", map]).status, 0);
    let filled =
        std::fs::read_to_string(map).unwrap().replace("# tau", "tau").replace("[1.0, 1.0]", "[0.5, 0.5]");
    std::fs::write(map, filled).unwrap();
    let complete = run(&["columns", &path, MODEL, "--columns", map, "--json"]);
    assert_eq!(complete.status, 0, "{}{}", complete.stdout, complete.stderr);
    assert_eq!(complete.json()["columns"][4]["reason"], "by the column map");
    let plain = folder.file("plain.csv", log(["t", "q1", "q2", "tau1", "tau2"], [1.0; 3]));
    let identified = |args: &[&str]| {
        let done = run(&[&["identify", MODEL, "--friction", "none", "--json"], args].concat());
        assert_eq!(done.status, 0, "{}", done.stderr);
        done.json()["fit"][0]["rms"].as_f64().unwrap()
    };
    let (reference, mapped) = (identified(&[&plain]), identified(&[&path, "--columns", map]));
    assert!((reference - mapped).abs() < 1e-6 * reference, "{reference} {mapped}");
}

#[test]
fn names_of_controllers_need_no_map() {
    let folder = Folder::new();
    let plain = folder.file("plain.csv", log(["t", "q1", "q2", "tau1", "tau2"], [1.0; 3]));
    let validated = |path: &str| {
        let done = run(&["validate", MODEL, path, "--json"]);
        assert_eq!(done.status, 0, "{}", done.stderr);
        (done.stdout, done.stderr)
    };
    let (reference, _) = validated(&plain);
    for names in [
        ["timestamp", "actual_q_0", "actual_q_1", "torque_0", "torque_1"],
        ["Time", "joint1 pos", "joint2 pos", "joint1 effort", "joint2 effort"],
    ] {
        let (found, notes) = validated(&folder.file("log.csv", log(names, [1.0; 3])));
        assert_eq!(found, reference, "{names:?}");
        assert!(notes.contains("q: taken from "), "{notes}");
    }
}

#[test]
fn files_without_a_header_get_a_map_to_check() {
    let folder = Folder::new();
    let text = log(["t", "q1", "q2", "tau1", "tau2"], [1.0; 3]);
    let bare = folder.file("bare.csv", text.split_once('\n').unwrap().1);
    assert!(refused(&["identify", MODEL, &bare]).contains("there is no header"));
    let map = folder.path("map.toml");
    let listed = run(&["columns", &bare, MODEL, "--out", map.to_str().unwrap()]);
    assert_eq!(listed.status, 1, "{}", listed.stderr);
    let text = std::fs::read_to_string(&map).unwrap();
    assert!(text.ends_with("t = \"column_1\"\nq = \"column_{2..3}\"\ntau = \"column_{4..5}\"\n"), "{text}");
    assert_eq!(run(&["validate", MODEL, &bare, "--columns", map.to_str().unwrap()]).status, 0);
    assert!(refused(&["columns", "absent.csv"]).contains("there is no such file"));
}

#[test]
fn logs_without_times_need_their_rate() {
    let folder = Folder::new();
    let text = log(["t", "q1", "q2", "tau1", "tau2"], [1.0; 3]);
    let without: String =
        text.lines().filter_map(|line| line.split_once(';')).fold(String::new(), |mut out, (_, rest)| {
            let _ = writeln!(out, "{rest}");
            out
        });
    let (timed, bare) = (folder.file("timed.csv", text), folder.file("bare.csv", without));
    let line = refused(&["identify", MODEL, &bare]);
    assert!(line.ends_with("; --rate sets the sampling rate (Hz) of a log without times"), "{line}");
    let validated = |args: &[&str]| {
        let done = run(&[&["validate", MODEL, "--json"], args].concat());
        assert_eq!(done.status, 0, "{}", done.stderr);
        done.json()["joints"].clone()
    };
    assert_eq!(validated(&[&bare, "--rate", "100"]), validated(&[&timed]));
    let line = refused(&["validate", MODEL, &timed, "--rate", "100"]);
    assert!(line.contains("--rate: ") && line.contains("timed.csv has a time column"), "{line}");
    for rate in ["0", "-1", "nan", "1e12"] {
        let rate = format!("--rate={rate}");
        let line = refused(&["validate", MODEL, &bare, &rate]);
        assert!(line.contains("--rate"), "{line}");
        assert!(refused(&["columns", &bare, &rate]).contains("--rate"));
    }
    let listed = run(&["columns", &bare, MODEL, "--json"]);
    assert_eq!(listed.status, 1);
    assert!(listed.json()["missing"].as_str().unwrap().contains("there is no column t"));
    assert_eq!(run(&["columns", &bare, MODEL, "--rate", "100"]).status, 0);
}

/// Tests bags with several topics: all fields are listed, and a map of the torques alone completes the joint states.
#[test]
fn fields_of_all_topics_are_listed() {
    let folder = Folder::new();
    let root = folder.path("");
    let Some(_) = python::run("write_bags.py", &[root.to_str().unwrap()]) else { return };
    let joint = |name: &str, parent: &str, child: &str| {
        format!(
            "<joint name=\"{name}\" type=\"continuous\"><parent link=\"{parent}\"/><child link=\"{child}\"/>\
             <origin xyz=\"0.3 0 0\"/><axis xyz=\"0 1 0\"/></joint><link name=\"{child}\"/>"
        )
    };
    let model = folder.file(
        "arm.urdf",
        format!(
            "<robot name=\"arm\"><link name=\"base\"/>{}{}</robot>",
            joint("shoulder", "base", "a"),
            joint("elbow", "a", "b")
        ),
    );
    let map = folder.file(
        "map.toml",
        "[columns]\ntau = { column = \"/low_state.motor_state[{i}].tau_est\", scale = 0.5 }\n",
    );
    for bag in ["several_db3", "several_mcap", "several.bag"] {
        let path = folder.path(bag);
        let path = path.to_str().unwrap();
        let listed = run(&["columns", path, &model, "--json"]);
        assert_eq!(listed.status, 0, "{}", listed.stderr);
        let found = listed.json();
        let columns = found["columns"].as_array().unwrap();
        let column = |name: &str| {
            let own = columns.iter().find(|c| c["name"] == name);
            own.unwrap_or_else(|| panic!("{bag}: no {name} in {found}"))
        };
        assert_eq!(column("q.elbow")["target"], "q.elbow");
        for name in [
            "/low_state.motor_state[1].tau_est",
            "/ft.wrench.force.z",
            "/imu.angular_velocity.x",
            "/odom.pose.pose.position.x",
        ] {
            let own = column(name);
            assert!(own["target"].is_null() && own["first"].is_number(), "{bag}: {own}");
            assert_eq!(own["reason"], "of another topic: name it in a column map");
        }
        let listed = run(&["columns", path, &model, "--columns", &map, "--json"]);
        assert_eq!(listed.status, 0, "{bag}: {}{}", listed.stdout, listed.stderr);
        let found = listed.json();
        let columns = found["columns"].as_array().unwrap();
        let target = |name: &str| columns.iter().find(|c| c["name"] == name).map(|c| c["target"].clone());
        assert_eq!(target("q.shoulder"), Some("q.shoulder".into()), "{found}");
        assert_eq!(target("/low_state.motor_state[1].tau_est"), Some("tau2".into()), "{found}");
    }
}

/// Robot on a base with mass.
const MOBILE: &str = "<robot name='mobile'><link name='trunk'><inertial><mass value='5'/><inertia ixx='0.1' ixy='0' ixz='0' iyy='0.1' \
     iyz='0' izz='0.1'/></inertial></link><link name='arm'><inertial><mass value='1'/><inertia ixx='0.01' ixy='0' ixz='0' iyy='0.01' \
     iyz='0' izz='0.01'/></inertial></link><joint name='hinge' type='continuous'><parent link='trunk'/><child link='arm'/>\
     <axis xyz='0 1 0'/></joint></robot>";

/// Returns a log of [`MOBILE`] whose base moves by `amplitude` (m).
fn mobile_log(amplitude: f64) -> String {
    let mut text =
        String::from("t,q.hinge,tau.hinge,base.x,base.y,base.z,base.qx,base.qy,base.qz,base.qw,odd\n");
    for i in 0..20_000 {
        let t = f64::from(i) / 100.0;
        let [q, tau, x] = [(3.0 * t).sin(), (5.0 * t).cos(), amplitude * (2.0 * t).sin()];
        let _ = writeln!(text, "{t},{q},{tau},{x},0,0.5,0,0,0,1,7");
    }
    text
}

/// The listing counts the columns that `identify` uses: those of a base only if it floats.
#[test]
fn columns_of_a_base_are_used_if_it_moves() {
    let folder = Folder::new();
    let model = folder.file("robot.urdf", MOBILE);
    let [moving, resting] = [("moving.csv", 0.2), ("resting.csv", 0.001)]
        .map(|(name, amplitude)| folder.file(name, mobile_log(amplitude)));
    let listed = |log: &str, more: &[&str]| {
        let args = [&["columns", log, &model][..], more].concat();
        let (text, json) = (run(&args), run(&[&args[..], &["--json"]].concat()).json());
        (text, json["columns"][3].clone(), json)
    };
    let (text, base, json) = listed(&moving, &[]);
    assert_eq!(base["used"], true);
    assert!(text.stderr.contains("it is treated as floating, as with --base floating"), "{}", text.stderr);
    assert!(text.stdout.contains("11 columns, 10 recognized, 10 used with the model"), "{}", text.stdout);
    // Only the first rows of the log are read.
    let rows = json["rows"].as_u64().unwrap();
    assert!(rows < 20_000 && json["all_rows"] == false, "{rows}");
    assert!(text.stdout.contains(&format!("are those of the first {rows} rows only")), "{}", text.stdout);
    for (log, more) in [(&moving, &["--base", "fixed"][..]), (&resting, &[])] {
        let (text, base, _) = listed(log, more);
        assert_eq!(base["used"], false);
        assert_eq!(base["reason"], "of a floating base: --base floating uses it");
        assert!(text.stdout.contains("11 columns, 10 recognized, 3 used with the model"), "{}", text.stdout);
        let note = "the base does not move in the logs and is treated as fixed";
        assert_eq!(text.stderr.contains(note), more.is_empty(), "{}", text.stderr);
    }
}

/// A log with other names for all joints is read with the map that the message gives.
#[test]
fn other_names_of_all_joints_are_mapped() {
    let folder = Folder::new();
    let model = folder.file(
        "robot.urdf",
        MOBILE.replace(
            "</robot>",
            "<link name='hand'><inertial><mass value='1'/><inertia ixx='0.01' ixy='0' ixz='0' iyy='0.01' iyz='0' izz='0.01'/>\
             </inertial></link><joint name='wrist' type='continuous'><parent link='arm'/><child link='hand'/><origin xyz='0 0 1'/>\
             <axis xyz='0 1 0'/></joint></robot>",
        ),
    );
    for (names, expected) in [
        (["left_hinge", "left_wrist"], r#"joints = { "left_hinge" = "hinge", "left_wrist" = "wrist" }"#),
        (["left_wrist", "left_hinge"], r#"joints = { "left_wrist" = "wrist", "left_hinge" = "hinge" }"#),
        (["1", "2"], r#"joints = { "1" = "hinge", "2" = "wrist" }"#),
    ] {
        let [a, b] = names;
        let [q, tau] = ["q", "tau"].map(|quantity| [a, b].map(|name| format!("{quantity}.{name}")));
        let header = ["t", &q[0], &q[1], &tau[0], &tau[1]];
        let path = folder.file("log.csv", log(header, [1.0; 3]));
        let said = refused(&["identify", &model, &path]);
        assert!(said.contains(&format!("--columns takes a map of the names: {expected}")), "{said}");
        let map = folder.path("map.toml").to_str().unwrap().to_owned();
        assert_eq!(run(&["columns", &path, &model, "--out", &map]).status, 1);
        let listed = run(&["columns", &path, &model, "--columns", &map]);
        assert_eq!(listed.status, 0, "{}{}", listed.stdout, listed.stderr);
    }
    // With another number of joints, the names do not tell which is missing.
    let path = folder.file(
        "log.csv",
        log(["t", "q.hinge", "q.other", "tau.hinge", "x"], [1.0; 3]).replace("q.other", "y"),
    );
    assert!(!refused(&["identify", &model, &path]).contains("takes a map"));
}
