//! `<joint>` and `<freejoint>`.

use nalgebra::Vector3;

use super::super::xml::Element;
use super::compiler::Settings;
use super::defaults::Layered;
use super::orientation;
use crate::Result;
use crate::mechanism::{JointDynamics, JointType, Limits};
use crate::spatial::Pose;

/// Joint of a body, in the body's frame.
pub(super) struct Joint<'a> {
    pub(super) name: String,
    pub(super) element: Element<'a>,
    /// Joint type; axes are in the body's frame.
    pub(super) kind: JointType,
    /// Point of the body on the axis of rotation; zero if the joint does not rotate.
    pub(super) anchor: Vector3<f64>,
    /// Coordinate at the initial configuration of the model.
    pub(super) reference: f64,
    pub(super) limits: Limits,
    pub(super) dynamics: JointDynamics,
    /// Whether MuJoCo aligns the frame of a free body with its principal axes; `None` means the compiler's setting.
    pub(super) align: Option<bool>,
}

impl<'a> Joint<'a> {
    /// Reads a joint located in `frame` of its body. Features that a mechanism does not support result in warnings.
    pub(super) fn read(
        joint: &Layered<'a>,
        frame: &Pose<f64>,
        settings: &Settings,
        warnings: &mut Vec<String>,
    ) -> Result<Self> {
        let element = joint.element();
        let name = name_of(element)?;
        if element.tag() == "freejoint" {
            let words = [("true", Some(true)), ("false", Some(false)), ("auto", None)];
            let mut out = Self::new(name, element, JointType::Floating);
            out.align = joint.keyword("align", &words)?.flatten();
            return Ok(out);
        }
        let axis =
            orientation::direction(element, "axis", joint.numbers("axis")?.unwrap_or([0.0, 0.0, 1.0]))?;
        // Without rotation of the frame, the axis stays exactly as written.
        let axis = frame.rotation * axis;
        let words = [
            ("hinge", JointType::Revolute { axis }),
            ("slide", JointType::Prismatic { axis }),
            ("ball", JointType::Spherical),
            ("free", JointType::Floating),
        ];
        let kind = joint.keyword("type", &words)?.unwrap_or(JointType::Revolute { axis });
        let mut out = Self::new(name, element, kind);
        if matches!(kind, JointType::Revolute { .. } | JointType::Spherical) {
            out.anchor = frame.transform_point(&joint.numbers::<3>("pos")?.unwrap_or_default().into());
        }
        let unit = match kind {
            JointType::Prismatic { .. } => 1.0,
            _ => settings.angle,
        };
        if kind.nv() == 1 {
            out.reference = joint.number("ref")?.unwrap_or(0.0) * unit;
            out.limits = limits(joint, unit, settings)?;
            out.dynamics.rest = joint.number("springref")?.unwrap_or(0.0) * unit;
        }
        let stiffness = joint.overlay("stiffness", [0.0; 3])?;
        let damping = joint.overlay("damping", [0.0; 3])?;
        let dynamics = &mut out.dynamics;
        dynamics.armature = joint.number("armature")?.unwrap_or(0.0);
        if settings.spring {
            dynamics.stiffness = stiffness[0];
        }
        if settings.damper {
            dynamics.damping = damping[0];
        }
        if settings.friction {
            dynamics.friction = joint.number("frictionloss")?.unwrap_or(0.0);
        }
        if kind == JointType::Floating && dynamics.armature != 0.0 {
            // MuJoCo applies the armature to the velocity in the world's axes, this crate in the body's axes.
            let message =
                "its armature resists changes of the velocity in the body's frame, not in the world's";
            warnings.push(format!("{}{message}", joint.place()));
        }
        if joint.number("springyield")?.is_some_and(|y| y > 0.0) {
            warnings.push(format!("{}its spring is taken as elastic (springyield)", joint.place()));
        }
        if stiffness[1..].iter().chain(&damping[1..]).any(|&x| x != 0.0) {
            let message = "only the linear term of its stiffness and damping is kept";
            warnings.push(format!("{}{message}", joint.place()));
        }
        if joint.numbers::<2>("springdamper")?.is_some_and(|s| s.iter().all(|&x| x > 0.0)) {
            // MuJoCo computes both from the inverse of the mass matrix at the initial configuration.
            (dynamics.stiffness, dynamics.damping) = (0.0, 0.0);
            let message = "its spring and damper, given by a time constant (springdamper), are left out";
            warnings.push(format!("{}{message}", joint.place()));
        }
        Ok(out)
    }

    fn new(name: String, element: Element<'a>, kind: JointType) -> Self {
        Self {
            name,
            element,
            kind,
            anchor: Vector3::zeros(),
            reference: 0.0,
            limits: Limits::default(),
            dynamics: JointDynamics::default(),
            align: None,
        }
    }

    /// Returns the body's frame after the joint has moved by `displacement`, in the body's frame before the motion.
    pub(super) fn moved(&self, displacement: f64) -> Pose<f64> {
        let motion = match self.kind {
            JointType::Revolute { .. } | JointType::Prismatic { .. } => self.kind.pose(&[displacement]),
            _ => Pose::identity(),
        };
        Pose::from_translation(self.anchor) * motion * Pose::from_translation(-self.anchor)
    }
}

/// Returns the name of an element, or an empty string.
pub(super) fn name_of(element: Element<'_>) -> Result<String> {
    match element.attribute("name") {
        None | Some("") => Ok(String::new()),
        Some(_) => Ok(element.required_identifier("name")?.to_owned()),
    }
}

fn limits(joint: &Layered<'_>, unit: f64, settings: &Settings) -> Result<Limits> {
    let mut out = Limits::default();
    if let Some([lower, upper]) = range(joint, "limited", "range", settings)?.filter(|_| settings.limits) {
        (out.lower, out.upper) = (lower * unit, upper * unit);
    }
    if let Some([lower, upper]) = range(joint, "actuatorfrclimited", "actuatorfrcrange", settings)? {
        out.effort = lower.abs().max(upper.abs());
    }
    Ok(out)
}

/// Returns a range if it is in force.
fn range(joint: &Layered<'_>, limited: &str, range: &str, settings: &Settings) -> Result<Option<[f64; 2]>> {
    let given = joint.numbers::<2>(range)?.unwrap_or_default();
    let words = [("true", Some(true)), ("false", Some(false)), ("auto", None)];
    let is_limited = joint.keyword(limited, &words)?.flatten();
    let has_range = given != [0.0; 2];
    if is_limited.is_none() && has_range && !settings.autolimits {
        let message = format!("it has {range} but not {limited} (the compiler's autolimits is off)");
        return Err(joint.element().error(message));
    }
    if !is_limited.unwrap_or(has_range) {
        return Ok(None);
    }
    if given[0] >= given[1] {
        return Err(joint.element().error(format!("the first number of {range} must be below the second")));
    }
    Ok(Some(given))
}
