//! Unknowns that no motion can excite because a force is not measured.
//!
//! The unknowns are those of complete measurement, so that logs of different sensors can be merged. Forces that are missing in all
//! logs make some unknowns unidentifiable, independent of the motion.

use crate::Result;
use crate::estimation::equations::Equations;
use crate::estimation::reduction::summary::Summary;
use crate::estimation::warning::Warning;
use crate::identifiability::{AnalyzeOptions, Measured, analyze};
use crate::mechanism::Base;

/// Returns a warning with the largest number of base parameters that the measured forces can excite, if some forces were not
/// measured and that number is smaller.
pub(crate) fn out_of_reach(equations: &Equations<'_>, summary: &Summary) -> Result<Option<Warning>> {
    let mechanism = equations.mechanism();
    let coordinates = equations.coordinates();
    let measured: Vec<bool> = summary.factors.iter().map(|f| f.count > 0).collect();
    let (joints, beyond) = measured.split_at(coordinates.min(measured.len()));
    let floating = mechanism.base() == Base::Floating;
    let base = if floating { 6.min(joints.len()) } else { 0 };
    let wrench = if floating { joints[..base].iter().any(|&m| m) } else { beyond.iter().any(|&m| m) };
    if joints[base..].iter().all(|&m| m) && (wrench || !(floating || equations.has_base_wrench())) {
        return Ok(None);
    }
    let coordinate = |row: usize| equations.closed().map_or(row, |c| c.independent()[row]);
    let joint_of = |row: usize| mechanism.joints().iter().find(|j| j.v_range().contains(&coordinate(row)));
    let named = |wanted: bool| -> Vec<String> {
        let mut names: Vec<String> = (base..joints.len())
            .filter(|&row| joints[row] == wanted)
            .filter_map(|row| joint_of(row).map(|j| j.name.clone()))
            .collect();
        names.dedup();
        names
    };
    let (with, without) = (named(true), named(false));
    let kind = match (with.is_empty(), wrench) {
        (true, true) => Measured::BaseWrench,
        (false, true) => Measured::Both,
        (_, false) => Measured::JointTorques,
    };
    let options = AnalyzeOptions {
        snap: equations.snap(),
        measured: Some(kind),
        torque_joints: (!without.is_empty() && !with.is_empty()).then_some(with),
        ..AnalyzeOptions::default()
    };
    let most = analyze(mechanism, &options)?.rank;
    let mut missing = Vec::new();
    if !without.is_empty() {
        missing.push(format!("the forces of {}", without.join(", ")));
    }
    if !wrench && (floating || equations.has_base_wrench()) {
        missing.push("the wrench on the base".to_owned());
    }
    let of = equations.rank();
    Ok((most < of).then_some(Warning::NotMeasured { missing, most, of }))
}
