//! Per-sample computations on mechanisms with loops allocate no memory. The allocator counts per thread, so that other tests of
//! this program can run at the same time.

#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::machines;
use inertial::dynamics::{ClosedMechanism, Frame, Samples};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// System allocator that counts the allocations of each thread.
struct Counting;

// SAFETY: every call is forwarded to the system allocator unchanged; counting only touches a thread-local number.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // The counter may already be destroyed at the end of a thread; nothing is measured then.
        let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
        // SAFETY: the guarantee of the caller about the layout is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn samples_allocate_nothing() {
    for (name, mechanism, _) in machines::all() {
        let closed = ClosedMechanism::new(&mechanism).unwrap();
        let mut ws = closed.workspace();
        let mut q = closed.assembled().to_vec();
        let n = closed.dof();
        let (v, a) = (vec![0.1; n], vec![0.2; n]);
        // Positions next to the assembly. A joint with both independent and dependent coordinates cannot be followed.
        let start: Vec<f64> = closed.independent_positions().iter().map(|&k| q[k] + 1e-6).collect();
        let mut followed = vec![0.0; q.len()];
        let can_follow = closed.follow(&mut ws, closed.assembled(), &start, &mut followed).is_ok();
        let (mut out, mut h) = (vec![0.0; n], vec![0.0; n * n]);
        let mut sample = || {
            closed.close(&mut ws, &mut q)?;
            closed.inverse_dynamics(&mut ws, &q, &v, &a, &mut out)?;
            closed.torque_regressor(&mut ws, &q, &v, &a)?;
            closed.mass_matrix(&mut ws, &q, &mut h)?;
            closed.forward_dynamics(&mut ws, &q, &v, &a, &mut out)?;
            closed.kinetic_energy(&mut ws, &q, &v)?;
            closed.momentum(&mut ws, &q, &v, Frame::World)?;
            if can_follow {
                closed.follow(&mut ws, closed.assembled(), &start, &mut followed)?;
            }
            let samples = Samples::closed(&closed, 1, &q, &v, &a)?;
            closed.packed_regressors(&mut ws, &samples, |_| ())?;
            closed.base_wrench(&mut ws, &q, &v, &a).map(|_| ())
        };
        // The first sample may still allocate.
        sample().unwrap_or_else(|e: inertial::Error| panic!("{name}: {e}"));
        let before = ALLOCATIONS.get();
        sample().unwrap();
        assert_eq!(ALLOCATIONS.get() - before, 0, "{name}");
    }
}
