//! Recognition of columns by their names, with the terms of common controllers and programs for joints, quantities and time.

mod advice;
mod groups;
mod stated;
mod time;
pub(crate) mod words;

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::columns::assignment::{Style, quantity_of};
use crate::columns::listed::standard_names;
use crate::columns::mapped::{Mapped, Renaming};
use crate::columns::units;
use crate::joint_names::JointNames;
use crate::reader::Reader;
use groups::{Group, Key};
use stated::{Stated, StatedUnit, is_convertible, split_unit, suits};
pub(crate) use stated::{is_unit, unit_suffix};
use words::Quantity;

/// Interpretation of a column of a log.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RecognizedColumn {
    /// Name in the log.
    pub name: String,
    /// Standard name: `t`, `q1`, `tau.elbow` and so on; `None` if the column is not used.
    pub target: Option<String>,
    /// Unit if it is not the SI unit.
    pub unit: Option<&'static str>,
    /// Reason for this interpretation, or for ignoring the column.
    pub reason: String,
}

/// Interpretation of the columns of a log, with reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct Recognition {
    columns: Vec<RecognizedColumn>,
    /// Lines of an equivalent column map.
    map: Vec<String>,
    renaming: Renaming,
    /// Columns by their names in the renaming.
    places: HashMap<String, usize>,
}

impl Recognition {
    /// Recognizes columns by their names; `joints` are the names of the model's joints if known.
    ///
    /// Columns with standard names are used unchanged, and no other column is used for the same quantity.
    ///
    /// ```
    /// use inertial_data::Recognition;
    /// let names = ["timestamp", "actual_q_0", "actual_q_1", "target_q_0", "target_q_1"].map(String::from);
    /// let found = Recognition::of(&names, &[]);
    /// let targets: Vec<_> = found.columns().iter().map(|c| c.target.as_deref()).collect();
    /// assert_eq!(targets, [Some("t"), Some("q1"), Some("q2"), None, None]);
    /// ```
    pub fn of(names: &[String], joints: &[String]) -> Self {
        Self::with_joint_names(names, joints, &[])
    }

    /// Recognizes columns by their names, and the joints of numbered columns by the lists of joint names in the log, if a list has as
    /// many names as there are columns.
    ///
    /// ```
    /// use inertial_data::{JointNames, Recognition};
    /// let names = ["time", "position0", "position1"].map(String::from);
    /// let listed: Vec<_> = JointNames::new("name{i}", ["wrist", "elbow"]).into_iter().collect();
    /// let found = Recognition::with_joint_names(&names, &[], &listed);
    /// let targets: Vec<_> = found.columns().iter().map(|c| c.target.as_deref()).collect();
    /// assert_eq!(targets, [Some("t"), Some("q.wrist"), Some("q.elbow")]);
    /// ```
    pub fn with_joint_names(names: &[String], joints: &[String], listed: &[JointNames]) -> Self {
        Self::new(names, joints, listed, true)
    }

    /// Recognizes the columns of a log with a column map, whose standard names are final.
    pub(crate) fn of_mapped(names: &[String], joints: &[String], listed: &[JointNames]) -> Self {
        Self::new(names, joints, listed, false)
    }

    /// Recognizes columns; `renames` is whether columns with standard names by number get the names of joints from a list.
    fn new(names: &[String], joints: &[String], listed: &[JointNames], renames: bool) -> Self {
        let column = |name: &String| RecognizedColumn {
            name: name.clone(),
            target: None,
            unit: None,
            reason: "its name matches no known quantity".to_owned(),
        };
        let mut out = Self {
            columns: names.iter().map(column).collect(),
            map: Vec::new(),
            renaming: Renaming {
                names: names.to_vec(),
                linear: vec![(1.0, 0.0); names.len()],
                ..Renaming::default()
            },
            places: names.iter().cloned().zip(0..).collect(),
        };
        for k in (0..names.len()).filter(|&k| listed.iter().any(|list| list.is_source(&names[k]))) {
            "names of joints".clone_into(&mut out.columns[k].reason);
        }
        let known = Known::of(names);
        let own: Vec<usize> = (0..names.len())
            .filter(|&k| is_own(&names[k], &known) && !has_other_unit(&names[k], joints))
            .collect();
        let plain: Vec<&str> =
            own.iter().map(|&k| with_unit(&names[k]).map_or(names[k].as_str(), |u| u.0)).collect();
        let by_joint = if renames { standard_names(listed, &plain) } else { vec![None; own.len()] };
        for (&k, named) in own.iter().zip(&by_joint) {
            if let Some((target, list)) = named {
                out.take_standard(k, target, list);
                continue;
            }
            out.columns[k].target = Some(names[k].clone());
            "by its name".clone_into(&mut out.columns[k].reason);
            if let Some((plain, unit)) = with_unit(&names[k]) {
                out.take(k, plain, Some(unit), "by its name");
                out.map.push(format!("{plain:?} = {{ column = {:?}, unit = {unit:?} }}", names[k]));
                out.renaming.notes.push(format!("{plain}: taken from {}, {unit}", names[k]));
            }
        }
        out.recognize_time(names);
        out.recognize_joints(names, joints, &own, listed);
        out
    }

    /// Returns all columns, in the order of the log.
    pub fn columns(&self) -> &[RecognizedColumn] {
        &self.columns
    }

    /// Returns an equivalent column map in TOML, with lines to fill in as comments.
    pub fn map(&self) -> String {
        let mut out = String::from("[columns]\n");
        for line in &self.map {
            out += line;
            out.push('\n');
        }
        out
    }

    /// Returns whether no column is used under another name than its own.
    pub fn is_trivial(&self) -> bool {
        self.renaming.notes.is_empty()
    }

    /// Returns advice about columns that might be used.
    pub fn advice(&self) -> Option<&str> {
        self.renaming.advice.as_deref()
    }

    /// Returns a reader of the same log with the recognized names and units.
    pub fn apply<R: Reader>(&self, reader: R) -> Mapped<R> {
        Mapped::new(reader, self.renaming.clone())
    }

    fn take(&mut self, k: usize, target: &str, unit: Option<&'static str>, reason: &str) {
        // Another column that already has this name is renamed.
        if let Some(&other) = self.places.get(target).filter(|&&other| other != k) {
            self.rename(other, format!("{target} of the log"));
        }
        self.rename(k, target.to_owned());
        self.renaming.linear[k].0 = unit.and_then(units::unit).map_or(1.0, |(_, size)| size);
        self.columns[k] = RecognizedColumn {
            name: self.columns[k].name.clone(),
            target: Some(target.to_owned()),
            unit,
            reason: reason.to_owned(),
        };
    }

    /// Takes a column with a standard name by number for the joint that a list names.
    fn take_standard(&mut self, k: usize, target: &str, list: &JointNames) {
        let name = self.columns[k].name.clone();
        let unit = with_unit(&name).map(|(_, unit)| unit);
        let by = format!("named by {}", list.source);
        self.take(k, target, unit, &format!("by its name and number, {by}"));
        let symbol = target.split('.').next().unwrap_or_default();
        let note = format!("{symbol}: taken from {symbol}{{i}}, {by}");
        if !self.renaming.notes.contains(&note) {
            self.renaming.notes.push(note);
        }
        self.map.push(match unit {
            Some(unit) => format!("{target:?} = {{ column = {name:?}, unit = {unit:?} }}"),
            None => format!("{target:?} = {name:?}"),
        });
    }

    /// Renames a column, and keeps the look-up of names up to date.
    fn rename(&mut self, k: usize, name: String) {
        let old = std::mem::replace(&mut self.renaming.names[k], name.clone());
        if self.places.get(&old) == Some(&k) {
            self.places.remove(&old);
        }
        self.places.insert(name, k);
    }

    fn recognize_time(&mut self, names: &[String]) {
        if names.iter().any(|name| name == "t") {
            return;
        }
        let Some(found) = time::find(names) else { return };
        let name = &names[found.column];
        if let Some(fine) = found.nanoseconds {
            self.take(found.column, "t", None, "seconds of the time stamp");
            "nanoseconds of the time stamp, added to t".clone_into(&mut self.columns[fine].reason);
            self.renaming.nanoseconds = Some([found.column, fine]);
            self.map.push(format!("t = [{name:?}, {:?}]", names[fine]));
            self.renaming.notes.push(format!("t: taken from {name} and {}", names[fine]));
            return;
        }
        self.take(found.column, "t", found.unit, "time, by its name");
        if found.unit.is_none() {
            self.renaming.stamps = Some(found.column);
        }
        if let Some(unit) = found.unit {
            self.map.push(format!("t = {{ column = {name:?}, unit = {unit:?} }}"));
            self.renaming.notes.push(format!("t: taken from {name} ({unit})"));
        } else {
            self.map.push(format!("t = {name:?}"));
            self.renaming.notes.push(format!("t: taken from {name}"));
        }
    }

    fn recognize_joints(
        &mut self,
        names: &[String],
        joints: &[String],
        own: &[usize],
        listed: &[JointNames],
    ) {
        let standard: Vec<(&str, Style)> =
            own.iter().filter_map(|&k| quantity_of(self.columns[k].target.as_deref()?)).collect();
        let given = |quantity: Quantity| standard.iter().any(|(symbol, _)| *symbol == quantity.symbol());
        let mut style = standard.first().map(|(_, style)| *style);
        let free: Vec<usize> = (0..names.len()).filter(|k| self.columns[*k].target.is_none()).collect();
        let mut groups = groups::find(names, &free, joints);
        groups::name(&mut groups, listed);
        for group in groups.iter().filter(|g| g.meaning.refused.is_some()) {
            for (_, k) in &group.members {
                group.meaning.refused.unwrap_or_default().clone_into(&mut self.columns[*k].reason);
            }
        }
        let is_joint = |text: &str| groups::joint_of_model(text, joints).is_some();
        let on_scale = |group: &Group| {
            let first = group.members.first().filter(|_| group.meaning.needs_scale())?;
            Some(advice::on_scale(group, &names[first.1], &is_joint))
        };
        for quantity in Quantity::ALL {
            let mut candidates: Vec<&Group> = groups
                .iter()
                .filter(|g| g.meaning.quantity == quantity && g.meaning.refused.is_none())
                .filter(|g| g.named_by.is_some() || style.is_none_or(|style| style == g.style()))
                .collect();
            candidates.sort_by_key(|g| std::cmp::Reverse(g.weight()));
            for group in &candidates {
                let reason = if let Some(advice) = on_scale(group).filter(|_| !given(quantity)) {
                    advice.reason
                } else if given(quantity) {
                    format!("not used: the log already has columns {}", quantity.symbol())
                } else {
                    format!("not used: another column matches {} better", quantity.symbol())
                };
                group.members.iter().for_each(|(_, k)| self.columns[*k].reason.clone_from(&reason));
            }
            match &candidates[..] {
                _ if given(quantity) => {}
                [] => {}
                [one, ..] if one.meaning.needs_scale() => {
                    on_scale(one).into_iter().for_each(|advice| self.add_advice(advice));
                }
                [one, other, ..] if one.weight() == other.weight() => {
                    self.advise_choice(quantity, one, other);
                }
                [one, ..] => {
                    style = Some(one.style());
                    self.take_group(quantity, one, listed);
                }
            }
        }
    }

    fn take_group(&mut self, quantity: Quantity, group: &Group, listed: &[JointNames]) {
        let symbol = quantity.symbol();
        let written = group.meaning.writer.map_or(String::new(), |writer| format!(" ({writer})"));
        let named = group.named_by.as_ref().map_or(String::new(), |list| format!(", named by {list}"));
        let reason = format!("like {}{written}{named}", group.template);
        for (key, k) in &group.members {
            let target = match key {
                Key::Number(number) => format!("{symbol}{number}"),
                Key::Joint(joint) => format!("{symbol}.{joint}"),
            };
            self.take(*k, &target, group.meaning.unit, &reason);
        }
        let unit = group.meaning.unit;
        let unit_text = unit.map_or(String::new(), |unit| format!(", {unit}"));
        self.renaming
            .notes
            .push(format!("{symbol}: taken from {}{unit_text}{written}{named}", group.template));
        self.renaming.notes.extend(other_count(symbol, group, listed));
        if group.is_pattern() {
            self.map.push(match unit {
                Some(unit) => format!("{symbol} = {{ column = {:?}, unit = {unit:?} }}", group.template),
                None => format!("{symbol} = {:?}", group.template),
            });
        } else {
            for (key, k) in &group.members {
                let target = match key {
                    Key::Number(number) => format!("{symbol}{number}"),
                    Key::Joint(joint) => format!("{:?}", format!("{symbol}.{joint}")),
                };
                let name = &self.columns[*k].name;
                self.map.push(match unit {
                    Some(unit) => format!("{target} = {{ column = {name:?}, unit = {unit:?} }}"),
                    None => format!("{target} = {name:?}"),
                });
            }
        }
    }

    fn add_advice(&mut self, advice: advice::Advice) {
        self.map.push(advice.map);
        self.renaming.advice = Some(match self.renaming.advice.take() {
            Some(others) => format!("{others}; {}", advice.text),
            None => advice.text,
        });
    }

    fn advise_choice(&mut self, quantity: Quantity, one: &Group, other: &Group) {
        let symbol = quantity.symbol();
        for group in [one, other] {
            for (_, k) in &group.members {
                self.columns[*k].reason =
                    format!("possibly {symbol}, but other columns match too: choose one in a column map");
            }
            self.map.push(format!("# {symbol} = {:?}", group.template));
        }
        self.renaming.advice = Some(format!(
            "{} and {} may both be {symbol}: choose one in a column map",
            one.template, other.template
        ));
    }
}

/// Returns a note on a group by number beside lists of joints of another length.
fn other_count(symbol: &str, group: &Group, listed: &[JointNames]) -> Option<String> {
    let list = listed.iter().find(|list| group.template.starts_with(&list.scope))?;
    (group.style() == Style::Numbered).then(|| {
        format!(
            "{symbol}: {} columns in the order of the model's joints, because {} has {} names",
            group.members.len(),
            list.source,
            list.names.len()
        )
    })
}

/// Groups of columns that belong to no joint.
const OTHERS: [&str; 7] = ["base", "wrench", "ft", "acc", "gyro", "alpha", "momentum"];

/// Names of a log for look-ups.
struct Known<'n> {
    names: HashSet<&'n str>,
    /// Symbols of standard names with numbers.
    numbered: HashSet<&'n str>,
}

impl<'n> Known<'n> {
    fn of(names: &'n [String]) -> Self {
        let symbol = |name: &'n String| match quantity_of(name) {
            Some((symbol, Style::Numbered)) => Some(symbol),
            _ => None,
        };
        Self {
            names: names.iter().map(String::as_str).collect(),
            numbered: names.iter().filter_map(symbol).collect(),
        }
    }
}

/// Returns whether a column has a standard name. Numbers from 0, or with leading zeros, are another numbering.
fn is_own(name: &str, known: &Known<'_>) -> bool {
    // `q1 [deg]` beside `q2`; if all columns have units, they are recognized as a group.
    if let Some((plain, _)) = with_unit(name)
        && let Some((symbol, Style::Numbered)) = quantity_of(plain)
    {
        return known.numbered.contains(symbol) && is_own(plain, known);
    }
    match quantity_of(name) {
        Some((_, Style::Named)) => true,
        Some((symbol, Style::Numbered)) => ["0", "00", "01", "000", "001"]
            .iter()
            .all(|first| !known.names.contains(format!("{symbol}{first}").as_str())),
        None => name == "t" || name.split_once('.').is_some_and(|(group, _)| OTHERS.contains(&group)),
    }
}

/// Splits a standard name with a unit in brackets: `q.elbow [deg]`.
fn with_unit(name: &str) -> Option<(&str, &'static str)> {
    let (plain, unit) = split_unit(name);
    let (symbol, _) = quantity_of(plain).filter(|_| name.ends_with([']', ')']))?;
    Some((plain, unit.filter(|unit| suits(unit, symbol) && is_convertible(unit))?))
}

/// Returns whether a standard name is followed by a unit that cannot be converted: `tau.elbow [A]`.
fn has_other_unit(name: &str, joints: &[String]) -> bool {
    let is_joint = |text: &str| groups::joint_of_model(text, joints).is_some();
    quantity_of(name).is_some()
        && name.ends_with([']', ')'])
        && with_unit(name).is_none()
        && Stated::of(name, &is_joint).unit != StatedUnit::Absent
        && !joints.iter().any(|joint| name.ends_with(joint.as_str()))
}

#[cfg(test)]
mod tests;
