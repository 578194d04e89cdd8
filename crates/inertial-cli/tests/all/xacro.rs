//! Tests of xacro files as models.

#![allow(clippy::unwrap_used)]

use crate::common::{Folder, refused, run};

const ROD: &str = "<robot xmlns:xacro='http://www.ros.org/wiki/xacro'><xacro:macro name='rod' params='name parent mass'>\
    <link name='${name}'><inertial><origin xyz='0 0 0.1'/><mass value='${mass}'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' \
    izz='1'/></inertial></link><joint name='to_${name}' type='continuous'><parent link='${parent}'/><child link='${name}'/></joint>\
    </xacro:macro></robot>";

const ARM: &str = "<robot name='arm' xmlns:xacro='http://www.ros.org/wiki/xacro'>\n\
    <xacro:include filename='$(find arm_description)/urdf/rod.xacro'/>\n\
    <xacro:arg name='prefix' default='left_'/><link name='base'/>\n\
    <xacro:rod name='$(arg prefix)upper' parent='base' mass='${1.5 * 2}'/>\n\
    </robot>";

/// Creates a package with a model that includes a file of its own package by `$(find)`.
fn package(folder: &Folder) -> String {
    let own = folder.path("checkout/urdf");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(folder.path("checkout/package.xml"), "<package><name>arm_description</name></package>")
        .unwrap();
    folder.file("checkout/urdf/rod.xacro", ROD);
    folder.file("checkout/urdf/arm.urdf.xacro", ARM)
}

#[test]
fn a_model_is_expanded_and_written_as_urdf() {
    let folder = Folder::new();
    let arm = package(&folder);
    let out = folder.path("arm.urdf").display().to_string();
    let checked = run(&["check", &arm, "--xacro-arg", "prefix:=right_", "--fix", "--out", &out]);
    assert_eq!(checked.status, 0, "{}", checked.stderr);
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.contains("<link name=\"right_upper\">") && text.contains("<mass value=\"3.0\"/>"), "{text}");
    assert!(!text.contains("xacro"), "{text}");
}

#[test]
fn names_of_description_packages_give_advice() {
    let message = refused(&["check", "panda_description"]);
    assert!(message.contains("from robot_descriptions.panda_description import URDF_PATH"), "{message}");
}

#[test]
fn wrong_uses_end_in_one_line() {
    let folder = Folder::new();
    let arm = package(&folder);
    let out = folder.path("arm.xacro").display().to_string();
    let cases: [(&[&str], &str); 3] = [
        (&["check", &arm, "--xacro-arg", "prefix"], "NAME:=VALUE"),
        (&["check", "builtin:planar-2r", "--xacro-arg", "a:=1"], "not a xacro file"),
        (&["check", &arm, "--fix", "--out", &out], ".urdf"),
    ];
    for (arguments, expected) in &cases {
        let message = refused(arguments);
        assert!(message.contains(expected), "{message}");
    }
    // Another package than that of the file is searched for and not found.
    let other = folder.file("checkout/urdf/other.xacro", ARM.replace("arm_description", "leg_description"));
    let message = refused(&["check", &other]);
    assert!(
        message.contains("line 2")
            && message.contains("leg_description")
            && message.contains("ROS_PACKAGE_PATH"),
        "{message}"
    );
    // Errors in the expanded text state that their lines are those of the expansion.
    let bad = folder.file("checkout/urdf/bad.xacro", ARM.replace("mass='${1.5 * 2}'", "mass='heavy'"));
    let message = refused(&["check", &bad]);
    assert!(message.contains("in the expanded text: line"), "{message}");
}

/// A file `*.xacro`, or one with `--xacro-arg`, was not expanded if it contains only `$(…)`.
#[test]
fn files_with_commands_only_are_expanded() {
    let folder = Folder::new();
    let text = |mass: &str| {
        format!(
            "<robot name='r'><link name='a'/><link name='b'><inertial><mass value='{mass}'/><inertia ixx='1' ixy='0' ixz='0' \
             iyy='1' iyz='0' izz='1'/></inertial></link><joint name='j' type='continuous'><parent link='a'/><child link='b'/>\
             </joint></robot>"
        )
    };
    let mass =
        |call: &[&str]| run(&[&["check", "--json"], call].concat()).json()["bodies"][0]["mass"].clone();
    let optional = folder.file("optional.urdf.xacro", text("$(optenv INERTIAL_NO_SUCH_VARIABLE 2)"));
    assert_eq!(mass(&[&optional]), 2.0);
    let argument = folder.file("argument.urdf", text("$(arg m)"));
    assert_eq!(mass(&[&argument, "--xacro-arg", "m:=3"]), 3.0);
}
