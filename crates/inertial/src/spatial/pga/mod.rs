//! Projective geometric algebra G(3,0,1): planes, lines, points and motors, with meet and join (paper 004, section 3).
//!
//! Vectors are planes: `a e1 + b e2 + c e3 + d e0` is `ax + by + cz + d = 0`, with `e1² = e2² = e3² = 1` and `e0² = 0`.
//! Lines are bivectors, points trivectors, rigid motions the unit elements of even grade.
//! Twists and wrenches are bivectors too, and the outer product of the two is the power (eq. 31).
//!
//! [`Multivector`] represents the whole algebra; [`Plane`], [`Line`], [`Point`] and [`Motor`] are compact
//! representations of its geometric elements. All are generic over a [`Field`], so incidence can be decided exactly.

mod element;
mod motor;

pub use element::{Element, Line, Plane, Point};
pub use motor::Motor;

use std::ops::{Add, Mul, Neg, Sub};

use super::Field;

/// General element of the algebra.
///
/// Coefficients are indexed by the blade's bit set (bit `i` is `e_i`), with factors in ascending order: index `0b0110`
/// is `e12`, `0b1111` the pseudoscalar `I = e0123`.
///
/// ```
/// use inertial::spatial::pga::{Element, Plane, Point};
/// use nalgebra::{Vector3, vector};
/// // Three coordinate planes shifted by 1, 2 and 3 meet in a point.
/// let plane = |normal, offset| Plane { normal, offset }.to_multivector();
/// let (x, y, z) = (Vector3::x(), Vector3::y(), Vector3::z());
/// let meet = plane(x, -1.0).wedge(&plane(y, -2.0)).wedge(&plane(z, -3.0));
/// assert_eq!(Point::from_multivector(&meet), Point::finite(vector![1.0, 2.0, 3.0]));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Multivector<T: Field = f64>(pub [T; 16]);

/// Index of the pseudoscalar `I = e0123`.
const PSEUDOSCALAR: usize = 15;

/// Returns whether sorting the factors of `a b` takes an odd number of swaps.
const fn odd_swaps(a: usize, b: usize) -> bool {
    let mut swaps = 0;
    let mut rest = a >> 1;
    while rest != 0 {
        swaps += (rest & b).count_ones();
        rest >>= 1;
    }
    swaps % 2 == 1
}

impl<T: Field> Multivector<T> {
    /// Creates the zero element.
    pub fn zero() -> Self {
        Self([T::zero(); 16])
    }

    /// Creates a scalar.
    pub fn scalar(s: T) -> Self {
        let mut out = Self::zero();
        out.0[0] = s;
        out
    }

    /// Creates the blade with the given bit set (see the type) and coefficient one.
    pub fn blade(bits: usize) -> Self {
        let mut out = Self::zero();
        out.0[bits & PSEUDOSCALAR] = T::one();
        out
    }

    /// Returns the coefficient of the scalar one.
    pub fn scalar_part(&self) -> T {
        self.0[0]
    }

    /// Returns the coefficient of the pseudoscalar.
    pub fn pseudoscalar_part(&self) -> T {
        self.0[PSEUDOSCALAR]
    }

    /// Returns the part of one grade.
    pub fn grade(&self, grade: u32) -> Self {
        self.map(|bits, x| if bits.count_ones() == grade { x } else { T::zero() })
    }

    /// Returns the reverse (eq. 25), in which the factors of every product are reversed.
    pub fn reverse(&self) -> Self {
        self.map(|bits, x| if matches!(bits.count_ones(), 2 | 3) { -x } else { x })
    }

    /// Returns the dual of eq. 16, extended to all grades; it is its own inverse.
    pub fn dual(&self) -> Self {
        let mut out = Self::zero();
        for (bits, &x) in self.0.iter().enumerate() {
            let complement = PSEUDOSCALAR ^ bits;
            // Sign of the pair in I, lower grade first (bivectors commute in I).
            let low = bits.count_ones() <= complement.count_ones();
            let (first, second) = if low { (bits, complement) } else { (complement, bits) };
            out.0[complement] = if odd_swaps(first, second) { -x } else { x };
        }
        out
    }

    /// Computes the outer product, the meet of planes, lines and points.
    pub fn wedge(&self, o: &Self) -> Self {
        self.product(o, |a, b| a & b == 0)
    }

    /// Computes the regressive product `(A* ∧ B*)*` (eq. 17), the join.
    pub fn vee(&self, o: &Self) -> Self {
        self.dual().wedge(&o.dual()).dual()
    }

    /// Computes the inner product, the part of the geometric product of grade `|grade(A) − grade(B)|`.
    pub fn inner(&self, o: &Self) -> Self {
        self.product(o, |a, b| a & b == a || a & b == b)
    }

    /// Computes the commutator `(AB − BA)/2` (eq. 28), the algebra's cross product. `None` in characteristic two.
    pub fn commutator(&self, o: &Self) -> Option<Self> {
        let half = T::from_i64(2).inverse()?;
        Some((*self * *o - *o * *self) * half)
    }

    /// Computes `M̃ A M`, this element moved by the even element `m` (eq. 27).
    pub fn sandwich(&self, m: &Self) -> Self {
        m.reverse() * *self * *m
    }

    fn map(&self, f: impl Fn(usize, T) -> T) -> Self {
        Self(std::array::from_fn(|bits| f(bits, self.0[bits])))
    }

    /// Sums the products of blades selected by `keep`; products that share `e0` vanish.
    #[inline]
    fn product(&self, o: &Self, keep: impl Fn(usize, usize) -> bool) -> Self {
        let mut out = Self::zero();
        for (a, &x) in self.0.iter().enumerate().filter(|(_, x)| !x.is_zero()) {
            for (b, &y) in o.0.iter().enumerate() {
                if a & b & 1 == 0 && keep(a, b) {
                    let xy = x * y;
                    out.0[a ^ b] += if odd_swaps(a, b) { -xy } else { xy };
                }
            }
        }
        out
    }
}

/// Geometric product (eq. 22).
impl<T: Field> Mul for Multivector<T> {
    type Output = Self;
    fn mul(self, o: Self) -> Self {
        self.product(&o, |_, _| true)
    }
}

impl<T: Field> Mul<T> for Multivector<T> {
    type Output = Self;
    fn mul(self, s: T) -> Self {
        self.map(|_, x| x * s)
    }
}

impl<T: Field> Add for Multivector<T> {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        self.map(|bits, x| x + o.0[bits])
    }
}

impl<T: Field> Sub for Multivector<T> {
    type Output = Self;
    fn sub(self, o: Self) -> Self {
        self.map(|bits, x| x - o.0[bits])
    }
}

impl<T: Field> Neg for Multivector<T> {
    type Output = Self;
    fn neg(self) -> Self {
        self.map(|_, x| -x)
    }
}
