//! Branches of motion at a singular configuration, and their order.
//!
//! In a singular configuration the constraints leave more directions free than any motion has. Several motions can
//! intersect there, such as those of a parallelogram and an antiparallelogram in the flat configuration. A motion can
//! leave in the directions for which the constraints can be satisfied to second order: `wᵀ J̇ v = 0` for all `w` with
//! `wᵀ J = 0`. These are quadratic forms in the free directions. Their zeros are searched from many starting points,
//! and each zero is followed to check that it is a motion.
//!
//! All decisions use the velocities of the links, by name and in the world frame. The result therefore depends on the
//! mechanism and its configuration, not on where loops are cut, on the tree or on the order of joints.

use std::fmt;

use nalgebra::{DMatrix, DVector};

use super::constraints::Constraints;
use super::newton::{Candidate, PROBE, advance, close, displacement, within_limits};
use super::tolerance::RANK_TOLERANCE;
use crate::Result;
use crate::dynamics::{Workspace, body_velocities};
use crate::linalg::{Echelon, Number, Pivot, Rank, SplitMix, Svd};
use crate::mechanism::BodyKind;

/// Approximate distance from the singular configuration up to which a motion is followed (rad, or loop lengths).
const FAR: f64 = 0.3;

/// Ratio of the distances from the singular configuration of consecutive points of a motion.
const GROWTH: f64 = 1.4;

/// Maximum deviation of a point from the straight continuation, relative to the distance; with a larger deviation it
/// may be on another motion.
const STRAIGHT: f64 = 0.3;

/// Number of starting points for each free direction; most of them converge to a zero of the forms, and each zero is
/// found many times.
const STARTS: usize = 32;

/// Maximum number of directions that are followed.
const MOST_DIRECTIONS: usize = 64;

/// Angle (rad) below which two directions are equal; also the relative difference below which entries of velocities are
/// equal.
const SAME: f64 = 1e-2;

/// Largest difference of velocities (rad, or loop lengths, for unit motion of the joints) of bodies that move as one or
/// stay parallel. Rounding of files causes such differences near a singular configuration.
const TOGETHER: f64 = 1e-3;

/// Minimum number of motions of one kind, each with several degrees of freedom and a different tangent direction, that
/// are interpreted as one cone-like motion.
const CONE: usize = 8;

/// Kind of a motion, independent of coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MotionKind {
    /// Number of degrees of freedom (of the loops alone).
    pub freedoms: usize,
    /// Number of moving joints, including those that close loops.
    pub joints: usize,
    /// Number of orientations of links, including that of the ground: links that stay parallel count once.
    pub orientations: usize,
}

impl MotionKind {
    /// Returns a sort key; preferred motions come first: most freedoms, most moving joints, fewest orientations.
    fn key(&self) -> [usize; 3] {
        [usize::MAX - self.freedoms, usize::MAX - self.joints, self.orientations]
    }
}

impl fmt::Display for MotionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
        let Self { freedoms, joints, orientations } = *self;
        write!(
            f,
            "{}, {} and {}",
            count(freedoms, "freedom"),
            count(joints, "moving joint"),
            count(orientations, "orientation")
        )
    }
}

/// Motion that leaves a singular configuration.
pub(super) struct Motion {
    /// Regular configuration on the motion.
    pub at: Candidate,
    pub kind: MotionKind,
    within_limits: bool,
    /// Tangent space in the singular configuration: projector on the free directions.
    tangent: DMatrix<f64>,
    /// Tangent space in velocities of the links: rows in reduced echelon form.
    velocities: Vec<f64>,
}

impl Motion {
    fn precedes(&self, other: &Self) -> bool {
        let key = |m: &Self| (!m.within_limits, m.kind.key());
        if key(self) != key(other) {
            return key(self) < key(other);
        }
        // Last criterion: the larger motion of the first link (by name) that moves differently.
        let differs = |a: f64, b: f64| (a - b).abs() > SAME * a.abs().max(b.abs()).max(1.0);
        let mut pairs = self.velocities.iter().zip(&other.velocities);
        pairs
            .find(|(a, b)| differs(**a, **b))
            .is_some_and(|(a, b)| if differs(a.abs(), b.abs()) { a.abs() > b.abs() } else { a > b })
    }
}

/// Returns the motions that intersect in the singular configuration `start`, the preferred one first: those within
/// joint limits, with most degrees of freedom, in which most joints move and most links stay parallel.
pub(super) fn motions(
    constraints: &Constraints<'_>,
    start: &Candidate,
    held: &[usize],
) -> Result<Vec<Motion>> {
    let fork = Branching::new(constraints, start, held)?;
    let mut found: Vec<Motion> = Vec::new();
    for x in fork.directions()? {
        for x in [fork.outward(&x)?, -fork.outward(&x)?] {
            let Some(motion) = fork.follow(&x)? else { continue };
            let same =
                |m: &Motion| m.kind == motion.kind && (&m.tangent - &motion.tangent).amax() < 5.0 * SAME;
            match found.iter_mut().find(|m| same(m)) {
                Some(known) if motion.within_limits && !known.within_limits => *known = motion,
                Some(_) => {}
                None => found.push(motion),
            }
        }
    }
    let mut ordered: Vec<Motion> = Vec::new();
    for motion in found {
        let place = ordered.iter().position(|m| motion.precedes(m)).unwrap_or(ordered.len());
        ordered.insert(place, motion);
    }
    let alike = |kind: MotionKind| ordered.iter().filter(|m| m.kind == kind).count();
    let cones: Vec<MotionKind> =
        ordered.iter().map(|m| m.kind).filter(|&k| k.freedoms > 1 && alike(k) >= CONE).collect();
    let mut seen: Vec<MotionKind> = Vec::new();
    ordered.retain(|m| {
        let again = cones.contains(&m.kind) && seen.contains(&m.kind);
        seen.push(m.kind);
        !again
    });
    Ok(ordered)
}

/// Returns the free directions of the constraints, one in each column, and whether constraints restrict them to second
/// order.
pub(super) fn tangents(constraints: &Constraints<'_>, at: &Candidate) -> Result<(DMatrix<f64>, bool)> {
    let fork = Branching::new(constraints, at, &[])?;
    let is_restricted = !fork.forms.is_empty();
    Ok((fork.free, is_restricted))
}

/// Singular configuration with its free directions.
struct Branching<'a, 'm> {
    constraints: &'a Constraints<'m>,
    start: &'a Candidate,
    held: &'a [usize],
    /// Free directions of the constraints, one in each column, in scaled coordinates.
    free: DMatrix<f64>,
    /// Symmetric forms in the free directions that vanish if a motion can leave.
    forms: Vec<DMatrix<f64>>,
    /// Links sorted by name.
    links: Vec<usize>,
    /// Links at both sides of each joint; `None` is the ground.
    joints: Vec<(Option<usize>, Option<usize>)>,
    /// Reference length.
    size: f64,
}

impl<'a, 'm> Branching<'a, 'm> {
    fn new(constraints: &'a Constraints<'m>, start: &'a Candidate, held: &'a [usize]) -> Result<Self> {
        let bodies = constraints.mechanism.bodies();
        let mut links: Vec<usize> = (0..bodies.len()).filter(|&i| bodies[i].kind == BodyKind::Link).collect();
        links.sort_by(|&i, &j| bodies[i].name.cmp(&bodies[j].name));
        // The massless piece of a universal joint belongs to the joint.
        let link = |body: Option<usize>| {
            std::iter::successors(body, |&b| bodies[b].parent).find(|&b| bodies[b].kind != BodyKind::Massless)
        };
        let closing = constraints.loops.iter().map(|l| (l.joint.predecessor.body, l.joint.successor.body));
        let joints = links.iter().map(|&i| (link(bodies[i].parent), Some(i)));
        let joints = joints.chain(closing.map(|(a, b)| (link(a), link(b)))).collect();
        let size = constraints.loops.iter().map(|l| l.length).fold(0.0, f64::max);
        let free = free_directions(constraints, start)?;
        let mut out = Self { constraints, start, held, free, forms: Vec::new(), links, joints, size };
        out.forms = out.forms()?;
        Ok(out)
    }

    /// Computes `wᵀ J̇ v` for all `w` with `wᵀ J = 0`, as independent forms.
    fn forms(&self) -> Result<Vec<DMatrix<f64>>> {
        let (rows, n) = (self.constraints.rows, self.free.ncols());
        let kept = Svd::new(&self.start.jacobian.transpose())?.null_space(self.start.rank.rank);
        let mut jacobian = self.start.jacobian.clone();
        let mut square = |x: &DVector<f64>| {
            let direction = &self.free * x;
            let v: Vec<f64> = direction.iter().zip(&self.constraints.scale).map(|(x, s)| x * s).collect();
            let mut bias = DVector::zeros(rows);
            self.constraints.jacobian(&self.start.q, Some(&v), &mut jacobian, bias.as_mut_slice());
            kept.tr_mul(&bias)
        };
        let unit = |i: usize| DVector::from_fn(n, |k, _| f64::from(u8::from(k == i)));
        let own: Vec<DVector<f64>> = (0..n).map(|i| square(&unit(i))).collect();
        let mut all = DMatrix::zeros(kept.ncols(), n * n);
        for i in 0..n {
            for j in 0..n {
                let product = if i == j {
                    own[i].clone()
                } else {
                    0.5 * (square(&(unit(i) + unit(j))) - &own[i] - &own[j])
                };
                all.set_column(i * n + j, &product);
            }
        }
        // Constraints that are always redundant give no form; coordinates are scaled, so that other forms are of order
        // one.
        let svd = Svd::new(&all)?;
        let counts = svd.values.iter().take_while(|&&s| s > RANK_TOLERANCE).count();
        Ok((0..counts).map(|i| DMatrix::from_fn(n, n, |a, b| svd.v[(a * n + b, i)])).collect())
    }

    /// Computes the derivatives of the forms at `x`, one per row, and their values.
    fn derivatives(&self, x: &DVector<f64>) -> (DMatrix<f64>, DVector<f64>) {
        let mut rows = DMatrix::zeros(self.forms.len(), x.len());
        for (i, form) in self.forms.iter().enumerate() {
            rows.row_mut(i).tr_copy_from(&(form * x));
        }
        let values = &rows * x;
        (2.0 * rows, values)
    }

    /// Returns unit directions on which all forms vanish.
    fn directions(&self) -> Result<Vec<DVector<f64>>> {
        let n = self.free.ncols();
        // A fixed seed: the same input gives the same assembly.
        let mut source = SplitMix::new(3);
        let mut out: Vec<DVector<f64>> = Vec::new();
        for _ in 0..STARTS * n {
            let mut x = DVector::from_fn(n, |_, _| f64::random(&mut source));
            if self.find_zero(&mut x)? && out.iter().all(|y| (y - &x).norm().min((y + &x).norm()) > SAME) {
                out.push(x);
                if out.len() == MOST_DIRECTIONS {
                    break;
                }
            }
        }
        Ok(out)
    }

    /// Solves for a zero of the forms by Gauss–Newton with `x` kept at unit length; returns whether it converged.
    fn find_zero(&self, x: &mut DVector<f64>) -> Result<bool> {
        let mut left = f64::INFINITY;
        for _ in 0..60 {
            let length = x.norm();
            if length < 1e-3 {
                return Ok(false);
            }
            x.unscale_mut(length);
            if self.forms.is_empty() {
                return Ok(true);
            }
            let (rows, values) = self.derivatives(x);
            left = values.amax();
            if left < 1e-14 {
                break;
            }
            let svd = Svd::new(&rows)?;
            *x -= svd.solve(&values, svd.rank(1e-9).rank, 0.0);
        }
        // Convergence is slow where motions touch each other, and this accuracy is sufficient.
        Ok(left < 1e-8)
    }

    /// Returns `x` or its opposite: the one for which independent joints marked by the model, or else the first link by
    /// name, move in positive direction.
    fn outward(&self, x: &DVector<f64>) -> Result<DVector<f64>> {
        let direction = &self.free * x;
        let mut entries: Vec<f64> = self.held.iter().map(|&k| direction[k]).collect();
        entries.extend(self.velocities(&direction)?);
        let largest = entries.iter().fold(0.0f64, |m, e| m.max(e.abs()));
        let first = entries.iter().find(|e| e.abs() > SAME * largest);
        Ok(if first.is_some_and(|e| *e < 0.0) { -x } else { x.clone() })
    }

    /// Computes the twists of all bodies about the world origin for a motion of the coordinates along `direction`.
    fn twists(&self, q: &[f64], direction: &DVector<f64>) -> Result<Vec<[f64; 6]>> {
        let mechanism = self.constraints.mechanism;
        let v: Vec<f64> = direction.iter().zip(&self.constraints.scale).map(|(x, s)| x * s).collect();
        let mut workspace = Workspace::new(mechanism);
        body_velocities(mechanism, &mut workspace, q, &v)?;
        let moving = workspace.poses().iter().zip(workspace.velocities());
        Ok(moving.map(|(pose, v)| pose.push_motion(v).to_vector().data.0[0]).collect())
    }

    /// Returns the velocities of the links in the singular configuration, by name.
    fn velocities(&self, direction: &DVector<f64>) -> Result<Vec<f64>> {
        let twists = self.twists(&self.start.q, direction)?;
        Ok(self.links.iter().flat_map(|&i| twists[i]).collect())
    }

    /// Returns the closed configuration near `start + distance · direction`, and its displacement from the start in
    /// each coordinate.
    fn point(&self, direction: &DVector<f64>, distance: f64) -> Result<Option<(Vec<f64>, DVector<f64>)>> {
        let mut q = self.start.q.clone();
        advance(self.constraints, &mut q, &(direction * distance));
        if close(self.constraints, &mut q, &[])? > self.constraints.tolerances.gap {
            return Ok(None);
        }
        let moved = displacement(self.constraints, &self.start.q, &q);
        Ok(Some((q, moved)))
    }

    /// Follows the motion that leaves along `x`, if there is one.
    fn follow(&self, x: &DVector<f64>) -> Result<Option<Motion>> {
        let (rows, _) = self.derivatives(x);
        let svd = Svd::new(&rows)?;
        let determined = Rank::decide(svd.values.as_slice(), SAME).rank;
        let unit = |d: DVector<f64>| {
            let size = d.amax();
            d.unscale(size)
        };
        let mut direction = unit(&self.free * x);
        let mut best: Option<Candidate> = None;
        // Start as near as necessary to be on the right motion, then move farther along it.
        let (mut distance, mut leaving) = (PROBE, false);
        while distance < FAR * GROWTH {
            let near = match self.point(&direction, distance)? {
                Some((q, moved)) if (&moved - &direction * distance).amax() <= STRAIGHT * distance => {
                    Some((q, moved))
                }
                _ => None,
            };
            let Some((q, moved)) = near else {
                if leaving || distance < PROBE / 10.0 {
                    break;
                }
                distance *= 0.5;
                continue;
            };
            leaving = true;
            direction = unit(moved);
            distance *= GROWTH;
            let at = Candidate::new(self.constraints, q, true)?;
            if best.as_ref().is_none_or(|b| at.rank.rank >= b.rank.rank) {
                best = Some(at);
            }
        }
        let Some(at) = best.filter(|b| b.rank.rank > self.start.rank.rank) else { return Ok(None) };
        let freedoms = self.free.ncols() - (at.rank.rank - self.start.rank.rank).min(self.free.ncols());
        let moving = free_directions(self.constraints, &at)?;
        // Use the second-order tangents if they are determined, otherwise those found from the regular configuration.
        let tangent = if x.len() - determined == freedoms {
            svd.null_space(determined)
        } else if freedoms == 1 {
            DMatrix::from_columns(&[self.limit(direction)?])
        } else {
            let seen = Svd::new(&self.free.tr_mul(&moving))?;
            seen.u.columns_range(..freedoms.min(seen.u.ncols())).into_owned()
        };
        Ok(Some(Motion {
            kind: self.kind(&at, &moving, freedoms)?,
            within_limits: within_limits(self.constraints, &at.q),
            velocities: self.reduced(&tangent)?,
            tangent: &tangent * tangent.transpose(),
            at,
        }))
    }

    /// Computes the tangent of a motion from a distant `direction` by points at decreasing distances.
    fn limit(&self, mut direction: DVector<f64>) -> Result<DVector<f64>> {
        for halvings in 1..=6 {
            if let Some((_, moved)) = self.point(&direction, FAR * 0.5f64.powi(halvings))?
                && moved.amax() > 0.0
            {
                direction = moved.unscale(moved.amax());
            }
        }
        Ok(self.free.tr_mul(&direction).normalize())
    }

    fn kind(&self, at: &Candidate, moving: &DMatrix<f64>, freedoms: usize) -> Result<MotionKind> {
        // Velocities of each body, one direction after the other; the ground, with zero velocity, is the last.
        let ground = self.constraints.mechanism.bodies().len();
        let mut own: Vec<Vec<f64>> = vec![Vec::new(); ground + 1];
        for direction in moving.column_iter() {
            let twists = self.twists(&at.q, &direction.into_owned())?;
            for (own, twist) in own.iter_mut().zip(twists.into_iter().chain([[0.0; 6]])) {
                own.extend(&twist[..3]);
                own.extend(twist[3..].iter().map(|v| v / self.size));
            }
        }
        let apart = |a: usize, b: usize, counts: fn(usize) -> bool| {
            let pairs = own[a].iter().zip(&own[b]).enumerate().filter(|(k, _)| counts(*k));
            pairs.fold(0.0f64, |m, (_, (a, b))| m.max((a - b).abs())) > TOGETHER
        };
        let joints =
            self.joints.iter().filter(|(a, b)| apart(a.unwrap_or(ground), b.unwrap_or(ground), |_| true));
        let mut orientations = vec![ground];
        for &link in &self.links {
            if orientations.iter().all(|&other| apart(link, other, |k| k % 6 < 3)) {
                orientations.push(link);
            }
        }
        Ok(MotionKind { freedoms, joints: joints.count(), orientations: orientations.len() })
    }

    /// Returns the velocities of the links in a tangent space, in a form independent of its basis.
    fn reduced(&self, tangent: &DMatrix<f64>) -> Result<Vec<f64>> {
        let mut span = Echelon::<f64>::new(6 * self.links.len(), Pivot::First);
        for x in tangent.column_iter() {
            let mut row = self.velocities(&(&self.free * x))?;
            let largest = row.iter().fold(0.0f64, |m, e| m.max(e.abs()));
            row.iter_mut().for_each(|e| *e = if e.abs() > 1e-6 * largest { *e / largest } else { 0.0 });
            span.insert(&row);
        }
        span.reduce();
        let mut order: Vec<usize> = (0..span.rank()).collect();
        order.sort_by_key(|&i| span.pivots()[i]);
        Ok(order.into_iter().flat_map(|i| span.row(i).to_vec()).collect())
    }
}

/// Returns the free directions of the constraints on loops, one in each column; joints outside the loops stay fixed.
fn free_directions(constraints: &Constraints<'_>, at: &Candidate) -> Result<DMatrix<f64>> {
    let on: Vec<usize> = (0..at.jacobian.ncols()).filter(|&k| constraints.on_loop[k]).collect();
    let inner = Svd::new(&at.jacobian.select_columns(&on))?.null_space(at.rank.rank);
    let mut out = DMatrix::zeros(at.jacobian.ncols(), inner.ncols());
    for (row, &k) in on.iter().enumerate() {
        out.row_mut(k).copy_from(&inner.row(row));
    }
    Ok(out)
}
