//! Joint states: `sensor_msgs/JointState` and `control_msgs/DynamicJointState`.

use super::cdr::Cdr;

/// State of some joints at one time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JointState {
    /// Stamp of the header in seconds.
    pub stamp: f64,
    pub name: Vec<String>,
    /// Position, velocity, effort: empty, or as many as names.
    values: [Vec<f64>; 3],
}

impl JointState {
    /// Parses a message; returns the cause if it is invalid.
    pub fn parse(message: &[u8], ros1: bool) -> Result<Self, String> {
        let mut cdr = Cdr::new(message, ros1)?;
        let stamp = cdr.header()?;
        let name = names(&mut cdr)?;
        let values = [cdr.doubles()?, cdr.doubles()?, cdr.doubles()?];
        let count = name.len();
        if let Some(bad) = values.iter().find(|v| !v.is_empty() && v.len() != count) {
            return Err(format!("{} values for {count} joints", bad.len()));
        }
        Ok(Self { stamp, name, values })
    }

    /// Parses a message with named interfaces; only `position`, `velocity` and `effort` are used.
    pub fn parse_dynamic(message: &[u8], ros1: bool) -> Result<Self, String> {
        let mut cdr = Cdr::new(message, ros1)?;
        let stamp = cdr.header()?;
        let name = names(&mut cdr)?;
        let count = cdr.length(8)?;
        if count != name.len() {
            return Err(format!("{count} lists of interfaces for {} joints", name.len()));
        }
        let mut values = [vec![f64::NAN; count], vec![f64::NAN; count], vec![f64::NAN; count]];
        for joint in 0..count {
            let interfaces = names(&mut cdr)?;
            let numbers = cdr.doubles()?;
            if interfaces.len() != numbers.len() {
                return Err(format!("{} values for {} interfaces", numbers.len(), interfaces.len()));
            }
            for (interface, number) in interfaces.iter().zip(numbers) {
                let quantity = ["position", "velocity", "effort"].iter().position(|own| own == interface);
                if let Some(quantity) = quantity {
                    values[quantity][joint] = number;
                }
            }
        }
        Ok(Self { stamp, name, values })
    }

    /// Returns the position (0), velocity (1) or effort (2) of a joint, if present.
    pub fn value(&self, quantity: usize, joint: usize) -> Option<f64> {
        self.values[quantity].get(joint).copied().filter(|value| !value.is_nan())
    }
}

fn names(cdr: &mut Cdr<'_>) -> Result<Vec<String>, String> {
    let count = cdr.length(4)?;
    (0..count).map(|_| cdr.string()).collect()
}
