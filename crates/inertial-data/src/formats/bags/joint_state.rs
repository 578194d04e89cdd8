//! `sensor_msgs/JointState` in CDR, the encoding of ROS 2, and in that of ROS 1.

/// State of some joints at one time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JointState {
    /// Stamp of the header in seconds.
    pub stamp: f64,
    pub name: Vec<String>,
    /// Position, velocity, effort: empty, or as many as names.
    values: [Vec<f64>; 3],
}

impl JointState {
    /// Parses a message with its encapsulation header; returns the cause where it is not valid.
    pub fn parse(message: &[u8]) -> Result<Self, String> {
        let [_, kind, _, _, body @ ..] = message else { return Err("it is too short".into()) };
        // CDR of version 1, big or little endian; everything is aligned to its size, counted from here.
        let mut cdr = match kind {
            0 => Cdr { body, at: 0, little: false, aligned: true },
            1 => Cdr { body, at: 0, little: true, aligned: true },
            _ => return Err(format!("encapsulation {kind}: expected plain CDR")),
        };
        let seconds = i32::from_ne_bytes(cdr.word()?);
        Self::after_seconds(f64::from(seconds), &mut cdr)
    }

    /// Parses a message of ROS 1: little endian, without alignment, and with a number before the stamp.
    pub fn parse_ros1(body: &[u8]) -> Result<Self, String> {
        let mut cdr = Cdr { body, at: 0, little: true, aligned: false };
        let _sequence: [u8; 4] = cdr.word()?;
        let seconds = u32::from_ne_bytes(cdr.word()?);
        Self::after_seconds(f64::from(seconds), &mut cdr)
    }

    fn after_seconds(seconds: f64, cdr: &mut Cdr<'_>) -> Result<Self, String> {
        let nanoseconds = u32::from_ne_bytes(cdr.word()?);
        let _frame = cdr.string()?;
        let count = cdr.length(4)?;
        let name = (0..count).map(|_| cdr.string()).collect::<Result<Vec<_>, _>>()?;
        let values = [cdr.doubles()?, cdr.doubles()?, cdr.doubles()?];
        if let Some(bad) = values.iter().find(|v| !v.is_empty() && v.len() != count) {
            return Err(format!("{} values for {count} joints", bad.len()));
        }
        Ok(Self { stamp: seconds + 1e-9 * f64::from(nanoseconds), name, values })
    }

    /// Position (0), velocity (1) or effort (2) of a joint, where it is there.
    pub fn value(&self, quantity: usize, joint: usize) -> Option<f64> {
        self.values[quantity].get(joint).copied()
    }
}

struct Cdr<'a> {
    body: &'a [u8],
    at: usize,
    little: bool,
    aligned: bool,
}

impl<'a> Cdr<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let part = self.body.get(self.at..).and_then(|rest| rest.get(..count));
        self.at += count;
        part.ok_or_else(|| "it ends early".to_owned())
    }

    /// A number of N bytes in the order of this machine.
    fn word<const N: usize>(&mut self) -> Result<[u8; N], String> {
        if self.aligned {
            self.at = self.at.next_multiple_of(N);
        }
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        if self.little != cfg!(target_endian = "little") {
            bytes.reverse();
        }
        Ok(bytes)
    }

    /// The length of a sequence whose items have at least `least` bytes: what cannot be there is not allocated.
    fn length(&mut self, least: usize) -> Result<usize, String> {
        let length = u32::from_ne_bytes(self.word()?) as usize;
        if length.saturating_mul(least) > self.body.len() {
            Err("it ends early".to_owned())
        } else {
            Ok(length)
        }
    }

    /// Length counts the zero at its end.
    fn string(&mut self) -> Result<String, String> {
        let length = self.length(1)?;
        let bytes = self.take(length)?;
        let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| "a name is not UTF-8".to_owned())
    }

    fn doubles(&mut self) -> Result<Vec<f64>, String> {
        let count = self.length(8)?;
        (0..count).map(|_| self.word().map(f64::from_ne_bytes)).collect()
    }
}
