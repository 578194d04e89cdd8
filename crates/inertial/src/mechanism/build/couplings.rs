//! Couplings: joints that follow joints are resolved to linear combinations of coordinates.

use std::collections::HashMap;

use super::check::place;
use crate::mechanism::{JointSpec, JointType};
use crate::{Error, Result};

/// Maximum number of joints that one joint may follow, as described and after resolution; bounds the work on hostile
/// files.
const LEADERS: usize = 100;

/// Resolved coupling of a joint to joints that follow none: `q = Σ ratio · q_leader + offset`.
#[derive(Debug, Clone)]
pub(super) struct Coupling {
    /// Indices of the described joints with their ratios; never empty.
    pub leaders: Vec<(usize, f64)>,
    pub offset: f64,
}

/// Resolves the coupling of each described joint.
pub(super) fn resolve(described: &[JointSpec]) -> Result<Vec<Option<Coupling>>> {
    let index: HashMap<&str, usize> =
        described.iter().enumerate().map(|(j, spec)| (spec.name.as_str(), j)).collect();
    let mut out: Vec<Option<Coupling>> = vec![None; described.len()];
    let mut open = vec![false; described.len()];
    let mut stack = Vec::new();
    for start in 0..described.len() {
        stack.push(start);
        while let Some(&j) = stack.last() {
            let spec = &described[j];
            let (Some(mimic), None) = (&spec.mimic, &out[j]) else {
                stack.pop();
                continue;
            };
            let error =
                |message: String| Error::model(place(spec.line, format!("joint \"{}\"", spec.name)), message);
            if mimic.leaders.is_empty() || mimic.leaders.len() > LEADERS {
                return Err(error(format!("it can follow (mimic) one to {LEADERS} joints")));
            }
            let mut own = Coupling { leaders: Vec::new(), offset: mimic.offset };
            let mut waits_for = None;
            for (name, ratio) in &mimic.leaders {
                let leader = index.get(name.as_str()).copied();
                let moving = leader.filter(|&l| described[l].joint_type != JointType::Fixed);
                let leader = moving
                    .ok_or_else(|| error(format!("it follows \"{name}\", which is not a moving joint")))?;
                match (&described[leader].mimic, &out[leader]) {
                    (None, _) => own.add(leader, *ratio),
                    (Some(_), Some(known)) => {
                        own.offset += ratio * known.offset;
                        known.leaders.iter().for_each(|(l, r)| own.add(*l, ratio * r));
                    }
                    (Some(_), None) => {
                        waits_for = Some(leader);
                        break;
                    }
                }
            }
            if let Some(leader) = waits_for {
                open[j] = true;
                if open[leader] || leader == j {
                    return Err(error("the joints that it follows (mimic) form a cycle".into()));
                }
                stack.push(leader);
                continue;
            }
            own.drop_zeros();
            if own.leaders.len() > LEADERS {
                return Err(error(format!("it follows (mimic) more than {LEADERS} joints in total")));
            }
            if let Some((l, _)) = own.leaders.iter().find(|(l, _)| described[*l].joint_type.nv() != 1) {
                return Err(error(format!("it follows \"{}\", which has several axes", described[*l].name)));
            }
            open[j] = false;
            out[j] = Some(own);
        }
    }
    Ok(out)
}

impl Coupling {
    fn add(&mut self, leader: usize, ratio: f64) {
        match self.leaders.iter_mut().find(|(l, _)| *l == leader) {
            Some((_, sum)) => *sum += ratio,
            None => self.leaders.push((leader, ratio)),
        }
    }

    /// Removes leaders with zero ratio, but keeps at least one leader.
    fn drop_zeros(&mut self) {
        let first = self.leaders.first().copied();
        self.leaders.retain(|(_, ratio)| *ratio != 0.0);
        if self.leaders.is_empty() {
            self.leaders.extend(first);
        }
    }
}
