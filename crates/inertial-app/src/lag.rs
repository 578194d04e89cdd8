//! Correction of a lag of the torques behind the motion.

use inertial::estimation::Identification;

use crate::{Context, Note, Result};

/// Number of samples of all logs that are used for the diagnosis.
pub(crate) const EXCERPT: usize = 1500;

/// Largest number of corrections of a torque lag; a large lag is found in several steps.
const MOST_CORRECTIONS: usize = 3;

/// Factor by which the residual may grow when a corrected lag is corrected once more.
const ACCEPTED_GROWTH: f64 = 1.01;

/// Repeats an estimate with corrected torques while it has a significant lag, if the logs can be read `again`. `estimate` gives the data and
/// the result for a lag (s).
pub(crate) fn with_corrected_lag<D>(
    again: bool,
    first: (D, Identification),
    context: &Context<'_>,
    mut estimate: impl FnMut(f64) -> Result<(D, Identification)>,
) -> Result<(D, Identification)> {
    let (mut data, mut result) = first;
    let mut corrected: Option<(f64, f64)> = None;
    for _ in 0..MOST_CORRECTIONS {
        let found = match corrected {
            None => result.certain_lag().filter(|_| again),
            Some(_) => result.rest_of_lag(),
        };
        let Some(found) = found else { break };
        let (lag, std_error) = (corrected.map_or(0.0, |c| c.0) + found.value, found.std_error);
        let (other, better) = estimate(lag)?;
        // A small remaining lag hardly changes the fit.
        let grown = if corrected.is_some() { ACCEPTED_GROWTH } else { 1.0 };
        if better.fit_relative_rms >= grown * result.fit_relative_rms {
            break;
        }
        corrected = Some((lag, std_error));
        (data, result) = (other, better);
    }
    if let Some((lag, std_error)) = corrected {
        let lag = result.set_lag(lag, std_error);
        context.note(&Note::Lag { seconds: lag.value, std_error: lag.std_error });
    }
    Ok((data, result))
}
