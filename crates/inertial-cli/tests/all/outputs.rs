//! Tests of outputs: inputs are not replaced, and no temporary files are left behind.

#![allow(clippy::unwrap_used)]

use std::fs;

use crate::common::{Folder, inertial, refused, run, run_with_input, urdf};
use crate::identify::log;

const MODEL: &str = "builtin:planar-2r";

/// Runs a command whose output is one of its inputs; the input is unchanged.
fn keeps(folder: &Folder, input: &str, args: &[&str]) {
    let before = fs::read(input).unwrap();
    let found = run(args);
    assert_eq!((found.status, found.stdout.as_str()), (2, ""), "{}", found.stderr);
    assert!(found.stderr.contains("is also an input"), "{}", found.stderr);
    assert_eq!(fs::read(input).unwrap(), before, "{args:?}");
    assert!(folder.names().iter().all(|name| !name.starts_with(".inertial-")));
}

#[test]
fn a_report_does_not_replace_the_log_it_is_of() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    keeps(&folder, &log, &["identify", MODEL, &log, "--report", &log]);
    let summary = folder.path("l.summary").display().to_string();
    assert_eq!(run(&["identify", MODEL, &log, "--summary-out", &summary]).status, 0);
    keeps(&folder, &summary, &["identify", MODEL, &summary, "--summary-out", &summary]);
    // A log does not have the name of a summary.
    let before = fs::read(&log).unwrap();
    refused(&["identify", MODEL, &log, "--summary-out", &log]);
    assert_eq!(fs::read(&log).unwrap(), before);
    keeps(&folder, &log, &["validate", MODEL, &log, "--report", &log]);
    let other = folder.file("other.csv", crate::identify::log(400));
    keeps(
        &folder,
        &log,
        &["identify", MODEL, &other, "--cutoff", "off", "--validate", &log, "--report", &log],
    );
}

/// The model does not exist, which shows that outputs are checked before anything is read.
#[test]
fn an_output_that_cannot_be_written_is_refused_before_the_work_begins() {
    let folder = Folder::new();
    let lost = folder.path("none").join("x").display().to_string();
    let own = folder.path("").display().to_string();
    for (command, out) in [
        (&["identify", "absent.urdf", "absent.csv"][..], "--out"),
        (&["identify", "absent.urdf", "absent.csv"], "--report"),
        (&["identify", "absent.urdf", "absent.csv"], "--summary-out"),
        (&["check", "absent.urdf", "--fix"], "--out"),
        (&["analyze", "absent.urdf"], "--out"),
        (&["design", "absent.urdf"], "--out"),
        (&["simulate", "absent.urdf", "absent.csv"], "--out"),
        (&["validate", "absent.urdf", "absent.csv"], "--report"),
        (&["export", "absent.urdf", "--to", "c"], "--out"),
        (&["columns", "absent.csv"], "--out"),
    ] {
        // The format of a motion is given by its extension.
        let lost = if command[0] == "design" { format!("{lost}.csv") } else { lost.clone() };
        let line = refused(&[command, &[out, &lost]].concat());
        let reason = "cannot be written: there is no folder";
        assert!(line.starts_with(&format!("{lost}: {reason}")), "{command:?}: {line}");
        if command[0] == "design" {
            continue;
        }
        let line = refused(&[command, &[out, &own]].concat());
        assert_eq!(line, format!("{own}: is a folder: give the name of a file"), "{command:?}");
    }
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn an_output_does_not_replace_a_model_or_a_side_file() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    let model = folder.file("m.urdf", urdf(&inertial("1", "1", "0.1", "0.1")));
    let columns = folder.file("columns.toml", "[columns]\n");
    let drives = folder.file("joints.toml", "");
    keeps(&folder, &model, &["check", &model, "--fix", "--out", &model]);
    keeps(&folder, &model, &["analyze", &model, "--report", &model]);
    keeps(&folder, &columns, &["identify", MODEL, &log, "--columns", &columns, "--report", &columns]);
    keeps(&folder, &drives, &["identify", MODEL, &log, "--joint-model", &drives, "--report", &drives]);
    keeps(&folder, &log, &["simulate", MODEL, &log, "--out", &log]);
    // Standard input from a pipe is not a file.
    let text = fs::read(&model).unwrap();
    assert_eq!(run_with_input(&["check", "-", "--fix", "--out", &model], &text).status, 1);
}

#[cfg(unix)]
#[test]
fn links_to_an_input_are_the_input() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    let [soft, hard] = ["soft.html", "hard.html"].map(|name| folder.path(name));
    std::os::unix::fs::symlink(&log, &soft).unwrap();
    fs::hard_link(&log, &hard).unwrap();
    for link in [soft, hard] {
        keeps(&folder, &log, &["identify", MODEL, &log, "--report", link.to_str().unwrap()]);
    }
}

#[test]
fn two_outputs_at_one_path_are_refused_before_the_work() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    let out = folder.path("out").display().to_string();
    let line = refused(&["identify", MODEL, &log, "--summary-out", &out, "--report", &out]);
    assert!(line.contains("two results would be written"), "{line}");
    let line = refused(&["identify", MODEL, &log, "--summary-out", &out]);
    assert!(line.contains("expected a name ending in .summary or .json"), "{line}");
    assert_eq!(folder.names(), ["l.csv"]);
}

#[cfg(unix)]
#[test]
fn an_existing_output_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let out = folder.file("page.html", "old");
    fs::set_permissions(&out, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(run(&["analyze", MODEL, "--report", &out]).status, 0);
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o666);
    assert!(fs::read_to_string(&out).unwrap().starts_with("<!doctype html>"));
}

#[cfg(unix)]
#[test]
fn a_read_only_file_is_not_replaced() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let out = folder.file("page.html", "kept");
    fs::set_permissions(&out, fs::Permissions::from_mode(0o444)).unwrap();
    let line = refused(&["analyze", MODEL, "--report", &out]);
    let reason = "cannot be written: is read-only: make it writable or give the output another name";
    assert_eq!(line, format!("{out}: {reason}"));
    assert_eq!(fs::read_to_string(&out).unwrap(), "kept");
}

/// Signals at any time leave neither a partial output nor a temporary file.
#[cfg(target_os = "linux")]
#[test]
fn signals_leave_no_temporary_files() {
    use std::process::{Command, Stdio};
    use std::time::Duration;
    let folder = Folder::new();
    let motion = folder.file("m.csv", log(20_000));
    let out = folder.path("out.csv");
    let signals = ["-INT", "-TERM", "-HUP", "-KILL", "-QUIT", "-USR1", "-XCPU"];
    for (k, signal) in signals.into_iter().cycle().take(28).enumerate() {
        let mut child = crate::common::command()
            .args(["simulate", MODEL, &motion, "--ignore-limits", "--out", out.to_str().unwrap()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(4 * k as u64));
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().is_ok());
        child.wait().unwrap();
        let names = folder.names();
        assert!(names == ["m.csv"] || names == ["m.csv", "out.csv"], "{signal} after {k}: {names:?}");
        let _ = fs::remove_file(&out);
    }
}

#[test]
fn files_of_killed_processes_are_removed_by_the_next_run() {
    let folder = Folder::new();
    folder.file(".inertial-abcdefABCDEF.part", "half a page");
    let out = folder.path("page.html");
    assert_eq!(run(&["analyze", MODEL, "--report", out.to_str().unwrap()]).status, 0);
    assert_eq!(folder.names(), ["page.html"]);
}

/// Returns the path of a seed of the fuzz targets.
fn seed(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name)
}

/// Meshes that no job had read, or whose refusal the reader of the page ignored, were replaced.
#[test]
fn an_output_does_not_replace_a_mesh_of_the_model() {
    let folder = Folder::new();
    let stl = folder.file("tet.stl", fs::read(seed("mesh/text.stl")).unwrap());
    let obj = folder.file("tet.obj", fs::read(seed("mesh/tetrahedron.obj")).unwrap());
    let mesh =
        |kind: &str, file: &str| format!("<{kind}><geometry><mesh filename=\"{file}\"/></geometry></{kind}>");
    let meshes = mesh("visual", "tet.stl") + &mesh("collision", "tet.obj");
    let model = folder.file("mesh.urdf", urdf(&(inertial("1", "1", "1", "1") + &meshes)));
    for file in [&stl, &obj] {
        keeps(&folder, file, &["check", &model, "--report", file]);
        keeps(&folder, file, &["check", &model, "--fix", "--out", file]);
        keeps(&folder, file, &["analyze", &model, "--report", file]);
        keeps(&folder, file, &["export", &model, "--to", "pinocchio", "--out", file]);
        // The log does not exist, which shows that the refusal comes before the work.
        for option in ["--out", "--report"] {
            keeps(&folder, file, &["identify", &model, "absent.csv", option, file]);
        }
    }
    let line = refused(&["check", &model, "--report", &stl]);
    assert!(line.starts_with(&format!("{stl}: is also an input")), "{line}");
    // SDF names its meshes in elements.
    let sdf = fs::read_to_string(seed("sdf/arm.sdf")).unwrap();
    let visual = "<visual name=\"v\"><geometry><mesh><uri>tet.stl</uri></mesh></geometry></visual></link>";
    let sdf = folder.file("arm.sdf", sdf.replacen("</link>", visual, 1));
    keeps(&folder, &stl, &["check", &sdf, "--report", &stl]);
    // A mesh that does not exist yet would be read by the next run.
    fs::remove_file(&stl).unwrap();
    assert!(refused(&["check", &model, "--report", &stl]).contains("is also an input"));
    assert!(!folder.names().contains(&"tet.stl".to_owned()));
}

/// The refusal was reported as an unreadable layer, and the layer was replaced.
#[test]
fn an_output_does_not_replace_a_layer_of_a_scene() {
    let folder = Folder::new();
    let layer = folder.file("arm.usda", fs::read(seed("usd/arm.usda")).unwrap());
    let text = "#usda 1.0\n(\n    defaultPrim = \"arm\"\n    subLayers = [@./arm.usda@]\n)\n";
    let scene = folder.file("top.usda", text);
    keeps(&folder, &layer, &["check", &scene, "--report", &layer]);
    keeps(&folder, &layer, &["check", &scene, "--fix", "--out", &layer]);
    keeps(&folder, &layer, &["identify", &scene, "absent.csv", "--out", &layer]);
}

/// Jobs that do not use the joint file of a model replaced it.
#[test]
fn an_output_does_not_replace_the_joint_file_of_a_model() {
    let folder = Folder::new();
    let arm = include_str!("../../../../testdata/models/planar-2r.urdf");
    let given = folder.file("m.urdf", arm);
    let log = folder.file("l.csv", log(400));
    let model = folder.path("id.urdf").display().to_string();
    let identify = ["identify", &given, &log, "--cutoff", "off"];
    let written = ["--offset", "--friction", "coulomb", "--force", "--out"];
    let written = [&identify[..], &written].concat();
    assert_eq!(run(&[&written[..], &[&model]].concat()).status, 0);
    let joints = folder.path("id.joints.json").display().to_string();
    for call in [
        &["check", &model, "--report"][..],
        &["analyze", &model, "--report"],
        &["identify", &model, &log, "--report"],
        &["identify", &model, &log, "--out"],
        &["identify", &model, &log, "--summary-out"],
        &["identify", &given, &log, "--prior", &model, "--report"],
        &["validate", &model, &log, "--report"],
        &["simulate", &model, &log, "--out"],
        &["export", &model, "--to", "pinocchio", "--out"],
    ] {
        keeps(&folder, &joints, &[call, &[&joints]].concat());
    }
    // Another model beside it has the same joint file, whose values belong to the first.
    let other = folder.path("id.toml").display().to_string();
    keeps(
        &folder,
        &joints,
        &[&["identify", &model, &log, "--force", "--offset", "--out"], &[&*other][..]].concat(),
    );
    // The joint file of a written model is replaced when the call is repeated.
    for name in ["id.urdf", "m.toml"] {
        let out = folder.path(name).display().to_string();
        for _ in 0..2 {
            let found = run(&[&written[..], &[&out]].concat());
            assert_eq!(found.status, 0, "{}", found.stderr);
        }
    }
    // An output may not have the name of a joint file that the model could have.
    fs::remove_file(folder.path("m.joints.json")).unwrap();
    let free = folder.path("m.joints.json").display().to_string();
    assert!(refused(&["check", &given, "--report", &free]).contains("is also an input"));
}

/// Files of folders were not known as inputs.
#[test]
fn an_output_does_not_replace_a_file_of_a_folder_log() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("bag")).unwrap();
    let bag = folder.path("bag").display().to_string();
    let data = folder.file("bag/bag_0.db3", fs::read(seed("sqlite/bag.db3")).unwrap());
    let list = folder
        .file("bag/metadata.yaml", "rosbag2_bagfile_information:\n  relative_file_paths:\n    - bag_0.db3\n");
    let other = folder.file("bag/bag_1.db3", "not in the list");
    for file in [&data, &list, &other] {
        keeps(&folder, file, &["columns", &bag, "--out", file]);
        keeps(&folder, file, &["identify", MODEL, &bag, "--cutoff", "off", "--report", file]);
        keeps(&folder, file, &["identify", MODEL, &bag, "--cutoff", "off", "--out", file]);
        keeps(&folder, file, &["validate", MODEL, &bag, "--cutoff", "off", "--report", file]);
    }
    let set = dataset(&folder);
    for name in ["set/meta/info.json", "set/meta/stats.json", "set/data/chunk-000/file-000.parquet"] {
        let file = folder.path(name).display().to_string();
        keeps(&folder, &file, &["columns", &set, "--out", &file]);
        keeps(&folder, &file, &["identify", MODEL, &set, "--report", &file]);
    }
    // Other files of the folder are not part of the log.
    let notes = folder.path("bag/notes.toml").display().to_string();
    for _ in 0..2 {
        assert_eq!(run(&["columns", &bag, "--out", &notes]).status, 0);
    }
}

/// Writes a LeRobot dataset with the log of the arm, and returns its path.
fn dataset(folder: &Folder) -> String {
    fs::create_dir_all(folder.path("set/meta")).unwrap();
    fs::create_dir_all(folder.path("set/data/chunk-000")).unwrap();
    folder.file("set/meta/info.json", r#"{"codebase_version": "v3.0", "features": {}}"#);
    folder.file("set/meta/stats.json", "{}");
    let table = inertial_data::Log::read(folder.file("episode.csv", log(400)).as_ref()).unwrap();
    let mut names = table.names().to_vec();
    "timestamp".clone_into(&mut names[0]);
    let columns = (0..names.len()).map(|k| table.column_at(k).to_vec()).collect();
    let table = inertial_data::Log::new("log", names, columns).unwrap();
    inertial_data::write_parquet(&table, &folder.path("set/data/chunk-000/file-000.parquet")).unwrap();
    folder.path("set").display().to_string()
}

/// A page contains checksums of its inputs; those of folders failed.
#[test]
fn pages_of_folder_logs_have_the_checksum_of_their_files() {
    let folder = Folder::new();
    let set = dataset(&folder);
    let page = folder.path("page.html").display().to_string();
    for command in ["identify", "validate"] {
        let found = run(&[command, MODEL, &set, "--cutoff", "off", "--report", &page]);
        assert_eq!(found.status, 0, "{}", found.stderr);
        let mut bytes = fs::read(folder.path("set/meta/info.json")).unwrap();
        bytes.extend(fs::read(folder.path("set/data/chunk-000/file-000.parquet")).unwrap());
        let sum = inertial_app::Checksum::of_text(&set, &bytes);
        let text = fs::read_to_string(&page).unwrap();
        assert!(text.contains(&sum.sha256), "{command}: {}", sum.sha256);
    }
}

/// `SIGXFSZ` ended the program without a message.
#[cfg(target_os = "linux")]
#[test]
fn a_limit_of_the_file_size_is_an_error_in_one_line() {
    let folder = Folder::new();
    let page = folder.path("page.html").display().to_string();
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 8; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_inertial")])
        .args(["check", MODEL, "--report", &page])
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{:?} {stderr}", output.status);
    assert_eq!(stderr, format!("inertial: {page}: cannot be written: File too large\n"));
    assert_eq!(folder.names(), [""; 0]);
    // The folder of plots is removed if they cannot be written.
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 1; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_inertial")])
        .args(["analyze", MODEL, "--plots", folder.path("new/plots").to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(folder.names(), [""; 0]);
}
