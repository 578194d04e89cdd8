//! Search space of a design: moving coordinates, their limits and basis functions.

use super::basis::Basis;
use super::motion::{BasePullback, Target, base_state};
use super::states::States;
use super::trajectory::Trajectory;
use crate::dynamics::InverseDynamics;
use crate::mechanism::Mechanism;
use crate::{Error, Result};

/// Number of samples that a search evaluates in each period of the fastest oscillation. Between samples, an oscillation exceeds
/// them by at most `1 − cos(π/50)`, which is 0.2 %: the margin of a search for the motion between samples.
const SAMPLES_PER_PERIOD: f64 = 50.0;

/// Coordinate that a trajectory moves, with its limits; missing limits are infinite.
#[derive(Debug, Clone, PartialEq)]
pub struct Coordinate {
    /// Name.
    pub name: String,
    /// Lowest position.
    pub lower: f64,
    /// Highest position.
    pub upper: f64,
    /// Highest speed.
    pub velocity: f64,
    /// Highest acceleration.
    pub acceleration: f64,
}

impl Coordinate {
    /// Creates a coordinate without limits.
    pub(super) fn free(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            lower: f64::NEG_INFINITY,
            upper: f64::INFINITY,
            velocity: f64::INFINITY,
            acceleration: f64::INFINITY,
        }
    }

    /// Returns whether the limits permit any motion.
    pub fn is_free(&self) -> bool {
        self.upper - self.lower > 1e-9 && self.velocity > 1e-9 && self.acceleration > 1e-9
    }

    /// Returns the middle of the range. For an unbounded range this is zero, or the closest feasible value.
    pub fn middle(&self) -> f64 {
        if self.lower.is_finite() && self.upper.is_finite() {
            0.5 * (self.lower + self.upper)
        } else {
            0f64.max(self.lower).min(self.upper)
        }
    }

    /// Returns limit and unit of the position (0), velocity (1) or acceleration (2), above (1) or below (−1).
    pub(super) fn bound(&self, order: usize, sign: f64) -> (f64, f64) {
        match order {
            0 if sign > 0.0 => (self.upper, self.reach()),
            0 => (-self.lower, self.reach()),
            1 => (self.velocity, self.velocity),
            _ => (self.acceleration, self.acceleration),
        }
    }

    /// Returns half of the range: half a turn for an unbounded range.
    pub(super) fn reach(&self) -> f64 {
        let half = (self.upper - self.middle()).min(self.middle() - self.lower).min(std::f64::consts::PI);
        // A range with one finite end, where the middle is at that end.
        if half > 0.0 { half } else { 0.5 * (self.upper - self.lower).min(std::f64::consts::PI) }
    }
}

/// Trajectories that start and end at rest, parametrized by points `x` of order one.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub coordinates: Vec<Coordinate>,
    pub targets: Vec<Target>,
    basis: Basis,
    duration: f64,
    /// Coefficients of the functions that are at rest at both ends.
    rest: Vec<Vec<f64>>,
    /// Position of each coordinate at `x = 0`.
    pub middle: Vec<f64>,
    /// Unit of the variables, for each coordinate and function.
    units: Vec<f64>,
    /// Whether the start positions are given and not variables.
    pub fixed_start: bool,
}

/// Functions of the plan and their derivatives at the samples of a rate.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub count: usize,
    functions: usize,
    values: Vec<[f64; 3]>,
}

impl Table {
    /// Creates a table of the start only.
    pub fn posture(plan: &Plan) -> Result<Self> {
        let mut table = plan.table(1.0 / plan.duration)?;
        table.count = 1;
        table.values.truncate(table.functions);
        Ok(table)
    }

    /// Returns value and derivatives of function `k` at sample `i`.
    #[inline]
    pub fn at(&self, i: usize, k: usize) -> &[f64; 3] {
        &self.values[i * self.functions + k]
    }
}

impl Plan {
    pub fn new(
        mechanism: &Mechanism,
        coordinates: Vec<Coordinate>,
        basis: Basis,
        duration: f64,
        start: Option<&[f64]>,
    ) -> Result<Self> {
        let targets = coordinates
            .iter()
            .map(|c| super::motion::target(mechanism, &c.name))
            .collect::<Result<Vec<_>>>()?;
        let middle = match start {
            Some(start) => start.to_vec(),
            None => coordinates.iter().map(Coordinate::middle).collect(),
        };
        let mut out = Self {
            rest: basis.at_rest(),
            coordinates,
            targets,
            basis,
            duration,
            middle,
            units: Vec::new(),
            fixed_start: start.is_some(),
        };
        if out.functions() < 2 {
            return Err(Error::InvalidOption(
                "the trajectory has no free coefficients: use more harmonics, points or intervals".into(),
            ));
        }
        // Dense enough to resolve the magnitude of every function.
        let table = out.table(200.0 / duration)?;
        for c in &out.coordinates {
            for k in 0..out.functions() {
                let largest = (0..table.count).map(|i| table.at(i, k)).fold([0.0; 3], |m: [f64; 3], x| {
                    [m[0].max(x[0].abs()), m[1].max(x[1].abs()), m[2].max(x[2].abs())]
                });
                let unit = [c.reach(), c.velocity, c.acceleration]
                    .into_iter()
                    .zip(largest)
                    .filter(|(limit, size)| limit.is_finite() && *size > 0.0)
                    .map(|(limit, size)| limit / size)
                    .fold(f64::INFINITY, f64::min);
                out.units.push(if unit.is_finite() { unit } else { 1.0 });
            }
        }
        Ok(out)
    }

    /// Returns the duration (s).
    pub fn duration(&self) -> f64 {
        self.duration
    }

    /// Returns a smaller motion about the same start.
    pub fn shrunk(&self, x: &[f64], size: f64) -> Vec<f64> {
        let m = self.functions();
        x.iter().enumerate().map(|(i, x)| if i % m == 0 { *x } else { size * x }).collect()
    }

    /// Returns the number of functions of each coordinate.
    pub fn functions(&self) -> usize {
        self.rest.len()
    }

    /// Returns the number of variables.
    pub fn dimension(&self) -> usize {
        self.coordinates.len() * self.functions()
    }

    /// Evaluates the functions at the samples of a rate.
    pub fn table(&self, rate: f64) -> Result<Table> {
        let count = self.samples(rate)?;
        let (functions, size) = (self.functions(), self.basis.len());
        let mut values = vec![[0.0; 3]; count * functions];
        let mut all = vec![[0.0; 3]; size];
        for i in 0..count {
            all.fill([0.0; 3]);
            self.basis.visit((i as f64 / rate).min(self.duration), |k, x| all[k] = x);
            for (row, to) in self.rest.iter().zip(&mut values[i * functions..]) {
                for (c, x) in row.iter().zip(&all).filter(|(c, _)| **c != 0.0) {
                    (0..3).for_each(|d| to[d] += c * x[d]);
                }
            }
        }
        Ok(Table { count, functions, values })
    }

    /// Returns the rate (Hz) at which a search evaluates motions that are measured at `rate`, and the number of measured samples
    /// that each of its samples represents.
    pub fn search_rate(&self, rate: f64) -> Result<(f64, f64)> {
        let search = rate.min(SAMPLES_PER_PERIOD / self.basis.shortest_period(self.duration));
        Ok((search, self.samples(rate)? as f64 / self.samples(search)? as f64))
    }

    /// Returns the number of samples at a rate.
    pub fn samples(&self, rate: f64) -> Result<usize> {
        self.trajectory(&vec![0.0; self.dimension().max(self.units.len())])?.samples(rate)
    }

    /// Returns the trajectory of a point.
    pub fn trajectory(&self, x: &[f64]) -> Result<Trajectory> {
        let m = self.functions();
        let coefficients: Vec<Vec<f64>> = (0..self.coordinates.len())
            .map(|j| {
                (0..self.basis.len())
                    .map(|b| (0..m).map(|k| self.factor(x, j, k) * self.rest[k][b]).sum())
                    .collect()
            })
            .collect();
        let names = self.coordinates.iter().map(|c| c.name.clone()).collect();
        Trajectory::new(names, self.duration, self.basis.clone(), &coefficients)
    }

    /// Returns the unit of a variable.
    #[inline]
    pub fn unit(&self, j: usize, k: usize) -> f64 {
        if k == 0 && self.fixed_start {
            0.0
        } else {
            self.units.get(j * self.functions() + k).copied().unwrap_or(0.0)
        }
    }

    fn factor(&self, x: &[f64], j: usize, k: usize) -> f64 {
        let own = x[j * self.functions() + k] * self.unit(j, k);
        if k == 0 { self.middle[j] + own } else { own }
    }

    /// Returns the point of a motion through the given postures, for a plan of movements from rest to rest.
    pub fn through(&self, postures: &[Vec<f64>]) -> Vec<f64> {
        let m = self.functions();
        let mut x = vec![0.0; self.dimension()];
        for (k, posture) in postures.iter().enumerate().take(m) {
            for (j, position) in posture.iter().enumerate() {
                // The first function shifts all waypoints, each other function only its own.
                let from = if k == 0 { self.middle[j] } else { postures[0][j] };
                let unit = self.unit(j, k);
                x[j * m + k] = if unit > 0.0 { (position - from) / unit } else { 0.0 };
            }
        }
        x
    }

    /// Computes positions, velocities and accelerations of the coordinates at all samples: `[q, v, a]` of coordinate `j` at sample
    /// `i` is element `i · coordinates + j`.
    pub fn follow(&self, table: &Table, x: &[f64], out: &mut Vec<[f64; 3]>) {
        let (n, m) = (self.coordinates.len(), self.functions());
        out.clear();
        out.resize(table.count * n, [0.0; 3]);
        let factors: Vec<f64> =
            (0..n).flat_map(|j| (0..m).map(move |k| (j, k))).map(|(j, k)| self.factor(x, j, k)).collect();
        for (row, to) in table.values.chunks_exact(m).zip(out.chunks_exact_mut(n.max(1))) {
            for (factors, to) in factors.chunks_exact(m).zip(to) {
                let mut sum = [0.0; 3];
                for (f, b) in factors.iter().zip(row) {
                    sum[0] += f * b[0];
                    sum[1] += f * b[1];
                    sum[2] += f * b[2];
                }
                *to = sum;
            }
        }
    }

    /// Computes the states of the mechanism from those of the coordinates.
    pub fn states(&self, mechanism: &Mechanism, followed: &[[f64; 3]], states: &mut States) {
        let (n, nq, nv) = (self.coordinates.len(), mechanism.nq(), mechanism.nv());
        let rest = mechanism.assembly();
        for i in 0..states.count {
            let row = &followed[i * n..(i + 1) * n];
            let q = &mut states.q[i * nq..(i + 1) * nq];
            q.copy_from_slice(rest);
            let (v, a) = (&mut states.v[i * nv..(i + 1) * nv], &mut states.a[i * nv..(i + 1) * nv]);
            let mut base = None;
            for (target, x) in self.targets.iter().zip(row) {
                match *target {
                    Target::Joint { q: iq, v: iv } => (q[iq], v[iv], a[iv]) = (x[0], x[1], x[2]),
                    Target::Base(k) => {
                        let base = base.get_or_insert([[0.0; 6]; 3]);
                        (0..3).for_each(|d| base[d][k] = x[d]);
                    }
                }
            }
            if let Some(base) = base {
                let (pose, twist, acceleration) = base_state(&base);
                q[..7].copy_from_slice(&pose);
                v[..6].copy_from_slice(&twist);
                a[..6].copy_from_slice(&acceleration);
            }
        }
    }

    /// Converts a gradient with respect to `q` (along velocity coordinates), `v` and `a` of one sample to one with respect to the
    /// positions, velocities and accelerations of its coordinates.
    pub fn pull_sample(&self, row: &[[f64; 3]], [gq, gv, ga]: [&[f64]; 3], out: &mut [[f64; 3]]) {
        let mut base: Option<BasePullback> = None;
        for (j, target) in self.targets.iter().enumerate() {
            out[j] = match *target {
                Target::Joint { v, .. } => [gq[v], gv[v], ga[v]],
                Target::Base(k) => base
                    .get_or_insert_with(|| {
                        let mut x = [[0.0; 6]; 3];
                        for (t, row) in self.targets.iter().zip(row) {
                            if let Target::Base(k) = *t {
                                (0..3).for_each(|d| x[d][k] = row[d]);
                            }
                        }
                        BasePullback::new(&x, [&gq[..6], &gv[..6], &ga[..6]])
                    })
                    .component(k),
            };
        }
    }

    /// Adds to the gradient with respect to the variables, given the gradient with respect to the coordinates of sample `i`.
    pub fn pull_point(&self, table: &Table, i: usize, coordinates: &[[f64; 3]], gradient: &mut [f64]) {
        let m = self.functions();
        for (j, g) in coordinates.iter().enumerate() {
            for k in 0..m {
                let b = table.at(i, k);
                gradient[j * m + k] += self.unit(j, k) * (g[0] * b[0] + g[1] * b[1] + g[2] * b[2]);
            }
        }
    }

    /// Creates zero states for a table.
    pub fn empty_states(dynamics: &InverseDynamics, table: &Table) -> States {
        States::new(dynamics, table.count)
    }
}
