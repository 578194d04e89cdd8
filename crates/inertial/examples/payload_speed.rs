//! Computing time of a payload identification: 6000 samples of a force/torque sensor on a seven-axis arm (36 000 equations).
//!
//! ```sh
//! cargo run --release -p inertial --example payload_speed
//! ```

use std::time::Instant;

use inertial::Result;
use inertial::dynamics::{Workspace, body_accelerations};
use inertial::estimation::{IdentifyOptions, SensorMotion, SingleBody, Wrenches};
use inertial::linalg::SplitMix;
use inertial::mechanism::{BuildOptions, builtin};
use inertial::spatial::{Inertia, Motion};
use nalgebra::{Matrix3, Vector3, vector};

const SAMPLES: usize = 6000;

fn main() -> Result<()> {
    let arm = builtin::get("arm7")?.build(&BuildOptions::default())?;
    let tool = Inertia::from_com(
        1.5,
        vector![0.02, 0.01, 0.1],
        Matrix3::from_diagonal(&vector![0.01, 0.012, 0.006]),
    );
    let mut random = SplitMix::new(1);
    let mut next = || (random.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
    let (mut q, mut v, mut a, mut wrench) = (vec![], vec![], vec![], vec![]);
    let mut workspace = Workspace::new(&arm);
    for _ in 0..SAMPLES {
        let state: [Vec<f64>; 3] = [2.0, 2.0, 6.0].map(|size| (0..arm.nv()).map(|_| size * next()).collect());
        body_accelerations(&arm, &mut workspace, &state[0], &state[1], &state[2])?;
        let gravity = workspace.poses()[6].rotation.tr_mul(&arm.gravity());
        let proper = workspace.accelerations()[6] - Motion::new(Vector3::zeros(), gravity);
        let exact = tool.wrench(&workspace.velocities()[6], &proper);
        wrench.extend(exact.linear.iter().map(|x| x + 0.5 + 0.3 * next()));
        wrench.extend(exact.angular.iter().map(|x| x + 0.1 + 0.02 * next()));
        let [x, dx, ddx] = state;
        q.extend(x);
        v.extend(dx);
        a.extend(ddx);
    }
    let mut times = [f64::INFINITY; 4];
    for _ in 0..30 {
        let start = Instant::now();
        let lap = || start.elapsed().as_secs_f64();
        let motion = SensorMotion::from_joints(&arm, "link7", &q, &v, &a)?;
        let kinematics = lap();
        let single = SingleBody::new("arm7", "tool")?;
        let equations = single.equations()?;
        let prepared = lap();
        let summary = single.summary(&equations, &motion, &Wrenches::new(&wrench))?;
        let summarized = lap();
        let found = single.identify(&equations, &summary, None, &IdentifyOptions::default())?;
        let all = lap();
        assert!(found.bodies[0].consistent);
        for (best, time) in
            times.iter_mut().zip([kinematics, prepared - kinematics, summarized - prepared, all - summarized])
        {
            *best = best.min(time);
        }
    }
    let [kinematics, equations, summary, estimate] = times.map(|t| 1e3 * t);
    println!(
        "kinematics {kinematics:.2} ms, equations {equations:.2} ms, summary {summary:.2} ms, estimate {estimate:.2} ms: {:.2} ms",
        kinematics + equations + summary + estimate
    );
    Ok(())
}
