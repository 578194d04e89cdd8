//! Joint models: friction, springs, drive couplings and terms written by users.

pub(crate) mod expression;
pub(crate) mod file;
pub(crate) mod stribeck;
pub(crate) mod terms;
