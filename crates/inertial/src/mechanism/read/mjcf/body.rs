//! Tree of bodies, as written in the model.

use std::collections::HashMap;

use super::super::xml::Element;
use super::compiler::Settings;
use super::defaults::{Defaults, Layered};
use super::inertial::{self, Evidence};
use super::joint::{Joint, name_of};
use super::mesh::Meshes;
use super::source::Source;
use super::{geometry, orientation, schema};
use crate::mechanism::JointType;
use crate::spatial::{Inertia, Pose};
use crate::{Error, Result};

/// Name of the world, the root of the tree.
pub(super) const WORLD: &str = "world";

/// Body as written in the model.
pub(super) struct Body<'a> {
    pub(super) name: String,
    pub(super) element: Element<'a>,
    /// Index of the parent body (the world is 0).
    pub(super) parent: usize,
    /// Frame in the parent's frame.
    pub(super) pose: Pose<f64>,
    /// Frame in the world at the initial configuration.
    pub(super) world: Pose<f64>,
    pub(super) joints: Vec<Joint<'a>>,
    pub(super) inertia: Option<Inertia<f64>>,
    /// Whether the body is moved from outside the model.
    pub(super) mocap: bool,
    pub(super) evidence: Evidence<'a>,
    children: usize,
}

/// All bodies (the world first, then in the order of the text) and the sites on them.
pub(super) struct Tree<'a> {
    pub(super) bodies: Vec<Body<'a>>,
    /// Sites by name: index of the body, and the site's frame in the body's frame.
    pub(super) sites: HashMap<&'a str, (usize, Pose<f64>)>,
}

/// Context of the elements being read.
#[derive(Clone, Copy)]
struct Context<'a> {
    body: usize,
    /// Pose of the enclosing `<frame>`s in the body's frame.
    frame: Pose<f64>,
    childclass: Option<&'a str>,
}

/// Reads the tree depth first, without recursion, because texts may be deeply nested.
pub(super) fn read<'a>(
    source: &'a Source<'_>,
    defaults: &Defaults<'a>,
    settings: &Settings,
    meshes: &Meshes<'_>,
    warnings: &mut Vec<String>,
) -> Result<Tree<'a>> {
    let root = source.root()?;
    let mut reader = Reader {
        source,
        defaults,
        settings,
        warnings,
        tree: Tree {
            bodies: vec![Body::new(WORLD.to_owned(), root, 0, Pose::identity())],
            sites: HashMap::new(),
        },
        open: Vec::new(),
    };
    let start = Context { body: 0, frame: Pose::identity(), childclass: None };
    for section in source.section("worldbody")? {
        schema::check_attributes(section)?;
        reader.enter(section, start);
        while let Some((element, context)) = reader.open.pop() {
            reader.element(element, context)?;
        }
    }
    let mut tree = reader.tree;
    for body in tree.bodies.iter().filter(|b| b.children == 0) {
        let free = body.joints.iter().find(|j| j.kind == JointType::Floating);
        if let Some(joint) = free.filter(|j| j.align.unwrap_or(settings.align_free)) {
            let message =
                "its coordinates are those of the body's frame as written, not aligned with the inertia";
            warnings.push(format!("{}{message}", joint.element.place()));
        }
    }
    let mut inertias = vec![None];
    let mut moves = vec![false];
    for body in &tree.bodies[1..] {
        moves.push(moves[body.parent] || !body.joints.is_empty());
        // Missing inertia of a body that never moves is accepted, unless the total mass is given. It counts if the base is
        // made floating.
        let counts = moves[moves.len() - 1] || settings.total_mass.is_some();
        let inertia = match body.evidence.inertia(settings, Some(meshes)) {
            Err(_) if !counts => body.evidence.inertia(settings, None),
            found => found,
        };
        inertias.push(match inertia {
            Err(Error::Unsupported { .. }) if !(counts && meshes.count()) => None,
            inertia => inertia?,
        });
    }
    inertial::scale_to_total(&mut inertias, settings);
    for (body, inertia) in tree.bodies.iter_mut().zip(inertias) {
        body.inertia = inertia;
    }
    Ok(tree)
}

struct Reader<'r, 'a> {
    source: &'a Source<'a>,
    defaults: &'r Defaults<'a>,
    settings: &'r Settings,
    warnings: &'r mut Vec<String>,
    tree: Tree<'a>,
    /// Elements still to be read; the next one is last.
    open: Vec<(Element<'a>, Context<'a>)>,
}

impl<'a> Reader<'_, 'a> {
    fn enter(&mut self, element: Element<'a>, context: Context<'a>) {
        let children = self.source.children(element);
        self.open.extend(children.into_iter().rev().map(|e| (e, context)));
    }

    fn element(&mut self, element: Element<'a>, context: Context<'a>) -> Result<()> {
        schema::check_attributes(element)?;
        match element.tag() {
            "body" => self.body(element, context),
            "frame" => self.frame(element, context),
            "joint" | "freejoint" => self.joint(element, context),
            "inertial" => {
                let inertia = inertial::explicit(element, self.settings)?.transformed(&context.frame);
                let position = element.numbers::<3>("pos")?.unwrap_or_default();
                let body = self.moving(element, context)?;
                body.evidence.centre = context.frame.transform_point(&position.into());
                body.evidence.written = Some((element, context.frame));
                match body.evidence.explicit.replace(inertia) {
                    None => Ok(()),
                    Some(_) => Err(element.error("there is more than one <inertial>")),
                }
            }
            "geom" => {
                let geom = self.defaults.layered(element, context.childclass)?;
                self.tree.bodies[context.body].evidence.geoms.push((geom, context.frame));
                Ok(())
            }
            "site" => self.site(element, context),
            tag if schema::is_irrelevant(tag) => Ok(()),
            tag => Err(element.unsupported(format!("<{tag}>"))),
        }
    }

    fn moving(&mut self, element: Element<'_>, context: Context<'_>) -> Result<&mut Body<'a>> {
        match context.body {
            0 => Err(element.error("the world cannot have joints or inertia: put it in a <body>")),
            body => Ok(&mut self.tree.bodies[body]),
        }
    }

    /// Returns the class in force inside a body or frame.
    fn childclass(&self, element: Element<'a>, context: Context<'a>) -> Result<Option<&'a str>> {
        let own = element.attribute("childclass");
        own.map_or(Ok(()), |class| self.defaults.check(element, class))?;
        Ok(own.or(context.childclass))
    }

    fn body(&mut self, element: Element<'a>, context: Context<'a>) -> Result<()> {
        let own = Layered::alone(element);
        let pose = context.frame * orientation::pose(&own, self.settings)?;
        let mut body = Body::new(name_of(element)?, element, context.body, pose);
        if body.name == WORLD {
            return Err(element.error("the name is taken by the world itself"));
        }
        body.world = self.tree.bodies[context.body].world * pose;
        body.mocap = own.boolean("mocap")?.unwrap_or(false);
        if own.number("gravcomp")?.is_some_and(|x| x != 0.0) {
            self.warnings.push(format!("{}its gravity compensation (gravcomp) is left out", own.place()));
        }
        if body.mocap {
            self.warnings
                .push(format!("{}it is treated as fixed where the model puts it (mocap)", own.place()));
        }
        let childclass = self.childclass(element, context)?;
        self.tree.bodies[context.body].children += 1;
        let index = self.tree.bodies.len();
        self.tree.bodies.push(body);
        self.enter(element, Context { body: index, frame: Pose::identity(), childclass });
        Ok(())
    }

    fn frame(&mut self, element: Element<'a>, context: Context<'a>) -> Result<()> {
        for name in ["scale", "massscale"] {
            if element.attribute(name).is_some() {
                return Err(element.unsupported(format!("a frame with {name}")));
            }
        }
        let frame = context.frame * orientation::pose(&Layered::alone(element), self.settings)?;
        let childclass = self.childclass(element, context)?;
        self.enter(element, Context { frame, childclass, ..context });
        Ok(())
    }

    fn joint(&mut self, element: Element<'a>, context: Context<'a>) -> Result<()> {
        // A `<freejoint>` has no defaults.
        let joint = match element.tag() {
            "freejoint" => Layered::alone(element),
            _ => self.defaults.layered(element, context.childclass)?,
        };
        let joint = Joint::read(&joint, &context.frame, self.settings, self.warnings)?;
        let body = self.moving(element, context)?;
        let message = if joint.kind == JointType::Floating && body.parent != 0 {
            "a free joint needs a body of the world"
        } else if body.joints.iter().any(|j| j.kind == JointType::Floating)
            || joint.kind == JointType::Floating && !body.joints.is_empty()
        {
            "a body with a free joint has no other joints"
        } else {
            body.joints.push(joint);
            return Ok(());
        };
        Err(element.error(message))
    }

    fn site(&mut self, element: Element<'a>, context: Context<'a>) -> Result<()> {
        let Some(name) = element.attribute("name").filter(|n| !n.is_empty()) else { return Ok(()) };
        let site = self.defaults.layered(element, context.childclass)?;
        let pose = match geometry::segment(&site)? {
            Some((pose, _)) => pose,
            None => orientation::pose(&site, self.settings)?,
        };
        match self.tree.sites.insert(name, (context.body, context.frame * pose)) {
            None => Ok(()),
            Some(_) => Err(element.error("the name is taken: sites need distinct names")),
        }
    }
}

impl<'a> Body<'a> {
    fn new(name: String, element: Element<'a>, parent: usize, pose: Pose<f64>) -> Self {
        Self {
            name,
            element,
            parent,
            pose,
            world: pose,
            joints: Vec::new(),
            inertia: None,
            mocap: false,
            evidence: Evidence { explicit: None, written: None, centre: pose.translation, geoms: Vec::new() },
            children: 0,
        }
    }
}
