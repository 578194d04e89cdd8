//! Load of a controller: a link with everything that fixed and locked joints attach to it.

use inertial::mechanism::{JointType, Link, Mechanism, MechanismBuilder};
use inertial::spatial::{Inertia, Pose};

use super::robot::{Part, Robot, Values};
use crate::{Error, Model, Note, Result};

/// Rigid body that a controller carries.
#[derive(Debug, Clone)]
pub(super) struct Load {
    /// Links of the load, the chosen one first; the name of the body for a payload.
    pub links: Vec<String>,
    /// Frame in which the inertia is expressed; `None` if the result does not name it.
    pub frame: Option<String>,
    /// Inertia in that frame.
    pub inertia: Inertia<f64>,
    /// Warnings about links that are not part of the load.
    pub warnings: Vec<Note>,
}

impl Load {
    /// Returns the load of a link of a robot.
    pub(super) fn of_robot(
        robot: &Robot,
        model: &Model,
        link: Option<&str>,
        frame: Option<&str>,
    ) -> Result<Self> {
        let link = match (link, &robot.links[..]) {
            (Some(link), _) => link,
            (None, [one]) => one.name.as_str(),
            (None, several) => return Err(expected(several)),
        };
        if !robot.mechanism.links().iter().any(|l| l.name == link) {
            return Err(unknown("link", link, &robot.mechanism));
        }
        let mut load = attached(link, &model.builder, &robot.links);
        if load.inertia == Inertia::zero() {
            let reason = format!(
                "{link} has no mass, and no link with mass is attached to it by fixed or locked joints"
            );
            return Err(Error::option("link", reason));
        }
        load.express_in(frame, &robot.mechanism)?;
        Ok(load)
    }

    /// Returns the load of one body of a result; the model, if given, has the frames.
    pub(super) fn of_result(
        values: &Values,
        model: Option<&Model>,
        link: Option<&str>,
        frame: Option<&str>,
    ) -> Result<Self> {
        let parts = values.parts();
        let carrier = values.link.as_deref();
        let part = match (link, &parts[..]) {
            // A payload is also found by the link that carries it.
            (Some(link), [one]) if carrier == Some(link) => one,
            (Some(link), _) => parts.iter().find(|p| p.name == link).ok_or_else(|| {
                let names: Vec<&str> = parts.iter().map(|p| p.name.as_str()).collect();
                let near = inertial::nearest_hint(link, names.iter().copied());
                let known = if near.is_empty() { format!("; there are {}", names.join(", ")) } else { near };
                Error::option("link", format!("the result has no body {link}{known}"))
            })?,
            (None, [one]) => one,
            (None, several) => return Err(expected(several)),
        };
        // A body of a robot has the frame and the name of its first link.
        let own = if values.is_payload() { carrier } else { Some(part.name.as_str()) };
        let mut load = Self {
            links: if part.links.is_empty() { vec![part.name.clone()] } else { part.links.clone() },
            frame: own.map(str::to_owned),
            inertia: part.inertia,
            warnings: Vec::new(),
        };
        match (frame, model) {
            (Some(_), Some(model)) if own.is_some() => load.express_in(frame, &model.mechanism)?,
            (Some(frame), Some(model)) if !model.mechanism.links().iter().any(|l| l.name == frame) => {
                return Err(unknown("frame", frame, &model.mechanism));
            }
            (Some(frame), None) if own.is_some_and(|own| own != frame) => {
                let from = own.unwrap_or_default();
                let reason = format!(
                    "the load is in the frame of {from}: to convert it to {frame}, give the model too"
                );
                return Err(Error::option("frame", reason));
            }
            (Some(frame), _) => load.frame = Some(frame.to_owned()),
            (None, _) => {}
        }
        Ok(load)
    }

    /// Expresses the load in the frame of another link of the same body.
    fn express_in(&mut self, frame: Option<&str>, mechanism: &Mechanism) -> Result<()> {
        let (Some(to), Some(from)) = (frame, self.frame.as_deref()) else { return Ok(()) };
        if to == from {
            return Ok(());
        }
        let link = |name: &str| mechanism.links().iter().find(|l| l.name == name);
        let found = |name: &str| link(name).ok_or_else(|| unknown("frame", name, mechanism));
        let (old, new): (&Link, &Link) = (found(from)?, found(to)?);
        if old.body != new.body {
            let reason = format!(
                "{to} moves relative to {from}: expected a link that fixed or locked joints connect to it"
            );
            return Err(Error::option("frame", reason));
        }
        self.inertia = self.inertia.transformed(&(new.pose.inverse() * old.pose));
        self.frame = Some(to.to_owned());
        Ok(())
    }

    /// Returns lines that name the links and the frame, for comments.
    pub(super) fn lines(&self, expected: &str) -> [String; 2] {
        let frame = match &self.frame {
            Some(frame) => format!("Frame: {}.", word(frame)),
            None => "Frame: that of the link that carries the payload.".to_owned(),
        };
        let names: Vec<String> = self.links.iter().map(|name| word(name)).collect();
        [format!("Load: {}.", names.join(", ")), format!("{frame} {expected}")]
    }
}

/// Returns a link with all links that fixed joints (locked joints are fixed) attach to it, away from the root.
fn attached(link: &str, builder: &MechanismBuilder, parts: &[Part]) -> Load {
    let mut inertia = Inertia::zero();
    let mut links = vec![link.to_owned()];
    let mut moving: Vec<(String, String)> = Vec::new();
    let mut open: Vec<(&str, Pose<f64>)> = vec![(link, Pose::identity())];
    while let Some((name, pose)) = open.pop() {
        if let Some(part) = parts.iter().find(|p| p.name == name) {
            let own = if name == link { part.inertia } else { part.inertia.transformed(&pose) };
            inertia += own;
            if name != link {
                links.push(name.to_owned());
            }
        }
        for joint in builder.joints.iter().filter(|j| j.parent == name) {
            match joint.joint_type {
                JointType::Fixed => open.push((&joint.child, pose * joint.origin)),
                _ => moving.push((joint.name.clone(), joint.child.clone())),
            }
        }
    }
    links[1..].sort_by_key(|name| parts.iter().position(|p| p.name == *name));
    let mut warnings = Vec::new();
    if !moving.is_empty() {
        let (joints, links) = moving.into_iter().unzip();
        warnings.push(Note::NotInLoad { link: link.to_owned(), links, joints });
    }
    Load { links, frame: Some(link.to_owned()), inertia, warnings }
}

fn expected(parts: &[Part]) -> Error {
    let names: Vec<&str> = parts.iter().map(|p| p.name.as_str()).collect();
    Error::option("link", format!("expected the link that is the load: one of {}", names.join(", ")))
}

fn unknown(option: &'static str, name: &str, mechanism: &Mechanism) -> Error {
    let names: Vec<&str> = mechanism.links().iter().map(|l| l.name.as_str()).collect();
    let near = inertial::nearest_hint(name, names.iter().copied());
    let known = if near.is_empty() { format!("; there are {}", names.join(", ")) } else { near };
    Error::option(option, format!("the model has no link {name}{known}"))
}

/// Returns a name that is safe in a one-line comment.
fn word(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).collect()
}
