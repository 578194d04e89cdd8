//! New inertials in mechanism files leave every other byte alone.

#![allow(clippy::unwrap_used, clippy::default_trait_access)]

use inertial::mechanism::read::file::read;
use inertial::mechanism::write::file::replace_inertials;
use inertial::spatial::Inertia;
use nalgebra::{Matrix3, vector};

fn ball() -> Inertia<f64> {
    Inertia::from_com(2.0, vector![0.5, 0.25, -0.125], Matrix3::from_diagonal(&vector![0.125, 0.5, 0.25]))
}

/// Replaces `names` in `text`; gives the new text after checking that the reader finds the new inertias.
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
