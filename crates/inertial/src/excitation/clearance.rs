//! Clearance: capsules on bodies, their distances and gradients.

use nalgebra::Vector3;

use crate::mechanism::{CollisionShape, Mechanism, Shape};
use crate::spatial::Pose;

/// Segment with a radius, fixed to a body; a sphere if both ends coincide.
#[derive(Debug, Clone, PartialEq)]
pub struct Capsule {
    /// Link that the capsule belongs to.
    pub link: String,
    /// Body that carries the capsule; `None` is the ground.
    pub body: Option<usize>,
    /// Ends of the segment in the frame of the body.
    pub ends: [Vector3<f64>; 2],
    /// Radius (m).
    pub radius: f64,
}

/// Obstacles and self-collision pairs.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CollisionModel {
    /// Capsules of the robot.
    pub capsules: Vec<Capsule>,
    /// Pairs of capsules that must not touch.
    pub pairs: Vec<(usize, usize)>,
    /// Box in the world frame that moving parts must stay in: lowest and highest corner.
    pub workspace: Option<[Vector3<f64>; 2]>,
    /// Height that moving parts must stay above (m).
    pub ground: Option<f64>,
    /// Minimum distance (m).
    pub clearance: f64,
}

crate::with_changes!(CollisionModel);

/// Contact point: body, position in the world, and direction of motion that reduces the constraint value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contact {
    pub body: Option<usize>,
    pub point: Vector3<f64>,
    pub direction: Vector3<f64>,
}

impl CollisionModel {
    /// Creates capsules along the links: from the origin of each body to those of its children and of the links fixed to it, all
    /// with the same radius. Intended for robots whose description has meshes only.
    pub fn along_links(mechanism: &Mechanism, radius: f64) -> Vec<Capsule> {
        let mut out = Vec::new();
        for (i, body) in mechanism.bodies().iter().enumerate().take(mechanism.link_bodies()) {
            let mut tips: Vec<Vector3<f64>> = mechanism
                .bodies()
                .iter()
                .take(mechanism.link_bodies())
                .filter(|b| b.parent == Some(i))
                .map(|b| b.placement.translation)
                .collect();
            tips.extend(mechanism.links().iter().filter(|l| l.body == Some(i)).map(|l| l.pose.translation));
            tips.retain(|t| t.norm() > 1e-9);
            if tips.is_empty() {
                tips.push(Vector3::zeros());
            }
            out.extend(tips.into_iter().map(|tip| Capsule {
                link: body.name.clone(),
                body: Some(i),
                ends: [Vector3::zeros(), tip],
                radius,
            }));
        }
        out
    }

    /// Creates capsules around the collision shapes of the description. The capsule of a cylinder extends beyond its flat ends,
    /// that of a box is aligned with the longest edge and contains the box.
    pub fn shapes(mechanism: &Mechanism) -> Vec<Capsule> {
        let capsule = |s: &CollisionShape| {
            let (axis, half, radius) = match s.shape {
                Shape::Sphere { radius } => (2, 0.0, radius),
                Shape::Cylinder { radius, length } => (2, 0.5 * length, radius),
                Shape::Box { size } => {
                    let axis = (0..3).max_by(|a, b| size[*a].total_cmp(&size[*b])).unwrap_or(2);
                    let (b, c) = (size[(axis + 1) % 3], size[(axis + 2) % 3]);
                    (axis, 0.5 * size[axis], 0.5 * b.hypot(c))
                }
            };
            let mut tip = Vector3::zeros();
            tip[axis] = half;
            let ends = [s.pose.transform_point(&-tip), s.pose.transform_point(&tip)];
            Capsule { link: s.link.clone(), body: s.body, ends, radius }
        };
        mechanism.shapes().iter().map(capsule).collect()
    }

    /// Returns the pairs that can collide: pairs of different bodies that are not connected by a joint and that do not touch in
    /// the assembled configuration (neighbours with a short link between them).
    pub fn candidate_pairs(mechanism: &Mechanism, capsules: &[Capsule]) -> Vec<(usize, usize)> {
        // Massless bodies between two joints of one link do not separate its neighbours.
        let solid = |mut body: Option<usize>| {
            while let Some(b) = body {
                if mechanism.bodies()[b].parameter_count() > 0 {
                    break;
                }
                body = mechanism.bodies()[b].parent;
            }
            body
        };
        let parent = |body: Option<usize>| body.map(|b| solid(mechanism.bodies()[b].parent));
        let mut poses: Vec<Pose<f64>> = Vec::with_capacity(mechanism.bodies().len());
        for body in mechanism.bodies() {
            let pose = body.pose(mechanism.assembly());
            poses.push(body.parent.map_or(pose, |p| poses[p] * pose));
        }
        let all = Self { capsules: capsules.to_vec(), ..Self::default() };
        let touch =
            |i: usize, j: usize| Self { pairs: vec![(i, j)], ..all.clone() }.value(0, &poses).0 >= 0.0;
        let mut out = Vec::new();
        for (i, a) in capsules.iter().enumerate() {
            for (j, b) in capsules.iter().enumerate().skip(i + 1) {
                let joined = parent(a.body) == Some(b.body) || parent(b.body) == Some(a.body);
                if a.body != b.body && !joined && !touch(i, j) {
                    out.push((i, j));
                }
            }
        }
        out
    }

    /// Returns the number of constraints of [`CollisionModel::value`].
    pub(super) fn len(&self) -> usize {
        let planes = 6 * usize::from(self.workspace.is_some()) + usize::from(self.ground.is_some());
        self.pairs.len() + 2 * planes * self.capsules.len()
    }

    /// Returns the name of a constraint.
    pub(super) fn name(&self, index: usize) -> String {
        match index.checked_sub(self.pairs.len()) {
            None => {
                let (i, j) = self.pairs[index];
                format!("the distance of {} and {}", self.capsules[i].link, self.capsules[j].link)
            }
            Some(rest) => {
                let planes = 6 * usize::from(self.workspace.is_some()) + usize::from(self.ground.is_some());
                let link = &self.capsules[rest / (2 * planes)].link;
                let ground = self.ground.is_some() && rest % planes == planes - 1;
                format!("{} {link}", if ground { "the ground below" } else { "the workspace around" })
            }
        }
    }

    /// Returns the violation (m) of a distance constraint and the closest points; negative values are feasible.
    pub(super) fn value(&self, index: usize, poses: &[Pose<f64>]) -> (f64, [Option<Contact>; 2]) {
        let at = |capsule: &Capsule, end: usize| match capsule.body {
            Some(b) => poses[b].transform_point(&capsule.ends[end]),
            None => capsule.ends[end],
        };
        let Some(rest) = index.checked_sub(self.pairs.len()) else {
            let (i, j) = self.pairs[index];
            let (a, b) = (&self.capsules[i], &self.capsules[j]);
            let (p, q) = nearest([at(a, 0), at(a, 1)], [at(b, 0), at(b, 1)]);
            let between = p - q;
            let distance = between.norm();
            let direction = between / distance.max(1e-12);
            let value = self.clearance + a.radius + b.radius - distance;
            return (
                value,
                [
                    Some(Contact { body: a.body, point: p, direction }),
                    Some(Contact { body: b.body, point: q, direction: -direction }),
                ],
            );
        };
        let planes = 6 * usize::from(self.workspace.is_some()) + usize::from(self.ground.is_some());
        let (capsule, plane) = (&self.capsules[rest / (2 * planes)], rest % planes);
        if capsule.body.is_none() {
            return (f64::NEG_INFINITY, [None, None]);
        }
        let point = at(capsule, rest / planes % 2);
        let reach = capsule.radius + self.clearance;
        let mut direction = Vector3::zeros();
        let value = match (self.workspace, self.ground) {
            (Some([low, high]), _) if plane < 6 => {
                let axis = plane / 2;
                if plane % 2 == 0 {
                    direction[axis] = 1.0;
                    low[axis] - point[axis]
                } else {
                    direction[axis] = -1.0;
                    point[axis] - high[axis]
                }
            }
            (_, ground) => {
                direction.z = 1.0;
                ground.unwrap_or(f64::NEG_INFINITY) - point.z
            }
        };
        (value + reach, [Some(Contact { body: capsule.body, point, direction }), None])
    }
}

/// Adds the gradient of the value with respect to the velocity coordinates, times `factor`.
pub(super) fn add_contact(
    mechanism: &Mechanism,
    poses: &[Pose<f64>],
    contact: &Contact,
    factor: f64,
    gradient: &mut [f64],
) {
    let mut body = contact.body;
    while let Some(b) = body {
        let (frame, own) = (&poses[b], &mechanism.bodies()[b]);
        for (k, mode) in own.joint_type.free_modes().iter().enumerate() {
            let motion = frame.push_motion(&(*mode * own.drive.ratio));
            let velocity = motion.linear + motion.angular.cross(&contact.point);
            gradient[own.drive.v + k] -= factor * contact.direction.dot(&velocity);
        }
        body = own.parent;
    }
}

/// Computes the closest points of two segments (Ericson 2005, section 5.1.9).
fn nearest([a0, a1]: [Vector3<f64>; 2], [b0, b1]: [Vector3<f64>; 2]) -> (Vector3<f64>, Vector3<f64>) {
    let (u, v, r) = (a1 - a0, b1 - b0, a0 - b0);
    let (uu, vv, uv, ur, vr) = (u.norm_squared(), v.norm_squared(), u.dot(&v), u.dot(&r), v.dot(&r));
    // Segments shorter than a nanometre are points.
    let tiny = 1e-18;
    let (s, t) = if uu <= tiny && vv <= tiny {
        (0.0, 0.0)
    } else if uu <= tiny {
        (0.0, (vr / vv).clamp(0.0, 1.0))
    } else if vv <= tiny {
        ((-ur / uu).clamp(0.0, 1.0), 0.0)
    } else {
        let det = uu * vv - uv * uv;
        let s = if det > 1e-12 * uu * vv { ((uv * vr - ur * vv) / det).clamp(0.0, 1.0) } else { 0.0 };
        let t = (uv * s + vr) / vv;
        if t < 0.0 {
            ((-ur / uu).clamp(0.0, 1.0), 0.0)
        } else if t > 1.0 {
            (((uv - ur) / uu).clamp(0.0, 1.0), 1.0)
        } else {
            (s, t)
        }
    };
    (a0 + u * s, b0 + v * t)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::vector;

    #[test]
    fn nearest_points_are_those_of_a_fine_search() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        for case in 0..200 {
            let mut point = || vector![next(), next(), next()];
            let mut a = [point(), point()];
            let mut b = [point(), point()];
            match case % 5 {
                1 => a[1] = a[0],
                2 => b[1] = b[0],
                3 => b[1] = b[0] + (a[1] - a[0]) * 0.7,
                _ => {}
            }
            let (p, q) = nearest(a, b);
            let found = (p - q).norm();
            let steps = 60;
            let mut least = f64::INFINITY;
            for i in 0..=steps {
                for j in 0..=steps {
                    let (s, t) = (f64::from(i) / f64::from(steps), f64::from(j) / f64::from(steps));
                    least = least.min((a[0].lerp(&a[1], s) - b[0].lerp(&b[1], t)).norm());
                }
            }
            // The error of the search is at most one step, some hundredths, and its result is never below the true distance.
            assert!(found <= least + 1e-12 && found > least - 0.06, "{case}: {found} {least}");
        }
    }
}
