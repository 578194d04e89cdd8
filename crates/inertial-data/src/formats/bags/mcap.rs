//! MCAP files: messages of ROS 2, in CDR.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use ::mcap::McapError;
use ::mcap::records::{Record, op};
use ::mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};

use super::topics::{Message, Messages, Topic, Topics};
use crate::{Error, Place, Result};

/// The first and the last bytes of every file.
pub(crate) const MAGIC: [u8; 8] = *b"\x89MCAP0\r\n";
/// No record or chunk is longer; a damaged length must not take all memory.
const LONGEST: usize = 1 << 28;

/// The messages of a file, one after the other.
pub(crate) struct Bag<'a> {
    stream: Box<dyn Read + Send + 'a>,
    file: String,
    reader: LinearReader,
    /// Names and definitions of schemas.
    schemas: HashMap<u16, (String, String)>,
    topics: Topics,
    /// The channels to read.
    channels: HashMap<u16, Arc<Topic>>,
    ended: bool,
}

impl<'a> Bag<'a> {
    pub fn new(stream: Box<dyn Read + Send + 'a>, file: String, asked: &[String]) -> Self {
        let options =
            LinearReaderOptions::default().with_record_length_limit(LONGEST).with_validate_chunk_crcs(true);
        Self {
            stream,
            reader: LinearReader::new_with_options(options),
            schemas: HashMap::new(),
            topics: Topics::new(&file, asked),
            channels: HashMap::new(),
            ended: false,
            file,
        }
    }
}

impl Messages for Bag<'_> {
    fn next(&mut self) -> Result<Option<Message>> {
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
                Record::Schema { header, data } => {
                    let definition = String::from_utf8_lossy(&data).into_owned();
                    self.schemas.insert(header.id, (header.name, definition));
                }
                Record::Channel(channel) => {
                    let none = (String::new(), String::new());
                    let (kind, definition) = self.schemas.get(&channel.schema_id).unwrap_or(&none);
                    let encoding = &channel.message_encoding;
                    if let Some(topic) = self.topics.add(&channel.topic, kind, encoding, definition)? {
                        self.channels.insert(channel.id, topic);
                    }
                }
                Record::Message { header, data } => {
                    let Some(topic) = self.channels.get(&header.channel_id) else { continue };
                    return Ok(Some(Message {
                        topic: topic.clone(),
                        time: header.log_time as f64 / 1e9,
                        data: data.into_owned(),
                        number: header.sequence as usize,
                    }));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn topics(&self) -> &Topics {
        &self.topics
    }
}

fn damaged(file: &str, error: &McapError) -> Error {
    let message = match error {
        McapError::UnexpectedEof => "the MCAP file is truncated".to_owned(),
        other => format!("the MCAP file is truncated or damaged: {other}"),
    };
    Error::read(Place::file(file), message)
}
