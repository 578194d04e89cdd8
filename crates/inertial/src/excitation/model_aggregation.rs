//! Aggregation of a criterion over several models.

/// Sharpness of the smooth maximum over several models: differences of a tenth (10 % of a standard error) are resolved.
const SHARPNESS: f64 = 30.0;

/// Aggregation over several models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModelAggregation {
    /// Mean of the criteria.
    #[default]
    Mean,
    /// Worst of the criteria.
    Worst,
}

impl ModelAggregation {
    /// Returns the objective of several criteria, and the weight of each in its derivative.
    pub(super) fn combine(self, values: &[f64]) -> (f64, Vec<f64>) {
        let count = values.len() as f64;
        match self {
            Self::Mean => (values.iter().sum::<f64>() / count, vec![count.recip(); values.len()]),
            Self::Worst => {
                let worst = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let parts: Vec<f64> = values.iter().map(|v| (SHARPNESS * (v - worst)).exp()).collect();
                let sum: f64 = parts.iter().sum();
                (worst + (sum / count).ln() / SHARPNESS, parts.iter().map(|p| p / sum).collect())
            }
        }
    }
}
