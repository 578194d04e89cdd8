//! Export of trajectories to files for controllers.

use std::fmt::Write as _;

use super::trajectory::Trajectory;
use crate::Result;

impl Trajectory {
    /// Calls `visit` with time, positions, velocities and accelerations of each sample at a rate (Hz).
    fn each_sample(&self, rate: f64, mut visit: impl FnMut(f64, &[f64], &[f64], &[f64])) -> Result<()> {
        let n = self.joints().len();
        let (mut q, mut v, mut a) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        for i in 0..self.samples(rate)? {
            let t = i as f64 / rate;
            self.evaluate(t, &mut q, &mut v, &mut a);
            visit(t, &q, &v, &a);
        }
        Ok(())
    }

    /// Writes CSV sampled at a rate (Hz): `t`, then `q.J`, `dq.J` and `ddq.J` of all joints.
    pub fn to_csv(&self, rate: f64) -> Result<String> {
        let mut out = String::from("t");
        for kind in ["q", "dq", "ddq"] {
            for joint in self.joints() {
                let _ = write!(out, ",{}", field(&format!("{kind}.{joint}")));
            }
        }
        out.push('\n');
        self.each_sample(rate, |t, q, v, a| {
            let _ = write!(out, "{t}");
            for x in [q, v, a].into_iter().flatten() {
                let _ = write!(out, ",{x}");
            }
            out.push('\n');
        })?;
        Ok(out)
    }

    /// Writes a ROS `trajectory_msgs/JointTrajectory` in YAML, sampled at a rate (Hz).
    pub fn to_ros_yaml(&self, rate: f64) -> Result<String> {
        let mut out =
            String::from("header:\n  stamp:\n    sec: 0\n    nanosec: 0\n  frame_id: ''\njoint_names:\n");
        for joint in self.joints() {
            // In single quotes, only the quote itself is special.
            let _ = writeln!(out, "- '{}'", joint.replace('\'', "''"));
        }
        out += "points:\n";
        self.each_sample(rate, |t, q, v, a| {
            for (key, row) in [("- positions", q), ("  velocities", v), ("  accelerations", a)] {
                let row: Vec<_> = row.iter().map(|x| format!("{x:?}")).collect();
                let _ = writeln!(out, "{key}: [{}]", row.join(", "));
            }
            let nanoseconds = (t * 1e9).round() as u64;
            let (sec, nanosec) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
            let _ = writeln!(out, "  effort: []\n  time_from_start:\n    sec: {sec}\n    nanosec: {nanosec}");
        })?;
        Ok(out)
    }
}

/// Formats a CSV field, quoted if necessary.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
