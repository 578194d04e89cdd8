//! Error type of the crate.

use std::fmt;

/// Place in a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The log's file, or what it was read from.
    pub file: String,
    /// Line of the file, the header being 1.
    pub row: Option<usize>,
    /// Name of the column.
    pub column: Option<String>,
}

impl Place {
    /// Somewhere in a file.
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
            // Names of temporary files and numbers of the system tell a user nothing.
            let text = error.to_string();
            let end = |mark| text.find(mark).unwrap_or(text.len());
            text[..end(" (os error ").min(end(" at path "))].to_owned()
        }
    }
}

/// Names may hold line breaks, messages must not.
fn one_line(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let (kept, escaped) =
                if c.is_control() { (None, Some(c.escape_default())) } else { (Some(c), None) };
            kept.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect()
}

/// Error of the crate. Every message is one line that says where, what and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read, or does not follow its format.
    #[error("{place}{}", one_line(message))]
    Read {
        /// Where.
        place: Place,
        /// Expectation.
        message: String,
    },
    /// The columns do not match the model.
    #[error("{place}{}", one_line(message))]
    Columns {
        /// Where.
        place: Place,
        /// Expectation.
        message: String,
    },
    /// The time stamps cannot be repaired.
    #[error("{place}{}", one_line(message))]
    Time {
        /// Where.
        place: Place,
        /// Cause.
        message: String,
    },
    /// The values are in other units than SI, by the look of them.
    #[error("{place}{}", one_line(message))]
    Units {
        /// Where.
        place: Place,
        /// Why, and what to do.
        message: String,
    },
    /// The values hold no information about the robot.
    #[error("{place}{}", one_line(message))]
    Content {
        /// Where.
        place: Place,
        /// Missing content.
        message: String,
    },
    /// An option that fits no log.
    #[error("{0}")]
    Option(String),
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Adds what to do about columns that do not match.
    pub(crate) fn advised(self, advice: Option<String>) -> Self {
        match (self, advice) {
            (Self::Columns { place, message }, Some(advice)) => {
                Self::Columns { place, message: format!("{message}; {advice}") }
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
shorthand!(read Read, columns Columns, time Time, units Units, content Content);

/// `; the nearest is …`, where something is near: for messages about names that are not there.
pub fn nearest_hint(name: &str, candidates: &[String]) -> String {
    inertial::nearest_hint(name, candidates.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::plain_io;

    #[test]
    fn errors_of_the_system_are_told_in_words() {
        let temporary =
            Error::new(ErrorKind::StorageFull, "No space left on device (os error 28) at path \"/x/.y\"");
        assert_eq!(plain_io(&temporary), "there is no space left on the disk");
        let other = Error::other("Input/output error (os error 5) at path \"/x/.y\"");
        assert_eq!(plain_io(&other), "Input/output error");
        assert_eq!(plain_io(&Error::from(ErrorKind::NotFound)), "there is no such file");
    }
}
