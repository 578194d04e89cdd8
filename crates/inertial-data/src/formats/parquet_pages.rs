//! Pages of a column of a Parquet file, decompressed if they are compressed with Zstandard.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::column::reader::{ColumnReader, get_column_reader};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::metadata::RowGroupMetaData;
use ::parquet::file::serialized_reader::SerializedPageReader;

use crate::formats::zstd::Unpacked;
use crate::plain_io;

/// Maximum size of a decompressed page.
const LONGEST: usize = 1 << 28;

/// Opens a column of a row group.
pub fn column_reader(file: &Arc<File>, group: &RowGroupMetaData, column: usize) -> Result<ColumnReader> {
    let description = group.schema_descr().column(column);
    let rows = usize::try_from(group.num_rows())?;
    let stored = group.column(column);
    if !matches!(stored.compression(), Compression::ZSTD(_)) {
        let pages = SerializedPageReader::new(Arc::clone(file), stored, rows, None)?;
        return Ok(get_column_reader(description, Box::new(pages)));
    }
    // The crate would decompress with a C library, so the column is declared as uncompressed.
    let plain = stored.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
    let pages = UnpackedPages(SerializedPageReader::new(Arc::clone(file), &plain, rows, None)?);
    Ok(get_column_reader(description, Box::new(pages)))
}

/// Pages that are compressed with Zstandard.
struct UnpackedPages(SerializedPageReader<File>);

impl Iterator for UnpackedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for UnpackedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.0.get_next_page()?.map(unpacked).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.0.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.0.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.0.at_record_boundary()
    }
}

/// Returns the page with decompressed content. Levels of version 2 pages are never compressed.
fn unpacked(mut page: Page) -> Result<Page> {
    let (buf, plain) = match &mut page {
        Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => (buf, 0),
        Page::DataPageV2 { is_compressed: false, .. } => return Ok(page),
        Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
            (buf, *def_levels_byte_len as usize + *rep_levels_byte_len as usize)
        }
    };
    let (levels, packed) = buf
        .split_at_checked(plain)
        .ok_or_else(|| ParquetError::General("a page is shorter than its levels".into()))?;
    let mut out = levels.to_vec();
    Unpacked::new(packed)
        .take(LONGEST as u64 + 1)
        .read_to_end(&mut out)
        .map_err(|e| ParquetError::General(plain_io(&e)))?;
    if out.len() > LONGEST {
        return Err(ParquetError::General(format!("a page has more than {} MB", LONGEST >> 20)));
    }
    *buf = out.into();
    Ok(page)
}
