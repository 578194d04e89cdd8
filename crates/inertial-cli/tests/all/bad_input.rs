//! Invalid input: one line of error, exit status 2, no panic, bounded time and memory.

#![allow(clippy::unwrap_used)]

use crate::common;
use std::fmt::Write as _;

use crate::common::{Folder, inertial, refused, run, urdf};

fn says(folder: &Folder, name: &str, text: impl AsRef<[u8]>, expected: &str) {
    let file = folder.file(name, text);
    let line = refused(&["check", &file]);
    let message = line.strip_prefix(&format!("{file}: ")).unwrap_or_else(|| panic!("{line}"));
    assert!(message.contains(expected), "expected {expected}\nfound    {message}");
}

#[test]
fn files_that_are_no_models() {
    let folder = Folder::new();
    says(&folder, "empty.urdf", "", "the model is empty");
    says(&folder, "blank.urdf", " \n\n", "the model is empty");
    says(
        &folder,
        "binary.urdf",
        [0x7f, b'E', b'L', b'F', 0xff, 0xfe, 0],
        "is not UTF-8 text: byte 4 is invalid",
    );
    says(&folder, "zeros.urdf", [0_u8; 64], "neither XML nor JSON, and as TOML: ");
    says(&folder, "page.html", "<html><body/></html>", "html");
    says(&folder, "truncated.urdf", &urdf(&inertial("1", "1", "1", "1"))[..200], "line ");
    says(
        &folder,
        "half.json",
        "{\"schema\": \"inertial/mechanism/1\", \"bodies\": [{",
        "line 1: bodies[0]: EOF",
    );
    let folder_line = refused(&["check", folder.path("").to_str().unwrap()]);
    assert!(folder_line.ends_with("is a folder, not a file"), "{folder_line}");
    assert_eq!(refused(&["check", "absent.urdf"]), "absent.urdf: there is no such file");
    assert!(
        refused(&["check", "builtin:pumpa"])
            .starts_with("builtin:pumpa: there is no built-in model \"pumpa\"; there are")
    );
}

#[cfg(unix)]
#[test]
fn devices_and_pipes_without_end() {
    for device in ["/dev/zero", "/dev/null"] {
        assert_eq!(
            refused(&["check", device]),
            format!("{device}: is not a regular file: use - to read from standard input")
        );
    }
}

#[test]
fn texts_that_describe_no_mechanism() {
    let folder = Folder::new();
    let good = urdf(&inertial("1", "0.1", "0.1", "0.1"));
    let change = |from: &str, to: &str| {
        assert!(good.contains(from));
        good.replace(from, to)
    };
    says(&folder, "nan.urdf", urdf(&inertial("nan", "1", "1", "1")), "line 8: ");
    says(&folder, "inf.urdf", urdf(&inertial("1", "inf", "1", "1")), "line 9: ");
    says(&folder, "word.urdf", urdf(&inertial("heavy", "1", "1", "1")), "heavy");
    says(&folder, "type.urdf", change("\"revolute\"", "\"hinge\""), "hinge");
    says(
        &folder,
        "duplicate.urdf",
        change("<link name=\"base\"/>", "<link name=\"base\"/><link name=\"arm\"/>"),
        "arm",
    );
    says(
        &folder,
        "roots.urdf",
        change("<link name=\"base\"/>", "<link name=\"base\"/><link name=\"other\"/>"),
        "other",
    );
    says(
        &folder,
        "cycle.urdf",
        change(
            "</robot>",
            "<joint name=\"back\" type=\"fixed\"><parent link=\"arm\"/><child link=\"base\"/></joint></robot>",
        ),
        "",
    );
    says(&folder, "nowhere.urdf", change("<parent link=\"base\"/>", "<parent link=\"bass\"/>"), "bass");
    says(&folder, "axis.urdf", change("xyz=\"0 0 1\"", "xyz=\"0 0 z\""), "axis");
}

/// Loop: its name, then body and position of both ends.
type Closing<'a> = (&'a str, &'a str, [f64; 2], &'a str, [f64; 2]);

/// Returns a planar linkage of bodies (name, parent, position of the hinge, its mark) and loops.
fn linkage(bodies: &[(&str, &str, [f64; 2], &str)], loops: &[Closing<'_>]) -> String {
    let bodies = bodies.iter().map(|(name, parent, [x, y], mark)| {
        format!(
            r#"{{"name": "{name}", "parent": "{parent}", "joint": {{"name": "j_{name}", "type": "revolute",
               "origin": {{"xyz": [{x}, {y}, 0]}}, "axis": [0, 0, 1]{mark}}}}}"#
        )
    });
    let loops = loops.iter().map(|(name, from, [x, y], to, [u, v])| {
        format!(
            r#"{{"name": "{name}", "type": "revolute", "axis": [0, 0, 1],
               "predecessor": {{"body": "{from}", "origin": {{"xyz": [{x}, {y}, 0]}}}},
               "successor": {{"body": "{to}", "origin": {{"xyz": [{u}, {v}, 0]}}}}}}"#
        )
    });
    format!(
        r#"{{"schema": "inertial/mechanism/1", "name": "linkage", "bodies": [{}], "loops": [{}]}}"#,
        bodies.collect::<Vec<_>>().join(",\n"),
        loops.collect::<Vec<_>>().join(",\n")
    )
}

#[test]
fn loops_that_make_no_machine() {
    let folder = Folder::new();
    let analyze = |bodies: &[_], loops: &[_]| {
        let file = folder.file("linkage.json", linkage(bodies, loops));
        let line = refused(&["analyze", &file]);
        line.strip_prefix(&format!("{file}: ")).map_or_else(|| panic!("{line}"), str::to_owned)
    };
    let (yes, no) = (r#", "independent": true"#, r#", "independent": false"#);
    let bars = |mark| {
        [("a", "ground", [0.0, 0.0], mark), ("b", "a", [0.1, 0.4], mark), ("c", "ground", [0.8, -0.1], mark)]
    };
    let four_bar = bars("");
    let knee = ("knee", "b", [0.8, 0.2], "c", [0.1, 0.7]);
    // A loop that cannot be closed, or not together with another one.
    let mut far = four_bar;
    far[2].2 = [9.0, 0.0];
    let line = analyze(&far, &[knee]);
    assert!(line.starts_with("loop knee: it cannot be closed near the assembly configuration"), "{line}");
    assert!(line.contains("(residual 7.1"), "{line}");
    let line = analyze(&four_bar, &[knee, ("other", "b", [0.8, 0.2], "c", [0.1, 0.9])]);
    assert!(line.starts_with("loop other: it closes alone but not together with the other loops"), "{line}");
    assert!(line.contains("they contradict each other (residual "), "{line}");
    // Loops without a remaining degree of freedom.
    let line = analyze(&four_bar, &[knee, ("pin", "b", [0.2, 0.2], "ground", [0.3, 0.6])]);
    assert_eq!(line, "the loops leave no freedom to move: 3 joint coordinates, 3 independent constraints");
    // Too many marks, too few, and marks that do not leave a choice.
    let line = analyze(&bars(yes), &[knee]);
    assert_eq!(
        line,
        "the mobility is 1 but 3 coordinates are marked as independent: mark 1, for example j_a"
    );
    let line = analyze(&bars(no), &[knee]);
    assert_eq!(
        line,
        "the mobility is 1 but 0 coordinates are marked as independent: mark 1, for example j_a"
    );
    let five = [
        ("a", "ground", [0.0, 0.0], yes),
        ("b", "a", [-0.3, 0.5], no),
        ("c", "ground", [0.8, 0.0], no),
        ("d", "c", [0.3, 0.6], no),
    ];
    let line = analyze(&five, &[("tip", "b", [0.7, 0.5], "d", [-0.7, 0.4])]);
    assert_eq!(
        line,
        "the mobility is 2 but 1 coordinates are marked as independent: mark 2, for example j_a, j_c"
    );
    // Ends on a missing link, both ends on one body, and bodies without a connection.
    let line = analyze(&four_bar, &[("knee", "b", [0.8, 0.2], "x", [0.1, 0.7])]);
    assert!(line.ends_with("loop \"knee\": its link \"x\" does not exist"), "{line}");
    let line = analyze(&four_bar, &[("knee", "b", [0.8, 0.2], "b", [0.1, 0.7])]);
    assert!(line.ends_with("loop \"knee\": both sides belong to the same rigid body"), "{line}");
    let apart = [four_bar[0], ("d", "e", [0.0, 0.0], ""), ("e", "d", [0.0, 0.0], "")];
    let line = analyze(&apart, &[]);
    assert!(line.contains("link \"d\": it lies on a cycle of joints"), "{line}");
    let line = analyze(&[four_bar[0], ("d", "nobody", [0.0, 0.0], "")], &[]);
    assert!(line.ends_with("joint \"j_d\": its parent link \"nobody\" does not exist"), "{line}");
}

/// A duplicated loop adds no constraint.
#[test]
fn redundant_loops_are_no_error() {
    let folder = Folder::new();
    let bars =
        [("a", "ground", [0.0, 0.0], ""), ("b", "a", [0.1, 0.4], ""), ("c", "ground", [0.8, -0.1], "")];
    let knee = |name| (name, "b", [0.8, 0.2], "c", [0.1, 0.7]);
    let once = folder.file("once.json", linkage(&bars, &[knee("knee")]));
    let twice = folder.file("twice.json", linkage(&bars, &[knee("knee"), knee("again")]));
    let combinations = |file: &str| {
        let answer = run(&["analyze", file, "--json"]).json();
        assert_eq!(answer["certificate"]["exact"], true);
        answer["base_parameters"].clone()
    };
    assert_eq!(combinations(&once), combinations(&twice));
}

#[test]
fn exponential_inputs_are_refused() {
    let folder = Folder::new();
    let mut entities = String::from("<?xml version=\"1.0\"?><!DOCTYPE r [<!ENTITY a0 \"aaaaaaaaaa\">");
    for i in 1..30 {
        let last = format!("&a{};", i - 1).repeat(10);
        write!(entities, "<!ENTITY a{i} \"{last}\">").unwrap();
    }
    entities += "]><robot name=\"&a29;\"/>";
    says(&folder, "bomb.urdf", entities, "");
    let deep = format!("<robot name=\"deep\">{}", "<link name=\"a\">".repeat(200_000));
    says(&folder, "deep.urdf", deep, "");
    says(&folder, "deep.json", format!("{{\"schema\": {}", "[".repeat(1_000_000)), "line 1: ");
    says(&folder, "deep.toml", format!("schema = {}", "[".repeat(1_000_000)), "line 1: ");
    let mut attributes = String::new();
    (0..100_000).try_for_each(|i| write!(attributes, " a{i}=\"1\"")).unwrap();
    says(&folder, "wide.urdf", format!("<robot name=\"wide\"{attributes}><link name=\"a\"/>"), "");
}

#[test]
fn a_file_of_200_megabytes_is_not_read() {
    let folder = Folder::new();
    let path = folder.file("large.urdf", "<robot>");
    // A sparse file, which takes no disk space.
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(200 << 20).unwrap();
    let line = refused(&["check", &path]);
    assert!(line.ends_with("has 200 MB, more than the limit of 64 MB"), "{line}");
}

#[test]
fn wrong_calls_get_one_line_and_a_hint() {
    let folder = Folder::new();
    let cases: [(&[&str], &str); 9] = [
        (&[], "requires a subcommand"),
        (&["frobnicate"], "unrecognized subcommand 'frobnicate'"),
        (&["check"], "the following required arguments were not provided: <MODEL>..."),
        (&["check", "builtin:scara", "--jsn"], "unexpected argument '--jsn' found"),
        (
            &["check", "builtin:scara", "--gravity", "0,0"],
            "expected 3 numbers separated by commas, not '0,0'",
        ),
        (&["check", "builtin:scara", "--gravity", "0,0,nan"], "expected 3 numbers"),
        (&["check", "builtin:scara", "--base", "flying"], "invalid value 'flying' for '--base <BASE>'"),
        (&["check", "builtin:scara", "--fix"], "--out"),
        (&["check", "builtin:scara", "--tolerance", "2"], "expected a number from 0 to 1"),
    ];
    for (args, expected) in cases {
        let line = refused(args);
        assert!(line.contains(expected) && line.ends_with("; see --help"), "{line}");
    }
    let out = folder.path("x");
    let line = refused(&["check", "builtin:scara", "builtin:arm7", "--fix", "--out", out.to_str().unwrap()]);
    assert_eq!(line, "--fix takes one model");
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn hostile_names_do_not_reach_the_terminal() {
    let folder = Folder::new();
    let file = folder.file("escape.json", "{\"schema\": \"\\u001b[31mred\\nline\", \"bodies\": []}");
    let line = refused(&["check", &file]);
    assert!(!line.contains('\u{1b}'), "{line}");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child = common::command()
        .args(["check", "builtin:quadruped"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn help_teaches() {
    for args in
        [&["--help"][..], &["check", "--help"], &["bench", "--help"], &["demo", "--help"], &["--version"]]
    {
        let result = run(args);
        assert_eq!((result.status, result.stderr.as_str()), (0, ""));
        assert!(!result.stdout.is_empty());
    }
    assert!(run(&["--help"]).stdout.contains("Examples:"));
    assert!(run(&["check", "--help"]).stdout.contains("--fix --out fixed.urdf"));
}

#[test]
fn control_characters_in_names_do_not_reach_the_terminal() {
    let folder = Folder::new();
    // XML allows control characters from U+0080 on; the others are possible only as escapes in JSON and TOML.
    let name = "a\u{9b}31mm";
    let text = urdf(&inertial("1", "0.1", "0.1", "0.1")).replace("\"arm\"", &format!("\"{name}\""));
    let line = refused(&["check", &folder.file("m.urdf", text)]);
    assert!(line.contains("control character") && !line.contains(char::is_control), "{line}");
}

#[test]
fn declared_encodings_are_read() {
    let folder = Folder::new();
    let text = urdf(&inertial("1", "0.1", "0.1", "0.1"))
        .replace("version=\"1.0\"", "version=\"1.0\" encoding=\"latin1\"");
    let latin: Vec<u8> =
        text.replace("\"two\"", "\"zw\u{f6}lf\"").chars().map(|c| u8::try_from(c).unwrap()).collect();
    let model = folder.file("latin.urdf", &latin);
    let checked = run(&["check", &model]);
    assert_eq!(checked.status, 0, "{}", checked.stderr);
    assert!(checked.stdout.contains("(zw\u{f6}lf)"), "{}", checked.stdout);
    let plain = folder
        .file("plain.urdf", latin.strip_prefix(b"<?xml version=\"1.0\" encoding=\"latin1\"?>").unwrap());
    assert!(refused(&["check", &plain]).contains("is not UTF-8 text: byte"));
}
