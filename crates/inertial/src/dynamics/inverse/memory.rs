//! Scratch memory of the inverse-dynamics recursions.

use crate::dynamics::inverse::tables::Tables;
use crate::dynamics::simd::Four;

/// Memory of the recursions, for single numbers or blocks of numbers `M`.
#[derive(Debug, Clone)]
pub(crate) struct Memory<M> {
    /// Sines and cosines of the angles.
    pub sin: Vec<M>,
    pub cos: Vec<M>,
    /// State of each node; the first is the ground.
    pub states: Vec<NodeState<M>>,
}

/// Scratch memory for one configuration.
#[derive(Debug, Clone)]
pub(crate) struct SingleMemory {
    pub memory: Memory<f64>,
    /// Modes carried outward, `[angular, linear]`, with one unused lane.
    pub carried: Vec<[Four; 2]>,
    /// Rows of rotation and origin of each node relative to its floating base; the first is the ground.
    pub poses: Vec<[Four; 3]>,
}

/// Motion of a body and its inertial wrench, in its own frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeState<M> {
    /// Rotation to the parent (for the regressor: to the floating base).
    pub rotation: [[M; 3]; 3],
    /// Origin in the parent frame (for the regressor: in the frame of the floating base).
    pub origin: [M; 3],
    /// Angular velocity.
    pub w: [M; 3],
    /// Angular acceleration.
    pub dw: [M; 3],
    /// Acceleration of the origin minus gravity.
    pub d: [M; 3],
    /// Moment about the origin.
    pub moment: [M; 3],
    /// Force of the wrench.
    pub force: [M; 3],
}

impl<M: Copy> Memory<M> {
    /// Allocates memory for the nodes of `tables`; `angles` may exceed the number in the tables, to fill the last
    /// block.
    pub fn new(tables: &Tables, angles: usize, zero: M) -> Self {
        let z = [zero; 3];
        let state = NodeState { rotation: [z; 3], origin: z, w: z, dw: z, d: z, moment: z, force: z };
        Self { sin: vec![zero; angles], cos: vec![zero; angles], states: vec![state; tables.nodes.len() + 1] }
    }
}
