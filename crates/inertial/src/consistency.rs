//! Physical consistency of inertial parameters.
//!
//! Inertial parameters are physically consistent if the 4×4 pseudo-inertia `P` ([`PseudoInertia`]) is positive
//! semidefinite (paper 001). For a positive mass this holds if and only if the second moments about the centre of mass,
//! `Σ = ½ tr(I) 1 − I`, are positive semidefinite, which is the triangle inequality of the principal moments. If the
//! mass is zero, all other parameters must be zero: massless links are allowed, an inertia without mass is not.
//!
//! # Rounding
//! Bodies on the boundary of the consistent set are common (rods, plates, points) and files contain rounded numbers.
//! Second moments may therefore be negative by up to [`DEFAULT_TOLERANCE`] times the largest principal moment, which
//! covers the rounding of three moments to six significant digits. An additional tolerance of some units in the last
//! place covers the cancellation in the shift from the frame's origin to the centre of mass.

mod coordinates;
mod implausible;
mod rounding;

use std::fmt;

use nalgebra::{Matrix3, Vector3};

use crate::Result;
use crate::linalg::symmetric_eigen;
use crate::spatial::{Inertia, PseudoInertia};

pub use coordinates::ManifoldCoordinates;
pub use implausible::{Extent, Implausibility, implausibilities};
pub use rounding::{RoundingVerdict, check_rounded_inertia};

/// Allowed violation relative to the largest principal moment: moments rounded to six significant digits pass.
pub const DEFAULT_TOLERANCE: f64 = 1e-6;

/// Relative rounding error of the shift to the centre of mass, which adds and subtracts a few terms.
const SHIFT_ROUNDING: f64 = 16.0 * f64::EPSILON;

/// Violated condition of physical consistency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Violation {
    /// The mass is negative, or zero while other parameters are not.
    Mass,
    /// The inertia about the centre of mass has a negative principal moment.
    InertiaNotPositive,
    /// One principal moment about the centre of mass is larger than the sum of the other two.
    TriangleInequality,
}

impl Violation {
    /// Returns the name in the program's output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mass => "mass",
            Self::InertiaNotPositive => "inertia-not-positive",
            Self::TriangleInequality => "triangle-inequality",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Result of [`check_inertia`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Verdict {
    /// Violated conditions, each with its reason as text; empty for consistent parameters.
    pub violations: Vec<(Violation, String)>,
    /// Smallest eigenvalue of the pseudo-inertia about the frame's origin.
    pub pseudo_inertia_min_eigenvalue: f64,
    /// Principal moments about the centre of mass (kg m²), ascending.
    pub principal_moments: [f64; 3],
}

impl Verdict {
    /// Returns whether the parameters are physically consistent.
    pub fn is_consistent(&self) -> bool {
        self.violations.is_empty()
    }
}

/// Checks the physical consistency of the parameters of one body; `tolerance` is usually [`DEFAULT_TOLERANCE`].
///
/// ```
/// use inertial::consistency::{DEFAULT_TOLERANCE, Violation, check_inertia};
/// use inertial::spatial::Inertia;
/// use nalgebra::{Matrix3, Vector3, vector};
///
/// let shape = Matrix3::from_diagonal(&vector![0.1, 0.1, 0.3]);
/// let verdict = check_inertia(&Inertia::from_com(1.0, Vector3::zeros(), shape), DEFAULT_TOLERANCE)?;
/// let (violation, reason) = &verdict.violations[0];
/// assert_eq!(*violation, Violation::TriangleInequality);
/// assert_eq!(reason, "Ixx + Iyy = 0.2 < Izz = 0.3 kg m² about the centre of mass: no mass distribution has this");
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn check_inertia(inertia: &Inertia<f64>, tolerance: f64) -> Result<Verdict> {
    let pseudo = symmetric_eigen(&PseudoInertia::from(inertia).0)?;
    let central = inertia.about_com();
    let moments = symmetric_eigen(&central)?.values;
    let scale = moments.amax();
    let rounding_error = SHIFT_ROUNDING * (inertia.rotational.amax() + scale);
    // A moment is a sum of two second moments, and the deficit in the triangle inequality is twice a second moment.
    let slack = 2.0 * (tolerance * scale + rounding_error);

    let mut violations = Vec::new();
    if let Some(reason) = impossible_mass(inertia) {
        violations.push((Violation::Mass, reason));
    }
    if moments[0] < -slack {
        let reason = format!(
            "the smallest principal moment about the centre of mass is {} kg m²: it cannot be negative",
            significant(moments[0], 4)
        );
        violations.push((Violation::InertiaNotPositive, reason));
    }
    if moments[0] + moments[1] < moments[2] - slack {
        violations.push((Violation::TriangleInequality, broken_triangle(&central, &moments, slack)));
    }
    Ok(Verdict {
        violations,
        pseudo_inertia_min_eigenvalue: pseudo.values[0],
        principal_moments: moments.into(),
    })
}

/// Computes the nearest physically consistent parameters.
///
/// Mass and centre of mass are kept. The second moments about the centre of mass are projected onto the cone of
/// positive semidefinite matrices (negative eigenvalues become zero). This is the projection of the pseudo-inertia in
/// the Frobenius norm with the centre of mass as origin, so it does not depend on the link frame in the file. If the
/// mass is not positive, the result is a massless body: all ten parameters are zero.
pub fn nearest(inertia: &Inertia<f64>) -> Result<Inertia<f64>> {
    let Some(com) = inertia.com().filter(|_| inertia.mass > 0.0) else {
        return Ok(Inertia::zero());
    };
    let eigen = symmetric_eigen(&central_second_moments(inertia))?;
    let clipped =
        eigen.vectors * Matrix3::from_diagonal(&eigen.values.map(|l| l.max(0.0))) * eigen.vectors.transpose();
    let shape = Matrix3::from_diagonal_element(clipped.trace()) - clipped;
    // Symmetrizes the result, which the products preserve only up to rounding.
    Ok(Inertia::from_com(inertia.mass, com, (shape + shape.transpose()) * 0.5))
}

/// Box of uniform density with the inertial parameters of a body (paper 001, theorem 1), used to display an inertia.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cuboid {
    /// Centre of the box, equal to the centre of mass.
    pub centre: Vector3<f64>,
    /// Half side lengths, `√(3 L / m)` for the second moments `L` about the centre of mass.
    pub half_sides: Vector3<f64>,
    /// Principal axes as columns.
    pub axes: Matrix3<f64>,
}

/// Computes the cuboid of a body; `None` if the parameters are inconsistent or the mass is not positive.
///
/// ```
/// use inertial::consistency::cuboid;
/// use inertial::spatial::Inertia;
/// use nalgebra::{Matrix3, Vector3, vector};
///
/// // A box of 2 kg, 0.2 × 0.4 × 0.6 m.
/// let moments = vector![0.4 * 0.4 + 0.6 * 0.6, 0.2 * 0.2 + 0.6 * 0.6, 0.2 * 0.2 + 0.4 * 0.4] * (2.0 / 12.0);
/// let body = Inertia::from_com(2.0, Vector3::zeros(), Matrix3::from_diagonal(&moments));
/// let sides = cuboid(&body, 1e-9)?.unwrap().half_sides * 2.0;
/// assert!((sides - vector![0.2, 0.4, 0.6]).amax() < 1e-12);
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn cuboid(inertia: &Inertia<f64>, tolerance: f64) -> Result<Option<Cuboid>> {
    let Some(centre) = inertia.com().filter(|_| inertia.mass > 0.0) else { return Ok(None) };
    if !check_inertia(inertia, tolerance)?.is_consistent() {
        return Ok(None);
    }
    let eigen = symmetric_eigen(&central_second_moments(inertia))?;
    let half_sides = eigen.values.map(|l| (3.0 * l.max(0.0) / inertia.mass).sqrt());
    Ok(Some(Cuboid { centre, half_sides, axes: eigen.vectors }))
}

/// Returns the second moments `Σ` about the centre of mass.
fn central_second_moments(inertia: &Inertia<f64>) -> Matrix3<f64> {
    let central = Inertia { first_moment: Vector3::zeros(), rotational: inertia.about_com(), ..*inertia };
    PseudoInertia::from(&central).0.fixed_view::<3, 3>(0, 0).into_owned()
}

fn impossible_mass(inertia: &Inertia<f64>) -> Option<String> {
    if inertia.mass < 0.0 {
        Some(format!("the mass is {} kg: it cannot be negative", significant(inertia.mass, 4)))
    } else if inertia.mass == 0.0 && inertia.first_moment.amax() > 0.0 {
        Some("the mass is zero but the first moment is not: physically impossible".into())
    } else if inertia.mass == 0.0 && inertia.rotational.amax() > 0.0 {
        Some("the mass is zero but the inertia is not: physically impossible".into())
    } else {
        None
    }
}

/// Formats the violated triangle inequality with the entries of the tensor if these violate it, otherwise with the
/// principal moments.
fn broken_triangle(central: &Matrix3<f64>, moments: &Vector3<f64>, slack: f64) -> String {
    const NAMES: [&str; 3] = ["Ixx", "Iyy", "Izz"];
    let diagonal = central.diagonal();
    let k = diagonal.imax();
    let (i, j) = ((k + 1) % 3, (k + 2) % 3);
    let (i, j) = (i.min(j), i.max(j));
    let (left, right, sum, large) = if diagonal[i] + diagonal[j] < diagonal[k] - slack {
        (format!("{} + {}", NAMES[i], NAMES[j]), NAMES[k], diagonal[i] + diagonal[j], diagonal[k])
    } else {
        ("J1 + J2".into(), "J3", moments[0] + moments[1], moments[2])
    };
    let principal = if right == "J3" { "principal moments " } else { "" };
    // Uses as many digits as needed to show the difference.
    let digits = (4..17).find(|&d| significant(sum, d) != significant(large, d)).unwrap_or(17);
    format!(
        "{principal}{left} = {} < {right} = {} kg m² about the centre of mass: no mass distribution has this",
        significant(sum, digits),
        significant(large, digits)
    )
}

/// Formats a number with the given number of significant digits and without trailing zeros, for messages.
pub fn significant(x: f64, digits: usize) -> String {
    let rounded: f64 = format!("{x:.*e}", digits - 1).parse().unwrap_or(x);
    if rounded != 0.0 && !(1e-3..1e6).contains(&rounded.abs()) {
        format!("{rounded:e}")
    } else {
        format!("{rounded}")
    }
}
