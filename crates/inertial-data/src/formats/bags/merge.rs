//! Merging of several topics, or streams of a topic: the values of all others are interpolated at the stamps of the first.

use std::collections::VecDeque;

/// Maximum time (s) between two messages for interpolation.
const LONGEST_GAP: f64 = 0.2;
/// Maximum number of rows that wait for messages of other topics.
const MOST_WAITING: usize = 10_000;

/// Stamp and numbers of a message.
struct Sample {
    stamp: f64,
    values: Vec<f64>,
}

/// Merger of messages of several topics into rows.
pub(super) struct Merge {
    /// Waiting rows of the first topic.
    waiting: VecDeque<Sample>,
    /// Messages of the other topics: the last before the waiting row, and all after it.
    others: Vec<VecDeque<Sample>>,
    /// Numbers of values of the other topics.
    widths: Vec<usize>,
    /// Reusable memory of finished samples.
    free: Vec<Vec<f64>>,
    ended: bool,
}

impl Merge {
    /// Creates a merger of topics in addition to the first, with the number of values of each.
    pub fn new(widths: Vec<usize>) -> Self {
        let others = widths.iter().map(|_| VecDeque::new()).collect();
        Self { waiting: VecDeque::new(), others, widths, free: Vec::new(), ended: false }
    }

    /// Adds a message; the messages of topic 0 define the rows.
    pub fn push(&mut self, topic: usize, stamp: f64, values: &[f64]) {
        let mut own = self.free.pop().unwrap_or_default();
        own.clear();
        own.extend_from_slice(values);
        let sample = Sample { stamp, values: own };
        match topic {
            0 => self.waiting.push_back(sample),
            k => {
                let queue = &mut self.others[k - 1];
                // Messages out of order would not form an interval.
                if queue.back().is_none_or(|last| last.stamp < stamp) {
                    queue.push_back(sample);
                }
                if queue.len() > MOST_WAITING {
                    self.free.extend(queue.pop_front().map(|old| old.values));
                }
            }
        }
    }

    /// Marks the end of the messages.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Writes the next complete row: its stamp, then the values of all topics; returns whether there is one.
    pub fn pop(&mut self, row: &mut Vec<f64>) -> bool {
        let Some(stamp) = self.waiting.front().map(|first| first.stamp) else { return false };
        let complete = |queue: &VecDeque<Sample>| queue.back().is_some_and(|last| last.stamp >= stamp);
        if !self.ended && self.waiting.len() <= MOST_WAITING && !self.others.iter().all(complete) {
            return false;
        }
        let Some(first) = self.waiting.pop_front() else { return false };
        row.clear();
        row.push(stamp);
        row.extend_from_slice(&first.values);
        for (queue, &width) in self.others.iter_mut().zip(&self.widths) {
            while queue.get(1).is_some_and(|next| next.stamp <= stamp) {
                self.free.extend(queue.pop_front().map(|old| old.values));
            }
            let (before, after) = (queue.front(), queue.get(1));
            match (before, after) {
                (Some(before), _) if before.stamp == stamp => row.extend_from_slice(&before.values),
                (Some(before), Some(after))
                    if before.stamp < stamp && after.stamp - before.stamp <= LONGEST_GAP =>
                {
                    let share = (stamp - before.stamp) / (after.stamp - before.stamp);
                    row.extend(before.values.iter().zip(&after.values).map(|(a, b)| a + share * (b - a)));
                }
                // The row is too far from the nearest message, so its values are unknown.
                _ => row.extend(std::iter::repeat_n(f64::NAN, width)),
            }
        }
        self.free.push(first.values);
        true
    }
}
