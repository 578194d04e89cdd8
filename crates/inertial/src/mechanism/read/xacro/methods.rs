//! Methods of texts, lists and dictionaries.

use std::rc::Rc;

use super::value::Value;
use super::{Fault, Machine};

type Evaluated = Result<Value, Fault>;

/// Calls a method.
pub(super) fn call(machine: &Machine<'_>, of: &Value, name: &str, values: &[Value]) -> Evaluated {
    if let Value::Text(text) = of {
        machine.spend(text.len() as u64)?;
    }
    match of {
        Value::Text(text) => of_text(machine, text, name, values),
        Value::Dict(pairs) => of_dict(machine, pairs, name, values),
        other => {
            let entries = other.entries().unwrap_or_default();
            match (name, values) {
                ("index", [wanted]) => machine
                    .position(entries.iter(), wanted)?
                    .map(Value::count)
                    .ok_or_else(|| Fault::wrong("the list has no such entry")),
                _ => Err(unsupported(name, other)),
            }
        }
    }
}

fn unsupported(name: &str, of: &Value) -> Fault {
    Fault::unsupported(format!("the method {name}() of a value of type {}", of.kind()))
}

fn of_text(machine: &Machine<'_>, text: &Rc<str>, name: &str, values: &[Value]) -> Evaluated {
    let texts: Vec<&str> = values
        .iter()
        .filter_map(|value| if let Value::Text(text) = value { Some(&**text) } else { None })
        .collect();
    let plain = texts.len() == values.len();
    let pieces = |pieces: &mut dyn Iterator<Item = &str>| Ok(Value::List(pieces.map(Value::text).collect()));
    let place = |at: Option<usize>| at.map_or(Value::Int(-1), |at| Value::count(text[..at].chars().count()));
    match (name, &texts[..]) {
        ("upper", []) if plain => Ok(Value::text(&text.to_uppercase())),
        ("lower", []) if plain => Ok(Value::text(&text.to_lowercase())),
        ("capitalize", []) if plain => {
            let mut letters = text.chars();
            let first: String = letters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
            Ok(Value::text(&(first + &letters.as_str().to_lowercase())))
        }
        ("strip", []) if plain => Ok(Value::text(text.trim())),
        ("lstrip", []) if plain => Ok(Value::text(text.trim_start())),
        ("rstrip", []) if plain => Ok(Value::text(text.trim_end())),
        ("strip", [letters]) if plain => Ok(Value::text(text.trim_matches(|c| letters.contains(c)))),
        ("lstrip", [letters]) if plain => Ok(Value::text(text.trim_start_matches(|c| letters.contains(c)))),
        ("rstrip", [letters]) if plain => Ok(Value::text(text.trim_end_matches(|c| letters.contains(c)))),
        ("split", []) if plain => {
            machine.spend(10 * text.len() as u64)?;
            pieces(&mut text.split_whitespace())
        }
        ("split", [separator]) if plain && !separator.is_empty() => {
            machine.spend(10 * text.len() as u64)?;
            pieces(&mut text.split(separator))
        }
        ("replace", [from, to]) if plain => {
            machine.spend((text.len() as u64 + 1) * (to.len() as u64 + 1))?;
            Ok(Value::text(&text.replace(from, to)))
        }
        ("startswith", [part]) if plain => Ok(Value::Bool(text.starts_with(part))),
        ("endswith", [part]) if plain => Ok(Value::Bool(text.ends_with(part))),
        ("find", [part]) if plain => Ok(place(text.find(part))),
        ("rfind", [part]) if plain => Ok(place(text.rfind(part))),
        ("count", [part]) if plain && !part.is_empty() => Ok(Value::count(text.matches(part).count())),
        ("isdigit", []) if plain => {
            Ok(Value::Bool(!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())))
        }
        ("zfill", []) if values.len() == 1 => {
            let width = values[0].integer().unwrap_or(0).clamp(0, 1000) as usize;
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['+', '-'])));
            let missing = width.saturating_sub(text.chars().count());
            Ok(Value::text(&format!("{sign}{}{digits}", "0".repeat(missing))))
        }
        ("join", []) if values.len() == 1 => {
            let entries = machine.sequence(&values[0])?;
            let mut out = String::new();
            for (k, entry) in entries.iter().enumerate() {
                let Value::Text(entry) = entry else {
                    return Err(Fault::wrong("join() takes texts"));
                };
                machine.spend((entry.len() + text.len()) as u64)?;
                if k > 0 {
                    out.push_str(text);
                }
                out.push_str(entry);
            }
            Ok(Value::text(&out))
        }
        _ => Err(unsupported(name, &Value::Text(text.clone()))),
    }
}

fn of_dict(machine: &Machine<'_>, pairs: &Rc<[(Value, Value)]>, name: &str, values: &[Value]) -> Evaluated {
    let find = |wanted: &Value| {
        let place = machine.position(pairs.iter().map(|(key, _)| key), wanted)?;
        Ok(place.map(|place| pairs[place].1.clone()))
    };
    match (name, values) {
        ("keys", []) => Ok(Value::List(pairs.iter().map(|(key, _)| key.clone()).collect())),
        ("values", []) => Ok(Value::List(pairs.iter().map(|(_, value)| value.clone()).collect())),
        ("items", []) => {
            let pair = |(key, value): &(Value, Value)| Value::Tuple([key.clone(), value.clone()].into());
            Ok(Value::List(pairs.iter().map(pair).collect()))
        }
        ("get", [key]) => Ok(find(key)?.unwrap_or(Value::None)),
        ("get", [key, other]) => Ok(find(key)?.unwrap_or_else(|| other.clone())),
        _ => Err(unsupported(name, &Value::Dict(pairs.clone()))),
    }
}
