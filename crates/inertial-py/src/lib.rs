//! Native part of the Python package `inertial`.
//!
//! Functions run the jobs of [`inertial_app`]: keyword arguments become typed options (`options`), Python data become
//! inputs by name (`inputs`), and outcomes become Python objects (`outcomes`). Frequently repeated operations (regressors,
//! summaries, online estimates) call the library directly, with the interpreter released.

// pyo3 passes arguments by value.
#![allow(clippy::needless_pass_by_value)]

mod arrays;
mod call;
mod errors;
mod inputs;
mod jobs;
mod mechanism;
mod options;
mod outcomes;
mod pga;
mod pool;
mod prepare;
mod regressor;
mod studies;
mod summary;
mod work;

// Sines and exponentials that are bitwise identical on every processor.
use inertial_libm as _;
use pyo3::prelude::*;

#[pymodule(gil_used = false)]
fn _inertial(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", py.get_type::<errors::Error>())?;
    module.add("OptionError", py.get_type::<errors::OptionError>())?;
    module.add("ModelError", py.get_type::<errors::ModelError>())?;
    module.add("LogError", py.get_type::<errors::LogError>())?;
    module.add_class::<inputs::Inputs>()?;
    module.add_class::<mechanism::Mechanism>()?;
    module.add_class::<pga::PyPoint>()?;
    module.add_class::<pga::PyLine>()?;
    module.add_class::<pga::PyPlane>()?;
    module.add_class::<pga::PyMotor>()?;
    module.add_class::<summary::Summary>()?;
    module.add_class::<summary::Online>()?;
    module.add_function(wrap_pyfunction!(jobs::check, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::check_table, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::analyze, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::columns, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::design, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::export, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::identify, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::identify_fleet, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::validate, module)?)?;
    module.add_function(wrap_pyfunction!(studies::ranks, module)?)?;
    module.add_function(wrap_pyfunction!(studies::leg, module)?)?;
    module.add_function(wrap_pyfunction!(studies::slow, module)?)?;
    module.add_function(wrap_pyfunction!(studies::flight, module)?)?;
    module.add_function(wrap_pyfunction!(options::options, module)?)?;
    module.add_function(wrap_pyfunction!(options::set_arithmetic, module)?)?;
    module.add_function(wrap_pyfunction!(call::write_file, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::prepare, module)?)?;
    module.add_function(wrap_pyfunction!(regressor::identify_regressor, module)?)?;
    Ok(())
}
