//! What commands draw besides their answer.

use std::path::PathBuf;

use anyhow::Result;

use crate::output::Files;
use crate::page::Page;
use crate::plots;

/// What to draw.
#[derive(Debug, clap::Args)]
pub struct Pictures {
    /// Write a page to look at: robot, curves, tables, and how it was obtained (one file, opens in any browser)
    #[arg(long, value_name = "PATH")]
    report: Option<PathBuf>,
    /// Draw the main curves in the terminal
    #[arg(long, conflicts_with = "json")]
    plot: bool,
    /// Write the curves as SVG files, fit for a paper, into a folder
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

impl Pictures {
    /// Whether anything is to be drawn.
    pub fn wanted(&self) -> bool {
        self.report.is_some() || self.plot || self.plots.is_some()
    }

    /// Draws a page, obtained from some files beside the model, among the files that a command writes; what is left to print after
    /// the answer.
    pub fn draw(
        &self,
        files: &[String],
        written: &mut Files,
        page: impl FnOnce() -> Result<Page>,
    ) -> Result<String> {
        if !self.wanted() {
            return Ok(String::new());
        }
        let mut page = page()?;
        if let Some(path) = &self.report {
            page.input_files(files)?;
            written.add(path, &page.html()?)?;
        }
        if let Some(folder) = &self.plots {
            plots::write(&page, folder, written)?;
        }
        Ok(if self.plot { plots::draw(&page) } else { String::new() })
    }
}
