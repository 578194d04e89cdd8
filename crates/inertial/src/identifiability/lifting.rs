//! Exact motions of mechanisms with loops, as power series that keep the loops closed.
//!
//! Random configurations over GF(p) cannot close loops, but curves through one closed configuration can: the closure
//! lifts from one order in time to the next (Hensel), by one constant linear solve per order. A curve never leaves the
//! assembly branch on which it starts. This is lifting in Z/pᵏ with the time `t` in place of `p`, with two advantages:
//! numbers stay single words, and since null vectors do not depend on `t`, each order of a row of the regressor is a
//! separate row over GF(p), so that elimination needs no valuations.
//!
//! Loops enter through the velocity constraints only, `J(q) v = 0`: a mechanism that starts closed and satisfies them
//! stays closed. Redundant constraints (overconstrained machines) are left out of the solve and must then hold at every
//! order; if they do not, the starting configuration is singular.

use nalgebra::{Matrix3, Vector3};

use crate::linalg::{Echelon, FullPivots, Number, Pivot, SplitMix};
use crate::mechanism::Assembled;
use crate::spatial::{Force, Motion, Pose, skew};

/// Reason why no curve can start from a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stalled {
    /// Singular configuration with more freedoms at first order than motions, or inconsistent geometry.
    Singular,
    /// Loops that permit no motion.
    Rigid,
}

/// Starting configuration whose constraints have been solved at first order.
#[derive(Debug, Clone)]
pub struct Start<'a, T: Number> {
    pub(super) assembled: &'a Assembled<T>,
    /// Rows of the constraint Jacobian that are solved, and those that follow from them.
    solved: Vec<usize>,
    implied: Vec<usize>,
    /// Velocity coordinates determined by the solved rows, and the independent ones.
    dependent: Vec<usize>,
    independent: Vec<usize>,
    /// Inverse of the Jacobian's block `solved × dependent`, row-major.
    inverse: Vec<T>,
    /// Bodies on the paths from the ground to both sides of each loop; bodies common to both sides cancel.
    paths: Vec<Vec<(usize, bool)>>,
    /// Velocity coordinates on which each constraint can depend.
    reach: Vec<Vec<usize>>,
}

impl<'a, T: Number> Start<'a, T> {
    /// Chooses independent coordinates, as far as possible among those not marked in `prefer_dependent`. With rounded
    /// numbers the marked coordinates must all be dependent.
    pub fn new(assembled: &'a Assembled<T>, prefer_dependent: &[bool]) -> Result<Self, Stalled> {
        let nv = assembled.nv;
        let paths: Vec<_> =
            assembled.loops.iter().map(|l| path(assembled, l.predecessor, l.successor)).collect();
        let reach = assembled.loops.iter().zip(&paths).flat_map(|(joint, path)| {
            let bodies = path.iter().map(|&(i, _)| &assembled.bodies[i]);
            let mut columns: Vec<usize> = bodies.flat_map(|b| b.v..b.v + b.modes.len()).collect();
            columns.sort_unstable();
            columns.dedup();
            std::iter::repeat_n(columns, joint.wrenches.len() + usize::from(joint.axes.is_some()))
        });
        let mut start = Self {
            assembled,
            solved: Vec::new(),
            implied: Vec::new(),
            dependent: Vec::new(),
            independent: Vec::new(),
            inverse: Vec::new(),
            reach: reach.collect(),
            paths,
        };
        let mut curve = Curve::new(&start);
        curve.push_geometry();
        let jacobian = &curve.jacobians[0];
        let mut is_dependent = vec![false; nv];
        let (solved, implied) = if T::TOLERANCE > 0.0 {
            let solved = best_rows(jacobian, prefer_dependent).ok_or(Stalled::Singular)?;
            is_dependent.copy_from_slice(prefer_dependent);
            (0..jacobian.len() / nv.max(1)).partition(|i| solved.contains(i))
        } else {
            let mut order: Vec<usize> = (0..nv).collect();
            order.sort_by_key(|&v| !prefer_dependent[v]);
            let mut span = Echelon::<T>::new(nv, Pivot::First);
            let (mut solved, mut implied) = (Vec::new(), Vec::new());
            for (i, row) in jacobian.chunks_exact(nv.max(1)).enumerate() {
                let row: Vec<T> = order.iter().map(|&v| row[v]).collect();
                if span.insert(&row) { solved.push(i) } else { implied.push(i) }
            }
            span.pivots().iter().for_each(|&p| is_dependent[order[p]] = true);
            (solved, implied)
        };
        let dependent: Vec<usize> = (0..nv).filter(|&v| is_dependent[v]).collect();
        let independent: Vec<usize> = (0..nv).filter(|&v| !is_dependent[v]).collect();
        if independent.is_empty() {
            return Err(Stalled::Rigid);
        }
        let block =
            solved.iter().flat_map(|&i| dependent.iter().map(move |&v| jacobian[i * nv + v])).collect();
        let inverse = inverse(block, solved.len()).ok_or(Stalled::Singular)?;
        (start.solved, start.implied) = (solved, implied);
        (start.dependent, start.independent, start.inverse) = (dependent, independent, inverse);
        Ok(start)
    }

    /// Returns the degrees of freedom of the closed mechanism.
    pub fn mobility(&self) -> usize {
        self.independent.len()
    }

    /// Returns the velocity coordinates chosen as independent.
    pub fn independent(&self) -> &[usize] {
        &self.independent
    }

    /// Returns the number of redundant constraints.
    pub fn redundant(&self) -> usize {
        self.implied.len()
    }

    /// Solves `A x = −b` on the solved rows for the dependent coordinates; `b` has one entry per constraint.
    fn solve(&self, b: impl Fn(usize) -> T, mut put: impl FnMut(usize, T)) {
        let n = self.solved.len();
        for (i, &v) in self.dependent.iter().enumerate() {
            let row = &self.inverse[i * n..(i + 1) * n];
            let terms = row.iter().zip(&self.solved).filter(|(a, _)| !a.is_zero());
            let sum = terms.fold(T::zero(), |sum, (&a, &r)| sum + a * b(r));
            put(v, -sum);
        }
    }
}

/// Returns as many rows of a row-major matrix as columns are marked, chosen to be most independent in these columns.
fn best_rows<T: Number>(jacobian: &[T], marked: &[bool]) -> Option<Vec<usize>> {
    let width = marked.iter().filter(|&&m| m).count();
    let rows = jacobian.chunks_exact(marked.len().max(1));
    let block = rows.flat_map(|row| row.iter().zip(marked).filter(|(_, m)| **m).map(|(&x, _)| x)).collect();
    let found = FullPivots::new(block, width, T::TOLERANCE);
    (found.places.len() == width).then(|| found.places.iter().map(|p| p.0).collect())
}

fn path<T: Number>(assembled: &Assembled<T>, a: Option<usize>, b: Option<usize>) -> Vec<(usize, bool)> {
    let (mut a, mut b, mut out) = (a, b, Vec::new());
    // Indices increase outward: move inward from the larger one until both sides meet (`None`, the ground, is the
    // smallest).
    while a != b {
        let (at, positive) = if a > b { (&mut a, false) } else { (&mut b, true) };
        if let Some(i) = *at {
            out.push((i, positive));
            *at = assembled.bodies[i].parent;
        }
    }
    out
}

/// Computes the inverse of a square row-major matrix.
pub(super) fn inverse<T: Number>(mut a: Vec<T>, n: usize) -> Option<Vec<T>> {
    let mut out = vec![T::zero(); n * n];
    (0..n).for_each(|i| out[i * n + i] = T::one());
    for c in 0..n {
        let pivot = (c..n).max_by(|&i, &j| a[i * n + c].weight().total_cmp(&a[j * n + c].weight()))?;
        for k in 0..n {
            a.swap(c * n + k, pivot * n + k);
            out.swap(c * n + k, pivot * n + k);
        }
        let scale = a[c * n + c].inverse()?;
        // Mechanisms with many loops have sparse rows.
        let scaled = |matrix: &mut [T]| -> Vec<(usize, T)> {
            let row = &mut matrix[c * n..(c + 1) * n];
            row.iter_mut().for_each(|x| *x *= scale);
            row.iter().copied().enumerate().filter(|(_, x)| x.weight() > 0.0).collect()
        };
        let (left, right) = (scaled(&mut a), scaled(&mut out));
        for i in (0..n).filter(|&i| i != c) {
            let factor = a[i * n + c];
            if !factor.is_zero() {
                left.iter().for_each(|&(k, x)| a[i * n + k].subtract_product(factor, x));
                right.iter().for_each(|&(k, x)| out[i * n + k].subtract_product(factor, x));
            }
        }
    }
    Some(out)
}

/// Poses by order in time: `R(t) = Σ R_k tᵏ`, `p(t) = Σ p_k tᵏ`.
#[derive(Debug, Clone, Default)]
struct Track<T: Number>(Vec<Pose<T>>);

/// Computes `Σ_{i+j=k} f(a_i, b_j)`.
#[inline]
pub(super) fn convolve<A, B, S: std::ops::AddAssign>(
    zero: S,
    a: &[A],
    b: &[B],
    k: usize,
    f: impl Fn(&A, &B) -> S,
) -> S {
    let mut sum = zero;
    for i in 0..=k {
        sum += f(&a[i], &b[k - i]);
    }
    sum
}

/// Closed motion from a [`Start`], known up to some order in time and extended order by order.
#[derive(Debug, Clone)]
pub struct Curve<'a, T: Number> {
    start: &'a Start<'a, T>,
    /// Pose of each body relative to its parent, and relative to the world.
    relative: Vec<Track<T>>,
    world: Vec<Track<T>>,
    /// Free modes of each body in the world frame.
    screws: Vec<Vec<Vec<Motion<T>>>>,
    /// Constraint wrenches of each loop in the world frame.
    wrenches: Vec<Vec<Vec<Force<T>>>>,
    /// Constraint Jacobian by order, row-major.
    jacobians: Vec<Vec<T>>,
    /// Velocities by order; the first two orders are random at the independent coordinates.
    velocities: Vec<Vec<T>>,
    /// Gradients `∂v/∂v_independent` by order: one column per independent coordinate, with entries for all coordinates.
    gradients: Vec<Vec<Vec<T>>>,
    /// Residual of the redundant constraints with rounded numbers.
    slack: f64,
}

impl<'a, T: Number> Curve<'a, T> {
    /// Creates a curve without any order.
    pub(super) fn new(start: &'a Start<'a, T>) -> Self {
        let assembled = start.assembled;
        let n = assembled.bodies.len();
        Self {
            start,
            relative: vec![Track(Vec::new()); n],
            world: vec![Track(Vec::new()); n],
            screws: assembled.bodies.iter().map(|b| vec![Vec::new(); b.modes.len()]).collect(),
            wrenches: assembled
                .loops
                .iter()
                .map(|l| vec![Vec::new(); l.wrenches.len() + usize::from(l.axes.is_some())])
                .collect(),
            jacobians: Vec::new(),
            velocities: Vec::new(),
            gradients: Vec::new(),
            slack: 0.0,
        }
    }

    /// Returns the number of known orders.
    #[allow(clippy::len_without_is_empty)] // A curve without orders is never used.
    pub fn len(&self) -> usize {
        self.velocities.len()
    }

    /// Adds one order in time.
    pub fn extend(&mut self, source: &mut SplitMix) -> Result<(), Stalled> {
        self.push_geometry();
        let start = self.start;
        let (nv, k) = (start.assembled.nv, self.len());
        let mut velocity = vec![T::zero(); nv];
        if k < 2 {
            start.independent.iter().for_each(|&v| velocity[v] = T::random(source));
        }
        self.velocities.push(velocity);
        let rows = self.jacobians[0].len() / nv.max(1);
        let defect = |curve: &Self, row: usize| {
            convolve(T::zero(), &curve.jacobians, &curve.velocities, k, |j, v| {
                dot(&start.reach[row], &j[row * nv..(row + 1) * nv], v)
            })
        };
        let b: Vec<T> = (0..rows).map(|row| defect(self, row)).collect();
        let velocity = &mut self.velocities[k];
        start.solve(|row| b[row], |v, x| velocity[v] = x);
        let mut gradient = Vec::with_capacity(start.mobility());
        let mut slack = self.slack;
        for (a, &v) in start.independent.iter().enumerate() {
            let mut column = vec![T::zero(); nv];
            if k == 0 {
                column[v] = T::one();
            }
            let b = |row: usize, column: &[T]| {
                let entries = row * nv..(row + 1) * nv;
                let known = (1..=k).fold(T::zero(), |sum, i| {
                    sum + dot(
                        &start.reach[row],
                        &self.jacobians[i][entries.clone()],
                        &self.gradients[k - i][a],
                    )
                });
                known + dot(&start.reach[row], &self.jacobians[0][entries], column)
            };
            let right: Vec<T> = (0..rows).map(|row| b(row, &column)).collect();
            start.solve(|row| right[row], |v, x| column[v] = x);
            let open = start.implied.iter().map(|&row| b(row, &column).weight()).fold(0.0, f64::max);
            if T::TOLERANCE > 0.0 {
                slack = slack.max(open);
            } else if open > 0.0 {
                return Err(Stalled::Singular);
            }
            gradient.push(column);
        }
        self.gradients.push(gradient);
        self.slack = slack;
        Ok(())
    }

    /// Extends poses, screws, wrenches and the Jacobian by one order, using the velocities of lower orders.
    fn push_geometry(&mut self) {
        let assembled = self.start.assembled;
        let k = self.jacobians.len();
        for (i, body) in assembled.bodies.iter().enumerate() {
            let pose = if k == 0 { body.pose } else { self.advance(i, k) };
            self.relative[i].0.push(pose);
            let pose = match body.parent {
                None => pose,
                Some(p) => {
                    let (outer, inner) = (&self.world[p].0, &self.relative[i].0);
                    let mut sum = Pose::new(Matrix3::zeros(), outer[k].translation);
                    for j in 0..=k {
                        sum.rotation += outer[j].rotation * inner[k - j].rotation;
                        sum.translation += outer[j].rotation * inner[k - j].translation;
                    }
                    sum
                }
            };
            self.world[i].0.push(pose);
            let world = &self.world[i].0;
            for (mode, out) in body.modes.iter().zip(&mut self.screws[i]) {
                let mut linear = world[k].rotation * mode.linear;
                if !mode.angular.iter().all(T::is_zero) {
                    linear += convolve(Vector3::zeros(), world, world, k, |a, b| {
                        a.translation.cross(&(b.rotation * mode.angular))
                    });
                }
                out.push(Motion::new(world[k].rotation * mode.angular, linear));
            }
        }
        let nv = assembled.nv;
        let mut jacobian = Vec::new();
        for (l, joint) in assembled.loops.iter().enumerate() {
            let fixed = |k: usize| if k == 0 { Matrix3::identity() } else { Matrix3::zeros() };
            let rotation = |body: Option<usize>, k: usize| {
                body.map_or_else(|| fixed(k), |i| self.world[i].0[k].rotation)
            };
            for (wrench, out) in joint.wrenches.iter().zip(&mut self.wrenches[l]) {
                let turned = rotation(joint.successor, k);
                let mut angular = turned * wrench.angular;
                if let Some(i) = joint.successor {
                    let world = &self.world[i].0;
                    angular += convolve(Vector3::zeros(), world, world, k, |a, b| {
                        a.translation.cross(&(b.rotation * wrench.linear))
                    });
                }
                out.push(Force::new(angular, turned * wrench.linear));
            }
            if let Some([first, second]) = &joint.axes {
                let mut moment = Vector3::zeros();
                for j in 0..=k {
                    moment += (rotation(joint.predecessor, j) * first)
                        .cross(&(rotation(joint.successor, k - j) * second));
                }
                if let Some(out) = self.wrenches[l].last_mut() {
                    out.push(Force::new(moment, Vector3::zeros()));
                }
            }
            for wrench in &self.wrenches[l] {
                let mut row = vec![T::zero(); nv];
                for &(i, positive) in &self.start.paths[l] {
                    for (mode, screw) in self.screws[i].iter().enumerate() {
                        let power = convolve(T::zero(), wrench, screw, k, |w, s| s.dot(w));
                        row[assembled.bodies[i].v + mode] += if positive { power } else { -power };
                    }
                }
                jacobian.extend(row);
            }
        }
        self.jacobians.push(jacobian);
    }

    /// Computes order `k` of the pose of body `i` relative to its parent: `k X_k = Σ X_j [ξ_{k−1−j}]` from `Ẋ = X [ξ]`.
    fn advance(&self, i: usize, k: usize) -> Pose<T> {
        let body = &self.start.assembled.bodies[i];
        let poses = &self.relative[i].0;
        let mut sum = Pose::new(Matrix3::zeros(), Vector3::zeros());
        for j in 0..k {
            let v = &self.velocities[k - 1 - j][body.v..];
            let twist = body.modes.iter().zip(v).fold(Motion::zero(), |sum, (m, &v)| sum + *m * v);
            sum.rotation += poses[j].rotation * skew(&twist.angular);
            sum.translation += poses[j].rotation * twist.linear;
        }
        // Orders are far smaller than the characteristic of the field.
        let scale = integer::<T>(k).inverse().unwrap_or_else(T::zero);
        Pose::new(sum.rotation * scale, sum.translation * scale)
    }

    /// Extends the twists of all bodies, given all velocity coordinates by order.
    pub(super) fn extend_twists(&self, velocity: impl Fn(usize) -> Vec<T>, tracks: &mut Twists<T>) {
        let assembled = self.start.assembled;
        for k in tracks.len()..self.len() {
            let velocity = velocity(k);
            tracks.ground.resize(k + 1, Motion::zero());
            for (i, body) in assembled.bodies.iter().enumerate() {
                let moving = body.modes.iter().zip(&velocity[body.v..]);
                let mut twist = moving.fold(Motion::zero(), |sum, (m, &v)| sum + *m * v);
                let pose = &self.relative[i].0;
                let parent = body.parent.map_or(&tracks.ground, |p| &tracks.own[p]);
                let lever =
                    convolve(Vector3::zeros(), pose, parent, k, |x, v| x.translation.cross(&v.angular));
                tracks.carried[i].push(parent[k].linear - lever);
                let carried = &tracks.carried[i];
                for j in 0..=k {
                    twist.angular += pose[j].rotation.tr_mul(&parent[k - j].angular);
                    twist.linear += pose[j].rotation.tr_mul(&carried[k - j]);
                }
                tracks.own[i].push(twist);
            }
        }
    }

    /// Returns the velocities of all coordinates at order `k` if the independent ones move with constant `rates`.
    pub(super) fn rates(&self, rates: &[T], k: usize) -> Vec<T> {
        let column =
            |v: usize| self.gradients[k].iter().zip(rates).fold(T::zero(), |sum, (g, &r)| sum + g[v] * r);
        (0..self.start.assembled.nv).map(column).collect()
    }

    /// Returns the velocities of all coordinates at order `k` on the curve itself.
    pub(super) fn velocity(&self, k: usize) -> Vec<T> {
        self.velocities[k].clone()
    }

    /// Adds to the velocities of the first coordinates at the last order; no loop depends on these coordinates.
    pub(super) fn push_base(&mut self, change: &[T]) {
        if let Some(velocity) = self.velocities.last_mut() {
            velocity.iter_mut().zip(change).for_each(|(v, &x)| *v += x);
        }
    }

    /// Returns the residual of the redundant constraints with rounded numbers; zero for exact numbers.
    pub(super) fn slack(&self) -> f64 {
        self.slack
    }

    /// Returns the direction of gravity in the world frame.
    pub(super) fn gravity(&self) -> Vector3<T> {
        self.start.assembled.gravity
    }

    /// Returns the degrees of freedom.
    pub(super) fn freedoms(&self) -> usize {
        self.start.mobility()
    }

    /// Returns the poses of a body in the world frame by order.
    pub(super) fn world(&self, body: usize) -> &[Pose<T>] {
        &self.world[body].0
    }
}

/// Twists by order in time, each in the frame of its body.
#[derive(Debug, Clone)]
pub(super) struct Twists<T: Number> {
    /// Twists of the world.
    pub ground: Vec<Motion<T>>,
    /// Twists of the bodies.
    pub own: Vec<Vec<Motion<T>>>,
    /// Velocity of the origin of each body as if fixed to its parent, in the frame of the parent.
    carried: Vec<Vec<Vector3<T>>>,
}

impl<T: Number> Twists<T> {
    pub fn new(bodies: usize, ground: Motion<T>) -> Self {
        Self { ground: vec![ground], own: vec![Vec::new(); bodies], carried: vec![Vec::new(); bodies] }
    }

    fn len(&self) -> usize {
        self.own.first().map_or(0, Vec::len)
    }

    /// Removes the last order.
    pub fn pop(&mut self) {
        for track in &mut self.own {
            track.pop();
        }
        for track in &mut self.carried {
            track.pop();
        }
    }
}

/// Converts an order in time to a number of type `T`.
#[allow(clippy::cast_possible_wrap)] // Orders are small.
pub(super) fn integer<T: Number>(k: usize) -> T {
    T::from_i64(k as i64)
}

/// Computes the dot product of two vectors over the given positions.
fn dot<T: Number>(places: &[usize], a: &[T], b: &[T]) -> T {
    places.iter().fold(T::zero(), |sum, &i| sum + a[i] * b[i])
}
