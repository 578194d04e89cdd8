//! Writing new inertias into mechanism files keeps every other byte.

#![allow(clippy::unwrap_used, clippy::default_trait_access)]

use inertial::mechanism::BuildOptions;
use inertial::mechanism::read::file::read;
use inertial::mechanism::write::file::{NewDynamics, replace_inertials, write_bodies};
use inertial::spatial::Inertia;
use nalgebra::{Matrix3, vector};

fn ball() -> Inertia<f64> {
    Inertia::from_com(2.0, vector![0.5, 0.25, -0.125], Matrix3::from_diagonal(&vector![0.125, 0.5, 0.25]))
}

/// Replaces the inertias of `names` in `text`, checks that the reader finds the new ones, and returns the new text.
fn replace(text: &str, names: &[&str]) -> String {
    let new: Vec<_> = names.iter().map(|n| (*n, ball())).collect();
    let out = replace_inertials(text, &new).unwrap();
    let (before, after) = (read(text).unwrap(), read(&out).unwrap());
    let rotors = |b: &inertial::mechanism::MechanismBuilder| {
        b.rotor_names().into_iter().zip(b.rotors.iter().map(|r| Some(r.inertia))).collect::<Vec<_>>()
    };
    let all = |b: &inertial::mechanism::MechanismBuilder| {
        b.links.iter().map(|l| (l.name.clone(), l.inertia)).chain(rotors(b)).collect::<Vec<_>>()
    };
    for ((name, old), (_, new)) in all(&before).into_iter().zip(all(&after)) {
        if names.contains(&name.as_str()) {
            let difference = new.unwrap().parameters() - ball().parameters();
            assert!(difference.amax() < 1e-15, "{name}");
        } else {
            assert_eq!(old, new, "{name}");
        }
    }
    out
}

const JSON: &str = r#"{"schema": "inertial/mechanism/1",   "name": "three",
  "bodies": [
    {"name": "a", "inertial": {"inertia": {"izz": 3, "iyy": 2e0, "ixx": 1, "ixy": 0.0, "ixz": 0, "iyz": 0}, "mass": 1.50},
     "parent": "ground", "joint": {"name": "ja", "type": "revolute"}},
    {"name": "b", "parent": "a", "joint": {"name": "jb", "type": "revolute"}}],
  "rotors": [{"joint": "ja", "carrier": "ground", "ratio": 5},
             {"joint": "ja", "carrier": "ground", "ratio": 7, "inertial": {"mass": 1, "com": [0, 0, 0],
              "inertia": {"ixx": 1, "ixy": 0, "ixz": 0, "iyy": 1, "iyz": 0, "izz": 1}}}]}"#;

#[test]
fn json_changes_only_the_numbers() {
    let out = replace(JSON, &["a"]);
    let expected = JSON
        .replace("\"izz\": 3, \"iyy\": 2e0, \"ixx\": 1,", "\"izz\": 0.25, \"iyy\": 0.5, \"ixx\": 0.125,")
        .replace("\"mass\": 1.50}", "\"mass\": 2.0, \"com\": [0.5, 0.25, -0.125]}")
        .replace("\"ixy\": 0.0, \"ixz\": 0, \"iyz\": 0},", "\"ixy\": 0.0, \"ixz\": 0.0, \"iyz\": 0.0},");
    assert_eq!(out, expected);
}

#[test]
fn entries_without_inertial_get_one() {
    replace(JSON, &["b"]);
    replace(JSON, &["a", "b", "ja.rotor", "ja.rotor2"]);
    assert_eq!(replace(JSON, &[]), JSON);
    let error = replace_inertials(JSON, &[("c", ball())]).unwrap_err();
    assert_eq!(error.to_string(), "the model has no link and no rotor \"c\"");
}

#[test]
fn toml_keeps_comments_and_every_style_of_table() {
    let text = "# robot\nschema = \"inertial/mechanism/1\" # one\n\n[[bodies]] # first\nname = \"a\"\nparent = \"ground\"\n\
                joint = { name = \"ja\", type = \"revolute\" }\n[bodies.inertial]\nmass = 1 # kg\n[bodies.inertial.inertia]\n\
                ixx = 1\nixy = 0\nixz = 0\niyy = 1\niyz = 0\nizz = 1 # last\n\n[[bodies]]\nname = \"b\"\nparent = \"a\"\n\
                joint = { name = \"jb\", type = \"revolute\" }\n\
                inertial = { mass = 1, inertia = { ixx = 1, ixy = 0, ixz = 0, iyy = 1, iyz = 0, izz = 1 } }\n\n\
                [[bodies]] # third\nname = \"c\"\nparent = \"b\"\njoint = { name = \"jc\", type = \"revolute\" }\n";
    for names in [&["a"][..], &["b"], &["c"], &["a", "b", "c"]] {
        let out = replace(text, names);
        for comment in ["# robot", "# one", "# first", " # kg", "# last", "# third"] {
            assert!(out.contains(comment), "{comment} lost in\n{out}");
        }
    }
}

/// Bodies of several parts fixed together and rotors that load their carriers read back with the requested values.
#[test]
fn bodies_and_rotors_read_back() {
    let inertial = |mass: f64| {
        format!(
            "inertial = {{ mass = {mass}, com = [0.1, 0, 0.02], inertia = {{ ixx = 0.1, ixy = 0, ixz = 0, iyy = 0.2, iyz = 0.01, izz = 0.25 }} }}"
        )
    };
    let text = format!(
        "schema = \"inertial/mechanism/1\"\n\
         [[bodies]]\nname = \"a\"\nparent = \"ground\"\njoint = {{ name = \"ja\", type = \"revolute\" }}\n{}\n\
         [[bodies]]\nname = \"b\"\nparent = \"a\"\n\
         joint = {{ name = \"jb\", type = \"revolute\", axis = [0, 1, 0], origin = {{ xyz = [0.3, 0, 0] }}, dynamics = {{ damping = 1 }} }}\n{}\n\
         [[bodies]]\nname = \"plate\"\nparent = \"b\"\njoint = {{ name = \"weld\", type = \"fixed\", origin = {{ xyz = [0, 0, 0.2] }} }}\n{}\n\
         [[rotors]]\njoint = \"jb\"\ncarrier = \"a\"\nratio = 50\naxis = [0, 1, 0]\nsymmetric = true\n\
         inertial = {{ mass = 0.4, inertia = {{ ixx = 0.001, ixy = 0, ixz = 0, iyy = 0.002, iyz = 0, izz = 0.001 }} }}\n",
        inertial(3.0),
        inertial(2.0),
        inertial(0.5)
    );
    let build = |text: &str| read(text).unwrap().build(&BuildOptions::default()).unwrap();
    let before = build(&text);
    for factor in [1.3, 0.2] {
        let wanted: Vec<_> = before
            .bodies()
            .iter()
            .map(|b| (b.name.as_str(), Inertia::from_parameters(&(b.inertia.parameters() * factor))))
            .collect();
        let friction = NewDynamics { damping: Some(0.3), friction: Some(0.7), armature: Some(0.05) };
        let out =
            write_bodies(&text, &BuildOptions::default(), &wanted, &[("jb", friction), ("ja", friction)]);
        let after = build(&out.unwrap().text);
        for (body, (name, wanted)) in after.bodies().iter().zip(&wanted) {
            assert_eq!(body.name, *name);
            let difference = (body.inertia.parameters() - wanted.parameters()).amax();
            assert!(difference < 1e-14, "{name}: {difference}");
        }
        assert_eq!(after.armature(), [0.05, 0.05]);
        for joint in after.joints() {
            assert_eq!((joint.dynamics.damping, joint.dynamics.friction), (0.3, 0.7));
        }
    }
    assert!(write_bodies(&text, &BuildOptions::default(), &[], &[("weld", NewDynamics::default())]).is_ok());
    let unknown = write_bodies(&text, &BuildOptions::default(), &[], &[("jc", NewDynamics::default())]);
    assert_eq!(unknown.unwrap_err().to_string(), "the model has no joint \"jc\"");
}
