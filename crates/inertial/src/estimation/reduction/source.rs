//! Identity of the logs behind a summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Log, recognized by some of its rows independent of its name and format.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LogSource {
    /// Name under which the log was read.
    pub name: String,
    /// Preparation of the log: a text with all options that the result depends on, equal for equal options.
    pub preparation: String,
    /// Number of rows.
    pub rows: usize,
    /// Smallest digests of the rows, in ascending order: a sample of the rows that does not depend on where the log begins and
    /// ends.
    pub marks: Vec<u64>,
}

impl LogSource {
    /// Number of marks of one log.
    pub const MARKS: usize = 16;

    /// Number of common marks from which logs count as overlapping. Rows of different logs are equal by chance only if a robot
    /// rests at the same time.
    const COMMON: usize = 3;

    /// Adds a row of numbers: its time and positions.
    pub fn add_row(&mut self, row: impl IntoIterator<Item = f64>) {
        // Positive and negative zero are equal.
        let mark = row.into_iter().fold(0, |hash, x| mixed(hash ^ (x + 0.0).to_bits()));
        self.rows += 1;
        if self.marks.len() == Self::MARKS && self.marks.last().is_some_and(|&last| mark >= last) {
            return;
        }
        if let Err(place) = self.marks.binary_search(&mark) {
            self.marks.insert(place, mark);
            self.marks.truncate(Self::MARKS);
        }
    }

    /// Returns whether two logs have a considerable part of their rows in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        let common = self.marks.iter().filter(|mark| other.marks.binary_search(mark).is_ok()).count();
        common >= Self::COMMON.min(self.marks.len().max(1))
    }
}

/// Mixes the bits of a word: a bijection in which every bit depends on many others. It processes words instead of bytes, because
/// there are many rows.
fn mixed(word: u64) -> u64 {
    let word = (word ^ word >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    word ^ word >> 32
}
