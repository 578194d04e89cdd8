//! Experiments: measured quantities, admissible motions and conserved momentum.

use nalgebra::Vector3;

use super::rpna::Regime;

/// Measured quantities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// Torques (forces) of the joints.
    JointTorques,
    /// Wrench between the base and the world.
    BaseWrench,
    /// Torques of the joints and wrench of the base.
    Both,
    /// Momentum of the robot about the origin of its base.
    Momentum,
}

impl Measured {
    /// Returns the name used in the command-line interface and the output.
    pub fn name(self) -> &'static str {
        match self {
            Self::JointTorques => "joint-torques",
            Self::BaseWrench => "base-wrench",
            Self::Both => "both",
            Self::Momentum => "momentum",
        }
    }
}

/// Total momentum of a free-flying robot including its wheels, as contained in a log of its momentum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TotalMomentum {
    /// Zero momentum: the robot exchanges angular momentum with its wheels only.
    Zero,
    /// Known angular momentum (a tumbling robot); its direction rotates in the base frame.
    Angular,
    /// Any known momentum: thrusters, or a measured drift.
    #[default]
    Any,
}

impl TotalMomentum {
    /// Returns the name used in the output of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Angular => "angular",
            Self::Any => "any",
        }
    }
}

/// Conservation law that relates the velocity of a floating base to the joint velocities.
#[derive(Debug, Clone)]
pub struct Conservation {
    /// Total momentum of the robot including its wheels.
    pub total: TotalMomentum,
    /// Possible directions of the angular momentum of the robot without its wheels: each is a body and an axis in its
    /// frame.
    pub axes: Vec<(usize, Vector3<f64>)>,
}

/// Description of the experiment.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// Admissible motions.
    pub regime: Regime,
    /// Measured quantities.
    pub measured: Measured,
    /// Whether the torque of each velocity coordinate is measured; empty if all are.
    pub torques: Vec<bool>,
    /// Whether no external force acts on the floating base. Its acceleration then follows from those of the joints
    /// (gravity cancels), and the base wrench is known to be zero.
    pub ballistic: bool,
    /// Conservation law of the momentum, if momentum is measured and cannot have every value. The linear momentum is
    /// then zero.
    pub conservation: Option<Conservation>,
    /// Whether the robot that moves freely has the masses of the model; otherwise they are random.
    pub model_masses: bool,
}

impl Experiment {
    /// Returns the experiment with the most information: all torques and, with a floating base, its wrench.
    pub fn complete(floating: bool, regime: Regime) -> Self {
        let measured = if floating { Measured::Both } else { Measured::JointTorques };
        Self {
            regime,
            measured,
            torques: Vec::new(),
            ballistic: false,
            conservation: None,
            model_masses: false,
        }
    }

    /// Returns whether a common scale of all parameters changes no measurement.
    pub fn shows_only_ratios(&self) -> bool {
        self.is_motion_only() || self.conservation.as_ref().is_some_and(|law| law.axes.is_empty())
    }

    /// Returns whether only the motion of a free flight is measured, so that no force is known.
    pub fn is_motion_only(&self) -> bool {
        self.ballistic && self.measured == Measured::BaseWrench
    }

    /// Returns whether all generalized forces are measured. The energy then contains the whole information (section
    /// 7.4).
    pub fn is_complete(&self, floating: bool) -> bool {
        let forces =
            matches!((self.measured, floating), (Measured::JointTorques, false) | (Measured::Both, true));
        forces && self.torques.iter().all(|&t| t) && !self.ballistic
    }
}
