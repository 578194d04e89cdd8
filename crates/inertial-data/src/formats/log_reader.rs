//! Reader of a log in memory, and reading of whole files into memory.

use std::path::Path;

use crate::formats::open::{Source, open};
use crate::reader::{LogRows, Reader};
use crate::{Error, Log, Place, Result};

impl Log {
    /// Reads a whole file; see [`open`].
    pub fn read(path: &Path) -> Result<Self> {
        Self::collect(open(path, &Source::default())?)
    }

    /// Reads the remaining rows of a reader.
    pub fn collect(mut reader: impl Reader) -> Result<Self> {
        let names = reader.names().to_vec();
        let mut columns = vec![Vec::new(); names.len()];
        let mut rows = Vec::new();
        while let Some(more) = reader.next_rows()? {
            for row in more.values.chunks_exact(names.len()) {
                columns.iter_mut().zip(row).for_each(|(column, x)| column.push(*x));
            }
            rows.extend(more.lines);
        }
        if rows.is_empty() {
            return Err(Error::content(Place::file(reader.file()), "has a header but no rows"));
        }
        Self::with_rows(reader.file(), names, columns, rows)
    }
}

/// Number of rows returned at once from a log in memory.
const BLOCK: usize = 8192;

/// Reader of a log in memory.
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

    fn next_rows(&mut self) -> Result<Option<LogRows>> {
        let range = self.next..(self.next + BLOCK).min(self.log.len());
        if range.is_empty() {
            return Ok(None);
        }
        self.next = range.end;
        let (log, columns) = (self.log, &self.columns);
        let row = |i: usize| columns.iter().map(move |&c| log.column_at(c)[i]);
        Ok(Some(LogRows {
            width: self.columns.len(),
            values: range.clone().flat_map(row).collect(),
            lines: self.log.rows()[range].to_vec(),
        }))
    }
}
