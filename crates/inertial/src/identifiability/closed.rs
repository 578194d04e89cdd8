//! Mechanisms with loops: from an exactly assembled configuration to the certified answer.

use num_traits::Zero;

use super::certificate::{Certificate, Finding, Question};
use super::drng::{Explanation, explain};
use super::extended::Extended;
use super::lifting::{Start, Stuck};
use super::probe::{Inquiry, Lifted, lift, shared_points};
use crate::dynamics::ClosedMechanism;
use crate::linalg::{Double, Echelon, First, Number, Pivot, Rank, Second, Shadow};
use crate::mechanism::{Assembled, Base, ExactAssembly, ExactGeometry};
use crate::{Error, Result};

/// Exact numbers with their values. The orders in time of one motion are rows that look more and more alike: what tells
/// them apart can be as small as 1e-20, so the values have 31 digits.
type Real = Shadow<2_305_843_009_213_692_601, Double>;

/// A joint's target positions are tried at these steps from the assembled ones, in units of 15°: special angles keep
/// special dimensions (parallelograms) exactly special.
const STEPS: [f64; 6] = [0.0, 2.0, -2.0, 3.0, -3.0, 1.0];

/// A loop open by no more than this (rad, or relative to its length) stands closed, whatever the snapping tolerance.
const CLOSED: f64 = 1e-9;

/// Odd directions (of gravity, say) are rounded to 1e-16 where no exact number describes them: what that leaves of a zero is
/// below this.
const ROUNDED: f64 = 1e-12;

/// The exact answer for a mechanism with loops, before it is written down.
#[derive(Debug)]
pub struct Loops<'m> {
    /// The loops, closed numerically.
    pub closed: ClosedMechanism<'m>,
    /// Where the numeric closure stands.
    rough: ExactAssembly,
    /// The tolerance of the geometry; zero where the last digit of every number counts.
    snap: f64,
    /// Where exact curves start; `None` where no exact start was found.
    pub assembly: Option<ExactAssembly>,
    /// The row space modulo the first prime.
    pub rows: Option<Lifted<First>>,
}

impl<'m> Loops<'m> {
    /// Finds a closed, regular configuration in exact numbers, and the row space from there.
    pub fn new(question: &Question<'m>, geometry: &ExactGeometry, snap: f64) -> Result<Self> {
        Self::on(question, geometry, snap, ClosedMechanism::new(question.mechanism)?)
    }

    /// The same on the motion that `closed` follows.
    fn on(
        question: &Question<'m>,
        geometry: &ExactGeometry,
        snap: f64,
        closed: ClosedMechanism<'m>,
    ) -> Result<Self> {
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
            return Ok(Self { closed, rough, snap, assembly: Some(assembly), rows: Some(rows) });
        }
        Ok(Self { closed, rough, snap, assembly: None, rows: None })
    }
}

/// Closed configurations to start from, the most special first.
fn starts<'a>(closed: &'a ClosedMechanism<'_>, gap: f64) -> impl Iterator<Item = Vec<f64>> + 'a {
    let mut workspace = closed.workspace();
    let described = closed.mechanism().assembly();
    let (places, from) = (closed.independent_positions(), closed.assembled());
    // Through a singular configuration a way might lead on to another motion.
    let stays = move |target: &[f64]| {
        let sides = places.iter().zip(target).map(|(&i, x)| (x - described[i]) * (from[i] - described[i]));
        closed.motions().is_empty() || sides.sum::<f64>() > 0.0
    };
    // As the file says, if that is closed but for its rounding: its zeros are exact.
    let stands = closed.residual(&mut workspace, described).is_ok_and(|residual| residual <= gap);
    let unit = 15f64.to_radians();
    let stepped = STEPS.into_iter().filter_map(move |step| {
        let mut q = from.to_vec();
        let target: Vec<f64> = places.iter().map(|&i| ((from[i] / unit).round() + step) * unit).collect();
        (stays(&target) && closed.move_to(&mut workspace, &mut q, &target).is_ok()).then_some(q)
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
    /// What is asked of curves.
    pub(super) fn inquiry(&self) -> Inquiry<'_> {
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
            let (mut finding, explanation) = self.by_extended_precision(loops)?;
            finding.warnings.push(
                "no exact closed configuration was found: the rank rests on numbers of 31 digits".into(),
            );
            return Ok((finding, explanation));
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
        // Where no exact numbers close the loops, the curves are those of a mechanism that differs in the last digit: enough
        // to spoil special dimensions. So are dimensions and directions that a file rounds, if what they reveal is that
        // small. Numbers of 31 digits tell.
        let mut lower_by =
            "independent rows of the regressor along exactly closed motions, modulo two primes of 61 bits"
                .to_owned();
        let blurred = real.rows.gap().kept < loops.snap * loops.snap;
        if blurred || !assembly.to::<First>().is_closed() {
            let found = Extended::new(self, &loops.closed, assembly, loops.snap)?;
            let Rank { rank: numeric, kept, dropped } = found.rank;
            if numeric != rank {
                let (mut finding, explanation) = self.numeric_answer(loops, found);
                finding.warnings.extend(loops.closed.warnings().iter().cloned());
                finding.warnings.push(format!(
                    "the dimensions are special, or nearly so: taken to the last digit the rank is {rank}, and it rests \
                     on numbers of 31 digits"
                ));
                return Ok((finding, explanation));
            }
            lower_by = format!(
                "independent rows of the regressor along closed motions, modulo two primes of 61 bits, and in 31 digits at \
                 random closed configurations (last kept {kept:.1e}, first dropped {dropped:.1e})"
            );
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
        let certificate =
            Certificate { rank_lower: rank, rank_upper: rank, exact: rank == second, lower_by, upper_by };
        let method = if explained { "drng" } else { "exact" };
        let tolerance = if loops.snap > 0.0 { ROUNDED } else { 0.0 };
        let mut finding = self.finish(method, real.rows, certificate, real.velocities, tolerance);
        finding.warnings.extend(loops.closed.warnings().iter().cloned());
        Ok((finding, explanation))
    }

    /// The answer of numbers of 31 digits at random closed configurations, with what the principles explain of it.
    pub fn by_extended_precision(&self, loops: &Loops<'_>) -> Result<(Finding, Explanation)> {
        let found = Extended::new(self, &loops.closed, &loops.rough, loops.snap)?;
        let mut answer = self.numeric_answer(loops, found);
        answer.0.warnings.extend(loops.closed.warnings().iter().cloned());
        Ok(answer)
    }

    /// What to say of the motions that meet in a singular assembly configuration: the `rank` of the one that is followed and, each
    /// in its turn, of the others.
    pub fn on_other_motions(
        &self,
        loops: &Loops<'_>,
        geometry: &ExactGeometry,
        numeric: bool,
        rank: usize,
    ) -> Result<Option<String>> {
        let rank_on = |closed| {
            let loops = Loops::on(self, geometry, loops.snap, closed)?;
            let answer =
                if numeric { self.by_extended_precision(&loops) } else { self.by_lifting(&loops, false) };
            answer?.0.regrouping.map(|r| r.rank())
        };
        let others = loops.closed.other_motions()?.into_iter();
        // One of them may have no answer: sensors at joints that cannot be independent there.
        let told = others.map(|c| rank_on(c).map_or_else(|_| "unknown".to_owned(), |r| r.to_string()));
        let told: Vec<String> = told.collect();
        Ok((!told.is_empty()).then(|| {
            format!(
                "of the motions that meet in the assembly configuration the one that is followed has rank {rank}; not \
                 followed: rank {}",
                told.join(", ")
            )
        }))
    }

    fn numeric_answer(&self, loops: &Loops<'_>, mut found: Extended) -> (Finding, Explanation) {
        let rank = found.rank;
        let by = format!(
            "elimination with full pivoting of the regressor at random closed configurations, in 31 digits: last kept {:.1e}, \
             first dropped {:.1e}, loops closed to {:.1e}",
            rank.kept, rank.dropped, found.open
        );
        let certificate = Certificate {
            rank_lower: rank.rank,
            rank_upper: rank.rank,
            exact: false,
            lower_by: by.clone(),
            upper_by: by,
        };
        let rounded = |rows: &mut dyn Iterator<Item = &[Double]>| -> Vec<Vec<f64>> {
            rows.map(|row| row.iter().map(|&x| x.into()).collect()).collect()
        };
        let null_space = rounded(&mut found.rows.null_space().iter().map(Vec::as_slice));
        let mut rows = Echelon::new(found.rows.width(), Pivot::Largest);
        for row in rounded(&mut found.rows.rows()) {
            rows.insert(&row);
        }
        let assembled = loops.rough.to::<f64>();
        let explanation =
            explain(self.mechanism, &assembled, &null_space, |x| found.annihilates(x), Vec::new);
        let velocities = found.velocities;
        (self.finish("numeric", rows, certificate, velocities, f64::TOLERANCE), explanation)
    }
}

fn dot(a: &[Real], b: &[Real]) -> Real {
    a.iter().zip(b).fold(Real::zero(), |sum, (&x, &y)| sum + x * y)
}
