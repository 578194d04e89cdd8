//! Tests of `inertial analyze` as a program.

#![allow(clippy::unwrap_used)]

use crate::common::{Folder, refused, run};
use serde_json::{Value, json};

#[test]
fn the_classic_table_is_printed() {
    let result = run(&["analyze", "builtin:puma560"]);
    assert_eq!((result.status, result.stderr.as_str()), (0, ""));
    assert!(result.stdout.starts_with("puma560: 36 of 60 inertial parameters are identifiable, 24 not\n"));
    // Row of the fourth body in table 2 of the paper, in our order of parameters.
    let row = result.stdout.lines().find(|l| l.trim_start().starts_with("link4 ")).unwrap();
    let cells: Vec<_> = row.split_whitespace().skip(1).collect();
    assert_eq!(cells, ["○", "★", "●", "○", "●", "★", "★", "○", "★", "●", "6", "10", "3"]);
    assert!(result.stdout.contains("\n  link5.Izz + link6.Iyy\n"));
    assert!(result.stdout.contains("Rank 36 is proved"));
}

#[test]
fn json_has_the_promised_shape() {
    let value = run(&["analyze", "builtin:puma560", "--json"]).json();
    let model = json!({"name": "puma560", "bodies": 6, "dof": 6, "base": "fixed", "gravity": [0.0, 0.0, -9.81],
        "loops": 0, "rotors": 0});
    assert_eq!((&value["schema"], &value["model"]), (&json!("inertial/analysis/1"), &model));
    assert_eq!(value["measured"], "joint-torques");
    assert_eq!(value["method"], "rpna");
    for (key, n) in [("parameters", 60), ("rank", 36), ("nullity", 24), ("rank_literal", 36)] {
        assert_eq!(value[key], n, "{key}");
    }
    let body = &value["bodies"][1];
    assert_eq!(body["parent"], "link1");
    assert_eq!(body["joint_type"], "revolute");
    assert_eq!((&body["velocity_span"], &body["identifiable_span"]), (&json!(5), &json!(8)));
    assert_eq!(
        (&body["parameters"]["m"], &body["parameters"]["hy"]),
        (&json!("unidentifiable"), &json!("identifiable"))
    );
    let base = value["base_parameters"].as_array().unwrap();
    assert_eq!(base.len(), 36);
    assert!(base.iter().all(|b| b["combination"][b["name"].as_str().unwrap()] == 1.0));
    assert_eq!(value["certificate"]["exact"], true);
    assert_eq!(value["warnings"], json!([]));
}

fn rank(args: &[&str]) -> Value {
    run(&[&["analyze", "--json"], args].concat()).json()["rank"].clone()
}

#[test]
fn the_rank_depends_on_the_experiment() {
    assert_eq!(rank(&["builtin:puma560", "--gravity=0,0,0"]), 34);
    assert_eq!(rank(&["builtin:puma560", "--kinetic"]), 34);
    let (at_rest, all) = (rank(&["builtin:puma560", "--static"]), rank(&["builtin:puma560"]));
    assert!(at_rest.as_u64() < all.as_u64());
    assert!(rank(&["builtin:puma560", "--joints", "joint6"]).as_u64() < all.as_u64());
    // Ayusawa's theorem: the base wrench alone determines all identifiable parameters of links, but not of rotors.
    let links = ["builtin:quadruped", "--rotors", "none"];
    assert_eq!(rank(&links), 94);
    assert_eq!(rank(&[&links[..], &["--measured", "base-wrench"]].concat()), 94);
    let (both, wrench) =
        (rank(&["builtin:quadruped"]), rank(&["builtin:quadruped", "--measured", "base-wrench"]));
    assert_eq!(both, 106);
    assert!(wrench.as_u64() < both.as_u64());
    // In free flight the motion alone does not determine the total mass, since all parameters may be scaled.
    let flight = rank(&[&links[..], &["--ballistic", "--measured", "base-wrench"]].concat());
    assert_eq!(flight, 93);
}

#[test]
fn comparison_with_a_floating_base_lists_lost_parameters() {
    let args = ["analyze", "builtin:cheetah-leg", "--compare", "floating"];
    let result = run(&args);
    assert_eq!(result.status, 0, "{}", result.stderr);
    // Section 9.3 of the paper: only the torque of the knee is predicted.
    assert!(result.stdout.contains("Forces there that would be predicted: knee\n"), "{}", result.stdout);
    let value = run(&[&args[..], &["--json"]].concat()).json();
    let forces = value["comparison"]["forces"].as_array().unwrap();
    assert_eq!(forces.iter().filter(|f| f["predicted"] == true).count(), 1);
    let back = run(&["analyze", "builtin:cheetah-leg", "--base", "floating", "--compare", "fixed"]);
    assert!(back.stdout.contains("every combination that is identifiable there"), "{}", back.stdout);
}

#[test]
fn comparisons_list_as_many_parameters_as_they_count() {
    let args = ["analyze", "builtin:cheetah-leg", "--compare", "floating"];
    let words = run(&args).stdout;
    let comparison = run(&[&args[..], &["--json"]].concat()).json()["comparison"].clone();
    let (lost, listed) = (&comparison["lost"], comparison["lost_base_parameters"].as_array().unwrap().len());
    let told = format!(
        "{listed} base parameters of it are not determined here; {lost} combinations are missing for them:\n"
    );
    let lines = words.split_once(&told).unwrap_or_else(|| panic!("{told}{words}")).1;
    assert_eq!(lines.lines().take_while(|l| l.starts_with("  ")).count(), listed);
}

/// Rotor columns of tables 2 and 4 of paper 003 for models without rotors, and of a robot with rotors.
#[test]
fn missing_rotors_are_added_to_models() {
    let rotors = |args: &[&str]| rank(&[args, &["--rotors", "symmetric"]].concat());
    assert_eq!(rotors(&["builtin:puma560"]), 40);
    assert_eq!(rotors(&["builtin:puma560", "--gravity=0,0,0"]), 38);
    assert_eq!(rotors(&["builtin:scara"]), 11);
    // The ten parameters of the base are included.
    assert_eq!(rotors(&["builtin:puma560", "--base", "floating"]), 48 + 10);
    assert_eq!(rotors(&["builtin:scara", "--base", "floating"]), 29 + 10);
    assert_eq!(rotors(&["builtin:cheetah-leg"]), 18);
    // Only the driven joint of a linkage has a motor; a rotor on the ground is part of its link.
    assert_eq!(rotors(&["builtin:four-bar"]), rank(&["builtin:four-bar"]));
    let found = run(&["analyze", "builtin:scara", "--rotors", "symmetric", "--json"]).json();
    assert_eq!((&found["model"]["rotors"], &found["parameters"]), (&json!(4), &json!(44)));
    assert!(found["warnings"][0].as_str().unwrap().contains("gear ratio 100"), "{}", found["warnings"]);
    let general = run(&["analyze", "builtin:scara", "--rotors", "general", "--json"]).json();
    assert_eq!(general["parameters"], 80);
    assert!(run(&["analyze", "builtin:scara", "--rotors", "symmetric"]).stdout.contains("joint2.rotor"));
}

#[test]
fn the_rank_from_momentum_depends_on_wheels() {
    let robot = ["builtin:space-dual-arm", "--measured", "momentum"];
    assert_eq!(rank(&robot), 52);
    let found = run(&[&["analyze", "--json"], &robot[..]].concat()).json();
    assert_eq!((&found["total_momentum"], &found["certificate"]["exact"]), (&json!("zero"), &json!(true)));
    let folder = Folder::new();
    let text = include_str!("../../../inertial/src/mechanism/builtin/space-dual-arm.toml");
    let bare = folder.file("bare.toml", text.split("[[wheels]]").next().unwrap());
    let without = [bare.as_str(), "--measured", "momentum"];
    assert_eq!(rank(&without), 52);
    for (total, expected) in [("zero", 51), ("angular", 52), ("any", 52)] {
        assert_eq!(rank(&[&without[..], &["--total-momentum", total]].concat()), expected, "{total}");
    }
    // The assumption made without wheels is reported.
    for total in [&[][..], &["--total-momentum", "zero"]] {
        let words = run(&[&["analyze"], &without[..], total].concat()).stdout;
        assert!(words.contains("only ratios of parameters"), "{words}");
    }
}

#[test]
fn csv_and_latex_agree_with_json() {
    let csv = run(&["analyze", "builtin:scara", "--csv"]).stdout;
    assert_eq!(csv.lines().next(), Some("body,parameter,status,base,combination"));
    assert_eq!(csv.lines().count(), 41);
    assert_eq!(csv.lines().filter(|l| l.split(',').nth(3) == Some("1")).count(), 8);
    // The null space has as many vectors as the nullity, each with its reason.
    let null = run(&["analyze", "builtin:2prs-1psr", "--csv=null-space"]).stdout;
    let mut lines = null.lines();
    assert_eq!(lines.next(), Some("vector,reason,parameter,coefficient"));
    let last = lines.next_back().unwrap();
    assert!(last.starts_with("47,") && null.contains("\n1,shared points at joint"), "{null}");
    let found = run(&["analyze", "builtin:2prs-1psr", "--json"]).json();
    let counts = found["principles"].as_object().unwrap().values().map(|n| n.as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), 47);
    let latex = run(&["analyze", "builtin:scara", "--latex"]).stdout;
    assert!(latex.contains("\\begin{tabular}{lcccc}") && latex.contains("$I_{zz}$ & "));
    let folder = Folder::new();
    let out = folder.file("result.json", String::new());
    let written = run(&["analyze", "builtin:scara", "--json", "--out", &out]);
    assert_eq!((written.status, written.stdout.as_str()), (0, ""));
    let value: Value = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
    assert_eq!(value["rank"], 8);
}

#[test]
fn base_parameters_can_be_chosen_and_transfers_are_explained() {
    let names = |args: &[&str]| -> Vec<Value> {
        let value = run(&[&["analyze", "builtin:puma560", "--json"], args].concat()).json();
        value["base_parameters"].as_array().unwrap().iter().map(|b| b["name"].clone()).collect()
    };
    let (plain, chosen) = (names(&[]), names(&["--choose", "link4.m"]));
    assert!(!plain.contains(&json!("link4.m")) && chosen.contains(&json!("link4.m")));
    assert_eq!(plain.len(), chosen.len());
    let words = run(&["analyze", "builtin:puma560", "--explain"]).stdout;
    assert!(words.contains("mass on the axis of joint3"), "{words}");
}

#[test]
fn wrong_calls_are_refused_in_one_line() {
    assert!(refused(&["analyze", "builtin:puma"]).contains("puma560"));
    assert!(refused(&["analyze", "builtin:puma560", "--joints", "elbow"]).contains("elbow"));
    assert!(refused(&["analyze", "builtin:puma560", "--choose", "link9.m"]).contains("link9.m"));
    assert!(refused(&["analyze", "builtin:puma560", "--snap", "3"]).contains("snapping tolerance"));
    assert!(refused(&["analyze", "builtin:puma560", "--ballistic"]).contains("floating base"));
    assert!(refused(&["analyze", "builtin:puma560", "--compare", "absent.urdf"]).contains("absent.urdf"));
}

/// The null space is in the JSON even if it is empty; variants of a model have their own names.
#[test]
fn an_empty_null_space_is_listed() {
    let folder = Folder::new();
    let link = r#"<robot name="one"><link name="body"><inertial><mass value="2"/>
        <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link></robot>"#;
    let model = folder.file("one.urdf", link);
    let found = run(&["analyze", &model, "--base", "floating", "--json"]).json();
    assert_eq!((found["nullity"].clone(), found["null_space"].clone()), (json!(0), json!([])));
    for name in ["puma560", "puma560-rotors", "scara-rotors"] {
        let found = run(&["analyze", &format!("builtin:{name}"), "--json"]).json();
        assert_eq!(found["model"]["name"], name);
    }
    // Without joints and wheels no motion can be designed.
    let said = refused(&["design", &model, "--base", "floating", "--measured", "momentum"]);
    assert!(
        said.ends_with("the robot has no joint and no reaction wheel that a trajectory could move"),
        "{said}"
    );
    let said = refused(&["design", &model]);
    assert!(said.ends_with("the robot has no joint that a trajectory could move"), "{said}");
}
