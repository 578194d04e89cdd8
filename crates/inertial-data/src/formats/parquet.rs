//! Parquet logs: one row group after the other, a few thousand rows at a time.

use std::fs::File;
use std::sync::Arc;

use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use ::parquet::column::reader::ColumnReader;
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::schema::types::ColumnDescriptor;

use crate::formats::reader::{LogRows, Reader};
use crate::log::check_names;
use crate::{Error, Place, Result};

/// The first and the last bytes of every file.
pub(crate) const MAGIC: [u8; 4] = *b"PAR1";
/// Rows read at once.
const BLOCK: usize = 8192;

/// Reads a Parquet log: numbers of any width, times as numbers or as time stamps.
pub struct ParquetReader {
    file: String,
    reader: SerializedFileReader<File>,
    names: Vec<String>,
    columns: Vec<usize>,
    /// Row groups begun.
    group: usize,
    /// Columns of the row group, and its rows that are left.
    open: Vec<ColumnReader>,
    left: usize,
    /// Records handed out.
    done: usize,
    /// Definition levels and values of one column.
    levels: Vec<i16>,
    numbers: Numbers,
}

/// Values as they are stored.
#[derive(Default)]
struct Numbers {
    bools: Vec<bool>,
    ints: Vec<i32>,
    longs: Vec<i64>,
    floats: Vec<f32>,
    doubles: Vec<f64>,
}

impl ParquetReader {
    /// Reads an open file; `name` stands in messages.
    pub fn new(file: File, name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        let reader = SerializedFileReader::new(file).map_err(|e| damaged(&name, &e))?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let names: Vec<String> = schema.columns().iter().map(|c| c.path().string()).collect();
        check_names(&Place::file(&name), &names)?;
        let columns = (0..names.len()).collect();
        let (open, levels, numbers) = (Vec::new(), Vec::new(), Numbers::default());
        Ok(Self { file: name, reader, names, columns, group: 0, open, left: 0, done: 0, levels, numbers })
    }

    fn descriptor(&self, column: usize) -> Arc<ColumnDescriptor> {
        self.reader.metadata().file_metadata().schema_descr().column(column)
    }

    /// Refuses what is no number.
    fn check_selected(&self) -> Result<()> {
        for &c in &self.columns {
            let descriptor = self.descriptor(c);
            let number = matches!(
                descriptor.physical_type(),
                Type::BOOLEAN | Type::INT32 | Type::INT64 | Type::FLOAT | Type::DOUBLE
            );
            if !number || descriptor.max_rep_level() > 0 {
                let message = format!("holds {}: expected one number per row", descriptor.physical_type());
                return Err(Error::read(Place::file(&self.file).column(&self.names[c]), message));
            }
        }
        Ok(())
    }

    /// Reads `count` records of an open column into one place of all rows.
    fn fill(&mut self, at: usize, count: usize, rows: &mut LogRows) -> Result<()> {
        let descriptor = self.descriptor(self.columns[at]);
        let (width, factor) = (rows.width, seconds(&descriptor));
        let Numbers { bools, ints, longs, floats, doubles } = &mut self.numbers;
        let mut next = 0;
        while next < count {
            let wanted = count - next;
            self.levels.clear();
            let levels = Some(&mut self.levels);
            macro_rules! read {
                ($reader:ident, $values:ident) => {{
                    $values.clear();
                    $reader.read_records(wanted, levels, None, $values).map(|(records, ..)| records)
                }};
            }
            let records = match &mut self.open[at] {
                ColumnReader::BoolColumnReader(r) => read!(r, bools),
                ColumnReader::Int32ColumnReader(r) => read!(r, ints),
                ColumnReader::Int64ColumnReader(r) => read!(r, longs),
                ColumnReader::FloatColumnReader(r) => read!(r, floats),
                ColumnReader::DoubleColumnReader(r) => read!(r, doubles),
                _ => Ok(0),
            }
            .map_err(|e| damaged(&self.file, &e))?;
            if records == 0 {
                return Err(Error::read(
                    Place::file(&self.file),
                    "the file is damaged: a column is too short",
                ));
            }
            let mut values: Box<dyn Iterator<Item = f64>> = match &self.open[at] {
                ColumnReader::BoolColumnReader(_) => Box::new(bools.iter().map(|&x| f64::from(x))),
                ColumnReader::Int32ColumnReader(_) => Box::new(ints.iter().map(|&x| f64::from(x))),
                ColumnReader::Int64ColumnReader(_) => Box::new(longs.iter().map(|&x| x as f64 * factor)),
                ColumnReader::FloatColumnReader(_) => Box::new(floats.iter().map(|&x| f64::from(x))),
                _ => Box::new(doubles.iter().copied()),
            };
            let full = descriptor.max_def_level();
            for record in 0..records {
                // Without levels every record has a value; a level below the full one is a gap.
                let there = full == 0 || self.levels.get(record) == Some(&full);
                let value = if there { values.next().unwrap_or(f64::NAN) } else { f64::NAN };
                if value.is_infinite() {
                    let place = Place::file(&self.file).row(self.done + next + record + 1);
                    let message = format!("`{value}` is not a finite number");
                    return Err(Error::read(place.column(&self.names[self.columns[at]]), message));
                }
                rows.values[(next + record) * width + at] = value;
            }
            next += records;
        }
        Ok(())
    }
}

impl Reader for ParquetReader {
    fn file(&self) -> &str {
        &self.file
    }

    fn names(&self) -> &[String] {
        &self.names
    }

    fn select(&mut self, columns: &[usize]) {
        self.columns = columns.to_vec();
    }

    fn next_rows(&mut self) -> Result<Option<LogRows>> {
        self.check_selected()?;
        while self.left == 0 {
            if self.group == self.reader.num_row_groups() {
                return Ok(None);
            }
            let group = self.reader.get_row_group(self.group).map_err(|e| damaged(&self.file, &e))?;
            self.left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            let open = |&c: &usize| group.get_column_reader(c).map_err(|e| damaged(&self.file, &e));
            self.open = self.columns.iter().map(open).collect::<Result<_>>()?;
            self.group += 1;
        }
        let count = self.left.min(BLOCK);
        let width = self.columns.len();
        let mut rows = LogRows {
            width,
            values: vec![f64::NAN; count * width],
            lines: (self.done + 1..=self.done + count).collect(),
        };
        for at in 0..width {
            self.fill(at, count, &mut rows)?;
        }
        self.left -= count;
        self.done += count;
        Ok(Some(rows))
    }

    fn share(&self) -> Option<f64> {
        let all = self.reader.metadata().file_metadata().num_rows();
        (all > 0).then(|| self.done as f64 / all as f64)
    }
}

/// Factor from a time stamp to seconds; one for other numbers.
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

fn damaged(file: &str, error: &ParquetError) -> Error {
    let said = error.to_string();
    // Of codecs that were left out this is all that is said.
    let codec = said.split_once("Disabled feature at compile time: ").map(|(_, codec)| codec);
    let message = match (codec, error) {
        (Some(codec), _) => {
            format!("is compressed with {codec}, which is not supported: use zstd, gzip or snappy")
        }
        (None, ParquetError::EOF(_)) => "the Parquet file is truncated".to_owned(),
        (None, _) => format!("the Parquet file is truncated or damaged: {said}"),
    };
    Error::read(Place::file(file), message)
}
