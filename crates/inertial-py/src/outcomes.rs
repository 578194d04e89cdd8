//! Outcomes as Python objects with the structure of the program's JSON.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyList, PyTuple};
use serde::Serialize;

use crate::errors::value_error;

/// Converts an outcome to dictionaries, lists, texts and numbers. As in JSON, tuples become lists and non-finite numbers become `None`.
pub fn to_python<'py>(py: Python<'py>, outcome: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    plain(pythonize::pythonize(py, outcome).map_err(value_error)?)
}

fn plain(value: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = value.py();
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(if number.value().is_finite() { value } else { py.None().into_bound(py) });
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let out = PyDict::new(py);
        for (name, entry) in dict {
            out.set_item(name, plain(entry)?)?;
        }
        return Ok(out.into_any());
    }
    let entries: Vec<Bound<'_, PyAny>> = if let Ok(list) = value.cast::<PyList>() {
        list.iter().collect()
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        tuple.iter().collect()
    } else {
        return Ok(value);
    };
    let out = PyList::empty(py);
    for entry in entries {
        out.append(plain(entry)?)?;
    }
    Ok(out.into_any())
}
