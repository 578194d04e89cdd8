//! Fewer points that keep every peak.

/// Takes samples one by one; of each bucket it keeps the least and the greatest, in the order in which they came.
pub struct Reducer {
    bucket: usize,
    out: Vec<f32>,
    seen: usize,
    least: (usize, f32),
    greatest: (usize, f32),
}

const NONE: (usize, f32) = (0, f32::NAN);

impl Reducer {
    /// Of `samples` samples; buckets of one keep them all.
    pub fn new(bucket: usize, samples: usize) -> Self {
        let points = if bucket == 1 { samples } else { 2 * samples.div_ceil(bucket) };
        Self { bucket, out: Vec::with_capacity(points), seen: 0, least: NONE, greatest: NONE }
    }

    /// The next sample; one that is not a number leaves its bucket to the others.
    pub fn push(&mut self, x: f32) {
        if self.bucket == 1 {
            self.out.push(x);
            return;
        }
        // Comparisons with what is not a number are false: the first number replaces it.
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

    /// The points.
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
    fn peaks_stay_and_come_in_order() {
        let samples = [0.0, 5.0, -1.0, 2.0, 7.0, 1.0, 3.0, 3.0, -9.0];
        assert_eq!(reduced(4, &samples), [5.0, -1.0, 7.0, 1.0, -9.0, -9.0]);
        assert_eq!(reduced(1, &samples), samples);
    }

    #[test]
    fn gaps_stay_gaps_and_hide_nothing() {
        let nan = f32::NAN;
        let out = reduced(3, &[nan, 4.0, 2.0, nan, nan, nan]);
        assert_eq!(out[..2], [4.0, 2.0]);
        assert!(out[2..].iter().all(|x| x.is_nan()));
    }
}
