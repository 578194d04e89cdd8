//! MJCF, MuJoCo's XML.

use super::{Include, MechanismBuilder};
use crate::{Error, Place, Result};

/// Reads an MJCF text.
pub fn read(_text: &str, _include: Include<'_>) -> Result<MechanismBuilder> {
    Err(Error::unsupported(Place::default(), "MJCF"))
}
