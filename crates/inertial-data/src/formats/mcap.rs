//! MCAP logs: messages `sensor_msgs/JointState` of ROS 2, in CDR.

use std::collections::HashMap;
use std::io::Read;

use ::mcap::McapError;
use ::mcap::records::{Record, op};
use ::mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};

use crate::error::nearest_hint;
use crate::formats::joint_state::JointState;
use crate::formats::reader::{LogRows, Reader};
use crate::{Error, Place, Result};

/// The first and the last bytes of every file.
pub(crate) const MAGIC: [u8; 8] = *b"\x89MCAP0\r\n";
/// Messages that are looked at for joints: publishers may send some joints less often than others.
const LOOKED_AT: usize = 1000;
/// Rows handed out at once.
const BLOCK: usize = 8192;
/// No record or chunk is longer; a damaged length must not take all memory.
const LONGEST: usize = 1 << 28;

/// Reads the joint states of one topic: columns `t`, then `q.J`, `dq.J`, `tau.J` of every joint `J` that has them.
///
/// Time is the stamp of the message's header, and the log's time where that is zero. The joints of a message may stand in
/// any order; one that a message lacks is a gap.
pub struct McapReader<'a> {
    file: String,
    messages: Messages<'a>,
    names: Vec<String>,
    /// Places of a joint's position, velocity and effort among the columns.
    joints: HashMap<String, [Option<usize>; 3]>,
    columns: Vec<usize>,
    /// The first messages, until they are handed out.
    first: std::vec::IntoIter<JointState>,
    done: usize,
    row: Vec<f64>,
}

impl<'a> McapReader<'a> {
    /// Reads a stream; `topic` chooses among several topics with joint states.
    pub fn new(stream: impl Read + Send + 'a, name: impl Into<String>, topic: Option<&str>) -> Result<Self> {
        let file = name.into();
        let mut messages = Messages::new(Box::new(stream), file.clone(), topic);
        let mut first = Vec::new();
        while first.len() < LOOKED_AT {
            let Some(message) = messages.next()? else { break };
            first.push(message);
        }
        if first.is_empty() {
            return Err(messages.nothing());
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
        let columns = (0..names.len()).collect();
        let row = vec![f64::NAN; names.len()];
        Ok(Self { file, messages, names, joints, columns, first: first.into_iter(), done: 0, row })
    }
}

impl Reader for McapReader<'_> {
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
                None => match self.messages.next()? {
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

/// The joint states of a file, one after the other.
struct Messages<'a> {
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
    fn new(stream: Box<dyn Read + Send + 'a>, file: String, topic: Option<&str>) -> Self {
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
                        .is_some_and(|s| s == "sensor_msgs/msg/JointState" || s == "sensor_msgs/JointState");
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

    /// Why there is no message.
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
