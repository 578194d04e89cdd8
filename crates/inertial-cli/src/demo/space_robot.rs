//! `inertial demo space-robot`: section VI of paper 002, as published and with later methods.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use inertial::consistency::significant;
use inertial_app::disk::OutputFiles;
use inertial_app::studies::space_robot::{
    DRAWS, INTERVALS, Outcome, PRINTED_CONDITION, PRINTED_COUNTS, PRINTED_PREDICTION, RATE, Row, run as study,
};
use inertial_report::{plots, text};

use crate::output::Answer;
use crate::shell::Shell;

/// Options of the demo.
pub struct Options<'a> {
    /// Whether only the published motion is run, without designs.
    pub published: bool,
    pub json: bool,
    /// Folder of figures 4, 6 and 7.
    pub plots: Option<&'a Path>,
}

pub fn run(shell: &Shell, options: &Options<'_>) -> Result<Answer> {
    let outcome = study(!options.published)?;
    if let Some(folder) = options.plots {
        let mut files = OutputFiles::new(shell.disk());
        plots::write(plots::space_robot(&outcome)?, folder, &mut files)?;
        shell.write(files, options.json)?;
    }
    if options.json {
        shell.print_json(&outcome)?;
    } else {
        shell.print(&text(shell, &outcome))?;
    }
    Ok(Answer::Yes)
}

/// Formats the result as text.
fn text(shell: &Shell, outcome: &Outcome) -> String {
    let mut out = String::from(
        "A robot with two arms in orbit: which motion of its joints and reaction wheels excites the inertia of every\n\
         link, and how accurate are the estimates from noisy rates? (Naveen, Shah and Misra, section VI)\n\n",
    );
    out += &published(outcome);
    let percent = |x: f64| format!("{} %", significant(x, 3));
    let cases = outcome.cases.iter().enumerate().map(|(k, case)| {
        [
            (k + 1).to_string(),
            case.intervals.to_string(),
            format!("{} ({})", case.significant, case.printed_significant),
            format!("{} ({} %)", percent(case.median_percent), case.printed_median_percent),
            format!("{} ({} %)", percent(case.largest_percent), case.printed_largest_percent),
            case.worst.clone(),
            case.noise_free_percent.map(percent).join(", "),
        ]
    });
    let _ = writeln!(
        out,
        "Flown by the true robot, measured at {RATE} Hz, positions integrated by Euler's rule, least squares; medians over {DRAWS}\n\
         draws of noise (table 5, published figures in brackets):\n"
    );
    let header = ["case", "intervals", "significant", "median error", "largest error", "of", "without noise"];
    out += &text::table(shell.style(), header, 2, cases);
    out += "\n2. Designs\n\n";
    out += &designs(outcome);
    out += "3. Designs and estimators compared\n\n";
    let paper = ["paper", "ols, euler", "2.08 %", "174 %", "-", "-"].map(String::from);
    let table = outcome.rows.iter().map(|row| {
        [
            row.design.to_owned(),
            format!("{}, {}", row.estimator, row.positions),
            percent(row.median_percent),
            percent(row.largest_percent),
            significant(row.rms_in_std_errors, 3),
            percent(row.noise_free_percent[1]),
        ]
    });
    out += &text::table(
        shell.style(),
        ["design", "estimate", "median error", "largest error", "rms error/σ", "largest without noise"],
        0,
        std::iter::once(paper).chain(table),
    );
    let Some(last) = outcome.rows.last() else { return out };
    let worst: Vec<String> = last
        .worst
        .iter()
        .map(|(name, value, error)| {
            format!("{name} ({}) {} %", significant(*value, 3), significant(*error, 2))
        })
        .collect();
    let _ = writeln!(out, "\nLargest relative errors of the last row: {}", worst.join(", "));
    out += "\n4. Prediction errors of the estimates on another motion (rms; table 6 of the paper)\n\n";
    let line = |name: &str, base: &[f64], torques: &[f64]| {
        let join = |x: &[f64]| x.iter().map(|x| significant(*x, 2)).collect::<Vec<_>>().join(" ");
        [name.to_owned(), join(&base[..3]), join(&base[3..]), join(torques)]
    };
    let of = |row: &Row| line(&format!("{}, {}", row.design, row.estimator), &row.base, &row.torques);
    let printed = line("paper", &PRINTED_PREDICTION.0, &PRINTED_PREDICTION.1);
    let rows = std::iter::once(printed).chain(outcome.rows.iter().map(of));
    out += &text::table(shell.style(), ["", "base (m/s)", "base (rad/s)", "joint torques (N m)"], 0, rows);
    out
}

fn published(outcome: &Outcome) -> String {
    let published = &outcome.published;
    let counts: Vec<String> = PRINTED_COUNTS
        .iter()
        .map(|(length, published_count)| {
            format!("{} from {length} ({published_count})", published.together.significant[length - 1])
        })
        .collect();
    let [printed, refreshed, counted] = published.kept;
    format!(
        "1. The published motion: cycloids over direction combinations\n\n\
         The seeds of table 3 on the first {INTERVALS} of 256 combinations in binary order: condition number {} on the \
         assumed\nmodel, {} on the true robot (published {PRINTED_CONDITION}). Significant singular values (published): {}.\n\
         With these seeds algorithm 1 keeps {printed} of 256 intervals as printed, {refreshed} with the missing update, \
         {counted} by\nthe rule of its text (published 67).\n\n",
        significant(published.condition_believed, 4),
        significant(published.condition, 4),
        counts.join(", ")
    )
}

fn designs(outcome: &Outcome) -> String {
    let mut out = String::new();
    if let Some(repeated) = &outcome.repeated {
        let degrees =
            |x: &[f64]| x.iter().map(|x| significant(x.to_degrees(), 4)).collect::<Vec<_>>().join(" ");
        let [printed, refreshed, counted] = repeated.kept;
        let _ = writeln!(
            out,
            "The published method, best of {} starts: algorithm 1 keeps {printed} of 256 as printed, {refreshed} with the \
             update, {counted} by\nthe rule of its text. Seeds: start {}°, range {}°; condition number {} on the assumed model, {}\n\
             on the true robot.\n",
            repeated.starts,
            degrees(&repeated.start),
            degrees(&repeated.range),
            significant(repeated.condition_believed, 4),
            significant(repeated.condition, 4),
        );
    }
    if let Some(ours) = &outcome.ours {
        let [median, largest] = ours.expected_percent;
        let _ = writeln!(
            out,
            "Our design, velocities at knots: rank {} of {}, criterion {} {}; expected standard errors relative to the\n\
             assumed sizes (at least a hundredth of the largest of a kind): median {} %, largest {} %. Same duration, speeds\n\
             and wheels.\n",
            ours.rank[0],
            ours.rank[1],
            ours.criterion,
            significant(ours.value, 5),
            significant(median, 2),
            significant(largest, 3),
        );
    }
    if out.is_empty() {
        out += "Left out (--published).\n\n";
    }
    out
}
