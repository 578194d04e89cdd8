//! `inertial demo slow-motion`: the study of paper 001 with a body of known inertia.

use std::fmt::Write as _;

use anyhow::Result;
use inertial::estimation::Identification;
use inertial_app::studies::slow_motion::{Row, SOLVERS, TIMES, run as study, tensor, truth};
use inertial_report::text;

use crate::output::Answer;
use crate::shell::Shell;

const SEED: u64 = 1;

/// Prints a table like table I of the paper; with a path, also draws the errors of the inertia.
pub fn run(shell: &Shell, picture_to: Option<&std::path::Path>) -> Result<Answer> {
    let rows = TIMES.iter().map(|&time| study(time, SEED)).collect::<Result<Vec<_>, _>>()?;
    let mut out = String::from(
        "A shoulder with three joints moves from point to point; a force/torque sensor carries elbow, forearm and hand.\n\
         60 s at 100 Hz, noise of 0.5 N and 0.05 N m. The slower the motion, the less it excites the inertia.\n\n",
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
    let exact = truth();
    let error = |f: &Identification| (tensor(f) - exact.rotational).norm() / exact.rotational.norm();
    let line = |time: String, name: &str, found: &Identification| -> [String; 14] {
        let mut cells: Vec<String> = vec![time, name.to_owned()];
        cells.extend(found.parameters.iter().map(|x| format!("{x:.3}")));
        cells.push(if found.bodies[0].consistent { "yes" } else { "no" }.into());
        cells.push(format!("{:.1} %", 100.0 * error(found)));
        std::array::from_fn(|k| cells.get(k).cloned().unwrap_or_default())
    };
    let lines = rows.iter().flat_map(|row| {
        [line(row.time.to_string(), "wls", &row.plain), line(String::new(), "consistent", &row.consistent[0])]
    });
    let mut last: Vec<String> = vec![String::new(), "truth".into()];
    last.extend(exact.parameters().iter().map(|x| format!("{x:.3}")));
    last.extend(["yes".into(), String::new()]);
    let last = std::array::from_fn(|k| last.get(k).cloned().unwrap_or_default());
    out += &text::table(shell.style(), header, 12, lines.chain([last]));
    let farthest = rows
        .iter()
        .flat_map(|row| row.consistent.iter().map(|f| (tensor(f) - tensor(&row.consistent[0])).norm()))
        .fold(0.0, f64::max);
    let names: Vec<&str> = SOLVERS.iter().map(|s| s.name()).collect();
    let _ = writeln!(
        out,
        "\nThe solvers {} give the same bodies: their inertias differ by {:.0e} of the true one at most.",
        names.join(", "),
        farthest / exact.rotational.norm()
    );
    out += &formulations(&rows, shell.style());
    if let Some(path) = picture_to {
        shell.write_file(path, &picture(&rows))?;
    }
    shell.print(&out)?;
    Ok(Answer::Yes)
}

/// Formats the comparison of formulations of the principal axes.
fn formulations(rows: &[Row], style: text::Style) -> String {
    let lines = rows.iter().flat_map(|row| {
        row.formulations.iter().enumerate().map(|(k, found)| {
            let excess = (found.cost - row.least_cost) / row.least_cost;
            [
                if k == 0 { row.time.to_string() } else { String::new() },
                found.formulation.name().to_owned(),
                found.formulation.variables().to_string(),
                found.formulation.constraints().to_string(),
                found.steps.to_string(),
                format!("{:.0e}", excess.max(0.0)),
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
fn picture(rows: &[Row]) -> String {
    let exact = truth().rotational;
    let error = |f: &Identification| (tensor(f) - exact).norm() / exact.norm();
    let errors: Vec<[f64; 2]> = rows.iter().map(|r| [error(&r.plain), error(&r.consistent[0])]).collect();
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
            let found = if which == 0 { &row.plain } else { &row.consistent[0] };
            let fill = if found.bodies[0].consistent { color } else { "white" };
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
