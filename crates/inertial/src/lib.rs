//! Identification of inertial parameters of robots.
//!
//! Forces and torques are linear in the inertial parameters,
//! $$\tau = Y(q, \dot q, \ddot q) \pi,$$
//! and only the combinations $\beta = K \pi$, the base parameters, can be identified. This crate computes the base
//! parameters, designs motions that excite them, and estimates them from logs, together with friction and other joint
//! terms.
//!
//! ```
//! use inertial::dynamics::InverseDynamics;
//! use inertial::estimation::{Equations, IdentifyOptions, JointTerms, Measurements, Summary, identify};
//! use inertial::mechanism::{BuildOptions, DEFAULT_SNAP, builtin};
//!
//! let robot = builtin::get("planar-2r")?.build(&BuildOptions::default())?; // or mechanism::read::urdf::read(&text)?
//! # let at = |k: usize, f: [fn(f64) -> f64; 2]| f.map(|f| f(0.02 * k as f64));
//! # let stack = |f: [fn(f64) -> f64; 2]| (0..200).flat_map(|k| at(k, f)).collect::<Vec<f64>>();
//! # let q = stack([|t| t.sin(), |t| (2.0 * t).cos()]);
//! # let v = stack([|t| t.cos(), |t| -2.0 * (2.0 * t).sin()]);
//! # let a = stack([|t| -t.sin(), |t| -4.0 * (2.0 * t).cos()]);
//! # let mut tau = vec![0.0; q.len()];
//! # let dynamics = InverseDynamics::new(&robot);
//! # dynamics.rnea_batch(&mut dynamics.scratch(), &inertial::dynamics::Samples::new(&dynamics, 200, &q, &v, &a)?, &mut tau)?;
//! // Positions, velocities, accelerations and torques, sample after sample; the crate `inertial-data` prepares them from logs.
//! let friction = JointTerms::friction();
//! let equations = Equations::new(&robot, friction, DEFAULT_SNAP)?;
//! let samples = equations.samples(200, &q, &v, &a)?;
//! let summary = Summary::new(&equations, &Measurements::new(samples, &tau))?;
//! let result = identify(&equations, &summary, None, &IdentifyOptions::default())?;
//! assert!(result.bodies.iter().all(|body| body.consistent));
//! # Ok::<(), inertial::Error>(())
//! ```
//!
//! # Modules
//!
//! Each module depends only on the modules above it.
//!
//! | module | contents |
//! | --- | --- |
//! | [`spatial`], [`consistency`] | spatial vectors and inertias; physical consistency of inertial parameters |
//! | [`mesh`] | triangle meshes: files, convex hulls, inertias |
//! | [`mechanism`] | robots: joints, bodies, rotors, loops; readers of URDF, MJCF and mechanism files |
//! | [`dynamics`] | kinematics, inverse and forward dynamics, regressors |
//! | [`identifiability`] | base parameters and exact ranks |
//! | [`unknowns`] | base parameters and joint terms, and the channels they act in |
//! | [`optimize`] | optimizers of the designs and estimators |
//! | [`excitation`] | design of motions |
//! | [`simulation`] | simulated motion and sensors |
//! | [`estimation`] | estimation from measurements |
//!
//! # Options
//!
//! Types of options are `#[non_exhaustive]`: new versions can add fields. Create options with `default` (or `new`, if some
//! fields have no default), and assign the fields to change. The method `with` does this within an expression.
//!
//! ```
//! use inertial::estimation::{Estimator, IdentifyOptions};
//!
//! let mut options = IdentifyOptions::default();
//! options.estimator = Estimator::Wls;
//! let with_covariance = IdentifyOptions::default().with(|o| o.covariance = true);
//! ```
//!
//! # Conventions
//!
//! - Spatial vectors are `[angular; linear]`, in body coordinates, at the origin of the body frame.
//! - A [`spatial::Pose`] maps child coordinates to parent coordinates.
//! - The ten inertial parameters of a body are `m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz`, about the origin of its frame.
//! - Matrices passed as slices are row-major; matrices of [`nalgebra`] are passed as such.
//! - All quantities are in SI units.

pub mod consistency;
pub mod dynamics;
pub mod estimation;
pub mod excitation;
pub mod identifiability;
pub mod linalg;
pub mod mechanism;
pub mod mesh;
pub mod optimize;
pub mod simulation;
pub mod spatial;
pub mod unknowns;

pub use nalgebra;

mod error;
mod warning;
pub use error::{Error, Place, Result, nearest_hint};
pub use warning::{Coded, Warnings};

/// Adds the method `with` to a type of options, also in the other crates of this project.
#[doc(hidden)]
#[macro_export]
macro_rules! with_changes {
    ($options:ty) => {
        impl $options {
            /// Assigns fields in `change` and returns the result, for use within an expression:
            /// `Options::default().with(|o| o.field = value)`.
            #[must_use]
            pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
                change(&mut self);
                self
            }
        }
    };
}
