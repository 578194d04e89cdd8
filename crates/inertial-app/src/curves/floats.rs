//! Numbers for the page: 32-bit floats in base64, about a fifth of the size of decimal digits.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};

/// Numbers that are serialized as base64 of little-endian 32-bit floats.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Floats(pub Vec<f32>);

impl Serialize for Floats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = self.0.iter().flat_map(|x| x.to_le_bytes()).collect();
        serializer.serialize_str(&STANDARD.encode(bytes))
    }
}
