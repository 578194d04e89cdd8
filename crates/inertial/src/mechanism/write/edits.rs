//! Edits of an XML text; all other bytes stay unchanged.

use std::ops::Range;

use nalgebra::Vector3;

use crate::mechanism::read::xml::{Element, parse_number};

/// Replacements of parts of a text.
pub(super) struct Edits<'t> {
    text: &'t str,
    pub(super) newline: &'static str,
    pieces: Vec<(Range<usize>, String)>,
}

impl<'t> Edits<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Self { text, newline, pieces: Vec::new() }
    }

    /// Appends lines inside an element with the indentation of its surroundings; a leading tab means one more level.
    pub(super) fn append(&mut self, element: Element<'_>, lines: &[String]) {
        let layout = element.layout();
        let outer = self.line_indent(layout.range.start).unwrap_or("").to_owned();
        let child = element.children().next().map(|c| c.layout().range.start);
        let inner = match child.and_then(|at| self.line_indent(at)) {
            Some(indent) => indent.to_owned(),
            None if outer.contains('\t') => format!("{outer}\t"),
            None => format!("{outer}  "),
        };
        let unit = inner.strip_prefix(&outer).filter(|u| !u.is_empty()).unwrap_or("  ").to_owned();
        let newline = self.newline;
        let mut block = String::new();
        for line in lines {
            block.extend([newline, &inner, &line.replace('\t', &unit)]);
        }
        match layout.end_tag {
            None => {
                // `<link name="a"/>` becomes a pair of tags; blanks before the slash stay.
                let name = &self.text[layout.range.start + 1..layout.attributes];
                let slash = layout.start_tag_end - 2;
                self.replace(slash..layout.start_tag_end, format!(">{block}{newline}{outer}</{name}>"));
            }
            Some(end) => {
                // Inserted after the last content, so that the end tag keeps its own line.
                let inside = self.text[layout.start_tag_end..end].trim_end();
                let tail = if self.text[layout.start_tag_end..end].contains('\n') {
                    String::new()
                } else {
                    format!("{newline}{outer}")
                };
                self.insert(layout.start_tag_end + inside.len(), format!("{block}{tail}"));
            }
        }
    }

    /// Inserts a line first inside an element, with the indentation of its first child.
    pub(super) fn prepend(&mut self, element: Element<'_>, line: String) {
        let layout = element.layout();
        if layout.end_tag.is_none() {
            return self.append(element, &[line]);
        }
        let child = element.children().next().map(|c| c.layout().range.start);
        let gap = child.and_then(|at| self.line_indent(at)).map(|indent| format!("{}{indent}", self.newline));
        self.insert(layout.start_tag_end, gap.unwrap_or_default() + &line);
    }

    /// Removes an attribute and the blank before it.
    pub(super) fn remove_attribute(&mut self, element: Element<'_>, name: &str) {
        let Some(mut range) = element.attribute_range(name) else { return };
        if self.text[..range.start].ends_with([' ', '\t', '\n']) {
            range.start -= 1;
        }
        self.replace(range, String::new());
    }

    /// Returns the indentation at an offset if only blanks precede it on its line.
    pub(super) fn line_indent(&self, at: usize) -> Option<&'t str> {
        let before = &self.text[..at];
        let line = &before[before.rfind('\n')? + 1..];
        line.chars().all(|c| c == ' ' || c == '\t').then_some(line)
    }

    pub(super) fn set(&mut self, element: Element<'_>, name: &str, value: f64) {
        let same = |old: &str| parse_number(old.trim()).is_some_and(|old| old == value);
        self.set_text(element, name, value == 0.0, same, number(value));
    }

    pub(super) fn set_vector(&mut self, element: Element<'_>, name: &str, value: &Vector3<f64>) {
        let same =
            |old: &str| old.split_ascii_whitespace().map(parse_number).eq(value.iter().map(|x| Some(*x)));
        self.set_text(element, name, *value == Vector3::zeros(), same, numbers(value));
    }

    /// Sets an attribute; a missing attribute is added unless the value is its default.
    fn set_text(
        &mut self,
        element: Element<'_>,
        name: &str,
        is_default: bool,
        same: impl Fn(&str) -> bool,
        value: String,
    ) {
        match (element.attribute(name), element.value_range(name)) {
            (Some(old), _) if same(old) => {}
            (_, Some(range)) => self.replace(range, value),
            (_, None) if is_default => {}
            (_, None) => self.insert(element.layout().attributes, format!(" {name}=\"{value}\"")),
        }
    }

    pub(super) fn insert(&mut self, at: usize, text: String) {
        self.replace(at..at, text);
    }

    pub(super) fn replace(&mut self, range: Range<usize>, text: String) {
        self.pieces.push((range, text));
    }

    pub(super) fn apply(mut self) -> String {
        // Stable sort: insertions at one position keep their order.
        self.pieces.sort_by_key(|(range, _)| (range.start, range.end));
        let mut out = String::with_capacity(self.text.len() + 64 * self.pieces.len());
        let mut at = 0;
        for (range, text) in &self.pieces {
            out.push_str(&self.text[at..range.start]);
            out.push_str(text);
            at = range.end;
        }
        out.push_str(&self.text[at..]);
        out
    }
}

/// Formats a number with the fewest digits that read back as the same value.
pub(super) fn number(x: f64) -> String {
    // Adding zero turns −0 into 0.
    format!("{:?}", x + 0.0)
}

pub(super) fn numbers(v: &Vector3<f64>) -> String {
    format!("{} {} {}", number(v.x), number(v.y), number(v.z))
}
