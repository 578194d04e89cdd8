//! `inertial bench`: speed of each kernel on this machine, for a given model.

use anyhow::Result;
use inertial_app::Model;
use inertial_app::bench::{self, Options};
use inertial_report::{simulation, text};

use crate::options::ModelArgs;
use crate::output::Answer;
use crate::shell::Shell;

const HELP: &str = "\
Times are per call, on one thread, over random states (always the same). The minimum is what the
machine can do; a median far above it means that the machine was busy. Kinematics, rnea and the
regressors are those of the spanning tree; with loops, the mass matrix and forward dynamics are
those of the independent coordinates. lmi and manifold are the solvers of the consistent
estimator, on the summary of a simulated log with friction and offsets.

With --calls, each kernel is called exactly that often, so that a profiler counts the same
instructions in every run. The difference between two runs is the cost of the additional calls.

Examples:
  inertial bench robot.urdf --base floating
  inertial bench builtin:arm7 --json
  valgrind --tool=cachegrind inertial bench builtin:arm7 \\
    --kernel rnea --calls 1000";

/// Measure the speed of each kernel on this machine, for a model
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Model file, '-' for standard input, or builtin:NAME
    model: String,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Run only this kernel
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Number of calls of each kernel [default: as many as take about 0.2 s]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    calls: Option<u64>,
    #[command(flatten)]
    options: ModelArgs,
}

pub fn run(args: &Args, shell: &Shell) -> Result<Answer> {
    let model = Model::load(&args.model, &args.options.options(), shell.disk())?;
    let options = Options::default().with(|o| {
        o.kernel.clone_from(&args.kernel);
        o.calls = args.calls;
    });
    let result = bench::run(&model, &options, &shell.context())?;
    if args.json {
        shell.print_json(&result)?;
    } else {
        let rows = result.kernels.iter();
        let rows =
            rows.map(|k| [k.name.to_owned(), format!("{:.3}", k.min_us), format!("{:.3}", k.median_us)]);
        let table = text::table(shell.style(), ["kernel", "minimum (µs)", "median (µs)"], 2, rows);
        shell.print(&format!("{}\n\n{table}", simulation::model(&result.model)))?;
    }
    Ok(Answer::Yes)
}
