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

use super::lifting::inverse;
use crate::linalg::{Echelon, Gf, Number, Pivot, SplitMix, Wide};
use crate::mechanism::{
    Assembled, AssembledBody, AssembledLoop, BodyKind, Closing, ExactAssembly, Geometry, Pivoting,
};
use crate::spatial::{Field, Pose, rotation_from_quaternion, skew};

/// An equation whose new part is smaller than this, relative to its size, follows from those before it.
const NOISE: f64 = 1e-5;

/// A mechanism that would have to move farther than so many tolerances was not meant.
const MOST_MOVED: f64 = 100.0;

/// Lengths are made equal by so many steps, each of which doubles the digits.
const NEWTON_STEPS: usize = 8;

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

/// A mechanism's directions and points in one closed configuration.
#[derive(Debug, Clone)]
struct View<const N: usize> {
    /// One unit vector for each class of parallel directions: that of its first member.
    directions: Vec<Vector3<Wide<N>>>,
    /// One for each item.
    points: Vec<Vector3<Wide<N>>>,
}

/// The relations that hold in several closed configurations, with the mechanism's own directions and points there.
#[derive(Debug, Clone)]
pub(super) struct Survey<const N: usize> {
    views: Vec<View<N>>,
    items: Vec<Item>,
    gravity: Option<Oriented>,
    equations: Vec<Equation>,
    ratios: Vec<[Wide<N>; 2]>,
    /// What counts as zero.
    tolerance: f64,
}

/// Which equations to keep.
type Keep<'a> = Box<dyn Fn(&Equation) -> bool + 'a>;

type Vectors<const N: usize> = Vec<Vector3<Wide<N>>>;

impl<const N: usize> Survey<N> {
    /// The relations of a mechanism that hold in all of some closed configurations (lengths in units of its size), to `tolerance`.
    pub fn new(configurations: &[Assembled<Wide<N>>], geometry: &Geometry<Wide<N>>, tolerance: f64) -> Self {
        let mut survey = Self {
            views: configurations
                .iter()
                .map(|_| View { directions: Vec::new(), points: Vec::new() })
                .collect(),
            items: Vec::new(),
            gravity: None,
            equations: Vec::new(),
            ratios: Vec::new(),
            tolerance,
        };
        let Some(first) = configurations.first() else { return survey };
        if !first.gravity.iter().all(Zero::is_zero) {
            let directions = configurations.iter().map(|at| at.gravity).collect();
            survey.gravity = Some(survey.oriented(directions));
        }
        let poses: Vec<Vec<Pose<Wide<N>>>> = configurations.iter().map(Assembled::world_poses).collect();
        let mut slides = Vec::new();
        let slide = |pivoting: Pivoting, axis: Option<Oriented>| {
            let slides = matches!(pivoting, Pivoting::Prismatic | Pivoting::Planar | Pivoting::Cylindrical);
            axis.filter(|_| slides).map(|a| a.class)
        };
        for (i, (body, exact)) in first.bodies.iter().zip(&geometry.bodies).enumerate() {
            let axes = poses.iter().map(|p| p[i].rotation * exact.axis()).collect();
            let axis = exact.pivoting.has_axis().then(|| survey.oriented(axes));
            slides.extend(slide(exact.pivoting, axis));
            let bodies = [body.parent.map_or(0, |p| p + 1), i + 1];
            // The second axis of a universal joint stands for its centre.
            let centre = body.parent.is_some_and(|p| first.bodies[p].kind == BodyKind::Massless)
                && exact.pivoting == Pivoting::Revolute;
            if centre {
                slides.extend(axis.map(|a| a.class));
                slides.extend(body.parent.and_then(|p| survey.items[p].axis).map(|a| a.class));
            }
            let locus = if centre { Locus::Point } else { locus(exact.pivoting) };
            survey.items.push(Item { locus, axis, second: None, bodies });
            for (view, p) in survey.views.iter_mut().zip(&poses) {
                view.points.push(p[i].translation);
            }
        }
        let ends = |l: usize, k: usize| {
            let joint = &configurations[k].loops[l];
            let world = |body: Option<usize>| body.map_or_else(Pose::identity, |i| poses[k][i]);
            [world(joint.predecessor) * joint.ends[0], world(joint.successor) * joint.ends[1]]
        };
        let count = configurations.len();
        for (l, joint) in first.loops.iter().enumerate() {
            let (locus, axis, second) = match &joint.closing {
                Closing::Fixed => (Locus::Nowhere, None, None),
                Closing::Free(pivoting, frame, _) => {
                    let axes = (0..count).map(|k| ends(l, k)[1].rotation * frame.column(2)).collect();
                    let axis = pivoting.has_axis().then(|| survey.oriented(axes));
                    slides.extend(slide(*pivoting, axis));
                    (locus(*pivoting), axis, None)
                }
                Closing::Universal(axes) => {
                    let first = (0..count).map(|k| ends(l, k)[0].rotation * axes[0]).collect();
                    let second = (0..count).map(|k| ends(l, k)[1].rotation * axes[1]).collect();
                    let axes = [survey.oriented(first), survey.oriented(second)];
                    slides.extend(axes.map(|a| a.class));
                    (Locus::Point, Some(axes[0]), Some(axes[1]))
                }
            };
            let bodies = [joint.predecessor, joint.successor].map(|b| b.map_or(0, |b| b + 1));
            survey.items.push(Item { locus, axis, second, bodies });
            for (k, view) in survey.views.iter_mut().enumerate() {
                view.points.push(ends(l, k)[1].translation);
            }
        }
        slides.sort_unstable();
        slides.dedup();
        survey.incidences(&slides);
        survey.parallelograms();
        survey.ratios();
        survey
    }

    fn zero(&self, x: Wide<N>) -> bool {
        x.weight() <= self.tolerance
    }

    fn vanishes(&self, v: &Vector3<Wide<N>>) -> bool {
        v.iter().all(|&x| self.zero(x))
    }

    /// The class of a unit direction, given in every configuration.
    fn oriented(&mut self, directions: Vectors<N>) -> Oriented {
        let classes = self.views.first().map_or(0, |v| v.directions.len());
        for class in 0..classes {
            let mut all = self.views.iter().zip(&directions);
            if all.all(|(view, d)| self.vanishes(&view.directions[class].cross(d))) {
                let against = f64::from(self.views[0].directions[class].dot(&directions[0])) < 0.0;
                return Oriented { class, against };
            }
        }
        for (view, direction) in self.views.iter_mut().zip(directions) {
            view.directions.push(direction);
        }
        Oriented { class: classes, against: false }
    }

    fn class(&self, item: usize) -> usize {
        self.items[item].axis.map_or(usize::MAX, |a| a.class)
    }

    fn at_right_angles(&self, a: usize, b: usize) -> bool {
        self.views.iter().all(|v| self.zero(v.directions[a].dot(&v.directions[b])))
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

    fn coincide(&self, along: Along, a: usize, b: usize) -> bool {
        self.views.iter().all(|view| self.vanishes(&view.difference(along, a, b)))
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
                if self.coincide(along, a, b) {
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
                Some(axis) if self.at_right_angles(axis, slide) => {
                    vec![Along::Axis(slide), Along::Normal(axis, slide)]
                }
                Some(axis) => vec![Along::Normal(axis, slide)],
            };
            for along in directions {
                if self.coincide(along, a, b) {
                    self.equate(a, b, along);
                }
            }
        }
    }

    /// Pairs of items on one body that can be compared.
    fn links(&self) -> Vec<(usize, usize, usize, Along)> {
        let mut out = Vec::new();
        let most = self.items.iter().flat_map(|i| i.bodies).max().unwrap_or(0);
        for body in 0..=most {
            let on: Vec<usize> =
                (0..self.items.len()).filter(|&i| self.items[i].bodies.contains(&body)).collect();
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
        let mut links: Vec<_> = self.links();
        links.retain(|&(_, a, b, along)| !self.coincide(along, a, b));
        let vectors: Vec<Vectors<N>> = links
            .iter()
            .map(|&(_, a, b, along)| self.views.iter().map(|view| view.difference(along, a, b)).collect())
            .collect();
        let mut found = Vec::new();
        for (n, &(body, a, b, along)) in links.iter().enumerate() {
            for (m, &(other, c, d, as_well)) in links[..n].iter().enumerate() {
                if along != as_well || body == other || (a == c && b == d) {
                    continue;
                }
                for (sign, factor) in [(1, -Wide::one()), (-1, Wide::one())] {
                    if vectors[n].iter().zip(&vectors[m]).all(|(v, w)| self.vanishes(&(v + w * factor))) {
                        let terms = vec![(b, 1, 0), (a, -1, 0), (d, -sign, 0), (c, sign, 0)];
                        found.push(Equation { terms, ratio: None, along });
                    }
                }
            }
        }
        self.equations.extend(found);
    }

    /// The ratio of `P_j − P_i` to `P_k − P_i` in one configuration, along and across, and whether they lie on one line.
    fn ratio(&self, view: &View<N>, along: Along, [i, j, k]: [usize; 3]) -> Option<([Wide<N>; 2], bool)> {
        let (v, w) = (view.difference(along, i, j), view.difference(along, i, k));
        let scale = w.dot(&w).inverse()?;
        let straight = self.vanishes(&v.cross(&w));
        let turned = match along {
            Along::Across(c) if !straight => view.directions[c].cross(&w).dot(&v) * scale,
            _ => Wide::zero(),
        };
        Some(([v.dot(&w) * scale, turned], straight))
    }

    /// Items on one line, and items that stand alike on several bodies.
    fn ratios(&mut self) {
        let links = self.links();
        // On each body, items are compared with the first two of their kind.
        let mut found: Vec<([usize; 3], Along, bool, [Wide<N>; 2])> = Vec::new();
        let mut pair: Option<(usize, usize, usize, Along)> = None;
        for &(body, a, b, along) in &links {
            if self.coincide(along, a, b) {
                continue;
            }
            match pair {
                Some((on, first, last, of)) if on == body && of == along && first == a => {
                    let mut all = self.views.iter().map(|view| self.ratio(view, along, [a, b, last]));
                    let apart = !self.coincide(along, b, last);
                    if let (Some(Some((value, straight))), true) = (all.next(), apart) {
                        found.push((
                            [a, b, last],
                            along,
                            straight && all.all(|r| r.is_some_and(|r| r.1)),
                            value,
                        ));
                    }
                }
                Some((on, _, _, of)) if on == body && of == along => {}
                _ => pair = Some((body, a, b, along)),
            }
        }
        for (n, &([i, j, k], along, straight, value)) in found.iter().enumerate() {
            let alike = |o: &[Wide<N>; 2]| self.zero(o[0] - value[0]) && self.zero(o[1] - value[1]);
            let repeated = found.iter().enumerate().any(|(m, t)| m != n && t.1 == along && alike(&t.3));
            if !straight && (!repeated || along == Along::Space) {
                continue;
            }
            let known = self.ratios.iter().position(alike);
            let ratio = known.unwrap_or(self.ratios.len());
            if known.is_none() {
                self.ratios.push(value);
            }
            let terms = vec![(j, 1, 0), (i, -1, 1), (k, 0, -1)];
            self.equations.push(Equation { terms, ratio: Some(ratio), along });
        }
    }

    /// Pairs of links of equal length: the first of each group with the others.
    fn equal_lengths(&self) -> Vec<[(usize, usize, Along); 2]> {
        let Some(view) = self.views.first() else { return Vec::new() };
        let mut links: Vec<(f64, usize, usize, Along, Wide<N>)> = Vec::new();
        for (_, a, b, along) in self.links() {
            let v = view.difference(along, a, b);
            let square = v.dot(&v);
            if f64::from(square).sqrt() > self.tolerance {
                links.push((f64::from(square), a, b, along, square));
            }
        }
        links.sort_by(|x, y| x.0.total_cmp(&y.0));
        let mut out = Vec::new();
        let mut head = 0;
        for k in 1..links.len() {
            let (first, this) = (&links[head], &links[k]);
            // The difference of squares is twice the length times that of the lengths.
            if (this.4 - first.4).weight() <= 2.0 * self.tolerance * first.0.sqrt().max(self.tolerance) {
                if (first.1, first.2) != (this.1, this.2) {
                    out.push([(first.1, first.2, first.3), (this.1, this.2, this.3)]);
                }
            } else {
                head = k;
            }
        }
        out
    }

    /// Families that the mechanism belongs to, the smallest first: with all relations, without ratios, and with those of neighbouring
    /// joints only.
    pub fn families(&self) -> impl Iterator<Item = Family> + '_ {
        let near =
            |a: usize, b: usize| self.items[a].bodies.iter().any(|body| self.items[b].bodies.contains(body));
        let neighbours = move |e: &Equation| e.terms.len() > 2 || near(e.terms[0].0, e.terms[1].0);
        let keeps: [Keep<'_>; 4] = [
            Box::new(|_| true),
            Box::new(|e| e.ratio.is_none()),
            Box::new(move |e| e.ratio.is_none() && neighbours(e)),
            Box::new(move |e| e.ratio.is_none() && neighbours(e) && e.terms.len() == 2),
        ];
        keeps
            .into_iter()
            .map(|keep| self.family_of(self.equations.iter().filter(|e| keep(e)).cloned().collect()))
    }

    /// The family of all mechanisms with these relations.
    fn family(&self) -> Family {
        self.family_of(self.equations.clone())
    }

    fn family_of(&self, equations: Vec<Equation>) -> Family {
        let classes = self.views.first().map_or(0, |v| v.directions.len());
        let mut perpendicular = Vec::new();
        for b in 0..classes {
            for a in 0..b {
                if self.at_right_angles(a, b) {
                    perpendicular.push((a, b));
                }
            }
        }
        let mut out = Family {
            items: self.items.clone(),
            gravity: self.gravity,
            classes,
            order: drawing_order(classes, &perpendicular),
            perpendicular,
            equations,
            ratios: self.ratios.iter().map(|r| self.zero(r[1])).collect(),
            freedoms: 0,
        };
        if let Some(view) = self.views.first() {
            let frames: Vec<Matrix3<Wide<N>>> = out.nearest_frames(&view.directions);
            out.freedoms = 3 * out.items.len() - out.span(&frames, &self.ratios).rank();
        }
        out
    }

    /// Number of relations: the fewer classes and the more equations, the more.
    pub fn count(&self) -> usize {
        let family = self.family();
        let directions: usize = self.items.iter().map(|i| usize::from(i.axis.is_some())).sum();
        let parallel = 2 * (directions - family.classes.min(directions));
        parallel + family.perpendicular.len() + 3 * self.items.len() - family.freedoms
            + self.equal_lengths().len()
    }

    /// The member of the family nearest to the mechanism in the first configuration `at`, and how far it moved.
    pub fn nearest(
        &self,
        at: &Assembled<Wide<N>>,
        geometry: &Geometry<Wide<N>>,
    ) -> Option<(Assembled<Wide<N>>, f64)> {
        self.nearest_with(at, geometry, &self.equal_lengths())
            .filter(|(_, moved)| *moved <= MOST_MOVED * self.tolerance)
            .or_else(|| self.nearest_with(at, geometry, &[]))
            .filter(|(_, moved)| *moved <= MOST_MOVED * self.tolerance)
    }

    fn nearest_with(
        &self,
        at: &Assembled<Wide<N>>,
        geometry: &Geometry<Wide<N>>,
        lengths: &[[(usize, usize, Along); 2]],
    ) -> Option<(Assembled<Wide<N>>, f64)> {
        // Ratios are known to rounding only, and what they say of rigid bodies need not be restored.
        let plain = self.equations.iter().filter(|e| e.ratio.is_none()).cloned().collect();
        let (family, view) = (self.family_of(plain), self.views.first()?);
        let frames = family.nearest_frames(&view.directions);
        let mut linear = Echelon::new(3 * self.items.len(), Pivot::Largest);
        let mut linear_rows: Vec<Vec<Wide<N>>> = Vec::new();
        for row in family.rows(&frames, &self.ratios) {
            if independent(&mut linear, &row, NOISE) {
                linear_rows.push(row);
            }
        }
        let own: Vec<Wide<N>> = view.points.iter().flat_map(|p| p.iter().copied()).collect();
        let mut points = own.clone();
        // Newton's method: one step suffices for the linear equations, a few for the lengths.
        for _ in 0..if lengths.is_empty() { 1 } else { NEWTON_STEPS } {
            let mut equations = linear.clone();
            let mut rows: Vec<(Vec<Wide<N>>, Wide<N>)> = Vec::new();
            for pair in lengths {
                let mut row = vec![Wide::zero(); own.len()];
                let mut value = Wide::zero();
                for (&(a, b, along), sign) in pair.iter().zip([Wide::one(), -Wide::one()]) {
                    let at = |i: usize| Vector3::new(points[3 * i], points[3 * i + 1], points[3 * i + 2]);
                    let difference = at(b) - at(a);
                    let v = match along {
                        Along::Across(c) => {
                            let u = frames[c].column(2).into_owned();
                            difference - u * u.dot(&difference)
                        }
                        _ => difference,
                    };
                    value += v.dot(&v).scaled(-1) * sign;
                    for k in 0..3 {
                        row[3 * b + k] += v[k] * sign;
                        row[3 * a + k] -= v[k] * sign;
                    }
                }
                // What depends on the equations before, to rounding, is no equation of its own.
                if independent(&mut equations, &row, NOISE) {
                    rows.push((row, value));
                }
            }
            let all: Vec<&[Wide<N>]> = linear_rows
                .iter()
                .map(Vec::as_slice)
                .chain(rows.iter().map(|(row, _)| row.as_slice()))
                .collect();
            let gram = all.iter().flat_map(|a| all.iter().map(move |b| dot(a, b))).collect();
            let inverse = inverse(gram, all.len())?;
            let mut defect: Vec<Wide<N>> = linear_rows.iter().map(|a| dot(a, &points)).collect();
            defect.extend(rows.iter().map(|&(_, value)| value));
            for (i, row) in all.iter().enumerate() {
                let factor = dot(&inverse[i * all.len()..(i + 1) * all.len()], &defect);
                for (x, &r) in points.iter_mut().zip(*row) {
                    *x -= r * factor;
                }
            }
        }
        let moved = points.iter().zip(&own).map(|(&a, &b)| (a - b).weight()).fold(0.0, f64::max);
        let points: Vectors<N> = points.chunks_exact(3).map(|p| Vector3::new(p[0], p[1], p[2])).collect();
        let axis = |o: Oriented| {
            let u = frames[o.class].column(2).into_owned();
            if o.against { -u } else { u }
        };
        let poses = at.world_poses();
        let mut turned = 0.0f64;
        let mut aligned = |rotation: Matrix3<Wide<N>>, from: Vector3<Wide<N>>, to: Option<Oriented>| {
            let Some(to) = to.map(&axis) else { return rotation };
            turned = turned.max((from - to).iter().map(|x| x.weight()).fold(0.0, f64::max));
            between(&from, &to) * rotation
        };
        let mut world: Vec<Pose<Wide<N>>> = Vec::with_capacity(poses.len());
        let mut out = at.clone();
        for (i, (body, exact)) in out.bodies.iter_mut().zip(&geometry.bodies).enumerate() {
            let from = poses[i].rotation * exact.axis();
            let rotation = orthonormal(aligned(poses[i].rotation, from, self.items[i].axis));
            let pose = Pose::new(rotation, points[i]);
            body.pose = body.parent.map_or(pose, |p: usize| world[p].inverse() * pose);
            world.push(pose);
        }
        if let Some(gravity) = self.gravity {
            out.gravity = axis(gravity);
        }
        let of = |list: &[Pose<Wide<N>>], body: Option<usize>| body.map_or_else(Pose::identity, |i| list[i]);
        for (l, joint) in out.loops.iter_mut().enumerate() {
            let item = &self.items[world.len() + l];
            let sides = [joint.predecessor, joint.successor];
            let olds = [of(&poses, sides[0]) * joint.ends[0], of(&poses, sides[1]) * joint.ends[1]];
            let old = olds[1].rotation;
            let (rotation, closing) = match joint.closing {
                Closing::Fixed => (old, Closing::Fixed),
                Closing::Free(pivoting, frame, pitch) => {
                    (aligned(old, old * frame.column(2), item.axis), Closing::Free(pivoting, frame, pitch))
                }
                Closing::Universal(axes) => {
                    let rotation = aligned(old, old * axes[1], item.second);
                    let first = item.axis.map_or(old * axes[0], &axis);
                    (rotation, Closing::Universal([rotation.tr_mul(&first), axes[1]]))
                }
            };
            let at = Pose::new(orthonormal(rotation), points[world.len() + l]);
            let ends = sides.map(|side| of(&world, side).inverse() * at);
            *joint = AssembledLoop::new(sides[0], sides[1], ends, closing);
        }
        Some((out, moved.max(turned)))
    }
}

fn dot<const N: usize>(a: &[Wide<N>], b: &[Wide<N>]) -> Wide<N> {
    a.iter().zip(b).fold(Wide::zero(), |sum, (&x, &y)| if x.weight() == 0.0 { sum } else { sum + x * y })
}

/// Adds a row to a span unless what is new in it is smaller than `tolerance`, relative to the row.
fn independent<const N: usize>(span: &mut Echelon<Wide<N>>, row: &[Wide<N>], tolerance: f64) -> bool {
    let size = row.iter().map(|x| x.weight()).fold(0.0, f64::max);
    let left = span.remainder(row);
    if left.iter().all(|x| x.weight() <= tolerance * size) {
        return false;
    }
    span.insert(&left)
}

impl<const N: usize> View<N> {
    /// The difference of two places, as far as `along` sees it.
    fn difference(&self, along: Along, from: usize, to: usize) -> Vector3<Wide<N>> {
        let v = self.points[to] - self.points[from];
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
}

/// A rotation matrix without the rounding of its entries (Newton's method for the polar factor).
fn orthonormal<const N: usize>(mut r: Matrix3<Wide<N>>) -> Matrix3<Wide<N>> {
    let (half, three) = (Wide::one().scaled(-1), Wide::from_i64(3));
    // Each step doubles the digits, from fifteen (or the few of a rounded file).
    for _ in 0..10 {
        r = r * (Matrix3::identity() * three - r.tr_mul(&r)) * half;
    }
    r
}

/// The smallest rotation from one unit vector to another that is near.
fn between<T: Number>(from: &Vector3<T>, to: &Vector3<T>) -> Matrix3<T> {
    let w = skew(&from.cross(to));
    let scale = (T::one() + from.dot(to)).inverse().unwrap_or_else(T::zero);
    Matrix3::identity() + w + w * w * scale
}

impl Family {
    /// Orthonormal frames along the directions nearest to the given ones that are at right angles where they should be.
    fn nearest_frames<const N: usize>(&self, directions: &[Vector3<Wide<N>>]) -> Vec<Matrix3<Wide<N>>> {
        let unit = |v: Vector3<Wide<N>>| {
            let scale = v.dot(&v).sqrt().inverse().unwrap_or_else(Wide::one);
            v * scale
        };
        let mut placed: Vec<Option<Vector3<Wide<N>>>> = vec![None; directions.len()];
        for &class in &self.order {
            let across: Vectors<N> = self.across(class).filter_map(|other| placed[other]).take(2).collect();
            let own = unit(directions[class]);
            placed[class] = Some(match across.as_slice() {
                [] => own,
                [one] => unit(own - one * one.dot(&own)),
                [one, two, ..] => {
                    let normal = unit(one.cross(two));
                    if f64::from(normal.dot(&own)) < 0.0 { -normal } else { normal }
                }
            });
        }
        placed.into_iter().zip(directions).map(|(u, &d)| frame_about(&u.unwrap_or(d))).collect()
    }

    /// The equations of the points as rows, with these frames (third axis along each class) and ratios.
    fn rows<T: Number>(&self, frames: &[Matrix3<T>], ratios: &[[T; 2]]) -> Vec<Vec<T>> {
        let mut rows = Vec::new();
        for equation in &self.equations {
            let column = |c: usize, k: usize| frames[c].column(k).into_owned();
            let directions: Vec<Vector3<T>> = match equation.along {
                Along::Space => (0..3).map(|k| Vector3::ith(k, T::one())).collect(),
                Along::Axis(c) => vec![column(c, 2)],
                Along::Across(c) => vec![column(c, 0), column(c, 1)],
                Along::Normal(a, b) => vec![column(a, 2).cross(&column(b, 2))],
            };
            for u in directions {
                let mut row = vec![T::zero(); 3 * self.items.len()];
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
                rows.push(row);
            }
        }
        rows
    }

    /// The span of the equations of the points.
    fn span<T: Number>(&self, frames: &[Matrix3<T>], ratios: &[[T; 2]]) -> Echelon<T> {
        let mut span = Echelon::new(3 * self.items.len(), Pivot::Largest);
        for row in self.rows(frames, ratios) {
            span.insert(&row);
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
        let ratios: Vec<[Gf<P>; 2]> =
            self.ratios.iter().map(|_| [0; 2].map(|_| Gf::random(source))).collect();
        let mut equations = self.span(&frames, &ratios);
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
fn random_solution<const P: u64>(
    equations: &mut Echelon<Gf<P>>,
    source: &mut SplitMix,
) -> Vec<Vector3<Gf<P>>> {
    equations.reduce();
    let mut x: Vec<Gf<P>> = (0..equations.width()).map(|_| Gf::random(source)).collect();
    for &p in equations.pivots() {
        x[p] = Gf::zero();
    }
    let solved: Vec<Gf<P>> = equations
        .rows()
        .map(|row| row.iter().zip(&x).fold(Gf::zero(), |sum, (&a, &b)| sum - a * b))
        .collect();
    for (&p, value) in equations.pivots().iter().zip(solved) {
        x[p] = value;
    }
    x.chunks_exact(3).map(|p| Vector3::new(p[0], p[1], p[2])).collect()
}
