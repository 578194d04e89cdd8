//! Planes, lines and points, with meet and join in closed form.

use nalgebra::{Vector3, Vector4};

use super::Multivector;
use crate::spatial::{Field, Force, Motion};

// Bit sets of the blades in the paper's cyclic basis; negated blades are stored in ascending order.
const E0: usize = 0b0001;
const E123: usize = 0b1110;
/// Blades `e1 e2 e3`.
const NORMAL: [usize; 3] = [0b0010, 0b0100, 0b1000];
/// Blades `e23 e31 e12`, with signs.
const DIRECTION: [(usize, bool); 3] = [(0b1100, false), (0b1010, true), (0b0110, false)];
/// Blades `e01 e02 e03`.
const MOMENT: [usize; 3] = [0b0011, 0b0101, 0b1001];
/// Blades `e032 e013 e021`, with signs.
const POSITION: [(usize, bool); 3] = [(0b1101, true), (0b1011, false), (0b0111, true)];

/// Geometric element: a multivector of one kind.
pub trait Element<T: Field>: Copy {
    /// Converts to a multivector.
    fn to_multivector(&self) -> Multivector<T>;

    /// Extracts the part of this kind from a multivector.
    fn from_multivector(m: &Multivector<T>) -> Self;
}

fn signed<T: Field>(x: T, negative: bool) -> T {
    if negative { -x } else { x }
}

/// Plane `normal · x + offset = 0`; a zero normal gives the plane at infinity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plane<T: Field = f64> {
    /// Coefficients of `e1 e2 e3`.
    pub normal: Vector3<T>,
    /// Coefficient of `e0`.
    pub offset: T,
}

impl<T: Field> Plane<T> {
    /// Returns the line where two planes meet, `a ∧ b`.
    pub fn meet(&self, o: &Self) -> Line<T> {
        Line {
            direction: self.normal.cross(&o.normal),
            moment: o.normal * self.offset - self.normal * o.offset,
        }
    }

    /// Returns the point where a plane meets a line, `p ∧ L`.
    pub fn meet_line(&self, line: &Line<T>) -> Point<T> {
        Point {
            position: self.normal.cross(&line.moment) - line.direction * self.offset,
            weight: self.normal.dot(&line.direction),
        }
    }

    /// Computes `n · x + d w`, which is zero if the point lies on the plane.
    pub fn incidence(&self, p: &Point<T>) -> T {
        self.normal.dot(&p.position) + self.offset * p.weight
    }
}

impl<T: Field> Element<T> for Plane<T> {
    fn to_multivector(&self) -> Multivector<T> {
        let mut m = Multivector::zero();
        m.0[E0] = self.offset;
        for (bits, &x) in NORMAL.into_iter().zip(&self.normal) {
            m.0[bits] = x;
        }
        m
    }

    fn from_multivector(m: &Multivector<T>) -> Self {
        Self { normal: Vector3::from(NORMAL.map(|bits| m.0[bits])), offset: m.0[E0] }
    }
}

/// Line in Plücker coordinates (eq. 14), or any bivector: a twist or a wrench.
///
/// A line through `p` along `d` has moment `p × d`; a line with zero direction lies at infinity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line<T: Field = f64> {
    /// Coefficients of `e23 e31 e12`.
    pub direction: Vector3<T>,
    /// Coefficients of `e01 e02 e03`.
    pub moment: Vector3<T>,
}

impl<T: Field> Line<T> {
    /// Creates the line through a finite point along a direction.
    pub fn through(point: &Vector3<T>, direction: Vector3<T>) -> Self {
        Self { direction, moment: point.cross(&direction) }
    }

    /// Computes `L ∧ L'` over the pseudoscalar: the power of a wrench along a twist (eq. 31), and zero for lines that
    /// intersect.
    #[inline]
    pub fn wedge(&self, o: &Self) -> T {
        self.direction.dot(&o.moment) + self.moment.dot(&o.direction)
    }

    /// Returns whether the bivector is a line: `L ∧ L = 0`.
    pub fn is_simple(&self) -> bool {
        self.direction.dot(&self.moment).is_zero()
    }

    /// Returns the plane through a line and a point, `L ∨ P`.
    pub fn join(&self, p: &Point<T>) -> Plane<T> {
        Plane {
            normal: p.position.cross(&self.direction) - self.moment * p.weight,
            offset: self.moment.dot(&p.position),
        }
    }

    /// Computes `L × L'` (eq. 28), for twists the negative of their spatial cross product.
    pub fn commutator(&self, o: &Self) -> Self {
        Self {
            direction: o.direction.cross(&self.direction),
            moment: o.direction.cross(&self.moment) + o.moment.cross(&self.direction),
        }
    }

    /// Converts to the twist with angular part on `e23 e31 e12` (eq. 30).
    pub fn to_motion(&self) -> Motion<T> {
        Motion::new(self.direction, self.moment)
    }

    /// Converts to the wrench with force on `e23 e31 e12` (eq. 20).
    pub fn to_force(&self) -> Force<T> {
        Force::new(self.moment, self.direction)
    }
}

impl<T: Field> From<Motion<T>> for Line<T> {
    fn from(m: Motion<T>) -> Self {
        Self { direction: m.angular, moment: m.linear }
    }
}

impl<T: Field> From<Force<T>> for Line<T> {
    fn from(f: Force<T>) -> Self {
        Self { direction: f.linear, moment: f.angular }
    }
}

impl<T: Field> Element<T> for Line<T> {
    fn to_multivector(&self) -> Multivector<T> {
        let mut m = Multivector::zero();
        for k in 0..3 {
            let (bits, negative) = DIRECTION[k];
            m.0[bits] = signed(self.direction[k], negative);
            m.0[MOMENT[k]] = self.moment[k];
        }
        m
    }

    fn from_multivector(m: &Multivector<T>) -> Self {
        Self {
            direction: Vector3::from(DIRECTION.map(|(bits, negative)| signed(m.0[bits], negative))),
            moment: Vector3::from(MOMENT.map(|bits| m.0[bits])),
        }
    }
}

/// Point in homogeneous coordinates (eq. 13); weight zero means a direction, a point at infinity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point<T: Field = f64> {
    /// Coefficients of `e032 e013 e021`.
    pub position: Vector3<T>,
    /// Coefficient of `e123`.
    pub weight: T,
}

impl<T: Field> Point<T> {
    /// Creates a finite point.
    pub fn finite(position: Vector3<T>) -> Self {
        Self { position, weight: T::one() }
    }

    /// Creates the point at infinity in a direction.
    pub fn infinite(direction: Vector3<T>) -> Self {
        Self { position: direction, weight: T::zero() }
    }

    /// Returns the homogeneous coordinates `x y z w`.
    pub fn coordinates(&self) -> Vector4<T> {
        let p = &self.position;
        Vector4::new(p.x, p.y, p.z, self.weight)
    }

    /// Creates a point from homogeneous coordinates `x y z w`.
    pub fn from_coordinates(c: &Vector4<T>) -> Self {
        Self { position: Vector3::new(c.x, c.y, c.z), weight: c.w }
    }

    /// Returns the line through two points, `P ∨ Q` (eq. 18).
    #[inline]
    pub fn join(&self, o: &Self) -> Line<T> {
        Line {
            direction: o.position * self.weight - self.position * o.weight,
            moment: self.position.cross(&o.position),
        }
    }

    /// Computes `P × V` (eq. 34), the velocity (a point at infinity) of the point carried by a twist.
    #[inline]
    pub fn velocity(&self, twist: &Line<T>) -> Self {
        Self::infinite(twist.direction.cross(&self.position) + twist.moment * self.weight)
    }
}

impl<T: Field> Element<T> for Point<T> {
    fn to_multivector(&self) -> Multivector<T> {
        let mut m = Multivector::zero();
        m.0[E123] = self.weight;
        for ((bits, negative), &x) in POSITION.into_iter().zip(&self.position) {
            m.0[bits] = signed(x, negative);
        }
        m
    }

    fn from_multivector(m: &Multivector<T>) -> Self {
        Self {
            position: Vector3::from(POSITION.map(|(bits, negative)| signed(m.0[bits], negative))),
            weight: m.0[E123],
        }
    }
}
