//! Numerical ranks of a mechanism with loops (paper 004, section 5) from sampled regressors with closure errors.
//!
//! The numerical rank of a sampled regressor is the number of its singular values above a threshold. Closure errors
//! of the loops perturb the regressor, so the rank is too high as soon as the perturbation exceeds the threshold.

use inertial::dynamics::ClosedMechanism;
use inertial::identifiability::{AnalyzeOptions, analyze};
use inertial::linalg::{SplitMix, Triangle, singular_values};
use inertial::mechanism::Mechanism;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Result, ensure};

const SCHEMA: &str = "inertial/sampled-rank/1";

/// Number of samples in the paper.
pub const SAMPLES: usize = 5000;

/// Largest perturbations (rad, m) of the dependent joints from closed loops.
pub const ERRORS: [f64; 5] = [0.0, 1e-12, 1e-9, 1e-6, 1e-4];

/// Largest distance (rad, m) of the driven joints from the assembled configuration.
const RANGE: f64 = 0.3;

/// Number of attempts per sample, since some configurations are out of reach.
const TRIES: usize = 20;

/// Rank of one sampled regressor.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Row {
    /// Largest error of the dependent joints (rad, m).
    pub error: f64,
    /// Largest closure error of the loops.
    pub residual: f64,
    /// Number of singular values above the threshold.
    pub rank: usize,
    /// Number of parameters minus the rank.
    pub nullity: usize,
    /// Smallest singular value above the threshold and largest one below it, relative to the largest of all.
    pub gap: [f64; 2],
}

/// Numerical ranks compared with the proved one.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Outcome {
    /// Schema of the object.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// Number of samples of each regressor.
    pub samples: usize,
    /// Rank from exact arithmetic.
    pub rank: usize,
    /// Whether the rank is certified.
    pub certified: bool,
    /// Number of parameters.
    pub parameters: usize,
    /// Threshold of singular values relative to the largest: the number of rows times the machine epsilon, as in MATLAB and NumPy.
    pub threshold: f64,
    /// Ranks of the sampled regressors.
    pub rows: Vec<Row>,
}

/// Computes the ranks of regressors whose loops are closed with different accuracy.
pub fn run(mechanism: &Mechanism, samples: usize, seed: u64) -> Result<Outcome> {
    let closed = ClosedMechanism::new(mechanism)?;
    ensure!(samples * closed.dof() > 0, "the study needs samples of a mechanism that moves");
    let exact = analyze(mechanism, &AnalyzeOptions::default())?;
    let threshold = (samples * closed.dof()).max(mechanism.parameter_count()) as f64 * f64::EPSILON;
    let mut random = Random(SplitMix::new(seed));
    let states = states(&closed, samples, &mut random)?;
    let rows = ERRORS.iter().map(|&error| sampled(&closed, &states, error, &mut random, threshold));
    Ok(Outcome {
        schema: SCHEMA,
        samples,
        rank: exact.rank,
        certified: exact.certificate.exact,
        parameters: mechanism.parameter_count(),
        threshold,
        rows: rows.collect::<Result<_>>()?,
    })
}

/// Uniform random numbers from -1 to 1.
struct Random(SplitMix);

impl Random {
    fn next(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Configuration with closed loops, and velocities and accelerations of the independent joints.
struct SampledState {
    q: Vec<f64>,
    v: Vec<f64>,
    a: Vec<f64>,
}

/// Returns random states around the assembled configuration.
fn states(closed: &ClosedMechanism<'_>, samples: usize, random: &mut Random) -> Result<Vec<SampledState>> {
    let mut workspace = closed.workspace();
    let mut out = Vec::with_capacity(samples);
    for _ in 0..TRIES * samples {
        if out.len() == samples {
            break;
        }
        let target =
            closed.independent_positions().iter().map(|&k| closed.assembled()[k] + RANGE * random.next());
        let target: Vec<f64> = target.collect();
        let mut rates = || (0..closed.dof()).map(|_| random.next()).collect::<Vec<f64>>();
        let (v, a) = (rates(), rates());
        let mut q = closed.assembled().to_vec();
        if closed.move_to(&mut workspace, &mut q, &target).is_ok() {
            out.push(SampledState { q, v, a });
        }
    }
    ensure!(out.len() == samples, "only {} of {samples} configurations can be reached", out.len());
    Ok(out)
}

fn sampled(
    closed: &ClosedMechanism<'_>,
    states: &[SampledState],
    error: f64,
    random: &mut Random,
    threshold: f64,
) -> Result<Row> {
    let (mechanism, dof) = (closed.mechanism(), closed.dof());
    let mut workspace = closed.workspace();
    let columns = mechanism.parameter_count();
    let mut triangle = Triangle::new(columns);
    let mut block = vec![0.0; dof * columns];
    let (mut open, mut step) = (closed.assembled().to_vec(), vec![0.0; mechanism.nv()]);
    let mut residual = 0.0f64;
    for SampledState { q, v, a } in states {
        for (k, step) in step.iter_mut().enumerate() {
            let draw = random.next();
            *step = if closed.independent().contains(&k) { 0.0 } else { error * draw };
        }
        open.copy_from_slice(q);
        mechanism.integrate(&mut open, &step);
        residual = residual.max(closed.residual(&mut workspace, &open)?);
        let rows = closed.torque_regressor(&mut workspace, &open, v, a)?;
        for (i, row) in rows.chunks_exact(columns).enumerate() {
            for (j, value) in row.iter().enumerate() {
                block[j * dof + i] = *value;
            }
        }
        triangle.add_rows(&mut block, dof).map_err(inertial::Error::from)?;
    }
    let values = singular_values(&triangle.matrix()).map_err(inertial::Error::from)?;
    let relative = |k: usize| values.get(k).map_or(0.0, |s| s / values[0]);
    let rank = values.iter().filter(|s| **s > threshold * values[0]).count();
    let gap = [relative(rank.saturating_sub(1)), relative(rank)];
    Ok(Row { error, residual, rank, nullity: columns - rank, gap })
}
