//! SDF: random mechanisms with all ways to specify frames, and invalid texts.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use crate::common::{Features, Rng, assert_close, cases, reference_rnea};
use inertial::mechanism::read::{no_includes, sdf};
use inertial::mechanism::write::sdf::replace_values;
use inertial::mechanism::write::urdf::Friction;
use inertial::mechanism::write::{changed_links, replace_inertias};
use inertial::mechanism::{Base, BuildOptions, JointType, MechanismBuilder, read};
use inertial::spatial::{Inertia, Pose};
use nalgebra::{Matrix3, Rotation3, UnitQuaternion, Vector3, vector};

/// Formats a pose in one of the possible notations.
fn pose(rng: &mut Rng, pose: &Pose<f64>, attributes: &str) -> String {
    let rotation = Rotation3::from_matrix_unchecked(pose.rotation);
    let t = pose.translation;
    if rng.chance(0.5) {
        let q = UnitQuaternion::from_rotation_matrix(&rotation).coords;
        return format!(
            "<pose rotation_format='quat_xyzw' {attributes}>{:?} {:?} {:?} {:?} {:?} {:?} {:?}</pose>",
            t[0], t[1], t[2], q.x, q.y, q.z, q.w
        );
    }
    let (roll, pitch, yaw) = rotation.euler_angles();
    let degrees = rng.chance(0.5);
    let [roll, pitch, yaw] = [roll, pitch, yaw].map(|x| if degrees { x.to_degrees() } else { x });
    format!(
        "<pose degrees='{degrees}' {attributes}>{:?} {:?} {:?} {roll:?} {pitch:?} {yaw:?}</pose>",
        t[0], t[1], t[2]
    )
}

fn text_of_inertia(rng: &mut Rng, inertia: &Inertia<f64>) -> String {
    // The tensor is given along random axes.
    let turn = rng.rotation();
    let (com, tensor) = (inertia.com().unwrap(), turn.transpose() * inertia.about_com() * turn);
    let mut out = String::from("<inertial>");
    out += &pose(rng, &Pose::new(turn, com), "");
    let _ = write!(out, "<mass>{:?}</mass><inertia>", inertia.mass);
    for (tag, at) in
        [("ixx", (0, 0)), ("ixy", (0, 1)), ("ixz", (0, 2)), ("iyy", (1, 1)), ("iyz", (1, 2)), ("izz", (2, 2))]
    {
        let _ = write!(out, "<{tag}>{:?}</{tag}>", tensor[at]);
    }
    out + "</inertia></inertial>"
}

/// Writes the mechanism as SDF: links in their own frames, and poses relative to the model, to other links, to joints and to
/// frames.
fn text(rng: &mut Rng, model: &MechanismBuilder) -> String {
    let place = rng.pose();
    let mut out = String::from("<sdf version='1.9'><world name='w'>");
    let g = model.gravity;
    let _ = write!(out, "<gravity>{:?} {:?} {:?}</gravity><model name='m'>", g.x, g.y, g.z);
    out += &pose(rng, &place, "");
    // Frames of the mechanism in the model frame, and frames of the SDF links in those of the mechanism.
    let mut frames = vec![("ground".to_owned(), place.inverse(), Pose::identity())];
    for joint in &model.joints {
        let parent = frames.iter().find(|f| f.0 == joint.parent).unwrap().1;
        let frame = parent * joint.origin;
        let mut own = rng.pose();
        if joint.joint_type == JointType::Spherical {
            // The coordinates of a ball joint are along the axes of the link.
            own.rotation = Matrix3::identity();
        }
        let link = frame * own;
        let inertia = model.links.iter().find(|l| l.name == joint.child).unwrap().inertia;
        let child = &joint.child;
        let _ = write!(out, "<link name='{child}'>");
        let others: Vec<_> = frames.iter().filter(|f| f.0 != "ground").collect();
        out += &match rng.below(4) {
            0 if !others.is_empty() => {
                let (name, frame, own) = others[rng.below(others.len())];
                let relative = (*frame * *own).inverse() * link;
                let attributes = format!("relative_to='{name}'");
                pose(rng, &relative, &attributes)
            }
            1 => {
                let attributes = format!("relative_to='mark_{child}'");
                pose(rng, &Pose::identity(), &attributes)
            }
            _ => pose(rng, &link, ""),
        };
        out += &match inertia {
            Some(inertia) => text_of_inertia(rng, &inertia.transformed(&own.inverse())),
            None => {
                "<inertial><mass>0</mass><inertia><ixx>0</ixx><iyy>0</iyy><izz>0</izz></inertia></inertial>"
                    .into()
            }
        };
        out += "</link>";
        let _ =
            write!(out, "<frame name='mark_{child}'>{}</frame>", pose(rng, &link, "relative_to='__model__'"));
        // The joint frame has its origin on the axis and any orientation.
        let turn = Pose::new(rng.rotation(), Vector3::zeros());
        let parent = if joint.parent == "ground" { "world".to_owned() } else { joint.parent.clone() };
        let parent = if parent != "world" && rng.chance(0.3) { format!("mark_at_{parent}") } else { parent };
        let axis = |tag: &str, axis: &Vector3<f64>| {
            let a = turn.rotation.tr_mul(axis);
            format!("<{tag}><xyz>{:?} {:?} {:?}</xyz></{tag}>", a.x, a.y, a.z)
        };
        let (kind, axes) = match &joint.joint_type {
            JointType::Fixed => ("fixed", String::new()),
            JointType::Revolute { axis: a } => ("revolute", axis("axis", a)),
            JointType::Prismatic { axis: a } => ("prismatic", axis("axis", a)),
            JointType::Helical { axis: a, pitch } => {
                let pitch =
                    format!("<screw_thread_pitch>{:?}</screw_thread_pitch>", pitch * std::f64::consts::TAU);
                ("screw", axis("axis", a) + &pitch)
            }
            JointType::Universal { axes: [a, b] } => ("universal", axis("axis", a) + &axis("axis2", b)),
            JointType::Spherical => ("ball", String::new()),
            other => panic!("{other:?}"),
        };
        let at = pose(rng, &(own.inverse() * turn), "");
        let _ = write!(
            out,
            "<joint name='{}' type='{kind}'>{at}<parent>{parent}</parent><child>{child}</child>{axes}</joint>",
            joint.name
        );
        // A frame attached to the link, as parent of other joints.
        let _ = write!(out, "<frame name='mark_at_{child}' attached_to='{child}'/>");
        frames.push((child.clone(), frame, own));
    }
    out + "</model></world></sdf>"
}

#[test]
fn random_mechanisms_move_alike() {
    let features = Features { base: Some(Base::Fixed), ..Features::PLAIN };
    let mut checked = 0;
    for mut case in cases(80, features) {
        let known = |j: &inertial::mechanism::JointSpec| {
            !matches!(
                j.joint_type,
                JointType::Planar { .. } | JointType::Cylindrical { .. } | JointType::Floating
            )
        };
        if !case.builder.joints.iter().all(known) {
            continue;
        }
        let text = text(&mut case.rng, &case.builder);
        let found = sdf::read(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let found = found.build(&BuildOptions::default()).unwrap();
        assert_eq!(found.nq(), case.mechanism.nq());
        let expected = reference_rnea(&case.mechanism, &case.q, &case.v, &case.a);
        // Poses pass through angles and quaternions: some dozen rounding errors.
        assert_close(&reference_rnea(&found, &case.q, &case.v, &case.a), &expected, 1e-9, &case.label);
        checked += 1;
        // New values are written and read back.
        let mut other = found.parameters();
        for block in found.parameter_blocks() {
            let inertia = case.rng.inertia();
            other[block.offset..block.offset + 10].copy_from_slice(inertia.parameters().as_slice());
        }
        let wanted = found.clone().with_parameters(&other).unwrap();
        let builder = sdf::read(&text).unwrap();
        let shares = changed_links(&builder, &found, &wanted).unwrap();
        let links: Vec<_> = shares.links.iter().map(|(name, inertia)| (name.as_str(), *inertia)).collect();
        let written = replace_inertias(&text, &links).unwrap();
        let again = sdf::read(&written).unwrap().build(&BuildOptions::default()).unwrap();
        assert_close(&again.parameters(), &other, 1e-9, "written");
    }
    assert!(checked > 20, "{checked}");
}

const ARM: &str = include_str!("../../../../fuzz/seeds/sdf/arm.sdf");

#[test]
fn sdf_files_are_read() {
    let model = read::model(ARM, &no_includes).unwrap();
    assert_eq!((model.root.as_str(), model.name.as_str()), ("world", "arm"));
    assert_eq!(model.gravity, vector![0.0, 0.0, -9.8]);
    let arm = model.build(&BuildOptions::default()).unwrap();
    assert_eq!((arm.nv(), arm.joints().len()), (2, 3));
    let joints = arm.joints();
    assert_eq!((joints[0].limits.upper, joints[0].limits.effort), (2.0, 50.0));
    assert_eq!((joints[0].dynamics.damping, joints[0].dynamics.friction), (0.5, 1.0));
    assert_eq!((joints[1].limits.upper, joints[1].limits.lower), (f64::INFINITY, f64::NEG_INFINITY));
    assert_eq!(joints[2].follows, Some(1));
    // The elbow is 0.05 m before the frame of its link, which is rotated by 90 degrees about x: y of the model is -z of the link.
    let lower = &arm.bodies()[arm.joints()[1].body];
    assert!((lower.placement.translation - vector![0.3, 0.0, 0.0]).amax() < 1e-12, "{lower:?}");
    assert!((lower.inertia.com().unwrap() - vector![0.15, 0.0, 0.0]).amax() < 0.05);
    let JointType::Revolute { axis } = lower.joint_type else { panic!("{lower:?}") };
    assert!((axis - vector![0.0, 0.0, -1.0]).amax() < 1e-9, "{axis}");
    assert_eq!(model.shapes.len(), 1);
}

#[test]
fn a_root_that_is_not_bolted_has_gravity_in_its_frame() {
    let text = "<sdf version='1.7'><model name='m'><pose>0 0 0 1.5707963267948966 0 0</pose><link name='a'/><link name='b'/>
        <joint name='j' type='continuous'><parent>a</parent><child>b</child><axis><xyz>0 0 1</xyz></axis></joint></model></sdf>";
    let model = sdf::read(text).unwrap();
    assert!((model.gravity - vector![0.0, -9.81, 0.0]).amax() < 1e-12, "{}", model.gravity);
    assert_eq!(model.root, "a");
    assert!(
        model.warnings[0].contains("1 kg") && model.warnings[0].starts_with("line 1"),
        "{:?}",
        model.warnings
    );
    // Before version 1.7 axes may be in the frame of the model.
    let old = "<sdf version='1.4'><model name='m'><link name='a'/><link name='b'><pose>0 0 0 1.5707963267948966 0 0</pose></link>
        <joint name='j' type='revolute'><parent>a</parent><child>b</child><axis><xyz>0 0 1</xyz>
        <use_parent_model_frame>1</use_parent_model_frame></axis></joint></model></sdf>";
    let JointType::Revolute { axis } = sdf::read(old).unwrap().joints[0].joint_type else { panic!() };
    assert!((axis - vector![0.0, 1.0, 0.0]).amax() < 1e-12, "{axis}");
}

#[test]
fn a_second_joint_to_a_link_closes_a_loop() {
    let text = "<sdf version='1.9'><model name='m'><link name='a'/><link name='b'><pose>1 0 0 0 0 0</pose></link>
        <link name='c'><pose>1 1 0 0 0 0</pose></link>
        <joint name='w' type='fixed'><parent>world</parent><child>a</child></joint>
        <joint name='j' type='revolute'><parent>a</parent><child>b</child><axis><xyz>0 0 1</xyz></axis></joint>
        <joint name='k' type='revolute'><parent>b</parent><child>c</child><axis><xyz>0 0 1</xyz></axis></joint>
        <joint name='l' type='ball'><pose>-1 0 0 0 0 0</pose><parent>a</parent><child>c</child></joint></model></sdf>";
    let model = sdf::read(text).unwrap();
    assert_eq!((model.joints.len(), model.loops.len()), (3, 1));
    assert_eq!(model.loops[0].predecessor.origin.translation, vector![0.0, 1.0, 0.0]);
    assert_eq!(model.loops[0].successor.origin.translation, vector![-1.0, 0.0, 0.0]);
}

#[test]
fn only_the_values_change() {
    let brick =
        Inertia::from_com(2.5, vector![0.5, 0.0, -0.25], Matrix3::from_diagonal(&vector![0.25, 0.5, 0.375]));
    let friction = Friction { damping: 0.25, friction: 1.0 };
    let out = replace_values(ARM, &[("upper", brick)], &[("shoulder", friction)]).unwrap();
    let expected = ARM
        .replace("<pose>0.15 0 0 0 0 0.1</pose>", "<pose>0.5 0.0 -0.25 0 0 0</pose>")
        .replace(
            "<mass>2.5</mass>\n          <inertia><ixx>0.01</ixx><ixy>0.001</ixy>",
            "<mass>2.5</mass>\n          <inertia><ixx>0.25</ixx><ixy>0.0</ixy>",
        )
        .replace("<iyy>0.05</iyy><iyz>0</iyz><izz>0.05</izz>", "<iyy>0.5</iyy><iyz>0</iyz><izz>0.375</izz>")
        .replace("<damping>0.5</damping>", "<damping>0.25</damping>");
    assert_eq!(out, expected);
    let out = replace_values(ARM, &[], &[("elbow", friction)]).unwrap();
    assert!(
        out.contains("<dynamics>") && sdf::read(&out).unwrap().joints[2].dynamics.damping == 0.25,
        "{out}"
    );
}

#[test]
fn wrong_texts_are_refused_in_one_line() {
    let model = |inside: &str| format!("<sdf version='1.9'><model name='m'>{inside}</model></sdf>");
    let joint =
        |inside: &str| model(&format!("<link name='a'/><link name='b'/>\n<joint name='j' {inside}</joint>"));
    for (text, expected) in [
        ("<sdf version='1.9'/>".to_owned(), "no <model>"),
        ("<sdf><include><uri>model://x</uri></include></sdf>".to_owned(), "gz sdf -p"),
        (model(""), "no <link>"),
        (model("<link name='a'/><model name='n'/>"), "a model inside a model"),
        (model("<link name='a'><pose>1 2 3</pose></link>"), "it has 3 numbers, expected 6"),
        (model("<link name='a'><pose>1 2 x 0 0 0</pose></link>"), "\"x\" is not a finite number"),
        (
            model(
                "<link name='a'><pose relative_to='z'>1 2 3 0 0 0</pose></link><link name='b'/><joint name='j' type='fixed'><parent>b</parent><child>a</child></joint>",
            ),
            "there is no link, joint or frame \"z\"",
        ),
        (model("<link name='a'/><link name='a'/>"), "the name is taken"),
        (
            model(
                "<link name='a'/><frame name='f'><pose relative_to='f'/></frame><link name='b'><pose relative_to='f'/></link><joint name='j' type='fixed'><parent>a</parent><child>b</child></joint>",
            ),
            "relative to itself",
        ),
        (
            joint("type='revolute'><parent>a</parent><child>c</child>"),
            "there is no link, joint or frame \"c\"",
        ),
        (joint("type='gearbox'><parent>a</parent><child>b</child>"), "a gearbox joint is not supported"),
        (joint("type='weld'><parent>a</parent><child>b</child>"), "unknown joint type \"weld\""),
        (joint("type='screw'><parent>a</parent><child>b</child>"), "screw_thread_pitch"),
        (joint("type='revolute'><parent>a</parent><child>world</child>"), "the world cannot be a child"),
        (
            joint("type='revolute'><parent>a</parent><child>b</child><axis><xyz>0 0 0</xyz></axis>"),
            "no length",
        ),
        (model("<link name='a'><inertial auto='true'/></link>"), "auto"),
    ] {
        let error = sdf::read(&text).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}\n{text}");
    }
}

#[test]
fn faults_that_gazebo_tolerates_are_read_with_warnings() {
    let text = format!("\n{}", ARM.replace("<sdf", "<!-- a -- b --><sdf"));
    let text = text.replace("\"upper\"", "\"up&er\"").replace(">upper<", ">up&er<");
    let model = sdf::read(&text).unwrap();
    let has = |words: &str| model.warnings.iter().any(|w| w.contains(words));
    assert!(has("& is not escaped") && has("line 3: a comment has -- inside"), "{:?}", model.warnings);
    assert!(has("line 2: blank lines before <?xml"), "{:?}", model.warnings);
    let brick = Inertia::from_com(2.5, vector![0.5, 0.0, -0.25], Matrix3::identity());
    let written = replace_values(&text, &[("up&er", brick)], &[]).unwrap();
    let again = sdf::read(&written).unwrap();
    assert_eq!(again.links.iter().find(|l| l.name == "up&er").unwrap().inertia.unwrap().mass, 2.5);
    assert!(written.starts_with('\n') && written.contains("<!-- a -- b -->") && !written.contains("up&er"));
}
