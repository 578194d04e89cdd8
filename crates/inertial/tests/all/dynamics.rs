//! Laws of mechanics, tested on random mechanisms.

use crate::common;
use crate::common::{
    Case, Features, Rng, assert_close, cases, reference_mass_matrix, reference_regressor, reference_rnea,
    reference_wrenches, world_bodies,
};
use inertial::Error;
use inertial::dynamics::{
    Arithmetic, Frame, InverseDynamics, Workspace, base_wrench, base_wrench_regressor, bias_forces,
    body_accelerations, forward_dynamics, forward_kinematics, frame_jacobian, gravity_forces,
    gravity_regressor, kinetic_energy, kinetic_energy_regressor, mass_matrix, momentum, momentum_regressor,
    potential_energy, potential_energy_regressor,
};
use inertial::mechanism::{Base, BuildOptions, JointSpec, JointType, Mechanism, MechanismBuilder, Mimic};
use inertial::spatial::{Force, Inertia, Pose};
use nalgebra::{DMatrix, DVector, Matrix3, Vector3, vector};

/// Tolerance for rounding errors, which grow with the depth and the size of the numbers: at most 1.3e-13 over 2000 random
/// mechanisms.
const ROUNDING: f64 = 1e-11;

/// Tolerance of the five-point differences below, with errors of h⁴ times a fifth derivative and of rounding over h.
const DIFFERENCE: f64 = 1e-7;

const FLOATING: Features = Features { base: Some(Base::Floating), ..Features::LINEAR };

/// Returns the derivative at zero by central differences of fourth order.
fn derivative(mut f: impl FnMut(f64) -> Vec<f64>) -> Vec<f64> {
    let h = 1e-3;
    let (p2, p1, m1, m2) = (f(2.0 * h), f(h), f(-h), f(-2.0 * h));
    (0..p1.len()).map(|i| (8.0 * (p1[i] - m1[i]) - (p2[i] - m2[i])) / (12.0 * h)).collect()
}

/// Returns the state after time `t` to first order, symmetric in `t`.
fn moved(case: &Case, t: f64) -> (Vec<f64>, Vec<f64>) {
    let mut q = case.q.clone();
    let step: Vec<f64> = case.v.iter().map(|v| v * t).collect();
    case.mechanism.integrate(&mut q, &step);
    (q, case.v.iter().zip(&case.a).map(|(v, a)| v + a * t).collect())
}

/// Multiplies the rows of a row-major regressor by the parameters of the mechanism.
fn times_parameters(mechanism: &Mechanism, y: &[f64]) -> Vec<f64> {
    let np = mechanism.parameter_count();
    let y = DMatrix::from_row_slice(y.len() / np, np, y);
    (y * DVector::from_vec(mechanism.parameters())).as_slice().to_vec()
}

/// Returns the components with the linear part first, as in the rows of the regressors.
fn linear_first(f: &Force<f64>) -> Vec<f64> {
    f.linear.iter().chain(&f.angular).copied().collect()
}

#[test]
fn kinematics_in_body_frames_agree_with_world_frames() {
    for case in cases(300, Features::ALL) {
        let still = case.mechanism.clone().with_gravity(Vector3::zeros());
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
fn velocities_and_accelerations_are_derivatives() {
    for case in cases(100, Features::ALL) {
        let m = &case.mechanism;
        let mut ws = Workspace::new(m);
        body_accelerations(m, &mut ws, &case.q, &case.v, &case.a).unwrap();
        let (poses, velocities) = (ws.poses().to_vec(), ws.velocities().to_vec());
        let accelerations = ws.accelerations().to_vec();
        for i in 0..m.bodies().len() {
            let twist = derivative(|t| {
                forward_kinematics(m, &mut ws, &moved(&case, t).0).unwrap();
                (poses[i].inverse() * ws.poses()[i]).log().to_vector().as_slice().to_vec()
            });
            assert_close(&twist, velocities[i].to_vector().as_slice(), DIFFERENCE, "velocity");
            let rate = derivative(|t| {
                let (q, v) = moved(&case, t);
                body_accelerations(m, &mut ws, &q, &v, &case.a).unwrap();
                ws.velocities()[i].to_vector().as_slice().to_vec()
            });
            assert_close(&rate, accelerations[i].to_vector().as_slice(), DIFFERENCE, "acceleration");
        }
    }
}

#[test]
fn a_jacobian_times_velocities_is_the_twist() {
    for mut case in cases(200, Features::ALL) {
        let m = &case.mechanism;
        let mut ws = Workspace::new(m);
        let body = case.rng.below(m.bodies().len());
        let frame = case.rng.pose();
        let mut j = vec![f64::NAN; 6 * m.nv()];
        frame_jacobian(m, &mut ws, &case.q, body, &frame, &mut j).unwrap();
        let twist = DMatrix::from_row_slice(6, m.nv(), &j) * DVector::from_column_slice(&case.v);
        body_accelerations(m, &mut ws, &case.q, &case.v, &case.a).unwrap();
        let expected = frame.pull_motion(&ws.velocities()[body]).to_vector();
        assert_close(twist.as_slice(), expected.as_slice(), ROUNDING, "twist");
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

#[test]
fn the_mass_matrix_times_accelerations_is_the_change_of_forces() {
    for case in cases(300, Features::ALL) {
        let m = &case.mechanism;
        let n = m.nv();
        let mut h = vec![f64::NAN; n * n];
        mass_matrix(m, &mut Workspace::new(m), &case.q, &mut h).unwrap();
        assert_close(&h, reference_mass_matrix(m, &case.q).as_slice(), ROUNDING, "mass matrix");
        let h = DMatrix::from_row_slice(n, n, &h);
        assert_eq!(h, h.transpose(), "not symmetric to the bit");
        assert!(h.cholesky().is_some(), "not positive definite");
    }
}

#[test]
fn bias_and_gravity_forces_equal_rnea_without_acceleration() {
    for case in cases(300, Features::ALL) {
        let m = &case.mechanism;
        let mut ws = Workspace::new(m);
        let still = vec![0.0; m.nv()];
        let mut found = vec![f64::NAN; m.nv()];
        bias_forces(m, &mut ws, &case.q, &case.v, &mut found).unwrap();
        assert_close(&found, &reference_rnea(m, &case.q, &case.v, &still), ROUNDING, "bias");
        gravity_forces(m, &mut ws, &case.q, &mut found).unwrap();
        assert_close(&found, &reference_rnea(m, &case.q, &still, &still), ROUNDING, "gravity");
    }
}

#[test]
fn forward_dynamics_inverts_inverse_dynamics() {
    // Articulated bodies without couplings, the mass matrix with couplings.
    for features in [Features { armature: true, ..Features::PLAIN }, Features::ALL] {
        for case in cases(300, features) {
            let m = &case.mechanism;
            let mut ws = Workspace::new(m);
            let tau = reference_rnea(m, &case.q, &case.v, &case.a);
            let mut a = vec![f64::NAN; m.nv()];
            forward_dynamics(m, &mut ws, &case.q, &case.v, &tau, &mut a).unwrap();
            // The error of the accelerations includes the condition number of the mass matrix: 4e-11 at worst over 2000
            // mechanisms.
            assert_close(&a, &case.a, 1e-8, "acceleration");
            let again = reference_rnea(m, &case.q, &case.v, &a);
            assert_close(&again, &tau, ROUNDING, "torque");
            if m.bodies().iter().map(|b| b.joint_type.nv()).sum::<usize>() == m.nv() {
                let kept = ws.accelerations().to_vec();
                body_accelerations(m, &mut ws, &case.q, &case.v, &a).unwrap();
                for (kept, expected) in kept.iter().zip(ws.accelerations()) {
                    let (kept, expected) = (kept.to_vector(), expected.to_vector());
                    assert_close(kept.as_slice(), expected.as_slice(), ROUNDING, "body acceleration");
                }
            }
        }
    }
}

#[test]
fn kinetic_energy_is_half_v_h_v() {
    for case in cases(300, Features::ALL) {
        let m = &case.mechanism;
        let h = reference_mass_matrix(m, &case.q);
        let v = DVector::from_column_slice(&case.v);
        let energy = kinetic_energy(m, &mut Workspace::new(m), &case.q, &case.v).unwrap();
        assert_close(&[energy], &[0.5 * v.dot(&(h * &v))], ROUNDING, "energy");
    }
}

#[test]
fn gravity_is_the_gradient_of_potential_energy() {
    for case in cases(100, Features::ALL) {
        let m = &case.mechanism;
        let mut ws = Workspace::new(m);
        let mut found = vec![f64::NAN; m.nv()];
        gravity_forces(m, &mut ws, &case.q, &mut found).unwrap();
        for k in 0..m.nv() {
            let slope = derivative(|t| {
                let mut q = case.q.clone();
                let mut step = vec![0.0; m.nv()];
                step[k] = t;
                m.integrate(&mut q, &step);
                vec![potential_energy(m, &mut ws, &q).unwrap()]
            });
            // The rounding error is relative to the total energy.
            let scale = found.iter().fold(1.0f64, |s, x| s.max(x.abs()));
            assert!((slope[0] - found[k]).abs() < DIFFERENCE * scale, "{} against {}", slope[0], found[k]);
        }
    }
}

#[test]
fn power_balances() {
    for case in cases(300, Features::ALL) {
        let m = &case.mechanism;
        let mut ws = Workspace::new(m);
        let tau = reference_rnea(m, &case.q, &case.v, &case.a);
        let rate = derivative(|t| {
            let (q, v) = moved(&case, t);
            let kinetic = kinetic_energy(m, &mut ws, &q, &v).unwrap();
            vec![kinetic + potential_energy(m, &mut ws, &q).unwrap()]
        });
        let terms: Vec<f64> = tau.iter().zip(&case.v).map(|(t, v)| t * v).collect();
        // Terms of both signs cancel: the error is relative to the sum of their absolute values.
        let size: f64 = terms.iter().map(|t| t.abs()).sum();
        assert!((rate[0] - terms.iter().sum::<f64>()).abs() < DIFFERENCE * size.max(1.0));
    }
}

#[test]
fn momentum_is_the_gradient_of_kinetic_energy() {
    for case in cases(200, FLOATING) {
        let m = &case.mechanism;
        assert_eq!(m.base(), Base::Floating);
        let mut ws = Workspace::new(m);
        let found = momentum(m, &mut ws, &case.q, &case.v, Frame::Base).unwrap();
        // The energy is quadratic: central differences are exact for any step.
        let gradient: Vec<f64> = (0..6)
            .map(|k| {
                let mut at = |step: f64| {
                    let mut v = case.v.clone();
                    v[k] += step;
                    kinetic_energy(m, &mut ws, &case.q, &v).unwrap()
                };
                0.5 * (at(1.0) - at(-1.0))
            })
            .collect();
        assert_close(&gradient, &linear_first(&found), ROUNDING, "momentum");
    }
}

#[test]
fn momentum_changes_by_the_external_wrench() {
    for case in cases(200, Features::ALL) {
        let m = &case.mechanism;
        let mut ws = Workspace::new(m);
        let rate = derivative(|t| {
            let (q, v) = moved(&case, t);
            linear_first(&momentum(m, &mut ws, &q, &v, Frame::World).unwrap())
        });
        let wrench = base_wrench(m, &mut ws, &case.q, &case.v, &case.a).unwrap();
        let mut external = match m.base() {
            Base::Fixed => wrench,
            Base::Floating => ws.poses()[0].push_force(&wrench),
        };
        for (body, pose) in m.bodies().iter().zip(ws.poses()) {
            external += body.inertia.transformed(pose).weight(&m.gravity());
        }
        assert_close(&rate, &linear_first(&external), DIFFERENCE, "momentum");
    }
}

#[test]
fn the_base_wrench_is_the_sum_of_the_body_wrenches() {
    for case in cases(300, Features::LINEAR) {
        let m = &case.mechanism;
        let mut ws = Workspace::new(m);
        let found = base_wrench(m, &mut ws, &case.q, &case.v, &case.a).unwrap();
        let bodies = world_bodies(m, &case.q, &case.v, &case.a);
        let total = reference_wrenches(m, &bodies).into_iter().fold(Force::zero(), |sum, f| sum + f);
        match m.base() {
            Base::Fixed => {
                assert_close(&linear_first(&found), &linear_first(&total), ROUNDING, "ground wrench");
            }
            Base::Floating => {
                let total = bodies[0].pose.pull_force(&total);
                assert_close(&linear_first(&found), &linear_first(&total), ROUNDING, "base wrench");
                let tau = reference_rnea(m, &case.q, &case.v, &case.a);
                assert_close(&linear_first(&found), &tau[..6], ROUNDING, "floating joint's force");
            }
        }
    }
}

#[test]
fn every_regressor_times_the_parameters_is_its_quantity() {
    for case in cases(300, Features::LINEAR) {
        let m = &case.mechanism;
        let (q, v, a) = (&case.q, &case.v, &case.a);
        let np = m.parameter_count();
        let mut ws = Workspace::new(m);

        let mut row = vec![f64::NAN; np];
        kinetic_energy_regressor(m, &mut ws, q, v, &mut row).unwrap();
        let expected = kinetic_energy(m, &mut ws, q, v).unwrap();
        assert_close(&times_parameters(m, &row), &[expected], ROUNDING, "kinetic energy");

        potential_energy_regressor(m, &mut ws, q, &mut row).unwrap();
        let expected = potential_energy(m, &mut ws, q).unwrap();
        // Heights of both signs cancel in the sum.
        let found = times_parameters(m, &row)[0];
        assert!((found - expected).abs() < ROUNDING * 100.0, "potential energy {found} against {expected}");

        let mut y = vec![f64::NAN; m.nv() * np];
        gravity_regressor(m, &mut ws, q, &mut y).unwrap();
        let mut expected = vec![f64::NAN; m.nv()];
        gravity_forces(m, &mut ws, q, &mut expected).unwrap();
        assert_close(&times_parameters(m, &y), &expected, ROUNDING, "gravity");
        let still = vec![0.0; m.nv()];
        let reference = reference_regressor(m, q, &still, &still).transpose();
        assert_close(&y, reference.as_slice(), ROUNDING, "gravity regressor");

        let mut y = vec![f64::NAN; 6 * np];
        for frame in [Frame::World, Frame::Base] {
            momentum_regressor(m, &mut ws, q, v, frame, &mut y).unwrap();
            let expected = momentum(m, &mut ws, q, v, frame).unwrap();
            assert_close(&times_parameters(m, &y), &linear_first(&expected), ROUNDING, "momentum");
        }
        base_wrench_regressor(m, &mut ws, q, v, a, &mut y).unwrap();
        let expected = base_wrench(m, &mut ws, q, v, a).unwrap();
        assert_close(&times_parameters(m, &y), &linear_first(&expected), ROUNDING, "base wrench");
        if m.base() == Base::Floating {
            let reference = reference_regressor(m, q, v, a).rows(0, 6).transpose();
            assert_close(&y, reference.as_slice(), ROUNDING, "base wrench regressor");
        }
    }
}

#[test]
fn free_fall_feels_no_force() {
    for case in cases(50, FLOATING) {
        let m = &case.mechanism;
        let mut ws = Workspace::new(m);
        let mut a = vec![f64::NAN; m.nv()];
        let still = vec![0.0; m.nv()];
        forward_dynamics(m, &mut ws, &case.q, &still, &still, &mut a).unwrap();
        let base = ws.poses()[0].rotation;
        let expected = base.tr_mul(&m.gravity());
        assert_close(&a[..3], expected.as_slice(), 1e-9, "linear");
        let rest = a[3..].iter().fold(0.0f64, |s, x| s.max(x.abs()));
        // Small compared with gravity (10 m/s²); the condition number of the mass matrix multiplies the rounding errors.
        assert!(rest < 1e-7, "{rest}");
    }
}

/// Creates a chain of hinges one metre apart with axes along z, y and x in turn.
fn chain(count: usize) -> MechanismBuilder {
    let mut out = MechanismBuilder::new("chain", "ground");
    let bar = Inertia::from_com(1.0, vector![0.5, 0.1, 0.0], Matrix3::from_diagonal_element(0.1));
    let mut parent = "ground".to_owned();
    for k in 0..count {
        let axis = [Vector3::z(), Vector3::y(), Vector3::x()][k % 3];
        let (name, joint) = (format!("link{k}"), format!("joint{k}"));
        let joint = JointSpec::new(joint, JointType::Revolute { axis }, parent, &name);
        out = out.link(&name, bar).joint(joint.at(Pose::from_translation(vector![1.0, 0.0, 0.0])));
        parent = name;
    }
    out
}

fn build(builder: &MechanismBuilder) -> Mechanism {
    builder.build(&BuildOptions::default()).expect("a valid mechanism")
}

#[test]
fn forward_dynamics_of_a_long_chain_stays_accurate() {
    let m = build(&chain(1000));
    let mut rng = common::Rng(9);
    let (q, v, a) = (rng.positions(&m), rng.values(1000, 0.1), rng.values(1000, 0.1));
    let tau = reference_rnea(&m, &q, &v, &a);
    let mut found = vec![f64::NAN; 1000];
    forward_dynamics(&m, &mut Workspace::new(&m), &q, &v, &tau, &mut found).unwrap();
    // The torques span five orders of magnitude along the chain, and their rounding errors affect the outer links.
    assert_close(&reference_rnea(&m, &q, &v, &found), &tau, 1e-10, "torque");
}

#[test]
fn joints_without_inertia_are_refused_by_forward_dynamics() {
    let refused = |builder: &MechanismBuilder, joint: &str| {
        let m = build(builder);
        let n = m.nv();
        let mut a = vec![0.0; n];
        let zero = vec![0.0; n];
        let result = forward_dynamics(&m, &mut Workspace::new(&m), &m.neutral(), &zero, &zero, &mut a);
        let message = result.expect_err("singular").to_string();
        assert!(message.contains(&format!("not positive definite at joint \"{joint}\"")), "{message}");
    };
    // A massless tip is singular; with some rotor inertia it has an acceleration.
    let mut tip = chain(3);
    tip.links[2].inertia = None;
    refused(&tip, "joint2");
    tip.joints[2].dynamics.armature = 0.1;
    let m = build(&tip);
    let mut a = [0.0; 3];
    forward_dynamics(&m, &mut Workspace::new(&m), &[0.3; 3], &[0.0; 3], &[0.0; 3], &mut a).unwrap();
    assert!(a.iter().all(|a| a.is_finite()));
    // Two collinear hinges with a massless link between them, in a general direction: rounding errors hide the zero pivot.
    let axis = vector![0.3, -0.5, 0.7];
    let mut pair = chain(4);
    pair.links[1].inertia = None;
    for k in [1, 2] {
        pair.joints[k].joint_type = JointType::Revolute { axis };
    }
    pair.joints[2].origin = Pose::from_translation(axis * 0.37);
    refused(&pair, "joint1");
    // The same with the mass matrix, which a coupling requires; the later of the two pivots is named.
    let mut coupled = pair.clone();
    coupled.joints[3].mimic = Some(Mimic::new("joint0", 0.7, 0.2));
    refused(&coupled, "joint2");
    // A negative mass is accepted as input, but gives no positive pivot here.
    let mut negative = chain(1);
    negative.links[0].inertia = Some(Inertia::from_com(-1.0, Vector3::x(), Matrix3::zeros()));
    refused(&negative, "joint0");
}

/// The dynamics of the coupled mechanism is that of the free one at `q = G x + c`, projected by `G`.
#[test]
fn a_joint_that_follows_several_is_the_projection_of_a_free_one() {
    let mut rng = Rng(3);
    for joint_type in [
        JointType::Revolute { axis: vector![0.6, 0.0, 0.8] },
        JointType::Prismatic { axis: vector![0.0, 0.6, 0.8] },
        JointType::Helical { axis: vector![0.0, 0.8, 0.6], pitch: 0.3 },
    ] {
        let mut free = chain(5);
        free.joints[3].joint_type = joint_type;
        let mut coupled = free.clone();
        let leaders =
            vec![("joint4".to_owned(), 0.5), ("joint0".to_owned(), -1.3), ("joint2".to_owned(), 2.0)];
        coupled.joints[3].mimic = Some(Mimic { leaders, offset: 0.4 });
        let (free, coupled) = (build(&free), build(&coupled));
        assert_eq!((free.nv(), coupled.nv(), coupled.parameter_count()), (5, 4, 50));
        let g = DMatrix::from_row_slice(
            5,
            4,
            &[
                1.0, 0.0, 0.0, 0.0, //
                0.0, 1.0, 0.0, 0.0, //
                0.0, 0.0, 1.0, 0.0, //
                -1.3, 0.0, 2.0, 0.5, //
                0.0, 0.0, 0.0, 1.0,
            ],
        );
        let [x, v, a] = std::array::from_fn(|_| DVector::from_fn(4, |_, _| rng.range(-1.0, 1.0)));
        let mut full = &g * &x;
        full[3] += 0.4;
        let torques = |m: &Mechanism, q: &[f64], v: &[f64], a: &[f64]| {
            let dynamics = InverseDynamics::new(m);
            let mut tau = vec![0.0; m.nv()];
            dynamics.rnea(&mut dynamics.scratch(), q, v, a, &mut tau).unwrap();
            DVector::from_vec(tau)
        };
        let expected = g.tr_mul(&torques(&free, full.as_slice(), (&g * &v).as_slice(), (&g * &a).as_slice()));
        let found = torques(&coupled, x.as_slice(), v.as_slice(), a.as_slice());
        assert!((&found - expected).amax() < 1e-12 * found.amax());
        let mass = |m: &Mechanism, q: &[f64]| {
            let mut out = vec![0.0; m.nv() * m.nv()];
            mass_matrix(m, &mut Workspace::new(m), q, &mut out).unwrap();
            DMatrix::from_row_slice(m.nv(), m.nv(), &out)
        };
        let found = mass(&coupled, x.as_slice());
        assert!((&found - g.tr_mul(&(mass(&free, full.as_slice()) * &g))).amax() < 1e-12 * found.amax());
        let mut back = vec![0.0; 4];
        let tau = torques(&coupled, x.as_slice(), v.as_slice(), a.as_slice());
        let mut ws = Workspace::new(&coupled);
        forward_dynamics(&coupled, &mut ws, x.as_slice(), v.as_slice(), tau.as_slice(), &mut back).unwrap();
        assert!((DVector::from_vec(back) - a).amax() < 1e-10);
    }
}

#[test]
fn vector_instructions_of_tree_kernels_change_only_rounding() {
    for case in cases(200, Features { armature: true, ..Features::PLAIN }) {
        let Case { mechanism: m, q, v, a: tau, .. } = &case;
        let n = m.nv();
        let mut results = [Arithmetic::Fastest, Arithmetic::Reproducible].map(|arithmetic| {
            let mut ws = Workspace::new(m).with_arithmetic(arithmetic);
            let (mut h, mut a) = (vec![0.0; n * n], vec![0.0; n]);
            mass_matrix(m, &mut ws, q, &mut h).unwrap();
            forward_dynamics(m, &mut ws, q, v, tau, &mut a).unwrap();
            let poses: Vec<f64> = ws.poses().iter().flat_map(|p| p.to_matrix().as_slice().to_vec()).collect();
            (h, a, poses)
        });
        let (h, a, poses) = std::mem::take(&mut results[0]);
        assert_close(&h, &results[1].0, ROUNDING, "mass matrix");
        // The error of the accelerations includes the condition number of the mass matrix.
        assert_close(&a, &results[1].1, 1e-8, "acceleration");
        assert_close(&poses, &results[1].2, ROUNDING, "poses");
    }
}

/// Inertias are taken about the origins of the bodies, so the position of a floating base does not enter the mass matrix.
#[test]
fn the_mass_matrix_does_not_depend_on_the_pose_of_the_base() {
    for case in cases(100, FLOATING) {
        let m = &case.mechanism;
        let mut ws = Workspace::new(m);
        let (mut near, mut far) = (vec![0.0; m.nv() * m.nv()], vec![0.0; m.nv() * m.nv()]);
        mass_matrix(m, &mut ws, &case.q, &mut near).unwrap();
        let mut q = case.q.clone();
        q[..3].iter_mut().for_each(|x| *x += 1e6);
        mass_matrix(m, &mut ws, &q, &mut far).unwrap();
        assert_eq!(near, far);
    }
}

/// A workspace can be used with any mechanism that has the same numbers of bodies and coordinates.
#[test]
fn a_workspace_follows_the_mechanism_that_it_is_used_with() {
    for case in cases(100, Features::ALL) {
        let m = &case.mechanism;
        let n = m.nv();
        let (mut expected, mut found) = (vec![0.0; n * n], vec![0.0; n * n]);
        let heavier: Vec<f64> = m.parameters().iter().map(|p| 2.0 * p).collect();
        let other = m.clone().with_parameters(&heavier).unwrap().with_gravity(Vector3::x());
        let mut ws = Workspace::new(m);
        mass_matrix(m, &mut ws, &case.q, &mut expected).unwrap();
        mass_matrix(&other, &mut ws, &case.q, &mut found).unwrap();
        let mut own = vec![0.0; n * n];
        mass_matrix(&other, &mut Workspace::new(&other), &case.q, &mut own).unwrap();
        assert_eq!(found, own);
        mass_matrix(m, &mut ws, &case.q, &mut found).unwrap();
        assert_eq!(found, expected);
    }
}

#[test]
fn coordinates_that_are_not_finite_are_refused() {
    let mut coupled = chain(2);
    coupled.joints[1].mimic = Some(Mimic::new("joint0", 0.7, 0.2));
    for m in [build(&chain(2)), build(&coupled)] {
        let n = m.nv();
        let zero = vec![0.0; n];
        let mut a = zero.clone();
        let nan = vec![f64::NAN; n];
        let result = forward_dynamics(&m, &mut Workspace::new(&m), &nan, &zero, &zero, &mut a);
        assert!(result.unwrap_err().to_string().contains("not finite"));
    }
}

#[test]
fn wrong_sizes_are_refused() {
    let m = build(&chain(2));
    let mut ws = Workspace::new(&m);
    let (two, three) = ([0.0; 2], [0.0; 3]);
    let wrong = |what, expected, found| Err(Error::Dimension { what, expected, found });
    assert_eq!(forward_kinematics(&m, &mut ws, &three), wrong("position vector", 2, 3));
    assert_eq!(body_accelerations(&m, &mut ws, &two, &three, &two), wrong("velocity vector", 2, 3));
    assert_eq!(body_accelerations(&m, &mut ws, &two, &two, &three), wrong("acceleration vector", 2, 3));
    let out = &mut [0.0; 7];
    assert_eq!(mass_matrix(&m, &mut ws, &two, out), wrong("mass matrix", 4, 7));
    assert_eq!(bias_forces(&m, &mut ws, &two, &two, out), wrong("bias force vector", 2, 7));
    assert_eq!(gravity_forces(&m, &mut ws, &two, out), wrong("gravity force vector", 2, 7));
    assert_eq!(gravity_regressor(&m, &mut ws, &two, out), wrong("gravity regressor", 40, 7));
    assert_eq!(
        kinetic_energy_regressor(&m, &mut ws, &two, &two, out),
        wrong("kinetic energy regressor", 20, 7)
    );
    assert_eq!(
        potential_energy_regressor(&m, &mut ws, &two, out),
        wrong("potential energy regressor", 20, 7)
    );
    let regressor = momentum_regressor(&m, &mut ws, &two, &two, Frame::World, out);
    assert_eq!(regressor, wrong("momentum regressor", 120, 7));
    let regressor = base_wrench_regressor(&m, &mut ws, &two, &two, &two, out);
    assert_eq!(regressor, wrong("base wrench regressor", 120, 7));
    let frame = Pose::identity();
    assert_eq!(frame_jacobian(&m, &mut ws, &two, 0, &frame, out), wrong("Jacobian", 12, 7));
    let beyond = frame_jacobian(&m, &mut ws, &two, 2, &frame, &mut [0.0; 12]).unwrap_err();
    assert_eq!(beyond.to_string(), "there is no body 2: the mechanism has 2");
    assert_eq!(forward_dynamics(&m, &mut ws, &two, &two, &three, out), wrong("force vector", 2, 3));
    assert_eq!(forward_dynamics(&m, &mut ws, &two, &two, &two, out), wrong("acceleration vector", 2, 7));
    let other = build(&chain(3));
    assert_eq!(forward_kinematics(&other, &mut ws, &three), wrong("workspace", 3, 2));
    // The same number of bodies, but another number of coordinates.
    let mut coupled = chain(2);
    coupled.joints[1].mimic = Some(Mimic::new("joint0", 1.0, 0.0));
    assert_eq!(forward_kinematics(&build(&coupled), &mut ws, &[0.0]), wrong("workspace", 1, 2));
}
