//! Tests of prepared signals against the underlying motion.

#![allow(clippy::unwrap_used)]

use std::f64::consts::PI;

use crate::common::{arm, clean, columns_at, csv, motion, torque};
use inertial::mechanism::{Base, BuildOptions, MechanismBuilder, builtin};
use inertial_data::{
    CsvReader, Cutoff, Log, Options, Prepared, PreparedLog, Requirement, Source, open, prepare,
};

fn log(names: Vec<String>, columns: Vec<Vec<f64>>) -> Log {
    Log::new("log.csv", names, columns).unwrap()
}

/// Returns the maximum errors of positions, velocities, accelerations and torques among the usable samples.
fn errors(p: &Prepared) -> [f64; 4] {
    let mut worst = [0.0_f64; 4];
    for (i, &t) in p.t.iter().enumerate() {
        for k in 0..3 {
            let at = 3 * i + k;
            if p.keep[at] {
                let [q, v, a] = motion(k, t);
                let found = [p.q[at] - q, p.v[at] - v, p.a[at] - a, p.tau[at] - torque(k, t)];
                (0..4).for_each(|e| worst[e] = worst[e].max(found[e].abs()));
            }
        }
    }
    worst
}

#[test]
fn derivatives_of_sines_are_those_of_fourth_order() {
    let mechanism = arm();
    for rate in [100.0, 200.0, 400.0] {
        let (names, columns) = clean(1000, rate);
        let options = Options::default().with(|o| o.cutoff = Cutoff::Off);
        let p = prepare(&mechanism, &log(names, columns), &options).unwrap();
        assert_eq!(p.len(), 1000);
        let [q, v, a, tau] = errors(&p);
        // The stencil's leading error is w⁵h⁴/30 for the velocity, twice that times w for the acceleration; w is 6.
        let leading = 6.0_f64.powi(5) / rate.powi(4) / 30.0;
        assert!(q < 1e-12 && tau < 1e-12);
        assert!(v < 1.01 * leading && v > 0.9 * leading, "{rate}: {v} {leading}");
        assert!(a < 2.02 * 6.0 * leading, "{rate}: {a} {leading}");
    }
}

#[test]
fn the_automatic_filter_leaves_the_motion_and_takes_the_noise() {
    let mechanism = arm();
    let (names, mut columns) = clean(20_000, 1000.0);
    let p = prepare(&mechanism, &log(names.clone(), columns.clone()), &five_bandwidths()).unwrap();
    let cutoff = p.cutoff_hz.unwrap();
    // The fastest joint moves at 6 rad/s.
    assert!((cutoff - 5.0 * 6.0 / (2.0 * PI)).abs() < 0.5, "{cutoff}");
    assert!(p.notes.iter().any(|n| n.contains("low-pass at") && n.contains("bandwidth of")), "{:?}", p.notes);
    // At a fifth of the cut-off the gain is 1 − 5⁻⁸ = 1 − 2.6e-6. The rest is the effect of the reflection at the ends: a
    // hundredth of a jump of the acceleration (36), and less for the other quantities.
    let [q, v, a, tau] = errors(&p);
    assert!(q < 1e-3 && v < 1e-2 && a < 0.36 && tau < 1e-3, "{q} {v} {a} {tau}");
    assert!(p.rate_hz >= 8.0 * cutoff && p.rate_hz < 17.0 * cutoff);

    let mut state = 7u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        2.0 * f64::from(state) / f64::from(u32::MAX) - 1.0
    };
    for column in &mut columns[1..4] {
        for x in column.iter_mut() {
            *x += 1e-4 * noise();
        }
    }
    let noisy = prepare(&mechanism, &log(names, columns), &five_bandwidths()).unwrap();
    // Unfiltered, second differences of this noise at 1 kHz would be about 100 rad/s².
    assert!(errors(&noisy)[2] < 0.5, "{:?}", errors(&noisy));
}

/// Returns uniformly distributed numbers between −1 and 1.
fn noise() -> impl FnMut() -> f64 {
    let mut state = 7u32;
    move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        2.0 * f64::from(state) / f64::from(u32::MAX) - 1.0
    }
}

/// Expected cut-off for the motions of [`common::motion`], which have one frequency each: five times the highest.
const WANTED_HZ: f64 = 5.0 * 6.0 / (2.0 * PI);

/// Returns options with five bandwidths of the motion: noise and repairs are more visible than with the default.
fn five_bandwidths() -> Options {
    Options::default().with(|o| o.bandwidths = 5.0)
}

#[test]
fn the_automatic_cutoff_keeps_forty_bandwidths_below_100_hz() {
    let mechanism = arm();
    let cutoff = |rate: f64, faster: f64| {
        let (names, mut columns) = clean(20_000, rate);
        // Same motion in less time.
        columns[0].iter_mut().for_each(|t| *t /= faster);
        prepare(&mechanism, &log(names, columns), &Options::default()).unwrap().cutoff_hz.unwrap()
    };
    assert!((cutoff(1000.0, 1.0) - 8.0 * WANTED_HZ).abs() < 4.0, "{}", cutoff(1000.0, 1.0));
    // Forty times 3.8 Hz would be more than 100 Hz.
    assert!((cutoff(1000.0, 4.0) - 100.0).abs() < 1e-9, "{}", cutoff(1000.0, 4.0));
}

#[test]
fn the_automatic_cutoff_does_not_depend_on_the_encoder() {
    let mechanism = arm();
    let check = |what: &str, change: &mut dyn FnMut(&mut [Vec<f64>])| {
        let (names, mut columns) = clean(4000, 200.0);
        change(&mut columns);
        let p = prepare(&mechanism, &log(names, columns), &five_bandwidths()).unwrap();
        let cutoff = p.cutoff_hz.unwrap();
        // The window widens a line by two of the spectrum's bins, 0.1 Hz: five times that at most.
        assert!((cutoff - WANTED_HZ).abs() < 0.5, "{what}: {cutoff} {:?}", p.notes);
        p
    };
    let mut random = noise();
    let mut each = |columns: &mut [Vec<f64>], places: std::ops::Range<usize>, size: f64| {
        columns[places].iter_mut().flatten().for_each(|x| *x += size * random());
    };
    check("noise of 1e-5", &mut |c| each(c, 1..4, 1e-5));
    check("noise of 3e-3", &mut |c| each(c, 1..4, 3e-3));
    check("jitter of 1 ms", &mut |c| each(c, 0..1, 1e-3));
    let step = 2.0 * PI / 4096.0;
    check("12 bits", &mut |c| c[1..4].iter_mut().flatten().for_each(|x| *x = (*x / step).round() * step));
    // The elbow does not move: detected by its range, and despite its noise.
    for size in [1e-5, 1e-3] {
        check("held", &mut |c| {
            c[2].fill(0.5);
            each(c, 2..3, size);
        });
    }
    // The derivatives of its noise are not motion.
    let p = check("held", &mut |c| {
        c[2].fill(0.5);
        each(c, 2..3, 1e-5);
    });
    assert!((0..p.len()).all(|i| p.v[3 * i + 1] == 0.0 && p.a[3 * i + 1] == 0.0));
    // A single wrong value is reported with its row and replaced by interpolation.
    let p = check("glitch", &mut |c| {
        each(c, 1..4, 1e-5);
        c[1][1500] += 0.5;
        c[5][700] = 1e9;
    });
    let [q, v, a, tau] = errors(&p);
    assert!(q < 1e-3 && v < 1e-2 && a < 0.36 && tau < 1e-2, "{q} {v} {a} {tau}");
    for expected in ["column q1: row 1502: ", "column tau2: row 702: 1e9 is an outlier: treated as missing"] {
        assert!(p.notes.iter().any(|n| n.contains(expected)), "{expected}: {:?}", p.notes);
    }
}

#[test]
fn the_noise_of_a_slow_joint_limits_the_cutoff() {
    let mechanism = arm();
    let (names, mut columns) = clean(4000, 200.0);
    let mut random = noise();
    columns[1].iter_mut().for_each(|x| *x += 0.15 * random());
    let p = prepare(&mechanism, &log(names, columns), &Options::default()).unwrap();
    // The noise of the acceleration below f is that of the next test, (2π)⁴ f⁵/5 · 2·0.087²/200: half of the amplitude of 9/√2 rad/s²
    // of this joint at 3.4 Hz. The noise is estimated from a part of the spectrum.
    assert!((p.cutoff_hz.unwrap() - 3.37).abs() < 0.2, "{:?}", p.notes);
    assert!(p.notes.iter().any(|n| n.contains("too much noise in the acceleration of ")), "{:?}", p.notes);
}

#[test]
fn the_note_on_the_cutoff_gives_the_reason() {
    let mechanism = arm();
    let prepared = |rate: f64, size: f64| {
        let (names, mut columns) = clean(4000, rate);
        let mut random = noise();
        columns[1..4].iter_mut().flatten().for_each(|x| *x += size * random());
        prepare(&mechanism, &log(names, columns), &Options::default()).unwrap()
    };
    let told = |p: &Prepared, what: &str| assert!(p.notes.iter().any(|n| n.contains(what)), "{:?}", p.notes);
    // Five times 0.95 Hz is more than 0.4 of 10 Hz.
    let slow = prepared(10.0, 0.0);
    assert!((slow.cutoff_hz.unwrap() - 4.0).abs() < 0.01);
    told(&slow, "low-pass at 4 Hz, the highest for this rate: 4.");
    // Noise of 0.15 rad, 0.087 RMS, has 2·0.087²/200 rad² per Hz; its second derivative below f has a power of
    // (2π)⁴ f⁵/5 times that, 10 % of the amplitude of 36/√2 rad/s² at 3.1 Hz.
    let noisy = prepared(200.0, 0.15);
    assert!((noisy.cutoff_hz.unwrap() - 3.1).abs() < 0.2, "{:?}", noisy.notes);
    told(&noisy, "a higher cut-off leaves too much noise in its acceleration");
    told(&prepared(200.0, 0.5), "of its acceleration is noise even with this cut-off");
    // Signals with changes within a fraction of a period need more than five bandwidths.
    let (names, columns) = clean(4000, 200.0);
    let options = Options::default().with(|o| o.bandwidths = 40.0);
    let bent = prepare(&mechanism, &log(names, columns), &options).unwrap();
    assert!((bent.cutoff_hz.unwrap() - 8.0 * WANTED_HZ).abs() < 4.0, "{:?}", bent.notes);
    told(&bent, ": 40 times");
}

#[test]
fn stamps_that_were_rounded_are_uniform_and_others_have_the_mean_rate() {
    let mechanism = arm();
    let exact: Vec<f64> = (0..6000).map(|i| f64::from(i) / 300.0).collect();
    let (names, mut columns) = columns_at(&exact);
    columns[0].iter_mut().for_each(|t| *t = (*t * 1e3).round() / 1e3);
    let p = prepare(&mechanism, &log(names, columns), &five_bandwidths()).unwrap();
    assert!((p.log_rate_hz - 300.0).abs() < 0.02, "{}", p.log_rate_hz);
    assert!((p.cutoff_hz.unwrap() - WANTED_HZ).abs() < 0.5, "{:?}", p.notes);
    assert!(p.notes.iter().any(|n| n.contains("rounded to 0.001 s: taken as uniform")), "{:?}", p.notes);
    let [_, _, a, _] = errors(&p);
    assert!(a < 0.36, "{a}");
    // Two short steps and a long one: the median is not the mean.
    let uneven: Vec<f64> = (0..6000).map(|i| f64::from(i / 3) / 100.0 + 0.0029 * f64::from(i % 3)).collect();
    let (names, columns) = columns_at(&uneven);
    let p = prepare(&mechanism, &log(names, columns), &five_bandwidths()).unwrap();
    assert!((p.log_rate_hz - 300.0).abs() < 0.1, "{}", p.log_rate_hz);
}

#[test]
fn only_samples_near_long_gaps_are_left_out() {
    let mechanism = arm();
    let kept = |change: &dyn Fn(&mut [Vec<f64>])| {
        let (names, mut columns) = clean(4000, 200.0);
        change(&mut columns);
        let p = prepare(&mechanism, &log(names, columns), &five_bandwidths()).unwrap();
        let [q, v, a, tau] = errors(&p);
        assert!(q < 1e-3 && v < 1e-2 && a < 0.36 && tau < 1e-2, "{q} {v} {a} {tau}");
        [0, 1, 2].map(|k| p.keep.iter().skip(k).step_by(3).filter(|&&keep| keep).count())
    };
    let all = kept(&|_| ());
    let few = kept(&|c| (1..7).for_each(|k| (0..40).for_each(|i| c[k][97 * i + 13 * k] = f64::NAN)));
    assert_eq!(few, all);
    // A torque is missing for half a second: its joint loses that and two periods of the cut-off on either side, of 20 s.
    let torque = kept(&|c| c[5][2000..2100].fill(f64::NAN));
    let lost = (0.5 + 4.0 / WANTED_HZ) / 20.0;
    assert_eq!((torque[0], torque[2]), (all[0], all[2]));
    let share = (all[1] - torque[1]) as f64 / all[1] as f64;
    assert!((share - lost).abs() < 0.02, "{share} {lost}");
    // A missing position affects all joints.
    let position = kept(&|c| c[2][2000..2020].fill(f64::NAN));
    assert!((0..3).all(|k| position[k] < all[k]), "{position:?} {all:?}");
}

#[test]
fn a_held_joint_is_at_rest_despite_encoder_noise() {
    let mechanism = arm();
    let (names, mut columns) = clean(2000, 200.0);
    let mut next = noise();
    // Columns are t, q of three joints, tau of three joints.
    columns[2].iter_mut().for_each(|q| *q = 0.3 + 1e-5 * next());
    // Its measured velocity is noise, which is no derivative.
    let mut names = names;
    names.push("dq2".into());
    columns.push((0..2000).map(|_| 0.01 * next()).collect());
    let p = prepare(&mechanism, &log(names, columns), &Options::default()).unwrap();
    assert!(!p.notes.iter().any(|n| n.contains("differs from the derivative")), "{:?}", p.notes);
    assert!(
        p.notes.iter().any(|n| n.contains("does not move in this log: it is treated as fixed")),
        "{:?}",
        p.notes
    );
    for (i, row) in p.v.chunks_exact(3).zip(p.a.chunks_exact(3)).enumerate() {
        assert_eq!((row.0[1], row.1[1]), (0.0, 0.0));
        assert!((p.q[3 * i + 1] - 0.3).abs() < 1e-4);
    }
    assert!(p.v.chunks_exact(3).any(|v| v[0].abs() > 0.5));
}

#[test]
fn measured_velocities_are_used() {
    let mechanism = arm();
    let (mut names, mut columns) = clean(2000, 200.0);
    let t = columns[0].clone();
    for k in 0..3 {
        names.push(format!("dq{}", k + 1));
        // Bias that no derivative of the position contains.
        columns.push(t.iter().map(|&t| motion(k, t)[1] + 0.01).collect());
    }
    let p = prepare(&mechanism, &log(names, columns), &Options::default()).unwrap();
    let [_, v, a, _] = errors(&p);
    assert!((v - 0.01).abs() < 1e-3 && a < 3e-2, "{v} {a}");
}

#[test]
fn jitter_late_rows_doubles_and_gaps_are_repaired() {
    let mechanism = arm();
    let mut t: Vec<f64> =
        (0..4000).map(|i| (f64::from(i) + 0.2 * f64::from(i * 7919 % 101) / 101.0) / 200.0).collect();
    t.drain(1500..1520);
    let (names, mut columns) = columns_at(&t);
    for c in &mut columns {
        c.swap(700, 702);
        let double = c[900];
        c.insert(901, double);
    }
    columns[2][2500..2504].fill(f64::NAN);
    let p = prepare(&mechanism, &log(names, columns), &Options::default()).unwrap();
    let [q, v, a, tau] = errors(&p);
    // Not more than for a clean log at its ends (see above): cubic interpolation between samples 5 ms apart of a motion of
    // 6 rad/s adds about (wh)³/100, most of which the low-pass removes.
    assert!(q < 1e-3 && v < 1e-2 && a < 0.36 && tau < 1e-3, "{q} {v} {a} {tau}");
    for expected in [
        "sorted by time",
        "rows that repeat the row before were dropped: 1",
        "resampled",
        "in gaps interpolated",
        "interpolated: 4 of q2",
    ] {
        assert!(p.notes.iter().any(|n| n.contains(expected)), "{expected}: {:?}", p.notes);
    }
    // No samples around the gap are kept.
    let near = p.t.iter().position(|&t| t > 7.55).unwrap();
    assert!(!p.keep[3 * near..3 * near + 3].contains(&true));
}

#[test]
fn wrapped_angles_are_unwrapped() {
    let mechanism = arm();
    let (names, mut columns) = clean(2000, 200.0);
    let t = columns[0].clone();
    let turning = |t: f64| 2.0 * t + 0.3 * (3.0 * t).sin();
    columns[1] = t.iter().map(|&t| (turning(t) + PI).rem_euclid(2.0 * PI) - PI).collect();
    let p = prepare(&mechanism, &log(names, columns), &Options::default()).unwrap();
    for i in (0..p.len()).filter(|i| p.keep[3 * i]) {
        assert!((p.q[3 * i] - turning(p.t[i])).abs() < 1e-3);
    }
    assert!(p.notes.iter().any(|n| n.contains("shoulder was unwrapped 3 times")), "{:?}", p.notes);
}

#[test]
fn slow_samples_and_the_ends_are_not_kept() {
    let mechanism = arm();
    let (names, columns) = clean(2000, 200.0);
    let signals = log(names, columns);
    let p = prepare(&mechanism, &signals, &Options::default().with(|o| o.slow = 0.1)).unwrap();
    for i in 0..p.len() {
        for k in 0..3 {
            let speed = motion(k, p.t[i])[1] / (3.0 + 1.5 * k as f64);
            let margin = 2.0 / p.cutoff_hz.unwrap();
            let inside = p.t[i] > margin + 0.01 && p.t[i] < 9.99 - margin - 0.01;
            if speed.abs() < 0.09 || p.t[i] < margin - 0.01 {
                assert!(!p.keep[3 * i + k]);
            }
            if inside && speed.abs() > 0.12 {
                assert!(p.keep[3 * i + k], "{} {k}", p.t[i]);
            }
        }
    }
}

#[test]
fn the_holdout_is_the_end_of_the_log_without_overlap() {
    let (names, columns) = clean(2000, 200.0);
    let text = csv(&names, &columns);
    let mut reader = CsvReader::new(text.as_bytes(), "log.csv").unwrap();
    let mut log = PreparedLog::new(&arm(), &mut reader, &Options::default()).unwrap();
    let p = log.read_all().unwrap();
    let (first, last) = log.hold_out(0.25).unwrap();
    assert_eq!((first.start, first.end, last.end), (0, last.start, p.len()));
    assert!((last.len() as f64 / p.len() as f64 - 0.25).abs() < 0.01);
    let (fit, kept) = (log.read(first.clone()).unwrap(), log.read(last).unwrap());
    assert_eq!(kept.q[..], p.q[3 * first.len()..]);
    assert!(fit.t[fit.len() - 1] < kept.t[0]);
    for marks in [&fit.keep[fit.keep.len() - 3..], &kept.keep[..3], &fit.sound[fit.len() - 1..]] {
        assert!(!marks.contains(&true));
    }
    assert!(fit.keep.contains(&true) && kept.keep.contains(&true));
    for fraction in [0.0, 1.0, -0.5, f64::NAN] {
        assert!(log.hold_out(fraction).is_err());
    }
}

/// Tests that the observer is notified of reading and filtering, and does not change the result.
#[test]
fn preparing_can_be_watched() {
    let (names, columns) = clean(60_000, 200.0);
    let log = Log::new("log.csv", names.clone(), columns.clone()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv");
    std::fs::write(&path, csv(&names, &columns)).unwrap();
    let mut told = Vec::new();
    let mut reader = open(&path, &Source::default()).unwrap();
    let watched =
        PreparedLog::with_progress(&arm(), &mut reader, &Options::default(), &mut |share| told.push(share));
    assert_eq!(watched.unwrap().read_all().unwrap(), prepare(&arm(), &log, &Options::default()).unwrap());
    assert!(told.windows(2).all(|w| w[0] <= w[1]), "{told:?}");
    assert!(told[0] < 0.5 && told.last() == Some(&1.0), "{told:?}");
}

#[test]
fn parts_are_those_of_the_whole() {
    let (names, columns) = clean(3000, 200.0);
    let mut reader = CsvReader::new(csv(&names, &columns).leak().as_bytes(), "log.csv").unwrap();
    let mut log = PreparedLog::new(&arm(), &mut reader, &Options::default()).unwrap();
    let whole = prepare(&arm(), &Log::new("log.csv", names, columns).unwrap(), &Options::default()).unwrap();
    assert_eq!(log.read_all().unwrap(), whole);
    let part = log.read(7..20).unwrap();
    assert_eq!((&part.t[..], &part.a[..]), (&whole.t[7..20], &whole.a[21..60]));
    assert_eq!((&part.tau_raw[..], &part.keep[..]), (&whole.tau_raw[21..60], &whole.keep[21..60]));
    assert!(log.read(whole.len()..whole.len() + 5).unwrap().is_empty());
}

#[test]
fn a_floating_base_has_its_twist_from_its_poses() {
    let builder: MechanismBuilder = builtin::get("planar-2r").unwrap();
    let mechanism = builder.build(&BuildOptions::default().with(|o| o.base = Some(Base::Floating))).unwrap();
    let names = mechanism.position_names();
    let t: Vec<f64> = (0..3000).map(|i| f64::from(i) / 300.0).collect();
    // Rotation about z by a sine during a translation along a line: the twist is known in closed form.
    let (angle, rate) = (|t: f64| 2.5 * (2.0 * t).sin(), |t: f64| 5.0 * (2.0 * t).cos());
    let mut header = vec!["t".to_owned()];
    let mut columns = vec![t.clone()];
    let mut add = |name: &str, f: &dyn Fn(f64) -> f64| {
        header.push(name.to_owned());
        columns.push(t.iter().map(|&t| f(t)).collect());
    };
    // Loggers may write either sign of a quaternion.
    let sign = |t: f64| if (7.0 * t).sin() > 0.3 { -1.0 } else { 1.0 };
    add("base.x", &|t| (3.0 * t).sin());
    add("base.y", &|_| 0.5);
    add("base.z", &|_| 1.0);
    add("base.qx", &|_| 0.0);
    add("base.qy", &|_| 0.0);
    add("base.qz", &|t| sign(t) * (0.5 * angle(t)).sin());
    add("base.qw", &|t| sign(t) * (0.5 * angle(t)).cos());
    for (k, name) in names[7..].iter().enumerate() {
        add(&format!("q.{name}"), &|t| motion(k, t)[0]);
        add(&format!("tau.{name}"), &|t| torque(k, t));
    }
    for (k, name) in ["fx", "fy", "fz", "tx", "ty", "tz"].iter().enumerate() {
        add(&format!("wrench.{name}"), &|t| torque(k, t));
    }
    let p = prepare(&mechanism, &log(header, columns), &five_bandwidths()).unwrap();
    let nv = mechanism.nv();
    let mut checked = 0;
    for i in (0..p.len()).filter(|i| p.keep[i * nv]) {
        let (now, v) = (p.t[i], &p.v[i * nv..]);
        let speed = 3.0 * (3.0 * now).cos();
        let expected = [speed * angle(now).cos(), -speed * angle(now).sin(), 0.0, 0.0, 0.0, rate(now)];
        for k in 0..6 {
            // The filter passes the band of the twist (a few Hz) to about 1e-4 of speeds up to 5.
            assert!((v[k] - expected[k]).abs() < 2e-2, "{k} at {now}: {} {}", v[k], expected[k]);
        }
        let acceleration = -10.0 * (2.0 * now).sin();
        assert!((p.a[i * nv + 5] - acceleration).abs() < 0.1);
        checked += 1;
    }
    assert!(checked > 100);
}

#[test]
fn further_columns_come_along_filtered_alike() {
    let mechanism = arm();
    let (mut names, mut columns) = clean(2000, 200.0);
    names.push("ft.fx".into());
    columns.push(columns[4].clone());
    let options = Options::default().with(|o| o.extra = vec!["ft.fx".into()]);
    let p = prepare(&mechanism, &log(names.clone(), columns.clone()), &options).unwrap();
    // The numbers equal those of the torque that the column repeats.
    assert_eq!(p.extra, p.tau.iter().step_by(3).copied().collect::<Vec<_>>());
    assert_eq!(p.extra_raw, p.tau_raw.iter().step_by(3).copied().collect::<Vec<_>>());
    assert!((0..p.len()).all(|i| p.sound[i] || !p.keep[3 * i]) && p.sound.contains(&true));
    assert!(!p.notes.iter().any(|n| n.contains("not used")), "{:?}", p.notes);
    let missing = Options::default().with(|o| o.extra = vec!["ft.fy".into()]);
    let error = prepare(&mechanism, &log(names.clone(), columns.clone()), &missing).unwrap_err();
    assert_eq!(error.to_string(), "log.csv: there is no column ft.fy; the nearest is ft.fx");
    // Optional torques may be absent, also without a mechanism.
    let (names, columns) = ([&names[..4], &names[7..]].concat(), [&columns[..4], &columns[7..]].concat());
    assert!(prepare(&mechanism, &log(names.clone(), columns.clone()), &options).is_err());
    let options = options.with(|o| o.torques = Requirement::Optional);
    let without = prepare(&mechanism, &log(names.clone(), columns.clone()), &options).unwrap();
    assert_eq!((without.extra, without.keep.contains(&true)), (p.extra.clone(), false));
    let options = options.with(|o| o.extra = vec!["ft.fx".into(), "q3".into()]);
    let alone = inertial_data::prepare_columns(&log(names, columns), &["q3"], &options).unwrap();
    assert_eq!((alone.q.len(), alone.extra.len()), (0, 2 * alone.len()));
    // The window widens a line by up to two periods of the log, 0.2 Hz; the cut-off is five times that.
    assert!((alone.cutoff_hz.unwrap() - 5.0 * 6.0 / (2.0 * PI)).abs() < 1.0);
}

#[test]
fn a_free_flying_base_needs_no_pose() {
    let builder: MechanismBuilder = builtin::get("planar-2r").unwrap();
    let mechanism = builder.build(&BuildOptions::default().with(|o| o.base = Some(Base::Floating))).unwrap();
    let (mut names, mut columns) = clean(2000, 200.0);
    names.truncate(3);
    columns.truncate(3);
    let t = columns[0].clone();
    for (k, name) in ["base.vx", "base.vy", "base.vz", "base.wx", "base.wy", "base.wz", "momentum.px"]
        .into_iter()
        .enumerate()
    {
        names.push(name.into());
        columns.push(t.iter().map(|&t| torque(k, 0.5 * t)).collect());
    }
    let options = Options::default().with(|o| {
        o.extra = vec!["momentum.px".into()];
        o.torques = Requirement::Optional;
        o.base_pose = Requirement::Optional;
    });
    let p = prepare(&mechanism, &log(names.clone(), columns.clone()), &options).unwrap();
    assert_eq!(p.q[9 * 7..9 * 7 + 7], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    for i in (0..p.len()).filter(|&i| p.sound[i]) {
        assert!((p.v[8 * i + 4] - torque(4, 0.5 * p.t[i])).abs() < 1e-2);
    }
    let refused = prepare(
        &mechanism,
        &log(names.clone(), columns.clone()),
        &options.clone().with(|o| o.base_pose = Requirement::Required),
    );
    assert!(refused.unwrap_err().to_string().contains("no column base.x"));
    names[4] = "other".into();
    let twistless = prepare(&mechanism, &log(names, columns), &options).unwrap_err().to_string();
    assert!(twistless.contains("without its pose, a floating base needs its twist"), "{twistless}");
}

#[test]
fn late_torques_are_taken_later() {
    let mechanism = arm();
    let rate = 200.0;
    // A whole number of samples, fractions of one, and early torques.
    for lag in [0.02, 0.0123, 0.0007, -0.0161] {
        let (names, mut columns) = clean(4000, rate);
        for k in 0..3 {
            let late: Vec<f64> = columns[0].iter().map(|t| torque(k, t - lag)).collect();
            columns[4 + k] = late;
        }
        let options = Options::default().with(|o| {
            o.cutoff = Cutoff::Off;
            o.lag = lag;
        });
        let p = prepare(&mechanism, &log(names, columns), &options).unwrap();
        let [q, _, _, tau] = errors(&p);
        // The interpolation error of a cubic is w⁴h⁴ f(1 − f²)(2 − f)/24 ≤ 0.02344 w⁴h⁴ for a sine; here w is 2 and the amplitude 10.
        assert!(q < 1e-12 && tau < 0.2344 * (2.0 / rate).powi(4) + 1e-12, "{lag}: {tau:e}");
        // Torques beyond the ends of the log are not used.
        let kept = p.keep.iter().filter(|k| **k).count();
        assert!(kept > 3 * 3500 && !p.keep[3 * 3999], "{kept}");
    }
    let (names, columns) = clean(1000, rate);
    let options = Options::default().with(|o| o.lag = 2.0);
    assert!(
        prepare(&mechanism, &log(names, columns), &options).unwrap_err().to_string().contains("at most 1 s")
    );
}
