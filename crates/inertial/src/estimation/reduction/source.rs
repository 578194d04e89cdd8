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
    #[serde(rename = "marks")]
    pub row_digests: Vec<u64>,
}

impl LogSource {
    /// Largest number of row digests of one log.
    pub const MAX_DIGESTS: usize = 16;

    /// Number of common row digests from which logs count as overlapping. Rows of different logs are equal by chance only if a robot
    /// rests at the same time.
    const COMMON: usize = 3;

    /// Adds a row of numbers: its time and positions.
    pub fn add_row(&mut self, row: impl IntoIterator<Item = f64>) {
        // Positive and negative zero are equal.
        let digest = row.into_iter().fold(0, |hash, x| mixed(hash ^ (x + 0.0).to_bits()));
        self.rows += 1;
        if self.row_digests.len() == Self::MAX_DIGESTS
            && self.row_digests.last().is_some_and(|&last| digest >= last)
        {
            return;
        }
        if let Err(place) = self.row_digests.binary_search(&digest) {
            self.row_digests.insert(place, digest);
            self.row_digests.truncate(Self::MAX_DIGESTS);
        }
    }

    /// Returns whether two logs have a considerable part of their rows in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        let common =
            self.row_digests.iter().filter(|digest| other.row_digests.binary_search(digest).is_ok()).count();
        common >= Self::COMMON.min(self.row_digests.len().max(1))
    }
}

/// Mixes the bits of a word: a bijection in which every bit depends on many others. It processes words instead of bytes, because
/// there are many rows.
fn mixed(word: u64) -> u64 {
    let word = (word ^ word >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    word ^ word >> 32
}
