//! Values of options.

use std::str::FromStr;

/// `tau.elbow=0.1`.
#[derive(Debug, Clone)]
pub struct Setting {
    /// A column or a group of them.
    pub column: String,
    /// Its value.
    pub value: f64,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected COLUMN=NUMBER like tau=0.1, not '{text}'");
        let (column, value) = text.split_once('=').ok_or_else(expected)?;
        let value: f64 = value.trim().parse().map_err(|_| expected())?;
        if column.trim().is_empty() || !value.is_finite() {
            return Err(expected());
        }
        Ok(Self { column: column.trim().to_owned(), value })
    }
}

/// A number above zero.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err("expected a number above zero".into()),
    }
}

/// Six numbers.
pub fn six(text: &str) -> Result<[f64; 6], String> {
    let values: Result<Vec<f64>, _> = text.split(',').map(|x| x.trim().parse()).collect();
    values
        .ok()
        .filter(|v| v.iter().all(|x| x.is_finite()))
        .and_then(|v| v.try_into().ok())
        .ok_or_else(|| format!("expected six numbers like 0,0,0,0,0,1, not '{text}'"))
}
