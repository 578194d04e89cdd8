//! Common parts of the XML readers: bounded parsing, and attribute access with errors that include the location.

use std::cell::RefCell;
use std::ops::Range;

use roxmltree::{Document, Node, ParsingOptions};

use super::check_size;
use super::lines::Lines;
use crate::{Error, Place, Result};

/// Maximum nesting depth of elements; real models stay below a few dozen.
const MAX_DEPTH: usize = 256;

/// Maximum number of attributes of one element: the parser compares each with all previous ones.
const MAX_ATTRIBUTES: usize = 256;

/// Maximum number of nodes of one document; together with the size of the text it bounds the memory.
const MAX_NODES: u32 = 4_000_000;

/// Maximum number of namespace declarations of one document: the parser copies them from element to element.
const MAX_NAMESPACES: usize = 1000;

/// Maximum length of a quotation of the input in an error message.
const MAX_QUOTE: usize = 100;

/// Parsed text.
pub(crate) struct Xml<'t> {
    document: Document<'t>,
    lines: Lines<'t>,
    /// Name of the file for error messages; empty for the main model text.
    file: String,
    /// Warnings about ignored content.
    warnings: RefCell<Vec<String>>,
}

impl<'t> Xml<'t> {
    /// Parses a text of bounded size, depth and number of nodes; a document type is rejected.
    pub(crate) fn parse(text: &'t str) -> Result<Self> {
        check_size(text)?;
        let lines = Lines::new(text);
        scan(text, &lines)?;
        let options = ParsingOptions { nodes_limit: MAX_NODES, ..ParsingOptions::default() };
        let document = Document::parse_with_options(text, options).map_err(|e| syntax(&lines, &e))?;
        Ok(Self { document, lines, file: String::new(), warnings: RefCell::default() })
    }

    /// Parses the text of an included file; errors contain the name of the file.
    pub(crate) fn parse_file(text: &'t str, file: &str) -> Result<Self> {
        let mut xml = Self::parse(text).map_err(|error| match error {
            Error::Syntax { place, message } => {
                Error::Syntax { place: Place { element: format!("file {}", quoted(file)), ..place }, message }
            }
            other => other,
        })?;
        file.clone_into(&mut xml.file);
        Ok(xml)
    }

    /// Returns the warnings about ignored content, without duplicates, in the order of the text.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.borrow().clone()
    }

    /// Returns the root element.
    pub(crate) fn root(&self) -> Element<'_> {
        Element {
            node: self.document.root_element(),
            lines: &self.lines,
            text: self.document.input_text(),
            file: &self.file,
            warnings: &self.warnings,
        }
    }
}

/// Element with its location in the text.
#[derive(Clone, Copy)]
pub(crate) struct Element<'a> {
    node: Node<'a, 'a>,
    lines: &'a Lines<'a>,
    text: &'a str,
    file: &'a str,
    warnings: &'a RefCell<Vec<String>>,
}

impl<'a> Element<'a> {
    /// Returns the outermost element of the text.
    pub(crate) fn root(self) -> Element<'a> {
        Element { node: self.node.document().root_element(), ..self }
    }

    /// Returns the tag without its namespace prefix.
    pub(crate) fn tag(&self) -> &'a str {
        self.node.tag_name().name()
    }

    /// Returns the tag as written, with its prefix.
    pub(crate) fn qualified_tag(&self) -> &'a str {
        let rest = &self.text[self.node.range().start + 1..];
        &rest[..rest.find(|c: char| c.is_ascii_whitespace() || c == '/' || c == '>').unwrap_or(rest.len())]
    }

    /// Returns the names (with prefixes) and values of the attributes, including namespace declarations.
    pub(crate) fn qualified_attributes(&self) -> Vec<(String, String)> {
        let written = self.node.attributes().map(|a| {
            let name = &self.text[a.range_qname()];
            (name.to_owned(), a.value().to_owned())
        });
        let mut out: Vec<(String, String)> = written.collect();
        let range = self.node.range();
        if without_quotes(&self.text[range]).contains("xmlns") {
            let outer: Vec<_> = self.node.parent_element().into_iter().flat_map(|p| p.namespaces()).collect();
            for space in self.node.namespaces().filter(|space| !outer.contains(space)) {
                let name = space.name().map_or("xmlns".to_owned(), |name| format!("xmlns:{name}"));
                out.push((name, space.uri().to_owned()));
            }
        }
        out
    }

    /// Returns the child elements and texts in document order.
    pub(crate) fn nodes(self) -> impl Iterator<Item = Result<Element<'a>, &'a str>> {
        self.node.children().filter_map(move |node| {
            if node.is_element() {
                return Some(Ok(Element { node, ..self }));
            }
            node.text().filter(|_| node.is_text()).map(Err)
        })
    }

    /// Returns the line (from 1) at which the element starts.
    pub(crate) fn line(&self) -> u32 {
        self.lines.at(self.node.range().start)
    }

    /// Returns the byte offsets of the element's parts.
    pub(crate) fn layout(&self) -> Layout {
        let range = self.node.range();
        let text = &self.text[range.clone()];
        let tag = Tag::scan(text);
        let name = text.find(|c: char| c.is_ascii_whitespace() || c == '/' || c == '>').unwrap_or(text.len());
        Layout {
            attributes: range.start + name,
            start_tag_end: range.start + tag.length.unwrap_or(text.len()),
            end_tag: (!tag.empty).then(|| range.start + text.rfind("</").unwrap_or(text.len())),
            range,
        }
    }

    /// Returns the byte range of an attribute's value, without its quotes.
    pub(crate) fn value_range(&self, name: &str) -> Option<Range<usize>> {
        self.node.attribute_node(name).map(|a| a.range_value())
    }

    /// Returns the byte range of an attribute, including its name and quotes.
    pub(crate) fn attribute_range(&self, name: &str) -> Option<Range<usize>> {
        self.node.attribute_node(name).map(|a| a.range())
    }

    /// Returns the line and tag, with the parent element if the element has no name of its own.
    pub(crate) fn place(&self) -> Place {
        let mut element = self.describe();
        if !self.file.is_empty() {
            element = format!("{element} in file {}", quoted(self.file));
        }
        Place::line(self.line(), element)
    }

    fn describe(&self) -> String {
        let tag = short(self.tag());
        if let Some(name) = self.node.attribute("name") {
            return format!("<{tag} name={}>", quoted(name));
        }
        let named = self.node.ancestors().skip(1).find(|n| n.attribute("name").is_some());
        match named.filter(|n| n.parent_element().is_some()) {
            Some(owner) => format!("<{tag}> of {}", Self { node: owner, ..*self }.describe()),
            None => format!("<{tag}>"),
        }
    }

    /// Creates a model error located at this element.
    pub(crate) fn error(&self, message: impl Into<String>) -> Error {
        Error::model(self.place(), message)
    }

    /// Creates an error about an unsupported feature at this element.
    pub(crate) fn unsupported(&self, feature: impl Into<String>) -> Error {
        Error::unsupported(self.place(), feature)
    }

    /// Returns all child elements in the element's own namespace.
    pub(crate) fn children(self) -> impl Iterator<Item = Element<'a>> {
        self.all_children().filter(move |e| e.namespace() == self.namespace())
    }

    /// Returns all child elements that are extensions in another namespace, with that namespace.
    pub(crate) fn foreign_children(self) -> impl Iterator<Item = (Element<'a>, &'a str)> {
        let foreign = self.all_children().filter(move |e| e.namespace() != self.namespace());
        foreign.map(|e| (e, e.namespace().unwrap_or_default()))
    }

    fn all_children(self) -> impl Iterator<Item = Element<'a>> {
        self.node.children().filter(Node::is_element).map(move |node| Element { node, ..self })
    }

    fn namespace(&self) -> Option<&'a str> {
        self.node.tag_name().namespace()
    }

    /// Returns the child elements with this tag.
    pub(crate) fn children_named(self, tag: &str) -> impl Iterator<Item = Element<'a>> {
        self.children().filter(move |e| e.tag() == tag)
    }

    /// Returns the only child element with this tag, if any; a second one is an error.
    pub(crate) fn child(&self, tag: &str) -> Result<Option<Element<'a>>> {
        let mut found = self.children_named(tag);
        let first = found.next();
        match found.next() {
            Some(second) => Err(second.error(format!("there is more than one <{tag}>"))),
            None => Ok(first),
        }
    }

    /// Returns the first child element with this tag, if any; further ones are ignored with a warning.
    pub(crate) fn first_child(&self, tag: &str) -> Option<Element<'a>> {
        let mut found = self.children_named(tag);
        let first = found.next();
        if let Some(second) = found.next() {
            second.warn(&format!("there is more than one <{tag}>: the first is used"));
        }
        first
    }

    /// Returns the first child element with this tag; its absence is an error.
    pub(crate) fn required_first_child(&self, tag: &str) -> Result<Element<'a>> {
        self.first_child(tag).ok_or_else(|| self.error(format!("it needs a <{tag}>")))
    }

    /// Records a warning about ignored content, without duplicates.
    pub(crate) fn warn(&self, message: &str) {
        let text = format!("{}{message}", self.place());
        let mut warnings = self.warnings.borrow_mut();
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    /// Returns the only child element with this tag; its absence is an error.
    pub(crate) fn required_child(&self, tag: &str) -> Result<Element<'a>> {
        self.child(tag)?.ok_or_else(|| self.error(format!("it needs a <{tag}>")))
    }

    /// Returns the names and values of the attributes, without namespaces.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.node.attributes().map(|a| (a.name(), a.value()))
    }

    /// Returns the text of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<&'a str> {
        self.node.attribute(name)
    }

    /// Returns the text of an attribute; its absence is an error.
    pub(crate) fn required(&self, name: &str) -> Result<&'a str> {
        self.attribute(name).ok_or_else(|| self.error(format!("it needs the attribute \"{name}\"")))
    }

    /// Returns an attribute that is a name; an empty value or control characters are errors.
    pub(crate) fn identifier(&self, name: &str) -> Result<Option<&'a str>> {
        let Some(value) = self.attribute(name) else { return Ok(None) };
        if value.is_empty() {
            return Err(self.error(format!("{name}=\"\" is empty: expected a name")));
        }
        if value.contains(char::is_control) {
            return Err(self.error(format!("{name}={} has control characters", quoted(value))));
        }
        Ok(Some(value))
    }

    /// Returns an attribute that is a name; its absence is an error.
    pub(crate) fn required_identifier(&self, name: &str) -> Result<&'a str> {
        self.required(name)?;
        Ok(self.identifier(name)?.unwrap_or_default())
    }

    /// Returns the trimmed text content; the first nonempty piece if there are several.
    pub(crate) fn text(&self) -> &'a str {
        let pieces = self.node.children().filter(Node::is_text).filter_map(|n| n.text());
        pieces.map(str::trim).find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// Returns the text content as a name.
    pub(crate) fn name_inside(&self) -> Result<&'a str> {
        match self.text() {
            "" => Err(self.error("it is empty: expected a name")),
            name if name.contains(char::is_control) => {
                Err(self.error(format!("{} has control characters", quoted(name))))
            }
            name => Ok(name),
        }
    }

    /// Returns the text content as a list of finite numbers of any length.
    pub(crate) fn text_numbers(&self) -> Result<Vec<f64>> {
        let number = |token: &str| {
            let message = || self.error(format!("{} is not a finite number", quoted(token)));
            parse_number(token).ok_or_else(message)
        };
        self.text().split_ascii_whitespace().map(number).collect()
    }

    /// Returns the text content as exactly `N` finite numbers.
    pub(crate) fn text_array<const N: usize>(&self) -> Result<[f64; N]> {
        let list = self.text_numbers()?;
        let found = list.len();
        <[f64; N]>::try_from(list).map_err(|_| self.error(format!("it has {found} numbers, expected {N}")))
    }

    /// Returns an attribute as a list of finite numbers of any length.
    pub(crate) fn number_list(&self, name: &str) -> Result<Option<Vec<f64>>> {
        let Some(text) = self.attribute(name) else { return Ok(None) };
        text.split_ascii_whitespace().map(|t| self.parse_number(name, t)).collect::<Result<_>>().map(Some)
    }

    /// Returns an attribute as exactly `N` finite numbers.
    pub(crate) fn numbers<const N: usize>(&self, name: &str) -> Result<Option<[f64; N]>> {
        let Some(list) = self.number_list(name)? else { return Ok(None) };
        let found = list.len();
        <[f64; N]>::try_from(list).map(Some).map_err(|_| {
            let noun = if N == 1 { "number" } else { "numbers" };
            self.error(format!("{name} has {found} numbers, expected {N} {noun}"))
        })
    }

    /// Returns an attribute as one finite number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<f64>> {
        Ok(self.numbers::<1>(name)?.map(|[x]| x))
    }

    /// Returns an attribute as one finite number; its absence is an error.
    pub(crate) fn required_number(&self, name: &str) -> Result<f64> {
        self.required(name)?;
        Ok(self.number(name)?.unwrap_or_default())
    }

    /// Returns an attribute as a boolean.
    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>> {
        match self.attribute(name).map(str::trim) {
            None => Ok(None),
            Some("true" | "1") => Ok(Some(true)),
            Some("false" | "0") => Ok(Some(false)),
            Some(other) => Err(self.error(format!("{name}={} is neither true nor false", quoted(other)))),
        }
    }

    fn parse_number(&self, name: &str, token: &str) -> Result<f64> {
        parse_number(token)
            .ok_or_else(|| self.error(format!("{name}: {} is not a finite number", quoted(token))))
    }
}

/// Byte offsets of the parts of an element.
pub(crate) struct Layout {
    /// Range of the whole element.
    pub(crate) range: Range<usize>,
    /// End of the tag's name, where a new attribute can be inserted.
    pub(crate) attributes: usize,
    /// End of the start tag (or of the empty-element tag).
    pub(crate) start_tag_end: usize,
    /// Start of the end tag; `None` for `<…/>`.
    pub(crate) end_tag: Option<usize>,
}

/// Parses a finite decimal number as C++ streams do: sign, digits with a decimal point, exponent.
pub(crate) fn parse_number(token: &str) -> Option<f64> {
    // Rust also accepts "inf", "infinity" and "nan"; the check of the characters excludes them.
    let plain = token.bytes().all(|b| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    token.parse().ok().filter(|x: &f64| plain && x.is_finite())
}

/// Returns the tag at the start of a text with its quoted values replaced by blanks.
pub(crate) fn without_quotes(text: &str) -> String {
    let length = Tag::scan(text).length.unwrap_or(text.len());
    let mut quote = None;
    let letters = text[..length].bytes().map(|b| match (quote, b) {
        (Some(q), _) if q == b => {
            quote = None;
            b
        }
        (Some(_), _) => b' ',
        (None, b'"' | b'\'') => {
            quote = Some(b);
            b
        }
        // One byte per input byte, so that offsets are preserved.
        (None, _) if b.is_ascii() => b,
        (None, _) => b'_',
    });
    letters.map(char::from).collect()
}

/// Returns a piece of the input for an error message: quoted, on one line, shortened.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", short(text))
}

fn short(text: &str) -> String {
    let mut out: String =
        text.chars().take(MAX_QUOTE).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(MAX_QUOTE).is_some() {
        out.push('…');
    }
    out
}

/// Rejects texts that would need unbounded time, memory or stack in the parser, in one pass over the text.
fn scan(text: &str, lines: &Lines<'_>) -> Result<()> {
    let refuse = |at: usize, message: String| {
        Err(Error::syntax(Place { line: Some(lines.at(at)), element: String::new() }, message))
    };
    if text.match_indices("xmlns").nth(MAX_NAMESPACES).is_some() {
        return refuse(0, format!("the text declares more than {MAX_NAMESPACES} XML namespaces"));
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(found) = text[at..].find('<') {
        at += found;
        let rest = &text[at..];
        let until = |end: &str| rest.find(end).map(|i| i + end.len());
        let length = if rest.starts_with("<!--") {
            until("-->")
        } else if rest.starts_with("<![CDATA[") {
            until("]]>")
        } else if rest.starts_with("<?") {
            until("?>")
        } else if rest.starts_with("<!") {
            return refuse(
                at,
                "document types with entities (<!DOCTYPE, <!ENTITY) are not read: write the values in place of the entities".into(),
            );
        } else {
            let tag = Tag::scan(rest);
            if tag.attributes > MAX_ATTRIBUTES {
                return refuse(at, format!("an element has more than {MAX_ATTRIBUTES} attributes"));
            }
            match (tag.closes, tag.empty) {
                (true, _) => depth = depth.saturating_sub(1),
                (false, true) => {}
                (false, false) => depth += 1,
            }
            if depth > MAX_DEPTH {
                return refuse(at, format!("elements are nested deeper than {MAX_DEPTH} levels"));
            }
            tag.length
        };
        // The parser reports unclosed constructs.
        let Some(length) = length else { return Ok(()) };
        at += length;
    }
    Ok(())
}

/// Result of scanning one tag.
struct Tag {
    /// Number of bytes up to the end of the tag; `None` if the tag does not end.
    length: Option<usize>,
    /// Whether the tag is `</…>`.
    closes: bool,
    /// Whether the tag is `<…/>`.
    empty: bool,
    /// Number of quoted values.
    attributes: usize,
}

impl Tag {
    fn scan(text: &str) -> Self {
        let bytes = text.as_bytes();
        let closes = bytes.get(1) == Some(&b'/');
        let (mut quote, mut attributes) = (None, 0);
        for (i, &b) in bytes.iter().enumerate() {
            match (quote, b) {
                (Some(q), _) if q == b => quote = None,
                (None, b'"' | b'\'') => {
                    quote = Some(b);
                    attributes += 1;
                }
                (None, b'>') => {
                    return Self {
                        length: Some(i + 1),
                        closes,
                        empty: bytes[..i].ends_with(b"/"),
                        attributes,
                    };
                }
                _ => {}
            }
        }
        Self { length: None, closes, empty: false, attributes }
    }
}

fn syntax(lines: &Lines<'_>, error: &roxmltree::Error) -> Error {
    use roxmltree::Error as E;
    let message = match error {
        E::DtdDetected => "document types with entities are not read".to_owned(),
        E::NodesLimitReached => format!("the text has more than {MAX_NODES} XML nodes"),
        E::NoRootNode => "there is no XML element".to_owned(),
        E::UnclosedRootNode | E::UnexpectedEndOfStream => "the XML text ends too early".to_owned(),
        E::UnexpectedCloseTag(expected, actual, _) => {
            format!("expected </{}>, not </{}>", short(expected), short(actual))
        }
        other => {
            // The location already contains the line.
            let message = other.to_string().replacen(&format!(" at {}", other.pos()), "", 1);
            format!("not well-formed XML: {}", short(&message))
        }
    };
    let ends = matches!(error, E::UnclosedRootNode | E::UnexpectedEndOfStream);
    let line = if ends { lines.at(usize::MAX) } else { error.pos().row };
    Error::syntax(Place { line: Some(line), element: String::new() }, message)
}
