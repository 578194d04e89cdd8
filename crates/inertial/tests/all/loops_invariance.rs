//! Results for mechanisms with loops transform with the description: other link frames, units, world frames, orders, roots and
//! cuts.

#![allow(clippy::unwrap_used)]

use crate::common::{Features, Rng, cases};
use crate::machines::{self, Blueprint, HINGE, Ring, Web};
use inertial::dynamics::{Workspace, forward_kinematics};
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

/// Rotates the frame of every link; returns the pose of each new frame in the old one.
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

/// Returns the machine in another unit of length.
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

/// Returns the machine with ground and gravity rotated together.
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

/// Asserts that two analyses have the same null space; `to_b` maps parameters of the first description to the second.
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
    // Parameters that are equivalent in a: a random vector, and another one with the same base parameters.
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
            // Coefficients are rounded once; if all terms vanish, the remainder is the rounding error of the largest one.
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

/// Returns the parameter map between two descriptions with the same body names and the same placement of the bodies at zero.
fn by_name<'a>(a: &'a Mechanism, b: &'a Mechanism) -> impl Fn(&[f64]) -> Vec<f64> + 'a {
    let poses = |m: &Mechanism| {
        let mut workspace = Workspace::new(m);
        forward_kinematics(m, &mut workspace, &m.neutral()).unwrap();
        workspace.poses().to_vec()
    };
    let (from, to) = (poses(a), poses(b));
    move |p| {
        let mut out = vec![f64::NAN; b.parameter_count()];
        for block in b.parameter_blocks() {
            let name = &b.bodies()[block.body].name;
            let other = a.parameter_blocks().iter().find(|o| a.bodies()[o.body].name == *name).unwrap();
            let own = &p[other.offset..other.offset + other.len];
            let own = if block.len == 10 {
                let own = Inertia::from_parameters(&Parameters::from_column_slice(own));
                let world = own.transformed(&from[other.body]);
                world.transformed(&to[block.body].inverse()).parameters().as_slice().to_vec()
            } else {
                own.to_vec()
            };
            out[block.offset..block.offset + block.len].copy_from_slice(&own);
        }
        out
    }
}

fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for k in (1..items.len()).rev() {
        items.swap(k, rng.below(k + 1));
    }
}

/// Returns the description with all elements in random order.
fn shuffled(builder: &MechanismBuilder, rng: &mut Rng) -> MechanismBuilder {
    let mut out = builder.clone();
    shuffle(&mut out.links, rng);
    shuffle(&mut out.joints, rng);
    shuffle(&mut out.loops, rng);
    shuffle(&mut out.rotors, rng);
    out
}

#[test]
fn order_of_bodies() {
    let rng = &mut Rng(94);
    let open = cases(40, Features::LINEAR);
    let builders = plans().into_iter().map(|p| p.builder).chain(open.into_iter().map(|c| c.builder.clone()));
    for builder in builders {
        let (one, a) = answer(&builder);
        let (other, b) = answer(&shuffled(&builder, rng));
        assert_same(&builder.name, &a, &b, by_name(&one, &other));
    }
}

#[test]
fn world_frames_of_open_chains() {
    let rng = &mut Rng(95);
    for case in cases(40, Features::LINEAR) {
        let (_, a) = answer(&case.builder);
        let (_, b) = answer(&in_another_world(&case.builder, rng));
        assert_same(&case.builder.name, &a, &b, <[f64]>::to_vec);
    }
}

#[test]
fn cut_joints() {
    let rng = &mut Rng(96);
    let universal = JointType::Universal { axes: [Vector3::x(), Vector3::new(0.0, 0.8, 0.6)] };
    let hinge = |axis| JointType::Revolute { axis };
    for ring in [
        machines::four_bar(rng),
        machines::slider_crank(rng),
        machines::spherical_linkage(rng),
        Ring::new("parallelogram", rng, machines::planar(&[(0.0, 0.0), (0.1, 0.4), (0.9, 0.4), (0.8, 0.0)])),
        machines::random_ring(
            rng,
            &[hinge(Vector3::x()), universal, JointType::Spherical, hinge(Vector3::z())],
        ),
        machines::random_spatial_ring(rng),
        machines::random_spatial_ring(rng),
    ] {
        let (first, a) = answer(&ring.cut_blueprint(0, &[]).builder);
        for cut in 1..ring.joints.len() {
            let (other, b) = answer(&ring.cut_blueprint(cut, &[]).builder);
            assert_same(&format!("{} cut at {cut}", ring.name), &a, &b, by_name(&first, &other));
        }
    }
}

/// The result for a floating machine does not depend on the body that carries the floating joint.
#[test]
fn roots() {
    let rng = &mut Rng(97);
    let hinge = |rng: &mut Rng| JointType::Revolute { axis: rng.axis() };
    let slider = |rng: &mut Rng| JointType::Prismatic { axis: rng.axis() };
    let mut webs = Vec::new();
    for _ in 0..4 {
        let bodies = ["a", "b", "c", "d", "e"];
        let joints: Vec<(&str, &str, JointType, Pose<f64>)> = (1..bodies.len())
            .map(|k| {
                let kind = match rng.below(4) {
                    0 => slider(rng),
                    1 => JointType::Spherical,
                    _ => hinge(rng),
                };
                (bodies[rng.below(k)], bodies[k], kind, rng.pose())
            })
            .collect();
        webs.push(Web::new("tree", rng, &joints));
    }
    let at = |x: f64, y: f64| Pose::from_translation(Vector3::new(x, y, 0.1));
    let four_bar = [
        ("a", "b", HINGE, at(0.0, 0.0)),
        ("b", "c", HINGE, at(0.1, 0.4)),
        ("c", "d", HINGE, at(0.9, 0.6)),
        ("d", "a", HINGE, at(0.8, -0.1)),
        ("c", "e", hinge(rng), rng.pose()),
    ];
    webs.push(Web::new("four-bar", rng, &four_bar));
    for web in webs {
        let rooted = |root: &str| {
            let mut held = Web { name: web.name.clone(), joints: Vec::new(), inertias: web.inertias.clone() };
            held.joints.push(("ground".into(), root.into(), JointType::Floating, Pose::identity()));
            held.joints.extend(web.joints.iter().cloned());
            let order: Vec<usize> = (0..held.joints.len()).collect();
            let robot = held.build(&order);
            let answer = analyze(&robot, &AnalyzeOptions::default()).unwrap();
            (robot, answer)
        };
        let (first, a) = rooted("a");
        for root in ["b", "c", "d", "e"] {
            let (other, b) = rooted(root);
            assert_same(&format!("{} held by {root}", web.name), &a, &b, by_name(&first, &other));
        }
    }
}
