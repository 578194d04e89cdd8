//! Layout of the nonzero blocks of a torque regressor.

use std::ops::Range;

/// Structurally nonzero block of consecutive columns in one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedBlock {
    /// Index of the velocity coordinate.
    pub row: usize,
    /// First column in the full parameter vector.
    pub column: usize,
    /// Number of columns: ten for a body, four if the coordinate only translates it, one for a symmetric rotor.
    pub len: usize,
    /// Index of the first packed entry.
    pub start: usize,
}

/// Layout of the nonzero entries of the torque regressor in packed form.
///
/// Blocks are sorted by row, then by column, so the entries of a row are contiguous. The structure depends on the
/// mechanism only and is the same for every sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedLayout {
    blocks: Vec<PackedBlock>,
    /// First block of each row, followed by the number of blocks.
    firsts: Vec<usize>,
    /// Blocks that are contiguous both in packed form and in the dense row-major matrix.
    pub(crate) runs: Vec<Run>,
    len: usize,
}

/// Entries that are contiguous both in packed and in dense form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub packed: usize,
    pub dense: usize,
    pub len: usize,
}

impl PackedLayout {
    pub(crate) fn new(rows: usize) -> Self {
        Self { firsts: vec![0; rows + 1], ..Self::default() }
    }

    /// Appends a block (in order) and returns its first packed entry.
    pub(crate) fn push(&mut self, row: usize, column: usize, len: usize) -> usize {
        let start = self.len;
        if len > 0 {
            self.blocks.push(PackedBlock { row, column, len, start });
            self.len += len;
        }
        start
    }

    /// Completes the layout after the last block, for matrices of `columns` columns.
    pub(crate) fn finish(&mut self, columns: usize) {
        for row in 0..self.firsts.len() {
            self.firsts[row] = self.blocks.partition_point(|b| b.row < row);
        }
        for block in &self.blocks {
            let dense = block.row * columns + block.column;
            match self.runs.last_mut() {
                Some(run) if run.dense + run.len == dense => run.len += block.len,
                _ => self.runs.push(Run { packed: block.start, dense, len: block.len }),
            }
        }
    }

    /// Returns the number of packed entries per sample.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the regressor is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns all blocks.
    pub fn blocks(&self) -> &[PackedBlock] {
        &self.blocks
    }

    /// Returns the blocks of a row.
    pub fn row(&self, row: usize) -> &[PackedBlock] {
        &self.blocks[self.firsts[row]..self.firsts[row + 1]]
    }

    /// Returns the range of packed entries of a row.
    pub fn row_entries(&self, row: usize) -> Range<usize> {
        match self.row(row) {
            [] => 0..0,
            [first, .., last] => first.start..last.start + last.len,
            [only] => only.start..only.start + only.len,
        }
    }
}
