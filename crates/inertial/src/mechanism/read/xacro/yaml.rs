//! YAML files as values, with the types of YAML 1.1 as in Python's reader.

use std::rc::Rc;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::value::{Scope, Value};
use super::{Fault, Machine};

/// Maximum nesting of lists and dictionaries.
const MOST_LEVELS: usize = 100;

/// Units that may precede numbers.
const UNITS: [(&str, f64); 6] = [
    ("radians", 1.0),
    ("degrees", std::f64::consts::PI / 180.0),
    ("meters", 1.0),
    ("millimeters", 0.001),
    ("foot", 0.3048),
    ("inches", 0.0254),
];

/// List or dictionary being read.
struct Open {
    entries: Vec<Value>,
    is_dict: bool,
    anchor: usize,
}

/// Reads the first document of a text.
pub(super) fn read(machine: &Machine<'_>, text: &str) -> Result<Value, Fault> {
    let mut open: Vec<Open> = Vec::new();
    // Values of anchors are shared: a file of nested references needs no more memory than its text.
    let mut anchors: Vec<(usize, Value)> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|e| Fault::wrong(format!("not well-formed YAML: {e}")))?;
        machine.spend(100)?;
        let line = |fault: Fault| Fault {
            message: format!("line {}: {}", span.start.line(), fault.message),
            ..fault
        };
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (scalar(machine, &text, style, tag.as_deref()).map_err(line)?, anchor)
            }
            Event::Alias(anchor) => {
                machine.spend(anchors.len() as u64)?;
                let found = anchors.iter().rev().find(|(own, _)| *own == anchor);
                (
                    found
                        .map(|(_, value)| value.clone())
                        .ok_or_else(|| line(Fault::wrong("an unknown anchor")))?,
                    0,
                )
            }
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                if open.len() >= MOST_LEVELS {
                    return Err(line(Fault::wrong(format!("more than {MOST_LEVELS} levels"))));
                }
                let is_dict = matches!(event, Event::MappingStart(..));
                open.push(Open { entries: Vec::new(), is_dict, anchor });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open { entries, is_dict: false, anchor }) => (Value::List(entries.into()), anchor),
                Some(Open { entries, anchor, .. }) => (dict(machine, entries).map_err(line)?, anchor),
                None => continue,
            },
            Event::DocumentEnd => break,
            _ => continue,
        };
        if anchor > 0 {
            anchors.push((anchor, value.clone()));
        }
        match open.last_mut() {
            Some(open) => open.entries.push(value),
            None => return Ok(value),
        }
    }
    Ok(Value::None)
}

fn dict(machine: &Machine<'_>, entries: Vec<Value>) -> Result<Value, Fault> {
    let mut pairs = Vec::with_capacity(entries.len() / 2);
    let mut merged = Vec::new();
    let mut entries = entries.into_iter();
    while let (Some(key), Some(value)) = (entries.next(), entries.next()) {
        match (&key, &value) {
            (Value::Text(key), Value::Dict(more)) if **key == *"<<" => merged.extend(more.iter().cloned()),
            _ => pairs.push((key, value)),
        }
    }
    merged.extend(pairs);
    machine.dict_of(merged)
}

fn scalar(machine: &Machine<'_>, text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, Fault> {
    machine.spend(text.len() as u64)?;
    match tag {
        Some(tag) if tag.handle == "!" => {
            let unit = UNITS.iter().find(|(name, _)| *name == tag.suffix);
            let (_, factor) = unit.ok_or_else(|| Fault::unsupported(format!("the tag !{}", tag.suffix)))?;
            let value = machine.computed(text, &Rc::new(Scope::default()))?;
            let number = match &value {
                Value::Text(text) => text.trim().parse().ok(),
                other => other.number(),
            };
            number
                .map(|x| Value::Float(x * factor))
                .ok_or_else(|| Fault::wrong(format!("\"{text}\" is not a number")))
        }
        Some(tag) => match tag.suffix.as_str() {
            "str" => Ok(Value::text(text)),
            "float" => {
                let number = text.parse().ok();
                number.map(Value::Float).ok_or_else(|| Fault::wrong(format!("\"{text}\" is not a number")))
            }
            _ => Ok(plain(text)),
        },
        None if style == ScalarStyle::Plain => Ok(plain(text)),
        None => Ok(Value::text(text)),
    }
}

/// Converts a scalar without quotes.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::None,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Value::Bool(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Value::Bool(false);
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Value::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Value::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Value::Float(f64::NAN),
        _ => {}
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text).replace('_', "");
    let negative = text.starts_with('-');
    let integer = |digits: &str, radix: u32| {
        let value = i64::from_str_radix(digits, radix).ok()?;
        Some(Value::Int(if negative { -value } else { value }))
    };
    let all =
        |digits: &str, allowed: fn(&u8) -> bool| !digits.is_empty() && digits.bytes().all(|b| allowed(&b));
    let found = if let Some(hex) = digits.strip_prefix("0x").filter(|d| all(d, u8::is_ascii_hexdigit)) {
        integer(hex, 16)
    } else if let Some(bits) = digits.strip_prefix("0b").filter(|d| all(d, |b| matches!(b, b'0' | b'1'))) {
        integer(bits, 2)
    } else if all(&digits, u8::is_ascii_digit) {
        match digits.strip_prefix('0').filter(|d| all(d, |b| matches!(b, b'0'..=b'7'))) {
            Some(octal) => integer(octal, 8),
            None if digits.len() > 1 && digits.starts_with('0') => None,
            None => integer(&digits, 10),
        }
    } else {
        // Python's reader accepts no sign before a decimal point.
        let is_signed_point = digits.starts_with('.') && text.starts_with(['+', '-']);
        float(&digits).filter(|_| !is_signed_point).map(|x| Value::Float(if negative { -x } else { x }))
    };
    found.unwrap_or_else(|| Value::text(text))
}

/// Parses a number with a decimal point; an exponent needs a sign.
fn float(digits: &str) -> Option<f64> {
    let (mantissa, exponent) = match digits.find(['e', 'E']) {
        Some(at) => (&digits[..at], Some(&digits[at + 1..])),
        None => (digits, None),
    };
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (before, after) = mantissa.split_once('.')?;
    let exponent_fits =
        exponent.is_none_or(|e| e.strip_prefix(['+', '-']).is_some_and(|e| !e.is_empty() && is_digits(e)));
    let has_digits = !before.is_empty() || !after.is_empty();
    (is_digits(before) && is_digits(after) && has_digits && exponent_fits)
        .then(|| digits.parse().ok())
        .flatten()
}
