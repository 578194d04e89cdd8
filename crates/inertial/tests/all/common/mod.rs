//! Random mechanisms and states for the property tests, and simple reference algorithms.
//!
//! All cases are drawn from seeds and grow in size, so the first failing case is a small one; a failing [`Case`] prints the seed
//! that reproduces it.

pub mod conic;
pub mod data;
pub mod logs;
pub mod python;
pub mod tiny;

use inertial::mechanism::{
    Base, BuildOptions, JointSpec, JointType, LinkSpec, Mechanism, MechanismBuilder, Mimic, RotorSpec,
};
use inertial::spatial::{Force, Inertia, Motion, Pose, body_regressor};
use nalgebra::{DMatrix, DVector, Matrix3, Vector3};

/// Random generator `SplitMix64`: small, seeded, and identical on all platforms.
#[derive(Debug, Clone)]
pub struct Rng(pub u64);

impl Rng {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a uniform number in `low..high`.
    pub fn range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a uniform integer in `0..n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.range(0.0, 1.0) < probability
    }

    pub fn vector(&mut self, size: f64) -> Vector3<f64> {
        Vector3::from_fn(|_, _| self.range(-size, size))
    }

    pub fn values(&mut self, n: usize, size: f64) -> Vec<f64> {
        (0..n).map(|_| self.range(-size, size)).collect()
    }

    /// Returns a uniform point on the unit sphere in `N` dimensions.
    pub fn unit<const N: usize>(&mut self) -> [f64; N] {
        loop {
            let v: [f64; N] = std::array::from_fn(|_| self.range(-1.0, 1.0));
            let n = v.iter().map(|x| x * x).sum::<f64>().sqrt();
            if (0.1..1.0).contains(&n) {
                return v.map(|x| x / n);
            }
        }
    }

    pub fn rotation(&mut self) -> Matrix3<f64> {
        let [x, y, z, w] = self.unit();
        inertial::spatial::rotation_from_quaternion(x, y, z, w).expect("a unit quaternion")
    }

    pub fn pose(&mut self) -> Pose<f64> {
        Pose::new(self.rotation(), self.vector(0.7))
    }

    pub fn motion(&mut self) -> Motion<f64> {
        Motion::new(self.vector(2.0), self.vector(2.0))
    }

    /// Returns the inertia of a consistent body: a positive mass density around a centre.
    pub fn inertia(&mut self) -> Inertia<f64> {
        let mass = self.range(0.2, 4.0);
        let spread = Vector3::from_fn(|_, _| mass * self.range(0.002, 0.05));
        let r = self.rotation();
        let about = r * Matrix3::from_diagonal(&(Vector3::repeat(spread.sum()) - spread)) * r.transpose();
        Inertia::from_com(mass, self.vector(0.3), about)
    }

    /// Returns the inertia of a body that is symmetric about `axis`, an axis through its origin.
    pub fn symmetric_inertia(&mut self, axis: &Vector3<f64>) -> Inertia<f64> {
        let mass = self.range(0.1, 1.0);
        let (spin, across) = (mass * self.range(0.001, 0.002), mass * self.range(0.001, 0.002));
        let outer = axis * axis.transpose();
        let about = outer * spin + (Matrix3::identity() - outer) * across;
        Inertia::from_com(mass, axis * self.range(-0.1, 0.1), about)
    }

    /// Returns a coordinate axis with some probability, otherwise any direction.
    pub fn axis(&mut self) -> Vector3<f64> {
        if self.chance(0.4) {
            let mut axis = Vector3::zeros();
            axis[self.below(3)] = if self.chance(0.5) { 1.0 } else { -1.0 };
            axis
        } else {
            self.unit::<3>().into()
        }
    }

    /// Returns a joint with one degree of freedom about or along a random direction.
    pub fn simple_joint(&mut self) -> JointType {
        let axis = self.axis();
        match self.below(4) {
            0 => JointType::Prismatic { axis },
            1 => JointType::Helical { axis, pitch: self.range(-0.3, 0.3) },
            _ => JointType::Revolute { axis },
        }
    }

    /// Returns a random joint other than a fixed one.
    pub fn joint(&mut self) -> JointType {
        match self.below(12) {
            0 => JointType::Cylindrical { axis: self.axis() },
            1 => JointType::Universal { axes: [self.unit::<3>().into(), self.unit::<3>().into()] },
            2 => JointType::Planar { normal: self.axis() },
            3 => JointType::Spherical,
            4 => JointType::Floating,
            _ => self.simple_joint(),
        }
    }

    /// Returns random joint positions, with unit quaternions.
    pub fn positions(&mut self, mechanism: &Mechanism) -> Vec<f64> {
        let mut q = self.values(mechanism.nq(), 2.0);
        for joint in mechanism.joints() {
            if matches!(joint.joint_type, JointType::Spherical | JointType::Floating) {
                let end = joint.q_range().end;
                q[end - 4..end].copy_from_slice(&self.unit::<4>());
            }
        }
        q
    }
}

/// Features of a random mechanism besides links and joints of every type.
#[derive(Debug, Clone, Copy)]
pub struct Features {
    /// Mimic joints.
    pub mimics: bool,
    /// Rotors, symmetric and general.
    pub rotors: bool,
    /// Armature at some joints.
    pub armature: bool,
    /// Fixed or floating base; either one if `None`.
    pub base: Option<Base>,
}

impl Features {
    /// All features.
    pub const ALL: Self = Self { mimics: true, rotors: true, armature: true, base: None };
    /// Links and joints alone.
    pub const PLAIN: Self = Self { mimics: false, rotors: false, armature: false, base: None };
    /// All features except armature: the dynamics is linear in the inertial parameters.
    pub const LINEAR: Self = Self { armature: false, ..Self::ALL };
}

/// A random mechanism in a random state.
pub struct Case {
    pub label: String,
    pub builder: MechanismBuilder,
    pub mechanism: Mechanism,
    pub q: Vec<f64>,
    pub v: Vec<f64>,
    pub a: Vec<f64>,
    /// Generator for further random numbers of the test.
    pub rng: Rng,
}

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed on {}", self.label);
        }
    }
}

/// Returns `count` random cases with one to nine links.
pub fn cases(count: usize, features: Features) -> impl Iterator<Item = Case> {
    (0..count).map(move |k| case(k as u64, 1 + 9 * k / count, features))
}

/// Returns the random case of a seed, with `size` links (and some more that are fixed to them).
pub fn case(seed: u64, size: usize, features: Features) -> Case {
    let mut rng = Rng(seed ^ 0x5eed);
    let builder = builder(&mut rng, size, features);
    let mechanism = builder.build(&BuildOptions::default()).expect("random mechanisms are valid");
    let q = rng.positions(&mechanism);
    let v = rng.values(mechanism.nv(), 2.0);
    let a = rng.values(mechanism.nv(), 4.0);
    let label = format!("case({seed}, {size}, {features:?})");
    Case { label, builder, mechanism, q, v, a, rng }
}

/// Creates a random description: chain or tree, every joint type, lumped and massless links, and the given features.
pub fn builder(rng: &mut Rng, size: usize, features: Features) -> MechanismBuilder {
    let mut out = MechanismBuilder::new("random", "ground");
    out.gravity = rng.vector(10.0);
    let floating = match features.base {
        Some(base) => base == Base::Floating,
        None => rng.chance(0.4),
    };
    let serial = rng.chance(0.4);
    let mut links = vec!["ground".to_owned()];
    // Whether the last link is massless: the next one must be attached to it by one axis, otherwise the mass matrix is singular.
    let mut weightless = false;
    for k in 0..size {
        let parent = match k {
            _ if serial || weightless => links.len() - 1,
            // All links are attached to the floating base.
            _ if floating && k > 0 => 1 + rng.below(links.len() - 1),
            _ => rng.below(links.len()),
        };
        let parent = links[parent].clone();
        let heavy = weightless || k == 0 || k + 1 == size || rng.chance(0.85);
        let joint_type = if k == 0 && floating {
            JointType::Floating
        } else if weightless || !heavy {
            JointType::Revolute { axis: rng.unit::<3>().into() }
        } else {
            rng.joint()
        };
        weightless = !heavy;
        let name = format!("link{k}");
        let inertia = heavy.then(|| rng.inertia());
        out.links.push(LinkSpec { name: name.clone(), inertia, line: None });
        let mut joint = JointSpec::new(format!("joint{k}"), joint_type, parent, &name).at(rng.pose());
        let leaders: Vec<_> = out.joints.iter().filter(|j| j.joint_type.nv() == 1).collect();
        if features.mimics && joint_type.nv() == 1 && !leaders.is_empty() && rng.chance(0.3) {
            let leader = &leaders[rng.below(leaders.len())].name;
            joint.mimic = Some(Mimic::new(leader, rng.range(-2.0, 2.0), rng.range(-1.0, 1.0)));
        }
        if features.armature && rng.chance(0.3) {
            joint.dynamics.armature = rng.range(0.0, 0.5);
        }
        out.joints.push(joint);
        if features.rotors && joint_type.nv() == 1 && rng.chance(0.4) {
            let first = usize::from(floating);
            let axis = rng.axis();
            let symmetric = rng.chance(0.6);
            let inertia = if symmetric { rng.symmetric_inertia(&axis) } else { rng.inertia() };
            out.rotors.push(RotorSpec {
                joint: format!("joint{k}"),
                carrier: links[first + rng.below(links.len() - first)].clone(),
                ratio: rng.range(-20.0, 20.0),
                origin: rng.pose(),
                axis,
                inertia,
                symmetric,
                line: None,
            });
        }
        links.push(name.clone());
        if rng.chance(0.25) {
            let fixed = format!("fixed{k}");
            let inertia = rng.chance(0.8).then(|| rng.inertia());
            out.links.push(LinkSpec { name: fixed.clone(), inertia, line: None });
            out.joints
                .push(JointSpec::new(format!("weld{k}"), JointType::Fixed, &name, &fixed).at(rng.pose()));
            if !weightless {
                links.push(fixed);
            }
        }
    }
    out
}

/// Motion of one body in world coordinates at the world origin, and the modes that move it, by coordinate.
pub struct WorldBody {
    pub pose: Pose<f64>,
    pub velocity: Motion<f64>,
    /// Spatial acceleration minus gravity.
    pub acceleration: Motion<f64>,
    /// Columns of the Jacobian due to the joint of the body: velocity coordinate and mode (with the ratio).
    pub modes: Vec<(usize, Motion<f64>)>,
}

/// Computes the kinematics in world coordinates without changes of frame: the reference for the body-frame recursions.
pub fn world_bodies(mechanism: &Mechanism, q: &[f64], v: &[f64], a: &[f64]) -> Vec<WorldBody> {
    let mut out: Vec<WorldBody> = Vec::new();
    for body in mechanism.bodies() {
        let drive = body.drive;
        let nq = body.joint_type.nq();
        let mut joint_q = q[drive.q..drive.q + nq].to_vec();
        if nq == 1 {
            joint_q[0] = drive.ratio * joint_q[0] + drive.offset;
        }
        let ground = WorldBody {
            pose: Pose::identity(),
            velocity: Motion::zero(),
            acceleration: Motion::new(Vector3::zeros(), -mechanism.gravity()),
            modes: Vec::new(),
        };
        let parent = body.parent.map_or(&ground, |p| &out[p]);
        let pose = parent.pose * body.placement * body.joint_type.pose(&joint_q);
        let modes: Vec<_> = body
            .joint_type
            .free_modes()
            .iter()
            .enumerate()
            .map(|(k, mode)| (drive.v + k, pose.push_motion(mode) * drive.ratio))
            .collect();
        let mut velocity = parent.velocity;
        for (k, mode) in &modes {
            velocity += *mode * v[*k];
        }
        let mut acceleration = parent.acceleration;
        for (k, mode) in &modes {
            acceleration += *mode * a[*k] + velocity.cross(mode) * v[*k];
        }
        out.push(WorldBody { pose, velocity, acceleration, modes });
    }
    out
}

/// Returns the body and all its ancestors.
pub fn ancestors(mechanism: &Mechanism, body: usize) -> impl Iterator<Item = usize> + '_ {
    std::iter::successors(Some(body), |&b| mechanism.bodies()[b].parent)
}

/// Computes the inverse dynamics body by body in world coordinates, including armature: quadratic in time, but simple.
pub fn reference_rnea(mechanism: &Mechanism, q: &[f64], v: &[f64], a: &[f64]) -> Vec<f64> {
    let bodies = world_bodies(mechanism, q, v, a);
    let mut tau: Vec<f64> = mechanism.armature().iter().zip(a).map(|(r, a)| r * a).collect();
    for (i, force) in reference_wrenches(mechanism, &bodies).iter().enumerate() {
        for j in ancestors(mechanism, i) {
            for (k, mode) in &bodies[j].modes {
                tau[*k] += mode.dot(force);
            }
        }
    }
    tau
}

/// Returns the wrench that accelerates each body, in world coordinates at the world origin.
pub fn reference_wrenches(mechanism: &Mechanism, bodies: &[WorldBody]) -> Vec<Force<f64>> {
    let wrench = |(body, at): (&inertial::mechanism::Body, &WorldBody)| {
        let inertia = body.inertia.transformed(&at.pose);
        inertia.apply(&at.acceleration) + at.velocity.cross_force(&inertia.apply(&at.velocity))
    };
    mechanism.bodies().iter().zip(bodies).map(wrench).collect()
}

/// Returns the joint-torque regressor (without armature), from the 6×10 regressor of each body.
pub fn reference_regressor(mechanism: &Mechanism, q: &[f64], v: &[f64], a: &[f64]) -> DMatrix<f64> {
    let bodies = world_bodies(mechanism, q, v, a);
    let mut out = DMatrix::zeros(mechanism.nv(), mechanism.parameter_count());
    for block in mechanism.parameter_blocks() {
        let at = &bodies[block.body];
        let y = body_regressor(&at.pose.pull_motion(&at.velocity), &at.pose.pull_motion(&at.acceleration));
        for j in ancestors(mechanism, block.body) {
            for (k, mode) in &bodies[j].modes {
                let row = at.pose.pull_motion(mode).to_vector().transpose() * y;
                for c in 0..block.len {
                    out[(*k, block.offset + c)] += row[10 - block.len + c];
                }
            }
        }
    }
    out
}

/// Returns the mass matrix including armature, column by column from the reference inverse dynamics.
pub fn reference_mass_matrix(mechanism: &Mechanism, q: &[f64]) -> DMatrix<f64> {
    let n = mechanism.nv();
    let still = vec![0.0; n];
    let rest = DVector::from_vec(reference_rnea(mechanism, q, &still, &still));
    let mut out = DMatrix::zeros(n, n);
    for k in 0..n {
        let mut unit = still.clone();
        unit[k] = 1.0;
        let column = DVector::from_vec(reference_rnea(mechanism, q, &still, &unit)) - &rest;
        out.set_column(k, &column);
    }
    out
}

/// Returns the largest difference, relative to the largest entry (or to `floor`, if all entries are smaller).
pub fn relative_error(found: &[f64], expected: &[f64], floor: f64) -> f64 {
    assert_eq!(found.len(), expected.len());
    let scale = expected.iter().chain(found).fold(floor, |m, x| m.max(x.abs()));
    let error = found.iter().zip(expected).fold(0.0f64, |m, (x, y)| {
        let d = (x - y).abs();
        if d.is_nan() { f64::INFINITY } else { m.max(d) }
    });
    if scale > 0.0 { error / scale } else { error }
}

/// Asserts agreement to `tolerance` relative to the largest entry.
#[track_caller]
pub fn assert_close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    let error = relative_error(found, expected, 1e-3);
    assert!(
        error <= tolerance,
        "{what}: relative error {error:.2e}\n found    {found:?}\n expected {expected:?}"
    );
}
