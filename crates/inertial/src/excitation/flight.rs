//! Motion of a free-flying robot as a function of its coefficients: regressors, information and derivatives.

use nalgebra::{DMatrix, Matrix6};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use super::basis::Basis;
use super::free_flight::{MomentumState, MomentumStateGradient};
use super::limits::{DefaultLimits, coordinates};
use super::plan::Coordinate;
use super::trajectory::Trajectory;
use crate::linalg::{Svd, Triangle, add_products};
use crate::mechanism::{Limits, Mechanism};
use crate::{Error, Result};

/// Number of samples that one thread processes at once. It is constant, so that sums do not depend on the number of threads.
pub(super) const PART: usize = 64;

/// Coordinate that a motion may move.
#[derive(Debug, Clone, PartialEq)]
pub struct MovableCoordinate {
    /// Name of the joint or wheel.
    pub name: String,
    /// Position and velocity coordinate of a joint; `None` for a wheel.
    pub joint: Option<(usize, usize)>,
    /// Limits of motion and speed.
    pub limits: Limits,
}

/// Free-flying robot whose joints and wheels move according to a basis, sampled at a fixed rate.
#[derive(Debug, Clone)]
pub struct Flight<'m> {
    mechanism: &'m Mechanism,
    /// Columns of the base parameters.
    columns: Vec<usize>,
    /// Joints of one axis, then wheels.
    pub moved: Vec<MovableCoordinate>,
    basis: Basis,
    duration: f64,
    /// Nonzero basis functions of each sample, with values and derivatives.
    functions: Vec<Vec<(usize, [f64; 3])>>,
}

impl<'m> Flight<'m> {
    /// Creates the flight for the base parameters in the given columns of the full parameter vector. Joints with several degrees
    /// of freedom rest.
    pub fn new(
        mechanism: &'m Mechanism,
        columns: &[usize],
        basis: Basis,
        duration: f64,
        rate: f64,
    ) -> Result<Self> {
        MomentumState::new(mechanism, columns)?;
        check_wheels(mechanism)?;
        let moved = moved(mechanism);
        // The constructor of the trajectory checks basis, duration and rate.
        let names = moved.iter().map(|m| m.name.clone()).collect();
        let still = vec![vec![0.0; basis.len()]; moved.len()];
        let count = Trajectory::new(names, duration, basis.clone(), &still)?.samples(rate)?;
        let at = |t: usize| {
            let mut out = Vec::new();
            basis.visit((t as f64 / rate).min(duration), |k, x| out.push((k, x)));
            out
        };
        let functions = (0..count).map(at).collect();
        Ok(Self { mechanism, columns: columns.to_vec(), moved, basis, duration, functions })
    }

    /// Returns the number of samples.
    pub fn samples(&self) -> usize {
        self.functions.len()
    }

    /// Returns the number of coefficients: one per function and coordinate, grouped by function.
    pub fn coefficients(&self) -> usize {
        self.basis.len() * self.moved.len()
    }

    /// Returns the number of base parameters.
    pub fn parameters(&self) -> usize {
        self.columns.len()
    }

    /// Returns the trajectory of given coefficients.
    pub fn trajectory(&self, coefficients: &[f64]) -> Result<Trajectory> {
        let n = self.moved.len();
        let names = self.moved.iter().map(|m| m.name.clone()).collect();
        let rows: Vec<Vec<f64>> =
            (0..n).map(|j| coefficients.iter().skip(j).step_by(n).copied().collect()).collect();
        Trajectory::new(names, self.duration, self.basis.clone(), &rows)
    }

    /// Returns position, rate and acceleration of coordinate `j` at sample `t`.
    pub fn state(&self, coefficients: &[f64], t: usize, j: usize) -> [f64; 3] {
        let n = self.moved.len();
        self.functions[t].iter().fold([0.0; 3], |sum, &(k, x)| {
            let c = coefficients[k * n + j];
            std::array::from_fn(|d| sum[d] + x[d] * c)
        })
    }

    /// Adds to a gradient with respect to the coefficients, given the gradient with respect to position, rate and acceleration of
    /// coordinate `j` at sample `t`.
    pub fn add_gradient(&self, t: usize, j: usize, state: [f64; 3], sum: &mut [f64]) {
        let n = self.moved.len();
        for &(k, x) in &self.functions[t] {
            sum[k * n + j] += x[0] * state[0] + x[1] * state[1] + x[2] * state[2];
        }
    }

    /// Calls `each` with the instant of every sample, in parts that run in parallel; returns the results of the parts.
    fn each<R: Send>(
        &self,
        coefficients: &[f64],
        start: impl Fn() -> R + Sync,
        each: impl Fn(&mut MomentumState<'m>, usize, &FlightState, &mut R) -> Result<()> + Sync,
    ) -> Result<Vec<R>> {
        if coefficients.len() != self.coefficients() {
            return Err(Error::Dimension {
                what: "coefficients of the motion",
                expected: self.coefficients(),
                found: coefficients.len(),
            });
        }
        let count = self.samples();
        (0..count.div_ceil(PART))
            .into_par_iter()
            .map(|part| {
                let mut instant = MomentumState::new(self.mechanism, &self.columns)?;
                let mut state = FlightState {
                    q: self.mechanism.assembly().to_vec(),
                    v: vec![0.0; self.mechanism.nv()],
                    wheels: vec![0.0; self.mechanism.wheels().len()],
                };
                let mut out = start();
                for t in part * PART..count.min((part + 1) * PART) {
                    let mut wheel = 0;
                    for (j, moved) in self.moved.iter().enumerate() {
                        let [position, rate, _] = self.state(coefficients, t, j);
                        if let Some((q, v)) = moved.joint {
                            (state.q[q], state.v[v]) = (position, rate);
                        } else {
                            state.wheels[wheel] = rate;
                            wheel += 1;
                        }
                    }
                    instant.set(&state.q, &state.v, &state.wheels)?;
                    each(&mut instant, t, &state, &mut out)?;
                }
                Ok(out)
            })
            .collect()
    }

    /// Computes triangular factors of the regressors (times `C^{-½}` for given noise of the rates) of groups of `group` samples. A
    /// single last sample belongs to the previous group.
    pub fn factors(
        &self,
        coefficients: &[f64],
        noise: Option<&[f64]>,
        group: usize,
    ) -> Result<Vec<Triangle>> {
        let rows = self.each(coefficients, Vec::new, |instant, _, _, out: &mut Vec<DMatrix<f64>>| {
            let mut k = instant.k.clone();
            if let Some(noise) = noise {
                let whiten = whitening(&instant.covariance(noise))?;
                k.gemm(1.0, &dynamic(&whiten), &instant.k, 0.0);
            }
            out.push(k);
            Ok(())
        })?;
        self.reduced(&rows.into_iter().flatten().collect::<Vec<_>>(), group)
    }

    /// Computes triangular factors of groups of `group` regressors. A single last sample belongs to the previous group.
    fn reduced(&self, regressors: &[DMatrix<f64>], group: usize) -> Result<Vec<Triangle>> {
        let rank = self.parameters();
        let count = regressors.len().saturating_sub(1).div_ceil(group).max(1);
        (0..count)
            .into_par_iter()
            .map(|k| {
                let end = if k + 1 == count { regressors.len() } else { (k + 1) * group };
                let (mut out, mut block) = (Triangle::new(rank), Vec::new());
                // Many rows at once fill the vector lanes of the reflections.
                for some in regressors[k * group..end].chunks(PART) {
                    block.clear();
                    for j in 0..rank {
                        some.iter().for_each(|k| block.extend_from_slice(&k.as_slice()[6 * j..6 * (j + 1)]));
                    }
                    out.add_rows(&mut block, 6 * some.len())?;
                }
                Ok(out)
            })
            .collect()
    }

    /// Returns the triangular factor of all samples.
    pub fn factor(&self, coefficients: &[f64], noise: Option<&[f64]>) -> Result<Triangle> {
        self.merged(&self.factors(coefficients, noise, PART)?)
    }

    fn merged(&self, parts: &[Triangle]) -> Result<Triangle> {
        let mut out = Triangle::new(self.parameters());
        parts.iter().try_for_each(|part| out.merge(part))?;
        Ok(out)
    }

    /// Computes the Fisher information of the base parameters for given noise of the rates, `Σ KᵀC⁻¹K`.
    pub fn information(&self, coefficients: &[f64], noise: &[f64]) -> Result<DMatrix<f64>> {
        let (rank, count) = (self.parameters(), self.samples());
        let parts = self.each(
            coefficients,
            || (vec![0.0; rank * (rank + 1) / 2], DMatrix::zeros(6 * PART, rank)),
            |instant, t, _, (sum, rows): &mut (Vec<f64>, DMatrix<f64>)| {
                let whiten = whitening(&instant.covariance(noise))?;
                rows.rows_mut(6 * (t % PART), 6).gemm(1.0, &dynamic(&whiten), &instant.k, 0.0);
                if (t + 1) % PART == 0 || t + 1 == count {
                    add_products(rows.as_slice(), 6 * PART, rank, sum);
                }
                Ok(())
            },
        )?;
        let mut information = DMatrix::zeros(rank, rank);
        for (sum, _) in parts {
            let mut entries = sum.into_iter();
            for i in 0..rank {
                (i..rank).zip(&mut entries).for_each(|(j, x)| information[(i, j)] += x);
            }
        }
        information.fill_lower_triangle_with_upper_triangle();
        Ok(information)
    }

    /// Computes the gradient of `tr(W Σ KᵀC⁻¹K)` with respect to the coefficients, for a constant symmetric `weight` W.
    pub fn information_gradient(
        &self,
        coefficients: &[f64],
        noise: &[f64],
        weight: &DMatrix<f64>,
    ) -> Result<Vec<f64>> {
        let (rank, nv) = (self.parameters(), self.mechanism.nv());
        let memory =
            || (self.start(), DMatrix::zeros(rank, 6), DMatrix::zeros(rank, 6), DMatrix::zeros(6, nv));
        let parts = self.each(coefficients, memory, |instant, t, _, (sum, left, g, y)| {
            let whiten = whitening(&instant.covariance(noise))?;
            let inverse = whiten.transpose() * whiten;
            // f = tr(C⁻¹ K W Kᵀ): its derivative with respect to K is G = 2 W Kᵀ C⁻¹, with respect to A it is −2 C⁻¹ K W Kᵀ C⁻¹ A
            // Σ.
            left.gemm_tr(1.0, &instant.k, &dynamic(&inverse), 0.0);
            g.gemm(2.0, weight, left, 0.0);
            let inner = &instant.k * &*g;
            let both = inverse * inner.fixed_view::<6, 6>(0, 0);
            y.gemm(1.0, &dynamic(&both), instant.momentum_matrix(), 0.0);
            for (mut column, sigma) in y.column_iter_mut().zip(noise) {
                column *= sigma * sigma;
            }
            instant.pull(g, Some(y), None, &mut sum.instant);
            self.collect(t, sum);
            Ok(())
        })?;
        Ok(self.total(parts.into_iter().map(|(sum, ..)| sum)))
    }

    /// Computes `κ + w N_t N_m / Σ h²` (paper 002, eq. 32), with the condition number `κ` of the regressor and all rates `h`,
    /// including those of the base, and its gradient.
    pub fn published_cost(
        &self,
        coefficients: &[f64],
        w: f64,
        gradient: &mut [f64],
    ) -> Result<PublishedCost> {
        let parts = self.each(
            coefficients,
            || (Vec::new(), 0.0),
            |instant, _, state, (regressors, squares): &mut (Vec<DMatrix<f64>>, f64)| {
                regressors.push(instant.k.clone());
                *squares += instant.base_twist().to_vector().norm_squared();
                *squares += state.v[6..].iter().map(|v| v * v).sum::<f64>();
                Ok(())
            },
        )?;
        let squares: f64 = parts.iter().map(|(_, squares)| squares).sum();
        let regressors: Vec<DMatrix<f64>> = parts.into_iter().flat_map(|(k, _)| k).collect();
        let factor = self.merged(&self.reduced(&regressors, PART)?)?;
        let svd = Svd::new(&factor.matrix())?;
        let rank = self.parameters();
        let (largest, smallest) = (svd.values[0], svd.values[rank - 1]);
        if smallest <= 1e-14 * largest {
            return Ok(PublishedCost { cost: f64::INFINITY, condition: f64::INFINITY });
        }
        let condition = largest / smallest;
        let numbers = (self.mechanism.nv() * self.samples()) as f64;
        let (v1, vn) = (svd.v.column(0).into_owned(), svd.v.column(rank - 1).into_owned());
        // dσ = uᵀ dK v with u = K v/σ; d(1/Σh²) = −2 Σ h dh/(Σh²)².
        let slope = -2.0 * w * numbers / (squares * squares);
        let memory = || (self.start(), DMatrix::zeros(rank, 6));
        let parts = self.each(coefficients, memory, |instant, t, state, (sum, g)| {
            let u1 = &instant.k * &v1;
            let un = &instant.k * &vn;
            g.ger(condition / (largest * largest), &v1, &u1, 0.0);
            g.ger(-condition / (smallest * smallest), &vn, &un, 1.0);
            let twist = instant.base_twist().to_vector() * slope;
            instant.pull(g, None, Some(&twist), &mut sum.instant);
            for (k, v) in state.v.iter().enumerate().skip(6) {
                sum.instant.v[k] += slope * v;
            }
            self.collect(t, sum);
            Ok(())
        })?;
        gradient.copy_from_slice(&self.total(parts.into_iter().map(|(sum, _)| sum)));
        Ok(PublishedCost { cost: condition + w * numbers / squares, condition })
    }

    fn start(&self) -> Collected {
        let instant = MomentumStateGradient::new(self.mechanism);
        Collected { instant, sum: vec![0.0; self.coefficients()] }
    }

    /// Propagates the gradient of an instant to the coefficients.
    fn collect(&self, t: usize, into: &mut Collected) {
        let mut wheel = 0;
        for (j, moved) in self.moved.iter().enumerate() {
            let (q, v) = if let Some((_, v)) = moved.joint {
                (into.instant.q[v], into.instant.v[v])
            } else {
                wheel += 1;
                (0.0, into.instant.wheels[wheel - 1])
            };
            self.add_gradient(t, j, [q, v, 0.0], &mut into.sum);
        }
    }

    fn total(&self, parts: impl Iterator<Item = Collected>) -> Vec<f64> {
        parts.fold(vec![0.0; self.coefficients()], |mut sum, part| {
            sum.iter_mut().zip(&part.sum).for_each(|(s, x)| *s += x);
            sum
        })
    }
}

/// Returns the coordinates that a motion of a free-flying robot may move: joints with one axis, then wheels.
pub(super) fn moved(mechanism: &Mechanism) -> Vec<MovableCoordinate> {
    let joints = mechanism.joints().iter().filter(|j| j.follows.is_none() && j.joint_type.nv() == 1);
    let joint = |j: &crate::mechanism::Joint| MovableCoordinate {
        name: j.name.clone(),
        joint: Some((j.q, j.v)),
        limits: j.limits,
    };
    let wheels = mechanism.wheels().iter().map(|w| MovableCoordinate {
        name: w.name.clone(),
        joint: None,
        limits: w.limits,
    });
    joints.map(joint).chain(wheels).collect()
}

/// Returns the coordinates of a motion with their limits: joints as for other motions, wheels with a speed limit only.
pub(super) fn flight_coordinates(
    mechanism: &Mechanism,
    moved: &[MovableCoordinate],
    limits: &DefaultLimits,
) -> Vec<Coordinate> {
    let joints = coordinates(mechanism, limits);
    let of = |moved: &MovableCoordinate| {
        let joint = joints.iter().find(|c| moved.joint.is_some() && c.name == moved.name).cloned();
        joint.unwrap_or_else(|| Coordinate {
            name: moved.name.clone(),
            lower: f64::NEG_INFINITY,
            upper: f64::INFINITY,
            velocity: moved.limits.velocity * (1.0 - limits.margin),
            acceleration: f64::INFINITY,
        })
    };
    moved.iter().map(of).collect()
}

/// Terms of [`Flight::published_cost`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PublishedCost {
    /// Cost of eq. 32; infinite if the regressor does not have full rank.
    pub cost: f64,
    /// Condition number, the first term.
    pub condition: f64,
}

/// State at one sample.
struct FlightState {
    q: Vec<f64>,
    v: Vec<f64>,
    wheels: Vec<f64>,
}

/// Accumulated gradient with respect to the coefficients.
struct Collected {
    instant: MomentumStateGradient,
    sum: Vec<f64>,
}

/// Computes `L⁻¹` with `C = L Lᵀ`.
fn whitening(c: &Matrix6<f64>) -> Result<Matrix6<f64>> {
    c.cholesky().and_then(|c| c.l().solve_lower_triangular(&Matrix6::identity())).ok_or_else(|| {
        Error::InvalidOption(
            "the noise does not affect every component of the momentum, expected noise of the base's twist"
                .into(),
        )
    })
}

/// Views the matrix with dynamic size, without allocating.
fn dynamic(m: &Matrix6<f64>) -> nalgebra::DMatrixView<'_, f64> {
    nalgebra::DMatrixView::from_slice(m.as_slice(), 6, 6)
}

/// Checks that the wheels span all directions of momentum.
fn check_wheels(mechanism: &Mechanism) -> Result<()> {
    let wheels = mechanism.wheels();
    if wheels.is_empty() {
        return Err(Error::NotApplicable(
            "the robot has no reaction wheels: without their momentum only ratios of parameters are \
             identifiable; add wheels to the mechanism file"
                .into(),
        ));
    }
    let axes =
        nalgebra::Matrix3xX::from_iterator(wheels.len(), wheels.iter().flat_map(|w| w.axis.iter().copied()));
    let spread = axes.clone() * axes.transpose();
    let values = crate::linalg::symmetric_eigen(&spread)?;
    // Axes within about a tenth of a degree of one plane need a thousand times the momentum to rotate the robot about its normal.
    if values.values.min() < 3e-6 * values.values.max() {
        let names: Vec<_> = wheels.iter().map(|w| w.name.as_str()).collect();
        return Err(Error::NotApplicable(format!(
            "the axes of the reaction wheels {} lie in one plane: they give no momentum about its normal; \
             use axes that span space",
            names.join(", ")
        )));
    }
    Ok(())
}
