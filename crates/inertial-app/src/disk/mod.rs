//! File system: inputs from files, and outputs that are written atomically.

mod output;
mod packages;
mod place;
mod stage;

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use inertial_data::{FolderFiles, Reader, Source, folder_files};

pub use output::{OutputFiles, Sink};
use place::Places;
pub use stage::is_placing;

use crate::encoding::decoded;
use crate::logs::TEXT_LIMIT;
use crate::model::joint_file::{is_joint_file, is_joint_file_of, joint_file};
use crate::{Error, Inputs, Located as _, Result, bail, ensure};

/// Inputs from files; `-` is standard input.
///
/// Tracks the files that one call reads and writes, and refuses to replace an input. Clones share this record; each
/// call has its own `Disk`.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    places: Arc<Mutex<Places>>,
}

impl Disk {
    /// Records that an input is read; fails if an output will replace it.
    pub fn reads(&self, name: &str) -> Result<()> {
        self.with_places(|places| places.read(name))
    }

    /// Fails if an output of the call would replace a file that was read, also if the reader ignored this error.
    fn check(&self) -> Result<()> {
        self.with_places(|places| places.check())
    }

    /// Records the outputs of a call before its work begins; fails if one of them is an input, two are the same file,
    /// or one cannot be written.
    pub fn reserve<'p>(&self, outputs: impl IntoIterator<Item = &'p Path>) -> Result<()> {
        let outputs: Vec<&Path> = outputs.into_iter().collect();
        self.record(outputs.iter().copied())?;
        outputs.into_iter().try_for_each(output::check)
    }

    /// Records outputs that are written immediately.
    fn record<'p>(&self, outputs: impl IntoIterator<Item = &'p Path>) -> Result<()> {
        self.with_places(|places| places.reserve(outputs))
    }

    /// Returns the path of the joint file of a model that will be written; fails if a file with other content has that path.
    pub fn joint_file(&self, model: &Path) -> Result<PathBuf> {
        let path = joint_file(model);
        self.with_places(|places| places.write_joint_file(&path));
        if model.is_dir() {
            // The error for a folder is reported later.
            return Ok(path);
        }
        let is_other_file = match path.metadata() {
            Ok(found) if found.is_file() => {
                !read_file(&path, TEXT_LIMIT).is_ok_and(|bytes| is_joint_file(&bytes))
            }
            found => found.is_ok(),
        };
        if is_other_file {
            let message =
                "this file is reserved for joint values but has other contents: give the model another name";
            return Err(Error::Input(message.into())).at(path.display());
        }
        Ok(path)
    }

    fn with_places<T>(&self, work: impl FnOnce(&mut Places) -> T) -> T {
        // Every change is a single step, so a panic leaves a consistent value.
        work(&mut self.places.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Inputs for Disk {
    fn text(&self, name: &str, most: u64) -> Result<String> {
        decoded(self.model(name, most)?)
    }

    fn model(&self, name: &str, most: u64) -> Result<Vec<u8>> {
        self.reads(name)?;
        if name == "-" { bounded(io::stdin().lock(), most) } else { read_file(Path::new(name), most) }
    }

    fn referenced(&self, model: &str, name: &str, most: u64) -> Result<Vec<u8>> {
        let path = Path::new(model).parent().unwrap_or(Path::new("")).join(name);
        self.reads(&path.to_string_lossy())?;
        read_file(&path, most)
    }

    fn included(&self, model: &str, name: &str, most: u64) -> Result<String> {
        if model == "-" {
            return inertial::mechanism::read::no_includes(name).map_err(Error::Input);
        }
        let path = Path::new(model).parent().unwrap_or(Path::new("")).join(name);
        self.reads(&path.to_string_lossy())?;
        read_file(&path, most)
            .and_then(decoded)
            .map_err(|e| Error::Input(format!("cannot include \"{name}\": {e}")))
    }

    fn package(&self, model: &str, name: &str) -> Option<String> {
        let folder = packages::candidates(name, Path::new(model)).into_iter().next()?;
        Some(folder.to_string_lossy().into_owned())
    }

    fn check_outputs(&self) -> Result<()> {
        self.check()
    }

    fn files_of_model(&self, model: &str, text: &str, names: &[String]) -> Result<()> {
        let model = Path::new(model);
        if !model.is_file() {
            return Ok(());
        }
        let mut packages = HashMap::new();
        for name in names {
            for path in named_files(name, model, &mut packages) {
                self.reads(&path.to_string_lossy())?;
            }
        }
        let joints = joint_file(model);
        let is_own = joints.is_file()
            && read_file(&joints, TEXT_LIMIT).is_ok_and(|bytes| is_joint_file_of(&bytes, text));
        self.with_places(|places| places.read_joint_file(&joints, is_own))
    }

    fn log(&self, name: &str, source: &Source) -> Result<Box<dyn Reader>> {
        self.reads(name)?;
        let path = Path::new(name);
        if path.is_dir() {
            let files = || {
                let FolderFiles { read, others } = folder_files(path);
                read.into_iter().chain(others).collect()
            };
            self.with_places(|places| places.read_folder(name, files))?;
        }
        Ok(inertial_data::open(Path::new(name), source)?)
    }

    fn parts(&self, name: &str) -> Vec<String> {
        let path = Path::new(name);
        if !path.is_dir() {
            return vec![name.to_owned()];
        }
        folder_files(path).read.iter().map(|file| file.to_string_lossy().into_owned()).collect()
    }

    fn open(&self, name: &str) -> Result<Box<dyn Read + Send>> {
        self.reads(name)?;
        if name == "-" {
            return Ok(Box::new(io::stdin()));
        }
        ensure!(!Path::new(name).is_dir(), "is a folder, not a file");
        Ok(Box::new(File::open(name)?))
    }

    fn mesh(&self, model: &str, name: &str, most: u64) -> Option<(String, Result<Vec<u8>>)> {
        let model = Path::new(model);
        let path = model.is_file().then(|| mesh_file(name, model)).flatten()?;
        let read = || {
            self.reads(&path.to_string_lossy())?;
            let size = path.metadata()?.len();
            ensure!(size <= most, "has {} MB, more than the limit of {} MB", size >> 20, most >> 20);
            Ok(std::fs::read(&path)?)
        };
        Some((path.display().to_string(), read()))
    }

    fn size(&self, name: &str) -> u64 {
        std::fs::metadata(name).map_or(0, |m| m.len())
    }
}

fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>> {
    // The kind is checked before opening, because a device or a pipe may be endless or block.
    let metadata = path.metadata()?;
    check_kind(&metadata)?;
    if metadata.len() > limit {
        bail!("has {} MB, more than the limit of {} MB", metadata.len() >> 20, limit >> 20);
    }
    bounded(File::open(path)?, limit)
}

fn check_kind(metadata: &Metadata) -> Result<()> {
    ensure!(!metadata.is_dir(), "is a folder, not a file");
    ensure!(metadata.is_file(), "is not a regular file: use - to read from standard input");
    Ok(())
}

fn bounded(source: impl Read, limit: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(limit + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= limit, "is larger than the limit of {} MB", limit >> 20);
    Ok(bytes)
}

/// Returns the paths that a file name in a model may refer to, whether or not there is a file.
fn named_files(name: &str, model: &Path, packages: &mut HashMap<String, Vec<PathBuf>>) -> Vec<PathBuf> {
    let in_package = ["package://", "model://"].iter().find_map(|start| name.strip_prefix(start));
    if let Some((package, rest)) = in_package.and_then(|rest| rest.split_once('/')) {
        let folders =
            packages.entry(package.to_owned()).or_insert_with(|| packages::candidates(package, model));
        return folders.iter().map(|folder| folder.join(rest)).collect();
    }
    let name = name.trim_start_matches("file://");
    // A model that is a link has its files beside the link or beside the linked file.
    let beside = [Some(model.to_owned()), model.canonicalize().ok()].into_iter().flatten();
    beside.map(|model| model.parent().unwrap_or(Path::new("")).join(name)).collect()
}

/// Returns the file that a mesh name refers to: beside the model, or in a package.
fn mesh_file(name: &str, model: &Path) -> Option<PathBuf> {
    let in_package = name.strip_prefix("package://").and_then(|rest| rest.split_once('/'));
    let candidates: Vec<PathBuf> = if let Some((package, rest)) = in_package {
        packages::candidates(package, model).into_iter().map(|folder| folder.join(rest)).collect()
    } else {
        let model = model.canonicalize().ok()?;
        vec![model.parent()?.join(name.trim_start_matches("file://"))]
    };
    let known = |path: &PathBuf| {
        let end = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
        end.is_some_and(|e| ["stl", "obj", "msh", "dae", "glb"].iter().any(|known| e == *known))
            && path.is_file()
    };
    candidates.into_iter().find(known)
}
