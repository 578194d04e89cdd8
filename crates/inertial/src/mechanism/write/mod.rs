//! Writers of model texts.

mod share;
pub mod urdf;
