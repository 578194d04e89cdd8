//! Synthetic logs for tests.
#![allow(dead_code, clippy::unwrap_used)]

#[path = "../../../../inertial/tests/all/common/data.rs"]
pub mod data;
#[path = "../../../../inertial/tests/all/common/python.rs"]
pub mod python;

use inertial::mechanism::{BuildOptions, Mechanism, read};
use inertial_data::{CsvReader, Log, Result};

/// Creates an arm with two hinges and a slide, `shoulder elbow slide`.
pub fn arm() -> Mechanism {
    let joint = |name: &str, kind: &str, parent: &str, child: &str| {
        format!(
            r#"<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="0.3 0 0"/>
               <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="100" velocity="10"/></joint>"#
        )
    };
    let text = format!(
        r#"<robot name="arm"><link name="base"/><link name="a"/><link name="b"/><link name="c"/>{}{}{}</robot>"#,
        joint("shoulder", "revolute", "base", "a"),
        joint("elbow", "revolute", "a", "b"),
        joint("slide", "prismatic", "b", "c")
    );
    read::model(&text, &read::no_includes).unwrap().build(&BuildOptions::default()).unwrap()
}

pub fn parse(text: &str) -> Result<Log> {
    Log::collect(CsvReader::new(text.as_bytes(), "log.csv")?)
}

/// Returns the position, velocity and acceleration of coordinate `k` at time `t`.
pub fn motion(k: usize, t: f64) -> [f64; 3] {
    let (w, phase) = (3.0 + 1.5 * k as f64, 0.4 * k as f64);
    let angle = w * t + phase;
    [angle.sin(), w * angle.cos(), -w * w * angle.sin()]
}

/// Returns a torque with at most the bandwidth of the motion.
pub fn torque(k: usize, t: f64) -> f64 {
    10.0 * (2.0 * t + k as f64).sin() + 3.0
}

/// Returns the columns of a clean log of [`arm`]: `t`, then `q`, `tau` by number.
pub fn clean(n: usize, rate: f64) -> (Vec<String>, Vec<Vec<f64>>) {
    let t: Vec<f64> = (0..n).map(|i| i as f64 / rate).collect();
    columns_at(&t)
}

pub fn columns_at(t: &[f64]) -> (Vec<String>, Vec<Vec<f64>>) {
    let mut names = vec!["t".to_owned()];
    let mut columns = vec![t.to_vec()];
    for k in 0..3 {
        names.push(format!("q{}", k + 1));
        columns.push(t.iter().map(|&t| motion(k, t)[0]).collect());
    }
    for k in 0..3 {
        names.push(format!("tau{}", k + 1));
        columns.push(t.iter().map(|&t| torque(k, t)).collect());
    }
    (names, columns)
}

pub fn csv(names: &[String], columns: &[Vec<f64>]) -> String {
    let mut text = names.join(",") + "\n";
    for i in 0..columns[0].len() {
        let row: Vec<String> = columns.iter().map(|c| format!("{:?}", c[i])).collect();
        text += &(row.join(",") + "\n");
    }
    text
}
