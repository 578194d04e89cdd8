//! MJCF reader: interpretation of the format, and error messages. The comparison with MuJoCo is in `mujoco.rs`.

#![allow(clippy::unwrap_used)]

use inertial::Error;
use inertial::mechanism::{Base, BodyKind, BuildOptions, JointType, Mechanism, MechanismBuilder, read};
use inertial::spatial::{Inertia, Pose};
use nalgebra::{Matrix3, Vector3, vector};

fn describe(text: &str) -> Result<MechanismBuilder, Error> {
    read::model(text, &read::no_includes)
}

fn load(text: &str) -> Mechanism {
    describe(text).unwrap().build(&BuildOptions::default()).unwrap()
}

/// Creates a model with `inside` in its world.
fn world(inside: &str) -> String {
    format!("<mujoco>\n<worldbody>\n{inside}\n</worldbody>\n</mujoco>")
}

/// Returns the error of reading or building, on one line.
fn complaint(text: &str) -> String {
    let error = match describe(text) {
        Err(error) => error,
        Ok(builder) => builder.build(&BuildOptions::default()).expect_err(text),
    };
    let message = error.to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

#[track_caller]
fn assert_complains(text: &str, expected: &str) {
    let message = complaint(text);
    assert!(message.contains(expected), "\"{message}\" lacks \"{expected}\"");
}

#[track_caller]
fn assert_same(found: &Inertia<f64>, expected: &Inertia<f64>) {
    let difference = (found.parameters() - expected.parameters()).amax();
    assert!(difference < 1e-12 * (1.0 + expected.parameters().amax()), "{found:?} for {expected:?}");
}

/// Returns the inertia of a body whose only geom has these attributes.
fn geom_inertia(attributes: &str) -> Inertia<f64> {
    let mechanism = load(&world(&format!("<body><joint/><geom {attributes}/></body>")));
    mechanism.bodies()[0].inertia
}

/// Sums point masses on a fine grid: the inertia by its definition, per unit of mass.
fn summed(inside: impl Fn(Vector3<f64>) -> bool, half: Vector3<f64>) -> Inertia<f64> {
    const N: usize = 120;
    let mut sum = Inertia::zero();
    let at = |k: usize, half: f64| half * ((2 * k + 1) as f64 / N as f64 - 1.0);
    for i in 0..N {
        for j in 0..N {
            for k in 0..N {
                let p = vector![at(i, half.x), at(j, half.y), at(k, half.z)];
                if inside(p) {
                    sum += Inertia::from_com(1.0, p, Matrix3::zeros());
                }
            }
        }
    }
    Inertia::from_parameters(&(sum.parameters() / sum.mass))
}

#[test]
fn inertias_of_solids_equal_sums_over_points() {
    let capsule = |p: Vector3<f64>| {
        let beyond = (p.z.abs() - 0.3).max(0.0);
        vector![p.x, p.y, beyond].norm() < 0.2
    };
    let cases: [(&str, Inertia<f64>); 5] = [
        ("type='sphere' size='0.2'", summed(|p| p.norm() < 0.2, Vector3::repeat(0.2))),
        ("type='capsule' size='0.2 0.3'", summed(capsule, vector![0.2, 0.2, 0.5])),
        ("type='cylinder' size='0.2 0.3'", summed(|p| p.x.hypot(p.y) < 0.2, vector![0.2, 0.2, 0.3])),
        ("type='box' size='0.1 0.2 0.3'", summed(|_| true, vector![0.1, 0.2, 0.3])),
        (
            "type='ellipsoid' size='0.1 0.2 0.3'",
            summed(|p| p.component_div(&vector![0.1, 0.2, 0.3]).norm() < 1.0, vector![0.1, 0.2, 0.3]),
        ),
    ];
    for (attributes, expected) in cases {
        let found = geom_inertia(&format!("{attributes} mass='1'"));
        let error = (found.parameters() - expected.parameters()).amax();
        // A grid of 120 points per side has an error of about half a percent at curved surfaces.
        assert!(
            error < 5e-3 * expected.rotational.amax(),
            "{attributes}: {error:e} of {:?}",
            expected.rotational
        );
    }
}

#[test]
fn a_shell_is_the_difference_of_two_solids() {
    // The shell is the limit of the mass between two solids whose sizes differ by a small step (exactly, except for ellipsoids,
    // where MuJoCo defines it this way).
    let step = 1e-4;
    for (kind, size) in [
        ("sphere", vec![0.2]),
        ("cylinder", vec![0.2, 0.3]),
        ("box", vec![0.1, 0.2, 0.3]),
        ("ellipsoid", vec![0.1, 0.2, 0.3]),
    ] {
        let solid = |grow: f64| {
            let sizes: Vec<String> = size.iter().map(|s| (s + grow).to_string()).collect();
            geom_inertia(&format!("type='{kind}' size='{}'", sizes.join(" ")))
        };
        let layer = solid(step) - solid(-step);
        let expected = layer.rotational / layer.mass;
        let sizes: Vec<String> = size.iter().map(ToString::to_string).collect();
        let shell =
            geom_inertia(&format!("type='{kind}' size='{}' shellinertia='true' mass='1'", sizes.join(" ")));
        assert!((shell.rotational - expected).amax() < 1e-6 * expected.amax(), "{kind}");
    }
    // The half length of a capsule does not grow with its radius.
    let solid = |r: f64| geom_inertia(&format!("type='capsule' size='{r} 0.3'"));
    let layer = solid(0.2 + step) - solid(0.2 - step);
    let shell = geom_inertia("type='capsule' size='0.2 0.3' shellinertia='true'");
    assert!((shell.rotational / shell.mass - layer.rotational / layer.mass).amax() < 1e-6);
    assert!((shell.mass - layer.mass / (2.0 * step)).abs() < 1e-6 * shell.mass);
}

#[test]
fn all_orientation_attributes_are_equivalent() {
    let about_z = |attributes: &str, compiler: &str| {
        let text = format!(
            "<mujoco><compiler {compiler}/><worldbody><body {attributes}><joint/></body></worldbody></mujoco>"
        );
        load(&text).bodies()[0].placement.rotation
    };
    let expected = Matrix3::new(0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0);
    for (attributes, compiler) in [
        ("quat='3 0 0 3'", ""),
        ("axisangle='0 0 2 90'", ""),
        ("axisangle='0 0 -2 -1.5707963267948966'", "angle='radian'"),
        ("euler='0 0 90'", ""),
        ("euler='90 0 0'", "eulerseq='zxy'"),
        ("xyaxes='0 5 0 -1 7 0'", ""),
    ] {
        assert!((about_z(attributes, compiler) - expected).amax() < 1e-15, "{attributes} {compiler}");
    }
    // Fixed axes are the convention of URDF; moving axes are the same rotations in the opposite order.
    let fixed = about_z("euler='10 20 30'", "eulerseq='XYZ'");
    let moving = about_z("euler='30 20 10'", "eulerseq='zyx'");
    let [r, p, y] = [10.0, 20.0, 30.0].map(f64::to_radians);
    let urdf = Pose::from_xyz_rpy([0.0; 3], [r, p, y]).rotation;
    assert!((fixed - urdf).amax() < 1e-15);
    assert!((moving - urdf).amax() < 1e-15);
    let z = about_z("zaxis='1 2 -2'", "");
    assert!((z.column(2) - vector![1.0, 2.0, -2.0] / 3.0).amax() < 1e-15);
}

#[test]
fn several_joints_make_a_chain_without_parameters() {
    let text = world(
        "<body name='b' pos='0 0 1'><joint name='x' type='slide' axis='1 0 0'/><joint name='turn' pos='0 0 .5'/>
         <joint name='nod' axis='0 1 0' pos='.1 0 0'/><geom size='.1'/><body name='c'><geom size='.1'/></body></body>",
    );
    let mechanism = load(&text);
    let kinds: Vec<_> = mechanism.bodies().iter().map(|b| (b.name.as_str(), b.kind)).collect();
    let massless = BodyKind::Massless;
    assert_eq!(kinds, [("b:x", massless), ("b:turn", massless), ("b", BodyKind::Link)]);
    assert_eq!(mechanism.parameter_count(), 10);
    // The frame of the body is that of the last joint. The MJCF frame is kept as a link, and child bodies are placed relative to
    // it.
    let find = |name: &str| mechanism.links().iter().find(|l| l.name == name).unwrap();
    assert_eq!(find("b.frame").pose, Pose::from_translation(vector![-0.1, 0.0, 0.0]));
    assert_eq!(find("c").pose, find("b.frame").pose);
    let inertia = mechanism.bodies()[2].inertia;
    assert!((inertia.com().unwrap() - vector![-0.1, 0.0, 0.0]).amax() < 1e-15);
}

#[test]
fn coordinates_are_those_of_mujoco() {
    // Zero displacement at the reference position; limits and springs in the coordinate of the joint.
    let text = world(
        "<body name='b' pos='1 0 0'><joint name='j' ref='90' range='-10 100' springref='45'/><geom size='.1'/></body>
         <body name='s'><joint name='k' type='slide' axis='0 0 1' ref='.5'/><geom size='.1'/></body>
         <body name='f' pos='1 2 3' quat='0 1 0 0'><freejoint name='free'/><geom size='.1'/></body>",
    );
    let mechanism = load(&text);
    let half = std::f64::consts::FRAC_PI_2;
    assert_eq!(mechanism.assembly(), [half, 0.5, 1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0]);
    let joint = &mechanism.joints()[0];
    assert!((joint.limits.lower + 10f64.to_radians()).abs() < 1e-15);
    assert!((joint.dynamics.rest - half / 2.0).abs() < 1e-15);
    let body = &mechanism.bodies()[0];
    let drawn = body.placement * body.joint_type.pose(&[half]);
    assert!((drawn.to_matrix() - Pose::from_translation(vector![1.0, 0.0, 0.0]).to_matrix()).amax() < 1e-15);
    let slide = &mechanism.bodies()[1];
    assert_eq!((slide.placement * slide.joint_type.pose(&[0.5])).translation, Vector3::zeros());
    // A floating body that is fixed stays at its pose in the model.
    let fixed = BuildOptions::default().with(|o| o.base = Some(Base::Fixed));
    let mechanism = describe(&text).unwrap().build(&fixed).unwrap();
    assert_eq!(mechanism.nv(), 2);
    let link = mechanism.links().iter().find(|l| l.name == "f").unwrap();
    assert_eq!(link.pose.translation, vector![1.0, 2.0, 3.0]);
}

#[test]
fn unnamed_elements_get_numbers() {
    let mechanism = load(&world(
        "<body><joint/><geom size='.1'/><body name='body3'><joint name='joint2'/><geom size='.1'/>
         <body><joint/><geom size='.1'/></body></body></body>",
    ));
    let bodies: Vec<_> = mechanism.bodies().iter().map(|b| b.name.as_str()).collect();
    let joints: Vec<_> = mechanism.joints().iter().map(|j| j.name.as_str()).collect();
    assert_eq!(bodies, ["body1", "body3", "body3_"]);
    assert_eq!(joints, ["joint0", "joint2", "joint2_"]);
}

#[test]
fn classes_hand_down_attribute_by_attribute() {
    let text = "<mujoco><default><joint damping='1' armature='.5'/><default class='a'><joint damping='2'/>
          <default class='b'><joint armature='.25' axis='1 0 0'/></default></default></default>
        <worldbody><body><joint name='main'/><geom size='1'/>
          <body childclass='a'><joint name='a'/><geom size='1'/>
            <body><joint name='b' class='b'/><geom size='1'/><body childclass='b'><joint name='c' axis='0 1 0'/>
              <geom size='1'/></body></body></body></body>
          <body><freejoint name='f'/><geom size='1'/></body></worldbody></mujoco>";
    let mechanism = load(text);
    let found: Vec<_> = mechanism
        .joints()
        .iter()
        .map(|j| (j.name.as_str(), j.dynamics.damping, j.dynamics.armature))
        .collect();
    assert_eq!(
        found,
        [("main", 1.0, 0.5), ("a", 2.0, 0.5), ("b", 2.0, 0.25), ("c", 2.0, 0.25), ("f", 0.0, 0.0)]
    );
    assert_eq!(mechanism.joints()[2].joint_type, JointType::Revolute { axis: Vector3::x() });
    assert_eq!(mechanism.joints()[3].joint_type, JointType::Revolute { axis: Vector3::y() });
}

#[test]
fn the_compiler_selects_the_source_of_inertias() {
    let body = "<body><joint/><inertial pos='0 0 1' mass='3' diaginertia='1 1 1'/>
        <geom size='.5' mass='2' group='3'/></body>";
    let mass = |compiler: &str| {
        load(&format!("<mujoco><compiler {compiler}/><worldbody>{body}</worldbody></mujoco>")).bodies()[0]
            .inertia
            .mass
    };
    assert_eq!(mass(""), 3.0);
    assert_eq!(mass("inertiafromgeom='true'"), 2.0);
    assert_eq!(mass("inertiafromgeom='true' inertiagrouprange='0 2'"), 3.0);
    assert_eq!(mass("boundmass='5'"), 5.0);
    assert!((mass("settotalmass='7'") - 7.0).abs() < 1e-15);
    let full =
        load(&world("<body><joint/><inertial pos='0 0 0' mass='1' fullinertia='1 2 3 .1 .2 .3'/></body>"));
    let expected = Matrix3::new(1.0, 0.1, 0.2, 0.1, 2.0, 0.3, 0.2, 0.3, 3.0);
    assert_eq!(full.bodies()[0].inertia.rotational, expected);
    // The triangle inequality is left to `check`, unless the model asks for balanced inertias.
    let lame = "<body><joint/><inertial pos='1 0 0' mass='2' diaginertia='1 2 6'/></body>";
    let kept = load(&world(lame)).bodies()[0].inertia;
    assert_same(
        &kept,
        &Inertia::from_com(2.0, Vector3::x(), Matrix3::from_diagonal(&vector![1.0, 2.0, 6.0])),
    );
    let text = format!("<mujoco><compiler balanceinertia='true'/><worldbody>{lame}</worldbody></mujoco>");
    let balanced = load(&text).bodies()[0].inertia;
    assert_same(&balanced, &Inertia::from_com(2.0, Vector3::x(), Matrix3::from_diagonal_element(3.0)));
}

#[test]
fn equalities_couple_lock_and_close() {
    let text = |equality: &str| {
        format!(
            "<mujoco><compiler angle='radian'/><worldbody>
               <body name='a'><joint name='x' ref='.1'/><geom size='.1'/>
                 <body name='b' pos='1 0 0'><joint name='y' ref='.2'/><geom size='.1'/></body></body>
               <body name='c' pos='0 1 0'><joint name='z' type='ball'/><geom size='.1'/><site name='s' pos='1 0 0'/></body>
             </worldbody><equality>{equality}</equality></mujoco>"
        )
    };
    let coupled = load(&text("<joint joint1='y' joint2='x' polycoef='.5 3'/>"));
    assert_eq!((coupled.nv(), coupled.bodies()[1].drive.ratio), (4, 3.0));
    // y − 0.2 = 0.5 + 3 (x − 0.1)
    assert!((coupled.bodies()[1].drive.offset - 0.4).abs() < 1e-15);
    let locked = load(&text("<joint joint1='y' polycoef='.5'/>"));
    assert_eq!(locked.joints().len(), 2);
    let link = locked.links().iter().find(|l| l.name == "b").unwrap();
    let expected = Pose::new(inertial::mechanism::rotation_about(&Vector3::z(), 0.5), Vector3::x());
    assert!((link.pose.to_matrix() - expected.to_matrix()).amax() < 1e-15);
    let closed = load(
        &text("<connect name='pin' body1='b' body2='c' anchor='0 1 0'/><weld site1='s' site2='s'/>")
            .replace("<weld site1='s' site2='s'/>", "<weld name='glue' body1='b'/>"),
    );
    let [pin, glue] = closed.loops() else { panic!("two loops") };
    assert_eq!((pin.joint_type, glue.joint_type), (JointType::Spherical, JointType::Fixed));
    // Both loops are closed in the drawn configuration, where the coordinates are the reference positions.
    assert_eq!(pin.predecessor.pose.translation, vector![0.0, 1.0, 0.0]);
    assert_eq!(pin.successor.pose.translation, vector![1.0, 0.0, 0.0]);
    assert_eq!(glue.successor.body, None);
    assert_eq!(glue.predecessor.pose.translation, vector![-1.0, 0.0, 0.0]);
    let off = describe(&text("<joint joint1='y' joint2='x' active='false'/>")).unwrap();
    assert!(off.warnings[0].contains("switched off"), "{:?}", off.warnings);
    assert_complains(
        &text("<joint joint1='y' joint2='x' polycoef='0 1 1'/>"),
        "a coupling that is not linear (polycoef; keep its first two coefficients",
    );
    assert_complains(&text("<joint joint1='z'/>"), "neither hinge nor slide");
    assert_complains(&text("<joint joint1='q'/>"), "line 5: <joint>: the joint \"q\" does not exist");
    assert_complains(&text("<tendon tendon1='q'/>"), "the tendon \"q\" does not exist");
    assert_complains(&text("<flex flex='q'/>"), "the constraint <flex> is not supported");
    assert_complains(&text("<connect body1='b'/>"), "it needs the attribute \"anchor\"");
    assert_complains(&text("<connect body1='b' anchor='0 0'/>"), "anchor has 2 numbers, expected 3");
    assert_complains(&text("<weld site1='s'/>"), "it needs the attribute \"site2\"");
}

#[test]
fn fixed_tendons_couple_several_joints() {
    let text = |equality: &str| {
        format!(
            "<mujoco><compiler angle='radian'/><worldbody>
               <body name='a'><joint name='x' ref='.1'/><geom size='.1'/>
                 <body name='b' pos='1 0 0'><joint name='y' ref='.2'/><geom size='.1'/>
                   <body name='c' pos='1 0 0'><joint name='z' ref='.3'/><geom size='.1'/></body></body></body>
             </worldbody><tendon>
               <fixed name='s'><joint joint='x' coef='1'/><joint joint='z' coef='4'/></fixed>
               <fixed name='t'><joint joint='y' coef='-2'/></fixed>
               <spatial name='u'><site site='p'/><site site='q'/></spatial>
             </tendon><equality>{equality}</equality></mujoco>"
        )
    };
    let drives = |text: &str| -> Vec<(usize, f64, f64)> {
        load(text).bodies().iter().map(|b| (b.drive.v, b.drive.ratio, b.drive.offset)).collect()
    };
    // (x − 0.1) + 4 (z − 0.3) = 0.5 + 3 · −2 (y − 0.2): z is two hinges in line.
    let both = text("<tendon tendon1='s' tendon2='t' polycoef='.5 3'/>");
    let found = drives(&both);
    assert_eq!(found[..3], [(0, 1.0, 0.0), (1, 1.0, 0.0), (0, -0.25, 0.0)]);
    let expected = 0.3 + (0.5 + 0.1 + 6.0 * 0.2) / 4.0;
    assert_eq!((found[3].0, found[3].1), (1, -1.5));
    assert!((found[3].2 - expected).abs() < 1e-15);
    assert_eq!(load(&both).parameter_count(), 30);
    // A repeated constraint adds nothing; another constant is a contradiction.
    let twice = "<tendon tendon1='s' tendon2='t' polycoef='.5 3'/><tendon tendon1='s' tendon2='t' polycoef='";
    assert_eq!(drives(&text(&format!("{twice}.5 3'/>"))), found);
    assert_complains(&text(&format!("{twice}.6 3'/>")), "it contradicts the constraints before it");
    // Three equations for three joints lock all of them.
    let all = "<tendon tendon1='s'/><tendon tendon1='t' polycoef='.4'/><joint joint1='x' joint2='y'/>";
    assert_eq!(load(&text(all)).nv(), 0);
    assert_complains(&text("<tendon tendon1='u'/>"), "the spatial tendon \"u\"");
    assert_complains(&text("<tendon tendon1='s' tendon2='t' polycoef='0 0 1'/>"), "not linear");
}

#[test]
fn files_include_files() {
    let include = |name: &str| match name {
        "parts/arm.xml" => Ok("<x><include file='hand.xml'/></x>".to_owned()),
        "parts/hand.xml" => Ok("<x>\n<body name='hand'><joint/><geom size='.1'/></body></x>".to_owned()),
        "loop.xml" => Ok("<x><include file='loop.xml'/></x>".to_owned()),
        "bad.xml" => Ok("<x>\n<body pos='1 2'/></x>".to_owned()),
        "broken.xml" => Ok("<x>\n<body>".to_owned()),
        _ => Err(format!("cannot read \"{name}\"")),
    };
    let read = |file: &str| read::model(&world(&format!("<include file='{file}'/>")), &include);
    let mechanism = read("parts/arm.xml").unwrap().build(&BuildOptions::default()).unwrap();
    assert_eq!(mechanism.bodies()[0].name, "hand");
    for (file, expected) in [
        ("loop.xml", "line 1: <include> in file \"loop.xml\": \"loop.xml\" is included already"),
        ("none.xml", "line 3: <include>: cannot read \"none.xml\""),
        ("bad.xml", "line 2: <body> in file \"bad.xml\": pos has 2 numbers, expected 3"),
        ("broken.xml", "file \"broken.xml\": "),
    ] {
        let message = read(file).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn unsupported_elements_are_named() {
    for (inside, expected) in [
        ("<replicate count='2'><geom size='1'/></replicate>", "<replicate> is not supported"),
        ("<attach model='m' prefix='p'/>", "<attach> is not supported"),
        ("<body><composite type='grid'/></body>", "<composite> is not supported"),
        ("<body><flexcomp type='grid'/></body>", "<flexcomp> is not supported"),
        ("<body><plugin plugin='p'/></body>", "<plugin> is not supported"),
        ("<body><spaceship/></body>", "line 3: <spaceship>: <spaceship> is not supported"),
        ("<frame scale='2'/>", "a frame with scale is not supported"),
        ("<body hovers='true'/>", "the attribute \"hovers\" is not supported"),
        (
            "<body name='b'><joint elastic='1'/></body>",
            "<joint> of <body name=\"b\">: the attribute \"elastic\"",
        ),
        (
            "<body name='b'><joint/><geom name='g' type='mesh' mesh='m'/></body>",
            "<geom name=\"g\">: there is no mesh \"m\"",
        ),
        ("<body name='b'><joint/><body><geom type='box' mesh='m'/></body></body>", "there is no mesh \"m\""),
    ] {
        assert_complains(&world(inside), expected);
    }
    // Meshes that do not contribute to a moving body are accepted.
    load(&world("<body><geom type='mesh' mesh='m'/></body>"));
    load(&world("<body><joint/><geom type='mesh' mesh='m' mass='0'/><geom size='.1'/></body>"));
    load(&world("<body><joint/><inertial pos='0 0 0' mass='1'/><geom type='mesh' mesh='m'/></body>"));
    assert_complains(
        "<mujoco><compiler coordinate='global'/></mujoco>",
        "coordinate=\"global\" is not supported",
    );
    assert_complains(
        "<mujoco><wormhole/></mujoco>",
        "line 1: <wormhole>: the section <wormhole> is not supported",
    );
    assert_complains("<mujoco><deformable><flex/></deformable></mujoco>", "<flex> is not supported");
    let tendon = "<mujoco><tendon><fixed name='t' armature='1'/></tendon></mujoco>";
    assert_complains(tendon, "<fixed name=\"t\">: armature on a tendon is not supported");
    let spring = describe("<mujoco><tendon><fixed name='t' stiffness='1'/></tendon></mujoco>").unwrap();
    let timed = describe(&world("<body><joint springdamper='.1 1'/><geom size='.1'/></body>")).unwrap();
    assert!(timed.warnings[0].contains("springdamper"), "{:?}", timed.warnings);
    assert_eq!(spring.warnings, ["line 1: <fixed name=\"t\">: its stiffness is left out"]);
}

#[test]
fn invalid_input_is_reported_with_location_and_reason() {
    for (inside, expected) in [
        ("<body pos='1 2 x'/>", "line 3: <body>: pos: \"x\" is not a finite number"),
        ("<body pos='1 2 nan'/>", "\"nan\" is not a finite number"),
        ("<body pos='1 2'/>", "pos has 2 numbers, expected 3"),
        ("<body quat='0 0 0 0'/>", "a quaternion of length zero"),
        ("<body quat='1 0 0 0' euler='0 0 0'/>", "only one of the attributes"),
        ("<body zaxis='0 0 0'/>", "zaxis has a direction without length"),
        ("<body><joint type='screw'/></body>", "type=\"screw\" is none of: hinge, slide, ball, free"),
        ("<body><joint axis='0 0 0'/></body>", "axis has a direction without length"),
        ("<body><joint range='1 1'/></body>", "the first number of range must be below the second"),
        ("<body><joint limited='maybe'/></body>", "limited=\"maybe\" is none of"),
        ("<body><body><freejoint/></body></body>", "a free joint needs a body of the world"),
        ("<body><freejoint/><joint/></body>", "a body with a free joint has no other joints"),
        ("<joint/>", "the world cannot have joints or inertia"),
        ("<body><inertial mass='1'/></body>", "it needs the attribute \"pos\""),
        ("<body><inertial pos='0 0 0'/></body>", "it needs the attribute \"mass\""),
        (
            "<body><inertial pos='0 0 0' mass='1'/><inertial pos='0 0 0' mass='1'/></body>",
            "more than one <inertial>",
        ),
        (
            "<body><inertial pos='0 0 0' mass='1' diaginertia='1 1 1' fullinertia='1 1 1 0 0 0'/></body>",
            "both",
        ),
        ("<body><geom/></body>", "its shape needs 1 positive sizes, not 0 0 0"),
        ("<body><geom type='box' size='1 1'/></body>", "needs 3 positive sizes"),
        ("<body><geom size='1 1 1 1'/></body>", "size has 4 numbers, expected 1 to 3 numbers"),
        (
            "<body><geom type='capsule' size='1' fromto='0 0 0 0 0 0'/></body>",
            "fromto has a direction without length",
        ),
        ("<body><geom size='1' fromto='0 0 0 0 0 1'/></body>", "fromto needs a capsule"),
        ("<body><geom class='c' size='1'/></body>", "there is no default class \"c\""),
        ("<body childclass='c'/>", "there is no default class \"c\""),
        ("<body name='a'/><body name='a'/>", "the name is taken"),
        ("<body name='world'/>", "line 3: <body name=\"world\">: the name is taken by the world itself"),
        ("<body><joint name='j'/><joint name='j'/></body>", "the name is taken"),
        ("<body><site name='s'/><site name='s'/></body>", "sites need distinct names"),
        ("<include/>", "it needs the attribute \"file\""),
        ("<include file='a.xml'/>", "the model was not read from a file"),
    ] {
        assert_complains(&world(inside), expected);
    }
    assert_complains("<mujocoinclude/>", "the outermost element is <mujocoinclude>, expected <mujoco>");
    assert_complains("<mujoco><compiler eulerseq='xy'/></mujoco>", "eulerseq needs three letters");
    assert_complains(
        "<mujoco><compiler angle='turns'/></mujoco>",
        "angle=\"turns\" is none of: degree, radian",
    );
    assert_complains(
        "<mujoco><default class='x'/></mujoco>",
        "the outermost class is \"x\", expected \"main\"",
    );
    assert_complains("<mujoco><default><default/></default></mujoco>", "it needs the attribute \"class\"");
    let twice = "<mujoco><default><default class='a'/><default class='a'/></default></mujoco>";
    assert_complains(twice, "there is a class \"a\" already");
    let silent = "<mujoco><compiler autolimits='false'/><worldbody><body><joint range='0 1'/></body></worldbody></mujoco>";
    assert_complains(silent, "but not limited");
    assert_complains("<mujoco><worldbody>", "ends too early");
}

#[test]
fn deep_texts_are_refused_or_read_but_never_overflow() {
    let nested = |depth: usize, tag: &str| {
        let (open, close) = (format!("<{tag}>").repeat(depth), format!("</{tag}>").repeat(depth));
        world(&format!("{open}{close}"))
    };
    for tag in ["body", "frame"] {
        assert!(describe(&nested(200, tag)).is_ok());
        assert_complains(&nested(100_000, tag), "nested deeper");
    }
}

#[test]
fn extreme_numbers_stay_errors_or_numbers() {
    // An overflow in the computation of inertias must give an error, not a panic or an endless loop.
    let huge = "<mujoco><compiler balanceinertia='true'/><worldbody><body><joint/>
        <geom type='box' size='1e150 1e150 1e150'/></body></worldbody></mujoco>";
    assert_complains(huge, "not a finite number");
    let tiny = load(&world("<body quat='1e-200 0 0 1e-200'><joint/><geom size='1e-100'/></body>"));
    assert!((tiny.bodies()[0].placement.rotation[(1, 0)] - 1.0).abs() < 1e-15);
}

#[test]
fn constraints_on_mocap_bodies_are_left_out() {
    let text = r#"<mujoco><worldbody><body name="hand"><joint name="j"/><geom size="0.1"/><site name="s"/></body>
      <body name="leader" mocap="true"><site name="m"/></body></worldbody>
      <equality><weld body1="leader" body2="hand"/><connect site1="s" site2="m"/></equality></mujoco>"#;
    let model = inertial::mechanism::read::model(text, &inertial::mechanism::read::no_includes).unwrap();
    assert!(model.loops.is_empty());
    let reported = model.warnings.iter().filter(|w| w.contains("mocap body and is left out")).count();
    assert_eq!(reported, 2, "{:?}", model.warnings);
}
