//! Text format of USD (`.usda`).

use super::layer::{Layer, ListEdit, MAX_DEPTH, MAX_LIST, MAX_PRIMS, Prim, Target, Value, matters};
use crate::{Error, Place, Result};

/// Reads a layer.
pub(super) fn read(text: &str, file: &str) -> Result<Layer> {
    let mut parser = Parser { text, at: 0, file, counted: (0, 1), prims: 0 };
    let first = text.lines().next().unwrap_or_default();
    let version = first.trim().strip_prefix("#usda").map(str::trim);
    if version.is_none_or(|v| !v.starts_with("1.")) {
        return Err(parser.error("the first line is not \"#usda 1.0\""));
    }
    parser.at = first.len();
    let mut layer = Layer { file: file.to_owned(), ..Layer::default() };
    parser.layer(&mut layer)?;
    Ok(layer)
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    file: &'t str,
    /// Position and its line.
    counted: (usize, u32),
    prims: usize,
}

/// Kind of list edit.
#[derive(Clone, Copy, PartialEq)]
enum Edit {
    Set,
    Prepend,
    Append,
    Delete,
    Reorder,
}

fn edit(word: &str) -> Option<Edit> {
    match word {
        "prepend" => Some(Edit::Prepend),
        "append" | "add" => Some(Edit::Append),
        "delete" => Some(Edit::Delete),
        "reorder" => Some(Edit::Reorder),
        _ => None,
    }
}

fn change<T>(list: &mut ListEdit<T>, edit: Edit, items: Vec<T>) {
    match edit {
        Edit::Set => list.explicit = Some(items),
        Edit::Prepend => list.prepended = items,
        Edit::Append => list.appended.extend(items),
        Edit::Delete => list.deleted = items,
        Edit::Reorder => {}
    }
}

impl<'t> Parser<'t> {
    fn line(&mut self) -> u32 {
        let (from, line) = self.counted;
        let (from, line) = if from > self.at { (0, 1) } else { (from, line) };
        let more = self.text.as_bytes()[from..self.at].split(|b| *b == b'\n').count() - 1;
        self.counted = (self.at, line.saturating_add(more as u32));
        self.counted.1
    }

    fn error(&mut self, message: impl Into<String>) -> Error {
        Error::syntax(Place::line(self.line(), self.file), message)
    }

    /// Skips spaces and comments, and returns the remaining text.
    fn rest(&mut self) -> &'t str {
        let bytes = self.text.as_bytes();
        loop {
            while bytes.get(self.at).is_some_and(|b| b.is_ascii_whitespace() || *b == b';') {
                self.at += 1;
            }
            let rest = &self.text[self.at..];
            if rest.starts_with('#') || rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                self.at += rest.find("*/").map_or(rest.len(), |n| n + 2);
            } else {
                return rest;
            }
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.rest().bytes().next()
    }

    fn accept(&mut self, symbol: u8) -> bool {
        let found = self.peek() == Some(symbol);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: u8) -> Result<()> {
        if self.accept(symbol) {
            return Ok(());
        }
        let found = self.found();
        Err(self.error(format!("found {found}, expected '{}'", symbol as char)))
    }

    /// Returns the next character for messages.
    fn found(&mut self) -> String {
        match self.rest().chars().next() {
            Some(c) => format!("'{}'", c.escape_debug()),
            None => "the end of the file".to_owned(),
        }
    }

    /// Reads a word: letters, digits, and the separators of compound names.
    fn word(&mut self) -> &'t str {
        let rest = self.rest();
        let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '|');
        let end = rest.find(|c| !inside(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn required_word(&mut self, what: &str) -> Result<&'t str> {
        let word = self.word();
        if !word.is_empty() {
            return Ok(word);
        }
        let found = self.found();
        Err(self.error(format!("found {found}, expected {what}")))
    }

    fn string(&mut self) -> Result<String> {
        let rest = self.rest();
        let quotes = ["\"\"\"", "'''", "\"", "'"];
        let Some(quote) = quotes.into_iter().find(|q| rest.starts_with(q)) else {
            let found = self.found();
            return Err(self.error(format!("found {found}, expected a text in quotes")));
        };
        let mut out = String::new();
        let inner = &rest[quote.len()..];
        let mut chars = inner.char_indices();
        while let Some((i, c)) = chars.next() {
            if inner[i..].starts_with(quote) {
                self.at += quote.len() + i + quote.len();
                return Ok(out);
            }
            match c {
                '\\' => out.push(match chars.next() {
                    Some((_, 'n')) => '\n',
                    Some((_, 't')) => '\t',
                    Some((_, 'r')) => '\r',
                    Some((_, other)) => other,
                    None => break,
                }),
                '\n' if quote.len() == 1 => break,
                c => out.push(c),
            }
        }
        Err(self.error("the text in quotes does not end"))
    }

    /// Reads the text between two delimiters.
    fn between(&mut self, open: &str, close: &str) -> Result<String> {
        let Some(inner) = self.rest().strip_prefix(open) else {
            let found = self.found();
            return Err(self.error(format!("found {found}, expected '{open}'")));
        };
        let Some(end) = inner.find(close) else {
            return Err(self.error(format!("'{open}' without '{close}'")));
        };
        self.at += open.len() + end + close.len();
        Ok(inner[..end].trim().to_owned())
    }

    fn path(&mut self) -> Result<String> {
        self.between("<", ">")
    }

    fn asset(&mut self) -> Result<String> {
        let mark = if self.rest().starts_with("@@@") { "@@@" } else { "@" };
        self.between(mark, mark)
    }

    fn number(&mut self) -> Option<f64> {
        let rest = self.rest();
        let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let token = &rest[..rest.find(|c| !inside(c)).unwrap_or(rest.len())];
        let number = token.parse().ok()?;
        self.at += token.len();
        Some(number)
    }

    /// Reads a value; lists and tuples are flattened to one list.
    fn value(&mut self, keep: bool) -> Result<Option<Value>> {
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        let mut depth = 0usize;
        let mut blocked = false;
        loop {
            match self.peek() {
                Some(b'(' | b'[') => {
                    self.at += 1;
                    depth += 1;
                    continue;
                }
                Some(b')' | b']') if depth > 0 => {
                    self.at += 1;
                    depth -= 1;
                }
                Some(b',') if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                Some(b'{') => self.skip()?,
                Some(b'"' | b'\'') => texts.push(self.string()?),
                Some(b'@') => texts.push(self.asset()?),
                Some(b'<') => texts.push(self.path()?),
                _ => match self.number() {
                    Some(number) if keep => numbers.push(number),
                    Some(_) => {}
                    None => match self.required_word("a value")? {
                        "None" if depth == 0 => blocked = true,
                        "true" => numbers.push(1.0),
                        "false" => numbers.push(0.0),
                        other => texts.push(other.to_owned()),
                    },
                },
            }
            if !keep {
                texts.clear();
            }
            if depth == 0 {
                break;
            }
        }
        Ok(match (keep, blocked) {
            (false, _) => None,
            (true, true) => Some(Value::Blocked),
            (true, false) if numbers.is_empty() => Some(Value::Texts(texts)),
            _ => Some(Value::Numbers(numbers)),
        })
    }

    /// Skips a bracketed part.
    fn skip(&mut self) -> Result<()> {
        let mut depth = 0usize;
        loop {
            match self.peek() {
                Some(b'(' | b'[' | b'{') => {
                    self.at += 1;
                    depth += 1;
                }
                Some(b')' | b']' | b'}') if depth > 0 => {
                    self.at += 1;
                    depth -= 1;
                }
                Some(b'"' | b'\'') => drop(self.string()?),
                Some(b'@') => drop(self.asset()?),
                Some(b'<') => drop(self.path()?),
                Some(_) if depth > 0 => {
                    self.at += self.rest().chars().next().map_or(0, char::len_utf8);
                }
                _ => return Err(self.error("brackets do not match")),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Reads one item, or several in brackets; an empty list for `None`.
    fn items<T>(&mut self, item: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        if self.rest().starts_with("None") {
            self.at += 4;
            return Ok(Vec::new());
        }
        if !self.accept(b'[') {
            return Ok(vec![item(self)?]);
        }
        let mut out = Vec::new();
        while !self.accept(b']') {
            out.push(item(self)?);
            self.accept(b',');
            if out.len() > MAX_LIST {
                return Err(self.error(format!("a list of more than {MAX_LIST} entries")));
            }
        }
        Ok(out)
    }

    /// Reads a reference or a payload; its time offset is ignored.
    fn target(&mut self) -> Result<Target> {
        let mut out = Target::default();
        match self.peek() {
            Some(b'@') => out.asset = self.asset()?,
            Some(b'<') => {}
            _ => {
                let found = self.found();
                return Err(self.error(format!("found {found}, expected @FILE@ or </PRIM>")));
            }
        }
        if self.peek() == Some(b'<') {
            out.path = self.path()?;
        }
        if self.peek() == Some(b'(') {
            self.skip()?;
        }
        Ok(out)
    }

    fn layer(&mut self, layer: &mut Layer) -> Result<()> {
        if self.accept(b'(') {
            while !self.accept(b')') {
                if matches!(self.peek(), Some(b'"' | b'\'')) {
                    self.string()?;
                    continue;
                }
                let mut key = self.required_word("the name of a field")?;
                if edit(key).is_some() {
                    key = self.required_word("the name of a field")?;
                }
                self.expect(b'=')?;
                match key {
                    "subLayers" => {
                        layer.sublayers = self.items(|p| Ok(p.target()?.asset))?;
                    }
                    "relocates" => {
                        layer.relocates = true;
                        self.skip()?;
                    }
                    _ => {
                        let value = self.value(true)?;
                        field_of_layer(layer, key, value.as_ref());
                    }
                }
            }
        }
        let mut root = Prim::default();
        while !self.rest().is_empty() {
            self.statement(&mut root, 0)?;
        }
        layer.root = root.into();
        Ok(())
    }

    /// Reads one statement of a prim's content.
    fn statement(&mut self, prim: &mut Prim, depth: usize) -> Result<()> {
        let start = self.at;
        let word = self.required_word("a prim or a property")?;
        match word {
            "def" | "over" | "class" => return self.prim(prim, word, depth),
            "variantSet" => return self.variant_set(prim, depth),
            "reorder" => {
                self.required_word("nameChildren or properties")?;
                self.expect(b'=')?;
                return self.value(false).map(drop);
            }
            _ => self.at = start,
        }
        self.property(prim)
    }

    fn contents(&mut self, prim: &mut Prim, depth: usize) -> Result<()> {
        self.prims += 1;
        if depth > MAX_DEPTH || self.prims > MAX_PRIMS {
            let message = format!(
                "prims are nested deeper than {MAX_DEPTH} levels, or there are more than {MAX_PRIMS} prims"
            );
            return Err(self.error(message));
        }
        if self.accept(b'(') {
            self.metadata(prim)?;
        }
        self.expect(b'{')?;
        while !self.accept(b'}') {
            self.statement(prim, depth)?;
        }
        Ok(())
    }

    fn prim(&mut self, parent: &mut Prim, specifier: &str, depth: usize) -> Result<()> {
        let line = self.line();
        let kind = self.word();
        let name = self.string()?;
        let prim = parent.child_mut(&name);
        kind.clone_into(&mut prim.kind);
        prim.line = Some(line);
        (prim.defined, prim.is_class) = (specifier == "def", specifier == "class");
        self.contents(prim, depth + 1)
    }

    fn variant_set(&mut self, prim: &mut Prim, depth: usize) -> Result<()> {
        let set = self.string()?;
        self.expect(b'=')?;
        self.expect(b'{')?;
        while !self.accept(b'}') {
            let name = self.string()?;
            self.contents(prim.variant_mut(&set, &name), depth + 1)?;
        }
        Ok(())
    }

    /// Reads the fields of a prim, after the opening bracket.
    fn metadata(&mut self, prim: &mut Prim) -> Result<()> {
        while !self.accept(b')') {
            if matches!(self.peek(), Some(b'"' | b'\'')) {
                self.string()?;
                continue;
            }
            let mut how = Edit::Set;
            let mut key = self.required_word("the name of a field")?;
            if let Some(edit) = edit(key) {
                how = edit;
                key = self.required_word("the name of a field")?;
            }
            self.expect(b'=')?;
            match key {
                "apiSchemas" => change(&mut prim.schemas, how, self.items(Self::string)?),
                "references" => change(&mut prim.arcs_mut().references, how, self.items(Self::target)?),
                "payload" => change(&mut prim.arcs_mut().payloads, how, self.items(Self::target)?),
                "inherits" => change(&mut prim.arcs_mut().inherits, how, self.items(Self::path)?),
                "specializes" => change(&mut prim.arcs_mut().specializes, how, self.items(Self::path)?),
                "variants" => {
                    self.expect(b'{')?;
                    while !self.accept(b'}') {
                        self.required_word("string")?;
                        let set = if matches!(self.peek(), Some(b'"' | b'\'')) {
                            self.string()?
                        } else {
                            self.required_word("a variant set")?.to_owned()
                        };
                        self.expect(b'=')?;
                        let choice = self.string()?;
                        prim.arcs_mut().selections.push((set, choice));
                    }
                }
                "active" => {
                    if let Some(Value::Numbers(x)) = self.value(true)? {
                        prim.active = x.first().map(|x| *x != 0.0);
                    }
                }
                _ => drop(self.value(false)?),
            }
        }
        Ok(())
    }

    fn property(&mut self, prim: &mut Prim) -> Result<()> {
        let mut how = Edit::Set;
        let mut word = self.required_word("a property")?;
        loop {
            match (word, edit(word)) {
                ("custom" | "uniform" | "varying" | "config", _) => {}
                (_, Some(edit)) => how = edit,
                _ => break,
            }
            word = self.required_word("the type of a property")?;
        }
        let is_relationship = word == "rel";
        if self.accept(b'[') {
            self.expect(b']')?;
        }
        let name = self.required_word("the name of a property")?;
        let field = if self.accept(b'.') { self.required_word("a field of the property")? } else { "" };
        let keep = matters(name) && how != Edit::Reorder;
        if self.accept(b'=') {
            match field {
                "" if is_relationship => {
                    let targets = self.items(Self::path)?;
                    if keep {
                        change(&mut prim.property_mut(name).targets, how, targets);
                    }
                }
                "" => {
                    let value = self.value(keep)?;
                    if keep {
                        prim.property_mut(name).value = value;
                    }
                }
                "timeSamples" if keep => {
                    self.expect(b'{')?;
                    while !self.accept(b'}') {
                        let _time = self.number();
                        self.expect(b':')?;
                        let first = prim.property_mut(name).sample.is_none();
                        let value = self.value(first)?;
                        if first {
                            prim.property_mut(name).sample = value;
                        }
                        self.accept(b',');
                    }
                }
                _ => drop(self.value(false)?),
            }
        } else if keep {
            prim.property_mut(name);
        }
        if self.peek() == Some(b'(') {
            self.skip()?;
        }
        Ok(())
    }
}

/// Stores a field of a layer.
pub(super) fn field_of_layer(layer: &mut Layer, key: &str, value: Option<&Value>) {
    let number = match value {
        Some(Value::Numbers(x)) => x.first().copied(),
        _ => None,
    };
    let text = match value {
        Some(Value::Texts(x)) => x.first().cloned(),
        _ => None,
    };
    match key {
        "defaultPrim" => layer.default_prim = text.unwrap_or_default(),
        "metersPerUnit" => layer.meters_per_unit = number,
        "kilogramsPerUnit" => layer.kilograms_per_unit = number,
        "upAxis" => layer.up_axis = text,
        _ => {}
    }
}
