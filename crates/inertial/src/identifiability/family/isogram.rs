//! Bennett linkages: loops of four hinges whose common normals form a skew quadrilateral with equal opposite sides.
//!
//! A half-turn about a line exchanges the opposite corners of such a quadrilateral (an isogram), and each hinge is
//! perpendicular to the two sides that meet at its corner. Conversely, the hinges of every skew isogram form a linkage
//! that moves: opposite links have equal lengths and twists, and the lengths are proportional to the sines of the
//! twists. Random linkages of this type are therefore drawn by two corners and a half-turn.

use nalgebra::{Matrix3, Vector3};

use super::relations::{Relations, View};
use super::{Family, Values};
use crate::linalg::{Echelon, Gf, Number, Pivot, SplitMix, Wide};
use crate::spatial::Field;

/// Maximum number of draws of the corners, since a square root may not exist in the field: all four exist in one of
/// sixteen draws.
const REDRAWS: usize = 1000;

/// Distance (in units of the size of the mechanism) above which corners in double precision do not coincide.
const APART: f64 = 1e-6;

/// Four hinges in the order of their loop, by item.
pub(super) type Isogram = [usize; 4];

/// Corners of an isogram.
pub(super) type Corners<T> = [Vector3<T>; 4];

/// Returns the corners of four axes (points and unit directions) in the order of a loop, and their deviation from an
/// isogram.
fn corners<T: Number>(axes: [(Vector3<T>, Vector3<T>); 4]) -> Option<(Corners<T>, f64)> {
    let mut feet = Vec::with_capacity(4);
    for i in 0..4 {
        let ((p, u), (q, v)) = (axes[i], axes[(i + 1) % 4]);
        let (between, cosine) = (q - p, u.dot(&v));
        let scale = (T::one() - cosine * cosine).inverse()?;
        let along = (between.dot(&u) - cosine * between.dot(&v)) * scale;
        let back = (cosine * between.dot(&u) - between.dot(&v)) * scale;
        feet.push([p + u * along, q + v * back]);
    }
    let out = [0, 1, 2, 3].map(|i| feet[i][0]);
    let side = |i: usize| {
        let side = out[(i + 1) % 4] - out[i];
        side.dot(&side)
    };
    let gaps = (0..4).flat_map(|i| (feet[i][0] - feet[(i + 3) % 4][1]).data.0[0]);
    let defects = gaps.chain([side(0) - side(2), side(1) - side(3)]);
    Some((out, defects.map(Number::weight).fold(0.0, f64::max)))
}

impl<T: Number> View<T> {
    /// Returns the corners of four hinges, and their deviation from an isogram.
    fn corners(&self, items: &Isogram, classes: &[usize]) -> Option<(Corners<T>, f64)> {
        corners([0, 1, 2, 3].map(|k| (self.points[items[k]], self.directions[classes[k]])))
    }
}

impl<const N: usize> Relations<N> {
    /// Returns the loops of four hinges that are Bennett linkages, without common axes.
    pub(super) fn isograms(&self) -> Vec<Isogram> {
        let mut out: Vec<Isogram> = Vec::new();
        for items in self.loops_of_hinges(4) {
            let Ok(items) = Isogram::try_from(items) else { continue };
            let taken = |i: &usize| out.iter().flatten().any(|t| t == i);
            if !items.iter().any(taken) && self.is_isogram(&items) {
                out.push(items);
            }
        }
        out
    }

    fn is_isogram(&self, items: &Isogram) -> bool {
        let classes = self.classes_of(items);
        let rough = self.rounded().corners(items, &classes);
        rough.is_some_and(|(_, defect)| defect <= APART)
            && self
                .views
                .iter()
                .all(|view| view.corners(items, &classes).is_some_and(|(_, defect)| defect <= self.tolerance))
    }

    /// Returns the corners of an isogram of the mechanism itself, in double precision.
    pub(super) fn own_corners(&self, items: &Isogram) -> Option<Corners<f64>> {
        let found: Option<(Corners<Wide<N>>, f64)> =
            self.views.first()?.corners(items, &self.classes_of(items));
        found.map(|(corners, _)| corners.map(|p| p.map(f64::from)))
    }
}

impl Family {
    /// Returns the equations for the points on the hinges of an isogram: its corners are the given ones up to scale and
    /// position.
    pub(super) fn rows_of_isogram<T: Number>(&self, isogram: usize, values: &Values<T>) -> Vec<Vec<T>> {
        let (items, corners) = (&self.isograms[isogram], &values.isograms[isogram]);
        let mut free = Echelon::new(12, Pivot::Largest);
        free.insert(&corners.iter().flat_map(|p| p.iter().copied()).collect::<Vec<T>>());
        for k in 0..3 {
            free.insert(&(0..12).map(|i| if i % 3 == k { T::one() } else { T::zero() }).collect::<Vec<T>>());
        }
        for (n, &item) in items.iter().enumerate() {
            let Some(axis) = self.items[item].axis else { continue };
            let mut along = vec![T::zero(); 12];
            let direction = values.frames[axis.class].column(2);
            along[3 * n..3 * n + 3].iter_mut().zip(direction.iter()).for_each(|(x, d)| *x = *d);
            free.insert(&along);
        }
        free.null_space().into_iter().map(|short| self.spread(items, &short)).collect()
    }
}

/// Draws the corners of a random isogram over GF(p), and at each corner an orthonormal frame whose third axis is the
/// hinge.
pub(super) fn random_isogram<const P: u64>(
    source: &mut SplitMix,
) -> Option<(Corners<Gf<P>>, [Matrix3<Gf<P>>; 4])> {
    let mut vector = || Vector3::from_fn(|_, _| Gf::<P>::random(source));
    (0..REDRAWS).find_map(|_| {
        let [axis, centre, a, b] = [0; 4].map(|_| vector());
        let scale = axis.dot(&axis).inverse()?;
        // x ↦ centre + 2 axis (axis · (x − centre))/|axis|² − (x − centre)
        let opposite = |x: &Vector3<Gf<P>>| {
            let r = x - centre;
            centre + axis * (axis.dot(&r) * (scale + scale)) - r
        };
        let corners = [a, b, opposite(&a), opposite(&b)];
        let unit = |v: Vector3<Gf<P>>| Some(v * v.dot(&v).sqrt()?.inverse()?);
        let frame = |i: usize| {
            let side = unit(corners[(i + 1) % 4] - corners[i])?;
            let hinge = unit(side.cross(&(corners[(i + 3) % 4] - corners[i])))?;
            Some(Matrix3::from_columns(&[side, hinge.cross(&side), hinge]))
        };
        Some((corners, [frame(0)?, frame(1)?, frame(2)?, frame(3)?]))
    })
}

#[cfg(test)]
mod tests {
    use super::{corners, random_isogram};
    use crate::linalg::{First, SplitMix};
    use crate::spatial::Field;

    /// Checks that opposite links have equal lengths and twists, and that lengths are proportional to the sines of the
    /// twists.
    #[test]
    fn random_isograms_are_bennetts_linkages() {
        let mut source = SplitMix::new(7);
        let (points, frames) = random_isogram::<{ First::PRIME }>(&mut source).expect("a draw");
        let axis = |i: usize| frames[i % 4].column(2).into_owned();
        let link = |i: usize| points[(i + 1) % 4] - points[i % 4];
        let square = |i: usize| link(i).dot(&link(i));
        let sine = |i: usize| {
            let normal = axis(i).cross(&axis(i + 1));
            normal.dot(&normal)
        };
        for i in 0..4 {
            assert_eq!(axis(i).dot(&axis(i)), First::from_i64(1));
            assert_eq!([axis(i).dot(&link(i)), axis(i + 1).dot(&link(i))], [First::from_i64(0); 2]);
            assert_eq!((square(i), sine(i)), (square(i + 2), sine(i + 2)));
        }
        assert_eq!(square(0) * sine(1), square(1) * sine(0));
        // Any points of the axes give the same corners.
        let shifted = |i: usize| points[i] + axis(i) * First::from_i64([3, -4, 5, 8][i]);
        let found = corners([0, 1, 2, 3].map(|i| (shifted(i), axis(i)))).expect("skew axes");
        assert_eq!(found.0, points);
    }
}
