//! MJCF, MuJoCo's XML.
//!
//! The reader processes the content that affects motion and mass: the tree of bodies, frames and joints, inertias (explicit or from
//! geoms and meshes), default classes, the compiler's settings, gravity, `<equality>`, and the contributions of actuators to joints.
//! Visuals, contacts, sensors, keyframes and actuator forces affect neither and are skipped. Any other unknown element or attribute
//! is an error. Forces that a [`MechanismBuilder`] does not support (springs of tendons, fluids, gravity compensation) are listed
//! in its warnings.
//!
//! Relation of the mechanism to MuJoCo's model:
//! - the root link is `world`; unnamed bodies and joints are named after MuJoCo's indices (`body3`, `joint5`);
//! - a body's frame has the axes of the MJCF body and its origin at the anchor of the body's last hinge or ball joint; if this is
//!   not the MJCF body's origin, the link `BODY.frame` marks the MJCF frame;
//! - several joints of one body become a chain with links `BODY:JOINT` that have no parameters;
//! - coordinates of hinges and slides are those of `qpos`, including reference positions (`ref`); a ball's quaternion is
//!   `x y z w` here and `w x y z` in MuJoCo; a free joint's coordinates are the body's pose in the world, and its velocity is in
//!   the body's frame, whereas MuJoCo has the linear part in the world's frame;
//! - `connect` and `weld` close loops; `<equality><joint>` and `<equality><tendon>` (fixed tendons) couple joints, or lock one,
//!   which is then no longer a joint.

mod assemble;
mod body;
mod compiler;
mod coupling;
mod defaults;
mod equality;
mod geometry;
mod inertial;
mod joint;
mod mesh;
mod orientation;
mod passive;
mod schema;
mod source;

use super::repair::{Repaired, repaired};
use super::xml::{Element, Xml};
use super::{Include, MechanismBuilder, check_size};
use crate::Result;
use crate::spatial::Pose;
use body::Tree;
use compiler::Settings;
use defaults::Defaults;
use mesh::Meshes;
use source::Source;

/// Reads an MJCF text.
///
/// ```
/// use inertial::mechanism::read;
/// let text = r#"<mujoco model="pendulum"><worldbody><body name="rod">
///   <joint name="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -1" size="0.05" mass="2"/>
/// </body></worldbody></mujoco>"#;
/// let pendulum = read::mjcf::read(text, &read::no_includes)?.build(&Default::default())?;
/// assert_eq!(pendulum.bodies()[0].inertia.mass, 2.0);
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn read(text: &str, include: Include<'_>) -> Result<MechanismBuilder> {
    check_size(text)?;
    let Repaired { text, mut warnings, .. } = repaired(text);
    let main = Xml::parse(&text)?;
    let files = source::fetch(&main, include)?;
    warnings.extend(files.iter().flat_map(|file| file.warnings.iter().cloned()));
    let source = Source::new(main, &files)?;
    described(&source, Some(include), |mut builder, _, _| {
        builder.warnings.splice(0..0, warnings);
        Ok(builder)
    })
}

/// Reads a text without included files, for writers; inertias from meshes are omitted.
pub(crate) fn read_without_meshes(text: &str) -> Result<MechanismBuilder> {
    described(&Source::new(Xml::parse(&repaired(text).text)?, &[])?, None, |builder, _, _| Ok(builder))
}

/// Body of a text without included files, for writers.
pub(crate) struct BodyText<'a> {
    pub(crate) name: &'a str,
    pub(crate) element: Element<'a>,
    /// `<inertial>` of the body if present, with its parent frame in the body's frame.
    pub(crate) inertial: Option<(Element<'a>, Pose<f64>)>,
    /// Frame of the body in its link's frame.
    pub(crate) frame: Pose<f64>,
    /// Joints by name.
    pub(crate) joints: Vec<(&'a str, Element<'a>)>,
}

/// Passes the bodies of a repaired text without included files to a writer.
pub(crate) fn with_bodies<R>(text: &str, work: impl FnOnce(&[BodyText<'_>]) -> Result<R>) -> Result<R> {
    let source = Source::new(Xml::parse(text)?, &[])?;
    described(&source, None, |_, tree, frames| {
        let bodies = tree.bodies.iter().zip(frames).map(|(body, frame)| BodyText {
            name: &body.name,
            element: body.element,
            inertial: body.evidence.written,
            frame: *frame,
            joints: body.joints.iter().map(|joint| (joint.name.as_str(), joint.element)).collect(),
        });
        work(&bodies.collect::<Vec<_>>())
    })
}

/// Returns whether a text includes other files.
pub(crate) fn includes_files(text: &str) -> Result<bool> {
    let text = repaired(text).text;
    let main = Xml::parse(&text)?;
    let mut open = vec![main.root()];
    while let Some(element) = open.pop() {
        if element.tag() == "include" {
            return Ok(true);
        }
        open.extend(element.children());
    }
    Ok(false)
}

/// Passes the content of the files to `finish`: the mechanism, the bodies as written, and the frame of each body in its link.
fn described<R>(
    source: &Source<'_>,
    files: Option<Include<'_>>,
    finish: impl FnOnce(MechanismBuilder, &Tree<'_>, &[Pose<f64>]) -> Result<R>,
) -> Result<R> {
    let root = source.root()?;
    for section in source.children(root) {
        schema::check_section(section)?;
    }
    for section in source.section("deformable")? {
        if let Some(flex) = source.children(section).into_iter().find(|e| e.tag() != "skin") {
            return Err(flex.unsupported(format!("<{}>", flex.tag())));
        }
    }
    let settings = Settings::read(source)?;
    let defaults = Defaults::read(source)?;
    let name = root.attribute("model").filter(|n| !n.is_empty()).unwrap_or("mujoco");
    let mut builder = MechanismBuilder::new(name, body::WORLD);
    builder.gravity = settings.gravity;
    if settings.fluid {
        builder
            .warnings
            .push("the fluid around the robot (option density, viscosity) is left out".to_owned());
    }
    let meshes = Meshes::read(source, &defaults, files)?;
    let mut tree = body::read(source, &defaults, &settings, &meshes, &mut builder.warnings)?;
    assemble::name_all(&mut tree);
    passive::actuators(source, &defaults, &settings, &mut tree, &mut builder.warnings)?;
    passive::tendons(source, &defaults, &mut builder.warnings)?;
    let equalities = equality::read(source, &defaults, &settings, &tree, &mut builder.warnings)?;
    let frames = assemble::assemble(&tree, &equalities, &mut builder);
    finish(builder, &tree, &frames)
}
