//! USD scenes: comparison with usd-core and Pinocchio, composition of layers, and invalid files.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::common::python::run;
use crate::common::{assert_close, relative_error};
use inertial::dynamics::{ClosedMechanism, InverseDynamics};
use inertial::mechanism::read::{self, ModelFiles, usd};
use inertial::mechanism::{Base, BuildOptions, JointType, Mechanism};
use serde_json::Value;

/// Tolerance: scenes hold numbers of single precision (6e-8); chains of a dozen joints accumulate rounded rotations, and torques
/// are sums of larger terms.
const TOLERANCE: f64 = 3e-6;

/// Files of a folder.
struct Folder<'p>(&'p Path);

impl ModelFiles for Folder<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        read::no_includes(name)
    }

    fn file(&self, name: &str) -> Result<Vec<u8>, String> {
        std::fs::read(self.0.join(name)).map_err(|e| e.to_string())
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn load(path: &Path) -> Mechanism {
    let bytes = std::fs::read(path).unwrap();
    let builder = usd::read(&bytes, &Folder(path.parent().unwrap()));
    let builder = builder.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(builder.warnings.is_empty(), "{}: {:?}", path.display(), builder.warnings);
    builder.build(&BuildOptions::default()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Compares masses and inverse dynamics; returns the largest relative error of the torques.
fn compare(path: &Path, expected: &Value) -> f64 {
    let robot = load(path);
    let at = path.display();
    for (name, mass) in expected["masses"].as_object().unwrap() {
        let link = robot.links().iter().find(|l| l.name == *name).unwrap_or_else(|| panic!("{at}: {name}"));
        let (found, mass) = (link.inertia.unwrap().mass, mass.as_f64().unwrap());
        assert!((found - mass).abs() <= 1e-7 * mass, "{at}: mass of {name}: {found} for {mass}");
    }
    let mut worst = 0.0f64;
    for sample in expected["samples"].as_array().unwrap() {
        let joints = sample.as_object().unwrap();
        assert_eq!(joints.len(), robot.joints().len(), "{at}");
        let (mut q, mut v, mut a) = (robot.neutral(), vec![0.0; robot.nv()], vec![0.0; robot.nv()]);
        let mut tau = vec![0.0; robot.nv()];
        for joint in robot.joints() {
            let own = joints.get(&joint.name).unwrap_or_else(|| panic!("{at}: no joint {}", joint.name));
            q[joint.q_range()].copy_from_slice(&numbers(&own["q"]));
            for (name, to) in [("v", &mut v), ("a", &mut a), ("tau", &mut tau)] {
                to[joint.v_range()].copy_from_slice(&numbers(&own[name]));
            }
        }
        let mut found = vec![0.0; robot.nv()];
        let dynamics = InverseDynamics::new(&robot);
        dynamics.rnea(&mut dynamics.scratch(), &q, &v, &a, &mut found).unwrap();
        worst = worst.max(relative_error(&found, &tau, 1.0));
    }
    worst
}

#[test]
fn scenes_of_usd_core_have_the_dynamics_of_pinocchio() {
    let folder = std::env::temp_dir().join(format!("inertial-usd-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let Some(output) = run("oracle_usd.py", &[folder.to_str().unwrap()]) else { return };
    let mut count = 0;
    let mut worst = 0.0f64;
    for line in output.lines() {
        let expected: Value = serde_json::from_str(line).unwrap();
        let path = Path::new(expected["path"].as_str().unwrap());
        if let Some(shapes) = expected.get("shapes") {
            let robot = load(path);
            let inertia = robot.bodies()[0].inertia;
            // UsdPhysics computes in single precision.
            let mass = shapes["mass"].as_f64().unwrap();
            assert!((inertia.mass - mass).abs() < 1e-6 * mass, "{} for {mass}", inertia.mass);
            assert_close(inertia.com().unwrap().as_slice(), &numbers(&shapes["com"]), 1e-6, "centre of mass");
            let tensor = numbers(&shapes["tensor"]);
            assert_close(inertia.about_com().as_slice(), &tensor, 1e-5, "inertia");
            continue;
        }
        let error = compare(path, &expected);
        assert!(error < TOLERANCE, "{}: torques differ by {error:.1e}", path.display());
        worst = worst.max(error);
        count += 1;
    }
    std::fs::remove_dir_all(&folder).unwrap();
    println!("{count} scenes, largest relative error {worst:.1e}");
    assert_eq!(count, 40);
}

const HEAD: &str = "#usda 1.0\n( metersPerUnit = 1\n upAxis = \"Z\" )\n";

fn body(name: &str, more: &str) -> String {
    format!(
        "def Xform \"{name}\" ( prepend apiSchemas = [\"PhysicsRigidBodyAPI\", \"PhysicsMassAPI\"] ) {{
           float physics:mass = 2
           point3f physics:centerOfMass = (0, 0, 0)
           float3 physics:diagonalInertia = (0.1, 0.2, 0.3)
           {more}
         }}\n"
    )
}

fn joint(name: &str, kind: &str, bodies: [&str; 2], more: &str) -> String {
    let rel = |side: usize| match bodies[side] {
        "" => String::new(),
        path => format!("rel physics:body{side} = <{path}>\n"),
    };
    format!("def Physics{kind}Joint \"{name}\" {{ {}{}{more} }}\n", rel(0), rel(1))
}

fn read_text(text: &str) -> inertial::Result<inertial::mechanism::MechanismBuilder> {
    usd::read(text.as_bytes(), &read::no_includes)
}

fn built(text: &str) -> Mechanism {
    read_text(text).unwrap().build(&BuildOptions::default()).unwrap()
}

/// Files in memory.
struct Files(HashMap<&'static str, String>);

impl ModelFiles for Files {
    fn text(&self, name: &str) -> Result<String, String> {
        self.0.get(name).cloned().ok_or_else(|| "there is no such file".to_owned())
    }
}

#[test]
fn arcs_are_composed_by_strength() {
    let files = Files(HashMap::from([
        (
            "parts/weak.usda",
            format!(
                "{HEAD}over \"arm\" {{ over \"rod\" {{ float physics:mass = 7\n token[] xformOpOrder = [] }} }}"
            ),
        ),
        (
            "parts/rod.usda",
            format!(
                "#usda 1.0\n(defaultPrim = \"thing\"\n subLayers = [@./below.usda@])\n{}",
                body("thing", "").replace("float physics:mass = 2", "")
            ),
        ),
        (
            "parts/below.usda",
            "#usda 1.0\nover \"thing\" { float physics:mass = 11\n float physics:density = 3 }".into(),
        ),
        (
            "parts/hinge.usda",
            format!(
                "#usda 1.0\n def Scope \"a\" {{ {} }}",
                joint("hinge", "Revolute", ["", "/a/rod"], "uniform token physics:axis = \"Y\"")
            ),
        ),
    ]));
    let scene = |own: &str, variant: &str| {
        format!(
            "#usda 1.0\n( metersPerUnit = 1\n upAxis = \"Z\"\n subLayers = [ @./parts/weak.usda@ (offset = 1) ] )
             class \"_heavy\" {{ float physics:mass = 5 }}
             def Xform \"arm\" (
               variants = {{ string size = \"{variant}\" }}
               prepend variantSets = \"size\"
               prepend payload = @./parts/hinge.usda@</a>
             ) {{
               def \"rod\" (
                 prepend references = @parts/rod.usda@
                 {}
               ) {{ {own} }}
               variantSet \"size\" = {{
                 \"large\" {{ over \"rod\" {{ float physics:mass = 9 }} }}
                 \"none\" {{ }}
               }}
             }}",
            if variant == "class" { "inherits = </_heavy>" } else { "" }
        )
    };
    let mass = |own: &str, variant: &str, drop_weak: bool| {
        let mut text = scene(own, variant);
        if drop_weak {
            text = text.replace("subLayers = [ @./parts/weak.usda@ (offset = 1) ]", "");
        }
        let robot = usd::read(text.as_bytes(), &files).unwrap();
        assert!(robot.warnings.is_empty(), "{:?}", robot.warnings);
        assert!(matches!(robot.joints[0].joint_type, JointType::Revolute { axis } if axis.y == 1.0));
        robot.build(&BuildOptions::default()).unwrap().bodies()[0].inertia.mass
    };
    assert_eq!(mass("float physics:mass = 4", "large", false), 4.0);
    // The layers of a stack are stronger than variants and references.
    assert_eq!(mass("", "large", false), 7.0);
    assert_eq!(mass("", "large", true), 9.0);
    assert_eq!(mass("", "class", true), 5.0);
    assert_eq!(mass("", "none", true), 11.0);
}

#[test]
fn joints_keep_their_coordinates_whichever_body_comes_first() {
    let bodies = body("a", "")
        + &body(
            "b",
            "double3 xformOp:translate = (0, 1, 0)\n uniform token[] xformOpOrder = [\"xformOp:translate\"]",
        );
    let base = joint("base", "Fixed", ["", "/a"], "");
    let frames =
        "uniform token physics:axis = \"Z\"\n float physics:lowerLimit = -90\n float physics:upperLimit = 45";
    let there = format!(
        "{HEAD}{bodies}{base}{}",
        joint(
            "hinge",
            "Revolute",
            ["/a", "/b"],
            &format!("{frames}\n point3f physics:localPos0 = (0, 1, 0)")
        )
    );
    let back = format!(
        "{HEAD}{bodies}{base}{}",
        joint(
            "hinge",
            "Revolute",
            ["/b", "/a"],
            &format!("{frames}\n point3f physics:localPos1 = (0, 1, 0)")
        )
    );
    let axis = |text: &str| match read_text(text).unwrap().joints[1].joint_type {
        JointType::Revolute { axis } => axis.z,
        other => panic!("{other:?}"),
    };
    assert_eq!((axis(&there), axis(&back)), (1.0, -1.0));
    let limits = built(&there).joints()[0].limits;
    assert_eq!((limits.lower, limits.upper), (-std::f64::consts::FRAC_PI_2, std::f64::consts::FRAC_PI_4));
}

#[test]
fn excluded_joints_close_loops_and_free_robots_float() {
    let at = |x: f64, y: f64| {
        format!(
            "double3 xformOp:translate = ({x}, {y}, 0)\n uniform token[] xformOpOrder = [\"xformOp:translate\"]"
        )
    };
    let z = "uniform token physics:axis = \"Z\"";
    // A parallelogram in the plane.
    let text = HEAD.to_owned()
        + &body("ground", "")
        + &body("left", &at(0.0, 0.0))
        + &body("right", &at(2.0, 0.0))
        + &body("top", &at(0.0, 1.0))
        + &joint("bolt", "Fixed", ["", "/ground"], "")
        + &joint("a", "Revolute", ["/ground", "/left"], z)
        + &joint(
            "b",
            "Revolute",
            ["/ground", "/right"],
            &format!("{z}\n point3f physics:localPos0 = (2, 0, 0)"),
        )
        + &joint("c", "Revolute", ["/left", "/top"], &format!("{z}\n point3f physics:localPos0 = (0, 1, 0)"))
        + &joint(
            "d",
            "Revolute",
            ["/right", "/top"],
            &format!(
                "{z}\n bool physics:excludeFromArticulation = 1\n point3f physics:localPos0 = (0, 1, 0)\n point3f physics:localPos1 = (2, 0, 0)"
            ),
        );
    let robot = built(&text);
    assert_eq!(robot.loops().iter().map(|l| l.name.as_str()).collect::<Vec<_>>(), ["d"]);
    assert_eq!(ClosedMechanism::new(&robot).unwrap().dof(), 1);
    let floating = built(&text.replace(&joint("bolt", "Fixed", ["", "/ground"], ""), ""));
    assert_eq!((floating.base(), floating.nv()), (Base::Floating, 9));
}

#[test]
fn units_gravity_and_attributes_of_physx_are_honoured() {
    let text = "#usda 1.0\n( metersPerUnit = 0.01\n kilogramsPerUnit = 0.001 )\n".to_owned()
        + &body("rod", "")
        + &joint(
            "hinge",
            "Revolute",
            ["", "/rod"],
            "point3f physics:localPos0 = (10, 20, 30)
             float physxJoint:armature = 20
             float physxJointAxis:angular:dynamicFrictionEffort = 1e7
             float physxJointAxis:angular:viscousFrictionCoefficient = 1e4
             float physxJoint:maxJointVelocity = 180
             float drive:angular:physics:maxForce = 1e8
             float drive:angular:physics:damping = 100",
        );
    let robot = built(&text);
    assert_eq!(robot.gravity().as_slice(), [0.0, -9.81, 0.0]);
    let rod = &robot.bodies()[0];
    assert_close(rod.placement.translation.as_slice(), &[0.1, 0.2, 0.3], 1e-15, "place");
    assert_close(&[rod.inertia.mass, rod.inertia.about_com()[(2, 2)]], &[0.002, 0.3e-7], 1e-12, "mass");
    let joint = &robot.joints()[0];
    let found =
        [joint.dynamics.armature, joint.dynamics.friction, joint.limits.velocity, joint.limits.effort];
    assert_close(&found, &[20e-7, 1.0, std::f64::consts::PI, 10.0], 1e-12, "attributes");
    assert_close(&[joint.dynamics.damping], &[1e-3 * 180.0 / std::f64::consts::PI], 1e-12, "damping");
}

#[test]
fn invalid_scenes_are_refused_in_one_line() {
    let deep = format!("{HEAD}{}{}", "def \"a\" {".repeat(300), "}".repeat(300));
    let brackets = format!("{HEAD}def \"a\" {{ float[] points = {}", "[".repeat(100_000));
    // Each prim references the next one twice: 2^24 prims.
    let mut bomb = HEAD.to_owned();
    for i in 0..24 {
        let next = i + 1;
        let _ = writeln!(
            bomb,
            "def \"p{i}\" {{ def \"x\" (references = </p{next}>) {{}} def \"y\" (references = </p{next}>) {{}} }}"
        );
    }
    let cases: [(String, &str); 14] = [
        ("#usda 2.0".into(), "#usda 1.0"),
        (format!("{HEAD}def Xform \"a\" {{ float physics:mass = }}"), "expected a value"),
        (format!("{HEAD}def Xform \"a"), "does not end"),
        (deep, "nested deeper"),
        (brackets, "end of the file"),
        (bomb, "more than 200000 prims"),
        (HEAD.into(), "no rigid body"),
        (format!("{HEAD}{}{}", body("a", ""), body("b", "")), "no joint connects"),
        (
            format!("{HEAD}{}{}", body("a", ""), joint("j", "Revolute", ["/a", "/nothing"], "")),
            "does not exist",
        ),
        (format!("{HEAD}{}{}", body("a", ""), joint("j", "Distance", ["", "/a"], "")), "not supported"),
        (
            format!(
                "{HEAD}{}{}",
                body("a", ""),
                joint(
                    "j",
                    "",
                    ["", "/a"],
                    "float limit:transX:physics:low = 1\n float limit:transX:physics:high = -1"
                )
            ),
            "5 free directions",
        ),
        (
            format!(
                "{HEAD}{}",
                body(
                    "a",
                    "float3 xformOp:scale = (0, 1, 1)\n uniform token[] xformOpOrder = [\"xformOp:scale\"]"
                )
            ),
            "scaled to zero",
        ),
        (format!("{HEAD}def \"a\" (references = </a/b>) {{ def \"b\" {{}} }}"), ""),
        ("PXR-USDC".into(), "cut off"),
    ];
    for (text, expected) in &cases {
        let message = match read_text(text) {
            Err(error) => error.to_string(),
            Ok(robot) => robot.build(&BuildOptions::default()).unwrap_err().to_string(),
        };
        assert!(message.contains(expected) && !message.contains('\n'), "{expected}: {message}");
    }
}

#[test]
fn files_that_are_missing_are_named() {
    let text = format!(
        "{HEAD}{}{}def \"looks\" (references = [@./looks.usd@, @omniverse://server/x.usd@]) {{}}",
        body("rod", ""),
        joint("hinge", "Revolute", ["", "/rod"], "")
    );
    let robot = read_text(&text).unwrap();
    let warned = |what: &str| robot.warnings.iter().any(|w| w.contains(what));
    assert!(warned("looks.usd") && warned("omniverse://server/x.usd"), "{:?}", robot.warnings);
}
