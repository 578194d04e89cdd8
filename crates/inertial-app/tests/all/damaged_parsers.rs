//! Millions of damaged inputs for the parsers alone; each gives a result or a one-line error, in bounded time and memory.
//!
//! The input of a case depends on the parser and the number of the case only. The environment sets their number:
//!
//! ```text
//! INERTIAL_FUZZ_CASES=500000 cargo test --release -p inertial-app --test all -- --test-threads 1 --nocapture damaged_parsers
//! ```
//!
//! `INERTIAL_FUZZ_FIRST` is the number of the first case, to repeat one or to continue.

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use inertial_app::{Disk, identify, summary_file};

use crate::mutation::{Random, cases, damaged, folder_of, seeds};
use crate::parsers::PARSERS;
use crate::targets;

/// Longest time of a case. Most need less than a millisecond; a machine may be busy.
const LONGEST: Duration = Duration::from_secs(2);

/// Time after which a case counts as hanging.
const HANGING: u64 = 120;

/// Address space (bytes) that a few cases may add to the process. Inputs have a few kilobytes; the largest fixed buffers (windows of
/// decompressors, stacks of threads) have a hundred megabytes.
const MOST: u64 = 1 << 30;

/// Number of cases between two checks of the address space.
const CHECKED: u64 = 64;

/// Runs a parser on damaged seeds.
fn survives(name: &str) {
    let number = PARSERS.iter().position(|(own, ..)| *own == name).unwrap() as u64;
    let (_, parser, usual) = PARSERS[number as usize];
    let seeds = seeds_of(name);
    let sound = seeds.iter().filter(|seed| parser(seed)).count();
    assert!(2 * sound >= seeds.len(), "{name}: {sound} of {} seeds are usable", seeds.len());
    let first = std::env::var("INERTIAL_FUZZ_FIRST").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let end = first + cases(usual) as u64;
    let input = |case: u64| damaged(&mut Random((number << 40) + case), &seeds);
    let (current, done) = (AtomicU64::new(first), AtomicBool::new(false));
    let mut usable = 0;
    let started = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| watch(name, &current, &done));
        let (mut space, mut longest) = (address_space(), Duration::ZERO);
        for case in first..end {
            current.store(case, Ordering::Relaxed);
            let bytes = input(case);
            let read = || {
                let began = Instant::now();
                let outcome = catch_unwind(|| parser(&bytes));
                (outcome.unwrap_or_else(|_| fail(name, case, &bytes, "panics", &done)), began.elapsed())
            };
            let (is_usable, mut time) = read();
            if time > LONGEST {
                // Another program may have delayed it.
                time = read().1.min(time);
            }
            if time > LONGEST {
                fail(name, case, &bytes, &format!("takes {time:?}"), &done);
            }
            longest = longest.max(time);
            usable += u64::from(is_usable);
            if case % CHECKED == CHECKED - 1 || case == end - 1 {
                let now = address_space();
                if now > space + MOST {
                    fail(
                        name,
                        case,
                        &bytes,
                        &format!("(or one of the {CHECKED} before) takes {} MB", (now - space) >> 20),
                        &done,
                    );
                }
                space = now;
            }
        }
        done.store(true, Ordering::Relaxed);
        let (cases, seconds) = (end - first, started.elapsed().as_secs_f64());
        println!(
            "{name}: {usable} of {cases} damaged inputs are still usable ({:.0} µs per case, at most {:.1} ms)",
            1e6 * seconds / cases.max(1) as f64,
            1e3 * longest.as_secs_f64()
        );
    });
    // Damage that always breaks the outermost syntax would not reach the code behind it.
    assert!(usable > 0, "{name}");
}

/// Returns the seeds of a parser: its small ones and those that whole jobs can use, or summaries of an identification.
fn seeds_of(name: &str) -> Vec<Vec<u8>> {
    if name != "summary" {
        let folders = [format!("small/{name}"), name.to_owned()];
        return folders
            .iter()
            .filter(|folder| folder_of(folder).is_dir())
            .flat_map(|folder| seeds(folder))
            .collect();
    }
    let fitted =
        identify::run(targets::robot(), &targets::plain(), &targets::context(&Disk::default())).unwrap();
    vec![serde_json::to_vec(&fitted.summary).unwrap(), summary_file::pack(&fitted.summary).unwrap()]
}

/// Ends the process if a case does not end.
fn watch(name: &str, current: &AtomicU64, done: &AtomicBool) {
    let (mut last, mut since) = (u64::MAX, Instant::now());
    while !done.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
        let now = current.load(Ordering::Relaxed);
        if now != last {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() > Duration::from_secs(HANGING) {
            eprintln!("{name}: case {now} does not end");
            std::process::abort();
        }
    }
}

/// Saves an input and fails.
fn fail(name: &str, case: u64, input: &[u8], what: &str, done: &AtomicBool) -> ! {
    done.store(true, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("inertial-damaged-{name}-{case}"));
    std::fs::write(&path, input).unwrap();
    panic!("{name}: case {case}, the input in {}, {what}", path.display());
}

/// Returns the largest address space (bytes) that this process has had; zero if the system does not tell.
fn address_space() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}

/// Defines one test for each parser.
macro_rules! parsers {
    ($($test:ident: $name:literal;)*) => {
        $(#[test]
        fn $test() {
            survives($name);
        })*

        #[test]
        fn every_parser_has_a_test() {
            assert_eq!(PARSERS.map(|(name, ..)| name), [$($name),*]);
        }
    };
}

parsers! {
    urdf: "urdf";
    mjcf: "mjcf";
    sdf: "sdf";
    usd: "usd";
    xacro: "xacro";
    mechanism_files: "mechanism";
    meshes: "mesh";
    tables: "csv";
    packed_tables: "gzip";
    zstandard: "zstd";
    parquet: "parquet";
    numpy: "numpy";
    matlab: "matlab";
    mcap: "mcap";
    sqlite: "sqlite";
    hdf5: "hdf5";
    ros1: "ros1";
    column_maps: "map";
    joint_models: "joint-model";
    bounds: "bounds";
    trajectories: "trajectory";
    streams: "stream";
    summaries: "summary";
}
