//! Sensor model: bias, noise and quantization of each column.

use crate::linalg::SplitMix;
use crate::{Error, Result};

/// Largest setting; larger readings are outside of the range that logs may have.
const MOST: f64 = 1e50;

/// Settings by column or group of columns: `tau`, `tau.elbow`, `base.v`, `wrench`.
pub type Settings = [(String, f64)];

/// Sensors of named columns, reproducible for equal seeds.
///
/// A setting applies to the columns whose name equals it or begins with it (`q` for `q.elbow`, `base.w` for `base.wx`); the
/// longest match has priority. Noise is Gaussian with the given standard deviation; that of a quaternion is a rotation by small
/// random angles. Each column has its own random numbers, so its noise does not depend on the other columns.
///
/// ```
/// use inertial::simulation::Sensors;
/// let names = ["q.elbow", "tau.elbow", "tau.wrist"].map(String::from);
/// let noise = [("tau".to_owned(), 0.1), ("tau.wrist".to_owned(), 0.0)];
/// let mut sensors = Sensors::new(&names, &noise, &[], &[], 1)?;
/// let mut row = [1.0, 2.0, 3.0];
/// sensors.measure(&mut row);
/// assert!(row[0] == 1.0 && row[1] != 2.0 && row[2] == 3.0);
/// # Ok::<(), inertial::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sensors {
    columns: Vec<Column>,
    /// First columns of quaternions `x y z w`.
    quaternions: Vec<usize>,
}

#[derive(Debug, Clone)]
struct Column {
    noise: f64,
    bias: f64,
    quantum: f64,
    source: Gaussian,
}

impl Sensors {
    /// Creates sensors of the columns `names`, with standard deviations of noise, constant biases and quantization steps.
    pub fn new(
        names: &[String],
        noise: &Settings,
        bias: &Settings,
        quantum: &Settings,
        seed: u64,
    ) -> Result<Self> {
        for (what, settings, signed) in
            [("noise", noise, false), ("bias", bias, true), ("quantum", quantum, false)]
        {
            for (key, value) in settings {
                if !(value.abs() <= MOST) || (!signed && *value < 0.0) {
                    let expected = if signed {
                        "a number of at most 1e50"
                    } else {
                        "a number of at most 1e50, no less than zero"
                    };
                    return Err(Error::invalid_value(format!("the {what} of {key}"), *value, expected));
                }
                if !names.iter().any(|name| applies(key, name)) {
                    return Err(Error::UnknownName(format!(
                        "there is no column {key} for the {what}; there are {}",
                        names.join(" ")
                    )));
                }
            }
        }
        let column = |name: &String| Column {
            noise: setting(noise, name),
            bias: setting(bias, name),
            quantum: setting(quantum, name),
            source: Gaussian::new(seed, name),
        };
        let quaternion = |k: &usize| {
            let stem = names[*k].strip_suffix(".qx");
            let here = names.get(*k..*k + 4);
            stem.zip(here).is_some_and(|(stem, here)| {
                ["qx", "qy", "qz", "qw"]
                    .iter()
                    .zip(here)
                    .all(|(part, name)| *name == format!("{stem}.{part}"))
            })
        };
        Ok(Self {
            columns: names.iter().map(column).collect(),
            quaternions: (0..names.len()).filter(quaternion).collect(),
        })
    }

    /// Converts true values to measured ones.
    ///
    /// # Panics
    /// Panics if `row` has fewer entries than there are columns.
    pub fn measure(&mut self, row: &mut [f64]) {
        for &k in &self.quaternions {
            let turn: [f64; 3] = std::array::from_fn(|i| self.columns[k + i].draw());
            crate::mechanism::JointType::Spherical.integrate(&mut row[k..k + 4], &turn);
        }
        for (k, (column, x)) in self.columns.iter_mut().zip(row).enumerate() {
            let part = self.quaternions.iter().any(|&q| (q..q + 4).contains(&k));
            if !part {
                *x += column.draw();
            }
            *x += column.bias;
            if column.quantum > 0.0 {
                *x = (*x / column.quantum).round() * column.quantum;
            }
        }
    }
}

impl Column {
    fn draw(&mut self) -> f64 {
        if self.noise > 0.0 { self.noise * self.source.next() } else { 0.0 }
    }
}

/// Returns whether a setting applies to a column: its name, a part before a dot, or a vector without its component.
fn applies(key: &str, name: &str) -> bool {
    name.strip_prefix(key).is_some_and(|rest| {
        rest.is_empty()
            || rest.starts_with('.')
            || (key.contains('.') && matches!(rest, "x" | "y" | "z" | "w"))
    })
}

fn setting(settings: &Settings, name: &str) -> f64 {
    let fitting = settings.iter().filter(|(key, _)| applies(key, name));
    fitting.max_by_key(|(key, _)| key.len()).map_or(0.0, |(_, value)| *value)
}

/// Generator of normally distributed numbers (Box-Muller transform), in pairs.
#[derive(Debug, Clone)]
struct Gaussian {
    source: SplitMix,
    second: Option<f64>,
}

impl Gaussian {
    /// Creates the generator of one column, seeded by the FNV hash of its name and the seed.
    fn new(seed: u64, name: &str) -> Self {
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let bytes = seed.to_le_bytes().into_iter().chain(name.bytes());
        Self { source: SplitMix::new(bytes.fold(0xcbf2_9ce4_8422_2325, hash)), second: None }
    }

    fn next(&mut self) -> f64 {
        if let Some(x) = self.second.take() {
            return x;
        }
        // Uniform in the half-open interval (0, 1].
        let mut uniform = || ((self.source.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        let (radius, angle) = ((-2.0 * uniform().ln()).sqrt(), std::f64::consts::TAU * uniform());
        self.second = Some(radius * angle.sin());
        radius * angle.cos()
    }
}
