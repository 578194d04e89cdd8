//! Which null vectors the principles explain, each verified exactly, and which only computation finds.

use num_traits::Zero;

use super::{Contact, Graph, NullVector, Principle, null_vectors};
use crate::identifiability::base_parameters::Written;
use crate::identifiability::certificate::Real;
use crate::identifiability::lifting::{Start, Stuck};
use crate::identifiability::probe::{Lifted, shared_points};
use crate::linalg::{Echelon, First, Number, Pivot};
use crate::mechanism::{Assembled, Mechanism};

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

/// All null vectors of a mechanism, each with its reason.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Explanation {
    /// Independent null vectors that span the null space.
    pub reasons: Vec<Reason>,
    /// How many of them the principles explain (they come first).
    pub explained: usize,
    /// Vectors that a principle proposed and exact computation refused: always zero, or there is a bug.
    pub unsound: usize,
}

/// Explains the null space of the row space `rows` (modulo the first prime) of an assembled mechanism.
pub fn explain(
    mechanism: &Mechanism,
    assembled: &Assembled<Real>,
    start: &Start<'_, Real>,
    rows: &Lifted<First>,
    null_space: &[Vec<Real>],
) -> Result<Explanation, Stuck> {
    let mut work = Work {
        mechanism,
        rows: &rows.rows,
        span: Echelon::new(mechanism.parameter_count(), Pivot::First),
        out: Explanation::default(),
    };
    let mut graph = Graph::new(assembled);
    work.accept(&graph, &null_vectors(&graph));
    if work.span.rank() < null_space.len() {
        // What joints alone do not show: bodies that the loops make move alike.
        for (a, b, shared) in shared_points(start, rows.order + 4, 7)? {
            if !graph.massless[a] && !graph.massless[b] {
                graph.add_shared(a, b, shared);
            }
        }
        graph.spread();
        work.accept(&graph, &null_vectors(&graph));
    }
    work.out.explained = work.out.reasons.len();
    for vector in null_space {
        work.add(Principle::Computation, vector);
    }
    Ok(work.out)
}

struct Work<'a> {
    mechanism: &'a Mechanism,
    rows: &'a Echelon<First>,
    span: Echelon<First>,
    out: Explanation,
}

impl Work<'_> {
    /// Takes the vectors that are null (all of them, or there is a bug) and new.
    fn accept(&mut self, graph: &Graph<Real>, vectors: &[NullVector<Real>]) {
        let blocks = self.mechanism.parameter_blocks();
        for vector in vectors {
            if let Some(p) = vector.parameters(graph, blocks, self.mechanism.parameter_count()) {
                self.add(vector.principle, &p);
            }
        }
    }

    fn add(&mut self, principle: Principle, vector: &[Real]) {
        let exact: Vec<First> = vector.iter().map(|x| x.exact).collect();
        if self.rows.rows().any(|row| !dot(row, &exact).is_zero()) {
            self.out.unsound += 1;
            return;
        }
        if !self.span.insert(&exact) {
            return;
        }
        let vector: Vec<(usize, f64)> = vector
            .iter()
            .enumerate()
            .filter(|(_, x)| x.weight() > 0.0)
            .map(|(c, x)| (c, x.written()))
            .collect();
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

fn dot(a: &[First], b: &[First]) -> First {
    a.iter().zip(b).fold(First::zero(), |sum, (&x, &y)| sum + x * y)
}
