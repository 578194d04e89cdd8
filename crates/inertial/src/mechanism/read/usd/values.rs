//! Values of crate files.

use std::sync::Arc;

use super::compression::{MAX_INTEGERS, integers};

pub(super) type Result<T> = std::result::Result<T, String>;

/// Maximum number of values of one array.
const MAX_ARRAY: usize = 64 << 20;

/// Bytes of a crate file.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub bytes: Arc<[u8]>,
    pub version: [u8; 3],
}

/// Position in a crate file.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Cursor<'b> {
    pub fn new(bytes: &'b [u8], at: u64) -> Self {
        Self { bytes, at: usize::try_from(at).unwrap_or(usize::MAX) }
    }

    pub fn take(&mut self, n: usize) -> Result<&'b [u8]> {
        let end = self.at.checked_add(n).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or("it is cut off, or an offset in it lies beyond its end")?;
        let part = &self.bytes[self.at..end];
        self.at = end;
        Ok(part)
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().map_err(|_| "it is cut off")?))
    }

    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().map_err(|_| "it is cut off")?))
    }

    /// Reads a number of entries, at most `most`.
    pub fn count(&mut self, most: usize) -> Result<usize> {
        let count = self.u64()?;
        let small = usize::try_from(count).ok().filter(|n| *n <= most);
        small.ok_or_else(|| format!("a list claims {count} entries, more than {most}"))
    }

    /// Reads a part that is preceded by its length.
    pub fn sized(&mut self) -> Result<&'b [u8]> {
        let size = self.u64()?;
        self.take(usize::try_from(size).map_err(|_| "it is cut off")?)
    }

    /// Reads a relative offset, moves to that position and reads the word there.
    pub fn at_distance(&mut self) -> Result<u64> {
        let start = self.at as u64;
        let distance = self.u64()?;
        *self = Self::new(self.bytes, start.wrapping_add(distance));
        self.u64()
    }
}

/// Representation of a value in the file.
#[derive(Clone, Copy)]
pub(super) struct Rep(pub u64);

impl Rep {
    pub fn is_array(self) -> bool {
        self.0 >> 63 != 0
    }

    pub fn is_inline(self) -> bool {
        self.0 >> 62 & 1 != 0
    }

    fn is_compressed(self) -> bool {
        self.0 >> 61 & 1 != 0
    }

    /// Returns the number of the type.
    pub fn kind(self) -> u8 {
        (self.0 >> 48) as u8
    }

    /// Returns the value itself, or its offset in the file.
    pub fn payload(self) -> u64 {
        self.0 & 0xffff_ffff_ffff
    }
}

/// Scalar type.
#[derive(Clone, Copy, PartialEq)]
enum Scalar {
    U8,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

impl Scalar {
    fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    fn read(self, bytes: &[u8]) -> f64 {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(word);
        match self {
            Self::U8 | Self::U32 | Self::U64 => bits as f64,
            Self::I32 => f64::from(bits as i32),
            Self::I64 => bits.cast_signed() as f64,
            Self::F16 => half(bits as u16),
            Self::F32 => f64::from(f32::from_bits(bits as u32)),
            Self::F64 => f64::from_bits(bits),
        }
    }
}

/// Converts a half-precision number.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023) / 1024.0);
    let size = match exponent {
        0 => fraction * 2f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        e => (1.0 + fraction) * 2f64.powi(e - 15),
    };
    if bits >> 15 == 0 { size } else { -size }
}

/// Scalar type and number of values of a type, and whether they are a quaternion or a matrix with `rows` rows.
struct Numbers {
    scalar: Scalar,
    count: usize,
    quaternion: bool,
    rows: usize,
}

fn numbers_of(kind: u8) -> Option<Numbers> {
    use Scalar::{F16, F32, F64, I32, I64, U8, U32, U64};
    let plain = |scalar, count| Some(Numbers { scalar, count, quaternion: false, rows: 0 });
    match kind {
        1 | 2 => plain(U8, 1),
        3 => plain(I32, 1),
        4 => plain(U32, 1),
        5 => plain(I64, 1),
        6 => plain(U64, 1),
        7 => plain(F16, 1),
        8 => plain(F32, 1),
        9 | 56 => plain(F64, 1),
        13..=15 => {
            let rows = usize::from(kind) - 11;
            Some(Numbers { scalar: F64, count: rows * rows, quaternion: false, rows })
        }
        16..=18 => {
            let scalar = [F64, F32, F16][usize::from(kind) - 16];
            Some(Numbers { scalar, count: 4, quaternion: true, rows: 0 })
        }
        19..=30 => {
            let scalar = [F64, F32, F16, I32][usize::from(kind - 19) % 4];
            plain(scalar, 2 + usize::from(kind - 19) / 4)
        }
        _ => None,
    }
}

/// Returns whether the values of a type are numbers.
pub(super) fn is_numeric(rep: Rep) -> bool {
    numbers_of(rep.kind()).is_some()
}

impl Stored {
    pub fn cursor(&self, at: u64) -> Cursor<'_> {
        Cursor::new(&self.bytes, at)
    }

    /// Reads the number of entries at the start of an array.
    pub fn array_count(&self, cursor: &mut Cursor<'_>, most: usize) -> Result<usize> {
        if self.version < [0, 5, 0] {
            cursor.u32()?;
        }
        if self.version >= [0, 7, 0] {
            return cursor.count(most);
        }
        let count = cursor.u32()? as usize;
        if count > most { Err(format!("a list claims {count} entries, more than {most}")) } else { Ok(count) }
    }

    /// Returns the numbers of a value.
    pub fn numbers(&self, rep: u64) -> Result<Vec<f64>> {
        let rep = Rep(rep);
        let Some(Numbers { scalar, count, quaternion, rows }) = numbers_of(rep.kind()) else {
            return Ok(Vec::new());
        };
        if rep.is_array() {
            return self.array(rep, scalar, count, quaternion);
        }
        let payload = rep.payload();
        if !rep.is_inline() {
            let mut cursor = self.cursor(payload);
            return Ok(block(cursor.take(scalar.size() * count)?, scalar, quaternion));
        }
        // Small integers are stored inline instead of an offset.
        let small = |i: usize| f64::from(((payload >> (8 * i)) as u8).cast_signed());
        Ok(match (count, rows) {
            (1, _) => {
                let as_stored = match scalar {
                    Scalar::F64 => Scalar::F32,
                    Scalar::I64 => Scalar::I32,
                    Scalar::U64 => Scalar::U32,
                    other => other,
                };
                vec![as_stored.read(&payload.to_le_bytes()[..as_stored.size()])]
            }
            (n, 0) => (0..n.min(6)).map(small).collect(),
            (n, rows) => {
                (0..n).map(|i| if i % (rows + 1) == 0 { small(i / (rows + 1)) } else { 0.0 }).collect()
            }
        })
    }

    fn array(&self, rep: Rep, scalar: Scalar, width: usize, quaternion: bool) -> Result<Vec<f64>> {
        if rep.payload() == 0 || rep.is_inline() {
            return Ok(Vec::new());
        }
        let mut cursor = self.cursor(rep.payload());
        let count = self.array_count(&mut cursor, MAX_ARRAY / width)?;
        // Short arrays are never compressed.
        if !rep.is_compressed() || count < 16 {
            return Ok(block(cursor.take(scalar.size() * width * count)?, scalar, quaternion));
        }
        let list = |packed: &[u8], wide| integers(packed, count, wide);
        match scalar {
            Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64 if width == 1 => {
                let wide = scalar.size() == 8;
                Ok(list(cursor.sized()?, wide)?.into_iter().map(|x| x as f64).collect())
            }
            Scalar::F16 | Scalar::F32 | Scalar::F64 if width == 1 => match cursor.u8()? {
                b'i' => Ok(list(cursor.sized()?, false)?.into_iter().map(|x| x as f64).collect()),
                b't' => {
                    let entries = cursor.u32()? as usize;
                    if entries > MAX_INTEGERS {
                        return Err(format!("a table of {entries} numbers"));
                    }
                    let table = block(cursor.take(scalar.size() * entries)?, scalar, false);
                    let entry = |i: i64| usize::try_from(i).ok().and_then(|i| table.get(i)).copied();
                    let places = list(cursor.sized()?, false)?.into_iter();
                    places.map(|i| entry(i).ok_or_else(|| "an array is damaged".to_owned())).collect()
                }
                _ => Err("an array is packed in an unknown way".to_owned()),
            },
            _ => Err("an array is packed in an unknown way".to_owned()),
        }
    }
}

/// Returns the numbers as stored in the file; quaternions are stored with the real part last.
fn block(bytes: &[u8], scalar: Scalar, quaternion: bool) -> Vec<f64> {
    let mut out: Vec<f64> = bytes.chunks_exact(scalar.size()).map(|b| scalar.read(b)).collect();
    if quaternion {
        out.chunks_exact_mut(4).for_each(|q| q.rotate_right(1));
    }
    out
}
