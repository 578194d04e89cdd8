//! Writing of logs to Parquet.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Repetition, Type as Physical};
use parquet::data_type::DoubleType;
use parquet::errors::Result as Written;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::{Error, Log, Place, Result};

/// Number of rows per group: a reader holds one group of its selected columns in memory.
const GROUP: usize = 1 << 16;

/// Writes a log as Parquet: doubles, bit for bit, without compression (the file is usually read on the same machine).
///
/// ```
/// use inertial_data::{Log, write_parquet};
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("log.parquet");
/// let log = Log::new("log", vec!["t".into(), "q.elbow".into()], vec![vec![0.0, 0.1], vec![0.3, f64::NAN]])?;
/// write_parquet(&log, &path)?;
/// assert_eq!(Log::read(&path)?.names(), log.names());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_parquet(log: &Log, path: &Path) -> Result<()> {
    write(log, path).map_err(|e| Error::read(Place::file(path.display().to_string()), e.to_string()))
}

fn write(log: &Log, path: &Path) -> Written<()> {
    let field = |name: &String| {
        let kind = Type::primitive_type_builder(name, Physical::DOUBLE).with_repetition(Repetition::REQUIRED);
        kind.build().map(Arc::new)
    };
    let fields = log.names().iter().map(field).collect::<Written<Vec<_>>>()?;
    let schema = Arc::new(Type::group_type_builder("log").with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(false)
        .build();
    let mut file = SerializedFileWriter::new(File::create(path)?, schema, Arc::new(properties))?;
    let count = log.rows().len();
    for first in (0..count).step_by(GROUP) {
        let mut rows = file.next_row_group()?;
        let mut k = 0;
        while let Some(mut column) = rows.next_column()? {
            let part = &log.column_at(k)[first..count.min(first + GROUP)];
            column.typed::<DoubleType>().write_batch(part, None, None)?;
            column.close()?;
            k += 1;
        }
        rows.close()?;
    }
    file.close()?;
    Ok(())
}
