//! Tests of reading: written values are read back, in blocks, plain or compressed.

#![allow(clippy::unwrap_used)]

use std::io::Write;

use crate::common::{clean, csv, parse};
use flate2::{Compression, write::GzEncoder};
use inertial_data::{CsvReader, Log};

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn csv_is_read_back_bit_by_bit() {
    let (names, columns) = clean(3000, 100.0);
    let text = csv(&names, &columns);
    let expected = Log::new("log.csv", names, columns).unwrap();
    assert_eq!(parse(&text).unwrap(), expected);
    let packed = gzip(&text);
    let read = Log::collect(CsvReader::new(&packed[..], "log.csv").unwrap()).unwrap();
    assert_eq!(read, expected);
    // Concatenated files are one file, also for gzip.
    let (head, tail) = text.split_at(text.find("\n0.1,").unwrap() + 1);
    let parts = [gzip(head), gzip(tail)].concat();
    assert_eq!(Log::collect(CsvReader::new(&parts[..], "log.csv").unwrap()).unwrap(), expected);
}

#[test]
fn files_are_recognized_by_their_content() {
    let folder = tempfile::tempdir().unwrap();
    let (names, columns) = clean(50, 100.0);
    let text = csv(&names, &columns);
    let path = folder.path().join("compressed-without-suffix");
    std::fs::write(&path, gzip(&text)).unwrap();
    let log = Log::read(&path).unwrap();
    assert_eq!(log.len(), 50);
    assert!(log.file().ends_with("compressed-without-suffix"));
}

#[test]
fn blocks_are_parts_of_the_whole() {
    let (names, columns) = clean(100, 100.0);
    let text = csv(&names, &columns);
    let whole = parse(&text).unwrap();
    for size in [1, 7, 99, 100, 101] {
        let mut reader = CsvReader::new(text.as_bytes(), "log.csv").unwrap();
        let mut from = 0;
        while let Some(block) = reader.next_block(size).unwrap() {
            assert_eq!(block, whole.slice(from..from + block.len()));
            from += block.len();
        }
        assert_eq!(from, 100);
    }
}

#[test]
fn tables_of_spreadsheets_are_read() {
    let log = parse("\u{feff}t , q1,tau1\r\n0, 1e-3,\r\n\r\n0.1,\"2\",-0\r\n").unwrap();
    assert_eq!(log.names(), ["t", "q1", "tau1"]);
    assert_eq!(log.column("q1"), Some(&[1e-3, 2.0][..]));
    assert!(log.column("tau1").unwrap()[0].is_nan());
    assert_eq!(log.rows(), [2, 4]);
    assert_eq!(log.column("q2"), None);
}

#[test]
fn unreadable_cells_are_reported_with_their_location() {
    let failure = |text: &str| parse(text).unwrap_err().to_string();
    assert_eq!(failure("t,q1\n0,1\n0.1,abc\n"), "log.csv: row 3: column q1: `abc` is not a finite number");
    assert_eq!(failure("t,q1\n0,inf\n"), "log.csv: row 2: column q1: `inf` is not a finite number");
    assert_eq!(failure("t,q1\n0,1\n0.1\n"), "log.csv: row 3: 1 cells, but the header has 2");
    assert_eq!(failure("t,q1,q1\n0,1,2\n"), "log.csv: column q1: the header names it twice");
    assert_eq!(failure(""), "log.csv: is empty; expected a header such as t,q1,tau1");
    assert_eq!(failure("t,q1\n"), "log.csv: has a header but no rows");
    for (text, expected) in [
        ("t,q1\r0,1\r1,2\r", "row 1: lines end with carriage returns alone; expected line feeds"),
        ("\0\u{1}\u{2}", "row 1: is neither text nor a known format"),
        ("# by me\n", "is empty; expected a header such as t,q1,tau1"),
        ("t;q1\n0;1;2\n", "row 2: 3 cells, but the header has 2"),
        ("t;q1\n0;1,5x\n", "row 2: column q1: `1,5x` is not a finite number"),
    ] {
        assert_eq!(failure(text), format!("log.csv: {expected}"));
    }
    let utf16: Vec<u8> =
        std::iter::once(0xfeff).chain("t,q1\n0,1\n".encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let error = CsvReader::new(&utf16[..], "x").and_then(Log::collect).unwrap_err().to_string();
    assert_eq!(error, "x: row 1: is UTF-16 text; save it as UTF-8");
    let (names, columns) = clean(3000, 100.0);
    let packed = gzip(&csv(&names, &columns));
    let cut = CsvReader::new(&packed[..packed.len() / 2], "log.csv.gz").and_then(Log::collect).unwrap_err();
    assert_eq!(cut.to_string(), "log.csv.gz: the compressed file is truncated");
    let missing = Log::read(std::path::Path::new("no/such\nfile.csv")).unwrap_err().to_string();
    assert!(missing.starts_with("no/such\\nfile.csv: cannot be opened") && missing.lines().count() == 1);
    for bytes in [&b"t,q1\n0,\xff\xfe\n"[..], b"t,\xff\n", b"\x1f\x8b\x08garbage"] {
        assert!(CsvReader::new(bytes, "x").and_then(Log::collect).is_err());
    }
}
