//! Designs keep all limits, have the stated quality and do not depend on the number of threads; infeasible limits are reported.

#![allow(clippy::unwrap_used)]

use inertial::dynamics::{InverseDynamics, Samples, Workspace, forward_kinematics};
use inertial::estimation::{Equations, JointTerms};
use inertial::excitation::{
    CollisionModel, Columns, Coordinate, Criterion, DefaultLimits, Design, DesignOptions, Family,
    JointColumn, ModelAggregation, Motion, Profile, Subject, certify, coordinates, design,
};
use inertial::identifiability::{AnalyzeOptions, Measured, analyze};
use inertial::linalg::Cholesky;
use inertial::mechanism::{Base, BuildOptions, DEFAULT_SNAP, JointType, Mechanism, builtin, read};
use nalgebra::{DMatrix, DVector};

fn robot(name: &str) -> Mechanism {
    builtin::get(name).unwrap().build(&BuildOptions::default()).unwrap()
}

fn subject(mechanism: &Mechanism) -> Subject<'_> {
    let moving = |v: &usize| {
        let joint = mechanism.joints().iter().find(|j| j.v_range().contains(v)).unwrap();
        joint.joint_type != JointType::Floating
    };
    let kinds = [JointColumn::Viscous, JointColumn::Coulomb, JointColumn::Offset];
    Subject {
        mechanism,
        regrouping: analyze(mechanism, &AnalyzeOptions::default()).unwrap().regrouping,
        terms: (0..mechanism.nv()).filter(moving).flat_map(|v| kinds.map(|k| (v, k))).collect(),
        noise: vec![0.5; mechanism.nv()],
        effort: vec![f64::INFINITY; mechanism.nv()],
        prior: None,
    }
}

fn quick() -> DesignOptions {
    DesignOptions::default().with(|o| {
        o.family = Family::Fourier { harmonics: 4 };
        o.duration = 4.0;
        o.rate = 25.0;
        o.starts = 2;
        o.iterations = 8;
    })
}

fn run(
    subject: &Subject<'_>,
    limits: &[Coordinate],
    collisions: &CollisionModel,
    options: &DesignOptions,
) -> Design {
    design(std::slice::from_ref(subject), limits, collisions, options, &|_| true).unwrap()
}

fn refused(
    subject: &Subject<'_>,
    limits: &[Coordinate],
    collisions: &CollisionModel,
    options: &DesignOptions,
) -> String {
    design(std::slice::from_ref(subject), limits, collisions, options, &|_| true).unwrap_err().to_string()
}

/// Checks every limit at 1 kHz, from the trajectory alone.
fn assert_within(found: &Design, mechanism: &Mechanism, limits: &[Coordinate], effort: &[f64]) {
    let t = &found.trajectory;
    let n = t.joints().len();
    let (mut q, mut v, mut a) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    for i in 0..t.samples(1000.0).unwrap() {
        t.evaluate(i as f64 / 1000.0, &mut q, &mut v, &mut a);
        for (j, name) in t.joints().iter().enumerate() {
            let c = limits.iter().find(|c| c.name == *name).unwrap();
            assert!(q[j] >= c.lower && q[j] <= c.upper && v[j].abs() <= c.velocity, "{name} at {i} ms");
            assert!(a[j].abs() <= c.acceleration, "{name} at {i} ms");
        }
        if i == 0 || i + 1 == t.samples(1000.0).unwrap() {
            assert!(v.iter().all(|v| v.abs() < 1e-10) && a.iter().all(|a| a.abs() < 1e-8));
        }
    }
    let [q, v, a] = Motion::new(mechanism, t).unwrap().sample(1000.0).unwrap();
    let dynamics = InverseDynamics::new(mechanism);
    let mut tau = vec![0.0; v.len()];
    let samples = Samples::new(&dynamics, v.len() / mechanism.nv(), &q, &v, &a).unwrap();
    dynamics.rnea_batch(&mut dynamics.scratch(), &samples, &mut tau).unwrap();
    for (tau, effort) in tau.iter().zip(effort.iter().cycle()) {
        assert!(tau.abs() <= *effort, "{tau} {effort}");
    }
}

#[test]
fn designs_stay_within_limits_and_reach_the_structural_rank() {
    let puma = robot("puma560");
    let limits = coordinates(&puma, &DefaultLimits::default());
    let mut subject = subject(&puma);
    // Sufficient to hold the arm, but not for fast motions.
    subject.effort = vec![120.0, 120.0, 60.0, 10.0, 10.0, 10.0];
    for family in [
        Family::Fourier { harmonics: 4 },
        Family::Spline { points: 12 },
        Family::VelocityKnots { intervals: 8 },
        Family::PointToPoint { intervals: 8, profile: Profile::Cycloid },
    ] {
        let found = run(&subject, &limits, &CollisionModel::default(), &quick().with(|o| o.family = family));
        assert_eq!((found.certificate.rank, found.certificate.structural_rank), (36, 36), "{family:?}");
        assert_eq!(found.certificate.excited, found.certificate.unknowns);
        assert_within(&found, &puma, &limits, &subject.effort);
        // The written motion is the certified one.
        let again = certify(&subject, &found.trajectory, 25.0).unwrap();
        let errors = |c: &inertial::excitation::Certificate| -> Vec<f64> {
            c.base_parameters.iter().map(|e| e.std_error).collect()
        };
        for (a, b) in errors(&found.certificate).iter().zip(errors(&again)) {
            assert!((a - b).abs() < 1e-6 * a, "{family:?} {a} {b}");
        }
    }
}

#[test]
fn the_search_improves_and_does_not_depend_on_threads() {
    let arm = robot("planar-2r");
    let (subject, limits) = (subject(&arm), coordinates(&arm, &DefaultLimits::default()));
    let start = quick().with(|o| o.iterations = 0);
    let long = quick().with(|o| o.iterations = 40);
    let before = run(&subject, &limits, &CollisionModel::default(), &start);
    for criterion in [Criterion::D, Criterion::CramerRao, Criterion::E, Criterion::ScaledCondition] {
        let of = |o: &DesignOptions| {
            run(&subject, &limits, &CollisionModel::default(), &o.clone().with(|o| o.criterion = criterion))
                .criterion
        };
        // A decrease of 0.1 in the logarithm is 10 % of the standard errors, or of the condition number.
        assert!(of(&long) < of(&start) - 0.1, "{criterion:?} {} {}", of(&start), of(&long));
    }
    assert_eq!(before.searches.len(), 2);
    let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    let one = pool(1).install(|| run(&subject, &limits, &CollisionModel::default(), &long));
    let three = pool(3).install(|| run(&subject, &limits, &CollisionModel::default(), &long));
    assert_eq!(one.trajectory, three.trajectory);
    let other = run(&subject, &limits, &CollisionModel::default(), &long.with(|o| o.seed = 2));
    assert_ne!(one.trajectory, other.trajectory);
}

/// Expected standard errors agree with simulated least-squares experiments that use the regressor directly.
#[test]
fn expected_errors_are_those_of_simulated_experiments() {
    let puma = robot("puma560");
    let mut subject = subject(&puma);
    subject.terms.clear();
    let limits = coordinates(&puma, &DefaultLimits::default());
    let found = run(&subject, &limits, &CollisionModel::default(), &quick());
    let [q, v, a] = Motion::new(&puma, &found.trajectory).unwrap().sample(25.0).unwrap();
    let (nv, np) = (puma.nv(), puma.parameter_count());
    let count = v.len() / nv;
    let dynamics = InverseDynamics::new(&puma);
    let mut y = vec![0.0; count * nv * np];
    let samples = Samples::new(&dynamics, count, &q, &v, &a).unwrap();
    dynamics.stacked_regressor(&samples, &mut y).unwrap();
    let base = &subject.regrouping.base;
    let y = DMatrix::from_fn(count * nv, base.len(), |i, j| y[i * np + base[j]]);
    let normal = Cholesky::new(&(y.transpose() * &y)).unwrap();
    let mut state = 9u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    let experiments = 400;
    let mut squares = DVector::zeros(base.len());
    for _ in 0..experiments {
        // Normal numbers by the Box-Muller transform, with the noise of the subject.
        let noise = DVector::from_fn(count * nv, |_, _| {
            0.5 * (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
        });
        let error = normal.solve(&(y.transpose() * noise)).unwrap();
        squares += error.component_mul(&error);
    }
    for (expected, square) in found.certificate.base_parameters.iter().zip(squares.iter()) {
        let seen = (square / f64::from(experiments)).sqrt();
        // 400 draws determine a standard deviation to 3.5 %; the largest of 36 errors lies within four times that.
        assert!((expected.std_error / seen - 1.0).abs() < 0.14, "{expected:?} {seen}");
    }
}

#[test]
fn the_room_is_respected_at_every_millisecond() {
    let arm = robot("arm7");
    let (subject, limits) = (subject(&arm), coordinates(&arm, &DefaultLimits::default()));
    let capsules = CollisionModel::along_links(&arm, 0.04);
    let pairs = CollisionModel::candidate_pairs(&arm, &capsules);
    let free = run(&subject, &limits, &CollisionModel::default(), &quick());
    let lowest = |found: &Design| {
        let [q, ..] = Motion::new(&arm, &found.trajectory).unwrap().sample(1000.0).unwrap();
        let mut workspace = Workspace::new(&arm);
        let mut lowest = f64::INFINITY;
        for q in q.chunks_exact(arm.nq()) {
            forward_kinematics(&arm, &mut workspace, q).unwrap();
            for c in &capsules {
                for end in c.ends {
                    let point = c.body.map_or(end, |b| workspace.poses()[b].transform_point(&end));
                    lowest = lowest.min(point.z - c.radius);
                }
            }
        }
        lowest
    };
    // A floor that the unrestricted motion would hit.
    let ground = lowest(&free) + 0.1;
    let collisions = CollisionModel::default().with(|r| {
        r.capsules = capsules.clone();
        r.pairs = pairs;
        r.ground = Some(ground);
    });
    let found = run(&subject, &limits, &collisions, &quick());
    assert!(lowest(&found) >= ground, "{} {ground}", lowest(&found));
    assert_eq!(found.certificate.rank, found.certificate.structural_rank);
    let impossible = collisions.with(|r| r.ground = Some(10.0));
    let message = refused(&subject, &limits, &impossible, &quick());
    assert!(
        message.contains("the limits allow no posture") && message.contains("the ground below"),
        "{message}"
    );
}

#[test]
fn designs_use_the_information_of_earlier_logs() {
    let arm = robot("planar-2r");
    let mut subject = subject(&arm);
    let limits = coordinates(&arm, &DefaultLimits::default());
    let options = quick().with(|o| {
        o.criterion = Criterion::CramerRao;
        o.iterations = 40;
    });
    let before = run(&subject, &limits, &CollisionModel::default(), &options);
    let n = before.certificate.unknowns;
    // All unknowns except the first have a strong prior.
    let known = DMatrix::from_fn(n, n, |i, j| if i == j && i > 0 { 1e8 } else { 0.0 });
    subject.prior = Some(known);
    let after = run(&subject, &limits, &CollisionModel::default(), &options);
    let first = |d: &Design| d.certificate.base_parameters[0].std_error;
    assert!(first(&after) < 0.9 * first(&before), "{} {}", first(&after), first(&before));
    assert!(after.certificate.joint_terms.iter().all(|e| e.std_error <= 1e-4 * 1.0001));
}

#[test]
fn criteria_of_several_models_are_combined() {
    let arm = robot("planar-2r");
    let mut longer = builtin::get("planar-2r").unwrap();
    longer.joints[1].origin.translation *= 1.5;
    let longer = longer.build(&BuildOptions::default()).unwrap();
    let limits = coordinates(&arm, &DefaultLimits::default());
    let both = [subject(&arm), subject(&longer)];
    for robust in [ModelAggregation::Mean, ModelAggregation::Worst] {
        let options = quick().with(|o| o.robust = robust);
        let found = design(&both, &limits, &CollisionModel::default(), &options, &|_| true).unwrap();
        assert_eq!(found.certificate.rank, found.certificate.structural_rank);
    }
    let other = robot("scara");
    let wrong = [subject(&arm), subject(&other)];
    let message =
        design(&wrong, &limits, &CollisionModel::default(), &quick(), &|_| true).unwrap_err().to_string();
    assert!(message.contains("has other joints"), "{message}");
}

#[test]
fn only_a_moving_floating_base_excites_all_parameters() {
    let options = BuildOptions::default().with(|o| o.base = Some(Base::Floating));
    let robot = builtin::get("quadruped").unwrap().build(&options).unwrap();
    let analysis = analyze(&robot, &AnalyzeOptions::default().with(|o| o.measured = Some(Measured::Both)));
    let mut subject = subject(&robot);
    subject.terms.clear();
    subject.regrouping = analysis.unwrap().regrouping;
    let held = coordinates(&robot, &DefaultLimits::default());
    let message = refused(&subject, &held, &CollisionModel::default(), &quick());
    assert!(
        message.starts_with("no motion within the limits excites")
            && message.contains("unknowns: combinations of"),
        "{message}"
    );
    let limits = coordinates(&robot, &DefaultLimits::default().with(|l| l.base = Some([0.1, 0.4])));
    let options = quick().with(|o| {
        o.iterations = 2;
        o.starts = 1;
    });
    let found = run(&subject, &limits, &CollisionModel::default(), &options);
    assert_eq!(found.certificate.rank, found.certificate.structural_rank);
    assert_within(&found, &robot, &limits, &subject.effort);
}

#[test]
fn limits_without_any_motion_are_refused() {
    let arm = robot("planar-2r");
    let subject = subject(&arm);
    let limits = coordinates(&arm, &DefaultLimits::default());
    let with = |change: fn(&mut Coordinate)| {
        let mut limits = limits.clone();
        limits.iter_mut().for_each(change);
        limits
    };
    let collisions = CollisionModel::default();
    let still = with(|c| (c.lower, c.upper) = (0.3, 0.3));
    assert!(refused(&subject, &still, &collisions, &quick()).starts_with("the limits allow no motion: "));
    let frozen = with(|c| c.velocity = 0.0);
    assert!(refused(&subject, &frozen, &collisions, &quick()).starts_with("the limits allow no motion: "));
    let mut one = limits.clone();
    (one[1].lower, one[1].upper) = (0.5, 0.5);
    let message = refused(&subject, &one, &collisions, &quick());
    assert!(message.starts_with("no motion within the limits excites"), "{message}");
    let crossed = with(|c| (c.lower, c.upper) = (1.0, -1.0));
    assert!(refused(&subject, &crossed, &collisions, &quick()).contains("leave no position"));
    let options = quick().with(|o| o.start = Some(vec![0.0, 9.0]));
    let tight = with(|c| (c.lower, c.upper) = (-1.0, 1.0));
    let message = refused(&subject, &tight, &collisions, &options);
    assert!(message.contains("the start of") && message.contains("outside of its limits"), "{message}");
    let options = quick().with(|o| o.start = Some(vec![0.2, -0.3]));
    let found = run(&subject, &tight, &collisions, &options);
    let (mut q, mut v, mut a) = ([0.0; 2], [0.0; 2], [0.0; 2]);
    found.trajectory.evaluate(0.0, &mut q, &mut v, &mut a);
    assert!((q[0] - 0.2).abs() < 1e-12 && (q[1] + 0.3).abs() < 1e-12, "{q:?}");
    let mut weak = subject.clone();
    weak.effort = vec![1e-3; 2];
    let message = refused(&weak, &limits, &collisions, &quick());
    assert!(message.contains("the torque of"), "{message}");
    for duration in [0.0, -1.0, f64::NAN, 1e9] {
        assert!(
            refused(&subject, &limits, &collisions, &quick().with(|o| o.duration = duration))
                .contains("duration")
        );
    }
    let flat = quick().with(|o| o.family = Family::Fourier { harmonics: 1 });
    assert!(
        refused(&subject, &limits, &collisions, &flat).contains("the trajectory has no free coefficients")
    );
    let four_bar = robot("four-bar");
    let several = [Subject { mechanism: &four_bar, ..subject.clone() }, subject.clone()];
    let message = design(&several, &limits, &collisions, &quick(), &|_| true).unwrap_err().to_string();
    assert!(message.contains("has loops"), "{message}");
    // Noise and forces of another robot.
    let own = coordinates(&four_bar, &DefaultLimits::default());
    let message = refused(&several[0], &own, &collisions, &quick());
    assert!(message.contains("noise"), "{message}");
}

#[test]
fn an_interrupted_search_keeps_its_best() {
    let arm = robot("planar-2r");
    let (subject, limits) = (subject(&arm), coordinates(&arm, &DefaultLimits::default()));
    let options = quick().with(|o| {
        o.starts = 1;
        o.iterations = 40;
    });
    let best = std::sync::Mutex::new(Vec::new());
    let watch = |p: inertial::excitation::Progress| {
        let mut best = best.lock().unwrap();
        // The search also asks within its steps.
        if p.steps > best.len() {
            best.push(p.best);
        }
        p.steps < 5
    };
    let found = design(&[subject], &limits, &CollisionModel::default(), &options, &watch).unwrap();
    let best = best.into_inner().unwrap();
    assert_eq!(best.len(), 5);
    // The final check may have reduced the motion slightly.
    assert!(found.criterion < best[0] + 1e-9 && found.criterion < best[4] + 0.01);
}

/// Tests that a search is asked within a step, ends without taking another one, and still returns a motion within the limits.
#[test]
fn a_search_stops_within_a_step() {
    let arm = robot("planar-2r");
    let (subject, limits) = (subject(&arm), coordinates(&arm, &DefaultLimits::default()));
    for (starts, last) in [(1, 1), (1, 20), (4, 1), (4, 50)] {
        let options = quick().with(|o| {
            o.starts = starts;
            o.iterations = 40;
        });
        let calls = std::sync::Mutex::new((0, 0));
        let watch = |p: inertial::excitation::Progress| {
            let mut calls = calls.lock().unwrap();
            *calls = (calls.0 + 1, p.steps);
            calls.0 < last
        };
        let found =
            design(std::slice::from_ref(&subject), &limits, &CollisionModel::default(), &options, &watch)
                .unwrap();
        let (calls, steps) = calls.into_inner().unwrap();
        // After the stop, each search ends its step.
        assert!(calls <= last + 2 * starts && steps < last.max(2 * starts), "{calls} {steps}");
        assert!(found.criterion.is_finite() && found.usage.iter().all(|u| u.used <= 1.0));
        assert!(!found.converged);
    }
}

/// Returns a chain of revolute joints.
fn chain(joints: usize) -> Mechanism {
    use std::fmt::Write as _;
    let mut text = String::from("<robot name=\"c\"><link name=\"l0\"/>");
    for i in 1..=joints {
        let _ = write!(
            text,
            r#"<link name="l{i}"><inertial><origin xyz="0.1 0.01 0.02"/><mass value="1"/>
            <inertia ixx="0.01" iyy="0.011" izz="0.012" ixy="0" ixz="0" iyz="0"/></inertial></link>
            <joint name="j{i}" type="revolute"><parent link="l{}"/><child link="l{i}"/>
            <origin xyz="0.2 0 0.1" rpy="0.3 0.2 {}"/><axis xyz="{} {} 1"/>
            <limit lower="-1" upper="1" effort="10" velocity="2"/></joint>"#,
            i - 1,
            0.2 * (i % 7) as f64,
            i % 3,
            i % 2
        );
    }
    read::urdf::read(&(text + "</robot>")).unwrap().build(&BuildOptions::default()).unwrap()
}

/// Tests that the size of a design is checked before its memory is allocated.
#[test]
fn designs_of_large_robots_are_refused() {
    let large = chain(80);
    let (own, limits) = (subject(&large), coordinates(&large, &DefaultLimits::default()));
    let message = refused(&own, &limits, &CollisionModel::default(), &quick());
    assert!(message.contains("takes too long") || message.contains("too large for this design"), "{message}");
    let arm = robot("planar-2r");
    let (subject, limits) = (subject(&arm), coordinates(&arm, &DefaultLimits::default()));
    // Two coordinates with about two functions for each harmonic.
    let many = quick().with(|o| (o.family, o.starts) = (Family::Fourier { harmonics: 500 }, 100));
    let message = refused(&subject, &limits, &CollisionModel::default(), &many);
    assert!(message.contains("too many variables"), "{message}");
    let long =
        quick().with(|o| (o.duration, o.rate, o.family) = (3600.0, 50.0, Family::Fourier { harmonics: 500 }));
    let message = refused(&subject, &limits, &CollisionModel::default(), &long);
    assert!(message.contains("the motion is too long"), "{message}");
}

#[test]
fn collision_shapes_become_capsules() {
    let urdf = r#"<robot name="r"><link name="base"><collision><geometry><box size="0.2 0.4 0.1"/></geometry></collision></link>
      <link name="a"><collision><origin xyz="0 0 0.5"/><geometry><cylinder radius="0.1" length="1"/></geometry></collision>
        <collision><geometry><mesh filename="x.stl"/></geometry></collision></link>
      <link name="b"><collision><origin xyz="0.1 0 0"/><geometry><sphere radius="0.05"/></geometry></collision></link>
      <joint name="j" type="continuous"><parent link="base"/><child link="a"/></joint>
      <joint name="k" type="continuous"><origin xyz="0 0 1"/><parent link="a"/><child link="b"/></joint></robot>"#;
    let robot = read::urdf::read(urdf).unwrap().build(&BuildOptions::default()).unwrap();
    let capsules = CollisionModel::shapes(&robot);
    assert_eq!(capsules.len(), 3);
    assert_eq!((capsules[0].body, capsules[1].body, capsules[2].body), (None, Some(0), Some(1)));
    // Capsule of the box: along y, with half the diagonal of its other edges as radius. Capsule of the cylinder: from 0 to 1
    // along z.
    assert!(
        (capsules[0].ends[1].y - 0.2).abs() < 1e-15
            && (capsules[0].radius - 0.5 * 0.2f64.hypot(0.1)).abs() < 1e-15
    );
    assert!((capsules[1].ends[0].z).abs() < 1e-15 && (capsules[1].ends[1].z - 1.0).abs() < 1e-15);
    assert_eq!(capsules[2].ends[0], capsules[2].ends[1]);
    // Neighbouring links touch by design; only base and b can collide.
    assert_eq!(CollisionModel::candidate_pairs(&robot, &capsules), [(0, 2)]);
}

/// A rotor that is equivalent to an inertia of its link is not a separate unknown, as in identification.
#[test]
fn rotors_that_count_as_links_are_those_of_identification() {
    for name in ["planar-2r", "scara", "puma560", "arm7"] {
        let robot = robot(name);
        let terms = JointTerms::default().with(|t| t.rotor_inertia = true);
        let equations = Equations::new(&robot, terms, DEFAULT_SNAP).unwrap();
        let names = robot.velocity_names();
        let mut expected: Vec<String> =
            equations.absorbed.iter().map(|(v, _)| format!("{}.rotor_inertia", names[*v])).collect();
        let all: Vec<_> = (0..robot.nv()).map(|v| (v, JointColumn::RotorInertia)).collect();
        let regrouping = subject(&robot).regrouping;
        let dynamics = InverseDynamics::new(&robot);
        let columns = Columns::new(&robot, &dynamics, &regrouping, &all, &vec![1.0; robot.nv()]).unwrap();
        let mut found = columns.absorbed.clone();
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{name}");
    }
}
