//! Detection of glitches: single samples that do not fit their neighbours, such as a dropped encoder bit.

use inertial::consistency::significant;

/// Number of rows processed at once.
const CHUNK: usize = 1 << 12;
/// Number of rows on either side of a sample that are needed to classify it: two for the expected value, and the same for two more samples.
const REACH: usize = 4;

/// Rule for outliers, based on the distance from the cubic through the neighbours.
struct Rule {
    /// Share of samples that may have larger errors than the rest.
    rest: f64,
    /// Error of a glitch, in units of the bound of the remaining errors: 31 standard deviations of Gaussian noise.
    far: f64,
    /// Maximum share and number of isolated outliers; a column with more has another kind of noise.
    share: f64,
    most: usize,
    /// Maximum number of equally large errors that are not isolated, relative to the isolated ones.
    others: f64,
}

/// Rules in the order in which they are tried. The first allows many glitches (each disturbs the errors of five samples). The second
/// is for signals with genuine jumps, such as friction at a reversal, if these are rare enough.
const RULES: [Rule; 2] = [
    Rule { rest: 0.1, far: 18.8, share: 0.02, most: MOST, others: 0.5 },
    Rule { rest: 0.01, far: 12.0, share: 0.002, most: 1000, others: f64::INFINITY },
];
/// Maximum number of isolated outliers of a column that are kept.
const MOST: usize = 20_000;
/// Tolerance of the errors around a glitch relative to the pattern of a single wrong sample, as a share of its own error. The most similar
/// pattern, a kink, deviates by 0.167.
const SHAPE: f64 = 0.15;
/// Number of low bits of a double to drop so that the rest is its magnitude to a quarter of an octave.
const SIZE: u32 = 50;

/// Isolated outlier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Glitch {
    /// Index of the row.
    pub row: usize,
    /// Line in the file.
    pub line: usize,
    pub place: usize,
    pub value: f64,
    error: f64,
}

/// Detector of glitches in a stream of rows (time first).
pub(crate) struct GlitchDetector {
    width: usize,
    /// Last rows, and the index of the first of them.
    rows: Vec<f64>,
    lines: Vec<usize>,
    first: usize,
    channels: Vec<Channel>,
    errors: Vec<f64>,
}

struct Channel {
    /// Histogram of error sizes.
    sizes: Vec<u32>,
    count: usize,
    /// Limit of the errors, and the number of errors from which it was computed.
    limit: f64,
    known: usize,
    found: Vec<Glitch>,
    /// Equally large errors of samples that are not isolated.
    others: Vec<f64>,
}

impl Channel {
    fn add(&mut self, error: f64) {
        // Zero or missing errors have no magnitude.
        if error.abs() > 0.0 && error.is_finite() {
            self.sizes[(error.abs().to_bits() >> SIZE) as usize] += 1;
            self.count += 1;
        }
    }

    /// Updates the limit from the errors so far, each time their number has grown by a quarter.
    fn update_limit(&mut self) {
        if 4 * self.count >= 5 * self.known {
            (self.limit, self.known) = (self.least_limit(), self.count);
        }
    }

    fn limit(&self, rule: &Rule) -> f64 {
        let mut left = (rule.rest * self.count as f64) as usize;
        let top = (0..self.sizes.len()).rev().find(|&k| {
            let more = self.sizes[k] as usize > left;
            left = left.saturating_sub(self.sizes[k] as usize);
            more
        });
        top.map_or(f64::INFINITY, |k| rule.far * f64::from_bits((k as u64 + 1) << SIZE))
    }

    /// Returns the error from which a sample may be a glitch by any rule.
    fn least_limit(&self) -> f64 {
        RULES.iter().map(|rule| self.limit(rule)).fold(f64::INFINITY, f64::min)
    }

    /// Returns the glitches by the first rule that applies to the whole column, given its number of samples.
    fn glitches(self, samples: usize) -> Vec<Glitch> {
        // An outlier relative to the first rows may not be one relative to all rows.
        let limits = [self.least_limit(), self.limit(&RULES[1])];
        for (rule, limit) in RULES.iter().zip(limits) {
            let found: Vec<Glitch> = self.found.iter().filter(|g| g.error > limit).copied().collect();
            let others = self.others.iter().filter(|error| **error > limit).count();
            let most = rule.most.min((rule.share * samples as f64).ceil() as usize);
            if found.len() <= most && others as f64 <= rule.others * found.len() as f64 {
                return found;
            }
        }
        Vec::new()
    }
}

impl GlitchDetector {
    /// Creates the detector for rows of `width` numbers, time included.
    pub fn new(width: usize) -> Self {
        let channel = |_| Channel {
            sizes: vec![0; 1 << (63 - SIZE)],
            count: 0,
            limit: f64::INFINITY,
            known: 0,
            found: Vec::new(),
            others: Vec::new(),
        };
        let channels = (1..width).map(channel).collect();
        Self { width, rows: Vec::new(), lines: Vec::new(), first: 0, channels, errors: Vec::new() }
    }

    /// Processes the next rows.
    pub fn push(&mut self, rows: &[f64], lines: &[usize]) {
        for (rows, lines) in rows.chunks(CHUNK * self.width).zip(lines.chunks(CHUNK)) {
            self.rows.extend_from_slice(rows);
            self.lines.extend_from_slice(lines);
            let count = self.lines.len();
            if count <= 2 * REACH {
                continue;
            }
            self.classify();
            let done = count - 2 * REACH;
            self.rows.drain(..done * self.width);
            self.lines.drain(..done);
            self.first += done;
        }
    }

    /// Classifies the rows that have enough neighbours.
    fn classify(&mut self) {
        let (count, width) = (self.lines.len(), self.width);
        let places = width - 1;
        // Distances from the cubic through the two samples on either side, in the same layout as the values.
        self.errors.clear();
        for around in self.rows.windows(5 * width).step_by(width) {
            let value = |k: usize| &around[k * width + 1..(k + 1) * width];
            let [a, b, x, d, e] = [0, 1, 2, 3, 4].map(value);
            self.errors.extend((0..places).map(|k| x[k] - (4.0 * (b[k] + d[k]) - a[k] - e[k]) / 6.0));
        }
        let judged = REACH - 2..count - 2 - REACH;
        for errors in self.errors[judged.start * places..judged.end * places].chunks_exact(places) {
            self.channels.iter_mut().zip(errors).for_each(|(channel, e)| channel.add(*e));
        }
        self.channels.iter_mut().for_each(Channel::update_limit);
        for i in judged {
            for (place, channel) in self.channels.iter_mut().enumerate() {
                let error = self.errors[i * places + place];
                if error.abs() <= channel.limit || channel.found.len() > MOST {
                    continue;
                }
                let alike = |k: usize, share: f64| {
                    (self.errors[k * places + place] - share * error).abs() < SHAPE * error.abs()
                };
                let (near, far) = (-2.0 / 3.0, 1.0 / 6.0);
                if alike(i - 1, near) && alike(i + 1, near) && alike(i - 2, far) && alike(i + 2, far) {
                    let at = i + 2;
                    let (row, line, value) =
                        (self.first + at, self.lines[at], self.rows[at * width + place + 1]);
                    channel.found.push(Glitch { row, line, place, value, error: error.abs() });
                } else if channel.others.len() <= MOST {
                    // Only the largest error of neighbouring samples counts.
                    let below = |k: usize| self.errors[k * places + place].abs() <= error.abs();
                    if [i - 2, i - 1, i + 1, i + 2].into_iter().all(below) {
                        channel.others.push(error.abs());
                    }
                }
            }
        }
    }

    /// Returns all glitches, ordered by row.
    pub fn finish(self) -> Vec<Glitch> {
        let samples = self.first + self.lines.len();
        let mut out: Vec<Glitch> = self.channels.into_iter().flat_map(|c| c.glitches(samples)).collect();
        out.sort_by_key(|glitch| glitch.row);
        out
    }
}

/// Returns notes about the glitches, column by column.
pub(crate) fn notes(glitches: &[Glitch], names: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    for (place, name) in names.iter().enumerate() {
        let mut of = glitches.iter().filter(|glitch| glitch.place == place);
        let Some(first) = of.next() else { continue };
        let others = match of.count() {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let (line, value) = (first.line, significant(first.value, 6));
        out.push(format!("column {name}: row {line}: {value} is an outlier{others}: treated as missing"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One sample of a hundred is wrong, which is more than the 1 % of excluded samples can cover.
    #[test]
    fn many_isolated_outliers_are_found() {
        let (mut rows, lines) = rows(10_000);
        let wrong: Vec<usize> = (50..9950).step_by(100).collect();
        wrong.iter().for_each(|i| rows[3 * i + 1] += 0.5);
        let expected: Vec<(usize, usize)> = wrong.iter().map(|i| (i + 2, 0)).collect();
        assert_eq!(found(&rows, &lines, 4096), expected);
        // One wrong sample of ten is another kind of noise.
        (55..9950).step_by(10).for_each(|i| rows[3 * i + 1] += 0.5);
        assert!(found(&rows, &lines, 4096).is_empty());
    }

    /// Torque with jumps at each reversal of its joint, more of them than isolated outliers.
    #[test]
    fn jumps_of_friction_are_not_outliers() {
        let (mut rows, lines) = rows(10_000);
        let at = |i: usize| 0.05 * i as f64;
        (0..10_000).for_each(|i| rows[3 * i + 1] += 0.3 * f64::signum(at(i).sin()));
        assert!(found(&rows, &lines, 4096).is_empty());
        rows[3 * 5000 + 1] += 8.0;
        assert_eq!(found(&rows, &lines, 4096), [(5002, 0)]);
    }

    /// Creates rows of time, a wave with noise, and a coarsely quantized wave.
    fn rows(count: usize) -> (Vec<f64>, Vec<usize>) {
        let mut state = 5u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state) / f64::from(u32::MAX) - 0.5
        };
        let row = |i: usize| {
            let t = 0.005 * i as f64;
            [t, (3.0 * t).sin() + 1e-4 * noise(), ((2.0 * t).sin() * 600.0).round() / 600.0]
        };
        ((0..count).flat_map(row).collect(), (2..count + 2).collect())
    }

    fn found(rows: &[f64], lines: &[usize], part: usize) -> Vec<(usize, usize)> {
        let mut watch = GlitchDetector::new(3);
        rows.chunks(3 * part).zip(lines.chunks(part)).for_each(|(r, l)| watch.push(r, l));
        watch.finish().iter().map(|g| (g.line, g.place)).collect()
    }

    #[test]
    fn only_isolated_outliers_are_found() {
        let (mut rows, lines) = rows(10_000);
        assert!(found(&rows, &lines, 10_000).is_empty());
        // A permanent jump and a jump of two rows are not glitches.
        (8000..10_000).for_each(|i| rows[3 * i + 1] += 0.1);
        (3000..3002).for_each(|i| rows[3 * i + 2] += 0.1);
        assert!(found(&rows, &lines, 10_000).is_empty());
        rows[3 * 1500 + 1] += 0.02;
        rows[3 * 4095 + 2] -= 0.5;
        rows[3 * 9990 + 1] = 1e300;
        let expected = [(1502, 0), (4097, 1), (9992, 0)];
        for part in [1, 3, 100, 4096, 10_000] {
            assert_eq!(found(&rows, &lines, part), expected, "{part}");
        }
    }
}
