//! Thousands of damaged texts through every reader: each becomes a mechanism or one line that says why not.
//!
//! The run is the same every time. `scripts/fuzz.sh` looks further, where cargo-fuzz is installed.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::Rng;
use inertial::dynamics::{Workspace, mass_matrix};
use inertial::mechanism::read::{self, Format};
use inertial::mechanism::write::urdf::write_bodies;
use inertial::mechanism::{BodyKind, BuildOptions};

const CASES: usize = 2500;

/// What numbers, names and structure are replaced with.
const NASTY: [&str; 28] = [
    "0",
    "-1",
    "1e999",
    "NaN",
    "inf",
    "-0.0",
    "1e308",
    "1e-320",
    "99999999999999999999",
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
    "null",
    "\u{0}",
    "\u{feff}é\u{1f916}",
    "\r\n",
];

fn seeds(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// Byte ranges of runs of characters that satisfy `inside`.
fn runs(text: &[u8], inside: impl Fn(u8) -> bool) -> Vec<std::ops::Range<usize>> {
    let mut out: Vec<std::ops::Range<usize>> = Vec::new();
    for (i, &b) in text.iter().enumerate() {
        match out.last_mut() {
            Some(last) if inside(b) && last.end == i => last.end = i + 1,
            _ if inside(b) => out.push(i..i + 1),
            _ => {}
        }
    }
    out
}

fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> Option<&'a T> {
    if from.is_empty() { None } else { Some(&from[rng.below(from.len())]) }
}

/// One change: of a byte, a word, a number, a line, a stretch; or a piece of another text.
fn mutate(rng: &mut Rng, text: &mut Vec<u8>, other: &[u8]) {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b"_.+-".contains(&b);
    let at = rng.below(text.len() + 1);
    let end = (at + rng.below(40)).min(text.len());
    match rng.below(12) {
        0 if at < text.len() => text[at] = rng.bits() as u8,
        1 if at < text.len() => text[at] ^= 1 << rng.below(8),
        2 => drop(text.drain(at..end)),
        3 => {
            let copy = text[at..end].to_vec();
            let to = rng.below(text.len() + 1);
            text.splice(to..to, copy);
        }
        4 => {
            let nasty = pick(rng, &NASTY).copied().unwrap_or_default();
            text.splice(at..at, nasty.bytes());
        }
        5..=7 => {
            // A number in the place of another, or something else.
            let numbers = runs(text, |b| b.is_ascii_digit() || b"+-.e".contains(&b));
            let numbers: Vec<_> = numbers.into_iter().filter(|r| text[r.start].is_ascii_digit()).collect();
            let new = match pick(rng, &numbers) {
                Some(number) if rng.chance(0.7) => text[number.clone()].to_vec(),
                _ => pick(rng, &NASTY).map(|nasty| nasty.as_bytes().to_vec()).unwrap_or_default(),
            };
            if let Some(range) = pick(rng, &numbers) {
                text.splice(range.clone(), new);
            }
        }
        8 => {
            // A word in the place of another: names that exist twice or nowhere, wrong types, wrong tags.
            let words = runs(text, is_word);
            if let (Some(from), Some(to)) = (pick(rng, &words), pick(rng, &words)) {
                let word = text[from.clone()].to_vec();
                text.splice(to.clone(), word);
            }
        }
        9 | 10 => {
            let lines = runs(text, |b| b != b'\n');
            if let (Some(from), Some(to)) = (pick(rng, &lines), pick(rng, &lines)) {
                let line = text[from.clone()].to_vec();
                let range = if rng.chance(0.5) { to.start..to.start } else { to.clone() };
                text.splice(range, line);
            }
        }
        _ => {
            let from = rng.below(other.len());
            let piece = &other[from..(from + rng.below(200)).min(other.len())];
            text.splice(at..end, piece.iter().copied());
        }
    }
}

/// Reads, builds and uses a text. Returns whether it was a mechanism.
fn survive(text: &str) -> bool {
    let model = read::model(text, &read::no_includes);
    let outcome = model.and_then(|model| model.build(&BuildOptions::default()));
    let robot = match outcome {
        Ok(robot) => robot,
        Err(error) => {
            let message = error.to_string();
            assert!(!message.is_empty() && !message.contains(['\n', '\r']), "{message:?}\n{text}");
            return false;
        }
    };
    let mut mass = vec![0.0; robot.nv() * robot.nv()];
    mass_matrix(&robot, &mut Workspace::new(&robot), &robot.neutral(), &mut mass).unwrap();
    if read::detect(text) == Format::Urdf {
        let links = robot.bodies().iter().filter(|b| b.kind == BodyKind::Link);
        let same: Vec<_> = links.map(|b| (b.name.as_str(), b.inertia)).collect();
        if let Ok(written) = write_bodies(text, &BuildOptions::default(), &same, &[]) {
            read::model(&written.text, &read::no_includes).unwrap();
        }
    }
    true
}

fn run(folder: &str, expected: Format) {
    let seeds = seeds(folder);
    for seed in &seeds {
        assert_eq!(read::detect(seed), expected);
        assert!(survive(seed), "{:?}", read::model(seed, &read::no_includes).err());
    }
    let mut rng = Rng(1);
    let mut built = 0;
    for case in 0..CASES {
        let mut text = seeds[case % seeds.len()].clone().into_bytes();
        let other = &seeds[rng.below(seeds.len())];
        for _ in 0..=rng.below(3) {
            mutate(&mut rng, &mut text, other.as_bytes());
        }
        built += usize::from(survive(&String::from_utf8_lossy(&text)));
    }
    println!("{folder}: {built} of {CASES} damaged texts are still mechanisms");
    // Damage that always breaks the syntax would not reach the code behind it.
    assert!(built > CASES / 50, "{built}");
}

#[test]
fn urdf() {
    run("urdf", Format::Urdf);
}

#[test]
fn mjcf() {
    run("mjcf", Format::Mjcf);
}

#[test]
fn sdf() {
    run("sdf", Format::Sdf);
}

#[test]
fn mechanism_files() {
    run("mechanism", Format::File);
}
