//! Columns of a log and their interpretation.

use std::collections::HashSet;
use std::fmt::Write as _;

use inertial_data::{
    ColumnMap, Columns, LogRows, Options as DataOptions, Recognition, RecognizedColumn, Requirement,
    Selection, Source, with_standard_names,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::logs::{LogOptions, TEXT_LIMIT, other_names, timed};
use crate::note::as_flag;
use crate::{Context, Located, Model, Result};

/// Options of the listing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// Name of the log.
    pub log: String,
    /// Name of the input with names and units of the log's columns, in TOML.
    pub columns: Option<String>,
    /// Topics of a ROS bag, separated by commas; by default the only one with joint states.
    pub topic: Option<String>,
    /// Sampling rate (Hz) of a log without a time column.
    pub rate: Option<f64>,
}

inertial::with_changes!(Options);

const SCHEMA: &str = "inertial/columns/1";

/// Columns of a log.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Schema of the object.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// Name of the log.
    pub log: String,
    /// Columns in the order of the file.
    pub columns: Vec<Column>,
    /// Column map in TOML that is equivalent to this interpretation.
    pub map: String,
    /// Number of rows from which the first, smallest and largest values are taken; zero if none were read.
    pub rows: usize,
    /// Whether these are all rows of the log.
    pub all_rows: bool,
    /// Description of the columns that the model requires and the log lacks; present only with a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// Column of a log.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Column {
    /// Name in the file.
    pub name: String,
    /// Name as a column of a robot's log, such as `t`, `q1` or `tau.elbow`; absent if the column is not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Whether `identify` uses the column with the model; absent without a model, or if columns are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<bool>,
    /// Unit, if it is not the SI unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Reason why the column is interpreted this way, or not used.
    pub reason: String,
    /// First value of the file; absent if it is not a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<f64>,
    /// Smallest value of the first rows, in the unit of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// Largest value of the first rows, in the unit of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub greatest: Option<f64>,
}

/// Lists the columns of a log; with a model, columns are also matched by the names of its joints, and missing ones are reported.
pub fn run(model: Option<&Model>, options: &Options, context: &Context<'_>) -> Result<Outcome> {
    LogOptions::default().with(|o| o.rate = options.rate).check()?;
    model.iter().flat_map(|model| model.notes()).for_each(|note| context.note(&note));
    let map = match &options.columns {
        Some(file) => Some(ColumnMap::parse(&context.inputs.text(file, TEXT_LIMIT).at(file)?, file.clone())?),
        None => None,
    };
    let joints = model.map_or(Vec::new(), |m| m.mechanism.joints().iter().map(|j| j.name.clone()).collect());
    let mapped = map.is_some();
    let source = Source::default().with(|s| {
        s.map = map;
        s.joints = joints;
        s.topic.clone_from(&options.topic);
        s.raw = true;
        // Standard input can be opened only once.
        s.every_topic = options.log != "-";
    });
    let mut reader = context.inputs.log(&options.log, &source)?;
    let (names, is_named, listed) = (reader.names().to_vec(), reader.is_named(), reader.joint_names());
    let selections: Vec<Selection> = (0..names.len()).map(|k| reader.selection(k)).collect();
    let until = |selection| selections.iter().take_while(|own| **own <= selection).count();
    // If only the time is read by default, the fields of the other topics are recognized, for a map.
    let automatic = until(Selection::Automatic);
    let is_selected = automatic > 1 || automatic == names.len();
    let own = if is_selected { automatic } else { until(Selection::Map) };
    let numbers: Vec<usize> = (0..names.len()).filter(|&k| reader.is_number(k)).collect();
    // Reading the first rows consumes the reader, so the file is opened again below.
    let (mut first, mut all_rows) = (None, false);
    if options.log != "-" && !numbers.is_empty() {
        reader.select(&numbers);
        // Text in later rows must not prevent the listing.
        first = reader.next_rows().ok().flatten();
        all_rows = matches!(reader.next_rows(), Ok(None));
        let source = source.clone().with(|s| s.every_topic = !is_selected);
        reader = context.inputs.log(&options.log, &source)?;
    }
    let source = source.with(|s| s.raw = false);
    let recognition = Recognition::with_joint_names(&names[..own], &source.joints, &listed);
    let mut used = None;
    let (targets, missing) = if !is_selected {
        let target = |c: &RecognizedColumn| c.target.clone().unwrap_or_else(|| c.name.clone());
        let text = if own > 1 { "use a column map" } else { "select a topic with joint states" };
        let missing = model.map(|_| format!("no topic is read by default: {text}"));
        (recognition.columns().iter().map(target).collect(), missing)
    } else if is_named || mapped {
        let reader = timed(with_standard_names(reader, &source)?, &options.log, options.rate)?;
        let missing = match model.map(|m| matching(m, &options.log, reader.names(), reader.advice())) {
            Some(Err(text)) => Some(text),
            Some(Ok(columns)) => {
                used = Some(columns);
                None
            }
            None => None,
        };
        (reader.names().to_vec(), missing)
    } else {
        (names.clone(), model.map(|_| "the columns have no names: fill in the map".to_owned()))
    };
    let known = Recognition::of(&targets, &source.joints);
    let mut slots = vec![None; names.len()];
    numbers.iter().enumerate().for_each(|(slot, &k)| slots[k] = Some(slot));
    let values = |k: usize| first.as_ref().zip(slots[k]).and_then(|(rows, slot)| range(rows, slot));
    let used: Option<HashSet<usize>> = used.map(|used: Vec<usize>| used.into_iter().collect());
    let columns = names[..own].iter().enumerate().map(|(k, name)| {
        let of_map =
            mapped && targets[k] != *name && recognition.columns()[k].target.as_ref() != Some(&targets[k]);
        let found = &recognition.columns()[k];
        let values = values(k);
        let is_number = slots[k].is_some();
        let target = known.columns()[k].target.clone();
        let used = used.as_ref().filter(|_| target.is_some()).map(|used| used.contains(&k));
        let is_of_base = |name: &String| name.starts_with("base.") || name.starts_with("wrench.");
        let reason = match () {
            () if used == Some(false) && target.as_ref().is_some_and(is_of_base) => {
                format!("of a floating base: {} floating uses it", as_flag("base"))
            }
            () if used == Some(false) => "not a quantity of this model".to_owned(),
            () if of_map && target.is_none() => "replaced by the column map".to_owned(),
            () if of_map => "by the column map".to_owned(),
            () if !is_number && target.is_none() => "not numeric".to_owned(),
            () => found.reason.clone(),
        };
        Column {
            name: name.clone(),
            target,
            used,
            unit: if of_map { None } else { found.unit.map(str::to_owned) },
            reason,
            first: values.map(|v| v[0]),
            least: values.map(|v| v[1]),
            greatest: values.map(|v| v[2]),
        }
    });
    let others = names.iter().enumerate().skip(own).map(|(k, name)| Column {
        name: name.clone(),
        target: None,
        used: None,
        unit: None,
        reason: match selections[k] {
            Selection::Topic => "joint states of another topic: select this topic".to_owned(),
            _ => "of another topic: name it in a column map".to_owned(),
        },
        first: values(k).map(|v| v[0]),
        least: values(k).map(|v| v[1]),
        greatest: values(k).map(|v| v[2]),
    });
    let columns = columns.chain(others).collect();
    let mut map = if is_named { recognition.map() } else { guessed_map(names.len(), model) };
    if let Some(joints) = model.and_then(|m| unknown_joints(m, &targets)) {
        map.insert_str(0, &joints);
    }
    let rows = first.as_ref().map_or(0, |rows| rows.lines.len());
    Ok(Outcome { schema: SCHEMA, log: options.log.clone(), columns, map, rows, all_rows, missing })
}

/// Returns the first, smallest and largest value of a column.
fn range(rows: &LogRows, slot: usize) -> Option<[f64; 3]> {
    let mut values = rows.values[slot..].iter().step_by(rows.width).copied().filter(|x| !x.is_nan());
    let first = values.next()?;
    let (least, greatest) = values.fold((first, first), |(a, b), x| (a.min(x), b.max(x)));
    Some([first, least, greatest])
}

/// Returns the columns that `identify` uses, or a description of those that the model requires and the log lacks.
fn matching(
    model: &Model,
    log: &str,
    names: &[String],
    advice: Option<String>,
) -> Result<Vec<usize>, String> {
    let options = DataOptions::default().with(|o| o.torques = Requirement::Required);
    let Columns { t, q, dq, ddq, tau, extra, .. } = Columns::matching(&model.mechanism, log, names, &options)
        .map_err(|error| {
            let text = crate::Error::from(error).to_string();
            let text = text.strip_prefix(&format!("{log}: ")).unwrap_or(&text).to_owned();
            advice.map_or(text.clone(), |advice| format!("{text}; {advice}"))
        })?;
    // Quantities of other sensors are used by identifications of payloads, of bases and of free flights.
    let others = ["contact.", "ft.", "acc.", "gyro.", "alpha.", "momentum."];
    let is_other = |name: &String| others.iter().any(|prefix| name.starts_with(prefix));
    let others = names.iter().enumerate().filter(|(_, name)| is_other(name)).map(|(k, _)| k);
    let of_joints = [q, dq, ddq, tau].into_iter().flatten().flatten();
    Ok(of_joints.chain(extra).chain([t]).chain(others).collect())
}

/// Returns a line for the user to complete if the log names joints that the model does not have.
fn unknown_joints(model: &Model, targets: &[String]) -> Option<String> {
    if let Some(joints) = other_names(&model.mechanism, targets) {
        return Some(format!("# names of the joints, by their names or order: check them\n{joints}\n"));
    }
    let known = |joint: &str| model.mechanism.joints().iter().any(|j| j.name == joint);
    let positions = targets.iter().filter_map(|target| target.strip_prefix("q."));
    let unknown: Vec<String> =
        positions.filter(|joint| !known(joint)).map(|joint| format!("{joint:?} = \"…\"")).collect();
    let line = format!("# joints = {{ {} }}   # name in the log = name in the model\n", unknown.join(", "));
    (!unknown.is_empty()).then_some(line)
}

/// Returns a column map for the user to complete for a file without a header, guessed from the number of its columns.
fn guessed_map(columns: usize, model: Option<&Model>) -> String {
    let mut out =
        String::from("# guessed from the number of columns: check it\n[columns]\nt = \"column_1\"\n");
    let rest = columns.saturating_sub(1);
    let quantities: &[&[&str]] = &[&["q", "tau"], &["q", "dq", "tau"], &["q", "dq", "ddq", "tau"]];
    let joints = model.map(|m| m.mechanism.nv());
    let fits = |list: &&&[&str]| joints.map_or(rest.is_multiple_of(list.len()), |n| rest == n * list.len());
    let Some(list) = quantities.iter().find(fits).filter(|list| rest >= list.len()) else {
        return out + "# q = \"column_{2..7}\"\n# tau = \"column_{8..13}\"\n";
    };
    let each = rest / list.len();
    for (k, symbol) in list.iter().enumerate() {
        let first = 2 + k * each;
        let _ = writeln!(out, "{symbol} = \"column_{{{first}..{}}}\"", first + each - 1);
    }
    out
}
