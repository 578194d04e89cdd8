//! Closure conditions of loop joints: equations in the entries of poses, in any number type.
//!
//! The exact analysis moves along closed curves and does not use these equations. They check whether the start of the
//! curves is closed exactly and, if it is not, close the loops in extended precision.

use nalgebra::{Matrix3, Vector3};

use super::{Assembled, AssembledLoop, Pivoting};
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

impl<T: Number> AssembledLoop<T> {
    /// Returns the equations at the given poses of the two bodies in the world. `angle` computes the angle about the
    /// axis of a helical joint from its cosine, its sine and the estimate given by the advance; `None` if this fails.
    pub fn equations(
        &self,
        near: &Pose<T>,
        far: &Pose<T>,
        angle: impl Fn(T, T, T) -> Option<T>,
    ) -> Option<Equations<T>> {
        let relative = (*near * self.ends[0]).inverse() * (*far * self.ends[1]);
        let mut system = System { relative: &relative, out: Vec::with_capacity(6) };
        let every = [0, 1, 2].map(|k| Vector3::ith(k, T::one()));
        match &self.closing {
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

impl<T: Number> Assembled<T> {
    /// Returns the poses of all bodies in the world.
    pub fn world_poses(&self) -> Vec<Pose<T>> {
        let mut out: Vec<Pose<T>> = Vec::with_capacity(self.bodies.len());
        for body in &self.bodies {
            out.push(body.parent.map_or(body.pose, |p| out[p] * body.pose));
        }
        out
    }

    /// Returns whether all loops are closed exactly. Only for exact numbers; a helical joint that has rotated counts as
    /// open, because its angle is not an exact number.
    pub fn is_closed(&self) -> bool {
        let poses = self.world_poses();
        let world = |body: Option<usize>| body.map_or_else(Pose::identity, |i| poses[i]);
        self.loops.iter().all(|l| {
            let unturned = |c: T, s: T, _: T| (c == T::one() && s.is_zero()).then(T::zero);
            let equations = l.equations(&world(l.predecessor), &world(l.successor), unturned);
            equations.is_some_and(|all| all.iter().all(|(value, _)| value.is_zero()))
        })
    }
}
