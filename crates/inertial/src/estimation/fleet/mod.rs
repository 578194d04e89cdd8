//! Identification of many robots of one type together.

pub(crate) mod identify;
pub(crate) mod payload;
