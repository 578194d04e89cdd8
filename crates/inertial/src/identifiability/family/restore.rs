//! Nearest member of a family to a mechanism whose relations were lost by rounding.

use nalgebra::{Matrix3, Vector3};
use num_traits::{One, Zero};

use super::relations::{Link, Relations, Vectors, is_new};
use super::symmetry::SymmetricLoop;
use super::{Along, Family, Oriented, Values};
use crate::linalg::{Echelon, Number, Pivot, SplitMix, Wide};
use crate::mechanism::{Assembled, AssembledLoop, Closing, Geometry};
use crate::spatial::{Field, Pose, skew};

/// Equations whose independent part is smaller than this, relative to their size, follow from earlier ones.
const NOISE: f64 = 1e-5;

/// Maximum displacement of the mechanism, in tolerances, by which intended relations may be restored.
const MOST_MOVED: f64 = 100.0;

/// The same for relations that are dropped where they contradict each other, in tolerances: the independent part of an
/// equation, relative to its size, due to errors of directions.
const CONTRADICTING: f64 = 20.0;

/// Maximum displacement, in tolerances, if such relations are dropped.
const MOST_MOVED_IN_PART: f64 = 4.0;

/// Maximum number of steps to find the points.
const MOST_STEPS: usize = 24;

/// Largest ratio of the residuals after and before a fast step.
const SLOW: f64 = 1e-4;

impl<const N: usize> Relations<N> {
    /// Returns the member of the family nearest to the mechanism in the first configuration `at`, and the distance
    /// moved.
    pub fn nearest(
        &self,
        at: &Assembled<Wide<N>>,
        geometry: &Geometry<Wide<N>>,
    ) -> Option<(Assembled<Wide<N>>, f64)> {
        self.nearest_with(at, geometry, &self.equal_lengths(), NOISE)
            .filter(|(_, moved)| *moved <= MOST_MOVED * self.tolerance)
            .or_else(|| self.nearest_with(at, geometry, &[], NOISE))
            .filter(|(_, moved)| *moved <= MOST_MOVED * self.tolerance)
    }

    /// Returns the nearest mechanism with all parallel and perpendicular axes of the family, and those relations of
    /// points that are clearly independent in spite of the errors of directions, and the distance moved.
    ///
    /// Relations that are dependent for the intended directions contradict each other for slightly different ones.
    pub fn nearest_in_part(
        &self,
        at: &Assembled<Wide<N>>,
        geometry: &Geometry<Wide<N>>,
    ) -> Option<(Assembled<Wide<N>>, f64)> {
        let noise = NOISE.max(CONTRADICTING * self.tolerance);
        self.nearest_with(at, geometry, &[], noise)
            .filter(|(_, moved)| *moved <= MOST_MOVED_IN_PART * self.tolerance)
    }

    /// Returns a random mechanism at a small distance (rad, or relative to the size of the mechanism) that has the same
    /// relations.
    pub fn neighbour(
        &self,
        at: &Assembled<Wide<N>>,
        geometry: &Geometry<Wide<N>>,
        distance: f64,
        source: &mut SplitMix,
    ) -> Option<Assembled<Wide<N>>> {
        let mut shifted = self.clone();
        let view = shifted.views.first_mut()?;
        for v in view.directions.iter_mut().chain(&mut view.points) {
            *v += Vector3::from_fn(|_, _| Wide::random(source)) * Wide::from(distance);
        }
        shifted.nearest_with(at, geometry, &self.equal_lengths(), NOISE).map(|found| found.0)
    }

    /// Makes the directions of symmetric loops symmetric; returns the linear parts of their maps.
    fn symmetrize(
        &self,
        symmetries: &[SymmetricLoop],
        frames: &mut [Matrix3<Wide<N>>],
    ) -> Option<Vec<Matrix3<Wide<N>>>> {
        let symmetric = |found: &SymmetricLoop| {
            let classes = self.classes_of(&found.items);
            let directions: Vec<_> = classes.iter().map(|&c| frames[c].column(2).into_owned()).collect();
            let directions = found.symmetrized(&directions)?;
            let map = found.map(&directions)?;
            classes.iter().zip(&directions).for_each(|(&c, direction)| frames[c] = frame_about(direction));
            Some(map)
        };
        symmetries.iter().map(symmetric).collect()
    }

    fn nearest_with(
        &self,
        at: &Assembled<Wide<N>>,
        geometry: &Geometry<Wide<N>>,
        lengths: &[[Link; 2]],
        noise: f64,
    ) -> Option<(Assembled<Wide<N>>, f64)> {
        // Ratios are known only up to rounding; their relations on rigid bodies need not be restored.
        let plain = self.equations.iter().filter(|e| e.is_plain());
        let (family, view) = (self.without_equations(), self.views.first()?);
        let mut frames = family.nearest_frames(&view.directions);
        let symmetries = self.symmetric_loops();
        let maps = self.symmetrize(&symmetries, &mut frames)?;
        let values = Values {
            frames: frames.clone(),
            ratios: Vec::new(),
            turns: Vec::new(),
            isograms: Vec::new(),
            symmetries: Vec::new(),
        };
        let rough = Values {
            frames: frames.iter().map(|f| f.map(f64::from)).collect(),
            ratios: Vec::new(),
            turns: Vec::new(),
            isograms: Vec::new(),
            symmetries: Vec::new(),
        };
        // Independent equations are selected in double precision.
        let mut span = Echelon::new(3 * self.items.len(), Pivot::Largest);
        let mut linear: Vec<Vec<Wide<N>>> = Vec::new();
        for equation in plain {
            let rows = family.rows(equation, &rough);
            let new: Vec<bool> = rows.iter().map(|row| is_new(&mut span, row, noise)).collect();
            if new.contains(&true) {
                let rows = family.rows(equation, &values).into_iter().zip(new);
                linear.extend(rows.filter(|(_, new)| *new).map(|(row, _)| row));
            }
        }
        for (found, map) in symmetries.iter().zip(&maps) {
            for row in family.rows_of_symmetry(found, map, &frames) {
                let rounded: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
                if is_new(&mut span, &rounded, noise) {
                    linear.push(row);
                }
            }
        }
        let own: Vec<Wide<N>> = view.points.iter().flat_map(|p| p.iter().copied()).collect();
        let mut independent = |pair: &&[Link; 2]| {
            let row: Vec<f64> = equal(pair, &frames, &own).0.into_iter().map(f64::from).collect();
            is_new(&mut span, &row, noise)
        };
        let lengths: Vec<&[Link; 2]> = lengths.iter().filter(&mut independent).collect();
        let equations = |points: &[Wide<N>]| {
            let mut rows: Vec<(Vec<Wide<N>>, Wide<N>)> =
                linear.iter().map(|row| (row.clone(), dot(row, points))).collect();
            rows.extend(lengths.iter().map(|pair| equal(pair, &frames, points)));
            rows
        };
        let points = solved(&own, equations)?;
        let moved = points.iter().zip(&own).map(|(&a, &b)| (a - b).weight()).fold(0.0, f64::max);
        let points: Vectors<N> = points.chunks_exact(3).map(|p| Vector3::new(p[0], p[1], p[2])).collect();
        let axis = |o: Oriented| {
            let u = frames[o.class].column(2).into_owned();
            if o.against { -u } else { u }
        };
        let poses = at.world_poses();
        let mut turned = 0.0f64;
        let mut aligned = |rotation: Matrix3<Wide<N>>, from: Vector3<Wide<N>>, to: Option<Oriented>| {
            let Some(to) = to.map(&axis) else { return rotation };
            turned = turned.max((from - to).iter().map(|x| x.weight()).fold(0.0, f64::max));
            between(&from, &to) * rotation
        };
        let mut world: Vec<Pose<Wide<N>>> = Vec::with_capacity(poses.len());
        let mut out = at.clone();
        for (i, (body, exact)) in out.bodies.iter_mut().zip(&geometry.bodies).enumerate() {
            let from = poses[i].rotation * exact.axis();
            let rotation = orthonormal(aligned(poses[i].rotation, from, self.items[i].axis));
            let pose = Pose::new(rotation, points[i]);
            body.pose = body.parent.map_or(pose, |p: usize| world[p].inverse() * pose);
            world.push(pose);
        }
        if let Some(gravity) = self.gravity {
            out.gravity = axis(gravity);
        }
        let of = |list: &[Pose<Wide<N>>], body: Option<usize>| body.map_or_else(Pose::identity, |i| list[i]);
        for (l, joint) in out.loops.iter_mut().enumerate() {
            let item = &self.items[world.len() + l];
            let sides = [joint.predecessor, joint.successor];
            let old_poses = [of(&poses, sides[0]) * joint.ends[0], of(&poses, sides[1]) * joint.ends[1]];
            let old = old_poses[1].rotation;
            let (rotation, closing) = match joint.closing {
                Closing::Fixed => (old, Closing::Fixed),
                Closing::Free(pivoting, frame, pitch) => {
                    (aligned(old, old * frame.column(2), item.axis), Closing::Free(pivoting, frame, pitch))
                }
                Closing::Universal(axes) => {
                    let rotation = aligned(old, old * axes[1], item.second);
                    let first = item.axis.map_or(old * axes[0], &axis);
                    (rotation, Closing::Universal([rotation.tr_mul(&first), axes[1]]))
                }
            };
            let at = Pose::new(orthonormal(rotation), points[world.len() + l]);
            let ends = sides.map(|side| of(&world, side).inverse() * at);
            *joint = AssembledLoop::new(sides[0], sides[1], ends, closing);
        }
        Some((out, moved.max(turned)))
    }
}

fn dot<const N: usize>(a: &[Wide<N>], b: &[Wide<N>]) -> Wide<N> {
    a.iter().zip(b).fold(Wide::zero(), |sum, (&x, &y)| if x.weight() == 0.0 { sum } else { sum + x * y })
}

/// Returns the equation of two links of equal length at some points: its gradient, and half the difference of the
/// squared lengths.
fn equal<const N: usize>(
    pair: &[Link; 2],
    frames: &[Matrix3<Wide<N>>],
    points: &[Wide<N>],
) -> (Vec<Wide<N>>, Wide<N>) {
    let at = |i: usize| Vector3::new(points[3 * i], points[3 * i + 1], points[3 * i + 2]);
    let (mut row, mut value) = (vec![Wide::zero(); points.len()], Wide::zero());
    for (&Link { from: a, to: b, along }, sign) in pair.iter().zip([Wide::one(), -Wide::one()]) {
        let difference = at(b) - at(a);
        let v = match along {
            Along::Across(c) => {
                let u = frames[c].column(2).into_owned();
                difference - u * u.dot(&difference)
            }
            _ => difference,
        };
        value += v.dot(&v).scaled(-1) * sign;
        for k in 0..3 {
            row[3 * b + k] += v[k] * sign;
            row[3 * a + k] -= v[k] * sign;
        }
    }
    (row, value)
}

/// Solves equations (rows and values at given points) near some points by Newton's method with least-norm steps.
///
/// The steps use factors in double precision as long as each step gains several digits, then multi-precision factors.
fn solved<const N: usize>(
    own: &[Wide<N>],
    equations: impl Fn(&[Wide<N>]) -> Vec<(Vec<Wide<N>>, Wide<N>)>,
) -> Option<Vec<Wide<N>>> {
    let mut points = own.to_vec();
    let mut rows = equations(&points);
    let size = |rows: &[(Vec<Wide<N>>, Wide<N>)]| rows.iter().map(|r| r.1.weight()).fold(0.0, f64::max);
    let mut open = size(&rows);
    for exactly in [false, true] {
        let mut factors: Option<GramFactors<Wide<N>>> = None;
        for _ in 0..MOST_STEPS {
            if open <= Wide::<N>::NEGLIGIBLE {
                return Some(points);
            }
            let gram = if let Some(known) = &factors {
                known
            } else {
                factors.insert(gram_factors(&rows, exactly)?)
            };
            let mut steps: Vec<Wide<N>> = rows.iter().map(|r| r.1).collect();
            gram.solve(&mut steps);
            let mut next = points.clone();
            for (row, &factor) in rows.iter().zip(&steps) {
                for (x, &r) in next.iter_mut().zip(&row.0).filter(|(_, r)| r.weight() != 0.0) {
                    *x -= r * factor;
                }
            }
            let then = equations(&next);
            let left = size(&then);
            // The residual no longer decreases: rounding, or contradicting equations.
            if left >= open {
                break;
            }
            let slow = left > SLOW * open;
            (points, rows, open) = (next, then, left);
            if slow {
                factors = None;
                if !exactly {
                    break;
                }
            }
        }
    }
    Some(points)
}

/// Computes the factors of the Gram matrix of the rows.
fn gram_factors<const N: usize>(
    rows: &[(Vec<Wide<N>>, Wide<N>)],
    exactly: bool,
) -> Option<GramFactors<Wide<N>>> {
    if exactly {
        return GramFactors::new(&rows.iter().map(|(row, _)| row.clone()).collect::<Vec<_>>());
    }
    let rough: Vec<Vec<f64>> =
        rows.iter().map(|(row, _)| row.iter().map(|&x| f64::from(x)).collect()).collect();
    let GramFactors { size, entries } = GramFactors::new(&rough)?;
    Some(GramFactors { size, entries: entries.into_iter().map(Wide::from).collect() })
}

/// Factors `L D Lᵀ` of the Gram matrix of independent rows. Implemented here because no library factors matrices of
/// [`Wide`] numbers.
struct GramFactors<T> {
    size: usize,
    /// Entries in row-major order: `L` below the diagonal, and the inverse of `D` on it.
    entries: Vec<T>,
}

impl<T: Number> GramFactors<T> {
    /// Factors the Gram matrix; `None` if the rows are linearly dependent.
    fn new(rows: &[Vec<T>]) -> Option<Self> {
        let n = rows.len();
        let mut a = vec![T::zero(); n * n];
        for (i, row) in rows.iter().enumerate() {
            // Each equation involves only a few points.
            let entries: Vec<(usize, T)> = nonzero(row.iter().copied());
            for (j, other) in rows[..=i].iter().enumerate() {
                a[i * n + j] = entries.iter().fold(T::zero(), |sum, &(k, x)| sum + x * other[k]);
            }
        }
        for c in 0..n {
            let inverse = a[c * n + c].inverse()?;
            a[c * n + c] = inverse;
            let column = nonzero((c + 1..n).map(|i| a[i * n + c]));
            for (place, &(i, x)) in column.iter().enumerate() {
                let (i, factor) = (c + 1 + i, x * inverse);
                for &(k, y) in &column[..=place] {
                    a[i * n + c + 1 + k].subtract_product(factor, y);
                }
                a[i * n + c] = factor;
            }
        }
        Some(Self { size: n, entries: a })
    }

    /// Replaces a right-hand side by the solution.
    fn solve(&self, x: &mut [T]) {
        let n = self.size;
        for i in 0..n {
            let (known, rest) = x.split_at_mut(i);
            let row = self.entries[i * n..].iter().zip(&*known);
            row.for_each(|(&l, &y)| rest[0].subtract_product(l, y));
        }
        (0..n).for_each(|i| x[i] *= self.entries[i * n + i]);
        for i in (0..n).rev() {
            let (rest, known) = x.split_at_mut(i);
            let row = self.entries[i * n..].iter().zip(rest);
            row.for_each(|(&l, y)| y.subtract_product(l, known[0]));
        }
    }
}

/// Returns the nonzero entries with their positions.
fn nonzero<T: Number>(entries: impl Iterator<Item = T>) -> Vec<(usize, T)> {
    entries.enumerate().filter(|(_, x)| x.weight() > 0.0).collect()
}

/// Removes the rounding errors of a rotation matrix (Newton's method for the polar factor).
fn orthonormal<const N: usize>(mut r: Matrix3<Wide<N>>) -> Matrix3<Wide<N>> {
    let (half, three) = (Wide::one().scaled(-1), Wide::from_i64(3));
    // Each step doubles the number of digits, from fifteen (or fewer for a rounded file).
    for _ in 0..10 {
        r = r * (Matrix3::identity() * three - r.tr_mul(&r)) * half;
    }
    r
}

/// Returns the smallest rotation from one unit vector to another nearby one.
fn between<T: Number>(from: &Vector3<T>, to: &Vector3<T>) -> Matrix3<T> {
    let w = skew(&from.cross(to));
    let scale = (T::one() + from.dot(to)).inverse().unwrap_or_else(T::zero);
    Matrix3::identity() + w + w * w * scale
}

impl Family {
    /// Computes orthonormal frames along the directions nearest to the given ones that satisfy the required right
    /// angles.
    pub(super) fn nearest_frames<const N: usize>(
        &self,
        directions: &[Vector3<Wide<N>>],
    ) -> Vec<Matrix3<Wide<N>>> {
        let unit = |v: Vector3<Wide<N>>| {
            let scale = v.dot(&v).sqrt().inverse().unwrap_or_else(Wide::one);
            v * scale
        };
        let mut placed: Vec<Option<Vector3<Wide<N>>>> = vec![None; directions.len()];
        for &class in &self.order {
            let across: Vectors<N> = self.across(class).filter_map(|other| placed[other]).take(2).collect();
            let own = unit(directions[class]);
            placed[class] = Some(match across.as_slice() {
                [] => own,
                [one] => unit(own - one * one.dot(&own)),
                [one, two, ..] => {
                    let normal = unit(one.cross(two));
                    if f64::from(normal.dot(&own)) < 0.0 { -normal } else { normal }
                }
            });
        }
        placed.into_iter().zip(directions).map(|(u, &d)| frame_about(&u.unwrap_or(d))).collect()
    }
}
/// Returns an orthonormal frame whose third axis is a given unit vector.
fn frame_about<T: Number>(axis: &Vector3<T>) -> Matrix3<T> {
    // Coordinate axis with the smallest component along it.
    let least = (0..3).min_by(|&i, &j| axis[i].weight().total_cmp(&axis[j].weight())).unwrap_or(0);
    let side = Vector3::ith(least, T::one());
    // Perpendicular to the axis; its length is arbitrary, but both vectors must be independent.
    let x = side - axis * axis.dot(&side);
    Matrix3::from_columns(&[x, axis.cross(&x), *axis])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Double;

    #[test]
    fn factors_of_a_gram_matrix_solve_it() {
        let mut source = SplitMix::new(3);
        let rows: Vec<Vec<Double>> = (0..9)
            .map(|i| {
                // Each row is nonzero in a part of the columns.
                let entry = |k: usize| (k / 4 == i / 3 || k / 4 == 3).then(|| Double::random(&mut source));
                (0..16).map(entry).map(|x| x.unwrap_or(Double::from(0.0))).collect()
            })
            .collect();
        let factors = GramFactors::new(&rows).unwrap();
        let expected: Vec<Double> = (0..9).map(|_| Double::random(&mut source)).collect();
        let product =
            |a: &[Double], b: &[Double]| a.iter().zip(b).fold(Double::from(0.0), |sum, (&x, &y)| sum + x * y);
        let mut x: Vec<Double> = rows
            .iter()
            .map(|a| product(&rows.iter().map(|b| product(a, b)).collect::<Vec<_>>(), &expected))
            .collect();
        factors.solve(&mut x);
        assert!(x.iter().zip(&expected).all(|(&a, &b)| (a - b).weight() < 1e-24), "{x:?}");
        // With 31 digits, linearly dependent rows give a pivot of rounding errors.
        let twice = [rows[0].clone(), rows[0].clone()];
        assert!(GramFactors::new(&twice).is_none_or(|f| f.entries[3].weight() > 1e24));
    }
}
