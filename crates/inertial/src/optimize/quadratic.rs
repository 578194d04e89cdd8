//! Quadratic programs of a trust region, solved by a primal-dual interior-point method with Mehrotra's corrector (Nocedal and
//! Wright 2006, algorithm 16.4).
//!
//! This is a custom implementation because the Hessian is small and dense, and the constraints are many and simple. Reduced to the
//! variables, an iteration is one Cholesky factorization of the size of the Hessian. General sparse solvers factorize variables
//! and constraints together, which took two thirds of the time of a design.

use inertial_dense::Definite;
use nalgebra::{DMatrix, DVector};

/// Largest number of iterations; 10 to 20 are usual.
const ITERATIONS: usize = 80;
/// Final duality gap, relative to one plus the magnitude of the objective, and final dual residual, relative to the gradient.
const GAP: f64 = 1e-9;
const RESIDUAL: f64 = 1e-8;
/// Gap that is still accepted if rounding stops the iteration.
const ROUGH: f64 = 1e-6;
/// Fraction of the step to the boundary.
const WITHIN: f64 = 0.995;
/// Fraction of the range of the values whose constraints are considered first.
const FIRST: f64 = 0.1;

/// Quadratic program: minimize `½ dᵀHd + gᵀd + price·s` subject to `c + A d ≤ s`, `s ≥ 0`, `|d| ≤ radius`.
pub(super) struct Program<'a> {
    /// Matrix `H`, positive definite, row after row.
    pub hessian: &'a [f64],
    pub gradient: &'a [f64],
    /// Vector `c`.
    pub values: &'a [f64],
    /// Matrix `A` as (row, column, entry), row by row.
    pub entries: &'a [(usize, usize, f64)],
    pub radius: f64,
    pub price: f64,
    /// Whether to give up, asked before each iteration.
    pub is_stopped: &'a dyn Fn() -> bool,
}

/// Minimizer, and the multipliers of `c + A d ≤ s`.
pub(super) struct Minimum {
    pub d: Vec<f64>,
    pub multipliers: Vec<f64>,
}

impl Program<'_> {
    /// Solves the program; `None` if rounding prevents convergence or a stop was requested.
    ///
    /// Most constraints are far from active. Solves the program with the others, adds the constraints that its minimizer violates,
    /// and repeats until there are none: this is the minimizer of the whole program.
    pub fn solve(&self) -> Option<Minimum> {
        let m = self.values.len();
        let range = self.values.iter().fold(0.0, |most: f64, c| most.max(-c));
        let mut active: Vec<bool> = self.values.iter().map(|c| *c >= -FIRST * range).collect();
        loop {
            let found = self.solve_with(&active)?;
            let mut values = self.values.to_vec();
            self.entries.iter().for_each(|&(row, column, x)| values[row] += x * found.d[column]);
            let slack = (0..m).filter(|&i| active[i]).fold(0.0, |most: f64, i| most.max(values[i]));
            let mut complete = true;
            for i in 0..m {
                if !active[i] && values[i] > slack {
                    active[i] = true;
                    complete = false;
                }
            }
            if complete {
                return Some(found);
            }
        }
    }

    /// Solves the program with some of the constraints; the multipliers of the others are zero.
    fn solve_with(&self, active: &[bool]) -> Option<Minimum> {
        let mut place = vec![usize::MAX; active.len()];
        let rows: Vec<usize> = (0..active.len()).filter(|&i| active[i]).collect();
        rows.iter().enumerate().for_each(|(new, &old)| place[old] = new);
        let values: Vec<f64> = rows.iter().map(|&i| self.values[i]).collect();
        let entries = self.entries.iter().filter(|e| active[e.0]).map(|&(row, c, x)| (place[row], c, x));
        let part = Program { values: &values, entries: &entries.collect::<Vec<_>>(), ..*self };
        let mut found = part.solve_whole()?;
        let mut multipliers = vec![0.0; active.len()];
        rows.iter().zip(&found.multipliers).for_each(|(&row, z)| multipliers[row] = *z);
        found.multipliers = multipliers;
        Some(found)
    }

    /// Solves the program with all constraints.
    fn solve_whole(&self) -> Option<Minimum> {
        let (n, m) = (self.gradient.len(), self.values.len());
        let total = m + 1 + 2 * n;
        // The start is strictly feasible, and so is every iterate: only dual residual and gap have to be reduced.
        let deepest = self.values.iter().fold(0.0, |m: f64, c| m.max(*c));
        let mut y = DVector::zeros(n + 1);
        y[n] = deepest + self.radius.max(deepest);
        let mut w = self.slacks(&y);
        let mut mu = self.price / w.iter().take(m + 1).map(|w| w.recip()).sum::<f64>();
        let mut z = w.map(|w| mu / w);
        let mut cholesky = Definite::new(n + 1);
        let mut matrix = DMatrix::zeros(n + 1, n + 1);
        let size = self.gradient.iter().fold(self.price, |m, g| m.max(g.abs()));
        for _ in 0..ITERATIONS {
            let (dual, objective) = self.dual_residual(&y, &z);
            mu = w.dot(&z) / total as f64;
            let gap = mu * total as f64 / (1.0 + objective.abs());
            let residual = dual.amax() / size;
            if gap <= GAP && residual <= RESIDUAL {
                return self.minimum(&y, &z);
            }
            if (self.is_stopped)() {
                return None;
            }
            self.normal_matrix(&w, &z, &mut matrix);
            if cholesky.factorize(&matrix, 0.0).is_err() {
                return (gap <= ROUGH && residual <= ROUGH).then(|| self.minimum(&y, &z)).flatten();
            }
            // The affine step (zero complementarity) determines the target of the corrected step.
            let mut aim = w.component_mul(&z);
            let (_, dw, dz) = self.step(&mut cholesky, &dual, &w, &z, &aim)?;
            let far = reach(&w, &dw).min(reach(&z, &dz)).min(1.0);
            let ahead = (&w + far * &dw).dot(&(&z + far * &dz)) / total as f64;
            let target = mu * (ahead / mu).powi(3);
            aim.iter_mut().zip(dw.iter().zip(&dz)).for_each(|(aim, (dw, dz))| *aim += dw * dz - target);
            let (dy, dw, dz) = self.step(&mut cholesky, &dual, &w, &z, &aim)?;
            let far = (WITHIN * reach(&w, &dw).min(reach(&z, &dz))).min(1.0);
            y.axpy(far, &dy, 1.0);
            w.axpy(far, &dw, 1.0);
            z.axpy(far, &dz, 1.0);
        }
        None
    }

    fn minimum(&self, y: &DVector<f64>, z: &DVector<f64>) -> Option<Minimum> {
        let n = self.gradient.len();
        y.iter().chain(z).all(|x| x.is_finite()).then(|| Minimum {
            d: y.iter().take(n).map(|d| d.clamp(-self.radius, self.radius)).collect(),
            multipliers: z.iter().take(self.values.len()).copied().collect(),
        })
    }

    /// Returns the slacks: of the constraints, of `s`, of `d` above and below.
    fn slacks(&self, y: &DVector<f64>) -> DVector<f64> {
        let mut out = -self.inequalities(y);
        let m = self.values.len();
        out.iter_mut().zip(self.values).for_each(|(w, c)| *w -= c);
        out.iter_mut().skip(m + 1).for_each(|w| *w += self.radius);
        out
    }

    /// Returns the left-hand sides of the inequalities, linear parts only.
    fn inequalities(&self, y: &DVector<f64>) -> DVector<f64> {
        let (n, m) = (self.gradient.len(), self.values.len());
        let mut out = DVector::from_element(m + 1 + 2 * n, -y[n]);
        self.entries.iter().for_each(|&(row, column, x)| out[row] += x * y[column]);
        for j in 0..n {
            (out[m + 1 + j], out[m + 1 + n + j]) = (y[j], -y[j]);
        }
        out
    }

    /// Applies the transpose of [`Program::inequalities`].
    fn transposed(&self, z: &DVector<f64>) -> DVector<f64> {
        let (n, m) = (self.gradient.len(), self.values.len());
        let mut out = DVector::zeros(n + 1);
        self.entries.iter().for_each(|&(row, column, x)| out[column] += x * z[row]);
        for j in 0..n {
            out[j] += z[m + 1 + j] - z[m + 1 + n + j];
        }
        out[n] = -z.rows(0, m + 1).sum();
        out
    }

    /// Computes the gradient of the Lagrangian, and the objective.
    fn dual_residual(&self, y: &DVector<f64>, z: &DVector<f64>) -> (DVector<f64>, f64) {
        let n = self.gradient.len();
        let mut out = self.transposed(z);
        let mut objective = self.price * y[n];
        for ((row, g), i) in self.hessian.chunks_exact(n.max(1)).zip(self.gradient).zip(0..) {
            let product: f64 = row.iter().zip(y).map(|(h, d)| h * d).sum();
            out[i] += product + g;
            objective += y[i] * (0.5 * product + g);
        }
        out[n] += self.price;
        (out, objective)
    }

    /// Computes `H + Gᵀ diag(z/w) G`, lower triangle.
    fn normal_matrix(&self, w: &DVector<f64>, z: &DVector<f64>, out: &mut DMatrix<f64>) {
        let (n, m) = (self.gradient.len(), self.values.len());
        for j in 0..n {
            // The Hessian is symmetric: rows and columns are equal.
            out.column_mut(j).iter_mut().zip(&self.hessian[j * n..(j + 1) * n]).for_each(|(k, h)| *k = *h);
            out[(j, j)] += z[m + 1 + j] / w[m + 1 + j] + z[m + 1 + n + j] / w[m + 1 + n + j];
            out[(n, j)] = 0.0;
        }
        out[(n, n)] = (0..=m).map(|i| z[i] / w[i]).sum();
        for row in self.entries.chunk_by(|a, b| a.0 == b.0) {
            let weight = z[row[0].0] / w[row[0].0];
            let contiguous = row.windows(2).all(|pair| pair[1].1 == pair[0].1 + 1);
            for (k, &(_, c, x)) in row.iter().enumerate() {
                let share = weight * x;
                out[(n, c)] -= share;
                if contiguous {
                    let column = &mut out.as_mut_slice()[c * (n + 1) + c..];
                    column.iter_mut().zip(&row[k..]).for_each(|(to, (_, _, x))| *to += share * x);
                } else {
                    row[k..].iter().for_each(|&(_, d, x)| out[(c.max(d), c.min(d))] += share * x);
                }
            }
        }
    }

    /// Computes the Newton step towards `w z − aim = 0` and a zero dual residual.
    fn step(
        &self,
        cholesky: &mut Definite,
        dual: &DVector<f64>,
        w: &DVector<f64>,
        z: &DVector<f64>,
        aim: &DVector<f64>,
    ) -> Option<(DVector<f64>, DVector<f64>, DVector<f64>)> {
        let mut dy = self.transposed(&aim.component_div(w)) - dual;
        cholesky.solve_in_place(&mut dy).ok()?;
        let dw = -self.inequalities(&dy);
        let dz = DVector::from_fn(w.len(), |i, _| -(aim[i] + z[i] * dw[i]) / w[i]);
        Some((dy, dw, dz))
    }
}

/// Returns the longest step that keeps `x` nonnegative.
fn reach(x: &DVector<f64>, dx: &DVector<f64>) -> f64 {
    x.iter().zip(dx).filter(|(_, dx)| **dx < 0.0).map(|(x, dx)| -x / dx).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::SplitMix;

    /// Asserts the Karush-Kuhn-Tucker conditions, which only the minimizer of a convex program satisfies.
    fn assert_optimal(program: &Program<'_>, found: &Minimum) {
        // The gap of 1e-9 causes errors of its square root in variables at weakly active bounds.
        const SMALL: f64 = 1e-4;
        let (n, radius) = (program.gradient.len(), program.radius);
        let d = DVector::from_column_slice(&found.d);
        let mut slope = DMatrix::from_row_slice(n, n, program.hessian) * &d;
        let mut values = program.values.to_vec();
        program.entries.iter().for_each(|&(row, column, x)| values[row] += x * d[column]);
        let violation = values.iter().fold(0.0, |m: f64, c| m.max(*c));
        slope += DVector::from_column_slice(program.gradient);
        program.entries.iter().for_each(|&(row, column, x)| slope[column] += x * found.multipliers[row]);
        for (d, slope) in d.iter().zip(&slope) {
            assert!(d.abs() <= radius);
            // A nonzero gradient of a variable must be balanced by an active bound of the box.
            let rests = d.abs() > radius - SMALL;
            assert!(slope.abs() < SMALL || (rests && slope * d < 0.0), "{d} {slope}");
        }
        for (multiplier, value) in found.multipliers.iter().zip(&values) {
            assert!(*multiplier >= 0.0 && multiplier * (violation - value) < SMALL, "{multiplier} {value}");
        }
        let load: f64 = found.multipliers.iter().sum();
        assert!(load <= program.price + SMALL && violation * (program.price - load) < SMALL);
    }

    #[test]
    fn minimizers_meet_the_conditions_of_optimality() {
        let mut random = SplitMix::new(11);
        let mut number = || (random.next_u64() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
        let (mut binding, mut violated) = (0, 0);
        for (n, m) in [(1, 0), (1, 3), (4, 2), (6, 30), (12, 20), (9, 60)] {
            for (radius, price) in [(0.1, 50.0), (2.0, 50.0), (2.0, 3.0)] {
                let root: DMatrix<f64> = DMatrix::from_fn(n, n, |_, _| number());
                let hessian = &root * root.transpose() + 0.1 * DMatrix::<f64>::identity(n, n);
                let gradient: Vec<f64> = (0..n).map(|_| 3.0 * number()).collect();
                let values: Vec<f64> = (0..m).map(|_| number() - 0.5).collect();
                let mut entries = Vec::new();
                for row in 0..m {
                    // Dense rows, and rows with a subset of the columns.
                    let every = 1 + row % 3;
                    entries.extend((row % n..n).step_by(every).map(|column| (row, column, number())));
                }
                let program = Program {
                    hessian: hessian.as_slice(),
                    gradient: &gradient,
                    values: &values,
                    entries: &entries,
                    radius,
                    price,
                    is_stopped: &|| false,
                };
                let found = program.solve().unwrap();
                assert_optimal(&program, &found);
                binding += found.multipliers.iter().filter(|z| **z > 1e-3).count();
                violated += usize::from(values.iter().any(|c| *c > 0.0));
            }
        }
        // The cases are not all trivial.
        assert!(binding > 20 && violated > 5, "{binding} {violated}");
    }
}
