//! `inertial demo slow-motion`: the study of paper 001 with a body of known inertia.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use inertial_app::studies::slow_motion::{Estimate, Estimates, Outcome, SOLVERS, study};
use inertial_report::text::{self, Style};

use crate::output::Answer;
use crate::shell::Shell;

const SEED: u64 = 1;

/// Prints a table like table I of the paper, or the result as JSON; with a path, also draws the errors of the inertia.
pub fn run(shell: &Shell, json: bool, picture_to: Option<&Path>) -> Result<Answer> {
    let outcome = study(SEED)?;
    if let Some(path) = picture_to {
        shell.write_file(path, &picture(&outcome.rows))?;
    }
    if json {
        shell.print_json(&outcome)?;
    } else {
        shell.print(&text(&outcome, shell.style()))?;
    }
    Ok(Answer::Yes)
}

/// Formats the result as text.
fn text(outcome: &Outcome, style: Style) -> String {
    let [force, moment, _] = outcome.noise;
    let mut out = format!(
        "A shoulder with three joints moves from point to point; a force/torque sensor carries elbow, forearm and hand.\n\
         {} s at {} Hz, noise of {force} N and {moment} N m. The slower the motion, the less it excites the inertia.\n\n",
        outcome.length, outcome.rate
    );
    let header = [
        "time (s)",
        "estimator",
        "m",
        "mcx",
        "mcy",
        "mcz",
        "Ixx",
        "Ixy",
        "Ixz",
        "Iyy",
        "Iyz",
        "Izz",
        "consistent",
        "error of I",
    ];
    let line = |time: String, name: &str, parameters: &[f64], rest: [String; 2]| -> [String; 14] {
        let mut cells: Vec<String> = vec![time, name.to_owned()];
        cells.extend(parameters.iter().map(|x| format!("{x:.3}")));
        cells.extend(rest);
        std::array::from_fn(|k| cells.get(k).cloned().unwrap_or_default())
    };
    let found = |time: String, name: &str, found: &Estimate| {
        let consistent = if found.consistent { "yes" } else { "no" }.to_owned();
        line(time, name, &found.parameters, [consistent, format!("{:.1} %", found.inertia_error_percent)])
    };
    let lines = outcome.rows.iter().flat_map(|row| {
        [
            found(row.time.to_string(), "wls", &row.least_squares),
            found(String::new(), "consistent", &row.consistent),
        ]
    });
    let last = line(String::new(), "truth", &outcome.truth, ["yes".into(), String::new()]);
    out += &text::table(style, header, 12, lines.chain([last]));
    let names: Vec<&str> = SOLVERS.iter().map(|s| s.name()).collect();
    let _ = writeln!(
        out,
        "\nThe solvers {} give the same bodies: their inertias differ by {:.0e} of the true one at most.",
        names.join(", "),
        outcome.solver_difference
    );
    out += &formulations(&outcome.rows, style);
    out
}

/// Formats the comparison of formulations of the principal axes.
fn formulations(rows: &[Estimates], style: Style) -> String {
    let lines = rows.iter().flat_map(|row| {
        row.formulations.iter().enumerate().map(|(k, found)| {
            [
                if k == 0 { row.time.to_string() } else { String::new() },
                found.axes.to_owned(),
                found.variables.to_string(),
                found.constraints.to_string(),
                found.steps.to_string(),
                format!("{:.0e}", found.excess),
            ]
        })
    });
    let header = ["time (s)", "principal axes as", "variables", "constraints", "steps", "cost above minimum"];
    format!(
        "\nFormulations of the paper, solved by the same sequential quadratic programming from the same start. The minimum is\n\
         certified by the solver barrier; the last column is relative to it.\n\n{}",
        text::table(style, header, 4, lines)
    )
}

/// Draws the error of the inertia tensor over the time from point to point, both logarithmic; inconsistent bodies are hollow.
fn picture(rows: &[Estimates]) -> String {
    let error = |found: &Estimate| found.inertia_error_percent / 100.0;
    let errors: Vec<[f64; 2]> =
        rows.iter().map(|r| [error(&r.least_squares), error(&r.consistent)]).collect();
    let all = errors.iter().flatten().copied();
    let low = all.clone().fold(f64::INFINITY, f64::min).log10().floor();
    let high = all.fold(0.0, f64::max).log10().ceil();
    let (left, right, top, bottom) = (70.0, 560.0, 30.0, 300.0);
    let x = |time: f64| left + 30.0 + (right - left - 60.0) * (time / 0.5).ln() / 20f64.ln();
    let y = |e: f64| bottom - (bottom - top) * (e.log10() - low) / (high - low);
    let mut out = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 580 360\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"580\" height=\"360\" fill=\"white\"/>\n",
    );
    let mut decade = low;
    while decade <= high {
        let at = y(10f64.powf(decade));
        let _ = writeln!(
            out,
            "<path d=\"M{left} {at:.1}H{right}\" stroke=\"#ddd\"/><text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{} %</text>",
            left - 8.0,
            at + 4.0,
            10f64.powf(decade + 2.0)
        );
        decade += 1.0;
    }
    for row in rows {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{} s</text>",
            x(row.time),
            bottom + 20.0,
            row.time
        );
    }
    let series = [("#c0392b", "least squares", 0), ("#2471a3", "over consistent bodies", 1)];
    for (k, (color, name, which)) in series.into_iter().enumerate() {
        let points: Vec<String> =
            rows.iter().zip(&errors).map(|(r, e)| format!("{:.1},{:.1}", x(r.time), y(e[which]))).collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\"/>",
            points.join(" ")
        );
        for (row, e) in rows.iter().zip(&errors) {
            let found = if which == 0 { &row.least_squares } else { &row.consistent };
            let fill = if found.consistent { color } else { "white" };
            let _ = writeln!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{}\" fill=\"{fill}\" stroke=\"{color}\" stroke-width=\"1.5\"/>",
                x(row.time),
                y(e[which]),
                6 - 2 * which
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.0}\" y=\"{:.0}\" fill=\"{color}\">{name}</text>",
            left + 15.0,
            top + 16.0 + 18.0 * k as f64
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">time from point to point; hollow: physically impossible</text>\n\
         <text x=\"{left}\" y=\"18\">error of the inertia tensor</text>\n</svg>",
        0.5 * (left + right),
        bottom + 44.0
    );
    out
}
