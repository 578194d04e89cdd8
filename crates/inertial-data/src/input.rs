//! Files of any format, recognised by their content.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use crate::csv::CsvReader;
use crate::reader::Reader;
use crate::{Error, Place, Result};

/// How to read a file.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// Topic of an MCAP file; the only one with joint states where absent.
    pub topic: Option<String>,
}

/// Opens a log: CSV, CSV.gz. The format is recognised by the content; `-` is standard input.
pub fn open(path: &Path, source: &Source) -> Result<Box<dyn Reader>> {
    let _ = source;
    let name = path.display().to_string();
    if name == "-" {
        return from_stream(std::io::stdin(), "standard input".to_owned());
    }
    let file =
        File::open(path).map_err(|e| Error::read(Place::file(&name), format!("cannot be opened: {e}")))?;
    from_stream(file, name)
}

fn from_stream(mut stream: impl Read + Send + 'static, name: String) -> Result<Box<dyn Reader>> {
    let mut start = Vec::new();
    stream
        .by_ref()
        .take(8)
        .read_to_end(&mut start)
        .map_err(|e| Error::read(Place::file(&name), format!("cannot be read: {e}")))?;
    let stream = Cursor::new(start).chain(stream);
    Ok(Box::new(CsvReader::ahead(stream, name)?))
}
