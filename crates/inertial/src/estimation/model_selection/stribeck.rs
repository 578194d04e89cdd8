//! Selection of the Stribeck speed and exponent of each drive.
//!
//! Speed and exponent are nonlinear parameters, so they are found separately from the linear unknowns. The search uses a summary
//! that contains the columns of [`crate::estimation::joint_model::stribeck`]: one pass over the data is sufficient, and summaries
//! can be merged.

use nalgebra::{DMatrix, DVector};

use crate::Result;
use crate::estimation::equations::Equations;
use crate::estimation::joint_model::stribeck::{NODES, StribeckCurve, node};
use crate::estimation::joint_model::terms::Term;
use crate::estimation::least_squares::fit::{LeastSquares, Weighting};
use crate::estimation::model_selection::projection::Projection;
use crate::estimation::reduction::summary::Summary;
use crate::linalg::Svd;

/// Largest number of sweeps over the joints, and the change of `ln vₛ` at which they stop.
const SWEEPS: usize = 50;
const SETTLED: f64 = 1e-6;

/// Finds speed and exponent of the Stribeck term of every motor by minimizing the residual of weighted least squares: each motor
/// in turn, first over all stored speeds, then by golden-section search, until convergence. Weights are those without Stribeck
/// terms.
///
/// `plain` are the equations without Stribeck terms.
pub(crate) fn choose(
    candidates: &Equations<'_>,
    summary: &Summary,
    plain: &Equations<'_>,
    motors: &[usize],
) -> Result<Vec<(usize, StribeckCurve)>> {
    let projected = summary.project(candidates, plain)?;
    let weights = LeastSquares::new(plain, &projected, Weighting::Weighted)?.weights;
    // Columns of all terms, then those of the nodes of each motor, then the forces.
    let exponents = candidates.joint_model().stribeck_exponents();
    let per_motor = exponents.len() * NODES;
    let mut projection = Projection::new(candidates, plain)?;
    for &motor in motors {
        for stribeck in StribeckCurve::nodes(exponents) {
            projection.add(candidates, Term::Stribeck, &plain.motors()[motor].shaft, Some(stribeck));
        }
    }
    let all = projection.stacked(summary, &weights)?.matrix();
    let (n, width) = (plain.len(), all.ncols());
    // Columns of the nodes and forces after elimination of the other unknowns, exact because of the reflections.
    let rest = all.view((n, n), (width - n, width - n));
    let columns: Vec<DMatrix<f64>> =
        (0..motors.len()).map(|i| rest.columns(i * per_motor, per_motor).into_owned()).collect();
    let force = rest.column(width - n - 1).into_owned();
    let mut found: Vec<StribeckCurve> =
        vec![StribeckCurve { speed: node((NODES / 2) as f64).exp(), exponent: 1.0 }; motors.len()];
    for _ in 0..SWEEPS {
        let mut moved: f64 = 0.0;
        for i in 0..motors.len() {
            let others: Vec<DVector<f64>> =
                (0..motors.len()).filter(|&k| k != i).map(|k| combined(&columns[k], found[k])).collect();
            let own = without(&others, &columns[i])?;
            let force = without(&others, &DMatrix::from_columns(std::slice::from_ref(&force)))?;
            let best = search(exponents, |stribeck| {
                let column = combined(&own, stribeck);
                let size = column.norm_squared();
                // Squared force that the column explains in addition to the others.
                if size > 0.0 { column.dot(&force.column(0)).powi(2) / size } else { 0.0 }
            });
            moved = moved.max(if best.exponent == found[i].exponent {
                (best.speed / found[i].speed).ln().abs()
            } else {
                1.0
            });
            found[i] = best;
        }
        if moved < SETTLED {
            break;
        }
    }
    Ok(motors.iter().copied().zip(found).collect())
}

/// Returns the column of a Stribeck curve, interpolated from those at the nodes.
fn combined(columns: &DMatrix<f64>, stribeck: StribeckCurve) -> DVector<f64> {
    let mut out = DVector::zeros(columns.nrows());
    for (k, weight) in stribeck.interpolated() {
        out.axpy(weight, &columns.column(k), 1.0);
    }
    out
}

/// Removes the part of the columns that is explained by the other ones.
fn without(some: &[DVector<f64>], others: &DMatrix<f64>) -> Result<DMatrix<f64>> {
    let mut out = others.clone();
    if !some.is_empty() {
        let matrix = DMatrix::from_columns(some);
        let svd = Svd::new(&matrix)?;
        let rank = svd.rank(1e-9).rank;
        for mut column in out.column_iter_mut() {
            let explained = &matrix * svd.solve(&column.clone_owned(), rank, 0.0);
            column -= explained;
        }
    }
    Ok(out)
}

/// Returns the Stribeck curve of largest gain.
fn search(exponents: &[f64], gain: impl Fn(StribeckCurve) -> f64) -> StribeckCurve {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let mut best = (f64::NEG_INFINITY, StribeckCurve { speed: 1.0, exponent: exponents[0] });
    for &exponent in exponents {
        let at = |x: f64| StribeckCurve { speed: x.exp(), exponent };
        let (mut peak, mut top) = (0, f64::NEG_INFINITY);
        for k in 0..NODES {
            let value = gain(at(node(k as f64)));
            if value > top {
                (peak, top) = (k, value);
            }
        }
        let (mut low, mut high) =
            (node(peak.saturating_sub(1) as f64), node((peak + 1).min(NODES - 1) as f64));
        let (mut a, mut b) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        let (mut at_a, mut at_b) = (gain(at(a)), gain(at(b)));
        while high - low > 0.1 * SETTLED {
            if at_a > at_b {
                (high, b, at_b) = (b, a, at_a);
                a = high - GOLDEN * (high - low);
                at_a = gain(at(a));
            } else {
                (low, a, at_a) = (a, b, at_b);
                b = low + GOLDEN * (high - low);
                at_b = gain(at(b));
            }
        }
        let middle = at(0.5 * (low + high));
        let value = gain(middle);
        if value > best.0 {
            best = (value, middle);
        }
    }
    best.1
}
