//! Bags of ROS: joint states from MCAP files, SQLite files and folders of them, and from bags of ROS 1.

mod db3;
pub(crate) mod folder;
pub(crate) mod joint_state;
pub(crate) mod mcap;
pub(crate) mod ros1;
mod sqlite;

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::formats::reader::{LogRows, Reader};
use crate::{Error, Place, Result};
use joint_state::JointState;

pub(crate) use sqlite::MAGIC as SQLITE;

/// Names of the message type in ROS 2.
const JOINT_STATE: [&str; 2] = ["sensor_msgs/msg/JointState", "sensor_msgs/JointState"];
/// Messages that are looked at for joints: publishers may send some joints less often than others.
const LOOKED_AT: usize = 1000;
/// Names of joints that are held meanwhile, at most: messages may be long.
const HELD: usize = 1_000_000;
/// Names of joints in a log, at most.
const MOST_JOINTS: usize = 10_000;
/// Rows handed out at once.
const BLOCK: usize = 8192;

/// Source of joint states, one after the other.
pub(crate) trait States: Send {
    /// The next state; none at the end.
    fn next(&mut self) -> Result<Option<JointState>>;

    /// Why there is no state.
    fn nothing(&self) -> Error;
}

/// Reads the joint states of one topic: columns `t`, then `q.J`, `dq.J`, `tau.J` of every joint `J` that has them.
///
/// Time is the stamp of the message's header, and the log's time where that is zero. The joints of a message may stand in
/// any order; one that a message lacks is a gap.
pub struct BagReader<'a> {
    file: String,
    states: Box<dyn States + 'a>,
    names: Vec<String>,
    /// Places of a joint's position, velocity and effort among the columns.
    joints: HashMap<String, [Option<usize>; 3]>,
    columns: Vec<usize>,
    /// The first messages, until they are handed out.
    first: std::vec::IntoIter<JointState>,
    done: usize,
    row: Vec<f64>,
}

impl<'a> BagReader<'a> {
    /// Reads an MCAP stream; `topic` chooses among several topics with joint states.
    pub fn mcap(stream: impl Read + Send + 'a, name: impl Into<String>, topic: Option<&str>) -> Result<Self> {
        let file = name.into();
        let states = mcap::Messages::new(Box::new(stream), file.clone(), topic);
        Self::new(Box::new(states), file)
    }

    /// Reads a bag of ROS 1.
    pub fn ros1(stream: impl Read + Send + 'a, name: impl Into<String>, topic: Option<&str>) -> Result<Self> {
        let file = name.into();
        let states = ros1::Messages::new(Box::new(stream), file.clone(), topic);
        Self::new(Box::new(states), file)
    }

    /// Reads an SQLite file (`.db3`).
    pub fn db3(file: File, name: impl Into<String>, topic: Option<&str>) -> Result<Self> {
        let name = name.into();
        let states = db3::Messages::new(file, name.clone(), topic)?;
        Self::new(Box::new(states), name)
    }

    /// Reads a folder with `metadata.yaml` and files of either kind.
    pub fn folder(path: &Path, topic: Option<&str>) -> Result<Self> {
        let states = folder::Files::new(path, topic)?;
        Self::new(Box::new(states), path.display().to_string())
    }

    fn new(mut states: Box<dyn States + 'a>, file: String) -> Result<Self> {
        let (mut first, mut held) = (Vec::new(), 0);
        while first.len() < LOOKED_AT && held < HELD {
            let Some(state) = states.next()? else { break };
            held += state.name.len();
            first.push(state);
        }
        if first.is_empty() {
            return Err(states.nothing());
        }
        let mut names = vec!["t".to_owned()];
        let mut joints: HashMap<String, [Option<usize>; 3]> = HashMap::new();
        for state in &first {
            for (k, joint) in state.name.iter().enumerate() {
                let places = joints.entry(joint.clone()).or_default();
                for (c, quantity) in ["q", "dq", "tau"].into_iter().enumerate() {
                    if places[c].is_none() && state.value(c, k).is_some() {
                        places[c] = Some(names.len());
                        names.push(format!("{quantity}.{joint}"));
                    }
                }
            }
        }
        if joints.len() > MOST_JOINTS {
            let message = format!("has {} joints: expected at most {MOST_JOINTS}", joints.len());
            return Err(Error::read(Place::file(file), message));
        }
        let columns = (0..names.len()).collect();
        let row = vec![f64::NAN; names.len()];
        Ok(Self { file, states, names, joints, columns, first: first.into_iter(), done: 0, row })
    }
}

impl Reader for BagReader<'_> {
    fn file(&self) -> &str {
        &self.file
    }

    fn names(&self) -> &[String] {
        &self.names
    }

    fn select(&mut self, columns: &[usize]) {
        self.columns = columns.to_vec();
    }

    fn next_rows(&mut self) -> Result<Option<LogRows>> {
        let mut rows = LogRows { width: self.columns.len(), ..LogRows::default() };
        while rows.len() < BLOCK {
            let state = match self.first.next() {
                Some(state) => state,
                None => match self.states.next()? {
                    Some(state) => state,
                    None => break,
                },
            };
            self.done += 1;
            self.row.fill(f64::NAN);
            self.row[0] = state.stamp;
            for (k, joint) in state.name.iter().enumerate() {
                let Some(places) = self.joints.get(joint) else { continue };
                for (c, place) in places.iter().enumerate() {
                    if let (Some(place), Some(value)) = (place, state.value(c, k)) {
                        self.row[*place] = value;
                    }
                }
            }
            for &c in &self.columns {
                if self.row[c].is_infinite() {
                    let place = Place::file(&self.file).row(self.done).column(&self.names[c]);
                    return Err(Error::read(place, format!("`{}` is not a finite number", self.row[c])));
                }
                rows.values.push(self.row[c]);
            }
            rows.lines.push(self.done);
        }
        Ok((!rows.is_empty()).then_some(rows))
    }
}
