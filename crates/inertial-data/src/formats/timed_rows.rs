//! Times of logs that have none, from a known sampling rate.

use crate::Result;
use crate::joint_names::JointNames;
use crate::reader::{LogRows, Reader};

/// Reader that adds a time column `t` to a log without times: the rows have a constant rate.
///
/// ```
/// use inertial_data::{CsvReader, Log, TimedRows};
/// let reader = CsvReader::new("q1,tau1\n1,2\n3,4\n".as_bytes(), "log.csv")?;
/// let log = Log::collect(TimedRows::new(reader, 250.0))?;
/// assert_eq!(log.names(), ["q1", "tau1", "t"]);
/// assert_eq!(log.column("t"), Some(&[0.0, 0.004][..]));
/// # Ok::<(), inertial_data::Error>(())
/// ```
pub struct TimedRows<R> {
    inner: R,
    rate_hz: f64,
    names: Vec<String>,
    columns: Vec<usize>,
    next: usize,
}

impl<R: Reader> TimedRows<R> {
    /// Adds times to the rows of a reader; the first is zero.
    pub fn new(inner: R, rate_hz: f64) -> Self {
        let mut names = inner.names().to_vec();
        names.push("t".to_owned());
        Self { inner, rate_hz, columns: (0..names.len()).collect(), names, next: 0 }
    }
}

impl<R: Reader> Reader for TimedRows<R> {
    fn file(&self) -> &str {
        self.inner.file()
    }

    fn names(&self) -> &[String] {
        &self.names
    }

    fn is_named(&self) -> bool {
        self.inner.is_named()
    }

    fn is_number(&self, column: usize) -> bool {
        column == self.names.len() - 1 || self.inner.is_number(column)
    }

    fn joint_names(&self) -> Vec<JointNames> {
        self.inner.joint_names()
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes()
    }

    fn advice(&self) -> Option<String> {
        self.inner.advice()
    }

    fn select(&mut self, columns: &[usize]) {
        let own = self.names.len() - 1;
        self.columns = columns.to_vec();
        self.inner.select(&columns.iter().copied().filter(|c| *c != own).collect::<Vec<_>>());
    }

    fn next_rows(&mut self) -> Result<Option<LogRows>> {
        let own = self.names.len() - 1;
        let Some(rows) = self.inner.next_rows()? else { return Ok(None) };
        let mut values = Vec::with_capacity(rows.len() * self.columns.len());
        let mut taken = rows.values.iter();
        for _ in 0..rows.len() {
            let time = self.next as f64 / self.rate_hz;
            self.next += 1;
            let value = |column: &usize| if *column == own { Some(time) } else { taken.next().copied() };
            values.extend(self.columns.iter().map_while(value));
        }
        Ok(Some(LogRows { width: self.columns.len(), values, lines: rows.lines }))
    }

    fn fraction_read(&self) -> Option<f64> {
        self.inner.fraction_read()
    }

    fn inserted_time(&self) -> f64 {
        self.inner.inserted_time()
    }
}
