#![allow(clippy::unwrap_used)]

use super::Recognition;
use crate::joint_names::JointNames;

/// Returns the targets of all columns that are used, with the unit if it is not SI.
fn taken(names: &[&str], joints: &[&str]) -> Vec<String> {
    let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
    let joints: Vec<String> = joints.iter().map(|n| (*n).to_owned()).collect();
    let found = Recognition::of(&names, &joints);
    let shown = |c: &super::RecognizedColumn| {
        let unit = c.unit.map_or(String::new(), |u| format!(" {u}"));
        c.target.as_ref().map(|target| format!("{}={target}{unit}", c.name))
    };
    found.columns().iter().filter_map(shown).collect()
}

/// Description, names of the columns, joints of the model, and expected targets.
type Case<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a [&'a str]);

/// Column names of common controllers and programs, with two joints each.
#[test]
fn names_of_many_writers_are_recognized() {
    let cases: [Case<'_>; 14] = [
        (
            "UR RTDE: target_q and TCP speeds are not joints' measurements",
            &[
                "timestamp",
                "target_q_0",
                "target_q_1",
                "actual_q_0",
                "actual_q_1",
                "actual_qd_0",
                "actual_qd_1",
                "actual_current_0",
                "actual_current_1",
                "actual_TCP_speed_0",
                "actual_TCP_speed_1",
            ],
            &[],
            &["timestamp=t", "actual_q_0=q1", "actual_q_1=q2", "actual_qd_0=dq1", "actual_qd_1=dq2"],
        ),
        (
            "libfranka",
            &[
                "time_ms",
                "state.q[0]",
                "state.q[1]",
                "state.q_d[0]",
                "state.q_d[1]",
                "state.dq[0]",
                "state.dq[1]",
                "state.tau_J[0]",
                "state.tau_J[1]",
                "state.tau_ext_hat_filtered[0]",
                "state.tau_ext_hat_filtered[1]",
                "state.O_T_EE[0]",
            ],
            &[],
            &[
                "time_ms=t ms",
                "state.q[0]=q1",
                "state.q[1]=q2",
                "state.dq[0]=dq1",
                "state.dq[1]=dq2",
                "state.tau_J[0]=tau1",
                "state.tau_J[1]=tau2",
            ],
        ),
        (
            "KUKA system variables",
            &[
                "Time",
                "$AXIS_ACT.A1",
                "$AXIS_ACT.A2",
                "$VEL_AXIS_ACT[1]",
                "$VEL_AXIS_ACT[2]",
                "$TORQUE_AXIS_ACT[1]",
                "$TORQUE_AXIS_ACT[2]",
            ],
            &[],
            &[
                "Time=t",
                "$AXIS_ACT.A1=q1 deg",
                "$AXIS_ACT.A2=q2 deg",
                "$TORQUE_AXIS_ACT[1]=tau1",
                "$TORQUE_AXIS_ACT[2]=tau2",
            ],
        ),
        (
            "ABB",
            &["t", "rax_1", "rax_2", "torque_1", "torque_2"],
            &[],
            &["t=t", "rax_1=q1 deg", "rax_2=q2 deg", "torque_1=tau1", "torque_2=tau2"],
        ),
        (
            "Unitree",
            &[
                "stamp",
                "motor_state[0].q",
                "motor_state[1].q",
                "motor_state[0].dq",
                "motor_state[1].dq",
                "motor_state[0].tau_est",
                "motor_state[1].tau_est",
                "motor_cmd[0].q",
                "motor_cmd[1].q",
            ],
            &[],
            &[
                "stamp=t",
                "motor_state[0].q=q1",
                "motor_state[1].q=q2",
                "motor_state[0].dq=dq1",
                "motor_state[1].dq=dq2",
                "motor_state[0].tau_est=tau1",
                "motor_state[1].tau_est=tau2",
            ],
        ),
        (
            "rostopic echo -p",
            &[
                "time",
                "field.header.seq",
                "field.header.stamp",
                "field.name0",
                "field.name1",
                "field.position0",
                "field.position1",
                "field.velocity0",
                "field.velocity1",
                "field.effort0",
                "field.effort1",
            ],
            &[],
            &[
                "time=t",
                "field.position0=q1",
                "field.position1=q2",
                "field.velocity0=dq1",
                "field.velocity1=dq2",
                "field.effort0=tau1",
                "field.effort1=tau2",
            ],
        ),
        (
            "PlotJuggler, by joint",
            &[
                "__time",
                "/joint_states/elbow/position",
                "/joint_states/elbow/velocity",
                "/joint_states/elbow/effort",
            ],
            &[],
            &[
                "__time=t",
                "/joint_states/elbow/position=q.elbow",
                "/joint_states/elbow/velocity=dq.elbow",
                "/joint_states/elbow/effort=tau.elbow",
            ],
        ),
        (
            "PlotJuggler, by number, with the stamp of the header",
            &[
                "/joint_states/header/stamp/sec",
                "/joint_states/header/stamp/nanosec",
                "/joint_states/position[0]",
                "/joint_states/position[1]",
                "/joint_states/effort[0]",
                "/joint_states/effort[1]",
            ],
            &[],
            &[
                "/joint_states/header/stamp/sec=t",
                "/joint_states/position[0]=q1",
                "/joint_states/position[1]=q2",
                "/joint_states/effort[0]=tau1",
                "/joint_states/effort[1]=tau2",
            ],
        ),
        (
            "numbers from 0",
            &["t", "q0", "q1", "tau0", "tau1"],
            &[],
            &["t=t", "q0=q1", "q1=q2", "tau0=tau1", "tau1=tau2"],
        ),
        ("numbers from 1 are standard names", &["t", "q1", "q2"], &[], &["t=t", "q1=q1", "q2=q2"]),
        (
            "names of the model, with any other text around them",
            &[
                "Time [ms]",
                "pos_elbow_joint (deg)",
                "elbow_joint velocity",
                "elbow_joint.torque",
                "joint_count",
            ],
            &["elbow_joint", "joint"],
            &[
                "Time [ms]=t ms",
                "pos_elbow_joint (deg)=q.elbow_joint deg",
                "elbow_joint velocity=dq.elbow_joint",
                "elbow_joint.torque=tau.elbow_joint",
            ],
        ),
        (
            "several numbers in a name: the one that differs",
            &["t", "iiwa7_joint_1_pos", "iiwa7_joint_2_pos", "iiwa7_joint_1_torque", "iiwa7_joint_2_torque"],
            &[],
            &[
                "t=t",
                "iiwa7_joint_1_pos=q1",
                "iiwa7_joint_2_pos=q2",
                "iiwa7_joint_1_torque=tau1",
                "iiwa7_joint_2_torque=tau2",
            ],
        ),
        ("one joint", &["time", "position", "torque"], &[], &["time=t", "position=q1", "torque=tau1"]),
        ("gaps in the numbers are no group", &["t", "pos_1", "pos_3"], &[], &["t=t"]),
    ];
    for (what, names, joints, expected) in cases {
        assert_eq!(taken(names, joints), expected, "{what}");
    }
}

#[test]
fn unused_columns_have_a_reason() {
    let names = ["time", "q_meas_1", "q_filt_1", "i_act_cur_1", "comment"].map(String::from);
    let found = Recognition::of(&names, &[]);
    let reason = |k: usize| found.columns()[k].reason.as_str();
    assert!(reason(2).contains("another column matches q better"), "{}", reason(2));
    assert!(reason(3).contains("a current"), "{}", reason(3));
    assert!(reason(4).contains("matches no known quantity"), "{}", reason(4));
    assert!(found.advice().unwrap().contains("are currents"), "{found:?}");
    assert!(
        found.map().contains("# tau = { column = \"i_act_cur_{i}\", unit = \"A\", scale = [1.0] }"),
        "{}",
        found.map()
    );
    // Of two candidates with the same weight, the user must choose.
    let names = ["t", "left_q_1", "right_q_1"].map(String::from);
    let found = Recognition::of(&names, &[]);
    assert!(found.advice().unwrap().contains("may both be q"), "{found:?}");
    assert!(found.columns()[1].target.is_none());
}

/// Units that a name states are converted, or the column is not used.
#[test]
fn stated_units_are_converted_or_refused() {
    for (names, joints, expected) in [
        (
            &["t", "tau1 [Nmm]", "tau2 [Nmm]"][..],
            &[][..],
            &["t=t", "tau1 [Nmm]=tau1 Nmm", "tau2 [Nmm]=tau2 Nmm"][..],
        ),
        (&["t", "q1 [in]", "tau1 (N)"], &[], &["t=t", "q1 [in]=q1 in", "tau1 (N)=tau1"]),
        (&["t", "q1 [turns]", "q2 [turns]"], &[], &["t=t", "q1 [turns]=q1 rev", "q2 [turns]=q2 rev"]),
        (&["t", "q1", "q2 [gon]"], &[], &["t=t", "q1=q1", "q2 [gon]=q2 gon"]),
        (&["t", "q_deg_0", "q_deg_1"], &[], &["t=t", "q_deg_0=q1 deg", "q_deg_1=q2 deg"]),
        (
            &["t", "J1_pos_deg", "J2_pos_deg", "J1_vel_deg_s", "J2_vel_deg_s"],
            &[],
            &[
                "t=t",
                "J1_pos_deg=q1 deg",
                "J2_pos_deg=q2 deg",
                "J1_vel_deg_s=dq1 deg/s",
                "J2_vel_deg_s=dq2 deg/s",
            ],
        ),
        (
            &["t", "joint_1_deg", "joint_2_deg", "joint_1_Nmm", "joint_2_Nmm", "motor_temp_1_deg"],
            &[],
            &[
                "t=t",
                "joint_1_deg=q1 deg",
                "joint_2_deg=q2 deg",
                "joint_1_Nmm=tau1 Nmm",
                "joint_2_Nmm=tau2 Nmm",
            ],
        ),
        (&["t", "q.elbow [deg]", "tau.elbow [A]"], &["elbow"], &["t=t", "q.elbow [deg]=q.elbow deg"]),
        (&["t", "q.elbow", "tau.elbow [%]"], &["elbow"], &["t=t", "q.elbow=q.elbow"]),
        (&["t", "q1", "tau1 [A]", "q2", "tau2"], &[], &["t=t", "q1=q1", "q2=q2", "tau2=tau2"]),
        // Texts in brackets that are no units.
        (&["t", "position[0]", "position[1]"], &[], &["t=t", "position[0]=q1", "position[1]=q2"]),
        (&["t", "tau1 (measured)", "q1(t)"], &[], &["t=t", "tau1 (measured)=tau1", "q1(t)=q1"]),
        (
            &["t", "effort[elbow]", "effort[hip]"],
            &["elbow", "hip"],
            &["t=t", "effort[elbow]=tau.elbow", "effort[hip]=tau.hip"],
        ),
        (&["t", "q.arm (left)"], &["arm (left)"], &["t=t", "q.arm (left)=q.arm (left)"]),
        (&["t", "Position J1 [deg] (filtered)"], &[], &["t=t", "Position J1 [deg] (filtered)=q1 deg"]),
    ] {
        assert_eq!(taken(names, joints), expected, "{names:?}");
    }
    for (stated, reason) in [
        ("%", "in % of a value that the log does not give"),
        ("percent", "in percent of a value that the log does not give"),
        ("kg.m", "kg.m is not a known unit"),
        ("V", "V is not a known unit"),
        ("W", "W is not a known unit"),
        ("Hz", "Hz is not a known unit"),
        ("10^-3 Nm", "10^-3 Nm is not a known unit"),
        ("counts", "in counts of the device"),
        ("deg", "deg is not a unit of tau"),
        ("rad/s", "rad/s is not a unit of tau"),
        ("grad", "grad may be degrees (deg) or gon: set the unit in a column map"),
    ] {
        for (open, close) in [('[', ']'), ('(', ')')] {
            let columns = [1, 2].map(|k| format!("tau{k} {open}{stated}{close}"));
            let names = [&["t".to_owned(), "q1".to_owned(), "q2".to_owned()][..], &columns[..]].concat();
            for joints in [&[][..], &["hinge".to_owned(), "deg".to_owned()][..]] {
                let found = Recognition::of(&names, joints);
                for k in [3, 4] {
                    let column = &found.columns()[k];
                    assert!(column.target.is_none() && column.reason.contains(reason), "{column:?}");
                }
                assert!(
                    found.map().contains(&format!("# tau = {{ column = \"tau{{i}} {open}{stated}")),
                    "{found:?}"
                );
            }
        }
    }
    for name in ["torque_percent_0", "torque_per_mille_0", "tau_counts_0", "q_grad_0", "vel_hz_0", "tau_0_%"]
    {
        assert_eq!(taken(&["t", name], &[]), ["t=t"], "{name}");
    }
    // The same quantity in a known unit is preferred.
    assert_eq!(
        taken(&["t", "trq1 [%]", "trq1 [Nm]", "trq2 [%]", "trq2 [Nm]"], &[]),
        ["t=t", "trq1 [Nm]=tau1", "trq2 [Nm]=tau2"]
    );
}

#[test]
fn computed_torques_are_not_measured_ones() {
    for name in [
        "gravity_torque",
        "friction_torque",
        "tau_grav",
        "tau_model",
        "model_torque",
        "tau_id",
        "tau_residual",
        "tau_disturbance",
        "tau_contact",
        "tau_interaction",
        "tau_ext",
        "tau_g",
        "tau_coriolis",
        "tau_ff",
        "qfrc_bias",
        "qfrc_constraint",
        "qfrc_inverse",
    ] {
        let names: Vec<String> = ["t", "q_1", "q_2"]
            .map(String::from)
            .into_iter()
            .chain([1, 2].map(|k| format!("{name}_{k}")))
            .collect();
        let found = Recognition::of(&names, &[]);
        for column in &found.columns()[3..] {
            assert_eq!(column.target, None, "{column:?}");
            assert!(
                name == "tau_ext" || column.reason == "a computed torque, not a measured one",
                "{column:?}"
            );
        }
    }
    for name in ["qfrc_actuator", "tau_est", "tau_meas", "tau_f", "motor_id_{}_torque"] {
        let columns = [1, 2].map(|k| {
            if name.contains("{}") { name.replace("{}", &k.to_string()) } else { format!("{name}_{k}") }
        });
        let names = [&["t".to_owned()][..], &columns].concat();
        let found = Recognition::of(&names, &[]);
        assert_eq!(found.columns()[2].target.as_deref(), Some("tau2"), "{found:?}");
    }
}

/// Names of columns that other programs write.
#[test]
fn further_names_are_recognized() {
    for (names, expected) in [
        (
            &["t", "q01", "q02", "tau01", "tau02"][..],
            &["t=t", "q01=q1", "q02=q2", "tau01=tau1", "tau02=tau2"][..],
        ),
        (&["t", "q00", "q01"], &["t=t", "q00=q1", "q01=q2"]),
        (
            &["Time", "AIPos.A1", "AIPos.A2", "ASPos.A1", "ASPos.A2"],
            &["Time=t", "AIPos.A1=q1 deg", "AIPos.A2=q2 deg"],
        ),
        (
            &[
                "t",
                "axisQMsr_LBR_iiwa_7_R800_1[0]",
                "axisQMsr_LBR_iiwa_7_R800_1[1]",
                "axisQCmd_LBR_iiwa_7_R800_1[0]",
                "axisQCmd_LBR_iiwa_7_R800_1[1]",
                "axisTauMsr_LBR_iiwa_7_R800_1[0]",
                "axisTauMsr_LBR_iiwa_7_R800_1[1]",
                "axisTauExtMsr_LBR_iiwa_7_R800_1[0]",
                "axisTauExtMsr_LBR_iiwa_7_R800_1[1]",
            ],
            &[
                "t=t",
                "axisQMsr_LBR_iiwa_7_R800_1[0]=q1",
                "axisQMsr_LBR_iiwa_7_R800_1[1]=q2",
                "axisTauMsr_LBR_iiwa_7_R800_1[0]=tau1",
                "axisTauMsr_LBR_iiwa_7_R800_1[1]=tau2",
            ],
        ),
        (&["ts", "q1"], &["ts=t", "q1=q1"]),
        (&["utime", "q1"], &["utime=t us", "q1=q1"]),
        (&["time [min]", "q1"], &["time [min]=t min", "q1=q1"]),
        (&["time [msec]", "q1"], &["time [msec]=t ms", "q1=q1"]),
        (&["time_usec", "q1"], &["time_usec=t us", "q1=q1"]),
        // Seconds and nanoseconds of a stamp.
        (&["stamp_sec", "stamp_nsec", "q1"], &["stamp_sec=t", "q1=q1"]),
    ] {
        assert_eq!(taken(names, &[]), expected, "{names:?}");
    }
    let numbers: Vec<String> = (1..=12).map(|k| format!("q{k:02}")).collect();
    let found = Recognition::of(&numbers, &[]);
    let targets: Vec<&str> = found.columns().iter().filter_map(|c| c.target.as_deref()).collect();
    assert_eq!(targets, (1..=12).map(|k| format!("q{k}")).collect::<Vec<_>>());
}

#[test]
fn listed_names_are_the_joints_of_numbers() {
    let columns = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let listed = vec![JointNames::new("field.name{i}", ["b", "a"]).unwrap()];
    let names = columns(&[
        "time",
        "field.name0",
        "field.name1",
        "field.position0",
        "field.position1",
        "field.effort0",
        "field.effort1",
    ]);
    let found = Recognition::with_joint_names(&names, &[], &listed);
    let targets: Vec<_> = found.columns()[3..].iter().map(|c| c.target.as_deref().unwrap()).collect();
    assert_eq!(targets, ["q.b", "q.a", "tau.b", "tau.a"]);
    assert_eq!(found.columns()[1].reason, "names of joints");
    let expected = "like field.position{i} (rostopic echo -p), named by field.name{i}";
    assert_eq!(found.columns()[3].reason, expected);
    assert!(
        found.map().contains("\"q.b\" = \"field.position0\"\n\"q.a\" = \"field.position1\""),
        "{}",
        found.map()
    );
    // Standard names by number, with units.
    let names = columns(&["t", "q1 [deg]", "q2", "tau1", "tau2"]);
    let found = Recognition::with_joint_names(&names, &[], &listed);
    let targets: Vec<_> = found.columns()[1..].iter().map(|c| c.target.as_deref().unwrap()).collect();
    assert_eq!(targets, ["q.b", "q.a", "tau.b", "tau.a"]);
    assert_eq!(found.columns()[1].unit, Some("deg"));
    assert!(found.map().contains("\"q.b\" = { column = \"q1 [deg]\", unit = \"deg\" }"), "{}", found.map());
    // A list of another length names nothing, and a note reports it.
    let names = columns(&["t", "pos_1", "pos_2", "pos_3"]);
    let found = Recognition::with_joint_names(&names, &[], &listed);
    assert_eq!(found.columns()[1].target.as_deref(), Some("q1"));
    let note = "q: 3 columns in the order of the model's joints, because field.name{i} has 2 names";
    assert!(found.renaming.notes.iter().any(|own| own == note), "{:?}", found.renaming.notes);
    // The list of another topic.
    let listed = vec![listed[0].clone().within("/arm.")];
    let names = columns(&["t", "/hand.position[0]", "/hand.position[1]"]);
    assert_eq!(
        Recognition::with_joint_names(&names, &[], &listed).columns()[1].target.as_deref(),
        Some("q1")
    );
}

/// Tests the widest log that is read: the columns of each quantity are one group.
#[test]
fn many_columns_are_recognized() {
    let each = |what: &'static str, count: usize| (0..count).map(move |k| format!("actual_{what}_{k}"));
    let names: Vec<String> =
        ["timestamp".to_owned()].into_iter().chain(each("q", 10_000)).chain(each("qd", 9_999)).collect();
    let found = Recognition::of(&names, &[]);
    let target = |k: usize| found.columns()[k].target.as_deref();
    assert_eq!((names.len(), target(0)), (20_000, Some("t")));
    assert_eq!((target(1), target(10_000)), (Some("q1"), Some("q10000")));
    assert_eq!((target(10_001), target(19_999)), (Some("dq1"), Some("dq9999")));
    assert_eq!(found.map().lines().count(), 4);
}
