//! Tests that the logs of real robots are read and prepared as documented.

#![allow(clippy::unwrap_used)]

use crate::common::data::shared;
use inertial::mechanism::{BuildOptions, read};
use inertial_data::{Log, Options, prepare};

#[test]
fn real_logs_have_their_documented_rates() {
    let Some(data) = shared("data") else { return };
    for (robot, file, samples, rate, duration, nv) in [
        ("tx40", "motion", 45_000, 5000.0, 9.0, 6),
        ("ur10", "motion", 3441, 125.0, 27.52, 6),
        ("panda", "motion", 727, 30.0, 24.2, 7),
        ("kr300", "motion_A", 2501, 250.0, 10.0, 6),
        ("kr300", "motion_B", 2501, 250.0, 10.0, 6),
        ("kr300", "motion_C", 2501, 250.0, 10.0, 6),
    ] {
        let text = std::fs::read_to_string(data.join(robot).join("model.urdf")).unwrap();
        let mechanism =
            read::model(&text, &read::no_includes).unwrap().build(&BuildOptions::default()).unwrap();
        let log = Log::read(&data.join(robot).join(format!("{file}.csv.gz"))).unwrap();
        assert_eq!(log.len(), samples);
        let p = prepare(&mechanism, &log, &Options::default()).unwrap();
        let kept = p.keep.iter().filter(|&&k| k).count() as f64 / p.keep.len() as f64;
        println!("{robot} {file}: {} samples, kept {kept:.3}, {:?}", p.len(), p.notes);
        assert!((p.log_rate_hz - rate).abs() < 0.003 * rate, "{}", p.log_rate_hz);
        assert!((p.t[p.len() - 1] - p.t[0] - duration).abs() < 2.0 / p.rate_hz);
        assert_eq!((p.v.len(), p.keep.len()), (p.len() * nv, p.len() * nv));
        assert!(p.rate_hz >= 8.0 * p.cutoff_hz.unwrap() || p.rate_hz == p.log_rate_hz);
        // Most of each log is usable: the ends and reversals are a small part.
        assert!(kept > 0.6, "{robot}: {kept}");
        // The filtered torque equals the measured one except for noise: the band of the motion is kept.
        let energy = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
        let noise: Vec<f64> = p.tau.iter().zip(&p.tau_raw).map(|(a, b)| a - b).collect();
        let share = (energy(&noise) / energy(&p.tau_raw)).sqrt();
        println!("  removed {share:.4} of the torque's RMS");
        assert!(share < 0.25, "{robot}: {share}");
    }
}
