//! Identity of logs.

use inertial::estimation::LogSource;

fn log(rows: std::ops::Range<u32>) -> LogSource {
    let mut out = LogSource::default();
    rows.for_each(|k| out.add_row([0.001 * f64::from(k), (0.3 * f64::from(k)).sin()]));
    out
}

#[test]
fn the_same_log_and_overlapping_logs_are_recognized() {
    let whole = log(0..4000);
    assert_eq!(whole.rows, 4000);
    assert!(whole.overlaps(&whole.clone()));
    // With two thirds of all rows in common, fewer than 3 of 16 marks agree less than once in ten thousand cases.
    assert!(log(0..3300).overlaps(&log(700..4000)));
    assert!(!log(0..2000).overlaps(&log(2000..4000)));
    assert!(!log(0..2000).overlaps(&LogSource::default()));
}
