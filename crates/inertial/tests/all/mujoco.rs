//! Comparison with MuJoCo on the same files: placements, mass matrices and inverse dynamics.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::Path;

use crate::common::{Rng, python, relative_error};
use inertial::dynamics::{ClosedMechanism, InverseDynamics, Workspace, forward_kinematics, mass_matrix};
use inertial::mechanism::write::file::NewDynamics;
use inertial::mechanism::write::mjcf::write_bodies;
use inertial::mechanism::{BodyKind, BuildOptions, Mechanism, read};
use nalgebra::{DMatrix, DVector, Matrix3, Vector3};
use serde_json::Value;

/// Tolerance: MuJoCo uses principal axes and quaternions, each rounded; otherwise both programs compute the same numbers.
const TOLERANCE: f64 = 1e-10;
/// Tolerance for meshes: MuJoCo rotates meshes to their principal axes, and its inertia of a tetrahedron differs by 7e-9 from the
/// closed form.
const MESHES: f64 = 3e-8;

/// Files of a folder.
struct Folder<'p>(&'p Path);

impl read::ModelFiles for Folder<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        std::fs::read_to_string(self.0.join(name)).map_err(|e| format!("{name}: {e}"))
    }

    fn mesh(&self, name: &str) -> Result<Vec<u8>, String> {
        std::fs::read(self.0.join(name)).map_err(|e| format!("{name}: {e}"))
    }
}

fn load(path: &Path) -> Result<Mechanism, inertial::Error> {
    let text = std::fs::read_to_string(path).expect("the oracle read it");
    let folder = path.parent().expect("a file is in a folder");
    read::model(&text, &Folder(folder))?.build(&inertial::mechanism::BuildOptions::default())
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        other => vec![other.as_f64().expect("a number")],
    }
}

/// Compares one model; returns the largest relative error.
fn compare(mechanism: &Mechanism, expected: &Value, tolerance: f64) -> f64 {
    let path = expected["path"].as_str().unwrap();
    let names: Vec<&str> =
        expected["bodies"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    let name = |i: usize| if names[i].is_empty() { format!("body{i}") } else { names[i].to_owned() };
    let link = |name: &str| mechanism.links().iter().find(|l| l.name == name);
    let joints: Vec<_> = mechanism.joints().iter().filter(|j| j.follows.is_none()).collect();
    // Springs and dampers given by a time constant are ignored with a warning.
    let timed = mechanism.warnings().iter().any(|w| w.contains("springdamper"));
    for (i, joint) in joints.iter().enumerate() {
        let named = expected["joints"][i].as_str().unwrap();
        assert!(named.is_empty() || named == joint.name, "{path}: joint {i} is {} for {named}", joint.name);
        for (what, found) in [
            ("damping", joint.dynamics.damping),
            ("friction", joint.dynamics.friction),
            ("stiffness", joint.dynamics.stiffness),
        ] {
            let expected = expected[what][i].as_f64().unwrap();
            assert!(
                (timed && what != "friction")
                    || (found - expected).abs() <= TOLERANCE * (1.0 + expected.abs()),
                "{path}: {what} of {named}: {found} for {expected}"
            );
        }
        if joint.joint_type.nv() == 1 {
            assert!(
                (joint.dynamics.rest - expected["rest"][i].as_f64().unwrap()).abs() < 1e-12,
                "{path}: {named}"
            );
            match expected["limits"][i].as_array() {
                None => assert!(joint.limits.upper.is_infinite(), "{path}: {named} has limits"),
                Some(range) => {
                    assert!(
                        (joint.limits.lower - range[0].as_f64().unwrap()).abs() < 1e-12,
                        "{path}: {named}"
                    );
                    assert!(
                        (joint.limits.upper - range[1].as_f64().unwrap()).abs() < 1e-12,
                        "{path}: {named}"
                    );
                }
            }
        }
    }
    assert_eq!(joints.len(), expected["joints"].as_array().unwrap().len(), "{path}");
    let masses = numbers(&expected["masses"]);
    for i in 1..names.len() {
        let link = link(&name(i)).unwrap_or_else(|| panic!("{path}: no link {}", name(i)));
        // The mass of a mesh that never moves is not computed.
        let found = link.inertia.map_or(if link.body.is_some() { 0.0 } else { masses[i] }, |m| m.mass);
        assert!(
            (found - masses[i]).abs() <= TOLERANCE * (1.0 + masses[i]),
            "{path}: mass of {}: {found} for {}",
            name(i),
            masses[i]
        );
    }
    assert_eq!(mechanism.gravity().as_slice(), numbers(&expected["gravity"]), "{path}: gravity");
    let mut worst = 0.0f64;
    for sample in expected["samples"].as_array().unwrap() {
        let [q, v, a] = ["q", "v", "a"].map(|k| numbers(&sample[k]));
        assert_eq!((q.len(), v.len()), (mechanism.nq(), mechanism.nv()), "{path}: numbers of coordinates");
        let mut workspace = Workspace::new(mechanism);
        forward_kinematics(mechanism, &mut workspace, &q).unwrap();
        let poses = workspace.poses();
        for i in 1..names.len() {
            let name = name(i);
            let marked = link(&format!("{name}.frame")).or(link(&name)).unwrap();
            let pose = marked.body.map_or(marked.pose, |b| poses[b] * marked.pose);
            let position = Vector3::from_row_slice(&numbers(&sample["positions"][i]));
            let rotation = Matrix3::from_row_slice(&numbers(&sample["rotations"][i]));
            assert!(
                (pose.translation - position).amax() < 1e-10 * (1.0 + position.amax()),
                "{path}: place of {name}"
            );
            assert!((pose.rotation - rotation).amax() < 1e-10, "{path}: orientation of {name}");
        }
        let mut matrix = vec![0.0; v.len() * v.len()];
        mass_matrix(mechanism, &mut workspace, &q, &mut matrix).unwrap();
        let mut torques = vec![0.0; v.len()];
        let dynamics = InverseDynamics::new(mechanism);
        dynamics.rnea(&mut dynamics.scratch(), &q, &v, &a, &mut torques).unwrap();
        for (what, found, expected) in [
            ("mass matrix", &matrix, numbers(&sample["mass_matrix"])),
            ("torques", &torques, numbers(&sample["torques"])),
        ] {
            let error = relative_error(found, &expected, 0.0);
            assert!(error < tolerance, "{path}: {what} differ by {error:.1e}");
            worst = worst.max(error);
        }
    }
    worst
}

/// Compares the models in the output of the script; returns their names.
fn compare_all(output: &str) -> Vec<String> {
    let mut compared = Vec::new();
    for line in output.lines() {
        let expected: Value = serde_json::from_str(line).unwrap();
        let path = Path::new(expected["path"].as_str().unwrap());
        let short: Vec<_> = path.iter().rev().take(3).map(|p| p.to_string_lossy()).collect();
        let short = short.into_iter().rev().collect::<Vec<_>>().join("/");
        let loaded = load(path);
        if let Some(reason) = expected["refused"].as_str() {
            println!("{short}: MuJoCo refuses it: {reason}");
            continue;
        }
        match loaded {
            Err(inertial::Error::Unsupported { place, feature }) => {
                println!("{short}: not supported: {place}{feature}");
            }
            Err(error) => panic!("{short}: {error}"),
            Ok(mechanism) => {
                let meshes = std::fs::read_to_string(path).unwrap().contains("<mesh ");
                let worst = compare(&mechanism, &expected, if meshes { MESHES } else { TOLERANCE });
                println!("{short}: {} coordinates, largest relative error {worst:.1e}", mechanism.nv());
                if mechanism.nv() > 0 {
                    compared.push(short);
                }
            }
        }
    }
    compared
}

fn models(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut paths: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "xml"))
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    paths.sort();
    paths
}

#[test]
fn own_models() {
    let paths = models("mjcf_models");
    let arguments: Vec<&str> = paths.iter().map(String::as_str).collect();
    let Some(output) = python::run("oracle_mujoco.py", &arguments) else { return };
    assert_eq!(compare_all(&output).len(), paths.len());
}

/// Returns a prism with a corner cut out, whose points are exact in single precision, as used by MuJoCo. It is large: MuJoCo
/// finds the principal axes of a mesh to 1e-12 kg m² for a density of one, which must be of the size of rounding errors.
fn prism() -> (Vec<[f32; 3]>, Vec<[u32; 3]>) {
    let outline = [[0.0, 0.0], [6.0, 0.0], [6.0, 2.0], [2.0, 2.0], [2.0, 4.0], [0.0, 4.0]];
    let points = [1.0, 2.0].iter().flat_map(|z| outline.iter().map(|[x, y]| [*x, *y, *z])).collect();
    let caps = [[0, 1, 3], [1, 2, 3], [0, 3, 4], [0, 4, 5]];
    let mut triangles: Vec<[u32; 3]> =
        caps.iter().flat_map(|[a, b, c]| [[*a, *c, *b], [a + 6, b + 6, c + 6]]).collect();
    for i in 0..6 {
        let j = (i + 1) % 6;
        triangles.extend([[i, j, j + 6], [i, j + 6, i + 6]]);
    }
    (points, triangles)
}

/// Writes the prism as OBJ, binary STL and MSH to a folder.
fn write_meshes(folder: &Path) {
    let (points, triangles) = prism();
    let lines = points.iter().map(|[x, y, z]| format!("v {x} {y} {z}\n"));
    let faces = triangles.iter().map(|[a, b, c]| format!("f {} {} {}\n", a + 1, b + 1, c + 1));
    std::fs::write(folder.join("prism.obj"), lines.chain(faces).collect::<String>()).unwrap();
    let bytes = |p: &[f32; 3]| p.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let mut stl = vec![0; 80];
    stl.extend((triangles.len() as u32).to_le_bytes());
    for triangle in &triangles {
        stl.extend([0; 12]);
        triangle.iter().for_each(|i| stl.extend(bytes(&points[*i as usize])));
        stl.extend([0; 2]);
    }
    std::fs::write(folder.join("prism.stl"), stl).unwrap();
    let sizes = [points.len() as u32, 0, 0, triangles.len() as u32];
    let mut msh: Vec<u8> = sizes.iter().flat_map(|x| x.to_le_bytes()).collect();
    points.iter().for_each(|p| msh.extend(bytes(p)));
    msh.extend(triangles.iter().flatten().flat_map(|i| i.to_le_bytes()));
    std::fs::write(folder.join("prism.msh"), msh).unwrap();
}

/// Inertias from meshes agree with MuJoCo for all formats, fillings, scales and fitted primitives.
#[test]
fn inertias_of_meshes_agree_with_mujoco() {
    let folder = std::env::temp_dir().join(format!("inertial-meshes-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("parts")).unwrap();
    write_meshes(&folder.join("parts"));
    let (mut assets, mut bodies) = (String::new(), String::new());
    let mut add = |asset: &str, geom: &str| {
        let name = format!("m{}", assets.lines().count());
        writeln!(assets, "<mesh name=\"{name}\" {asset}/>").unwrap();
        writeln!(
            bodies,
            "<body pos=\".1 .2 .3\"><joint type=\"ball\"/><geom mesh=\"{name}\" pos=\".3 .1 0\" euler=\"10 20 30\" {geom}/></body>"
        )
        .unwrap();
    };
    for filling in ["", "inertia=\"convex\"", "inertia=\"exact\"", "inertia=\"legacy\"", "inertia=\"shell\""]
    {
        for format in ["obj", "stl", "msh"] {
            add(&format!("file=\"prism.{format}\" {filling}"), "type=\"mesh\"");
        }
        add(
            &format!("file=\"prism.obj\" {filling} refpos=\"1 2 3\" refquat=\"1 2 3 4\" scale=\"1 2 -.5\""),
            "type=\"mesh\" density=\"300\"",
        );
        add(&format!("file=\"prism.stl\" {filling} scale=\".5 .5 .5\""), "type=\"mesh\" mass=\"3\"");
        for shape in ["sphere", "capsule", "cylinder", "ellipsoid", "box"] {
            add(&format!("file=\"prism.obj\" {filling}"), &format!("type=\"{shape}\" fitscale=\"1.5\""));
        }
    }
    add("vertex=\"0 0 0 4 0 0 0 2 0 0 0 8 1 .5 .5\"", "type=\"mesh\"");
    add("vertex=\"0 0 0 4 0 0 0 2 0 0 0 8\" face=\"0 2 1 0 1 3 0 3 2 1 2 3\"", "type=\"mesh\"");
    add("file=\"prism.obj\"", "type=\"box\" shellinertia=\"true\"");
    let count = assets.lines().count();
    let model = |compiler: &str| {
        format!(
            "<mujoco><compiler {compiler}/><asset>{assets}</asset>\
             <default><mesh maxhullvert=\"-1\"/></default><worldbody>{bodies}</worldbody></mujoco>"
        )
    };
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    std::fs::write(path("plain.xml"), model("meshdir=\"parts\"")).unwrap();
    std::fs::write(path("total.xml"), model("assetdir=\"parts/\" settotalmass=\"10\"")).unwrap();
    let mechanism = load(Path::new(&path("plain.xml"))).unwrap();
    assert_eq!(mechanism.bodies().iter().filter(|b| b.inertia.mass > 0.0).count(), count);
    let output = python::run("oracle_mujoco.py", &[&path("plain.xml"), &path("total.xml")]);
    let compared = output.map(|output| compare_all(&output).len());
    // The error names the path of the missing file.
    std::fs::remove_file(folder.join("parts/prism.stl")).unwrap();
    let error = load(Path::new(&path("plain.xml"))).unwrap_err().to_string();
    assert!(error.contains("parts/prism.stl") && error.lines().count() == 1, "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(compared.is_none_or(|compared| compared == 2), "{compared:?}");
}

/// MuJoCo reads written models with the new inertias of all bodies and the new dynamics of all joints.
#[test]
fn written_models() {
    let folder = std::env::temp_dir().join(format!("inertial-written-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (mut rng, mut written) = (Rng(3), Vec::new());
    for path in models("mjcf_models") {
        // A total mass and actuator inertias would change the written values.
        let changing = [" settotalmass=\"12\"", " armature=\"0.05\" damping=\"0.2\"", " armature=\"0.01\""];
        let text = std::fs::read_to_string(&path).unwrap();
        let text = changing.iter().fold(text, |text, part| text.replace(part, ""));
        let old = read::model(&text, &read::no_includes).unwrap().build(&BuildOptions::default()).unwrap();
        let parts = || old.bodies().iter().filter(|b| b.kind == BodyKind::Link);
        let bodies: Vec<_> = parts().map(|b| (b.name.as_str(), rng.inertia())).collect();
        let joints: Vec<_> = old
            .joints()
            .iter()
            .filter(|j| j.joint_type.nv() == 1 && j.follows.is_none())
            .map(|j| {
                (j.name.as_str(), NewDynamics { armature: Some(rng.range(0.0, 0.1)), ..Default::default() })
            })
            .collect();
        let new = write_bodies(&text, &BuildOptions::default(), &bodies, &joints).unwrap();
        let name = folder.join(Path::new(&path).file_name().unwrap());
        std::fs::write(&name, &new.text).unwrap();
        let new = load(&name).unwrap();
        for (body, (_, wanted)) in new.bodies().iter().filter(|b| b.kind == BodyKind::Link).zip(&bodies) {
            let found = body.inertia.parameters();
            let error = relative_error(found.as_slice(), wanted.parameters().as_slice(), 1e-9);
            assert!(error < 1e-12, "{path} {}: {error}", body.name);
        }
        written.push(name.to_string_lossy().into_owned());
    }
    let arguments: Vec<&str> = written.iter().map(String::as_str).collect();
    let output = python::run("oracle_mujoco.py", &arguments);
    let compared = output.map(|output| compare_all(&output).len());
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(compared.is_none_or(|compared| compared == written.len()), "{compared:?} of {}", written.len());
}

#[test]
#[ignore = "long: every model of two packages, by MuJoCo"]
fn shipped_models() {
    let Some(output) = python::run("oracle_mujoco.py", &["--shipped"]) else { return };
    let compared = compare_all(&output);
    println!("{} shipped models agree with MuJoCo", compared.len());
    // Models of the pinned packages that have coordinates and no unsupported feature; a smaller number indicates a regression of
    // the reader.
    assert!(compared.len() >= 41);
}

/// Dependent velocities, accelerations and torques agree at closed states computed by MuJoCo. MuJoCo cuts the loops: the torques
/// are `Gᵀ τ` with the map `G` from the independent joints, where `J G = 0` for its constraint Jacobian `J`.
#[test]
fn loops_move_as_in_mujoco() {
    let paths = models("mjcf_loops");
    let mut arguments = vec!["--loops"];
    arguments.extend(paths.iter().map(String::as_str));
    let Some(output) = python::run("oracle_mujoco.py", &arguments) else { return };
    assert_eq!(output.lines().count(), paths.len());
    for line in output.lines() {
        let expected: Value = serde_json::from_str(line).unwrap();
        let path = expected["path"].as_str().unwrap();
        let robot = load(Path::new(path)).unwrap();
        let closed = ClosedMechanism::new(&robot).unwrap();
        let mut ws = closed.workspace();
        let (nv, n) = (robot.nv(), closed.dof());
        let mut worst = 0.0f64;
        for sample in expected["samples"].as_array().unwrap() {
            let [q, v, a, torques] = ["q", "v", "a", "torques"].map(|k| numbers(&sample[k]));
            assert!(closed.residual(&mut ws, &q).unwrap() < 1e-11, "{path}: the loops are other ones");
            let pick = |x: &[f64]| -> Vec<f64> { closed.independent().iter().map(|&i| x[i]).collect() };
            let (mut full_v, mut full_a) = (vec![0.0; nv], vec![0.0; nv]);
            closed.accelerations(&mut ws, &q, &pick(&v), &pick(&a), &mut full_v, &mut full_a).unwrap();
            let mut tau = vec![0.0; n];
            closed.inverse_dynamics(&mut ws, &q, &pick(&v), &pick(&a), &mut tau).unwrap();
            let rows = numbers(&sample["jacobian"]);
            let jacobian = DMatrix::from_row_slice(rows.len() / nv, nv, &rows);
            let map = closed.velocity_map(&mut ws, &q).unwrap().clone();
            assert!((jacobian * &map).amax() < 1e-10, "{path}: the map leaves MuJoCo's loops open");
            let reduced: Vec<f64> = map.tr_mul(&DVector::from_vec(torques)).data.into();
            // The oracle differentiates its Jacobian numerically (1e-10); all other errors are rounding errors.
            for (what, found, expected) in
                [("velocities", &full_v, &v), ("accelerations", &full_a, &a), ("torques", &tau, &reduced)]
            {
                let error = relative_error(found, expected, 0.0);
                assert!(error < 1e-8, "{path}: {what} differ by {error:.1e}");
                worst = worst.max(error);
            }
        }
        println!("{path}: {n} of {nv} coordinates independent, largest relative error {worst:.1e}");
    }
}
