//! Stribeck curves, and the curves whose columns a summary stores.
//!
//! A summary stores the column `sign(v) exp(−(|v|/vₛ)^δ)` at [`NODES`] speeds `vₛ` for each of the [`EXPONENTS`] `δ`. Between
//! these speeds the column is interpolated in `ln vₛ` (six points: with an error of 3 thousandths of its height at `δ = 2`, and of
//! 1 ten-thousandth at `δ = 1`). The speeds are in ratio √2: a column is a power of the one at twice its speed, which saves most
//! exponentials.

use crate::linalg::vectorized;

/// Exponents of the Stribeck curve: Tustin and Gaussian.
pub(crate) const EXPONENTS: [f64; 2] = [1.0, 2.0];
/// Number of speeds at which columns are stored: from 4 mm/s (or mrad/s) to 3 m/s (rad/s), in ratio √2.
pub(crate) const NODES: usize = 20;
const FASTEST: f64 = 3.0;
/// Negative exponent from which the curve is zero in double precision, relative to the Coulomb friction.
const NOTHING: f64 = 40.0;
/// Number of points of the interpolation.
const POINTS: usize = 6;
/// Largest number of powers after an exponential. Each multiplies the relative error by `2^δ`: from 5e-16 to 1e-13 at `δ = 2`.
pub(crate) const MOST_POWERS: usize = 4;

/// Speed and shape of a Stribeck term.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StribeckCurve {
    /// Stribeck speed `vₛ`.
    pub speed: f64,
    /// Exponent `δ`.
    pub exponent: f64,
}

impl StribeckCurve {
    /// Returns `sign(v) exp(−(|v|/vₛ)^δ)`.
    pub fn value(self, v: f64) -> f64 {
        let mut out = [v];
        self.apply(&mut out);
        out[0]
    }

    /// Replaces speeds by the [values](Self::value) of the curve.
    pub(crate) fn apply(self, speeds: &mut [f64]) {
        let factor = 1.0 / self.speed;
        // Computing a power costs as much as the rest; the usual exponents do not need it.
        vectorized(|| match self.exponent {
            1.0 => speeds.iter_mut().for_each(|v| *v = signed(*v, v.abs() * factor)),
            2.0 => speeds.iter_mut().for_each(|v| *v = signed(*v, (*v * factor) * (*v * factor))),
            exponent => speeds.iter_mut().for_each(|v| *v = signed(*v, (v.abs() * factor).powf(exponent))),
        });
    }

    /// Returns whether the mean over speeds up to `reach` away differs from the value at the centre.
    ///
    /// Without a change of sign, the mean of [`RowFilter::mean`](crate::estimation::RowFilter) differs by a fourth-derivative
    /// term, which is less than `4e-3 (reach/vₛ)⁴` at `δ = 1` and `5e-2 (reach/vₛ)⁴` at `δ = 2`.
    pub(crate) fn is_curved(self, v: f64, reach: f64) -> bool {
        let (v, reach) = (v.abs(), reach.abs());
        v < reach || reach > 0.25 * self.speed && v - reach < NOTHING * self.speed
    }

    /// Returns all curves of the given exponents whose columns a summary stores, from the fastest to the slowest.
    pub(crate) fn nodes(exponents: &[f64]) -> impl Iterator<Item = Self> {
        exponents
            .iter()
            .flat_map(|&exponent| (0..NODES).rev().map(move |k| Self { speed: node_speed(k), exponent }))
    }

    /// Replaces the values of the curve of twice the speed by those of this curve, for the exponents 1 and 2. The relative error
    /// grows by the same power.
    pub(crate) fn apply_power(self, values: &mut [f64]) {
        // Values that this curve treats as zero. Smaller ones would be denormal after a few powers.
        let nothing = (-NOTHING).exp();
        let cut = |x: f64| if x.abs() < nothing { 0.0 } else { x };
        vectorized(|| match self.exponent {
            1.0 => values.iter_mut().for_each(|x| *x = cut(*x * x.abs())),
            _ => values.iter_mut().for_each(|x| *x = cut(*x * x.abs() * (*x * *x))),
        });
    }

    /// Returns whether the values of this curve are powers of those of another.
    pub(crate) fn is_power_of(self, other: Self) -> bool {
        self.exponent == other.exponent
            && EXPONENTS.contains(&self.exponent)
            && 2.0 * self.speed == other.speed
    }

    /// Returns the column as a combination of stored columns, with their indices in [`Self::nodes`].
    pub(crate) fn interpolated(self) -> Vec<(usize, f64)> {
        let shape = EXPONENTS.iter().position(|&e| e == self.exponent).unwrap_or(0);
        let x = (self.speed.ln() - node(0.0)) / STEP;
        let first = ((x.floor() - (POINTS / 2 - 1) as f64).max(0.0) as usize).min(NODES - POINTS);
        let points = first..first + POINTS;
        points
            .clone()
            .map(|j| {
                let others = points.clone().filter(|&k| k != j);
                let weight = others.map(|k| (x - k as f64) / (j as f64 - k as f64)).product();
                (shape * NODES + NODES - 1 - j, weight)
            })
            .collect()
    }
}

/// Returns `sign(v) exp(−power)`, or zero if it is negligible.
#[inline(always)]
fn signed(v: f64, power: f64) -> f64 {
    let value = exp_of_negative(if power > NOTHING { NOTHING } else { power }).copysign(v);
    if v == 0.0 || power > NOTHING { 0.0 } else { value }
}

/// Computes `exp(−x)` for `x` from 0 to [`NOTHING`], with an error of 2e-16.
///
/// Summaries store 40 columns per joint. This implementation has no branches and no calls, so that loops over samples are
/// vectorized, unlike library exponentials. Its results are bitwise identical on every processor.
#[inline(always)]
fn exp_of_negative(x: f64) -> f64 {
    // ln 2 as a sum of two parts: products of the first part with integers up to 2¹¹ are exact.
    const LN_2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
    // Adding this constant rounds to an integer, which is then stored in the last bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const INVERSE_FACTORIALS: [f64; 13] = [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    let shifted = ROUND - x * std::f64::consts::LOG2_E;
    let integer = shifted - ROUND;
    let rest = -x - integer * LN_2[0] - integer * LN_2[1];
    let mantissa = INVERSE_FACTORIALS.iter().fold(0.0, |sum, c| sum * rest + c);
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    mantissa * power
}

/// Step of the nodes in the logarithm of the speed.
const STEP: f64 = 0.5 * std::f64::consts::LN_2;

/// Returns the logarithm of the speed of a node, in ascending order.
pub(crate) fn node(k: f64) -> f64 {
    FASTEST.ln() - ((NODES - 1) as f64 - k) * STEP
}

/// Returns the speed of a node. Every second one is exactly twice as fast.
fn node_speed(k: usize) -> f64 {
    let below = NODES - 1 - k;
    let factor = if below % 2 == 1 { std::f64::consts::FRAC_1_SQRT_2 } else { 1.0 };
    FASTEST * factor / f64::from(1u32 << (below / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_agree_with_the_standard_library() {
        for k in 0..=400_000 {
            let x = NOTHING * f64::from(k) / 400_000.0;
            let (found, expected) = (exp_of_negative(x), (-x).exp());
            assert!((found / expected - 1.0).abs() < 5e-16, "{x}: {found} {expected}");
        }
        let curve = StribeckCurve { speed: 0.5, exponent: 1.7 };
        for v in [-3.0, -0.01, 0.02, 0.7] {
            let expected: f64 = (-(f64::abs(v) / 0.5).powf(1.7)).exp() * f64::signum(v);
            assert!((curve.value(v) / expected - 1.0).abs() < 1e-14, "{v}");
        }
        assert!(curve.value(0.0) == 0.0 && curve.value(1e9) == 0.0);
    }

    #[test]
    fn columns_are_powers_of_those_at_twice_the_speed() {
        let speeds: Vec<f64> = (-3000..=3000).map(|k| 1e-3 * f64::from(k)).collect();
        let nodes: Vec<StribeckCurve> = StribeckCurve::nodes(&EXPONENTS).collect();
        assert_eq!(nodes.len(), 2 * NODES);
        let mut columns: Vec<(usize, Vec<f64>)> = Vec::new();
        let mut exponentials = 0;
        for (k, &curve) in nodes.iter().enumerate() {
            assert!((curve.speed.ln() - node((NODES - 1 - k % NODES) as f64)).abs() < 1e-14);
            let before = (0..k).rfind(|&j| curve.is_power_of(nodes[j]) && columns[j].0 < MOST_POWERS);
            let (powers, column) = if let Some(j) = before {
                let (powers, mut column) = columns[j].clone();
                curve.apply_power(&mut column);
                (powers + 1, column)
            } else {
                exponentials += 1;
                let mut column = speeds.clone();
                curve.apply(&mut column);
                (0, column)
            };
            // Error of the exponential (tested above), doubled for the rounding of the powers.
            let most = 1e-15 * curve.exponent.exp2().powi(4);
            for (v, x) in speeds.iter().zip(&column) {
                let expected = curve.value(*v);
                assert!((x - expected).abs() < most, "{curve:?} at {v}: {x} {expected}");
            }
            columns.push((powers, column));
        }
        // Two chains of speeds for each exponent, each with one exponential for five columns.
        assert_eq!(exponentials, 2 * 2 * NODES.div_ceil(2).div_ceil(MOST_POWERS + 1));
    }

    #[test]
    fn values_in_the_middle_replace_means_where_stated() {
        use crate::estimation::RowFilter;
        for (exponent, factor) in [(1.0, 4e-3), (2.0, 5e-2)] {
            let curve = StribeckCurve { speed: 0.1, exponent };
            for reach in [0.003, 0.01, 0.025] {
                for k in 0..100 {
                    let v = reach * (1.0 + 0.2 * f64::from(k));
                    assert!(!curve.is_curved(v, reach), "{v} {reach}");
                    let error = RowFilter::mean(&RowFilter::points(v, reach).map(|v| curve.value(v)))
                        - curve.value(v);
                    // Sixteen points leave 0.7 % of the second-derivative term, which the weight cancels.
                    let most = factor * (reach / 0.1).powi(4) + 7e-3 * (reach / 0.1).powi(2);
                    assert!(error.abs() < most, "{exponent} {v} {reach}: {error}");
                }
            }
            assert!(curve.is_curved(0.02, 0.03) && curve.is_curved(0.1, 0.03) && !curve.is_curved(8.0, 0.9));
        }
    }

    #[test]
    fn the_interpolation_error_is_as_stated() {
        let nodes: Vec<StribeckCurve> = StribeckCurve::nodes(&EXPONENTS).collect();
        for (exponent, most) in [(1.0, 1e-4), (2.0, 3e-3)] {
            for k in 0..200 {
                let speed = (node(2.0) + f64::from(k) / 200.0 * (NODES - 5) as f64 * STEP).exp();
                let curve = StribeckCurve { speed, exponent };
                for v in [-3.0, -0.3, 0.001, 0.03, 0.1, 0.4, 2.0] {
                    let held: f64 = curve.interpolated().iter().map(|&(k, w)| w * nodes[k].value(v)).sum();
                    assert!((held - curve.value(v)).abs() < most, "{curve:?} at {v}");
                }
            }
        }
    }
}
