//! Names visible to expressions and macro calls.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::tree::Element;
use super::value::Value;

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
