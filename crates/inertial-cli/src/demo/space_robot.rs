//! `inertial demo space-robot`: section VI of paper 002, as published and with what came after.
//!
//! The motion is designed with the model that is known to be wrong, flown by the true robot, measured with noise, and the
//! true robot's parameters are estimated from that.

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::Result;
use inertial::consistency::significant;
use inertial::estimation::flown::{Flown, PredictionErrors, prediction_errors};
use inertial::estimation::momentum::{MomentumEquations, MomentumFit, RateNoise};
use inertial::estimation::momentum_identification::{RateRule, integrate_rates};
use inertial::excitation::cycloid::{SeededFlight, Seeds, direction_combinations};
use inertial::excitation::pruning::{PruneOptions, prune, select};
use inertial::excitation::{Basis, Criterion, DefaultLimits, FlightOptions, Trajectory, design_flight};
use inertial::linalg::singular_values;
use inertial::mechanism::{DEFAULT_SNAP, Mechanism, builtin};
use inertial::simulation::Sensors;

use crate::output::{self, Answer};

/// The published figures.
const INTERVALS: usize = 67;
const INTERVAL: f64 = 1.0;
const NOISE: [(&str, f64); 3] = [("base.v", 5e-5), ("base.w", 8e-5), ("dq", 5e-5)];

/// Not stated in the paper.
const RATE: f64 = 10.0;
const WEIGHT: f64 = 0.01;
const DRAWS: u64 = 20;
/// Where the joints start before the seeds are optimised (rad).
const START: [f64; 6] = [0.5, -1.0, -1.0, 1.0, -1.0, 1.0];
/// The same for the design on the true robot.
const START_ON_TRUTH: [f64; 6] = [0.2, 1.5, -1.5, -0.7, 1.2, -1.1];

pub fn run() -> Result<Answer> {
    let truth = builtin::get("space-dual-arm")?.build(&Default::default())?;
    let guess = builtin::get("space-dual-arm-offset")?.build(&Default::default())?;
    let robot = Robot::new(&truth, &guess)?;
    output::print(
        "A robot with two arms in orbit: which motion of its joints and reaction wheels shows the inertia of every\n\
         link, and what is it, from noisy rates alone? (Naveen, Shah and Misra, section VI)\n\n",
    )?;
    let (published, text) = robot.published_design()?;
    output::print(&text)?;
    let (on_truth, text) = robot.published_design_on_truth()?;
    output::print(&text)?;
    let (ours, text) = robot.our_design()?;
    output::print(&text)?;
    let rows = [
        robot.row("least squares, Euler", &published, RateRule::Euler, Method::LeastSquares)?,
        robot.row("least squares, Euler", &on_truth, RateRule::Euler, Method::LeastSquares)?,
        robot.row("bias-compensated", &published, RateRule::Trapezoid, Method::BiasCompensated)?,
        robot.row("errors in variables", &published, RateRule::Trapezoid, Method::ErrorsInVariables)?,
        robot.row("errors in variables", &ours, RateRule::Trapezoid, Method::ErrorsInVariables)?,
    ];
    let repeated = "published, repeated";
    let designs = [repeated, "the same on the true robot", repeated, repeated, "ours"];
    let mut out = format!(
        "3. Flown by the true robot, {INTERVALS} s at {RATE} Hz, medians over {DRAWS} draws of noise\n\n"
    );
    let percent = |x: f64| format!("{} %", significant(100.0 * x, 3));
    let paper =
        ["paper".to_owned(), "least squares".into(), "2.08 %".into(), "174 %".into(), "-".into(), "-".into()];
    let table = designs.iter().zip(&rows).map(|(design, row)| {
        [
            (*design).to_owned(),
            row.label.to_owned(),
            percent(row.median),
            percent(row.max),
            significant(row.scaled, 3),
            percent(row.exact),
        ]
    });
    out += &output::table(
        ["design", "estimate", "median error", "largest error", "rms error/σ", "largest without noise"],
        0,
        std::iter::once(paper).chain(table),
    );
    let worst = &rows[4].worst;
    let _ = writeln!(out, "\nLargest relative errors of the last row: {worst}");
    out += "\n4. What the estimates predict wrongly on another motion (rms; table 6 of the paper)\n\n";
    let number = |x: f64| significant(x, 2);
    let line = |name: &str, errors: &PredictionErrors| {
        let join = |x: &[f64]| x.iter().map(|x| number(*x)).collect::<Vec<_>>().join(" ");
        [name.to_owned(), join(&errors.base[..3]), join(&errors.base[3..]), join(&errors.forces)]
    };
    let printed = PredictionErrors {
        base: [1.7e-4, 1.6e-4, 0.6e-4, 2.1e-4, 1.8e-4, 3.5e-4],
        forces: vec![0.2961, 0.1665, 0.0778, 0.0922, 0.0368, 0.0262],
    };
    out += &output::table(
        ["", "base (m/s)", "base (rad/s)", "joint torques (N m)"],
        0,
        [line("paper", &printed), line("repeated", &rows[0].prediction), line("ours", &rows[4].prediction)],
    );
    output::print(&out)?;
    Ok(Answer::Yes)
}

#[derive(Clone, Copy)]
enum Method {
    LeastSquares,
    BiasCompensated,
    ErrorsInVariables,
}

/// The true robot and the one that is believed.
struct Robot<'m> {
    truth: &'m Mechanism,
    guess: &'m Mechanism,
    equations: MomentumEquations<'m>,
    /// True values of the base parameters.
    values: Vec<f64>,
    noise: RateNoise,
}

/// What one estimate makes of one design.
struct Row {
    label: &'static str,
    median: f64,
    max: f64,
    /// Root mean square of error over standard error.
    scaled: f64,
    /// Largest relative error without noise, positions being integrated all the same.
    exact: f64,
    worst: String,
    prediction: PredictionErrors,
}

impl<'m> Robot<'m> {
    fn new(truth: &'m Mechanism, guess: &'m Mechanism) -> Result<Self> {
        let equations = MomentumEquations::new(truth, DEFAULT_SNAP)?;
        let values = equations.regrouping.regroup(&truth.parameters())?;
        let noise = RateNoise::new(truth, NOISE[0].1, NOISE[1].1, NOISE[2].1);
        Ok(Self { truth, guess, equations, values, noise })
    }

    /// Steps 1 to 3 of the paper's section V, on the model that is believed.
    fn published_design(&self) -> Result<(Trajectory, String)> {
        let began = Instant::now();
        let (all, first) = self.all_combinations(self.guess, &START)?;
        let intervals = all.intervals(&first, None)?;
        let rows = 6 * (RATE * INTERVAL) as usize;
        let printed = prune(&intervals, rows, &PruneOptions { refresh: false, ..PruneOptions::default() })?;
        let refreshed = prune(&intervals, rows, &PruneOptions::default())?;
        let (kept, seeds) = self.kept_combinations(self.guess, &all, &first)?;
        let condition = self.condition(&kept, &seeds)?;
        let degrees =
            |x: &[f64]| x.iter().map(|x| significant(x.to_degrees(), 4)).collect::<Vec<_>>().join(" ");
        let mut out = String::from("1. The published design: cycloids over direction combinations\n\n");
        let _ = writeln!(
            out,
            "{} combinations, condition number {}; algorithm 1 keeps {} as printed and {} with the refresh that it \
             lacks;\nthe {INTERVALS} whose information has the greatest determinant: condition number {} (on the true \
             robot {};\npublished 248.8). Seeds: start {}°, range {}°. {:.1} s.\n",
            all.directions().len(),
            significant(first.condition, 4),
            printed.len(),
            refreshed.len(),
            significant(seeds.condition, 4),
            significant(condition, 4),
            degrees(&seeds.start),
            degrees(&seeds.range),
            began.elapsed().as_secs_f64()
        );
        Ok((kept.trajectory(&seeds)?, out))
    }

    /// The same on the true robot, as if the published condition number were that of the robot that flew.
    fn published_design_on_truth(&self) -> Result<(Trajectory, String)> {
        let (all, first) = self.all_combinations(self.truth, &START_ON_TRUTH)?;
        let (kept, seeds) = self.kept_combinations(self.truth, &all, &first)?;
        let condition = significant(seeds.condition, 4);
        let text = format!("The same designed on the true robot: condition number {condition}.\n\n");
        Ok((kept.trajectory(&seeds)?, text))
    }

    /// All combinations, their seeds optimised a little.
    fn all_combinations(&self, on: &'m Mechanism, start: &[f64]) -> Result<(SeededFlight<'m>, Seeds)> {
        let combinations = direction_combinations(START.len() + on.wheels().len())?;
        let all = SeededFlight::new(on, &self.equations.regrouping.base, combinations, INTERVAL, RATE)?;
        let seeds = all.optimize(start, WEIGHT, 20)?;
        Ok((all, seeds))
    }

    /// The most informative combinations alone, their seeds optimised again: where intervals start has changed.
    fn kept_combinations(
        &self,
        on: &'m Mechanism,
        all: &SeededFlight<'m>,
        first: &Seeds,
    ) -> Result<(SeededFlight<'m>, Seeds)> {
        let kept = select(&all.intervals(first, Some(&self.noise.rates))?, INTERVALS)?;
        let directions = kept.into_iter().map(|i| all.directions()[i].clone()).collect();
        let kept = SeededFlight::new(on, &self.equations.regrouping.base, directions, INTERVAL, RATE)?;
        let seeds = kept.optimize(&first.start, WEIGHT, 60)?;
        Ok((kept, seeds))
    }

    /// Condition number of the same motion flown by the true robot.
    fn condition(&self, flight: &SeededFlight<'_>, seeds: &Seeds) -> Result<f64> {
        let same = SeededFlight::new(
            self.truth,
            &self.equations.regrouping.base,
            flight.directions().to_vec(),
            flight.interval(),
            RATE,
        )?;
        let mut sum = inertial::linalg::Triangle::new(self.equations.len());
        for part in same.intervals(seeds, None)? {
            sum.merge(&part)?;
        }
        let values = singular_values(&sum.matrix())?;
        Ok(values[0] / values[values.len() - 1])
    }

    /// Velocity knots, on the model that is believed.
    fn our_design(&self) -> Result<(Trajectory, String)> {
        let began = Instant::now();
        let options = FlightOptions {
            duration: INTERVALS as f64 * INTERVAL,
            interval: INTERVAL,
            rate: RATE,
            noise: self.noise.rates.clone(),
            criterion: Criterion::Worst,
            // The published limits of speed alone.
            limits: DefaultLimits { acceleration: f64::INFINITY, margin: 0.0, ..DefaultLimits::default() },
            starts: 2,
            steps: 120,
            seed: 1,
        };
        let design = design_flight(self.guess, &self.equations.regrouping, &options, &|_| true)?;
        let certificate = &design.certificate;
        let mut relative: Vec<f64> = certificate.base_parameters.iter().map(|e| e.relative).collect();
        relative.sort_by(f64::total_cmp);
        let mut out = String::from("2. Our design: velocity knots, least of the largest relative errors\n\n");
        let _ = writeln!(
            out,
            "Rank {} of {}, criterion {} {}; expected standard errors relative to the believed sizes (at least a hundredth\n\
             of the largest of a kind): median {} %, largest {} %. Same duration, speeds and wheels. {:.1} s.\n",
            certificate.rank,
            certificate.structural_rank,
            options.criterion.name(),
            significant(design.criterion, 5),
            significant(100.0 * median(relative.clone()), 2),
            significant(100.0 * relative[relative.len() - 1], 3),
            began.elapsed().as_secs_f64()
        );
        Ok((design.trajectory, out))
    }

    /// Flies a motion, measures it with noise again and again, and estimates.
    fn row(&self, label: &'static str, motion: &Trajectory, rule: RateRule, method: Method) -> Result<Row> {
        let flown = Flown::new(self.truth, motion, RATE)?;
        let names = self.rate_names();
        let (mut medians, mut largest, mut scaled) = (Vec::new(), Vec::new(), 0.0);
        let mut errors = vec![Vec::new(); self.values.len()];
        let mut first = None;
        for draw in 0..DRAWS {
            let settings = NOISE.map(|(name, s)| (name.to_owned(), s));
            let mut sensors = Sensors::new(&names, &settings, &[], &[], draw)?;
            let mut v = flown.v.clone();
            v.chunks_exact_mut(self.truth.nv()).for_each(|row| sensors.measure(row));
            let fit = self.estimate(&flown, &v, rule, method)?;
            let relative = self.relative(&fit);
            errors.iter_mut().zip(&relative).for_each(|(all, e)| all.push(*e));
            let sigma = fit.std_errors();
            let squares = (0..relative.len()).map(|i| (relative[i] * self.values[i] / sigma[i]).powi(2));
            scaled += squares.sum::<f64>() / relative.len() as f64;
            largest.push(relative.iter().copied().fold(0.0, f64::max));
            medians.push(median(relative));
            first.get_or_insert(fit);
        }
        let exact = self.estimate(&flown, &flown.v, rule, method)?;
        let exact = self.relative(&exact).into_iter().fold(0.0, f64::max);
        let mut worst: Vec<(f64, String)> = errors
            .into_iter()
            .zip(self.equations.names.iter().zip(&self.values))
            .map(|(e, (name, value))| {
                let e = median(e);
                (e, format!("{name} ({}) {} %", significant(*value, 3), significant(100.0 * e, 2)))
            })
            .collect();
        worst.sort_by(|a, b| b.0.total_cmp(&a.0));
        let worst = worst.into_iter().take(4).map(|w| w.1).collect::<Vec<_>>().join(", ");
        let values = first.map_or_else(|| self.values.clone(), |f| f.values.as_slice().to_vec());
        let estimated =
            self.truth.clone().with_parameters(&self.equations.regrouping.expand(&values, &[])?)?;
        let prediction = prediction_errors(self.truth, &estimated, &self.validation()?, RATE)?;
        Ok(Row {
            label,
            median: median(medians),
            max: median(largest),
            scaled: (scaled / DRAWS as f64).sqrt(),
            exact,
            worst,
            prediction,
        })
    }

    fn rate_names(&self) -> Vec<String> {
        let base = ["base.vx", "base.vy", "base.vz", "base.wx", "base.wy", "base.wz"].map(String::from);
        let joints = self.truth.velocity_names().into_iter().skip(6).map(|name| format!("dq.{name}"));
        base.into_iter().chain(joints).collect()
    }

    fn relative(&self, fit: &MomentumFit) -> Vec<f64> {
        fit.values.iter().zip(&self.values).map(|(x, y)| ((x - y) / y).abs()).collect()
    }

    fn estimate(&self, flown: &Flown, v: &[f64], rule: RateRule, method: Method) -> Result<MomentumFit> {
        let start = &flown.q[..self.truth.nq()];
        let q = integrate_rates(self.truth, &flown.t, v, start, rule)?;
        let samples = flown.samples(&q, v);
        Ok(match method {
            Method::LeastSquares => self.equations.least_squares(&samples, Some(&self.noise))?,
            Method::BiasCompensated => self.equations.bias_compensated(&samples, &self.noise)?,
            Method::ErrorsInVariables => self.equations.errors_in_variables(&samples, &self.noise)?,
        })
    }

    /// Two harmonics over 40 s (eq. 40); the paper's coefficients are not stated, these swing every joint by about 0.3 rad.
    fn validation(&self) -> Result<Trajectory> {
        let names: Vec<String> = self.truth.velocity_names().into_iter().skip(6).collect();
        let basis = Basis::Fourier { period: 40.0, harmonics: 2 };
        let rows: Vec<Vec<f64>> = (0..names.len())
            .map(|j| {
                let phase = j as f64;
                vec![START[j], 0.2 * phase.cos(), 0.2 * phase.sin(), 0.1 * phase.sin(), -0.1 * phase.cos()]
            })
            .collect();
        Ok(Trajectory::new(names, 40.0, basis, &rows)?)
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    if n % 2 == 1 { values[n / 2] } else { 0.5 * (values[n / 2 - 1] + values[n / 2]) }
}
