//! Loops: assembled to rounding, moved along, and the dynamics that is left on the independent coordinates.

mod common;
mod machines;

use common::{Rng, assert_close};
use inertial::dynamics::ClosedMechanism;

/// Residuals are in rad or relative to the loop's length; a loop of ten joints rounds to about this.
const ROUNDING: f64 = 3e-15;

/// A closed configuration at some distance from the assembly, away from dead points and on the same branch.
fn wander(closed: &ClosedMechanism<'_>, rng: &mut Rng, size: f64) -> Vec<f64> {
    let mut ws = closed.workspace();
    let mut q = closed.assembled().to_vec();
    let mut v = vec![0.0; closed.mechanism().nv()];
    let step: Vec<f64> = rng.values(closed.dof(), size / 16.0);
    for _ in 0..16 {
        closed.velocities(&mut ws, &q, &step, &mut v).unwrap();
        let mut next = q.clone();
        closed.mechanism().integrate(&mut next, &v);
        let predicted = next.clone();
        // Dependent joints that turn much faster than the independent ones announce a dead point.
        if closed.close(&mut ws, &mut next).is_err()
            || next.iter().zip(&predicted).any(|(x, p)| (x - p).abs() > 0.02)
            || closed.velocity_map(&mut ws, &next).map_or(true, |g| g.amax() > 4.0)
        {
            break;
        }
        q = next;
    }
    q
}

#[test]
fn machines_assemble_to_rounding_with_their_known_mobility() {
    for (name, mechanism, mobility) in machines::all() {
        let closed = ClosedMechanism::new(&mechanism).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut ws = closed.workspace();
        let residual = closed.residual(&mut ws, closed.assembled()).unwrap();
        println!(
            "{name}: mobility {}, independent {:?}, {} constraints of rank {:?}, residual {residual:.1e}, {:?}",
            closed.dof(),
            closed.independent_names(),
            closed.constraint_count(),
            closed.rank(),
            closed.warnings()
        );
        assert_eq!(closed.dof(), mobility, "{name}");
        assert!(residual < ROUNDING, "{name}: residual {residual:.1e}");
        // The decision on the rank is never close.
        assert!(closed.rank().margin() > 1e8, "{name}: {:?}", closed.rank());
    }
}

#[test]
fn motions_stay_closed_to_rounding() {
    let mut rng = Rng(7);
    for (name, mechanism, _) in machines::all() {
        let closed = ClosedMechanism::new(&mechanism).unwrap();
        let mut ws = closed.workspace();
        for _ in 0..5 {
            let q = wander(&closed, &mut rng, 0.6);
            let residual = closed.residual(&mut ws, &q).unwrap();
            assert!(residual < ROUNDING, "{name}: residual {residual:.1e}");
            // From there back to the assembly, and there again.
            let place = |q: &[f64]| closed.independent_positions().iter().map(|&k| q[k]).collect::<Vec<_>>();
            if closed.independent_positions().len() < closed.dof() {
                continue;
            }
            let (home, target) = (place(closed.assembled()), place(&q));
            let mut back = q.clone();
            closed.move_to(&mut ws, &mut back, &home).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_close(&back, closed.assembled(), 1e-9, &name);
            closed.move_to(&mut ws, &mut back, &target).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_close(&back, &q, 1e-9, &name);
        }
    }
}

/// The motion `t ↦ q(t)` whose independent velocities at zero are `v` and accelerations `a`, by closing each point.
fn along(closed: &ClosedMechanism<'_>, q: &[f64], v: &[f64], a: &[f64], t: f64) -> Vec<f64> {
    let mut ws = closed.workspace();
    let (nv, mechanism) = (closed.mechanism().nv(), closed.mechanism());
    let mut moved = q.to_vec();
    // Quasi-coordinates: a constant body velocity v + a t/2 over the time t moves the independent joints so that their
    // velocity at time t is v + a t to first order, which is what the differences below see.
    let step: Vec<f64> = v.iter().zip(a).map(|(v, a)| t * v + 0.5 * t * t * a).collect();
    let mut tree = vec![0.0; nv];
    closed.velocities(&mut ws, q, &step, &mut tree).unwrap();
    mechanism.integrate(&mut moved, &tree);
    closed.close(&mut ws, &mut moved).unwrap();
    moved
}

#[test]
fn velocity_and_acceleration_maps_match_finite_differences() {
    let mut rng = Rng(11);
    for (name, mechanism, _) in machines::all() {
        let closed = ClosedMechanism::new(&mechanism).unwrap();
        let mut ws = closed.workspace();
        let q = wander(&closed, &mut rng, 0.4);
        let (n, nv) = (closed.dof(), mechanism.nv());
        let (v_ind, a_ind) = (rng.values(n, 1.0), rng.values(n, 1.0));
        let (mut v, mut a) = (vec![0.0; nv], vec![0.0; nv]);
        closed.accelerations(&mut ws, &q, &v_ind, &a_ind, &mut v, &mut a).unwrap();
        let difference = |from: &[f64], to: &[f64]| {
            let mut out = vec![0.0; nv];
            for j in mechanism.joints().iter().filter(|j| j.follows.is_none()) {
                j.joint_type.difference(&from[j.q_range()], &to[j.q_range()], &mut out[j.v_range()]);
            }
            out
        };
        // Differences about q in each joint's own exponential coordinates, where second derivatives are accelerations.
        let at = |t: f64| difference(&q, &along(&closed, &q, &v_ind, &a_ind, t));
        let central = |h: f64| {
            let (ahead, behind) = (at(h), at(-h));
            let first = ahead.iter().zip(&behind).map(|(p, m)| (p - m) / (2.0 * h)).collect::<Vec<_>>();
            let second = ahead.iter().zip(&behind).map(|(p, m)| (p + m) / (h * h)).collect::<Vec<_>>();
            (first, second)
        };
        // Extrapolated to fourth order, over times in which no joint moves by more than about 1e-3: the error is 1e-12 times
        // a modest factor, that of rounding 1e-16/1e-6.
        let fastest = v.iter().map(|v| v.abs()).chain(a.iter().map(|a| a.abs().sqrt())).fold(1.0, f64::max);
        let h = 1e-3 / fastest;
        let ((v1, a1), (v2, a2)) = (central(0.5 * h), central(h));
        let extrapolated = |one: &[f64], two: &[f64]| {
            one.iter().zip(two).map(|(one, two)| (4.0 * one - two) / 3.0).collect::<Vec<_>>()
        };
        assert_close(&extrapolated(&v1, &v2), &v, 1e-6, &name);
        assert_close(&extrapolated(&a1, &a2), &a, 1e-6, &name);
    }
}
