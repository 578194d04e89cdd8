//! Physical consistency check: whether the inertial parameters can belong to physical bodies.

use inertial::consistency::{
    self, DEFAULT_TOLERANCE, Extent, Implausibility, ManifoldCoordinates, RoundingVerdict, Verdict, Violation,
};
use inertial::estimation::Tensor;
use inertial::mechanism::write;
use inertial::spatial::{Inertia, Parameters};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Context, Located, Model, Result, ensure, ensure_option};
use extents::Extents;

mod extents;
mod table;

pub use table::{is_table, run_table};

/// Options of the check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// Whether links without inertial parameters are listed too.
    pub all: bool,
    /// Violation that is accepted as rounding error, relative to the largest principal moment.
    pub tolerance: f64,
}

inertial::with_changes!(Options);

impl Default for Options {
    fn default() -> Self {
        Self { all: false, tolerance: DEFAULT_TOLERANCE }
    }
}

impl Options {
    /// Checks the options.
    pub fn check(&self) -> Result<()> {
        ensure_option!((0.0..1.0).contains(&self.tolerance), "tolerance", "expected a number from 0 to 1");
        Ok(())
    }
}

const SCHEMA: &str = "inertial/check/1";

/// Result of the consistency check of one model.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Schema of the object.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// Whether all bodies are consistent.
    pub consistent: bool,
    /// Links and rotors, in the order of the description.
    pub bodies: Vec<BodyVerdict>,
}

/// Consistency of one link or rotor.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BodyVerdict {
    /// Name of the link, or `JOINT.rotor`.
    pub name: String,
    /// Mass (kg).
    pub mass: f64,
    /// Whether a physical body can have these parameters.
    pub consistent: bool,
    /// Smallest eigenvalue of the 4×4 pseudo-inertia.
    pub pseudo_inertia_min_eigenvalue: f64,
    /// Mass, centre of mass, principal axes and second moments; absent without a mass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifold: Option<ManifoldCoordinates>,
    /// Consistency of the values within the rounding intervals of a printed table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounding: Option<RoundingVerdict>,
    /// Conditions that are violated.
    pub violations: Vec<Violation>,
    /// Violations as text, with numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Reasons to doubt a body that is physically consistent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Implausibility>,
    /// Doubts as text, with numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubt_reasons: Vec<String>,
    /// Nearest consistent parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<UrdfInertia>,
    /// Nearest consistent parameters, in the frame of the link.
    #[serde(skip)]
    nearest_inertia: Option<Inertia<f64>>,
}

/// Inertia in the form of a URDF: about the centre of mass, along the axes of the link.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UrdfInertia {
    /// Mass (kg).
    pub mass: f64,
    /// Centre of mass (m).
    pub com: [f64; 3],
    /// Inertia about the centre of mass (kg m²).
    pub inertia: Tensor,
}

impl From<&Inertia<f64>> for UrdfInertia {
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

impl BodyVerdict {
    fn new(name: &str, inertia: &Inertia<f64>, extent: Option<&Extent>, tolerance: f64) -> Result<Self> {
        Self::with_digits(name, inertia, extent, tolerance, None)
    }

    /// Checks parameters that are known to within the given half units of their last digits, if there are any.
    fn with_digits(
        name: &str,
        inertia: &Inertia<f64>,
        extent: Option<&Extent>,
        tolerance: f64,
        half_units: Option<&Parameters<f64>>,
    ) -> Result<Self> {
        let Verdict { mut violations, pseudo_inertia_min_eigenvalue, .. } =
            consistency::check_inertia(inertia, tolerance).at(name)?;
        let printed = |units| consistency::check_rounded_inertia(&inertia.parameters(), units).at(name);
        let rounding = half_units.map(printed).transpose()?;
        if rounding.is_some_and(|r| r.consistent) {
            violations.clear();
        }
        let nearest_inertia = if violations.is_empty() { None } else { Some(consistency::nearest(inertia)?) };
        // Rounded digits determine the thickness of a body too poorly to judge its density.
        let is_checked = violations.is_empty() && half_units.is_none();
        let implausibilities =
            if is_checked { consistency::implausibilities(inertia, extent) } else { Vec::new() };
        let (doubts, doubt_reasons) = implausibilities.into_iter().unzip();
        let (violations, reasons): (Vec<_>, Vec<_>) = violations.into_iter().unzip();
        Ok(Self {
            name: name.to_owned(),
            mass: inertia.mass,
            consistent: violations.is_empty(),
            pseudo_inertia_min_eigenvalue,
            manifold: ManifoldCoordinates::new(inertia)?,
            rounding,
            violations,
            reasons,
            doubts,
            doubt_reasons,
            nearest: nearest_inertia.as_ref().map(UrdfInertia::from),
            nearest_inertia,
        })
    }
}

/// Checks each link and each rotor of the model separately.
pub fn run(model: &Model, options: &Options, context: &Context<'_>) -> Result<Outcome> {
    check_bodies(model, options, &Extents::new(model, context)?)
}

/// Checks each link and each rotor of the model, given the sizes of the links.
fn check_bodies(model: &Model, options: &Options, extents: &Extents) -> Result<Outcome> {
    options.check()?;
    let links = model
        .mechanism
        .links()
        .iter()
        .filter(|l| !model.builder.massless.contains(&l.name))
        .map(|l| (l.name.clone(), l.inertia, extents.of(&model.mechanism, l)));
    // Zero inertia marks a rotor whose inertia the model does not give.
    let rotors = model.builder.rotors.iter().map(|r| Some(r.inertia).filter(|i| *i != Inertia::zero()));
    let rotors = model.builder.rotor_names().into_iter().zip(rotors).map(|(name, i)| (name, i, None));
    let bodies = links
        .chain(rotors)
        .filter(|(_, inertia, _)| options.all || inertia.is_some())
        .map(|(name, inertia, extent)| {
            let inertia = inertia.unwrap_or_else(Inertia::zero);
            BodyVerdict::new(&name, &inertia, extent.as_ref(), options.tolerance)
        })
        .collect::<Result<Vec<_>>>()
        .at(&model.label)?;
    Ok(Outcome { schema: SCHEMA, consistent: bodies.iter().all(|b| b.consistent), bodies })
}

impl Outcome {
    /// Returns the text of the model with inconsistent parameters replaced by the nearest consistent ones.
    pub fn corrected(&self, model: &Model, options: &Options) -> Result<String> {
        let nearest: Vec<_> =
            self.bodies.iter().filter_map(|b| Some((b.name.as_str(), b.nearest_inertia?))).collect();
        let text = write::replace_inertias(&model.target().text, &nearest).at(&model.label)?;
        // The new text is parsed and checked again before it replaces a file.
        let again = model.target().with_text(text.clone())?;
        let outcome = check_bodies(&again, &Options { all: true, ..options.clone() }, &Extents::default())?;
        ensure!(
            outcome.consistent,
            "{}: the nearest consistent parameters lose too much precision when written",
            model.label
        );
        Ok(text)
    }
}

/// Results of the consistency checks of several models.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Several<'o> {
    /// Schema of the object.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// Whether all bodies are consistent.
    consistent: bool,
    /// Models with their results, if there are several.
    files: Vec<OfFile<'o>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "File")]
struct OfFile<'o> {
    /// Name of the model.
    file: &'o str,
    /// Whether all bodies of the model are consistent.
    consistent: bool,
    /// Links and rotors of the model.
    bodies: &'o [BodyVerdict],
}

impl<'o> Several<'o> {
    /// Collects outcomes with the names of their models.
    pub fn new(outcomes: impl IntoIterator<Item = (&'o str, &'o Outcome)>) -> Self {
        let of_file =
            |(file, o): (&'o str, &'o Outcome)| OfFile { file, consistent: o.consistent, bodies: &o.bodies };
        let files: Vec<_> = outcomes.into_iter().map(of_file).collect();
        Self { schema: SCHEMA, consistent: files.iter().all(|f| f.consistent), files }
    }
}
