//! Format of a written model.

use std::path::Path;

use inertial::mechanism::read::file::is_json;
use inertial::mechanism::read::{self, Format};
use inertial::mechanism::write::{Syntax, describe};

use crate::{Error, Located, Model, Result};

impl Model {
    /// Prepares the model for writing to `path`: in its own format, or as a mechanism file if the path ends with
    /// `.toml` or `.json` and the model has another format.
    pub fn to_be_written(mut self, path: &Path) -> Result<Self> {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        if self.is_scene && !matches!(extension.as_str(), "toml" | "json") {
            let message = "USD scenes cannot be written: give a name that ends in .toml or .json";
            return Err(Error::Input(message.to_owned())).at(path.display());
        }
        self.out = Some(path.to_owned());
        let given = match read::detect(&self.text) {
            _ if self.is_scene => "usd",
            Format::Urdf => "urdf",
            Format::Mjcf => "mjcf",
            Format::Sdf => "sdf",
            Format::Usd => "usd",
            Format::File if is_json(&self.text) => "json",
            Format::File => "toml",
        };
        let syntax = match extension.as_str() {
            wanted if wanted == given => return Ok(self),
            "toml" => Syntax::Toml,
            "json" => Syntax::Json,
            "xacro" => {
                let message = "xacro files cannot be written: give a name that ends in .urdf, .toml or .json";
                return Err(Error::Input(message.to_owned())).at(path.display());
            }
            "urdf" | "mjcf" | "sdf" => {
                let message = format!(
                    "the model is not {}: write it in its own format, or as a mechanism file (.toml, .json)",
                    extension.to_uppercase()
                );
                return Err(Error::Input(message)).at(path.display());
            }
            _ => return Ok(self),
        };
        let described = read::model(&self.text, &self.mesh_files).at(&self.label)?;
        let text = describe(&described, self.options.base, syntax).at(&self.label)?;
        self.target = Some(Box::new(self.with_text(text)?));
        Ok(self)
    }

    /// Returns the model whose text is written.
    pub(crate) fn target(&self) -> &Self {
        self.target.as_deref().unwrap_or(self)
    }
}
