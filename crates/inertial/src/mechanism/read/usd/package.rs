//! Packages (`.usdz`): zip archives without compression.

use std::collections::HashMap;

/// First bytes of a package.
pub(super) const MAGIC: &[u8] = b"PK\x03\x04";
/// Maximum number of files of a package.
const MAX_FILES: usize = 10_000;

/// Files of a package by name.
#[derive(Debug)]
pub(super) struct Package {
    bytes: Vec<u8>,
    files: HashMap<String, (usize, usize)>,
    /// First file, which is the main file of the package.
    pub first: String,
}

impl Package {
    /// Reads the list of files.
    pub fn new(bytes: Vec<u8>) -> Result<Self, String> {
        let word = |at: usize, n: usize| -> Result<usize, String> {
            let part = at.checked_add(n).and_then(|end| bytes.get(at..end));
            let part = part.ok_or("the package is cut off")?;
            Ok(part.iter().rev().fold(0, |sum, b| sum << 8 | usize::from(*b)))
        };
        // The directory is at the end, possibly before a comment.
        let tail = bytes.len().saturating_sub(22 + 0xffff);
        let end = bytes[tail..].windows(4).rposition(|w| w == b"PK\x05\x06");
        let end = tail + end.ok_or("the package is cut off: it has no list of files")?;
        let count = word(end + 10, 2)?;
        if count > MAX_FILES {
            return Err(format!("the package has more than {MAX_FILES} files"));
        }
        let mut at = word(end + 16, 4)?;
        let mut files = HashMap::new();
        let mut first = String::new();
        for _ in 0..count {
            if word(at, 4)? != 0x0201_4b50 {
                return Err("the list of files of the package is damaged".to_owned());
            }
            let (method, size) = (word(at + 10, 2)?, word(at + 20, 4)?);
            let (name, more) = (word(at + 28, 2)?, word(at + 30, 2)? + word(at + 32, 2)?);
            let header = word(at + 42, 4)?;
            let start = header + 30 + word(header + 26, 2)? + word(header + 28, 2)?;
            let text = bytes.get(at + 46..at + 46 + name).ok_or("the package is cut off")?;
            let text = String::from_utf8_lossy(text).into_owned();
            at += 46 + name + more;
            if bytes.len() < start.saturating_add(size) {
                return Err(format!("the file \"{text}\" of the package is cut off"));
            }
            if method != 0 {
                return Err(format!(
                    "the file \"{text}\" of the package is compressed, which USD does not allow"
                ));
            }
            if first.is_empty() {
                first.clone_from(&text);
            }
            files.insert(text, (start, size));
        }
        if first.is_empty() {
            return Err("the package is empty".to_owned());
        }
        Ok(Self { bytes, files, first })
    }

    /// Returns the content of a file.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        let (start, size) = self.files.get(name)?;
        Some(&self.bytes[*start..start + size])
    }
}
