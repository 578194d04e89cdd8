//! Warnings of a result.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

/// Message with a stable code for programs; [`fmt::Display`] gives its text.
pub trait Coded: fmt::Display {
    /// Returns the code, in lower case with hyphens.
    fn code(&self) -> &'static str;
}

/// Warnings of a result. In JSON they are two fields of the result: `warnings`, the texts, and `warning_codes`, the codes in the
/// same order.
#[derive(Debug, Clone, PartialEq)]
pub struct Warnings<W>(pub Vec<W>);

impl<W: Coded> Warnings<W> {
    /// Returns whether there is a warning with this code.
    pub fn has(&self, code: &str) -> bool {
        self.iter().any(|warning| warning.code() == code)
    }
}

impl<W> Default for Warnings<W> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<W> FromIterator<W> for Warnings<W> {
    fn from_iter<I: IntoIterator<Item = W>>(warnings: I) -> Self {
        Self(warnings.into_iter().collect())
    }
}

impl<W> Deref for Warnings<W> {
    type Target = Vec<W>;

    fn deref(&self) -> &Vec<W> {
        &self.0
    }
}

impl<W> DerefMut for Warnings<W> {
    fn deref_mut(&mut self) -> &mut Vec<W> {
        &mut self.0
    }
}

impl<'a, W> IntoIterator for &'a Warnings<W> {
    type Item = &'a W;
    type IntoIter = std::slice::Iter<'a, W>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// JSON fields of [`Warnings`].
#[derive(Serialize, JsonSchema)]
struct Fields {
    /// Warnings.
    warnings: Vec<String>,
    /// Stable codes of the warnings, in the same order.
    warning_codes: Vec<&'static str>,
}

impl<W: Coded> Serialize for Warnings<W> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let warnings = self.iter().map(ToString::to_string).collect();
        Fields { warnings, warning_codes: self.iter().map(Coded::code).collect() }.serialize(serializer)
    }
}

impl<W> JsonSchema for Warnings<W> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Warnings".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Fields::json_schema(generator)
    }
}
