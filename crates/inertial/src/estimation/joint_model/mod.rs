//! Joint models: friction, springs, drive couplings and user-defined terms.

pub(crate) mod expression;
pub(crate) mod file;
pub(crate) mod stribeck;
pub(crate) mod terms;
