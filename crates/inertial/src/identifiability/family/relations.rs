//! Relations that hold in several closed configurations of a mechanism.

use nalgebra::{Matrix3, Vector3};
use num_traits::{One, Zero};

use super::{Along, Equation, Factor, Item, Locus, Oriented, Turning, level_turn};
use crate::identifiability::rounding::Resolution;
use crate::linalg::{Echelon, Number, Wide};
use crate::mechanism::{Assembled, BodyKind, Closing, Geometry, Pivoting};
use crate::spatial::{Field, Pose};

/// Minimum part of a row that must be new for the row to be independent of others; rounding errors of double precision
/// are far smaller.
const CLEARLY_NEW: f64 = 1e-8;

/// Distance (in units of the size of the mechanism) above which places do not coincide.
const CLEARLY_APART: f64 = 1e-6;

/// Directions and points of a mechanism in one closed configuration.
#[derive(Debug, Clone)]
pub(super) struct View<T: Number> {
    /// Unit vector of each class of parallel directions: that of its first member.
    pub directions: Vec<Vector3<T>>,
    /// Point of each item.
    pub points: Vec<Vector3<T>>,
}

/// Relations that hold in several closed configurations, with the directions and points of the mechanism there.
#[derive(Debug, Clone)]
pub(in crate::identifiability) struct Relations<const N: usize> {
    pub(super) views: Vec<View<Wide<N>>>,
    /// First view in double precision.
    rounded: View<f64>,
    /// Axis of each item in the first view.
    pub(super) axes: Vec<Option<Vector3<f64>>>,
    pub(super) resolution: Resolution,
    pub(super) items: Vec<Item>,
    pub(super) gravity: Option<Oriented>,
    pub(super) equations: Vec<Equation>,
    pub(super) ratios: Vec<[Wide<N>; 2]>,
    /// Rotations between links of equal length.
    pub(super) turns: Vec<(Turning, Matrix3<Wide<N>>)>,
    /// Tolerance below which numbers count as zero.
    pub(super) tolerance: f64,
}

/// Two places on one body.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Link {
    pub from: usize,
    pub to: usize,
    pub along: Along,
}

pub(super) type Vectors<const N: usize> = Vec<Vector3<Wide<N>>>;

impl<const N: usize> Relations<N> {
    /// Finds the relations of a mechanism that hold to `tolerance` in all given closed configurations (lengths in units
    /// of its size), unless the numbers of one body, known to `resolution`, contradict them.
    pub fn new(
        configurations: &[Assembled<Wide<N>>],
        geometry: &Geometry<Wide<N>>,
        tolerance: f64,
        resolution: Resolution,
    ) -> Self {
        let mut relations = Self {
            views: configurations.iter().map(|_| View::empty()).collect(),
            rounded: View::empty(),
            axes: Vec::new(),
            resolution,
            items: Vec::new(),
            gravity: None,
            equations: Vec::new(),
            ratios: Vec::new(),
            turns: Vec::new(),
            tolerance,
        };
        let Some(first) = configurations.first() else { return relations };
        if !first.gravity.iter().all(Zero::is_zero) {
            let directions = configurations.iter().map(|at| at.gravity).collect();
            relations.gravity = Some(relations.oriented(directions));
        }
        let poses: Vec<Vec<Pose<Wide<N>>>> = configurations.iter().map(Assembled::world_poses).collect();
        for (i, (body, exact)) in first.bodies.iter().zip(&geometry.bodies).enumerate() {
            let axes: Vectors<N> = poses.iter().map(|p| p[i].rotation * exact.axis()).collect();
            relations.axes.push(exact.pivoting.has_axis().then(|| axes[0].map(f64::from)));
            let axis = exact.pivoting.has_axis().then(|| relations.oriented(axes));
            let bodies = [body.parent.map_or(0, |p| p + 1), i + 1];
            // The second axis of a universal joint represents its centre.
            let centre = body.parent.is_some_and(|p| first.bodies[p].kind == BodyKind::Massless)
                && exact.pivoting == Pivoting::Revolute;
            let locus = if centre { Locus::Point } else { locus(exact.pivoting) };
            relations.items.push(Item { locus, axis, second: None, bodies });
            for (view, p) in relations.views.iter_mut().zip(&poses) {
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
            let mut own = None;
            let (locus, axis, second) = match &joint.closing {
                Closing::Fixed => (Locus::Nowhere, None, None),
                Closing::Free(pivoting, frame, _) => {
                    let axes: Vectors<N> =
                        (0..count).map(|k| ends(l, k)[1].rotation * frame.column(2)).collect();
                    own = pivoting.has_axis().then(|| axes[0].map(f64::from));
                    let axis = pivoting.has_axis().then(|| relations.oriented(axes));
                    (locus(*pivoting), axis, None)
                }
                Closing::Universal(axes) => {
                    let first = (0..count).map(|k| ends(l, k)[0].rotation * axes[0]).collect();
                    let second = (0..count).map(|k| ends(l, k)[1].rotation * axes[1]).collect();
                    let axes = [relations.oriented(first), relations.oriented(second)];
                    (Locus::Point, Some(axes[0]), Some(axes[1]))
                }
            };
            let bodies = [joint.predecessor, joint.successor].map(|b| b.map_or(0, |b| b + 1));
            relations.axes.push(own);
            relations.items.push(Item { locus, axis, second, bodies });
            for (k, view) in relations.views.iter_mut().enumerate() {
                view.points.push(ends(l, k)[1].translation);
            }
        }
        relations.round();
        relations.incidences();
        relations.parallelograms();
        relations.ratios();
        relations.turns();
        relations
    }

    /// Returns the first view in double precision.
    pub(super) fn rounded(&self) -> &View<f64> {
        &self.rounded
    }

    pub(super) fn zero(&self, x: Wide<N>) -> bool {
        x.weight() <= self.tolerance
    }

    fn vanishes(&self, v: &Vector3<Wide<N>>) -> bool {
        v.iter().all(|&x| self.zero(x))
    }

    /// Returns the class of a unit direction, given in every configuration.
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

    pub(super) fn at_right_angles(&self, a: usize, b: usize) -> bool {
        self.views.iter().all(|v| self.zero(v.directions[a].dot(&v.directions[b])))
    }

    /// Returns the directions in which two items of one kind on one body are compared; `None` if their kinds differ.
    pub(super) fn common(&self, a: usize, b: usize) -> Option<Along> {
        match (self.items[a].locus, self.items[b].locus) {
            (Locus::Point, Locus::Point) => Some(Along::Space),
            (Locus::Line, Locus::Line) if self.class(a) == self.class(b) => {
                Some(Along::Across(self.class(a)))
            }
            _ => None,
        }
    }

    /// Stores the first view in double precision, which is sufficient to reject most relations.
    fn round(&mut self) {
        if let Some(view) = self.views.first() {
            let rounded = |v: &Vector3<Wide<N>>| v.map(f64::from);
            self.rounded = View {
                directions: view.directions.iter().map(rounded).collect(),
                points: view.points.iter().map(rounded).collect(),
            };
        }
    }

    pub(super) fn coincide(&self, along: Along, a: usize, b: usize) -> bool {
        // Far above the rounding error of a few operations, and of any file that is treated as special.
        let rough = self.rounded.difference(along, a, b);
        if rough.amax() > CLEARLY_APART.max(2.0 * self.tolerance) {
            return false;
        }
        !self.separates(along, a, b)
            && self.views.iter().all(|view| self.vanishes(&view.difference(along, a, b)))
    }

    /// Finds axes and points that coincide or intersect.
    fn incidences(&mut self) {
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
                    self.level(a, b);
                }
            }
        }
    }

    fn equate(&mut self, a: usize, b: usize, along: Along) {
        let terms = vec![(a, Factor::Sign(1)), (b, Factor::Sign(-1))];
        self.equations.push(Equation { terms, along });
    }

    /// Adds the relations of two places that differ only along the direction of an axis, or not at all along it.
    fn level(&mut self, a: usize, b: usize) {
        let line = [a, b].into_iter().find(|&i| self.items[i].locus == Locus::Line).map(|i| self.class(i));
        for slide in 0..self.views.first().map_or(0, |v| v.directions.len()) {
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

    pub(super) fn last_body(&self) -> usize {
        self.items.iter().flat_map(|i| i.bodies).max().unwrap_or(0)
    }

    /// Returns the pairs of items on one body that can be compared.
    fn links(&self) -> Vec<(usize, usize, usize, Along)> {
        let mut out = Vec::new();
        for body in 0..=self.last_body() {
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

    /// Finds links that are equal as vectors: the sides of parallelograms.
    fn parallelograms(&mut self) {
        let mut links: Vec<_> = self.links();
        links.retain(|&(_, a, b, along)| !self.coincide(along, a, b));
        let vectors: Vec<Vectors<N>> = links
            .iter()
            .map(|&(_, a, b, along)| self.views.iter().map(|view| view.difference(along, a, b)).collect())
            .collect();
        let lengths: Vec<f64> =
            links.iter().map(|&(_, a, b, along)| self.rounded.difference(along, a, b).norm()).collect();
        let mut order: Vec<usize> = (0..links.len()).collect();
        order.sort_by(|&n, &m| lengths[n].total_cmp(&lengths[m]));
        // Sign with which one link equals the other.
        let sign = |n: usize, m: usize| {
            let alike = |factor: Wide<N>| {
                vectors[n].iter().zip(&vectors[m]).all(|(v, w)| self.vanishes(&(v - w * factor)))
            };
            if links[n].3 != links[m].3 {
                return None;
            }
            let link = |n: usize| Link { from: links[n].1, to: links[n].2, along: links[n].3 };
            let same = |sign: i64| alike(Wide::from_i64(sign)) && !self.distinguishes(link(n), link(m), sign);
            [1, -1].into_iter().find(|&sign| same(sign))
        };
        // Groups of equal links: the first link, the first one on another body, and those on the first body before it.
        let mut groups: Vec<(usize, Option<usize>, Vec<usize>)> = Vec::new();
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for n in order {
            let near = |m: usize| lengths[n] - lengths[m] <= CLEARLY_APART.max(4.0 * self.tolerance);
            let mut nearest = groups.iter_mut().rev().take_while(|(head, ..)| near(*head));
            let Some((head, other, waiting)) = nearest.find(|(head, ..)| sign(n, *head).is_some()) else {
                groups.push((n, None, Vec::new()));
                continue;
            };
            match *other {
                _ if links[n].0 != links[*head].0 => {
                    pairs.push((n, *head));
                    if other.is_none() {
                        *other = Some(n);
                        pairs.extend(waiting.drain(..).map(|m| (m, n)));
                    }
                }
                Some(other) => pairs.push((n, other)),
                None => waiting.push(n),
            }
        }
        let mut pairs: Vec<_> = pairs.into_iter().map(|(n, m)| (n.max(m), n.min(m))).collect();
        pairs.sort_unstable();
        let mut found = Vec::with_capacity(pairs.len());
        for (n, m) in pairs {
            let ((_, a, b, along), (_, c, d, _)) = (links[n], links[m]);
            if let (Some(sign), false) = (sign(n, m), a == c && b == d) {
                let terms = [(b, 1), (a, -1), (d, -sign), (c, sign)];
                let terms = terms.map(|(item, sign)| (item, Factor::Sign(sign))).to_vec();
                found.push(Equation { terms, along });
            }
        }
        self.equations.extend(found);
    }

    /// Computes the ratio of `P_j − P_i` to `P_k − P_i` in one configuration, along and across, and whether the points
    /// are collinear.
    fn ratio(
        &self,
        view: &View<Wide<N>>,
        along: Along,
        [i, j, k]: [usize; 3],
    ) -> Option<([Wide<N>; 2], bool)> {
        let (v, w) = (view.difference(along, i, j), view.difference(along, i, k));
        let scale = w.dot(&w).inverse()?;
        let straight = self.vanishes(&v.cross(&w));
        let turned = match along {
            Along::Across(c) if !straight => view.directions[c].cross(&w).dot(&v) * scale,
            _ => Wide::zero(),
        };
        Some(([v.dot(&w) * scale, turned], straight))
    }

    /// Finds collinear items, and items with equal ratios on several bodies.
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
            let signs = [(j, Factor::Sign(1)), (i, Factor::Sign(-1))];
            let terms = [signs, [(i, Factor::Ratio(1, ratio)), (k, Factor::Ratio(-1, ratio))]].concat();
            self.equations.push(Equation { terms, along });
        }
    }

    /// Returns pairs of links of equal length: the first of each group with the others.
    pub(super) fn equal_lengths(&self) -> Vec<[Link; 2]> {
        let Some(view) = self.views.first() else { return Vec::new() };
        let mut links: Vec<(f64, Link, Wide<N>)> = Vec::new();
        for (_, from, to, along) in self.links() {
            let v = view.difference(along, from, to);
            let square = v.dot(&v);
            if f64::from(square).sqrt() > self.tolerance {
                links.push((f64::from(square), Link { from, to, along }, square));
            }
        }
        links.sort_by(|x, y| x.0.total_cmp(&y.0));
        let mut out = Vec::new();
        let mut head = 0;
        for k in 1..links.len() {
            let (first, this) = (&links[head], &links[k]);
            // The difference of the squares is twice the length times the difference of the lengths.
            let alike =
                (this.2 - first.2).weight() <= 2.0 * self.tolerance * first.0.sqrt().max(self.tolerance);
            if alike && !self.differ_in_length(first.1, this.1) {
                if (first.1.from, first.1.to) != (this.1.from, this.1.to) {
                    out.push([first.1, this.1]);
                }
            } else {
                head = k;
            }
        }
        out
    }

    /// Finds links of equal length that are not parallel: a rotation maps one to the other.
    fn turns(&mut self) {
        for [first, second] in self.equal_lengths() {
            let vectors =
                |link: Link| self.views.iter().map(move |v| v.difference(link.along, link.from, link.to));
            let pairs: Vec<_> = vectors(first).zip(vectors(second)).map(|(v, w)| [v, w]).collect();
            let parallel = |sign: Wide<N>| pairs.iter().all(|[v, w]| self.vanishes(&(v - w * sign)));
            if parallel(Wide::one()) || parallel(-Wide::one()) {
                continue;
            }
            let (Some([v, w]), Some(view)) = (pairs.first(), self.views.first()) else { continue };
            let (turning, matrix) = match [first.along, second.along] {
                [Along::Across(a), Along::Across(b)] => {
                    let axes = (&view.directions[a], &view.directions[b]);
                    match self.signs([a, b], &pairs) {
                        Some(signs) => (Turning::Level([a, b], signs), level_turn(axes.0, axes.1, signs)),
                        None => (Turning::Planes([a, b]), turn_in_planes((v, axes.0), (w, axes.1))),
                    }
                }
                [Along::Space, Along::Space] => (Turning::Space, turn_in_space(v, w)),
                _ => continue,
            };
            let Some(matrix) = matrix else { continue };
            let turn = self.turns.len();
            self.turns.push((turning, matrix));
            let signs = [(second.to, Factor::Sign(1)), (second.from, Factor::Sign(-1))];
            let turned = [(first.to, Factor::Turn(-1, turn)), (first.from, Factor::Turn(1, turn))];
            self.equations.push(Equation { terms: [signs, turned].concat(), along: second.along });
        }
    }

    /// Returns the signs with which components along and across the common normal of two planes agree in every
    /// configuration.
    fn signs(&self, [a, b]: [usize; 2], pairs: &[[Vector3<Wide<N>>; 2]]) -> Option<[i64; 2]> {
        if a == b {
            return None;
        }
        let mut out = [0; 2];
        for (k, sign) in out.iter_mut().enumerate() {
            *sign = [1, -1].into_iter().find(|&sign| {
                self.views.iter().zip(pairs).all(|(view, [v, w])| {
                    let (from, onto) = (&view.directions[a], &view.directions[b]);
                    let n = from.cross(onto);
                    let (x, y) = if k == 0 { (n, n) } else { (from.cross(&n), onto.cross(&n)) };
                    self.zero(w.dot(&y) - v.dot(&x) * Wide::from_i64(sign))
                })
            })?;
        }
        Some(out)
    }
}

impl<T: Number> View<T> {
    fn empty() -> Self {
        Self { directions: Vec::new(), points: Vec::new() }
    }

    /// Computes the difference of two places in the directions of `along`.
    pub(super) fn difference(&self, along: Along, from: usize, to: usize) -> Vector3<T> {
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

fn locus(pivoting: Pivoting) -> Locus {
    match pivoting {
        Pivoting::Revolute | Pivoting::Helical | Pivoting::Cylindrical => Locus::Line,
        Pivoting::Spherical => Locus::Point,
        Pivoting::Prismatic | Pivoting::Planar | Pivoting::Floating => Locus::Nowhere,
    }
}

/// Adds a row to a span if it is clearly new; returns whether it was added.
pub(super) fn clearly_new(span: &mut Echelon<f64>, row: &[f64]) -> bool {
    is_new(span, row, CLEARLY_NEW)
}

/// Adds a row to a span if more than the fraction `least` of it is new; returns whether it was added.
pub(super) fn is_new(span: &mut Echelon<f64>, row: &[f64], least: f64) -> bool {
    let size = |row: &[f64]| row.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let left = span.remainder(row);
    size(&left) > least * size(row) && span.insert(&left)
}

/// Returns the rotation that maps a vector perpendicular to one axis to a vector of equal length perpendicular to
/// another axis, and the first axis to the second.
fn turn_in_planes<T: Number>(
    (v, axis): (&Vector3<T>, &Vector3<T>),
    (w, onto): (&Vector3<T>, &Vector3<T>),
) -> Option<Matrix3<T>> {
    let scale = v.dot(v).inverse()?;
    let plane = w * v.transpose() + onto.cross(w) * axis.cross(v).transpose();
    Some(plane * scale + onto * axis.transpose())
}

/// Returns a rotation that maps a vector to another one of equal length: two reflections.
fn turn_in_space<T: Number>(v: &Vector3<T>, w: &Vector3<T>) -> Option<Matrix3<T>> {
    let reflection = |n: Vector3<T>| {
        let scale = n.dot(&n).inverse()?;
        Some(Matrix3::identity() - n * n.transpose() * (scale + scale))
    };
    let least = (0..3).min_by(|&i, &j| v[i].weight().total_cmp(&v[j].weight()))?;
    // The first reflection keeps v, the second maps it to w.
    Some(reflection(v - w)? * reflection(v.cross(&Vector3::ith(least, T::one())))?)
}
