//! Trajectories: joint positions as functions of time, linear in coefficients.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::basis::{Basis, Profile};
use crate::{Error, Place, Result};

const SCHEMA: &str = "inertial/trajectory/1";

/// Longest duration (s): a day. Longer motions indicate a wrong unit.
const MOST_SECONDS: f64 = 86_400.0;

/// Largest number of coefficients or samples, to limit memory.
const MOST_NUMBERS: usize = 100_000_000;

/// Positions of joints as functions of time: linear combinations of the functions of a [`Basis`].
///
/// The derivatives with respect to the coefficients are the basis functions ([`Basis::visit`]).
///
/// ```
/// use inertial::excitation::{Profile, Trajectory};
/// let there_and_back = Trajectory::point_to_point(
///     vec!["shoulder".into()], vec![0.0, 1.0, 3.0], Profile::Quintic, &[vec![0.0, 2.0, 0.0]])?;
/// let (mut q, mut v, mut a) = ([0.0], [0.0], [0.0]);
/// there_and_back.evaluate(1.0, &mut q, &mut v, &mut a);
/// assert_eq!((q, v, a), ([2.0], [0.0], [0.0]));
/// # Ok::<(), inertial::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Trajectory {
    joints: Vec<String>,
    duration: f64,
    basis: Basis,
    /// Coefficients of the first function for all joints, then of the second, …
    coefficients: Vec<f64>,
}

impl Trajectory {
    /// Creates a trajectory from the coefficients of each joint.
    pub fn new(joints: Vec<String>, duration: f64, basis: Basis, coefficients: &[Vec<f64>]) -> Result<Self> {
        let bad = |message: String| Err(Error::InvalidOption(format!("the trajectory: {message}")));
        if !(duration > 0.0 && duration <= MOST_SECONDS) {
            return bad(format!("the duration is {duration} s, expected more than 0 and at most a day"));
        }
        if let Some(fault) = basis.fault(duration) {
            return bad(fault);
        }
        if let Some(twice) = joints.iter().enumerate().find(|(i, name)| joints[..*i].contains(name)) {
            return bad(format!("the joint \"{}\" is listed twice", twice.1));
        }
        if coefficients.len() != joints.len() {
            return bad(format!("{} joints have {} rows of coefficients", joints.len(), coefficients.len()));
        }
        let (n, count) = (joints.len(), basis.len());
        if n.saturating_mul(count) > MOST_NUMBERS {
            return bad(format!("{n} × {count} coefficients are more than {MOST_NUMBERS}"));
        }
        let mut flat = vec![0.0; n * count];
        for (j, row) in coefficients.iter().enumerate() {
            if row.len() != count {
                let name = &joints[j];
                return bad(format!("\"{name}\" has {} coefficients, expected {count}", row.len()));
            }
            if row.iter().any(|c| !c.is_finite()) {
                return bad(format!("a coefficient of \"{}\" is not finite", joints[j]));
            }
            row.iter().enumerate().for_each(|(k, c)| flat[k * n + j] = *c);
        }
        Ok(Self { joints, duration, basis, coefficients: flat })
    }

    /// Creates movements from rest to rest through the given positions of each joint at the knots (s).
    pub fn point_to_point(
        joints: Vec<String>,
        knots: Vec<f64>,
        profile: Profile,
        positions: &[Vec<f64>],
    ) -> Result<Self> {
        let duration = knots.last().copied().unwrap_or(0.0);
        Self::new(joints, duration, Basis::PointToPoint { knots, profile }, positions)
    }

    /// Creates cycloidal intervals of `interval` seconds from a start and a range of each joint (paper 002, eqs 28–31).
    /// `directions` has one entry per interval with a sign for each joint.
    pub fn from_seeds(
        joints: Vec<String>,
        interval: f64,
        start: &[f64],
        range: &[f64],
        directions: &[Vec<f64>],
    ) -> Result<Self> {
        let n = joints.len();
        let sizes = [("start positions", start.len()), ("ranges", range.len())];
        let sizes =
            sizes.into_iter().chain(directions.iter().map(|d| ("directions of an interval", d.len())));
        for (what, found) in sizes {
            if found != n {
                return Err(Error::Dimension { what, expected: n, found });
            }
        }
        let path = |j: usize| -> Vec<f64> {
            let mut at = start[j];
            let moved = directions.iter().map(|d| {
                at += d[j] * range[j];
                at
            });
            let moved: Vec<f64> = moved.collect();
            std::iter::once(start[j]).chain(moved).collect()
        };
        let knots = (0..=directions.len()).map(|k| k as f64 * interval).collect();
        Self::point_to_point(joints, knots, Profile::Cycloid, &(0..n).map(path).collect::<Vec<_>>())
    }

    /// Reads a trajectory file, JSON or TOML.
    pub fn read(text: &str) -> Result<Self> {
        let syntax = |line: Option<usize>, message: String| {
            Error::syntax(Place { line: line.map(|l| l as u32), element: String::new() }, message)
        };
        if text.trim_start().starts_with('{') {
            let strip = |e: &serde_json::Error| {
                let text = e.to_string();
                text.rfind(" at line ").map_or(text.clone(), |end| text[..end].to_owned())
            };
            serde_json::from_str(text).map_err(|e| syntax((e.line() > 0).then(|| e.line()), strip(&e)))
        } else {
            let line = |e: &toml::de::Error| e.span().map(|s| 1 + text[..s.start].matches('\n').count());
            toml::from_str(text).map_err(|e| syntax(line(&e), e.message().to_owned()))
        }
    }

    /// Writes a trajectory file in JSON that [`Trajectory::read`] reads without loss of precision.
    pub fn to_json(&self) -> String {
        // Serialization of strings, finite numbers and lists of them cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Writes a trajectory file in TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// Returns the names of the joints.
    pub fn joints(&self) -> &[String] {
        &self.joints
    }

    /// Returns the duration in seconds.
    pub fn duration(&self) -> f64 {
        self.duration
    }

    /// Returns the basis functions.
    pub fn basis(&self) -> &Basis {
        &self.basis
    }

    /// Returns the coefficients of one joint.
    pub fn coefficients(&self, joint: usize) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.coefficients.iter().skip(joint).step_by(self.joints.len().max(1)).copied()
    }

    /// Computes positions, velocities and accelerations at the time `t`; before the start and after the end, those of the ends.
    ///
    /// # Panics
    /// Panics if a slice is shorter than the number of joints.
    pub fn evaluate(&self, t: f64, q: &mut [f64], v: &mut [f64], a: &mut [f64]) {
        let n = self.joints.len();
        let (q, v, a) = (&mut q[..n], &mut v[..n], &mut a[..n]);
        q.fill(0.0);
        v.fill(0.0);
        a.fill(0.0);
        self.basis.visit(t.clamp(0.0, self.duration), |k, [b, db, ddb]| {
            for (j, c) in self.coefficients[k * n..(k + 1) * n].iter().enumerate() {
                q[j] += c * b;
                v[j] += c * db;
                a[j] += c * ddb;
            }
        });
    }

    /// Returns the number of samples at a rate (Hz), from the start to the last sample that is not after the end.
    pub fn samples(&self, rate: f64) -> Result<usize> {
        let count = self.duration * rate;
        let numbers = count * self.joints.len().max(1) as f64;
        if !(rate > 0.0) || !(numbers <= MOST_NUMBERS as f64) {
            return Err(Error::InvalidOption(format!(
                "a rate of {rate} Hz over {} s gives {count} samples, expected at least one, and at most \
                 {MOST_NUMBERS} numbers",
                self.duration
            )));
        }
        // A last sample that is after the end only due to rounding is included.
        Ok((count + 1e-6).floor() as usize + 1)
    }
}

/// Representation in files.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Trajectory")]
struct Stored {
    /// Schema of the object.
    #[schemars(extend("const" = SCHEMA))]
    schema: String,
    /// Joints that move.
    joints: Vec<String>,
    /// Duration (s).
    duration: f64,
    /// Coefficients of each joint, one for each function of the basis.
    coefficients: Vec<Vec<f64>>,
    /// Functions of time that the coefficients belong to.
    basis: Basis,
}

impl From<Trajectory> for Stored {
    fn from(t: Trajectory) -> Self {
        let coefficients = (0..t.joints.len()).map(|j| t.coefficients(j).collect()).collect();
        Self { schema: SCHEMA.into(), joints: t.joints, duration: t.duration, coefficients, basis: t.basis }
    }
}

impl TryFrom<Stored> for Trajectory {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        if stored.schema != SCHEMA {
            return Err(format!("the schema is \"{}\", expected \"{SCHEMA}\"", stored.schema));
        }
        Self::new(stored.joints, stored.duration, stored.basis, &stored.coefficients)
            .map_err(|e| e.to_string())
    }
}
