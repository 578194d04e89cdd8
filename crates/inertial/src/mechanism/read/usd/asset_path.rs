//! Paths of files that layers refer to.

/// Returns whether a name is not a file but a network address or an in-memory layer.
pub(super) fn is_address(asset: &str) -> bool {
    asset.contains("://") || asset.starts_with("anon:")
}

/// Returns the full name of a file that another file refers to.
pub(super) fn resolved(from: &str, asset: &str) -> String {
    let asset = asset.split(":SDF_FORMAT_ARGS:").next().unwrap_or_default();
    if is_address(asset) {
        return asset.to_owned();
    }
    let asset = asset.replace('\\', "/");
    // References inside a package are relative to the package.
    let (package, from) = match from.strip_suffix(']').and_then(|f| f.split_once('[')) {
        Some((package, inner)) => (Some(package), inner),
        None => (None, from),
    };
    let (asset, inner) = match asset.strip_suffix(']').and_then(|a| a.split_once('[')) {
        Some((outer, inner)) => (outer.to_owned(), Some(inner.to_owned())),
        None => (asset, None),
    };
    let is_absolute = asset.starts_with('/') || asset.as_bytes().get(1) == Some(&b':');
    let mut parts: Vec<&str> = match from.rsplit_once('/') {
        Some((folder, _)) if !is_absolute => folder.split('/').collect(),
        _ => Vec::new(),
    };
    for part in asset.split('/') {
        match part {
            "." => {}
            "" if !(is_absolute && parts.is_empty()) => {}
            ".." if parts.last().is_some_and(|p| *p != ".." && !p.is_empty()) => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    match (package, inner) {
        (Some(package), _) => format!("{package}[{path}]"),
        (None, Some(inner)) => format!("{path}[{inner}]"),
        (None, None) => path,
    }
}
