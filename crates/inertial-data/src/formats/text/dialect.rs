//! Dialect of a text table: separator, header, and lines before it.

use crate::formats::text::cells::{Separator, cells, number};
use crate::formats::text::time;

/// Dialect of a text, determined from its first lines.
#[derive(Debug)]
pub(crate) struct Head {
    pub separator: Separator,
    /// Names of the columns.
    pub names: Vec<String>,
    /// Whether the text names its columns; otherwise they are called `column_1`, `column_2` and so on.
    pub named: bool,
    /// Whether the first line that is not a comment is a row.
    pub is_row: bool,
}

/// Describes a table from its first line that is not a comment, the last comment before it, and its separator if a line names it.
pub(crate) fn head(
    first: &[u8],
    comment: Option<&[u8]>,
    given: Option<Separator>,
) -> Result<Head, &'static str> {
    if let Some(fault) = no_table(first) {
        return Err(fault);
    }
    let separator = given.unwrap_or_else(|| separator(first));
    let own = cells(first, separator);
    let is_number = |cell: &&[u8]| number(cell).is_some();
    // A comment with as many cells as a row is a header, as numpy.savetxt and `rostopic echo -p` write it.
    if let Some(comment) = comment.filter(|_| own.first().is_some_and(is_number)) {
        let names = cells(comment, separator);
        if names.len() == own.len() && own.len() > 1 && !names.iter().all(is_number) {
            return Ok(Head { separator, names: named(&names), named: true, is_row: true });
        }
    }
    if let Some(names) = echoed_joint_states(&own) {
        return Ok(Head { separator, names, named: true, is_row: true });
    }
    let is_row = own.iter().all(is_number);
    let names = if is_row { named(&vec![&b""[..]; own.len()]) } else { named(&own) };
    Ok(Head { separator, names, named: !is_row, is_row })
}

/// Returns the names of columns; unnamed ones are named after their number.
fn named(cells: &[&[u8]]) -> Vec<String> {
    let name = |(k, cell): (usize, &&[u8])| match cell {
        [] => format!("column_{}", k + 1),
        // Encodings other than UTF-8 are treated as Latin-1.
        cell => match std::str::from_utf8(cell) {
            Ok(text) => text.to_owned(),
            Err(_) => cell.iter().map(|&b| char::from(b)).collect(),
        },
    };
    let cells = match cells {
        // A separator at the end of the line does not start a column.
        [names @ .., []] if names.iter().any(|n| !n.is_empty()) => names,
        all => all,
    };
    cells.iter().enumerate().map(name).collect()
}

/// Names the first column if it has no name and contains dates or durations, as an index of pandas.
pub(crate) fn name_dates(names: &mut [String], row: &[&[u8]]) {
    if let [first, others @ ..] = names
        && first == "column_1"
        && row.len() == others.len() + 1
        && time::seconds(row[0]).is_some()
        && others.iter().all(|name| name != "datetime")
    {
        "datetime".clone_into(first);
    }
}

/// Returns a description of the first line if it does not belong to a table.
pub(crate) fn no_table(line: &[u8]) -> Option<&'static str> {
    if line.starts_with(&[0xff, 0xfe]) || line.starts_with(&[0xfe, 0xff]) {
        return Some("is UTF-16 text; save it as UTF-8");
    }
    let line = line.trim_ascii_end();
    let control = |b: &u8| *b < 0x20 && !matches!(*b, b'\t' | b'\r');
    if line.iter().any(control) {
        return Some("is neither text nor a known format");
    }
    line.contains(&b'\r').then_some("lines end with carriage returns alone; expected line feeds")
}

/// Returns the separator of a line.
pub(crate) fn separator(line: &[u8]) -> Separator {
    let plain = without_quotes(line.trim_ascii());
    let has = |b: u8| plain.contains(&b);
    let numbers = |separator| cells(&plain, separator).iter().all(|cell| number(cell).is_some());
    match () {
        () if has(b';') => Separator::Byte(b';'),
        () if has(b'|') && !has(b'\t') && (!has(b',') || numbers(Separator::Byte(b'|'))) => {
            Separator::Byte(b'|')
        }
        // Tabs after commas are only alignment; commas between digits are decimal.
        () if has(b'\t') && !(has(b',') && commas_separate(&plain)) => Separator::Byte(b'\t'),
        () if has(b',') && has(b' ') && !commas_separate(&plain) && numbers(Separator::Blanks) => {
            Separator::Blanks
        }
        () if has(b',') => Separator::Byte(b','),
        () if has(b' ') => Separator::Blanks,
        () => Separator::Byte(b','),
    }
}

/// Returns whether every comma is followed by a blank or the end of the line.
fn commas_separate(line: &[u8]) -> bool {
    let mut commas = memchr::memchr_iter(b',', line);
    commas.all(|k| line.get(k + 1).is_none_or(|b| *b == b' ' || *b == b'\t'))
}

/// Returns a line without its quoted parts.
fn without_quotes(line: &[u8]) -> Vec<u8> {
    let mut inside = false;
    line.iter()
        .copied()
        .filter(|&b| {
            if b == b'"' {
                inside = !inside;
            }
            b != b'"' && !inside
        })
        .collect()
}

/// Returns the columns of a row of `ros2 topic echo --csv` with joint states: stamp, frame, names of joints, then positions,
/// velocities and efforts.
fn echoed_joint_states(row: &[&[u8]]) -> Option<Vec<String>> {
    let [seconds, nanoseconds, _frame, rest @ ..] = row else { return None };
    let digits = |cell: &[u8]| !cell.is_empty() && cell.len() <= 10 && cell.iter().all(u8::is_ascii_digit);
    let joints = rest.iter().take_while(|cell| number(cell).is_none()).count();
    let numbers = rest.len() - joints;
    let numeric = rest[joints..].iter().all(|cell| number(cell).is_some());
    if !digits(seconds) || !digits(nanoseconds) || joints == 0 || !numeric || numbers != 3 * joints {
        return None;
    }
    let mut names = vec!["sec".to_owned(), "nanosec".to_owned(), "frame_id".to_owned()];
    names.extend((0..joints).map(|k| format!("name[{k}]")));
    for quantity in ["q", "dq", "tau"] {
        names.extend(rest[..joints].iter().map(|j| format!("{quantity}.{}", String::from_utf8_lossy(j))));
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_recognized() {
        use Separator::{Blanks, Byte};
        for (line, expected) in [
            ("t,q1,tau1", Byte(b',')),
            ("t, q1, tau1", Byte(b',')),
            ("t,\tq1", Byte(b',')),
            ("t;q1", Byte(b';')),
            ("0,01;1,5", Byte(b';')),
            ("t\tq1", Byte(b'\t')),
            ("t|q1|tau1", Byte(b'|')),
            ("0,01|1,5", Byte(b'|')),
            ("t,|v|", Byte(b',')),
            ("0,01\t1,5", Byte(b'\t')),
            ("  t   q1 tau1", Blanks),
            ("0,01 1,5", Blanks),
            ("0.01 1.5", Blanks),
            ("\"a;b\",c", Byte(b',')),
            ("Time [s],Joint 1", Byte(b',')),
        ] {
            assert_eq!(separator(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn echoed_states_name_their_joints() {
        let names = |line: &str| head(line.as_bytes(), None, None).unwrap();
        let echoed = names("1699,5000,world,a,b,0.1,0.2,1,2,-3,-4");
        assert_eq!(echoed.names[3..], ["name[0]", "name[1]", "q.a", "q.b", "dq.a", "dq.b", "tau.a", "tau.b"]);
        assert!(echoed.is_row && echoed.named);
        // Without velocities the meaning of these numbers is unknown.
        assert!(names("1699,5000,world,a,b,0.1,0.2,1,2").names[3] != "name[0]");
    }
}
