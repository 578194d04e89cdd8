//! Symmetric loops of hinges: a half-turn or a mirror maps the loop to itself.
//!
//! A loop of six hinges closes rigidly in general, but it moves if it stays symmetric (Bricard's linkages): half of the
//! closure then follows from the other half. The same relations hold in spherical loops of four hinges with equal arcs.
//! Random linkages of this type are drawn by half of their hinges and their images.

use nalgebra::{Matrix3, Vector3};
use num_traits::Zero;

use super::member::{random_rotation, random_turn};
use super::relations::{Relations, View};
use super::{Along, Family};
use crate::linalg::{Echelon, Gf, Number, Pivot, SplitMix, Wide};
use crate::spatial::Field;

/// Numbers of hinges of the loops that are searched.
const LENGTHS: [usize; 2] = [4, 6];

/// Error of a relation in double precision above which it does not hold.
const APART: f64 = 1e-6;

/// Smallest sum or difference of two unit vectors that determines a direction.
const LEAST: f64 = 1e-2;

/// Map of space that a loop is symmetric under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Half-turn about a line.
    HalfTurn,
    /// Reflection in a plane.
    Mirror,
}

/// Positions of hinges that may be images of each other, and of those that may be their own images.
struct Images {
    kind: Kind,
    pairs: Vec<(usize, usize)>,
    fixed: Vec<usize>,
}

/// Loop of hinges that is mapped to itself.
#[derive(Debug, Clone)]
pub(super) struct SymmetricLoop {
    /// Hinges in the order of the loop, by item.
    pub items: Vec<usize>,
    kind: Kind,
    /// Positions of hinges that are images of each other, and the sign of the direction of the image.
    pairs: Vec<(usize, usize, i64)>,
    /// Positions of hinges that are their own images, and whether they are perpendicular to the mirror.
    fixed: Vec<(usize, bool)>,
}

impl Kind {
    /// Returns the linear part of the map with a line or a normal along `v`.
    fn map<T: Number>(self, v: &Vector3<T>) -> Option<Matrix3<T>> {
        let scale = v.dot(v).inverse()?;
        let turn = v * v.transpose() * (scale + scale) - Matrix3::identity();
        Some(match self {
            Self::HalfTurn => turn,
            Self::Mirror => -turn,
        })
    }

    /// Returns a vector along the line or the normal, for a unit vector and its image times a sign.
    fn axis<T: Number>(self, u: &Vector3<T>, image: &Vector3<T>, sign: i64) -> Vector3<T> {
        let image = image * T::from_i64(sign);
        match self {
            Self::HalfTurn => u + image,
            Self::Mirror => u - image,
        }
    }

    /// Returns the possible images of the hinges of a loop: pairs, and hinges that are their own images.
    fn candidates(self, length: usize) -> Vec<Images> {
        let half = length / 2;
        let mirrored = |a: usize| Images {
            kind: self,
            pairs: (1..half).map(|j| ((a + j) % length, (a + length - j) % length)).collect(),
            fixed: vec![a, a + half],
        };
        match self {
            Self::HalfTurn => {
                vec![Images {
                    kind: self,
                    pairs: (0..half).map(|k| (k, k + half)).collect(),
                    fixed: Vec::new(),
                }]
            }
            Self::Mirror => (0..half).map(mirrored).collect(),
        }
    }
}

impl SymmetricLoop {
    /// Computes the linear part of the map from the directions of the hinges.
    pub fn map<const N: usize>(&self, directions: &[Vector3<Wide<N>>]) -> Option<Matrix3<Wide<N>>> {
        let mut sum: Option<Vector3<Wide<N>>> = None;
        for &(a, b, sign) in &self.pairs {
            let v = self.kind.axis(&directions[a], &directions[b], sign);
            if size(&v) < LEAST {
                continue;
            }
            sum = Some(match sum {
                Some(sum) if f64::from(sum.dot(&v)) < 0.0 => sum - v,
                Some(sum) => sum + v,
                None => v,
            });
        }
        self.kind.map(&sum?)
    }

    /// Returns the errors of directions under the map.
    fn errors<T: Number>(&self, directions: &[Vector3<T>], map: &Matrix3<T>) -> f64 {
        let pairs =
            self.pairs.iter().map(|&(a, b, sign)| map * directions[a] * T::from_i64(sign) - directions[b]);
        let fixed = self.fixed.iter().map(|&(a, across)| {
            let image = map * directions[a];
            if across { image + directions[a] } else { image - directions[a] }
        });
        pairs.chain(fixed).map(|v| size(&v)).fold(0.0, f64::max)
    }

    /// Returns the equations for the points on the hinges, each scaled to a largest entry of one.
    fn equations<T: Number>(&self, directions: &[Vector3<T>], map: &Matrix3<T>) -> Vec<Vec<T>> {
        let width = 3 * self.items.len();
        let mut free = Echelon::new(width, Pivot::Largest);
        let mut add = |parts: &[(usize, Vector3<T>)]| {
            let mut row = vec![T::zero(); width];
            for (at, v) in parts {
                (0..3).for_each(|k| row[3 * at + k] += v[k]);
            }
            free.insert(&row);
        };
        for k in 0..3 {
            let unit = Vector3::ith(k, T::one());
            // Images move together, and all points can be shifted.
            self.pairs.iter().for_each(|&(a, b, _)| add(&[(a, unit), (b, map * unit)]));
            add(&(0..self.items.len()).map(|at| (at, unit)).collect::<Vec<_>>());
            for &(a, across) in &self.fixed {
                let within = unit + map * unit;
                add(&[(a, if across { unit } else { within })]);
            }
        }
        self.pairs.iter().for_each(|&(_, b, _)| add(&[(b, directions[b])]));
        let mut rows = free.null_space();
        for row in &mut rows {
            let largest = row.iter().max_by(|a, b| a.weight().total_cmp(&b.weight())).copied();
            let scale = largest.and_then(Field::inverse).unwrap_or_else(T::one);
            row.iter_mut().for_each(|x| *x *= scale);
        }
        rows
    }

    /// Makes directions symmetric: each pair is replaced by the mean of one hinge and the image of the other.
    pub fn symmetrized<const N: usize>(
        &self,
        directions: &[Vector3<Wide<N>>],
    ) -> Option<Vec<Vector3<Wide<N>>>> {
        let map = self.map(directions)?;
        let unit = |v: Vector3<Wide<N>>| Some(v * v.dot(&v).sqrt().inverse()?);
        let mut out = directions.to_vec();
        for &(a, b, sign) in &self.pairs {
            let sign = Wide::from_i64(sign);
            out[a] = unit(directions[a] + map * directions[b] * sign)?;
            out[b] = map * out[a] * sign;
        }
        for &(a, across) in &self.fixed {
            let image = map * directions[a];
            out[a] = unit(if across { directions[a] - image } else { directions[a] + image })?;
        }
        Some(out)
    }

    /// Returns the number of relations: two for the direction of each image, and those of the points.
    pub fn count(&self) -> usize {
        2 * self.pairs.len() + 2 * self.fixed.len()
    }

    /// Draws a random map and a frame for each hinge, with its third axis along the hinge.
    pub fn draw<const P: u64>(&self, source: &mut SplitMix) -> Option<(Matrix3<Gf<P>>, Vec<Matrix3<Gf<P>>>)> {
        let base = random_rotation::<P>(source)?;
        let axis = |frame: &Matrix3<Gf<P>>, k: usize| frame.column(k).into_owned();
        let map = self.kind.map(&axis(&base, 2))?;
        let mut frames = vec![base; self.items.len()];
        for &(a, b, sign) in &self.pairs {
            frames[a] = random_rotation(source)?;
            let x = map * axis(&frames[a], 0);
            let z = map * axis(&frames[a], 2) * Gf::from_i64(sign);
            frames[b] = Matrix3::from_columns(&[x, z.cross(&x), z]);
        }
        for &(a, _) in self.fixed.iter().filter(|(_, across)| !across) {
            let turned = base * random_turn(source)?;
            frames[a] = Matrix3::from_columns(&[axis(&turned, 1), axis(&base, 2), axis(&turned, 0)]);
        }
        Some((map, frames))
    }
}

impl<const N: usize> Relations<N> {
    /// Returns the loops of hinges that are symmetric, without common directions.
    pub(super) fn symmetric_loops(&self) -> Vec<SymmetricLoop> {
        let mut out: Vec<SymmetricLoop> = Vec::new();
        let mut taken: Vec<usize> = Vec::new();
        for (items, classes) in self.movable_loops() {
            if classes.iter().any(|c| taken.contains(c)) {
                continue;
            }
            let found = self.symmetries_of(&items, &classes).next();
            if let Some(found) = found {
                taken.extend(classes);
                out.push(found);
            }
        }
        out
    }

    /// Returns the number of half-turns and mirrors that map loops of hinges to themselves.
    pub fn symmetries(&self) -> usize {
        let loops = self.movable_loops();
        loops.iter().map(|(items, classes)| self.symmetries_of(items, classes).count()).sum()
    }

    /// Returns the loops of hinges that move if they are symmetric, with the classes of their directions: loops of six, and
    /// spherical loops of four. Others of four move only if they are a Bennett linkage.
    fn movable_loops(&self) -> Vec<(Vec<usize>, Vec<usize>)> {
        let loops = LENGTHS.into_iter().flat_map(|length| self.loops_of_hinges(length));
        let with_classes = loops.map(|items| {
            let classes = self.classes_of(&items);
            (items, classes)
        });
        let moves = |(items, classes): &(Vec<usize>, Vec<usize>)| {
            let next = |k: usize| (k + 1) % items.len();
            let meets = |k: usize| {
                self.coincide(Along::Normal(classes[k], classes[next(k)]), items[k], items[next(k)])
            };
            items.len() > 4 || (0..items.len()).all(meets)
        };
        with_classes.filter(moves).collect()
    }

    /// Returns the symmetries of a loop.
    fn symmetries_of<'a>(
        &'a self,
        items: &'a [usize],
        classes: &'a [usize],
    ) -> impl Iterator<Item = SymmetricLoop> + 'a {
        let kinds = [Kind::HalfTurn, Kind::Mirror].into_iter();
        let candidates = kinds.flat_map(|kind| kind.candidates(items.len()));
        candidates.filter_map(move |images| {
            [1, -1].into_iter().find_map(|sign| self.symmetry(items, classes, &images, sign))
        })
    }

    /// Returns the symmetry with the given images, and the given sign of the first image, if the loop has it.
    fn symmetry(
        &self,
        items: &[usize],
        classes: &[usize],
        images: &Images,
        sign: i64,
    ) -> Option<SymmetricLoop> {
        let (kind, Images { pairs, fixed, .. }) = (images.kind, images);
        let directions: Vec<Vector3<f64>> = classes.iter().map(|&c| self.rounded().directions[c]).collect();
        let (a, b) = pairs[0];
        let axis = kind.axis(&directions[a], &directions[b], sign);
        let map = kind.map(&axis).filter(|_| size(&axis) >= LEAST)?;
        let sign_of = |&(a, b): &(usize, usize)| {
            let along = (map * directions[a]).dot(&directions[b]);
            (a, b, if along < 0.0 { -1 } else { 1 })
        };
        let across = |&a: &usize| (a, (map * directions[a]).dot(&directions[a]) < 0.0);
        let pairs = pairs.iter().map(sign_of).collect();
        let fixed = fixed.iter().map(across).collect();
        let found = SymmetricLoop { items: items.to_vec(), kind, pairs, fixed };
        let is_near = found.errors(&directions, &map) <= APART.max(100.0 * self.tolerance);
        (is_near && self.views.iter().all(|view| self.is_symmetric(&found, classes, view))).then_some(found)
    }

    fn is_symmetric(&self, found: &SymmetricLoop, classes: &[usize], view: &View<Wide<N>>) -> bool {
        let directions: Vec<_> = classes.iter().map(|&c| view.directions[c]).collect();
        let Some(map) = found.map(&directions) else { return false };
        if found.errors(&directions, &map) > self.tolerance {
            return false;
        }
        found.equations(&directions, &map).iter().all(|row| {
            let points = found.items.iter().flat_map(|&i| view.points[i].iter().copied().collect::<Vec<_>>());
            self.zero(row.iter().zip(points).fold(Wide::zero(), |sum, (&x, p)| sum + x * p))
        })
    }
}

impl<const N: usize> Relations<N> {
    /// Returns the linear part of the map of a loop of the mechanism itself, in double precision.
    pub(super) fn own_map(&self, found: &SymmetricLoop) -> Option<Matrix3<f64>> {
        let (classes, view) = (self.classes_of(&found.items), self.views.first()?);
        let directions: Vec<_> = classes.iter().map(|&c| view.directions[c]).collect();
        found.map(&directions).map(|map| map.map(f64::from))
    }
}

impl Family {
    /// Returns the equations for the points on the hinges of a symmetric loop.
    pub(super) fn rows_of_symmetry<T: Number>(
        &self,
        found: &SymmetricLoop,
        map: &Matrix3<T>,
        frames: &[Matrix3<T>],
    ) -> Vec<Vec<T>> {
        let directions: Vec<Vector3<T>> =
            self.classes_of(&found.items).map(|c| frames[c].column(2).into_owned()).collect();
        found.equations(&directions, map).into_iter().map(|row| self.spread(&found.items, &row)).collect()
    }
}

/// Returns the largest entry of a vector.
fn size<T: Number>(v: &Vector3<T>) -> f64 {
    v.iter().map(|x| x.weight()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use nalgebra::{Matrix3, Vector3};

    use super::{Kind, SymmetricLoop};
    use crate::linalg::{First, Number, SplitMix};
    use crate::spatial::Field;

    fn random_vector(source: &mut SplitMix) -> Vector3<First> {
        Vector3::from_fn(|_, _| First::random(source))
    }

    /// Returns a loop of each kind.
    fn loops() -> [SymmetricLoop; 2] {
        let items: Vec<usize> = (0..6).collect();
        let half_turn = SymmetricLoop {
            items: items.clone(),
            kind: Kind::HalfTurn,
            pairs: vec![(0, 3, 1), (1, 4, -1), (2, 5, 1)],
            fixed: Vec::new(),
        };
        let mirror = SymmetricLoop {
            items,
            kind: Kind::Mirror,
            pairs: vec![(1, 5, 1), (2, 4, -1)],
            fixed: vec![(0, true), (3, false)],
        };
        [half_turn, mirror]
    }

    /// Checks that drawn frames are orthonormal and that the map takes hinges to their images.
    #[test]
    fn random_symmetric_directions_are_images_of_each_other() {
        let mut source = SplitMix::new(3);
        for found in loops() {
            let (map, frames) = found.draw(&mut source).expect("a draw");
            let hinge = |at: usize| frames[at].column(2).into_owned();
            assert!(frames.iter().all(|f| f.tr_mul(f) == Matrix3::identity()));
            assert_eq!(map * map, Matrix3::identity());
            for &(a, b, sign) in &found.pairs {
                assert_eq!(map * hinge(a), hinge(b) * First::from_i64(sign));
            }
            for &(a, across) in &found.fixed {
                assert_eq!(map * hinge(a), hinge(a) * First::from_i64(if across { -1 } else { 1 }));
            }
        }
    }

    /// Checks the equations with points that are constructed by the map: any points on a hinge and its image, points in
    /// the mirror on hinges in it, any points on hinges across it. Other points violate the equations.
    #[test]
    fn equations_hold_for_points_that_are_images_of_each_other() {
        let mut source = SplitMix::new(4);
        for found in loops() {
            let (map, frames) = found.draw(&mut source).expect("a draw");
            let directions: Vec<_> = frames.iter().map(|f| f.column(2).into_owned()).collect();
            let centre = random_vector(&mut source);
            let image = |p: Vector3<First>| map * (p - centre) + centre;
            let mut points = vec![Vector3::zeros(); 6];
            for &(a, b, _) in &found.pairs {
                points[a] = random_vector(&mut source);
                points[b] = image(points[a]) + directions[b] * First::random(&mut source);
            }
            for &(a, across) in &found.fixed {
                let point = random_vector(&mut source);
                let half = First::from_i64(2).inverse().expect("an odd prime");
                points[a] = if across { point } else { (point + image(point)) * half };
            }
            let rows = found.equations(&directions, &map);
            let zero = First::from_i64(0);
            let holds = |points: &[Vector3<First>]| {
                let values: Vec<First> = points.iter().flat_map(|p| p.iter().copied()).collect();
                rows.iter().all(|row| row.iter().zip(&values).fold(zero, |sum, (&x, &y)| sum + x * y) == zero)
            };
            assert!(holds(&points));
            let (a, ..) = found.pairs[0];
            points[a] += random_vector(&mut source);
            assert!(!holds(&points));
        }
    }
}
