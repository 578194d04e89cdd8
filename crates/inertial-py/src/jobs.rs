//! Jobs of the application as functions: keyword arguments become typed options, outcomes become Python objects.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use inertial::estimation::Identification;
use inertial::identifiability::drng::picture;
use inertial::identifiability::{Measured, Method};
use inertial_app::choice::{AnalysisTable, Choice as _};
use inertial_app::disk::Sink;
use inertial_app::simulate::{Csv, RowSink};
use inertial_app::{
    Disk, Error, Located as _, Result, analyze as analysis, check as checking, columns as listing,
    design as designing, export as exporting, fleet, flight, gains, identify as identification, payload,
    simulate as simulation, summary_file, validate as validation,
};
use inertial_report::text::Style;
use inertial_report::{analysis as text, page};
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::{Call, Job};
use crate::errors::{OptionError, of_job};
use crate::options::{filled, filled_estimate, take};
use crate::outcomes::to_python;
use crate::summary::Summary;

/// Outcome with its notes.
type Answer<'py> = (Bound<'py, PyAny>, Vec<String>);

/// Checks whether the bodies of a model are physically consistent.
#[pyfunction]
pub fn check<'py>(py: Python<'py>, call: Call<'py>, given: Bound<'py, PyDict>) -> PyResult<Answer<'py>> {
    let fix: bool = take(&given, "fix")?.unwrap_or(false);
    if fix == call.outputs().out.is_empty() {
        return Err(OptionError::new_err("fix= writes the corrected model to out=: give both or neither"));
    }
    let options: checking::Options = filled(&given)?;
    let work = move |job: &mut Job| {
        let model = job.model_to_write()?;
        let outcome = checking::run(&model, &options, &job.context())?;
        if fix {
            job.write(Some(&outcome.corrected(&model, &options).at(&model.label)?))?;
        }
        job.draw(&[], |origin, context| page::of_check(&model, &outcome, &options, origin, context))?;
        Ok(outcome)
    };
    let (outcome, notes) = call.perform(work)?;
    Ok((to_python(py, &outcome)?, notes))
}

/// Checks the bodies of a printed table, a CSV file.
#[pyfunction]
pub fn check_table<'py>(py: Python<'py>, path: &str, given: Bound<'py, PyDict>) -> PyResult<Answer<'py>> {
    let options: checking::Options = filled(&given)?;
    let outcome = checking::run_table(path, &options, &Disk::default()).map_err(|error| of_job(&error))?;
    Ok((to_python(py, &outcome)?, Vec::new()))
}

/// Lists the columns of a log; `with_model` is whether the call's model is used.
#[pyfunction]
pub fn columns<'py>(
    py: Python<'py>,
    call: Call<'py>,
    given: Bound<'py, PyDict>,
    with_model: bool,
) -> PyResult<Answer<'py>> {
    let options: listing::Options = filled(&given)?;
    let work = move |job: &mut Job| {
        let model = with_model.then(|| Arc::clone(&job.model));
        let outcome = listing::run(model.as_deref(), &options, &job.context())?;
        job.write(Some(&outcome.map))?;
        Ok(outcome)
    };
    let (outcome, notes) = call.perform(work)?;
    Ok((to_python(py, &outcome)?, notes))
}

/// Output format of an analysis.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Text,
    Explanation,
    Picture,
    Csv(AnalysisTable),
    Latex,
}

impl Form {
    fn take(given: &Bound<'_, PyDict>, out: &[std::path::PathBuf]) -> PyResult<Self> {
        let mut form = Self::Text;
        let svg = out.iter().any(|path| Path::extension(path).is_some_and(|e| e.eq_ignore_ascii_case("svg")));
        let explanation = if svg { Self::Picture } else { Self::Explanation };
        for (name, own) in
            [("csv", Self::Csv(AnalysisTable::Parameters)), ("latex", Self::Latex), ("explain", explanation)]
        {
            let own = match take::<serde_json::Value>(given, name)? {
                None | Some(serde_json::Value::Bool(false) | serde_json::Value::Null) => continue,
                Some(serde_json::Value::Bool(true)) => own,
                Some(serde_json::Value::String(word)) if name == "csv" => {
                    Self::Csv(AnalysisTable::from_word(&word).ok_or_else(|| {
                        OptionError::new_err(format!(
                            "csv= '{word}': expected True, 'parameters' or 'null-space'"
                        ))
                    })?)
                }
                Some(other) => {
                    return Err(OptionError::new_err(format!("{name}= {other}: expected True or False")));
                }
            };
            let reason = match form {
                _ if out.is_empty() => "selects what is written: give out= too",
                Self::Text => {
                    form = own;
                    continue;
                }
                _ => "cannot be combined with another form of out=",
            };
            return Err(OptionError::new_err(format!("{name}= {reason}")));
        }
        Ok(form)
    }
}

/// Analyzes which parameters are identifiable by any experiment.
#[pyfunction]
pub fn analyze<'py>(py: Python<'py>, call: Call<'py>, given: Bound<'py, PyDict>) -> PyResult<Answer<'py>> {
    let form = Form::take(&given, &call.outputs().out)?;
    let mut options: analysis::Options = filled(&given)?;
    if form == Form::Picture && options.method == Method::Auto {
        // The picture shows principles, which the recursive method does not provide.
        options.method = Method::Drng;
    }
    let work = move |job: &mut Job| {
        let model = Arc::clone(&job.model);
        let model = model.with_missing_rotors()?;
        let outcome = analysis::run(&model, &options, &job.context())?;
        if !job.outputs.out.is_empty() {
            let found = &outcome.analysis;
            let written = match form {
                Form::Csv(table) => text::csv(found, table),
                Form::Latex => text::latex(found),
                Form::Picture => picture::svg(&model.mechanism, &found.null_vectors),
                Form::Text | Form::Explanation => {
                    text::text(&model.mechanism, &outcome, form == Form::Explanation, Style::default())
                }
            };
            job.write(Some(&written))?;
        }
        job.draw(&[], |origin, context| page::of_analysis(&model, &outcome, origin, context))?;
        Ok(outcome)
    };
    let (outcome, notes) = call.perform(work)?;
    Ok((to_python(py, &outcome)?, notes))
}

/// Designs an excitation motion.
#[pyfunction]
pub fn design<'py>(py: Python<'py>, call: Call<'py>, given: Bound<'py, PyDict>) -> PyResult<Answer<'py>> {
    let options: designing::Options = filled(&given)?;
    let work = move |job: &mut Job| {
        options.check()?;
        let paths = job.outputs.out.clone();
        let formats =
            paths.iter().map(|path| designing::Format::of_file(path)).collect::<Result<Vec<_>>>()?;
        let model = Arc::clone(&job.model);
        let outcome = designing::run(&model, &options, &job.context())?;
        for (path, format) in paths.iter().zip(formats) {
            job.files.add(path, &outcome.trajectory_text(format)?)?;
        }
        job.draw(&options.files(), |origin, context| page::of_design(&model, &outcome, origin, context))?;
        Ok(outcome)
    };
    let (outcome, notes) = call.perform(work)?;
    Ok((to_python(py, &outcome)?, notes))
}

/// Writes the values for controllers, simulators and programs.
#[pyfunction]
pub fn export<'py>(py: Python<'py>, call: Call<'py>, given: Bound<'py, PyDict>) -> PyResult<Answer<'py>> {
    let options: exporting::Options = filled(&given)?;
    let work = move |job: &mut Job| {
        let path = job.outputs.out.first().cloned();
        let options = path.as_deref().map_or(Ok(options.clone()), |out| options.named_after(out))?;
        let model = Arc::clone(&job.model);
        let outcome = exporting::run(Some(&model), &options, &job.context())?;
        for (path, text) in path.iter().flat_map(|out| outcome.places(out)) {
            job.files.add(&path, text)?;
        }
        Ok(outcome)
    };
    let (outcome, notes) = call.perform(work)?;
    Ok((to_python(py, &outcome)?, notes))
}

/// Columns of simulated samples, and their output file.
#[derive(Default)]
struct Columns {
    names: Vec<String>,
    values: Vec<Vec<f64>>,
    file: Option<Csv<Sink>>,
}

impl RowSink for Columns {
    fn names(&mut self, names: &[String]) -> Result<()> {
        self.names = names.to_vec();
        self.values = vec![Vec::new(); names.len()];
        self.file.as_mut().map_or(Ok(()), |file| file.names(names))
    }

    fn row(&mut self, row: &[f64]) -> Result<()> {
        self.values.iter_mut().zip(row).for_each(|(column, x)| column.push(*x));
        self.file.as_mut().map_or(Ok(()), |file| file.row(row))
    }
}

/// Simulates sensor readings; also returns the columns by name.
#[pyfunction]
pub fn simulate<'py>(
    py: Python<'py>,
    call: Call<'py>,
    given: Bound<'py, PyDict>,
) -> PyResult<(Bound<'py, PyAny>, Vec<String>, Bound<'py, PyDict>)> {
    let options: simulation::Options = filled(&given)?;
    let work = move |job: &mut Job| {
        let mut sink = Columns::default();
        let path = job.outputs.out.first().cloned();
        sink.file = path.as_deref().map(|path| job.sink(path).map(Csv::new)).transpose()?;
        let model = Arc::clone(&job.model);
        let outcome = match (simulation::run(&model, &options, &job.context(), Some(&mut sink)), &path) {
            (Err(Error::Io(error)), Some(path)) => Err(error).at(path.display())?,
            (outcome, _) => outcome?,
        };
        job.context().check_interrupted()?;
        if let Some(file) = sink.file.take() {
            file.into_inner().finish()?;
        }
        Ok((outcome, sink))
    };
    let ((outcome, sink), notes) = call.perform(work)?;
    let columns = PyDict::new(py);
    for (name, column) in sink.names.iter().zip(sink.values) {
        columns.set_item(name, column.into_pyarray(py))?;
    }
    Ok((to_python(py, &outcome)?, notes, columns))
}

/// Validates a model on logs; also returns whether the residual does not exceed the threshold.
#[pyfunction]
pub fn validate<'py>(
    py: Python<'py>,
    call: Call<'py>,
    given: Bound<'py, PyDict>,
) -> PyResult<(Bound<'py, PyAny>, Vec<String>, bool)> {
    let mut options: validation::Options = filled(&given)?;
    options.draw = call.outputs().draws();
    let work = move |job: &mut Job| {
        let model = Arc::clone(&job.model);
        let mut outcome = validation::run(&model, &options, &job.context())?;
        let names = options.files();
        job.draw(&names, |origin, context| page::of_validation(&model, &mut outcome, origin, context))?;
        Ok(outcome)
    };
    let (outcome, notes) = call.perform(work)?;
    Ok((to_python(py, &outcome)?, notes, outcome.passed))
}

/// Identification, its notes, its unknowns, the summary of its logs, and the model's text with the identified values.
type Identified<'py> =
    (Bound<'py, PyAny>, Vec<String>, Option<Bound<'py, PyDict>>, Option<Summary>, Option<String>);

/// Returns the names, values and covariance of the unknowns.
fn unknowns_of<'py>(py: Python<'py>, result: &Identification) -> PyResult<Bound<'py, PyDict>> {
    let (out, covariance) = (PyDict::new(py), &result.value_covariance);
    out.set_item("names", result.names.clone())?;
    out.set_item("values", result.values.clone().into_pyarray(py))?;
    // Row-major order.
    let entries = covariance.transpose().as_slice().to_vec().into_pyarray(py);
    out.set_item("covariance", entries.reshape([covariance.nrows(), covariance.ncols()])?)?;
    Ok(out)
}

/// Identifies parameters. The arguments determine the data: forces with or without drive gains, a payload, or momentum.
#[pyfunction]
pub fn identify<'py>(
    py: Python<'py>,
    call: Call<'py>,
    given: Bound<'py, PyDict>,
    texts: HashMap<String, String>,
) -> PyResult<Identified<'py>> {
    let unknowns = Summary::arguments(&given)?;
    let wants_text: bool = take(&given, "write")?.unwrap_or(false);
    let write = wants_text || !call.outputs().out.is_empty();
    let draw = call.outputs().draws();
    let link: Option<String> = take(&given, "payload")?;
    let momentum = given
        .get_item("measured")?
        .is_some_and(|word| word.extract::<String>().is_ok_and(|word| word == Measured::Momentum.name()));
    if (link.is_some() || momentum) && call.outputs().summary_out.is_some() {
        let reason = "summary_out= needs a robot's joint torques: summaries of payloads and momentum are not supported";
        return Err(OptionError::new_err(reason));
    }
    if let Some(link) = link {
        let mut options: payload::Options =
            filled_estimate(&given, |o: &mut payload::Options| &mut o.estimate)?;
        (options.link, options.write, options.draw) = (link, write, draw);
        let (outcome, notes) = call.perform(move |job| of_payload(job, &options))?;
        return Ok((to_python(py, &outcome)?, notes, None, None, outcome.model));
    }
    if momentum {
        given.del_item("measured")?;
        let mut options: flight::Options =
            filled_estimate(&given, |o: &mut flight::Options| &mut o.estimate)?;
        (options.write, options.draw) = (write, draw);
        let (outcome, notes) = call.perform(move |job| of_momentum(job, &options))?;
        return Ok((to_python(py, &outcome)?, notes, None, None, outcome.model));
    }
    if given.contains("noise")? {
        let reason =
            "noise=: the noise of torques is estimated from the data; give it with measured=\"momentum\"";
        return Err(OptionError::new_err(reason));
    }
    let spread: Option<f64> = take(&given, "gains")?;
    let (loaded, known_payload) = (take(&given, "loaded")?, take(&given, "known_payload")?);
    let mut own: identification::Options =
        filled_estimate(&given, |o: &mut identification::Options| &mut o.estimate)?;
    (own.write, own.draw) = (write, draw);
    let keeps = spread.is_none() && own.estimate.estimator != Some(inertial_app::choice::Estimator::Irls);
    let gains = match spread {
        Some(spread) => Some(gains::Options::new(own.clone(), spread).with(|o| {
            o.loaded = loaded.unwrap_or_default();
            o.known_payload = known_payload;
        })),
        None if loaded.is_some() || known_payload.is_some() => {
            return Err(OptionError::new_err(
                "loaded= and known_payload= determine drive gains: give gains= too",
            ));
        }
        None => None,
    };
    let (outcome, notes) = call.perform(move |job| of_forces(job, &own, gains.as_ref()))?;
    let (data, found) = (to_python(py, &outcome)?, unknowns_of(py, &outcome.result)?);
    let summary = keeps.then(|| Summary::found(call.mechanism(), unknowns, texts, outcome.summary));
    Ok((data, notes, Some(found), summary, outcome.model))
}

fn of_payload(job: &mut Job, options: &payload::Options) -> Result<payload::Outcome> {
    let model = job.model_to_write()?;
    let mut outcome = payload::run(&model, options, &job.context())?;
    job.write(outcome.model.as_ref())?;
    job.draw(&options.files(), |origin, context| page::of_payload(&model, &mut outcome, origin, context))?;
    Ok(outcome)
}

fn of_momentum(job: &mut Job, options: &flight::Options) -> Result<flight::Outcome> {
    let model = job.model_to_write()?;
    let mut outcome = flight::run(&model, options, &job.context())?;
    job.write(outcome.model.as_ref())?;
    job.draw(&options.files(), |origin, context| page::of_momentum(&model, &mut outcome, origin, context))?;
    Ok(outcome)
}

fn of_forces(
    job: &mut Job,
    options: &identification::Options,
    gains: Option<&gains::Options>,
) -> Result<identification::Outcome> {
    job.outputs.summary_out.as_deref().map_or(Ok(()), summary_file::check_name)?;
    let model = job.model_to_write()?;
    let mut outcome = match gains {
        Some(gains) => gains::run(&model, gains, &job.context())?,
        None => identification::run(&model, options, &job.context())?,
    };
    if let Some(path) = &job.outputs.summary_out {
        job.files.add(path, summary_file::content(path, &outcome.summary)?)?;
    }
    job.write_model(outcome.model.as_ref(), outcome.joint_file.as_ref())?;
    let mut names = options.files();
    names.extend(gains.iter().flat_map(|gains| gains.loaded.iter().cloned()));
    job.draw(&names, |origin, context| {
        page::of_identification(&model, &mut outcome, options, origin, context)
    })?;
    Ok(outcome)
}

/// Identifies robots of one type together, one summary each; `carrying` marks those that carry a payload.
#[pyfunction]
pub fn identify_fleet<'py>(
    py: Python<'py>,
    call: Call<'py>,
    given: Bound<'py, PyDict>,
    summaries: Vec<Bound<'py, Summary>>,
    carrying: Vec<bool>,
) -> PyResult<Answer<'py>> {
    let mut options: fleet::Options = filled_estimate(&given, |o: &mut fleet::Options| &mut o.estimate)?;
    options.write = !call.outputs().out.is_empty();
    let robots: Vec<_> = summaries.iter().map(|s| s.get().value()).collect();
    let work = move |job: &mut Job| {
        let model = Arc::clone(&job.model);
        let outcome = fleet::run(&model, &robots, &carrying, &options, &job.context())?;
        job.write_model(outcome.model.as_ref(), outcome.joint_file.as_ref())?;
        Ok(outcome)
    };
    let (outcome, notes) = call.perform(work)?;
    Ok((to_python(py, &outcome)?, notes))
}
