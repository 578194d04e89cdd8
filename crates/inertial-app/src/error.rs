//! Error type of the jobs.

use std::borrow::Cow;
use std::fmt;

use inertial_data::AbsentColumn;

/// Error of a job.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Error of the library, caused by the model or the data.
    Library(inertial::Error),
    /// Log that cannot be read or used.
    Data(inertial_data::Error),
    /// Error of the operating system.
    Io(std::io::Error),
    /// Text that is not valid JSON, or not of the expected form.
    Json(serde_json::Error),
    /// Invalid option.
    Option {
        /// Name of the option, in the spelling of the command line without dashes.
        name: &'static str,
        /// Description of the error and of the expected value.
        reason: String,
    },
    /// Input that is unsuitable for the job.
    Input(String),
    /// Rejected input, with an option that would allow it.
    Hint {
        /// Description of the error.
        reason: String,
        /// Name of the option that helps.
        option: &'static str,
        /// Effect of the option.
        effect: Cow<'static, str>,
    },
    /// Interruption by the caller.
    Interrupted,
    /// Error with its location: a file, a link, a time.
    At {
        /// Location.
        place: String,
        /// Underlying error.
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

    /// Returns the message, with options spelled as in the interface of the caller: `--prior-weight`, `prior_weight=`.
    /// It is one line: names of inputs may contain line breaks and other control characters.
    pub fn message(&self, spell: &dyn Fn(&str) -> String) -> String {
        self.text(spell).replace(char::is_control, " ")
    }

    fn text(&self, spell: &dyn Fn(&str) -> String) -> String {
        match self {
            Self::Library(error) => error.to_string(),
            Self::Data(error @ inertial_data::Error::Columns { absent: Some(AbsentColumn::Time), .. }) => {
                format!("{error}; {} sets the sampling rate (Hz) of a log without times", spell("rate"))
            }
            Self::Data(
                error @ inertial_data::Error::Columns { absent: Some(AbsentColumn::JointColumn), .. },
            ) => {
                format!(
                    "{error}; {} takes a map of the names, which the command 'columns' prints",
                    spell("columns")
                )
            }
            Self::Data(error @ inertial_data::Error::Units { .. }) => format!(
                "{error}; {} takes a map with units, {} accepts the values as they are",
                spell("columns"),
                spell("trust-units")
            ),
            Self::Data(error) => error.to_string(),
            Self::Io(error) => inertial_data::plain_io(error),
            Self::Json(error) => error.to_string(),
            Self::Option { name, reason } => format!("{}: {reason}", spell(name)),
            Self::Input(text) => text.clone(),
            Self::Hint { reason, option, effect } => format!("{reason}; {} {effect}", spell(option)),
            Self::Interrupted => "interrupted".into(),
            Self::At { place, source } => {
                let text = source.text(spell);
                // The message of the source may already contain the location.
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

/// Adds a location to errors.
pub trait Located<T> {
    /// Adds the location of an error.
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
