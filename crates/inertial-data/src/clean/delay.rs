//! Correction of a known delay of the forces relative to the motion: torques, and readings of a force/torque sensor.

use std::ops::Range;

use inertial::linalg::cubic_weights;

use crate::Result;
use crate::clean::resample::Sink;
use crate::columns::layout::Layout;

/// Start of the names of the readings of a force/torque sensor.
const SENSOR: &str = "ft.";

/// Delay of rows on a uniform grid, whose forces are taken at a later time, with cubic interpolation through four samples.
pub(crate) struct Delay {
    /// Name of the delayed quantities.
    pub what: &'static str,
    width: usize,
    /// Places of the forces in a row.
    places: Vec<usize>,
    /// Marks of the forces.
    force_marks: u64,
    /// Number of whole steps of the delay, from a row to the row before its forces.
    whole_steps: isize,
    /// Weights of the four rows around the forces.
    weights: [f64; 4],
    /// Rows that are still needed, with their marks, and the index of the first.
    rows: Vec<f64>,
    marks: Vec<u64>,
    first: usize,
    /// Index of the next row to emit.
    next: usize,
    values: Vec<f64>,
    bridged: Vec<u64>,
}

impl Delay {
    /// Creates the correction of forces that are `steps` steps late (early if negative); `None` for zero steps.
    pub fn new(layout: &Layout, steps: f64) -> Option<Self> {
        let of_sensor = |place: &&usize| layout.names[**place].starts_with(SENSOR);
        let sensor = || layout.extra.iter().filter(of_sensor);
        let mut places: Vec<usize> = layout.tau.iter().flatten().chain(sensor()).copied().collect();
        places.sort_unstable();
        places.dedup();
        if steps == 0.0 || places.is_empty() {
            return None;
        }
        Some(Self {
            what: if sensor().next().is_some() { "sensor" } else { "torque" },
            width: layout.width(),
            force_marks: places.iter().map(|&place| layout.mark_bit(place)).fold(0, |all, one| all | one),
            places,
            whole_steps: steps.floor() as isize,
            weights: cubic_weights(steps - steps.floor()),
            rows: Vec::new(),
            marks: Vec::new(),
            first: 0,
            next: 0,
            values: Vec::new(),
            bridged: Vec::new(),
        })
    }

    /// Adds rows, and emits those whose forces are known.
    pub fn push(&mut self, rows: &[f64], marks: &[u64], sink: &mut Sink<'_>) -> Result<()> {
        self.rows.extend_from_slice(rows);
        self.marks.extend_from_slice(marks);
        let added = self.first + self.marks.len();
        let reach = (self.whole_steps + 2).max(0).unsigned_abs();
        self.emit(self.next..added.saturating_sub(reach).max(self.next), added, sink)
    }

    /// Emits the last rows. Forces beyond the end of the log are not used.
    pub fn finish(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        let added = self.first + self.marks.len();
        self.emit(self.next..added, added, sink)
    }

    /// Emits the rows of a range with delayed forces; `added` is the number of rows added so far.
    fn emit(&mut self, range: Range<usize>, added: usize, sink: &mut Sink<'_>) -> Result<()> {
        self.values.clear();
        self.bridged.clear();
        for i in range.clone() {
            let own = i - self.first;
            let start = self.values.len();
            self.values.extend_from_slice(&self.rows[own * self.width..(own + 1) * self.width]);
            let mut mark = self.marks[own];
            let mut around = [0usize; 4];
            for (step, at) in (self.whole_steps - 1..).zip(&mut around) {
                let wanted = i.checked_add_signed(step);
                let known = wanted.filter(|row| (self.first..added).contains(row));
                if known.is_none() {
                    mark |= self.force_marks;
                }
                let nearest = wanted.unwrap_or(0).clamp(self.first, added - 1);
                *at = nearest - self.first;
                mark |= self.marks[*at];
            }
            for &place in &self.places {
                let parts = around.iter().zip(self.weights);
                self.values[start + place] =
                    parts.map(|(at, w)| w * self.rows[at * self.width + place]).sum();
            }
            self.bridged.push(mark);
        }
        self.next = range.end;
        let needed = self.next.saturating_add_signed((self.whole_steps - 1).min(0));
        let done = needed.saturating_sub(self.first).min(self.marks.len());
        self.rows.drain(..done * self.width);
        self.marks.drain(..done);
        self.first += done;
        sink(&self.values, &self.bridged)
    }
}
