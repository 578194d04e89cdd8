//! `inertial analyze`: identifiability analysis of a model.

use std::path::{Path, PathBuf};

use anyhow::Result;
use inertial::identifiability::drng::picture;
use inertial::identifiability::{Measured, Method, TotalMomentum, Warning};
use inertial_app::Model;
use inertial_app::analyze::{Options, run as analyze};
use inertial_app::choice::{AnalysisTable, Choice as _};
use inertial_app::disk::OutputFiles;
use inertial_report::{analysis as text, page};

use crate::options::{ModelArgs, OUTPUT, choice};
use crate::output::Answer;
use crate::pictures::Pictures;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  inertial analyze builtin:puma560                      a classic example
  inertial analyze robot.urdf --base floating --json
  inertial analyze builtin:cheetah-leg --compare floating
  inertial analyze builtin:puma560 --rotors symmetric   with its motors
  inertial analyze robot.urdf --measured base-wrench    a robot on a force plate
  inertial analyze builtin:space-dual-arm --measured momentum
  inertial analyze arm.urdf --choose link7.m,link6.m    prefer these";

const DETAILS: &str = "\
No data are needed: the answer follows from the robot's kinematics and holds for every
experiment. The recursive parameter nullspace algorithm gives an upper bound of the rank, exact
sampling over prime fields a lower bound; where the two agree the rank is proved. With loops,
the rank is computed from exactly closed motions, and geometric principles (drng) explain it:
--explain draws the graph of bodies, joints and loops; with --out NAME.svg, as a picture.

Model files carry rounded angles (1.5708 for a right one). Geometry within --snap of a special
position (parallel, perpendicular, intersecting, zero) is taken as special; --snap 0 takes every
number literally. Where that changes the rank, a warning names the joints.

--measured selects the measured quantities: the torques of the joints, the wrench between base
and world, both, or the momentum. --ballistic is free flight without external forces; with
--measured base-wrench (which is then zero) only the motion is measured and at least the total
mass cannot be identified. --joints names the joints that have a torque sensor.

--measured momentum is the momentum of a free-flying robot without its wheels. --total-momentum
zero, the default if the model has wheels, means that no external force acts and only the wheels
take up angular momentum; without wheels, only ratios of parameters are identifiable. With
angular, the robot tumbles with a known angular momentum. With any, the default without wheels, it
has thrusters or drifts, and its momentum is known.

--rotors symmetric (or general) also adds a rotor for each driven joint that has none in the
model: on the joint's axis, carried by the link before it, with gear ratio 100.

--compare floating|fixed|MODEL shows what this set-up cannot identify but the other can, and
which forces of the other would be predicted wrongly from what is identified here.

";

/// Find the parameters that experiments can determine, and in which combinations
#[allow(clippy::struct_excessive_bools, reason = "a command has as many switches as it needs")]
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = [DETAILS, EXAMPLES].concat())]
pub struct Args {
    /// Model file, '-' for standard input, or builtin:NAME
    #[arg(value_name = "MODEL")]
    model: String,
    /// Measured quantities [default: joint-torques; with a floating base both]
    #[arg(long, value_name = "WHAT", value_parser = choice::<Measured>())]
    measured: Option<Measured>,
    /// Free flight: no external force acts on the floating base
    #[arg(long, hide_short_help = true)]
    ballistic: bool,
    /// Total momentum of a free-flying robot with its wheels, if momentum is measured [default: zero with wheels, else any]
    #[arg(long, value_name = "TOTAL", value_parser = choice::<TotalMomentum>(), hide_short_help = true)]
    total_momentum: Option<TotalMomentum>,
    /// Joints that have a torque sensor, by name [default: all]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    joints: Option<Vec<String>>,
    /// Consider static experiments only, in which gravity alone excites the parameters
    #[arg(long = "static", conflicts_with = "kinetic", hide_short_help = true)]
    at_rest: bool,
    /// Consider the kinetic energy only, without gravity
    #[arg(long, hide_short_help = true)]
    kinetic: bool,
    /// Method used to find the rank
    #[arg(long, value_name = "METHOD", value_parser = choice::<Method>(), hide_short_help = true,
          default_value = Options::default().method.word())]
    method: Method,
    /// Tolerance within which geometry is treated as special (radians; lengths relative to the robot)
    #[arg(long, value_name = "TOL", default_value_t = Options::default().snap, hide_short_help = true)]
    snap: f64,
    /// Prefer these as base parameters, in this order
    #[arg(long, value_name = "BODY.NAME,…", value_delimiter = ',', hide_short_help = true)]
    choose: Vec<String>,
    /// Explain what cannot be identified, joint by joint, and how the rank is proved
    #[arg(long)]
    explain: bool,
    /// Compare with another set-up: floating, fixed, or a model file
    #[arg(long, value_name = "SET-UP")]
    compare: Option<String>,
    /// Print the result as JSON
    #[arg(long, conflicts_with_all = ["csv", "latex"], help_heading = OUTPUT)]
    json: bool,
    /// Print a table as CSV: every parameter (also --csv alone), or the null space
    #[arg(long, value_name = "TABLE", value_parser = choice::<AnalysisTable>(), num_args = 0..=1, require_equals = true,
          default_missing_value = AnalysisTable::Parameters.word(), conflicts_with_all = ["latex", "plot"],
          help_heading = OUTPUT, hide_short_help = true)]
    csv: Option<AnalysisTable>,
    /// Print the table as LaTeX
    #[arg(long, conflicts_with = "plot", help_heading = OUTPUT, hide_short_help = true)]
    latex: bool,
    /// Write the result to a file instead, completely or not at all
    #[arg(short, long, value_name = "PATH", help_heading = OUTPUT)]
    out: Option<PathBuf>,
    #[command(flatten)]
    pictures: Pictures,
    /// Seed of the random configurations
    #[arg(long, default_value_t = Options::default().seed, hide_short_help = true)]
    seed: u64,
    #[command(flatten)]
    options: ModelArgs,
}

impl Args {
    fn analysis_options(&self) -> Options {
        Options::default().with(|o| {
            o.measured = self.measured;
            o.ballistic = self.ballistic;
            o.total_momentum = self.total_momentum;
            o.joints.clone_from(&self.joints);
            o.at_rest = self.at_rest;
            o.kinetic = self.kinetic;
            // The graph shows the principles of null vectors, which the recursion does not provide.
            o.method =
                if self.is_picture() && self.method == Method::Auto { Method::Drng } else { self.method };
            o.snap = self.snap;
            o.choose.clone_from(&self.choose);
            o.compare.clone_from(&self.compare);
            o.seed = self.seed;
        })
    }

    /// Returns whether a picture of the graph is written.
    fn is_picture(&self) -> bool {
        let extension = self.out.as_deref().and_then(Path::extension);
        self.explain && extension.is_some_and(|e| e.eq_ignore_ascii_case("svg"))
    }
}

pub fn run(args: &Args, shell: &Shell) -> Result<Answer> {
    shell.reserve(args.out.iter().chain(args.pictures.outputs()))?;
    let model = Model::load(&args.model, &args.options.options(), shell.disk())?;
    let model = model.with_missing_rotors()?;
    let context = shell.context();
    let outcome = analyze(&model, &args.analysis_options(), &context)?;
    let analysis = &outcome.analysis;
    let out = if args.json {
        // Keys are in alphabetical order, as in all earlier versions.
        serde_json::to_string_pretty(&serde_json::to_value(&outcome)?)? + "\n"
    } else if let Some(table) = args.csv {
        text::csv(analysis, table)
    } else if args.latex {
        text::latex(analysis)
    } else if args.is_picture() {
        picture::svg(&model.mechanism, &analysis.null_vectors)
    } else {
        text::text(&model.mechanism, &outcome, args.explain, shell.style())
    };
    if args.csv.is_some() || args.latex {
        let kind = |w: &Warning| if w.is_note() { "note" } else { "warning" };
        analysis.warnings.iter().for_each(|w| shell.say(&format!("{}: {w}", kind(w))));
    }
    let mut files = OutputFiles::new(shell.disk());
    args.out.iter().try_for_each(|path| files.add(path, &out))?;
    let drawn = args
        .pictures
        .draw(shell, &[], &mut files, |origin| page::of_analysis(&model, &outcome, origin, &context))?;
    shell.write(files, args.json)?;
    match &args.out {
        Some(_) if drawn.is_empty() => {}
        Some(_) => shell.print(&drawn)?,
        None => shell.print(&(out + &drawn))?,
    }
    Ok(Answer::Yes)
}
