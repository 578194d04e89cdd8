//! Inputs held by Python: texts of models, tables, summaries, and local copies of stored files.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use inertial::estimation;
use inertial_app::disk::OutputFiles;
use inertial_app::{Disk, InMemoryInputs, Inputs as Source, Result};
use inertial_data::{Log, Reader, Source as LogSource, open_as};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::errors::{Kind, LogError, of_inputs};

/// Inputs by name. Unknown names are files.
#[derive(Clone, Default)]
pub struct InputData {
    texts: HashMap<String, String>,
    tables: HashMap<String, Log>,
    summaries: HashMap<String, estimation::Summary>,
    copies: Copies,
    models: HashSet<String>,
    logs: HashSet<String>,
}

impl InputData {
    /// Creates inputs that consist of texts only.
    pub fn of_texts(texts: HashMap<String, String>) -> Self {
        Self { texts, ..Self::default() }
    }

    /// Adds the texts of other inputs.
    pub fn with_texts(mut self, texts: &HashMap<String, String>) -> Self {
        self.texts.extend(texts.iter().map(|(name, text)| (name.clone(), text.clone())));
        self
    }

    /// Creates the exception for the error of a job with these inputs.
    pub fn exception(&self, error: &inertial_app::Error) -> PyErr {
        of_inputs(error, &|place| match place {
            _ if self.models.contains(place) => Kind::Model,
            _ if place.split(", ").any(|part| self.logs.contains(part)) => Kind::Log,
            _ => Kind::Other,
        })
    }

    /// Returns the output files of a call; an error if an output is also an input, or if two outputs are the same file.
    pub fn files<'p>(&self, outputs: impl IntoIterator<Item = &'p Path>) -> Result<OutputFiles> {
        // Models, maps and similar inputs may already have been read; the call contains their names.
        let named = self.models.iter().chain(&self.logs).chain(self.texts.keys());
        named.filter(|name| Path::new(name).is_file()).try_for_each(|name| self.copies.disk.reads(name))?;
        self.copies.disk.reserve(outputs)?;
        Ok(OutputFiles::new(&self.copies.disk))
    }

    /// Returns the file system of the call.
    pub fn disk(&self) -> &Disk {
        &self.copies.disk
    }

    fn given(&self) -> InMemoryInputs<'_> {
        InMemoryInputs {
            texts: &self.texts,
            logs: &self.tables,
            summaries: &self.summaries,
            others: &self.copies,
        }
    }
}

impl Source for InputData {
    fn text(&self, name: &str, most: u64) -> Result<String> {
        self.given().text(name, most)
    }

    fn model(&self, name: &str, most: u64) -> Result<Vec<u8>> {
        self.given().model(name, most)
    }

    fn referenced(&self, model: &str, name: &str, most: u64) -> Result<Vec<u8>> {
        self.given().referenced(model, name, most)
    }

    fn included(&self, model: &str, name: &str, most: u64) -> Result<String> {
        self.given().included(model, name, most)
    }

    fn package(&self, model: &str, name: &str) -> Option<String> {
        self.given().package(model, name)
    }

    fn log(&self, name: &str, source: &LogSource) -> Result<Box<dyn Reader>> {
        self.given().log(name, source)
    }

    fn parts(&self, name: &str) -> Vec<String> {
        self.given().parts(name)
    }

    fn open(&self, name: &str) -> Result<Box<dyn Read + Send>> {
        self.given().open(name)
    }

    fn files_of_model(&self, model: &str, text: &str, names: &[String]) -> Result<()> {
        // As for meshes, the model may be a file although its text is held here.
        self.copies.disk.files_of_model(model, text, names)
    }

    fn check_outputs(&self) -> Result<()> {
        self.copies.disk.check_outputs()
    }

    fn mesh(&self, model: &str, name: &str, most: u64) -> Option<(String, Result<Vec<u8>>)> {
        // A model that was read from a file has its meshes there, although its text is held here.
        self.copies.disk.mesh(model, name, most)
    }

    fn columns(&self, name: &str) -> Option<&Log> {
        self.tables.get(name)
    }

    fn summary(&self, name: &str) -> Option<&estimation::Summary> {
        self.summaries.get(name)
    }

    fn size(&self, name: &str) -> u64 {
        self.copies.size(name)
    }
}

/// Files, some of which are local copies; messages refer to these by their original address.
#[derive(Clone, Default)]
struct Copies {
    paths: HashMap<String, PathBuf>,
    disk: Disk,
}

impl Copies {
    fn path(&self, name: &str) -> String {
        self.paths.get(name).map_or_else(|| name.to_owned(), |path| path.display().to_string())
    }
}

impl Source for Copies {
    fn text(&self, name: &str, most: u64) -> Result<String> {
        self.disk.text(&self.path(name), most)
    }

    fn model(&self, name: &str, most: u64) -> Result<Vec<u8>> {
        self.disk.model(&self.path(name), most)
    }

    fn referenced(&self, model: &str, name: &str, most: u64) -> Result<Vec<u8>> {
        self.disk.referenced(model, name, most)
    }

    fn included(&self, model: &str, name: &str, most: u64) -> Result<String> {
        self.disk.included(model, name, most)
    }

    fn package(&self, model: &str, name: &str) -> Option<String> {
        self.disk.package(model, name)
    }

    fn files_of_model(&self, model: &str, text: &str, names: &[String]) -> Result<()> {
        self.disk.files_of_model(model, text, names)
    }

    fn check_outputs(&self) -> Result<()> {
        self.disk.check_outputs()
    }

    fn log(&self, name: &str, source: &LogSource) -> Result<Box<dyn Reader>> {
        match self.paths.get(name) {
            Some(path) => Ok(open_as(path, name.to_owned(), source)?),
            None => self.disk.log(name, source),
        }
    }

    fn parts(&self, name: &str) -> Vec<String> {
        self.disk.parts(&self.path(name))
    }

    fn open(&self, name: &str) -> Result<Box<dyn Read + Send>> {
        self.disk.open(&self.path(name))
    }

    fn size(&self, name: &str) -> u64 {
        self.disk.size(&self.path(name))
    }
}

/// Inputs of one call, by the names used in messages.
#[pyclass(module = "inertial._inertial")]
#[derive(Default)]
pub struct Inputs {
    data: Arc<InputData>,
}

impl Inputs {
    /// Returns the inputs added so far.
    pub fn data(&self) -> Arc<InputData> {
        Arc::clone(&self.data)
    }

    /// Adds a summary.
    pub fn add_summary(&mut self, name: String, summary: estimation::Summary) {
        self.change().summaries.insert(name, summary);
    }

    fn change(&mut self) -> &mut InputData {
        Arc::make_mut(&mut self.data)
    }
}

#[pymethods]
impl Inputs {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Adds a model with its text, or without one if it is a file.
    fn add_model(&mut self, name: String, text: Option<String>) {
        let data = self.change();
        if let Some(text) = text {
            data.texts.insert(name.clone(), text);
        }
        data.models.insert(name);
    }

    /// Adds another text: a column map, a joint model or bounds.
    fn add_text(&mut self, name: String, text: String) {
        self.change().texts.insert(name, text);
    }

    /// Adds the name of a log file; `copy` is the location of its content if it differs.
    #[pyo3(signature = (name, copy=None))]
    fn add_log(&mut self, name: String, copy: Option<PathBuf>) {
        let data = self.change();
        if let Some(copy) = copy {
            data.copies.paths.insert(name.clone(), copy);
        }
        data.logs.insert(name);
    }

    /// Adds a log given as columns.
    fn add_table(
        &mut self,
        name: String,
        names: Vec<String>,
        columns: Vec<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<()> {
        let columns = columns.iter().map(|c| c.as_array().to_vec()).collect();
        let log = Log::new(name.clone(), names, columns).map_err(|e| LogError::new_err(e.to_string()))?;
        let data = self.change();
        data.tables.insert(name.clone(), log);
        data.logs.insert(name);
        Ok(())
    }
}
