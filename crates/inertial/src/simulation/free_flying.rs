//! Free-flying robot: base motion from joint and wheel motion by conservation of momentum.

use nalgebra::Vector3;

use super::Extrapolation;
use crate::dynamics::{Frame, Workspace, body_velocities, momentum};
use crate::mechanism::{Base, JointType, Mechanism};
use crate::spatial::{Force, Inertia, Motion, Pose};
use crate::{Error, Result};

/// Coordinates of the floating base.
const NQ: usize = 7;
const NV: usize = 6;

/// Integration rule of the base pose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PoseRule {
    /// Integration with almost full precision, by [`Extrapolation`].
    #[default]
    Exact,
    /// Trapezoid rule, with the mean of the twists at both ends of a sample: `X ← X exp(½ Δt (V₀ + V₁))`.
    Trapezoid,
    /// Euler rule, with the twist at the start of a sample (to reproduce published results): `X ← X exp(Δt V₀)`.
    Euler,
}

/// Base of a free-flying robot, moved by momentum conservation (paper 002, eqs 1–6).
///
/// There are no external forces: the world frame falls with the robot, so gravity has no effect. With the momentum `p(q, v)` of
/// the robot and `h` of the wheels, both in the frame of the base, the twist of the base is the solution of
/// `M(q) V + p(q, [0, v]) + h = Xᵀ P`, where `P` is the total momentum (zero, or [given](Self::with_momentum)).
///
/// ```
/// use inertial::mechanism::builtin;
/// use inertial::simulation::FreeFlyer;
///
/// let robot = builtin::get("space-dual-arm")?.build(&Default::default())?;
/// let mut flyer = FreeFlyer::new(&robot)?;
/// let (mut q, mut v) = (robot.neutral(), vec![0.0; robot.nv()]);
/// // The third wheel speeds up: the robot turns the other way, and holds the opposite momentum.
/// let momentum = flyer.respond(&q, &mut v, &[0.0, 0.0, 10.0])?;
/// assert!(v[5] < 0.0);
/// assert_eq!(momentum.angular.z, -10.0);
/// // Hold that for a minute.
/// flyer.advance(0.0, 60.0, &mut q, |_, _, _, wheels| wheels[2] = 10.0)?;
/// # Ok::<(), inertial::Error>(())
/// ```
pub struct FreeFlyer<'m> {
    mechanism: &'m Mechanism,
    workspace: Workspace,
    momentum: Force<f64>,
    rule: PoseRule,
    integrator: Extrapolation,
    /// State of the robot with its base at the origin and at rest.
    q: Vec<f64>,
    v: Vec<f64>,
    /// Memory of [`Self::advance`].
    velocities: Vec<f64>,
    rates: Vec<f64>,
}

impl<'m> FreeFlyer<'m> {
    /// Error tolerance of the pose per step (m, or components of a quaternion); rounding errors are about 1e-16.
    const TOLERANCE: f64 = 1e-13;

    /// Creates a robot with zero total momentum.
    pub fn new(mechanism: &'m Mechanism) -> Result<Self> {
        if mechanism.base() != Base::Floating {
            return Err(Error::NotApplicable("free flight needs a floating base".into()));
        }
        if !mechanism.loops().is_empty() {
            return Err(Error::NotApplicable("free flight with loops is not supported".into()));
        }
        Ok(Self {
            mechanism,
            workspace: Workspace::new(mechanism),
            momentum: Force::zero(),
            rule: PoseRule::default(),
            integrator: Extrapolation::new(NQ, Self::TOLERANCE),
            q: mechanism.neutral(),
            v: vec![0.0; mechanism.nv()],
            velocities: vec![0.0; mechanism.nv()],
            rates: vec![0.0; mechanism.wheels().len()],
        })
    }

    /// Sets the total momentum of robot and wheels, at the world origin in world axes.
    pub fn with_momentum(mut self, total: Force<f64>) -> Self {
        self.momentum = total;
        self
    }

    /// Sets the integration rule of the pose.
    pub fn with_rule(mut self, rule: PoseRule) -> Self {
        self.rule = rule;
        self
    }

    /// Returns the mechanism.
    pub fn mechanism(&self) -> &'m Mechanism {
        self.mechanism
    }

    /// Writes the twist of the base into the first six entries of `v`, whose other entries are the joint velocities, at the
    /// configuration `q` (including the base) with the wheel rates `wheels` (rad/s, relative to their carriers). Returns the
    /// momentum of the robot without its wheels at the origin of the base, in the frame of the base.
    pub fn respond(&mut self, q: &[f64], v: &mut [f64], wheels: &[f64]) -> Result<Force<f64>> {
        let mechanism = self.mechanism;
        check("position vector", q.len(), mechanism.nq())?;
        check("velocity vector", v.len(), mechanism.nv())?;
        check("wheel rate vector", wheels.len(), mechanism.wheels().len())?;
        self.q[NQ..].copy_from_slice(&q[NQ..]);
        self.v[NV..].copy_from_slice(&v[NV..]);
        body_velocities(mechanism, &mut self.workspace, &self.q, &self.v)?;
        let (poses, velocities) = (self.workspace.poses(), self.workspace.velocities());
        let (mut inertia, mut moved) = (Inertia::zero(), Force::zero());
        for ((body, pose), velocity) in mechanism.bodies().iter().zip(poses).zip(velocities) {
            inertia += body.inertia.transformed(pose);
            moved += pose.push_force(&body.inertia.apply(velocity));
        }
        let mut stored = Vector3::zeros();
        for (wheel, rate) in mechanism.wheels().iter().zip(wheels) {
            stored += poses[wheel.body].rotation * wheel.axis * (wheel.inertia * rate);
        }
        // All following quantities are in the frame of the base.
        let base = poses[0];
        let inertia = inertia.transformed(&base.inverse());
        let stored = Force::new(base.rotation.tr_mul(&stored), Vector3::zeros());
        let own = self.pose(q).pull_force(&self.momentum) - stored;
        let twist = twist_of(&inertia, &(own - base.pull_force(&moved)))?;
        v[..3].copy_from_slice(twist.linear.as_slice());
        v[3..NV].copy_from_slice(twist.angular.as_slice());
        Ok(own)
    }

    /// Advances the base pose in `q` from time `from` to `to`. `motion(t, q, v, wheels)` writes the joint positions (after the
    /// seven of the base), their velocities (after the six of the base) and the wheel rates at time `t`; afterwards `q` contains
    /// the joints at `to`.
    ///
    /// With [`PoseRule::Exact`] the motion is evaluated at many intermediate times, otherwise at both ends only.
    pub fn advance(
        &mut self,
        from: f64,
        to: f64,
        q: &mut [f64],
        mut motion: impl FnMut(f64, &mut [f64], &mut [f64], &mut [f64]),
    ) -> Result<()> {
        check("position vector", q.len(), self.mechanism.nq())?;
        // Take the buffers out of `self` during the call, and restore them in any case.
        let (mut v, mut wheels) = (std::mem::take(&mut self.velocities), std::mem::take(&mut self.rates));
        let done = self.advance_with(from, to, q, &mut v, &mut wheels, &mut motion);
        (self.velocities, self.rates) = (v, wheels);
        done
    }

    fn advance_with(
        &mut self,
        from: f64,
        to: f64,
        q: &mut [f64],
        v: &mut [f64],
        wheels: &mut [f64],
        motion: &mut impl FnMut(f64, &mut [f64], &mut [f64], &mut [f64]),
    ) -> Result<()> {
        let base = JointType::Floating;
        let mut at = |flyer: &mut Self, t: f64, q: &mut [f64], v: &mut [f64]| {
            motion(t, q, v, wheels);
            flyer.respond(q, v, wheels)
        };
        if self.rule == PoseRule::Exact {
            let mut y = [0.0; NQ];
            y.copy_from_slice(&q[..NQ]);
            let mut integrator = std::mem::replace(&mut self.integrator, Extrapolation::new(0, 0.0));
            let done = integrator.advance(from, to, &mut y, |t, y, rate| {
                q[..NQ].copy_from_slice(y);
                at(self, t, q, v)?;
                base.position_rates(y, &v[..NV], rate);
                Ok(())
            });
            self.integrator = integrator;
            done?;
            base.normalize(&mut y);
            q[..NQ].copy_from_slice(&y);
        } else {
            let mut start = [0.0; NQ];
            start.copy_from_slice(&q[..NQ]);
            at(self, from, q, v)?;
            let mut first = [0.0; NV];
            first.copy_from_slice(&v[..NV]);
            let mut step = first.map(|v| v * (to - from));
            base.integrate(&mut q[..NQ], &step);
            // The twist at the end depends weakly on the pose there: the iteration contracts with the rotation angle per step.
            for _ in 0..if self.rule == PoseRule::Euler { 0 } else { ITERATIONS } {
                at(self, to, q, v)?;
                let next: [f64; NV] = std::array::from_fn(|k| 0.5 * (to - from) * (first[k] + v[k]));
                let settled = next == step;
                step = next;
                q[..NQ].copy_from_slice(&start);
                base.integrate(&mut q[..NQ], &step);
                if settled || self.momentum == Force::zero() {
                    break;
                }
            }
        }
        motion(to, q, v, wheels);
        Ok(())
    }

    /// Computes the total momentum of robot and wheels (at the world origin, in world axes), mass and centre of mass. These are
    /// the conserved quantities of the flight, computed independently of the conservation laws.
    pub fn totals(
        &mut self,
        q: &[f64],
        v: &[f64],
        wheels: &[f64],
    ) -> Result<(Force<f64>, f64, Vector3<f64>)> {
        let mut total = momentum(self.mechanism, &mut self.workspace, q, v, Frame::World)?;
        check("wheel rate vector", wheels.len(), self.mechanism.wheels().len())?;
        let poses = self.workspace.poses();
        for (wheel, rate) in self.mechanism.wheels().iter().zip(wheels) {
            total.angular += poses[wheel.body].rotation * wheel.axis * (wheel.inertia * rate);
        }
        let (mut mass, mut moment) = (0.0, Vector3::zeros());
        for (body, pose) in self.mechanism.bodies().iter().zip(poses) {
            mass += body.inertia.mass;
            moment += pose.translation * body.inertia.mass + pose.rotation * body.inertia.first_moment;
        }
        Ok((total, mass, moment / mass))
    }

    /// Returns the frame of the base in the world.
    fn pose(&self, q: &[f64]) -> Pose<f64> {
        self.mechanism.bodies()[0].pose(q)
    }
}

/// Number of iterations of the implicit trapezoid rule; each gains some digits for the rotation of one sample.
const ITERATIONS: usize = 20;

/// Returns the twist of a body with the given inertia and momentum, both in its frame.
fn twist_of(inertia: &Inertia<f64>, momentum: &Force<f64>) -> Result<Motion<f64>> {
    let singular = || {
        Error::Singular(
            "the motion of the base cannot be computed from the momentum: the mass or the inertia of the \
             whole robot is not positive"
                .into(),
        )
    };
    if inertia.mass.is_nan() || inertia.mass <= 0.0 {
        return Err(singular());
    }
    let centre = inertia.first_moment / inertia.mass;
    // Inertia and momentum about the centre of mass, where rotation and translation are decoupled.
    let about = inertia.transformed(&Pose::from_translation(-centre)).rotational;
    let spin = momentum.angular - centre.cross(&momentum.linear);
    let angular = about.cholesky().ok_or_else(singular)?.solve(&spin);
    Ok(Motion::new(angular, momentum.linear / inertia.mass - angular.cross(&centre)))
}

fn check(what: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::Dimension { what, expected, found }) }
}
