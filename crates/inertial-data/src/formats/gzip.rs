//! Decompression of gzip streams.

use std::io::{BufRead, Error, ErrorKind, Read, Result};

use flate2::bufread::GzDecoder;

/// Maximum number of consecutive members without content. Each takes 20 bytes of the file and as much time as 20 kB of text.
const MOST_EMPTY: usize = 10_000;

/// Decompressed content of all members of a gzip stream, one after the other.
pub(crate) struct Gzip<R> {
    /// Current member; `None` at the end.
    member: Option<GzDecoder<R>>,
    /// Number of members without content before the current one.
    empty: usize,
    /// Whether the current member has content.
    filled: bool,
}

impl<R: BufRead> Gzip<R> {
    pub fn new(stream: R) -> Self {
        Self { member: Some(GzDecoder::new(stream)), empty: 0, filled: false }
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        while let Some(member) = &mut self.member {
            let count = member.read(out)?;
            if count > 0 {
                self.filled = true;
                return Ok(count);
            }
            if member.get_mut().fill_buf()?.is_empty() {
                self.member = None;
                break;
            }
            self.empty = if self.filled { 0 } else { self.empty + 1 };
            self.filled = false;
            if self.empty > MOST_EMPTY {
                let message =
                    format!("more than {MOST_EMPTY} consecutive members of the gzip stream are empty");
                return Err(Error::new(ErrorKind::InvalidData, message));
            }
            self.member = self.member.take().map(|member| GzDecoder::new(member.into_inner()));
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write as _;

    use super::*;

    fn member(text: &str) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        out.write_all(text.as_bytes()).unwrap();
        out.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> Result<String> {
        let mut text = String::new();
        Gzip::new(bytes).read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn all_members_are_read() {
        let (a, b, none) = (member("t,q1\n"), member("0,1\n"), member(""));
        assert_eq!(read(&[&a[..], &b, &none, &b, &none].concat()).unwrap(), "t,q1\n0,1\n0,1\n");
        let cut = &[&a[..], &b].concat();
        assert_eq!(read(&cut[..cut.len() - 1]).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        // Bytes after the last member.
        assert!(read(&[&a[..], b"0,1\n"].concat()).is_err());
    }

    #[test]
    fn empty_members_are_bounded() {
        let (text, none) = (member("0,1\n"), member(""));
        let row = |count: usize| [&none.repeat(count)[..], &text].concat();
        assert_eq!(read(&row(MOST_EMPTY).repeat(2)).unwrap(), "0,1\n0,1\n");
        let message = read(&row(MOST_EMPTY + 1)).unwrap_err().to_string();
        assert!(message.contains("10000 consecutive members"), "{message}");
    }
}
