//! Dynamics regressor nullspace generator (paper 004, algorithms 1 to 4), corrected: null vectors with their reasons.
//!
//! With the pseudo-inertia `N` as parameter and `A` the 4×4 pose of the body, the energies are `T = ½ tr(Ȧ N Ȧᵀ)` and
//! `U = −gᵀ A N e₄`. Three principles follow for points `α`, `β` of a body, `N = αβᵀ + βαᵀ`:
//!
//! 1. **shared points**: if two bodies share `α` and `β`, then `N` on one minus `N` on the other is null, since both
//!    move identically (eqs 60, 62);
//! 2. **fixed points**: if `α` is fixed, `N` is null if its weight does no work: `α` is a direction, or `β` has
//!    constant height (eqs 72–74);
//! 3. **planar rotations**: if one direction `d` is fixed and `x`, `y` complete it to a frame, `xxᵀ − yyᵀ` and `xyᵀ +
//!    yxᵀ` are null (eq. 83).
//!
//! Two more principles apply to a body that turns about a fixed `d` and slides along it: `o xᵀ + x oᵀ` is null for a
//! point `o` that moves only along `d` and `x` of constant height, and it can be transferred to the neighbour on which
//! the body slides (eqs 89, 90).
//!
//! The paper applies principles 2 and 3 to tree joints only. Here they use motion classes propagated over the whole
//! graph, including loop joints ([`Graph`]), so that the result does not depend on where loops were cut. The principles
//! explain null vectors; exact computation determines whether they are complete.

mod explain;
mod graph;
pub mod picture;
mod points;

pub use explain::{Explanation, Reason, explain};
pub use graph::{Class, Contact, Edge, Graph};
pub use points::Points;

use nalgebra::{Matrix4, Vector3, Vector4};

use crate::linalg::Number;
use crate::mechanism::{Assembled, ParameterBlock};
use crate::spatial::{Inertia, PseudoInertia};

/// Reason why a vector is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Principle {
    /// Points shared by two bodies at a joint, or because the loops force them to move together.
    SharedPoints(Contact),
    /// Fixed point of the body.
    FixedPoints,
    /// Planar rotation of the body.
    PlanarRotation,
    /// Point of the body that moves only along its axis of rotation.
    AxialMotion,
    /// Sliding of the body on its neighbour along their common axis of rotation.
    AxialSliding(Contact),
    /// No effect on the measured forces; others change.
    NotMeasured,
    /// No effect in free flight, without external forces.
    FreeFlight,
    /// No effect while the momentum is conserved.
    Conservation,
    /// Exact computation, without a principle.
    Computation,
}

impl Principle {
    /// Returns a short description for the user.
    pub fn name(self) -> &'static str {
        match self {
            Self::SharedPoints(Contact::Motion) => "points shared by the motion",
            Self::SharedPoints(_) => "shared points",
            Self::FixedPoints => "fixed points",
            Self::PlanarRotation => "planar rotation",
            Self::AxialMotion => "motion along the axis",
            Self::AxialSliding(_) => "sliding along the axis",
            Self::NotMeasured => "changes only forces that are not measured",
            Self::FreeFlight => "no effect in free flight",
            Self::Conservation => "no effect at this total momentum",
            Self::Computation => "found by computation",
        }
    }
}

/// Change of parameters that changes no measurement.
#[derive(Debug, Clone)]
pub struct NullVector<T: Number> {
    /// Reason why the vector is null.
    pub principle: Principle,
    /// Bodies whose parameters change, with the change of their pseudo-inertia relative to the world frame at the start
    /// (the paper's spatial assignment).
    pub bodies: [Option<(usize, Matrix4<T>)>; 2],
}

impl<T: Number> NullVector<T> {
    fn on(principle: Principle, node: usize, n: Matrix4<T>) -> Self {
        Self { principle, bodies: [node.checked_sub(1).map(|b| (b, n)), None] }
    }

    fn between(principle: Principle, a: usize, b: usize, n: Matrix4<T>) -> Self {
        Self { principle, bodies: [b.checked_sub(1).map(|b| (b, n)), a.checked_sub(1).map(|a| (a, -n))] }
    }

    /// Returns the change of the full parameter vector; `None` if it changes a body that does not have these
    /// parameters.
    pub fn parameters(&self, graph: &Graph<T>, blocks: &[ParameterBlock], width: usize) -> Option<Vec<T>> {
        let mut out = vec![T::zero(); width];
        for (body, n) in self.bodies.iter().flatten() {
            let block = blocks.iter().find(|b| b.body == *body)?;
            let inverse = graph.poses[*body].inverse().to_matrix();
            let own = PseudoInertia(inverse * n * inverse.transpose());
            let p = Inertia::parameters(&own.to_inertia());
            let (missing, kept) = p.as_slice().split_at(10 - block.len);
            let size = p.iter().map(|x| x.weight()).fold(0.0, f64::max);
            if missing.iter().any(|x| x.weight() > T::TOLERANCE * size) {
                return None;
            }
            out[block.offset..block.offset + block.len].copy_from_slice(kept);
        }
        Some(out)
    }
}

fn product<T: Number>(a: &Vector4<T>, b: &Vector4<T>) -> Matrix4<T> {
    let n = a * b.transpose();
    if a == b { n } else { n + n.transpose() }
}

fn infinite<T: Number>(v: &Vector3<T>) -> Vector4<T> {
    v.push(T::zero())
}

/// Generates null vectors by the principles in floating point. This function is compiled with the library, whereas callers compile the
/// generic ones with their own settings.
pub fn numeric_null_vectors(assembled: &Assembled<f64>) -> Vec<NullVector<f64>> {
    null_vectors(&Graph::new(assembled))
}

/// Generates null vectors by the principles (algorithm 4); they may be linearly dependent.
pub fn null_vectors<T: Number>(graph: &Graph<T>) -> Vec<NullVector<T>> {
    // A hinge gives three vectors; planar rotation of a body up to twelve more.
    let mut out = Vec::with_capacity(8 * graph.classes.len());
    let contacts = graph.contacts();
    for edge in contacts.iter() {
        let points = edge.shared.basis();
        for (i, a) in points.iter().enumerate() {
            for b in &points[i..] {
                let principle = Principle::SharedPoints(edge.contact);
                out.push(NullVector::between(principle, edge.a, edge.b, product(a, b)));
            }
        }
    }
    let mut axes: Vec<(Vector3<T>, Vec<Points<T>>)> = Vec::new();
    let everything = Points::<T>::all();
    for node in (1..graph.classes.len()).filter(|&n| !graph.massless[n]) {
        let class = &graph.classes[node];
        for a in class.fixed.infinite() {
            for b in everything.basis() {
                out.push(NullVector::on(Principle::FixedPoints, node, product(&infinite(&a), b)));
            }
        }
        if let Some(a) = class.fixed.finite() {
            for b in class.level.basis() {
                out.push(NullVector::on(Principle::FixedPoints, node, product(&a, b)));
            }
        }
        let Some(d) = class.planar_axis() else { continue };
        let [x, y] = across(&d);
        let square = d.dot(&d);
        // |y|² = |d|² |x|².
        let difference =
            product(&infinite(&x), &infinite(&x)) * square - product(&infinite(&y), &infinite(&y));
        out.push(NullVector::on(Principle::PlanarRotation, node, difference));
        out.push(NullVector::on(Principle::PlanarRotation, node, product(&infinite(&x), &infinite(&y))));
        let level = [x, y].map(|x| class.level.contains(infinite(&x)).then_some(x));
        if level.iter().all(Option::is_none) {
            continue;
        }
        let place = axes.iter().position(|(e, _)| Points::spanned(&[infinite(e)]).contains(infinite(&d)));
        let place = place.unwrap_or_else(|| {
            axes.push((d, graph.axial(&d)));
            axes.len() - 1
        });
        if let Some(o) = axes[place].1[node].finite() {
            for x in level.iter().flatten() {
                out.push(NullVector::on(Principle::AxialMotion, node, product(&o, &infinite(x))));
            }
        }
    }
    for edge in contacts.iter() {
        let Some((d, points)) = &edge.slide else { continue };
        let turning = |node: usize| {
            let axis = if node == 0 { None } else { graph.classes[node].planar_axis() };
            axis.is_some_and(|a| Points::spanned(&[infinite(&a)]).contains(infinite(d)))
        };
        if let (Some(o), true) = (points.finite(), turning(edge.a) && turning(edge.b)) {
            for x in across(d).iter().filter(|x| edge.shared.contains(infinite(x))) {
                let principle = Principle::AxialSliding(edge.contact);
                out.push(NullVector::between(principle, edge.a, edge.b, product(&o, &infinite(x))));
            }
        }
    }
    out
}

/// Returns two directions that complete `d` to an orthogonal frame.
fn across<T: Number>(d: &Vector3<T>) -> [Vector3<T>; 2] {
    // Coordinate axis with the smallest component along d; never parallel to it.
    let weights = [d.x.weight(), d.y.weight(), d.z.weight()];
    let least = (0..3).fold(0, |best, k| if weights[k] < weights[best] { k } else { best });
    let x = d.cross(&Vector3::ith(least, T::one()));
    [x, d.cross(&x)]
}
