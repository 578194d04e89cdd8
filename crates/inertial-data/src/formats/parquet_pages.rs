//! Pages of a column of a Parquet file, decompressed if they are compressed with Zstandard.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::column::reader::{ColumnReader, get_column_reader};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::metadata::RowGroupMetaData;
use ::parquet::file::reader::{ChunkReader, Length};
use ::parquet::file::serialized_reader::SerializedPageReader;
use bytes::Bytes;

use crate::formats::zstd::Unpacked;
use crate::plain_io;

/// Maximum size of a decompressed page.
const LONGEST: usize = 1 << 28;
/// Number of reads at the end of the file from which they are an error.
const MOST_READS_AT_END: usize = 100;

/// File of pages. The crate skips damaged lists of billions of entries even beyond the end of the file, where reads return nothing.
pub struct PageFile(pub File);

impl Length for PageFile {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for PageFile {
    type T = EndedReader;

    fn get_read(&self, start: u64) -> Result<EndedReader> {
        Ok(EndedReader { inner: self.0.get_read(start)?, reads_at_end: 0 })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if start.saturating_add(length as u64) > self.len() {
            return Err(ParquetError::EOF("a page ends beyond the file".into()));
        }
        self.0.get_bytes(start, length)
    }
}

/// Reader that fails after many reads at the end of the file.
pub struct EndedReader {
    inner: BufReader<File>,
    reads_at_end: usize,
}

impl Read for EndedReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(out)?;
        if count == 0 && !out.is_empty() {
            self.reads_at_end += 1;
            if self.reads_at_end > MOST_READS_AT_END {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(count)
    }
}

/// Opens a column of a row group.
pub fn column_reader(file: &Arc<PageFile>, group: &RowGroupMetaData, column: usize) -> Result<ColumnReader> {
    let description = group.schema_descr().column(column);
    let rows = usize::try_from(group.num_rows())?;
    let stored = group.column(column);
    let is_packed = matches!(stored.compression(), Compression::ZSTD(_));
    let pages = if is_packed {
        // The crate would decompress with a C library, so the column is declared as uncompressed.
        let plain = stored.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
        SerializedPageReader::new(Arc::clone(file), &plain, rows, None)?
    } else {
        SerializedPageReader::new(Arc::clone(file), stored, rows, None)?
    };
    Ok(get_column_reader(description, Box::new(CheckedPages { pages, is_packed })))
}

/// Pages whose dictionaries are not longer than their data, because the decoder allocates the stated number of values.
struct CheckedPages {
    pages: SerializedPageReader<PageFile>,
    /// Whether pages are compressed with Zstandard.
    is_packed: bool,
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
            Some(Page::DictionaryPage { buf, num_values, .. }) if *num_values as usize > buf.len() => {
                Err(ParquetError::General("a dictionary is shorter than stated".into()))
            }
            _ => Ok(page),
        }
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
