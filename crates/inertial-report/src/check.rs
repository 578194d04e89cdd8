//! Text of a consistency check.

use std::fmt::Write as _;
use std::path::Path;

use inertial::consistency::significant;
use inertial_app::check::Outcome;

use crate::text::{Style, number, plural, table};

/// Formats a table of the bodies followed by the reasons; the title contains the label of the input and the name of the model.
/// `written` is the file with the corrected model, if there is one.
pub fn text(outcome: &Outcome, label: &str, name: &str, written: Option<&Path>, style: Style) -> String {
    let impossible: Vec<_> = outcome.bodies.iter().filter(|b| !b.consistent).collect();
    let title =
        if name.is_empty() || label.ends_with(name) { label.to_owned() } else { format!("{label} ({name})") };
    if outcome.bodies.is_empty() {
        return format!("{title}: no link has inertial parameters (--all lists them)\n");
    }
    let rows = outcome.bodies.iter().map(|body| {
        let names: Vec<_> = body.violations.iter().map(|v| v.name()).collect();
        let doubts: Vec<_> = body.doubts.iter().map(|d| d.name()).collect();
        let mut verdict = match (body.consistent, &body.rounding) {
            (true, Some(_)) => "yes, within its digits".into(),
            (true, None) => String::from("yes"),
            (false, _) => format!("no: {}", names.join(", ")),
        };
        if !doubts.is_empty() {
            let _ = write!(verdict, ", doubtful: {}", doubts.join(", "));
        }
        let eigenvalue = format!("{:.3e}", body.pseudo_inertia_min_eigenvalue);
        [body.name.clone(), number(body.mass), eigenvalue, verdict]
    });
    let table = table(style, ["body", "mass (kg)", "smallest eigenvalue", "consistent"], 2, rows);
    let mut out = format!("{title}\n\n{table}\n");
    for body in &impossible {
        for reason in &body.reasons {
            let _ = writeln!(out, "{}: {reason}", body.name);
        }
        if let Some(rounding) = &body.rounding {
            let best = significant(rounding.upper_bound, 4);
            let _ = writeln!(
                out,
                "{}: no parameters that round to these values have a smallest eigenvalue above {best}",
                body.name
            );
        }
        if let Some(n) = &body.nearest {
            let t = &n.inertia;
            let entries = [
                ("ixx", t.ixx),
                ("ixy", t.ixy),
                ("ixz", t.ixz),
                ("iyy", t.iyy),
                ("iyz", t.iyz),
                ("izz", t.izz),
            ];
            let entries = entries.map(|(name, x)| format!("{name} {}", significant(x, 4))).join(", ");
            let _ = writeln!(
                out,
                "{}: nearest consistent values: mass {} kg, {entries} kg m²",
                body.name, n.mass
            );
        }
    }
    for body in &outcome.bodies {
        for reason in &body.doubt_reasons {
            let _ = writeln!(out, "{}: doubtful: {reason}", body.name);
        }
    }
    let doubtful = match outcome.bodies.iter().filter(|b| !b.doubts.is_empty()).count() {
        0 => String::new(),
        n => format!(", {n} doubtful"),
    };
    let bodies = plural(outcome.bodies.len(), "body", "bodies");
    let _ = match (impossible.len(), written) {
        (0, _) => writeln!(out, "{bodies}, all physically consistent{doubtful}"),
        (n, Some(path)) => writeln!(
            out,
            "{bodies}, {n} physically impossible{doubtful}; {} has the nearest consistent values",
            path.display()
        ),
        (n, None) if outcome.bodies.iter().any(|b| b.rounding.is_some()) => {
            writeln!(out, "{bodies}, {n} physically impossible{doubtful}")
        }
        (n, None) => writeln!(
            out,
            "{bodies}, {n} physically impossible{doubtful}; 'inertial check --fix --out FILE' writes the nearest consistent values"
        ),
    };
    out
}
