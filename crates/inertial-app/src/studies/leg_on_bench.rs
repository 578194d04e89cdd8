//! Parameters of a leg that a test bench does not determine (paper 003, section 9.3, table 6).
//!
//! The legs of a quadruped are identified twice from the same noise-free leg motion: with a free torso and its wrench
//! measured, and with a fixed torso. Both estimates explain bench data exactly. Only the first explains a running
//! robot. The second lacks combinations that only a moving torso excites, so torques of the inner joints and the
//! wrench on the torso are wrong, while the outermost joints, whose links move freely in both cases, are right.

use inertial::dynamics::InverseDynamics;
use inertial::identifiability::{AnalyzeOptions, analyze};
use inertial::linalg::Svd;
use inertial::mechanism::{Base, BuildOptions, Mechanism, builtin};
use nalgebra::{DMatrix, DVector};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Result;

const SCHEMA: &str = "inertial/leg-on-bench/1";

/// Number of samples, 50 ms apart.
const SAMPLES: usize = 240;

/// Results of the study.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Outcome {
    /// Schema of the object.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// Prediction errors of the estimates from a free torso and from a fixed one.
    pub rows: [Row; 2],
}

/// RMS prediction errors of one estimate.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Row {
    /// Whether the torso was free when the legs were identified.
    pub free: bool,
    /// Number of base parameters found.
    pub rank: usize,
    /// Torques of a leg on the bench (N m): abduction, hip, knee.
    pub bench: [f64; 3],
    /// Torques of a leg with a moving torso (N m).
    pub moving: [f64; 3],
    /// Moment on the torso (N m).
    pub moment: [f64; 3],
    /// Force on the torso (N).
    pub force: [f64; 3],
}

/// Identifies the quadruped with a free and a fixed torso, and predicts both experiments with each estimate.
pub fn run() -> Result<Outcome> {
    let model = builtin::get("quadruped")?;
    let build = |base| model.build(&BuildOptions::default().with(|o| o.base = Some(base)));
    let (free, bench) = (build(Base::Floating)?, build(Base::Fixed)?);
    let (on_free, on_bench) = (Experiment::new(&free)?, Experiment::new(&bench)?);
    let from_free = on_free.identify()?;
    let from_bench = into_names_of(&free, &free.parameters(), &bench, &on_bench.identify()?);
    let row = |is_free: bool, rank: usize, estimate: &[f64]| {
        let fixed = on_bench.errors(&into_names_of(&bench, &bench.parameters(), &free, estimate));
        let moving = on_free.errors(estimate);
        // One leg: hip abduction, hip, knee. The coordinates of the floating base come first, force before moment.
        let three = |errors: &[f64], first: usize| std::array::from_fn(|k| errors[first + k]);
        Row {
            free: is_free,
            rank,
            bench: three(&fixed, 0),
            moving: three(&moving, 6),
            moment: three(&moving, 3),
            force: three(&moving, 0),
        }
    };
    let rows = [row(true, on_free.rank, &from_free), row(false, on_bench.rank, &from_bench)];
    Ok(Outcome { schema: SCHEMA, rows })
}

/// Returns parameters by name: `values` of one mechanism if it has them, otherwise the defaults of the other.
fn into_names_of(to: &Mechanism, defaults: &[f64], from: &Mechanism, values: &[f64]) -> Vec<f64> {
    let names = from.parameter_names();
    let known: std::collections::HashMap<_, _> = names.iter().zip(values).collect();
    to.parameter_names().iter().zip(defaults).map(|(n, d)| known.get(n).map_or(*d, |v| **v)).collect()
}

/// Motion with its measurements and the structural rank of its regressor.
struct Experiment {
    regressor: DMatrix<f64>,
    measured: DVector<f64>,
    nv: usize,
    rank: usize,
}

impl Experiment {
    /// Creates an experiment in which every coordinate oscillates at three frequencies; the joints move in the same way with both bases.
    fn new(mechanism: &Mechanism) -> Result<Self> {
        let (nv, np) = (mechanism.nv(), mechanism.parameter_count());
        let dynamics = InverseDynamics::new(mechanism);
        let mut scratch = dynamics.scratch();
        let base = nv - 12;
        let mut regressor = DMatrix::zeros(SAMPLES * nv, np);
        for k in 0..SAMPLES {
            let t = 0.05 * k as f64;
            let (mut step, mut v, mut a) = (vec![0.0; nv], vec![0.0; nv], vec![0.0; nv]);
            for c in 0..nv {
                // Joints are numbered from the first leg; the six coordinates of the torso follow.
                let id = if c < base { 12 + c } else { c - base } as f64;
                for tone in 1..=3 {
                    let w = 0.9 * f64::from(tone) + 0.13 * id;
                    let phase = w * t + 2.4 * id + f64::from(tone);
                    step[c] += 0.3 * phase.sin();
                    v[c] += 0.3 * w * phase.cos();
                    a[c] -= 0.3 * w * w * phase.sin();
                }
            }
            let mut q = mechanism.neutral();
            mechanism.integrate(&mut q, &step);
            let y = dynamics.torque_regressor(&mut scratch, &q, &v, &a)?;
            regressor.rows_mut(k * nv, nv).copy_from(&DMatrix::from_row_slice(nv, np, y));
        }
        let measured = &regressor * DVector::from_vec(mechanism.parameters());
        let rank = analyze(mechanism, &AnalyzeOptions::default())?.rank;
        Ok(Self { regressor, measured, nv, rank })
    }

    /// Computes the minimum-norm parameter vector that explains the measurements; the structural rank determines the cut-off.
    fn identify(&self) -> Result<Vec<f64>> {
        let svd = Svd::new(&self.regressor).map_err(inertial::Error::from)?;
        Ok(svd.solve(&self.measured, self.rank, 0.0).as_slice().to_vec())
    }

    /// Returns the RMS error of each generalized force.
    fn errors(&self, parameters: &[f64]) -> Vec<f64> {
        let error = &self.regressor * DVector::from_column_slice(parameters) - &self.measured;
        let mean = |row: usize| {
            let squares = error.iter().skip(row).step_by(self.nv).map(|e| e * e);
            (squares.sum::<f64>() / SAMPLES as f64).sqrt()
        };
        (0..self.nv).map(mean).collect()
    }
}
