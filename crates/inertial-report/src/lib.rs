//! Presentation of outcomes: text for the terminal, pages for a browser, SVG figures for papers.
//!
//! For every outcome there is a function that formats its text ([`check`], [`columns`], [`analysis`], [`design`],
//! [`simulation`], [`identification`]) and one that creates its [`page::Page`]. The curves of a page are drawn in the
//! terminal and as SVG by [`plots`]. All numbers are formatted by [`text`]. This crate does not access the terminal,
//! the environment or a clock: [`text::Style`] contains the width and colours of the text.

pub mod analysis;
pub mod check;
pub mod columns;
pub mod design;
pub mod identification;
pub mod momentum;
pub mod page;
pub mod plots;
pub mod regressor;
pub mod simulation;
pub mod text;
