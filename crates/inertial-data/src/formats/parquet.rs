//! Parquet logs: one row group after the other, a few thousand rows at a time.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use ::parquet::column::reader::ColumnReader;
use ::parquet::data_type::ByteArray;
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::schema::types::ColumnDescriptor;

use crate::columns::name_lists;
use crate::formats::panics::caught;
use crate::formats::parquet_pages::{PageFile, column_reader};
use crate::joint_names::JointNames;
use crate::log::check_names;
use crate::reader::{LogRows, Reader};
use crate::{Error, Place, Result, plain_io};

/// First and last bytes of every file.
pub(crate) const MAGIC: [u8; 4] = *b"PAR1";
/// Number of rows read at once.
const BLOCK: usize = 8192;

/// Reader of Parquet logs: numbers of any width, times as numbers or time stamps, lists of numbers as columns `NAME_0`, `NAME_1` …
pub struct ParquetReader {
    file: String,
    reader: SerializedFileReader<File>,
    /// Second handle of the file, for the pages of columns.
    pages: Arc<PageFile>,
    names: Vec<String>,
    /// Names of joints in the first record.
    listed: Vec<JointNames>,
    /// Column of the file for each name, and the index in its list.
    places: Vec<(usize, usize)>,
    /// Number of values per row of each column of the file.
    widths: Vec<usize>,
    /// Selected columns.
    columns: Vec<usize>,
    /// Columns of the file that are read, each with the slots of its numbers in the rows.
    leaves: Vec<Leaf>,
    /// Number of row groups started.
    group: usize,
    /// Columns of the row group, and the number of its remaining rows.
    open: Vec<ColumnReader>,
    left: usize,
    /// Number of records returned.
    done: usize,
    /// Levels and values of one column.
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    numbers: Numbers,
}

/// Column of the file that is read.
struct Leaf {
    column: usize,
    /// Slot in the rows, and index in the list.
    slots: Vec<(usize, usize)>,
}

/// Values as stored.
#[derive(Default)]
struct Numbers {
    bools: Vec<bool>,
    ints: Vec<i32>,
    longs: Vec<i64>,
    floats: Vec<f32>,
    doubles: Vec<f64>,
    converted: Vec<f64>,
}

impl ParquetReader {
    /// Reads an open file; `name` is used in messages.
    pub fn new(file: File, name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        let pages = file
            .try_clone()
            .map_err(|e| Error::read(Place::file(&name), format!("cannot be opened: {}", plain_io(&e))))?;
        let pages = Arc::new(PageFile(pages));
        let reader = guarded(|| SerializedFileReader::new(file)).map_err(|e| damaged(&name, &e))?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let (mut names, mut places, mut widths) = (Vec::new(), Vec::new(), Vec::new());
        let (mut listed, mut texts) = (Vec::new(), HashMap::new());
        for (k, column) in schema.columns().iter().enumerate() {
            let path = column.path().string();
            if is_list(column) {
                let width = guarded(|| list_width(&reader, &pages, k));
                let width = width.map_err(|e| damaged(&name, &e))?.min(LONGEST_LIST);
                let own = name_of_list(column);
                names.extend((0..width).map(|i| format!("{own}_{i}")));
                places.extend((0..width).map(|i| (k, i)));
                widths.push(width);
            } else {
                let is_list = column.max_rep_level() == 1;
                let own = if is_list { name_of_list(column) } else { path.clone() };
                if column.physical_type() == Type::BYTE_ARRAY && name_lists::is_candidate(&own) {
                    let first = guarded(|| first_texts(&reader, &pages, k));
                    let first = first.map_err(|e| damaged(&name, &e))?;
                    if is_list {
                        listed.extend(JointNames::new(own, first));
                    } else {
                        texts.extend(first.into_iter().next().map(|text| (names.len(), text)));
                    }
                }
                // The index of pandas, if it has no name.
                let is_index = path == "__index_level_0__" && seconds(column) != 1.0;
                names.push(if is_index { "datetime".to_owned() } else { path });
                places.push((k, 0));
                widths.push(1);
            }
        }
        check_names(&Place::file(&name), &names)?;
        listed.extend(name_lists::of_columns(&names, |k| texts.get(&k).cloned()));
        let mut out = Self {
            file: name,
            reader,
            pages,
            names,
            listed,
            places,
            widths,
            columns: Vec::new(),
            leaves: Vec::new(),
            group: 0,
            open: Vec::new(),
            left: 0,
            done: 0,
            definitions: Vec::new(),
            repetitions: Vec::new(),
            numbers: Numbers::default(),
        };
        out.select(&(0..out.names.len()).collect::<Vec<_>>());
        Ok(out)
    }

    fn descriptor(&self, column: usize) -> Arc<ColumnDescriptor> {
        self.reader.metadata().file_metadata().schema_descr().column(column)
    }

    /// Rejects columns that are not numbers.
    fn check_selected(&self) -> Result<()> {
        for &c in &self.columns {
            let descriptor = self.descriptor(self.places[c].0);
            if !is_number(&descriptor) && !is_list(&descriptor) {
                let message = format!("holds {}: expected one number per row", descriptor.physical_type());
                return Err(Error::read(Place::file(&self.file).column(&self.names[c]), message));
            }
        }
        Ok(())
    }

    /// Reads `count` records of an open column into its slots of all rows.
    fn fill(&mut self, at: usize, count: usize, rows: &mut LogRows) -> Result<()> {
        let column = self.leaves[at].column;
        let descriptor = self.descriptor(column);
        let (width, length, factor) = (rows.width, self.widths[column], seconds(&descriptor));
        let (full, is_list) = (descriptor.max_def_level(), descriptor.max_rep_level() > 0);
        let mut next = 0;
        while next < count {
            let records = self.read_records(at, count - next)?;
            let mut numbers = std::mem::take(&mut self.numbers);
            let values = numbers.values(&self.open[at], factor);
            // Without levels every record has one value; a level below the maximum is a missing value.
            let entries = if full == 0 { records } else { self.definitions.len() };
            let (mut record, mut place, mut value) = (0, 0, 0);
            for entry in 0..entries {
                if entry > 0 && (!is_list || self.repetitions.get(entry) == Some(&0)) {
                    self.check_length(is_list, place, length, next + record, column)?;
                    (record, place) = (record + 1, 0);
                }
                if record >= records {
                    return Err(Error::read(
                        Place::file(&self.file),
                        "the file is damaged: a column is too long",
                    ));
                }
                let there = full == 0 || self.definitions[entry] == full;
                let x = if there { values.get(value).copied().unwrap_or(f64::NAN) } else { f64::NAN };
                value += usize::from(there);
                for &(slot, _) in self.leaves[at].slots.iter().filter(|(_, own)| *own == place) {
                    if x.is_infinite() {
                        let place = Place::file(&self.file).row(self.done + next + record + 1);
                        let message = format!("`{x}` is not a finite number");
                        return Err(Error::read(place.column(&self.names[self.columns[slot]]), message));
                    }
                    rows.values[(next + record) * width + slot] = x;
                }
                place += 1;
            }
            self.check_length(is_list, place, length, next + record, column)?;
            self.numbers = numbers;
            next += records;
        }
        Ok(())
    }

    /// Reads up to `wanted` records of an open column with their levels.
    fn read_records(&mut self, at: usize, wanted: usize) -> Result<usize> {
        self.definitions.clear();
        self.repetitions.clear();
        let Self { numbers, open, definitions, repetitions, .. } = self;
        let records = guarded(|| numbers.read(&mut open[at], wanted, definitions, repetitions));
        let records = records.map_err(|e| damaged(&self.file, &e))?;
        match records {
            0 => Err(Error::read(Place::file(&self.file), "the file is damaged: a column is too short")),
            records => Ok(records),
        }
    }

    fn check_length(
        &self,
        is_list: bool,
        found: usize,
        expected: usize,
        record: usize,
        column: usize,
    ) -> Result<()> {
        if !is_list || found == expected {
            return Ok(());
        }
        let place = Place::file(&self.file)
            .row(self.done + record + 1)
            .column(self.descriptor(column).path().string());
        Err(Error::read(place, format!("a list of {found}, but the first row has {expected}")))
    }
}

impl Numbers {
    /// Reads up to `wanted` records with their levels; returns zero for columns that are not numbers.
    fn read(
        &mut self,
        reader: &mut ColumnReader,
        wanted: usize,
        definitions: &mut Vec<i16>,
        repetitions: &mut Vec<i16>,
    ) -> std::result::Result<usize, ParquetError> {
        let Self { bools, ints, longs, floats, doubles, .. } = self;
        macro_rules! read {
            ($reader:ident, $values:ident) => {{
                $values.clear();
                $reader
                    .read_records(wanted, Some(definitions), Some(repetitions), $values)
                    .map(|(records, ..)| records)
            }};
        }
        match reader {
            ColumnReader::BoolColumnReader(r) => read!(r, bools),
            ColumnReader::Int32ColumnReader(r) => read!(r, ints),
            ColumnReader::Int64ColumnReader(r) => read!(r, longs),
            ColumnReader::FloatColumnReader(r) => read!(r, floats),
            ColumnReader::DoubleColumnReader(r) => read!(r, doubles),
            _ => Ok(0),
        }
    }

    /// Returns the values read last, as numbers.
    fn values(&mut self, reader: &ColumnReader, factor: f64) -> &[f64] {
        let Self { bools, ints, longs, floats, doubles, converted } = self;
        converted.clear();
        match reader {
            ColumnReader::BoolColumnReader(_) => converted.extend(bools.iter().map(|&x| f64::from(x))),
            ColumnReader::Int32ColumnReader(_) => converted.extend(ints.iter().map(|&x| f64::from(x))),
            ColumnReader::Int64ColumnReader(_) => converted.extend(longs.iter().map(|&x| x as f64 * factor)),
            ColumnReader::FloatColumnReader(_) => converted.extend(floats.iter().map(|&x| f64::from(x))),
            _ => return doubles,
        }
        converted
    }
}

/// Maximum length of a list; longer lists are not joints.
const LONGEST_LIST: usize = 1000;
/// Maximum length of a text with names of joints.
const LONGEST_TEXT: usize = 1 << 16;

/// Returns whether a column has a list of numbers per row.
fn is_list(descriptor: &ColumnDescriptor) -> bool {
    is_numeric(descriptor) && descriptor.max_rep_level() == 1
}

/// Returns the name of a list: its path without the parts for its elements.
fn name_of_list(descriptor: &ColumnDescriptor) -> String {
    let parts = descriptor.path().parts();
    parts[..parts.len().saturating_sub(2).max(1)].join(".")
}

/// Returns the texts of the first record of a column.
fn first_texts(
    reader: &SerializedFileReader<File>,
    pages: &Arc<PageFile>,
    column: usize,
) -> std::result::Result<Vec<String>, ParquetError> {
    if reader.num_row_groups() == 0 {
        return Ok(Vec::new());
    }
    let first = column_reader(pages, reader.metadata().row_group(0), column)?;
    let ColumnReader::ByteArrayColumnReader(mut first) = first else { return Ok(Vec::new()) };
    let (mut definitions, mut repetitions, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    first.read_records(1, Some(&mut definitions), Some(&mut repetitions), &mut texts)?;
    let is_short = texts.len() <= LONGEST_LIST && texts.iter().all(|text| text.len() <= LONGEST_TEXT);
    let text = |text: &ByteArray| String::from_utf8_lossy(text.data()).into_owned();
    Ok(if is_short { texts.iter().map(text).collect() } else { Vec::new() })
}

/// Returns the number of values in the first list of a column.
fn list_width(
    reader: &SerializedFileReader<File>,
    pages: &Arc<PageFile>,
    column: usize,
) -> std::result::Result<usize, ParquetError> {
    if reader.num_row_groups() == 0 {
        return Ok(0);
    }
    let mut first = column_reader(pages, reader.metadata().row_group(0), column)?;
    let (mut definitions, mut repetitions) = (Vec::new(), Vec::new());
    Numbers::default().read(&mut first, 1, &mut definitions, &mut repetitions)?;
    Ok(definitions.len())
}

impl Reader for ParquetReader {
    fn file(&self) -> &str {
        &self.file
    }

    fn names(&self) -> &[String] {
        &self.names
    }

    fn is_number(&self, column: usize) -> bool {
        let descriptor = self.descriptor(self.places[column].0);
        is_number(&descriptor) || is_list(&descriptor)
    }

    fn joint_names(&self) -> Vec<JointNames> {
        self.listed.clone()
    }

    fn select(&mut self, columns: &[usize]) {
        self.columns = columns.to_vec();
        self.leaves.clear();
        for (slot, &c) in columns.iter().enumerate() {
            let (column, place) = self.places[c];
            match self.leaves.iter_mut().find(|leaf| leaf.column == column) {
                Some(leaf) => leaf.slots.push((slot, place)),
                None => self.leaves.push(Leaf { column, slots: vec![(slot, place)] }),
            }
        }
    }

    fn next_rows(&mut self) -> Result<Option<LogRows>> {
        self.check_selected()?;
        while self.left == 0 {
            if self.group == self.reader.num_row_groups() {
                return Ok(None);
            }
            let group = self.reader.metadata().row_group(self.group);
            let open = |leaf: &Leaf| {
                let column = guarded(|| column_reader(&self.pages, group, leaf.column));
                column.map_err(|e| damaged(&self.file, &e))
            };
            // Only a row group whose columns are all open is started.
            self.open = self.leaves.iter().map(open).collect::<Result<_>>()?;
            self.left = usize::try_from(group.num_rows()).unwrap_or(0);
            self.group += 1;
        }
        let count = self.left.min(BLOCK);
        let width = self.columns.len();
        let mut rows = LogRows {
            width,
            values: vec![f64::NAN; count * width],
            lines: (self.done + 1..=self.done + count).collect(),
        };
        for at in 0..self.leaves.len() {
            self.fill(at, count, &mut rows)?;
        }
        self.left -= count;
        self.done += count;
        Ok(Some(rows))
    }

    fn fraction_read(&self) -> Option<f64> {
        let all = self.reader.metadata().file_metadata().num_rows();
        (all > 0).then(|| self.done as f64 / all as f64)
    }
}

/// Returns whether a column has one number per row.
fn is_number(descriptor: &ColumnDescriptor) -> bool {
    is_numeric(descriptor) && descriptor.max_rep_level() == 0
}

fn is_numeric(descriptor: &ColumnDescriptor) -> bool {
    matches!(
        descriptor.physical_type(),
        Type::BOOLEAN | Type::INT32 | Type::INT64 | Type::FLOAT | Type::DOUBLE
    )
}

/// Returns the factor from a time stamp to seconds; one for other numbers.
fn seconds(descriptor: &ColumnDescriptor) -> f64 {
    match (descriptor.logical_type_ref(), descriptor.converted_type()) {
        (Some(LogicalType::Timestamp(stamp)), _) => match stamp.unit {
            TimeUnit::MILLIS => 1e-3,
            TimeUnit::MICROS => 1e-6,
            TimeUnit::NANOS => 1e-9,
        },
        (_, ConvertedType::TIMESTAMP_MILLIS) => 1e-3,
        (_, ConvertedType::TIMESTAMP_MICROS) => 1e-6,
        _ => 1.0,
    }
}

/// Calls the crate that reads the format, which panics on some damaged files.
fn guarded<T>(
    read: impl FnOnce() -> std::result::Result<T, ParquetError>,
) -> std::result::Result<T, ParquetError> {
    caught(read).unwrap_or_else(|| Err(ParquetError::General("its content is invalid".into())))
}

fn damaged(file: &str, error: &ParquetError) -> Error {
    let text = error.to_string();
    // This is the only message for codecs that are not compiled in.
    let codec = text.split_once("Disabled feature at compile time: ").map(|(_, codec)| codec);
    let message = match (codec, error) {
        (Some(codec), _) => {
            format!("is compressed with {codec}, which is not supported: use zstd, gzip or snappy")
        }
        (None, ParquetError::EOF(_)) => "the Parquet file is truncated".to_owned(),
        (None, _) => format!("the Parquet file is truncated or damaged: {text}"),
    };
    Error::read(Place::file(file), message)
}
