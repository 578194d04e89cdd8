//! Constraints of all loops, scaled so that ranks and residuals are comparable between machines.

use nalgebra::DMatrix;

use super::loops::Loop;
use super::tolerance::Tolerances;
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
    pub tolerances: Tolerances,
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
        Self { mechanism, loops, rows, scale, on_loop, tolerances: Tolerances::new(mechanism) }
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
