//! Tests that `identify` names errors of the torques of floating and parallel robots, in simulated logs.

#![allow(clippy::unwrap_used)]

use crate::common::{Folder, run};
use serde_json::Value;

/// Simulated log of a designed motion.
struct Log {
    model: &'static str,
    header: Vec<String>,
    rows: Vec<Vec<f64>>,
}

impl Log {
    /// Simulates a log with little noise, as positions and forces.
    fn new(model: &'static str, design: &[&str], noise: &str) -> Self {
        let folder = Folder::new();
        let path = |name: &str| folder.path(name).to_str().unwrap().to_owned();
        let (motion, log) = (path("motion.json"), path("log.csv"));
        let quick = ["--starts", "1", "--out", &motion];
        let designed = run(&[&["design", model][..], &quick, design].concat());
        assert_eq!(designed.status, 0, "{}", designed.stderr);
        let simulated = run(&[
            "simulate", model, &motion, "--rate", "100", "--noise", noise, "--seed", "3", "--out", &log,
        ]);
        assert_eq!(simulated.status, 0, "{}", simulated.stderr);
        let text = std::fs::read_to_string(&log).unwrap();
        let mut lines = text.lines().map(|line| line.split(','));
        let names: Vec<&str> = lines.next().unwrap().collect();
        let is_read = |name: &str| {
            let bases = ["base.x", "base.y", "base.z", "base.qx", "base.qy", "base.qz", "base.qw"];
            ["t", "q.", "tau.", "wrench."].iter().any(|start| name.starts_with(start))
                || bases.contains(&name)
        };
        let used: Vec<usize> = (0..names.len()).filter(|&k| is_read(names[k])).collect();
        let rows = lines.map(|line| {
            let cells: Vec<&str> = line.collect();
            used.iter().map(|&k| cells[k].parse().unwrap()).collect()
        });
        let rows = rows.collect();
        Self { model, header: used.iter().map(|&k| names[k].to_owned()).collect(), rows }
    }

    fn column(&self, name: &str) -> usize {
        self.header.iter().position(|own| own == name).unwrap()
    }

    /// Identifies the log with modified rows.
    fn identified(&self, change: impl Fn(&[Vec<f64>], usize, &mut Vec<f64>)) -> Value {
        let mut text = self.header.join(",");
        for k in 0..self.rows.len() {
            let mut row = self.rows[k].clone();
            change(&self.rows, k, &mut row);
            text += "\n";
            text += &row.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        }
        let folder = Folder::new();
        let result = run(&["identify", self.model, &folder.file("log.csv", text), "--json"]);
        assert_eq!(result.status, 0, "{}", result.stderr);
        result.json()
    }
}

fn has(found: &Value, code: &str, name: &str) -> bool {
    let reasons = found["reasons"].as_array();
    let is = |r: &Value| r["code"] == code && r["message"].as_str().unwrap().contains(name);
    reasons.is_some_and(|reasons| reasons.iter().any(is))
}

#[test]
fn errors_of_the_torques_of_a_floating_robot_are_named() {
    let log = Log::new(
        "builtin:quadruped",
        &["--base-motion", "0.1,0.4", "--iterations", "3"],
        "tau=0.02,wrench.f=0.2,wrench.t=0.05",
    );
    let [thigh, calf] = ["tau.FL_thigh_joint", "tau.FL_calf_joint"].map(|name| log.column(name));
    let clean = log.identified(|_, _, _| ());
    assert_eq!(clean["verdict"], "good", "{}", clean["reasons"]);
    let exchanged = log.identified(|_, _, row| row.swap(thigh, calf));
    assert!(has(&exchanged, "order", "FL_thigh_joint and FL_calf_joint"), "{}", exchanged["reasons"]);
    let negated = log.identified(|_, _, row| row[thigh] = -row[thigh]);
    assert!(has(&negated, "sign", "FL_thigh_joint"), "{}", negated["reasons"]);
    let gained = log.identified(|_, _, row| row[thigh] *= 1.3);
    assert!(has(&gained, "gain", "FL_thigh_joint"), "{}", gained["reasons"]);
    let late = log.identified(|rows, k, row| row[thigh] = rows[k.saturating_sub(4)][thigh]);
    assert!(has(&late, "lag", "FL_thigh_joint"), "{}", late["reasons"]);
}

#[test]
fn errors_of_the_torques_of_a_parallel_robot_are_named() {
    let log = Log::new("builtin:2prs-1psr", &["--duration", "30", "--iterations", "20"], "tau=0.05");
    let [first, second] = ["tau.j1", "tau.j3"].map(|name| log.column(name));
    let clean = log.identified(|_, _, _| ());
    assert_eq!(clean["verdict"], "good", "{}", clean["reasons"]);
    let negated = log.identified(|_, _, row| row[first] = -row[first]);
    assert!(has(&negated, "sign", "j1"), "{}", negated["reasons"]);
    let exchanged = log.identified(|_, _, row| row.swap(first, second));
    assert!(has(&exchanged, "order", "j1 and j3"), "{}", exchanged["reasons"]);
}
