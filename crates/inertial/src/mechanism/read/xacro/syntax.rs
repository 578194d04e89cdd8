//! Syntax of expressions: the subset of Python's syntax that robot descriptions use.

use super::super::xml::quoted;
use super::Fault;
use super::value::{Value, number};

/// Maximum nesting of brackets in one expression.
const MOST_LEVELS: usize = 50;
/// Maximum number of operators in one expression; it bounds the depth of the tree.
const MOST_OPERATORS: usize = 300;

/// Expression tree.
pub(super) enum Node {
    Constant(Value),
    Name(String),
    List(Vec<Node>),
    Tuple(Vec<Node>),
    Dict(Vec<(Node, Node)>),
    /// `[item for names in over if conditions]`
    Each {
        item: Box<Node>,
        names: Vec<String>,
        over: Box<Node>,
        conditions: Vec<Node>,
    },
    Unary(char, Box<Node>),
    Binary(&'static str, Box<Node>, Box<Node>),
    Compare(Box<Node>, Vec<(&'static str, Node)>),
    /// `then if condition else otherwise`
    Choice(Box<[Node; 3]>),
    Attribute(Box<Node>, String),
    Item(Box<Node>, Box<Node>),
    Slice(Box<Node>, [Option<Box<Node>>; 3]),
    Call(Box<Node>, Vec<Node>, Vec<(String, Node)>),
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(String),
    Text(String),
    Name(String),
    Sign(&'static str),
    End,
}

/// Operator tokens, longer ones first.
const SIGNS: [&str; 30] = [
    "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "(", ")", "[", "]", "{", "}",
    ",", ":", ".", "<", ">", "=", "&", "|", "^", "~", "@",
];

/// Parses an expression.
pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, levels: 0, operators: 0 };
    let node = parser.tuple()?;
    match parser.peek() {
        Token::End => Ok(node),
        other => Err(unexpected(other)),
    }
}

fn unexpected(token: &Token) -> Fault {
    match token {
        Token::End => Fault::wrong("it ends early"),
        Token::Name(word) if word == "lambda" => Fault::unsupported("lambda"),
        Token::Name(word) | Token::Number(word) => Fault::wrong(format!("unexpected {}", quoted(word))),
        Token::Text(text) => Fault::wrong(format!("unexpected text {}", quoted(text))),
        Token::Sign(sign) => Fault::wrong(format!("unexpected \"{sign}\"")),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let length = if c == '\'' || c == '"' {
            let (value, length) = string(rest, c)?;
            // Adjacent string literals are concatenated.
            match out.last_mut() {
                Some(Token::Text(before)) => before.push_str(&value),
                _ => out.push(Token::Text(value)),
            }
            length
        } else if c.is_ascii_digit() || (c == '.' && rest[1..].starts_with(|d: char| d.is_ascii_digit())) {
            let length = number_length(rest);
            out.push(Token::Number(rest[..length].to_owned()));
            length
        } else if c.is_alphabetic() || c == '_' {
            let length = rest.find(|d: char| !d.is_alphanumeric() && d != '_').unwrap_or(rest.len());
            let follows = rest[length..].starts_with(['\'', '"']);
            if follows && length <= 2 {
                return Err(Fault::unsupported(format!("text with the prefix {}", &rest[..length])));
            }
            out.push(Token::Name(rest[..length].to_owned()));
            length
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| Fault::wrong(format!("unexpected \"{c}\"")))?;
            out.push(Token::Sign(sign));
            sign.len()
        };
        rest = rest[length..].trim_start();
    }
    out.push(Token::End);
    Ok(out)
}

/// Returns the length of the number at the start of a text.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    if bytes.len() > 1
        && bytes[0] == b'0'
        && bytes[1].is_ascii_alphabetic()
        && !matches!(bytes[1], b'e' | b'E')
    {
        return text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    }
    let mut at = 0;
    while at < bytes.len() {
        let sign_of_exponent =
            matches!(bytes[at], b'+' | b'-') && at > 0 && matches!(bytes[at - 1], b'e' | b'E');
        if !(bytes[at].is_ascii_digit() || matches!(bytes[at], b'.' | b'e' | b'E' | b'_') || sign_of_exponent)
        {
            break;
        }
        at += 1;
    }
    at
}

/// Returns a quoted text, and its length including the quotes.
fn string(text: &str, quote: char) -> Result<(String, usize), Fault> {
    let mut out = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, c)) = letters.next() {
        match c {
            '\\' => match letters.next().map(|(_, c)| c) {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(c @ ('\\' | '\'' | '"')) => out.push(c),
                Some(c) if !c.is_ascii_alphanumeric() => out.extend(['\\', c]),
                _ => return Err(Fault::unsupported("this escape sequence")),
            },
            c if c == quote => return Ok((out, at + 1)),
            c => out.push(c),
        }
    }
    Err(Fault::wrong("a text is not closed"))
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    levels: usize,
    operators: usize,
}

type Parsed = Result<Node, Fault>;

/// Binary operators by precedence, lowest first.
const LEVELS: [&[&str]; 6] = [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "//", "%"]];

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn sign(&mut self, wanted: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(sign) if *sign == wanted);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, wanted: &str) -> bool {
        let found = matches!(self.peek(), Token::Name(word) if word == wanted);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: &'static str) -> Result<(), Fault> {
        if self.sign(wanted) { Ok(()) } else { Err(unexpected(self.peek())) }
    }

    fn operator(&mut self) -> Result<(), Fault> {
        self.operators += 1;
        if self.operators > MOST_OPERATORS {
            return Err(Fault::wrong(format!("it has more than {MOST_OPERATORS} operators")));
        }
        Ok(())
    }

    /// Parses one expression, or several separated by commas.
    fn tuple(&mut self) -> Parsed {
        let first = self.expression()?;
        if !self.sign(",") {
            return Ok(first);
        }
        let mut all = vec![first];
        while !matches!(self.peek(), Token::End | Token::Sign(")" | "]")) {
            all.push(self.expression()?);
            if !self.sign(",") {
                break;
            }
        }
        Ok(Node::Tuple(all))
    }

    fn expression(&mut self) -> Parsed {
        self.levels += 1;
        if self.levels > MOST_LEVELS {
            return Err(Fault::wrong(format!("it has more than {MOST_LEVELS} levels")));
        }
        let mut node = self.either()?;
        if self.word("if") {
            self.operator()?;
            let condition = self.either()?;
            if !self.word("else") {
                return Err(unexpected(self.peek()));
            }
            node = Node::Choice(Box::new([node, condition, self.expression()?]));
        }
        self.levels -= 1;
        Ok(node)
    }

    fn either(&mut self) -> Parsed {
        let mut node = self.both()?;
        while self.word("or") {
            self.operator()?;
            node = Node::Binary("or", Box::new(node), Box::new(self.both()?));
        }
        Ok(node)
    }

    fn both(&mut self) -> Parsed {
        let mut node = self.negation()?;
        while self.word("and") {
            self.operator()?;
            node = Node::Binary("and", Box::new(node), Box::new(self.negation()?));
        }
        Ok(node)
    }

    fn negation(&mut self) -> Parsed {
        if self.word("not") {
            self.operator()?;
            return Ok(Node::Unary('!', Box::new(self.negation()?)));
        }
        let first = self.binary(0)?;
        let mut rest = Vec::new();
        while let Some(comparison) = self.comparison() {
            self.operator()?;
            rest.push((comparison, self.binary(0)?));
        }
        Ok(if rest.is_empty() { first } else { Node::Compare(Box::new(first), rest) })
    }

    fn comparison(&mut self) -> Option<&'static str> {
        if let Some(sign) = ["<=", ">=", "==", "!=", "<", ">"].into_iter().find(|sign| self.sign(sign)) {
            return Some(sign);
        }
        if self.word("in") {
            return Some("in");
        }
        if self.word("is") {
            return Some(if self.word("not") { "is not" } else { "is" });
        }
        let not_in = matches!(self.tokens.get(self.at..self.at + 2),
            Some([Token::Name(not), Token::Name(within)]) if not == "not" && within == "in");
        self.at += if not_in { 2 } else { 0 };
        not_in.then_some("not in")
    }

    fn binary(&mut self, level: usize) -> Parsed {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut node = self.binary(level + 1)?;
        while let Some(operator) = operators.iter().find(|sign| self.sign(sign)) {
            self.operator()?;
            node = Node::Binary(operator, Box::new(node), Box::new(self.binary(level + 1)?));
        }
        Ok(node)
    }

    fn unary(&mut self) -> Parsed {
        if let Some(sign) = ["-", "+", "~"].into_iter().find(|sign| self.sign(sign)) {
            self.operator()?;
            let sign = sign.chars().next().unwrap_or('+');
            return Ok(Node::Unary(sign, Box::new(self.unary()?)));
        }
        let base = self.postfix()?;
        if self.sign("**") {
            self.operator()?;
            return Ok(Node::Binary("**", Box::new(base), Box::new(self.unary()?)));
        }
        Ok(base)
    }

    fn postfix(&mut self) -> Parsed {
        let mut node = self.atom()?;
        loop {
            let is_postfix = matches!(self.peek(), Token::Sign("." | "[" | "("));
            if !is_postfix {
                return Ok(node);
            }
            self.operator()?;
            node = if self.sign(".") {
                let Token::Name(name) = self.peek().clone() else { return Err(unexpected(self.peek())) };
                self.at += 1;
                Node::Attribute(Box::new(node), name)
            } else if self.sign("[") {
                self.index(node)?
            } else {
                self.at += 1;
                self.call(node)?
            };
        }
    }

    fn index(&mut self, node: Node) -> Parsed {
        let mut parts: [Option<Box<Node>>; 3] = [None, None, None];
        let mut colons = 0;
        loop {
            if self.sign("]") {
                break;
            }
            if self.sign(":") {
                colons += 1;
                if colons > 2 {
                    return Err(Fault::wrong("unexpected \":\""));
                }
                continue;
            }
            if parts[colons].is_some() {
                return Err(unexpected(self.peek()));
            }
            parts[colons] = Some(Box::new(self.tuple()?));
        }
        match (colons, parts) {
            (0, [Some(index), ..]) => Ok(Node::Item(Box::new(node), index)),
            (0, _) => Err(Fault::wrong("unexpected \"]\"")),
            (_, parts) => Ok(Node::Slice(Box::new(node), parts)),
        }
    }

    fn call(&mut self, function: Node) -> Parsed {
        let (mut values, mut named) = (Vec::new(), Vec::new());
        while !self.sign(")") {
            let name = match self.tokens.get(self.at..self.at + 2) {
                Some([Token::Name(name), Token::Sign("=")]) => Some(name.clone()),
                _ => None,
            };
            if let Some(name) = name {
                self.at += 2;
                named.push((name, self.expression()?));
            } else {
                let value = self.expression()?;
                values.push(self.each(value)?);
            }
            if !self.sign(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(Node::Call(Box::new(function), values, named))
    }

    /// Parses a comprehension if `for` follows.
    fn each(&mut self, item: Node) -> Parsed {
        if !self.word("for") {
            return Ok(item);
        }
        self.operator()?;
        let mut names = Vec::new();
        let bracket = self.sign("(");
        loop {
            let Token::Name(name) = self.peek().clone() else { return Err(unexpected(self.peek())) };
            self.at += 1;
            names.push(name);
            if !self.sign(",") {
                break;
            }
        }
        if bracket {
            self.expect(")")?;
        }
        if !self.word("in") {
            return Err(unexpected(self.peek()));
        }
        let over = Box::new(self.either()?);
        let mut conditions = Vec::new();
        while self.word("if") {
            conditions.push(self.either()?);
        }
        if matches!(self.peek(), Token::Name(word) if word == "for") {
            return Err(Fault::unsupported("a comprehension with two loops"));
        }
        Ok(Node::Each { item: Box::new(item), names, over, conditions })
    }

    fn atom(&mut self) -> Parsed {
        let token = self.peek().clone();
        self.at += 1;
        match token {
            Token::Number(text) => parsed_number(&text).map(Node::Constant),
            Token::Text(text) => Ok(Node::Constant(Value::text(&text))),
            Token::Name(name) => match name.as_str() {
                "None" => Ok(Node::Constant(Value::None)),
                "True" => Ok(Node::Constant(Value::Bool(true))),
                "False" => Ok(Node::Constant(Value::Bool(false))),
                "lambda" | "if" | "else" | "for" | "in" | "is" | "and" | "or" | "not" => {
                    Err(unexpected(&Token::Name(name)))
                }
                _ => Ok(Node::Name(name)),
            },
            Token::Sign("(") => {
                if self.sign(")") {
                    return Ok(Node::Tuple(Vec::new()));
                }
                let inside = self.tuple()?;
                let inside = self.each(inside)?;
                self.expect(")")?;
                Ok(inside)
            }
            Token::Sign("[") => self.list(),
            Token::Sign("{") => self.dict(),
            other => Err(unexpected(&other)),
        }
    }

    fn list(&mut self) -> Parsed {
        let mut all = Vec::new();
        while !self.sign("]") {
            let entry = self.expression()?;
            if all.is_empty() && matches!(self.peek(), Token::Name(word) if word == "for") {
                let each = self.each(entry)?;
                self.expect("]")?;
                return Ok(each);
            }
            all.push(entry);
            if !self.sign(",") {
                self.expect("]")?;
                break;
            }
        }
        Ok(Node::List(all))
    }

    fn dict(&mut self) -> Parsed {
        let mut all = Vec::new();
        while !self.sign("}") {
            let key = self.expression()?;
            self.expect(":")?;
            all.push((key, self.expression()?));
            if !self.sign(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(Node::Dict(all))
    }
}

fn parsed_number(text: &str) -> Result<Value, Fault> {
    let plain = text.replace('_', "");
    let radix = match plain.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        _ => 10,
    };
    let value = match radix {
        10 => number(&plain),
        _ => i64::from_str_radix(&plain[2..], radix).ok().map(Value::Int),
    };
    value.ok_or_else(|| Fault::wrong(format!("\"{text}\" is not a number")))
}
