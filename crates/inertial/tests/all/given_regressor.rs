//! Identification of bodies from a regressor that was computed elsewhere.

#![allow(clippy::unwrap_used)]

use crate::common::{Case, Features, Rng, cases, reference_regressor};
use inertial::estimation::{
    ColumnOrder, PriorKind, RegressorIdentification, RegressorOptions, RegressorRows,
};
use inertial::identifiability::{AnalyzeOptions, analyze};
use inertial::mechanism::Base;
use inertial::spatial::Inertia;
use nalgebra::{DMatrix, DVector};

/// Returns the regressor rows of random states, computed in world coordinates, and the true parameters.
fn rows(case: &mut Case, samples: usize) -> (DMatrix<f64>, DVector<f64>) {
    let mechanism = &case.mechanism;
    let (nv, columns) = (mechanism.nv(), mechanism.parameter_count());
    let mut out = DMatrix::zeros(samples * nv, columns);
    for k in 0..samples {
        let q = case.rng.positions(mechanism);
        let (v, a) = (case.rng.values(nv, 2.0), case.rng.values(nv, 4.0));
        out.rows_mut(k * nv, nv).copy_from(&reference_regressor(mechanism, &q, &v, &a));
    }
    (out, DVector::from_vec(mechanism.parameters()))
}

fn identified(
    rows: &DMatrix<f64>,
    rhs: &DVector<f64>,
    each: usize,
    order: ColumnOrder,
    prior: &[Inertia<f64>],
    options: &RegressorOptions,
) -> RegressorIdentification {
    let mut data = RegressorRows::new(rows.ncols(), prior.len(), each, order).unwrap();
    let names: Vec<String> = (0..prior.len()).map(|k| format!("body{k}")).collect();
    let flat: Vec<f64> = rows.transpose().as_slice().to_vec();
    // Rows are added in two parts; the second starts in the middle of a sample.
    let cut = (rows.nrows() / 2) | 1;
    data.add(&flat[..cut * rows.ncols()], &rhs.as_slice()[..cut]).unwrap();
    data.add(&flat[cut * rows.ncols()..], &rhs.as_slice()[cut..]).unwrap();
    data.identify(&names, prior, options).unwrap()
}

/// Returns random mechanisms in which every body has ten parameters.
fn plain(count: usize) -> impl Iterator<Item = Case> {
    let features = Features { base: Some(Base::Fixed), ..Features::PLAIN };
    cases(count, features).filter(|case| {
        let heavy = case.mechanism.bodies().iter().all(|b| b.inertia.mass > 0.0);
        heavy && case.mechanism.nv() > 0
    })
}

#[test]
fn forces_without_noise_are_predicted_and_bodies_can_exist() {
    for mut case in plain(12) {
        let (y, truth) = rows(&mut case, 60);
        let prior: Vec<_> = case.mechanism.bodies().iter().map(|_| Rng(7).inertia()).collect();
        let found = identified(
            &y,
            &(&y * &truth),
            case.mechanism.nv(),
            ColumnOrder::Rows,
            &prior,
            &RegressorOptions::default(),
        );
        assert!(found.bodies.iter().all(|b| b.consistent && b.mass > 0.0), "{found:?}");
        // The noise is assumed to be a millionth of the forces; the prior changes the fit by less.
        assert!(found.fit.iter().all(|r| r.relative_rms < 1e-5), "{:?}", found.fit);
        let analysis = analyze(&case.mechanism, &AnalyzeOptions::default()).unwrap();
        assert_eq!(found.rank, analysis.rank, "{}", case.label);
        assert!(found.duality_gap < 1e-6 * (1.0 + found.duality_gap.abs()) + 1e-3);
    }
}

#[test]
fn a_true_prior_is_kept_in_both_column_orders() {
    let mut case = plain(12).last().unwrap();
    let (y, truth) = rows(&mut case, 60);
    let prior: Vec<_> = case.mechanism.bodies().iter().map(|b| b.inertia).collect();
    let noise = DVector::from_vec(case.rng.values(y.nrows(), 1e-2));
    let rhs = &y * &truth + noise;
    let nv = case.mechanism.nv();
    let options = RegressorOptions::default().with(|o| {
        o.prior_kind = PriorKind::Entropic;
        o.prior_weight = 100.0;
    });
    let one = identified(&y, &rhs, nv, ColumnOrder::Rows, &prior, &options);
    let pinocchio = |c: usize| 10 * (c / 10) + [0, 1, 2, 3, 4, 5, 7, 6, 8, 9][c % 10];
    let exchanged = DMatrix::from_fn(y.nrows(), y.ncols(), |i, j| y[(i, pinocchio(j))]);
    let other = identified(&exchanged, &rhs, nv, ColumnOrder::Pinocchio, &prior, &options);
    assert_eq!(one.values, other.values);
    for ((found, truth), error) in one.values.iter().zip(truth.iter()).zip(&one.std_errors) {
        // Five standard errors for about a hundred numbers.
        assert!((found - truth).abs() < 5.0 * error, "{found} {truth} {error}");
    }
}

#[test]
fn further_columns_are_free_and_each_row_has_its_noise() {
    let mut case = plain(12).last().unwrap();
    let (y, truth) = rows(&mut case, 200);
    let nv = case.mechanism.nv();
    let friction =
        DMatrix::from_fn(y.nrows(), nv, |i, j| if i % nv == j { case.rng.range(-1.0, 1.0) } else { 0.0 });
    let mut all = DMatrix::zeros(y.nrows(), y.ncols() + nv);
    all.columns_mut(0, y.ncols()).copy_from(&y);
    all.columns_mut(y.ncols(), nv).copy_from(&friction);
    let mut rhs = &y * &truth;
    for i in 0..rhs.len() {
        // The first row of each sample has ten times the noise.
        let size = if i % nv == 0 { 1.0 } else { 0.1 };
        rhs[i] += -3.0 * friction.row(i).sum() + size * case.rng.range(-1.0, 1.0);
    }
    let prior: Vec<_> = case.mechanism.bodies().iter().map(|b| b.inertia).collect();
    let found = identified(&all, &rhs, nv, ColumnOrder::Rows, &prior, &RegressorOptions::default());
    for (x, error) in found.values[y.ncols()..].iter().zip(&found.std_errors[y.ncols()..]) {
        assert!((x + 3.0).abs() < 5.0 * error && *error < 0.3, "{x} {error}");
    }
    // Uniform noise from -1 to 1 has a standard deviation of 0.577.
    assert!((found.fit[0].rms - 0.577).abs() < 0.1, "{:?}", found.fit);
}

#[test]
fn wrong_rows_are_refused_in_one_line() {
    let refused = |columns, bodies, each| {
        RegressorRows::new(columns, bodies, each, ColumnOrder::Rows).map(drop).unwrap_err().to_string()
    };
    assert!(refused(19, 2, 1).contains("2 bodies need 20"));
    assert!(refused(10, 0, 1).contains("at least one"));
    assert!(refused(100_000, 2, 3).contains("too many"));
    let mut rows = RegressorRows::new(10, 1, 2, ColumnOrder::Rows).unwrap();
    assert!(rows.add(&[1.0; 10], &[f64::NAN]).unwrap_err().to_string().contains("row 1"));
    assert!(rows.add(&[1.0; 9], &[1.0]).is_err());
    rows.add(&[1.0; 10], &[1.0]).unwrap();
    let error = rows.identify(&["a".into()], &[Rng(1).inertia()], &RegressorOptions::default()).unwrap_err();
    assert!(error.to_string().contains("not a multiple of"), "{error}");
}
