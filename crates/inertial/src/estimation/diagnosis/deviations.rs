//! Small errors of model and sensors, estimated together with all unknowns.
//!
//! Each error changes the predicted forces by one column, the derivative of the forces with respect to it at the estimate. Least
//! squares includes the column together with all unknowns, so that effects that the unknowns can explain do not count. The
//! standard error is computed from the scores of sixteen blocks of the samples, which is valid for correlated residuals.

use nalgebra::{DMatrix, Vector3};

use crate::Result;
use crate::dynamics::InverseDynamics;
use crate::estimation::diagnosis::deviation::{Deviation, DeviationKind, OtherLength};
use crate::estimation::diagnosis::excerpt::{Excerpt, LAGS};
use crate::estimation::diagnosis::joint_forces::JointForce;
use crate::estimation::equations::{Channel, Equations};
use crate::estimation::joint_model::terms::Term;
use crate::estimation::least_squares::solution::Solution;
use crate::estimation::reduction::blocks::{BLOCKS, Gram};
use crate::estimation::reduction::rows::{RowBlock, Visitor};
use crate::estimation::reduction::term_columns::ShaftSpeeds;
use crate::linalg::Triangle;
use crate::mechanism::Mechanism;

/// Step of numerical derivatives with respect to angles (rad).
const STEP: f64 = 1e-4;
/// Squared share of a column that is independent of the unknowns, below which it cannot be distinguished from them.
const INDEPENDENT: f64 = 1e-6;

/// Range of a joint relative to the widest, below which no spring is searched for: the position controller of a held joint acts like one.
const SMALL_RANGE: f64 = 0.03;

/// Ratio to which another lag must reduce the relative squared residual.
const FALL: f64 = 0.7;

/// Candidate deviation, with one column per force, sample after sample.
struct Candidate {
    kind: DeviationKind,
    of: Option<String>,
    column: Vec<f64>,
}

/// Computes the rigid-body forces of a [simple tree](Equations::is_simple_tree) at all samples, for positions modified by `change`.
fn rigid(mechanism: &Mechanism, excerpt: &Excerpt, change: impl Fn(&mut [f64])) -> Result<Vec<f64>> {
    let dynamics = InverseDynamics::new(mechanism);
    let (mut scratch, nv) = (dynamics.scratch(), mechanism.nv());
    let (mut out, mut q) = (vec![0.0; excerpt.count * nv], vec![0.0; nv]);
    for (s, tau) in out.chunks_exact_mut(nv).enumerate() {
        let own = s * nv..(s + 1) * nv;
        q.copy_from_slice(&excerpt.q[own.clone()]);
        change(&mut q);
        dynamics.rnea(&mut scratch, &q, &excerpt.v[own.clone()], &excerpt.a[own], tau)?;
    }
    Ok(out)
}

/// Computes the columns of errors of the torques: their lag, and the lag, the gain and a spring of each joint.
fn candidates_of_torques(
    equations: &Equations<'_>,
    excerpt: &Excerpt,
    [predicted, rate]: [&[f64]; 2],
) -> Vec<Candidate> {
    let (rows, nq) = (equations.channels.len(), excerpt.q.len() / excerpt.count.max(1));
    let (names, joints) = (equations.force_names(), equations.joint_forces());
    // τ(t) = f(t − lag) is about f − lag ḟ. The derivative of measured torques would correlate with their noise and bias the lag
    // towards zero.
    let late: Vec<f64> = rate.iter().map(|x| -x).collect();
    let mut out = vec![Candidate { kind: DeviationKind::Lag, of: None, column: late.clone() }];
    let positions = |place: usize| excerpt.q.iter().skip(place).step_by(nq);
    let ranges: Vec<f64> = joints.iter().map(|joint| range(positions(joint.position))).collect();
    let widest = ranges.iter().copied().fold(0.0, f64::max);
    for (&JointForce { row, position }, range) in joints.iter().zip(ranges) {
        let mut push = |kind: DeviationKind, value: &dyn Fn(usize) -> f64| {
            let own = |k: usize| if k % rows == row { value(k) } else { 0.0 };
            let column = (0..excerpt.tau.len()).map(own).collect();
            out.push(Candidate { kind, of: Some(names[row].clone()), column });
        };
        if rows > 1 {
            push(DeviationKind::JointLag, &|k| late[k]);
        }
        push(DeviationKind::Gain, &|k| predicted[k]);
        if range >= SMALL_RANGE * widest {
            // The unknowns contain no offset if the data need none: the column is that of the position about its mean.
            let mean = positions(position).sum::<f64>() / excerpt.count.max(1) as f64;
            push(DeviationKind::Spring, &|k| excerpt.q[k / rows * nq + position] - mean);
        }
    }
    out
}

/// Computes the columns of errors of positions and of the model at the estimated parameters: tilts of the base, zeros and lengths.
fn candidates_of_model(
    mechanism: &Mechanism,
    excerpt: &Excerpt,
    parameters: &[f64],
    lengths: Vec<OtherLength>,
) -> Result<Vec<Candidate>> {
    let estimated = mechanism.clone().with_parameters(parameters)?;
    let as_it_is = rigid(&estimated, excerpt, |_| {})?;
    let derivative = |other: Vec<f64>, by: f64| -> Vec<f64> {
        other.iter().zip(&as_it_is).map(|(other, own)| (other - own) / by).collect()
    };
    let mut out = Vec::new();
    let gravity = mechanism.gravity();
    if gravity.norm() > 0.0 {
        for (name, axis) in [("x", Vector3::x()), ("y", Vector3::y())] {
            // Gravity rotated about the axis by a small angle.
            let turned = estimated.clone().with_gravity(gravity + STEP * axis.cross(&gravity));
            out.push(Candidate {
                kind: DeviationKind::Tilt,
                of: Some(name.to_owned()),
                column: derivative(rigid(&turned, excerpt, |_| {})?, STEP),
            });
        }
    }
    for (joint, name) in mechanism.velocity_names().into_iter().enumerate() {
        let moved = rigid(&estimated, excerpt, |q| q[joint] += STEP)?;
        // With a zero error, the measured positions are too high: the true forces are those of lower positions.
        out.push(Candidate { kind: DeviationKind::Zero, of: Some(name), column: derivative(moved, -STEP) });
    }
    for other in lengths {
        let changed = rigid(&other.mechanism.with_parameters(parameters)?, excerpt, |_| {})?;
        // A length of the model is too large: the true forces are those of a shorter one.
        out.push(Candidate {
            kind: DeviationKind::Length,
            of: Some(other.joint),
            column: derivative(changed, -other.by),
        });
    }
    Ok(out)
}

/// Returns the difference between the largest and the smallest value.
fn range<'a>(values: impl Iterator<Item = &'a f64>) -> f64 {
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
    high - low
}

/// Returns the columns of viscous friction of the joints whose joint model has none. Friction that was left out because of a lag would
/// make the estimate of the lag wrong: both change the force in proportion to a speed.
fn omitted_viscous(equations: &Equations<'_>, excerpt: &Excerpt) -> Vec<Vec<f64>> {
    let (rows, nv) = (equations.channels.len(), equations.coordinates());
    let joints = equations.joint_forces().into_iter().map(|joint| joint.row);
    let column = |joint: usize| {
        let own = |k: usize| if k % rows == joint { excerpt.v[k / rows * nv + joint] } else { 0.0 };
        (0..excerpt.tau.len()).map(own).collect()
    };
    joints.filter(|&joint| !equations.terms.contains(&(joint, Term::Viscous))).map(column).collect()
}

/// Estimate whose errors are searched for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimate<'a> {
    /// Values of the unknowns.
    pub values: &'a [f64],
    /// Parameters of the mechanism.
    pub parameters: &'a [f64],
    /// Standard deviation of the noise of each force.
    pub noise: &'a [f64],
}

/// Computes all deviations of an estimate, each of them separately together with the unknowns.
pub(crate) fn deviations(
    equations: &Equations<'_>,
    excerpt: &Excerpt,
    estimate: Estimate<'_>,
    lengths: Vec<OtherLength>,
) -> Result<Vec<Deviation>> {
    let Estimate { values, parameters, noise } = estimate;
    let data = excerpt.measurements(equations)?;
    let predicted = equations.predict(&data, values)?.force;
    let rate = excerpt.predicted_rate(equations, values)?;
    let mut candidates = candidates_of_torques(equations, excerpt, [&predicted, &rate]);
    if equations.is_simple_tree() {
        candidates.extend(candidates_of_model(equations.mechanism(), excerpt, parameters, lengths)?);
    }
    let (n, first_later) = (equations.len(), equations.len() + candidates.len());
    let later: Vec<Vec<f64>> = (0..LAGS.len()).map(|k| excerpt.later(k)).collect();
    let omitted = omitted_viscous(equations, excerpt);
    let first_omitted = first_later + LAGS.len();
    let width = first_omitted + omitted.len() + 1;
    let columns = candidates.iter().map(|c| &c.column).chain(&later).chain(&omitted);
    let mut collect = RowCollector {
        noise,
        columns: columns.map(|column| &column[..]).collect(),
        per_block: excerpt.count.div_ceil(BLOCKS),
        blocks: (0..BLOCKS).map(|_| Triangle::new(width)).collect(),
        rows: Vec::new(),
        feature: Vec::new(),
    };
    data.visit(equations, 0..excerpt.count, &mut collect)?;
    let mut all = Triangle::new(width);
    let mut grams = Vec::new();
    for block in &collect.blocks {
        let mut gram = Gram::default();
        gram.add_factor(block, 1, width);
        grams.push(gram);
        all.merge(block)?;
    }
    let matrix = all.matrix();
    let unknowns: Vec<usize> = (0..n).collect();
    let with_omitted: Vec<usize> = (0..n).chain(first_omitted..width - 1).collect();
    // The forces and each candidate, after elimination of the unknowns. For lags these include the omitted friction.
    let eliminated = |unknowns: &[usize], column: usize| -> Result<Vec<f64>> {
        let system: Vec<usize> = unknowns.iter().copied().chain([column]).collect();
        let values = Solution::of_factor(&matrix.select_columns(&system), None)?.values;
        let mut out = vec![0.0; width];
        unknowns.iter().zip(values.iter()).for_each(|(&k, x)| out[k] = -x);
        out[column] = 1.0;
        Ok(out)
    };
    let blocks: Vec<DMatrix<f64>> =
        grams.iter().map(|g| DMatrix::from_fn(width, width, |i, j| g.at(i, j, width))).collect();
    let product = |gram: &DMatrix<f64>, a: &[f64], b: &[f64]| -> f64 {
        gram.column_iter()
            .zip(b)
            .filter(|(_, b)| **b != 0.0)
            .map(|(column, b)| b * column.iter().zip(a).map(|(x, a)| x * a).sum::<f64>())
            .sum()
    };
    let remaining_of = |residual: &[f64]| blocks.iter().map(|g| product(g, residual, residual)).sum::<f64>();
    let (residual, residual_of_lag) =
        (eliminated(&unknowns, width - 1)?, eliminated(&with_omitted, width - 1)?);
    let energy = |column: usize| blocks.iter().map(|g| g[(column, column)]).sum::<f64>();
    let mut out = Vec::new();
    // Lags that are too large for the linearization.
    let unchanged = remaining_of(&residual_of_lag) / energy(width - 1);
    let mut best = (FALL * unchanged, None);
    let lags: Vec<f64> = (0..LAGS.len()).map(|k| excerpt.rounded_lag(k)).collect();
    for (k, &lag) in lags.iter().enumerate().filter(|(_, lag)| **lag != 0.0) {
        let own = eliminated(&with_omitted, first_later + k)?;
        let share = remaining_of(&own) / energy(first_later + k);
        if share < best.0 {
            best = (share, Some(lag));
        }
    }
    if let (share, Some(value)) = best {
        let apart = lags.iter().map(|lag| (lag - value).abs()).filter(|gap| *gap > 1e-6);
        // The true lag is between the neighbouring candidates: a tenth of that distance is a sufficient initial error.
        let std_error = 0.1 * apart.fold(value.abs(), f64::min);
        out.push(Deviation {
            kind: DeviationKind::Lag,
            of: None,
            value,
            std_error,
            explains: 1.0 - share / unchanged,
        });
    }
    let known = out.len();
    for (k, candidate) in candidates.iter().enumerate().skip(known) {
        let (unknowns, residual) = match candidate.kind {
            DeviationKind::Lag | DeviationKind::JointLag => (&with_omitted, &residual_of_lag),
            _ => (&unknowns, &residual),
        };
        let own = eliminated(unknowns, n + k)?;
        let remaining = remaining_of(residual);
        let scores: Vec<[f64; 2]> =
            blocks.iter().map(|g| [product(g, &own, residual), product(g, &own, &own)]).collect();
        let [score, information] = scores.iter().fold([0.0; 2], |s, x| [s[0] + x[0], s[1] + x[1]]);
        if !(information > INDEPENDENT * energy(n + k) && remaining > 0.0) {
            continue;
        }
        let value = score / information;
        let spread: f64 = scores.iter().map(|[s, i]| (s - value * i).powi(2)).sum();
        let count = BLOCKS as f64;
        out.push(Deviation {
            kind: candidate.kind,
            of: candidate.of.clone(),
            value,
            std_error: (spread * count / (count - 1.0)).sqrt() / information,
            explains: (value * score / remaining).clamp(0.0, 1.0),
        });
    }
    Ok(out)
}

/// Collector of the rows of all forces, divided by their noise, in one factor per block.
struct RowCollector<'a> {
    noise: &'a [f64],
    columns: Vec<&'a [f64]>,
    per_block: usize,
    blocks: Vec<Triangle>,
    /// Reusable memory.
    rows: Vec<f64>,
    feature: Vec<f64>,
}

impl Visitor for RowCollector<'_> {
    fn rows(
        &mut self,
        rows: &RowBlock<'_>,
        channel: &Channel,
        entry: impl Fn(usize, usize) -> f64,
    ) -> Result<()> {
        let (all, n) = (rows.equations.channels.len(), rows.equations.len());
        let weight = match self.noise.get(rows.row) {
            Some(noise) if *noise > 0.0 => noise.recip(),
            _ => return Ok(()),
        };
        let given = &rows.equations.joint_model().given;
        let width = n + self.columns.len() + 1;
        let mut start = 0;
        while start < rows.count {
            // Blocks of samples may end within these rows.
            let block = (rows.first + start) / self.per_block;
            let end = ((block + 1) * self.per_block - rows.first).min(rows.count);
            let counts =
                |s: &usize| rows.data.keep.is_none_or(|keep| keep[(rows.first + s) * all + rows.row]);
            let kept: Vec<usize> = (start..end).filter(counts).collect();
            let count = kept.len();
            self.rows.clear();
            self.rows.resize(count * width, 0.0);
            for (&e, &unknown) in channel.entries.iter().zip(&channel.unknowns) {
                let out = &mut self.rows[unknown * count..(unknown + 1) * count];
                out.iter_mut().zip(&kept).for_each(|(out, &s)| *out = weight * entry(e, s));
            }
            let unknowns = &channel.unknowns[channel.entries.len()..];
            let mut speeds = ShaftSpeeds::default();
            for ((scale, feature), &unknown) in channel.features.iter().zip(unknowns) {
                self.feature.clear();
                let samples = kept.iter().map(|s| rows.first + s);
                feature.fill(given, rows.data, samples, &mut speeds, &mut self.feature);
                let out = &mut self.rows[unknown * count..(unknown + 1) * count];
                out.iter_mut().zip(&self.feature).for_each(|(out, x)| *out = weight * scale * x);
            }
            let columns = self.columns.iter().copied().chain([rows.data.tau]);
            for (column, out) in columns.zip(self.rows[n * count..].chunks_exact_mut(count.max(1))) {
                for (out, s) in out.iter_mut().zip(&kept) {
                    *out = weight * column[(rows.first + s) * all + rows.row];
                }
            }
            self.blocks[block.min(BLOCKS - 1)].add_rows(&mut self.rows, count)?;
            start = end;
        }
        Ok(())
    }
}
