//! Columns and fields of a log that list names of joints: `field.name0 field.name1 …` beside `field.position0 …`.

use std::collections::BTreeMap;

use crate::columns::recognition::words::words;
use crate::joint_names::{JointNames, is_index};

/// Words in the names of lists; a name must contain at least one of the last five.
const WORDS: [&str; 18] = [
    "joint",
    "state",
    "states",
    "motor",
    "motors",
    "actuator",
    "actuators",
    "dof",
    "dofs",
    "axis",
    "axes",
    "field",
    "msg",
    "joints",
    "name",
    "names",
    "jointname",
    "jointnames",
];

/// Returns whether a column or field lists names of joints, by its name without index: `name`, `field.name`, `jointNames`.
pub(crate) fn is_list(field: &str) -> bool {
    let last = field.rsplit(['.', '/', ' ']).next().unwrap_or_default();
    let words = words(last);
    let has_name = words.iter().any(|(word, _)| WORDS[13..].contains(&word.as_str()));
    has_name && words.iter().all(|(word, _)| WORDS.contains(&word.as_str()))
}

/// Splits the name of a column at its last number: `name[3]` is `name[`, 3 and `]`.
fn at_number(name: &str) -> Option<(&str, usize, &str)> {
    let rest = name.trim_end_matches([']', ')', '}']);
    let before = rest.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &rest[before.len()..];
    is_index(digits).then(|| Some((before, digits.parse().ok()?, &name[rest.len()..])))?
}

/// Returns whether a column may be part of a list of names.
pub(crate) fn is_candidate(column: &str) -> bool {
    let field = at_number(column).map_or(column, |(before, ..)| before);
    is_list(field.trim_end_matches(['[', '(', '{', '_', '-', '.', '/', ' ']))
}

/// Finds the lists in the columns `names`; `text` returns the text of a column in the first row, `None` for a number.
pub(crate) fn of_columns(names: &[String], text: impl Fn(usize) -> Option<String>) -> Vec<JointNames> {
    let mut out = Vec::new();
    let mut numbered: BTreeMap<(&str, &str), BTreeMap<usize, Option<String>>> = BTreeMap::new();
    for (k, name) in names.iter().enumerate().filter(|(_, name)| is_candidate(name)) {
        let text = text(k);
        if let Some(list) = text.as_deref().and_then(|text| JointNames::parse(name, text)) {
            out.push(list);
        } else if let Some((before, number, after)) = at_number(name) {
            numbered.entry((before, after)).or_default().insert(number, text);
        }
    }
    for ((before, after), texts) in numbered {
        let first = texts.keys().next().copied().unwrap_or(0);
        let is_complete = first <= 1 && texts.keys().enumerate().all(|(k, &number)| number == first + k);
        if let Some(texts) = texts.into_values().collect::<Option<Vec<String>>>().filter(|_| is_complete) {
            out.extend(JointNames::new(format!("{before}{{i}}{after}"), texts));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_found_in_columns() {
        let found = |cells: &[(&str, &str)]| {
            let names: Vec<String> = cells.iter().map(|(name, _)| (*name).to_owned()).collect();
            let text = |k: usize| Some(cells[k].1.to_owned()).filter(|text| text.parse::<f64>().is_err());
            let lists = of_columns(&names, text);
            lists
                .into_iter()
                .map(|list| format!("{}: {}", list.source, list.names.join(" ")))
                .collect::<Vec<_>>()
        };
        assert_eq!(found(&[("field.name1", "b"), ("field.name0", "a")]), ["field.name{i}: a b"]);
        assert_eq!(found(&[("name[0]", "a"), ("name[1]", "b")]), ["name[{i}]: a b"]);
        assert_eq!(
            found(&[("/js/joint_names.1", "a"), ("/js/joint_names.2", "b")]),
            ["/js/joint_names.{i}: a b"]
        );
        for text in ["['a', 'b']", "[\"a\",\"b\"]", "['a' 'b']", "(a, b)", "[a, b,]"] {
            assert_eq!(found(&[("name", text)]), ["name: a b"], "{text}");
        }
        for cells in [
            [("name0", "a"), ("name2", "b")],
            [("name0", "a"), ("name1", "a")],
            [("name0", "a"), ("name1", "2")],
            [("file_name0", "a"), ("file_name1", "b")],
            [("interface_names[0]", "a"), ("interface_names[1]", "b")],
            [("name", "arm"), ("names", "[1, 2]")],
        ] {
            assert!(found(&cells).is_empty(), "{cells:?}");
        }
    }
}
