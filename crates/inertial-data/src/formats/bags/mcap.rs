//! MCAP files: messages `sensor_msgs/JointState` of ROS 2, in CDR.

use std::collections::HashMap;
use std::io::Read;

use ::mcap::McapError;
use ::mcap::records::{Record, op};
use ::mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};

use super::joint_state::JointState;
use super::{JOINT_STATE, States};
use crate::error::nearest_hint;
use crate::{Error, Place, Result};

/// The first and the last bytes of every file.
pub(crate) const MAGIC: [u8; 8] = *b"\x89MCAP0\r\n";
/// No record or chunk is longer; a damaged length must not take all memory.
const LONGEST: usize = 1 << 28;

/// The joint states of a file, one after the other.
pub(crate) struct Messages<'a> {
    stream: Box<dyn Read + Send + 'a>,
    file: String,
    reader: LinearReader,
    /// The topic asked for, or the first one found.
    topic: Option<String>,
    asked: bool,
    /// Names of schemas.
    schemas: HashMap<u16, String>,
    /// Topics with joint states.
    topics: Vec<String>,
    /// The channels to read.
    channels: Vec<u16>,
    ended: bool,
}

impl<'a> Messages<'a> {
    pub fn new(stream: Box<dyn Read + Send + 'a>, file: String, topic: Option<&str>) -> Self {
        let options =
            LinearReaderOptions::default().with_record_length_limit(LONGEST).with_validate_chunk_crcs(true);
        Self {
            stream,
            file,
            reader: LinearReader::new_with_options(options),
            topic: topic.map(str::to_owned),
            asked: topic.is_some(),
            schemas: HashMap::new(),
            topics: Vec::new(),
            channels: Vec::new(),
            ended: false,
        }
    }

    fn channel(&mut self, id: u16, topic: &str, encoding: &str) -> Result<()> {
        if !self.topics.iter().any(|t| t == topic) {
            self.topics.push(topic.to_owned());
        }
        if !self.asked && self.topics.len() > 1 {
            let message = format!("has joint states on {}: choose one topic", self.topics.join(", "));
            return Err(Error::columns(Place::file(&self.file), message));
        }
        if self.topic.get_or_insert_with(|| topic.to_owned()) != topic {
            return Ok(());
        }
        if encoding != "cdr" {
            let message = format!("topic {topic} is encoded as \"{encoding}\": expected \"cdr\" (ROS 2)");
            return Err(Error::read(Place::file(&self.file), message));
        }
        self.channels.push(id);
        Ok(())
    }
}

impl States for Messages<'_> {
    fn next(&mut self) -> Result<Option<JointState>> {
        while !self.ended {
            let file = &self.file;
            let Some(event) = self.reader.next_event() else {
                self.ended = true;
                break;
            };
            let (opcode, record) = match event.map_err(|e| damaged(file, &e))? {
                LinearReadEvent::ReadRequest(need) => {
                    let space = self.reader.insert(need.min(LONGEST));
                    let count = loop {
                        match self.stream.read(space) {
                            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                            other => break other,
                        }
                    };
                    let count =
                        count.map_err(|e| Error::read(Place::file(file), format!("cannot be read: {e}")))?;
                    self.reader.notify_read(count);
                    continue;
                }
                LinearReadEvent::Record { opcode, data } => (opcode, data),
            };
            if !matches!(opcode, op::SCHEMA | op::CHANNEL | op::MESSAGE) {
                continue;
            }
            match ::mcap::parse_record(opcode, record).map_err(|e| damaged(file, &e))? {
                Record::Schema { header, .. } => {
                    self.schemas.insert(header.id, header.name);
                }
                Record::Channel(channel) => {
                    let is_state = self
                        .schemas
                        .get(&channel.schema_id)
                        .is_some_and(|s| JOINT_STATE.contains(&s.as_str()));
                    if is_state {
                        self.channel(channel.id, &channel.topic, &channel.message_encoding)?;
                    }
                }
                Record::Message { header, data } if self.channels.contains(&header.channel_id) => {
                    let mut state = JointState::parse(&data).map_err(|message| {
                        let number = header.sequence;
                        let message = format!("message {number} of its topic is no joint state: {message}");
                        Error::read(Place::file(file), message)
                    })?;
                    if state.stamp == 0.0 {
                        state.stamp = header.log_time as f64 / 1e9;
                    }
                    return Ok(Some(state));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn nothing(&self) -> Error {
        let place = Place::file(&self.file);
        match &self.topic {
            Some(topic) if self.asked => {
                let hint = nearest_hint(topic, &self.topics);
                Error::columns(place, format!("there is no joint state on the topic {topic}{hint}"))
            }
            _ => Error::columns(place, "there is no message of type sensor_msgs/JointState"),
        }
    }
}

fn damaged(file: &str, error: &McapError) -> Error {
    let message = match error {
        McapError::UnexpectedEof => "the MCAP file is truncated".to_owned(),
        other => format!("the MCAP file is truncated or damaged: {other}"),
    };
    Error::read(Place::file(file), message)
}
