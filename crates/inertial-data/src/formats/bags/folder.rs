//! Folders of rosbag2: files one after the other, as listed in `metadata.yaml`.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use super::topics::{Message, Messages, Topics};
use super::{TopicChoice, db3, mcap};
use crate::formats::folder_files::FolderFiles;
use crate::formats::zstd::Unpacked;
use crate::temporary::temporary_copy;
use crate::{Error, Place, Result, plain_io};

/// Maximum size of a list, which has a line for each file and topic.
const LONGEST_LIST: u64 = 16 << 20;

/// Files of a bag.
pub(crate) struct Files {
    left: std::vec::IntoIter<PathBuf>,
    current: Option<Box<dyn Messages>>,
    /// Topics found before a file is open.
    topics: Topics,
}

impl Files {
    pub fn new(folder: &Path, choice: &TopicChoice) -> Result<Self> {
        let name = folder.display().to_string();
        let refused = |message: String| Error::read(Place::file(&name), message);
        let list = folder.join("metadata.yaml");
        let files = if list.is_file() {
            let size = list.metadata().map_or(0, |m| m.len());
            if size > LONGEST_LIST {
                return Err(refused("metadata.yaml is too long".to_owned()));
            }
            let text = std::fs::read_to_string(&list)
                .map_err(|e| refused(format!("metadata.yaml cannot be read: {}", plain_io(&e))))?;
            listed(&text)
        } else {
            found(folder).map_err(|e| refused(format!("cannot be read: {}", plain_io(&e))))?
        };
        if files.is_empty() {
            let message = "is a folder, but neither a ROS 2 bag (metadata.yaml, .mcap, .db3) nor a LeRobot \
                           dataset (meta/info.json)";
            return Err(refused(message.to_owned()));
        }
        let files: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
        Ok(Self { left: files.into_iter(), current: None, topics: Topics::new(&name, choice) })
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Messages>> {
        let (name, choice) = (path.display().to_string(), self.topics.choice());
        let file = File::open(path)
            .map_err(|e| Error::read(Place::file(&name), format!("cannot be opened: {}", plain_io(&e))))?;
        let packed = path.extension().is_some_and(|e| e == "zstd");
        let inner = if packed { path.file_stem().map_or(path, Path::new) } else { path };
        let is_db3 = inner.extension().is_some_and(|e| e == "db3");
        Ok(match (is_db3, packed) {
            (true, false) => Box::new(db3::Bag::new(file, name, choice)?),
            (true, true) => {
                let unpacked = temporary_copy(Unpacked::file(file), &name)?;
                Box::new(db3::Bag::new(unpacked, name, choice)?)
            }
            (false, false) => Box::new(mcap::Bag::new(Box::new(BufReader::new(file)), name, choice)),
            (false, true) => Box::new(mcap::Bag::new(Box::new(Unpacked::file(file)), name, choice)),
        })
    }
}

/// Returns the files listed in `metadata.yaml`.
fn listed(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).skip_while(|line| *line != "relative_file_paths:").skip(1);
    let items = lines.map_while(|line| line.strip_prefix("- "));
    items.map(|item| item.trim().trim_matches(['"', '\'']).to_owned()).collect()
}

/// Returns the files of a bag. Bag files that the list does not name are not read, nor is a list that does not exist.
pub(crate) fn files(folder: &Path) -> FolderFiles {
    let list = folder.join("metadata.yaml");
    let inside = |names: Vec<String>| names.iter().map(|name| folder.join(name)).collect::<Vec<_>>();
    let found = inside(found(folder).unwrap_or_default());
    if !list.is_file() {
        return FolderFiles { read: found, others: vec![list] };
    }
    let is_short = list.metadata().is_ok_and(|m| m.len() <= LONGEST_LIST);
    let text = if is_short { std::fs::read_to_string(&list).unwrap_or_default() } else { String::new() };
    let read = std::iter::once(list).chain(inside(listed(&text))).collect();
    FolderFiles { read, others: found }
}

/// Returns the bag files in a folder without a list, sorted by name.
fn found(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut out = Vec::new();
    for entry in folder.read_dir()? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let plain = name.strip_suffix(".zstd").unwrap_or(&name);
        if Path::new(plain).extension().is_some_and(|e| e == "mcap" || e == "db3") {
            out.push(name);
        }
    }
    out.sort();
    Ok(out)
}

impl Messages for Files {
    fn next(&mut self) -> Result<Option<Message>> {
        loop {
            if let Some(current) = &mut self.current
                && let Some(message) = current.next()?
            {
                return Ok(Some(message));
            }
            let Some(path) = self.left.next() else { return Ok(None) };
            self.current = Some(self.open(&path)?);
        }
    }

    fn topics(&self) -> &Topics {
        self.current.as_ref().map_or(&self.topics, |current| current.topics())
    }
}
