//! Choice of base parameters, their combinations and the status of every parameter.

#![allow(clippy::unwrap_used)]

use crate::golden;
use inertial::identifiability::{Analysis, AnalyzeOptions, Status, analyze};
use inertial::linalg::Svd;
use inertial::mechanism::Mechanism;
use inertial::spatial::{Inertia, PARAMETER_NAMES};
use nalgebra::{DMatrix, Matrix3, Vector3};
use serde_json::Value;

/// Returns the sine of the largest angle between two row spaces of equal dimension.
fn angle(a: &DMatrix<f64>, b: &DMatrix<f64>) -> f64 {
    let basis = |m: &DMatrix<f64>| {
        let svd = Svd::new(m).unwrap();
        let rank = svd.rank(1e-11).rank;
        assert_eq!(rank, m.nrows(), "dependent rows");
        svd.v.columns(0, rank).into_owned()
    };
    let (p, q) = (basis(a), basis(b));
    (&q - &p * (p.transpose() * &q)).amax()
}

/// Returns our combinations as rows over the golden columns. The four golden parameters of a symmetric rotor are `Izz` and the
/// three that move to its carrier.
fn rows(answer: &Analysis, m: &Mechanism, g: &Value, skip: usize, rotors: bool) -> DMatrix<f64> {
    let links = g["model"]["joints"].as_array().unwrap().len();
    let width = 10 * links + if rotors { 4 * links } else { 0 };
    let mut map = DMatrix::zeros(m.parameter_count(), width);
    for block in m.parameter_blocks() {
        let body = &m.bodies()[block.body];
        if let Some(i) = body.name.strip_prefix("link") {
            let i = i.parse::<usize>().unwrap() - 1;
            (0..10).for_each(|k| map[(block.offset + k, 10 * i + k)] = 1.0);
        }
    }
    if rotors {
        for (i, r) in g["model"]["rotors"].as_array().unwrap().iter().enumerate() {
            let name = format!("joint{}.rotor", i + 1);
            let block = m.parameter_blocks().iter().find(|b| m.bodies()[b.body].name == name).unwrap();
            let body = &m.bodies()[block.body];
            let first = 10 * links + 4 * (r["joint"].as_u64().unwrap() as usize - 1);
            map[(block.offset, first + 3)] = 1.0;
            let Some(carrier) = body.parent else { continue };
            // The rotor frame was rotated so that its axis is z.
            let z = Vector3::z();
            let outer = z * z.transpose();
            let zero = Inertia::zero();
            let parts = [
                Inertia { mass: 1.0, ..zero },
                Inertia { first_moment: z, ..zero },
                Inertia { rotational: Matrix3::identity() - outer, ..zero },
            ];
            let offset = m.parameter_blocks().iter().find(|b| b.body == carrier).unwrap().offset;
            for (k, part) in parts.iter().enumerate() {
                let gained = part.transformed(&body.placement).parameters();
                (0..10).for_each(|j| map[(offset + j, first + k)] += gained[j]);
            }
        }
    }
    let r = &answer.regrouping;
    let chosen: Vec<usize> = (0..r.rank()).filter(|&i| r.base[i] >= skip).collect();
    let mut out = DMatrix::zeros(chosen.len(), m.parameter_count());
    for (row, &i) in chosen.iter().enumerate() {
        r.combinations[i].iter().for_each(|&(c, x)| out[(row, c)] = x);
    }
    out * map
}

fn golden_rows(v: &Value) -> DMatrix<f64> {
    let list = v["regrouping"].as_array().unwrap();
    let mut out = DMatrix::zeros(list.len(), v["n_parameters"].as_u64().unwrap() as usize);
    for (i, row) in list.iter().enumerate() {
        for entry in row.as_array().unwrap() {
            out[(i, entry[0].as_u64().unwrap() as usize)] = entry[1].as_f64().unwrap();
        }
    }
    out
}

#[test]
fn golden_models_in_all_variants() {
    for name in golden::MODELS {
        let g = golden::file(name);
        for v in g["variants"].as_array().unwrap() {
            let flag = |k: &str| v[k].as_bool().unwrap();
            let (floating, rotors) = (v["base"] == "floating", flag("rotors"));
            let label = format!("{name} {} gravity {} rotors {rotors}", v["base"], v["gravity"]);
            let m = golden::model(&g, floating, flag("gravity"), rotors);
            let answer = analyze(&m, &AnalyzeOptions::default()).unwrap();
            let skip = if floating { 10 } else { 0 };
            let want = v["n_base_parameters"].as_u64().unwrap() as usize + skip;
            assert_eq!(
                (answer.rank, answer.rank_literal, answer.certificate.exact),
                (want, want, true),
                "{label}"
            );
            assert_eq!((answer.method, answer.warnings.as_slice()), ("rpna", &[][..]), "{label}");
            assert_eq!(answer.base_parameters.len(), want);
            for b in &answer.base_parameters {
                assert_eq!(b.combination[0], (b.name.clone(), 1.0));
            }
            let angle = angle(&rows(&answer, &m, &g, skip, rotors), &golden_rows(v));
            assert!(angle <= 1e-9, "{label}: {angle:e}");
            if rotors {
                continue;
            }
            for q in v["parameters"].as_array().unwrap() {
                let link = format!("link{}", q["body"]);
                let body = answer.bodies.iter().find(|b| b.name == link).unwrap();
                for (key, status) in [
                    ("identifiable", Status::Identifiable),
                    ("identifiable_in_combination", Status::Combined),
                    ("unidentifiable", Status::Unidentifiable),
                ] {
                    let got: Vec<_> = body.parameters.iter().filter(|p| p.1 == status).map(|p| p.0).collect();
                    let mut want: Vec<_> =
                        q[key].as_array().unwrap().iter().map(|x| x.as_str().unwrap()).collect();
                    want.sort_by_key(|n| PARAMETER_NAMES.iter().position(|p| p == n));
                    assert_eq!(got, want, "{label}: {link} {key}");
                }
                let pivots: Vec<_> = q["base_parameter_pivots"].as_array().unwrap().iter().collect();
                assert_eq!(body.base_parameters.len(), pivots.len(), "{label}: {link}");
                assert!(
                    pivots.iter().all(|p| body.base_parameters.contains(&p.as_str().unwrap())),
                    "{label}: {link}"
                );
            }
        }
    }
}

#[test]
fn coefficients_come_out_clean() {
    let g = golden::file("puma560");
    let answer = analyze(&golden::model(&g, false, true, false), &AnalyzeOptions::default()).unwrap();
    let izz = answer.base_parameters.iter().find(|b| b.name == "link1.Izz").unwrap();
    let of = |n: &str| izz.combination.iter().find(|c| c.0 == n).unwrap().1;
    assert_eq!((of("link2.Iyy"), of("link3.m"), of("link4.m")), (1.0, 0.2, 0.223_409));
}

#[test]
fn mapping_both_ways() {
    let g = golden::file("cheetah_leg");
    let m = golden::model(&g, true, true, true);
    let answer = analyze(&m, &AnalyzeOptions::default()).unwrap();
    let r = &answer.regrouping;
    let base: Vec<f64> = (0..r.rank()).map(|i| (i as f64).sin()).collect();
    let prior: Vec<f64> = (0..r.parameters).map(|i| (i as f64).cos()).collect();
    for prior in [&[][..], &prior] {
        let full = r.expand(&base, prior).unwrap();
        let back = r.regroup(&full).unwrap();
        assert!(base.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-12));
    }
    assert!(r.expand(&base[1..], &[]).is_err());
    assert!(r.regroup(&base).is_err());
}

#[test]
fn preferred_parameters_become_base_parameters() {
    let g = golden::file("puma560");
    let m = golden::model(&g, false, true, false);
    let plain = analyze(&m, &AnalyzeOptions::default()).unwrap();
    let choose = vec!["link6.m".to_owned(), "link3.Iyy".to_owned(), "link1.m".to_owned()];
    let other = analyze(&m, &AnalyzeOptions::default().with(|o| o.choose = choose)).unwrap();
    let has = |n: &str| other.base_parameters.iter().any(|b| b.name == n);
    // The mass of the first link appears in no equation, so a preference has no effect on it.
    assert!(has("link6.m") && has("link3.Iyy") && !has("link1.m"));
    assert_eq!(other.rank, plain.rank);
    let all = |a: &Analysis| rows(a, &m, &g, 0, false);
    assert!(angle(&all(&plain), &all(&other)) < 1e-9);
    assert_eq!(plain.regrouping.status, other.regrouping.status);
    let wrong = AnalyzeOptions::default().with(|o| o.choose = vec!["link9.m".into()]);
    assert_eq!(
        analyze(&m, &wrong).unwrap_err().to_string(),
        "parameter \"link9.m\": there is no parameter of that name, expected BODY.NAME like link1.m; the nearest is link1.m"
    );
}

#[test]
fn serializes_to_the_public_object() {
    let g = golden::file("puma560");
    let answer = analyze(&golden::model(&g, false, true, true), &AnalyzeOptions::default()).unwrap();
    let json = serde_json::to_value(&answer).unwrap();
    assert_eq!(json["schema"], "inertial/analysis/1");
    assert_eq!(json["model"]["dof"], 6);
    assert_eq!((json["model"]["bodies"].as_u64(), json["model"]["rotors"].as_u64()), (Some(6), Some(6)));
    assert_eq!((json["rank"].as_u64(), json["parameters"].as_u64()), (Some(40), Some(66)));
    assert_eq!(json["bodies"][0]["parameters"]["Izz"], "combined");
    assert_eq!(json["bodies"][0]["parameters"]["m"], "unidentifiable");
    assert_eq!(json["base_parameters"][0]["combination"]["link1.Izz"], 1.0);
    assert_eq!(json["certificate"]["exact"], true);
    assert_eq!(json["bodies"][0]["parent"], "ground");
}
