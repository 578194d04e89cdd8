//! Log in memory: named columns of numbers.

use crate::error::{Error, Place, Result};

/// Named columns of equal length, as read. A missing value is NaN; nothing else is checked yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    file: String,
    names: Vec<String>,
    columns: Vec<Vec<f64>>,
    rows: Vec<usize>,
}

impl Log {
    /// Creates a log from its columns; rows are numbered as if the names were in row 1.
    pub fn new(file: impl Into<String>, names: Vec<String>, columns: Vec<Vec<f64>>) -> Result<Self> {
        let count = columns.first().map_or(0, Vec::len);
        Self::with_rows(&file.into(), names, columns, (2..count + 2).collect())
    }

    pub(crate) fn with_rows(
        file: &str,
        names: Vec<String>,
        columns: Vec<Vec<f64>>,
        rows: Vec<usize>,
    ) -> Result<Self> {
        let place = Place::file(file);
        if names.len() != columns.len() {
            let message = format!("{} names for {} columns", names.len(), columns.len());
            return Err(Error::read(place, message));
        }
        if let Some(k) = columns.iter().position(|c| c.len() != rows.len()) {
            let message = format!("{} rows, but the first column has {}", columns[k].len(), rows.len());
            return Err(Error::read(place.column(&names[k]), message));
        }
        check_names(&place, &names)?;
        Ok(Self { file: file.to_owned(), names, columns, rows })
    }

    /// Returns the name of the source.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the names of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns a column by its name.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.names.iter().position(|n| n == name).map(|k| self.columns[k].as_slice())
    }

    /// Returns a column by its index, from 0.
    pub fn column_at(&self, k: usize) -> &[f64] {
        &self.columns[k]
    }

    /// Returns the line of each sample in the file (the header is line 1).
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Returns only the rows in `range`.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        Self {
            file: self.file.clone(),
            names: self.names.clone(),
            columns: self.columns.iter().map(|c| c[range.clone()].to_vec()).collect(),
            rows: self.rows[range].to_vec(),
        }
    }
}

/// Rejects a header that contains a column name twice.
pub(crate) fn check_names(place: &Place, names: &[String]) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    match names.iter().find(|name| !seen.insert(*name)) {
        Some(name) => Err(Error::columns(place.clone().column(name), "the header names it twice")),
        None => Ok(()),
    }
}
