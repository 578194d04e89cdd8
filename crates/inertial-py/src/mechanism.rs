//! Mechanism in Python: names, parameters, regressors.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use inertial::dynamics::{
    ClosedMechanism, Frame, InverseDynamics, Samples, Scratch, Workspace, gravity_regressor,
    kinetic_energy_regressor, momentum_regressor, potential_energy_regressor, pseudo_inertia_entries,
    tetrahedral_regressor,
};
use inertial::mechanism as model;
use inertial::spatial::PseudoInertia;
use inertial_app::{Context, Disk, Model, ModelOptions, NoProgress, analyze};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayDyn, PyArrayMethods, PyReadonlyArray1,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSliceMut};

use crate::arrays::{Array, Rows};
use crate::errors::{of_job, of_model, value_error};
use crate::inputs::InputData;
use crate::options::filled;
use crate::pool;
use crate::work::{Observer, lock, long};

/// Robot: bodies, joints, loops and rotors, with their inertial parameters. Immutable.
#[pyclass(frozen, module = "inertial._inertial")]
pub struct Mechanism {
    /// Name for messages; without a text, the file or the builtin model.
    #[pyo3(get)]
    label: String,
    /// Text of the model; `None` if the label is its location.
    #[pyo3(get)]
    text: Option<String>,
    /// Keyword arguments used to build the mechanism.
    given: Py<PyDict>,
    model: Arc<Model>,
    inverse: InverseDynamics,
    /// Working memory of single configurations, reused by every call.
    scratch: Mutex<Scratch>,
}

#[pymethods]
impl Mechanism {
    /// Builds a mechanism from a model's text, or from the file or builtin model named by the label; `given` are the model
    /// options: `base`, `gravity`, `rotors` and others.
    #[new]
    fn new(label: String, text: Option<String>, given: Bound<'_, PyDict>) -> PyResult<Self> {
        let options: ModelOptions = filled(&given)?;
        let texts: HashMap<_, _> = text.iter().map(|text| (label.clone(), text.clone())).collect();
        let model = Model::load(&label, &options, &InputData::of_texts(texts)).map_err(|e| of_model(&e))?;
        let inverse = InverseDynamics::new(&model.mechanism);
        let scratch = Mutex::new(inverse.scratch());
        Ok(Self { label, text, given: given.unbind(), model: Arc::new(model), inverse, scratch })
    }

    fn __reduce__(
        slf: Bound<'_, Self>,
    ) -> (Bound<'_, pyo3::types::PyType>, (String, Option<String>, Py<PyDict>)) {
        let own = slf.get();
        (slf.get_type(), (own.label.clone(), own.text.clone(), own.given.clone_ref(slf.py())))
    }

    /// Keyword arguments used to build the mechanism.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.given.bind(py).copy()
    }

    #[getter]
    fn name(&self) -> &str {
        self.built().name()
    }

    /// Number of position coordinates of the tree.
    #[getter]
    fn nq(&self) -> usize {
        self.built().nq()
    }

    /// Number of velocity coordinates of the tree.
    #[getter]
    fn nv(&self) -> usize {
        self.built().nv()
    }

    /// Number of loops.
    #[getter]
    fn loops(&self) -> usize {
        self.built().loops().len()
    }

    /// Names of the bodies, in the order of their parameters.
    #[getter]
    fn bodies(&self) -> Vec<&str> {
        self.built().bodies().iter().map(|b| b.name.as_str()).collect()
    }

    /// Names of the velocity coordinates: rows of the regressor.
    #[getter]
    fn coordinate_names(&self) -> PyResult<Vec<String>> {
        match self.closed()? {
            None => Ok(self.built().velocity_names()),
            Some(closed) => Ok(closed.independent_names()),
        }
    }

    /// Names of the inertial parameters: columns of the regressor.
    #[getter]
    fn parameter_names(&self) -> Vec<String> {
        self.built().parameter_names()
    }

    /// Returns the names of the base parameters that `analyze` finds by default.
    fn base_parameter_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let model = self.model();
        let work = move || {
            let context = Context { inputs: &Disk::default(), progress: &NoProgress };
            analyze::run(&model, &analyze::Options::default(), &context).map(|outcome| outcome.analysis)
        };
        let analysis = long(py, &Observer::new(), None, work)?.map_err(|e| of_job(&e))?;
        Ok(analysis.base_parameters.into_iter().map(|parameter| parameter.name).collect())
    }

    /// Names of the moving joints.
    #[getter]
    fn joint_names(&self) -> Vec<&str> {
        self.built().joints().iter().map(|j| j.name.as_str()).collect()
    }

    /// Gravity (m/s², world frame).
    #[getter]
    fn gravity<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.built().gravity().as_slice().to_vec().into_pyarray(py)
    }

    /// Limits of the joints by name: lower, upper, velocity, effort; infinite if the model has none.
    #[getter]
    fn limits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for joint in self.built().joints() {
            let limits = &joint.limits;
            let values = PyDict::new(py);
            values.set_item("lower", limits.lower)?;
            values.set_item("upper", limits.upper)?;
            values.set_item("velocity", limits.velocity)?;
            values.set_item("effort", limits.effort)?;
            out.set_item(&joint.name, values)?;
        }
        Ok(out)
    }

    /// Inertial parameters of the model.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.built().parameters().into_pyarray(py)
    }

    /// Returns the bodies of the tree as JSON: parent, placement, joint with its free modes (angular first), limits and friction, and
    /// parameters; a missing limit is null.
    fn tree(&self) -> String {
        let body = |body: &model::Body| {
            let joint = &self.built().joints()[body.joint];
            let rotor = matches!(body.kind, model::BodyKind::Rotor | model::BodyKind::SymmetricRotor);
            let limits = joint.limits;
            let modes: Vec<Vec<f64>> = body
                .joint_type
                .free_modes()
                .iter()
                .map(|m| m.angular.iter().chain(m.linear.iter()).copied().collect())
                .collect();
            let rotation = body.placement.rotation.transpose();
            let rows: Vec<&[f64]> = rotation.as_slice().chunks(3).collect();
            serde_json::json!({
                "name": body.name,
                "joint": joint.name,
                "type": body.joint_type.name(),
                "limits": [limits.lower, limits.upper, limits.velocity, limits.effort],
                "friction": [joint.dynamics.damping, joint.dynamics.friction],
                "parent": body.parent,
                "rotation": rows,
                "translation": body.placement.translation.as_slice(),
                "modes": modes,
                "rotor": rotor,
                "follows": joint.follows.is_some(),
                "parameters": body.inertia.parameters().as_slice(),
            })
        };
        let bodies: Vec<_> = self.built().bodies().iter().map(body).collect();
        let gravity = self.built().gravity();
        let armature = self.built().armature();
        serde_json::json!({"gravity": gravity.as_slice(), "armature": armature, "bodies": bodies}).to_string()
    }

    /// Computes the forces of a motion: one sample or rows of samples.
    fn rnea<'py>(
        &self,
        py: Python<'py>,
        q: Array<'py>,
        v: Array<'py>,
        a: Array<'py>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        if !self.built().loops().is_empty() {
            return Err(value_error(
                "rnea needs a robot without loops; with loops multiply the regressor by the parameters",
            ));
        }
        let shape = v.shape().to_vec();
        let (nq, nv) = (self.built().nq(), self.built().nv());
        let rows = Rows::new(["q", "v", "a"], [q, v, a], [nq, nv, nv])?;
        let [q, v, a] = rows.slices()?;
        let mut tau = vec![0.0; rows.count * nv];
        py.detach(|| {
            let samples = Samples::new(&self.inverse, rows.count, q, v, a)?;
            self.inverse.rnea_batch(&mut self.inverse.scratch(), &samples, &mut tau)
        })
        .map_err(value_error)?;
        tau.into_pyarray(py).reshape(shape)
    }

    /// Computes the regressor of one configuration of a tree: coordinates by parameters. Returns `None` if an argument is not a
    /// contiguous vector of 64-bit floats of the right length, or if the mechanism has loops; the caller then converts the arguments and
    /// uses the general method.
    fn regressor_of_one<'py>(
        &self,
        py: Python<'py>,
        q: &Bound<'py, PyAny>,
        v: &Bound<'py, PyAny>,
        a: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        if !self.built().loops().is_empty() {
            return Ok(None);
        }
        let vector = |x: &Bound<'py, PyAny>| x.extract::<PyReadonlyArray1<'py, f64>>().ok();
        let (Some(q), Some(v), Some(a)) = (vector(q), vector(v), vector(a)) else { return Ok(None) };
        let (Ok(q), Ok(v), Ok(a)) = (q.as_slice(), v.as_slice(), a.as_slice()) else { return Ok(None) };
        let (nq, nv) = (self.built().nq(), self.built().nv());
        if q.len() != nq || v.len() != nv || a.len() != nv {
            return Ok(None);
        }
        let mut scratch = lock(&self.scratch);
        let y = self.inverse.torque_regressor(&mut scratch, q, v, a).map_err(value_error)?;
        PyArray1::from_slice(py, y).reshape([nv, self.built().parameter_count()]).map(Some)
    }

    /// Computes the regressor of a scalar or vector quantity of each sample (rows by parameters): `momentum` (6 rows, linear first, in
    /// the base frame), `kinetic-energy`, `potential-energy` (1 row each) or `gravity` (one row per coordinate).
    fn quantity_regressors<'py>(
        &self,
        py: Python<'py>,
        quantity: &str,
        q: Array<'py>,
        v: Array<'py>,
    ) -> PyResult<Bound<'py, PyArray3<f64>>> {
        if !self.built().loops().is_empty() {
            return Err(value_error(format!(
                "the regressor of {quantity} is not available for robots with loops"
            )));
        }
        let (nq, nv, columns) = (self.built().nq(), self.built().nv(), self.built().parameter_count());
        let height = match quantity {
            "momentum" => 6,
            "kinetic-energy" | "potential-energy" => 1,
            "gravity" => nv,
            other => return Err(value_error(format!("there is no regressor of {other}"))),
        };
        let rows = Rows::new(["q", "v"], [q, v], [nq, nv])?;
        let ([q, v], count) = (rows.slices()?, rows.count);
        let mut out = vec![0.0; count * height * columns];
        py.detach(|| -> inertial::Result<()> {
            let mut workspace = Workspace::new(self.built());
            for (k, out) in out.chunks_exact_mut((height * columns).max(1)).enumerate() {
                let (q, v) = (&q[k * nq..(k + 1) * nq], &v[k * nv..(k + 1) * nv]);
                match quantity {
                    "momentum" => {
                        momentum_regressor(self.built(), &mut workspace, q, v, Frame::Base, out)?;
                    }
                    "kinetic-energy" => kinetic_energy_regressor(self.built(), &mut workspace, q, v, out)?,
                    "potential-energy" => potential_energy_regressor(self.built(), &mut workspace, q, out)?,
                    _ => gravity_regressor(self.built(), &mut workspace, q, out)?,
                }
            }
            Ok(())
        })
        .map_err(value_error)?;
        out.into_pyarray(py).reshape([count, height, columns])
    }

    /// Computes the regressor of one configuration for the entries of the pseudo-inertias: coordinates by ten per body (rotors included).
    fn tetrahedral_regressor<'py>(
        &self,
        py: Python<'py>,
        q: Vec<f64>,
        v: Vec<f64>,
        a: Vec<f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let mut workspace = Workspace::new(self.built());
        let found = tetrahedral_regressor(self.built(), &mut workspace, &q, &v, &a).map_err(value_error)?;
        let rows: Vec<Vec<f64>> = found.row_iter().map(|r| r.iter().copied().collect()).collect();
        Ok(PyArray2::from_vec2(py, &rows)?)
    }

    /// Returns the entries of the model's pseudo-inertias, which [`tetrahedral_regressor`] multiplies.
    fn pseudo_inertia_entries<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let bodies = self.built().bodies().iter();
        let entries = bodies.flat_map(|b| {
            let ten = pseudo_inertia_entries(&PseudoInertia::from(&b.inertia));
            ten.iter().copied().collect::<Vec<_>>()
        });
        entries.collect::<Vec<f64>>().into_pyarray(py)
    }

    /// Computes the regressors of samples: `count` by coordinates by parameters, stored in `out` if it is given.
    #[pyo3(signature = (q, v, a, out=None))]
    fn regressors<'py>(
        &self,
        py: Python<'py>,
        q: Array<'py>,
        v: Array<'py>,
        a: Array<'py>,
        out: Option<Bound<'py, PyArray3<f64>>>,
    ) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let closed = self.closed()?;
        let (nq, nv) = match &closed {
            None => (self.built().nq(), self.built().nv()),
            Some(closed) => (closed.independent_positions().len(), closed.dof()),
        };
        let rows = Rows::new(["q", "v", "a"], [q, v, a], [nq, nv, nv])?;
        let (motion, count) = (rows.slices()?, rows.count);
        let columns = self.built().parameter_count();
        let fresh = out.is_none();
        let out = out.unwrap_or_else(|| PyArray3::zeros(py, [count, nv, columns], false));
        if out.shape() != [count, nv, columns] {
            let [x, y, z] = [out.shape()[0], out.shape()[1], out.shape()[2]];
            return Err(value_error(format!(
                "out is {x} by {y} by {z}, expected {count} by {nv} by {columns}"
            )));
        }
        {
            let mut target = out.try_readwrite().map_err(value_error)?;
            let target = target.as_slice_mut().map_err(|_| value_error("out is not contiguous"))?;
            let pool = pool::shared(py)?;
            py.detach(|| match &closed {
                None => pool.install(|| tree_regressors(&self.inverse, motion, fresh, target)),
                Some(closed) => {
                    if !fresh {
                        target.fill(0.0);
                    }
                    closed_regressors(closed, motion, count, columns, target)
                }
            })
            .map_err(value_error)?;
        }
        Ok(out)
    }
}

impl Mechanism {
    /// Returns the mechanism itself.
    pub fn built(&self) -> &model::Mechanism {
        &self.model.mechanism
    }

    /// Returns the model from which the mechanism was built.
    pub fn model(&self) -> Arc<Model> {
        Arc::clone(&self.model)
    }

    /// Returns the closed mechanism if there are loops.
    fn closed(&self) -> PyResult<Option<ClosedMechanism<'_>>> {
        if self.built().loops().is_empty() {
            return Ok(None);
        }
        ClosedMechanism::new(self.built()).map(Some).map_err(value_error)
    }
}

/// Number of samples whose regressors are cleared and filled together while they are in cache.
const AT_ONCE: usize = 32;

/// Computes the dense regressors of a tree on all threads; `fresh` memory is already zero.
fn tree_regressors(
    inverse: &InverseDynamics,
    [q, v, a]: [&[f64]; 3],
    fresh: bool,
    out: &mut [f64],
) -> inertial::Result<()> {
    let (nq, nv) = (inverse.nq(), inverse.nv());
    let size = nv * inverse.parameter_count();
    out.par_chunks_mut((AT_ONCE * size).max(1)).enumerate().try_for_each_init(
        || inverse.scratch(),
        |scratch, (k, out)| {
            if !fresh {
                out.fill(0.0);
            }
            let (first, count) = (k * AT_ONCE, out.len() / size);
            let part = |width: usize| first * width..(first + count) * width;
            let samples = Samples::new(inverse, count, &q[part(nq)], &v[part(nv)], &a[part(nv)])?;
            inverse.stacked_regressor_with(scratch, &samples, out)
        },
    )
}

/// Computes the dense regressors in the independent coordinates.
fn closed_regressors(
    closed: &ClosedMechanism<'_>,
    [q, v, a]: [&[f64]; 3],
    count: usize,
    columns: usize,
    out: &mut [f64],
) -> inertial::Result<()> {
    let mut workspace = closed.workspace();
    let mut tree = vec![0.0; count * closed.mechanism().nq()];
    closed.follow(&mut workspace, closed.assembled(), q, &mut tree)?;
    let samples = Samples::closed(closed, count, &tree, v, a)?;
    let size = closed.dof() * columns;
    closed.packed_regressors(&mut workspace, &samples, |chunk| {
        let chunk = chunk.regressors;
        // Four samples are stored side by side.
        for (four, group) in chunk.groups().enumerate() {
            for lane in 0..4.min(chunk.count - 4 * four) {
                let sample = &mut out[(chunk.first + 4 * four + lane) * size..][..size];
                for block in chunk.layout().blocks() {
                    let row = &mut sample[block.row * columns + block.column..][..block.len];
                    row.iter_mut().zip(&group[block.start..]).for_each(|(x, entry)| *x = entry.0[lane]);
                }
            }
        }
    })
}
