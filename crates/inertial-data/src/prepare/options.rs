//! Options of the preparation of a log.

use crate::clean::delay::LONGEST;
use crate::{Error, Result};

/// The cut-off of the low-pass.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Cutoff {
    /// [`Options::bandwidths`] times the bandwidth of the motion.
    #[default]
    Auto,
    /// Cut-off in Hz.
    Hz(f64),
    /// No filter.
    Off,
}

/// The low-pass. Both kinds have gain one half at the cut-off and no phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// [`crate::LowPass`] of an order, forward and backward.
    Butterworth {
        /// Order of one pass.
        order: usize,
    },
    /// [`crate::SavitzkyGolay`].
    SavitzkyGolay {
        /// Samples; chosen by the cut-off where absent, and choosing it where given.
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
pub enum Need {
    /// A log without them is refused.
    #[default]
    Required,
    /// Used where present.
    Optional,
}

/// Options of the preparation of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Cut-off of the low-pass.
    pub cutoff: Cutoff,
    /// Bandwidths of the motion below the automatic cut-off. The more, the more of what friction does at low speed is kept,
    /// and the more noise.
    pub bandwidths: f64,
    /// Kind of the low-pass.
    pub filter: Filter,
    /// Rate (Hz) of the uniform grid before filtering, instead of the log's own.
    pub resample: Option<f64>,
    /// Time (s) by which torques come later than the motion: they are taken that much later. Negative where they come earlier.
    pub lag: f64,
    /// Keep every n-th sample after filtering; 0 chooses by the cut-off, 1 keeps all.
    pub decimate: usize,
    /// Joints slower than this share of their greatest speed are left out: the sign of their friction is uncertain. 0 keeps
    /// all.
    pub slow: f64,
    /// Joints that have a torque sensor; empty for all.
    pub torque_joints: Vec<String>,
    /// Believe the units even where they look wrong.
    pub trust_units: bool,
    /// Further columns by name, such as `ft.fx` or `momentum.px`: they must be there and are filtered like all others.
    pub extra: Vec<String>,
    /// Take a log that holds one pose after the other as poses at rest, each with its mean values; rows of poses need no time.
    pub poses: bool,
    /// Torques of the joints.
    pub torques: Need,
    /// Pose of a floating base. Where it need not be known and is not there, it stays neutral and the twist must be measured.
    pub base_pose: Need,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cutoff: Cutoff::Auto,
            // Friction jumps where a joint turns back. The first k harmonics of a square wave hold all of its energy but
            // 4/(π²k): in the rows' band, half of the cut-off, that is all but 2 %.
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
            torques: Need::Required,
            base_pose: Need::Required,
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
