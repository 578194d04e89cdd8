//! Checks of the results of `analyze` for mechanisms with loops.

use inertial::dynamics::ClosedMechanism;
use inertial::identifiability::certificate::RankProblem;
use inertial::identifiability::drng::Principle;
use inertial::identifiability::loops::Loops;
use inertial::identifiability::{Analysis, AnalyzeOptions, Experiment, Method, Regime, analyze};
use inertial::linalg::rank;
use inertial::mechanism::{Base, BuildOptions, DEFAULT_SNAP, ExactGeometry, Mechanism, read};
use nalgebra::DMatrix;

use crate::common::Rng;

pub fn mechanism(text: &str) -> Mechanism {
    read::model(text, &read::no_includes).unwrap().build(&BuildOptions::default()).unwrap()
}

pub fn by(method: Method) -> AnalyzeOptions {
    AnalyzeOptions::default().with(|o| o.method = method)
}

/// Returns the null vectors as columns of unit length.
pub fn null_space(analysis: &Analysis) -> DMatrix<f64> {
    let mut out = DMatrix::zeros(analysis.parameters, analysis.null_vectors.len());
    for (k, reason) in analysis.null_vectors.iter().enumerate() {
        for &(c, x) in &reason.vector {
            out[(c, k)] = x;
        }
    }
    out.column_iter_mut().for_each(|mut c| c.unscale_mut(c.norm()));
    out
}

/// Returns joint-torque regressors at random closed states away from the assembly, with rows of unit length.
pub fn regressor(robot: &Mechanism, samples: usize, seed: u64) -> DMatrix<f64> {
    let closed = ClosedMechanism::new(robot).unwrap();
    let (mut ws, mut rng) = (closed.workspace(), Rng(seed));
    let (n, width) = (closed.dof(), robot.parameter_count());
    let mut q = closed.assembled().to_vec();
    let mut rows: Vec<f64> = Vec::new();
    for _ in 0..samples {
        for _ in 0..4 {
            let mut v = vec![0.0; robot.nv()];
            closed.velocities(&mut ws, &q, &rng.values(n, 1.0), &mut v).unwrap();
            let fastest = v.iter().fold(1.0f64, |m, x| m.max(x.abs()));
            for x in &mut v {
                *x *= 0.15 / fastest;
            }
            let mut next = q.clone();
            robot.integrate(&mut next, &v);
            let predicted = next.clone();
            // Near dead points rounding errors grow with the speed of the dependent joints, and branches meet: the step is
            // rejected.
            let stays = closed.close(&mut ws, &mut next).is_ok()
                && next.iter().zip(&predicted).all(|(x, p)| (x - p).abs() < 0.05)
                && closed.velocity_map(&mut ws, &next).is_ok_and(|g| g.amax() < 20.0);
            if stays {
                q = next;
            }
        }
        let (v, a) = (rng.values(n, 2.0), rng.values(n, 3.0));
        rows.extend_from_slice(closed.torque_regressor(&mut ws, &q, &v, &a).unwrap());
    }
    let mut y = DMatrix::from_row_slice(rows.len() / width, width, &rows);
    y.row_iter_mut().for_each(|mut r| {
        let norm = r.norm();
        if norm > 0.0 {
            r.unscale_mut(norm);
        }
    });
    y
}

/// Checks that the null vectors are independent and vanish on new motions.
pub fn check_null_vectors(name: &str, robot: &Mechanism, answer: &Analysis) {
    // Rounding errors of the closure (1e-14) and of the entries of the null vectors, larger near singular configurations.
    check_null_vectors_to(name, robot, answer, 1e-8);
}

/// Checks null vectors as [`check_null_vectors`] does, with the given tolerance.
pub fn check_null_vectors_to(name: &str, robot: &Mechanism, answer: &Analysis, tolerance: f64) {
    assert_eq!(answer.null_vectors.len(), answer.nullity, "{name}");
    assert_eq!(answer.nullity + answer.rank, answer.parameters, "{name}");
    let null = null_space(answer);
    let left = (regressor(robot, 12, 5) * &null).amax();
    assert!(left < tolerance, "{name}: {left:.1e}");
    if answer.nullity > 0 {
        let independent = rank(&null, 1e-9).unwrap();
        assert_eq!(independent.rank, answer.nullity, "{name}: {independent:?}");
    }
}

/// Returns the number of null vectors that the principles explain.
pub fn explained(answer: &Analysis) -> usize {
    answer.null_vectors.iter().filter(|r| r.kind != Principle::Computation).count()
}

/// Checks the rank with other random configurations, by pivots alone.
pub fn check_extended(name: &str, robot: &Mechanism, answer: &Analysis, snap: f64) {
    let options = AnalyzeOptions::default().with(|o| {
        o.snap = snap;
        o.seed = 11;
        o.method = Method::Numeric;
    });
    let found = analyze(robot, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(found.rank, answer.rank, "{name}: {:?}", found.certificate);
    // Random geometry with its literal numbers has no contradictions: rounding errors are at least twenty orders of magnitude
    // below the pivots.
    let margin = found.certificate.margin.unwrap_or(0.0);
    assert!(snap > 0.0 || margin > 1e20, "{name}: {:?}", found.certificate);
}

/// Checks that no principle proposes a vector that the computation rejects.
pub fn check_sound(name: &str, robot: &Mechanism) {
    let geometry = ExactGeometry::new(robot, DEFAULT_SNAP);
    let experiment = Experiment::complete(robot.base() == Base::Floating, Regime::Full);
    let order = (0..robot.parameter_count()).collect();
    let problem = RankProblem { mechanism: robot, experiment: &experiment, order, seed: 1, literal: false };
    let loops = Loops::new(&problem, &geometry, DEFAULT_SNAP).unwrap();
    let answer = problem.with_loops(&loops, false, true).unwrap();
    assert_eq!(answer.explanation.unsound, 0, "{name}");
}
