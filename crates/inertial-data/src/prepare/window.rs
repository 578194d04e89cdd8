//! Local polynomials over a window of a stream.

use inertial::mechanism::{JointType, Mechanism};
use nalgebra::{SMatrix, SVector};

use crate::Columns;

/// Number of coefficients of the local polynomials: fourth order, whose second derivative has a relative error of `(ω h)⁴/130` at the
/// angular frequency `ω` for a window of half width `h`.
const COEFFICIENTS: usize = 5;

/// Minimum number of samples in a window: nearly twice the coefficients, so that noise is averaged.
const LEAST_SAMPLES: usize = 9;

/// Number of passes: logarithms are taken about the sample in the middle, then about the smoothed pose, where their derivatives are
/// velocity and acceleration.
const PASSES: usize = 2;

/// Row of a stream.
#[derive(Debug)]
pub(super) struct Row {
    pub t: f64,
    /// Available columns in the order `q dq ddq tau`.
    pub values: Vec<f64>,
}

/// Places of the quantities in [`Row::values`].
#[derive(Debug)]
pub(super) struct Places {
    pub q: Vec<Option<usize>>,
    pub dq: Vec<Option<usize>>,
    pub ddq: Vec<Option<usize>>,
    pub tau: Vec<Option<usize>>,
    /// Whether each velocity coordinate belongs to a floating base.
    pub free: Vec<bool>,
}

impl Places {
    pub fn new(mechanism: &Mechanism, columns: &Columns) -> Self {
        let mut next = 0..;
        let mut places = |found: &[Option<usize>]| -> Vec<Option<usize>> {
            found.iter().map(|c| c.and_then(|_| next.next())).collect()
        };
        let mut free = vec![false; mechanism.nv()];
        let floating =
            |j: &&inertial::mechanism::Joint| j.follows.is_none() && j.joint_type == JointType::Floating;
        mechanism.joints().iter().filter(floating).for_each(|j| free[j.v_range()].fill(true));
        Self {
            q: places(&columns.q),
            dq: places(&columns.dq),
            ddq: places(&columns.ddq),
            tau: places(&columns.tau),
            free,
        }
    }
}

/// Positions and their derivatives in the middle of a window.
pub(super) struct DerivedState {
    pub q: Vec<f64>,
    pub v: Vec<f64>,
    pub a: Vec<f64>,
}

/// Rows around a time, each with its weights for the value, first and second derivative at that time.
pub(super) struct Window<'w> {
    rows: Vec<&'w Row>,
    weights: Vec<[f64; 3]>,
}

impl<'w> Window<'w> {
    /// Computes the weights of rows within `half` of `middle`; too few rows result in an error message.
    pub fn new(rows: impl Iterator<Item = &'w Row>, middle: f64, half: f64) -> Result<Self, String> {
        let rows: Vec<&Row> = rows.collect();
        let powers = |t: f64| {
            let u = (t - middle) / half;
            let (mut out, mut power) = (SVector::<f64, COEFFICIENTS>::zeros(), 1.0);
            for x in out.iter_mut() {
                *x = power;
                power *= u;
            }
            out
        };
        let mut gram = SMatrix::<f64, COEFFICIENTS, COEFFICIENTS>::zeros();
        rows.iter().map(|r| powers(r.t)).for_each(|p| gram += p * p.transpose());
        let count = rows.len();
        let factor = gram.cholesky().filter(|_| count >= LEAST_SAMPLES).ok_or_else(|| {
            format!(
                "a window of {} s holds {count} samples, expected {LEAST_SAMPLES} at least: choose a longer one",
                2.0 * half
            )
        })?;
        let weights = rows.iter().map(|r| {
            let c = factor.solve(&powers(r.t));
            [c[0], c[1] / half, 2.0 * c[2] / (half * half)]
        });
        let weights = weights.collect();
        Ok(Self { rows, weights })
    }

    /// Returns the smoothed value or derivative of a function of the rows' values.
    pub fn fit(&self, of: impl Fn(&[f64]) -> f64, order: usize) -> f64 {
        self.rows.iter().zip(&self.weights).map(|(r, w)| w[order] * of(&r.values)).sum()
    }

    /// Returns the share of white samples that stays independent: the variance of the smoothed value relative to that of the
    /// samples, which equals the remaining bandwidth.
    pub fn independent(&self) -> f64 {
        self.weights.iter().map(|w| w[0] * w[0]).sum::<f64>().clamp(f64::EPSILON, 1.0)
    }

    /// Returns the positions, and the velocities and accelerations derived from them; `middle` are the values of the middle row.
    pub fn state(&self, mechanism: &Mechanism, places: &Places, middle: &[f64]) -> DerivedState {
        let mut out = DerivedState {
            q: mechanism.neutral(),
            v: vec![0.0; mechanism.nv()],
            a: vec![0.0; mechanism.nv()],
        };
        for joint in mechanism.joints().iter().filter(|j| j.follows.is_none()) {
            let (places, velocities) = (&places.q[joint.q_range()], joint.v_range());
            // An unknown pose stays neutral.
            let Some(places) = places.iter().copied().collect::<Option<Vec<usize>>>() else { continue };
            let plain =
                places.len() == velocities.len() && !matches!(joint.joint_type, JointType::Planar { .. });
            if plain {
                for (k, &place) in places.iter().enumerate() {
                    let fit = |order| self.fit(|values| values[place], order);
                    (out.q[joint.q + k], out.v[joint.v + k], out.a[joint.v + k]) = (fit(0), fit(1), fit(2));
                }
                continue;
            }
            let of = |values: &[f64]| places.iter().map(|&place| values[place]).collect::<Vec<f64>>();
            let mut about = of(middle);
            for _ in 0..PASSES {
                let mut sums = [[0.0; 6]; 3];
                let mut step = [0.0; 6];
                let step = &mut step[..velocities.len()];
                for (row, weights) in self.rows.iter().zip(&self.weights) {
                    joint.joint_type.difference(&about, &of(&row.values), step);
                    for (sum, weight) in sums.iter_mut().zip(weights) {
                        sum.iter_mut().zip(&*step).for_each(|(sum, x)| *sum += weight * x);
                    }
                }
                let n = velocities.len();
                joint.joint_type.integrate(&mut about, &sums[0][..n]);
                out.v[velocities.clone()].copy_from_slice(&sums[1][..n]);
                out.a[velocities.clone()].copy_from_slice(&sums[2][..n]);
            }
            out.q[joint.q_range()].copy_from_slice(&about);
        }
        out
    }
}
