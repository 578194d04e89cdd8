//! Tetrahedral-point model: torques linear in the pseudo-inertia, with geometric coefficients (paper 004, section 3).
//!
//! The frame of a body is a tetrahedron of points `E = (x, y, z, O)`, three of them at infinity. With the
//! pseudo-inertia `N` of eq. 44 the wrench on the body is `Σ N_mn E_m ∨ Ë_n` (eq. 38), and the force on coordinate `j`
//! is `τ_j = Σ_i Σ_mn N^i_mn L_j^i ∧ (E_m^i ∨ Ë_n^i)` (eqs 48, 49). A coefficient vanishes if the line of motion meets
//! the line along which a point is accelerated.

use nalgebra::{DMatrix, Matrix4, SMatrix, Vector3};

use crate::Result;
use crate::dynamics::{Workspace, body_accelerations};
use crate::mechanism::Mechanism;
use crate::spatial::pga::{Line, Point};
use crate::spatial::{Motion, Parameters, Pose, PseudoInertia};

/// Rows and columns of the ten entries of `N`, in the order of eq. 97.
pub const PSEUDO_INERTIA_ENTRIES: [(usize, usize); 10] =
    [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2), (0, 3), (1, 3), (2, 3), (3, 3)];

/// Returns the ten entries of a pseudo-inertia, in the order of [`PSEUDO_INERTIA_ENTRIES`] (eq. 97).
pub fn pseudo_inertia_entries(n: &PseudoInertia<f64>) -> Parameters<f64> {
    Parameters::from(PSEUDO_INERTIA_ENTRIES.map(|entry| n.0[entry]))
}

/// Returns the matrix that maps the ten entries of a pseudo-inertia to the ten parameters of the body.
///
/// ```
/// use inertial::dynamics::{parameters_from_pseudo_inertia, pseudo_inertia_entries};
/// use inertial::spatial::{Inertia, PseudoInertia};
/// use nalgebra::{Matrix3, vector};
/// let body = Inertia::from_com(2.0, vector![0.1, 0.2, 0.3], Matrix3::from_diagonal(&vector![0.3, 0.4, 0.5]));
/// let entries = pseudo_inertia_entries(&PseudoInertia::from(&body));
/// assert!((parameters_from_pseudo_inertia() * entries - body.parameters()).amax() < 1e-15);
/// ```
pub fn parameters_from_pseudo_inertia() -> SMatrix<f64, 10, 10> {
    let mut out = SMatrix::<f64, 10, 10>::zeros();
    for (k, (i, j)) in PSEUDO_INERTIA_ENTRIES.into_iter().enumerate() {
        let mut n = Matrix4::<f64>::zeros();
        n[(i, j)] = 1.0;
        n[(j, i)] = 1.0;
        out.set_column(k, &PseudoInertia(n).to_inertia().parameters());
    }
    out
}

/// Computes the wrench coefficients `E_m ∨ Ë_n` of a body at `pose` with its twist and acceleration (derivative of the
/// twist minus gravity) in the world frame.
fn accelerated_lines(pose: &Pose<f64>, twist: &Line<f64>, acceleration: &Line<f64>) -> [[Line<f64>; 4]; 4] {
    let direction = |k: usize| Point::infinite(pose.rotation.column(k).into_owned());
    let points = [direction(0), direction(1), direction(2), Point::finite(pose.translation)];
    // Ë = E × V̇ + Ė × V (eq. 35); gravity acts on finite points only.
    let accelerations = points.map(|e| {
        let (steady, turning) = (e.velocity(acceleration), e.velocity(twist).velocity(twist));
        Point::infinite(steady.position + turning.position)
    });
    points.map(|e| accelerations.map(|a| e.join(&a)))
}

/// Computes the regressor of the tetrahedral-point model (algorithm 5): one row for each velocity coordinate of the
/// tree, ten columns for each body (rotors and massless pieces included), in the order of [`PSEUDO_INERTIA_ENTRIES`].
///
/// $$\tau_j = \sum_i \sum_{mn} N^i_{mn} \left( L^i_j \wedge (E^i_m \vee \ddot E^i_n) \right)$$
/// with the pseudo-inertia $N^i$ of each body, the line $L^i_j$ about which coordinate $j$ moves it, and the points $E^i_m$ of its
/// frame, three of them at infinity. A coefficient vanishes if that line meets the line along which a point is accelerated.
///
/// With loops, `v` and `a` are those of the whole tree, and the rows of the independent coordinates are `Gᵀ` times
/// these, with `velocity_map`.
#[allow(clippy::doc_markdown, reason = "formulas have indices")]
pub fn tetrahedral_regressor(
    mechanism: &Mechanism,
    workspace: &mut Workspace,
    q: &[f64],
    v: &[f64],
    a: &[f64],
) -> Result<DMatrix<f64>> {
    body_accelerations(mechanism, workspace, q, v, a)?;
    let lift = Motion::new(Vector3::zeros(), -mechanism.gravity());
    let mut out = DMatrix::zeros(mechanism.nv(), 10 * mechanism.bodies().len());
    for i in 0..mechanism.bodies().len() {
        let pose = &workspace.poses()[i];
        let twist = Line::from(pose.push_motion(&workspace.velocities()[i]));
        let acceleration = Line::from(pose.push_motion(&workspace.accelerations()[i]) + lift);
        let wrenches = accelerated_lines(pose, &twist, &acceleration);
        // Lines L_j^i: the joints between the ground and the body.
        let mut above = Some(i);
        while let Some(j) = above {
            let body = &mechanism.bodies()[j];
            for (k, mode) in body.joint_type.free_modes().iter().enumerate() {
                let line = Line::from(workspace.poses()[j].push_motion(&(*mode * body.drive.ratio)));
                for (column, (m, n)) in PSEUDO_INERTIA_ENTRIES.into_iter().enumerate() {
                    let mut coefficient = line.wedge(&wrenches[m][n]);
                    if m != n {
                        coefficient += line.wedge(&wrenches[n][m]);
                    }
                    out[(body.drive.v + k, 10 * i + column)] += coefficient;
                }
            }
            above = body.parent;
        }
    }
    Ok(out)
}
