//! Mechanisms with loops in numbers of many digits: the rank of the regressor at random closed configurations, and the values of the
//! combinations.
//!
//! Random closed configurations are solved to the last digit, each gives rows of the regressor, and elimination with full pivoting
//! decides. True pivots can be small (on the short path of a mechanism with one freedom many functions look alike), so the precision
//! grows until the last pivot that counts stands clear of rounding. Constraints that contradict each other a little (rounded
//! overconstrained machines) are met in the least-squares sense; what they leave open sets the tolerance.

use nalgebra::{DVector, Matrix3, Rotation3, UnitQuaternion, Vector3};
use num_traits::{One, Zero};

use super::certificate::Question;
use super::lifting::Start;
use super::probe::Probe;
use crate::dynamics::{ClosedMechanism, ClosedWorkspace};
use crate::linalg::{Echelon, FullPivots, Number, Pivot, Rank, SplitMix, Wide};
use crate::mechanism::{
    Assembled, AssembledLoop, Body, Closing, ExactAssembly, Geometry, Pivoting, turn_about,
};
use crate::spatial::{Field, Motion, Pose, rotation_from_quaternion, skew};
use crate::{Error, Result};

/// A rank is clear where its last pivot stands this far above the tolerance.
const CLEAR: f64 = 1e12;

/// What the loops leave open enters the regressor magnified by its conditioning.
const MAGNIFIED: f64 = 100.0;

/// Dimensions that were meant equal differ in the last digit of a file. What that leaves is smaller than the square of the snapping
/// tolerance (so small would be what a dimension at that tolerance reveals), and lies this far below what was meant;
/// true pivots fall off in smaller steps. So dimensions written with 12 decimals or more are recognised as equal.
const CLEAR_STEP: f64 = 1e5;

/// Relations are looked for in so many configurations: one may be special by accident.
const VIEWS: usize = 3;

/// Configurations are added until so many in a row bring nothing new.
const QUIET: usize = 4;

/// Rows beyond the expected rank, so that no pivot is small by accident.
const SPARE_ROWS: usize = 8;

/// Where the rank is known, rows are taken from about so many configurations, along at most so many directions of motion in each.
const CONFIGURATIONS: usize = 12;
const MOST_DIRECTIONS: usize = 16;

/// How far a joint moves from one configuration to the next (rad, or sizes of the mechanism).
const LONGEST_STEP: f64 = 0.2;

/// A step in which the direction of motion changes by more than this may have led through a singular configuration to another
/// motion that meets there.
const SHARPEST_TURN: f64 = 0.5;

/// Rows of the regressor at random closed configurations, eliminated, in units of the mechanism's size.
#[derive(Debug)]
pub struct Extended<const N: usize> {
    /// The rank with its margin.
    pub rank: Rank,
    /// Largest gap of the loops at the configurations (rad, or relative to the mechanism's size).
    pub open: f64,
    /// Pivots up to this, relative to the first, counted as zero.
    pub tolerance: f64,
    /// Whether pivots that rounding of the geometry explains were left out.
    pub truncated: bool,
    /// Basis of the row space.
    pub rows: Echelon<Wide<N>>,
    /// Dimension of the velocities that each body attains, gravity included.
    pub velocities: Vec<usize>,
    /// Factors from parameters in units of the mechanism's size to those of the file.
    pub lengths: Vec<f64>,
    /// All rows, each with a largest entry of one.
    samples: Vec<f64>,
}

impl<const N: usize> Extended<N> {
    /// Samples a mechanism. With a tolerance `snap` of zero the last digit of every number counts; otherwise what it alone reveals does
    /// not.
    ///
    /// Where an upper bound of the rank is known (`expected`), no more rows are drawn than it takes to reach it. Where the geometry is
    /// known to rounding only (`blurred`), pivots that rounding leaves do not count.
    pub fn new(
        question: &Question<'_>,
        site: &Site<'_, '_, N>,
        snap: f64,
        expected: Option<usize>,
        blurred: bool,
    ) -> Result<Self> {
        let inquiry = question.inquiry();
        let width = question.mechanism.parameter_count();
        let mut walk = Walk::new(site.closed, site.size, question.seed);
        let mut source = SplitMix::new(question.seed);
        let orders = if inquiry.needs_accelerations() { 2 } else { 1 };
        let mut matrix: Vec<Wide<N>> = Vec::new();
        let mut span = Echelon::new(width, Pivot::Largest);
        // Where the rank is known, rows that doubles tell from those before suffice, and a few to spare.
        let mut rough = Echelon::<f64>::new(width, Pivot::Largest);
        let (mut spare, mut all) = (SPARE_ROWS, false);
        let directions = expected.map_or(1, |rank| (rank / CONFIGURATIONS).clamp(1, MOST_DIRECTIONS));
        let bodies = question.mechanism.bodies().len();
        let mut spans = vec![Echelon::<Wide<N>>::new(6, Pivot::Largest); bodies];
        let mut rounded_spans = vec![Echelon::<f64>::new(6, Pivot::Largest); bodies];
        let (mut open, mut quiet) = (0.0f64, 0);
        // More rows than columns, so that no pivot is small by accident.
        for _ in 0..expected.map_or(width, |r| 4 * r) + 30 {
            walk.step()?;
            let (assembled, left) = site.refine(&walk.q)?;
            let assembled = site.in_own_units(&assembled);
            let start = Start::new(&assembled, &site.dependent).map_err(|_| dead_point())?;
            let mut probe = Probe::random(&start, inquiry, directions, &mut source);
            let before = (span.rank(), rough.rank());
            for _ in 0..orders {
                let advanced = probe.advance(&mut source, |row| {
                    let size = row.iter().map(|x| x.weight()).fold(0.0, f64::max);
                    // A row of rounding alone is no row.
                    if size > Wide::<N>::TOLERANCE {
                        let scale = Wide::from(size.recip());
                        let row: Vec<Wide<N>> = row.iter().map(|&x| x * scale).collect();
                        if expected.is_none() {
                            span.insert(&row);
                        } else {
                            let rounded: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
                            if !rough.insert(&rounded) {
                                if spare == 0 {
                                    return;
                                }
                                spare -= 1;
                            }
                        }
                        matrix.extend(row);
                    }
                });
                advanced.map_err(|_| dead_point())?;
            }
            probe.velocities(|body, v| {
                spans[body].insert(v.to_vector().as_slice());
                rounded_spans[body].insert(v.to_vector().map(f64::from).as_slice());
            });
            open = open.max(left).max(probe.slack());
            quiet = if (span.rank(), rough.rank()) > before { 0 } else { quiet + 1 };
            // Elimination in the order of rows can miss small pivots that full pivoting still sees.
            let done = match expected {
                Some(rank) if quiet >= QUIET && rough.rank() < rank && !all => {
                    // Doubles see no more: what is missing may be small.
                    all = true;
                    spare += rank - rough.rank();
                    false
                }
                Some(rank) => spare == 0 && (rough.rank() >= rank || all),
                None => quiet >= QUIET && matrix.len() >= (2 * span.rank() + SPARE_ROWS) * width,
            };
            if done {
                break;
            }
        }
        let tolerance = Wide::<N>::TOLERANCE.max(MAGNIFIED * open);
        let samples = matrix.iter().map(|&x| f64::from(x)).collect();
        let mut found = FullPivots::new(matrix, width, tolerance);
        // Where the loops do not close to the last digit, or relations hold to rounding only, rounding enters squared too: between its
        // square and itself there is a step, but no rank that anybody meant.
        let mut truncated = false;
        if blurred || open > Wide::<N>::TOLERANCE {
            let step = |w: &[f64]| w[1] < snap * snap && w[0] > CLEAR_STEP * w[1] && w[0] * w[0] > w[1];
            if let Some(last) = found.sizes.windows(2).position(step) {
                truncated = last + 1 < found.places.len();
                found.truncate(last + 1);
            }
        }
        let rank = found.rank();
        let tolerance = tolerance.max(MAGNIFIED * rank.dropped);
        let mut rows = Echelon::new(width, Pivot::Largest);
        for &(row, column) in &found.places {
            let entries = &found.matrix[row * width..(row + 1) * width];
            let scale = entries[column].inverse().unwrap_or_else(Wide::one);
            // Columns of earlier pivots hold what elimination skipped there.
            let mut done: Vec<Wide<N>> = entries.iter().map(|&x| x * scale).collect();
            for &(_, earlier) in found.places.iter().take_while(|p| p.0 != row) {
                done[earlier] = Wide::zero();
            }
            rows.insert(&done);
        }
        rows.reduce();
        let velocities = if truncated {
            rounded_spans.iter().map(Echelon::rank).collect()
        } else {
            spans.iter().map(Echelon::rank).collect()
        };
        let lengths = lengths(question, site.unit);
        Ok(Self { rank, open, tolerance, truncated, rows, velocities, lengths, samples })
    }

    /// Whether the loops close to the last digit and the last pivot that counts stands clear of rounding.
    pub fn is_clear(&self) -> bool {
        self.open <= Wide::<N>::TOLERANCE && self.rank.kept > CLEAR * Wide::<N>::TOLERANCE
    }

    /// Whether a change of the parameters (in units of the mechanism's size) is null: it vanishes on every row to the tolerance (and to
    /// the rounding of `f64`).
    pub fn annihilates(&self, x: &[Wide<N>]) -> bool {
        let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
        let size = x.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let tolerance = self.tolerance.max(1e-10) * size;
        let mut rows = self.samples.chunks_exact(x.len().max(1));
        rows.all(|row| row.iter().zip(&x).map(|(y, x)| y * x).sum::<f64>().abs() <= tolerance)
    }
}

fn dead_point() -> Error {
    Error::Numeric(
        "a random configuration is a dead point of the independent joints: try another seed".into(),
    )
}

/// For each parameter the power of `unit` that brings masses, first moments and inertias to one scale.
fn lengths(question: &Question<'_>, unit: f64) -> Vec<f64> {
    let mut out = vec![1.0; question.mechanism.parameter_count()];
    for block in question.mechanism.parameter_blocks() {
        for (k, x) in out[block.offset..block.offset + block.len].iter_mut().enumerate() {
            *x = match 10 - block.len + k {
                0 => 1.0,
                1..=3 => unit,
                _ => unit * unit,
            };
        }
    }
    out
}

/// A few closed configurations.
pub struct Views<const N: usize> {
    /// The configurations, with lengths in units of the mechanism's size.
    pub configurations: Vec<Assembled<Wide<N>>>,
    /// Coordinates of the first.
    pub q: Vec<f64>,
}

/// A mechanism's geometry in many digits, to be set up at any configuration.
pub struct Site<'a, 'm, const N: usize> {
    closed: &'a ClosedMechanism<'m>,
    /// Types, axes and ratios of the joints.
    pub geometry: Geometry<Wide<N>>,
    /// The configuration that others are reached from, and its coordinates.
    base: Assembled<Wide<N>>,
    q: Vec<f64>,
    dependent: Vec<bool>,
    columns: Vec<usize>,
    size: f64,
    /// The size as a power of two, which rounds nothing.
    unit: f64,
    /// For each velocity coordinate whether it is a length.
    is_length: Vec<bool>,
    /// For each velocity coordinate whether it moves several bodies.
    shared: Vec<bool>,
}

impl<'a, 'm, const N: usize> Site<'a, 'm, N> {
    /// The mechanism as it stands in the configuration `base` at the coordinates `q`.
    pub fn new(
        closed: &'a ClosedMechanism<'m>,
        assembly: &ExactAssembly,
        base: Assembled<Wide<N>>,
        q: Vec<f64>,
    ) -> Self {
        let nv = closed.mechanism().nv();
        let dependent: Vec<bool> = (0..nv).map(|v| !closed.independent().contains(&v)).collect();
        let columns = (0..nv).filter(|&v| dependent[v]).collect();
        let size = if assembly.size() > 0.0 { assembly.size() } else { 1.0 };
        let geometry = assembly.geometry().to();
        let mut is_length = vec![false; nv];
        let mechanism = closed.mechanism();
        // The joint that a coordinate belongs to follows none.
        let own = |b: &&Body| mechanism.joints()[b.joint].follows.is_none();
        for body in mechanism.bodies()[..mechanism.link_bodies()].iter().filter(own) {
            for (v, mode) in body.v_range().zip(&*body.joint_type.free_modes()) {
                is_length[v] = mode.angular.norm_squared() == 0.0;
            }
        }
        let mut moved = vec![0; nv];
        closed.mechanism().bodies().iter().for_each(|b| moved[b.drive.v] += 1);
        let shared = moved.into_iter().map(|n| n > 1).collect();
        let unit = size.log2().round().exp2();
        Self { closed, geometry, base, q, dependent, columns, size, unit, is_length, shared }
    }

    /// A few closed configurations, and the largest gap of the loops there (rad, or relative to the mechanism's size).
    pub fn views(&self, seed: u64) -> Result<(Views<N>, f64)> {
        let mut walk = Walk::new(self.closed, self.size, seed);
        let mut views = Views { configurations: Vec::with_capacity(VIEWS), q: Vec::new() };
        let mut gap = 0.0f64;
        for _ in 0..VIEWS {
            walk.step()?;
            walk.step()?;
            let (assembled, open) = self.refine(&walk.q)?;
            views.configurations.push(self.in_own_units(&assembled));
            gap = gap.max(open);
            if views.q.is_empty() {
                views.q.clone_from(&walk.q);
            }
        }
        Ok((views, gap))
    }

    /// The same configuration with lengths in units of the mechanism's size.
    fn in_own_units(&self, at: &Assembled<Wide<N>>) -> Assembled<Wide<N>> {
        self.rescaled(at, self.unit.recip())
    }

    /// The same configuration, from units of the mechanism's size to those of the file.
    pub fn in_file_units(&self, at: &Assembled<Wide<N>>) -> Assembled<Wide<N>> {
        self.rescaled(at, self.unit)
    }

    fn rescaled(&self, at: &Assembled<Wide<N>>, factor: f64) -> Assembled<Wide<N>> {
        let (factor, back) = (Wide::from(factor), Wide::from(factor.recip()));
        let scaled = |pose: &Pose<Wide<N>>| Pose::new(pose.rotation, pose.translation * factor);
        let mut out = at.clone();
        for body in &mut out.bodies {
            body.pose = scaled(&body.pose);
            for (k, mode) in body.modes.iter_mut().enumerate() {
                let rate = if self.is_length[body.v + k] { back } else { Wide::one() };
                *mode = Motion::new(mode.angular * rate, mode.linear * (factor * rate));
            }
        }
        for joint in &mut out.loops {
            let closing = match joint.closing {
                Closing::Free(pivoting, frame, pitch) => Closing::Free(pivoting, frame, pitch * factor),
                other => other,
            };
            let ends = [scaled(&joint.ends[0]), scaled(&joint.ends[1])];
            *joint = AssembledLoop::new(joint.predecessor, joint.successor, ends, closing);
        }
        out
    }

    /// The mechanism near `q`, its loops closed to the last digit; and how far they stay open.
    fn refine(&self, q: &[f64]) -> Result<(Assembled<Wide<N>>, f64)> {
        let mut at = self.place(q);
        let (mut open, mut equations) = self.equations(&at)?;
        for _ in 0..14 {
            if open == 0.0 || self.columns.is_empty() {
                break;
            }
            let step = least_squares(&equations, self.columns.len()).ok_or_else(dead_point)?;
            let mut next = at.clone();
            for (body, pose) in next.bodies.iter_mut().zip(&at.bodies) {
                let own = body.modes.iter().enumerate();
                body.pose = own.fold(pose.pose, |pose, (k, mode)| {
                    let place = self.columns.binary_search(&(body.v + k));
                    place.map_or(pose, |i| pose * displacement(&(*mode * step[i])))
                });
            }
            let (now, then) = self.equations(&next)?;
            // Where rounding (or contradicting geometry) lets it fall no further.
            if now >= open {
                break;
            }
            let stalled = now > 0.5 * open;
            (at, open, equations) = (next, now, then);
            if stalled {
                break;
            }
        }
        Ok((at, open))
    }

    /// The mechanism at `q`, as good as `q` closes its loops.
    fn place(&self, q: &[f64]) -> Assembled<Wide<N>> {
        let mut out = self.base.clone();
        let bodies = self.closed.mechanism().bodies().iter();
        for ((body, exact), to) in bodies.zip(&self.geometry.bodies).zip(&mut out.bodies) {
            let range = body.drive.q..body.drive.q + body.joint_type.nq();
            let (then, now) = (&self.q[range.clone()], &q[range]);
            let shared = self.shared[body.drive.v];
            // Coordinates that several bodies share must agree to the last digit, so must a screw's turn and advance.
            let position = |k: usize| (Wide::from(now[k]) - Wide::from(then[k])) * exact.ratio;
            let turned = |x: Wide<N>| {
                // Any angle near that of `q` will do, unless several joints share it: rational in the tangent of its half.
                let (c, s) = if shared || exact.pivoting == Pivoting::Helical {
                    let (s, c) = x.sin_cos();
                    (c, s)
                } else {
                    let t = Wide::from((0.5 * f64::from(x)).tan());
                    let scale = (Wide::one() + t * t).inverse().unwrap_or_else(Wide::one);
                    ((Wide::one() - t * t) * scale, t * scale.scaled(1))
                };
                exact.frame * turn_about(2, (c, s)) * exact.frame.transpose()
            };
            let slid = |x: Wide<N>| exact.axis() * x;
            let pose = match exact.pivoting {
                Pivoting::Revolute => Pose::new(turned(position(0)), Vector3::zeros()),
                Pivoting::Prismatic => Pose::from_translation(slid(position(0))),
                Pivoting::Helical => {
                    let x = position(0);
                    Pose::new(turned(x), slid(exact.pitch * x))
                }
                Pivoting::Cylindrical => Pose::new(turned(position(0)), slid(position(1))),
                Pivoting::Planar | Pivoting::Spherical | Pivoting::Floating => {
                    // Free in their motion: the nearest number of each coordinate is as good as any.
                    let rough = body.joint_type.pose(then).inverse() * body.joint_type.pose(now);
                    if exact.pivoting == Pivoting::Planar {
                        let across = exact.frame.map(f64::from).tr_mul(&rough.translation);
                        let shift =
                            exact.frame * Vector3::new(across.x.into(), across.y.into(), Wide::zero());
                        Pose::new(turned(position(2)), shift)
                    } else {
                        let shift = match exact.pivoting {
                            Pivoting::Floating => rough.translation.map(Wide::from),
                            _ => Vector3::zeros(),
                        };
                        Pose::new(exact_rotation(&rough.rotation), shift)
                    }
                }
            };
            to.pose = to.pose * pose;
        }
        out
    }

    /// How far the loops are open, and one equation per row: its coefficients in the dependent coordinates and its value.
    fn equations(&self, at: &Assembled<Wide<N>>) -> Result<(f64, Vec<Wide<N>>)> {
        let poses = at.world_poses();
        let world = |body: Option<usize>| body.map_or_else(Pose::identity, |i| poses[i]);
        let mut out = Vec::new();
        let mut sum = 0.0;
        for joint in &at.loops {
            let (near, far) = (world(joint.predecessor), world(joint.successor));
            let found = joint
                .equations(&near, &far, |c, s, advanced| Some(angle(c, s, advanced)))
                .ok_or_else(dead_point)?;
            let end = far * joint.ends[1];
            for (value, wrench) in found {
                let held = end.push_force(&wrench);
                let start = out.len();
                out.resize(start + self.columns.len() + 1, Wide::zero());
                for (side, sign) in [(joint.successor, Wide::one()), (joint.predecessor, -Wide::one())] {
                    let mut body = side;
                    while let Some(i) = body {
                        for (k, mode) in at.bodies[i].modes.iter().enumerate() {
                            if let Ok(place) = self.columns.binary_search(&(at.bodies[i].v + k)) {
                                out[start + place] += poses[i].push_motion(mode).dot(&held) * sign;
                            }
                        }
                        body = at.bodies[i].parent;
                    }
                }
                out[start + self.columns.len()] = value;
                let length = if wrench.linear.iter().all(Zero::is_zero) { 1.0 } else { self.size };
                sum += (f64::from(value) / length).powi(2);
            }
        }
        Ok((sum.sqrt(), out))
    }
}

/// The angle with this cosine and sine that is nearest to what the advance says.
fn angle<const N: usize>(c: Wide<N>, s: Wide<N>, advanced: Wide<N>) -> Wide<N> {
    let rough = f64::from(s).atan2(f64::from(c));
    let turns = ((f64::from(advanced) - rough) / std::f64::consts::TAU).round();
    // Newton's method: the sine of what is left is the correction, three times as many digits with each step.
    let mut found = Wide::from(rough);
    for _ in 0..4 {
        let (s0, c0) = found.sin_cos();
        found += s * c0 - c * s0;
    }
    found + Wide::pi() * Wide::from(2.0 * turns)
}

/// The rotation whose rational quaternion is nearest to that of a rounded rotation.
fn exact_rotation<const N: usize>(r: &Matrix3<f64>) -> Matrix3<Wide<N>> {
    let q = UnitQuaternion::from_rotation_matrix(&Rotation3::from_matrix_unchecked(*r));
    let [x, y, z, w] = [q.i, q.j, q.k, q.w].map(Wide::from);
    rotation_from_quaternion(x, y, z, w).unwrap_or_else(Matrix3::identity)
}

/// The pose after a small twist: the exponential's own series.
fn displacement<const N: usize>(twist: &Motion<Wide<N>>) -> Pose<Wide<N>> {
    let size = twist.angular.iter().map(|x| x.weight()).fold(0.0, f64::max);
    let k = skew(&twist.angular);
    let (mut rotation, mut term, mut left) = (Matrix3::identity(), Matrix3::identity(), 1.0);
    for n in 1.. {
        left *= 2.0 * size / f64::from(n);
        if left < Wide::<N>::NEGLIGIBLE * 1e-16 {
            break;
        }
        term = term * k * Wide::from_i64(i64::from(n)).inverse().unwrap_or_else(Wide::zero);
        rotation += term;
    }
    // Free modes turn about the origin, or advance along their own axis.
    Pose::new(rotation, twist.linear)
}

/// `x` with the least `‖A x + b‖`, rows `[A | b]` of `n + 1` entries: the normal equations, which many digits can afford.
fn least_squares<const N: usize>(rows: &[Wide<N>], n: usize) -> Option<Vec<Wide<N>>> {
    let mut a = vec![Wide::zero(); n * (n + 1)];
    for row in rows.chunks_exact(n + 1) {
        for i in (0..n).filter(|&i| row[i].weight() > 0.0) {
            for j in i..=n {
                a[i * (n + 1) + j] += row[i] * row[j];
            }
        }
    }
    // Elimination of a symmetric positive definite matrix, upper triangle only.
    for k in 0..n {
        let inverse = a[k * (n + 1) + k].inverse()?;
        for i in k + 1..n {
            let factor = a[k * (n + 1) + i] * inverse;
            for j in i..=n {
                let x = a[k * (n + 1) + j];
                a[i * (n + 1) + j].subtract_product(factor, x);
            }
        }
    }
    let mut x = vec![Wide::zero(); n];
    for k in (0..n).rev() {
        let known = (k + 1..n).fold(a[k * (n + 1) + n], |sum, j| sum + a[k * (n + 1) + j] * x[j]);
        x[k] = -(known * a[k * (n + 1) + k].inverse()?);
    }
    Some(x)
}

/// A random walk on the closed configurations, in floating point.
struct Walk<'a, 'm> {
    closed: &'a ClosedMechanism<'m>,
    workspace: ClosedWorkspace,
    source: SplitMix,
    q: Vec<f64>,
    rates: Vec<f64>,
    v: Vec<f64>,
    /// What counts as one in each coordinate: 1 rad, or the mechanism's size.
    scale: Vec<f64>,
}

impl<'a, 'm> Walk<'a, 'm> {
    fn new(closed: &'a ClosedMechanism<'m>, size: f64, seed: u64) -> Self {
        let mut scale = vec![1.0; closed.mechanism().nv()];
        for body in closed.mechanism().bodies() {
            for (k, mode) in body.v_range().zip(&*body.joint_type.free_modes()) {
                if mode.angular.norm_squared() == 0.0 {
                    scale[k] = size;
                }
            }
        }
        let mut walk = Self {
            closed,
            workspace: closed.workspace(),
            source: SplitMix::new(seed),
            q: closed.assembled().to_vec(),
            rates: vec![0.0; closed.dof()],
            v: vec![0.0; closed.mechanism().nv()],
            scale,
        };
        walk.turn();
        walk
    }

    /// A step, mostly straight on; another way where the loops do not close.
    fn step(&mut self) -> Result<()> {
        if self.source.next_u64().is_multiple_of(4) {
            self.turn();
        }
        // From a dead end shorter and shorter steps lead away; where none does, there is nowhere to go.
        for trial in 0..40 {
            let length = LONGEST_STEP / f64::from(1 + trial / 2);
            if self.try_step(length)? {
                return Ok(());
            }
            self.turn();
        }
        Err(Error::Numeric("no closed configuration was found near the assembled one".into()))
    }

    /// A step in which no joint turns (or slides) farther than `length`; says whether it led anywhere.
    fn try_step(&mut self, length: f64) -> Result<bool> {
        self.closed.velocities(&mut self.workspace, &self.q, &self.rates, &mut self.v)?;
        let fastest = self.v.iter().zip(&self.scale).fold(1.0f64, |m, (v, s)| m.max((v / s).abs()));
        let step: Vec<f64> = self.v.iter().map(|v| length * v / fastest).collect();
        let mut trial = self.q.clone();
        self.closed.mechanism().integrate(&mut trial, &step);
        let predicted = trial.clone();
        // A correction as large as the step itself may have changed the branch.
        let stays = |q: &[f64]| {
            let off = q.iter().zip(&predicted).map(|(x, p)| (x - p).abs());
            off.fold(0.0, f64::max) <= 0.5 * length * self.scale.iter().copied().fold(1.0, f64::max)
        };
        let mut onward = vec![0.0; self.v.len()];
        let closes = self.closed.close(&mut self.workspace, &mut trial).is_ok()
            && stays(&trial)
            && self.closed.velocities(&mut self.workspace, &trial, &self.rates, &mut onward).is_ok()
            && self.turned(&onward) <= SHARPEST_TURN;
        if closes {
            self.q = trial;
        }
        Ok(closes)
    }

    /// How much the direction of all joints has changed, for the same direction of the independent ones.
    fn turned(&self, onward: &[f64]) -> f64 {
        let unit = |v: &[f64]| {
            let v = DVector::from_iterator(v.len(), v.iter().zip(&self.scale).map(|(v, s)| v / s));
            v.normalize()
        };
        (unit(&self.v) - unit(onward)).norm()
    }

    /// Chooses another direction.
    fn turn(&mut self) {
        self.rates.iter_mut().for_each(|r| *r = f64::random(&mut self.source));
    }
}
