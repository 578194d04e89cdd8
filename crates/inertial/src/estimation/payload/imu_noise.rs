//! Noise of an inertial measurement unit in the equations of a body behind a force/torque sensor.
//!
//! Noise in the regressor adds to its squares and biases estimates towards zero (attenuation). If its variance is known, the
//! expected squares are subtracted from the normal equations: bias-compensated least squares.

use nalgebra::{DMatrix, Vector3};

use crate::estimation::equations::Equations;
use crate::estimation::reduction::blocks::Gram;
use crate::estimation::reduction::factor::Factor;
use crate::estimation::reduction::summary::Summary;
use crate::linalg::Triangle;
use crate::spatial::{Motion, body_regressor};

/// Pivots, relative to their column, below which they count as rounding errors.
const ROUNDING: f64 = 1e-10;

/// Variances of the readings of an inertial measurement unit, in the band of the equations, by axis.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ImuNoise {
    /// Variances of the accelerations (m²/s⁴).
    pub acceleration: [f64; 3],
    /// Variances of the angular accelerations (rad²/s⁴).
    pub angular_acceleration: [f64; 3],
}

/// Part of the noise that was subtracted from a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compensated {
    /// Noise of accelerations and angular accelerations.
    All,
    /// Noise of accelerations only, because that of angular accelerations is as large as the motion.
    Acceleration,
    /// No noise, because it is as large as the motion.
    Nothing,
}

impl ImuNoise {
    /// Subtracts the expected squares of the noise from a summary of [`SingleBody`](super::force_sensor::SingleBody).
    pub fn compensate(&self, equations: &Equations<'_>, summary: Summary) -> (Summary, Compensated) {
        let only = Self { angular_acceleration: [0.0; 3], ..*self };
        for (noise, done) in [(self, Compensated::All), (&only, Compensated::Acceleration)] {
            if let Some(out) = noise.without_noise(equations, &summary) {
                return (out, done);
            }
        }
        (summary, Compensated::Nothing)
    }

    /// Returns the expected products of the noise in the rows of each channel, in the ten parameters.
    fn products(&self) -> Vec<DMatrix<f64>> {
        let mut out = vec![DMatrix::zeros(10, 10); 6];
        let still = Motion::new(Vector3::zeros(), Vector3::zeros());
        let unit = |k: usize| Vector3::from_fn(|i, _| if i == k { 1.0 } else { 0.0 });
        let acceleration = (0..3).map(|k| (Motion::new(Vector3::zeros(), unit(k)), self.acceleration[k]));
        let angular = (0..3).map(|k| (Motion::new(unit(k), Vector3::zeros()), self.angular_acceleration[k]));
        for (direction, variance) in acceleration.chain(angular) {
            let y = body_regressor(&still, &direction);
            for (channel, out) in out.iter_mut().enumerate() {
                // Spatial vectors start with moments, channels with forces.
                let row = y.row((channel + 3) % 6);
                *out += row.transpose() * row * variance;
            }
        }
        out
    }

    /// Returns the summary without the expected squares of the noise; `None` if they exceed those of the motion.
    fn without_noise(&self, equations: &Equations<'_>, summary: &Summary) -> Option<Summary> {
        let plain = |(i, c): (usize, &Vec<(usize, f64)>)| *c == [(i, 1.0)];
        let is_one_body = equations.channels.len() == 6
            && equations.rank() == 10
            && equations.regrouping.combinations.iter().enumerate().all(plain);
        if !is_one_body {
            return None;
        }
        let mut out = summary.clone();
        let channels = out.factors.iter_mut().zip(&equations.channels).zip(self.products());
        for ((factor, channel), products) in channels {
            let noise = |i: usize, j: usize| match [i, j].map(|k| channel.unknowns.get(k).copied()) {
                [Some(a), Some(b)] if a < 10 && b < 10 => products[(a, b)],
                _ => 0.0,
            };
            subtract_noise(factor, noise)?;
        }
        Some(out)
    }
}

/// Subtracts `noise` for each row from the squares of a channel; returns `None` if the difference is not positive semidefinite.
///
/// The residual remains that of the data: noise of the regressor is a part of it.
fn subtract_noise(factor: &mut Factor, noise: impl Fn(usize, usize) -> f64) -> Option<()> {
    let (width, n) = (factor.triangle.width(), factor.unknowns());
    let r = factor.triangle.matrix();
    let mut squares = r.tr_mul(&r);
    let before = squares.diagonal();
    let taken = DMatrix::from_fn(n, n, |i, j| factor.count as f64 * noise(i, j));
    let mut block = squares.view_mut((0, 0), (n, n));
    block -= &taken;
    for i in 0..n {
        eliminate(&mut squares, i, ROUNDING * before[i])?;
    }
    // Solutions for both forces; columns without a pivot are zero.
    let mut solutions = squares.view((0, n), (n, width - n)).into_owned();
    for mut x in solutions.column_iter_mut() {
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|j| squares[(i, j)] * x[j]).sum();
            let pivot = squares[(i, i)];
            x[i] = if pivot > 0.0 { (x[i] - known) / pivot } else { 0.0 };
        }
    }
    let mut forces = squares.view_mut((n, n), (width - n, width - n));
    forces += solutions.tr_mul(&(taken * &solutions));
    for i in n..width {
        eliminate(&mut squares, i, ROUNDING * before[i])?;
    }
    let places = (0..width).flat_map(|i| (i..width).map(move |j| (i, j)));
    let upper: Vec<f64> = places.map(|place| squares[place]).collect();
    factor.triangle = Triangle::from_upper(width, &upper).ok()?;
    for Gram { rows, upper } in factor.blocks.iter_mut().filter(|b| !b.upper.is_empty()) {
        let places = (0..=n).flat_map(|i| (i..=n).map(move |j| (i, j)));
        for (entry, (i, j)) in upper.iter_mut().zip(places).filter(|(_, (i, j))| *i < n && *j < n) {
            *entry -= *rows as f64 * noise(i, j);
        }
    }
    Some(())
}

/// Performs one step of the Cholesky factorization: row `i` of the factor and the remaining matrix. Pivots up to `least` count as
/// zero; returns `None` if a pivot is more negative than that.
fn eliminate(squares: &mut DMatrix<f64>, i: usize, least: f64) -> Option<()> {
    let (width, pivot) = (squares.ncols(), squares[(i, i)]);
    if pivot < -least {
        return None;
    }
    let scale = if pivot > least { pivot.sqrt().recip() } else { 0.0 };
    (i..width).for_each(|j| squares[(i, j)] *= scale);
    for k in i + 1..width {
        let x = squares[(i, k)];
        (k..width).for_each(|j| squares[(k, j)] -= x * squares[(i, j)]);
    }
    Some(())
}
