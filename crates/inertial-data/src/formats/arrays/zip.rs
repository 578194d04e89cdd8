//! ZIP archives as written by NumPy: stored or deflated entries of any size.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use super::array::Stored;
use super::{length, read_at};
use crate::temporary::temporary;

/// Maximum size of the directory; a larger one is damaged.
const LONGEST_DIRECTORY: u64 = 64 << 20;

/// Number of bytes that are checked at once.
const BLOCK: usize = 1 << 16;

/// File in an archive.
pub(crate) struct Entry {
    pub name: String,
    method: u16,
    packed: u64,
    size: u64,
    header: u64,
    /// CRC-32 of the uncompressed content.
    checksum: u32,
}

/// Lists the entries of an archive.
pub(crate) fn entries(file: &File) -> Stored<Vec<Entry>> {
    let (start, size, count) = directory(file)?;
    if size > LONGEST_DIRECTORY {
        return Err("its directory is too long".to_owned());
    }
    let mut bytes = vec![0; size as usize];
    read_at(file, start, &mut bytes)?;
    let mut rest = &bytes[..];
    let mut out = Vec::new();
    for _ in 0..count {
        let [b'P', b'K', 1, 2, ..] = rest else { return Err("its directory ends early".to_owned()) };
        let (head, after) = rest.split_at_checked(46).ok_or("its directory ends early")?;
        let [name, extra, comment] = [28, 30, 32].map(|at| usize::from(half(head, at)));
        let end = name + extra + comment;
        let own = after.get(..end).ok_or("its directory ends early")?;
        let mut entry = Entry {
            name: String::from_utf8_lossy(&own[..name]).into_owned(),
            method: half(head, 10),
            packed: u64::from(word(head, 20)),
            size: u64::from(word(head, 24)),
            header: u64::from(word(head, 42)),
            checksum: word(head, 16),
        };
        entry.widen(&own[name..name + extra]);
        out.push(entry);
        rest = &after[end..];
    }
    Ok(out)
}

/// Returns the offset, size and number of entries of the directory.
fn directory(file: &File) -> Stored<(u64, u64, u64)> {
    let all = length(file)?;
    let tail = all.min(22 + 65_535);
    let mut bytes = vec![0; tail as usize];
    read_at(file, all - tail, &mut bytes)?;
    let at = bytes.windows(4).rposition(|w| w == b"PK\x05\x06").ok_or("it has no directory")?;
    let end = bytes.get(at..at + 22).ok_or("it has no directory")?;
    let (count, size, start) = (half(end, 10), word(end, 12), word(end, 16));
    if start != u32::MAX && size != u32::MAX && count != u16::MAX {
        return Ok((u64::from(start), u64::from(size), u64::from(count)));
    }
    // Archives larger than 4 GB have another end record before this one.
    let locator = at.checked_sub(20).and_then(|k| bytes.get(k..at)).filter(|l| l.starts_with(b"PK\x06\x07"));
    let mut large = [0; 56];
    read_at(file, long(locator.ok_or("its directory is damaged")?, 8), &mut large)?;
    if !large.starts_with(b"PK\x06\x06") {
        return Err("its directory is damaged".to_owned());
    }
    Ok((long(&large, 48), long(&large, 40), long(&large, 32)))
}

impl Entry {
    /// Updates sizes of more than 4 GB from an extra field.
    fn widen(&mut self, mut extra: &[u8]) {
        while extra.len() >= 4 {
            let (kind, size) = (half(extra, 0), usize::from(half(extra, 2)));
            let Some(body) = extra.get(4..4 + size) else { return };
            if kind == 1 {
                let mut numbers = body.chunks_exact(8).map(|b| long(b, 0));
                for field in [&mut self.size, &mut self.packed, &mut self.header] {
                    if *field == u64::from(u32::MAX) {
                        *field = numbers.next().unwrap_or(*field);
                    }
                }
            }
            extra = &extra[4 + size..];
        }
    }

    /// Returns the file that contains the uncompressed content, and its offset: the archive, or a temporary copy. The content has the
    /// checksum of the directory.
    pub fn content(&self, file: &Arc<File>) -> Stored<(Arc<File>, u64)> {
        let mut head = [0; 30];
        read_at(file, self.header, &mut head)?;
        if !head.starts_with(b"PK\x03\x04") {
            return Err(format!("{}: it does not start like an entry", self.name));
        }
        let start = self.header + 30 + u64::from(half(&head, 26)) + u64::from(half(&head, 28));
        if start.saturating_add(self.packed) > length(file)? {
            return Err(format!("{}: it ends early", self.name));
        }
        match self.method {
            0 => self.check(file, start).map(|()| (Arc::clone(file), start)),
            8 => self.inflated(file, start).map(|copy| (Arc::new(copy), 0)),
            other => Err(format!("{} is compressed by method {other}: expected deflate", self.name)),
        }
    }

    /// Checks content that is not compressed.
    fn check(&self, file: &File, start: u64) -> Stored<()> {
        let io = |e: std::io::Error| format!("{}: {}", self.name, crate::plain_io(&e));
        if self.packed != self.size {
            return Err(format!("{}: its directory is damaged", self.name));
        }
        let mut content = file;
        content.seek(SeekFrom::Start(start)).map_err(io)?;
        let mut content = Hashed { inner: content.take(self.size), checksum: crc32fast::Hasher::new() };
        let mut bytes = vec![0; BLOCK];
        while content.read(&mut bytes).map_err(io)? > 0 {}
        self.compare(content.checksum)
    }

    fn compare(&self, checksum: crc32fast::Hasher) -> Stored<()> {
        if checksum.finalize() == self.checksum {
            Ok(())
        } else {
            Err(format!("the checksum of {} differs", self.name))
        }
    }

    fn inflated(&self, file: &File, start: u64) -> Stored<File> {
        let io = |e: std::io::Error| format!("{}: {}", self.name, crate::plain_io(&e));
        let mut packed = file;
        packed.seek(SeekFrom::Start(start)).map_err(io)?;
        let packed = BufReader::new(packed.take(self.packed));
        let mut copy = temporary().map_err(|e| e.to_string())?;
        let content = flate2::bufread::DeflateDecoder::new(packed).take(self.size);
        let mut content = Hashed { inner: content, checksum: crc32fast::Hasher::new() };
        let written = std::io::copy(&mut content, &mut BufWriter::new(&mut copy)).map_err(io)?;
        if written != self.size {
            return Err(format!("{}: it ends early", self.name));
        }
        copy.flush().map_err(io)?;
        self.compare(content.checksum)?;
        Ok(copy)
    }
}

/// Stream that computes the checksum of what is read.
struct Hashed<R> {
    inner: R,
    checksum: crc32fast::Hasher,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(out)?;
        self.checksum.update(&out[..count]);
        Ok(count)
    }
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}
