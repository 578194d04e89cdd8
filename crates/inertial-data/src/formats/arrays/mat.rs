//! MATLAB files of version 5 to 7.2: variables that are arrays of numbers, or structures of them.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use super::array::{Array, Layout, Number, Stored};
use super::{Content, MOST_TEXT, has_names, length, read_at};
use crate::temporary::temporary;

/// First bytes of every file.
pub(crate) const MAGIC: [u8; 8] = *b"MATLAB 5";
/// Number of bytes before the first element.
const HEADER: u64 = 128;
/// Types of elements.
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;
/// Classes of arrays.
const CELL: u8 = 1;
const STRUCTURE: u8 = 2;
const CHARACTERS: u8 = 4;
const OPAQUE: u8 = 17;
/// Maximum nesting of structures; deeper ones are damaged.
const DEEPEST: usize = 16;
/// Maximum number of cells with names of joints.
const MOST_CELLS: usize = 1000;
/// Maximum size of the names of fields, which are short and few.
const LONGEST_NAMES: usize = 1 << 20;

/// Reads the descriptions of all variables.
pub(crate) fn read(file: &Arc<File>) -> Stored<Content> {
    let mut head = [0; HEADER as usize];
    read_at(file, 0, &mut head)?;
    let big = match &head[126..] {
        b"IM" => false,
        b"MI" => true,
        _ => return Err("its header has no byte order".to_owned()),
    };
    let mut out = Content { named: true, ..Content::default() };
    let mut at = HEADER;
    let end = length(file)?;
    while at < end {
        let element = Element::read(file, at, big)?;
        match element.kind {
            MATRIX => variable(&mut out, file, &element, "", big, 0)?,
            COMPRESSED => {
                let copy = Arc::new(inflated(file, &element, big)?);
                let inner = Element::read(&copy, 0, big)?;
                if inner.kind == MATRIX {
                    variable(&mut out, &copy, &inner, "", big, 0)?;
                }
            }
            _ => {}
        }
        // Compressed elements are not padded to eight bytes.
        at = if element.kind == COMPRESSED { element.end } else { element.next };
    }
    Ok(out)
}

/// Part of a file with a type.
struct Element {
    kind: u32,
    start: u64,
    end: u64,
    /// Offset of the next element.
    next: u64,
}

impl Element {
    fn read(file: &File, at: u64, big: bool) -> Stored<Self> {
        let mut tag = [0; 8];
        read_at(file, at, &mut tag)?;
        let (first, second) = (word(&tag, 0, big), word(&tag, 4, big));
        // Up to four bytes are stored in the tag itself.
        let out = if first >> 16 == 0 {
            let (start, size) = (at + 8, u64::from(second));
            Self { kind: first, start, end: start + size, next: start + size.next_multiple_of(8) }
        } else {
            Self {
                kind: first & 0xffff,
                start: at + 4,
                end: at + 4 + u64::from(first >> 16).min(4),
                next: at + 8,
            }
        };
        if out.end > length(file)? { Err("it ends early".to_owned()) } else { Ok(out) }
    }

    fn bytes(&self, file: &File, most: usize) -> Stored<Vec<u8>> {
        let size = (self.end - self.start) as usize;
        if size > most {
            return Err("a header is too long".to_owned());
        }
        let mut bytes = vec![0; size];
        read_at(file, self.start, &mut bytes)?;
        Ok(bytes)
    }
}

/// Decompresses an element into a temporary file.
fn inflated(file: &File, element: &Element, big: bool) -> Stored<File> {
    let io = |e: std::io::Error| crate::plain_io(&e);
    let mut packed = file;
    packed.seek(SeekFrom::Start(element.start)).map_err(io)?;
    let packed = BufReader::new(packed.take(element.end - element.start));
    let mut content = flate2::bufread::ZlibDecoder::new(packed);
    let mut tag = [0; 8];
    content.read_exact(&mut tag).map_err(|_| "a compressed variable ends early")?;
    let mut copy = temporary().map_err(|e| e.to_string())?;
    let size = u64::from(word(&tag, 4, big));
    let mut out = BufWriter::new(&mut copy);
    out.write_all(&tag).map_err(io)?;
    // At most as many bytes as the element declares.
    let written = std::io::copy(&mut content.take(size), &mut out).map_err(io)?;
    out.flush().map_err(io)?;
    drop(out);
    if written == size { Ok(copy) } else { Err("a compressed variable ends early".to_owned()) }
}

/// Adds a variable, or the fields of a structure by `NAME.FIELD`.
fn variable(
    out: &mut Content,
    file: &Arc<File>,
    element: &Element,
    field: &str,
    big: bool,
    depth: usize,
) -> Stored<()> {
    if element.end == element.start || depth > DEEPEST {
        return Ok(());
    }
    let Head { class, sizes, label } = Head::read(file, element, big)?;
    let own = String::from_utf8_lossy(&label.bytes(file, LONGEST_NAMES)?).into_owned();
    let name = if field.is_empty() { own } else { field.to_owned() };
    match class {
        CHARACTERS | CELL if has_names(&name) => {
            if let Some(texts) = texts(file, element, big)? {
                out.add_texts(&name, &texts);
            }
        }
        // Objects of the class `string`.
        OPAQUE if has_names(&name) => {
            let kind = Element::read(file, Element::read(file, label.next, big)?.next, big)?;
            if kind.bytes(file, LONGEST_NAMES)? == b"string" {
                out.add_unread(&name, "a string array", &format!("cellstr({name})"), None);
            }
        }
        STRUCTURE if sizes.iter().product::<usize>() == 1 => {
            let width = Element::read(file, label.next, big)?;
            let width = word(&padded(width.bytes(file, 64)?), 0, big) as usize;
            let names = Element::read(file, Element::read(file, label.next, big)?.next, big)?;
            let text = names.bytes(file, LONGEST_NAMES)?;
            let mut at = names.next;
            for part in text.chunks_exact(width.max(1)) {
                let part = part.split(|&b| b == 0).next().unwrap_or_default();
                let inner = Element::read(file, at, big)?;
                let label = format!("{name}.{}", String::from_utf8_lossy(part));
                variable(out, file, &inner, &label, big, depth + 1)?;
                at = inner.next;
            }
        }
        6..=15 => {
            let &[rows, columns] = &sizes[..] else { return Ok(()) };
            let data = Element::read(file, label.next, big)?;
            let Some(number) = number(data.kind) else { return Ok(()) };
            if (data.end - data.start) / number.size() as u64 != (rows as u64).saturating_mul(columns as u64)
            {
                return Err(format!("variable {name}: it ends early"));
            }
            let layout =
                Layout { start: data.start, number, big, by_column: true, record: None, factor: 1.0 };
            out.arrays.push(Array::new(&name, [rows, columns], file, layout)?);
        }
        _ => {}
    }
    Ok(())
}

/// Start of a variable.
struct Head {
    class: u8,
    sizes: Vec<usize>,
    /// Name of the variable; its content is next.
    label: Element,
}

impl Head {
    fn read(file: &File, element: &Element, big: bool) -> Stored<Self> {
        let flags = Element::read(file, element.start, big)?;
        let class = (word(&padded(flags.bytes(file, 64)?), 0, big) & 0xff) as u8;
        let dims = Element::read(file, flags.next, big)?;
        // Objects have no sizes.
        if class == OPAQUE {
            return Ok(Self { class, sizes: Vec::new(), label: dims });
        }
        let sizes = dims.bytes(file, 256)?.chunks_exact(4).map(|b| word(b, 0, big) as usize).collect();
        Ok(Self { class, sizes, label: Element::read(file, dims.next, big)? })
    }
}

/// Reads the rows of a matrix of characters, or the cells of an array; `None` if they are no texts, or too long for names.
fn texts(file: &File, element: &Element, big: bool) -> Stored<Option<Vec<String>>> {
    let Head { class, sizes, label } = Head::read(file, element, big)?;
    let &[rows, columns] = &sizes[..] else { return Ok(None) };
    if class == CHARACTERS {
        return characters(file, &Element::read(file, label.next, big)?, [rows, columns], big);
    }
    if class != CELL || rows.saturating_mul(columns) > MOST_CELLS {
        return Ok(None);
    }
    let (mut out, mut at) = (Vec::new(), label.next);
    for _ in 0..rows * columns {
        let cell = Element::read(file, at, big)?;
        at = cell.next;
        let is_text =
            cell.kind == MATRIX && cell.end > cell.start && Head::read(file, &cell, big)?.class == CHARACTERS;
        let text = if is_text { texts(file, &cell, big)? } else { None };
        match text.as_deref() {
            Some([text]) => out.push(text.clone()),
            _ => return Ok(None),
        }
    }
    Ok(Some(out))
}

/// Reads the rows of a matrix of characters, which is stored by columns.
fn characters(
    file: &File,
    data: &Element,
    [rows, columns]: [usize; 2],
    big: bool,
) -> Stored<Option<Vec<String>>> {
    if data.end - data.start > MOST_TEXT {
        return Ok(None);
    }
    let bytes = data.bytes(file, MOST_TEXT as usize)?;
    let unit =
        |b: &[u8]| if big { u16::from_be_bytes([b[0], b[1]]) } else { u16::from_le_bytes([b[0], b[1]]) };
    let letters: Vec<char> = match data.kind {
        // Bytes and UTF-8.
        1 | 2 | 16 => String::from_utf8_lossy(&bytes).chars().collect(),
        // 16-bit numbers and UTF-16.
        4 | 17 => {
            char::decode_utf16(bytes.chunks_exact(2).map(unit)).map(|c| c.unwrap_or('\u{fffd}')).collect()
        }
        _ => return Ok(None),
    };
    if rows == 0 || letters.len() != rows.saturating_mul(columns) {
        return Ok(None);
    }
    let row = |r: usize| letters.iter().skip(r).step_by(rows).collect::<String>().trim_end().to_owned();
    Ok(Some((0..rows).map(row).collect()))
}

/// Returns the number type for an element type.
fn number(kind: u32) -> Option<Number> {
    Some(match kind {
        1 => Number::I8,
        2 => Number::U8,
        3 => Number::I16,
        4 => Number::U16,
        5 => Number::I32,
        6 => Number::U32,
        7 => Number::F32,
        9 => Number::F64,
        12 => Number::I64,
        13 => Number::U64,
        _ => return None,
    })
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().max(4), 0);
    bytes
}

fn word(bytes: &[u8], at: usize, big: bool) -> u32 {
    let own = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if big { u32::from_be_bytes(own) } else { u32::from_le_bytes(own) }
}
