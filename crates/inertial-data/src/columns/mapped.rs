//! Log with renamed columns and converted units.

use crate::joint_names::JointNames;
use crate::reader::{LogRows, Reader};
use crate::{Place, Result};

/// Log with the standard names and units.
pub struct Mapped<R> {
    reader: R,
    names: Vec<String>,
    /// Factor and offset of every column.
    linear: Vec<(f64, f64)>,
    /// Columns of seconds and nanoseconds that form the time together.
    nanoseconds: Option<[usize; 2]>,
    /// Time column whose unit is inferred from its first value.
    stamps: Option<usize>,
    notes: Vec<String>,
    advice: Option<String>,
    /// Names of joints for columns that are still numbered.
    listed: Vec<JointNames>,
    selected: Vec<usize>,
    /// Whether the nanoseconds are read although they were not selected.
    added: bool,
}

/// Names and units of all columns of a log.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Renaming {
    pub names: Vec<String>,
    pub linear: Vec<(f64, f64)>,
    pub nanoseconds: Option<[usize; 2]>,
    pub stamps: Option<usize>,
    pub notes: Vec<String>,
    pub advice: Option<String>,
    pub listed: Vec<JointNames>,
}

/// Minimum stamps since 1970 in nanoseconds, microseconds and milliseconds (1973), and the size of the unit in seconds. Stamps in
/// seconds reach these values only after thousands of years.
const SINCE_1970: [(f64, f64, &str); 3] =
    [(1e17, 1e-9, "nanoseconds"), (1e14, 1e-6, "microseconds"), (1e11, 1e-3, "milliseconds")];

impl<R: Reader> Mapped<R> {
    pub(crate) fn new(reader: R, renaming: Renaming) -> Self {
        let Renaming { names, linear, nanoseconds, stamps, notes, advice, listed } = renaming;
        let selected = (0..names.len()).collect();
        Self { reader, names, linear, nanoseconds, stamps, notes, advice, listed, selected, added: false }
    }

    /// Infers the unit of time from the first stamp.
    fn infer_time_unit(&mut self, rows: &LogRows) {
        let Some(column) = self.stamps else { return };
        let Some(slot) = self.selected.iter().position(|&c| c == column) else { return };
        let first = rows.values[slot..].iter().step_by(rows.width).find(|t| !t.is_nan());
        let Some(first) = first.map(|t| t.abs()) else { return };
        self.stamps = None;
        if let Some((_, size, unit)) = SINCE_1970.iter().find(|(least, ..)| first >= *least) {
            self.linear[column].0 = *size;
            self.notes.push(format!("t: time is in {unit} since 1970, by its size"));
        }
    }

    /// Adds nanoseconds to the seconds, and removes their column if it was not selected.
    fn join_stamps(&self, rows: &mut LogRows) {
        let Some([seconds, nanoseconds]) = self.nanoseconds else { return };
        let slot = |column: usize| self.selected.iter().position(|&c| c == column);
        let Some(to) = slot(seconds) else { return };
        let from = if self.added { rows.width - 1 } else { slot(nanoseconds).unwrap_or(to) };
        for row in rows.values.chunks_exact_mut(rows.width) {
            row[to] += 1e-9 * row[from];
        }
        if self.added {
            let (old, new) = (rows.width, rows.width - 1);
            for row in 0..rows.len() {
                rows.values.copy_within(row * old..row * old + new, row * new);
            }
            rows.values.truncate(rows.len() * new);
            rows.width = new;
        }
    }
}

impl<R: Reader> Reader for Mapped<R> {
    fn file(&self) -> &str {
        self.reader.file()
    }

    fn names(&self) -> &[String] {
        &self.names
    }

    fn joint_names(&self) -> Vec<JointNames> {
        self.listed.clone()
    }

    fn notes(&self) -> Vec<String> {
        [self.reader.notes(), self.notes.clone()].concat()
    }

    fn advice(&self) -> Option<String> {
        match (self.advice.clone(), self.reader.advice()) {
            (Some(own), Some(inner)) => Some(format!("{own}; {inner}")),
            (own, inner) => own.or(inner),
        }
    }

    fn select(&mut self, columns: &[usize]) {
        self.selected = columns.to_vec();
        let mut inner = columns.to_vec();
        self.added = false;
        if let Some([seconds, nanoseconds]) = self.nanoseconds
            && columns.contains(&seconds)
            && !columns.contains(&nanoseconds)
        {
            inner.push(nanoseconds);
            self.added = true;
        }
        self.reader.select(&inner);
    }

    fn next_rows(&mut self) -> Result<Option<LogRows>> {
        let Some(mut rows) = self.reader.next_rows()? else { return Ok(None) };
        self.infer_time_unit(&rows);
        for (slot, &column) in self.selected.iter().enumerate() {
            let (factor, offset) = self.linear[column];
            if (factor, offset) != (1.0, 0.0) {
                rows.values[slot..].iter_mut().step_by(rows.width).for_each(|x| *x = factor * *x + offset);
            }
        }
        self.join_stamps(&mut rows);
        Ok(Some(rows))
    }

    fn fraction_read(&self) -> Option<f64> {
        self.reader.fraction_read()
    }

    fn inserted_time(&self) -> f64 {
        self.reader.inserted_time()
    }
}

impl<R: Reader> Mapped<R> {
    /// Rejects names that are used for two columns.
    pub(crate) fn checked(self) -> Result<Self> {
        crate::log::check_names(&Place::file(self.reader.file()), &self.names)?;
        Ok(self)
    }
}
