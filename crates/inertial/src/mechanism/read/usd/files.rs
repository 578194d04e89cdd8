//! Layers of files, each read once, with their sublayers.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::super::Include;
use super::asset_path::{is_address, resolved};
use super::layer::Layer;
use super::package::{self, Package};
use super::{binary, text};
use crate::{Error, Place, Result};

/// Maximum number of files of a scene.
const MAX_FILES: usize = 1000;
/// Maximum size of all files together in bytes.
const MAX_BYTES: usize = 512 << 20;

/// Layer stack, the strongest layer first.
#[derive(Debug)]
pub(super) struct Stack {
    pub layers: Vec<Rc<Layer>>,
}

/// All files of a scene. A file is identified by its path from the folder of the model; in a package by `PACKAGE[PATH]`.
pub(super) struct Files<'i> {
    include: Include<'i>,
    layers: HashMap<String, Option<Rc<Layer>>>,
    packages: HashMap<String, Rc<Package>>,
    stacks: HashMap<String, Option<Rc<Stack>>>,
    bytes: usize,
    pub warnings: Vec<String>,
}

impl<'i> Files<'i> {
    pub fn new(include: Include<'i>) -> Self {
        Self {
            include,
            layers: HashMap::new(),
            packages: HashMap::new(),
            stacks: HashMap::new(),
            bytes: 0,
            warnings: Vec::new(),
        }
    }

    /// Returns the layer stack of the main file.
    pub fn main(&mut self, bytes: &[u8]) -> Result<Rc<Stack>> {
        let file = self.opened(String::new(), bytes.to_vec())?;
        let layer = self.layers.get(&file).cloned().flatten();
        let layer = layer.ok_or_else(|| Error::syntax(Place::default(), "the package has no scene"))?;
        self.stacked(file, layer)
    }

    /// Returns the layer stack of a file, or `None` with a warning if the file is not available.
    pub fn stack(&mut self, file: &str) -> Result<Option<Rc<Stack>>> {
        if let Some(known) = self.stacks.get(file) {
            return Ok(known.clone());
        }
        let stack = match self.layer(file)? {
            Some((full, layer)) => Some(self.stacked(full, layer)?),
            None => None,
        };
        self.stacks.insert(file.to_owned(), stack.clone());
        Ok(stack)
    }

    fn left_out(&mut self, asset: &str, reason: &str) {
        let warning = format!("the file {asset} is left out: {reason}");
        if !self.warnings.contains(&warning) && self.warnings.len() < 100 {
            self.warnings.push(warning);
        }
    }

    fn stacked(&mut self, file: String, layer: Rc<Layer>) -> Result<Rc<Stack>> {
        let mut layers = Vec::new();
        let mut seen = HashSet::from([file.clone()]);
        // The sublayers of a layer follow directly after it.
        let mut open = vec![(file, layer)];
        while let Some((file, layer)) = open.pop() {
            for asset in layer.sublayers.iter().rev() {
                if let Some((other, layer)) = self.layer(&resolved(&file, asset))?
                    && seen.insert(other.clone())
                {
                    open.push((other, layer));
                }
            }
            layers.push(layer);
        }
        Ok(Rc::new(Stack { layers }))
    }

    /// Returns the layer of a file, with its full name.
    fn layer(&mut self, file: &str) -> Result<Option<(String, Rc<Layer>)>> {
        let mut file = file.to_owned();
        if !self.layers.contains_key(&file) && !self.packages.contains_key(&file) {
            let read = match file.strip_suffix(']').and_then(|f| f.split_once('[')) {
                Some((package, inner)) => self.inside(package, inner),
                None if is_address(&file) => Ok(Err("only files beside the model are read".to_owned())),
                None => Ok(self.include.file(&file)),
            };
            match read? {
                Ok(bytes) => file = self.opened(file, bytes)?,
                Err(reason) => {
                    self.left_out(&file, &reason);
                    self.layers.insert(file.clone(), None);
                }
            }
        }
        if let Some(package) = self.packages.get(&file) {
            file = format!("{file}[{}]", package.first);
        }
        Ok(self.layers.get(&file).cloned().flatten().map(|layer| (file, layer)))
    }

    /// Returns a file of a package.
    fn inside(&mut self, package: &str, inner: &str) -> Result<Result<Vec<u8>, String>> {
        if !self.packages.contains_key(package) {
            self.layer(package)?;
        }
        let Some(found) = self.packages.get(package) else {
            return Ok(Err("there is no such package".into()));
        };
        Ok(found.file(inner).map(<[u8]>::to_vec).ok_or_else(|| format!("the package has no file {inner}")))
    }

    /// Adds the content of a file and returns the name of its layer.
    fn opened(&mut self, file: String, bytes: Vec<u8>) -> Result<String> {
        self.bytes += bytes.len();
        if self.bytes > MAX_BYTES || self.layers.len() >= MAX_FILES {
            let message = format!("the scene has more than {MAX_FILES} files or {} MB", MAX_BYTES >> 20);
            return Err(Error::syntax(Place::default(), message));
        }
        if bytes.starts_with(package::MAGIC) {
            let package = Package::new(bytes).map_err(|e| Error::syntax(Place::element(file.clone()), e))?;
            let first = package.first.clone();
            let inner = format!("{file}[{first}]");
            if file.contains('[') {
                return Err(Error::unsupported(Place::element(file), "a package inside a package"));
            }
            let content = package.file(&first).map(<[u8]>::to_vec).unwrap_or_default();
            self.packages.insert(file, Rc::new(package));
            if content.starts_with(package::MAGIC) {
                return Err(Error::unsupported(Place::element(inner), "a package inside a package"));
            }
            return self.opened(inner, content);
        }
        let layer = if bytes.starts_with(binary::MAGIC) {
            binary::read(&bytes, &file)?
        } else {
            text::read(&String::from_utf8_lossy(&bytes), &file)?
        };
        self.layers.insert(file.clone(), Some(Rc::new(layer)));
        Ok(file)
    }
}
