//! `NumPy` arrays as slices: rows of samples, without copies where they are contiguous.

use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::wrong;

/// Samples of a quantity: one row each, `width` numbers wide.
pub struct Rows<'py> {
    array: PyReadonlyArrayDyn<'py, f64>,
    /// Number of samples.
    pub count: usize,
}

impl<'py> Rows<'py> {
    /// One sample (`width` numbers) or many (`count` by `width`), contiguous.
    pub fn new(name: &str, array: PyReadonlyArrayDyn<'py, f64>, width: usize) -> PyResult<Self> {
        let count = match array.shape() {
            [n] if *n == width => 1,
            [count, n] if *n == width => *count,
            shape => {
                let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
                let shape = shape.join(" by ");
                return Err(wrong(format!("{name} is {shape}, expected {width} numbers per sample")));
            }
        };
        if !array.is_c_contiguous() {
            return Err(wrong(format!("{name} is not contiguous: pass numpy.ascontiguousarray({name})")));
        }
        Ok(Self { array, count })
    }

    /// All numbers, sample after sample.
    pub fn slice(&self) -> PyResult<&[f64]> {
        self.array.as_slice().map_err(wrong)
    }
}

/// Refuses arrays of different lengths.
pub fn same_count(rows: &[(&str, usize)]) -> PyResult<usize> {
    let count = rows.first().map_or(0, |r| r.1);
    match rows.iter().find(|r| r.1 != count) {
        None => Ok(count),
        Some((name, other)) => Err(wrong(format!("{name} has {other} samples, {} has {count}", rows[0].0))),
    }
}
