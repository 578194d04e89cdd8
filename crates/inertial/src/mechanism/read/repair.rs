//! Repair of URDF, MJCF and SDF texts that other readers accept although they are not well-formed XML. All byte offsets are
//! preserved after the escape of `&`, so that writers can edit the escaped text.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::lines::Lines;
use super::xml::{quoted, without_quotes};
use crate::Place;

/// Namespace of xacro.
const XACRO: &str = "http://www.ros.org/wiki/xacro";

/// Maximum number of lines with `&` that are reported.
const MOST_WARNINGS: usize = 100;

/// Text that can be parsed, with warnings about the repairs.
pub(crate) struct Repaired<'t> {
    pub text: Cow<'t, str>,
    /// Original text, in which each bare `&` is escaped. It has the same byte offsets as `text`.
    pub original: Cow<'t, str>,
    pub warnings: Vec<String>,
}

/// Repairs a text: blank lines before the XML declaration, `--` in comments, a document type without entities in use, undeclared
/// prefixes, `&` that is not escaped, and elements after the outermost one.
pub(crate) fn repaired(text: &str) -> Repaired<'_> {
    let (original, mut warnings) = escaped(text);
    let text = match &original {
        Cow::Borrowed(text) => without_faults(text, &mut warnings),
        Cow::Owned(text) => Cow::Owned(without_faults(text, &mut warnings).into_owned()),
    };
    Repaired { text, original, warnings }
}

/// Escapes each `&` that starts no reference of XML, as urdfdom, MuJoCo and Gazebo read it: literally.
fn escaped(text: &str) -> (Cow<'_, str>, Vec<String>) {
    let declared = entities(text);
    let mut unescaped = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find(['<', '&']) {
        at += found;
        let rest = &text[at..];
        let length = match rest {
            _ if verbatim(rest).is_some() => verbatim_length(rest),
            // The declarations of entities are part of the document type.
            _ if rest.starts_with("<!DOCTYPE") => document_type_length(rest),
            _ if rest.starts_with('&') && !is_reference(rest, &declared) => {
                unescaped.push(at);
                Some(1)
            }
            _ => Some(1),
        };
        let Some(length) = length else { break };
        at += length;
    }
    if unescaped.is_empty() {
        return (Cow::Borrowed(text), Vec::new());
    }
    let lines = Lines::new(text);
    let mut warnings: Vec<String> = Vec::new();
    let (mut out, mut done) = (String::with_capacity(text.len() + 4 * unescaped.len()), 0);
    for at in unescaped {
        out.push_str(&text[done..=at]);
        out.push_str("amp;");
        done = at + 1;
        let place = Place { line: Some(lines.at(at)), element: String::new() };
        let warning = format!("{place}& is not escaped: read as &amp;");
        if warnings.len() < MOST_WARNINGS && warnings.last() != Some(&warning) {
            warnings.push(warning);
        }
    }
    out.push_str(&text[done..]);
    (Cow::Owned(out), warnings)
}

/// Returns whether a text starts with a reference to a character or to a declared entity.
fn is_reference(text: &str, declared: &HashSet<&str>) -> bool {
    let end = text[1..].find(|c: char| !is_name(c) && c != '#').map_or(text.len(), |n| n + 1);
    let name = &text[1..end];
    if !text[end..].starts_with(';') {
        return false;
    }
    let digits = |digits: &str, radix| !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    matches!(name, "amp" | "lt" | "gt" | "quot" | "apos")
        || name.strip_prefix("#x").is_some_and(|n| digits(n, 16))
        || name.strip_prefix('#').is_some_and(|n| digits(n, 10))
        || declared.contains(name)
}

/// Returns the names of the entities that a text declares; `%` for parameter entities.
fn entities(text: &str) -> HashSet<&str> {
    let name = |(at, word): (usize, &str)| {
        let rest = text[at + word.len()..].trim_start();
        &rest[..rest.find(|c: char| !is_name(c) && c != '%').unwrap_or(rest.len())]
    };
    text.match_indices("<!ENTITY").map(name).collect()
}

fn without_faults<'t>(text: &'t str, warnings: &mut Vec<String>) -> Cow<'t, str> {
    let lines = Lines::new(text);
    let mut bytes = Cow::Borrowed(text.as_bytes());
    let mut warn = |at: usize, message: String| {
        let place = Place { line: Some(lines.at(at)), element: String::new() };
        warnings.push(format!("{place}{message}"));
    };
    let declared = declared_prefixes(text);
    let mut unknown = HashSet::new();
    // Number of open elements, and whether the outermost one was closed.
    let (mut depth, mut closed) = (0_usize, false);
    let mut at = 0;
    while let Some(found) = text[at..].find('<') {
        at += found;
        let rest = &text[at..];
        if closed && !rest.starts_with("<!") && !rest.starts_with("<?") {
            warn(at, "content after the end of the outermost element: ignored".to_owned());
            blank(&mut bytes, at..text.len());
            break;
        }
        let length = if rest.starts_with("<!--") {
            let length = verbatim_length(rest);
            if let Some(length) = length.filter(|&n| n > 7 && comment_is_wrong(&rest[4..n - 3])) {
                warn(at, "a comment has -- inside: ignored".to_owned());
                blank(&mut bytes, at + 4..at + length - 3);
            }
            length
        } else if rest.starts_with("<![CDATA[") {
            verbatim_length(rest)
        } else if rest.starts_with("<?") {
            let length = verbatim_length(rest);
            let declaration =
                rest.starts_with("<?xml ") && !text[..at].trim_start_matches('\u{feff}').is_empty();
            if let Some(length) = length.filter(|_| declaration && text[..at].trim().is_empty()) {
                warn(at, "blank lines before <?xml: ignored".to_owned());
                blank(&mut bytes, at..at + length);
            }
            length
        } else if rest.starts_with("<!DOCTYPE") {
            let length = document_type_length(rest).filter(|&n| !uses_entities(&rest[..n], &rest[n..]));
            if let Some(length) = length {
                warn(at, "a document type: ignored".to_owned());
                blank(&mut bytes, at..at + length);
            }
            length
        } else {
            let tag = without_quotes(rest);
            match (tag.starts_with("</"), tag.ends_with("/>")) {
                (true, _) => depth = depth.saturating_sub(1),
                (false, true) => {}
                (false, false) => depth += 1,
            }
            closed = depth == 0 && tag.ends_with('>');
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
    match bytes {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // The text stays valid UTF-8: ASCII replaces single ASCII bytes or whole ranges.
        Cow::Owned(bytes) => String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned),
    }
}

/// Declares the prefix `xacro` in the outermost element if a text uses it without a declaration, with a warning.
pub(crate) fn with_xacro_prefix<'t>(text: Cow<'t, str>, warnings: &mut Vec<String>) -> Cow<'t, str> {
    if declared_prefixes(&text).contains("xacro") {
        return text;
    }
    let (mut at, mut root, mut first) = (0, None, None);
    while let Some(found) = text[at..].find('<') {
        at += found;
        let rest = &text[at..];
        let length = match rest {
            _ if verbatim(rest).is_some() => verbatim_length(rest),
            _ if rest.starts_with("<!") => rest.find('>').map(|i| i + 1),
            _ => {
                root = root.or(Some(at));
                if rest.starts_with("<xacro:") {
                    first = Some(at);
                    break;
                }
                Some(1)
            }
        };
        let Some(length) = length else { break };
        at += length;
    }
    let (Some(root), Some(first)) = (root, first) else { return text };
    let place = Place { line: Some(Lines::new(&text).at(first)), element: String::new() };
    warnings.push(format!("{place}the prefix \"xacro\" is not declared: taken as xmlns:xacro=\"{XACRO}\""));
    let end = text[root + 1..].find(|c: char| !is_name(c) && c != ':').map_or(text.len(), |n| root + 1 + n);
    Cow::Owned(format!("{} xmlns:xacro=\"{XACRO}\"{}", &text[..end], &text[end..]))
}

/// Returns the end mark of the comment, CDATA section or processing instruction that a text starts with.
fn verbatim(text: &str) -> Option<&'static str> {
    let marks = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")];
    marks.into_iter().find(|(start, _)| text.starts_with(start)).map(|(_, end)| end)
}

/// Returns the length of the comment, CDATA section or processing instruction that a text starts with; `None` if it does not end.
fn verbatim_length(text: &str) -> Option<usize> {
    let end = verbatim(text)?;
    text.find(end).map(|at| at + end.len())
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

/// Returns the length of a document type.
fn document_type_length(rest: &str) -> Option<usize> {
    let end = rest.find('>')?;
    match rest.find('[').filter(|&open| open < end) {
        Some(open) => {
            let close = open + rest[open..].find(']')?;
            Some(close + rest[close..].find('>')? + 1)
        }
        None => Some(end + 1),
    }
}

/// Maximum number of entities of a document type whose use is searched for.
const MOST_ENTITIES: usize = 100;

/// Returns whether a document type declares entities to which the rest of the text refers. External references are never read.
fn uses_entities(document_type: &str, rest: &str) -> bool {
    let declared = entities(document_type);
    // Parameter entities may declare others.
    declared.contains("%")
        || declared.len() > MOST_ENTITIES
        || declared.iter().any(|name| rest.contains(&format!("&{name};")))
}

/// Overwrites a range with blanks; line breaks are kept.
fn blank(bytes: &mut Cow<'_, [u8]>, range: Range<usize>) {
    bytes.to_mut()[range].iter_mut().filter(|b| !matches!(b, b'\n' | b'\r')).for_each(|b| *b = b' ');
}
