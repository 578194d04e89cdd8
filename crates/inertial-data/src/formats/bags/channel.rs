//! Messages of one topic as numbers of a row.

use std::collections::HashMap;

use super::fields::Fields;
use super::joint_state::JointState;
use super::topics::{Message, Topic};

/// Maximum number of joint names in a log.
const MOST_JOINTS: usize = 10_000;

/// Columns of a topic, and the conversion of its messages.
pub(super) struct Channel {
    pub topic: String,
    /// Names of the columns.
    pub names: Vec<String>,
    content: Content,
}

enum Content {
    /// Indices of the columns of a joint's position, velocity and effort.
    Joints {
        is_dynamic: bool,
        joints: HashMap<String, [Option<usize>; 3]>,
    },
    Fields(Fields),
}

impl Channel {
    /// Determines the columns of a topic from its first messages; `plain` keeps the field paths as names.
    pub fn new(topic: &Topic, first: &[&Message], plain: bool) -> Result<Self, String> {
        let message = first.first().ok_or_else(|| "it has no message".to_owned())?;
        if !topic.is_joint_state() || plain {
            let fields = Fields::new(topic, &message.data, plain)?;
            return Ok(Self {
                topic: topic.name.clone(),
                names: fields.names.clone(),
                content: Content::Fields(fields),
            });
        }
        let is_dynamic = topic.kind == "control_msgs/DynamicJointState";
        let mut joints: HashMap<String, [Option<usize>; 3]> = HashMap::new();
        let mut names = Vec::new();
        for message in first {
            let state = state(message, is_dynamic)?;
            for (k, joint) in state.name.iter().enumerate() {
                let places = joints.entry(joint.clone()).or_default();
                for (c, quantity) in ["q", "dq", "tau"].into_iter().enumerate() {
                    if places[c].is_none() && state.value(c, k).is_some() {
                        places[c] = Some(names.len());
                        names.push(format!("{quantity}.{joint}"));
                    }
                }
            }
            if joints.len() > MOST_JOINTS {
                return Err(format!("has {} joints: expected at most {MOST_JOINTS}", joints.len()));
            }
        }
        Ok(Self { topic: topic.name.clone(), names, content: Content::Joints { is_dynamic, joints } })
    }

    /// Reads a message into a row; returns its stamp, or the recording time if the stamp is zero.
    pub fn read(&self, message: &Message, row: &mut [f64]) -> Result<f64, String> {
        row.fill(f64::NAN);
        let stamp = match &self.content {
            Content::Fields(fields) => fields.read(&message.data, row)?,
            Content::Joints { is_dynamic, joints } => {
                let state = state(message, *is_dynamic)?;
                for (k, joint) in state.name.iter().enumerate() {
                    let Some(places) = joints.get(joint) else { continue };
                    for (c, place) in places.iter().enumerate() {
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

fn state(message: &Message, is_dynamic: bool) -> Result<JointState, String> {
    let parsed = if is_dynamic {
        JointState::parse_dynamic(&message.data, message.topic.ros1)
    } else {
        JointState::parse(&message.data, message.topic.ros1)
    };
    parsed.map_err(|cause| format!("no joint state: {cause}"))
}
