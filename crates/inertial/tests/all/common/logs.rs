//! Simulated logs with known parameters.

#![allow(clippy::unwrap_used)]

use inertial::dynamics::{InverseDynamics, Samples};
use inertial::estimation::{Equations, JointTerms, Measurements, Summary, Term};
use inertial::mechanism::{Base, BuildOptions, Mechanism, builtin};

use super::{Rng, reference_rnea};

pub const FRICTION: JointTerms = {
    let mut terms = JointTerms::friction();
    terms.offset = true;
    terms
};

pub fn model(name: &str) -> Mechanism {
    let mut builder = builtin::get(name).unwrap();
    // Tests that need rotor inertias set them themselves.
    builder.joints.iter_mut().for_each(|j| j.dynamics.armature = 0.0);
    builder.build(&BuildOptions::default()).unwrap()
}

/// Log of random states with the forces of the true parameters.
pub struct Log {
    pub q: Vec<f64>,
    pub v: Vec<f64>,
    pub a: Vec<f64>,
    pub tau: Vec<f64>,
    pub count: usize,
}

/// Returns the true value of a joint term.
pub fn truth_of(term: Term, coordinate: usize) -> f64 {
    let k = 1.0 + coordinate as f64;
    match term {
        Term::Viscous => 0.3 * k,
        Term::Coulomb => 0.5 / k,
        Term::Offset => 0.2 - 0.1 * k,
        Term::RotorInertia => 0.05 * k,
        _ => 0.0,
    }
}

pub fn simulate(mechanism: &Mechanism, terms: JointTerms, count: usize, rng: &mut Rng) -> Log {
    let nv = mechanism.nv();
    let first = if mechanism.base() == Base::Floating { 6 } else { 0 };
    let mut log = Log { q: vec![], v: vec![], a: vec![], tau: vec![], count };
    for _ in 0..count {
        let q = rng.positions(mechanism);
        let (v, a) = (rng.values(nv, 2.0), rng.values(nv, 5.0));
        let mut tau = reference_rnea(mechanism, &q, &v, &a);
        for i in first..nv {
            if terms.viscous {
                tau[i] += truth_of(Term::Viscous, i) * v[i];
            }
            if terms.coulomb {
                tau[i] += truth_of(Term::Coulomb, i) * v[i].signum();
            }
            if terms.offset {
                tau[i] += truth_of(Term::Offset, i);
            }
            if terms.rotor_inertia {
                tau[i] += truth_of(Term::RotorInertia, i) * a[i];
            }
        }
        log.q.extend(q);
        log.v.extend(v);
        log.a.extend(a);
        log.tau.extend(tau);
    }
    log
}

impl Log {
    pub fn summary(&self, equations: &Equations<'_>) -> Summary {
        self.part(equations, 0, self.count)
    }

    pub fn part(&self, equations: &Equations<'_>, first: usize, count: usize) -> Summary {
        let dynamics = InverseDynamics::new(equations.mechanism());
        let (nq, nv, end) = (dynamics.nq(), dynamics.nv(), first + count);
        let (v, a) = (&self.v[first * nv..end * nv], &self.a[first * nv..end * nv]);
        let samples = Samples::new(&dynamics, count, &self.q[first * nq..end * nq], v, a).unwrap();
        Summary::new(equations, &Measurements::new(samples, &self.tau[first * nv..end * nv])).unwrap()
    }
}

pub fn true_values(equations: &Equations<'_>) -> Vec<f64> {
    let mut out = equations.regrouping.regroup(&equations.mechanism().parameters()).unwrap();
    out.extend(equations.terms.iter().map(|&(v, term)| truth_of(term, v)));
    out
}

pub fn normal(rng: &mut Rng) -> f64 {
    // Box-Muller transform.
    let (u, w) = (rng.range(1e-300, 1.0), rng.range(0.0, std::f64::consts::TAU));
    (-2.0 * u.ln()).sqrt() * w.cos()
}
