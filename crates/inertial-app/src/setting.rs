//! Numbers assigned to columns of a log and to joints.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// Number assigned to a column, a group of columns or a joint: `tau.elbow=0.1`, `base.w=8e-5`, `finger=0.02`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// Name of the column, group or joint.
    pub column: String,
    /// Value of the setting.
    pub value: f64,
}

impl std::str::FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected NAME=NUMBER, not '{text}'");
        let (column, value) = text.split_once('=').ok_or_else(expected)?;
        let value: f64 = value.trim().parse().map_err(|_| expected())?;
        if column.trim().is_empty() || !value.is_finite() {
            return Err(expected());
        }
        Ok(Self { column: column.trim().to_owned(), value })
    }
}

/// Reads settings, or one number for all columns.
pub(crate) fn settings_or_number<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Setting>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a number, or numbers by name")]
    enum Value {
        Number(f64),
        Settings(Vec<Setting>),
    }
    Ok(match Value::deserialize(deserializer)? {
        Value::Number(value) => vec![Setting { column: String::new(), value }],
        Value::Settings(settings) => settings,
    })
}
