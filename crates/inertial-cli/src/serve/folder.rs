//! Temporary folder of a server, removed at its end; folders of killed servers are removed by the next one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const LOCK: &str = "lock";

/// Private folder that is locked while its server runs.
#[derive(Debug)]
pub struct Folder {
    own: tempfile::TempDir,
    /// Open lock file; the lock ends with the process.
    _lock: File,
}

impl Folder {
    /// Creates the folder and removes those of servers that no longer run.
    pub fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(place: &Path) -> io::Result<Self> {
        for entry in fs::read_dir(place)?.filter_map(Result::ok) {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_abandoned(&entry.path()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let own = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
        let lock = File::create(own.path().join(LOCK))?;
        lock.try_lock().map_err(|e| io::Error::other(e.to_string()))?;
        Ok(Self { own, _lock: lock })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.own.path()
    }
}

const PREFIX: &str = "inertial-serve-";

/// Returns whether a folder has a lock file that is not locked. A folder without a lock file is still being created.
fn is_abandoned(folder: &Path) -> bool {
    let lock: PathBuf = folder.join(LOCK);
    // Links are not followed, so only our own folders are removed.
    let ours = folder.symlink_metadata().is_ok_and(|m| m.is_dir());
    ours && File::open(lock).is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_killed_servers_are_removed_at_the_next_start() {
        let place = tempfile::tempdir().unwrap();
        let alive = Folder::new_in(place.path()).unwrap();
        let dead = place.path().join(format!("{PREFIX}dead"));
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(LOCK), "").unwrap();
        fs::write(dead.join("upload"), "robot").unwrap();
        let next = Folder::new_in(place.path()).unwrap();
        assert!(!dead.exists());
        assert!(alive.path().exists() && next.path().exists());
        let path = next.path().to_owned();
        drop(next);
        assert!(!path.exists());
    }
}
