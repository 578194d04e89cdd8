//! Messages of one topic as numbers of a row.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::fields::Fields;
use super::joint_state::JointState;
use super::streams::NameLists;
use super::topics::{Message, Topic};
use crate::joint_names::JointNames;
use crate::reader::Selection;

/// Maximum number of joint names in a log.
const MOST_JOINTS: usize = 10_000;

/// Maximum number of late joints that are reported.
const MOST_LATE: usize = 20;

/// Columns of a topic, and the conversion of its messages.
pub(super) struct Channel {
    pub topic: String,
    /// Names of the columns.
    pub names: Vec<String>,
    /// Names of joints for the columns of messages of other types than joint states.
    pub listed: Vec<JointNames>,
    /// Ranges of the columns of each stream. Publishers of joint states on the same topic are separate streams; messages of other types
    /// are one stream.
    pub streams: Vec<Range<usize>>,
    /// Selection that the columns need.
    pub selection: Selection,
    /// Joints that only later messages name, so that they have no column.
    pub late: BTreeSet<String>,
    content: Content,
}

enum Content {
    Joints { is_dynamic: bool, joints: HashMap<String, Places> },
    Fields(Fields),
}

/// Stream of a joint, and the columns of its position, velocity and effort.
#[derive(Debug, Clone, Copy, Default)]
struct Places {
    stream: usize,
    columns: [Option<usize>; 3],
}

impl Channel {
    /// Determines the columns of a topic from its first messages; `plain` keeps the field paths as names.
    pub fn new(topic: &Topic, first: &[&Message], plain: bool) -> Result<Self, String> {
        let message = first.first().ok_or_else(|| "it has no message".to_owned())?;
        let is_dynamic = topic.kind == "control_msgs/DynamicJointState";
        if !topic.is_joint_state() || plain {
            if topic.is_joint_state() {
                check_order(first, is_dynamic)?;
            }
            let fields = Fields::new(topic, &message.data, plain)?;
            return Ok(Self {
                topic: topic.name.clone(),
                names: fields.names.clone(),
                listed: fields.listed.clone(),
                streams: std::iter::once(0..fields.names.len()).collect(),
                selection: Selection::Automatic,
                late: BTreeSet::new(),
                content: Content::Fields(fields),
            });
        }
        let mut lists = NameLists::default();
        let mut found: HashMap<String, [bool; 3]> = HashMap::new();
        for message in first {
            let state = state(message, is_dynamic)?;
            for (k, joint) in state.name.iter().enumerate() {
                let known = found.entry(joint.clone()).or_default();
                known.iter_mut().enumerate().for_each(|(c, known)| *known |= state.value(c, k).is_some());
            }
            lists.add(state.name);
            if found.len() > MOST_JOINTS {
                return Err(format!("has {} joints: expected at most {MOST_JOINTS}", found.len()));
            }
        }
        let (mut names, mut joints, mut streams) = (Vec::new(), HashMap::new(), Vec::new());
        for (stream, own) in lists.streams().into_iter().enumerate() {
            let start = names.len();
            for joint in own {
                let mut places = Places { stream, columns: [None; 3] };
                for (c, quantity) in ["q", "dq", "tau"].into_iter().enumerate() {
                    if found.get(&joint).is_some_and(|known| known[c]) {
                        places.columns[c] = Some(names.len());
                        names.push(format!("{quantity}.{joint}"));
                    }
                }
                joints.insert(joint, places);
            }
            streams.push(start..names.len());
        }
        let content = Content::Joints { is_dynamic, joints };
        let (topic, selection, late) = (topic.name.clone(), Selection::Automatic, BTreeSet::new());
        Ok(Self { topic, names, listed: Vec::new(), streams, selection, late, content })
    }

    /// Reads a message into a row and marks the streams that it belongs to; returns its stamp, or the recording time if the stamp is zero.
    pub fn read(&mut self, message: &Message, row: &mut [f64], present: &mut [bool]) -> Result<f64, String> {
        row.fill(f64::NAN);
        let stamp = match &self.content {
            Content::Fields(fields) => {
                present.fill(true);
                fields.read(&message.data, row)?
            }
            Content::Joints { is_dynamic, joints } => {
                present.fill(false);
                let state = state(message, *is_dynamic)?;
                for (k, joint) in state.name.iter().enumerate() {
                    let Some(places) = joints.get(joint) else {
                        if self.late.len() < MOST_LATE && !self.late.contains(joint) {
                            self.late.insert(joint.clone());
                        }
                        continue;
                    };
                    present[places.stream] = true;
                    for (c, place) in places.columns.iter().enumerate() {
                        if let (Some(place), Some(value)) = (place, state.value(c, k)) {
                            row[*place] = value;
                        }
                    }
                }
                state.stamp
            }
        };
        Ok(if stamp == 0.0 { message.time } else { stamp })
    }
}

/// Rejects joint states that name other joints, or the same in another order: their field paths have no fixed meaning.
fn check_order(first: &[&Message], is_dynamic: bool) -> Result<(), String> {
    let mut names: Option<Vec<String>> = None;
    for message in first {
        let own = state(message, is_dynamic)?.name;
        if names.as_ref().is_some_and(|names| *names != own) {
            return Err(
                "its messages name different joints, so its fields have no fixed meaning; use its columns \
                        q.JOINT, dq.JOINT and tau.JOINT"
                    .to_owned(),
            );
        }
        names.get_or_insert(own);
    }
    Ok(())
}

fn state(message: &Message, is_dynamic: bool) -> Result<JointState, String> {
    let parsed = if is_dynamic {
        JointState::parse_dynamic(&message.data, message.topic.ros1)
    } else {
        JointState::parse(&message.data, message.topic.ros1)
    };
    parsed.map_err(|cause| format!("no joint state: {cause}"))
}
