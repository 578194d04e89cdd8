//! Models from files, standard input and the program itself.

use std::cell::Cell;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use inertial::dynamics::ClosedMechanism;
use inertial::mechanism::{Base, BodyKind, BuildOptions, Mechanism, MechanismBuilder, builtin, read};
use serde::Serialize;

use crate::session;

/// Models are texts that people edit; the largest of the field have a few megabytes.
const SIZE_LIMIT: u64 = 64 << 20;

/// A model that was read but not yet built.
pub struct Model {
    /// As the user named it, for messages.
    pub label: String,
    /// Its text.
    pub text: String,
    /// What it says.
    pub builder: MechanismBuilder,
}

impl Model {
    /// Reads a model: a file, `-` for standard input, or `builtin:NAME`.
    pub fn load(argument: &str) -> Result<Self> {
        Self::read(argument).with_context(|| label(argument))
    }

    fn read(argument: &str) -> Result<Self> {
        let (text, folder) = if let Some(name) = argument.strip_prefix("builtin:") {
            (builtin::text(name)?.to_owned(), None)
        } else if let Some(text) = session::model(argument) {
            (text, None)
        } else if argument == "-" {
            (bounded(std::io::stdin().lock(), SIZE_LIMIT)?, None)
        } else {
            let path = Path::new(argument);
            (read_file(path, SIZE_LIMIT)?, Some(path.parent().unwrap_or(Path::new(""))))
        };
        // What is included counts towards the same limit.
        let left = Cell::new(SIZE_LIMIT.saturating_sub(text.len() as u64));
        let include = |name: &str| match folder {
            None => read::no_includes(name),
            Some(folder) => {
                let text = read_file(&folder.join(name), left.get())
                    .map_err(|e| format!("cannot include \"{name}\": {e:#}"))?;
                left.set(left.get().saturating_sub(text.len() as u64));
                Ok(text)
            }
        };
        let builder = read::model(&text, &include)?;
        Ok(Self { label: label(argument), text, builder })
    }

    /// Checks it and numbers its coordinates.
    pub fn build(&self, options: &BuildOptions) -> Result<Mechanism> {
        self.builder.build(options).with_context(|| self.label.clone())
    }
}

fn label(argument: &str) -> String {
    if argument == "-" { "standard input".into() } else { argument.to_owned() }
}

fn read_file(path: &Path, limit: u64) -> Result<String> {
    // Asked before opening: a device or a pipe may give no end, or not even open.
    let metadata = path.metadata()?;
    check_kind(&metadata)?;
    if metadata.len() > limit {
        bail!("has {} MB, more than the {} MB that are read of a model", metadata.len() >> 20, limit >> 20);
    }
    bounded(File::open(path)?, limit)
}

fn check_kind(metadata: &Metadata) -> Result<()> {
    ensure!(!metadata.is_dir(), "is a folder, not a file");
    ensure!(metadata.is_file(), "is no regular file: use - to read from standard input");
    Ok(())
}

fn bounded(source: impl Read, limit: u64) -> Result<String> {
    let mut bytes = Vec::new();
    source.take(limit + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= limit, "has more than the {} MB that are read of a model", limit >> 20);
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        anyhow::anyhow!("is no text: byte {at} is not UTF-8")
    })
}

/// A model in a result object.
#[derive(Debug, Serialize)]
pub struct Summary {
    name: String,
    bodies: usize,
    dof: usize,
    base: &'static str,
    gravity: [f64; 3],
    loops: usize,
    rotors: usize,
}

impl Summary {
    /// Of a mechanism with its loops closed.
    pub fn new(closed: &ClosedMechanism<'_>) -> Self {
        let mechanism = closed.mechanism();
        let count =
            |kinds: &[BodyKind]| mechanism.bodies().iter().filter(|b| kinds.contains(&b.kind)).count();
        Self {
            name: mechanism.name().to_owned(),
            bodies: count(&[BodyKind::Link]),
            dof: closed.dof(),
            base: if mechanism.base() == Base::Floating { "floating" } else { "fixed" },
            gravity: mechanism.gravity().into(),
            loops: mechanism.loops().len(),
            rotors: count(&[BodyKind::Rotor, BodyKind::SymmetricRotor]),
        }
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [x, y, z] = self.gravity;
        write!(
            f,
            "{}: {}, {}, {} base",
            self.name,
            plural(self.bodies, "body", "bodies"),
            plural(self.dof, "degree of freedom", "degrees of freedom"),
            self.base
        )?;
        if self.loops > 0 {
            write!(f, ", {}", plural(self.loops, "loop", "loops"))?;
        }
        if self.rotors > 0 {
            write!(f, ", {}", plural(self.rotors, "rotor", "rotors"))?;
        }
        write!(f, ", gravity {x} {y} {z} m/s²")
    }
}

/// `1 body`, `2 bodies`.
pub fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
