//! Statistics of time stamps: sampling step, gaps, rounding.

/// Maximum deviation from the uniform grid, as a share of a step, for stamps that count as uniform.
const UNIFORM: f64 = 0.01;
/// Number of typical steps beyond which a step is a gap.
pub(crate) const GAP: f64 = 4.0;
/// Number of rows that define the typical step.
pub(crate) const TYPICAL: usize = 1 << 16;
/// Units (s) to which loggers round stamps.
const ROUNDED: [f64; 4] = [1e-2, 1e-3, 1e-4, 1e-5];

/// Statistics of the ordered stamps of a log.
pub(crate) struct Stamps {
    pub count: usize,
    pub start: f64,
    pub end: f64,
    /// Median of the first steps.
    pub typical: f64,
    /// Longest step, and the line of its end.
    pub longest: (f64, usize),
    /// Total time in gaps, and number of gaps.
    pub in_gaps: f64,
    /// Part of this time that the reader inserted between parts of the log.
    pub inserted: f64,
    gaps: usize,
    /// Sum of squared steps.
    squares: f64,
    /// Interval of the steps of uniform grids that fit all stamps, starting at the first.
    fits: (f64, f64),
    /// Intervals of these steps for stamps rounded to a unit; `None` if a stamp is not rounded to it.
    rounded: [Option<(f64, f64)>; 4],
    /// First steps.
    steps: Vec<f64>,
}

impl Stamps {
    pub fn new() -> Self {
        let any = (0.0, f64::INFINITY);
        Self {
            count: 0,
            start: 0.0,
            end: 0.0,
            typical: 0.0,
            longest: (0.0, 0),
            in_gaps: 0.0,
            inserted: 0.0,
            gaps: 0,
            squares: 0.0,
            fits: any,
            rounded: [Some(any); 4],
            steps: Vec::new(),
        }
    }

    /// Adds the next stamp; `typical` is the current estimate of the typical step.
    pub fn add(&mut self, now: f64, line: usize, typical: f64) {
        let (index, since) = (self.count as f64, now - self.start);
        for (fits, unit) in self.rounded.iter_mut().zip(ROUNDED) {
            let Some((low, high)) = fits else { continue };
            let units = now / unit;
            if (units - units.round()).abs() > 1e-3 {
                *fits = None;
            } else if self.count > 0 {
                // The stamp and the first stamp are each rounded by up to half a unit.
                (*low, *high) =
                    (low.max((since - 1.01 * unit) / index), high.min((since + 1.01 * unit) / index));
            }
        }
        if self.count == 0 {
            self.start = now;
        } else {
            let dt = now - self.end;
            if self.steps.len() < TYPICAL {
                self.steps.push(dt);
            }
            if dt > self.longest.0 {
                self.longest = (dt, line);
            }
            if dt > GAP * typical {
                self.in_gaps += dt;
                self.gaps += 1;
            }
            self.squares += dt * dt;
            // On a grid of step s the stamp is at index·s ± UNIFORM·s.
            self.fits.0 = self.fits.0.max(since / (index + UNIFORM));
            self.fits.1 = self.fits.1.min(since / (index - UNIFORM));
        }
        self.end = now;
        self.count += 1;
    }

    /// Finishes the statistics after the last stamp.
    pub fn finish(&mut self) {
        self.typical = median(std::mem::take(&mut self.steps));
    }

    /// Returns the number of gaps.
    pub fn gaps(&self) -> usize {
        self.gaps
    }

    /// Returns the mean number of samples per second.
    pub fn mean_rate(&self) -> f64 {
        self.count as f64 / (self.end - self.start)
    }

    fn mean_step(&self) -> f64 {
        (self.end - self.start) / (self.count - 1) as f64
    }

    /// Returns the number of steps of a uniform grid at the mean rate, which excludes gaps.
    pub fn grid_steps(&self) -> f64 {
        let span = self.end - self.start;
        let steps = (self.count - 1 - self.gaps) as f64;
        if self.in_gaps > 0.0 && steps > 0.0 {
            (span * steps / (span - self.in_gaps)).round()
        } else {
            (self.count - 1) as f64
        }
    }

    /// Returns whether the stamps are uniform without corrections.
    pub fn is_uniform(&self) -> bool {
        let step = self.mean_step();
        self.fits.0 <= step && step <= self.fits.1
    }

    /// Returns the unit to which the stamps of a uniform clock were rounded, if any fits.
    pub fn rounding(&self) -> Option<f64> {
        let step = self.mean_step();
        let mut units = ROUNDED.into_iter().zip(&self.rounded);
        let fits = |fits: &Option<(f64, f64)>| fits.is_some_and(|(low, high)| low <= step && step <= high);
        units.find(|(unit, rounded)| 2.0 * unit <= step && fits(rounded)).map(|(unit, _)| unit)
    }

    /// Returns the root mean square of the deviations of the steps from `step`.
    pub fn jitter(&self, step: f64) -> f64 {
        let mean = self.mean_step();
        let steps = (self.count - 1) as f64;
        ((self.squares / steps - mean * mean).max(0.0) + (mean - step).powi(2)).sqrt()
    }
}

/// Returns the median, or zero for an empty list.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    let middle = values.len() / 2;
    if values.is_empty() { 0.0 } else { *values.select_nth_unstable_by(middle, f64::total_cmp).1 }
}
