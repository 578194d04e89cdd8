//! Options of the preparation of a log.

use crate::{Error, Result};

/// Maximum delay (s) that is corrected.
const LONGEST: f64 = 1.0;

/// Cut-off of the low-pass.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Cutoff {
    /// Automatic: [`Options::bandwidths`] times the bandwidth of the motion.
    #[default]
    Auto,
    /// Cut-off in Hz.
    Hz(f64),
    /// Filtering disabled.
    Off,
}

/// Low-pass filter. Both kinds have zero phase and a gain of one half at the cut-off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Butterworth filter ([`crate::LowPass`]), forward and backward.
    Butterworth {
        /// Order of one pass.
        order: usize,
    },
    /// Savitzky–Golay filter ([`crate::SavitzkyGolay`]).
    SavitzkyGolay {
        /// Number of samples. If absent, the cut-off determines it; if given, it determines the cut-off.
        window: Option<usize>,
        /// Order of the polynomial.
        order: usize,
    },
}

impl Default for Filter {
    fn default() -> Self {
        Self::Butterworth { order: 4 }
    }
}

/// Whether columns are required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Requirement {
    /// Required: a log without these columns is rejected.
    #[default]
    Required,
    /// Optional: the columns are used if present.
    Optional,
}

/// Options of the preparation of a log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Cut-off of the low-pass.
    pub cutoff: Cutoff,
    /// Automatic cut-off in bandwidths of the motion. Larger values keep more of the friction effects at low speed, and more noise.
    pub bandwidths: f64,
    /// Kind of the low-pass.
    pub filter: Filter,
    /// Rate (Hz) of the uniform grid before filtering, instead of the log's own.
    pub resample: Option<f64>,
    /// Delay (s) of the torques and of the readings of a force/torque sensor (`ft.*`) relative to the motion: they are taken that much
    /// later. Negative if they are early.
    pub lag: f64,
    /// Decimation after filtering: every n-th sample is kept. 0 selects n by the cut-off, 1 keeps all.
    pub decimate: usize,
    /// Share of its maximum speed below which a joint is excluded, because the sign of its friction is uncertain. 0 keeps all.
    pub slow: f64,
    /// Joints that have a torque sensor; empty for all.
    pub torque_joints: Vec<String>,
    /// Whether units are accepted even if they look wrong.
    pub trust_units: bool,
    /// Additional columns by name, such as `ft.fx` or `momentum.px`; they must be present and are filtered like all others.
    pub extra: Vec<String>,
    /// Whether a log that contains one pose after the other is treated as poses at rest, each with its mean values; rows of poses
    /// need no time.
    pub poses: bool,
    /// Requirement for the torques of the joints.
    pub torques: Requirement,
    /// Requirement for the pose of a floating base. If it is optional and absent, it stays neutral and the twist must be measured.
    pub base_pose: Requirement,
}

inertial::with_changes!(Options);

impl Default for Options {
    fn default() -> Self {
        Self {
            cutoff: Cutoff::Auto,
            // Friction jumps at the reversal of a joint. The first k harmonics of a square wave contain all of its energy except
            // 4/(π²k): in the band of the rows, half of the cut-off, that is all except 2 %.
            bandwidths: 40.0,
            filter: Filter::default(),
            resample: None,
            lag: 0.0,
            decimate: 0,
            slow: 0.02,
            torque_joints: Vec::new(),
            trust_units: false,
            extra: Vec::new(),
            poses: false,
            torques: Requirement::Required,
            base_pose: Requirement::Required,
        }
    }
}

impl Options {
    pub(crate) fn check(&self) -> Result<()> {
        if !(self.slow >= 0.0 && self.slow < 1.0) {
            return Err(Error::Option(format!("slow share {}: expected 0 to 1", self.slow)));
        }
        if !(self.lag.abs() <= LONGEST) {
            return Err(Error::Option(format!("lag {} s: expected at most {LONGEST} s", self.lag)));
        }
        if !(self.bandwidths >= 1.0 && self.bandwidths.is_finite()) {
            return Err(Error::Option(format!("{} bandwidths: expected one at least", self.bandwidths)));
        }
        Ok(())
    }
}
