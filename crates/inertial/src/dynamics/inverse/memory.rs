//! Scratch memory of the inverse-dynamics recursions.

use crate::dynamics::inverse::tables::Tables;
use crate::dynamics::simd::Four;

/// Memory of the recursions, for one number or one block of numbers `M`.
#[derive(Debug, Clone)]
pub(crate) struct Memory<M> {
    /// Sines and cosines of the angles.
    pub sin: Vec<M>,
    pub cos: Vec<M>,
    /// State of each node; the first is the ground.
    pub states: Vec<NodeState<M>>,
}

/// Memory for one configuration.
#[derive(Debug, Clone)]
pub(crate) struct SingleMemory {
    pub memory: Memory<f64>,
    /// Modes carried outward, `[angular, linear]`, with a lane to spare.
    pub carried: Vec<[Four; 2]>,
    /// Rows of rotation and origin of each node in its floating base; the first is the ground's.
    pub poses: Vec<[Four; 3]>,
}

/// Motion of a body and the wrench it needs, in its own frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeState<M> {
    /// Rotation to the parent (for the regressor: to the floating base).
    pub rotation: [[M; 3]; 3],
    /// Origin in the parent (for the regressor: in the floating base).
    pub origin: [M; 3],
    /// Angular velocity.
    pub w: [M; 3],
    /// Angular acceleration.
    pub dw: [M; 3],
    /// Acceleration of the origin, less gravity.
    pub d: [M; 3],
    /// Moment about the origin.
    pub moment: [M; 3],
    /// Force.
    pub force: [M; 3],
}

impl<M: Copy> Memory<M> {
    /// Allocates memory for the nodes of `tables`; `angles` may be more than the tables have, to fill the last block.
    pub fn new(tables: &Tables, angles: usize, zero: M) -> Self {
        let z = [zero; 3];
        let state = NodeState { rotation: [z; 3], origin: z, w: z, dw: z, d: z, moment: z, force: z };
        Self { sin: vec![zero; angles], cos: vec![zero; angles], states: vec![state; tables.nodes.len() + 1] }
    }
}
