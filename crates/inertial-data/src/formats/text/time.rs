//! Dates and times of day in text: ISO 8601, and `01.05.2024 12:34:56,789`.

/// Returns the seconds of a date with time (since 1970, UTC if no zone is given) or of a time of day (since midnight).
pub(crate) fn seconds(cell: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(cell).ok().filter(|text| text.len() <= 40)?;
    match text.split_once(['T', ' ']) {
        Some((date, time)) => Some(86_400.0 * day(date)? + zoned(time.trim_start())?),
        None => clock(text),
    }
}

/// Returns the days from 1970-01-01 of `2024-05-01`, `2024/05/01` or `01.05.2024`.
fn day(text: &str) -> Option<f64> {
    let separator = ['-', '.'].into_iter().find(|&c| text.contains(c)).unwrap_or('/');
    let mut parts = text.split(separator).map(digits);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    // With points, the day comes first.
    let (year, day) = if separator == '.' && year <= 31 { (day, year) } else { (year, day) };
    if parts.next().is_some() || !(1583..=9999).contains(&year) {
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

/// Returns the seconds since midnight of `12:34:56.789`.
fn clock(text: &str) -> Option<f64> {
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
        ] {
            assert_eq!(seconds(text.as_bytes()), None, "{text}");
        }
    }
}
