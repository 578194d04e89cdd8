//! What logs say of the unknowns: built from logs and arrays, merged, pickled, and followed as a stream.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use inertial::dynamics::{InverseDynamics, Samples};
use inertial::estimation::{self, Equations, Measurements};
use inertial::mechanism::Mechanism;
use inertial_cli::Session;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::arrays::{Array, Rows};
use crate::calls::{long, session_with};
use crate::wrong;

self_cell::self_cell!(
    /// Unknowns together with the mechanism that they are of.
    struct Problem {
        owner: Mechanism,
        #[covariant]
        dependent: Equations,
    }
);

type Followed<'a> = estimation::Online<'a, 'a>;

self_cell::self_cell!(
    struct Stream {
        owner: Problem,
        #[covariant]
        dependent: Followed,
    }
);

/// The problem that arguments of `identify` describe.
fn problem(arguments: &[String], label: &str, text: Option<&str>) -> PyResult<Problem> {
    let mechanism = inertial_cli::mechanism(arguments, session_with(label, text)).map_err(wrong)?;
    Problem::try_new(mechanism, |m| inertial_cli::equations(arguments, m)).map_err(wrong)
}

/// Positions, velocities, accelerations and forces of samples.
fn rows<'py>(equations: &Equations<'_>, arrays: [Array<'py>; 4]) -> PyResult<Rows<'py, 4>> {
    let mechanism = equations.mechanism();
    let (nq, nv) = match equations.closed() {
        None => (mechanism.nq(), mechanism.nv()),
        Some(closed) => (closed.independent_positions().len(), closed.dof()),
    };
    let forces = nv + 6 * usize::from(equations.has_base_wrench());
    Rows::new(["q", "dq", "ddq", "tau"], arrays, [nq, nv, nv, forces])
}

/// Hands measurements to `take`.
fn measured<T>(
    equations: &Equations<'_>,
    count: usize,
    [q, v, a, tau]: [&[f64]; 4],
    take: impl FnOnce(&Measurements<'_>) -> inertial::Result<T>,
) -> inertial::Result<T> {
    if let Some(closed) = equations.closed() {
        let mut tree = vec![0.0; count * equations.mechanism().nq()];
        closed.follow(&mut closed.workspace(), closed.assembled(), q, &mut tree)?;
        return take(&Measurements::new(Samples::closed(closed, count, &tree, v, a)?, v, a, tau));
    }
    let dynamics = InverseDynamics::new(equations.mechanism());
    take(&Measurements::new(Samples::new(&dynamics, count, q, v, a)?, v, a, tau))
}

/// What logs say of the unknowns, in a few kilobytes: all that estimates need.
#[pyclass(frozen, module = "inertial._inertial")]
pub struct Summary {
    label: String,
    text: Option<String>,
    /// Arguments of `identify`: the model, no logs, and the options that the unknowns depend on.
    arguments: Vec<String>,
    value: Mutex<estimation::Summary>,
    /// Made when arrays are first added.
    problem: Mutex<Option<Problem>>,
}

/// The class of a summary, and the arguments that make it again.
type Pickled<'py> = (Bound<'py, PyType>, (String, Option<String>, Vec<String>, String));

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while it was held leaves a whole value: it is replaced in one step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Summary {
    /// A copy of what it holds.
    pub fn value(&self) -> estimation::Summary {
        lock(&self.value).clone()
    }

    fn session(&self, stop: &Arc<AtomicBool>) -> Session {
        Session { stop: Arc::clone(stop), ..session_with(&self.label, self.text.as_deref()) }
    }

    fn with_problem<T>(&self, work: impl FnOnce(&Equations<'_>) -> PyResult<T>) -> PyResult<T> {
        let mut held = lock(&self.problem);
        let problem = match held.take() {
            Some(problem) => problem,
            None => problem(&self.arguments, &self.label, self.text.as_deref())?,
        };
        let out = work(held.insert(problem).borrow_dependent());
        drop(held);
        out
    }
}

#[pymethods]
impl Summary {
    /// Of nothing, or (`state`) as it was pickled.
    #[new]
    #[pyo3(signature = (label, text, arguments, state=None))]
    fn new(
        label: String,
        text: Option<String>,
        arguments: Vec<String>,
        state: Option<&str>,
    ) -> PyResult<Self> {
        let made = problem(&arguments, &label, text.as_deref())?;
        let value = match state {
            None => estimation::Summary::empty(made.borrow_dependent()),
            Some(text) => serde_json::from_str(text).map_err(wrong)?,
        };
        value.check(made.borrow_dependent()).map_err(wrong)?;
        Ok(Self { label, text, arguments, value: Mutex::new(value), problem: Mutex::new(Some(made)) })
    }

    fn __reduce__(slf: Bound<'_, Self>) -> PyResult<Pickled<'_>> {
        let own = slf.get();
        let state = own.to_json()?;
        Ok((slf.get_type(), (own.label.clone(), own.text.clone(), own.arguments.clone(), state)))
    }

    /// As --summary-out writes it.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&*lock(&self.value)).map_err(wrong)
    }

    #[getter]
    fn label(&self) -> &str {
        &self.label
    }

    #[getter]
    fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Number of samples.
    #[getter]
    fn samples(&self) -> usize {
        lock(&self.value).samples
    }

    /// Adds logs, prepared as `identify` does. Gives the notes.
    fn add_logs(&self, py: Python<'_>, logs: Vec<String>) -> PyResult<Vec<String>> {
        let stop = Arc::new(AtomicBool::new(false));
        let session = self.session(&stop);
        let mut arguments = self.arguments.clone();
        // The arguments are: identify, the model, a stand-in for the logs, and options.
        arguments.splice(2..3, logs);
        let (more, notes) =
            long(py, &stop, move || inertial_cli::summarize(&arguments, session))?.map_err(wrong)?;
        lock(&self.value).merge(&more).map_err(wrong)?;
        Ok(notes)
    }

    /// Adds samples as they are, without filtering.
    fn add_arrays<'py>(
        &self,
        py: Python<'py>,
        q: Array<'py>,
        dq: Array<'py>,
        ddq: Array<'py>,
        tau: Array<'py>,
    ) -> PyResult<()> {
        let more = self.with_problem(|equations| {
            let rows = rows(equations, [q, dq, ddq, tau])?;
            let (slices, count) = (rows.slices()?, rows.count);
            let take = |data: &Measurements<'_>| estimation::Summary::new(equations, data);
            py.detach(|| measured(equations, count, slices, take)).map_err(wrong)
        })?;
        lock(&self.value).merge(&more).map_err(wrong)
    }

    /// Adds what another summary of the same model and options says.
    fn merge_with(&self, other: &Self) -> PyResult<()> {
        let other = other.value();
        lock(&self.value).merge(&other).map_err(wrong)
    }
}

/// An estimate that follows a stream of samples and forgets old ones.
#[pyclass(frozen, module = "inertial._inertial")]
pub struct Online {
    label: String,
    text: Option<String>,
    arguments: Vec<String>,
    stream: Mutex<Stream>,
}

#[pymethods]
impl Online {
    #[new]
    fn new(label: String, text: Option<String>, arguments: Vec<String>, forgetting: f64) -> PyResult<Self> {
        let problem = problem(&arguments, &label, text.as_deref())?;
        let stream =
            Stream::try_new(problem, |p| Followed::new(p.borrow_dependent(), forgetting)).map_err(wrong)?;
        Ok(Self { label, text, arguments, stream: Mutex::new(stream) })
    }

    /// Number of samples.
    #[getter]
    fn samples(&self) -> usize {
        lock(&self.stream).borrow_dependent().samples()
    }

    /// Takes samples in, one row each.
    fn absorb_arrays<'py>(
        &self,
        py: Python<'py>,
        q: Array<'py>,
        dq: Array<'py>,
        ddq: Array<'py>,
        tau: Array<'py>,
    ) -> PyResult<()> {
        lock(&self.stream).with_dependent_mut(|problem, online| {
            let equations = problem.borrow_dependent();
            let rows = rows(equations, [q, dq, ddq, tau])?;
            let (slices, count) = (rows.slices()?, rows.count);
            py.detach(|| measured(equations, count, slices, |data| online.absorb(data))).map_err(wrong)
        })
    }

    /// What the samples so far say, the older the less.
    fn to_summary(&self) -> Summary {
        let value = lock(&self.stream).borrow_dependent().summary();
        let (label, text, arguments) = (self.label.clone(), self.text.clone(), self.arguments.clone());
        Summary { label, text, arguments, value: Mutex::new(value), problem: Mutex::new(None) }
    }
}
