//! Motion and force vectors and their cross products.

use std::ops::{Add, AddAssign, Mul, Neg, Sub};

use nalgebra::{SVector, Vector3};

use super::Field;

macro_rules! spatial_vector {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $name<T: Field = f64> {
            /// Angular part: angular velocity or moment.
            pub angular: Vector3<T>,
            /// Linear part: velocity of, or force at, the frame's origin.
            pub linear: Vector3<T>,
        }

        impl<T: Field> $name<T> {
            /// Creates a vector from its angular and linear parts.
            #[inline]
            pub fn new(angular: Vector3<T>, linear: Vector3<T>) -> Self {
                Self { angular, linear }
            }

            /// Creates the zero vector.
            #[inline]
            pub fn zero() -> Self {
                Self::new(Vector3::zeros(), Vector3::zeros())
            }

            /// Returns `[angular; linear]` as one column.
            #[inline]
            pub fn to_vector(&self) -> SVector<T, 6> {
                let (a, l) = (&self.angular, &self.linear);
                SVector::from([a.x, a.y, a.z, l.x, l.y, l.z])
            }

            /// Creates a vector from `[angular; linear]`.
            #[inline]
            pub fn from_vector(v: &SVector<T, 6>) -> Self {
                Self::new(Vector3::new(v[0], v[1], v[2]), Vector3::new(v[3], v[4], v[5]))
            }
        }

        impl<T: Field> Add for $name<T> {
            type Output = Self;
            #[inline]
            fn add(self, o: Self) -> Self {
                Self::new(self.angular + o.angular, self.linear + o.linear)
            }
        }

        impl<T: Field> AddAssign for $name<T> {
            #[inline]
            fn add_assign(&mut self, o: Self) {
                *self = *self + o;
            }
        }

        impl<T: Field> Sub for $name<T> {
            type Output = Self;
            #[inline]
            fn sub(self, o: Self) -> Self {
                Self::new(self.angular - o.angular, self.linear - o.linear)
            }
        }

        impl<T: Field> Neg for $name<T> {
            type Output = Self;
            #[inline]
            fn neg(self) -> Self {
                Self::new(-self.angular, -self.linear)
            }
        }

        impl<T: Field> Mul<T> for $name<T> {
            type Output = Self;
            #[inline]
            fn mul(self, s: T) -> Self {
                Self::new(self.angular * s, self.linear * s)
            }
        }
    };
}

spatial_vector! {
    /// Twist: angular velocity, and velocity of the body-fixed point at the frame's origin.
    Motion
}
spatial_vector! {
    /// Wrench: moment about the frame's origin, and force.
    Force
}

impl<T: Field> Motion<T> {
    /// Computes the spatial cross product of motions, `v × m`.
    #[inline]
    pub fn cross(&self, m: &Self) -> Self {
        Self::new(
            self.angular.cross(&m.angular),
            self.angular.cross(&m.linear) + self.linear.cross(&m.angular),
        )
    }

    /// Computes the dual cross product, `v ×* f` (also written `−(v×)ᵀ f`).
    #[inline]
    pub fn cross_force(&self, f: &Force<T>) -> Force<T> {
        Force::new(
            self.angular.cross(&f.angular) + self.linear.cross(&f.linear),
            self.angular.cross(&f.linear),
        )
    }

    /// Computes the power of a force along this motion.
    #[inline]
    pub fn dot(&self, f: &Force<T>) -> T {
        self.angular.dot(&f.angular) + self.linear.dot(&f.linear)
    }
}
