//! Bounds on bodies: enclosing ellipsoids and boxes, and ranges of mass and centre of mass.
//!
//! A body inside the ellipsoid `(x − c)ᵀ A (x − c) ≤ 1` satisfies `∫ (1 − (x − c)ᵀ A (x − c)) dm ≥ 0`. This is `tr(P Q) ≥ 0` with
//! `Q = [[−A, A c], [cᵀA, 1 − cᵀA c]]`, which is linear in the parameters. A box is the intersection of one slab per axis. Bounds
//! on the mass and on the centre of mass (`least · m ≤ h ≤ most · m`) are linear too.

use std::collections::BTreeMap;

use nalgebra::{Matrix3, Matrix4, Rotation3, Vector3};
use serde::Deserialize;

use crate::consistency::significant;
use crate::estimation::consistent::prior::sizes;
use crate::mechanism::{BodyKind, Mechanism, Shape};
use crate::optimize::{Inequality, pseudo};
use crate::spatial::{Inertia, PseudoInertia};
use crate::{Error, Place, Result};

/// Radius of the ball that [`Bounds::of_links`] puts around a link, relative to the distance between its joints. Housings extend
/// beyond the joints.
const REACH: f64 = 1.0;

/// Range of values per axis.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Lower limits.
    pub min: [f64; 3],
    /// Upper limits.
    pub max: [f64; 3],
}

/// Ellipsoid in the frame of the body.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ellipsoid {
    /// Centre (m).
    pub centre: [f64; 3],
    /// Semi-axes (m).
    pub semi_axes: [f64; 3],
    /// Roll, pitch and yaw of the principal axes (rad).
    #[serde(default)]
    pub rpy: [f64; 3],
}

/// Bounds on one body.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct BodyBounds {
    /// Minimum and maximum mass (kg).
    pub mass: Option<[f64; 2]>,
    /// Range of the centre of mass (m).
    pub com: Option<Span>,
    /// Box that contains the body (m), aligned with the axes of the body frame.
    #[serde(rename = "box")]
    pub cuboid: Option<Span>,
    /// Ellipsoid that contains the body.
    pub ellipsoid: Option<Ellipsoid>,
}

crate::with_changes!(BodyBounds);

/// Bounds on bodies, by name.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Bounds, by the name of the body.
    #[serde(default)]
    pub bodies: BTreeMap<String, BodyBounds>,
}

impl Bounds {
    /// Parses bounds from TOML, with one table `[bodies.NAME]` per body.
    ///
    /// ```
    /// use inertial::estimation::Bounds;
    /// let bounds = Bounds::from_toml("
    ///     [bodies.link1]
    ///     mass = [0.5, 4.0]
    ///     com = { min = [-0.1, -0.1, 0.0], max = [0.1, 0.1, 0.3] }
    ///     box = { min = [-0.1, -0.1, -0.05], max = [0.1, 0.1, 0.4] }
    ///     ellipsoid = { centre = [0, 0, 0.15], semi_axes = [0.2, 0.2, 0.3] }
    /// ")?;
    /// assert_eq!(bounds.bodies["link1"].mass, Some([0.5, 4.0]));
    /// assert!(Bounds::from_toml("[bodies.link1]\nmass = [2, 1]").is_err());
    /// # Ok::<(), inertial::Error>(())
    /// ```
    pub fn from_toml(text: &str) -> Result<Self> {
        let out: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            Error::syntax(
                Place::line(u32::try_from(line).unwrap_or(u32::MAX), ""),
                error.message().replace('\n', ", "),
            )
        })?;
        for (name, body) in &out.bodies {
            body.check().map_err(|what| Error::InvalidOption(format!("bodies.{name}.{what}")))?;
        }
        Ok(out)
    }

    /// Creates bounds from the geometry of the links: the box around the collision shapes if the description has simple shapes,
    /// else a ball around the midpoint between the joints of the link. The radius of the ball is the distance between the joints.
    pub fn of_links(mechanism: &Mechanism) -> Self {
        let bound = |(i, (size, centre)): (usize, (f64, Vector3<f64>))| {
            let body = &mechanism.bodies()[i];
            let mut out = BodyBounds { cuboid: around_shapes(mechanism, i), ..BodyBounds::default() };
            if out.cuboid.is_none() {
                let (centre, semi_axes) = (centre.into(), [REACH * size; 3]);
                out.ellipsoid = Some(Ellipsoid { centre, semi_axes, rpy: [0.0; 3] });
            }
            (body.kind == BodyKind::Link).then(|| (body.name.clone(), out))
        };
        Self { bodies: sizes(mechanism).into_iter().enumerate().filter_map(bound).collect() }
    }

    /// Returns whether there are no bounds.
    pub fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// Checks that the mechanism has all named bodies.
    pub(crate) fn check(&self, mechanism: &Mechanism) -> Result<()> {
        let links: Vec<&str> = mechanism
            .bodies()
            .iter()
            .filter(|b| matches!(b.kind, BodyKind::Link | BodyKind::Rotor))
            .map(|b| b.name.as_str())
            .collect();
        match self.bodies.keys().find(|name| !links.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(Error::UnknownName(format!(
                "the bounds name a body \"{name}\", expected one of {}",
                links.join(", ")
            ))),
        }
    }
}

/// Returns the box along the axes of the body that contains its collision shapes.
fn around_shapes(mechanism: &Mechanism, body: usize) -> Option<Span> {
    let mut out: Option<Span> = None;
    for shape in mechanism.shapes().iter().filter(|s| s.body == Some(body)) {
        let rotation = shape.pose.rotation;
        let reach: [f64; 3] = std::array::from_fn(|axis| {
            let row = rotation.row(axis);
            match shape.shape {
                Shape::Sphere { radius } => radius,
                // Along an axis, the extent of a disc normal to z is its radius times the sine of the angle between both.
                Shape::Cylinder { radius, length } => {
                    radius * row[0].hypot(row[1]) + 0.5 * length * row[2].abs()
                }
                Shape::Box { size } => (0..3).map(|k| 0.5 * size[k] * row[k].abs()).sum(),
            }
        });
        let span = out.get_or_insert(Span { min: [f64::INFINITY; 3], max: [f64::NEG_INFINITY; 3] });
        for axis in 0..3 {
            let centre = shape.pose.translation[axis];
            span.min[axis] = span.min[axis].min(centre - reach[axis]);
            span.max[axis] = span.max[axis].max(centre + reach[axis]);
        }
    }
    // A shape of zero size cannot contain a body.
    out.filter(|span| (0..3).all(|k| span.min[k] < span.max[k]))
}

impl BodyBounds {
    fn check(&self) -> Result<(), String> {
        let span = |what: &str, least: f64, most: f64| {
            if least < most && least.is_finite() && most.is_finite() {
                Ok(())
            } else {
                Err(format!("{what}: {least} to {most} is not a range, expected the smaller value first"))
            }
        };
        if let Some([least, most]) = self.mass {
            span("mass", least, most)?;
            if least < 0.0 {
                return Err(format!("mass: {least} kg is negative"));
            }
        }
        for (what, range) in [("com", &self.com), ("box", &self.cuboid)] {
            for (least, most) in range.iter().flat_map(|r| r.min.into_iter().zip(r.max)) {
                span(what, least, most)?;
            }
        }
        if let Some(e) = &self.ellipsoid
            && !(e.semi_axes.iter().all(|&a| a > 0.0 && a.is_finite())
                && e.centre.iter().chain(&e.rpy).all(|x| x.is_finite()))
        {
            return Err("ellipsoid: expected finite numbers and semi_axes above zero".into());
        }
        Ok(())
    }

    /// Returns the centre and the matrix `A` of the ellipsoid and of each slab of the box.
    fn shapes(&self) -> Vec<(Vector3<f64>, Matrix3<f64>)> {
        let mut out = Vec::new();
        if let Some(e) = &self.ellipsoid {
            let axes = Rotation3::from_euler_angles(e.rpy[0], e.rpy[1], e.rpy[2]);
            let sizes = Vector3::from(e.semi_axes).map(|a| a.powi(-2));
            let form = axes.matrix() * Matrix3::from_diagonal(&sizes) * axes.matrix().transpose();
            out.push((Vector3::from(e.centre), form));
        }
        if let Some(b) = &self.cuboid {
            for i in 0..3 {
                let mut form = Matrix3::zeros();
                form[(i, i)] = (0.5 * (b.max[i] - b.min[i])).powi(-2);
                out.push(((Vector3::from(b.min) + Vector3::from(b.max)) * 0.5, form));
            }
        }
        out
    }

    /// Returns the inequalities of a body whose ten variables start at `offset`.
    pub(crate) fn inequalities(&self, offset: usize) -> Vec<Inequality> {
        let mut out = Vec::new();
        for (centre, form) in self.shapes() {
            let pull = form * centre;
            let mut q = Matrix4::zeros();
            q.fixed_view_mut::<3, 3>(0, 0).copy_from(&-form);
            q.fixed_view_mut::<3, 1>(0, 3).copy_from(&pull);
            q.fixed_view_mut::<1, 3>(3, 0).copy_from(&pull.transpose());
            q[(3, 3)] = 1.0 - centre.dot(&pull);
            let form = pseudo::adjoint(&q);
            let coefficients = form.iter().enumerate().map(|(k, &a)| (offset + k, a));
            out.push(Inequality {
                coefficients: coefficients.filter(|(_, a)| *a != 0.0).collect(),
                least: 0.0,
            });
        }
        if let Some([least, most]) = self.mass {
            out.push(Inequality { coefficients: vec![(offset, 1.0)], least });
            out.push(Inequality { coefficients: vec![(offset, -1.0)], least: -most });
        }
        if let Some(com) = &self.com {
            for i in 0..3 {
                let of = |sign: f64, bound: f64| Inequality {
                    coefficients: vec![(offset + 1 + i, sign), (offset, -sign * bound)],
                    least: 0.0,
                };
                out.push(of(1.0, com.min[i]));
                out.push(of(-1.0, com.max[i]));
            }
        }
        out
    }

    /// Returns a body strictly inside the bounds and close to `body`: moves mass and centre of mass inside and reduces the second
    /// moments until they fit.
    pub(crate) fn inside(&self, name: &str, body: &Inertia<f64>) -> Result<Inertia<f64>> {
        let inequalities = self.inequalities(0);
        let fits = |b: &Inertia<f64>| {
            let x = nalgebra::DVector::from_column_slice(b.parameters().as_slice());
            inequalities.iter().all(|i| i.slack(&x) > 0.0)
        };
        if fits(body) {
            return Ok(*body);
        }
        let mass = self.mass.map_or(body.mass, |[least, most]| {
            let margin = 0.01 * (most - least);
            body.mass.clamp(least + margin, most - margin)
        });
        let com = self.com_inside(body.com().unwrap_or_default());
        // Central second moments of the body, scaled down step by step.
        let central = Inertia { first_moment: Vector3::zeros(), rotational: body.about_com(), ..*body };
        let moments = PseudoInertia::from(&central).0.fixed_view::<3, 3>(0, 0).into_owned();
        let per_mass = moments / body.mass;
        for k in 0..40 {
            let spread = per_mass * (mass * 0.5f64.powi(k));
            let shape = Matrix3::from_diagonal_element(spread.trace()) - spread;
            let candidate = Inertia::from_com(mass, com, shape);
            if fits(&candidate) {
                return Ok(candidate);
            }
        }
        Err(Error::Infeasible(format!(
            "no body is strictly within the bounds of {name}: its centre of mass would be at {}",
            com.iter().map(|&x| significant(x, 3)).collect::<Vec<_>>().join(" ")
        )))
    }

    /// Returns a point inside all shapes and inside the range of centres of mass, found by coordinate descent.
    fn com_inside(&self, start: Vector3<f64>) -> Vector3<f64> {
        let limit = |i: usize, x: f64| {
            self.com.map_or(x, |span| {
                let margin = 0.01 * (span.max[i] - span.min[i]);
                x.clamp(span.min[i] + margin, span.max[i] - margin)
            })
        };
        let shapes = self.shapes();
        let mut com = Vector3::from_fn(|i, _| limit(i, start[i]));
        // The sum of the quadratic forms is convex: minimize it along one axis after the other.
        let total: Matrix3<f64> = shapes.iter().map(|(_, a)| a).sum();
        let pull: Vector3<f64> = shapes.iter().map(|(c, a)| a * c).sum();
        let strictly =
            |com: &Vector3<f64>| shapes.iter().all(|(c, a)| (com - c).dot(&(a * (com - c))) < 0.98);
        for _ in 0..100 {
            if strictly(&com) {
                break;
            }
            for i in (0..3).filter(|&i| total[(i, i)] > 0.0) {
                let rest = pull[i] - (total.row(i) * com)[0] + total[(i, i)] * com[i];
                com[i] = limit(i, rest / total[(i, i)]);
            }
        }
        com
    }
}
