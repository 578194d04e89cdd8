//! Mechanisms with loops described in other link frames, units and world frames: the answer must transform with the description.

#![allow(clippy::unwrap_used)]

use crate::common::Rng;
use crate::machines::{self, Blueprint, Ring};
use inertial::identifiability::{Analysis, AnalyzeOptions, analyze};
use inertial::mechanism::{BuildOptions, JointType, Mechanism, MechanismBuilder};
use inertial::spatial::{Inertia, Parameters, Pose};
use nalgebra::{DMatrix, Vector3};

fn plans() -> Vec<Blueprint> {
    let rng = &mut Rng(91);
    let rings = [
        machines::four_bar(rng),
        machines::slider_crank(rng),
        machines::spherical_linkage(rng),
        Ring::new("parallelogram", rng, machines::planar(&[(0.0, 0.0), (0.1, 0.4), (0.9, 0.4), (0.8, 0.0)])),
        machines::random_spatial_ring(rng),
        machines::random_spatial_ring(rng),
        machines::random_spatial_ring(rng),
    ];
    let mut out: Vec<Blueprint> = rings
        .iter()
        .map(|ring| {
            let cut = rng.below(ring.joints.len());
            ring.cut_blueprint(cut, &[])
        })
        .collect();
    out.extend([machines::three_rrr(rng), machines::floating_leg(rng), machines::geared_five_bar(rng)]);
    out
}

fn turned_axes(joint_type: JointType, turn: impl Fn(&Vector3<f64>) -> Vector3<f64>) -> JointType {
    match joint_type {
        JointType::Revolute { axis } => JointType::Revolute { axis: turn(&axis) },
        JointType::Prismatic { axis } => JointType::Prismatic { axis: turn(&axis) },
        JointType::Helical { axis, pitch } => JointType::Helical { axis: turn(&axis), pitch },
        JointType::Cylindrical { axis } => JointType::Cylindrical { axis: turn(&axis) },
        JointType::Planar { normal } => JointType::Planar { normal: turn(&normal) },
        JointType::Universal { axes } => JointType::Universal { axes: axes.map(|a| turn(&a)) },
        other => other,
    }
}

/// Turns every link's frame; gives the pose of each new frame in the old one.
fn reframed(builder: &MechanismBuilder, rng: &mut Rng) -> (MechanismBuilder, Vec<(String, Pose<f64>)>) {
    let mut out = builder.clone();
    let mut frames: Vec<(String, Pose<f64>)> = Vec::new();
    let of = |frames: &[(String, Pose<f64>)], link: &str| {
        frames.iter().find(|f| f.0 == link).map_or_else(Pose::identity, |f| f.1)
    };
    for joint in &mut out.joints {
        let own = Pose::new(rng.rotation(), Vector3::zeros());
        joint.joint_type = turned_axes(joint.joint_type, |v| own.rotation.tr_mul(v));
        joint.origin = of(&frames, &joint.parent).inverse() * joint.origin * own;
        frames.push((joint.child.clone(), own));
    }
    for closing in &mut out.loops {
        for end in [&mut closing.predecessor, &mut closing.successor] {
            end.origin = of(&frames, &end.link).inverse() * end.origin;
        }
    }
    for rotor in &mut out.rotors {
        rotor.origin = of(&frames, &rotor.carrier).inverse() * rotor.origin;
    }
    (out, frames)
}

/// The same machine in another unit of length.
fn rescaled(builder: &MechanismBuilder, factor: f64) -> MechanismBuilder {
    let mut out = builder.clone();
    let scale = |pose: &mut Pose<f64>| pose.translation *= factor;
    for joint in &mut out.joints {
        scale(&mut joint.origin);
        if let JointType::Helical { pitch, .. } = &mut joint.joint_type {
            *pitch *= factor;
        }
    }
    for closing in &mut out.loops {
        scale(&mut closing.predecessor.origin);
        scale(&mut closing.successor.origin);
        if let JointType::Helical { pitch, .. } = &mut closing.joint_type {
            *pitch *= factor;
        }
    }
    out.rotors.iter_mut().for_each(|r| scale(&mut r.origin));
    out
}

/// The same machine, with its ground and gravity turned together.
fn in_another_world(builder: &MechanismBuilder, rng: &mut Rng) -> MechanismBuilder {
    let mut out = builder.clone();
    let world = Pose::new(rng.rotation(), rng.vector(0.5));
    out.gravity = world.rotation * out.gravity;
    let root = out.root.clone();
    out.joints.iter_mut().filter(|j| j.parent == root).for_each(|j| j.origin = world * j.origin);
    for closing in &mut out.loops {
        for end in [&mut closing.predecessor, &mut closing.successor] {
            if end.link == root {
                end.origin = world * end.origin;
            }
        }
    }
    out.rotors.iter_mut().filter(|r| r.carrier == root).for_each(|r| r.origin = world * r.origin);
    out
}

/// Checks that what one description cannot tell apart, the other cannot either.
fn assert_same(name: &str, a: &Analysis, b: &Analysis, to_b: impl Fn(&[f64]) -> Vec<f64>) {
    assert_eq!(
        (a.rank, a.certificate.exact),
        (b.rank, b.certificate.exact),
        "{name}: {:?} {:?}",
        a.certificate,
        b.certificate
    );
    let rows = |analysis: &Analysis| {
        let mut out = DMatrix::zeros(analysis.rank, analysis.parameters);
        for (r, combination) in analysis.regrouping.combinations.iter().enumerate() {
            combination.iter().for_each(|&(c, x)| out[(r, c)] = x);
        }
        out
    };
    // Parameters that a takes for equivalent: a random vector, and the same with base parameters only.
    let rng = &mut Rng(7);
    let seen = rows(b);
    for _ in 0..4 {
        let given = rng.values(a.parameters, 1.0);
        let other = a
            .regrouping
            .expand(&a.regrouping.regroup(&given).unwrap(), &rng.values(a.parameters, 1.0))
            .unwrap();
        let difference: Vec<f64> = given.iter().zip(&other).map(|(x, y)| x - y).collect();
        let image = to_b(&difference);
        let largest = image.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        for row in seen.row_iter() {
            let (mut sum, mut size) = (0.0, 0.0);
            for (x, y) in row.iter().zip(&image) {
                sum += x * y;
                size += (x * y).abs();
            }
            // Coefficients are rounded once; where all terms should vanish, what is left is rounding of the largest.
            let floor = 1e-3 * largest * row.amax();
            assert!(sum.abs() <= 1e-9 * size.max(floor), "{name}: {sum:e} of {size:e}");
        }
    }
}

fn answer(builder: &MechanismBuilder) -> (Mechanism, Analysis) {
    let robot = builder.build(&BuildOptions::default()).unwrap();
    let analysis =
        analyze(&robot, &AnalyzeOptions::default()).unwrap_or_else(|e| panic!("{}: {e}", builder.name));
    (robot, analysis)
}

fn by_block(robot: &Mechanism, p: &[f64], change: impl Fn(&str, Inertia<f64>) -> Inertia<f64>) -> Vec<f64> {
    let mut out = p.to_vec();
    for block in robot.parameter_blocks().iter().filter(|b| b.len == 10) {
        let own = Parameters::from_iterator(p[block.offset..block.offset + 10].iter().copied());
        let new = change(&robot.bodies()[block.body].name, Inertia::from_parameters(&own)).parameters();
        out[block.offset..block.offset + 10].copy_from_slice(new.as_slice());
    }
    out
}

#[test]
fn link_frames() {
    let rng = &mut Rng(92);
    for plan in plans() {
        let (robot, a) = answer(&plan.builder);
        let (other, frames) = reframed(&plan.builder, rng);
        let (_, b) = answer(&other);
        assert_same(&plan.builder.name, &a, &b, |p| {
            by_block(&robot, p, |name, inertia| {
                let own = frames.iter().find(|f| f.0 == name).map_or_else(Pose::identity, |f| f.1);
                inertia.transformed(&own.inverse())
            })
        });
    }
}

#[test]
fn units_of_length() {
    for plan in plans() {
        let (robot, a) = answer(&plan.builder);
        for factor in [1e3, 1e-3] {
            let (_, b) = answer(&rescaled(&plan.builder, factor));
            assert_same(&plan.builder.name, &a, &b, |p| {
                by_block(&robot, p, |_, inertia| Inertia {
                    mass: inertia.mass,
                    first_moment: inertia.first_moment * factor,
                    rotational: inertia.rotational * (factor * factor),
                })
            });
        }
    }
}

#[test]
fn world_frames() {
    let rng = &mut Rng(93);
    for plan in plans() {
        let (_, a) = answer(&plan.builder);
        let (_, b) = answer(&in_another_world(&plan.builder, rng));
        assert_same(&plan.builder.name, &a, &b, <[f64]>::to_vec);
    }
}
