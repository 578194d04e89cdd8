//! Least squares over physically consistent bodies: three solvers compared with known optima and with each other.

#![allow(clippy::unwrap_used)]

use inertial::consistency::{DEFAULT_TOLERANCE, check_inertia};
use inertial::linalg::{Triangle, symmetric_eigen};
use inertial::optimize::chart::{self, Chart};
use inertial::optimize::log_cholesky::LogCholesky;
use inertial::optimize::manifold::Principal;
use inertial::optimize::{Cone, ConicLeastSquares, Inequality, Options, Solution};
use inertial::spatial::{Inertia, Parameters, PseudoInertia};
use nalgebra::{DMatrix, DVector, Matrix4, SVector};

/// Returns the pseudo-inertia of each unit parameter.
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
        rows: None,
        cones,
        nonnegative,
        inequalities: Vec::new(),
    }
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
        let solution = problem(&a, &(&a * &x), vec![Cone::new(0)], vec![10])
            .solve(&start, &Options::default(), |_, _| true)
            .unwrap();
        assert!(solution.status.is_converged(), "gap {:e} of {:e}", solution.gap(), solution.cost);
        // The cost is zero at the truth; the remainder due to the barrier is bounded by the gap.
        assert!(solution.cost < 1e-10 * (&a * &x).norm_squared());
    }
}

#[test]
fn projects_on_the_cone_as_eigenvalues_do() {
    // With orthonormal coordinates of symmetric matrices the least-squares problem is the Frobenius projection on the cone, whose
    // solution is known: negative eigenvalues become zero.
    let mut next = numbers(3);
    let basis = basis();
    for _ in 0..20 {
        let f = Matrix4::from_fn(|_, _| next());
        let target = (f + f.transpose()) * 0.5;
        let a = DMatrix::from_fn(16, 10, |i, j| basis[j].as_slice()[i]);
        let b = DVector::from_column_slice(target.as_slice());
        let start = DVector::from_column_slice(unit_body().as_slice());
        let found = problem(&a, &b, vec![Cone::new(0)], vec![])
            .solve(&start, &Options::default(), |_, _| true)
            .unwrap();
        let eigen = symmetric_eigen(&target).unwrap();
        let negative: f64 = eigen.values.iter().map(|v| v.min(0.0).powi(2)).sum();
        assert!(found.status.is_converged());
        // The requested gap is 1e-9 of the cost.
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
    let mut with_prior = Cone::new(0);
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
    // The cost is flat at its minimum: the parameters are determined to the square root of the gap.
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
    let problem = problem(&a, &b, vec![Cone::new(0), Cone::new(10)], vec![]);
    let mut seen = 0;
    let stopped = problem
        .solve(&start, &Options::default(), |x, _| {
            assert!(problem.cones.iter().all(|c| c.matrix(x).cholesky().is_some()));
            seen += 1;
            seen < 5
        })
        .unwrap();
    assert_eq!((seen, stopped.steps, stopped.status.is_converged()), (5, 4, false));
    let done = problem.solve(&start, &Options::default(), |_, _| true).unwrap();
    assert!(done.status.is_converged() && done.cost <= stopped.cost);
    assert!(problem.solve(&DVector::zeros(20), &Options::default(), |_, _| true).is_err());
}

/// Random problem with bodies, a free and a nonnegative variable, and data that no consistent body fits.
struct Random {
    problem: ConicLeastSquares,
    start: DVector<f64>,
}

fn random_problem(bodies: usize, weight: f64, rows: usize, next: &mut impl FnMut() -> f64) -> Random {
    let n = 10 * bodies + 2;
    let a = DMatrix::from_fn(rows, n, |_, _| next());
    let b = DVector::from_fn(rows, |_, _| next());
    let cones = (0..bodies).map(|k| {
        let prior = PseudoInertia::from(&Inertia::from_parameters(&random_body(next))).0;
        let prior = (prior + Matrix4::identity() * 0.1).try_inverse().unwrap();
        Cone { offset: 10 * k, prior_weight: weight, prior }
    });
    let problem = problem(&a, &b, cones.collect(), vec![n - 1]);
    let start = random_start(&problem, next);
    Random { problem, start }
}

fn random_start(problem: &ConicLeastSquares, next: &mut impl FnMut() -> f64) -> DVector<f64> {
    let mut start = DVector::from_fn(problem.len(), |_, _| next().abs() + 0.1);
    for cone in &problem.cones {
        start.rows_mut(cone.offset, 10).copy_from(&random_body(next));
    }
    start
}

fn barrier(problem: &ConicLeastSquares) -> Solution {
    let mut start = DVector::from_element(problem.len(), 1.0);
    for cone in &problem.cones {
        start.rows_mut(cone.offset, 10).copy_from(&unit_body());
    }
    let options = Options::default().with(|o| o.relative_gap = 1e-10);
    problem.solve(&start, &options, |_, _| true).unwrap()
}

/// Checks the derivatives of a chart against finite differences.
fn check_chart<C: Chart>(seed: u64) {
    let mut next = numbers(seed);
    for _ in 0..20 {
        let inside = random_body(&mut next) + unit_body() * 0.1;
        let p = PseudoInertia::from(&Inertia::from_parameters(&inside)).0;
        let at = C::new(&p).unwrap();
        assert!((at.matrix() - p).amax() < 1e-13 * p.amax());
        assert!((at.log_det() - p.determinant().ln()).abs() < 1e-10);
        let s = Matrix4::from_fn(|_, _| next());
        let s = s + s.transpose();
        let (slope, bend) = at.log_det_derivatives();
        let (jacobian, second) = (at.jacobian(), at.trace_hessian(&s));
        let unit = |i: usize, h: f64| SVector::<f64, 10>::from_fn(|k, _| if k == i { h } else { 0.0 });
        let parameters = |c: &C| PseudoInertia(c.matrix()).to_inertia().parameters();
        let value = |c: &C| s.dot(&c.matrix());
        // Differences of step h have errors of h² and of rounding over h (over h² for second derivatives).
        let h = 1e-4;
        for i in 0..10 {
            let (up, down) = (at.retract(&unit(i, h)), at.retract(&unit(i, -h)));
            let difference = (parameters(&up) - parameters(&down)) / (2.0 * h);
            assert!((difference - jacobian.column(i)).amax() < 1e-6 * p.amax().max(1.0), "{i}");
            let difference = (up.log_det() - down.log_det()) / (2.0 * h);
            assert!((difference - slope[i]).abs() < 1e-5 * slope[i].abs().max(1.0).powi(3), "{i}");
            let difference = (up.log_det() - 2.0 * at.log_det() + down.log_det()) / (h * h);
            assert!((difference - bend[i]).abs() < 1e-4 * slope[i].abs().max(1.0).powi(4), "{i}");
            for j in 0..10 {
                let corner = |a: f64, b: f64| value(&at.retract(&(unit(i, a) + unit(j, b))));
                let difference =
                    (corner(h, h) - corner(h, -h) - corner(-h, h) + corner(-h, -h)) / (4.0 * h * h);
                let error = (difference - second[(i, j)]).abs();
                assert!(
                    error < 1e-5 * p.amax().max(1.0) * s.amax(),
                    "{i} {j}: {difference} {}",
                    second[(i, j)]
                );
            }
        }
    }
}

#[test]
fn derivatives_of_both_charts_agree_with_differences() {
    check_chart::<Principal>(21);
    check_chart::<LogCholesky>(22);
}

/// Solves in a chart from a random start and checks that cost and certificate agree with the barrier solver.
fn check_solver<C: Chart>(case: &Random, reference: &Solution, what: &str) -> (Solution, usize) {
    let mut last = f64::INFINITY;
    let found = chart::solve::<C>(&case.problem, &case.start, &Options::default(), |x, cost| {
        assert!(cost <= last, "{what}: the cost rises");
        last = cost;
        for cone in &case.problem.cones {
            let values = symmetric_eigen(&cone.matrix(x)).unwrap().values;
            assert!(values[0] >= -1e-14 * values[3], "{what}: {values}");
        }
        case.problem.nonnegative.iter().all(|&j| x[j] >= 0.0)
    })
    .unwrap();
    assert!(
        found.status.is_converged(),
        "{what}: {} steps, cost {:e}, bound {:e}, optimum {:e}",
        found.steps,
        found.cost,
        found.lower_bound,
        reference.cost
    );
    assert!(found.lower_bound <= reference.cost * (1.0 + 1e-12), "{what}");
    // Each gap is 1e-9 of the cost.
    assert!((found.cost - reference.cost).abs() <= 1e-8 * reference.cost.abs(), "{what}");
    let steps = found.steps;
    (found, steps)
}

#[test]
fn the_manifold_optimum_is_the_convex_one() {
    let mut next = numbers(31);
    let (mut most, mut on_boundary) = (0, 0);
    for case in 0..60 {
        let bodies = 1 + case % 3;
        let weight = if case % 2 == 0 { 0.0 } else { 0.1f64.powf((case / 2 % 6) as f64) };
        let case_name = format!("case {case}: {bodies} bodies, weight {weight:e}");
        let random = random_problem(bodies, weight, 10 * bodies + 20, &mut next);
        let reference = barrier(&random.problem);
        assert!(
            reference.status.is_converged(),
            "{case_name}: {:e} {:e}",
            reference.cost,
            reference.lower_bound
        );
        let (found, steps) = check_solver::<Principal>(&random, &reference, &case_name);
        most = most.max(steps);
        if weight == 0.0 {
            for cone in &random.problem.cones {
                let moments = Principal::new(&cone.matrix(&found.x)).unwrap().moments;
                on_boundary += usize::from(moments.min() <= 1e-14 * moments.max());
            }
        }
    }
    println!("at most {most} steps, {on_boundary} bodies on the boundary");
    assert!(on_boundary > 30);
}

#[test]
fn log_cholesky_with_the_prior_agrees_too() {
    let mut next = numbers(41);
    let mut most = 0;
    for case in 0..40 {
        let bodies = 1 + case % 3;
        let weight = 0.1f64.powf((case / 3 % 6) as f64);
        let random = random_problem(bodies, weight, 10 * bodies + 20, &mut next);
        let reference = barrier(&random.problem);
        let (_, steps) =
            check_solver::<LogCholesky>(&random, &reference, &format!("case {case}, weight {weight:e}"));
        most = most.max(steps);
    }
    println!("at most {most} steps");
}

#[test]
fn random_starts_lead_to_one_optimum_and_a_stop_at_any_step_leaves_bodies_that_exist() {
    let mut next = numbers(51);
    for weight in [0.0, 1e-2] {
        let mut random = random_problem(2, weight, 40, &mut next);
        let reference = barrier(&random.problem);
        let mut steps = 0;
        for k in 0..8 {
            random.start = random_start(&random.problem, &mut next);
            // Starts on the boundary: zero mass, and point masses.
            if weight == 0.0 && k % 3 > 0 {
                let point = if k % 3 == 1 {
                    Matrix4::zeros()
                } else {
                    Matrix4::from_fn(|i, j| f64::from(u8::from(i + j == 6)))
                };
                let start = PseudoInertia(point).to_inertia().parameters();
                random.start.rows_mut(0, 10).copy_from(&start);
            }
            steps = check_solver::<Principal>(&random, &reference, &format!("start {k}, weight {weight}")).1;
        }
        let mut last = f64::INFINITY;
        for stop in 0..steps {
            let options = Options::default().with(|o| o.max_steps = stop);
            let found =
                chart::solve::<Principal>(&random.problem, &random.start, &options, |_, _| true).unwrap();
            assert_eq!(found.steps, stop);
            assert!(
                !found.status.is_converged()
                    && found.cost <= last
                    && found.lower_bound <= reference.cost * (1.0 + 1e-12)
            );
            last = found.cost;
            for cone in &random.problem.cones {
                let body = PseudoInertia(cone.matrix(&found.x)).to_inertia();
                assert!(check_inertia(&body, DEFAULT_TOLERANCE).unwrap().is_consistent() || body.mass == 0.0);
            }
        }
    }
}

#[test]
fn linear_inequalities_hold_and_are_proved() {
    // Distance to a point outside a half space, with an additional body that must not be affected: the solution is known.
    let mut next = numbers(61);
    for _ in 0..10 {
        let a = DVector::from_fn(3, |_, _| next());
        let target = DVector::from_fn(3, |_, _| next());
        let least = a.dot(&target) + next().abs();
        let mut all = problem(&DMatrix::identity(13, 13), &DVector::zeros(13), vec![Cone::new(0)], vec![]);
        all.rhs.rows_mut(0, 10).copy_from(&unit_body());
        all.rhs.rows_mut(10, 3).copy_from(&target);
        all.constant = 0.5 * all.rhs.norm_squared();
        let coefficients = (0..3).map(|k| (10 + k, a[k])).collect();
        all.inequalities.push(Inequality { coefficients, least });
        let mut start = DVector::zeros(13);
        start.rows_mut(0, 10).copy_from(&(unit_body() * 2.0));
        start.rows_mut(10, 3).copy_from(&(&a * ((least + 1.0) / a.norm_squared())));
        let found = all.solve(&start, &Options::default(), |_, _| true).unwrap();
        let expected = 0.5 * (least - a.dot(&target)).powi(2) / a.norm_squared();
        assert!(found.status.is_converged() && found.lower_bound <= expected + 1e-12);
        assert!((found.cost - expected).abs() < 1e-8 * expected.max(1e-3), "{} {expected}", found.cost);
        assert!(all.inequalities[0].slack(&found.x) >= 0.0);
        assert!(chart::solve::<Principal>(&all, &start, &Options::default(), |_, _| true).is_err());
    }
}

#[test]
fn the_euclidean_pull_is_the_entropic_prior_to_second_order() {
    let mut next = numbers(71);
    let body = random_body(&mut next) + unit_body();
    let p = PseudoInertia::from(&Inertia::from_parameters(&body)).0;
    let inverse = p.try_inverse().unwrap();
    let zero = || problem(&DMatrix::zeros(1, 10), &DVector::zeros(1), vec![Cone::new(0)], vec![]);
    let (mut euclidean, mut entropic) = (zero(), zero());
    euclidean.add_body_prior(0, &p.cholesky().unwrap(), 0.7);
    entropic.cones[0] = Cone { offset: 0, prior_weight: 0.7, prior: inverse };
    let at = |x: SVector<f64, 10>| DVector::from_column_slice(x.as_slice());
    let base = entropic.cost(&at(body));
    let scale = body.amax();
    for _ in 0..20 {
        let way = SVector::<f64, 10>::from_fn(|_, _| next()) * scale;
        for h in [1e-3, 1e-4] {
            let x = at(body + way * h);
            let (exact, second) = (entropic.cost(&x) - base, euclidean.cost(&x));
            // The difference is of third order; bodies of unit size have no larger constants than this.
            assert!((exact - second).abs() < 1e4 * h.powi(3) + 1e-12, "{h}: {exact} {second}");
        }
    }
}

/// Problem with three bodies, of which the data determine fourteen combinations in units that differ by six orders of magnitude,
/// and two friction coefficients, one of which would be negative without its constraint.
struct Sharded {
    rows: DMatrix<f64>,
    map: DMatrix<f64>,
    cones: Vec<Cone>,
    start: DVector<f64>,
}

const SHOWN: usize = 14;
const BODIES: usize = 3;

impl Sharded {
    fn new(weight: f64, next: &mut impl FnMut() -> f64) -> Self {
        let (n, unknowns) = (10 * BODIES + 2, SHOWN + 2);
        let unit: Vec<f64> = (0..SHOWN).map(|_| 10f64.powf(3.0 * next())).collect();
        let map = DMatrix::from_fn(unknowns, n, |i, j| match (i < SHOWN, j < 10 * BODIES) {
            (true, true) => next() / unit[i],
            (false, false) => f64::from(u8::from(i - SHOWN == j - 10 * BODIES)),
            _ => 0.0,
        });
        let (mut truth, mut start, mut cones) = (DVector::zeros(n), DVector::zeros(n), Vec::new());
        for offset in (0..BODIES).map(|k| 10 * k) {
            let near = |body: SVector<f64, 10>| body + unit_body() * 0.1;
            truth.rows_mut(offset, 10).copy_from(&near(random_body(next)));
            let prior = near(random_body(next));
            start.rows_mut(offset, 10).copy_from(&prior);
            let prior = PseudoInertia::from(&Inertia::from_parameters(&prior)).0;
            cones.push(Cone { offset, prior_weight: weight, prior: prior.try_inverse().unwrap() });
        }
        start.rows_mut(10 * BODIES, 2).fill(1.0);
        truth.rows_mut(10 * BODIES, 2).copy_from_slice(&[0.5, -0.01]);
        // Forces a thousand times larger than their noise, which is one.
        let mut rows =
            DMatrix::from_fn(200, unknowns + 1, |_, j| 1e3 * next() * if j < SHOWN { unit[j] } else { 1.0 });
        let forces = rows.columns(0, unknowns) * (&map * &truth) + DVector::from_fn(200, |_, _| next());
        rows.set_column(unknowns, &forces);
        Self { rows, map, cones, start }
    }

    /// Builds the problem from parts of the rows, in random order.
    fn problem(&self, parts: usize, next: &mut impl FnMut() -> f64) -> ConicLeastSquares {
        let (count, width) = self.rows.shape();
        let mut order: Vec<(f64, usize)> = (0..parts).map(|k| (next(), k)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut whole = Triangle::new(width);
        for (_, k) in order {
            let (from, to) = (k * count / parts, (k + 1) * count / parts);
            let mut part = Triangle::new(width);
            let mut block = self.rows.rows(from, to - from).into_owned();
            part.add_rows(block.as_mut_slice(), to - from).unwrap();
            whole.merge(&part).unwrap();
        }
        let factor = whole.matrix();
        let forces = factor.column(width - 1).into_owned();
        let factor = factor.columns(0, width - 1).into_owned();
        let mut problem = ConicLeastSquares::of_rows(factor, self.map.clone(), forces);
        problem.cones.clone_from(&self.cones);
        problem.nonnegative = vec![10 * BODIES, 10 * BODIES + 1];
        problem
    }

    fn solve(&self, problem: &ConicLeastSquares, solver: usize) -> Solution {
        let options = Options::default();
        match solver {
            0 => problem.solve(&self.start, &options, |_, _| true),
            1 => chart::solve::<Principal>(problem, &self.start, &options, |_, _| true),
            _ => chart::solve::<LogCholesky>(problem, &self.start, &options, |_, _| true),
        }
        .unwrap()
    }
}

#[test]
fn rows_in_any_order_and_any_solver_give_the_same_bodies() {
    let mut next = numbers(81);
    for case in 0..12 {
        // Prior weights down to a negligible one.
        let weight = 0.01f64.powf(f64::from(case % 4));
        let sharded = Sharded::new(weight, &mut next);
        let whole = sharded.solve(&sharded.problem(1, &mut next), 0);
        assert!(whole.status.is_converged(), "case {case}: gap {:e} of {:e}", whole.gap(), whole.cost);
        let bodies = whole.x.rows(0, 10 * BODIES);
        assert_eq!(whole.x[10 * BODIES + 1], 0.0, "a friction at its bound is there exactly");
        for (parts, solver) in [(1, 1), (1, 2), (7, 0), (7, 1), (7, 2), (64, 0), (64, 1), (64, 2)] {
            let problem = sharded.problem(parts, &mut next);
            let found = sharded.solve(&problem, solver);
            let what = format!("case {case}, weight {weight:e}, {parts} parts, solver {solver}");
            assert!(found.status.is_converged(), "{what}: gap {:e} of {:e}", found.gap(), found.cost);
            assert!(found.lower_bound <= whole.cost * (1.0 + 1e-12), "{what}");
            let apart = (found.x.rows(0, 10 * BODIES) - bodies).amax() / bodies.amax();
            println!("{what}: {apart:e}");
            assert!(apart < 1e-10, "{what}: {apart:e}");
        }
    }
}
