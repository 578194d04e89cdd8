//! The native half of the Python package `inertial`.
//!
//! Commands run through [`inertial_cli::call`], so Python's numbers and words are the program's; what programs do many times
//! (regressors, summaries, estimates that follow a stream) goes straight to the library, with the interpreter released.

// Python hands over what it has; pyo3 takes arguments by value.
#![allow(clippy::needless_pass_by_value)]

mod arrays;
mod calls;
mod mechanism;
mod pool;
mod prepare;
mod summary;

use pyo3::prelude::*;

pyo3::create_exception!(inertial, Error, pyo3::exceptions::PyValueError, "The input or the call is wrong.");

/// An error of the library in Python's shape.
fn wrong(error: impl std::fmt::Display) -> PyErr {
    Error::new_err(error.to_string())
}

#[pymodule(gil_used = false)]
fn _inertial(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<Error>())?;
    module.add_class::<mechanism::Mechanism>()?;
    module.add_class::<summary::Summary>()?;
    module.add_class::<summary::Online>()?;
    module.add_function(wrap_pyfunction!(calls::call, module)?)?;
    module.add_function(wrap_pyfunction!(calls::identify_fleet, module)?)?;
    module.add_function(wrap_pyfunction!(calls::main, module)?)?;
    module.add_function(wrap_pyfunction!(calls::options, module)?)?;
    module.add_function(wrap_pyfunction!(calls::write_log, module)?)?;
    module.add_function(wrap_pyfunction!(calls::read_log, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::prepare, module)?)?;
    Ok(())
}
