//! Error type of the library.

use std::fmt::{self, Write as _};

/// Place in a model text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Line in the text, from 1.
    pub line: Option<u32>,
    /// Element concerned: `<joint name="elbow">` or `bodies[3].joint`.
    pub element: String,
}

impl Place {
    /// Creates a place given by its element only.
    pub fn element(element: impl Into<String>) -> Self {
        Self { line: None, element: element.into() }
    }

    /// Creates a place with a line number.
    pub fn line(line: u32, element: impl Into<String>) -> Self {
        Self { line: Some(line), element: element.into() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.element.is_empty()) {
            (Some(line), true) => write!(f, "line {line}: "),
            (Some(line), false) => write!(f, "line {line}: {}: ", OneLine(&self.element)),
            (None, true) => Ok(()),
            (None, false) => write!(f, "{}: ", OneLine(&self.element)),
        }
    }
}

/// Text with control characters escaped: names may contain line breaks, messages must not.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            c if c.is_control() => write!(f, "{}", c.escape_default()),
            c => f.write_char(c),
        })
    }
}

/// Error of the library. Programs match the variant; the message is one line that states what was expected.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text does not follow its format.
    #[error("{place}{}", OneLine(message))]
    Syntax {
        /// Location in the text.
        place: Place,
        /// Expected content.
        message: String,
    },
    /// The text is well formed but describes no mechanism.
    #[error("{place}{}", OneLine(message))]
    Model {
        /// Location in the text.
        place: Place,
        /// Problem and remedy.
        message: String,
    },
    /// A feature of the format that changes the dynamics and is not supported.
    #[error("{place}{} is not supported", OneLine(feature))]
    Unsupported {
        /// Location in the text.
        place: Place,
        /// Feature, as named by the format.
        feature: String,
    },
    /// The loops cannot be closed.
    #[error("loop {}: {} (residual {residual:.3e})", OneLine(name), OneLine(message))]
    Closure {
        /// Loop with the largest closure error.
        name: String,
        /// Residual (m and rad).
        residual: f64,
        /// Cause and remedy.
        message: String,
    },
    /// An argument of the wrong size.
    #[error("{what} has {found} entries, expected {expected}")]
    Dimension {
        /// Argument.
        what: &'static str,
        /// Expected number of entries.
        expected: usize,
        /// Number of entries found.
        found: usize,
    },
    /// A number outside its range.
    #[error("{what} is {}, expected {expected}", number_text(*value))]
    InvalidValue {
        /// Quantity.
        what: String,
        /// Value given.
        value: f64,
        /// Expected range.
        expected: String,
    },
    /// An option or argument that cannot be used.
    #[error("{0}")]
    InvalidOption(String),
    /// Options that exclude each other.
    #[error("{0}")]
    Incompatible(String),
    /// A name or number of a link, joint, coordinate or column that does not exist.
    #[error("{0}")]
    UnknownName(String),
    /// A method that does not apply to this mechanism, these sensors or these options.
    #[error("{0}")]
    NotApplicable(String),
    /// A summary that was made for another model or other joint terms.
    #[error("{0}")]
    SummaryMismatch(String),
    /// Numbers that are not finite.
    #[error("{0}")]
    NotFinite(String),
    /// Fewer measured forces than unknowns.
    #[error("{found} usable forces are fewer than the {unknowns} unknowns")]
    TooFewForces {
        /// Number of usable measured forces.
        found: f64,
        /// Number of unknowns.
        unknowns: usize,
    },
    /// Data or sensors that do not determine the requested quantity.
    #[error("{0}")]
    Unobservable(String),
    /// Limits, bounds or a starting point without a feasible solution.
    #[error("{0}")]
    Infeasible(String),
    /// A singular configuration, or a mass matrix that is not positive definite.
    #[error("{0}")]
    Singular(String),
    /// A numerical computation that failed.
    #[error("{0}")]
    Numeric(String),
}

impl Error {
    /// Shorthand for [`Error::Model`].
    pub fn model(place: Place, message: impl Into<String>) -> Self {
        Self::Model { place, message: message.into() }
    }

    /// Shorthand for [`Error::Syntax`].
    pub fn syntax(place: Place, message: impl Into<String>) -> Self {
        Self::Syntax { place, message: message.into() }
    }

    /// Shorthand for [`Error::InvalidValue`].
    pub fn invalid_value(what: impl Into<String>, value: f64, expected: impl Into<String>) -> Self {
        Self::InvalidValue { what: what.into(), value, expected: expected.into() }
    }

    /// Shorthand for [`Error::Unsupported`].
    pub fn unsupported(place: Place, feature: impl Into<String>) -> Self {
        Self::Unsupported { place, feature: feature.into() }
    }
}

impl From<inertial_dense::Error> for Error {
    fn from(error: inertial_dense::Error) -> Self {
        match error {
            inertial_dense::Error::Dimension { what, expected, found } => {
                Self::Dimension { what, expected, found }
            }
            inertial_dense::Error::Numeric(message) => Self::Numeric(message),
        }
    }
}

/// Result type of the library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns `; the nearest is …` if a candidate is similar to the unknown name (case is ignored), otherwise an empty
/// string.
pub fn nearest_hint<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let lower = name.to_lowercase();
    let distance = |candidate: &str| strsim::levenshtein(&lower, &candidate.to_lowercase());
    let best = candidates.into_iter().map(|c| (distance(c), c)).min_by_key(|(d, _)| *d);
    match best {
        Some((d, nearest)) if d * 2 <= name.chars().count() => format!("; the nearest is {nearest}"),
        _ => String::new(),
    }
}

/// Returns the text of a number, with an exponent if all its digits would be zeros or noise.
fn number_text(x: f64) -> String {
    if x.abs() < 1e16 { x.to_string() } else { format!("{x:e}") }
}
