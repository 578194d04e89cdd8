//! Numerical ranks of a mechanism with loops (paper 004, section 5): sampled regressors whose loops are not quite closed.
//!
//! The rank of a sampled regressor is the number of its singular values above a threshold. What a loop is left open adds to the
//! regressor, so a rank that is too high follows as soon as this exceeds the threshold.

use inertial::dynamics::ClosedMechanism;
use inertial::identifiability::{AnalyzeOptions, analyze};
use inertial::linalg::{SplitMix, Triangle, singular_values};
use inertial::mechanism::Mechanism;

use crate::{Result, ensure};

/// Samples of the paper.
pub const SAMPLES: usize = 5000;

/// Distances (rad, m) that the dependent joints are moved away from closed loops, at most.
pub const ERRORS: [f64; 5] = [0.0, 1e-12, 1e-9, 1e-6, 1e-4];

/// Largest distance (rad, m) of the driven joints from the assembled configuration.
const RANGE: f64 = 0.3;

/// Tries for each sample: some configurations are out of reach.
const TRIES: usize = 20;

/// Rank of one sampled regressor.
#[derive(Debug, Clone)]
pub struct Row {
    /// Largest error of the dependent joints (rad, m).
    pub error: f64,
    /// Largest residual of the loops.
    pub residual: f64,
    /// Singular values above the threshold.
    pub rank: usize,
    /// Smallest singular value that counts, and the largest that does not, relative to the largest of all.
    pub gap: [f64; 2],
}

/// Numerical ranks beside the proved one.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Rank by exact arithmetic.
    pub rank: usize,
    /// Whether the rank is certified.
    pub certified: bool,
    /// Number of parameters.
    pub parameters: usize,
    /// Threshold of singular values relative to the largest: the number of rows times the rounding unit, as in MATLAB and NumPy.
    pub threshold: f64,
    /// Sampled regressors.
    pub rows: Vec<Row>,
}

/// Samples regressors with loops that are closed to different accuracies.
pub fn run(mechanism: &Mechanism, samples: usize, seed: u64) -> Result<Outcome> {
    let closed = ClosedMechanism::new(mechanism)?;
    ensure!(samples * closed.dof() > 0, "the study needs samples of a mechanism that moves");
    let exact = analyze(mechanism, &AnalyzeOptions::default())?;
    let threshold = (samples * closed.dof()).max(mechanism.parameter_count()) as f64 * f64::EPSILON;
    let rows = ERRORS.iter().map(|&error| sampled(&closed, samples, error, seed, threshold));
    Ok(Outcome {
        rank: exact.rank,
        certified: exact.certificate.exact,
        parameters: mechanism.parameter_count(),
        threshold,
        rows: rows.collect::<Result<_>>()?,
    })
}

fn sampled(
    closed: &ClosedMechanism<'_>,
    samples: usize,
    error: f64,
    seed: u64,
    threshold: f64,
) -> Result<Row> {
    let (mechanism, dof) = (closed.mechanism(), closed.dof());
    let mut source = SplitMix::new(seed);
    let mut uniform = || (source.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
    let mut workspace = closed.workspace();
    let columns = mechanism.parameter_count();
    let mut triangle = Triangle::new(columns);
    let mut block = vec![0.0; dof * columns];
    let mut target = vec![0.0; closed.independent_positions().len()];
    let (mut v, mut a, mut step) = (vec![0.0; dof], vec![0.0; dof], vec![0.0; mechanism.nv()]);
    let mut residual = 0.0f64;
    let (mut q, mut open) = (closed.assembled().to_vec(), closed.assembled().to_vec());
    let mut taken = 0;
    for _ in 0..TRIES * samples {
        if taken == samples {
            break;
        }
        for (target, &k) in target.iter_mut().zip(closed.independent_positions()) {
            *target = closed.assembled()[k] + RANGE * uniform();
        }
        v.iter_mut().chain(&mut a).for_each(|x| *x = uniform());
        q.copy_from_slice(closed.assembled());
        if closed.move_to(&mut workspace, &mut q, &target).is_err() {
            continue;
        }
        taken += 1;
        for (k, step) in step.iter_mut().enumerate() {
            let draw = uniform();
            *step = if closed.independent().contains(&k) { 0.0 } else { error * draw };
        }
        open.copy_from_slice(&q);
        mechanism.integrate(&mut open, &step);
        residual = residual.max(closed.residual(&mut workspace, &open)?);
        let rows = closed.torque_regressor(&mut workspace, &open, &v, &a)?;
        for (i, row) in rows.chunks_exact(columns).enumerate() {
            for (j, value) in row.iter().enumerate() {
                block[j * dof + i] = *value;
            }
        }
        triangle.absorb(&mut block, dof).map_err(inertial::Error::from)?;
    }
    ensure!(taken == samples, "only {taken} of {samples} configurations can be reached");
    let values = singular_values(&triangle.matrix()).map_err(inertial::Error::from)?;
    let relative = |k: usize| values.get(k).map_or(0.0, |s| s / values[0]);
    let rank = values.iter().filter(|s| **s > threshold * values[0]).count();
    Ok(Row { error, residual, rank, gap: [relative(rank.saturating_sub(1)), relative(rank)] })
}
