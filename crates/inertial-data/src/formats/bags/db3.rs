//! SQLite files of rosbag2: tables `topics` and `messages`, in newer ones `message_definitions`.

use std::collections::HashMap;
use std::sync::Arc;

use super::TopicChoice;
use super::sqlite::{Database, Scan, Stored, Value};
use super::topics::{Message, Messages, Topic, Topics};
use crate::{Error, Place, Result};

/// Messages of a file.
pub(crate) struct Bag {
    file: String,
    database: Database,
    scan: Scan,
    /// Selected topics, by their numbers.
    chosen: HashMap<i64, Arc<Topic>>,
    topics: Topics,
}

impl Bag {
    pub fn new(file: std::fs::File, name: String, choice: &TopicChoice) -> Result<Self> {
        let refused = |message: String| Error::read(Place::file(&name), message);
        let unfinished = std::fs::metadata(format!("{name}-wal")).is_ok_and(|m| m.len() > 0);
        if unfinished {
            let message = "was not closed: part of it is still in the file ending in -wal; merge them with \
                           `ros2 bag reindex` or by opening it with sqlite3";
            return Err(refused(message.to_owned()));
        }
        let damaged = |cause: String| damaged(&name, &cause);
        let database = Database::new(file).map_err(damaged)?;
        let table = |name: &str| database.table(name).map_err(damaged);
        let (Some(rows), Some(messages)) = (table("topics")?, table("messages")?) else {
            return Err(refused("is an SQLite database, but not a ROS 2 bag".to_owned()));
        };
        let definitions = match table("message_definitions")? {
            Some(table) => definitions(&database, table).map_err(damaged)?,
            None => HashMap::new(),
        };
        let mut topics = Topics::new(&name, choice);
        let mut chosen = HashMap::new();
        let mut scan = Scan::new(rows);
        while let Some((id, row)) = scan.next(&database).map_err(damaged)? {
            let text = |k: usize| row.get(k).and_then(Value::text).unwrap_or_default();
            let definition = definitions.get(text(2)).map_or("", String::as_str);
            if let Some(topic) = topics.add(text(1), text(2), text(3), definition)? {
                chosen.insert(id, topic);
            }
        }
        Ok(Self { chosen, file: name, database, scan: Scan::new(messages), topics })
    }
}

/// Returns the definitions by type name: columns `id, topic_type, encoding, encoded_message_definition`.
fn definitions(database: &Database, table: u64) -> Stored<HashMap<String, String>> {
    let mut scan = Scan::new(table);
    let mut out = HashMap::new();
    while let Some((_, row)) = scan.next(database)? {
        let text = |k: usize| row.get(k).and_then(Value::text).unwrap_or_default();
        if text(2) == "ros2msg" {
            out.insert(text(1).to_owned(), text(3).to_owned());
        }
    }
    Ok(out)
}

impl Messages for Bag {
    fn next(&mut self) -> Result<Option<Message>> {
        while let Some((number, row)) = self.scan.next(&self.database).map_err(|e| damaged(&self.file, &e))? {
            let mut row = row.into_iter();
            let (Some(_), Some(topic), Some(time), Some(Value::Blob(data))) =
                (row.next(), row.next(), row.next(), row.next())
            else {
                continue;
            };
            let Some(topic) = topic.integer().and_then(|id| self.chosen.get(&id)) else { continue };
            return Ok(Some(Message {
                topic: topic.clone(),
                time: time.integer().unwrap_or(0) as f64 / 1e9,
                data,
                number: usize::try_from(number).unwrap_or(0),
            }));
        }
        Ok(None)
    }

    fn topics(&self) -> &Topics {
        &self.topics
    }
}

fn damaged(file: &str, cause: &str) -> Error {
    let is_other = cause.starts_with("is not ");
    let message =
        if is_other { cause.to_owned() } else { format!("the bag is truncated or damaged: {cause}") };
    Error::read(Place::file(file), message)
}
