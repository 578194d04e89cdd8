//! Summaries of logs: built from logs and arrays, merged, serialized, and updated from a stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use inertial::dynamics::{InverseDynamics, Samples};
use inertial::estimation::{self, Equations, Measurements};
use inertial_app::logs::LogOptions;
use inertial_app::unknowns::Unknowns;
use inertial_app::{Context, Model, NoProgress, identify, summary_file};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};

use crate::arrays::{Array, Rows};
use crate::errors::{LogError, of_job, value_error};
use crate::inputs::{InputData, Inputs};
use crate::mechanism::Mechanism;
use crate::options::filled;
use crate::outcomes::to_python;
use crate::pool;
use crate::work::{Observer, lock, long};

/// Number of samples of a stream from which the work is parallel and the interpreter is released.
const MANY: usize = 257;

self_cell::self_cell!(
    /// Unknowns together with their model.
    struct Problem {
        owner: Arc<Model>,
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

/// Creates the problem described by keyword arguments, with the texts that they name.
fn problem(model: Arc<Model>, unknowns: &Unknowns, texts: &HashMap<String, String>) -> PyResult<Problem> {
    let data = InputData::of_texts(texts.clone());
    let context = Context { inputs: &data, progress: &NoProgress };
    Problem::try_new(model, |model| unknowns.equations(model, &context)).map_err(|e| data.exception(&e))
}

/// Names of the parts of a sample.
const PARTS: [&str; 4] = ["q", "dq", "ddq", "tau"];

/// Returns the number of values per sample of positions, velocities, accelerations and forces.
fn widths(equations: &Equations<'_>) -> [usize; 4] {
    let mechanism = equations.mechanism();
    let (nq, nv) = match equations.closed() {
        None => (mechanism.nq(), mechanism.nv()),
        Some(closed) => (closed.independent_positions().len(), closed.dof()),
    };
    [nq, nv, nv, nv + 6 * usize::from(equations.has_base_wrench())]
}

/// Passes measurements to `take`.
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

/// Summary of the information in logs about the unknowns, sufficient for all estimates. Immutable.
#[pyclass(frozen, module = "inertial._inertial")]
pub struct Summary {
    mechanism: Py<Mechanism>,
    /// Keyword arguments that define the unknowns and the preparation of logs.
    given: Py<PyDict>,
    /// Texts named by the keyword arguments.
    texts: Arc<HashMap<String, String>>,
    value: Arc<estimation::Summary>,
    /// Problem, created when arrays are first added, and shared by all summaries derived from this one.
    problem: Arc<OnceLock<Problem>>,
}

/// Class of a summary, and the arguments that recreate it.
type Pickled<'py> =
    (Bound<'py, PyType>, (Py<Mechanism>, Py<PyDict>, HashMap<String, String>, Bound<'py, PyBytes>));

impl Summary {
    /// Returns a copy of the content.
    pub fn value(&self) -> estimation::Summary {
        (*self.value).clone()
    }

    /// Returns the keyword arguments of an identification that affect its unknowns or the preparation of its logs.
    pub fn arguments<'py>(given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
        let fields = [serde_json::to_value(Unknowns::default()), serde_json::to_value(LogOptions::default())];
        let out = PyDict::new(given.py());
        for fields in fields {
            for name in fields.map_err(value_error)?.as_object().into_iter().flat_map(serde_json::Map::keys) {
                if let Some(value) = given.get_item(name)? {
                    out.set_item(name, value)?;
                }
            }
        }
        Ok(out)
    }

    /// Creates the summary of an identification's logs.
    pub fn found(
        mechanism: &Bound<'_, Mechanism>,
        given: Bound<'_, PyDict>,
        texts: HashMap<String, String>,
        value: estimation::Summary,
    ) -> Self {
        Self {
            mechanism: mechanism.clone().unbind(),
            given: given.unbind(),
            texts: Arc::new(texts),
            value: Arc::new(value),
            problem: Arc::default(),
        }
    }

    /// Creates a summary of the same model and options with other content.
    fn with_value(&self, py: Python<'_>, value: estimation::Summary) -> Self {
        Self {
            mechanism: self.mechanism.clone_ref(py),
            given: self.given.clone_ref(py),
            texts: Arc::clone(&self.texts),
            value: Arc::new(value),
            problem: Arc::clone(&self.problem),
        }
    }

    fn options(&self, py: Python<'_>) -> PyResult<identify::Options> {
        filled(self.given.bind(py))
    }

    fn with_problem<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Equations<'_>) -> PyResult<T>,
    ) -> PyResult<T> {
        let problem = if let Some(made) = self.problem.get() {
            made
        } else {
            let made = problem(self.mechanism.get().model(), &self.options(py)?.unknowns, &self.texts)?;
            self.problem.get_or_init(|| made)
        };
        work(problem.borrow_dependent())
    }
}

#[pymethods]
impl Summary {
    /// Creates an empty summary, or one from packed bytes or JSON.
    #[new]
    #[pyo3(signature = (mechanism, given, texts, state=None))]
    fn new(
        mechanism: Bound<'_, Mechanism>,
        given: Bound<'_, PyDict>,
        texts: HashMap<String, String>,
        state: Option<&[u8]>,
    ) -> PyResult<Self> {
        let options: identify::Options = filled(&given)?;
        let made = problem(mechanism.get().model(), &options.unknowns, &texts)?;
        options.log.check().map_err(|e| of_job(&e))?;
        let value = match state {
            None => estimation::Summary::empty(made.borrow_dependent()),
            Some(state) => summary_file::unpack(state).map_err(|e| LogError::new_err(e.to_string()))?,
        };
        value.check(made.borrow_dependent()).map_err(value_error)?;
        let mut out = Self::found(&mechanism, given, texts, value);
        out.problem = Arc::new(OnceLock::from(made));
        Ok(out)
    }

    fn __reduce__(slf: Bound<'_, Self>) -> PyResult<Pickled<'_>> {
        let (own, py) = (slf.get(), slf.py());
        let state = own.to_bytes(py, true)?;
        let (mechanism, given) = (own.mechanism.clone_ref(py), own.given.clone_ref(py));
        Ok((slf.get_type(), (mechanism, given, (*own.texts).clone(), state)))
    }

    /// Returns JSON, as --summary-out writes it to a name that ends in .json.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&*self.value).map_err(value_error)
    }

    /// Returns packed bytes; without `diagnostics` in the compact form.
    fn to_bytes<'py>(&self, py: Python<'py>, diagnostics: bool) -> PyResult<Bound<'py, PyBytes>> {
        let packed = if diagnostics {
            summary_file::pack(&*self.value)
        } else {
            self.with_problem(py, |equations| Ok(summary_file::pack(&self.value.compact(equations))))?
        };
        Ok(PyBytes::new(py, &packed.map_err(|e| of_job(&e))?))
    }

    /// Texts named by the keyword arguments.
    #[getter]
    fn texts(&self) -> HashMap<String, String> {
        (*self.texts).clone()
    }

    /// Names of the unknowns: base parameters, then terms of the joints.
    #[getter]
    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with_problem(py, |equations| Ok(equations.names.clone()))
    }

    /// Number of samples.
    #[getter]
    fn samples(&self) -> usize {
        self.value.samples
    }

    /// Adds this summary to the inputs of a call.
    fn add_to(&self, mut inputs: PyRefMut<'_, Inputs>, name: String) {
        inputs.add_summary(name, self.value());
    }

    /// Returns this summary with further logs added, prepared as `identify` does, and the notes on them.
    #[pyo3(signature = (inputs, logs, tell=None))]
    fn with_logs(
        &self,
        py: Python<'_>,
        inputs: PyRef<'_, Inputs>,
        logs: Vec<String>,
        tell: Option<Bound<'_, PyAny>>,
    ) -> PyResult<(Self, Vec<String>)> {
        let (observer, model) = (Observer::new(), self.mechanism.get().model());
        let data = Arc::new((*inputs.data()).clone().with_texts(&self.texts));
        let options = self.options(py)?.with(|o| o.logs = logs);
        let (watched, read) = (Arc::clone(&observer), Arc::clone(&data));
        let work =
            move || identify::summarize(&model, &options, &Context { inputs: &*read, progress: &*watched });
        let more = long(py, &observer, tell.as_ref(), work)?.map_err(|e| data.exception(&e))?;
        let mut value = self.value();
        value.merge(&more).map_err(value_error)?;
        Ok((self.with_value(py, value), observer.notes()))
    }

    /// Returns this summary with further samples added, without filtering.
    fn with_arrays<'py>(
        &self,
        py: Python<'py>,
        q: Array<'py>,
        dq: Array<'py>,
        ddq: Array<'py>,
        tau: Array<'py>,
    ) -> PyResult<Self> {
        let pool = pool::shared(py)?;
        let more = self.with_problem(py, |equations| {
            let rows = Rows::new(PARTS, [q, dq, ddq, tau], widths(equations))?;
            let (slices, count) = (rows.slices()?, rows.count);
            let take = |data: &Measurements<'_>| estimation::Summary::new(equations, data);
            py.detach(|| {
                let dynamics = InverseDynamics::new(equations.mechanism());
                pool.install(|| measured(equations, &dynamics, count, slices, take))
            })
            .map_err(value_error)
        })?;
        let mut value = self.value();
        value.merge(&more).map_err(value_error)?;
        Ok(self.with_value(py, value))
    }

    /// Returns this summary merged with others of the same model and options.
    fn merged(&self, py: Python<'_>, others: Vec<Py<Self>>) -> PyResult<Self> {
        let mut value = self.value();
        for other in &others {
            value.merge(&other.get().value).map_err(value_error)?;
        }
        Ok(self.with_value(py, value))
    }

    /// Returns the residuals of given values of the unknowns, in the format of `validate`.
    fn residuals<'py>(
        &self,
        py: Python<'py>,
        values: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let values = values.as_slice().map_err(value_error)?;
        let found = self.with_problem(py, |equations| {
            estimation::validate(equations, &self.value, values).map_err(value_error)
        })?;
        to_python(py, &found)
    }
}

/// Online estimate from a stream of samples, with forgetting of old samples.
#[pyclass(frozen, module = "inertial._inertial")]
pub struct Online {
    mechanism: Py<Mechanism>,
    given: Py<PyDict>,
    texts: HashMap<String, String>,
    dynamics: InverseDynamics,
    /// Number of values per sample of each part.
    widths: [usize; 4],
    stream: Mutex<Stream>,
}

#[pymethods]
impl Online {
    #[new]
    fn new(
        mechanism: Bound<'_, Mechanism>,
        given: Bound<'_, PyDict>,
        texts: HashMap<String, String>,
        forgetting: f64,
    ) -> PyResult<Self> {
        let options: identify::Options = filled(&given)?;
        let problem = problem(mechanism.get().model(), &options.unknowns, &texts)?;
        let dynamics = InverseDynamics::new(&problem.borrow_owner().mechanism);
        let stream = Stream::try_new(problem, |p| Followed::new(p.borrow_dependent(), forgetting))
            .map_err(value_error)?;
        let widths = widths(stream.borrow_owner().borrow_dependent());
        let (mechanism, given) = (mechanism.unbind(), given.unbind());
        Ok(Self { mechanism, given, texts, dynamics, widths, stream: Mutex::new(stream) })
    }

    /// Number of samples.
    #[getter]
    fn samples(&self) -> usize {
        lock(&self.stream).borrow_dependent().samples()
    }

    /// Adds samples, one row each.
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
                measured(equations, &self.dynamics, count, slices, |data| online.update(data))
            })
        };
        let done = if count < MANY {
            take()
        } else {
            let pool = pool::shared(py)?;
            py.detach(|| pool.install(take))
        };
        done.map_err(value_error)
    }

    /// Returns the summary of the samples so far, with lower weight for older ones.
    fn to_summary(&self, py: Python<'_>) -> Summary {
        let value = lock(&self.stream).borrow_dependent().summary();
        let (mechanism, given) = (self.mechanism.bind(py), self.given.bind(py).clone());
        Summary::found(mechanism, given, self.texts.clone(), value)
    }
}
