//! Values at and beyond the limits of `docs/limits.md`: one line of error, no panic, bounded work.

#![allow(clippy::unwrap_used)]

use crate::common::{Folder, one_line, refused, run};
use crate::identify::log;

const MODEL: &str = "builtin:planar-2r";

/// Runs a call that must be rejected; notes on a log may precede the reason.
fn refusal(args: &[&str]) -> String {
    let found = run(args);
    assert_eq!(found.status, 2, "{args:?}: {}", found.stderr);
    let last = found.stderr.lines().last().unwrap_or_default();
    assert!(!found.stderr.contains("panicked") && last.starts_with("inertial: "), "{}", found.stderr);
    last.to_owned()
}

#[test]
fn cut_offs_beyond_all_reason_are_refused() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(1000));
    for filter in ["butterworth", "savitzky-golay"] {
        for cutoff in ["1e-320", "1e-200", "1e-30", "9e-7", "2e9", "1e200"] {
            let line = refusal(&["identify", MODEL, &log, "--cutoff", cutoff, "--filter", filter]);
            assert!(line.contains("from 1e-6 to 1e9 Hz"), "{line}");
        }
    }
    // A hundred-thousandth of the rate of 200 Hz.
    let line = refusal(&["identify", MODEL, &log, "--cutoff", "0.00199"]);
    assert!(line.contains("expected at least 0.002 Hz"), "{line}");
    let line = refusal(&["identify", MODEL, &log, "--cutoff", "0.002"]);
    assert!(!line.contains("expected at least"), "{line}");
    for rate in ["1e-300", "9e-7", "2e9"] {
        let line = refusal(&["identify", MODEL, &log, "--resample", rate]);
        assert!(line.contains("expected a rate from 1e-6"), "{line}");
    }
}

#[test]
fn filter_windows_beyond_the_most_are_refused() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(1000));
    for window in ["20003", "99999999999", "18446744073709551615"] {
        let args = ["identify", MODEL, &log, "--filter", "savitzky-golay", "--filter-window", window];
        let line = refusal(&args);
        assert!(line.contains("expected at most 20001"), "{line}");
    }
    let line = refusal(&["identify", MODEL, &log, "--filter", "savitzky-golay", "--cutoff", "0.001"]);
    assert!(line.contains("needs a window of more than 20001 samples"), "{line}");
}

#[test]
fn filters_and_decimations_that_remove_the_whole_log_are_refused() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(1000));
    // The log lasts 5 s, so two periods at each end require more than 0.8 Hz.
    let line = refusal(&["identify", MODEL, &log, "--cutoff", "0.79"]);
    assert!(line.contains("cut-off 0.79 Hz: the log lasts 5 s"), "{line}");
    let args = ["identify", MODEL, &log, "--filter", "savitzky-golay", "--filter-window", "20001"];
    let line = refusal(&args);
    assert!(line.contains("choose a higher cut-off"), "{line}");
    for every in ["101", "99999999999"] {
        let line = refusal(&["identify", MODEL, &log, "--decimate", every]);
        assert!(line.contains("leaves fewer than 10 of the 1000 samples"), "{line}");
    }
}

#[test]
fn numbers_beyond_all_reason_are_refused() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(200));
    for (option, value, reason) in [
        ("--prior-weight", "1e300", "expected a number from 1e-12 to 1e12"),
        ("--prior-weight", "1e-300", "expected a number from 1e-12 to 1e12"),
        ("--gravity", "0,0,1e300", "expected three numbers up to 10000 m/s²"),
        ("--gravity", "0,0,-10001", "expected three numbers up to 10000 m/s²"),
        ("--lock", "joint2=1e300", "expected a position up to 1000000 rad or m"),
    ] {
        let line = refusal(&["identify", MODEL, &log, option, value]);
        assert!(line.contains(reason), "{line}");
    }
    for weight in ["1e-12", "1e12"] {
        assert!(run(&["identify", MODEL, &log, "--prior-weight", weight]).status < 2);
    }
}

#[test]
fn streams_with_windows_beyond_all_reason_are_refused() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(200));
    for option in ["--window", "--every", "--forget"] {
        for seconds in ["1e-300", "9e-7", "2e9", "1e300"] {
            let line = refusal(&["identify", MODEL, "--follow", &log, option, seconds]);
            assert!(line.contains("expected a time from 1e-6 to 1e9 s"), "{line}");
        }
    }
}

/// Returns a log with modified times.
fn stamped(stamp: impl Fn(usize, f64) -> String) -> String {
    let text = log(300);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (k, line) in lines.iter_mut().enumerate().skip(1) {
        let (t, rest) = line.split_once(',').unwrap();
        *line = format!("{},{rest}", stamp(k, t.parse().unwrap()));
    }
    lines.join("\n") + "\n"
}

#[test]
fn a_stream_with_time_in_nanoseconds_does_not_panic() {
    let folder = Folder::new();
    for (name, factor) in [("ns", 1e9), ("us", 1e6), ("ms", 1e3)] {
        let log = folder.file(&format!("{name}.csv"), stamped(|_, t| format!("{}", factor * t)));
        let line = refusal(&["identify", MODEL, "--follow", &log]);
        assert!(line.contains("Expected seconds"), "{line}");
        // Nanoseconds since 1970.
        let log =
            folder.file(&format!("e{name}.csv"), stamped(|_, t| format!("{}", 1.7e9 * factor + factor * t)));
        let line = refusal(&["identify", MODEL, "--follow", &log]);
        assert!(line.contains("seconds"), "{line}");
    }
}

#[test]
fn a_bad_stamp_within_a_stream_does_not_panic() {
    let folder = Folder::new();
    for stamp in ["1e300", "-1e300", "1e18", "", "nan", "inf", "-5", "later"] {
        let stamp_at = |k: usize, t: f64| if k == 150 { stamp.to_owned() } else { t.to_string() };
        let log = folder.file("l.csv", stamped(stamp_at));
        let line = refusal(&["identify", MODEL, "--follow", &log]);
        assert!(line.contains("row 151"), "{stamp}: {line}");
    }
}

/// Work continues in one thread, or ends with one line of error, if the user cannot start further processes.
#[cfg(target_os = "linux")]
#[test]
fn without_threads_the_work_goes_on() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    std::fs::set_permissions(folder.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = crate::common::command().get_program().to_owned();
    let copy = folder.path("inertial");
    std::fs::copy(program, &copy).unwrap();
    let call = |args: &str, threads: usize| {
        let script = format!("ulimit -u {threads} || exit 127; exec {} {args}", copy.display());
        // Only users other than root can exceed the process limit, and only root can change the user.
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", &script]);
        command.env("RAYON_NUM_THREADS", "4");
        command.output().ok().filter(|output| output.status.code() != Some(127))
    };
    if call("--version", 1).is_none_or(|output| !output.status.success()) {
        return;
    }
    // With a few threads the pool failed in an earlier version, although a trial before had succeeded.
    for threads in 1..=6 {
        for args in [format!("identify {MODEL} {log} --json"), format!("validate {MODEL} {log} --json")] {
            let output = call(&args, threads).unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            let went_on = output.status.success() && !stderr.contains("panicked");
            assert!(went_on, "{threads} threads: {args}: {stderr}");
        }
    }
    let output = call("serve", 1).unwrap();
    let line = one_line(&common_run(&output));
    assert!(line.contains("cannot start the threads of the server"), "{line}");
}

#[cfg(target_os = "linux")]
fn common_run(output: &std::process::Output) -> crate::common::Run {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    crate::common::Run {
        status: output.status.code().unwrap_or(-1),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}

#[test]
fn texts_beside_a_model_are_bounded() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    // One byte more than 16 MB.
    let large = folder.file("large.toml", vec![b'#'; (16 << 20) + 1]);
    for option in ["--columns", "--joint-model", "--bounds"] {
        let line = refused(&["identify", MODEL, &log, option, &large]);
        assert!(line.contains("more than the limit of 16 MB"), "{line}");
    }
}

#[test]
fn options_that_streams_ignore_are_refused() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(1000));
    let options = [
        ["--lag", "0.01"],
        ["--cutoff", "5"],
        ["--filter", "savitzky-golay"],
        ["--filter-order", "3"],
        ["--resample", "50"],
        ["--decimate", "3"],
        ["--columns", "missing.toml"],
        ["--topic", "a"],
    ];
    for [option, value] in options {
        let line = refusal(&["identify", MODEL, "--follow", &log, option, value]);
        assert!(line.contains(option) && line.contains("is not applied to streams"), "{line}");
    }
    let line = refusal(&["identify", MODEL, "--follow", &log, "--slow=-inf"]);
    assert!(line.contains("expected 0 to 1"), "{line}");
}

#[test]
fn numbers_of_a_design_that_are_not_finite_are_refused() {
    for option in ["--weight=nan", "--weight=inf", "--weight=-1", "--ground=nan", "--ground=-inf"] {
        let line = refusal(&["design", MODEL, "--iterations", "2", option]);
        assert!(line.contains(option.split('=').next().unwrap()), "{line}");
    }
}

#[test]
fn gains_that_are_nearly_certain_are_refused() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(1000));
    for spread in ["1e-308", "9e-7", "1.1e6"] {
        let line = refusal(&["identify", MODEL, &log, "--gains", spread]);
        assert!(line.contains("--gains: expected a number from 1e-6 to 1e6"), "{line}");
    }
}

#[test]
fn logs_with_too_many_columns_are_refused() {
    let folder = Folder::new();
    let names = |count: usize| (1..=count).map(|k| format!("x{k}")).collect::<Vec<_>>().join(",");
    let row = |count: usize| vec!["0"; count].join(",");
    let text = |count: usize| format!("{}\n{}\n{}\n", names(count), row(count), row(count));
    let line = refusal(&["columns", &folder.file("most.csv", text(20_001))]);
    assert!(line.contains("20001 columns, expected at most 20000"), "{line}");
}

#[test]
fn joint_models_with_too_many_terms_are_refused() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    let term =
        |k: usize| format!("[[term]]\njoint = \"joint2\"\nname = \"s{k}\"\nformula = \"sin({k}*q2)\"\n");
    let model = folder.file("many.toml", (0..301).map(term).collect::<String>());
    let line = refused(&["identify", MODEL, &log, "--joint-model", &model]);
    assert!(line.contains("many.toml: 301 terms, expected at most 300"), "{line}");
}

#[test]
fn designs_that_are_too_large_are_refused() {
    let line = refusal(&["design", MODEL, "--harmonics", "500", "--starts", "100"]);
    assert!(line.contains("the motion has too many variables"), "{line}");
}

#[test]
fn loops_that_jump_in_every_row_are_refused() {
    use std::fmt::Write as _;
    let folder = Folder::new();
    let mut text = String::from("t,q.j1,dq.j1,ddq.j1,tau.j1\n");
    for k in 0..500 {
        let (t, w) = (0.01 * f64::from(k), 12.0);
        let (sin, cos) = (w * t).sin_cos();
        let q = 0.1 * sin + 1000.0 * f64::from(k % 2);
        let _ = writeln!(text, "{t},{q},{},{},{}", 0.1 * w * cos, -0.1 * w * w * sin, t.cos());
    }
    let log = folder.file("jumps.csv", text);
    let line = refusal(&["identify", "builtin:four-bar", &log, "--trust-units", "--cutoff", "off"]);
    assert!(
        line.contains("samples from t = 0 s: sample ") && line.contains("move too far between samples"),
        "{line}"
    );
}
