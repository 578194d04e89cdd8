//! Options with a few named values: the same words in files, on the command line and in Python.

use inertial::dynamics::Arithmetic;
use inertial::estimation::momentum_identification::RateRule;
use inertial::estimation::{ColumnOrder, PriorKind, Quantity};
use inertial::excitation::ModelAggregation;
use inertial::identifiability::{Measured, Method, TotalMomentum};
use inertial::mechanism::{Base, RotorModel};
use inertial::simulation::PoseRule;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize as _, Deserializer, Serializer};

/// Option value that is written as a word.
pub trait Choice: Copy + PartialEq + Send + Sync + 'static {
    /// All values with their words and meanings; the meaning is empty if the word is self-explanatory.
    const ALL: &'static [(Self, &'static str, &'static str)];

    /// Returns the word of this value.
    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(value, ..)| *value == self).map_or("", |(_, word, _)| word)
    }

    /// Returns the value of a word.
    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, own, _)| *own == word).map(|(value, ..)| *value)
    }
}

/// Implements [`Choice`].
macro_rules! choice {
    ($($kind:ty { $($value:ident $word:literal $about:literal),+ $(,)? })+) => {
        $(impl Choice for $kind {
            const ALL: &'static [(Self, &'static str, &'static str)] = &[$((Self::$value, $word, $about)),+];
        })+
    };
}

/// Friction of the joints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Friction {
    /// Viscous, Coulomb and Stribeck friction for the joints whose data require it.
    #[default]
    Auto,
    /// Joints without friction.
    None,
    /// Proportional to the speed.
    Viscous,
    /// Constant, against the motion.
    Coulomb,
    /// Viscous and Coulomb friction.
    Both,
    /// Viscous friction, and a separate Coulomb friction for each direction.
    Asymmetric,
    /// Coulomb and viscous friction, with higher friction at low speed.
    Stribeck,
}

impl Friction {
    /// Returns whether it has a viscous term.
    pub fn is_viscous(self) -> bool {
        matches!(self, Self::Viscous | Self::Both | Self::Asymmetric | Self::Stribeck)
    }

    /// Returns whether it has one Coulomb term for both directions.
    pub fn is_coulomb(self) -> bool {
        matches!(self, Self::Coulomb | Self::Both | Self::Stribeck)
    }
}

/// Constant offsets of the joints' torques.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Offset {
    /// Offsets for the joints whose data require them.
    #[default]
    Auto,
    /// Offsets for all joints.
    Yes,
    /// Joints without offsets.
    No,
}

/// Estimator of the unknowns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimator {
    /// Ordinary least squares.
    Ols,
    /// Least squares weighted by the noise of each joint.
    Wls,
    /// Weighted least squares with less weight on outliers.
    Irls,
    /// Weighted least squares constrained to physically consistent bodies, with a prior.
    Consistent,
    /// Least squares corrected for the bias of noise in the regressor, from momentum.
    Bcls,
    /// Maximum likelihood with noise in the regressor, from momentum.
    Eiv,
}

/// Solver of the consistent estimator; all find the same optimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Solver {
    /// Barrier method over linear matrix inequalities.
    #[default]
    Barrier,
    /// Newton's method in mass, centre of mass, principal axes and second moments.
    Manifold,
    /// Newton's method in the logarithms of a triangular factor.
    LogCholesky,
}

/// Search for drives that are coupled to two neighbouring joints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Coupling {
    /// Couplings searched for in the data.
    #[default]
    Auto,
    /// Couplings of the joint model only.
    None,
}

/// Format that values are exported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Target {
    /// Inverse dynamics and regressor as C99.
    #[default]
    C,
    /// Load of a Universal Robots controller.
    Ur,
    /// Load of a Franka robot, set with libfranka.
    Franka,
    /// Load of a Franka robot, as a file for Desk.
    FrankaDesk,
    /// Load of a KUKA controller.
    Kuka,
    /// Gravity compensation of `ros2_control`.
    Ros2Control,
    /// Links of MuJoCo models.
    Mujoco,
    /// Links of Gazebo models.
    Gazebo,
    /// Inertias of Pinocchio models.
    Pinocchio,
    /// Inertias of Drake plants.
    Drake,
}

impl Target {
    /// Returns whether it takes one body as a load.
    pub(crate) fn is_load(self) -> bool {
        matches!(self, Self::Ur | Self::Franka | Self::FrankaDesk | Self::Kuka | Self::Ros2Control)
    }
}

/// Source of positions for estimates from momentum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Positions {
    /// Columns of the log.
    #[default]
    Log,
    /// First row, and rates integrated with the trapezoidal rule.
    Trapezoid,
    /// First row, and rates integrated with Euler's method.
    Euler,
}

impl Positions {
    /// Returns the rule with which rates are integrated; `None` if positions are measured.
    pub fn rule(self) -> Option<RateRule> {
        match self {
            Self::Log => None,
            Self::Trapezoid => Some(RateRule::Trapezoid),
            Self::Euler => Some(RateRule::Euler),
        }
    }
}

/// Kind of low-pass filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FilterKind {
    /// Butterworth filter, forward and backward.
    #[default]
    Butterworth,
    /// Polynomials over a moving window.
    SavitzkyGolay,
    /// Filtering disabled.
    Off,
}

/// Basis of a designed trajectory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Fourier series.
    Fourier,
    /// B-spline.
    Spline,
    /// Velocities at knots.
    Velocity,
    /// Movements along cycloids from rest to rest.
    Cycloid,
    /// Movements along polynomials from rest to rest.
    Quintic,
}

/// Optimality criterion of a design.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Goal {
    /// Volume of the error ellipsoid.
    #[default]
    D,
    /// Mean square error.
    A,
    /// Error of the worst direction.
    E,
    /// Mean square of the relative errors.
    Crb,
    /// Largest relative error.
    Worst,
    /// Condition number.
    Condition,
    /// Condition number with columns of equal length.
    ScaledCondition,
    /// Condition number plus a weight over the mean square speed.
    Paper,
}

/// Inertias from which the C code computes forces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Inertias {
    /// Base parameters only, zeros elsewhere.
    #[default]
    Base,
    /// All inertias of the model.
    All,
}

/// Direction combinations of the cycloids of a free flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Combinations {
    /// First combinations in binary order.
    #[default]
    First,
    /// Most informative combinations.
    Best,
    /// Combinations that the published algorithm keeps as printed.
    Printed,
    /// Combinations that the published algorithm keeps with the missing update added.
    Refreshed,
    /// Combinations that the published algorithm keeps with the count described in its text.
    Counted,
}

/// Friction and springs of a simulated robot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JointForcesOf {
    /// Friction and springs of the model.
    #[default]
    Model,
    /// Joints without friction and springs.
    None,
}

/// Table of an analysis that is written as CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnalysisTable {
    /// Every parameter with its status and combination.
    Parameters,
    /// Changes of parameters that change no measurement.
    NullSpace,
}

choice! {
    AnalysisTable {
        Parameters "parameters" "Every parameter with its status and combination",
        NullSpace "null-space" "Null space: changes of parameters that no measurement detects, with their reasons",
    }
    Base { Fixed "fixed" "", Floating "floating" "" }
    RotorModel {
        None "none" "Included in the mass of their carriers",
        Symmetric "symmetric" "One parameter each, the inertia about the axis",
        General "general" "Ten parameters each",
    }
    Measured {
        JointTorques "joint-torques" "",
        BaseWrench "base-wrench" "",
        Both "both" "",
        Momentum "momentum" "",
    }
    TotalMomentum {
        Zero "zero" "Zero: only wheels exchange angular momentum",
        Angular "angular" "Known angular momentum of a tumbling robot",
        Any "any" "Known momentum, from thrusters or a measured drift",
    }
    Quantity {
        Mass "m" "Masses of the bodies",
        Com "com" "Centres of mass",
        FirstMoment "h" "First moments of mass",
        Inertia "I" "Inertias about the origins of the bodies' frames",
        Base "base" "Base parameters",
    }
    Method { Auto "auto" "", Rpna "rpna" "", Drng "drng" "", Numeric "numeric" "", Exact "exact" "" }
    Friction {
        Auto "auto" "Chosen for each joint from the data",
        None "none" "",
        Viscous "viscous" "",
        Coulomb "coulomb" "",
        Both "coulomb+viscous" "",
        Asymmetric "asymmetric" "Viscous, and separate Coulomb friction for each direction",
        Stribeck "stribeck" "Coulomb and viscous, with higher friction at low speed",
    }
    Offset { Auto "auto" "For joints whose data require it", Yes "yes" "For all joints", No "no" "" }
    Estimator {
        Ols "ols" "Ordinary least squares",
        Wls "wls" "Least squares weighted by the noise of each joint",
        Irls "irls" "Weighted least squares with less weight on outliers",
        Consistent "consistent" "Weighted least squares over physically consistent bodies, with a prior",
        Eiv "eiv" "Maximum likelihood with noise in the regressor (momentum)",
        Bcls "bcls" "Least squares corrected for the bias of noise in the regressor (momentum)",
    }
    Solver {
        Barrier "barrier" "Linear matrix inequalities",
        Manifold "manifold" "Mass, centre of mass, principal axes and moments",
        LogCholesky "log-cholesky" "Logarithms of a triangular factor",
    }
    Target {
        C "c" "C99 code of inverse dynamics, gravity, friction and the regressor, with a self-test",
        Ur "ur" "URScript of a load: set_payload, set_target_payload",
        Franka "franka" "Call of libfranka's setLoad",
        FrankaDesk "franka-desk" "JSON file of an end effector for Franka's Desk",
        Kuka "kuka" "LOAD_DATA of KUKA controllers",
        Ros2Control "ros2-control" "YAML of gravity compensation (admittance controller, sensor filter)",
        Mujoco "mujoco" "<inertial> of each link for MJCF",
        Gazebo "gazebo" "<inertial> of each link for SDF",
        Pinocchio "pinocchio" "Python that sets the inertias of a Pinocchio model",
        Drake "drake" "Python that sets the inertias of a Drake plant",
    }
    Inertias {
        Base "base" "Base parameters, all others zero: the same forces in fewer operations",
        All "all" "All parameters of the model",
    }
    ColumnOrder {
        Rows "inertial" "m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz",
        Pinocchio "pinocchio" "m hx hy hz Ixx Ixy Iyy Ixz Iyz Izz",
    }
    PriorKind { Entropic "entropic" "", Euclidean "euclidean" "" }
    Coupling { Auto "auto" "", None "none" "" }
    Positions {
        Log "log" "Columns of the log",
        Trapezoid "trapezoid" "First row, and rates integrated by the trapezoid rule",
        Euler "euler" "First row, and rates integrated by Euler's rule",
    }
    FilterKind { Butterworth "butterworth" "", SavitzkyGolay "savitzky-golay" "", Off "off" "" }
    Shape {
        Fourier "fourier" "Fourier series",
        Spline "spline" "B-spline",
        Velocity "velocity" "Velocities at knots",
        Cycloid "cycloid" "Movements along cycloids from rest to rest",
        Quintic "quintic" "Movements along polynomials from rest to rest",
    }
    Goal {
        D "d" "Volume of the error ellipsoid",
        A "a" "Mean square error",
        E "e" "Error of the worst direction",
        Crb "crb" "Mean square of the relative errors",
        Worst "worst" "Largest relative error",
        Condition "condition" "Condition number",
        ScaledCondition "scaled-condition" "Condition number with columns of equal length",
        Paper "paper" "Condition number plus a weight over the mean square speed",
    }
    Combinations {
        First "first" "The first ones in binary order, as many as there are intervals",
        Best "best" "The most informative ones, as many as there are intervals",
        Printed "printed" "Those selected by algorithm 1 of the paper, as printed",
        Refreshed "refreshed" "Those selected by algorithm 1, compared with the ones selected so far",
        Counted "counted" "Those selected by algorithm 1, by the number of significant singular values only, as described in the paper",
    }
    Arithmetic {
        Fastest "fast" "Fused multiply-add if the processor has it",
        Reproducible "reproducible" "The same bits on every processor",
    }
    ModelAggregation { Mean "mean" "", Worst "worst" "" }
    JointForcesOf { Model "model" "", None "none" "" }
    PoseRule { Exact "exact" "", Trapezoid "trapezoid" "", Euler "euler" "" }
}

/// Schema of a choice: an enumeration of its words.
pub struct Words<T>(std::marker::PhantomData<T>);

impl<T: Choice> JsonSchema for Words<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        std::any::type_name::<T>().into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = T::ALL.iter().map(|(_, word, _)| *word).collect();
        json_schema!({"type": "string", "enum": words})
    }
}

/// Returns all words of a choice, separated by commas.
pub fn words<T: Choice>() -> String {
    T::ALL.iter().map(|(_, word, _)| *word).collect::<Vec<_>>().join(", ")
}

/// Serializes a choice as its word.
pub(crate) fn serialize<T: Choice, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(value.word())
}

/// Reads a choice from its word.
pub(crate) fn deserialize<'de, T: Choice, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let word = String::deserialize(deserializer)?;
    T::from_word(&word)
        .ok_or_else(|| serde::de::Error::custom(format!("'{word}': expected one of {}", words::<T>())))
}

/// Serializes offsets as a word, and reads them from a word or from `true` and `false`.
pub(crate) mod offset {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{Choice as _, Offset};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Value {
        Flag(bool),
        Word(String),
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
    pub(crate) fn serialize<S: Serializer>(value: &Offset, serializer: S) -> Result<S::Ok, S::Error> {
        super::serialize(value, serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Offset, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Flag(true) => Ok(Offset::Yes),
            Value::Flag(false) => Ok(Offset::No),
            Value::Word(word) => Offset::from_word(&word)
                .ok_or_else(|| serde::de::Error::custom(format!("'{word}': expected auto, yes or no"))),
        }
    }
}

/// Serializes and reads choices that may be absent.
pub(crate) mod optional {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Choice;

    pub(super) struct Word<T>(pub(super) T);

    impl<T: Choice> Serialize for Word<T> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            super::serialize(&self.0, serializer)
        }
    }

    impl<'de, T: Choice> Deserialize<'de> for Word<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            super::deserialize(deserializer).map(Self)
        }
    }

    #[allow(clippy::ref_option, reason = "serde passes the field by reference")]
    pub(crate) fn serialize<T: Choice, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(Word).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T: Choice, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        Ok(Option::<Word<T>>::deserialize(deserializer)?.map(|word| word.0))
    }
}

/// Serializes and reads lists of choices.
pub(crate) mod list {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Choice;
    use super::optional::Word;

    pub(crate) fn serialize<T: Choice, S: Serializer>(
        values: &[T],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|value| Word(*value)))
    }

    pub(crate) fn deserialize<'de, T: Choice, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        Ok(Vec::<Word<T>>::deserialize(deserializer)?.into_iter().map(|word| word.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_are_unique<T: Choice>() {
        for (value, word, _) in T::ALL {
            assert!(T::from_word(word) == Some(*value) && value.word() == *word, "{word}");
        }
    }

    #[test]
    fn every_word_names_one_value() {
        words_are_unique::<Base>();
        words_are_unique::<Measured>();
        words_are_unique::<Quantity>();
        words_are_unique::<TotalMomentum>();
        words_are_unique::<Friction>();
        words_are_unique::<Offset>();
        words_are_unique::<Estimator>();
        words_are_unique::<Solver>();
        words_are_unique::<Goal>();
        words_are_unique::<Shape>();
        // The words must equal the names that the library uses in results.
        assert!(Measured::ALL.iter().all(|(value, word, _)| value.name() == *word));
        assert!(TotalMomentum::ALL.iter().all(|(value, word, _)| value.name() == *word));
    }
}
