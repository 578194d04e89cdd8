//! Construction of equations without redundant joint terms, that is terms that act exactly like base parameters.

use crate::Result;
use crate::estimation::equations::{Effect, Equations};
use crate::estimation::joint_model::terms::{JointModel, Term};
use crate::estimation::least_squares::fit::information;
use crate::estimation::least_squares::solution::Solution;
use crate::estimation::reduction::measurements::Measurements;
use crate::estimation::reduction::summary::Summary;
use crate::identifiability::Measured;
use crate::linalg::{SplitMix, Triangle};
use crate::mechanism::Mechanism;

impl<'m> Equations<'m> {
    /// Creates the equations of joint torques (and of the wrench of a floating base); `snap` as for
    /// [`analyze`](crate::identifiability::analyze).
    ///
    /// For mechanisms with loops, the forces and the joint terms are those of the independent coordinates.
    pub fn new(mechanism: &'m Mechanism, model: impl Into<JointModel>, snap: f64) -> Result<Self> {
        Self::measuring(mechanism, model, snap, Measured::JointTorques)
    }

    /// Creates the equations for the case that the wrench between a fixed base and the world may be measured too.
    pub fn measuring(
        mechanism: &'m Mechanism,
        model: impl Into<JointModel>,
        snap: f64,
        measured: Measured,
    ) -> Result<Self> {
        let mut out = Self::with_all_terms_measuring(mechanism, model, snap, measured)?;
        let model = out.joint_model();
        if model.search_couplings || model.stribeck || model.auto.any() {
            out.widen();
        } else {
            out.absorb_terms()?;
        }
        Ok(out)
    }
}

impl Equations<'_> {
    /// Removes rotor inertias that act exactly like other unknowns (such as that of a joint on the ground, which is part of the
    /// inertia of its link about the axis; on a vertical slide, like a mass and an offset). Linear dependence is tested on random motion.
    ///
    /// The analysis treats geometry as special within the snapping tolerance. A column that is dependent there differs from the
    /// other columns by about that tolerance here, where all values are used exactly. Independent columns differ by a hundredth or
    /// more.
    pub(crate) fn absorb_terms(&mut self) -> Result<()> {
        let tolerance = (10.0 * self.snap()).clamp(1e-9, 1e-3);
        let rotor = |&(_, term): &(usize, Term)| term == Term::RotorInertia;
        if !self.terms.iter().any(rotor) {
            return Ok(());
        }
        let random = self.random_motion()?;
        let all = information(self, &random, &vec![1.0; self.channels.len()])?.matrix();
        let mut columns: Vec<usize> =
            (0..self.len()).filter(|&i| i < self.rank() || !rotor(&self.terms[i - self.rank()])).collect();
        let mut keep = vec![true; self.terms.len()];
        for i in (0..self.terms.len()).filter(|&i| rotor(&self.terms[i])) {
            columns.push(self.rank() + i);
            let (size, last) = (all.column(self.rank() + i).norm(), columns.len() - 1);
            let mut triangle = Triangle::new(columns.len());
            triangle.add_rows(all.select_columns(&columns).as_mut_slice(), all.nrows())?;
            if triangle.at(last, last) <= tolerance * size {
                columns.pop();
                keep[i] = false;
                self.absorbed.push(self.terms[i]);
                // Base parameters come first.
                let alike = Solution::of_factor(&triangle.matrix(), None)?.values;
                let others = columns.iter().zip(alike.iter()).skip(self.rank());
                let matters =
                    |&(&column, x): &(&usize, &f64)| x.abs() * all.column(column).norm() > tolerance * size;
                let terms = others.filter(matters).map(|(&column, &x)| (self.terms[column - self.rank()], x));
                let terms = terms.collect();
                self.effects.push(Effect { base: alike.rows(0, self.rank()).into_owned(), terms });
            }
        }
        let mut kept = keep.into_iter();
        self.terms.retain(|_| kept.next() == Some(true));
        self.number();
        Ok(())
    }

    fn random_motion(&self) -> Result<Summary> {
        let nv = self.coordinates();
        // Each sample has one equation per coordinate; three times as many equations as unknowns are sufficient.
        let count = 3 * self.len() + 20;
        let mut random = SplitMix::new(1);
        let mut next = || (random.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        let q = self.random_positions(count, &mut next);
        let v: Vec<f64> = (0..count * nv).map(|_| 3.0 * next()).collect();
        let a: Vec<f64> = (0..count * nv).map(|_| 10.0 * next()).collect();
        let tau = vec![0.0; count * self.channels.len()];
        let samples = self.samples(count, &q, &v, &a)?;
        let mut data = Measurements::new(samples, &tau);
        let columns: Vec<f64> = (0..count * self.joint_model().columns.len()).map(|_| next()).collect();
        data.columns = Some(&columns);
        Summary::new(self, &data)
    }

    fn random_positions(&self, count: usize, next: &mut impl FnMut() -> f64) -> Vec<f64> {
        let mut out = Vec::with_capacity(count * self.mechanism().nq());
        let Some(closed) = self.closed() else {
            for _ in 0..count {
                let mut position = self.mechanism().neutral();
                let step: Vec<f64> = (0..self.mechanism().nv()).map(|_| 3.0 * next()).collect();
                self.mechanism().integrate(&mut position, &step);
                out.extend(position);
            }
            return out;
        };
        // Random positions around the assembled configuration, as far as the loops permit.
        let mut workspace = closed.workspace();
        let start: Vec<f64> = closed.independent_positions().iter().map(|&k| closed.assembled()[k]).collect();
        let mut reach = 1.0;
        let mut position = closed.assembled().to_vec();
        for _ in 0..count {
            let target: Vec<f64> = start.iter().map(|x| x + reach * next()).collect();
            let mut trial = position.clone();
            if closed.move_to(&mut workspace, &mut trial, &target).is_ok() {
                position = trial;
            } else {
                reach = (0.7 * reach).max(0.05);
            }
            out.extend(&position);
        }
        out
    }
}
