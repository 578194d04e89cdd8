//! From a description to a mechanism: validation, lumping, numbering.

use std::collections::HashMap;

use nalgebra::{Matrix3, Vector3};

use super::{
    Base, Body, BodyKind, BuildOptions, Drive, Joint, JointSpec, JointType, Link, LoopEnd, LoopFrame,
    LoopJoint, Mechanism, MechanismBuilder, ParameterBlock, RotorModel, RotorSpec, rotation_about,
};
use crate::spatial::{Inertia, Pose};
use crate::{Error, Place, Result};

/// Rotations farther than this from orthogonal are refused; nearer ones are made orthogonal.
const ROTATION_TOLERANCE: f64 = 1e-3;

/// A symmetric rotor may deviate from symmetry by this fraction before people are told.
const SYMMETRY_TOLERANCE: f64 = 1e-6;

pub(super) fn build(spec: &MechanismBuilder, options: &BuildOptions) -> Result<Mechanism> {
    let mut build = Build::new(spec, options)?;
    build.tree()?;
    build.follow()?;
    let link_bodies = build.bodies.len();
    let subtree_end = subtree_ends(&build.bodies);
    build.rotors()?;
    let loops = build.loops()?;
    let independent = build.independent(&loops)?;
    let mut mechanism = Mechanism {
        name: spec.name.clone(),
        gravity: options.gravity.unwrap_or(spec.gravity),
        armature: build.armature(),
        nq: build.nq,
        nv: build.nv,
        blocks: parameter_blocks(&build.bodies),
        bodies: build.bodies,
        joints: build.joints,
        links: build.links,
        loops,
        subtree_end,
        independent,
        assembly: Vec::new(),
        warnings: build.warnings,
    };
    debug_assert_eq!(mechanism.link_bodies(), link_bodies);
    finite("gravity", None, mechanism.gravity.as_slice())?;
    mechanism.assembly = assembly(spec, &mechanism)?;
    Ok(mechanism)
}

struct Build<'a> {
    spec: &'a MechanismBuilder,
    options: &'a BuildOptions,
    /// Joints of the description with the base option applied.
    described: Vec<JointSpec>,
    root: String,
    link_index: HashMap<String, usize>,
    links: Vec<Link>,
    bodies: Vec<Body>,
    joints: Vec<Joint>,
    joint_index: HashMap<String, usize>,
    /// For each entry of `joints`, its index in `described`.
    origin_of: Vec<usize>,
    warnings: Vec<String>,
    nq: usize,
    nv: usize,
}

impl<'a> Build<'a> {
    fn new(spec: &'a MechanismBuilder, options: &'a BuildOptions) -> Result<Self> {
        let mut described = spec.joints.clone();
        let mut root = spec.root.clone();
        let mut links: Vec<Link> = Vec::with_capacity(spec.links.len() + 2);
        let mut link_index = HashMap::new();
        let mut add =
            |links: &mut Vec<Link>, name: &str, inertia: Option<Inertia<f64>>, line: Option<u32>| {
                if let Some(i) = &inertia {
                    finite(&format!("link \"{name}\""), line, i.parameters().as_slice())?;
                }
                if link_index.insert(name.to_owned(), links.len()).is_some() {
                    return Err(Error::model(
                        place(line, format!("link \"{name}\"")),
                        "the name is taken: links need distinct names",
                    ));
                }
                links.push(Link { name: name.to_owned(), body: None, pose: Pose::identity(), inertia, line });
                Ok(())
            };
        if !spec.links.iter().any(|l| l.name == root) {
            add(&mut links, &root, None, None)?;
        }
        for link in &spec.links {
            add(&mut links, &link.name, link.inertia, link.line)?;
        }
        match options.base {
            Some(Base::Floating) if !floats(&described, &root) => {
                let world = fresh_name("world", |n| links.iter().any(|l| l.name == n));
                add(&mut links, &world, None, None)?;
                let name = fresh_name("root", |n| described.iter().any(|j| j.name == n));
                described.insert(0, JointSpec::new(name, JointType::Floating, world.clone(), root));
                root = world;
            }
            Some(Base::Fixed) => {
                for joint in &mut described {
                    if joint.parent == root && joint.joint_type == JointType::Floating {
                        joint.joint_type = JointType::Fixed;
                    }
                }
            }
            _ => {}
        }
        Ok(Self {
            spec,
            options,
            described,
            root,
            link_index,
            links,
            bodies: Vec::new(),
            joints: Vec::new(),
            joint_index: HashMap::new(),
            origin_of: Vec::new(),
            warnings: spec.warnings.clone(),
            nq: 0,
            nv: 0,
        })
    }

    /// Walks the tree depth first, siblings in the order of the description.
    fn tree(&mut self) -> Result<()> {
        let children = self.children()?;
        let Some(&root) = self.link_index.get(&self.root) else {
            return Err(Error::model(Place::default(), format!("there is no root link \"{}\"", self.root)));
        };
        let mut seen = vec![false; self.links.len()];
        seen[root] = true;
        let mut stack: Vec<usize> = children[root].iter().rev().copied().collect();
        while let Some(j) = stack.pop() {
            let joint = self.described[j].clone();
            let child = self.link_index[&joint.child];
            seen[child] = true;
            self.add_joint(j, &joint, child)?;
            stack.extend(children[child].iter().rev());
        }
        if let Some(lost) = seen.iter().position(|s| !s) {
            let link = &self.links[lost];
            let message = if self.described.iter().any(|j| j.child == link.name) {
                "it lies on a cycle of joints: open the cycle and close it with a loop joint"
            } else {
                "it is not connected to the rest: one link only may be without a parent joint"
            };
            return Err(Error::model(place(link.line, format!("link \"{}\"", link.name)), message));
        }
        Ok(())
    }

    /// Joints below each link, after checking names and references.
    fn children(&self) -> Result<Vec<Vec<usize>>> {
        let mut children = vec![Vec::new(); self.links.len()];
        let mut parent_joint: Vec<Option<usize>> = vec![None; self.links.len()];
        let mut names: HashMap<&str, usize> = HashMap::new();
        for (j, joint) in self.described.iter().enumerate() {
            let here = || place(joint.line, format!("joint \"{}\"", joint.name));
            if names.insert(&joint.name, j).is_some() {
                return Err(Error::model(here(), "the name is taken: joints need distinct names"));
            }
            let find = |role: &str, link: &str| {
                self.link_index
                    .get(link)
                    .copied()
                    .ok_or_else(|| Error::model(here(), format!("its {role} link \"{link}\" does not exist")))
            };
            let (parent, child) = (find("parent", &joint.parent)?, find("child", &joint.child)?);
            if joint.child == self.root {
                return Err(Error::model(
                    here(),
                    format!(
                        "the root link \"{}\" cannot be a child; is there a cycle of joints?",
                        joint.child
                    ),
                ));
            }
            if let Some(other) = parent_joint[child].replace(j) {
                return Err(Error::model(
                    here(),
                    format!(
                        "link \"{}\" already hangs from joint \"{}\": close loops with a loop joint",
                        joint.child, self.described[other].name
                    ),
                ));
            }
            children[parent].push(j);
        }
        Ok(children)
    }

    fn add_joint(&mut self, j: usize, joint: &JointSpec, child: usize) -> Result<()> {
        let here = || place(joint.line, format!("joint \"{}\"", joint.name));
        let parent = &self.links[self.link_index[&joint.parent]];
        let (parent_body, origin) = (parent.body, parent.pose * checked_pose(&joint.origin, here())?);
        let joint_type = checked_type(&joint.joint_type, here())?;
        check_numbers(joint)?;
        if joint.mimic.is_some() && joint_type.nv() != 1 {
            return Err(Error::model(
                here(),
                "only a joint of one degree of freedom can follow another (mimic)",
            ));
        }
        let inertia = self.links[child].inertia;
        if joint_type == JointType::Fixed {
            self.links[child].body = parent_body;
            self.links[child].pose = origin;
            if let (Some(body), Some(inertia)) = (parent_body, inertia) {
                self.bodies[body].inertia += inertia.transformed(&origin);
            }
            return Ok(());
        }
        let index = self.joints.len();
        let (q, v) = (self.nq, self.nv);
        if joint.mimic.is_none() {
            self.nq += joint_type.nq();
            self.nv += joint_type.nv();
        }
        let body = |name: String, kind, parent, placement, joint_type, shift, inertia| Body {
            name,
            kind,
            parent,
            placement,
            joint_type,
            drive: Drive { q: q + shift, v: v + shift, ratio: 1.0, offset: 0.0 },
            inertia,
            joint: index,
        };
        let inertia = inertia.unwrap_or_else(Inertia::zero);
        if let JointType::Universal { axes: [first, second] } = joint_type {
            let name = format!("{}:cross", joint.name);
            let hinge = JointType::Revolute { axis: first };
            let between = self.bodies.len();
            self.bodies.push(body(name, BodyKind::Massless, parent_body, origin, hinge, 0, Inertia::zero()));
            let hinge = JointType::Revolute { axis: second };
            let name = joint.child.clone();
            self.bodies.push(body(name, BodyKind::Link, Some(between), Pose::identity(), hinge, 1, inertia));
        } else {
            let name = if joint.child == self.spec.root && joint.child == "ground" {
                "base".to_owned()
            } else {
                joint.child.clone()
            };
            let kind =
                if self.spec.massless.contains(&joint.child) { BodyKind::Massless } else { BodyKind::Link };
            self.bodies.push(body(name, kind, parent_body, origin, joint_type, 0, inertia));
        }
        let body = self.bodies.len() - 1;
        self.links[child].body = Some(body);
        self.joint_index.insert(joint.name.clone(), index);
        self.origin_of.push(j);
        self.joints.push(Joint {
            name: joint.name.clone(),
            joint_type,
            body,
            q,
            v,
            limits: joint.limits,
            dynamics: joint.dynamics,
            follows: None,
        });
        Ok(())
    }

    /// Connects followers (mimic joints) to the coordinate that finally moves them.
    fn follow(&mut self) -> Result<()> {
        for index in 0..self.joints.len() {
            let joint = &self.described[self.origin_of[index]];
            if joint.mimic.is_none() {
                continue;
            }
            let (mut ratio, mut offset, mut leader) = (1.0, 0.0, index);
            for _ in 0..=self.joints.len() {
                let spec = &self.described[self.origin_of[leader]];
                let Some(mimic) = &spec.mimic else { break };
                leader = *self.joint_index.get(&mimic.joint).ok_or_else(|| {
                    let here = place(spec.line, format!("joint \"{}\"", spec.name));
                    Error::model(here, format!("it follows \"{}\", which is no moving joint", mimic.joint))
                })?;
                offset += ratio * mimic.offset;
                ratio *= mimic.ratio;
            }
            let here = place(joint.line, format!("joint \"{}\"", joint.name));
            if self.described[self.origin_of[leader]].mimic.is_some() {
                return Err(Error::model(here, "the joints that it follows (mimic) form a circle"));
            }
            if self.joints[leader].joint_type.nv() != 1 {
                let message = format!("it follows \"{}\", which has several axes", self.joints[leader].name);
                return Err(Error::model(here, message));
            }
            let (q, v) = (self.joints[leader].q, self.joints[leader].v);
            let body = self.joints[index].body;
            self.bodies[body].drive = Drive { q, v, ratio, offset };
            let follower = &mut self.joints[index];
            (follower.q, follower.v, follower.follows) = (q, v, Some(leader));
        }
        Ok(())
    }

    fn rotors(&mut self) -> Result<()> {
        for (rotor, name) in self.spec.rotors.iter().zip(self.spec.rotor_names()) {
            let here = || place(rotor.line, format!("rotor of joint \"{}\"", rotor.joint));
            finite(&here().element, rotor.line, &[rotor.ratio])?;
            finite(&here().element, rotor.line, rotor.inertia.parameters().as_slice())?;
            let axis = checked_axis(&rotor.axis, here())?;
            let origin = checked_pose(&rotor.origin, here())?;
            let joint = *self
                .joint_index
                .get(&rotor.joint)
                .ok_or_else(|| Error::model(here(), "there is no moving joint of that name"))?;
            let carrier = self.link_index.get(&rotor.carrier).map(|&l| &self.links[l]).ok_or_else(|| {
                Error::model(here(), format!("its carrier \"{}\" does not exist", rotor.carrier))
            })?;
            if self.joints[joint].joint_type.nv() != 1 {
                return Err(Error::model(here(), "a rotor drives a joint of one degree of freedom only"));
            }
            let (parent, placement) = (carrier.body, carrier.pose * origin);
            let model = self.options.rotors.unwrap_or(if rotor.symmetric {
                RotorModel::Symmetric
            } else {
                RotorModel::General
            });
            let follower = self.bodies[self.joints[joint].body].drive;
            let drive = Drive {
                ratio: rotor.ratio * follower.ratio,
                offset: rotor.ratio * follower.offset,
                ..follower
            };
            self.add_rotor(
                rotor,
                model,
                axis,
                Body {
                    name,
                    kind: BodyKind::Rotor,
                    parent,
                    placement,
                    joint_type: JointType::Revolute { axis },
                    drive,
                    inertia: rotor.inertia,
                    joint,
                },
            );
        }
        Ok(())
    }

    fn add_rotor(&mut self, rotor: &RotorSpec, model: RotorModel, axis: Vector3<f64>, mut body: Body) {
        let dead_weight = match model {
            RotorModel::None => Some(rotor.inertia),
            RotorModel::General => None,
            RotorModel::Symmetric => {
                // What does not change as the rotor spins goes to the carrier; the inertia about the axis stays.
                let spin = axis.dot(&(rotor.inertia.rotational * axis));
                let across = 0.5 * (rotor.inertia.rotational.trace() - spin);
                let outer = axis * axis.transpose();
                let carried = Inertia {
                    mass: rotor.inertia.mass,
                    first_moment: outer * rotor.inertia.first_moment,
                    rotational: (Matrix3::identity() - outer) * across,
                };
                let own = Inertia { rotational: outer * spin, ..Inertia::zero() };
                let defect = (rotor.inertia.parameters() - carried.parameters() - own.parameters()).amax();
                if defect > SYMMETRY_TOLERANCE * rotor.inertia.parameters().amax() {
                    self.warnings.push(format!(
                        "rotor of joint \"{}\" is not symmetric about its axis as described; it is taken as its \
                         symmetric part (use --rotors general for all ten parameters)",
                        rotor.joint
                    ));
                }
                // Turn the frame so that the axis is z and the one parameter is Izz.
                body.placement = body.placement * Pose::new(frame_along(&axis), Vector3::zeros());
                body.joint_type = JointType::Revolute { axis: Vector3::z() };
                body.kind = BodyKind::SymmetricRotor;
                let mut rotational = Matrix3::zeros();
                rotational[(2, 2)] = spin;
                body.inertia = Inertia { rotational, ..Inertia::zero() };
                Some(carried)
            }
        };
        if let (Some(inertia), Some(carrier)) = (dead_weight, body.parent) {
            let place = self.links[self.link_index[&rotor.carrier]].pose * rotor.origin;
            self.bodies[carrier].inertia += inertia.transformed(&place);
        }
        if model != RotorModel::None {
            self.bodies.push(body);
        }
    }

    fn loops(&self) -> Result<Vec<LoopJoint>> {
        let mut out: Vec<LoopJoint> = Vec::with_capacity(self.spec.loops.len());
        for spec in &self.spec.loops {
            let here = || place(spec.line, format!("loop \"{}\"", spec.name));
            if out.iter().any(|l| l.name == spec.name) {
                return Err(Error::model(here(), "the name is taken: loops need distinct names"));
            }
            let frame = |end: &LoopEnd| {
                let link = self.link_index.get(&end.link).map(|&l| &self.links[l]).ok_or_else(|| {
                    Error::model(here(), format!("its link \"{}\" does not exist", end.link))
                })?;
                Ok(LoopFrame { body: link.body, pose: link.pose * checked_pose(&end.origin, here())? })
            };
            let (predecessor, successor) = (frame(&spec.predecessor)?, frame(&spec.successor)?);
            if predecessor.body == successor.body {
                return Err(Error::model(here(), "both sides belong to the same rigid body"));
            }
            let joint_type = checked_type(&spec.joint_type, here())?;
            out.push(LoopJoint { name: spec.name.clone(), joint_type, predecessor, successor });
        }
        Ok(out)
    }

    /// Coordinates off every loop are independent; on loops the marks decide, or the computation where there are none.
    fn independent(&self, loops: &[LoopJoint]) -> Result<Vec<Option<bool>>> {
        let mut on_loop = vec![false; self.nv];
        for l in loops {
            let (mut a, mut b) = (l.predecessor.body, l.successor.body);
            // Indices grow outward: climb the larger until both sides meet.
            while a != b {
                let higher = if a > b { &mut a } else { &mut b };
                if let Some(i) = *higher {
                    let body = &self.bodies[i];
                    on_loop[body.drive.v..body.drive.v + body.joint_type.nv()].fill(true);
                    *higher = body.parent;
                }
            }
        }
        let mut marks: Vec<Option<bool>> =
            on_loop.iter().map(|&l| if l { None } else { Some(true) }).collect();
        let mut chosen = false;
        for (joint, &origin) in self.joints.iter().zip(&self.origin_of) {
            let spec = &self.described[origin];
            let Some(mark) = spec.independent else { continue };
            if joint.follows.is_some() {
                continue;
            }
            for v in joint.v_range() {
                if on_loop[v] {
                    marks[v] = Some(mark);
                    chosen |= mark;
                } else if !mark {
                    return Err(Error::model(
                        place(spec.line, format!("joint \"{}\"", joint.name)),
                        "it is marked as dependent but lies on no loop",
                    ));
                }
            }
        }
        if chosen {
            marks.iter_mut().filter(|m| m.is_none()).for_each(|m| *m = Some(false));
        }
        Ok(marks)
    }

    fn armature(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.nv];
        for joint in &self.joints {
            let ratio = self.bodies[joint.body].drive.ratio;
            for v in joint.v_range() {
                out[v] += joint.dynamics.armature * ratio * ratio;
            }
        }
        out
    }
}

fn place(line: Option<u32>, element: String) -> Place {
    Place { line, element }
}

fn floats(joints: &[JointSpec], root: &str) -> bool {
    joints.iter().any(|j| j.parent == root && j.joint_type == JointType::Floating)
}

fn fresh_name(stem: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = stem.to_owned();
    while taken(&name) {
        name.push('_');
    }
    name
}

fn finite(element: &str, line: Option<u32>, values: &[f64]) -> Result<()> {
    match values.iter().find(|x| !x.is_finite()) {
        None => Ok(()),
        Some(x) => Err(Error::model(place(line, element.to_owned()), format!("{x} is not a finite number"))),
    }
}

fn check_numbers(joint: &JointSpec) -> Result<()> {
    let (l, d) = (&joint.limits, &joint.dynamics);
    let element = format!("joint \"{}\"", joint.name);
    finite(&element, joint.line, &[d.damping, d.friction, d.armature, d.stiffness, d.rest])?;
    if let Some(mimic) = &joint.mimic {
        finite(&element, joint.line, &[mimic.ratio, mimic.offset])?;
    }
    if [l.lower, l.upper, l.velocity, l.effort].iter().any(|x| x.is_nan()) {
        return Err(Error::model(place(joint.line, element), "a limit is not a number"));
    }
    Ok(())
}

fn checked_axis(axis: &Vector3<f64>, here: Place) -> Result<Vector3<f64>> {
    finite(&here.element, here.line, axis.as_slice())?;
    let norm = axis.norm();
    // Leave exact unit axes untouched, so that their zeros and ones stay exact.
    if (axis.norm_squared() - 1.0).abs() < 4.0 * f64::EPSILON {
        Ok(*axis)
    } else if norm > 1e-12 && norm.is_finite() {
        Ok(axis / norm)
    } else {
        Err(Error::model(here, "its axis has no length"))
    }
}

fn checked_type(joint_type: &JointType, here: Place) -> Result<JointType> {
    Ok(match *joint_type {
        JointType::Revolute { axis } => JointType::Revolute { axis: checked_axis(&axis, here)? },
        JointType::Prismatic { axis } => JointType::Prismatic { axis: checked_axis(&axis, here)? },
        JointType::Helical { axis, pitch } => {
            finite(&here.element, here.line, &[pitch])?;
            JointType::Helical { axis: checked_axis(&axis, here)?, pitch }
        }
        JointType::Cylindrical { axis } => JointType::Cylindrical { axis: checked_axis(&axis, here)? },
        JointType::Planar { normal } => JointType::Planar { normal: checked_axis(&normal, here)? },
        JointType::Universal { axes: [a, b] } => {
            let axes = [checked_axis(&a, here.clone())?, checked_axis(&b, here.clone())?];
            if axes[0].cross(&axes[1]).norm() < 1e-9 {
                return Err(Error::model(here, "the two axes of a universal joint must not be parallel"));
            }
            JointType::Universal { axes }
        }
        other => other,
    })
}

/// A pose with an orthogonal, right-handed rotation, as it is where it already is one.
fn checked_pose(pose: &Pose<f64>, here: Place) -> Result<Pose<f64>> {
    finite(&here.element, here.line, pose.translation.as_slice())?;
    finite(&here.element, here.line, pose.rotation.as_slice())?;
    let mut r = pose.rotation;
    let defect = |r: &Matrix3<f64>| (r.transpose() * r - Matrix3::identity()).amax();
    if defect(&r) > ROTATION_TOLERANCE || r.determinant() < 0.0 {
        return Err(Error::model(here, "its rotation is no right-handed orthogonal matrix"));
    }
    // Newton's iteration to the nearest orthogonal matrix; quadratic from the tolerance above.
    while defect(&r) > 1e-14 {
        let next = r * 1.5 - r * r.transpose() * r * 0.5;
        if defect(&next) >= defect(&r) {
            break;
        }
        r = next;
    }
    Ok(Pose::new(r, pose.translation))
}

/// A rotation whose z axis is `axis`; the identity where it already is.
fn frame_along(axis: &Vector3<f64>) -> Matrix3<f64> {
    let z = Vector3::z();
    let normal = z.cross(axis);
    let sine = normal.norm();
    if sine < 1e-15 {
        if axis.z > 0.0 { Matrix3::identity() } else { rotation_about(&Vector3::x(), std::f64::consts::PI) }
    } else {
        rotation_about(&(normal / sine), sine.atan2(axis.z))
    }
}

fn subtree_ends(bodies: &[Body]) -> Vec<usize> {
    let mut ends: Vec<usize> = (1..=bodies.len()).collect();
    for i in (0..bodies.len()).rev() {
        if let Some(p) = bodies[i].parent {
            ends[p] = ends[p].max(ends[i]);
        }
    }
    ends
}

fn parameter_blocks(bodies: &[Body]) -> Vec<ParameterBlock> {
    let mut offset = 0;
    let mut out = Vec::with_capacity(bodies.len());
    for (body, b) in bodies.iter().enumerate() {
        let len = match b.kind {
            BodyKind::Link | BodyKind::Rotor => 10,
            BodyKind::SymmetricRotor => 1,
            BodyKind::Massless => continue,
        };
        out.push(ParameterBlock { body, offset, len });
        offset += len;
    }
    out
}

fn assembly(spec: &MechanismBuilder, mechanism: &Mechanism) -> Result<Vec<f64>> {
    let mut q = mechanism.neutral();
    for (name, values) in &spec.assembly {
        let here = || Place::element(format!("assembly of joint \"{name}\""));
        let joint =
            mechanism.joints.iter().find(|j| j.name == *name && j.follows.is_none()).ok_or_else(|| {
                Error::model(here(), "there is no independent or dependent joint of that name")
            })?;
        finite(&here().element, None, values)?;
        if values.len() != joint.joint_type.nq() {
            let message = format!("it needs {} numbers, not {}", joint.joint_type.nq(), values.len());
            return Err(Error::model(here(), message));
        }
        q[joint.q_range()].copy_from_slice(values);
    }
    Ok(q)
}
