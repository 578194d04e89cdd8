//! Values of expressions, formatted as in Python, and the names that have them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::rc::Rc;

use super::tree::Element;

/// Value of a property or an expression.
#[derive(Clone)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Rc<str>),
    List(Rc<[Value]>),
    Tuple(Rc<[Value]>),
    Dict(Rc<[(Value, Value)]>),
    /// Names of a file included with a namespace.
    Space(Rc<Scope>),
    /// Module: `math`, `python` or `xacro`.
    Module(&'static str),
    Function(&'static str),
    /// Elements passed to a macro or stored in a property.
    Block(Rc<Element>),
}

impl Value {
    /// Creates a number of entries; no list exceeds the range of integers.
    pub fn count(count: usize) -> Self {
        Self::Int(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Creates a text.
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// Interprets a property's text: quoted text, an integer, a number, `true` or `false`, otherwise the text itself.
    pub fn literal(text: &str) -> Self {
        if text.len() >= 2 && text.starts_with('\'') && text.ends_with('\'') {
            return Self::text(&text[1..text.len() - 1]);
        }
        if text.contains('_') {
            return Self::text(text);
        }
        let plain = text.trim();
        if let Some(number) = number(plain) {
            return number;
        }
        match text {
            "true" | "True" => Self::Bool(true),
            "false" | "False" => Self::Bool(false),
            _ => Self::text(text),
        }
    }

    /// Applies [`literal`](Self::literal) to texts.
    pub fn or_literal(self) -> Self {
        match &self {
            Self::Text(text) => Self::literal(text),
            _ => self,
        }
    }

    /// Returns the name of the type in Python.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "str",
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Dict(_) => "dict",
            Self::Space(_) | Self::Module(_) => "namespace",
            Self::Function(_) => "function",
            Self::Block(_) => "block",
        }
    }

    /// Returns the truth value.
    pub fn truth(&self) -> bool {
        match self {
            Self::None => false,
            Self::Bool(x) => *x,
            Self::Int(x) => *x != 0,
            Self::Float(x) => *x != 0.0,
            Self::Text(x) => !x.is_empty(),
            Self::List(x) | Self::Tuple(x) => !x.is_empty(),
            Self::Dict(x) => !x.is_empty(),
            _ => true,
        }
    }

    /// Returns an integer, or a boolean as an integer.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Bool(x) => Some(i64::from(*x)),
            Self::Int(x) => Some(*x),
            _ => None,
        }
    }

    /// Returns a number of any type.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Float(x) => Some(*x),
            other => other.integer().map(|x| x as f64),
        }
    }

    /// Returns the entries of a list or tuple.
    pub fn entries(&self) -> Option<&[Value]> {
        match self {
            Self::List(x) | Self::Tuple(x) => Some(x),
            _ => None,
        }
    }

    /// Returns the approximate number of bytes of the written value; stops counting at `most`.
    pub fn size(&self, most: usize) -> usize {
        let sum = |entries: &mut dyn Iterator<Item = &Value>| {
            let mut total = 2_usize;
            for entry in entries {
                if total > most {
                    break;
                }
                total = total.saturating_add(entry.size(most - total) + 2);
            }
            total
        };
        match self {
            Self::Text(x) => x.len(),
            Self::List(x) | Self::Tuple(x) => sum(&mut x.iter()),
            Self::Dict(x) => sum(&mut x.iter().flat_map(|(key, value)| [key, value])),
            _ => 8,
        }
    }
}

/// Parses a number as Python's `int` and `float` do.
pub(super) fn number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().map(Value::Int).ok().or_else(|| text.parse().map(Value::Float).ok());
    }
    let word = digits.to_ascii_lowercase();
    let plain = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    (plain || matches!(word.as_str(), "inf" | "infinity" | "nan"))
        .then(|| text.parse().map(Value::Float).ok())
        .flatten()
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            other => other.write_repr(f),
        }
    }
}

impl Value {
    fn write_repr(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, entries: &[Value]| {
            entries.iter().enumerate().try_for_each(|(k, entry)| {
                f.write_str(if k > 0 { ", " } else { "" })?;
                entry.write_repr(f)
            })
        };
        match self {
            Self::None => f.write_str("None"),
            Self::Bool(x) => f.write_str(if *x { "True" } else { "False" }),
            Self::Int(x) => write!(f, "{x}"),
            Self::Float(x) => f.write_str(&float(*x)),
            Self::Text(x) => write_quoted(f, x),
            Self::List(x) => {
                f.write_char('[')?;
                list(f, x)?;
                f.write_char(']')
            }
            Self::Tuple(x) => {
                f.write_char('(')?;
                list(f, x)?;
                f.write_str(if x.len() == 1 { ",)" } else { ")" })
            }
            Self::Dict(x) => {
                f.write_char('{')?;
                for (k, (key, value)) in x.iter().enumerate() {
                    f.write_str(if k > 0 { ", " } else { "" })?;
                    key.write_repr(f)?;
                    f.write_str(": ")?;
                    value.write_repr(f)?;
                }
                f.write_char('}')
            }
            Self::Space(_) | Self::Module(_) | Self::Function(_) | Self::Block(_) => {
                write!(f, "<{}>", self.kind())
            }
        }
    }
}

/// Writes a text in quotes.
fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    f.write_char(quote)?;
    for c in text.chars() {
        match c {
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            '\r' => f.write_str("\\r")?,
            c if c == quote => write!(f, "\\{c}")?,
            c => f.write_char(c)?,
        }
    }
    f.write_char(quote)
}

/// Formats a number as Python does: the shortest digits that reproduce it, with an exponent below 1e-4 and from 1e16.
pub(super) fn float(x: f64) -> String {
    if x.is_nan() {
        return "nan".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{x:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        exponent if x != 0.0 && !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => {
            let plain = format!("{x}");
            if plain.contains('.') { plain } else { format!("{plain}.0") }
        }
    }
}

/// Properties of one file, macro call or namespace, with the enclosing scopes.
#[derive(Default)]
pub(super) struct Scope {
    names: RefCell<HashMap<String, Entry>>,
    parent: Option<Rc<Scope>>,
    is_namespace: bool,
}

/// Meaning of a name.
#[derive(Clone)]
pub(super) enum Entry {
    Ready(Value),
    /// Text that is evaluated at its first use.
    Pending(Rc<str>),
    /// Text that is being evaluated.
    Evaluating,
}

impl Scope {
    /// Creates the scope of a macro call, inside `parent`.
    pub fn inside(parent: &Rc<Self>) -> Rc<Self> {
        Rc::new(Self { parent: Some(parent.clone()), ..Self::default() })
    }

    /// Creates a namespace inside `parent`.
    pub fn namespace(parent: &Rc<Self>) -> Rc<Self> {
        Rc::new(Self { parent: Some(parent.clone()), is_namespace: true, ..Self::default() })
    }

    /// Returns the innermost scope that contains a name.
    pub fn find(self: &Rc<Self>, name: &str) -> Option<(Rc<Self>, Entry)> {
        let mut scope = self;
        loop {
            if let Some(entry) = scope.names.borrow().get(name) {
                return Some((scope.clone(), entry.clone()));
            }
            scope = scope.parent.as_ref()?;
        }
    }

    /// Returns a block by its name including the asterisks.
    pub fn block(self: &Rc<Self>, name: &str) -> Option<Rc<Element>> {
        match self.find(name) {
            Some((_, Entry::Ready(Value::Block(block)))) => Some(block),
            _ => None,
        }
    }

    /// Sets the meaning of a name.
    pub fn set(&self, name: &str, entry: Entry) {
        self.names.borrow_mut().insert(name.to_owned(), entry);
    }

    /// Removes a name here and in all enclosing scopes.
    pub fn remove(&self, name: &str) {
        let mut scope = Some(self);
        while let Some(own) = scope {
            own.names.borrow_mut().remove(name);
            scope = own.parent.as_deref();
        }
    }

    /// Removes all names, because namespaces refer to the scope that contains them.
    pub fn clear(&self) {
        self.names.borrow_mut().clear();
    }

    /// Returns the outermost scope.
    pub fn top(self: &Rc<Self>) -> Rc<Self> {
        let mut scope = self;
        while let Some(parent) = &scope.parent {
            scope = parent;
        }
        scope.clone()
    }

    /// Returns the scope that `scope="parent"` refers to: the caller's scope for a macro.
    pub fn caller(self: &Rc<Self>) -> Option<Rc<Self>> {
        let mut target = self.parent.as_ref()?;
        while !self.is_namespace && target.is_namespace {
            target = target.parent.as_ref()?;
        }
        Some(target.clone())
    }
}
