//! Constraint of one loop joint: residual, Jacobian and bias in the coordinates of the tree.
//!
//! The successor frame has the pose `X` in the predecessor frame. The joint permits the poses `X(q_l)` of its own
//! coordinates. The nearest of them is known in closed form, so these coordinates need not be stored. The remaining
//! error `e = log(X(q_l)⁻¹ X)` is a twist, and the loop is closed if its components along the constraint wrenches `T`
//! of the joint (those that do no work on the free modes, `TᵀΦ = 0`) vanish. At a closed configuration their derivative
//! is exactly `Tᵀ V_rel`, and the wrenches are constant in the successor frame except for universal joints.

use nalgebra::Vector3;

use crate::mechanism::{JointType, LoopJoint, Mechanism, plane_directions};
use crate::spatial::{Force, Motion, Pose};

/// Constraint wrenches of a loop joint, stored on the stack.
struct Wrenches {
    wrenches: [Force<f64>; 6],
    len: usize,
}

impl Wrenches {
    fn new() -> Self {
        Self { wrenches: [Force::zero(); 6], len: 0 }
    }

    fn push(&mut self, angular: Vector3<f64>, linear: Vector3<f64>) {
        self.wrenches[self.len] = Force::new(angular, linear);
        self.len += 1;
    }

    fn moments(&mut self, directions: &[Vector3<f64>]) {
        for d in directions {
            self.push(*d, Vector3::zeros());
        }
    }

    fn forces(&mut self, directions: &[Vector3<f64>], length: f64) {
        for d in directions {
            self.push(Vector3::zeros(), d / length);
        }
    }

    fn all(&self) -> &[Force<f64>] {
        &self.wrenches[..self.len]
    }
}

/// Pose permitted by a loop joint that is nearest to the pose of its successor frame.
struct Fit {
    pose: Pose<f64>,
    /// First axis of a universal joint in the successor frame.
    turned_axis: Vector3<f64>,
}

/// Loop joint with the bodies on both of its sides.
#[derive(Debug, Clone)]
pub(super) struct Loop {
    pub joint: LoopJoint,
    /// Bodies from the nearest common ancestor (excluded) to the predecessor.
    predecessor: Vec<usize>,
    /// Bodies from the nearest common ancestor (excluded) to the successor.
    successor: Vec<usize>,
    /// Typical length of the links; position residuals are relative to it.
    pub length: f64,
    /// Index of the first row among the constraints.
    pub row: usize,
}

impl Loop {
    pub fn new(mechanism: &Mechanism, joint: &LoopJoint, row: usize) -> Self {
        let (mut a, mut b) = (joint.predecessor.body, joint.successor.body);
        let (mut predecessor, mut successor) = (Vec::new(), Vec::new());
        // Indices increase outward: move inward from the larger one until both sides meet (`None`, the ground, is the
        // smallest).
        while a != b {
            let (side, at) = if a > b { (&mut predecessor, &mut a) } else { (&mut successor, &mut b) };
            if let Some(i) = *at {
                side.push(i);
                *at = mechanism.bodies()[i].parent;
            }
        }
        predecessor.reverse();
        successor.reverse();
        let q = mechanism.assembly();
        let links = predecessor.iter().chain(&successor).map(|&i| mechanism.bodies()[i].pose(q).translation);
        let ends = [joint.predecessor.pose.translation, joint.successor.pose.translation];
        let longest = links.chain(ends).map(|t| t.norm()).fold(0.0, f64::max);
        // If all axes meet in one point there is no reference length, and any value can be used.
        let length = if longest > 0.0 { longest } else { 1.0 };
        Self { joint: joint.clone(), predecessor, successor, length, row }
    }

    /// Returns the number of constraints.
    pub fn rows(&self) -> usize {
        6 - self.joint.joint_type.nv()
    }

    /// Returns the bodies whose joints move in this loop.
    pub fn bodies(&self) -> impl Iterator<Item = usize> + '_ {
        self.predecessor.iter().chain(&self.successor).copied()
    }

    /// Writes the residual of the rows of this loop (rad, and m relative to the length of the loop).
    pub fn residual(&self, mechanism: &Mechanism, q: &[f64], out: &mut [f64]) {
        let (error, wrenches) = self.error(mechanism, q);
        for (out, wrench) in out.iter_mut().zip(wrenches.all()) {
            *out = error.dot(wrench);
        }
    }

    /// Returns the largest residual in its own unit (rad or m).
    pub fn opening(&self, mechanism: &Mechanism, q: &[f64]) -> f64 {
        let (error, wrenches) = self.error(mechanism, q);
        let in_unit = |w: &Force<f64>| {
            let force = w.linear.norm();
            error.dot(w).abs() / if force > 0.0 { force } else { 1.0 }
        };
        wrenches.all().iter().map(in_unit).fold(0.0, f64::max)
    }

    fn error(&self, mechanism: &Mechanism, q: &[f64]) -> (Motion<f64>, Wrenches) {
        let relative = self.frame(mechanism, q, false).inverse() * self.frame(mechanism, q, true);
        let fit = nearest(&self.joint.joint_type, &relative);
        ((fit.pose.inverse() * relative).log(), self.wrenches(&fit))
    }

    /// Passes each entry of the constraint Jacobian as `(row of the loop, velocity coordinate, value)`; entries of the
    /// same position are to be added. With `v`, also returns `J̇ v`.
    pub fn jacobian(
        &self,
        mechanism: &Mechanism,
        q: &[f64],
        v: Option<&[f64]>,
        mut entry: impl FnMut(usize, usize, f64),
    ) -> [f64; 6] {
        let (from, to) = (self.frame(mechanism, q, false), self.frame(mechanism, q, true));
        let fit = nearest(&self.joint.joint_type, &(from.inverse() * to));
        let wrenches = self.wrenches(&fit);
        // In the frame of the common ancestor, where the modes of both sides are compared.
        let mut held = wrenches.wrenches;
        for w in &mut held {
            *w = to.push_force(w);
        }
        let held = &held[..wrenches.len];
        let mut side = |bodies: &[usize], sign: f64| {
            let mut pose = Pose::identity();
            let (mut velocity, mut acceleration) = (Motion::zero(), Motion::zero());
            for &i in bodies {
                let body = &mechanism.bodies()[i];
                pose = pose * body.pose(q);
                for (k, mode) in body.joint_type.free_modes().iter().enumerate() {
                    let mode = pose.push_motion(mode) * (sign * body.drive.ratio);
                    for (row, wrench) in held.iter().enumerate() {
                        entry(row, body.drive.v + k, mode.dot(wrench));
                    }
                }
                if let Some(v) = v {
                    let own = pose.push_motion(&body.joint_motion(v));
                    velocity += own;
                    acceleration += velocity.cross(&own);
                }
            }
            (velocity, acceleration)
        };
        let (v_from, a_from) = side(&self.predecessor, -1.0);
        let (v_to, a_to) = side(&self.successor, 1.0);
        let mut bias = [0.0; 6];
        if v.is_some() {
            // d/dt of V_rel = X_S⁻¹ (V_S − V_P), in the frame of the ancestor.
            let relative = a_to - a_from + v_to.cross(&v_from);
            for (bias, wrench) in bias.iter_mut().zip(held) {
                *bias = relative.dot(wrench);
            }
            if let JointType::Universal { axes: [_, second] } = self.joint.joint_type {
                // V_rel = φ₁ r₁ + φ₂ r₂ with φ̇₁ = −r₂ φ₂ × φ₁: the product with the wrench n along φ₁ × φ₂ is n·φ̇₁ r₁
                // = r₁ r₂ |φ₁ × φ₂|.
                let rate = to.pull_motion(&(v_to - v_from)).angular;
                let normal = fit.turned_axis.cross(&second);
                let square = normal.norm_squared();
                let first_rate = rate.cross(&second).dot(&normal) / square;
                let second_rate = fit.turned_axis.cross(&rate).dot(&normal) / square;
                bias[0] -= first_rate * second_rate * square.sqrt();
            }
        }
        bias
    }

    fn frame(&self, mechanism: &Mechanism, q: &[f64], successor: bool) -> Pose<f64> {
        let (bodies, end) = if successor {
            (&self.successor, &self.joint.successor)
        } else {
            (&self.predecessor, &self.joint.predecessor)
        };
        bodies.iter().fold(Pose::identity(), |pose, &i| pose * mechanism.bodies()[i].pose(q)) * end.pose
    }

    /// Returns the wrenches in the successor frame that do no work on the free modes of the joint.
    fn wrenches(&self, fit: &Fit) -> Wrenches {
        let (x, y, z) = (Vector3::x(), Vector3::y(), Vector3::z());
        let length = self.length;
        let mut out = Wrenches::new();
        match self.joint.joint_type {
            JointType::Fixed => {
                out.moments(&[x, y, z]);
                out.forces(&[x, y, z], length);
            }
            JointType::Revolute { axis } => {
                out.moments(&plane_directions(&axis));
                out.forces(&[x, y, z], length);
            }
            JointType::Prismatic { axis } => {
                out.moments(&[x, y, z]);
                out.forces(&plane_directions(&axis), length);
            }
            JointType::Helical { axis, pitch } => {
                out.moments(&plane_directions(&axis));
                out.forces(&plane_directions(&axis), length);
                let scale = length.max(pitch.abs());
                out.push(axis * (-pitch / scale), axis / scale);
            }
            JointType::Cylindrical { axis } => {
                out.moments(&plane_directions(&axis));
                out.forces(&plane_directions(&axis), length);
            }
            JointType::Universal { axes: [_, second] } => {
                out.moments(&[fit.turned_axis.cross(&second).normalize()]);
                out.forces(&[x, y, z], length);
            }
            JointType::Planar { normal } => {
                out.moments(&plane_directions(&normal));
                out.forces(&[normal], length);
            }
            JointType::Spherical => out.forces(&[x, y, z], length),
            JointType::Floating => {}
        }
        out
    }
}

/// Returns the pose permitted by the joint that is nearest to `at`, exactly `at` if the joint permits it.
fn nearest(joint_type: &JointType, at: &Pose<f64>) -> Fit {
    let (r, t) = (&at.rotation, &at.translation);
    // The angle about the axis that minimizes the remaining rotation.
    let turn = |axis: &Vector3<f64>| {
        let twice_sine = Vector3::new(r.m32 - r.m23, r.m13 - r.m31, r.m21 - r.m12);
        axis.dot(&twice_sine).atan2(r.trace() - axis.dot(&(r * axis)))
    };
    let mut turned_axis = Vector3::zeros();
    let pose = match joint_type {
        JointType::Fixed => Pose::identity(),
        JointType::Revolute { axis } => joint_type.pose(&[turn(axis)]),
        JointType::Prismatic { axis } => joint_type.pose(&[axis.dot(t)]),
        JointType::Helical { axis, pitch } => {
            let angle = turn(axis);
            let whole_turns = ((axis.dot(t) / pitch - angle) / std::f64::consts::TAU).round();
            let whole_turns = if whole_turns.is_finite() { whole_turns } else { 0.0 };
            joint_type.pose(&[angle + std::f64::consts::TAU * whole_turns])
        }
        JointType::Cylindrical { axis } => joint_type.pose(&[turn(axis), axis.dot(t)]),
        JointType::Universal { axes: [first, second] } => {
            // The first angle rotates the second axis, the second angle rotates the first axis back.
            let q = [angle_about(first, second, &(r * second)), angle_about(second, &r.tr_mul(first), first)];
            turned_axis = joint_type.free_modes_at(&q)[0].angular;
            joint_type.pose(&q)
        }
        JointType::Planar { normal } => {
            let [a, b] = plane_directions(normal);
            joint_type.pose(&[a.dot(t), b.dot(t), turn(normal)])
        }
        JointType::Spherical => Pose::new(*r, Vector3::zeros()),
        JointType::Floating => *at,
    };
    Fit { pose, turned_axis }
}

/// Returns the angle about `axis` from `u` to `w`, both projected along it.
fn angle_about(axis: &Vector3<f64>, u: &Vector3<f64>, w: &Vector3<f64>) -> f64 {
    axis.dot(&u.cross(w)).atan2(u.dot(w) - axis.dot(u) * axis.dot(w))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::vector;

    /// Checks for every joint type that a permitted pose is its own nearest permitted pose.
    #[test]
    fn the_nearest_allowed_pose_of_an_allowed_pose_is_itself() {
        let axis = vector![0.36, -0.48, 0.8];
        let other = vector![0.6, 0.64, 0.48];
        let cases: [(JointType, &[f64]); 11] = [
            (JointType::Fixed, &[]),
            (JointType::Revolute { axis }, &[2.9]),
            (JointType::Prismatic { axis }, &[-1.3]),
            (JointType::Helical { axis, pitch: 0.05 }, &[-17.0]),
            (JointType::Helical { axis, pitch: 0.0 }, &[1.0]),
            (JointType::Cylindrical { axis }, &[-2.0, 0.7]),
            (JointType::Universal { axes: [axis, other] }, &[1.9, -2.3]),
            (JointType::Universal { axes: [Vector3::x(), Vector3::y()] }, &[-0.4, 3.0]),
            (JointType::Planar { normal: axis }, &[0.3, -0.8, 1.1]),
            (JointType::Spherical, &[0.5, -0.1, 0.7, 0.2]),
            (JointType::Floating, &[1.0, 2.0, 3.0, 0.5, -0.1, 0.7, 0.2]),
        ];
        for (joint_type, q) in cases {
            let pose = joint_type.pose(q);
            let fit = nearest(&joint_type, &pose);
            // Rounding error of a few products.
            assert!((fit.pose.to_matrix() - pose.to_matrix()).amax() < 1e-14, "{}", joint_type.name());
        }
    }
}
