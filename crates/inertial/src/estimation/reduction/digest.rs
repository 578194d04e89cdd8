//! Digest of numbers and texts.

/// 64-bit FNV-1a digest. Each step is a bijection: two inputs that differ in one byte never have the same digest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Adds a word.
    pub fn bits(&mut self, word: u64) {
        self.bytes(&word.to_le_bytes());
    }

    /// Adds a count.
    pub fn whole(&mut self, count: usize) {
        self.bits(count as u64);
    }

    /// Adds a number; positive and negative zero are equal.
    pub fn number(&mut self, x: f64) {
        self.bits((x + 0.0).to_bits());
    }

    /// Adds numbers and their count.
    pub fn numbers(&mut self, numbers: &[f64]) {
        self.whole(numbers.len());
        numbers.iter().for_each(|&x| self.number(x));
    }

    /// Adds a text and its length.
    pub fn text(&mut self, text: &str) {
        self.whole(text.len());
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Returns the digest.
    pub fn value(self) -> u64 {
        self.0
    }
}
