//! Repair of URDF texts that other readers accept although they are not well-formed XML. All byte offsets are preserved, so that
//! writers can edit the original text.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::lines::Lines;
use super::xml::{quoted, without_quotes};
use crate::Place;

/// Text that can be parsed, with warnings about the repairs.
pub(crate) struct Repaired<'t> {
    pub text: Cow<'t, str>,
    pub warnings: Vec<String>,
}

/// Repairs a text: blank lines before the XML declaration, `--` in comments, a document type without entities, and undeclared prefixes.
pub(crate) fn repaired(text: &str) -> Repaired<'_> {
    let lines = Lines::new(text);
    let mut bytes = Cow::Borrowed(text.as_bytes());
    let mut warnings = Vec::new();
    let mut warn = |at: usize, message: String| {
        let place = Place { line: Some(lines.at(at)), element: String::new() };
        warnings.push(format!("{place}{message}"));
    };
    let declared = declared_prefixes(text);
    let mut unknown = HashSet::new();
    let mut at = 0;
    while let Some(found) = text[at..].find('<') {
        at += found;
        let rest = &text[at..];
        let until = |end: &str| rest.find(end).map(|i| i + end.len());
        let length = if rest.starts_with("<!--") {
            let length = until("-->");
            if let Some(length) = length.filter(|&n| n > 7 && comment_is_wrong(&rest[4..n - 3])) {
                warn(at, "a comment has -- inside: ignored".to_owned());
                blank(&mut bytes, at + 4..at + length - 3);
            }
            length
        } else if rest.starts_with("<![CDATA[") {
            until("]]>")
        } else if rest.starts_with("<?") {
            let length = until("?>");
            let declaration =
                rest.starts_with("<?xml ") && !text[..at].trim_start_matches('\u{feff}').is_empty();
            if let Some(length) = length.filter(|_| declaration && text[..at].trim().is_empty()) {
                warn(at, "blank lines before <?xml: ignored".to_owned());
                blank(&mut bytes, at..at + length);
            }
            length
        } else if rest.starts_with("<!DOCTYPE") {
            let length = document_type(rest);
            if let Some(length) = length {
                warn(at, "a document type: ignored".to_owned());
                blank(&mut bytes, at..at + length);
            }
            length
        } else {
            let tag = without_quotes(rest);
            for colon in tag.match_indices(':').map(|(k, _)| k) {
                let start = tag[..colon].rfind(|c: char| !is_name(c)).map_or(0, |k| k + 1);
                let prefix = &tag[start..colon];
                if prefix.is_empty()
                    || matches!(prefix, "xml" | "xmlns" | "xacro")
                    || declared.contains(prefix)
                {
                    continue;
                }
                if unknown.insert(prefix.to_owned()) {
                    warn(
                        at,
                        format!("the prefix {} is not declared: taken as part of the name", quoted(prefix)),
                    );
                }
                bytes.to_mut()[at + colon] = b'_';
            }
            Some(tag.len())
        };
        // The parser reports unclosed constructs.
        let Some(length) = length else { break };
        at += length;
    }
    let text = match bytes {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // The text stays valid UTF-8: ASCII replaces single ASCII bytes or whole ranges.
        Cow::Owned(bytes) => String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned),
    };
    Repaired { text, warnings }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Returns whether the content of a comment violates the rules of XML.
fn comment_is_wrong(inside: &str) -> bool {
    inside.contains("--") || inside.ends_with('-')
}

/// Returns the prefixes that are declared anywhere in the text.
fn declared_prefixes(text: &str) -> HashSet<&str> {
    text.match_indices("xmlns:")
        .map(|(at, found)| {
            let rest = &text[at + found.len()..];
            &rest[..rest.find(|c: char| !is_name(c)).unwrap_or(rest.len())]
        })
        .collect()
}

/// Returns the length of a document type that declares no entities.
fn document_type(rest: &str) -> Option<usize> {
    let end = rest.find('>')?;
    let length = match rest.find('[').filter(|&open| open < end) {
        Some(open) => {
            let close = open + rest[open..].find(']')?;
            close + rest[close..].find('>')? + 1
        }
        None => end + 1,
    };
    // External references are never read, but entities declared here would be needed.
    (!rest[..length].contains("<!ENTITY")).then_some(length)
}

/// Overwrites a range with blanks; line breaks are kept.
fn blank(bytes: &mut Cow<'_, [u8]>, range: Range<usize>) {
    bytes.to_mut()[range].iter_mut().filter(|b| !matches!(b, b'\n' | b'\r')).for_each(|b| *b = b' ');
}
