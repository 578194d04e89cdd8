//! Logs prepared for identification: resampled, filtered, differentiated.

use std::sync::Arc;

use inertial_app::Context;
use inertial_app::logs::LogOptions;
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::inputs::Inputs;
use crate::mechanism::Mechanism;
use crate::options::filled;
use crate::work::{Observer, long};

/// Prepares a log as `identify` does. Returns arrays of samples by coordinates, the weights of the low-pass filter that is applied to
/// both sides of each equation, and the notes.
#[pyfunction]
pub fn prepare<'py>(
    py: Python<'py>,
    mechanism: &Bound<'py, Mechanism>,
    inputs: PyRef<'py, Inputs>,
    name: String,
    given: Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let options: LogOptions = filled(&given)?;
    let (observer, data, model) = (Observer::new(), inputs.data(), mechanism.get().model());
    let (watched, read) = (Arc::clone(&observer), Arc::clone(&data));
    let work = move || {
        let context = Context { inputs: &*read, progress: &*watched };
        options.prepare(&context, &model.mechanism, &name)
    };
    let prepared = long(py, &observer, None, work)?.map_err(|e| data.exception(&e))?;
    let (count, out) = (prepared.len(), PyDict::new(py));
    let widths = [("q", prepared.q), ("dq", prepared.v), ("ddq", prepared.a), ("tau", prepared.tau)];
    for (name, values) in widths.into_iter().chain([("tau_raw", prepared.tau_raw)]) {
        let width = values.len() / count.max(1);
        out.set_item(name, values.into_pyarray(py).reshape([count, width])?)?;
    }
    let width = prepared.keep.len() / count.max(1);
    if let Some(filter) = prepared.row_filter {
        // The rows of the equations are centred at multiples of their distance; their windows lie within the log.
        let (half, every) = (filter.half(), filter.every());
        let centres: Vec<usize> =
            (half.next_multiple_of(every)..count.saturating_sub(half)).step_by(every).collect();
        let keeps = |centre: &usize, k: usize| {
            let window: Vec<bool> =
                (centre - half..=centre + half).map(|s| prepared.keep[s * width + k]).collect();
            filter.keeps(&window)
        };
        let kept: Vec<bool> = centres
            .iter()
            .flat_map(|centre| (0..width).map(|k| keeps(centre, k)).collect::<Vec<_>>())
            .collect();
        out.set_item("row_keep", kept.into_pyarray(py).reshape([centres.len(), width])?)?;
        out.set_item("centres", centres.into_pyarray(py))?;
        out.set_item("weights", filter.weights().to_vec().into_pyarray(py))?;
        out.set_item("column_weights", filter.column_weights().to_vec().into_pyarray(py))?;
    }
    out.set_item("keep", prepared.keep.into_pyarray(py).reshape([count, width])?)?;
    out.set_item("t", prepared.t.into_pyarray(py))?;
    out.set_item("rate", prepared.rate_hz)?;
    out.set_item("cutoff", prepared.cutoff_hz)?;
    out.set_item("notes", prepared.notes)?;
    Ok(out)
}
