//! Pages and curves in addition to the result of a command.

use std::path::PathBuf;

use anyhow::Result;
use inertial_app::disk::OutputFiles;
use inertial_report::page::{Origin, Page};
use inertial_report::plots;

use crate::options::OUTPUT;
use crate::shell::Shell;

/// Options for pages and plots.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = OUTPUT)]
pub struct Pictures {
    /// Write a page: robot, curves, tables, and how the result was obtained (one file, opens in any browser)
    #[arg(long, value_name = "PATH")]
    report: Option<PathBuf>,
    /// Draw the main curves in the terminal
    #[arg(long, conflicts_with = "json")]
    plot: bool,
    /// Write the curves as SVG files into a folder
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    plots: Option<PathBuf>,
}

impl Pictures {
    /// Returns whether anything is drawn.
    pub fn wanted(&self) -> bool {
        self.report.is_some() || self.plot || self.plots.is_some()
    }

    /// Returns the output files that are known before the work begins.
    pub fn outputs(&self) -> impl Iterator<Item = &PathBuf> {
        self.report.iter()
    }

    /// Draws a page and adds it to the output files; `inputs` are those except the model. Returns the text to print after the result.
    pub fn draw(
        &self,
        shell: &Shell,
        inputs: &[String],
        written: &mut OutputFiles,
        page: impl FnOnce(Origin) -> inertial_app::Result<Page>,
    ) -> Result<String> {
        if !self.wanted() {
            return Ok(String::new());
        }
        let origin = if self.report.is_some() { shell.origin(inputs)? } else { Origin::default() };
        let page = page(origin)?;
        if let Some(path) = &self.report {
            written.add(path, &page.html()?)?;
        }
        if let Some(folder) = &self.plots {
            plots::write(plots::files(&page)?, folder, written)?;
        }
        Ok(if self.plot { plots::draw(&page, shell.curve_style()) } else { String::new() })
    }
}
