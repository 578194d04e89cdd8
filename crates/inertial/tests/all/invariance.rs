//! Different descriptions of the same robot have the same dynamics.

use std::collections::HashMap;

use crate::common::{Features, Rng, assert_close, cases, reference_regressor, reference_rnea};
use inertial::dynamics::{Workspace, bias_forces, forward_dynamics, mass_matrix};
use inertial::mechanism::{
    BuildOptions, JointSpec, JointType, LinkSpec, Mechanism, MechanismBuilder, RotorModel,
};
use inertial::spatial::{Pose, transfer_matrix};
use nalgebra::DMatrix;

/// Rounding errors of a few chained frame changes and of the recursions.
const ROUNDING: f64 = 1e-11;

fn build(builder: &MechanismBuilder) -> Mechanism {
    builder.build(&BuildOptions::default()).expect("a valid mechanism")
}

/// Asserts that two mechanisms with the same coordinates have equal forces and accelerations.
fn assert_same_dynamics(a: &Mechanism, b: &Mechanism, rng: &mut Rng) {
    assert_eq!((a.nq(), a.nv()), (b.nq(), b.nv()));
    let q = rng.positions(a);
    let (v, acceleration) = (rng.values(a.nv(), 2.0), rng.values(a.nv(), 4.0));
    let tau = reference_rnea(a, &q, &v, &acceleration);
    assert_close(&reference_rnea(b, &q, &v, &acceleration), &tau, ROUNDING, "torque");
    let [first, second] = [a, b].map(|m| {
        let n = m.nv();
        let mut workspace = Workspace::new(m);
        let (mut h, mut bias, mut forward) = (vec![0.0; n * n], vec![0.0; n], vec![0.0; n]);
        mass_matrix(m, &mut workspace, &q, &mut h).expect("sizes match");
        bias_forces(m, &mut workspace, &q, &v, &mut bias).expect("sizes match");
        forward_dynamics(m, &mut workspace, &q, &v, &tau, &mut forward).expect("sizes match");
        (h, bias, forward)
    });
    assert_close(&first.0, &second.0, ROUNDING, "mass matrix");
    assert_close(&first.1, &second.1, ROUNDING, "bias forces");
    // The condition number of the mass matrix multiplies the rounding errors.
    assert_close(&first.2, &second.2, 1e-8, "acceleration");
}

/// Returns the torque regressors of two mechanisms at the same random state.
fn regressors(a: &Mechanism, b: &Mechanism, rng: &mut Rng) -> [DMatrix<f64>; 2] {
    let q = rng.positions(a);
    let (v, acceleration) = (rng.values(a.nv(), 2.0), rng.values(a.nv(), 4.0));
    [a, b].map(|m| reference_regressor(m, &q, &v, &acceleration))
}

/// Splits each link with inertia into itself and two pieces fixed to it, and attaches the following joints to one of them.
fn split(builder: &MechanismBuilder, rng: &mut Rng) -> MechanismBuilder {
    let mut out = MechanismBuilder { links: Vec::new(), joints: Vec::new(), ..builder.clone() };
    let mut seats: HashMap<&str, (String, Pose<f64>)> = HashMap::new();
    for link in &builder.links {
        let mut rest = link.clone();
        let mut places = vec![(link.name.clone(), Pose::identity())];
        if let Some(inertia) = &mut rest.inertia {
            for k in 0..2 {
                let (name, pose, piece) = (format!("{}.{k}", link.name), rng.pose(), rng.inertia());
                *inertia = *inertia - piece.transformed(&pose);
                out.links.push(LinkSpec { name: name.clone(), inertia: Some(piece), line: None });
                out.joints.push(JointSpec::new(&name, JointType::Fixed, &link.name, &name).at(pose));
                places.push((name, pose));
            }
        }
        out.links.push(rest);
        seats.insert(&link.name, places.swap_remove(rng.below(places.len())));
    }
    for joint in &builder.joints {
        let mut joint = joint.clone();
        if let Some((name, pose)) = seats.get(joint.parent.as_str()) {
            joint.parent.clone_from(name);
            joint.origin = pose.inverse() * joint.origin;
        }
        out.joints.push(joint);
    }
    for rotor in &mut out.rotors {
        if let Some((name, pose)) = seats.get(rotor.carrier.as_str()) {
            rotor.carrier.clone_from(name);
            rotor.origin = pose.inverse() * rotor.origin;
        }
    }
    out
}

#[test]
fn split_links_are_lumped_to_the_same_bodies() {
    for mut case in cases(200, Features::ALL) {
        let again = build(&split(&case.builder, &mut case.rng));
        assert_eq!(again.parameter_names(), case.mechanism.parameter_names());
        assert_close(&again.parameters(), &case.mechanism.parameters(), ROUNDING, "parameters");
        assert_same_dynamics(&case.mechanism, &again, &mut case.rng);
        let [a, b] = regressors(&case.mechanism, &again, &mut case.rng);
        assert_close(a.as_slice(), b.as_slice(), ROUNDING, "regressor");
    }
}

/// Lumps fixed links without the builder: adds the inertia of each welded link to its parent and removes the link.
fn lumped(builder: &MechanismBuilder) -> MechanismBuilder {
    let mut out = builder.clone();
    while let Some(w) = out.joints.iter().position(|j| j.joint_type == JointType::Fixed) {
        let weld = out.joints.remove(w);
        let child = out.links.iter().position(|l| l.name == weld.child).expect("a child");
        let child = out.links.remove(child);
        if let Some(link) = out.links.iter_mut().find(|l| l.name == weld.parent) {
            let moved = child.inertia.map(|i| i.transformed(&weld.origin));
            link.inertia = match (link.inertia, moved) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            };
        }
        let followers = out.joints.iter_mut().filter(|j| j.parent == weld.child);
        for (parent, origin) in followers.map(|j| (&mut j.parent, &mut j.origin)).chain(
            out.rotors
                .iter_mut()
                .filter(|r| r.carrier == weld.child)
                .map(|r| (&mut r.carrier, &mut r.origin)),
        ) {
            parent.clone_from(&weld.parent);
            *origin = weld.origin * *origin;
        }
    }
    out
}

#[test]
fn lumping_by_hand_gives_the_same_bodies() {
    let mut compared = 0;
    for mut case in cases(200, Features::ALL) {
        let by_hand = build(&lumped(&case.builder));
        // Joints that were attached to a welded link may be numbered in another order: compare by name.
        let (mut a, mut b) = (case.mechanism.parameter_names(), by_hand.parameter_names());
        let same_order = a == b;
        a.sort();
        b.sort();
        assert_eq!(a, b);
        if same_order && case.mechanism.velocity_names() == by_hand.velocity_names() {
            assert_close(&by_hand.parameters(), &case.mechanism.parameters(), ROUNDING, "parameters");
            assert_same_dynamics(&case.mechanism, &by_hand, &mut case.rng);
            compared += 1;
        }
    }
    assert!(compared > 100, "only {compared} mechanisms kept their order");
}

/// Returns an equivalent frame of a link: anywhere along the axis of a rotation, anywhere at all for a translation.
fn equivalent_frame(joint_type: &JointType, rng: &mut Rng) -> Option<(JointType, Pose<f64>)> {
    let mut pose = rng.pose();
    let slip = rng.range(-1.0, 1.0);
    let turned = |axis, pose: &Pose<f64>| pose.rotation.tr_mul(&axis);
    let joint_type = match *joint_type {
        JointType::Fixed => JointType::Fixed,
        JointType::Prismatic { axis } => JointType::Prismatic { axis: turned(axis, &pose) },
        JointType::Revolute { axis } => {
            pose.translation = axis * slip;
            JointType::Revolute { axis: turned(axis, &pose) }
        }
        JointType::Helical { axis, pitch } => {
            pose.translation = axis * slip;
            JointType::Helical { axis: turned(axis, &pose), pitch }
        }
        JointType::Cylindrical { axis } => {
            pose.translation = axis * slip;
            JointType::Cylindrical { axis: turned(axis, &pose) }
        }
        JointType::Universal { axes } => {
            pose.translation.fill(0.0);
            JointType::Universal { axes: axes.map(|axis| turned(axis, &pose)) }
        }
        // The velocities of the other joint types are components in the frame itself.
        _ => return None,
    };
    Some((joint_type, pose))
}

#[test]
fn another_link_frame_changes_only_the_names_of_the_numbers() {
    let mut moved_blocks = 0;
    for mut case in cases(200, Features::ALL) {
        let mut other = case.builder.clone();
        let mut frames: HashMap<String, Pose<f64>> = HashMap::new();
        for k in 0..other.joints.len() {
            let Some((joint_type, pose)) = equivalent_frame(&other.joints[k].joint_type, &mut case.rng)
            else {
                continue;
            };
            let child = other.joints[k].child.clone();
            other.joints[k].joint_type = joint_type;
            other.joints[k].origin = other.joints[k].origin * pose;
            let back = pose.inverse();
            for link in other.links.iter_mut().filter(|l| l.name == child) {
                link.inertia = link.inertia.map(|i| i.transformed(&back));
            }
            for joint in other.joints.iter_mut().filter(|j| j.parent == child) {
                joint.origin = back * joint.origin;
            }
            for rotor in other.rotors.iter_mut().filter(|r| r.carrier == child) {
                rotor.origin = back * rotor.origin;
            }
            frames.insert(child, pose);
        }
        let other = build(&other);
        assert_same_dynamics(&case.mechanism, &other, &mut case.rng);
        // τ = Y π = Y B π′: the regressor changes by the transfer matrix of each body.
        let [mut y, found] = regressors(&case.mechanism, &other, &mut case.rng);
        for block in other.parameter_blocks() {
            if let Some(pose) = frames.get(&other.bodies()[block.body].name) {
                let mut columns = y.columns_mut(block.offset, block.len);
                let moved = columns.clone_owned() * transfer_matrix(pose);
                columns.copy_from(&moved);
                moved_blocks += 1;
            }
        }
        assert_close(found.as_slice(), y.as_slice(), ROUNDING, "regressor");
    }
    assert!(moved_blocks > 400, "only {moved_blocks} bodies have another frame");
}

#[test]
fn a_universal_joint_is_two_revolute_joints() {
    let mut seen = 0;
    for mut case in cases(200, Features::ALL) {
        let mut two = case.builder.clone();
        for k in (0..two.joints.len()).rev() {
            let JointType::Universal { axes } = two.joints[k].joint_type else { continue };
            seen += 1;
            let cross = format!("cross{k}");
            two.links.push(LinkSpec { name: cross.clone(), inertia: None, line: None });
            two.massless.insert(cross.clone());
            let mut first = two.joints[k].clone();
            first.name.push('a');
            first.child.clone_from(&cross);
            first.joint_type = JointType::Revolute { axis: axes[0] };
            let second = &mut two.joints[k];
            second.joint_type = JointType::Revolute { axis: axes[1] };
            second.parent = cross;
            second.origin = Pose::identity();
            two.joints.insert(k, first);
        }
        let two = build(&two);
        assert_eq!(two.parameter_names(), case.mechanism.parameter_names());
        assert_same_dynamics(&case.mechanism, &two, &mut case.rng);
        let [a, b] = regressors(&case.mechanism, &two, &mut case.rng);
        assert_eq!(a, b);
    }
    assert!(seen > 50, "only {seen} universal joints");
}

#[test]
fn a_symmetric_rotor_moves_like_its_general_model() {
    let mut seen = 0;
    for mut case in cases(200, Features::ALL) {
        // Only symmetric rotors can be described by one parameter.
        case.builder.rotors.retain(|r| r.symmetric);
        seen += case.builder.rotors.len();
        let [one, ten] = [RotorModel::Symmetric, RotorModel::General].map(|model| {
            case.builder.build(&BuildOptions::default().with(|o| o.rotors = Some(model))).unwrap()
        });
        assert_eq!(one.parameter_count() + 9 * case.builder.rotors.len(), ten.parameter_count());
        assert_same_dynamics(&one, &ten, &mut case.rng);
    }
    assert!(seen > 100, "only {seen} rotors");
}
