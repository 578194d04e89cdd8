//! Detection of unsupported files, with advice for the user.

use std::path::Path;

const YAML: &str = "is YAML, not a log; save a table as CSV or Parquet";
const ECHO: &str = "is YAML, as `ros2 topic echo` writes it; use `ros2 topic echo --csv`, or record a bag: `ros2 bag record`";

/// Describes an unsupported file by its first bytes; `None` if it may be a text table.
pub(crate) fn advice(start: &[u8]) -> Option<&'static str> {
    let kinds: [(&[u8], &str); 20] = [
        (b"\xd0\xcf\x11\xe0", "is an old Excel or Office file; save it as CSV"),
        (b"ARROW1", "is an Arrow or Feather file; save it as Parquet: pyarrow.parquet.write_table"),
        (b"\x28\xb5\x2f\xfd", "is compressed with zstd twice; decompress it once: zstd -d"),
        (b"BZh", "is compressed with bzip2; decompress it: bunzip2"),
        (b"\xfd7zXZ", "is compressed with xz; decompress it: xz -d"),
        (b"7z\xbc\xaf", "is a 7-Zip archive; extract it first"),
        (b"%PDF", "is a PDF file, not a log"),
        (b"\x89PNG", "is a picture, not a log"),
        (b"\x80\x04\x95", "is a Python pickle; save it as CSV, Parquet or .npz"),
        (b"ULog\x01\x12\x35", "is a PX4 log (ULog); convert it to CSV: ulog2csv"),
        (b"MDF     ", "is a measurement file (MDF); save it as CSV, Parquet or MATLAB: asammdf"),
        (b"UnFinMF ", "is an unfinished measurement file (MDF); finish it, and save it as CSV: asammdf"),
        (b"TDSm", "is a LabVIEW file (TDMS); save it as CSV or HDF5: nptdms"),
        (b"ORC", "is an ORC file; save it as Parquet: pyarrow.parquet.write_table"),
        (b"<stata_d", "is a Stata file; save it as CSV"),
        (b"header:", ECHO),
        (b"---\n", YAML),
        (b"---\r\n", YAML),
        (b"<", "is XML or HTML, not a log: was a model given in its place?"),
        (b"{", "is JSON, not a log; save a table as CSV or Parquet"),
    ];
    let known = kinds.into_iter().find(|(magic, _)| start.starts_with(magic));
    known.map(|(_, text)| text).or_else(|| {
        // A pickle of another protocol, or a JSON list.
        match start {
            // Versions 8 to 12 of Stata.
            [0x71..=0x73, 1 | 2, 1, 0, ..] => Some("is a Stata file; save it as CSV"),
            [0x80, 2..=5, ..] => Some("is a Python pickle; save it as CSV, Parquet or .npz"),
            [b'[', rest @ ..] if rest.iter().any(|b| matches!(b, b'{' | b'[' | b'"')) => {
                Some("is JSON, not a log; save a table as CSV or Parquet")
            }
            _ => None,
        }
    })
}

/// Describes a file whose content is not of the format of its name; `None` for names of other formats.
pub(crate) fn wrong_name(name: &str) -> Option<String> {
    let kinds = [
        ("db3", "an SQLite database"),
        ("mcap", "an MCAP file"),
        ("bag", "a ROS 1 bag"),
        ("parquet", "a Parquet file"),
        ("npz", "a NumPy archive"),
        ("npy", "a NumPy array"),
        ("mat", "a MATLAB file of version 5 or later"),
        ("h5", "an HDF5 file"),
        ("hdf5", "an HDF5 file"),
    ];
    let plain = [".zst", ".zstd", ".gz"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let extension = Path::new(plain).extension()?.to_str()?.to_ascii_lowercase();
    let (_, kind) = kinds.iter().find(|(own, _)| *own == extension)?;
    Some(format!("is not {kind}, although its name ends in .{extension}"))
}
