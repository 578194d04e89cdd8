//! Algorithms for one configuration of a tree: kinematics, forces, mass matrix, energy, momentum.

pub(crate) mod aba;
pub(crate) mod articulated_bodies;
pub(crate) mod bias;
pub(crate) mod composite;
pub(crate) mod crba;
pub(crate) mod energy;
pub(crate) mod gravity;
pub(crate) mod jacobian;
pub(crate) mod kinematics;
pub(crate) mod momentum;
pub(crate) mod placement;
pub(crate) mod tetrahedral;
pub(crate) mod tree_constants;
pub(crate) mod wrench;
