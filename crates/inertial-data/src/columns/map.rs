//! Column maps: logs with other names and units.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::columns::assignment::{Style, quantity_of};
use crate::columns::listed::{list_for, name_of, standard_names};
use crate::columns::mapped::{Mapped, Renaming};
use crate::columns::pattern::Pattern;
use crate::columns::units::{self, Dimension, dimensions};
use crate::error::nearest_hint;
use crate::joint_names::JointNames;
use crate::reader::Reader;
use crate::{Error, Place, Result};

/// Map of the columns of a log to the standard names and units.
///
/// ```
/// use inertial_data::{ColumnMap, CsvReader, Log};
/// let map = ColumnMap::parse(
///     r#"
///     units = { t = "ms", q = "deg" }    # of all columns of a quantity
///     joints = { j2 = "elbow" }          # a joint's name in the log, and in the model
///     [columns]                          # a standard name, and its column in the log
///     t = "stamp"
///     "tau.elbow" = { column = "current", unit = "A", scale = 0.5, offset = 0.1 }
///     "#,
///     "map.toml",
/// )?;
/// let text = "stamp,q.j2,current\n0,90,2\n10,180,4\n";
/// let log = Log::collect(map.apply(CsvReader::new(text.as_bytes(), "log.csv")?)?)?;
/// assert_eq!(log.names(), ["t", "q.elbow", "tau.elbow"]);
/// assert_eq!(log.column("t"), Some(&[0.0, 0.01][..]));
/// assert_eq!(log.column("q.elbow").map(|q| q[1]), Some(std::f64::consts::PI));
/// assert_eq!(log.column("tau.elbow"), Some(&[1.1, 2.1][..]));
/// # Ok::<(), inertial_data::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ColumnMap {
    file: String,
    text: MapText,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct MapText {
    /// Units by quantity: `t`, `q`, `dq`, `ddq`, `tau`, or any other group before the dot.
    #[serde(default)]
    units: BTreeMap<String, String>,
    /// Joint names in the log, and in the model.
    #[serde(default)]
    joints: BTreeMap<String, String>,
    #[serde(default)]
    columns: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Entry {
    Name(String),
    /// Seconds and nanoseconds of the time.
    Stamps([String; 2]),
    Full(FullEntry),
}

impl Entry {
    fn column(&self) -> &str {
        match self {
            Self::Name(name) | Self::Stamps([name, _]) => name,
            Self::Full(full) => &full.column,
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FullEntry {
    column: String,
    unit: Option<String>,
    scale: Option<Numbers>,
    offset: Option<Numbers>,
}

/// Number for all columns of a pattern, or one for each.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Numbers {
    One(f64),
    Each(Vec<f64>),
}

impl Numbers {
    fn all(&self) -> &[f64] {
        match self {
            Self::One(number) => std::slice::from_ref(number),
            Self::Each(numbers) => numbers,
        }
    }

    /// Returns the number of a column; `None` if the list is shorter.
    fn get(&self, k: usize) -> Option<f64> {
        match self {
            Self::One(number) => Some(*number),
            Self::Each(numbers) => numbers.get(k).copied(),
        }
    }
}

/// Column of a log with its standard name and unit.
struct Assigned<'m> {
    target: String,
    column: usize,
    unit: Option<&'m str>,
    scale: f64,
    offset: f64,
}

impl ColumnMap {
    /// Reads a map from TOML; `name` is used in messages.
    pub fn parse(text: &str, name: impl Into<String>) -> Result<Self> {
        let file = name.into();
        let text: MapText = toml::from_str(text).map_err(|e| {
            let row = e.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let place = Place { row, ..Place::file(&file) };
            let message = e.message().lines().next().unwrap_or_default().to_owned();
            let hint = "expected tables [units], [joints] and [columns]";
            Error::read(place, format!("{message}; {hint}"))
        })?;
        let out = Self { file, text };
        for (group, unit) in &out.text.units {
            let column = if group == "t" { group.clone() } else { format!("{group}.x") };
            out.unit(&column, unit, group)?;
        }
        for (target, entry) in &out.text.columns {
            if dimensions(target).is_empty() && !matches!(target.split_once('.'), Some(("base", _))) {
                let message = "is not a log column: expected t, q.JOINT, dq.JOINT, ddq.JOINT, tau.JOINT, q1 \
                               …, or those of base, wrench, ft, acc, gyro, alpha or momentum";
                return Err(Error::columns(Place::file(&out.file).column(target), message));
            }
            if let Entry::Full(full) = entry {
                let numbers =
                    |given: &Option<Numbers>| given.as_ref().map_or(Vec::new(), |n| n.all().to_vec());
                let bad = |x: &f64| !x.is_finite();
                if numbers(&full.scale).iter().any(|x| bad(x) || *x == 0.0)
                    || numbers(&full.offset).iter().any(bad)
                {
                    let message = "a scale is a finite number other than zero, an offset a finite number";
                    return Err(Error::columns(Place::file(&out.file).column(target), message));
                }
                if let Some(unit) = &full.unit {
                    let (dimension, _) = out.unit(target, unit, target)?;
                    if matches!(dimension, Dimension::Current | Dimension::Count) && full.scale.is_none() {
                        let message = format!("unit {unit} needs a scale: SI units per {unit}");
                        return Err(Error::columns(Place::file(&out.file).column(target), message));
                    }
                }
            }
        }
        Ok(out)
    }

    fn unit(&self, column: &str, unit: &str, place: &str) -> Result<(Dimension, f64)> {
        let wanted = dimensions(column);
        match units::unit(unit) {
            Some(found) if wanted.is_empty() || wanted.contains(&found.0) => Ok(found),
            _ => {
                let message = format!("unit {unit}: expected one of {}", units::names(column));
                Err(Error::columns(Place::file(&self.file).column(place), message))
            }
        }
    }

    /// Returns the names and patterns of the log's columns that the map uses.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &str> {
        self.text.columns.values().flat_map(|entry| match entry {
            Entry::Stamps([seconds, nanoseconds]) => vec![seconds.as_str(), nanoseconds.as_str()],
            entry => vec![entry.column()],
        })
    }

    /// Returns whether the map takes the positions of all joints from field paths of topics.
    pub(crate) fn has_position_paths(&self) -> bool {
        self.text.columns.iter().any(|(target, entry)| {
            let number = target.strip_prefix('q').filter(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
            number.is_some() && entry.column().starts_with('/')
        })
    }

    /// Returns a reader of the same log with the standard names and units.
    pub fn apply<R: Reader>(&self, reader: R) -> Result<Mapped<R>> {
        self.apply_for(reader, &[])
    }

    /// Returns a reader of the same log with the standard names and units; `joints` are the names of the model's joints if known. If the
    /// log lists some of them, they name the columns of a pattern with `{i}`.
    pub(crate) fn apply_for<R: Reader>(&self, reader: R, joints: &[String]) -> Result<Mapped<R>> {
        let log = Place::file(reader.file());
        let names = reader.names();
        let in_log = reader.joint_names();
        let listed = self.in_model(&in_log);
        let mut renaming = Renaming::default();
        let mut targets: Vec<String> = names.iter().map(|name| self.renamed(name)).collect();
        self.name_standard(&listed, &mut targets, &mut renaming.notes);
        let mut own: Vec<Option<Assigned<'_>>> = names.iter().map(|_| None).collect();
        for (target, entry) in &self.text.columns {
            let assigned = self.assigned(target, entry, names, &log)?;
            for one in Self::named(assigned, target, entry.column(), &listed, joints, &mut renaming.notes) {
                let k = one.column;
                if let Some(other) = &own[k] {
                    let message = format!(
                        "{}: column {} is used for {} and {}",
                        self.file, names[k], other.target, one.target
                    );
                    return Err(Error::columns(log, message));
                }
                // A column that already has this name is renamed.
                if let Some(other) =
                    targets.iter().position(|name| *name == one.target).filter(|&other| other != k)
                {
                    targets[other] = format!("{} of the log", one.target);
                }
                targets[k].clone_from(&one.target);
                own[k] = Some(one);
            }
            if let Entry::Stamps([seconds, nanoseconds]) = entry {
                let pair = [self.column_of(seconds, names, &log)?, self.column_of(nanoseconds, names, &log)?];
                renaming.nanoseconds = Some(pair);
            }
        }
        self.check_joints(names, &in_log, &log)?;
        let numbered = own
            .iter()
            .zip(names)
            .filter_map(|(own, name)| Some((own.as_ref()?.target.as_str(), name.as_str())));
        renaming.notes.extend(other_orders(&numbered.collect::<Vec<_>>(), names, &listed, joints));
        let styles: Vec<_> = own.iter().flatten().filter_map(|one| quantity_of(&one.target)).collect();
        for (target, _) in targets.iter_mut().zip(&own).filter(|(_, own)| own.is_none()) {
            // Columns by number and by joint name would be two definitions of the same quantity: the map counts.
            let other = |(quantity, style)| styles.iter().any(|(q, s)| *q == quantity && *s != style);
            if quantity_of(target).is_some_and(other) {
                *target = format!("log.{target}");
            }
        }
        for (target, own) in targets.iter().zip(&own) {
            let group = target.split('.').next().unwrap_or_default();
            let group = group.trim_end_matches(|c: char| c.is_ascii_digit());
            let stamps = matches!(self.text.columns.get(target), Some(Entry::Stamps(_)));
            let unit = own
                .as_ref()
                .and_then(|o| o.unit)
                .or_else(|| self.text.units.get(group).map(String::as_str).filter(|_| !stamps));
            let size = unit.map_or(Ok(1.0), |unit| self.unit(target, unit, target).map(|(_, size)| size))?;
            renaming.linear.push(own.as_ref().map_or((size, 0.0), |o| (size * o.scale, o.offset)));
        }
        renaming.names = targets;
        renaming.listed = listed;
        Mapped::new(reader, renaming).checked()
    }

    /// Returns the lists of joints with the names of the model.
    fn in_model(&self, lists: &[JointNames]) -> Vec<JointNames> {
        let named = |name: &String| self.text.joints.get(name).unwrap_or(name).clone();
        let own =
            |list: &JointNames| JointNames { names: list.names.iter().map(named).collect(), ..list.clone() };
        lists.iter().map(own).collect()
    }

    /// Names the joints of the log's own columns `q1 …` by its list of joints, for quantities that the map does not define.
    fn name_standard(&self, listed: &[JointNames], targets: &mut [String], notes: &mut Vec<String>) {
        let is_defined = |symbol: &str| {
            let is_own = |target: &String| {
                target == symbol || quantity_of(target).is_some_and(|(own, _)| own == symbol)
            };
            self.text.columns.keys().any(is_own)
        };
        let found = standard_names(listed, &targets.iter().map(String::as_str).collect::<Vec<_>>());
        for (target, (name, list)) in targets.iter_mut().zip(found).filter_map(|(t, found)| Some((t, found?)))
        {
            let Some((symbol, _)) = quantity_of(target).filter(|(symbol, _)| !is_defined(symbol)) else {
                continue;
            };
            let note = format!("{symbol}: taken from {symbol}{{i}}, named by {}", list.source);
            if !notes.contains(&note) {
                notes.push(note);
            }
            *target = name;
        }
    }

    /// Gives the columns of a pattern with `{i}` to the joints that the log lists, if the model has some of them.
    fn named<'m>(
        mut assigned: Vec<Assigned<'m>>,
        target: &str,
        source: &str,
        listed: &[JointNames],
        joints: &[String],
        notes: &mut Vec<String>,
    ) -> Vec<Assigned<'m>> {
        let list = list_for(listed, source, assigned.len()).filter(|_| source.contains("{i}"));
        if let Some(list) = list.filter(|list| list.names.iter().any(|name| joints.contains(name))) {
            for (one, name) in assigned.iter_mut().zip(&list.names) {
                one.target = format!("{target}.{name}");
            }
            notes.push(format!("{target}: {source} of the column map, named by {}", list.source));
        }
        assigned
    }

    /// Rejects names of joints that the log does not contain.
    fn check_joints(&self, names: &[String], listed: &[JointNames], log: &Place) -> Result<()> {
        let dotted = names.iter().filter_map(|n| n.split_once('.')).map(|(_, joint)| joint.to_owned());
        let listed = listed.iter().flat_map(|list| list.names.iter().cloned());
        let mut joints: Vec<String> = dotted.chain(listed).collect();
        for entry in self.text.columns.values() {
            if let Ok(Some(found)) =
                Pattern::parse(entry.column()).map(|p| p.and_then(|p| p.columns(names).ok()))
            {
                joints.extend(found.iter().filter_map(|(part, _)| part.strip_prefix('.')).map(str::to_owned));
            }
        }
        match self.text.joints.keys().find(|alias| !joints.contains(alias)) {
            Some(alias) => {
                let hint = nearest_hint(alias, &joints);
                let message = format!("{}: no column belongs to the joint {alias}{hint}", self.file);
                Err(Error::columns(log.clone(), message))
            }
            None => Ok(()),
        }
    }

    /// Returns the columns assigned by an entry of the map.
    fn assigned<'m>(
        &'m self,
        target: &str,
        entry: &'m Entry,
        names: &[String],
        log: &Place,
    ) -> Result<Vec<Assigned<'m>>> {
        let refused = |message: String| Error::columns(Place::file(&self.file).column(target), message);
        let source = entry.column();
        let group = matches!(target, "q" | "dq" | "ddq" | "tau");
        let found = match Pattern::parse(source).map_err(refused)? {
            Some(_) if !group => {
                return Err(refused("a pattern can only be used for q, dq, ddq and tau".to_owned()));
            }
            Some(pattern) => {
                let found = pattern.columns(names).map_err(refused)?;
                if found.is_empty() {
                    let hint = nearest_hint(source, names);
                    return Err(refused(format!("no column of the log matches {source}{hint}")));
                }
                found.into_iter().map(|(part, k)| (self.renamed(&format!("{target}{part}")), k)).collect()
            }
            None if group => {
                let message = format!(
                    "expected a pattern such as {source}_{{i}}, or {target}1, {target}2 … or {target}.JOINT"
                );
                return Err(refused(message));
            }
            None => vec![(target.to_owned(), self.column_of(source, names, log)?)],
        };
        let full = if let Entry::Full(full) = entry { Some(full) } else { None };
        let number = |given: Option<&Numbers>, k: usize, default: f64| match given {
            None => Ok(default),
            Some(numbers) => numbers.get(k).ok_or_else(|| {
                refused(format!("{} numbers for {} columns", numbers.all().len(), found.len()))
            }),
        };
        let each = found.iter().enumerate().map(|(k, (target, column))| {
            Ok(Assigned {
                target: target.clone(),
                column: *column,
                unit: full.and_then(|f| f.unit.as_deref()),
                scale: number(full.and_then(|f| f.scale.as_ref()), k, 1.0)?,
                offset: number(full.and_then(|f| f.offset.as_ref()), k, 0.0)?,
            })
        });
        each.collect()
    }

    fn column_of(&self, source: &str, names: &[String], log: &Place) -> Result<usize> {
        names.iter().position(|name| name == source).ok_or_else(|| {
            let message =
                format!("{}: there is no column {source}{}", self.file, nearest_hint(source, names));
            Error::columns(log.clone(), message)
        })
    }

    /// Returns a column's name with the model's name of its joint.
    fn renamed(&self, name: &str) -> String {
        match name.split_once('.') {
            Some((quantity @ ("q" | "dq" | "ddq" | "tau"), joint)) => {
                format!("{quantity}.{}", self.text.joints.get(joint).map_or(joint, String::as_str))
            }
            _ => name.to_owned(),
        }
    }
}

/// Returns notes on quantities that a map numbers in another order than the log lists the joints. `numbered` has the targets of the map
/// with their columns.
fn other_orders(
    numbered: &[(&str, &str)],
    names: &[String],
    listed: &[JointNames],
    joints: &[String],
) -> Vec<String> {
    let mut out = Vec::new();
    for quantity in ["q", "dq", "ddq", "tau"] {
        let own =
            numbered.iter().filter(|(target, _)| quantity_of(target) == Some((quantity, Style::Numbered)));
        let mut columns: Vec<(usize, &JointNames, usize)> = own
            .filter_map(|(target, column)| {
                let (list, name) = name_of(listed, names, column)?;
                let place = joints.iter().position(|joint| joint == name)?;
                Some((target[quantity.len()..].parse().ok()?, list, place))
            })
            .collect();
        columns.sort_by_key(|(number, ..)| *number);
        if let Some(pair) = columns.windows(2).find(|pair| pair[0].2 >= pair[1].2) {
            let list = pair[0].1;
            out.push(format!(
                "{quantity}: numbered by the column map in the order of the model's joints, although {} lists them as {}; use \
                 {quantity}.JOINT for other columns",
                list.source,
                list.names.join(" ")
            ));
        }
    }
    out
}
