//! Joints that are locked at a position: their links form one body.

use std::collections::HashSet;

use inertial::mechanism::{Base, Joint, JointDynamics, JointSpec, JointType, Limits, MechanismBuilder};

use crate::logs::LogOptions;
use crate::setting::Setting;
use crate::summary_file::saved_summary;
use crate::{Context, Error, Located, Model, Note, Result};

impl Model {
    /// Locks joints that no log contains, so that, for example, a log of an arm need not contain its gripper. The
    /// logs must name joints of the model only, and more than are locked, and no logged joint may be a descendant of
    /// a locked one; otherwise the log may belong to another robot. Joints are locked at the assembly configuration
    /// of the model, within their limits; a note reports them.
    pub fn hold_unlogged(self, logs: &[String], options: &LogOptions, context: &Context<'_>) -> Result<Self> {
        let mechanism = &self.mechanism;
        if !mechanism.loops().is_empty() || logs.iter().any(|log| log == "-") {
            return Ok(self);
        }
        let mut logged: HashSet<String> = HashSet::new();
        let positions = mechanism.position_names();
        let base = if mechanism.base() == Base::Floating { 7 } else { 0 };
        for log in logs {
            // Errors of unreadable logs are reported by the job.
            let is_log = matches!(saved_summary(context, log), Ok(None));
            let reader = options.reader(context, Some(mechanism), log).ok().filter(|_| is_log);
            let Some(names) = reader.map(|reader| reader.names().to_vec()) else { return Ok(self) };
            let is_of_joints = |quantity: &str| matches!(quantity, "q" | "dq" | "ddq" | "tau");
            let joint = |name: &String| {
                if let Some((quantity, joint)) = name.split_once('.') {
                    return is_of_joints(quantity).then(|| joint.to_owned());
                }
                // Numbered columns count the joints from one.
                let quantity = name.trim_end_matches(|c: char| c.is_ascii_digit());
                let number: usize = name[quantity.len()..].parse().ok().filter(|_| is_of_joints(quantity))?;
                positions.get(base + number.checked_sub(1)?).cloned()
            };
            logged.extend(names.iter().filter_map(joint));
        }
        let known: HashSet<String> =
            mechanism.position_names().into_iter().chain(mechanism.velocity_names()).collect();
        if logged.is_empty() || !logged.is_subset(&known) {
            return Ok(self);
        }
        let driven = |joint: &Joint| self.builder.rotors.iter().any(|rotor| rotor.joint == joint.name);
        let is_absent = |joint: &&Joint| {
            joint.follows.is_none()
                && joint.joint_type.nq() == 1
                && !driven(joint)
                && !logged.contains(&joint.name)
        };
        let locks = mechanism.joints().iter().filter(is_absent).map(|joint| {
            let (at, limits) = (mechanism.assembly()[joint.q], joint.limits);
            Setting { column: joint.name.clone(), value: at.max(limits.lower).min(limits.upper) }
        });
        let locks: Vec<Setting> = locks.collect();
        let counted = mechanism.joints().iter().filter(|j| logged.contains(&j.name)).count();
        if locks.is_empty() || locks.len() >= counted || !self.are_outermost(&locks, &logged) {
            return Ok(self);
        }
        let mut builder = self.builder.clone();
        lock(&mut builder, &locks)?;
        let mechanism = builder.build(&self.options).at(&self.label)?;
        context.note(&Note::NotLogged(locks.clone()));
        Ok(Self { lock: [self.lock, locks].concat(), builder, mechanism, ..self })
    }

    /// Returns whether no logged joint is a descendant of a locked one.
    fn are_outermost(&self, locks: &[Setting], logged: &HashSet<String>) -> bool {
        let (bodies, joints) = (self.mechanism.bodies(), self.mechanism.joints());
        let is_locked = |joint: usize| locks.iter().any(|setting| setting.column == joints[joint].name);
        joints.iter().filter(|joint| logged.contains(&joint.name)).all(|joint| {
            let mut next = Some(joint.body);
            while let Some(body) = next {
                if is_locked(bodies[body].joint) {
                    return false;
                }
                next = bodies[body].parent;
            }
            true
        })
    }
}

/// Largest position (rad or m) at which a joint can be locked.
const FARTHEST: f64 = 1e6;

/// Locks joints, and those that follow them, at positions (rad or m).
pub(super) fn lock(builder: &mut MechanismBuilder, locks: &[Setting]) -> Result<()> {
    let mut locked: Vec<(String, f64)> = Vec::new();
    for lock in locks {
        let Some(joint) = builder.joints.iter().find(|j| j.name == lock.column) else {
            let names: Vec<String> = builder.joints.iter().map(|j| j.name.clone()).collect();
            let hint = inertial_data::nearest_hint(&lock.column, &names);
            return Err(Error::option("lock", format!("the model has no joint {}{hint}", lock.column)));
        };
        if let Some(mimic) = &joint.mimic {
            let leaders: Vec<&str> = mimic.leaders.iter().map(|(leader, _)| leader.as_str()).collect();
            let leaders = leaders.join(", ");
            let reason = format!("{} follows {leaders} (mimic): lock {leaders} instead", lock.column);
            return Err(Error::option("lock", reason));
        }
        if locked.iter().any(|(name, _)| *name == lock.column) {
            return Err(Error::option("lock", format!("{} is given two positions", lock.column)));
        }
        if !(lock.value.abs() <= FARTHEST) {
            let range = format!("{}: expected a position up to {FARTHEST} rad or m", lock.column);
            return Err(Error::option("lock", range));
        }
        locked.push((lock.column.clone(), lock.value));
    }
    let mut next = 0;
    while next < locked.len() {
        let (name, value) = locked[next].clone();
        next += 1;
        hold(builder, &name, value)?;
        for joint in &mut builder.joints {
            let Some(mimic) = &mut joint.mimic else { continue };
            let before = mimic.leaders.len();
            let lead: f64 = mimic.leaders.iter().filter(|(leader, _)| *leader == name).map(|(_, r)| r).sum();
            mimic.leaders.retain(|(leader, _)| *leader != name);
            mimic.offset += lead * value;
            let free = mimic.leaders.is_empty() && before > 0;
            if free && !locked.iter().any(|(other, _)| *other == joint.name) {
                locked.push((joint.name.clone(), mimic.offset));
            }
        }
    }
    Ok(())
}

/// Returns a warning if a joint is locked outside its limits. The tolerance covers limits with rounded decimals.
fn outside(joint: &JointSpec, value: f64) -> Option<String> {
    let Limits { lower, upper, .. } = joint.limits;
    let tolerance = 1e-6 * value.abs().max(1.0);
    if (lower - tolerance..=upper + tolerance).contains(&value) {
        return None;
    }
    Some(format!("{} is locked at {value}, outside its limits {lower} … {upper}", joint.name))
}

fn hold(builder: &mut MechanismBuilder, name: &str, value: f64) -> Result<()> {
    let refuse = |reason: String| Err(Error::option("lock", format!("{name} {reason}")));
    if builder.rotors.iter().any(|r| r.joint == name) {
        return refuse("has a rotor in the model and cannot be locked".into());
    }
    builder.assembly.retain(|(joint, _)| joint != name);
    if let Some(warning) = builder.joints.iter().find(|j| j.name == name).and_then(|j| outside(j, value)) {
        builder.warnings.push(warning);
    }
    let Some(joint) = builder.joints.iter_mut().find(|j| j.name == name) else { return Ok(()) };
    match joint.joint_type.nq() {
        0 => return refuse("is already fixed".into()),
        1 => {}
        count => return refuse(format!("has {count} coordinates: only joints with one can be locked")),
    }
    joint.origin = joint.origin * joint.joint_type.pose(&[value]);
    joint.joint_type = JointType::Fixed;
    (joint.mimic, joint.independent) = (None, None);
    (joint.limits, joint.dynamics) = (Limits::default(), JointDynamics::default());
    if value != 0.0 {
        joint.rounding = None;
    }
    Ok(())
}
