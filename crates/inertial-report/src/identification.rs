//! Text of an identification and of a validation.

use std::fmt::Write as _;

use inertial::consistency::significant;
use inertial::estimation::{
    BodyEstimate, Identification, Interval, IntervalKind, JointEstimate, LeastNorm, Posterior, Residual,
    TermChoice,
};

use crate::text::{self, Style, percent, percent_to, with_error};

/// Formats tables of bodies, joints, base parameters and residuals.
pub fn text(result: &Identification, style: Style) -> String {
    let number = |x: f64| significant(x, 5);
    let mut out = format!(
        "{}: {} samples excite {} of {} base parameters (estimator: {})\n\n",
        result.model.name,
        result.samples,
        result.excited,
        result.rank,
        text::estimator(result.estimator)
    );
    out += &match &result.least_norm {
        Some(least_norm) => least_norm_bodies(&result.bodies, least_norm, style),
        None => bodies(&result.bodies, style),
    };
    out += "\n";
    out += &joints(&result.joints, style);
    out += &term_choices(&result.terms);
    let relative = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| percent_to(x, 2));
    let parameters = result.base_parameters.iter().map(|p| {
        [p.name.clone(), number(p.value), significant(p.std_error, 2), relative(p.relative_std_error)]
    });
    out += "\n";
    out += &text::table(style, ["base parameter", "value", "standard error", "relative"], 3, parameters);
    out += &intervals(&result.intervals, style);
    out += &result.posterior.as_ref().map_or_else(String::new, |p| posterior(p, style));
    if let Some(essential) = &result.essential {
        let _ = writeln!(
            out,
            "\nessential: {} of {} unknowns; below the noise: {}",
            essential.parameters.len(),
            essential.parameters.len() + essential.dropped.len(),
            if essential.dropped.is_empty() { "none".to_owned() } else { essential.dropped.join(", ") }
        );
    }
    out += "\n";
    let fit = TotalResidual {
        relative_rms: result.fit_relative_rms,
        relative_rms_raw: result.fit_relative_rms_raw,
        left_out: result.fit_left_out,
    };
    out += &residuals("fit", &result.fit, fit, Predicted::Forces, style);
    if let (Some(relative_rms), Some(relative_rms_raw), Some(left_out)) =
        (result.validation_relative_rms, result.validation_relative_rms_raw, result.validation_left_out)
    {
        out += "\n";
        let all = TotalResidual { relative_rms, relative_rms_raw, left_out };
        out += &residuals("validation", &result.validation, all, Predicted::Forces, style);
    }
    if let Some(verdict) = result.verdict {
        let _ = writeln!(out, "verdict: {}", verdict.word());
        for reason in &result.reasons {
            let _ = writeln!(out, "  {}", reason.message);
        }
    }
    for warning in &result.warnings {
        let _ = writeln!(out, "note: {warning}");
    }
    out
}

/// Formats a table of guaranteed intervals; empty if there are none.
fn intervals(intervals: &[Interval], style: Style) -> String {
    if intervals.is_empty() {
        return String::new();
    }
    let end = |x: Option<f64>| x.map_or_else(|| "unbounded".to_owned(), |x| significant(x, 6));
    let rows = intervals.iter().map(|i| [interval_name(&i.name, i.kind), end(i.lower), end(i.upper)]);
    let mut out = format!("\n{}", text::table(style, ["guaranteed interval", "from", "to"], 2, rows));
    let is_not_smallest = |i: &&Interval| {
        let width = i.upper.zip(i.lower).map(|(upper, lower)| upper - lower);
        i.gap.zip(width).is_some_and(|(gap, width)| gap > 0.01 * width)
    };
    let not_smallest: Vec<_> = intervals.iter().filter(is_not_smallest).map(|i| i.name.as_str()).collect();
    if !not_smallest.is_empty() {
        let _ = writeln!(
            out,
            "note: rounding errors stopped the search early for {}: these intervals hold, but are not the smallest",
            not_smallest.join(", ")
        );
    }
    out
}

/// Returns the name of the value of an interval, which distinguishes base parameters from plain parameters with the same name.
fn interval_name(name: &str, kind: IntervalKind) -> String {
    match kind {
        IntervalKind::Base => format!("{name} (base)"),
        _ => name.to_owned(),
    }
}

/// Formats a table of credible intervals of masses and centres of mass; the JSON contains all others.
fn posterior(posterior: &Posterior, style: Style) -> String {
    let own = |kind: IntervalKind| matches!(kind, IntervalKind::Mass | IntervalKind::Com);
    let rows = posterior.intervals.iter().filter(|i| own(i.kind)).map(|i| {
        let [lower, median, upper] = [i.lower, i.median, i.upper].map(|x| significant(x, 4));
        [i.name.clone(), lower, median, upper]
    });
    let header = format!("{:.0} % credible interval", 100.0 * posterior.level);
    format!("\n{}", text::table(style, [header.as_str(), "from", "median", "to"], 3, rows))
}

/// Formats the decisions on joint terms, one line per kind.
pub(crate) fn term_choices(terms: &[TermChoice]) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for choice in terms {
        if !kinds.contains(&choice.term) {
            kinds.push(choice.term);
        }
    }
    let mut out = String::new();
    for kind in kinds {
        let own = || terms.iter().filter(|c| c.term == kind);
        let names = |wanted: &dyn Fn(&TermChoice) -> bool| -> Vec<&str> {
            own().filter(|c| wanted(c)).map(|c| c.joint.as_str()).collect()
        };
        let groups = [
            ("needed by", names(&|c| c.chosen && !c.is_undecided())),
            ("kept but undecided for", names(&|c| c.chosen && c.is_undecided())),
            ("undecided for", names(&|c| !c.chosen && c.is_undecided())),
            ("not needed by", names(&|c| !c.chosen && !c.is_undecided())),
        ];
        let all = own().count();
        let part = |(words, joints): &(&str, Vec<&str>)| match joints.len() {
            0 => None,
            count if count == all && *words == "not needed by" => Some("not needed".to_owned()),
            count if count == all => Some(format!("{words} all joints")),
            _ => Some(format!("{words} {}", joints.join(", "))),
        };
        let mut text = groups.iter().filter_map(part).collect::<Vec<String>>().join(", ");
        if text.starts_with("needed by") {
            text = text.replace(", not needed by", ", not by");
        }
        let _ = writeln!(out, "{}: {text}", kind.replace('_', " "));
    }
    out
}

/// Formats a table of the bodies, with standard errors if the estimator provides them.
pub(crate) fn bodies(bodies: &[BodyEstimate], style: Style) -> String {
    let errors = bodies.iter().any(|b| b.mass_std_error.is_some());
    let point = |x: [f64; 3], digits: usize| x.map(|x| significant(x, digits)).join(" ");
    let rows = bodies.iter().map(|b| {
        let mass_error = b.mass_std_error.map_or("-".into(), |e| significant(e, 2));
        let com_error = b.com_std_error.map_or("-".into(), |e| point(e, 2));
        let verdict = if b.consistent { "yes" } else { "no" };
        // The quotient of first moments and a mass that is not positive is no centre of mass.
        let com = if b.mass > 0.0 { point(b.com, 3) } else { "-".to_owned() };
        let [name, mass] = [b.name.clone(), significant(b.mass, 5)];
        if errors {
            vec![name, mass, mass_error, com, com_error, verdict.to_owned()]
        } else {
            vec![name, mass, com, verdict.to_owned()]
        }
    });
    if errors {
        let header = ["body", "mass (kg)", "± (kg)", "centre of mass (m)", "± (m)", "consistent"];
        text::wide_table(style, &header, rows)
    } else {
        text::wide_table(style, &["body", "mass (kg)", "centre of mass (m)", "consistent"], rows)
    }
}

/// Formats a table of the bodies of a least-norm solution. Centres of mass are printed only for bodies whose mass is identifiable
/// alone.
fn least_norm_bodies(bodies: &[BodyEstimate], least_norm: &LeastNorm, style: Style) -> String {
    let rows = bodies.iter().map(|b| {
        let determined = b.mass > 0.0 && least_norm.masses.contains(&b.name);
        let com = if determined { b.com.map(|x| significant(x, 3)).join(" ") } else { "-".to_owned() };
        vec![b.name.clone(), significant(b.mass, 5), com]
    });
    let table = text::wide_table(style, &["body", "least-norm mass (kg)", "centre of mass (m)"], rows);
    format!(
        "Least-norm values (pseudo-inverse): one of many sets of parameters that predict the same forces, not physical bodies.\n\
         The data determine the base parameters below.\n{table}"
    )
}

/// Formats a table of the estimated joint terms.
fn joints(joints: &[JointEstimate], style: Style) -> String {
    type Read = fn(&JointEstimate) -> Option<f64>;
    // Heading, name of the standard error, value.
    let all: [(&str, &str, Read); 10] = [
        ("viscous", "viscous", |j| j.viscous),
        ("Coulomb", "coulomb", |j| j.coulomb),
        ("forward", "coulomb_positive", |j| j.coulomb_positive),
        ("backward", "coulomb_negative", |j| j.coulomb_negative),
        ("Stribeck", "stribeck", |j| j.stribeck),
        ("at speed", "", |j| j.stribeck_velocity),
        ("exponent", "", |j| j.stribeck_exponent),
        ("offset", "offset", |j| j.offset),
        ("rotor inertia", "rotor_inertia", |j| j.rotor_inertia),
        ("gain", "gain", |j| j.gain),
    ];
    let columns: Vec<_> =
        all.into_iter().filter(|(_, _, read)| joints.iter().any(|j| read(j).is_some())).collect();
    if columns.is_empty() {
        return String::new();
    }
    let header: Vec<&str> =
        std::iter::once("joint").chain(columns.iter().map(|(title, ..)| *title)).collect();
    // Coordinates of a floating base have no terms.
    let is_of_base = |j: &JointEstimate| {
        let twist = ["vx", "vy", "vz", "wx", "wy", "wz"];
        j.name.rsplit_once('.').is_some_and(|(_, end)| twist.contains(&end))
    };
    let has_value = |j: &JointEstimate| columns.iter().any(|(_, _, read)| read(j).is_some());
    let rows = joints.iter().filter(|j| has_value(j) || !is_of_base(j)).map(|j| {
        let error =
            |name: &str| if name == "gain" { j.gain_std_error.as_ref() } else { j.std_errors.get(name) };
        let values = columns
            .iter()
            .map(|(_, name, read)| read(j).map_or_else(|| "-".into(), |x| with_error(x, error(name))));
        std::iter::once(j.name.clone()).chain(values).collect()
    });
    let mut out = text::wide_table(style, &header, rows);
    for joint in joints {
        for (name, value) in &joint.terms {
            let _ =
                writeln!(out, "{}.{name}: {}", joint.name, with_error(*value, joint.std_errors.get(name)));
        }
        if !joint.turns_with.is_empty() {
            let part = |(name, factor): (&String, &f64)| match *factor {
                1.0 => name.clone(),
                factor => format!("{} {name}", text::number(factor)),
            };
            let parts: Vec<String> = joint.turns_with.iter().map(part).collect();
            let _ = writeln!(out, "the drive of {} turns with {}", joint.name, parts.join(" + "));
        }
    }
    out
}

/// Quantity that a model predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Predicted {
    /// Forces and torques.
    Forces,
    /// Momentum of a free flight.
    Momentum,
}

/// Formats a table of residuals.
pub fn residuals(
    title: &str,
    joints: &[Residual],
    all: TotalResidual,
    predicted: Predicted,
    style: Style,
) -> String {
    let rows = joints.iter().map(|r| {
        let whiteness = r.durbin_watson.map_or_else(|| "-".to_owned(), |d| format!("{d:.2}"));
        let chance = r.ljung_box_p.map_or_else(|| "-".to_owned(), |p| significant(p, 2));
        [
            r.joint.clone(),
            significant(r.rms, 4),
            percent(r.relative_rms),
            significant(r.rms_raw, 4),
            whiteness,
            chance,
        ]
    });
    let [unit, of, total_label] = match predicted {
        // Forces of prismatic joints and of a base are in N.
        Predicted::Forces => ["rms (N m, N)", "of torque", "all joints"],
        Predicted::Momentum => ["rms (N s, N m s)", "of momentum", "all components"],
    };
    let heads = [title, unit, of, "unfiltered", "Durbin-Watson", "Ljung-Box p"];
    let table = text::table(style, heads, 5, rows);
    let left_out =
        if all.left_out > 0.0 { format!(", {} not fitted", percent(all.left_out)) } else { String::new() };
    format!(
        "{table}{total_label}: {}; unfiltered, over all samples: {}{left_out}\n",
        percent(all.relative_rms),
        percent(all.relative_rms_raw)
    )
}

/// Residuals of all joints together, relative to the forces.
#[derive(Debug, Clone, Copy)]
pub struct TotalResidual {
    /// Relative residual in the frequency band of the fit.
    pub relative_rms: f64,
    /// Relative residual of unfiltered forces, over all samples.
    pub relative_rms_raw: f64,
    /// Fraction of samples that are not used.
    pub left_out: f64,
}

/// Formats an estimate of a stream in one line.
pub fn stream_line(t: f64, result: &Identification) -> String {
    let masses: Vec<String> =
        result.bodies.iter().map(|b| format!("{} {}", b.name, significant(b.mass, 4))).collect();
    format!(
        "t {t:.2} s  {} of {} excited  fit {}  masses (kg): {}\n",
        result.excited,
        result.rank,
        percent(result.fit_relative_rms),
        masses.join(", ")
    )
}
