//! Owned states of a mechanism for many samples.

use crate::Result;
use crate::dynamics::{InverseDynamics, Samples};

/// States of a mechanism, one sample after the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct States {
    /// Number of samples.
    pub count: usize,
    /// Positions.
    pub q: Vec<f64>,
    /// Velocities.
    pub v: Vec<f64>,
    /// Accelerations.
    pub a: Vec<f64>,
}

impl States {
    /// Creates states of zeros for `count` samples.
    pub fn new(dynamics: &InverseDynamics, count: usize) -> Self {
        let (nq, nv) = (dynamics.nq(), dynamics.nv());
        Self { count, q: vec![0.0; count * nq], v: vec![0.0; count * nv], a: vec![0.0; count * nv] }
    }

    /// Borrows the states as samples for `dynamics`.
    pub fn samples<'a>(&'a self, dynamics: &InverseDynamics) -> Result<Samples<'a>> {
        Samples::new(dynamics, self.count, &self.q, &self.v, &self.a)
    }
}
