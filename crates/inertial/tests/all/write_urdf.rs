//! Writing new values into URDF texts: they read back, and nothing else changes.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use crate::common::{Rng, relative_error};
use inertial::consistency::{DEFAULT_TOLERANCE, check_inertia};
use inertial::mechanism::read::urdf;
use inertial::mechanism::write::urdf::{Friction, NewValues, write_bodies};
use inertial::mechanism::{Base, BodyKind, BuildOptions, Mechanism, RotorModel};
use inertial::spatial::Inertia;
use nalgebra::{Matrix3, Vector3, vector};

/// Tolerance for the sum of a few parts, each converted once between centre of mass and origin: some dozen rounding errors.
const TOLERANCE: f64 = 1e-13;

fn build(text: &str, options: &BuildOptions) -> Mechanism {
    urdf::read(text).unwrap().build(options).unwrap()
}

#[track_caller]
fn assert_inertia(found: &Inertia<f64>, wanted: &Inertia<f64>) {
    let error = relative_error(found.parameters().as_slice(), wanted.parameters().as_slice(), 1e-9);
    assert!(error < TOLERANCE, "{found:?}\n{wanted:?}");
}

fn brick() -> Inertia<f64> {
    Inertia::from_com(2.5, vector![0.5, 0.0, -0.25], Matrix3::from_diagonal(&vector![0.25, 0.5, 0.375]))
}

#[test]
fn only_the_values_change() {
    let text = "<?xml version='1.0'?><!-- kept -->\n<robot name='r'>\n  <link name='base' />\n  \
        <link name='a'><visual/><inertial><!-- kept too -->\n    <inertia iyy='1' ixx=\"1.0\" ixy=' 0' ixz='0' iyz='0' \
        izz='9'/>\n    <origin rpy='0.1 0 0' xyz='1 2 3'/>  <mass  value = '1' /></inertial></link>\n  \
        <joint name='j' type='revolute'><dynamics friction='1'/><parent link='base'/><child link='a'/></joint>\n\
        </robot>\n";
    let friction = Friction { damping: 0.5, friction: 1e-7 };
    let new = NewValues { links: vec![("a", brick())], joints: vec![("j", friction)] };
    let expected = text
        .replace("iyy='1' ixx=\"1.0\"", "iyy='0.5' ixx=\"0.25\"")
        .replace("izz='9'", "izz='0.375'")
        .replace("rpy='0.1 0 0' xyz='1 2 3'", "rpy='0.0 0.0 0.0' xyz='0.5 0.0 -0.25'")
        .replace("value = '1'", "value = '2.5'")
        .replace("<dynamics friction='1'", "<dynamics damping=\"0.5\" friction='1e-7'");
    let written = new.write(text).unwrap();
    assert_eq!(written, expected);
    assert_eq!(build(&written, &BuildOptions::default()).bodies()[0].inertia, brick());
    // Writing the existing values changes nothing.
    assert_eq!(new.write(&written).unwrap(), written);
}

#[test]
fn missing_elements_are_inserted_with_matching_indentation() {
    let text = "<robot name='r'>\r\n\t<link name='base'/>\r\n\t<link name='a' />\r\n\t<link name='b'>\r\n\t\t<visual/>\r\n\
        \t</link>\r\n<link name='c'></link>\r\n\t<joint name='j' type='revolute'>\r\n\t\t<parent link='base'/>\r\n\
        \t\t<child link='a'/>\r\n\t</joint>\r\n\
        <joint name='k' type='revolute'><parent link='base'/><child link='b'/></joint>\r\n\
        <joint name='l' type='revolute'><parent link='base'/><child link='c'/></joint>\r\n</robot>";
    let friction = Friction { damping: 1.0, friction: 2.0 };
    let new = NewValues {
        links: vec![("a", brick()), ("b", brick()), ("c", brick())],
        joints: vec![("j", friction), ("k", friction)],
    };
    let inertial = |indent: &str, unit: &str| {
        format!(
            "\r\n{indent}<inertial>\r\n{indent}{unit}<origin xyz=\"0.5 0.0 -0.25\"/>\r\n{indent}{unit}<mass value=\"2.5\"/>\
             \r\n{indent}{unit}<inertia ixx=\"0.25\" ixy=\"0.0\" ixz=\"0.0\" iyy=\"0.5\" iyz=\"0.0\" izz=\"0.375\"/>\
             \r\n{indent}</inertial>\r\n"
        )
    };
    let dynamics = "<dynamics damping=\"1.0\" friction=\"2.0\"/>";
    let expected = text
        .replace("<link name='a' />", &format!("<link name='a' >{}\t</link>", inertial("\t\t", "\t")))
        .replace("<visual/>\r\n", &format!("<visual/>{}", inertial("\t\t", "\t")))
        .replace("<link name='c'>", &format!("<link name='c'>{}", inertial("  ", "  ")))
        .replace("<child link='a'/>", &format!("<child link='a'/>\r\n\t\t{dynamics}"))
        .replace("<child link='b'/>", &format!("<child link='b'/>\r\n  {dynamics}\r\n"));
    let written = new.write(text).unwrap();
    assert_eq!(written, expected);
    let robot = build(&written, &BuildOptions::default());
    assert!(robot.bodies().iter().all(|b| b.inertia == brick()));
    assert_eq!((robot.joints()[1].dynamics.damping, robot.joints()[1].dynamics.friction), (1.0, 2.0));
}

/// Without a moment of inertia all of them are read as zero, so all are written. Elements without `<inertia>` were refused.
#[test]
fn incomplete_inertias_are_completed() {
    let text = |tensor: &str| {
        format!(
            "<robot name='r'><link name='a'/>\n<link name='b'><inertial>\n  <mass value='1'/>{tensor}\n</inertial></link>\n\
             <joint name='j' type='revolute'><parent link='a'/><child link='b'/></joint></robot>"
        )
    };
    // A rod along x has no moment about it.
    let rod = Inertia::from_com(2.0, Vector3::zeros(), Matrix3::from_diagonal(&vector![0.0, 0.5, 0.5]));
    let new = NewValues { links: vec![("b", rod)], ..Default::default() };
    let whole = "<inertia ixx=\"0.0\" ixy=\"0.0\" ixz=\"0.0\" iyy=\"0.5\" iyz=\"0.0\" izz=\"0.5\"/>";
    for (tensor, expected) in [("", format!("\n  {whole}")), ("\n <inertia izz='7'/>", format!("\n {whole}"))]
    {
        let written = new.write(&text(tensor)).unwrap();
        assert_eq!(written, text(&expected).replace("value='1'", "value='2.0'"));
        assert_eq!(build(&written, &BuildOptions::default()).bodies()[0].inertia, rod);
    }
    let point = Inertia::from_com(1.0, Vector3::zeros(), Matrix3::zeros());
    let new = NewValues { links: vec![("b", point)], ..Default::default() };
    assert_eq!(new.write(&text("")).unwrap(), text(""));
}

/// A quaternion and `rpy` together are an error in URDF 1.1; without version 1.1 the quaternion has no effect and stays.
#[test]
fn quaternions_of_version_1_1_become_the_identity() {
    let text = |version: &str, origin: &str| {
        format!(
            "<robot {version} name='r'><link name='a'/><link name='b'><inertial><origin {origin}/><mass value='1'/>\
             <inertia ixx='1' ixy='0' ixz='0' iyy='2' iyz='0' izz='3'/></inertial></link>\
             <joint name='j' type='revolute'><parent link='a'/><child link='b'/></joint></robot>"
        )
    };
    let new = NewValues { links: vec![("b", brick())], ..Default::default() };
    for (version, origin, expected) in [
        ("version='1.1'", "quat_xyzw='1 0 0 1'", "xyz=\"0.5 0.0 -0.25\" quat_xyzw='0 0 0 1'"),
        (
            "",
            "rpy='1 0 0' quat_xyzw='1 0 0 1'",
            "xyz=\"0.5 0.0 -0.25\" rpy='0.0 0.0 0.0' quat_xyzw='1 0 0 1'",
        ),
    ] {
        let written = new.write(&text(version, origin)).unwrap();
        assert!(written.contains(&format!("<origin {expected}/>")), "{written}");
        assert_inertia(&build(&written, &BuildOptions::default()).bodies()[0].inertia, &brick());
    }
}

#[test]
fn zero_values_need_no_element() {
    let text = "<robot name='r'><link name='a'/><link name='b'/>\
        <joint name='j' type='revolute'><parent link='a'/><child link='b'/></joint></robot>";
    let still = Friction { damping: 0.0, friction: 0.0 };
    let new = NewValues { links: vec![("b", Inertia::zero())], joints: vec![("j", still)] };
    assert_eq!(new.write(text).unwrap(), text);
}

#[test]
fn wrong_values_are_refused() {
    let text = "<robot name='r'><link name='a'/><link name='b'/>\
        <joint name='j' type='revolute'><parent link='a'/><child link='b'/></joint></robot>";
    let nan = Inertia { mass: f64::NAN, ..brick() };
    let ghost = Inertia { mass: 0.0, ..brick() };
    let bad = Friction { damping: f64::INFINITY, friction: 0.0 };
    let cases = [
        (NewValues { links: vec![("c", brick())], joints: vec![] }, "the text has no link \"c\""),
        (NewValues { links: vec![("b", brick()); 2], joints: vec![] }, "\"b\" is given two new values"),
        (NewValues { links: vec![("b", nan)], joints: vec![] }, "its new inertia is not finite"),
        (NewValues { links: vec![("b", ghost)], joints: vec![] }, "first moments without mass"),
        (NewValues { links: vec![], joints: vec![("k", bad)] }, "the text has no joint \"k\""),
        (NewValues { links: vec![], joints: vec![("j", bad)] }, "its new friction is not finite"),
    ];
    for (new, expected) in cases {
        let message = new.write(text).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    let error = write_bodies(text, &BuildOptions::default(), &[("a", brick())], &[]).unwrap_err();
    assert_eq!(error.to_string(), "the model has no body \"a\"");
}

/// Creates a link with another one fixed to it.
fn pair() -> String {
    let inertial = |mass: f64| {
        format!(
            "<inertial><mass value='{mass}'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/></inertial>"
        )
    };
    format!(
        "<robot name='r'><link name='base'/><link name='arm'>{}</link><link name='tool'>{}</link>
         <joint name='j' type='revolute'><parent link='base'/><child link='arm'/></joint>
         <joint name='f' type='fixed'><origin xyz='0 1 0' rpy='0 0 1'/><parent link='arm'/><child link='tool'/>
         </joint></robot>",
        inertial(2.0),
        inertial(3.0)
    )
}

#[test]
fn links_fixed_together_keep_their_shares_of_the_mass() {
    let options = BuildOptions::default();
    let old = build(&pair(), &options).bodies()[0].inertia;
    // Heavier, and lighter than the tool alone.
    for wanted in [old + brick(), brick()] {
        let written = write_bodies(&pair(), &options, &[("arm", wanted)], &[]).unwrap();
        assert!(written.notes.is_empty(), "{:?}", written.notes);
        let robot = build(&written.text, &options);
        assert_inertia(&robot.bodies()[0].inertia, &wanted);
        let part = |name: &str| robot.links().iter().find(|l| l.name == name).unwrap().inertia.unwrap();
        let (arm, tool) = (part("arm"), part("tool"));
        assert!((tool.mass / arm.mass - 1.5).abs() < 1e-12, "{} {}", tool.mass, arm.mass);
        for part in [arm, tool] {
            assert!(check_inertia(&part, DEFAULT_TOLERANCE).unwrap().is_consistent(), "{part:?}");
        }
    }
    // Unchanged values keep the digits of all links of the body.
    let written = write_bodies(&pair(), &options, &[("arm", old)], &[]).unwrap();
    assert_eq!(written.text, pair());
}

#[test]
fn scaled_bodies_have_scaled_links() {
    // Lengths are scaled by 2 about the centre of mass of the body, masses by 3, for every part.
    let options = BuildOptions::default();
    let old = build(&pair(), &options);
    let body = old.bodies()[0].inertia;
    let centre = body.com().unwrap();
    let scaled = |i: &Inertia<f64>| {
        let com = centre + 2.0 * (i.com().unwrap() - centre);
        Inertia::from_com(3.0 * i.mass, com, 12.0 * i.about_com())
    };
    let written = write_bodies(&pair(), &options, &[("arm", scaled(&body))], &[]).unwrap();
    let new = build(&written.text, &options);
    for (old, new) in old.links().iter().zip(new.links()).filter(|(l, _)| l.inertia.is_some()) {
        let of = |link: &inertial::mechanism::Link| link.inertia.unwrap().transformed(&link.pose);
        let error =
            relative_error(of(new).parameters().as_slice(), scaled(&of(old)).parameters().as_slice(), 1e-9);
        assert!(error < 1e-12, "{error}");
    }
}

#[test]
fn the_link_nearest_the_base_takes_the_difference_of_bodies_that_cannot_exist() {
    let options = BuildOptions::default();
    let wanted = Inertia { mass: -1.0, ..brick() };
    let written = write_bodies(&pair(), &options, &[("arm", wanted)], &[]).unwrap();
    let robot = build(&written.text, &options);
    assert_inertia(&robot.bodies()[0].inertia, &wanted);
    let tool = robot.links().iter().find(|l| l.name == "tool").unwrap();
    assert_eq!(tool.inertia.unwrap().mass, 3.0);
}

#[test]
fn links_of_point_masses_share_by_mass() {
    // Two point masses.
    let text = pair().replace("='1'", "='0'");
    let options = BuildOptions::default();
    let written = write_bodies(&text, &options, &[("arm", brick())], &[]).unwrap();
    assert_eq!(written.notes.len(), 1, "{:?}", written.notes);
    let robot = build(&written.text, &options);
    assert_inertia(&robot.bodies()[0].inertia, &brick());
    let tool = robot.links().iter().find(|l| l.name == "tool").unwrap().inertia.unwrap();
    assert!((tool.mass - 1.5).abs() < 1e-12);
    assert!(check_inertia(&tool, DEFAULT_TOLERANCE).unwrap().is_consistent());
}

#[test]
fn rotors_and_their_carriers() {
    let tensor = "<inertia ixx='0.02' ixy='0' ixz='0' iyy='0.01' iyz='0' izz='0.01'/>";
    let link = |name: &str| {
        format!(
            "<link name='{name}'><inertial><origin xyz='0.1 0 0'/><mass value='2'/>{tensor}</inertial></link>\n"
        )
    };
    let joint = |name: &str, parent: &str, child: &str| {
        format!(
            "<joint name='{name}' type='continuous'><origin xyz='0 0.5 0' rpy='0 0 0.5'/>\
             <parent link='{parent}'/><child link='{child}'/></joint>\n"
        )
    };
    let text = format!(
        "<robot name='r'><link name='base'/>{}{}{}{}{}{}\
         <coupling><predecessor link='b'/><successor link='s'/><ratio value='6'/></coupling></robot>",
        link("a"),
        link("b"),
        link("s"),
        joint("j", "base", "a"),
        joint("k", "a", "b"),
        joint("m", "a", "s")
    );
    for rotors in [None, Some(RotorModel::None), Some(RotorModel::General)] {
        let options = BuildOptions::default().with(|o| o.rotors = rotors);
        let old = build(&text, &options);
        let wanted: Vec<_> = old
            .bodies()
            .iter()
            .map(|b| {
                let more = match b.kind {
                    BodyKind::SymmetricRotor => {
                        Inertia { rotational: Matrix3::from_diagonal(&Vector3::z()), ..Inertia::zero() }
                    }
                    _ => brick(),
                };
                (b.name.as_str(), b.inertia + more)
            })
            .collect();
        let written = write_bodies(&text, &options, &wanted, &[]).unwrap();
        let new = build(&written.text, &options);
        for (body, (_, wanted)) in new.bodies().iter().zip(&wanted) {
            assert_inertia(&body.inertia, wanted);
        }
    }
}

/// Creates a random tree in random layout: fixed joints, links without inertia, elements on one line or many.
fn random_text(rng: &mut Rng) -> String {
    let mut text = String::from("<robot name='r'>\n<link name='l0'/>\n");
    let newline = ["\n", "\n    ", "", "  "][rng.below(4)];
    for i in 1..2 + rng.below(8) {
        let v = rng.vector(1.0);
        let _ = write!(text, "<link name='l{i}'");
        if rng.chance(0.7) {
            let d = rng.vector(0.1) + Vector3::repeat(1.0);
            let _ =
                write!(text, ">{newline}<inertial>{newline}<mass value='{}'/>{newline}", rng.range(0.5, 3.0));
            if rng.chance(0.7) {
                let _ = write!(text, "<origin xyz='{} {} {}' rpy='{} 0 1'/>{newline}", v.x, v.y, v.z, v.x);
            }
            let _ = writeln!(
                text,
                "<inertia ixx='{}' ixy='0' ixz='{}' iyy='{}' iyz='0' izz='{}'/>{newline}</inertial>{newline}</link>",
                d.x,
                0.1 * v.y,
                d.y,
                d.z
            );
        } else {
            text.push_str(["/>\n", "></link>\n", ">\n  <visual/>\n</link>\n"][rng.below(3)]);
        }
        let kind = ["fixed", "revolute", "prismatic"][rng.below(3)];
        let dynamics = ["", "<dynamics damping='1'/>", "<dynamics/>"][rng.below(3)];
        let _ = writeln!(
            text,
            "<joint name='j{i}' type='{kind}'>{newline}<origin xyz='{} {} 0' rpy='0 {} 0'/><parent link='l{}'/>\
             <child link='l{i}'/>{dynamics}</joint>",
            v.x,
            v.y,
            v.z,
            rng.below(i)
        );
    }
    text + "</robot>\n"
}

/// Returns a text without whitespace and without the elements that a writer may change.
fn rest(text: &str) -> String {
    let document = roxmltree::Document::parse(text).unwrap();
    let mut out = text.to_owned();
    let touched = |n: &roxmltree::Node<'_, '_>| n.has_tag_name("inertial") || n.has_tag_name("dynamics");
    let ranges: Vec<_> = document.descendants().filter(touched).map(|n| n.range()).collect();
    for range in ranges.into_iter().rev() {
        out.replace_range(range, "");
    }
    let mut out: String = out.split_whitespace().collect();
    // An empty element may have been written as a pair of tags.
    for i in 0..20 {
        out = out.replace(&format!("<linkname='l{i}'></link>"), &format!("<linkname='l{i}'/>"));
    }
    out
}

#[test]
fn random_values_into_random_texts_read_back() {
    let mut rng = Rng(7);
    for _ in 0..300 {
        let text = random_text(&mut rng);
        let base = rng.chance(0.5).then_some(Base::Floating);
        let options = BuildOptions::default().with(|o| o.base = base);
        let old = build(&text, &options);
        let bodies: Vec<_> = old.bodies().iter().map(|b| (b.name.as_str(), rng.inertia())).collect();
        let joints: Vec<_> = old
            .joints()
            .iter()
            .filter(|j| j.name.starts_with('j'))
            .map(|j| {
                (
                    j.name.as_str(),
                    Friction { damping: rng.range(0.0, 1.0), friction: 1e-9 * rng.range(0.0, 1.0) },
                )
            })
            .collect();
        let written = write_bodies(&text, &options, &bodies, &joints).unwrap();
        let new = build(&written.text, &options);
        for (body, (_, wanted)) in new.bodies().iter().zip(&bodies) {
            assert_inertia(&body.inertia, wanted);
        }
        for (name, friction) in &joints {
            let joint = new.joints().iter().find(|j| j.name == *name).unwrap();
            assert_eq!(joint.dynamics.damping, friction.damping);
            assert_eq!(joint.dynamics.friction, friction.friction);
        }
        assert_eq!(rest(&written.text), rest(&text));
        let again = write_bodies(&written.text, &options, &[], &joints).unwrap();
        assert_eq!(again.text, written.text);
    }
}
