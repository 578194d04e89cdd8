//! Excited directions: combinations of unknowns that the data determine, relative to the prior.
//!
//! Measured joints are never exactly at rest: filtered noise moves every joint a little, so all directions would be excited by
//! rank alone. A direction of the unknowns counts as excited if its standard error from the data alone is less than [`LEAST`]
//! times the width of the prior (each body known to about its own size, see [`crate::estimation::consistent`]). The limit is
//! generous: an excited direction may still be uncertain, as its standard error shows. A direction that is not excited contains
//! only noise.

use nalgebra::{Cholesky, DMatrix, DVector};

use crate::estimation::consistent::joint_term_prior::{grounded_rotor_widths, rotor_body_widths, widths};
use crate::estimation::consistent::prior::Prior;
use crate::estimation::equations::Equations;
use crate::estimation::least_squares::fit::{LeastSquares, information, named_directions};
use crate::estimation::reduction::summary::Summary;
use crate::linalg::{Svd, singular_values};
use crate::mechanism::BodyKind;
use crate::optimize::pseudo;
use crate::spatial::PseudoInertia;
use crate::{Error, Result};

/// Standard error, in widths of the prior, above which a direction counts as not excited.
const LEAST: f64 = 1e4;

/// Directions that a motion does not excite.
pub(crate) struct Unexcited {
    /// Basis with one direction per column, in units of the prior.
    basis: DMatrix<f64>,
    /// Scales of the unknowns.
    scale: DVector<f64>,
    /// Number of base parameters, which come first.
    rank: usize,
}

impl Unexcited {
    pub fn new(
        equations: &Equations<'_>,
        summary: &Summary,
        squares: &LeastSquares,
        prior: &Prior,
    ) -> Result<Self> {
        let covariance = prior_covariance(equations, summary, squares, prior)?;
        let scale = covariance.diagonal().map(|x| x.max(f64::MIN_POSITIVE).sqrt());
        let n = scale.len();
        // Parameters of bodies far from their frames are fully correlated up to rounding: add the smallest sufficient shift.
        let root = [1e-12, 1e-9, 1e-6, 1e-3].into_iter().find_map(|more| {
            let entry = |i: usize, j: usize| covariance[(i, j)] / (scale[i] * scale[j]);
            let correlation = DMatrix::from_fn(n, n, |i, j| entry(i, j) + if i == j { more } else { 0.0 });
            correlation.cholesky().map(Cholesky::unpack)
        });
        let root = root.unwrap_or_else(|| DMatrix::identity(n, n));
        // Remove the directions that are not zero only because of rounding.
        let mut data = information(equations, summary, &squares.weights)?.matrix();
        let unit = squares.scale();
        for (mut column, s) in data.column_iter_mut().zip(unit.iter()) {
            column *= *s;
        }
        data -= &data * &squares.unexcited * squares.unexcited.transpose();
        for (j, mut column) in data.column_iter_mut().enumerate() {
            column *= if unit[j] > 0.0 { scale[j] / unit[j] } else { 0.0 };
        }
        let svd = Svd::new(&(data * &root))?;
        let excited = svd.values.iter().filter(|s| **s > LEAST.recip()).count();
        let mut basis = root * svd.null_space(excited);
        for mut column in basis.column_iter_mut() {
            let length = column.norm();
            column.unscale_mut(length);
        }
        Ok(Self { basis, scale, rank: equations.rank() })
    }

    /// Returns the number of directions.
    pub fn len(&self) -> usize {
        self.basis.ncols()
    }

    /// Returns the number of directions that involve base parameters.
    pub fn of_base(&self) -> Result<usize> {
        let base = self.basis.rows(0, self.rank).into_owned();
        // The columns have unit length: directions of joint terms alone yield only rounding errors.
        Ok(singular_values(&base)?.into_iter().filter(|&s| s > 1e-6).count())
    }

    /// Returns the directions, each with the unknown that it is named after. Adding any of them to the unknowns hardly changes a
    /// prediction.
    pub fn combinations(&self) -> Vec<(usize, Vec<(usize, f64)>)> {
        named_directions(&self.basis, &self.scale)
    }

    /// Returns the unknowns that the directions involve.
    pub fn unknowns(&self) -> impl Iterator<Item = usize> {
        // Threshold for the main entries of a direction of unit length.
        (0..self.basis.nrows()).filter(|&i| self.basis.row(i).norm() > 0.1)
    }
}

/// Computes the prior covariance of the unknowns.
fn prior_covariance(
    equations: &Equations<'_>,
    summary: &Summary,
    squares: &LeastSquares,
    prior: &Prior,
) -> Result<DMatrix<f64>> {
    let (mechanism, rank, n) = (equations.mechanism(), equations.rank(), equations.len());
    let mut parameters = DMatrix::zeros(mechanism.parameter_count(), mechanism.parameter_count());
    let rotors = rotor_body_widths(mechanism, prior)?;
    for block in mechanism.parameter_blocks() {
        let body = &mechanism.bodies()[block.body];
        if body.kind == BodyKind::SymmetricRotor {
            parameters[(block.offset, block.offset)] = rotors[block.body].powi(2);
            continue;
        }
        let impossible =
            || Error::Infeasible(format!("the prior of {} is not strictly physically consistent", body.name));
        let inverse = PseudoInertia::from(&prior.bodies[block.body]).0.cholesky().ok_or_else(impossible)?;
        let own = pseudo::curvature(&inverse.inverse()).cholesky().ok_or_else(impossible)?.inverse();
        parameters.fixed_view_mut::<10, 10>(block.offset, block.offset).copy_from(&own);
    }
    let mut map = DMatrix::zeros(rank, parameters.nrows());
    for (i, combination) in equations.regrouping.combinations.iter().enumerate() {
        combination.iter().for_each(|&(column, x)| map[(i, column)] = x);
    }
    let mut out = DMatrix::zeros(n, n);
    out.view_mut((0, 0), (rank, rank)).copy_from(&(&map * parameters * map.transpose()));
    let grounded = grounded_rotor_widths(equations, prior)?;
    for ((_, effect, _), width) in equations.grounded_rotors().zip(grounded) {
        out += &effect * effect.transpose() * (width * width);
    }
    for (i, width) in widths(equations, summary, squares, prior)?.into_iter().enumerate() {
        out[(rank + i, rank + i)] += width * width;
    }
    Ok(out)
}
