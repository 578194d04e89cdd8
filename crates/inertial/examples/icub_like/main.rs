//! Slow motion shows little of a body's inertia: the study of paper 001 with a body whose truth is known.
//!
//! ```sh
//! cargo run --release -p inertial --example icub_like -- docs/figures/slow-motion.svg
//! ```
//! prints a table of the shape of the paper's table I and draws what becomes of the inertia.

mod study;

use std::fmt::Write as _;

use inertial::Result;
use inertial::estimation::Identification;
use study::{Row, TIMES, run, tensor, truth};

const SEED: u64 = 1;

fn main() -> Result<()> {
    let rows = TIMES.iter().map(|&time| run(time, SEED)).collect::<Result<Vec<_>>>()?;
    println!("| time (s) | over | m | mcx | mcy | mcz | Ixx | Ixy | Ixz | Iyy | Iyz | Izz | can exist |");
    println!("| ---: | --- |{} --- |", " ---: |".repeat(10));
    for row in &rows {
        println!("| {} | all numbers {}", row.time, line(&row.plain));
        println!("| | bodies {}", line(&row.possible));
    }
    let exact: Vec<String> = truth().parameters().iter().map(|x| format!("{x:.3}")).collect();
    println!("| | truth | {} | yes |", exact.join(" | "));
    if let Some(path) = std::env::args().nth(1) {
        std::fs::write(&path, picture(&rows))
            .map_err(|e| inertial::Error::Numeric(format!("{path}: {e}")))?;
    }
    Ok(())
}

fn line(found: &Identification) -> String {
    let values: Vec<String> = found.parameters.iter().map(|x| format!("{x:.3}")).collect();
    format!("| {} | {} |", values.join(" | "), if found.bodies[0].consistent { "yes" } else { "no" })
}

/// Error of the inertia tensor over the time from point to point, both logarithmic; impossible bodies are hollow.
fn picture(rows: &[Row]) -> String {
    let exact = truth().rotational;
    let error = |f: &Identification| (tensor(f) - exact).norm() / exact.norm();
    let errors: Vec<[f64; 2]> = rows.iter().map(|r| [error(&r.plain), error(&r.possible)]).collect();
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
    let series = [("#c0392b", "least squares", 0), ("#2471a3", "over bodies that can exist", 1)];
    for (k, (color, name, which)) in series.into_iter().enumerate() {
        let points: Vec<String> =
            rows.iter().zip(&errors).map(|(r, e)| format!("{:.1},{:.1}", x(r.time), y(e[which]))).collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\"/>",
            points.join(" ")
        );
        for (row, e) in rows.iter().zip(&errors) {
            let found = if which == 0 { &row.plain } else { &row.possible };
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
        "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">time from point to point; hollow: no body can have these values</text>\n\
         <text x=\"{left}\" y=\"18\">error of the inertia tensor</text>\n</svg>",
        0.5 * (left + right),
        bottom + 44.0
    );
    out
}
