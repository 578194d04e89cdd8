//! Inverse dynamics of one mechanism: constant tables and the scratch memory of a thread.

use crate::Result;
use crate::dynamics::expect_len;
use crate::dynamics::inverse::memory::{Memory, SingleMemory};
use crate::dynamics::inverse::packed::PackedLayout;
use crate::dynamics::inverse::tables::Tables;
use crate::dynamics::inverse::{regressor_single, rnea};
use crate::dynamics::simd::{Four, Plain, Single, dispatch};
use crate::mechanism::Mechanism;

/// Instruction sets that the kernels may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arithmetic {
    /// Fastest instructions of this machine (AVX2 and fused multiply-add if available).
    #[default]
    Fastest,
    /// Instructions that round identically everywhere: the same bits on every machine.
    Reproducible,
}

impl Arithmetic {
    /// Sets the default of this process. It applies to all kernels prepared afterwards without an explicit choice, and
    /// to matrix decompositions.
    pub fn make_default(self) {
        inertial_dense::set_reproducible(self == Self::Reproducible);
    }
}

/// Inverse dynamics and torque regressor of one mechanism, with precomputed tables.
///
/// The force of coordinate $j$ is the power along its mode $\Phi_j$ of the wrenches on all bodies $i$ that it moves,
/// $$\tau_j = \sum_{i \succeq j} (X_{ij} \Phi_j)^\top \left( I_i a_i + v_i \times^* I_i v_i \right) = \sum_{i \succeq j} y_{ji} \pi_i,$$
/// with the twist $v_i$ of a body, its acceleration $a_i$ minus gravity, and the ten parameters $\pi_i$ of its inertia $I_i$. The
/// rows $y_{ji}$ are the regressor.
///
/// Quantities that depend on the mechanism alone are computed once. A [`Scratch`] holds the memory needed by a call, so
/// that no call allocates. Share one `InverseDynamics` between threads and give each thread its own scratch memory. The
/// coordinates are those of the tree: loops are not closed here.
///
/// ```
/// use inertial::dynamics::InverseDynamics;
/// # use inertial::mechanism::{JointSpec, JointType, MechanismBuilder};
/// # use inertial::spatial::Inertia;
/// # use nalgebra::{Matrix3, Vector3, vector};
/// # let rod = Inertia::from_com(1.0, vector![0.5, 0.0, 0.0], Matrix3::from_diagonal(&vector![0.01, 0.1, 0.1]));
/// # let hinge = JointType::Revolute { axis: Vector3::y() };
/// # let mechanism = MechanismBuilder::new("pendulum", "ground")
/// #     .link("rod", rod).joint(JointSpec::new("hinge", hinge, "ground", "rod")).build(&Default::default())?;
/// let dynamics = InverseDynamics::new(&mechanism);
/// let mut scratch = dynamics.scratch();
/// let (q, v, a) = ([0.3], [1.0], [-2.0]);
/// let mut tau = [0.0];
/// dynamics.rnea(&mut scratch, &q, &v, &a, &mut tau)?;
/// let regressor = dynamics.torque_regressor(&mut scratch, &q, &v, &a)?;
/// let product: f64 = regressor.iter().zip(mechanism.parameters()).map(|(y, p)| y * p).sum();
/// assert!((product - tau[0]).abs() < 1e-12);
/// # Ok::<(), inertial::Error>(())
/// ```
#[allow(clippy::doc_markdown, reason = "formulas have indices")]
#[derive(Debug, Clone)]
pub struct InverseDynamics {
    pub(crate) tables: Tables,
    /// Whether the processor has AVX2 and FMA, and may use them.
    pub(crate) fused: bool,
}

/// Scratch memory of one thread for one [`InverseDynamics`].
#[derive(Debug, Clone)]
pub struct Scratch {
    pub(crate) single: SingleMemory,
    pub(crate) wide: Memory<Four>,
    /// Modes of four samples carried outward, `[angular, linear]`.
    pub(crate) carried: Vec<[[Four; 3]; 2]>,
    /// Coordinates of four samples: `q`, `v`, `a` and `tau`.
    pub(crate) samples: [Vec<Four>; 4],
    pub(crate) regressor: Vec<f64>,
    /// Packed regressors of a chunk of samples.
    pub(crate) packed: Vec<Four>,
}

impl InverseDynamics {
    /// Computes the tables of a mechanism.
    pub fn new(mechanism: &Mechanism) -> Self {
        Self { tables: Tables::new(mechanism), fused: crate::dynamics::simd::has_fused() }
    }

    /// Sets the instructions used by the kernels.
    pub fn with_arithmetic(mut self, arithmetic: Arithmetic) -> Self {
        self.fused = arithmetic == Arithmetic::Fastest && crate::dynamics::simd::has_fused();
        self
    }

    /// Allocates scratch memory for one thread.
    pub fn scratch(&self) -> Scratch {
        let t = &self.tables;
        let four = |n| vec![Four::default(); n];
        Scratch {
            single: SingleMemory {
                memory: Memory::new(t, t.angles.len().next_multiple_of(4), 0.0),
                carried: vec![[Four::default(); 2]; t.carried],
                poses: vec![[Four::default(); 3]; t.nodes.len() + 1],
            },
            wide: Memory::new(t, t.angles.len(), Four::default()),
            carried: vec![[[Four::default(); 3]; 2]; t.carried],
            samples: [four(t.nq), four(t.nv), four(t.nv), four(t.nv)],
            regressor: vec![0.0; t.nv * t.parameters],
            packed: Vec::new(),
        }
    }

    /// Returns the number of position coordinates.
    pub fn nq(&self) -> usize {
        self.tables.nq
    }

    /// Returns the number of velocity coordinates (rows of the regressor).
    pub fn nv(&self) -> usize {
        self.tables.nv
    }

    /// Returns the length of the parameter vector (columns of the regressor).
    pub fn parameter_count(&self) -> usize {
        self.tables.parameters
    }

    /// Returns the layout of the nonzero entries of the regressor.
    pub fn layout(&self) -> &PackedLayout {
        &self.tables.layout
    }

    /// Computes the generalized forces `tau` of the motion `q, v, a` of the tree (recursive Newton–Euler, including
    /// rotors and armature; Featherstone 2008, table 5.1).
    pub fn rnea(
        &self,
        scratch: &mut Scratch,
        q: &[f64],
        v: &[f64],
        a: &[f64],
        tau: &mut [f64],
    ) -> Result<()> {
        self.check(scratch, q, v, a)?;
        expect_len("tau", tau.len(), self.tables.nv)?;
        let (tables, memory) = (&self.tables, &mut scratch.single.memory);
        dispatch!(self.fused, rnea_single::<Plain, Fused>(
            tables: &Tables, memory: &mut Memory<f64>, q: &[f64], v: &[f64], a: &[f64], tau: &mut [f64]
        ));
        Ok(())
    }

    /// Computes the matrix `Y` with `tau = Y π + armature ∘ a`, dense and row-major, `nv` × [`Self::parameter_count`].
    ///
    /// It stays in the scratch memory until the next call; structural zeros are written only once.
    pub fn torque_regressor<'s>(
        &self,
        scratch: &'s mut Scratch,
        q: &[f64],
        v: &[f64],
        a: &[f64],
    ) -> Result<&'s [f64]> {
        self.check(scratch, q, v, a)?;
        let (tables, memory, out) = (&self.tables, &mut scratch.single, &mut scratch.regressor[..]);
        dispatch!(self.fused, regressor_single::<Plain, Fused>(
            tables: &Tables, memory: &mut SingleMemory, q: &[f64], v: &[f64], a: &[f64], out: &mut [f64]
        ));
        Ok(&scratch.regressor)
    }

    fn check(&self, scratch: &Scratch, q: &[f64], v: &[f64], a: &[f64]) -> Result<()> {
        expect_len("q", q.len(), self.tables.nq)?;
        expect_len("v", v.len(), self.tables.nv)?;
        expect_len("a", a.len(), self.tables.nv)?;
        self.fits(scratch)
    }

    /// Returns an error if the sizes of the scratch memory are those of another mechanism.
    pub(crate) fn fits(&self, scratch: &Scratch) -> Result<()> {
        let t = &self.tables;
        expect_len("scratch memory", scratch.single.memory.states.len(), t.nodes.len() + 1)?;
        expect_len("scratch memory", scratch.wide.sin.len(), t.angles.len())?;
        expect_len("scratch memory", scratch.carried.len(), t.carried)?;
        expect_len("scratch memory", scratch.samples[0].len(), t.nq)?;
        expect_len("scratch memory", scratch.regressor.len(), t.nv * t.parameters)
    }
}

#[inline(always)]
fn rnea_single<L: Single>(
    tables: &Tables,
    memory: &mut Memory<f64>,
    q: &[f64],
    v: &[f64],
    a: &[f64],
    tau: &mut [f64],
) {
    rnea::turn_single::<L>(&tables.angles, &mut memory.sin, &mut memory.cos, q);
    rnea::run::<L>(tables, memory, q, v, a, tau);
}

#[inline(always)]
fn regressor_single<L: Single>(
    tables: &Tables,
    memory: &mut SingleMemory,
    q: &[f64],
    v: &[f64],
    a: &[f64],
    out: &mut [f64],
) {
    let Memory { sin, cos, .. } = &mut memory.memory;
    rnea::turn_single::<L>(&tables.angles, sin, cos, q);
    regressor_single::run::<L>(tables, memory, q, v, a, out);
}
