//! Digests of kernel results with reproducible arithmetic: the same on every processor (`scripts/reproducible.sh`).

use inertial::dynamics::{Arithmetic, InverseDynamics, Workspace, forward_dynamics, mass_matrix};
use inertial::mechanism::{BuildOptions, builtin};

/// Robots without loops.
const ROBOTS: [&str; 7] =
    ["puma560", "scara", "cheetah-leg", "quadruped", "arm7", "planar-2r", "space-dual-arm"];

/// Generator of uniform numbers in (−1, 1), based on integer arithmetic.
struct Numbers(u64);

impl Numbers {
    fn take(&mut self, count: usize) -> Vec<f64> {
        let mut next = || {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }
}

/// Returns the FNV-1a digest of the bits.
fn digest(mut hash: u64, values: &[f64]) -> u64 {
    for byte in values.iter().flat_map(|x| x.to_bits().to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for name in ROBOTS {
        let robot = builtin::get(name)?.build(&BuildOptions::default())?;
        let (n, mut numbers, mut hash) = (robot.nv(), Numbers(1), 0xcbf2_9ce4_8422_2325);
        let dynamics = InverseDynamics::new(&robot).with_arithmetic(Arithmetic::Reproducible);
        let mut scratch = dynamics.scratch();
        let mut workspace = Workspace::new(&robot).with_arithmetic(Arithmetic::Reproducible);
        let (mut mass, mut acceleration) = (vec![0.0; n * n], vec![0.0; n]);
        for _ in 0..200 {
            let mut q = robot.neutral();
            for (position, turn) in q.iter_mut().zip(numbers.take(robot.nq())) {
                *position += 0.3 * turn;
            }
            let (v, a) = (numbers.take(n), numbers.take(n));
            hash = digest(hash, dynamics.torque_regressor(&mut scratch, &q, &v, &a)?);
            mass_matrix(&robot, &mut workspace, &q, &mut mass)?;
            forward_dynamics(&robot, &mut workspace, &q, &v, &a, &mut acceleration)?;
            hash = digest(digest(hash, &mass), &acceleration);
        }
        println!("{name}: {hash:016x}");
    }
    Ok(())
}
