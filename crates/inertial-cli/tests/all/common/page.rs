//! Parsing of the pages that the program writes.

use std::path::Path;

use serde_json::Value;

/// Returns the data embedded in a page.
pub fn data(page: &str) -> Value {
    let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let end = start + page[start..].find("</script>").unwrap();
    serde_json::from_str(&page[start..end]).unwrap()
}

/// Decodes the floats of a page.
pub fn floats(text: &Value) -> Vec<f32> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let text = text.as_str().unwrap().trim_end_matches('=');
    let bits: Vec<u8> = text.bytes().flat_map(|c| (0..6).rev().map(move |k| digit(c) >> k & 1)).collect();
    let bytes: Vec<u8> = bits.chunks_exact(8).map(|b| b.iter().fold(0, |all, bit| all << 1 | bit)).collect();
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// Returns the data of a page after checking its curves against the result: the stored residuals exactly, and those
/// recomputed from the samples to within `tolerance` of the residual and the rounding error of the forces.
pub fn with_curves(path: &Path, result: &Value, parts: &[&str], tolerance: f64) -> Value {
    let page = data(&std::fs::read_to_string(path).unwrap());
    let curves = page["curves"].as_array().unwrap();
    assert_eq!(curves.iter().map(|c| c["part"].as_str().unwrap()).collect::<Vec<_>>(), parts);
    for curve in curves {
        let reported = result[curve["part"].as_str().unwrap()].as_array().unwrap();
        let series = curve["series"].as_array().unwrap();
        assert_eq!(series.len(), reported.len());
        for (series, reported) in series.iter().zip(reported) {
            for key in ["joint", "rms", "relative_rms"] {
                assert_eq!(series[key], reported[key], "{key}");
            }
            let number = |of: &Value, key: &str| of[key].as_f64().unwrap();
            let (rms, own) = (number(reported, "rms"), number(series, "own_rms"));
            let measured = floats(&series["measured"]).into_iter().fold(0.0, |m: f32, x| m.max(x.abs()));
            assert!(
                (own - rms).abs() < tolerance * rms + 1e-10 * f64::from(measured),
                "{}: {own} {rms}",
                reported["joint"]
            );
            let [measured, predicted, residual] =
                ["measured", "predicted", "residual"].map(|k| floats(&series[k]));
            let there: Vec<usize> = (0..residual.len()).filter(|&i| residual[i].is_finite()).collect();
            assert_eq!(there.len() as u64, series["counted"].as_u64().unwrap());
            // Precision of 32-bit floats.
            let near = |&i: &usize| {
                (measured[i] - predicted[i] - residual[i]).abs() < 2e-6 * (1.0 + measured[i].abs())
            };
            assert!(there.iter().all(near));
        }
    }
    page
}
