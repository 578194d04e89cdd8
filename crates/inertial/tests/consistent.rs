//! Estimates of bodies that can exist: one optimum for all solvers, whatever stops them, with priors and bounds.

#![allow(clippy::unwrap_used)]

mod common;

use common::Rng;
use common::logs::{FRICTION, Log, model, normal, simulate, true_values};
use inertial::consistency::{DEFAULT_TOLERANCE, judge};
use inertial::estimation::{
    Bounds, Consistency, ConsistentFit, Equations, LeastSquares, Method, Prior, PriorKind, Summary, Weighting,
};
use inertial::mechanism::{BodyKind, DEFAULT_SNAP, Mechanism};
use inertial::spatial::PseudoInertia;
use nalgebra::{DVector, Rotation3, Vector3};

/// A log of few noisy samples, its summary and the least-squares noise.
fn poor(mechanism: &Mechanism, equations: &Equations<'_>, count: usize, rng: &mut Rng) -> Summary {
    let mut log = simulate(mechanism, FRICTION, count, rng);
    log.tau.iter_mut().for_each(|t| *t += 2.0 * normal(rng));
    log.summary(equations)
}

fn all_possible(mechanism: &Mechanism, parameters: &[f64]) {
    let with = mechanism.clone().with_parameters(parameters).unwrap();
    for body in with.bodies().iter().filter(|b| b.kind == BodyKind::Link) {
        let verdict = judge(&body.inertia, DEFAULT_TOLERANCE).unwrap();
        assert!(verdict.is_consistent() || body.inertia.mass == 0.0, "{}: {verdict:?}", body.name);
    }
}

#[test]
fn all_solvers_find_the_one_optimum_of_whole_robots() {
    let mut rng = Rng(9);
    for (name, kind, weight) in [
        ("arm7", PriorKind::Entropic, 1.0),
        ("arm7", PriorKind::Entropic, 1e-3),
        ("arm7", PriorKind::Euclidean, 1.0),
        ("puma560", PriorKind::Entropic, 1.0),
        ("puma560", PriorKind::Euclidean, 1e-2),
        ("quadruped", PriorKind::Entropic, 0.1),
    ] {
        let mechanism = model(name);
        let equations = Equations::new(&mechanism, FRICTION, DEFAULT_SNAP).unwrap();
        let summary = poor(&mechanism, &equations, 60, &mut rng);
        let squares = LeastSquares::new(&equations, &summary, Weighting::Weighted).unwrap();
        let prior = Prior::new(&mechanism).unwrap();
        let wanted = Consistency { prior_kind: kind, ..Consistency::new(&prior, weight) };
        let reference = ConsistentFit::new(&equations, &summary, &squares, &wanted).unwrap();
        assert!(reference.converged, "{name}");
        for method in [Method::Manifold, Method::LogCholesky] {
            let wanted = Consistency { method, ..wanted.clone() };
            let what = format!("{name} {kind:?} {weight} {method:?}");
            if method == Method::LogCholesky && kind == PriorKind::Euclidean {
                assert!(ConsistentFit::new(&equations, &summary, &squares, &wanted).is_err());
                continue;
            }
            let found = ConsistentFit::new(&equations, &summary, &squares, &wanted).unwrap();
            println!("{what}: {} steps, barrier {}", found.steps, reference.steps);
            assert!(found.converged, "{what}: {:e} {:e} {:e}", found.cost, found.lower_bound, reference.cost);
            assert!((found.cost - reference.cost).abs() <= 1e-8 * reference.cost.abs(), "{what}");
            all_possible(&mechanism, &found.parameters);
        }
    }
}

#[test]
fn a_solve_stopped_at_any_step_leaves_a_robot_that_can_exist() {
    let mut rng = Rng(10);
    let mechanism = model("arm7");
    let equations = Equations::new(&mechanism, FRICTION, DEFAULT_SNAP).unwrap();
    let summary = poor(&mechanism, &equations, 60, &mut rng);
    let squares = LeastSquares::new(&equations, &summary, Weighting::Weighted).unwrap();
    let prior = Prior::new(&mechanism).unwrap();
    for (method, prior_kind) in [
        (Method::Manifold, PriorKind::Entropic),
        (Method::Manifold, PriorKind::Euclidean),
        (Method::Barrier, PriorKind::Entropic),
    ] {
        let wanted = Consistency { method, prior_kind, ..Consistency::new(&prior, 1.0) };
        let mut last = f64::INFINITY;
        for stop in (0..30).step_by(3) {
            let mut seen = 0;
            let found = ConsistentFit::watched(&equations, &summary, &squares, &wanted, |x, _| {
                all_possible(&mechanism, &x.as_slice()[..equations.regrouping.parameters]);
                seen += 1;
                seen <= stop
            })
            .unwrap();
            all_possible(&mechanism, &found.parameters);
            if method == Method::Manifold {
                assert!(found.cost <= last, "{method:?} {stop}");
                last = found.cost;
            }
        }
    }
}

#[test]
fn bounds_hold_and_cost_only_what_they_must() {
    let mut rng = Rng(11);
    let mechanism = model("arm7");
    let equations = Equations::new(&mechanism, FRICTION, DEFAULT_SNAP).unwrap();
    let summary = poor(&mechanism, &equations, 60, &mut rng);
    let squares = LeastSquares::new(&equations, &summary, Weighting::Weighted).unwrap();
    let prior = Prior::new(&mechanism).unwrap();
    let free = Consistency::new(&prior, 1e-3);
    let unbounded = ConsistentFit::new(&equations, &summary, &squares, &free).unwrap();
    let text = "[bodies.link3]\nmass = [1.0, 1.5]\n[bodies.link5]\n\
                com = { min = [-0.02, -0.02, -0.02], max = [0.02, 0.02, 0.02] }\n\
                box = { min = [-0.1, -0.1, -0.1], max = [0.1, 0.1, 0.1] }\n[bodies.link7]\n\
                ellipsoid = { centre = [0, 0, 0.05], semi_axes = [0.05, 0.06, 0.1], rpy = [0.1, 0.2, 0.3] }";
    for bounds in [Bounds::of_links(&mechanism), Bounds::from_toml(text).unwrap()] {
        let wanted = Consistency { bounds: Some(&bounds), ..free.clone() };
        let found = ConsistentFit::new(&equations, &summary, &squares, &wanted).unwrap();
        assert!(found.converged && found.cost >= unbounded.lower_bound);
        all_possible(&mechanism, &found.parameters);
        let with = mechanism.clone().with_parameters(&found.parameters).unwrap();
        for body in with.bodies().iter().filter(|b| b.kind == BodyKind::Link) {
            let Some(own) = bounds.bodies.get(&body.name) else { continue };
            let (mass, com) = (body.inertia.mass, body.inertia.com().unwrap());
            assert!(own.mass.is_none_or(|[least, most]| least <= mass && mass <= most));
            for span in own.com.iter().chain(&own.cuboid) {
                assert!((0..3).all(|i| span.min[i] <= com[i] && com[i] <= span.max[i]), "{}", body.name);
            }
            if let Some(e) = &own.ellipsoid {
                // The mean of the squared distance in semi-axes, from the second moments about the centre.
                let axes = Rotation3::from_euler_angles(e.rpy[0], e.rpy[1], e.rpy[2]);
                let p = PseudoInertia::from(&body.inertia).0;
                let shift = Vector3::from(e.centre);
                let second = p.fixed_view::<3, 3>(0, 0)
                    - (com * shift.transpose() + shift * com.transpose()) * mass
                    + shift * shift.transpose() * mass;
                let own_axes = axes.matrix().transpose() * second * axes.matrix();
                let mean: f64 = (0..3).map(|i| own_axes[(i, i)] / e.semi_axes[i].powi(2)).sum::<f64>() / mass;
                assert!(mean <= 1.0 + 1e-9, "{}: {mean}", body.name);
            }
        }
        let manifold = Consistency { method: Method::Manifold, ..wanted };
        assert!(ConsistentFit::new(&equations, &summary, &squares, &manifold).is_err());
    }
    // What contradicts itself or names no body is refused.
    for text in [
        "[bodies.link3]\nbox = { min = [0, 0, 0], max = [1, 1, 1] }\ncom = { min = [2, 2, 2], max = [3, 3, 3] }",
        "[bodies.nose]\nmass = [1, 2]",
    ] {
        let bounds = Bounds::from_toml(text).unwrap();
        let wanted = Consistency { bounds: Some(&bounds), ..free.clone() };
        assert!(ConsistentFit::new(&equations, &summary, &squares, &wanted).is_err(), "{text}");
    }
    for text in
        ["[bodies.a]\nmass = [2, 1]", "[bodies.a]\nmas = [1, 2]", "bodies = 3", "[bodies.a]\nmass = [-1, 2]"]
    {
        let message = Bounds::from_toml(text).unwrap_err().to_string();
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn standard_errors_of_the_consistent_estimate_hold() {
    const DRAWS: usize = 200;
    let mut rng = Rng(12);
    let mechanism = model("planar-2r");
    let equations = Equations::new(&mechanism, FRICTION, DEFAULT_SNAP).unwrap();
    let truth = DVector::from_vec(true_values(&equations));
    let clean = simulate(&mechanism, FRICTION, 600, &mut rng);
    let prior = Prior::new(&mechanism).unwrap();
    let noise = [0.05, 0.02];
    let (mut chi, mut freedom) = (0.0, 0.0);
    for _ in 0..DRAWS {
        let mut tau = clean.tau.clone();
        tau.iter_mut().enumerate().for_each(|(k, t)| *t += noise[k % 2] * normal(&mut rng));
        let log = Log { tau, q: clean.q.clone(), v: clean.v.clone(), a: clean.a.clone(), count: clean.count };
        let summary = log.summary(&equations);
        let squares = LeastSquares::new(&equations, &summary, Weighting::Weighted).unwrap();
        let found =
            ConsistentFit::new(&equations, &summary, &squares, &Consistency::new(&prior, 1e-3)).unwrap();
        let error = DVector::from_vec(found.values) - &truth;
        chi += error.dot(&found.covariance.clone().cholesky().unwrap().solve(&error));
        freedom += truth.len() as f64;
    }
    // As for least squares: outside 4.9 deviations once in a million. The prior's part is a thousandth here.
    let deviation: f64 = (chi - freedom) / (2.0 * freedom).sqrt();
    assert!(deviation.abs() < 4.9, "{deviation}");
}
