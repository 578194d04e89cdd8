//! Tables of SQLite files, read sequentially. See <https://www.sqlite.org/fileformat2.html>.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// First bytes of every file.
pub(crate) const MAGIC: [u8; 8] = *b"SQLite f";
/// Maximum depth of a tree; deeper ones are damaged.
const DEEPEST: usize = 32;

/// Result with the cause as text.
pub(crate) type Stored<T> = Result<T, String>;

fn ends() -> String {
    "it ends early".to_owned()
}

/// Value in a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Text(String),
    Blob(Vec<u8>),
}

impl Value {
    pub fn integer(&self) -> Option<i64> {
        if let Self::Integer(value) = self { Some(*value) } else { None }
    }

    pub fn text(&self) -> Option<&str> {
        if let Self::Text(value) = self { Some(value) } else { None }
    }
}

/// Pages of a file.
pub(crate) struct Database {
    file: File,
    page: usize,
    /// Number of bytes of a page that hold data.
    usable: usize,
    pages: u64,
}

impl Database {
    pub fn new(mut file: File) -> Stored<Self> {
        let mut head = [0; 100];
        file.seek(SeekFrom::Start(0)).and_then(|_| file.read_exact(&mut head)).map_err(|_| ends())?;
        if !head.starts_with(&MAGIC) {
            return Err("is not an SQLite database".to_owned());
        }
        let page = match u16::from_be_bytes([head[16], head[17]]) {
            1 => 65_536,
            size => usize::from(size),
        };
        let usable = page.saturating_sub(usize::from(head[20]));
        if !page.is_power_of_two() || page < 512 || usable < 480 {
            return Err("its pages have no valid size".to_owned());
        }
        let size = file.metadata().map_err(|e| crate::plain_io(&e))?.len();
        Ok(Self { file, page, usable, pages: size.div_ceil(page as u64) })
    }

    fn page(&self, number: u64) -> Stored<Vec<u8>> {
        if number == 0 || number > self.pages {
            return Err(format!("there is no page {number}"));
        }
        let mut bytes = vec![0; self.page];
        let mut file = &self.file;
        let at = (number - 1) * self.page as u64;
        file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut bytes)).map_err(|_| ends())?;
        Ok(bytes)
    }

    /// Returns the first page of a table; `None` if there is no such table.
    pub fn table(&self, name: &str) -> Stored<Option<u64>> {
        let mut scan = Scan::new(1);
        while let Some((_, row)) = scan.next(self)? {
            if let [Value::Text(kind), Value::Text(own), _, Value::Integer(root), ..] = &row[..]
                && kind == "table"
                && own == name
            {
                return Ok(u64::try_from(*root).ok());
            }
        }
        Ok(None)
    }
}

/// Scan of the rows of a table.
pub(crate) struct Scan {
    root: Option<u64>,
    /// Pages from the root to the current leaf, each with its next cell.
    path: Vec<(Vec<u8>, usize, usize)>,
    seen: u64,
}

impl Scan {
    /// Starts at the first page of a table.
    pub fn new(root: u64) -> Self {
        Self { root: Some(root), path: Vec::new(), seen: 0 }
    }

    fn enter(&mut self, database: &Database, number: u64) -> Stored<()> {
        self.seen += 1;
        if self.seen > database.pages || self.path.len() >= DEEPEST {
            return Err("its pages form a cycle".to_owned());
        }
        // The first page starts with the header of the file.
        let head = if number == 1 { 100 } else { 0 };
        self.path.push((database.page(number)?, head, 0));
        Ok(())
    }

    /// Returns the next row with its number; `None` at the end.
    pub fn next(&mut self, database: &Database) -> Stored<Option<(i64, Vec<Value>)>> {
        if let Some(root) = self.root.take() {
            self.enter(database, root)?;
        }
        while let Some((page, head, cell)) = self.path.last_mut() {
            let (kind, count) =
                (page[*head], usize::from(u16::from_be_bytes([page[*head + 3], page[*head + 4]])));
            let pointers = *head + if kind == 5 { 12 } else { 8 };
            let here = *cell;
            *cell += 1;
            let at = |k: usize| {
                let bytes = page.get(pointers + 2 * k..pointers + 2 * k + 2).ok_or_else(ends)?;
                Ok::<usize, String>(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
            };
            match kind {
                13 if here < count => {
                    let row = row(database, page, at(here)?)?;
                    return Ok(Some(row));
                }
                5 if here < count => {
                    let child = be32(page, at(here)?)?;
                    self.enter(database, child)?;
                }
                5 if here == count => {
                    let child = be32(page, *head + 8)?;
                    self.enter(database, child)?;
                }
                5 | 13 => {
                    self.path.pop();
                }
                other => return Err(format!("a page has the unknown type {other}")),
            }
        }
        Ok(None)
    }
}

fn be32(bytes: &[u8], at: usize) -> Stored<u64> {
    let word = bytes.get(at..at + 4).ok_or_else(ends)?;
    Ok(u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]])))
}

/// Returns a number of one to nine bytes, and the remaining bytes.
fn varint(bytes: &[u8]) -> Stored<(u64, &[u8])> {
    let mut value = 0u64;
    for (k, &byte) in bytes.iter().take(9).enumerate() {
        if k == 8 {
            return Ok((value << 8 | u64::from(byte), &bytes[9..]));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Ok((value, &bytes[k + 1..]));
        }
    }
    Err(ends())
}

/// Reads a row at an offset of a leaf; data that do not fit are on overflow pages.
fn row(database: &Database, page: &[u8], at: usize) -> Stored<(i64, Vec<Value>)> {
    let (size, rest) = varint(page.get(at..).ok_or_else(ends)?)?;
    let (number, rest) = varint(rest)?;
    let size = usize::try_from(size)
        .ok()
        .filter(|&s| s as u64 <= database.pages * database.page as u64)
        .ok_or_else(ends)?;
    let usable = database.usable;
    let mut payload = Vec::with_capacity(size);
    if size <= usable - 35 {
        payload.extend_from_slice(rest.get(..size).ok_or_else(ends)?);
    } else {
        let least = (usable - 12) * 32 / 255 - 23;
        let own = least + (size - least) % (usable - 4);
        let own = if own <= usable - 35 { own } else { least };
        payload.extend_from_slice(rest.get(..own).ok_or_else(ends)?);
        let mut next = be32(rest, own)?;
        while payload.len() < size {
            let more = database.page(next)?;
            let count = (size - payload.len()).min(usable - 4);
            payload.extend_from_slice(&more[4..4 + count]);
            next = be32(&more, 0)?;
        }
    }
    Ok((number.cast_signed(), values(&payload)?))
}

/// Returns the values of a record.
fn values(payload: &[u8]) -> Stored<Vec<Value>> {
    let (header, rest) = varint(payload)?;
    let before = payload.len() - rest.len();
    let header = usize::try_from(header).ok().and_then(|h| h.checked_sub(before)).ok_or_else(ends)?;
    let (mut types, mut body) = rest.split_at_checked(header).ok_or_else(ends)?;
    let mut out = Vec::new();
    while !types.is_empty() {
        let (kind, after) = varint(types)?;
        types = after;
        let size = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind as usize,
            5 => 6,
            6 | 7 => 8,
            _ => usize::try_from((kind.max(12) - 12) / 2).map_err(|_| ends())?,
        };
        let (own, rest) = body.split_at_checked(size).ok_or_else(ends)?;
        body = rest;
        out.push(match kind {
            8 | 9 => Value::Integer(i64::from(kind == 9)),
            1..=6 => {
                let sign = if own[0] >= 0x80 { -1 } else { 0 };
                Value::Integer(own.iter().fold(sign, |value: i64, &b| value << 8 | i64::from(b)))
            }
            12.. if kind % 2 == 0 => Value::Blob(own.to_vec()),
            13.. => Value::Text(String::from_utf8_lossy(own).into_owned()),
            _ => Value::Null,
        });
    }
    Ok(out)
}
