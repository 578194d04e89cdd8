//! Velocities that are recorded later or earlier than the derivatives of the positions.

#![allow(clippy::unwrap_used)]

use crate::common::{arm, clean, motion};
use inertial_data::{Cutoff, Log, Options, Prepared, prepare};

const RATE: f64 = 1000.0;
const ROWS: usize = 4000;

/// Returns a log whose velocities are `delays` seconds late.
fn delayed(delays: [f64; 3]) -> Log {
    let (mut names, mut columns) = clean(ROWS, RATE);
    let joints: Vec<String> = names[1..4].iter().map(|name| name.replacen('q', "dq", 1)).collect();
    for (k, delay) in delays.into_iter().enumerate() {
        names.push(joints[k].clone());
        let velocity = |t: &f64| motion(k, t - delay)[1];
        columns.push(columns[0].iter().map(velocity).collect());
    }
    Log::new("log.csv", names, columns).unwrap()
}

fn prepared(log: &Log) -> Prepared {
    prepare(&arm(), log, &Options::default().with(|o| o.cutoff = Cutoff::Hz(30.0))).unwrap()
}

fn note(p: &Prepared) -> Option<&String> {
    p.notes.iter().find(|note| note.contains("computed from the positions"))
}

/// Velocities from a causal filter made parameters wrong, and the torques seemed to have a lag.
#[test]
fn late_velocities_are_computed_from_the_positions() {
    for delay in [0.015, -0.008] {
        let log = delayed([0.0, delay, 0.0]);
        let late = &log.names()[log.names().len() - 2];
        let p = prepared(&log);
        let note = note(&p).unwrap();
        let when = if delay > 0.0 { "later" } else { "earlier" };
        // The derivative of a delayed sine explains the difference up to its curvature.
        assert!(note.contains(&format!("{late} {} ms {when}", 1e3 * delay.abs())), "{note}");
        assert_eq!(note.matches(" ms ").count(), 1, "{note}");
        for (i, &t) in p.t.iter().enumerate() {
            for k in 0..3 {
                let at = 3 * i + k;
                let [_, v, _] = motion(k, t);
                // The cut-off is far above the motion; the ends are not usable.
                assert!(!p.keep[at] || (p.v[at] - v).abs() < 0.01, "{delay} {t} {k}: {} {v}", p.v[at]);
            }
        }
    }
}

/// Half a sample of a difference quotient, and the time between two sensors, are no reason.
#[test]
fn small_delays_are_accepted() {
    for delays in [[0.0; 3], [0.0005, 0.001, -0.001]] {
        assert_eq!(note(&prepared(&delayed(delays))), None, "{delays:?}");
    }
}
