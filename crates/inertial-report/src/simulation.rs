//! Text of a simulation, and one-line description of a model.

use inertial::consistency::significant;
use inertial_app::model::Summary;
use inertial_app::simulate::Outcome;

use crate::text::plural;

/// Formats the model, the samples, and the violation of conservation laws.
pub fn text(outcome: &Outcome) -> String {
    let mut out = format!(
        "{}\n{} samples, t = {} to {} s\n",
        model(&outcome.model),
        outcome.samples,
        outcome.start,
        outcome.end
    );
    let d = &outcome.drift;
    for (what, value, unit) in [
        ("energy drift", d.energy, "J"),
        ("energy drift, relative", d.energy_relative, ""),
        ("momentum drift", d.momentum, "N s, N m s"),
        ("drift of the centre of mass", d.centre_of_mass, "m"),
        ("largest residual of the loops", d.closure, ""),
    ] {
        if let Some(value) = value {
            out += format!("{what}: {} {unit}", significant(value, 3)).trim_end();
            out += "\n";
        }
    }
    out
}

/// Describes a model in one line.
pub fn model(summary: &Summary) -> String {
    let mut parts = vec![
        plural(summary.bodies, "body", "bodies"),
        plural(summary.dof, "degree of freedom", "degrees of freedom"),
        format!("{} base", summary.base),
    ];
    if summary.loops > 0 {
        parts.push(plural(summary.loops, "loop", "loops"));
    }
    if summary.rotors > 0 {
        parts.push(plural(summary.rotors, "rotor", "rotors"));
    }
    let [x, y, z] = summary.gravity;
    format!("{}: {}, gravity {x} {y} {z} m/s²", summary.name, parts.join(", "))
}
