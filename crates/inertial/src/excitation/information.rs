//! Information matrix of a motion and its gradient.

use nalgebra::DMatrix;

use super::columns::{Columns, Row};
use super::states::States;
use crate::dynamics::simd::row_products::{add_products, multiply};
use crate::dynamics::{Four, InverseDynamics, PackedChunk, RegressorGradient, Scratch};
use crate::{Error, Result};

/// Evaluator of information matrices `Σ Yᵀ Σ⁻¹ Y` and their gradients, with the memory of one thread.
#[derive(Debug, Clone)]
pub struct Evaluator<'a> {
    dynamics: &'a InverseDynamics,
    columns: &'a Columns,
    scratch: Scratch,
    scratch_back: Scratch,
    back: RegressorGradient,
    /// Sums of products, for each row of the measurement.
    sums: Vec<Vec<Four>>,
    /// Columns of one row for a chunk of samples, and their products with a matrix.
    row: Vec<Four>,
    product: Vec<Four>,
    weights: Vec<Four>,
}

impl<'a> Evaluator<'a> {
    /// Allocates memory for one mechanism.
    pub fn new(dynamics: &'a InverseDynamics, columns: &'a Columns) -> Self {
        let widest = columns.rows.iter().map(|r| r.channel.unknowns.len()).max().unwrap_or(0);
        Self {
            dynamics,
            columns,
            scratch: dynamics.scratch(),
            scratch_back: dynamics.scratch(),
            back: RegressorGradient::new(dynamics),
            sums: sums(columns),
            row: Vec::new(),
            product: vec![Four::default(); widest],
            weights: Vec::new(),
        }
    }

    /// Computes the information of a motion about the unknowns, with each measured force divided by its noise.
    pub fn information(&mut self, states: &States) -> Result<DMatrix<f64>> {
        self.information_unless(states, &|| false)
    }

    /// Computes the information unless a stop is requested before the last samples.
    pub(super) fn information_unless(
        &mut self,
        states: &States,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<DMatrix<f64>> {
        let mut stopped = false;
        let samples = states.samples(self.dynamics)?;
        let (columns, sums, memory) = (self.columns, &mut self.sums, &mut self.row);
        sums.iter_mut().for_each(|s| s.fill(Four::default()));
        self.dynamics.packed_regressors(&mut self.scratch, &samples, |chunk| {
            stopped = stopped || is_stopped();
            if !stopped {
                add_chunk(columns, &chunk, states, memory, sums);
            }
        })?;
        if stopped {
            return Err(stopped_search());
        }
        Ok(total(columns, &self.sums))
    }

    /// Adds the gradient of `⟨S, information⟩`, with `S` symmetric, with respect to positions (along the velocity coordinates),
    /// velocities and accelerations of every sample; `nv` values each.
    pub fn add_gradient(
        &mut self,
        states: &States,
        s: &DMatrix<f64>,
        gradient: &mut [Vec<f64>; 3],
    ) -> Result<()> {
        self.add_gradient_unless(states, s, gradient, &|| false)
    }

    /// Adds the gradient unless a stop is requested before the last samples.
    pub(super) fn add_gradient_unless(
        &mut self,
        states: &States,
        s: &DMatrix<f64>,
        gradient: &mut [Vec<f64>; 3],
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<()> {
        let dynamics = self.dynamics;
        let samples = states.samples(dynamics)?;
        let (columns, nv, size) = (self.columns, dynamics.nv(), dynamics.layout().len());
        let blocks: Vec<Vec<f64>> = columns
            .rows
            .iter()
            .map(|row| {
                // d⟨S, Σ w² y yᵀ⟩ = 2 w² (S y) · dy.
                let factor = 2.0 * row.weight.powi(2);
                let all = row
                    .channel
                    .unknowns
                    .iter()
                    .flat_map(|&i| row.channel.unknowns.iter().map(move |&j| (i, j)));
                all.map(|(i, j)| factor * s[(i, j)]).collect()
            })
            .collect();
        let (memory, product, weights) = (&mut self.row, &mut self.product, &mut self.weights);
        let (back, scratch_back) = (&mut self.back, &mut self.scratch_back);
        let [gq, gv, ga] = gradient;
        let mut part = [Vec::new(), Vec::new(), Vec::new()];
        let mut failed = Ok(());
        dynamics.packed_regressors(&mut self.scratch, &samples, |chunk| {
            if failed.is_err() {
                return;
            }
            if is_stopped() {
                failed = Err(stopped_search());
                return;
            }
            let groups = chunk.count.div_ceil(4);
            // Entries of columns that are not unknowns stay zero.
            weights.clear();
            weights.resize(groups * size, Four::default());
            for (row, block) in columns.rows.iter().zip(&blocks) {
                gather(row, &chunk, states, memory);
                let n = row.channel.unknowns.len();
                let product = &mut product[..n];
                for (group, y) in memory.chunks_exact(n.max(1)).enumerate() {
                    multiply(n, block, y, product);
                    let weights = &mut weights[group * size..(group + 1) * size];
                    for (&e, x) in row.channel.entries.iter().zip(&*product) {
                        weights[e] = *x;
                    }
                    for (term, x) in row.channel.features.iter().zip(&product[row.channel.entries.len()..]) {
                        let first = chunk.first + 4 * group;
                        for lane in 0..4.min(chunk.first + chunk.count - first) {
                            let at = (first + lane) * nv + row.v;
                            let [dv, da] = term.slopes(states.v[at]);
                            gv[at] += dv * x.0[lane];
                            ga[at] += da * x.0[lane];
                        }
                    }
                }
            }
            let samples = samples.part(chunk.first, chunk.count);
            part.iter_mut().for_each(|p| p.resize(chunk.count * nv, 0.0));
            let [pq, pv, pa] = &mut part;
            if let Err(e) = back.run(dynamics, scratch_back, &samples, weights, [pq, pv, pa]) {
                failed = Err(e);
            }
            for (to, from) in [(&mut *gq, pq), (&mut *gv, pv), (&mut *ga, pa)] {
                let to = &mut to[chunk.first * nv..(chunk.first + chunk.count) * nv];
                to.iter_mut().zip(&*from).for_each(|(to, x)| *to += x);
            }
        })?;
        failed
    }
}

fn stopped_search() -> Error {
    Error::Infeasible("the search was stopped".into())
}

/// Creates sums of products for each row of the measurement, all zero.
pub(super) fn sums(columns: &Columns) -> Vec<Vec<Four>> {
    columns.rows.iter().map(|r| vec![Four::default(); r.channel.unknowns.len().pow(2)]).collect()
}

/// Adds the products of the columns of a chunk to the sums.
pub(super) fn add_chunk(
    columns: &Columns,
    chunk: &PackedChunk<'_>,
    states: &States,
    memory: &mut Vec<Four>,
    sums: &mut [Vec<Four>],
) {
    for (row, sums) in columns.rows.iter().zip(sums) {
        gather(row, chunk, states, memory);
        let n = row.channel.unknowns.len();
        // Lanes after the last sample repeat it and must be excluded.
        let used = chunk.count % 4;
        if used > 0 {
            let last = memory.len() - n;
            memory[last..].iter_mut().for_each(|y| y.0[used..].fill(0.0));
        }
        add_products(n, memory, sums);
    }
}

/// Returns the information matrix of sums of products.
pub(super) fn total(columns: &Columns, sums: &[Vec<Four>]) -> DMatrix<f64> {
    let size = columns.len();
    let mut out = DMatrix::zeros(size, size);
    for (row, sums) in columns.rows.iter().zip(sums) {
        let n = row.channel.unknowns.len();
        for i in 0..n {
            for j in 0..=i {
                let sum = sums[i * n + j].0.iter().sum::<f64>() * row.weight.powi(2);
                let (a, b) = (row.channel.unknowns[i], row.channel.unknowns[j]);
                out[(a, b)] += sum;
                if i != j {
                    out[(b, a)] += sum;
                }
            }
        }
    }
    out
}

/// Gathers the columns of one row, for all groups of a chunk one after the other.
pub(super) fn gather(row: &Row, chunk: &PackedChunk<'_>, states: &States, out: &mut Vec<Four>) {
    let nv = states.v.len() / states.count.max(1);
    out.clear();
    for (group, entries) in chunk.groups().enumerate() {
        out.extend(row.channel.entries.iter().map(|&e| entries[e]));
        let at = |lane: usize| {
            let sample = chunk.first + (4 * group + lane).min(chunk.count - 1);
            sample * nv + row.v
        };
        out.extend(row.channel.features.iter().map(|term| {
            Four(std::array::from_fn(|lane| term.value(states.v[at(lane)], states.a[at(lane)])))
        }));
    }
}
