//! Log-Cholesky chart of a body: any ten numbers are a body in the interior of the cone.

use nalgebra::Matrix4;

use super::chart::Chart;
use super::pseudo::{self, Matrix10, Vector10};
use crate::{Error, Result};

/// Entries of the factor after `α`: `d₁ d₂ d₃` on the diagonal, `s₁₂ s₂₃ s₁₃` and `t₁ t₂ t₃` above it.
const ENTRIES: [(usize, usize); 9] = [(0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3)];

/// Factorization `P = U Uᵀ` with `U = e^α T`, `T` upper triangular with diagonal `(e^{d₁}, e^{d₂}, e^{d₃}, 1)` (Rucker and Wensing
/// 2022). The coordinates are `(α, d₁, d₂, d₃, s₁₂, s₂₃, s₁₃, t₁, t₂, t₃)`.
///
/// Bodies on the boundary (rods, plates, points) are at infinity, so the iteration does not converge if the optimum is one of
/// them. Use this chart with an entropic prior, which keeps the optimum in the interior.
#[derive(Debug, Clone, PartialEq)]
pub struct LogCholesky(pub Vector10);

impl LogCholesky {
    /// Returns the matrix `T`.
    fn factor(&self) -> Matrix4<f64> {
        let mut t = Matrix4::identity();
        for (k, (i, j)) in ENTRIES.into_iter().enumerate() {
            t[(i, j)] = if i == j { self.0[1 + k].exp() } else { self.0[1 + k] };
        }
        t
    }

    /// Returns the position and the derivative of the entry of `T` for each coordinate after `α`.
    fn derivatives(t: &Matrix4<f64>) -> [(usize, usize, f64); 9] {
        ENTRIES.map(|(i, j)| (i, j, if i == j { t[(i, j)] } else { 1.0 }))
    }
}

impl Chart for LogCholesky {
    fn new(p: &Matrix4<f64>) -> Result<Self> {
        // The upper factor is the lower factor with rows and columns in reverse order.
        let reversed = Matrix4::from_fn(|i, j| p[(3 - i, 3 - j)]);
        let lower = reversed
            .cholesky()
            .ok_or_else(|| {
                Error::Infeasible("log-Cholesky coordinates need strictly consistent bodies".into())
            })?
            .l();
        let u = Matrix4::from_fn(|i, j| lower[(3 - i, 3 - j)]);
        let mut out = Vector10::zeros();
        out[0] = u[(3, 3)].ln();
        for (k, (i, j)) in ENTRIES.into_iter().enumerate() {
            let t = u[(i, j)] / u[(3, 3)];
            out[1 + k] = if i == j { t.ln() } else { t };
        }
        Ok(Self(out))
    }

    fn matrix(&self) -> Matrix4<f64> {
        let t = self.factor();
        t * t.transpose() * (2.0 * self.0[0]).exp()
    }

    fn log_det(&self) -> f64 {
        8.0 * self.0[0] + 2.0 * (self.0[1] + self.0[2] + self.0[3])
    }

    fn log_det_derivatives(&self) -> (Vector10, Vector10) {
        let slope = Vector10::from_fn(|i, _| match i {
            0 => 8.0,
            1..=3 => 2.0,
            _ => 0.0,
        });
        (slope, Vector10::zeros())
    }

    fn bound_distances(&self) -> Vector10 {
        Vector10::repeat(f64::INFINITY)
    }

    fn retract(&self, z: &Vector10) -> Self {
        Self(self.0 + z)
    }

    fn jacobian(&self) -> Matrix10 {
        let t = self.factor();
        let scale = (2.0 * self.0[0]).exp();
        let mut out = Matrix10::zeros();
        out.set_column(0, &pseudo::parameters(&(t * t.transpose() * (2.0 * scale))));
        for (k, (i, j, slope)) in Self::derivatives(&t).into_iter().enumerate() {
            // T' Tᵀ has only one nonzero row.
            let mut product = Matrix4::zeros();
            product.set_row(i, &(t.column(j).transpose() * (scale * slope)));
            out.set_column(1 + k, &pseudo::parameters(&(product + product.transpose())));
        }
        out
    }

    fn trace_hessian(&self, s: &Matrix4<f64>) -> Matrix10 {
        let t = self.factor();
        let scale = 2.0 * (2.0 * self.0[0]).exp();
        let pull = s * t;
        let mut out = Matrix10::zeros();
        out[(0, 0)] = 2.0 * scale * pull.dot(&t);
        let derivatives = Self::derivatives(&t);
        for (k, &(i, j, slope)) in derivatives.iter().enumerate() {
            out[(0, 1 + k)] = 2.0 * scale * pull[(i, j)] * slope;
            out[(1 + k, 0)] = out[(0, 1 + k)];
            for (n, &(a, b, other)) in derivatives.iter().enumerate() {
                if j == b {
                    out[(1 + k, 1 + n)] = scale * s[(i, a)] * slope * other;
                }
            }
            if i == j {
                out[(1 + k, 1 + k)] += scale * pull[(i, j)] * slope;
            }
        }
        out
    }
}
