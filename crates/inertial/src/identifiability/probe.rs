//! Evaluation of exact closed motions: rows of the regressor, velocities, and points shared by bodies.

use nalgebra::{Matrix3x4, Vector3};

use super::drng::Points;
use super::experiment::{Experiment, Measured};
use super::lifting::{Curve, Stalled, Start, Twists, convolve, integer, inverse};
use super::rpna::Regime;
use crate::linalg::{Echelon, Number, Pivot, SplitMix};
use crate::mechanism::{BodyKind, ParameterBlock};
use crate::spatial::{Motion, Parameters, inertia_gradient};

/// Number of consecutive orders without a new row after which a curve is abandoned.
const QUIET_ORDERS: usize = 5;
/// Number of consecutive curves without a new row after which sampling stops.
const QUIET_CURVES: usize = 2;
/// Maximum number of directions on one curve; further directions are taken on the next curve.
const DIRECTIONS: usize = 10;
/// Number of parameters per direction on the first curve, if that gives more directions: more directions need fewer
/// orders.
const PARAMETERS_PER_DIRECTION: usize = 20;

/// Parameters and experiment for which curves are evaluated.
#[derive(Debug, Clone, Copy)]
pub struct ProbeInputs<'a> {
    /// Parameters of the bodies.
    pub blocks: &'a [ParameterBlock],
    /// Measured quantities and admissible motions.
    pub experiment: &'a Experiment,
    /// Whether the first six coordinates are those of a floating base.
    pub floating: bool,
}

impl ProbeInputs<'_> {
    fn width(&self) -> usize {
        self.blocks.last().map_or(0, |b| b.offset + b.len)
    }

    /// Returns whether the rows need two orders in time.
    pub(super) fn needs_accelerations(&self) -> bool {
        let e = self.experiment;
        !e.is_complete(self.floating) && e.regime != Regime::Static && e.measured != Measured::Momentum
    }

    fn senses(&self, coordinate: usize) -> bool {
        let e = self.experiment;
        if self.floating && coordinate < 6 {
            matches!(e.measured, Measured::BaseWrench | Measured::Both | Measured::Momentum) || e.ballistic
        } else {
            let torques = matches!(e.measured, Measured::JointTorques | Measured::Both);
            torques && e.torques.get(coordinate).copied().unwrap_or(true)
        }
    }

    /// Returns whether the wrench (or momentum) at a fixed base is measured; it corresponds to a virtual motion of the
    /// world.
    fn senses_ground(&self) -> bool {
        !self.floating && self.experiment.measured != Measured::JointTorques
    }
}

/// Curve with the virtual velocities whose power with the measured forces gives the rows.
pub(super) struct Probe<'a, T: Number> {
    inputs: ProbeInputs<'a>,
    curve: Curve<'a, T>,
    motion: Twists<T>,
    rates: Vec<Vec<T>>,
    virtual_motions: Vec<Twists<T>>,
    complete: bool,
    flight: Option<Flight<T>>,
}

/// Data that determine the motion of a robot in free flight.
struct Flight<T: Number> {
    /// Random true parameters.
    truth: Vec<Parameters<T>>,
    /// Twists of the robot moved as one body, along each coordinate of its base.
    base: Vec<Twists<T>>,
    /// Inverse of the inertia of the robot as one body, at the start.
    inverse: Vec<T>,
}

impl<T: Number> Flight<T> {
    fn new(start: &Start<'_, T>) -> Self {
        let bodies = &start.assembled.bodies;
        // All motions belong to the same robot.
        let mut source = SplitMix::new(1);
        let truth = bodies.iter().map(|body| {
            let mut p = Parameters::from_fn(|_, _| T::random(&mut source));
            match body.kind {
                BodyKind::Massless => p.fill(T::zero()),
                BodyKind::SymmetricRotor => p.as_mut_slice()[..9].fill(T::zero()),
                _ => {}
            }
            p
        });
        let truth = truth.collect();
        let base = vec![Twists::new(bodies.len(), Motion::zero()); 6];
        Self { truth, base, inverse: Vec::new() }
    }

    /// Computes the power of a row with the true parameters, summed over all bodies.
    fn power(&self, row: impl Fn(usize) -> Parameters<T>) -> T {
        self.truth.iter().enumerate().fold(T::zero(), |sum, (body, p)| sum + row(body).dot(p))
    }
}

impl<'a, T: Number> Probe<'a, T> {
    /// Creates a random curve with at most `most` virtual velocities.
    pub fn random(
        start: &'a Start<'a, T>,
        inputs: ProbeInputs<'a>,
        most: usize,
        source: &mut SplitMix,
    ) -> Self {
        let bodies = start.assembled.bodies.len();
        let sensed: Vec<bool> = start.independent().iter().map(|&v| inputs.senses(v)).collect();
        let ground = inputs.senses_ground();
        let n = sensed.iter().filter(|&&s| s).count() + if ground { 6 } else { 0 };
        let complete = inputs.experiment.is_complete(inputs.floating);
        // The energy is quadratic in the velocity, with as many values as the mass matrix has independent entries.
        let count = if complete { n * (n + 1) / 2 } else { n }.min(most);
        let mut random = |wanted: bool| if wanted { T::random(source) } else { T::zero() };
        let rates = (0..count).map(|_| sensed.iter().map(|&s| random(s)).collect()).collect();
        let virtual_motions = (0..count)
            .map(|_| {
                let mut vector = || Vector3::from_fn(|_, _| random(ground));
                Twists::new(bodies, Motion::new(vector(), vector()))
            })
            .collect();
        let flight = inputs.experiment.ballistic.then(|| Flight::new(start));
        Self {
            inputs,
            curve: Curve::new(start),
            motion: Twists::new(bodies, Motion::zero()),
            rates,
            virtual_motions,
            complete,
            flight,
        }
    }

    /// Sets the velocity of the base, at the last order, such that no wrench acts on it. Gravity accelerates all bodies
    /// equally and cancels.
    fn fall_freely(&mut self) -> Result<(), Stalled> {
        let Some(mut flight) = self.flight.take() else { return Ok(()) };
        let curve = &self.curve;
        for (a, motion) in flight.base.iter_mut().enumerate() {
            let unit: Vec<T> =
                (0..curve.freedoms()).map(|i| if i == a { T::one() } else { T::zero() }).collect();
            curve.extend_twists(|k| curve.rates(&unit, k), motion);
        }
        let k = curve.len() - 1;
        if k == 0 {
            let entry = |n: usize| {
                let (a, b) = (&flight.base[n / 6].own, &flight.base[n % 6].own);
                flight.power(|body| inertia_gradient(&a[body][0], &b[body][0]))
            };
            flight.inverse = inverse((0..36).map(entry).collect(), 6).ok_or(Stalled::Singular)?;
        } else {
            let wrench: Vec<T> = flight
                .base
                .iter()
                .map(|w| flight.power(|body| self.force_row(body, w, k - 1, false)))
                .collect();
            // Velocities of order k are accelerations of order k − 1, divided by k.
            let part = integer::<T>(k).inverse().ok_or(Stalled::Singular)?;
            let change: Vec<T> = flight
                .inverse
                .chunks_exact(6)
                .map(|row| -row.iter().zip(&wrench).fold(T::zero(), |sum, (&a, &b)| sum + a * b) * part)
                .collect();
            self.curve.push_base(&change);
            self.motion.pop();
            let curve = &self.curve;
            curve.extend_twists(|k| curve.velocity(k), &mut self.motion);
        }
        self.flight = Some(flight);
        Ok(())
    }

    /// Extends the curve by one order and passes this order of each row to `pass`.
    pub fn advance(&mut self, source: &mut SplitMix, mut pass: impl FnMut(&[T])) -> Result<(), Stalled> {
        self.curve.extend(source)?;
        let curve = &self.curve;
        curve.extend_twists(|k| curve.velocity(k), &mut self.motion);
        self.fall_freely()?;
        let curve = &self.curve;
        for (rates, motion) in self.rates.iter().zip(&mut self.virtual_motions) {
            curve.extend_twists(|k| curve.rates(rates, k), motion);
        }
        let mut row = vec![T::zero(); self.inputs.width()];
        let mut write = |block_row: &dyn Fn(usize) -> Parameters<T>| {
            for block in self.inputs.blocks {
                let values = block_row(block.body);
                row[block.offset..block.offset + block.len]
                    .copy_from_slice(&values.as_slice()[10 - block.len..]);
            }
            pass(&row);
        };
        let k = curve.len() - 1;
        let (regime, measured) = (self.inputs.experiment.regime, self.inputs.experiment.measured);
        for (n, w) in self.virtual_motions.iter().enumerate() {
            if measured == Measured::Momentum {
                write(&|b| {
                    convolve(Parameters::zeros(), &w.own[b], &self.motion.own[b], k, inertia_gradient)
                });
                continue;
            }
            if self.complete && regime != Regime::Static {
                write(&|b| convolve(Parameters::zeros(), &w.own[b], &w.own[b], k, inertia_gradient));
            }
            // The power of gravity is linear in the velocity: no more rows than degrees of freedom.
            let heavy =
                regime != Regime::Kinetic && self.flight.is_none() && !curve.gravity().iter().all(T::is_zero);
            if (self.complete || regime == Regime::Static) && heavy && n < curve.freedoms() {
                write(&|b| self.gravity_row(b, w, k));
            }
            // Accelerations are known to one order less than velocities.
            if !self.complete && regime != Regime::Static && k > 0 {
                write(&|b| self.force_row(b, w, k - 1, heavy));
            }
        }
        Ok(())
    }

    /// Passes the velocities attained by the bodies, including gravity, order by order.
    pub fn velocities(&self, mut pass: impl FnMut(usize, &Motion<T>)) {
        let regime = self.inputs.experiment.regime;
        for (i, twists) in self.motion.own.iter().enumerate() {
            for (pose, twist) in self.curve.world(i).iter().zip(twists) {
                if regime != Regime::Static {
                    pass(i, twist);
                }
                if regime != Regime::Kinetic {
                    pass(i, &Motion::new(Vector3::zeros(), pose.rotation.tr_mul(&self.curve.gravity())));
                }
            }
        }
    }

    /// Returns the residual of the redundant constraints with rounded numbers.
    pub fn slack(&self) -> f64 {
        self.curve.slack()
    }

    /// Computes the power of gravity along a virtual velocity, at order `k`.
    fn gravity_row(&self, body: usize, w: &Twists<T>, k: usize) -> Parameters<T> {
        convolve(Parameters::zeros(), self.curve.world(body), &w.own[body], k, |pose, w| {
            let fall = pose.rotation.tr_mul(&self.curve.gravity());
            inertia_gradient(&Motion::new(Vector3::zeros(), fall), w)
        })
    }

    /// Computes the power of the inertial forces `I a + v ×* I v`, and of the weight, along a virtual velocity `w`, at
    /// order `k`: `wᵀ I a − (v × w)ᵀ I v`.
    fn force_row(&self, body: usize, w: &Twists<T>, k: usize, heavy: bool) -> Parameters<T> {
        let (v, w) = (&self.motion.own[body], &w.own[body]);
        let acceleration: Vec<Motion<T>> = (0..=k).map(|i| v[i + 1] * integer(i + 1)).collect();
        let turned: Vec<Motion<T>> =
            (0..=k).map(|i| convolve(Motion::zero(), v, w, i, Motion::cross)).collect();
        let mut row = convolve(Parameters::zeros(), w, &acceleration, k, inertia_gradient);
        row -= convolve(Parameters::zeros(), &turned, v, k, inertia_gradient);
        if heavy {
            row -= convolve(Parameters::zeros(), self.curve.world(body), w, k, |pose, w| {
                let fall = pose.rotation.tr_mul(&self.curve.gravity());
                inertia_gradient(&Motion::new(Vector3::zeros(), fall), w)
            });
        }
        row
    }
}

/// Row space of the regressor of a mechanism with loops, over `T`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Lifted<T: Number> {
    /// Rows found, in echelon form.
    pub rows: Echelon<T>,
    /// Dimension of the span of velocities attained by each body, gravity included.
    pub velocities: Vec<usize>,
    /// Degrees of freedom.
    pub mobility: usize,
    /// Number of redundant constraints.
    pub redundant: usize,
    /// Number of curves evaluated.
    pub curves: usize,
    /// Highest order in time that gave a new row.
    pub order: usize,
}

/// Collects rows of the regressor along random curves until two fresh curves add nothing.
///
/// Every row is a row of the true regressor (reduced modulo `p`), so the rank is a proven lower bound.
pub fn lift<T: Number>(
    start: &Start<'_, T>,
    inputs: ProbeInputs<'_>,
    pivot: Pivot,
    seed: u64,
) -> Result<Lifted<T>, Stalled> {
    let mut rows = Echelon::new(inputs.width(), pivot);
    let bodies = start.assembled.bodies.len();
    let mut spans = vec![Echelon::new(6, Pivot::Largest); bodies];
    let mut source = SplitMix::new(seed);
    let (mut curves, mut idle, mut order) = (0, 0, 0);
    while idle < QUIET_CURVES && !rows.is_full() {
        let first = if curves == 0 { inputs.width() / PARAMETERS_PER_DIRECTION } else { 0 };
        let mut probe = Probe::random(start, inputs, DIRECTIONS.max(first), &mut source);
        let before = rows.rank();
        let mut k = 0;
        while k <= order + QUIET_ORDERS && !rows.is_full() {
            let rank = rows.rank();
            probe.advance(&mut source, |row| {
                rows.insert(row);
            })?;
            if rows.rank() > rank {
                order = order.max(k);
            }
            k += 1;
        }
        probe.velocities(|body, v| {
            spans[body].insert(v.to_vector().as_slice());
        });
        curves += 1;
        idle = if rows.rank() > before { 0 } else { idle + 1 };
    }
    let velocities = spans.iter().map(Echelon::rank).collect();
    Ok(Lifted { rows, velocities, mobility: start.mobility(), redundant: start.redundant(), curves, order })
}

/// Returns pairs of bodies (node 0 is the ground, node `i + 1` body `i`) with the points that coincide on two random
/// curves of `orders` orders in time, in world coordinates at the start.
pub fn shared_points<T: Number>(
    start: &Start<'_, T>,
    orders: usize,
    seed: u64,
) -> Result<Vec<(usize, usize, Points<T>)>, Stalled> {
    let n = start.assembled.bodies.len();
    let mut source = SplitMix::new(seed);
    // D(t) = A(t) A(0)⁻¹ minus the identity, by order from the first, for one curve after the other; empty for the
    // ground.
    let mut moves: Vec<Vec<Matrix3x4<T>>> = vec![Vec::new(); n + 1];
    for _ in 0..QUIET_CURVES {
        let mut curve = Curve::new(start);
        for _ in 0..orders.max(2) {
            curve.extend(&mut source)?;
        }
        for k in 1..curve.len() {
            moves[0].push(Matrix3x4::zeros());
            for (i, out) in moves[1..].iter_mut().enumerate() {
                let (first, now) = (curve.world(i)[0], curve.world(i)[k]);
                let rotation = now.rotation * first.rotation.transpose();
                let mut map = Matrix3x4::zeros();
                map.fixed_view_mut::<3, 3>(0, 0).copy_from(&rotation);
                map.set_column(3, &(now.translation - rotation * first.translation));
                out.push(map);
            }
        }
    }
    let mut out = Vec::new();
    for b in 1..=n {
        for a in 0..b {
            let shared = Points::annihilated(moves[a].iter().zip(&moves[b]).map(|(a, b)| a - b));
            if !shared.is_empty() {
                out.push((a, b, shared));
            }
        }
    }
    Ok(out)
}
