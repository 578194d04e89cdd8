//! `inertial demo leg-on-bench`: table 6 of paper 003 on another motion.

use anyhow::Result;
use inertial_app::studies::leg_on_bench;
use inertial_report::text;

use crate::output::Answer;
use crate::shell::Shell;

/// Threshold below which errors are rounding errors (N, N m).
const ROUNDING: f64 = 1e-8;

/// Prints the predictions of estimates from a free and from a fixed torso.
pub fn run(shell: &Shell, json: bool) -> Result<Answer> {
    let outcome = leg_on_bench::run()?;
    if json {
        shell.print_json(&outcome)?;
        return Ok(Answer::Yes);
    }
    let three = |values: [f64; 3]| {
        let parts = values.map(|x| if x < ROUNDING { "0".into() } else { format!("{x:.2}") });
        format!("[{}]", parts.join(", "))
    };
    let lines = outcome.rows.iter().map(|row| {
        [
            if row.free { "torso free" } else { "torso fixed" }.into(),
            row.rank.to_string(),
            three(row.bench),
            three(row.moving),
            three(row.moment),
            three(row.force),
        ]
    });
    let header = [
        "identified with",
        "base parameters",
        "leg on the bench (N m)",
        "leg, torso free (N m)",
        "moment on torso (N m)",
        "force on torso (N)",
    ];
    let table = text::table(shell.style(), header, 5, lines);
    shell.print(&format!(
        "A quadruped is identified from the same leg motion without noise, with its torso free (wrench on it measured) and fixed,\n\
         each time by the pseudo-inverse. Root mean square errors of the predictions; a leg has abduction, hip and knee.\n\n{table}\n\
         The bench does not excite the combinations that need a moving torso. Predicted hip torques and the wrench on the\n\
         torso are therefore wrong; knee torques are right.\n"
    ))?;
    Ok(Answer::Yes)
}
