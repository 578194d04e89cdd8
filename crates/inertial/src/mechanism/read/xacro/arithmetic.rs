//! Arithmetic operators with Python's semantics.

use super::super::xml::quoted;
use super::Fault;
use super::value::Value;

type Evaluated = Result<Value, Fault>;

/// Applies a sign to a value.
pub(super) fn unary(sign: char, inside: &Value) -> Evaluated {
    let wrong = || Fault::wrong(format!("the sign {sign} before a value of type {}", inside.kind()));
    Ok(match (sign, inside) {
        ('!', inside) => Value::Bool(!inside.truth()),
        ('-', Value::Float(x)) => Value::Float(-x),
        ('+', Value::Float(x)) => Value::Float(*x),
        (sign, inside) => {
            let x = inside.integer().ok_or_else(wrong)?;
            Value::Int(match sign {
                '-' => x.checked_neg().ok_or_else(overflow)?,
                '~' => !x,
                _ => x,
            })
        }
    })
}

fn overflow() -> Fault {
    Fault::unsupported("an integer of more than 64 bits")
}

/// Applies an operator to two numbers.
pub(super) fn arithmetic(sign: &'static str, left: &Value, right: &Value) -> Evaluated {
    let wrong = || {
        let hint = match (left, right) {
            (Value::Text(text), _) | (_, Value::Text(text)) => format!(" ({} is a text)", quoted(text)),
            _ => String::new(),
        };
        Fault::wrong(format!("\"{sign}\" between values of types {} and {}{hint}", left.kind(), right.kind()))
    };
    if let (Some(a), Some(b)) = (left.integer(), right.integer()) {
        return integers(sign, a, b);
    }
    let (a, b) = (left.number().ok_or_else(wrong)?, right.number().ok_or_else(wrong)?);
    let divisor = || if b == 0.0 { Err(Fault::wrong("division by zero")) } else { Ok(b) };
    Ok(Value::Float(match sign {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / divisor()?,
        "//" => (a / divisor()?).floor(),
        "%" => remainder(a, divisor()?),
        "**" => power(a, b)?,
        _ => return Err(wrong()),
    }))
}

/// Returns the remainder with the sign of the divisor.
fn remainder(a: f64, b: f64) -> f64 {
    let r = a % b;
    if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r }
}

/// Computes a power of real numbers; a result that is not real is an error.
pub(super) fn power(a: f64, b: f64) -> Result<f64, Fault> {
    if a == 0.0 && b < 0.0 {
        return Err(Fault::wrong("zero to a negative power"));
    }
    if a < 0.0 && b.fract() != 0.0 && b.is_finite() {
        return Err(Fault::unsupported("a complex number"));
    }
    Ok(a.powf(b))
}

fn integers(sign: &'static str, a: i64, b: i64) -> Evaluated {
    let whole = match sign {
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "/" | "//" | "%" if b == 0 => return Err(Fault::wrong("division by zero")),
        "/" => return Ok(Value::Float(a as f64 / b as f64)),
        "//" => a
            .checked_div_euclid(b)
            .and_then(|q| if b < 0 && a.rem_euclid(b) != 0 { q.checked_sub(1) } else { Some(q) }),
        "%" => a.checked_rem_euclid(b).map(|r| if b < 0 && r != 0 { r + b } else { r }),
        "**" if b < 0 => return power(a as f64, b as f64).map(Value::Float),
        "**" => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
        "<<" => u32::try_from(b).ok().and_then(|b| 1_i64.checked_shl(b)).and_then(|f| a.checked_mul(f)),
        ">>" => u32::try_from(b).ok().map(|b| a >> b.min(63)),
        "&" => Some(a & b),
        "|" => Some(a | b),
        _ => Some(a ^ b),
    };
    whole.map(Value::Int).ok_or_else(overflow)
}
