//! Subspaces of points, such as points shared by neighbouring bodies or fixed points.

use nalgebra::{Matrix3x4, Vector3, Vector4};

use crate::linalg::Number;

/// Linear space of points in homogeneous coordinates, finite and infinite, with at most four dimensions; stored on the
/// stack.
///
/// The basis is reduced and has at most one finite point, returned by [`Points::finite`].
#[derive(Debug, Clone, Copy)]
pub struct Points<T: Number> {
    basis: [Vector4<T>; 4],
    pivots: [usize; 4],
    len: usize,
}

impl<T: Number> Points<T> {
    /// Creates the empty space.
    pub fn none() -> Self {
        Self { basis: [Vector4::zeros(); 4], pivots: [0; 4], len: 0 }
    }

    /// Creates the space of all points of a body.
    pub fn all() -> Self {
        Self { basis: [0, 1, 2, 3].map(|k| Vector4::ith(k, T::one())), pivots: [0, 1, 2, 3], len: 4 }
    }

    /// Creates the space of all directions.
    pub fn directions() -> Self {
        Self { len: 3, ..Self::all() }
    }

    /// Creates the span of some points.
    pub fn spanned(points: &[Vector4<T>]) -> Self {
        let mut out = Self::none();
        for p in points {
            out.insert(*p);
        }
        out
    }

    /// Creates the common null space of some linear maps.
    pub fn annihilated(maps: impl Iterator<Item = Matrix3x4<T>>) -> Self {
        let mut planes = Self::none();
        for map in maps {
            for row in map.row_iter() {
                // Skip rows that contain only rounding errors (maps are of order one).
                if row.iter().any(|x| x.weight() > T::TOLERANCE) {
                    planes.insert(row.transpose());
                }
            }
        }
        planes.annihilator()
    }

    /// Returns the dimension.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the space is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the reduced basis.
    pub fn basis(&self) -> &[Vector4<T>] {
        &self.basis[..self.len]
    }

    /// Returns the finite point of the basis.
    pub fn finite(&self) -> Option<Vector4<T>> {
        (0..self.len).find(|&i| self.pivots[i] == 3).map(|i| self.basis[i])
    }

    /// Returns the directions of the basis.
    pub fn infinite(&self) -> impl Iterator<Item = Vector3<T>> + '_ {
        (0..self.len).filter(|&i| self.pivots[i] != 3).map(|i| self.basis[i].xyz())
    }

    /// Adds a point; returns whether it was new.
    pub fn insert(&mut self, p: Vector4<T>) -> bool {
        let scale = p.iter().map(|x| x.weight()).fold(0.0, f64::max);
        let left = self.remainder(p);
        let zero = |x: &T| x.weight() <= T::TOLERANCE * scale;
        // The homogeneous coordinate is the first pivot: a reduced basis then has only one finite point.
        let mut pivot = 3;
        if zero(&left.w) {
            pivot = usize::from(left.y.weight() > left.x.weight());
            if left.z.weight() > left[pivot].weight() {
                pivot = 2;
            }
        }
        if zero(&left[pivot]) {
            return false;
        }
        let Some(inverse) = left[pivot].inverse() else { return false };
        let mut row = left * inverse;
        row[pivot] = T::one();
        for other in &mut self.basis[..self.len] {
            let factor = other[pivot];
            *other -= row * factor;
            other[pivot] = T::zero();
        }
        (self.basis[self.len], self.pivots[self.len]) = (row, pivot);
        self.len += 1;
        true
    }

    fn remainder(&self, p: Vector4<T>) -> Vector4<T> {
        let mut left = p;
        for (row, &pivot) in self.basis().iter().zip(&self.pivots) {
            let factor = left[pivot];
            left -= row * factor;
            left[pivot] = T::zero();
        }
        left
    }

    /// Returns whether the space contains a point.
    pub fn contains(&self, p: Vector4<T>) -> bool {
        let scale = p.iter().map(|x| x.weight()).fold(0.0, f64::max);
        self.remainder(p).iter().all(|x| x.weight() <= T::TOLERANCE * scale)
    }

    /// Returns whether the space contains all points of another space.
    pub fn includes(&self, o: &Self) -> bool {
        self.len == 4 || (self.len >= o.len && o.basis().iter().all(|p| self.contains(*p)))
    }

    /// Adds all points of another space; returns whether any was new.
    pub fn join(&mut self, o: &Self) -> bool {
        let before = self.len;
        if before < 4 {
            o.basis().iter().for_each(|p| {
                self.insert(*p);
            });
        }
        self.len > before
    }

    /// Computes the intersection of two spaces.
    pub fn meet(&self, o: &Self) -> Self {
        if self.len == 4 || o.len == 0 {
            return *o;
        }
        if o.len == 4 || self.len == 0 {
            return *self;
        }
        // Find combinations of the other basis without a component outside this space: the residual of each vector is
        // reduced by the residuals of earlier ones, and the points are combined in the same way.
        let mut out = Self::none();
        let mut outside = [(Vector4::zeros(), Vector4::zeros(), 0); 3];
        let mut kept = 0;
        for p in o.basis() {
            let scale = p.iter().map(|x| x.weight()).fold(0.0, f64::max);
            let (mut left, mut point) = (self.remainder(*p), *p);
            for (row, origin, pivot) in &outside[..kept] {
                let factor = left[*pivot];
                left -= row * factor;
                point -= origin * factor;
                left[*pivot] = T::zero();
            }
            let larger =
                |best: usize, k: usize| if left[k].weight() > left[best].weight() { k } else { best };
            let pivot = (1..4).fold(0, larger);
            match left[pivot].inverse() {
                Some(inverse) if left[pivot].weight() > T::TOLERANCE * scale => {
                    outside[kept] = (left * inverse, point * inverse, pivot);
                    kept += 1;
                }
                _ => {
                    out.insert(point);
                }
            }
        }
        out
    }

    /// Computes the vectors orthogonal to all points (planes through them).
    fn annihilator(&self) -> Self {
        let mut out = Self::none();
        for c in (0..4).filter(|c| !self.pivots[..self.len].contains(c)) {
            let mut x = Vector4::ith(c, T::one());
            for (row, &pivot) in self.basis().iter().zip(&self.pivots) {
                x[pivot] = -row[c];
            }
            out.insert(x);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{First, SplitMix};

    fn random(source: &mut SplitMix) -> Vector4<First> {
        Vector4::from_fn(|_, _| First::random(source))
    }

    #[test]
    fn the_meet_is_the_intersection() {
        let mut source = SplitMix::new(3);
        let p: Vec<_> = (0..5).map(|_| random(&mut source)).collect();
        let (a, b) = (Points::spanned(&p[..3]), Points::spanned(&p[2..5]));
        let meet = a.meet(&b);
        // Two hyperplanes in a space of four dimensions.
        assert_eq!((a.len(), b.len(), meet.len()), (3, 3, 2));
        assert!(meet.contains(p[2]) && meet.basis().iter().all(|x| a.contains(*x) && b.contains(*x)));
        assert!(Points::spanned(&p[..1]).meet(&Points::spanned(&p[1..2])).is_empty());
        let (a, b) = (Points::spanned(&p[..2]), Points::spanned(&[p[1] + p[0], p[2], p[3]]));
        let meet = a.meet(&b);
        assert!(meet.len() == 1 && meet.contains(p[0] + p[1]), "{meet:?}");
        assert!(b.meet(&a).contains(p[0] + p[1]) && a.meet(&a).len() == 2);
    }

    #[test]
    fn the_basis_has_one_finite_point() {
        let mut source = SplitMix::new(4);
        let p = Points::spanned(&[random(&mut source), random(&mut source), random(&mut source)]);
        assert!(p.finite().is_some());
        assert_eq!(p.infinite().count(), 2);
        assert!(Points::<First>::directions().finite().is_none());
    }
}
