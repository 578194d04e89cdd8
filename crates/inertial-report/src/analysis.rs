//! Text of an identifiability analysis: tables, formulas, explanations; CSV and LaTeX.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use inertial::identifiability::drng::picture;
use inertial::identifiability::{Analysis, BodyReport, Certificate, Comparison, JointTransfers, Status};
use inertial::mechanism::{JointType, Mechanism};
use inertial::spatial::{Inertia, PARAMETER_NAMES, Parameters};
use nalgebra::Vector3;

use inertial_app::analyze::Outcome;
use inertial_app::choice::AnalysisTable;

use crate::text::{Style, number, plural, symbol_table};

const LEGEND: &str = "\
★ identifiable alone              ● base parameter: identifiable in combination with others
✕ not identifiable                ○ identifiable only as part of a base parameter's combination
V, K, T: dimensions of attainable velocities, identifiable coefficients, unidentifiable transfers";

/// Returns the symbol of one entry of the tables.
fn symbol(body: &BodyReport, name: &str, status: Status) -> &'static str {
    match status {
        Status::Identifiable => "★",
        Status::Unidentifiable => "✕",
        Status::Combined if body.base_parameters.contains(&name) => "●",
        Status::Combined => "○",
    }
}

fn cells(body: &BodyReport) -> [String; 10] {
    PARAMETER_NAMES.map(|name| {
        let found = body.parameters.iter().find(|(n, _)| *n == name);
        found.map_or("·", |&(_, status)| symbol(body, name, status)).to_owned()
    })
}

/// Formats the table, the combinations and the certificate; with `explain` also the parameter transfers across each joint.
pub fn text(mechanism: &Mechanism, outcome: &Outcome, explain: bool, style: Style) -> String {
    let analysis = &outcome.analysis;
    let mut out = table(analysis, style);
    out += &combinations(analysis);
    if explain && analysis.null_vectors.is_empty() {
        out += &transfers(mechanism, analysis);
    } else if explain {
        out += &reasons(mechanism, analysis);
    }
    out += &certificate(analysis, explain);
    if let (Some(label), Some(found)) = (&outcome.compared_with, &outcome.comparison) {
        out += &comparison(label, found);
    }
    out
}

/// Formats tables 2, 4 and 5 of the paper, one row per body, with a legend.
fn table(analysis: &Analysis, style: Style) -> String {
    let mut header = vec!["body"];
    header.extend(PARAMETER_NAMES);
    header.extend(["V", "K", "T"]);
    let rows = analysis.bodies.iter().map(|body| {
        let mut row = vec![body.name.clone()];
        row.extend(cells(body));
        let spans = [body.velocity_span, body.identifiable_span, body.transfer_freedoms];
        // Rotors share the dimensions of their joint.
        row.extend(spans.map(|n| if body.joint_type == "rotor" { "·".into() } else { n.to_string() }));
        row
    });
    format!("{}\n\n{}\n{LEGEND}\n", headline(analysis), symbol_table(style, &header, rows))
}

fn headline(analysis: &Analysis) -> String {
    let m = &analysis.model;
    let mut parts = vec![
        plural(m.bodies, "body", "bodies"),
        plural(m.dof, "degree of freedom", "degrees of freedom"),
        format!("{} base", m.base),
    ];
    if m.rotors > 0 {
        parts.push(plural(m.rotors, "rotor", "rotors"));
    }
    if m.loops > 0 {
        parts.push(plural(m.loops, "loop", "loops"));
    }
    let [x, y, z] = m.gravity;
    parts.push(match analysis.motions {
        "kinetic" => "gravity left out".into(),
        "static" => format!("at rest, gravity {x} {y} {z} m/s²"),
        _ => format!("gravity {x} {y} {z} m/s²"),
    });
    parts.push(format!("measured: {}", analysis.measured));
    format!(
        "{}: {} of {} inertial parameters are identifiable, {} not\n{}",
        m.name,
        analysis.rank,
        analysis.parameters,
        analysis.nullity,
        parts.join(", ")
    )
}

/// Lists the combinations that the filled circles denote.
fn combinations(analysis: &Analysis) -> String {
    let combined = analysis.base_parameters.iter().filter(|b| b.combination.len() > 1);
    let mut out = String::new();
    for base in combined {
        let _ = writeln!(out, "  {}", formula(&base.combination));
    }
    if out.is_empty() {
        "\nEvery base parameter is a single inertial parameter.\n".into()
    } else {
        format!("\nCombinations:\n{out}")
    }
}

/// Formats a linear combination: `link1.Izz + link2.Iyy - 0.4 link3.hx`.
pub fn formula(combination: &[(String, f64)]) -> String {
    let mut out = String::new();
    for (i, (name, x)) in combination.iter().enumerate() {
        let size = if x.abs() == 1.0 { String::new() } else { format!("{} ", number(x.abs())) };
        let sign = match (i, *x < 0.0) {
            (0, false) => "",
            (0, true) => "-",
            (_, false) => " + ",
            (_, true) => " - ",
        };
        let _ = write!(out, "{sign}{size}{name}");
    }
    out
}

/// Describes the certificate of the rank, including the methods if `details` is set, followed by the warnings.
fn certificate(analysis: &Analysis, details: bool) -> String {
    let c = &analysis.certificate;
    let mut out = String::from("\n");
    let chance = error_probability(c).map(|p| format!("error probability {p}"));
    if c.exact && details {
        let chance = chance.map_or(String::new(), |chance| format!(" ({chance})"));
        let _ = writeln!(
            out,
            "Rank {} is proved{chance}: upper bound by {}; lower bound by {}.",
            analysis.rank, c.upper_by, c.lower_by
        );
    } else if c.exact {
        let chance = chance.map_or(String::new(), |chance| format!("{chance}; "));
        let _ = writeln!(
            out,
            "Rank {} is proved: upper and lower bound agree ({chance}details: --explain)",
            analysis.rank
        );
    } else {
        let _ = writeln!(
            out,
            "The rank is between {} ({}) and {} ({}).",
            c.rank_lower, c.lower_by, c.rank_upper, c.upper_by
        );
    }
    for warning in &analysis.warnings {
        let _ = writeln!(out, "{}: {warning}", if warning.is_note() { "Note" } else { "Warning" });
    }
    out
}

/// Returns the probability that the rank of a randomised proof is wrong; `None` for a proof without random numbers.
pub fn error_probability(certificate: &Certificate) -> Option<String> {
    let chance = certificate.error_probability.filter(|chance| certificate.exact && *chance > 0.0)?;
    Some(format!("{chance:.0e}"))
}

/// Lists the parameter changes across each joint that do not affect any measurement.
fn transfers(mechanism: &Mechanism, analysis: &Analysis) -> String {
    if analysis.transfers.is_empty() {
        return "\nTransfers across single joints are listed only with the method rpna.\n".into();
    }
    let name = |b: Option<usize>| b.map_or("the ground", |b| mechanism.bodies()[b].name.as_str());
    let mut out = String::from("\nUnidentifiable transfers across each joint:\n");
    for transfer in &analysis.transfers {
        let body = &mechanism.bodies()[transfer.body];
        let joint = &mechanism.joints()[body.joint].name;
        if transfer.basis.is_empty() {
            let _ = writeln!(out, "  {joint}: none");
            continue;
        }
        let _ = writeln!(out, "  {joint}, between {} and {}:", body.name, name(transfer.receiver));
        for words in transfer_words(mechanism, transfer) {
            let _ = writeln!(out, "    {words}");
        }
    }
    out
}

/// Explains why combinations of parameters of a mechanism with loops are not identifiable.
fn reasons(mechanism: &Mechanism, analysis: &Analysis) -> String {
    let why = picture::text(mechanism, &analysis.null_vectors);
    let list = |counts: &BTreeMap<&'static str, usize>| {
        let parts: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
        parts.join(", ")
    };
    let (ours, paper) = (list(&analysis.principles), list(&analysis.principles_in_paper));
    let counts = if ours == paper {
        format!("By principle: {ours}.\n")
    } else {
        format!("By principle: {ours}. Sun, Ding and Zhu count {paper}.\n")
    };
    format!("\nWhy {} combinations are not identifiable:\n{why}\n{counts}", analysis.nullity)
}

/// Describes each transfer in one line; the changes are in the frame of the body after the joint.
fn transfer_words(mechanism: &Mechanism, transfer: &JointTransfers) -> Vec<String> {
    let body = &mechanism.bodies()[transfer.body];
    let axis = match body.joint_type {
        JointType::Revolute { axis } | JointType::Helical { axis, .. } | JointType::Cylindrical { axis } => {
            Some(axis)
        }
        _ => None,
    };
    transfer
        .basis
        .iter()
        .map(|vector| match (&vector[..], axis) {
            ([(b, change)], Some(axis)) if *b == transfer.body => {
                let inertia = Inertia::from_parameters(&Parameters::from(*change));
                special(&inertia, &axis, &mechanism.joints()[body.joint].name)
                    .unwrap_or_else(|| plain(mechanism, vector))
            }
            _ => plain(mechanism, vector),
        })
        .collect()
}

/// Describes the transfers that every unconstrained joint with an axis has.
fn special(i: &Inertia<f64>, axis: &Vector3<f64>, joint: &str) -> Option<String> {
    let (h, r) = (i.first_moment, i.rotational);
    let size = i.parameters().amax();
    let none = |x: f64| x <= 1e-9 * size;
    let outer = axis * axis.transpose();
    let along = h - axis * axis.dot(&h);
    if none(h.amax()) && none(r.amax()) {
        Some(format!("mass on the axis of {joint}"))
    } else if none(i.mass.abs()) && none(r.amax()) && none(along.amax()) {
        Some(format!("first moment along the axis of {joint}"))
    } else if none(i.mass.abs()) && none(h.amax()) {
        let spin = axis.dot(&(r * axis));
        let across = 0.5 * (r.trace() - spin);
        let rod = (nalgebra::Matrix3::identity() - outer) * across;
        (none(spin.abs()) && none((r - rod).amax()))
            .then(|| format!("a thin rod along the axis of {joint} (equal inertia across it, none about it)"))
    } else {
        None
    }
}

fn plain(mechanism: &Mechanism, vector: &[(usize, [f64; 10])]) -> String {
    let terms: Vec<(String, f64)> = vector
        .iter()
        .flat_map(|(b, change)| {
            let name = &mechanism.bodies()[*b].name;
            let size = change.iter().fold(0.0f64, |s, x| s.max(x.abs()));
            PARAMETER_NAMES
                .iter()
                .zip(change)
                .filter(move |(_, x)| x.abs() > 1e-12 * size)
                .map(move |(p, x)| (format!("{name}.{p}"), *x))
        })
        .collect();
    formula(&terms)
}

/// Describes the result of `--compare`.
fn comparison(label: &str, comparison: &Comparison) -> String {
    let mut out = format!("\nCompared with {label}: ");
    if comparison.lost == 0 {
        out += "every combination that is identifiable there is identifiable here too.\n";
    } else {
        let listed = &comparison.lost_base_parameters;
        let _ = writeln!(
            out,
            "{} of it {} not determined here; {} missing for {}:",
            plural(listed.len(), "base parameter", "base parameters"),
            if listed.len() == 1 { "is" } else { "are" },
            plural(comparison.lost, "combination is", "combinations are"),
            if listed.len() == 1 { "it" } else { "them" },
        );
        for base in &comparison.lost_base_parameters {
            let _ = writeln!(out, "  {}", formula(&base.combination));
        }
    }
    let names = |predicted: bool| {
        let forces = comparison.forces.iter().filter(|f| f.predicted == predicted);
        forces.map(|f| f.name.as_str()).collect::<Vec<_>>().join(" ")
    };
    let (right, wrong) = (names(true), names(false));
    if !wrong.is_empty() {
        let _ = writeln!(out, "Forces there that would be mispredicted: {wrong}");
    }
    if !right.is_empty() {
        let _ = writeln!(out, "Forces there that would be predicted: {right}");
    }
    out
}

/// Formats a table of an analysis as CSV.
pub fn csv(analysis: &Analysis, table: AnalysisTable) -> String {
    match table {
        AnalysisTable::Parameters => parameters_csv(analysis),
        AnalysisTable::NullSpace => null_space_csv(analysis),
    }
}

/// Formats a basis of the null space of the parameters: one line per nonzero coefficient.
fn null_space_csv(analysis: &Analysis) -> String {
    let mut out = String::from("vector,reason,parameter,coefficient\n");
    for (k, vector) in analysis.null_space.iter().enumerate() {
        for (name, x) in &vector.combination {
            let _ = writeln!(out, "{},{},{},{x}", k + 1, quoted(&vector.reason), quoted(name));
        }
    }
    out
}

/// Lists every parameter with its status; base parameters with their combination.
fn parameters_csv(analysis: &Analysis) -> String {
    let mut out = String::from("body,parameter,status,base,combination\n");
    for body in &analysis.bodies {
        for &(name, status) in &body.parameters {
            let full = format!("{}.{name}", body.name);
            let base = analysis.base_parameters.iter().find(|b| b.name == full);
            let status = match status {
                Status::Identifiable => "identifiable",
                Status::Combined => "combined",
                Status::Unidentifiable => "unidentifiable",
            };
            let combination = base.map_or_else(String::new, |b| formula(&b.combination));
            let _ = writeln!(
                out,
                "{},{name},{status},{},{}",
                quoted(&body.name),
                u8::from(base.is_some()),
                quoted(&combination)
            );
        }
    }
    out
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.into()
    }
}

/// Formats the table as in the paper: one row per parameter, one column per body.
pub fn latex(analysis: &Analysis) -> String {
    let links: Vec<&BodyReport> = analysis.bodies.iter().filter(|b| b.joint_type != "rotor").collect();
    let mut out = String::from(
        "% \\bigstar needs amssymb. Identifiable alone: star; base parameter: filled circle;\n\
         % in combination: open circle; unidentifiable: cross.\n",
    );
    let _ = writeln!(out, "\\begin{{tabular}}{{l{}}}", "c".repeat(links.len()));
    out += "\\hline\n";
    let names: Vec<_> = links.iter().map(|b| escape(&b.name)).collect();
    let _ = writeln!(out, " & {} \\\\\n\\hline", names.join(" & "));
    let mark = |s: &str| match s {
        "★" => "$\\bigstar$",
        "●" => "$\\bullet$",
        "○" => "$\\circ$",
        "✕" => "$\\times$",
        _ => "",
    };
    let columns: Vec<_> = links.iter().map(|b| cells(b)).collect();
    for (k, name) in PARAMETER_NAMES.iter().enumerate() {
        let (letter, index) = name.split_at(1);
        let label = if index.is_empty() { format!("${letter}$") } else { format!("${letter}_{{{index}}}$") };
        let row: Vec<_> = columns.iter().map(|c| mark(&c[k])).collect();
        let _ = writeln!(out, "{label} & {} \\\\", row.join(" & "));
    }
    if analysis.model.rotors > 0 {
        let row: Vec<_> = links
            .iter()
            .map(|link| {
                let rotor = analysis.bodies.iter().find(|b| b.joint_type == "rotor" && b.joint == link.joint);
                rotor.map_or("", |r| mark(&cells(r)[9]))
            })
            .collect();
        let _ = writeln!(out, "$I_m$ & {} \\\\", row.join(" & "));
    }
    out += "\\hline\n";
    for (letter, k) in ["V", "K", "T"].into_iter().zip(0..) {
        let span =
            |b: &&BodyReport| [b.velocity_span, b.identifiable_span, b.transfer_freedoms][k].to_string();
        let row: Vec<_> = links.iter().map(span).collect();
        let _ = writeln!(out, "$\\dim {letter}_i$ & {} \\\\", row.join(" & "));
    }
    out += "\\hline\n\\end{tabular}\n";
    out
}

fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if "&%$#_{}".contains(c) {
            out.push('\\');
        }
        match c {
            '\\' => out += "\\textbackslash{}",
            '~' => out += "\\textasciitilde{}",
            '^' => out += "\\textasciicircum{}",
            c => out.push(c),
        }
    }
    out
}
