//! Errors of the jobs.

use std::fmt;

/// Reason why a job cannot be done.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The library refuses the model or the numbers.
    Library(inertial::Error),
    /// A log cannot be read or used.
    Data(inertial_data::Error),
    /// The system refuses.
    Io(std::io::Error),
    /// A text is not the JSON that was expected.
    Json(serde_json::Error),
    /// An option cannot be used as it is.
    Option {
        /// Name of the option, in the spelling of the command line without dashes.
        name: &'static str,
        /// What is wrong and what is expected.
        reason: String,
    },
    /// An input is not what the job needs.
    Input(String),
    /// An input is refused, and an option would change that.
    Hint {
        /// What is wrong.
        reason: String,
        /// Name of the option that helps.
        option: &'static str,
        /// What the option does.
        effect: &'static str,
    },
    /// The caller asked to stop.
    Interrupted,
    /// An error with its place: a file, a link, a time.
    At {
        /// Where.
        place: String,
        /// What.
        source: Box<Error>,
    },
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an [`Error::Option`].
    pub fn option(name: &'static str, reason: impl Into<String>) -> Self {
        Self::Option { name, reason: reason.into() }
    }

    /// The message, with options spelled as the caller's users know them: `--prior-weight`, `prior_weight=`.
    pub fn message(&self, spell: &dyn Fn(&str) -> String) -> String {
        match self {
            Self::Library(error) => error.to_string(),
            Self::Data(error) => error.to_string(),
            Self::Io(error) => inertial_data::plain_io(error),
            Self::Json(error) => error.to_string(),
            Self::Option { name, reason } => format!("{}: {reason}", spell(name)),
            Self::Input(text) => text.clone(),
            Self::Hint { reason, option, effect } => format!("{reason}; {} {effect}", spell(option)),
            Self::Interrupted => "interrupted".into(),
            Self::At { place, source } => {
                let text = source.message(spell);
                // The cause may name the place itself.
                if text.starts_with(&format!("{place}: ")) { text } else { format!("{place}: {text}") }
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(&str::to_owned))
    }
}

impl std::error::Error for Error {}

impl From<inertial::Error> for Error {
    fn from(error: inertial::Error) -> Self {
        Self::Library(error)
    }
}

impl From<inertial_data::Error> for Error {
    fn from(error: inertial_data::Error) -> Self {
        Self::Data(error)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

/// Names the place of an error.
pub trait Located<T> {
    /// Adds the place where it happened.
    fn at(self, place: impl fmt::Display) -> Result<T>;
}

impl<T, E: Into<Error>> Located<T> for Result<T, E> {
    fn at(self, place: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Error::At { place: place.to_string(), source: Box::new(error.into()) })
    }
}

/// Returns an [`Error::Input`] unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::Error::Input(format!($($message)+)));
        }
    };
}
pub(crate) use ensure;

/// Returns an [`Error::Option`] unless the condition holds.
macro_rules! ensure_option {
    ($condition:expr, $name:literal, $($message:tt)+) => {
        if !$condition {
            return Err($crate::Error::Option { name: $name, reason: format!($($message)+) });
        }
    };
}
pub(crate) use ensure_option;

/// Returns an [`Error::Input`].
macro_rules! bail {
    ($($message:tt)+) => {
        return Err($crate::Error::Input(format!($($message)+)))
    };
}
pub(crate) use bail;
