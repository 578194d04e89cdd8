//! Random members of the family of mechanisms that share a mechanism's geometric relations.
//!
//! Seen in one closed configuration, a mechanism is a set of joint axes: directions and points in the world. Its relations there (parallel
//! and perpendicular axes, axes that meet, links that are equal as vectors, points that divide links alike) are linear in the points once
//! the directions are chosen. So random mechanisms with the same relations can be drawn over any field, and they are closed by
//! construction: both sides of a loop joint have the same axis.
//!
//! The mechanism itself is one member of the family, and the rank of its regressor is at most that of a generic member (the rank of a
//! limit never exceeds that of the sequence). A random member over GF(p) is generic but for an accident of probability degree/p: an upper
//! bound of the rank, whatever the numbers of the mechanism are. See "Closed loops" in the theory chapter.

use nalgebra::{Matrix3, Vector3};
use num_traits::{One, Zero};

use crate::linalg::{Echelon, Gf, Number, Pivot, SplitMix, Wide};
use crate::mechanism::{
    Assembled, AssembledBody, AssembledLoop, Closing, ExactAssembly, Geometry, Pivoting,
};
use crate::spatial::{Field, Pose, rotation_from_quaternion};

/// With more joints than this, points on different bodies are not searched for common lines and ratios: the search grows with the cube.
const MOST_TRIPLES: usize = 40;

/// Directions are redrawn at most so often where a root does not exist in the field.
const REDRAWS: usize = 64;

/// What a joint leaves of a place in space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Locus {
    /// Only its direction counts.
    Nowhere,
    /// A line along its direction.
    Line,
    /// A point.
    Point,
}

/// A direction of the mechanism: its class of parallel directions, and whether it points against the class.
#[derive(Debug, Clone, Copy)]
struct Oriented {
    class: usize,
    against: bool,
}

/// One joint (of the tree, or closing a loop).
#[derive(Debug, Clone)]
struct Item {
    locus: Locus,
    axis: Option<Oriented>,
    /// Second axis of a universal loop joint.
    second: Option<Oriented>,
    /// The bodies that it connects (0 is the ground, body `i` is `i + 1`).
    bodies: [usize; 2],
}

/// Along which directions an equation of points holds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Along {
    /// All.
    Space,
    /// The axis of a class.
    Axis(usize),
    /// Those across the axis of a class.
    Across(usize),
    /// The common normal of two classes.
    Normal(usize, usize),
}

/// `Σ (a + b ζ) P = 0` along some directions; `ζ` is a ratio that several equations may share.
#[derive(Debug, Clone)]
struct Equation {
    terms: Vec<(usize, i64, i64)>,
    ratio: Option<usize>,
    along: Along,
}

/// A mechanism's relations in a closed configuration.
#[derive(Debug, Clone)]
pub(super) struct Family {
    items: Vec<Item>,
    gravity: Option<Oriented>,
    classes: usize,
    /// Pairs of classes at right angles.
    perpendicular: Vec<(usize, usize)>,
    /// Classes in the order in which they are drawn.
    order: Vec<usize>,
    equations: Vec<Equation>,
    /// For each ratio whether its points lie on one line (otherwise it turns them too).
    ratios: Vec<bool>,
    /// Dimension of the points that obey the equations with the mechanism's own directions.
    freedoms: usize,
}

/// The relations being collected, with the mechanism's own directions and points.
struct Survey<const N: usize> {
    directions: Vec<Vector3<Wide<N>>>,
    points: Vec<Vector3<Wide<N>>>,
    items: Vec<Item>,
    equations: Vec<Equation>,
    ratios: Vec<[Wide<N>; 2]>,
    /// What counts as zero.
    tolerance: f64,
}

impl<const N: usize> Survey<N> {
    fn zero(&self, x: Wide<N>) -> bool {
        x.weight() <= self.tolerance
    }

    fn vanishes(&self, v: &Vector3<Wide<N>>) -> bool {
        v.iter().all(|&x| self.zero(x))
    }

    /// The class of a unit direction.
    fn oriented(&mut self, direction: Vector3<Wide<N>>) -> Oriented {
        for (class, known) in self.directions.iter().enumerate() {
            if self.vanishes(&known.cross(&direction)) {
                return Oriented { class, against: f64::from(known.dot(&direction)) < 0.0 };
            }
        }
        self.directions.push(direction);
        Oriented { class: self.directions.len() - 1, against: false }
    }

    fn class(&self, item: usize) -> usize {
        self.items[item].axis.map_or(usize::MAX, |a| a.class)
    }

    /// The part of a vector along which two places of these loci can be compared.
    fn seen(&self, along: Along, v: Vector3<Wide<N>>) -> Vector3<Wide<N>> {
        match along {
            Along::Space => v,
            Along::Axis(c) => self.directions[c] * self.directions[c].dot(&v),
            Along::Across(c) => v - self.directions[c] * self.directions[c].dot(&v),
            Along::Normal(a, b) => {
                let normal = self.directions[a].cross(&self.directions[b]);
                normal * normal.dot(&v)
            }
        }
    }

    /// How two items of one kind on one body are compared; `None` where they are of different kinds.
    fn common(&self, a: usize, b: usize) -> Option<Along> {
        match (self.items[a].locus, self.items[b].locus) {
            (Locus::Point, Locus::Point) => Some(Along::Space),
            (Locus::Line, Locus::Line) if self.class(a) == self.class(b) => {
                Some(Along::Across(self.class(a)))
            }
            _ => None,
        }
    }

    fn difference(&self, along: Along, from: usize, to: usize) -> Vector3<Wide<N>> {
        self.seen(along, self.points[to] - self.points[from])
    }

    /// Axes and points that coincide or meet.
    fn incidences(&mut self, slides: &[usize]) {
        for b in 0..self.items.len() {
            for a in 0..b {
                let along = match (self.items[a].locus, self.items[b].locus) {
                    (Locus::Nowhere, _) | (_, Locus::Nowhere) => continue,
                    (Locus::Point, Locus::Point) => Along::Space,
                    (Locus::Line, Locus::Point) => Along::Across(self.class(a)),
                    (Locus::Point, Locus::Line) => Along::Across(self.class(b)),
                    (Locus::Line, Locus::Line) if self.class(a) == self.class(b) => {
                        Along::Across(self.class(a))
                    }
                    (Locus::Line, Locus::Line) => Along::Normal(self.class(a), self.class(b)),
                };
                if self.vanishes(&self.difference(along, a, b)) {
                    self.equate(a, b, along);
                } else if !matches!(along, Along::Normal(..)) {
                    self.level(a, b, slides);
                }
            }
        }
    }

    fn equate(&mut self, a: usize, b: usize, along: Along) {
        self.equations.push(Equation { terms: vec![(a, 1, 0), (b, -1, 0)], ratio: None, along });
    }

    /// Two places that differ along a sliding direction only, or not at all along it.
    fn level(&mut self, a: usize, b: usize, slides: &[usize]) {
        let line = [a, b].into_iter().find(|&i| self.items[i].locus == Locus::Line).map(|i| self.class(i));
        for &slide in slides {
            let directions = match line {
                None => vec![Along::Axis(slide), Along::Across(slide)],
                Some(axis) if axis == slide => continue,
                Some(axis) if self.zero(self.directions[axis].dot(&self.directions[slide])) => {
                    vec![Along::Axis(slide), Along::Normal(axis, slide)]
                }
                Some(axis) => vec![Along::Normal(axis, slide)],
            };
            for along in directions {
                if self.vanishes(&self.difference(along, a, b)) {
                    self.equate(a, b, along);
                }
            }
        }
    }

    /// Pairs of items on one body that can be compared, with the vector between them.
    fn links(&self) -> Vec<(usize, usize, usize, Along)> {
        let mut out = Vec::new();
        let most = self.items.iter().flat_map(|i| i.bodies).max().unwrap_or(0);
        for body in 0..=most {
            let on: Vec<usize> = (0..self.items.len()).filter(|&i| self.items[i].bodies.contains(&body)).collect();
            for (n, &b) in on.iter().enumerate() {
                for &a in &on[..n] {
                    if let Some(along) = self.common(a, b) {
                        out.push((body, a, b, along));
                    }
                }
            }
        }
        out
    }

    /// Links that are equal as vectors: the sides of parallelograms.
    fn parallelograms(&mut self) {
        let links = self.links();
        let mut vectors: Vec<_> =
            links.iter().map(|&(body, a, b, along)| (body, a, b, along, self.difference(along, a, b))).collect();
        vectors.retain(|v| !self.vanishes(&v.4));
        let mut found = Vec::new();
        for (n, (body, a, b, along, v)) in vectors.iter().enumerate() {
            for (other, c, d, as_well, w) in &vectors[..n] {
                if along != as_well || body == other || (a == c && b == d) {
                    continue;
                }
                for (sign, difference) in [(1, v - w), (-1, v + w)] {
                    if self.vanishes(&difference) {
                        let terms = vec![(*b, 1, 0), (*a, -1, 0), (*d, -sign, 0), (*c, sign, 0)];
                        found.push(Equation { terms, ratio: None, along: *along });
                    }
                }
            }
        }
        self.equations.extend(found);
    }

    /// Three items on one line, and triangles of the same shape on several bodies.
    fn ratios(&mut self) {
        if self.items.len() > MOST_TRIPLES {
            return;
        }
        let mut triples = Vec::new();
        let n = self.items.len();
        for k in 0..n {
            for j in 0..k {
                for i in 0..j {
                    let (Some(along), Some(other)) = (self.common(i, j), self.common(i, k)) else { continue };
                    if along != other {
                        continue;
                    }
                    let (v, w) = (self.difference(along, i, j), self.difference(along, i, k));
                    if self.vanishes(&v) || self.vanishes(&w) || self.vanishes(&(v - w)) {
                        continue;
                    }
                    let Some(scale) = w.dot(&w).inverse() else { continue };
                    let straight = self.vanishes(&v.cross(&w));
                    let turned = match along {
                        Along::Across(c) => self.directions[c].cross(&w).dot(&v) * scale,
                        // Of triangles in space only straight ones are compared.
                        _ if straight => Wide::zero(),
                        _ => continue,
                    };
                    let rigid = (0..2).any(|s| {
                        let body = self.items[i].bodies[s];
                        self.items[j].bodies.contains(&body) && self.items[k].bodies.contains(&body)
                    });
                    // Points of different bodies keep to a line now and then; no other shape is of interest there.
                    if rigid || straight {
                        triples.push(([i, j, k], along, straight, rigid, [v.dot(&w) * scale, turned]));
                    }
                }
            }
        }
        for (n, &([i, j, k], along, straight, rigid, value)) in triples.iter().enumerate() {
            let alike = |o: &[Wide<N>; 2]| self.zero(o[0] - value[0]) && self.zero(o[1] - value[1]);
            let repeated = rigid
                && triples.iter().enumerate().any(|(m, t)| m != n && t.1 == along && t.3 && alike(&t.4));
            if !straight && !repeated {
                continue;
            }
            let known = self.ratios.iter().position(|o| rigid && alike(o));
            let ratio = known.unwrap_or(self.ratios.len());
            if known.is_none() {
                self.ratios.push(if rigid { value } else { [value[0], Wide::zero()] });
            }
            let terms = vec![(j, 1, 0), (i, -1, 1), (k, 0, -1)];
            self.equations.push(Equation { terms, ratio: Some(ratio), along });
        }
    }
}

impl Family {
    /// The relations of a mechanism in the closed configuration `at` (lengths in units of its size), to `tolerance`.
    pub fn new<const N: usize>(
        at: &Assembled<Wide<N>>,
        geometry: &Geometry<Wide<N>>,
        tolerance: f64,
    ) -> Self {
        let poses = at.world_poses();
        let mut survey = Survey {
            directions: Vec::new(),
            points: Vec::new(),
            items: Vec::new(),
            equations: Vec::new(),
            ratios: Vec::new(),
            tolerance,
        };
        let heavy = !at.gravity.iter().all(Zero::is_zero);
        let gravity = heavy.then(|| survey.oriented(at.gravity));
        let mut slides = Vec::new();
        let mut note = |pivoting: Pivoting, axis: Option<Oriented>| {
            if matches!(pivoting, Pivoting::Prismatic | Pivoting::Planar | Pivoting::Cylindrical) {
                slides.extend(axis.map(|a| a.class));
            }
        };
        for ((body, exact), pose) in at.bodies.iter().zip(&geometry.bodies).zip(&poses) {
            let axis = exact.pivoting.has_axis().then(|| survey.oriented(pose.rotation * exact.axis()));
            note(exact.pivoting, axis);
            let bodies = [body.parent.map_or(0, |p| p + 1), survey.items.len() + 1];
            survey.items.push(Item { locus: locus(exact.pivoting), axis, second: None, bodies });
            survey.points.push(pose.translation);
        }
        let world = |body: Option<usize>| body.map_or_else(Pose::identity, |i| poses[i]);
        for joint in &at.loops {
            let end = world(joint.successor) * joint.ends[1];
            let outer = world(joint.predecessor) * joint.ends[0];
            let (locus, axis, second) = match &joint.closing {
                Closing::Fixed => (Locus::Nowhere, None, None),
                Closing::Free(pivoting, frame, _) => {
                    let axis = end.rotation * frame.column(2);
                    let axis = pivoting.has_axis().then(|| survey.oriented(axis));
                    note(*pivoting, axis);
                    (locus(*pivoting), axis, None)
                }
                Closing::Universal(axes) => {
                    let first = survey.oriented(outer.rotation * axes[0]);
                    (Locus::Point, Some(first), Some(survey.oriented(end.rotation * axes[1])))
                }
            };
            let bodies = [joint.predecessor, joint.successor].map(|b| b.map_or(0, |b| b + 1));
            survey.items.push(Item { locus, axis, second, bodies });
            survey.points.push(end.translation);
        }
        slides.sort_unstable();
        slides.dedup();
        survey.incidences(&slides);
        survey.parallelograms();
        survey.ratios();
        let classes = survey.directions.len();
        let mut perpendicular = Vec::new();
        for b in 0..classes {
            for a in 0..b {
                if survey.zero(survey.directions[a].dot(&survey.directions[b])) {
                    perpendicular.push((a, b));
                }
            }
        }
        let order = drawing_order(classes, &perpendicular);
        let ratios: Vec<bool> = survey.ratios.iter().map(|r| survey.zero(r[1])).collect();
        let mut out = Self {
            items: survey.items,
            gravity,
            classes,
            perpendicular,
            order,
            equations: survey.equations,
            ratios,
            freedoms: 0,
        };
        let frames: Vec<Matrix3<Wide<N>>> = survey.directions.iter().map(frame_about).collect();
        out.freedoms = 3 * out.items.len() - out.rows(&frames, &survey.ratios).rank();
        out
    }

    /// The equations of the points, with these frames (third axis along each class) and ratios.
    fn rows<T: Number>(&self, frames: &[Matrix3<T>], ratios: &[[T; 2]]) -> Echelon<T> {
        let width = 3 * self.items.len();
        let mut span = Echelon::new(width, Pivot::Largest);
        let mut row = vec![T::zero(); width];
        for equation in &self.equations {
            let column = |c: usize, k: usize| frames[c].column(k).into_owned();
            let directions: Vec<Vector3<T>> = match equation.along {
                Along::Space => (0..3).map(|k| Vector3::ith(k, T::one())).collect(),
                Along::Axis(c) => vec![column(c, 2)],
                Along::Across(c) => vec![column(c, 0), column(c, 1)],
                Along::Normal(a, b) => vec![column(a, 2).cross(&column(b, 2))],
            };
            for u in directions {
                row.fill(T::zero());
                for &(item, a, b) in &equation.terms {
                    let mut v = u * T::from_i64(a);
                    if let (Some(r), true) = (equation.ratio, b != 0) {
                        let [plain, turned] = ratios[r];
                        // u · (α P + β z × P) = (α u + β u × z) · P
                        v += u * (plain * T::from_i64(b));
                        if let (Along::Across(c), false) = (equation.along, self.ratios[r]) {
                            v += u.cross(&column(c, 2)) * (turned * T::from_i64(b));
                        }
                    }
                    for k in 0..3 {
                        row[3 * item + k] += v[k];
                    }
                }
                span.insert(&row);
            }
        }
        span
    }

    /// A random member over GF(p), in a closed configuration; `None` where the drawn directions do not fit the points.
    pub fn member<const P: u64>(
        &self,
        assembly: &ExactAssembly,
        source: &mut SplitMix,
    ) -> Option<Assembled<Gf<P>>> {
        let frames = (0..REDRAWS).find_map(|_| self.frames::<P>(source))?;
        let ratios: Vec<[Gf<P>; 2]> = self.ratios.iter().map(|_| [0; 2].map(|_| Gf::random(source))).collect();
        let mut equations = self.rows(&frames, &ratios);
        // With the mechanism's own directions the points are as free as with these: it is a member of this family.
        if 3 * self.items.len() - equations.rank() != self.freedoms {
            return None;
        }
        let points = random_solution(&mut equations, source);
        let own = assembly.to::<Gf<P>>();
        let geometry = assembly.geometry().to::<Gf<P>>();
        let framed = |axis: Option<Oriented>| {
            axis.map_or_else(Matrix3::identity, |a| {
                let f = &frames[a.class];
                if a.against {
                    Matrix3::from_columns(&[f.column(0).into_owned(), -f.column(1), -f.column(2)])
                } else {
                    *f
                }
            })
        };
        let pose = |i: usize| Pose::new(framed(self.items[i].axis), points[i]);
        let mut bodies = Vec::with_capacity(geometry.bodies.len());
        for (i, (body, exact)) in own.bodies.iter().zip(&geometry.bodies).enumerate() {
            let parent = body.parent.map_or_else(Pose::identity, &pose);
            bodies.push(AssembledBody {
                parent: body.parent,
                kind: body.kind,
                v: body.v,
                pose: parent.inverse() * pose(i),
                modes: exact.modes_about_z().iter().map(|m| *m * exact.ratio).collect(),
            });
        }
        let world = |body: Option<usize>| body.map_or_else(Pose::identity, &pose);
        let loops = own.loops.iter().enumerate().map(|(l, joint)| {
            let item = &self.items[bodies.len() + l];
            let at = pose(bodies.len() + l);
            let closing = match &joint.closing {
                Closing::Fixed => Closing::Fixed,
                Closing::Free(pivoting, _, pitch) => Closing::Free(*pivoting, Matrix3::identity(), *pitch),
                Closing::Universal(_) => {
                    let first = Vector3::new(Gf::zero(), Gf::zero(), Gf::one());
                    let second = framed(item.second).column(2).into_owned();
                    Closing::Universal([first, at.rotation.tr_mul(&second)])
                }
            };
            let ends = [joint.predecessor, joint.successor].map(|b| world(b).inverse() * at);
            AssembledLoop::new(joint.predecessor, joint.successor, ends, closing)
        });
        let loops = loops.collect();
        let gravity = self.gravity.map_or_else(Vector3::zeros, |g| framed(Some(g)).column(2).into_owned());
        Some(Assembled { gravity, bodies, loops, nv: own.nv })
    }

    /// A random orthonormal frame for each class of directions, its third axis along the class.
    fn frames<const P: u64>(&self, source: &mut SplitMix) -> Option<Vec<Matrix3<Gf<P>>>> {
        let mut frames: Vec<Option<Matrix3<Gf<P>>>> = vec![None; self.classes];
        for &class in &self.order {
            let across: Vec<Matrix3<Gf<P>>> =
                self.across(class).filter_map(|other| frames[other]).take(2).collect();
            let frame = match across.as_slice() {
                [] => random_rotation(source)?,
                [one] => {
                    let t = Gf::<P>::random(source);
                    let scale = (Gf::one() + t * t).inverse()?;
                    let (c, s) = ((Gf::one() - t * t) * scale, (t + t) * scale);
                    let (x, y, z) = (one.column(0), one.column(1), one.column(2));
                    Matrix3::from_columns(&[y * c - x * s, z.into_owned(), x * c + y * s])
                }
                [one, two, ..] => {
                    let normal = one.column(2).cross(&two.column(2));
                    let root = normal.dot(&normal).sqrt()?.inverse()?;
                    let z = normal * root;
                    let x = one.column(2).into_owned();
                    Matrix3::from_columns(&[x, z.cross(&x), z])
                }
            };
            frames[class] = Some(frame);
        }
        frames.into_iter().collect()
    }

    /// The classes at right angles to one.
    fn across(&self, class: usize) -> impl Iterator<Item = usize> + '_ {
        self.perpendicular.iter().filter_map(move |&(a, b)| match class {
            c if c == a => Some(b),
            c if c == b => Some(a),
            _ => None,
        })
    }
}

fn locus(pivoting: Pivoting) -> Locus {
    match pivoting {
        Pivoting::Revolute | Pivoting::Helical | Pivoting::Cylindrical => Locus::Line,
        Pivoting::Spherical => Locus::Point,
        Pivoting::Prismatic | Pivoting::Planar | Pivoting::Floating => Locus::Nowhere,
    }
}

/// An order in which each class meets as many of those at right angles to it as possible, the most entangled first.
fn drawing_order(classes: usize, perpendicular: &[(usize, usize)]) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::with_capacity(classes);
    let touches = |class: usize, other: usize| perpendicular.contains(&(class.min(other), class.max(other)));
    while order.len() < classes {
        let left = (0..classes).filter(|c| !order.contains(c));
        let rank = |c: usize| {
            let placed = order.iter().filter(|&&o| touches(c, o)).count();
            let all = (0..classes).filter(|&o| touches(c, o)).count();
            (placed, all, classes - c)
        };
        let Some(next) = left.max_by_key(|&c| rank(c)) else { break };
        order.push(next);
    }
    order
}

/// An orthonormal frame whose third axis is a given unit vector.
fn frame_about<T: Number>(axis: &Vector3<T>) -> Matrix3<T> {
    // The coordinate axis least along it.
    let least = (0..3).min_by(|&i, &j| axis[i].weight().total_cmp(&axis[j].weight())).unwrap_or(0);
    let side = Vector3::ith(least, T::one());
    // Across the axis; its length does not matter, but the two must be independent.
    let x = side - axis * axis.dot(&side);
    Matrix3::from_columns(&[x, axis.cross(&x), *axis])
}

fn random_rotation<const P: u64>(source: &mut SplitMix) -> Option<Matrix3<Gf<P>>> {
    let [x, y, z, w] = [0; 4].map(|_| Gf::random(source));
    rotation_from_quaternion(x, y, z, w)
}

/// Random points that obey the equations.
fn random_solution<const P: u64>(equations: &mut Echelon<Gf<P>>, source: &mut SplitMix) -> Vec<Vector3<Gf<P>>> {
    equations.reduce();
    let mut x: Vec<Gf<P>> = (0..equations.width()).map(|_| Gf::random(source)).collect();
    for &p in equations.pivots() {
        x[p] = Gf::zero();
    }
    let solved: Vec<Gf<P>> =
        equations.rows().map(|row| row.iter().zip(&x).fold(Gf::zero(), |sum, (&a, &b)| sum - a * b)).collect();
    for (&p, value) in equations.pivots().iter().zip(solved) {
        x[p] = value;
    }
    x.chunks_exact(3).map(|p| Vector3::new(p[0], p[1], p[2])).collect()
}
