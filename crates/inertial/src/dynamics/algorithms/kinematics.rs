//! Forward kinematics: poses, velocities and accelerations of bodies, and the scratch memory of one thread.

use nalgebra::Vector3;

use crate::Result;
use crate::dynamics::algorithms::articulated_bodies::ArticulatedScratch;
use crate::dynamics::algorithms::composite::Composite;
use crate::dynamics::algorithms::placement::{Placement, place};
use crate::dynamics::algorithms::tree_constants::TreeConstants;
use crate::dynamics::simd::{Plain, dispatch, has_fused};
use crate::dynamics::{Arithmetic, expect_len};
use crate::mechanism::Mechanism;
use crate::spatial::{Force, Motion, Pose};

/// Scratch memory of one thread for one mechanism, with the poses and motions computed last.
///
/// ```
/// use inertial::dynamics::{Workspace, body_velocities};
/// use inertial::mechanism::{JointSpec, JointType, MechanismBuilder};
/// use inertial::spatial::{Inertia, Pose};
/// use nalgebra::{Vector3, vector};
///
/// let hinge = JointType::Revolute { axis: Vector3::z() };
/// let arm = MechanismBuilder::new("planar-2r", "ground")
///     .link("upper", Inertia::zero())
///     .link("lower", Inertia::zero())
///     .joint(JointSpec::new("shoulder", hinge, "ground", "upper"))
///     .joint(JointSpec::new("elbow", hinge, "upper", "lower").at(Pose::from_translation(vector![1.0, 0.0, 0.0])))
///     .build(&Default::default())?;
/// let mut workspace = Workspace::new(&arm);
/// body_velocities(&arm, &mut workspace, &[std::f64::consts::FRAC_PI_2, 0.0], &[2.0, -2.0])?;
/// // The elbow stands at (0, 1); the lower link does not turn and moves with the elbow.
/// assert!((workspace.poses()[1].translation - Vector3::y()).norm() < 1e-15);
/// assert_eq!(workspace.velocities()[1].angular, Vector3::zeros());
/// assert_eq!(workspace.velocities()[1].linear, vector![0.0, 2.0, 0.0]); // along the link's own y
/// # Ok::<(), inertial::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Workspace {
    /// Pose of each body relative to its parent.
    pub(crate) in_parent: Vec<Pose<f64>>,
    pub(crate) in_world: Vec<Pose<f64>>,
    pub(crate) velocity: Vec<Motion<f64>>,
    pub(crate) acceleration: Vec<Motion<f64>>,
    /// Wrench on each body, in the body frame.
    pub(crate) force: Vec<Force<f64>>,
    pub(crate) constants: TreeConstants,
    pub(crate) placement: Placement,
    pub(crate) composites: Vec<Composite>,
    pub(crate) articulated: ArticulatedScratch,
    /// Whether the processor has AVX2 and FMA, and may use them.
    pub(crate) fused: bool,
}

impl Workspace {
    /// Allocates memory for one mechanism.
    pub fn new(mechanism: &Mechanism) -> Self {
        let n = mechanism.bodies().len();
        let constants = TreeConstants::new(mechanism);
        Self {
            in_parent: vec![Pose::identity(); n],
            in_world: vec![Pose::identity(); n],
            velocity: vec![Motion::zero(); n],
            acceleration: vec![Motion::zero(); n],
            force: vec![Force::zero(); n],
            composites: vec![Composite::default(); n],
            articulated: ArticulatedScratch::new(mechanism, &constants),
            placement: Placement::new(&constants),
            constants,
            fused: has_fused(),
        }
    }

    /// Sets the instructions used by kinematics, mass matrix and forward dynamics.
    pub fn with_arithmetic(mut self, arithmetic: Arithmetic) -> Self {
        self.fused = arithmetic == Arithmetic::Fastest && has_fused();
        self
    }

    /// Returns the poses of the bodies in the world, as computed last.
    pub fn poses(&self) -> &[Pose<f64>] {
        &self.in_world
    }

    /// Returns the twists of the bodies in their own frames, as computed last.
    pub fn velocities(&self) -> &[Motion<f64>] {
        &self.velocity
    }

    /// Returns the spatial accelerations of the bodies (derivatives of their twists) in their own frames, as computed
    /// last.
    ///
    /// The acceleration of the body-fixed point at the origin is `linear + ω × v`; gravity is not included.
    pub fn accelerations(&self) -> &[Motion<f64>] {
        &self.acceleration
    }

    /// Returns gravity in the frame of body `i`.
    pub(crate) fn gravity_in(&self, i: usize, gravity: &Vector3<f64>) -> Vector3<f64> {
        self.in_world[i].rotation.tr_mul(gravity)
    }

    /// Checks the sizes of memory and coordinates, and updates the constants of the mechanism.
    pub(crate) fn prepare(&mut self, mechanism: &Mechanism, q: &[f64]) -> Result<()> {
        expect_len("workspace", self.in_world.len(), mechanism.bodies().len())?;
        expect_len("workspace", self.articulated.nv(), mechanism.nv())?;
        expect_len("position vector", q.len(), mechanism.nq())?;
        self.constants.update(mechanism);
        if !self.placement.fits(&self.constants) {
            self.placement = Placement::new(&self.constants);
            self.articulated = ArticulatedScratch::new(mechanism, &self.constants);
        }
        Ok(())
    }
}

/// Computes the poses of all bodies.
pub fn forward_kinematics(mechanism: &Mechanism, workspace: &mut Workspace, q: &[f64]) -> Result<()> {
    workspace.prepare(mechanism, q)?;
    let Workspace { constants, placement, in_world, in_parent, .. } = workspace;
    let constants = &*constants;
    dispatch!(workspace.fused, place::<Plain, Fused>(
        constants: &TreeConstants,
        placement: &mut Placement,
        q: &[f64],
        in_world: &mut [Pose<f64>],
        in_parent: &mut [Pose<f64>]
    ));
    Ok(())
}

/// Computes the poses and twists of all bodies.
pub fn body_velocities(mechanism: &Mechanism, workspace: &mut Workspace, q: &[f64], v: &[f64]) -> Result<()> {
    forward_kinematics(mechanism, workspace, q)?;
    expect_len("velocity vector", v.len(), mechanism.nv())?;
    for (i, body) in mechanism.bodies().iter().enumerate() {
        let carried = body
            .parent
            .map_or_else(Motion::zero, |p| workspace.in_parent[i].pull_motion(&workspace.velocity[p]));
        workspace.velocity[i] = carried + body.joint_motion(v);
    }
    Ok(())
}

/// Computes the poses, twists and spatial accelerations of all bodies.
pub fn body_accelerations(
    mechanism: &Mechanism,
    workspace: &mut Workspace,
    q: &[f64],
    v: &[f64],
    a: &[f64],
) -> Result<()> {
    body_velocities(mechanism, workspace, q, v)?;
    expect_len("acceleration vector", a.len(), mechanism.nv())?;
    accelerate(mechanism, workspace, v, Some(a));
    Ok(())
}

/// Computes the spatial accelerations from the current poses and twists; `None` means zero joint acceleration.
pub(crate) fn accelerate(mechanism: &Mechanism, workspace: &mut Workspace, v: &[f64], a: Option<&[f64]>) {
    for (i, body) in mechanism.bodies().iter().enumerate() {
        let carried = body
            .parent
            .map_or_else(Motion::zero, |p| workspace.in_parent[i].pull_motion(&workspace.acceleration[p]));
        let own = a.map_or_else(Motion::zero, |a| body.joint_motion(a));
        // The free modes are constant in the body frame and rotate with it: d(Φ v)/dt = Φ a + V × Φ v.
        let turning = workspace.velocity[i].cross(&body.joint_motion(v));
        workspace.acceleration[i] = carried + own + turning;
    }
}
