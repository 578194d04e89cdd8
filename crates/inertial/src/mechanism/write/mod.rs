//! Writers of model texts.

pub mod file;
mod share;
pub mod urdf;
