//! Trait of log readers and the rows they return.

use crate::Result;

/// Consecutive rows of a log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogRows {
    /// Numbers per row.
    pub width: usize,
    /// One row after the other; a gap is NaN.
    pub values: Vec<f64>,
    /// Place of each row in the file: the line of a text (the header being 1), else the number of the record.
    pub lines: Vec<usize>,
}

impl LogRows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// A log that is read once, from its start to its end, in pieces of bounded size; perhaps by another thread than the one that
/// works on the rows.
pub trait Reader: Send {
    /// Name of the source.
    fn file(&self) -> &str;

    /// Names of all columns.
    fn names(&self) -> &[String];

    /// Whether the file names its columns; where it does not, they have numbers.
    fn is_named(&self) -> bool {
        true
    }

    /// Whether a column holds numbers, as far as is known before its rows are read.
    fn is_number(&self, column: usize) -> bool {
        let _ = column;
        true
    }

    /// What was assumed about the columns, once rows were read.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// What to do where a column is missed.
    fn advice(&self) -> Option<String> {
        None
    }

    /// From now on, rows hold these columns (by number) in this order. Columns left out need not be numbers.
    fn select(&mut self, columns: &[usize]);

    /// The rows that come next, at least one; none at the end.
    fn next_rows(&mut self) -> Result<Option<LogRows>>;

    /// The part of the file that was read, 0 to 1; none where that is not known, as of a pipe.
    fn share(&self) -> Option<f64> {
        None
    }
}

impl<R: Reader + ?Sized> Reader for Box<R> {
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

    fn share(&self) -> Option<f64> {
        (**self).share()
    }
}
