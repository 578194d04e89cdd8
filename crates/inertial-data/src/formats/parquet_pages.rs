//! Pages of a column of a Parquet file: decompressed if they are compressed with Zstandard, and checked for the assumptions of their
//! decoder.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use ::parquet::basic::{Compression, Encoding};
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
    // The crate panics if one of these is negative.
    let start = stored.dictionary_page_offset().unwrap_or_else(|| stored.data_page_offset());
    if start < 0 || stored.compressed_size() < 0 || stored.num_values() < 0 {
        return Err(ParquetError::General("the place of a column is negative".into()));
    }
    let is_packed = matches!(stored.compression(), Compression::ZSTD(_));
    let pages = if is_packed {
        // The crate would decompress with a C library, so the column is declared as uncompressed.
        let plain = stored.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
        SerializedPageReader::new(Arc::clone(file), &plain, rows, None)?
    } else {
        SerializedPageReader::new(Arc::clone(file), stored, rows, None)?
    };
    let pages = CheckedPages { pages, is_packed, has_dictionary: false };
    Ok(get_column_reader(description, Box::new(pages)))
}

/// Pages, none of which refers to a dictionary before there is one, because the decoder would panic.
struct CheckedPages {
    pages: SerializedPageReader<File>,
    /// Whether pages are compressed with Zstandard.
    is_packed: bool,
    has_dictionary: bool,
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let mut page = self.pages.get_next_page()?;
        if self.is_packed {
            page = page.map(unpacked).transpose()?;
        }
        match &page {
            Some(Page::DictionaryPage { .. }) => self.has_dictionary = true,
            Some(data)
                if !self.has_dictionary
                    && matches!(data.encoding(), Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY) =>
            {
                return Err(ParquetError::General("a page refers to a dictionary that is missing".into()));
            }
            _ => {}
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
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
