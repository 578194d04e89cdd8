//! Outputs that are written atomically.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _, Write};
use std::path::{Path, PathBuf};

use tempfile::SpooledTempFile;

use super::Disk;
use super::stage::Staged;
use crate::{Located, Result, ensure};

/// Checks that a file can be written, without leaving anything behind.
pub(super) fn check(path: &Path) -> Result<()> {
    // Opening a device or a pipe may block or have side effects.
    if is_device(path) { Ok(()) } else { Staged::new(path).map(drop).at(path.display()) }
}

/// Returns whether a path is written in place instead of replaced.
fn is_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// Several files that are replaced together: each is staged in its folder until all of them are complete.
pub struct OutputFiles {
    disk: Disk,
    sinks: Vec<Sink>,
    /// Dropped last, when the folders contain no staged files.
    folders: NewFolders,
}

/// Folders created for outputs. Those that stay empty are removed.
#[derive(Default)]
struct NewFolders(Vec<PathBuf>);

impl Drop for NewFolders {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            // Fails if the folder contains something, as intended.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

impl OutputFiles {
    /// Creates an empty set of outputs for the call that reads its inputs from `disk`.
    pub fn new(disk: &Disk) -> Self {
        Self { disk: disk.clone(), sinks: Vec::new(), folders: NewFolders::default() }
    }

    /// Creates a folder for outputs, if it does not exist. It is removed if nothing is written into it.
    pub fn create_folder(&mut self, folder: &Path) -> Result<()> {
        ensure!(!folder.is_file(), "{}: is a file: give the name of a folder", folder.display());
        let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let missing: Vec<PathBuf> = folder.ancestors().take_while(is_missing).map(Path::to_owned).collect();
        for folder in missing.into_iter().rev() {
            std::fs::create_dir(&folder).at(folder.display())?;
            self.folders.0.push(folder);
        }
        Ok(())
    }

    /// Adds a file.
    pub fn add(&mut self, path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
        let earlier = self.sinks.iter().map(|sink| Path::new(&sink.label));
        self.disk.record(earlier.chain([path]))?;
        let mut sink = Sink::open(&self.disk, path)?;
        let written = sink.write_all(content.as_ref()).and_then(|()| sink.flush());
        written.at("cannot be written").at(path.display())?;
        self.sinks.push(sink);
        Ok(())
    }

    /// Moves all files to their paths, or none if one fails.
    pub fn finish(self) -> Result<()> {
        self.disk.check()?;
        let (mut files, mut labels) = (Vec::new(), Vec::new());
        for Sink { out, label, .. } in self.sinks {
            let stage = out.into_inner().map_err(io::IntoInnerError::into_error);
            if let Stage::File(file) = stage.at("cannot be written").at(&label)? {
                files.push(file);
                labels.push(label);
            }
        }
        match Staged::put_all_in_place(files) {
            Ok(()) => Ok(()),
            Err((k, error)) => Err(error).at("cannot be written").at(&labels[k]),
        }
    }

    /// Returns the paths of the files.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.sinks.iter().map(|sink| sink.label.as_str())
    }
}

/// Writer of a long result that appears only when it is complete.
pub struct Sink {
    out: BufWriter<Stage>,
    label: String,
    /// Inputs of the call, which the file must not replace.
    disk: Disk,
}

/// Staging area of a result that is not yet complete.
enum Stage {
    /// Temporary file in the folder of the file that it will replace.
    File(Staged),
    /// Memory, or a temporary file above a size limit, until the result is copied to a stream.
    Spool(SpooledTempFile),
    /// Device or pipe (`/dev/null`), which is written directly and never replaced.
    Device(File),
}

/// Size (bytes) up to which a result for a stream is kept in memory.
const SPOOL: usize = 64 << 20;

impl Stage {
    fn out(&mut self) -> &mut dyn Write {
        match self {
            Self::File(file) => file,
            Self::Spool(spool) => spool,
            Self::Device(device) => device,
        }
    }
}

impl Write for Stage {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out().flush()
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
    /// Opens a sink for a file, for the call that reads its inputs from `disk`.
    pub fn to_file(disk: &Disk, path: &Path) -> Result<Self> {
        disk.record([path])?;
        Self::open(disk, path)
    }

    fn open(disk: &Disk, path: &Path) -> Result<Self> {
        let label = path.display().to_string();
        let stage = if is_device(path) {
            Stage::Device(File::options().write(true).open(path).at("cannot be written").at(&label)?)
        } else {
            Stage::File(Staged::new(path).at(&label)?)
        };
        Ok(Self { out: BufWriter::new(stage), label, disk: disk.clone() })
    }

    /// Opens a sink whose content is finally copied to a stream with [`Sink::copy_to`].
    pub fn to_stream(label: &str) -> Self {
        let stage = Stage::Spool(SpooledTempFile::new(SPOOL));
        Self { out: BufWriter::new(stage), label: label.to_owned(), disk: Disk::default() }
    }

    /// Moves the complete result to its path.
    pub fn finish(self) -> Result<()> {
        self.copy_to(&mut io::sink())
    }

    /// Moves the complete result to its path, or copies it to `stream` if it was staged for one; a closed pipe is not an error.
    pub fn copy_to(self, stream: &mut dyn Write) -> Result<()> {
        let Self { out, label, disk } = self;
        disk.check()?;
        let stage = out.into_inner().map_err(io::IntoInnerError::into_error);
        let done = match stage {
            Err(e) => Err(e).at("cannot be written"),
            Ok(Stage::File(file)) => file.put_in_place().at("cannot be written"),
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
