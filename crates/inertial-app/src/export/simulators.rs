//! Link inertias for simulators and dynamics libraries.

use std::fmt::Write as _;

use inertial::nalgebra::Matrix3;

use super::loads::{central, diagonal_first, number, numbers};
use super::robot::Part;

/// Formats numbers, separated by blanks.
fn blanks(x: impl IntoIterator<Item = f64>) -> String {
    x.into_iter().map(number).collect::<Vec<_>>().join(" ")
}

/// Returns a quoted string of Python, which has the same syntax as in JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns a name that is safe inside an XML comment.
fn remark(text: &str) -> String {
    text.replace("--", "- -")
}

/// Returns the name of a part, with the links that make up a merged body.
fn described(part: &Part) -> String {
    if part.links.is_empty() {
        return part.name.clone();
    }
    format!("{}: sum of {}", part.name, part.links.join(", "))
}

/// Returns `<inertial>` elements of MJCF.
pub(super) fn mujoco(parts: &[Part]) -> String {
    let mut out = String::new();
    for part in parts {
        let (mass, com, tensor) = central(&part.inertia);
        let _ = write!(
            out,
            "<!-- {} -->\n<inertial pos=\"{}\" mass=\"{}\" fullinertia=\"{}\"/>\n",
            remark(&described(part)),
            blanks(com.iter().copied()),
            number(mass),
            blanks(diagonal_first(&tensor))
        );
    }
    out
}

/// Returns `<inertial>` elements of SDF.
pub(super) fn gazebo(parts: &[Part]) -> String {
    let mut out = String::new();
    for part in parts {
        let (mass, com, tensor) = central(&part.inertia);
        let _ = write!(
            out,
            "<!-- {} -->\n<inertial>\n  <pose>{} 0 0 0</pose>\n  <mass>{}</mass>\n  <inertia>\n",
            remark(&described(part)),
            blanks(com.iter().copied()),
            number(mass)
        );
        for (name, at) in [
            ("ixx", (0, 0)),
            ("ixy", (0, 1)),
            ("ixz", (0, 2)),
            ("iyy", (1, 1)),
            ("iyz", (1, 2)),
            ("izz", (2, 2)),
        ] {
            let _ = writeln!(out, "    <{name}>{}</{name}>", number(tensor[at]));
        }
        out.push_str("  </inertia>\n</inertial>\n");
    }
    out
}

/// Formats the rows of a tensor in Python.
fn rows(tensor: &Matrix3<f64>) -> String {
    let rows = (0..3).map(|i| format!("[{}]", numbers(tensor.row(i).iter().copied())));
    format!("[{}]", rows.collect::<Vec<_>>().join(", "))
}

/// Returns a Python table of links: mass, centre of mass, tensor about it.
fn table(parts: &[Part]) -> String {
    let mut out = String::from(
        "# Links: mass (kg), centre of mass (m), inertia about it (kg m2), in the frame of the link.\nLINKS = {\n",
    );
    for part in parts {
        let (mass, com, tensor) = central(&part.inertia);
        let _ = writeln!(
            out,
            "    {}: ({}, [{}], {}),",
            quoted(&part.name),
            number(mass),
            numbers(com.iter().copied()),
            rows(&tensor)
        );
    }
    out + "}\n"
}

/// Returns a Python function that sets the inertias of a Pinocchio model.
pub(super) fn pinocchio(parts: &[Part]) -> String {
    format!(
        "\"\"\"Inertias for Pinocchio: set_inertias(model) replaces those of a model of the same robot.\"\"\"\n\n\
         import numpy as np\nimport pinocchio as pin\n\n{}\n\n\
         def set_inertias(model: pin.Model) -> None:\n    \
         \"\"\"Replaces the inertias of all joints that move these links.\"\"\"\n    \
         found = {{}}\n    for name, (mass, com, inertia) in LINKS.items():\n        \
         frame = model.frames[model.getFrameId(name, pin.FrameType.BODY)]\n        \
         own = frame.placement.act(pin.Inertia(mass, np.array(com), np.array(inertia)))\n        \
         joint = frame.parentJoint\n        found[joint] = found[joint] + own if joint in found else own\n    \
         for joint, inertia in found.items():\n        model.inertias[joint] = inertia\n",
        table(parts)
    )
}

/// Returns a Python function that sets the inertias of a Drake plant.
pub(super) fn drake(parts: &[Part]) -> String {
    format!(
        "\"\"\"Inertias for Drake: set_inertias(plant, context) replaces those of a plant with the same robot.\"\"\"\n\n\
         from pydrake.multibody.plant import MultibodyPlant\n\
         from pydrake.multibody.tree import RotationalInertia, SpatialInertia\nfrom pydrake.systems.framework import Context\n\n{}\n\n\
         def set_inertias(plant: MultibodyPlant, context: Context) -> None:\n    \
         \"\"\"Replaces the inertias of these links.\"\"\"\n    \
         for name, (mass, com, i) in LINKS.items():\n        \
         central = RotationalInertia(i[0][0], i[1][1], i[2][2], i[0][1], i[0][2], i[1][2])\n        \
         inertia = SpatialInertia.MakeFromCentralInertia(mass, com, central)\n        \
         plant.GetBodyByName(name).SetSpatialInertiaInBodyFrame(context, inertia)\n",
        table(parts)
    )
}
