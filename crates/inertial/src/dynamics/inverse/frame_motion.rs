//! Motion of a frame on a body, for many samples.

use crate::dynamics::Samples;
use crate::dynamics::displacement::Turn;
use crate::dynamics::expect_len;
use crate::dynamics::inverse::batch::LANES;
use crate::dynamics::inverse::inverse_dynamics::{InverseDynamics, Scratch};
use crate::dynamics::inverse::memory::Memory;
use crate::dynamics::inverse::rnea::{Motion, advance, carry, ground, place, turn};
use crate::dynamics::inverse::tables::Tables;
use crate::dynamics::simd::vector::{splat3, store3, tr_mul};
use crate::dynamics::simd::{Four, Lane, PlainFour, dispatch};
use crate::spatial::Pose;
use crate::{Error, Result};

/// Motion of a frame as measured by an inertial measurement unit, in its own axes, three numbers per sample each.
#[derive(Debug)]
pub struct FrameMotion<'a> {
    /// Acceleration of the origin minus gravity.
    pub acceleration: &'a mut [f64],
    /// Angular velocity.
    pub angular_velocity: &'a mut [f64],
    /// Angular acceleration.
    pub angular_acceleration: &'a mut [f64],
}

impl InverseDynamics {
    /// Computes the motion of a frame at `pose` on body number `body`. Only the chain to the body is computed, four
    /// samples at a time.
    pub fn frame_motion(
        &self,
        scratch: &mut Scratch,
        samples: &Samples<'_>,
        body: usize,
        pose: &Pose<f64>,
        out: FrameMotion<'_>,
    ) -> Result<()> {
        self.matches(scratch, samples)?;
        match self.tables.node_of.get(body).map(|&k| &self.tables.nodes[k]) {
            Some(node) if !node.spin => {}
            // Bodies that are symmetric about their axis are not rotated by the kernels.
            _ => return Err(Error::UnknownName(format!("no frame can be fixed to body {body}"))),
        }
        let FrameMotion { acceleration, angular_velocity, angular_acceleration } = out;
        let mut out = [acceleration, angular_velocity, angular_acceleration];
        for out in &out {
            expect_len("motion of a frame", out.len(), 3 * samples.len())?;
        }
        let frame = Carried {
            nodes: self.tables.path(body),
            rotation: std::array::from_fn(|i| std::array::from_fn(|j| pose.rotation[(i, j)])),
            origin: pose.translation.into(),
        };
        let mut motion = [[Four::default(); 3]; 3];
        for first in (0..samples.len()).step_by(LANES) {
            self.gather(scratch, samples, first);
            let (tables, frame, memory, motion) = (&self.tables, &frame, &mut scratch.wide, &mut motion);
            let [q, v, a, _] = &scratch.samples;
            let (q, v, a) = (&q[..], &v[..], &a[..]);
            dispatch!(self.fused, follow::<PlainFour, FusedFour>(
                tables: &Tables, frame: &Carried, memory: &mut Memory<Four>, q: &[Four], v: &[Four], a: &[Four],
                motion: &mut [[Four; 3]; 3]
            ));
            for (out, motion) in out.iter_mut().zip(motion) {
                for (lane, out) in out[3 * first..].chunks_exact_mut(3).take(LANES).enumerate() {
                    for (out, motion) in out.iter_mut().zip(&*motion) {
                        *out = motion.0[lane];
                    }
                }
            }
        }
        Ok(())
    }
}

/// Frame on a node, with the chain of nodes that carries it.
struct Carried {
    nodes: Vec<usize>,
    rotation: [[f64; 3]; 3],
    origin: [f64; 3],
}

#[inline(always)]
fn follow<L: Lane<Memory = Four>>(
    tables: &Tables,
    frame: &Carried,
    memory: &mut Memory<Four>,
    q: &[Four],
    v: &[Four],
    a: &[Four],
    out: &mut [[Four; 3]; 3],
) {
    ground::<L>(tables, &mut memory.states[0]);
    let mut motion = Motion::<L>::load(&memory.states[0]);
    for &k in &frame.nodes {
        let node = &tables.nodes[k];
        if let Turn::Angle(k) = node.turn {
            turn::<L>(tables, memory, k, q);
        }
        let (rotation, origin) = place::<L>(node, &memory.sin, &memory.cos, q);
        motion = advance(tables, node, &rotation, origin, &motion, v, a);
    }
    let rotation = [splat3(&frame.rotation[0]), splat3(&frame.rotation[1]), splat3(&frame.rotation[2])];
    store3(tr_mul(&rotation, carry(&motion, splat3(&frame.origin))), &mut out[0]);
    store3(tr_mul(&rotation, motion.w), &mut out[1]);
    store3(tr_mul(&rotation, motion.dw), &mut out[2]);
}
