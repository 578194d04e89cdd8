//! Files that are staged in the folder of their target until they are complete.
//!
//! On Linux the staged file has no name (`O_TMPFILE`), so nothing is left behind however the process ends. If the
//! file system does not support such files, the staged file is hidden and locked while its process runs. The next
//! run in the folder removes those that are not locked.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::{Builder, NamedTempFile, TempPath};

use crate::{Located, Result, ensure};

/// Name of a staged file: prefix, random letters, suffix.
const PREFIX: &str = ".inertial-";
const LETTERS: usize = 12;
const SUFFIX: &str = ".part";

/// Number of attempts with a name that another process removes at the same time.
const TRIALS: usize = 8;

/// Number of calls that are currently naming and moving staged files.
static PLACING: AtomicUsize = AtomicUsize::new(0);

/// Returns whether complete outputs currently have hidden names. This lasts some microseconds; a process that ends then leaves them behind.
pub fn is_placing() -> bool {
    PLACING.load(Ordering::SeqCst) > 0
}

/// Guard for the period in which outputs have hidden names.
struct Placing;

impl Placing {
    fn begin() -> Self {
        PLACING.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Placing {
    fn drop(&mut self) {
        PLACING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// File that is moved to its target when it is complete.
pub struct Staged {
    file: Incomplete,
    folder: PathBuf,
    target: PathBuf,
}

/// Staged file that is not yet complete.
enum Incomplete {
    /// File without a name (`O_TMPFILE`).
    #[cfg(target_os = "linux")]
    Unnamed(File),
    /// Hidden file, locked while its process runs.
    Named(NamedTempFile),
}

impl Staged {
    /// Creates an empty file staged in the folder of `path`.
    pub fn new(path: &Path) -> Result<Self> {
        ensure!(!path.is_dir(), "is a folder: give the name of a file");
        // If the path is a link, the linked file is replaced, not the link.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        ensure!(folder.is_dir(), "cannot be written: there is no folder {}", folder.display());
        remove_abandoned(&folder);
        let file = Incomplete::create(&folder).at("cannot be written")?;
        if let Ok(existing) = target.metadata() {
            let reason = "make it writable or give the output another name";
            ensure!(!existing.permissions().readonly(), "cannot be written: is read-only: {reason}");
            take_over(file.as_file(), &existing).at("cannot be written")?;
        }
        Ok(Self { file, folder, target })
    }

    /// Moves the file to its target atomically.
    pub fn put_in_place(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        #[cfg(target_os = "linux")]
        if let Incomplete::Unnamed(file) = &self.file
            && link(file, &self.target).is_ok()
        {
            return Ok(());
        }
        // A file needs a name to replace another.
        let _placing = Placing::begin();
        self.with_name()?.replace()
    }

    /// Moves several files to their targets: all of them, or none if one fails. The error contains the index of that file.
    pub fn put_all_in_place(mut files: Vec<Self>) -> Result<(), (usize, io::Error)> {
        if files.len() == 1 {
            return files.remove(0).put_in_place().map_err(|error| (0, error));
        }
        // Steps that are slow or need disk space come first; renaming is neither.
        for (k, file) in files.iter().enumerate() {
            file.file.as_file().sync_all().map_err(|error| (k, error))?;
        }
        let _placing = Placing::begin();
        let name = |(k, file): (usize, Self)| file.with_name().map_err(|error| (k, error));
        let files = files.into_iter().enumerate().map(name).collect::<Result<Vec<_>, _>>()?;
        let mut replaced = Vec::new();
        for (k, file) in files.into_iter().enumerate() {
            let earlier = Earlier::keep(&file);
            if let Err(error) = file.replace() {
                replaced.into_iter().rev().for_each(Earlier::restore);
                return Err((k, error));
            }
            replaced.push(earlier);
        }
        Ok(())
    }

    /// Gives the staged file a name.
    fn with_name(self) -> io::Result<Named> {
        let (file, path) = match self.file {
            #[cfg(target_os = "linux")]
            Incomplete::Unnamed(file) => {
                let path = builder().make_in(&self.folder, |name| link(&file, name))?.into_temp_path();
                (file, path)
            }
            Incomplete::Named(file) => file.into_parts(),
        };
        Ok(Named { path, _locked: file, folder: self.folder, target: self.target })
    }
}

/// Complete file under a hidden name.
struct Named {
    path: TempPath,
    /// Open file, whose lock shows other processes that the file is not abandoned.
    _locked: File,
    folder: PathBuf,
    target: PathBuf,
}

impl Named {
    fn replace(self) -> io::Result<()> {
        self.path.persist(&self.target).map_err(|e| e.error)
    }
}

/// Previous content of a target, kept under a hidden name until all files of a call are in place.
struct Earlier {
    target: PathBuf,
    /// Hidden name; `None` if there was no file, or if the file system has no hard links.
    kept: Option<TempPath>,
    existed: bool,
}

impl Earlier {
    fn keep(file: &Named) -> Self {
        let target = file.target.clone();
        let existed = target.exists();
        let kept = builder().make_in(&file.folder, |name| fs::hard_link(&target, name));
        Self { kept: kept.ok().map(NamedTempFile::into_temp_path), existed, target }
    }

    /// Undoes a replacement, as far as the system allows.
    fn restore(self) {
        match self.kept {
            Some(kept) => drop(kept.persist(&self.target)),
            None if !self.existed => drop(fs::remove_file(&self.target)),
            None => {}
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

impl Incomplete {
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
            // Some network file systems have no locks; files of other processes are then not removed.
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
        // The permissions of a new file are limited by the umask of the user.
        builder.permissions(Permissions::from_mode(0o666));
    }
    builder
}

/// Opens a file without a name; `None` if the system or the file system does not support it, or cannot name it later.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    let file =
        open(folder, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::from_raw_mode(0o666)).ok()?;
    let file = File::from(file);
    let _ = file.lock();
    descriptor(&file).exists().then_some(file)
}

/// Returns the path of an open file that has no name.
#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Names an open file; fails if the name is taken.
#[cfg(target_os = "linux")]
fn link(file: &File, name: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(CWD, descriptor(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// Gives the staged file the mode of the file that it will replace, and its owner if the system allows it.
#[cfg(unix)]
fn take_over(file: &File, existing: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (existing.uid(), existing.gid())
        && fchown(file, Some(existing.uid()), Some(existing.gid())).is_err()
    {
        // Setting the group alone may be allowed.
        let _ = fchown(file, None, Some(existing.gid()));
    }
    file.set_permissions(Permissions::from_mode(existing.permissions().mode() & 0o777))
}

#[cfg(not(unix))]
fn take_over(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Removes staged files of processes that ended without removing them. Files that cannot be opened are kept.
fn remove_abandoned(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let waiting = entries.filter(|entry| is_staged(&entry.file_name()));
    for entry in waiting.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())) {
        // A process that still writes the file holds the lock.
        if let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns whether a name is that of a staged file.
fn is_staged(name: &OsStr) -> bool {
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
    fn a_staged_file_has_no_name_until_it_is_complete() {
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
    fn several_files_appear_together_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let [old, new, blocked] = ["old", "new", "blocked"].map(|name| folder.path().join(name));
        fs::write(&old, "before").unwrap();
        let stage = |target: &PathBuf| {
            let mut staged = Staged::new(target).unwrap();
            staged.write_all(b"after").unwrap();
            staged
        };
        let files = [&old, &new, &blocked].map(stage);
        // A folder that appears at a target in the meantime cannot be replaced.
        fs::create_dir(&blocked).unwrap();
        assert_eq!(Staged::put_all_in_place(files.into()).unwrap_err().0, 2);
        assert_eq!(fs::read(&old).unwrap(), b"before");
        assert_eq!(names(folder.path()), ["blocked", "old"]);
        fs::remove_dir(&blocked).unwrap();
        Staged::put_all_in_place([&old, &new, &blocked].map(stage).into()).unwrap();
        for path in [&old, &new, &blocked] {
            assert_eq!(fs::read(path).unwrap(), b"after");
        }
        assert_eq!(names(folder.path()), ["blocked", "new", "old"]);
    }

    #[test]
    fn only_abandoned_files_are_removed_by_the_next_run() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".inertial-abcdefABCDEF.part"), "left by a kill").unwrap();
        fs::write(folder.path().join(".inertial-settings"), "of the user").unwrap();
        let Ok(Incomplete::Named(alive)) = Incomplete::named(folder.path()) else { panic!("no file") };
        let alive_name = alive.path().file_name().unwrap().to_str().unwrap().to_owned();
        Staged::new(&folder.path().join("out")).unwrap().put_in_place().unwrap();
        let mut expected = [".inertial-settings".to_owned(), alive_name, "out".into()];
        expected.sort();
        assert_eq!(names(folder.path()), expected);
        alive.persist(folder.path().join("other")).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn an_existing_output_keeps_its_mode_for_any_umask() {
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
