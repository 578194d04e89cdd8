//! Rigid body behind a force/torque sensor (paper 001, eq. 4): `Y(a, v) π + offset = f`.
//!
//! In the frame of the sensor, only its angular velocity and acceleration and the proper acceleration of its origin matter
//! ([`SensorMotion`]). The body is therefore a mechanism of one free link without gravity, and its log an ordinary [`Summary`]:
//! six forces per sample, ten parameters and six offsets. All functions for summaries apply.

use std::ops::Range;

use nalgebra::{Matrix3, Vector3};
use rayon::prelude::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator, ParallelSliceMut};

use crate::dynamics::{FrameMotion, InverseDynamics, Samples};
use crate::estimation::consistent::intervals::NoiseBounds;
use crate::estimation::consistent::prior::Prior;
use crate::estimation::equations::Equations;
use crate::estimation::estimator::Estimator;
use crate::estimation::identification::identify::{IdentifyOptions, identify};
use crate::estimation::identification::result::Identification;
use crate::estimation::joint_model::terms::{JointTerms, Term};
use crate::estimation::least_squares::fit::{LeastSquares, Weighting};
use crate::estimation::reduction::measurements::Measurements;
use crate::estimation::reduction::summary::Summary;
use crate::estimation::warning::Warning;
use crate::mechanism::{BuildOptions, JointSpec, JointType, Link, Mechanism, MechanismBuilder};
use crate::spatial::{Inertia, Motion, Pose};
use crate::{Error, Result, nearest_hint};

/// Names of the six sensor readings, in the order of logs.
pub const WRENCH_NAMES: [&str; 6] = ["ft.fx", "ft.fy", "ft.fz", "ft.tx", "ft.ty", "ft.tz"];

/// Density (kg/m³) of the ball that represents a body of which only the mass is known.
const DENSITY: f64 = 1000.0;

/// Number of samples per thread in the computation of the kinematics.
const PART: usize = 512;

/// Motion of a sensor frame: for each sample the proper acceleration of its origin (acceleration minus gravity), its angular
/// velocity and its angular acceleration, all in the axes of the sensor, three values each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SensorMotion {
    acceleration: Vec<f64>,
    angular_velocity: Vec<f64>,
    angular_acceleration: Vec<f64>,
}

impl SensorMotion {
    /// Creates the motion from an inertial measurement unit. An accelerometer at rest reads `+9.81` upwards.
    pub fn from_imu(
        acceleration: Vec<f64>,
        angular_velocity: Vec<f64>,
        angular_acceleration: Vec<f64>,
    ) -> Result<Self> {
        let expected = acceleration.len() / 3 * 3;
        for (what, found) in [
            ("accelerations of the sensor", acceleration.len()),
            ("angular velocities of the sensor", angular_velocity.len()),
            ("angular accelerations of the sensor", angular_acceleration.len()),
        ] {
            if found != expected {
                return Err(Error::Dimension { what, expected, found });
            }
        }
        Ok(Self { acceleration, angular_velocity, angular_acceleration })
    }

    /// Creates the motion of a sensor on `link`, from the motion of the joints (`nq`, `nv`, `nv` values per sample).
    pub fn from_joints(mechanism: &Mechanism, link: &str, q: &[f64], v: &[f64], a: &[f64]) -> Result<Self> {
        let (body, pose) = moving_link(mechanism, link)?;
        let count = q.len() / mechanism.nq().max(1);
        let dynamics = InverseDynamics::new(mechanism);
        let samples = Samples::new(&dynamics, count, q, v, a)?;
        let mut out = Self {
            acceleration: vec![0.0; 3 * count],
            angular_velocity: vec![0.0; 3 * count],
            angular_acceleration: vec![0.0; 3 * count],
        };
        let parts =
            (out.acceleration.par_chunks_mut(3 * PART), out.angular_velocity.par_chunks_mut(3 * PART))
                .into_par_iter()
                .zip(out.angular_acceleration.par_chunks_mut(3 * PART));
        parts.enumerate().try_for_each_init(
            || dynamics.scratch(),
            |scratch, (k, ((acceleration, angular_velocity), angular_acceleration))| {
                let (first, count) = (k * PART, acceleration.len() / 3);
                let part = samples.part(first, count);
                let motion = FrameMotion { acceleration, angular_velocity, angular_acceleration };
                dynamics.frame_motion(scratch, &part, body, &pose, motion)
            },
        )?;
        Ok(out)
    }

    /// Returns a range of the samples.
    pub fn part(&self, range: Range<usize>) -> Self {
        let part = |all: &[f64]| all[3 * range.start..3 * range.end].to_vec();
        Self {
            acceleration: part(&self.acceleration),
            angular_velocity: part(&self.angular_velocity),
            angular_acceleration: part(&self.angular_acceleration),
        }
    }

    /// Returns the velocity and the acceleration of a sample, in a frame that moves with its origin.
    pub(crate) fn at(&self, sample: usize) -> (Motion<f64>, Motion<f64>) {
        let of = |all: &[f64]| Vector3::from_column_slice(&all[3 * sample..3 * sample + 3]);
        // The velocity of the origin is zero, and the acceleration is complete.
        let velocity = Motion::new(of(&self.angular_velocity), Vector3::zeros());
        (velocity, Motion::new(of(&self.angular_acceleration), of(&self.acceleration)))
    }

    /// Returns whether the sensor never rotates.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.angular_velocity.iter().all(|x| *x == 0.0)
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.acceleration.len() / 3
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.acceleration.is_empty()
    }
}

/// Finds a link by its name and returns the moving body that it belongs to and its frame there.
pub(crate) fn moving_link(mechanism: &Mechanism, name: &str) -> Result<(usize, Pose<f64>)> {
    let found = mechanism.links().iter().find(|l| l.name == name);
    let Link { body, pose, .. } = found.ok_or_else(|| {
        let hint = nearest_hint(name, mechanism.links().iter().map(|l| l.name.as_str()));
        Error::UnknownName(format!("the model has no link {name}{hint}"))
    })?;
    let body = body.ok_or_else(|| {
        Error::NotApplicable(format!("the link {name} is fixed to the ground and never moves"))
    })?;
    Ok((body, *pose))
}

/// Measured wrenches of a sensor.
#[derive(Debug, Clone, Copy)]
pub struct Wrenches<'a> {
    /// Wrench that the sensor exerts on the body, at the origin and in the axes of the sensor: force, then moment, six values per
    /// sample.
    pub wrench: &'a [f64],
    /// Wrenches before filtering, if available.
    pub raw: Option<&'a [f64]>,
    /// Components to use, six per sample; all if absent.
    pub keep: Option<&'a [bool]>,
    /// Share of independent samples, see [`Measurements::independent`].
    pub independent: f64,
}

impl<'a> Wrenches<'a> {
    /// Creates wrenches that are all used and independent.
    pub fn new(wrench: &'a [f64]) -> Self {
        Self { wrench, raw: None, keep: None, independent: 1.0 }
    }
}

/// Rigid body of unknown inertia on a force/torque sensor.
///
/// ```
/// use inertial::estimation::{Estimator, IdentifyOptions, SensorMotion, SingleBody, Wrenches};
/// // A kilogram at (0, 0, 0.1), held still in four orientations, with a sensor offset of 2 N along x.
/// let up = [[0.0, 0.0, 9.81], [0.0, 9.81, 0.0], [9.81, 0.0, 0.0], [0.0, 0.0, -9.81]];
/// let wrench: Vec<f64> = up.iter().flat_map(|g| [g[0] + 2.0, g[1], g[2], -0.1 * g[1], 0.1 * g[0], 0.0]).collect();
/// let still = vec![0.0; 12];
/// let motion = SensorMotion::from_imu(up.concat(), still.clone(), still)?;
/// let body = SingleBody::new("scales", "tool")?;
/// let equations = body.equations()?;
/// let summary = body.summary(&equations, &motion, &Wrenches::new(&wrench))?;
/// let found = body.identify(&equations, &summary, None, &IdentifyOptions::default())?;
/// assert!((found.bodies[0].mass - 1.0).abs() < 1e-6 && (found.bodies[0].com[2] - 0.1).abs() < 1e-6);
/// assert!((found.joints[0].offset.unwrap() - 2.0).abs() < 1e-5);
/// assert_eq!((found.rank, found.excited), (10, 4)); // held still, it shows nothing of its inertia
/// # Ok::<(), inertial::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SingleBody {
    mechanism: Mechanism,
}

impl SingleBody {
    /// Creates the body. `model` and `body` are names for results.
    pub fn new(model: &str, body: &str) -> Result<Self> {
        let mechanism = MechanismBuilder::new(model, "sensor of the body")
            .link(body, Inertia::zero())
            .joint(JointSpec::new("ft", JointType::Floating, "sensor of the body", body))
            .build(&BuildOptions::default())?
            // The proper acceleration of the sensor includes gravity already.
            .with_gravity(Vector3::zeros());
        Ok(Self { mechanism })
    }

    /// Returns the equations of the body: ten parameters, then the six offsets of the sensor.
    pub fn equations(&self) -> Result<Equations<'_>> {
        let mut out = Equations::with_all_terms(&self.mechanism, JointTerms::default(), 0.0)?;
        out.terms = (0..6).map(|v| (v, Term::Offset)).collect();
        out.number();
        let rank = out.rank();
        for (name, wrench) in out.names[rank..].iter_mut().zip(WRENCH_NAMES) {
            *name = format!("{wrench}.offset");
        }
        Ok(out)
    }

    /// Reduces measurements to a summary.
    pub fn summary(
        &self,
        equations: &Equations<'_>,
        motion: &SensorMotion,
        measured: &Wrenches<'_>,
    ) -> Result<Summary> {
        if motion.is_empty() {
            return Ok(Summary::empty(equations));
        }
        with_measurements(equations, motion, measured, |data| Summary::new(equations, data))
    }

    /// Predicts the six readings of each sample from a result of [`SingleBody::identify`], in the sign convention of the sensor.
    /// `summary` is the one from which the result was obtained.
    pub fn readings(
        &self,
        equations: &Equations<'_>,
        summary: &Summary,
        motion: &SensorMotion,
        result: &Identification,
    ) -> Result<Vec<f64>> {
        let sign = sign(&LeastSquares::new(equations, summary, Weighting::Weighted)?);
        let none = vec![0.0; 6 * motion.len()];
        let mut out = with_measurements(equations, motion, &Wrenches::new(&none), |data| {
            Ok(equations.predict(data, &result.values)?.force)
        })?;
        out.iter_mut().for_each(|x| *x *= sign);
        Ok(out)
    }

    /// Identifies the body; the default of `options.prior` is [`measured_prior`].
    ///
    /// Sensors report either the wrench on the body or the wrench on the sensor. The sign of the mass distinguishes them: if plain
    /// least squares yields a negative mass, all six readings are negated, and a warning is added.
    pub fn identify(
        &self,
        equations: &Equations<'_>,
        summary: &Summary,
        validation: Option<&Summary>,
        options: &IdentifyOptions,
    ) -> Result<Identification> {
        let squares = LeastSquares::new(equations, summary, Weighting::Weighted)?;
        let errors = squares.std_errors();
        let sign = sign(&squares);
        let reversed = sign < 0.0;
        let (summary, validation) = if reversed {
            (summary.with_forces_reversed()?, validation.map(Summary::with_forces_reversed).transpose()?)
        } else {
            (summary.clone(), validation.cloned())
        };
        let mut options = options.clone();
        if options.prior.is_none() && options.estimator != Estimator::Ols {
            let values: [f64; 10] = std::array::from_fn(|i| sign * squares.values[i]);
            let body = measured_prior(&values, &std::array::from_fn(|i| errors[i]));
            options.prior = Some(Prior { bodies: vec![body], guessed: Vec::new() });
            if let Some(posterior) = &mut options.posterior {
                posterior.prior_weight.get_or_insert(POSTERIOR_WEIGHT * options.prior_weight);
            }
        }
        if let Some(asked) = &mut options.intervals {
            let bounds = asked.noise.of(&WRENCH_NAMES)?;
            asked.noise = NoiseBounds(equations.force_names().into_iter().zip(bounds).collect());
        }
        let mut out = identify(equations, &summary, validation.as_ref(), &options)?;
        for (joint, name) in out.joints.iter_mut().zip(WRENCH_NAMES) {
            name.clone_into(&mut joint.name);
            if reversed {
                joint.offset = joint.offset.map(|x| -x);
            }
        }
        let names = self.mechanism.force_names();
        for residual in out.fit.iter_mut().chain(&mut out.validation) {
            if let Some(i) = names.iter().position(|n| *n == residual.joint) {
                WRENCH_NAMES[i].clone_into(&mut residual.joint);
            }
        }
        if reversed {
            out.warnings.push(Warning::WrenchNegated);
        }
        Ok(out)
    }
}

/// Converts a log to the form of the equations.
fn with_measurements<T>(
    equations: &Equations<'_>,
    motion: &SensorMotion,
    measured: &Wrenches<'_>,
    work: impl FnOnce(&Measurements<'_>) -> Result<T>,
) -> Result<T> {
    let count = motion.len();
    let mut q = Vec::with_capacity(7 * count);
    (0..count).for_each(|_| q.extend([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]));
    let side_by_side = |linear: &[f64], angular: &[f64]| -> Vec<f64> {
        let pairs = linear.chunks_exact(3).zip(angular.chunks_exact(3));
        pairs.flat_map(|(l, a)| [l[0], l[1], l[2], a[0], a[1], a[2]]).collect()
    };
    // In a frame that moves with its origin, the velocity is zero and the acceleration is complete.
    let v = side_by_side(&vec![0.0; 3 * count], &motion.angular_velocity);
    let a = side_by_side(&motion.acceleration, &motion.angular_acceleration);
    let samples = Samples::new(&equations.dynamics, count, &q, &v, &a)?;
    let mut data = Measurements::new(samples, measured.wrench);
    data.tau_raw = measured.raw;
    data.keep = measured.keep;
    data.independent = measured.independent;
    work(&data)
}

/// Returns minus one if the readings are those of the wrench on the sensor, that is if the mass is negative.
fn sign(squares: &LeastSquares) -> f64 {
    if squares.values[0] < 0.0 { -1.0 } else { 1.0 }
}

/// Weight of the prior of credible intervals, relative to that of the estimate, if the prior is a ball derived from the data. A
/// plate has a tenth of the ball's second moment or less: the density of bodies must be almost flat down to the boundary.
const POSTERIOR_WEIGHT: f64 = 0.1;

/// Creates a prior from the well-determined values of least squares: a ball with the density of water and the estimated mass and
/// centre of mass, enlarged by the uncertainty of the centre of mass. It provides the order of magnitude of inertias that the
/// motion does not excite. If the data show that the body is larger than this ball, the ball has the size of the body: the
/// prior would otherwise bias the inertias of plates and bars, which are ten times those of the ball.
pub fn measured_prior(values: &[f64; 10], std_errors: &[f64; 10]) -> Inertia<f64> {
    // Lower limit of the mass: its standard error.
    let mass = values[0].max(std_errors[0]).max(f64::MIN_POSITIVE.sqrt());
    let centre = Vector3::new(values[1], values[2], values[3]) / mass;
    let radius = (0.75 * mass / (std::f64::consts::PI * DENSITY)).cbrt();
    let unsure = (1..4).map(|i| std_errors[i]).fold(0.0, f64::max) / mass;
    // Second moment of a ball, m r²/5 along each axis.
    let ball = mass * (radius * radius / 5.0 + unsure * unsure);
    // Half of the trace of the inertia about the centre of mass is the sum of the second moments along the axes.
    let trace = |x: &[f64; 10]| 0.5 * (x[4] + x[7] + x[9]);
    let measured = trace(values) - mass * centre.norm_squared();
    // Upper bound of its standard error, for any correlation of the values.
    let first = (1..4).map(|i| 2.0 * centre[i - 1].abs() * std_errors[i]).sum::<f64>();
    let error = trace(std_errors) + first + centre.norm_squared() * std_errors[0];
    let moment = if measured > error { ball.max(measured / 3.0) } else { ball };
    Inertia::from_com(mass, centre, Matrix3::from_diagonal_element(2.0 * moment))
}
