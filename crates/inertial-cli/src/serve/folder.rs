//! The folder of one server, gone with it; what killed ones left is removed by the next.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const LOCK: &str = "lock";

/// A private folder, locked while its server lives.
#[derive(Debug)]
pub struct Folder {
    own: tempfile::TempDir,
    /// Held open: the lock ends with the process, however it ends.
    _lock: File,
}

impl Folder {
    /// Makes the folder and removes those of servers that no longer live.
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.own.path()
    }
}

const PREFIX: &str = "inertial-serve-";

/// Whether a folder has a lock that nobody holds. One that has none yet is just being made.
fn is_abandoned(folder: &Path) -> bool {
    let lock: PathBuf = folder.join(LOCK);
    // A link could lead anywhere: only folders of our own are touched.
    let ours = folder.symlink_metadata().is_ok_and(|m| m.is_dir());
    ours && File::open(lock).is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_next_start_removes_what_a_killed_server_left() {
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
