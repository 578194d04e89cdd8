//! Output for a terminal, without control characters of inputs.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces control characters except line ends and tabs; colour codes are kept if requested.
pub fn printable(text: &str, colour: bool) -> Cow<'_, str> {
    if !text.chars().any(controls_terminal) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if colour { colour_code(rest) } else { 0 };
        if length > 0 {
            out.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        out.push(if controls_terminal(c) { '\u{fffd}' } else { c });
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(out)
}

/// Escapes the characters that JSON allows in strings and that [`printable`] replaces.
pub fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if controls_terminal(c) {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns whether a character may control a terminal, or the direction and the lines of the text that it shows.
fn controls_terminal(c: char) -> bool {
    let directs = matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    directs || c.is_control() && c != '\n' && c != '\t'
}

/// Returns the length of a colour code at the beginning of a text; zero if there is none.
fn colour_code(text: &str) -> usize {
    let Some(code) = text.strip_prefix("\u{1b}[") else { return 0 };
    let digits = code.bytes().take_while(|b| b.is_ascii_digit() || *b == b';').count();
    if code.as_bytes().get(digits) == Some(&b'm') { 2 + digits + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colours_reach_a_terminal() {
        let text = "a\u{1b}[36mb\u{1b}[2Jc\u{9b}d\u{7}\te\n";
        assert_eq!(printable(text, true), "a\u{1b}[36mb\u{fffd}[2Jc\u{fffd}d\u{fffd}\te\n");
        assert_eq!(printable(text, false), "a\u{fffd}[36mb\u{fffd}[2Jc\u{fffd}d\u{fffd}\te\n");
        assert_eq!(printable("plain", false), "plain");
    }

    #[test]
    fn reversals_of_the_text_direction_do_not_reach_a_terminal() {
        assert_eq!(printable("a\u{202e}b\u{2066}c\u{2028}d", false), "a\u{fffd}b\u{fffd}c\u{fffd}d");
        assert_eq!(escaped("a\u{202e}b"), "a\\u202eb");
    }

    #[test]
    fn escaped_json_means_the_same() {
        let value = serde_json::json!({ "na\u{7f}me": "a\u{9b}31mb\u{1b}c" });
        let text = escaped(&value.to_string());
        assert!(!text.contains(controls_terminal));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
