//! Preparation of a log for estimation, whole or as a stream.

pub(crate) mod fixed_lag;
mod poses;
pub(crate) mod prepared_log;
pub(crate) mod record;
pub(crate) mod window;
