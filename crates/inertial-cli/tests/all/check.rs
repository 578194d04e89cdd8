//! Tests of `inertial check` as a program.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use crate::common;
use crate::common::{Folder, inertial, refused, run, run_with_input, urdf};
use serde_json::{Value, json};

#[test]
fn json_has_the_promised_shape() {
    let folder = Folder::new();
    let file = folder.file("bad.urdf", urdf(&inertial("1.2", "0.1", "0.1", "0.3")));
    let result = run(&["check", &file, "--json"]);
    assert_eq!((result.status, result.stderr.as_str()), (1, ""));
    let mut value = result.json();
    let body = value["bodies"][0].as_object_mut().unwrap();
    let eigenvalue = body.remove("pseudo_inertia_min_eigenvalue").unwrap().as_f64().unwrap();
    assert!((eigenvalue + 0.05).abs() < 1e-12);
    let nearest = body.remove("nearest").unwrap();
    // Second moments along x and y are (0.1 + 0.3 - 0.1)/2; the one along z is negative.
    let manifold = body.remove("manifold").unwrap();
    assert_eq!((&manifold["m"], &manifold["c"]), (&json!(1.2), &json!([0.1, 0.0, 0.0])));
    let moments: Vec<f64> = manifold["L"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    assert!(moments.iter().zip([0.15, 0.15, -0.05]).all(|(x, y)| (x - y).abs() < 1e-12), "{moments:?}");
    assert_eq!(manifold["Q"].as_array().unwrap().len(), 3);
    assert_eq!((&nearest["mass"], &nearest["com"]), (&json!(1.2), &json!([0.1, 0.0, 0.0])));
    let reason = "Ixx + Iyy = 0.2 < Izz = 0.3 kg m² about the centre of mass: no mass distribution has this";
    let expected = json!({"schema": "inertial/check/1", "consistent": false, "bodies": [
        {"name": "arm", "mass": 1.2, "consistent": false, "violations": ["triangle-inequality"], "reasons": [reason]}]});
    assert_eq!(value, expected);
}

#[test]
fn links_without_inertial_are_listed_with_all_only() {
    let folder = Folder::new();
    let file = folder.file("good.urdf", urdf(&inertial("1", "0.1", "0.1", "0.1")));
    let names = |args: &[&str]| -> Vec<Value> {
        run(args).json()["bodies"].as_array().unwrap().iter().map(|b| b["name"].clone()).collect()
    };
    assert_eq!(names(&["check", &file, "--json"]), ["arm"]);
    assert_eq!(names(&["check", "--all", &file, "--json"]), ["base", "arm"]);
    let result = run(&["check", &file, "--all", "--json"]);
    assert_eq!(result.status, 0);
    assert_eq!(result.json()["bodies"][0]["consistent"], true);
}

#[test]
fn exit_status_answers_the_question() {
    let folder = Folder::new();
    let good = folder.file("good.urdf", urdf(&inertial("1", "0.1", "0.1", "0.1")));
    let negative = folder.file("negative.urdf", urdf(&inertial("-1", "0.1", "0.1", "0.1")));
    let massless = folder.file("massless.urdf", urdf(&inertial("0", "0", "0", "0")));
    let hollow = folder.file("hollow.urdf", urdf(&inertial("0", "0.1", "0.1", "0.1")));
    assert_eq!(run(&["check", &good]).status, 0);
    assert_eq!(run(&["check", &massless]).status, 0);
    let violations = |file: &str| run(&["check", file, "--json"]).json()["bodies"][0]["violations"].clone();
    assert_eq!((run(&["check", &negative]).status, violations(&negative)), (1, json!(["mass"])));
    assert_eq!((run(&["check", &hollow]).status, violations(&hollow)), (1, json!(["mass"])));
    assert_eq!(run(&["check", &good, &negative]).status, 1);
    assert_eq!(run(&["check", &good, &massless, "builtin:puma560"]).status, 0);
}

#[test]
fn several_files_give_one_object() {
    let folder = Folder::new();
    let good = folder.file("good.urdf", urdf(&inertial("1", "0.1", "0.1", "0.1")));
    let value = run(&["check", &good, "builtin:space-dual-arm", "--json"]).json();
    assert_eq!((&value["schema"], &value["consistent"]), (&json!("inertial/check/1"), &json!(false)));
    assert_eq!((&value["files"][0]["file"], &value["files"][0]["consistent"]), (&json!(good), &json!(true)));
    assert_eq!(value["files"][1]["bodies"].as_array().unwrap().len(), 7);
}

#[test]
fn one_bad_file_does_not_hide_the_others() {
    let folder = Folder::new();
    let good = folder.file("good.urdf", urdf(&inertial("1", "0.1", "0.1", "0.1")));
    let result = run(&["check", "absent.urdf", &good, "gone.urdf"]);
    assert_eq!(result.status, 2);
    assert!(result.stdout.contains("1 body, all physically consistent"), "{}", result.stdout);
    assert_eq!(
        result.stderr,
        "inertial: absent.urdf: there is no such file\ninertial: gone.urdf: there is no such file\n"
    );
    assert_eq!(run(&["check", "absent.urdf", &good, "--json"]).stdout, "");
}

#[test]
fn rotors_are_checked_by_name() {
    let names: Vec<String> = run(&["check", "builtin:cheetah-leg", "--json"]).json()["bodies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|b| b["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["abduct", "thigh", "shank", "hip_roll.rotor", "hip_pitch.rotor", "knee.rotor"]);
}

#[test]
fn the_text_has_a_table_and_reasons() {
    let result = run(&["check", "builtin:space-dual-arm"]);
    assert_eq!(result.status, 1);
    for part in [
        "builtin:space-dual-arm\n",
        "no: inertia-not-positive, triangle-inequality",
        "L1: Ixx + Iyy = 4.99 < Izz = 20.51 kg m² about the centre of mass: no mass distribution has this\n",
        "L1: nearest consistent values: mass 50 kg, ixx ",
        "7 bodies, 6 physically impossible; ",
    ] {
        assert!(result.stdout.contains(part), "{part} is missing in\n{}", result.stdout);
    }
    assert!(!result.stdout.contains('\u{1b}'));
}

#[test]
fn fix_changes_only_inconsistent_inertias() {
    let folder = Folder::new();
    let text = urdf(&inertial("1.2", "0.1", "0.1", "0.3"));
    let bad = folder.file("bad.urdf", &text);
    let out = folder.path("fixed.urdf");
    let result = run(&["check", &bad, "--fix", "--out", out.to_str().unwrap()]);
    assert_eq!(result.status, 1, "{}", result.stderr);
    let last = format!("1 physically impossible; {} has the nearest consistent values\n", out.display());
    assert!(result.stdout.ends_with(&last), "{}", result.stdout);
    assert_eq!(run(&["check", out.to_str().unwrap()]).status, 0);
    let fixed = std::fs::read_to_string(&out).unwrap();
    let (head, tail) = (text.split("ixx=").next().unwrap(), text.split("</inertial>").nth(1).unwrap());
    assert!(fixed.starts_with(head) && fixed.ends_with(tail), "{fixed}");
    assert_eq!(folder.names(), ["bad.urdf", "fixed.urdf"]);
    // A consistent model is written unchanged.
    let good = urdf(&inertial("1", "0.1", "0.1", "0.1"));
    let result = run(&["check", &folder.file("good.urdf", &good), "--fix", "--out", out.to_str().unwrap()]);
    assert_eq!((result.status, std::fs::read_to_string(&out).unwrap()), (0, good));
}

#[test]
fn fix_works_on_mechanism_files_too() {
    let folder = Folder::new();
    let out = folder.path("fixed.toml");
    let out = out.to_str().unwrap();
    assert_eq!(run(&["check", "builtin:space-dual-arm", "--fix", "--out", out]).status, 1);
    let result = run(&["check", out, "--json", "--tolerance", "1e-12"]);
    assert_eq!(result.status, 0);
    let fixed = std::fs::read_to_string(out).unwrap();
    assert!(fixed.starts_with("# A free-flying robot"));
    // The correction keeps the masses.
    assert_eq!(result.json()["bodies"][5]["mass"], 35.0);
}

#[test]
fn fix_writes_completely_or_not_at_all() {
    let folder = Folder::new();
    let broken = folder.file("broken.urdf", "<robot name=\"r\"><link");
    let out = folder.file("out.urdf", "precious");
    refused(&["check", &broken, "--fix", "--out", &out]);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "precious");
    let nowhere = folder.path("no/such/folder/out.toml");
    let line = refused(&["check", "builtin:scara", "--fix", "--json", "--out", nowhere.to_str().unwrap()]);
    assert!(line.contains("out.toml: cannot be written: "), "{line}");
    let line =
        refused(&["check", "builtin:scara", "--fix", "--json", "--out", folder.path("").to_str().unwrap()]);
    assert!(line.ends_with("is a folder: give the name of a file"), "{line}");
    assert_eq!(folder.names(), ["broken.urdf", "out.urdf"]);
}

#[test]
fn standard_input_is_a_model() {
    let text = urdf(&inertial("1", "0.1", "0.1", "0.1"));
    assert_eq!(run_with_input(&["check", "-"], text.as_bytes()).status, 0);
    let line = common::one_line(&run_with_input(&["check", "-", "-"], text.as_bytes()));
    assert_eq!(line, "standard input can be read once only");
    let line = common::one_line(&run_with_input(&["check", "-"], b"<robot>"));
    assert!(line.starts_with("standard input: line 1: "), "{line}");
}

#[test]
fn printed_tables_pass_with_their_tolerance() {
    // Fast rows of table I of Traversaro et al. 2016, printed with three decimals: R10 and P.
    let folder = Folder::new();
    let row = |parameters: [f64; 10]| {
        let [m, hx, hy, hz, xx, xy, xz, yy, yz, zz] = parameters;
        let (x, y, z) = (hx / m, hy / m, hz / m);
        format!(
            "schema = \"inertial/mechanism/1\"\n[[bodies]]\nname = \"forearm\"\nparent = \"ground\"\n\
             joint = {{ name = \"elbow\", type = \"revolute\" }}\n\
             inertial = {{ mass = {m}, com = [{x}, {y}, {z}], inertia = {{ ixx = {}, ixy = {}, ixz = {}, iyy = {}, \
             iyz = {}, izz = {} }} }}\n",
            xx - m * (y * y + z * z),
            xy + m * x * y,
            xz + m * x * z,
            yy - m * (x * x + z * z),
            yz + m * y * z,
            zz - m * (x * x + y * y),
        )
    };
    let free =
        folder.file("r10.toml", row([1.82, 0.06, 0.002, 0.205, 0.032, 0.0014, -0.017, 0.036, 0.002, 0.008]));
    let manifold =
        folder.file("p.toml", row([1.82, 0.06, 0.002, 0.205, 0.034, 0.001, -0.015, 0.042, 0.001, 0.009]));
    assert_eq!(run(&["check", &free]).status, 1);
    assert_eq!(run(&["check", &manifold]).status, 1);
    assert_eq!(run(&["check", &free, "--tolerance", "1e-2"]).status, 1);
    assert_eq!(run(&["check", &manifold, "--tolerance", "1e-2"]).status, 0);
    let value = run(&["check", &free, "--json"]).json();
    let eigenvalue = value["bodies"][0]["pseudo_inertia_min_eigenvalue"].as_f64().unwrap();
    assert!((eigenvalue + 0.004_884_348_692).abs() < 1e-9);
}

#[cfg(unix)]
#[test]
fn a_device_is_written_and_not_replaced() {
    use std::os::unix::fs::FileTypeExt;
    let result = run(&["check", "builtin:space-dual-arm", "--fix", "--out", "/dev/null"]);
    assert!(result.status < 2, "{}", result.stderr);
    assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

#[test]
fn doubtful_bodies_are_named() {
    let folder = Folder::new();
    let filled = inertial("1", "1", "1", "1").replace("0.1 0 0", "0 0 0");
    let model = folder.file("filled.urdf", urdf(&filled));
    let found = run(&["check", &model, "--json"]);
    assert_eq!(found.status, 0, "{}", found.stderr);
    let body = &found.json()["bodies"][0];
    assert_eq!(body["doubts"], serde_json::json!(["density", "filled-in"]));
    assert!(body["doubt_reasons"][0].as_str().unwrap().contains("the density 0.06"), "{body}");
    let text = run(&["check", &model]).stdout;
    assert!(text.contains("yes, doubtful: density, filled-in"), "{text}");
    assert!(text.contains("1 body, all physically consistent, 1 doubtful"), "{text}");
    // The mass of a link of 10 cm cannot be a metre away.
    let shape = "<collision><geometry><box size=\"0.1 0.1 0.1\"/></geometry></collision>";
    let far = inertial("2", "0.01", "0.01", "0.01").replace("0.1 0 0", "1 0 0") + shape;
    let model = folder.file("far.urdf", urdf(&far));
    let body = run(&["check", &model, "--json"]).json()["bodies"][0].clone();
    assert_eq!(body["doubts"], serde_json::json!(["size"]), "{body}");
    assert_eq!(
        run(&["check", "builtin:puma560", "--json"]).json()["bodies"][0].get("violations").unwrap(),
        &serde_json::json!([])
    );
}

#[test]
fn bodies_beyond_their_meshes_are_doubtful() {
    let folder = Folder::new();
    // Tetrahedron of 10 cm, in millimetres, and a file of an unsupported format.
    folder.file("link.obj", "v 0 0 0\nv 100 0 0\nv 0 100 0\nv 0 0 100\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n");
    folder.file("link.dae", "<COLLADA/>");
    let mesh = |kind: &str, file: &str| {
        format!(
            "<{kind}><geometry><mesh filename=\"{file}\" scale=\"0.001 0.001 0.001\"/></geometry></{kind}>"
        )
    };
    let doubts = |com: &str, shapes: &str| {
        let body = inertial("0.2", "0.0001", "0.0001", "0.0001").replace("0.1 0 0", com) + shapes;
        let found = run(&["check", &folder.file("mesh.urdf", urdf(&body)), "--json"]);
        assert_eq!((found.status, found.stderr.as_str()), (0, ""));
        found.json()["bodies"][0].get("doubts").cloned().unwrap_or_else(|| json!([]))
    };
    let (near, far) = ("0.03 0.03 0.03", "0.03 0.03 0.3");
    for kind in ["visual", "collision"] {
        assert_eq!(doubts(near, &mesh(kind, "link.obj")), json!([]), "{kind}");
        assert_eq!(doubts(far, &mesh(kind, "link.obj")), json!(["size"]), "{kind}");
    }
    // If the size of the link is unknown, any centre of mass is possible.
    assert_eq!(doubts(far, &mesh("collision", "link.dae")), json!([]));
    assert_eq!(doubts(far, &(mesh("visual", "link.obj") + &mesh("collision", "link.dae"))), json!([]));
    assert_eq!(
        doubts(far, &(mesh("collision", "link.obj") + &mesh("visual", "missing.obj"))),
        json!(["size"])
    );
}

/// A body with inertia from a mesh keeps it when another body is corrected.
#[test]
fn models_with_meshes_are_corrected() {
    let folder = Folder::new();
    folder.file("part.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n");
    let text = "<mujoco><asset><mesh file=\"part.obj\" inertia=\"exact\"/></asset><worldbody>\
                <body name=\"a\"><joint/><geom type=\"mesh\" mesh=\"part\" density=\"600\"/>\
                <body name=\"b\"><joint/><inertial pos=\"0 0 0\" mass=\"1\" diaginertia=\"1 .1 .1\"/></body>\
                </body></worldbody></mujoco>";
    let model = folder.file("arm.xml", text);
    let out = folder.path("fixed.xml");
    let found = run(&["check", &model, "--json", "--fix", "--out", out.to_str().unwrap()]);
    assert_eq!(found.status, 1, "{}", found.stderr);
    assert!((found.json()["bodies"][0]["mass"].as_f64().unwrap() - 100.0).abs() < 1e-9);
    let fixed = run(&["check", out.to_str().unwrap(), "--json"]);
    assert_eq!(fixed.status, 0, "{}", fixed.stderr);
    std::fs::remove_file(folder.path("part.obj")).unwrap();
    let line = refused(&["check", &model]);
    assert!(
        line.ends_with(
            "cannot read the mesh \"part.obj\": there is no such STL, OBJ, MSH, COLLADA or glTF file"
        ),
        "{line}"
    );
}

/// Table I of paper 001 as printed: rows that can be the rounding of a consistent body.
#[test]
fn a_printed_table_is_checked_within_its_rounding() {
    let golden = common::data::golden("consistency/icub_table1.json");
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
    let rows = golden["rows"].as_array().unwrap();
    let mut table = String::from("# as printed\nbody,m,hx,hy,hz,Ixx,Ixy,Ixz,Iyy,Iyz,Izz\n");
    for (k, row) in rows.iter().enumerate() {
        let ten: Vec<String> =
            row["pi"].as_array().unwrap().iter().map(|x| format!("{:.3}", x.as_f64().unwrap())).collect();
        let _ = writeln!(table, "row{k},{}", ten.join(","));
    }
    let folder = Folder::new();
    let file = folder.file("table.csv", &table);
    let result = run(&["check", &file, "--json"]);
    assert_eq!((result.status, result.stderr.as_str()), (1, ""));
    let found = result.json();
    for (body, row) in found["bodies"].as_array().unwrap().iter().zip(rows) {
        assert_eq!(body["consistent"], row["consistent_up_to_rounding"], "{}", body["name"]);
        assert_eq!(body["rounding"]["consistent"], body["consistent"]);
        assert_eq!(body["violations"].as_array().unwrap().is_empty(), body["consistent"] == true);
    }
    let words = run(&["check", &file]);
    assert_eq!(words.status, 1);
    assert!(words.stdout.contains("yes, within its digits"), "{}", words.stdout);
    assert!(words.stdout.contains("10 bodies, 6 physically impossible\n"), "{}", words.stdout);
    // The consistent rows alone pass the check.
    let good: Vec<&str> =
        table.lines().enumerate().filter(|(k, _)| [0, 1, 3, 5].contains(k)).map(|(_, l)| l).collect();
    assert_eq!(run(&["check", &folder.file("good.csv", good.join("\n"))]).status, 0);
    for (text, said) in [
        ("", "expected a header"),
        ("body,m\n", "expected a header"),
        ("body,m,hx,hy,hz,Ixx,Ixy,Ixz,Iyy,Iyz,Izz\n", "has no bodies"),
        ("body,m,hx,hy,hz,Ixx,Ixy,Ixz,Iyy,Iyz,Izz\na,1,2\n", "line 2: 3 cells"),
        ("body,m,hx,hy,hz,Ixx,Ixy,Ixz,Iyy,Iyz,Izz\na,1,0,0,0,x,0,0,0,0,0\n", "'x' is not a number (Ixx)"),
    ] {
        let message = refused(&["check", &folder.file("bad.csv", text)]);
        assert!(message.contains(said), "{message}");
    }
    assert!(
        refused(&["check", &file, "--fix", "--out", &folder.file("o.urdf", "")])
            .contains("is a table, but --fix and --report need a model")
    );
}
