//! URDF and URDF+.

use super::MechanismBuilder;
use crate::{Error, Place, Result};

/// Reads a URDF or URDF+ text.
pub fn read(_text: &str) -> Result<MechanismBuilder> {
    Err(Error::unsupported(Place::default(), "URDF"))
}
