//! Cleaning of a log: order of rows, gaps, glitches, plausibility, a uniform time grid.

pub(crate) mod checks;
pub(crate) mod delay;
pub(crate) mod first_pass;
pub(crate) mod glitches;
pub(crate) mod resample;
pub(crate) mod spool;
pub(crate) mod timestamps;
