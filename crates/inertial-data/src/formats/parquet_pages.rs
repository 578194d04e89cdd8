//! Pages of a column of a Parquet file, checked for what their decoder takes for granted.

use ::parquet::basic::Encoding;
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::column::reader::{ColumnReader, get_column_reader};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::reader::RowGroupReader;

/// Opens a column of a row group.
pub fn column_reader(group: &dyn RowGroupReader, column: usize) -> Result<ColumnReader> {
    let description = group.metadata().schema_descr().column(column);
    let pages = CheckedPages { pages: group.get_column_page_reader(column)?, has_dictionary: false };
    Ok(get_column_reader(description, Box::new(pages)))
}

/// Pages of which none refers to a dictionary before there is one: the decoder panics then.
struct CheckedPages {
    pages: Box<dyn PageReader>,
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
        let page = self.pages.get_next_page()?;
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
