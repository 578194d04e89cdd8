//! URDF texts with errors that urdfdom, Pinocchio and others tolerate: they are read with a warning.

#![allow(clippy::unwrap_used)]

use crate::urdf::{build, hinged, refusal, with_inertial};
use inertial::mechanism::BuildOptions;
use inertial::mechanism::read::urdf;
use inertial::spatial::{Inertia, Pose};
use nalgebra::{Matrix3, Vector3};

/// Errors that urdfdom and others ignore are read like the clean text, with a warning that names the line.
#[test]
fn tolerated_errors_cause_warnings() {
    let clean = "<?xml version='1.0'?>\n<robot name='r'><!-- a comment -->\n<link name='a'/>\n<link name='b'><inertial><origin xyz='0 0 1' \
                 rpy='0 0 0'/>\n<mass value='2'/>\n<inertia ixx='3' ixy='0' ixz='0' iyy='4' iyz='0' izz='5'/></inertial></link>\n<joint \
                 name='j' type='revolute'><origin rpy='0 0 0.5'/>\n<parent link='a'/><child link='b'/><axis xyz='0 0 1'/><limit \
                 lower='-2' upper='1'/><dynamics damping='3'/></joint></robot>";
    let read = |text: &str| {
        let model = urdf::read(text).unwrap_or_else(|e| panic!("{e}: {text}"));
        let warnings = model.warnings.clone();
        let robot = model.build(&BuildOptions::default()).unwrap();
        let numbers = (
            robot.bodies()[0].inertia.parameters(),
            robot.joints()[0].limits,
            robot.joints()[0].dynamics.damping,
        );
        (numbers, warnings)
    };
    let (expected, none) = read(clean);
    assert!(none.is_empty(), "{none:?}");
    let change = |from: &str, to: &str| {
        assert!(clean.contains(from), "{from}");
        clean.replacen(from, to, 1)
    };
    for (text, warning) in [
        (
            change("</joint>", "<axis xyz='1 0 0'/></joint>"),
            "line 8: <axis> of <joint name=\"j\">: there is more than one <axis>: the first is used",
        ),
        (
            change("</joint>", "<limit lower='7'/></joint>"),
            "there is more than one <limit>: the first is used",
        ),
        (change("</joint>", "<dynamics damping='7'/></joint>"), "there is more than one <dynamics>"),
        (change("</joint>", "<origin xyz='7 7 7'/></joint>"), "there is more than one <origin>"),
        (change("</joint>", "<child link='c'/></joint>"), "there is more than one <child>"),
        (
            change("</inertial>", "<mass value='7'/></inertial>"),
            "line 6: <mass> of <link name=\"b\">: there is more than one <mass>",
        ),
        (change("</link>", "<inertial/></link>"), "there is more than one <inertial>"),
        (change(" ixy='0'", ""), "line 6: <inertia> of <link name=\"b\">: ixy is missing: taken as 0"),
        (
            change("lower='-2' upper='1'", "lower='1' upper='-2'"),
            "lower=1 is above upper=-2: the two are swapped",
        ),
        (change("<!-- a comment -->", "<!-- a -- comment --->"), "line 2: a comment has -- inside: ignored"),
        (change("<?xml", "\n\n<?xml"), "line 3: blank lines before <?xml: ignored"),
        (change("<robot", "<!DOCTYPE robot>\n<robot"), "line 2: a document type: ignored"),
        (
            change("<robot", "<!DOCTYPE robot [\n<!ELEMENT robot ANY>\n]>\n<robot"),
            "line 2: a document type: ignored",
        ),
        (change("<robot", "<!DOCTYPE robot [<!ENTITY a 'b'>]>\n<robot"), "line 2: a document type: ignored"),
        (
            change("<link name='a'/>", "<link name='a'/><gz:plugin gz:a='b:c'/>"),
            "line 3: the prefix \"gz\" is not declared: taken as part of the name",
        ),
    ] {
        let (found, warnings) = read(&text);
        assert_eq!(found, expected, "{text}");
        assert!(warnings.len() == 1 && warnings[0].contains(warning), "{warnings:?}\n{warning}");
        // The written text differs only in the new numbers.
        let body = Inertia::from_com(9.0, Vector3::new(0.0, 0.0, 1.0), Matrix3::identity() * 3.0);
        let new =
            inertial::mechanism::write::urdf::NewValues { links: vec![("b", body)], ..Default::default() };
        let written = new.write(&text).unwrap();
        assert_eq!(read(&written).1, warnings, "{written}");
        assert_eq!(read(&written).0.0[0], 9.0);
        assert!(written.len() <= text.len() + 40, "{written}");
    }
    // Without a mass the link is massless and accepts a new inertia.
    let (mass, _) = clean.split_once("<mass value='2'/>").unwrap();
    let empty = format!(
        "{}{}",
        mass.replace("<origin xyz='0 0 1' rpy='0 0 0'/>", ""),
        clean.split_once("izz='5'/>").unwrap().1
    );
    let model = urdf::read(&empty).unwrap();
    assert_eq!((model.links[1].inertia, model.warnings.len()), (None, 1), "{:?}", model.warnings);
    assert!(model.warnings[0].contains("it has no <mass>: the link is taken as massless"));
    let body = Inertia::from_com(9.0, Vector3::new(0.0, 0.0, 1.0), Matrix3::identity() * 3.0);
    let new = inertial::mechanism::write::urdf::NewValues { links: vec![("b", body)], ..Default::default() };
    let written = new.write(&empty).unwrap();
    assert_eq!(read(&written).0.0[0], 9.0, "{written}");
    // Entities and xacro are refused.
    assert!(
        refusal(&change("<robot name='r'", "<!DOCTYPE robot [<!ENTITY a 'b'>]>\n<robot name='&a;'"))
            .contains("line 2: document types with entities")
    );
    assert!(refusal(&change("<link name='a'/>", "<link name='a'/><xacro:macro/>")).contains("xacro"));
}

/// urdfdom reads `&` literally (seen with Pinocchio); the written text has it escaped.
#[test]
fn ampersands_that_are_not_escaped_are_read_literally() {
    let text = "<robot name='R&D &amp; &#65; &x; co'>\n<author>A & B</author><!-- a & b --><link name='a'/>\n<link name='b&c'/>\n\
                <joint name='j' type='continuous'><parent link='a'/><child link='b&c'/></joint></robot>";
    let model = urdf::read(text).unwrap();
    assert_eq!((model.name.as_str(), model.links[1].name.as_str()), ("R&D & A &x; co", "b&c"));
    let expected = [1, 2, 3, 4].map(|line| format!("line {line}: & is not escaped: read as &amp;"));
    assert_eq!(model.warnings, expected);
    let body = Inertia::from_com(9.0, Vector3::new(0.0, 0.0, 1.0), Matrix3::identity() * 3.0);
    let new =
        inertial::mechanism::write::urdf::NewValues { links: vec![("b&c", body)], ..Default::default() };
    let written = urdf::read(&new.write(text).unwrap()).unwrap();
    assert_eq!((written.name.as_str(), written.warnings.len()), ("R&D & A &x; co", 0));
    assert_eq!(written.links[1].inertia.unwrap().mass, 9.0);
    assert!(refusal(&with_inertial("<mass value='&m;'/>")).contains("\"&m;\" is not a finite number"));
    // Time and memory stay linear.
    let many = format!("<robot name='r'><a>{}</a><link name='a'/></robot>", "&".repeat(1 << 20));
    assert_eq!(urdf::read(&many).unwrap().warnings.len(), 1);
}

#[test]
fn infinite_limits_are_no_limits_and_other_values_are_refused() {
    let limits = |text: &str| {
        let joint =
            format!("<axis xyz='0 0 1'/><limit lower='-inf' upper='{text}' effort='inf' velocity='+INF'/>");
        urdf::read(&hinged("type='revolute'", &joint))
    };
    let model = limits("Infinity").unwrap();
    let found = model.joints[0].limits;
    let inf = f64::INFINITY;
    assert_eq!([found.lower, found.upper, found.effort, found.velocity], [-inf, inf, inf, inf]);
    assert_eq!(model.warnings.len(), 4, "{:?}", model.warnings);
    assert!(model.warnings[0].contains("lower=\"-inf\": taken as not limited"), "{:?}", model.warnings);
    let nan = limits("nan").unwrap_err().to_string();
    assert!(nan.starts_with("line ") && nan.contains("upper: \"nan\" is not a finite number"), "{nan}");
}

/// Quaternions were used in every version and with `rpy`; urdfdom (seen with Pinocchio) reads them in versions 1.1 and 1.2 only.
#[test]
fn quaternions_of_origins_need_version_1_1() {
    let read = |version: &str, origin: &str| {
        let text = hinged("type='revolute'", origin).replacen("<robot ", &format!("<robot {version} "), 1);
        let model = urdf::read(&text).unwrap();
        (model.joints[0].origin, model.warnings)
    };
    // A rotation by 0.8 about y, from a quaternion that is not normalized.
    let quaternion = format!("quat_xyzw='0 {} 0 {}'", 3.0 * 0.4_f64.sin(), 3.0 * 0.4_f64.cos());
    let (expected, _) = read("", "<origin xyz='1 2 3' rpy='0 0.8 0'/>");
    for version in ["version='1.1'", "version='1.2'"] {
        let (turned, warnings) = read(version, &format!("<origin xyz='1 2 3' {quaternion}/>"));
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!(turned.translation, expected.translation);
        assert!((turned.rotation - expected.rotation).norm() < 1e-15);
    }
    for version in ["", "version='1.0'", "version='2.0'", "version='x'"] {
        let place =
            "line 5: <origin> of <joint name=\"j\">: quat_xyzw needs <robot version=\"1.1\">: it is ignored";
        let (only, warnings) = read(version, &format!("<origin xyz='1 2 3' {quaternion}/>"));
        assert_eq!(only, Pose::from_xyz_rpy([1.0, 2.0, 3.0], [0.0; 3]), "{version}");
        assert_eq!(warnings, [format!("{place}, taken as no rotation")]);
        let (both, warnings) = read(version, "<origin xyz='1 2 3' rpy='0 0.8 0' quat_xyzw='1 x'/>");
        assert_eq!(both, expected, "{version}");
        assert_eq!(warnings, [format!("{place}, rpy is used")]);
    }
}

/// These were refused; the numbers are those of Pinocchio 3.
#[test]
fn incomplete_inertias_are_read_as_by_pinocchio() {
    let place = "<origin xyz='0 0 1'/><mass value='2'/>";
    for (tensor, warning) in [
        (
            "",
            "line 4: <inertial> of <link name=\"b\">: it has no <inertia>: all moments of inertia are taken as 0",
        ),
        (
            "<inertia iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/>",
            "line 4: <inertia> of <link name=\"b\">: ixx is missing: all moments of inertia are taken as 0",
        ),
        ("<inertia ixx='1'/>", "iyy is missing: all moments of inertia are taken as 0"),
        ("<inertia/>", "ixx is missing: all moments of inertia are taken as 0"),
    ] {
        let model = urdf::read(&with_inertial(&format!("{place}{tensor}"))).unwrap();
        let point = Inertia::from_com(2.0, Vector3::z(), Matrix3::zeros());
        assert_eq!(model.links[1].inertia, Some(point), "{tensor}");
        assert!(model.warnings.len() == 1 && model.warnings[0].contains(warning), "{:?}", model.warnings);
    }
}

/// Such joints were refused; in Pinocchio their axis is zero, so that they do not move.
#[test]
fn joints_with_an_axis_without_direction_are_fixed() {
    let message = "the joint is treated as fixed; expected a direction such as 0 0 1";
    for kind in ["revolute", "continuous", "prismatic"] {
        for (axis, reason) in
            [("<axis/>", "it has no xyz"), ("<axis xyz='0 -0 0'/>", "the axis has no length")]
        {
            let inside =
                format!("\n{axis}<limit lower='-1' upper='1'/><dynamics friction='1'/><mimic joint='k'/>");
            let robot = build(&hinged(&format!("type='{kind}'"), &inside));
            assert_eq!(robot.nv(), 0, "{kind}");
            let expected = format!("line 6: <axis> of <joint name=\"j\">: {reason}: {message}");
            assert_eq!(robot.warnings(), [expected]);
        }
    }
    // Joints without a direction are not read.
    let fixed = urdf::read(&hinged("type='fixed'", "<axis/>")).unwrap();
    assert!(fixed.warnings.is_empty(), "{:?}", fixed.warnings);
}

/// tinyxml2 reads only the first element: a second one, or a second end tag, was refused.
#[test]
fn elements_after_the_robot_are_ignored_with_a_warning() {
    let text = format!("{}\n<!-- end -->\n", hinged("type='revolute'", "<axis xyz='0 0 1'/>"));
    assert!(urdf::read(&text).unwrap().warnings.is_empty());
    let expected = "line 8: content after the end of the outermost element: ignored";
    for after in ["<robot name='s'><link name='ä'/></robot>", "</robot>", "<a>b</a> <c>", "<gz:world/>"] {
        let model = urdf::read(&format!("{text}{after}")).unwrap();
        assert_eq!((model.links.len(), model.joints.len()), (2, 1));
        assert_eq!(model.warnings, [expected], "{after}");
    }
}
