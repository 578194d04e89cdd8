//! Options that mean the same in every command.

use clap::{Args, ValueEnum};
use inertial::identifiability::Measured;
use inertial::mechanism::{Base, BuildOptions, RotorModel};
use nalgebra::Vector3;

/// How the model is to be taken.
#[derive(Debug, Args)]
pub struct ModelOptions {
    /// Whether the base is bolted down [default: floating only where the model says so]
    #[arg(long, value_enum)]
    base: Option<BaseChoice>,
    /// Gravity in m/s², world frame; 0,0,0 is allowed [default: as the model says, else 0,0,-9.81]
    #[arg(long, value_name = "X,Y,Z", allow_hyphen_values = true, value_parser = gravity)]
    gravity: Option<Vector3<f64>>,
    /// How geared rotors count: as dead weight, by their spin inertia, or by all ten parameters [default: as the model
    /// says]
    #[arg(long, value_enum)]
    rotors: Option<RotorChoice>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum BaseChoice {
    Fixed,
    Floating,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RotorChoice {
    None,
    Symmetric,
    General,
}

/// What the sensors give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MeasuredChoice {
    JointTorques,
    BaseWrench,
    Both,
    Momentum,
}

impl From<MeasuredChoice> for Measured {
    fn from(choice: MeasuredChoice) -> Self {
        match choice {
            MeasuredChoice::JointTorques => Self::JointTorques,
            MeasuredChoice::BaseWrench => Self::BaseWrench,
            MeasuredChoice::Both => Self::Both,
            MeasuredChoice::Momentum => Self::Momentum,
        }
    }
}

impl ModelOptions {
    /// Whether the call asks for rotors' inertias.
    pub fn wants_rotors(&self) -> bool {
        matches!(self.rotors, Some(RotorChoice::Symmetric | RotorChoice::General))
    }

    /// For the library.
    pub fn build_options(&self) -> BuildOptions {
        BuildOptions {
            base: self.base.map(|b| match b {
                BaseChoice::Fixed => Base::Fixed,
                BaseChoice::Floating => Base::Floating,
            }),
            rotors: self.rotors.map(|r| match r {
                RotorChoice::None => RotorModel::None,
                RotorChoice::Symmetric => RotorModel::Symmetric,
                RotorChoice::General => RotorModel::General,
            }),
            gravity: self.gravity,
        }
    }
}

fn gravity(text: &str) -> Result<Vector3<f64>, String> {
    let expected = || format!("expected three numbers like 0,0,-9.81, not '{text}'");
    let values: Vec<f64> =
        text.split(',').map(|x| x.trim().parse()).collect::<Result<_, _>>().map_err(|_| expected())?;
    match values[..] {
        [x, y, z] if values.iter().all(|v| v.is_finite()) => Ok(Vector3::new(x, y, z)),
        _ => Err(expected()),
    }
}

/// A number for a column or a group of columns: `tau.elbow=0.1`, `base.w=8e-5`.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The column or group.
    pub column: String,
    /// Its value.
    pub value: f64,
}

impl std::str::FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected COLUMN=NUMBER like dq=5e-5, not '{text}'");
        let (column, value) = text.split_once('=').ok_or_else(expected)?;
        let value: f64 = value.trim().parse().map_err(|_| expected())?;
        if column.trim().is_empty() || !value.is_finite() {
            return Err(expected());
        }
        Ok(Self { column: column.trim().to_owned(), value })
    }
}
