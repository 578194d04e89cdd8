//! CSV logs, plain or compressed. The text is read in chunks and parsed by all threads: memory stays constant however long
//! the log is.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::formats::read_ahead::ReadAhead;
use crate::formats::reader::{LogRows, Reader};
use crate::log::check_names;
use crate::{Error, Log, Place, Result, plain_io};

/// The first bytes of every gzip stream.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Text read at once, and parsed by all threads together.
const CHUNK: usize = 1 << 20;
/// Text that one thread parses at once.
const PIECE: usize = 1 << 16;
/// No header or row is longer: what has no line break within this is no CSV.
const LONGEST_LINE: usize = 16 << 20;

/// Reads a CSV log piece by piece.
///
/// Rows are handed out as soon as the stream gives them, so a stream that grows can be followed.
///
/// ```
/// use inertial_data::{CsvReader, Reader};
/// let text = "t,q1,tau1\n0,0.1,2\n0.01,0.2,3\n";
/// let mut reader = CsvReader::new(text.as_bytes(), "log.csv")?;
/// assert_eq!(reader.names(), ["t", "q1", "tau1"]);
/// reader.select(&[2]);
/// assert_eq!(reader.next_rows()?.expect("two rows").values, [2.0, 3.0]);
/// assert!(reader.next_rows()?.is_none());
/// # Ok::<(), inertial_data::Error>(())
/// ```
pub struct CsvReader<'a> {
    file: String,
    header: Vec<String>,
    /// Place in the rows of each column of the file.
    slots: Vec<Option<usize>>,
    width: usize,
    stream: Box<dyn Read + Send + 'a>,
    /// Text that was read but not parsed; it starts at a line's start.
    text: Vec<u8>,
    /// Number of that line.
    line: usize,
    ended: bool,
    /// Rows parsed for [`CsvReader::next_block`], and how many of them were handed out.
    left: LogRows,
    taken: usize,
}

impl CsvReader<'static> {
    /// Opens a file; compression is recognized by its content. Reading (and decompressing) runs ahead in a thread.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path)
            .map_err(|e| Error::read(Place::file(&name), format!("cannot be opened: {}", plain_io(&e))))?;
        Self::ahead(file, name)
    }

    /// From a stream that another thread reads ahead.
    pub(crate) fn ahead(stream: impl Read + Send + 'static, name: String) -> Result<Self> {
        let (stream, packed) = sniff(stream, &name)?;
        if packed {
            Self::start(Box::new(ReadAhead::new(flate2::bufread::MultiGzDecoder::new(stream))), name)
        } else {
            Self::start(Box::new(ReadAhead::new(stream)), name)
        }
    }
}

/// A buffered stream, and whether it is compressed.
fn sniff<R: Read>(stream: R, name: &str) -> Result<(BufReader<R>, bool)> {
    let mut stream = BufReader::with_capacity(1 << 16, stream);
    let start = stream.fill_buf().map_err(|e| read_error(name, &e))?;
    let packed = start.starts_with(&GZIP);
    Ok((stream, packed))
}

impl<'a> CsvReader<'a> {
    /// Reads from a stream; `name` stands in messages.
    pub fn new(stream: impl Read + Send + 'a, name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        let (stream, packed) = sniff(stream, &name)?;
        if packed {
            Self::start(Box::new(flate2::bufread::MultiGzDecoder::new(stream)), name)
        } else {
            Self::start(Box::new(stream), name)
        }
    }

    fn start(stream: Box<dyn Read + Send + 'a>, file: String) -> Result<Self> {
        let mut out = Self {
            file,
            header: Vec::new(),
            slots: Vec::new(),
            width: 0,
            stream,
            text: Vec::new(),
            line: 1,
            ended: false,
            left: LogRows::default(),
            taken: 0,
        };
        // Blank lines before the header are no header.
        let end = loop {
            match out.text.iter().position(|&b| b == b'\n') {
                Some(end) if blank(&out.text[..end]) => {
                    out.text.drain(..=end);
                    out.line += 1;
                }
                Some(end) => break end,
                None if out.ended => break out.text.len(),
                None => out.fill()?,
            }
        };
        if blank(&out.text[..end]) {
            return Err(Error::read(Place::file(out.file), "is empty; expected a header such as t,q1,tau1"));
        }
        out.header = header_of(&out.file, out.line, &out.text[..end])?;
        check_names(&Place::file(&out.file), &out.header)?;
        out.text.drain(..(end + 1).min(out.text.len()));
        out.line += 1;
        out.select(&(0..out.header.len()).collect::<Vec<_>>());
        Ok(out)
    }

    /// Up to `limit` further rows of the columns selected; none at the end. An empty cell is a gap (NaN).
    pub fn next_block(&mut self, limit: usize) -> Result<Option<Log>> {
        while self.left.len() - self.taken < limit {
            let Some(more) = self.next_rows()? else { break };
            self.left.values.drain(..self.taken * self.width);
            self.left.lines.drain(..self.taken);
            self.taken = 0;
            self.left.values.extend(more.values);
            self.left.lines.extend(more.lines);
        }
        let range = self.taken..self.left.len().min(self.taken.saturating_add(limit));
        if range.is_empty() {
            return Ok(None);
        }
        self.taken = range.end;
        let lines = self.left.lines[range.clone()].to_vec();
        let values = &self.left.values[range.start * self.width..range.end * self.width];
        let column = |k: usize| values[k..].iter().step_by(self.width).copied().collect();
        let mut names = vec![String::new(); self.width];
        for (name, slot) in self.header.iter().zip(&self.slots) {
            if let Some(slot) = slot {
                names[*slot].clone_from(name);
            }
        }
        Log::with_rows(&self.file, names, (0..self.width).map(column).collect(), lines).map(Some)
    }

    /// Reads once.
    fn fill(&mut self) -> Result<()> {
        let before = self.text.len();
        if before > LONGEST_LINE {
            let message = format!("no line break within {LONGEST_LINE} bytes: is this a CSV file?");
            return Err(Error::read(Place::file(&self.file).row(self.line), message));
        }
        self.text.resize(before + CHUNK, 0);
        let count = loop {
            match self.stream.read(&mut self.text[before..]) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other.map_err(|e| read_error(&self.file, &e))?,
            }
        };
        self.text.truncate(before + count);
        self.ended = count == 0;
        Ok(())
    }
}

impl Reader for CsvReader<'_> {
    fn file(&self) -> &str {
        &self.file
    }

    fn names(&self) -> &[String] {
        &self.header
    }

    fn select(&mut self, columns: &[usize]) {
        self.slots = vec![None; self.header.len()];
        columns.iter().enumerate().for_each(|(slot, &c)| self.slots[c] = Some(slot));
        self.width = columns.len();
    }

    fn next_rows(&mut self) -> Result<Option<LogRows>> {
        loop {
            let end = if self.ended {
                self.text.len()
            } else {
                memchr::memrchr(b'\n', &self.text).map_or(0, |last| last + 1)
            };
            if end > 0 {
                let rows = self.parse(end)?;
                self.text.drain(..end);
                if !rows.is_empty() {
                    return Ok(Some(rows));
                }
            } else if self.ended {
                return Ok(None);
            } else {
                self.fill()?;
            }
        }
    }
}

impl CsvReader<'_> {
    /// Parses the first `end` bytes, which are whole lines.
    fn parse(&mut self, end: usize) -> Result<LogRows> {
        let pieces: Vec<Piece> = pieces(&self.text[..end])
            .into_par_iter()
            .map(|text| parse_piece(text, &self.slots, self.width))
            .collect();
        let mut rows = LogRows { width: self.width, ..LogRows::default() };
        rows.values.reserve_exact(pieces.iter().map(|p| p.rows.values.len()).sum());
        for piece in pieces {
            if let Some(fault) = piece.fault {
                let place = Place::file(&self.file).row(self.line + piece.lines);
                return Err(fault.error(place, &self.header));
            }
            rows.values.extend(piece.rows.values);
            rows.lines.extend(piece.rows.lines.iter().map(|line| self.line + line));
            self.line += piece.lines;
        }
        Ok(rows)
    }
}

/// Parsed text of one thread; lines count from 0.
struct Piece {
    rows: LogRows,
    lines: usize,
    /// Fault in line number `lines`.
    fault: Option<Fault>,
}

enum Fault {
    /// Cells found.
    Cells(usize),
    /// Column, and what stands there.
    Number(usize, String),
}

impl Fault {
    fn error(self, place: Place, header: &[String]) -> Error {
        match self {
            Self::Cells(found) => {
                Error::read(place, format!("{found} cells, but the header has {}", header.len()))
            }
            Self::Number(k, cell) => {
                Error::read(place.column(&header[k]), format!("`{cell}` is not a finite number"))
            }
        }
    }
}

/// Cuts text into pieces of whole lines.
fn pieces(mut text: &[u8]) -> Vec<&[u8]> {
    let mut out = Vec::with_capacity(text.len() / PIECE + 1);
    while text.len() > PIECE {
        let cut = memchr::memchr(b'\n', &text[PIECE..]).map_or(text.len(), |k| PIECE + k + 1);
        let (piece, rest) = text.split_at(cut);
        out.push(piece);
        text = rest;
    }
    if !text.is_empty() {
        out.push(text);
    }
    out
}

fn parse_piece(text: &[u8], slots: &[Option<usize>], width: usize) -> Piece {
    let mut piece = Piece { rows: LogRows { width, ..LogRows::default() }, lines: 0, fault: None };
    // Ten characters per number are typical; more only make the vector grow.
    piece.rows.values.reserve(text.len() / 10);
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', text).chain([text.len()]) {
        let line = &text[start..end];
        start = end + 1;
        if !blank(line) {
            let first = piece.rows.values.len();
            piece.rows.values.resize(first + width, f64::NAN);
            if let Err(fault) = parse_line(line, slots, &mut piece.rows.values[first..]) {
                piece.fault = Some(fault);
                return piece;
            }
            piece.rows.lines.push(piece.lines);
        }
        piece.lines += 1;
    }
    piece
}

fn blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

fn parse_line(line: &[u8], slots: &[Option<usize>], row: &mut [f64]) -> std::result::Result<(), Fault> {
    let mut count = 0;
    let mut rest = Some(line.strip_suffix(b"\r").unwrap_or(line));
    while let Some(text) = rest {
        let slot = slots.get(count).copied().flatten();
        if let Some((slot, (value, after))) = slot.zip(plain(text)) {
            row[slot] = value;
            rest = after;
        } else {
            let (cell, after) = cell(text);
            if let Some(slot) = slot {
                row[slot] = number(cell).ok_or_else(|| {
                    Fault::Number(count, String::from_utf8_lossy(cell).chars().take(40).collect())
                })?;
            }
            rest = after;
        }
        count += 1;
    }
    if count == slots.len() { Ok(()) } else { Err(Fault::Cells(count)) }
}

/// A cell that is a finite number and nothing else, as almost all are: it is parsed while its end is found.
#[inline]
fn plain(text: &[u8]) -> Option<(f64, Option<&[u8]>)> {
    let (value, used) = fast_float2::parse_partial::<f64, _>(text).ok().filter(|(x, _)| x.is_finite())?;
    match text.get(used) {
        None => Some((value, None)),
        Some(b',') => Some((value, Some(&text[used + 1..]))),
        Some(_) => None,
    }
}

/// The first cell of a line, without quotes and spaces around it, and what is left of the line.
#[inline]
fn cell(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    // Only a cell that starts with a quote is quoted; the comma that ends it stands after the closing quote.
    let from = match text.trim_ascii_start() {
        [b'"', inner @ ..] => {
            text.len() - inner.len() + inner.iter().position(|&b| b == b'"').map_or(inner.len(), |k| k + 1)
        }
        _ => 0,
    };
    let (cell, after) = match memchr::memchr(b',', &text[from..]) {
        Some(k) => (&text[..from + k], Some(&text[from + k + 1..])),
        None => (text, None),
    };
    let cell = cell.trim_ascii();
    (cell.strip_prefix(b"\"").and_then(|c| c.strip_suffix(b"\"")).map_or(cell, <[u8]>::trim_ascii), after)
}

/// A finite number, or NaN for a gap.
fn number(cell: &[u8]) -> Option<f64> {
    if cell.is_empty() {
        return Some(f64::NAN);
    }
    let value: f64 = std::str::from_utf8(cell).ok()?.parse().ok()?;
    (!value.is_infinite()).then_some(value)
}

/// Returns the message about a first line that is no header.
fn no_header(line: &[u8]) -> Option<&'static str> {
    let line = line.trim_ascii_end();
    let has = |b: u8| line.contains(&b);
    match () {
        () if line.starts_with(b"#") => Some("begins with a comment; expected a header such as t,q1,tau1"),
        () if has(b'\r') => Some("lines end with carriage returns alone; expected line feeds"),
        () if has(b',') => None,
        () if has(b';') => Some("fields are separated by semicolons; expected commas"),
        () if has(b'\t') => Some("fields are separated by tabs; expected commas"),
        () if has(b' ') => Some("fields are separated by spaces; expected commas"),
        () => None,
    }
}

fn header_of(file: &str, line: usize, text: &[u8]) -> Result<Vec<String>> {
    let place = || Place::file(file).row(line);
    if let Some(message) = no_header(text) {
        return Err(Error::read(place(), message));
    }
    let mut header = Vec::new();
    let mut rest = Some(text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text));
    while let Some(text) = rest {
        let (name, after) = cell(text);
        let column = header.len() + 1;
        let name = std::str::from_utf8(name)
            .map_err(|_| Error::read(place(), format!("the name of column {column} is not UTF-8")))?
            .trim();
        if name.is_empty() {
            return Err(Error::read(place(), format!("column {column} has no name")));
        }
        header.push(name.to_owned());
        rest = after;
    }
    if header.iter().all(|name| name.parse::<f64>().is_ok()) {
        return Err(Error::read(place(), "there is no header; expected one such as t,q1,tau1"));
    }
    Ok(header)
}

fn read_error(file: &str, error: &std::io::Error) -> Error {
    let message = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "the compressed file is truncated".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    Error::read(Place::file(file), message)
}
