//! Bounds on memory and work of a design, which grow with the cube of the number of joints. They are checked before memory is
//! allocated.

use super::columns::Columns;
use super::plan::Plan;
use crate::{Error, Result};

/// Maximum number of products of unknowns that all searches together store, each in 40 bytes: 2 GB.
pub(super) const MOST_PRODUCTS: usize = 50_000_000;

/// Maximum number of products of unknowns times samples of one evaluation, which takes about half a minute.
pub(super) const MOST_WORK: usize = 10_000_000_000;

/// Maximum squared number of variables of all searches together: 0.8 GB for their matrices.
pub(super) const MOST_CURVATURES: usize = 100_000_000;

/// Maximum number of values of the final check: 8 GB.
pub(super) const MOST_CHECKED: usize = 1_000_000_000;

/// Checks the size of the products of one search, and the work of one evaluation at random states, whose number is a multiple of that
/// of the unknowns.
pub(super) fn check_columns(columns: &Columns) -> Result<()> {
    let products = columns.products();
    check_products(products, 1)?;
    check_work(products, 3 * columns.len() + 50)
}

/// Checks the size of several searches with `products` products of unknowns each and `limits` limits.
pub(super) fn check_searches(
    plan: &Plan,
    products: usize,
    limits: usize,
    starts: usize,
    [rate, check_rate]: [f64; 2],
) -> Result<()> {
    check_products(products, starts)?;
    check_work(products, plan.samples(rate)?)?;
    check_variables(plan.dimension(), starts)?;
    let values = 3 * plan.functions() + 6 * plan.coordinates.len() + limits;
    check_values(plan.samples(check_rate)?, values)
}

fn check_products(products: usize, starts: usize) -> Result<()> {
    let what = "squared unknowns, added over all measured forces and searches";
    within("the robot is too large for this design", what, products.saturating_mul(starts), MOST_PRODUCTS)
}

fn check_work(products: usize, samples: usize) -> Result<()> {
    let what = "squared unknowns, added over all measured forces and samples";
    within("the design takes too long", what, products.saturating_mul(samples), MOST_WORK)
}

fn check_variables(variables: usize, starts: usize) -> Result<()> {
    let found = variables.saturating_mul(variables).saturating_mul(starts);
    within(
        "the motion has too many variables",
        "squared variables, added over all searches",
        found,
        MOST_CURVATURES,
    )
}

fn check_values(samples: usize, values: usize) -> Result<()> {
    let what = "values of limits and functions of time at all samples of the check";
    within("the motion is too long", what, samples.saturating_mul(values), MOST_CHECKED)
}

fn within(problem: &str, what: &str, found: usize, most: usize) -> Result<()> {
    if found <= most {
        return Ok(());
    }
    Err(Error::NotApplicable(format!("{problem}: {found} {what}; expected at most {most}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Tests each limit at its value and one above it.
    #[test]
    fn designs_beyond_a_limit_are_refused() {
        let refused = |result: Result<()>, start: &str| {
            let message = result.unwrap_err().to_string();
            assert!(message.contains(start), "{message}");
        };
        assert!(check_products(MOST_PRODUCTS, 1).is_ok() && check_products(MOST_PRODUCTS / 4, 4).is_ok());
        refused(check_products(MOST_PRODUCTS + 1, 1), "too large for this design: 50000001 squared unknowns");
        refused(check_products(MOST_PRODUCTS / 4 + 1, 4), "expected at most 50000000");
        assert!(check_work(MOST_WORK / 1000, 1000).is_ok());
        refused(check_work(MOST_WORK / 1000, 1001), "takes too long");
        refused(check_work(usize::MAX, 2), "takes too long");
        assert!(check_variables(5000, 4).is_ok());
        refused(check_variables(5001, 4), "too many variables: 100040004 squared variables");
        assert!(check_values(MOST_CHECKED / 100, 100).is_ok());
        refused(check_values(MOST_CHECKED / 100, 101), "is too long");
    }
}
