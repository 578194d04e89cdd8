//! Directions that are close to a special one, but written with all digits: the combinations are those of the file.

#![allow(clippy::unwrap_used)]

use std::f64::consts::FRAC_PI_2;

use crate::loops::mechanism;
use inertial::identifiability::{Analysis, AnalyzeOptions, analyze};
use serde_json::{Value, json};

/// Directions between the perpendicular axes of two hinges, 2e-5 to 5e-5 rad from multiples of 15 degrees.
const AZIMUTHS: [f64; 4] = [FRAC_PI_2 / 2.0 + 5e-5, FRAC_PI_2 + 5e-5, FRAC_PI_2 / 3.0 - 3e-5, 2e-5];

/// Creates a hinge; `orientation` describes a frame that is parallel to the parent's.
fn body(name: &str, parent: &str, place: [f64; 3], axis: [f64; 3], orientation: &Value) -> Value {
    let mut origin = json!({ "xyz": place });
    origin.as_object_mut().unwrap().extend(orientation.as_object().unwrap().clone());
    json!({ "name": name, "parent": parent,
        "joint": { "name": format!("j_{name}"), "type": "revolute", "axis": axis, "origin": origin } })
}

/// Creates two parallel hinges and a third one that is perpendicular to them, with a loop that closes a four-bar linkage if wanted.
fn file(azimuth: f64, orientation: &Value, is_closed: bool) -> Value {
    let (z, [cos, sin]) = ([0.0, 0.0, 1.0], [azimuth.cos(), azimuth.sin()]);
    let mut bodies = vec![
        body("a", "ground", [0.0; 3], z, orientation),
        body("b", "a", [0.1, 0.2, 0.0], z, orientation),
        body("d", "b", [0.2, 0.13, 0.05], [cos, sin, 0.0], orientation),
    ];
    let mut loops = Vec::new();
    if is_closed {
        bodies.insert(2, body("c", "ground", [0.5, 0.0, 0.0], z, orientation));
        loops.push(json!({ "name": "loop", "type": "revolute", "axis": z,
            "predecessor": { "body": "b", "origin": { "xyz": [0.5, 0.15, 0.0] } },
            "successor": { "body": "c", "origin": { "xyz": [0.1, 0.35, 0.0] } } }));
    }
    json!({ "schema": "inertial/mechanism/1", "name": "near", "gravity": [0.0, -9.81, 0.0], "bodies": bodies, "loops": loops })
}

fn analysis(file: &Value) -> Analysis {
    let found = analyze(&mechanism(&file.to_string()), &AnalyzeOptions::default()).unwrap();
    assert!(
        found.certificate.exact && found.warnings.is_empty(),
        "{:?} {:?}",
        found.certificate,
        found.warnings
    );
    found
}

fn coefficient(found: &Analysis, base: &str, of: &str) -> f64 {
    let own = found.base_parameters.iter().find(|b| b.name == base).unwrap_or_else(|| panic!("{base}"));
    own.combination.iter().find(|(name, _)| name == of).map_or(0.0, |(_, x)| *x)
}

/// First moments of `d` along its axis act on `b`: `b.hx` contains `d.hy` with the cotangent of the azimuth. The azimuth in a loop
/// was rounded to a multiple of 15 degrees within the snapping tolerance, certified and without a warning.
#[test]
fn the_azimuth_of_a_hinge_in_a_mechanism_with_loops_is_not_snapped() {
    for azimuth in AZIMUTHS {
        for is_closed in [false, true] {
            let found = analysis(&file(azimuth, &json!({ "rpy": [0.0, 0.0, 0.0] }), is_closed));
            // If the direction is closer to x, the combination contains the other moment.
            let (base, of, expected) = if found.base_parameters.iter().any(|b| b.name == "d.hy") {
                ("b.hy", "d.hx", azimuth.tan())
            } else {
                ("b.hx", "d.hy", azimuth.tan().recip())
            };
            let own = coefficient(&found, base, of);
            assert!(
                (own - expected).abs() < 1e-9 * (1.0 + expected.abs()),
                "{azimuth} {is_closed}: {own} {expected}"
            );
        }
    }
}

/// Orientations that are exact in double precision are no evidence of a file with few decimals: an identity matrix made axes
/// with 16 digits count as rounded to four decimals.
#[test]
fn an_identity_matrix_or_quaternion_does_not_make_axes_coarse() {
    let identity = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    for azimuth in AZIMUTHS {
        for is_closed in [false, true] {
            let expected = analysis(&file(azimuth, &json!({ "rpy": [0.0, 0.0, 0.0] }), is_closed));
            for orientation in
                [json!({ "rotation": identity }), json!({ "quaternion": [0.0, 0.0, 0.0, 1.0] })]
            {
                let found = analysis(&file(azimuth, &orientation, is_closed));
                assert_eq!(found.base_parameters, expected.base_parameters, "{azimuth} {orientation}");
            }
        }
    }
}
