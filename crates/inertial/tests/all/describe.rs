//! Models of every format, written as mechanism files, read back as the same mechanism.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::{Features, Rng, cases};
use inertial::mechanism::read;
use inertial::mechanism::write::{Syntax, describe};
use inertial::mechanism::{Base, BuildOptions, Mechanism, MechanismBuilder, builtin};

/// Several rounding errors of numbers of order one.
const ROUNDING: f64 = 1e-13;

fn assert_same(found: &Mechanism, expected: &Mechanism) {
    assert_eq!((found.nq(), found.nv()), (expected.nq(), expected.nv()));
    assert_eq!(found.parameter_names(), expected.parameter_names());
    assert_eq!(found.position_names(), expected.position_names());
    assert_eq!(found.gravity(), expected.gravity());
    assert_eq!(found.assembly(), expected.assembly());
    assert_eq!(found.armature(), expected.armature());
    for (a, b) in found.bodies().iter().zip(expected.bodies()) {
        assert_eq!((&a.name, a.kind, a.parent, a.drive), (&b.name, b.kind, b.parent, b.drive));
        assert_eq!(a.joint_type, b.joint_type, "{}", a.name);
        let error = (a.placement.rotation - b.placement.rotation).amax();
        let shift = (a.placement.translation - b.placement.translation).amax();
        assert!(error < ROUNDING && shift < ROUNDING, "{}: {error:e} {shift:e}", a.name);
        let (p, q) = (a.inertia.parameters(), b.inertia.parameters());
        assert!((p - q).amax() <= ROUNDING * q.amax(), "{}: {p} {q}", a.name);
    }
    for (a, b) in found.joints().iter().zip(expected.joints()) {
        assert_eq!((&a.name, a.limits, a.dynamics), (&b.name, b.limits, b.dynamics));
    }
    assert_eq!(found.loops().len(), expected.loops().len());
    for (a, b) in found.loops().iter().zip(expected.loops()) {
        assert_eq!((&a.name, a.joint_type), (&b.name, b.joint_type));
        for (a, b) in [(&a.predecessor, &b.predecessor), (&a.successor, &b.successor)] {
            assert_eq!(a.body, b.body);
            assert!((a.pose.translation - b.pose.translation).amax() < ROUNDING);
            assert!((a.pose.rotation - b.pose.rotation).amax() < ROUNDING);
        }
    }
    assert_eq!(found.wheels(), expected.wheels());
}

fn check(model: &MechanismBuilder, options: &BuildOptions) {
    let expected = model.build(options).unwrap();
    for syntax in [Syntax::Toml, Syntax::Json] {
        let text = describe(model, options.base, syntax).unwrap();
        let again = read::file::read(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_same(&again.build(options).unwrap(), &expected);
    }
}

#[test]
fn random_mechanisms_are_described_whole() {
    for case in cases(60, Features::ALL) {
        check(&case.builder, &BuildOptions::default());
    }
}

#[test]
fn files_of_every_format_are_described_whole() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    for name in ["urdf/arm.urdf", "urdf/loop.urdf", "mjcf/walker.xml", "sdf/arm.sdf", "mechanism/dh.toml"] {
        let text = std::fs::read_to_string(seeds.join(name)).unwrap();
        check(&read::model(&text, &read::no_includes).unwrap(), &BuildOptions::default());
    }
    for name in builtin::names() {
        let text = builtin::text(name).unwrap();
        check(&read::model(&text, &read::no_includes).unwrap(), &BuildOptions::default());
    }
}

#[test]
fn a_floating_root_link_keeps_its_name() {
    let text = r#"<robot name="r"><link name="trunk"><inertial><mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1"
        iyz="0" izz="1"/></inertial></link><link name="leg"/><joint name="root" type="revolute"><parent link="trunk"/>
        <child link="leg"/><origin xyz="0.1 0 0" rpy="1.5708 0 0.3"/><limit lower="-1" upper="2" effort="0" velocity="0"/></joint></robot>"#;
    let model = read::urdf::read(text).unwrap();
    check(&model, &BuildOptions::default());
    check(&model, &BuildOptions::default().with(|o| o.base = Some(Base::Floating)));
    // Angles keep their few digits, which define their rounding interval.
    assert!(describe(&model, None, Syntax::Toml).unwrap().contains("rpy = [1.5708, 0.0, 0.3]"));
}

#[test]
fn links_that_cannot_be_described_are_refused_in_one_line() {
    let text = r#"<robot name="r"><link name="a"/><link name="ground"/><joint name="j" type="revolute"><parent link="a"/>
        <child link="ground"/></joint></robot>"#;
    let error = describe(&read::urdf::read(text).unwrap(), None, Syntax::Json).unwrap_err().to_string();
    assert!(error.contains("link \"ground\"") && !error.contains('\n'), "{error}");
    let mut model = MechanismBuilder::new("m", "base");
    let mut inertia = Rng(1).inertia();
    inertia.mass = 0.0;
    model.links.push(inertial::mechanism::LinkSpec {
        name: "base".into(),
        inertia: Some(inertia),
        line: None,
    });
    let error = describe(&model, None, Syntax::Json).unwrap_err().to_string();
    assert!(error.contains("first moments without mass"), "{error}");
}
