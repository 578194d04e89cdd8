//! Growth of the computing time of the recursion with the number of bodies.
//!
//! Run with `cargo run --release -p inertial --example rpna_scaling`.

use std::hint::black_box;
use std::time::Instant;

use inertial::Result;
use inertial::identifiability::{Regime, Rpna, Topology};
use inertial::linalg::First;
use inertial::mechanism::{
    BuildOptions, DEFAULT_SNAP, ExactGeometry, JointSpec, JointType, Mechanism, MechanismBuilder,
};
use inertial::spatial::{Inertia, Pose};
use nalgebra::{Vector3, vector};

fn main() -> Result<()> {
    println!("{:>8} {:>16} {:>16} {:>12}", "bodies", "recursion (µs)", "per body (ns)", "rank");
    for n in [10, 30, 100, 300, 1000, 3000, 10_000] {
        let chain = chain(n)?;
        let geometry = ExactGeometry::new(&chain, DEFAULT_SNAP);
        let topology =
            Topology::new(&geometry.to::<First>()).map_err(|e| inertial::Error::Numeric(e.into()))?;
        let numbers = geometry.to::<f64>();
        let run = || Rpna::new(&numbers, &topology, Regime::Full);
        let rank = chain.parameter_count() - run().nullity(&topology);
        // Minimum of several runs, to exclude interference by other processes.
        let least = (0..50)
            .map(|_| {
                let start = Instant::now();
                black_box(run());
                start.elapsed().as_secs_f64()
            })
            .fold(f64::INFINITY, f64::min);
        println!("{n:>8} {:>16.1} {:>16.1} {rank:>12}", least * 1e6, least * 1e9 / n as f64);
    }
    Ok(())
}

/// Builds a chain of hinges about x, y and z in turn.
fn chain(n: usize) -> Result<Mechanism> {
    let mut builder = MechanismBuilder::new("chain", "0");
    for i in 1..=n {
        let axis = [Vector3::x(), Vector3::y(), Vector3::z()][i % 3];
        let joint =
            JointSpec::new(format!("j{i}"), JointType::Revolute { axis }, (i - 1).to_string(), i.to_string());
        builder = builder
            .link(i.to_string(), Inertia::zero())
            .joint(joint.at(Pose::from_translation(vector![0.25, 0.0, 0.125])));
    }
    builder.build(&BuildOptions::default())
}
