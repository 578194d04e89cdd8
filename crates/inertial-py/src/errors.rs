//! Conversion of library errors to Python exceptions, by kind.

use inertial_app as app;
use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

pyo3::create_exception!(inertial, Error, PyValueError, "The input or the call is wrong.");
pyo3::create_exception!(inertial, OptionError, Error, "The value of an option cannot be used.");
pyo3::create_exception!(inertial, ModelError, Error, "A model cannot be read or built.");
pyo3::create_exception!(inertial, LogError, Error, "A log cannot be read or used.");

/// Creates an exception of no particular kind.
pub fn value_error(error: impl std::fmt::Display) -> PyErr {
    Error::new_err(error.to_string())
}

/// Formats the name of an option as in Python: `prior_weight=`.
pub fn spelled(option: &str) -> String {
    format!("{}=", option.replace('-', "_"))
}

/// Kind of an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Value of an option.
    Option,
    /// Model.
    Model,
    /// Log.
    Log,
    /// Other error.
    Other,
}

/// Creates the exception for a job's error, by its cause.
pub fn of_job(error: &app::Error) -> PyErr {
    of_inputs(error, &|_| Kind::Other)
}

/// Creates the exception for a job's error: by its cause, or else by the place that it names. `named` returns the kind of a place.
pub fn of_inputs(error: &app::Error, named: &dyn Fn(&str) -> Kind) -> PyErr {
    let message = error.message(&spelled);
    match kind(error, named) {
        Kind::Option => OptionError::new_err(message),
        Kind::Model => ModelError::new_err(message),
        Kind::Log => LogError::new_err(message),
        Kind::Other => Error::new_err(message),
    }
}

/// Creates the exception for a model that cannot be built.
pub fn of_model(error: &app::Error) -> PyErr {
    let message = error.message(&spelled);
    match kind(error, &|_| Kind::Other) {
        Kind::Option => OptionError::new_err(message),
        _ => ModelError::new_err(message),
    }
}

fn kind(error: &app::Error, named: &dyn Fn(&str) -> Kind) -> Kind {
    match error {
        app::Error::Option { .. } => Kind::Option,
        app::Error::Data(_) => Kind::Log,
        app::Error::At { place, source } => match kind(source, named) {
            Kind::Other => named(place),
            other => other,
        },
        _ => Kind::Other,
    }
}
