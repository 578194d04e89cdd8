//! Numbers of any message, by their field paths: `motor_state[3].tau_est`.

use super::cdr::Cdr;
use super::definition::{Count, Field, Kind, Number, Types};
use super::topics::Topic;
use crate::columns::name_lists::is_list;
use crate::joint_names::JointNames;

/// Maximum number of columns of one topic.
const MOST_COLUMNS: usize = 10_000;
/// Maximum number of parts of a message type; longer sequences are skipped.
const MOST_PARTS: usize = 100_000;
/// Maximum number of entries of a sequence that become columns: longer ones are images or point clouds.
const LONGEST: usize = 1000;
/// Maximum nesting of types.
const MOST_LEVELS: usize = 20;

/// Standard names of numbers in messages, by type and path.
const NAMED: [(&str, &[(&str, &str)]); 3] = [
    (
        "geometry_msgs/WrenchStamped",
        &[
            ("wrench.force.x", "ft.fx"),
            ("wrench.force.y", "ft.fy"),
            ("wrench.force.z", "ft.fz"),
            ("wrench.torque.x", "ft.tx"),
            ("wrench.torque.y", "ft.ty"),
            ("wrench.torque.z", "ft.tz"),
        ],
    ),
    (
        "sensor_msgs/Imu",
        &[
            ("linear_acceleration.x", "acc.x"),
            ("linear_acceleration.y", "acc.y"),
            ("linear_acceleration.z", "acc.z"),
            ("angular_velocity.x", "gyro.x"),
            ("angular_velocity.y", "gyro.y"),
            ("angular_velocity.z", "gyro.z"),
        ],
    ),
    (
        "nav_msgs/Odometry",
        &[
            ("pose.pose.position.x", "base.x"),
            ("pose.pose.position.y", "base.y"),
            ("pose.pose.position.z", "base.z"),
            ("pose.pose.orientation.x", "base.qx"),
            ("pose.pose.orientation.y", "base.qy"),
            ("pose.pose.orientation.z", "base.qz"),
            ("pose.pose.orientation.w", "base.qw"),
            ("twist.twist.linear.x", "base.vx"),
            ("twist.twist.linear.y", "base.vy"),
            ("twist.twist.linear.z", "base.vz"),
            ("twist.twist.angular.x", "base.wx"),
            ("twist.twist.angular.y", "base.wy"),
            ("twist.twist.angular.z", "base.wz"),
        ],
    ),
];

/// Plan for reading a message.
#[derive(Debug)]
enum Plan {
    /// Header with the stamp, as the first field.
    Header,
    /// Number with its column.
    Number(Number, Option<usize>),
    Text,
    /// Name of a joint, the same in all messages.
    Name(String),
    Parts(Vec<Plan>),
    /// Repeated entries without columns.
    Repeated(usize, Box<Plan>),
    /// Sequence: entries with columns, then the plan for skipping others.
    Sequence(Vec<Plan>, Box<Plan>),
}

/// Columns of a topic, and the plan for reading its messages.
#[derive(Debug)]
pub(super) struct Fields {
    plan: Plan,
    ros1: bool,
    /// Names of the columns.
    pub names: Vec<String>,
    /// Names of joints in the first message, for the numbers of this topic.
    pub listed: Vec<JointNames>,
}

struct Planner<'t> {
    types: &'t Types,
    /// Paths and names of the numbers to use; all numbers if empty.
    known: &'t [(&'t str, &'t str)],
    names: Vec<String>,
    /// Names of joints, by the path of their list.
    listed: Vec<JointNames>,
    parts: usize,
}

impl Fields {
    /// Determines the columns of a topic from its first message; `plain` keeps the field paths as names.
    pub fn new(topic: &Topic, first: &[u8], plain: bool) -> Result<Self, String> {
        let types = Types::new(&topic.kind, &topic.definition)?;
        let mut cdr = Cdr::new(first, topic.ros1)?;
        let known =
            NAMED.iter().find(|(kind, _)| *kind == topic.kind && !plain).map_or(&[][..], |(_, names)| names);
        let mut planner = Planner { types: &types, known, names: Vec::new(), listed: Vec::new(), parts: 0 };
        let mut plan = Vec::new();
        for (k, field) in types.fields(&topic.kind)?.iter().enumerate() {
            let is_header =
                k == 0 && field.count == Count::One && field.kind == Kind::Nested("std_msgs/Header".into());
            if is_header {
                cdr.header()?;
                plan.push(Plan::Header);
            } else {
                plan.push(planner.field(field, Some((&mut cdr, "")), 0)?);
            }
        }
        let named = |path: &String| match known.iter().find(|(own, _)| own == path) {
            Some((_, name)) => (*name).to_owned(),
            None => format!("{}.{path}", topic.name),
        };
        let names = planner.names.iter().map(named).collect();
        let scope = format!("{}.", topic.name);
        let of_topic = |list: JointNames| {
            JointNames { source: format!("{scope}{}", list.source), ..list }.within(&scope)
        };
        let listed = planner.listed.into_iter().map(of_topic).collect();
        Ok(Self { plan: Plan::Parts(plan), ros1: topic.ros1, names, listed })
    }

    /// Reads a message into a row; returns the stamp, or zero if there is none.
    pub fn read(&self, message: &[u8], row: &mut [f64]) -> Result<f64, String> {
        let mut stamp = 0.0;
        walk(&self.plan, &mut Cdr::new(message, self.ros1)?, row, &mut stamp)?;
        Ok(stamp)
    }
}

impl Planner<'_> {
    /// Creates the plan of a field. `at` is the first message and the path of the parent if the field has columns.
    fn field(
        &mut self,
        field: &Field,
        at: Option<(&mut Cdr<'_>, &str)>,
        level: usize,
    ) -> Result<Plan, String> {
        let Some((cdr, path)) = at else {
            return match field.count {
                Count::One => self.entry(&field.kind, None, level),
                Count::Fixed(count) => {
                    Ok(Plan::Repeated(count, Box::new(self.entry(&field.kind, None, level)?)))
                }
                Count::Sequence => {
                    Ok(Plan::Sequence(Vec::new(), Box::new(self.entry(&field.kind, None, level)?)))
                }
            };
        };
        let dot = if path.is_empty() { "" } else { "." };
        let path = format!("{path}{dot}{}", field.name);
        if field.count == Count::One {
            return self.entry(&field.kind, Some((cdr, &path)), level);
        }
        let count = match field.count {
            Count::Fixed(count) => count,
            _ => cdr.length(1)?,
        };
        let other = self.entry(&field.kind, None, level)?;
        let mut known = Vec::new();
        if field.kind == Kind::Text && self.known.is_empty() && count <= LONGEST && is_list(&field.name) {
            let texts = (0..count).map(|_| cdr.string()).collect::<Result<Vec<_>, _>>()?;
            if let Some(list) = JointNames::new(path, &texts) {
                self.listed.push(list);
                known.extend(texts.into_iter().map(Plan::Name));
            } else {
                known.extend(texts.iter().map(|_| Plan::Text));
            }
            return Ok(match field.count {
                Count::Sequence => Plan::Sequence(known, Box::new(other)),
                _ => Plan::Parts(known),
            });
        }
        for k in 0..count {
            if count <= LONGEST {
                let path = format!("{path}[{k}]");
                known.push(self.entry(&field.kind, Some((&mut *cdr, &path)), level)?);
            } else {
                walk(&other, cdr, &mut [], &mut 0.0)?;
            }
        }
        Ok(match field.count {
            Count::Sequence => Plan::Sequence(known, Box::new(other)),
            _ if count <= LONGEST => Plan::Parts(known),
            _ => Plan::Repeated(count, Box::new(other)),
        })
    }

    fn entry(&mut self, kind: &Kind, at: Option<(&mut Cdr<'_>, &str)>, level: usize) -> Result<Plan, String> {
        self.parts += 1;
        if self.parts > MOST_PARTS || level > MOST_LEVELS {
            return Err(format!("its type has more than {MOST_PARTS} parts or {MOST_LEVELS} levels"));
        }
        match (kind, at) {
            (Kind::Number(number), Some((cdr, path))) => {
                value(*number, cdr)?;
                if !self.known.is_empty() && !self.known.iter().any(|(own, _)| *own == path) {
                    return Ok(Plan::Number(*number, None));
                }
                if self.names.len() >= MOST_COLUMNS {
                    return Err(format!("it has more than {MOST_COLUMNS} numbers"));
                }
                self.names.push(path.to_owned());
                Ok(Plan::Number(*number, Some(self.names.len() - 1)))
            }
            (Kind::Number(number), None) => Ok(Plan::Number(*number, None)),
            (Kind::Text, at) => {
                at.map_or(Ok(()), |(cdr, _)| cdr.skip_string())?;
                Ok(Plan::Text)
            }
            (Kind::Time, at) => {
                if let Some((cdr, _)) = at {
                    let _: ([u8; 4], [u8; 4]) = (cdr.word()?, cdr.word()?);
                }
                Ok(Plan::Parts(vec![Plan::Number(Number::U32, None), Plan::Number(Number::U32, None)]))
            }
            (Kind::Nested(kind), at) => {
                let types = self.types;
                let fields = types.fields(kind)?;
                let mut parts = Vec::with_capacity(fields.len());
                match at {
                    Some((cdr, path)) => {
                        for field in fields {
                            parts.push(self.field(field, Some((&mut *cdr, path)), level + 1)?);
                        }
                    }
                    None => {
                        for field in fields {
                            parts.push(self.field(field, None, level + 1)?);
                        }
                    }
                }
                Ok(Plan::Parts(parts))
            }
        }
    }
}

fn walk(plan: &Plan, cdr: &mut Cdr<'_>, row: &mut [f64], stamp: &mut f64) -> Result<(), String> {
    match plan {
        Plan::Header => *stamp = cdr.header()?,
        Plan::Number(number, column) => {
            let value = value(*number, cdr)?;
            if let Some(place) = column.and_then(|column| row.get_mut(column)) {
                *place = value;
            }
        }
        Plan::Text => cdr.skip_string()?,
        Plan::Name(expected) => {
            let found = cdr.string()?;
            if found != *expected {
                return Err(format!(
                    "it names the joint {found:.60} in the place of {expected:.60} in the first message, so its fields have no \
                     fixed meaning"
                ));
            }
        }
        Plan::Parts(parts) => parts.iter().try_for_each(|part| walk(part, cdr, row, stamp))?,
        Plan::Repeated(count, part) => (0..*count).try_for_each(|_| walk(part, cdr, row, stamp))?,
        Plan::Sequence(known, other) => {
            let count = cdr.length(1)?;
            for k in 0..count {
                walk(known.get(k).unwrap_or(other), cdr, row, stamp)?;
            }
        }
    }
    Ok(())
}

fn value(number: Number, cdr: &mut Cdr<'_>) -> Result<f64, String> {
    Ok(match number {
        Number::Bool | Number::U8 => f64::from(u8::from_ne_bytes(cdr.word()?)),
        Number::I8 => f64::from(i8::from_ne_bytes(cdr.word()?)),
        Number::I16 => f64::from(i16::from_ne_bytes(cdr.word()?)),
        Number::U16 => f64::from(u16::from_ne_bytes(cdr.word()?)),
        Number::I32 => f64::from(i32::from_ne_bytes(cdr.word()?)),
        Number::U32 => f64::from(u32::from_ne_bytes(cdr.word()?)),
        Number::I64 => i64::from_ne_bytes(cdr.word()?) as f64,
        Number::U64 => u64::from_ne_bytes(cdr.word()?) as f64,
        Number::F32 => f64::from(f32::from_ne_bytes(cdr.word()?)),
        Number::F64 => f64::from_ne_bytes(cdr.word()?),
    })
}
