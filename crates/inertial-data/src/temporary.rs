//! Temporary files, for logs that do not fit into memory and for formats that need random access.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::PathBuf;

use crate::{Error, Place, Result, plain_io};

/// Creates an unnamed file. `/var/tmp` is meant for large files; `/tmp` is often in memory.
pub(crate) fn temporary() -> Result<File> {
    let large = PathBuf::from("/var/tmp");
    let folder = match std::env::var_os("TMPDIR") {
        None if large.is_dir() => large,
        _ => std::env::temp_dir(),
    };
    tempfile::tempfile_in(&folder).map_err(|e| {
        Error::Option(format!(
            "cannot create a temporary file in {}: {}; set TMPDIR to use another folder",
            folder.display(),
            plain_io(&e)
        ))
    })
}

/// Maximum size of a file that is copied or decompressed for random access.
const LARGEST_COPY: u64 = 64 << 30;

/// Copies a stream to a temporary file, for formats that need random access.
pub(crate) fn temporary_copy(stream: impl Read, name: &str) -> Result<File> {
    let mut copy = temporary()?;
    let count = std::io::copy(&mut stream.take(LARGEST_COPY + 1), &mut copy)
        .map_err(|e| Error::read(Place::file(name), format!("cannot be read: {}", plain_io(&e))))?;
    if count > LARGEST_COPY {
        let message = format!("has more than {} GB after decompression", LARGEST_COPY >> 30);
        return Err(Error::read(Place::file(name), message));
    }
    copy.rewind().map_err(|e| no_space(&e))?;
    Ok(copy)
}

/// Creates the error for a temporary file that cannot be written or read.
pub(crate) fn no_space(error: &std::io::Error) -> Error {
    let why = plain_io(error);
    Error::Option(format!(
        "cannot use a temporary file for a long log: {why}; set TMPDIR to use another folder"
    ))
}
