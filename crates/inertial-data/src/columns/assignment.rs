//! Assignment of log columns to the coordinates of a mechanism.

use inertial::estimation::WRENCH_AXES;
use inertial::mechanism::{Base, JointType, Mechanism};

use crate::columns::name_lists;
use crate::error::{AbsentColumn, nearest_hint};
use crate::{Error, Log, Options, Place, Requirement, Result};

/// Suffixes of the position columns `base.…` of a floating base, in the order of its coordinates.
pub const BASE_Q: [&str; 7] = ["x", "y", "z", "qx", "qy", "qz", "qw"];
/// Suffixes of the velocity columns `base.…` of a floating base, in the order of its coordinates.
pub const BASE_V: [&str; 6] = ["vx", "vy", "vz", "wx", "wy", "wz"];
/// Suffixes of the acceleration columns `base.…` of a floating base, in the order of its coordinates.
pub const BASE_A: [&str; 6] = ["ax", "ay", "az", "alx", "aly", "alz"];
/// Quantities of a joint, longest name first so that `ddq1` is not read as `d` and `dq1`.
const QUANTITIES: [&str; 4] = ["ddq", "dq", "tau", "q"];

/// Column numbers of the coordinates of a mechanism.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// Time.
    pub t: usize,
    /// Positions, one per position coordinate; `None` for the optional pose of a floating base.
    pub q: Vec<Option<usize>>,
    /// Velocities, one per velocity coordinate; `None` if not measured.
    pub dq: Vec<Option<usize>>,
    /// Accelerations.
    pub ddq: Vec<Option<usize>>,
    /// Generalized forces; those of a floating base are its wrench.
    pub tau: Vec<Option<usize>>,
    /// Requested additional columns.
    pub extra: Vec<usize>,
    /// Notes about the assignment.
    pub notes: Vec<String>,
}

/// Naming style of joint columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Style `q.elbow`.
    Named,
    /// Style `q3`.
    Numbered,
}

impl Columns {
    /// Matches the columns of a log with the coordinates of `mechanism`.
    pub fn of(mechanism: &Mechanism, log: &Log, options: &Options) -> Result<Self> {
        Self::matching(mechanism, log.file(), log.names(), options)
    }

    /// Matches the columns `names` of a log with the coordinates of `mechanism`.
    ///
    /// Torques are required (unless they are optional) for the joints in `torque_joints`. If that list is empty, they are required for
    /// every joint of the mechanism that is not marked as dependent in a loop, and torque columns of other joints are used if
    /// present. In a log that names its joints, some joints may have no torque column, with a note. Joints that are missing in a nonempty `torque_joints` have no torque, even if the log has a column.
    pub fn matching(mechanism: &Mechanism, file: &str, names: &[String], options: &Options) -> Result<Self> {
        let column = |name: &str| names.iter().position(|n| n == name);
        let error = |message: String| Error::columns(Place::file(file), message);
        let Self { t, extra, .. } = Self::named(file, names, options)?;
        let (all, styles) = (names, styles_of(file, names)?);
        let floating = mechanism.base() == Base::Floating;
        let (base_q, base_v) = if floating { (7, 6) } else { (0, 0) };
        let (q_names, v_names) = (mechanism.position_names(), mechanism.velocity_names());
        let style = |quantity: &str| {
            let own = QUANTITIES.iter().position(|name| *name == quantity).and_then(|k| styles[k]);
            own.or_else(|| styles.iter().copied().flatten().next()).unwrap_or(Style::Numbered)
        };
        let name_of =
            |quantity: &str, names: &[String], base: usize, k: usize| match (quantity, style(quantity)) {
                ("q", _) if k < base => format!("base.{}", BASE_Q[k]),
                ("dq", _) if k < base => format!("base.{}", BASE_V[k]),
                ("ddq", _) if k < base => format!("base.{}", BASE_A[k]),
                (_, _) if k < base => format!("wrench.{}", WRENCH_AXES[k]),
                (_, Style::Numbered) => format!("{quantity}{}", k - base + 1),
                (_, Style::Named) => format!("{quantity}.{}", names[k]),
            };
        let optional = |quantity: &str| -> Vec<Option<usize>> {
            (0..v_names.len()).map(|k| column(&name_of(quantity, &v_names, base_v, k))).collect()
        };
        let missing = |name: &str, names: &[String], k: usize| {
            let hint = nearest_hint(name, all);
            format!("there is no column {name} for {}{hint}", names[k])
        };
        let mut q = Vec::with_capacity(q_names.len());
        let posed = (0..base_q).any(|k| column(&name_of("q", &q_names, base_q, k)).is_some());
        for k in 0..q_names.len() {
            let name = name_of("q", &q_names, base_q, k);
            q.push(column(&name));
            if q[k].is_none() && (k >= base_q || posed || options.base_pose == Requirement::Required) {
                let message = missing(&name, &q_names, k);
                let is_named = k >= base_q && style("q") == Style::Named;
                let absent = if is_named { AbsentColumn::JointPosition } else { AbsentColumn::JointColumn };
                return Err(Error::absent(Place::file(file), message, absent));
            }
        }
        let mut tau = optional("tau");
        let required = required_torques(mechanism, &options.torque_joints).map_err(error)?;
        let mut notes = Vec::new();
        if options.torques == Requirement::Required {
            // A joint of a log that names its joints can have no torque sensor (a gripper), unless a torque column with another
            // name is left over.
            let is_left = |(k, name): (usize, &String)| {
                quantity_of(name).is_some_and(|(q, _)| q == "tau") && !tau.contains(&Some(k))
            };
            let accepted = style("tau") == Style::Named
                && options.torque_joints.is_empty()
                && tau[base_v..].iter().any(Option::is_some)
                && !all.iter().enumerate().any(is_left);
            for k in (base_v..v_names.len()).filter(|&k| tau[k].is_none() && required[k]) {
                let name = name_of("tau", &v_names, base_v, k);
                if !accepted {
                    let message = missing(&name, &v_names, k);
                    return Err(Error::absent(Place::file(file), message, AbsentColumn::JointColumn));
                }
                notes.push(format!(
                    "there is no column {name}: the torque of {} counts as not measured",
                    v_names[k]
                ));
            }
            if tau.iter().all(Option::is_none) {
                return Err(error("there is no torque column (tau.JOINT, tau1 … or wrench.fx …)".to_owned()));
            }
        }
        let (mut dq, mut ddq) = (optional("dq"), optional("ddq"));
        if base_q > 0 && !posed && dq[..base_v].contains(&None) {
            return Err(error(
                "without its pose, a floating base needs its twist: base.vx … base.wz".to_owned(),
            ));
        }
        let mut used = vec![t];
        used.extend(q.iter().chain(&dq).chain(&ddq).chain(&tau).flatten().chain(&extra));
        if !options.torque_joints.is_empty() {
            (base_v..v_names.len()).filter(|&k| !required[k]).for_each(|k| tau[k] = None);
        }
        for (quantity, found) in [("dq", &mut dq), ("ddq", &mut ddq)] {
            drop_partial(mechanism, quantity, found, &mut notes);
        }
        let unused: Vec<&str> =
            (0..all.len()).filter(|k| !used.contains(k)).map(|k| all[k].as_str()).collect();
        // A number beyond those of the model means that the numbering may refer to other joints.
        if let Some(beyond) = unused.iter().find(|n| matches!(quantity_of(n), Some((_, Style::Numbered)))) {
            let message = format!("the model has {} joint coordinates", v_names.len() - base_v);
            return Err(Error::columns(Place::file(file).column(*beyond), message));
        }
        // Lists of joint names are not data.
        let unused: Vec<&str> = unused.into_iter().filter(|name| !name_lists::is_candidate(name)).collect();
        if !unused.is_empty() {
            notes.push(format!("columns that are not used: {}", unused.join(" ")));
        }
        Ok(Self { t, q, dq, ddq, tau, extra, notes })
    }

    /// Finds only the time and the additional columns, for logs that belong to no mechanism.
    pub fn named(file: &str, names: &[String], options: &Options) -> Result<Self> {
        let column = |wanted: &str, what: &str| {
            names.iter().position(|n| n == wanted).ok_or_else(|| {
                let message = format!("there is no column {wanted}{what}{}", nearest_hint(wanted, names));
                match wanted {
                    "t" => Error::absent(Place::file(file), message, AbsentColumn::Time),
                    _ => Error::columns(Place::file(file), message),
                }
            })
        };
        Ok(Self {
            t: column("t", " (time in seconds)")?,
            q: Vec::new(),
            dq: Vec::new(),
            ddq: Vec::new(),
            tau: Vec::new(),
            extra: options.extra.iter().map(|name| column(name, "")).collect::<Result<_>>()?,
            notes: Vec::new(),
        })
    }
}

/// Drops incomplete velocities: a joint with several coordinates needs all of them or none, because a partial twist cannot be completed.
fn drop_partial(mechanism: &Mechanism, quantity: &str, found: &mut [Option<usize>], notes: &mut Vec<String>) {
    for joint in mechanism.joints().iter().filter(|j| j.follows.is_none()) {
        let range = joint.v_range();
        let count = found[range.clone()].iter().flatten().count();
        if count > 0 && count < range.len() {
            found[range].fill(None);
            notes.push(format!("{quantity} is incomplete for {}: it is computed instead", joint.name));
        }
    }
}

/// Returns which velocity coordinates must have a torque column.
fn required_torques(
    mechanism: &Mechanism,
    torque_joints: &[String],
) -> std::result::Result<Vec<bool>, String> {
    let mut required: Vec<bool> = mechanism.independent_marks().iter().map(|&m| m != Some(false)).collect();
    required.resize(mechanism.nv(), true);
    if torque_joints.is_empty() {
        return Ok(required);
    }
    required.fill(false);
    let names: Vec<String> = mechanism.joints().iter().map(|j| j.name.clone()).collect();
    for wanted in torque_joints {
        let joint = mechanism
            .joints()
            .iter()
            .find(|j| j.name == *wanted && j.follows.is_none())
            .ok_or_else(|| format!("the model has no joint {wanted}{}", nearest_hint(wanted, &names)))?;
        required[joint.v_range()].fill(true);
    }
    Ok(required)
}

/// Returns the quantity and style of a joint's column; `None` for other columns.
pub(crate) fn quantity_of(name: &str) -> Option<(&'static str, Style)> {
    QUANTITIES.into_iter().find_map(|quantity| {
        let rest = name.strip_prefix(quantity)?;
        if rest.starts_with('.') {
            Some((quantity, Style::Named))
        } else if !rest.is_empty()
            && rest.bytes().all(|b| b.is_ascii_digit())
            // Numbers such as `01` are another numbering.
            && (rest.len() == 1 || !rest.starts_with('0'))
        {
            Some((quantity, Style::Numbered))
        } else {
            None
        }
    })
}

/// Returns the naming style of each quantity; `None` for quantities without columns. Numbers count in the order of the model's joints, so
/// different quantities may have different styles (joint states by name, and torques of another topic by number).
fn styles_of(file: &str, names: &[String]) -> Result<[Option<Style>; 4]> {
    let mut out = [None; 4];
    for (quantity, style) in QUANTITIES.iter().zip(&mut out) {
        let first = |style| names.iter().find(|n| quantity_of(n) == Some((*quantity, style)));
        *style = match (first(Style::Named), first(Style::Numbered)) {
            (Some(named), Some(numbered)) => {
                let message = format!(
                    "columns are named both by joint ({named}) and by number ({numbered}); use one of the two"
                );
                return Err(Error::columns(Place::file(file), message));
            }
            (Some(_), None) => Some(Style::Named),
            (None, Some(_)) => Some(Style::Numbered),
            (None, None) => None,
        };
    }
    Ok(out)
}

/// Returns whether a position coordinate is an angle that may have been logged in degrees or wrapped.
pub(crate) fn is_angle(mechanism: &Mechanism, q: usize) -> bool {
    mechanism.joints().iter().filter(|j| j.follows.is_none() && j.q_range().contains(&q)).any(|j| {
        match j.joint_type {
            JointType::Revolute { .. } | JointType::Helical { .. } | JointType::Universal { .. } => true,
            JointType::Cylindrical { .. } => q == j.q,
            JointType::Planar { .. } => q == j.q + 2,
            _ => false,
        }
    })
}
