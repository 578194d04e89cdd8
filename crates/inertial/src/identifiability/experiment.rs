//! Experiments: what is measured, which motions count, and what momentum is conserved.

use nalgebra::Vector3;

use super::rpna::Regime;

/// What the sensors give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// Torques (forces) of the joints.
    JointTorques,
    /// The wrench between the base and the world.
    BaseWrench,
    /// Both.
    Both,
    /// The momentum of the robot about the base's origin.
    Momentum,
}

impl Measured {
    /// The contract's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::JointTorques => "joint-torques",
            Self::BaseWrench => "base-wrench",
            Self::Both => "both",
            Self::Momentum => "momentum",
        }
    }
}

/// Momentum that a free-flying robot has with its wheels: what a log of its momentum can contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TotalMomentum {
    /// Zero: the robot only exchanges angular momentum with its wheels.
    Zero,
    /// A known angular momentum (a robot that tumbles): it turns in the frame of the base.
    Angular,
    /// Any known momentum: thrusters, or a drift that is measured.
    #[default]
    Any,
}

impl TotalMomentum {
    /// Name in the program's output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Angular => "angular",
            Self::Any => "any",
        }
    }
}

/// Conservation law that ties the velocity of a floating base to those of the joints.
#[derive(Debug, Clone)]
pub struct Conservation {
    /// Momentum of the robot with its wheels.
    pub total: TotalMomentum,
    /// Directions of the angular momentum that the robot without its wheels can have: a body and an axis in its frame, each.
    pub axes: Vec<(usize, Vector3<f64>)>,
    /// Whether the robot has the masses of the model; random ones otherwise.
    pub model_masses: bool,
}

/// Which experiment is made.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// Which motions count.
    pub regime: Regime,
    /// What is measured.
    pub measured: Measured,
    /// For each velocity coordinate whether its torque is measured; empty for all.
    pub torques: Vec<bool>,
    /// Whether nothing pushes the floating base: its acceleration follows from the joints' (gravity cancels), and the base
    /// wrench is known to be zero.
    pub ballistic: bool,
    /// Law that momentum obeys, where it is measured and cannot have every value. Its linear part is zero then.
    pub conservation: Option<Conservation>,
}

impl Experiment {
    /// The one that reveals all that can be: every torque, and with a floating base its wrench.
    pub fn complete(floating: bool, regime: Regime) -> Self {
        let measured = if floating { Measured::Both } else { Measured::JointTorques };
        Self { regime, measured, torques: Vec::new(), ballistic: false, conservation: None }
    }

    /// Whether all generalised forces are measured, so that the energy tells it all (section 7.4).
    pub fn is_complete(&self, floating: bool) -> bool {
        let forces =
            matches!((self.measured, floating), (Measured::JointTorques, false) | (Measured::Both, true));
        forces && self.torques.iter().all(|&t| t) && !self.ballistic
    }
}
