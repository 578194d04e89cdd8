//! Formulations of the principal axes of a body (paper 001, section III): rotation group, unit quaternion, rotation matrix.
//!
//! Each formulation of the least-squares problem over `(m, c, Q, L)` is solved by the same sequential quadratic programming,
//! from the same start. Only the coordinates of `Q` and their constraints differ.

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

    /// Returns the number of constraints: nonnegative mass and moments, and those of the coordinates of the axes.
    pub fn constraints(self) -> usize {
        4 + self.equalities(&self.identity()).len()
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
                let identity = Matrix3::identity();
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
                (matrix, slopes)
            }
            Self::Matrix => {
                let slope = |k: usize| Matrix3::from_fn(|i, j| f64::from(u8::from(3 * j + i == k)));
                (Matrix3::from_column_slice(z), (0..9).map(slope).collect())
            }
        }
    }

    /// Returns the values of the equality constraints with their gradients.
    fn equalities(self, z: &[f64]) -> Vec<(f64, Vec<f64>)> {
        match self {
            Self::RotationGroup => Vec::new(),
            Self::Quaternion => {
                vec![(z.iter().map(|x| x * x).sum::<f64>() - 1.0, z.iter().map(|x| 2.0 * x).collect())]
            }
            Self::Matrix => {
                let column = |k: usize| Vector3::from_column_slice(&z[3 * k..3 * k + 3]);
                let pairs = (0..3).flat_map(|i| (i..3).map(move |j| (i, j)));
                let row = |(i, j): (usize, usize)| {
                    let mut gradient = vec![0.0; 9];
                    for k in 0..3 {
                        gradient[3 * i + k] += z[3 * j + k];
                        gradient[3 * j + k] += z[3 * i + k];
                    }
                    (column(i).dot(&column(j)) - f64::from(u8::from(i == j)), gradient)
                };
                pairs.map(row).collect()
            }
        }
    }

    /// Returns the coordinates of the nearest rotation.
    fn projected(self, z: &[f64]) -> Vec<f64> {
        match self {
            Self::RotationGroup => z.to_vec(),
            Self::Quaternion => {
                let norm = z.iter().map(|x| x * x).sum::<f64>().sqrt();
                z.iter().map(|x| x / norm).collect()
            }
            Self::Matrix => {
                Rotation3::from_matrix(&Matrix3::from_column_slice(z)).matrix().as_slice().to_vec()
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
        let signs = [0, 4, 5, 6].iter().map(|&k| -x[k]);
        let equalities = self.formulation.equalities(&x[AXES..]);
        signs.chain(equalities.iter().map(|(value, _)| value.abs())).fold(f64::NEG_INFINITY, f64::max)
    }

    fn constraints(&mut self, x: &[f64], _radius: f64, rows: &mut ConstraintRows) {
        for (key, k) in [0, 4, 5, 6].into_iter().enumerate() {
            rows.push(key, -x[k], [(k, -1.0)]);
        }
        // An equality is two inequalities.
        for (k, (value, gradient)) in self.formulation.equalities(&x[AXES..]).into_iter().enumerate() {
            for (which, sign) in [1.0, -1.0].into_iter().enumerate() {
                let entries = gradient.iter().enumerate().map(|(i, g)| (AXES + i, sign * g));
                rows.push(4 + 2 * k + which, sign * value, entries);
            }
        }
    }

    fn restore(&mut self, x: &[f64]) -> Option<Vec<f64>> {
        let mut out = x.to_vec();
        [0, 4, 5, 6].iter().for_each(|&k| out[k] = out[k].max(0.0));
        out[AXES..].copy_from_slice(&self.formulation.projected(&x[AXES..]));
        Some(out)
    }

    fn add_gradient(&mut self, x: &[f64], key: usize, factor: f64, gradient: &mut [f64]) {
        if key < 4 {
            gradient[[0, 4, 5, 6][key]] -= factor;
            return;
        }
        let sign = if key % 2 == 0 { factor } else { -factor };
        let equalities = self.formulation.equalities(&x[AXES..]);
        for (i, g) in equalities[(key - 4) / 2].1.iter().enumerate() {
            gradient[AXES + i] += sign * g;
        }
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
        o.tolerance = 1e-12;
    });
    let found = minimize(&mut problem, &start, &options, &mut |_| true)?;
    let (parameters, _) = problem.parameters(&found.x);
    Ok(FormulationResult { formulation, parameters, cost: found.objective, steps: found.iterations })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Derivatives of parameters and constraints agree with central differences.
    #[test]
    fn derivatives_are_those_of_differences() {
        let (rows, right) = (DMatrix::identity(10, 10), DVector::zeros(10));
        for formulation in FORMULATIONS {
            let problem = BodyProblem { formulation, rows: &rows, right: &right };
            let axes = (0..formulation.variables() - AXES).map(|k| 0.3 + 0.17 * k as f64);
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
                if k >= AXES {
                    let [up, down] = [up, down].map(|x| formulation.equalities(&x[AXES..]));
                    for (row, (a, b)) in formulation.equalities(&x[AXES..]).iter().zip(up.iter().zip(&down)) {
                        let change = (a.0 - b.0) / (2.0 * STEP);
                        assert!((change - row.1[k - AXES]).abs() < 1e-9, "{formulation:?} {k}");
                    }
                }
            }
        }
    }
}
