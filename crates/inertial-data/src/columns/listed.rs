//! Names for numbered columns from the lists of joint names in a log.

use std::collections::BTreeMap;

use crate::columns::assignment::{Style, quantity_of};
use crate::joint_names::{JointNames, is_index};

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
