//! Values of options.

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
