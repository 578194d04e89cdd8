//! `inertial check`: can these inertial parameters belong to physical bodies?

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use inertial::consistency::DEFAULT_TOLERANCE;
use inertial::mechanism::{read, write};
use serde::Serialize;

use crate::model::Model;
use crate::options::ModelOptions;
use crate::output::{self, Answer, Files};
use crate::page::{Page, Robot};
use crate::report::Report;

const HELP: &str = "\
A body can exist where its 4x4 pseudo-inertia is positive semidefinite within rounding: its mass
is not negative and its principal moments about the centre of mass satisfy the triangle
inequality. Links are judged one by one as the file gives them, rotors too (named JOINT.rotor).
A link without mass is fine if it has no inertia either.

--fix keeps mass and centre of mass and moves the inertia to the nearest possible one: the
second moments about the centre of mass are projected on the positive semidefinite cone
(Frobenius norm). Without a positive mass the nearest body is a massless one. Nothing else in
the file changes.

Exit status: 0 all can exist, 1 some cannot (also with --fix: the answer is about what was
read), 2 bad input.

JSON of one model: {\"schema\": \"inertial/check/1\", \"consistent\": ..., \"bodies\": [...]};
of several: \"files\" holds such an object for each, with its name as \"file\".

Examples:
  inertial check robot.urdf
  inertial check *.urdf --json
  inertial check robot.urdf --fix --out fixed.urdf
  inertial check table.json --tolerance 1e-2    numbers that were printed with two or three digits";

/// Can these inertial parameters belong to physical bodies?
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Model files, '-' for standard input, or builtin:NAME
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// List links without inertial parameters too
    #[arg(long)]
    all: bool,
    /// Write the model with the nearest parameters that can exist
    #[arg(long, requires = "out")]
    fix: bool,
    /// Where --fix writes, completely or not at all
    #[arg(long, value_name = "PATH", requires = "fix")]
    out: Option<PathBuf>,
    /// Write a page to look at: the robot and the verdict on each body (one file, opens in any browser)
    #[arg(long, value_name = "PATH")]
    report: Option<PathBuf>,
    /// Violation that counts as rounding, relative to the largest principal moment
    #[arg(long, value_name = "REL", default_value_t = DEFAULT_TOLERANCE, value_parser = tolerance)]
    tolerance: f64,
    #[command(flatten)]
    model: ModelOptions,
}

#[derive(Serialize)]
struct Output<'a> {
    schema: &'static str,
    #[serde(flatten)]
    report: &'a Report,
}

#[derive(Serialize)]
struct Outputs<'a> {
    schema: &'static str,
    consistent: bool,
    files: Vec<FileOutput<'a>>,
}

#[derive(Serialize)]
struct FileOutput<'a> {
    file: &'a str,
    #[serde(flatten)]
    report: &'a Report,
}

const SCHEMA: &str = "inertial/check/1";

pub fn run(args: &Args) -> Result<Answer> {
    ensure!(args.models.iter().filter(|m| *m == "-").count() <= 1, "standard input can be read once only");
    ensure!(!args.fix || args.models.len() == 1, "--fix takes one model");
    ensure!(args.report.is_none() || args.models.len() == 1, "--report takes one model");
    let mut reports = Vec::new();
    let mut failure = None;
    for argument in &args.models {
        match judge(argument, args) {
            Ok(report) => reports.push(report),
            // With several files the others are still judged; each bad one has its line.
            Err(error) => {
                if let Some(earlier) = failure.replace(error) {
                    output::complain(&earlier);
                }
            }
        }
    }
    if !args.json {
        let texts: Vec<_> =
            reports.iter().map(|(model, report)| report.text(&model.label, &model.builder.name)).collect();
        output::print(&texts.join("\n"))?;
    }
    if let Some(error) = failure {
        return Err(error);
    }
    let consistent = reports.iter().all(|(_, r)| r.consistent);
    if args.json {
        match &reports[..] {
            [(_, report)] => output::print_json(&Output { schema: SCHEMA, report })?,
            several => {
                let files = several.iter().map(|(m, report)| FileOutput { file: &m.label, report }).collect();
                output::print_json(&Outputs { schema: SCHEMA, consistent, files })?;
            }
        }
    }
    Ok(if consistent { Answer::Yes } else { Answer::No })
}

fn judge(argument: &str, args: &Args) -> Result<(Model, Report)> {
    let model = Model::load(argument)?;
    let report = Report::new(&model, &args.model.build_options(), args.tolerance, args.all)?;
    let mut files = Files::default();
    if let Some(out) = &args.out {
        files.add(out, &fixed(&model, &report, args).with_context(|| model.label.clone())?)?;
    }
    if let Some(path) = &args.report {
        files.add(path, &page(&model, &report, args)?.html()?)?;
    }
    files.finish()?;
    Ok((model, report))
}

fn page(model: &Model, report: &Report, args: &Args) -> Result<Page> {
    let mut page = Page::new("Check", &model.builder.name);
    page.input(&model.label, model.text.as_bytes());
    let bad = report.bodies.iter().filter(|b| !b.consistent).count();
    page.lead = match bad {
        0 => "Every body of this model can exist.".into(),
        1 => "One body of this model cannot exist: no mass distribution has its parameters.".into(),
        n => format!("{n} bodies of this model cannot exist: no mass distribution has their parameters."),
    };
    if bad > 0 {
        page.warnings.push(
            "A simulator or controller built on a body that cannot exist can behave impossibly. 'inertial check --fix --out FILE' writes the nearest bodies that can; 'inertial identify' finds the true ones from measurements."
                .into(),
        );
    }
    page.tile(&report.bodies.len(), "bodies judged");
    page.tile(&bad, "cannot exist");
    page.fact("tolerance", format!("{:e} of the largest principal moment", args.tolerance));
    // A model whose loops cannot be assembled can still be judged.
    let built = model.build(&args.model.build_options()).ok();
    page.robot = built.and_then(|m| Some(Robot::new(&m, None).ok()?.shaped(model, &m)));
    page.check = Some(serde_json::to_value(Output { schema: SCHEMA, report })?);
    Ok(page)
}

fn fixed(model: &Model, report: &Report, args: &Args) -> Result<String> {
    let text = write::replace_inertias(&model.text, &report.fixes())?;
    // What is written is what was promised: read it again before it replaces anything.
    let builder = read::model(&text, &read::no_includes)?;
    let again = Model { label: model.label.clone(), text: text.clone(), builder };
    let report = Report::new(&again, &args.model.build_options(), args.tolerance, true)?;
    ensure!(report.consistent, "the nearest parameters could not be written exactly enough");
    Ok(text)
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if (0.0..1.0).contains(&x) => Ok(x),
        _ => Err("expected a number from 0 to 1".into()),
    }
}
