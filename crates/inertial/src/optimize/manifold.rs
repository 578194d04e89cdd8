//! Chart of bodies by mass, centre of mass, principal axes and central second moments: the manifold `R≥0 × R³ × SO(3) × R³≥0` of
//! paper 001.

use nalgebra::{Matrix3, Matrix4, Rotation3, Vector3};

use super::chart::Chart;
use super::pseudo::{self, Matrix10, Vector10};
use crate::Result;
use crate::linalg::symmetric_eigen;

/// Offsets of the coordinates: mass, centre of mass, rotation, moments.
const COM: usize = 1;
const TURN: usize = 4;
const MOMENT: usize = 7;

/// Point `θ = (m, c, Q, L)` of the manifold (paper 001, eq. 20). With `m ≥ 0` and `L ≥ 0` every point is a consistent body, and
/// every consistent body is a point: `P = [[Q diag(L) Qᵀ + m c cᵀ, m c], [m cᵀ, m]]`.
///
/// The local coordinates are changes of `m`, `c` and `L`, and a rotation vector `ω` with `Q exp([ω])`. The retraction clips `m`
/// and `L` at zero and stays on `SO(3)`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Principal {
    /// Mass.
    pub mass: f64,
    /// Centre of mass.
    pub com: Vector3<f64>,
    /// Principal axes, one in each column.
    pub axes: Rotation3<f64>,
    /// Second moments of mass about the centre of mass along the axes.
    pub moments: Vector3<f64>,
}

impl Principal {
    /// Returns the half sides of the uniform cuboid along the axes, with its centre at the centre of mass, that has this inertia
    /// (paper 001, eq. 25); `None` without mass.
    pub fn cuboid(&self) -> Option<Vector3<f64>> {
        (self.mass > 0.0).then(|| self.moments.map(|l| (3.0 * l / self.mass).sqrt()))
    }
}

/// Returns the upper left block, the last column and the corner of a symmetric matrix.
fn blocks(s: &Matrix4<f64>) -> (Matrix3<f64>, Vector3<f64>, f64) {
    (s.fixed_view::<3, 3>(0, 0).into_owned(), s.fixed_view::<3, 1>(0, 3).into_owned(), s[(3, 3)])
}

impl Chart for Principal {
    fn new(p: &Matrix4<f64>) -> Result<Self> {
        let (spread, first, mass) = blocks(p);
        let com = if mass > 0.0 { first / mass } else { Vector3::zeros() };
        let mass = mass.max(0.0);
        let eigen = symmetric_eigen(&(spread - com * com.transpose() * mass))?;
        let mut axes = eigen.vectors;
        if axes.determinant() < 0.0 {
            axes.column_mut(0).neg_mut();
        }
        // Rounding error of the subtraction.
        let rounding_error = 4.0 * f64::EPSILON * spread.norm();
        let moments = eigen.values.map(|l| if l > rounding_error { l } else { 0.0 });
        Ok(Self { mass, com, axes: Rotation3::from_matrix_unchecked(axes), moments })
    }

    fn matrix(&self) -> Matrix4<f64> {
        let q = self.axes.matrix();
        let spread = q * Matrix3::from_diagonal(&self.moments) * q.transpose()
            + self.com * self.com.transpose() * self.mass;
        let first = self.com * self.mass;
        let mut p = Matrix4::zeros();
        // Make it exactly symmetric.
        p.fixed_view_mut::<3, 3>(0, 0).copy_from(&((spread + spread.transpose()) * 0.5));
        p.fixed_view_mut::<3, 1>(0, 3).copy_from(&first);
        p.fixed_view_mut::<1, 3>(3, 0).copy_from(&first.transpose());
        p[(3, 3)] = self.mass;
        p
    }

    fn log_det(&self) -> f64 {
        self.mass.ln() + self.moments.iter().map(|l| l.ln()).sum::<f64>()
    }

    fn log_det_derivatives(&self) -> (Vector10, Vector10) {
        let (mut slope, mut bend) = (Vector10::zeros(), Vector10::zeros());
        let mut set = |i: usize, x: f64| {
            slope[i] = x.recip();
            bend[i] = -slope[i] * slope[i];
        };
        set(0, self.mass);
        (0..3).for_each(|i| set(MOMENT + i, self.moments[i]));
        (slope, bend)
    }

    fn bound_distances(&self) -> Vector10 {
        let mut room = Vector10::repeat(f64::INFINITY);
        room[0] = self.mass;
        room.fixed_rows_mut::<3>(MOMENT).copy_from(&self.moments);
        room
    }

    fn is_idle(&self, coordinate: usize) -> bool {
        let axis = |i: usize| self.moments[i % 3];
        match coordinate {
            COM..TURN => self.mass == 0.0,
            TURN..MOMENT => axis(coordinate - TURN + 1) == axis(coordinate - TURN + 2),
            _ => false,
        }
    }

    fn retract(&self, z: &Vector10) -> Self {
        Self {
            mass: (self.mass + z[0]).max(0.0),
            com: self.com + z.fixed_rows::<3>(COM),
            axes: self.axes * Rotation3::new(z.fixed_rows::<3>(TURN).into_owned()),
            moments: (self.moments + z.fixed_rows::<3>(MOMENT)).map(|l| l.max(0.0)),
        }
    }

    fn jacobian(&self) -> Matrix10 {
        let mut out = Matrix10::zeros();
        let homogeneous = self.com.push(1.0);
        out.set_column(0, &pseudo::parameters(&(homogeneous * homogeneous.transpose())));
        for k in 0..3 {
            let unit = Vector3::from_fn(|i, _| f64::from(u8::from(i == k))).push(0.0);
            let product = unit * homogeneous.transpose() * self.mass;
            out.set_column(COM + k, &pseudo::parameters(&(product + product.transpose())));
            // Axes i and j rotate about k: d(Q L Qᵀ) = (Lᵢ − Lⱼ)(qᵢ qⱼᵀ + qⱼ qᵢᵀ).
            let (i, j) = ((k + 1) % 3, (k + 2) % 3);
            let axis = |i: usize| self.axes.matrix().column(i).into_owned().push(0.0);
            let product = axis(i) * axis(j).transpose() * (self.moments[i] - self.moments[j]);
            out.set_column(TURN + k, &pseudo::parameters(&(product + product.transpose())));
            out.set_column(MOMENT + k, &pseudo::parameters(&(axis(k) * axis(k).transpose())));
        }
        out
    }

    fn trace_hessian(&self, s: &Matrix4<f64>) -> Matrix10 {
        // tr(S P) = tr(A Q L Qᵀ) + m (cᵀA c + 2 b·c + s) for S = [[A, b], [bᵀ, s]].
        let (a, b, _) = blocks(s);
        let mut out = Matrix10::zeros();
        let pull = (a * self.com + b) * 2.0;
        out.fixed_view_mut::<3, 1>(COM, 0).copy_from(&pull);
        out.fixed_view_mut::<1, 3>(0, COM).copy_from(&pull.transpose());
        out.fixed_view_mut::<3, 3>(COM, COM).copy_from(&(a * (2.0 * self.mass)));
        let inner = self.axes.matrix().transpose() * a * self.axes.matrix();
        let l = Matrix3::from_diagonal(&self.moments);
        let generator = |k: usize| Vector3::from_fn(|i, _| f64::from(u8::from(i == k))).cross_matrix();
        for k in 0..3 {
            let (i, j) = ((k + 1) % 3, (k + 2) % 3);
            for (moment, sign) in [(i, 2.0), (j, -2.0)] {
                out[(TURN + k, MOMENT + moment)] = sign * inner[(i, j)];
                out[(MOMENT + moment, TURN + k)] = sign * inner[(i, j)];
            }
            let w = generator(k);
            for n in 0..3 {
                // d²/dω² of exp(W) L exp(−W), as a symmetric bilinear form.
                let e = generator(n);
                let both = (w * e + e * w) * 0.5;
                let second = both * l + l * both - w * l * e - e * l * w;
                out[(TURN + k, TURN + n)] = inner.dot(&second.transpose());
            }
        }
        out
    }

    fn align(&self, s: &Matrix4<f64>) -> Self {
        // Axes of equal moments are arbitrary in their plane: choose those for which the gradient is diagonal.
        let equal = |i: usize, j: usize| self.moments[i] == self.moments[j];
        let group: Vec<usize> = match (equal(0, 1), equal(1, 2), equal(0, 2)) {
            (true, true, _) => vec![0, 1, 2],
            (true, ..) => vec![0, 1],
            (_, true, _) => vec![1, 2],
            (_, _, true) => vec![0, 2],
            _ => return self.clone(),
        };
        let q = self.axes.matrix();
        let inner = q.transpose() * blocks(s).0 * q;
        // Outside of the group the matrix is diagonal with distinct values, so that eigenvectors do not mix.
        let member = |i: usize| group.contains(&i);
        let beyond = 2.0 * inner.norm() + 1.0;
        let part = Matrix3::from_fn(|i, j| match (member(i) && member(j), i == j) {
            (true, _) => inner[(i, j)],
            (false, true) => beyond,
            (false, false) => 0.0,
        });
        let Ok(eigen) = symmetric_eigen(&part) else { return self.clone() };
        let mut turned = q * eigen.vectors;
        if turned.determinant() < 0.0 {
            turned.column_mut(0).neg_mut();
        }
        // Ascending order: first the group, then the remaining axis.
        let apart = (0..3).find(|&i| !member(i));
        let shared = self.moments[group[0]];
        let moments = Vector3::new(shared, shared, apart.map_or(shared, |i| self.moments[i]));
        Self { axes: Rotation3::from_matrix_unchecked(turned), moments, ..self.clone() }
    }
}
