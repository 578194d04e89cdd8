//! Reduction of a signal to fewer points that preserves all peaks.

/// Reducer that keeps the minimum and the maximum of each bucket of samples, in their original order.
pub struct Reducer {
    bucket: usize,
    out: Vec<f32>,
    seen: usize,
    least: (usize, f32),
    greatest: (usize, f32),
}

/// Extremum of an empty bucket.
const NONE: (usize, f32) = (0, f32::NAN);

impl Reducer {
    /// Creates a reducer for `samples` samples; buckets of one sample keep all of them.
    pub fn new(bucket: usize, samples: usize) -> Self {
        let points = if bucket == 1 { samples } else { 2 * samples.div_ceil(bucket) };
        Self { bucket, out: Vec::with_capacity(points), seen: 0, least: NONE, greatest: NONE }
    }

    /// Adds the next sample; NaN is ignored if its bucket contains a number.
    pub fn push(&mut self, x: f32) {
        if self.bucket == 1 {
            self.out.push(x);
            return;
        }
        // Comparisons with NaN are false, so the first number replaces it.
        if x < self.least.1 || self.least.1.is_nan() {
            self.least = (self.seen, x);
        }
        if x > self.greatest.1 || self.greatest.1.is_nan() {
            self.greatest = (self.seen, x);
        }
        self.seen += 1;
        if self.seen == self.bucket {
            self.close();
        }
    }

    fn close(&mut self) {
        let [first, second] = if self.least.0 <= self.greatest.0 {
            [self.least, self.greatest]
        } else {
            [self.greatest, self.least]
        };
        self.out.extend([first.1, second.1]);
        (self.seen, self.least, self.greatest) = (0, NONE, NONE);
    }

    /// Returns the points.
    pub fn finish(mut self) -> Vec<f32> {
        if self.seen > 0 {
            self.close();
        }
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::Reducer;

    fn reduced(bucket: usize, samples: &[f32]) -> Vec<f32> {
        let mut out = Reducer::new(bucket, samples.len());
        samples.iter().for_each(|x| out.push(*x));
        out.finish()
    }

    #[test]
    fn peaks_are_kept_in_their_order() {
        let samples = [0.0, 5.0, -1.0, 2.0, 7.0, 1.0, 3.0, 3.0, -9.0];
        assert_eq!(reduced(4, &samples), [5.0, -1.0, 7.0, 1.0, -9.0, -9.0]);
        assert_eq!(reduced(1, &samples), samples);
    }

    #[test]
    fn nan_is_ignored_except_in_buckets_without_numbers() {
        let nan = f32::NAN;
        let out = reduced(3, &[nan, 4.0, 2.0, nan, nan, nan]);
        assert_eq!(out[..2], [4.0, 2.0]);
        assert!(out[2..].iter().all(|x| x.is_nan()));
    }
}
