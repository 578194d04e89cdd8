//! Commands of `docs/papers.md`: each value equals the one stated on the page, and the printed one if that is correct.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::process::Stdio;

use crate::common::command;
use crate::common::data::root;
use serde_json::Value;

/// Row of the page with a value to check.
struct Row {
    result: String,
    command: String,
    pointer: String,
    ours: String,
    printed: String,
}

fn rows(page: &str) -> Vec<Row> {
    let mut out = Vec::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split(" | ").map(str::trim).collect();
        let [result, command, pointer, ours, printed] = cells[..] else { continue };
        let Some(command) = command.strip_prefix("`inertial ") else { continue };
        out.push(Row {
            result: result.to_owned(),
            command: command.trim_end_matches('`').to_owned(),
            pointer: pointer.trim_matches('`').to_owned(),
            ours: ours.to_owned(),
            printed: printed.trim_end_matches('|').trim().to_owned(),
        });
    }
    out
}

/// Returns whether a value equals the one stated on the page, to its digits.
fn agrees(value: &Value, stated: &str) -> bool {
    match value {
        Value::Number(x) => {
            let decimals = stated.split_once('.').map_or(0, |(_, d)| d.len());
            let (x, y) = (x.as_f64().unwrap(), stated.parse::<f64>().unwrap());
            (x - y).abs() <= 0.5 * 10f64.powi(-i32::try_from(decimals).unwrap()) + 1e-12
        }
        Value::String(text) => text == stated,
        Value::Bool(yes) => stated.parse() == Ok(*yes),
        _ => false,
    }
}

#[test]
fn figures_of_the_papers_are_those_of_the_page() {
    let page = std::fs::read_to_string(root().join("docs/papers.md")).unwrap();
    let rows = rows(&page);
    assert!(rows.len() >= 30, "{} rows", rows.len());
    let mut results: HashMap<&str, Value> = HashMap::new();
    for row in &rows {
        let found = results.entry(&row.command).or_insert_with(|| {
            let output = command()
                .args(row.command.split(' '))
                .current_dir(root())
                .stdin(Stdio::null())
                .output()
                .unwrap();
            assert!(
                output.status.code().is_some_and(|c| c < 2),
                "{}: {}",
                row.command,
                String::from_utf8_lossy(&output.stderr)
            );
            serde_json::from_slice(&output.stdout).unwrap()
        });
        let value = found.pointer(&row.pointer).unwrap_or_else(|| panic!("{}: {}", row.command, row.pointer));
        assert!(
            agrees(value, &row.ours),
            "{} ({}): {value}, the page says {}",
            row.result,
            row.command,
            row.ours
        );
        match row.printed.strip_prefix('≠') {
            Some(wrong) => assert!(!agrees(value, wrong.trim()), "{}: {value} is as printed", row.result),
            None if row.printed.is_empty() => {}
            None => assert!(agrees(value, &row.printed), "{}: {value}, printed {}", row.result, row.printed),
        }
    }
}

/// Numbers of null vectors by principle equal those of the page.
#[test]
fn principles_are_counted_as_on_the_page() {
    let page = std::fs::read_to_string(root().join("docs/papers.md")).unwrap();
    for (name, model) in [("2RRU-1RRS", "builtin:2rru-1rrs"), ("2PRS-1PSR", "builtin:2prs-1psr")] {
        let found = crate::common::run(&["analyze", model, "--json"]).json();
        let counts = ["shared points", "fixed points", "planar rotation"].map(|p| &found["principles"][p]);
        let row = format!("| {name} | {} | {} | {} |", counts[0], counts[1], counts[2]);
        assert!(page.contains(&row), "{row}");
    }
}
