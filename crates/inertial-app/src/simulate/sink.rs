//! Destinations of simulated samples.

use std::io::Write;

use crate::Result;

/// Destination of rows of named columns.
pub trait RowSink {
    /// Receives the names of the columns, before any row.
    fn names(&mut self, names: &[String]) -> Result<()>;

    /// Receives a row.
    fn row(&mut self, row: &[f64]) -> Result<()>;
}

/// Writer of CSV, with the shortest digits that reproduce each number exactly.
pub struct Csv<W> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> Csv<W> {
    /// Creates a writer.
    pub fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }

    /// Returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> RowSink for Csv<W> {
    fn names(&mut self, names: &[String]) -> Result<()> {
        let header: Vec<String> = names.iter().map(|n| field(n)).collect();
        Ok(writeln!(self.out, "{}", header.join(","))?)
    }

    fn row(&mut self, row: &[f64]) -> Result<()> {
        self.line.clear();
        for (k, x) in row.iter().enumerate() {
            if k > 0 {
                self.line.push(b',');
            }
            write!(self.line, "{x:?}")?;
        }
        self.line.push(b'\n');
        Ok(self.out.write_all(&self.line)?)
    }
}

/// Returns a CSV field, quoted if necessary.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
