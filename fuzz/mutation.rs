//! Deterministic damage to inputs, for the tests of everything that reads a user's bytes.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// Source of random numbers (`SplitMix64`).
pub struct Random(pub u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }
}

/// What numbers, names and structure are replaced with.
const NASTY: [&str; 32] = [
    "0",
    "-1",
    "1e999",
    "NaN",
    "inf",
    "-0.0",
    "1e308",
    "1e-320",
    "1e15",
    "99999999999999999999",
    "18446744073709551615",
    "",
    " ",
    "\"",
    "'",
    "<",
    ">",
    "/>",
    "&",
    "&#10;",
    "&#x0;",
    "<!DOCTYPE a [<!ENTITY b 'c'>]>",
    "<!--",
    "]]>",
    "{",
    "]",
    "((((((((",
    "null",
    "\u{0}",
    "\u{feff}é\u{1f916}",
    "\r\n",
    "\u{1b}[2J",
];

/// Bytes of lengths, counts and offsets in binary formats.
const EXTREME: [u64; 8] = [0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];

/// Path of a folder of seeds.
pub fn folder_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name)
}

/// The files of a folder of seeds, in the order of their names.
pub fn seeds(folder: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder_of(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Number of damaged inputs that a test tries: `usual`, or as many as `INERTIAL_FUZZ_CASES` says.
pub fn cases(usual: usize) -> usize {
    std::env::var("INERTIAL_FUZZ_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// One of the seeds with one to three changes, mostly one.
pub fn damaged(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = random.pick(seeds).cloned().unwrap_or_default();
    let other = random.pick(seeds).cloned().unwrap_or_default();
    for _ in 0..=random.below(3).min(random.below(3)) {
        mutate(random, &mut bytes, &other);
    }
    bytes
}

/// Ranges of bytes that satisfy `inside`.
fn runs(bytes: &[u8], inside: impl Fn(u8) -> bool) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for (i, &b) in bytes.iter().enumerate() {
        match out.last_mut() {
            Some(last) if inside(b) && last.end == i => last.end = i + 1,
            _ if inside(b) => out.push(i..i + 1),
            _ => {}
        }
    }
    out
}

/// One change: of a byte, a word, a number, a line, a stretch, a length; or a piece of another input.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b"_.+-".contains(&b);
    let at = random.below(bytes.len() + 1);
    let end = (at + random.below(40)).min(bytes.len());
    match random.below(15) {
        0 if at < bytes.len() => bytes[at] = random.bits() as u8,
        1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        2 => drop(bytes.drain(at..end)),
        3 => {
            let copy = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, copy);
        }
        4 => {
            let nasty = random.pick(&NASTY).copied().unwrap_or_default();
            bytes.splice(at..at, nasty.bytes());
        }
        5..=7 => {
            // A number in the place of another, or something else.
            let numbers = runs(bytes, |b| b.is_ascii_digit() || b"+-.e".contains(&b));
            let numbers: Vec<_> = numbers.into_iter().filter(|r| bytes[r.start].is_ascii_digit()).collect();
            let new = match random.pick(&numbers) {
                Some(number) if random.below(10) < 7 => bytes[number.clone()].to_vec(),
                _ => random.pick(&NASTY).map(|nasty| nasty.as_bytes().to_vec()).unwrap_or_default(),
            };
            if let Some(range) = random.pick(&numbers) {
                bytes.splice(range.clone(), new);
            }
        }
        8 => {
            // A word in the place of another: names that exist twice or nowhere, wrong types, wrong tags.
            let words = runs(bytes, is_word);
            if let (Some(from), Some(to)) = (random.pick(&words), random.pick(&words)) {
                let word = bytes[from.clone()].to_vec();
                bytes.splice(to.clone(), word);
            }
        }
        9 | 10 => {
            let lines = runs(bytes, |b| b != b'\n');
            if let (Some(from), Some(to)) = (random.pick(&lines), random.pick(&lines)) {
                let line = bytes[from.clone()].to_vec();
                let range = if random.below(2) == 0 { to.start..to.start } else { to.clone() };
                bytes.splice(range, line);
            }
        }
        11 | 12 => {
            let extreme = random.pick(&EXTREME).copied().unwrap_or_default();
            let width = 1 << random.below(4);
            let mut new = extreme.to_le_bytes();
            if random.below(4) == 0 {
                new[..width].reverse();
            }
            let end = (at + width).min(bytes.len());
            bytes[at..end].copy_from_slice(&new[..end - at]);
        }
        13 if random.below(3) == 0 => bytes.truncate(at),
        _ => {
            let from = random.below(other.len());
            let piece = &other[from..(from + random.below(200)).min(other.len())];
            bytes.splice(at..end, piece.iter().copied());
        }
    }
}
