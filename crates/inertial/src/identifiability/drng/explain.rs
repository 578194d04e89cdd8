//! Which null vectors the principles explain, each verified, and which only computation finds.

use std::fmt;

use super::{Contact, Graph, NullVector, Points, Principle, null_vectors};
use crate::identifiability::base_parameters::Written;
use crate::linalg::{Echelon, Number, Pivot};
use crate::mechanism::{Assembled, Mechanism};

/// How far (relative to its size) a proposed vector must stand out from those before it: geometry that holds to rounding proposes the
/// same vector several times, each a little different.
const CLEARLY_NEW: f64 = 1e-7;

/// How far computed null vectors must stand out, the clearest first; the last accepts all that arithmetic tells apart.
const STANDING_OUT: [f64; 4] = [1e-2, 1e-5, 1e-8, 0.0];

/// One independent null vector and its reason.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Reason {
    /// The principle, in a few words.
    pub principle: &'static str,
    /// The joint (or loop joint) it acts at, where it is one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joint: Option<String>,
    /// The bodies whose parameters it changes.
    pub bodies: Vec<String>,
    /// The principle itself.
    #[serde(skip)]
    pub kind: Principle,
    /// The null vector by column.
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
pub struct Explanation {
    /// Independent null vectors that span the null space.
    pub reasons: Vec<Reason>,
    /// How many of them the principles explain (they come first).
    pub explained: usize,
    /// Vectors that a principle proposed and computation refused: none, or there is a bug.
    pub unsound: usize,
}

impl Explanation {
    /// The same with parameters in other units: those of the vectors times `factors` are the new ones.
    pub fn rescaled(mut self, factors: &[f64]) -> Self {
        for reason in &mut self.reasons {
            for (column, x) in &mut reason.vector {
                *x *= factors[*column];
            }
        }
        self
    }
}

/// Explains a null space: first by the principles, then by points that bodies share because the loops make them move
/// alike (`shared`, asked for only where something is left), and what remains by computation.
///
/// No vector comes out for which `holds` is false.
pub fn explain<T: Written>(
    mechanism: &Mechanism,
    assembled: &Assembled<T>,
    null_space: &[Vec<T>],
    holds: impl Fn(&[T]) -> bool,
    shared: impl FnOnce() -> Vec<(usize, usize, Points<T>)>,
) -> Explanation {
    let width = mechanism.parameter_count();
    let span = Echelon::new(width, Pivot::Largest);
    let mut work = Work { mechanism, nullity: null_space.len(), holds, span, out: Explanation::default() };
    let mut graph = Graph::new(assembled);
    work.accept(&graph, &null_vectors(&graph));
    if work.span.rank() < null_space.len() {
        for (a, b, shared) in shared() {
            if !graph.massless[a] && !graph.massless[b] {
                graph.add_shared(a, b, shared);
            }
        }
        graph.spread();
        work.accept(&graph, &null_vectors(&graph));
    }
    work.out.explained = work.out.reasons.len();
    for least in STANDING_OUT {
        if work.span.rank() == null_space.len() {
            break;
        }
        for vector in null_space {
            work.add(Principle::Computation, vector, least);
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
    span: Echelon<T>,
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

    /// Takes a vector that is null and new: at least the part `least` of it lies outside the span of those before.
    fn add(&mut self, principle: Principle, vector: &[T], least: f64) {
        if !(self.holds)(vector) {
            self.out.unsound += 1;
            return;
        }
        let size = weight(vector);
        if self.span.rank() == self.nullity {
            return;
        }
        let left = self.span.remainder(vector);
        if weight(&left) <= least * size || !self.span.insert(&left) {
            return;
        }
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
