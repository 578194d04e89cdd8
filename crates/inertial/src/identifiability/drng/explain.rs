//! Explanation of null vectors: those that follow from the principles, each verified, and those found by computation
//! only.

use std::fmt;

use super::{Contact, Graph, NullVector, Points, Principle, null_vectors};
use crate::identifiability::base_parameters::Written;
use crate::linalg::{Double, Echelon, Number, Pivot};
use crate::mechanism::{Assembled, Mechanism};

/// Minimum part of a proposed vector (relative to its size) that must be outside the span of earlier ones. Geometry
/// that holds up to rounding proposes the same vector several times with slight differences.
const CLEARLY_NEW: f64 = 1e-7;

/// Minimum parts of computed null vectors outside the span of earlier ones, the largest first; the last accepts all
/// vectors that are independent in the arithmetic used.
const STANDING_OUT: [f64; 4] = [1e-2, 1e-5, 1e-8, 0.0];

/// Independent null vector with its reason.
#[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct Reason {
    /// Short description of the principle.
    pub principle: &'static str,
    /// Joint (or loop joint) at which the principle applies, if it is a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joint: Option<String>,
    /// Bodies whose parameters change.
    pub bodies: Vec<String>,
    /// Principle that explains the vector.
    #[serde(skip)]
    pub kind: Principle,
    /// Null vector by column.
    #[serde(skip)]
    pub vector: Vec<(usize, f64)>,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.joint {
            Some(joint) => write!(f, "{} at joint {joint}", self.principle),
            None => f.write_str(self.principle),
        }
    }
}

/// All null vectors of a mechanism, each with its reason.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Explanation {
    /// Independent null vectors that span the null space.
    pub reasons: Vec<Reason>,
    /// Number of null vectors explained by the principles (these come first).
    pub explained: usize,
    /// Number of vectors proposed by a principle but rejected by computation; a nonzero number indicates a bug.
    pub unsound: usize,
}

impl Explanation {
    /// Returns the explanation with parameters in other units: new parameters are the old ones times `factors`.
    pub fn rescaled(mut self, factors: &[f64]) -> Self {
        for reason in &mut self.reasons {
            for (column, x) in &mut reason.vector {
                *x *= factors[*column];
            }
        }
        self
    }
}

/// Explains a null space of dimension `nullity`: first by the principles, then by points shared by bodies that the
/// loops force to move together (`shared`), and finally by computation (`computed`, a basis). The last two are
/// evaluated only if null vectors are missing.
///
/// Only vectors for which `holds` returns true are included.
pub fn explain<T: Written>(
    mechanism: &Mechanism,
    assembled: &Assembled<T>,
    nullity: usize,
    holds: impl Fn(&[T]) -> bool,
    shared: impl FnOnce() -> Vec<(usize, usize, Points<T>)>,
    computed: impl FnOnce() -> Vec<Vec<T>>,
) -> Explanation {
    let width = mechanism.parameter_count();
    let mut work = Work {
        mechanism,
        nullity,
        holds,
        rough: Echelon::new(width, Pivot::Largest),
        accepted: Vec::new(),
        span: None,
        out: Explanation::default(),
    };
    let mut graph = Graph::new(assembled);
    work.accept(&graph, &null_vectors(&graph));
    if !work.is_done() {
        for (a, b, shared) in shared() {
            if !graph.massless[a] && !graph.massless[b] {
                graph.add_shared(a, b, shared);
            }
        }
        graph.spread();
        work.accept(&graph, &null_vectors(&graph));
    }
    work.out.explained = work.out.reasons.len();
    if !work.is_done() {
        let null_space = computed();
        for least in STANDING_OUT {
            for vector in &null_space {
                work.add(Principle::Computation, vector, least);
            }
        }
    }
    work.out
}

fn weight<T: Number>(vector: &[T]) -> f64 {
    vector.iter().map(|x| x.weight()).fold(0.0, f64::max)
}

struct Work<'a, T, H> {
    mechanism: &'a Mechanism,
    nullity: usize,
    holds: H,
    /// Span of the accepted vectors in 31 digits.
    rough: Echelon<Double>,
    accepted: Vec<Vec<T>>,
    /// Span of the accepted vectors in all digits, if needed.
    span: Option<Echelon<T>>,
    out: Explanation,
}

impl<T: Written, H: Fn(&[T]) -> bool> Work<'_, T, H> {
    fn accept(&mut self, graph: &Graph<T>, vectors: &[NullVector<T>]) {
        let blocks = self.mechanism.parameter_blocks();
        for vector in vectors {
            if let Some(p) = vector.parameters(graph, blocks, self.mechanism.parameter_count()) {
                self.add(vector.principle, &p, CLEARLY_NEW);
            }
        }
    }

    /// Returns whether there are as many vectors as the null space has dimensions.
    fn is_done(&self) -> bool {
        self.accepted.len() == self.nullity
    }

    /// Adds a vector to the span if more than the fraction `least` of it is new; returns whether it was added.
    fn stands_out(&mut self, vector: &[T], least: f64) -> bool {
        if least > 0.0 {
            let vector: Vec<Double> = vector.iter().map(|x| x.rounded()).collect();
            let left = self.rough.remainder(&vector);
            return weight(&left) > least * weight(&vector) && self.rough.insert(&left);
        }
        let span = self.span.get_or_insert_with(|| {
            let mut span = Echelon::new(vector.len(), Pivot::Largest);
            for vector in &self.accepted {
                span.insert(vector);
            }
            span
        });
        span.insert(vector)
    }

    /// Accepts a vector that is null and new: at least the fraction `least` of it is outside the span of earlier ones.
    fn add(&mut self, principle: Principle, vector: &[T], least: f64) {
        if !(self.holds)(vector) {
            self.out.unsound += 1;
            return;
        }
        let size = weight(vector);
        if self.is_done() || !self.stands_out(vector, least) {
            return;
        }
        self.accepted.push(vector.to_vec());
        let entries = vector.iter().enumerate().filter(|(_, x)| x.weight() > T::TOLERANCE * size);
        let vector: Vec<(usize, f64)> = entries.map(|(c, x)| (c, x.written())).collect();
        let blocks = self.mechanism.parameter_blocks().iter();
        let touched = blocks.filter(|b| vector.iter().any(|(c, _)| (b.offset..b.offset + b.len).contains(c)));
        let bodies = touched.map(|b| self.mechanism.bodies()[b.body].name.clone()).collect();
        let joint = match principle {
            Principle::SharedPoints(contact) | Principle::AxialSliding(contact) => self.name(contact),
            _ => None,
        };
        self.out.reasons.push(Reason { principle: principle.name(), joint, bodies, kind: principle, vector });
    }

    fn name(&self, contact: Contact) -> Option<String> {
        match contact {
            Contact::Tree(i) => Some(self.mechanism.joints()[self.mechanism.bodies()[i].joint].name.clone()),
            Contact::Loop(l) => Some(self.mechanism.loops()[l].name.clone()),
            Contact::Motion => None,
        }
    }
}
