//! Tests of LeRobot datasets with several short episodes.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::{arm, columns_at, motion, torque};
use inertial_data::{
    Cutoff, Log, Options, Prepared, PreparedLog, Reader as _, Source, open, prepare, write_parquet,
};

const EPISODES: usize = 6;
const SAMPLES: usize = 400;
const STEP: f64 = 0.01;
/// Time between the last sample of an episode and the first of the next (s), as documented.
const BETWEEN: f64 = 1.0;

/// Writes episodes of the motion of the arm, each from time zero; `keep` selects the samples.
fn write(folder: &Path, files: usize, keep: impl Fn(usize) -> bool) {
    std::fs::create_dir_all(folder.join("meta")).unwrap();
    std::fs::create_dir_all(folder.join("data/chunk-000")).unwrap();
    std::fs::write(folder.join("meta/info.json"), r#"{"codebase_version": "v3.0", "features": {}}"#).unwrap();
    for file in 0..files {
        let (mut times, mut episodes) = (Vec::new(), Vec::new());
        for episode in (0..EPISODES).filter(|e| e * files / EPISODES == file) {
            times.extend((0..SAMPLES).filter(|k| keep(*k)).map(|k| k as f64 * STEP));
            episodes.resize(times.len(), episode as f64);
        }
        let (mut names, mut columns) = columns_at(&times);
        "timestamp".clone_into(&mut names[0]);
        names.push("episode_index".to_owned());
        columns.push(episodes);
        let path = folder.join(format!("data/chunk-000/file-{file:03}.parquet"));
        write_parquet(&Log::new("log", names, columns).unwrap(), &path).unwrap();
    }
}

fn options() -> Options {
    Options::default().with(|o| o.cutoff = Cutoff::Off)
}

fn prepared(folder: &Path) -> inertial_data::Result<Prepared> {
    let mut reader = open(folder, &Source::default())?;
    PreparedLog::new(&arm(), reader.as_mut(), &options())?.read_all()
}

/// Tests that the inserted time does not count as a gap of the log, and that no sample in it is used.
#[test]
fn short_episodes_are_used_without_the_time_between_them() {
    for files in [1, EPISODES] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), files, |_| true);
        let found = prepared(folder.path()).unwrap();
        let period = (SAMPLES - 1) as f64 * STEP + BETWEEN;
        let mut used = 0_usize;
        for (i, &t) in found.t.iter().enumerate() {
            // Rounding must not assign the first sample of an episode to the one before.
            let episode = ((t + 1e-6) / period).floor();
            let own = t - episode * period;
            for k in 0..3 {
                let at = 3 * i + k;
                if found.keep[at] {
                    assert!(own < SAMPLES as f64 * STEP, "{t} is between episodes");
                    // The samples are on the grid of the log except for rounding, so the values are those of the log.
                    assert!((found.q[at] - motion(k, own)[0]).abs() < 1e-6, "{t}");
                    assert!((found.tau[at] - torque(k, own)).abs() < 1e-6, "{t}");
                    used += 1;
                }
            }
        }
        // A few samples at both ends of each episode, and slow ones, are left out.
        assert!(100 * used > 85 * 3 * EPISODES * SAMPLES, "{used}");
        let mut reader = open(folder.path(), &Source::default()).unwrap();
        while reader.next_rows().unwrap().is_some() {}
        assert!((reader.inserted_time() - BETWEEN * (EPISODES - 1) as f64).abs() < 1e-12);
    }
}

/// Tests that gaps in the recording itself still count: in a dataset, and in a log with the same times.
#[test]
fn gaps_within_episodes_count() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 1, |k| !(100..200).contains(&k));
    let error = prepared(folder.path()).unwrap_err().to_string();
    assert!(error.contains("of the time is in gaps"), "{error}");
    // Without knowledge of the episodes, the time between them is a gap.
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 1, |_| true);
    let log = Log::collect(open(folder.path(), &Source::default()).unwrap()).unwrap();
    let error = prepare(&arm(), &log, &options()).unwrap_err().to_string();
    assert!(error.contains("of the time is in gaps"), "{error}");
}
