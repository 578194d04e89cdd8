//! Free-flying robot with two arms (paper 002, section VI): the published motion and estimator, and later methods.
//!
//! The motion is designed with a model that is known to be wrong, and flown by the true robot. The parameters of the
//! true robot are estimated from noisy measurements of this flight.

mod designs;
mod robot;

use inertial::estimation::momentum_identification::RateRule;
use inertial::mechanism::{BuildOptions, builtin};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Result;
use robot::{Estimate, Robot};

const SCHEMA: &str = "inertial/space-robot/1";

/// Published number of intervals, their length (s), and standard deviations of the rates.
pub const INTERVALS: usize = 67;
pub(crate) const INTERVAL: f64 = 1.0;
pub(crate) const NOISE: [(&str, f64); 3] = [("base.v", 5e-5), ("base.w", 8e-5), ("dq", 5e-5)];

/// Sampling rate (Hz); not stated in the paper.
pub const RATE: f64 = 10.0;

/// Weight in eq. 32; not stated in the paper.
pub(crate) const WEIGHT: f64 = 0.01;

/// Number of simulated experiments.
pub const DRAWS: u64 = 20;

/// Start and range of each joint (degrees) from table 3.
pub(crate) const PRINTED_SEEDS: [[f64; 6]; 2] =
    [[40.661, -109.403, -78.782, 125.089, -110.0, 51.228], [0.524, 2.51, 2.51, 2.513, 2.036, 2.5]];

/// Cases of table 5: intervals, significant singular values, median and largest error (%).
const PRINTED_CASES: [(usize, usize, f64, f64); 3] =
    [(67, 52, 2.08, 174.02), (20, 38, 150.22, 51817.41), (40, 46, 12.28, 2141.79)];

/// Numbers of intervals, and the numbers of significant singular values that the paper states for them.
pub const PRINTED_COUNTS: [(usize, usize); 5] = [(1, 11), (3, 20), (20, 38), (40, 46), (67, 52)];

/// Condition number stated in the paper.
pub const PRINTED_CONDITION: f64 = 248.8;

/// Prediction errors from table 6.
pub const PRINTED_PREDICTION: ([f64; 6], [f64; 6]) =
    ([1.7e-4, 1.6e-4, 0.6e-4, 2.1e-4, 1.8e-4, 3.5e-4], [0.2961, 0.1665, 0.0778, 0.0922, 0.0368, 0.0262]);

/// Results of the study.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Schema of the object.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// Sampling rate (Hz).
    pub rate: f64,
    /// Number of simulated experiments per row.
    pub draws: u64,
    /// Standard deviations of the linear (m/s) and angular velocity (rad/s) of the base and of the joint rates (rad/s).
    pub noise: [f64; 3],
    /// Published motion: seeds of table 3 with the first direction combinations in binary order.
    pub published: Published,
    /// Table 5: the published motion, least squares, positions integrated by Euler's rule.
    pub cases: Vec<Case>,
    /// Table 4: true values and estimates of the first experiment of each case.
    pub parameters: Vec<Parameter>,
    /// Published method with newly optimized seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated: Option<Repeated>,
    /// Design with velocities at knots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ours: Option<Ours>,
    /// Comparison of designs and estimators.
    pub rows: Vec<Row>,
    /// Validation motion and errors (figures 6 and 7).
    #[serde(skip)]
    pub validation: Validation,
}

/// Published motion (figure 4).
#[derive(Debug, Serialize, JsonSchema)]
pub struct Published {
    /// Condition number of the regressor of the assumed model.
    pub condition_believed: f64,
    /// Condition number of the regressor of the true robot.
    pub condition: f64,
    /// Counts for each interval alone.
    pub alone: Counts,
    /// Counts for all intervals up to each one.
    pub together: Counts,
    /// Number of intervals that algorithm 1 keeps of 256 with these seeds: as printed, with refresh, with the count of its text.
    pub kept: [usize; 3],
}

/// Condition numbers and numbers of significant singular values, by interval.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Counts {
    /// Condition numbers; null if infinite.
    #[schemars(with = "Vec<Option<f64>>")]
    pub condition: Vec<f64>,
    /// Numbers of singular values above 1/300 of the largest.
    pub significant: Vec<usize>,
}

/// Case of table 5, with the printed figures.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Case {
    /// Number of intervals.
    pub intervals: usize,
    /// Number of significant singular values.
    pub significant: usize,
    /// Printed number of significant singular values.
    pub printed_significant: usize,
    /// Condition number.
    pub condition: f64,
    /// Median relative error of the parameters (%), median over the experiments.
    pub median_percent: f64,
    /// Printed median (%).
    pub printed_median_percent: f64,
    /// Largest relative error (%), median over the experiments.
    pub largest_percent: f64,
    /// Printed largest error (%).
    pub printed_largest_percent: f64,
    /// Smallest and largest of the medians of single experiments (%).
    pub median_range_percent: [f64; 2],
    /// Smallest and largest of the largest errors of single experiments (%).
    pub largest_range_percent: [f64; 2],
    /// Parameter with the largest error.
    pub worst: String,
    /// Median and largest error (%) without noise, with positions still integrated.
    pub noise_free_percent: [f64; 2],
}

/// Parameter of table 4.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Parameter {
    /// Name of the parameter.
    pub name: String,
    /// True value.
    pub value: f64,
    /// Estimates in the cases.
    pub estimates: Vec<f64>,
}

/// Published method, repeated from its first step.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Repeated {
    /// Number of starts, of which the best is used.
    pub starts: usize,
    /// Number of intervals that algorithm 1 keeps of 256: as printed, with refresh, with the count of its text.
    pub kept: [usize; 3],
    /// Start of each joint (rad).
    pub start: Vec<f64>,
    /// Range of each joint (rad).
    pub range: Vec<f64>,
    /// Condition number of the regressor of the assumed model.
    pub condition_believed: f64,
    /// Condition number of the regressor of the true robot.
    pub condition: f64,
}

/// Design with velocities at knots.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Ours {
    /// Name of the criterion.
    pub criterion: &'static str,
    /// Value of the criterion.
    pub value: f64,
    /// Number of parameters that the motion determines, and number of identifiable ones.
    pub rank: [usize; 2],
    /// Median and largest expected standard error relative to the assumed values (%).
    pub expected_percent: [f64; 2],
}

/// Errors of one design with one estimator.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Row {
    /// Name of the design.
    pub design: &'static str,
    /// Name of the estimator.
    pub estimator: &'static str,
    /// Rule with which positions are integrated.
    pub positions: &'static str,
    /// Median relative error (%), median over the experiments.
    pub median_percent: f64,
    /// Largest relative error (%), median over the experiments.
    pub largest_percent: f64,
    /// Root mean square of errors in units of their standard errors.
    pub rms_in_std_errors: f64,
    /// Median and largest error (%) without noise.
    pub noise_free_percent: [f64; 2],
    /// Parameters with the largest errors: name, true value, error (%).
    pub worst: Vec<(String, f64, f64)>,
    /// Root mean square prediction errors of the base twist on another motion: m/s, then rad/s (table 6).
    pub base: [f64; 6],
    /// Root mean square prediction errors of the joint torques on that motion (N m).
    pub torques: Vec<f64>,
}

/// Validation motion (figure 6) and prediction errors (figure 7), with the estimate of the first experiment of case 1.
#[derive(Debug, Default)]
pub struct Validation {
    /// Times of the samples (s).
    pub t: Vec<f64>,
    /// Names of the joints.
    pub joints: Vec<String>,
    /// Angles of each joint (rad).
    pub positions: Vec<Vec<f64>>,
    /// Rates of each joint (rad/s).
    pub rates: Vec<Vec<f64>>,
    /// Errors of the base twist: m/s, then rad/s.
    pub base_errors: Vec<Vec<f64>>,
    /// Errors of the joint torques (N m).
    pub torque_errors: Vec<Vec<f64>>,
}

/// Runs the study with the published motion; with `designs` also with the published method and our own.
pub fn run(designs: bool) -> Result<Outcome> {
    let truth = builtin::get("space-dual-arm")?.build(&BuildOptions::default())?;
    let guess = builtin::get("space-dual-arm-offset")?.build(&BuildOptions::default())?;
    let robot = Robot::new(&truth, &guess)?;
    let (flight_motion, published) = robot.published_motion()?;
    let mut estimates = Vec::new();
    let mut cases = Vec::new();
    for (intervals, significant, median, largest) in PRINTED_CASES {
        let motion = robot.first_intervals(intervals)?;
        let found = robot.estimate(&motion, RateRule::Euler, Method::LeastSquares)?;
        cases.push(Case {
            intervals,
            significant: published.together.significant[intervals - 1],
            printed_significant: significant,
            condition: published.together.condition[intervals - 1],
            median_percent: found.median(),
            printed_median_percent: median,
            largest_percent: found.largest(),
            printed_largest_percent: largest,
            median_range_percent: range(&found.medians),
            largest_range_percent: range(&found.maxima),
            worst: found.worst(1).swap_remove(0).0,
            noise_free_percent: found.noise_free,
        });
        estimates.push(found);
    }
    let printed = "published seeds";
    let mut rows = vec![
        robot.row(printed, &flight_motion, RateRule::Euler, Method::LeastSquares)?,
        robot.row(printed, &flight_motion, RateRule::Trapezoid, Method::BiasCompensated)?,
        robot.row(printed, &flight_motion, RateRule::Trapezoid, Method::ErrorsInVariables)?,
    ];
    let (mut repeated, mut ours) = (None, None);
    if designs {
        let (motion, properties) = robot.repeated_design()?;
        rows.insert(1, robot.row("own seeds", &motion, RateRule::Euler, Method::LeastSquares)?);
        repeated = Some(properties);
        let (motion, properties) = robot.our_design()?;
        rows.push(robot.row("ours", &motion, RateRule::Trapezoid, Method::ErrorsInVariables)?);
        ours = Some(properties);
    }
    let parameters = robot.names().iter().enumerate().map(|(i, name)| Parameter {
        name: name.clone(),
        value: robot.values()[i],
        estimates: estimates.iter().map(|e| e.first[i]).collect(),
    });
    Ok(Outcome {
        schema: SCHEMA,
        rate: RATE,
        draws: DRAWS,
        noise: NOISE.map(|n| n.1),
        published,
        parameters: parameters.collect(),
        validation: robot.validation_errors(&estimates[0])?,
        cases,
        repeated,
        ours,
        rows,
    })
}

/// Estimator of the study.
#[derive(Debug, Clone, Copy)]
enum Method {
    LeastSquares,
    BiasCompensated,
    ErrorsInVariables,
}

fn range(values: &[f64]) -> [f64; 2] {
    values.iter().fold([f64::INFINITY, 0.0], |[a, b], x| [a.min(*x), b.max(*x)])
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    if n % 2 == 1 { values[n / 2] } else { 0.5 * (values[n / 2 - 1] + values[n / 2]) }
}

impl Estimate {
    fn median(&self) -> f64 {
        median(&self.medians)
    }

    fn largest(&self) -> f64 {
        median(&self.maxima)
    }
}
