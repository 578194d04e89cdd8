//! Names and functions that are available in every expression.

use std::f64::consts::{E, PI, TAU};

use super::super::xml::quoted;
use super::arithmetic::power;
use super::value::{Value, number};
use super::{Fault, Machine};

type Evaluated = Result<Value, Fault>;

/// Function of one number.
type Real = (&'static str, fn(f64) -> f64);

/// Functions of one number.
const REAL: [Real; 24] = [
    ("sin", f64::sin),
    ("cos", f64::cos),
    ("tan", f64::tan),
    ("asin", f64::asin),
    ("acos", f64::acos),
    ("atan", f64::atan),
    ("sinh", f64::sinh),
    ("cosh", f64::cosh),
    ("tanh", f64::tanh),
    ("asinh", f64::asinh),
    ("acosh", f64::acosh),
    ("atanh", f64::atanh),
    ("sqrt", f64::sqrt),
    ("cbrt", f64::cbrt),
    ("exp", f64::exp),
    ("expm1", f64::exp_m1),
    ("log2", f64::log2),
    ("log10", f64::log10),
    ("log1p", f64::ln_1p),
    ("fabs", f64::abs),
    // Same formulas as in Python.
    ("radians", |x| x * (PI / 180.0)),
    ("degrees", |x| x * (180.0 / PI)),
    ("erf", |x| libm::erf(x)),
    ("gamma", |x| libm::tgamma(x)),
];

/// Further functions of `math`.
const MATH: [&str; 15] = [
    "atan2", "hypot", "pow", "fmod", "copysign", "log", "floor", "ceil", "trunc", "isnan", "isinf",
    "isfinite", "dist", "prod", "fsum",
];

/// Functions available without a module.
const GLOBAL: [&str; 14] = [
    "list", "dict", "map", "len", "str", "float", "int", "bool", "min", "max", "round", "sorted", "range",
    "tuple",
];

/// Further functions of `python`.
const PYTHON: [&str; 9] = ["abs", "all", "any", "enumerate", "filter", "reversed", "sum", "zip", "divmod"];

/// Functions of `xacro`.
const XACRO: [&str; 10] = [
    "load_yaml",
    "abs_filename",
    "dotify",
    "arg",
    "tokenize",
    "message",
    "warning",
    "error",
    "fatal",
    "print_location",
];

fn constant(name: &str) -> Option<Value> {
    Some(Value::Float(match name {
        "pi" => PI,
        "e" => E,
        "tau" => TAU,
        "inf" => f64::INFINITY,
        "nan" => f64::NAN,
        _ => return None,
    }))
}

fn listed(name: &str, functions: &[&'static str]) -> Option<Value> {
    functions.iter().find(|own| **own == name).map(|own| Value::Function(own))
}

fn math(name: &str) -> Option<Value> {
    let real = REAL.iter().find(|(own, _)| *own == name).map(|(own, _)| Value::Function(own));
    real.or_else(|| listed(name, &MATH)).or_else(|| constant(name))
}

/// Returns the value of a name that needs no module.
pub(super) fn global(name: &str) -> Option<Value> {
    let module = ["math", "python", "xacro"].into_iter().find(|own| *own == name);
    module
        .map(Value::Module)
        .or_else(|| listed(name, &GLOBAL[..13]))
        .or_else(|| math(name))
        .or_else(|| listed(name, &XACRO[..3]))
}

/// Returns the value of a name in a module.
pub(super) fn member(module: &str, name: &str) -> Option<Value> {
    match module {
        "math" => math(name),
        "python" => listed(name, &GLOBAL).or_else(|| listed(name, &PYTHON)),
        _ => listed(name, &XACRO),
    }
}

/// Calls a function.
pub(super) fn call(
    machine: &Machine<'_>,
    name: &'static str,
    values: &[Value],
    named: &[(String, Value)],
) -> Evaluated {
    if !named.is_empty() && name != "dict" && !matches!(name, "message" | "warning" | "error") {
        return Err(Fault::unsupported(format!("{name}() with named arguments")));
    }
    if let Some((_, function)) = REAL.iter().find(|(own, _)| *own == name) {
        let [x] = numbers(name, values)?;
        let y = function(x);
        if y.is_nan() && !x.is_nan() || (y.is_infinite() && x.is_finite()) {
            return Err(Fault::wrong(format!("{name}({x}) is not defined")));
        }
        return Ok(Value::Float(y));
    }
    if XACRO.contains(&name) {
        return xacro(machine, name, values);
    }
    if MATH.contains(&name) {
        return several(name, values);
    }
    sequences(machine, name, values, named)
}

fn wrong_arguments(name: &str) -> Fault {
    Fault::wrong(format!("{name}() does not take these arguments"))
}

fn numbers<const N: usize>(name: &str, values: &[Value]) -> Result<[f64; N], Fault> {
    let all: Option<Vec<f64>> = values.iter().map(Value::number).collect();
    all.and_then(|all| all.try_into().ok()).ok_or_else(|| wrong_arguments(name))
}

/// Calls functions of several numbers, and those that return integers or booleans.
fn several(name: &'static str, values: &[Value]) -> Evaluated {
    let whole = |x: f64| {
        let fits = x.is_finite() && x.abs() < 9e18;
        if fits { Ok(Value::Int(x as i64)) } else { Err(Fault::wrong(format!("{x} is not an integer"))) }
    };
    let list = || {
        let entries = values.first().and_then(Value::entries).ok_or_else(|| wrong_arguments(name))?;
        entries
            .iter()
            .map(|v| v.number().ok_or_else(|| wrong_arguments(name)))
            .collect::<Result<Vec<f64>, Fault>>()
    };
    Ok(match name {
        "atan2" => {
            let [y, x] = numbers(name, values)?;
            Value::Float(y.atan2(x))
        }
        "hypot" => {
            let all: Option<Vec<f64>> = values.iter().map(Value::number).collect();
            let all = all.ok_or_else(|| wrong_arguments(name))?;
            Value::Float(all.into_iter().fold(0.0, f64::hypot))
        }
        "pow" => {
            let [x, y] = numbers(name, values)?;
            Value::Float(power(x, y)?)
        }
        "fmod" => {
            let [x, y] = numbers(name, values)?;
            Value::Float(x % y)
        }
        "copysign" => {
            let [x, y] = numbers(name, values)?;
            Value::Float(x.copysign(y))
        }
        "log" => {
            let (x, base) = match values.len() {
                2 => {
                    let [x, base] = numbers(name, values)?;
                    (x, Some(base))
                }
                _ => (numbers::<1>(name, values)?[0], None),
            };
            if !(x > 0.0) || base.is_some_and(|base| !(base > 0.0) || base == 1.0) {
                return Err(Fault::wrong(format!("log({x}) is not defined")));
            }
            Value::Float(base.map_or(x.ln(), |base| x.ln() / base.ln()))
        }
        "floor" => whole(numbers::<1>(name, values)?[0].floor())?,
        "ceil" => whole(numbers::<1>(name, values)?[0].ceil())?,
        "trunc" => whole(numbers::<1>(name, values)?[0].trunc())?,
        "isnan" => Value::Bool(numbers::<1>(name, values)?[0].is_nan()),
        "isinf" => Value::Bool(numbers::<1>(name, values)?[0].is_infinite()),
        "isfinite" => Value::Bool(numbers::<1>(name, values)?[0].is_finite()),
        "prod" => Value::Float(list()?.iter().product()),
        "fsum" => Value::Float(list()?.iter().sum()),
        _ => return Err(Fault::unsupported(format!("{name}()"))),
    })
}

/// Calls the non-mathematical functions of Python.
fn sequences(
    machine: &Machine<'_>,
    name: &'static str,
    values: &[Value],
    named: &[(String, Value)],
) -> Evaluated {
    let wrong = || wrong_arguments(name);
    let one = || if let [value] = values { Ok(value) } else { Err(wrong()) };
    let entries = || machine.sequence(one()?);
    let all = || {
        if let [value] = values {
            machine.sequence(value).map(|all| all.to_vec())
        } else {
            Ok(values.to_vec())
        }
    };
    Ok(match name {
        "len" => Value::count(match one()? {
            Value::Text(text) => text.chars().count(),
            other => machine.sequence(other)?.len(),
        }),
        "str" => {
            let value = one()?;
            machine.spend_on(value)?;
            Value::text(&value.to_string())
        }
        "float" => match one()? {
            Value::Text(text) => number(text.trim())
                .and_then(|x| x.number())
                .map(Value::Float)
                .ok_or_else(|| Fault::wrong(format!("{} is not a number", quoted(text))))?,
            other => Value::Float(other.number().ok_or_else(wrong)?),
        },
        "int" => match one()? {
            Value::Text(text) => text
                .trim()
                .parse()
                .map(Value::Int)
                .map_err(|_| Fault::wrong(format!("{} is not an integer", quoted(text))))?,
            Value::Float(x) if x.is_finite() && x.abs() < 9e18 => Value::Int(*x as i64),
            other => Value::Int(other.integer().ok_or_else(wrong)?),
        },
        "bool" => Value::Bool(one()?.truth()),
        "abs" => match one()? {
            Value::Float(x) => Value::Float(x.abs()),
            other => Value::Int(other.integer().and_then(i64::checked_abs).ok_or_else(wrong)?),
        },
        "round" => round(values)?,
        "min" | "max" => {
            let all = all()?;
            let mut best = all.first().ok_or_else(wrong)?;
            for value in &all[1..] {
                let wanted =
                    if name == "min" { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater };
                if machine.order(value, best)? == Some(wanted) {
                    best = value;
                }
            }
            best.clone()
        }
        "list" if values.is_empty() => Value::List([].into()),
        "list" => Value::List(entries()?),
        "tuple" => Value::Tuple(entries()?),
        "all" => Value::Bool(entries()?.iter().all(Value::truth)),
        "any" => Value::Bool(entries()?.iter().any(Value::truth)),
        "sum" => entries()?.iter().try_fold(Value::Int(0), |sum, x| machine.binary("+", &sum, x))?,
        "reversed" => Value::List(entries()?.iter().rev().cloned().collect()),
        "enumerate" => {
            let pair = |(k, entry): (usize, &Value)| Value::Tuple([Value::count(k), entry.clone()].into());
            Value::List(entries()?.iter().enumerate().map(pair).collect())
        }
        "zip" => {
            let all: Vec<_> = values.iter().map(|v| machine.sequence(v)).collect::<Result<_, Fault>>()?;
            let length = all.iter().map(|entries| entries.len()).min().unwrap_or(0);
            machine.spend(20 * (length * all.len()) as u64)?;
            let row = |k: usize| Value::Tuple(all.iter().map(|entries| entries[k].clone()).collect());
            Value::List((0..length).map(row).collect())
        }
        "sorted" => {
            let mut all = entries()?.to_vec();
            machine.spend(100 * all.len() as u64)?;
            let mut fault = None;
            all.sort_by(|a, b| match machine.order(a, b) {
                Ok(order) => order.unwrap_or(std::cmp::Ordering::Equal),
                Err(e) => {
                    fault = Some(e);
                    std::cmp::Ordering::Equal
                }
            });
            if let Some(fault) = fault {
                return Err(fault);
            }
            Value::List(all.into())
        }
        "range" => range(machine, values)?,
        "map" | "filter" => {
            let [Value::Function(function), over] = values else { return Err(wrong()) };
            let mut out = Vec::new();
            for entry in machine.sequence(over)?.iter() {
                machine.spend(10)?;
                let _level = machine.deeper()?;
                let result = call(machine, function, std::slice::from_ref(entry), &[])?;
                match name {
                    "map" => out.push(result),
                    _ if result.truth() => out.push(entry.clone()),
                    _ => {}
                }
            }
            Value::List(out.into())
        }
        "dict" => {
            let mut pairs = Vec::new();
            match values {
                [] => {}
                [Value::Dict(own)] => pairs.extend(own.iter().cloned()),
                [list] => {
                    for entry in machine.sequence(list)?.iter() {
                        let Some([key, value]) = entry.entries() else { return Err(wrong()) };
                        pairs.push((key.clone(), value.clone()));
                    }
                }
                _ => return Err(wrong()),
            }
            pairs.extend(named.iter().map(|(name, value)| (Value::text(name), value.clone())));
            machine.dict_of(pairs)?
        }
        _ => return Err(Fault::unsupported(format!("{name}()"))),
    })
}

fn range(machine: &Machine<'_>, values: &[Value]) -> Evaluated {
    let wrong = || wrong_arguments("range");
    let bounds: Vec<i64> = values.iter().map(Value::integer).collect::<Option<_>>().ok_or_else(wrong)?;
    let (from, to, step) = match bounds[..] {
        [to] => (0, to, 1),
        [from, to] => (from, to, 1),
        [from, to, step] if step != 0 => (from, to, step),
        _ => return Err(wrong()),
    };
    let (mut out, mut at) = (Vec::new(), from);
    while (step > 0 && at < to) || (step < 0 && at > to) {
        machine.spend(20)?;
        out.push(Value::Int(at));
        at = at.saturating_add(step);
    }
    Ok(Value::List(out.into()))
}

fn round(values: &[Value]) -> Evaluated {
    let wrong = || wrong_arguments("round");
    let (value, digits) = match values {
        [value] => (value, None),
        [value, digits] => (value, Some(digits.integer().ok_or_else(wrong)?)),
        _ => return Err(wrong()),
    };
    match (value, digits) {
        (Value::Float(x), None) if x.is_finite() && x.abs() < 9e18 => {
            Ok(Value::Int(x.round_ties_even() as i64))
        }
        (Value::Float(x), Some(digits @ 0..=300)) => {
            // The decimal representation is exact, so this rounds the number itself and not its product with a power of ten.
            format!("{x:.*}", digits as usize).parse().map(Value::Float).map_err(|_| wrong())
        }
        (value, None | Some(0..)) if value.integer().is_some() => {
            Ok(Value::Int(value.integer().unwrap_or(0)))
        }
        _ => Err(wrong()),
    }
}

fn xacro(machine: &Machine<'_>, name: &'static str, values: &[Value]) -> Evaluated {
    let wrong = || wrong_arguments(name);
    let text = || match values {
        [Value::Text(text), ..] => Ok(&**text),
        _ => Err(wrong()),
    };
    match name {
        "load_yaml" => machine.load_yaml(text()?),
        "abs_filename" => Ok(Value::text(&machine.resolve_path(text()?))),
        "dotify" => match values {
            [value @ Value::Dict(_)] => Ok(value.clone()),
            _ => Err(wrong()),
        },
        "arg" => machine.argument(text()?).map(|value| Value::text(&value)),
        "tokenize" => {
            let text = text()?;
            machine.spend(20 * text.len() as u64)?;
            let separators: String = match values {
                [_] => ",; ".to_owned(),
                [_, Value::Text(own)] => own.to_string(),
                _ => return Err(wrong()),
            };
            let pieces = text.split(|c: char| separators.contains(c)).filter(|piece| !piece.is_empty());
            Ok(Value::List(pieces.map(Value::text).collect()))
        }
        "fatal" => Err(Fault::wrong(format!(
            "the file stops its expansion with fatal(): {}",
            words(machine, values)?
        ))),
        "warning" | "error" => {
            machine.warn(words(machine, values)?);
            Ok(Value::text(""))
        }
        _ => Ok(Value::text("")),
    }
}

/// Joins values in one line.
fn words(machine: &Machine<'_>, values: &[Value]) -> Result<String, Fault> {
    values.iter().try_for_each(|value| machine.spend_on(value))?;
    let words: Vec<String> = values.iter().map(Value::to_string).collect();
    Ok(words.join(" "))
}
