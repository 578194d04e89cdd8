//! The conic least-squares solver against optima known in other ways.

use inertial::optimize::barrier::{Cone, ConicLeastSquares, Options};
use inertial::spatial::{Inertia, Parameters, PseudoInertia};
use nalgebra::{DMatrix, DVector, Matrix4, SVector};

/// The pseudo-inertia of each unit parameter.
fn basis() -> [Matrix4<f64>; 10] {
    std::array::from_fn(|i| {
        let mut unit = Parameters::zeros();
        unit[i] = 1.0;
        PseudoInertia::from(&Inertia::from_parameters(&unit)).0
    })
}

fn numbers(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64) / ((1u64 << 52) as f64) - 1.0
    }
}

fn random_body(next: &mut impl FnMut() -> f64) -> SVector<f64, 10> {
    let f = Matrix4::from_fn(|_, _| next());
    PseudoInertia(f * f.transpose()).to_inertia().parameters()
}

fn problem(
    a: &DMatrix<f64>,
    b: &DVector<f64>,
    cones: Vec<Cone>,
    nonnegative: Vec<usize>,
) -> ConicLeastSquares {
    ConicLeastSquares {
        gram: a.transpose() * a,
        rhs: a.transpose() * b,
        constant: 0.5 * b.norm_squared(),
        cones,
        nonnegative,
    }
}

fn cone(offset: usize) -> Cone {
    Cone { offset, basis: basis(), prior_weight: 0.0, prior: Matrix4::identity() }
}

fn unit_body() -> SVector<f64, 10> {
    PseudoInertia(Matrix4::identity()).to_inertia().parameters()
}

#[test]
fn finds_the_unconstrained_optimum_where_it_is_feasible() {
    let mut next = numbers(7);
    for _ in 0..20 {
        let a = DMatrix::from_fn(30, 11, |_, _| next());
        let mut x = DVector::zeros(11);
        x.rows_mut(0, 10).copy_from(&random_body(&mut next));
        x[10] = 0.5;
        let mut start = DVector::from_element(11, 1.0);
        start.rows_mut(0, 10).copy_from(&unit_body());
        let solution = problem(&a, &(&a * &x), vec![cone(0)], vec![10])
            .solve(&start, &Options::default(), |_, _| true)
            .unwrap();
        assert!(solution.converged, "gap {:e} of {:e}", solution.gap(), solution.cost);
        // The cost vanishes at the truth; what the barrier leaves is bounded by the gap.
        assert!(solution.cost < 1e-10 * (&a * &x).norm_squared());
    }
}

#[test]
fn projects_on_the_cone_as_eigenvalues_do() {
    // With orthonormal coordinates of symmetric matrices the least-squares problem is the Frobenius projection on the
    // cone, whose answer is known: negative eigenvalues become zero.
    let mut next = numbers(3);
    let basis = basis();
    for _ in 0..20 {
        let f = Matrix4::from_fn(|_, _| next());
        let target = (f + f.transpose()) * 0.5;
        let a = DMatrix::from_fn(16, 10, |i, j| basis[j].as_slice()[i]);
        let b = DVector::from_column_slice(target.as_slice());
        let start = DVector::from_column_slice(unit_body().as_slice());
        let found =
            problem(&a, &b, vec![cone(0)], vec![]).solve(&start, &Options::default(), |_, _| true).unwrap();
        let eigen = inertial::linalg::symmetric_eigen(&target).unwrap();
        let negative: f64 = eigen.values.iter().map(|v| v.min(0.0).powi(2)).sum();
        assert!(found.converged);
        // The gap asked for is 1e-9 of the cost.
        assert!(
            (found.cost - 0.5 * negative).abs() <= 2e-9 * found.cost + 1e-14,
            "{} {}",
            found.cost,
            negative
        );
        assert!(found.lower_bound <= 0.5 * negative * (1.0 + 1e-12) + 1e-15);
    }
}

#[test]
fn the_prior_alone_is_reached_and_its_bound_is_tight() {
    let mut next = numbers(11);
    let body = random_body(&mut next);
    let prior = PseudoInertia::from(&Inertia::from_parameters(&body)).0;
    let mut with_prior = cone(0);
    with_prior.prior_weight = 0.3;
    with_prior.prior = prior.try_inverse().unwrap();
    let a = DMatrix::zeros(1, 10);
    let start = DVector::from_column_slice(unit_body().as_slice());
    let found = problem(&a, &DVector::zeros(1), vec![with_prior], vec![])
        .solve(&start, &Options::default(), |_, _| true)
        .unwrap();
    let expected = 0.3 * (4.0 - prior.determinant().ln());
    assert!((found.cost - expected).abs() < 1e-8 * expected.abs());
    assert!(found.lower_bound <= expected + 1e-12);
    // The cost is flat at its minimum: the parameters are known to the root of the gap.
    assert!((found.x - DVector::from_column_slice(body.as_slice())).amax() < 1e-3);
}

#[test]
fn every_iterate_is_feasible_and_a_stop_is_obeyed() {
    let mut next = numbers(5);
    let a = DMatrix::from_fn(40, 20, |_, _| next());
    let b = DVector::from_fn(40, |_, _| next());
    let mut start = DVector::zeros(20);
    start.rows_mut(0, 10).copy_from(&unit_body());
    start.rows_mut(10, 10).copy_from(&unit_body());
    let problem = problem(&a, &b, vec![cone(0), cone(10)], vec![]);
    let mut seen = 0;
    let stopped = problem
        .solve(&start, &Options::default(), |x, _| {
            assert!(problem.cones.iter().all(|c| c.matrix(x).cholesky().is_some()));
            seen += 1;
            seen < 5
        })
        .unwrap();
    assert_eq!((seen, stopped.steps, stopped.converged), (5, 4, false));
    let done = problem.solve(&start, &Options::default(), |_, _| true).unwrap();
    assert!(done.converged && done.cost <= stopped.cost);
    println!("{} Newton steps", done.steps);
    assert!(problem.solve(&DVector::zeros(20), &Options::default(), |_, _| true).is_err());
}
