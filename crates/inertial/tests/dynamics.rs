//! Laws that every mechanism obeys, tested on random ones.

mod common;

use common::{Features, assert_close, cases, reference_regressor, reference_rnea, world_bodies};
use inertial::dynamics::{Workspace, body_accelerations};
use nalgebra::DVector;

/// Rounding grows with the depth and the size of the numbers; random mechanisms stay below a hundredth of this.
const ROUNDING: f64 = 1e-11;

#[test]
fn kinematics_in_body_frames_agree_with_world_frames() {
    for case in cases(300, Features::ALL) {
        let still = case.mechanism.clone().with_gravity(nalgebra::Vector3::zeros());
        let mut ws = Workspace::new(&still);
        body_accelerations(&still, &mut ws, &case.q, &case.v, &case.a).unwrap();
        for (i, at) in world_bodies(&still, &case.q, &case.v, &case.a).iter().enumerate() {
            let pose = ws.poses()[i];
            assert_close(pose.to_matrix().as_slice(), at.pose.to_matrix().as_slice(), ROUNDING, "pose");
            let v = pose.push_motion(&ws.velocities()[i]).to_vector();
            assert_close(v.as_slice(), at.velocity.to_vector().as_slice(), ROUNDING, "velocity");
            let a = pose.push_motion(&ws.accelerations()[i]).to_vector();
            assert_close(a.as_slice(), at.acceleration.to_vector().as_slice(), ROUNDING, "acceleration");
        }
    }
}

#[test]
fn the_reference_regressor_times_the_parameters_is_the_reference_inverse_dynamics() {
    for case in cases(300, Features::LINEAR) {
        let y = reference_regressor(&case.mechanism, &case.q, &case.v, &case.a);
        let tau = y * DVector::from_vec(case.mechanism.parameters());
        let expected = reference_rnea(&case.mechanism, &case.q, &case.v, &case.a);
        assert_close(tau.as_slice(), &expected, ROUNDING, "torque");
    }
}
