//! Random members of the family of mechanisms that share a mechanism's geometric relations.
//!
//! Seen in one closed configuration, a mechanism is a set of joint axes: directions and points in the world. Its relations there (parallel
//! and perpendicular axes, axes that meet, links that are equal as vectors, points that divide links alike) are linear in the points once
//! the directions are chosen; and so are links of equal length, once the rotation that takes one to the other is chosen. So random
//! mechanisms with the same relations can be drawn over any field, and they are closed by construction: both sides of a loop joint have
//! the same axis.
//!
//! The mechanism itself is one member of the family, and the rank of its regressor is at most that of a generic member (the rank of a
//! limit never exceeds that of the sequence). A random member over GF(p) is generic but for an accident of probability degree/p: an upper
//! bound of the rank, whatever the numbers of the mechanism are. See "Closed loops" in the theory chapter.

mod equalities;
mod gained;
mod isogram;
mod member;
mod restore;
mod selection;
mod survey;

pub(super) use survey::Survey;

use isogram::{Corners, Isogram};
use nalgebra::{Matrix3, Vector3};

use crate::linalg::{Echelon, Number, Pivot};

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

/// The factor of a point in an equation.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Factor {
    /// A sign.
    Sign(i64),
    /// A sign times a ratio that several equations may share.
    Ratio(i64, usize),
    /// A sign times a rotation.
    Turn(i64, usize),
}

/// `Σ factor · P = 0` along some directions.
#[derive(Debug, Clone)]
struct Equation {
    terms: Vec<(usize, Factor)>,
    along: Along,
}

impl Equation {
    /// Whether all factors are signs.
    fn is_plain(&self) -> bool {
        self.terms.iter().all(|t| matches!(t.1, Factor::Sign(_)))
    }

    fn has_turn(&self) -> bool {
        self.terms.iter().any(|t| matches!(t.1, Factor::Turn(..)))
    }
}

/// How the rotation from one link to another of equal length is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Turning {
    /// At random.
    Space,
    /// At random from the plane across one class to that across another.
    Planes([usize; 2]),
    /// From plane to plane such that components along the common normal, and those across it, keep their size; with their signs.
    Level([usize; 2], [i64; 2]),
}

/// The map from the plane across `a` to that across `b` of [`Turning::Level`].
fn level_turn<T: Number>(a: &Vector3<T>, b: &Vector3<T>, signs: [i64; 2]) -> Option<Matrix3<T>> {
    let n = a.cross(b);
    let scale = n.dot(&n).inverse()?;
    let [along, across] = signs.map(T::from_i64);
    let plane = n * n.transpose() * along + b.cross(&n) * a.cross(&n).transpose() * across;
    Some(plane * scale + b * a.transpose())
}

/// Directions and factors, in numbers of one kind.
#[derive(Debug, Clone)]
struct Values<T: Number> {
    /// For each class a frame whose third axis it is.
    frames: Vec<Matrix3<T>>,
    /// For each ratio its parts along and across.
    ratios: Vec<[T; 2]>,
    /// For each rotation its matrix.
    turns: Vec<Matrix3<T>>,
    /// For each isogram its corners.
    isograms: Vec<Corners<T>>,
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
    /// For each rotation how it is drawn.
    turns: Vec<Turning>,
    /// Loops of four hinges that are drawn as Bennett's linkages; no two have a hinge in common.
    isograms: Vec<Isogram>,
    /// Dimension of the points that obey the equations with the mechanism's own directions and factors.
    freedoms: usize,
}
impl Family {
    /// An equation of the points as rows.
    fn rows<T: Number>(&self, equation: &Equation, values: &Values<T>) -> Vec<Vec<T>> {
        let column = |c: usize, k: usize| values.frames[c].column(k).into_owned();
        let directions: Vec<Vector3<T>> = match equation.along {
            Along::Space => (0..3).map(|k| Vector3::ith(k, T::one())).collect(),
            Along::Axis(c) => vec![column(c, 2)],
            Along::Across(c) => vec![column(c, 0), column(c, 1)],
            Along::Normal(a, b) => vec![column(a, 2).cross(&column(b, 2))],
        };
        let row = |u: Vector3<T>| {
            let mut row = vec![T::zero(); 3 * self.items.len()];
            for &(item, factor) in &equation.terms {
                let v = match factor {
                    Factor::Sign(sign) => u * T::from_i64(sign),
                    Factor::Ratio(sign, r) => {
                        let [plain, turned] = values.ratios[r];
                        // u · (α P + β z × P) = (α u + β u × z) · P
                        let v = match equation.along {
                            Along::Across(c) if !self.ratios[r] => {
                                u * plain + u.cross(&column(c, 2)) * turned
                            }
                            _ => u * plain,
                        };
                        v * T::from_i64(sign)
                    }
                    Factor::Turn(sign, t) => values.turns[t].tr_mul(&u) * T::from_i64(sign),
                };
                for k in 0..3 {
                    row[3 * item + k] += v[k];
                }
            }
            row
        };
        directions.into_iter().map(row).collect()
    }

    /// Bound of the degree of a drawn pose in the drawn numbers: a frame is at most of degree two in its own numbers and in those of the
    /// frames that it is drawn across, an entry of an equation a product of four frames, and points follow by Cramer's rule. Equations of an
    /// isogram are determinants of eight rows: its corners (of degree three) and directions (of degree six) at most four times each.
    pub fn degree(&self) -> usize {
        let equations = 3 * self.items.len() - self.freedoms;
        let entry = if self.isograms.is_empty() { 8 } else { 40 };
        entry * (self.classes + 1) * (equations + 1)
    }

    /// The span of the equations of the points.
    fn span<T: Number>(&self, values: &Values<T>) -> Echelon<T> {
        let mut span = Echelon::new(3 * self.items.len(), Pivot::Largest);
        let isograms = (0..self.isograms.len()).flat_map(|i| self.rows_of_isogram(i, values));
        for row in isograms.chain(self.equations.iter().flat_map(|e| self.rows(e, values))) {
            span.insert(&row);
        }
        span
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
