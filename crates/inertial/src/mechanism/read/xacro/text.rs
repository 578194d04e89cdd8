//! Texts with expressions `${…}` and substitutions `$(…)`.

use std::rc::Rc;

use super::super::xml::quoted;
use super::value::{Entry, Scope, Value, number};
use super::{Fault, Machine, syntax};

/// Piece of a text.
enum Piece<'t> {
    Plain(&'t str),
    Expression(&'t str),
    Substitution(&'t str),
}

/// Returns the first piece of a nonempty text, and its length.
fn piece(text: &str) -> Result<(Piece<'_>, usize), Fault> {
    let Some(inside) = text.strip_prefix('$') else {
        let length = text.find('$').unwrap_or(text.len());
        return Ok((Piece::Plain(&text[..length]), length));
    };
    let dollars = inside.len() - inside.trim_start_matches('$').len();
    let after = &inside[dollars..];
    let unclosed = || Fault::wrong(format!("{} is not closed", quoted(text)));
    if dollars > 0 {
        // A doubled dollar sign is an escaped one.
        return if after.starts_with(['{', '(']) {
            Ok((Piece::Plain(&text[1..dollars + 2]), dollars + 2))
        } else {
            Err(Fault::wrong(format!("{} has a $ that starts no expression", quoted(text))))
        };
    }
    if let Some(inside) = after.strip_prefix('{') {
        let length = inside.find('}').ok_or_else(unclosed)?;
        return Ok((Piece::Expression(&inside[..length]), length + 3));
    }
    if let Some(inside) = after.strip_prefix('(') {
        let length = inside.find(')').ok_or_else(unclosed)?;
        return Ok((Piece::Substitution(&inside[..length]), length + 3));
    }
    let length = 1 + after.find(['{', '(', '$']).unwrap_or(after.len());
    Ok((Piece::Plain(&text[..length]), length))
}

impl Machine<'_> {
    /// Evaluates a text: the result is the value of a single expression, otherwise a text.
    pub(super) fn text(&self, text: &str, scope: &Rc<Scope>) -> Result<Value, Fault> {
        self.spend(text.len() as u64 + 5)?;
        let (mut rest, mut out, mut single, mut count) = (text, String::new(), None, 0);
        while !rest.is_empty() {
            let (piece, length) = piece(rest)?;
            rest = &rest[length..];
            count += 1;
            let value = match piece {
                Piece::Plain(text) => Value::text(text),
                Piece::Expression(inside) => self.expression(inside, scope)?,
                Piece::Substitution(inside) => {
                    let inside = self.text(inside, scope)?.to_string();
                    Value::text(&self.substitution(&inside)?)
                }
            };
            if count == 1 && rest.is_empty() {
                single = Some(value);
            } else {
                self.spend_on(&value)?;
                out.push_str(&value.to_string());
            }
        }
        Ok(single.unwrap_or_else(|| Value::text(&out)))
    }

    fn expression(&self, inside: &str, scope: &Rc<Scope>) -> Result<Value, Fault> {
        let text =
            if inside.contains('$') { self.text(inside, scope)?.to_string() } else { inside.to_owned() };
        self.computed(&text, scope)
    }

    /// Evaluates the text of an expression.
    pub(super) fn computed(&self, text: &str, scope: &Rc<Scope>) -> Result<Value, Fault> {
        self.spend(5 * text.len() as u64)?;
        let value = syntax::parse(text).and_then(|node| self.evaluate(&node, scope));
        value.map_err(|fault| {
            // An error in a definition used by this expression already contains an expression.
            if fault.message.starts_with("expression ") {
                return fault;
            }
            Fault { message: format!("expression {}: {}", quoted(text.trim()), fault.message), ..fault }
        })
    }

    /// Returns the text of the substitution `$(inside)`.
    fn substitution(&self, inside: &str) -> Result<String, Fault> {
        let words: Vec<&str> = inside.split(' ').filter(|word| !word.is_empty()).collect();
        match words[..] {
            ["cwd"] => {
                self.files.folder().ok_or_else(|| Fault::wrong("$(cwd): there is no working directory"))
            }
            ["eval", ..] => {
                let value = self.computed(
                    inside.trim_start().strip_prefix("eval").unwrap_or(inside),
                    &self.arguments_as_names(),
                )?;
                self.spend_on(&value)?;
                Ok(value.to_string())
            }
            ["arg", name] => self.argument(name),
            ["find", package] => self.files.package(package).map_err(Fault::wrong),
            ["env", name] => {
                let missing = || Fault::wrong(format!("the environment variable {name} is not set"));
                self.files.variable(name).ok_or_else(missing)
            }
            ["optenv", name, ..] => Ok(self.files.variable(name).unwrap_or_else(|| words[2..].join(" "))),
            _ => Err(Fault::wrong(format!(
                "$(…) with {}: expected arg, find, env, optenv, eval or cwd",
                quoted(inside)
            ))),
        }
    }

    /// Returns the arguments as the scope of `$(eval)`.
    fn arguments_as_names(&self) -> Rc<Scope> {
        let scope = Rc::new(Scope::default());
        for (name, value) in self.arguments.borrow().iter() {
            let value = match (value.to_lowercase().as_str(), number(value)) {
                ("true", _) => Value::Bool(true),
                ("false", _) => Value::Bool(false),
                (_, Some(number @ Value::Int(_))) => number,
                (_, Some(number)) if value.contains('.') => number,
                _ => Value::text(value),
            };
            scope.set(name, Entry::Ready(value));
            self.known.borrow_mut().insert(name.clone());
        }
        scope.set("true", Entry::Ready(Value::Bool(true)));
        scope.set("false", Entry::Ready(Value::Bool(false)));
        scope
    }
}
