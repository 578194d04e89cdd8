//! Identifiability of mechanisms with loops, compared with independently computed results and with sampled regressors.

#![allow(clippy::unwrap_used)]

use crate::machines;
use std::collections::HashMap;

use crate::common::data::{golden, shared};

use crate::common::Rng;
use crate::loops::{
    by, check_extended, check_null_vectors, check_null_vectors_to, check_sound, explained, mechanism,
    null_space, regressor,
};
use inertial::dynamics::{ClosedMechanism, InverseDynamics, Workspace, forward_kinematics};
use inertial::identifiability::drng::picture;
use inertial::identifiability::{Analysis, AnalyzeOptions, Measured, Method, Regime, analyze};
use inertial::linalg::rank;
use inertial::mechanism::{
    BuildOptions, JointSpec, JointType, Mechanism, RotorModel, builtin, rotation_about,
};
use inertial::spatial::{Inertia, Parameters, Pose};
use nalgebra::{DMatrix, Vector3, vector};
use serde_json::Value;

fn read_golden(file: &str) -> String {
    std::fs::read_to_string(golden(file)).unwrap()
}

#[test]
fn golden_cases_as_ranks_and_as_spans() {
    let truth: Value = serde_json::from_str(&read_golden("loops/truth.json")).unwrap();
    for case in truth["cases"].as_array().unwrap() {
        let name = case["mechanism"].as_str().unwrap();
        let number = |key: &str| case[key].as_u64().unwrap() as usize;
        let g: Vec<f64> = case["gravity"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        let text = read_golden(&format!("loops/{name}.json"));
        let robot = mechanism(&text).with_gravity(Vector3::from_row_slice(&g));
        let label = format!("{name} {g:?}");
        // Open chains among the cases use this method too and must agree with the recursion.
        let answer = analyze(&robot, &by(Method::Drng)).unwrap();
        assert_eq!((answer.rank, answer.nullity), (number("rank"), number("nullity")), "{label}");
        assert_eq!(answer.model.dof, number("dof"), "{label}");
        assert!(answer.certificate.exact, "{label}");
        assert_eq!(answer.base_parameters.len(), answer.rank, "{label}");
        check_null_vectors(&label, &robot, &answer);
        check_sound(&label, &robot);
        // The corrected principles explain at least as many null vectors as the published ones.
        assert!(explained(&answer) >= number("drng_nullity"), "{label}");
        let auto = analyze(&robot, &AnalyzeOptions::default()).unwrap();
        assert_eq!((auto.rank, auto.regrouping.base), (answer.rank, answer.regrouping.base), "{label}");
    }
}

#[test]
fn the_principles_explain_all_but_known_null_vectors() {
    let truth: Value = serde_json::from_str(&read_golden("loops/truth.json")).unwrap();
    for case in truth["cases"].as_array().unwrap() {
        let name = case["mechanism"].as_str().unwrap();
        let g: Vec<f64> = case["gravity"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        let text = read_golden(&format!("loops/{name}.json"));
        let robot = mechanism(&text).with_gravity(Vector3::from_row_slice(&g));
        let answer = analyze(&robot, &by(Method::Drng)).unwrap();
        let missed = answer.nullity - explained(&answer);
        let parallelogram = name.contains("parallelogram");
        assert!(missed <= usize::from(parallelogram), "{name} {g:?}: {missed}");
    }
}

#[test]
fn table_3_of_the_paper() {
    for (name, nullity) in [("puma560", 24), ("2rru-1rrs", 45), ("2prs-1psr", 47)] {
        let robot = builtin::get(name).unwrap().build(&BuildOptions::default()).unwrap();
        let answer = analyze(&robot, &by(Method::Drng)).unwrap();
        assert_eq!((answer.nullity, explained(&answer)), (nullity, nullity), "{name}");
        assert!(answer.certificate.exact);
    }
    let quadruped = builtin::get("quadruped").unwrap();
    let options = BuildOptions::default().with(|o| o.rotors = Some(RotorModel::None));
    let robot = quadruped.build(&options).unwrap();
    let answer = analyze(&robot, &by(Method::Drng)).unwrap();
    assert_eq!((answer.parameters, answer.nullity, explained(&answer)), (130, 36, 36));
}

/// The paper's "43 by the numerical method" is reproduced: with a closure error of 1e-7, two null vectors of the loop joints have
/// residuals that a default tolerance counts as rank.
#[test]
fn loops_not_quite_closed_give_the_paper_its_wrong_43() {
    let robot = builtin::get("2rru-1rrs").unwrap().build(&BuildOptions::default()).unwrap();
    let closed = ClosedMechanism::new(&robot).unwrap();
    let (mut ws, mut rng) = (closed.workspace(), Rng(4));
    let (n, width) = (closed.dof(), robot.parameter_count());
    let mut rank_with = |noise: f64| {
        let mut rows = Vec::new();
        for _ in 0..100 {
            let mut q = closed.assembled().to_vec();
            let target: Vec<f64> =
                closed.independent_positions().iter().map(|&i| q[i] + rng.range(-0.2, 0.2)).collect();
            // Some targets lie outside the workspace, as in the paper.
            if closed.move_to(&mut ws, &mut q, &target).is_err() {
                continue;
            }
            let (v, a) = (rng.values(n, 1.0), rng.values(n, 1.0));
            let (mut tree_v, mut tree_a) = (vec![0.0; robot.nv()], vec![0.0; robot.nv()]);
            closed.accelerations(&mut ws, &q, &v, &a, &mut tree_v, &mut tree_a).unwrap();
            let map = closed.velocity_map(&mut ws, &q).unwrap().clone();
            // Errors of the dependent coordinates due to a solver with a loose tolerance.
            let off: Vec<f64> = (0..robot.nv())
                .map(|k| if closed.independent().contains(&k) { 0.0 } else { rng.range(-noise, noise) })
                .collect();
            robot.integrate(&mut q, &off);
            let dynamics = InverseDynamics::new(&robot);
            let y =
                dynamics.torque_regressor(&mut dynamics.scratch(), &q, &tree_v, &tree_a).unwrap().to_vec();
            let y = map.transpose() * DMatrix::from_row_slice(robot.nv(), width, &y);
            rows.extend(y.row_iter().flat_map(|r| r.iter().copied().collect::<Vec<_>>()));
        }
        let y = DMatrix::from_row_slice(rows.len() / width, width, &rows);
        // Default tolerance of numeric packages: machine epsilon times the larger dimension.
        rank(&y, f64::EPSILON * y.nrows() as f64).unwrap().rank
    };
    assert_eq!(width - rank_with(0.0), 45);
    assert_eq!(width - rank_with(1e-7), 43);
}

/// Returns the null space with the part of each body in the world frame at the assembled configuration, bodies sorted by name.
fn world_null_space(robot: &Mechanism, answer: &Analysis) -> DMatrix<f64> {
    let mut ws = Workspace::new(robot);
    forward_kinematics(robot, &mut ws, robot.assembly()).unwrap();
    let mut names: Vec<(&str, usize)> = robot
        .parameter_blocks()
        .iter()
        .enumerate()
        .map(|(k, b)| (robot.bodies()[b.body].name.as_str(), k))
        .collect();
    names.sort_unstable();
    let null = null_space(answer);
    let mut out = DMatrix::zeros(null.nrows(), null.ncols());
    for (place, &(_, k)) in names.iter().enumerate() {
        let block = &robot.parameter_blocks()[k];
        for c in 0..null.ncols() {
            let own = Parameters::from_iterator(null.view((block.offset, c), (10, 1)).iter().copied());
            let world = Inertia::from_parameters(&own).transformed(&ws.poses()[block.body]).parameters();
            out.view_mut((10 * place, c), (10, 1)).copy_from(&world);
        }
    }
    out
}

#[test]
fn the_answer_does_not_depend_on_the_cut() {
    let mut seen: HashMap<String, DMatrix<f64>> = HashMap::new();
    for (name, robot, _) in machines::all() {
        let Some((ring, _)) = name.split_once(" cut at ") else { continue };
        let answer = analyze(&robot, &by(Method::Drng)).unwrap();
        let null = world_null_space(&robot, &answer);
        match seen.get(ring) {
            None => {
                seen.insert(ring.to_owned(), null);
            }
            Some(first) => {
                let both =
                    DMatrix::from_columns(&first.column_iter().chain(null.column_iter()).collect::<Vec<_>>());
                let together = rank(&both, 1e-8).unwrap();
                assert_eq!(
                    (first.ncols(), together.rank),
                    (null.ncols(), null.ncols()),
                    "{name}: {together:?}"
                );
            }
        }
    }
}

/// Returns mechanisms in singular configurations where motions meet, with the ranks of these motions; the one to be followed is
/// first.
fn forks() -> Vec<(machines::Web, Vec<usize>)> {
    let rng = &mut Rng(77);
    let revolute = |axis: Vector3<f64>| JointType::Revolute { axis };
    let flat = |x: f64| machines::at(x, 0.0, 0.1);
    let mut out = Vec::new();
    let mut web = |name: &str, ranks: &[usize], joints: &[(&str, &str, JointType, Pose<f64>)]| {
        out.push((machines::Web::new(name, rng, joints), ranks.to_vec()));
    };
    let mut ring = |name: &str, ranks: &[usize], joints: [(JointType, Pose<f64>); 4]| {
        let bodies = ["ground", "crank", "coupler", "rocker", "ground"];
        let joints: Vec<_> =
            joints.iter().zip(bodies.windows(2)).map(|((t, p), b)| (b[0], b[1], *t, *p)).collect();
        web(name, ranks, &joints);
    };
    // Two equal sides coincide: the other two turn as one body, or the kite opens.
    ring("folded kite", &[8, 3], [0.0, 0.5, 0.8, 0.5].map(|x| (machines::HINGE, flat(x))));
    ring("flat parallelogram", &[3, 8], [0.0, 0.3, 1.1, 0.8].map(|x| (machines::HINGE, flat(x))));
    ring("stretched rhombus", &[3, 3], [0.0, 0.3, 0.6, 0.3].map(|x| (machines::HINGE, flat(x))));
    // All sides coincide: they turn in pairs, in one of two ways that differ only in the names of the bodies.
    ring("folded rhombus", &[3, 3], [0.0, 0.3, 0.0, 0.3].map(|x| (machines::HINGE, flat(x))));
    let slide = JointType::Prismatic { axis: Vector3::x() };
    // Crank and rod of equal length coincide, perpendicular to the slide: they turn as one body, or the slider moves.
    let hinge = machines::HINGE;
    let across = machines::at(0.0, 0.5, 0.1);
    ring(
        "isosceles slider-crank at its dead point",
        &[5, 3],
        [(hinge, flat(0.0)), (hinge, across), (hinge, flat(0.0)), (slide, flat(0.0))],
    );
    // Hinges whose axes intersect in a point, at these angles in a plane.
    let hinge = |degrees: f64| {
        let axis = vector![degrees.to_radians().cos(), degrees.to_radians().sin(), 0.0];
        (revolute(axis), Pose::from_translation(0.5 * axis))
    };
    ring("flat spherical parallelogram", &[9, 9], [0.0, 30.0, 120.0, 90.0].map(hinge));
    ring("flat right spherical linkage", &[3, 3], [0.0, 90.0, 180.0, 270.0].map(hinge));
    web(
        "two flat parallelograms on one crank",
        &[3, 8, 8, 13],
        &[
            ("ground", "crank", machines::HINGE, flat(0.0)),
            ("crank", "coupler", machines::HINGE, flat(0.3)),
            ("coupler", "rocker", machines::HINGE, flat(1.1)),
            ("rocker", "ground", machines::HINGE, flat(0.8)),
            ("crank", "other coupler", machines::HINGE, flat(0.3)),
            ("other coupler", "other rocker", machines::HINGE, flat(-0.4)),
            ("other rocker", "ground", machines::HINGE, flat(-0.7)),
        ],
    );
    out
}

/// The motion followed from a singular configuration and the messages are the same for every description of the mechanism.
#[test]
fn the_motion_followed_from_a_singular_start_does_not_depend_on_cut_tree_or_order() {
    for (web, ranks) in forks() {
        let n = web.joints.len();
        let mut first: Option<(DMatrix<f64>, Vec<String>)> = None;
        for cut in 0..n {
            // The cut joint is last; the others are in forward order, in reverse order, and starting from the middle.
            let rest: Vec<usize> = (0..n).filter(|&i| i != cut).collect();
            let backward: Vec<usize> = rest.iter().rev().copied().collect();
            let middle: Vec<usize> = rest[n / 2..].iter().chain(&rest[..n / 2]).copied().collect();
            for mut order in [rest, backward, middle] {
                order.push(cut);
                let robot = web.build(&order);
                for method in [Method::Drng, Method::Numeric] {
                    let name = format!("{} by joints {order:?}, {method:?}", web.name);
                    let answer = analyze(&robot, &by(method)).unwrap_or_else(|e| panic!("{name}: {e}"));
                    assert_eq!(answer.rank, ranks[0], "{name}: {:?}", answer.warnings);
                    // The random walk returns to the singular configuration, where rounding errors of the closure grow without
                    // bound.
                    check_null_vectors_to(&name, &robot, &answer, 1e-6);
                    let null = world_null_space(&robot, &answer);
                    let reported: Vec<String> = answer
                        .warnings
                        .iter()
                        .map(ToString::to_string)
                        .filter(|w| w.contains("motion branches"))
                        .collect();
                    let Some((space, words)) = &first else {
                        assert_eq!(reported.len(), 2, "{name}: {reported:?}");
                        first = Some((null, reported));
                        continue;
                    };
                    assert_eq!(&reported, words, "{name}");
                    let both: Vec<_> = space.column_iter().chain(null.column_iter()).collect();
                    let together = rank(&DMatrix::from_columns(&both), 1e-8).unwrap();
                    assert_eq!(together.rank, space.ncols(), "{name}: {together:?}");
                }
            }
        }
        let (_, words) = first.unwrap();
        let others: Vec<String> = ranks[1..].iter().map(ToString::to_string).collect();
        let expected = format!("rank {}; not used: rank {}", ranks[0], others.join(", "));
        assert!(words[1].ends_with(&expected), "{}: {words:?}", web.name);
    }
}

#[test]
fn machines_of_every_kind_agree_with_their_sampled_regressors() {
    for (name, robot, mobility) in machines::all() {
        let answer = analyze(&robot, &by(Method::Drng)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(answer.model.dof, mobility, "{name}");
        check_null_vectors(&name, &robot, &answer);
        assert!(answer.certificate.exact, "{name}: {:?}", answer.certificate);
        check_sound(&name, &robot);
    }
}

#[test]
fn random_rings_in_the_plane_and_in_space() {
    let rng = &mut Rng(17);
    for k in 0..30 {
        let ring = if k % 3 == 0 {
            let corners: Vec<(f64, f64)> =
                (0..4 + k % 2).map(|_| (rng.range(-1.0, 1.0), rng.range(-1.0, 1.0))).collect();
            machines::Ring::new("plane", rng, machines::planar(&corners))
        } else {
            machines::random_spatial_ring(rng)
        };
        let cut = rng.below(ring.joints.len());
        let robot = ring.cut(cut, &[]);
        let name = format!("{k}: {} cut at {cut}", ring.name);
        // Some of many random angles lie within the snapping tolerance of special ones.
        let literally = by(Method::Drng).with(|o| o.snap = 0.0);
        let answer = analyze(&robot, &literally).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(answer.certificate.exact, "{name} {:?} {:?}", answer.certificate, answer.warnings);
        check_null_vectors(&name, &robot, &answer);
        check_extended(&name, &robot, &answer, 0.0);
        check_sound(&name, &robot);
    }
}

#[test]
fn urdf_plus_models() {
    // Two of them are stretched at zero, which is a singular configuration. Both linkages are parallelograms.
    for (file, rank) in [
        ("four_bar", 1),
        ("planar_leg_linkage", 4),
        ("double_pendulum", 4),
        ("mini_cheetah_leg", 18),
        ("mini_cheetah", 106),
        ("revolute_rotor_chain", 9),
    ] {
        let Some(path) = shared(&format!("models/urdf_plus/{file}.urdf")) else { return };
        let robot = mechanism(&std::fs::read_to_string(path).unwrap());
        let answer = analyze(&robot, &by(Method::Drng)).unwrap();
        assert_eq!((answer.rank, answer.certificate.exact), (rank, true), "{file}");
        check_null_vectors(file, &robot, &answer);
        let auto = analyze(&robot, &AnalyzeOptions::default()).unwrap();
        assert_eq!(auto.rank, rank, "{file}");
    }
}

/// The rank for fewer sensors is that of the measured rows of the regressor.
#[test]
fn ranks_with_fewer_sensors() {
    for name in ["2rru-1rrs", "2prs-1psr", "four-bar"] {
        let robot = builtin::get(name).unwrap().build(&BuildOptions::default()).unwrap();
        let closed = ClosedMechanism::new(&robot).unwrap();
        let joints: Vec<String> = closed.independent_names();
        let width = robot.parameter_count();
        let y = regressor(&robot, 3 * width, 8);
        for k in 0..joints.len() {
            let options = by(Method::Drng).with(|o| o.torque_joints = Some(vec![joints[k].clone()]));
            let answer = analyze(&robot, &options).unwrap();
            let own: Vec<_> = y.row_iter().skip(k).step_by(joints.len()).collect();
            let sampled = rank(&DMatrix::from_rows(&own), 1e-9).unwrap();
            assert_eq!(answer.rank, sampled.rank, "{name} {}: {sampled:?}", joints[k]);
        }
        let mut ws = closed.workspace();
        let mut rng = Rng(3);
        let mut rows = Vec::new();
        for _ in 0..width {
            let mut q = closed.assembled().to_vec();
            let target: Vec<f64> =
                closed.independent_positions().iter().map(|&i| q[i] + rng.range(-0.1, 0.1)).collect();
            closed.move_to(&mut ws, &mut q, &target).unwrap();
            let (v, a) = (rng.values(closed.dof(), 2.0), rng.values(closed.dof(), 3.0));
            let mut y = vec![0.0; 6 * width];
            closed.base_wrench_regressor(&mut ws, &q, &v, &a, &mut y).unwrap();
            rows.extend(y);
        }
        let sampled = rank(&DMatrix::from_row_slice(rows.len() / width, width, &rows), 1e-9).unwrap();
        let options = by(Method::Drng).with(|o| o.measured = Some(Measured::BaseWrench));
        let answer = analyze(&robot, &options).unwrap();
        assert_eq!(answer.rank, sampled.rank, "{name} at the base: {sampled:?}");
        for regime in [Regime::Static, Regime::Kinetic] {
            let answer = analyze(&robot, &by(Method::Drng).with(|o| o.regime = regime)).unwrap();
            let all = analyze(&robot, &by(Method::Drng)).unwrap();
            assert!(answer.rank <= all.rank && answer.rank > 0);
        }
    }
    let robot = builtin::get("four-bar").unwrap().build(&BuildOptions::default()).unwrap();
    let closed = ClosedMechanism::new(&robot).unwrap();
    let dependent =
        robot.velocity_names().into_iter().find(|n| !closed.independent_names().contains(n)).unwrap();
    let options = AnalyzeOptions::default().with(|o| o.torque_joints = Some(vec![dependent.clone()]));
    let message = analyze(&robot, &options).unwrap_err().to_string();
    assert!(message.contains(&dependent) && message.contains("independent"), "{message}");
}

#[test]
fn the_graph_in_words_and_as_a_picture() {
    let robot = builtin::get("2rru-1rrs").unwrap().build(&BuildOptions::default()).unwrap();
    let answer = analyze(&robot, &by(Method::Drng)).unwrap();
    let words = picture::text(&robot, &answer.null_vectors);
    for body in robot.bodies().iter().filter(|b| b.parameter_count() > 0) {
        assert!(words.contains(&body.name), "{words}");
    }
    assert!(words.contains("shared points 3") && words.contains("planar rotation"), "{words}");
    let svg = picture::svg(&robot, &answer.null_vectors);
    assert!(roxmltree::Document::parse(&svg).is_ok(), "{svg}");
    assert_eq!(svg.matches("stroke-dasharray").count(), robot.loops().len());
}

/// Angles rounded as in files (1.5708 for a right angle) open overconstrained loops; the rank is that of the intended machine.
#[test]
fn rounded_right_angles_do_not_change_the_rank() {
    for (name, rank) in [("2rru-1rrs", 25), ("2prs-1psr", 23), ("four-bar", 8)] {
        let mut builder = builtin::get(name).unwrap();
        let off = 3.673e-6; // 1.5708 − π/2
        let tilt = |pose: &mut Pose<f64>| pose.rotation *= rotation_about(&Vector3::x(), off);
        builder.joints.iter_mut().for_each(|j| tilt(&mut j.origin));
        builder.loops.iter_mut().for_each(|l| tilt(&mut l.successor.origin));
        let robot = builder.build(&BuildOptions::default()).unwrap();
        let answer = analyze(&robot, &AnalyzeOptions::default()).unwrap();
        assert_eq!((answer.rank, answer.certificate.exact), (rank, true), "{name}: {:?}", answer.warnings);
    }
}

/// A universal joint equals two hinges with a massless link between them.
#[test]
fn a_universal_joint_is_two_hinges() {
    let (x, z) = (Vector3::x(), Vector3::z());
    let revolute = |axis| JointType::Revolute { axis };
    let axes = [x, Vector3::new(0.0, 0.8, 0.6)];
    let types = [revolute(x), JointType::Universal { axes }, JointType::Spherical, revolute(z)];
    let ring = machines::random_ring(&mut Rng(21), &types);
    let whole = ring.cut_blueprint(2, &[]).builder;
    let mut split = whole.clone();
    let k = split.joints.iter().position(|j| matches!(j.joint_type, JointType::Universal { .. })).unwrap();
    let (child, name) = (split.joints[k].child.clone(), split.joints[k].name.clone());
    split.joints[k].joint_type = revolute(axes[0]);
    split.joints[k].child = "cross".into();
    split.joints.insert(k + 1, JointSpec::new(format!("{name}.second"), revolute(axes[1]), "cross", child));
    split = split.link("cross", Inertia::zero());
    split.massless.insert("cross".into());
    let [whole, split] = [whole, split].map(|b| b.build(&BuildOptions::default()).unwrap());
    let [a, b] = [&whole, &split].map(|robot| analyze(robot, &by(Method::Drng)).unwrap());
    assert_eq!(whole.parameter_names(), split.parameter_names());
    assert_eq!((a.rank, &a.regrouping), (b.rank, &b.regrouping));
    // The universal joint as the loop joint.
    let cut = ring.cut(1, &[]);
    assert_eq!(analyze(&cut, &by(Method::Drng)).unwrap().rank, a.rank);
}

/// Every vector of `null_space` changes the torques at random closed states by at most 1e-12 of its terms and has a reason;
/// together they span the null space.
#[test]
fn null_spaces_are_listed_with_reasons() {
    for name in ["four-bar", "2rru-1rrs", "2prs-1psr"] {
        let robot = builtin::get(name).and_then(|b| b.build(&BuildOptions::default())).unwrap();
        let names = robot.parameter_names();
        // States away from dead points, closed to double precision.
        let rows = regressor(&robot, 12, 5);
        for method in [Method::Auto, Method::Exact, Method::Numeric] {
            let answer = analyze(&robot, &by(method)).unwrap();
            assert_eq!(answer.null_space.len(), answer.nullity, "{name}");
            let mut all = DMatrix::zeros(names.len(), answer.nullity);
            for (k, null) in answer.null_space.iter().enumerate() {
                assert!(!null.reason.is_empty());
                for (parameter, x) in &null.combination {
                    all[(names.iter().position(|n| n == parameter).unwrap(), k)] = *x;
                }
                let vector = all.column(k);
                for row in rows.row_iter() {
                    let terms = row.transpose().component_mul(&vector);
                    // Rows have unit length; rounding errors of the state contribute 1e-15.
                    let size = terms.amax().max(1e-2 * vector.amax());
                    assert!(
                        terms.sum().abs() <= 1e-12 * size,
                        "{name}: {:e} of {size:e}, {null:?}",
                        terms.sum()
                    );
                }
            }
            all.column_iter_mut().for_each(|mut c| c.unscale_mut(c.norm()));
            assert_eq!(rank(&all, 1e-9).unwrap().rank, answer.nullity, "{name}");
        }
        let explained = analyze(&robot, &by(Method::Auto)).unwrap().null_space;
        assert!(explained.iter().any(|n| n.reason.starts_with("shared points at joint")), "{explained:?}");
    }
}

/// Null vectors had some five entries each, also for parameters that no measurement shows.
#[test]
fn null_vectors_of_loops_have_few_entries() {
    // The vectors had 177, 217 and 74 entries before the reduction. The reduced echelon form of the whole null space has 84,
    // 116 and 32, but its vectors mix principles.
    for (name, most) in [("2rru-1rrs", 140), ("2prs-1psr", 180), ("four-bar", 65)] {
        let machine = builtin::get(name).unwrap().build(&BuildOptions::default()).unwrap();
        let found = analyze(&machine, &AnalyzeOptions::default()).unwrap();
        let entries: usize = found.null_space.iter().map(|v| v.combination.len()).sum();
        assert!(entries <= most, "{name}: {entries}");
        for vector in &found.null_space {
            let largest = vector.combination.iter().map(|(_, x)| x.abs()).fold(0.0, f64::max);
            assert!((largest - 1.0).abs() < 1e-12, "{name}: {vector:?}");
        }
    }
}
