//! Summaries of logs: built from logs and arrays, merged, packed, and followed as a stream.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use inertial::dynamics::{InverseDynamics, Samples};
use inertial::estimation::{self, Equations, Measurements};
use inertial_app::Model;
use inertial_cli::Session;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::arrays::{Array, Rows};
use crate::calls::{long, session_with};
use crate::{pool, wrong};

/// Samples of a stream from which threads share the work, and the interpreter is released.
const MANY: usize = 257;

self_cell::self_cell!(
    /// Unknowns together with the model that they are of.
    struct Problem {
        owner: Model,
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
    let model = inertial_cli::model(arguments, session_with(label, text)).map_err(wrong)?;
    Problem::try_new(model, |m| inertial_cli::equations(arguments, m)).map_err(wrong)
}

/// Names of what samples consist of.
const PARTS: [&str; 4] = ["q", "dq", "ddq", "tau"];

/// Numbers per sample of positions, velocities, accelerations and forces.
fn widths(equations: &Equations<'_>) -> [usize; 4] {
    let mechanism = equations.mechanism();
    let (nq, nv) = match equations.closed() {
        None => (mechanism.nq(), mechanism.nv()),
        Some(closed) => (closed.independent_positions().len(), closed.dof()),
    };
    [nq, nv, nv, nv + 6 * usize::from(equations.has_base_wrench())]
}

/// Hands measurements to `take`.
fn measured<T>(
    equations: &Equations<'_>,
    dynamics: &InverseDynamics,
    count: usize,
    [q, v, a, tau]: [&[f64]; 4],
    take: impl FnOnce(&Measurements<'_>) -> inertial::Result<T>,
) -> inertial::Result<T> {
    if let Some(closed) = equations.closed() {
        let mut tree = vec![0.0; count * equations.mechanism().nq()];
        closed.follow(&mut closed.workspace(), closed.assembled(), q, &mut tree)?;
        return take(&Measurements::new(Samples::closed(closed, count, &tree, v, a)?, tau));
    }
    take(&Measurements::new(Samples::new(dynamics, count, q, v, a)?, tau))
}

/// What logs say of the unknowns: all that estimates need. Immutable.
#[pyclass(frozen, module = "inertial._inertial")]
pub struct Summary {
    label: String,
    text: Option<String>,
    /// Arguments of `identify`: the model, no logs, and the options that the unknowns depend on.
    arguments: Vec<String>,
    value: Arc<estimation::Summary>,
    /// Made when arrays are first added, for all summaries that come from this one.
    problem: Arc<OnceLock<Problem>>,
}

/// The class of a summary, and the arguments that make it again.
type Pickled<'py> = (Bound<'py, PyType>, (String, Option<String>, Vec<String>, Bound<'py, PyBytes>));

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while it was held leaves a whole value: it is replaced in one step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// First bytes of a packed summary.
const MAGIC: &[u8] = b"inertial-summary-1\n";

/// Unpacks a summary: packed bytes, or the JSON that `--summary-out` writes.
fn unpack(state: &[u8]) -> PyResult<estimation::Summary> {
    match state.strip_prefix(MAGIC) {
        Some(packed) => postcard::from_bytes(packed).map_err(|e| wrong(format!("a damaged summary: {e}"))),
        None => serde_json::from_slice(state).map_err(|e| wrong(format!("no summary: {e}"))),
    }
}

impl Summary {
    /// A copy of what it holds.
    pub fn value(&self) -> estimation::Summary {
        (*self.value).clone()
    }

    fn session(&self, stop: &Arc<AtomicBool>) -> Session {
        Session { stop: Arc::clone(stop), ..session_with(&self.label, self.text.as_deref()) }
    }

    /// The same model and options with other content.
    fn with_value(&self, value: estimation::Summary) -> Self {
        let (label, text, arguments) = (self.label.clone(), self.text.clone(), self.arguments.clone());
        Self { label, text, arguments, value: Arc::new(value), problem: Arc::clone(&self.problem) }
    }

    fn with_problem<T>(&self, work: impl FnOnce(&Equations<'_>) -> PyResult<T>) -> PyResult<T> {
        let problem = if let Some(made) = self.problem.get() {
            made
        } else {
            let made = problem(&self.arguments, &self.label, self.text.as_deref())?;
            self.problem.get_or_init(|| made)
        };
        work(problem.borrow_dependent())
    }
}

#[pymethods]
impl Summary {
    /// Creates an empty summary, or one from packed bytes or JSON.
    #[new]
    #[pyo3(signature = (label, text, arguments, state=None))]
    fn new(
        label: String,
        text: Option<String>,
        arguments: Vec<String>,
        state: Option<&[u8]>,
    ) -> PyResult<Self> {
        let made = problem(&arguments, &label, text.as_deref())?;
        let value = match state {
            None => estimation::Summary::empty(made.borrow_dependent()),
            Some(state) => unpack(state)?,
        };
        value.check(made.borrow_dependent()).map_err(wrong)?;
        let problem = Arc::new(OnceLock::from(made));
        Ok(Self { label, text, arguments, value: Arc::new(value), problem })
    }

    fn __reduce__(slf: Bound<'_, Self>) -> PyResult<Pickled<'_>> {
        let own = slf.get();
        let state = own.to_bytes(slf.py(), true)?;
        Ok((slf.get_type(), (own.label.clone(), own.text.clone(), own.arguments.clone(), state)))
    }

    /// As --summary-out writes it.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&*self.value).map_err(wrong)
    }

    /// Packed bytes; without `diagnostics` a fifth of the size, and residuals then have no test of whiteness.
    fn to_bytes<'py>(&self, py: Python<'py>, diagnostics: bool) -> PyResult<Bound<'py, PyBytes>> {
        let packed = if diagnostics {
            postcard::to_stdvec(&*self.value)
        } else {
            postcard::to_stdvec(&self.value().without_differences())
        };
        Ok(PyBytes::new(py, &[MAGIC, &packed.map_err(wrong)?].concat()))
    }

    #[getter]
    fn label(&self) -> &str {
        &self.label
    }

    #[getter]
    fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Names of the unknowns: base parameters, then terms of the joints.
    #[getter]
    fn names(&self) -> PyResult<Vec<String>> {
        self.with_problem(|equations| Ok(equations.names.clone()))
    }

    /// Number of samples.
    #[getter]
    fn samples(&self) -> usize {
        self.value.samples
    }

    /// This summary and further logs, prepared as `identify` does, with the notes on them.
    fn with_logs(&self, py: Python<'_>, logs: Vec<String>) -> PyResult<(Self, Vec<String>)> {
        let stop = Arc::new(AtomicBool::new(false));
        let session = self.session(&stop);
        let mut arguments = self.arguments.clone();
        // The arguments are: identify, the model, a stand-in for the logs, and options.
        arguments.splice(2..3, logs);
        let (more, notes) =
            long(py, &stop, move || inertial_cli::summarize(&arguments, session))?.map_err(wrong)?;
        let mut value = self.value();
        value.merge(&more).map_err(wrong)?;
        Ok((self.with_value(value), notes))
    }

    /// This summary and further samples as they are, without filtering.
    fn with_arrays<'py>(
        &self,
        py: Python<'py>,
        q: Array<'py>,
        dq: Array<'py>,
        ddq: Array<'py>,
        tau: Array<'py>,
    ) -> PyResult<Self> {
        let pool = pool::shared(py)?;
        let more = self.with_problem(|equations| {
            let rows = Rows::new(PARTS, [q, dq, ddq, tau], widths(equations))?;
            let (slices, count) = (rows.slices()?, rows.count);
            let take = |data: &Measurements<'_>| estimation::Summary::new(equations, data);
            py.detach(|| {
                let dynamics = InverseDynamics::new(equations.mechanism());
                pool.install(|| measured(equations, &dynamics, count, slices, take))
            })
            .map_err(wrong)
        })?;
        let mut value = self.value();
        value.merge(&more).map_err(wrong)?;
        Ok(self.with_value(value))
    }

    /// This summary and others of the same model and options.
    fn merged(&self, others: Vec<Py<Self>>) -> PyResult<Self> {
        let mut value = self.value();
        for other in &others {
            value.merge(&other.get().value).map_err(wrong)?;
        }
        Ok(self.with_value(value))
    }

    /// Residuals of given values of the unknowns, as the JSON of `validate`.
    fn residuals(&self, values: PyReadonlyArray1<'_, f64>) -> PyResult<String> {
        let values = values.as_slice().map_err(wrong)?;
        let found = self
            .with_problem(|equations| estimation::validate(equations, &self.value, values).map_err(wrong))?;
        serde_json::to_string(&found).map_err(wrong)
    }
}

/// An estimate that follows a stream of samples and forgets old ones.
#[pyclass(frozen, module = "inertial._inertial")]
pub struct Online {
    label: String,
    text: Option<String>,
    arguments: Vec<String>,
    dynamics: InverseDynamics,
    /// Numbers per sample.
    widths: [usize; 4],
    stream: Mutex<Stream>,
}

#[pymethods]
impl Online {
    #[new]
    fn new(label: String, text: Option<String>, arguments: Vec<String>, forgetting: f64) -> PyResult<Self> {
        let problem = problem(&arguments, &label, text.as_deref())?;
        let dynamics = InverseDynamics::new(&problem.borrow_owner().mechanism);
        let stream =
            Stream::try_new(problem, |p| Followed::new(p.borrow_dependent(), forgetting)).map_err(wrong)?;
        let widths = widths(stream.borrow_owner().borrow_dependent());
        Ok(Self { label, text, arguments, dynamics, widths, stream: Mutex::new(stream) })
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
        let rows = Rows::new(PARTS, [q, dq, ddq, tau], self.widths)?;
        let (slices, count) = (rows.slices()?, rows.count);
        let take = || {
            lock(&self.stream).with_dependent_mut(|problem, online| {
                let equations = problem.borrow_dependent();
                measured(equations, &self.dynamics, count, slices, |data| online.absorb(data))
            })
        };
        let done = if count < MANY {
            take()
        } else {
            let pool = pool::shared(py)?;
            py.detach(|| pool.install(take))
        };
        done.map_err(wrong)
    }

    /// What the samples so far say, the older the less.
    fn to_summary(&self) -> Summary {
        let value = lock(&self.stream).borrow_dependent().summary();
        let (label, text, arguments) = (self.label.clone(), self.text.clone(), self.arguments.clone());
        Summary { label, text, arguments, value: Arc::new(value), problem: Arc::default() }
    }
}
