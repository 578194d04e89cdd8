//! SQLite files of rosbag2: tables `topics` and `messages`.

use std::fs::File;

use super::joint_state::JointState;
use super::sqlite::{Database, Scan, Stored, Value};
use super::{JOINT_STATE, States};
use crate::error::nearest_hint;
use crate::{Error, Place, Result};

/// The joint states of a file.
pub(crate) struct Messages {
    file: String,
    database: Database,
    scan: Scan,
    /// Numbers of the topics that are read.
    chosen: Vec<i64>,
    topic: Option<String>,
    /// Topics with joint states.
    topics: Vec<String>,
}

impl Messages {
    pub fn new(file: File, name: String, topic: Option<&str>) -> Result<Self> {
        let refused = |message: String| Error::read(Place::file(&name), message);
        let unfinished = std::fs::metadata(format!("{name}-wal")).is_ok_and(|m| m.len() > 0);
        if unfinished {
            let message = "was not closed: part of it is still in the file ending in -wal; `ros2 bag reindex` or opening it \
                           with sqlite3 puts them together";
            return Err(refused(message.to_owned()));
        }
        let damaged = |cause: String| damaged(&name, &cause);
        let database = Database::new(file).map_err(damaged)?;
        let table = |name: &str| database.table(name).map_err(damaged);
        let (Some(topics), Some(messages)) = (table("topics")?, table("messages")?) else {
            return Err(refused("is an SQLite database, but not a bag of ROS 2".to_owned()));
        };
        let topics = joint_states(&database, topics).map_err(damaged)?;
        let mut names: Vec<String> = topics.iter().map(|t| t.name.clone()).collect();
        names.dedup();
        if topic.is_none() && names.len() > 1 {
            let message = format!("has joint states on {}: choose one topic", names.join(", "));
            return Err(Error::columns(Place::file(&name), message));
        }
        let chosen: Vec<&Topic> =
            topics.iter().filter(|t| topic.is_none_or(|wanted| wanted == t.name)).collect();
        if let Some(other) = chosen.iter().find(|t| t.encoding != "cdr") {
            let message =
                format!("topic {} is encoded as \"{}\": expected \"cdr\"", other.name, other.encoding);
            return Err(refused(message));
        }
        Ok(Self {
            chosen: chosen.iter().map(|t| t.id).collect(),
            file: name,
            database,
            scan: Scan::new(messages),
            topic: topic.map(str::to_owned),
            topics: names,
        })
    }
}

struct Topic {
    id: i64,
    name: String,
    encoding: String,
}

fn joint_states(database: &Database, table: u64) -> Stored<Vec<Topic>> {
    let mut scan = Scan::new(table);
    let mut out = Vec::new();
    while let Some((id, row)) = scan.next(database)? {
        let text = |k: usize| row.get(k).and_then(Value::text).unwrap_or_default();
        if JOINT_STATE.contains(&text(2)) {
            out.push(Topic { id, name: text(1).to_owned(), encoding: text(3).to_owned() });
        }
    }
    Ok(out)
}

impl States for Messages {
    fn next(&mut self) -> Result<Option<JointState>> {
        while let Some((number, row)) = self.scan.next(&self.database).map_err(|e| damaged(&self.file, &e))? {
            let [_, topic, time, Value::Blob(data), ..] = &row[..] else { continue };
            if !topic.integer().is_some_and(|id| self.chosen.contains(&id)) {
                continue;
            }
            let mut state = JointState::parse(data).map_err(|message| {
                let message = format!("message {number} is no joint state: {message}");
                Error::read(Place::file(&self.file), message)
            })?;
            if state.stamp == 0.0 {
                state.stamp = time.integer().unwrap_or(0) as f64 / 1e9;
            }
            return Ok(Some(state));
        }
        Ok(None)
    }

    fn nothing(&self) -> Error {
        let place = Place::file(&self.file);
        match &self.topic {
            Some(topic) => {
                let hint = nearest_hint(topic, &self.topics);
                Error::columns(place, format!("there is no joint state on the topic {topic}{hint}"))
            }
            None => Error::columns(place, "there is no message of type sensor_msgs/JointState"),
        }
    }
}

fn damaged(file: &str, cause: &str) -> Error {
    Error::read(Place::file(file), format!("the bag is truncated or damaged: {cause}"))
}
