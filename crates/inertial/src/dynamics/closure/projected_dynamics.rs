//! Dynamics of a mechanism with loops on its independent coordinates.
//!
//! With `v = G v_ind` and `a = G a_ind + g`, d'Alembert's principle projects all forces of the tree, `τ_ind = Gᵀ τ`:
//! loop joints do no work. Without loops, `G` is the identity and is not computed.

use crate::dynamics::{
    ClosedMechanism, ClosedWorkspace, Frame, base_wrench, base_wrench_regressor, expect_len,
    forward_dynamics, gravity_forces, kinetic_energy, kinetic_energy_regressor, mass_matrix, momentum,
    momentum_regressor, potential_energy,
};
use crate::linalg::{ldl, ldl_solve};
use crate::spatial::Force;
use crate::{Error, Result};

/// Ratio of a pivot of the mass matrix to its diagonal entry, below which the pivot is a rounding error.
const SINGULAR: f64 = 1e-13;

impl ClosedMechanism<'_> {
    /// Computes the mass matrix `GᵀHG`, `dof × dof` row-major.
    pub fn mass_matrix(&self, workspace: &mut ClosedWorkspace, q: &[f64], out: &mut [f64]) -> Result<()> {
        let n = self.dof();
        expect_len("mass matrix", out.len(), n * n)?;
        if self.is_tree() {
            return mass_matrix(self.mechanism(), &mut workspace.tree, q, out);
        }
        self.velocity_map(workspace, q)?;
        self.tree_mass_matrix(workspace, q)?;
        let ClosedWorkspace { map, mass_matrix: h, a: column, .. } = workspace;
        for j in 0..n {
            symmetric_times(h, map.column(j).as_slice(), column);
            for i in 0..=j {
                let entry = dot(map.column(i).as_slice(), column);
                (out[i * n + j], out[j * n + i]) = (entry, entry);
            }
        }
        Ok(())
    }

    /// Computes the forces `tau` on the independent coordinates for the motion `q, v, a`: `Gᵀ τ` of the tree.
    pub fn inverse_dynamics(
        &self,
        workspace: &mut ClosedWorkspace,
        q: &[f64],
        v: &[f64],
        a: &[f64],
        tau: &mut [f64],
    ) -> Result<()> {
        expect_len("force vector", tau.len(), self.dof())?;
        if self.is_tree() {
            return self.dynamics.rnea(&mut workspace.scratch, q, v, a, tau);
        }
        self.with_accelerations(workspace, q, v, a, |ws, v, a| {
            self.dynamics.rnea(&mut ws.scratch, q, v, a, &mut ws.tau)
        })?;
        project(workspace, tau);
        Ok(())
    }

    /// Computes the matrix `GᵀY` that maps the parameters to the forces on the independent coordinates (without
    /// armature), `dof × np` row-major. It stays in the workspace until the next call.
    pub fn torque_regressor<'w>(
        &self,
        workspace: &'w mut ClosedWorkspace,
        q: &[f64],
        v: &[f64],
        a: &[f64],
    ) -> Result<&'w [f64]> {
        if self.is_tree() {
            return self.dynamics.torque_regressor(&mut workspace.scratch, q, v, a);
        }
        self.with_accelerations(workspace, q, v, a, |ws, v, a| {
            let y = self.dynamics.torque_regressor(&mut ws.scratch, q, v, a)?;
            let np = self.mechanism().parameter_count().max(1);
            ws.regressor.fill(0.0);
            for (out, column) in ws.regressor.chunks_exact_mut(np).zip(ws.map.column_iter()) {
                for (row, g) in y.chunks_exact(np).zip(column.iter()).filter(|(_, g)| **g != 0.0) {
                    out.iter_mut().zip(row).for_each(|(out, y)| *out += g * y);
                }
            }
            Ok(())
        })?;
        Ok(&workspace.regressor)
    }

    /// Computes the forces at zero acceleration of the independent coordinates: centrifugal, Coriolis and gravity
    /// terms.
    pub fn bias_forces(
        &self,
        workspace: &mut ClosedWorkspace,
        q: &[f64],
        v: &[f64],
        out: &mut [f64],
    ) -> Result<()> {
        let mut still = std::mem::take(&mut workspace.difference);
        still.fill(0.0);
        let done = self.inverse_dynamics(workspace, q, v, &still[..self.dof()], out);
        workspace.difference = still;
        done
    }

    /// Computes the accelerations of the independent coordinates caused by the forces `tau` on them.
    pub fn forward_dynamics(
        &self,
        workspace: &mut ClosedWorkspace,
        q: &[f64],
        v: &[f64],
        tau: &[f64],
        a: &mut [f64],
    ) -> Result<()> {
        let n = self.dof();
        expect_len("force vector", tau.len(), n)?;
        expect_len("acceleration vector", a.len(), n)?;
        if self.is_tree() {
            return forward_dynamics(self.mechanism(), &mut workspace.tree, q, v, tau, a);
        }
        self.bias_forces(workspace, q, v, a)?;
        a.iter_mut().zip(tau).for_each(|(a, tau)| *a = tau - *a);
        let mut h = std::mem::take(&mut workspace.projected);
        let solved = self.mass_matrix(workspace, q, &mut h).and_then(|()| {
            workspace.difference[..n].iter_mut().enumerate().for_each(|(k, d)| *d = h[k * n + k]);
            ldl(&mut h, n, |k| SINGULAR * workspace.difference[k].abs()).map_err(|k| {
                let name = &self.independent_names()[k];
                Error::Singular(format!(
                    "the mass matrix is not positive definite at \"{name}\": do the bodies that it moves \
                     have no mass, or negative inertia?"
                ))
            })
        });
        if solved.is_ok() {
            ldl_solve(&h, n, a);
        }
        workspace.projected = h;
        solved
    }

    /// Computes the forces that hold the mechanism at rest against gravity.
    pub fn gravity_forces(&self, workspace: &mut ClosedWorkspace, q: &[f64], out: &mut [f64]) -> Result<()> {
        expect_len("gravity force vector", out.len(), self.dof())?;
        if self.is_tree() {
            return gravity_forces(self.mechanism(), &mut workspace.tree, q, out);
        }
        self.velocity_map(workspace, q)?;
        gravity_forces(self.mechanism(), &mut workspace.tree, q, &mut workspace.tau)?;
        project(workspace, out);
        Ok(())
    }

    /// Computes the kinetic energy.
    pub fn kinetic_energy(&self, workspace: &mut ClosedWorkspace, q: &[f64], v: &[f64]) -> Result<f64> {
        self.with_velocities(workspace, q, v, |ws, v| kinetic_energy(self.mechanism(), &mut ws.tree, q, v))
    }

    /// Computes the potential energy of gravity, like [`potential_energy`](crate::dynamics::potential_energy) of the
    /// tree.
    pub fn potential_energy(&self, workspace: &mut ClosedWorkspace, q: &[f64]) -> Result<f64> {
        potential_energy(self.mechanism(), &mut workspace.tree, q)
    }

    /// Computes the row that maps the parameters to the kinetic energy.
    pub fn kinetic_energy_regressor(
        &self,
        workspace: &mut ClosedWorkspace,
        q: &[f64],
        v: &[f64],
        out: &mut [f64],
    ) -> Result<()> {
        self.with_velocities(workspace, q, v, |ws, v| {
            kinetic_energy_regressor(self.mechanism(), &mut ws.tree, q, v, out)
        })
    }

    /// Computes the total momentum, like [`momentum`](crate::dynamics::momentum) of the tree.
    pub fn momentum(
        &self,
        workspace: &mut ClosedWorkspace,
        q: &[f64],
        v: &[f64],
        frame: Frame,
    ) -> Result<Force<f64>> {
        self.with_velocities(workspace, q, v, |ws, v| momentum(self.mechanism(), &mut ws.tree, q, v, frame))
    }

    /// Computes the momentum regressor, `6 × np` row-major, linear rows first.
    pub fn momentum_regressor(
        &self,
        workspace: &mut ClosedWorkspace,
        q: &[f64],
        v: &[f64],
        frame: Frame,
        out: &mut [f64],
    ) -> Result<()> {
        self.with_velocities(workspace, q, v, |ws, v| {
            momentum_regressor(self.mechanism(), &mut ws.tree, q, v, frame, out)
        })
    }

    /// Computes the wrench that moves the whole mechanism, like [`base_wrench`](crate::dynamics::base_wrench) of the
    /// tree. The ground exerts it through all joints, including loop joints.
    pub fn base_wrench(
        &self,
        workspace: &mut ClosedWorkspace,
        q: &[f64],
        v: &[f64],
        a: &[f64],
    ) -> Result<Force<f64>> {
        self.with_accelerations(workspace, q, v, a, |ws, v, a| {
            base_wrench(self.mechanism(), &mut ws.tree, q, v, a)
        })
    }

    /// Computes the regressor of [`Self::base_wrench`], `6 × np` row-major, force rows first.
    pub fn base_wrench_regressor(
        &self,
        workspace: &mut ClosedWorkspace,
        q: &[f64],
        v: &[f64],
        a: &[f64],
        out: &mut [f64],
    ) -> Result<()> {
        self.with_accelerations(workspace, q, v, a, |ws, v, a| {
            base_wrench_regressor(self.mechanism(), &mut ws.tree, q, v, a, out)
        })
    }

    /// Runs `task` with the velocities of the tree.
    fn with_velocities<T>(
        &self,
        workspace: &mut ClosedWorkspace,
        q: &[f64],
        v: &[f64],
        task: impl FnOnce(&mut ClosedWorkspace, &[f64]) -> Result<T>,
    ) -> Result<T> {
        // Moved out while the workspace is in use, and always put back.
        let mut tree_v = std::mem::take(&mut workspace.v);
        let done = self.velocities(workspace, q, v, &mut tree_v).and_then(|()| task(workspace, &tree_v));
        workspace.v = tree_v;
        done
    }

    /// Runs `task` with the velocities and accelerations of the tree.
    fn with_accelerations<T>(
        &self,
        workspace: &mut ClosedWorkspace,
        q: &[f64],
        v: &[f64],
        a: &[f64],
        task: impl FnOnce(&mut ClosedWorkspace, &[f64], &[f64]) -> Result<T>,
    ) -> Result<T> {
        let (mut tree_v, mut tree_a) = (std::mem::take(&mut workspace.v), std::mem::take(&mut workspace.a));
        let done = self
            .accelerations(workspace, q, v, a, &mut tree_v, &mut tree_a)
            .and_then(|()| task(workspace, &tree_v, &tree_a));
        (workspace.v, workspace.a) = (tree_v, tree_a);
        done
    }

    fn is_tree(&self) -> bool {
        self.dof() == self.mechanism().nv()
    }

    fn tree_mass_matrix(&self, workspace: &mut ClosedWorkspace, q: &[f64]) -> Result<()> {
        mass_matrix(self.mechanism(), &mut workspace.tree, q, &mut workspace.mass_matrix)
    }
}

/// Computes `out = Gᵀ τ` from the forces of the tree in the workspace.
fn project(workspace: &ClosedWorkspace, out: &mut [f64]) {
    for (out, column) in out.iter_mut().zip(workspace.map.column_iter()) {
        *out = dot(column.as_slice(), &workspace.tau);
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Computes `out = h x` for a symmetric `h`.
fn symmetric_times(h: &[f64], x: &[f64], out: &mut [f64]) {
    for (out, row) in out.iter_mut().zip(h.chunks_exact(x.len())) {
        *out = dot(row, x);
    }
}
