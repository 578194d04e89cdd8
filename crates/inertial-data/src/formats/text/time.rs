//! Dates and times of day in text: ISO 8601, `01.05.2024 12:34:56,789`, `11/14/2023 10:13:20 PM`, and durations of pandas.

/// Returns the seconds of a date with time (since 1970, UTC if no zone is given) or of a time of day (since midnight).
pub(crate) fn seconds(cell: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(cell).ok().filter(|text| text.len() <= 40)?;
    if let Some((days, time)) = text.split_once(" days ") {
        return duration(days, time);
    }
    match text.split_once(['T', ' ']) {
        Some((date, time)) => {
            let is_american = time.ends_with(['M', 'm']);
            Some(86_400.0 * day(date, is_american)? + zoned(time.trim_start())?)
        }
        None => clock(text),
    }
}

/// Returns the seconds of a duration of pandas: `0 days 00:00:00.002`, `-1 days +23:59:59`.
fn duration(days: &str, time: &str) -> Option<f64> {
    let (sign, count) = days.strip_prefix('-').map_or((1.0, days), |count| (-1.0, count));
    Some(86_400.0 * sign * digits(count)? as f64 + clock(time.strip_prefix('+').unwrap_or(time))?)
}

/// Returns the days from 1970-01-01 of `2024-05-01`, `2024/05/01`, `20240501`, `01.05.2024`, or `12/31/2024` if the order is clear:
/// American times end with AM or PM, and a number above 12 is a day.
fn day(text: &str, is_american: bool) -> Option<f64> {
    if text.len() == 8 && text.bytes().all(|b| b.is_ascii_digit()) {
        return calendar_day(digits(&text[..4])?, digits(&text[4..6])?, digits(&text[6..])?);
    }
    let separator = ['-', '.'].into_iter().find(|&c| text.contains(c)).unwrap_or('/');
    let mut parts = text.split(separator).map(digits);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    // With points, the day comes first.
    if parts.next().is_some() {
        return None;
    }
    match separator {
        '.' if year <= 31 => calendar_day(day, month, year),
        '/' if year <= 31 && is_american => calendar_day(day, year, month),
        '/' if year <= 31 && (year > 12) != (month > 12) => {
            calendar_day(day, year.min(month), year.max(month))
        }
        _ => calendar_day(year, month, day),
    }
}

/// Returns the days from 1970-01-01 of a date.
fn calendar_day(year: i64, month: i64, day: i64) -> Option<f64> {
    if !(1583..=9999).contains(&year) {
        return None;
    }
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let lengths = [31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = lengths.get(usize::try_from(month).ok()?.checked_sub(1)?)?;
    if !(1..=*length).contains(&day) {
        return None;
    }
    let years = year - 1;
    let before: i64 = lengths.iter().take(month as usize - 1).sum();
    // Days of all previous years minus those before 1970.
    let days = 365 * years + years / 4 - years / 100 + years / 400 - 719_162;
    Some((days + before + day - 1) as f64)
}

/// Parses a time of day with an optional offset from UTC: `12:00:00.5Z`, `12:00:00+02:00`.
fn zoned(text: &str) -> Option<f64> {
    for (mark, start) in [("AM", 0.0), ("PM", 43_200.0), ("am", 0.0), ("pm", 43_200.0)] {
        if let Some(text) = text.strip_suffix(mark).map(str::trim_end) {
            // Noon and midnight are called 12.
            let seconds = clock(text).filter(|seconds| (3600.0..46_800.0).contains(seconds))?;
            return Some(seconds % 43_200.0 + start);
        }
    }
    if let Some(text) = text.strip_suffix(['Z', 'z']) {
        return clock(text);
    }
    let Some(at) = text.rfind(['+', '-']) else { return clock(text) };
    let (time, zone) = (&text[..at], &text[at + 1..]);
    let (hours, minutes) = zone.split_once(':').or_else(|| zone.split_at_checked(2))?;
    let minutes = if minutes.is_empty() { 0 } else { digits(minutes)? };
    let offset = (60 * digits(hours)? + minutes) as f64 * 60.0;
    Some(clock(time)? - if text[at..].starts_with('-') { -offset } else { offset })
}

/// Returns the seconds since midnight of `12:34:56.789` or `123456.789`.
fn clock(text: &str) -> Option<f64> {
    let integer_part = text.split(['.', ',']).next().unwrap_or_default();
    if integer_part.len() == 6 && integer_part.bytes().all(|b| b.is_ascii_digit()) {
        return clock(&format!("{}:{}:{}", &text[..2], &text[2..4], &text[4..]));
    }
    let mut parts = text.splitn(3, ':');
    let (hours, minutes, rest) = (digits(parts.next()?)?, digits(parts.next()?)?, parts.next()?);
    let valid = rest.starts_with(|c: char| c.is_ascii_digit()) && hours < 24 && minutes < 60;
    let seconds: f64 = rest.replace(',', ".").parse().ok().filter(|s| valid && (0.0..61.0).contains(s))?;
    Some((3600 * hours + 60 * minutes) as f64 + seconds)
}

fn digits(text: &str) -> Option<i64> {
    let plain = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn dates_are_seconds_since_1970() {
        // Reference values of `date -u -d … +%s`.
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0.0),
            ("2024-02-29 12:30:15.25", 1_709_209_815.25),
            ("2024/02/29T12:30:15Z", 1_709_209_815.0),
            ("2024-02-29T14:30:15+02:00", 1_709_209_815.0),
            ("2024-02-29T07:30:15-0500", 1_709_209_815.0),
            ("1999-12-31T23:59:59Z", 946_684_799.0),
            ("29.02.2024 12:30:15,25", 1_709_209_815.25),
            ("29.2.2024 12:30:15.25", 1_709_209_815.25),
            ("2024.02.29 12:30:15", 1_709_209_815.0),
            ("01:00:00.5", 3600.5),
            ("20231114T221320.5Z", 1_700_000_000.5),
            ("20231114T221320Z", 1_700_000_000.0),
            ("20231115T001320+0200", 1_700_000_000.0),
            ("11/14/2023 10:13:20 PM", 1_700_000_000.0),
            ("11/14/2023 22:13:20", 1_700_000_000.0),
            ("14/11/2023 22:13:20", 1_700_000_000.0),
            ("3/4/2024 12:00:00 AM", 1_709_510_400.0),
            ("3/4/2024 12:00:01 pm", 1_709_553_601.0),
            ("0 days 00:00:00.002000", 0.002),
            ("-1 days +23:59:59.500", -0.5),
            ("2 days 00:00:01", 172_801.0),
        ] {
            assert_eq!(seconds(text.as_bytes()), Some(expected), "{text}");
        }
        for text in [
            "",
            "1.5",
            "2024-02-30T00:00:00",
            "2023-02-29T00:00:00",
            "24:00:00",
            "30.02.2024 00:00:00",
            "29.02.24 00:00:00",
            "a:b:c",
            "1:2",
            "T",
            "12:00:-1",
            // The fourth of March, or the third of April.
            "3/4/2024 12:00:00",
            "13/13/2024 12:00:00",
            "11/14/2023 13:00:00 PM",
            "11/14/2023 0:00:00 AM",
            "20231314T221320Z",
            "20231114T251320Z",
            "äää",
            "x days 00:00:00",
        ] {
            assert_eq!(seconds(text.as_bytes()), None, "{text}");
        }
    }
}
