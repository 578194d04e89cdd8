//! Binary format of USD (`.usdc`, crate files).

use std::cell::Cell;
use std::collections::HashMap;

use super::compression::{integers, unpack};
use super::layer::{Layer, ListEdit, MAX_DEPTH, MAX_LIST, MAX_PRIMS, Prim, Target, Value, matters};
use super::text::field_of_layer;
use super::values::{Cursor, Rep, Result, Stored, is_numeric};

/// First bytes of a crate file.
pub(super) const MAGIC: &[u8] = b"PXR-USDC";
/// Maximum number of paths, specs, tokens and fields of a file, each.
const MAX_ENTRIES: usize = 4 << 20;
/// Maximum size of all tokens in bytes.
const MAX_TOKENS: usize = 64 << 20;
/// Maximum number of names of fields, lists and paths that are processed.
const MAX_FIELDS: usize = 32 << 20;

/// Reads a layer.
pub(super) fn read(bytes: &[u8], file: &str) -> crate::Result<Layer> {
    let mut layer = Layer { file: file.to_owned(), ..Layer::default() };
    let filled = fill(&mut layer, bytes);
    filled.map_err(|e| layer.error(format!("the USD crate file is damaged: {e}")))?;
    Ok(layer)
}

fn fill(layer: &mut Layer, bytes: &[u8]) -> Result<()> {
    let header: &[u8; 24] = bytes.first_chunk().ok_or("it is cut off")?;
    let version = [header[8], header[9], header[10]];
    if version < [0, 4, 0] || version[0] > 0 {
        let [major, minor, patch] = version;
        return Err(format!("it has version {major}.{minor}.{patch}, expected 0.4.0 or later below 1.0.0"));
    }
    let stored = Stored { bytes: bytes.into(), version };
    let file =
        File::read(&stored, u64::from_le_bytes(header[16..].try_into().map_err(|_| "it is cut off")?))?;
    file.layer(layer)?;
    layer.stored = Some(stored);
    Ok(())
}

/// Path, stored as its last component and its parent path.
#[derive(Clone, Copy)]
struct Path {
    parent: u32,
    token: u32,
    is_property: bool,
    depth: u16,
}

const NOTHING: u32 = u32::MAX;

/// Parsed sections of a file.
struct File<'s> {
    stored: &'s Stored,
    tokens: Vec<String>,
    strings: Vec<u32>,
    /// Token of the name, and the value.
    fields: Vec<(u32, u64)>,
    fieldsets: Vec<u32>,
    paths: Vec<Path>,
    /// Path, first field of its field set, and type.
    specs: Vec<[u32; 3]>,
    /// Work spent on names and lists so far.
    spent: Cell<usize>,
}

const SPEC_ATTRIBUTE: u32 = 1;
const SPEC_PRIM: u32 = 6;
const SPEC_ROOT: u32 = 7;
const SPEC_RELATIONSHIP: u32 = 8;
const SPEC_VARIANT: u32 = 10;

impl<'s> File<'s> {
    fn read(stored: &'s Stored, contents: u64) -> Result<Self> {
        let mut cursor = stored.cursor(contents);
        let mut sections: HashMap<&[u8], Cursor<'s>> = HashMap::new();
        for _ in 0..cursor.count(64)? {
            let name = cursor.take(16)?;
            let name = name.split(|b| *b == 0).next().unwrap_or_default();
            let (start, size) = (cursor.u64()?, cursor.u64()?);
            let end = start.checked_add(size).filter(|end| *end <= stored.bytes.len() as u64);
            let end = end.ok_or("a section lies beyond its end")?;
            sections.insert(name, Cursor::new(&stored.bytes[..end as usize], start));
        }
        let section = |name: &str| {
            sections.get(name.as_bytes()).copied().ok_or_else(|| format!("it has no section {name}"))
        };
        let mut out = Self {
            stored,
            tokens: Vec::new(),
            strings: Vec::new(),
            fields: Vec::new(),
            fieldsets: Vec::new(),
            paths: Vec::new(),
            specs: Vec::new(),
            spent: Cell::new(0),
        };
        out.read_tokens(section("TOKENS")?)?;
        let mut at = section("STRINGS")?;
        let count = at.count(MAX_ENTRIES)?;
        out.strings = at
            .take(4 * count)?
            .chunks_exact(4)
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        out.read_fields(section("FIELDS")?)?;
        let mut at = section("FIELDSETS")?;
        let count = at.count(MAX_ENTRIES)?;
        out.fieldsets = words(&mut at, count)?;
        out.read_paths(section("PATHS")?)?;
        let mut at = section("SPECS")?;
        let count = at.count(MAX_ENTRIES)?;
        let (paths, sets, kinds) = (words(&mut at, count)?, words(&mut at, count)?, words(&mut at, count)?);
        out.specs = paths.into_iter().zip(sets).zip(kinds).map(|((p, s), k)| [p, s, k]).collect();
        Ok(out)
    }

    fn read_tokens(&mut self, mut at: Cursor<'_>) -> Result<()> {
        let count = at.count(MAX_ENTRIES)?;
        let size = at.count(MAX_TOKENS)?;
        let bytes = unpack(at.sized()?, size)?;
        let texts = bytes.split(|b| *b == 0).take(count);
        self.tokens = texts.map(|t| String::from_utf8_lossy(t).into_owned()).collect();
        if self.tokens.len() == count { Ok(()) } else { Err("tokens are missing".into()) }
    }

    fn read_fields(&mut self, mut at: Cursor<'_>) -> Result<()> {
        let count = at.count(MAX_ENTRIES)?;
        let names = words(&mut at, count)?;
        let values = unpack(at.sized()?, 8 * count)?;
        if values.len() != 8 * count {
            return Err("fields are missing".into());
        }
        let value = |b: &[u8]| u64::from_le_bytes(std::array::from_fn(|i| b[i]));
        self.fields = names.into_iter().zip(values.chunks_exact(8).map(value)).collect();
        Ok(())
    }

    /// Reads the paths, a tree in depth-first order. Each path stores whether a child follows and the distance to its next sibling.
    fn read_paths(&mut self, mut at: Cursor<'_>) -> Result<()> {
        const TWICE: &str = "paths do not form a tree";
        let count = at.count(MAX_ENTRIES)?;
        let unset = Path { parent: NOTHING, token: NOTHING, is_property: false, depth: 0 };
        self.paths = vec![unset; count];
        let listed = at.count(MAX_ENTRIES)?;
        let (places, tokens, jumps) =
            (words(&mut at, listed)?, words(&mut at, listed)?, words(&mut at, listed)?);
        let mut seen = vec![false; listed];
        let mut open = if listed == 0 { Vec::new() } else { vec![(0usize, NOTHING)] };
        while let Some((mut next, mut parent)) = open.pop() {
            loop {
                if next >= listed || std::mem::replace(&mut seen[next], true) {
                    return Err(TWICE.into());
                }
                let place = places[next];
                let depth = match parent {
                    NOTHING => 0,
                    p => self.paths[p as usize].depth + 1,
                };
                if usize::from(depth) > MAX_DEPTH {
                    return Err(format!("prims are nested deeper than {MAX_DEPTH} levels"));
                }
                let token = tokens[next].cast_signed();
                let path = self.paths.get_mut(place as usize).ok_or(TWICE)?;
                if path.token != NOTHING {
                    return Err(TWICE.into());
                }
                *path = Path { parent, token: token.unsigned_abs(), is_property: token < 0, depth };
                let jump = jumps[next].cast_signed();
                let (child, sibling) = (jump > 0 || jump == -1, jump >= 0);
                if child && sibling {
                    open.push((next + jump as usize, parent));
                }
                if child {
                    parent = place;
                } else if !sibling {
                    break;
                }
                next += 1;
            }
        }
        Ok(())
    }

    fn token(&self, index: u64) -> Result<&str> {
        let token = usize::try_from(index).ok().and_then(|i| self.tokens.get(i));
        let token = token.ok_or_else(|| format!("there is no token {index}"))?;
        self.spend(token)?;
        Ok(token)
    }

    /// Counts the work for a text, because a file may refer to a long one many times.
    fn spend(&self, text: &str) -> Result<()> {
        let spent = self.spent.get() + 1 + text.len() / 32;
        self.spent.set(spent);
        if spent > MAX_FIELDS { Err(format!("more than {MAX_FIELDS} names")) } else { Ok(()) }
    }

    fn string(&self, index: u64) -> Result<&str> {
        let index = usize::try_from(index).ok().and_then(|i| self.strings.get(i));
        self.token(u64::from(*index.ok_or("a text is missing")?))
    }

    /// Returns the text of a path to a prim or a property.
    fn path(&self, index: u32) -> Result<String> {
        let mut parts = Vec::new();
        let mut next = index;
        while next != NOTHING {
            let path = self.paths.get(next as usize).ok_or("a path is missing")?;
            if path.parent != NOTHING {
                parts.push((if path.is_property { "." } else { "/" }, self.token(path.token.into())?));
            }
            next = path.parent;
        }
        let mut out = String::new();
        for (mark, name) in parts.into_iter().rev() {
            if !name.starts_with('{') {
                out += mark;
                out += name;
            }
        }
        Ok(if out.is_empty() { "/".to_owned() } else { out })
    }

    fn layer(&self, layer: &mut Layer) -> Result<()> {
        // Spec of each path, and the child paths of each.
        let mut spec = vec![NOTHING; self.paths.len()];
        let mut inside: Vec<Vec<u32>> = vec![Vec::new(); self.paths.len()];
        let mut root = None;
        for (i, [path, _, kind]) in self.specs.iter().enumerate() {
            let place = self.paths.get(*path as usize).ok_or("a path is missing")?;
            let known =
                [SPEC_ATTRIBUTE, SPEC_PRIM, SPEC_ROOT, SPEC_RELATIONSHIP, SPEC_VARIANT].contains(kind);
            if !known || spec[*path as usize] != NOTHING {
                continue;
            }
            spec[*path as usize] = i as u32;
            if *kind == SPEC_ROOT {
                root = Some(*path);
            } else if place.parent != NOTHING {
                inside[place.parent as usize].push(*path);
            }
        }
        let root = root.ok_or("it has no root")?;
        let mut walk = Walk { file: self, spec, inside, prims: 0 };
        let mut prim = Prim::default();
        walk.prim(root, &mut prim)?;
        layer.root = prim.into();
        for (name, rep) in walk.fields_of(root)? {
            match name {
                "subLayers" => layer.sublayers = self.texts(rep)?,
                "relocates" | "layerRelocates" => layer.relocates = true,
                "defaultPrim" | "metersPerUnit" | "kilogramsPerUnit" | "upAxis" => {
                    field_of_layer(layer, name, self.value(rep)?.as_ref());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the value of a property.
    fn value(&self, rep: Rep) -> Result<Option<Value>> {
        Ok(match rep.kind() {
            51 => Some(Value::Blocked),
            10..=12 => Some(Value::Texts(self.texts(rep)?)),
            _ if is_numeric(rep) && rep.is_array() => Some(Value::Stored(rep.0)),
            _ if is_numeric(rep) => Some(Value::Numbers(self.stored.numbers(rep.0)?)),
            _ => None,
        })
    }

    /// Returns the texts of a value: one, or a list.
    fn texts(&self, rep: Rep) -> Result<Vec<String>> {
        let is_string = matches!(rep.kind(), 10 | 50);
        let text = |i: u64| if is_string { self.string(i) } else { self.token(i) }.map(str::to_owned);
        let is_list = rep.is_array() || matches!(rep.kind(), 41 | 50);
        if !is_list {
            return Ok(vec![text(rep.payload())?]);
        }
        if rep.payload() == 0 || rep.is_inline() {
            return Ok(Vec::new());
        }
        let mut cursor = self.stored.cursor(rep.payload());
        let count = if rep.is_array() {
            self.stored.array_count(&mut cursor, MAX_LIST)?
        } else {
            cursor.count(MAX_LIST)?
        };
        (0..count).map(|_| text(cursor.u32()?.into())).collect()
    }

    /// Returns the edits of a list.
    fn list<T>(&self, rep: Rep, item: impl Fn(&mut Cursor<'_>) -> Result<T>) -> Result<ListEdit<T>> {
        let mut out = ListEdit::default();
        if rep.is_inline() {
            return Ok(out);
        }
        let mut cursor = self.stored.cursor(rep.payload());
        let header = cursor.u8()?;
        let items = |bit: u8, cursor: &mut Cursor<'_>| -> Result<Vec<T>> {
            if header & bit == 0 {
                return Ok(Vec::new());
            }
            (0..cursor.count(MAX_LIST)?).map(|_| item(cursor)).collect()
        };
        let explicit = items(2, &mut cursor)?;
        if header & 1 != 0 {
            out.explicit = Some(explicit);
        }
        let added = items(4, &mut cursor)?;
        out.prepended = items(32, &mut cursor)?;
        out.appended = items(64, &mut cursor)?;
        out.appended.extend(added);
        out.deleted = items(8, &mut cursor)?;
        Ok(out)
    }

    fn list_of_paths(&self, rep: Rep) -> Result<ListEdit<String>> {
        self.list(rep, |cursor| self.path(cursor.u32()?))
    }

    /// Returns the references (each followed by a dictionary) or payloads.
    fn targets(&self, rep: Rep) -> Result<ListEdit<Target>> {
        let is_reference = rep.kind() == 35;
        if rep.kind() == 47 {
            // A single payload, as in older files.
            let mut cursor = self.stored.cursor(rep.payload());
            return Ok(ListEdit {
                explicit: Some(vec![self.target(&mut cursor, false)?]),
                ..ListEdit::default()
            });
        }
        self.list(rep, |cursor| self.target(cursor, is_reference))
    }

    fn target(&self, cursor: &mut Cursor<'_>, is_reference: bool) -> Result<Target> {
        let asset = self.string(cursor.u32()?.into())?.to_owned();
        let path = match cursor.u32()? {
            // Payloads and references of the default prim have the empty path, which is not a path of the file.
            index if self.paths.get(index as usize).is_some_and(|p| p.token != NOTHING) => {
                self.path(index)?
            }
            _ => String::new(),
        };
        if is_reference || self.stored.version >= [0, 8, 0] {
            cursor.take(16)?;
        }
        if is_reference {
            for _ in 0..cursor.count(MAX_LIST)? {
                cursor.u32()?;
                cursor.at_distance()?;
            }
        }
        let path = if path == "/" { String::new() } else { path };
        Ok(Target { asset, path })
    }

    /// Returns the first time sample of an attribute.
    fn sample(&self, rep: Rep) -> Result<Option<Value>> {
        let mut cursor = self.stored.cursor(rep.payload());
        cursor.at_distance()?;
        // The number of values, followed by the values.
        match cursor.at_distance()? {
            0 => Ok(None),
            _ => self.value(Rep(cursor.u64()?)),
        }
    }
}

/// Reads `count` compressed words of 4 bytes.
fn words(at: &mut Cursor<'_>, count: usize) -> Result<Vec<u32>> {
    Ok(integers(at.sized()?, count, false)?.into_iter().map(|x| x as u32).collect())
}

/// Traversal of the tree of paths.
struct Walk<'f, 's> {
    file: &'f File<'s>,
    /// Spec of each path.
    spec: Vec<u32>,
    inside: Vec<Vec<u32>>,
    /// Number of prims visited so far.
    prims: usize,
}

impl<'f> Walk<'f, '_> {
    /// Returns the names and values of the fields of a path's spec.
    fn fields_of(&mut self, path: u32) -> Result<Vec<(&'f str, Rep)>> {
        let file = self.file;
        let [_, first, _] = file.specs[self.spec[path as usize] as usize];
        let set = file.fieldsets.get(first as usize..).ok_or("a set of fields is missing")?;
        let mut out = Vec::new();
        for &field in set.iter().take_while(|field| **field != NOTHING) {
            let (name, rep) = file.fields.get(field as usize).ok_or("a field is missing")?;
            out.push((file.token(u64::from(*name))?, Rep(*rep)));
        }
        Ok(out)
    }

    fn prim(&mut self, path: u32, prim: &mut Prim) -> Result<()> {
        let file = self.file;
        self.prims += 1;
        if self.prims > MAX_PRIMS {
            return Err(format!("more than {MAX_PRIMS} prims"));
        }
        let mut order = Vec::new();
        for (name, rep) in self.fields_of(path)? {
            match name {
                "specifier" => (prim.defined, prim.is_class) = (rep.payload() == 0, rep.payload() == 2),
                "typeName" => file.token(rep.payload())?.clone_into(&mut prim.kind),
                "active" => prim.active = Some(rep.payload() & 1 != 0),
                "apiSchemas" => {
                    prim.schemas = file.list(rep, |c| Ok(file.token(c.u32()?.into())?.to_owned()))?;
                }
                "references" => prim.arcs_mut().references = file.targets(rep)?,
                "payload" => prim.arcs_mut().payloads = file.targets(rep)?,
                "inheritPaths" => prim.arcs_mut().inherits = file.list_of_paths(rep)?,
                "specializes" => prim.arcs_mut().specializes = file.list_of_paths(rep)?,
                "variantSelection" => {
                    let mut cursor = file.stored.cursor(rep.payload());
                    for _ in 0..cursor.count(MAX_LIST)? {
                        let [set, choice] = [cursor.u32()?, cursor.u32()?].map(|i| file.string(i.into()));
                        prim.arcs_mut().selections.push((set?.to_owned(), choice?.to_owned()));
                    }
                }
                "primChildren" => order = self.order(rep)?,
                _ => {}
            }
        }
        for place in std::mem::take(&mut self.inside[path as usize]) {
            let Path { token, is_property, .. } = file.paths[place as usize];
            let name = file.token(token.into())?;
            let [_, _, kind] = file.specs[self.spec[place as usize] as usize];
            if is_property {
                if matters(name) {
                    self.property(place, kind, name, prim)?;
                }
            } else if let Some(inner) = name.strip_prefix('{') {
                let inner = inner.strip_suffix('}').and_then(|i| i.split_once('='));
                let (set, variant) = inner.ok_or("the path of a variant is damaged")?;
                if kind == SPEC_VARIANT {
                    self.prim(place, prim.variant_mut(set, variant))?;
                }
            } else if kind == SPEC_PRIM {
                self.prim(place, prim.child_mut(name))?;
            }
        }
        prim.sort_children(&order);
        Ok(())
    }

    /// Returns the names of the children in order.
    fn order(&mut self, rep: Rep) -> Result<Vec<&'f str>> {
        if rep.is_inline() || rep.payload() == 0 {
            return Ok(Vec::new());
        }
        let mut cursor = self.file.stored.cursor(rep.payload());
        let count = cursor.count(MAX_PRIMS)?;
        (0..count).map(|_| self.file.token(cursor.u32()?.into())).collect()
    }

    fn property(&mut self, path: u32, kind: u32, name: &str, prim: &mut Prim) -> Result<()> {
        let file = self.file;
        let property = prim.property_mut(name);
        for (field, rep) in self.fields_of(path)? {
            match field {
                "default" if kind == SPEC_ATTRIBUTE => property.value = file.value(rep)?,
                "timeSamples" if kind == SPEC_ATTRIBUTE => property.sample = file.sample(rep)?,
                "targetPaths" if kind == SPEC_RELATIONSHIP => property.targets = file.list_of_paths(rep)?,
                _ => {}
            }
        }
        Ok(())
    }
}
