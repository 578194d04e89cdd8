//! Choice of the low-pass cut-off from the spectrum of the motion.

use std::f64::consts::PI;

use inertial::consistency::significant;

use crate::clean::first_pass::LogStatistics;
use crate::clean::resample::Grid;
use crate::clean::spool::Spool;
use crate::columns::layout::Layout;
use crate::filter::butterworth::LOWEST_CUTOFF;
use crate::filter::differentiate::{Derive, MotionState};
use crate::filter::spectrum::{Band, Origin, Spectrum};
use crate::filter::velocities::Velocities;
use crate::filter::zero_phase::Kernel;
use crate::{Cutoff, Error, Filter, LowPass, Options, Result, SavitzkyGolay};

/// Minimum cut-off, in bandwidths, if noise requires less than the requested one: the motion itself is still intact (gain 0.996).
const LEAST_BANDWIDTHS: f64 = 2.0;
/// Maximum share of noise in a joint's acceleration before the number of bandwidths is reduced: errors of the regressor bias estimates
/// by the square of this share.
const NOISE: f64 = 0.1;
/// Maximum share of noise in the acceleration of any joint or of the base. The rows of the equations have half the cut-off, which
/// reduces the share to less than a fifth: regressors are biased by less than 1 %.
const NOISE_OF_ANY: f64 = 0.5;
/// Frequency (Hz) above which links and gears deform and rigid-body models are invalid; a higher cut-off is used only if the motion
/// requires it, within [`RIGID_BANDWIDTHS`].
const RIGID_HZ: f64 = 100.0;
const RIGID_BANDWIDTHS: f64 = 5.0;
/// Maximum cut-off, relative to the rate: beyond it the filter has no effect.
const HIGHEST: f64 = 0.4;
/// Number of cut-off periods after which a disturbance at one sample is negligible (it decays as exp(−2.4 f₀ t)).
pub(crate) const SMEAR: f64 = 2.0;
/// Minimum number of samples after an automatic decimation.
const FEWEST: usize = 10;
/// Share of the energy of the fastest joint of the same kind below which a joint is ignored.
const IDLE: f64 = 1e-4;

/// Cut-off with the notes that explain it.
pub(crate) struct Choice {
    pub hz: f64,
    pub notes: Vec<String>,
}

/// Cut-off that one signal needs.
struct Vote<'n> {
    name: &'n str,
    band: Band,
    hz: f64,
    /// Cut-off without regard to noise.
    wanted: f64,
    /// Share of noise in the acceleration at the chosen cut-off.
    noise: f64,
    /// Lowest cut-off that leaves the motion intact.
    least: f64,
    /// Highest cut-off for which the share of noise is at most [`NOISE_OF_ANY`].
    highest: f64,
}

impl<'n> Vote<'n> {
    /// Computes the cut-off of one signal. `derivatives` is the number of differentiations from the column to the acceleration.
    fn new(name: &'n str, band: Band, bandwidths: f64, derivatives: i32, rate: f64) -> Self {
        let least = LEAST_BANDWIDTHS.min(bandwidths) * band.bandwidth_hz;
        let rigid = RIGID_HZ.max(RIGID_BANDWIDTHS * band.bandwidth_hz);
        let wanted = (bandwidths * band.bandwidth_hz).min(rigid);
        // White noise of a column has ∫ (2πf)²ᵏ noise df in its k-th derivative. The noise of a measured velocity is given as if it were a
        // derivative over one step.
        let power = 2 * derivatives + 1;
        let white = if derivatives == 1 { band.noise * rate * rate } else { band.noise };
        let noise = (2.0 * PI).powi(power - 1) * white / f64::from(power);
        let noise = if derivatives == 0 { 0.0 } else { noise };
        let with_share =
            |share: f64| (share * share * band.acceleration / noise).powf(1.0 / f64::from(power));
        let hz = wanted.min(with_share(NOISE).max(least));
        let noise_at = |hz: f64| (noise * hz.powi(power) / band.acceleration).sqrt();
        Self { name, band, hz, wanted, noise: noise_at(hz), least, highest: with_share(NOISE_OF_ANY) }
    }

    /// Returns the choice for a log of this rate, with a cut-off limited by the noise of another signal.
    fn choice_limited_by(&self, noisy: &Self, hz: f64, rate: f64) -> Choice {
        let hz = hz.clamp(LOWEST_CUTOFF * rate, HIGHEST * rate);
        let (bandwidth, times) = (self.band.bandwidth_hz, hz / self.band.bandwidth_hz);
        let note = format!(
            "low-pass at {} Hz: {times:.1} times the motion's bandwidth of {} Hz, set by {}; a higher cut-off leaves too much noise \
             in the acceleration of {}",
            significant(hz, 4),
            significant(bandwidth, 4),
            self.name,
            noisy.name
        );
        Choice { hz, notes: vec![note] }
    }

    /// Returns the choice for a log of this rate.
    fn choice(&self, rate: f64) -> Choice {
        let (bandwidth, name) = (self.band.bandwidth_hz, self.name);
        let within = format!("the motion's bandwidth of {} Hz, set by {name}", significant(bandwidth, 4));
        let hz = self.hz.clamp(LOWEST_CUTOFF * rate, HIGHEST * rate);
        let (times, low_pass) = (hz / bandwidth, format!("low-pass at {} Hz", significant(hz, 4)));
        let mut notes = vec![if hz < self.hz {
            format!("{low_pass}, the highest for this rate: {times:.1} times {within}")
        } else if self.hz < self.wanted {
            format!(
                "{low_pass}: {times:.1} times {within}; a higher cut-off leaves too much noise in its acceleration"
            )
        } else {
            format!("{low_pass}: {times:.0} times {within}")
        }];
        if self.noise > 1.01 * NOISE {
            let share = if self.noise < 1.0 {
                format!("about {:.0} % of its acceleration is noise", 100.0 * self.noise)
            } else {
                "its acceleration is mostly noise".to_owned()
            };
            notes.push(format!("{name} is noisy: {share} even with this cut-off"));
        }
        Choice { hz, notes }
    }
}

/// Chooses the automatic cut-off: the highest one required by a joint, or by a value of `moving`; `None` if nothing moves.
pub(crate) fn choose(
    layout: &Layout,
    statistics: &LogStatistics,
    grid: &Grid,
    rows: &mut Spool,
    moving: &[usize],
    bandwidths: f64,
) -> Result<Option<Choice>> {
    let mut spectrum = Spectrum::new(layout.nv() + moving.len(), grid.count);
    if let Some(mut velocities) = Velocities::new(layout, moving, grid.step, grid.count) {
        grid.each(layout, rows, &mut |rows, _| {
            velocities.push(rows, &mut |samples| spectrum.extend(samples));
            Ok(())
        })?;
    } else {
        let mut derive = Derive::velocities(layout, grid.step, grid.count);
        let mut sample = Vec::new();
        let mut add = |state: &MotionState<'_>| {
            sample.clear();
            sample.extend_from_slice(state.v);
            sample.extend(moving.iter().map(|&place| state.raw[place]));
            spectrum.push(&sample);
            Ok(())
        };
        grid.each(layout, rows, &mut |rows, _| derive.push(rows, rows, &mut add))?;
    }
    let rate = 1.0 / grid.step;
    let stairs = |v: usize| {
        let joint = layout.joints.iter().find(|joint| joint.v == v && joint.joint_type.nv() == 1);
        let place = joint.and_then(|joint| layout.q[joint.q]);
        place.and_then(|place| statistics.channels[place].steps.stairs())
    };
    let bands = spectrum.bands(rate, |k| match layout.dq.get(k) {
        Some(None) => Origin::Derived(stairs(k)),
        _ => Origin::Measured,
    });
    let mut votes = Vec::new();
    for joint in &layout.joints {
        for v in joint.velocities() {
            let Some(band) = bands[v] else { continue };
            let idle = |other: &crate::columns::layout::LayoutJoint| {
                let alike = other.joint_type == joint.joint_type && joint.joint_type.nv() == 1;
                alike && bands[other.v].is_some_and(|other| band.energy < IDLE * other.energy)
            };
            let place = if joint.joint_type.nv() == 1 { layout.q[joint.q] } else { None };
            if layout.joints.iter().any(idle) || place.is_some_and(|place| statistics.is_still(place)) {
                continue;
            }
            let derivatives = match (layout.dq[v], layout.ddq[v]) {
                (_, Some(_)) => 0,
                (Some(_), None) => 1,
                (None, None) => 2,
            };
            votes.push(Vote::new(&layout.positions[joint.q], band, bandwidths, derivatives, rate));
        }
    }
    for (&place, band) in moving.iter().zip(&bands[layout.nv()..]) {
        let of_sensors = bandwidths.min(RIGID_BANDWIDTHS);
        votes.extend(band.map(|band| Vote::new(&layout.names[place], band, of_sensors, 0, rate)));
    }
    let Some(fastest) = votes.iter().max_by(|a, b| a.hz.total_cmp(&b.hz)) else { return Ok(None) };
    let noisiest = votes.iter().min_by(|a, b| a.highest.total_cmp(&b.highest)).unwrap_or(fastest);
    let least = votes.iter().map(|vote| vote.least).fold(0.0, f64::max);
    let limit = noisiest.highest.max(least);
    Ok(Some(if limit < fastest.hz {
        fastest.choice_limited_by(noisiest, limit, rate)
    } else {
        fastest.choice(rate)
    }))
}

/// Returns the filter and its cut-off.
pub(crate) fn kernel(
    options: &Options,
    rate: f64,
    choose: impl FnOnce() -> Result<Option<Choice>>,
    notes: &mut Vec<String>,
) -> Result<(Option<Kernel>, Option<f64>)> {
    let fixed = match options.filter {
        Filter::SavitzkyGolay { window: Some(window), order } => Some(SavitzkyGolay::new(window, order)?),
        _ => None,
    };
    let cutoff = match (options.cutoff, &fixed) {
        (Cutoff::Off, _) => return Ok((None, None)),
        (Cutoff::Hz(f), None) if f > 0.0 && f < 0.5 * rate => f,
        (Cutoff::Hz(f), None) => {
            return Err(Error::Option(format!(
                "cut-off {f} Hz: expected more than 0 and less than half the rate of the log, {} Hz",
                (5e5 * rate).round() / 1e6
            )));
        }
        (Cutoff::Hz(_), Some(_)) => {
            let message = "a Savitzky–Golay filter has a window or a cut-off, not both";
            return Err(Error::Option(message.to_owned()));
        }
        (Cutoff::Auto, Some(window)) => window.cutoff_hz(rate),
        (Cutoff::Auto, None) => {
            let Some(choice) = choose()? else { return Ok((None, None)) };
            notes.extend(choice.notes);
            choice.hz
        }
    };
    let kernel = match (options.filter, fixed) {
        (Filter::Butterworth { order }, _) => Kernel::Butterworth(LowPass::new(order, cutoff, rate)?),
        (Filter::SavitzkyGolay { .. }, Some(window)) => Kernel::SavitzkyGolay(window),
        (Filter::SavitzkyGolay { order, .. }, None) => {
            Kernel::SavitzkyGolay(SavitzkyGolay::with_cutoff(order, cutoff, rate)?)
        }
    };
    if let Kernel::SavitzkyGolay(window) = &kernel {
        let samples = window.weights().len();
        notes.push(format!("Savitzky–Golay window of {samples} samples: gain one half at {cutoff:.3} Hz"));
    }
    Ok((Some(kernel), Some(cutoff)))
}

/// Rejects options that leave no usable samples of a log of `samples`: a filter whose transients at both ends, of `smear` samples each,
/// cover the whole log, or too few samples after decimation.
pub(crate) fn check_length(
    options: &Options,
    samples: usize,
    rate: f64,
    (cutoff, smear): (Option<f64>, usize),
    every: usize,
) -> Result<()> {
    let given = match options.filter {
        Filter::SavitzkyGolay { window, .. } if window.is_some() => true,
        _ => matches!(options.cutoff, Cutoff::Hz(_)),
    };
    if let (Some(hz), true) = (cutoff, given && 2 * smear >= samples) {
        return Err(Error::Option(format!(
            "cut-off {} Hz: the log lasts {} s, and {SMEAR} periods at each end are lost to filter \
             transients; choose a higher cut-off",
            significant(hz, 4),
            significant(samples as f64 / rate, 4)
        )));
    }
    if options.decimate > 0 && samples / every < FEWEST {
        return Err(Error::Option(format!(
            "keeping one sample of {every} leaves fewer than {FEWEST} of the {samples} samples of the log"
        )));
    }
    Ok(())
}
