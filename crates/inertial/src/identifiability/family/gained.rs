//! Relations satisfied by a restored mechanism but not by the numbers of the file.

use super::relations::{Relations, View};
use super::{Along, Equation, Factor};
use crate::identifiability::rounding::DOUBLES;
use crate::linalg::{Number, Wide};
use crate::mechanism::{AssumedRelation, Mechanism};
use crate::spatial::Field;

impl<const N: usize> Relations<N> {
    /// Returns the relations that the mechanism `before` restoration did not have, with the joints and the deviations;
    /// `unit` is the unit of length of these relations.
    pub fn gained(&self, before: &Self, mechanism: &Mechanism, unit: f64) -> Vec<AssumedRelation> {
        let (Some(own), Some(old)) = (self.views.first(), before.views.first()) else { return Vec::new() };
        let name = |item: usize| {
            let joint = mechanism.bodies().get(item).map(|body| &mechanism.joints()[body.joint].name);
            // Locked joints follow the loops of the mechanism and have no axis.
            let closing = || mechanism.loops().get(item - mechanism.bodies().len()).map(|l| &l.name);
            joint.or_else(closing).cloned().unwrap_or_default()
        };
        let angle = |item: usize, relation: String, moved: f64| AssumedRelation {
            joint: name(item),
            relation,
            moved,
            unit: "rad",
        };
        let mut out = Vec::new();
        let classes = |relations: &Self| -> Vec<Option<usize>> {
            relations.items.iter().map(|i| i.axis.map(|a| a.class)).collect()
        };
        let (mine, theirs) = (classes(self), classes(before));
        // The first joint of each class of parallel axes.
        let mut heads: Vec<(usize, usize)> = Vec::new();
        for (item, class) in mine.iter().enumerate() {
            let (Some(class), Some(was)) = (*class, theirs[item]) else { continue };
            let direction = old.directions[was];
            if let (Some(g), Some(down)) = (self.gravity, before.gravity)
                && g.class == class
                && down.class != was
            {
                let error = largest(&direction.cross(&old.directions[down.class]));
                out.push(angle(item, "axis parallel to gravity".into(), error));
            }
            let Some(&(head, _)) = heads.iter().find(|h| h.1 == class) else {
                heads.push((item, class));
                continue;
            };
            if let Some(other) = theirs[head].filter(|&other| other != was) {
                let error = largest(&direction.cross(&old.directions[other]));
                out.push(angle(item, format!("axis parallel to that of {}", name(head)), error));
            }
        }
        for (n, &(item, class)) in heads.iter().enumerate() {
            for &(head, other) in &heads[..n] {
                let [Some(a), Some(b)] = [theirs[item], theirs[head]] else { continue };
                if self.at_right_angles(class, other) && !before.at_right_angles(a, b) {
                    let error = old.directions[a].dot(&old.directions[b]).weight();
                    out.push(angle(item, format!("axis at right angles to that of {}", name(head)), error));
                }
            }
        }
        let view = View { directions: own.directions.clone(), points: old.points.clone() };
        for equation in self.equations.iter().filter(|e| e.is_plain()) {
            let error = residual(equation, &view);
            if error <= DOUBLES {
                continue;
            }
            let others: Vec<String> = equation.terms[1..].iter().map(|t| name(t.0)).collect();
            let relation = match (others.as_slice(), equation.along) {
                ([one], Along::Normal(..)) => format!("axis meets that of {one}"),
                ([one], Along::Axis(class)) => match heads.iter().find(|h| h.1 == class) {
                    Some(&(head, _)) => format!("level with {one} along the axis of {}", name(head)),
                    None => format!("level with {one} along gravity"),
                },
                ([one], Along::Space) => format!("at the same point as {one}"),
                ([one], Along::Across(_)) => format!("on one axis with {one}"),
                ([one, two, three], _) => format!("offset from {one} equal to that of {two} from {three}"),
                _ => continue,
            };
            let (joint, moved) = (name(equation.terms[0].0), error * unit);
            out.push(AssumedRelation { joint, relation, moved, unit: "m" });
        }
        // Several axes of one joint have the same name.
        let mut reported: Vec<(String, String)> = Vec::new();
        out.retain(|r| {
            let key = (r.joint.clone(), r.relation.clone());
            let new = (r.unit == "m" || r.moved > DOUBLES) && !reported.contains(&key);
            reported.push(key);
            new
        });
        out
    }
}

fn largest<const N: usize>(v: &nalgebra::Vector3<Wide<N>>) -> f64 {
    v.iter().copied().map(Number::weight).fold(0.0, f64::max)
}

/// Returns the residual of an equation at the points.
fn residual<const N: usize>(equation: &Equation, view: &View<Wide<N>>) -> f64 {
    let sum = equation.terms.iter().fold(nalgebra::Vector3::zeros(), |sum, &(item, factor)| match factor {
        Factor::Sign(sign) => sum + view.points[item] * Wide::from_i64(sign),
        Factor::Ratio(..) | Factor::Turn(..) => sum,
    });
    let sum: nalgebra::Vector3<f64> = sum.map(f64::from);
    let direction = |class: usize| view.directions[class].map(f64::from);
    match equation.along {
        Along::Space => sum.norm(),
        Along::Axis(c) => direction(c).dot(&sum).abs(),
        Along::Across(c) => sum.cross(&direction(c)).norm(),
        Along::Normal(a, b) => {
            let normal = direction(a).cross(&direction(b));
            if normal.norm() > 0.0 { normal.normalize().dot(&sum).abs() } else { 0.0 }
        }
    }
}
