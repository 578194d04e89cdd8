//! Lists of joint names in logs.

/// Maximum number of listed joints, length (bytes) of a name, and length of a text with all names.
const MOST_JOINTS: usize = 1000;
const LONGEST_NAME: usize = 256;
const LONGEST_TEXT: usize = 1 << 16;

/// Names of joints that a log lists beside numbered columns, in the order of the numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JointNames {
    /// Column or field of the list; `field.name{i}` for several columns.
    pub source: String,
    /// Start of the names of the columns that the list applies to: the topic of a bag. Empty for all columns.
    pub scope: String,
    /// Names of the joints: different ones, none of them empty.
    pub names: Vec<String>,
}

impl JointNames {
    /// Creates a list for all columns of a log; `None` if the texts cannot be names of joints.
    pub fn new<T: AsRef<str>>(source: impl Into<String>, texts: impl IntoIterator<Item = T>) -> Option<Self> {
        let mut names: Vec<String> = Vec::new();
        for text in texts {
            let name = text.as_ref().trim_matches(|c: char| c.is_whitespace() || c == '\0');
            if name.is_empty() || name.len() > LONGEST_NAME || names.len() == MOST_JOINTS {
                return None;
            }
            names.push(name.to_owned());
        }
        let different: std::collections::HashSet<&String> = names.iter().collect();
        let is_list = !names.is_empty() && different.len() == names.len();
        is_list.then(|| Self { source: source.into(), scope: String::new(), names })
    }

    /// Creates a list from one text: `['elbow', 'wrist']`, `["elbow", "wrist"]` or `[elbow wrist]`.
    pub(crate) fn parse(source: &str, text: &str) -> Option<Self> {
        let inner = text.trim();
        let mut brackets = [('[', ']'), ('(', ')')].into_iter();
        let inner = brackets.find_map(|(a, b)| inner.strip_prefix(a)?.strip_suffix(b))?;
        if inner.len() > LONGEST_TEXT {
            return None;
        }
        let separators: &[char] = if inner.contains(',') { &[','] } else { &[' ', '\t', '\n', '\r'] };
        let parts = inner.split(separators).map(|part| part.trim().trim_matches(['\'', '"']));
        // A comma may follow the last name, and several spaces may separate names.
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let is_number = |part: &&str| part.parse::<f64>().is_ok();
        if parts.iter().any(is_number) { None } else { Self::new(source, parts) }
    }

    /// Restricts the list to columns whose names start with `scope`.
    pub(crate) fn within(self, scope: impl Into<String>) -> Self {
        Self { scope: scope.into(), ..self }
    }

    /// Returns whether a column is part of the list.
    pub(crate) fn is_source(&self, column: &str) -> bool {
        match self.source.split_once("{i}") {
            None => column == self.source,
            Some((before, after)) => {
                let number = column.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                number.is_some_and(is_index)
            }
        }
    }
}

/// Returns whether a text is the number of a column of a list.
pub(crate) fn is_index(text: &str) -> bool {
    !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit())
}
