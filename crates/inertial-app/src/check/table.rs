//! Printed parameter tables, checked within the rounding of their digits.

use std::path::Path;

use inertial::spatial::{Inertia, PARAMETER_NAMES, Parameters};

use super::{BodyVerdict, Options, Outcome, SCHEMA};
use crate::logs::TEXT_LIMIT;
use crate::{Error, Inputs, Located, Result, ensure};

/// Returns whether a name is that of a table, which is a CSV file.
pub fn is_table(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"))
}

/// Checks a table: a header `body,m,hx,hy,hz,Ixx,Ixy,Ixz,Iyy,Iyz,Izz` (columns in any order), then one line per body. Cells are
/// separated by commas, semicolons or tabs; the first column may also be called `name` or `link`.
///
/// Each number represents all values that round to it: 0.25 those from 0.245 to 0.255. A body is consistent if some
/// values in these intervals are consistent.
pub fn run_table(name: &str, options: &Options, inputs: &dyn Inputs) -> Result<Outcome> {
    options.check()?;
    let text = inputs.text(name, TEXT_LIMIT).at(name)?;
    let bodies = read(&text).at(name)?;
    let verdict = |(body, values, half_units): &(String, Parameters<f64>, Parameters<f64>)| {
        BodyVerdict::with_digits(
            body,
            &Inertia::from_parameters(values),
            None,
            options.tolerance,
            Some(half_units),
        )
    };
    let bodies = bodies.iter().map(verdict).collect::<Result<Vec<_>>>().at(name)?;
    Ok(Outcome { schema: SCHEMA, consistent: bodies.iter().all(|b| b.consistent), bodies })
}

type Row = (String, Parameters<f64>, Parameters<f64>);

fn read(text: &str) -> Result<Vec<Row>> {
    let mut lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    let mut lines = lines.by_ref().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let (_, first) = lines.next().unwrap_or_default();
    // Spreadsheets in many countries write semicolons.
    let separator = [',', ';', '\t'].into_iter().max_by_key(|&s| first.matches(s).count()).unwrap_or(',');
    let cells =
        |line: &'_ str| -> Vec<String> { line.split(separator).map(|c| c.trim().to_owned()).collect() };
    let header = cells(first);
    let expected = || format!("expected a header with body and {}", PARAMETER_NAMES.join(", "));
    let column = |name: &str| {
        header
            .iter()
            .position(|cell| *cell == name)
            .ok_or_else(|| Error::Input(format!("line 1: {}", expected())))
    };
    let body = ["name", "link"].into_iter().find_map(|name| column(name).ok());
    let body = body.map_or_else(|| column("body"), Ok)?;
    let columns = PARAMETER_NAMES.iter().map(|name| column(name)).collect::<Result<Vec<_>>>()?;
    ensure!(header.len() == 11, "line 1: {} and nothing else", expected());
    let mut out = Vec::new();
    for (index, line) in lines {
        let (number, row) = (index + 1, cells(line));
        ensure!(row.len() == 11, "line {number}: {} cells, expected 11", row.len());
        let (mut values, mut half_units) = (Parameters::zeros(), Parameters::zeros());
        for (k, &column) in columns.iter().enumerate() {
            let cell = row[column].as_str();
            let value = cell.parse::<f64>().ok().filter(|x| x.is_finite());
            let Some((value, unit)) = value.zip(last_digit(cell)) else {
                return Err(Error::Input(format!(
                    "line {number}: '{cell}' is not a number ({})",
                    PARAMETER_NAMES[k]
                )));
            };
            (values[k], half_units[k]) = (value, 0.5 * unit);
        }
        out.push((row[body].clone(), values, half_units));
    }
    ensure!(!out.is_empty(), "has no bodies");
    Ok(out)
}

/// Returns one unit of the last digit of a printed number.
fn last_digit(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let exponent: i32 = exponent.parse().ok()?;
    let unit = 10f64.powi(exponent.checked_sub(i32::try_from(decimals).ok()?)?);
    (unit > 0.0 && unit.is_finite()).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::last_digit;

    #[test]
    fn digits_are_counted_as_printed() {
        for (text, unit) in
            [("1.836", 1e-3), ("-0.10", 1e-2), ("12", 1.0), ("2.50e-3", 1e-5), ("3E+2", 100.0)]
        {
            let found = last_digit(text).unwrap_or_default();
            assert!((found / unit - 1.0).abs() < 1e-15, "{text}: {found}");
        }
        assert_eq!(last_digit("1e-9999"), None);
    }
}
