//! Tests of `inertial bench` and `inertial demo` on the built-in models, of help and manual pages.

#![allow(clippy::unwrap_used)]

use crate::common::data::skip;
use crate::common::{Folder, command, run};

#[test]
fn bench_times_every_kernel() {
    let result = run(&["bench", "builtin:puma560", "--gravity", "0,0,-1.62", "--json"]);
    assert_eq!((result.status, result.stderr.as_str()), (0, ""));
    let value = result.json();
    assert_eq!(value["schema"], "inertial/bench/1");
    let expected = serde_json::json!({"name": "puma560", "bodies": 6, "dof": 6, "base": "fixed",
        "gravity": [0.0, 0.0, -1.62], "loops": 0, "rotors": 0});
    assert_eq!(value["model"], expected);
    let names: Vec<_> = value["kernels"].as_array().unwrap().iter().map(|k| k["name"].clone()).collect();
    let dynamics = ["rnea", "regressor", "regressor-batch", "mass-matrix", "forward-dynamics"];
    for name in dynamics.into_iter().chain(["rpna", "drng", "certificate", "base-parameters"]) {
        assert!(names.contains(&name.into()), "{name}");
    }
    for kernel in value["kernels"].as_array().unwrap() {
        let (min, median) = (kernel["min_us"].as_f64().unwrap(), kernel["median_us"].as_f64().unwrap());
        assert!(0.0 < min && min <= median && median < 1e6, "{kernel}");
    }
}

#[test]
fn options_change_the_model() {
    let model = |args: &[&str]| run(&[&["bench", "--json"], args].concat()).json()["model"].clone();
    assert_eq!(model(&["builtin:scara", "--base", "floating"])["base"], "floating");
    assert_eq!(model(&["builtin:scara", "--base=floating"])["dof"], 10);
    assert_eq!(model(&["builtin:quadruped", "--base", "fixed", "--rotors", "none"])["rotors"], 0);
    assert_eq!(model(&["builtin:four-bar", "--gravity=0,-9.81,0"])["dof"], 1);
}

#[test]
fn demo_runs_on_every_model() {
    let list = run(&["demo", "--list"]);
    assert_eq!(list.status, 0);
    let names: Vec<&str> = list.stdout.lines().filter_map(|l| l.split_whitespace().next()).collect();
    let about = |line: &str| line.find("  ").map(|gap| line.len() - line[gap..].trim_start().len());
    let aligned: Vec<_> = list.stdout.lines().map(about).collect();
    assert!(aligned.windows(2).all(|w| w[0] == w[1]), "{}", list.stdout);
    for name in [
        "puma560",
        "scara",
        "cheetah-leg",
        "quadruped",
        "arm7",
        "planar-2r",
        "four-bar",
        "2rru-1rrs",
        "2prs-1psr",
        "space-dual-arm",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    for name in names {
        let result = run(&["demo", name]);
        assert_eq!((result.status, result.stderr.as_str()), (0, ""), "{name}");
        assert!(result.stdout.contains("Are these bodies physically consistent?"), "{name}");
    }
    assert_eq!(run(&["demo"]).status, 0);
}

/// Identifies the arm from a log, and runs the whole workflow from the design of a motion.
#[test]
fn demo_arm_identifies_the_arm() {
    let demo = run(&["demo", "arm"]);
    assert_eq!(demo.status, 0, "{}", demo.stderr);
    let after = |words: &str| -> f64 {
        let (_, rest) = demo.stdout.rsplit_once(words).unwrap();
        let number = rest.split_whitespace().next().unwrap();
        number.trim_end_matches(['.', ',']).parse().unwrap()
    };
    // Half of each variance is the spread of 16 blocks, known to 37 %: the smallest of seventy standard errors is at
    // most a quarter too small.
    assert!((0.75..1.1).contains(&after("The standard errors are ")), "{}", demo.stdout);
    // Hardly any of some seventy unknowns deviates by four standard errors.
    assert!(after("largest deviation is ") < 4.5, "{}", demo.stdout);
}

/// Lines of examples fit terminals of 80 columns; paragraphs fill the width, with breaks only where the next word does not fit.
#[test]
fn help_fills_the_width_of_the_terminal() {
    for columns in [80, 120] {
        // Wider help is hard to read; the program limits it.
        let width = columns.min(110);
        let help = |args: &[&str]| {
            let done = command().args(args).env("COLUMNS", columns.to_string()).output().unwrap();
            String::from_utf8(done.stdout).unwrap()
        };
        let whole = help(&["--help"]);
        let list = whole.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
        let names: Vec<&str> = list.lines().filter_map(|l| l.split_whitespace().next()).collect();
        assert!(names.len() >= 12, "{names:?}");
        for text in names.iter().map(|name| help(&[name, "--help"])).chain([whole.clone()]) {
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines.iter().all(|l| l.chars().count() <= width), "{text}");
            let starts = |l: &str| !l.is_empty() && !l.starts_with(' ');
            for pair in lines.windows(2).filter(|pair| starts(pair[0]) && starts(pair[1])) {
                let next = pair[1].split(' ').next().unwrap();
                let joined = pair[0].chars().count() + 1 + next.chars().count();
                assert!(joined > width, "{columns} columns: {pair:?}");
            }
            // An example is copied with its line breaks: the lines are those of the source.
            let examples = lines.iter().skip_while(|l| !l.starts_with("Example")).skip(1);
            for line in examples.take_while(|l| l.starts_with("  ")) {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }
}

/// Help without a terminal has at most a hundred columns.
#[test]
fn help_fits_a_terminal() {
    let whole = run(&["--help"]);
    let commands: Vec<&str> = whole.stdout.lines().filter_map(|l| l.strip_prefix("  inertial ")).collect();
    let names = commands.iter().filter_map(|l| l.split_whitespace().next());
    for name in names.chain(["completions", "man"]) {
        let help = run(&[name, "--help"]).stdout;
        let wide = help.lines().chain(whole.stdout.lines()).find(|l| l.chars().count() > 100);
        assert_eq!(wide, None, "{name}");
    }
}

#[test]
fn manual_pages_have_examples_to_copy() {
    let folder = Folder::new();
    assert_eq!(run(&["man", folder.path("").to_str().unwrap()]).status, 0);
    let page = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap();
    let identify = page("inertial-identify.1");
    let (before, examples) = identify.split_once(".SH EXAMPLES\n.nf\n").unwrap();
    assert!(before.contains(".SH DETAILS\nLOG is a text table") && !identify.contains("EXTRA"));
    // Line continuations stay backslashes, and dashes stay dashes.
    assert!(examples.contains("\\-\\-measured momentum \\e\n    \\-\\-noise dq=5e\\-5"), "{examples}");
    assert_eq!(examples.trim_end().lines().last(), Some(".fi"));
    assert!(page("inertial-man.1").contains(".SH EXAMPLES\n.nf\n"));
    let program = page("inertial.1");
    assert!(
        program.contains(".SH DETAILS\nMODEL is a URDF")
            && program.contains(".SH EXAMPLES\n.nf\n  inertial demo")
    );
}

/// Terminals of unknown width (serial lines, some containers) report zero.
#[cfg(target_os = "linux")]
#[test]
fn tables_need_no_width() {
    let program = env!("CARGO_BIN_EXE_inertial");
    let call = format!("stty cols 0 rows 0; '{program}' check builtin:planar-2r");
    let Ok(done) = std::process::Command::new("script").args(["-qec", &call, "/dev/null"]).output() else {
        skip("there is no program `script` to make a terminal");
        return;
    };
    let shown = String::from_utf8(done.stdout).unwrap();
    assert!(shown.contains("smallest eigenvalue"), "{shown}");
}
