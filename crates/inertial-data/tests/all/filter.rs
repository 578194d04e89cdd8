//! Tests of the low-pass against its known response.

#![allow(clippy::unwrap_used)]

use std::f64::consts::PI;

use inertial_data::{LowPass, motion_bandwidth};

const RATE: f64 = 200.0;

fn wave(f: f64, phase: f64, n: usize) -> Vec<f64> {
    (0..n).map(|k| (2.0 * PI * f * k as f64 / RATE + phase).sin()).collect()
}

/// Returns the amplitude and phase of a wave in the middle of a signal, by projection on whole periods.
fn response(x: &[f64], f: f64) -> (f64, f64) {
    let period = (RATE / f).round() as usize;
    let from = x.len() / 4 / period * period;
    let to = 3 * x.len() / 4 / period * period;
    let (mut s, mut c) = (0.0, 0.0);
    for k in from..to {
        let angle = 2.0 * PI * f * k as f64 / RATE;
        s += x[k] * angle.sin();
        c += x[k] * angle.cos();
    }
    let scale = 2.0 / (to - from) as f64;
    ((scale * s).hypot(scale * c), c.atan2(s))
}

#[test]
fn the_gain_is_butterworths_squared_and_the_phase_is_zero() {
    for order in [1, 2, 3, 4, 7] {
        let filter = LowPass::new(order, 10.0, RATE).unwrap();
        for f in [1.0, 5.0, 10.0, 20.0, 25.0] {
            let mut x = wave(f, 0.0, 8000);
            filter.apply(&mut x);
            let (gain, phase) = response(&x, f);
            let ratio = (PI * f / RATE).tan() / (PI * 10.0 / RATE).tan();
            let expected = 1.0 / (1.0 + ratio.powf(2.0 * order as f64));
            // The effect of the ends in the middle, 20 s away, is far below this tolerance.
            assert!((gain - expected).abs() < 1e-9, "order {order}, {f} Hz: {gain} {expected}");
            assert!((filter.gain(f, RATE) - expected).abs() < 1e-12, "order {order}, {f} Hz");
            assert!(phase.abs() < 1e-6, "order {order}, {f} Hz: phase {phase}");
        }
    }
}

#[test]
fn half_of_the_amplitude_passes_at_the_cutoff() {
    let mut x = wave(10.0, 0.3, 8000);
    LowPass::new(4, 10.0, RATE).unwrap().apply(&mut x);
    assert!((20.0 * response(&x, 10.0).0.log10() + 6.0206).abs() < 1e-3);
}

#[test]
fn constants_and_ramps_pass_up_to_the_ends() {
    let filter = LowPass::new(4, 2.0, RATE).unwrap();
    let mut ramp: Vec<f64> = (0..3000).map(|k| 5.0 + 0.01 * f64::from(k)).collect();
    let expected = ramp.clone();
    filter.apply(&mut ramp);
    // The start of the ramp is a disturbance that has decayed to 1e-3 of the filter's lag (about 0.4 here) at the first sample.
    for (x, e) in ramp.iter().zip(&expected) {
        assert!((x - e).abs() < 1e-3, "{x} {e}");
    }
}

#[test]
fn a_reversed_signal_gives_the_reversed_result() {
    let filter = LowPass::new(4, 8.0, RATE).unwrap();
    let mut x: Vec<f64> = (0..2000).map(|k| f64::from(k * k % 97) - 48.0).collect();
    let mut y: Vec<f64> = x.iter().rev().copied().collect();
    filter.apply(&mut x);
    filter.apply(&mut y);
    // Away from the ends, where the starts of the two passes differ.
    for k in 300..1700 {
        assert!((x[k] - y[1999 - k]).abs() < 1e-9);
    }
}

#[test]
fn a_tiny_signal_and_a_bad_cutoff() {
    let filter = LowPass::new(4, 8.0, RATE).unwrap();
    for n in 0..6 {
        let mut x = vec![1.0; n];
        filter.apply(&mut x);
        assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-12));
    }
    for f in [0.0, -1.0, 100.0, f64::NAN, f64::INFINITY] {
        assert!(LowPass::new(4, f, RATE).unwrap_err().to_string().contains("half the rate"));
    }
    assert!(LowPass::new(0, 8.0, RATE).is_err());
}

#[test]
fn the_bandwidth_is_that_of_the_fastest_part_not_of_the_noise() {
    let n = 8000;
    let mut noise = 1u32;
    let mut random = || {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(noise) / f64::from(u32::MAX) - 0.5
    };
    let slow = wave(0.5, 0.0, n);
    let mixed: Vec<f64> =
        wave(0.5, 0.0, n).iter().zip(wave(4.0, 1.0, n)).map(|(a, b)| a + 0.3 * b + 0.02 * random()).collect();
    let still = vec![3.0; n];
    let found = motion_bandwidth([&slow[..], &mixed, &still], RATE);
    assert!((found - 4.0).abs() < 0.1, "{found}");
    assert_eq!(motion_bandwidth([&still[..]], RATE), 0.0);
    // Neither noise alone nor a single wrong value is motion.
    let noise: Vec<f64> = (0..n).map(|_| random()).collect();
    assert_eq!(motion_bandwidth([&noise[..]], RATE), 0.0);
    let mut glitch = wave(0.5, 0.0, n);
    glitch[n / 3] += 5.0;
    assert!((motion_bandwidth([&glitch[..]], RATE) - 0.5).abs() < 0.1);
}
