//! Files that wait in the folder of their target until they are whole.
//!
//! On Linux the waiting file has no name (`O_TMPFILE`): however the process ends, nothing is left. Where the file system has no
//! such files the waiting one is hidden and locked while its process lives. The next run in the folder removes those that
//! nobody holds.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::{Located, Result, ensure};

/// Name of a waiting file: prefix, random letters, suffix.
const PREFIX: &str = ".inertial-";
const LETTERS: usize = 12;
const SUFFIX: &str = ".part";

/// How often a name is tried that another process removes at the same time.
const TRIALS: usize = 8;

/// A file that will be at its target when it is whole.
pub struct Staged {
    file: Waiting,
    folder: PathBuf,
    target: PathBuf,
}

enum Waiting {
    #[cfg(target_os = "linux")]
    Unnamed(File),
    Named(NamedTempFile),
}

impl Staged {
    /// Creates an empty file that waits in the folder of `path`.
    pub fn new(path: &Path) -> Result<Self> {
        ensure!(!path.is_dir(), "is a folder: give the name of a file");
        // Through a link the file behind it is replaced, not the link.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        ensure!(folder.is_dir(), "cannot be written: there is no folder {}", folder.display());
        remove_abandoned(&folder);
        let file = Waiting::create(&folder).at("cannot be written")?;
        if let Ok(existing) = target.metadata() {
            take_over(file.as_file(), &existing).at("cannot be written")?;
        }
        Ok(Self { file, folder, target })
    }

    /// Puts the file in its place, in one step.
    pub fn put_in_place(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        match self.file {
            #[cfg(target_os = "linux")]
            Waiting::Unnamed(file) => {
                if link(&file, &self.target).is_ok() {
                    return Ok(());
                }
                // Only a file with a name can replace another.
                let named = builder().make_in(&self.folder, |name| link(&file, name))?;
                named.persist(&self.target).map(drop).map_err(|e| e.error)
            }
            Waiting::Named(file) => file.persist(&self.target).map(drop).map_err(|e| e.error),
        }
    }
}

impl Write for Staged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_file().flush()
    }
}

impl Waiting {
    fn create(folder: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(file) = unnamed(folder) {
            return Ok(Self::Unnamed(file));
        }
        Self::named(folder)
    }

    fn named(folder: &Path) -> io::Result<Self> {
        let mut trial = 0;
        loop {
            let file = builder().tempfile_in(folder)?;
            // Some network file systems have no locks; files of other processes are then left alone.
            let _ = file.as_file().lock();
            trial += 1;
            if file.path().exists() || trial == TRIALS {
                return Ok(Self::Named(file));
            }
        }
    }

    fn as_file(&self) -> &File {
        match self {
            #[cfg(target_os = "linux")]
            Self::Unnamed(file) => file,
            Self::Named(file) => file.as_file(),
        }
    }
}

fn builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(PREFIX).rand_bytes(LETTERS).suffix(SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // A new file gets what the user's mask leaves.
        builder.permissions(Permissions::from_mode(0o666));
    }
    builder
}

/// A file without a name; none where the system or the file system has none, or cannot name it later.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    let file =
        open(folder, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::from_raw_mode(0o666)).ok()?;
    let file = File::from(file);
    let _ = file.lock();
    descriptor(&file).exists().then_some(file)
}

/// Path of an open file that has no name.
#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Names an open file; refused where the name is taken.
#[cfg(target_os = "linux")]
fn link(file: &File, name: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(CWD, descriptor(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// Gives a file the owner and the mode of the one that it will replace; the owner where the system allows it.
#[cfg(unix)]
fn take_over(file: &File, existing: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (existing.uid(), existing.gid())
        && fchown(file, Some(existing.uid()), Some(existing.gid())).is_err()
    {
        // The group alone may be allowed.
        let _ = fchown(file, None, Some(existing.gid()));
    }
    file.set_permissions(Permissions::from_mode(existing.permissions().mode() & 0o777))
}

#[cfg(not(unix))]
fn take_over(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Removes waiting files of processes that ended without removing them. What cannot be looked at is left.
fn remove_abandoned(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let waiting = entries.filter(|entry| is_waiting(&entry.file_name()));
    for entry in waiting.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())) {
        // Whoever still writes it holds the lock.
        if let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether a name is one that a waiting file has.
fn is_waiting(name: &OsStr) -> bool {
    let letters = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX));
    letters
        .is_some_and(|letters| letters.len() == LETTERS && letters.bytes().all(|c| c.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_waiting_file_has_no_name_that_a_kill_could_leave() {
        let folder = tempfile::tempdir().unwrap();
        if unnamed(folder.path()).is_none() {
            return;
        }
        let target = folder.path().join("out");
        let mut staged = Staged::new(&target).unwrap();
        staged.write_all(b"whole").unwrap();
        assert_eq!(names(folder.path()), [""; 0]);
        staged.put_in_place().unwrap();
        let mut again = Staged::new(&target).unwrap();
        again.write_all(b"replaced").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        again.put_in_place().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"replaced");
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn abandoned_files_are_removed_by_the_next_run_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".inertial-abcdefABCDEF.part"), "left by a kill").unwrap();
        fs::write(folder.path().join(".inertial-settings"), "of the user").unwrap();
        let Ok(Waiting::Named(alive)) = Waiting::named(folder.path()) else { panic!("no file") };
        let alive_name = alive.path().file_name().unwrap().to_str().unwrap().to_owned();
        Staged::new(&folder.path().join("out")).unwrap().put_in_place().unwrap();
        let mut expected = [".inertial-settings".to_owned(), alive_name, "out".into()];
        expected.sort();
        assert_eq!(names(folder.path()), expected);
        alive.persist(folder.path().join("other")).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn an_existing_output_keeps_its_mode_whatever_the_mask() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        for mode in [0o666, 0o640, 0o600] {
            fs::write(&target, "before").unwrap();
            fs::set_permissions(&target, Permissions::from_mode(mode)).unwrap();
            Staged::new(&target).unwrap().put_in_place().unwrap();
            assert_eq!(target.metadata().unwrap().permissions().mode() & 0o777, mode);
        }
    }
}
