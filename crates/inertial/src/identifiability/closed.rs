//! Mechanisms with loops: from an exactly assembled configuration to the certified answer.

use nalgebra::{DMatrix, DVector};
use num_traits::Zero;

use super::certificate::{Certificate, Finding, Question, Real};
use super::drng::{Explanation, explain};
use super::lifting::{Start, Stuck};
use super::probe::{Inquiry, Lifted, lift, shared_points};
use super::rpna::Regime;
use crate::dynamics::{ClosedMechanism, ClosedWorkspace, gravity_regressor};
use crate::linalg::{Echelon, First, Number, Pivot, Rank, Second, SplitMix, Svd};
use crate::mechanism::{Assembled, Base, ExactAssembly, ExactGeometry};
use crate::{Error, Result};

/// A joint's target positions are tried at these steps from the assembled ones, in units of 15°: special angles keep
/// special dimensions (parallelograms) exactly special.
const STEPS: [f64; 6] = [0.0, 2.0, -2.0, 3.0, -3.0, 1.0];

/// A loop open by no more than this (rad, or relative to its length) stands closed, whatever the snapping tolerance.
const CLOSED: f64 = 1e-9;

/// Singular values below this, relative to the largest, count as zero where closures are solved to about 1e-14.
const NUMERIC_TOLERANCE: f64 = 1e-9;

/// Where rounded geometry keeps the loops from closing, what they leave open enters the regressor magnified.
const MAGNIFIED: f64 = 100.0;

/// The exact answer for a mechanism with loops, before it is written down.
#[derive(Debug)]
pub struct Loops<'m> {
    /// The loops, closed numerically.
    pub closed: ClosedMechanism<'m>,
    /// Where the numeric closure stands.
    rough: ExactAssembly,
    /// Where exact curves start; `None` where no exact start was found.
    pub assembly: Option<ExactAssembly>,
    /// The row space modulo the first prime.
    pub rows: Option<Lifted<First>>,
}

impl<'m> Loops<'m> {
    /// Finds a closed, regular configuration in exact numbers, and the row space from there.
    pub fn new(question: &Question<'m>, geometry: &ExactGeometry, snap: f64) -> Result<Self> {
        let closed = ClosedMechanism::new(question.mechanism)?;
        for (v, _) in question.experiment.torques.iter().enumerate().filter(|(_, t)| **t) {
            if !closed.independent().contains(&v) {
                let name = &question.mechanism.velocity_names()[v];
                return Err(Error::Numeric(format!(
                    "joint {name} follows from the loops; sensors count at the independent joints ({})",
                    closed.independent_names().join(", ")
                )));
            }
        }
        let rough = ExactAssembly::new(question.mechanism, geometry, closed.assembled(), snap);
        let found = starts(&closed, snap.max(CLOSED)).find_map(|q| {
            let assembly = ExactAssembly::new(question.mechanism, geometry, &q, snap);
            let rows = row_space::<First>(question, &closed, &assembly, Pivot::First).ok()?;
            Some((assembly, rows))
        });
        if let Some((assembly, rows)) = found {
            return Ok(Self { closed, rough, assembly: Some(assembly), rows: Some(rows) });
        }
        Ok(Self { closed, rough, assembly: None, rows: None })
    }
}

/// Closed configurations to start from, the most special first.
fn starts<'a>(closed: &'a ClosedMechanism<'_>, gap: f64) -> impl Iterator<Item = Vec<f64>> + 'a {
    let mut workspace = closed.workspace();
    let described = closed.mechanism().assembly();
    // As the file says, if that is closed but for its rounding: its zeros are exact.
    let stands = closed.residual(&mut workspace, described).is_ok_and(|residual| residual <= gap);
    let unit = 15f64.to_radians();
    let stepped = STEPS.into_iter().filter_map(move |step| {
        let mut q = closed.assembled().to_vec();
        let target: Vec<f64> =
            closed.independent_positions().iter().map(|&i| ((q[i] / unit).round() + step) * unit).collect();
        closed.move_to(&mut workspace, &mut q, &target).ok().map(|_| q)
    });
    let described = stands.then(|| described.to_vec());
    described.into_iter().chain(stepped).chain(std::iter::once(closed.assembled().to_vec()))
}

/// The row space from one configuration, if it is regular.
fn row_space<T: Number>(
    question: &Question<'_>,
    closed: &ClosedMechanism<'_>,
    assembly: &ExactAssembly,
    pivot: Pivot,
) -> Result<Lifted<T>, Stuck> {
    let assembled = assembly.to::<T>();
    lift(&start(closed, &assembled)?, question.inquiry(), pivot, question.seed)
}

/// The start of exact curves, with the same independent coordinates as the numeric closure.
fn start<'a, T: Number>(
    closed: &ClosedMechanism<'_>,
    assembled: &'a Assembled<T>,
) -> Result<Start<'a, T>, Stuck> {
    let mut dependent = vec![true; assembled.nv];
    closed.independent().iter().for_each(|&v| dependent[v] = false);
    let start = Start::new(assembled, &dependent)?;
    if start.mobility() == closed.dof() { Ok(start) } else { Err(Stuck::Singular) }
}

impl Question<'_> {
    fn inquiry(&self) -> Inquiry<'_> {
        Inquiry {
            blocks: self.mechanism.parameter_blocks(),
            experiment: self.experiment,
            floating: self.mechanism.base() == Base::Floating,
        }
    }

    /// The answer for a mechanism with loops: exact where an exact start was found, otherwise numeric. With `explained`,
    /// the null vectors with their reasons.
    pub fn by_lifting(&self, loops: &Loops<'_>, explained: bool) -> Result<(Finding, Explanation)> {
        let (Some(assembly), Some(first)) = (&loops.assembly, &loops.rows) else {
            return self.by_closed_values(loops);
        };
        let rank = first.rows.rank();
        let again =
            |stuck: Stuck| Error::Numeric(format!("the loops close modulo one prime only ({stuck:?})"));
        let second =
            row_space::<Second>(self, &loops.closed, assembly, Pivot::First).map_err(again)?.rows.rank();
        let assembled = assembly.to::<Real>();
        let start = start(&loops.closed, &assembled).map_err(again)?;
        let real = lift(&start, self.inquiry(), Pivot::Largest, self.seed).map_err(again)?;
        if real.rows.rank() != rank {
            return Err(Error::Numeric(
                "curves of different seeds give different ranks: try another seed".into(),
            ));
        }
        let mut explanation = Explanation::default();
        let mut upper_by = format!(
            "null vectors that hold along fresh closed motions to order {} in time, modulo two primes of 61 bits",
            first.order
        );
        if explained {
            let null_space = real.rows.clone().null_space();
            let holds = |x: &[Real]| real.rows.rows().all(|row| dot(row, x).is_zero());
            let shared = || shared_points(&start, first.order + 4, self.seed).unwrap_or_default();
            explanation = explain(self.mechanism, &assembled, &null_space, holds, shared);
            upper_by = format!(
                "{} null vectors by geometric principles and {} by computation, which {upper_by}",
                explanation.explained,
                explanation.reasons.len() - explanation.explained
            )
            .replacen("which null vectors that hold", "which all hold", 1);
        }
        let certificate = Certificate {
            rank_lower: rank,
            rank_upper: rank,
            exact: rank == second,
            lower_by:
                "independent rows of the regressor along exactly closed motions, modulo two primes of 61 bits"
                    .into(),
            upper_by,
        };
        let method = if explained { "drng" } else { "exact" };
        let mut finding = self.finish(method, real.rows, certificate, real.velocities);
        finding.warnings.extend(loops.closed.warnings().iter().cloned());
        if let Ok(sampled) = numeric_rank(self, &loops.closed)
            && sampled.rank < rank
        {
            finding.warnings.push(format!(
                "sampled in floating point the rank is {} (last kept {:.1e}, first dropped {:.1e}), exactly it is {rank}: \
                 the geometry is nearly special",
                sampled.rank, sampled.kept, sampled.dropped
            ));
        }
        Ok((finding, explanation))
    }

    /// The answer of singular values at random closed configurations, with what the principles explain of it.
    pub fn by_closed_values(&self, loops: &Loops<'_>) -> Result<(Finding, Explanation)> {
        let matrix = numeric_rows(self, &loops.closed)?;
        let svd = Svd::new(&matrix)?;
        let tolerance = tolerance(&loops.closed);
        let rank = svd.rank(tolerance);
        let by = format!(
            "singular values of the regressor at random closed configurations: last kept {:.1e}, first dropped {:.1e}",
            rank.kept, rank.dropped
        );
        let certificate = Certificate {
            rank_lower: rank.rank,
            rank_upper: rank.rank,
            exact: false,
            lower_by: by.clone(),
            upper_by: by,
        };
        let mut null = Echelon::new(matrix.ncols(), Pivot::Largest);
        for column in svd.null_space(rank.rank).column_iter() {
            null.insert(column.as_slice());
        }
        let mut rows = Echelon::new(matrix.ncols(), Pivot::Largest);
        null.null_space().iter().for_each(|row| {
            rows.insert(row);
        });
        let assembled = loops.rough.to::<f64>();
        let holds = |x: &[f64]| {
            let x = DVector::from_column_slice(x);
            (&matrix * &x).amax() <= tolerance * x.norm()
        };
        let null_space: Vec<Vec<f64>> = null.rows().map(<[f64]>::to_vec).collect();
        let explanation = explain(self.mechanism, &assembled, &null_space, holds, Vec::new);
        let bodies = self.mechanism.bodies().len();
        let mut finding = self.finish("numeric", rows, certificate, vec![0; bodies]);
        finding.warnings.extend(loops.closed.warnings().iter().cloned());
        finding
            .warnings
            .push("no exact closed configuration was found: the rank rests on singular values alone".into());
        Ok((finding, explanation))
    }
}

/// What counts as zero among singular values: it follows from how well the loops close.
fn tolerance(closed: &ClosedMechanism<'_>) -> f64 {
    let open = closed.residual(&mut closed.workspace(), closed.assembled()).unwrap_or(0.0);
    NUMERIC_TOLERANCE.max(MAGNIFIED * open).max(MAGNIFIED * closed.rank().dropped)
}

/// Rank by singular values at random closed configurations, with its margin.
pub fn numeric_rank(question: &Question<'_>, closed: &ClosedMechanism<'_>) -> Result<Rank> {
    Ok(Svd::new(&numeric_rows(question, closed)?)?.rank(tolerance(closed)))
}

/// Rows of the energy regressor at random closed configurations, each of unit length.
fn numeric_rows(question: &Question<'_>, closed: &ClosedMechanism<'_>) -> Result<DMatrix<f64>> {
    let mechanism = question.mechanism;
    let floating = mechanism.base() == Base::Floating;
    if !question.experiment.is_complete(floating) {
        return Err(Error::Numeric(
            "without an exact closed configuration only complete measurements can be analysed".into(),
        ));
    }
    let width = mechanism.parameter_count();
    // More rows than columns, so that the smallest singular values are not small by accident.
    let count = 2 * width + 60;
    let mut matrix = DMatrix::zeros(count, width);
    let mut walk = Walk::new(closed, question.seed);
    let mut row = vec![0.0; width];
    let heavy = question.experiment.regime != Regime::Kinetic && mechanism.gravity().norm() > 0.0;
    let moving = question.experiment.regime != Regime::Static;
    for r in 0..count {
        walk.step()?;
        walk.row(moving && (r % 2 == 0 || !heavy), &mut row)?;
        let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        if norm > 0.0 {
            row.iter().enumerate().for_each(|(c, x)| matrix[(r, c)] = x / norm);
        }
    }
    Ok(matrix)
}

/// A random walk on the closed configurations.
struct Walk<'a, 'm> {
    closed: &'a ClosedMechanism<'m>,
    workspace: ClosedWorkspace,
    source: SplitMix,
    q: Vec<f64>,
    rates: Vec<f64>,
    v: Vec<f64>,
}

impl<'a, 'm> Walk<'a, 'm> {
    fn new(closed: &'a ClosedMechanism<'m>, seed: u64) -> Self {
        Self {
            closed,
            workspace: closed.workspace(),
            source: SplitMix::new(seed),
            q: closed.assembled().to_vec(),
            rates: vec![0.0; closed.dof()],
            v: vec![0.0; closed.mechanism().nv()],
        }
    }

    fn random_velocity(&mut self) -> Result<()> {
        self.rates.iter_mut().for_each(|r| *r = f64::random(&mut self.source));
        self.closed.velocities(&mut self.workspace, &self.q, &self.rates, &mut self.v)
    }

    /// A step of at most a fifth of a radian (or of a metre); refused where the loops do not close there.
    fn step(&mut self) -> Result<()> {
        self.random_velocity()?;
        let fastest = self.v.iter().fold(1.0f64, |m, v| m.max(v.abs()));
        let step: Vec<f64> = self.v.iter().map(|v| 0.2 * v / fastest).collect();
        let mut trial = self.q.clone();
        self.closed.mechanism().integrate(&mut trial, &step);
        if self.closed.close(&mut self.workspace, &mut trial).is_ok() {
            self.q = trial;
        }
        Ok(())
    }

    /// The kinetic energy's row, or that of gravity's power, at a random velocity.
    fn row(&mut self, kinetic: bool, out: &mut [f64]) -> Result<()> {
        self.random_velocity()?;
        if kinetic {
            return self.closed.kinetic_energy_regressor(&mut self.workspace, &self.q, &self.rates, out);
        }
        let mut all = vec![0.0; self.v.len() * out.len()];
        gravity_regressor(self.closed.mechanism(), &mut self.workspace.tree, &self.q, &mut all)?;
        out.fill(0.0);
        for (row, v) in all.chunks_exact(out.len()).zip(&self.v) {
            out.iter_mut().zip(row).for_each(|(o, y)| *o += v * y);
        }
        Ok(())
    }
}

fn dot(a: &[Real], b: &[Real]) -> Real {
    a.iter().zip(b).fold(Real::zero(), |sum, (&x, &y)| sum + x * y)
}
