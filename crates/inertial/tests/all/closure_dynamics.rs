//! Dynamics of mechanisms with loops on their independent coordinates.

#![allow(clippy::unwrap_used)]

use crate::common;
use crate::common::data::golden;
use crate::machines;

use crate::common::{Rng, assert_close, reference_regressor, reference_rnea};
use inertial::dynamics::{ClosedMechanism, ClosedWorkspace, Frame, Samples, Workspace};
use inertial::mechanism::read::{model, no_includes};
use inertial::mechanism::{BodyKind, BuildOptions, JointType, Mechanism, MechanismBuilder, builtin};
use inertial::spatial::{Force, Inertia};
use nalgebra::{DMatrix, DVector, Vector3};

/// Motion state: configuration of the tree, velocities and accelerations of the independent coordinates.
struct State {
    q: Vec<f64>,
    v: Vec<f64>,
    a: Vec<f64>,
}

/// Returns a random motion state near the assembly, away from dead points.
fn state(closed: &ClosedMechanism<'_>, ws: &mut ClosedWorkspace, rng: &mut Rng) -> State {
    let mut q = closed.assembled().to_vec();
    let mut v = vec![0.0; closed.mechanism().nv()];
    let step = rng.values(closed.dof(), 0.05);
    for _ in 0..8 {
        let mut next = q.clone();
        closed.velocities(ws, &q, &step, &mut v).unwrap();
        closed.mechanism().integrate(&mut next, &v);
        if closed.close(ws, &mut next).is_err()
            || closed.velocity_map(ws, &next).map_or(true, |g| g.amax() > 4.0)
        {
            break;
        }
        q = next;
    }
    State { q, v: rng.values(closed.dof(), 1.0), a: rng.values(closed.dof(), 2.0) }
}

fn inverse(closed: &ClosedMechanism<'_>, ws: &mut ClosedWorkspace, s: &State) -> Vec<f64> {
    let mut tau = vec![0.0; closed.dof()];
    closed.inverse_dynamics(ws, &s.q, &s.v, &s.a, &mut tau).unwrap();
    tau
}

#[test]
fn forces_are_the_projected_forces_of_the_tree_and_linear_in_the_parameters() {
    let mut rng = Rng(31);
    for (name, mechanism, _) in machines::all() {
        let closed = ClosedMechanism::new(&mechanism).unwrap();
        let mut ws = closed.workspace();
        let s = state(&closed, &mut ws, &mut rng);
        let nv = mechanism.nv();
        let (mut v, mut a) = (vec![0.0; nv], vec![0.0; nv]);
        closed.accelerations(&mut ws, &s.q, &s.v, &s.a, &mut v, &mut a).unwrap();
        let g = closed.velocity_map(&mut ws, &s.q).unwrap().clone();
        let tau = inverse(&closed, &mut ws, &s);
        // Equal up to the order of summation; the projection amplifies rounding errors by a small factor.
        let expected = g.transpose() * DVector::from_vec(reference_rnea(&mechanism, &s.q, &v, &a));
        assert_close(&tau, expected.as_slice(), 1e-12, &name);
        let y = closed.torque_regressor(&mut ws, &s.q, &s.v, &s.a).unwrap().to_vec();
        let reference = g.transpose() * reference_regressor(&mechanism, &s.q, &v, &a);
        assert_close(&y, reference.transpose().as_slice(), 1e-12, &name);
        let y = DMatrix::from_row_slice(closed.dof(), mechanism.parameter_count(), &y);
        let from_parameters = y * DVector::from_vec(mechanism.parameters());
        assert_close(from_parameters.as_slice(), &tau, 1e-11, &name);
    }
}

#[test]
fn mass_matrix_energy_and_forward_dynamics_agree_with_inverse_dynamics() {
    let mut rng = Rng(32);
    for (name, mechanism, _) in machines::all() {
        let closed = ClosedMechanism::new(&mechanism).unwrap();
        let mut ws = closed.workspace();
        let s = state(&closed, &mut ws, &mut rng);
        let n = closed.dof();
        let tau = inverse(&closed, &mut ws, &s);
        let (mut h, mut bias) = (vec![0.0; n * n], vec![0.0; n]);
        closed.mass_matrix(&mut ws, &s.q, &mut h).unwrap();
        closed.bias_forces(&mut ws, &s.q, &s.v, &mut bias).unwrap();
        let h = DMatrix::from_row_slice(n, n, &h);
        let sum = &h * DVector::from_vec(s.a.clone()) + DVector::from_vec(bias);
        assert_close(sum.as_slice(), &tau, 1e-11, &name);
        let v = DVector::from_vec(s.v.clone());
        let kinetic = closed.kinetic_energy(&mut ws, &s.q, &s.v).unwrap();
        assert_close(&[0.5 * v.dot(&(&h * &v))], &[kinetic], 1e-12, &name);
        let mut row = vec![0.0; mechanism.parameter_count()];
        closed.kinetic_energy_regressor(&mut ws, &s.q, &s.v, &mut row).unwrap();
        let from_parameters: f64 = row.iter().zip(mechanism.parameters()).map(|(y, p)| y * p).sum();
        assert_close(&[from_parameters], &[kinetic], 1e-11, &name);
        // Only gravity forces remain at rest.
        let mut gravity = vec![0.0; n];
        closed.gravity_forces(&mut ws, &s.q, &mut gravity).unwrap();
        let still = State { q: s.q.clone(), v: vec![0.0; n], a: vec![0.0; n] };
        assert_close(&gravity, &inverse(&closed, &mut ws, &still), 1e-12, &name);
        let mut a = vec![0.0; n];
        match closed.forward_dynamics(&mut ws, &s.q, &s.v, &tau, &mut a) {
            // Rounding errors are multiplied by the condition number of the mass matrix.
            Ok(()) => assert_close(&a, &s.a, 1e-8, &name),
            Err(e) => panic!("{name}: {e}"),
        }
    }
}

/// Returns the energy at time `t` of the motion that starts with these velocities and accelerations.
fn energy(closed: &ClosedMechanism<'_>, ws: &mut ClosedWorkspace, s: &State, t: f64) -> f64 {
    let step: Vec<f64> = s.v.iter().zip(&s.a).map(|(v, a)| t * v + 0.5 * t * t * a).collect();
    let mut tree = vec![0.0; closed.mechanism().nv()];
    closed.velocities(ws, &s.q, &step, &mut tree).unwrap();
    let mut q = s.q.clone();
    closed.mechanism().integrate(&mut q, &tree);
    closed.close(ws, &mut q).unwrap();
    let v: Vec<f64> = s.v.iter().zip(&s.a).map(|(v, a)| v + t * a).collect();
    closed.kinetic_energy(ws, &q, &v).unwrap() + closed.potential_energy(ws, &q).unwrap()
}

#[test]
fn power_of_the_independent_forces_is_the_rate_of_energy() {
    let mut rng = Rng(33);
    for (name, mechanism, _) in machines::all() {
        let closed = ClosedMechanism::new(&mechanism).unwrap();
        let mut ws = closed.workspace();
        let s = state(&closed, &mut ws, &mut rng);
        let tau = inverse(&closed, &mut ws, &s);
        let power: f64 = tau.iter().zip(&s.v).map(|(t, v)| t * v).sum();
        let size: f64 = tau.iter().zip(&s.v).map(|(t, v)| (t * v).abs()).sum();
        // Central differences extrapolated to fourth order over times in which no joint moves by more than about 1e-3: truncation
        // error (1e-3)⁴ times moderate derivatives, rounding error 1e-15/1e-3.
        let (mut v, mut a) = (vec![0.0; mechanism.nv()], vec![0.0; mechanism.nv()]);
        closed.accelerations(&mut ws, &s.q, &s.v, &s.a, &mut v, &mut a).unwrap();
        let fastest = v.iter().map(|v| v.abs()).chain(a.iter().map(|a| a.abs().sqrt())).fold(1.0, f64::max);
        let mut central =
            |h: f64| (energy(&closed, &mut ws, &s, h) - energy(&closed, &mut ws, &s, -h)) / (2.0 * h);
        let found = (4.0 * central(5e-4 / fastest) - central(1e-3 / fastest)) / 3.0;
        assert!((found - power).abs() < 1e-6 * size.max(1.0), "{name}: dE/dt {found}, power {power}");
    }
}

/// Returns the quantities of a motion that do not depend on the cut.
fn invariants(
    closed: &ClosedMechanism<'_>,
    target: &[f64],
    v: &[f64],
    a: &[f64],
) -> inertial::Result<Vec<f64>> {
    let mut ws = closed.workspace();
    let mut q = closed.assembled().to_vec();
    closed.move_to(&mut ws, &mut q, target)?;
    let n = closed.dof();
    let s = State { q, v: v.to_vec(), a: a.to_vec() };
    let mut out = inverse(closed, &mut ws, &s);
    let mut h = vec![0.0; n * n];
    closed.mass_matrix(&mut ws, &s.q, &mut h).unwrap();
    out.extend(h);
    out.push(closed.kinetic_energy(&mut ws, &s.q, v).unwrap());
    out.push(closed.potential_energy(&mut ws, &s.q).unwrap());
    let mut both = |f: Force<f64>| out.extend(f.to_vector().iter());
    both(closed.momentum(&mut ws, &s.q, v, Frame::World).unwrap());
    both(closed.base_wrench(&mut ws, &s.q, v, a).unwrap());
    Ok(out)
}

#[test]
fn dynamics_do_not_depend_on_where_a_ring_is_cut() {
    let mut rng = Rng(41);
    let five = [(0.0, 0.0), (-0.3, 0.5), (0.4, 1.0), (1.1, 0.6), (0.8, 0.0)];
    let mut rings = vec![
        (machines::four_bar(&mut rng), vec![0]),
        (machines::slider_crank(&mut rng), vec![0]),
        (machines::slider_crank(&mut rng), vec![3]),
        (machines::spherical_linkage(&mut rng), vec![3]),
        (machines::bennett(&mut rng), vec![0]),
        (machines::Ring::new("five-bar", &mut rng, machines::planar(&five)), vec![0, 4]),
    ];
    rings.extend((0..12).map(|_| (machines::random_spatial_ring(&mut rng), vec![0])));
    let mut compared = 0;
    for (ring, independent) in rings {
        let target = rng.values(independent.len(), 0.1);
        let (v, a) = (rng.values(independent.len(), 1.0), rng.values(independent.len(), 1.0));
        let mut first: Option<Vec<f64>> = None;
        for cut in (0..ring.joints.len()).filter(|c| !independent.contains(c)) {
            let mechanism = ring.cut(cut, &independent);
            let found = ClosedMechanism::new(&mechanism).and_then(|closed| {
                // Several independent joints are ordered as in the tree.
                let order: Vec<usize> =
                    closed.independent_names().iter().map(|n| n[1..].parse().unwrap()).collect();
                let sorted = |x: &[f64]| {
                    let place = |i| independent.iter().position(|k| k == i).unwrap();
                    order.iter().map(|i| x[place(i)]).collect::<Vec<_>>()
                };
                let mut found = invariants(&closed, &sorted(&target), &sorted(&v), &sorted(&a))?;
                if order != independent {
                    found.swap(0, 1);
                    found.swap(2, 5);
                }
                Ok(found)
            });
            let what = format!("{} cut at {cut}", ring.name);
            match (found, &first) {
                (Ok(found), None) => first = Some(found),
                // Dependent joints may turn some ten times faster, which amplifies rounding errors in all products.
                (Ok(found), Some(expected)) => assert_close(&found, expected, 1e-10, &what),
                (Err(e), Some(_)) => panic!("{what}: {e}"),
                // Some random rings cannot be driven by their first joint, or not that far, for any cut.
                (Err(_), None) => break,
            }
        }
        compared += usize::from(first.is_some());
    }
    println!("{compared} rings compared");
    assert!(compared >= 12);
}

/// Builds the mechanism with random link inertias that are defined in the world frame at the assembly.
fn with_world_inertias(mut builder: MechanismBuilder, rng: &mut Rng) -> Mechanism {
    let bare = builder.build(&BuildOptions::default()).unwrap();
    let mut ws = Workspace::new(&bare);
    inertial::dynamics::forward_kinematics(&bare, &mut ws, bare.assembly()).unwrap();
    for (body, pose) in bare.bodies().iter().zip(ws.poses()).filter(|(b, _)| b.kind == BodyKind::Link) {
        let seed = body.name.bytes().fold(rng.0, |h, b| h.wrapping_mul(31).wrapping_add(u64::from(b)));
        let inertia = Rng(seed).inertia().transformed(&pose.inverse());
        let link = builder.links.iter_mut().find(|l| l.name == body.name).unwrap();
        link.inertia = Some(inertia);
    }
    builder.build(&BuildOptions::default()).unwrap()
}

#[test]
fn golden_machines_cut_differently_are_the_same_machine() {
    let folder = golden("loops");
    for (one, other) in [
        ("fourbar", "fourbar_cutC"),
        ("2rru1rrs", "2rru1rrs_tree1"),
        ("slidercrank_loopP", "slidercrank_treeP"),
    ] {
        let results = [one, other].map(|name| {
            let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
            let mechanism = with_world_inertias(model(&text, &no_includes).unwrap(), &mut Rng(8));
            let closed = ClosedMechanism::new(&mechanism).unwrap();
            let n = closed.dof();
            let mut rng = Rng(9);
            let (target, v, a) = (rng.values(n, 0.3), rng.values(n, 1.0), rng.values(n, 1.0));
            invariants(&closed, &target, &v, &a).unwrap()
        });
        assert_close(&results[0], &results[1], 1e-12, one);
    }
}

#[test]
fn without_loops_it_is_the_tree_itself() {
    for case in common::cases(40, common::Features::ALL) {
        let closed = ClosedMechanism::new(&case.mechanism).unwrap();
        let mut ws = closed.workspace();
        assert_eq!(closed.dof(), case.mechanism.nv());
        assert_eq!(closed.independent_positions().len(), case.mechanism.nq());
        let s = State { q: case.q.clone(), v: case.v.clone(), a: case.a.clone() };
        let expected = reference_rnea(&case.mechanism, &case.q, &case.v, &case.a);
        assert_close(&inverse(&closed, &mut ws, &s), &expected, 1e-12, "inverse dynamics");
        let mut q = closed.assembled().to_vec();
        closed.move_to(&mut ws, &mut q, &case.q).unwrap();
        assert_eq!(q, case.q);
    }
}

#[test]
fn a_universal_loop_joint_is_two_hinges_with_a_massless_cross() {
    // The same ring with its universal joint as loop joint, and as two hinges of which one is cut.
    let mut rng = Rng(52);
    let axes = [Vector3::x(), Vector3::new(0.6, 0.8, 0.0)];
    let hinge = |axis| JointType::Revolute { axis };
    let types =
        [hinge(Vector3::z()), JointType::Universal { axes }, JointType::Spherical, hinge(Vector3::y())];
    let ring = machines::random_ring(&mut rng, &types);
    let mut split = ring.clone();
    let frame = ring.joints[1].1;
    split.joints.splice(1..2, [(hinge(axes[0]), frame), (hinge(axes[1]), frame)]);
    split.inertias.insert(1, Inertia::zero());
    let (target, v, a) = ([0.05], [0.7], [-0.4]);
    let whole = ring.cut(1, &[0]);
    let expected = invariants(&ClosedMechanism::new(&whole).unwrap(), &target, &v, &a).unwrap();
    for cut in [1, 2] {
        let mut plan = split.cut_blueprint(cut, &[0]);
        plan.builder.massless.insert("b1".into());
        let mechanism = plan.build();
        let found = invariants(&ClosedMechanism::new(&mechanism).unwrap(), &target, &v, &a).unwrap();
        assert_close(&found, &expected, 1e-11, "split universal joint");
    }
}

#[test]
fn packed_regressors_of_many_samples_are_those_of_each_sample() {
    let mut rng = Rng(39);
    // Not a multiple of four, so that the last group is incomplete.
    let count = 7;
    for (name, mechanism, _) in machines::all() {
        let closed = ClosedMechanism::new(&mechanism).unwrap();
        let mut ws = closed.workspace();
        let (nv, n, np) = (mechanism.nv(), closed.dof(), mechanism.parameter_count());
        let states: Vec<State> = (0..count).map(|_| state(&closed, &mut ws, &mut rng)).collect();
        let join = |part: fn(&State) -> &Vec<f64>| states.iter().flat_map(part).copied().collect::<Vec<_>>();
        let (q, v, a) = (join(|s| &s.q), join(|s| &s.v), join(|s| &s.a));
        let samples = Samples::closed(&closed, count, &q, &v, &a).unwrap();
        let mut seen = 0;
        let mut other = closed.workspace();
        closed
            .packed_regressors(&mut ws, &samples, |chunk| {
                let groups: Vec<_> = chunk.regressors.groups().collect();
                for s in 0..chunk.regressors.count {
                    let state = &states[chunk.regressors.first + s];
                    let mut dense = vec![0.0; n * np];
                    for b in closed.layout().blocks() {
                        for k in 0..b.len {
                            dense[b.row * np + b.column + k] = groups[s / 4][b.start + k].0[s % 4];
                        }
                    }
                    // The vectorized and the scalar kernel sum in different orders.
                    let expected = closed.torque_regressor(&mut other, &state.q, &state.v, &state.a).unwrap();
                    assert_close(&dense, expected, 1e-11, &name);
                    let (mut tree_v, mut tree_a) = (vec![0.0; nv], vec![0.0; nv]);
                    closed
                        .accelerations(&mut other, &state.q, &state.v, &state.a, &mut tree_v, &mut tree_a)
                        .unwrap();
                    assert_eq!((chunk.v(s), chunk.a(s)), (&tree_v[..], &tree_a[..]), "{name}");
                    let map = closed.velocity_map(&mut other, &state.q).unwrap();
                    assert_eq!(chunk.map(s), map.as_slice(), "{name}");
                    seen += 1;
                }
            })
            .unwrap();
        assert_eq!(seen, count, "{name}");
    }
}

/// The regressor rows of two separate four-bars have no entries for the bodies of the other one.
#[test]
fn independent_loops_have_regressors_of_their_own() {
    let mut rng = Rng(40);
    let mut plan = machines::Blueprint::new("two four-bars");
    for side in ["left", "right"] {
        let body = |i: usize| format!("{side}{i}");
        plan.link(&body(0), rng.inertia(), "ground", machines::HINGE, machines::at(0.0, 0.0, 0.0));
        plan.link(&body(1), rng.inertia(), &body(0), machines::HINGE, machines::at(0.1, 0.4, 0.0));
        plan.link(&body(2), rng.inertia(), "ground", machines::HINGE, machines::at(0.8, -0.1, 0.0));
        plan.close(&format!("{side} loop"), &body(1), &body(2), machines::HINGE, machines::at(0.9, 0.6, 0.0));
    }
    let mechanism = plan.build();
    let closed = ClosedMechanism::new(&mechanism).unwrap();
    assert_eq!((closed.dof(), closed.layout().len()), (2, 60));
    let columns = |row| closed.layout().row(row).iter().map(|b| b.column).collect::<Vec<_>>();
    assert_eq!((columns(0), columns(1)), (vec![0, 10, 20], vec![30, 40, 50]));
}

#[test]
fn a_log_of_the_independent_joints_is_followed_on_one_branch() {
    let mechanism = machines::stewart(&mut Rng(41), false, false).build();
    let closed = ClosedMechanism::new(&mechanism).unwrap();
    let mut ws = closed.workspace();
    let (nq, n) = (mechanism.nq(), closed.dof());
    let start: Vec<f64> = closed.independent_positions().iter().map(|&k| closed.assembled()[k]).collect();
    let positions: Vec<f64> = (0..50)
        .flat_map(|s| {
            start.iter().enumerate().map(move |(i, x)| x + 0.1 * (0.1 * f64::from(s) + i as f64).sin())
        })
        .collect();
    let mut q = vec![0.0; 50 * nq];
    closed.follow(&mut ws, closed.assembled(), &positions, &mut q).unwrap();
    for (s, q) in q.chunks_exact(nq).enumerate() {
        assert!(closed.residual(&mut ws, q).unwrap() < 1e-13);
        for (i, &k) in closed.independent_positions().iter().enumerate() {
            assert_eq!(q[k], positions[s * n + i]);
        }
        // Other branches are far away: no joint moves by more than a few times the motion of the legs.
        assert!(q.iter().zip(closed.assembled()).all(|(x, y)| (x - y).abs() < 0.7), "sample {s}: {q:?}");
    }
    let mut far = positions.clone();
    far[3 * n] += 3.0;
    let error = closed.follow(&mut ws, closed.assembled(), &far, &mut q).unwrap_err().to_string();
    assert!(error.contains("sample 4: the mechanism cannot reach"), "{error}");
}

/// Tests that the work of a whole log is bounded, not only that of each sample.
#[test]
fn a_log_that_jumps_in_every_sample_is_refused() {
    let mechanism = builtin::get("four-bar").unwrap().build(&BuildOptions::default()).unwrap();
    let closed = ClosedMechanism::new(&mechanism).unwrap();
    let mut ws = closed.workspace();
    let start = closed.assembled()[closed.independent_positions()[0]];
    // Each jump needs more than 1000 rad / 0.3 rad = 3333 steps and less than the 10 000 steps of one sample: 100 000 steps are enough
    // for the first ten, but not for thirty.
    let positions: Vec<f64> = (0..31).map(|s| start + 1000.0 * f64::from(s % 2)).collect();
    let mut q = vec![0.0; positions.len() * mechanism.nq()];
    let error = closed.follow(&mut ws, closed.assembled(), &positions, &mut q).unwrap_err().to_string();
    let sample: usize = error.strip_prefix("sample ").unwrap().split(':').next().unwrap().parse().unwrap();
    assert!((11..=31).contains(&sample) && error.contains("move too far between samples"), "{error}");
}
