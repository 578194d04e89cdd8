//! Parameters of macros: `name`, `name:=default`, `name:=^`, `name:=^|default`, `*block`, `**blocks`.

use super::scope::Parameter;

/// Reads the list of parameters.
pub(super) fn read(text: &str) -> Vec<Parameter> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (parameter, length) = with_default(rest).unwrap_or_else(|| {
            let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
            (Parameter { name: rest[..length].to_owned(), forward: false, default: None }, length)
        });
        out.push(parameter);
        rest = rest[length..].trim_start();
    }
    out
}

/// Returns a parameter with a default at the start of a text, and its length.
fn with_default(text: &str) -> Option<(Parameter, usize)> {
    let end = text.find(|c: char| c.is_whitespace() || c == ':' || c == '=').filter(|&end| end > 0)?;
    let rest = text[end..].trim_start();
    let rest = rest.strip_prefix(':').unwrap_or(rest).strip_prefix('=')?.trim_start();
    let (forward, rest) = match rest.strip_prefix('^') {
        Some(rest) => (true, rest.strip_prefix('|').unwrap_or(rest)),
        None => (false, rest),
    };
    let length = default_length(rest)?;
    let default = (length > 0).then(|| rest[..length].to_owned());
    let name = text[..end].to_owned();
    Some((Parameter { name, forward, default }, text.len() - rest.len() + length))
}

/// Returns the length of a default: an expression, or text in which blanks occur only in quotes. It is followed by blanks or the end.
fn default_length(text: &str) -> Option<usize> {
    let ends = |at: usize| text[at..].chars().next().is_none_or(char::is_whitespace);
    for (open, close) in [("${", '}'), ("$(", ')')] {
        if text.starts_with(open) {
            let found = text.match_indices(close).map(|(at, _)| at + 1).find(|&at| ends(at));
            if found.is_some() {
                return found;
            }
        }
    }
    let mut at = 0;
    while let Some(c) = text[at..].chars().next().filter(|c| !c.is_whitespace()) {
        at += match c {
            '\'' | '"' => text[at + 1..].find(c)? + 2,
            c => c.len_utf8(),
        };
    }
    Some(at)
}
