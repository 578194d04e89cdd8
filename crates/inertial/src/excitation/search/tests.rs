//! Tests of criteria, limits and information against finite differences and the regressor.

use super::*;
use crate::excitation::random_states::random_states;
use crate::excitation::{Basis, Coordinate, DefaultLimits, JointColumn, Profile, Stribeck, coordinates};
use crate::identifiability::{AnalyzeOptions, analyze};
use crate::linalg::{Number, SplitMix};
use crate::mechanism::{Base, BuildOptions, JointType, builtin};
use nalgebra::vector;

const EVERY: [Criterion; 8] = [
    Criterion::D,
    Criterion::A,
    Criterion::E,
    Criterion::CramerRao,
    Criterion::Worst,
    Criterion::Condition,
    Criterion::ScaledCondition,
    Criterion::Paper { weight: 3.0 },
];

const BENT: Stribeck = Stribeck { force: 0.8, speed: 0.6, exponent: 1.5 };

fn model(mechanism: &Mechanism) -> Model<'_> {
    let dynamics = InverseDynamics::new(mechanism);
    let regrouping = analyze(mechanism, &AnalyzeOptions::default()).unwrap().regrouping;
    let moving = |v: &usize| {
        let joint = mechanism.joints().iter().find(|j| j.v_range().contains(v)).unwrap();
        !matches!(joint.joint_type, JointType::Floating)
    };
    let kinds = [
        JointColumn::Viscous,
        JointColumn::Offset,
        JointColumn::RotorInertia,
        JointColumn::CoulombPositive,
        JointColumn::Stribeck(BENT),
        JointColumn::StribeckVelocity(BENT),
    ];
    let terms: Vec<_> = (0..mechanism.nv()).filter(moving).flat_map(|v| kinds.map(|k| (v, k))).collect();
    let noise: Vec<f64> = (0..mechanism.nv()).map(|v| 0.1 + 0.02 * v as f64).collect();
    let columns = Columns::new(mechanism, &dynamics, &regrouping, &terms, &noise).unwrap();
    Model {
        mechanism,
        dynamics,
        scales: columns.scales(),
        // Large enough to keep rounding errors below the differences of the smallest eigenvalue.
        prior: Some(DMatrix::identity(columns.len(), columns.len())),
        columns,
        effort: vec![20.0; mechanism.nv()],
        damping: vec![0.3; mechanism.nv()],
        friction: vec![0.1; mechanism.nv()],
    }
}

fn collisions(mechanism: &Mechanism) -> CollisionModel {
    let capsules = CollisionModel::along_links(mechanism, 0.04);
    CollisionModel {
        pairs: CollisionModel::candidate_pairs(mechanism, &capsules),
        capsules,
        workspace: Some([vector![-1.0, -1.0, -1.0], vector![1.0, 1.0, 1.0]]),
        ground: Some(-0.3),
        clearance: 0.01,
    }
}

fn small(coordinates: Vec<Coordinate>) -> Vec<Coordinate> {
    coordinates.into_iter().map(|c| Coordinate { lower: -1.0, upper: 1.2, ..c }).collect()
}

/// Compares criterion, torques and distances with finite differences, for a fixed arm and a moving base.
#[test]
fn gradients_are_those_of_finite_differences() {
    let arm = builtin::get("arm7").unwrap().build(&BuildOptions::default()).unwrap();
    let floating = BuildOptions { base: Some(Base::Floating), ..BuildOptions::default() };
    let quadruped = builtin::get("quadruped").unwrap().build(&floating).unwrap();
    let knots = (0..=12).map(|k| f64::from(k) * 0.25).collect();
    for (mechanism, basis) in [
        (&arm, Basis::Fourier { period: 3.0, harmonics: 4 }),
        (&arm, Basis::PointToPoint { knots, profile: Profile::Cycloid }),
        (&quadruped, Basis::Spline { degree: 5, duration: 3.0, points: 9 }),
    ] {
        let limits = DefaultLimits { base: Some([0.2, 0.5]), ..DefaultLimits::default() };
        let free = small(coordinates(mechanism, &limits));
        let plan = Plan::new(mechanism, free, basis, 3.0, None).unwrap();
        for criterion in EVERY {
            let task = Task::new(
                vec![model(mechanism), model(mechanism)],
                plan.clone(),
                collisions(mechanism),
                criterion,
                if criterion == Criterion::A { ModelAggregation::Worst } else { ModelAggregation::Mean },
            );
            check(&task);
        }
    }
}

fn check(task: &Task<'_>) {
    // 31 samples, which is not a multiple of the lanes.
    let table = task.plan.table(10.0).unwrap();
    let mut search = Search::new(task, &table, 0.0, 1.0);
    let n = search.dimension();
    let mut random = SplitMix::new(5);
    let x: Vec<f64> = (0..n).map(|_| 0.5 * f64::random(&mut random)).collect();
    let direction: Vec<f64> = (0..n).map(|_| f64::random(&mut random)).collect();
    let moved = |h: f64| -> Vec<f64> { x.iter().zip(&direction).map(|(x, d)| x + h * d).collect() };
    let along = |g: &[f64]| g.iter().zip(&direction).map(|(g, d)| g * d).sum::<f64>();
    let mut gradient = vec![0.0; n];
    let value = search.objective(&x, Some(&mut gradient));
    assert!(value.is_finite());
    let h = 1e-5;
    let difference = (search.objective(&moved(h), None) - search.objective(&moved(-h), None)) / (2.0 * h);
    // Errors of central differences: h² times third derivatives, and rounding divided by h; the smallest eigenvalue of a matrix
    // with entries of 1e4 has a rounding error of 1e-12.
    let found = along(&gradient);
    assert!(
        (found - difference).abs() < 1e-4 * (found.abs() + difference.abs() + 0.1 * value.abs()) + 1e-12 / h,
        "{:?} {found} {difference}",
        task.criterion
    );
    if task.criterion != Criterion::D {
        return;
    }
    for f in 0..task.limits.len() {
        let i = (7 * f) % table.count;
        let mut value = |x: &[f64]| {
            search.move_to(x).unwrap();
            search.values[f][i]
        };
        let difference = (value(&moved(h)) - value(&moved(-h))) / (2.0 * h);
        let mut gradient = vec![0.0; n];
        search.add_gradient(&x, f * table.count + i, 1.0, &mut gradient);
        let found = along(&gradient);
        // Closest points of segments may jump from end to end: the distance has kinks, at which differences are wrong.
        let tolerance = if matches!(task.limits[f], Limit::Collision(_)) { 1e-3 } else { 1e-6 };
        assert!(
            (found - difference).abs() < tolerance * (1.0 + found.abs()),
            "{:?} {found} {difference}",
            task.limits[f]
        );
    }
}

/// Compares the information with the regressor, one sample after the other.
fn bent(v: f64, speed: f64) -> f64 {
    v.signum() * (-(v.abs() / speed).powf(BENT.exponent)).exp()
}

#[test]
fn information_is_that_of_the_stacked_regressor() {
    let arm = builtin::get("arm7").unwrap().build(&BuildOptions::default()).unwrap();
    let m = model(&arm);
    let states = random_states(&arm, 37, None, 3);
    let found = Evaluator::new(&m.dynamics, &m.columns).information(&states).unwrap();
    let regrouping = analyze(&arm, &AnalyzeOptions::default()).unwrap().regrouping;
    let (n, nq, nv, np) = (m.columns.len(), arm.nq(), arm.nv(), arm.parameter_count());
    let mut expected = DMatrix::<f64>::zeros(n, n);
    let mut scratch = m.dynamics.scratch();
    for i in 0..states.count {
        let (q, v, a) = (
            &states.q[i * nq..(i + 1) * nq],
            &states.v[i * nv..(i + 1) * nv],
            &states.a[i * nv..(i + 1) * nv],
        );
        let y = m.dynamics.torque_regressor(&mut scratch, q, v, a).unwrap();
        for r in 0..nv {
            let mut row = nalgebra::DVector::zeros(n);
            regrouping.base.iter().enumerate().for_each(|(k, &c)| row[k] = y[r * np + c]);
            for (k, &(w, term)) in m.columns.terms.iter().enumerate().filter(|(_, t)| t.0 == r) {
                row[m.columns.base + k] = match term {
                    JointColumn::Viscous => v[w],
                    JointColumn::Offset => 1.0,
                    JointColumn::RotorInertia => a[w],
                    JointColumn::CoulombPositive => f64::from(v[w] > 0.0),
                    JointColumn::Stribeck(_) => bent(v[w], BENT.speed),
                    // Derivative with respect to the Stribeck speed, times the force, by finite differences.
                    JointColumn::StribeckVelocity(_) => {
                        let h = 1e-5;
                        let rise = bent(v[w], BENT.speed + h) - bent(v[w], BENT.speed - h);
                        BENT.force * rise / (2.0 * h)
                    }
                    _ => unreachable!(),
                };
            }
            row /= 0.1 + 0.02 * r as f64;
            expected += &row * row.transpose();
        }
    }
    // Sums of a few hundred products, in another order; the differences with respect to the Stribeck speed are accurate to 1e-9.
    assert!((&found - &expected).amax() < 1e-9 * expected.amax());
    // The rotors of the joint on the ground and of the next joint, perpendicular to it, act like the inertia of their links about
    // the axis.
    assert_eq!(m.columns.absorbed.len(), 2);
}

#[test]
fn constraints_farthest_from_active_are_left_out() {
    let near = |f: usize, value: f64| Near { f, i: 0, value, entries: 10 };
    let all = vec![near(0, -0.1), near(1, -0.4), near(2, 0.2), near(3, -0.3)];
    assert_eq!(most_binding(all.clone(), 40), all);
    assert_eq!(most_binding(all.clone(), 39), [all[0], all[2], all[3]]);
    assert_eq!(most_binding(all.clone(), 20), [all[0], all[2]]);
    assert_eq!(most_binding(all, 9), []);
}
