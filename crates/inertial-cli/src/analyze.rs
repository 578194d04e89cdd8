//! `inertial analyze`: which parameters can any experiment reveal, and in which combinations?

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use inertial::identifiability::drng::picture;
use inertial::identifiability::{Analysis, AnalyzeOptions, Measured, Method, Regime, analyze, compare};
use inertial::mechanism::{Base, BuildOptions, DEFAULT_SNAP, Mechanism};

use crate::identifiability_text as text;
use crate::model::Model;
use crate::options::{MeasuredChoice, ModelOptions};
use crate::output::{self, Answer, Files};
use crate::page;
use crate::pictures::Pictures;

const HELP: &str = "\
Nothing is measured here: the answer follows from the robot's kinematics alone and holds for
every experiment. It is found by the recursive parameter nullspace algorithm (upper bound of the
rank) and confirmed by exact sampling over prime fields (lower bound); where the two meet it is
certain. With loops, exactly closed motions decide the rank, and geometric principles (drng)
explain it: --explain draws the graph of bodies, joints and loops with what acts where; with
--out NAME.svg, as a picture.

Model files carry rounded angles (1.5708 for a right one). Geometry within --snap of a special
position (parallel, perpendicular, intersecting, zero) is taken as special; --snap 0 takes every
number literally. Where that makes a difference a warning names the joints.

--measured says what the sensors give: the torques of the joints, the wrench between base and
world, both, or the momentum. --ballistic is free flight: no external force acts and that is
known; with --measured base-wrench (which is then zero) the motion alone is seen and at least
the total mass is lost. --joints names the joints that have a torque sensor.

--compare floating|fixed|MODEL shows what this set-up cannot see that the other can, and which
forces of the other would be mispredicted from what is identified here.

Examples:
  inertial analyze builtin:puma560                      the table of a classic
  inertial analyze robot.urdf --base floating --json
  inertial analyze builtin:cheetah-leg --compare floating
  inertial analyze robot.urdf --measured base-wrench    a robot on a force plate
  inertial analyze arm.urdf --choose link7.m,link6.m    prefer these as base parameters";

/// Which parameters can any experiment ever reveal, and in which combinations?
#[allow(clippy::struct_excessive_bools, reason = "a command has as many switches as it needs")]
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Model file, '-' for standard input, or builtin:NAME
    #[arg(value_name = "MODEL")]
    model: String,
    /// What the sensors give [default: joint-torques; with a floating base both]
    #[arg(long, value_enum)]
    measured: Option<MeasuredChoice>,
    /// Free flight: no external force acts on the floating base
    #[arg(long)]
    ballistic: bool,
    /// Joints that have a torque sensor, by name [default: all]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    joints: Option<Vec<String>>,
    /// Count experiments at rest only: what gravity alone reveals
    #[arg(long = "static", conflicts_with = "kinetic")]
    at_rest: bool,
    /// Count the kinetic energy alone: leave gravity out
    #[arg(long)]
    kinetic: bool,
    /// How the rank is found
    #[arg(long, value_enum, default_value = "auto")]
    method: MethodChoice,
    /// Take geometry so near to special positions as special (radians; lengths relative to the robot)
    #[arg(long, value_name = "TOL", default_value_t = DEFAULT_SNAP)]
    snap: f64,
    /// Prefer these as base parameters, in this order
    #[arg(long, value_name = "BODY.NAME,…", value_delimiter = ',')]
    choose: Vec<String>,
    /// Say in words what may move across each joint unnoticed
    #[arg(long)]
    explain: bool,
    /// Show what this set-up cannot see that another can: floating, fixed, or a model file
    #[arg(long, value_name = "SET-UP")]
    compare: Option<String>,
    /// Print the result as JSON
    #[arg(long, conflicts_with_all = ["csv", "latex"])]
    json: bool,
    /// Print every parameter with its status and combination as CSV
    #[arg(long, conflicts_with_all = ["latex", "plot"])]
    csv: bool,
    /// Print the table of the robot for a paper
    #[arg(long, conflicts_with = "plot")]
    latex: bool,
    /// Write the result here instead, completely or not at all
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    #[command(flatten)]
    pictures: Pictures,
    /// Seed of the random configurations
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    options: ModelOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum MethodChoice {
    Auto,
    Rpna,
    Drng,
    Numeric,
    Exact,
}

impl Args {
    fn analysis_options(&self) -> AnalyzeOptions {
        AnalyzeOptions {
            snap: self.snap,
            method: match self.method {
                MethodChoice::Auto => Method::Auto,
                MethodChoice::Rpna => Method::Rpna,
                MethodChoice::Drng => Method::Drng,
                MethodChoice::Numeric => Method::Numeric,
                MethodChoice::Exact => Method::Exact,
            },
            measured: self.measured.map(Measured::from),
            ballistic: self.ballistic,
            torque_joints: self.joints.clone(),
            regime: if self.at_rest {
                Regime::Static
            } else if self.kinetic {
                Regime::Kinetic
            } else {
                Regime::Full
            },
            choose: self.choose.clone(),
            seed: self.seed,
        }
    }
}

pub fn run(args: &Args) -> Result<Answer> {
    let model = Model::load(&args.model)?;
    let build = args.options.build_options();
    let mechanism = model.build(&build)?;
    let mut options = args.analysis_options();
    let picture = args.explain && is_picture(args.out.as_deref());
    if picture && options.method == Method::Auto {
        // The picture shows principles, which the recursion does not know.
        options.method = Method::Drng;
    }
    let analysis = analyze(&mechanism, &options).with_context(|| model.label.clone())?;
    let comparison = args
        .compare
        .as_deref()
        .map(|other| {
            let (label, other) = set_up(other, &model, &build)?;
            // Names to prefer belong to this model.
            let options = AnalyzeOptions { choose: Vec::new(), ..options.clone() };
            let found = analyze(&other, &options).with_context(|| label.clone())?;
            let comparison = compare((&mechanism, &analysis), (&other, &found), args.seed)?;
            Ok::<_, anyhow::Error>((label, comparison))
        })
        .transpose()?;
    let out = if args.json {
        let mut value = serde_json::to_value(&analysis)?;
        if let (Some((label, comparison)), Some(object)) = (&comparison, value.as_object_mut()) {
            object.insert("compared_with".into(), label.clone().into());
            object.insert("comparison".into(), serde_json::to_value(comparison)?);
        }
        serde_json::to_string_pretty(&value)? + "\n"
    } else if args.csv {
        text::csv(&analysis)
    } else if args.latex {
        text::latex(&analysis)
    } else if picture {
        picture::svg(&mechanism, &analysis.null_vectors)
    } else {
        let mut out = for_people(&mechanism, &analysis, args.explain);
        if let Some((label, comparison)) = &comparison {
            out += &text::comparison(label, comparison);
        }
        out
    };
    if args.csv || args.latex {
        analysis.warnings.iter().for_each(|w| output::say(&format!("warning: {w}")));
    }
    let mut files = Files::default();
    args.out.iter().try_for_each(|path| files.add(path, &out))?;
    let drawn = args.pictures.draw(&[], &mut files, || page::of_analysis(&model, &mechanism, &analysis))?;
    files.finish()?;
    match &args.out {
        Some(_) => {
            if !drawn.is_empty() {
                output::print(&drawn)?;
            }
        }
        None => output::print(&(out + &drawn))?,
    }
    Ok(Answer::Yes)
}

/// Whether the file to write is a picture of the graph.
fn is_picture(out: Option<&Path>) -> bool {
    out.and_then(Path::extension).is_some_and(|e| e.eq_ignore_ascii_case("svg"))
}

/// Table, combinations and certificate.
pub fn for_people(mechanism: &Mechanism, analysis: &Analysis, explain: bool) -> String {
    let mut out = text::table(analysis);
    out += &text::combinations(analysis);
    if explain && analysis.null_vectors.is_empty() {
        out += &text::transfers(mechanism, analysis);
    } else if explain {
        out += &text::reasons(mechanism, analysis);
    }
    out += &text::certificate(analysis);
    out
}

/// The other set-up of `--compare`.
fn set_up(other: &str, model: &Model, build: &BuildOptions) -> Result<(String, Mechanism)> {
    let base = match other {
        "floating" => Base::Floating,
        "fixed" => Base::Fixed,
        path => {
            let other = Model::load(path)?;
            return Ok((other.label.clone(), other.build(build)?));
        }
    };
    let mechanism = model.build(&BuildOptions { base: Some(base), ..*build })?;
    if mechanism.base() != base {
        bail!("{}: the base cannot be made {other}", model.label);
    }
    Ok((format!("{other} base"), mechanism))
}
