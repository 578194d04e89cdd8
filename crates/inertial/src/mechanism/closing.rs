//! Closure conditions of loop joints: equations in the entries of poses, in any number type.
//!
//! The exact analysis moves along closed curves and does not use these equations. They check whether the start of the
//! curves is closed exactly and, if it is not, close the loops in extended precision.

use nalgebra::{Matrix3, Vector3};

use super::Pivoting;
use crate::linalg::Number;
use crate::spatial::{Force, Pose};

/// Condition of a loop joint on the pose of its successor's frame in its predecessor's frame.
#[derive(Debug, Clone, Copy)]
pub enum Closing<T: Number> {
    /// Coincident frames.
    Fixed,
    /// Condition of the joint type, about the third axis of a frame, with its pitch.
    Free(Pivoting, Matrix3<T>, T),
    /// Constant angle between two axes, and coincident origins.
    Universal([Vector3<T>; 2]),
}

/// Closure equations with derivatives: a residual that is zero if the loop is closed, and the wrench (in the
/// successor's joint frame) whose power along the relative twist is the rate of the residual.
pub type Equations<T> = Vec<(T, Force<T>)>;

struct System<'a, T: Number> {
    relative: &'a Pose<T>,
    out: Equations<T>,
}

impl<T: Number> System<'_, T> {
    /// Adds the equations of coincident origins along these directions.
    fn points(&mut self, directions: &[Vector3<T>]) {
        for u in directions {
            let back = self.relative.rotation.tr_mul(u);
            self.out.push((u.dot(&self.relative.translation), Force::new(Vector3::zeros(), back)));
        }
    }

    /// Adds the equation `u · R a = u · a`.
    fn axis(&mut self, u: Vector3<T>, a: Vector3<T>) {
        let back = self.relative.rotation.tr_mul(&u);
        self.out.push((back.dot(&a) - u.dot(&a), Force::new(a.cross(&back), Vector3::zeros())));
    }

    /// Adds the equations of parallel frames (they also hold a half turn apart, which never occurs near a solution).
    fn orientation(&mut self) {
        let r = &self.relative.rotation;
        let half = T::from_decimal(1, 2, 0);
        for k in 0..3 {
            let (i, j) = ((k + 1) % 3, (k + 2) % 3);
            self.out.push((
                (r[(j, i)] - r[(i, j)]) * half,
                Force::new(Vector3::ith(k, T::one()), Vector3::zeros()),
            ));
        }
    }
}

impl<T: Number> Closing<T> {
    /// Returns the equations at a pose of the successor's frame in the predecessor's frame. `angle` computes the angle about the
    /// axis of a helical joint from its cosine, its sine and the estimate given by the advance; `None` if this fails.
    pub fn equations(
        &self,
        relative: &Pose<T>,
        angle: impl Fn(T, T, T) -> Option<T>,
    ) -> Option<Equations<T>> {
        let mut system = System { relative, out: Vec::with_capacity(6) };
        let every = [0, 1, 2].map(|k| Vector3::ith(k, T::one()));
        match self {
            Closing::Fixed => {
                system.orientation();
                system.points(&every);
            }
            Closing::Universal([first, second]) => {
                system.axis(*first, *second);
                system.points(&every);
            }
            Closing::Free(pivoting, frame, pitch) => {
                let [x, y, z] = [0, 1, 2].map(|k| frame.column(k).into_owned());
                let turns_about_axis =
                    !matches!(pivoting, Pivoting::Prismatic | Pivoting::Spherical | Pivoting::Floating);
                if turns_about_axis {
                    system.axis(x, z);
                    system.axis(y, z);
                }
                match pivoting {
                    Pivoting::Revolute | Pivoting::Spherical => system.points(&every),
                    Pivoting::Prismatic => {
                        system.orientation();
                        system.points(&[x, y]);
                    }
                    Pivoting::Cylindrical => system.points(&[x, y]),
                    Pivoting::Planar => system.points(&[z]),
                    Pivoting::Helical => {
                        system.points(&[x, y, z]);
                        let (r, t) = (&relative.rotation, &relative.translation);
                        let turned = r * x;
                        let advanced = z.dot(t) * pitch.inverse().unwrap_or_else(T::zero);
                        let angle = angle(turned.dot(&x), turned.dot(&y), advanced)?;
                        if let Some((value, wrench)) = system.out.last_mut() {
                            *value -= *pitch * angle;
                            wrench.angular = z * -*pitch;
                        }
                    }
                    Pivoting::Floating => {}
                }
            }
        }
        Some(system.out)
    }
}
