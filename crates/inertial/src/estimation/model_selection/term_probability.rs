//! Probability that a joint term exists.

/// Computes the probabilities that terms of one kind exist, from the logarithms of the Bayes factors of all joints.
///
/// The share of joints that have the term is unknown, with a uniform prior (Scott and Berger 2010): the more joints indicate the
/// term, the more probable it is for each of them. If no joint does, each additional joint makes it less probable.
pub(super) fn probabilities(factors: &[f64]) -> Vec<f64> {
    /// Number of points of the integral over the share.
    const SHARES: usize = 64;
    /// Largest logarithm of a Bayes factor, from which the term is certain.
    const CERTAIN: f64 = 30.0;
    let factors: Vec<f64> = factors.iter().map(|f| f.min(CERTAIN).exp()).collect();
    let shares: Vec<f64> = (0..SHARES).map(|k| (k as f64 + 0.5) / SHARES as f64).collect();
    let weight = |share: &f64| factors.iter().map(|f| (1.0 - share + share * f).ln()).sum::<f64>();
    let logarithms: Vec<f64> = shares.iter().map(weight).collect();
    let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logarithms.iter().map(|w| (w - largest).exp()).collect();
    let total: f64 = weights.iter().sum();
    let probability = |f: &f64| {
        let present = |(share, weight): (&f64, &f64)| weight * share * f / (1.0 - share + share * f);
        shares.iter().zip(&weights).map(present).sum::<f64>() / total
    };
    factors.iter().map(probability).collect()
}

/// Estimate of a term under the assumption that it exists.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct IfPresent {
    /// Logarithm of the Bayes factor: odds of the term that the data add to those before.
    pub factor: f64,
    /// Expected square of the term.
    pub square: f64,
}

impl IfPresent {
    /// Computes both from the squared ratio of the value to its standard error, the sign of the value, its variance, the squared
    /// usual size of the term, and the logarithm of the number of samples.
    ///
    /// The Bayes factor is that of the information criterion, `exp((evidence − ln samples)/2)`, if the term is determined much
    /// better than its usual size, and one if the data do not determine it. For a term that cannot be negative, the distribution
    /// of its value ends at zero.
    pub fn new(
        evidence: f64,
        sign: f64,
        variance: f64,
        usual: f64,
        log_samples: f64,
        one_sided: bool,
    ) -> Self {
        let information = usual / variance;
        let share = information / (1.0 + information);
        let of_two_sides = 0.5 * (evidence * share - information.ln_1p().min(log_samples));
        let value = sign * evidence.sqrt();
        if !one_sided {
            return Self { factor: of_two_sides, square: variance * (1.0 + evidence) };
        }
        let cumulative = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
        let density = |x: f64| (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
        // Far below zero, the mean square of the rest of a normal distribution tends to 2/value².
        let square = if value < -5.0 {
            2.0 / evidence
        } else {
            1.0 + evidence + value * density(value) / cumulative(value)
        };
        let inside = (2.0 * cumulative(value * share.sqrt())).max(f64::MIN_POSITIVE);
        Self { factor: of_two_sides + inside.ln(), square: variance * square }
    }
}

#[cfg(test)]
mod tests {
    use super::{IfPresent, probabilities};

    /// Logarithms of the Bayes factors of the information criterion.
    fn factors(evidence: &[f64], samples: f64) -> Vec<f64> {
        evidence.iter().map(|e| 0.5 * (e - samples.ln())).collect()
    }

    /// Reference: numerical integrals over the prior (normal, or its half above zero) times the likelihood, relative to the
    /// likelihood at zero.
    #[test]
    fn bayes_factors_are_ratios_of_integrals() {
        for (value, variance, usual) in
            [(0.7_f64, 0.5_f64, 2.0_f64), (-0.4, 0.3, 0.1), (-1.5, 0.4, 3.0), (2.0, 0.2, 0.05)]
        {
            for one_sided in [false, true] {
                let likelihood = |x: f64| (-0.5 * (x - value).powi(2) / variance).exp();
                let prior = |x: f64| {
                    let both = (-0.5 * x * x / usual).exp() / (std::f64::consts::TAU * usual).sqrt();
                    if one_sided { 2.0 * both } else { both }
                };
                let (step, first) = (1e-4, if one_sided { 0 } else { -200_000 });
                let sum: f64 = (first..200_000)
                    .map(|k| (f64::from(k) + 0.5) * step)
                    .map(|x| prior(x) * likelihood(x) * step)
                    .sum();
                let found =
                    IfPresent::new(value * value / variance, value.signum(), variance, usual, 1e9, one_sided);
                let expected = (sum / likelihood(0.0)).ln();
                // The midpoint rule has an error of about step²/24.
                assert!(
                    (found.factor - expected).abs() < 1e-6,
                    "{value} {one_sided}: {} {expected}",
                    found.factor
                );
            }
        }
    }

    /// Reference: sum over all subsets of terms, where subsets of the same size have the same prior probability.
    #[test]
    fn probabilities_of_terms_as_sums_over_subsets() {
        let (evidence, samples) = ([3.2_f64, 4.5, 0.4, 9.0], 18.0_f64);
        let n = evidence.len();
        let choose = |m: u32| [1.0, 4.0, 6.0, 4.0, 1.0][m as usize];
        let (mut total, mut with) = (0.0, vec![0.0; n]);
        for subset in 0..1_u32 << n {
            let inside = |k: usize| subset >> k & 1 == 1;
            let factor: f64 =
                (0..n).filter(|&k| inside(k)).map(|k| (evidence[k] / 2.0).exp() / samples.sqrt()).product();
            let weight = factor / choose(subset.count_ones());
            total += weight;
            (0..n).filter(|&k| inside(k)).for_each(|k| with[k] += weight);
        }
        // The error of the midpoint rule is 1/(24 · 64²) = 1e-5 times the second derivative of the integrand, which is below a
        // hundred here.
        for (found, expected) in probabilities(&factors(&evidence, samples)).iter().zip(&with) {
            assert!((found - expected / total).abs() < 1e-3, "{found} {}", expected / total);
        }
    }

    /// Tests that a weakly indicated term is probable if all joints indicate it, and improbable if no other joint does.
    #[test]
    fn weak_evidence_of_several_joints_adds_up() {
        let of = |evidence: &[f64], samples: f64| probabilities(&factors(evidence, samples));
        assert!(of(&[3.2, 4.5, 3.5, 4.1], 18.0).iter().all(|p| *p > 0.5));
        assert!(of(&[1.0; 6], 18.0).iter().all(|p| *p < 0.15));
        assert!(of(&[1.0; 6], 1000.0).iter().all(|p| *p < 0.015));
        assert!(of(&[1e6, 4.0], 18.0)[1] > 0.5);
    }
}
