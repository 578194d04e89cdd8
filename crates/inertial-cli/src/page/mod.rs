//! The page that people read: one file that shows the robot, the result and how it was obtained, without any network.
//!
//! [`Page`] is the data; the files in `page/` draw them in a browser. Numbers on the page are those of the JSON result,
//! which is embedded as it is.

mod design;
mod identification;
mod mesh;
mod robot;
mod shapes;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;

use anyhow::{Context, Result};
use inertial::identifiability::Analysis;
use inertial::identifiability::drng::picture;
use inertial::mechanism::Mechanism;
use serde::Serialize;

pub use design::{Designed, Trajectory, of_design};
pub use identification::{of_identification, of_momentum, of_payload, of_validation};
pub use robot::Robot;

use crate::curves::{Curve, Curves, Motion};
use crate::model::Model;
use crate::session;

/// All that a page shows; what is absent leaves its part out.
#[derive(Debug, Default, Serialize)]
pub struct Page {
    /// What the page is, in two words.
    pub kind: &'static str,
    /// The robot's name.
    pub title: String,
    /// The answer in a sentence.
    pub lead: String,
    /// The few numbers that matter most.
    pub tiles: Vec<Tile>,
    /// What people should know, each with what to do.
    pub warnings: Vec<String>,
    /// The robot to look at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robot: Option<Robot>,
    /// Measured and predicted forces or momenta.
    pub curves: Vec<Curve>,
    /// Motions to be played: those of the logs, or the designed one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub motions: Vec<Motion>,
    /// Object of `identify --json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identification: Option<serde_json::Value>,
    /// Unit and prior value of its base parameters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// How well the data show the base parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub singular_values: Option<SingularValues>,
    /// Object of `design --json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub design: Option<serde_json::Value>,
    /// The designed motion.
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
    /// The mechanism's graph as SVG.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// How it was obtained.
    pub provenance: Provenance,
}

/// A number with its meaning.
#[derive(Debug, Serialize)]
pub struct Tile {
    value: String,
    label: String,
}

/// What a page says of a base parameter besides the result.
#[derive(Debug, Serialize)]
pub struct Parameter {
    unit: &'static str,
    /// Its value according to the model, where that says anything.
    pub model: Option<f64>,
}

/// Of the data in base parameters, the greatest first.
#[derive(Debug, Serialize)]
pub struct SingularValues {
    /// All of them.
    pub values: Vec<f64>,
    /// Number of directions that the motion shows.
    pub excited: usize,
    rank: usize,
}

/// What it takes to repeat a result.
#[derive(Debug, Default, Serialize)]
pub struct Provenance {
    command: String,
    program: String,
    inputs: Vec<Input>,
    facts: Vec<Fact>,
}

#[derive(Debug, Serialize)]
struct Input {
    name: String,
    bytes: u64,
    sha256: String,
}

#[derive(Debug, Serialize)]
struct Fact {
    label: &'static str,
    value: String,
}

impl Page {
    /// An empty page of a robot, obtained by the command that runs now.
    pub fn new(kind: &'static str, title: &str) -> Self {
        let command: Vec<String> = session::arguments().iter().map(|a| quoted(a)).collect();
        let provenance = Provenance {
            command: format!("inertial {}", command.join(" ")),
            program: format!("inertial {}", env!("CARGO_PKG_VERSION")),
            ..Provenance::default()
        };
        Self { kind, title: title.to_owned(), provenance, ..Self::default() }
    }

    /// Adds a number to the top.
    pub fn tile(&mut self, value: &dyn std::fmt::Display, label: &str) {
        self.tiles.push(Tile { value: value.to_string(), label: label.to_owned() });
    }

    /// Names a choice that the result depends on.
    pub fn fact(&mut self, label: &'static str, value: impl Into<String>) {
        self.provenance.facts.push(Fact { label, value: value.into() });
    }

    /// Names an input with its checksum.
    pub fn input(&mut self, name: &str, content: &[u8]) {
        self.hashed(name, content.len() as u64, hmac_sha256::Hash::hash(content));
    }

    /// Names files that were read, with their checksums; standard input is gone by now.
    pub fn input_files(&mut self, paths: &[String]) -> Result<()> {
        for path in paths.iter().filter(|p| *p != "-" && !p.starts_with("builtin:")) {
            if let Some(summary) = session::summary(path) {
                let text = serde_json::to_vec(&summary)?;
                self.hashed(path, text.len() as u64, hmac_sha256::Hash::hash(&text));
                continue;
            }
            let mut file = File::open(path).with_context(|| path.to_owned())?;
            let (mut hash, mut bytes) = (hmac_sha256::Hash::new(), 0);
            let mut block = vec![0; 1 << 16];
            loop {
                let count = file.read(&mut block).with_context(|| path.to_owned())?;
                if count == 0 {
                    break;
                }
                hash.update(&block[..count]);
                bytes += count as u64;
            }
            self.hashed(path, bytes, hash.finalize());
        }
        Ok(())
    }

    fn hashed(&mut self, name: &str, bytes: u64, hash: [u8; 32]) {
        let sha256 = hash.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        self.provenance.inputs.push(Input { name: name.to_owned(), bytes, sha256 });
    }

    /// The curves and the motions of the logs.
    pub fn set_curves(&mut self, curves: Curves) {
        (self.curves, self.motions) = (curves.curves, curves.motions);
    }

    /// The part that `analyze` fills.
    pub fn set_analysis(&mut self, mechanism: &Mechanism, analysis: &Analysis) -> Result<()> {
        self.graph = Some(picture::svg(mechanism, &analysis.null_vectors));
        self.analysis = Some(serde_json::to_value(analysis)?);
        Ok(())
    }

    /// The page as one file.
    pub fn html(&self) -> Result<String> {
        // In a script element only the start of a tag could end the data.
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
            ("{{style}}", include_str!("../../page/page.css").to_owned()),
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
                .context("the page has a mark without text")?;
            out += text;
            rest = &rest[mark.len()..];
        }
        Ok(out + rest)
    }
}

/// The page of `analyze`.
pub fn of_analysis(model: &Model, mechanism: &Mechanism, analysis: &Analysis) -> Result<Page> {
    let mut page = Page::new("Identifiability", mechanism.name());
    page.input(&model.label, model.text.as_bytes());
    page.lead = format!(
        "Of the {} inertial parameters of this robot, {} combinations can be identified from {}; {} directions leave no trace in any experiment.",
        analysis.parameters,
        analysis.rank,
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
    page.tile(&if analysis.certificate.exact { "certain" } else { "bounded" }, "the rank is");
    page.warnings.clone_from(&analysis.warnings);
    page.robot = Some(Robot::new(mechanism, None)?.shaped(model, mechanism));
    page.fact("measured", analysis.measured);
    page.fact("method", analysis.method);
    page.set_analysis(mechanism, analysis)?;
    Ok(page)
}

/// What was measured, in words.
fn measured(choice: &str) -> String {
    match choice {
        "both" => "joint torques and the base wrench".into(),
        other => other.replace('-', " "),
    }
}

/// A note with a capital letter, unless it begins with a name.
fn sentence(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    match first.chars().next() {
        Some(letter) if first.chars().all(|c| c.is_ascii_lowercase()) => {
            letter.to_ascii_uppercase().to_string() + &text[1..]
        }
        _ => text.to_owned(),
    }
}

/// A word of a command as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
