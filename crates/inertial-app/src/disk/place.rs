//! Files that one call reads and writes, independent of the names used for them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::{Error, Located, Result};

/// Identity of a regular file, or of a path at which no file exists yet.
#[derive(Debug)]
struct Place {
    /// Path with links resolved.
    path: PathBuf,
    /// Identity of an existing file in the file system.
    id: Option<FileId>,
    /// Name given by the caller.
    label: String,
}

/// Device and inode number of a file; equal for hard links.
#[cfg(unix)]
type FileId = (u64, u64);
#[cfg(not(unix))]
type FileId = std::convert::Infallible;

impl Place {
    /// Returns the place of a path; `None` for devices and pipes, which are written but never replaced.
    fn of(path: &Path) -> Option<Self> {
        let label = path.display().to_string();
        match path.metadata() {
            Ok(found) if !found.is_file() => None,
            Ok(found) => {
                let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
                Some(Self { path, id: id(&found), label })
            }
            Err(_) => Some(Self { path: free_name(path), id: None, label }),
        }
    }

    /// Returns whether both are the same file.
    fn is(&self, other: &Self) -> bool {
        self.path == other.path || (self.id.is_some() && self.id == other.id)
    }
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "other systems have none")]
fn id(found: &std::fs::Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt as _;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn id(_: &std::fs::Metadata) -> Option<FileId> {
    None
}

/// Returns the path of a file that does not exist yet, with the links of its folder resolved.
fn free_name(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// Files that a call reads and writes.
#[derive(Debug, Default)]
pub struct Places {
    inputs: HashMap<PathBuf, Input>,
    /// Paths of inputs by the identity of the file.
    ids: HashMap<FileId, PathBuf>,
    outputs: Vec<Place>,
    /// Joint files of models that are written.
    joint_files: Vec<Place>,
    /// Folders whose files are recorded.
    folders: HashSet<String>,
    /// Message of the first output that was found to be an input.
    refused: Option<String>,
}

/// File that is read, or that would be read if it existed.
#[derive(Debug)]
struct Input {
    label: String,
    /// Whether the joint file of a written model may have this path: the file is absent, or it belongs to another model.
    is_free: bool,
}

impl Places {
    /// Records an input.
    pub fn read(&mut self, name: &str) -> Result<()> {
        // Standard input may be redirected from a file: `inertial check - --fix --out robot.urdf < robot.urdf`.
        let path = if name == "-" { "/dev/stdin" } else { name };
        self.read_path(Path::new(path), name, false)
    }

    /// Records the joint file of a model that is read. `is_own` means that it exists and belongs to this version of the model.
    pub fn read_joint_file(&mut self, path: &Path, is_own: bool) -> Result<()> {
        self.read_path(path, &path.display().to_string(), !is_own)
    }

    /// Records the files of a folder that is read as a log, once.
    pub fn read_folder(&mut self, name: &str, files: impl FnOnce() -> Vec<PathBuf>) -> Result<()> {
        if self.folders.contains(name) {
            return Ok(());
        }
        for file in files() {
            self.read_path(&file, &file.display().to_string(), false)?;
        }
        self.folders.insert(name.to_owned());
        Ok(())
    }

    fn read_path(&mut self, path: &Path, name: &str, is_free: bool) -> Result<()> {
        let Some(place) = Place::of(path) else { return Ok(()) };
        let is_replaced =
            |output: &&Place| output.is(&place) && !(is_free && self.is_joint_file_of_output(output));
        if let Some(output) = self.outputs.iter().find(is_replaced) {
            let message = is_input(&output.label, name);
            self.refused.get_or_insert_with(|| message.clone());
            return Err(Error::Input(message));
        }
        if let Some(id) = place.id {
            self.ids.entry(id).or_insert_with(|| place.path.clone());
        }
        let new = || Input { label: name.to_owned(), is_free };
        self.inputs.entry(place.path).and_modify(|input| input.is_free &= is_free).or_insert_with(new);
        Ok(())
    }

    /// Records the path of the joint file of a model that is written.
    pub fn write_joint_file(&mut self, path: &Path) {
        self.joint_files.extend(Place::of(path));
    }

    fn is_joint_file_of_output(&self, output: &Place) -> bool {
        self.joint_files.iter().any(|file| file.is(output))
    }

    /// Records outputs.
    pub fn reserve<'p>(&mut self, outputs: impl IntoIterator<Item = &'p Path>) -> Result<()> {
        let mut new: Vec<Place> = Vec::new();
        for place in outputs.into_iter().filter_map(Place::of) {
            if let Some(input) = self.input_at(&place) {
                return Err(Error::Input(is_input(&place.label, &input.label)));
            }
            if new.iter().any(|other| other.is(&place)) {
                let reason = "two results would be written to this file: give each its own name";
                return Err(Error::Input(reason.into())).at(place.label);
            }
            new.push(place);
        }
        self.outputs.append(&mut new);
        Ok(())
    }

    /// Returns the input that an output would replace.
    fn input_at(&self, output: &Place) -> Option<&Input> {
        let linked = output.id.and_then(|id| self.ids.get(&id)).and_then(|path| self.inputs.get(path));
        let found = self.inputs.get(&output.path).or(linked)?;
        (!(found.is_free && self.is_joint_file_of_output(output))).then_some(found)
    }

    /// Fails if an input was found to be an output. Readers that tolerate missing files may have ignored that error.
    pub fn check(&self) -> Result<()> {
        self.refused.as_ref().map_or(Ok(()), |message| Err(Error::Input(message.clone())))
    }
}

/// Returns the message about an output that would replace an input.
fn is_input(output: &str, input: &str) -> String {
    let also = if input == output { String::new() } else { format!(" ({input})") };
    format!("{output}: is also an input{also} and would be overwritten: give the output another name")
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_output_that_is_an_input_is_refused_by_path_link_and_inode() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        fs::write(file("log.csv"), "t").unwrap();
        fs::create_dir(file("sub")).unwrap();
        std::os::unix::fs::symlink(file("log.csv"), file("link.csv")).unwrap();
        fs::hard_link(file("log.csv"), file("hard.csv")).unwrap();
        for output in ["log.csv", "sub/../log.csv", "link.csv", "hard.csv"] {
            let (input, output) = (file("log.csv").display().to_string(), file(output));
            let mut places = Places::default();
            places.read(&input).unwrap();
            let error = places.reserve([output.as_path()]).unwrap_err().to_string();
            assert!(error.contains("is also an input"), "{error}");
            let mut places = Places::default();
            places.reserve([output.as_path()]).unwrap();
            assert!(places.read(&input).is_err(), "{}", output.display());
        }
    }

    #[test]
    fn a_refusal_that_a_reader_ignores_is_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let mesh = folder.path().join("mesh.stl");
        let mut places = Places::default();
        places.check().unwrap();
        // The mesh does not exist yet.
        places.reserve([mesh.as_path()]).unwrap();
        let _ = places.read(&mesh.display().to_string());
        assert!(places.check().unwrap_err().to_string().contains("is also an input"));
    }

    #[test]
    fn a_joint_file_of_another_model_is_replaced_only_by_a_joint_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("robot.joints.json");
        for (is_own, is_joint_file, allowed) in
            [(false, true, true), (false, false, false), (true, true, false)]
        {
            for output_first in [true, false] {
                let mut places = Places::default();
                if is_joint_file {
                    places.write_joint_file(&file);
                }
                let (first, second) = if output_first {
                    (places.reserve([file.as_path()]), places.read_joint_file(&file, is_own))
                } else {
                    (places.read_joint_file(&file, is_own), places.reserve([file.as_path()]))
                };
                first.unwrap();
                assert_eq!(second.is_ok(), allowed, "{is_own} {is_joint_file} {output_first}");
            }
        }
    }

    #[test]
    fn two_outputs_at_one_path_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (new, same) = (folder.path().join("new.html"), folder.path().join("./new.html"));
        let error = Places::default().reserve([new.as_path(), same.as_path()]).unwrap_err().to_string();
        assert!(error.contains("two results would be written"), "{error}");
        // Devices are not replaced.
        Places::default().reserve([Path::new("/dev/null"), Path::new("/dev/null")]).unwrap();
    }
}
