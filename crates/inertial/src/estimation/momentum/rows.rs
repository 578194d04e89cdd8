//! Rows of the momentum equations of single samples, and their reduction.

use nalgebra::{DMatrix, Matrix6, SMatrix, Vector6};

use crate::dynamics::{Frame, Workspace, mass_matrix, momentum_regressor};
use crate::estimation::least_squares::solution::Solution;
use crate::estimation::momentum::equations::{MomentumEquations, MomentumFit, MomentumSamples, RateNoise};
use crate::linalg::Triangle;
use crate::mechanism::Mechanism;
use crate::optimize::SolverStatus;
use crate::{Error, Result};

/// Equations of one sample, with the memory of one thread.
pub(crate) struct Sampled {
    workspace: Workspace,
    /// Memory for the mechanism with the current parameters.
    estimate: Workspace,
    /// Columns of the base parameters in the full regressor.
    columns: Vec<usize>,
    full: Vec<f64>,
    mass: Vec<f64>,
    unit: Vec<f64>,
    /// Regressor of size `6 × rank`.
    pub k: DMatrix<f64>,
    /// Momentum.
    pub m: Vector6<f64>,
    /// Rates.
    v: Vec<f64>,
}

/// Error of one sample, with its weighted form.
pub(crate) struct SampleError {
    /// Error `e = Kφ − m`.
    pub e: Vector6<f64>,
    /// Weighted error `C⁻¹ e`.
    pub weighted: Vector6<f64>,
    /// Whitening matrix `L⁻¹` with `C = L Lᵀ`.
    pub whiten: Matrix6<f64>,
}

impl Sampled {
    pub(crate) fn new(equations: &MomentumEquations<'_>) -> Self {
        let model = equations.mechanism();
        Self {
            workspace: Workspace::new(model),
            estimate: Workspace::new(model),
            columns: equations.regrouping.base.clone(),
            full: vec![0.0; 6 * model.parameter_count()],
            mass: vec![0.0; model.nv() * model.nv()],
            unit: vec![0.0; model.nv()],
            k: DMatrix::zeros(6, equations.len()),
            m: Vector6::zeros(),
            v: vec![0.0; model.nv()],
        }
    }

    /// Loads the regressor and momentum of sample `t`.
    pub(crate) fn load(&mut self, model: &Mechanism, samples: &MomentumSamples<'_>, t: usize) -> Result<()> {
        self.v.copy_from_slice(&samples.v[t * model.nv()..(t + 1) * model.nv()]);
        self.m = Vector6::from_column_slice(&samples.momentum[6 * t..6 * t + 6]);
        self.regressor(model, samples, t)
    }

    /// Loads the regressor of a unit rate `k` at the configuration of sample `t`.
    pub(crate) fn load_unit(
        &mut self,
        model: &Mechanism,
        samples: &MomentumSamples<'_>,
        t: usize,
        k: usize,
    ) -> Result<()> {
        self.v.fill(0.0);
        self.v[k] = 1.0;
        self.regressor(model, samples, t)
    }

    /// Loads the regressor at corrected rates `ν − δ`.
    pub(crate) fn load_corrected(
        &mut self,
        model: &Mechanism,
        samples: &MomentumSamples<'_>,
        t: usize,
        noise: &RateNoise,
        weighted: &Vector6<f64>,
    ) -> Result<()> {
        let nv = model.nv();
        for (k, (v, sigma)) in self.v.iter_mut().zip(&noise.rates).enumerate() {
            // ν̂ = ν − Σ Aᵀ C⁻¹ e; the mass matrix of this sample is still available.
            let pull: f64 = (0..6).map(|r| self.mass[r * nv + k] * weighted[r]).sum();
            *v = samples.v[t * nv + k] - sigma * sigma * pull;
        }
        self.regressor(model, samples, t)
    }

    fn regressor(&mut self, model: &Mechanism, samples: &MomentumSamples<'_>, t: usize) -> Result<()> {
        let q = &samples.q[t * model.nq()..(t + 1) * model.nq()];
        momentum_regressor(model, &mut self.workspace, q, &self.v, Frame::Base, &mut self.full)?;
        let np = model.parameter_count();
        for (j, &c) in self.columns.iter().enumerate() {
            for r in 0..6 {
                self.k[(r, j)] = self.full[r * np + c];
            }
        }
        Ok(())
    }

    /// Computes `C = A Σ Aᵀ + Σ_m` with the parameters of `with`.
    pub(crate) fn covariance(
        &mut self,
        with: &Mechanism,
        samples: &MomentumSamples<'_>,
        t: usize,
        noise: &RateNoise,
    ) -> Result<Matrix6<f64>> {
        let nv = with.nv();
        let q = &samples.q[t * with.nq()..(t + 1) * with.nq()];
        // The rows of the base in the mass matrix are the momentum of unit rates, linear first, in the axes of the base.
        mass_matrix(with, &mut self.estimate, q, &mut self.mass)?;
        let mut out = Matrix6::from_diagonal(&Vector6::from(noise.momentum).map(|s| s * s));
        for (k, sigma) in noise.rates.iter().enumerate() {
            let column = Vector6::from_fn(|r, _| self.mass[r * nv + k] * sigma);
            out += column * column.transpose();
        }
        Ok(out)
    }

    /// Computes the error of sample `t` at the parameters of `with`.
    pub(crate) fn error(
        &mut self,
        with: &Mechanism,
        samples: &MomentumSamples<'_>,
        t: usize,
        noise: &RateNoise,
    ) -> Result<SampleError> {
        let whiten = whitening(&self.covariance(with, samples, t, noise)?)?;
        let nv = with.nv();
        let v = &samples.v[t * nv..(t + 1) * nv];
        self.unit.copy_from_slice(v);
        let predicted =
            Vector6::from_fn(|r, _| (0..nv).map(|k| self.mass[r * nv + k] * self.unit[k]).sum::<f64>());
        let e = predicted - Vector6::from_column_slice(&samples.momentum[6 * t..6 * t + 6]);
        Ok(SampleError { e, weighted: whiten.transpose() * (whiten * e), whiten })
    }
}

/// Computes `L⁻¹` with `C = L Lᵀ`.
pub(crate) fn whitening(c: &Matrix6<f64>) -> Result<Matrix6<f64>> {
    let root = covariance_root(c)?;
    root.solve_lower_triangular(&Matrix6::identity()).ok_or_else(no_noise)
}

pub(crate) fn covariance_root(c: &Matrix6<f64>) -> Result<Matrix6<f64>> {
    // Use units of the noise of each component to detect a component without independent noise: its part of the factor is then of
    // the order of the rounding error √ε, not of order one.
    let size = c.diagonal().map(f64::sqrt);
    let unit = Matrix6::from_fn(|i, j| c[(i, j)] / (size[i] * size[j]));
    let root = unit.cholesky().ok_or_else(no_noise)?.unpack();
    if root.diagonal().min() < 1e-6 {
        return Err(no_noise());
    }
    Ok(Matrix6::from_diagonal(&size) * root)
}

fn no_noise() -> Error {
    Error::InvalidOption(
        "the stated noise does not affect every component of the momentum, expected noise of the base's twist"
            .into(),
    )
}

/// Rows that are being reduced to a triangular factor.
pub(crate) struct MomentumRows {
    triangle: Triangle,
    /// Rows column by column, as the factor expects them.
    block: Vec<f64>,
    filled: usize,
    capacity: usize,
    width: usize,
}

impl MomentumRows {
    /// Number of rows that are reduced at once. With some fifty columns they fit into the cache of a core.
    const CAPACITY: usize = 384;

    pub(crate) fn new(equations: &MomentumEquations<'_>) -> Self {
        let width = equations.len() + 1;
        // One sample has at most six rows per rate.
        let capacity = Self::CAPACITY.max(12 * equations.mechanism().nv());
        Self {
            triangle: Triangle::new(width),
            block: vec![0.0; capacity * width],
            filled: 0,
            capacity,
            width,
        }
    }

    /// Adds the six rows `by · [k | m]`.
    pub(crate) fn push(&mut self, by: &Matrix6<f64>, k: &DMatrix<f64>, m: &Vector6<f64>) {
        let (at, n) = (self.filled, self.capacity);
        for j in 0..self.width {
            let column: Vector6<f64> =
                if j + 1 < self.width { k.fixed_view::<6, 1>(0, j).into_owned() } else { *m };
            let product: SMatrix<f64, 6, 1> = by * column;
            self.block[j * n + at..j * n + at + 6].copy_from_slice(product.as_slice());
        }
        self.filled += 6;
    }

    pub(crate) fn flush_if_full(&mut self) -> Result<()> {
        if 2 * self.filled >= self.capacity { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        for j in 0..self.width {
            self.block[j * self.capacity + self.filled..(j + 1) * self.capacity].fill(0.0);
        }
        self.filled = 0;
        Ok(self.triangle.add_rows(&mut self.block, self.capacity)?)
    }

    pub(crate) fn finish(mut self) -> Result<Triangle> {
        self.flush()?;
        Ok(self.triangle)
    }
}

impl Solution {
    pub(crate) fn fit(self, covariance: DMatrix<f64>, chi_squared: Option<f64>) -> MomentumFit {
        MomentumFit {
            values: self.values,
            covariance,
            excited: self.excited,
            unexcited: self.unexcited,
            chi_squared,
            steps: 0,
            status: SolverStatus::Converged,
        }
    }
}
