//! Files of summaries: packed (`.summary`) or JSON (`.json`). They are recognized by their content.

use std::io::Read as _;
use std::path::Path;

use inertial::estimation::Summary;
use serde::Serialize;

use crate::{Context, Error, Located as _, Result, ensure, ensure_option};

/// First bytes of a packed summary.
const PACKED: &[u8] = b"inertial-summary-1\n";

/// First bytes of a summary saved from Python: a packed summary after a header with the model and the options, which
/// begins with its length (four bytes, little-endian).
const WITH_MODEL: &[u8] = b"inertial-summary-file-2\n";

/// Size limit (bytes) of summaries. Those of seven-axis arms with automatic terms have 6 MB as JSON.
const LIMIT: u64 = 256 << 20;

/// Returns whether a file with this name is read as a summary: it ends in `.summary` or `.json`.
pub fn is_summary_name(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "json" || e == "summary")
}

/// Checks the name of a summary to be written: with another name, it would not be recognized as a summary.
pub fn check_name(path: &Path) -> Result<()> {
    ensure_option!(
        is_summary_name(path),
        "summary-out",
        "{}: expected a name ending in .summary or .json",
        path.display()
    );
    Ok(())
}

/// Returns the content of a summary file: JSON if its name ends in `.json`, else packed.
pub fn content(path: &Path, summary: &Summary) -> Result<Vec<u8>> {
    if path.extension().is_some_and(|e| e == "json") {
        let mut text = serde_json::to_vec(summary)?;
        text.push(b'\n');
        return Ok(text);
    }
    pack(summary)
}

/// Packs a summary, or its compact form.
pub fn pack(summary: &impl Serialize) -> Result<Vec<u8>> {
    let packed = postcard::to_stdvec(summary);
    Ok([PACKED, &packed.map_err(|e| Error::Input(format!("the summary cannot be packed: {e}")))?].concat())
}

/// Reads a summary, packed or JSON.
pub fn unpack(content: &[u8]) -> Result<Summary> {
    let damaged = |e: &dyn std::fmt::Display| Error::Input(format!("is not a summary: {e}"));
    if let Some(packed) = packed_part(content) {
        let (summary, rest) = postcard::take_from_bytes(packed).map_err(|e| match e {
            postcard::Error::DeserializeUnexpectedEnd => damaged(&"it ends too early"),
            // The other messages of the format name its details, such as a wrong byte of a text.
            _ => damaged(&"its content is damaged"),
        })?;
        ensure!(
            rest.is_empty(),
            "{} bytes follow the summary: give several summaries as separate files",
            rest.len()
        );
        return Ok(summary);
    }
    serde_json::from_slice(content).map_err(|e| {
        if e.is_data() && e.to_string().starts_with("missing field `schema`") {
            return Error::Input("is JSON, but not a summary; save a table as CSV or Parquet".to_owned());
        }
        damaged(&e)
    })
}

/// Returns the packed part of a summary, without its header; `None` for other content.
fn packed_part(content: &[u8]) -> Option<&[u8]> {
    let content = match content.strip_prefix(WITH_MODEL) {
        Some(rest) => {
            let (length, rest) = rest.split_first_chunk()?;
            rest.get(usize::try_from(u32::from_le_bytes(*length)).ok()?..)?
        }
        None => content,
    };
    content.strip_prefix(PACKED)
}

/// Returns the summary if an input is one: held by the caller, or a file with the name of one.
pub(crate) fn saved_summary(context: &Context<'_>, name: &str) -> Result<Option<Summary>> {
    if let Some(given) = context.inputs.summary(name) {
        return Ok(Some(given.clone()));
    }
    if !is_summary_name(Path::new(name)) {
        return Ok(None);
    }
    let mut content = Vec::new();
    context.inputs.open(name).at(name)?.take(LIMIT + 1).read_to_end(&mut content).at(name)?;
    ensure!(content.len() as u64 <= LIMIT, "{name}: is too large for a summary");
    unpack(&content).map(Some).at(name)
}
