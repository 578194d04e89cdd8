//! Results of `docs/papers.md`: each value equals the one stated on the page, and the printed one if that is correct; named tests
//! exist; no numbered result of the papers is missing.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeSet, HashMap};
use std::process::Stdio;

use crate::common::command;
use crate::common::data::root;
use serde_json::Value;

/// Numbers of the definitions, theorems, tables and so on of each paper; table I of paper 001 has a Roman number.
const NUMBERED: [(&str, &[(&str, usize)]); 4] = [
    ("001", &[("definition", 2), ("lemma", 2), ("theorem", 1), ("figure", 1)]),
    ("002", &[("algorithm", 1), ("table", 6), ("figure", 7)]),
    (
        "003",
        &[("algorithm", 3), ("theorem", 3), ("lemma", 2), ("proposition", 2), ("table", 6), ("figure", 11)],
    ),
    ("004", &[("algorithm", 5), ("theorem", 1), ("corollary", 2), ("table", 3), ("figure", 10)]),
];

fn page() -> String {
    std::fs::read_to_string(root().join("docs/papers.md")).unwrap()
}

/// Returns the cells of the rows of tables that have a number of columns.
fn table_rows(text: &str, columns: usize) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Option<Vec<String>> {
        let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
        Some(inner.split('|').map(|cell| cell.trim().to_owned()).collect())
    };
    text.lines().filter_map(cells).filter(|row| row.len() == columns).collect()
}

/// Row of the page: result, how it is reproduced, pointer to the value, our value, printed value.
struct Row {
    result: String,
    how: String,
    pointer: String,
    ours: String,
    printed: String,
}

impl Row {
    /// Returns the arguments of the program, if the row has a command.
    fn command(&self) -> Option<&str> {
        self.how.strip_prefix("`inertial ")?.strip_suffix('`')
    }
}

fn rows(text: &str) -> Vec<Row> {
    let of_results = table_rows(text, 5).into_iter().filter_map(|row| {
        let [result, how, pointer, ours, printed] = <[String; 5]>::try_from(row).ok()?;
        let pointer = pointer.trim_matches('`').to_owned();
        Some(Row { result, how, pointer, ours, printed })
    });
    let other = |row: &Row| row.how.starts_with("---") || row.how == "command" || row.how == "shared points";
    // Rows of the table of principles start with numbers.
    of_results.filter(|row| !other(row) && row.how.parse::<usize>().is_err()).collect()
}

/// Results of commands, each of which is run once.
#[derive(Default)]
struct Results(HashMap<String, Value>);

impl Results {
    fn of(&mut self, arguments: &str) -> &Value {
        self.0.entry(arguments.to_owned()).or_insert_with(|| {
            let output = command()
                .args(arguments.split(' '))
                .current_dir(root())
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code().is_some_and(|c| c < 2), "{arguments}: {said}");
            serde_json::from_slice(&output.stdout).unwrap()
        })
    }
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
    let page = page();
    let rows = rows(&page);
    let mut results = Results::default();
    let mut count = 0;
    for row in &rows {
        let Some(arguments) = row.command() else { continue };
        count += 1;
        let found = results.of(arguments);
        let value = found.pointer(&row.pointer).unwrap_or_else(|| panic!("{arguments}: {}", row.pointer));
        let (result, ours) = (&row.result, &row.ours);
        assert!(agrees(value, ours), "{result} ({arguments}): {value}, the page says {ours}");
        match row.printed.strip_prefix('≠') {
            Some(wrong) => assert!(!agrees(value, wrong.trim()), "{result}: {value} is as printed"),
            None if row.printed.is_empty() => {}
            None => assert!(agrees(value, &row.printed), "{result}: {value}, printed {}", row.printed),
        }
    }
    assert!(count >= 200, "{count} rows");
}

/// Returns whether a test exists: `module::name` of a crate, or `test_module.py::name` of the Python tests.
fn exists(name: &str) -> bool {
    let Some((module, function)) = name.split_once("::") else { return false };
    if module.strip_suffix(".py").is_some() {
        let path = root().join("crates/inertial-py/tests").join(module);
        return std::fs::read_to_string(path).is_ok_and(|text| text.contains(&format!("def {function}(")));
    }
    ["inertial", "inertial-app", "inertial-cli"].iter().any(|name| {
        let path = root().join("crates").join(name).join("tests/all").join(module).with_extension("rs");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // Tests with generated arguments are indented.
        text.split("#[test]\n").skip(1).any(|t| t.contains(&format!("fn {function}(")))
    })
}

/// Every row has a command, a test that exists, or a reason why it is not reproduced.
#[test]
fn rows_without_figures_name_a_test_or_a_reason() {
    for row in rows(&page()) {
        if let Some(name) = row.how.strip_prefix("test `").and_then(|rest| rest.strip_suffix('`')) {
            assert!(exists(name), "{}: {name}", row.result);
        } else {
            let said = row.command().is_some() || row.how.starts_with("not reproduced: ");
            assert!(said, "{}: {}", row.result, row.how);
        }
    }
}

/// Returns the numbers after a word, such as 7, 8 and 9 for `figures 7, 8, 9: robots`.
fn numbers_after(text: &str, word: &str) -> BTreeSet<usize> {
    let mut out = BTreeSet::new();
    for rest in text.split(word).skip(1) {
        let list = rest.strip_prefix('s').unwrap_or(rest);
        let Some(list) = list.strip_prefix(' ') else { continue };
        let end = list.find(|c: char| !(c.is_ascii_digit() || c == ',' || c == ' ')).unwrap_or(list.len());
        out.extend(list[..end].split(',').map_while(|number| number.trim().parse::<usize>().ok()));
    }
    out
}

#[test]
fn every_numbered_result_is_on_the_page() {
    let page = page();
    for (paper, kinds) in NUMBERED {
        let (_, section) = page.split_once(&format!("\n## {paper}: ")).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let results: Vec<String> = rows(section).into_iter().map(|row| row.result).collect();
        for &(kind, count) in kinds {
            let found: BTreeSet<usize> = results.iter().flat_map(|text| numbers_after(text, kind)).collect();
            assert_eq!(found, (1..=count).collect(), "{paper}: {kind}");
        }
        assert_eq!(results.iter().any(|text| text.starts_with("table I,")), paper == "001");
    }
}

/// Numbers of parameters that are identifiable alone (★) and not at all (✕) equal those of the page.
#[test]
fn marks_are_counted_as_on_the_page() {
    let mut results = Results::default();
    let rows = table_rows(&page(), 13);
    let (head, rows) = (&rows[0], &rows[2..]);
    assert_eq!((head[0].as_str(), rows.len()), ("marks", 4));
    for row in rows {
        let arguments = row[1].trim_matches('`').strip_prefix("inertial ").unwrap();
        let bodies = results.of(arguments)["bodies"].as_array().unwrap();
        let (rotors, links): (Vec<_>, Vec<_>) =
            bodies.iter().partition(|b| b["name"].as_str().unwrap().contains(".rotor"));
        let count = |bodies: &[&Value], parameter: &str, status: &str| {
            bodies.iter().filter(|b| b["parameters"][parameter] == status).count()
        };
        // Tables list the links; the torso of the floating base is not among them.
        let links: Vec<_> = links.into_iter().filter(|b| b["name"] != "base").collect();
        for (name, stated) in head[2..12].iter().zip(&row[2..12]) {
            let own = name.replace("mc", "h");
            let [alone, never] = ["identifiable", "unidentifiable"].map(|s| count(&links, &own, s));
            assert_eq!(*stated, format!("{alone}★ {never}✕"), "{}: {name}", row[0]);
        }
        assert_eq!(row[12], format!("{}★", count(&rotors, "Izz", "identifiable")), "{}", row[0]);
    }
}

/// Numbers of null vectors by principle equal those of the page.
#[test]
fn principles_are_counted_as_on_the_page() {
    let page = page();
    for (name, model) in [("2RRU-1RRS", "builtin:2rru-1rrs"), ("2PRS-1PSR", "builtin:2prs-1psr")] {
        let found = crate::common::run(&["analyze", model, "--json"]).json();
        let counts = ["shared points", "fixed points", "planar rotation"].map(|p| &found["principles"][p]);
        let row = format!("| {name} | {} | {} | {} |", counts[0], counts[1], counts[2]);
        assert!(page.contains(&row), "{row}");
    }
}
