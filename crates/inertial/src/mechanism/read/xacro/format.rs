//! Text formatting with percent patterns.

use super::value::{Value, float};
use super::{Fault, Machine};

/// Maximum field width.
const WIDEST: usize = 1000;

/// Computes `pattern % values`, with `%d %i %s %f %e %g` and their flags, width and precision.
pub(super) fn percent(machine: &Machine<'_>, pattern: &str, values: &Value) -> Result<Value, Fault> {
    let single = std::slice::from_ref(values);
    let mut values = match values {
        Value::Tuple(values) => values.iter(),
        _ => single.iter(),
    };
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.find(|c: char| c.is_ascii_alphabetic() || c == '%');
        let end = end.ok_or_else(|| Fault::wrong("a pattern ends after %"))?;
        let (flags, kind) = (&rest[..end], &rest[end..=end]);
        rest = &rest[end + 1..];
        if kind == "%" {
            out.push('%');
            continue;
        }
        let value = values.next().ok_or_else(|| Fault::wrong("a pattern has more fields than values"))?;
        machine.spend_on(value)?;
        machine.spend(WIDEST as u64)?;
        out.push_str(&field(flags, kind, value)?);
    }
    if values.next().is_some() {
        return Err(Fault::wrong("a pattern has fewer fields than values"));
    }
    out.push_str(rest);
    Ok(Value::text(&out))
}

fn field(flags: &str, kind: &str, value: &Value) -> Result<String, Fault> {
    let unsupported = || Fault::unsupported(format!("the field %{flags}{kind}"));
    let size = flags.trim_start_matches(['0', '-', '+', ' ']);
    let marks = &flags[..flags.len() - size.len()];
    let (width, precision) = size.split_once('.').map_or((size, None), |(w, p)| (w, Some(p)));
    let length = |text: &str| match text {
        "" => Some(0),
        text => text.parse().ok().filter(|&n: &usize| n <= WIDEST),
    };
    let width = length(width).ok_or_else(unsupported)?;
    let precision = precision.map(|p| length(p).ok_or_else(unsupported)).transpose()?;
    let number = || value.number().ok_or_else(|| Fault::wrong(format!("%{kind} needs a number")));
    let body = match kind {
        "d" | "i" => match value.integer() {
            Some(x) => x.to_string(),
            None => format!("{:.0}", number()?.trunc()),
        },
        "f" => format!("{:.*}", precision.unwrap_or(6), number()?),
        "e" => {
            let text = format!("{:.*e}", precision.unwrap_or(6), number()?);
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let exponent: i32 = exponent.parse().unwrap_or(0);
            format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
        }
        "s" | "r" if precision.is_none() => match (kind, value) {
            ("s", Value::Float(x)) => float(*x),
            ("s", value) => value.to_string(),
            _ => return Err(unsupported()),
        },
        _ => return Err(unsupported()),
    };
    let is_number = kind != "s";
    let body = match marks {
        _ if is_number && marks.contains('+') && !body.starts_with('-') => format!("+{body}"),
        _ if is_number && marks.contains(' ') && !body.starts_with('-') => format!(" {body}"),
        _ => body,
    };
    let missing = width.saturating_sub(body.chars().count());
    Ok(if marks.contains('-') {
        body + &" ".repeat(missing)
    } else if is_number && marks.contains('0') {
        let signs = usize::from(body.starts_with(['-', '+', ' ']));
        format!("{}{}{}", &body[..signs], "0".repeat(missing), &body[signs..])
    } else {
        " ".repeat(missing) + &body
    })
}
