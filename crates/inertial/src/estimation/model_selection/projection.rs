//! Projection of a summary of all candidate columns onto those of one joint model.
//!
//! If the joint model is selected from the data (couplings, Stribeck speeds), a summary contains the columns of every candidate,
//! each in the force of one coordinate. The columns of a model are combinations of these, so its summary is computed from the
//! summary of the candidates without another pass over the data.

use crate::estimation::equations::Equations;
use crate::estimation::joint_model::stribeck::{EXPONENTS, StribeckCurve};
use crate::estimation::joint_model::terms::{Feature, Term};
use crate::estimation::reduction::factor::Lag;
use crate::estimation::reduction::summary::Summary;
use crate::linalg::Triangle;
use crate::{Error, Result};

/// Column as a combination of columns of a channel of the candidates.
type Combination = Vec<(usize, f64)>;

/// New unknowns, and for each channel the columns of those that act in it.
pub(crate) struct Projection {
    unknowns: usize,
    channels: Vec<Vec<(usize, Combination)>>,
}

impl Projection {
    /// Creates the projection onto the unknowns of the selected equations.
    pub fn new(candidates: &Equations<'_>, selected: &Equations<'_>) -> Result<Self> {
        let mut out = Self { unknowns: selected.rank(), channels: Vec::new() };
        for channel in &candidates.channels {
            let base = channel.unknowns[..channel.entries.len()].iter().enumerate();
            out.channels.push(base.map(|(k, &unknown)| (unknown, vec![(k, 1.0)])).collect());
        }
        for (i, &(v, term)) in selected.terms.iter().enumerate() {
            let motor = &selected.motors()[v];
            let feature = Feature::new(term, motor);
            if !out.push(candidates, &crate::estimation::joint_model::terms::rows(term, v, motor), &feature) {
                let name = &selected.names[selected.rank() + i];
                return Err(Error::SummaryMismatch(format!(
                    "the summary does not hold the columns of {name}"
                )));
            }
        }
        Ok(out)
    }

    /// Returns the number of unknowns.
    pub fn len(&self) -> usize {
        self.unknowns
    }

    /// Adds an unknown of a motor on a shaft; returns false if the columns are missing.
    pub fn add(
        &mut self,
        candidates: &Equations<'_>,
        term: Term,
        shaft: &[(usize, f64)],
        stribeck: Option<StribeckCurve>,
    ) -> bool {
        self.push(candidates, shaft, &Feature { stribeck, ..Feature::on(term, shaft) })
    }

    fn push(&mut self, candidates: &Equations<'_>, rows: &[(usize, f64)], feature: &Feature) -> bool {
        let combinations: Option<Vec<Combination>> =
            rows.iter().map(|&(row, _)| express(feature, candidates, row)).collect();
        let Some(combinations) = combinations else { return false };
        for (&(row, factor), combination) in rows.iter().zip(combinations) {
            let scaled = combination.into_iter().map(|(k, x)| (k, factor * x)).collect();
            self.channels[row].push((self.unknowns, scaled));
        }
        self.unknowns += 1;
        true
    }

    /// Returns the factor of all channels together, with the forces as the last column.
    pub fn stacked(&self, summary: &Summary, weights: &[f64]) -> Result<Triangle> {
        let width = self.unknowns + 1;
        let mut out = Triangle::new(width);
        for ((columns, factor), &weight) in self.channels.iter().zip(&summary.factors).zip(weights) {
            let rows = factor.triangle.width() - 1;
            let mut block = vec![0.0; rows * width];
            for (unknown, combination) in columns {
                combine(
                    &factor.triangle,
                    combination,
                    weight,
                    &mut block[unknown * rows..(unknown + 1) * rows],
                );
            }
            combine(&factor.triangle, &[(factor.unknowns(), 1.0)], weight, &mut block[(width - 1) * rows..]);
            out.add_rows(&mut block, rows)?;
        }
        Ok(out)
    }
}

/// Adds a combination of columns of a factor to `out`.
fn combine(factor: &Triangle, combination: &[(usize, f64)], weight: f64, out: &mut [f64]) {
    for &(k, x) in combination {
        out.iter_mut().enumerate().for_each(|(i, o)| *o += weight * x * factor.at(i, k));
    }
}

impl Summary {
    /// Projects a summary of equations with more joint terms onto equations with fewer.
    pub fn project(&self, candidates: &Equations<'_>, selected: &Equations<'_>) -> Result<Self> {
        self.check(candidates)?;
        let projection = Projection::new(candidates, selected)?;
        let mut out = Self::empty(selected);
        out.samples = self.samples;
        for (((columns, factor), channel), new) in
            projection.channels.iter().zip(&self.factors).zip(&selected.channels).zip(&mut out.factors)
        {
            (new.count, new.independent) = (factor.count, factor.independent);
            new.clipped = factor.clipped;
            let (rows, n) = (factor.triangle.width(), factor.unknowns());
            let forces = [vec![(n, 1.0)], vec![(n + 1, 1.0)]];
            let mut block = vec![0.0; rows * (channel.unknowns.len() + 2)];
            let combinations = columns.iter().map(|(_, combination)| combination).chain(&forces);
            for (combination, out) in combinations.zip(block.chunks_exact_mut(rows)) {
                combine(&factor.triangle, combination, 1.0, out);
            }
            new.triangle.add_rows(&mut block, rows)?;
            // Columns of the unknowns, then the force.
            let combinations: Vec<&[(usize, f64)]> =
                columns.iter().map(|(_, combination)| &combination[..]).chain([&forces[0][..]]).collect();
            new.blocks = factor.blocks.iter().map(|block| block.project(n + 1, &combinations)).collect();
            new.left_out = factor.left_out.project(n + 1, &combinations);
            for (new, lag) in new.lags.iter_mut().zip(&factor.lags) {
                *new = Lag { gram: lag.gram.project(n + 1, &combinations), ..*lag };
            }
        }
        Ok(out)
    }
}

/// Expresses a feature in the force of a coordinate as a combination of the columns of the channel of the candidates.
fn express(feature: &Feature, candidates: &Equations<'_>, row: usize) -> Option<Combination> {
    let channel = &candidates.channels[row];
    let first = channel.entries.len();
    let find = |wanted: &Feature| channel.features.iter().position(|(_, f)| f == wanted).map(|k| first + k);
    if let Some(k) = find(feature) {
        return Some(vec![(k, 1.0)]);
    }
    match (feature.term, feature.stribeck) {
        (Term::Viscous | Term::RotorInertia, _) => {
            let single = |&(v, factor): &(usize, f64)| {
                find(&Feature::on(feature.term, &[(v, 1.0)])).map(|k| (k, factor))
            };
            feature.shaft.iter().map(single).collect()
        }
        (Term::Coulomb, _) => {
            let reversed: Vec<_> = feature.shaft.iter().map(|&(v, factor)| (v, -factor)).collect();
            find(&Feature::on(Term::Coulomb, &reversed)).map(|k| vec![(k, -1.0)])
        }
        (Term::Stribeck, Some(stribeck)) => {
            let nodes: Vec<StribeckCurve> = StribeckCurve::nodes(&EXPONENTS).collect();
            let at = |(k, weight): (usize, f64)| {
                find(&Feature { stribeck: Some(nodes[k]), ..feature.clone() }).map(|column| (column, weight))
            };
            stribeck.interpolated().into_iter().map(at).collect()
        }
        _ => None,
    }
}
