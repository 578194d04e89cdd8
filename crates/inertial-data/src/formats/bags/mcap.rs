//! MCAP files: ROS 2 messages in CDR.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

use ::mcap::McapError;
use ::mcap::records::op;
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
                    self.at = 0;
                    self.chunk.clear();
                    unpack(data, &mut self.chunk).map_err(|e| contents.damaged(&e))?;
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
        let mut fields = Fields(record);
        match opcode {
            op::SCHEMA => {
                let (id, name, definition) = fields.schema().map_err(|e| self.damaged(&e))?;
                self.schemas.insert(id, (name.to_owned(), String::from_utf8_lossy(definition).into_owned()));
            }
            op::CHANNEL => {
                let channel = fields.channel().map_err(|e| self.damaged(&e))?;
                let none = (String::new(), String::new());
                let (kind, definition) = self.schemas.get(&channel.schema).unwrap_or(&none);
                if let Some(topic) = self.topics.add(channel.topic, kind, channel.encoding, definition)? {
                    self.channels.insert(channel.id, topic);
                }
            }
            op::MESSAGE => {
                let (channel, sequence, time) = fields.message().map_err(|e| self.damaged(&e))?;
                let Some(topic) = self.channels.get(&channel) else { return Ok(None) };
                return Ok(Some(Message {
                    topic: topic.clone(),
                    time: time as f64 / 1e9,
                    data: fields.0.to_vec(),
                    number: sequence as usize,
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
            McapError::Io(error) => format!("the MCAP file is damaged: {error}"),
            other => format!("the MCAP file is truncated or damaged: {other}"),
        };
        Error::read(Place::file(&self.file), message)
    }

    fn unreadable(&self, error: &io::Error) -> Error {
        Error::read(Place::file(&self.file), format!("cannot be read: {}", plain_io(error)))
    }
}

/// Result of parsing a record.
type Parsed<T> = std::result::Result<T, McapError>;

/// Remaining fields of a record. Unlike the parser of the crate, these allocate nothing before the length of a text was compared with the
/// record.
struct Fields<'r>(&'r [u8]);

/// Start of the record of a channel; its metadata are not used.
struct Channel<'r> {
    id: u16,
    schema: u16,
    topic: &'r str,
    encoding: &'r str,
}

/// Reason to reject a record.
const SHORT: &str = "a record is shorter than its fields";

fn invalid(reason: &'static str) -> McapError {
    McapError::Io(io::Error::new(io::ErrorKind::InvalidData, reason))
}

impl<'r> Fields<'r> {
    fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk().ok_or_else(|| invalid(SHORT))?;
        self.0 = rest;
        Ok(*first)
    }

    fn u16(&mut self) -> Parsed<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Parsed<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Parsed<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn bytes(&mut self, length: u64) -> Parsed<&'r [u8]> {
        let length = usize::try_from(length).map_err(|_| invalid(SHORT))?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(|| invalid(SHORT))?;
        self.0 = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> Parsed<&'r str> {
        let length = self.u32()?;
        std::str::from_utf8(self.bytes(length.into())?).map_err(|_| invalid("a name is not UTF-8"))
    }

    /// Reads the id, the name and the definition of a schema.
    fn schema(&mut self) -> Parsed<(u16, &'r str, &'r [u8])> {
        let (id, name) = (self.u16()?, self.text()?);
        self.text()?;
        let length = self.u32()?;
        Ok((id, name, self.bytes(length.into())?))
    }

    fn channel(&mut self) -> Parsed<Channel<'r>> {
        Ok(Channel { id: self.u16()?, schema: self.u16()?, topic: self.text()?, encoding: self.text()? })
    }

    /// Reads the channel, the number and the time (ns) of a message; its content remains.
    fn message(&mut self) -> Parsed<(u16, u32, u64)> {
        let out = (self.u16()?, self.u32()?, self.u64()?);
        self.u64()?;
        Ok(out)
    }
}

/// Decompresses and checks the records of a chunk.
fn unpack(record: &[u8], out: &mut Vec<u8>) -> Parsed<()> {
    let mut fields = Fields(record);
    // The times of the first and last message.
    fields.array::<16>()?;
    let (size, saved, compression) = (fields.u64()?, fields.u32()?, fields.text()?);
    let length = fields.u64()?;
    let data = fields.bytes(length)?;
    if size > LONGEST as u64 {
        return Err(McapError::ChunkTooLarge(size));
    }
    // One additional byte is read to detect content that is too long.
    let limit = size + 1;
    match compression {
        "" => data.take(limit).read_to_end(out),
        "zstd" => Unpacked::new(data).take(limit).read_to_end(out),
        "lz4" => lz4_flex::frame::FrameDecoder::new(data).take(limit).read_to_end(out),
        other => return Err(McapError::UnsupportedCompression(other.to_owned())),
    }
    .map_err(|e| McapError::DecompressionError(plain_io(&e)))?;
    if out.len() as u64 != size {
        return Err(McapError::DecompressionError(
            "the size of a chunk does not match its header".to_owned(),
        ));
    }
    let calculated = crc32fast::hash(out);
    // Zero means no checksum.
    if saved != 0 && saved != calculated {
        return Err(McapError::BadChunkCrc { saved, calculated });
    }
    Ok(())
}

/// Returns the record at an offset of a chunk (kind, length, content); `None` at the end.
fn next_record<'c>(chunk: &'c [u8], at: &mut usize) -> Parsed<Option<(u8, &'c [u8])>> {
    let Some((&opcode, rest)) = chunk.get(*at..).and_then(<[u8]>::split_first) else { return Ok(None) };
    let (length, rest) = rest.split_first_chunk().ok_or(McapError::UnexpectedEoc)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| McapError::UnexpectedEoc)?;
    let record = rest.get(..length).ok_or(McapError::UnexpectedEoc)?;
    *at += 9 + length;
    Ok(Some((opcode, record)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_longer_than_its_record_is_refused_before_it_is_allocated() {
        // Identifier of a schema, then a name of 2 GB of which one byte exists.
        let record = [1, 0, 0xff, 0xff, 0xff, 0x7f, b'a'];
        let short = |error: McapError| match error {
            McapError::Io(error) => assert_eq!(error.to_string(), SHORT),
            other => panic!("{other}"),
        };
        short(Fields(&record).schema().unwrap_err());
        let mut chunk = vec![0; 28];
        chunk.extend([0xff, 0xff, 0xff, 0xff, b'z']);
        short(unpack(&chunk, &mut Vec::new()).unwrap_err());
    }
}
