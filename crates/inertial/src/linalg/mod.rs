//! Dense linear algebra: the one place that calls faer.

mod ldl;

pub(crate) use ldl::{ldl, ldl_solve};
