//! Comparison of two experimental set-ups: combinations that only one of them identifies (paper 003, section 9.3).

use std::collections::HashMap;

use nalgebra::DMatrix;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Analysis, BaseParameter, Regrouping};
use crate::Result;
use crate::dynamics::InverseDynamics;
use crate::linalg::{Number, SplitMix, rank};
use crate::mechanism::Mechanism;

/// Sensitivities below this, relative to the largest, are rounding errors.
const TOLERANCE: f64 = 1e-9;

/// Number of random states at which forces are compared.
const STATES: usize = 24;

/// Information lost in one set-up compared with another, over the parameters that both have.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Comparison {
    /// Number of independent combinations that only the other set-up identifies.
    pub lost: usize,
    /// Base parameters of the other set-up that are not determined here.
    pub lost_base_parameters: Vec<BaseParameter>,
    /// Generalized forces of the other set-up, with whether the parameters identified here predict them.
    pub forces: Vec<Prediction>,
}

/// Predictability of one generalized force.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Prediction {
    /// Name of the coordinate on which the force acts.
    pub name: String,
    /// Whether every parameter vector that fits here predicts the force there.
    pub predicted: bool,
}

/// Compares the set-up `here` with the set-up `there`; parameters are matched by name.
pub fn compare(
    here: (&Mechanism, &Analysis),
    there: (&Mechanism, &Analysis),
    seed: u64,
) -> Result<Comparison> {
    let (mechanism, analysis) = there;
    here.1.regrouping.check_listed()?;
    analysis.regrouping.check_listed()?;
    let column: HashMap<String, usize> =
        mechanism.parameter_names().into_iter().enumerate().map(|(i, n)| (n, i)).collect();
    let names = here.0.parameter_names();
    let null_basis: Vec<Vec<(usize, f64)>> = null_vectors(&here.1.regrouping)
        .into_iter()
        .map(|v| v.into_iter().filter_map(|(c, x)| Some((*column.get(&names[c])?, x))).collect())
        .filter(|v: &Vec<_>| !v.is_empty())
        .collect();
    // Change of each combination of the other set-up along the null vectors of this one.
    let combinations = &analysis.regrouping.combinations;
    let mut dense = vec![0.0; mechanism.parameter_count()];
    let mut change = DMatrix::zeros(combinations.len(), null_basis.len());
    for (r, combination) in combinations.iter().enumerate() {
        for &(c, x) in combination {
            dense[c] = x;
        }
        for (k, vector) in null_basis.iter().enumerate() {
            change[(r, k)] = vector.iter().map(|&(c, x)| dense[c] * x).sum();
        }
        for &(c, _) in combination {
            dense[c] = 0.0;
        }
    }
    let largest = change.amax();
    let lost_base_parameters = (0..combinations.len())
        .filter(|&r| change.row(r).amax() > TOLERANCE * largest)
        .map(|r| analysis.base_parameters[r].clone())
        .collect();
    Ok(Comparison {
        lost: rank(&change, TOLERANCE)?.rank,
        lost_base_parameters,
        forces: predictions(mechanism, &null_basis, seed)?,
    })
}

/// Returns a basis of the null space: each column that is no base parameter, with its coefficients in the base columns.
fn null_vectors(regrouping: &Regrouping) -> Vec<Vec<(usize, f64)>> {
    let mut vectors: Vec<Vec<(usize, f64)>> = (0..regrouping.parameters).map(|c| vec![(c, 1.0)]).collect();
    for (&base, combination) in regrouping.base.iter().zip(&regrouping.combinations) {
        for &(c, x) in combination.iter().filter(|(c, _)| *c != base) {
            vectors[c].push((base, -x));
        }
    }
    for &base in &regrouping.base {
        vectors[base].clear();
    }
    vectors.retain(|v| !v.is_empty());
    vectors
}

/// Checks for each force whether it is predicted, that is, constant along all null vectors.
fn predictions(
    mechanism: &Mechanism,
    null_basis: &[Vec<(usize, f64)>],
    seed: u64,
) -> Result<Vec<Prediction>> {
    let (nv, width) = (mechanism.nv(), mechanism.parameter_count());
    let inverse = InverseDynamics::new(mechanism);
    let mut scratch = inverse.scratch();
    let mut source = SplitMix::new(seed);
    let mut random =
        |n: usize| -> Vec<f64> { (0..n).map(|_| <f64 as Number>::random(&mut source)).collect() };
    let mut worst = vec![0.0f64; nv];
    let mut scale = f64::MIN_POSITIVE;
    for _ in 0..STATES {
        let mut q = mechanism.neutral();
        // Up to half a turn in both directions, and the same number in metres: only the rank matters, not the size.
        let step: Vec<f64> = random(nv).iter().map(|x| x * std::f64::consts::PI).collect();
        mechanism.integrate(&mut q, &step);
        let (v, a) = (random(nv), random(nv));
        let y = inverse.torque_regressor(&mut scratch, &q, &v, &a)?;
        for vector in null_basis {
            for (row, worst) in worst.iter_mut().enumerate() {
                let terms = vector.iter().map(|&(c, x)| y[row * width + c] * x);
                let (sum, size) = terms.fold((0.0, 0.0f64), |(sum, size), t| (sum + t, size.max(t.abs())));
                *worst = worst.max(sum.abs());
                scale = scale.max(size);
            }
        }
    }
    let predictions = mechanism.velocity_names().into_iter().zip(worst);
    Ok(predictions.map(|(name, worst)| Prediction { name, predicted: worst <= TOLERANCE * scale }).collect())
}
