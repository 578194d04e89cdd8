//! Projective geometric algebra for Python: points, lines, planes and motors of [`inertial::spatial::pga`].

use inertial::spatial::pga::{Line, Motor, Plane, Point};
use nalgebra::Vector3;
use numpy::PyArray2;
use pyo3::prelude::*;

use crate::errors::value_error;

/// Point in homogeneous coordinates; with weight zero it is a direction, a point at infinity.
#[pyclass(frozen, eq, from_py_object, module = "inertial.pga", name = "Point")]
#[derive(Clone, PartialEq)]
pub struct PyPoint(Point);

/// Line in Plücker coordinates, or any bivector: a twist or a wrench.
#[pyclass(frozen, eq, from_py_object, module = "inertial.pga", name = "Line")]
#[derive(Clone, PartialEq)]
pub struct PyLine(Line);

/// Plane `normal . x + offset = 0`.
#[pyclass(frozen, eq, from_py_object, module = "inertial.pga", name = "Plane")]
#[derive(Clone, PartialEq)]
pub struct PyPlane(Plane);

/// Rigid displacement. The left factor of a product acts first.
#[pyclass(frozen, eq, skip_from_py_object, module = "inertial.pga", name = "Motor")]
#[derive(Clone, PartialEq)]
pub struct PyMotor(Motor);

/// Element that a motor transforms.
#[derive(FromPyObject)]
enum Moved {
    Point(PyPoint),
    Line(PyLine),
    Plane(PyPlane),
}

/// Element that is joined with a point or a line.
#[derive(FromPyObject)]
enum Joined {
    Point(PyPoint),
    Line(PyLine),
}

fn text(v: &Vector3<f64>) -> String {
    format!("[{}, {}, {}]", v.x, v.y, v.z)
}

#[pymethods]
impl PyPoint {
    #[new]
    #[pyo3(signature = (position, weight=1.0))]
    fn new(position: [f64; 3], weight: f64) -> Self {
        Self(Point { position: position.into(), weight })
    }

    /// Coordinates multiplied by the weight.
    #[getter]
    fn position(&self) -> [f64; 3] {
        self.0.position.into()
    }

    #[getter]
    fn weight(&self) -> f64 {
        self.0.weight
    }

    /// Returns the line through two points, or the plane through a point and a line.
    fn join(&self, py: Python<'_>, other: Joined) -> PyResult<Py<PyAny>> {
        match other {
            Joined::Point(other) => Ok(Py::new(py, PyLine(self.0.join(&other.0)))?.into_any()),
            Joined::Line(line) => Ok(Py::new(py, PyPlane(line.0.join(&self.0)))?.into_any()),
        }
    }

    /// Returns the velocity of the point carried by a twist: a point at infinity.
    fn velocity(&self, twist: &PyLine) -> Self {
        Self(self.0.velocity(&twist.0))
    }

    fn __repr__(&self) -> String {
        format!("Point({}, weight={})", text(&self.0.position), self.0.weight)
    }
}

#[pymethods]
impl PyLine {
    #[new]
    fn new(direction: [f64; 3], moment: [f64; 3]) -> Self {
        Self(Line { direction: direction.into(), moment: moment.into() })
    }

    /// Creates the line through a point along a direction.
    #[staticmethod]
    fn through(point: [f64; 3], direction: [f64; 3]) -> Self {
        Self(Line::through(&point.into(), direction.into()))
    }

    #[getter]
    fn direction(&self) -> [f64; 3] {
        self.0.direction.into()
    }

    #[getter]
    fn moment(&self) -> [f64; 3] {
        self.0.moment.into()
    }

    /// Returns the power of a wrench along a twist; zero for two lines that meet.
    fn wedge(&self, other: &Self) -> f64 {
        self.0.wedge(&other.0)
    }

    /// Returns the plane through the line and a point.
    fn join(&self, point: &PyPoint) -> PyPlane {
        PyPlane(self.0.join(&point.0))
    }

    /// Returns the commutator product of two bivectors.
    fn commutator(&self, other: &Self) -> Self {
        Self(self.0.commutator(&other.0))
    }

    fn __repr__(&self) -> String {
        format!("Line({}, {})", text(&self.0.direction), text(&self.0.moment))
    }
}

#[pymethods]
impl PyPlane {
    #[new]
    fn new(normal: [f64; 3], offset: f64) -> Self {
        Self(Plane { normal: normal.into(), offset })
    }

    #[getter]
    fn normal(&self) -> [f64; 3] {
        self.0.normal.into()
    }

    #[getter]
    fn offset(&self) -> f64 {
        self.0.offset
    }

    /// Returns the line of intersection of two planes.
    fn meet(&self, other: &Self) -> PyLine {
        PyLine(self.0.meet(&other.0))
    }

    /// Returns the point of intersection of the plane and a line.
    fn meet_line(&self, line: &PyLine) -> PyPoint {
        PyPoint(self.0.meet_line(&line.0))
    }

    /// Returns the incidence of the plane and a point, which is zero if the point lies on the plane.
    fn incidence(&self, point: &PyPoint) -> f64 {
        self.0.incidence(&point.0)
    }

    fn __repr__(&self) -> String {
        format!("Plane({}, {})", text(&self.0.normal), self.0.offset)
    }
}

#[pymethods]
impl PyMotor {
    /// Returns the displacement of a constant twist after unit time.
    #[staticmethod]
    fn exp(twist: &PyLine) -> Self {
        Self(Motor::exp(&twist.0))
    }

    /// Returns the identity displacement.
    #[staticmethod]
    fn identity() -> Self {
        Self(Motor::identity())
    }

    /// Returns the twist whose `exp` is this motor.
    fn log(&self) -> PyLine {
        PyLine(self.0.log())
    }

    /// Returns the inverse displacement.
    fn reverse(&self) -> Self {
        Self(self.0.reverse())
    }

    /// Returns the point, line or plane after the displacement.
    fn transform(&self, py: Python<'_>, element: Moved) -> PyResult<Py<PyAny>> {
        Ok(match element {
            Moved::Point(x) => Py::new(py, PyPoint(self.0.transform(&x.0)))?.into_any(),
            Moved::Line(x) => Py::new(py, PyLine(self.0.transform(&x.0)))?.into_any(),
            Moved::Plane(x) => Py::new(py, PyPlane(self.0.transform(&x.0)))?.into_any(),
        })
    }

    /// Returns the homogeneous 4 by 4 matrix.
    fn matrix<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let pose = self.0.to_pose().ok_or_else(|| value_error("this motor has no inverse"))?;
        let rows: Vec<Vec<f64>> = pose.to_matrix().row_iter().map(|r| r.iter().copied().collect()).collect();
        Ok(PyArray2::from_vec2(py, &rows)?)
    }

    fn __mul__(&self, other: &Self) -> Self {
        Self(self.0 * other.0)
    }

    fn __repr__(&self) -> String {
        let Motor { scalar, bivector, pseudoscalar } = &self.0;
        format!(
            "Motor({scalar}, Line({}, {}), {pseudoscalar})",
            text(&bivector.direction),
            text(&bivector.moment)
        )
    }
}
