//! Tests of the pages of `--report`: complete, self-contained and reproducible. A browser opens them in `browser/`.

#![allow(clippy::unwrap_used)]

use crate::common;
use std::fmt::Write as _;

use crate::common::page::{data, floats, with_curves};
use crate::common::{Folder, inertial, refused, run, urdf};

#[test]
fn a_page_carries_the_result_and_how_to_repeat_it() {
    let folder = Folder::new();
    let path = folder.path("page.html");
    let args = ["analyze", "builtin:four-bar", "--json", "--report", path.to_str().unwrap()];
    let result = run(&args);
    assert_eq!((result.status, result.stderr.as_str()), (0, ""));
    let page = std::fs::read_to_string(&path).unwrap();
    let found = data(&page);
    assert_eq!(found["analysis"], result.json());
    assert_eq!(found["provenance"]["command"], format!("inertial {}", args.join(" ")));
    assert_eq!(found["provenance"]["inputs"][0]["sha256"].as_str().unwrap().len(), 64);
    for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!page.contains(outside), "{outside}");
    }
    run(&args);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), page);
}

/// Returns a log of the two-link arm, simulated with noise.
fn log(folder: &Folder, seconds: f64, rate: f64) -> String {
    let mut text = String::from("t,q1,q2\n");
    for k in 0..(seconds * rate) as usize {
        let t = k as f64 / rate;
        let q =
            [0.8 * (4.4 * t).sin() + 0.3 * (2.5 * t).cos(), 0.9 * (6.9 * t).cos() + 0.4 * (2.5 * t).sin()];
        writeln!(text, "{t},{},{}", q[0], q[1]).unwrap();
    }
    let (motion, log) = (folder.file("motion.csv", text), folder.path("log.csv"));
    let noise = ["--ignore-limits", "--noise", "tau=0.05", "--out", log.to_str().unwrap()];
    let made = run(&[&["simulate", "builtin:planar-2r", &motion][..], &noise].concat());
    assert_eq!(made.status, 0, "{}", made.stderr);
    log.to_str().unwrap().to_owned()
}

/// Returns the arguments to identify the two-link arm with a held-out part of the log.
fn identify<'a>(log: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["identify", "builtin:planar-2r", log, "--holdout", "0.3"], more].concat()
}

#[test]
fn the_page_of_identify_has_the_result_and_its_curves() {
    let folder = Folder::new();
    let (log, path) = (log(&folder, 20.0, 100.0), folder.path("page.html"));
    let call = identify(&log, &["--friction", "coulomb+viscous", "--json"]);
    let args = [&call[..], &["--report", path.to_str().unwrap()]].concat();
    let result = run(&args);
    assert_eq!(result.status, 0, "{}", result.stderr);
    // Drawing does not change the output.
    assert_eq!(run(&call).stdout, result.stdout);
    let result = result.json();
    // The page predicts sample by sample and then filters. The fit places the jump of Coulomb friction between
    // samples, the page at a sample: for 0.01 N m the difference is some 1e-5 of the residual.
    let page = with_curves(&path, &result, &["fit", "validation"], 1e-4);
    assert_eq!(page["identification"], result);
    assert_eq!(
        page["parameters"].as_array().unwrap().len(),
        result["base_parameters"].as_array().unwrap().len()
    );
    assert_eq!(
        page["singular_values"]["values"].as_array().unwrap().len() as u64,
        result["rank"].as_u64().unwrap()
    );
    assert_eq!(page["provenance"]["inputs"][1]["bytes"], std::fs::metadata(&log).unwrap().len());
    for curve in page["curves"].as_array().unwrap() {
        for (series, reported) in curve["series"]
            .as_array()
            .unwrap()
            .iter()
            .zip(result[curve["part"].as_str().unwrap()].as_array().unwrap())
        {
            assert_eq!(series["unit"], "N m");
            let spread = series["spread"].as_f64().unwrap();
            let residual = floats(&series["residual"]);
            let there: Vec<usize> = (0..residual.len()).filter(|&i| residual[i].is_finite()).collect();
            let mean =
                there.iter().map(|&i| f64::from(residual[i]).powi(2)).sum::<f64>() / there.len() as f64;
            // Precision of 32-bit floats.
            assert!((mean.sqrt() / spread - 1.0).abs() < 1e-5);
            let bins = series["histogram"]["bins"]
                .as_array()
                .unwrap()
                .iter()
                .map(|b| b.as_u64().unwrap())
                .sum::<u64>();
            assert_eq!(bins + series["histogram"]["beyond"].as_u64().unwrap(), there.len() as u64);
            // Friction in the prediction, from the estimates of the joint.
            let joint =
                result["joints"].as_array().unwrap().iter().find(|j| j["name"] == reported["joint"]).unwrap();
            let [viscous, coulomb] = ["viscous", "coulomb"].map(|k| joint[k].as_f64().unwrap());
            let friction = &series["friction"];
            for (v, f) in floats(&friction["speed"]).into_iter().zip(floats(&friction["model"])) {
                let expected = viscous * f64::from(v) + coulomb * f64::from(v).signum();
                assert!((f64::from(f) - expected).abs() < 1e-5, "{f} {expected}");
            }
        }
    }
    // Each part has a motion for playback.
    let motions = page["motions"].as_array().unwrap();
    assert_eq!(motions.len(), 2);
    for motion in motions {
        let q: Vec<Vec<f32>> = motion["q"].as_array().unwrap().iter().map(floats).collect();
        assert_eq!(q.len(), 2);
        assert!(q.iter().all(|q| q.len() as u64 == motion["length"].as_u64().unwrap()));
    }
}

#[test]
fn a_long_log_keeps_its_peaks_and_the_page_its_size() {
    let folder = Folder::new();
    // Half a million samples of two joints, unfiltered.
    let (log, path) = (log(&folder, 50.0, 10_000.0), folder.path("page.html"));
    let call = ["validate", "builtin:planar-2r", &log, "--cutoff", "off", "--slow", "0", "--json"];
    let result = run(&[&call[..], &["--report", path.to_str().unwrap()]].concat());
    assert_eq!(result.status, 0, "{}", result.stderr);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.len() < 10_000_000, "{}", text.len());
    let page = data(&text);
    assert_eq!(page["validation"], result.json());
    let curve = &page["curves"][0];
    let bucket = curve["bucket"].as_u64().unwrap();
    assert!(bucket > 1);
    let columns: Vec<f32> = std::fs::read_to_string(&log)
        .unwrap()
        .lines()
        .skip(1)
        .map(|line| line.split(',').next_back().unwrap().parse().unwrap())
        .collect();
    let shown = floats(&curve["series"][1]["measured"]);
    assert_eq!(shown.len(), 2 * columns.len().div_ceil(bucket as usize));
    for (pair, samples) in shown.chunks(2).zip(columns.chunks(bucket as usize)) {
        let least = samples.iter().copied().fold(f32::INFINITY, f32::min);
        let greatest = samples.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        assert_eq!((pair[0].min(pair[1]), pair[0].max(pair[1])), (least, greatest));
    }
}

#[test]
fn the_page_of_design_has_the_motion_within_its_limits() {
    let folder = Folder::new();
    let path = folder.path("page.html");
    let call =
        ["design", "builtin:planar-2r", "--duration", "4", "--starts", "1", "--iterations", "3", "--json"];
    let result = run(&[&call[..], &["--report", path.to_str().unwrap()]].concat());
    assert_eq!(result.status, 0, "{}", result.stderr);
    let page = data(&std::fs::read_to_string(&path).unwrap());
    assert_eq!(page["design"], result.json());
    for joint in page["trajectory"]["joints"].as_array().unwrap() {
        let quantities = joint["quantities"].as_array().unwrap();
        assert_eq!(quantities.len(), 4);
        for quantity in quantities {
            // Precision of 32-bit floats.
            let within = |x: &f32, k: usize, sign: f64| {
                quantity["limits"][k]
                    .as_f64()
                    .is_none_or(|l| sign * (f64::from(*x) - l) < 1e-6 * (1.0 + l.abs()))
            };
            assert!(floats(&quantity["values"]).iter().all(|x| within(x, 0, -1.0) && within(x, 1, 1.0)));
        }
    }
}

#[test]
fn curves_in_the_terminal_and_on_paper() {
    let folder = Folder::new();
    let (log, plots) = (log(&folder, 10.0, 100.0), folder.path("plots"));
    let call = identify(&log, &["--plot", "--plots", plots.to_str().unwrap()]);
    let made = common::command().args(call).env("COLUMNS", "60").output().unwrap();
    assert!(made.status.success());
    let text = String::from_utf8(made.stdout).unwrap();
    let drawn: Vec<&str> =
        text.lines().filter(|l| l.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c))).collect();
    // Seven lines per joint for two joints, for fit and validation.
    assert!(drawn.len() > 20 && drawn.iter().all(|l| l.chars().count() <= 60), "{text}");
    // Without a terminal there are no colours.
    assert!(!text.contains('\u{1b}'));
    let mut names: Vec<String> =
        std::fs::read_dir(&plots).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let expected = ["forces", "residuals", "spectra"]
        .map(|n| [format!("{n}-1-fit.svg"), format!("{n}-2-validation.svg")]);
    let mut expected: Vec<String> = expected
        .into_iter()
        .flatten()
        .chain(["parameters.svg".into(), "singular-values.svg".into()])
        .collect();
    expected.sort();
    assert_eq!(names, expected);
    for name in names {
        let text = std::fs::read_to_string(plots.join(&name)).unwrap();
        assert!(
            text.starts_with("<svg") && text.trim_end().ends_with("</svg>") && !text.contains("NaN"),
            "{name}"
        );
    }
    refused(&identify(&log, &["--plot", "--json"]));
    let file = folder.file("file", "");
    // If the folder is a file, nothing is printed on standard output, as for any file that cannot be written.
    let failed = run(&["validate", "builtin:planar-2r", &log, "--plots", &file]);
    assert_eq!((failed.status, failed.stdout.as_str()), (2, ""), "{}", failed.stderr);
}

#[test]
fn an_analysis_is_drawn_too() {
    let folder = Folder::new();
    let plots = folder.path("plots");
    let made = run(&["analyze", "builtin:planar-2r", "--plot", "--plots", plots.to_str().unwrap()]);
    assert_eq!(made.status, 0, "{}", made.stderr);
    assert!(
        made.stderr.starts_with("inertial: wrote ") && made.stderr.lines().count() == 1,
        "{}",
        made.stderr
    );
    // First link: hx and Izz are base parameters, hy is identifiable alone, the mass is not identifiable. Second
    // link: the mass is part of combinations of the first.
    assert!(made.stdout.ends_with("link1 █▓▓░░░░░░░\nlink2 ███▒░░░░░░\n"), "{}", made.stdout);
    for name in ["identifiability.svg", "graph.svg"] {
        let text = std::fs::read_to_string(plots.join(name)).unwrap();
        assert!(text.starts_with("<svg") && text.contains("link2"), "{name}");
    }
    for format in ["--json", "--csv", "--latex"] {
        refused(&["analyze", "builtin:planar-2r", "--plot", format]);
    }
}

#[test]
fn available_meshes_are_drawn() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("arm/urdf")).unwrap();
    std::fs::create_dir_all(folder.path("arm/meshes")).unwrap();
    // Tetrahedron in millimetres.
    folder.file(
        "arm/meshes/link.obj",
        "v 0 0 0\nv 100 0 0\nv 0 100 0\nv 0 0 100\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n",
    );
    let with = |name: &str, visual: &str| {
        let text = urdf(&(inertial("1", "0.1", "0.1", "0.1") + visual));
        let (model, path) = (folder.file(&format!("arm/urdf/{name}.urdf"), text), folder.path("page.html"));
        let made = run(&["check", &model, "--report", path.to_str().unwrap()]);
        assert_eq!(made.status, 0, "{}", made.stderr);
        let notes: String = made.stderr.lines().filter(|l| !l.starts_with("inertial: wrote ")).collect();
        (data(&std::fs::read_to_string(&path).unwrap())["robot"]["bodies"][0]["shapes"].clone(), notes)
    };
    let mesh = |name: &str| {
        format!(
            "<visual><origin xyz=\"0 0 0.5\"/><geometry><mesh filename=\"{name}\" scale=\"0.001 0.001 0.001\"/></geometry></visual>"
        )
    };
    for name in ["package://arm/meshes/link.obj", "../meshes/link.obj"] {
        let (shapes, messages) = with("good", &mesh(name));
        assert_eq!(messages, "");
        assert_eq!((&shapes[0]["type"], &shapes[0]["pose"]["p"][2]), (&"mesh".into(), &0.5.into()));
        assert_eq!(shapes[0]["triangles"].as_array().unwrap().len(), 4);
        let points = shapes[0]["points"].as_array().unwrap().iter().flat_map(|p| p.as_array().unwrap());
        let largest = points.map(|x| x.as_f64().unwrap()).fold(0.0, f64::max);
        assert!((largest - 0.1).abs() < 1e-6);
    }
    assert!(with("missing", &mesh("package://arm/meshes/other.obj")).0.is_null());
    folder.file("arm/meshes/bad.stl", "solid\nvertex 1 2\n");
    let (shapes, messages) = with("bad", &mesh("../meshes/bad.stl"));
    assert!(shapes.is_null() && messages.contains("bad.stl: line 2: expected three numbers"), "{messages}");
    let simple = "<collision><geometry><cylinder radius=\"0.05\" length=\"0.3\"/></geometry></collision>";
    let (shapes, _) = with("simple", simple);
    assert_eq!((&shapes[0]["type"], &shapes[0]["length"]), (&"cylinder".into(), &0.3.into()));
}

#[test]
fn a_stream_has_no_page() {
    let line = refused(&["identify", "builtin:planar-2r", "--follow", "-", "--report", "page.html"]);
    assert_eq!(line, "--follow has no plots and no report, because a stream has no end");
}

#[test]
fn names_are_escaped_in_the_data_of_a_page() {
    let folder = Folder::new();
    let name = "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;";
    let text = urdf(&inertial("1", "0.1", "0.1", "0.3")).replace("name=\"two\"", &format!("name=\"{name}\""));
    let (model, path) = (folder.file("robot.urdf", text), folder.path("page.html"));
    let result = run(&["check", &model, "--report", path.to_str().unwrap()]);
    assert_eq!(result.status, 1);
    assert_eq!(result.stderr, format!("inertial: wrote {}\n", path.display()));
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(!page.contains("<script>alert"));
    assert_eq!(data(&page)["title"], "</script><script>alert(1)</script>");
    assert_eq!(data(&page)["check"]["consistent"], false);
}

#[test]
fn a_page_belongs_to_one_model() {
    let line = refused(&["check", "builtin:puma560", "builtin:scara", "--report", "page.html"]);
    assert_eq!(line, "--report takes one model");
}

#[test]
fn files_appear_together_or_not_at_all() {
    let folder = Folder::new();
    let log = log(&folder, 4.0, 100.0);
    let [summary, model, nowhere] = ["x.summary", "x.json", "missing/x"].map(|name| folder.path(name));
    let [summary, model, nowhere] = [&summary, &model, &nowhere].map(|path| path.to_str().unwrap());
    for files in [
        ["--summary-out", summary, "--out", nowhere],
        ["--summary-out", nowhere, "--out", model],
        ["--out", model, "--report", nowhere],
    ] {
        let line =
            refused(&[&["identify", "builtin:planar-2r", &log, "--cutoff", "off"], &files[..]].concat());
        assert!(line.contains("there is no folder"), "{line}");
        let left: Vec<_> =
            std::fs::read_dir(folder.path("")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "{files:?} left {left:?} beside the motion and its log");
    }
}
