//! What commands draw besides their answer.

use std::path::PathBuf;

use anyhow::Result;

use crate::page::Page;

/// What to draw.
#[derive(Debug, clap::Args)]
pub struct Pictures {
    /// Write a page to look at: robot, curves, tables, and how it was obtained (one file, opens in any browser)
    #[arg(long, value_name = "PATH")]
    report: Option<PathBuf>,
}

impl Pictures {
    /// Whether anything is to be drawn.
    pub fn wanted(&self) -> bool {
        self.report.is_some()
    }

    /// Draws a page, obtained from some files beside the model.
    pub fn write(&self, files: &[String], page: impl FnOnce() -> Result<Page>) -> Result<()> {
        if !self.wanted() {
            return Ok(());
        }
        let mut page = page()?;
        if let Some(path) = &self.report {
            page.input_files(files)?;
            page.write(path)?;
        }
        Ok(())
    }
}
