//! The model of the joints: friction, springs, drive couplings and terms that a user writes.

pub(crate) mod expression;
pub(crate) mod file;
pub(crate) mod stribeck;
pub(crate) mod terms;
