//! `inertial demo`: the main job on a model that ships inside the program.

use std::fmt::Write as _;

use anyhow::Result;
use inertial::consistency::{DEFAULT_TOLERANCE, significant};
use inertial::dynamics::{Workspace, gravity_forces, kinetic_energy, mass_matrix, potential_energy};
use inertial::mechanism::{BuildOptions, Mechanism, builtin};

use crate::model::{Model, Summary};
use crate::output::{self, Answer};
use crate::report::Report;

/// The main job, on a model that ships inside the program.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which model
    #[arg(default_value = "arm7")]
    name: String,
    /// Name the models and stop; each is builtin:NAME for every command
    #[arg(long)]
    list: bool,
}

pub fn run(args: &Args) -> Result<Answer> {
    if args.list {
        let line = |name| format!("{name:15} {}\n", builtin::about(name).unwrap_or_default());
        output::print(&builtin::names().map(line).collect::<String>())?;
        return Ok(Answer::Yes);
    }
    let model = Model::load(&format!("builtin:{}", args.name))?;
    let options = BuildOptions::default();
    let mechanism = model.build(&options)?;
    let report = Report::new(&model, &options, DEFAULT_TOLERANCE, false)?;
    let mut out = format!("{}\n\n", Summary::new(&mechanism));
    let _ = writeln!(out, "1. Can these bodies exist?  (inertial check {})\n", model.label);
    out += &report.text(&model.label, mechanism.name());
    if mechanism.loops().is_empty() {
        out += "\n2. What do the joints feel?\n\n";
        out += &dynamics(&mechanism)?;
    }
    output::print(&out)?;
    Ok(Answer::Yes)
}

/// Holding forces, effective inertias and energies at one configuration.
fn dynamics(m: &Mechanism) -> Result<String> {
    let workspace = &mut Workspace::new(m);
    let mut q = m.assembly().to_vec();
    let away = vec![0.3; m.nv()];
    m.integrate(&mut q, &away);
    let n = m.nv();
    let (mut gravity, mut inertia) = (vec![0.0; n], vec![0.0; n * n]);
    gravity_forces(m, workspace, &q, &mut gravity)?;
    mass_matrix(m, workspace, &q, &mut inertia)?;
    let kinetic = kinetic_energy(m, workspace, &q, &away)?;
    let potential = potential_energy(m, workspace, &q)?;
    let names = m.velocity_names().into_iter().enumerate();
    let rows = names.map(|(i, name)| [name, significant(gravity[i], 4), significant(inertia[i * n + i], 4)]);
    let table = output::table(["coordinate", "force to hold still", "inertia felt"], 2, rows);
    Ok(format!(
        "Every coordinate 0.3 away from zero (SI units):\n\n{table}\n\
         Kinetic energy at 0.3 per second in each coordinate: {} J; potential energy: {} J\n",
        significant(kinetic, 4),
        significant(potential, 4)
    ))
}
