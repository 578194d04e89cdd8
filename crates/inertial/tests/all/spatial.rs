//! Spatial algebra, compared with its definitions: matrices, point masses, power series and differences.

use std::f64::consts::PI;

use crate::common::{Rng, assert_close};
use inertial::spatial::{
    Force, Inertia, Motion, Parameters, Pose, PseudoInertia, body_regressor, energy_gradient,
    inertia_gradient, momentum_matrix, rotation_from_quaternion, rotation_from_rpy, skew, transfer_matrix,
    transfer_rate,
};
use nalgebra::{Matrix3, Matrix4, Matrix6, Quaternion, SMatrix, UnitQuaternion, Vector3, Vector4, vector};

/// Rounding error of a few dozen operations on numbers of order one to ten.
const ROUNDING: f64 = 1e-13;

fn draws() -> impl Iterator<Item = Rng> {
    (0..200).map(Rng)
}

impl Rng {
    fn force(&mut self) -> Force<f64> {
        Force::new(self.vector(2.0), self.vector(2.0))
    }
}

#[track_caller]
fn assert_same<const R: usize, const C: usize>(a: &SMatrix<f64, R, C>, b: &SMatrix<f64, R, C>) {
    assert_close(a.as_slice(), b.as_slice(), ROUNDING, "matrix");
}

#[track_caller]
fn assert_pose(a: &Pose<f64>, b: &Pose<f64>, tolerance: f64) {
    assert_close(a.to_matrix().as_slice(), b.to_matrix().as_slice(), tolerance, "pose");
}

/// Returns `v×` as a 6×6 matrix.
fn cross_matrix(v: &Motion<f64>) -> Matrix6<f64> {
    let mut m = Matrix6::zeros();
    m.fixed_view_mut::<3, 3>(0, 0).copy_from(&skew(&v.angular));
    m.fixed_view_mut::<3, 3>(3, 0).copy_from(&skew(&v.linear));
    m.fixed_view_mut::<3, 3>(3, 3).copy_from(&skew(&v.angular));
    m
}

/// Returns the 6×6 spatial inertia.
fn inertia_matrix(i: &Inertia<f64>) -> Matrix6<f64> {
    let mut m = Matrix6::zeros();
    let h = skew(&i.first_moment);
    m.fixed_view_mut::<3, 3>(0, 0).copy_from(&i.rotational);
    m.fixed_view_mut::<3, 3>(0, 3).copy_from(&h);
    m.fixed_view_mut::<3, 3>(3, 0).copy_from(&h.transpose());
    m.fixed_view_mut::<3, 3>(3, 3).copy_from(&(Matrix3::identity() * i.mass));
    m
}

#[test]
fn frame_changes_compose_and_invert() {
    for mut rng in draws() {
        let (a, b, m, f) = (rng.pose(), rng.pose(), rng.motion(), rng.force());
        let i = rng.inertia();
        assert_pose(&(a * a.inverse()), &Pose::identity(), ROUNDING);
        assert_same(&(a * b).to_matrix(), &(a.to_matrix() * b.to_matrix()));
        assert_same(&(a * b).push_motion(&m).to_vector(), &a.push_motion(&b.push_motion(&m)).to_vector());
        assert_same(&(a * b).push_force(&f).to_vector(), &a.push_force(&b.push_force(&f)).to_vector());
        assert_same(&i.transformed(&(a * b)).parameters(), &i.transformed(&b).transformed(&a).parameters());
        assert_same(&a.pull_motion(&m).to_vector(), &a.inverse().push_motion(&m).to_vector());
        assert_same(&a.pull_force(&f).to_vector(), &a.inverse().push_force(&f).to_vector());
    }
}

#[test]
fn every_operation_commutes_with_a_frame_change() {
    for mut rng in draws() {
        let (x, v, m, f, i) = (rng.pose(), rng.motion(), rng.motion(), rng.force(), rng.inertia());
        let (xv, xm, xf, xi) = (x.push_motion(&v), x.push_motion(&m), x.push_force(&f), i.transformed(&x));
        assert_close(&[xm.dot(&xf)], &[m.dot(&f)], ROUNDING, "power");
        assert_same(&xv.cross(&xm).to_vector(), &x.push_motion(&v.cross(&m)).to_vector());
        assert_same(&xv.cross_force(&xf).to_vector(), &x.push_force(&v.cross_force(&f)).to_vector());
        assert_same(&xi.apply(&xm).to_vector(), &x.push_force(&i.apply(&m)).to_vector());
        assert_same(&xi.wrench(&xv, &xm).to_vector(), &x.push_force(&i.wrench(&v, &m)).to_vector());
    }
}

#[test]
fn cross_products_and_inertias_are_their_matrices() {
    for mut rng in draws() {
        let (v, m, f, i) = (rng.motion(), rng.motion(), rng.force(), rng.inertia());
        assert_same(&v.cross(&m).to_vector(), &(cross_matrix(&v) * m.to_vector()));
        assert_same(&v.cross_force(&f).to_vector(), &(-cross_matrix(&v).transpose() * f.to_vector()));
        assert_same(&i.apply(&m).to_vector(), &(inertia_matrix(&i) * m.to_vector()));
        assert_eq!(Motion::from_vector(&m.to_vector()), m);
        assert_eq!(Inertia::from_parameters(&i.parameters()).parameters(), i.parameters());
    }
}

#[test]
fn an_inertia_is_the_sum_of_its_point_masses() {
    for mut rng in draws() {
        let points: Vec<_> = (0..6).map(|_| (rng.range(0.1, 1.0), rng.vector(1.0))).collect();
        let v = rng.motion();
        let mut total = Inertia::zero();
        let (mut momentum, mut pseudo) = (Force::zero(), Matrix4::zeros());
        for (m, x) in &points {
            total += Inertia::from_com(*m, *x, Matrix3::zeros());
            let p = (v.linear + v.angular.cross(x)) * *m;
            momentum += Force::new(x.cross(&p), p);
            let x1 = Vector4::new(x.x, x.y, x.z, 1.0);
            pseudo += x1 * x1.transpose() * *m;
        }
        assert_same(&total.apply(&v).to_vector(), &momentum.to_vector());
        assert_same(&PseudoInertia::from(&total).0, &pseudo);
        let again = Inertia::from_com(total.mass, total.com().unwrap(), total.about_com());
        assert_same(&again.parameters(), &total.parameters());
        let g = rng.vector(10.0);
        let weight =
            points.iter().fold(Force::zero(), |sum, (m, x)| sum + Force::new(x.cross(&(g * *m)), g * *m));
        assert_same(&total.weight(&g).to_vector(), &weight.to_vector());
    }
}

#[test]
fn pseudo_inertia_goes_both_ways_and_changes_frame_by_congruence() {
    for mut rng in draws() {
        let (x, i) = (rng.pose(), rng.inertia());
        let p = PseudoInertia::from(&i);
        assert_eq!(PseudoInertia::from_inertia(&i), Some(p));
        assert_same(&p.to_inertia().parameters(), &i.parameters());
        let t = x.to_matrix();
        assert_same(&(t * p.0 * t.transpose()), &PseudoInertia::from(&i.transformed(&x)).0);
        assert!(p.0.cholesky().is_some(), "a real body has a positive definite pseudo-inertia");
    }
}

#[test]
fn body_regressor_times_parameters_is_the_wrench() {
    for mut rng in draws() {
        let (v, a, i) = (rng.motion(), rng.motion(), rng.inertia());
        assert_same(&(body_regressor(&v, &a) * i.parameters()), &i.wrench(&v, &a).to_vector());
    }
}

#[test]
fn the_wrench_is_the_rate_of_momentum() {
    // A body with twist V(t) in its frame: its momentum is transformed to the world and differentiated there.
    for mut rng in draws() {
        let (v, a, i) = (rng.motion(), rng.motion(), rng.inertia());
        let h = 1e-4;
        let momentum = |t: f64| {
            let pose = Pose::exp(&(v * t + a * (0.5 * t * t)));
            pose.push_force(&i.apply(&(v + a * t))).to_vector()
        };
        let rate = (momentum(h) - momentum(-h)) / (2.0 * h);
        // Central differences have an error of h² times a third derivative.
        assert_close(rate.as_slice(), i.wrench(&v, &a).to_vector().as_slice(), 1e-6, "rate");
    }
}

#[test]
fn helpers_of_the_regrouping_agree_with_their_definitions() {
    for mut rng in draws() {
        let (x, v, w, i) = (rng.pose(), rng.motion(), rng.motion(), rng.inertia());
        let pi = i.parameters();
        // k(v), eq. 38.
        assert_close(&[energy_gradient(&v).dot(&pi)], &[0.5 * v.dot(&i.apply(&v))], ROUNDING, "k");
        // M(V, Φ), eq. 36: one column for each pair.
        let (span, modes) = ([v, rng.motion()], [w, rng.motion(), rng.motion()]);
        let found: Vec<f64> = momentum_matrix(&span, &modes).map(|column| column.dot(&pi)).collect();
        let expected: Vec<f64> = (0..6).map(|n| span[n % 2].dot(&i.apply(&modes[n / 2]))).collect();
        assert_close(&found, &expected, ROUNDING, "M");
        assert_close(&[inertia_gradient(&v, &w).dot(&pi)], &found[..1], ROUNDING, "the form behind M");
        // B(X), eq. 39.
        assert_same(&(transfer_matrix(&x) * pi), &i.transformed(&x).parameters());
        let y = rng.pose();
        assert_same(&transfer_matrix(&(x * y)), &(transfer_matrix(&x) * transfer_matrix(&y)));
        // A(Φ), eq. 40.
        let rate = cross_matrix(&w).transpose() * inertia_matrix(&i) + inertia_matrix(&i) * cross_matrix(&w);
        let found = Inertia::from_parameters(&(transfer_rate(&w) * pi));
        assert_same(&inertia_matrix(&found), &rate);
    }
}

#[test]
fn the_transfer_rate_is_minus_the_derivative_of_the_transfer_matrix_along_the_joint() {
    for mut rng in draws() {
        let (x, phi) = (rng.pose(), rng.motion());
        let h = 1e-3;
        let at = |t: f64| transfer_matrix(&(x * Pose::exp(&(phi * t))));
        let slope = ((at(h) - at(-h)) * 8.0 - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
        let expected = transfer_matrix(&x) * transfer_rate(&phi) * -1.0;
        // Fourth-order differences have errors of h⁴ and of rounding over h.
        assert_close(slope.as_slice(), expected.as_slice(), 1e-9, "slope");
    }
}

#[test]
fn exp_is_the_power_series() {
    for mut rng in draws() {
        let m = rng.motion();
        let mut generator = Matrix4::zeros();
        generator.fixed_view_mut::<3, 3>(0, 0).copy_from(&skew(&m.angular));
        generator.fixed_view_mut::<3, 1>(0, 3).copy_from(&m.linear);
        let (mut sum, mut term) = (Matrix4::identity(), Matrix4::identity());
        for k in 1..60 {
            term = term * generator / f64::from(k);
            sum += term;
        }
        // The angle goes up to 3.5 and the terms of the series to e^3.5, which costs two digits.
        assert_close(Pose::exp(&m).to_matrix().as_slice(), sum.as_slice(), 1e-12, "exp");
    }
}

#[test]
fn exp_and_log_are_inverse_at_every_angle() {
    let mut rng = Rng(7);
    let near = |x: f64| [1e-16, 1e-12, 1e-9, 1e-6, 1e-3].map(|d| x + d);
    let mut angles = vec![0.0, 0.00999, 0.01001, 0.0316, 0.03165, 0.5, 1.0, PI / 2.0, 2.0, 3.0, PI];
    angles.extend(near(0.0));
    angles.extend(near(-PI).map(|x| -x));
    for _ in 0..50 {
        let axes = [Vector3::x(), -Vector3::y(), Vector3::z(), rng.unit::<3>().into()];
        let linear = rng.vector(2.0);
        for axis in axes {
            for &angle in &angles {
                let twist = Motion::new(axis * angle, linear);
                let pose = Pose::exp(&twist);
                let defect = pose.rotation.transpose() * pose.rotation - Matrix3::identity();
                assert!(defect.amax() < 4e-16 * 4.0, "not orthogonal by {}", defect.amax());
                assert_pose(&Pose::exp(&pose.log()), &pose, ROUNDING);
                // At the angle π the pose does not determine the sign of the axis, and log may return the other one.
                if angle < PI - 1e-8 {
                    let found = pose.log().to_vector();
                    // Near π the rotation matrix determines the angle at worst to the square root of the rounding error.
                    assert_close(found.as_slice(), twist.to_vector().as_slice(), ROUNDING, "log");
                }
            }
        }
    }
}

#[test]
fn rotations_from_quaternions_and_angles_agree_with_nalgebra() {
    for mut rng in draws() {
        let [x, y, z, w] = rng.unit();
        let expected = UnitQuaternion::from_quaternion(Quaternion::new(w, x, y, z)).to_rotation_matrix();
        assert_same(&rotation_from_quaternion(x, y, z, w).unwrap(), expected.matrix());
        // Any length and either sign.
        let s = -rng.range(0.1, 10.0);
        assert_same(&rotation_from_quaternion(s * x, s * y, s * z, s * w).unwrap(), expected.matrix());
        let [r, p, h] = [0; 3].map(|_| rng.range(-PI, PI));
        let expected = nalgebra::Rotation3::from_euler_angles(r, p, h);
        assert_same(&rotation_from_rpy(r, p, h), expected.matrix());
        let xyz = rng.vector(1.0);
        let pose = Pose::from_xyz_rpy(xyz.into(), [r, p, h]);
        assert_same(
            &pose.transform_point(&vector![1.0, 2.0, 3.0]),
            &(expected * vector![1.0, 2.0, 3.0] + xyz),
        );
    }
    assert_eq!(rotation_from_quaternion(0.0, 0.0, 0.0, 0.0), None);
}

#[test]
fn a_massless_body_has_no_centre() {
    assert_eq!(Inertia::zero().com(), None);
    assert_eq!(Inertia::zero().about_com(), Matrix3::zeros());
    assert_eq!(Inertia::from_parameters(&Parameters::<f64>::zeros()), Inertia::zero());
}
