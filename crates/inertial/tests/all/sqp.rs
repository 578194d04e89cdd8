//! Sequential quadratic programming on published problems (Hock and Schittkowski 1981), with solutions from the book.

#![allow(clippy::unwrap_used)]

use inertial::optimize::sqp::{ConstraintRows, Problem, SqpOptions, minimize};

/// A function of the variables with its gradient.
type Function = fn(&[f64]) -> (f64, Vec<f64>);

/// An objective and constraints `c ≤ 0`.
struct Published {
    n: usize,
    objective: Function,
    constraints: Vec<Function>,
}

impl Problem for Published {
    fn dimension(&self) -> usize {
        self.n
    }

    fn objective(&mut self, x: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let (f, g) = (self.objective)(x);
        if let Some(to) = gradient {
            to.copy_from_slice(&g);
        }
        f
    }

    fn violation(&mut self, x: &[f64]) -> f64 {
        self.constraints.iter().map(|c| c(x).0).fold(f64::NEG_INFINITY, f64::max)
    }

    fn constraints(&mut self, x: &[f64], _: f64, rows: &mut ConstraintRows) {
        for (key, c) in self.constraints.iter().enumerate() {
            let (value, gradient) = c(x);
            rows.push(key, value, gradient.into_iter().enumerate());
        }
    }

    fn add_gradient(&mut self, x: &[f64], key: usize, factor: f64, gradient: &mut [f64]) {
        let (_, g) = self.constraints[key](x);
        gradient.iter_mut().zip(g).for_each(|(to, g)| *to += factor * g);
    }
}

fn solve(mut problem: Published, start: &[f64], expected: f64) {
    let options = SqpOptions::default().with(|o| {
        o.radius = 1.0;
        o.tolerance = 1e-12;
        o.feasibility = 1e-7;
    });
    let found = minimize(&mut problem, start, &options, &mut |_| true).unwrap();
    // The subproblems are solved to 1e-8; the book prints seven digits or more.
    assert!(found.violation <= 1e-7, "{found:?}");
    assert!((found.objective - expected).abs() <= 1e-5 * (1.0 + expected.abs()), "{found:?}");
    assert!(found.status.is_converged(), "{found:?}");
}

#[test]
fn rosen_suzuki_is_solved() {
    let problem = Published {
        n: 4,
        objective: |x| {
            let f = x[0] * x[0] + x[1] * x[1] + 2.0 * x[2] * x[2] + x[3] * x[3]
                - 5.0 * x[0]
                - 5.0 * x[1]
                - 21.0 * x[2]
                + 7.0 * x[3];
            (f, vec![2.0 * x[0] - 5.0, 2.0 * x[1] - 5.0, 4.0 * x[2] - 21.0, 2.0 * x[3] + 7.0])
        },
        constraints: vec![
            |x| {
                let c =
                    x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + x[3] * x[3] + x[0] - x[1] + x[2] - x[3] - 8.0;
                (c, vec![2.0 * x[0] + 1.0, 2.0 * x[1] - 1.0, 2.0 * x[2] + 1.0, 2.0 * x[3] - 1.0])
            },
            |x| {
                let c =
                    x[0] * x[0] + 2.0 * x[1] * x[1] + x[2] * x[2] + 2.0 * x[3] * x[3] - x[0] - x[3] - 10.0;
                (c, vec![2.0 * x[0] - 1.0, 4.0 * x[1], 2.0 * x[2], 4.0 * x[3] - 1.0])
            },
            |x| {
                let c = 2.0 * x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + 2.0 * x[0] - x[1] - x[3] - 5.0;
                (c, vec![4.0 * x[0] + 2.0, 2.0 * x[1] - 1.0, 2.0 * x[2], -1.0])
            },
        ],
    };
    solve(problem, &[0.0; 4], -44.0);
}

#[test]
fn problem_71_with_an_equality_is_solved() {
    let problem = Published {
        n: 4,
        objective: |x| {
            let s = x[0] + x[1] + x[2];
            let f = x[0] * x[3] * s + x[2];
            (f, vec![x[3] * (s + x[0]), x[0] * x[3], x[0] * x[3] + 1.0, x[0] * s])
        },
        constraints: vec![
            |x| {
                let p = x[0] * x[1] * x[2] * x[3];
                (25.0 - p, vec![-p / x[0], -p / x[1], -p / x[2], -p / x[3]])
            },
            // The equality as two inequalities.
            |x| (x.iter().map(|x| x * x).sum::<f64>() - 40.0, x.iter().map(|x| 2.0 * x).collect()),
            |x| (40.0 - x.iter().map(|x| x * x).sum::<f64>(), x.iter().map(|x| -2.0 * x).collect()),
            |x| (1.0 - x[0], vec![-1.0, 0.0, 0.0, 0.0]),
            |x| (1.0 - x[1], vec![0.0, -1.0, 0.0, 0.0]),
            |x| (1.0 - x[2], vec![0.0, 0.0, -1.0, 0.0]),
            |x| (1.0 - x[3], vec![0.0, 0.0, 0.0, -1.0]),
            |x| (x[0] - 5.0, vec![1.0, 0.0, 0.0, 0.0]),
            |x| (x[1] - 5.0, vec![0.0, 1.0, 0.0, 0.0]),
            |x| (x[2] - 5.0, vec![0.0, 0.0, 1.0, 0.0]),
            |x| (x[3] - 5.0, vec![0.0, 0.0, 0.0, 1.0]),
        ],
    };
    solve(problem, &[1.0, 5.0, 5.0, 1.0], 17.014_017_3);
}

#[test]
fn a_start_far_outside_converges() {
    // Rosenbrock's function within a disc that does not contain the start.
    let problem = Published {
        n: 2,
        objective: |x| {
            let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
            (a * a + 100.0 * b * b, vec![-2.0 * a - 400.0 * x[0] * b, 200.0 * b])
        },
        constraints: vec![|x| (x[0] * x[0] + x[1] * x[1] - 1.0, vec![2.0 * x[0], 2.0 * x[1]])],
    };
    solve(problem, &[-3.0, 2.0], 0.045_674_808_7);
}

#[test]
fn a_watcher_ends_the_search_and_keeps_the_best() {
    let mut problem = Published {
        n: 1,
        objective: |x| (x[0].powi(4), vec![4.0 * x[0].powi(3)]),
        constraints: vec![|x| (-x[0] - 5.0, vec![-1.0])],
    };
    let mut seen = Vec::new();
    let mut watch = |p: inertial::optimize::sqp::SqpProgress| {
        seen.push(p.best);
        seen.len() < 3
    };
    let found = minimize(&mut problem, &[2.0], &SqpOptions::default(), &mut watch).unwrap();
    assert_eq!((found.iterations, found.status.is_converged()), (3, false));
    assert_eq!(found.objective, *seen.last().unwrap());
    assert!(minimize(&mut problem, &[1.0, 2.0], &SqpOptions::default(), &mut |_| true).is_err());
    assert!(minimize(&mut problem, &[f64::NAN], &SqpOptions::default(), &mut |_| true).is_err());
}
