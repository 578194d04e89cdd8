//! Textbook machines with loops, and the same machine in several formats.

#![allow(clippy::unwrap_used)]

use crate::common::Rng;
use crate::loops::{by, check_extended, check_null_vectors, check_sound, mechanism, null_space, regressor};
use crate::machines;
use crate::machines::{Blueprint, HINGE, Ring};
use inertial::identifiability::{Analysis, AnalyzeOptions, Measured, Method, Regime, analyze};
use inertial::linalg::rank;
use inertial::mechanism::{Base, BuildOptions, JointType, Mechanism, builtin};
use inertial::spatial::Pose;
use nalgebra::{DMatrix, Vector3, vector};

/// Returns a point of the plane `y = 0`, rotated about z.
fn around(degrees: f64, x: f64, z: f64) -> Vector3<f64> {
    let angle = degrees.to_radians();
    vector![x * angle.cos(), x * angle.sin(), z]
}

fn frame(p: Vector3<f64>) -> Pose<f64> {
    Pose::from_translation(p)
}

/// Creates a Delta robot: three arms, each with two rods on ball joints. The parallelograms restrict the platform to
/// translations, although no single joint does; each rod may spin.
fn delta(rng: &mut Rng) -> Blueprint {
    let mut plan = Blueprint::new("Delta");
    // 3-4-5 triangles keep all lengths decimal: elbow at (0.44, −0.2), foot 0.3 inward and 0.4 below it.
    for k in 0..3u8 {
        let turn = 120.0 * f64::from(k);
        let across = around(turn + 90.0, 0.05, 0.0);
        let (elbow, foot) = (around(turn, 0.44, -0.2), around(turn, 0.14, -0.6));
        let arm = format!("arm{k}");
        let axis = across.normalize();
        plan.link(
            &arm,
            rng.inertia(),
            "ground",
            JointType::Revolute { axis },
            frame(around(turn, 0.24, 0.0)),
        );
        for (side, sign) in [("left", 1.0), ("right", -1.0)] {
            let rod = format!("rod{k}{side}");
            plan.link(&rod, rng.inertia(), &arm, JointType::Spherical, frame(elbow + sign * across));
            let hip = frame(foot + sign * across);
            if k == 0 && sign > 0.0 {
                plan.link("platform", rng.inertia(), &rod, JointType::Spherical, hip);
            } else {
                plan.close(&format!("hip{k}{side}"), &rod, "platform", JointType::Spherical, hip);
            }
        }
    }
    plan
}

/// Creates a platform on three legs, each with an inner, a middle and an outer joint.
fn three_legs(name: &str, rng: &mut Rng, leg: impl Fn(f64) -> [(JointType, Vector3<f64>); 3]) -> Blueprint {
    let mut plan = Blueprint::new(name);
    for k in 0..3u8 {
        let [(inner, p), (middle, q), (outer, r)] = leg(120.0 * f64::from(k));
        plan.link(&format!("lower{k}"), rng.inertia(), "ground", inner, frame(p));
        plan.link(&format!("upper{k}"), rng.inertia(), &format!("lower{k}"), middle, frame(q));
        if k == 0 {
            plan.link("platform", rng.inertia(), "upper0", outer, frame(r));
        } else {
            plan.close(&format!("leg{k}"), &format!("upper{k}"), "platform", outer, frame(r));
        }
    }
    plan
}

fn tangent(turn: f64) -> Vector3<f64> {
    around(turn + 90.0, 1.0, 0.0)
}

fn catalogue() -> Vec<(Blueprint, usize)> {
    let rng = &mut Rng(51);
    let revolute = |axis: Vector3<f64>| JointType::Revolute { axis };
    let prismatic = |axis: Vector3<f64>| JointType::Prismatic { axis: axis.normalize() };
    // Legs from (0.5, 0) to (0.2, 0.4): a 3-4-5 triangle.
    let (foot, hip) = (|turn| around(turn, 0.5, 0.0), |turn| around(turn, 0.2, 0.4));
    let along = |turn| hip(turn) - foot(turn);
    let across = |turn: f64| along(turn).cross(&tangent(turn)).normalize();
    let universal = |a: Vector3<f64>, b: Vector3<f64>| JointType::Universal { axes: [a, b] };
    let mut out = vec![(delta(rng), 9)];
    out.push((
        three_legs("translational 3-UPU", rng, |t| {
            [
                (universal(tangent(t), across(t)), foot(t)),
                (prismatic(along(t)), 0.5 * (foot(t) + hip(t))),
                (universal(across(t), tangent(t)), hip(t)),
            ]
        }),
        3,
    ));
    out.push((
        three_legs("translational 3-RUU", rng, |t| {
            let (knee, ankle) = (around(t, 0.7, 0.0), around(t, 0.4, 0.4));
            let n = (ankle - knee).cross(&tangent(t)).normalize();
            [
                (revolute(tangent(t)), around(t, 0.5, 0.0)),
                (universal(tangent(t), n), knee),
                (universal(n, tangent(t)), ankle),
            ]
        }),
        3,
    ));
    out.push((
        three_legs("3-RPS", rng, |t| {
            [
                (revolute(tangent(t)), foot(t)),
                (prismatic(along(t)), 0.5 * (foot(t) + hip(t))),
                (JointType::Spherical, hip(t)),
            ]
        }),
        3,
    ));
    out.push((
        three_legs("spherical 3-RRR", rng, |t| {
            let (inner, middle) = (around(t, 0.6, 0.8), tangent(t));
            let outer = inner.cross(&middle);
            [(revolute(inner), inner), (revolute(middle), 0.5 * middle), (revolute(outer), 0.4 * outer)]
        }),
        3,
    ));
    out
}

/// Returns linkages of special dimensions with their ranks. The ranks are those of the energy regressor at random closed
/// configurations in coordinates of every body (six each) and double precision, computed once by a separate program.
fn linkages() -> Vec<(Vec<Mechanism>, usize)> {
    let rng = &mut Rng(54);
    let (x, y, z) = (Vector3::x(), Vector3::y(), Vector3::z());
    let revolute = |axis: Vector3<f64>| JointType::Revolute { axis: axis.normalize() };
    let prismatic = |axis: Vector3<f64>| JointType::Prismatic { axis };
    let place = |p: [f64; 3]| frame(Vector3::from(p));
    let mut out = Vec::new();
    let mut ring = |name: &str, rank: usize, joints: Vec<(JointType, [f64; 3])>| {
        let joints = joints.into_iter().map(|(t, p)| (t, place(p))).collect();
        let ring = Ring::new(name, rng, joints);
        out.push(((0..ring.joints.len()).map(|cut| ring.cut(cut, &[])).collect(), rank));
    };
    let fork = JointType::Universal { axes: [z, vector![-0.6, 0.8, 0.0]] };
    let output = vector![0.8, 0.6, 0.0];
    ring(
        "Cardan joint",
        6,
        vec![(revolute(x), [-0.5, 0.0, 0.0]), (fork, [0.0; 3]), (revolute(output), [0.4, 0.3, 0.0])],
    );
    ring(
        "Oldham coupling",
        6,
        vec![
            (HINGE, [0.0; 3]),
            (prismatic(x), [0.0, 0.0, 0.1]),
            (prismatic(y), [0.05, 0.0, 0.2]),
            (HINGE, [0.1, 0.07, 0.3]),
        ],
    );
    let screw = |pitch| JointType::Helical { axis: z, pitch };
    ring(
        "differential screw",
        4,
        vec![(screw(0.01), [0.0; 3]), (screw(0.013), [0.0, 0.0, 0.2]), (prismatic(z), [0.1, 0.0, 0.3])],
    );
    // All sides are 90°: two hinges coincide permanently, and the bodies between them turn as one. (The two other hinges may
    // coincide instead; the two motions meet where all four hinges lie in a plane.)
    let right = [x, y, vector![-0.6, 0.0, 0.8], -y];
    ring("right spherical linkage", 3, right.map(|axis| (revolute(axis), (0.5 * axis).into())).to_vec());
    let planar = |points: [[f64; 2]; 4]| points.map(|[x, y]| (HINGE, [x, y, 0.1])).to_vec();
    ring("rhombus", 3, planar([[0.0, 0.0], [0.3, 0.4], [0.8, 0.4], [0.5, 0.0]]));
    ring("antiparallelogram", 8, planar([[0.0, 0.0], [0.7, 0.24], [0.1, 0.24], [0.8, 0.0]]));
    let crank = [0.3, 0.4, 0.0];
    let slider = |length: f64| {
        vec![
            (HINGE, [0.0; 3]),
            (HINGE, crank),
            (HINGE, [length, 0.0, 0.0]),
            (prismatic(x), [length, 0.0, 0.0]),
        ]
    };
    ring("central slider-crank", 6, slider(1.5));
    ring("isosceles slider-crank", 5, slider(0.6));
    let ellipse = vec![
        (prismatic(x), [0.0; 3]),
        (HINGE, [0.3, 0.0, 0.0]),
        (HINGE, [0.0, 0.4, 0.0]),
        (prismatic(y), [0.0, 0.4, 0.0]),
    ];
    ring("elliptic trammel", 4, ellipse);
    let universal = JointType::Universal { axes: [x, y] };
    ring(
        "RRUS",
        17,
        vec![
            (HINGE, [0.0; 3]),
            (revolute(x), [0.3, 0.0, 0.0]),
            (universal, [0.5, 0.7, 0.4]),
            (JointType::Spherical, [0.9, 0.1, 0.2]),
        ],
    );
    let mut graph = |name: &str, rank: usize, joints: &[(&str, &str, Vector3<f64>, [f64; 3])]| {
        // Joints in forward and in reverse order give different trees and cuts.
        let backwards: Vec<_> = joints.iter().rev().copied().collect();
        let machines = [joints, &backwards].map(|joints| {
            let mut plan = Blueprint::new(name);
            let mut known = vec!["ground"];
            let mut left = joints.to_vec();
            while let Some(i) = left.iter().position(|j| known.contains(&j.0) != known.contains(&j.1)) {
                let (a, b, axis, p) = left.remove(i);
                let (parent, child) = if known.contains(&a) { (a, b) } else { (b, a) };
                plan.link(child, rng.inertia(), parent, revolute(axis), place(p));
                known.push(child);
            }
            for (k, (a, b, axis, p)) in left.into_iter().enumerate() {
                plan.close(&format!("loop{k}"), a, b, revolute(axis), place(p));
            }
            plan.build()
        });
        out.push((machines.to_vec(), rank));
    };
    let sarrus = |top: [f64; 3], knee: [f64; 3], upper: [f64; 3]| {
        [
            ("ground", "a1", y, [0.3, 0.0, 0.0]),
            ("a1", "a2", y, [0.5, 0.0, 0.3]),
            ("a2", "top", y, top),
            ("ground", "c1", x, [0.0, 0.4, 0.0]),
            ("c1", "c2", x, knee),
            ("c2", "top", x, upper),
        ]
    };
    graph("Sarrus linkage", 5, &sarrus([0.3, 0.0, 0.6], [0.0, 0.6, 0.3], [0.0, 0.4, 0.6]));
    graph("Sarrus linkage, unequal", 11, &sarrus([0.2, 0.0, 0.7], [0.0, 0.7, 0.3], [0.0, 0.4, 0.7]));
    let bar = |k: usize, x: f64| {
        let name = ["c0", "c1", "c2"][k];
        [("ground", name, z, [x, 0.0, 0.0]), (name, "bar", z, [x + 0.1, 0.4, 0.0])]
    };
    graph("double parallelogram", 3, &[bar(0, 0.0), bar(1, 0.5), bar(2, 1.2)].concat());
    out
}

/// Exact motions, 31 digits and the principles give the same rank for every cut and every seed, and equal coefficients.
#[test]
fn linkages_of_special_dimensions() {
    for (machines, expected) in linkages() {
        for (cut, robot) in machines.iter().enumerate() {
            let name = format!("{} cut {cut}", robot.name());
            let mut spaces = Vec::new();
            for (method, seed) in
                [(Method::Drng, 1), (Method::Exact, 2), (Method::Exact, 6), (Method::Numeric, 1)]
            {
                let options = AnalyzeOptions::default().with(|o| {
                    o.method = method;
                    o.seed = seed;
                });
                let answer = analyze(robot, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(answer.rank, expected, "{name}: {}", answer.certificate.lower_by);
                assert_eq!(
                    answer.certificate.exact,
                    method != Method::Numeric,
                    "{name}: {:?}",
                    answer.warnings
                );
                if method == Method::Drng {
                    check_null_vectors(&name, robot, &answer);
                    check_sound(&name, robot);
                }
                spaces.push(row_space(&answer));
            }
            for other in &spaces[1..] {
                let apart = (other - &spaces[0]).amax();
                // Row spaces are unique; coefficients are of order one, those of 31 digits rounded twice.
                assert!(apart < 1e-9, "{name}: {apart:.1e}");
            }
        }
    }
}

/// Returns the projection onto the combinations of the base parameters, which does not depend on their choice.
fn row_space(answer: &Analysis) -> DMatrix<f64> {
    let regrouping = &answer.regrouping;
    let mut rows = DMatrix::zeros(answer.parameters, answer.rank);
    for (k, combination) in regrouping.combinations.iter().enumerate() {
        for &(c, x) in combination {
            rows[(c, k)] = x;
        }
    }
    let q = rows.qr().q();
    &q * q.transpose()
}

/// A file in TOML describes the same machine as in JSON.
#[test]
fn toml_says_the_same() {
    let json = mechanism(
        r#"{"schema": "inertial/mechanism/1", "name": "linkage", "gravity": [0, -9.81, 0],
            "bodies": [
              {"name": "a", "parent": "ground", "joint": {"name": "j1", "type": "revolute", "axis": [0, 0, 1], "independent": true}},
              {"name": "b", "parent": "a", "joint": {"name": "j2", "type": "universal", "origin": {"xyz": [0.1, 0.4, 0]},
               "axes": [[0, 0, 1], [1, 0, 0]], "independent": false}},
              {"name": "c", "parent": "ground", "joint": {"name": "j3", "type": "revolute", "origin": {"xyz": [0.8, -0.1, 0]},
               "axis": [0, 0, 1], "independent": false}}],
            "loops": [{"name": "l", "type": "spherical", "predecessor": {"body": "b", "origin": {"xyz": [0.7, 0.2, 0]}},
               "successor": {"body": "c", "origin": {"xyz": [0, 0.7, 0]}}}]}"#,
    );
    let toml = mechanism(
        r#"
        schema = "inertial/mechanism/1"
        name = "linkage"
        gravity = [0, -9.81, 0]

        [[bodies]]
        name = "a"
        parent = "ground"
        joint = {name = "j1", type = "revolute", axis = [0, 0, 1], independent = true}

        [[bodies]]
        name = "b"
        parent = "a"
        [bodies.joint]
        name = "j2"
        type = "universal"
        origin.xyz = [0.1, 0.4, 0]
        axes = [[0, 0, 1], [1, 0, 0]]
        independent = false

        [[bodies]]
        name = "c"
        parent = "ground"
        [bodies.joint]
        name = "j3"
        type = "revolute"
        origin.xyz = [0.8, -0.1, 0]
        axis = [0, 0, 1]
        independent = false

        [[loops]]
        name = "l"
        type = "spherical"
        predecessor = {body = "b", origin.xyz = [0.7, 0.2, 0]}
        successor = {body = "c", origin.xyz = [0, 0.7, 0]}
        "#,
    );
    assert_same(&json, &toml);
}

/// The exact rank (or that of 31 digits, if the dimensions are too special for exact curves) is the rank of the torque regressor
/// in double precision, which none of these methods uses.
#[test]
fn machines_of_the_textbooks() {
    for (plan, mobility) in catalogue() {
        let name = plan.builder.name.clone();
        let robot = plan.build();
        let answer = analyze(&robot, &by(Method::Drng)).unwrap_or_else(|e| panic!("{name}: {e}"));
        println!("{name}: rank {} of {}, {}", answer.rank, answer.parameters, answer.method);
        assert_eq!(answer.model.dof, mobility, "{name}");
        check_null_vectors(&name, &robot, &answer);
        check_sound(&name, &robot);
        check_extended(&name, &robot, &answer, inertial::mechanism::DEFAULT_SNAP);
        if mobility > 1 {
            // With several degrees of freedom, singular values of order 1e-6 and above are clearly separated from rounding
            // errors.
            let sampled = rank(&regressor(&robot, 2 * answer.parameters, 3), 1e-10).unwrap();
            assert_eq!(sampled.rank, answer.rank, "{name}: {sampled:?}");
        }
    }
}

/// The platform of the Delta robot keeps its orientation, so its inertia and the direction of its first moment are not
/// identifiable.
#[test]
fn the_inertia_of_a_translating_platform_is_not_identifiable() {
    let robot = delta(&mut Rng(52)).build();
    let answer = analyze(&robot, &AnalyzeOptions::default()).unwrap();
    let platform = answer.bodies.iter().find(|b| b.name == "platform").unwrap();
    // The three translations, whose span contains gravity.
    assert_eq!(platform.velocity_span, 3, "{platform:?}");
    assert_eq!(platform.identifiable_span, 1, "{platform:?}");
}

/// Every kind of measurement has the same rank in exact arithmetic and in 31 digits.
#[test]
fn other_sensors_and_motions_in_extended_precision() {
    let rng = &mut Rng(53);
    let ring = Ring::new(
        "five-bar",
        rng,
        machines::planar(&[(0.0, 0.0), (-0.3, 0.5), (0.4, 1.0), (1.1, 0.6), (0.8, 0.0)]),
    );
    let robots = [ring.cut(2, &[]), machines::floating_leg(rng).build()];
    for robot in &robots {
        let mut asked = vec![
            AnalyzeOptions::default().with(|o| o.regime = Regime::Static),
            AnalyzeOptions::default().with(|o| o.regime = Regime::Kinetic),
        ];
        for measured in [Measured::JointTorques, Measured::BaseWrench, Measured::Both, Measured::Momentum] {
            asked.push(AnalyzeOptions::default().with(|o| o.measured = Some(measured)));
        }
        for options in asked {
            let exact = analyze(robot, &options.clone().with(|o| o.method = Method::Exact)).unwrap();
            let numeric = analyze(robot, &options.clone().with(|o| o.method = Method::Numeric)).unwrap();
            let what = format!("{} {options:?}", robot.name());
            assert_eq!(exact.rank, numeric.rank, "{what}: {}", numeric.certificate.lower_by);
            assert!(exact.certificate.exact && !numeric.certificate.exact, "{what}");
        }
    }
}

/// Exact curves of free flight (no external wrench) have the rank of random states for open chains, and the rank of 31 digits for
/// mechanisms with loops.
#[test]
fn free_flight() {
    let build = |name: &str| {
        let options = BuildOptions::default().with(|o| o.base = Some(Base::Floating));
        builtin::get(name).and_then(|b| b.build(&options)).unwrap()
    };
    let leg = machines::floating_leg(&mut Rng(55)).build();
    let robots = [build("planar-2r"), build("cheetah-leg"), build("space-dual-arm"), leg];
    for robot in &robots {
        for measured in [Measured::JointTorques, Measured::BaseWrench, Measured::Both] {
            let asked = |method| {
                AnalyzeOptions::default().with(|o| {
                    o.method = method;
                    o.measured = Some(measured);
                    o.ballistic = true;
                })
            };
            let what = format!("{} {measured:?}", robot.name());
            let answer = |method| analyze(robot, &asked(method)).unwrap_or_else(|e| panic!("{what}: {e}"));
            let (curves, other) = if robot.loops().is_empty() {
                (answer(Method::Drng), answer(Method::Exact))
            } else {
                (answer(Method::Exact), answer(Method::Numeric))
            };
            println!("{what}: {} of {}", curves.rank, curves.parameters);
            assert_eq!(curves.rank, other.rank, "{what}");
            assert!(curves.certificate.exact, "{what}");
            // Without a force sensor the scale of the masses is not identifiable.
            let whole = analyze(robot, &asked(Method::Auto).with(|o| o.ballistic = false)).unwrap();
            if measured == Measured::BaseWrench {
                assert!(curves.rank < whole.rank, "{what}: {} of {}", curves.rank, whole.rank);
            }
        }
    }
}

/// Asserts that two descriptions have the same null space.
fn assert_same(a: &Mechanism, b: &Mechanism) {
    assert_eq!(a.parameter_names(), b.parameter_names());
    let answer = |m: &Mechanism| -> Analysis { analyze(m, &by(Method::Drng)).unwrap() };
    let (x, y) = (answer(a), answer(b));
    assert_eq!((x.rank, x.certificate.exact), (y.rank, y.certificate.exact), "{}", a.name());
    let (x, y) = (null_space(&x), null_space(&y));
    let both = DMatrix::from_columns(&x.column_iter().chain(y.column_iter()).collect::<Vec<_>>());
    assert_eq!(rank(&both, 1e-8).unwrap().rank, x.ncols(), "{}", a.name());
}

#[test]
fn mjcf_equalities_are_the_loops_of_mechanism_files() {
    let inertial = "<inertial pos='0.1 0 0' mass='1' diaginertia='0.1 0.1 0.1'/>";
    let bar = |name: &str, at: &str, inside: &str| {
        format!(
            "<body name='{name}' pos='{at}'><joint name='j_{name}' axis='0 0 1'/>{inertial}{inside}</body>"
        )
    };
    let world = |bodies: &str, equality: &str| {
        mechanism(&format!(
            "<mujoco model='linkage'><compiler angle='radian'/><option gravity='0 -9.81 0'/>
             <worldbody>{bodies}</worldbody><equality>{equality}</equality></mujoco>"
        ))
    };
    let file = |bodies: &[(&str, &str, &str)], rest: &str| {
        let bodies = bodies.iter().map(|(name, parent, xyz)| {
            format!(
                r#"{{"name": "{name}", "parent": "{parent}",
                    "joint": {{"name": "j_{name}", "type": "revolute", "origin": {{"xyz": {xyz}}}, "axis": [0, 0, 1]}}}}"#
            )
        });
        let bodies = bodies.collect::<Vec<_>>().join(",");
        mechanism(&format!(
            r#"{{"schema": "inertial/mechanism/1", "name": "linkage", "gravity": [0, -9.81, 0], "bodies": [{bodies}], {rest}}}"#
        ))
    };
    // A four-bar closed by a ball joint.
    let coupler = bar("b", "0.1 0.4 0", "");
    let cranks = format!("{}{}", bar("a", "0 0 0", &coupler), bar("c", "0.8 -0.1 0", ""));
    let connect = world(&cranks, "<connect body1='b' body2='c' anchor='0.8 0.2 0'/>");
    let bars = [("a", "ground", "[0, 0, 0]"), ("b", "a", "[0.1, 0.4, 0]"), ("c", "ground", "[0.8, -0.1, 0]")];
    let ends = |kind: &str, last: &str, xyz: &str| {
        format!(
            r#""loops": [{{"name": "l", "type": "{kind}", "predecessor": {{"body": "b", "origin": {{"xyz": [0.8, 0.2, 0]}}}},
               "successor": {{"body": "{last}", "origin": {{"xyz": {xyz}}}}}}}]"#
        )
    };
    assert_same(&connect, &file(&bars, &ends("spherical", "c", "[0.1, 0.7, 0]")));
    // The same linkage closed by welding the coupler to a body on the rocker.
    let glued =
        format!("{}{}", bar("a", "0 0 0", &coupler), bar("c", "0.8 -0.1 0", &bar("d", "0.1 0.7 0", "")));
    let weld = world(&glued, "<weld body1='b' body2='d'/>");
    let longer = [bars[0], bars[1], bars[2], ("d", "c", "[0.1, 0.7, 0]")];
    assert_same(&weld, &file(&longer, &ends("fixed", "d", "[0, 0, 0]")));
    // A five-bar whose cranks are geared together: a loop and a coupling.
    let two =
        format!("{}{}", bar("a", "0 0 0", &coupler), bar("c", "0.8 -0.1 0", &bar("d", "0.3 0.4 0", "")));
    let geared = world(
        &two,
        "<connect body1='b' body2='d' anchor='0.8 0.2 0'/><joint joint1='j_c' joint2='j_a' polycoef='0 -0.5 0 0 0'/>",
    );
    let text = ends("spherical", "d", "[-0.2, 0.3, 0]");
    let mut cut = [bars[0], bars[1], bars[2], ("d", "c", "[0.3, 0.4, 0]")].to_vec();
    let plain = file(&cut, &text);
    assert_eq!(plain.nv(), geared.nv() + 1);
    cut[2].0 = "c";
    let with_mimic = {
        let bodies = cut.iter().map(|(name, parent, xyz)| {
            let mimic = if *name == "c" { r#", "mimic": {"joint": "j_a", "ratio": -0.5}"# } else { "" };
            format!(
                r#"{{"name": "{name}", "parent": "{parent}",
                    "joint": {{"name": "j_{name}", "type": "revolute", "origin": {{"xyz": {xyz}}}, "axis": [0, 0, 1]{mimic}}}}}"#
            )
        });
        let bodies = bodies.collect::<Vec<_>>().join(",");
        mechanism(&format!(
            r#"{{"schema": "inertial/mechanism/1", "name": "linkage", "gravity": [0, -9.81, 0], "bodies": [{bodies}], {text}}}"#
        ))
    };
    assert_same(&geared, &with_mimic);
}
