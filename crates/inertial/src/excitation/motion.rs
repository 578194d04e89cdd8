//! States of a mechanism along a trajectory.

use nalgebra::Vector3;

use super::trajectory::Trajectory;
use crate::mechanism::{Base, JointType, Mechanism};
use crate::spatial::{quaternion_from_rotation, rotation_from_rpy};
use crate::{Error, Result};

/// Names of the coordinates that move a floating base: position in the world, and roll, pitch, yaw.
pub const BASE_COORDINATES: [&str; 6] = ["base.x", "base.y", "base.z", "base.roll", "base.pitch", "base.yaw"];

/// Motion of the tree of a mechanism along a trajectory. Joints that the trajectory does not name stay in the assembled
/// configuration.
///
/// A floating base follows [`BASE_COORDINATES`]: roll, pitch and yaw as in URDF.
#[derive(Debug, Clone)]
pub struct Motion<'m, 't> {
    mechanism: &'m Mechanism,
    trajectory: &'t Trajectory,
    /// Target of each coordinate of the trajectory: `(q, v)`, or the index of a base coordinate.
    targets: Vec<Target>,
    base: bool,
    rest: Vec<f64>,
    memory: [Vec<f64>; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Joint { q: usize, v: usize },
    Base(usize),
}

impl<'m, 't> Motion<'m, 't> {
    /// Creates the motion by finding the coordinates of the trajectory in the mechanism.
    pub fn new(mechanism: &'m Mechanism, trajectory: &'t Trajectory) -> Result<Self> {
        let targets =
            trajectory.joints().iter().map(|name| target(mechanism, name)).collect::<Result<Vec<_>>>()?;
        let zeros = vec![0.0; targets.len()];
        Ok(Self {
            mechanism,
            trajectory,
            base: targets.iter().any(|t| matches!(t, Target::Base(_))),
            targets,
            rest: mechanism.assembly().to_vec(),
            memory: [zeros.clone(), zeros.clone(), zeros],
        })
    }

    /// Returns the mechanism.
    pub fn mechanism(&self) -> &'m Mechanism {
        self.mechanism
    }

    /// Returns the trajectory.
    pub fn trajectory(&self) -> &'t Trajectory {
        self.trajectory
    }

    /// Computes the state at the time `t`: `nq` positions, `nv` velocities and accelerations.
    pub fn state(&mut self, t: f64, q: &mut [f64], v: &mut [f64], a: &mut [f64]) -> Result<()> {
        let (nq, nv) = (self.mechanism.nq(), self.mechanism.nv());
        let sizes = [("q", q.len(), nq), ("v", v.len(), nv), ("a", a.len(), nv)];
        for (what, found, expected) in sizes {
            if found != expected {
                return Err(Error::Dimension { what, expected, found });
            }
        }
        let [x, dx, ddx] = &mut self.memory;
        self.trajectory.evaluate(t, x, dx, ddx);
        q.copy_from_slice(&self.rest);
        v.fill(0.0);
        a.fill(0.0);
        let mut base = [[0.0; 6]; 3];
        for (k, target) in self.targets.iter().enumerate() {
            match *target {
                Target::Joint { q: iq, v: iv } => (q[iq], v[iv], a[iv]) = (x[k], dx[k], ddx[k]),
                Target::Base(i) => (base[0][i], base[1][i], base[2][i]) = (x[k], dx[k], ddx[k]),
            }
        }
        if self.base {
            let (pose, twist, acceleration) = base_state(&base);
            q[..7].copy_from_slice(&pose);
            v[..6].copy_from_slice(&twist);
            a[..6].copy_from_slice(&acceleration);
        }
        Ok(())
    }

    /// Samples all states at a rate (Hz), sample after sample: `q`, `v`, `a`.
    pub fn sample(&mut self, rate: f64) -> Result<[Vec<f64>; 3]> {
        let count = self.trajectory.samples(rate)?;
        let (nq, nv) = (self.mechanism.nq(), self.mechanism.nv());
        let mut out = [vec![0.0; count * nq], vec![0.0; count * nv], vec![0.0; count * nv]];
        let [q, v, a] = &mut out;
        let places = q.chunks_exact_mut(nq.max(1)).zip(v.chunks_exact_mut(nv.max(1)));
        for (i, ((q, v), a)) in places.zip(a.chunks_exact_mut(nv.max(1))).enumerate() {
            self.state(i as f64 / rate, q, v, a)?;
        }
        Ok(out)
    }
}

/// Finds a coordinate by name.
pub(super) fn target(mechanism: &Mechanism, name: &str) -> Result<Target> {
    if mechanism.base() == Base::Floating
        && let Some(i) = BASE_COORDINATES.iter().position(|c| *c == name)
    {
        return Ok(Target::Base(i));
    }
    let simple = movable(mechanism);
    let Some(&(_, q, v)) = simple.iter().find(|(n, ..)| n == name) else {
        let names: Vec<_> = simple.iter().map(|(n, ..)| n.as_str()).collect();
        return Err(Error::UnknownName(format!(
            "the trajectory moves \"{name}\", which is not a joint of the model; there are {}",
            names.join(", ")
        )));
    };
    Ok(Target::Joint { q, v })
}

/// Returns name, position and velocity coordinate of every joint that slides along or rotates about one axis.
pub(super) fn movable(mechanism: &Mechanism) -> Vec<(String, usize, usize)> {
    let names = mechanism.position_names();
    let axes =
        |t: &JointType| !matches!(t, JointType::Floating | JointType::Spherical | JointType::Planar { .. });
    let joints = mechanism.joints().iter().filter(|j| j.follows.is_none() && axes(&j.joint_type));
    joints.flat_map(|j| j.q_range().zip(j.v_range())).map(|(q, v)| (names[q].clone(), q, v)).collect()
}

/// Computes pose (x y z, quaternion), twist (linear, angular, in the base) and its derivative from position, roll, pitch and yaw
/// and their derivatives.
pub fn base_state([x, dx, ddx]: &[[f64; 6]; 3]) -> ([f64; 7], [f64; 6], [f64; 6]) {
    let [roll, pitch, yaw] = [x[3], x[4], x[5]];
    let rotation = rotation_from_rpy(roll, pitch, yaw);
    let linear = |x: &[f64; 6]| rotation.tr_mul(&Vector3::new(x[0], x[1], x[2]));
    let ((sr, cr), (sp, cp)) = (roll.sin_cos(), pitch.sin_cos());
    // ω = (1,0,0) roll' + Rxᵀ (0,1,0) pitch' + (Ry Rx)ᵀ (0,0,1) yaw'.
    let pitch_axis = Vector3::new(0.0, cr, -sr);
    let yaw_axis = Vector3::new(-sp, sr * cp, cr * cp);
    let turn = |x: &[f64; 6]| Vector3::x() * x[3] + pitch_axis * x[4] + yaw_axis * x[5];
    let w = turn(dx);
    let pitch_axis_rate = Vector3::new(0.0, -sr, -cr) * dx[3];
    let yaw_axis_rate =
        Vector3::new(0.0, cr * cp, -sr * cp) * dx[3] + Vector3::new(-cp, -sr * sp, -cr * sp) * dx[4];
    let dw = turn(ddx) + pitch_axis_rate * dx[4] + yaw_axis_rate * dx[5];
    let v = linear(dx);
    let dv = linear(ddx) - w.cross(&v);
    let [qx, qy, qz, qw] = quaternion_from_rotation(&rotation);
    ([x[0], x[1], x[2], qx, qy, qz, qw], [v.x, v.y, v.z, w.x, w.y, w.z], [dv.x, dv.y, dv.z, dw.x, dw.y, dw.z])
}

/// Transpose of the derivative of [`base_state`]: maps a gradient with respect to the displacement of the base (along its
/// velocities), its twist and the derivative of the twist to a gradient with respect to position, roll, pitch, yaw and their
/// derivatives.
pub(super) struct BasePullback([[f64; 6]; 3]);

impl BasePullback {
    pub fn new([x, dx, ddx]: &[[f64; 6]; 3], [gq, gv, ga]: [&[f64]; 3]) -> Self {
        let three = |g: &[f64], k: usize| Vector3::new(g[k], g[k + 1], g[k + 2]);
        let [roll, pitch, yaw] = [x[3], x[4], x[5]];
        let rotation = rotation_from_rpy(roll, pitch, yaw);
        let ((sr, cr), (sp, cp)) = (roll.sin_cos(), pitch.sin_cos());
        // Axes of pitch and yaw in the base, and their derivatives with respect to roll (r) and pitch (p).
        let (p, p_r) = (Vector3::new(0.0, cr, -sr), Vector3::new(0.0, -sr, -cr));
        let y = Vector3::new(-sp, sr * cp, cr * cp);
        let (y_r, y_p) = (Vector3::new(0.0, cr * cp, -sr * cp), Vector3::new(-cp, -sr * sp, -cr * sp));
        let (y_rr, y_rp) = (Vector3::new(0.0, -sr * cp, -cr * cp), Vector3::new(0.0, -cr * sp, sr * sp));
        let y_pp = Vector3::new(sp, -sr * cp, -cr * cp);
        let (dr, dp, dy) = (dx[3], dx[4], dx[5]);
        let w = Vector3::x() * dr + p * dp + y * dy;
        let linear = |x: &[f64; 6]| rotation.tr_mul(&Vector3::new(x[0], x[1], x[2]));
        let (v, a) = (linear(dx), linear(ddx));
        let (gal, gdw) = (three(ga, 0), three(ga, 3));
        // dv = Rᵀ ẍ − ω × v.
        let gvl = three(gv, 0) - gal.cross(&w);
        let gw = three(gv, 3) - v.cross(&gal);
        let turned = three(gq, 3) + gal.cross(&a) + gvl.cross(&v);
        let mut out = [[0.0; 6]; 3];
        for (to, g) in out.iter_mut().zip([three(gq, 0), gvl, gal]) {
            to[..3].copy_from_slice((rotation * g).as_slice());
        }
        // ω = x̂ ṙ + P ṗ + Y ẏ; its derivative adds P_r ṙ ṗ + (Y_r ṙ + Y_p ṗ) ẏ.
        let in_w = [p_r * dp + y_r * dy, y_p * dy];
        let in_dw = [
            p_r * ddx[4] + y_r * ddx[5] - p * (dr * dp) + (y_rr * dr + y_rp * dp) * dy,
            y_p * ddx[5] + (y_rp * dr + y_pp * dp) * dy,
        ];
        let axes = [Vector3::x(), p, y];
        let rates = [p_r * dp + y_r * dy, p_r * dr + y_p * dy, y_r * dr + y_p * dp];
        for k in 0..3 {
            let own = if k < 2 { gw.dot(&in_w[k]) + gdw.dot(&in_dw[k]) } else { 0.0 };
            out[0][3 + k] = axes[k].dot(&turned) + own;
            out[1][3 + k] = axes[k].dot(&gw) + rates[k].dot(&gdw);
            out[2][3 + k] = axes[k].dot(&gdw);
        }
        Self(out)
    }

    /// Returns the derivatives with respect to position, velocity and acceleration of base coordinate `k`.
    pub fn component(&self, k: usize) -> [f64; 3] {
        [self.0[0][k], self.0[1][k], self.0[2][k]]
    }
}
