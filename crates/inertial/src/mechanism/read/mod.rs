//! Readers of model texts. The format is recognized from the content.

pub mod file;
mod lines;
pub mod mjcf;
pub(crate) mod repair;
mod rounding;
pub mod sdf;
pub mod urdf;
pub mod usd;
pub mod xacro;
pub(crate) mod xml;

use super::MechanismBuilder;
use crate::{Error, Place, Result};

/// Longest model text that is read, in bytes (64 MiB); real models stay below a few megabytes.
pub const MAX_TEXT: usize = 64 << 20;

/// Model formats that [`model`] recognizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// URDF and URDF+ (`<robot>`).
    Urdf,
    /// MuJoCo's XML (`<mujoco>`).
    Mjcf,
    /// Gazebo's SDF (`<sdf>`).
    Sdf,
    /// USD scenes (as text).
    Usd,
    /// Mechanism files of this project (JSON or TOML).
    File,
}

/// Access to the files that a model refers to. The implementation for functions that return texts provides no meshes.
pub trait ModelFiles {
    /// Returns the text of an included file. `name` is the name as written in the model.
    fn text(&self, name: &str) -> Result<String, String>;

    /// Returns the content of a file that a USD scene refers to. `name` is its path relative to the folder of the model.
    fn file(&self, name: &str) -> Result<Vec<u8>, String> {
        self.text(name).map(String::into_bytes)
    }

    /// Returns the content of a mesh file.
    fn mesh(&self, name: &str) -> Result<Vec<u8>, String> {
        Err(format!("cannot read the mesh \"{name}\": the model was not read from a file"))
    }
}

impl<F: Fn(&str) -> Result<String, String>> ModelFiles for F {
    fn text(&self, name: &str) -> Result<String, String> {
        self(name)
    }
}

/// Source of the files that a model refers to.
pub type Include<'a> = &'a dyn ModelFiles;

/// Rejects every include: an [`Include`] for models without other files.
pub fn no_includes(name: &str) -> Result<String, String> {
    Err(format!("cannot include \"{name}\": the model was not read from a file"))
}

/// Detects the format of a text. XML of an unknown format counts as URDF, whose reader then reports what it expects.
pub fn detect(text: &str) -> Format {
    if usd::is_usd(text.as_bytes()) {
        return Format::Usd;
    }
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with('<') {
        return Format::File;
    }
    // The root element is the first tag that is not a declaration, comment or document type.
    let mut rest = text;
    loop {
        let Some(start) = rest.find('<') else { return Format::Urdf };
        rest = &rest[start..];
        let skip = if rest.starts_with("<!--") {
            rest.find("-->").map(|i| i + 3)
        } else if rest.starts_with("<?") {
            rest.find("?>").map(|i| i + 2)
        } else if rest.starts_with("<!") {
            rest.find('>').map(|i| i + 1)
        } else {
            let roots = [("mujoco", Format::Mjcf), ("sdf", Format::Sdf)];
            let known = roots.into_iter().find(|(root, _)| rest[1..].starts_with(root));
            return known.map_or(Format::Urdf, |(_, format)| format);
        };
        match skip {
            Some(n) => rest = &rest[n..],
            None => return Format::Urdf,
        }
    }
}

/// Rejects texts longer than [`MAX_TEXT`], so that memory and time stay bounded.
pub(crate) fn check_size(text: &str) -> Result<()> {
    if text.len() <= MAX_TEXT {
        return Ok(());
    }
    let message =
        format!("the text has {} MB: models above {} MB are not read", text.len() >> 20, MAX_TEXT >> 20);
    Err(Error::syntax(Place::default(), message))
}

/// Reads a model of any format.
///
/// ```
/// use inertial::mechanism::read;
/// let text = r#"<robot name="rod"><link name="base"/><link name="rod"/>
///   <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/></joint></robot>"#;
/// let mechanism = read::model(text, &read::no_includes)?.build(&Default::default())?;
/// assert_eq!(mechanism.nv(), 1);
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn model(text: &str, include: Include<'_>) -> Result<MechanismBuilder> {
    check_size(text)?;
    match detect(text) {
        Format::Urdf => urdf::read(text),
        Format::Mjcf => mjcf::read(text, include),
        Format::Sdf => sdf::read(text),
        Format::Usd => usd::read(text.as_bytes(), include),
        Format::File => file::read(text),
    }
}
