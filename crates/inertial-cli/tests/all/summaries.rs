//! Tests of summary files: damaged ones are rejected, and their logs are recognized.

#![allow(clippy::unwrap_used)]

use crate::common::{Folder, refused, run};
use crate::identify::log;

const MODEL: &str = "builtin:planar-2r";

fn summarized(folder: &Folder, name: &str, log: &str, options: &[&str]) -> String {
    let out = folder.path(name).display().to_string();
    let mut args = vec!["identify", MODEL, log, "--summary-out", &out];
    args.extend(options);
    let found = run(&args);
    assert_eq!(found.status, 0, "{}", found.stderr);
    out
}

/// Returns the notes of an identification from these inputs.
fn notes(inputs: &[&str]) -> String {
    let mut args = vec!["identify", MODEL];
    args.extend(inputs);
    let found = run(&args);
    assert_eq!(found.status, 0, "{}", found.stderr);
    found.stderr
}

#[test]
fn flips_of_bits_and_digits_are_refused() {
    for name in ["s.summary", "s.json"] {
        flips_are_refused(name);
    }
}

fn flips_are_refused(name: &str) {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    let summary = summarized(&folder, name, &log, &[]);
    let text = std::fs::read(&summary).unwrap();
    let digits: Vec<usize> = (0..text.len()).filter(|&i| text[i].is_ascii_digit()).collect();
    let mut source = 7_usize;
    let mut random = |below: usize| {
        source = source.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (source >> 33) % below
    };
    let mut silent = 0;
    for trial in 0..40 {
        let mut damaged = text.clone();
        if trial % 2 == 0 {
            damaged[random(text.len())] ^= 1 << random(8);
        } else {
            let place = digits[random(digits.len())];
            damaged[place] = b'0' + (damaged[place] - b'0' + 1 + u8::try_from(random(9)).unwrap()) % 10;
        }
        let file = folder.file("damaged.summary", &damaged);
        let found = run(&["identify", MODEL, &file, "--json"]);
        if found.status == 0 {
            // A change of the last of 17 digits may not change the number.
            let same = run(&["identify", MODEL, &summary, "--json"]).stdout == found.stdout;
            assert!(same, "trial {trial} changed the result");
            silent += 1;
        } else {
            assert_eq!(found.status, 2, "{}", found.stderr);
        }
    }
    assert!(silent <= 3, "{silent} of 40 changes were not seen");
}

/// Options of the preparation, such as a filter, a lag or a choice of joints, cannot be applied to logs in a summary.
#[test]
fn options_of_preparation_are_not_ignored_with_a_summary() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    let summary = summarized(&folder, "s.summary", &log, &["--cutoff", "5"]);
    for (option, value) in
        [("--cutoff", "7"), ("--lag", "0.01"), ("--decimate", "3"), ("--slow", "0.3"), ("--joints", "joint1")]
    {
        let line = refused(&["identify", MODEL, &summary, option, value]);
        let reason = "is a summary of logs that were prepared with other options: give the logs themselves";
        assert_eq!(line, format!("{option}: {summary} {reason}"));
    }
    let map = folder.file("map.toml", "[columns]\n");
    for (option, value) in [("--columns", map.as_str()), ("--topic", "/joint_states")] {
        let line = refused(&["identify", MODEL, &summary, option, value]);
        assert_eq!(line, format!("{option}: summaries contain no columns: give the logs themselves"));
    }
    // The options of the summary, or none, are accepted.
    for options in [&["--cutoff", "5"][..], &[]] {
        assert_eq!(run(&[&["identify", MODEL, &summary], options].concat()).status, 0);
    }
}

#[test]
fn counts_that_overflow_are_refused() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    let summary = summarized(&folder, "s.json", &log, &[]);
    let text = std::fs::read_to_string(&summary).unwrap();
    let file = folder.file("many.json", text.replace("\"samples\":", "\"samples\":18446744073709551"));
    let found = run(&["identify", MODEL, &file, &file]);
    assert_eq!(found.status, 2, "{}", found.stderr);
}

#[test]
fn a_log_that_is_used_twice_is_noted() {
    let folder = Folder::new();
    let all = log(2000);
    let whole = folder.file("whole.csv", &all);
    let lines: Vec<&str> = all.lines().collect();
    let half = folder.file("half.csv", [&lines[..1], &lines[1001..]].concat().join("\n") + "\n");
    let first = folder.file("first.csv", lines[..1001].join("\n") + "\n");
    let summary = summarized(&folder, "s.summary", &whole, &[]);
    for inputs in [[&*whole, &*whole], [&summary, &whole], [&summary, &summary], [&whole, &half]] {
        assert!(notes(&inputs).contains("share rows"), "{inputs:?}");
    }
    assert!(!notes(&[&first, &half]).contains("share rows"));
    assert!(notes(&[&whole, "--validate", &half]).contains("validate with a different log"));
    assert!(!notes(&[&first, "--validate", &half]).contains("validate with a different log"));
    assert!(!notes(&[&whole, "--holdout", "0.3"]).contains("validate with"));
}

#[test]
fn other_filters_are_not_mixed_silently() {
    let folder = Folder::new();
    let all = log(2000);
    let lines: Vec<&str> = all.lines().collect();
    let half = folder.file("half.csv", [&lines[..1], &lines[1001..]].concat().join("\n") + "\n");
    let first = folder.file("first.csv", lines[..1001].join("\n") + "\n");
    let summary = summarized(&folder, "s.summary", &first, &["--cutoff", "20"]);
    assert!(notes(&[&summary, &half]).contains("were prepared with different options"));
    assert!(!notes(&[&summary, &half, "--cutoff", "20"]).contains("were prepared with different options"));
}

#[test]
fn joints_cannot_be_chosen_of_a_summary() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(1000));
    let summary = summarized(&folder, "s.summary", &log, &[]);
    let found = run(&["identify", MODEL, &summary, "--joints", "joint1"]);
    assert_eq!(found.status, 2, "{}", found.stderr);
    assert!(found.stderr.contains("--joints") && found.stderr.contains("summary"), "{}", found.stderr);
    // The joints of the summary are accepted.
    let summary = summarized(&folder, "j.summary", &log, &["--joints", "joint1"]);
    assert_eq!(run(&["identify", MODEL, &summary, "--joints", "joint1"]).status, 0);
}

/// Bytes after a packed summary, such as a second summary, were ignored.
#[test]
fn bytes_after_a_packed_summary_are_refused() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    let summary = std::fs::read(summarized(&folder, "s.summary", &log, &[])).unwrap();
    for rest in [&summary[..], b"\n"] {
        let file = folder.file("two.summary", [&summary, rest].concat());
        let line = refused(&["identify", MODEL, &file]);
        let count = rest.len();
        assert_eq!(
            line,
            format!("{file}: {count} bytes follow the summary: give several summaries as separate files")
        );
    }
    let file = folder.file("half.summary", &summary[..summary.len() / 2]);
    assert_eq!(refused(&["identify", MODEL, &file]), format!("{file}: is not a summary: it ends too early"));
    let mut damaged = summary.clone();
    // A length that no text of this size has.
    let start = b"inertial-summary-1\n".len();
    damaged[start..start + 4].fill(0xff);
    let line = refused(&["identify", MODEL, &folder.file("damaged.summary", damaged)]);
    assert!(line.contains("is not a summary: it") && !line.contains("Serde"), "{line}");
}
