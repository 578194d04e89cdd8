//! Explanation of null vectors: those that follow from the principles, each verified, and those found by computation
//! only.

use std::fmt;

use super::{Contact, Graph, NullVector, Points, Principle, null_vectors};
use crate::identifiability::base_parameters::PrintedNumber;
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
    /// Returns the explanation with parameters in other units: new parameters are the old ones times `factors`. The largest entry of each
    /// vector becomes one.
    pub fn rescaled(mut self, factors: &[f64]) -> Self {
        for Reason { vector, .. } in &mut self.reasons {
            vector.iter_mut().for_each(|(column, x)| *x *= factors[*column]);
            let largest =
                vector.iter().map(|(_, x)| *x).fold(0.0, |a: f64, x| if x.abs() > a.abs() { x } else { a });
            vector.iter_mut().for_each(|(_, x)| *x /= largest);
        }
        self
    }
}

/// Explains a null space of dimension `nullity`: first by the principles, then by points shared by bodies that the
/// loops force to move together (`shared`), and finally by computation (`computed`, a basis). The last two are
/// evaluated only if null vectors are missing.
///
/// Only vectors for which `holds` returns true are included.
pub fn explain<T: PrintedNumber>(
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
    work.simplify();
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

/// Brings independent vectors to reduced echelon form, with the largest entries as pivots.
fn reduce<T: Number>(vectors: &mut [Vec<T>]) {
    for k in 0..vectors.len() {
        let size = weight(&vectors[k]);
        let largest =
            (0..vectors[k].len()).max_by(|&a, &b| vectors[k][a].weight().total_cmp(&vectors[k][b].weight()));
        let Some((pivot, inverse)) = largest.and_then(|c| Some((c, vectors[k][c].inverse()?))) else {
            continue;
        };
        // Rounding errors must not become entries.
        let row: Vec<T> = vectors[k]
            .iter()
            .map(|&x| if x.weight() > T::TOLERANCE * size { x * inverse } else { T::zero() })
            .collect();
        for (_, other) in vectors.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let (factor, size) = (other[pivot], weight(other));
            for (x, &y) in other.iter_mut().zip(&row) {
                *x -= factor * y;
                if x.weight() <= T::TOLERANCE * size {
                    *x = T::zero();
                }
            }
        }
        vectors[k] = row;
    }
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

impl<T: PrintedNumber, H: Fn(&[T]) -> bool> Work<'_, T, H> {
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
        if self.is_done() || !self.stands_out(vector, least) {
            return;
        }
        self.accepted.push(vector.to_vec());
        let (vector, bodies) = self.entries(vector);
        let joint = match principle {
            Principle::SharedPoints(contact) | Principle::AxialSliding(contact) => self.name(contact),
            _ => None,
        };
        self.out.reasons.push(Reason { principle: principle.name(), joint, bodies, kind: principle, vector });
    }

    /// Returns the nonzero entries of a vector and the names of the bodies that they belong to.
    fn entries(&self, vector: &[T]) -> (Vec<(usize, f64)>, Vec<String>) {
        let size = weight(vector);
        let entries = vector.iter().enumerate().filter(|(_, x)| x.weight() > T::TOLERANCE * size);
        let vector: Vec<(usize, f64)> = entries.map(|(c, x)| (c, x.written())).collect();
        let blocks = self.mechanism.parameter_blocks().iter();
        let touched = blocks.filter(|b| vector.iter().any(|(c, _)| (b.offset..b.offset + b.len).contains(c)));
        let bodies = touched.map(|b| self.mechanism.bodies()[b.body].name.clone()).collect();
        (vector, bodies)
    }

    /// Replaces the vectors with the same principle and bodies by a basis of the same span with few entries.
    fn simplify(&mut self) {
        let mut left: Vec<usize> = (0..self.accepted.len()).collect();
        while let Some(&first) = left.first() {
            let reasons = &self.out.reasons;
            let same = |k: &usize| {
                (reasons[*k].kind, &reasons[*k].bodies) == (reasons[first].kind, &reasons[first].bodies)
            };
            let (group, others): (Vec<usize>, Vec<usize>) = left.into_iter().partition(same);
            left = others;
            let mut vectors: Vec<Vec<T>> =
                group.iter().map(|&k| std::mem::take(&mut self.accepted[k])).collect();
            reduce(&mut vectors);
            for (k, vector) in group.into_iter().zip(vectors) {
                let (entries, bodies) = self.entries(&vector);
                self.out.reasons[k] = Reason { vector: entries, bodies, ..self.out.reasons[k].clone() };
                self.accepted[k] = vector;
            }
        }
    }

    fn name(&self, contact: Contact) -> Option<String> {
        match contact {
            Contact::Tree(i) => Some(self.mechanism.joints()[self.mechanism.bodies()[i].joint].name.clone()),
            Contact::Loop(l) => Some(self.mechanism.loops()[l].name.clone()),
            Contact::Motion => None,
        }
    }
}
