//! Distances on one body that are too large to be rounding errors of the file, however small they are beside the whole
//! machine.
//!
//! The closure error of a long boom can exceed a small feature at its end. The feature itself is written on one body,
//! where only the last decimals of that body's own numbers are uncertain. Places that the file clearly separates on one
//! body therefore never count as coincident, and links that differ clearly never count as equal.

use nalgebra::Vector3;

use super::Along;
use super::relations::{Link, Relations};
use crate::identifiability::rounding::Resolution;

/// Multiples of the last decimal place that the distance of two places on one body can be wrong by.
const UNITS: f64 = 3.0;

/// Ratio of a restored distance to the written one below which it was removed.
const REMOVED: f64 = 0.5;

impl<const N: usize> Relations<N> {
    fn share_a_body(&self, a: usize, b: usize) -> bool {
        self.items[a].bodies.iter().any(|body| self.items[b].bodies.contains(body))
    }

    /// Returns the distance of two places on one body that their own numbers leave open, where directions are known to
    /// `angle` and the places are `extent` apart.
    fn open(&self, angle: f64, extent: f64) -> f64 {
        UNITS * (self.resolution.length + angle * extent)
    }

    /// Returns whether the file clearly separates two places on one body in the directions of `along`.
    pub(super) fn separates(&self, along: Along, a: usize, b: usize) -> bool {
        if !self.share_a_body(a, b) {
            return false;
        }
        let view = self.rounded();
        let between = view.points[b] - view.points[a];
        let extent = between.norm();
        let Resolution { angle, .. } = self.resolution;
        let has = |item: usize, class: usize| self.items[item].axis.is_some_and(|o| o.class == class);
        // The axes themselves are known better than the direction of their class.
        let own = |item: usize| self.axes[item];
        match along {
            Along::Space => extent > self.open(angle, 0.0),
            Along::Across(c) => {
                let off = |u: Vector3<f64>| between.cross(&u).norm();
                let axes: Vec<Vector3<f64>> =
                    [a, b].into_iter().filter(|&i| has(i, c)).filter_map(own).collect();
                if axes.is_empty() {
                    off(view.directions[c]) > self.open(angle.max(self.tolerance), extent)
                } else {
                    axes.into_iter().all(|u| off(u) > self.open(angle, extent))
                }
            }
            Along::Axis(c) => {
                view.directions[c].dot(&between).abs() > self.open(angle.max(self.tolerance), extent)
            }
            Along::Normal(c, d) => {
                let (normal, angle) = match (own(a), own(b)) {
                    (Some(u), Some(v)) if has(a, c) && has(b, d) => (u.cross(&v), angle),
                    _ => (view.directions[c].cross(&view.directions[d]), angle.max(self.tolerance)),
                };
                let least = UNITS * (self.resolution.length * normal.norm() + angle * extent);
                normal.dot(&between).abs() > least
            }
        }
    }

    /// Returns whether the file clearly distinguishes two links as vectors, apart from the sign of one of them.
    pub(super) fn distinguishes(&self, first: Link, second: Link, sign: i64) -> bool {
        let view = self.rounded();
        let [v, w] = [first, second].map(|l| view.difference(l.along, l.from, l.to));
        let angle = self.resolution.angle.max(self.tolerance);
        (v - w * sign as f64).norm() > 2.0 * self.open(angle, self.extent(first).max(self.extent(second)))
    }

    /// Returns whether the file clearly gives two links different lengths.
    pub(super) fn differ_in_length(&self, first: Link, second: Link) -> bool {
        let view = self.rounded();
        let [v, w] = [first, second].map(|l| view.difference(l.along, l.from, l.to).norm());
        let angle = self.resolution.angle.max(self.tolerance);
        (v - w).abs() > 2.0 * self.open(angle, self.extent(first).max(self.extent(second)))
    }

    fn extent(&self, link: Link) -> f64 {
        let view = self.rounded();
        (view.points[link.to] - view.points[link.from]).norm()
    }

    /// Returns the smallest distance of two places on one body that the file clearly separates.
    pub fn smallest_feature(&self) -> Option<f64> {
        self.features().map(|(_, _, size)| size).reduce(f64::min)
    }

    /// Returns the pairs of comparable places on one body that the file clearly separates, with their distances.
    fn features(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let pairs = (0..self.items.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
        pairs.filter_map(|(a, b)| {
            let along = self.common(a, b).filter(|&along| self.separates(along, a, b))?;
            Some((a, b, self.rounded().difference(along, a, b).norm()))
        })
    }

    /// Returns whether restoring the relations removed a distance that the file clearly gives on one body; `before` are
    /// the relations as written.
    pub fn distorts(&self, before: &Self) -> bool {
        before.features().any(|(a, b, was)| {
            let is = self.common(a, b).map(|along| self.rounded().difference(along, a, b).norm());
            is.is_some_and(|is| is < REMOVED * was)
        })
    }
}
