//! Files that tests read: golden figures in `testdata/`, and models and logs of real robots beside the checkout.

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Returns the folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the path of a file or folder under `testdata/golden`, which every clone has.
pub fn golden(path: &str) -> PathBuf {
    root().join("testdata/golden").join(path)
}

/// Returns the path of a model or log under `../shared`; `None` if it is missing and tests may be skipped.
pub fn shared(path: &str) -> Option<PathBuf> {
    let path = root().join("../shared").join(path);
    if path.exists() {
        return Some(path);
    }
    skip(&format!("{} is missing", path.display()));
    None
}

/// Reports that a test is skipped. Fails the test unless `INERTIAL_ALLOW_SKIP=1` is set.
#[track_caller]
pub fn skip(reason: &str) {
    assert!(
        std::env::var_os("INERTIAL_ALLOW_SKIP").is_some_and(|v| v == "1"),
        "{reason}; set INERTIAL_ALLOW_SKIP=1 to skip tests whose data or programs are missing"
    );
    // Bypasses the captured output of the test.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}
