//! Compressed parts of crate files: LZ4 in chunks, and integers as encoded differences.

/// Maximum size of one uncompressed part in bytes.
const MAX_BYTES: usize = 256 << 20;
/// Maximum number of integers of one list.
pub(super) const MAX_INTEGERS: usize = 16 << 20;

type Result<T> = std::result::Result<T, String>;

/// Decompresses a part of at most `most` bytes.
pub(super) fn unpack(packed: &[u8], most: usize) -> Result<Vec<u8>> {
    // LZ4 expands one byte to at most 255 bytes.
    if most > MAX_BYTES || most / 255 > packed.len() + 16 {
        return Err(format!("a compressed part claims {most} bytes"));
    }
    let mut out = vec![0; most];
    let mut length = 0;
    let (&chunks, mut rest) = packed.split_first().ok_or("a compressed part is empty")?;
    let mut add = |block: &[u8]| -> Result<()> {
        let part = lz4_flex::block::decompress_into(block, &mut out[length..]);
        length += part.map_err(|_| "a compressed part cannot be decompressed")?;
        Ok(())
    };
    if chunks == 0 {
        add(rest)?;
    }
    for _ in 0..chunks {
        let (size, after) = rest.split_at_checked(4).ok_or("a compressed part is cut off")?;
        let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]) as usize;
        let (block, after) = after.split_at_checked(size).ok_or("a compressed part is cut off")?;
        add(block)?;
        rest = after;
    }
    out.truncate(length);
    Ok(out)
}

/// Decompresses `count` integers of 4 bytes (of 8 if `wide`).
pub(super) fn integers(packed: &[u8], count: usize, wide: bool) -> Result<Vec<i64>> {
    if count > MAX_INTEGERS {
        return Err(format!("a list of {count} integers"));
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    let size = if wide { 8 } else { 4 };
    let codes = (2 * count).div_ceil(8);
    // The compressed size bounds the output, which may be smaller than the maximum of the encoding.
    let most = (size + codes + size * count).min(packed.len().saturating_mul(255));
    let bytes = unpack(packed, most)?;
    let mut rest = &bytes[..];
    let mut take = |n: usize| -> Result<&[u8]> {
        let (part, after) = rest.split_at_checked(n).ok_or("a list of integers is cut off")?;
        rest = after;
        Ok(part)
    };
    let common = signed(take(size)?);
    let codes = take(codes)?;
    let mut out = Vec::with_capacity(count);
    let mut last = 0i64;
    for i in 0..count {
        let difference = match (codes[i / 4] >> (2 * (i % 4))) & 3 {
            0 => common,
            // A quarter, half or all of the size (at least one byte).
            1 => signed(take(size / 4)?),
            2 => signed(take(size / 2)?),
            _ => signed(take(size)?),
        };
        last = last.wrapping_add(difference);
        if !wide {
            last = i64::from(last as i32);
        }
        out.push(last);
    }
    Ok(out)
}

/// Returns a signed little-endian number of up to eight bytes.
fn signed(bytes: &[u8]) -> i64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let shift = 64 - 8 * bytes.len() as u32;
    (i64::from_le_bytes(word) << shift) >> shift
}
