//! Rows of a log as they come from a file.

use crate::{Error, Log, Place, Result};

/// Consecutive rows of a log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Numbers per row.
    pub width: usize,
    /// One row after the other; a gap is NaN.
    pub values: Vec<f64>,
    /// For each row, where it stands in the file: the line of a text (the header being 1), else the number of the record.
    pub lines: Vec<usize>,
}

impl Rows {
    /// How many.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// A log that is read once, from its start to its end, in pieces of bounded size; perhaps by another thread than the one that
/// works on the rows.
pub trait Reader: Send {
    /// What it reads from.
    fn file(&self) -> &str;

    /// Names of all columns.
    fn names(&self) -> &[String];

    /// From now on, rows hold these columns (by number) in this order. Columns left out need not be numbers.
    fn select(&mut self, columns: &[usize]);

    /// The rows that come next, at least one; none at the end.
    fn next_rows(&mut self) -> Result<Option<Rows>>;

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

    fn select(&mut self, columns: &[usize]) {
        (**self).select(columns);
    }

    fn next_rows(&mut self) -> Result<Option<Rows>> {
        (**self).next_rows()
    }

    fn share(&self) -> Option<f64> {
        (**self).share()
    }
}

/// Names a log cannot have: none, or one twice.
pub(crate) fn check_names(place: &Place, names: &[String]) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    match names.iter().find(|name| !seen.insert(*name)) {
        Some(name) => Err(Error::columns(place.clone().column(name), "the header names it twice")),
        None => Ok(()),
    }
}

/// Rows handed out at once from a log in memory.
const BLOCK: usize = 8192;

/// Reads a log that is in memory already.
pub(crate) struct LogReader<'a> {
    log: &'a Log,
    columns: Vec<usize>,
    next: usize,
}

impl<'a> LogReader<'a> {
    pub fn new(log: &'a Log) -> Self {
        Self { log, columns: (0..log.names().len()).collect(), next: 0 }
    }
}

impl Reader for LogReader<'_> {
    fn file(&self) -> &str {
        self.log.file()
    }

    fn names(&self) -> &[String] {
        self.log.names()
    }

    fn select(&mut self, columns: &[usize]) {
        self.columns = columns.to_vec();
    }

    fn next_rows(&mut self) -> Result<Option<Rows>> {
        let range = self.next..(self.next + BLOCK).min(self.log.len());
        if range.is_empty() {
            return Ok(None);
        }
        self.next = range.end;
        let (log, columns) = (self.log, &self.columns);
        let row = |i: usize| columns.iter().map(move |&c| log.column_at(c)[i]);
        Ok(Some(Rows {
            width: self.columns.len(),
            values: range.clone().flat_map(row).collect(),
            lines: self.log.rows()[range].to_vec(),
        }))
    }
}
