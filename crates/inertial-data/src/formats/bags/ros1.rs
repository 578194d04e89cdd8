//! ROS 1 bags (format 2.0): records one after the other, in chunks that may be compressed.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use super::TopicChoice;
use super::topics::{Message, Messages, Topic, Topics};
use crate::{Error, Place, Result, plain_io};

/// First bytes of every file.
pub(crate) const MAGIC: [u8; 8] = *b"#ROSBAG ";
/// Complete first line.
const VERSION: &[u8] = b"#ROSBAG V2.0\n";
/// Maximum size of a record or chunk, so that a damaged length does not exhaust the memory.
const LONGEST: usize = 1 << 28;
/// Kinds of records.
const MESSAGE: u8 = 0x02;
const HEADER: u8 = 0x03;
const CHUNK: u8 = 0x05;
const CONNECTION: u8 = 0x07;
/// Maximum number of connections of one file.
const MOST_CONNECTIONS: usize = 100_000;

/// Result with the cause as text.
type Stored<T> = std::result::Result<T, String>;

/// Messages of a file, one after the other.
pub(crate) struct Bag<'a> {
    stream: Box<dyn Read + Send + 'a>,
    file: String,
    begun: bool,
    /// Content of the current chunk, and the offset in it.
    chunk: Vec<u8>,
    at: usize,
    topics: Topics,
    /// Connections, and the topics of the selected ones.
    connections: HashMap<u32, Option<Arc<Topic>>>,
    count: usize,
    /// Number of bytes read, and offset of the index at the end of a bag.
    read: u64,
    index: u64,
}

/// Record without its data.
struct Record {
    kind: u8,
    fields: Vec<u8>,
}

impl<'a> Bag<'a> {
    pub fn new(stream: Box<dyn Read + Send + 'a>, file: String, choice: &TopicChoice) -> Self {
        Self {
            stream,
            topics: Topics::new(&file, choice),
            file,
            begun: false,
            chunk: Vec::new(),
            at: 0,
            connections: HashMap::new(),
            count: 0,
            read: VERSION.len() as u64,
            index: 0,
        }
    }

    fn begin(&mut self) -> Stored<()> {
        let mut line = vec![0; VERSION.len()];
        self.stream.read_exact(&mut line).map_err(|e| ended(&e))?;
        if line != VERSION {
            return Err("only format 2.0 is read; convert it with rosbag fix".to_owned());
        }
        self.begun = true;
        Ok(())
    }

    /// Returns the next record of the chunk, otherwise of the file; `None` at the end. Data of a chunk record become the current chunk.
    fn record(&mut self) -> Stored<Option<(Record, Vec<u8>)>> {
        if self.at < self.chunk.len() {
            let (chunk, at) = (&self.chunk, &mut self.at);
            let fields = part(chunk, at)?.to_vec();
            let data = part(chunk, at)?.to_vec();
            return Ok(Some((Record::new(fields)?, data)));
        }
        let Some(length) = self.length(true)? else { return Ok(None) };
        let record = Record::new(self.bytes(length)?)?;
        let length = self.length(false)?.unwrap_or(0);
        let data = self.bytes(length)?;
        Ok(Some((record, data)))
    }

    /// Reads a length from the file; `None` if the file ends before it and `may_end` allows this.
    fn length(&mut self, may_end: bool) -> Stored<Option<usize>> {
        let (mut word, mut found) = ([0; 4], 0);
        while found < 4 {
            match self.stream.read(&mut word[found..]) {
                Ok(0) if found == 0 && may_end && self.read >= self.index => return Ok(None),
                Ok(0) => return Err("it ends early".to_owned()),
                Ok(count) => found += count,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(plain_io(&e)),
            }
        }
        self.read += 4;
        match u32::from_le_bytes(word) as usize {
            length if length > LONGEST => Err(format!("a record has {} MB, which is too long", length >> 20)),
            length => Ok(Some(length)),
        }
    }

    fn bytes(&mut self, length: usize) -> Stored<Vec<u8>> {
        let mut out = Vec::new();
        let read =
            self.stream.by_ref().take(length as u64).read_to_end(&mut out).map_err(|e| plain_io(&e))?;
        self.read += length as u64;
        if read == length { Ok(out) } else { Err("it ends early".to_owned()) }
    }

    /// Registers a connection.
    fn connection(&mut self, record: &Record, data: &[u8]) -> Result<()> {
        let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
        let Some(id) = record.number("conn") else { return Ok(()) };
        if self.connections.contains_key(&id) || self.connections.len() >= MOST_CONNECTIONS {
            return Ok(());
        }
        let (topic, kind) = (text(record.field("topic")), text(field(data, "type")));
        let read = self.topics.add(&topic, &kind, "ros1", &text(field(data, "message_definition")))?;
        self.connections.insert(id, read);
        Ok(())
    }

    fn damaged(&self, cause: &str) -> Error {
        Error::read(Place::file(&self.file), format!("the bag is truncated or damaged: {cause}"))
    }
}

impl Messages for Bag<'_> {
    fn next(&mut self) -> Result<Option<Message>> {
        if !self.begun {
            self.begin().map_err(|e| self.damaged(&e))?;
        }
        loop {
            let next = self.record().map_err(|e| self.damaged(&e))?;
            let Some((record, data)) = next else { return Ok(None) };
            match record.kind {
                CHUNK => {
                    (self.chunk, self.at) = (record.unpacked(data).map_err(|e| self.damaged(&e))?, 0);
                }
                // Zero if the bag was not closed.
                HEADER => self.index = record.long("index_pos").unwrap_or(0),
                CONNECTION => self.connection(&record, &data)?,
                MESSAGE => {
                    let id = record.number("conn");
                    let Some(Some(topic)) = id.and_then(|id| self.connections.get(&id)) else { continue };
                    self.count += 1;
                    let (topic, time, number) = (topic.clone(), record.time(), self.count);
                    return Ok(Some(Message { topic, time, data, number }));
                }
                _ => {}
            }
        }
    }

    fn topics(&self) -> &Topics {
        &self.topics
    }
}

impl Record {
    fn new(fields: Vec<u8>) -> Stored<Self> {
        match field(&fields, "op") {
            Some(&[kind]) => Ok(Self { kind, fields }),
            _ => Err("a record has no kind".to_owned()),
        }
    }

    fn field(&self, name: &str) -> Option<&[u8]> {
        field(&self.fields, name)
    }

    fn number(&self, name: &str) -> Option<u32> {
        self.field(name)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn long(&self, name: &str) -> Option<u64> {
        self.field(name)?.try_into().ok().map(u64::from_le_bytes)
    }

    /// Returns the recording time of a message in seconds.
    fn time(&self) -> f64 {
        match self.field("time") {
            Some(&[a, b, c, d, e, f, g, h]) => {
                let (seconds, nanoseconds) =
                    (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
                f64::from(seconds) + 1e-9 * f64::from(nanoseconds)
            }
            _ => 0.0,
        }
    }

    /// Returns the decompressed content of a chunk.
    fn unpacked(&self, data: Vec<u8>) -> Stored<Vec<u8>> {
        let size = self.number("size").unwrap_or(0) as usize;
        if size > LONGEST {
            return Err(format!("a chunk has {} MB, which is too long", size >> 20));
        }
        let mut out = Vec::new();
        let read = match self.field("compression") {
            Some(b"none") | None => return Ok(data),
            Some(b"bz2") => bzip2::read::BzDecoder::new(&data[..]).take(size as u64).read_to_end(&mut out),
            Some(b"lz4") => {
                lz4_flex::frame::FrameDecoder::new(&data[..]).take(size as u64).read_to_end(&mut out)
            }
            Some(other) => {
                return Err(format!(
                    "chunks are compressed by \"{}\"",
                    String::from_utf8_lossy(other).escape_debug()
                ));
            }
        };
        read.map_err(|e| format!("a compressed chunk: {}", plain_io(&e)))?;
        if out.len() == size { Ok(out) } else { Err("a compressed chunk ends early".to_owned()) }
    }
}

/// Returns bytes that are preceded by their length.
fn part<'b>(bytes: &'b [u8], at: &mut usize) -> Stored<&'b [u8]> {
    let early = || "a chunk ends early".to_owned();
    let word = bytes.get(*at..).and_then(|rest| rest.first_chunk::<4>()).ok_or_else(early)?;
    let start = *at + 4;
    let end = start.saturating_add(u32::from_le_bytes(*word) as usize);
    *at = end;
    bytes.get(start..end).ok_or_else(early)
}

/// Returns the value of a field `NAME=VALUE` among fields that are preceded by their lengths.
fn field<'b>(fields: &'b [u8], name: &str) -> Option<&'b [u8]> {
    let mut at = 0;
    while at < fields.len() {
        let own = part(fields, &mut at).ok()?;
        if let Some(value) = own.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"=")) {
            return Some(value);
        }
    }
    None
}

fn ended(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "it ends early".to_owned(),
        _ => plain_io(error),
    }
}
