//! Low-pass filters, choice of the cut-off, differentiation.

pub(crate) mod butterworth;
pub(crate) mod cutoff;
pub(crate) mod differentiate;
pub(crate) mod savitzky_golay;
pub(crate) mod spectrum;
pub(crate) mod velocities;
pub(crate) mod zero_phase;
