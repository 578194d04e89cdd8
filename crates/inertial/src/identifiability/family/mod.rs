//! Random members of the family of mechanisms that share the geometric relations of a mechanism.
//!
//! In one closed configuration, a mechanism is a set of joint axes: directions and points in the world. Its relations
//! there (parallel and perpendicular axes, intersecting axes, links that are equal as vectors, points that divide links
//! in equal ratios) are linear in the points once the directions are chosen. Links of equal length are linear as well,
//! once the rotation that maps one to the other is chosen. Random mechanisms with the same relations can therefore be
//! drawn over any field. They are closed by construction: both sides of a loop joint have the same axis.
//!
//! The mechanism itself is one member of the family, and the rank of its regressor is at most that of a generic member
//! (the rank of a limit never exceeds that of the sequence). A random member over GF(p) is generic except with
//! probability degree/p. Its rank is an upper bound of the rank, independent of the numbers of the mechanism. See
//! "Closed loops" in the theory chapter.

mod equalities;
mod gained;
mod hinge_loops;
mod isogram;
mod member;
mod relations;
mod resolution;
mod restore;
mod selection;
mod symmetry;

pub(super) use relations::Relations;

use isogram::{Corners, Isogram};
use nalgebra::{Matrix3, Vector3};
use symmetry::SymmetricLoop;

use crate::linalg::{Echelon, Number, Pivot};

/// Geometric place that a joint determines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Locus {
    /// Direction only, without a position.
    Nowhere,
    /// Line along the direction of the joint.
    Line,
    /// Single point.
    Point,
}

/// Direction of the mechanism: its class of parallel directions, and whether it is opposite to the class.
#[derive(Debug, Clone, Copy)]
struct Oriented {
    class: usize,
    against: bool,
}

/// Joint of the tree, or joint that closes a loop.
#[derive(Debug, Clone)]
struct Item {
    locus: Locus,
    axis: Option<Oriented>,
    /// Second axis of a universal loop joint.
    second: Option<Oriented>,
    /// Bodies connected by the joint (0 is the ground, body `i` is `i + 1`).
    bodies: [usize; 2],
}

/// Directions along which an equation of points holds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Along {
    /// All directions.
    Space,
    /// Axis of a class.
    Axis(usize),
    /// Directions perpendicular to the axis of a class.
    Across(usize),
    /// Common normal of two classes.
    Normal(usize, usize),
}

/// Factor of a point in an equation.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Factor {
    /// Sign of the point.
    Sign(i64),
    /// Sign times a ratio that several equations may share.
    Ratio(i64, usize),
    /// Sign times a rotation.
    Turn(i64, usize),
}

/// Equation `Σ factor · P = 0` along some directions.
#[derive(Debug, Clone)]
struct Equation {
    terms: Vec<(usize, Factor)>,
    along: Along,
}

impl Equation {
    /// Returns whether all factors are signs.
    fn is_plain(&self) -> bool {
        self.terms.iter().all(|t| matches!(t.1, Factor::Sign(_)))
    }

    fn has_turn(&self) -> bool {
        self.terms.iter().any(|t| matches!(t.1, Factor::Turn(..)))
    }
}

/// Method of drawing the rotation from one link to another of equal length.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Turning {
    /// Random rotation.
    Space,
    /// Random rotation from the plane perpendicular to one class to that perpendicular to another.
    Planes([usize; 2]),
    /// Map from plane to plane that preserves the size of components along and across the common normal; with their
    /// signs.
    Level([usize; 2], [i64; 2]),
}

/// Returns the map of [`Turning::Level`] from the plane perpendicular to `a` to that perpendicular to `b`.
fn level_turn<T: Number>(a: &Vector3<T>, b: &Vector3<T>, signs: [i64; 2]) -> Option<Matrix3<T>> {
    let n = a.cross(b);
    let scale = n.dot(&n).inverse()?;
    let [along, across] = signs.map(T::from_i64);
    let plane = n * n.transpose() * along + b.cross(&n) * a.cross(&n).transpose() * across;
    Some(plane * scale + b * a.transpose())
}

/// Directions and factors, in one number type.
#[derive(Debug, Clone)]
struct Values<T: Number> {
    /// Frame of each class; its third axis is the class.
    frames: Vec<Matrix3<T>>,
    /// Components of each ratio along and across.
    ratios: Vec<[T; 2]>,
    /// Matrix of each rotation.
    turns: Vec<Matrix3<T>>,
    /// Corners of each isogram.
    isograms: Vec<Corners<T>>,
    /// Linear part of the map of each symmetric loop.
    symmetries: Vec<Matrix3<T>>,
}

/// Relations of a mechanism in a closed configuration.
#[derive(Debug, Clone)]
pub(super) struct Family {
    items: Vec<Item>,
    gravity: Option<Oriented>,
    classes: usize,
    /// Pairs of perpendicular classes.
    perpendicular: Vec<(usize, usize)>,
    /// Order in which the classes are drawn.
    order: Vec<usize>,
    equations: Vec<Equation>,
    /// Whether the points of each ratio are collinear (otherwise the ratio includes a rotation).
    ratios: Vec<bool>,
    /// Method of drawing each rotation.
    turns: Vec<Turning>,
    /// Loops of four hinges that are drawn as Bennett linkages; no two share a hinge.
    isograms: Vec<Isogram>,
    /// Loops that are drawn with a symmetry; no two share a direction.
    symmetries: Vec<SymmetricLoop>,
    /// Dimension of the space of points that satisfy the equations with the directions and factors of the mechanism
    /// itself.
    freedoms: usize,
}
impl Family {
    /// Returns the rows of an equation of the points.
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

    /// Returns a bound of the degree of a drawn pose in the drawn numbers. A frame is at most of degree two in its own
    /// numbers and in those of the frames to which it is drawn perpendicular, an entry of an equation is a product of
    /// four frames, and points follow by Cramer's rule. Equations of an isogram are determinants of eight rows: its
    /// corners (of degree three) and directions (of degree six) at most four times each. Those of a symmetric loop are
    /// determinants of 14 rows of maps and directions, of degree six or less.
    pub fn degree(&self) -> usize {
        let equations = 3 * self.items.len() - self.freedoms;
        let entry = match (self.symmetries.is_empty(), self.isograms.is_empty()) {
            (false, _) => 84,
            (true, false) => 40,
            (true, true) => 8,
        };
        entry * (self.classes + 1) * (equations + 1)
    }

    /// Returns the span of the equations of the points.
    fn span<T: Number>(&self, values: &Values<T>) -> Echelon<T> {
        let mut span = Echelon::new(3 * self.items.len(), Pivot::Largest);
        let isograms = (0..self.isograms.len()).flat_map(|i| self.rows_of_isogram(i, values));
        let symmetries = self.symmetries.iter().zip(&values.symmetries);
        let symmetries = symmetries.flat_map(|(s, map)| self.rows_of_symmetry(s, map, &values.frames));
        for row in isograms.chain(symmetries).chain(self.equations.iter().flat_map(|e| self.rows(e, values)))
        {
            span.insert(&row);
        }
        span
    }

    /// Returns the classes perpendicular to a class.
    fn across(&self, class: usize) -> impl Iterator<Item = usize> + '_ {
        self.perpendicular.iter().filter_map(move |&(a, b)| match class {
            c if c == a => Some(b),
            c if c == b => Some(a),
            _ => None,
        })
    }
}
/// Returns an order in which each class comes after as many classes perpendicular to it as possible, starting with the
/// class that has most perpendicular ones.
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
