//! Folders of rosbag2: files one after the other, as `metadata.yaml` lists them.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::joint_state::JointState;
use super::{States, db3, mcap};
use crate::{Error, Place, Result, plain_io};

/// Lists have a line for each file and topic.
const LONGEST_LIST: u64 = 16 << 20;

/// Files of a bag.
pub(crate) struct Files {
    folder: String,
    left: std::vec::IntoIter<PathBuf>,
    current: Option<Box<dyn States>>,
    topic: Option<String>,
}

impl Files {
    pub fn new(folder: &Path, topic: Option<&str>) -> Result<Self> {
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
            let message = "is a folder, but neither a bag of ROS 2 (metadata.yaml, .mcap, .db3) nor a dataset of LeRobot (meta/info.json)";
            return Err(refused(message.to_owned()));
        }
        if let Some(packed) = files.iter().find(|f| Path::new(f).extension().is_some_and(|e| e == "zstd")) {
            return Err(refused(format!(
                "{packed} is compressed: decompress it with zstd -d, or use ros2 bag convert"
            )));
        }
        let files: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
        let (left, topic) = (files.into_iter(), topic.map(str::to_owned));
        Ok(Self { folder: name, left, current: None, topic })
    }

    fn open(&self, path: &Path) -> Result<Box<dyn States>> {
        let (name, topic) = (path.display().to_string(), self.topic.as_deref());
        let file = File::open(path)
            .map_err(|e| Error::read(Place::file(&name), format!("cannot be opened: {}", plain_io(&e))))?;
        Ok(if path.extension().is_some_and(|e| e == "db3") {
            Box::new(db3::Messages::new(file, name, topic)?)
        } else {
            Box::new(mcap::Messages::new(Box::new(std::io::BufReader::new(file)), name, topic))
        })
    }
}

/// Files that `metadata.yaml` lists.
fn listed(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).skip_while(|line| *line != "relative_file_paths:").skip(1);
    let items = lines.map_while(|line| line.strip_prefix("- "));
    items.map(|item| item.trim().trim_matches(['"', '\'']).to_owned()).collect()
}

/// Files of bags in a folder without a list, in the order of their names.
fn found(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut out = Vec::new();
    for entry in folder.read_dir()? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if Path::new(&name).extension().is_some_and(|e| e == "mcap" || e == "db3") {
            out.push(name);
        }
    }
    out.sort();
    Ok(out)
}

impl States for Files {
    fn next(&mut self) -> Result<Option<JointState>> {
        loop {
            if let Some(current) = &mut self.current
                && let Some(state) = current.next()?
            {
                return Ok(Some(state));
            }
            let Some(path) = self.left.next() else { return Ok(None) };
            self.current = Some(self.open(&path)?);
        }
    }

    fn nothing(&self) -> Error {
        let empty = || {
            Error::columns(Place::file(&self.folder), "there is no message of type sensor_msgs/JointState")
        };
        self.current.as_ref().map_or_else(empty, |current| current.nothing())
    }
}
