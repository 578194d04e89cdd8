//! NumPy files: `.npy` with one array, `.npz` with several.

use std::fs::File;
use std::sync::Arc;

use super::array::{Array, Layout, Number, Stored};
use super::zip::{Entry, entries};
use super::{Content, MOST_TEXT, has_names, read_at};
use crate::columns::name_lists::is_list;

/// First bytes of every `.npy` file.
pub(crate) const MAGIC: [u8; 6] = *b"\x93NUMPY";
/// Maximum size of a header, which has some hundred bytes, or some thousand for records with many fields.
const LONGEST_HEADER: usize = 1 << 20;

/// Reads the description of an array.
pub(crate) fn read(file: &Arc<File>) -> Stored<Content> {
    let mut out = Content::default();
    add(&mut out, "", file, 0)?;
    // Fields of records have names.
    out.named = out.arrays.iter().any(|a| !a.name.is_empty());
    Ok(out)
}

/// Reads the descriptions of the arrays of a `.npz` file.
pub(crate) fn read_several(file: &Arc<File>) -> Stored<Content> {
    let mut out = Content { named: true, ..Content::default() };
    let entries = entries(file)?;
    let arrays: Vec<&Entry> = entries.iter().filter(|e| e.name.strip_suffix(".npy").is_some()).collect();
    if arrays.is_empty() {
        let excel = entries.iter().any(|e| e.name.starts_with("xl/"));
        let is = if excel {
            "is an Excel file; save it as CSV"
        } else {
            "is a ZIP file without NumPy arrays; extract it first"
        };
        return Err(is.to_owned());
    }
    for entry in arrays {
        let (source, start) = entry.content(file)?;
        add(&mut out, entry.name.trim_end_matches(".npy"), &source, start)?;
    }
    Ok(out)
}

/// Adds the array at an offset of a file.
fn add(out: &mut Content, name: &str, file: &Arc<File>, start: u64) -> Stored<()> {
    let mut head = [0; 12];
    read_at(file, start, &mut head[..10])?;
    if head[..6] != MAGIC {
        return Err("it does not start like a NumPy array".to_owned());
    }
    let (length, first) = if head[6] == 1 {
        (usize::from(u16::from_le_bytes([head[8], head[9]])), 10)
    } else {
        read_at(file, start, &mut head)?;
        (u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize, 12)
    };
    if length > LONGEST_HEADER {
        return Err("its header is too long".to_owned());
    }
    let mut text = vec![0; length];
    read_at(file, start + first, &mut text)?;
    let header = Header::parse(&String::from_utf8_lossy(&text))?;
    let start = start + first + length as u64;
    let shape = match header.shape[..] {
        [rows] => [rows, 1],
        [rows, columns] => [rows, columns],
        [] => return add_single(out, name, &header.kind, file, start),
        ref shape => {
            out.others.extend((shape.len() > 2).then(|| name.to_owned()));
            return Ok(());
        }
    };
    match &header.kind {
        Kind::Numbers(number) => out.arrays.push(number.array(name, shape, file, start, header.fortran)?),
        Kind::Records(fields) if header.shape.len() == 1 => {
            let size: usize = fields.iter().map(Field::size).sum();
            let mut offset = start;
            for field in fields {
                if let (Some(number), Some(columns)) = (&field.number, field.columns()) {
                    let layout = Layout { record: Some(size as u64), ..number.layout(offset, false) };
                    out.arrays.push(Array::new(&field.name, [shape[0], columns], file, layout)?);
                }
                offset += field.size() as u64;
            }
        }
        Kind::Texts(letters) => {
            if has_names(name) {
                out.add_texts(name, &letters.texts(file, start, shape[0].saturating_mul(shape[1]))?);
            }
        }
        Kind::Objects if has_names(name) => {
            let count = shape[0].saturating_mul(shape[1]);
            out.add_unread(name, "Python objects", &remedy(name), Some(count));
        }
        Kind::Objects | Kind::Records(_) | Kind::Others => out.others.push(name.to_owned()),
    }
    Ok(())
}

/// Adds a single text or object, which may be a list of names. Single numbers belong to no sample.
fn add_single(out: &mut Content, name: &str, kind: &Kind, file: &File, start: u64) -> Stored<()> {
    match kind {
        Kind::Texts(letters) if has_names(name) => out.add_texts(name, &letters.texts(file, start, 1)?),
        Kind::Objects if is_list(name) => out.add_unread(name, "a Python object", &remedy(name), None),
        _ => {}
    }
    Ok(())
}

/// Returns the expression that converts names to text.
fn remedy(name: &str) -> String {
    format!("np.array({name}, dtype=str)")
}

/// Type of texts of fixed length, padded with zeros.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Letters {
    count: usize,
    /// Whether texts are UTF-32 instead of bytes.
    is_utf32: bool,
    big: bool,
}

impl Letters {
    /// Parses a type such as `<U12` or `|S12`.
    fn parse(text: &str) -> Option<Self> {
        let plain = text.trim_start_matches(['<', '>', '|', '=']);
        let (is_utf32, count) = match plain.strip_prefix('U') {
            Some(count) => (true, count),
            None => (false, plain.strip_prefix(['S', 'a'])?),
        };
        Some(Self { count: count.parse().ok()?, is_utf32, big: text.starts_with('>') })
    }

    /// Reads `count` texts; none if they are too long for names.
    fn texts(self, file: &File, start: u64, count: usize) -> Stored<Vec<String>> {
        let length = (self.count as u64).saturating_mul(if self.is_utf32 { 4 } else { 1 });
        let size = (count as u64).saturating_mul(length);
        if size > MOST_TEXT || length == 0 {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; size as usize];
        read_at(file, start, &mut bytes)?;
        let letter = |b: &[u8]| {
            let word = [b[0], b[1], b[2], b[3]];
            char::from_u32(if self.big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
        };
        let text = |b: &[u8]| -> String {
            if self.is_utf32 {
                b.chunks_exact(4).filter_map(letter).take_while(|&c| c != '\0').collect()
            } else {
                String::from_utf8_lossy(b.split(|&b| b == 0).next().unwrap_or_default()).into_owned()
            }
        };
        Ok(bytes.chunks_exact(length as usize).map(text).collect())
    }
}

/// Number type with byte order, and the size of a unit of time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Numbers {
    number: Number,
    big: bool,
    factor: f64,
}

impl Numbers {
    /// Parses a type such as `<f8` or `<M8[ns]`.
    fn parse(text: &str) -> Option<Self> {
        let big = text.starts_with('>');
        let text = text.trim_start_matches(['<', '>', '|', '=']);
        let factor = match text.split_once('[').map(|(_, unit)| unit.trim_end_matches(']')) {
            Some("s") | None => 1.0,
            Some("ms") => 1e-3,
            Some("us") => 1e-6,
            Some("ns") => 1e-9,
            Some(_) => return None,
        };
        let number = match text.split('[').next()? {
            "f4" => Number::F32,
            "f8" => Number::F64,
            "i1" => Number::I8,
            "i2" => Number::I16,
            "i4" => Number::I32,
            "i8" | "M8" | "m8" => Number::I64,
            "u1" | "b1" => Number::U8,
            "u2" => Number::U16,
            "u4" => Number::U32,
            "u8" => Number::U64,
            _ => return None,
        };
        Some(Self { number, big, factor })
    }

    fn layout(self, start: u64, by_column: bool) -> Layout {
        let Self { number, big, factor } = self;
        Layout { start, number, big, by_column, record: None, factor }
    }

    fn array(
        self,
        name: &str,
        shape: [usize; 2],
        file: &Arc<File>,
        start: u64,
        by_column: bool,
    ) -> Stored<Array> {
        Array::new(name, shape, file, self.layout(start, by_column))
    }
}

#[derive(Debug, PartialEq)]
struct Field {
    name: String,
    /// Number type; `None` if the field is not a number.
    number: Option<Numbers>,
    /// Number of bytes of one element.
    bytes: usize,
    shape: Vec<usize>,
}

impl Field {
    fn size(&self) -> usize {
        self.shape.iter().product::<usize>().saturating_mul(self.bytes)
    }

    fn columns(&self) -> Option<usize> {
        match self.shape[..] {
            [] => Some(1),
            [columns] => Some(columns),
            _ => None,
        }
    }
}

#[derive(Debug, PartialEq)]
enum Kind {
    Numbers(Numbers),
    Records(Vec<Field>),
    Texts(Letters),
    /// Python objects.
    Objects,
    Others,
}

/// Header of an array: a Python dictionary.
#[derive(Debug, PartialEq)]
struct Header {
    kind: Kind,
    fortran: bool,
    shape: Vec<usize>,
}

impl Header {
    fn parse(text: &str) -> Stored<Self> {
        let after = |key: &str| {
            let at = text.find(&format!("'{key}':")).ok_or_else(|| format!("its header has no {key}"))?;
            Ok::<&str, String>(text[at + key.len() + 3..].trim_start())
        };
        let descr = after("descr")?;
        let kind = if descr.starts_with('[') {
            Kind::Records(fields(descr).ok_or("its header has an unknown entry")?)
        } else {
            let word = descr.trim_start_matches('\'').split('\'').next().unwrap_or_default();
            match (Numbers::parse(word), Letters::parse(word)) {
                (Some(numbers), _) => Kind::Numbers(numbers),
                (None, Some(letters)) => Kind::Texts(letters),
                (None, None) if word.trim_start_matches('|') == "O" => Kind::Objects,
                (None, None) => Kind::Others,
            }
        };
        let shape = shape(after("shape")?).ok_or("its header has no shape")?;
        Ok(Self { kind, fortran: after("fortran_order")?.starts_with("True"), shape })
    }
}

/// Parses the numbers of a tuple such as `(3, 4)`.
fn shape(text: &str) -> Option<Vec<usize>> {
    let inner = text.strip_prefix('(')?.split(')').next()?;
    let numbers = inner.split(',').map(str::trim).filter(|n| !n.is_empty());
    numbers.map(|n| n.trim_end_matches('L').parse().ok()).collect()
}

/// Parses the fields of a record: `[('t', '<f8'), ('q', '<f8', (7,))]`.
fn fields(text: &str) -> Option<Vec<Field>> {
    let mut rest = text.strip_prefix('[')?.trim_start();
    let mut out = Vec::new();
    while let Some(inner) = rest.strip_prefix('(') {
        let (name, after) = inner.trim_start().strip_prefix('\'')?.split_once('\'')?;
        let (word, after) =
            after.trim_start().strip_prefix(',')?.trim_start().strip_prefix('\'')?.split_once('\'')?;
        let after = after.trim_start();
        let (shape, after) = match after.strip_prefix(',').map(str::trim_start) {
            Some(tuple) if tuple.starts_with('(') => (shape(tuple)?, tuple.split_once(')')?.1.trim_start()),
            Some(after) => (Vec::new(), after),
            None => (Vec::new(), after),
        };
        let plain = word.trim_start_matches(['<', '>', '|', '=']);
        let digits = plain.trim_start_matches(|c: char| !c.is_ascii_digit());
        let size: usize = digits.split('[').next()?.parse().ok()?;
        let bytes = if plain.starts_with('U') { size.checked_mul(4)? } else { size };
        out.push(Field { name: name.to_owned(), number: Numbers::parse(word), bytes, shape });
        rest = after.strip_prefix(')')?.trim_start().trim_start_matches(',').trim_start();
    }
    rest.starts_with(']').then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read() {
        let text = "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4), }   \n";
        let f8 = Numbers { number: Number::F64, big: false, factor: 1.0 };
        let header = Header::parse(text).unwrap();
        assert_eq!(header, Header { kind: Kind::Numbers(f8), fortran: true, shape: vec![3, 4] });
        let text = "{'descr': [('t', '<f8'), ('q', '>f4', (2,)), ('s', '<U3')], 'fortran_order': False, 'shape': (5,), }";
        let Kind::Records(fields) = Header::parse(text).unwrap().kind else { panic!() };
        let sizes: Vec<_> = fields.iter().map(|f| (f.name.as_str(), f.size(), f.number.is_some())).collect();
        assert_eq!(sizes, [("t", 8, true), ("q", 8, true), ("s", 12, false)]);
        for bad in [
            "",
            "{'descr': '<f8'}",
            "{'descr': [('t'",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (x,)}",
        ] {
            assert!(Header::parse(bad).is_err(), "{bad}");
        }
    }
}
