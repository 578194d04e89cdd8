//! Scene composed of layers, references, payloads, inherits and variants.
//!
//! Each prim has a tree of sources: the layers of a stack, followed by the contributions of its arcs and of its ancestors' arcs.
//! A traversal of the tree results in the order of strength: the layers, inherits, variants, references, payloads, each followed by
//! its own arcs; specializes are the weakest.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::super::Include;
use super::files::{Files, Stack};
use super::layer::{Arcs, Layer, ListEdit, MAX_DEPTH, Prim, Target, Value};
use crate::{Error, Place, Result};

/// Maximum number of prims of a scene.
const MAX_PRIMS: usize = 200_000;
/// Maximum number of sources and list entries of all prims.
const MAX_WORK: usize = 20_000_000;
/// Maximum length of a chain of arcs.
const MAX_ARCS: usize = 32;

/// Mapping of the paths of a source to the scene that includes it.
#[derive(Debug)]
struct Map {
    from: String,
    to: String,
    /// Whether paths outside `from` are unchanged (inherits); otherwise they are invalid.
    open: bool,
    next: Option<Rc<Map>>,
}

/// Description of a prim in one layer stack.
#[derive(Debug, Clone)]
struct Source {
    stack: Rc<Stack>,
    /// Path in the layer stack.
    path: String,
    map: Option<Rc<Map>>,
    specs: Vec<(Rc<Prim>, Rc<Layer>)>,
    /// Number of arcs that lead to this source.
    arcs: usize,
    /// Rank of the last arc's type in the order of strength.
    rank: u8,
    /// Sources added by arcs, the strongest first.
    weaker: Vec<Source>,
}

const INHERITS: u8 = 0;
const VARIANT: u8 = 1;
const REFERENCE: u8 = 2;
const PAYLOAD: u8 = 3;
const SPECIALIZES: u8 = 4;

/// Prim of the scene.
#[derive(Debug)]
pub(super) struct Node {
    pub path: String,
    pub name: String,
    /// Type of the prim's schema.
    pub kind: String,
    pub schemas: Vec<String>,
    pub parent: Option<usize>,
    pub children: Vec<usize>,
    pub line: Option<u32>,
    source: Source,
}

/// Composed scene.
pub(super) struct Stage {
    /// All prims, parents before their children; the first is the root.
    pub nodes: Vec<Node>,
    pub root_layer: Rc<Layer>,
    pub warnings: Vec<String>,
}

/// Composes a scene.
pub(super) fn compose(bytes: &[u8], include: Include<'_>) -> Result<Stage> {
    let mut files = Files::new(include);
    let stack = files.main(bytes)?;
    let root_layer = stack.layers[0].clone();
    let mut composer = Composer { files, work: 0 };
    let root = Source::root(&stack, None, 0, REFERENCE);
    let mut nodes = vec![Node {
        path: "/".to_owned(),
        name: String::new(),
        kind: String::new(),
        schemas: Vec::new(),
        parent: None,
        children: Vec::new(),
        line: None,
        source: root,
    }];
    let mut open = vec![(0usize, 0usize)];
    while let Some((parent, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            return Err(Error::syntax(
                Place::element(nodes[parent].path.clone()),
                format!("prims are nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        let first = nodes.len();
        let mut done = BTreeSet::new();
        // Names in the order of the weakest source, which usually defines most of them.
        let source = nodes[parent].source.clone();
        for (spec, _) in source.ordered().iter().rev().flat_map(|s| s.specs.iter().rev()) {
            for child in &spec.children {
                composer.spend(1, &child.name)?;
                if done.insert(child.name.clone())
                    && let Some(node) = composer.node(&source, &child.name, parent, &nodes[parent].path)?
                {
                    let place = nodes.len();
                    nodes[parent].children.push(place);
                    nodes.push(node);
                }
            }
        }
        if nodes.len() > MAX_PRIMS {
            return Err(Error::syntax(
                Place::default(),
                format!("the scene has more than {MAX_PRIMS} prims"),
            ));
        }
        open.extend((first..nodes.len()).rev().map(|i| (i, depth + 1)));
    }
    let mut warnings = std::mem::take(&mut composer.files.warnings);
    if stack.layers.iter().any(|layer| layer.relocates) {
        warnings.push("relocates of prims are left out".to_owned());
    }
    Ok(Stage { nodes, root_layer, warnings })
}

struct Composer<'i> {
    files: Files<'i>,
    work: usize,
}

/// List of arcs of one kind.
type Edits<T> = fn(&Arcs) -> &ListEdit<T>;

impl Composer<'_> {
    fn spend(&mut self, work: usize, path: &str) -> Result<()> {
        self.work += work + path.len() / 64;
        if self.work > MAX_WORK {
            let message = "the references of the scene expand to more than is read";
            return Err(Error::syntax(Place::element(path), message));
        }
        Ok(())
    }

    /// Returns a child of a prim; `None` if it is inactive or undefined.
    fn node(&mut self, parents: &Source, name: &str, parent: usize, above: &str) -> Result<Option<Node>> {
        let path = joined(above, name);
        let Some(mut source) = parents.child(name) else { return Ok(None) };
        self.expand(&mut source, &[])?;
        let sources = source.ordered();
        let specs = || sources.iter().flat_map(|s| &s.specs).map(|(spec, _)| spec);
        // Inheriting from a class does not make a prim a class.
        let own = source.specs.iter().find(|(s, _)| s.defined || s.is_class);
        let is_class = own.is_some_and(|(s, _)| s.is_class);
        if is_class || !specs().any(|s| s.defined) || specs().find_map(|s| s.active) == Some(false) {
            return Ok(None);
        }
        let kind = specs().find(|s| !s.kind.is_empty()).map(|s| s.kind.clone()).unwrap_or_default();
        self.spend(specs().map(|s| s.schemas.len()).sum::<usize>().pow(2), &path)?;
        let edits: Vec<_> = specs().map(|s| &s.schemas).collect();
        let schemas = edits.iter().rev().fold(Vec::new(), |list, edit| edit.apply(list));
        let line = source.specs.first().and_then(|(s, _)| s.line);
        let (name, parent, children) = (name.to_owned(), Some(parent), Vec::new());
        Ok(Some(Node { path, name, kind, schemas, parent, children, line, source }))
    }

    /// Adds the sources of a source's arcs. `chosen` are the variants selected by stronger sources.
    fn expand(&mut self, source: &mut Source, chosen: &[(String, String)]) -> Result<()> {
        self.spend(1 + source.specs.len() + chosen.len(), &source.path)?;
        if source.arcs > MAX_ARCS {
            let message = format!("references are chained deeper than {MAX_ARCS} levels");
            return Err(Error::syntax(Place::element(source.path.clone()), message));
        }
        let with_arcs =
            source.specs.iter().filter_map(|(s, layer)| Some(((**s.arcs.as_ref()?).clone(), layer.clone())));
        let with_arcs: Vec<(Arcs, Rc<Layer>)> = with_arcs.collect();
        let arcs = || with_arcs.iter().map(|(arcs, _)| arcs);
        let own = arcs().flat_map(|a| a.selections.iter().cloned());
        let chosen: Vec<_> = chosen.iter().cloned().chain(own).collect();
        source.weaker.iter_mut().try_for_each(|weaker| self.expand(weaker, &chosen))?;
        if with_arcs.is_empty() {
            return Ok(());
        }
        let path = source.path.clone();
        // Arcs of the prim itself are stronger than those of its ancestors.
        let mut direct: Vec<Source> = Vec::new();
        let classes: [(u8, Edits<String>); 2] =
            [(INHERITS, |a| &a.inherits), (SPECIALIZES, |a| &a.specializes)];
        for (rank, of) in classes {
            for class in self.folded(&path, arcs().map(of))? {
                let class = absolute(&path, &class);
                direct.extend(self.found(source, &source.stack.clone(), &class, rank, &chosen)?);
            }
        }
        let files: [(u8, Edits<Target>); 2] = [(REFERENCE, |a| &a.references), (PAYLOAD, |a| &a.payloads)];
        for (rank, of) in files {
            // File names are relative to the layer that contains them.
            let anchored = with_arcs.iter().map(|(arcs, layer)| of(arcs).mapped(|t| t.from(&layer.file)));
            let anchored: Vec<_> = anchored.collect();
            for Target { asset, path: prim } in self.folded(&path, anchored.iter())? {
                let stack = if asset.is_empty() {
                    source.stack.clone()
                } else {
                    match self.files.stack(&asset)? {
                        Some(stack) => stack,
                        None => continue,
                    }
                };
                let prim = if prim.is_empty() { stack.layers[0].default_prim.clone() } else { prim };
                if prim.is_empty() {
                    let warning =
                        format!("{path}: the file {asset} has no default prim: the reference is left out");
                    self.files.warnings.push(warning);
                    continue;
                }
                direct.extend(self.found(source, &stack, &absolute("/", &prim), rank, &chosen)?);
            }
        }
        source.weaker.splice(0..0, direct);
        // Weaker sources may also select variants.
        let sets: BTreeSet<&String> = arcs().flat_map(|a| a.variants.keys().map(|(set, _)| set)).collect();
        let mut variants = Vec::new();
        for set in sets {
            let choice = chosen.iter().find(|(s, _)| s == set).map(|(_, choice)| choice.clone());
            let Some(choice) = choice.or_else(|| selection(source, set)) else { continue };
            let key = (set.clone(), choice);
            let specs = with_arcs
                .iter()
                .filter_map(|(arcs, layer)| Some((arcs.variants.get(&key)?.clone(), layer.clone())));
            let specs: Vec<_> = specs.collect();
            if !specs.is_empty() {
                let (arcs, weaker) = (source.arcs + 1, Vec::new());
                let (stack, path, map) = (source.stack.clone(), source.path.clone(), source.map.clone());
                let mut variant = Source { stack, path, map, specs, arcs, rank: VARIANT, weaker };
                self.expand(&mut variant, &chosen)?;
                variants.push(variant);
            }
        }
        source.weaker.splice(0..0, variants);
        source.weaker.sort_by_key(|weaker| weaker.rank);
        Ok(())
    }

    /// Returns the composed list of the layers, the strongest first.
    fn folded<'a, T: Clone + PartialEq + 'a>(
        &mut self,
        path: &str,
        edits: impl Iterator<Item = &'a ListEdit<T>>,
    ) -> Result<Vec<T>> {
        let edits: Vec<_> = edits.filter(|edit| edit.len() > 0 || edit.explicit.is_some()).collect();
        self.spend(edits.iter().map(|e| e.len()).sum::<usize>().pow(2), path)?;
        Ok(edits.iter().rev().fold(Vec::new(), |list, edit| edit.apply(list)))
    }

    /// Returns the prim that an arc refers to, with its own arcs and those of its ancestors.
    fn found(
        &mut self,
        source: &Source,
        stack: &Rc<Stack>,
        path: &str,
        rank: u8,
        chosen: &[(String, String)],
    ) -> Result<Option<Source>> {
        let open = matches!(rank, INHERITS | SPECIALIZES);
        let map = Map { from: path.to_owned(), to: source.path.clone(), open, next: source.map.clone() };
        let mut at = Source::root(stack, Some(Rc::new(map)), source.arcs + 1, rank);
        let mut names = path.split('/').filter(|p| !p.is_empty()).peekable();
        while let Some(name) = names.next() {
            let Some(child) = at.child(name) else { return Ok(None) };
            at = child;
            let is_last = names.peek().is_none();
            self.expand(&mut at, if is_last { chosen } else { &[] })?;
        }
        Ok(Some(at))
    }
}

/// Returns the variant of a set selected by the strongest source.
fn selection(source: &Source, set: &str) -> Option<String> {
    let ordered = source.ordered();
    let specs = ordered.iter().flat_map(|s| &s.specs);
    let mut arcs = specs.filter_map(|(spec, _)| spec.arcs.as_ref());
    arcs.find_map(|a| a.selections.iter().find(|(s, _)| s == set)).map(|(_, choice)| choice.clone())
}

impl Source {
    fn root(stack: &Rc<Stack>, map: Option<Rc<Map>>, arcs: usize, rank: u8) -> Self {
        let specs = stack.layers.iter().map(|layer| (layer.root.clone(), layer.clone())).collect();
        Self { stack: stack.clone(), path: "/".to_owned(), map, specs, arcs, rank, weaker: Vec::new() }
    }

    /// Returns this and all weaker sources in order of strength.
    fn ordered(&self) -> Vec<&Self> {
        fn add<'s>(source: &'s Source, out: &mut Vec<&'s Source>, last: &mut Vec<&'s Source>) {
            out.push(source);
            for weaker in &source.weaker {
                if weaker.rank == SPECIALIZES {
                    let mut own = Vec::new();
                    add(weaker, &mut own, last);
                    last.append(&mut own);
                } else {
                    add(weaker, out, last);
                }
            }
        }
        let (mut out, mut last) = (Vec::new(), Vec::new());
        add(self, &mut out, &mut last);
        out.append(&mut last);
        out
    }

    fn child(&self, name: &str) -> Option<Self> {
        let specs = self.specs.iter();
        let specs: Vec<_> =
            specs.filter_map(|(spec, layer)| Some((spec.child(name)?.clone(), layer.clone()))).collect();
        let weaker: Vec<_> = self.weaker.iter().filter_map(|weaker| weaker.child(name)).collect();
        let (stack, map) = (self.stack.clone(), self.map.clone());
        let (path, arcs, rank) = (joined(&self.path, name), self.arcs, self.rank);
        let empty = specs.is_empty() && weaker.is_empty();
        (!empty).then_some(Self { stack, path, map, specs, arcs, rank, weaker })
    }

    /// Translates a path of this source to the scene.
    fn translated(&self, path: &str) -> Option<String> {
        let mut path = absolute(&self.path, path);
        let mut next = self.map.as_ref();
        while let Some(map) = next {
            let inside = path
                .strip_prefix(&map.from)
                .filter(|rest| rest.is_empty() || rest.starts_with(['/', '.']) || map.from == "/");
            match inside {
                Some(rest) => path = format!("{}{rest}", map.to),
                None if map.open => {}
                None => return None,
            }
            next = map.next.as_ref();
        }
        Some(path)
    }
}

fn joined(parent: &str, name: &str) -> String {
    if parent == "/" { format!("/{name}") } else { format!("{parent}/{name}") }
}

/// Converts a path that may be relative to a prim to an absolute path.
fn absolute(from: &str, path: &str) -> String {
    // Variants are not part of the paths of a scene.
    let mut plain = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        plain += before;
        rest = after.split_once('}').map_or("", |(_, after)| after);
        if !plain.ends_with('/') && !rest.is_empty() && !rest.starts_with(['/', '.']) {
            plain.push('/');
        }
    }
    plain += rest;
    let mut parts: Vec<&str> =
        if plain.starts_with('/') { Vec::new() } else { from.split('/').filter(|p| !p.is_empty()).collect() };
    for part in plain.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

impl Stage {
    /// Returns the index of the prim at a path.
    pub fn place(&self, path: &str) -> Option<usize> {
        path.split('/').filter(|p| !p.is_empty()).try_fold(0, |at, name| {
            self.nodes[at].children.iter().copied().find(|child| self.nodes[*child].name == name)
        })
    }

    /// Returns the prim at a path.
    pub fn find(&self, path: &str) -> Option<&Node> {
        self.place(path).map(|at| &self.nodes[at])
    }
}

impl Node {
    pub fn has_schema(&self, name: &str) -> bool {
        self.schemas.iter().any(|s| s == name)
    }

    /// Returns the value of an attribute with its layer: the strongest default, or else the strongest first sample.
    fn value(&self, name: &str) -> Option<(&Value, &Layer)> {
        let sources = self.source.ordered();
        let specs = || sources.iter().flat_map(|s| &s.specs);
        let properties = || specs().filter_map(|(spec, layer)| Some((spec.properties.get(name)?, &**layer)));
        let default = properties().find_map(|(p, layer)| Some((p.value.as_ref()?, layer)));
        let value = default.or_else(|| properties().find_map(|(p, layer)| Some((p.sample.as_ref()?, layer))));
        value.filter(|(value, _)| **value != Value::Blocked)
    }

    pub fn numbers(&self, name: &str) -> Result<Option<Vec<f64>>> {
        self.value(name).map(|(value, layer)| layer.numbers(value)).transpose()
    }

    /// Returns exactly `N` numbers of an attribute.
    pub fn array<const N: usize>(&self, name: &str) -> Result<Option<[f64; N]>> {
        let Some(numbers) = self.numbers(name)? else { return Ok(None) };
        let count = numbers.len();
        let wrong = || self.error(format!("{name} has {count} numbers, expected {N}"));
        let array: [f64; N] = numbers.try_into().map_err(|_| wrong())?;
        if array.iter().any(|x| x.is_nan()) {
            return Err(self.error(format!("{name} is not a number")));
        }
        Ok(Some(array))
    }

    pub fn number(&self, name: &str) -> Result<Option<f64>> {
        Ok(self.array::<1>(name)?.map(|[x]| x))
    }

    pub fn is_set(&self, name: &str) -> Result<Option<bool>> {
        Ok(self.number(name)?.map(|x| x != 0.0))
    }

    pub fn texts(&self, name: &str) -> Option<&[String]> {
        match self.value(name) {
            Some((Value::Texts(texts), _)) => Some(texts),
            _ => None,
        }
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts(name)?.first().map(String::as_str)
    }

    /// Returns the target paths of a relationship.
    pub fn targets(&self, name: &str) -> Vec<String> {
        let mut out = Vec::new();
        for source in self.source.ordered().into_iter().rev() {
            for (spec, _) in source.specs.iter().rev() {
                let Some(property) = spec.properties.get(name) else { continue };
                // Paths that leave a reference are invalid.
                let edit = property.targets.mapped(|path| source.translated(path));
                out = edit.apply(out.into_iter().map(Some).collect()).into_iter().flatten().collect();
            }
        }
        out
    }

    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::model(self.place(), message)
    }

    pub fn unsupported(&self, feature: impl Into<String>) -> Error {
        Error::unsupported(self.place(), feature)
    }

    fn place(&self) -> Place {
        Place { line: self.line, element: self.path.clone() }
    }
}
