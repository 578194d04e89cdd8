//! Storage of rows in memory, or in a temporary file if there are many.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;

use crate::Result;
use crate::temporary::{no_space, temporary};

/// Maximum number of values in memory (32 MB); a longer log is stored in a file.
const IN_MEMORY: usize = 4 << 20;
/// Number of values written to the file at once.
const WRITTEN: usize = 1 << 19;

/// Rows that are appended, then read in any order. Few rows stay in memory; many are stored in an unnamed temporary file, which is
/// removed when the program ends for any reason.
pub(crate) struct Spool {
    width: usize,
    /// Number of rows in the file, which precede those in memory.
    stored: usize,
    memory: Vec<f64>,
    file: Option<File>,
    limit: usize,
}

impl Spool {
    /// Creates an empty spool of rows of `width` numbers.
    pub fn new(width: usize) -> Self {
        Self::with_limit(width, IN_MEMORY)
    }

    fn with_limit(width: usize, limit: usize) -> Self {
        Self { width, stored: 0, memory: Vec::new(), file: None, limit }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.stored + self.memory.len() / self.width.max(1)
    }

    /// Appends rows.
    pub fn push(&mut self, rows: &[f64]) -> Result<()> {
        self.memory.extend_from_slice(rows);
        let most = if self.file.is_some() { WRITTEN.min(self.limit) } else { self.limit };
        if self.memory.len() < most {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(temporary()?),
        };
        file.write_all(bytemuck::cast_slice(&self.memory)).map_err(|e| no_space(&e))?;
        self.stored += self.memory.len() / self.width.max(1);
        self.memory.clear();
        self.memory.shrink_to(WRITTEN);
        Ok(())
    }

    /// Appends the rows of `range` to `out`.
    pub fn read(&mut self, range: Range<usize>, out: &mut Vec<f64>) -> Result<()> {
        let first = out.len();
        out.resize(first + range.len() * self.width, 0.0);
        self.load(range, &mut out[first..])
    }

    /// Replaces the content of `out` by the rows of `range`.
    pub fn replace(&mut self, range: Range<usize>, out: &mut Vec<f64>) -> Result<()> {
        out.resize(range.len() * self.width, 0.0);
        self.load(range, out)
    }

    fn load(&mut self, range: Range<usize>, out: &mut [f64]) -> Result<()> {
        let stored = range.start.min(self.stored)..range.end.min(self.stored);
        let (from_file, from_memory) = out.split_at_mut(stored.len() * self.width);
        if let Some(file) = self.file.as_mut().filter(|_| !stored.is_empty()) {
            file.seek(SeekFrom::Start((stored.start * self.width * size_of::<f64>()) as u64))
                .and_then(|_| file.read_exact(bytemuck::cast_slice_mut(from_file)))
                .map_err(|e| no_space(&e))?;
        }
        let kept = range.start.max(self.stored) - self.stored..range.end.max(self.stored) - self.stored;
        from_memory.copy_from_slice(&self.memory[kept.start * self.width..kept.end * self.width]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_from_memory_and_from_the_file() {
        let all: Vec<f64> = (0..3000).map(f64::from).collect();
        for limit in [3, 100, 1 << 20] {
            let mut spool = Spool::with_limit(3, limit);
            all.chunks(33).for_each(|rows| spool.push(rows).unwrap());
            assert_eq!((spool.len(), spool.file.is_some()), (1000, limit < 3000));
            for range in [0..1000, 0..0, 500..501, 990..1000, 1000..1000] {
                let mut out = vec![-1.0];
                spool.read(range.clone(), &mut out).unwrap();
                assert_eq!(out[1..], all[3 * range.start..3 * range.end]);
                spool.replace(range.clone(), &mut out).unwrap();
                assert_eq!(out, all[3 * range.start..3 * range.end]);
            }
        }
    }
}
