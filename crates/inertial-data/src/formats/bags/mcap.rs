//! MCAP files: ROS 2 messages in CDR.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

use ::mcap::McapError;
use ::mcap::records::{ChunkHeader, Record, op};
use ::mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};

use super::TopicChoice;
use super::topics::{Message, Messages, Topic, Topics};
use crate::formats::zstd::Unpacked;
use crate::{Error, Place, Result, plain_io};

/// First and last bytes of every file.
pub(crate) const MAGIC: [u8; 8] = *b"\x89MCAP0\r\n";
/// Maximum size of a record or chunk, so that a damaged length does not exhaust the memory.
const LONGEST: usize = 1 << 28;

/// Messages of a file, one after the other.
pub(crate) struct Bag<'a> {
    stream: Box<dyn Read + Send + 'a>,
    reader: LinearReader,
    contents: Contents,
    /// Records of the current chunk, and the offset of the next one.
    chunk: Vec<u8>,
    at: usize,
    ended: bool,
}

/// Definitions of the records so far.
struct Contents {
    file: String,
    /// Names and definitions of schemas.
    schemas: HashMap<u16, (String, String)>,
    topics: Topics,
    /// Selected channels.
    channels: HashMap<u16, Arc<Topic>>,
}

impl<'a> Bag<'a> {
    pub fn new(stream: Box<dyn Read + Send + 'a>, file: String, choice: &TopicChoice) -> Self {
        // Chunks are decompressed here, because the crate would use a C library.
        let options = LinearReaderOptions::default().with_record_length_limit(LONGEST).with_emit_chunks(true);
        Self {
            stream,
            reader: LinearReader::new_with_options(options),
            contents: Contents {
                schemas: HashMap::new(),
                topics: Topics::new(&file, choice),
                channels: HashMap::new(),
                file,
            },
            chunk: Vec::new(),
            at: 0,
            ended: false,
        }
    }
}

impl Messages for Bag<'_> {
    fn next(&mut self) -> Result<Option<Message>> {
        let contents = &mut self.contents;
        while !self.ended {
            if let Some((opcode, record)) =
                next_record(&self.chunk, &mut self.at).map_err(|e| contents.damaged(&e))?
            {
                match contents.message(opcode, record)? {
                    None => continue,
                    message => return Ok(message),
                }
            }
            let Some(event) = self.reader.next_event() else {
                self.ended = true;
                break;
            };
            match event.map_err(|e| contents.damaged(&e))? {
                LinearReadEvent::ReadRequest(need) => {
                    let space = self.reader.insert(need.min(LONGEST));
                    let count = loop {
                        match self.stream.read(space) {
                            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                            other => break other,
                        }
                    };
                    self.reader.notify_read(count.map_err(|e| contents.unreadable(&e))?);
                }
                LinearReadEvent::Record { opcode: op::CHUNK, data } => {
                    let record = ::mcap::parse_record(op::CHUNK, data).map_err(|e| contents.damaged(&e))?;
                    if let Record::Chunk { header, data } = record {
                        self.at = 0;
                        self.chunk.clear();
                        unpack(&header, &data, &mut self.chunk).map_err(|e| contents.damaged(&e))?;
                    }
                }
                LinearReadEvent::Record { opcode, data } => {
                    if let Some(message) = contents.message(opcode, data)? {
                        return Ok(Some(message));
                    }
                }
            }
        }
        Ok(None)
    }

    fn topics(&self) -> &Topics {
        &self.contents.topics
    }
}

impl Contents {
    /// Processes a record; returns a message if it belongs to a selected channel.
    fn message(&mut self, opcode: u8, record: &[u8]) -> Result<Option<Message>> {
        if !matches!(opcode, op::SCHEMA | op::CHANNEL | op::MESSAGE) {
            return Ok(None);
        }
        match ::mcap::parse_record(opcode, record).map_err(|e| self.damaged(&e))? {
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
                let Some(topic) = self.channels.get(&header.channel_id) else { return Ok(None) };
                return Ok(Some(Message {
                    topic: topic.clone(),
                    time: header.log_time as f64 / 1e9,
                    data: data.into_owned(),
                    number: header.sequence as usize,
                }));
            }
            _ => {}
        }
        Ok(None)
    }

    fn damaged(&self, error: &McapError) -> Error {
        let message = match error {
            McapError::BadMagic => "is not an MCAP file, or is damaged".to_owned(),
            McapError::UnexpectedEof => "the MCAP file is truncated".to_owned(),
            other => format!("the MCAP file is truncated or damaged: {other}"),
        };
        Error::read(Place::file(&self.file), message)
    }

    fn unreadable(&self, error: &io::Error) -> Error {
        Error::read(Place::file(&self.file), format!("cannot be read: {}", plain_io(error)))
    }
}

/// Decompresses and checks the records of a chunk.
fn unpack(header: &ChunkHeader, data: &[u8], out: &mut Vec<u8>) -> std::result::Result<(), McapError> {
    if header.uncompressed_size > LONGEST as u64 {
        return Err(McapError::ChunkTooLarge(header.uncompressed_size));
    }
    // One additional byte is read to detect content that is too long.
    let limit = header.uncompressed_size + 1;
    match header.compression.as_str() {
        "" => data.take(limit).read_to_end(out),
        "zstd" => Unpacked::new(data).take(limit).read_to_end(out),
        "lz4" => lz4_flex::frame::FrameDecoder::new(data).take(limit).read_to_end(out),
        other => return Err(McapError::UnsupportedCompression(other.to_owned())),
    }
    .map_err(|e| McapError::DecompressionError(plain_io(&e)))?;
    if out.len() as u64 != header.uncompressed_size {
        return Err(McapError::DecompressionError(
            "the size of a chunk does not match its header".to_owned(),
        ));
    }
    let (saved, calculated) = (header.uncompressed_crc, crc32fast::hash(out));
    // Zero means no checksum.
    if saved != 0 && saved != calculated {
        return Err(McapError::BadChunkCrc { saved, calculated });
    }
    Ok(())
}

/// Returns the record at an offset of a chunk (kind, length, content); `None` at the end.
fn next_record<'c>(
    chunk: &'c [u8],
    at: &mut usize,
) -> std::result::Result<Option<(u8, &'c [u8])>, McapError> {
    let Some((&opcode, rest)) = chunk.get(*at..).and_then(<[u8]>::split_first) else { return Ok(None) };
    let (length, rest) = rest.split_first_chunk().ok_or(McapError::UnexpectedEoc)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| McapError::UnexpectedEoc)?;
    let record = rest.get(..length).ok_or(McapError::UnexpectedEoc)?;
    *at += 9 + length;
    Ok(Some((opcode, record)))
}
