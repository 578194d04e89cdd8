//! Constraints of all loops, scaled so that ranks and residuals are comparable between machines.

use nalgebra::DMatrix;

use super::loops::Loop;
use super::tolerance::{LARGEST_GAP, MOST_SLACK, RANK_TOLERANCE};
use crate::mechanism::{LoopJoint, Mechanism};

/// Constraints of all loops of a mechanism. Rows are in rad, or m relative to the length of their loop.
#[derive(Debug, Clone)]
pub(super) struct Constraints<'m> {
    pub mechanism: &'m Mechanism,
    pub loops: Vec<Loop>,
    pub rows: usize,
    /// Unit of each velocity coordinate: 1 rad, or the length of the loop for translations.
    pub scale: Vec<f64>,
    /// Whether each velocity coordinate belongs to a loop.
    pub on_loop: Vec<bool>,
    /// Factor of the tolerances of ranks and closure errors.
    slack: f64,
}

impl<'m> Constraints<'m> {
    pub fn new(mechanism: &'m Mechanism, joints: &[LoopJoint]) -> Self {
        let mut loops = Vec::with_capacity(joints.len());
        let mut rows = 0;
        let mut scale = vec![1.0; mechanism.nv()];
        let mut on_loop = vec![false; mechanism.nv()];
        for joint in joints {
            let l = Loop::new(mechanism, joint, rows);
            rows += l.rows();
            for i in l.bodies() {
                let body = &mechanism.bodies()[i];
                on_loop[body.v_range()].fill(true);
                for (k, mode) in body.v_range().zip(&*body.joint_type.free_modes()) {
                    if mode.angular.norm_squared() == 0.0 {
                        scale[k] = l.length;
                    }
                }
            }
            loops.push(l);
        }
        Self { mechanism, loops, rows, scale, on_loop, slack: 1.0 }
    }

    /// Returns the same constraints with the tolerances that the rounded angles of the file explain; `None` if these
    /// are not wider.
    ///
    /// The error of each angle is at most one unit of its last decimal, and a frame has three angles. The errors of
    /// the frames around a loop are independent.
    pub fn with_rounded_angles(&self) -> Option<Self> {
        let error = |i: usize| self.mechanism.bodies()[i].rounding.map_or(0.0, |r| r.angle);
        let squares = |l: &Loop| 3.0 * l.bodies().map(|i| error(i).powi(2)).sum::<f64>();
        let widest = self.loops.iter().map(squares).fold(0.0, f64::max).sqrt();
        let slack = (widest / LARGEST_GAP).min(MOST_SLACK);
        (slack > self.slack).then(|| Self { slack, ..self.clone() })
    }

    /// Returns the constraints of other joints, with the same tolerances.
    pub fn of(&self, joints: &[LoopJoint]) -> Self {
        Self { slack: self.slack, ..Self::new(self.mechanism, joints) }
    }

    /// Returns the fraction of the largest singular value below which constraints are redundant.
    pub fn rank_tolerance(&self) -> f64 {
        RANK_TOLERANCE * self.slack
    }

    /// Returns the largest closure error of closed loops.
    pub fn largest_gap(&self) -> f64 {
        LARGEST_GAP * self.slack
    }

    /// Writes the residuals and returns their norm.
    pub fn residual(&self, q: &[f64], out: &mut [f64]) -> f64 {
        for l in &self.loops {
            l.residual(self.mechanism, q, &mut out[l.row..l.row + l.rows()]);
        }
        out.iter().fold(0.0, |sum, c| sum + c * c).sqrt()
    }

    /// Writes the Jacobian of the residuals with each column multiplied by the scale of its coordinate; with `v` also
    /// `J̇ v`.
    pub fn jacobian(&self, q: &[f64], v: Option<&[f64]>, out: &mut DMatrix<f64>, bias: &mut [f64]) {
        out.fill(0.0);
        for l in &self.loops {
            let own = l.jacobian(self.mechanism, q, v, |row, coordinate, value| {
                out[(l.row + row, coordinate)] += value * self.scale[coordinate];
            });
            bias[l.row..l.row + l.rows()].copy_from_slice(&own[..l.rows()]);
        }
    }

    /// Returns the Jacobian alone in a new matrix.
    pub fn jacobian_at(&self, q: &[f64]) -> DMatrix<f64> {
        let mut out = DMatrix::zeros(self.rows, self.mechanism.nv());
        self.jacobian(q, None, &mut out, &mut vec![0.0; self.rows]);
        out
    }

    /// Returns the loop with the largest closure error, and this error (m or rad).
    pub fn widest(&self, q: &[f64]) -> Option<(&Loop, f64)> {
        let open = self.loops.iter().map(|l| (l, l.opening(self.mechanism, q)));
        open.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}
