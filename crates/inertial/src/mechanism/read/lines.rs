//! Line numbers of byte offsets in a text.

/// Index of line numbers: stores the line number at regular steps through a text, which needs little memory and makes lookups fast.
pub(crate) struct Lines<'t> {
    text: &'t [u8],
    marks: Vec<u32>,
}

impl<'t> Lines<'t> {
    const STEP: usize = 4096;

    /// Counts the lines of a text.
    pub(crate) fn new(text: &'t str) -> Self {
        let text = text.as_bytes();
        let mut line = 1;
        let mark = |block: &[u8]| {
            let first = line;
            line += newlines(block);
            first
        };
        Self { text, marks: text.chunks(Self::STEP).map(mark).collect() }
    }

    /// Returns the line (from 1) that contains the byte at `offset`.
    pub(crate) fn at(&self, offset: usize) -> u32 {
        let offset = offset.min(self.text.len());
        // The end of the text may lie on a step at which no block starts.
        let block = (offset / Self::STEP).min(self.marks.len().saturating_sub(1));
        self.marks.get(block).map_or(1, |line| line + newlines(&self.text[block * Self::STEP..offset]))
    }
}

// A crate that counts bytes faster would save about one millisecond per ten megabytes.
#[allow(clippy::naive_bytecount)]
fn newlines(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|&&b| b == b'\n').count() as u32
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn every_offset_has_its_line() {
        for text in ["", "\n", "one", "a\nb\r\n\nc", &"0123456\n".repeat(1024), &"\n".repeat(9000)] {
            let lines = Lines::new(text);
            let mut expected = 1;
            for (i, b) in text.bytes().enumerate() {
                assert_eq!(lines.at(i), expected);
                expected += u32::from(b == b'\n');
            }
            assert_eq!((lines.at(text.len()), lines.at(usize::MAX)), (expected, expected));
        }
    }
}
