//! Exact rows of the regressor at random points; they span the identifiable space of an experiment.
//!
//! Angles enter by their cosine and sine, which are rational in `tan(θ/2)`. An angle that also acts as a length
//! (helical joints, a slider that follows a hinge) enters a second time as an independent number, since no polynomial
//! relates an angle to its tangent. Every row is therefore a polynomial in random numbers. Over GF(p) a polynomial that
//! does not vanish identically is zero at a random point with probability at most (degree)/p (Schwartz and Zippel).

use nalgebra::{Matrix3, SMatrix, SVector, Vector3};

use super::experiment::{Conservation, Experiment, Measured};
use super::rpna::{Regime, Scope};
use super::velocities::Velocities;
use crate::linalg::{Echelon, Number, Pivot, SplitMix};
use crate::mechanism::{Base, BodyGeometry, BodyKind, Geometry, Mechanism, Pivoting, Surd, gcd, turn_about};
use crate::spatial::{
    Force, Inertia, Motion, Parameters, Pose, body_regressor, inertia_gradient, rotation_from_quaternion,
};

/// Seed of the free-flying robot.
const TRUE_ROBOT: u64 = 0x1ce4_e5b9;

/// Measured force, given by the row that multiplies the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    /// Generalized force (or momentum) of a velocity coordinate.
    Coordinate(usize),
    /// Component of the wrench on (or momentum about) the world, obtained by a virtual motion of the world.
    World(usize),
}

/// Sampler of rows of the regressor.
#[derive(Debug)]
pub struct Sampler<'a, T: Number> {
    geometry: &'a Geometry<T>,
    experiment: &'a Experiment,
    offsets: Vec<usize>,
    width: usize,
    /// Independent angles of a configuration, and the multiple of one of them by which each body turns.
    gearing: Gearing,
    angles: Vec<(T, T)>,
    nv: usize,
    probes: Vec<Probe>,
    source: SplitMix,
    coordinates: Vec<Coordinate<T>>,
    states: Vec<BodyMotion<T>>,
    /// Virtual velocity of each body, whose power with the forces is a row; `None` if it is at rest.
    moves: Vec<Option<Motion<T>>>,
    /// Random true parameters, which determine the motion of a robot in free flight.
    truth: Vec<Inertia<T>>,
    complete: bool,
}

/// Random values of one velocity coordinate.
#[derive(Debug, Clone, Copy)]
struct Coordinate<T> {
    /// Cosine and sine of the angle of a joint that no other joint follows.
    unit: (T, T),
    length: T,
    velocity: T,
    acceleration: T,
}

/// Motion of one body.
#[derive(Debug, Clone, Copy)]
struct BodyMotion<T: Number> {
    pose: Pose<T>,
    velocity: Motion<T>,
    /// Acceleration minus gravity.
    acceleration: Motion<T>,
    gravity: Motion<T>,
}

impl<'a, T: Number> Sampler<'a, T> {
    /// Creates a sampler for one experiment; the same seed gives the same rows.
    pub fn new(
        mechanism: &Mechanism,
        geometry: &'a Geometry<T>,
        experiment: &'a Experiment,
        seed: u64,
    ) -> Self {
        let mut offsets = vec![usize::MAX; geometry.bodies.len()];
        for block in mechanism.parameter_blocks() {
            offsets[block.body] = block.offset;
        }
        // Free flight determines the ratios of the parameters of one robot, so every sampler must draw the same robot,
        // in any number type.
        let mut drawn = SplitMix::new(TRUE_ROBOT);
        let truth = geometry.bodies.iter().zip(mechanism.bodies()).map(|(body, described)| {
            let mut p = if experiment.model_masses {
                described.inertia.parameters().map(exact)
            } else {
                Parameters::from_fn(|_, _| short_fraction(&mut drawn))
            };
            match body.kind {
                BodyKind::Massless => p.fill(T::zero()),
                BodyKind::SymmetricRotor => p.as_mut_slice()[..9].fill(T::zero()),
                _ => {}
            }
            Inertia::from_parameters(&p)
        });
        let moved_by_masses = experiment.ballistic || experiment.conservation.is_some();
        let truth = if moved_by_masses { truth.collect() } else { Vec::new() };
        let source = SplitMix::new(seed);
        let floating = mechanism.base() == Base::Floating;
        Self {
            geometry,
            experiment,
            offsets,
            width: mechanism.parameter_count(),
            probes: probes(experiment, floating, mechanism.nv()),
            gearing: Gearing::new(geometry, mechanism.nv()),
            angles: Vec::new(),
            nv: mechanism.nv(),
            source,
            coordinates: Vec::new(),
            states: Vec::with_capacity(geometry.bodies.len()),
            moves: Vec::with_capacity(geometry.bodies.len()),
            truth,
            complete: experiment.is_complete(floating),
        }
    }

    /// Returns a bound of the degree of the entries of a row in the random numbers of a configuration, denominators
    /// cleared: each entry is bilinear in two velocities, which every joint on the path rotates (degree two in the
    /// tangent of half the divided angle) or shifts.
    pub fn degree(&self) -> f64 {
        let turns: i64 = self.gearing.turns.iter().map(|&(_, times)| 2 * times.abs() + 2).sum();
        let free = 2.0 * turns as f64 + 4.0;
        // The base motion given by a conservation law is a quotient of determinants of six rows.
        if self.truth.is_empty() { free } else { 8.0 * free }
    }

    /// Returns the number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Computes a row at a fresh random configuration: a random combination of all measured forces.
    pub fn row(&mut self, out: &mut Vec<T>) {
        self.draw();
        let mut factors = vec![T::zero(); self.nv];
        let mut world = SVector::<T, 6>::zeros();
        for probe in &self.probes {
            let factor = T::random(&mut self.source);
            match *probe {
                Probe::Coordinate(v) => factors[v] = factor,
                Probe::World(k) => world[k] = factor,
            }
        }
        self.row_along(&Motion::from_vector(&world), |v| factors[v], out);
    }

    /// Computes the row of one measured force at the current configuration.
    fn probe_row(&mut self, probe: Probe, out: &mut Vec<T>) {
        let one = |on: bool| if on { T::one() } else { T::zero() };
        let world = SVector::<T, 6>::from_fn(|k, _| one(probe == Probe::World(k)));
        self.row_along(&Motion::from_vector(&world), |v| one(probe == Probe::Coordinate(v)), out);
    }

    fn row_along(&mut self, world: &Motion<T>, along: impl Fn(usize) -> T, out: &mut Vec<T>) {
        out.clear();
        out.resize(self.width, T::zero());
        let world = (*world != Motion::zero()).then_some(*world);
        self.moves.clear();
        for (index, (body, state)) in self.geometry.bodies.iter().zip(&self.states).enumerate() {
            let carried = body.parent.map_or(world, |p| self.moves[p]).map(|w| state.pose.pull_motion(&w));
            let mut own = None;
            for (k, mode) in body.modes().iter().enumerate() {
                let factor = along(body.v + k);
                if !factor.is_zero() {
                    own = Some(own.unwrap_or_else(Motion::zero) + *mode * (body.ratio * factor));
                }
            }
            let moved = match (carried, own) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            };
            self.moves.push(moved);
            let offset = self.offsets[index];
            let Some(w) = moved.filter(|_| offset != usize::MAX) else { continue };
            let row = self.body_row(state, &w);
            if body.kind == BodyKind::SymmetricRotor {
                out[offset] = row[9];
            } else {
                out[offset..offset + 10].copy_from_slice(row.as_slice());
            }
        }
    }

    /// Computes the part of the row that belongs to a body: the power along `w` of the force (or momentum) of each of
    /// its ten parameters.
    fn body_row(&self, state: &BodyMotion<T>, w: &Motion<T>) -> Parameters<T> {
        let BodyMotion { velocity: v, gravity: g, .. } = state;
        match (self.experiment.measured, self.experiment.regime) {
            (Measured::Momentum, _) => inertia_gradient(w, v),
            (_, Regime::Static) => inertia_gradient(w, g),
            // M(q) v and the gravity torque: if all forces are measured, entries of the energy need no acceleration.
            (_, Regime::Full) if self.complete => inertia_gradient(w, &(*v + *g)),
            (_, Regime::Kinetic) if self.complete => inertia_gradient(w, v),
            _ => body_regressor(v, &state.acceleration).tr_mul(&w.to_vector()),
        }
    }

    /// Returns the pose of a body relative to its parent at the current configuration.
    pub(super) fn pose(&self, body: usize) -> &Pose<T> {
        &self.states[body].pose
    }

    /// Returns the poses of all bodies relative to their parents at the current configuration.
    pub(super) fn poses(&self) -> impl Iterator<Item = Pose<T>> + '_ {
        self.states.iter().map(|s| s.pose)
    }

    /// Draws random factors of the modes of a joint.
    pub(super) fn random_factors(&mut self) -> [T; 6] {
        std::array::from_fn(|_| T::random(&mut self.source))
    }

    /// Draws a random motion of a body in its joint.
    pub(super) fn random_mode(&mut self, body: usize) -> Motion<T> {
        let body = &self.geometry.bodies[body];
        let mut out = Motion::zero();
        for mode in body.modes() {
            out += *mode * (body.ratio * T::random(&mut self.source));
        }
        out
    }

    /// Computes the velocities that each body attains at the current configuration, as far as the experiment measures
    /// them.
    pub(super) fn attained(&mut self, scope: Scope) -> Velocities<T> {
        let Scope { regime, torques, wrench } = scope;
        let rest = Motion::zero();
        let fall = match regime {
            Regime::Kinetic => Vector3::zeros(),
            _ => self.geometry.gravity,
        };
        let gravity = Motion::new(Vector3::zeros(), fall);
        let world = if wrench { Motion::from_vector(&SVector::from(self.random_factors())) } else { rest };
        let factors: Vec<T> = (0..self.nv).map(|_| T::random(&mut self.source)).collect();
        let n = self.geometry.bodies.len();
        let mut out = Velocities {
            virtually: Vec::with_capacity(n),
            moving: Vec::with_capacity(n),
            along: Vec::with_capacity(n),
            ground: (world, gravity),
        };
        // Virtual motion of the world alone, in the frame of each body.
        let mut carried: Vec<Motion<T>> = Vec::with_capacity(n);
        for (body, state) in self.geometry.bodies.iter().zip(&self.states) {
            let of_world = state.pose.pull_motion(body.parent.map_or(&world, |p| &carried[p]));
            let mut virtually = state.pose.pull_motion(body.parent.map_or(&world, |p| &out.virtually[p]));
            if torques {
                for (k, mode) in body.modes().iter().enumerate() {
                    virtually += *mode * (body.ratio * factors[body.v + k]);
                }
            }
            let moving =
                if regime == Regime::Static { state.gravity } else { state.velocity + state.gravity };
            let mut along = if torques { moving } else { rest };
            if regime != Regime::Static {
                along += of_world;
            }
            out.along.push(along);
            out.virtually.push(virtually);
            out.moving.push(moving);
            carried.push(of_world);
        }
        out
    }

    /// Moves to a fresh random configuration, with random velocities and accelerations.
    pub(super) fn draw(&mut self) {
        let source = &mut self.source;
        self.coordinates.clear();
        self.angles.clear();
        for &parts in &self.gearing.parts {
            self.angles.push(random_angle(source, parts));
        }
        for _ in 0..self.nv {
            self.coordinates.push(Coordinate {
                unit: random_angle(source, 1),
                length: T::random(source),
                velocity: T::random(source),
                acceleration: T::random(source),
            });
        }
        let fall = match self.experiment.regime {
            Regime::Kinetic => Vector3::zeros(),
            _ => self.geometry.gravity,
        };
        let gravity = Motion::new(Vector3::zeros(), fall);
        let rest = Motion::zero();
        let world = BodyMotion { pose: Pose::identity(), velocity: rest, acceleration: -gravity, gravity };
        self.states.clear();
        for (body, &(angle, times)) in self.geometry.bodies.iter().zip(&self.gearing.turns) {
            let parent = body.parent.map_or(&world, |p| &self.states[p]);
            let turned = || T::multiple_angle(self.angles[angle], times);
            let state = step(body, parent, &self.coordinates, turned, source);
            self.states.push(state);
        }
        if self.experiment.ballistic {
            self.fall_freely();
        }
        if let Some(law) = &self.experiment.conservation {
            self.conserve(law);
        }
    }

    /// Sets the acceleration of the base such that no wrench acts on it.
    fn fall_freely(&mut self) {
        let wrenches =
            self.truth.iter().zip(&self.states).map(|(i, s)| i.wrench(&s.velocity, &s.acceleration));
        let Some(shift) = self.base_motion(wrenches.collect(), Force::zero()) else { return };
        for (state, shift) in self.states.iter_mut().zip(shift) {
            state.acceleration += shift;
        }
    }

    /// Sets the velocity of the base such that the momentum obeys the law.
    fn conserve(&mut self, law: &Conservation) {
        let mut angular = Vector3::zeros();
        for &(body, axis) in &law.axes {
            let mut axis = axis.map(exact::<T>);
            let mut at = Some(body);
            while let Some(i) = at.filter(|&i| self.geometry.bodies[i].parent.is_some()) {
                axis = self.states[i].pose.rotation * axis;
                at = self.geometry.bodies[i].parent;
            }
            angular += axis * T::random(&mut self.source);
        }
        let momenta = self.truth.iter().zip(&self.states).map(|(i, s)| i.apply(&s.velocity));
        let shift = self.base_motion(momenta.collect(), Force::new(angular, Vector3::zeros()));
        for (state, shift) in self.states.iter_mut().zip(shift.into_iter().flatten()) {
            state.velocity += shift;
        }
    }

    /// Computes the motion of the base for which the forces (or momenta) of all bodies sum to `wanted`. Returns its
    /// contribution to the motion of each body.
    fn base_motion(&self, mut forces: Vec<Force<T>>, wanted: Force<T>) -> Option<Vec<Motion<T>>> {
        let bodies = &self.geometry.bodies;
        let mut composite = self.truth.clone();
        for i in (1..bodies.len()).rev() {
            if let Some(p) = bodies[i].parent {
                let pose = &self.states[i].pose;
                let (inertia, force) = (composite[i].transformed(pose), pose.push_force(&forces[i]));
                composite[p] += inertia;
                forces[p] += force;
            }
        }
        let correction = solve(&composite[0], &(wanted.to_vector() - forces[0].to_vector()))?;
        let mut shift = vec![Motion::from_vector(&correction)];
        for i in 1..bodies.len() {
            let own = bodies[i].parent.map_or(Motion::zero(), |p| self.states[i].pose.pull_motion(&shift[p]));
            shift.push(own);
        }
        Some(shift)
    }

    /// Computes the span of the rows; rows are added until two fresh configurations add nothing.
    pub fn row_space(&mut self, pivot: Pivot) -> Echelon<T> {
        let columns: Vec<usize> = (0..self.width).collect();
        self.row_space_in(&columns, pivot)
    }

    /// Computes the row space restricted to some of the columns, up to full rank. Its rank is a proven lower bound of
    /// the rank in all columns.
    pub fn row_space_in(&mut self, columns: &[usize], pivot: Pivot) -> Echelon<T> {
        let mut span = Echelon::new(columns.len(), pivot);
        let (mut row, mut part) = (Vec::new(), Vec::new());
        // Outermost first: these rows have few nonzero columns, so that rows of inner joints are reduced by short rows.
        let mut active: Vec<(Probe, usize)> = self.probes.iter().rev().map(|&p| (p, 0)).collect();
        while !active.is_empty() && !span.is_full() {
            self.draw();
            for (probe, idle) in &mut active {
                self.probe_row(*probe, &mut row);
                part.clear();
                part.extend(columns.iter().map(|&c| row[c]));
                *idle = if span.insert(&part) { 0 } else { *idle + 1 };
            }
            active.retain(|(_, idle)| *idle < 2);
        }
        span
    }

    /// Computes the dimension of the span of velocities attained by each body, gravity included (`V`), by sampling.
    pub fn velocity_dimensions(&mut self) -> Vec<usize> {
        let mut spans = vec![Echelon::new(6, Pivot::Largest); self.geometry.bodies.len()];
        let mut idle = 0;
        while idle < 2 {
            self.draw();
            let mut grown = false;
            for (span, state) in spans.iter_mut().zip(&self.states) {
                if self.experiment.regime != Regime::Static {
                    grown |= span.insert(state.velocity.to_vector().as_slice());
                }
                grown |= span.insert(state.gravity.to_vector().as_slice());
            }
            idle = if grown { 0 } else { idle + 1 };
        }
        spans.iter().map(Echelon::rank).collect()
    }
}

/// Returns the measured forces.
fn probes(experiment: &Experiment, floating: bool, nv: usize) -> Vec<Probe> {
    let Experiment { measured, torques, ballistic, .. } = experiment;
    let base = if floating { 6 } else { 0 };
    let mut out = Vec::with_capacity(nv + 6);
    if matches!(measured, Measured::BaseWrench | Measured::Both | Measured::Momentum) || *ballistic {
        let wrench = |k| if floating { Probe::Coordinate(k) } else { Probe::World(k) };
        out.extend((0..6).map(wrench));
    }
    if matches!(measured, Measured::JointTorques | Measured::Both) {
        let sensed = (base..nv).filter(|&v| torques.get(v).copied().unwrap_or(true));
        out.extend(sensed.map(Probe::Coordinate));
    }
    out
}

/// Converts a double exactly to any number type.
fn exact<T: Number>(x: f64) -> T {
    // A finite double is an integer of 53 bits times a power of two.
    let exponent = if x == 0.0 || !x.is_finite() { 0 } else { x.abs().log2().floor() as i32 - 52 };
    let whole = (x * (-f64::from(exponent)).exp2()) as i64;
    let base = if exponent < 0 { T::from_decimal(1, 2, 0) } else { T::from_i64(2) };
    let power = (0..exponent.unsigned_abs()).fold(T::one(), |power, _| power * base);
    T::from_decimal(whole, 1, 0) * power
}

/// Draws a random number between −1 and 1 that every number type represents exactly.
fn short_fraction<T: Number>(source: &mut SplitMix) -> T {
    let n = (source.next_u64() >> 40).cast_signed() - (1 << 23);
    T::from_decimal(n, 1 << 23, 0)
}

/// Returns cosine and sine of a random angle divided by `parts`.
fn random_angle<T: Number>(source: &mut SplitMix, parts: i64) -> (T, T) {
    loop {
        let u = T::random(source) * T::from_decimal(1, parts, 0);
        // Retry if 1 + u² = 0, which has two solutions among 2⁶¹.
        if let Some(scale) = (T::one() + u * u).inverse() {
            return ((T::one() - u * u) * scale, (u + u) * scale);
        }
    }
}

fn random_rotation<T: Number>(source: &mut SplitMix) -> Matrix3<T> {
    loop {
        let [x, y, z, w] = std::array::from_fn(|_| T::random(source));
        if let Some(rotation) = rotation_from_quaternion(x, y, z, w) {
            return rotation;
        }
    }
}

/// Computes the state of a body from that of its parent, at a random position of its joint.
fn step<T: Number>(
    body: &BodyGeometry<T>,
    parent: &BodyMotion<T>,
    coordinates: &[Coordinate<T>],
    turned: impl Fn() -> (T, T),
    source: &mut SplitMix,
) -> BodyMotion<T> {
    let first = &coordinates[body.v];
    let axis = body.axis();
    let spin = |unit| body.frame * turn_about(2, unit) * body.frame.transpose();
    let angle = || {
        let ((c, s), ((rc, rs), _)) = (turned(), body.rest);
        (c * rc - s * rs, c * rs + s * rc)
    };
    let slide = |k: usize| body.frame.column(k) * coordinates[body.v + k].length;
    let still = Vector3::zeros();
    let moved = match body.pivoting {
        // The single parameter of a symmetric rotor does not depend on its angle.
        Pivoting::Revolute if body.kind == BodyKind::SymmetricRotor => Pose::identity(),
        Pivoting::Revolute => Pose::new(spin(angle()), still),
        Pivoting::Helical => {
            let length = body.pitch * (body.ratio * first.length + body.rest.1);
            Pose::new(spin(angle()), axis * length)
        }
        Pivoting::Prismatic => Pose::from_translation(axis * (body.ratio * first.length + body.rest.1)),
        Pivoting::Cylindrical => Pose::new(spin(first.unit), axis * first.length),
        Pivoting::Planar => Pose::new(spin(first.unit), slide(0) + slide(1)),
        Pivoting::Spherical => Pose::new(random_rotation(source), still),
        Pivoting::Floating => Pose::new(random_rotation(source), Vector3::from_fn(|_, _| T::random(source))),
    };
    let pose = body.placement * moved;
    let (mut own, mut hurry) = (Motion::zero(), Motion::zero());
    for (mode, c) in body.modes().iter().zip(&coordinates[body.v..]) {
        own += *mode * (body.ratio * c.velocity);
        hurry += *mode * (body.ratio * c.acceleration);
    }
    let velocity = pose.pull_motion(&parent.velocity) + own;
    BodyMotion {
        pose,
        velocity,
        acceleration: pose.pull_motion(&parent.acceleration) + hurry + velocity.cross(&own),
        gravity: pose.pull_motion(&parent.gravity),
    }
}

/// Largest ratio of angles that counts as a gear. Beyond it, two angles are treated as independent: a polynomial of
/// lower degree in their cosines and sines that vanishes along such a curve vanishes identically.
const LARGEST_GEAR: i64 = 10_000;

/// Coupling of rotations: a configuration has independent random angles, and each body turns by an integer multiple of
/// one of them.
#[derive(Debug, Clone)]
struct Gearing {
    /// Number of parts into which each angle is divided.
    parts: Vec<i64>,
    /// Index of the angle of each body, and the multiple.
    turns: Vec<(usize, i64)>,
}

impl Gearing {
    fn new<T: Number>(geometry: &Geometry<T>, nv: usize) -> Self {
        let mut parts: Vec<i64> = Vec::new();
        let mut fractions: Vec<(usize, i64, i64)> = Vec::with_capacity(geometry.bodies.len());
        // Angles of each coordinate, with the ratio of the body to which each belongs.
        let mut of: Vec<Vec<(usize, Surd)>> = vec![Vec::new(); nv];
        for body in &geometry.bodies {
            let fit = of[body.v].iter().find_map(|&(angle, unit)| {
                let (n, d) = body.exact_ratio.quotient(unit, LARGEST_GEAR)?;
                let common = parts[angle] / gcd(parts[angle], d) * d;
                (common <= LARGEST_GEAR).then_some((angle, n, d, common))
            });
            if let Some((angle, n, d, common)) = fit {
                parts[angle] = common;
                fractions.push((angle, n, d));
            } else {
                of[body.v].push((parts.len(), body.exact_ratio));
                fractions.push((parts.len(), 1, 1));
                parts.push(1);
            }
        }
        let turns = fractions.iter().map(|&(angle, n, d)| (angle, n * (parts[angle] / d))).collect();
        Self { parts, turns }
    }
}

/// Solves `I a = f` for a generic inertia.
fn solve<T: Number>(inertia: &Inertia<T>, f: &SVector<T, 6>) -> Option<SVector<T, 6>> {
    let mut m = SMatrix::<T, 6, 7>::zeros();
    for k in 0..6 {
        let mut unit = SVector::<T, 6>::zeros();
        unit[k] = T::one();
        m.fixed_view_mut::<6, 1>(0, k).copy_from(&inertia.apply(&Motion::from_vector(&unit)).to_vector());
    }
    m.set_column(6, f);
    let mut span = Echelon::new(7, Pivot::First);
    for row in m.row_iter() {
        span.insert(row.transpose().as_slice());
    }
    span.reduce();
    let mut out = SVector::<T, 6>::zeros();
    for (row, &p) in span.rows().zip(span.pivots()) {
        *out.get_mut(p)? = row[6];
    }
    (span.rank() == 6).then_some(out)
}
