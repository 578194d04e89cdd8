//! Text tables (CSV and similar), plain or compressed. The text is read in chunks and parsed by all threads: memory does not depend on
//! the length of the log.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::path::Path;

use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::columns::name_lists;
use crate::columns::unit_suffix;
use crate::formats::gzip::Gzip;
use crate::formats::read_ahead::ReadAhead;
use crate::formats::text::cells::{Fault, Separator, cells, number, parse_line};
use crate::formats::text::{dialect, preamble};
use crate::joint_names::JointNames;
use crate::log::check_names;
use crate::reader::{LogRows, Reader};
use crate::{Error, Log, Place, Result, plain_io};

/// First bytes of every gzip stream.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Byte order mark, with which some editors start a UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// Size of the text read at once and parsed by all threads together.
const CHUNK: usize = 1 << 20;
/// Size of the text that one thread parses at once.
const PIECE: usize = 1 << 16;
/// Maximum length of a header or row: a text without a line break within this length is not CSV.
const LONGEST_LINE: usize = 16 << 20;
/// Maximum size of the text that is searched for a header, and number of lines that are searched first.
const MOST_PREAMBLE: usize = 4 << 20;
const FEW_LINES: usize = 8;
/// Maximum size of consecutive empty lines, because a small compressed file may contain any number of them.
const MOST_BLANK: usize = 64 << 20;

/// Reader of text tables in chunks: cells separated by commas, semicolons, tabs, vertical bars or spaces, with decimal points or commas.
/// Lines that start with `#` are comments; other lines before the header are skipped. Columns of a file without a header are called `column_1`, `column_2` and so on.
///
/// Rows are returned as soon as the stream provides them, so a growing stream can be followed.
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
    separator: Separator,
    header: Vec<String>,
    /// Whether the file names its columns.
    named: bool,
    /// Names of joints in the first row.
    listed: Vec<JointNames>,
    /// Whether each cell of the first row is a number; empty if that row was not read with the header.
    are_numbers: Vec<bool>,
    /// Slot in the rows for each column of the file.
    slots: Vec<Option<usize>>,
    width: usize,
    stream: Box<dyn Read + Send + 'a>,
    /// Text that was read but not parsed; it starts at the start of a line.
    text: Vec<u8>,
    /// Number of that line.
    line: usize,
    ended: bool,
    /// Size of the empty lines since the last row.
    blank: usize,
    /// Rows parsed for [`CsvReader::next_block`], and the number of them that were returned.
    left: LogRows,
    taken: usize,
}

impl CsvReader<'static> {
    /// Opens a file; compression is recognized by the content. Reading (and decompressing) runs ahead in a thread.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path)
            .map_err(|e| Error::read(Place::file(&name), format!("cannot be opened: {}", plain_io(&e))))?;
        Self::ahead(file, name)
    }

    /// Creates a reader of a stream that another thread reads ahead.
    pub(crate) fn ahead(stream: impl Read + Send + 'static, name: String) -> Result<Self> {
        let (stream, packed) = sniff(stream, &name)?;
        if packed {
            Self::start(Box::new(ReadAhead::new(Gzip::new(stream))), name)
        } else {
            Self::start(Box::new(ReadAhead::new(stream)), name)
        }
    }
}

/// Returns a buffered stream, and whether it is compressed.
fn sniff<R: Read>(stream: R, name: &str) -> Result<(BufReader<R>, bool)> {
    let mut stream = BufReader::with_capacity(1 << 16, stream);
    let start = stream.fill_buf().map_err(|e| read_error(name, &e))?;
    let packed = start.starts_with(&GZIP);
    Ok((stream, packed))
}

impl<'a> CsvReader<'a> {
    /// Reads from a stream; `name` is used in messages.
    pub fn new(stream: impl Read + Send + 'a, name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        let (stream, packed) = sniff(stream, &name)?;
        if packed {
            Self::start(Box::new(Gzip::new(stream)), name)
        } else {
            Self::start(Box::new(stream), name)
        }
    }

    fn start(stream: Box<dyn Read + Send + 'a>, file: String) -> Result<Self> {
        let mut out = Self {
            file,
            separator: Separator::Byte(b','),
            header: Vec::new(),
            named: true,
            listed: Vec::new(),
            are_numbers: Vec::new(),
            slots: Vec::new(),
            width: 0,
            stream,
            text: Vec::new(),
            line: 1,
            ended: false,
            blank: 0,
            left: LogRows::default(),
            taken: 0,
        };
        let (mut first, mut comment) = out.skip_to_table()?;
        let given = preamble::named_separator(&first);
        if given.is_some() {
            out.drop_line();
            (first, comment) = out.skip_to_table()?;
        }
        if dialect::no_table(&first).is_none() && out.skip_preamble()? {
            (first, comment) = out.skip_to_table()?;
        }
        let head = dialect::head(&first, comment.as_deref(), given)
            .map_err(|message| Error::read(Place::file(&out.file).row(out.line), message))?;
        (out.separator, out.header, out.named) = (head.separator, head.names, head.named);
        if !head.is_row {
            out.drop_line();
            out.take_units();
            let end = memchr::memchr(b'\n', &out.text).unwrap_or(out.text.len());
            dialect::name_dates(&mut out.header, &cells(&out.text[..end], out.separator));
        }
        check_names(&Place::file(&out.file), &out.header)?;
        out.list_joints()?;
        if let Some(end) = memchr::memchr(b'\n', &out.text) {
            let row = cells(&out.text[..end], out.separator);
            out.are_numbers = row.iter().map(|cell| number(cell).is_some()).collect();
        }
        out.select(&(0..out.header.len()).collect::<Vec<_>>());
        Ok(out)
    }

    /// Skips blank lines and comments. Returns the next line, and the comment before it without its mark.
    fn skip_to_table(&mut self) -> Result<(Vec<u8>, Option<Vec<u8>>)> {
        let mut comment = None;
        // Start of the line within the text, and size of the text before that was removed. Lines are removed together: removing each
        // one would move the rest of the text once per line.
        let (mut start, mut removed) = (0, 0);
        loop {
            if removed + start > MOST_BLANK {
                return Err(self.too_blank());
            }
            let end = match memchr::memchr(b'\n', &self.text[start..]) {
                Some(end) => start + end,
                None if self.ended => self.text.len(),
                None => {
                    self.text.drain(..start);
                    (start, removed) = (0, removed + start);
                    self.fill()?;
                    continue;
                }
            };
            let line = &self.text[start..end];
            if line.starts_with(BYTE_ORDER_MARK) {
                start += BYTE_ORDER_MARK.len();
                continue;
            }
            match line.trim_ascii() {
                [] if self.ended && end == self.text.len() => {
                    let message = "is empty; expected a header such as t,q1,tau1";
                    return Err(Error::read(Place::file(&self.file), message));
                }
                [] => {}
                [b'#' | b'%', text @ ..] => comment = Some(text.trim_ascii().to_vec()),
                _ => {
                    let line = line.to_vec();
                    self.text.drain(..start);
                    return Ok((line, comment));
                }
            }
            start = self.text.len().min(end + 1);
            self.line += 1;
        }
    }

    fn too_blank(&self) -> Error {
        let message = format!("{} MB of empty lines: is this a log?", MOST_BLANK >> 20);
        Error::read(Place::file(&self.file).row(self.line), message)
    }

    /// Removes the lines before the header; returns whether there were any. If the first two lines are a header and a row, no others are
    /// read, so that a growing stream can be followed.
    fn skip_preamble(&mut self) -> Result<bool> {
        let mut wanted = 2;
        loop {
            let complete = memchr::memchr_iter(b'\n', &self.text).take(wanted).count();
            let is_last = self.ended || self.text.len() > MOST_PREAMBLE || wanted == preamble::MOST_LINES;
            if complete < wanted && !self.ended && self.text.len() <= MOST_PREAMBLE {
                self.fill()?;
                continue;
            }
            // An incomplete line at the end counts only at the end of the text.
            let count = if self.ended { wanted } else { complete };
            let lines: Vec<&[u8]> = self.text.split(|&b| b == b'\n').take(count).collect();
            if preamble::is_table(&lines) {
                return Ok(false);
            }
            if is_last {
                let before = preamble::lines_before_header(&lines);
                (0..before).for_each(|_| self.drop_line());
                return Ok(before > 0);
            }
            wanted = if wanted == 2 { FEW_LINES } else { preamble::MOST_LINES };
        }
    }

    /// Adds the units of a row below the header to the names of the columns, and removes the row.
    fn take_units(&mut self) {
        let Some(end) = memchr::memchr(b'\n', &self.text) else { return };
        let Some(units) = preamble::units(&self.text[..end], self.separator, self.header.len()) else {
            return;
        };
        for (name, unit) in self.header.iter_mut().zip(units).filter(|(name, _)| !name.ends_with([']', ')']))
        {
            *name += &unit_suffix(&unit);
        }
        self.drop_line();
    }

    /// Returns the place of the next complete line that is not empty and not a comment.
    fn first_row(&self) -> Option<Range<usize>> {
        let mut start = 0;
        loop {
            let end = match memchr::memchr(b'\n', &self.text[start..]) {
                Some(end) => start + end,
                None if self.ended && start < self.text.len() => self.text.len(),
                None => return None,
            };
            if !blank(&self.text[start..end]) && self.text[start] != b'#' {
                return Some(start..end);
            }
            start = (end + 1).min(self.text.len());
        }
    }

    /// Reads the names of joints in the first row; other logs are not read further.
    fn list_joints(&mut self) -> Result<()> {
        if !self.header.iter().any(|name| name_lists::is_candidate(name)) {
            return Ok(());
        }
        let row = loop {
            match self.first_row() {
                Some(row) => break &self.text[row],
                None if self.ended => return Ok(()),
                None => self.fill()?,
            }
        };
        let cells = cells(row, self.separator);
        let text = |k: usize| {
            cells
                .get(k)
                .filter(|cell| number(cell).is_none())
                .map(|cell| String::from_utf8_lossy(cell).into_owned())
        };
        self.listed = name_lists::of_columns(&self.header, text);
        Ok(())
    }

    /// Removes the first line of the text.
    fn drop_line(&mut self) {
        let end = memchr::memchr(b'\n', &self.text).map_or(self.text.len(), |end| end + 1);
        self.text.drain(..end);
        self.line += 1;
    }

    /// Returns up to `limit` further rows of the selected columns; `None` at the end. An empty cell is a missing value (NaN).
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

    /// Performs one read.
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

    fn is_named(&self) -> bool {
        self.named
    }

    /// Checks the first row, if it was read with the header.
    fn is_number(&self, column: usize) -> bool {
        self.are_numbers.get(column).copied().unwrap_or(true)
    }

    fn joint_names(&self) -> Vec<JointNames> {
        self.listed.clone()
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
                    self.blank = 0;
                    return Ok(Some(rows));
                }
                self.blank += end;
                if self.blank > MOST_BLANK {
                    return Err(self.too_blank());
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
    /// Parses the first `end` bytes, which are complete lines.
    fn parse(&mut self, end: usize) -> Result<LogRows> {
        let pieces: Vec<Piece> = pieces(&self.text[..end])
            .into_par_iter()
            .map(|text| parse_piece(text, self.separator, &self.slots, self.width))
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

/// Parsed text of one thread; lines are counted from 0.
struct Piece {
    rows: LogRows,
    lines: usize,
    /// Error in line number `lines`.
    fault: Option<Fault>,
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

/// Splits text into pieces of complete lines.
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

fn parse_piece(text: &[u8], separator: Separator, slots: &[Option<usize>], width: usize) -> Piece {
    let mut piece = Piece { rows: LogRows { width, ..LogRows::default() }, lines: 0, fault: None };
    // Ten characters per number are typical; otherwise the vector grows.
    piece.rows.values.reserve(text.len() / 10);
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', text).chain([text.len()]) {
        let line = &text[start..end];
        start = end + 1;
        if !blank(line) && line[0] != b'#' {
            let first = piece.rows.values.len();
            piece.rows.values.resize(first + width, f64::NAN);
            if let Err(fault) = parse_line(line, separator, slots, &mut piece.rows.values[first..]) {
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

fn read_error(file: &str, error: &std::io::Error) -> Error {
    let message = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "the compressed file is truncated".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    Error::read(Place::file(file), message)
}
