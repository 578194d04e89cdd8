//! Files of arrays: NumPy's `.npy` and `.npz`, MATLAB's `.mat`, and HDF5. Numbers are read on demand from the file, or from a temporary
//! copy if it is compressed.

mod array;
pub(crate) mod hdf5;
mod hdf5_filters;
pub(crate) mod mat;
pub(crate) mod npy;
mod zip;

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use crate::columns::name_lists::is_list;
use crate::joint_names::JointNames;
use crate::log::check_names;
use crate::reader::{LogRows, Reader};
use crate::{Error, Place, Result};
use array::{Array, Stored};

/// Number of bytes read at once (unless one row has more), and maximum number of rows.
const BLOCK: u64 = 16 << 20;
const MOST_ROWS: u64 = 4096;
/// Names of arrays that are the time.
const TIMES: [&str; 7] = ["t", "time", "timestamp", "timestamps", "stamp", "Time", "tout"];
/// Names of arrays with one column per joint.
const QUANTITIES: [&str; 4] = ["q", "dq", "ddq", "tau"];

/// Content of a file of arrays.
#[derive(Default)]
pub(crate) struct Content {
    pub arrays: Vec<Array>,
    /// Names of joints, if an array of texts provides them.
    pub joints: Option<JointNames>,
    /// Message about names of joints that cannot be read, with their number if it is known.
    pub unread: Option<(String, Option<usize>)>,
    /// Whether the file names its arrays.
    pub named: bool,
    /// Names of arrays that are not read: of other types (half precision, objects), or with more than two dimensions.
    pub others: Vec<String>,
}

/// Maximum size (bytes) of an array of texts; there are only a few names.
const MOST_TEXT: u64 = 1 << 20;

/// Returns whether an array of texts may contain names of joints.
fn has_names(array: &str) -> bool {
    let name = array.to_lowercase();
    name.contains("joint") || name.contains("name")
}

impl Content {
    /// Adds the texts of an array. Of several arrays with names, one that is called like a list of joints counts.
    fn add_texts(&mut self, name: &str, texts: &[String]) {
        let list = match texts {
            [text] => JointNames::parse(name, text).or_else(|| JointNames::new(name, texts)),
            _ => JointNames::new(name, texts),
        };
        let is_better = |own: &JointNames| is_list(name) && !is_list(&own.source);
        if list.is_some() && self.joints.as_ref().is_none_or(is_better) {
            self.joints = list;
        }
    }

    /// Adds names of joints that cannot be read: `what` they are, and how to save them as text.
    fn add_unread(&mut self, name: &str, what: &str, remedy: &str, count: Option<usize>) {
        let message = format!("holds the names of joints {name} as {what}: save them as text, {remedy}");
        self.unread.get_or_insert((message, count));
    }

    /// Returns the message about names of joints that cannot be read, if columns may need them.
    fn missing_names(&self) -> Option<&str> {
        let (message, count) = self.unread.as_ref().filter(|_| self.joints.is_none())?;
        let needs = |array: &Array| {
            array.columns > 1 && array.joints.is_none() && count.is_none_or(|n| n == array.columns)
        };
        self.arrays.iter().any(needs).then_some(message)
    }

    /// Takes the names stored with arrays for all arrays, if no array of texts has names and they do not differ.
    fn share_names(&mut self) {
        let mut own = self.arrays.iter().filter_map(|array| array.joints.as_ref());
        if let Some(first) = own.next()
            && self.joints.is_none()
            && own.all(|other| other.names == first.names)
        {
            self.joints = Some(first.clone());
        }
    }
}

/// Reader of arrays of numbers as columns: one row for each sample.
///
/// An array with one number per sample is a column; a two-dimensional array has a column for each joint. It may be stored with a row
/// for each joint unless the reader keeps arrays with several rows `as_stored`. Arrays of other sizes are omitted.
pub struct ArrayReader {
    file: String,
    arrays: Vec<Array>,
    names: Vec<String>,
    named: bool,
    /// Names of joints, for arrays with one number per sample.
    joints: Option<JointNames>,
    /// Array and column of each name.
    places: Vec<(usize, usize)>,
    selected: Vec<usize>,
    rows: usize,
    /// Number of rows returned at once.
    block: usize,
    done: usize,
    bytes: Vec<u8>,
    /// Description of the arrays that are not read because of their length.
    left_out: Option<String>,
}

impl ArrayReader {
    /// Reads an array saved by NumPy.
    pub fn npy(file: File, name: impl Into<String>, as_stored: bool) -> Result<Self> {
        let name = name.into();
        let content = npy::read(&Arc::new(file)).map_err(|message| damaged(&name, ".npy", &message))?;
        Self::new(name, content, as_stored)
    }

    /// Reads several arrays saved by NumPy in one file.
    pub fn npz(file: File, name: impl Into<String>, as_stored: bool) -> Result<Self> {
        let name = name.into();
        let content =
            npy::read_several(&Arc::new(file)).map_err(|message| damaged(&name, ".npz", &message))?;
        Self::new(name, content, as_stored)
    }

    /// Reads variables saved by MATLAB (version 5 to 7.2).
    pub fn mat(file: File, name: impl Into<String>, as_stored: bool) -> Result<Self> {
        let name = name.into();
        let content = mat::read(&Arc::new(file)).map_err(|message| damaged(&name, ".mat", &message))?;
        Self::new(name, content, as_stored)
    }

    /// Reads the datasets of an HDF5 file, also from MATLAB (version 7.3).
    pub fn hdf5(file: File, name: impl Into<String>, as_stored: bool) -> Result<Self> {
        let name = name.into();
        let content = hdf5::read(&Arc::new(file)).map_err(|message| damaged(&name, "HDF5 file", &message))?;
        Self::new(name, content, as_stored)
    }

    fn new(file: String, mut content: Content, as_stored: bool) -> Result<Self> {
        shorten_names(&mut content.arrays);
        content.share_names();
        let arrays = &mut content.arrays;
        let keeps = |a: &Array| as_stored && a.rows > 1;
        let length = |a: &Array| if keeps(a) { a.rows } else { a.rows.max(a.columns) };
        let of_time = arrays.iter().find(|a| TIMES.contains(&a.name.as_str()) && a.is_vector());
        let reference = of_time.map(|a| a.name.clone());
        let longest = arrays.iter().map(length).max();
        let Some(rows) = of_time.map(length).or(longest).filter(|&rows| rows > 0) else {
            return Err(Error::read(
                Place::file(file),
                "holds no array of numbers with one or two dimensions",
            ));
        };
        let is_across = |a: &&mut Array| a.rows != rows && a.columns == rows && !keeps(a);
        arrays.iter_mut().filter(is_across).for_each(Array::transpose);
        let left_out = left_out(arrays, rows, reference.as_deref(), &content.others);
        arrays.retain(|a| a.rows == rows && a.columns <= MOST_COLUMNS);
        if let Some(message) = content.missing_names() {
            return Err(Error::read(Place::file(file), message));
        }
        let Content { arrays, joints, named, .. } = content;
        let (mut names, mut places) = (Vec::new(), Vec::new());
        for (k, array) in arrays.iter().enumerate() {
            let own = array.joints.as_ref().or(joints.as_ref()).map_or(&[][..], |list| &list.names);
            for column in 0..array.columns {
                places.push((k, column));
                names.push(match (array.columns, array.name.as_str()) {
                    (1, name) if named => name.to_owned(),
                    _ if !named => format!("column_{}", column + 1),
                    (count, name) if count == own.len() && QUANTITIES.contains(&name) => {
                        format!("{name}.{}", own[column])
                    }
                    (count, name) if count == own.len() => format!("{}.{name}", own[column]),
                    (_, name) if QUANTITIES.contains(&name) => format!("{name}{}", column + 1),
                    (_, name) => format!("{name}_{column}"),
                });
            }
        }
        check_names(&Place::file(&file), &names)?;
        let selected = (0..names.len()).collect();
        let widest = arrays.iter().map(Array::row_bytes).max().unwrap_or(0).max(8 * names.len() as u64);
        let block = (BLOCK / widest.max(1)).clamp(1, MOST_ROWS) as usize;
        let (done, bytes) = (0, Vec::new());
        Ok(Self { file, arrays, names, named, joints, places, selected, rows, block, done, bytes, left_out })
    }
}

/// Describes the arrays that are not read: with another number of samples than the log, of other types or dimensions.
fn left_out(
    arrays: &[Array],
    rows: usize,
    reference: Option<&str>,
    other_types: &[String],
) -> Option<String> {
    let others: Vec<String> = arrays
        .iter()
        .filter(|a| a.rows != rows && a.rows.max(a.columns) >= FEWEST_ROWS)
        .take(MOST_NAMED)
        .map(|a| {
            if a.columns == 1 {
                format!("{} ({})", a.name, a.rows)
            } else {
                format!("{} ({} × {})", a.name, a.rows, a.columns)
            }
        })
        .collect();
    let reference_name = reference.map_or_else(|| "the longest one".to_owned(), str::to_owned);
    let mut out = Vec::new();
    if !others.is_empty() {
        out.push(format!(
            "arrays that have not as many rows as {reference_name} ({rows}) are not read: {}; give all the same number of rows",
            others.join(", ")
        ));
    }
    if !other_types.is_empty() {
        let names: Vec<&str> = other_types.iter().take(MOST_NAMED).map(String::as_str).collect();
        out.push(format!(
            "arrays of other types or with more than two dimensions are not read: {}; convert them to double precision, one \
             row for each sample",
            names.join(", ")
        ));
    }
    (!out.is_empty()).then(|| out.join("; "))
}

/// First parts of the standard names of columns.
const GROUPS: [&str; 11] =
    ["q", "dq", "ddq", "tau", "base", "wrench", "ft", "acc", "gyro", "alpha", "momentum"];

/// Shortens the names of structure fields if no other array has the short name: `data.q` becomes `q`. Standard names of columns stay
/// whole: `data.base.x` becomes `base.x`.
fn shorten_names(arrays: &mut [Array]) {
    let last = |name: &str| {
        let mut parts = name.rsplit('.');
        let own = parts.next().unwrap_or_default();
        match parts.next() {
            Some(group) if GROUPS.contains(&group) => format!("{group}.{own}"),
            _ => own.to_owned(),
        }
    };
    let names: Vec<String> = arrays.iter().map(|a| last(&a.name)).collect();
    for (array, name) in arrays.iter_mut().zip(&names) {
        if names.iter().filter(|other| *other == name).count() == 1 {
            array.name.clone_from(name);
        }
    }
}

/// Minimum number of rows of an array that may belong to a log, and maximum number of arrays named in a message.
const FEWEST_ROWS: usize = 8;
const MOST_NAMED: usize = 10;
/// Maximum number of columns of a log.
const MOST_COLUMNS: usize = 100_000;

impl Reader for ArrayReader {
    fn file(&self) -> &str {
        &self.file
    }

    fn names(&self) -> &[String] {
        &self.names
    }

    fn is_named(&self) -> bool {
        self.named
    }

    fn joint_names(&self) -> Vec<JointNames> {
        self.joints.iter().cloned().collect()
    }

    fn advice(&self) -> Option<String> {
        self.left_out.clone()
    }

    fn select(&mut self, columns: &[usize]) {
        self.selected = columns.to_vec();
    }

    fn next_rows(&mut self) -> Result<Option<LogRows>> {
        let count = (self.rows - self.done).min(self.block);
        if count == 0 {
            return Ok(None);
        }
        let width = self.selected.len();
        let mut values = vec![f64::NAN; count * width];
        let mut slots: HashMap<usize, Vec<(usize, usize)>> = HashMap::new();
        for (slot, &k) in self.selected.iter().enumerate() {
            let (array, column) = self.places[k];
            slots.entry(array).or_default().push((slot, column));
        }
        for (array, wanted) in slots {
            let array = &self.arrays[array];
            array
                .read(self.done..self.done + count, &wanted, width, &mut self.bytes, &mut values)
                .map_err(|e| damaged(&self.file, "file", &format!("array {}: {e}", array.name)))?;
        }
        if let Some((k, x)) = values.iter().enumerate().find(|(_, x)| x.is_infinite()) {
            let place = Place::file(&self.file).row(self.done + k / width + 1);
            let name = &self.names[self.selected[k % width]];
            return Err(Error::read(place.column(name), format!("`{x}` is not a finite number")));
        }
        let lines = (self.done + 1..=self.done + count).collect();
        self.done += count;
        Ok(Some(LogRows { width, values, lines }))
    }

    fn fraction_read(&self) -> Option<f64> {
        Some(self.done as f64 / self.rows as f64)
    }
}

fn damaged(file: &str, kind: &str, message: &str) -> Error {
    let message = match message {
        own if own.starts_with("is ") || own.starts_with("holds ") => own.to_owned(),
        other => format!("the {kind} is truncated or damaged: {other}"),
    };
    Error::read(Place::file(file), message)
}

/// Reads exactly `bytes.len()` bytes at an offset.
fn read_at(file: &File, at: u64, bytes: &mut [u8]) -> Stored<()> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = file;
    file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(bytes)).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => "it ends early".to_owned(),
        _ => crate::plain_io(&e),
    })
}

fn length(file: &File) -> Stored<u64> {
    file.metadata().map(|m| m.len()).map_err(|e| crate::plain_io(&e))
}
