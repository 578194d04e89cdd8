//! Weak excitation of a body's inertia by slow motion (paper 001, section IV, table I).
//!
//! An arm with three shoulder joints moves from point to point. A force/torque sensor in the upper arm carries the
//! rest of the arm. The slower the motion, the larger the error of the inertia.

use inertial::dynamics::{Workspace, body_accelerations};
use inertial::estimation::{
    Estimator, Identification, IdentifyOptions, SensorMotion, SingleBody, Solver, TRACE_OF_PRIOR, Wrenches,
};
use inertial::linalg::{SplitMix, Triangle};
use inertial::mechanism::{BuildOptions, JointSpec, JointType, Mechanism, MechanismBuilder};
use inertial::optimize::{ConicLeastSquares, Options as ConicOptions};
use inertial::spatial::{Inertia, Motion, Pose, body_regressor};
use nalgebra::{DMatrix, DVector, Matrix3, Vector3, matrix, vector};
use schemars::JsonSchema;
use serde::Serialize;

use crate::studies::rotation_formulations::{FORMULATIONS, FormulationResult, solve};
use crate::{Error, Result};

const SCHEMA: &str = "inertial/slow-motion/1";

/// Times from point to point (s), as in the paper.
pub const TIMES: [f64; 5] = [10.0, 5.0, 2.0, 1.0, 0.5];

/// Rate (Hz) and length (s) of each log.
const RATE: f64 = 100.0;
const LENGTH: f64 = 60.0;

/// Standard deviations of force (N), moment (N m) and joint angles (rad).
const NOISE: [f64; 3] = [0.5, 0.05, 1e-4];

/// Offsets of the sensor.
const OFFSET: [f64; 6] = [3.0, -2.0, 5.0, 0.3, 0.1, -0.2];

/// Range of the three joints (rad): pitch, roll and yaw of a shoulder.
const RANGE: [[f64; 2]; 3] = [[-1.6, 0.1], [0.1, 2.4], [-0.6, 1.3]];

/// Returns the inertia of the body carried by the sensor: elbow, forearm and hand, 1.84 kg.
pub fn truth() -> Inertia<f64> {
    let about = matrix![0.0113, 0.0003, -0.005; 0.0003, 0.0143, 0.0004; -0.005, 0.0004, 0.006];
    Inertia::from_com(1.84, vector![0.033, 0.002, 0.111], about)
}

/// Builds the shoulder, with the sensor ten centimetres down the upper arm.
fn arm() -> Result<Mechanism> {
    let hinge = |axis| JointType::Revolute { axis };
    MechanismBuilder::new("shoulder", "torso")
        .link("pitch", Inertia::zero())
        .link("roll", Inertia::zero())
        .link("yaw", Inertia::zero())
        .link("sensor", Inertia::zero())
        .joint(JointSpec::new("shoulder_pitch", hinge(Vector3::y()), "torso", "pitch"))
        .joint(JointSpec::new("shoulder_roll", hinge(Vector3::x()), "pitch", "roll"))
        .joint(JointSpec::new("shoulder_yaw", hinge(Vector3::z()), "roll", "yaw"))
        .joint(
            JointSpec::new("mount", JointType::Fixed, "yaw", "sensor")
                .at(Pose::from_xyz_rpy([0.0, 0.0, -0.1], [std::f64::consts::PI, 0.0, 0.2])),
        )
        .build(&BuildOptions::default())
        .map_err(Error::from)
}

/// Uniform and normal random numbers from a seed.
struct Random(SplitMix);

impl Random {
    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        // Box-Muller transform.
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Solvers that are compared: interior point, coordinates `(m, c, Q, L)` of the paper, Cholesky factors.
pub const SOLVERS: [Solver; 3] = [Solver::Barrier, Solver::Manifold, Solver::LogCholesky];

/// Estimates from one log.
pub struct Row {
    /// Time from point to point (s).
    pub time: f64,
    /// Least-squares estimate (problem 17 of the paper).
    pub plain: Identification,
    /// Physically consistent estimates (problem 22 of the paper) without a prior, by [`SOLVERS`].
    pub consistent: Vec<Identification>,
    /// Solutions of problem 22 in the formulations that the paper compares.
    pub formulations: Vec<FormulationResult>,
    /// Certified minimum of the cost of these formulations, by [`Solver::Barrier`].
    pub least_cost: f64,
}

/// Results of the study.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Schema of the object.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// Sampling rate (Hz).
    pub rate: f64,
    /// Length of each log (s).
    pub length: f64,
    /// Standard deviations of force (N), moment (N m) and joint angles (rad).
    pub noise: [f64; 3],
    /// True parameters of the body: `m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz`, about the sensor.
    pub truth: Vec<f64>,
    /// Estimates for each time from point to point.
    pub rows: Vec<Estimates>,
    /// Largest difference between the inertia tensors that the solvers find, relative to the norm of the true one.
    pub solver_difference: f64,
}

/// Estimates from the log of one time from point to point.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Estimates {
    /// Time from point to point (s).
    pub time: f64,
    /// Least-squares estimate (problem 17 of the paper).
    pub least_squares: Estimate,
    /// Physically consistent estimate (problem 22 of the paper).
    pub consistent: Estimate,
    /// Formulations of the principal axes that the paper compares.
    pub formulations: Vec<Comparison>,
}

/// Estimated body.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Estimate {
    /// Parameters in the order of the true ones.
    pub parameters: Vec<f64>,
    /// Whether the body is physically consistent.
    pub consistent: bool,
    /// Norm of the error of the inertia tensor about the sensor, in percent of the norm of the true one.
    pub inertia_error_percent: f64,
}

/// Solution in one formulation of the principal axes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Comparison {
    /// Coordinates of the principal axes.
    pub axes: &'static str,
    /// Number of variables.
    pub variables: usize,
    /// Number of constraints of the coordinates of the axes.
    pub constraints: usize,
    /// Number of steps of the solver.
    pub steps: usize,
    /// Cost above the certified minimum, relative to the minimum.
    pub excess: f64,
}

impl Estimate {
    fn new(found: &Identification) -> Self {
        let exact = truth().rotational;
        Self {
            parameters: found.parameters.clone(),
            consistent: found.bodies[0].consistent,
            inertia_error_percent: 100.0 * (tensor(found) - exact).norm() / exact.norm(),
        }
    }
}

/// Runs the study for all [`TIMES`].
pub fn study(seed: u64) -> Result<Outcome> {
    let rows = TIMES.iter().map(|&time| run(time, seed)).collect::<Result<Vec<_>>>()?;
    let difference = |row: &Row| {
        let first = tensor(&row.consistent[0]);
        row.consistent.iter().map(|f| (tensor(f) - first).norm()).fold(0.0, f64::max)
    };
    let comparison = |found: &FormulationResult, least: f64| Comparison {
        axes: found.formulation.name(),
        variables: found.formulation.variables(),
        constraints: found.formulation.constraints(),
        steps: found.steps,
        // The minimum is a lower bound up to rounding.
        excess: ((found.cost - least) / least).max(0.0),
    };
    let estimates = |row: &Row| Estimates {
        time: row.time,
        least_squares: Estimate::new(&row.plain),
        consistent: Estimate::new(&row.consistent[0]),
        formulations: row.formulations.iter().map(|f| comparison(f, row.least_cost)).collect(),
    };
    Ok(Outcome {
        schema: SCHEMA,
        rate: RATE,
        length: LENGTH,
        noise: NOISE,
        truth: truth().parameters().as_slice().to_vec(),
        solver_difference: rows.iter().map(difference).fold(0.0, f64::max) / truth().rotational.norm(),
        rows: rows.iter().map(estimates).collect(),
    })
}

/// Returns the velocity of a body-fixed frame and its acceleration minus gravity, in the frame.
fn sensor_motion(
    arm: &Mechanism,
    workspace: &mut Workspace,
    (body, frame): (usize, &Pose<f64>),
    [q, v, a]: [&[f64]; 3],
) -> Result<[Motion<f64>; 2]> {
    body_accelerations(arm, workspace, q, v, a)?;
    let gravity = workspace.poses()[body].rotation.tr_mul(&arm.gravity());
    let proper = workspace.accelerations()[body] - Motion::new(Vector3::zeros(), gravity);
    Ok([workspace.velocities()[body], proper].map(|m| frame.pull_motion(&m)))
}

/// Simulates a log and identifies the body from it.
pub fn run(time: f64, seed: u64) -> Result<Row> {
    let arm = arm()?;
    let mut random = Random(SplitMix::new(seed));
    let count = (LENGTH * RATE).round() as usize;
    let per_move = (time * RATE).round() as usize;
    // Points until the end of the log.
    let points: Vec<[f64; 3]> = (0..count / per_move + 2)
        .map(|_| RANGE.map(|[low, high]| low + (high - low) * random.uniform()))
        .collect();
    let mut angles = [const { Vec::new() }; 3];
    let mut wrench = Vec::with_capacity(6 * count);
    let mut workspace = Workspace::new(&arm);
    let (sensor, body) = arm
        .links()
        .iter()
        .find_map(|l| (l.name == "sensor").then_some((l.pose, l.body?)))
        .ok_or_else(|| Error::Input("the arm has no sensor".into()))?;
    for k in 0..count {
        let (from, to) = (points[k / per_move], points[k / per_move + 1]);
        let [mut q, mut v, mut a] = [[0.0; 3]; 3];
        for j in 0..3 {
            let [p, dp, ddp] = minimum_jerk((k % per_move) as f64 / per_move as f64);
            let step = to[j] - from[j];
            (q[j], v[j], a[j]) = (from[j] + step * p, step * dp / time, step * ddp / (time * time));
            angles[j].push(q[j] + NOISE[2] * random.normal());
        }
        let motion = sensor_motion(&arm, &mut workspace, (body, &sensor), [&q, &v, &a])?;
        let exact = truth().wrench(&motion[0], &motion[1]);
        for (i, x) in exact.linear.iter().chain(exact.angular.iter()).enumerate() {
            wrench.push(x + OFFSET[i] + NOISE[i / 3] * random.normal());
        }
    }
    // Local polynomials of fourth order, a quarter of a move wide; the ends, where the window does not fit, are left out.
    let half = (per_move / 8).max(3);
    let filter = local_polynomials(half)?;
    let mut states = [vec![], vec![], vec![]];
    for k in half..count - half {
        for angle in &angles {
            for (state, row) in states.iter_mut().zip(&filter) {
                state.push(row.iter().zip(&angle[k - half..]).map(|(f, x)| f * x).sum::<f64>());
            }
        }
    }
    let [q, v, a] = &states;
    let motion = SensorMotion::from_joints(&arm, "sensor", q, v, a)?;
    let single = SingleBody::new("shoulder", "arm")?;
    let equations = single.equations()?;
    let used = &wrench[6 * half..6 * (count - half)];
    let summary = single.summary(&equations, &motion, &Wrenches::new(used))?;
    let identify = |estimator, solver| {
        let options = IdentifyOptions::default().with(|o| {
            o.estimator = estimator;
            o.solver = solver;
            o.prior_weight = TRACE_OF_PRIOR;
        });
        single.identify(&equations, &summary, None, &options)
    };
    let consistent = SOLVERS.iter().map(|&solver| identify(Estimator::Consistent, solver));
    // Rows [offsets | parameters | wrench], divided by the noise; their factor without the offsets is the problem of the body.
    let mut factor = Triangle::new(17);
    for k in 0..q.len() / 3 {
        let [q, v, a] = [q, v, a].map(|x| &x[3 * k..3 * k + 3]);
        let [velocity, proper] = sensor_motion(&arm, &mut workspace, (body, &sensor), [q, v, a])?;
        let regressor = body_regressor(&velocity, &proper);
        let mut block = DMatrix::zeros(6, 17);
        for i in 0..6 {
            block[(i, i)] = 1.0;
            // The spatial vectors of the library have the moment first.
            block.view_mut((i, 6), (1, 10)).copy_from(&regressor.row((i + 3) % 6));
            block[(i, 16)] = used[6 * k + i];
            block.row_mut(i).scale_mut(NOISE[i / 3].recip());
        }
        factor.add_rows(block.as_mut_slice(), 6).map_err(inertial::Error::from)?;
    }
    let factor = factor.matrix();
    // The last row is the part of the wrenches that no parameters explain. Relative to it, costs are of order one.
    let scale = factor[(16, 16)].recip();
    let rows = factor.view((6, 6), (11, 10)) * scale;
    let right = factor.view((6, 16), (11, 1)).column(0) * scale;
    let formulations = FORMULATIONS.iter().map(|&f| solve(f, &rows, &right)).collect::<Result<_>>()?;
    let gram = rows.tr_mul(&rows);
    let problem = ConicLeastSquares::body(gram, rows.tr_mul(&right), 0.5 * right.norm_squared());
    let ball = Inertia::from_com(1.0, Vector3::zeros(), Matrix3::from_diagonal_element(0.02));
    let start = DVector::from_column_slice(ball.parameters().as_slice());
    let least_cost = problem.solve(&start, &ConicOptions::default(), |_, _| true)?.lower_bound;
    Ok(Row {
        time,
        formulations,
        least_cost,
        plain: identify(Estimator::Wls, Solver::default())?,
        consistent: consistent.collect::<inertial::Result<_>>()?,
    })
}

/// Returns the minimum-jerk polynomial of fifth order from 0 to 1 in unit time, at rest at both ends, and its derivatives.
fn minimum_jerk(s: f64) -> [f64; 3] {
    let position = s * s * s * (10.0 + s * (-15.0 + 6.0 * s));
    let speed = 30.0 * s * s * (1.0 - s) * (1.0 - s);
    [position, speed, 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s)]
}

/// Returns the Savitzky-Golay filter of fourth order over `2 half + 1` samples: weights of the value and of its first
/// and second derivative at the centre.
fn local_polynomials(half: usize) -> Result<[Vec<f64>; 3]> {
    let step = 1.0 / RATE;
    let scale = half as f64 * step;
    let powers =
        DMatrix::from_fn(2 * half + 1, 5, |i, j| ((i as f64 - half as f64) / half as f64).powf(j as f64));
    let normal = (powers.transpose() * &powers)
        .cholesky()
        .ok_or_else(|| Error::Input("a polynomial of fourth order needs five samples".into()))?;
    let rows = normal.solve(&powers.transpose());
    let row = |j: usize, factor: f64| rows.row(j).iter().map(|x| factor * x).collect();
    Ok([row(0, 1.0), row(1, 1.0 / scale), row(2, 2.0 / (scale * scale))])
}

/// Returns the inertia tensor about the origin of the sensor.
pub fn tensor(found: &Identification) -> Matrix3<f64> {
    let p = &found.parameters;
    Matrix3::new(p[4], p[5], p[6], p[5], p[7], p[8], p[6], p[8], p[9])
}
