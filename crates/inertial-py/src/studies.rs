//! Studies of the papers, as functions of Python.

use inertial_app::studies::{leg_on_bench, sampled_rank, slow_motion, space_robot};
use pyo3::prelude::*;
use serde::Serialize;

use crate::errors::of_job;
use crate::mechanism::Mechanism;
use crate::outcomes::to_python;
use crate::work::{Observer, long};

/// Runs a study on a separate thread.
fn of<T: Serialize + Send + 'static>(
    py: Python<'_>,
    study: impl FnOnce() -> inertial_app::Result<T> + Send + 'static,
) -> PyResult<Bound<'_, PyAny>> {
    let found = long(py, &Observer::new(), None, study)?.map_err(|e| of_job(&e))?;
    to_python(py, &found)
}

/// Compares ranks of sampled regressors with the proved rank.
#[pyfunction(name = "sampled_rank")]
pub fn ranks<'py>(
    py: Python<'py>,
    robot: &Mechanism,
    samples: usize,
    seed: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let model = robot.model();
    of(py, move || sampled_rank::run(&model.mechanism, samples, seed))
}

/// Compares predictions of estimates from a free and from a fixed torso.
#[pyfunction(name = "leg_on_bench")]
pub fn leg(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    of(py, leg_on_bench::run)
}

/// Estimates a body from motions of different speeds.
#[pyfunction(name = "slow_motion")]
pub fn slow(py: Python<'_>, seed: u64) -> PyResult<Bound<'_, PyAny>> {
    of(py, move || slow_motion::study(seed))
}

/// Identifies the free-flying robot with two arms.
#[pyfunction(name = "space_robot")]
pub fn flight(py: Python<'_>, designs: bool) -> PyResult<Bound<'_, PyAny>> {
    of(py, move || space_robot::run(designs))
}
