//! Several bodies moved by one coordinate, treated as one body with a longer velocity and parameter vector (appendix
//! I).

use nalgebra::SVector;

use crate::linalg::Number;
use crate::mechanism::{BodyGeometry, BodyKind, Geometry};
use crate::spatial::{Motion, Parameters, gradient_rate, inertia_gradient, pull_gradient};

/// Returns the dimensions of the velocity and the parameters of a body; a symmetric rotor has only its spin and its
/// `Izz`.
#[inline]
pub(super) fn dimensions<T: Number>(body: &BodyGeometry<T>) -> (usize, usize) {
    if body.kind == BodyKind::SymmetricRotor { (1, 1) } else { (6, 10) }
}

/// Bodies of one cluster combined into one: velocities and parameters are concatenated (appendix I).
pub(super) struct Joined<'a, T: Number> {
    geometry: &'a Geometry<T>,
    pub bodies: &'a [usize],
    pub modes: usize,
    pub width_v: usize,
    pub width_k: usize,
    /// Common factor of all ratios where only directions of change matter; it keeps rounded numbers from growing with
    /// the gear ratio.
    common_factor: T,
}

impl<'a, T: Number> Joined<'a, T> {
    pub fn new(geometry: &'a Geometry<T>, bodies: &'a [usize]) -> Self {
        let (mut width_v, mut width_k) = (0, 0);
        for &b in bodies {
            let (v, k) = dimensions(&geometry.bodies[b]);
            (width_v, width_k) = (width_v + v, width_k + k);
        }
        let modes = bodies.first().map_or(0, |&b| geometry.bodies[b].modes().len());
        let mut common_factor = T::one();
        if T::TOLERANCE > 0.0 {
            let ratios = bodies.iter().map(|&b| geometry.bodies[b].ratio);
            let largest = ratios.max_by(|a, b| a.weight().total_cmp(&b.weight()));
            common_factor = largest.and_then(T::inverse).unwrap_or(common_factor);
        }
        Self { geometry, bodies, modes, width_v, width_k, common_factor }
    }

    fn iter(&self) -> impl Iterator<Item = &'a BodyGeometry<T>> {
        let geometry = self.geometry;
        self.bodies.iter().map(move |&b| &geometry.bodies[b])
    }

    /// Returns the bodies with their slices of a velocity or parameter vector.
    fn slices<'b>(
        &'b self,
        x: &'b [T],
        width: impl Fn(&BodyGeometry<T>) -> usize + 'b,
    ) -> impl Iterator<Item = (&'b BodyGeometry<T>, &'b [T])> {
        let mut rest = x;
        self.iter().map(move |body| {
            let (head, tail) = rest.split_at(width(body));
            rest = tail;
            (body, head)
        })
    }

    /// Computes `X v`: a motion of the parent in the frame of each body (for a symmetric rotor, its component along the
    /// axis).
    pub fn pull_motion(&self, v: &Motion<T>, out: &mut Vec<T>) {
        out.clear();
        for body in self.iter() {
            let own = body.placement.pull_motion(v);
            push_motion(body, &own, out);
        }
    }

    /// Computes `Φ`, scaled with the ratio of each body.
    pub fn free_mode(&self, mode: usize, out: &mut Vec<T>) {
        out.clear();
        for body in self.iter() {
            push_motion(body, &(body.modes()[mode] * body.ratio), out);
        }
    }

    /// Computes `(Φ×) v`; the spin of a symmetric rotor does not change as it turns.
    pub fn bracket(&self, mode: usize, v: &[T], out: &mut Vec<T>) {
        out.clear();
        for (body, own) in self.slices(v, |b| dimensions(b).0) {
            if own.len() == 1 {
                out.push(T::zero());
            } else {
                let phi = body.modes()[mode] * (body.ratio * self.common_factor);
                push_motion(body, &phi.cross(&motion(own)), out);
            }
        }
    }

    /// Computes `B(X)ᵀ k`.
    pub fn pull_gradient(&self, k: &Parameters<T>, half: T, out: &mut Vec<T>) {
        out.clear();
        for body in self.iter() {
            let own = pull_gradient(&body.placement, k, half);
            out.extend_from_slice(&own.as_slice()[10 - dimensions(body).1..]);
        }
    }

    /// Computes `A(Φ)ᵀ k`.
    pub fn rate(&self, mode: usize, k: &[T], half: T, out: &mut Vec<T>) {
        out.clear();
        for (body, own) in self.slices(k, |b| dimensions(b).1) {
            if own.len() == 1 {
                out.push(T::zero());
            } else {
                let phi = body.modes()[mode] * (body.ratio * self.common_factor);
                out.extend_from_slice(
                    gradient_rate(&phi, &Parameters::from_column_slice(own), half).as_slice(),
                );
            }
        }
    }

    /// Computes `M(v, Φ)` (eqs 36, 52).
    pub fn momentum(&self, mode: usize, v: &[T], out: &mut Vec<T>) {
        out.clear();
        for (body, own) in self.slices(v, |b| dimensions(b).0) {
            if own.len() == 1 {
                out.push(own[0] * body.ratio);
            } else {
                let phi = body.modes()[mode] * body.ratio;
                out.extend_from_slice(inertia_gradient(&motion(own), &phi).as_slice());
            }
        }
    }
}

#[inline]
fn motion<T: Number>(v: &[T]) -> Motion<T> {
    Motion::from_vector(&SVector::from_column_slice(v))
}

#[inline]
fn push_motion<T: Number>(body: &BodyGeometry<T>, v: &Motion<T>, out: &mut Vec<T>) {
    if dimensions(body).0 == 1 {
        out.push(body.axis().dot(&v.angular));
    } else {
        out.extend_from_slice(v.to_vector().as_slice());
    }
}
