//! `inertial demo`: the main job on a model that ships inside the program.

mod arm;
mod quadruped;
mod record;
mod space_robot;

use std::fmt::Write as _;

use anyhow::Result;
use inertial::consistency::{DEFAULT_TOLERANCE, significant};
use inertial::dynamics::ClosedMechanism;
use inertial::identifiability::{AnalyzeOptions, analyze};
use inertial::mechanism::{BuildOptions, builtin};

use crate::analyze::for_people;
use crate::model::{Model, Summary};
use crate::output::{self, Answer};
use crate::report::Report;

const HELP: &str = "\
With the name of a model: can its bodies exist, what do its joints feel, what can any experiment
reveal. Three demos go through the whole loop on robots whose truth is known:
  arm           design, simulate and identify a seven-axis arm
  quadruped     a robot that floats: what a simulated experiment finds
  space-robot   two arms in orbit: a published experiment repeated, and improved

Examples:
  inertial demo
  inertial demo arm
  inertial demo quadruped
  inertial demo space-robot
  inertial demo four-bar
  inertial demo --list";

/// The main job, on a model that ships inside the program.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Which model or demo (see below); --list names the models
    #[arg(default_value = "arm7")]
    name: String,
    /// Name the models and stop; each is builtin:NAME for every command
    #[arg(long)]
    list: bool,
}

pub fn run(args: &Args) -> Result<Answer> {
    if args.list {
        let width = builtin::names().map(str::len).max().unwrap_or(0);
        let line = |name| format!("{name:width$}  {}\n", builtin::about(name).unwrap_or_default());
        output::print(&builtin::names().map(line).collect::<String>())?;
        return Ok(Answer::Yes);
    }
    if args.name == "space-robot" {
        return space_robot::run();
    }
    if args.name == "arm" {
        return arm::run();
    }
    let model = Model::load(&format!("builtin:{}", args.name))?;
    let options = BuildOptions::default();
    let mechanism = model.build(&options)?;
    let report = Report::new(&model, &options, DEFAULT_TOLERANCE, false)?;
    let closed = ClosedMechanism::new(&mechanism)?;
    let mut out = format!("{}\n\n", Summary::new(&closed));
    let _ = writeln!(out, "1. Can these bodies exist?  (inertial check {})\n", model.label);
    out += &report.text(&model.label, mechanism.name());
    out += "\n2. What do the joints feel?\n\n";
    out += &dynamics(&closed)?;
    let _ = writeln!(out, "\n3. What can any experiment reveal?  (inertial analyze {})\n", model.label);
    out += &for_people(&mechanism, &analyze(&mechanism, &AnalyzeOptions::default())?, false);
    if args.name == "quadruped" {
        out += "\n4. What does an experiment find?  (inertial simulate, inertial identify)\n\n";
        out += &quadruped::experiment(&mechanism)?;
    }
    output::print(&out)?;
    Ok(Answer::Yes)
}

/// Holding forces, effective inertias and energies at one configuration.
fn dynamics(closed: &ClosedMechanism<'_>) -> Result<String> {
    let mut workspace = closed.workspace();
    let n = closed.dof();
    let mut q = closed.assembled().to_vec();
    let place = if closed.mechanism().loops().is_empty() {
        // Away from zero, where arms are often stretched out and many numbers vanish.
        closed.mechanism().integrate(&mut q, &vec![0.3; n]);
        "Every coordinate 0.3 away from zero"
    } else {
        "As assembled, in the independent coordinates"
    };
    let (mut gravity, mut inertia) = (vec![0.0; n], vec![0.0; n * n]);
    closed.gravity_forces(&mut workspace, &q, &mut gravity)?;
    closed.mass_matrix(&mut workspace, &q, &mut inertia)?;
    let kinetic = closed.kinetic_energy(&mut workspace, &q, &vec![0.3; n])?;
    let potential = closed.potential_energy(&mut workspace, &q)?;
    let number = |x: f64| significant(if x.abs() < 1e-12 { 0.0 } else { x }, 4);
    let names = closed.independent_names().into_iter().enumerate();
    let rows = names.map(|(i, name)| [name, number(gravity[i]), number(inertia[i * n + i])]);
    let table = output::table(["coordinate", "force to hold still", "inertia felt"], 2, rows);
    Ok(format!(
        "{place} (SI units):\n\n{table}\n\
         Kinetic energy at 0.3 per second in each: {} J; potential energy: {} J\n",
        number(kinetic),
        number(potential)
    ))
}
