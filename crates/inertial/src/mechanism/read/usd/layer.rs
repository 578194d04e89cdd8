//! One layer: a tree of prims with the properties that motion and mass depend on.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use crate::{Error, Place, Result};

/// Prims one inside another, at most.
pub(super) const MAX_DEPTH: usize = 256;
/// Prims of one layer, variants included.
pub(super) const MAX_PRIMS: usize = 500_000;
/// Entries of a list of names, paths or files.
pub(super) const MAX_LIST: usize = 1000;

/// A value of a property.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Numbers of a scalar, a vector, a quaternion (real part first), a matrix (row by row) or an array of these.
    Numbers(Vec<f64>),
    /// Tokens, strings and asset paths.
    Texts(Vec<String>),
    /// An array of a crate file, decoded where it is needed.
    Stored(u64),
    /// No value, against weaker layers.
    Blocked,
}

/// Changes of a list by one layer.
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
    /// The list that the weaker layers give, with the changes of this one.
    pub fn apply(&self, weaker: Vec<T>) -> Vec<T> {
        if let Some(list) = &self.explicit {
            return list.clone();
        }
        let own = |x: &T| self.prepended.contains(x) || self.appended.contains(x) || self.deleted.contains(x);
        let kept = weaker.into_iter().filter(|x| !own(x));
        let first = self.prepended.iter().filter(|x| !self.appended.contains(x)).cloned();
        first.chain(kept).chain(self.appended.iter().cloned()).collect()
    }

    /// The same changes of other entries.
    pub fn mapped<U>(&self, map: impl Fn(&T) -> U) -> ListEdit<U> {
        let all = |list: &Vec<T>| list.iter().map(&map).collect();
        ListEdit {
            explicit: self.explicit.as_ref().map(all),
            prepended: all(&self.prepended),
            appended: all(&self.appended),
            deleted: all(&self.deleted),
        }
    }

    /// Number of its entries.
    pub fn len(&self) -> usize {
        let explicit = self.explicit.as_ref().map_or(0, Vec::len);
        explicit + self.prepended.len() + self.appended.len() + self.deleted.len()
    }
}

/// A prim of this or of another file, which a reference or a payload brings in.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Target {
    /// The file; empty for this layer stack.
    pub asset: String,
    /// The prim; empty for the default prim.
    pub path: String,
}

impl Target {
    /// The same with the full name of its file, which stands in the file `layer`.
    pub fn from(&self, layer: &str) -> Self {
        let asset =
            if self.asset.is_empty() { String::new() } else { super::files::resolved(layer, &self.asset) };
        Self { asset, path: self.path.clone() }
    }
}

/// Arcs of a prim.
#[derive(Debug, Clone, Default)]
pub(super) struct Arcs {
    pub references: ListEdit<Target>,
    pub payloads: ListEdit<Target>,
    pub inherits: ListEdit<String>,
    pub specializes: ListEdit<String>,
    /// Chosen variants by set.
    pub selections: Vec<(String, String)>,
    /// Contents of variants by set and variant.
    pub variants: BTreeMap<(String, String), Rc<Prim>>,
}

/// An attribute or a relationship.
#[derive(Debug, Clone, Default)]
pub(super) struct Property {
    pub value: Option<Value>,
    pub targets: ListEdit<String>,
    /// The first of its time samples.
    pub sample: Option<Value>,
}

/// A prim as one layer has it.
#[derive(Debug, Clone, Default)]
pub(super) struct Prim {
    pub name: String,
    /// Type of its schema; empty where this layer gives none.
    pub kind: String,
    /// Whether this layer defines it (`def`); others only add to it (`over`) or describe a class.
    pub defined: bool,
    pub is_class: bool,
    pub active: Option<bool>,
    pub schemas: ListEdit<String>,
    pub arcs: Option<Box<Arcs>>,
    pub properties: BTreeMap<String, Property>,
    pub children: Vec<Rc<Prim>>,
    /// Places of the children, by name.
    index: HashMap<String, usize>,
    /// Line of the text, where it is one.
    pub line: Option<u32>,
}

impl Prim {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    pub fn child(&self, name: &str) -> Option<&Rc<Prim>> {
        self.index.get(name).map(|&i| &self.children[i])
    }

    /// The child of a name, which is created where there is none.
    pub fn child_mut(&mut self, name: &str) -> &mut Prim {
        let next = self.children.len();
        let at = *self.index.entry(name.to_owned()).or_insert(next);
        if at == next {
            self.children.push(Rc::new(Prim::new(name)));
        }
        Rc::make_mut(&mut self.children[at])
    }

    /// Puts the children into the order of these names; others come after.
    pub fn sort_children(&mut self, order: &[&str]) {
        let place: HashMap<&str, usize> = order.iter().enumerate().map(|(i, name)| (*name, i)).collect();
        self.children.sort_by_key(|child| place.get(child.name.as_str()).copied().unwrap_or(usize::MAX));
        self.index = self.children.iter().enumerate().map(|(i, child)| (child.name.clone(), i)).collect();
    }

    pub fn arcs_mut(&mut self) -> &mut Arcs {
        self.arcs.get_or_insert_default()
    }

    /// The contents of a variant, which are created where there are none.
    pub fn variant_mut(&mut self, set: &str, variant: &str) -> &mut Prim {
        Rc::make_mut(self.arcs_mut().variants.entry((set.to_owned(), variant.to_owned())).or_default())
    }

    pub fn property_mut(&mut self, name: &str) -> &mut Property {
        self.properties.entry(name.to_owned()).or_default()
    }
}

/// A layer.
#[derive(Debug, Default)]
pub(super) struct Layer {
    /// Its name for messages; empty for the file that was asked for.
    pub file: String,
    pub root: Rc<Prim>,
    pub default_prim: String,
    pub meters_per_unit: Option<f64>,
    pub kilograms_per_unit: Option<f64>,
    pub up_axis: Option<String>,
    /// Files of weaker layers, the strongest first.
    pub sublayers: Vec<String>,
    /// Whether it moves prims to other places.
    pub relocates: bool,
    /// The crate file, for arrays.
    pub stored: Option<super::binary::Stored>,
}

impl Layer {
    /// The numbers of a value.
    pub fn numbers(&self, value: &Value) -> Result<Vec<f64>> {
        match (value, &self.stored) {
            (Value::Numbers(numbers), _) => Ok(numbers.clone()),
            (Value::Stored(at), Some(stored)) => stored.numbers(*at).map_err(|e| self.error(e)),
            _ => Ok(Vec::new()),
        }
    }

    /// An error of this file.
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::syntax(Place::element(self.file.clone()), message)
    }
}

/// Whether a property changes motion or mass; all others are passed over.
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
