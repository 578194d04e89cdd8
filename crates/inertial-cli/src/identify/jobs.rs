//! Jobs of `inertial identify`: conversion of options, and output of results.

use std::io::IsTerminal as _;
use std::path::Path;

use anyhow::{Result, ensure};
use inertial_app::disk::OutputFiles;
use inertial_app::model::joint_file::joint_file;
use inertial_app::{
    flight as of_flight, follow as of_stream, gains, identify as job, payload as of_payload,
    regressor as of_regressor, summary_file,
};
use inertial_report::{identification as text, momentum, page, regressor as rows};
use serde::Serialize;

use super::Args;
use crate::output::Answer;
use crate::shell::Shell;

/// Prints an outcome as JSON, or as text with the plots.
fn show(
    args: &Args,
    shell: &Shell,
    outcome: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<Answer> {
    if args.json {
        shell.print_json(outcome)?;
    } else {
        shell.print(&text())?;
    }
    Ok(Answer::Yes)
}

/// Adds a text to the output files if both text and path are present.
fn add(files: &mut OutputFiles, path: Option<&Path>, text: Option<&String>) -> Result<()> {
    if let (Some(path), Some(text)) = (path, text) {
        files.add(path, text)?;
    }
    Ok(())
}

/// Identifies a robot from forces, with drive gains if requested.
pub fn identify(args: &Args, shell: &Shell) -> Result<Answer> {
    let model = args.load(shell)?;
    let context = shell.context();
    let options = args.identify_options()?;
    let mut outcome = match args.gains {
        Some(spread) => gains::run(&model, &args.gains_options(spread)?, &context)?,
        None => job::run(&model, &options, &context)?,
    };
    let mut files = OutputFiles::new(shell.disk());
    if let Some(path) = &args.summary_out {
        files.add(path, summary_file::content(path, &outcome.summary)?)?;
    }
    add(&mut files, args.out.as_deref(), outcome.model.as_ref())?;
    let joints = args.out.as_deref().map(joint_file);
    add(&mut files, joints.as_deref(), outcome.joint_file.as_ref())?;
    let mut inputs = options.files();
    inputs.extend(args.loaded.iter().cloned());
    let drawn = args.pictures.draw(shell, &inputs, &mut files, |origin| {
        page::of_identification(&model, &mut outcome, &options, origin, &context)
    })?;
    shell.write(files, args.json)?;
    show(args, shell, &outcome, || text::text(&outcome.result, shell.style()) + &drawn)?;
    // The exit status is 1 if the requested model is not written.
    Ok(if args.out.is_some() && outcome.model.is_none() { Answer::No } else { Answer::Yes })
}

/// Identifies the payload of a link.
pub fn payload(args: &Args, link: &str, shell: &Shell) -> Result<Answer> {
    let model = args.load(shell)?;
    let context = shell.context();
    let options = args.payload_options(link)?;
    let mut outcome = of_payload::run(&model, &options, &context)?;
    let mut files = OutputFiles::new(shell.disk());
    add(&mut files, args.out.as_deref(), outcome.model.as_ref())?;
    let drawn = args.pictures.draw(shell, &options.files(), &mut files, |origin| {
        page::of_payload(&model, &mut outcome, origin, &context)
    })?;
    shell.write(files, args.json)?;
    show(args, shell, &outcome, || text::text(&outcome.result, shell.style()) + &drawn)
}

/// Identifies a free-flying robot from momentum.
pub fn flight(args: &Args, shell: &Shell) -> Result<Answer> {
    ensure!(args.summary_out.is_none(), "--summary-out: summaries of momentum are not supported");
    let model = args.load(shell)?;
    let context = shell.context();
    let options = args.flight_options()?;
    let mut outcome = of_flight::run(&model, &options, &context)?;
    let mut files = OutputFiles::new(shell.disk());
    add(&mut files, args.out.as_deref(), outcome.model.as_ref())?;
    let drawn = args.pictures.draw(shell, &options.files(), &mut files, |origin| {
        page::of_momentum(&model, &mut outcome, origin, &context)
    })?;
    shell.write(files, args.json)?;
    show(args, shell, &outcome, || momentum::text(&outcome.result, shell.style()) + &drawn)
}

/// Identifies bodies from an externally computed regressor.
pub fn regressor(args: &Args, regressor: &str, shell: &Shell) -> Result<Answer> {
    ensure!(!args.pictures.wanted(), "--regressor has no plots and no report, because there is no motion");
    let model = args.model.as_ref().map(|_| args.load(shell)).transpose()?;
    let outcome = of_regressor::run(model.as_ref(), &args.regressor_options(regressor), &shell.context())?;
    show(args, shell, &outcome, || rows::text(&outcome.result, shell.style()))
}

/// Identifies a robot from a stream.
pub fn follow(args: &Args, stream: &str, shell: &Shell) -> Result<Answer> {
    ensure!(!args.pictures.wanted(), "--follow has no plots and no report, because a stream has no end");
    ensure!(
        args.model_name() != "-" || stream != "-",
        "the model and the stream cannot both be standard input"
    );
    let model = args.load(shell)?;
    let context = shell.context();
    let name = inertial_app::model::label(stream);
    let input = inertial_app::Located::at(context.inputs.open(stream), &name)?;
    let as_json = args.json || !std::io::stdout().is_terminal();
    let mut failed = Ok(());
    let mut print = |outcome: &of_stream::Outcome| -> inertial_app::Result<()> {
        let line = if as_json {
            serde_json::to_string(outcome)? + "\n"
        } else {
            text::stream_line(outcome.t, &outcome.result)
        };
        failed = shell.print(&line);
        if failed.is_err() { Err(inertial_app::Error::Interrupted) } else { Ok(()) }
    };
    let done = of_stream::run(&model, input, &name, &args.follow_options()?, &context, &mut print);
    failed?;
    done?;
    Ok(Answer::Yes)
}
