//! `inertial demo`: demonstrations with built-in models.

mod arm;
mod leg_on_bench;
mod quadruped;
mod record;
mod sampled_rank;
mod slow_motion;
mod space_robot;

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use inertial::consistency::significant;
use inertial::dynamics::ClosedMechanism;
use inertial::mechanism::builtin;
use inertial_app::model::Summary;
use inertial_app::{Model, ModelOptions, analyze, check};
use inertial_report::text::{self, Style};
use inertial_report::{analysis, check as check_text, simulation};

use crate::output::Answer;
use crate::shell::Shell;

const HELP: &str = "\
With the name of a model: checks its bodies, prints forces and inertias at its joints, and analyzes
which parameters are identifiable. Other demos are experiments with robots whose true parameters
are known, some of them published:
  arm           design, simulate and identify a seven-axis arm
  quadruped     a floating base: results of a simulated experiment
  space-robot   two arms in orbit: a published experiment repeated and improved
  slow-motion   a body behind a force/torque sensor, in slow motion
  leg-on-bench  prediction errors of legs that were identified on a bench
  sampled-rank  why numerical ranks of mechanisms with loops go wrong

Examples:
  inertial demo
  inertial demo arm
  inertial demo space-robot
  inertial demo space-robot --published --plots figures
  inertial demo slow-motion --out slow-motion.svg
  inertial demo four-bar
  inertial demo --list";

/// Demonstrate the main functions with built-in models
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Model or demo (see below); --list prints the models
    #[arg(default_value = "arm7")]
    name: String,
    /// List the models and exit; every command accepts them as builtin:NAME
    #[arg(long)]
    list: bool,
    /// Write the figure of slow-motion as SVG
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Run the published motion of space-robot only, without designs
    #[arg(long)]
    published: bool,
    /// Write figures 4, 6 and 7 of space-robot as SVG files into a folder
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Print the result of space-robot, slow-motion, leg-on-bench or sampled-rank as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, shell: &Shell) -> Result<Answer> {
    if args.list {
        let width = builtin::names().map(str::len).max().unwrap_or(0);
        let line = |name| format!("{name:width$}  {}\n", builtin::description(name).unwrap_or_default());
        shell.print(&builtin::names().map(line).collect::<String>())?;
        return Ok(Answer::Yes);
    }
    ensure!(args.out.is_none() || args.name == "slow-motion", "--out: only slow-motion has a figure");
    let studies = ["space-robot", "slow-motion", "leg-on-bench", "sampled-rank"];
    ensure!(
        !args.json || studies.contains(&args.name.as_str()),
        "--json: only {} have this option",
        studies.join(", ")
    );
    let own = [("published", args.published), ("plots", args.plots.is_some())];
    for (option, given) in own {
        ensure!(!given || args.name == "space-robot", "--{option}: only space-robot has this option");
    }
    match args.name.as_str() {
        "arm" => return arm::run(shell),
        "leg-on-bench" => return leg_on_bench::run(shell, args.json),
        "sampled-rank" => return sampled_rank::run(shell, args.json),
        "slow-motion" => return slow_motion::run(shell, args.json, args.out.as_deref()),
        "space-robot" => {
            let plots = args.plots.as_deref();
            let options = space_robot::Options { published: args.published, json: args.json, plots };
            return space_robot::run(shell, &options);
        }
        _ => {}
    }
    let model = Model::load(&format!("builtin:{}", args.name), &ModelOptions::default(), shell.disk())?;
    let style = shell.style();
    let checked = check::run(&model, &check::Options::default(), &shell.context())?;
    let analysed = analyze::run(&model, &analyze::Options::default(), &shell.context())?;
    let closed = ClosedMechanism::new(&model.mechanism)?;
    let mut out = format!("{}\n\n", simulation::model(&Summary::new(&closed)));
    let _ = writeln!(out, "1. Are these bodies physically consistent?  (inertial check {})\n", model.label);
    out += &check_text::text(&checked, &model.label, &model.builder.name, None, style);
    out += "\n2. Forces and inertias at the joints\n\n";
    out += &dynamics(&closed, style)?;
    let _ = writeln!(out, "\n3. Which parameters are identifiable?  (inertial analyze {})\n", model.label);
    out += &analysis::text(&model.mechanism, &analysed, false, style);
    if args.name == "quadruped" {
        out += "\n4. Results of an experiment  (inertial simulate, inertial identify)\n\n";
        out += &quadruped::experiment(&model.mechanism, style)?;
    }
    shell.print(&out)?;
    Ok(Answer::Yes)
}

/// Formats holding forces, effective inertias and energies at one configuration.
fn dynamics(closed: &ClosedMechanism<'_>, style: Style) -> Result<String> {
    let mut workspace = closed.workspace();
    let n = closed.dof();
    let mut q = closed.assembled().to_vec();
    let place = if closed.mechanism().loops().is_empty() {
        // At zero, arms are often stretched out and many quantities vanish.
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
    let table = text::table(style, ["coordinate", "holding force", "effective inertia"], 2, rows);
    Ok(format!(
        "{place} (SI units):\n\n{table}\n\
         Kinetic energy at 0.3 per second in each: {} J; potential energy: {} J\n",
        number(kinetic),
        number(potential)
    ))
}
