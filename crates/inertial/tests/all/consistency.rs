//! Consistency checks of inertial parameters, compared with published tables, point masses and the definition of a projection.

#![allow(clippy::unwrap_used, clippy::default_trait_access)]

use inertial::consistency::{DEFAULT_TOLERANCE, ManifoldCoordinates, Violation, check_inertia, nearest};
use inertial::linalg::symmetric_eigen;
use inertial::mechanism::builtin;
use inertial::spatial::{Inertia, Motion, Parameters, Pose, PseudoInertia};
use nalgebra::{Matrix3, Vector3, vector};
use proptest::prelude::*;

use Violation::{InertiaNotPositive, Mass, TriangleInequality};

fn violations(inertia: &Inertia<f64>, tolerance: f64) -> Vec<Violation> {
    check_inertia(inertia, tolerance).unwrap().violations.into_iter().map(|(v, _)| v).collect()
}

/// Table I of Traversaro et al. 2016 (iCub forearm): optimization in R¹⁰ and on the manifold P, the ten parameters as
/// printed (three decimals) and the smallest eigenvalue of the pseudo-inertia computed from them by another program.
#[allow(clippy::unreadable_literal, reason = "as the other program printed them")]
const TABLE: [(&str, [f64; 10], f64); 10] = [
    ("R10", [1.836, 0.062, 0.001, 0.208, 0.58, 0.593, -0.541, 1.022, 0.19, -0.129], -0.7147702238),
    ("P", [1.836, 0.062, 0.001, 0.208, 0.215, 0.012, -0.064, 0.227, 0.038, 0.028], -6.100981541e-05),
    ("R10", [1.842, 0.061, 0.0, 0.206, 0.128, -0.018, -0.125, 0.125, 0.026, -0.001], -0.08935030815),
    ("P", [1.842, 0.06, 0.0, 0.206, 0.166, 0.001, -0.089, 0.216, 0.001, 0.05], -0.0001986057519),
    ("R10", [1.852, 0.06, 0.001, 0.206, 0.065, 0.001, -0.035, 0.066, 0.006, 0.007], -0.01351033055),
    ("P", [1.852, 0.06, 0.001, 0.206, 0.067, 0.001, -0.03, 0.086, 0.003, 0.014], -0.002727480591),
    ("R10", [1.82, 0.06, 0.002, 0.205, 0.032, 0.0014, -0.017, 0.036, 0.002, 0.008], -0.004884348692),
    ("P", [1.82, 0.06, 0.002, 0.205, 0.034, 0.001, -0.015, 0.042, 0.001, 0.009], -1.788121995e-05),
    ("R10", [1.843, 0.06, 0.005, 0.204, 0.033, 0.003, -0.014, 0.035, 0.0, 0.008], -0.00326175138),
    ("P", [1.844, 0.059, 0.004, 0.204, 0.037, 0.001, -0.013, 0.039, 0.0, 0.008], -0.0005934373659),
];

/// Rows whose inertia about the centre of mass is not positive definite.
const NOT_POSITIVE: [usize; 5] = [0, 2, 4, 5, 6];

#[test]
fn table_one_of_the_manifold_paper() {
    for (row, (method, parameters, eigenvalue)) in TABLE.into_iter().enumerate() {
        let inertia = Inertia::from_parameters(&Parameters::from(parameters));
        let verdict = check_inertia(&inertia, DEFAULT_TOLERANCE).unwrap();
        assert!((verdict.pseudo_inertia_min_eigenvalue - eigenvalue).abs() < 1e-9, "row {row}");
        // No row is consistent as printed; the reason names the violated inequality.
        let expected = match row {
            _ if NOT_POSITIVE.contains(&row) => vec![InertiaNotPositive, TriangleInequality],
            _ => vec![TriangleInequality],
        };
        assert_eq!(violations(&inertia, DEFAULT_TOLERANCE), expected, "row {row}");
        // Three decimals allow a violation of about 1e-3 kg m². The rows of R¹⁰ exceed it. Those of P do not, except for one
        // erratum of the table: no consistent row rounds to it.
        let printed = 1e-3 / verdict.principal_moments[2];
        assert_eq!(violations(&inertia, printed).is_empty(), method == "P" && row != 5, "row {row}");
    }
}

#[test]
fn manifold_coordinates_of_table_one() {
    let path = crate::common::data::golden("consistency/icub_table1.json");
    let golden: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for (row, (_, parameters, _)) in golden["rows"].as_array().unwrap().iter().zip(TABLE) {
        let inertia = Inertia::from_parameters(&Parameters::from(parameters));
        let found = ManifoldCoordinates::new(&inertia).unwrap().unwrap();
        // The other program gives them in ascending order, with ten digits.
        for (k, moment) in row["central_second_moments_L"].as_array().unwrap().iter().enumerate() {
            assert!((found.second_moments[2 - k] - moment.as_f64().unwrap()).abs() < 1e-9, "{found:?}");
        }
        let q = Matrix3::from_fn(|i, j| found.axes[i][j]);
        assert!(
            (q.transpose() * q - Matrix3::identity()).amax() < 1e-14 && (q.determinant() - 1.0).abs() < 1e-14
        );
        assert!((found.inertia().parameters() - inertia.parameters()).amax() < 1e-14);
    }
    assert!(ManifoldCoordinates::new(&Inertia::zero()).unwrap().is_none());
}

#[test]
fn dual_arm_robot_as_published() {
    let model = builtin::get("space-dual-arm").unwrap();
    for link in &model.links {
        let expected: &[Violation] = match link.name.as_str() {
            "L0" => &[],
            "L5" => &[InertiaNotPositive, TriangleInequality],
            _ => &[TriangleInequality],
        };
        assert_eq!(violations(&link.inertia.unwrap(), DEFAULT_TOLERANCE), expected, "{}", link.name);
    }
}

#[test]
fn builtin_models_are_consistent_but_those_of_that_paper() {
    for name in builtin::names().filter(|n| !n.starts_with("space-dual-arm")) {
        let model = builtin::get(name).unwrap();
        let rotors = model.rotors.iter().map(|r| r.inertia);
        for inertia in model.links.iter().filter_map(|l| l.inertia).chain(rotors) {
            let verdict = check_inertia(&inertia, 0.0).unwrap();
            assert!(verdict.is_consistent() && verdict.pseudo_inertia_min_eigenvalue > 0.0, "{name}");
        }
    }
}

#[test]
fn masses_that_no_body_has() {
    let ball = Matrix3::identity() * 0.1;
    let at = vector![0.1, 0.2, 0.3];
    assert_eq!(violations(&Inertia::from_com(-1.0, at, ball), DEFAULT_TOLERANCE), [Mass]);
    assert_eq!(violations(&Inertia::from_com(0.0, Vector3::zeros(), ball), DEFAULT_TOLERANCE), [Mass]);
    let pull = Inertia { first_moment: at, ..Inertia::zero() };
    assert_eq!(violations(&pull, DEFAULT_TOLERANCE), [Mass]);
    assert!(violations(&Inertia::zero(), 0.0).is_empty());
    for inertia in [Inertia::from_com(-1.0, at, ball), Inertia::from_com(0.0, at, ball), pull] {
        assert_eq!(nearest(&inertia).unwrap(), Inertia::zero());
    }
}

#[test]
fn reasons_contain_numbers() {
    let shaped =
        |x, y, z| Inertia::from_com(1.0, Vector3::zeros(), Matrix3::from_diagonal(&vector![x, y, z]));
    let reasons = |i: &Inertia<f64>| -> Vec<String> {
        check_inertia(i, DEFAULT_TOLERANCE).unwrap().violations.into_iter().map(|(_, r)| r).collect()
    };
    assert_eq!(
        reasons(&shaped(0.3, 0.1, 0.1)),
        ["Iyy + Izz = 0.2 < Ixx = 0.3 kg m² about the centre of mass: no mass distribution has this"]
    );
    // Enough digits to show the difference.
    assert_eq!(
        reasons(&shaped(1.0, 1.0, 2.000_01)),
        ["Ixx + Iyy = 2 < Izz = 2.00001 kg m² about the centre of mass: no mass distribution has this"]
    );
    assert_eq!(
        reasons(&shaped(-2e-5, 1e-5, 1e-5))[0],
        "the smallest principal moment about the centre of mass is -2e-5 kg m²: it cannot be negative"
    );
    assert_eq!(reasons(&shaped(1.0, 1.0, 2.000_001)), [""; 0]);
}

/// Returns a strategy for bodies of point masses, which are always consistent.
fn points(count: usize) -> impl Strategy<Value = Inertia<f64>> {
    let point = (0.01..5.0_f64, [-1.0..1.0_f64, -1.0..1.0, -1.0..1.0], -6..3_i32);
    prop::collection::vec(point, count).prop_map(|points| {
        points.into_iter().fold(Inertia::zero(), |sum, (mass, at, scale)| {
            let at = Vector3::from(at) * 10_f64.powi(scale);
            sum + Inertia::from_com(mass, at, Matrix3::zeros())
        })
    })
}

fn pose() -> impl Strategy<Value = Pose<f64>> {
    ([-3.0..3.0_f64, -3.0..3.0, -3.0..3.0], [-10.0..10.0_f64, -10.0..10.0, -10.0..10.0])
        .prop_map(|(w, x)| Pose::exp(&Motion::new(w.into(), x.into())))
}

fn anything() -> impl Strategy<Value = Inertia<f64>> {
    (0.01..10.0_f64, prop::array::uniform9(-1.0..1.0_f64)).prop_map(|(m, x)| {
        let mut p = Parameters::zeros();
        p[0] = m;
        p.as_mut_slice()[1..].copy_from_slice(&x);
        Inertia::from_parameters(&p)
    })
}

proptest! {
    #[test]
    fn what_exists_is_consistent(body in (1..6_usize).prop_flat_map(points), pose in pose()) {
        // One to three points lie on the boundary of the cone: rounding errors must not change the result in any frame.
        prop_assert!(check_inertia(&body, DEFAULT_TOLERANCE).unwrap().is_consistent());
        // The transformation adds about ten terms of this size; if they cancel, the result does not show their size.
        let moved = body.transformed(&pose);
        let terms = body.mass * (body.com().unwrap().norm() + pose.translation.norm()).powi(2) + body.rotational.norm();
        let scale = check_inertia(&moved, DEFAULT_TOLERANCE).unwrap().principal_moments[2].abs();
        let tolerance = DEFAULT_TOLERANCE + 16.0 * f64::EPSILON * terms / scale;
        prop_assert!(check_inertia(&moved, tolerance).unwrap().is_consistent());
    }

    /// Theorem 1 of paper 001: the uniform box with half sides `√(3 L / m)` along the axes `Q` about `c` has the coordinates
    /// `(m, c, Q, L)`. Two Gauss points per axis integrate mass, first and second moments of a box exactly.
    #[test]
    fn a_box_has_given_coordinates(
        mass in 0.1..10.0_f64,
        pose in pose(),
        moments in [0.0..2.0_f64, 0.0..2.0, 0.0..2.0],
    ) {
        let half = moments.map(|l| (3.0 * l / mass).sqrt());
        let corner = |k: usize, i: usize| if (k >> i) & 1 == 0 { half[i] } else { -half[i] };
        let solid = (0..8).fold(Inertia::zero(), |sum, k| {
            let at = Vector3::from_fn(|i, _| corner(k, i) / 3_f64.sqrt());
            sum + Inertia::from_com(mass / 8.0, pose.rotation * at + pose.translation, Matrix3::zeros())
        });
        let total: f64 = moments.iter().sum();
        let about = Matrix3::from_diagonal(&Vector3::from_fn(|i, _| total - moments[i]));
        let central = pose.rotation * about * pose.rotation.transpose();
        let [left, right] =
            [solid, Inertia::from_com(mass, pose.translation, central)].map(|i| i.parameters());
        // Rounding errors of some twenty operations on terms of at most this size.
        let rounding = 1e-14 * left.amax();
        prop_assert!((left - right).amax() < rounding);
        let found = ManifoldCoordinates::new(&solid).unwrap().unwrap();
        let mut sorted = moments;
        sorted.sort_by(|a, b| b.total_cmp(a));
        let apart = Vector3::from(found.second_moments) - Vector3::from(sorted);
        prop_assert!(apart.amax() < 2.0 * rounding, "{apart}");
    }

    #[test]
    fn verdicts_agree_with_the_pseudo_inertia(inertia in anything()) {
        let verdict = check_inertia(&inertia, 0.0).unwrap();
        let p = PseudoInertia::from(&inertia).0;
        let least = p.symmetric_eigenvalues().min();
        prop_assert!((verdict.pseudo_inertia_min_eigenvalue - least).abs() < 1e-12 * p.norm());
        if least.abs() > 1e-9 {
            prop_assert_eq!(verdict.is_consistent(), least > 0.0);
        }
    }

    #[test]
    fn nearest_is_the_projection(inertia in anything(), pose in pose()) {
        let fixed = nearest(&inertia).unwrap();
        prop_assert!(check_inertia(&fixed, DEFAULT_TOLERANCE).unwrap().is_consistent());
        prop_assert_eq!(fixed.mass, inertia.mass);
        prop_assert!((fixed.first_moment - inertia.first_moment).norm() < 1e-14);
        // Projection on a self-dual cone: X = P⁺ and X − P are both in the cone, and orthogonal.
        let com = Pose::from_translation(-inertia.com().unwrap());
        let at_com = |i: &Inertia<f64>| PseudoInertia::from(&i.transformed(&com)).0;
        let (before, after) = (at_com(&inertia), at_com(&fixed));
        let scale = before.norm() * before.norm();
        let step = after - before;
        let least = |m| symmetric_eigen(&m).unwrap().values[0];
        prop_assert!(least(after) > -1e-12 * scale.sqrt() && least(step) > -1e-12 * scale.sqrt());
        prop_assert!(after.dot(&step).abs() < 1e-12 * scale);
        // The projection does not depend on the frame.
        let elsewhere = nearest(&inertia.transformed(&pose)).unwrap();
        let difference = elsewhere.parameters() - fixed.transformed(&pose).parameters();
        prop_assert!(difference.amax() < 1e-12 * (1.0 + elsewhere.parameters().amax()));
        // Consistent values do not change.
        if check_inertia(&inertia, 0.0).unwrap().is_consistent() {
            prop_assert!((fixed.parameters() - inertia.parameters()).amax() < 1e-13);
        }
    }
}
