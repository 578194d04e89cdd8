//! `inertial check`: can these inertial parameters belong to physical bodies?

use std::path::PathBuf;

use anyhow::{Result, ensure};
use inertial::consistency::DEFAULT_TOLERANCE;
use inertial_app::check::{Options, Outcome, Several, run as check};
use inertial_app::disk::OutputFiles;
use inertial_app::{Located as _, Model};
use inertial_report::{check as text, page};

use crate::options::{ModelArgs, OUTPUT};
use crate::output::{Answer, words};
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  inertial check robot.urdf
  inertial check *.urdf --json
  inertial check robot.urdf --fix --out fixed.urdf
  inertial check table.json --tolerance 1e-2    numbers that were printed with two or three digits";

const DETAILS: &str = "\
A body is physically consistent where its 4x4 pseudo-inertia is positive semidefinite within
rounding: its mass is not negative and its principal moments about the centre of mass satisfy
the triangle inequality. Each link is checked as the file gives it, rotors too (named
JOINT.rotor). A link without mass is fine if it has no inertia either.

A body that can exist is doubtful where an ellipsoid with its inertia has a density outside 1 to
25,000 kg/m3, where its centre of mass or its inertia lies beyond the collision shapes of its link
(boxes, cylinders, spheres), or where its values look filled in (powers of ten, the same about all
axes). Doubts do not change the exit status.

--fix keeps mass and centre of mass and moves the inertia to the nearest consistent one: the
second moments about the centre of mass are projected on the positive semidefinite cone
(Frobenius norm). Without a positive mass the nearest body is a massless one. Nothing else in
the file changes.

Exit status: 0 all consistent, 1 some are not (also with --fix: the answer is about what was
read), 2 bad input.

JSON of one model: {\"schema\": \"inertial/check/1\", \"consistent\": ..., \"bodies\": [...]};
of several: \"files\" holds such an object for each, with its name as \"file\".

";

/// Can these inertial parameters belong to physical bodies?
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = [DETAILS, EXAMPLES].concat())]
pub struct Args {
    /// Model files, '-' for standard input, or builtin:NAME
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<String>,
    /// List links without inertial parameters too
    #[arg(long)]
    all: bool,
    /// Violation that counts as rounding, relative to the largest principal moment
    #[arg(long, value_name = "REL", default_value_t = DEFAULT_TOLERANCE, value_parser = tolerance)]
    tolerance: f64,
    /// Write the model with the nearest consistent parameters
    #[arg(long, requires = "out", help_heading = OUTPUT)]
    fix: bool,
    /// File that --fix writes, completely or not at all
    #[arg(long, value_name = "PATH", requires = "fix", help_heading = OUTPUT)]
    out: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    /// Write a page: the robot and the verdict on each body (one file, opens in any browser)
    #[arg(long, value_name = "PATH", help_heading = OUTPUT)]
    report: Option<PathBuf>,
    #[command(flatten)]
    model: ModelArgs,
}

pub fn run(args: &Args, shell: &Shell) -> Result<Answer> {
    ensure!(args.models.iter().filter(|m| *m == "-").count() <= 1, "standard input can be read once only");
    ensure!(!args.fix || args.models.len() == 1, "--fix takes one model");
    ensure!(args.report.is_none() || args.models.len() == 1, "--report takes one model");
    shell.reserve(args.out.iter().chain(&args.report))?;
    let mut judged = Vec::new();
    let mut failure = None;
    for name in &args.models {
        match judge(name, args, shell) {
            Ok(found) => judged.push(found),
            // With several files the others are still judged; each bad one has its line.
            Err(error) => {
                if let Some(earlier) = failure.replace(error) {
                    shell.say(&words(&earlier));
                }
            }
        }
    }
    if !args.json {
        let texts: Vec<_> =
            judged.iter().map(|(model, outcome)| text::text(outcome, model, shell.style())).collect();
        shell.print(&texts.join("\n"))?;
    }
    if let Some(error) = failure {
        return Err(error);
    }
    if args.json {
        match &judged[..] {
            [(_, outcome)] => shell.print_json(outcome)?,
            several => shell.print_json(&Several::new(several.iter().map(|(m, o)| (m.label.as_str(), o))))?,
        }
    }
    Ok(Answer::of(judged.iter().all(|(_, outcome)| outcome.consistent)))
}

fn judge(name: &str, args: &Args, shell: &Shell) -> Result<(Model, Outcome)> {
    let options = Options { all: args.all, tolerance: args.tolerance };
    let model = Model::load(name, &args.model.options(), shell.disk())?;
    for warning in &model.builder.warnings {
        shell.say(&format!("{}: {warning}", model.label));
    }
    let outcome = check(&model, &options)?;
    let mut files = OutputFiles::new(shell.disk());
    if let Some(out) = &args.out {
        files.add(out, &outcome.corrected(&model, &options).at(&model.label)?)?;
    }
    if let Some(path) = &args.report {
        let page = page::of_check(&model, &outcome, &options, shell.origin(&[])?, &shell.context())?;
        files.add(path, &page.html()?)?;
    }
    shell.write(files, args.json)?;
    Ok((model, outcome))
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if (0.0..1.0).contains(&x) => Ok(x),
        _ => Err("expected a number from 0 to 1".into()),
    }
}
