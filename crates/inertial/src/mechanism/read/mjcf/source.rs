//! Model text with its included files.

use std::collections::HashMap;

use super::super::repair::{Repaired, repaired};
use super::super::xml::{Element, Xml, quoted};
use super::super::{Include, MAX_TEXT};
use crate::{Error, Result};

/// Maximum number of files included by one model.
const MAX_FILES: usize = 1000;

/// Included file.
pub(super) struct File {
    name: String,
    /// Text without the faults that the warnings report.
    text: String,
    pub warnings: Vec<String>,
}

/// Fetches all included files once each, including nested ones.
pub(super) fn fetch(main: &Xml<'_>, include: Include<'_>) -> Result<Vec<File>> {
    let mut files = included(main, "", include, &[])?;
    let mut next = 0;
    while next < files.len() {
        let File { name, text, .. } = &files[next];
        let more = included(&Xml::parse_file(text, name)?, name, include, &files)?;
        files.extend(more);
        next += 1;
    }
    Ok(files)
}

/// Returns the files that one text includes and that are not yet known.
fn included(xml: &Xml<'_>, file: &str, include: Include<'_>, known: &[File]) -> Result<Vec<File>> {
    let mut out: Vec<File> = Vec::new();
    let mut open = vec![xml.root()];
    while let Some(element) = open.pop() {
        if let Some((foreign, _)) = element.foreign_children().next() {
            return Err(foreign.error("it belongs to another XML namespace than the model"));
        }
        if element.tag() != "include" {
            open.extend(element.children());
            continue;
        }
        let name = element.required_identifier("file")?;
        let before = || known.iter().chain(&out);
        if before().any(|f| f.name == name) {
            let message = format!("{} is included already: a file can be included once only", quoted(name));
            return Err(element.error(message));
        }
        // Names are relative to the main model file; otherwise to the including file.
        let beside = file.rsplit_once('/').map(|(folder, _)| format!("{folder}/{name}"));
        let text = match (include.text(name), beside) {
            (Ok(text), _) => text,
            (Err(first), Some(beside)) => include.text(&beside).map_err(|_| element.error(first))?,
            (Err(first), None) => return Err(element.error(first)),
        };
        let length: usize = before().map(|f| f.text.len()).sum();
        if length + text.len() > MAX_TEXT || before().count() == MAX_FILES {
            let message =
                format!("the model includes more than {MAX_FILES} files or {} MB of text", MAX_TEXT >> 20);
            return Err(element.error(message));
        }
        let Repaired { text, warnings, .. } = repaired(&text);
        let warnings = warnings.iter().map(|warning| format!("file {}: {warning}", quoted(name))).collect();
        out.push(File { name: name.to_owned(), text: text.into_owned(), warnings });
    }
    Ok(out)
}

/// All parsed files; [`Source::children`] reads them as one.
pub(super) struct Source<'t> {
    main: Xml<'t>,
    included: HashMap<&'t str, Xml<'t>>,
}

impl<'t> Source<'t> {
    /// Parses the included files again and keeps the result.
    pub(super) fn new(main: Xml<'t>, files: &'t [File]) -> Result<Self> {
        let parse = |f: &'t File| Ok((f.name.as_str(), Xml::parse_file(&f.text, &f.name)?));
        Ok(Self { main, included: files.iter().map(parse).collect::<Result<_>>()? })
    }

    /// Returns the element `<mujoco>`.
    pub(super) fn root(&self) -> Result<Element<'_>> {
        let root = self.main.root();
        match root.tag() {
            "mujoco" => Ok(root),
            other => Err(Error::syntax(
                root.place(),
                format!("the outermost element is <{other}>, expected <mujoco>"),
            )),
        }
    }

    /// Returns the child elements, with each `<include>` replaced by the elements of its file.
    pub(super) fn children<'a>(&'a self, element: Element<'a>) -> Vec<Element<'a>> {
        let mut out = Vec::new();
        // Includes cannot form a cycle: each file is included once.
        let mut open: Vec<Element<'a>> = element.children().collect();
        open.reverse();
        while let Some(child) = open.pop() {
            if child.tag() != "include" {
                out.push(child);
            } else if let Some(xml) = child.attribute("file").and_then(|name| self.included.get(name)) {
                let at = open.len();
                open.extend(xml.root().children());
                open[at..].reverse();
            }
        }
        out
    }

    /// Returns all sections of this name; sections may be repeated.
    pub(super) fn section<'a>(&'a self, name: &str) -> Result<Vec<Element<'a>>> {
        Ok(self.children(self.root()?).into_iter().filter(|e| e.tag() == name).collect())
    }
}
