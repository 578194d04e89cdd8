//! Joint identification of several robots of one type.

pub(crate) mod identify;
pub(crate) mod payload;
