//! `inertial validate`: how well does this model predict what was measured?

use anyhow::{Context, Result, ensure};
use inertial::estimation::{Equations, JointTerms, Summary, Validation, validate};
use inertial::mechanism::DEFAULT_SNAP;

use crate::curves::{Curves, Piece};
use crate::identify::told::residuals;
use crate::logs::{LogOptions, saved_summary};
use crate::model::Model;
use crate::options::ModelOptions;
use crate::output::{self, Answer, Files};
use crate::page;
use crate::pictures::Pictures;
use crate::progress::Work;
use crate::recording::Recording;

const HELP: &str = "\
The model's inertias, joint damping and friction (and rotors, armature) predict the torques; the
residual is what is left, in the band of the filter, relative to the measured torque. An offset
of the measured torque is not part of a model file.

Exit status: 0 done and below --threshold, 1 above it, 2 bad input.

Examples:
  inertial validate identified.urdf log.csv
  inertial validate identified.urdf log.csv --threshold 0.1 --json";

/// How well does this model predict what was measured?
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Model file, '-' for standard input, or builtin:NAME
    #[arg(value_name = "MODEL")]
    model: String,
    /// Logs
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<String>,
    /// Largest relative residual of all joints together that counts as yes
    #[arg(long, value_name = "REL")]
    threshold: Option<f64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pictures: Pictures,
    #[command(flatten)]
    log: LogOptions,
    #[command(flatten)]
    options: ModelOptions,
}

pub fn run(args: &Args) -> Result<Answer> {
    let model = Model::load(&args.model)?;
    let mechanism = model.build(&args.options.build_options())?;
    let terms = JointTerms { viscous: true, coulomb: true, ..JointTerms::default() };
    let equations =
        Equations::with_all_terms(&mechanism, terms, DEFAULT_SNAP).with_context(|| model.label.clone())?;
    let mut summary = Summary::empty(&equations);
    let mut logs = Vec::new();
    let work = Work::on_files(&args.logs);
    for path in &args.logs {
        ensure!(
            saved_summary(path)?.is_none(),
            "{path}: is a summary of the unknowns of one call of identify: validate takes the logs themselves"
        );
        let mut log = Recording::open(&args.log, &equations, None, path)?;
        let all = 0..log.len();
        summary.merge(&log.summary(&equations, all, None)?)?;
        if args.pictures.wanted() {
            logs.push(log);
        }
    }
    drop(work);
    let result =
        validate(&equations, &summary, &equations.model_values()?).with_context(|| args.logs.join(", "))?;
    let drawn = draw(args, &model, &equations, &mut logs, &result)?;
    if args.json {
        output::print_json(&result)?;
    } else {
        output::print(&(residuals("joint", &result.joints, result.relative_rms) + &drawn))?;
    }
    Ok(if args.threshold.is_none_or(|most| result.relative_rms <= most) { Answer::Yes } else { Answer::No })
}

/// Passes the logs once more and draws what was asked for; what is left to print after the answer.
fn draw(
    args: &Args,
    model: &Model,
    equations: &Equations<'_>,
    logs: &mut [Recording],
    result: &Validation,
) -> Result<String> {
    if !args.pictures.wanted() {
        return Ok(String::new());
    }
    let pieces = logs.iter_mut().map(|log| {
        let piece = Piece::new(0..log.len(), "validation", &result.joints);
        (log, vec![piece])
    });
    let curves = Curves::collect(equations, &equations.model_values()?, pieces.collect())?;
    let files: Vec<String> = args.logs.iter().cloned().chain(args.log.files()).collect();
    let mut written = Files::default();
    let drawn = args.pictures.draw(&files, &mut written, || {
        page::of_validation(model, equations.mechanism(), result, curves, args.threshold)
    })?;
    written.finish()?;
    Ok(drawn)
}
