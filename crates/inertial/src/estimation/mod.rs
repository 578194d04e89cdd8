//! Estimation of inertial parameters and joint terms from measured motion.
//!
//! [`Equations`] hold the unknowns that act in each measured force: the base parameters of the mechanism and the terms of the
//! joint model. One pass over a log computes a `Summary` (`reduction`). All later steps (`least_squares`, [`consistent`],
//! residuals of any parameters) use summaries and take milliseconds, independent of the length of the log. [`identify`] runs all
//! steps.
//!
//! | folder | contents |
//! | --- | --- |
//! | `joint_model` | friction, springs, couplings, user-defined terms |
//! | `reduction` | measurements, filtering of rows, summaries, online estimation |
//! | `least_squares` | ordinary, weighted and robust estimators |
//! | `consistent` | estimators over physically consistent bodies, priors and bounds |
//! | `model_selection` | drive couplings and Stribeck curves found from the data |
//! | `identification` | complete identification, residuals, predictions, quality assessment |
//! | `diagnosis` | errors of model and sensors that could explain a residual |
//! | `given_regressor` | bodies from a regressor that was computed externally |
//! | `payload`, `fleet`, `momentum` | payloads, many robots of one type, free-flying robots |

pub mod consistent;
mod diagnosis;
mod drive_gains;
mod equations;
mod estimator;
mod fleet;
mod given_regressor;
mod identification;
mod joint_model;
pub mod least_squares;
mod model_selection;
pub mod momentum;
mod payload;
mod reduction;
mod redundant_terms;
mod warning;

pub use consistent::bounds::{BodyBounds, Bounds, Ellipsoid, Span};
pub use consistent::intervals::{Interval, IntervalKind, IntervalOptions, NoiseBounds, Quantity, intervals};
pub use consistent::posterior::{CredibleInterval, Posterior, PosteriorOptions, posterior};
pub use consistent::prior::Prior;
pub use consistent::{Consistency, ConsistentFit, PriorKind};
pub use diagnosis::deviation::{Deviation, DeviationKind, OtherLength};
pub use diagnosis::diagnose::{diagnose, diagnose_payload};
pub use diagnosis::excerpt::Excerpt;
pub use drive_gains::{Gains, KnownPayload};
pub use equations::{Equations, WRENCH_AXES};
pub use estimator::{Estimator, Solver};
pub use fleet::identify::{Fleet, Member, identify_fleet};
pub use fleet::payload::{Carried, FleetPayload};
pub use given_regressor::{
    ColumnOrder, RegressorIdentification, RegressorOptions, RegressorRows, RowResidual,
};
pub use identification::criticism::{Reason, ReasonCode, Verdict};
pub use identification::identify::{IdentifyOptions, identify, identify_robust};
pub use identification::joint_values::KnownJoints;
pub use identification::prediction::Prediction;
pub use identification::residuals::{Residual, Validation, validate};
pub use identification::result::{
    BodyEstimate, Identification, JointEstimate, LeastNorm, ModelSize, ParameterEstimate, Tensor, TorqueLag,
};
pub use joint_model::expression::{Expression, FormulaState, Meaning, Variable};
pub use joint_model::stribeck::StribeckCurve;
pub use joint_model::terms::{AutoTerms, Coupling, GivenTerm, JointModel, JointTerms, Term};
pub use least_squares::compact::CompactSummary;
pub use least_squares::essential::Essential;
pub use least_squares::robust::robust;
pub use least_squares::{LeastSquares, Weighting, information_matrix};
pub use model_selection::evidence::TermChoice;
pub use momentum::consistent::ConsistentMomentum;
pub use momentum::identify as momentum_identification;
pub use payload::force_sensor::{SensorMotion, SingleBody, WRENCH_NAMES, Wrenches, measured_prior};
pub use payload::identify::{TRACE_OF_PRIOR, identify_payload};
pub use payload::imu_noise::{Compensated, ImuNoise};
pub use payload::link::PayloadLink;
pub use payload::sensor_lag::{SensorLog, sensor_lag};
pub use payload::unloaded::{TermKnowledge, Unloaded};
pub use reduction::blocks::{BLOCKS, BlockPlan};
pub use reduction::measurements::{Huber, Measurements};
pub use reduction::online::Online;
pub use reduction::row_filter::RowFilter;
pub use reduction::source::LogSource;
pub use reduction::summary::Summary;
pub use warning::{RotorSplit, Warning};
