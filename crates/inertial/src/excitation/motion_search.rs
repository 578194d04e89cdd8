//! Searches for motions within limits, independent of the type of limits: postures, initial motions, steps, and the final check.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::design_options::Progress;
use super::limits::{METRES, Usage};
use super::plan::{Coordinate, Plan};
use crate::linalg::{Number, SplitMix};
use crate::optimize::sqp::{Problem, SqpOptions, SqpProgress};
use crate::{Error, Result};

/// Relative margin of each limit for the motion between samples; the final check is authoritative.
pub(super) const BETWEEN_SAMPLES: f64 = 2e-3;

/// Number of postures and motions that are tried before the limits are considered infeasible.
pub(super) const TRIES: usize = 300;

/// Largest accepted violation: half of the margin for the motion between samples.
pub(super) const FEASIBLE: f64 = 1e-3;

/// Largest violation that is repaired by a smaller motion, which the search keeps if it is the best so far.
const MENDED: f64 = 0.1;

/// Limit of a motion, with its largest value; positive values are violations.
pub(super) struct LimitValue {
    /// Description of the limit.
    pub name: String,
    pub value: f64,
    /// Whether the limit is a distance, in units of [`METRES`].
    pub is_distance: bool,
}

/// Problem whose variables are motions of a plan.
pub(super) trait MotionSearch: Problem {
    /// Returns the plan of the motions.
    fn plan(&self) -> &Plan;

    /// Returns the largest value of each limit at `x`.
    fn limits(&mut self, x: &[f64]) -> Result<Vec<LimitValue>>;

    /// Returns the largest value of any limit at `x`; infinite if the motion is impossible.
    fn largest(&mut self, x: &[f64]) -> f64;
}

/// Returns the limit that is used most at `x`.
fn worst(search: &mut impl MotionSearch, x: &[f64]) -> Result<LimitValue> {
    let none = LimitValue { name: String::new(), value: f64::NEG_INFINITY, is_distance: false };
    Ok(search.limits(x)?.into_iter().max_by(|a, b| a.value.total_cmp(&b.value)).unwrap_or(none))
}

/// Returns the description of a limit of the position (0), velocity (1) or acceleration (2) of a coordinate.
pub(super) fn bound_name(c: &Coordinate, order: usize, sign: f64) -> String {
    let which = if sign > 0.0 { "highest" } else { "lowest" };
    match order {
        0 => format!("the {which} position of {}", c.name),
        1 => format!("the speed of {}", c.name),
        _ => format!("the acceleration of {}", c.name),
    }
}

/// Finds a posture at which no limit is exceeded, as a point of the plan; `search` evaluates postures.
pub(super) fn posture(search: &mut impl MotionSearch, seed: u64) -> Result<Vec<f64>> {
    let mut x = vec![0.0; search.dimension()];
    let first = worst(search, &x)?;
    if first.value <= 0.0 {
        return Ok(x);
    }
    if search.plan().fixed_start {
        return Err(Error::Infeasible(format!(
            "the start is outside of the limits: {} is exceeded",
            first.name
        )));
    }
    let mut random = SplitMix::new(seed);
    for _ in 0..TRIES {
        let plan = search.plan();
        for (j, c) in plan.coordinates.iter().enumerate() {
            let size = 0.9 * c.reach() / plan.unit(j, 0);
            x[j * plan.functions()] = size * f64::random(&mut random);
        }
        if search.largest(&x) <= 0.0 {
            return Ok(x);
        }
    }
    Err(Error::Infeasible(format!(
        "the limits allow no posture: none of {TRIES} was found within them; in the first one {} is exceeded",
        first.name
    )))
}

/// Finds a random motion about a posture, as large as the limits permit.
pub(super) fn random_motion(search: &mut impl MotionSearch, posture: &[f64], seed: u64) -> Result<Vec<f64>> {
    let m = search.plan().functions();
    let mut random = SplitMix::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut limit = String::new();
    for _ in 0..10 {
        let direction: Vec<f64> = (0..posture.len())
            .map(|i| if i % m == 0 { 0.0 } else { f64::random(&mut random) / (1.0 + (i % m) as f64 / 4.0) })
            .collect();
        let mut size = 1.0;
        while size > 1e-4 {
            let x: Vec<f64> = posture.iter().zip(&direction).map(|(p, d)| p + size * d).collect();
            if search.largest(&x) <= 0.0 {
                if search.objective(&x, None).is_finite() {
                    return Ok(x);
                }
                break;
            }
            // If the loops cannot follow a motion at all, keep the limit that was found before.
            if let Ok(worst) = worst(search, &x) {
                limit = worst.name;
            }
            size *= 0.8;
        }
    }
    let limit = if limit.is_empty() { "too few functions of time" } else { &limit };
    Err(Error::Infeasible(format!(
        "no motion was found that stays within the limits and excites all unknowns: {limit}"
    )))
}

/// Returns a motion within the limits close to one that exceeds them a little.
pub(super) fn restored(search: &mut impl MotionSearch, x: &[f64]) -> Option<Vec<f64>> {
    let violation = search.largest(x);
    if violation > MENDED {
        return None;
    }
    // Position, velocity and acceleration scale with the motion, gravity torques do not.
    [1.0, 2.0, 4.0].into_iter().find_map(|part| {
        let smaller = search.plan().shrunk(x, 1.0 - part * violation);
        (search.largest(&smaller) <= FEASIBLE).then_some(smaller)
    })
}

/// Reduces a motion about its start until it is within all limits at every sample of the check.
pub(super) fn within_limits(checker: &mut impl MotionSearch, x: &[f64]) -> Result<Vec<f64>> {
    let mut reduction = 0.0;
    while reduction < 1.0 {
        let x = checker.plan().shrunk(x, 1.0 - reduction);
        if checker.largest(&x) <= 0.0 {
            return Ok(x);
        }
        reduction = if reduction == 0.0 { 1e-3 } else { 1.5 * reduction };
    }
    Err(Error::Infeasible("the motion does not stay within the limits between its samples".into()))
}

/// Lists the used fractions of the limits of a motion, in descending order.
pub(super) fn usage(checker: &mut impl MotionSearch, x: &[f64]) -> Result<Vec<Usage>> {
    let one = |limit: LimitValue| {
        if limit.is_distance {
            Usage::distance(limit.name, -limit.value * METRES)
        } else {
            Usage::part(limit.name, 1.0 + limit.value)
        }
    };
    let mut all: Vec<Usage> = checker.limits(x)?.into_iter().map(one).collect();
    all.sort_by(|a, b| b.used.total_cmp(&a.used));
    Ok(all)
}

/// Returns the settings of a search for a motion.
pub(super) fn settings(iterations: usize) -> SqpOptions {
    SqpOptions { iterations, tolerance: 1e-5, feasibility: FEASIBLE, ..SqpOptions::default() }
}

/// Progress of several searches together.
pub(super) struct Watched<'w> {
    watch: &'w (dyn Fn(Progress) -> bool + Sync),
    steps: Mutex<(usize, f64)>,
    ended: AtomicBool,
}

impl<'w> Watched<'w> {
    pub fn new(watch: &'w (dyn Fn(Progress) -> bool + Sync)) -> Self {
        Self { watch, steps: Mutex::new((0, f64::INFINITY)), ended: AtomicBool::new(false) }
    }

    /// Returns whether a stop was requested.
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Returns whether a stop was requested; called between steps.
    pub fn is_stopped(&self) -> bool {
        self.is_ended() || !self.steps(0, f64::INFINITY)
    }

    /// Counts one step of a search, with the value that it reached; returns whether to go on.
    pub fn step(&self, value: f64) -> bool {
        self.steps(1, value)
    }

    fn steps(&self, more: usize, value: f64) -> bool {
        // A poisoned lock contains only numbers for display.
        let mut all = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        all.0 += more;
        all.1 = all.1.min(value);
        let go_on = (self.watch)(Progress { steps: all.0, best: all.1 });
        self.ended.fetch_or(!go_on, Ordering::Relaxed);
        go_on
    }

    /// Returns the observer of one of the searches.
    pub fn observer(&self) -> impl FnMut(SqpProgress) -> bool + '_ {
        let mut last = 0;
        move |p: SqpProgress| {
            let more = p.iteration - last;
            last = p.iteration;
            self.steps(more, p.best)
        }
    }
}
