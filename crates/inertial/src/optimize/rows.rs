//! Quadratic cost in factored form: `½‖R K x − b‖² + ½ Σ ‖Mᵢ (xᵢ − vᵢ)‖²`.
//!
//! `K` maps the variables to fewer identifiable unknowns, and `R` are the rows of the data in these unknowns. The gradient of the
//! squared form, `AᵀA x − Aᵀb`, has a rounding error proportional to `‖A‖²‖x‖` in every direction, including the null space of
//! `K`, where a prior that is smaller by many orders of magnitude should determine the result. The rounding error of
//! `Kᵀ Rᵀ (R (K x) − b)` is in the range of `Kᵀ`: unexcited directions are not affected by it.

use nalgebra::{DMatrix, DVector};

use crate::linalg::product;

/// Quadratic cost in factored form, see the module documentation.
#[derive(Debug, Clone)]
pub struct FactoredRows {
    factor: DMatrix<f64>,
    map: DMatrix<f64>,
    right: DVector<f64>,
    pulls: Vec<Pull>,
}

/// Term `½‖M (x − v)‖²` of consecutive variables.
#[derive(Debug, Clone)]
struct Pull {
    offset: usize,
    root: DMatrix<f64>,
    value: DVector<f64>,
}

impl FactoredRows {
    pub(super) fn new(factor: DMatrix<f64>, map: DMatrix<f64>, right: DVector<f64>) -> Self {
        Self { factor, map, right, pulls: Vec::new() }
    }

    pub(super) fn pull(&mut self, offset: usize, root: DMatrix<f64>, value: DVector<f64>) {
        self.pulls.push(Pull { offset, root, value });
    }

    fn residual(&self, x: &DVector<f64>) -> DVector<f64> {
        let mut out = self.right.clone();
        out.gemv(1.0, &self.factor, &(&self.map * x), -1.0);
        out
    }

    /// Returns the value at `x`.
    pub(super) fn value(&self, x: &DVector<f64>) -> f64 {
        let pulls: f64 = self.pulls.iter().map(|p| p.residual(x).norm_squared()).sum();
        0.5 * (self.residual(x).norm_squared() + pulls)
    }

    /// Computes the gradient.
    pub(super) fn gradient(&self, x: &DVector<f64>, out: &mut DVector<f64>) {
        let inner = self.factor.tr_mul(&self.residual(x));
        out.gemv_tr(1.0, &self.map, &inner, 0.0);
        for pull in &self.pulls {
            let mut part = out.rows_mut(pull.offset, pull.value.len());
            part.gemv_tr(1.0, &pull.root, &pull.residual(x), 1.0);
        }
    }

    /// Stacks all rows in the variables, with `more` empty ones at the end.
    pub(super) fn stacked(&self, more: usize) -> DMatrix<f64> {
        let data = product(&self.factor, &self.map);
        let pulled: usize = self.pulls.iter().map(|p| p.value.len()).sum();
        let mut at = data.nrows();
        let mut out = data.insert_rows(at, pulled + more, 0.0);
        for pull in &self.pulls {
            let shape = pull.root.shape();
            out.view_mut((at, pull.offset), shape).copy_from(&pull.root);
            at += shape.0;
        }
        out
    }
}

impl Pull {
    fn residual(&self, x: &DVector<f64>) -> DVector<f64> {
        &self.root * (x.rows(self.offset, self.value.len()) - &self.value)
    }
}
