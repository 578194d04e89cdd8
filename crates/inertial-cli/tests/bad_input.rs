//! Bad input: one line, exit status 2, no panic, bounded time and memory.

#![allow(clippy::unwrap_used)]

mod common;

use std::fmt::Write as _;

use common::{Folder, inertial, refused, run, urdf};

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
    says(&folder, "binary.urdf", [0x7f, b'E', b'L', b'F', 0xff, 0xfe, 0], "is no text: byte 4 is not UTF-8");
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
            format!("{device}: is no regular file: use - to read from standard input")
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
    says(&folder, "axis.urdf", change("xyz=\"0 0 1\"", "xyz=\"0 0 0\""), "axis");
}

#[test]
fn bombs_are_defused() {
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
    // A hole: the file takes no space.
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(200 << 20).unwrap();
    let line = refused(&["check", &path]);
    assert!(line.ends_with("has 200 MB, more than the 64 MB that are read of a model"), "{line}");
}

#[test]
fn wrong_calls_get_one_line_and_a_hint() {
    let folder = Folder::new();
    let cases: [(&[&str], &str); 9] = [
        (&[], "requires a subcommand"),
        (&["frobnicate"], "unrecognized subcommand 'frobnicate'"),
        (&["check"], "the following required arguments were not provided: <MODEL>..."),
        (&["check", "builtin:scara", "--jsn"], "unexpected argument '--jsn' found"),
        (&["check", "builtin:scara", "--gravity", "0,0"], "expected three numbers like 0,0,-9.81, not '0,0'"),
        (&["check", "builtin:scara", "--gravity", "0,0,nan"], "expected three numbers"),
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
