//! Groups of columns: the same words with different joints.

use std::collections::{BTreeMap, HashMap};

use crate::columns::assignment::Style;
use crate::columns::listed::list_for;
use crate::columns::recognition::stated::Stated;
use crate::columns::recognition::words::{Meaning, meaning, words};
use crate::joint_names::JointNames;

/// Joint of a column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// Number of the joint, from 1.
    Number(usize),
    /// Name of the joint.
    Joint(String),
}

/// Columns of one quantity.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Group {
    /// Names of the columns with a placeholder for the joint.
    pub template: String,
    pub meaning: Meaning,
    pub members: Vec<(Key, usize)>,
    /// List that names the joints of the numbers.
    pub named_by: Option<String>,
}

impl Group {
    /// Returns the naming style of the target columns.
    pub fn style(&self) -> Style {
        match self.members.first() {
            Some((Key::Joint(_), _)) => Style::Named,
            _ => Style::Numbered,
        }
    }

    /// Returns whether the template is a pattern of column maps for these joints.
    pub fn is_pattern(&self) -> bool {
        self.template.contains('{') && self.named_by.is_none()
    }

    /// Returns the weight of the group: quantities before values that need a scale, then measurements, then the number of joints.
    pub fn weight(&self) -> (bool, u8, usize) {
        (!self.meaning.needs_scale(), self.meaning.rank, self.members.len())
    }
}

/// Interpretation of one name.
struct Interpretation {
    template: String,
    meaning: Meaning,
    key: Key,
    column: usize,
}

/// Finds the groups of the columns `free`; `joints` are the names of the model's joints if known.
pub(crate) fn find(names: &[String], free: &[usize], joints: &[String]) -> Vec<Group> {
    let mut interpretations: Vec<Vec<Interpretation>> =
        free.iter().map(|&k| interpret(&names[k], k, joints)).collect();
    // If a name has several numbers, the one that differs between columns is the joint's.
    let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
    for interpretation in interpretations.iter().flatten() {
        *sizes.entry(interpretation.template.clone()).or_default() += 1;
    }
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for interpretations in &mut interpretations {
        let Some(best) = (0..interpretations.len()).max_by_key(|&r| sizes[&interpretations[r].template])
        else {
            continue;
        };
        let Interpretation { template, meaning, key, column } = interpretations.swap_remove(best);
        if let Some(&place) = places.get(&template) {
            groups[place].members.push((key, column));
        } else {
            places.insert(template.clone(), groups.len());
            groups.push(Group { template, meaning, members: vec![(key, column)], named_by: None });
        }
    }
    groups.retain_mut(counted);
    groups
}

/// Names the joints of numbered groups by the list with as many names.
pub(crate) fn name(groups: &mut [Group], listed: &[JointNames]) {
    for group in groups.iter_mut().filter(|group| group.style() == Style::Numbered) {
        let Some(list) = list_for(listed, &group.template, group.members.len()) else { continue };
        for ((key, _), name) in group.members.iter_mut().zip(&list.names) {
            *key = Key::Joint(name.clone());
        }
        group.named_by = Some(list.source.clone());
    }
}

/// Sorts and renumbers the members from 1; returns false for groups with gaps.
fn counted(group: &mut Group) -> bool {
    group.members.sort();
    let mut numbers = group.members.iter_mut().filter_map(|(key, _)| match key {
        Key::Number(number) => Some(number),
        Key::Joint(_) => None,
    });
    let Some(first) = numbers.next() else { return true };
    let zero = 1usize.saturating_sub(*first);
    if *first > 1 {
        return false;
    }
    *first = 1;
    numbers.enumerate().all(|(k, number)| {
        *number += zero;
        *number == k + 2
    })
}

/// Returns the interpretations of a name; several if it has several numbers.
fn interpret(name: &str, column: usize, joints: &[String]) -> Vec<Interpretation> {
    let stated = Stated::of(name, &|text| joint_of_model(text, joints).is_some());
    let rest = stated.rest;
    let meaning_of = |words: &[String]| stated.meaning(words);
    let template = |range: &std::ops::Range<usize>, open: &str| {
        format!("{}{open}{}", &name[..range.start], &name[range.end..])
    };
    let all_words = words(rest);
    if let Some((joint, range)) =
        joint_of_model(rest, joints).or_else(|| joint_segment(rest).filter(|_| joints.is_empty()))
    {
        let outside =
            |(_, at): &&(String, std::ops::Range<usize>)| at.end <= range.start || at.start >= range.end;
        let other_words: Vec<String> =
            all_words.iter().filter(outside).map(|(word, _)| word.clone()).collect();
        if let Some(meaning) = meaning_of(&other_words) {
            let key = Key::Joint(joint.to_owned());
            return vec![Interpretation { template: template(&range, "{joint}"), meaning, key, column }];
        }
    }
    let others = |own: Option<usize>| -> Vec<String> {
        all_words
            .iter()
            .enumerate()
            .filter(|(k, _)| Some(*k) != own)
            .map(|(_, (word, _))| word.clone())
            .collect()
    };
    let mut out = Vec::new();
    for (k, (word, range)) in all_words.iter().enumerate() {
        let number = word.parse().ok().filter(|_| word.len() <= 4);
        if let Some((number, meaning)) = number.zip(meaning_of(&others(Some(k)))) {
            out.push(Interpretation {
                template: template(range, "{i}"),
                meaning,
                key: Key::Number(number),
                column,
            });
        }
    }
    // A robot with one joint needs no numbers.
    if out.is_empty()
        && let Some(meaning) = meaning_of(&others(None)).filter(|_| all_words.len() <= 3)
    {
        out.push(Interpretation { template: name.to_owned(), meaning, key: Key::Number(1), column });
    }
    out
}

/// Returns the longest joint name of the model that is a separate part of a name.
pub(super) fn joint_of_model<'j>(
    name: &str,
    joints: &'j [String],
) -> Option<(&'j str, std::ops::Range<usize>)> {
    let alone = |at: usize, end: usize| {
        let part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        !part(name[..at].chars().next_back()) && !part(name[end..].chars().next())
    };
    joints
        .iter()
        .filter(|joint| !joint.is_empty())
        .flat_map(|joint| {
            name.match_indices(joint.as_str()).map(move |(at, _)| (joint.as_str(), at..at + joint.len()))
        })
        .filter(|(_, range)| alone(range.start, range.end))
        .max_by_key(|(joint, _)| joint.len())
}

/// Returns the joint of `…/elbow/position` and `elbow.pos`: the part before a quantity.
fn joint_segment(name: &str) -> Option<(&str, std::ops::Range<usize>)> {
    let split = name.rfind(['/', '.'])?;
    let last: Vec<String> = words(&name[split + 1..]).into_iter().map(|(word, _)| word).collect();
    let quantity = last.len() == 1 && meaning(&last).is_some();
    let start = name[..split].rfind(['/', '.']).map_or(0, |k| k + 1);
    let joint = &name[start..split];
    let plain = joint.starts_with(char::is_alphabetic) && !joint.contains(['[', '(']);
    // `/joint_states/position` is a message, not a joint.
    let message = ["field", "state", "states", "msg", "data", "observation"].contains(&joint)
        || joint.ends_with("states");
    (quantity && plain && !message).then_some((joint, start..split))
}
