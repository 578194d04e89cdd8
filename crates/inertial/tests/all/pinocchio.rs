//! URDFs of real robots, compared with Pinocchio: kinematics, lumped inertias, torques, mass matrix, regressor.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::data::skip;
use crate::common::python::run;
use crate::common::relative_error;
use inertial::dynamics::{
    Frame, InverseDynamics, Workspace, bias_forces, forward_dynamics, kinetic_energy, mass_matrix, momentum,
    potential_energy,
};
use inertial::mechanism::read::urdf;
use inertial::mechanism::write::urdf::write_bodies;
use inertial::mechanism::{Base, BodyKind, BuildOptions, JointType, Mechanism};
use inertial::spatial::{Inertia, Parameters};
use serde_json::Value;

const SCRIPT: &str = "oracle_pinocchio.py";

/// Tolerance: both programs round differently along chains of up to a dozen joints. The largest difference seen is 4.7e-15;
/// twenty times that allows for other compilers and processors.
const TOLERANCE: f64 = 1e-13;

/// Arms, quadrupeds and humanoids, also with continuous and mimic joints, on fixed and floating bases.
const ROBOTS: [(&str, &str); 20] = [
    ("fixed", "ur_description/urdf/ur5_robot.urdf"),
    ("fixed", "panda_description/urdf/panda.urdf"),
    ("fixed", "xarm_description/urdf/xarm7.urdf"),
    ("fixed", "kinova_description/robots/kinova.urdf"),
    ("fixed", "z1_description/urdf/z1.urdf"),
    ("fixed", "pr2_description/urdf/pr2.urdf"),
    ("fixed", "tiago_pro_description/robots/tiago_pro.urdf"),
    ("fixed", "allegro_hand_description/urdf/allegro_left_hand.urdf"),
    ("fixed", "talos_data/robots/talos_full_v2.urdf"),
    ("floating", "go1_description/urdf/go1.urdf"),
    ("floating", "anymal_b_simple_description/robots/anymal.urdf"),
    ("floating", "solo_description/robots/solo12.urdf"),
    ("floating", "hyq_description/robots/hyq_no_sensors.urdf"),
    ("floating", "talos_data/robots/talos_reduced.urdf"),
    ("floating", "g1_description/urdf/g1_29dof_rev_1_0.urdf"),
    ("floating", "icub_description/robots/icub.urdf"),
    ("floating", "romeo_description/urdf/romeo.urdf"),
    ("floating", "baxter_description/urdf/baxter.urdf"),
    ("floating", "ur_description/urdf/ur5_robot.urdf"),
    ("floating", "hextilt_description/urdf/hextilt_flying_arm_5.urdf"),
];

fn options(base: &str) -> BuildOptions {
    BuildOptions::default().with(|o| o.base = (base == "floating").then_some(Base::Floating))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// Returns a matrix as a list of rows.
fn rows(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

/// Indices of our parameters (`… Ixx Ixy Ixz Iyy Iyz Izz`) in the order of Pinocchio (`… Ixx Ixy Iyy Ixz Iyz Izz`).
const PARAMETER: [usize; 10] = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9];

/// Robot as read by both programs.
struct Pair<'a> {
    name: String,
    oracle: &'a Value,
    robot: Mechanism,
    /// Index of our joint for each joint of the oracle.
    joints: Vec<usize>,
    /// Index of our velocity coordinate for each one of the oracle.
    velocity: Vec<usize>,
}

impl<'a> Pair<'a> {
    fn new(oracle: &'a Value) -> Self {
        let path = oracle["path"].as_str().unwrap();
        let base = oracle["base"].as_str().unwrap();
        let name = format!("{} ({base})", path.rsplit('/').next().unwrap());
        let mut model = urdf::read(&std::fs::read_to_string(path).unwrap()).unwrap();
        if oracle["mimic"] == false {
            model.joints.iter_mut().for_each(|joint| joint.mimic = None);
        }
        let robot = model.build(&options(base)).unwrap();
        let described = oracle["joints"].as_array().unwrap();
        let find = |joint: &Value| {
            let wanted = joint["name"].as_str().unwrap();
            let same = |name: &str| name == wanted || (wanted == "root_joint" && name == "root");
            robot.joints().iter().position(|j| same(&j.name)).unwrap_or_else(|| panic!("{name}: {wanted}"))
        };
        let joints: Vec<usize> = described.iter().map(find).collect();
        assert_eq!(joints.len(), robot.joints().len(), "{name}: number of joints");
        let mut velocity = vec![usize::MAX; robot.nv()];
        assert_eq!(oracle["nv"], robot.nv(), "{name}: degrees of freedom");
        for (described, &joint) in described.iter().zip(&joints) {
            let (first, joint) = (described["v"].as_u64().unwrap() as usize, &robot.joints()[joint]);
            assert_eq!(described["follows"], joint.follows.is_some(), "{name}: {}", joint.name);
            for (k, v) in joint.v_range().enumerate().filter(|_| joint.follows.is_none()) {
                velocity[first + k] = v;
            }
        }
        Self { name, oracle, robot, joints, velocity }
    }

    #[track_caller]
    fn close(&self, found: &[f64], expected: &[f64], what: &str) -> f64 {
        let error = relative_error(found, expected, 1e-3);
        assert!(error < TOLERANCE, "{}: {what}: relative error {error:.2e}", self.name);
        error
    }

    /// Returns our coordinates in the order of the oracle.
    fn reordered(&self, ours: &[f64]) -> Vec<f64> {
        self.velocity.iter().map(|&v| ours[v]).collect()
    }

    /// Returns the velocities of the oracle in our order.
    fn ours(&self, theirs: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; theirs.len()];
        self.velocity.iter().zip(theirs).for_each(|(&v, x)| out[v] = *x);
        out
    }

    /// Returns a row of our regressor in the oracle's order of bodies and parameters.
    fn by_oracle_joint(&self, row: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; 10 * self.joints.len()];
        for (joint, theirs) in self.joints.iter().zip(out.chunks_mut(10)) {
            let body = self.robot.joints()[*joint].body;
            let block = self.robot.parameter_blocks().iter().find(|block| block.body == body).unwrap();
            PARAMETER.iter().zip(&row[block.offset..]).for_each(|(&k, y)| theirs[k] = *y);
        }
        out
    }

    fn positions(&self, sample: &Value) -> Vec<f64> {
        let mut q = vec![f64::NAN; self.robot.nq()];
        let described = self.oracle["joints"].as_array().unwrap();
        for (described, &joint) in described.iter().zip(&self.joints) {
            let joint = &self.robot.joints()[joint];
            if joint.follows.is_none() {
                let values = &sample["q"][described["name"].as_str().unwrap()];
                q[joint.q_range()].copy_from_slice(&numbers(values));
            }
        }
        q
    }

    /// Compares the placements and lumped inertias of all bodies.
    fn compare_model(&self) -> f64 {
        let mut worst: f64 = 0.0;
        let described = self.oracle["joints"].as_array().unwrap();
        for (described, &joint) in described.iter().zip(&self.joints) {
            let body = &self.robot.bodies()[self.robot.joints()[joint].body];
            let what = format!("placement of {}", body.name);
            let rotation: Vec<f64> = rows(&described["rotation"]).concat();
            worst = worst.max(self.close(body.placement.rotation.transpose().as_slice(), &rotation, &what));
            let translation = numbers(&described["translation"]);
            worst = worst.max(self.close(body.placement.translation.as_slice(), &translation, &what));
            let parameters = numbers(&described["parameters"]);
            let parameters = PARAMETER.map(|k| parameters[k]);
            let what = format!("parameters of {}", body.name);
            worst = worst.max(self.close(body.inertia.parameters().as_slice(), &parameters, &what));
        }
        worst
    }

    /// Compares torques, mass matrix and regressor in random states.
    fn compare_dynamics(&self) -> f64 {
        let mut worst: f64 = 0.0;
        let (robot, n) = (&self.robot, self.robot.nv());
        let (parameters, dynamics) = (robot.parameters(), InverseDynamics::new(robot));
        let (mut workspace, mut scratch) = (Workspace::new(robot), dynamics.scratch());
        for sample in self.oracle["samples"].as_array().unwrap() {
            let q = self.positions(sample);
            let (v, a) = (self.ours(&numbers(&sample["v"])), self.ours(&numbers(&sample["a"])));
            let mut mass = vec![0.0; n * n];
            mass_matrix(robot, &mut workspace, &q, &mut mass).unwrap();
            for (&row, expected) in self.velocity.iter().zip(rows(&sample["mass"])) {
                let found = self.reordered(&mass[row * n..(row + 1) * n]);
                worst = worst.max(self.close(&found, &expected, "mass matrix"));
            }
            let expected = numbers(&sample["tau"]);
            let mut torques = vec![0.0; n];
            dynamics.rnea(&mut scratch, &q, &v, &a, &mut torques).unwrap();
            worst = worst.max(self.close(&self.reordered(&torques), &expected, "torques"));
            let mut bias = vec![0.0; n];
            bias_forces(robot, &mut workspace, &q, &v, &mut bias).unwrap();
            let sum: Vec<f64> = (0..n)
                .map(|i| bias[i] + mass[i * n..(i + 1) * n].iter().zip(&a).map(|(h, a)| h * a).sum::<f64>())
                .collect();
            worst = worst.max(self.close(&self.reordered(&sum), &expected, "mass matrix and bias forces"));

            let regressor = dynamics.torque_regressor(&mut scratch, &q, &v, &a).unwrap();
            let product: Vec<f64> = regressor
                .chunks(parameters.len())
                .map(|row| row.iter().zip(&parameters).map(|(y, p)| y * p).sum())
                .collect();
            worst = worst.max(self.close(&self.reordered(&product), &expected, "regressor times parameters"));
            // Pinocchio has no regressor for mimic joints.
            if let Some(expected) = sample.get("regressor").map(rows) {
                for (&row, expected) in self.velocity.iter().zip(&expected) {
                    let row = &regressor[row * parameters.len()..(row + 1) * parameters.len()];
                    worst = worst.max(self.close(&self.by_oracle_joint(row), expected, "regressor"));
                }
            }
            worst = worst.max(self.compare_totals(&mut workspace, sample, &q, &v));
            self.compare_forward(&mut workspace, &q, &v, &a, &torques, &mass);
        }
        worst
    }
}

impl Pair<'_> {
    /// Compares energies and momentum, if the oracle has them.
    fn compare_totals(&self, workspace: &mut Workspace, sample: &Value, q: &[f64], v: &[f64]) -> f64 {
        let Some(kinetic) = sample["kinetic"].as_f64() else { return 0.0 };
        let robot = &self.robot;
        let found =
            [kinetic_energy(robot, workspace, q, v).unwrap(), potential_energy(robot, workspace, q).unwrap()];
        let energies = self.close(&found, &[kinetic, sample["potential"].as_f64().unwrap()], "energies");
        let found = momentum(robot, workspace, q, v, Frame::World).unwrap();
        let found: Vec<f64> = found.linear.iter().chain(&found.angular).copied().collect();
        energies.max(self.close(&found, &numbers(&sample["momentum"]), "momentum"))
    }

    /// Checks that forward dynamics returns the accelerations, to the accuracy of the torques.
    fn compare_forward(
        &self,
        workspace: &mut Workspace,
        q: &[f64],
        v: &[f64],
        a: &[f64],
        torque: &[f64],
        mass: &[f64],
    ) {
        let n = self.robot.nv();
        let mut found = vec![0.0; n];
        if let Err(error) = forward_dynamics(&self.robot, workspace, q, v, torque, &mut found) {
            // Some files have moving links without mass, which the error reports.
            assert!(error.to_string().contains("not positive definite at joint"), "{}: {error}", self.name);
            println!("{}: {error}", self.name);
            return;
        }
        let times = |x: &[f64]| -> Vec<f64> {
            (0..n).map(|i| mass[i * n..(i + 1) * n].iter().zip(x).map(|(h, x)| h * x).sum()).collect()
        };
        self.close(&times(&found), &times(a), "forward dynamics");
    }
}

/// Returns the folder of the robots and the paths of all robots.
fn robots() -> Option<(String, Vec<String>)> {
    let all: Vec<String> = run(SCRIPT, &["list"])?.lines().map(str::to_owned).collect();
    let Some(folder) =
        all.first().and_then(|p| p.split_once("/robots/")).map(|(f, _)| format!("{f}/robots/"))
    else {
        skip("example-robot-data is not installed");
        return None;
    };
    Some((folder, all))
}

fn oracle(pairs: &[(&str, String)]) -> Option<Value> {
    let arguments: Vec<&str> = pairs.iter().flat_map(|(base, path)| [*base, path.as_str()]).collect();
    Some(serde_json::from_str(&run(SCRIPT, &arguments)?).unwrap())
}

#[test]
fn real_robots_agree() {
    let Some((folder, all)) = robots() else { return };
    let pairs: Vec<_> = ROBOTS.iter().map(|(base, path)| (*base, format!("{folder}{path}"))).collect();
    let pairs: Vec<_> = pairs.into_iter().filter(|(_, path)| all.contains(path)).collect();
    assert!(pairs.len() >= 10, "{pairs:?}");
    let Some(document) = oracle(&pairs) else { return };
    for robot in document.as_array().unwrap() {
        let pair = Pair::new(robot);
        let (model, dynamics) = (pair.compare_model(), pair.compare_dynamics());
        println!(
            "{:<32} {:>3} joints {:>3} dof: model {model:.1e}, dynamics {dynamics:.1e}",
            pair.name,
            pair.joints.len(),
            pair.robot.nv()
        );
    }
}

#[test]
fn every_joint_type_agrees() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/all_joints.urdf");
    let path = path.to_str().unwrap().to_owned();
    let Some(document) = oracle(&[("fixed", path.clone()), ("floating", path)]) else { return };
    for robot in document.as_array().unwrap() {
        let pair = Pair::new(robot);
        pair.compare_model();
        pair.compare_dynamics();
    }
}

/// Every URDF loads with fixed and floating base and accepts new values for all of its bodies.
#[test]
fn all_robots_load_and_take_new_values() {
    let Some((_, all)) = robots() else { return };
    let mut refused = Vec::new();
    for path in &all {
        let text = std::fs::read_to_string(path).unwrap();
        for base in ["fixed", "floating"] {
            match urdf::read(&text).and_then(|model| model.build(&options(base))) {
                Ok(robot) => take_new_values(&text, &robot, base),
                Err(error) => refused.push(format!("{path}: {error}")),
            }
        }
    }
    refused
        .retain(|message| !BROKEN.iter().any(|(file, why)| message.contains(file) && message.contains(why)));
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    println!("{} files", all.len());
}

/// Invalid files and their error messages.
const BROKEN: [(&str, &str); 2] = [
    ("/falcon.urdf", "joint \"top_propeller_joint\": its child link \"Z_propeller\" does not exist"),
    ("/ur3.urdf", "<robot>: it has no <link>"),
];

fn take_new_values(text: &str, robot: &Mechanism, base: &str) {
    let links = robot.bodies().iter().filter(|b| b.kind == BodyKind::Link);
    let heavier = |i: &Inertia<f64>| Inertia::from_parameters(&Parameters::from(i.parameters() * 1.25));
    let new: Vec<_> = links.map(|b| (b.name.as_str(), heavier(&b.inertia))).collect();
    let written = write_bodies(text, &options(base), &new, &[]).unwrap();
    let again = urdf::read(&written.text).unwrap().build(&options(base)).unwrap();
    for (body, (name, wanted)) in again.bodies().iter().zip(&new) {
        assert_eq!(body.name, *name);
        assert_ne!(body.joint_type, JointType::Fixed);
        let error =
            relative_error(body.inertia.parameters().as_slice(), wanted.parameters().as_slice(), 1e-9);
        // A dozen rounding errors between the text and the sum.
        assert!(error < 1e-13, "{}: {name}: {error:.1e}", robot.name());
    }
}
