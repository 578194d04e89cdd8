//! Patterns of column names: `actual_q_{i}`, `column_{2..7}`, `/joint_states/{joint}/position`.

use std::collections::BTreeMap;

/// Column name with one variable part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    before: String,
    after: String,
    open: Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    /// Placeholder `{i}`: numbers from 0 or from 1.
    Index,
    /// Placeholder `{a..b}`: these numbers.
    Range(usize, usize),
    /// Placeholder `{joint}`: names of joints.
    Joint,
}

/// Maximum number of columns of a range.
const MOST: usize = 100_000;

impl Pattern {
    /// Parses a pattern; `None` if the text has no braces, an error if it has other placeholders than these three.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let Some((before, rest)) = text.split_once('{') else { return Ok(None) };
        let unknown = || format!("{text}: expected one of {{i}}, {{2..7}} and {{joint}} in a pattern");
        let (inner, after) = rest.split_once('}').ok_or_else(unknown)?;
        let open = match inner {
            "i" => Open::Index,
            "joint" => Open::Joint,
            _ => {
                let (first, last) = inner.split_once("..").ok_or_else(unknown)?;
                let number = |text: &str| text.trim().parse::<usize>().map_err(|_| unknown());
                let (first, last) = (number(first)?, number(last)?);
                if first > last || last - first >= MOST {
                    return Err(format!("{text}: expected a range from a smaller to a larger number"));
                }
                Open::Range(first, last)
            }
        };
        Ok(Some(Self { before: before.to_owned(), after: after.to_owned(), open }))
    }

    /// Returns the variable part of a name.
    fn part<'n>(&self, name: &'n str) -> Option<&'n str> {
        let part = name.strip_prefix(&self.before)?.strip_suffix(&self.after)?;
        (!part.is_empty()).then_some(part)
    }

    /// Returns the matching columns, each with its suffix as a column of a quantity: `1`, `2` … or `.JOINT`.
    pub fn columns(&self, names: &[String]) -> Result<Vec<(String, usize)>, String> {
        let text = || format!("{}{{…}}{}", self.before, self.after);
        match self.open {
            Open::Joint => {
                let named = names.iter().enumerate().filter_map(|(k, name)| Some((self.part(name)?, k)));
                Ok(named.map(|(joint, k)| (format!(".{joint}"), k)).collect())
            }
            Open::Index => {
                let digits = |name| self.part(name).filter(|part| part.bytes().all(|b| b.is_ascii_digit()));
                let numbers: BTreeMap<usize, usize> = names
                    .iter()
                    .enumerate()
                    .filter_map(|(k, name)| Some((digits(name)?.parse().ok()?, k)))
                    .collect();
                let first = numbers.keys().next().copied().unwrap_or(1);
                if first > 1 || numbers.keys().enumerate().any(|(k, &number)| number != first + k) {
                    let found: Vec<String> = numbers.keys().map(ToString::to_string).collect();
                    return Err(format!(
                        "{}: the numbers are {}; expected all from 0 or 1",
                        text(),
                        found.join(" ")
                    ));
                }
                Ok(numbers.values().enumerate().map(|(k, &column)| ((k + 1).to_string(), column)).collect())
            }
            Open::Range(first, last) => (first..=last)
                .enumerate()
                .map(|(k, number)| {
                    let wanted = format!("{}{number}{}", self.before, self.after);
                    let found = names.iter().position(|name| *name == wanted);
                    found
                        .map(|column| ((k + 1).to_string(), column))
                        .ok_or_else(|| format!("there is no column {wanted}"))
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn columns_are_found_by_number_range_and_joint() {
        let names: Vec<String> = ["t", "q_0_deg", "q_1_deg", "column_2", "column_3", "/js/elbow/position"]
            .map(String::from)
            .into();
        let found = |text: &str| Pattern::parse(text).unwrap().unwrap().columns(&names);
        let expected = |list: &[(&str, usize)]| Ok(list.iter().map(|(a, b)| ((*a).to_owned(), *b)).collect());
        assert_eq!(found("q_{i}_deg"), expected(&[("1", 1), ("2", 2)]));
        assert_eq!(found("column_{2..3}"), expected(&[("1", 3), ("2", 4)]));
        assert_eq!(found("/js/{joint}/position"), expected(&[(".elbow", 5)]));
        assert_eq!(found("column_{2..4}"), Err("there is no column column_4".to_owned()));
        assert!(found("column_{i}").unwrap_err().contains("the numbers are 2 3; expected all from 0 or 1"));
        assert_eq!(Pattern::parse("plain"), Ok(None));
        for bad in ["{j}", "{", "{7..2}", "{a..b}"] {
            assert!(Pattern::parse(bad).is_err(), "{bad}");
        }
    }
}
