//! Outputs that appear as a whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _, Write};
use std::path::Path;

use tempfile::SpooledTempFile;

use super::Disk;
use super::stage::Staged;
use crate::{Located, Result};

/// Refuses a file that cannot be written. Nothing is left of the trial.
pub(super) fn check(path: &Path) -> Result<()> {
    // Opening a device or a pipe may do something, or wait.
    if is_device(path) { Ok(()) } else { Staged::new(path).map(drop).at(path.display()) }
}

/// Whether a path is written to as it is, not replaced.
fn is_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// Several files that appear together: each waits, whole, in its folder until all of them can take their places.
pub struct OutputFiles {
    disk: Disk,
    sinks: Vec<Sink>,
}

impl OutputFiles {
    /// Creates an empty set of outputs of the call whose inputs `disk` reads.
    pub fn new(disk: &Disk) -> Self {
        Self { disk: disk.clone(), sinks: Vec::new() }
    }

    /// Adds a file.
    pub fn add(&mut self, path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
        let earlier = self.sinks.iter().map(|sink| Path::new(&sink.label));
        self.disk.record(earlier.chain([path]))?;
        let mut sink = Sink::open(path)?;
        let written = sink.write_all(content.as_ref()).and_then(|()| sink.flush());
        written.at("cannot be written").at(path.display())?;
        self.sinks.push(sink);
        Ok(())
    }

    /// Puts all files in their places, or none where one fails.
    pub fn finish(self) -> Result<()> {
        let (mut files, mut labels) = (Vec::new(), Vec::new());
        for Sink { out, label } in self.sinks {
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

    /// Paths of the files.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.sinks.iter().map(|sink| sink.label.as_str())
    }
}

/// A long result, written as it is made: it appears when it is whole, or not at all.
pub struct Sink {
    out: BufWriter<Stage>,
    label: String,
}

/// Where a result waits until it is whole.
enum Stage {
    /// In the folder of the file that it will replace.
    File(Staged),
    /// In memory, or on disk where that is too much, until it is copied to a stream.
    Spool(SpooledTempFile),
    /// Nowhere: a device or a pipe (`/dev/null`) is written to, never replaced.
    Device(File),
}

/// A result for a stream waits in memory up to this size.
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
    /// Opens a sink for a file of the call whose inputs `disk` reads.
    pub fn to_file(disk: &Disk, path: &Path) -> Result<Self> {
        disk.record([path])?;
        Self::open(path)
    }

    fn open(path: &Path) -> Result<Self> {
        let label = path.display().to_string();
        let stage = if is_device(path) {
            Stage::Device(File::options().write(true).open(path).at("cannot be written").at(&label)?)
        } else {
            Stage::File(Staged::new(path).at(&label)?)
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
