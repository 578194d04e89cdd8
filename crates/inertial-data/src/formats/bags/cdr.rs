//! Message encodings: CDR of ROS 2, and that of ROS 1.

/// Reader of numbers, texts and sequences.
pub(crate) struct Cdr<'a> {
    body: &'a [u8],
    at: usize,
    little: bool,
    aligned: bool,
}

impl<'a> Cdr<'a> {
    /// Opens a ROS 2 message with its encapsulation header, or a ROS 1 message; returns the cause if it is invalid.
    pub fn new(message: &'a [u8], ros1: bool) -> Result<Self, String> {
        if ros1 {
            // Little endian, without alignment.
            return Ok(Self { body: message, at: 0, little: true, aligned: false });
        }
        let [_, kind, _, _, body @ ..] = message else { return Err("it is too short".into()) };
        // CDR version 1, big or little endian; every value is aligned to its size, counted from here.
        match kind {
            0 => Ok(Self { body, at: 0, little: false, aligned: true }),
            1 => Ok(Self { body, at: 0, little: true, aligned: true }),
            _ => Err(format!("encapsulation {kind}: expected plain CDR")),
        }
    }

    /// Reads a header and returns its stamp in seconds.
    pub fn header(&mut self) -> Result<f64, String> {
        let seconds = if self.aligned {
            f64::from(i32::from_ne_bytes(self.word()?))
        } else {
            // The stamp is preceded by a sequence number.
            let _sequence: [u8; 4] = self.word()?;
            f64::from(u32::from_ne_bytes(self.word()?))
        };
        let nanoseconds = u32::from_ne_bytes(self.word()?);
        self.skip_string()?;
        Ok(seconds + 1e-9 * f64::from(nanoseconds))
    }

    /// Skips a text.
    pub fn skip_string(&mut self) -> Result<(), String> {
        let length = self.length(1)?;
        self.take(length).map(|_| ())
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let part = self.body.get(self.at..).and_then(|rest| rest.get(..count));
        self.at += count;
        part.ok_or_else(|| "it ends early".to_owned())
    }

    /// Reads a number of N bytes, in native byte order.
    pub fn word<const N: usize>(&mut self) -> Result<[u8; N], String> {
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

    /// Reads the length of a sequence whose items have at least `least` bytes; impossible lengths are not allocated.
    pub fn length(&mut self, least: usize) -> Result<usize, String> {
        let length = u32::from_ne_bytes(self.word()?) as usize;
        if length.saturating_mul(least) > self.body.len() {
            Err("it ends early".to_owned())
        } else {
            Ok(length)
        }
    }

    /// Reads a text, whose length includes the terminating zero.
    pub fn string(&mut self) -> Result<String, String> {
        let length = self.length(1)?;
        let bytes = self.take(length)?;
        let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| "a name is not UTF-8".to_owned())
    }

    pub fn doubles(&mut self) -> Result<Vec<f64>, String> {
        let count = self.length(8)?;
        (0..count).map(|_| self.word().map(f64::from_ne_bytes)).collect()
    }
}
