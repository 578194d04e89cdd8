//! What `identify` draws.

use anyhow::Result;
use inertial::estimation::{Equations, Identification};

use super::{Args, Data};
use crate::curves::{Curves, Piece};
use crate::model::Model;
use crate::output::Files;
use crate::page;

/// Passes the logs once more and draws what was asked for; what is left to print after the answer.
pub fn draw(
    args: &Args,
    model: &Model,
    equations: &Equations<'_>,
    data: &mut Data,
    result: &Identification,
    files: &mut Files,
) -> Result<String> {
    if !args.pictures.wanted() {
        return Ok(String::new());
    }
    let chosen = equations.chosen(result)?;
    let mut notes = Vec::new();
    let logs = data.logs.iter_mut().map(|log| {
        let cutoff = log.recording.cutoff_hz().map_or("no filter".into(), |f| format!("cut-off {f:.3} Hz"));
        let rate = log.recording.rate_hz();
        notes.push(format!("{}: {cutoff}, fitted at {rate:.1} samples per second", log.recording.path()));
        notes.extend(log.recording.notes().iter().map(|note| format!("{}: {note}", log.recording.path())));
        let pieces = vec![
            Piece::new(log.fit.clone(), "fit", &result.fit),
            Piece::new(log.kept.clone(), "validation", &result.validation),
        ];
        (&mut log.recording, pieces)
    });
    let curves = Curves::collect(&chosen, &result.values, logs.collect())?;
    args.pictures.draw(&args.files(), files, || {
        let mut page = page::of_identification(model, &chosen, result, curves)?;
        page.fact("friction", clap_name(&args.friction));
        page.fact("prior", format!("{}, weight {}", args.prior, args.prior_weight.unwrap_or(1.0)));
        notes.into_iter().for_each(|note| page.fact("log", note));
        Ok(page)
    })
}

/// A choice as the command line has it.
fn clap_name(choice: &impl clap::ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned())
}

impl Args {
    /// Files that were read beside the model.
    pub(super) fn files(&self) -> Vec<String> {
        let choices =
            [Some(&self.prior).filter(|p| !matches!(p.as_str(), "model" | "none")), self.bounds.as_ref()];
        let choices = choices.into_iter().flatten().filter(|b| *b != "links").cloned();
        let paths = self.joint_model.iter().map(|p| p.display().to_string());
        let logs = self.logs.iter().chain(&self.validate).chain(&self.unloaded).cloned();
        logs.chain(self.log.files()).chain(paths).chain(choices).collect()
    }
}
