//! Writing new values into MJCF keeps every other byte.

#![allow(clippy::unwrap_used)]

use inertial::mechanism::BuildOptions;
use inertial::mechanism::read::{mjcf, no_includes};
use inertial::mechanism::write::file::NewDynamics;
use inertial::mechanism::write::mjcf::{replace_values, write_bodies};
use inertial::spatial::Inertia;
use nalgebra::{Matrix3, vector};

fn brick() -> Inertia<f64> {
    Inertia::from_com(2.5, vector![0.5, 0.0, -0.25], Matrix3::from_diagonal(&vector![0.25, 0.5, 0.375]))
}

const TEXT: &str = "<?xml version='1.0'?>\n<!-- kept -->\n<mujoco model='m'>\n  <default><joint damping='3'/></default>\n  <worldbody>\n    \
    <body name='a'  pos='0 0 1'>\n      <joint name='j' type='hinge'/>\n      <geom size='0.1'/>\n      \
    <body name='b'><inertial  mass='1' quat='0 1 0 0' pos='0 0 0' diaginertia='1 2 3'/><joint name='k'/></body>\n      \
    <body name='c'/>\n    </body>\n  </worldbody>\n</mujoco>\n";

#[test]
fn only_the_values_change() {
    let dynamics = NewDynamics { damping: Some(0.5), friction: Some(1e-7), armature: None };
    let out = replace_values(TEXT, &[("a", brick()), ("b", brick())], &[("k", dynamics)]).unwrap();
    let tensor = "diaginertia=\"0.25 0.5 0.375\"";
    let expected = TEXT
        .replace(
            "pos='0 0 1'>\n",
            &format!("pos='0 0 1'>\n      <inertial pos=\"0.5 0.0 -0.25\" mass=\"2.5\" {tensor}/>\n"),
        )
        .replace(
            "mass='1' quat='0 1 0 0' pos='0 0 0' diaginertia='1 2 3'",
            &format!("mass='2.5' pos='0.5 0.0 -0.25' {tensor}"),
        )
        .replace("<joint name='k'", "<joint damping=\"0.5\" frictionloss=\"1e-7\" name='k'");
    assert_eq!(out, expected);
    let read = mjcf::read(&out, &no_includes).unwrap();
    assert_eq!(read.links.iter().find(|l| l.name == "b").unwrap().inertia, Some(brick()));
}

#[test]
fn bodies_without_anything_inside_get_tags() {
    let out = replace_values(TEXT, &[("c", brick())], &[]).unwrap();
    assert!(out.contains("<body name='c'>\n        <inertial "), "{out}");
    assert!(out.contains("/>\n      </body>\n    </body>"), "{out}");
}

#[test]
fn bodies_fixed_together_keep_their_shares() {
    // The body c is fixed to a and has no mass: a takes the whole inertia.
    let written = write_bodies(TEXT, &BuildOptions::default(), &[("a", brick())], &[]).unwrap();
    let read = mjcf::read(&written.text, &no_includes).unwrap();
    assert_eq!(read.links.iter().find(|l| l.name == "c").unwrap().inertia, None);
    let two = TEXT.replace("<body name='c'/>", "<body name='c'><geom size='0.1' pos='1 0 0'/></body>");
    let written = write_bodies(&two, &BuildOptions::default(), &[("a", brick())], &[]).unwrap();
    let read = mjcf::read(&written.text, &no_includes).unwrap();
    let mass = |name: &str| read.links.iter().find(|l| l.name == name).unwrap().inertia.unwrap().mass;
    assert!(
        (mass("a") - 1.25).abs() < 1e-12 && (mass("c") - 1.25).abs() < 1e-12,
        "{} {}",
        mass("a"),
        mass("c")
    );
}

#[test]
fn texts_that_alter_written_values_are_refused() {
    let refused = |text: &str| replace_values(text, &[("a", brick())], &[]).unwrap_err().to_string();
    for setting in ["inertiafromgeom='true'", "settotalmass='9'", "boundmass='5'"] {
        let text = TEXT.replace("<default>", &format!("<compiler {setting}/><default>"));
        let message = refused(&text);
        assert!(message.contains("settings of its <compiler>"), "{message}");
    }
    let message = refused(&TEXT.replace("<default>", "<include file='x.xml'/><default>"));
    assert!(message.contains("includes other files"), "{message}");
    let message = replace_values(TEXT, &[("x", brick())], &[]).unwrap_err().to_string();
    assert!(message.contains("no link and no rotor \"x\""), "{message}");
    let message = replace_values(TEXT, &[], &[("x", NewDynamics::default())]).unwrap_err().to_string();
    assert!(message.contains("no joint \"x\""), "{message}");
    let nan = Inertia { mass: f64::NAN, ..brick() };
    let message = replace_values(TEXT, &[("a", nan)], &[]).unwrap_err().to_string();
    assert!(message.contains("not finite"), "{message}");
}

/// MuJoCo reads such texts too (seen with MuJoCo 4.0).
#[test]
fn faults_that_mujoco_tolerates_are_read_with_warnings() {
    let text = format!("\n\n{}", TEXT.replace("<!-- kept -->", "<!DOCTYPE mujoco><!-- a -- b -->"))
        .replace("model='m'", "model='R&D'")
        .replace("name='b'", "name='b&c'");
    let model = mjcf::read(&text, &no_includes).unwrap();
    let expected = [
        "line 5: & is not escaped: read as &amp;",
        "line 11: & is not escaped: read as &amp;",
        "line 3: blank lines before <?xml: ignored",
        "line 4: a document type: ignored",
        "line 4: a comment has -- inside: ignored",
    ];
    assert_eq!(model.warnings, expected);
    assert_eq!((model.name.as_str(), model.links.last().unwrap().name.as_str()), ("R&D", "c"));
    // Only the values change, except that each & is escaped.
    let tensor = "diaginertia=\"0.25 0.5 0.375\"";
    let written = replace_values(&text, &[("b&c", brick())], &[]).unwrap();
    let changed = text.replace(
        "mass='1' quat='0 1 0 0' pos='0 0 0' diaginertia='1 2 3'",
        &format!("mass='2.5' pos='0.5 0.0 -0.25' {tensor}"),
    );
    assert_eq!(written, changed.replace('&', "&amp;"));
    // Warnings about included files name the file.
    let main = "<mujoco><include file='a.xml'/></mujoco>";
    let part = |_: &str| Ok(TEXT.replace("<!-- kept -->", "<!-- a -- b -->"));
    let included = mjcf::read(main, &part).unwrap();
    assert_eq!(included.warnings, ["file \"a.xml\": line 2: a comment has -- inside: ignored"]);
    let entity = TEXT
        .replace("<!-- kept -->", "<!DOCTYPE m [<!ENTITY x '1'>]>")
        .replace("pos='0 0 1'", "pos='0 0 &x;'");
    assert!(mjcf::read(&entity, &no_includes).unwrap_err().to_string().contains("entities"));
}
