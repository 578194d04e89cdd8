//! Collision shapes: simple solids fixed to links.

use crate::spatial::Pose;

/// A simple solid about the origin of its frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// A ball.
    Sphere {
        /// In metres.
        radius: f64,
    },
    /// A cylinder along `z`.
    Cylinder {
        /// In metres.
        radius: f64,
        /// In metres.
        length: f64,
    },
    /// A box along the axes.
    Box {
        /// Lengths of its edges (m).
        size: [f64; 3],
    },
}

/// A shape of a link as described.
#[derive(Debug, Clone, PartialEq)]
pub struct ShapeSpec {
    /// The link.
    pub link: String,
    /// The shape's frame in the link's frame.
    pub origin: Pose<f64>,
    /// What it is.
    pub shape: Shape,
}

/// A shape on a body of a mechanism.
#[derive(Debug, Clone, PartialEq)]
pub struct CollisionShape {
    /// The link it belongs to.
    pub link: String,
    /// The body that link is part of; `None` is the ground.
    pub body: Option<usize>,
    /// The shape's frame in the body's frame (in the world for the ground).
    pub pose: Pose<f64>,
    /// What it is.
    pub shape: Shape,
}
