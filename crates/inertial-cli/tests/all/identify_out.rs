//! Tests of the model that `identify --out` writes.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use crate::common::{Folder, run};

/// Hinge with friction, without gravity.
const HINGE: &str = r#"<robot name="hinge">
  <link name="base"/>
  <link name="arm"><inertial><origin xyz="0.5 0 0"/><mass value="2"/><inertia ixx="0.05" ixy="0" ixz="0" iyy="0.1"
    iyz="0" izz="0.1"/></inertial></link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <dynamics damping="0.5" friction="1"/></joint>
</robot>"#;

#[test]
fn a_model_that_predicts_worse_is_written_only_by_force() {
    let folder = Folder::new();
    let model = folder.file("hinge.urdf", HINGE);
    let mut text = String::from("t,q.hinge,dq.hinge,ddq.hinge,tau.hinge\n");
    for k in 0..2000 {
        let t = 0.01 * f64::from(k);
        let q = (2.0 * t).sin() + 0.3 * (5.0 * t).sin();
        let v = 2.0 * (2.0 * t).cos() + 1.5 * (5.0 * t).cos();
        let a = -4.0 * (2.0 * t).sin() - 7.5 * (5.0 * t).sin();
        // Inertia of the arm about the hinge: 0.1 + 2·0.5² = 0.6 kg m².
        let tau = 0.6 * a + 0.5 * v + v.signum();
        let _ = writeln!(text, "{t},{q},{v},{a},{tau}");
    }
    let log = folder.file("log.csv", text);
    let out = folder.path("identified.urdf");
    let identify = |options: &[&str]| {
        let call =
            ["identify", &model, &log, "--gravity=0,0,0", "--cutoff", "off", "--out", out.to_str().unwrap()];
        run(&[&call[..], options].concat())
    };
    let without = ["--friction", "none", "--offset=no", "--rotors", "none"];
    let withheld = identify(&without);
    assert_eq!(withheld.status, 1, "{}", withheld.stderr);
    assert!(
        withheld.stderr.contains("was not written") && withheld.stderr.contains("--force"),
        "{}",
        withheld.stderr
    );
    assert!(!out.exists() && withheld.stdout.contains("verdict: "), "{}", withheld.stdout);
    assert_eq!(identify(&[&without[..], &["--force"]].concat()).status, 0);
    let by_force = std::fs::read_to_string(&out).unwrap();
    // Inertias were fitted without the friction of the model, which must therefore not be kept.
    assert!(!by_force.contains("damping=\"0.5\""), "{by_force}");
    let found = identify(&[]);
    assert_eq!(found.status, 0, "{}", found.stderr);
    let call = ["validate", out.to_str().unwrap(), &log, "--gravity=0,0,0", "--cutoff", "off", "--json"];
    let residual = run(&call).json()["relative_rms"].as_f64().unwrap();
    // Data without noise: the residual is the effect of the prior.
    assert!(residual < 1e-3, "{residual}");
}

/// Returns a log of the hinge with a rotor of 0.2 kg m², the arm's 0.6 kg m², and friction.
fn hinge_log() -> String {
    let mut text = String::from("t,q.hinge,dq.hinge,ddq.hinge,tau.hinge\n");
    for k in 0..2000 {
        let t = 0.01 * f64::from(k);
        let q = (2.0 * t).sin() + 0.3 * (5.0 * t).sin();
        let v = 2.0 * (2.0 * t).cos() + 1.5 * (5.0 * t).cos();
        let a = -4.0 * (2.0 * t).sin() - 7.5 * (5.0 * t).sin();
        // The gravity moment of 2 kg at 0.5 m separates the mass of the arm from its inertia.
        let tau = 0.8 * a + 0.5 * v + v.signum() - 9.81 * q.cos();
        let _ = writeln!(text, "{t},{q},{v},{a},{tau}");
    }
    text
}

#[test]
fn mechanism_files_are_written_from_other_formats() {
    let folder = Folder::new();
    let model = folder.file("hinge.urdf", HINGE);
    let log = folder.file("log.csv", hinge_log());
    for name in ["out.toml", "out.json"] {
        let out = folder.path(name);
        let out = out.to_str().unwrap();
        let found = run(&["identify", &model, &log, "--cutoff", "off", "--out", out]);
        assert_eq!(found.status, 0, "{}", found.stderr);
        let text = std::fs::read_to_string(out).unwrap();
        assert!(
            text.contains("inertial/mechanism/1") && text.starts_with('{') == name.ends_with("json"),
            "{text}"
        );
        let residual = run(&["validate", out, &log, "--cutoff", "off", "--json"]).json();
        assert!(residual["relative_rms"].as_f64().unwrap() < 1e-3, "{residual}");
        // Values of both files, written in their own format.
        let again = folder.path("again.toml");
        let call = ["identify", out, &log, "--cutoff", "off", "--out", again.to_str().unwrap()];
        assert_eq!(run(&call).status, 0);
    }
    let refused =
        run(&["identify", "builtin:planar-2r", &log, "--out", folder.path("x.urdf").to_str().unwrap()]);
    assert_eq!(refused.status, 2);
    assert!(
        refused.stderr.contains("is not URDF") && refused.stderr.lines().count() == 1,
        "{}",
        refused.stderr
    );
}

/// A URDF cannot represent offsets and rotor inertias; without them validation would give other residuals than the fit.
#[test]
fn a_written_model_with_its_joint_file_reproduces_the_fit() {
    let folder = Folder::new();
    let model = folder.file("hinge.urdf", HINGE);
    let with_offset = |line: &str| match line.rsplit_once(',').map(|(rest, tau)| (rest, tau.parse::<f64>())) {
        Some((rest, Ok(tau))) => format!("{rest},{}\n", tau + 0.7),
        _ => format!("{line}\n"),
    };
    let log = folder.file("log.csv", hinge_log().lines().map(with_offset).collect::<String>());
    let (out, joints) = (folder.path("out.urdf"), folder.path("out.joints.json"));
    let out = out.to_str().unwrap();
    let identify = || run(&["identify", &model, &log, "--cutoff", "off", "--out", out]);
    let found = identify();
    assert_eq!(found.status, 0, "{}", found.stderr);
    assert!(found.stderr.contains(&format!("wrote {out}, {}", joints.display())), "{}", found.stderr);
    let validate = || run(&["validate", out, &log, "--cutoff", "off", "--json"]);
    let residual = validate();
    assert!(residual.stderr.contains("joint terms are read from"), "{}", residual.stderr);
    assert!(residual.json()["relative_rms"].as_f64().unwrap() < 1e-3, "{}", residual.stdout);
    // Exported controllers contain the offset.
    let export = || {
        let done = run(&["export", out, "--to", "c", "--out", folder.path("arm.c").to_str().unwrap()]);
        assert_eq!(done.status, 0, "{}", done.stderr);
        std::fs::read_to_string(folder.path("arm.c")).unwrap()
    };
    let with_joint_file = export();
    // Without a matching joint file the offset is missing.
    let text = std::fs::read_to_string(out).unwrap();
    std::fs::write(out, text.replace("</robot>", "<!-- edited --></robot>")).unwrap();
    let other = validate();
    assert!(other.stderr.contains("another version of the model"), "{}", other.stderr);
    assert!(other.json()["relative_rms"].as_f64().unwrap() > 0.05, "{}", other.stdout);
    assert_ne!(export(), with_joint_file);
    // A joint file is replaced, a file of the user is not.
    assert_eq!(identify().status, 0);
    std::fs::write(&joints, "{\"mine\": 1}").unwrap();
    let refused = identify();
    assert_eq!((refused.status, refused.stderr.lines().count()), (2, 1), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(&joints).unwrap(), "{\"mine\": 1}");
}
