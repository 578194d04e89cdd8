//! Loads in the formats of robot controllers.

use inertial::nalgebra::{Matrix3, SymmetricEigen, Vector3};
use inertial::spatial::Inertia;

use super::attached::Load;
use crate::{Error, Result};

/// Formats a number with up to 15 digits, which removes the rounding error of the shift to the centre of mass.
pub(super) fn number(x: f64) -> String {
    let rounded: f64 = format!("{x:.14e}").parse().unwrap_or(x);
    // Adding zero turns −0 into 0.
    format!("{:?}", rounded + 0.0)
}

/// Formats numbers, separated by commas.
pub(super) fn numbers(x: impl IntoIterator<Item = f64>) -> String {
    x.into_iter().map(number).collect::<Vec<_>>().join(", ")
}

/// Returns mass, centre of mass and the tensor about it. Entries that are rounding errors of the shift to the centre of mass become zero.
pub(super) fn central(inertia: &Inertia<f64>) -> (f64, Vector3<f64>, Matrix3<f64>) {
    let rounding = 4.0 * f64::EPSILON * inertia.rotational.amax();
    let tensor = inertia.about_com().map(|x| if x.abs() <= rounding { 0.0 } else { x });
    (inertia.mass, inertia.com().unwrap_or_default(), tensor)
}

/// Returns the diagonal entries, then xy, xz and yz.
pub(super) fn diagonal_first(tensor: &Matrix3<f64>) -> [f64; 6] {
    [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)].map(|at| tensor[at])
}

/// Returns statements in `URScript`.
pub(super) fn universal_robots(load: &Load) -> String {
    let (mass, com, tensor) = central(&load.inertia);
    let (mass, com, tensor) = (number(mass), numbers(com.iter().copied()), numbers(diagonal_first(&tensor)));
    let [links, frame] = load.lines("The controller expects the frame of the tool flange.");
    format!(
        "# {links}\n# {frame}\n\
         # Units: kg, m, kg m2 about the centre of mass (Ixx, Iyy, Izz, Ixy, Ixz, Iyz).\n\
         # Controllers without set_target_payload use only the first statement.\n\
         set_payload({mass}, [{com}])\nset_target_payload({mass}, [{com}], [{tensor}])\n"
    )
}

/// Returns a call of libfranka.
pub(super) fn franka(load: &Load) -> String {
    let (mass, com, tensor) = central(&load.inertia);
    let [links, frame] = load.lines("The controller expects the frame of the flange.");
    format!(
        "// {links}\n// {frame}\n// Units: kg, m, kg m2 about the centre of mass, column by column.\n\
         robot.setLoad({}, {{{{{}}}}}, {{{{{}}}}});\n",
        number(mass),
        numbers(com.iter().copied()),
        numbers(tensor.iter().copied())
    )
}

/// Returns a file for the end effector in Franka Desk, at the flange.
pub(super) fn franka_desk(load: &Load) -> String {
    let (mass, com, tensor) = central(&load.inertia);
    let identity = inertial::nalgebra::Matrix4::<f64>::identity();
    format!(
        "{{\n  \"mass\": {},\n  \"centerOfMass\": [{}],\n  \"inertia\": [{}],\n  \"transformation\": [{}]\n}}\n",
        number(mass),
        numbers(com.iter().copied()),
        numbers(tensor.iter().copied()),
        numbers(identity.iter().copied())
    )
}

/// Returns the load data for KUKA: lengths in mm, angles in degrees, moments about the principal axes.
pub(super) fn kuka(load: &Load) -> String {
    let (mass, com, tensor) = central(&load.inertia);
    let (moments, angles) = principal(&tensor);
    let [x, y, z] = <[f64; 3]>::from(com * 1e3).map(number);
    let [a, b, c] = angles.map(|angle| number(angle.to_degrees()));
    let [jx, jy, jz] = <[f64; 3]>::from(moments).map(number);
    let [links, frame] = load.lines("The controller expects the frame of the flange.");
    format!(
        "; {links}\n; {frame}\n; Units: kg, mm, degrees, kg m2 about the principal axes.\n\
         LOAD_DATA[1]={{M {},CM {{X {x},Y {y},Z {z},A {a},B {b},C {c}}},J {{X {jx},Y {jy},Z {jz}}}}}\n",
        number(mass)
    )
}

/// Returns the principal moments, and the angles A (about z), B (about the new y) and C (about the new x) of their
/// axes. The order and signs of the axes are chosen nearest to the axes of the frame.
fn principal(tensor: &Matrix3<f64>) -> (Vector3<f64>, [f64; 3]) {
    let eigen = SymmetricEigen::new(*tensor);
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let mut best = (f64::NEG_INFINITY, Matrix3::identity(), *tensor);
    for order in orders {
        let mut axes = Matrix3::from_fn(|i, j| eigen.eigenvectors[(i, order[j])]);
        for j in 0..3 {
            if axes[(j, j)] < 0.0 {
                axes.column_mut(j).neg_mut();
            }
        }
        if axes.determinant() < 0.0 {
            // Flip the axis for which this is the smallest rotation.
            let least = (0..3).min_by(|&i, &j| axes[(i, i)].total_cmp(&axes[(j, j)])).unwrap_or(0);
            axes.column_mut(least).neg_mut();
        }
        if axes.trace() > best.0 + 1e-9 {
            let values = Vector3::from_fn(|i, _| eigen.eigenvalues[order[i]]);
            best = (axes.trace(), axes, Matrix3::from_diagonal(&values));
        }
    }
    let (_, r, moments) = best;
    let flat = r[(0, 0)].hypot(r[(1, 0)]);
    let b = (-r[(2, 0)]).atan2(flat);
    let (a, c) = if flat > 1e-9 {
        (r[(1, 0)].atan2(r[(0, 0)]), r[(2, 1)].atan2(r[(2, 2)]))
    } else {
        ((-r[(0, 1)]).atan2(r[(1, 1)]), 0.0)
    };
    (moments.diagonal(), [a, b, c])
}

/// Returns the gravity compensation of force/torque sensors for controllers of `ros2_control`.
pub(super) fn ros2_control(load: &Load, gravity: &Vector3<f64>) -> Result<String> {
    let (mass, com, _) = central(&load.inertia);
    let Some(frame) = &load.frame else {
        let reason = "the result does not name the link that carries the payload: give its name here";
        return Err(Error::option("frame", reason));
    };
    let [links, note] =
        load.lines("It must be a frame of the robot description, rigidly connected to the sensor.");
    let (frame, com) = (yaml(frame), numbers(com.iter().copied()));
    let weight = gravity * mass;
    Ok(format!(
        "# {links} Mass {} kg.\n# {note}\n\
         admittance_controller:\n  ros__parameters:\n    gravity_compensation:\n      frame:\n        id: {frame}\n      \
         CoG:  # position (m) in that frame, and weight (N)\n        pos: [{com}]\n        force: {}\n\n\
         # The same for the filter chain of force_torque_sensor_broadcaster (control_filters/GravityCompensationWrench).\n\
         force_torque_sensor_broadcaster:\n  ros__parameters:\n    sensor_filter_chain:\n      filter1:\n        \
         name: gravity_compensation\n        type: control_filters/GravityCompensationWrench\n        params:\n          \
         world_frame: world\n          sensor_frame: {frame}\n          CoG:\n            pos: [{com}]\n            \
         force: [{}]\n",
        number(mass),
        number(weight.norm()),
        numbers(weight.iter().copied())
    ))
}

/// Returns a quoted string of YAML or JSON.
fn yaml(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rotation by A about z, B about the new y, C about the new x.
    fn turned([a, b, c]: [f64; 3]) -> Matrix3<f64> {
        inertial::spatial::rotation_from_rpy(c, b, a)
    }

    #[test]
    fn principal_axes_give_the_tensor_back() {
        let moments = Matrix3::from_diagonal(&Vector3::new(0.3, 0.5, 0.4));
        let right = std::f64::consts::FRAC_PI_2;
        for angles in [[0.0; 3], [0.3, -0.2, 0.5], [2.0, 1.0, -3.0], [0.7, right, 0.1], [0.0, -right, 0.4]] {
            let r = turned(angles);
            let tensor = r * moments * r.transpose();
            let (found, angles) = principal(&tensor);
            let r = turned(angles);
            let again = r * Matrix3::from_diagonal(&found) * r.transpose();
            assert!((again - tensor).amax() < 1e-14, "{again} {tensor}");
        }
    }

    #[test]
    fn axes_of_the_frame_stay_in_their_order() {
        let tensor = Matrix3::from_diagonal(&Vector3::new(0.3, 0.1, 0.2));
        let (moments, angles) = principal(&tensor);
        assert!((moments - Vector3::new(0.3, 0.1, 0.2)).amax() < 1e-15);
        assert!(angles.iter().all(|a| a.abs() < 1e-12), "{angles:?}");
    }
}
