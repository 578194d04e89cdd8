//! xacro, the macro language of robot descriptions: expands a text to URDF (or SDF, MJCF).
//!
//! Supported are properties with their scopes, expressions `${…}` in the subset of Python's syntax that robot descriptions use,
//! `$(arg) $(find) $(env) $(optenv) $(eval) $(cwd)`, macros with defaults and blocks, conditions, inclusion with namespaces, computed
//! elements and attributes, and YAML files. Unsupported features result in an error that contains the file, the line and the command
//! that expands the file.

mod arithmetic;
mod builtins;
mod evaluate;
mod expand;
mod format;
mod methods;
mod parameters;
mod scope;
mod syntax;
mod text;
mod tree;
mod value;
mod yaml;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use super::check_size;
use super::repair::{Repaired, repaired, with_xacro_prefix};
use crate::Result;
use scope::{Macros, Scopes};
use tree::Element;
use value::{Scope, Value};

/// Maximum work of one expansion: approximately the number of bytes copied, or ten times the number of expression steps.
const MOST_WORK: u64 = 300_000_000;
/// Work of one element; a file of 64 MB has fewer elements than this allows.
const ELEMENT: u64 = 400;
/// Maximum nesting of elements, macro calls, inclusions, definitions and expressions.
const MOST_LEVELS: u32 = 600;
/// Maximum number of files that one text includes.
const MOST_FILES: usize = 1000;

/// Environment of a text: files, packages and environment variables.
pub trait Files {
    /// Reads the text of a file.
    fn text(&self, path: &str) -> Result<String, String>;

    /// Returns the folder of a package.
    fn package(&self, name: &str) -> Result<String, String>;

    /// Returns an environment variable.
    fn variable(&self, name: &str) -> Option<String>;

    /// Returns the working directory.
    fn folder(&self) -> Option<String>;
}

/// Environment of a text without other files.
pub struct NoFiles;

impl Files for NoFiles {
    fn text(&self, path: &str) -> Result<String, String> {
        super::no_includes(path)
    }

    fn package(&self, name: &str) -> Result<String, String> {
        Err(format!("cannot find the package \"{name}\": the model was not read from a file"))
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn folder(&self) -> Option<String> {
        None
    }
}

/// Expanded text without macros.
#[derive(Debug, Clone)]
pub struct Expanded {
    /// Text of the model.
    pub text: String,
    /// Warnings about ignored content, and warnings issued by the text itself.
    pub warnings: Vec<String>,
}

/// Commands by which a text that must be expanded is recognized. `$(find …)` also occurs in names of meshes of expanded texts.
const COMMANDS: [&str; 5] = ["arg", "cwd", "env", "eval", "optenv"];

/// Returns whether a text uses xacro: it contains xacro elements, or declares its namespace and [has expressions](has_expressions).
pub fn is_xacro(text: &str) -> bool {
    let Some(text) = without_comments(text) else { return false };
    text.contains("<xacro:") || (text.contains("xmlns:xacro") && contains_expression(&text))
}

/// Returns whether a text contains `${…}` or a command of xacro such as `$(arg …)` and `$(optenv …)`. A file with the name of a xacro
/// file is then expanded, even if it does not declare the namespace.
pub fn has_expressions(text: &str) -> bool {
    without_comments(text).is_some_and(|text| contains_expression(&text))
}

/// Returns an XML text without its comments; `None` for other texts.
fn without_comments(text: &str) -> Option<String> {
    if !text.trim_start_matches('\u{feff}').trim_start().starts_with('<') {
        return None;
    }
    let (mut rest, mut outside) = (text, String::new());
    while let Some(start) = rest.find("<!--") {
        outside.push_str(&rest[..start]);
        rest = rest[start..].find("-->").map_or("", |end| &rest[start + end + 3..]);
    }
    outside.push_str(rest);
    Some(outside)
}

fn contains_expression(text: &str) -> bool {
    let is_command = |(at, _): (usize, &str)| {
        let inside = text[at + 2..].trim_start();
        let end = inside.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(inside.len());
        COMMANDS.contains(&&inside[..end])
    };
    text.contains("${") || text.match_indices("$(").any(is_command)
}

/// Expands a text.
///
/// `file` is the name of the text's file; included files are relative to it. `arguments` are the values of its `<xacro:arg>`.
///
/// ```
/// use inertial::mechanism::read::xacro::{NoFiles, expand};
/// let text = r#"<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
///   <xacro:arg name="prefix" default="left_"/>
///   <xacro:macro name="rod" params="side l:=0.5"><link name="${side}rod" length="${2 * l}"/></xacro:macro>
///   <xacro:rod side="$(arg prefix)"/></robot>"#;
/// let text = expand(text, "robot.xacro", &[("prefix".into(), "right_".into())], &NoFiles)?.text;
/// assert!(text.contains(r#"<link name="right_rod" length="1.0"/>"#));
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn expand(text: &str, file: &str, arguments: &[(String, String)], files: &dyn Files) -> Result<Expanded> {
    check_size(text)?;
    let Repaired { text, mut warnings, .. } = repaired(text);
    let root = Element::parse(&with_xacro_prefix(text, &mut warnings), "")?;
    let machine = Machine {
        main: file.to_owned(),
        files,
        stack: RefCell::new(vec![file.to_owned()]),
        included: Cell::new(0),
        arguments: RefCell::new(arguments.iter().cloned().collect()),
        known: RefCell::default(),
        left: Cell::new(MOST_WORK),
        levels: Cell::new(0),
        warnings: RefCell::new(warnings),
    };
    let scopes = Scopes { names: Rc::new(Scope::default()), macros: Rc::new(Macros::default()) };
    let expanded = machine.root(&root, &scopes);
    scopes.names.clear();
    let expanded = expanded?;
    for (name, _) in arguments {
        if !machine.known.borrow().contains(name) {
            let known: Vec<String> = machine.known.borrow().iter().cloned().collect();
            let hint = crate::nearest_hint(name, known.iter().map(String::as_str));
            machine.warn(format!("the text has no argument \"{name}\"{hint}"));
        }
    }
    let mut out = "<?xml version=\"1.0\"?>\n".to_owned();
    expanded.write(&mut out, 0);
    check_size(&out)?;
    Ok(Expanded { text: out, warnings: machine.warnings.into_inner() })
}

/// State of an expansion.
struct Machine<'a> {
    /// Name of the main file of the model.
    main: String,
    files: &'a dyn Files,
    /// Files being read, the innermost last.
    stack: RefCell<Vec<String>>,
    included: Cell<usize>,
    arguments: RefCell<BTreeMap<String, String>>,
    /// Arguments that the text declares or uses.
    known: RefCell<HashSet<String>>,
    /// Remaining work.
    left: Cell<u64>,
    levels: Cell<u32>,
    warnings: RefCell<Vec<String>>,
}

/// Reason why an expression has no value.
#[derive(Debug)]
struct Fault {
    message: String,
    supported: bool,
}

impl Fault {
    fn wrong(message: impl Into<String>) -> Self {
        Self { message: message.into(), supported: true }
    }

    fn unsupported(feature: impl Into<String>) -> Self {
        Self { message: feature.into(), supported: false }
    }
}

/// Level of nesting; dropping it ends the level.
struct Level<'a>(&'a Cell<u32>);

impl Drop for Level<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Machine<'_> {
    fn spend(&self, work: u64) -> Result<(), Fault> {
        match self.left.get().checked_sub(work) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                Err(Fault::wrong("the text expands to more than is read (the macros need too much work)"))
            }
        }
    }

    /// Counts the work of writing a value.
    fn spend_on(&self, value: &Value) -> Result<(), Fault> {
        self.spend(value.size(self.left.get() as usize) as u64)
    }

    fn deeper(&self) -> Result<Level<'_>, Fault> {
        if self.levels.get() >= MOST_LEVELS {
            return Err(Fault::wrong(format!(
                "macros, files or definitions are nested deeper than {MOST_LEVELS} levels"
            )));
        }
        self.levels.set(self.levels.get() + 1);
        Ok(Level(&self.levels))
    }

    fn warn(&self, message: String) {
        let mut warnings = self.warnings.borrow_mut();
        if warnings.len() < 100 && !warnings.contains(&message) {
            warnings.push(message);
        }
    }

    /// Returns the value of an argument.
    fn argument(&self, name: &str) -> Result<String, Fault> {
        self.known.borrow_mut().insert(name.to_owned());
        let missing = || Fault::wrong(format!("the argument \"{name}\" is not given"));
        self.arguments.borrow().get(name).cloned().ok_or_else(missing)
    }

    /// Returns a file name relative to the file being read.
    fn resolve_path(&self, name: &str) -> String {
        let stack = self.stack.borrow();
        let folder = stack.last().and_then(|file| file.rsplit_once('/')).map(|(folder, _)| folder);
        match folder {
            Some(folder) if !name.starts_with('/') => format!("{folder}/{name}"),
            _ => name.to_owned(),
        }
    }

    /// Returns the text of another file.
    fn other_file(&self, path: &str) -> Result<String, Fault> {
        self.included.set(self.included.get() + 1);
        if self.included.get() > MOST_FILES {
            return Err(Fault::wrong(format!("the text includes more than {MOST_FILES} files")));
        }
        let text = self.files.text(path).map_err(Fault::wrong)?;
        self.spend(text.len() as u64)?;
        Ok(text)
    }

    fn load_yaml(&self, name: &str) -> Result<Value, Fault> {
        let path = self.resolve_path(name);
        let text = self.other_file(&path)?;
        yaml::read(self, &text)
            .map_err(|fault| Fault { message: format!("file \"{path}\": {}", fault.message), ..fault })
    }
}
