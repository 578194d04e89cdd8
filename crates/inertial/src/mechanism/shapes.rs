//! Collision shapes: simple solids fixed to links.

use nalgebra::Vector3;

use crate::consistency::Extent;
use crate::spatial::Pose;

/// Simple solid centred at the origin of its frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// Sphere.
    Sphere {
        /// Radius in metres.
        radius: f64,
    },
    /// Cylinder along `z`.
    Cylinder {
        /// Radius in metres.
        radius: f64,
        /// Length in metres.
        length: f64,
    },
    /// Box along the axes.
    Box {
        /// Lengths of the edges (m).
        size: [f64; 3],
    },
}

/// Description of a collision shape of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct ShapeSpec {
    /// Name of the link.
    pub link: String,
    /// Frame of the shape in the link's frame.
    pub origin: Pose<f64>,
    /// Geometry of the shape.
    pub shape: Shape,
}

/// Collision shape on a body of a mechanism.
#[derive(Debug, Clone, PartialEq)]
pub struct CollisionShape {
    /// Name of the link that the shape belongs to.
    pub link: String,
    /// Body that contains the link; `None` is the ground.
    pub body: Option<usize>,
    /// Frame of the shape in the body's frame (world frame for the ground).
    pub pose: Pose<f64>,
    /// Geometry of the shape.
    pub shape: Shape,
}

impl CollisionShape {
    /// Returns the bounding box along the axes of a link whose frame in the body's frame is `link`.
    pub fn extent(&self, link: &Pose<f64>) -> Extent {
        let pose = link.inverse() * self.pose;
        let edges = match self.shape {
            Shape::Sphere { radius } => {
                let half = Vector3::repeat(radius);
                return Extent { lower: pose.translation - half, upper: pose.translation + half };
            }
            Shape::Cylinder { radius, length } => [2.0 * radius, 2.0 * radius, length],
            Shape::Box { size } => size,
        };
        let half = pose.rotation.abs() * Vector3::from(edges) * 0.5;
        Extent { lower: pose.translation - half, upper: pose.translation + half }
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::vector;

    use super::*;

    #[test]
    fn extents_are_along_the_axes_of_the_link() {
        let pose = |xyz: [f64; 3], yaw: f64| Pose::from_xyz_rpy(xyz, [0.0, 0.0, yaw]);
        let shape = |pose, shape| CollisionShape { link: "a".into(), body: None, pose, shape };
        let link = pose([1.0, 0.0, 0.0], 0.0);
        let quarter = std::f64::consts::FRAC_PI_2;
        let turned = shape(pose([1.0, 0.0, 0.0], quarter), Shape::Box { size: [0.2, 0.4, 0.6] });
        let ball = shape(pose([1.0, 0.0, 1.0], 0.3), Shape::Sphere { radius: 0.1 });
        let extent = turned.extent(&link).join(&ball.extent(&link));
        assert!((extent.lower - vector![-0.2, -0.1, -0.3]).amax() < 1e-12, "{extent:?}");
        assert!((extent.upper - vector![0.2, 0.1, 1.1]).amax() < 1e-12, "{extent:?}");
        let upright = shape(link, Shape::Cylinder { radius: 0.1, length: 1.0 });
        assert!((upright.extent(&link).upper - vector![0.1, 0.1, 0.5]).amax() < 1e-12);
    }
}
