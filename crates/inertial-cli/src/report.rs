//! What `check` finds, as a result object and as a table.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use inertial::consistency::{self, Verdict, Violation, significant};
use inertial::mechanism::BuildOptions;
use inertial::spatial::Inertia;
use serde::Serialize;

use crate::model::{Model, plural};
use crate::output;

/// The verdicts on one model.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Whether all bodies are consistent.
    pub consistent: bool,
    /// Links and rotors, in the order of the description.
    pub bodies: Vec<BodyReport>,
}

/// The verdict on one link or rotor.
#[derive(Debug, Serialize)]
pub struct BodyReport {
    name: String,
    mass: f64,
    /// Whether a body can have its parameters.
    pub consistent: bool,
    pseudo_inertia_min_eigenvalue: f64,
    violations: Vec<Violation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<InertialText>,
    /// The same as `nearest`, in the link's frame.
    #[serde(skip)]
    nearest_inertia: Option<Inertia<f64>>,
}

/// An inertia as URDF gives it: about the centre of mass, along the link's axes.
#[derive(Debug, Serialize)]
struct InertialText {
    mass: f64,
    com: [f64; 3],
    inertia: Tensor,
}

#[derive(Debug, Serialize)]
struct Tensor {
    ixx: f64,
    ixy: f64,
    ixz: f64,
    iyy: f64,
    iyz: f64,
    izz: f64,
}

impl From<&Inertia<f64>> for InertialText {
    fn from(inertia: &Inertia<f64>) -> Self {
        let i = inertia.about_com();
        Self {
            mass: inertia.mass,
            com: inertia.com().unwrap_or_default().into(),
            inertia: Tensor {
                ixx: i[(0, 0)],
                ixy: i[(0, 1)],
                ixz: i[(0, 2)],
                iyy: i[(1, 1)],
                iyz: i[(1, 2)],
                izz: i[(2, 2)],
            },
        }
    }
}

impl BodyReport {
    fn new(name: &str, inertia: &Inertia<f64>, tolerance: f64) -> Result<Self> {
        let Verdict { violations, pseudo_inertia_min_eigenvalue, .. } =
            consistency::judge(inertia, tolerance).with_context(|| name.to_owned())?;
        let nearest_inertia = if violations.is_empty() { None } else { Some(consistency::nearest(inertia)?) };
        let (violations, reasons): (Vec<_>, Vec<_>) = violations.into_iter().unzip();
        Ok(Self {
            name: name.to_owned(),
            mass: inertia.mass,
            consistent: violations.is_empty(),
            pseudo_inertia_min_eigenvalue,
            violations,
            reasons,
            nearest: nearest_inertia.as_ref().map(InertialText::from),
            nearest_inertia,
        })
    }
}

impl Report {
    /// Judges each link of the description by itself, and each rotor. Those of which the model says nothing are listed
    /// with `all` only.
    pub fn new(model: &Model, options: &BuildOptions, tolerance: f64, all: bool) -> Result<Self> {
        let mechanism = model.build(options)?;
        let links = mechanism
            .links()
            .iter()
            .filter(|l| !model.builder.massless.contains(&l.name))
            .map(|l| (l.name.clone(), l.inertia));
        // A rotor of zeros is one that the model gives no inertia.
        let rotors = model.builder.rotors.iter().map(|r| Some(r.inertia).filter(|i| *i != Inertia::zero()));
        let rotors = model.builder.rotor_names().into_iter().zip(rotors);
        let bodies = links
            .chain(rotors)
            .filter(|(_, inertia)| all || inertia.is_some())
            .map(|(name, inertia)| BodyReport::new(&name, &inertia.unwrap_or_else(Inertia::zero), tolerance))
            .collect::<Result<Vec<_>>>()
            .with_context(|| model.label.clone())?;
        Ok(Self { consistent: bodies.iter().all(|b| b.consistent), bodies })
    }

    /// The nearest consistent inertias of those that are not.
    pub fn fixes(&self) -> Vec<(&str, Inertia<f64>)> {
        self.bodies.iter().filter_map(|b| Some((b.name.as_str(), b.nearest_inertia?))).collect()
    }

    /// A table for people, and the reasons below it.
    pub fn text(&self, label: &str, mechanism_name: &str) -> String {
        let impossible: Vec<_> = self.bodies.iter().filter(|b| !b.consistent).collect();
        let title = if mechanism_name.is_empty() || label.ends_with(mechanism_name) {
            label.to_owned()
        } else {
            format!("{label} ({mechanism_name})")
        };
        if self.bodies.is_empty() {
            return format!("{title}: no link has inertial parameters (--all lists them)\n");
        }
        let rows = self.bodies.iter().map(|body| {
            let names: Vec<_> = body.violations.iter().map(|v| v.name()).collect();
            let verdict = if body.consistent { "yes".into() } else { format!("no: {}", names.join(", ")) };
            let eigenvalue = format!("{:.3e}", body.pseudo_inertia_min_eigenvalue);
            [body.name.clone(), output::number(body.mass), eigenvalue, verdict]
        });
        let table = output::table(["body", "mass (kg)", "least eigenvalue", "can exist"], 2, rows);
        let mut out = format!("{title}\n\n{table}\n");
        for body in &impossible {
            for reason in &body.reasons {
                let _ = writeln!(out, "{}: {reason}", body.name);
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
                    "{}: nearest that can exist: mass {} kg, {entries} kg m²",
                    body.name, n.mass
                );
            }
        }
        let bodies = plural(self.bodies.len(), "body", "bodies");
        let _ = match impossible.len() {
            0 => writeln!(out, "{bodies}: all can exist"),
            n => writeln!(out, "{bodies}: {n} cannot exist"),
        };
        out
    }
}
