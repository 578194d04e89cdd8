//! `inertial check`: physical consistency of inertial parameters.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use inertial::consistency::DEFAULT_TOLERANCE;
use inertial_app::check::{Options, Outcome, Several, is_table, run as check, run_table};
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
  inertial check table.csv         a printed table, checked within its rounding";

const DETAILS: &str = "\
A body is physically consistent if its 4x4 pseudo-inertia is positive semidefinite within
rounding: its mass is not negative and its principal moments about the centre of mass satisfy
the triangle inequality. Each link is checked as given in the file, rotors too (named
JOINT.rotor). A link without mass is fine if it has no inertia either.

A consistent body is doubtful if an ellipsoid with its inertia has a density outside 1 to 25,000
kg/m3, if its centre of mass or its inertia lies beyond the collision shapes and meshes of its
link, or if its values look like placeholders (powers of ten, the same about all
axes). Doubtful bodies do not change the exit status.

A CSV file is a printed table of parameters in the frames of the bodies, with the header
  body,m,hx,hy,hz,Ixx,Ixy,Ixz,Iyy,Iyz,Izz
Each number represents all values that round to it. A body is consistent if some of these values
are; otherwise its inconsistency is proved (a semidefinite program).

--fix keeps mass and centre of mass and moves the inertia to the nearest consistent one: the
second moments about the centre of mass are projected on the positive semidefinite cone
(Frobenius norm). Without a positive mass the nearest body is a massless one. Nothing else in
the file changes.

Exit status: 0 all consistent, 1 some are not (also with --fix: the status refers to the input),
2 bad input.

JSON of one model: {\"schema\": \"inertial/check/1\", \"consistent\": ..., \"bodies\": [...]};
of several: \"files\" holds such an object for each, with its name as \"file\".

";

/// Check whether the bodies of a model are physically consistent
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = [DETAILS, EXAMPLES].concat())]
pub struct Args {
    /// Model files or printed tables (.csv), '-' for standard input, or builtin:NAME
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<String>,
    /// List links without inertial parameters too
    #[arg(long)]
    all: bool,
    /// Violation that is accepted as rounding error, relative to the largest principal moment
    #[arg(long, value_name = "REL", default_value_t = DEFAULT_TOLERANCE, value_parser = tolerance)]
    tolerance: f64,
    /// Write the model with the nearest consistent parameters
    #[arg(long, requires = "out", help_heading = OUTPUT)]
    fix: bool,
    /// File written by --fix, completely or not at all; a mechanism file if it ends with .toml or .json
    #[arg(short, long, value_name = "PATH", requires = "fix", help_heading = OUTPUT)]
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
        match check_input(name, args, shell) {
            Ok(found) => judged.push(found),
            // The other files are still checked; each failure is reported in one line.
            Err(error) => {
                if let Some(earlier) = failure.replace(error) {
                    shell.say(&words(&earlier));
                }
            }
        }
    }
    if !args.json {
        let texts: Vec<_> = judged
            .iter()
            .map(|j| text::text(&j.outcome, &j.label, &j.name, args.out.as_deref(), shell.style()))
            .collect();
        shell.print(&texts.join("\n"))?;
    }
    if let Some(error) = failure {
        return Err(error);
    }
    if args.json {
        match &judged[..] {
            [one] => shell.print_json(&one.outcome)?,
            several => {
                shell.print_json(&Several::new(several.iter().map(|j| (j.label.as_str(), &j.outcome))))?;
            }
        }
    }
    Ok(Answer::of(judged.iter().all(|j| j.outcome.consistent)))
}

/// Verdict on one input.
struct Checked {
    /// Name of the input for messages.
    label: String,
    /// Name of the model; empty for a table.
    name: String,
    outcome: Outcome,
}

/// Checks one input, and writes its page and its corrected model if requested.
fn check_input(name: &str, args: &Args, shell: &Shell) -> Result<Checked> {
    let options = Options::default().with(|o| {
        o.all = args.all;
        o.tolerance = args.tolerance;
    });
    if is_table(name) {
        ensure!(
            !args.fix && args.report.is_none(),
            "{name}: is a table, but --fix and --report need a model"
        );
        let outcome = run_table(name, &options, shell.disk())?;
        return Ok(Checked { label: name.to_owned(), name: String::new(), outcome });
    }
    let mut model = Model::load(name, &args.model.options(), shell.disk())?;
    if let Some(out) = &args.out {
        model = model.to_be_written(out)?;
    }
    for warning in &model.builder.warnings {
        shell.say(&format!("{}: {warning}", model.label));
    }
    let outcome = check(&model, &options, &shell.context())?;
    let mut files = OutputFiles::new(shell.disk());
    if let Some(out) = &args.out {
        files.add(out, &outcome.corrected(&model, &options).at(&model.label)?)?;
    }
    if let Some(path) = &args.report {
        let page = page::of_check(&model, &outcome, &options, shell.origin(&[])?, &shell.context())?;
        files.add(path, &page.html()?)?;
    }
    shell.write(files, args.json)?;
    Ok(Checked { name: model.builder.name.clone(), label: model.label, outcome })
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if (0.0..1.0).contains(&x) => Ok(x),
        _ => Err("expected a number from 0 to 1".into()),
    }
}
