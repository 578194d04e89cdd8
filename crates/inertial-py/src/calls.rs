//! The program's commands, called from Python.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use inertial_cli::Session;
use inertial_data::Log;
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::summary::Summary;
use crate::{pool, wrong};

/// How often Python looks whether it was interrupted.
const GLANCE: Duration = Duration::from_millis(20);

/// Time that interrupted work has to end by itself.
const GRACE: Duration = Duration::from_millis(150);

/// Does long work on a thread of its own with the interpreter released, so that Ctrl-C is seen.
///
/// An interruption sets `stop` and gives the work a moment to end. Work that has not ended by then is left to itself: it sees
/// `stop` before it writes anything, and its result is dropped.
pub fn long<T: Send + 'static>(
    py: Python<'_>,
    stop: &Arc<AtomicBool>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (send, receive) = channel();
    std::thread::spawn(move || send.send(pool::run_alone(work)));
    let ended = || wrong("the work ended unexpectedly");
    // A receiver cannot be shared between threads, but the one that waits is always this one.
    let receive = Mutex::new(receive);
    let wait = |time: Duration| {
        py.detach(|| receive.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(time))
    };
    loop {
        match wait(GLANCE) {
            Ok(done) => return done,
            Err(RecvTimeoutError::Disconnected) => return Err(ended()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(interruption) = py.check_signals() {
            stop.store(true, Ordering::Relaxed);
            // Whether it ended or not, the caller is interrupted.
            let _ = wait(GRACE);
            return Err(interruption);
        }
    }
}

/// A session with one model, where its text is given.
pub fn session_with(label: &str, text: Option<&str>) -> Session {
    let models = text.map(|text| (label.to_owned(), text.to_owned())).into_iter().collect();
    Session { models, ..Session::default() }
}

/// Runs a command. Gives whether the answer is yes, what it printed, and the notes beside it.
#[pyfunction]
#[pyo3(signature = (arguments, models, summaries))]
pub fn call(
    py: Python<'_>,
    arguments: Vec<String>,
    models: HashMap<String, String>,
    summaries: HashMap<String, Py<Summary>>,
) -> PyResult<(bool, String, Vec<String>)> {
    let stop = Arc::new(AtomicBool::new(false));
    let summaries = summaries.into_iter().map(|(name, s)| (name, s.get().value())).collect();
    let session = Session { models, summaries, stop: Arc::clone(&stop), ..Session::default() };
    let reply = long(py, &stop, move || inertial_cli::call(&arguments, session))?.map_err(wrong)?;
    Ok((reply.yes, reply.output, reply.messages))
}

/// Robots of one type, identified together as the arguments of `identify` say. Gives the result object's text and the notes
/// beside it.
#[pyfunction]
pub fn identify_fleet(
    py: Python<'_>,
    arguments: Vec<String>,
    label: &str,
    text: Option<&str>,
    summaries: Vec<Py<Summary>>,
    carrying: Vec<bool>,
) -> PyResult<(String, Vec<String>)> {
    let robots: Vec<_> = summaries.iter().map(|s| s.get().value()).collect();
    let session = session_with(label, text);
    let stop = Arc::clone(&session.stop);
    let work = move || inertial_cli::fleet(&arguments, session, &robots, &carrying);
    let (fleet, notes) = long(py, &stop, work)?.map_err(wrong)?;
    Ok((serde_json::to_string(&fleet).map_err(wrong)?, notes))
}

/// The options of a command, each with what the program's help says of it.
#[pyfunction]
pub fn options(command: &str) -> Vec<(String, String)> {
    inertial_cli::options(command)
}

/// The program itself: what `inertial` on the command line does. Gives its exit status.
#[pyfunction]
pub fn main(py: Python<'_>, arguments: Vec<PathBuf>) -> u8 {
    let arguments = arguments.into_iter().map(PathBuf::into_os_string).collect::<Vec<_>>();
    let code = py.detach(|| inertial_cli::main_with(arguments));
    // An exit code does not tell its number.
    (0..2).find(|&k| code == ExitCode::from(k)).unwrap_or(2)
}

/// Writes columns of numbers as a log that commands can read.
#[pyfunction]
pub fn write_log(
    py: Python<'_>,
    path: PathBuf,
    names: Vec<String>,
    columns: Vec<PyReadonlyArray1<'_, f64>>,
) -> PyResult<()> {
    let columns = columns.iter().map(|c| c.as_array().to_vec()).collect();
    py.detach(|| {
        let log = Log::new(path.display().to_string(), names, columns)?;
        inertial_data::write_parquet(&log, &path)
    })
    .map_err(wrong)
}

/// The columns of a log, by name.
#[pyfunction]
pub fn read_log(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let log = py.detach(|| Log::read(&path)).map_err(wrong)?;
    let out = PyDict::new(py);
    for (k, name) in log.names().iter().enumerate() {
        out.set_item(name, log.column_at(k).to_vec().into_pyarray(py))?;
    }
    Ok(out)
}
