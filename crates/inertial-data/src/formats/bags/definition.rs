//! Definitions of message types, from bags and from ROS.

use std::collections::HashMap;

/// Types for bags without definitions; sections as in bags.
const SHIPPED: &str = "
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
MSG: builtin_interfaces/Duration
int32 sec
uint32 nanosec
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z
MSG: geometry_msgs/Point
float64 x
float64 y
float64 z
MSG: geometry_msgs/Quaternion
float64 x
float64 y
float64 z
float64 w
MSG: geometry_msgs/Pose
Point position
Quaternion orientation
MSG: geometry_msgs/PoseStamped
std_msgs/Header header
Pose pose
MSG: geometry_msgs/Twist
Vector3 linear
Vector3 angular
MSG: geometry_msgs/TwistStamped
std_msgs/Header header
Twist twist
MSG: geometry_msgs/Accel
Vector3 linear
Vector3 angular
MSG: geometry_msgs/AccelStamped
std_msgs/Header header
Accel accel
MSG: geometry_msgs/Wrench
Vector3 force
Vector3 torque
MSG: geometry_msgs/WrenchStamped
std_msgs/Header header
Wrench wrench
MSG: geometry_msgs/PoseWithCovariance
Pose pose
float64[36] covariance
MSG: geometry_msgs/TwistWithCovariance
Twist twist
float64[36] covariance
MSG: sensor_msgs/Imu
std_msgs/Header header
geometry_msgs/Quaternion orientation
float64[9] orientation_covariance
geometry_msgs/Vector3 angular_velocity
float64[9] angular_velocity_covariance
geometry_msgs/Vector3 linear_acceleration
float64[9] linear_acceleration_covariance
MSG: sensor_msgs/JointState
std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
MSG: nav_msgs/Odometry
std_msgs/Header header
string child_frame_id
geometry_msgs/PoseWithCovariance pose
geometry_msgs/TwistWithCovariance twist
MSG: control_msgs/InterfaceValue
string[] interface_names
float64[] values
MSG: control_msgs/DynamicJointState
std_msgs/Header header
string[] joint_names
InterfaceValue[] interface_values
MSG: std_msgs/MultiArrayDimension
string label
uint32 size
uint32 stride
MSG: std_msgs/MultiArrayLayout
MultiArrayDimension[] dim
uint32 data_offset
MSG: std_msgs/Float64MultiArray
MultiArrayLayout layout
float64[] data
MSG: std_msgs/Float32MultiArray
MultiArrayLayout layout
float32[] data
MSG: std_msgs/Float64
float64 data
MSG: std_msgs/Float32
float32 data
";

/// Kind of a field.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Number(Number),
    Text,
    /// Time of ROS 1: seconds and nanoseconds.
    Time,
    Nested(String),
}

/// Type of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

/// Multiplicity of a field in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    One,
    Fixed(usize),
    Sequence,
}

/// Field of a message.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub name: String,
    pub kind: Kind,
    pub count: Count,
}

/// Types by their names without `msg`: `geometry_msgs/Vector3`.
pub(super) struct Types(HashMap<String, Vec<Field>>);

impl Types {
    /// Reads the definitions of a type and of the types that it uses; missing types are taken from ROS.
    pub fn new(kind: &str, definition: &str) -> Result<Self, String> {
        let mut types = HashMap::new();
        read(SHIPPED, "", &mut types)?;
        if !definition.trim().is_empty() {
            read(definition, kind, &mut types)?;
        }
        Ok(Self(types))
    }

    pub fn fields(&self, kind: &str) -> Result<&[Field], String> {
        self.0.get(kind).map(Vec::as_slice).ok_or_else(|| {
            format!(
                "the bag does not define the type {kind}; convert it to MCAP with ros2 bag convert to add \
                 definitions"
            )
        })
    }
}

/// Reads sections that start with `MSG:`; the text before the first section is the type `first`.
fn read(text: &str, first: &str, types: &mut HashMap<String, Vec<Field>>) -> Result<(), String> {
    let (mut kind, mut fields) = (first.to_owned(), Vec::new());
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(next) = line.strip_prefix("MSG:") {
            if !kind.is_empty() {
                types.insert(kind, std::mem::take(&mut fields));
            }
            kind = next.trim().replacen("/msg/", "/", 1);
        } else if !line.is_empty() && !line.starts_with("===") {
            fields.extend(field(line, &kind)?);
        }
    }
    types.insert(kind, fields);
    Ok(())
}

/// Parses the field of a line; `None` for a constant.
fn field(line: &str, of: &str) -> Result<Option<Field>, String> {
    let unknown = || format!("the definition of {of} has an unknown line: {line:.60}");
    let (kind, rest) = line.split_once(char::is_whitespace).ok_or_else(unknown)?;
    let rest = rest.trim_start();
    let name = rest.split(|c: char| c.is_whitespace() || c == '=').next().unwrap_or_default();
    if rest[name.len()..].trim_start().starts_with('=') || name.is_empty() {
        return Ok(None);
    }
    let (base, count) = match kind.split_once('[') {
        None => (kind, Count::One),
        Some((base, inside)) => {
            let inside = inside.strip_suffix(']').ok_or_else(unknown)?;
            let fixed = inside.parse().ok().filter(|&n| n <= 1_000_000).map(Count::Fixed);
            match fixed {
                Some(fixed) => (base, fixed),
                None if inside.is_empty() || inside.starts_with("<=") => (base, Count::Sequence),
                None => return Err(unknown()),
            }
        }
    };
    // Texts may be bounded: string<=10.
    let base = base.split("<=").next().unwrap_or(base);
    let kind = match base {
        "bool" => Kind::Number(Number::Bool),
        "int8" => Kind::Number(Number::I8),
        "uint8" | "byte" | "char" => Kind::Number(Number::U8),
        "int16" => Kind::Number(Number::I16),
        "uint16" => Kind::Number(Number::U16),
        "int32" => Kind::Number(Number::I32),
        "uint32" => Kind::Number(Number::U32),
        "int64" => Kind::Number(Number::I64),
        "uint64" => Kind::Number(Number::U64),
        "float32" => Kind::Number(Number::F32),
        "float64" => Kind::Number(Number::F64),
        "string" => Kind::Text,
        "time" | "duration" => Kind::Time,
        "wstring" => return Err(format!("{of} has fields of type wstring, which are not supported")),
        "Header" => Kind::Nested("std_msgs/Header".to_owned()),
        nested if nested.contains('/') => Kind::Nested(nested.replacen("/msg/", "/", 1)),
        nested => {
            let package = of.split('/').next().unwrap_or_default();
            Kind::Nested(format!("{package}/{nested}"))
        }
    };
    Ok(Some(Field { name: name.to_owned(), kind, count }))
}
