//! Which null vectors the principles explain, each verified, and which only computation finds.

use std::fmt;

use super::{Contact, Graph, NullVector, Points, Principle, null_vectors};
use crate::identifiability::base_parameters::Written;
use crate::linalg::{Double, Echelon, Number, Pivot};
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

/// Explains a null space of dimension `nullity`: first by the principles, then by points that bodies share because the loops make them
/// move alike (`shared`), and what remains by computation (`computed`, a basis); both are asked for only where something is left.
///
/// No vector comes out for which `holds` is false.
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
    /// The span of the accepted vectors in 31 digits.
    rough: Echelon<Double>,
    accepted: Vec<Vec<T>>,
    /// The same in all digits, where these are needed.
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

    /// Whether there are as many vectors as the null space has dimensions.
    fn is_done(&self) -> bool {
        self.accepted.len() == self.nullity
    }

    /// Adds a vector to the span where more than the part `least` of it is new.
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

    /// Takes a vector that is null and new: at least the part `least` of it lies outside the span of those before.
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
