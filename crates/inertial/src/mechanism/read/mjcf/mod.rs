//! MJCF, MuJoCo's XML.
//!
//! What is read is what moves and what has mass: the tree of bodies, frames and joints, inertias (written or from geoms and meshes),
//! default classes, the compiler's settings, gravity, `<equality>`, and what actuators add to joints. Looks, contacts,
//! sensors, keyframes and the forces of actuators change neither and are skipped. Any other element or attribute that
//! is not known is an error; forces that a [`MechanismBuilder`] has no place for (springs of tendons, fluids, gravity
//! compensation) are named in its warnings.
//!
//! How the mechanism relates to MuJoCo's model:
//! - the root link is `world`; bodies and joints without a name are called after MuJoCo's numbers (`body3`, `joint5`);
//! - a body's frame has the axes of the MJCF body and its origin at the point that the body's last hinge or ball turns
//!   about; where this is not the MJCF body's origin, the link `BODY.frame` marks the MJCF frame;
//! - several joints of one body become a chain with links `BODY:JOINT` that have no parameters;
//! - coordinates of hinges and slides are those of `qpos`, reference positions (`ref`) included; a ball's quaternion is
//!   `x y z w` here and `w x y z` there; a free joint's coordinates are the body's pose in the world and its velocity is in
//!   the body's frame, where MuJoCo has the linear part in the world's;
//! - `connect` and `weld` close loops, `<equality><joint>` and `<equality><tendon>` (fixed tendons) couple joints, or lock one,
//!   which then is no joint any more.

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

use super::xml::{Element, Xml};
use super::{Include, MechanismBuilder};
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
    let main = Xml::parse(text)?;
    let files = source::fetch(&main, include)?;
    let source = Source::new(main, &files)?;
    described(&source, Some(include), |builder, _, _| Ok(builder))
}

/// Reads a text that includes no files, for writers: bodies have no inertia from meshes.
pub(crate) fn read_without_meshes(text: &str) -> Result<MechanismBuilder> {
    described(&Source::new(Xml::parse(text)?, &[])?, None, |builder, _, _| Ok(builder))
}

/// A body of a text that stands alone, for writers.
pub(crate) struct BodyText<'a> {
    pub(crate) name: &'a str,
    pub(crate) element: Element<'a>,
    /// Its `<inertial>` with the frame around that in the body's, where it has one.
    pub(crate) inertial: Option<(Element<'a>, Pose<f64>)>,
    /// Its frame in its link's.
    pub(crate) frame: Pose<f64>,
    /// Its joints by name.
    pub(crate) joints: Vec<(&'a str, Element<'a>)>,
}

/// Hands the bodies of a text that includes no files to a writer.
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

/// Whether a text includes other files.
pub(crate) fn includes_files(text: &str) -> Result<bool> {
    let main = Xml::parse(text)?;
    let mut open = vec![main.root()];
    while let Some(element) = open.pop() {
        if element.tag() == "include" {
            return Ok(true);
        }
        open.extend(element.children());
    }
    Ok(false)
}

/// Hands what the files describe to `finish`: the mechanism, the bodies as written, and the frame of each body in its link.
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
