//! Checks of single numbers, axes, types and poses.

use nalgebra::{Matrix3, Vector3};

use crate::mechanism::{JointSpec, JointType};
use crate::spatial::Pose;
use crate::{Error, Place, Result};

/// Largest accepted deviation of a rotation from orthogonality; accepted rotations are made orthogonal.
const ROTATION_TOLERANCE: f64 = 1e-3;

pub(super) fn place(line: Option<u32>, element: String) -> Place {
    Place { line, element }
}

pub(super) fn finite(element: &str, line: Option<u32>, values: &[f64]) -> Result<()> {
    match values.iter().find(|x| !x.is_finite()) {
        None => Ok(()),
        Some(x) => Err(Error::model(place(line, element.to_owned()), format!("{x} is not a finite number"))),
    }
}

pub(super) fn check_numbers(joint: &JointSpec) -> Result<()> {
    let (l, d) = (&joint.limits, &joint.dynamics);
    let element = format!("joint \"{}\"", joint.name);
    finite(&element, joint.line, &[d.damping, d.friction, d.armature, d.stiffness, d.rest])?;
    if let Some(mimic) = &joint.mimic {
        finite(&element, joint.line, &[mimic.offset])?;
        for (_, ratio) in &mimic.leaders {
            finite(&element, joint.line, &[*ratio])?;
        }
    }
    if [l.lower, l.upper, l.velocity, l.effort].iter().any(|x| x.is_nan()) {
        return Err(Error::model(place(joint.line, element), "a limit is not a number"));
    }
    Ok(())
}

pub(super) fn checked_axis(axis: &Vector3<f64>, here: Place) -> Result<Vector3<f64>> {
    finite(&here.element, here.line, axis.as_slice())?;
    // Leave exact unit axes untouched, so that their zeros and ones stay exact.
    if (axis.norm_squared() - 1.0).abs() < 4.0 * f64::EPSILON {
        return Ok(*axis);
    }
    // Normalizes in two steps, so that no square overflows.
    let largest = axis.amax();
    if largest > 1e-12 {
        Ok((axis / largest).normalize())
    } else {
        Err(Error::model(here, "its axis has no length"))
    }
}

pub(super) fn checked_type(joint_type: &JointType, here: Place) -> Result<JointType> {
    Ok(match *joint_type {
        JointType::Revolute { axis } => JointType::Revolute { axis: checked_axis(&axis, here)? },
        JointType::Prismatic { axis } => JointType::Prismatic { axis: checked_axis(&axis, here)? },
        JointType::Helical { axis, pitch } => {
            finite(&here.element, here.line, &[pitch])?;
            JointType::Helical { axis: checked_axis(&axis, here)?, pitch }
        }
        JointType::Cylindrical { axis } => JointType::Cylindrical { axis: checked_axis(&axis, here)? },
        JointType::Planar { normal } => JointType::Planar { normal: checked_axis(&normal, here)? },
        JointType::Universal { axes: [a, b] } => {
            let axes = [checked_axis(&a, here.clone())?, checked_axis(&b, here.clone())?];
            if axes[0].cross(&axes[1]).norm() < 1e-9 {
                return Err(Error::model(here, "the two axes of a universal joint must not be parallel"));
            }
            JointType::Universal { axes }
        }
        other => other,
    })
}

/// Returns a pose with an orthogonal, right-handed rotation; a pose that already has one is unchanged.
pub(super) fn checked_pose(pose: &Pose<f64>, here: Place) -> Result<Pose<f64>> {
    finite(&here.element, here.line, pose.translation.as_slice())?;
    finite(&here.element, here.line, pose.rotation.as_slice())?;
    let mut r = pose.rotation;
    let defect = |r: &Matrix3<f64>| (r.transpose() * r - Matrix3::identity()).amax();
    if defect(&r) > ROTATION_TOLERANCE || r.determinant() < 0.0 {
        return Err(Error::model(here, "its rotation is not a right-handed orthogonal matrix"));
    }
    // Newton's iteration to the nearest orthogonal matrix, with quadratic convergence within the tolerance above.
    while defect(&r) > 1e-14 {
        let next = r * 1.5 - r * r.transpose() * r * 0.5;
        if defect(&next) >= defect(&r) {
            break;
        }
        r = next;
    }
    Ok(Pose::new(r, pose.translation))
}
