//! Identification from a regressor given as arrays.

use inertial::estimation::{ColumnOrder, PriorKind, RegressorRows};
use inertial_app::choice::{Choice as _, words};
use inertial_app::regressor::Subject;
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;

use crate::arrays::Array;
use crate::errors::{OptionError, of_job, value_error};
use crate::mechanism::Mechanism;
use crate::outcomes::to_python;
use crate::work::{Observer, long};

/// Identifies the parameters of bodies from regressor rows and right-hand sides.
#[pyfunction]
#[pyo3(signature = (regressor, rhs, bodies, rows_per_sample, order, prior_kind, prior_weight, mechanism))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn identify_regressor<'py>(
    py: Python<'py>,
    regressor: Array<'py>,
    rhs: Array<'py>,
    bodies: Option<usize>,
    rows_per_sample: usize,
    order: &str,
    prior_kind: &str,
    prior_weight: f64,
    mechanism: Option<Bound<'py, Mechanism>>,
) -> PyResult<Bound<'py, PyAny>> {
    let unknown = |name: &str, word: &str, words: String| {
        OptionError::new_err(format!("{name}=: '{word}': expected one of {words}"))
    };
    let order = ColumnOrder::from_word(order)
        .ok_or_else(|| unknown("column_order", order, words::<ColumnOrder>()))?;
    let prior_kind = PriorKind::from_word(prior_kind)
        .ok_or_else(|| unknown("prior_kind", prior_kind, words::<PriorKind>()))?;
    let subject = Subject::default().with(|s| {
        s.bodies = bodies;
        s.order = order;
        s.prior_kind = prior_kind;
        s.prior_weight = prior_weight;
    });
    let model = mechanism.map(|m| m.get().model());
    let count = subject.count(model.as_ref().map(|m| &m.mechanism)).map_err(|e| of_job(&e))?;
    let &[_, columns] = regressor.shape() else {
        return Err(value_error("the regressor has one row for each equation and ten columns for each body"));
    };
    let mut rows = RegressorRows::new(columns, count, rows_per_sample, order).map_err(value_error)?;
    rows.add(regressor.as_slice().map_err(value_error)?, rhs.as_slice().map_err(value_error)?)
        .map_err(value_error)?;
    let work = move || subject.identify(rows, model.as_ref().map(|m| &m.mechanism));
    let outcome = long(py, &Observer::new(), None, work)?.map_err(|e| of_job(&e))?;
    to_python(py, &outcome)
}
