//! Array of numbers stored in a file.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use super::{length, read_at};
use crate::joint_names::JointNames;

/// Result with the cause as text.
pub(crate) type Stored<T> = Result<T, String>;

/// Storage type of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
}

impl Number {
    /// Returns the number of bytes of one number.
    pub fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }

    fn value(self, bytes: &[u8], big: bool) -> f64 {
        fn word<const N: usize>(bytes: &[u8], big: bool) -> [u8; N] {
            let mut out = [0; N];
            out.copy_from_slice(&bytes[..N]);
            if big {
                out.reverse();
            }
            out
        }
        match self {
            Self::I8 => f64::from(i8::from_le_bytes(word(bytes, big))),
            Self::U8 => f64::from(bytes[0]),
            Self::I16 => f64::from(i16::from_le_bytes(word(bytes, big))),
            Self::U16 => f64::from(u16::from_le_bytes(word(bytes, big))),
            Self::F32 => f64::from(f32::from_le_bytes(word(bytes, big))),
            Self::I32 => f64::from(i32::from_le_bytes(word(bytes, big))),
            Self::U32 => f64::from(u32::from_le_bytes(word(bytes, big))),
            Self::F64 => f64::from_le_bytes(word(bytes, big)),
            Self::I64 => i64::from_le_bytes(word(bytes, big)) as f64,
            Self::U64 => u64::from_le_bytes(word(bytes, big)) as f64,
        }
    }
}

/// Array of one or two dimensions: number `(row, column)` is at offset `start + row · row_step + column · column_step`.
#[derive(Debug, Clone)]
pub(crate) struct Array {
    pub name: String,
    pub rows: usize,
    pub columns: usize,
    source: Arc<File>,
    start: u64,
    row_step: u64,
    column_step: u64,
    number: Number,
    big: bool,
    /// Size of one unit if the numbers are times.
    factor: f64,
    /// Names of the joints of the columns, if they are stored with the array.
    pub joints: Option<JointNames>,
}

/// Location and type of the numbers of an array.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub start: u64,
    pub number: Number,
    pub big: bool,
    /// Whether columns are stored one after the other.
    pub by_column: bool,
    /// Number of bytes from one row to the next if a row is a record with other fields.
    pub record: Option<u64>,
    pub factor: f64,
}

impl Array {
    /// Describes an array; rejects one that is larger than its file.
    pub fn new(name: &str, [rows, columns]: [usize; 2], source: &Arc<File>, layout: Layout) -> Stored<Self> {
        let Layout { start, number, big, by_column, record, factor } = layout;
        let size = number.size() as u64;
        let (row_step, column_step) = match record {
            Some(record) => (record, size),
            None if by_column => (size, size.saturating_mul(rows as u64)),
            None => (size.saturating_mul(columns as u64), size),
        };
        let end = if rows == 0 || columns == 0 {
            start
        } else {
            let last = (rows as u64 - 1).saturating_mul(row_step);
            start
                .saturating_add(last)
                .saturating_add((columns as u64 - 1).saturating_mul(column_step))
                .saturating_add(size)
        };
        if end > length(source)? {
            return Err(format!("array {name}: it ends early"));
        }
        let source = Arc::clone(source);
        Ok(Self {
            name: name.to_owned(),
            rows,
            columns,
            source,
            start,
            row_step,
            column_step,
            number,
            big,
            factor,
            joints: None,
        })
    }

    /// Returns whether the array has one dimension.
    pub fn is_vector(&self) -> bool {
        self.rows == 1 || self.columns == 1
    }

    /// Returns the number of bytes read for one row.
    pub fn row_bytes(&self) -> u64 {
        if self.column_step <= self.row_step { self.row_step } else { self.number.size() as u64 }
    }

    /// Swaps rows and columns.
    pub fn transpose(&mut self) {
        std::mem::swap(&mut self.rows, &mut self.columns);
        std::mem::swap(&mut self.row_step, &mut self.column_step);
    }

    /// Reads some rows of the `wanted` columns, each with its slot in the rows of `out`.
    pub fn read(
        &self,
        rows: Range<usize>,
        wanted: &[(usize, usize)],
        width: usize,
        bytes: &mut Vec<u8>,
        out: &mut [f64],
    ) -> Stored<()> {
        let (size, count) = (self.number.size(), rows.len());
        let first = self.start + rows.start as u64 * self.row_step;
        let column_at = |column: usize| column as u64 * self.column_step;
        // Either rows or columns are contiguous.
        let together = self.column_step <= self.row_step;
        let ends = |column: usize| (count as u64 - 1) * self.row_step + column_at(column) + size as u64;
        if together {
            let last = wanted.iter().map(|&(_, column)| column).max().unwrap_or(0);
            bytes.resize(ends(last) as usize, 0);
            read_at(&self.source, first, bytes)?;
        }
        for &(slot, column) in wanted {
            let offset = if together {
                column_at(column) as usize
            } else {
                bytes.resize(ends(0) as usize, 0);
                read_at(&self.source, first + column_at(column), bytes)?;
                0
            };
            for row in 0..count {
                let at = offset + row * self.row_step as usize;
                out[row * width + slot] = self.factor * self.number.value(&bytes[at..at + size], self.big);
            }
        }
        Ok(())
    }
}
