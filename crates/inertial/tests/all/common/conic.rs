//! Description of a consistent estimation problem for `scripts/oracle_cvxpy.py`.

use inertial::estimation::consistent::ConsistentProblem;
use serde_json::{Value, json};

pub fn described(problem: &ConsistentProblem) -> Value {
    let conic = &problem.conic;
    let cones = conic.cones.iter().map(|c| {
        let rows: Vec<Vec<f64>> = c.prior.row_iter().map(|r| r.iter().copied().collect()).collect();
        json!({"offset": c.offset, "weight": c.prior_weight, "prior": rows})
    });
    json!({
        "gram": conic.gram.row_iter().map(|r| r.iter().copied().collect::<Vec<_>>()).collect::<Vec<_>>(),
        "rhs": conic.rhs.as_slice(), "constant": conic.constant, "start": problem.start.as_slice(),
        "nonnegative": conic.nonnegative, "cones": cones.collect::<Vec<_>>(),
    })
}
