//! Poses of frames: `pos` with one of `quat`, `axisangle`, `euler`, `xyaxes`, `zaxis`.

use nalgebra::{Matrix3, Vector3};

use super::super::xml::Element;
use super::compiler::Settings;
use super::defaults::Layered;
use super::schema;
use crate::Result;
use crate::mechanism::rotation_about;
use crate::spatial::{Pose, rotation_from_quaternion};

/// Returns the pose of an element in its parent frame.
pub(super) fn pose(element: &Layered<'_>, settings: &Settings) -> Result<Pose<f64>> {
    let position = element.numbers::<3>("pos")?.unwrap_or_default();
    let rotation = rotation(element, settings)?.unwrap_or_else(Matrix3::identity);
    Ok(Pose::new(rotation, position.into()))
}

/// Returns the rotation given by an element or its class, if any.
pub(super) fn rotation(element: &Layered<'_>, settings: &Settings) -> Result<Option<Matrix3<f64>>> {
    let names = schema::orientation_attributes();
    let Some(layer) = element.with_any(names) else { return Ok(None) };
    if names.iter().filter(|n| layer.attribute(n).is_some()).count() > 1 {
        return Err(layer.error(format!("it may have only one of the attributes {}", names.join(", "))));
    }
    if let Some(q) = layer.numbers::<4>("quat")? {
        return quaternion(layer, q).map(Some);
    }
    if let Some([x, y, z, angle]) = layer.numbers("axisangle")? {
        let axis = direction(layer, "axisangle", [x, y, z])?;
        return Ok(Some(rotation_about(&axis, angle * settings.angle)));
    }
    if let Some(angles) = layer.numbers::<3>("euler")? {
        let mut out = Matrix3::identity();
        for (step, angle) in settings.euler.iter().zip(angles) {
            let mut axis = Vector3::zeros();
            axis[step.axis] = 1.0;
            let turn = rotation_about(&axis, angle * settings.angle);
            out = if step.intrinsic { out * turn } else { turn * out };
        }
        return Ok(Some(out));
    }
    if let Some([a, b, c, d, e, f]) = layer.numbers("xyaxes")? {
        let x = direction(layer, "xyaxes", [a, b, c])?;
        let y = Vector3::new(d, e, f);
        let y = direction(layer, "xyaxes", (y - x * x.dot(&y)).into())?;
        return Ok(Some(Matrix3::from_columns(&[x, y, x.cross(&y)])));
    }
    let z = layer.numbers::<3>("zaxis")?.unwrap_or([0.0, 0.0, 1.0]);
    Ok(Some(z_towards(&direction(layer, "zaxis", z)?)))
}

/// Returns the rotation of a quaternion `w x y z` of any length.
pub(super) fn quaternion(element: Element<'_>, [w, x, y, z]: [f64; 4]) -> Result<Matrix3<f64>> {
    // Scaling first: the squares of tiny or huge numbers would leave the range of f64.
    let scale = [w, x, y, z].into_iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    let rotation = rotation_from_quaternion(x / scale, y / scale, z / scale, w / scale);
    rotation
        .filter(|_| scale > 0.0)
        .ok_or_else(|| element.error("a quaternion of length zero is not a rotation"))
}

/// Returns the smallest rotation that turns z to the unit vector `axis`.
pub(super) fn z_towards(axis: &Vector3<f64>) -> Matrix3<f64> {
    let normal = Vector3::z().cross(axis);
    let sine = normal.norm();
    if sine > 1e-14 {
        rotation_about(&(normal / sine), sine.atan2(axis.z))
    } else if axis.z > 0.0 {
        Matrix3::identity()
    } else {
        rotation_about(&Vector3::x(), std::f64::consts::PI)
    }
}

/// Returns the unit vector in the given direction.
pub(super) fn direction(element: Element<'_>, name: &str, v: [f64; 3]) -> Result<Vector3<f64>> {
    Vector3::from(v)
        .try_normalize(1e-14)
        .ok_or_else(|| element.error(format!("{name} has a direction without length")))
}
