//! Regressor columns of joint terms, for measured samples.

use crate::estimation::joint_model::expression::FormulaState;
use crate::estimation::joint_model::stribeck::{MOST_POWERS, StribeckCurve};
use crate::estimation::joint_model::terms::{Feature, GivenTerm, Term};
use crate::estimation::reduction::measurements::Measurements;
use crate::estimation::reduction::row_filter::{POINTS, RowFilter};

/// Ratio of a speed to its change around the sample from which the speed counts as constant: friction is then evaluated at the
/// sample.
const STEADY: f64 = 10.0;

/// Speeds of one shaft at several samples, shared by the curves of its friction.
#[derive(Debug, Default)]
pub(crate) struct ShaftSpeeds {
    /// Shaft; empty if no speeds are loaded.
    shaft: Vec<(usize, f64)>,
    /// Speeds at the samples, followed by the [points](RowFilter::points) around each of the changing ones.
    speeds: Vec<f64>,
    /// Number of samples.
    count: usize,
    /// Index, speed and [reach](RowFilter::reach) of samples around which the speed changes by a tenth of its magnitude or more.
    changing: Vec<(usize, f64, f64)>,
    /// Last two curves at these speeds.
    curves: [Curve; 2],
}

/// Values of a Stribeck curve.
#[derive(Debug, Default)]
struct Curve {
    /// Speed and exponent; `None` before the first use.
    stribeck: Option<StribeckCurve>,
    /// Number of powers since the last exponential.
    powers: usize,
    values: Vec<f64>,
}

impl ShaftSpeeds {
    /// Discards the speeds, because the next features are evaluated at other samples.
    pub fn clear(&mut self) {
        self.shaft.clear();
    }

    /// Loads the speeds that a feature depends on, unless they are loaded already.
    fn load(&mut self, feature: &Feature, data: &Measurements<'_>, samples: impl Iterator<Item = usize>) {
        if !self.shaft.is_empty() && self.shaft == feature.shaft {
            return;
        }
        self.shaft.clone_from(&feature.shaft);
        self.speeds.clear();
        self.changing.clear();
        self.curves.iter_mut().for_each(|curve| curve.stribeck = None);
        for (k, s) in samples.enumerate() {
            let v = feature.along(data.v(), data.nv(), s);
            self.speeds.push(v);
            let Some(filter) = data.filter else { continue };
            let reach = filter.reach(feature.along(data.a(), data.nv(), s));
            if v.abs() < STEADY * reach.abs() {
                self.changing.push((k, v, reach));
            }
        }
        self.count = self.speeds.len();
        for &(_, v, reach) in &self.changing {
            self.speeds.extend_from_slice(&RowFilter::points(v, reach));
        }
    }

    /// Appends the column of a Stribeck curve at the loaded speeds to `out`.
    fn append_curve(&mut self, stribeck: StribeckCurve, out: &mut Vec<f64>) {
        // Curves usually come in the order of their speeds, each at half the speed of the last but one.
        self.curves.swap(0, 1);
        let [_, Curve { stribeck: before, powers, values }] = &mut self.curves;
        if before.is_some_and(|before| stribeck.is_power_of(before)) && *powers < MOST_POWERS {
            stribeck.apply_power(values);
            *powers += 1;
        } else {
            values.clear();
            values.extend_from_slice(&self.speeds);
            stribeck.apply(values);
            *powers = 0;
        }
        *before = Some(stribeck);
        let (at_samples, around) = values.split_at(self.count);
        let start = out.len();
        out.extend_from_slice(at_samples);
        for (&(k, v, reach), points) in self.changing.iter().zip(around.chunks_exact(POINTS)) {
            if stribeck.is_curved(v, reach) {
                out[start + k] = RowFilter::mean(points);
            }
        }
    }
}

impl Feature {
    /// Returns the speed or acceleration of the shaft at a sample, from those of all coordinates.
    fn along(&self, x: &[f64], nv: usize, sample: usize) -> f64 {
        self.shaft.iter().map(|&(k, factor)| factor * x[sample * nv + k]).sum()
    }

    /// Appends the column of this feature at given samples to `out`; `speeds` is reused between features of the same samples.
    pub fn fill(
        &self,
        given: &[GivenTerm],
        data: &Measurements<'_>,
        samples: impl Iterator<Item = usize>,
        speeds: &mut ShaftSpeeds,
        out: &mut Vec<f64>,
    ) {
        let nv = data.nv();
        let along = |x: &[f64], s: usize| self.along(x, nv, s);
        let last = data.len().saturating_sub(1);
        let state = |s: usize| [along(data.v(), s), along(data.a(), s)];
        let of_motion = |s: usize| match (along(data.v(), s), data.filter) {
            // A change of sign cannot be detected at the ends.
            (v, Some(filter)) => {
                let (before, after) = (s.saturating_sub(1), (s + 1).min(last));
                // Almost everywhere the sign does not change.
                if v * along(data.v(), before) > 0.0 && v * along(data.v(), after) > 0.0 {
                    v.signum()
                } else {
                    filter.sign([state(before), state(s), state(after)])
                }
            }
            (0.0, None) => 0.0,
            (v, None) => v.signum(),
        };
        let sign = |s: usize| match (data.signs, &self.shaft[..]) {
            (Some(signs), &[(coordinate, factor)]) => signs[s * nv + coordinate] * factor.signum(),
            _ => of_motion(s),
        };
        match (self.term, self.stribeck) {
            (Term::Viscous, _) => out.extend(samples.map(|s| along(data.v(), s))),
            (Term::RotorInertia, _) => out.extend(samples.map(|s| along(data.a(), s))),
            (Term::Coulomb, _) => out.extend(samples.map(sign)),
            (Term::CoulombPositive, _) => out.extend(samples.map(|s| 0.5 * (sign(s) + 1.0))),
            (Term::CoulombNegative, _) => out.extend(samples.map(|s| 0.5 * (sign(s) - 1.0))),
            (Term::Stribeck, Some(stribeck)) => {
                speeds.load(self, data, samples);
                speeds.append_curve(stribeck, out);
            }
            // Without a Stribeck speed the column is zero.
            (Term::Stribeck, None) => out.extend(samples.map(|_| 0.0)),
            (Term::Offset, _) => out.extend(samples.map(|_| 1.0)),
            (Term::Given { index, .. }, _) => {
                let mut stack = Vec::new();
                let (nq, columns) = (data.nq(), data.columns_per_sample());
                out.extend(samples.map(|s| {
                    let own = s * nv..(s + 1) * nv;
                    let state = FormulaState {
                        q: &data.q()[s * nq..(s + 1) * nq],
                        v: &data.v()[own.clone()],
                        a: &data.a()[own],
                        columns: &data.columns.unwrap_or(&[])[s * columns..(s + 1) * columns],
                    };
                    given[index].expression.value(&state, &mut stack)
                }));
            }
        }
    }
}
