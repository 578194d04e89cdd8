//! Files that one call reads and writes, independent of the names used for them.

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
    inputs: Vec<Place>,
    outputs: Vec<Place>,
}

impl Places {
    /// Records an input.
    pub fn read(&mut self, name: &str) -> Result<()> {
        // Standard input may be redirected from a file: `inertial check - --fix --out robot.urdf < robot.urdf`.
        let path = if name == "-" { "/dev/stdin" } else { name };
        let Some(place) = Place::of(Path::new(path)) else { return Ok(()) };
        if let Some(output) = self.outputs.iter().find(|output| output.is(&place)) {
            return Err(is_input(&output.label, name));
        }
        if !self.inputs.iter().any(|known| known.is(&place)) {
            self.inputs.push(Place { label: name.to_owned(), ..place });
        }
        Ok(())
    }

    /// Records outputs.
    pub fn reserve<'p>(&mut self, outputs: impl IntoIterator<Item = &'p Path>) -> Result<()> {
        let mut new: Vec<Place> = Vec::new();
        for place in outputs.into_iter().filter_map(Place::of) {
            if let Some(input) = self.inputs.iter().find(|input| input.is(&place)) {
                return Err(is_input(&place.label, &input.label));
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
}

/// Returns the error for an output that would replace an input.
fn is_input(output: &str, input: &str) -> Error {
    let also = if input == output { String::new() } else { format!(" ({input})") };
    Error::Input(format!(
        "{output}: is also an input{also} and would be overwritten: give the output another name"
    ))
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
    fn two_outputs_at_one_path_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (new, same) = (folder.path().join("new.html"), folder.path().join("./new.html"));
        let error = Places::default().reserve([new.as_path(), same.as_path()]).unwrap_err().to_string();
        assert!(error.contains("two results would be written"), "{error}");
        // Devices are not replaced.
        Places::default().reserve([Path::new("/dev/null"), Path::new("/dev/null")]).unwrap();
    }
}
