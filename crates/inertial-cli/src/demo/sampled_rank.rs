//! `inertial demo sampled-rank`: errors of numerical ranks of mechanisms with loops (paper 004).

use std::fmt::Write as _;

use anyhow::Result;
use inertial::mechanism::{BuildOptions, builtin};
use inertial_app::studies::sampled_rank::{self, SAMPLES};
use inertial_report::text;

use crate::output::Answer;
use crate::shell::Shell;

/// Mechanism for which the paper reports a nullity of 43 with the numerical method.
const MODEL: &str = "2rru-1rrs";

const SEED: u64 = 1;

/// Prints ranks of sampled regressors and the proved rank.
pub fn run(shell: &Shell, json: bool) -> Result<Answer> {
    let mechanism = builtin::get(MODEL)?.build(&BuildOptions::default())?;
    let found = sampled_rank::run(&mechanism, SAMPLES, SEED)?;
    if json {
        shell.print_json(&found)?;
        return Ok(Answer::Yes);
    }
    let rows = found.rows.iter().map(|row| {
        [
            if row.error == 0.0 { "closed to rounding".into() } else { format!("up to {:.0e}", row.error) },
            format!("{:.0e}", row.residual),
            row.rank.to_string(),
            row.nullity.to_string(),
            format!("{:.1e}", row.gap[0]),
            format!("{:.1e}", row.gap[1]),
            if row.rank == found.rank { "right" } else { "wrong" }.into(),
        ]
    });
    let header =
        ["dependent joints", "loop residual", "rank", "nullity", "last above threshold", "first below", ""];
    let table = text::table(shell.style(), header, 6, rows);
    let mut out = format!(
        "Regressors of {MODEL}, {SAMPLES} samples each. The rank counts singular values above {:.1e} of the largest, as in MATLAB and NumPy.\n\n{table}\n",
        found.threshold
    );
    let _ = writeln!(
        out,
        "Exact arithmetic: rank {}, nullity {}{}. The paper reports a nullity of 43 by the numerical method: the closure\n\
         error of the loops increases the numerical rank.",
        found.rank,
        found.parameters - found.rank,
        if found.certified { ", certified" } else { "" }
    );
    shell.print(&out)?;
    Ok(Answer::Yes)
}
