//! Prime fields, exact elimination, and the gradient maps of the recursion.

#![allow(clippy::unwrap_used)]

use inertial::linalg::{Echelon, First, Gf, Number, Pivot, Second, Shadow, SplitMix, singular_values};
use inertial::spatial::{
    Field, Motion, Parameters, Pose, gradient_rate, pull_gradient, rotation_from_quaternion, transfer_matrix,
    transfer_rate,
};
use nalgebra::{DMatrix, Vector3};
use num_traits::{One, Zero};
use proptest::prelude::*;

fn multiply_slowly<const P: u64>(a: u64, b: u64) -> u64 {
    (u128::from(a % P) * u128::from(b % P) % u128::from(P)) as u64
}

fn field_laws<const P: u64>(a: u64, b: u64) {
    let (x, y) = (Gf::<P>::new(a), Gf::<P>::new(b));
    assert_eq!((x * y).value(), multiply_slowly::<P>(a, b));
    assert_eq!(x - y + y, x);
    assert_eq!(x + -x, Gf::zero());
    match x.inverse() {
        Some(i) => assert_eq!(x * i, Gf::one()),
        None => assert!(x.is_zero()),
    }
}

fn trigonometry<T: Number>() {
    let close = |a: T, b: T| (a - b).weight() < 1e-14;
    for k in -400..800 {
        let ((c, s), (c1, s1)) = (T::turn(k), T::turn(1));
        assert!(close(c * c + s * s, T::one()), "{k}");
        let next = T::turn(k + 1);
        assert!(close(c * c1 - s * s1, next.0) && close(c * s1 + s * c1, next.1), "{k}");
        let times = T::multiple_angle((c1, s1), k);
        assert!((times.0 - c).weight() < 1e-12 && (times.1 - s).weight() < 1e-12, "{k}");
    }
    assert!(close(T::turn(60).0, T::from_decimal(1, 2, 0)));
    assert!(close(T::from_decimal(25, 1, -2), T::turn(60).0 * T::turn(60).0));
}

#[test]
fn whole_degrees_and_roots_are_exact() {
    trigonometry::<f64>();
    trigonometry::<First>();
    trigonometry::<Second>();
    for n in [2u8, 3, 5, 6] {
        assert_eq!(First::root(n) * First::root(n), First::from_i64(i64::from(n)));
        assert_eq!(Second::root(n) * Second::root(n), Second::from_i64(i64::from(n)));
        assert!((f64::root(n).powi(2) - f64::from(n)).abs() < 1e-14);
    }
}

#[test]
fn largest_operands_do_not_overflow() {
    for a in [0, 1, 2, (1 << 61) - 3152, (1 << 61) - 1352, (1 << 61) - 1, u64::MAX] {
        for b in [0, 1, (1 << 60) + 7, (1 << 61) - 3152, u64::MAX] {
            field_laws::<2_305_843_009_213_692_601>(a, b);
            field_laws::<2_305_843_009_213_690_801>(a, b);
        }
    }
}

fn random_pose<T: Number>(source: &mut SplitMix) -> Pose<T> {
    let mut r = || T::random(source);
    let rotation = rotation_from_quaternion(r(), r(), r(), r()).unwrap();
    Pose::new(rotation, Vector3::new(r(), r(), r()))
}

#[test]
fn gradient_maps_are_the_transposes_of_parameter_maps() {
    let mut source = SplitMix::new(7);
    for _ in 0..20 {
        let pose = random_pose::<First>(&mut source);
        let k = Parameters::from_fn(|_, _| First::random(&mut source));
        let phi = Motion::from_vector(&nalgebra::SVector::from_fn(|_, _| First::random(&mut source)));
        let half = First::from_decimal(1, 2, 0);
        assert_eq!(pull_gradient(&pose, &k, half), transfer_matrix(&pose).transpose() * k);
        assert_eq!(gradient_rate(&phi, &k, half), transfer_rate(&phi).transpose() * k);
    }
}

#[test]
fn shadows_cancel_exactly() {
    type Both = Shadow<2_305_843_009_213_692_601>;
    let tenth = Both::from_decimal(1, 10, 0);
    let sum = (0..10).fold(Both::zero(), |s, _| s + tenth) - Both::one();
    assert!(sum.is_zero() && sum.value == 0.0);
    assert_eq!(sum.weight(), 0.0);
}

proptest! {
    #[test]
    fn arithmetic_obeys_the_laws(a: u64, b: u64) {
        field_laws::<2_305_843_009_213_692_601>(a, b);
        field_laws::<2_305_843_009_213_690_801>(a, b);
    }

    #[test]
    fn fractions_come_back(n in -1_000_000i64..1_000_000, d in 1i64..1_000_000) {
        let g = num_integer(n, d);
        prop_assert_eq!(First::from_decimal(n, d, 0).fraction(), Some((n / g, d / g)));
    }

    /// Elimination finds the rank, reduced rows and null space of a product of random factors with known inner dimension.
    #[test]
    fn elimination_finds_the_rank(rows in 1usize..12, columns in 1usize..12, inner in 0usize..6, seed: u64) {
        check_elimination::<First>(rows, columns, inner, seed, &[Pivot::First, Pivot::Largest]);
        // Rounding errors grow with the pivots and with the condition number of the factors, which are random.
        if condition(rows, columns, inner, seed) < 1e4 {
            check_elimination::<f64>(rows, columns, inner, seed, &[Pivot::Largest]);
        }
    }
}

fn num_integer(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// Returns random factors with `inner` columns.
fn factors<T: Number>(rows: usize, columns: usize, inner: usize, seed: u64) -> [Vec<Vec<T>>; 2] {
    let mut source = SplitMix::new(seed);
    [rows, columns].map(|n| (0..n).map(|_| (0..inner).map(|_| T::random(&mut source)).collect()).collect())
}

/// Returns the product of the condition numbers of these factors.
fn condition(rows: usize, columns: usize, inner: usize, seed: u64) -> f64 {
    let of = |factor: Vec<Vec<f64>>| {
        let matrix = DMatrix::from_fn(factor.len(), inner, |i, j| factor[i][j]);
        let values = if matrix.is_empty() { Vec::new() } else { singular_values(&matrix).unwrap() };
        values.first().zip(values.last()).map_or(1.0, |(largest, smallest)| largest / smallest)
    };
    factors(rows, columns, inner, seed).map(of).iter().product()
}

fn check_elimination<T: Number>(rows: usize, columns: usize, inner: usize, seed: u64, policies: &[Pivot]) {
    let [left, right] = factors::<T>(rows, columns, inner, seed);
    let dot = |a: &[T], b: &[T]| a.iter().zip(b).fold(T::zero(), |s, (&x, &y)| s + x * y);
    let matrix: Vec<Vec<T>> = left.iter().map(|a| right.iter().map(|b| dot(a, b)).collect()).collect();
    for &policy in policies {
        let mut span = Echelon::new(columns, policy);
        for row in &matrix {
            span.insert(row);
        }
        assert_eq!(span.rank(), inner.min(rows).min(columns));
        assert!(matrix.iter().all(|row| span.contains(row)));
        let null = span.null_space();
        assert_eq!(null.len() + span.rank(), columns);
        for x in &null {
            assert!(matrix.iter().all(|row| dot(row, x).weight() < 1e-6), "{x:?}");
        }
        for (i, row) in span.rows().enumerate() {
            for (j, &p) in span.pivots().iter().enumerate() {
                assert!((row[p] - if i == j { T::one() } else { T::zero() }).is_zero());
            }
            if policy == Pivot::First {
                assert!(row[..span.pivots()[i]].iter().all(|x| x.weight() < 1e-9));
            }
        }
    }
}
