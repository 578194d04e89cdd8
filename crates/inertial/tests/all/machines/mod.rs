//! Machines with loops, described in the world frame and assembled at zero, so that they can be cut at any joint.

use std::collections::HashMap;
use std::f64::consts::PI;

use inertial::mechanism::{
    BuildOptions, JointSpec, JointType, LoopEnd, LoopSpec, Mechanism, MechanismBuilder, Mimic, RotorSpec,
    builtin,
};
use inertial::spatial::{Inertia, Pose};
use nalgebra::{Vector3, vector};

use crate::common::Rng;

pub const HINGE: JointType = JointType::Revolute { axis: Vector3::new(0.0, 0.0, 1.0) };

/// Mechanism described by the poses of its frames in the world when it is assembled.
pub struct Blueprint {
    pub builder: MechanismBuilder,
    frames: HashMap<String, Pose<f64>>,
}

impl Blueprint {
    pub fn new(name: &str) -> Self {
        let mut builder = MechanismBuilder::new(name, "ground");
        builder.gravity = vector![1.0, -9.0, 3.0];
        Self { builder, frames: HashMap::from([("ground".to_owned(), Pose::identity())]) }
    }

    /// Adds a link with an inertia given in the world, attached to `parent` by a joint whose frame is at `frame`.
    pub fn link(
        &mut self,
        name: &str,
        inertia: Inertia<f64>,
        parent: &str,
        joint_type: JointType,
        frame: Pose<f64>,
    ) {
        let joint = JointSpec::new(format!("{name}.joint"), joint_type, parent, name);
        self.jointed(name, inertia, joint, frame);
    }

    pub fn jointed(&mut self, name: &str, inertia: Inertia<f64>, joint: JointSpec, frame: Pose<f64>) {
        let origin = self.frames[&joint.parent].inverse() * frame;
        self.builder =
            self.builder.clone().link(name, inertia.transformed(&frame.inverse())).joint(joint.at(origin));
        self.frames.insert(name.to_owned(), frame);
    }

    pub fn close(&mut self, name: &str, from: &str, to: &str, joint_type: JointType, frame: Pose<f64>) {
        let end = |link: &str| LoopEnd { link: link.to_owned(), origin: self.frames[link].inverse() * frame };
        let (predecessor, successor) = (end(from), end(to));
        self.builder.loops.push(LoopSpec {
            name: name.into(),
            joint_type,
            predecessor,
            successor,
            line: None,
        });
    }

    pub fn build(&self) -> Mechanism {
        self.builder.build(&BuildOptions::default()).expect("the machine is valid")
    }
}

/// Closed chain of joints; the first and the last are on the ground.
#[derive(Clone)]
pub struct Ring {
    pub name: String,
    pub joints: Vec<(JointType, Pose<f64>)>,
    /// Inertia of the body after each joint but the last, in the world.
    pub inertias: Vec<Inertia<f64>>,
}

impl Ring {
    pub fn new(name: &str, rng: &mut Rng, joints: Vec<(JointType, Pose<f64>)>) -> Self {
        let inertias = joints[1..].iter().map(|_| rng.inertia()).collect();
        Self { name: name.into(), joints, inertias }
    }

    /// Returns the mechanism cut at joint `cut`, with the named joints (`j0`, `j1`, …) independent (chosen by the library if none
    /// is named). A joint has the same coordinate for every cut.
    pub fn cut(&self, cut: usize, independent: &[usize]) -> Mechanism {
        self.cut_blueprint(cut, independent).build()
    }

    pub fn cut_blueprint(&self, cut: usize, independent: &[usize]) -> Blueprint {
        let mut plan = Blueprint::new(&self.name);
        let last = self.joints.len() - 1;
        let body = |i: usize| if i == last { "ground".to_owned() } else { format!("b{i}") };
        let mark = |i: usize, mut joint: JointSpec| {
            joint.independent = (!independent.is_empty()).then(|| independent.contains(&i));
            joint
        };
        for i in 0..cut {
            let parent = if i == 0 { body(last) } else { body(i - 1) };
            let joint = mark(i, JointSpec::new(format!("j{i}"), self.joints[i].0, parent, body(i)));
            plan.jointed(&body(i), self.inertias[i], joint, self.joints[i].1);
        }
        for i in (cut + 1..=last).rev() {
            let joint =
                mark(i, JointSpec::new(format!("j{i}"), reversed(&self.joints[i].0), body(i), body(i - 1)));
            plan.jointed(&body(i - 1), self.inertias[i - 1], joint, self.joints[i].1);
        }
        let (from, to) = (if cut == 0 { body(last) } else { body(cut - 1) }, body(cut));
        plan.close("cut", &from, &to, self.joints[cut].0, self.joints[cut].1);
        plan
    }
}

/// Bodies and the joints between them, in the world frame and assembled at zero: any set of joints that closes the loops can be
/// cut.
pub struct Web {
    pub name: String,
    /// Two bodies, the joint between them and its pose.
    pub joints: Vec<(String, String, JointType, Pose<f64>)>,
    pub inertias: HashMap<String, Inertia<f64>>,
}

impl Web {
    pub fn new(name: &str, rng: &mut Rng, joints: &[(&str, &str, JointType, Pose<f64>)]) -> Self {
        let mut inertias = HashMap::new();
        for (a, b, ..) in joints {
            for body in [a, b] {
                inertias.entry((*body).to_owned()).or_insert_with(|| rng.inertia());
            }
        }
        let joints = joints.iter().map(|&(a, b, t, p)| (a.to_owned(), b.to_owned(), t, p)).collect();
        Self { name: name.into(), joints, inertias }
    }

    /// Builds the mechanism with joints in this order: joints that reach a new body form the tree, the others close loops. A
    /// joint has the same name (`j0`, `j1`, …) and coordinate in every order.
    pub fn build(&self, order: &[usize]) -> Mechanism {
        let mut plan = Blueprint::new(&self.name);
        let mut left = order.to_vec();
        // Joints between bodies that are not reached yet are deferred.
        while let Some(place) = left.iter().position(|&i| {
            let (a, b, ..) = &self.joints[i];
            plan.frames.contains_key(a) || plan.frames.contains_key(b)
        }) {
            let i = left.remove(place);
            let (a, b, joint_type, frame) = &self.joints[i];
            let (near, far, joint_type) =
                if plan.frames.contains_key(a) { (a, b, *joint_type) } else { (b, a, reversed(joint_type)) };
            if plan.frames.contains_key(far) {
                plan.close(&format!("j{i}"), near, far, joint_type, *frame);
            } else {
                let joint = JointSpec::new(format!("j{i}"), joint_type, near, far);
                plan.jointed(far, self.inertias[far], joint, *frame);
            }
        }
        plan.build()
    }
}

/// Returns the joint with its two sides exchanged and the same coordinates (in reverse order for universal joints).
fn reversed(joint_type: &JointType) -> JointType {
    match *joint_type {
        JointType::Revolute { axis } => JointType::Revolute { axis: -axis },
        JointType::Prismatic { axis } => JointType::Prismatic { axis: -axis },
        JointType::Helical { axis, pitch } => JointType::Helical { axis: -axis, pitch },
        JointType::Cylindrical { axis } => JointType::Cylindrical { axis: -axis },
        JointType::Universal { axes: [a, b] } => JointType::Universal { axes: [-b, -a] },
        other => other,
    }
}

pub fn at(x: f64, y: f64, z: f64) -> Pose<f64> {
    Pose::from_translation(vector![x, y, z])
}

/// Returns hinges about z at points of a plane.
pub fn planar(points: &[(f64, f64)]) -> Vec<(JointType, Pose<f64>)> {
    points.iter().map(|&(x, y)| (HINGE, at(x, y, 0.1))).collect()
}

pub fn four_bar(rng: &mut Rng) -> Ring {
    Ring::new("four-bar", rng, planar(&[(0.0, 0.0), (0.1, 0.4), (0.9, 0.6), (0.8, -0.1)]))
}

pub fn slider_crank(rng: &mut Rng) -> Ring {
    let mut joints = planar(&[(0.0, 0.0), (0.1, 0.3), (0.8, 0.0), (0.8, 0.0)]);
    joints[3].0 = JointType::Prismatic { axis: Vector3::x() };
    Ring::new("slider-crank", rng, joints)
}

/// Creates a ring of four hinges whose axes intersect in a point.
pub fn spherical_linkage(rng: &mut Rng) -> Ring {
    let joints =
        [vector![1.0, 0.1, 0.0], vector![0.8, 0.5, 0.3], vector![0.3, 0.9, -0.2], vector![-0.1, 1.0, -0.7]]
            .map(|direction| {
                let axis = direction.normalize();
                (JointType::Revolute { axis }, Pose::from_translation(axis * 0.5))
            });
    Ring::new("spherical linkage", rng, joints.to_vec())
}

/// Creates Bennett's linkage: four hinges in space that can move only because sin α/a = sin β/b.
pub fn bennett(rng: &mut Rng) -> Ring {
    let (a, alpha, beta) = (0.5f64, 0.6f64, 1.1f64);
    let b = a * beta.sin() / alpha.sin();
    let first = 1.2f64;
    let second =
        2.0 * ((0.5 * (beta + alpha)).sin() / (0.5 * (beta - alpha)).sin() / (0.5 * first).tan()).atan();
    let mut frame = Pose::identity();
    let mut joints = Vec::new();
    for (theta, length, twist) in
        [(first, a, alpha), (second, b, beta), (-first, a, alpha), (-second, b, beta)]
    {
        joints.push((HINGE, frame));
        let turn = Pose::from_xyz_rpy([0.0; 3], [0.0, 0.0, theta]);
        frame = frame * turn * Pose::from_xyz_rpy([length, 0.0, 0.0], [twist, 0.0, 0.0]);
    }
    assert!((frame.to_matrix() - nalgebra::Matrix4::identity()).amax() < 1e-14, "it closes: {frame:?}");
    Ring::new("Bennett's linkage", rng, joints)
}

/// Creates a ring of joints of these types with random poses.
pub fn random_ring(rng: &mut Rng, types: &[JointType]) -> Ring {
    let joints: Vec<_> = types.iter().map(|t| (*t, rng.pose())).collect();
    let name = types.iter().map(JointType::name).collect::<Vec<_>>().join("-");
    Ring::new(&name, rng, joints)
}

/// Creates a random ring in space with mobility one: joints of any type with seven degrees of freedom in total.
pub fn random_spatial_ring(rng: &mut Rng) -> Ring {
    let mut types = vec![JointType::Revolute { axis: rng.axis() }];
    let mut freedom = 1;
    while freedom < 7 {
        let joint_type = rng.joint();
        let nv = joint_type.nv();
        // Two spherical joints let the body between them spin, two planar ones let it slide; a single rotation axis cannot move.
        let common = |t: &JointType| std::mem::discriminant(t) == std::mem::discriminant(&joint_type);
        let translations = types.iter().filter(|t| matches!(t, JointType::Prismatic { .. })).count();
        let repeats = nv == 3 && types.iter().any(common);
        if freedom + nv > 7
            || nv > 3
            || repeats
            || (matches!(joint_type, JointType::Prismatic { .. }) && translations > 1)
        {
            continue;
        }
        types.push(joint_type);
        freedom += nv;
    }
    random_ring(rng, &types)
}

fn star(radius: f64, start: f64, count: usize, z: f64) -> Vec<Pose<f64>> {
    let angle = |i: usize| start + 2.0 * PI * i as f64 / count as f64;
    (0..count).map(|i| at(radius * angle(i).cos(), radius * angle(i).sin(), z)).collect()
}

/// Creates the planar 3-RRR: a platform on three legs.
pub fn three_rrr(rng: &mut Rng) -> Blueprint {
    let mut plan = Blueprint::new("3-RRR");
    let (feet, hips) = (star(1.0, 0.1, 3, 0.0), star(0.3, 0.4, 3, 0.0));
    for i in 0..3 {
        let knee = Pose::from_translation(
            0.5 * (feet[i].translation + hips[i].translation) + vector![0.2, 0.1, 0.0],
        );
        plan.link(&format!("lower{i}"), rng.inertia(), "ground", HINGE, feet[i]);
        plan.link(&format!("upper{i}"), rng.inertia(), &format!("lower{i}"), HINGE, knee);
    }
    plan.link("platform", rng.inertia(), "upper0", HINGE, hips[0]);
    for i in 1..3 {
        plan.close(&format!("leg{i}"), &format!("upper{i}"), "platform", HINGE, hips[i]);
    }
    plan
}

/// Creates a platform on six legs of variable length; with spherical joints at the ground the legs may spin.
pub fn stewart(rng: &mut Rng, floating_platform: bool, spherical_feet: bool) -> Blueprint {
    let mut plan = Blueprint::new("Stewart platform");
    // Feet in three pairs, hips in three pairs between them; if both were regular hexagons, the platform would have infinitesimal
    // mobility.
    let on_circle = |radius: f64, degrees: f64, z: f64| {
        let angle = degrees.to_radians();
        at(radius * angle.cos(), radius * angle.sin(), z)
    };
    let feet = [-15.0, 15.0, 105.0, 135.0, 225.0, 255.0].map(|d| on_circle(1.0, d, 0.0));
    let hips = [-45.0, 45.0, 75.0, 165.0, 195.0, 285.0].map(|d| on_circle(0.6, d, 0.9));
    let foot = if spherical_feet {
        JointType::Spherical
    } else {
        JointType::Universal { axes: [Vector3::x(), Vector3::y()] }
    };
    if floating_platform {
        plan.link("platform", rng.inertia(), "ground", JointType::Floating, at(0.0, 0.0, 0.9));
    }
    for i in 0..6 {
        let hip = hips[i];
        let axis = (hip.translation - feet[i].translation).normalize();
        plan.link(&format!("leg{i}"), rng.inertia(), "ground", foot, feet[i]);
        let rod = format!("rod{i}");
        let middle = Pose::from_translation(0.5 * (hip.translation + feet[i].translation));
        plan.link(&rod, rng.inertia(), &format!("leg{i}"), JointType::Prismatic { axis }, middle);
        if i == 0 && !floating_platform {
            plan.link("platform", rng.inertia(), &rod, JointType::Spherical, hip);
        } else {
            plan.close(&format!("hip{i}"), &rod, "platform", JointType::Spherical, hip);
        }
    }
    plan
}

/// Creates a free body with a four-bar leg, and a rotor on a dependent joint.
pub fn floating_leg(rng: &mut Rng) -> Blueprint {
    let mut plan = Blueprint::new("floating leg");
    plan.link("base", rng.inertia(), "ground", JointType::Floating, at(0.0, 0.0, 1.0));
    plan.link("hip", rng.inertia(), "base", JointType::Revolute { axis: Vector3::x() }, at(0.0, 0.1, 1.0));
    plan.link("thigh", rng.inertia(), "hip", HINGE, at(0.0, 0.2, 1.0));
    plan.link("shank", rng.inertia(), "thigh", HINGE, at(0.4, 0.3, 1.0));
    plan.link("rod", rng.inertia(), "hip", HINGE, at(0.0, 0.35, 1.0));
    plan.close("knee", "rod", "shank", HINGE, at(0.45, 0.4, 1.0));
    plan.builder.rotors.push(symmetric_rotor(rng, "shank.joint", "base"));
    plan
}

/// Creates a symmetric rotor at a random pose on `carrier`, driven by a joint.
pub fn symmetric_rotor(rng: &mut Rng, joint: &str, carrier: &str) -> RotorSpec {
    let axis = Vector3::z();
    RotorSpec {
        joint: joint.into(),
        carrier: carrier.into(),
        ratio: -7.0,
        origin: rng.pose(),
        axis,
        inertia: rng.symmetric_inertia(&axis),
        symmetric: true,
        line: None,
    }
}

/// Creates a five-bar whose two cranks are geared together.
pub fn geared_five_bar(rng: &mut Rng) -> Blueprint {
    let points = [(0.0, 0.0), (-0.3, 0.5), (0.4, 1.0), (1.1, 0.6), (0.8, 0.0)];
    let mut plan = Ring::new("geared five-bar", rng, planar(&points)).cut_blueprint(2, &[]);
    let joint = plan.builder.joints.iter_mut().find(|j| j.name == "j4").expect("the last joint");
    joint.mimic = Some(Mimic::new("j0", -0.7, 0.0));
    plan
}

/// Returns all machines with their names and mobilities.
pub fn all() -> Vec<(String, Mechanism, usize)> {
    let rng = &mut Rng(3);
    let (x, y, z) = (Vector3::x(), Vector3::y(), Vector3::z());
    let revolute = |axis| JointType::Revolute { axis };
    let universal = JointType::Universal { axes: [x, vector![0.0, 0.8, 0.6]] };
    let mut out = Vec::new();
    let mut ring = |ring: &Ring, mobility: usize| {
        for cut in 0..ring.joints.len() {
            out.push((format!("{} cut at {cut}", ring.name), ring.cut(cut, &[]), mobility));
        }
    };
    ring(&four_bar(rng), 1);
    ring(&slider_crank(rng), 1);
    ring(&spherical_linkage(rng), 1);
    ring(&bennett(rng), 1);
    let parallelogram = planar(&[(0.0, 0.0), (0.1, 0.4), (0.9, 0.4), (0.8, 0.0)]);
    ring(&Ring::new("parallelogram", rng, parallelogram), 1);
    ring(
        &Ring::new("five-bar", rng, planar(&[(0.0, 0.0), (-0.3, 0.5), (0.4, 1.0), (1.1, 0.6), (0.8, 0.0)])),
        2,
    );
    ring(&random_ring(rng, &[revolute(x), JointType::Spherical, JointType::Spherical, revolute(z)]), 2);
    ring(&random_ring(rng, &[revolute(x), universal, JointType::Spherical, revolute(z)]), 1);
    let cylinders = [x, y, z].map(|axis| JointType::Cylindrical { axis });
    ring(&random_ring(rng, &[revolute(y), cylinders[0], cylinders[1], cylinders[2]]), 1);
    ring(&random_ring(rng, &[revolute(y), JointType::Planar { normal: x }, JointType::Spherical]), 1);
    let screw = JointType::Helical { axis: y, pitch: 0.1 };
    ring(&random_ring(rng, &[revolute(y), screw, universal, revolute(z), universal]), 1);
    let hinges = |n: usize, rng: &mut Rng| (0..n).map(|_| revolute(rng.axis())).collect::<Vec<_>>();
    let seven = hinges(7, rng);
    ring(&random_ring(rng, &seven), 1);
    for k in 0..10 {
        let random = random_spatial_ring(rng);
        let cut = rng.below(random.joints.len());
        out.push((format!("random ring {k}: {} cut at {cut}", random.name), random.cut(cut, &[]), 1));
    }
    let mut welded = hinges(7, rng);
    welded.insert(3, JointType::Fixed);
    out.push(("7R closed by a weld".into(), random_ring(rng, &welded).cut(3, &[]), 1));
    let mut loose = hinges(3, rng);
    loose.insert(1, JointType::Floating);
    out.push(("a loop joint that holds nothing".into(), random_ring(rng, &loose).cut(1, &[]), 3));
    for (plan, mobility) in [
        (three_rrr(rng), 3),
        (stewart(rng, false, false), 6),
        (stewart(rng, true, false), 6),
        (stewart(rng, true, true), 12),
        (floating_leg(rng), 8),
        (geared_five_bar(rng), 1),
    ] {
        out.push((plan.builder.name.clone(), plan.build(), mobility));
    }
    for (name, mobility) in [("four-bar", 1), ("2rru-1rrs", 3), ("2prs-1psr", 3), ("puma560", 6)] {
        let mechanism =
            builtin::get(name).and_then(|b| b.build(&BuildOptions::default())).expect("it builds");
        out.push((format!("builtin {name}"), mechanism, mobility));
    }
    out
}
