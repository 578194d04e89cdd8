//! Elements of xacro texts and of the expanded text.

use std::fmt::Write as _;
use std::rc::Rc;

use super::super::xml::{Element as Parsed, Xml, quoted};
use crate::{Error, Place, Result};

/// Element with its location in the text.
pub(super) struct Element {
    pub tag: String,
    pub attributes: Vec<(String, String)>,
    pub children: Vec<Node>,
    pub origin: Origin,
}

/// File and line of an element.
#[derive(Clone)]
pub(super) struct Origin {
    /// File name; empty for the main file of the model.
    pub file: Rc<str>,
    pub line: u32,
}

/// Content of an element.
#[derive(Clone)]
pub(super) enum Node {
    Element(Rc<Element>),
    Text(Rc<str>),
}

impl Element {
    /// Parses a text; `file` is empty for the main file of the model.
    pub fn parse(text: &str, file: &str) -> Result<Rc<Self>> {
        let xml = if file.is_empty() { Xml::parse(text)? } else { Xml::parse_file(text, file)? };
        Ok(Self::copy(xml.root(), &file.into()))
    }

    fn copy(element: Parsed<'_>, file: &Rc<str>) -> Rc<Self> {
        let children = element.nodes().map(|node| match node {
            Ok(child) => Node::Element(Self::copy(child, file)),
            Err(text) => Node::Text(text.into()),
        });
        Rc::new(Self {
            tag: element.qualified_tag().to_owned(),
            attributes: element.qualified_attributes(),
            children: children.collect(),
            origin: Origin { file: file.clone(), line: element.line() },
        })
    }

    /// Returns the text of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Returns the text of an attribute; its absence is an error.
    pub fn required(&self, name: &str) -> Result<&str> {
        self.attribute(name).ok_or_else(|| self.error(format!("it needs the attribute \"{name}\"")))
    }

    /// Returns the location for messages.
    pub fn place(&self) -> Place {
        let name = self.attribute("name").map_or(String::new(), |name| format!(" name={}", quoted(name)));
        let file = &self.origin.file;
        let file = if file.is_empty() { String::new() } else { format!(" in file \"{file}\"") };
        Place::line(self.origin.line, format!("<{}{name}>{file}", self.tag))
    }

    /// Creates a model error located at this element.
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::model(self.place(), message)
    }

    /// Writes the element as indented XML.
    pub fn write(&self, out: &mut String, indent: usize) {
        let _ = write!(out, "{:indent$}<{}", "", self.tag);
        for (name, value) in &self.attributes {
            let _ = write!(out, " {name}=\"");
            escape(value, out);
            out.push('"');
        }
        let is_blank = |node: &Node| matches!(node, Node::Text(text) if text.trim().is_empty());
        if self.children.iter().all(is_blank) {
            out.push_str("/>\n");
            return;
        }
        out.push('>');
        if let [Node::Text(text)] = &self.children[..] {
            escape(text, out);
        } else {
            out.push('\n');
            for node in self.children.iter().filter(|node| !is_blank(node)) {
                match node {
                    Node::Element(element) => element.write(out, indent + 2),
                    Node::Text(text) => {
                        escape(text.trim(), out);
                        out.push('\n');
                    }
                }
            }
            let _ = write!(out, "{:indent$}", "");
        }
        let _ = writeln!(out, "</{}>", self.tag);
    }
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' => out.push_str("&#9;"),
            '\r' => out.push_str("&#13;"),
            c => out.push(c),
        }
    }
}
