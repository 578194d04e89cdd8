//! Inverse dynamics and the torque regressor: compared with each other, with simple reference algorithms, and between all
//! variants (one sample, many, packed, dense, with and without vector instructions, any number of threads).

#![allow(clippy::unwrap_used)]

use crate::common::{Case, Features, assert_close, cases, reference_regressor, reference_rnea, world_bodies};
use inertial::Error;
use inertial::dynamics::{Arithmetic, Four, FrameMotion, InverseDynamics, RegressorGradient, Samples};
use inertial::mechanism::{BodyKind, BuildOptions, JointSpec, JointType, LinkSpec, Mechanism};

/// Rounding error of a few hundred operations on well-scaled mechanisms of up to ten links.
const ROUNDING: f64 = 1e-11;

fn product(y: &[f64], p: &[f64]) -> Vec<f64> {
    y.chunks_exact(p.len()).map(|row| row.iter().zip(p).map(|(y, p)| y * p).sum()).collect()
}

fn rnea(mechanism: &Mechanism, q: &[f64], v: &[f64], a: &[f64]) -> Vec<f64> {
    let dynamics = InverseDynamics::new(mechanism);
    let mut tau = vec![f64::NAN; mechanism.nv()];
    dynamics.rnea(&mut dynamics.scratch(), q, v, a, &mut tau).expect("the sizes fit");
    tau
}

/// Returns `count` states: that of the case and random others.
fn states(case: &mut Case, count: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let (mut q, mut v, mut a) = (case.q.clone(), case.v.clone(), case.a.clone());
    for _ in 1..count {
        q.extend(case.rng.positions(&case.mechanism));
        v.extend(case.rng.values(case.mechanism.nv(), 2.0));
        a.extend(case.rng.values(case.mechanism.nv(), 4.0));
    }
    (q, v, a)
}

#[test]
fn rnea_agrees_with_world_coordinates() {
    for case in cases(600, Features::ALL) {
        let Case { mechanism, q, v, a, .. } = &case;
        let expected = reference_rnea(mechanism, q, v, a);
        assert_close(&rnea(mechanism, q, v, a), &expected, ROUNDING, "rnea");
    }
}

#[test]
fn frames_move_as_in_world_coordinates() {
    let (mut compared, mut refused) = (0, 0);
    for mut case in cases(300, Features::ALL) {
        let count = 1 + case.rng.below(6);
        let (q, v, a) = states(&mut case, count);
        let (mechanism, pose) = (&case.mechanism, case.rng.pose());
        let body = case.rng.below(mechanism.bodies().len());
        for arithmetic in [Arithmetic::Fastest, Arithmetic::Reproducible] {
            let dynamics = InverseDynamics::new(mechanism).with_arithmetic(arithmetic);
            let samples = Samples::new(&dynamics, count, &q, &v, &a).unwrap();
            let mut found: [Vec<f64>; 3] = std::array::from_fn(|_| vec![f64::NAN; 3 * count]);
            let [acceleration, angular_velocity, angular_acceleration] = &mut found;
            let motion = FrameMotion { acceleration, angular_velocity, angular_acceleration };
            let result = dynamics.frame_motion(&mut dynamics.scratch(), &samples, body, &pose, motion);
            if mechanism.bodies()[body].kind == BodyKind::SymmetricRotor {
                assert!(result.unwrap_err().to_string().contains("no frame can be fixed to body"));
                refused += 1;
                continue;
            }
            result.unwrap();
            let mut expected: [Vec<f64>; 3] = Default::default();
            for s in 0..count {
                let (nq, nv) = (mechanism.nq(), mechanism.nv());
                let (q, own) = (&q[s * nq..(s + 1) * nq], s * nv..(s + 1) * nv);
                let world = &world_bodies(mechanism, q, &v[own.clone()], &a[own])[body];
                let frame = world.pose * pose;
                // Motion of the point of the body at the origin of the frame.
                let at = |m: &inertial::spatial::Motion<f64>| m.linear + m.angular.cross(&frame.translation);
                let proper = at(&world.acceleration) + world.velocity.angular.cross(&at(&world.velocity));
                for (out, x) in
                    expected.iter_mut().zip([proper, world.velocity.angular, world.acceleration.angular])
                {
                    out.extend(frame.rotation.tr_mul(&x).iter());
                }
            }
            for (found, expected) in found.iter().zip(&expected) {
                assert_close(found, expected, ROUNDING, "motion of a frame");
            }
            compared += 1;
        }
    }
    assert!(compared > 400 && refused > 10, "{compared} compared, {refused} refused");
}

#[test]
fn regressor_times_parameters_is_rnea() {
    for case in cases(600, Features::LINEAR) {
        let Case { mechanism, q, v, a, .. } = &case;
        let dynamics = InverseDynamics::new(mechanism);
        let mut scratch = dynamics.scratch();
        let y = dynamics.torque_regressor(&mut scratch, q, v, a).unwrap();
        assert_close(&product(y, &mechanism.parameters()), &rnea(mechanism, q, v, a), ROUNDING, "Y π");
        let reference = reference_regressor(mechanism, q, v, a).transpose();
        assert_close(y, reference.as_slice(), ROUNDING, "regressor");
    }
}

#[test]
fn armature_changes_torques_but_not_the_regressor() {
    for case in cases(100, Features::ALL) {
        let Case { mechanism, q, v, a, .. } = &case;
        let dynamics = InverseDynamics::new(mechanism);
        let mut scratch = dynamics.scratch();
        let y = dynamics.torque_regressor(&mut scratch, q, v, a).unwrap();
        let mut tau = product(y, &mechanism.parameters());
        tau.iter_mut().zip(mechanism.armature().iter().zip(a)).for_each(|(tau, (r, a))| *tau += r * a);
        assert_close(&tau, &rnea(mechanism, q, v, a), ROUNDING, "Y π + armature");
    }
}

#[test]
fn vector_instructions_change_only_rounding() {
    for case in cases(200, Features::ALL) {
        let Case { mechanism, q, v, a, .. } = &case;
        let fast = InverseDynamics::new(mechanism);
        let plain = fast.clone().with_arithmetic(Arithmetic::Reproducible);
        let (mut tau, mut other) = (vec![0.0; mechanism.nv()], vec![0.0; mechanism.nv()]);
        let (mut scratch, mut second) = (fast.scratch(), plain.scratch());
        fast.rnea(&mut scratch, q, v, a, &mut tau).unwrap();
        plain.rnea(&mut second, q, v, a, &mut other).unwrap();
        assert_close(&tau, &other, ROUNDING, "rnea");
        let y = fast.torque_regressor(&mut scratch, q, v, a).unwrap();
        assert_close(y, plain.torque_regressor(&mut second, q, v, a).unwrap(), ROUNDING, "regressor");
    }
}

/// Batches run the same operations on each sample, so they agree to the last bit; the regressor of one configuration uses another
/// order of summation.
#[test]
fn packed_dense_and_single_are_the_same() {
    for (number, mut case) in cases(200, Features::ALL).enumerate() {
        // Whole blocks of lanes and every remainder, including zero samples.
        let count = number % 10;
        let (q, v, a) = states(&mut case, count.max(1));
        let m = &case.mechanism;
        let (q, v, a) = (&q[..count * m.nq()], &v[..count * m.nv()], &a[..count * m.nv()]);
        let size = m.nv() * m.parameter_count();
        for arithmetic in [Arithmetic::Fastest, Arithmetic::Reproducible] {
            let dynamics = InverseDynamics::new(m).with_arithmetic(arithmetic);
            let mut scratch = dynamics.scratch();
            let (mut single, mut torques) = (Vec::<f64>::new(), vec![0.0; count * m.nv()]);
            for k in 0..count {
                let (rows, q) = (k * m.nv()..(k + 1) * m.nv(), &q[k * m.nq()..(k + 1) * m.nq()]);
                let (v, a) = (&v[rows.clone()], &a[rows.clone()]);
                single.extend(dynamics.torque_regressor(&mut scratch, q, v, a).unwrap());
                dynamics.rnea(&mut scratch, q, v, a, &mut torques[rows]).unwrap();
            }
            let samples = Samples::new(&dynamics, count, q, v, a).unwrap();
            let mut tau = vec![f64::NAN; count * m.nv()];
            dynamics.rnea_batch(&mut scratch, &samples, &mut tau).unwrap();
            assert_eq!(tau, torques);
            let mut stacked = vec![0.0; count * size];
            dynamics.stacked_regressor_with(&mut scratch, &samples, &mut stacked).unwrap();
            assert_close(&stacked, &single, ROUNDING, "one configuration");
            let mut unpacked = vec![0.0; count * size];
            let mut seen = 0;
            let unpack = |chunk: inertial::dynamics::PackedChunk<'_>| {
                assert_eq!(chunk.first, seen);
                seen += chunk.count;
                for (k, out) in
                    unpacked.chunks_exact_mut(size).skip(chunk.first).take(chunk.count).enumerate()
                {
                    let Some(group) = chunk.groups().nth(k / 4) else { panic!("a group is missing") };
                    for block in chunk.layout().blocks() {
                        for e in 0..block.len {
                            let to = block.row * m.parameter_count() + block.column + e;
                            out[to] = group[block.start + e].0[k % 4];
                        }
                    }
                }
            };
            dynamics.packed_regressors(&mut scratch, &samples, unpack).unwrap();
            assert_eq!(seen, count);
            assert_eq!(unpacked, stacked);
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let mut case = cases(40, Features::ALL).last().unwrap();
    // Several chunks, and a remainder.
    let count = 5003;
    let (q, v, a) = states(&mut case, count);
    let m = &case.mechanism;
    let dynamics = InverseDynamics::new(m);
    let samples = Samples::new(&dynamics, count, &q, &v, &a).unwrap();
    let mut all = [1, 2, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut out = vec![0.0; count * m.nv() * m.parameter_count()];
        pool.install(|| dynamics.stacked_regressor(&samples, &mut out)).unwrap();
        out
    });
    let first = std::mem::take(&mut all[0]);
    assert!(first.iter().any(|y| *y != 0.0));
    assert!(first == all[1] && first == all[2]);
}

/// Rows of the layout are contiguous and cover all entries that can be nonzero.
#[test]
fn layout_covers_the_regressor() {
    for case in cases(60, Features::LINEAR) {
        let Case { mechanism, q, v, a, .. } = &case;
        let dynamics = InverseDynamics::new(mechanism);
        let layout = dynamics.layout();
        let mut y = reference_regressor(mechanism, q, v, a);
        let mut next = 0;
        for row in 0..mechanism.nv() {
            assert_eq!(layout.row_entries(row).len(), layout.row(row).iter().map(|b| b.len).sum::<usize>());
            for block in layout.row(row) {
                assert_eq!((block.row, block.start), (row, next));
                next += block.len;
                (0..block.len).for_each(|e| y[(row, block.column + e)] = 0.0);
            }
        }
        assert_eq!(next, layout.len());
        // The reference computes some structural zeros by cancellation in world coordinates.
        assert!(y.amax() < 1e-10, "the layout misses {}", y.amax());
    }
}

#[test]
fn splitting_a_link_into_fixed_pieces_changes_nothing() {
    for mut case in cases(150, Features::ALL) {
        let mut split = case.builder.clone();
        for k in 0..case.builder.links.len() {
            let Some(whole) = split.links[k].inertia else { continue };
            let (piece, place) = (case.rng.inertia(), case.rng.pose());
            split.links[k].inertia = Some(whole - piece.transformed(&place));
            let (link, name) = (split.links[k].name.clone(), format!("piece{k}"));
            split.links.push(LinkSpec { name: name.clone(), inertia: Some(piece), line: None });
            let weld = JointSpec::new(format!("seam{k}"), JointType::Fixed, link, name).at(place);
            split.joints.push(weld);
        }
        let other = split.build(&BuildOptions::default()).unwrap();
        let Case { mechanism, q, v, a, .. } = &case;
        let names = |m: &Mechanism| m.parameter_names();
        assert_eq!(names(mechanism), names(&other));
        assert_close(&other.parameters(), &mechanism.parameters(), ROUNDING, "parameters");
        let (dynamics, again) = (InverseDynamics::new(mechanism), InverseDynamics::new(&other));
        let (mut scratch, mut second) = (dynamics.scratch(), again.scratch());
        let y = dynamics.torque_regressor(&mut scratch, q, v, a).unwrap();
        assert_eq!(y, again.torque_regressor(&mut second, q, v, a).unwrap());
        assert_close(&rnea(&other, q, v, a), &rnea(mechanism, q, v, a), ROUNDING, "rnea");
    }
}

/// Angles of many turns are reduced exactly; the reference uses the system library.
#[test]
fn large_angles_are_reduced_exactly() {
    for case in cases(60, Features::PLAIN) {
        let Case { mechanism, v, a, .. } = &case;
        for size in [1e3, 9.9e4, 1.1e5, 1e8] {
            let mut q = case.q.clone();
            for joint in
                mechanism.joints().iter().filter(|j| matches!(j.joint_type, JointType::Revolute { .. }))
            {
                q[joint.q] *= size;
            }
            assert_close(&rnea(mechanism, &q, v, a), &reference_rnea(mechanism, &q, v, a), ROUNDING, "rnea");
        }
    }
}

#[test]
fn wrong_sizes_are_refused() {
    let mut all = cases(9, Features::PLAIN);
    let (case, other) = (all.next().unwrap(), all.last().unwrap());
    let Case { mechanism, q, v, a, .. } = &case;
    let dynamics = InverseDynamics::new(mechanism);
    let mut scratch = dynamics.scratch();
    let mut tau = vec![0.0; mechanism.nv() + 1];
    let error = dynamics.rnea(&mut scratch, q, v, a, &mut tau).unwrap_err();
    let (expected, found) = (mechanism.nv(), mechanism.nv() + 1);
    assert_eq!(error, Error::Dimension { what: "tau", expected, found });
    assert!(dynamics.torque_regressor(&mut scratch, &q[1..], v, a).is_err());
    let mut foreign = InverseDynamics::new(&other.mechanism).scratch();
    assert!(dynamics.torque_regressor(&mut foreign, q, v, a).is_err());
    assert!(Samples::new(&dynamics, 2, q, v, a).is_err());
    let samples = Samples::new(&dynamics, 1, q, v, a).unwrap();
    assert!(dynamics.rnea_batch(&mut scratch, &samples, &mut tau).is_err());
    assert!(dynamics.stacked_regressor(&samples, &mut [0.0]).is_err());
    assert!(dynamics.packed_regressors(&mut foreign, &samples, |_| ()).is_err());
}

/// The backward recursion agrees with finite differences of the forward one for every joint type, rotors and couplings.
#[test]
fn gradients_of_weighted_regressors_are_those_of_finite_differences() {
    for mut case in cases(60, Features::ALL) {
        let m = &case.mechanism;
        let (nq, nv, np) = (m.nq(), m.nv(), m.parameter_count());
        let dynamics = InverseDynamics::new(m);
        let size = dynamics.layout().len();
        let mut scratch = dynamics.scratch();
        // Two different samples, to distinguish the lanes.
        let other = case.rng.positions(m);
        let q = [case.q.clone(), other].concat();
        let v = [case.v.clone(), case.rng.values(nv, 2.0)].concat();
        let a = [case.a.clone(), case.rng.values(nv, 4.0)].concat();
        let g = [case.rng.values(size, 1.0), case.rng.values(size, 1.0)];
        let weights: Vec<Four> = (0..size).map(|e| Four([g[0][e], g[1][e], 7.0, 7.0])).collect();
        let mut out = [vec![0.0; 2 * nv], vec![0.0; 2 * nv], vec![0.0; 2 * nv]];
        let [gq, gv, ga] = &mut out;
        let samples = Samples::new(&dynamics, 2, &q, &v, &a).unwrap();
        RegressorGradient::new(&dynamics)
            .run(&dynamics, &mut scratch, &samples, &weights, [gq, gv, ga])
            .unwrap();
        for s in 0..2 {
            let mut sum = |q: &[f64], v: &[f64], a: &[f64]| {
                let y = dynamics.torque_regressor(&mut scratch, q, v, a).unwrap();
                let blocks = dynamics.layout().blocks().iter();
                blocks
                    .flat_map(|b| (0..b.len).map(move |k| (b.row * np + b.column + k, b.start + k)))
                    .map(|(dense, e)| y[dense] * g[s][e])
                    .sum::<f64>()
            };
            let (q, v, a) = (&q[s * nq..(s + 1) * nq], &v[s * nv..(s + 1) * nv], &a[s * nv..(s + 1) * nv]);
            let h = 1e-5;
            let size = sum(q, v, a).abs() + 100.0;
            for i in 0..nv {
                let moved = |sign: f64| {
                    let mut q = q.to_vec();
                    let mut step = vec![0.0; nv];
                    step[i] = sign * h;
                    m.integrate(&mut q, &step);
                    q
                };
                let shifted = |x: &[f64], sign: f64| {
                    let mut x = x.to_vec();
                    x[i] += sign * h;
                    x
                };
                let differences = [
                    sum(&moved(1.0), v, a) - sum(&moved(-1.0), v, a),
                    sum(q, &shifted(v, 1.0), a) - sum(q, &shifted(v, -1.0), a),
                    sum(q, v, &shifted(a, 1.0)) - sum(q, v, &shifted(a, -1.0)),
                ];
                for (found, difference) in out.iter().zip(differences) {
                    // Central differences have errors of h² times third derivatives and of rounding over h; rotors with high
                    // ratios make both large, in proportion to the gradient itself.
                    let found = found[s * nv + i];
                    let error = (found - difference / (2.0 * h)).abs();
                    assert!(error < 1e-6 * (size + found.abs()), "{found} {}", difference / (2.0 * h));
                }
            }
        }
    }
}
