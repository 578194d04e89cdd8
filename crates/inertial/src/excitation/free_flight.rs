//! Information of one instant of free flight, and its derivatives.
//!
//! For zero total momentum, the twist of the base follows from the positions and rates of the joints and the rates of the wheels
//! alone, `Ic ν₀ = −h − Σ Aₖ q̇ₖ`. An instant therefore does not depend on the past. Measured rates with covariance `Σ` yield the
//! information `Kᵀ C⁻¹ K` of the base parameters with `C = A Σ Aᵀ` (the Fisher information: the regressor of paper 002 with the
//! errors due to its noise).
//!
//! All quantities are in the frame of the base. Let `S` be the motion of a joint, `X` the composite inertia of the bodies that it
//! carries, `P` their momentum and `V` the twist before the joint. Then `dX = S×* X − X S×`, modes beyond the joint rotate with
//! it, and the momentum changes by `S×* P − X (S × V)`. All derivatives below follow from these three.

use nalgebra::{DMatrix, Matrix6, Vector3, Vector6};

use crate::mechanism::{Base, Mechanism};
use crate::spatial::{Force, Inertia, Motion, Parameters, Pose, momentum_columns};
use crate::{Error, Result};

/// Motion of one body due to one joint coordinate.
#[derive(Debug, Clone, Copy)]
struct Mode {
    /// Body that moves relative to its parent.
    body: usize,
    /// Velocity coordinate.
    v: usize,
    /// Motion in the base frame, multiplied by the ratio.
    motion: Motion<f64>,
}

/// State of one instant, with the memory of one thread.
#[derive(Debug, Clone)]
pub struct MomentumState<'m> {
    mechanism: &'m Mechanism,
    /// Body of each base parameter, and its index among the ten parameters (among the last `len`).
    columns: Vec<(usize, usize)>,
    poses: Vec<Pose<f64>>,
    modes: Vec<Mode>,
    composite: Vec<Inertia<f64>>,
    twists: Vec<Motion<f64>>,
    /// Momentum of each body with all bodies that it carries.
    momenta: Vec<Force<f64>>,
    /// Angular momentum of the wheels on each body and on all bodies that it carries, about their axes.
    stored: Vec<Vector3<f64>>,
    inverse: Matrix6<f64>,
    /// Momentum matrix `A = ∂(momentum)/∂(rates)`, `6 × nv`, angular rows first.
    momentum_matrix: DMatrix<f64>,
    /// Regressor, `6 × rank`, angular rows first.
    pub k: DMatrix<f64>,
    // Memory of the pullback.
    own: Vec<Matrix6<f64>>,
    pulls: Vec<Force<f64>>,
    turned: Vec<Matrix6<f64>>,
}

/// Gradient of a scalar with respect to the motion at one instant.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MomentumStateGradient {
    /// Derivatives with respect to the displacement along each velocity coordinate (zero for the base).
    pub q: Vec<f64>,
    /// Derivatives with respect to each rate (zero for the base, whose rates are dependent).
    pub v: Vec<f64>,
    /// Derivatives with respect to the rate of each wheel.
    pub wheels: Vec<f64>,
}

impl MomentumStateGradient {
    /// Allocates the gradient, to be written by [`MomentumState::pull`].
    pub fn new(mechanism: &Mechanism) -> Self {
        Self {
            q: vec![0.0; mechanism.nv()],
            v: vec![0.0; mechanism.nv()],
            wheels: vec![0.0; mechanism.wheels().len()],
        }
    }
}

impl<'m> MomentumState<'m> {
    /// Creates the model for the base parameters in the given columns of the full parameter vector.
    pub fn new(mechanism: &'m Mechanism, base_columns: &[usize]) -> Result<Self> {
        if mechanism.base() != Base::Floating || !mechanism.loops().is_empty() {
            return Err(Error::NotApplicable(
                "free flight needs a floating base and a mechanism without loops".into(),
            ));
        }
        let n = mechanism.bodies().len();
        let mut columns = Vec::with_capacity(base_columns.len());
        for &c in base_columns {
            let block =
                mechanism.parameter_blocks().iter().find(|b| (b.offset..b.offset + b.len).contains(&c));
            let block = block.ok_or(Error::Dimension {
                what: "column of a base parameter",
                expected: mechanism.parameter_count(),
                found: c,
            })?;
            columns.push((block.body, 10 - block.len + c - block.offset));
        }
        let mut modes = Vec::new();
        for (i, body) in mechanism.bodies().iter().enumerate() {
            for k in 0..body.joint_type.nv() {
                modes.push(Mode { body: i, v: body.drive.v + k, motion: Motion::zero() });
            }
        }
        Ok(Self {
            mechanism,
            k: DMatrix::zeros(6, columns.len()),
            columns,
            poses: vec![Pose::identity(); n],
            modes,
            composite: vec![Inertia::zero(); n],
            twists: vec![Motion::zero(); n],
            momenta: vec![Force::zero(); n],
            stored: vec![Vector3::zeros(); n],
            inverse: Matrix6::zeros(),
            momentum_matrix: DMatrix::zeros(6, mechanism.nv()),
            own: vec![Matrix6::zeros(); n],
            pulls: vec![Force::zero(); n],
            turned: vec![Matrix6::zeros(); n],
        })
    }

    /// Computes the twist of the base and the regressor at positions `q` and rates `v` (those of the base are ignored) with the
    /// wheel rates `wheels`.
    ///
    /// # Panics
    /// Panics if a slice is shorter than `nq`, `nv` or the number of wheels of the mechanism.
    pub fn set(&mut self, q: &[f64], v: &[f64], wheels: &[f64]) -> Result<()> {
        let bodies = self.mechanism.bodies();
        for (i, body) in bodies.iter().enumerate().skip(1) {
            let parent = body.parent.unwrap_or(0);
            self.poses[i] = self.poses[parent] * body.pose(q);
        }
        for ((body, pose), composite) in bodies.iter().zip(&self.poses).zip(&mut self.composite) {
            *composite = body.inertia.transformed(pose);
        }
        for (i, body) in bodies.iter().enumerate().skip(1).rev() {
            let carried = self.composite[i];
            self.composite[body.parent.unwrap_or(0)] += carried;
        }
        self.momentum_matrix.fill(0.0);
        let mut moved = Vector6::zeros();
        let mut first = 0;
        for (i, body) in bodies.iter().enumerate() {
            for (k, mode) in body.joint_type.free_modes().iter().enumerate() {
                let motion = self.poses[i].push_motion(mode) * body.drive.ratio;
                let column = self.composite[i].apply(&motion).to_vector();
                let coordinate = body.drive.v + k;
                let mut sum = self.momentum_matrix.fixed_view_mut::<6, 1>(0, coordinate);
                sum += column;
                if i > 0 {
                    moved += column * v[coordinate];
                }
                self.modes[first + k].motion = motion;
            }
            first += body.joint_type.nv();
        }
        self.stored.fill(Vector3::zeros());
        for (wheel, rate) in self.mechanism.wheels().iter().zip(wheels) {
            self.stored[wheel.body] += self.poses[wheel.body].rotation * wheel.axis * (wheel.inertia * rate);
        }
        for (i, body) in bodies.iter().enumerate().skip(1).rev() {
            let carried = self.stored[i];
            self.stored[body.parent.unwrap_or(0)] += carried;
        }
        let inertia = matrix(&self.composite[0]);
        self.inverse = inertia.cholesky().map(|c| c.inverse()).ok_or_else(|| {
            Error::Singular(
                "the mass or the inertia of the whole robot is not positive: it has no momentum model".into(),
            )
        })?;
        let own = -Force::new(self.stored[0], Vector3::zeros()).to_vector();
        self.twists[0] = Motion::from_vector(&(self.inverse * (own - moved)));
        let mut modes = self.modes.iter().skip(6);
        for (i, body) in bodies.iter().enumerate().skip(1) {
            let mut twist = self.twists[body.parent.unwrap_or(0)];
            for mode in modes.by_ref().take(body.joint_type.nv()) {
                twist += mode.motion * v[mode.v];
            }
            self.twists[i] = twist;
        }
        self.regressor();
        Ok(())
    }

    /// Returns the twist of the base in its own frame.
    pub fn base_twist(&self) -> Motion<f64> {
        self.twists[0]
    }

    /// Returns the inverse of the inertia of the whole robot in the frame of the base, angular first.
    pub(super) fn inverse_inertia(&self) -> &Matrix6<f64> {
        &self.inverse
    }

    fn regressor(&mut self) {
        let mut body = usize::MAX;
        let mut block = nalgebra::SMatrix::<f64, 6, 10>::zeros();
        for (j, &(i, c)) in self.columns.iter().enumerate() {
            if i != body {
                body = i;
                block = momentum_columns(&self.twists[i], &self.poses[i]);
            }
            let column = block.column(c);
            self.k.fixed_view_mut::<6, 1>(0, j).copy_from(&column);
        }
    }

    /// Computes `C = A Σ Aᵀ` for standard deviations of the rates, one per velocity coordinate.
    pub fn covariance(&self, noise: &[f64]) -> Matrix6<f64> {
        let mut out = Matrix6::zeros();
        for (column, sigma) in self.momentum_matrix.column_iter().zip(noise) {
            let column = column.fixed_rows::<6>(0) * *sigma;
            out += column * column.transpose();
        }
        out
    }

    /// Computes the gradient of `Σᵣ eᵣᵀ K gᵣ − Σ_c y_c · A_c + w · ν₀` for the columns `gᵣ` of `g` (`rank × 6`) and `y_c` of `y`
    /// (`6 × nv`), with constant `g`, `y` and `w`. This is the pullback of a function of `K`, `A` and the twist of the base, whose
    /// derivatives are `g`, `y` and `w`.
    pub fn pull(
        &mut self,
        g: &DMatrix<f64>,
        y: Option<&DMatrix<f64>>,
        w: Option<&Vector6<f64>>,
        out: &mut MomentumStateGradient,
    ) {
        let bodies = self.mechanism.bodies();
        let n = bodies.len();
        out.q.fill(0.0);
        out.v.fill(0.0);
        self.spread(g);
        // Contributions of each body with all bodies that it carries: Q = Σᵣ P(gᵣ) eᵣᵀ, Z = Σᵣ X(gᵣ) eᵣ, and their momentum.
        for i in 0..n {
            self.momenta[i] = bodies[i].inertia.transformed(&self.poses[i]).apply(&self.twists[i]);
        }
        for i in (1..n).rev() {
            let parent = bodies[i].parent.unwrap_or(0);
            let (own, pull, momentum) = (self.own[i], self.pulls[i], self.momenta[i]);
            self.own[parent] += own;
            self.pulls[parent] += pull;
            self.momenta[parent] += momentum;
        }
        let twist = self.pulls[0].to_vector() + w.copied().unwrap_or_default();
        let lambda = Motion::from_vector(&(self.inverse * twist));
        for mode in self.modes.iter().skip(6) {
            let (i, s) = (mode.body, &mode.motion);
            let before = self.twists[bodies[i].parent.unwrap_or(0)];
            let swept = s.cross(&before);
            let momentum = self.composite[i].apply(s);
            let mut change = -inner(&cross(s), &self.own[i]) - swept.dot(&self.pulls[i]);
            // Reaction of the twist of the base: Ic dν₀ = d(own momentum) − dp.
            change += s.cross(&lambda).dot(&self.momenta[i]) + lambda.dot(&self.composite[i].apply(&swept));
            change -= lambda.angular.dot(&s.angular.cross(&self.stored[i]));
            out.q[mode.v] += change;
            out.v[mode.v] += s.dot(&self.pulls[i]) - lambda.dot(&momentum);
        }
        for (wheel, slot) in self.mechanism.wheels().iter().zip(&mut out.wheels) {
            *slot = -lambda.angular.dot(&(self.poses[wheel.body].rotation * wheel.axis)) * wheel.inertia;
        }
        if let Some(y) = y {
            self.pull_momentum_matrix(y, out);
        }
    }

    /// Computes the part of `K`: for each body `Σᵣ (I(gᵣ) V) eᵣᵀ` and `Σᵣ I(gᵣ) eᵣ`.
    fn spread(&mut self, g: &DMatrix<f64>) {
        self.own.fill(Matrix6::zeros());
        self.pulls.fill(Force::zero());
        let mut j = 0;
        while j < self.columns.len() {
            let body = self.columns[j].0;
            let mut end = j;
            let mut virtual_bodies = [Parameters::zeros(); 6];
            let mut own = Matrix6::zeros();
            while end < self.columns.len() && self.columns[end].0 == body {
                let column = self.k.fixed_view::<6, 1>(0, end);
                for (r, parameters) in virtual_bodies.iter_mut().enumerate() {
                    parameters[self.columns[end].1] = g[(end, r)];
                    let mut sum = own.fixed_view_mut::<6, 1>(0, r);
                    sum += column * g[(end, r)];
                }
                end += 1;
            }
            self.own[body] = own;
            let pose = &self.poses[body];
            let mut pull = Force::zero();
            for (r, parameters) in virtual_bodies.iter().enumerate() {
                let mut unit = Vector6::zeros();
                unit[r] = 1.0;
                let motion = pose.pull_motion(&Motion::from_vector(&unit));
                pull += pose.push_force(&Inertia::from_parameters(parameters).apply(&motion));
            }
            self.pulls[body] = pull;
            j = end;
        }
    }

    /// Computes `−Σ y_c · dA_c`. Bodies carried by a joint move with it: for a mode `i` on it, `d(X S) = S_j ×* X S`; for a mode
    /// before it only the inertia changes.
    fn pull_momentum_matrix(&mut self, y: &DMatrix<f64>, out: &mut MomentumStateGradient) {
        let bodies = self.mechanism.bodies();
        let of = |v: usize| Motion::from_vector(&y.fixed_view::<6, 1>(0, v).into_owned());
        self.turned.fill(Matrix6::zeros());
        for mode in &self.modes {
            let momentum = self.composite[mode.body].apply(&mode.motion).to_vector();
            self.turned[mode.body] += momentum * of(mode.v).to_vector().transpose();
        }
        for i in (1..bodies.len()).rev() {
            let carried = self.turned[i];
            self.turned[bodies[i].parent.unwrap_or(0)] += carried;
        }
        for mode in self.modes.iter().skip(6) {
            let (j, s) = (mode.body, &mode.motion);
            let mut change = inner(&cross(s), &self.turned[j]);
            let mut above = bodies[j].parent;
            while let Some(i) = above {
                for other in self.modes.iter().filter(|m| m.body == i) {
                    let weight = of(other.v);
                    let moved = self.composite[j].apply(&other.motion);
                    change += s.cross(&weight).dot(&moved);
                    change += s.cross(&other.motion).dot(&self.composite[j].apply(&weight));
                }
                above = bodies[i].parent;
            }
            out.q[mode.v] += change;
        }
    }

    /// Returns the momentum matrix `A`, `6 × nv`, for the weights of [`Self::pull`].
    pub fn momentum_matrix(&self) -> &DMatrix<f64> {
        &self.momentum_matrix
    }
}

/// Returns the 6×6 matrix of a spatial inertia, angular first.
fn matrix(inertia: &Inertia<f64>) -> Matrix6<f64> {
    let mut out = Matrix6::zeros();
    for c in 0..6 {
        let mut unit = Vector6::zeros();
        unit[c] = 1.0;
        out.set_column(c, &inertia.apply(&Motion::from_vector(&unit)).to_vector());
    }
    out
}

/// Returns the matrix `S×` that acts on motions.
fn cross(s: &Motion<f64>) -> Matrix6<f64> {
    let (w, l) = (crate::spatial::skew(&s.angular), crate::spatial::skew(&s.linear));
    let mut out = Matrix6::zeros();
    out.fixed_view_mut::<3, 3>(0, 0).copy_from(&w);
    out.fixed_view_mut::<3, 3>(3, 3).copy_from(&w);
    out.fixed_view_mut::<3, 3>(3, 0).copy_from(&l);
    out
}

/// Computes `Σ aᵢⱼ bᵢⱼ`.
fn inner(a: &Matrix6<f64>, b: &Matrix6<f64>) -> f64 {
    a.component_mul(b).sum()
}
