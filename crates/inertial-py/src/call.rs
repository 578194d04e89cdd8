//! One call from Python: the model, inputs and outputs of a job.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use inertial_app::disk::{OutputFiles, Sink};
use inertial_app::{Checksum, Context, Disk, Error, Model, Result};
use inertial_report::page::{Origin, Page};
use inertial_report::plots;
use pyo3::prelude::*;

use crate::errors::of_job;
use crate::inputs::{InputData, Inputs};
use crate::mechanism::Mechanism;
use crate::work::{Observer, long};

/// Call, defined by the attributes of a Python object.
#[derive(FromPyObject)]
pub struct Call<'py> {
    mechanism: Bound<'py, Mechanism>,
    inputs: PyRef<'py, Inputs>,
    outputs: Outputs,
    /// Callback for progress reports.
    tell: Option<Bound<'py, PyAny>>,
}

/// Files to write.
#[derive(FromPyObject, Clone, Default)]
pub struct Outputs {
    /// Files of the model, the motion, the log or the text.
    pub out: Vec<PathBuf>,
    /// Report page.
    pub report: Option<PathBuf>,
    /// Folder of plots.
    pub plots: Option<PathBuf>,
    /// Summary of logs.
    pub summary_out: Option<PathBuf>,
    /// Text of the call, shown on report pages.
    pub command: String,
}

impl Outputs {
    /// Returns the paths that are known before the work starts.
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let further = self.report.iter().chain(&self.summary_out);
        self.out.iter().chain(further).map(PathBuf::as_path)
    }

    /// Returns whether a report or plots are requested.
    pub fn draws(&self) -> bool {
        self.report.is_some() || self.plots.is_some()
    }
}

impl<'py> Call<'py> {
    /// Returns the files to write.
    pub fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    /// Returns the mechanism.
    pub fn mechanism(&self) -> &Bound<'py, Mechanism> {
        &self.mechanism
    }

    /// Runs a job and moves its files to their final paths; also returns the notes.
    pub fn perform<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Job) -> Result<T> + Send + 'static,
    ) -> PyResult<(T, Vec<String>)> {
        let (observer, data) = (Observer::new(), self.inputs.data());
        let files = data.files(self.outputs.paths()).map_err(|error| data.exception(&error))?;
        let mut job = Job {
            model: self.mechanism.get().model(),
            inputs: Arc::clone(&data),
            observer: Arc::clone(&observer),
            outputs: self.outputs.clone(),
            files,
        };
        let run = move || {
            let done = work(&mut job)?;
            // After an interruption no file is written, however late the work ends.
            job.context().check_interrupted()?;
            job.files.finish()?;
            Ok::<T, Error>(done)
        };
        let done = long(self.mechanism.py(), &observer, self.tell.as_ref(), run)?;
        done.map(|done| (done, observer.notes())).map_err(|error| data.exception(&error))
    }
}

/// Running job.
pub struct Job {
    /// Model of the call.
    pub model: Arc<Model>,
    inputs: Arc<InputData>,
    observer: Arc<Observer>,
    /// Requested outputs.
    pub outputs: Outputs,
    /// Files to be written.
    pub files: OutputFiles,
}

impl Job {
    /// Returns the inputs and the observer.
    pub fn context(&self) -> Context<'_> {
        Context { inputs: &*self.inputs, progress: &*self.observer }
    }

    /// Returns the model, prepared for writing to the output.
    pub fn model_to_write(&self) -> Result<Arc<Model>> {
        match self.outputs.out.first() {
            Some(out) => Ok(Arc::new((*self.model).clone().to_be_written(out)?)),
            None => Ok(Arc::clone(&self.model)),
        }
    }

    /// Opens a file that is written incrementally.
    pub fn sink(&self, path: &Path) -> Result<Sink> {
        Sink::to_file(self.inputs.disk(), path)
    }

    /// Adds a text to the output files, if both exist.
    pub fn write(&mut self, text: Option<&String>) -> Result<()> {
        let Some(text) = text else { return Ok(()) };
        self.outputs.out.iter().try_for_each(|path| self.files.add(path, text))
    }

    /// Adds a model and its joint file to the output files, if they exist.
    pub fn write_model(&mut self, model: Option<&String>, joints: Option<&String>) -> Result<()> {
        self.write(model)?;
        let Some(joints) = joints else { return Ok(()) };
        for model in &self.outputs.out {
            self.files.add(&self.inputs.disk().joint_file(model)?, joints)?;
        }
        Ok(())
    }

    /// Draws a report page and its plots if requested; `names` are the inputs in addition to the model.
    pub fn draw(
        &mut self,
        names: &[String],
        page: impl FnOnce(Origin, &Context<'_>) -> Result<Page>,
    ) -> Result<()> {
        if !self.outputs.draws() {
            return Ok(());
        }
        let origin = match &self.outputs.report {
            Some(_) => Origin {
                command: self.outputs.command.clone(),
                inputs: Checksum::of_inputs(&*self.inputs, names)?,
            },
            None => Origin::default(),
        };
        let page = page(origin, &self.context())?;
        if let Some(path) = &self.outputs.report {
            self.files.add(path, &page.html()?)?;
        }
        if let Some(folder) = &self.outputs.plots {
            plots::write(plots::files(&page)?, folder, &mut self.files)?;
        }
        Ok(())
    }
}

/// Writes a file atomically.
#[pyfunction]
pub fn write_file(path: PathBuf, content: &[u8]) -> PyResult<()> {
    let mut files = OutputFiles::new(&Disk::default());
    let written = files.add(&path, content).and_then(|()| files.finish());
    written.map_err(|error| of_job(&error))
}
