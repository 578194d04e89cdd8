//! Fuzz tests: thousands of damaged inputs for everything that reads user data; each gives a result or a one-line error.
//!
//! The tests are deterministic; `INERTIAL_FUZZ_CASES` increases their number. `scripts/fuzz.sh` searches further if
//! cargo-fuzz is installed. Damaged requests to `inertial serve` are part of the tests of the program.

use inertial_app::{Disk, identify, summary_file};

use crate::mutation::{Random, cases, damaged, seeds};
use crate::targets::{self, TARGETS, Target};

/// Runs a target on its seeds and on damaged copies of them.
fn survives(folder: &str, target: Target, seeds: &[Vec<u8>], usual: usize) {
    // Some seeds need a column map.
    let sound = seeds.iter().filter(|seed| target(seed)).count();
    assert!(2 * sound > seeds.len(), "{folder}: {sound} of {} seeds are usable", seeds.len());
    let mut random = Random(1);
    let (mut usable, cases) = (0, cases(usual));
    for _ in 0..cases {
        let input = damaged(&mut random, seeds);
        let outcome = std::panic::catch_unwind(|| target(&input));
        usable += usize::from(outcome.unwrap_or_else(|_| report(folder, &input)));
    }
    println!("{folder}: {usable} of {cases} damaged inputs are still usable");
    // Damage that always breaks the outermost syntax would not reach the code behind it.
    assert!(usable > 0, "{folder}");
}

/// Saves an input that caused a panic, and fails.
fn report(folder: &str, input: &[u8]) -> bool {
    let path = std::env::temp_dir().join(format!("inertial-damaged-{folder}-{}", input.len()));
    std::fs::write(&path, input).unwrap();
    panic!("{folder}: the input in {} ended in a panic", path.display());
}

fn run(folder: &str, usual: usize) {
    let (_, target) = TARGETS.iter().find(|(name, _)| *name == folder).unwrap();
    survives(folder, *target, &seeds(folder), usual);
}

/// Defines one test for each target.
macro_rules! targets {
    ($($test:ident: $folder:literal, $cases:literal;)*) => {
        $(#[test]
        fn $test() {
            run($folder, $cases);
        })*

        #[test]
        fn every_target_has_a_test() {
            assert_eq!(TARGETS.map(|(name, _)| name), [$($folder),*]);
        }
    };
}

targets! {
    urdf: "urdf", 2500;
    mjcf: "mjcf", 2500;
    sdf: "sdf", 2500;
    usd: "usd", 2500;
    xacro: "xacro", 2500;
    mechanism_files: "mechanism", 2500;
    tables: "csv", 1000;
    packed_tables: "gzip", 1000;
    parquet: "parquet", 1000;
    numpy: "numpy", 1000;
    matlab: "matlab", 1000;
    mcap: "mcap", 1000;
    sqlite: "sqlite", 1000;
    hdf5: "hdf5", 1000;
    ros1: "ros1", 1000;
    column_maps: "map", 500;
    joint_models: "joint-model", 500;
    bounds: "bounds", 200;
    trajectories: "trajectory", 1000;
    streams: "stream", 1000;
}

/// A summary has a checksum: damage is rejected, or has no effect (spaces, digits beyond the precision of a double).
#[test]
fn summaries() {
    let context = targets::context;
    let fitted = identify::run(targets::robot(), &targets::plain(), &context(&Disk::default())).unwrap();
    let text = serde_json::to_vec(&fitted.summary).unwrap();
    let seeds = [text.clone(), summary_file::pack(&fitted.summary).unwrap()];
    assert!(seeds.iter().all(|seed| targets::summary(seed)));
    let (mut random, cases) = (Random(1), cases(2000));
    let mut usable = 0;
    for _ in 0..cases {
        let input = damaged(&mut random, &seeds);
        if targets::summary(&input) {
            let read = summary_file::unpack(&input).unwrap();
            assert_eq!(serde_json::to_vec(&read).unwrap(), text, "a damaged summary was read as another");
            usable += 1;
        }
    }
    println!("summary: {usable} of {cases} damaged inputs are still usable");
}
