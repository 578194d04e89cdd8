//! Forces of joints whose positions are angles or distances, which a diagnosis tests one by one.

use crate::estimation::equations::Equations;
use crate::mechanism::Joint;

/// Measured force of a joint coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JointForce {
    /// Row of the equations.
    pub row: usize,
    /// Place of the coordinate among the positions of the mechanism.
    pub position: usize,
}

impl Equations<'_> {
    /// Returns the forces of joint coordinates: all rows except those of floating bases, ball joints and a base wrench.
    pub(crate) fn joint_forces(&self) -> Vec<JointForce> {
        let joints = self.mechanism().joints();
        let force = |row: usize| {
            let coordinate = self.tree_coordinate(row);
            let own = |j: &&Joint| j.follows.is_none() && j.v_range().contains(&coordinate);
            let joint = joints.iter().find(own)?;
            let is_simple = joint.q_range().len() == joint.v_range().len();
            is_simple.then(|| JointForce { row, position: joint.q + coordinate - joint.v })
        };
        (0..self.coordinates()).filter_map(force).collect()
    }

    /// Returns whether the mechanism is a tree of joints with simple coordinates on the ground, without a base wrench: errors of its
    /// positions and of its model can be diagnosed, not only those of its torques.
    pub(crate) fn is_simple_tree(&self) -> bool {
        let mechanism = self.mechanism();
        self.closed().is_none() && !self.has_base_wrench() && mechanism.nq() == mechanism.nv()
    }
}
