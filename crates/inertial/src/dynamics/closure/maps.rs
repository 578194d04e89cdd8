//! Velocities and accelerations of all joints from those of the independent ones.

use nalgebra::DMatrix;

use super::closed_mechanism::{ClosedMechanism, ClosedWorkspace};
use crate::dynamics::expect_len;
use crate::{Error, Result};

/// Rank tolerance of the constraints in the dependent coordinates. Below it the dependent coordinates move faster than
/// the independent ones by the inverse of this ratio (a dead point).
const DEAD_POINT: f64 = 1e-9;

impl ClosedMechanism<'_> {
    /// Computes the matrix `G` of `v = G v_ind` at `q`, one row for each velocity coordinate of the tree.
    pub fn velocity_map<'w>(
        &self,
        workspace: &'w mut ClosedWorkspace,
        q: &[f64],
    ) -> Result<&'w DMatrix<f64>> {
        expect_len("position vector", q.len(), self.mechanism().nq())?;
        let ws = workspace;
        if self.dependent.is_empty() {
            return Ok(&ws.map);
        }
        self.factorize(ws, q)?;
        let scale = &self.constraints.scale;
        for (i, &k) in self.independent.iter().enumerate() {
            for row in 0..self.constraints.rows {
                ws.right_sides[(row, i)] = -ws.jacobian[(row, k)] / scale[k];
            }
        }
        ws.qr.least_squares_in_place(&mut ws.right_sides)?;
        for (row, &k) in self.dependent.iter().enumerate() {
            for i in 0..self.independent.len() {
                ws.map[(k, i)] = scale[k] * ws.right_sides[(row, i)];
            }
        }
        Ok(&ws.map)
    }

    /// Computes the velocities of the whole tree, `v = G v_ind`.
    pub fn velocities(
        &self,
        workspace: &mut ClosedWorkspace,
        q: &[f64],
        v_independent: &[f64],
        v: &mut [f64],
    ) -> Result<()> {
        expect_len("independent velocity vector", v_independent.len(), self.dof())?;
        expect_len("velocity vector", v.len(), self.mechanism().nv())?;
        if self.dependent.is_empty() {
            v.copy_from_slice(v_independent);
            return Ok(());
        }
        multiply(self.velocity_map(workspace, q)?, v_independent, v);
        Ok(())
    }

    /// Computes the velocities and accelerations of the whole tree, `v = G v_ind` and `a = G a_ind + g`, where `g` is
    /// the velocity-dependent acceleration due to the loops.
    pub fn accelerations(
        &self,
        workspace: &mut ClosedWorkspace,
        q: &[f64],
        v_independent: &[f64],
        a_independent: &[f64],
        v: &mut [f64],
        a: &mut [f64],
    ) -> Result<()> {
        expect_len("independent acceleration vector", a_independent.len(), self.dof())?;
        expect_len("acceleration vector", a.len(), self.mechanism().nv())?;
        self.velocities(workspace, q, v_independent, v)?;
        if self.dependent.is_empty() {
            a.copy_from_slice(a_independent);
            return Ok(());
        }
        let ws = workspace;
        multiply(&ws.map, a_independent, a);
        // J a = −J̇ v on the closed loops, with the factors of J computed for the velocities.
        self.constraints.jacobian(q, Some(v), &mut ws.jacobian, &mut ws.bias);
        for (b, bias) in ws.right_side.as_mut_slice().iter_mut().zip(&ws.bias) {
            *b = -bias;
        }
        ws.qr.least_squares_in_place(&mut ws.right_side)?;
        for (i, &k) in self.dependent.iter().enumerate() {
            a[k] += self.constraints.scale[k] * ws.right_side[i];
        }
        Ok(())
    }

    /// Factorizes the constraints in the dependent coordinates.
    pub(super) fn factorize(&self, ws: &mut ClosedWorkspace, q: &[f64]) -> Result<()> {
        self.constraints.jacobian(q, None, &mut ws.jacobian, &mut ws.bias);
        for (i, &k) in self.dependent.iter().enumerate() {
            ws.dependent.set_column(i, &ws.jacobian.column(k));
        }
        ws.qr.factorize(&ws.dependent)?;
        if ws.qr.rank(DEAD_POINT).rank < self.dependent.len() {
            return Err(Error::Singular(
                "the independent coordinates do not determine the motion of the loops here (a dead point or singular \
                 configuration)"
                    .into(),
            ));
        }
        Ok(())
    }
}

/// Computes `out = matrix · x` without allocation.
pub(super) fn multiply(matrix: &DMatrix<f64>, x: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for (column, x) in matrix.column_iter().zip(x) {
        for (out, m) in out.iter_mut().zip(column.iter()) {
            *out += m * x;
        }
    }
}
