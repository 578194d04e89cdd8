//! Mechanism in one configuration, in exact numbers: the starting point of the exact loop analysis.

use nalgebra::{Matrix3, Vector3};

use super::geometry::modes;
use super::orientation::{Turns, aligned, turn, turns};
use super::snap::{ROUNDING, inclination, recognize_rotation, slack};
use super::{
    Angle, BodyKind, Closing, Equations, ExactGeometry, JointType, LoopFrame, Mechanism, Pivoting, Surd,
};
use crate::linalg::{Echelon, Number, Pivot};
use crate::spatial::{Force, Motion, Pose, rotation_from_quaternion};

/// Tolerance for joint positions that come from a solved closure, not from a file: positions this near a multiple of
/// 15° become that multiple.
const SOLVED: f64 = 1e-9;

/// Exact position of one joint.
#[derive(Debug, Clone, Copy)]
struct AssemblyState {
    /// Angle about the joint's axis.
    angle: Angle,
    /// Displacement in a frame whose third axis is the joint's axis.
    shift: [Surd; 3],
    /// Quaternion `x y z w` of joints that rotate about a point.
    quaternion: Option<[Surd; 4]>,
}

/// Exact description of a loop joint.
#[derive(Debug, Clone)]
struct LoopPlan {
    predecessor: Option<usize>,
    successor: Option<usize>,
    predecessor_end: EndPlan,
    successor_end: EndPlan,
    joint: LoopKind,
}

/// Placement of a loop joint on a body.
#[derive(Debug, Clone)]
struct EndPlan {
    turns: Turns,
    offset: [Surd; 3],
}

impl EndPlan {
    fn to<T: Number>(&self) -> Pose<T> {
        Pose::new(turns(&self.turns), Vector3::from(self.offset.map(Surd::to)))
    }
}

#[derive(Debug, Clone, Copy)]
enum LoopKind {
    Fixed,
    Free(Pivoting, [Angle; 2], Surd),
    Universal([[Angle; 2]; 2]),
}

/// Mechanism in one (closed) configuration that can be evaluated in any [`Number`].
#[derive(Debug, Clone)]
pub struct ExactAssembly {
    geometry: ExactGeometry,
    states: Vec<AssemblyState>,
    loops: Vec<LoopPlan>,
    /// Bodies that are rigidly connected to their parents.
    locked: Vec<usize>,
    nv: usize,
}

/// Body of an [`Assembled`] mechanism.
#[derive(Debug, Clone)]
pub struct AssembledBody<T: Number> {
    /// Parent body; `None` is the ground.
    pub parent: Option<usize>,
    /// Kind of the body.
    pub kind: BodyKind,
    /// First velocity coordinate that moves the body.
    pub v: usize,
    /// Pose in the parent's frame.
    pub pose: Pose<T>,
    /// Free modes in the body's own frame, times the ratio of its drive.
    pub modes: Vec<Motion<T>>,
}

/// Loop joint of an [`Assembled`] mechanism.
#[derive(Debug, Clone)]
pub struct AssembledLoop<T: Number> {
    /// Body on the parent's side; `None` is the ground.
    pub predecessor: Option<usize>,
    /// Body on the child's side; `None` is the ground.
    pub successor: Option<usize>,
    /// Origin of the joint in the successor body's frame.
    pub centre: Vector3<T>,
    /// Free modes in the successor body's frame, constant as it moves; for a universal joint, all rotations.
    pub modes: Vec<Motion<T>>,
    /// Constraint wrenches in the successor body's frame, constant as it moves; they do no work in the joint.
    pub wrenches: Vec<Force<T>>,
    /// Axes of a universal joint: the first in the predecessor body, the second in the successor body. Their cross
    /// product is one more constraint, a pure moment.
    pub axes: Option<[Vector3<T>; 2]>,
    /// Frames of the joint on both bodies.
    pub ends: [Pose<T>; 2],
    /// Closure condition.
    pub closing: Closing<T>,
}

/// Mechanism in one closed configuration.
#[derive(Debug, Clone)]
pub struct Assembled<T: Number> {
    /// Unit vector of gravity in the world frame; zero without gravity.
    pub gravity: Vector3<T>,
    /// Bodies in the order of the mechanism.
    pub bodies: Vec<AssembledBody<T>>,
    /// Loop joints.
    pub loops: Vec<AssembledLoop<T>>,
    /// Number of velocity coordinates of the tree.
    pub nv: usize,
}

impl<T: Number> Assembled<T> {
    /// Returns the poses of all bodies in the world.
    pub fn world_poses(&self) -> Vec<Pose<T>> {
        let mut out: Vec<Pose<T>> = Vec::with_capacity(self.bodies.len());
        for body in &self.bodies {
            out.push(body.parent.map_or(body.pose, |p| out[p] * body.pose));
        }
        out
    }

    /// Returns whether all loops are closed exactly. Only for exact numbers; a helical joint that has rotated counts as
    /// open, because its angle is not an exact number.
    pub fn is_closed(&self) -> bool {
        let poses = self.world_poses();
        let world = |body: Option<usize>| body.map_or_else(Pose::identity, |i| poses[i]);
        self.loops.iter().all(|l| {
            let unturned = |c: T, s: T, _: T| (c == T::one() && s.is_zero()).then(T::zero);
            let equations = l.equations(&world(l.predecessor), &world(l.successor), unturned);
            equations.is_some_and(|all| all.iter().all(|(value, _)| value.is_zero()))
        })
    }
}

impl ExactAssembly {
    /// Creates the mechanism at the configuration `q`, which must close its loops; `snap` as in [`ExactGeometry::new`].
    pub fn new(mechanism: &Mechanism, geometry: &ExactGeometry, q: &[f64], snap: f64) -> Self {
        let numbers = geometry.to::<f64>();
        let states = mechanism
            .bodies()
            .iter()
            .zip(&numbers.bodies)
            .map(|(body, exact)| {
                let q = &q[body.drive.q..body.drive.q + body.joint_type.nq()];
                let mut position = q.to_vec();
                if let [p] = position.as_mut_slice() {
                    // The geometry of an open chain already includes the offsets.
                    let offset = if geometry.chain.is_some() { 0.0 } else { body.drive.offset };
                    *p = body.drive.ratio * *p + offset;
                }
                assembly_state(&body.joint_type, exact.pivoting, &exact.frame, &position)
            })
            .collect();
        let slack = slack(mechanism, geometry.size());
        let loops = mechanism
            .loops()
            .iter()
            .map(|l| {
                let exact = |x: f64| Surd::recognize_within(x, slack);
                let end = |end: &LoopFrame| EndPlan {
                    turns: recognize_rotation(&end.pose.rotation, ROUNDING, snap),
                    offset: end.pose.translation.data.0[0].map(exact),
                };
                LoopPlan {
                    predecessor: l.predecessor.body,
                    successor: l.successor.body,
                    predecessor_end: end(&l.predecessor),
                    successor_end: end(&l.successor),
                    joint: loop_kind(&l.joint_type, snap),
                }
            })
            .collect();
        Self { geometry: geometry.clone(), states, loops, locked: Vec::new(), nv: mechanism.nv() }
    }

    /// Connects bodies rigidly to their parents, by loop joints after those of the mechanism.
    pub fn with_locked(self, bodies: &[usize]) -> Self {
        Self { locked: bodies.to_vec(), ..self }
    }

    /// Returns the geometry, which does not depend on the configuration.
    pub fn geometry(&self) -> &ExactGeometry {
        &self.geometry
    }

    /// Returns a typical length of the mechanism.
    pub fn size(&self) -> f64 {
        self.geometry.size()
    }

    /// Evaluates the mechanism in one number type.
    pub fn to<T: Number>(&self) -> Assembled<T> {
        let geometry = self.geometry.to::<T>();
        let bodies = geometry.bodies.iter().zip(&self.states);
        let bodies: Vec<AssembledBody<T>> = bodies
            .map(|(body, state)| AssembledBody {
                parent: body.parent,
                kind: body.kind,
                v: body.v,
                pose: body.placement * state.to(&body.frame),
                modes: body.modes().iter().map(|m| *m * body.ratio).collect(),
            })
            .collect();
        let lock = |&i: &usize| {
            let body: &AssembledBody<T> = &bodies[i];
            AssembledLoop::new(body.parent, Some(i), [body.pose, Pose::identity()], Closing::Fixed)
        };
        let loops = self.loops.iter().map(LoopPlan::to).chain(self.locked.iter().map(lock)).collect();
        Assembled { gravity: geometry.gravity, bodies, loops, nv: self.nv }
    }
}

fn loop_kind(joint: &JointType, snap: f64) -> LoopKind {
    let along = |axis: &Vector3<f64>| inclination(axis, ROUNDING, snap);
    let free = |pivoting, axis: &Vector3<f64>| LoopKind::Free(pivoting, along(axis), Surd::ZERO);
    match joint {
        JointType::Fixed => LoopKind::Fixed,
        JointType::Revolute { axis } => free(Pivoting::Revolute, axis),
        JointType::Prismatic { axis } => free(Pivoting::Prismatic, axis),
        JointType::Helical { axis, pitch } => {
            LoopKind::Free(Pivoting::Helical, along(axis), Surd::recognize(*pitch))
        }
        JointType::Cylindrical { axis } => free(Pivoting::Cylindrical, axis),
        JointType::Planar { normal } => free(Pivoting::Planar, normal),
        JointType::Spherical => free(Pivoting::Spherical, &Vector3::z()),
        JointType::Floating => free(Pivoting::Floating, &Vector3::z()),
        JointType::Universal { axes } => LoopKind::Universal([along(&axes[0]), along(&axes[1])]),
    }
}

impl LoopPlan {
    fn to<T: Number>(&self) -> AssembledLoop<T> {
        let closing = match self.joint {
            LoopKind::Fixed => Closing::Fixed,
            LoopKind::Free(pivoting, axis, pitch) => Closing::Free(pivoting, aligned(&axis), pitch.to()),
            LoopKind::Universal(axes) => {
                Closing::Universal(axes.map(|axis| aligned::<T>(&axis).column(2).into_owned()))
            }
        };
        let ends = [self.predecessor_end.to(), self.successor_end.to()];
        AssembledLoop::new(self.predecessor, self.successor, ends, closing)
    }
}

impl<T: Number> AssembledLoop<T> {
    /// Returns the closure equations at the given poses of the two bodies in the world. `angle` computes the angle about
    /// the axis of a helical joint from its cosine, its sine and the estimate given by the advance; `None` if this fails.
    pub fn equations(
        &self,
        predecessor: &Pose<T>,
        successor: &Pose<T>,
        angle: impl Fn(T, T, T) -> Option<T>,
    ) -> Option<Equations<T>> {
        let relative = (*predecessor * self.ends[0]).inverse() * (*successor * self.ends[1]);
        self.closing.equations(&relative, angle)
    }

    /// Creates a loop joint between two bodies, given its frames on both (predecessor first) and its closure condition.
    pub fn new(
        predecessor: Option<usize>,
        successor: Option<usize>,
        ends: [Pose<T>; 2],
        closing: Closing<T>,
    ) -> Self {
        let [outer, end] = ends;
        let (free, axes) = match &closing {
            Closing::Fixed => (Vec::new(), None),
            Closing::Free(pivoting, frame, pitch) => {
                (modes(*pivoting, frame, *pitch)[..pivoting.freedoms()].to_vec(), None)
            }
            Closing::Universal(axes) => {
                // All rotations; the moment about the cross product of the two axes is a separate constraint.
                let ball = modes(Pivoting::Spherical, &Matrix3::identity(), T::zero())[..3].to_vec();
                (ball, Some([outer.rotation * axes[0], end.rotation * axes[1]]))
            }
        };
        let modes: Vec<Motion<T>> = free.iter().map(|m| end.push_motion(m)).collect();
        let mut span = Echelon::new(6, Pivot::Largest);
        for m in &modes {
            span.insert(m.to_vector().as_slice());
        }
        let wrench = |w: Vec<T>| Force::new(Vector3::new(w[0], w[1], w[2]), Vector3::new(w[3], w[4], w[5]));
        Self {
            predecessor,
            successor,
            centre: end.translation,
            wrenches: span.null_space().into_iter().map(wrench).collect(),
            modes,
            axes,
            ends,
            closing,
        }
    }
}

fn assembly_state(joint: &JointType, pivoting: Pivoting, frame: &Matrix3<f64>, q: &[f64]) -> AssemblyState {
    let pose = joint.pose(q);
    let (mut angle, mut quaternion) = (Angle::ZERO, None);
    match (pivoting, q) {
        (Pivoting::Revolute | Pivoting::Helical, [a])
        | (Pivoting::Cylindrical, [a, _])
        | (Pivoting::Planar, [_, _, a]) => {
            angle = Angle::recognize(*a, SOLVED);
        }
        (Pivoting::Spherical, &[x, y, z, w]) | (Pivoting::Floating, &[_, _, _, x, y, z, w]) => {
            quaternion = Some([x, y, z, w].map(solved));
        }
        _ => {}
    }
    let shift = frame.tr_mul(&pose.translation);
    let mut exact = [Surd::ZERO; 3];
    let free: &[usize] = match pivoting {
        Pivoting::Revolute | Pivoting::Spherical => &[],
        Pivoting::Prismatic | Pivoting::Helical | Pivoting::Cylindrical => &[2],
        Pivoting::Planar => &[0, 1],
        Pivoting::Floating => &[0, 1, 2],
    };
    for &k in free {
        exact[k] = solved(shift[k]);
    }
    AssemblyState { angle, shift: exact, quaternion }
}

/// Converts a solved coordinate to an exact number: a value near a short decimal becomes that decimal.
fn solved(x: f64) -> Surd {
    let short = (x / SOLVED).round() * SOLVED;
    Surd::recognize(if (x - short).abs() < 1e-3 * SOLVED { short } else { x })
}

impl AssemblyState {
    /// Returns the joint's displacement, given a frame whose third axis is the joint's axis.
    fn to<T: Number>(self, frame: &Matrix3<T>) -> Pose<T> {
        let rotation = match self.quaternion {
            Some(q) => {
                let [x, y, z, w] = q.map(Surd::to::<T>);
                rotation_from_quaternion(x, y, z, w).unwrap_or_else(Matrix3::identity)
            }
            None if self.angle == Angle::ZERO => Matrix3::identity(),
            None => frame * turn(2, self.angle.cos_sin()) * frame.transpose(),
        };
        Pose::new(rotation, frame * Vector3::from(self.shift.map(Surd::to)))
    }
}
