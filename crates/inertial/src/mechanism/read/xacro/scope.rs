//! Names and macros visible to expressions and macro calls.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::tree::Element;
use super::value::{Entry, Scope, Value};

/// Macro definition.
pub(super) struct Macro {
    pub body: Rc<Element>,
    pub parameters: Vec<Parameter>,
}

/// Parameter of a macro; names of blocks start with asterisks.
pub(super) struct Parameter {
    pub name: String,
    /// Whether the property of the same name is the default.
    pub forward: bool,
    pub default: Option<String>,
}

/// Macros of one file, macro call or namespace.
#[derive(Default)]
pub(super) struct Macros {
    own: RefCell<HashMap<String, MacroEntry>>,
    parent: Option<Rc<Macros>>,
}

#[derive(Clone)]
enum MacroEntry {
    Macro(Rc<Macro>),
    Space(Rc<Macros>),
}

impl Macros {
    /// Creates the macros of a macro call.
    pub fn inside(parent: &Rc<Self>) -> Rc<Self> {
        Rc::new(Self { own: RefCell::default(), parent: Some(parent.clone()) })
    }

    /// Defines a macro.
    pub fn define(&self, name: &str, meaning: Macro) {
        self.own.borrow_mut().insert(name.to_owned(), MacroEntry::Macro(Rc::new(meaning)));
    }

    /// Adds a namespace.
    pub fn add_space(&self, name: &str) -> Rc<Self> {
        let space = Rc::new(Self::default());
        self.own.borrow_mut().insert(name.to_owned(), MacroEntry::Space(space.clone()));
        space
    }

    fn find(&self, name: &str) -> Option<MacroEntry> {
        let own = self.own.borrow().get(name).cloned();
        own.or_else(|| self.parent.as_ref()?.find(name))
    }
}

/// Properties and macros visible at a location.
#[derive(Clone)]
pub(super) struct Scopes {
    pub names: Rc<Scope>,
    pub macros: Rc<Macros>,
}

impl Scopes {
    /// Returns a macro by its name, including namespaces (`arm.link`), and the scopes in which it is expanded.
    pub fn find_macro(&self, name: &str) -> Option<(Scopes, Rc<Macro>)> {
        if let Some(MacroEntry::Macro(found)) = self.macros.find(name) {
            return Some((self.clone(), found));
        }
        let (spaces, name) = name.rsplit_once('.')?;
        let mut scopes = self.clone();
        for space in spaces.split('.') {
            let MacroEntry::Space(macros) = scopes.macros.find(space)? else { return None };
            let (_, Entry::Ready(Value::Space(names))) = scopes.names.find(space)? else { return None };
            scopes = Self { names, macros };
        }
        match scopes.macros.find(name)? {
            MacroEntry::Macro(found) => Some((scopes, found)),
            MacroEntry::Space(_) => None,
        }
    }
}
