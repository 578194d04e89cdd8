//! Linear costs over cones and guaranteed intervals, compared with closed forms, CVXPY, and bodies with known parameters.

#![allow(clippy::unwrap_used)]

use crate::common::logs::{FRICTION, model, simulate};
use crate::common::python::run;
use crate::common::{Rng, reference_regressor};
use inertial::consistency::check_rounded_inertia;
use inertial::estimation::{
    BodyBounds, Bounds, Ellipsoid, Equations, Identification, IdentifyOptions, IntervalOptions, JointTerms,
    NoiseBounds, Quantity, SensorMotion, SingleBody, Wrenches, identify,
};
use inertial::mechanism::DEFAULT_SNAP;
use inertial::optimize::Inequality;
use inertial::optimize::linear::{LinearConic, NormBound, Semidefinite};
use inertial::spatial::{Inertia, Motion, Parameters, body_regressor};
use nalgebra::{DMatrix, DVector, Matrix4, dvector};
use serde_json::{Value, json};

/// Minima over a disc of radius 2 around (1, 0), cut at x ≥ 0: the least x is 0, the least y is -2, and the least x + y is -√3 at
/// the corner (1 - 2√2 without the cut).
#[test]
fn a_disc_and_a_line() {
    let set = |cost: DVector<f64>| LinearConic {
        cost,
        semidefinite: Vec::new(),
        norms: vec![NormBound {
            rows: DMatrix::identity(2, 2),
            target: dvector![1.0, 0.0],
            slope: DVector::zeros(2),
            radius: 2.0,
        }],
        inequalities: vec![Inequality { coefficients: vec![(0, 1.0)], least: 0.0 }],
    };
    let corner = -(3.0f64.sqrt());
    for (cost, least) in [(dvector![1.0, 0.0], 0.0), (dvector![0.0, 1.0], -2.0), (dvector![1.0, 1.0], corner)]
    {
        let problem = set(cost);
        // The start is far outside the set.
        let start = problem.feasible(&dvector![-7.0, 30.0]).unwrap().unwrap();
        let found = problem.minimize(&start).unwrap();
        assert!(found.status.is_converged());
        assert!(found.lower_bound <= least + 1e-15 && found.value >= least - 1e-15, "{found:?} {least}");
        assert!((found.value - found.lower_bound).abs() < 1e-8, "{found:?}");
    }
    let mut empty = set(dvector![1.0, 0.0]);
    empty.inequalities.push(Inequality { coefficients: vec![(0, -1.0)], least: 0.5 });
    assert!(empty.feasible(&dvector![1.0, 0.0]).unwrap().is_none());
}

/// The least eigenvalue of a symmetric matrix is the largest s with `A - s 1 ⪰ 0`.
#[test]
fn eigenvalues_are_semidefinite_programs() {
    let mut rng = Rng(1);
    for _ in 0..20 {
        let a = Matrix4::from_fn(|_, _| rng.range(-1.0, 1.0));
        let a = a + a.transpose();
        let problem = LinearConic {
            cost: dvector![-1.0],
            semidefinite: vec![Semidefinite { constant: a, terms: vec![(0, -Matrix4::identity())] }],
            norms: Vec::new(),
            inequalities: Vec::new(),
        };
        let least = a.symmetric_eigenvalues().min();
        let found = problem.minimize(&dvector![least - 1.0]).unwrap();
        assert!(
            (found.value + least).abs() < 1e-8 && found.lower_bound <= -least + 1e-12,
            "{found:?} {least}"
        );
    }
}

/// The largest least eigenvalue within the printed digits of table I of paper 001 agrees with another program.
#[test]
fn digits_of_a_printed_table() {
    let path = crate::common::data::golden("consistency/icub_table1.json");
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let rows = golden["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 10);
    for row in rows {
        let ten: Vec<f64> = row["pi"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        let found =
            check_rounded_inertia(&Parameters::from_column_slice(&ten), &Parameters::repeat(0.0005)).unwrap();
        let best = row["best_min_eigenvalue_in_rounding_box"].as_f64().unwrap();
        // The other program has a tolerance of about 1e-6.
        assert!((found.best_min_eigenvalue - best).abs() < 2e-6, "{found:?} {best}");
        assert!(found.upper_bound >= found.best_min_eigenvalue);
        assert_eq!(Some(found.consistent), row["consistent_up_to_rounding"].as_bool());
    }
}

struct Bench {
    motion: SensorMotion,
    /// Regressor of the wrench (force, then moment), six rows for each sample.
    regressor: DMatrix<f64>,
    wrench: Vec<f64>,
}

/// Simulates a random motion of a sensor, with noise within `bounds` in each component.
fn bench(body: &Inertia<f64>, count: usize, bounds: [f64; 6], rng: &mut Rng) -> Bench {
    let (mut acc, mut gyro, mut alpha, mut wrench) = (vec![], vec![], vec![], vec![]);
    let mut regressor = DMatrix::zeros(6 * count, 10);
    for t in 0..count {
        let (d, w, dw) = (rng.vector(12.0), rng.vector(2.0), rng.vector(5.0));
        let y = body_regressor(&Motion::new(w, nalgebra::Vector3::zeros()), &Motion::new(dw, d));
        // The spatial vectors of the library have the moment first.
        for k in 0..6 {
            regressor.row_mut(6 * t + k).copy_from(&y.row((k + 3) % 6));
        }
        let exact = regressor.rows(6 * t, 6) * DVector::from_column_slice(body.parameters().as_slice());
        wrench.extend(exact.iter().zip(bounds).map(|(x, b)| x + rng.range(-b, b)));
        acc.extend(d.iter());
        gyro.extend(w.iter());
        alpha.extend(dw.iter());
    }
    Bench { motion: SensorMotion::from_imu(acc, gyro, alpha).unwrap(), regressor, wrench }
}

const BOUNDS: [f64; 6] = [0.3, 0.3, 0.3, 0.03, 0.03, 0.03];

fn asked(quantities: &[Quantity]) -> IdentifyOptions {
    let noise = NoiseBounds(vec![("ft.f".into(), 0.3), ("ft.t".into(), 0.03)]);
    let intervals = Some(IntervalOptions::default().with(|o| {
        o.quantities = quantities.to_vec();
        o.noise = noise;
    }));
    IdentifyOptions::default().with(|o| o.intervals = intervals)
}

fn identified(bench: &Bench, quantities: &[Quantity]) -> Identification {
    let single = SingleBody::new("bench", "tool").unwrap();
    let equations = single.equations().unwrap();
    let summary = single.summary(&equations, &bench.motion, &Wrenches::new(&bench.wrench)).unwrap();
    single.identify(&equations, &summary, None, &asked(quantities)).unwrap()
}

/// Creates a body with two small second moments: least squares leaves the cone in about every second experiment.
fn thin_body(rng: &mut Rng) -> Inertia<f64> {
    let mass = rng.range(0.3, 3.0);
    let spread = [mass * 0.01, mass * 1e-5, mass * 1e-6];
    let r = rng.rotation();
    let about: f64 = spread.iter().sum();
    let moments = nalgebra::Vector3::from(spread.map(|s| about - s));
    Inertia::from_com(mass, rng.vector(0.1), r * nalgebra::Matrix3::from_diagonal(&moments) * r.transpose())
}

#[test]
fn true_values_are_always_inside() {
    let mut rng = Rng(5);
    let all = [Quantity::Mass, Quantity::Com, Quantity::FirstMoment, Quantity::Inertia];
    let mut narrow = 0;
    for k in 0..100 {
        let body = if k % 2 == 0 { rng.inertia() } else { thin_body(&mut rng) };
        let bench = bench(&body, 25, BOUNDS, &mut rng);
        let found = identified(&bench, &all);
        assert_eq!(found.intervals.len(), 1 + 3 + 3 + 6);
        let com = body.com().unwrap();
        let ten = body.parameters();
        let truth = [vec![ten[0]], com.as_slice().to_vec(), ten.as_slice()[1..].to_vec()].concat();
        for (interval, x) in found.intervals.iter().zip(truth) {
            let (lower, upper) = (interval.lower.unwrap(), interval.upper.unwrap());
            assert!(lower <= x && x <= upper, "{k}: {interval:?} {x}");
            assert!(interval.gap.unwrap() <= 1e-6 * (upper - lower), "{interval:?}");
        }
        let mass = &found.intervals[0];
        narrow += usize::from(mass.upper.unwrap() - mass.lower.unwrap() < 0.1);
        assert_eq!(mass.name, "tool.m");
        assert_eq!(found.intervals[3].name, "tool.cz");
    }
    // 25 samples with noise of 0.3 N at 7 m/s² determine a mass to some percent.
    assert!(narrow > 90, "{narrow}");
}

#[test]
fn ends_are_those_of_cvxpy() {
    let mut rng = Rng(6);
    let (mut problems, mut found) = (Vec::new(), Vec::new());
    let all = [Quantity::Mass, Quantity::Com, Quantity::Inertia];
    for k in 0..6 {
        let body = if k % 2 == 0 { rng.inertia() } else { thin_body(&mut rng) };
        let bench = bench(&body, 30, BOUNDS, &mut rng);
        let rows: Vec<Vec<f64>> = bench.regressor.row_iter().map(|r| r.iter().copied().collect()).collect();
        problems.push(json!({"regressor": rows, "wrench": bench.wrench, "bounds": BOUNDS}));
        found.push(identified(&bench, &all).intervals);
    }
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("interval_problems.json");
    std::fs::write(&path, serde_json::to_string(&problems).unwrap()).unwrap();
    let Some(answer) = run("oracle_intervals.py", &[path.to_str().unwrap()]) else { return };
    let answers: Vec<Vec<[f64; 2]>> = serde_json::from_str(&answer).unwrap();
    for (intervals, answers) in found.iter().zip(&answers) {
        assert_eq!(intervals.len(), answers.len());
        for (interval, [lower, upper]) in intervals.iter().zip(answers) {
            let width = upper - lower;
            let close = |a: Option<f64>, b: f64| (a.unwrap() - b).abs() <= 1e-6 * width.max(b.abs());
            assert!(
                close(interval.lower, *lower) && close(interval.upper, *upper),
                "{interval:?} {lower} {upper}"
            );
        }
    }
}

/// Intervals of robots are the smallest, although many directions of their parameters are unbounded.
#[test]
fn ends_of_robots_are_those_of_cvxpy() {
    let mut rng = Rng(8);
    let (mut problems, mut found) = (Vec::new(), Vec::new());
    let robots = ["planar-2r", "scara"];
    for (name, is_limited) in robots.into_iter().flat_map(|name| [(name, false), (name, true)]) {
        let mechanism = model(name);
        let equations = Equations::new(&mechanism, JointTerms::default(), DEFAULT_SNAP).unwrap();
        let mut log = simulate(&mechanism, JointTerms::default(), 100, &mut rng);
        log.tau.iter_mut().for_each(|t| *t += rng.range(-0.2, 0.2));
        let (nq, nv) = (mechanism.nq(), mechanism.nv());
        let mut rows: Vec<Vec<f64>> = Vec::new();
        for t in 0..log.count {
            let (q, v, a) = (&log.q[t * nq..][..nq], &log.v[t * nv..][..nv], &log.a[t * nv..][..nv]);
            let y = reference_regressor(&mechanism, q, v, a);
            rows.extend(y.row_iter().map(|row| row.iter().copied().collect::<Vec<_>>()));
        }
        let bodies = mechanism.bodies().len();
        let mut problem =
            json!({"regressor": rows, "forces": log.tau, "bounds": vec![0.2; nv], "bodies": bodies});
        let mut bounds = Bounds::default();
        if is_limited {
            // Limits that contain the links of both robots.
            let (mass, radius) = (30.0, 1.0);
            problem["mass"] = json!(mass);
            problem["radius"] = json!(radius);
            let ball = Ellipsoid { centre: [0.0; 3], semi_axes: [radius; 3], rpy: [0.0; 3] };
            let body = BodyBounds::default().with(|b| {
                b.mass = Some([0.0, mass]);
                b.ellipsoid = Some(ball);
            });
            bounds.bodies = mechanism.bodies().iter().map(|b| (b.name.clone(), body.clone())).collect();
        }
        problems.push(problem);
        let options = IdentifyOptions::default().with(|o| {
            o.bounds = is_limited.then_some(bounds);
            o.intervals = Some(IntervalOptions::default().with(|o| {
                o.quantities = vec![Quantity::Mass, Quantity::FirstMoment];
                o.noise = NoiseBounds(vec![(String::new(), 0.2)]);
            }));
        });
        let intervals = identify(&equations, &log.summary(&equations), None, &options).unwrap().intervals;
        // Masses come first; the reference lists the first moments of a body after its mass.
        let (masses, moments) = intervals.split_at(bodies);
        let of_body = |b: usize| [&masses[b..=b], &moments[3 * b..3 * b + 3]].concat();
        found.push((is_limited, (0..bodies).flat_map(of_body).collect::<Vec<_>>()));
    }
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("robot_interval_problems.json");
    std::fs::write(&path, serde_json::to_string(&problems).unwrap()).unwrap();
    let Some(answer) = run("oracle_intervals.py", &[path.to_str().unwrap()]) else { return };
    let answers: Vec<Vec<[Option<f64>; 2]>> = serde_json::from_str(&answer).unwrap();
    let (mut bounded, mut unbounded) = (0, 0);
    for ((is_limited, intervals), answers) in found.iter().zip(&answers) {
        assert_eq!(intervals.len(), answers.len());
        // Without bounds the reference limits bodies to 2,000 kg, a thousand times these links, which moves ends by about the
        // inverse. With bounds both solve the same problem.
        let tolerance = if *is_limited { 1e-6 } else { 1e-3 };
        for (interval, [lower, upper]) in intervals.iter().zip(answers) {
            let width = lower.zip(*upper).map_or(1.0, |(lower, upper)| upper - lower);
            for (end, truth) in [(interval.lower, *lower), (interval.upper, *upper)] {
                let close = |(a, b): (f64, f64)| (a - b).abs() <= tolerance * width.max(b.abs());
                assert_eq!(end.is_some(), truth.is_some(), "{interval:?} {lower:?} {upper:?}");
                assert!(end.zip(truth).is_none_or(close), "{interval:?} {lower:?} {upper:?}");
                *(if end.is_some() { &mut bounded } else { &mut unbounded }) += 1;
            }
        }
    }
    assert!(bounded > 60 && unbounded > 5, "{bounded} {unbounded}");
}

#[test]
fn intervals_of_parameters_that_are_not_excited_are_unbounded() {
    let mut rng = Rng(7);
    let mechanism = model("planar-2r");
    let equations = Equations::new(&mechanism, FRICTION, DEFAULT_SNAP).unwrap();
    let mut log = simulate(&mechanism, FRICTION, 200, &mut rng);
    log.tau.iter_mut().for_each(|t| *t += rng.range(-0.2, 0.2));
    let summary = log.summary(&equations);
    let quantities = vec![Quantity::Base, Quantity::Mass];
    let intervals = |bound: f64| {
        let noise = NoiseBounds(vec![(String::new(), bound)]);
        let options = IdentifyOptions::default().with(|o| {
            o.intervals = Some(IntervalOptions::default().with(|o| {
                o.quantities.clone_from(&quantities);
                o.noise = noise;
            }));
        });
        identify(&equations, &summary, None, &options)
    };
    let found = intervals(0.2).unwrap();
    let truth = equations.regrouping.regroup(&mechanism.parameters()).unwrap();
    for (interval, x) in found.intervals.iter().zip(&truth) {
        let (lower, upper) = (interval.lower.unwrap(), interval.upper.unwrap());
        assert!(lower <= *x && *x <= upper && upper - lower < 2.0, "{interval:?} {x}");
    }
    // The first link only rotates about its axis, so its mass has no upper bound.
    let first = &found.intervals[truth.len()];
    assert_eq!(first.name, format!("{}.m", mechanism.bodies()[0].name));
    assert!(first.lower.is_some() && first.upper.is_none(), "{first:?}");
    let refused = intervals(0.01).unwrap_err().to_string();
    assert!(refused.contains("times its bound"), "{refused}");
    let unknown = NoiseBounds(vec![("elbow9".into(), 1.0)]).of(&equations.row_names()).unwrap_err();
    assert!(unknown.to_string().contains("elbow9"));
}
