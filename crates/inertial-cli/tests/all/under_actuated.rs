//! Tests of machines with passive joints, whose torque is known to be zero.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use crate::common::{Folder, run};

/// All parameters of an acrobot are identifiable if the torque of its passive joint is known, otherwise those of its second link.
#[test]
fn named_passive_joints_count_as_measured() {
    let folder = Folder::new();
    let mut drive = String::from("t,q.joint1,q.joint2,tau.joint2\n");
    for i in 0..1000 {
        let t = 0.01 * f64::from(i);
        let _ = writeln!(drive, "{t},-1.5708,0,{}", 0.3 * (2.0 * t).sin() + 0.2 * (3.7 * t).sin());
    }
    let (drive, log) = (folder.file("drive.csv", drive), folder.path("log.csv"));
    let log = log.to_str().unwrap();
    let call = ["simulate", "builtin:planar-2r", &drive, "--forward", "--friction", "none", "--rate", "200"];
    let done = run(&[&call[..], &["--out", log]].concat());
    assert_eq!(done.status, 0, "{}", done.stderr);
    let call = ["identify", "builtin:planar-2r", log, "--friction", "none", "--offset=no", "--json"];
    for (joints, excited) in [("joint2", 3), ("joint1,joint2", 6)] {
        let found = run(&[&call[..], &["--joints", joints]].concat()).json();
        assert_eq!((&found["rank"], &found["excited"]), (&6.into(), &excited.into()), "{joints}");
    }
    // A torque of zero could also be an unmeasured one.
    let without = run(&call);
    assert_eq!(without.json()["excited"], 3);
    assert!(
        without.stderr.contains("the torque is always zero: taken as not measured"),
        "{}",
        without.stderr
    );
}
