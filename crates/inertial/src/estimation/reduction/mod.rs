//! Reduction of a log to a [`Summary`](summary::Summary): one pass, constant memory.

pub(crate) mod measurements;
pub(crate) mod online;
pub(crate) mod row_filter;
pub(crate) mod rows;
pub(crate) mod summary;
