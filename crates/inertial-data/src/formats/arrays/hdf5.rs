//! HDF5 files, and MATLAB files of version 7.3, which are also HDF5: datasets of numbers with one or two dimensions, and of records.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;

use hdf5_reader::attribute_api::Attribute;
use hdf5_reader::datatype_api::CompoundField;
use hdf5_reader::group::Group;
use hdf5_reader::{
    ByteOrder, Dataset, Datatype, FileStorage, H5Type, Hdf5File, OpenOptions, SliceInfo, SliceInfoElem,
};

use super::array::{Array, Layout, Number, Stored};
use super::{Content, MOST_COLUMNS, has_names, hdf5_filters, length};
use crate::columns::name_lists::is_list;
use crate::joint_names::JointNames;
use crate::temporary::temporary;

/// First bytes of every HDF5 file, and of MATLAB files.
pub(crate) const MAGIC: [u8; 8] = *b"\x89HDF\r\n\x1a\n";
pub(crate) const MATLAB: [u8; 8] = *b"MATLAB 7";
/// Maximum nesting of groups; deeper ones are damaged.
const DEEPEST: usize = 16;
/// Maximum number of datasets and groups of one file.
const MOST: usize = 10_000;
/// Number of bytes read at once, and maximum size of a chunk, which may be larger.
const BLOCK: usize = 4 << 20;
const LARGEST_CHUNK: usize = 1 << 28;
/// Maximum number of names of joints, and number of letters of a matrix of them.
const MOST_NAMES: u64 = 1000;
const MOST_LETTERS: u64 = 1 << 18;
/// Maximum growth factor of compressed data.
const GROWTH: u64 = 2000;

/// Reads the descriptions of all datasets; their numbers are copied to a temporary file.
pub(crate) fn read(file: &Arc<File>) -> Stored<Content> {
    let own = file.try_clone().map_err(|e| crate::plain_io(&e))?;
    let storage = FileStorage::from_file(own).map_err(words)?;
    let options = OpenOptions {
        max_chunk_bytes: LARGEST_CHUNK,
        max_read_bytes: LARGEST_CHUNK,
        filter_registry: Some(hdf5_filters::registry(LARGEST_CHUNK)),
        ..OpenOptions::default()
    };
    let opened = Hdf5File::from_storage_with_options(Arc::new(storage), options).map_err(words)?;
    let root = opened.root_group().map_err(words)?;
    let content = Content { named: true, ..Content::default() };
    let mut reader = Reader { content, size: length(file)?, count: 0, cells: root.group("#refs#").ok() };
    reader.group(&root, "", 0)?;
    Ok(reader.content)
}

struct Reader {
    content: Content,
    /// Length of the file.
    size: u64,
    count: usize,
    /// Group with the contents of MATLAB's cells.
    cells: Option<Group>,
}

impl Reader {
    fn group(&mut self, group: &Group, path: &str, depth: usize) -> Stored<()> {
        if depth > DEEPEST {
            return Err("its groups are nested too deeply".to_owned());
        }
        let name = |own: &str| {
            let own = own.rsplit('/').next().unwrap_or_default();
            if path.is_empty() { own.to_owned() } else { format!("{path}.{own}") }
        };
        let (groups, datasets) = group.members().map_err(words)?;
        self.count += 1 + datasets.len();
        if self.count > MOST {
            return Err(format!("it has more than {MOST} datasets and groups"));
        }
        for attribute in group.attributes().unwrap_or_default().iter().filter(|a| is_list(&a.name)) {
            self.content.add_texts(&name(&attribute.name), &texts_of(attribute));
        }
        for dataset in &datasets {
            self.dataset(dataset, &name(dataset.name()))?;
        }
        // MATLAB's references to cells and objects are not variables.
        for inner in groups.iter().filter(|g| !g.name().contains('#')) {
            self.group(inner, &name(inner.name()), depth + 1)?;
        }
        Ok(())
    }

    fn dataset(&mut self, dataset: &Dataset, name: &str) -> Stored<()> {
        // MATLAB stores characters and references as numbers.
        let class =
            dataset.attribute("MATLAB_class").ok().and_then(|a| a.read_string().ok()).unwrap_or_default();
        let class = class.trim_end_matches('\0');
        let is_text = matches!(dataset.dtype(), Datatype::String { .. } | Datatype::VarLen { .. });
        if is_text || matches!(class, "char" | "cell" | "string" | "function_handle") {
            if has_names(name) {
                self.names(dataset, name, class);
            }
            return Ok(());
        }
        let before = self.content.arrays.len();
        self.numbers(dataset, name)?;
        let lists = dataset.attributes();
        let list = lists.iter().filter(|a| is_list(&a.name)).find_map(|a| JointNames::new(name, texts_of(a)));
        self.content.arrays[before..].iter_mut().for_each(|array| array.joints.clone_from(&list));
        Ok(())
    }

    /// Adds the names of joints of a dataset of texts.
    fn names(&mut self, dataset: &Dataset, name: &str, class: &str) {
        let count = dataset.shape().iter().fold(1_u64, |all, &n| all.saturating_mul(n));
        let texts = match class {
            "char" => matrix_texts(dataset),
            "cell" if count <= MOST_NAMES => self.cell_texts(dataset),
            "string" => {
                self.content.add_unread(name, "a string array", &format!("cellstr({name})"), None);
                None
            }
            "" if count <= MOST_NAMES => dataset.read_strings().ok(),
            _ => None,
        };
        if let Some(texts) = texts {
            self.content.add_texts(name, &texts);
        }
    }

    /// Reads the texts of MATLAB's cells, which refer to other datasets.
    fn cell_texts(&self, dataset: &Dataset) -> Option<Vec<String>> {
        let cells = self.cells.as_ref()?;
        let selections =
            dataset.shape().iter().map(|&end| SliceInfoElem::Slice { start: 0, end, step: 1 }).collect();
        let places = dataset.read_slice::<Reference>(&SliceInfo { selections }).ok()?;
        let text = |place: &Reference| {
            let own = cells.child_name_by_address(place.0).ok()??;
            let [text] = &matrix_texts(&cells.dataset(&own).ok()?)?[..] else { return None };
            Some(text.clone())
        };
        places.iter().map(text).collect()
    }

    /// Adds a dataset of numbers.
    fn numbers(&mut self, dataset: &Dataset, name: &str) -> Stored<()> {
        let shape = match *dataset.shape() {
            [rows] => [rows, 1],
            [rows, columns] => [rows, columns],
            ref shape => {
                self.content.others.extend((shape.len() > 2).then(|| name.to_owned()));
                return Ok(());
            }
        };
        let many = MOST_COLUMNS as u64;
        if shape[0].min(shape[1]) > many || shape[0] == 0 || shape[1] == 0 {
            return Ok(());
        }
        let needed = shape[0].saturating_mul(shape[1]).saturating_mul(8);
        if needed > self.size.saturating_mul(GROWTH) {
            return Err(format!("dataset {name}: it has more numbers than the file can hold"));
        }
        if let Datatype::Compound { size, fields } = dataset.dtype() {
            return self.records(dataset, name, shape, *size, fields);
        }
        let copy = match dataset.dtype() {
            Datatype::FloatingPoint { size: 8, .. } => copied::<f64>(dataset, shape, |x| x),
            Datatype::FloatingPoint { size: 4, .. } => copied::<f32>(dataset, shape, f64::from),
            Datatype::FixedPoint { size: 1, signed: true, .. } => copied::<i8>(dataset, shape, f64::from),
            Datatype::FixedPoint { size: 1, signed: false, .. } => copied::<u8>(dataset, shape, f64::from),
            Datatype::FixedPoint { size: 2, signed: true, .. } => copied::<i16>(dataset, shape, f64::from),
            Datatype::FixedPoint { size: 2, signed: false, .. } => copied::<u16>(dataset, shape, f64::from),
            Datatype::FixedPoint { size: 4, signed: true, .. } => copied::<i32>(dataset, shape, f64::from),
            Datatype::FixedPoint { size: 4, signed: false, .. } => copied::<u32>(dataset, shape, f64::from),
            Datatype::FixedPoint { size: 8, signed: true, .. } => copied::<i64>(dataset, shape, |x| x as f64),
            Datatype::FixedPoint { size: 8, signed: false, .. } => {
                copied::<u64>(dataset, shape, |x| x as f64)
            }
            _ => {
                self.content.others.push(name.to_owned());
                return Ok(());
            }
        };
        let copy = Arc::new(copy.map_err(|e| refused(name, &e))?);
        let layout =
            Layout { start: 0, number: Number::F64, big: false, by_column: false, record: None, factor: 1.0 };
        let shape = shape.map(|n| n as usize);
        self.content.arrays.push(Array::new(name, shape, &copy, layout)?);
        Ok(())
    }

    /// Reads a dataset of records: every field with a number, or with a list of numbers, is an array.
    fn records(
        &mut self,
        dataset: &Dataset,
        name: &str,
        [rows, columns]: [u64; 2],
        size: u32,
        fields: &[CompoundField],
    ) -> Stored<()> {
        if columns != 1 || dataset.ndim() != 1 || size == 0 || fields.len() > MOST {
            return Ok(());
        }
        if rows.saturating_mul(u64::from(size)) > self.size.saturating_mul(GROWTH) {
            return Err(format!("dataset {name}: it has more numbers than the file can hold"));
        }
        let copy = Arc::new(copied_records(dataset, rows, size).map_err(|e| refused(name, &e))?);
        for field in fields {
            let (kind, columns) = match &field.datatype {
                Datatype::Array { base, dims } => (&**base, dims.iter().product::<u64>()),
                kind => (kind, 1),
            };
            let Some((number, big)) = number(kind) else { continue };
            if columns == 0 || columns > MOST_COLUMNS as u64 {
                continue;
            }
            let layout = Layout {
                start: u64::from(field.byte_offset),
                number,
                big,
                by_column: false,
                record: Some(u64::from(size)),
                factor: 1.0,
            };
            let path = format!("{name}.{}", field.name);
            self.content.arrays.push(Array::new(&path, [rows as usize, columns as usize], &copy, layout)?);
        }
        Ok(())
    }
}

/// Returns the storage type of a number, and whether its first byte is the most significant one.
fn number(kind: &Datatype) -> Option<(Number, bool)> {
    let (number, order) = match *kind {
        Datatype::FloatingPoint { size: 8, byte_order } => (Number::F64, byte_order),
        Datatype::FloatingPoint { size: 4, byte_order } => (Number::F32, byte_order),
        Datatype::FixedPoint { size, signed, byte_order } => {
            let number = match (size, signed) {
                (1, true) => Number::I8,
                (1, false) => Number::U8,
                (2, true) => Number::I16,
                (2, false) => Number::U16,
                (4, true) => Number::I32,
                (4, false) => Number::U32,
                (8, true) => Number::I64,
                (8, false) => Number::U64,
                _ => return None,
            };
            (number, byte_order)
        }
        _ => return None,
    };
    Some((number, order == ByteOrder::BigEndian))
}

/// Returns the message about a dataset that cannot be read.
fn refused(name: &str, cause: &str) -> String {
    hdf5_filters::unsupported(name, cause).unwrap_or_else(|| format!("dataset {name}: {cause}"))
}

/// Bytes of a record, as stored.
#[derive(Clone)]
struct Record(Vec<u8>);

impl H5Type for Record {
    fn hdf5_type() -> Datatype {
        Datatype::Compound { size: 0, fields: Vec::new() }
    }

    fn from_bytes(bytes: &[u8], _: &Datatype) -> hdf5_reader::error::Result<Self> {
        Ok(Self(bytes.to_vec()))
    }

    fn element_size(kind: &Datatype) -> usize {
        if let Datatype::Compound { size, .. } = kind { *size as usize } else { 1 }
    }
}

/// Address of a dataset.
#[derive(Clone)]
struct Reference(u64);

impl H5Type for Reference {
    fn hdf5_type() -> Datatype {
        Datatype::FixedPoint { size: 8, signed: false, byte_order: ByteOrder::LittleEndian }
    }

    fn from_bytes(bytes: &[u8], _: &Datatype) -> hdf5_reader::error::Result<Self> {
        let mut word = [0; 8];
        let size = bytes.len().min(8);
        word[..size].copy_from_slice(&bytes[..size]);
        Ok(Self(u64::from_le_bytes(word)))
    }

    fn element_size(kind: &Datatype) -> usize {
        if let Datatype::Reference { size, .. } = kind { usize::from(*size) } else { 8 }
    }
}

/// Returns the texts of an attribute; none if it has other content.
fn texts_of(attribute: &Attribute) -> Vec<String> {
    attribute.read_strings().or_else(|_| attribute.read_string().map(|text| vec![text])).unwrap_or_default()
}

/// Reads the rows of a matrix of characters of MATLAB, whose columns are the rows of the dataset.
fn matrix_texts(dataset: &Dataset) -> Option<Vec<String>> {
    let &[columns, rows] = dataset.shape() else { return None };
    if rows == 0 || columns.saturating_mul(rows) > MOST_LETTERS {
        return None;
    }
    let selections =
        [columns, rows].iter().map(|&end| SliceInfoElem::Slice { start: 0, end, step: 1 }).collect();
    let letters = dataset.read_slice::<u16>(&SliceInfo { selections }).ok()?;
    let row = |r: usize| {
        let units = letters.iter().skip(r).step_by(rows as usize).copied();
        let text: String = char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect();
        text.trim_end().to_owned()
    };
    Some((0..rows as usize).map(row).collect())
}

/// Copies the records of a dataset to a temporary file.
fn copied_records(dataset: &Dataset, rows: u64, size: u32) -> Stored<File> {
    let mut copy = temporary().map_err(|e| e.to_string())?;
    let mut out = BufWriter::new(&mut copy);
    let at_once = (BLOCK as u64 / u64::from(size)).max(1);
    let mut start = 0;
    while start < rows {
        let end = (start + at_once).min(rows);
        let selections = vec![SliceInfoElem::Slice { start, end, step: 1 }];
        let block = dataset.read_slice::<Record>(&SliceInfo { selections }).map_err(words)?;
        if block.len() as u64 != end - start || block.iter().any(|record| record.0.len() != size as usize) {
            return Err("it ends early".to_owned());
        }
        for record in &block {
            out.write_all(&record.0).map_err(|e| crate::plain_io(&e))?;
        }
        start = end;
    }
    out.flush().map_err(|e| crate::plain_io(&e))?;
    drop(out);
    Ok(copy)
}

/// Copies the numbers of a dataset, row after row, to a temporary file.
fn copied<T: H5Type>(
    dataset: &Dataset,
    [rows, columns]: [u64; 2],
    number: impl Fn(T) -> f64,
) -> Stored<File> {
    let mut copy = temporary().map_err(|e| e.to_string())?;
    let mut out = BufWriter::new(&mut copy);
    let at_once = (BLOCK as u64 / 8 / columns).max(1);
    let mut start = 0;
    while start < rows {
        let end = (start + at_once).min(rows);
        let mut selections = vec![SliceInfoElem::Slice { start, end, step: 1 }];
        if dataset.ndim() == 2 {
            selections.push(SliceInfoElem::Slice { start: 0, end: columns, step: 1 });
        }
        let block = dataset.read_slice::<T>(&SliceInfo { selections }).map_err(words)?;
        if block.len() as u64 != (end - start) * columns {
            return Err("it ends early".to_owned());
        }
        for x in block {
            out.write_all(&number(x).to_le_bytes()).map_err(|e| crate::plain_io(&e))?;
        }
        start = end;
    }
    out.flush().map_err(|e| crate::plain_io(&e))?;
    drop(out);
    Ok(copy)
}

/// Returns the cause in one line.
#[allow(clippy::needless_pass_by_value, reason = "errors are mapped by value")]
fn words(error: hdf5_reader::error::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
