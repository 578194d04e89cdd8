//! Mechanism files: contents, both formats, and messages for invalid files.

#![allow(clippy::unwrap_used, clippy::default_trait_access)]

use crate::common::data::golden;

use inertial::mechanism::read::file::read;
use inertial::mechanism::{JointType, Mechanism};
use inertial::spatial::Pose;
use nalgebra::{Matrix3, Vector3, vector};

fn build(text: &str) -> Mechanism {
    read(text).and_then(|b| b.build(&Default::default())).unwrap()
}

fn error(text: &str) -> String {
    let message = read(text).and_then(|b| b.build(&Default::default())).unwrap_err().to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

/// Creates a file in JSON with one body on the given joint.
fn joint(text: &str) -> String {
    format!(
        "{{\"schema\": \"inertial/mechanism/1\", \"convention\": \"modified\", \"bodies\": [\n{{\"name\": \"b\", \"parent\": \
         \"ground\",\n\"joint\": {{\"name\": \"j\", {text}}}}}]}}"
    )
}

/// Returns the pose of a body in the world at the coordinates `q`.
fn world(mechanism: &Mechanism, body: usize, q: &[f64]) -> Pose<f64> {
    let b = &mechanism.bodies()[body];
    let before = b.parent.map_or_else(Pose::identity, |p| world(mechanism, p, q));
    before * b.placement * b.joint_type.pose(&q[b.drive.q..b.drive.q + b.joint_type.nq()])
}

const EXAMPLE: &str = r#"{"schema": "inertial/mechanism/1", "name": "five_bar", "gravity": [0, 0, -9.81],
 "bodies": [{"name": "crank", "parent": "ground",
             "joint": {"name": "j1", "type": "revolute", "origin": {"xyz": [0, 0, 0], "rpy": [0, 0, 0]}, "axis": [0, 0, 1],
                       "independent": true, "limits": {"lower": -3, "upper": 3, "velocity": 2, "effort": 50},
                       "dynamics": {"damping": 0.1, "friction": 0.2, "armature": 0.3}},
             "inertial": {"mass": 2.0, "com": [0, 0, 0.1], "inertia": {"ixx": 0.1, "ixy": 0, "ixz": 0, "iyy": 0.1, "iyz": 0, "izz": 0.1}}},
            {"name": "b2", "parent": "crank", "joint": {"name": "j2", "type": "spherical", "origin": {"xyz": [1, 0, 0], "quaternion": [0, 0, 2, 2]}}},
            {"name": "b4", "parent": "ground", "joint": {"name": "j4", "type": "helical", "pitch": 0.01, "axis": [0, 2, 0]}},
            {"name": "b5", "parent": "ground", "joint": {"name": "j5", "type": "continuous", "mimic": {"joint": "j4", "ratio": -2, "offset": 1}}}],
 "loops": [{"name": "l1", "type": "universal", "predecessor": {"body": "b2", "origin": {"xyz": [1, 0, 0]}},
            "successor": {"body": "b4", "origin": {"xyz": [1, 0, 0]}}, "axes": [[1, 0, 0], [0, 1, 0]]}],
 "rotors": [{"joint": "j1", "carrier": "ground", "ratio": 6.0, "origin": {"xyz": [0, 0, 0]}, "axis": [0, 0, 1], "symmetric": true,
             "inertial": {"mass": 0.1, "com": [0, 0, 0], "inertia": {"ixx": 1e-4, "ixy": 0, "ixz": 0, "iyy": 1e-4, "iyz": 0, "izz": 2e-4}}}],
 "assembly": {"j1": 0.3, "j2": [0, 0, 0, 1]}}"#;

#[test]
fn every_field_arrives() {
    let m = build(EXAMPLE);
    assert_eq!((m.name(), m.nq(), m.nv(), m.loops().len()), ("five_bar", 6, 5, 1));
    let crank = &m.joints()[0];
    let l = crank.limits;
    assert_eq!((l.lower, l.upper, l.velocity, l.effort), (-3.0, 3.0, 2.0, 50.0));
    assert_eq!((crank.dynamics.damping, crank.dynamics.friction, m.armature()[0]), (0.1, 0.2, 0.3));
    assert_eq!(m.bodies()[0].inertia.parameters()[3], 0.2);
    assert!((m.bodies()[0].inertia.parameters()[4] - (0.1 + 2.0 * 0.01)).abs() < 1e-16);
    // The quaternion need not have unit length: this is a quarter turn about z.
    let quarter = m.bodies()[1].placement;
    assert!((quarter.rotation * Vector3::x() - Vector3::y()).norm() < 1e-15);
    assert_eq!(quarter.translation, vector![1.0, 0.0, 0.0]);
    assert_eq!(m.bodies()[2].joint_type, JointType::Helical { axis: Vector3::y(), pitch: 0.01 });
    assert_eq!((m.bodies()[3].drive.ratio, m.bodies()[3].drive.offset), (-2.0, 1.0));
    assert_eq!(m.assembly(), [0.3, 0.0, 0.0, 0.0, 1.0, 0.0]);
    assert_eq!(m.independent_marks(), [Some(true), Some(false), Some(false), Some(false), Some(false)]);
    let rotor = m.bodies().last().unwrap();
    assert_eq!((rotor.name.as_str(), rotor.drive.ratio), ("j1.rotor", 6.0));
    assert_eq!(rotor.inertia.rotational[(2, 2)], 2e-4);
    let lines: Vec<_> = m.links().iter().map(|l| l.line).collect();
    assert_eq!(lines, [None, Some(2), Some(7), Some(8), Some(9)]);
}

#[test]
fn toml_says_the_same() {
    let value: serde_json::Value = serde_json::from_str(EXAMPLE).unwrap();
    let text = toml::to_string(&value).unwrap();
    let (a, b) = (build(EXAMPLE), build(&text));
    assert_eq!(a.parameters(), b.parameters());
    assert_eq!((a.assembly(), a.armature()), (b.assembly(), b.armature()));
    for (x, y) in a.bodies().iter().zip(b.bodies()) {
        assert_eq!((x.placement, x.joint_type, x.drive), (y.placement, y.joint_type, y.drive));
    }
    let commented = "# a rod\nschema = \"inertial/mechanism/1\"\n\n[[bodies]]\nname = \"rod\"\nparent = \"nowhere\"\n\
                     joint = { name = \"j\", type = \"revolute\" }\n";
    assert_eq!(error(commented), "line 4: joint \"j\": its parent link \"nowhere\" does not exist");
}

#[test]
fn denavit_hartenberg_rows_give_the_tables_forward_kinematics() {
    // Rows a, alpha, d, theta of a three-axis arm with every entry in use.
    let rows = [[0.1, 0.4, 0.3, 0.2], [0.25, -1.1, -0.2, 0.7], [0.05, 0.3, 0.15, -0.4]];
    let kinds = ["revolute", "prismatic", "revolute"];
    let q = [0.3, 0.12, -0.8];
    let x = |a: f64, alpha: f64| Pose::from_xyz_rpy([a, 0.0, 0.0], [alpha, 0.0, 0.0]);
    let z = |d: f64, theta: f64| Pose::from_xyz_rpy([0.0, 0.0, d], [0.0, 0.0, theta]);
    for (convention, in_origin) in [("modified", true), ("standard", true), ("standard", false)] {
        let mut bodies = Vec::new();
        let mut end = Pose::identity();
        let mut expected = Vec::new();
        for (i, ([a, alpha, d, theta], kind)) in rows.into_iter().zip(kinds).enumerate() {
            let row = format!("\"dh\": {{\"a\": {a}, \"alpha\": {alpha}, \"d\": {d}, \"theta\": {theta}}}");
            let origin = if in_origin { format!("\"origin\": {{{row}}}") } else { row };
            let parent = if i == 0 { "ground".into() } else { format!("b{}", i - 1) };
            bodies.push(format!(
                "{{\"name\": \"b{i}\", \"parent\": \"{parent}\", \
                 \"joint\": {{\"name\": \"j{i}\", \"type\": \"{kind}\", {origin}}}}}"
            ));
            let (turn, slide) = if kind == "revolute" { (q[i], 0.0) } else { (0.0, q[i]) };
            let about_axis = z(d + slide, theta + turn);
            if convention == "modified" {
                end = end * x(a, alpha) * about_axis;
                expected.push(end);
            } else {
                // The frame of the body is in the middle of the row, on the joint axis.
                expected.push(end * about_axis);
                end = end * about_axis * x(a, alpha);
            }
        }
        let text = format!(
            "{{\"schema\": \"inertial/mechanism/1\", \"convention\": \"{convention}\", \"bodies\": [{}]}}",
            bodies.join(",\n")
        );
        let m = build(&text);
        for (i, expected) in expected.iter().enumerate() {
            let found = world(&m, i, &q);
            assert!((found.to_matrix() - expected.to_matrix()).amax() < 1e-15, "{convention} {i}");
        }
    }
}

#[test]
fn origins_have_three_forms_of_rotation() {
    let angle: f64 = 0.7;
    let (s, c) = angle.sin_cos();
    let forms = [
        format!("\"rpy\": [0, 0, {angle}]"),
        format!("\"quaternion\": [0, 0, {}, {}]", (angle / 2.0).sin(), (angle / 2.0).cos()),
        format!("\"rotation\": [[{c}, -{s}, 0], [{s}, {c}, 0], [0, 0, 1]]"),
    ];
    let expected = Matrix3::new(c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0);
    for form in forms {
        let m = build(&joint(&format!("\"type\": \"revolute\", \"origin\": {{\"xyz\": [1, 2, 3], {form}}}")));
        assert!((m.bodies()[0].placement.rotation - expected).amax() < 1e-15);
        assert_eq!(m.bodies()[0].placement.translation, vector![1.0, 2.0, 3.0]);
    }
}

#[test]
fn bad_files_get_one_clear_line() {
    let kind = |kind: &str| error(&joint(&format!("\"type\": \"{kind}\"")));
    let revolute = |more: &str| error(&joint(&format!("\"type\": \"revolute\"{more}")));
    let origin = |text: &str| revolute(&format!(", \"origin\": {{{text}}}"));
    let top = |rest: &str| error(&format!("{{\"schema\": {rest}"));
    let toml = |rest: &str| error(&format!("schema = \"inertial/mechanism/1\"\n{rest}"));
    let cases = [
        (error(""), "the model is empty: expected URDF, MJCF, SDF or a mechanism file (JSON or TOML)"),
        (error("\u{0}\u{1}rubbish"), "line 1: neither XML nor JSON, and as TOML: "),
        (top("\"inertial/mechanism/1\", \"bodies\": ["), "line 1: bodies: EOF while parsing a list"),
        (
            top("\"other\", \"bodies\": []}"),
            "schema: \"other\" is unknown: expected \"inertial/mechanism/1\"",
        ),
        (kind("hinge"), "line 3: bodies[0].joint.type: unknown variant `hinge`, expected one of `fixed`, "),
        (kind("helical"), "line 2: bodies[0].joint: a helical joint needs \"pitch\" in metres per radian"),
        (kind("universal"), "line 2: bodies[0].joint: a universal joint needs \"axes\", the first on the"),
        (revolute(", \"axsi\": [0, 0, 1]"), "line 3: bodies[0].joint.axsi: unknown field `axsi`, expected"),
        (
            revolute(", \"axis\": [0, \"x\", 1]"),
            "line 3: bodies[0].joint.axis[1]: invalid type: string \"x\", expected f64",
        ),
        (revolute(", \"axis\": [0, 0]"), "line 3: bodies[0].joint.axis: invalid length 2, expected an array"),
        (revolute(", \"axis\": [0, NaN, 1]"), "line 3: bodies[0].joint.axis[1]: expected value"),
        (revolute(", \"axis\": [0, 1e999, 1]"), "line 3: bodies[0].joint.axis[1]: number out of range"),
        (revolute(", \"axis\": [0, 0, 0]"), "line 2: joint \"j\": its axis has no length"),
        (revolute(", \"pitch\": 1"), "line 2: bodies[0].joint.pitch: only a helical joint has a pitch"),
        (
            revolute(", \"dh\": {\"a\": 1}, \"axis\": [1, 0, 0]"),
            "line 2: bodies[0].joint.axis: with dh the axis is z: leave it out",
        ),
        (
            revolute(", \"limits\": {\"lower\": 1, \"upper\": -1}"),
            "line 2: bodies[0].joint.limits: lower 1 is above upper -1",
        ),
        (revolute("}, \"inertial\": {\"mass\": 1"), "line 3: bodies[0].inertial: missing field `inertia`"),
        (
            origin("\"rpy\": [0, 0, 0], \"quaternion\": [0, 0, 0, 1]"),
            "line 2: bodies[0].joint.origin: expected only one of rpy, rotation and quaternion",
        ),
        (
            origin("\"quaternion\": [0, 0, 0, 0]"),
            "line 2: bodies[0].joint.origin.quaternion: a quaternion of zeros is not a rotation",
        ),
        (
            origin("\"rotation\": [[1, 0, 0], [0, 1, 0], [0, 0, -1]]"),
            "line 2: joint \"j\": its rotation is not a right-handed orthogonal matrix",
        ),
        (toml("gravity = [0, 0, nan]\nbodies = []"), "gravity: NaN is not a finite number"),
        (
            toml("bodies = [\n { name = 3 } ]"),
            "line 3: bodies[0].name: invalid type: integer `3`, expected a string",
        ),
    ];
    for (found, expected) in cases {
        assert!(found.starts_with(expected), "found    {found}\nexpected {expected}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    for depth in [1000, 1_000_000] {
        let json = error(&format!("{{\"schema\": {}", "[".repeat(depth)));
        assert!(json.contains("schema: "), "{json}");
        let unknown = error(&format!("{{\"x\": {}", "{\"x\":".repeat(depth)));
        assert!(unknown.contains("unknown field"), "{unknown}");
        let toml = error(&format!("schema = {}", "[".repeat(depth)));
        assert!(toml.contains("recurs"), "{toml}");
    }
}

#[test]
fn golden_mechanisms_load_and_build() {
    let entries = golden("loops").read_dir().unwrap();
    let mut count = 0;
    for path in entries.map(|e| e.unwrap().path()).filter(|p| !p.ends_with("truth.json")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let m = read(&text).and_then(|b| b.build(&Default::default()));
        assert!(m.is_ok(), "{}: {}", path.display(), m.unwrap_err());
        count += 1;
    }
    assert!(count >= 19);
}

#[test]
fn a_joint_follows_one_or_several() {
    let text = |mimic: &str| {
        format!(
            "schema = \"inertial/mechanism/1\"
             bodies = [
               {{ name = \"a\", parent = \"ground\", joint = {{ name = \"ja\", type = \"revolute\" }} }},
               {{ name = \"b\", parent = \"a\", joint = {{ name = \"jb\", type = \"revolute\" }} }},
               {{ name = \"c\", parent = \"b\", joint = {{ name = \"jc\", type = \"revolute\", mimic = {{ {mimic} }} }} }},
             ]"
        )
    };
    let both = build(&text("joints = [{ joint = \"ja\", ratio = 0.5 }, { joint = \"jb\" }], offset = 0.25"));
    let drives: Vec<_> =
        both.joint_bodies(2).iter().map(|b| (b.drive.v, b.drive.ratio, b.drive.offset)).collect();
    assert_eq!(drives, [(0, 0.5, 0.0), (1, 1.0, 0.25)]);
    assert_eq!(build(&text("joint = \"ja\"")).joint_bodies(2).len(), 1);
    for wrong in ["", "joint = \"ja\", joints = []", "joints = [{ joint = \"ja\" }], ratio = 2"] {
        let message = error(&text(wrong));
        assert!(message.contains("it needs \"joint\" (and perhaps \"ratio\")"), "{message}");
    }
}

#[test]
fn messages_show_the_form_of_an_entry() {
    let loops = |end: &str| {
        format!(
            "{{\"schema\": \"inertial/mechanism/1\", \"bodies\": [{{\"name\": \"b\", \"parent\": \"ground\", \"joint\": {{\"name\": \
             \"j\", \"type\": \"revolute\"}}}}],\n\"loops\": [{{\"name\": \"pin\", \"type\": \"revolute\", \"predecessor\": \
             {end}, \"successor\": {{\"body\": \"ground\"}}}}]}}"
        )
    };
    let message = error(&loops("\"b\""));
    let form = r#"expected the end of a loop such as {"body": "arm", "origin": {"xyz": [0, 0, 0.3]}}"#;
    assert!(message.contains("loops[0].predecessor") && message.contains(form), "{message}");
    let message = error(&loops("{\"body\": \"b\", \"origin\": 1}"));
    assert!(
        message.contains(r#"expected an origin such as {"xyz": [0, 0, 0.1], "rpy": [0, 0, 0]}"#),
        "{message}"
    );
}
