//! Guaranteed intervals: ranges of all consistent bodies that fit the data within a bound on the noise.
//!
//! If every sample of a force differs from the model by at most `b`, the squared residuals of `n` samples sum to at most `n b²`.
//! With the triangular factor of a channel this is `‖R u − r‖ ≤ b √n` in the unknowns `u`, one norm constraint per channel.
//! Together with `P ⪰ 0` for every body and nonnegative friction, these constraints define a convex set that contains the true
//! parameters. Each end of an interval minimizes a linear cost over this set ([`crate::optimize::linear`]) and has a proven bound:
//! the intervals are outer bounds. A centre of mass is a quotient. It is linear over a cone with `y = x/m` and `s = 1/m` (Charnes
//! and Cooper).

use nalgebra::{DMatrix, DVector, Matrix4};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use schemars::JsonSchema;
use serde::Serialize;

use crate::estimation::consistent::problem::{Consistency, ConsistentProblem};
use crate::estimation::equations::Equations;
use crate::estimation::least_squares::fit::LeastSquares;
use crate::estimation::reduction::summary::Summary;
use crate::mechanism::{BodyKind, Mechanism};
use crate::optimize::Inequality;
use crate::optimize::linear::{LinearConic, NormBound, Semidefinite};
use crate::spatial::PARAMETER_NAMES;
use crate::{Error, Result};

/// Limits on the size of bodies and terms in a search, relative to the estimate. An end is taken from the first search in which
/// the limit is inactive, or in which the end hardly differs from that of the previous search.
const LIMITS: [f64; 3] = [1e2, 1e4, 1e6];

/// Largest relative change of an end between two limits that does not count as unbounded. An unbounded end grows at least with
/// the root of the limit, that is ten times.
const SETTLED: f64 = 1e-2;

/// Largest share of an end by which the gaps of the searches may explain such a change. It is far below the growth of an unbounded
/// end, nine tenths of its size.
const MOST_GAP: f64 = 0.3;

/// Quantities for which intervals are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Masses of the bodies.
    Mass,
    /// Centres of mass.
    Com,
    /// First moments of mass.
    FirstMoment,
    /// Inertias about the origins of the bodies' frames.
    Inertia,
    /// Base parameters.
    Base,
}

/// Kinds of values for which intervals are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IntervalKind {
    /// Base parameter (combination of parameters) or joint term.
    Base,
    /// Mass of a body.
    Mass,
    /// Coordinate of a centre of mass.
    Com,
    /// First moment of mass.
    FirstMoment,
    /// Inertia about the origin of the body's frame.
    Inertia,
    /// Inertia about the centre of mass.
    CentralInertia,
}

impl From<Quantity> for IntervalKind {
    fn from(quantity: Quantity) -> Self {
        match quantity {
            Quantity::Mass => Self::Mass,
            Quantity::Com => Self::Com,
            Quantity::FirstMoment => Self::FirstMoment,
            Quantity::Inertia => Self::Inertia,
            Quantity::Base => Self::Base,
        }
    }
}

/// Bounds on the noise of forces. A bound applies to the forces whose name equals or begins with the given name. An empty name
/// applies to all forces.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NoiseBounds(pub Vec<(String, f64)>);

impl NoiseBounds {
    /// Returns the bound of each of the given forces. The longest matching name has priority.
    pub fn of(&self, forces: &[impl AsRef<str>]) -> Result<Vec<f64>> {
        for (name, bound) in &self.0 {
            if !(*bound > 0.0 && bound.is_finite()) {
                return Err(Error::invalid_value("a noise bound", *bound, "a number above zero"));
            }
            if !forces.iter().any(|f| f.as_ref().starts_with(name.as_str())) {
                let names: Vec<_> = forces.iter().map(AsRef::as_ref).collect();
                return Err(Error::UnknownName(format!(
                    "the noise bounds name the unknown force {name}; there are {}",
                    names.join(", ")
                )));
            }
        }
        let bound = |force: &str| {
            let fitting = self.0.iter().filter(|(name, _)| force.starts_with(name.as_str()));
            fitting
                .max_by_key(|(name, _)| name.len())
                .map(|(_, bound)| *bound)
                .ok_or_else(|| Error::UnknownName(format!("there is no noise bound for {force}")))
        };
        forces.iter().map(|f| bound(f.as_ref())).collect()
    }
}

/// Options of the intervals.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct IntervalOptions {
    /// Quantities to compute intervals for.
    pub quantities: Vec<Quantity>,
    /// Bounds on the noise, after the filter of the log preparation.
    pub noise: NoiseBounds,
}

crate::with_changes!(IntervalOptions);

/// Interval that contains a value for every consistent robot that fits the data within the noise bounds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Interval {
    /// Name of the value as `BODY.NAME`; `cx`, `cy` and `cz` are the centre of mass.
    pub name: String,
    /// Kind of the value. A base parameter can have the name of a plain parameter.
    pub kind: IntervalKind,
    /// Proven lower end; absent if the data do not bound it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    /// Proven upper end; absent if the data do not bound it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
    /// Upper bound on the sum of the distances of the ends from values that are attained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
}

/// Computes intervals from a summary.
pub fn intervals(
    equations: &Equations<'_>,
    summary: &Summary,
    squares: &LeastSquares,
    wanted: &Consistency<'_>,
    options: &IntervalOptions,
) -> Result<Vec<Interval>> {
    let noise = &options.noise;
    // Names of coordinates are accepted too.
    let bounds = noise.of(&equations.force_names());
    let bounds = bounds.or_else(|error| noise.of(&equations.row_names()).map_err(|_| error))?;
    let problem = ConsistentProblem::new(equations, summary, squares, wanted)?;
    let start = problem.solve(wanted, |_, _| true)?.x;
    let set = |limit| FeasibleSet::new(equations, summary, &problem, &start, &bounds, limit);
    let sets = FeasibleSets(LIMITS.iter().map(|&limit| set(limit)).collect::<Result<_>>()?);
    let mut values = Vec::new();
    for &quantity in &options.quantities {
        if quantity == Quantity::Base {
            for (name, combination) in equations.names.iter().zip(&equations.regrouping.combinations) {
                let value = Value::Form { form: combination.clone(), least: f64::NEG_INFINITY };
                values.push((name.clone(), quantity, value));
            }
            continue;
        }
        for (name, offset) in bodies(equations.mechanism()) {
            if quantity == Quantity::Com {
                for (k, axis) in ["cx", "cy", "cz"].iter().enumerate() {
                    let value = Value::Quotient { above: offset + 1 + k, below: offset };
                    values.push((format!("{name}.{axis}"), quantity, value));
                }
                continue;
            }
            let places = match quantity {
                Quantity::Mass => 0..1,
                Quantity::FirstMoment => 1..4,
                _ => 4..10,
            };
            for k in places {
                // Masses and moments of inertia of consistent bodies are not negative.
                let least = if matches!(k, 0 | 4 | 7 | 9) { 0.0 } else { f64::NEG_INFINITY };
                let value = Value::Form { form: vec![(offset + k, 1.0)], least };
                values.push((format!("{name}.{}", PARAMETER_NAMES[k]), quantity, value));
            }
        }
    }
    values.into_par_iter().map(|(name, quantity, value)| sets.interval(name, quantity, &value)).collect()
}

/// Value of which an interval is computed.
enum Value {
    /// Linear form that is known to be at least `least`.
    Form { form: Vec<(usize, f64)>, least: f64 },
    /// `x[above]/x[below]`.
    Quotient { above: usize, below: usize },
}

/// Returns the bodies with ten parameters and the offsets of their parameters.
pub(crate) fn bodies(mechanism: &Mechanism) -> impl Iterator<Item = (&str, usize)> {
    let blocks = mechanism.parameter_blocks().iter().filter(|b| b.len == 10);
    let with_mass = |body: usize| mechanism.bodies()[body].kind != BodyKind::Massless;
    blocks.filter(move |b| with_mass(b.body)).map(|b| (mechanism.bodies()[b.body].name.as_str(), b.offset))
}

/// Set of all parameters and terms that fit the data within the noise bounds.
struct FeasibleSet {
    /// Constraints of the set, without a cost.
    conic: LinearConic,
    /// Index of the first inequality that only keeps the set bounded.
    guards: usize,
    /// Strictly feasible point.
    inside: DVector<f64>,
}

impl FeasibleSet {
    fn new(
        equations: &Equations<'_>,
        summary: &Summary,
        problem: &ConsistentProblem,
        start: &DVector<f64>,
        bounds: &[f64],
        reach: f64,
    ) -> Result<Self> {
        let (conic, width) = (&problem.conic, start.len());
        let mut norms = Vec::new();
        let mut worst = (0.0, 0);
        for (c, ((channel, factor), bound)) in
            equations.channels.iter().zip(&summary.factors).zip(bounds).enumerate()
        {
            if factor.count == 0 {
                continue;
            }
            let n = factor.unknowns();
            let triangle = DMatrix::from_fn(n + 1, n + 1, |i, j| factor.triangle.at(i, j));
            let own = problem.to_unknowns.select_rows(&channel.unknowns);
            let rows = triangle.columns(0, n) * own;
            let target = triangle.column(n).into_owned();
            let radius = bound * (factor.count as f64).sqrt();
            let ratio = (&rows * start - &target).norm() / radius;
            if ratio > worst.0 {
                worst = (ratio, c);
            }
            norms.push(NormBound { rows, target, slope: DVector::zeros(width), radius });
        }
        let lines =
            conic.nonnegative.iter().map(|&j| Inequality { coefficients: vec![(j, 1.0)], least: 0.0 });
        let mut inequalities: Vec<_> = lines.chain(conic.inequalities.iter().cloned()).collect();
        let guards = inequalities.len();
        let mut in_body = vec![false; width];
        for cone in &conic.cones {
            in_body[cone.offset..cone.offset + 10].fill(true);
            // The trace of the pseudo-inertia is the mass plus half of the trace of the inertia.
            let form = [(0, 1.0), (4, 0.5), (7, 0.5), (9, 0.5)].map(|(k, x)| (cone.offset + k, -x));
            let size: f64 = form.iter().map(|&(k, x)| -x * start[k]).sum();
            inequalities.push(Inequality { coefficients: form.to_vec(), least: -reach * size });
        }
        for j in (0..width).filter(|&j| !in_body[j]) {
            let size = reach * (1.0 + start[j].abs());
            inequalities.push(Inequality { coefficients: vec![(j, -1.0)], least: -size });
            inequalities.push(Inequality { coefficients: vec![(j, 1.0)], least: -size });
        }
        let semidefinite = conic.cones.iter().map(|c| Semidefinite::body(c.offset)).collect();
        let conic = LinearConic { cost: DVector::zeros(width), semidefinite, norms, inequalities };
        let inside = conic.feasible(start)?.ok_or_else(|| {
            Error::Infeasible(format!(
                "no physically consistent body explains the data within the noise bounds: {1} needs at least \
                 {0:.3} times its bound",
                worst.0,
                equations.force_names()[worst.1]
            ))
        })?;
        let inside = conic.centred(&inside);
        Ok(Self { conic, guards, inside })
    }

    /// Minimizes a linear form times `sign`.
    fn least(&self, form: &[(usize, f64)], sign: f64) -> Result<End> {
        let mut cost = DVector::zeros(self.inside.len());
        form.iter().for_each(|&(k, x)| cost[k] += sign * x);
        self.end(&self.conic, &self.inside, cost, Clone::clone)
    }

    /// Minimizes `sign x[above]/x[below]`.
    fn least_quotient(&self, above: usize, below: usize, sign: f64) -> Result<End> {
        let fixed = fix_one(homogeneous(&self.conic), below);
        let mass = self.inside[below];
        let inside = (&self.inside / mass).push(mass.recip()).remove_row(below);
        let mut cost = DVector::zeros(inside.len());
        cost[if above > below { above - 1 } else { above }] = sign;
        let original = |y: &DVector<f64>| {
            let all = y.rows(0, y.len() - 1).into_owned().insert_row(below, 1.0);
            all / y[y.len() - 1]
        };
        self.end(&fixed, &inside, cost, original)
    }

    /// Minimizes a linear cost over a set. `original` maps its points to points of this set.
    fn end(
        &self,
        set: &LinearConic,
        inside: &DVector<f64>,
        cost: DVector<f64>,
        original: impl Fn(&DVector<f64>) -> DVector<f64>,
    ) -> Result<End> {
        let problem = LinearConic { cost, ..set.clone() };
        let found = problem.minimize(inside)?;
        let x = original(&found.x);
        let binds = |g: &Inequality| g.slack(&x) < -0.5 * g.least;
        Ok(End {
            bound: found.lower_bound,
            gap: found.value - found.lower_bound,
            at_guard: self.conic.inequalities[self.guards..].iter().any(binds),
        })
    }
}

/// One end of an interval.
#[derive(Clone, Copy)]
struct End {
    /// Proven bound.
    bound: f64,
    /// Distance between the bound and a value that is attained.
    gap: f64,
    /// Whether the optimum is close to a limit that only keeps the set bounded.
    at_guard: bool,
}

impl End {
    /// Returns the end of a value that is known to be at least `least`.
    fn at_least(self, least: f64) -> Self {
        let gap = (self.gap - (least - self.bound).max(0.0)).max(0.0);
        Self { bound: self.bound.max(least), gap, ..self }
    }
}

/// Feasible sets with the limits that keep them bounded, in ascending order.
struct FeasibleSets(Vec<FeasibleSet>);

impl FeasibleSets {
    /// Returns the interval of a value.
    fn interval(&self, name: String, quantity: Quantity, value: &Value) -> Result<Interval> {
        let end = |set: &FeasibleSet, sign: f64| match *value {
            Value::Form { ref form, .. } => set.least(form, sign),
            Value::Quotient { above, below } => set.least_quotient(above, below, sign),
        };
        let least = if let Value::Form { least, .. } = *value { least } else { f64::NEG_INFINITY };
        let lower = self.settled(|set| Ok(end(set, 1.0)?.at_least(least)))?;
        let upper = self.settled(|set| end(set, -1.0))?;
        let gap = [lower, upper].into_iter().flatten().map(|end| end.gap).reduce(|l, u| l + u);
        let (lower, upper) = (lower.map(|end| end.bound), upper.map(|end| -end.bound));
        Ok(Interval { name, kind: quantity.into(), lower, upper, gap })
    }

    /// Returns the end that does not depend on the limits of the sets; `None` if there is none.
    fn settled(&self, end: impl Fn(&FeasibleSet) -> Result<End>) -> Result<Option<End>> {
        let mut before: Option<End> = None;
        for set in &self.0 {
            let found = end(set)?;
            // Variables that the cost does not depend on may be anywhere. An unbounded cost moves with the limit.
            let is_settled = !found.at_guard
                || before.is_some_and(|before| {
                    let size = found.bound.abs().max(before.bound.abs());
                    let gaps = (found.gap + before.gap).min(MOST_GAP * size);
                    (found.bound - before.bound).abs() <= SETTLED * size + gaps
                });
            if is_settled {
                return Ok(Some(found).filter(|e| e.bound.is_finite()));
            }
            before = Some(found);
        }
        Ok(None)
    }
}

/// Returns the cone over a set: the constants multiply an additional, last variable.
fn homogeneous(set: &LinearConic) -> LinearConic {
    let last = set.cost.len();
    let mut out = set.clone();
    out.cost = out.cost.push(0.0);
    for m in &mut out.semidefinite {
        let constant = std::mem::replace(&mut m.constant, Matrix4::zeros());
        if constant != Matrix4::zeros() {
            m.terms.push((last, constant));
        }
    }
    for bound in &mut out.norms {
        let (rows, target) = (bound.rows.clone(), bound.target.clone());
        bound.rows = rows.insert_column(last, 0.0);
        bound.rows.set_column(last, &-&target);
        bound.target.fill(0.0);
        bound.slope = bound.slope.clone().push(bound.radius);
        bound.radius = 0.0;
    }
    for inequality in &mut out.inequalities {
        let least = std::mem::replace(&mut inequality.least, 0.0);
        if least != 0.0 {
            inequality.coefficients.push((last, -least));
        }
    }
    out
}

/// Returns the set with one variable fixed at one and removed.
fn fix_one(mut set: LinearConic, variable: usize) -> LinearConic {
    let shifted = |k: usize| if k > variable { k - 1 } else { k };
    set.cost = set.cost.remove_row(variable);
    for m in &mut set.semidefinite {
        for (_, matrix) in m.terms.iter().filter(|(k, _)| *k == variable) {
            m.constant += matrix;
        }
        m.terms.retain(|(k, _)| *k != variable);
        m.terms.iter_mut().for_each(|(k, _)| *k = shifted(*k));
    }
    for bound in &mut set.norms {
        bound.target -= bound.rows.column(variable);
        bound.radius += bound.slope[variable];
        bound.rows = bound.rows.clone().remove_column(variable);
        bound.slope = bound.slope.clone().remove_row(variable);
    }
    for inequality in &mut set.inequalities {
        let own = inequality.coefficients.iter().filter(|(k, _)| *k == variable);
        inequality.least -= own.map(|(_, a)| a).sum::<f64>();
        inequality.coefficients.retain(|(k, _)| *k != variable);
        inequality.coefficients.iter_mut().for_each(|(k, _)| *k = shifted(*k));
    }
    set
}
