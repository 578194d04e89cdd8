//! Mechanisms with loops: closed configurations, and the motion of all joints from that of the independent ones.
//!
//! The tree's coordinates are dependent where there are loops. A [`ClosedMechanism`] finds a regular assembled configuration, chooses or
//! checks the independent coordinates, and gives the maps `v = G v_ind` and `a = G a_ind + g` on which all projected
//! dynamics stand. Nothing depends on where the loops were cut.

mod assemble;
mod constraints;
mod loops;

use nalgebra::DMatrix;

use self::constraints::Constraints;
use super::{Workspace, expect_len};
use crate::linalg::{PivotedQr, Rank};
use crate::mechanism::{JointType, Mechanism};
use crate::{Error, Result};

/// Singular values of the scaled constraints below this fraction of the largest are redundant constraints.
///
/// It is the tolerance of special geometry (angles in files are rounded: 1.5708 for π/2), so that planar linkages and other
/// overconstrained machines move although their rounded geometry contradicts itself a little.
const RANK_TOLERANCE: f64 = 1e-4;

/// A loop open by more than this (rad, or relative to its length) is not closed, however rounded its geometry.
const LARGEST_GAP: f64 = 1e-4;

/// With exact geometry loops close to this; rounding makes about 1e-15 per joint.
const EXACT_GAP: f64 = 1e-11;

/// Independent coordinates determine the others unless these turn this much faster (a dead point).
const DEAD_POINT: f64 = 1e-9;

/// Largest step of the continuation, of any joint (rad, or loop lengths).
const LARGEST_STEP: f64 = 0.3;

/// A continuation whose steps shrink to this has met the end of the motion.
const SMALLEST_STEP: f64 = 1e-5;

/// A mechanism with its loops closed: the motion of all joints follows from that of the independent ones.
///
/// Configurations are those of the whole tree (`nq` numbers that close the loops); velocities, accelerations and forces are
/// those of the [independent](Self::independent) coordinates. Without loops all coordinates are independent and everything is
/// the tree's own.
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
    constraints: Constraints<'m>,
    independent: Vec<usize>,
    dependent: Vec<usize>,
    independent_positions: Vec<usize>,
    assembled: Vec<f64>,
    rank: Rank,
    /// The largest residual that counts as closed.
    gap: f64,
    warnings: Vec<String>,
}

/// Scratch memory of one thread for one [`ClosedMechanism`].
pub struct ClosedWorkspace {
    /// Of the tree.
    pub tree: Workspace,
    residual: Vec<f64>,
    bias: Vec<f64>,
    jacobian: DMatrix<f64>,
    dependent: DMatrix<f64>,
    right_sides: DMatrix<f64>,
    right_side: DMatrix<f64>,
    qr: PivotedQr,
    /// `G`, one row for each velocity coordinate of the tree.
    pub(super) map: DMatrix<f64>,
    step: Vec<f64>,
    trial: Vec<f64>,
    pub(super) difference: Vec<f64>,
    /// Velocities of the tree.
    pub(super) v: Vec<f64>,
    /// Its accelerations.
    pub(super) a: Vec<f64>,
    /// Its forces.
    pub(super) tau: Vec<f64>,
    /// Its mass matrix, row-major.
    pub(super) mass_matrix: Vec<f64>,
    /// The mass matrix of the independent coordinates, row-major.
    pub(super) projected: Vec<f64>,
}

impl<'m> ClosedMechanism<'m> {
    /// Assembles the loops and chooses (or checks) the independent coordinates.
    ///
    /// The model's assembly is the start; where it is singular (a linkage stretched out), a regular configuration near by is
    /// taken. Where the model marks no independent joints they are chosen: joints off the loops, then those that look
    /// actuated (an effort limit or a rotor), those of one axis, those nearest the ground, in the model's order.
    pub fn new(mechanism: &'m Mechanism) -> Result<Self> {
        let constraints = Constraints::new(mechanism, mechanism.loops());
        let nv = mechanism.nv();
        let mut warnings = Vec::new();
        let assembly = if mechanism.loops().is_empty() {
            let rank = Rank::decide(&[], RANK_TOLERANCE);
            assemble::Assembly {
                q: mechanism.assembly().to_vec(),
                rank,
                independent: (0..nv).collect(),
                moved: false,
            }
        } else {
            assemble::assemble(&constraints)?
        };
        if assembly.moved {
            warnings.push(
                "the assembly configuration is singular: a regular configuration near it is used instead"
                    .into(),
            );
        }
        let residual = constraints.residual(&assembly.q, &mut vec![0.0; constraints.rows]);
        // Redundant constraints that contradict each other a little cannot be met better than that.
        let gap = (1e3 * assembly.rank.dropped).max(10.0 * residual).clamp(EXACT_GAP, LARGEST_GAP);
        if gap > EXACT_GAP {
            warnings.push(format!(
                "the loops close only approximately (residual {residual:.1e}, redundant constraints differ by {:.1e}): \
                 the geometry is rounded",
                assembly.rank.dropped
            ));
        }
        let dependent = (0..nv).filter(|k| !assembly.independent.contains(k)).collect();
        let independent_positions = positions_of(mechanism, &assembly.independent);
        Ok(Self {
            constraints,
            independent: assembly.independent,
            dependent,
            independent_positions,
            assembled: assembly.q,
            rank: assembly.rank,
            gap,
            warnings,
        })
    }

    /// The mechanism.
    pub fn mechanism(&self) -> &'m Mechanism {
        self.constraints.mechanism
    }

    /// Number of independent velocities: the mobility.
    pub fn dof(&self) -> usize {
        self.independent.len()
    }

    /// The tree's velocity coordinates that are independent, ascending.
    pub fn independent(&self) -> &[usize] {
        &self.independent
    }

    /// Names of the independent velocity coordinates.
    pub fn independent_names(&self) -> Vec<String> {
        let names = self.mechanism().velocity_names();
        self.independent.iter().map(|&k| names[k].clone()).collect()
    }

    /// The tree's position coordinates that belong to independent joints.
    ///
    /// A spherical, planar or floating joint that is independent only in part has none among them: its coordinates cannot be
    /// prescribed one by one.
    pub fn independent_positions(&self) -> &[usize] {
        &self.independent_positions
    }

    /// A closed, regular configuration of the tree.
    pub fn assembled(&self) -> &[f64] {
        &self.assembled
    }

    /// Number of constraints, redundant ones included.
    pub fn constraint_count(&self) -> usize {
        self.constraints.rows
    }

    /// Rank of the constraints at [`Self::assembled`], with its margin.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// What people should know about the assembly.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Scratch memory for one thread.
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
            difference: vec![0.0; nv],
            v: vec![0.0; nv],
            a: vec![0.0; nv],
            tau: vec![0.0; nv],
            mass_matrix: vec![0.0; nv * nv],
            projected: vec![0.0; n * n],
        }
    }

    /// How far the loops are from closed at `q` (rad, or relative to the length of the loop).
    pub fn residual(&self, workspace: &mut ClosedWorkspace, q: &[f64]) -> Result<f64> {
        expect_len("position vector", q.len(), self.mechanism().nq())?;
        Ok(self.constraints.residual(q, &mut workspace.residual))
    }

    /// Closes the loops to rounding: moves the dependent coordinates of `q`, which must be near, and holds the independent
    /// ones. Returns the residual that remains.
    pub fn close(&self, workspace: &mut ClosedWorkspace, q: &mut [f64]) -> Result<f64> {
        expect_len("position vector", q.len(), self.mechanism().nq())?;
        self.correct(workspace, q).map(|(residual, _)| residual)
    }

    /// Gauss–Newton on the dependent coordinates: the residual left and the largest distance moved.
    fn correct(&self, workspace: &mut ClosedWorkspace, q: &mut [f64]) -> Result<(f64, f64)> {
        let ws = workspace;
        let mut size = self.constraints.residual(q, &mut ws.residual);
        let mut moved = 0.0;
        if self.dependent.is_empty() {
            return Ok((size, moved));
        }
        for _ in 0..30 {
            if size == 0.0 {
                break;
            }
            self.factorise(ws, q, None)?;
            for (b, c) in ws.right_side.as_mut_slice().iter_mut().zip(&ws.residual) {
                *b = -c;
            }
            ws.qr.least_squares_in_place(&mut ws.right_side)?;
            let largest = ws.right_side.rows(0, self.dependent.len()).amax();
            let shrink = (0.5 / largest).min(1.0);
            ws.step.fill(0.0);
            for (i, &k) in self.dependent.iter().enumerate() {
                ws.step[k] = shrink * self.constraints.scale[k] * ws.right_side[i];
            }
            ws.trial.copy_from_slice(q);
            self.mechanism().integrate(&mut ws.trial, &ws.step);
            let now = self.constraints.residual(&ws.trial, &mut ws.residual);
            // Once within the gap, stop where rounding (or contradicting geometry) lets it fall no further.
            if now >= size && (size <= self.gap || largest > 0.5) {
                break;
            }
            moved += shrink * largest;
            q.copy_from_slice(&ws.trial);
            let stalled = now > 0.5 * size && size <= self.gap;
            size = now;
            if stalled || !size.is_finite() {
                break;
            }
        }
        if size <= self.gap { Ok((size, moved)) } else { Err(self.open(q)) }
    }

    fn open(&self, q: &[f64]) -> Error {
        match self.constraints.widest(q) {
            Some((l, residual)) => Error::Closure {
                name: l.joint.name.clone(),
                residual,
                message: "it does not close at these independent coordinates".into(),
            },
            None => Error::Numeric("the loops do not close".into()),
        }
    }

    /// Moves `q`, which closes the loops, until its [independent positions](Self::independent_positions) are `target`, in
    /// steps that stay on the branch. Returns the residual that remains.
    pub fn move_to(&self, workspace: &mut ClosedWorkspace, q: &mut [f64], target: &[f64]) -> Result<f64> {
        expect_len("position vector", q.len(), self.mechanism().nq())?;
        expect_len("independent position vector", target.len(), self.independent_positions.len())?;
        if !target.iter().all(|x| x.is_finite()) {
            return Err(Error::Numeric("an independent position is not a finite number".into()));
        }
        let mut limit = LARGEST_STEP;
        let mut at = q.to_vec();
        if self.dependent.is_empty() {
            self.set_independent(q, target);
            return Ok(0.0);
        }
        loop {
            self.difference(workspace, &at, target);
            self.velocity_map(workspace, &at)?;
            multiply(&workspace.map, &workspace.difference, &mut workspace.step);
            let distance = workspace
                .step
                .iter()
                .zip(&self.constraints.scale)
                .map(|(v, s)| (v / s).abs())
                .fold(0.0, f64::max);
            let fraction = if distance > limit { limit / distance } else { 1.0 };
            workspace.step.iter_mut().for_each(|v| *v *= fraction);
            let mut trial = at.clone();
            self.mechanism().integrate(&mut trial, &workspace.step);
            if fraction == 1.0 {
                self.set_independent(&mut trial, target);
            }
            match self.correct(workspace, &mut trial) {
                // A correction as large as the step itself may have changed the branch.
                Ok((residual, moved)) if moved <= 0.25 * fraction * distance + 1e-6 => {
                    at = trial;
                    if fraction == 1.0 {
                        q.copy_from_slice(&at);
                        return Ok(residual);
                    }
                    limit = (2.0 * limit).min(LARGEST_STEP);
                }
                outcome => {
                    limit = 0.5 * limit.min(distance);
                    if limit < SMALLEST_STEP {
                        return Err(outcome.err().unwrap_or_else(|| self.open(&trial)));
                    }
                }
            }
        }
    }

    fn set_independent(&self, q: &mut [f64], target: &[f64]) {
        for (&k, &x) in self.independent_positions.iter().zip(target) {
            q[k] = x;
        }
    }

    /// Writes the velocity of the independent coordinates that takes `q` to `target` in unit time.
    fn difference(&self, workspace: &mut ClosedWorkspace, q: &[f64], target: &[f64]) {
        let to = &mut workspace.trial;
        to.copy_from_slice(q);
        self.set_independent(to, target);
        let all = &mut workspace.step;
        for joint in self.mechanism().joints().iter().filter(|j| j.follows.is_none()) {
            let (q_range, v_range) = (joint.q_range(), joint.v_range());
            joint.joint_type.difference(&q[q_range.clone()], &to[q_range], &mut all[v_range]);
        }
        for (d, &k) in workspace.difference.iter_mut().zip(&self.independent) {
            *d = all[k];
        }
    }

    /// The matrix `G` of `v = G v_ind` at `q`, one row for each velocity coordinate of the tree.
    pub fn velocity_map<'w>(
        &self,
        workspace: &'w mut ClosedWorkspace,
        q: &[f64],
    ) -> Result<&'w DMatrix<f64>> {
        expect_len("position vector", q.len(), self.mechanism().nq())?;
        let ws = workspace;
        if self.dependent.is_empty() {
            return Ok(&ws.map);
        }
        self.factorise(ws, q, None)?;
        let scale = &self.constraints.scale;
        for (i, &k) in self.independent.iter().enumerate() {
            let column = ws.jacobian.column(k) * (-1.0 / scale[k]);
            ws.right_sides.set_column(i, &column);
        }
        ws.qr.least_squares_in_place(&mut ws.right_sides)?;
        for (row, &k) in self.dependent.iter().enumerate() {
            for i in 0..self.independent.len() {
                ws.map[(k, i)] = scale[k] * ws.right_sides[(row, i)];
            }
        }
        Ok(&ws.map)
    }

    /// Velocities of the whole tree, `v = G v_ind`.
    pub fn velocities(
        &self,
        workspace: &mut ClosedWorkspace,
        q: &[f64],
        v_independent: &[f64],
        v: &mut [f64],
    ) -> Result<()> {
        expect_len("independent velocity vector", v_independent.len(), self.dof())?;
        expect_len("velocity vector", v.len(), self.mechanism().nv())?;
        if self.dependent.is_empty() {
            v.copy_from_slice(v_independent);
            return Ok(());
        }
        multiply(self.velocity_map(workspace, q)?, v_independent, v);
        Ok(())
    }

    /// Velocities and accelerations of the whole tree, `v = G v_ind` and `a = G a_ind + g`, where `g` is what the loops
    /// accelerate by velocity alone.
    pub fn accelerations(
        &self,
        workspace: &mut ClosedWorkspace,
        q: &[f64],
        v_independent: &[f64],
        a_independent: &[f64],
        v: &mut [f64],
        a: &mut [f64],
    ) -> Result<()> {
        expect_len("independent acceleration vector", a_independent.len(), self.dof())?;
        expect_len("acceleration vector", a.len(), self.mechanism().nv())?;
        self.velocities(workspace, q, v_independent, v)?;
        if self.dependent.is_empty() {
            a.copy_from_slice(a_independent);
            return Ok(());
        }
        let ws = workspace;
        multiply(&ws.map, a_independent, a);
        // J a = −J̇ v on the closed loops, with the factors of J that the velocities left.
        self.constraints.jacobian(q, Some(v), &mut ws.jacobian, &mut ws.bias);
        for (b, bias) in ws.right_side.as_mut_slice().iter_mut().zip(&ws.bias) {
            *b = -bias;
        }
        ws.qr.least_squares_in_place(&mut ws.right_side)?;
        for (i, &k) in self.dependent.iter().enumerate() {
            a[k] += self.constraints.scale[k] * ws.right_side[i];
        }
        Ok(())
    }

    /// Factorises the constraints in the dependent coordinates.
    fn factorise(&self, ws: &mut ClosedWorkspace, q: &[f64], v: Option<&[f64]>) -> Result<()> {
        self.constraints.jacobian(q, v, &mut ws.jacobian, &mut ws.bias);
        for (i, &k) in self.dependent.iter().enumerate() {
            ws.dependent.set_column(i, &ws.jacobian.column(k));
        }
        ws.qr.factorise(&ws.dependent)?;
        if ws.qr.rank(DEAD_POINT).rank < self.dependent.len() {
            return Err(Error::Numeric(
                "the independent coordinates do not determine the motion of the loops here (a dead point or singular \
                 configuration)"
                    .into(),
            ));
        }
        Ok(())
    }
}

/// `out = matrix · x`, without allocation.
fn multiply(matrix: &DMatrix<f64>, x: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for (column, x) in matrix.column_iter().zip(x) {
        for (out, m) in out.iter_mut().zip(column.iter()) {
            *out += m * x;
        }
    }
}

/// Position coordinates that the independent velocities move alone.
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
