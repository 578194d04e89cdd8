//! Outcomes for people: text for the terminal, pages for a browser, SVG for papers.
//!
//! Every outcome has a function here that gives its text ([`check`], [`columns`], [`analysis`], [`design`], [`simulation`],
//! [`identification`]) and one that gives its [`page::Page`]; the curves of a page are drawn in the terminal and as SVG by
//! [`plots`]. Numbers are written by [`text`] alone. Nothing here reads the terminal, the environment or a clock: a
//! [`text::Style`] says how wide and how colourful the text may be.

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
