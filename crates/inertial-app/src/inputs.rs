//! Inputs by name: model texts, logs and summaries, from files or from memory.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Read;

use inertial::estimation::Summary;
use inertial_data::{Log, LogRows, Reader, Source};

use crate::{Error, Located, Result, ensure};

/// Source of the inputs that options name. [`Disk`](crate::Disk) reads files; [`InMemoryInputs`] adds data that a caller holds in memory.
pub trait Inputs: Sync {
    /// Reads a text of at most `most` bytes: a model, a joint model, bounds, a column map.
    fn text(&self, name: &str, most: u64) -> Result<String>;

    /// Reads the bytes of a model.
    fn model(&self, name: &str, most: u64) -> Result<Vec<u8>> {
        self.text(name, most).map(String::into_bytes)
    }

    /// Reads the bytes of a file that the model `model` refers to, by its path from the folder of the model.
    fn referenced(&self, model: &str, name: &str, most: u64) -> Result<Vec<u8>> {
        self.included(model, name, most).map(String::into_bytes)
    }

    /// Reads a text that the model `model` includes.
    fn included(&self, model: &str, name: &str, most: u64) -> Result<String>;

    /// Returns the folder of a ROS package, searched around the model first; `None` if there is no such package.
    fn package(&self, model: &str, name: &str) -> Option<String> {
        let _ = (model, name);
        None
    }

    /// Records the files that belong to the model `model` with this text: those that it names, and its joint file. Jobs may read them, so
    /// outputs must not replace them.
    fn files_of_model(&self, model: &str, text: &str, names: &[String]) -> Result<()> {
        let _ = (model, text, names);
        Ok(())
    }

    /// Fails if an output would replace an input. Readers that tolerate missing files ignore this error when it occurs.
    fn check_outputs(&self) -> Result<()> {
        Ok(())
    }

    /// Opens a log of any format.
    fn log(&self, name: &str, source: &Source) -> Result<Box<dyn Reader>>;

    /// Returns the names of the files of a log that is a folder, in the order in which they are read; for other inputs their own name.
    fn parts(&self, name: &str) -> Vec<String> {
        vec![name.to_owned()]
    }

    /// Opens the bytes of an input.
    fn open(&self, name: &str) -> Result<Box<dyn Read + Send>>;

    /// Returns the bytes of a mesh file that a model names, with its path; `None` if there is no such file.
    fn mesh(&self, model: &str, name: &str, most: u64) -> Option<(String, Result<Vec<u8>>)> {
        let _ = (model, name, most);
        None
    }

    /// Returns a log that the caller holds as columns of numbers.
    fn columns(&self, name: &str) -> Option<&Log> {
        let _ = name;
        None
    }

    /// Returns a summary that the caller holds.
    fn summary(&self, name: &str) -> Option<&Summary> {
        let _ = name;
        None
    }

    /// Returns the size in bytes; zero if unknown.
    fn size(&self, name: &str) -> u64 {
        let _ = name;
        0
    }
}

/// Size and hash of an input, for reproducibility. A log that is a folder has those of its files, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Checksum {
    /// Name of the input.
    pub name: String,
    /// Number of bytes.
    pub bytes: u64,
    /// SHA-256 in hexadecimal digits.
    pub sha256: String,
}

impl Checksum {
    /// Hashes a text.
    pub fn of_text(name: &str, content: &[u8]) -> Self {
        Self::new(name, content.len() as u64, hmac_sha256::Hash::hash(content))
    }

    /// Hashes inputs that can be read again, which excludes standard input and builtin models.
    pub fn of_inputs(inputs: &dyn Inputs, names: &[String]) -> Result<Vec<Self>> {
        let again = names.iter().filter(|name| *name != "-" && !name.starts_with("builtin:"));
        again.map(|name| Self::of_input(inputs, name).at(name)).collect()
    }

    fn of_input(inputs: &dyn Inputs, name: &str) -> Result<Self> {
        if let Some(summary) = inputs.summary(name) {
            return Ok(Self::of_text(name, &serde_json::to_vec(summary)?));
        }
        if let Some(log) = inputs.columns(name) {
            let mut bytes = log.names().join(",").into_bytes();
            let numbers = (0..log.names().len()).flat_map(|k| log.column_at(k));
            bytes.extend(numbers.flat_map(|x| x.to_le_bytes()));
            return Ok(Self::of_text(name, &bytes));
        }
        let (mut hash, mut bytes) = (hmac_sha256::Hash::new(), 0);
        let mut block = vec![0; 1 << 16];
        for part in inputs.parts(name) {
            let mut file = inputs.open(&part).at(&part)?;
            loop {
                let count = file.read(&mut block).at(&part)?;
                if count == 0 {
                    break;
                }
                hash.update(&block[..count]);
                bytes += count as u64;
            }
        }
        Ok(Self::new(name, bytes, hash.finalize()))
    }

    fn new(name: &str, bytes: u64, hash: [u8; 32]) -> Self {
        let sha256 = hash.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        Self { name: name.to_owned(), bytes, sha256 }
    }
}

/// Inputs that a caller holds in memory, which take precedence over another source.
pub struct InMemoryInputs<'a> {
    /// Texts of models and other files.
    pub texts: &'a HashMap<String, String>,
    /// Logs as columns of numbers.
    pub logs: &'a HashMap<String, Log>,
    /// Summaries of logs.
    pub summaries: &'a HashMap<String, Summary>,
    /// Source of all other inputs.
    pub others: &'a dyn Inputs,
}

impl Inputs for InMemoryInputs<'_> {
    fn text(&self, name: &str, most: u64) -> Result<String> {
        match self.texts.get(name) {
            Some(text) => {
                ensure!(text.len() as u64 <= most, "has more than {} MB", most >> 20);
                Ok(text.clone())
            }
            None => self.others.text(name, most),
        }
    }

    fn included(&self, model: &str, name: &str, most: u64) -> Result<String> {
        if self.texts.contains_key(model) {
            return inertial::mechanism::read::no_includes(name).map_err(Error::Input);
        }
        self.others.included(model, name, most)
    }

    fn model(&self, name: &str, most: u64) -> Result<Vec<u8>> {
        if self.texts.contains_key(name) {
            self.text(name, most).map(String::into_bytes)
        } else {
            self.others.model(name, most)
        }
    }

    fn referenced(&self, model: &str, name: &str, most: u64) -> Result<Vec<u8>> {
        if self.texts.contains_key(model) {
            self.included(model, name, most).map(String::into_bytes)
        } else {
            self.others.referenced(model, name, most)
        }
    }

    fn package(&self, model: &str, name: &str) -> Option<String> {
        self.others.package(model, name)
    }

    fn files_of_model(&self, model: &str, text: &str, names: &[String]) -> Result<()> {
        if self.texts.contains_key(model) { Ok(()) } else { self.others.files_of_model(model, text, names) }
    }

    fn check_outputs(&self) -> Result<()> {
        self.others.check_outputs()
    }

    fn parts(&self, name: &str) -> Vec<String> {
        let is_held = self.texts.contains_key(name) || self.columns(name).is_some();
        if is_held { vec![name.to_owned()] } else { self.others.parts(name) }
    }

    fn log(&self, name: &str, source: &Source) -> Result<Box<dyn Reader>> {
        match self.columns(name) {
            Some(log) => Columns::open(log, source),
            None => self.others.log(name, source),
        }
    }

    fn open(&self, name: &str) -> Result<Box<dyn Read + Send>> {
        match self.texts.get(name) {
            Some(text) => Ok(Box::new(std::io::Cursor::new(text.clone().into_bytes()))),
            None => self.others.open(name),
        }
    }

    fn mesh(&self, model: &str, name: &str, most: u64) -> Option<(String, Result<Vec<u8>>)> {
        if self.texts.contains_key(model) { None } else { self.others.mesh(model, name, most) }
    }

    fn columns(&self, name: &str) -> Option<&Log> {
        self.logs.get(name).or_else(|| self.others.columns(name))
    }

    fn summary(&self, name: &str) -> Option<&Summary> {
        self.summaries.get(name).or_else(|| self.others.summary(name))
    }

    fn size(&self, name: &str) -> u64 {
        self.others.size(name)
    }
}

/// Reader of a log in memory.
struct Columns {
    log: Log,
    selected: Vec<usize>,
    next: usize,
}

/// Number of rows that are returned at once.
const BLOCK: usize = 8192;

impl Columns {
    fn open(log: &Log, source: &Source) -> Result<Box<dyn Reader>> {
        let reader = Self { log: log.clone(), selected: (0..log.names().len()).collect(), next: 0 };
        Ok(inertial_data::with_standard_names(Box::new(reader), source)?)
    }
}

impl Reader for Columns {
    fn file(&self) -> &str {
        self.log.file()
    }

    fn names(&self) -> &[String] {
        self.log.names()
    }

    fn select(&mut self, columns: &[usize]) {
        self.selected = columns.to_vec();
    }

    fn next_rows(&mut self) -> inertial_data::Result<Option<LogRows>> {
        let range = self.next..(self.next + BLOCK).min(self.log.len());
        if range.is_empty() {
            return Ok(None);
        }
        self.next = range.end;
        let (log, selected) = (&self.log, &self.selected);
        let row = |i: usize| selected.iter().map(move |&c| log.column_at(c)[i]);
        Ok(Some(LogRows {
            width: self.selected.len(),
            values: range.clone().flat_map(row).collect(),
            lines: self.log.rows()[range].to_vec(),
        }))
    }

    fn fraction_read(&self) -> Option<f64> {
        Some(self.next as f64 / self.log.len().max(1) as f64)
    }
}
