//! Topics of a bag, and the selection of those that are read.

use std::io::Read;
use std::sync::Arc;

use super::TopicChoice;
use crate::error::nearest_hint;
use crate::formats::zstd;
use crate::{Error, Place, Result, plain_io};

/// Maximum number of topics listed in a message about the content of a bag.
const MOST_NAMED: usize = 20;

/// Topic of a bag.
#[derive(Debug)]
pub(crate) struct Topic {
    pub name: String,
    /// Message type: `sensor_msgs/JointState`.
    pub kind: String,
    /// Definition of the type, if the bag contains it.
    pub definition: String,
    /// Whether messages are encoded as in ROS 1.
    pub ros1: bool,
}

impl Topic {
    /// Returns whether the messages are joint states.
    pub fn is_joint_state(&self) -> bool {
        matches!(self.kind.as_str(), "sensor_msgs/JointState" | "control_msgs/DynamicJointState")
    }
}

/// Message as stored.
pub(crate) struct Message {
    pub topic: Arc<Topic>,
    /// Recording time in seconds.
    pub time: f64,
    pub data: Vec<u8>,
    /// Number of the message, for errors.
    pub number: usize,
}

/// Maximum size of a decompressed message.
const LONGEST: u64 = 1 << 28;

impl Message {
    /// Returns the message, decompressed if the bag compressed each message separately (`compression_mode: message` of rosbag2). No CDR
    /// message starts like a compressed one.
    pub fn unpacked(mut self, file: &str) -> Result<Self> {
        if !self.topic.ros1 && self.data.starts_with(&zstd::MAGIC) {
            let mut out = Vec::new();
            let read = zstd::Unpacked::new(&self.data[..]).take(LONGEST + 1).read_to_end(&mut out);
            let cause = match read {
                Err(e) => plain_io(&e),
                Ok(_) if out.len() as u64 > LONGEST => format!("more than {} MB", LONGEST >> 20),
                Ok(_) => {
                    self.data = out;
                    return Ok(self);
                }
            };
            let text = format!("topic {}, message {}: {cause}", self.topic.name, self.number);
            return Err(Error::read(Place::file(file), text));
        }
        Ok(self)
    }
}

/// Source of messages, one after the other.
pub(crate) trait Messages: Send {
    /// Returns the next message of a selected topic; `None` at the end.
    fn next(&mut self) -> Result<Option<Message>>;

    /// Returns the topics found so far.
    fn topics(&self) -> &Topics;
}

/// Topics of a bag as they are found: those of the selection are read.
#[derive(Debug, Clone)]
pub(crate) struct Topics {
    file: String,
    choice: TopicChoice,
    requested: Vec<String>,
    read: Vec<Arc<Topic>>,
    /// All topics with their types.
    found: Vec<(String, String)>,
}

impl Topics {
    pub fn new(file: &str, choice: &TopicChoice) -> Self {
        Self {
            file: file.to_owned(),
            choice: choice.clone(),
            requested: choice.all(),
            read: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Returns the selection of the topics.
    pub fn choice(&self) -> &TopicChoice {
        &self.choice
    }

    /// Returns the topics that are read.
    pub fn read(&self) -> &[Arc<Topic>] {
        &self.read
    }

    /// Registers a topic; returns it if its messages are read.
    pub fn add(
        &mut self,
        name: &str,
        kind: &str,
        encoding: &str,
        definition: &str,
    ) -> Result<Option<Arc<Topic>>> {
        let kind = kind.replacen("/msg/", "/", 1);
        if !self.found.iter().any(|(own, _)| own == name) {
            self.found.push((name.to_owned(), kind.clone()));
        }
        let topic = Topic {
            name: name.to_owned(),
            kind,
            definition: definition.to_owned(),
            ros1: encoding == "ros1",
        };
        let is_supported = encoding == "cdr" || encoding == "ros1";
        let is_requested = self.requested.iter().any(|requested| requested == name);
        let is_automatic = (self.requested.is_empty() || self.choice.joint_states)
            && topic.kind == "sensor_msgs/JointState"
            && (is_supported || self.requested.is_empty());
        let is_listed = self.choice.every && is_supported;
        if !(is_requested || is_automatic || is_listed) {
            return Ok(None);
        }
        if let Some(known) = self.read.iter().find(|own| own.name == name) {
            return Ok(Some(known.clone()));
        }
        if !is_supported {
            let message = format!("topic {name} is encoded as \"{encoding}\": expected \"cdr\" (ROS 2)");
            return Err(Error::read(Place::file(&self.file), message));
        }
        let topic = Arc::new(topic);
        self.read.push(topic.clone());
        if self.requested.is_empty() && !self.choice.every && self.read.len() > 1 {
            let names: Vec<&str> = self.read.iter().map(|topic| topic.name.as_str()).collect();
            let message = format!("has joint states on {}: choose one topic", names.join(", "));
            return Err(Error::columns(Place::file(&self.file), message));
        }
        Ok(Some(topic))
    }

    /// Creates the error about a missing topic, or about missing joint states if no topic was requested.
    pub fn nothing(&self, missing: Option<&str>) -> Error {
        let place = Place::file(&self.file);
        if let Some(topic) = missing {
            let names: Vec<String> = self.found.iter().map(|(name, _)| name.clone()).collect();
            let hint = nearest_hint(topic, &names);
            return Error::columns(place, format!("there is no message on the topic {topic}{hint}"));
        }
        let named = self.found.iter().take(MOST_NAMED).map(|(name, kind)| format!("{name} ({kind})"));
        let others: Vec<String> = named.collect();
        let others =
            if others.is_empty() { String::new() } else { format!("; it has {}", others.join(", ")) };
        let dynamic = self.found.iter().find(|(_, kind)| kind == "control_msgs/DynamicJointState");
        let advice = dynamic.map_or(String::new(), |(name, _)| format!("; select it: --topic {name}"));
        Error::columns(place, format!("there is no message of type sensor_msgs/JointState{others}{advice}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dynamic_joint_states_are_advised() {
        let mut topics = Topics::new("log.mcap", &TopicChoice::of(None));
        topics.add("/chatter", "std_msgs/msg/String", "cdr", "").unwrap();
        assert!(!topics.nothing(None).to_string().contains("--topic"));
        topics.add("/dynamic_joint_states", "control_msgs/msg/DynamicJointState", "cdr", "").unwrap();
        let error = topics.nothing(None).to_string();
        assert!(error.ends_with("; select it: --topic /dynamic_joint_states"), "{error}");
    }
}
