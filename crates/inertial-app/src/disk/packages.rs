//! Folders of ROS packages.

use std::path::{Path, PathBuf};

use crate::encoding::decoded;

/// Number of parent folders of the model in which a package is searched for.
const ABOVE: usize = 6;
/// Name of the package manifest.
const MANIFEST: &str = "package.xml";

/// Returns the folders that may contain a package, most likely first: those around the model, then those of
/// `ROS_PACKAGE_PATH` and `AMENT_PREFIX_PATH`.
pub(super) fn candidates(package: &str, model: &Path) -> Vec<PathBuf> {
    if package.is_empty() || package.contains(['/', '\\']) || package.starts_with('.') {
        return Vec::new();
    }
    let model = model.canonicalize().unwrap_or_else(|_| model.to_owned());
    let above = model.ancestors().skip(1).take(ABOVE);
    let around = above.flat_map(|folder| {
        let is_own = folder.file_name().is_some_and(|name| name == package) || is_named(folder, package);
        is_own.then(|| folder.to_owned()).into_iter().chain([folder.join(package)])
    });
    let listed = |variable: &str| -> Vec<PathBuf> {
        std::env::var_os(variable).map(|paths| std::env::split_paths(&paths).collect()).unwrap_or_default()
    };
    let ros1 = listed("ROS_PACKAGE_PATH").into_iter().flat_map(|folder| {
        let is_own = folder.file_name().is_some_and(|name| name == package);
        is_own
            .then(|| folder.clone())
            .into_iter()
            .chain([folder.join(package)])
            .chain(inside(&folder, package))
    });
    let ros2 = listed("AMENT_PREFIX_PATH").into_iter().map(|prefix| prefix.join("share").join(package));
    let mut out: Vec<PathBuf> = around.chain(ros1).chain(ros2).filter(|folder| folder.is_dir()).collect();
    // Folders with a manifest are tried first.
    out.sort_by_key(|folder| !folder.join(MANIFEST).is_file());
    out
}

/// Returns the packages one level below the folders of a workspace, such as `src/robots/arm_description`.
fn inside(folder: &Path, package: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut out: Vec<PathBuf> =
        entries.take(10_000).flatten().map(|entry| entry.path().join(package)).collect();
    out.retain(|path| path.is_dir());
    out.sort();
    out
}

/// Returns whether the manifest in a folder has this name; the folder of a checkout may be named differently.
fn is_named(folder: &Path, package: &str) -> bool {
    let manifest = super::read_file(&folder.join(MANIFEST), 1 << 20).and_then(decoded);
    manifest.is_ok_and(|text| text.contains(&format!("<name>{package}</name>")))
}
