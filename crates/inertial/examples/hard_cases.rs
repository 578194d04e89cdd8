//! Compares analyses with a file of mechanisms whose true ranks and combinations are known:
//! `cargo run --release -p inertial --example hard_cases -- cases.json [FILTER]`.

use std::collections::BTreeMap;
use std::time::Instant;

use inertial::identifiability::{AnalyzeOptions, Measured, Method, Regime, analyze};
use inertial::mechanism::{Base, BuildOptions, read};
use serde_json::Value;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("expected the path of cases.json")?;
    let filter = args.next().unwrap_or_default();
    let text = std::fs::read_to_string(path)?;
    let cases: BTreeMap<String, Value> = serde_json::from_str(&text)?;
    let (mut right, mut certified, mut total) = (0, 0, 0);
    for (name, case) in cases.iter().filter(|(name, _)| name.contains(&filter)) {
        total += 1;
        let began = Instant::now();
        let verdict = judge(case);
        let seconds = began.elapsed().as_secs_f64();
        match verdict {
            Ok(exact) => {
                right += 1;
                certified += usize::from(exact);
                if !exact || seconds > 2.0 {
                    println!("{name}: right{} ({seconds:.2} s)", if exact { "" } else { ", not certified" });
                }
            }
            Err(why) => println!("{name}: {why} ({seconds:.2} s)"),
        }
    }
    println!("{right} of {total} right, {certified} of them certified");
    Ok(())
}

fn judge(case: &Value) -> Result<bool, String> {
    let (mut build, mut options) = (BuildOptions::default(), AnalyzeOptions::default());
    let words: Vec<&str> =
        case["options"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut at = 0;
    while at < words.len() {
        let value = words.get(at + 1).copied().unwrap_or_default();
        at += 2;
        match words[at - 2] {
            "--base" => build.base = Some(if value == "floating" { Base::Floating } else { Base::Fixed }),
            "--measured" => {
                options.measured = Some(match value {
                    "base-wrench" => Measured::BaseWrench,
                    "both" => Measured::Both,
                    "momentum" => Measured::Momentum,
                    _ => Measured::JointTorques,
                });
            }
            "--joints" => options.torque_joints = Some(value.split(',').map(str::to_owned).collect()),
            "--snap" => options.snap = value.parse().map_err(|_| "snap")?,
            "--static" => {
                options.regime = Regime::Static;
                at -= 1;
            }
            "--kinetic" => {
                options.regime = Regime::Kinetic;
                at -= 1;
            }
            other => return Err(format!("unknown option {other}")),
        }
    }
    if std::env::var_os("NUMERIC").is_some() {
        options.method = Method::Numeric;
    }
    let text = case["mechanism"].to_string();
    let model = read::model(&text, &read::no_includes).map_err(|e| e.to_string())?;
    let mechanism = model.build(&build).map_err(|e| e.to_string())?;
    let found = analyze(&mechanism, &options).map_err(|e| e.to_string())?;
    if std::env::var_os("VERBOSE").is_some() {
        let coefficients = found.base_parameters.iter().flat_map(|b| &b.combination).map(|(_, x)| x.abs());
        let largest = coefficients.fold(0.0, f64::max);
        println!("{:?}\n{:#?}\nlargest coefficient {largest:.3e}", found.certificate, found.warnings);
    }
    let exact = found.certificate.exact;
    let claim = if exact { "CERTIFIED AND WRONG" } else { "wrong" };
    let rank = case["rank"].as_u64().unwrap_or(0) as usize;
    if found.rank != rank {
        return Err(format!("{claim}: rank {}, exactly {rank}; {}", found.rank, found.certificate.upper_by));
    }
    let Some(truth) = case["base_parameters"].as_object() else { return Ok(exact) };
    for base in &found.base_parameters {
        let Some(want) = truth.get(&base.name).and_then(Value::as_object) else {
            return Err(format!("{claim}: base parameter {}", base.name));
        };
        let size = want.values().filter_map(Value::as_f64).fold(0.0f64, |m, x| m.max(x.abs()));
        let mut got: BTreeMap<&str, f64> = base.combination.iter().map(|(k, x)| (k.as_str(), *x)).collect();
        for (key, value) in want {
            let (a, b) = (got.remove(key.as_str()).unwrap_or(0.0), value.as_f64().unwrap_or(f64::NAN));
            if !((a - b).abs() <= 1e-8 * size.max(b.abs())) {
                return Err(format!("{claim}: {}: coefficient of {key} is {a}, exactly {b}", base.name));
            }
        }
        if let Some((key, a)) = got.into_iter().find(|(_, a)| !(a.abs() <= 1e-8 * size)) {
            return Err(format!("{claim}: {}: coefficient of {key} is {a}, exactly 0", base.name));
        }
    }
    Ok(exact)
}
