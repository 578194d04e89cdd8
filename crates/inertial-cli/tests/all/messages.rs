//! Exact error messages: `messages.txt` contains calls and the last line of each, for review as a whole.
//!
//! It contains files (`== NAME`, to `==`), calls that must succeed (`> …`) and calls that must fail (`$ …`), each
//! followed by its line. If `INERTIAL_UPDATE` is set, the lines are rewritten.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::process::Stdio;

use crate::common::{Folder, command};

#[test]
fn refusals_are_worded_as_reviewed() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let folder = Folder::new();
    let call = |args: &str| {
        let words = args.split_whitespace();
        let done = command().args(words).current_dir(folder.path("")).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        (done.status.code(), done.stdout, said.lines().last().unwrap_or_default().to_owned())
    };
    let mut found = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let _ = writeln!(found, "{line}");
        if let Some(name) = line.strip_prefix("== ") {
            let content: Vec<&str> = lines.by_ref().take_while(|l| *l != "==").collect();
            let content = content.iter().flat_map(|l| [l, "\n"]).collect::<String>();
            let _ = writeln!(found, "{content}==");
            folder.file(name, content);
        } else if let Some(args) = line.strip_prefix("> ") {
            let (status, _, said) = call(args);
            assert_eq!(status, Some(0), "{args}: {said}");
        } else if let Some(args) = line.strip_prefix("$ ") {
            lines.next();
            let (status, printed, said) = call(args);
            assert_eq!((status, printed.as_slice()), (Some(2), &b""[..]), "{args}: {said}");
            let said = said.strip_prefix("inertial: ").unwrap_or_else(|| panic!("{args}: {said}"));
            let _ = writeln!(found, "{said}");
        }
    }
    if std::env::var_os("INERTIAL_UPDATE").is_some() {
        std::fs::write(path, &found).unwrap();
    }
    for (found, expected) in found.lines().zip(text.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), text.lines().count());
}
