//! Expressions in the entries of arrays, with common subexpressions shared.

use std::collections::HashMap;
use std::fmt::Write as _;

/// Expression of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Value(u32);

/// Three expressions.
pub(super) type Vector = [Value; 3];

/// Three rows of expressions.
pub(super) type Matrix = [Vector; 3];

/// Arrays that are read by expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Array {
    Position,
    Velocity,
    Acceleration,
}

impl Array {
    /// Returns the name in C.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Position => "q",
            Self::Velocity => "v",
            Self::Acceleration => "a",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    /// Bit pattern of a constant.
    Constant(u64),
    Entry(Array, usize),
    Negative(Value),
    Sum(Value, Value),
    Difference(Value, Value),
    Product(Value, Value),
    Quotient(Value, Value),
    Sine(Value),
    Cosine(Value),
}

impl Node {
    fn operands(self) -> impl Iterator<Item = Value> {
        let (a, b) = match self {
            Self::Constant(_) | Self::Entry(..) => (None, None),
            Self::Negative(a) | Self::Sine(a) | Self::Cosine(a) => (Some(a), None),
            Self::Sum(a, b) | Self::Difference(a, b) | Self::Product(a, b) | Self::Quotient(a, b) => {
                (Some(a), Some(b))
            }
        };
        a.into_iter().chain(b)
    }

    /// Returns the text in C, given the texts of the operands.
    fn text(self, texts: &[Text]) -> Text {
        let part = |value: Value, at_least: Strength| {
            let Text { words, strength } = &texts[value.0 as usize];
            if *strength >= at_least { words.clone() } else { format!("({words})") }
        };
        let (words, strength) = match self {
            Self::Constant(bits) => {
                let x = f64::from_bits(bits);
                (format!("{x:?}"), if x < 0.0 { Strength::Sum } else { Strength::Atom })
            }
            Self::Entry(array, index) => (format!("{}[{index}]", array.name()), Strength::Atom),
            Self::Negative(a) => (format!("-{}", part(a, Strength::Product)), Strength::Sum),
            Self::Sum(a, b) => {
                (format!("{} + {}", part(a, Strength::Sum), part(b, Strength::Product)), Strength::Sum)
            }
            Self::Difference(a, b) => {
                (format!("{} - {}", part(a, Strength::Sum), part(b, Strength::Product)), Strength::Sum)
            }
            Self::Product(a, b) => {
                (format!("{}*{}", part(a, Strength::Product), part(b, Strength::Atom)), Strength::Product)
            }
            Self::Quotient(a, b) => {
                (format!("{}/{}", part(a, Strength::Product), part(b, Strength::Atom)), Strength::Product)
            }
            Self::Sine(a) => (format!("sin({})", part(a, Strength::Sum)), Strength::Atom),
            Self::Cosine(a) => (format!("cos({})", part(a, Strength::Sum)), Strength::Atom),
        };
        Text { words, strength }
    }
}

/// Set of expressions, each stored once. Operations with zero and one, and between constants, are simplified.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: Vec<Node>,
    known: HashMap<Node, Value>,
}

impl Graph {
    fn node(&mut self, node: Node) -> Value {
        if let Some(value) = self.known.get(&node) {
            return *value;
        }
        let value = Value(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(node);
        self.known.insert(node, value);
        value
    }

    fn at(&self, value: Value) -> Node {
        self.nodes[value.0 as usize]
    }

    fn constant_of(&self, value: Value) -> Option<f64> {
        match self.at(value) {
            Node::Constant(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    pub(super) fn constant(&mut self, x: f64) -> Value {
        // Adding zero turns −0 into 0.
        self.node(Node::Constant((x + 0.0).to_bits()))
    }

    pub(super) fn constants(&mut self, x: [f64; 3]) -> Vector {
        x.map(|x| self.constant(x))
    }

    pub(super) fn zeros(&mut self) -> Vector {
        self.constants([0.0; 3])
    }

    pub(super) fn entry(&mut self, array: Array, index: usize) -> Value {
        self.node(Node::Entry(array, index))
    }

    pub(super) fn negative(&mut self, a: Value) -> Value {
        match self.at(a) {
            Node::Constant(bits) => self.constant(-f64::from_bits(bits)),
            Node::Negative(inner) => inner,
            Node::Difference(x, y) => self.node(Node::Difference(y, x)),
            _ => self.node(Node::Negative(a)),
        }
    }

    pub(super) fn sum(&mut self, a: Value, b: Value) -> Value {
        match (self.constant_of(a), self.constant_of(b)) {
            (Some(x), Some(y)) => return self.constant(x + y),
            (Some(0.0), _) => return b,
            (_, Some(0.0)) => return a,
            _ => {}
        }
        match (self.at(a), self.at(b)) {
            (_, Node::Negative(b)) => self.difference(a, b),
            (Node::Negative(a), _) => self.difference(b, a),
            _ => self.node(Node::Sum(a.min(b), a.max(b))),
        }
    }

    pub(super) fn difference(&mut self, a: Value, b: Value) -> Value {
        match (self.constant_of(a), self.constant_of(b)) {
            (Some(x), Some(y)) => return self.constant(x - y),
            (Some(0.0), _) => return self.negative(b),
            (_, Some(0.0)) => return a,
            _ => {}
        }
        if a == b {
            return self.constant(0.0);
        }
        match self.at(b) {
            Node::Negative(b) => self.sum(a, b),
            _ => self.node(Node::Difference(a, b)),
        }
    }

    pub(super) fn product(&mut self, a: Value, b: Value) -> Value {
        match (self.constant_of(a), self.constant_of(b)) {
            (Some(x), Some(y)) => return self.constant(x * y),
            (Some(0.0), _) | (_, Some(0.0)) => return self.constant(0.0),
            (Some(1.0), _) => return b,
            (_, Some(1.0)) => return a,
            (Some(-1.0), _) => return self.negative(b),
            (_, Some(-1.0)) => return self.negative(a),
            _ => {}
        }
        let ((a, of_a), (b, of_b)) = (self.unsigned(a), self.unsigned(b));
        let product = self.node(Node::Product(a.min(b), a.max(b)));
        if of_a == of_b { product } else { self.negative(product) }
    }

    /// Returns the expression without its sign, and whether the sign is negative.
    fn unsigned(&self, a: Value) -> (Value, bool) {
        match self.at(a) {
            Node::Negative(inner) => (inner, true),
            _ => (a, false),
        }
    }

    pub(super) fn quotient(&mut self, a: Value, b: Value) -> Value {
        match (self.constant_of(a), self.constant_of(b)) {
            (Some(x), Some(y)) => self.constant(x / y),
            _ => self.node(Node::Quotient(a, b)),
        }
    }

    pub(super) fn sine(&mut self, a: Value) -> Value {
        self.node(Node::Sine(a))
    }

    pub(super) fn cosine(&mut self, a: Value) -> Value {
        self.node(Node::Cosine(a))
    }

    // Vector and matrix operations.

    pub(super) fn add(&mut self, a: Vector, b: Vector) -> Vector {
        std::array::from_fn(|i| self.sum(a[i], b[i]))
    }

    pub(super) fn scaled(&mut self, x: Value, a: Vector) -> Vector {
        a.map(|a| self.product(x, a))
    }

    pub(super) fn dot(&mut self, a: Vector, b: Vector) -> Value {
        let [x, y, z] = std::array::from_fn(|i| self.product(a[i], b[i]));
        let xy = self.sum(x, y);
        self.sum(xy, z)
    }

    pub(super) fn cross(&mut self, a: Vector, b: Vector) -> Vector {
        std::array::from_fn(|i| {
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            let (left, right) = (self.product(a[j], b[k]), self.product(a[k], b[j]));
            self.difference(left, right)
        })
    }

    /// Returns the product of a matrix and a vector.
    pub(super) fn apply(&mut self, m: &Matrix, a: Vector) -> Vector {
        m.map(|row| self.dot(row, a))
    }

    /// Returns the product of the transpose of a matrix and a vector.
    pub(super) fn apply_transposed(&mut self, m: &Matrix, a: Vector) -> Vector {
        self.apply(&transposed(m), a)
    }

    /// Counts products (and quotients), sums (and differences), and sines and cosines in expressions.
    pub(super) fn operations(&self, outputs: &[(String, Value)]) -> [usize; 3] {
        let mut used = vec![false; self.nodes.len()];
        outputs.iter().for_each(|(_, value)| used[value.0 as usize] = true);
        let mut counts = [0; 3];
        // Operands precede the nodes that use them.
        for k in (0..self.nodes.len()).rev() {
            if !used[k] {
                continue;
            }
            let node = self.nodes[k];
            node.operands().for_each(|operand| used[operand.0 as usize] = true);
            match node {
                Node::Product(..) | Node::Quotient(..) => counts[0] += 1,
                Node::Sum(..) | Node::Difference(..) => counts[1] += 1,
                Node::Sine(_) | Node::Cosine(_) => counts[2] += 1,
                Node::Constant(_) | Node::Entry(..) | Node::Negative(_) => {}
            }
        }
        counts
    }

    /// Returns the C statements that assign expressions to the outputs, and the arrays that they read.
    pub(super) fn statements(&self, outputs: &[(String, Value)]) -> (String, Vec<Array>) {
        let mut uses = vec![0_u32; self.nodes.len()];
        for (_, value) in outputs {
            uses[value.0 as usize] += 1;
        }
        // Operands precede the nodes that use them.
        for (k, node) in self.nodes.iter().enumerate().rev() {
            if uses[k] > 0 {
                node.operands().for_each(|operand| uses[operand.0 as usize] += 1);
            }
        }
        let (mut out, mut arrays) = (String::new(), Vec::new());
        let mut texts: Vec<Text> = vec![Text::default(); self.nodes.len()];
        for (k, node) in self.nodes.iter().enumerate().filter(|(k, _)| uses[*k] > 0) {
            if let Node::Entry(array, _) = node
                && !arrays.contains(array)
            {
                arrays.push(*array);
            }
            let text = node.text(&texts);
            let simple = matches!(node, Node::Constant(_) | Node::Entry(..));
            texts[k] = if !simple && (uses[k] > 1 || text.words.len() > LONGEST) {
                let _ = writeln!(out, "    const double t{k} = {};", text.words);
                Text { words: format!("t{k}"), strength: Strength::Atom }
            } else {
                text
            };
        }
        for (place, value) in outputs {
            let _ = writeln!(out, "    {place} = {};", texts[value.0 as usize].words);
        }
        (out, arrays)
    }
}

/// Length of the longest expression that is inlined into another one.
const LONGEST: usize = 72;

/// Operator precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Strength {
    #[default]
    Sum,
    Product,
    Atom,
}

/// Text of an expression in C.
#[derive(Debug, Clone, Default)]
struct Text {
    words: String,
    strength: Strength,
}

/// Returns the transpose of a matrix.
pub(super) fn transposed(m: &Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| m[j][i]))
}
