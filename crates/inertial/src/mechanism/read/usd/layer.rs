//! One layer: a tree of prims with the properties that affect motion and mass.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use crate::{Error, Place, Result};

/// Maximum nesting depth of prims.
pub(super) const MAX_DEPTH: usize = 256;
/// Maximum number of prims of one layer, including variants.
pub(super) const MAX_PRIMS: usize = 500_000;
/// Maximum number of entries of a list of names, paths or files.
pub(super) const MAX_LIST: usize = 1000;

/// Value of a property.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Numbers of a scalar, a vector, a quaternion (real part first), a matrix (row by row) or an array of these.
    Numbers(Vec<f64>),
    /// Tokens, strings and asset paths.
    Texts(Vec<String>),
    /// Array in a crate file, decoded on demand.
    Stored(u64),
    /// Blocked value: hides the values of weaker layers.
    Blocked,
}

/// Edits of a list by one layer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ListEdit<T> {
    pub explicit: Option<Vec<T>>,
    pub prepended: Vec<T>,
    pub appended: Vec<T>,
    pub deleted: Vec<T>,
}

impl<T> Default for ListEdit<T> {
    fn default() -> Self {
        Self { explicit: None, prepended: Vec::new(), appended: Vec::new(), deleted: Vec::new() }
    }
}

impl<T: Clone + PartialEq> ListEdit<T> {
    /// Applies the edits to the list of the weaker layers.
    pub fn apply(&self, weaker: Vec<T>) -> Vec<T> {
        if let Some(list) = &self.explicit {
            return list.clone();
        }
        let own = |x: &T| self.prepended.contains(x) || self.appended.contains(x) || self.deleted.contains(x);
        let kept = weaker.into_iter().filter(|x| !own(x));
        let first = self.prepended.iter().filter(|x| !self.appended.contains(x)).cloned();
        first.chain(kept).chain(self.appended.iter().cloned()).collect()
    }

    /// Returns the same edits with converted entries.
    pub fn mapped<U>(&self, map: impl Fn(&T) -> U) -> ListEdit<U> {
        let all = |list: &Vec<T>| list.iter().map(&map).collect();
        ListEdit {
            explicit: self.explicit.as_ref().map(all),
            prepended: all(&self.prepended),
            appended: all(&self.appended),
            deleted: all(&self.deleted),
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        let explicit = self.explicit.as_ref().map_or(0, Vec::len);
        explicit + self.prepended.len() + self.appended.len() + self.deleted.len()
    }
}

/// Target of a reference or a payload: a prim of this or of another file.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Target {
    /// File name; empty for this layer stack.
    pub asset: String,
    /// Path of the prim; empty for the default prim.
    pub path: String,
}

impl Target {
    /// Returns the target with the full name of its file, as referenced in the file `layer`.
    pub fn from(&self, layer: &str) -> Self {
        let asset = if self.asset.is_empty() {
            String::new()
        } else {
            super::asset_path::resolved(layer, &self.asset)
        };
        Self { asset, path: self.path.clone() }
    }
}

/// Composition arcs of a prim.
#[derive(Debug, Clone, Default)]
pub(super) struct Arcs {
    pub references: ListEdit<Target>,
    pub payloads: ListEdit<Target>,
    pub inherits: ListEdit<String>,
    pub specializes: ListEdit<String>,
    /// Selected variants by set.
    pub selections: Vec<(String, String)>,
    /// Contents of variants by set and variant.
    pub variants: BTreeMap<(String, String), Rc<Prim>>,
}

/// Attribute or relationship.
#[derive(Debug, Clone, Default)]
pub(super) struct Property {
    pub value: Option<Value>,
    pub targets: ListEdit<String>,
    /// First time sample.
    pub sample: Option<Value>,
}

/// Prim as described by one layer.
#[derive(Debug, Clone, Default)]
pub(super) struct Prim {
    pub name: String,
    /// Type of the prim's schema; empty if this layer sets none.
    pub kind: String,
    /// Whether this layer defines the prim (`def`); others only add to it (`over`) or describe a class.
    pub defined: bool,
    pub is_class: bool,
    pub active: Option<bool>,
    pub schemas: ListEdit<String>,
    pub arcs: Option<Box<Arcs>>,
    pub properties: BTreeMap<String, Property>,
    pub children: Vec<Rc<Prim>>,
    /// Indices of the children, by name.
    index: HashMap<String, usize>,
    /// Line in the text, for text files.
    pub line: Option<u32>,
}

impl Prim {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    pub fn child(&self, name: &str) -> Option<&Rc<Prim>> {
        self.index.get(name).map(|&i| &self.children[i])
    }

    /// Returns the child with this name; it is created if missing.
    pub fn child_mut(&mut self, name: &str) -> &mut Prim {
        let next = self.children.len();
        let at = *self.index.entry(name.to_owned()).or_insert(next);
        if at == next {
            self.children.push(Rc::new(Prim::new(name)));
        }
        Rc::make_mut(&mut self.children[at])
    }

    /// Sorts the children in the order of these names; others come last.
    pub fn sort_children(&mut self, order: &[&str]) {
        let place: HashMap<&str, usize> = order.iter().enumerate().map(|(i, name)| (*name, i)).collect();
        self.children.sort_by_key(|child| place.get(child.name.as_str()).copied().unwrap_or(usize::MAX));
        self.index = self.children.iter().enumerate().map(|(i, child)| (child.name.clone(), i)).collect();
    }

    pub fn arcs_mut(&mut self) -> &mut Arcs {
        self.arcs.get_or_insert_default()
    }

    /// Returns the content of a variant; it is created if missing.
    pub fn variant_mut(&mut self, set: &str, variant: &str) -> &mut Prim {
        Rc::make_mut(self.arcs_mut().variants.entry((set.to_owned(), variant.to_owned())).or_default())
    }

    pub fn property_mut(&mut self, name: &str) -> &mut Property {
        self.properties.entry(name.to_owned()).or_default()
    }
}

/// Layer of a scene.
#[derive(Debug, Default)]
pub(super) struct Layer {
    /// File name for messages; empty for the main file.
    pub file: String,
    pub root: Rc<Prim>,
    pub default_prim: String,
    pub meters_per_unit: Option<f64>,
    pub kilograms_per_unit: Option<f64>,
    pub up_axis: Option<String>,
    /// Files of the sublayers, the strongest first.
    pub sublayers: Vec<String>,
    /// Whether the layer relocates prims.
    pub relocates: bool,
    /// Crate file that stores the arrays.
    pub stored: Option<super::values::Stored>,
}

impl Layer {
    /// Returns the numbers of a value.
    pub fn numbers(&self, value: &Value) -> Result<Vec<f64>> {
        match (value, &self.stored) {
            (Value::Numbers(numbers), _) => Ok(numbers.clone()),
            (Value::Stored(at), Some(stored)) => stored.numbers(*at).map_err(|e| self.error(e)),
            _ => Ok(Vec::new()),
        }
    }

    /// Creates an error located in this file.
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::syntax(Place::element(self.file.clone()), message)
    }
}

/// Returns whether a property affects motion or mass; all others are ignored.
pub(super) fn matters(name: &str) -> bool {
    const PREFIXES: [&str; 6] = ["physics:", "physx", "xformOp", "drive:", "limit:", "material:binding"];
    const NAMES: [&str; 8] = [
        "points",
        "faceVertexCounts",
        "faceVertexIndices",
        "size",
        "radius",
        "height",
        "axis",
        "orientation",
    ];
    let known = PREFIXES.iter().any(|p| name.starts_with(p)) || NAMES.contains(&name);
    known && name != "physics:filteredPairs"
}
