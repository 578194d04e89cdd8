//! `NumPy` arrays as slices: rows of samples, without copies if they are contiguous.

use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::value_error;

/// Read-only array of numbers borrowed from Python.
pub type Array<'py> = PyReadonlyArrayDyn<'py, f64>;

/// Set of `N` quantities of the same samples, each contiguous with one row per sample.
pub struct Rows<'py, const N: usize> {
    arrays: [Array<'py>; N],
    /// Number of samples.
    pub count: usize,
}

impl<'py, const N: usize> Rows<'py, N> {
    /// Creates rows of one sample (`widths` numbers each) or many; `names` are used in messages.
    pub fn new(names: [&str; N], arrays: [Array<'py>; N], widths: [usize; N]) -> PyResult<Self> {
        let mut counts = [0; N];
        for (k, (name, width)) in names.iter().zip(widths).enumerate() {
            counts[k] = match arrays[k].shape() {
                [n] if *n == width => 1,
                [count, n] if *n == width => *count,
                shape => {
                    let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
                    let shape = shape.join(" by ");
                    return Err(value_error(format!(
                        "{name} is {shape}, expected {width} numbers per sample"
                    )));
                }
            };
            if !arrays[k].is_c_contiguous() {
                return Err(value_error(format!(
                    "{name} is not contiguous: pass numpy.ascontiguousarray({name})"
                )));
            }
            if counts[k] != counts[0] {
                let (count, first) = (counts[k], names[0]);
                return Err(value_error(format!("{name} has {count} samples, {first} has {}", counts[0])));
            }
        }
        Ok(Self { arrays, count: counts.first().copied().unwrap_or(0) })
    }

    /// Returns all numbers of each quantity, sample after sample.
    pub fn slices(&self) -> PyResult<[&[f64]; N]> {
        let mut out = [&[][..]; N];
        for (out, array) in out.iter_mut().zip(&self.arrays) {
            *out = array.as_slice().map_err(value_error)?;
        }
        Ok(out)
    }
}
