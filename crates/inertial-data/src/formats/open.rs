//! Detection of the file format by content.

use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clean::spool::temporary;
use crate::columns::map::ColumnMap;
use crate::formats::csv::CsvReader;
use crate::formats::mcap::{self, McapReader};
use crate::formats::parquet::{self, ParquetReader};
use crate::formats::reader::{LogRows, Reader};
use crate::{Error, Place, Result, plain_io};

/// Options of reading a file.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// Other names and units than those of the contract.
    pub map: Option<ColumnMap>,
    /// Topic of an MCAP file; the only one with joint states where absent.
    pub topic: Option<String>,
}

/// Opens a log: CSV, CSV.gz, Parquet or MCAP, recognized by the content. `-` is standard input.
pub fn open(path: &Path, source: &Source) -> Result<Box<dyn Reader>> {
    if path == Path::new("-") {
        let reader = from_pipe(std::io::stdin(), "standard input".to_owned(), source)?;
        return mapped(reader, source);
    }
    open_as(path, path.display().to_string(), source)
}

/// Opens a file of any format that messages call by another name, such as a copy of a file of a store.
pub fn open_as(path: &Path, name: String, source: &Source) -> Result<Box<dyn Reader>> {
    let file = File::open(path)
        .map_err(|e| Error::read(Place::file(&name), format!("cannot be opened: {}", plain_io(&e))))?;
    mapped(from_file(file, name, source)?, source)
}

/// The reader with the column map, where there is one.
fn mapped(reader: Box<dyn Reader>, source: &Source) -> Result<Box<dyn Reader>> {
    Ok(match &source.map {
        Some(map) => Box::new(map.apply(reader)?),
        None => reader,
    })
}

fn from_file(mut file: File, name: String, source: &Source) -> Result<Box<dyn Reader>> {
    let mut start = Vec::new();
    file.by_ref().take(8).read_to_end(&mut start).map_err(|e| unreadable(&name, &e))?;
    if start.starts_with(&parquet::MAGIC) {
        return Ok(Box::new(ParquetReader::new(file, name)?));
    }
    // What cannot be rewound is a pipe that has a name.
    match file.seek(SeekFrom::Start(0)) {
        Ok(_) => {
            let (read, size) = (Arc::<AtomicU64>::default(), file.metadata().map_or(0, |m| m.len()));
            let counted = Counted { file, read: Arc::clone(&read) };
            let reader = from_stream(&start, counted, name, source)?;
            Ok(Box::new(OfFile { reader, read, size }))
        }
        Err(_) => from_stream(&start, Cursor::new(start.clone()).chain(file), name, source),
    }
}

/// Parquet is read from its end: a pipe goes to a temporary file first.
fn from_pipe(mut pipe: impl Read + Send + 'static, name: String, source: &Source) -> Result<Box<dyn Reader>> {
    let mut start = Vec::new();
    pipe.by_ref().take(8).read_to_end(&mut start).map_err(|e| unreadable(&name, &e))?;
    let mut whole = Cursor::new(start.clone()).chain(pipe);
    if start.starts_with(&parquet::MAGIC) {
        let mut copy = temporary()?;
        std::io::copy(&mut whole, &mut copy).map_err(|e| unreadable(&name, &e))?;
        return Ok(Box::new(ParquetReader::new(copy, name)?));
    }
    from_stream(&start, whole, name, source)
}

fn from_stream(
    start: &[u8],
    stream: impl Read + Send + 'static,
    name: String,
    source: &Source,
) -> Result<Box<dyn Reader>> {
    if start.starts_with(&mcap::MAGIC) {
        return Ok(Box::new(McapReader::new(stream, name, source.topic.as_deref())?));
    }
    if let Some(topic) = &source.topic {
        let message = format!("has no topic {topic}: it is no MCAP file");
        return Err(Error::read(Place::file(name), message));
    }
    Ok(Box::new(CsvReader::ahead(stream, name)?))
}

/// A file that counts the bytes that were read.
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

/// A reader that knows how much of its file was read.
struct OfFile {
    reader: Box<dyn Reader>,
    read: Arc<AtomicU64>,
    size: u64,
}

impl Reader for OfFile {
    fn file(&self) -> &str {
        self.reader.file()
    }

    fn names(&self) -> &[String] {
        self.reader.names()
    }

    fn select(&mut self, columns: &[usize]) {
        self.reader.select(columns);
    }

    fn next_rows(&mut self) -> Result<Option<LogRows>> {
        self.reader.next_rows()
    }

    fn share(&self) -> Option<f64> {
        (self.size > 0).then(|| self.read.load(Ordering::Relaxed) as f64 / self.size as f64)
    }
}

fn unreadable(name: &str, error: &std::io::Error) -> Error {
    Error::read(Place::file(name), format!("cannot be read: {}", plain_io(error)))
}
