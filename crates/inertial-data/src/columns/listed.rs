//! Names of joints that a log lists beside numbered columns: `field.name0 field.name1 …` beside `field.position0 …`.

use std::collections::BTreeMap;

use crate::columns::assignment::{Style, quantity_of};
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

/// Returns the list that names the joints of `count` columns: of those with as many names the one whose source is most similar to the
/// `template` of the columns.
pub(crate) fn list_for<'l>(lists: &'l [JointNames], template: &str, count: usize) -> Option<&'l JointNames> {
    let common =
        |list: &JointNames| list.source.chars().zip(template.chars()).take_while(|(a, b)| a == b).count();
    // Of equally similar lists, the first one is used.
    let fitting =
        lists.iter().rev().filter(|list| list.names.len() == count && template.starts_with(&list.scope));
    fitting.max_by_key(|list| common(list))
}

/// Returns the list and the name for a numbered column, from all columns with the same name and other numbers.
pub(crate) fn name_of<'l>(
    lists: &'l [JointNames],
    names: &[String],
    column: &str,
) -> Option<(&'l JointNames, &'l str)> {
    if lists.is_empty() {
        return None;
    }
    let digits = |c: char| c.is_ascii_digit();
    let mut starts = column.char_indices().filter(|&(at, c)| digits(c) && !column[..at].ends_with(digits));
    starts.find_map(|(at, _)| {
        let (before, rest) = column.split_at(at);
        let after = rest.trim_start_matches(digits);
        let number: usize = rest[..rest.len() - after.len()].parse().ok()?;
        let part = |name: &String| {
            let part = name.strip_prefix(before)?.strip_suffix(after)?;
            if is_index(part) { part.parse::<usize>().ok() } else { None }
        };
        let numbers: Vec<usize> = names.iter().filter_map(part).collect();
        let list = list_for(lists, &format!("{before}{{i}}{after}"), numbers.len())?;
        let place = number.checked_sub(*numbers.iter().min()?)?;
        Some((list, list.names.get(place)?.as_str()))
    })
}

/// Returns the standard names by joint of the columns with standard names by number (`q1 …`), each with the list that names its joint.
pub(crate) fn standard_names<'l>(
    lists: &'l [JointNames],
    names: &[&str],
) -> Vec<Option<(String, &'l JointNames)>> {
    let mut out = vec![None; names.len()];
    if lists.is_empty() {
        return out;
    }
    for quantity in ["q", "dq", "ddq", "tau"] {
        let own = |k: usize| quantity_of(names[k]).filter(|(symbol, _)| *symbol == quantity);
        let columns: Vec<usize> = (0..names.len()).filter(|&k| own(k).is_some()).collect();
        if columns.iter().any(|&k| own(k).is_some_and(|(_, style)| style == Style::Named)) {
            continue;
        }
        let number = |k: usize| names[k][quantity.len()..].parse::<usize>().ok();
        let numbers: BTreeMap<usize, usize> = columns.iter().filter_map(|&k| Some((number(k)?, k))).collect();
        let is_complete =
            numbers.len() == columns.len() && numbers.keys().enumerate().all(|(k, &n)| n == k + 1);
        let list = list_for(lists, &format!("{quantity}{{i}}"), columns.len()).filter(|_| is_complete);
        for (list, (number, k)) in std::iter::repeat(list).zip(numbers).filter_map(|(l, n)| Some((l?, n))) {
            out[k] = Some((format!("{quantity}.{}", list.names[number - 1]), list));
        }
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
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

    #[test]
    fn the_nearest_list_counts() {
        let list = |source: &str, names: [&str; 2]| JointNames::new(source, names).unwrap();
        let lists = [list("left.name{i}", ["a", "b"]), list("right.name{i}", ["c", "d"])];
        let of = |template: &str, count| list_for(&lists, template, count).map(|list| list.names[0].as_str());
        assert_eq!(
            [of("left.q{i}", 2), of("right.q{i}", 2), of("q{i}", 2), of("q{i}", 3)],
            [Some("a"), Some("c"), Some("a"), None]
        );
        let names = ["right.q0", "right.q1"].map(String::from);
        assert_eq!(name_of(&lists, &names, "right.q1").map(|(_, name)| name), Some("d"));
        let topic = [lists[0].clone().within("/arm.")];
        assert!(
            list_for(&topic, "/hand.q[{i}]", 2).is_none() && list_for(&topic, "/arm.q[{i}]", 2).is_some()
        );
    }
}
