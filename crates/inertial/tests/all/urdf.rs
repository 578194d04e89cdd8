//! URDF and URDF+ readers: accepted input, and errors in one line.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use crate::common::data::shared;

use inertial::Error;
use inertial::mechanism::read::{self, urdf};
use inertial::mechanism::{Base, BodyKind, BuildOptions, JointType, Mechanism};
use inertial::spatial::{Inertia, Pose};
use nalgebra::{Matrix3, Vector3, vector};

pub(crate) fn build(text: &str) -> Mechanism {
    read::model(text, &read::no_includes).unwrap().build(&BuildOptions::default()).unwrap()
}

/// Returns the error of an invalid text, which must be one line.
pub(crate) fn refusal(text: &str) -> String {
    let outcome =
        read::model(text, &read::no_includes).and_then(|model| model.build(&BuildOptions::default()));
    let message = match outcome {
        Ok(_) => panic!("this should be refused: {text}"),
        Err(error) => error.to_string(),
    };
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

/// Creates a robot with two links and the given contents of the joint between them.
pub(crate) fn hinged(attributes: &str, inside: &str) -> String {
    format!(
        "<robot name='r'>\n<link name='a'/>\n<link name='b'/>\n<joint name='j' {attributes}>\n\
         <parent link='a'/><child link='b'/>{inside}</joint>\n</robot>"
    )
}

/// Returns a text with version 1.1 of URDF.
pub(crate) fn version_1_1(text: &str) -> String {
    text.replacen("<robot ", "<robot version='1.1' ", 1)
}

/// Creates a robot with the given `<inertial>` of one link.
pub(crate) fn with_inertial(inside: &str) -> String {
    format!(
        "<robot name='r'>\n<link name='a'/>\n<link name='b'>\n<inertial>{inside}</inertial></link>\n\
         <joint name='j' type='continuous'><parent link='a'/><child link='b'/></joint></robot>"
    )
}

#[test]
fn every_joint_type_of_urdf() {
    let cases = [
        ("revolute", Some(JointType::Revolute { axis: Vector3::y() })),
        ("continuous", Some(JointType::Revolute { axis: Vector3::y() })),
        ("prismatic", Some(JointType::Prismatic { axis: Vector3::y() })),
        ("planar", Some(JointType::Planar { normal: Vector3::y() })),
        ("floating", Some(JointType::Floating)),
        ("fixed", None),
    ];
    for (name, expected) in cases {
        let robot = build(&hinged(&format!("type='{name}'"), "<axis xyz='0 2 0'/>"));
        assert_eq!(robot.bodies().first().map(|b| b.joint_type), expected, "{name}");
    }
    let robot = build(&hinged("type='revolute'", ""));
    assert_eq!(robot.bodies()[0].joint_type, JointType::Revolute { axis: Vector3::x() });
    assert_eq!(robot.bodies()[0].placement, Pose::identity());
}

#[test]
fn a_floating_joint_at_the_root_is_the_floating_base() {
    assert_eq!(build(&hinged("type='floating'", "")).base(), Base::Floating);
    let hinge = hinged("type='continuous'", "");
    assert_eq!(build(&hinge).base(), Base::Fixed);
    let floating = BuildOptions::default().with(|o| o.base = Some(Base::Floating));
    let robot = urdf::read(&hinge).unwrap().build(&floating).unwrap();
    assert_eq!((robot.base(), robot.nv(), robot.bodies()[0].name.as_str()), (Base::Floating, 7, "a"));
}

#[test]
fn limits_and_dynamics() {
    let inside = "<limit lower='-1' upper=' 2.5 ' velocity='+3' effort='4e1'/>\
                  <dynamics damping='.5' friction='1.'/>";
    let joint = build(&hinged("type='revolute'", inside)).joints()[0].clone();
    let l = joint.limits;
    assert_eq!([l.lower, l.upper, l.velocity, l.effort], [-1.0, 2.5, 3.0, 40.0]);
    assert_eq!([joint.dynamics.damping, joint.dynamics.friction], [0.5, 1.0]);
    // Continuous joints have no position limits, even if the file has some.
    let l = build(&hinged("type='continuous'", inside)).joints()[0].limits;
    assert_eq!([l.lower, l.upper, l.effort], [f64::NEG_INFINITY, f64::INFINITY, 40.0]);
    // The default of URDF is zero if one limit is missing; a joint without both limits turns freely.
    let l = build(&hinged("type='revolute'", "<limit upper='2'/>")).joints()[0].limits;
    assert_eq!([l.lower, l.upper], [0.0, 2.0]);
    let l = build(&hinged("type='revolute'", "<limit velocity='2'/>")).joints()[0].limits;
    assert_eq!([l.lower, l.upper, l.velocity], [f64::NEG_INFINITY, f64::INFINITY, 2.0]);
}

#[test]
fn mimic_joints_follow() {
    let pair = |mimic: &str, kind: &str| {
        format!(
            "<robot name='r'><link name='a'/><link name='b'/><link name='c'/>\
             <joint name='j' type='continuous'><parent link='a'/><child link='b'/></joint>\
             <joint name='k' type='{kind}'><parent link='b'/><child link='c'/>{mimic}</joint></robot>"
        )
    };
    let robot = build(&pair("<mimic joint='j' multiplier='-2' offset='0.5'/>", "prismatic"));
    let drive = robot.bodies()[1].drive;
    assert_eq!((robot.nv(), drive.v, drive.ratio, drive.offset), (1, 0, -2.0, 0.5));
    assert_eq!(build(&pair("<mimic joint='j'/>", "revolute")).bodies()[1].drive.ratio, 1.0);
    // Both occur in real files.
    assert_eq!(build(&pair("<mimic joint='j'/>", "fixed")).nv(), 1);
    let robot = build(&pair("<mimic joint='nobody'/>", "revolute"));
    assert_eq!((robot.nv(), robot.warnings().len()), (2, 1));
}

#[test]
fn inertia_comes_into_the_link_frame() {
    let text = with_inertial(
        "<origin xyz='1 2 3' rpy='0.3 -0.2 0.9'/><mass value='2'/>\
         <inertia ixx='3' ixy='0.1' ixz='0.2' iyy='4' iyz='0.3' izz='5'/>",
    );
    let tensor = Matrix3::new(3.0, 0.1, 0.2, 0.1, 4.0, 0.3, 0.2, 0.3, 5.0);
    let expected = Inertia::from_com(2.0, Vector3::zeros(), tensor)
        .transformed(&Pose::from_xyz_rpy([1.0, 2.0, 3.0], [0.3, -0.2, 0.9]));
    let found = build(&text).bodies()[0].inertia;
    // Two computations of a sum of a few terms of size 10 differ by rounding errors.
    assert!((found.parameters() - expected.parameters()).amax() < 1e-13);
    assert_eq!(build(&hinged("type='revolute'", "")).bodies()[0].inertia, Inertia::zero());
}

#[test]
fn elements_without_effect_on_motion_are_ignored() {
    let text = "\u{feff}<?xml version='1.0'?>\n<!-- <joint> --><robot name='r' xmlns:ext='http://ext'>
      <material name='red'/><gazebo><link name='x'/></gazebo><ext:link name='y'/>
      <transmission name='t'><joint name='j'><a/></joint></transmission>
      <link name='a'><visual><geometry><mesh filename='package://missing.dae'/></geometry></visual>
        <collision/><anything at='all'>text <![CDATA[<joint>]]></anything></link>
      <link name='b'/><joint name='j' type='fixed'><axis xyz='0 0 0'/><parent link='a'/><child link='b'/>
        <safety_controller k_velocity='x'/></joint></robot>";
    let robot = build(text);
    assert_eq!((robot.links().len(), robot.bodies().len()), (2, 0));
}

#[test]
fn loops_of_urdf_plus() {
    let robot = |body: &str| {
        format!(
            "<robot name='r'><link name='a'/><link name='b'/><link name='c'/>
             <joint name='j' type='continuous' independent='true'><parent link='a'/><child link='b'/></joint>
             <joint name='k' type='continuous' independent='0'><parent link='a'/><child link='c'/></joint>
             <loop name='l' {body}</loop></robot>"
        )
    };
    let ends = "<predecessor link='b'><origin xyz='1 0 0'/></predecessor><successor link='c'/>";
    let found = build(&robot(&format!("type='universal'>{ends}<axis xyz='0 0 1'/><axis xyz='0 1 0'/>")));
    let l = &found.loops()[0];
    assert_eq!(l.joint_type, JointType::Universal { axes: [Vector3::z(), Vector3::y()] });
    assert_eq!(l.predecessor.pose.translation, vector![1.0, 0.0, 0.0]);
    assert_eq!(found.independent_marks(), [Some(true), Some(false)]);
    for kind in ["revolute", "prismatic", "fixed", "planar", "spherical", "cylindrical"] {
        assert_eq!(build(&robot(&format!("type='{kind}'>{ends}"))).loops()[0].joint_type.name(), kind);
    }
    let screw = build(&robot(&format!("type='helical' pitch='0.1'>{ends}")));
    assert_eq!(screw.loops()[0].joint_type, JointType::Helical { axis: Vector3::x(), pitch: 0.1 });
    let message = refusal(&robot(&format!("type='universal'>{ends}<axis xyz='0 0 1'/>")));
    assert!(message.contains("two <axis>"), "{message}");
    let message = refusal(&robot(&format!("type='odd'>{ends}")));
    assert!(message.contains("line 4: <loop name=\"l\">: unknown joint type \"odd\""), "{message}");
    let message = refusal(&robot("type='fixed'><predecessor link='b'/>"));
    assert!(message.contains("it needs a <successor>"), "{message}");
}

/// Creates a robot with a driven link and a second one on the same carrier that is coupled to it.
fn coupled(second: &str, after: &str) -> String {
    format!(
        "<robot name='r'><link name='a'/><link name='b'/><link name='s'><inertial><mass value='1'/>
           <inertia ixx='2' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/></inertial></link>
         <joint name='j' type='continuous'><parent link='a'/><child link='b'/></joint>
         <joint name='k' type='{second}'><origin xyz='0 1 0'/><parent link='a'/><child link='s'/></joint>
         <coupling name='c'><predecessor link='b'/><successor link='s'/><ratio value='6'/></coupling>
         {after}</robot>"
    )
}

#[test]
fn a_coupled_link_is_a_rotor() {
    let robot = build(&coupled("continuous", ""));
    assert_eq!((robot.nv(), robot.link_bodies(), robot.bodies().len()), (1, 1, 2));
    let rotor = &robot.bodies()[1];
    assert_eq!((rotor.kind, rotor.name.as_str()), (BodyKind::SymmetricRotor, "j.rotor"));
    assert_eq!((rotor.drive.ratio, rotor.placement.translation.y), (6.0, 1.0));
    assert_eq!(rotor.inertia.rotational[(2, 2)], 2.0);
}

#[test]
fn a_coupled_link_that_carries_others_or_slides_follows() {
    let carried = "<link name='t'/><joint name='m' type='fixed'><parent link='s'/><child link='t'/></joint>";
    for text in [coupled("continuous", carried), coupled("prismatic", "")] {
        let robot = build(&text);
        assert_eq!((robot.nv(), robot.link_bodies(), robot.bodies().len()), (1, 2, 2));
        assert_eq!(robot.bodies()[1].drive.ratio, 6.0);
    }
}

#[test]
fn couplings_that_are_no_gear_are_refused() {
    let far = "<link name='t'/><joint name='m' type='continuous'><parent link='b'/><child link='t'/></joint>
               <coupling name='d'><predecessor link='t'/><successor link='s'/><ratio value='6'/></coupling>";
    let message = refusal(&coupled("continuous", far));
    assert!(message.contains("<coupling name=\"d\">: link \"s\" is coupled twice"), "{message}");
    let far =
        far.replace("predecessor link='t'/><successor link='s'", "predecessor link='b'/><successor link='t'");
    let message = refusal(&coupled("continuous", &far));
    assert!(message.contains("one of its links carries the other"), "{message}");
    for (wrong, expected) in [
        ("predecessor link='x'", "its link \"x\" does not exist"),
        ("predecessor link='a'", "no joint moves the link \"a\""),
        ("predecessor link='s'", "cannot be coupled to itself"),
        ("predecessor ", "it needs the attribute \"link\""),
    ] {
        let message = refusal(&coupled("continuous", "").replace("predecessor link='b'", wrong));
        assert!(message.contains(expected), "{message}");
    }
}

/// A belt runs from the ground over a hip to the shank: relative to the ground, the shank turns half as fast as the wheel.
#[test]
fn couplings_reach_across_several_joints() {
    let text = "<robot name='r'><link name='a'/><link name='w'/><link name='h'/><link name='k'/>
         <joint name='wheel' type='continuous'><parent link='a'/><child link='w'/></joint>
         <joint name='hip' type='continuous'><parent link='a'/><child link='h'/></joint>
         <joint name='knee' type='continuous'><origin xyz='0 0 1'/><parent link='h'/><child link='k'/></joint>
         <coupling name='c'><predecessor link='w'/><successor link='k'/><ratio value='0.5'/></coupling></robot>";
    let robot = build(text);
    assert_eq!((robot.nv(), robot.velocity_names()), (2, vec!["wheel".to_owned(), "hip".to_owned()]));
    let knee = &robot.joints()[2];
    assert_eq!((knee.follows, robot.joint_bodies(2).len()), (Some(0), 2));
    let drives: Vec<_> = robot.joint_bodies(2).iter().map(|b| (b.kind, b.drive.v, b.drive.ratio)).collect();
    assert_eq!(drives, [(BodyKind::Massless, 0, 0.5), (BodyKind::Link, 1, -1.0)]);
    assert_eq!(robot.bodies()[knee.body].placement, Pose::identity());
}

#[test]
fn real_urdf_plus_files_load() {
    let Some(folder) = shared("models/urdf_plus") else { return };
    // file, coordinates, links that move, rotors, loops, independent coordinates
    let expected = [
        ("double_pendulum", 2, 2, 0, 0, 2),
        ("four_bar", 3, 3, 0, 1, 1),
        ("mini_cheetah", 18, 13, 12, 0, 18),
        ("mini_cheetah_leg", 3, 3, 3, 0, 3),
        ("planar_leg_linkage", 4, 4, 0, 1, 2),
        ("revolute_rotor_chain", 3, 3, 3, 0, 3),
    ];
    for (name, nv, links, rotors, loops, free) in expected {
        let robot = build(&std::fs::read_to_string(folder.join(name).with_extension("urdf")).unwrap());
        let independent = robot.independent_marks().iter().filter(|m| **m == Some(true)).count();
        let found =
            (robot.nv(), robot.link_bodies(), robot.bodies().len() - links, robot.loops().len(), independent);
        assert_eq!(found, (nv, links, rotors, loops, free), "{name}");
        assert_eq!(robot.name(), name);
    }
    let robot = build(&std::fs::read_to_string(folder.join("mini_cheetah.urdf")).unwrap());
    assert_eq!(robot.base(), Base::Floating);
    let knee = robot.bodies().iter().find(|b| b.name == "FR_hip_to_knee_j.rotor").unwrap();
    assert_eq!((knee.drive.ratio, knee.placement.translation), (9.33, Vector3::zeros()));
    assert_eq!(knee.inertia.rotational[(2, 2)], 6.3e-5);
}

#[test]
fn errors_contain_location_and_reason() {
    let hinge = hinged("type='revolute'", "");
    let inside = |inside: &str| hinged("type='revolute'", inside);
    let tensor = "<inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/>";
    let mass = |value: &str| with_inertial(&format!("<mass value='{value}'/>{tensor}"));
    let cases = [
        (
            hinged("type='odd'", ""),
            "line 4: <joint name=\"j\">: unknown joint type \"odd\": expected revolute",
        ),
        (hinged("", ""), "line 4: <joint name=\"j\">: it needs the attribute \"type\""),
        (hinged("type='fixed' independent='maybe'", ""), "independent=\"maybe\" is neither true nor false"),
        (
            inside("\n<axis xyz='0 0 z'/>"),
            "line 6: <axis> of <joint name=\"j\">: xyz: \"z\" is not a finite number",
        ),
        (inside("<axis xyz='0 1'/>"), "xyz has 2 numbers, expected 3"),
        (inside("<axis xyz='0 0 1e-20'/>"), "the axis has no length"),
        (hinged("type='planar'", "<axis xyz='0 0 0'/>"), "the axis has no length"),
        (inside("<origin xyz='1 2 3 4'/>"), "xyz has 4 numbers, expected 3"),
        (version_1_1(&inside("<origin quat_xyzw='0 0 0 0'/>")), "quat_xyzw has no length"),
        (version_1_1(&inside("<origin quat_xyzw='0 0 1'/>")), "quat_xyzw has 3 numbers, expected 4"),
        (
            version_1_1(&inside("\n<origin rpy='0 0 0' quat_xyzw='0 0 0 1'/>")),
            "line 6: <origin> of <joint name=\"j\">: it has rpy and quat_xyzw: expected only one of them",
        ),
        (inside("<limit lower=''/>"), "lower has 0 numbers, expected 1 number"),
        (inside("<mimic joint='j'/>"), "form a cycle"),
        (hinge.replace("<child link='b'/>", ""), "it needs a <child>"),
        (hinge.replace("<parent link='a'/>", "<parent/>"), "it needs the attribute \"link\""),
        (hinge.replace("child link='b'", "child link='c'"), "its child link \"c\" does not exist"),
        (hinge.replace("name='j'", "name=''"), "name=\"\" is empty"),
        (hinge.replace("name='j'", "name='&#10;'"), "has control characters"),
        (
            with_inertial("<mass value='1'/><inertia ixx='1' iyy='1' izz='x'/>"),
            "\"x\" is not a finite number",
        ),
        (format!("{hinge}\ntext"), "line 7: not well-formed XML"),
        (mass("NaN"), "\"NaN\" is not a finite number"),
        (mass("-inf"), "\"-inf\" is not a finite number"),
        (mass("1e999"), "\"1e999\" is not a finite number"),
        (mass("0x1p3"), "\"0x1p3\" is not a finite number"),
        (mass("1,5"), "\"1,5\" is not a finite number"),
        (mass("1_0"), "\"1_0\" is not a finite number"),
        (mass("1.5kg"), "\"1.5kg\" is not a finite number"),
        ("<robot name='r'/>".into(), "it has no <link>"),
        ("<model/>".into(), "line 1: <model>: expected <robot>"),
        ("<robot name='r'><link name='a'/><link name='a'/></robot>".into(), "the name is taken"),
        (
            "<robot name='r'><link name='a'/>\n<link name='b'/></robot>".into(),
            "line 2: link \"b\": it is not connected",
        ),
        (
            "<robot name='r' xmlns:x='http://www.ros.org/wiki/xacro'><x:macro name='m'/></robot>".into(),
            "xacro",
        ),
    ];
    for (text, expected) in cases {
        let message = refusal(&text);
        assert!(message.contains(expected), "{message}\n  expected: {expected}");
    }
}

#[test]
fn cycles_are_refused() {
    let robot = |joints: &[(&str, &str)], more: &str| {
        let mut text = String::from("<robot name='r'><link name='a'/><link name='b'/><link name='c'/>");
        for (parent, child) in joints {
            let _ = write!(
                text,
                "<joint name='{parent}{child}' type='fixed'><parent link='{parent}'/><child link='{child}'/></joint>"
            );
        }
        format!("{text}{more}</robot>")
    };
    assert!(refusal(&robot(&[("a", "b"), ("b", "c"), ("c", "a")], "")).contains("form a cycle"));
    assert!(refusal(&robot(&[("b", "c"), ("c", "b")], "")).contains("cycle"));
    // A coupling must not follow the cycle endlessly.
    let coupling = "<coupling><predecessor link='b'/><successor link='c'/><ratio value='1'/></coupling>";
    refusal(&robot(&[("b", "c"), ("c", "b")], coupling));
}

#[test]
fn broken_xml_is_refused_in_one_line() {
    let whole = hinged("type='revolute'", "<axis xyz='0 0 1'/>");
    for cut in 0..whole.len() {
        refusal(&whole[..cut]);
    }
    assert_eq!(refusal("<robot name='r'>\n<link"), "line 2: the XML text ends too early");
    assert_eq!(refusal("<robot>\n<link></robot>"), "line 2: expected </link>, not </robot>");
    assert_eq!(
        refusal("<robot a='1' a='2'/>"),
        "line 1: not well-formed XML: attribute 'a' is already defined"
    );
}

#[test]
fn hostile_texts_are_refused() {
    let bomb = "<?xml version='1.0'?>\n<!DOCTYPE robot [<!ENTITY a 'aaa'><!ENTITY b '&a;&a;'>]>\n<robot name='&b;'/>";
    assert!(refusal(bomb).starts_with("line 2: document types with entities"));
    let deep = format!("<robot name='r'>{}", "<a>".repeat(1_000_000));
    assert!(refusal(&deep).contains("nested deeper than 256 levels"));
    let attributes: Vec<_> = (0..300_000).map(|i| format!("a{i}=''")).collect();
    assert!(
        refusal(&format!("<robot><link {}/></robot>", attributes.join(" ")))
            .contains("more than 256 attributes")
    );
    let namespaces: Vec<_> = (0..2_000).map(|i| format!("<a xmlns:n{i}='u{i}'/>")).collect();
    assert!(refusal(&format!("<robot>{}</robot>", namespaces.concat())).contains("XML namespaces"));
    let mut huge = " ".repeat(200 << 20);
    assert!(matches!(urdf::read(&huge), Err(Error::Syntax { .. })));
    huge.insert_str(0, "<robot>");
    assert_eq!(refusal(&huge), "the text has 200 MB: models above 64 MB are not read");
}

/// Long chains of mimic joints are read in linear time; circular ones are refused.
#[test]
fn chains_of_followers_of_any_length_are_read_and_circles_are_refused() {
    let mut text = String::from("<robot name='r'><link name='l0'/>");
    for i in 1..=20_000 {
        let _ = write!(
            text,
            "<link name='l{i}'/><joint name='j{i}' type='revolute'><parent link='l0'/><child link='l{i}'/>\
             <mimic joint='j{}'/></joint>",
            i + 1
        );
    }
    let last =
        "<link name='x'/><joint name='j20001' type='revolute'><parent link='l0'/><child link='x'/></joint>";
    let hand = build(&format!("{text}{last}</robot>"));
    assert_eq!((hand.nv(), hand.joints().len(), hand.bodies()[0].drive.ratio), (1, 20_001, 1.0));
    let circle = last.replace("</joint>", "<mimic joint='j1'/></joint>");
    assert!(refusal(&format!("{text}{circle}</robot>")).contains("form a cycle"));
}

#[test]
fn a_large_model_is_read() {
    let mut text = String::from("<robot name='chain'>\n<link name='l0'/>\n");
    for i in 1..=20_000 {
        let _ = writeln!(
            text,
            "<link name='l{i}'/><joint name='j{i}' type='revolute'><parent link='l{}'/><child link='l{i}'/></joint>",
            i - 1
        );
    }
    text.push_str("</robot>");
    let model = urdf::read(&text).unwrap();
    assert_eq!(model.joints.last().and_then(|j| j.line), Some(20_002));
}
