//! Pages: self-contained HTML files that show the robot, the result and its provenance without network access.
//!
//! [`Page`] contains the data; the files in `page/` draw them in a browser. Numbers on the page are those of the JSON
//! result, which is embedded unchanged.

mod design;
mod frame;
mod identification;
mod mesh;
mod robot;
mod shapes;

use inertial::estimation::Verdict;
use inertial::identifiability::Analysis;
use inertial::identifiability::drng::picture;
use inertial::mechanism::Mechanism;
use inertial_app::curves::{Curve, Curves, Motion};
use inertial_app::{Checksum, Context, Error, Model, Result, analyze, check};
use serde::Serialize;

use crate::analysis::error_probability;

pub use design::{Trajectory, of_design};
pub use identification::{of_identification, of_momentum, of_payload, of_validation};
pub use robot::Robot;

/// HTML of the server page, with the placeholder `{{style}}` for the style sheet.
pub const SERVE: &str = include_str!("../../page/serve.html");
/// Style sheet of all pages.
pub const CSS: &str = include_str!("../../page/page.css");

/// Data of a page; sections without data are omitted.
#[derive(Debug, Default, Serialize)]
pub struct Page {
    /// Kind of the page, in two words.
    pub kind: &'static str,
    /// Name of the robot.
    pub title: String,
    /// Result in one sentence.
    pub lead: String,
    /// Most important numbers.
    pub tiles: Vec<Tile>,
    /// Warnings for the user, each with advice.
    pub warnings: Vec<String>,
    /// Reasons not to trust the result.
    pub severe: Vec<String>,
    /// Robot for the 3D view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robot: Option<Robot>,
    /// Measured and predicted forces or momenta.
    pub curves: Vec<Curve>,
    /// Motions for playback: those of the logs, or the designed one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub motions: Vec<Motion>,
    /// Object of `identify --json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identification: Option<serde_json::Value>,
    /// Unit and prior value of the base parameters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// Singular values of the data in base parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub singular_values: Option<SingularValues>,
    /// Object of `design --json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub design: Option<serde_json::Value>,
    /// Designed motion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trajectory: Option<Trajectory>,
    /// Object of `validate --json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<serde_json::Value>,
    /// Object of `check --json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<serde_json::Value>,
    /// Object of `analyze --json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<serde_json::Value>,
    /// Graph of the mechanism as SVG.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// Provenance of the result.
    pub provenance: Provenance,
}

/// Number with its label.
#[derive(Debug, Serialize)]
pub struct Tile {
    value: String,
    label: String,
    /// Grade of the number: `good`, `fair` or `poor`; absent if it cannot be graded.
    #[serde(skip_serializing_if = "Option::is_none")]
    grade: Option<&'static str>,
    /// Advice for the next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

/// Upper limits of the relative residual for each grade, with advice for the next step.
const GRADES: [(f64, &str, Option<&str>); 3] = [
    (0.1, "good", None),
    (0.25, "fair", Some("Next: try other friction terms, offsets and rotor inertias.")),
    (
        f64::INFINITY,
        "poor",
        Some("Next: check units, signs and joint order of the log, then friction terms."),
    ),
];

/// Additional information about a base parameter besides the result.
#[derive(Debug, Serialize)]
pub struct Parameter {
    unit: &'static str,
    /// Value according to the model, if known.
    pub model: Option<f64>,
}

/// Singular values of the data in base parameters, largest first.
#[derive(Debug, Serialize)]
pub struct SingularValues {
    /// Singular values.
    pub values: Vec<f64>,
    /// Number of directions that the motion excites.
    pub excited: usize,
    rank: usize,
}

/// Provenance of a result.
#[derive(Debug, Default, Serialize)]
pub struct Provenance {
    command: String,
    program: String,
    inputs: Vec<Checksum>,
    facts: Vec<Fact>,
}

#[derive(Debug, Serialize)]
struct Fact {
    label: &'static str,
    value: String,
}

/// Information of the caller about the provenance of a result.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// Command that reproduces the result; empty if there is none to show.
    pub command: String,
    /// Inputs except the model.
    pub inputs: Vec<Checksum>,
}

impl Page {
    /// Creates a page of a model.
    pub fn new(kind: &'static str, model: &Model, origin: Origin) -> Self {
        let own = Checksum::of_text(&model.label, model.text.as_bytes());
        let provenance = Provenance {
            command: origin.command,
            program: format!("inertial {}", env!("CARGO_PKG_VERSION")),
            inputs: std::iter::once(own).chain(origin.inputs).collect(),
            facts: Vec::new(),
        };
        Self { kind, title: model.mechanism.name().to_owned(), provenance, ..Self::default() }
    }

    /// Adds a number to the header.
    pub fn tile(&mut self, value: &dyn std::fmt::Display, label: &str) {
        self.tiles.push(Tile { value: value.to_string(), label: label.to_owned(), grade: None, hint: None });
    }

    /// Adds the verdict on a result to the header.
    fn verdict_tile(&mut self, verdict: Verdict) {
        let grade = match verdict {
            Verdict::Good => "good",
            Verdict::Doubtful => "fair",
            Verdict::DoNotUse => "poor",
        };
        let (value, label) = (verdict.word().to_owned(), "verdict".to_owned());
        self.tiles.push(Tile { value, label, grade: Some(grade), hint: None });
    }

    /// Adds a relative residual to the header, coloured by its grade.
    fn residual_tile(&mut self, residual: f64, label: &str) {
        let found = GRADES.iter().find(|(most, ..)| residual <= *most);
        let (value, label) = (crate::text::percent(residual), label.to_owned());
        self.tiles.push(Tile { value, label, grade: found.map(|g| g.1), hint: found.and_then(|g| g.2) });
    }

    /// Adds a setting on which the result depends.
    pub fn fact(&mut self, label: &'static str, value: impl Into<String>) {
        self.provenance.facts.push(Fact { label, value: value.into() });
    }

    /// Sets the curves and the motions of the logs.
    pub fn set_curves(&mut self, curves: Curves) {
        (self.curves, self.motions) = (curves.curves, curves.motions);
    }

    /// Sets the section of an identifiability analysis.
    pub fn set_analysis(&mut self, mechanism: &Mechanism, analysis: &Analysis) -> Result<()> {
        self.graph = Some(picture::svg(mechanism, &analysis.null_vectors));
        self.analysis = Some(serde_json::to_value(analysis)?);
        Ok(())
    }

    /// Returns the page as one HTML file.
    pub fn html(&self) -> Result<String> {
        // Inside a script element, only a tag could terminate the data.
        let data = serde_json::to_string(self)?.replace('<', "\\u003c");
        let script = [
            include_str!("../../page/kinematics.js"),
            include_str!("../../page/scene.js"),
            include_str!("../../page/plot.js"),
            include_str!("../../page/robot.js"),
            include_str!("../../page/page.js"),
        ];
        let parts = [
            ("{{title}}", escaped(&self.title)),
            ("{{style}}", CSS.to_owned()),
            ("{{script}}", format!("(() => {{\n\"use strict\";\n{}}})();", script.join("\n"))),
            ("{{data}}", data),
        ];
        let mut out = String::new();
        let mut rest = include_str!("../../page/page.html");
        while let Some(at) = rest.find("{{") {
            out += &rest[..at];
            rest = &rest[at..];
            let (mark, text) = parts
                .iter()
                .find(|(mark, _)| rest.starts_with(mark))
                .ok_or_else(|| Error::Input("the page has a mark without text".into()))?;
            out += text;
            rest = &rest[mark.len()..];
        }
        Ok(out + rest)
    }
}

/// Creates the page of an analysis.
pub fn of_analysis(
    model: &Model,
    outcome: &analyze::Outcome,
    origin: Origin,
    context: &Context<'_>,
) -> Result<Page> {
    let (mechanism, analysis) = (&model.mechanism, &outcome.analysis);
    let mut page = Page::new("Identifiability", model, origin);
    page.lead = format!(
        "{} of the {} inertial parameters of this robot, or combinations of them, can be identified from {}; {} cannot be identified by any experiment.",
        analysis.rank,
        analysis.parameters,
        measured(analysis.measured),
        analysis.nullity
    );
    page.tile(&analysis.rank, "base parameters");
    page.tile(&analysis.parameters, "parameters");
    page.tile(&analysis.model.dof, "degrees of freedom");
    page.tile(&analysis.model.bodies, "bodies");
    if analysis.model.loops > 0 {
        page.tile(&analysis.model.loops, "loops");
    }
    if analysis.model.rotors > 0 {
        page.tile(&analysis.model.rotors, "rotors");
    }
    page.tile(&if analysis.certificate.exact { "proved" } else { "bounded" }, "the rank is");
    page.warnings = analysis.warnings.iter().map(ToString::to_string).collect();
    page.robot = Some(Robot::new(mechanism, None)?.with_shapes(model, context));
    page.fact("measured", analysis.measured);
    page.fact("method", analysis.method);
    if let Some(chance) = error_probability(&analysis.certificate) {
        page.fact("error probability of the rank", chance);
    }
    page.set_analysis(mechanism, analysis)?;
    Ok(page)
}

/// Creates the page of a check.
pub fn of_check(
    model: &Model,
    outcome: &check::Outcome,
    options: &check::Options,
    origin: Origin,
    context: &Context<'_>,
) -> Result<Page> {
    let mut page = Page::new("Check", model, origin);
    let bad = outcome.bodies.iter().filter(|b| !b.consistent).count();
    page.lead = match bad {
        0 => "Every body of this model is physically consistent.".into(),
        1 => {
            "One body of this model is physically impossible: no mass distribution has its parameters.".into()
        }
        n => format!(
            "{n} bodies of this model are physically impossible: no mass distribution has their parameters."
        ),
    };
    if bad > 0 {
        page.warnings.push(
            "Simulators and controllers can become unstable with impossible bodies. 'inertial check --fix --out FILE' writes the nearest consistent values; 'inertial identify' estimates them from measurements."
                .into(),
        );
    }
    page.tile(&outcome.bodies.len(), "bodies checked");
    page.tile(&bad, "physically impossible");
    page.fact("tolerance", format!("{:e} of the largest principal moment", options.tolerance));
    // A model whose loops cannot be assembled can still be checked.
    page.robot = Robot::new(&model.mechanism, None).ok().map(|robot| robot.with_shapes(model, context));
    page.check = Some(serde_json::to_value(outcome)?);
    Ok(page)
}

/// Describes the measured quantities.
fn measured(choice: &str) -> String {
    match choice {
        "both" => "joint torques and the base wrench".into(),
        other => other.replace('-', " "),
    }
}

/// Capitalises a note, unless it begins with a name.
fn sentence(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    match first.chars().next() {
        Some(letter) if first.chars().all(|c| c.is_ascii_lowercase()) => {
            letter.to_ascii_uppercase().to_string() + &text[1..]
        }
        _ => text.to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
