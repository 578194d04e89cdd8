//! ROS bags: messages from MCAP files, SQLite files and folders of them, and from ROS 1 bags.

mod cdr;
mod channel;
mod db3;
mod definition;
mod fields;
pub(crate) mod folder;
mod joint_state;
pub(crate) mod mcap;
mod merge;
pub(crate) mod ros1;
mod sqlite;
mod streams;
mod topics;

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::joint_names::JointNames;
use crate::reader::{LogRows, Reader, Selection};
use crate::{Error, Place, Result};
use channel::Channel;
use merge::Merge;
use topics::{Message, Messages, Topic};

pub(crate) use sqlite::MAGIC as SQLITE;

/// Number of messages examined to find the columns of topics without joint states.
const LOOKED_AT: usize = 1000;
/// Maximum number of messages examined until every topic has one, and to find all joints: their publishers may start late.
const MOST_LOOKED_AT: usize = 100_000;
/// Maximum size (bytes) of the messages held during this examination.
const LARGEST_EXAMINED: usize = 64 << 20;
/// Number of rows returned at once.
const BLOCK: usize = 8192;

/// Selection of the topics to read.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TopicChoice {
    /// Topics whose columns have standard names if their type is known: joint states, wrenches, inertial measurement
    /// units and odometry.
    pub topics: Vec<String>,
    /// Topics whose columns are named by field paths: `/low_state.motor_state[3].tau_est`.
    pub by_path: Vec<String>,
    /// Whether the only topic with joint states is read in addition to those named by field paths.
    pub joint_states: bool,
    /// Whether all topics are read: the only topic with joint states with standard names, other joint states with these names after that of
    /// their topic, other types by field paths.
    pub every: bool,
}

impl TopicChoice {
    /// Selects the topics of a comma-separated list; without a list, the topic with joint states.
    pub fn of(list: Option<&str>) -> Self {
        let topics = list.map(|list| list.split(',').map(|topic| topic.trim().to_owned()).collect());
        Self { topics: topics.unwrap_or_default(), ..Self::default() }
    }

    /// Adds the topics of column names that are field paths.
    pub fn with_paths<'n>(mut self, columns: impl IntoIterator<Item = &'n str>) -> Self {
        let topics =
            columns.into_iter().filter(|name| name.starts_with('/')).filter_map(|name| name.split_once('.'));
        for (topic, _) in topics {
            if !self.by_path.iter().any(|own| own == topic) && !topic.contains('{') {
                self.by_path.push(topic.to_owned());
            }
        }
        self.topics.retain(|topic| !self.by_path.contains(topic));
        self
    }

    fn all(&self) -> Vec<String> {
        self.topics.iter().chain(&self.by_path).cloned().collect()
    }
}

/// Reader of topics of a bag as columns: `t`, `q.J dq.J tau.J` of every joint `J` of joint states, `ft.…` of wrenches, `acc.… gyro.…` of
/// inertial measurement units, `base.…` of odometry, and the numbers of all other messages by their field paths.
///
/// Time is the stamp of the message's header, or the recording time if the stamp is zero or missing. The joints of a message may be in
/// any order; a joint missing in a message is a missing value. Joint states that name other joints than the rest of the topic come from
/// another publisher and are a stream of their own. With several topics or streams, the first defines the rows, and the values of the
/// others are interpolated at its stamps.
pub struct BagReader<'a> {
    file: String,
    messages: Box<dyn Messages + 'a>,
    names: Vec<String>,
    channels: Vec<Channel>,
    columns: Vec<usize>,
    /// First messages, until they are returned.
    first: std::vec::IntoIter<Message>,
    merge: Merge,
    values: Vec<f64>,
    /// Streams of the current message.
    present: Vec<bool>,
    row: Vec<f64>,
    done: usize,
}

impl<'a> BagReader<'a> {
    /// Reads an MCAP stream.
    pub fn mcap(
        stream: impl Read + Send + 'a,
        name: impl Into<String>,
        choice: &TopicChoice,
    ) -> Result<Self> {
        let file = name.into();
        let messages = mcap::Bag::new(Box::new(stream), file.clone(), choice);
        Self::new(Box::new(messages), file, choice)
    }

    /// Reads a ROS 1 bag.
    pub fn ros1(
        stream: impl Read + Send + 'a,
        name: impl Into<String>,
        choice: &TopicChoice,
    ) -> Result<Self> {
        let file = name.into();
        let messages = ros1::Bag::new(Box::new(stream), file.clone(), choice);
        Self::new(Box::new(messages), file, choice)
    }

    /// Reads an SQLite file (`.db3`).
    pub fn db3(file: File, name: impl Into<String>, choice: &TopicChoice) -> Result<Self> {
        let name = name.into();
        let messages = db3::Bag::new(file, name.clone(), choice)?;
        Self::new(Box::new(messages), name, choice)
    }

    /// Reads a folder with `metadata.yaml` and files of either kind.
    pub fn folder(path: &Path, choice: &TopicChoice) -> Result<Self> {
        let messages = folder::Files::new(path, choice)?;
        Self::new(Box::new(messages), path.display().to_string(), choice)
    }

    fn new(mut messages: Box<dyn Messages + 'a>, file: String, choice: &TopicChoice) -> Result<Self> {
        let requested = choice.all();
        let (mut first, mut held): (Vec<Message>, usize) = (Vec::new(), 0);
        let missing = |first: &[Message]| {
            requested.iter().find(|topic| !first.iter().any(|message| message.topic.name == **topic)).cloned()
        };
        while held < LARGEST_EXAMINED && first.len() < MOST_LOOKED_AT {
            // Topics may start late; whether all have started is checked once per block of messages.
            if first.len() >= LOOKED_AT && first.len().is_multiple_of(LOOKED_AT) {
                let has_message = |topic: &str| first.iter().any(|message| message.topic.name == topic);
                // Messages of a topic that is read by field paths all have the same fields.
                let has_joints =
                    first.iter().any(|m| m.topic.is_joint_state() && !choice.by_path.contains(&m.topic.name));
                let known = messages.topics().read().iter().all(|topic| has_message(&topic.name));
                if !has_joints && known && missing(&first).is_none() {
                    break;
                }
            }
            let Some(message) = messages.next()? else { break };
            let message = message.unpacked(&file)?;
            held += message.data.len();
            first.push(message);
        }
        let absent = missing(&first);
        if first.is_empty() || absent.is_some() {
            return Err(messages.topics().nothing(absent.as_deref()));
        }
        let channels =
            channels(&first, &requested, choice).map_err(|m| Error::read(Place::file(&file), m))?;
        let mut names = vec!["t".to_owned()];
        names.extend(channels.iter().flat_map(|channel| channel.names.iter().cloned()));
        let mut known = HashSet::new();
        if let Some(twice) = names.iter().find(|name| !known.insert(name.as_str())) {
            let message = format!("several topics have {twice}: choose one of them");
            return Err(Error::columns(Place::file(file), message));
        }
        let columns = (0..names.len()).collect();
        let streams = channels.iter().flat_map(|channel| &channel.streams);
        let merge = Merge::new(streams.skip(1).map(ExactSizeIterator::len).collect());
        let first = first.into_iter();
        let (values, present, row) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { file, messages, names, channels, columns, first, merge, values, present, row, done: 0 })
    }

    /// Adds the next message; returns whether there was one.
    fn advance(&mut self) -> Result<bool> {
        let message = match self.first.next() {
            Some(message) => Some(message),
            None => self.messages.next()?.map(|message| message.unpacked(&self.file)).transpose()?,
        };
        let Some(message) = message else {
            self.merge.end();
            return Ok(false);
        };
        let Some(place) = self.channels.iter().position(|channel| channel.topic == message.topic.name) else {
            return Ok(true);
        };
        let before: usize = self.channels[..place].iter().map(|channel| channel.streams.len()).sum();
        let channel = &mut self.channels[place];
        self.values.resize(channel.names.len(), f64::NAN);
        self.present.resize(channel.streams.len(), false);
        let stamp = channel.read(&message, &mut self.values, &mut self.present).map_err(|cause| {
            let text = format!("topic {}, message {}: {cause}", channel.topic, message.number);
            Error::read(Place::file(&self.file), text)
        })?;
        for (k, columns) in channel.streams.iter().enumerate().filter(|(k, _)| self.present[*k]) {
            self.merge.push(before + k, stamp, &self.values[columns.clone()]);
        }
        Ok(true)
    }
}

/// Returns the columns of the topics in the order of the request, joint states first. In a list of all topics, other joint states come last.
fn channels(
    first: &[Message],
    requested: &[String],
    choice: &TopicChoice,
) -> std::result::Result<Vec<Channel>, String> {
    let mut topics: Vec<&Arc<Topic>> = Vec::new();
    for message in first {
        if !topics.iter().any(|topic| topic.name == message.topic.name) {
            topics.push(&message.topic);
        }
    }
    let is_requested = |topic: &Topic| requested.contains(&topic.name);
    // Joint states that were not requested are read only if there is a single topic of them.
    let has_own = topics.iter().any(|topic| is_requested(topic) && topic.is_joint_state());
    let automatic: Vec<String> = topics
        .iter()
        .filter(|topic| !is_requested(topic) && topic.kind == "sensor_msgs/JointState")
        .map(|topic| topic.name.clone())
        .collect();
    let is_clear = automatic.len() == 1 && !has_own;
    topics.retain(|topic| is_requested(topic) || choice.every || (is_clear && automatic[0] == topic.name));
    let place = |topic: &Topic| requested.iter().position(|name| *name == topic.name);
    let is_default = |topic: &Topic| is_clear && automatic[0] == topic.name;
    let selection = |topic: &Topic| match () {
        () if !choice.every || is_default(topic) => Selection::Automatic,
        () if topic.is_joint_state() => Selection::Topic,
        () => Selection::Map,
    };
    topics.sort_by_key(|topic| {
        (selection(topic), !topic.is_joint_state(), place(topic).unwrap_or(requested.len()))
    });
    let mut out = Vec::new();
    for topic in topics {
        let own: Vec<&Message> = first.iter().filter(|m| m.topic.name == topic.name).collect();
        let selection = selection(topic);
        let plain = choice.by_path.contains(&topic.name) || selection == Selection::Map;
        match Channel::new(topic, &own, plain) {
            Ok(mut channel) => {
                channel.selection = selection;
                if selection == Selection::Topic {
                    // The names of joints are more useful than field paths, but the same in all topics.
                    channel.names.iter_mut().for_each(|name| *name = format!("{}: {name}", topic.name));
                }
                out.push(channel);
            }
            // Topics of unknown types are left out of the list of all topics.
            Err(_) if selection != Selection::Automatic => {}
            Err(cause) => return Err(format!("topic {}, first message: {cause}", topic.name)),
        }
    }
    if out.is_empty() {
        return Err("no topic has messages of a known type".to_owned());
    }
    Ok(out)
}

impl Reader for BagReader<'_> {
    fn file(&self) -> &str {
        &self.file
    }

    fn names(&self) -> &[String] {
        &self.names
    }

    fn selection(&self, column: usize) -> Selection {
        // The time is the first column.
        let mut end = 1;
        let own = self.channels.iter().find(|channel| {
            end += channel.names.len();
            column < end
        });
        own.filter(|_| column > 0).map_or(Selection::Automatic, |channel| channel.selection)
    }

    fn joint_names(&self) -> Vec<JointNames> {
        self.channels.iter().flat_map(|channel| channel.listed.iter().cloned()).collect()
    }

    fn notes(&self) -> Vec<String> {
        let late = self.channels.iter().filter(|channel| !channel.late.is_empty());
        late.map(|channel| {
            let joints: Vec<&str> = channel.late.iter().map(String::as_str).collect();
            format!(
                "topic {}: joints that first appear after {MOST_LOOKED_AT} messages or {} MB are not read: {}",
                channel.topic,
                LARGEST_EXAMINED >> 20,
                joints.join(" ")
            )
        })
        .collect()
    }

    fn select(&mut self, columns: &[usize]) {
        self.columns = columns.to_vec();
    }

    fn next_rows(&mut self) -> Result<Option<LogRows>> {
        let mut rows = LogRows { width: self.columns.len(), ..LogRows::default() };
        while rows.len() < BLOCK {
            if !self.merge.pop(&mut self.row) {
                if self.advance()? {
                    continue;
                }
                // After the last message, waiting rows are complete.
                if !self.merge.pop(&mut self.row) {
                    break;
                }
            }
            self.done += 1;
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
