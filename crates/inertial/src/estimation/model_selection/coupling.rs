//! Detection of drives that turn with two neighbouring joints.
//!
//! For two neighbouring revolute joints with speeds `a` and `b`, the two drives turn with two of `a`, `b`, `a + b`, `b − a`. All
//! choices have the same number of unknowns, so their residuals can be compared directly: weighted by the noise, the difference of
//! two squared residuals is twice the log-likelihood ratio.

use nalgebra::DVector;

use crate::Result;
use crate::estimation::equations::Equations;
use crate::estimation::identification::criticism::NEGLIGIBLE;
use crate::estimation::identification::residuals::validate;
use crate::estimation::joint_model::terms::{Feature, Motor, Term};
use crate::estimation::least_squares::fit::{LeastSquares, Weighting};
use crate::estimation::model_selection::projection::Projection;
use crate::estimation::reduction::summary::Summary;
use crate::estimation::warning::Warning;
use crate::linalg::Svd;

/// Decrease of the weighted squared residual from which a coupling is significant: odds of e¹⁵ to one. Four real robots without
/// couplings showed at most 0.3, a coupled wrist 519.
const EVIDENCE: f64 = 30.0;
/// Relative decrease of the squared residual of the two joints from which a coupling is adopted. It is then a main effect, not a
/// small correction of another model error. (The coupled wrist: nine tenths.)
const SHARE: f64 = 0.25;

/// Largest relative residual of all torques with which a coupling is adopted; twice this value for the torques of its joints.
const SOUND: f64 = 0.2;

/// Ratio of the speed of the slower joint of a pair to that of the faster one (root mean squares), from which both count as
/// moving.
const MOVES: f64 = 0.01;

/// Selected drives, with notes.
pub(crate) struct Found {
    pub motors: Vec<Motor>,
    pub notes: Vec<Warning>,
}

/// Two drives of a pair, and the weighted squared residual with them.
struct Choice {
    pair: [usize; 2],
    shafts: [Vec<(usize, f64)>; 2],
    residual: f64,
}

/// Adopts the couplings that the data support, one pair after the other.
pub(crate) fn search(candidates: &Equations<'_>, summary: &Summary) -> Result<Found> {
    let mut out = Found { motors: candidates.motors().to_vec(), notes: Vec::new() };
    let measured = |v: usize| summary.factors[v].count > 0;
    let mut pairs = candidates.pairs();
    // A joint at rest may have a faulty encoder: its torque would correlate with the motion of its neighbours.
    let moves = |[a, b]: [usize; 2]| match (speed(candidates, summary, a), speed(candidates, summary, b)) {
        (Some(a), Some(b)) => a.min(b) > MOVES * a.max(b),
        _ => true,
    };
    pairs.retain(|pair| pair.iter().all(|&v| measured(v)) && moves(*pair));
    while !pairs.is_empty() {
        let now = candidates.with_motors(out.motors.clone());
        let projected = summary.project(candidates, &now)?;
        let fit = LeastSquares::new(&now, &projected, Weighting::Weighted)?;
        if validate(&now, &projected, fit.values.as_slice())?.relative_rms < NEGLIGIBLE {
            break;
        }
        let (old_residual, gains) = possible_gains(candidates, &now, summary, &fit.weights, &pairs)?;
        let mut best: Option<Choice> = None;
        for (&pair, _) in pairs.iter().zip(gains).filter(|(_, gain)| *gain > EVIDENCE) {
            for shafts in alternatives(pair) {
                let mut motors = out.motors.clone();
                for (&v, shaft) in pair.iter().zip(&shafts) {
                    motors[v].shaft.clone_from(shaft);
                }
                // Columns of asymmetric friction exist for one direction of a shaft only: the other one is not tried.
                let Ok(projection) = Projection::new(candidates, &candidates.with_motors(motors)) else {
                    continue;
                };
                let new_residual = residual(&projection, summary, &fit.weights)?;
                if best.as_ref().is_none_or(|b| new_residual < b.residual) {
                    best = Some(Choice { pair, shafts, residual: new_residual });
                }
            }
        }
        let Some(best) = best.filter(|b| old_residual - b.residual > EVIDENCE) else { break };
        let names = candidates.row_names();
        // Weighted by the noise, the squared residual of each joint equals its number of independent samples.
        let own: f64 = best.pair.iter().map(|&v| summary.factors[v].independent).sum();
        let share = (old_residual - best.residual) / own;
        let descriptions: Vec<String> = best
            .pair
            .iter()
            .zip(&best.shafts)
            .filter(|(v, shaft)| shaft[..] != [(**v, 1.0)])
            .map(|(&v, shaft)| format!("the drive of {} turns with {}", names[v], sum(shaft, &names)))
            .collect();
        let coupling = descriptions.join(" and ");
        pairs.retain(|p| !p.iter().any(|v| best.pair.contains(v)));
        let mut motors = out.motors.clone();
        for (&v, shaft) in best.pair.iter().zip(&best.shafts) {
            motors[v].shaft.clone_from(shaft);
        }
        // In a bad fit, a coupling would hide the cause, such as exchanged columns.
        if !is_sound(candidates, summary, motors, best.pair)? {
            continue;
        }
        if share >= SHARE {
            let joints = best.pair.map(|v| names[v].clone());
            out.notes.push(Warning::CouplingAdopted { coupling, share: share.min(1.0), joints });
            for (&v, shaft) in best.pair.iter().zip(best.shafts) {
                out.motors[v].shaft = shaft;
            }
        } else {
            out.notes.push(Warning::CouplingPossible { coupling, share });
        }
    }
    Ok(out)
}

/// Returns the root mean square speed of a joint, from the column of its viscous friction; `None` if there is no such column.
fn speed(candidates: &Equations<'_>, summary: &Summary, joint: usize) -> Option<f64> {
    let channel = &candidates.channels[joint];
    let wanted = Feature::on(Term::Viscous, &[(joint, 1.0)]);
    let place = channel.features.iter().position(|(_, feature)| *feature == wanted)?;
    let (factor, column) = (&summary.factors[joint], channel.entries.len() + place);
    let square: f64 = (0..=column).map(|i| factor.triangle.at(i, column).powi(2)).sum();
    Some((square / factor.count.max(1) as f64).sqrt())
}

/// Returns whether a fit with these drives explains all torques and those of a pair. Otherwise the coupling could compensate for
/// another model error.
fn is_sound(
    candidates: &Equations<'_>,
    summary: &Summary,
    motors: Vec<Motor>,
    pair: [usize; 2],
) -> Result<bool> {
    let equations = candidates.with_motors(motors);
    let projected = summary.project(candidates, &equations)?;
    let fit = LeastSquares::new(&equations, &projected, Weighting::Weighted)?;
    let found = validate(&equations, &projected, fit.values.as_slice())?;
    let names = candidates.row_names();
    let own = found.joints.iter().filter(|r| pair.iter().any(|&v| names[v] == r.joint));
    Ok(found.relative_rms < SOUND && own.map(|r| r.relative_rms).fold(0.0, f64::max) < 2.0 * SOUND)
}

/// Formats a shaft as `joint5 + joint6`.
fn sum(shaft: &[(usize, f64)], names: &[String]) -> String {
    let mut parts: Vec<(&str, f64)> = shaft.iter().map(|&(v, x)| (names[v].as_str(), x)).collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut out = String::new();
    for (name, factor) in parts {
        let sign = match (out.is_empty(), factor < 0.0) {
            (true, false) => "",
            (true, true) => "-",
            (false, false) => " + ",
            (false, true) => " - ",
        };
        out += sign;
        out += name;
    }
    out
}

/// Returns the combinations that the drives of two joints can turn with, except for each with its own joint.
fn alternatives([a, b]: [usize; 2]) -> Vec<[Vec<(usize, f64)>; 2]> {
    let (own_a, own_b) = (vec![(a, 1.0)], vec![(b, 1.0)]);
    let (sum, difference) = (vec![(a, 1.0), (b, 1.0)], vec![(a, -1.0), (b, 1.0)]);
    vec![
        [own_a.clone(), sum.clone()],
        [own_a, difference.clone()],
        [sum.clone(), own_b.clone()],
        [difference.clone(), own_b],
        [sum, difference],
    ]
}

/// Returns the weighted squared residual of least squares, and an upper bound on its decrease for each pair: drives on both
/// combinations, in addition to the present ones, explain at least as much as any alternative.
fn possible_gains(
    candidates: &Equations<'_>,
    now: &Equations<'_>,
    summary: &Summary,
    weights: &[f64],
    pairs: &[[usize; 2]],
) -> Result<(f64, Vec<f64>)> {
    let mut projection = Projection::new(candidates, now)?;
    let mut ends = Vec::new();
    for &[a, b] in pairs {
        for sign in [1.0, -1.0] {
            for term in [
                Term::Viscous,
                Term::Coulomb,
                Term::CoulombPositive,
                Term::CoulombNegative,
                Term::RotorInertia,
            ] {
                // Terms that the model does not have have no columns and are not added.
                projection.add(candidates, term, &[(a, sign), (b, 1.0)], None);
            }
        }
        ends.push(projection.len());
    }
    let all = projection.stacked(summary, weights)?.matrix();
    let (n, width) = (now.len(), all.ncols());
    // Residual after the present unknowns, exact because reflections have eliminated them.
    let rest = all.view((n, n), (width - n, width - n));
    let force: DVector<f64> = rest.column(width - n - 1).into_owned();
    let mut start = n;
    let mut gains = Vec::new();
    for end in ends {
        let columns = rest.columns(start - n, end - start).into_owned();
        let svd = Svd::new(&columns)?;
        let explained = &columns * svd.solve(&force, svd.rank(1e-9).rank, 0.0);
        gains.push(explained.norm_squared());
        start = end;
    }
    Ok((force.norm_squared(), gains))
}

/// Returns the weighted squared residual of least squares of all coordinates.
fn residual(projection: &Projection, summary: &Summary, weights: &[f64]) -> Result<f64> {
    let factor = projection.stacked(summary, weights)?;
    let last = factor.width() - 1;
    Ok(factor.at(last, last).powi(2))
}
