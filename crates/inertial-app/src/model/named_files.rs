//! Names of files in the text of a model.

use std::collections::BTreeSet;
use std::path::Path;

/// Files that texts of a model name, whether or not the program reads them: meshes, textures, plugins.
#[derive(Debug, Default)]
pub(super) struct NamedFiles {
    names: BTreeSet<String>,
    /// Folders of an MJCF model, in which its files may be.
    folders: BTreeSet<String>,
}

impl NamedFiles {
    /// Adds the files in a text; other formats than XML name none.
    pub fn add(&mut self, text: &str) {
        if !text.contains("file") && !text.contains("uri") {
            return;
        }
        let Ok(document) = roxmltree::Document::parse(text) else { return };
        for node in document.descendants().filter(roxmltree::Node::is_element) {
            for attribute in node.attributes() {
                let (name, value) = (attribute.name(), attribute.value().trim());
                if ["meshdir", "assetdir", "texturedir"].contains(&name) {
                    self.folders.insert(value.to_owned());
                } else if name.starts_with("file") || name == "uri" {
                    self.names.insert(value.to_owned());
                }
            }
            if node.has_tag_name("uri") {
                self.names.extend(node.text().map(|text| text.trim().to_owned()));
            }
        }
    }

    /// Returns the names, and the names in each of the folders.
    pub fn list(self) -> Vec<String> {
        let Self { mut names, folders } = self;
        names.remove("");
        let inside = |folder: &String| {
            let folder = Path::new(folder);
            let path = |name: &String| folder.join(name).to_string_lossy().into_owned();
            names.iter().map(path).collect::<Vec<_>>()
        };
        let inside: Vec<String> = folders.iter().flat_map(inside).collect();
        names.into_iter().chain(inside).collect()
    }
}
