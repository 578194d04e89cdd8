//! Trajectories: derivatives, rest at both ends, and output files.

#![allow(clippy::unwrap_used)]

use inertial::excitation::{BASE_COORDINATES, Basis, Motion, Profile, Trajectory};
use inertial::linalg::singular_values;
use inertial::mechanism::{Base, BuildOptions, builtin};
use nalgebra::DMatrix;

/// Returns a generator of pseudo-random numbers in (−1, 1).
fn numbers(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64) / ((1u64 << 52) as f64) - 1.0
    }
}

/// Returns each family of trajectories over four seconds.
fn bases() -> Vec<Basis> {
    let knots = vec![0.0, 0.7, 1.5, 1.9, 3.0, 4.0];
    vec![
        Basis::Fourier { period: 4.0, harmonics: 3 },
        Basis::Fourier { period: 2.0, harmonics: 5 },
        Basis::Spline { degree: 3, duration: 4.0, points: 9 },
        Basis::Spline { degree: 5, duration: 4.0, points: 12 },
        Basis::Spline { degree: 7, duration: 4.0, points: 8 },
        Basis::VelocityKnots { knots: knots.clone() },
        Basis::PointToPoint { knots: knots.clone(), profile: Profile::Cycloid },
        Basis::PointToPoint { knots, profile: Profile::Quintic },
    ]
}

/// Returns a random combination that is at rest at both ends.
fn resting(basis: &Basis, seed: u64) -> Trajectory {
    let mut next = numbers(seed);
    let rows = basis.at_rest();
    let factors: Vec<f64> = rows.iter().map(|_| next()).collect();
    let coefficients =
        (0..basis.len()).map(|k| rows.iter().zip(&factors).map(|(r, f)| f * r[k]).sum()).collect();
    Trajectory::new(vec!["a".into()], 4.0, basis.clone(), &[coefficients]).unwrap()
}

fn at(trajectory: &Trajectory, t: f64) -> [f64; 3] {
    let (mut q, mut v, mut a) = ([0.0], [0.0], [0.0]);
    trajectory.evaluate(t, &mut q, &mut v, &mut a);
    [q[0], v[0], a[0]]
}

#[test]
fn derivatives_are_those_of_finite_differences() {
    for (i, basis) in bases().iter().enumerate() {
        let mut next = numbers(i as u64 + 1);
        let coefficients = (0..basis.len()).map(|_| next()).collect();
        let trajectory = Trajectory::new(vec!["a".into()], 4.0, basis.clone(), &[coefficients]).unwrap();
        let h = 1e-5;
        for k in 0..200 {
            // Away from the knots, where third derivatives jump.
            let t = 0.0137 + 0.01986 * f64::from(k);
            let [_, v, a] = at(&trajectory, t);
            let ([q0, v0, _], [q1, v1, _]) = (at(&trajectory, t - h), at(&trajectory, t + h));
            // Central differences have an error of h²/6 times the third derivative, here at most some thousands.
            assert!(((q1 - q0) / (2.0 * h) - v).abs() < 1e-6, "{basis:?} at {t}");
            assert!(((v1 - v0) / (2.0 * h) - a).abs() < 1e-4, "{basis:?} at {t}");
        }
    }
}

#[test]
fn motions_at_rest_start_and_end_at_rest_and_are_all_of_them() {
    for (i, basis) in bases().iter().enumerate() {
        let trajectory = resting(basis, 7 + i as u64);
        for t in [0.0, 4.0] {
            let [_, v, a] = at(&trajectory, t);
            assert!(v.abs() < 1e-11 && a.abs() < 1e-9, "{basis:?} at {t}: {v} {a}");
        }
        let rows = basis.at_rest();
        // Only the first factor affects the start position.
        for (k, row) in rows.iter().enumerate() {
            let one =
                Trajectory::new(vec!["a".into()], 4.0, basis.clone(), std::slice::from_ref(row)).unwrap();
            assert!((at(&one, 0.0)[0] - f64::from(u8::from(k == 0))).abs() < 1e-12);
        }
        let rank = |m: &DMatrix<f64>| singular_values(m).unwrap().iter().filter(|s| **s > 1e-9).count();
        let basis_rows = DMatrix::from_fn(rows.len(), basis.len(), |r, c| rows[r][c]);
        assert_eq!(rank(&basis_rows), rows.len());
        // The number of conditions is the rank of velocity and acceleration at both ends.
        let mut conditions = DMatrix::zeros(4, basis.len());
        for (row, t) in [0.0, 4.0].into_iter().enumerate() {
            basis.visit(t, |k, [_, v, a]| {
                (conditions[(2 * row, k)], conditions[(2 * row + 1, k)]) = (v, a);
            });
        }
        assert_eq!(rows.len(), basis.len() - rank(&conditions), "{basis:?}");
    }
}

#[test]
fn pieces_join_without_a_jump_of_velocity() {
    for basis in bases() {
        let trajectory = resting(&basis, 3);
        for t in [0.7, 1.5, 1.9, 3.0, 4.0 / 6.0, 2.0] {
            let (before, after) = (at(&trajectory, t - 1e-9), at(&trajectory, t + 1e-9));
            for k in 0..3 {
                // Accelerations are continuous too; over 2e-9 s they change by the third derivative times this interval.
                assert!((before[k] - after[k]).abs() < 1e-5, "{basis:?} at {t}");
            }
        }
    }
}

#[test]
fn seeds_make_the_intervals_of_the_paper() {
    let directions = vec![vec![1.0, 1.0], vec![-1.0, 1.0], vec![1.0, -1.0]];
    let t = Trajectory::from_seeds(vec!["a".into(), "b".into()], 2.0, &[0.1, -0.2], &[0.5, 0.3], &directions)
        .unwrap();
    let (mut q, mut v, mut a) = ([0.0; 2], [0.0; 2], [0.0; 2]);
    t.evaluate(2.7, &mut q, &mut v, &mut a);
    // Eqs 28 and 29 in the second interval, 0.7 s after it began.
    let phase = std::f64::consts::TAU * 0.7 / 2.0;
    let expected = |from: f64, to: f64| {
        let rate = (to - from) / 2.0;
        (
            from + rate * (0.7 - 2.0 / std::f64::consts::TAU * phase.sin()),
            rate * (1.0 - phase.cos()),
            rate * phase.sin() * std::f64::consts::TAU / 2.0,
        )
    };
    for (j, (from, to)) in [(0.6, 0.1), (0.1, 0.4)].into_iter().enumerate() {
        let (p, r, s) = expected(from, to);
        assert!((q[j] - p).abs() < 1e-14 && (v[j] - r).abs() < 1e-14 && (a[j] - s).abs() < 1e-13);
    }
}

#[test]
fn trajectory_files_are_read_back_unchanged() {
    for basis in bases() {
        let trajectory = resting(&basis, 11);
        assert_eq!(Trajectory::read(&trajectory.to_json()).unwrap(), trajectory);
        assert_eq!(Trajectory::read(&trajectory.to_toml()).unwrap(), trajectory);
        let csv = trajectory.to_csv(50.0).unwrap();
        let mut lines = csv.lines();
        assert_eq!(lines.next().unwrap(), "t,q.a,dq.a,ddq.a");
        assert_eq!(lines.clone().count(), 201);
        let last: Vec<f64> = lines.last().unwrap().split(',').map(|x| x.parse().unwrap()).collect();
        assert_eq!(last, [&[4.0][..], &at(&trajectory, 4.0)].concat());
        let yaml = trajectory.to_ros_yaml(50.0).unwrap();
        assert_eq!(yaml.matches("time_from_start").count(), 201);
        assert!(yaml.contains("joint_names:\n- 'a'\npoints:\n- positions: ["));
        assert!(yaml.ends_with("    sec: 4\n    nanosec: 0\n"));
    }
}

#[test]
fn invalid_trajectory_files_are_refused() {
    let good = resting(&bases()[0], 1).to_json();
    let cases = [
        ("\"duration\": 4.0", "\"duration\": -1", "the duration is -1 s"),
        ("\"duration\": 4.0", "\"duration\": 1e9", "at most a day"),
        ("trajectory/1", "trajectory/9", "expected \"inertial/trajectory/1\""),
        ("\"harmonics\": 3", "\"harmonics\": 4", "\"a\" has 7 coefficients, expected 9"),
        ("\"period\": 4.0", "\"period\": 0", "the period is 0"),
        ("\"fourier\"", "\"sine\"", "unknown variant `sine`"),
    ];
    for (from, to, expected) in cases {
        assert!(good.contains(from), "{good}");
        let message = Trajectory::read(&good.replace(from, to)).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains('\n'));
    }
    assert!(Trajectory::read("").is_err() && Trajectory::read("{").is_err());
    assert!(resting(&bases()[0], 1).samples(0.0).is_err() && resting(&bases()[0], 1).samples(1e12).is_err());
}

#[test]
fn motions_of_a_floating_base_follow_its_coordinates() {
    let options = BuildOptions::default().with(|o| o.base = Some(Base::Floating));
    let robot = builtin::get("quadruped").unwrap().build(&options).unwrap();
    let joint = robot.joints().iter().find(|j| j.joint_type.nv() == 1).unwrap();
    let names: Vec<String> =
        BASE_COORDINATES.iter().map(ToString::to_string).chain([joint.name.clone()]).collect();
    let basis = Basis::Spline { degree: 5, duration: 4.0, points: 10 };
    let mut next = numbers(5);
    let rows: Vec<Vec<f64>> = names.iter().map(|_| (0..10).map(|_| next()).collect()).collect();
    let trajectory = Trajectory::new(names, 4.0, basis, &rows).unwrap();
    let mut motion = Motion::new(&robot, &trajectory).unwrap();
    let mut state = |t: f64| {
        let (mut q, mut v, mut a) = (vec![0.0; robot.nq()], vec![0.0; robot.nv()], vec![0.0; robot.nv()]);
        motion.state(t, &mut q, &mut v, &mut a).unwrap();
        (q, v, a)
    };
    let h = 1e-5;
    for k in 0..20 {
        let t = 0.1 + 0.19 * f64::from(k);
        let ((q0, v0, _), (_, v, a), (q1, v1, _)) = (state(t - h), state(t), state(t + h));
        for joint in robot.joints().iter().filter(|j| j.follows.is_none()) {
            let mut between = vec![0.0; joint.joint_type.nv()];
            joint.joint_type.difference(&q0[joint.q_range()], &q1[joint.q_range()], &mut between);
            for (d, i) in between.iter().zip(joint.v_range()) {
                // Errors of central differences: h² times third derivatives.
                assert!((d / (2.0 * h) - v[i]).abs() < 1e-6);
                assert!(((v1[i] - v0[i]) / (2.0 * h) - a[i]).abs() < 1e-5);
            }
        }
    }
    let other =
        Trajectory::point_to_point(vec!["nose".into()], vec![0.0, 1.0], Profile::Cycloid, &[vec![0.0, 1.0]]);
    let message = Motion::new(&robot, &other.unwrap()).unwrap_err().to_string();
    assert!(message.contains("\"nose\", which is not a joint of the model"), "{message}");
}
