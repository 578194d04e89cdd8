//! The file system: inputs from files, and outputs that appear as a whole or not at all.

use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Read, Seek as _, Write};
use std::path::{Path, PathBuf};

use inertial_data::{Reader, Source};
use tempfile::{NamedTempFile, SpooledTempFile};

use crate::{Error, Inputs, Located, Result, bail, ensure};

/// Inputs from files; `-` is standard input.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Inputs for Disk {
    fn text(&self, name: &str, most: u64) -> Result<String> {
        if name == "-" { bounded(io::stdin().lock(), most) } else { read_file(Path::new(name), most) }
    }

    fn included(&self, model: &str, name: &str, most: u64) -> Result<String> {
        if model == "-" {
            return inertial::mechanism::read::no_includes(name).map_err(Error::Input);
        }
        let folder = Path::new(model).parent().unwrap_or(Path::new(""));
        read_file(&folder.join(name), most)
            .map_err(|e| Error::Input(format!("cannot include \"{name}\": {e}")))
    }

    fn log(&self, name: &str, source: &Source) -> Result<Box<dyn Reader>> {
        Ok(inertial_data::open(Path::new(name), source)?)
    }

    fn open(&self, name: &str) -> Result<Box<dyn Read + Send>> {
        if name == "-" {
            return Ok(Box::new(io::stdin()));
        }
        ensure!(!Path::new(name).is_dir(), "is a folder, not a file");
        Ok(Box::new(File::open(name)?))
    }

    fn mesh(&self, model: &str, name: &str, most: u64) -> Option<(String, Result<Vec<u8>>)> {
        let model = Path::new(model);
        let path = model.is_file().then(|| mesh_file(name, model)).flatten()?;
        let read = || {
            let size = path.metadata()?.len();
            ensure!(size <= most, "has {} MB, more than the {} MB that are read", size >> 20, most >> 20);
            Ok(std::fs::read(&path)?)
        };
        Some((path.display().to_string(), read()))
    }

    fn size(&self, name: &str) -> u64 {
        std::fs::metadata(name).map_or(0, |m| m.len())
    }
}

fn read_file(path: &Path, limit: u64) -> Result<String> {
    // Asked before opening: a device or a pipe may give no end, or not even open.
    let metadata = path.metadata()?;
    check_kind(&metadata)?;
    if metadata.len() > limit {
        bail!("has {} MB, more than the {} MB that are read", metadata.len() >> 20, limit >> 20);
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
    ensure!(bytes.len() as u64 <= limit, "has more than the {} MB that are read", limit >> 20);
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Error::Input(format!("is not a text: byte {at} is not UTF-8"))
    })
}

/// Folders above the model in which a package is looked for.
const ABOVE: usize = 6;

/// The file that a mesh's name stands for: beside the model, or in a package that is a folder above it or next to one.
fn mesh_file(name: &str, model: &Path) -> Option<PathBuf> {
    let model = model.canonicalize().ok()?;
    let above: Vec<&Path> = model.ancestors().skip(1).take(ABOVE).collect();
    let candidates: Vec<PathBuf> = match name.strip_prefix("package://").and_then(|rest| rest.split_once('/'))
    {
        Some((package, rest)) => above
            .iter()
            .flat_map(|folder| {
                let own = folder.file_name().is_some_and(|n| n == package).then(|| folder.join(rest));
                own.into_iter().chain([folder.join(package).join(rest)])
            })
            .collect(),
        None => above.iter().take(1).map(|folder| folder.join(name.trim_start_matches("file://"))).collect(),
    };
    let known = |path: &PathBuf| {
        let end = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
        end.is_some_and(|e| e == "stl" || e == "obj") && path.is_file()
    };
    candidates.into_iter().find(known)
}

/// Writes a file completely or not at all; an existing file is replaced as a whole.
pub fn write_file(path: &Path, text: &str) -> Result<()> {
    let mut files = OutputFiles::default();
    files.add(path, text)?;
    files.finish()
}

/// Several files that appear together: each waits, whole, beside its place until all of them can take theirs.
#[derive(Default)]
pub struct OutputFiles(Vec<Sink>);

impl OutputFiles {
    /// Adds a file.
    pub fn add(&mut self, path: &Path, text: &str) -> Result<()> {
        let mut sink = Sink::to_file(path)?;
        sink.write_all(text.as_bytes())
            .and_then(|()| sink.flush())
            .at("cannot be written")
            .at(path.display())?;
        self.0.push(sink);
        Ok(())
    }

    /// Puts all files in their places.
    pub fn finish(self) -> Result<()> {
        self.0.into_iter().try_for_each(Sink::finish)
    }

    /// Paths of the files.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|sink| sink.label.as_str())
    }
}

/// A long result, written as it is made: it appears when it is whole, or not at all.
pub struct Sink {
    out: BufWriter<Stage>,
    label: String,
}

/// Where a result waits until it is whole.
enum Stage {
    /// Beside the file that it will replace.
    File(NamedTempFile, PathBuf),
    /// In memory, or on disk where that is too much, until it is copied to a stream.
    Spool(SpooledTempFile),
    /// Nowhere: a device or a pipe (`/dev/null`) is written to, never replaced.
    Device(File),
}

/// A result for a stream waits in memory up to this size.
const SPOOL: usize = 64 << 20;

impl Write for Stage {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file, _) => file.write(bytes),
            Self::Spool(spool) => spool.write(bytes),
            Self::Device(device) => device.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file, _) => file.flush(),
            Self::Spool(spool) => spool.flush(),
            Self::Device(device) => device.flush(),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Sink {
    /// Opens a sink for a file.
    pub fn to_file(path: &Path) -> Result<Self> {
        let label = path.display().to_string();
        let stage = if path.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir()) {
            Stage::Device(File::options().write(true).open(path).at("cannot be written").at(&label)?)
        } else {
            let (file, target) = stage(path).at(&label)?;
            Stage::File(file, target)
        };
        Ok(Self { out: BufWriter::new(stage), label })
    }

    /// Opens a sink whose content goes to a stream in the end, by [`Sink::copy_to`].
    pub fn to_stream(label: &str) -> Self {
        let stage = Stage::Spool(SpooledTempFile::new(SPOOL));
        Self { out: BufWriter::new(stage), label: label.to_owned() }
    }

    /// Puts the whole result in its place.
    pub fn finish(self) -> Result<()> {
        self.copy_to(&mut io::sink())
    }

    /// The same, where what waits for a stream goes to `stream`; a reader that went away is no error.
    pub fn copy_to(self, stream: &mut dyn Write) -> Result<()> {
        let Self { out, label } = self;
        let stage = out.into_inner().map_err(io::IntoInnerError::into_error);
        let done = match stage {
            Err(e) => Err(e).at("cannot be written"),
            Ok(Stage::File(file, target)) => file
                .as_file()
                .sync_all()
                .and_then(|()| file.persist(&target).map_err(|e| e.error))
                .map(drop)
                .at("cannot be written"),
            Ok(Stage::Device(_)) => Ok(()),
            Ok(Stage::Spool(mut spool)) => {
                let copied = spool.rewind().and_then(|()| io::copy(&mut spool, stream));
                match copied.and_then(|_| stream.flush()) {
                    Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e.into()),
                    _ => Ok(()),
                }
            }
        };
        done.at(label)
    }
}

/// A file beside the one at `path`, which it will replace, and where that really is.
fn stage(path: &Path) -> Result<(NamedTempFile, PathBuf)> {
    ensure!(!path.is_dir(), "is a folder: give the name of a file");
    // Through a link the file behind it is replaced, not the link.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    ensure!(folder.is_dir(), "cannot be written: there is no folder {}", folder.display());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".inertial-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // An existing file keeps its permissions; a new one gets what the user's mask leaves.
        let mode = target.metadata().map_or(0o666, |m| m.permissions().mode() & 0o777);
        builder.permissions(std::fs::Permissions::from_mode(mode));
    }
    let file = builder.tempfile_in(folder).at("cannot be written")?;
    Ok((file, target))
}
