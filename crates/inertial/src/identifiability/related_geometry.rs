//! Geometry of a mechanism with loops, with the relations that hold there to the last digit.

use super::configurations::{Site, Views};
use super::family::Relations;
use super::rounding::Resolution;
use crate::Result;
use crate::linalg::Wide;
use crate::mechanism::Assembled;

/// Tolerance of relations in multi-precision arithmetic, in units of the size of the mechanism. Exact relations hold to
/// 1e-60 or better. Rounding errors of doubles enter squared if loops contradict each other, so they stay above 1e-40.
pub(super) const RELATED: f64 = 1e-50;

/// Maximum displacement of the mechanism, in tolerances, by which intended relations may be restored.
const MOST_MOVED: f64 = 100.0;

/// Seed of the configurations in which relations and null vectors are searched. It is fixed, so that they do not depend
/// on the seed of the samples that verify them.
pub(super) const VIEWS_SEED: u64 = 1;

/// Geometry of a mechanism with the relations that hold to the last digit.
pub(super) struct RelatedGeometry<'a, 'm, const N: usize> {
    pub site: Site<'a, 'm, N>,
    pub views: Views<N>,
    /// Closure error of the loops (rad, or relative to the size of the mechanism).
    pub open: f64,
    pub relations: Relations<N>,
    /// Distance by which the geometry was moved.
    pub moved: f64,
    /// Rounding errors of the numbers on one body.
    pub resolution: Resolution,
}

impl<'a, 'm, const N: usize> RelatedGeometry<'a, 'm, N> {
    /// Finds the relations of a mechanism whose numbers were moved by `moved`.
    pub fn new(site: Site<'a, 'm, N>, moved: f64, resolution: Resolution) -> Result<Self> {
        let (views, open) = site.views(VIEWS_SEED)?;
        let relations = Relations::new(&views.configurations, &site.geometry, RELATED, resolution);
        Ok(Self { site, views, open, relations, moved, resolution })
    }

    /// Returns the relations that hold to a tolerance.
    pub fn relations_to(&self, tolerance: f64) -> Relations<N> {
        Relations::new(&self.views.configurations, &self.site.geometry, tolerance, self.resolution)
    }

    /// Returns the nearest mechanism whose loops close in all configurations, if the closure error is due to rounding
    /// alone.
    pub fn mobile(&self, rounding: f64) -> Option<Self> {
        let inclinations = self.relations_to(rounding).inclinations();
        let (base, moved) = self.site.mobile(&inclinations, VIEWS_SEED)?;
        let new = Self::new(self.site.with_base(base), moved.max(self.moved), self.resolution).ok()?;
        (moved <= MOST_MOVED * rounding && new.open <= RELATED).then_some(new)
    }

    /// Returns whether it has more relations than another one, or equally many and closed loops.
    pub fn is_better_than(&self, other: &Self) -> bool {
        let (own, others) = (self.relations.count(), other.relations.count());
        own > others || own == others && self.open <= RELATED && other.open > RELATED
    }

    /// Returns the nearest mechanism with the relations `intended`.
    pub fn restored(&self, intended: &Relations<N>) -> Option<Self> {
        self.placed(intended.nearest(&self.views.configurations[0], &self.site.geometry)?)
    }

    /// Returns the nearest mechanism with the directions of `intended` and as many of its other relations as possible.
    pub fn restored_in_part(&self, intended: &Relations<N>) -> Option<Self> {
        self.placed(intended.nearest_in_part(&self.views.configurations[0], &self.site.geometry)?)
    }

    /// Returns a mechanism in the first configuration, given with its distance.
    fn placed(&self, (nearest, moved): (Assembled<Wide<N>>, f64)) -> Option<Self> {
        let base = self.site.in_file_units(&nearest);
        Self::new(self.site.placed_at(base, self.views.q.clone()), moved, self.resolution).ok()
    }
}
