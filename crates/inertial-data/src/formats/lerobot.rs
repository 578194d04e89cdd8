//! LeRobot datasets: a folder with `meta/info.json` and Parquet files of episodes.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::folder_files::FolderFiles;
use super::parquet::ParquetReader;
use crate::reader::{LogRows, Reader};
use crate::{Error, Place, Result, plain_io};

/// Maximum size of a description, which usually has some kilobytes.
const LONGEST_INFO: u64 = 16 << 20;
/// Maximum number of files of one dataset.
const MOST_FILES: usize = 1_000_000;
/// Time between episodes (s): a gap that no filter bridges.
const BETWEEN: f64 = 1.0;

/// Description of the columns in `meta/info.json`.
#[derive(Deserialize)]
struct Info {
    #[serde(default)]
    features: HashMap<String, Feature>,
}

#[derive(Deserialize)]
struct Feature {
    #[serde(default)]
    names: Option<Names>,
}

/// Names of the numbers of a list: a list of names, or one under any key.
#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    List(Vec<String>),
    Keyed(HashMap<String, Vec<String>>),
    Other(serde::de::IgnoredAny),
}

impl Names {
    fn list(&self) -> Option<&[String]> {
        match self {
            Self::List(names) => Some(names),
            Self::Keyed(keyed) if keyed.len() == 1 => keyed.values().next().map(Vec::as_slice),
            Self::Keyed(_) | Self::Other(_) => None,
        }
    }
}

/// Reader of the episodes of a dataset, one after the other. Columns of lists are named after `meta/info.json`; time continues from
/// episode to episode, with one second between them.
pub struct LeRobotReader {
    folder: String,
    files: std::vec::IntoIter<PathBuf>,
    left: usize,
    all: usize,
    current: ParquetReader,
    /// Names of the columns in the files, and as returned.
    stored: Vec<String>,
    names: Vec<String>,
    time: usize,
    episode: Option<usize>,
    /// Total time inserted between episodes (s).
    inserted: f64,
    selected: Vec<usize>,
    done: usize,
    /// Episode and time of the last row, and the offset added to the times.
    last: Option<(f64, f64)>,
    shift: f64,
}

/// Returns whether a folder is a dataset.
pub(crate) fn is_dataset(folder: &Path) -> bool {
    folder.join("meta/info.json").is_file()
}

/// Returns the files of a dataset: the description and the data are read, videos and other files are not.
pub(crate) fn files(folder: &Path) -> FolderFiles {
    let mut read = vec![folder.join("meta/info.json")];
    read.extend(found(&folder.join("data")).unwrap_or_default());
    let known: HashSet<&PathBuf> = read.iter().collect();
    let mut others = Vec::new();
    let mut open: Vec<PathBuf> = ["videos", "images", "data", "meta"].map(|name| folder.join(name)).into();
    while let Some(next) = open.pop()
        && others.len() < MOST_FILES
    {
        for entry in next.read_dir().into_iter().flatten().flatten() {
            // Folders behind links could form a cycle.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            } else if !known.contains(&entry.path()) {
                others.push(entry.path());
            }
        }
    }
    FolderFiles { read, others }
}

impl LeRobotReader {
    /// Opens a dataset.
    pub fn new(folder: &Path) -> Result<Self> {
        let name = folder.display().to_string();
        let refused = |message: String| Error::read(Place::file(&name), message);
        let info = folder.join("meta/info.json");
        if info.metadata().map_or(0, |m| m.len()) > LONGEST_INFO {
            return Err(refused("meta/info.json is too long".to_owned()));
        }
        let text = std::fs::read_to_string(&info)
            .map_err(|e| refused(format!("meta/info.json cannot be read: {}", plain_io(&e))))?;
        let info: Info = serde_json::from_str(&text)
            .map_err(|e| refused(format!("meta/info.json does not have the LeRobot format: {e}")))?;
        let files = found(&folder.join("data"))
            .map_err(|e| refused(format!("data cannot be read: {}", plain_io(&e))))?;
        if files.is_empty() {
            return Err(refused("data has no Parquet files".to_owned()));
        }
        let all = files.len();
        let mut files = files.into_iter();
        let first = files.next().unwrap_or_default();
        let current = opened(&first)?;
        let stored = current.names().to_vec();
        let place = |wanted: &str| stored.iter().position(|name| name == wanted);
        let time =
            place("timestamp").ok_or_else(|| refused("the data have no column timestamp".to_owned()))?;
        let episode = place("episode_index");
        let names = named(&stored, &info);
        crate::log::check_names(&Place::file(&name), &names)?;
        let mut out = Self {
            folder: name,
            files,
            left: all - 1,
            all,
            current,
            stored,
            names,
            time,
            episode,
            inserted: 0.0,
            selected: Vec::new(),
            done: 0,
            last: None,
            shift: 0.0,
        };
        out.select(&(0..out.names.len()).collect::<Vec<_>>());
        Ok(out)
    }

    /// Returns the columns that are read: the selected ones, then time and episode.
    fn columns(&self) -> Vec<usize> {
        self.selected.iter().copied().chain([self.time]).chain(self.episode).collect()
    }
}

/// Returns the names of the columns; those of lists are taken from the description.
fn named(stored: &[String], info: &Info) -> Vec<String> {
    let own = |name: &String| {
        let (feature, place) = name.rsplit_once('_')?;
        let names = info.features.get(feature)?.names.as_ref()?.list()?;
        Some(format!("{feature}.{}", names.get(place.parse::<usize>().ok()?)?))
    };
    stored.iter().map(|name| own(name).unwrap_or_else(|| name.clone())).collect()
}

fn opened(path: &Path) -> Result<ParquetReader> {
    let name = path.display().to_string();
    let file = File::open(path)
        .map_err(|e| Error::read(Place::file(&name), format!("cannot be opened: {}", plain_io(&e))))?;
    ParquetReader::new(file, name)
}

/// Returns the Parquet files of a folder and its subfolders, sorted by name.
fn found(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let sorted = |folder: &Path| -> std::io::Result<Vec<PathBuf>> {
        let mut out =
            folder.read_dir()?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
        out.sort();
        Ok(out)
    };
    let is_parquet = |path: &PathBuf| path.extension().is_some_and(|e| e == "parquet");
    let mut out = Vec::new();
    for entry in sorted(folder)? {
        if entry.is_dir() {
            out.extend(sorted(&entry)?.into_iter().filter(is_parquet));
        } else if is_parquet(&entry) {
            out.push(entry);
        }
        if out.len() > MOST_FILES {
            return Err(std::io::Error::other("it has too many files"));
        }
    }
    Ok(out)
}

impl Reader for LeRobotReader {
    fn file(&self) -> &str {
        &self.folder
    }

    fn names(&self) -> &[String] {
        &self.names
    }

    fn is_number(&self, column: usize) -> bool {
        self.current.is_number(column)
    }

    fn select(&mut self, columns: &[usize]) {
        self.selected = columns.to_vec();
        let columns = self.columns();
        self.current.select(&columns);
    }

    fn next_rows(&mut self) -> Result<Option<LogRows>> {
        let rows = loop {
            if let Some(rows) = self.current.next_rows()? {
                break rows;
            }
            let Some(path) = self.files.next() else { return Ok(None) };
            let mut next = opened(&path)?;
            if next.names() != self.stored {
                let message = "has other columns than the first file of the dataset";
                return Err(Error::read(Place::file(path.display().to_string()), message));
            }
            next.select(&self.columns());
            (self.current, self.left) = (next, self.left - 1);
        };
        let width = self.selected.len();
        let mut out = LogRows { width, ..LogRows::default() };
        for row in rows.values.chunks_exact(rows.width) {
            let time = row[width];
            let episode = row.get(width + 1).copied().unwrap_or(0.0);
            match self.last {
                Some((before, end)) if before != episode => {
                    self.shift = end + BETWEEN - time;
                    self.inserted += BETWEEN;
                }
                _ => {}
            }
            let time = time + self.shift;
            self.last = Some((episode, time));
            let value = |(&column, &x): (&usize, &f64)| if column == self.time { time } else { x };
            out.values.extend(self.selected.iter().zip(row).map(value));
            self.done += 1;
            out.lines.push(self.done);
        }
        Ok(Some(out))
    }

    fn inserted_time(&self) -> f64 {
        self.inserted
    }

    fn fraction_read(&self) -> Option<f64> {
        let begun = (self.all - self.left - 1) as f64 + self.current.fraction_read().unwrap_or(0.0);
        Some(begun / self.all as f64)
    }
}
