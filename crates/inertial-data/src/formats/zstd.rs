//! Decompression of Zstandard in pure Rust.

use std::fs::File;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// First bytes of a frame.
pub(crate) const MAGIC: [u8; 4] = *b"\x28\xb5\x2f\xfd";
/// Header of a frame without content.
const EMPTY: &[u8] = b"\x28\xb5\x2f\xfd\x20\x00";
/// Message about an end of the data within a frame.
const TRUNCATED: &str = "the zstd data are truncated";
/// Number of bytes decompressed at once.
const BLOCK: usize = 1 << 17;

/// Decompressed content of the frames of a stream, one after the other.
pub(crate) struct Unpacked<R> {
    source: R,
    decoder: FrameDecoder,
    /// Whether a frame was started and not finished.
    is_open: bool,
}

impl Unpacked<BufReader<File>> {
    pub fn file(file: File) -> Self {
        Self::new(BufReader::with_capacity(BLOCK, file))
    }
}

impl<R: BufRead> Unpacked<R> {
    pub fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        // The decoder rejects windows above 100 MB in all frames except its first, so the first frame is a constant.
        let first = decoder.init(EMPTY);
        debug_assert!(first.is_ok(), "{first:?}");
        Self { source, decoder, is_open: false }
    }

    /// Starts the next frame; returns false at the end of the stream.
    fn next_frame(&mut self) -> Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.is_open = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped =
                        std::io::copy(&mut self.source.by_ref().take(length), &mut std::io::sink())?;
                    if skipped < length {
                        return Err(Error::new(ErrorKind::UnexpectedEof, TRUNCATED));
                    }
                }
                Err(e) => return Err(damaged(&e)),
            }
        }
        Ok(false)
    }

    fn end_frame(&mut self) -> Result<()> {
        self.is_open = false;
        match self.decoder.get_checksum_from_data() {
            Some(expected) if self.decoder.get_calculated_checksum() != Some(expected) => {
                Err(Error::new(ErrorKind::InvalidData, "zstd: the checksum does not match"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if self.is_open {
                let count = self.decoder.read(out)?;
                if count > 0 {
                    return Ok(count);
                }
                if self.decoder.is_finished() {
                    self.end_frame()?;
                } else {
                    let strategy = BlockDecodingStrategy::UptoBytes(BLOCK);
                    self.decoder.decode_blocks(&mut self.source, strategy).map_err(|e| damaged(&e))?;
                }
            } else if !self.next_frame()? {
                return Ok(0);
            }
        }
    }
}

fn damaged(error: &FrameDecoderError) -> Error {
    // The messages of the decoder contain internal names, and not all of them state the cause.
    if format!("{error:?}").contains("UnexpectedEof") {
        return Error::new(ErrorKind::UnexpectedEof, TRUNCATED);
    }
    match error {
        FrameDecoderError::WindowSizeTooBig { .. } => {
            Error::new(ErrorKind::InvalidData, format!("zstd: {error}"))
        }
        _ => Error::new(ErrorKind::InvalidData, "the zstd data are damaged"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a frame with a given window size, of blocks that repeat one byte.
    fn bomb(window: u8, blocks: usize) -> Vec<u8> {
        let mut out = [&MAGIC[..], &[0x00, window]].concat();
        for k in 0..blocks {
            // Last block, type 1 (repeated byte), size 2^17.
            let header = u32::from(k + 1 == blocks) | 1 << 1 | (BLOCK as u32) << 3;
            out.extend_from_slice(&header.to_le_bytes()[..3]);
            out.push(b'x');
        }
        out
    }

    fn unpack(packed: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        Unpacked::new(packed).read_to_end(&mut out).map(|_| out)
    }

    #[test]
    fn frames_follow_each_other() {
        // Window of 1 MB: exponent 10 above 2^10.
        let frame = bomb(10 << 3, 20);
        let skipped = b"\x50\x2a\x4d\x18\x03\0\0\0abc";
        let out = unpack(&[&frame[..], skipped, &frame].concat()).unwrap();
        assert!(out.len() == 40 * BLOCK && out.iter().all(|&b| b == b'x'));
        assert_eq!(unpack(b"").unwrap(), b"");
        for cut in [3, 5, 7, frame.len() - 1] {
            let error = unpack(&frame[..cut]).unwrap_err().to_string();
            assert_eq!(error, "the zstd data are truncated", "{cut}");
        }
        let error = unpack(&[&frame[..], &skipped[..9]].concat()).unwrap_err().to_string();
        assert_eq!(error, "the zstd data are truncated");
        // Block type 3 is reserved.
        let mut wrong = frame.clone();
        wrong[6] |= 6;
        assert_eq!(unpack(&wrong).unwrap_err().to_string(), "the zstd data are damaged");
    }

    #[test]
    fn windows_that_would_take_all_memory_are_refused() {
        // Window of 2^41 bytes, in the first frame and in a later one.
        let huge = bomb(31 << 3, 3);
        for packed in [huge.clone(), [bomb(10 << 3, 1), huge].concat()] {
            let error = unpack(&packed).unwrap_err().to_string();
            assert!(error.contains("window") && error.lines().count() == 1, "{error}");
        }
    }
}
