//! Keyword arguments as typed options.
//!
//! Options of a job are grouped ([`identify::Options`] has `unknowns`, `estimate` and `log`); keyword arguments are not. A name is
//! looked up among the fields of the options and of their groups, so every new field is also a keyword argument.

use std::fmt::Write as _;

use inertial::dynamics::Arithmetic;
use inertial_app::choice::{Choice as _, Solver, words};
use inertial_app::estimate::Estimate;
use inertial_app::{
    ModelOptions, analyze, check, columns, design, export, flight, gains, identify, payload, simulate,
    validate,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::errors::{OptionError, of_job, spelled, value_error};

/// Sets the arithmetic of this process by its keyword.
#[pyfunction]
pub fn set_arithmetic(kind: &str) -> PyResult<()> {
    let arithmetic = Arithmetic::from_word(kind)
        .ok_or_else(|| refused("kind", &format!("'{kind}': expected one of {}", words::<Arithmetic>())))?;
    arithmetic.make_default();
    Ok(())
}

/// Removes and returns the value of a keyword argument; `None` if it was not given.
pub fn take<T: DeserializeOwned>(given: &Bound<'_, PyDict>, name: &str) -> PyResult<Option<T>> {
    let Some(value) = given.get_item(name)? else { return Ok(None) };
    given.del_item(name)?;
    pythonize::depythonize(&value).map(Some).map_err(|e| refused(name, &e))
}

fn refused(name: &str, error: &dyn std::fmt::Display) -> PyErr {
    OptionError::new_err(format!("{} {error}", spelled(name)))
}

/// Returns options with defaults replaced by the values of keyword arguments.
pub fn filled<O: Default + Serialize + DeserializeOwned>(given: &Bound<'_, PyDict>) -> PyResult<O> {
    let mut tree = serde_json::to_value(O::default()).map_err(value_error)?;
    for (name, value) in given {
        let name: String = name.extract()?;
        let value: Value = pythonize::depythonize(&value).map_err(|e| refused(&name, &e))?;
        let place = place(&mut tree, &name)
            .ok_or_else(|| refused(&name, &"cannot be combined with the other options"))?;
        *place = match (value, &place) {
            // Numbers by column.
            (Value::Object(settings), Value::Array(_)) => settings
                .into_iter()
                .map(|(column, value)| json!({"column": column, "value": value}))
                .collect(),
            (value, _) => value,
        };
    }
    serde_path_to_error::deserialize(tree).map_err(|error| {
        let name = error.path().iter().filter_map(|part| match part {
            serde_path_to_error::Segment::Map { key } => Some(key.as_str()),
            _ => None,
        });
        refused(name.fold("", |_, last| last), error.inner())
    })
}

/// Returns the field of options, or of one of their groups.
fn place<'t>(tree: &'t mut Value, name: &str) -> Option<&'t mut Value> {
    let fields = tree.as_object_mut()?;
    if fields.get(name).is_some_and(|field| !field.is_object()) {
        return fields.get_mut(name);
    }
    fields.values_mut().filter_map(Value::as_object_mut).find_map(|group| group.get_mut(name))
}

/// Returns options for estimation; estimators have additional names.
pub fn filled_estimate<O: Default + Serialize + DeserializeOwned>(
    given: &Bound<'_, PyDict>,
    part: impl FnOnce(&mut O) -> &mut Estimate,
) -> PyResult<O> {
    let estimator: Option<String> = take(given, "estimator")?;
    let solver = take::<String>(given, "solver")?.map(|word| {
        Solver::from_word(&word).ok_or_else(|| refused("solver", &format!("'{word}' is not a solver")))
    });
    let mut options: O = filled(given)?;
    let chosen = part(&mut options).choose(estimator.as_deref(), solver.transpose()?);
    chosen.map_err(|e| of_job(&e))?;
    Ok(options)
}

/// Outputs of functions, and keyword arguments that select another job.
const OTHERS: [(&str, &str); 10] = [
    ("payload", "Link that carries a payload: only the payload is identified"),
    ("gains", "Relative uncertainty of the drive gains (0.2: 20 %): each joint's factor is estimated"),
    ("out", "File to write the model or the motion to, completely or not at all; several for motions"),
    ("report", "File to write a page to: robot, curves, tables, and how the result was obtained"),
    ("plots", "Folder to write the curves to, as SVG files"),
    ("summary_out", "File to write the summary of the logs to (.summary, or .json for text)"),
    ("fix", "Write the model with the nearest consistent parameters to out"),
    ("explain", "Write to out what cannot be identified, joint by joint; as a picture if out ends in .svg"),
    ("csv", "Write a table to out, as CSV: every parameter (True), or 'null-space'"),
    ("latex", "Write the table to out, as LaTeX"),
];

/// Returns the keyword arguments of a function, each with its description.
#[pyfunction]
pub fn options(function: &str) -> PyResult<Vec<(String, String)>> {
    let mut out = match function {
        "check" => described::<check::Options>()?,
        "analyze" => described::<analyze::Options>()?,
        "design" => described::<design::Options>()?,
        "columns" => described::<columns::Options>()?,
        "export" => described::<export::Options>()?,
        "simulate" => described::<simulate::Options>()?,
        "validate" => described::<validate::Options>()?,
        "identify" => [
            described::<identify::Options>()?,
            described::<payload::Options>()?,
            described::<gains::Options>()?,
            described::<flight::Options>()?,
        ]
        .concat(),
        other => return Err(value_error(format!("there is no function {other}"))),
    };
    out.extend(described::<ModelOptions>()?);
    out.extend(OTHERS.map(|(name, text)| (name.to_owned(), text.to_owned())));
    Ok(out)
}

/// Returns the fields of options and of their groups, from the schema of their type.
fn described<O: JsonSchema>() -> PyResult<Vec<(String, String)>> {
    let schema = SchemaGenerator::default().into_root_schema_for::<O>();
    let schema = serde_json::to_value(schema).map_err(value_error)?;
    let none = Map::new();
    let fields = |schema: &'_ Value| schema.get("properties").and_then(Value::as_object).cloned();
    let parts = schema.get("$defs").and_then(Value::as_object).unwrap_or(&none);
    let mut out = Vec::new();
    for (name, field) in fields(&schema).unwrap_or_default() {
        let group = field.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
        let group = group.or_else(|| {
            let all = field.get("allOf")?.as_array()?;
            all.first()?.get("$ref")?.as_str()?.rsplit('/').next()
        });
        match group.and_then(|group| fields(parts.get(group)?)) {
            Some(inner) => out.extend(inner.into_iter().map(|(name, field)| line(name, &field))),
            None => out.push(line(name, &field)),
        }
    }
    Ok(out)
}

/// Formats a field in one line: description, default and possible values.
fn line(name: String, field: &Value) -> (String, String) {
    let text = field.get("description").and_then(Value::as_str).unwrap_or_default();
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches('.').to_owned();
    match field.get("default") {
        Some(Value::String(word)) => {
            let _ = write!(text, " [default: {word}]");
        }
        Some(Value::Number(number)) => {
            let _ = write!(text, " [default: {number}]");
        }
        _ => {}
    }
    if let Some(words) = field.get("enum").and_then(Value::as_array) {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        let _ = write!(text, " [possible values: {}]", words.join(", "));
    }
    (name, text)
}
