//! Detection of the file format by content.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::columns::map::ColumnMap;
use crate::columns::recognition::Recognition;
use crate::formats::arrays::{ArrayReader, hdf5, mat, npy};
use crate::formats::bags::{self, BagReader, TopicChoice, mcap, ros1};
use crate::formats::csv::CsvReader;
use crate::formats::folder_files::FolderFiles;
use crate::formats::kinds;
use crate::formats::lerobot::{self, LeRobotReader};
use crate::formats::parquet::{self, ParquetReader};
use crate::formats::zstd;
use crate::joint_names::JointNames;
use crate::reader::{LogRows, Reader, Selection};
use crate::temporary::temporary_copy;
use crate::{Error, Place, Result, plain_io};

/// Maximum number of columns of a log. Names are matched in pairs, so time grows with the square of this number.
const MOST_COLUMNS: usize = 20_000;

/// Options for reading a file.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Source {
    /// Column map, for names and units other than the standard ones.
    pub map: Option<ColumnMap>,
    /// Names of the model's joints, used to recognize columns; empty without a model.
    pub joints: Vec<String>,
    /// Topics of a bag, separated by commas; if absent, the only topic with joint states.
    pub topic: Option<String>,
    /// Whether columns keep the names and units of the file.
    pub raw: bool,
    /// Whether all topics of a bag are read if neither `topic` nor `map` selects some.
    pub every_topic: bool,
    /// Whether matrices with several rows keep their rows and columns. Those of logs may have a row for each joint: they are
    /// transposed if they have more columns than rows.
    pub as_stored: bool,
}

inertial::with_changes!(Source);

/// Opens a log: a text table (also compressed with gzip), Parquet, `.npz`, `.npy`, `.mat`, HDF5, MCAP, `.db3`, a ROS 1 bag, a rosbag2
/// folder or a LeRobot dataset. The format is recognized by the content, also if compressed with Zstandard. `-` is standard input.
pub fn open(path: &Path, source: &Source) -> Result<Box<dyn Reader>> {
    if path == Path::new("-") {
        let name = "standard input".to_owned();
        let mut start = Vec::new();
        std::io::stdin().take(8).read_to_end(&mut start).map_err(|e| unreadable(&name, &e))?;
        let reader = from_pipe(start, std::io::stdin(), name, source)?;
        return with_standard_names(reader, source);
    }
    open_as(path, path.display().to_string(), source)
}

/// Opens a file of any format that has another name in messages, such as a local copy of a stored file.
pub fn open_as(path: &Path, name: String, source: &Source) -> Result<Box<dyn Reader>> {
    if path.is_dir() && lerobot::is_dataset(path) {
        no_topic(&name, source)?;
        return with_standard_names(Box::new(LeRobotReader::new(path)?), source);
    }
    if path.is_dir() {
        return with_standard_names(Box::new(BagReader::folder(path, &choice(source))?), source);
    }
    let file = File::open(path)
        .map_err(|e| Error::read(Place::file(&name), format!("cannot be opened: {}", plain_io(&e))))?;
    with_standard_names(from_file(file, name, source)?, source)
}

/// Returns the files of a rosbag2 folder or a LeRobot dataset. Files that cannot be listed are left out; [`open`] reports them.
pub fn folder_files(folder: &Path) -> FolderFiles {
    if lerobot::is_dataset(folder) { lerobot::files(folder) } else { bags::folder::files(folder) }
}

/// Returns a reader with the standard names and units: by the column map if there is one, then by [`Recognition`].
pub fn with_standard_names(reader: Box<dyn Reader>, source: &Source) -> Result<Box<dyn Reader>> {
    let count = reader.names().len();
    if count > MOST_COLUMNS {
        let message = format!("has {count} columns, expected at most {MOST_COLUMNS}");
        return Err(Error::read(Place::file(reader.file()), message));
    }
    if source.raw {
        return Ok(reader);
    }
    let reader: Box<dyn Reader> = match &source.map {
        Some(map) => Box::new(map.apply_for(reader, &source.joints)?),
        None if reader.is_named() => reader,
        None => {
            let joints = if source.joints.is_empty() { 6 } else { source.joints.len() };
            let last = (joints + 1).min(count);
            let message = format!(
                "there is no header: name the {count} columns in a column map, for example t = \"column_1\" \
                 and q = \"column_{{2..{last}}}\" under [columns]"
            );
            return Err(Error::read(Place::file(reader.file()).row(1), message));
        }
    };
    let listed = reader.joint_names();
    let recognition = match source.map {
        // The map has named the columns with standard names.
        Some(_) => Recognition::of_mapped(reader.names(), &source.joints, &listed),
        None => Recognition::with_joint_names(reader.names(), &source.joints, &listed),
    };
    if recognition.is_trivial() && recognition.advice().is_none() {
        return Ok(reader);
    }
    Ok(Box::new(recognition.apply(reader)))
}

fn from_file(mut file: File, name: String, source: &Source) -> Result<Box<dyn Reader>> {
    let mut start = Vec::new();
    file.by_ref().take(8).read_to_end(&mut start).map_err(|e| unreadable(&name, &e))?;
    // A file that cannot be rewound is a named pipe.
    let Ok(_) = file.seek(SeekFrom::Start(0)) else { return from_pipe(start, file, name, source) };
    if let Some(kind) = Whole::of(&start) {
        return kind.reader(file, name, source);
    }
    let (read, size) = (Arc::<AtomicU64>::default(), file.metadata().map_or(0, |m| m.len()));
    let counted = Counted { file, read: Arc::clone(&read) };
    let reader = if start.starts_with(&zstd::MAGIC) {
        unpacked(counted, name, source)?
    } else {
        from_stream(&start, counted, name, source)?
    };
    Ok(Box::new(WithShare { reader, read, size }))
}

/// Reads from a pipe; formats that need random access are copied to a temporary file first.
fn from_pipe(
    start: Vec<u8>,
    pipe: impl Read + Send + 'static,
    name: String,
    source: &Source,
) -> Result<Box<dyn Reader>> {
    if start.starts_with(&zstd::MAGIC) {
        return unpacked(Cursor::new(start).chain(pipe), name, source);
    }
    whole_or_stream(start, pipe, name, source)
}

/// Opens the log in a stream compressed with Zstandard.
fn unpacked(packed: impl Read + Send + 'static, name: String, source: &Source) -> Result<Box<dyn Reader>> {
    let mut stream = zstd::Unpacked::new(BufReader::new(packed));
    let mut start = Vec::new();
    stream.by_ref().take(8).read_to_end(&mut start).map_err(|e| unreadable(&name, &e))?;
    whole_or_stream(start, stream, name, source)
}

fn whole_or_stream(
    start: Vec<u8>,
    rest: impl Read + Send + 'static,
    name: String,
    source: &Source,
) -> Result<Box<dyn Reader>> {
    let kind = Whole::of(&start);
    let first = start.clone();
    let content = Cursor::new(start).chain(rest);
    match kind {
        Some(kind) => kind.reader(temporary_copy(content, &name)?, name, source),
        None => from_stream(&first, content, name, source),
    }
}

/// Formats of files that need random access.
#[derive(Clone, Copy)]
enum Whole {
    Parquet,
    Npy,
    Npz,
    Mat,
    Hdf5,
    Db3,
}

impl Whole {
    fn of(start: &[u8]) -> Option<Self> {
        let kinds: [(&[u8], Self); 7] = [
            (&parquet::MAGIC, Self::Parquet),
            (&npy::MAGIC, Self::Npy),
            (b"PK\x03\x04", Self::Npz),
            (&mat::MAGIC, Self::Mat),
            (&hdf5::MAGIC, Self::Hdf5),
            (&hdf5::MATLAB, Self::Hdf5),
            (&bags::SQLITE, Self::Db3),
        ];
        kinds.into_iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, kind)| kind)
    }

    fn reader(self, file: File, name: String, source: &Source) -> Result<Box<dyn Reader>> {
        if let Self::Db3 = self {
            return Ok(Box::new(BagReader::db3(file, name, &choice(source))?));
        }
        no_topic(&name, source)?;
        Ok(match self {
            Self::Parquet => Box::new(ParquetReader::new(file, name)?),
            Self::Npy => Box::new(ArrayReader::npy(file, name, source.as_stored)?),
            Self::Npz => Box::new(ArrayReader::npz(file, name, source.as_stored)?),
            Self::Hdf5 => Box::new(ArrayReader::hdf5(file, name, source.as_stored)?),
            Self::Mat | Self::Db3 => Box::new(ArrayReader::mat(file, name, source.as_stored)?),
        })
    }
}

/// Returns the requested topics of a bag, or those that the column map refers to by field paths.
fn choice(source: &Source) -> TopicChoice {
    let choice = TopicChoice::of(source.topic.as_deref());
    match &source.map {
        Some(map) => {
            let mut choice = choice.with_paths(map.sources());
            choice.joint_states = choice.topics.is_empty() && !map.has_position_paths();
            choice
        }
        None => TopicChoice { every: source.every_topic && source.topic.is_none(), ..choice },
    }
}

/// Rejects a topic for formats without topics.
fn no_topic(name: &str, source: &Source) -> Result<()> {
    match &source.topic {
        Some(topic) => {
            Err(Error::read(Place::file(name), format!("has no topic {topic}: it is not a ROS bag")))
        }
        None => Ok(()),
    }
}

fn from_stream(
    start: &[u8],
    stream: impl Read + Send + 'static,
    name: String,
    source: &Source,
) -> Result<Box<dyn Reader>> {
    if start.starts_with(&mcap::MAGIC) {
        return Ok(Box::new(BagReader::mcap(stream, name, &choice(source))?));
    }
    if start.starts_with(&ros1::MAGIC) {
        return Ok(Box::new(BagReader::ros1(stream, name, &choice(source))?));
    }
    if let Some(advice) = kinds::advice(start) {
        return Err(Error::read(Place::file(name), advice));
    }
    no_topic(&name, source)?;
    match CsvReader::ahead(stream, name.clone()) {
        Ok(reader) => Ok(Box::new(reader)),
        Err(error) => Err(match kinds::wrong_name(&name) {
            Some(message) => Error::read(Place::file(name), message),
            None => error,
        }),
    }
}

/// File that counts the bytes read.
struct Counted {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read(out)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Reader that tracks the share of its file that was read.
struct WithShare {
    reader: Box<dyn Reader>,
    read: Arc<AtomicU64>,
    size: u64,
}

impl Reader for WithShare {
    fn file(&self) -> &str {
        self.reader.file()
    }

    fn names(&self) -> &[String] {
        self.reader.names()
    }

    fn is_named(&self) -> bool {
        self.reader.is_named()
    }

    fn is_number(&self, column: usize) -> bool {
        self.reader.is_number(column)
    }

    fn selection(&self, column: usize) -> Selection {
        self.reader.selection(column)
    }

    fn joint_names(&self) -> Vec<JointNames> {
        self.reader.joint_names()
    }

    fn notes(&self) -> Vec<String> {
        self.reader.notes()
    }

    fn advice(&self) -> Option<String> {
        self.reader.advice()
    }

    fn select(&mut self, columns: &[usize]) {
        self.reader.select(columns);
    }

    fn next_rows(&mut self) -> Result<Option<LogRows>> {
        self.reader.next_rows()
    }

    fn fraction_read(&self) -> Option<f64> {
        (self.size > 0).then(|| self.read.load(Ordering::Relaxed) as f64 / self.size as f64)
    }
}

fn unreadable(name: &str, error: &std::io::Error) -> Error {
    Error::read(Place::file(name), format!("cannot be read: {}", plain_io(error)))
}
