//! CSV logs, plain or compressed, read in blocks of rows: memory stays constant however long the log is.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::{Error, Log, Place, Result};

/// The first bytes of every gzip stream.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads a CSV log block by block.
///
/// ```
/// let text = "t,q1,tau1\n0,0.1,2\n0.01,0.2,3\n";
/// let mut reader = inertial_data::CsvReader::new(text.as_bytes(), "log.csv")?;
/// assert_eq!(reader.header(), ["t", "q1", "tau1"]);
/// let log = reader.next_block(1000)?.expect("two rows");
/// assert_eq!(log.column("tau1"), Some(&[2.0, 3.0][..]));
/// assert!(reader.next_block(1000)?.is_none());
/// # Ok::<(), inertial_data::Error>(())
/// ```
pub struct CsvReader<'a> {
    file: String,
    header: Vec<String>,
    rows: csv::Reader<Box<dyn Read + 'a>>,
    record: csv::ByteRecord,
}

impl CsvReader<'static> {
    /// Opens a file; compression is recognised by its content.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path)
            .map_err(|e| Error::read(Place::file(&name), format!("cannot be opened: {e}")))?;
        Self::new(file, name)
    }
}

impl<'a> CsvReader<'a> {
    /// Reads from a stream; `name` stands in messages.
    pub fn new(stream: impl Read + 'a, name: impl Into<String>) -> Result<Self> {
        let file = name.into();
        let mut stream = BufReader::with_capacity(1 << 16, stream);
        let start = stream.fill_buf().map_err(|e| Error::read(Place::file(&file), e.to_string()))?;
        let stream: Box<dyn Read + 'a> = if start.starts_with(&GZIP) {
            Box::new(flate2::bufread::MultiGzDecoder::new(stream))
        } else {
            Box::new(stream)
        };
        // Lines end with \n alone (trimming takes the \r) and the last one always does: so the reader's line is exact.
        let stream: Box<dyn Read + 'a> = Box::new(stream.chain(&b"\n"[..]));
        let mut rows = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .terminator(csv::Terminator::Any(b'\n'))
            .buffer_capacity(1 << 16)
            .trim(csv::Trim::All)
            .from_reader(stream);
        let mut record = csv::ByteRecord::new();
        let found = rows.read_byte_record(&mut record).map_err(|e| csv_error(&file, &e))?;
        if !found {
            return Err(Error::read(Place::file(file), "is empty; expected a header such as t,q1,tau1"));
        }
        let header = header_of(&file, &record)?;
        Ok(Self { file, header, rows, record })
    }

    /// What it reads from.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Names of the columns.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Up to `limit` further rows; none at the end. An empty cell is a gap (NaN).
    pub fn next_block(&mut self, limit: usize) -> Result<Option<Log>> {
        let mut columns = vec![Vec::new(); self.header.len()];
        let mut rows = Vec::new();
        while rows.len() < limit {
            let more = self.rows.read_byte_record(&mut self.record).map_err(|e| csv_error(&self.file, &e))?;
            if !more {
                break;
            }
            if self.record.len() == 1 && self.record[0].is_empty() {
                continue;
            }
            let row = (self.rows.position().line() as usize).saturating_sub(1);
            if self.record.len() != columns.len() {
                let message =
                    format!("{} cells, but the header has {}", self.record.len(), self.header.len());
                return Err(Error::read(Place::file(&self.file).row(row), message));
            }
            for (k, (column, cell)) in columns.iter_mut().zip(&self.record).enumerate() {
                column.push(number(cell).ok_or_else(|| {
                    let place = Place::file(&self.file).row(row).column(&self.header[k]);
                    let cell: String = String::from_utf8_lossy(cell).chars().take(40).collect();
                    Error::read(place, format!("`{cell}` is not a finite number"))
                })?);
            }
            rows.push(row);
        }
        if rows.is_empty() {
            return Ok(None);
        }
        Log::with_rows(&self.file, self.header.clone(), columns, rows).map(Some)
    }
}

/// A finite number, or NaN for a gap.
fn number(cell: &[u8]) -> Option<f64> {
    if cell.is_empty() {
        return Some(f64::NAN);
    }
    let value: f64 = std::str::from_utf8(cell).ok()?.parse().ok()?;
    (!value.is_infinite()).then_some(value)
}

fn header_of(file: &str, record: &csv::ByteRecord) -> Result<Vec<String>> {
    let place = || Place::file(file).row(1);
    let mut header = Vec::with_capacity(record.len());
    for (k, cell) in record.iter().enumerate() {
        let name = std::str::from_utf8(cell)
            .map_err(|_| Error::read(place(), format!("the name of column {} is not UTF-8", k + 1)))?
            .trim_start_matches('\u{feff}')
            .trim();
        if name.is_empty() {
            return Err(Error::read(place(), format!("column {} has no name", k + 1)));
        }
        header.push(name.to_owned());
    }
    if header.iter().all(|name| name.parse::<f64>().is_ok()) {
        return Err(Error::read(place(), "there is no header; expected one such as t,q1,tau1"));
    }
    Ok(header)
}

fn csv_error(file: &str, error: &csv::Error) -> Error {
    let mut place = Place::file(file);
    place.row = error.position().map(|p| p.line() as usize);
    let message = match error.kind() {
        csv::ErrorKind::Io(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            "the compressed file is truncated".to_owned()
        }
        csv::ErrorKind::Io(e) => format!("cannot be read: {e}"),
        _ => error.to_string(),
    };
    Error::read(place, message)
}
