//! Expressions in the coordinates of a mechanism, written by users.

use crate::{Error, Result};

/// Compiled formula such as `sin(q2 - pi/2) * (l - 0.6)^2`.
///
/// Operators are `+ - * / ^` (the last one is right-associative and binds more strongly than a sign), functions
/// `sin cos tan asin acos atan atan2 sqrt exp log abs sign min max`, the constant is `pi`. Further names are resolved by the
/// caller.
#[derive(Debug, Clone)]
pub struct Expression {
    steps: Vec<Step>,
}

/// Variable of a formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variable {
    /// Position coordinate.
    Q(usize),
    /// Velocity coordinate.
    V(usize),
    /// Acceleration coordinate.
    A(usize),
    /// Additional column of the log.
    Column(usize),
}

/// State at which an expression is evaluated.
#[derive(Debug, Clone, Copy, Default)]
pub struct FormulaState<'s> {
    /// Positions.
    pub q: &'s [f64],
    /// Velocities.
    pub v: &'s [f64],
    /// Accelerations.
    pub a: &'s [f64],
    /// Additional columns of the log.
    pub columns: &'s [f64],
}

/// Meaning of a name.
#[derive(Debug, Clone)]
pub enum Meaning {
    /// Coordinate or column.
    Variable(Variable),
    /// Named subexpression.
    Formula(Expression),
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Number(f64),
    Read(Variable),
    Negate,
    Binary(Binary),
    Call(fn(f64) -> f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Atan2,
    Min,
    Max,
}

fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

fn function(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "sin" => f64::sin,
        "cos" => f64::cos,
        "tan" => f64::tan,
        "asin" => f64::asin,
        "acos" => f64::acos,
        "atan" => f64::atan,
        "sqrt" => f64::sqrt,
        "exp" => f64::exp,
        "log" => f64::ln,
        "abs" => f64::abs,
        "sign" => sign,
        _ => return None,
    })
}

fn function_of_two(name: &str) -> Option<Binary> {
    Some(match name {
        "atan2" => Binary::Atan2,
        "min" => Binary::Min,
        "max" => Binary::Max,
        _ => return None,
    })
}

impl Binary {
    fn value(self, x: f64, y: f64) -> f64 {
        match self {
            Self::Add => x + y,
            Self::Subtract => x - y,
            Self::Multiply => x * y,
            Self::Divide => x / y,
            Self::Power => x.powf(y),
            Self::Atan2 => x.atan2(y),
            Self::Min => x.min(y),
            Self::Max => x.max(y),
        }
    }
}

/// Largest depth of parentheses of a formula. It is sufficient for formulas written by hand and prevents a stack overflow of the
/// parser.
const DEEPEST: usize = 100;

/// Largest number of steps of a formula after its names are expanded.
const LONGEST: usize = 10_000;

impl Expression {
    /// Parses an expression; `meaning` resolves names.
    ///
    /// ```
    /// use inertial::estimation::{Expression, Meaning, FormulaState, Variable};
    /// let elbow = |name: &str| (name == "q.elbow").then_some(Meaning::Variable(Variable::Q(0)));
    /// let spring = Expression::parse("-2^2 * sin(q.elbow - pi/2)", elbow)?;
    /// let state = FormulaState { q: &[0.0], ..FormulaState::default() };
    /// assert!((spring.value(&state, &mut Vec::new()) - 4.0).abs() < 1e-15);
    /// assert!(Expression::parse("q.ellbow + 1", elbow).is_err());
    /// # Ok::<(), inertial::Error>(())
    /// ```
    pub fn parse(text: &str, meaning: impl Fn(&str) -> Option<Meaning>) -> Result<Self> {
        let mut reader = Reader { text, at: 0, depth: 0, steps: Vec::new(), meaning: &meaning };
        reader.sum()?;
        match reader.peek() {
            None => Ok(Self { steps: reader.steps }),
            Some(c) => Err(reader.wrong(&format!("expected the end, not '{c}'"))),
        }
    }

    /// Evaluates the expression; `stack` is reusable memory.
    pub fn value(&self, state: &FormulaState<'_>, stack: &mut Vec<f64>) -> f64 {
        stack.clear();
        for step in &self.steps {
            match *step {
                Step::Number(x) => stack.push(x),
                Step::Read(Variable::Q(i)) => stack.push(state.q[i]),
                Step::Read(Variable::V(i)) => stack.push(state.v[i]),
                Step::Read(Variable::A(i)) => stack.push(state.a[i]),
                Step::Read(Variable::Column(i)) => stack.push(state.columns[i]),
                // The reader guarantees that the stack holds enough operands for each step.
                Step::Negate => stack.iter_mut().rev().take(1).for_each(|x| *x = -*x),
                Step::Call(f) => stack.iter_mut().rev().take(1).for_each(|x| *x = f(*x)),
                Step::Binary(f) => {
                    let y = stack.pop().unwrap_or(f64::NAN);
                    stack.iter_mut().rev().take(1).for_each(|x| *x = f.value(*x, y));
                }
            }
        }
        stack.pop().unwrap_or(f64::NAN)
    }
}

impl Expression {
    /// Returns whether the expression uses velocities or accelerations.
    pub(crate) fn uses_rates(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Read(Variable::V(_) | Variable::A(_))))
    }
}

/// Recursive-descent parser with postfix output.
struct Reader<'t, M> {
    text: &'t str,
    at: usize,
    depth: usize,
    steps: Vec<Step>,
    meaning: &'t M,
}

impl<M: Fn(&str) -> Option<Meaning>> Reader<'_, M> {
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn wrong(&self, message: &str) -> Error {
        let column = self.text[..self.at].chars().count() + 1;
        Error::InvalidOption(format!("formula \"{}\", character {column}: {message}", self.text))
    }

    fn push(&mut self, step: Step) -> Result<()> {
        if self.steps.len() >= LONGEST {
            return Err(self.wrong("the formula is too long"));
        }
        self.steps.push(step);
        Ok(())
    }

    fn sum(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.wrong("too many parentheses"));
        }
        self.product()?;
        loop {
            let operation = if self.take('+') {
                Binary::Add
            } else if self.take('-') {
                Binary::Subtract
            } else {
                self.depth -= 1;
                return Ok(());
            };
            self.product()?;
            self.push(Step::Binary(operation))?;
        }
    }

    fn product(&mut self) -> Result<()> {
        self.signed()?;
        loop {
            let operation = if self.take('*') {
                Binary::Multiply
            } else if self.take('/') {
                Binary::Divide
            } else {
                return Ok(());
            };
            self.signed()?;
            self.push(Step::Binary(operation))?;
        }
    }

    fn signed(&mut self) -> Result<()> {
        let mut negative = false;
        loop {
            if self.take('-') {
                negative = !negative;
            } else if !self.take('+') {
                break;
            }
        }
        self.atom()?;
        if self.take('^') {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(self.wrong("too many powers"));
            }
            self.signed()?;
            self.depth -= 1;
            self.push(Step::Binary(Binary::Power))?;
        }
        if negative { self.push(Step::Negate) } else { Ok(()) }
    }

    fn atom(&mut self) -> Result<()> {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                self.sum()?;
                self.close()
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() || c == '_' => self.name(),
            Some(c) => Err(self.wrong(&format!("expected a number, a name or '(', not '{c}'"))),
            None => Err(self.wrong("expected a number, a name or '('")),
        }
    }

    fn close(&mut self) -> Result<()> {
        if self.take(')') { Ok(()) } else { Err(self.wrong("expected ')'")) }
    }

    fn number(&mut self) -> Result<()> {
        let rest = &self.text[self.at..];
        let mut end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        if rest[end..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
            let digits = rest[end + 1 + sign..].bytes().take_while(u8::is_ascii_digit).count();
            end += if digits > 0 { 1 + sign + digits } else { 0 };
        }
        match rest[..end].parse() {
            Ok(x) => {
                self.at += end;
                self.push(Step::Number(x))
            }
            Err(_) => Err(self.wrong(&format!("'{}' is not a number", &rest[..end]))),
        }
    }

    fn name(&mut self) -> Result<()> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len());
        let name = &rest[..end];
        if let Some(meaning) = (self.meaning)(name) {
            self.at += end;
            return match meaning {
                Meaning::Variable(variable) => self.push(Step::Read(variable)),
                Meaning::Formula(formula) => formula.steps.into_iter().try_for_each(|step| self.push(step)),
            };
        }
        if name == "pi" {
            self.at += end;
            return self.push(Step::Number(std::f64::consts::PI));
        }
        let (one, two) = (function(name), function_of_two(name));
        if one.is_none() && two.is_none() {
            return Err(self.wrong(&format!("unknown name {name}")));
        }
        self.at += end;
        if !self.take('(') {
            return Err(self.wrong(&format!("expected '(' after {name}")));
        }
        self.sum()?;
        if let Some(operation) = two {
            if !self.take(',') {
                return Err(self.wrong(&format!("expected ',' and a second number for {name}")));
            }
            self.sum()?;
            self.close()?;
            return self.push(Step::Binary(operation));
        }
        self.close()?;
        one.map_or(Ok(()), |f| self.push(Step::Call(f)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn value(text: &str) -> f64 {
        let names = |name: &str| match name {
            "x" => Some(Meaning::Variable(Variable::Q(0))),
            "dq.j_1" => Some(Meaning::Variable(Variable::V(0))),
            _ => None,
        };
        let state = FormulaState { q: &[2.0], v: &[3.0], ..FormulaState::default() };
        Expression::parse(text, names).unwrap().value(&state, &mut Vec::new())
    }

    #[test]
    fn formulas_have_their_usual_meaning() {
        for (text, expected) in [
            ("1 - 2 - 3", -4.0),
            ("8/4/2", 1.0),
            ("-x^2", -4.0),
            ("2^3^2", 512.0),
            ("2*-x", -4.0),
            ("1.5e-1 + .5", 0.65),
            ("sqrt(0.8^2+0.2^2-2*0.8*0.2*cos(pi/2))", 0.68_f64.sqrt()),
            ("atan2(1, -1) - 3*pi/4", 0.0),
            ("max(x, min(1, 5)) * dq.j_1", 6.0),
            ("sign(x-2) + abs(-7)", 7.0),
        ] {
            assert!((value(text) - expected).abs() < 1e-15, "{text}: {}", value(text));
        }
    }

    #[test]
    fn invalid_formulas_are_rejected_with_the_position() {
        for (text, place) in [
            ("", "character 1:"),
            ("1 +", "character 4:"),
            ("y", "character 1: unknown name y"),
            ("(x", "character 3: expected ')'"),
            ("x x", "character 3:"),
            ("1.2.3", "character 1:"),
            ("sin x", "expected '(' after sin"),
            ("min(x)", "expected ','"),
            ("é$", "character 1:"),
            ("1e", "character 2:"),
        ] {
            let names = |name: &str| (name == "x").then_some(Meaning::Variable(Variable::Q(0)));
            let error = Expression::parse(text, names).unwrap_err().to_string();
            assert!(error.contains(place), "{text}: {error}");
        }
        assert!(Expression::parse(&"(".repeat(100_000), |_| None).is_err());
        assert!(Expression::parse(&"2^".repeat(100_000), |_| None).is_err());
    }
}
