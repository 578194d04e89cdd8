//! Reduction of a log to a [`Summary`](summary::Summary): one pass, constant memory.

pub(crate) mod blocks;
mod digest;
pub(crate) mod factor;
pub(crate) mod measurements;
pub(crate) mod online;
pub(crate) mod reduce;
pub(crate) mod row_filter;
pub(crate) mod rows;
pub(crate) mod source;
pub(crate) mod stored;
pub(crate) mod summary;
pub(crate) mod term_columns;
