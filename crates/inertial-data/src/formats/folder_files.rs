//! Files of a log that is a folder.

use std::path::PathBuf;

/// Files of a log that is a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderFiles {
    /// Files that are read, in their order.
    pub read: Vec<PathBuf>,
    /// Files that belong to the log and are not read, such as videos, or that would be read if they existed.
    pub others: Vec<PathBuf>,
}
