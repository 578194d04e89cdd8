//! Logs prepared for identification: resampled, filtered, differentiated.

use std::path::PathBuf;

use inertial_data::{ColumnMap, Cutoff, Filter, Options, PreparedLog, Source, open};
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::mechanism::Mechanism;
use crate::wrong;

/// How a log is prepared; what is absent has the program's default.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Preparation {
    map: Option<String>,
    topic: Option<String>,
    cutoff: Option<f64>,
    off: bool,
    savitzky_golay: bool,
    order: Option<usize>,
    window: Option<usize>,
    resample: Option<f64>,
    decimate: Option<usize>,
    slow: Option<f64>,
    joints: Vec<String>,
    trust_units: bool,
}

impl Preparation {
    fn options(&self) -> Options {
        let default = Options::default();
        let cutoff = match self.cutoff {
            _ if self.off => Cutoff::Off,
            Some(hz) => Cutoff::Hz(hz),
            None => Cutoff::Auto,
        };
        let filter = if self.savitzky_golay {
            Filter::SavitzkyGolay { window: self.window, order: self.order.unwrap_or(3) }
        } else {
            Filter::Butterworth { order: self.order.unwrap_or(4) }
        };
        Options {
            cutoff,
            filter,
            resample: self.resample,
            decimate: self.decimate.unwrap_or(0),
            slow: self.slow.unwrap_or(default.slow),
            torque_joints: self.joints.clone(),
            trust_units: self.trust_units,
            ..default
        }
    }
}

/// Prepares a log as `identify` does. Gives arrays of samples by coordinates, the weights of the low-pass that both sides of each
/// equation pass, and the notes.
#[pyfunction]
pub fn prepare<'py>(
    py: Python<'py>,
    mechanism: &Bound<'py, Mechanism>,
    path: PathBuf,
    preparation: Preparation,
) -> PyResult<Bound<'py, PyDict>> {
    let built = mechanism.get().built();
    let prepared = py
        .detach(|| {
            let map = preparation.map.as_deref().map(|text| ColumnMap::parse(text, "columns".to_owned()));
            let source = Source { map: map.transpose()?, topic: preparation.topic.clone() };
            let mut reader = open(&path, &source)?;
            PreparedLog::new(built, reader.as_mut(), &preparation.options())?.whole()
        })
        .map_err(wrong)?;
    let (count, out) = (prepared.len(), PyDict::new(py));
    let widths = [("q", prepared.q), ("dq", prepared.v), ("ddq", prepared.a), ("tau", prepared.tau)];
    for (name, values) in widths.into_iter().chain([("tau_raw", prepared.tau_raw)]) {
        let width = values.len() / count.max(1);
        out.set_item(name, values.into_pyarray(py).reshape([count, width])?)?;
    }
    let width = prepared.keep.len() / count.max(1);
    if let Some(filter) = prepared.row_filter {
        // Rows of the equations are centred at multiples of their distance, with windows that lie within the log.
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
