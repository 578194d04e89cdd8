//! Identifiability of models whose numbers are rounded in various formats.

#![allow(clippy::unwrap_used)]

use crate::common::Rng;
use inertial::identifiability::{AnalyzeOptions, analyze};
use inertial::mechanism::{BuildOptions, Mechanism, read};
use nalgebra::{Isometry3, UnitQuaternion, Vector3, vector};

fn urdf(text: &str) -> Mechanism {
    read::model(text, &read::no_includes).unwrap().build(&BuildOptions::default()).unwrap()
}

/// Model files often contain π with twelve digits, and sometimes right angles with a wrong last digit.
#[test]
fn angles_with_twelve_digits_are_rounded() {
    for (first, second) in [
        ("0 3.14159265359 0", "-1.57079632679 0 3.14159265359"),
        ("0 3.14159265359 0", "1.570796325 0 0"),
        ("3.14159265359 0 1.57079632679", "1.5707963 0 -3.1415927"),
    ] {
        let text = format!(
            r#"<robot name="arm"><link name="base"/>
            <link name="a"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
            <link name="b"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
            <joint name="j1" type="continuous"><parent link="base"/><child link="a"/><origin rpy="{first}" xyz="0 0 0.15675"/>
            <axis xyz="0 0 1"/></joint>
            <joint name="j2" type="continuous"><parent link="a"/><child link="b"/><origin rpy="{second}" xyz="0 0.0016 -0.11875"/>
            <axis xyz="0 0 1"/></joint></robot>"#
        );
        let answer = analyze(&urdf(&text), &AnalyzeOptions::default()).unwrap();
        assert!(answer.certificate.exact, "{first}: {:?}", answer.certificate);
        assert_eq!(answer.rank, 8, "{first}, {second}");
    }
}

/// Files with a fixed number of significant digits (`%.6g`) had the resolution of their smallest number, and 13 or 14 digits counted as
/// full precision: arms in arbitrary frames were certified with a rank too high.
#[test]
fn numbers_of_any_format_keep_the_rank_of_an_arm_in_arbitrary_frames() {
    let axes: [(Vector3<f64>, Vector3<f64>); 6] = [
        (Vector3::z(), vector![0.0, 0.0, 0.089]),
        (Vector3::y(), vector![0.0, 0.136, 0.089]),
        (Vector3::y(), vector![0.425, 0.017, 0.089]),
        (Vector3::y(), vector![0.817, 0.017, 0.089]),
        (Vector3::z(), vector![0.817, 0.11, 0.089]),
        (Vector3::y(), vector![0.817, 0.11, -0.006]),
    ];
    let formats = (5..=15).flat_map(|n| [(n, true), (n, false)]);
    for seed in 0..4 {
        let mut rng = Rng(90 + seed);
        // Frames with their third axis along the joint, turned and shifted arbitrarily about and along it.
        let mut between = vec![Isometry3::identity()];
        for (u, p) in axes {
            let along = UnitQuaternion::rotation_between(&Vector3::z(), &u).unwrap();
            let turn =
                along * UnitQuaternion::from_axis_angle(&Vector3::z_axis(), 3.0 * rng.range(-1.0, 1.0));
            between.push(Isometry3::from_parts((p + 0.2 * rng.range(-1.0, 1.0) * u).into(), turn));
        }
        for (n, significant) in formats.clone() {
            let written = |x: &f64| if significant { format!("{x:.*e}", n - 1) } else { format!("{x:.n$}") };
            let list = |x: &[f64]| x.iter().map(written).collect::<Vec<_>>().join(" ");
            let link = |i: usize| {
                let (pose, parent) = (between[i - 1].inverse() * between[i], i - 1);
                let (roll, pitch, yaw) = pose.rotation.euler_angles();
                let (xyz, rpy) = (list(pose.translation.vector.as_slice()), list(&[roll, pitch, yaw]));
                format!(
                    r#"<link name="b{i}"/>
                    <joint name="j{i}" type="continuous"><parent link="b{parent}"/><child link="b{i}"/>
                    <origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="0 0 1"/></joint>"#
                )
            };
            let links: String = (1..between.len()).map(link).collect();
            let arm = urdf(&format!(r#"<robot name="arm"><link name="b0"/>{links}</robot>"#));
            let answer = analyze(&arm, &AnalyzeOptions::default()).unwrap();
            assert_eq!(
                (answer.rank, answer.certificate.exact),
                (36, true),
                "{seed}, {n} {significant}: {:?}",
                answer.warnings
            );
        }
    }
}
