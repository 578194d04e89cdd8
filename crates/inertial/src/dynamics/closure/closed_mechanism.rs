//! Assembled mechanisms with loops and their scratch memory.

use nalgebra::DMatrix;

use super::assemble::{self, Assembly, Remaining};
use super::constraints::Constraints;
use super::motions::MotionKind;
use super::newton::Candidate;
use super::projection::{ChunkMemory, Projection};
use super::tolerance::RANK_TOLERANCE;
use crate::Result;
use crate::dynamics::{InverseDynamics, Scratch, Workspace};
use crate::linalg::{PivotedQr, Rank};
use crate::mechanism::{JointType, LoopFrame, LoopJoint, Mechanism};
use crate::spatial::Pose;

/// Largest residual of closed loops with exact geometry; rounding errors are about 1e-15 per joint.
const EXACT_GAP: f64 = 1e-11;

/// Mechanism with closed loops: the motion of all joints follows from that of the independent ones.
///
/// Configurations are those of the whole tree (`nq` numbers that close the loops). Velocities, accelerations and forces
/// are those of the [independent](Self::independent) coordinates. Without loops all coordinates are independent and all
/// quantities are those of the tree.
///
/// ```
/// use inertial::dynamics::ClosedMechanism;
/// use inertial::mechanism::{JointSpec, JointType, LoopEnd, LoopSpec, MechanismBuilder};
/// use inertial::spatial::{Inertia, Pose};
/// use nalgebra::{Matrix3, Vector3, vector};
///
/// let rod = Inertia::from_com(1.0, vector![0.5, 0.0, 0.0], Matrix3::from_diagonal(&vector![0.0, 0.1, 0.1]));
/// let hinge = JointType::Revolute { axis: Vector3::z() };
/// let at = |x: f64, y: f64| Pose::from_translation(vector![x, y, 0.0]);
/// let parallelogram = MechanismBuilder::new("parallelogram", "ground")
///     .link("crank", rod).joint(JointSpec::new("a", hinge, "ground", "crank"))
///     .link("coupler", rod).joint(JointSpec::new("b", hinge, "crank", "coupler").at(at(0.0, 1.0)))
///     .link("rocker", rod).joint(JointSpec::new("d", hinge, "ground", "rocker").at(at(2.0, 0.0)))
///     .close_loop(LoopSpec {
///         name: "c".into(),
///         joint_type: hinge,
///         predecessor: LoopEnd { link: "coupler".into(), origin: at(2.0, 0.0) },
///         successor: LoopEnd { link: "rocker".into(), origin: at(0.0, 1.0) },
///         line: None,
///     })
///     .build(&Default::default())?;
/// let closed = ClosedMechanism::new(&parallelogram)?;
/// assert_eq!(closed.independent_names(), ["a"]);
/// let mut workspace = closed.workspace();
/// let mut q = closed.assembled().to_vec();
/// closed.move_to(&mut workspace, &mut q, &[0.7])?;
/// assert!((q[1] + 0.7).abs() < 1e-14 && (q[2] - 0.7).abs() < 1e-14); // the coupler keeps its orientation
/// # Ok::<(), inertial::Error>(())
/// ```
#[derive(Debug)]
pub struct ClosedMechanism<'m> {
    pub(super) constraints: Constraints<'m>,
    pub(super) independent: Vec<usize>,
    pub(super) dependent: Vec<usize>,
    pub(super) independent_positions: Vec<usize>,
    pub(super) assembled: Vec<f64>,
    pub(super) motions: Vec<MotionKind>,
    /// Configurations on the motions that are not followed.
    pub(super) others: Vec<Vec<f64>>,
    /// Bodies that cannot move relative to their parents, because a loop around them is rigid.
    pub(super) locked: Vec<usize>,
    pub(super) rank: Rank,
    /// Largest residual of loops that count as closed.
    pub(super) gap: f64,
    pub(super) warnings: Vec<String>,
    /// Inverse dynamics of the tree.
    pub(super) dynamics: InverseDynamics,
    pub(super) projection: Projection,
}

/// Scratch memory of one thread for one [`ClosedMechanism`].
pub struct ClosedWorkspace {
    /// Workspace of the tree.
    pub tree: Workspace,
    pub(super) residual: Vec<f64>,
    pub(super) bias: Vec<f64>,
    pub(super) jacobian: DMatrix<f64>,
    pub(super) dependent: DMatrix<f64>,
    pub(super) right_sides: DMatrix<f64>,
    pub(super) right_side: DMatrix<f64>,
    pub(super) qr: PivotedQr,
    /// Matrix `G`, one row for each velocity coordinate of the tree.
    pub(super) map: DMatrix<f64>,
    pub(super) step: Vec<f64>,
    pub(super) trial: Vec<f64>,
    /// Current and trial configuration of a continuation.
    pub(super) path: [Vec<f64>; 2],
    /// Number of steps of all continuations.
    pub(super) steps: usize,
    pub(super) difference: Vec<f64>,
    /// Velocities of the tree.
    pub(super) v: Vec<f64>,
    /// Accelerations of the tree.
    pub(super) a: Vec<f64>,
    /// Forces of the tree.
    pub(super) tau: Vec<f64>,
    /// Mass matrix of the tree, row-major.
    pub(super) mass_matrix: Vec<f64>,
    /// Mass matrix of the independent coordinates, row-major.
    pub(super) projected: Vec<f64>,
    /// Scratch memory of the inverse dynamics of the tree.
    pub(super) scratch: Scratch,
    /// Regressor `GᵀY`, row-major.
    pub(super) regressor: Vec<f64>,
    pub(super) batch: ChunkMemory,
}

impl<'m> ClosedMechanism<'m> {
    /// Assembles the loops and chooses (or checks) the independent coordinates.
    ///
    /// The iteration starts from the assembly of the model. If that is singular (such as a stretched linkage), a nearby
    /// regular configuration is used, on the first of the [motions](Self::motions) that intersect there. If the model
    /// marks no independent joints, they are chosen in this order: joints outside the loops, joints that appear to be
    /// actuated (an effort limit or a rotor), joints with one axis, joints nearest to the ground, and the order of the
    /// model.
    pub fn new(mechanism: &'m Mechanism) -> Result<Self> {
        let constraints = Constraints::new(mechanism, mechanism.loops());
        if mechanism.loops().is_empty() {
            let assembly = Assembly {
                q: mechanism.assembly().to_vec(),
                rank: Rank::decide(&[], RANK_TOLERANCE),
                independent: (0..mechanism.nv()).collect(),
                left: None,
                others: Vec::new(),
                locked: Vec::new(),
            };
            return Ok(Self::at(constraints, assembly, Vec::new()));
        }
        let assembly = assemble::assemble(&constraints)?;
        let locked = assembly.locked.clone();
        if locked.is_empty() {
            return Ok(Self::at(constraints, assembly, locked));
        }
        if locked.iter().map(|&i| mechanism.bodies()[i].v_range().len()).sum::<usize>() == mechanism.nv() {
            return Err(assemble::rigid());
        }
        let locks = locked.iter().map(|&i| lock(mechanism, i, &assembly.q));
        let joints: Vec<LoopJoint> = mechanism.loops().iter().cloned().chain(locks).collect();
        let constraints = Constraints::new(mechanism, &joints);
        let assembly = assemble::assemble(&constraints)?;
        Ok(Self::at(constraints, assembly, locked))
    }

    fn at(constraints: Constraints<'m>, assembly: Assembly, locked: Vec<usize>) -> Self {
        let mechanism = constraints.mechanism;
        let mut warnings = Vec::new();
        if !locked.is_empty() {
            let name = |&i: &usize| mechanism.joints()[mechanism.bodies()[i].joint].name.as_str();
            let mut names: Vec<&str> = locked.iter().map(name).collect();
            names.dedup();
            warnings.push(format!(
                "the loops permit only infinitely small motions of {}: treated as locked",
                names.join(", ")
            ));
        }
        let motions = match assembly.left {
            None => Vec::new(),
            Some(Remaining::DeadPoint) => {
                warnings.push(
                    "the assembly configuration is a dead point of the independent joints: a configuration \
                     near it is used instead"
                        .into(),
                );
                Vec::new()
            }
            Some(Remaining::Singular(motions)) => {
                warnings.push(singular_assembly(&motions));
                motions
            }
        };
        let residual = constraints.residual(&assembly.q, &mut vec![0.0; constraints.rows]);
        // The residual of slightly contradicting redundant constraints cannot be reduced further.
        let gap =
            (1e3 * assembly.rank.dropped).max(10.0 * residual).clamp(EXACT_GAP, constraints.tolerances.gap);
        if gap > EXACT_GAP {
            warnings.push(format!(
                "the loops close only approximately (residual {residual:.1e}, redundant constraints differ by {:.1e}): \
                 the geometry is rounded",
                assembly.rank.dropped
            ));
        }
        let dependent: Vec<usize> =
            (0..mechanism.nv()).filter(|k| !assembly.independent.contains(k)).collect();
        let dynamics = InverseDynamics::new(mechanism);
        let projection = Projection::new(&constraints, &assembly.independent, &dependent, &dynamics);
        let independent_positions = positions_of(mechanism, &assembly.independent);
        Self {
            constraints,
            independent: assembly.independent,
            dependent,
            independent_positions,
            assembled: assembly.q,
            motions,
            others: assembly.others,
            locked,
            rank: assembly.rank,
            gap,
            warnings,
            dynamics,
            projection,
        }
    }

    /// Returns the motions that intersect in the configuration of the model if that is singular, the followed one
    /// first; empty if it is regular.
    ///
    /// The order of preference is: motions within joint limits and driven by the joints marked as independent; those
    /// with most degrees of freedom; those in which most joints move (not the one in which a folded kite turns as one
    /// piece); those in which most links stay parallel (the parallelogram, not the antiparallelogram); the one with the
    /// larger motion of the first link by name that moves differently. This order depends neither on where loops are
    /// cut nor on the order of joints.
    pub fn motions(&self) -> &[MotionKind] {
        &self.motions
    }

    /// Returns the mechanism on each of the other [motions](Self::motions), in their order.
    pub fn other_motions(&self) -> Result<Vec<Self>> {
        let others = self.others.iter().zip(self.motions.iter().skip(1)).map(|(q, kind)| {
            let Candidate { q, jacobian, rank, .. } = Candidate::new(&self.constraints, q.clone(), true)?;
            let independent = assemble::choose(&self.constraints, &jacobian, rank.rank, &self.independent)?;
            let left = Some(Remaining::Singular(vec![*kind]));
            let assembly = Assembly { q, rank, independent, left, others: Vec::new(), locked: Vec::new() };
            Ok(Self::at(self.constraints.clone(), assembly, self.locked.clone()))
        });
        others.collect()
    }

    /// Returns the mechanism.
    pub fn mechanism(&self) -> &'m Mechanism {
        self.constraints.mechanism
    }

    /// Returns the number of independent velocities (the mobility).
    pub fn dof(&self) -> usize {
        self.independent.len()
    }

    /// Returns the independent velocity coordinates of the tree, ascending.
    pub fn independent(&self) -> &[usize] {
        &self.independent
    }

    /// Returns the names of the independent velocity coordinates.
    pub fn independent_names(&self) -> Vec<String> {
        let names = self.mechanism().velocity_names();
        self.independent.iter().map(|&k| names[k].clone()).collect()
    }

    /// Returns the position coordinates of the tree that belong to independent joints.
    ///
    /// Coordinates of a spherical, planar or floating joint that is only partly independent are not included, because
    /// they cannot be prescribed individually.
    pub fn independent_positions(&self) -> &[usize] {
        &self.independent_positions
    }

    /// Returns a closed, regular configuration of the tree.
    pub fn assembled(&self) -> &[f64] {
        &self.assembled
    }

    /// Returns the bodies that cannot move relative to their parents, because a loop around them is rigid although its
    /// constraints permit infinitely small motions. Their joints are locked.
    pub fn locked(&self) -> &[usize] {
        &self.locked
    }

    /// Returns the number of constraints, including redundant ones.
    pub fn constraint_count(&self) -> usize {
        self.constraints.rows
    }

    /// Returns the rank of the constraints at [`Self::assembled`], with its margin.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns warnings about the assembly.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Allocates scratch memory for one thread.
    pub fn workspace(&self) -> ClosedWorkspace {
        let (rows, nv, n) = (self.constraints.rows, self.mechanism().nv(), self.dof());
        let mut map = DMatrix::zeros(nv, n);
        for (i, &k) in self.independent.iter().enumerate() {
            map[(k, i)] = 1.0;
        }
        ClosedWorkspace {
            tree: Workspace::new(self.mechanism()),
            residual: vec![0.0; rows],
            bias: vec![0.0; rows],
            jacobian: DMatrix::zeros(rows, nv),
            dependent: DMatrix::zeros(rows, self.dependent.len()),
            right_sides: DMatrix::zeros(rows, n),
            right_side: DMatrix::zeros(rows, 1),
            qr: PivotedQr::new(rows, self.dependent.len(), n.max(1)),
            map,
            step: vec![0.0; nv],
            trial: vec![0.0; self.mechanism().nq()],
            path: [vec![0.0; self.mechanism().nq()], vec![0.0; self.mechanism().nq()]],
            steps: 0,
            difference: vec![0.0; nv],
            v: vec![0.0; nv],
            a: vec![0.0; nv],
            tau: vec![0.0; nv],
            mass_matrix: vec![0.0; nv * nv],
            projected: vec![0.0; n * n],
            scratch: self.dynamics.scratch(),
            regressor: vec![0.0; n * self.mechanism().parameter_count()],
            batch: ChunkMemory::default(),
        }
    }
}

/// Returns a rigid connection of a body with its parent in the configuration `q`.
fn lock(mechanism: &Mechanism, body: usize, q: &[f64]) -> LoopJoint {
    let own = &mechanism.bodies()[body];
    LoopJoint {
        name: mechanism.joints()[own.joint].name.clone(),
        joint_type: JointType::Fixed,
        predecessor: LoopFrame { body: own.parent, pose: own.pose(q) },
        successor: LoopFrame { body: Some(body), pose: Pose::identity() },
    }
}

/// Returns the warning about a singular configuration of the model that is not used.
fn singular_assembly(motions: &[MotionKind]) -> String {
    let singular = "the assembly configuration is singular";
    match motions {
        [] | [_] => format!("{singular}: a regular configuration near it is used instead"),
        [followed, others @ ..] => {
            let others: Vec<String> = others.iter().map(ToString::to_string).collect();
            format!(
                "{singular}: {} motion branches meet there. The one with {followed} is used, from a regular \
                 configuration near it (not the one with {}); to choose another branch, give a configuration \
                 on it in `assembly`",
                motions.len(),
                others.join("; ")
            )
        }
    }
}

/// Returns the position coordinates that depend on single independent velocities.
fn positions_of(mechanism: &Mechanism, independent: &[usize]) -> Vec<usize> {
    let mut out = Vec::new();
    for joint in mechanism.joints().iter().filter(|j| j.follows.is_none()) {
        let together =
            matches!(joint.joint_type, JointType::Planar { .. } | JointType::Spherical | JointType::Floating);
        if together {
            if joint.v_range().all(|k| independent.contains(&k)) {
                out.extend(joint.q_range());
            }
        } else {
            out.extend(
                joint.q_range().zip(joint.v_range()).filter(|(_, k)| independent.contains(k)).map(|(q, _)| q),
            );
        }
    }
    out
}
