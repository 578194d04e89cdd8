//! Column maps: logs with other names and other units.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::columns::units::{self, Dimension, dimensions};
use crate::error::nearest_hint;
use crate::formats::reader::{LogRows, Reader};
use crate::log::check_names;
use crate::{Error, Place, Result};

/// Says which column of a log is which of the contract, in which unit.
///
/// ```
/// use inertial_data::{ColumnMap, CsvReader, Log};
/// let map = ColumnMap::parse(
///     r#"
///     units = { t = "ms", q = "deg" }    # of all columns of a quantity
///     joints = { j2 = "elbow" }          # a joint's name in the log, and in the model
///     [columns]                          # a column of the contract, and what it is in the log
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
    /// Names in the log, and in the model.
    #[serde(default)]
    joints: BTreeMap<String, String>,
    #[serde(default)]
    columns: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Entry {
    Name(String),
    Full(FullEntry),
}

impl Entry {
    fn column(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Full(full) => &full.column,
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FullEntry {
    column: String,
    unit: Option<String>,
    scale: Option<f64>,
    offset: Option<f64>,
}

impl ColumnMap {
    /// Reads a map from TOML; `name` stands in messages.
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
                let message = "is no column of a log: expected t, q.JOINT, dq.JOINT, ddq.JOINT, tau.JOINT, q1 …, or \
                               those of base, wrench, ft, acc, gyro, alpha or momentum";
                return Err(Error::columns(Place::file(&out.file).column(target), message));
            }
            if let Entry::Full(full) = entry {
                let bad =
                    |x: Option<f64>, zero: bool| x.is_some_and(|x| !x.is_finite() || (zero && x == 0.0));
                if bad(full.scale, true) || bad(full.offset, false) {
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

    /// A reader of the same log with the names and units of the contract.
    pub fn apply<R: Reader>(&self, reader: R) -> Result<Mapped<R>> {
        let log = Place::file(reader.file());
        let names = reader.names();
        let mut targets: Vec<String> = names.iter().map(|name| self.renamed(name)).collect();
        for alias in self.text.joints.keys() {
            if !names.iter().any(|name| name.split_once('.').is_some_and(|(_, joint)| joint == alias)) {
                let joints: Vec<String> = names
                    .iter()
                    .filter_map(|n| n.split_once('.'))
                    .map(|(_, joint)| joint.to_owned())
                    .collect();
                let hint = nearest_hint(alias, &joints);
                let message = format!("{}: no column belongs to the joint {alias}{hint}", self.file);
                return Err(Error::columns(log, message));
            }
        }
        let mut scales = vec![None; names.len()];
        for (target, entry) in &self.text.columns {
            let source = entry.column();
            let full = if let Entry::Full(full) = entry { Some(full) } else { None };
            let Some(k) = names.iter().position(|name| name == source) else {
                let message =
                    format!("{}: there is no column {source}{}", self.file, nearest_hint(source, names));
                return Err(Error::columns(log, message));
            };
            if let Some((other, _)) =
                self.text.columns.iter().take_while(|(t, _)| *t != target).find(|(_, e)| e.column() == source)
            {
                let message = format!("{}: column {source} is used for {other} and {target}", self.file);
                return Err(Error::columns(log, message));
            }
            // A column that had the name before is another one from now on.
            if let Some(other) = targets.iter().position(|name| name == target).filter(|&other| other != k) {
                targets[other] = format!("{target} of the log");
            }
            targets[k].clone_from(target);
            scales[k] = full;
        }
        check_names(&log, &targets)?;
        let mut linear = Vec::with_capacity(names.len());
        for (target, full) in targets.iter().zip(scales) {
            let group = target.split('.').next().unwrap_or_default();
            let group = group.trim_end_matches(|c: char| c.is_ascii_digit());
            let unit = full.and_then(|f| f.unit.as_ref()).or_else(|| self.text.units.get(group));
            let size = unit.map_or(Ok(1.0), |unit| self.unit(target, unit, target).map(|(_, size)| size))?;
            let scale = full.and_then(|f| f.scale).unwrap_or(1.0);
            linear.push((size * scale, full.and_then(|f| f.offset).unwrap_or(0.0)));
        }
        let selected = (0..targets.len()).collect();
        Ok(Mapped { reader, names: targets, linear, selected })
    }

    /// A column's name with the model's name of its joint.
    fn renamed(&self, name: &str) -> String {
        match name.split_once('.') {
            Some((quantity @ ("q" | "dq" | "ddq" | "tau"), joint)) => {
                format!("{quantity}.{}", self.text.joints.get(joint).map_or(joint, String::as_str))
            }
            _ => name.to_owned(),
        }
    }
}

/// A log with the names and units of the contract.
pub struct Mapped<R> {
    reader: R,
    names: Vec<String>,
    /// Factor and offset of every column.
    linear: Vec<(f64, f64)>,
    selected: Vec<usize>,
}

impl<R: Reader> Reader for Mapped<R> {
    fn file(&self) -> &str {
        self.reader.file()
    }

    fn names(&self) -> &[String] {
        &self.names
    }

    fn select(&mut self, columns: &[usize]) {
        self.selected = columns.to_vec();
        self.reader.select(columns);
    }

    fn next_rows(&mut self) -> Result<Option<LogRows>> {
        let Some(mut rows) = self.reader.next_rows()? else { return Ok(None) };
        for (slot, &column) in self.selected.iter().enumerate() {
            let (factor, offset) = self.linear[column];
            if (factor, offset) != (1.0, 0.0) {
                rows.values[slot..].iter_mut().step_by(rows.width).for_each(|x| *x = factor * *x + offset);
            }
        }
        Ok(Some(rows))
    }

    fn share(&self) -> Option<f64> {
        self.reader.share()
    }
}
