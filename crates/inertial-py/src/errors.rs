//! Conversion of library errors to Python exceptions, by kind.

use inertial_app as app;
use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

use crate::inputs::Held;

pyo3::create_exception!(inertial, Error, PyValueError, "The input or the call is wrong.");
pyo3::create_exception!(inertial, OptionError, Error, "The value of an option cannot be used.");
pyo3::create_exception!(inertial, ModelError, Error, "A model cannot be read or built.");
pyo3::create_exception!(inertial, LogError, Error, "A log cannot be read or used.");

/// Creates an exception of no particular kind.
pub fn wrong(error: impl std::fmt::Display) -> PyErr {
    Error::new_err(error.to_string())
}

/// Formats the name of an option as in Python: `prior_weight=`.
pub fn spelled(option: &str) -> String {
    format!("{}=", option.replace('-', "_"))
}

/// Creates the exception for a job's error: by its cause, or else by the input that it names.
pub fn of_job(error: &app::Error, inputs: &Held) -> PyErr {
    let message = error.message(&spelled);
    match kind(error, inputs) {
        Kind::Option => OptionError::new_err(message),
        Kind::Model => ModelError::new_err(message),
        Kind::Log => LogError::new_err(message),
        Kind::Other => Error::new_err(message),
    }
}

/// Creates the exception for a model that cannot be built.
pub fn of_model(error: &app::Error) -> PyErr {
    let message = error.message(&spelled);
    match kind(error, &Held::default()) {
        Kind::Option => OptionError::new_err(message),
        _ => ModelError::new_err(message),
    }
}

enum Kind {
    Option,
    Model,
    Log,
    Other,
}

fn kind(error: &app::Error, inputs: &Held) -> Kind {
    match error {
        app::Error::Option { .. } => Kind::Option,
        app::Error::Data(_) => Kind::Log,
        app::Error::At { place, source } => match kind(source, inputs) {
            Kind::Other if inputs.is_model(place) => Kind::Model,
            Kind::Other if place.split(", ").any(|part| inputs.is_log(part)) => Kind::Log,
            other => other,
        },
        _ => Kind::Other,
    }
}
