//! Evaluation of expressions.

use std::cmp::Ordering;
use std::rc::Rc;

use super::arithmetic::{arithmetic, unary};
use super::format::percent;
use super::syntax::Node;
use super::value::{Entry, Scope, Value};
use super::{Fault, Machine, builtins, methods};

type Evaluated = Result<Value, Fault>;

impl Machine<'_> {
    /// Evaluates an expression.
    pub(super) fn evaluate(&self, node: &Node, scope: &Rc<Scope>) -> Evaluated {
        self.spend(10)?;
        let _level = self.deeper()?;
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Name(name) => self.lookup(name, scope),
            Node::List(nodes) => Ok(Value::List(self.all(nodes, scope)?)),
            Node::Tuple(nodes) => Ok(Value::Tuple(self.all(nodes, scope)?)),
            Node::Dict(pairs) => self.dict(pairs, scope),
            Node::Each { item, names, over, conditions } => self.each(item, names, over, conditions, scope),
            Node::Unary(sign, inside) => unary(*sign, &self.evaluate(inside, scope)?),
            Node::Binary(sign @ ("and" | "or"), left, right) => {
                let left = self.evaluate(left, scope)?;
                if left.truth() == (*sign == "or") { Ok(left) } else { self.evaluate(right, scope) }
            }
            Node::Binary(sign, left, right) => {
                let (left, right) = (self.evaluate(left, scope)?, self.evaluate(right, scope)?);
                self.binary(sign, &left, &right)
            }
            Node::Compare(first, rest) => self.comparisons(first, rest, scope),
            Node::Choice(parts) => {
                let [then, condition, otherwise] = &**parts;
                let chosen = if self.evaluate(condition, scope)?.truth() { then } else { otherwise };
                self.evaluate(chosen, scope)
            }
            Node::Attribute(of, name) => self.attribute(&self.evaluate(of, scope)?, name),
            Node::Item(of, index) => {
                let (of, index) = (self.evaluate(of, scope)?, self.evaluate(index, scope)?);
                self.item(&of, &index)
            }
            Node::Slice(of, bounds) => self.slice(of, bounds, scope),
            Node::Call(function, values, named) => self.called(function, values, named, scope),
        }
    }

    /// Returns the value of a name: a property, or else a built-in name.
    pub(super) fn lookup(&self, name: &str, scope: &Rc<Scope>) -> Evaluated {
        match scope.find(name) {
            Some((owner, entry)) => self.resolve(name, &owner, entry),
            None => {
                builtins::global(name).ok_or_else(|| Fault::wrong(format!("name \"{name}\" is not defined")))
            }
        }
    }

    /// Returns the value of an entry; a pending text is evaluated in the scope that contains it.
    pub(super) fn resolve(&self, name: &str, owner: &Rc<Scope>, entry: Entry) -> Evaluated {
        match entry {
            Entry::Ready(value) => Ok(value),
            Entry::Evaluating => Err(Fault::wrong(format!("the definition of \"{name}\" refers to itself"))),
            Entry::Pending(text) => {
                let _level = self.deeper()?;
                owner.set(name, Entry::Evaluating);
                let value = self.text(&text, owner)?.or_literal();
                owner.set(name, Entry::Ready(value.clone()));
                Ok(value)
            }
        }
    }

    fn all(&self, nodes: &[Node], scope: &Rc<Scope>) -> Result<Rc<[Value]>, Fault> {
        nodes.iter().map(|node| self.evaluate(node, scope)).collect()
    }

    fn dict(&self, pairs: &[(Node, Node)], scope: &Rc<Scope>) -> Evaluated {
        let pair =
            |(key, value): &(Node, Node)| Ok((self.evaluate(key, scope)?, self.evaluate(value, scope)?));
        let pairs: Vec<_> = pairs.iter().map(pair).collect::<Result<_, Fault>>()?;
        self.dict_of(pairs)
    }

    /// Creates a dictionary; for equal keys, the last entry is kept.
    pub(super) fn dict_of(&self, pairs: Vec<(Value, Value)>) -> Evaluated {
        let mut out: Vec<(Value, Value)> = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            match self.position(out.iter().map(|(own, _)| own), &key)? {
                Some(place) => out[place].1 = value,
                None => out.push((key, value)),
            }
        }
        Ok(Value::Dict(out.into()))
    }

    fn each(
        &self,
        item: &Node,
        names: &[String],
        over: &Node,
        conditions: &[Node],
        scope: &Rc<Scope>,
    ) -> Evaluated {
        let entries = self.sequence(&self.evaluate(over, scope)?)?;
        let inner = Scope::inside(scope);
        let mut out = Vec::new();
        'entries: for entry in entries.iter() {
            match names {
                [name] => inner.set(name, Entry::Ready(entry.clone())),
                names => {
                    let parts = entry.entries().filter(|parts| parts.len() == names.len());
                    let parts =
                        parts.ok_or_else(|| Fault::wrong(format!("expected {} values each", names.len())))?;
                    names
                        .iter()
                        .zip(parts)
                        .for_each(|(name, part)| inner.set(name, Entry::Ready(part.clone())));
                }
            }
            for condition in conditions {
                if !self.evaluate(condition, &inner)?.truth() {
                    continue 'entries;
                }
            }
            out.push(self.evaluate(item, &inner)?);
        }
        Ok(Value::List(out.into()))
    }

    /// Returns the entries of an iterable value.
    pub(super) fn sequence(&self, value: &Value) -> Result<Rc<[Value]>, Fault> {
        match value {
            Value::List(entries) | Value::Tuple(entries) => Ok(entries.clone()),
            Value::Text(text) => {
                self.spend(100 * text.len() as u64)?;
                Ok(text.chars().map(|c| Value::text(c.encode_utf8(&mut [0; 4]))).collect())
            }
            Value::Dict(pairs) => Ok(pairs.iter().map(|(key, _)| key.clone()).collect()),
            other => Err(Fault::wrong(format!("a value of type {} has no entries", other.kind()))),
        }
    }

    fn comparisons(&self, first: &Node, rest: &[(&'static str, Node)], scope: &Rc<Scope>) -> Evaluated {
        let mut left = self.evaluate(first, scope)?;
        for (sign, right) in rest {
            let right = self.evaluate(right, scope)?;
            if !self.compare(sign, &left, &right)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    fn compare(&self, sign: &str, left: &Value, right: &Value) -> Result<bool, Fault> {
        Ok(match sign {
            "==" | "!=" => self.equal(left, right)? == (sign == "=="),
            "is" | "is not" => {
                let same = left.kind() == right.kind() && self.equal(left, right)?;
                same == (sign == "is")
            }
            "in" | "not in" => self.contains(right, left)? == (sign == "in"),
            _ => {
                let order = self.order(left, right)?;
                match sign {
                    "<" => order == Some(Ordering::Less),
                    ">" => order == Some(Ordering::Greater),
                    "<=" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
                    _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
                }
            }
        })
    }

    fn contains(&self, whole: &Value, part: &Value) -> Result<bool, Fault> {
        if let (Value::Text(whole), Value::Text(part)) = (whole, part) {
            self.spend((whole.len() + part.len()) as u64)?;
            return Ok(whole.contains(&**part));
        }
        if let Value::Space(scope) = whole {
            return Ok(matches!(part, Value::Text(name) if scope.find(name).is_some()));
        }
        let entries = self.sequence(whole)?;
        Ok(self.position(entries.iter(), part)?.is_some())
    }

    /// Returns the index of a value in a sequence.
    pub(super) fn position<'v>(
        &self,
        mut entries: impl Iterator<Item = &'v Value>,
        wanted: &Value,
    ) -> Result<Option<usize>, Fault> {
        let mut place = 0;
        entries
            .find_map(|entry| match self.equal(entry, wanted) {
                Ok(false) => {
                    place += 1;
                    None
                }
                Ok(true) => Some(Ok(place)),
                Err(fault) => Some(Err(fault)),
            })
            .transpose()
    }

    /// Returns whether two values are equal in Python.
    fn equal(&self, left: &Value, right: &Value) -> Result<bool, Fault> {
        self.spend(5)?;
        let _level = self.deeper()?;
        match (left, right) {
            (Value::None, Value::None) => Ok(true),
            (Value::Text(a), Value::Text(b)) => Ok(a == b),
            (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (a, b) in a.iter().zip(b.iter()) {
                    if !self.equal(a, b)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Dict(a), Value::Dict(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (key, value) in a.iter() {
                    match self.position(b.iter().map(|(own, _)| own), key)? {
                        Some(place) if self.equal(value, &b[place].1)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
            _ => Ok(match (left.integer(), right.integer()) {
                (Some(a), Some(b)) => a == b,
                _ => matches!((left.number(), right.number()), (Some(a), Some(b)) if a == b),
            }),
        }
    }

    /// Compares two values; the result is `None` for NaN.
    pub(super) fn order(&self, left: &Value, right: &Value) -> Result<Option<Ordering>, Fault> {
        self.spend(5)?;
        let _level = self.deeper()?;
        if let (Some(a), Some(b)) = (left.integer(), right.integer()) {
            return Ok(Some(a.cmp(&b)));
        }
        if let (Some(a), Some(b)) = (left.number(), right.number()) {
            return Ok(a.partial_cmp(&b));
        }
        if let (Value::Text(a), Value::Text(b)) = (left, right) {
            return Ok(Some(a.cmp(b)));
        }
        if let (Some(a), Some(b)) = (left.entries(), right.entries()) {
            for (a, b) in a.iter().zip(b) {
                if !self.equal(a, b)? {
                    return self.order(a, b);
                }
            }
            return Ok(Some(a.len().cmp(&b.len())));
        }
        Err(Fault::wrong(format!("values of types {} and {} cannot be compared", left.kind(), right.kind())))
    }

    /// Returns an attribute (the name after a dot).
    pub(super) fn attribute(&self, of: &Value, name: &str) -> Evaluated {
        if name.starts_with("__") {
            return Err(Fault::wrong(format!("the name \"{name}\" is not allowed")));
        }
        match of {
            Value::Space(scope) => self.lookup(name, scope),
            Value::Module(module) => {
                builtins::member(module, name).ok_or_else(|| Fault::unsupported(format!("{module}.{name}")))
            }
            Value::Dict(pairs) => {
                let found = pairs.iter().find(|(key, _)| matches!(key, Value::Text(key) if **key == *name));
                found
                    .map(|(_, value)| value.clone())
                    .ok_or_else(|| Fault::wrong(format!("the dictionary has no key \"{name}\"")))
            }
            other => {
                Err(Fault::unsupported(format!("the attribute {name} of a value of type {}", other.kind())))
            }
        }
    }

    fn item(&self, of: &Value, index: &Value) -> Evaluated {
        match of {
            Value::Dict(pairs) => {
                let place = self.position(pairs.iter().map(|(key, _)| key), index)?;
                place
                    .map(|place| pairs[place].1.clone())
                    .ok_or_else(|| Fault::wrong("the dictionary has no such key"))
            }
            Value::Space(scope) => match index {
                Value::Text(name) => self.lookup(name, scope),
                _ => Err(Fault::wrong("a namespace can only be indexed by names")),
            },
            _ => {
                let entries = self.sequence(of)?;
                let wrong = || {
                    Fault::wrong(format!(
                        "there are {} entries: the index is out of range or not an integer",
                        entries.len()
                    ))
                };
                let index = index.integer().ok_or_else(wrong)?;
                let index =
                    if index < 0 { index.saturating_add_unsigned(entries.len() as u64) } else { index };
                usize::try_from(index).ok().and_then(|k| entries.get(k)).cloned().ok_or_else(wrong)
            }
        }
    }

    fn slice(&self, of: &Node, bounds: &[Option<Box<Node>>; 3], scope: &Rc<Scope>) -> Evaluated {
        let of = self.evaluate(of, scope)?;
        let bound = |node: &Option<Box<Node>>| {
            let Some(node) = node else { return Ok(None) };
            match self.evaluate(node, scope)? {
                Value::None => Ok(None),
                value => value
                    .integer()
                    .map(Some)
                    .ok_or_else(|| Fault::wrong("a bound of a slice is not an integer")),
            }
        };
        let [from, to, step] = [bound(&bounds[0])?, bound(&bounds[1])?, bound(&bounds[2])?];
        let entries = self.sequence(&of)?;
        let length = i64::try_from(entries.len()).unwrap_or(i64::MAX);
        let step = step.unwrap_or(1);
        let place = |k: i64, most: i64| {
            (if k < 0 { k.saturating_add(length) } else { k }).clamp(if step < 0 { -1 } else { 0 }, most)
        };
        let (from, to) = match step {
            0 => return Err(Fault::wrong("the step of a slice is zero")),
            1.. => (place(from.unwrap_or(0), length), place(to.unwrap_or(length), length)),
            _ => (from.map_or(length - 1, |k| place(k, length - 1)), to.map_or(-1, |k| place(k, length - 1))),
        };
        let mut out = Vec::new();
        let mut at = from;
        while (step > 0 && at < to) || (step < 0 && at > to) {
            out.push(entries[at as usize].clone());
            at = at.saturating_add(step);
        }
        Ok(match of {
            Value::Text(_) => Value::text(&out.iter().map(Value::to_string).collect::<String>()),
            Value::Tuple(_) => Value::Tuple(out.into()),
            _ => Value::List(out.into()),
        })
    }

    fn called(
        &self,
        function: &Node,
        values: &[Node],
        named: &[(String, Node)],
        scope: &Rc<Scope>,
    ) -> Evaluated {
        // Methods of texts, lists and dictionaries have priority over entries of a dictionary.
        let method = match function {
            Node::Attribute(of, name) => Some((self.evaluate(of, scope)?, name)),
            _ => None,
        };
        let values: Vec<Value> = self.all(values, scope)?.to_vec();
        let named: Vec<(String, Value)> = named
            .iter()
            .map(|(name, node)| Ok((name.clone(), self.evaluate(node, scope)?)))
            .collect::<Result<_, Fault>>()?;
        let function = match method {
            Some((of @ (Value::Text(_) | Value::List(_) | Value::Tuple(_) | Value::Dict(_)), name)) => {
                if !named.is_empty() {
                    return Err(Fault::unsupported(format!("{name}() with named arguments")));
                }
                return methods::call(self, &of, name, &values);
            }
            Some((of, name)) => self.attribute(&of, name)?,
            None => self.evaluate(function, scope)?,
        };
        match function {
            Value::Function(name) => builtins::call(self, name, &values, &named),
            other => Err(Fault::wrong(format!("a value of type {} cannot be called", other.kind()))),
        }
    }

    /// Applies a binary operator.
    pub(super) fn binary(&self, sign: &'static str, left: &Value, right: &Value) -> Evaluated {
        match (sign, left, right) {
            ("+", Value::Text(a), Value::Text(b)) => {
                self.spend((a.len() + b.len()) as u64)?;
                Ok(Value::text(&[&**a, &**b].concat()))
            }
            ("+", Value::List(a), Value::List(b)) => {
                self.spend(20 * (a.len() + b.len()) as u64)?;
                Ok(Value::List([&**a, &**b].concat().into()))
            }
            ("+", Value::Tuple(a), Value::Tuple(b)) => {
                self.spend(20 * (a.len() + b.len()) as u64)?;
                Ok(Value::Tuple([&**a, &**b].concat().into()))
            }
            ("*", Value::Text(_) | Value::List(_), count) if count.integer().is_some() => {
                self.repeat(left, count)
            }
            ("*", count, Value::Text(_) | Value::List(_)) if count.integer().is_some() => {
                self.repeat(right, count)
            }
            ("%", Value::Text(pattern), values) => percent(self, pattern, values),
            _ => arithmetic(sign, left, right),
        }
    }

    fn repeat(&self, what: &Value, count: &Value) -> Evaluated {
        let count = count.integer().unwrap_or(0).max(0) as u64;
        self.spend(count.saturating_mul(what.size(self.left.get() as usize) as u64 + 20))?;
        Ok(match what {
            Value::Text(text) => Value::text(&text.repeat(count as usize)),
            other => {
                let entries = other.entries().unwrap_or_default();
                Value::List(entries.iter().cycle().take(entries.len() * count as usize).cloned().collect())
            }
        })
    }
}
