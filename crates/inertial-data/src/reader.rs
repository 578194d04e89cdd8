//! Trait of log readers and the rows they return.

use crate::Result;
use crate::joint_names::JointNames;

/// Consecutive rows of a log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogRows {
    /// Number of values per row.
    pub width: usize,
    /// Values, one row after the other; a missing value is NaN.
    pub values: Vec<f64>,
    /// Location of each row in the file: the line of a text (the header is line 1), otherwise the number of the record.
    pub lines: Vec<usize>,
}

impl LogRows {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Selection that a column needs to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Selection {
    /// No selection: the column is read by default.
    Automatic,
    /// Column map that names it: a field of another topic of a bag.
    Map,
    /// Topic of joint states that is not read by default.
    Topic,
}

/// Log that is read once, from start to end, in pieces of bounded size; possibly by another thread than the one that
/// processes the rows.
pub trait Reader: Send {
    /// Returns the name of the source.
    fn file(&self) -> &str;

    /// Returns the names of all columns.
    fn names(&self) -> &[String];

    /// Returns whether the file names its columns; otherwise they are numbered.
    fn is_named(&self) -> bool {
        true
    }

    /// Returns whether a column contains numbers, as far as is known before its rows are read.
    fn is_number(&self, column: usize) -> bool {
        let _ = column;
        true
    }

    /// Returns how a column is selected. Columns that need no selection come first, those that need another topic last.
    fn selection(&self, column: usize) -> Selection {
        let _ = column;
        Selection::Automatic
    }

    /// Returns the names of joints that the log lists beside numbered columns, as far as they are known before its rows are read.
    fn joint_names(&self) -> Vec<JointNames> {
        Vec::new()
    }

    /// Returns notes on assumptions about the columns, after rows were read.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns advice for the case that a column is missing.
    fn advice(&self) -> Option<String> {
        None
    }

    /// Selects the columns (by number, in this order) of the following rows. Columns that are not selected need not be numbers.
    fn select(&mut self, columns: &[usize]);

    /// Returns the next rows, at least one; `None` at the end.
    fn next_rows(&mut self) -> Result<Option<LogRows>>;

    /// Returns the fraction of the file that was read; `None` if unknown, as for a pipe.
    fn fraction_read(&self) -> Option<f64> {
        None
    }

    /// Returns the total time (s) that the reader inserted between the parts of the log that were read.
    fn inserted_time(&self) -> f64 {
        0.0
    }
}

/// Implements [`Reader`] for a pointer to a reader.
macro_rules! forward_reader {
    ($pointer:ty) => {
        impl<R: Reader + ?Sized> Reader for $pointer {
            fn file(&self) -> &str {
                (**self).file()
            }

            fn names(&self) -> &[String] {
                (**self).names()
            }

            fn is_named(&self) -> bool {
                (**self).is_named()
            }

            fn is_number(&self, column: usize) -> bool {
                (**self).is_number(column)
            }

            fn selection(&self, column: usize) -> Selection {
                (**self).selection(column)
            }

            fn joint_names(&self) -> Vec<JointNames> {
                (**self).joint_names()
            }

            fn notes(&self) -> Vec<String> {
                (**self).notes()
            }

            fn advice(&self) -> Option<String> {
                (**self).advice()
            }

            fn select(&mut self, columns: &[usize]) {
                (**self).select(columns);
            }

            fn next_rows(&mut self) -> Result<Option<LogRows>> {
                (**self).next_rows()
            }

            fn fraction_read(&self) -> Option<f64> {
                (**self).fraction_read()
            }

            fn inserted_time(&self) -> f64 {
                (**self).inserted_time()
            }
        }
    };
}

forward_reader!(Box<R>);
forward_reader!(&mut R);
