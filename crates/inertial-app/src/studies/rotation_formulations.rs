//! Formulations of the principal axes of a body (paper 001, section III): rotation group, unit quaternion, rotation matrix.
//!
//! Each formulation of the least-squares problem over `(m, c, Q, L)` is solved by the same sequential quadratic programming,
//! from the same start. Only the coordinates of `Q` differ. Quaternions and matrices have constraints that iterates may violate, so
//! the cost is that of the nearest rotation (the projection of the paper); the constraints then have no effect on the cost and are
//! met by projecting the result.

use inertial::optimize::sqp::{ConstraintRows, Problem, SqpOptions, minimize};
use inertial::spatial::PseudoInertia;
use nalgebra::{DMatrix, DVector, Matrix3, Matrix4, Rotation3, Vector3};

use crate::Result;

/// Coordinates of the principal axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formulation {
    /// Rotation vector: three coordinates without constraints.
    RotationGroup,
    /// Unit quaternion: four coordinates, one constraint.
    Quaternion,
    /// Rotation matrix: nine coordinates, six constraints.
    Matrix,
}

/// All formulations that the paper compares.
pub const FORMULATIONS: [Formulation; 3] =
    [Formulation::RotationGroup, Formulation::Quaternion, Formulation::Matrix];

/// Offset of the coordinates of the axes, after the mass, the centre of mass and the moments.
const AXES: usize = 7;

/// Variables that are not negative: mass and moments.
const NONNEGATIVE: [usize; 4] = [0, 4, 5, 6];

/// Units of mass (kg), centre of mass (m) and moments (kg m²): variables of the solver are of order one.
const UNITS: [f64; AXES] = [1.0, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01];

/// Largest number of steps.
const MOST_STEPS: usize = 2000;

impl Formulation {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::RotationGroup => "rotation group",
            Self::Quaternion => "unit quaternion",
            Self::Matrix => "rotation matrix",
        }
    }

    /// Returns the coordinates of the identity.
    fn identity(self) -> Vec<f64> {
        match self {
            Self::RotationGroup => vec![0.0; 3],
            Self::Quaternion => vec![1.0, 0.0, 0.0, 0.0],
            Self::Matrix => Matrix3::<f64>::identity().as_slice().to_vec(),
        }
    }

    /// Returns the number of variables.
    pub fn variables(self) -> usize {
        AXES + self.identity().len()
    }

    /// Returns the number of constraints of the coordinates of the axes.
    pub fn constraints(self) -> usize {
        self.identity().len() - 3
    }

    /// Returns the matrix of the axes and its derivatives with respect to the coordinates.
    fn axes(self, z: &[f64]) -> (Matrix3<f64>, Vec<Matrix3<f64>>) {
        let unit = |i: usize| Vector3::from_fn(|k, _| f64::from(u8::from(k == i)));
        match self {
            Self::RotationGroup => {
                let turn = Vector3::from_column_slice(z);
                let matrix = Rotation3::new(turn).into_inner();
                let (angle, cross) = (turn.norm(), turn.cross_matrix());
                // Right Jacobian of the exponential; its series for small angles.
                let (a, b) = if angle < 1e-4 {
                    (0.5, 1.0 / 6.0)
                } else {
                    ((1.0 - angle.cos()) / angle.powi(2), (angle - angle.sin()) / angle.powi(3))
                };
                let jacobian = Matrix3::identity() - cross * a + cross * cross * b;
                let slope = |i: usize| matrix * (jacobian * unit(i)).cross_matrix();
                (matrix, (0..3).map(slope).collect())
            }
            Self::Quaternion => {
                let (w, v) = (z[0], Vector3::new(z[1], z[2], z[3]));
                let (identity, square) = (Matrix3::identity(), w * w + v.norm_squared());
                let matrix = identity * (w * w - v.norm_squared())
                    + v * v.transpose() * 2.0
                    + v.cross_matrix() * (2.0 * w);
                let mut slopes = vec![identity * (2.0 * w) + v.cross_matrix() * 2.0];
                slopes.extend((0..3).map(|i| {
                    let e = unit(i);
                    identity * (-2.0 * v[i])
                        + (e * v.transpose() + v * e.transpose()) * 2.0
                        + e.cross_matrix() * (2.0 * w)
                }));
                let matrix = matrix / square;
                let normalized = slopes.iter().zip(z).map(|(slope, x)| (slope - matrix * (2.0 * x)) / square);
                (matrix, normalized.collect())
            }
            Self::Matrix => {
                // Polar decomposition A = U H. A change dA turns U by ω with (tr(H) 1 − H) ω = vee(UᵀdA − dAᵀU).
                let a = Matrix3::from_column_slice(z);
                let matrix = Rotation3::from_matrix_eps(&a, 1e-15, 200, Rotation3::identity()).into_inner();
                let stretch = matrix.transpose() * a;
                let stretch = (stretch + stretch.transpose()) * 0.5;
                let system = Matrix3::identity() * stretch.trace() - stretch;
                let inverse = system.try_inverse().unwrap_or_else(Matrix3::zeros);
                let slope = |k: usize| {
                    let change = Matrix3::from_fn(|i, j| f64::from(u8::from(3 * j + i == k)));
                    let m = matrix.transpose() * change;
                    let skew =
                        Vector3::new(m[(2, 1)] - m[(1, 2)], m[(0, 2)] - m[(2, 0)], m[(1, 0)] - m[(0, 1)]);
                    matrix * (inverse * skew).cross_matrix()
                };
                (matrix, (0..9).map(slope).collect())
            }
        }
    }
}

/// Least-squares problem `½‖A π − b‖²` of the ten parameters of a body in one formulation.
struct BodyProblem<'a> {
    formulation: Formulation,
    rows: &'a DMatrix<f64>,
    right: &'a DVector<f64>,
}

/// Returns the ten parameters of a symmetric matrix; the map is linear.
fn parameters(p: &Matrix4<f64>) -> DVector<f64> {
    DVector::from_column_slice(PseudoInertia(*p).to_inertia().parameters().as_slice())
}

/// Returns the pseudo-inertia with these second moments about the origin, first moments and mass.
fn pseudo(spread: &Matrix3<f64>, first: &Vector3<f64>, mass: f64) -> Matrix4<f64> {
    let mut p = Matrix4::zeros();
    p.fixed_view_mut::<3, 3>(0, 0).copy_from(spread);
    p.fixed_view_mut::<3, 1>(0, 3).copy_from(first);
    p.fixed_view_mut::<1, 3>(3, 0).copy_from(&first.transpose());
    p[(3, 3)] = mass;
    p
}

impl BodyProblem<'_> {
    /// Returns the ten parameters and their derivatives with respect to the variables.
    fn parameters(&self, x: &[f64]) -> (DVector<f64>, DMatrix<f64>) {
        let at = |k: usize| x[k] * UNITS[k];
        let (mass, com) = (at(0), Vector3::new(at(1), at(2), at(3)));
        let moments = Matrix3::from_diagonal(&Vector3::new(at(4), at(5), at(6)));
        let (axes, slopes) = self.formulation.axes(&x[AXES..]);
        let spread = axes * moments * axes.transpose() + com * com.transpose() * mass;
        let mut jacobian = DMatrix::zeros(10, x.len());
        let mut set = |k: usize, p: Matrix4<f64>| jacobian.set_column(k, &parameters(&p));
        set(0, pseudo(&(com * com.transpose()), &com, 1.0) * UNITS[0]);
        for i in 0..3 {
            let e = Vector3::from_fn(|k, _| f64::from(u8::from(k == i)));
            let outer = e * com.transpose() + com * e.transpose();
            set(1 + i, pseudo(&(outer * mass), &(e * mass), 0.0) * UNITS[1 + i]);
            let axis = axes.column(i);
            set(4 + i, pseudo(&(axis * axis.transpose()), &Vector3::zeros(), 0.0) * UNITS[4 + i]);
        }
        for (k, slope) in slopes.iter().enumerate() {
            let half = slope * moments * axes.transpose();
            set(AXES + k, pseudo(&(half + half.transpose()), &Vector3::zeros(), 0.0));
        }
        (parameters(&pseudo(&spread, &(com * mass), mass)), jacobian)
    }
}

impl Problem for BodyProblem<'_> {
    fn dimension(&self) -> usize {
        self.formulation.variables()
    }

    fn objective(&mut self, x: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let (parameters, jacobian) = self.parameters(x);
        let residual = self.rows * parameters - self.right;
        if let Some(gradient) = gradient {
            let slope = jacobian.tr_mul(&self.rows.tr_mul(&residual));
            gradient.copy_from_slice(slope.as_slice());
        }
        0.5 * residual.norm_squared()
    }

    fn violation(&mut self, x: &[f64]) -> f64 {
        NONNEGATIVE.iter().map(|&k| -x[k]).fold(f64::NEG_INFINITY, f64::max)
    }

    fn constraints(&mut self, x: &[f64], _radius: f64, rows: &mut ConstraintRows) {
        NONNEGATIVE.iter().for_each(|&k| rows.push(k, -x[k], [(k, -1.0)]));
    }

    fn restore(&mut self, x: &[f64]) -> Option<Vec<f64>> {
        let mut out = x.to_vec();
        NONNEGATIVE.iter().for_each(|&k| out[k] = out[k].max(0.0));
        Some(out)
    }

    fn add_gradient(&mut self, _x: &[f64], key: usize, factor: f64, gradient: &mut [f64]) {
        gradient[key] -= factor;
    }
}

/// Solution of the least-squares problem in one formulation.
#[derive(Debug, Clone)]
pub struct FormulationResult {
    /// Formulation.
    pub formulation: Formulation,
    /// Ten parameters.
    pub parameters: DVector<f64>,
    /// Cost `½‖A π − b‖²`.
    pub cost: f64,
    /// Number of steps.
    pub steps: usize,
}

/// Solves the least-squares problem `½‖rows π − right‖²` over consistent bodies in one formulation, from a ball of 1 kg.
pub fn solve(
    formulation: Formulation,
    rows: &DMatrix<f64>,
    right: &DVector<f64>,
) -> Result<FormulationResult> {
    let mut problem = BodyProblem { formulation, rows, right };
    let start = [vec![1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0], formulation.identity()].concat();
    let options = SqpOptions::default().with(|o| {
        o.iterations = MOST_STEPS;
        o.tolerance = 1e-13;
    });
    let found = minimize(&mut problem, &start, &options, &mut |_| true)?;
    let (parameters, _) = problem.parameters(&found.x);
    Ok(FormulationResult { formulation, parameters, cost: found.objective, steps: found.iterations })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Derivatives of parameters agree with central differences.
    #[test]
    fn derivatives_agree_with_central_differences() {
        let (rows, right) = (DMatrix::identity(10, 10), DVector::zeros(10));
        for formulation in FORMULATIONS {
            let problem = BodyProblem { formulation, rows: &rows, right: &right };
            // Near the identity, where the nearest rotation is unique.
            let identity = formulation.identity();
            let axes = identity.iter().enumerate().map(|(k, z)| z + 0.3 - 0.07 * k as f64);
            let x: Vec<f64> = [1.3, 0.2, -0.4, 0.6, 0.7, 1.1, 0.4].into_iter().chain(axes).collect();
            let (_, jacobian) = problem.parameters(&x);
            for k in 0..x.len() {
                const STEP: f64 = 1e-5;
                let [up, down] = [STEP, -STEP].map(|d| {
                    let mut x = x.clone();
                    x[k] += d;
                    x
                });
                let change = (problem.parameters(&up).0 - problem.parameters(&down).0) / (2.0 * STEP);
                // Differences of second order have errors of about the square of the step.
                assert!((change - jacobian.column(k)).amax() < 1e-9, "{formulation:?} {k}");
            }
        }
    }
}
