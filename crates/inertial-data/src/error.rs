//! Error type of the crate.

use std::fmt;

/// Location in a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// File or other source of the log.
    pub file: String,
    /// Line of the file; the header is line 1.
    pub row: Option<usize>,
    /// Name of the column.
    pub column: Option<String>,
}

impl Place {
    /// Creates a location in a file without row and column.
    pub fn file(file: impl Into<String>) -> Self {
        Self { file: file.into(), row: None, column: None }
    }

    /// Adds the row.
    pub fn row(mut self, row: usize) -> Self {
        self.row = Some(row);
        self
    }

    /// Adds the column.
    pub fn column(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into());
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", one_line(&self.file))?;
        if let Some(row) = self.row {
            write!(f, "row {row}: ")?;
        }
        if let Some(column) = &self.column {
            write!(f, "column {}: ", one_line(column))?;
        }
        Ok(())
    }
}

/// Returns the message of an I/O error, without its number.
pub fn plain_io(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".into(),
        ErrorKind::PermissionDenied => "permission denied".into(),
        ErrorKind::IsADirectory => "it is a folder, not a file".into(),
        ErrorKind::StorageFull => "there is no space left on the disk".into(),
        _ => {
            // Names of temporary files and system error numbers are not useful to the user.
            let text = error.to_string();
            let end = |mark| text.find(mark).unwrap_or(text.len());
            text[..end(" (os error ").min(end(" at path "))].to_owned()
        }
    }
}

/// Escapes line breaks in names, so that messages stay on one line.
fn one_line(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let (kept, escaped) =
                if c.is_control() { (None, Some(c.escape_default())) } else { (Some(c), None) };
            kept.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect()
}

/// Column that a log lacks and that an option can replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbsentColumn {
    /// Times: the sampling rate can be given.
    Time,
    /// Position of a joint in a log that names its joints: the joint can be locked.
    JointPosition,
    /// Another position or torque of a joint: a column map can assign a column with another name.
    JointColumn,
}

/// Error of the crate. Every message is one line with the location, the problem and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Unreadable file, or file that does not follow its format.
    #[error("{place}{}", one_line(message))]
    Read {
        /// Location of the error.
        place: Place,
        /// Description of the problem and the expectation.
        message: String,
    },
    /// Columns that do not match the model.
    #[error("{place}{}", one_line(message))]
    Columns {
        /// Location of the error.
        place: Place,
        /// Description of the problem and the expectation.
        message: String,
        /// Kind of the absent column, if an option can replace it.
        absent: Option<AbsentColumn>,
    },
    /// Time stamps that cannot be repaired.
    #[error("{place}{}", one_line(message))]
    Time {
        /// Location of the error.
        place: Place,
        /// Description of the cause.
        message: String,
    },
    /// Values that appear to be in units other than SI.
    #[error("{place}{}", one_line(message))]
    Units {
        /// Location of the error.
        place: Place,
        /// Description of the reason and the remedy.
        message: String,
    },
    /// Values without information about the robot.
    #[error("{place}{}", one_line(message))]
    Content {
        /// Location of the error.
        place: Place,
        /// Description of the missing content.
        message: String,
    },
    /// Option that is invalid for any log.
    #[error("{0}")]
    Option(String),
}

/// Result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn columns(place: Place, message: impl Into<String>) -> Self {
        Self::Columns { place, message: message.into(), absent: None }
    }

    /// Creates the error about an absent column that an option can replace.
    pub(crate) fn absent(place: Place, message: impl Into<String>, column: AbsentColumn) -> Self {
        Self::Columns { place, message: message.into(), absent: Some(column) }
    }

    /// Adds advice for columns that do not match.
    pub(crate) fn advised(self, advice: Option<String>) -> Self {
        match (self, advice) {
            (Self::Columns { place, message, absent }, Some(advice)) => {
                Self::Columns { place, message: format!("{message}; {advice}"), absent }
            }
            (other, _) => other,
        }
    }
}

macro_rules! shorthand {
    ($($name:ident $variant:ident),*) => {
        impl Error {
            $(pub(crate) fn $name(place: Place, message: impl Into<String>) -> Self {
                Self::$variant { place, message: message.into() }
            })*
        }
    };
}
shorthand!(read Read, time Time, units Units, content Content);

/// Returns `; the nearest is …` if a candidate is similar, for messages about unknown names.
pub fn nearest_hint(name: &str, candidates: &[String]) -> String {
    inertial::nearest_hint(name, candidates.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::plain_io;

    #[test]
    fn system_errors_are_described_in_words() {
        let temporary =
            Error::new(ErrorKind::StorageFull, "No space left on device (os error 28) at path \"/x/.y\"");
        assert_eq!(plain_io(&temporary), "there is no space left on the disk");
        let other = Error::other("Input/output error (os error 5) at path \"/x/.y\"");
        assert_eq!(plain_io(&other), "Input/output error");
        assert_eq!(plain_io(&Error::from(ErrorKind::NotFound)), "there is no such file");
    }
}
