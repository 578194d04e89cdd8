//! Stribeck curves, and the curves whose columns a summary holds.
//!
//! A summary holds the column `sign(v) exp(−(|v|/vₛ)^δ)` at [`NODES`] speeds `vₛ` for each of the [`EXPONENTS`] `δ`. Between
//! them the column is interpolated in `ln vₛ` (six points: to 3 thousandths of its height at `δ = 2`, to 1 ten-thousandth at
//! `δ = 1`).

/// Exponents of the bend: Tustin's and the Gaussian one.
pub(crate) const EXPONENTS: [f64; 2] = [1.0, 2.0];
/// Speeds at which columns are kept: from 3 mm/s (or mrad/s) to 3 m/s (rad/s), steps of 0.36 in the logarithm.
pub(crate) const NODES: usize = 20;
const SLOWEST: f64 = 3e-3;
const FASTEST: f64 = 3.0;
/// Negative exponent from which on the curve is zero in double precision, beside the Coulomb friction that it adds to.
const NOTHING: f64 = 40.0;
/// Points of the interpolation.
const POINTS: usize = 6;

/// Speed and shape of a Stribeck term.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bend {
    /// Stribeck speed `vₛ`.
    pub speed: f64,
    /// Exponent `δ`.
    pub exponent: f64,
}

impl Bend {
    /// `sign(v) exp(−(|v|/vₛ)^δ)`.
    pub fn value(self, v: f64) -> f64 {
        let ratio = v.abs() / self.speed;
        // A power costs as much as all else, and the usual exponents need none.
        let power = match self.exponent {
            1.0 => ratio,
            2.0 => ratio * ratio,
            exponent => ratio.powf(exponent),
        };
        if v == 0.0 || power > NOTHING { 0.0 } else { v.signum() * (-power).exp() }
    }

    /// Returns all curves of some exponents whose columns a summary holds.
    pub(crate) fn nodes(exponents: &[f64]) -> impl Iterator<Item = Self> {
        exponents
            .iter()
            .flat_map(|&exponent| (0..NODES).map(move |k| Self { speed: node(k as f64).exp(), exponent }))
    }

    /// The column as a combination of those held, by their numbers in [`Self::nodes`].
    pub(crate) fn interpolated(self) -> Vec<(usize, f64)> {
        let shape = EXPONENTS.iter().position(|&e| e == self.exponent).unwrap_or(0);
        let x = (self.speed.ln() - node(0.0)) / step();
        let first = ((x.floor() - (POINTS / 2 - 1) as f64).max(0.0) as usize).min(NODES - POINTS);
        let points = first..first + POINTS;
        points
            .clone()
            .map(|j| {
                let others = points.clone().filter(|&k| k != j);
                let weight = others.map(|k| (x - k as f64) / (j as f64 - k as f64)).product();
                (shape * NODES + j, weight)
            })
            .collect()
    }
}

fn step() -> f64 {
    (FASTEST / SLOWEST).ln() / (NODES - 1) as f64
}

pub(crate) fn node(k: f64) -> f64 {
    SLOWEST.ln() + k * step()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_is_interpolated_as_finely_as_stated() {
        let nodes: Vec<Bend> = Bend::nodes(&EXPONENTS).collect();
        for (exponent, most) in [(1.0, 1e-4), (2.0, 3e-3)] {
            for k in 0..200 {
                let speed = (node(2.0) + f64::from(k) / 200.0 * (NODES - 5) as f64 * step()).exp();
                let bend = Bend { speed, exponent };
                for v in [-3.0, -0.3, 0.001, 0.03, 0.1, 0.4, 2.0] {
                    let held: f64 = bend.interpolated().iter().map(|&(k, w)| w * nodes[k].value(v)).sum();
                    assert!((held - bend.value(v)).abs() < most, "{bend:?} at {v}");
                }
            }
        }
    }
}
