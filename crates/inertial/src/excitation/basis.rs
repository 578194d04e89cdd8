//! Basis functions of trajectories.

use std::f64::consts::{PI, TAU};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Highest degree of a B-spline.
const MOST_DEGREE: usize = 7;

/// Profile of a movement from one point to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Cycloid `s − sin(2πs)/2π` (paper 002, eqs 28 and 29).
    Cycloid,
    /// Polynomial `10s³ − 15s⁴ + 6s⁵`.
    Quintic,
}

impl Profile {
    /// Returns value and derivatives at the fraction `s` (0 to 1) of the movement.
    fn at(self, s: f64) -> [f64; 3] {
        match self {
            Self::Cycloid => {
                let (sin, cos) = (TAU * s).sin_cos();
                [s - sin / TAU, 1.0 - cos, TAU * sin]
            }
            Self::Quintic => {
                let r = s * s * (s * (6.0 * s - 15.0) + 10.0) * s;
                [r, 30.0 * (s * (s - 1.0)).powi(2), 60.0 * s * (s * (2.0 * s - 3.0) + 1.0)]
            }
        }
    }
}

/// Set of functions of time. A trajectory is a linear combination of them, with the same set for every joint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Basis {
    /// Fourier series `1, sin ωt, cos ωt, sin 2ωt, cos 2ωt, …` with `ω = 2π/period` (Swevers et al. 1997; paper 002, eq. 40).
    Fourier {
        /// Period of the first harmonic (s).
        period: f64,
        /// Number of harmonics.
        harmonics: usize,
    },
    /// Clamped B-spline with uniform knots over `0..duration`; the coefficients are control points.
    Spline {
        /// Degree of the pieces, 3 to 7.
        degree: usize,
        /// End time (s).
        duration: f64,
        /// Number of coefficients.
        points: usize,
    },
    /// Position at the start, then the velocities at the inner knots. Between knots the velocity follows half a cosine wave; it is
    /// zero at the first and the last knot.
    VelocityKnots {
        /// Knot times (s), from zero, ascending.
        knots: Vec<f64>,
    },
    /// Positions at the knots, with a movement from rest to rest between successive knots.
    PointToPoint {
        /// Knot times (s), from zero, ascending.
        knots: Vec<f64>,
        /// Profile of each movement.
        profile: Profile,
    },
}

impl Basis {
    /// Returns the reason if this is not a valid basis for `0..=duration`.
    pub(super) fn fault(&self, duration: f64) -> Option<String> {
        let knots = |knots: &[f64]| {
            if knots.len() < 2 {
                return Some("there are fewer than two knots".to_owned());
            }
            if knots[0] != 0.0 || knots.iter().any(|t| !t.is_finite()) || !knots.is_sorted_by(|a, b| a < b) {
                return Some("the knots do not start at zero and ascend".to_owned());
            }
            ends(knots[knots.len() - 1], duration)
        };
        match self {
            Self::Fourier { period, harmonics } => {
                if *period > 0.0 && period.is_finite() {
                    (*harmonics == 0).then(|| "there are no harmonics".to_owned())
                } else {
                    Some(format!("the period is {period}, expected a number above zero"))
                }
            }
            Self::Spline { degree, duration: end, points } => {
                if !(3..=MOST_DEGREE).contains(degree) {
                    return Some(format!("the degree is {degree}, expected 3 to {MOST_DEGREE}"));
                }
                // A rest condition determines three points at each end.
                if *points <= (*degree).max(5) {
                    return Some(format!("{points} points are too few for the degree {degree}"));
                }
                ends(*end, duration)
            }
            Self::VelocityKnots { knots: times } | Self::PointToPoint { knots: times, .. } => knots(times),
        }
    }

    /// Returns the number of functions.
    pub fn len(&self) -> usize {
        match self {
            Self::Fourier { harmonics, .. } => 2 * harmonics + 1,
            Self::Spline { points, .. } => *points,
            Self::VelocityKnots { knots } => knots.len() - 1,
            Self::PointToPoint { knots, .. } => knots.len(),
        }
    }

    /// Returns the period of the fastest oscillation of the functions over a duration (s).
    pub(super) fn shortest_period(&self, duration: f64) -> f64 {
        let closest = |knots: &[f64]| knots.windows(2).map(|w| w[1] - w[0]).fold(duration, f64::min);
        match self {
            Self::Fourier { period, harmonics } => period / *harmonics as f64,
            Self::Spline { degree, duration, points } => 2.0 * duration / (points - degree) as f64,
            Self::VelocityKnots { knots } => 2.0 * closest(knots),
            // The acceleration oscillates once within each movement.
            Self::PointToPoint { knots, .. } => closest(knots),
        }
    }

    /// Returns whether there are no functions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `visit` with the index of each function that is nonzero near `t`, and its value and first two derivatives there.
    #[inline]
    pub fn visit(&self, t: f64, mut visit: impl FnMut(usize, [f64; 3])) {
        match self {
            Self::Fourier { period, harmonics } => {
                visit(0, [1.0, 0.0, 0.0]);
                for k in 1..=*harmonics {
                    let w = TAU * k as f64 / period;
                    let (sin, cos) = (w * t).sin_cos();
                    visit(2 * k - 1, [sin, w * cos, -w * w * sin]);
                    visit(2 * k, [cos, -w * sin, -w * w * cos]);
                }
            }
            Self::Spline { degree, duration, points } => spline(*degree, *duration, *points, t, visit),
            Self::VelocityKnots { knots } => {
                visit(0, [1.0, 0.0, 0.0]);
                let inner = &knots[1..knots.len() - 1];
                for (i, &knot) in inner.iter().enumerate().take_while(|(i, _)| t > knots[*i]) {
                    let (before, after) = (knot - knots[i], knots[i + 2] - knot);
                    let value = if t <= knot {
                        half_wave((t - knots[i]) / before, before)
                    } else {
                        let [x, v, a] = half_wave(((knots[i + 2] - t) / after).max(0.0), after);
                        [0.5 * (before + after) - x, v, -a]
                    };
                    visit(i + 1, value);
                }
            }
            Self::PointToPoint { knots, profile } => {
                let k = knots[1..knots.len() - 1].partition_point(|&knot| knot <= t);
                let h = knots[k + 1] - knots[k];
                let [p, v, a] = profile.at(((t - knots[k]) / h).clamp(0.0, 1.0));
                let (v, a) = (v / h, a / (h * h));
                visit(k, [1.0 - p, -v, -a]);
                visit(k + 1, [p, v, a]);
            }
        }
    }

    /// Returns the combinations that start and end at rest: row `i` of the result holds the coefficients of the `i`-th
    /// combination. The first one is the constant, and all others are zero at the start, so that the factor of the first is the
    /// start position.
    ///
    /// A Fourier series rests at the start of its period; to end at rest it must last whole periods.
    pub fn at_rest(&self) -> Vec<Vec<f64>> {
        let n = self.len();
        let row = |entries: &[(usize, f64)]| {
            let mut row = vec![0.0; n];
            entries.iter().for_each(|&(k, x)| row[k] += x);
            row
        };
        match self {
            // v(0) = ω Σ k s_k and a(0) = −ω² Σ k² c_k vanish, and so does Σ c_k except for the constant.
            Self::Fourier { harmonics, .. } => {
                let mut out = vec![row(&[(0, 1.0)])];
                for k in 2..=*harmonics {
                    let square = (k * k) as f64;
                    out.push(row(&[(2 * k - 1, 1.0), (1, -(k as f64))]));
                    out.push(row(&[(2 * k, 1.0), (2, -square), (0, square - 1.0)]));
                }
                out
            }
            // Position, velocity and acceleration at an end depend on its three outermost control points.
            Self::Spline { points, .. } => {
                let mut out = vec![vec![1.0; n]];
                out.extend((3..points.saturating_sub(3)).map(|k| row(&[(k, 1.0)])));
                out.push(row(&[(n - 3, 1.0), (n - 2, 1.0), (n - 1, 1.0)]));
                out
            }
            Self::VelocityKnots { .. } => (0..n).map(|k| row(&[(k, 1.0)])).collect(),
            Self::PointToPoint { .. } => {
                let mut out = vec![vec![1.0; n]];
                out.extend((1..n).map(|k| row(&[(k, 1.0)])));
                out
            }
        }
    }
}

/// Checks that an end time equals the duration.
fn ends(end: f64, duration: f64) -> Option<String> {
    // Tolerance for decimals in files.
    ((end - duration).abs() > 1e-9 * duration)
        .then(|| format!("its functions end at {end} s, the trajectory at {duration} s"))
}

/// Returns distance, velocity and acceleration for a velocity that rises from 0 to 1 over the time `h`, at the fraction `s` of it.
fn half_wave(s: f64, h: f64) -> [f64; 3] {
    let (sin, cos) = (PI * s).sin_cos();
    [0.5 * h * (s - sin / PI), 0.5 * (1.0 - cos), 0.5 * PI * sin / h]
}

/// Evaluates the functions of a clamped B-spline that are nonzero at `t`, with derivatives (Cox-de Boor recursion).
fn spline(degree: usize, duration: f64, points: usize, t: f64, mut visit: impl FnMut(usize, [f64; 3])) {
    let pieces = points - degree;
    let step = duration / pieces as f64;
    let knot = |i: usize| i.saturating_sub(degree).min(pieces) as f64 * step;
    let span = ((t / step).max(0.0) as usize).min(pieces - 1);
    // Entry k belongs to the function `span + k` of the current degree; those outside are zero.
    let mut value = [0.0; MOST_DEGREE + 2];
    let (mut slope, mut curve) = (value, value);
    value[0] = 1.0;
    let first = span + degree;
    for d in 1..=degree {
        let (old, old_slope) = (value, slope);
        for k in 0..=d {
            // Function i of degree d from functions of degree d − 1: entry k − 1 is function i there, entry k is i + 1.
            let i = first + k - d;
            let part = |old: &[f64; MOST_DEGREE + 2], k: Option<usize>, from: usize| {
                let width = knot(from + d) - knot(from);
                match k {
                    Some(k) if k < d && width > 0.0 => old[k] / width,
                    _ => 0.0,
                }
            };
            let (l, r) = (k.checked_sub(1), Some(k));
            value[k] = part(&old, l, i) * (t - knot(i)) + part(&old, r, i + 1) * (knot(i + d + 1) - t);
            if d + 1 >= degree {
                slope[k] = d as f64 * (part(&old, l, i) - part(&old, r, i + 1));
            }
            if d == degree {
                curve[k] = d as f64 * (part(&old_slope, l, i) - part(&old_slope, r, i + 1));
            }
        }
    }
    for k in 0..=degree {
        visit(span + k, [value[k], slope[k], curve[k]]);
    }
}
