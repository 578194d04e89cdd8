//! Link that carries a payload, and the identifiable payload parameters.

use nalgebra::DMatrix;

use crate::estimation::equations::Equations;
use crate::estimation::payload::force_sensor::moving_link;
use crate::identifiability::{Regrouping, Status};
use crate::mechanism::Mechanism;
use crate::spatial::{Inertia, transfer_matrix};
use crate::{Error, Result};

/// Coefficient, relative to the largest, below which it counts as zero. Coefficients of a regrouping are lengths and sines, or
/// rounding errors.
const ZERO: f64 = 1e-9;

/// Link that carries a payload, with the identifiable combinations of payload parameters.
#[derive(Debug, Clone)]
pub struct PayloadLink {
    name: String,
    /// Map of payload parameters to base parameters.
    pub(crate) effect: DMatrix<f64>,
    /// Identifiable combinations of the ten parameters.
    pub regrouping: Regrouping,
}

impl PayloadLink {
    /// Finds a link by its name.
    pub fn new(equations: &Equations<'_>, link: &str) -> Result<Self> {
        let mechanism = equations.mechanism();
        let (body, pose) = moving_link(mechanism, link)?;
        let block = mechanism.parameter_blocks().iter().find(|b| b.body == body && b.len == 10);
        let offset = block.map(|b| b.offset).ok_or_else(|| {
            Error::NotApplicable(format!("the link {link} has no parameters that a payload could change"))
        })?;
        let mut columns = DMatrix::zeros(equations.rank(), 10);
        for (i, combination) in equations.regrouping.combinations.iter().enumerate() {
            for &(column, x) in combination.iter().filter(|(c, _)| (offset..offset + 10).contains(c)) {
                columns[(i, column - offset)] = x;
            }
        }
        let effect = columns * DMatrix::from_column_slice(10, 10, transfer_matrix(&pose).as_slice());
        let regrouping = regrouping(&effect);
        if regrouping.rank() == 0 {
            return Err(Error::Unobservable(format!(
                "no torque of this robot depends on a payload on the link {link}"
            )));
        }
        Ok(Self { name: link.to_owned(), effect, regrouping })
    }

    /// Returns the parameters of the model with a payload (in the frame of the link) added.
    pub fn add(&self, mechanism: &Mechanism, payload: &Inertia<f64>) -> Result<Vec<f64>> {
        let (body, pose) = moving_link(mechanism, &self.name)?;
        let mut out = mechanism.parameters();
        for block in mechanism.parameter_blocks().iter().filter(|b| b.body == body) {
            let added = payload.transformed(&pose).parameters();
            out[block.offset..block.offset + block.len]
                .iter_mut()
                .zip(added.iter())
                .for_each(|(x, y)| *x += y);
        }
        Ok(out)
    }
}

/// Expresses the columns of a matrix as combinations of pivot columns (reduced echelon form).
fn regrouping(effect: &DMatrix<f64>) -> Regrouping {
    let mut m = effect.clone();
    let (largest, width) = (m.amax(), m.ncols());
    let mut base = Vec::new();
    for column in 0..width {
        let row = base.len();
        if row == m.nrows() {
            break;
        }
        let pivot = row + m.view((row, column), (m.nrows() - row, 1)).iamax_full().0;
        if m[(pivot, column)].abs() <= ZERO * largest {
            (row..m.nrows()).for_each(|i| m[(i, column)] = 0.0);
            continue;
        }
        m.swap_rows(row, pivot);
        let by = m[(row, column)];
        m.row_mut(row).unscale_mut(by);
        let pivot_row = m.row(row).into_owned();
        for i in (0..m.nrows()).filter(|&i| i != row) {
            let factor = m[(i, column)];
            (0..width).for_each(|j| m[(i, j)] -= factor * pivot_row[j]);
        }
        base.push(column);
    }
    let mut status = vec![Status::Unidentifiable; width];
    let mut combinations = Vec::with_capacity(base.len());
    for (row, &column) in base.iter().enumerate() {
        let others: Vec<(usize, f64)> = (column + 1..width)
            .filter(|&j| m[(row, j)].abs() > ZERO && !base.contains(&j))
            .map(|j| (j, m[(row, j)]))
            .collect();
        status[column] = if others.is_empty() { Status::Identifiable } else { Status::Combined };
        others.iter().for_each(|&(j, _)| status[j] = Status::Combined);
        combinations.push(std::iter::once((column, 1.0)).chain(others).collect());
    }
    Regrouping { parameters: width, base, combinations, status }
}
