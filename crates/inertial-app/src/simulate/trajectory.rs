//! Trajectories from files: CSV, ROS messages, and the formats of this program.

use std::io::{Cursor, Read as _};

use inertial::dynamics::ClosedMechanism;
use inertial::estimation::WRENCH_AXES;
use inertial::excitation::{BASE_COORDINATES, Profile, Trajectory, base_state};
use inertial::mechanism::{Base, Joint, Mechanism};
use inertial::simulation::PrescribedMotion;
use inertial_data::{BASE_A, BASE_Q, BASE_V, CsvReader, Log, Source as DataSource, nearest_hint};

use super::Mode;
use crate::model::label;
use crate::{Context, Error, Located, Note, Result, bail, ensure, ensure_option};

/// Number of bytes from which the format of a file is recognized.
const HEAD: u64 = 1 << 16;

/// Size limit (bytes) of trajectory files other than CSV.
const LIMIT: u64 = 256 << 20;

/// Columns of numbers.
type Table = Vec<Vec<f64>>;

/// Trajectory that was read but is not yet matched with the model.
pub enum Source {
    Samples(Log),
    /// Trajectory of joints and base, and that of wheels.
    Functions(Trajectory, Trajectory),
}

impl Source {
    /// Reads a trajectory; the format is recognized from the content.
    pub fn load(context: &Context<'_>, name: &str, waypoints: bool, mechanism: &Mechanism) -> Result<Self> {
        if let Some(log) = context.inputs.columns(name) {
            return Self::from_log(log.clone(), waypoints, mechanism);
        }
        let place = label(name);
        let mut file = context.inputs.open(name).at(&place)?;
        let mut start = Vec::new();
        file.by_ref().take(HEAD).read_to_end(&mut start).at(&place)?;
        let is_text = text_of(&start).is_some();
        if !is_text && name != "-" {
            return Self::from_log(
                Log::collect(context.inputs.log(name, &DataSource::default())?)?,
                waypoints,
                mechanism,
            );
        }
        let left = LIMIT + 1 - start.len() as u64;
        file.take(left).read_to_end(&mut start).at(&place)?;
        ensure!(start.len() as u64 <= LIMIT, "{place}: is larger than the limit of {} MB", LIMIT >> 20);
        match std::str::from_utf8(&start) {
            Ok(text) if is_text => Self::from_text(text, &place, waypoints, mechanism),
            Err(_) if is_text => bail!("{place}: is not UTF-8 text"),
            _ => {
                let log = Log::collect(CsvReader::new(Cursor::new(start), place)?)?;
                Self::from_log(log, waypoints, mechanism)
            }
        }
    }

    fn from_text(text: &str, name: &str, waypoints: bool, mechanism: &Mechanism) -> Result<Self> {
        if is_ros(text) {
            return Self::from_log(super::ros::read(text, name)?, waypoints, mechanism);
        }
        ensure_option!(!waypoints, "waypoints", "need rows of positions, but {name} is a trajectory file");
        let all = Trajectory::read(text).at(name)?;
        Self::split(&all, mechanism).at(name)
    }

    fn from_log(log: Log, waypoints: bool, mechanism: &Mechanism) -> Result<Self> {
        if !waypoints {
            return Ok(Self::Samples(log));
        }
        let times = times(&log)?;
        let known = |name: &str| {
            let joint = name.strip_prefix("q.").filter(|_| !name.starts_with("base."));
            joint.or_else(|| BASE_COORDINATES.iter().copied().find(|b| *b == name)).map(str::to_owned)
        };
        let mut found: Vec<(String, Vec<f64>)> = Vec::new();
        for (k, name) in log.names().iter().enumerate() {
            match known(name) {
                Some(joint) => found.push((joint, finite(&log, k)?.to_vec())),
                None if name == "t" => {}
                None => {
                    bail!("{}: column {name}: waypoints are t, q.JOINT and base.x … base.yaw", log.file())
                }
            }
        }
        let (names, positions): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let knots = times.iter().map(|t| t - times[0]).collect();
        let all = Trajectory::point_to_point(names, knots, Profile::Quintic, &positions).at(log.file())?;
        Self::split(&all, mechanism).at(log.file())
    }

    /// Separates the wheels from the other coordinates.
    fn split(all: &Trajectory, mechanism: &Mechanism) -> Result<Self> {
        let wheel = |name: &str| mechanism.wheels().iter().any(|w| w.name == name);
        let part = |wheels: bool| {
            let chosen: Vec<usize> =
                (0..all.joints().len()).filter(|&j| wheel(&all.joints()[j]) == wheels).collect();
            let names = chosen.iter().map(|&j| all.joints()[j].clone()).collect();
            let coefficients: Vec<Vec<f64>> = chosen.iter().map(|&j| all.coefficients(j).collect()).collect();
            Trajectory::new(names, all.duration(), all.basis().clone(), &coefficients)
        };
        Ok(Self::Functions(part(false)?, part(true)?))
    }

    /// Matches the trajectory with the model.
    pub fn prescribed_motion<'m, 't>(
        &'t self,
        closed: &ClosedMechanism<'m>,
        mode: Mode,
        notes: &mut Vec<Note>,
    ) -> Result<PrescribedMotion<'m, 't>> {
        match self {
            Self::Samples(log) => sampled(log, closed, mode, notes),
            Self::Functions(..) if mode == Mode::ForwardDynamics => {
                Err(Error::option("forward", "needs forces: expected CSV with t and tau.JOINT"))
            }
            Self::Functions(joints, wheels) => {
                if mode != Mode::FreeFlight && !wheels.joints().is_empty() {
                    notes.push(Note::WheelsLocked);
                }
                Ok(PrescribedMotion::designed(closed.mechanism(), joints, wheels)?)
            }
        }
    }
}

/// Returns the text of a trajectory that is not a table.
fn text_of(bytes: &[u8]) -> Option<&str> {
    // The head of a file may end within a character.
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) if e.error_len().is_none() => std::str::from_utf8(&bytes[..e.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    (text.contains("inertial/trajectory/") || is_ros(text)).then_some(text)
}

fn is_ros(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("joint_names:"))
}

/// Returns the times of a log, which must be increasing.
fn times(log: &Log) -> Result<&[f64]> {
    let file = log.file();
    let Some(k) = log.names().iter().position(|n| n == "t") else {
        bail!("{file}: there is no column t (time in seconds){}", nearest_hint("t", log.names()));
    };
    let times = finite(log, k)?;
    if let Some(i) = (1..times.len()).find(|&i| times[i] <= times[i - 1]) {
        let row = log.rows()[i];
        bail!("{file}: row {row}: column t: {} s does not come after {} s", times[i], times[i - 1]);
    }
    Ok(times)
}

fn finite(log: &Log, k: usize) -> Result<&[f64]> {
    let values = log.column_at(k);
    if let Some(i) = values.iter().position(|x| !x.is_finite()) {
        bail!("{}: row {}: column {}: expected a number", log.file(), log.rows()[i], log.names()[k]);
    }
    Ok(values)
}

/// Joint columns of a log.
struct Columns<'l> {
    log: &'l Log,
    numbered: bool,
    floating: bool,
    used: Vec<usize>,
}

impl Columns<'_> {
    fn base(&self, joint: &Joint) -> bool {
        self.floating && joint.v == 0
    }

    /// Returns the names of the columns of one quantity of a joint.
    fn names(&self, quantity: &str, joint: &Joint, all: &[String]) -> Vec<String> {
        let range = if quantity == "q" { joint.q_range() } else { joint.v_range() };
        if self.base(joint) {
            let (stem, suffixes): (_, &[&str]) = match quantity {
                "q" => ("base", &BASE_Q),
                "dq" => ("base", &BASE_V),
                "ddq" => ("base", &BASE_A),
                _ => ("wrench", &WRENCH_AXES),
            };
            return suffixes.iter().map(|s| format!("{stem}.{s}")).collect();
        }
        let shift = match (self.floating, quantity) {
            (false, _) => 0,
            (true, "q") => 7,
            (true, _) => 6,
        };
        range
            .map(|k| {
                if self.numbered {
                    format!("{quantity}{}", k - shift + 1)
                } else {
                    format!("{quantity}.{}", all[k])
                }
            })
            .collect()
    }

    /// Returns the given columns, or `None` if all are missing; fails if only some are missing.
    fn find(&mut self, names: &[String]) -> Result<Option<Vec<Vec<f64>>>> {
        let places: Vec<Option<usize>> =
            names.iter().map(|name| self.log.names().iter().position(|n| n == name)).collect();
        if places.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut out = Vec::with_capacity(names.len());
        for (name, place) in names.iter().zip(places) {
            let k = place.ok_or_else(|| Error::Input(self.missing(name)))?;
            self.used.push(k);
            out.push(finite(self.log, k)?.to_vec());
        }
        Ok(Some(out))
    }

    /// Returns the motion of the base in the form written by designs: `q.base.x … q.base.yaw`, with `dq.` and `ddq.`
    /// if present; missing coordinates are at rest. The result is pose, twist and its derivative, by column.
    fn designed_base(&mut self) -> Result<Option<[Option<Table>; 3]>> {
        let mut given = Vec::new();
        for quantity in ["q", "dq", "ddq"] {
            let columns = BASE_COORDINATES.map(|name| self.find(&[format!("{quantity}.{name}")]));
            let columns = columns.into_iter().collect::<Result<Vec<_>>>()?;
            given.push(columns.into_iter().map(|c| c.and_then(|c| c.into_iter().next())).collect::<Vec<_>>());
        }
        let some = |k: usize| given[k].iter().any(Option::is_some);
        if !some(0) {
            return Ok(None);
        }
        let (moves, turns) = (some(1), some(1) && some(2));
        let mut out = [vec![Vec::new(); 7], vec![Vec::new(); 6], vec![Vec::new(); 6]];
        for i in 0..self.log.len() {
            let mut x = [[0.0; 6]; 3];
            for (x, columns) in x.iter_mut().zip(&given) {
                x.iter_mut().zip(columns).for_each(|(x, c)| *x = c.as_ref().map_or(0.0, |c| c[i]));
            }
            let (pose, twist, acceleration) = base_state(&x);
            for (columns, row) in out.iter_mut().zip([&pose[..], &twist, &acceleration]) {
                columns.iter_mut().zip(row).for_each(|(c, x)| c.push(*x));
            }
        }
        let [pose, twist, acceleration] = out;
        Ok(Some([Some(pose), moves.then_some(twist), turns.then_some(acceleration)]))
    }

    fn missing(&self, name: &str) -> String {
        let unused: Vec<String> = (0..self.log.names().len())
            .filter(|k| !self.used.contains(k))
            .map(|k| self.log.names()[k].clone())
            .collect();
        format!("there is no column {name}{}", nearest_hint(name, &unused))
    }
}

fn sampled<'m, 't>(
    log: &'t Log,
    closed: &ClosedMechanism<'m>,
    mode: Mode,
    notes: &mut Vec<Note>,
) -> Result<PrescribedMotion<'m, 't>> {
    let mechanism = closed.mechanism();
    let mut motion = PrescribedMotion::sampled(mechanism, times(log)?.to_vec());
    let digits = |name: &str, stem: &str| {
        name.strip_prefix(stem).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let t = log.names().iter().position(|n| n == "t");
    let mut columns = Columns {
        log,
        numbered: log.names().iter().any(|n| digits(n, "q") || digits(n, "tau")),
        floating: mechanism.base() == Base::Floating,
        used: t.into_iter().collect(),
    };
    let (q_names, v_names) = (mechanism.position_names(), mechanism.velocity_names());
    let mut absent = Vec::new();
    for (j, joint) in mechanism.joints().iter().enumerate().filter(|(_, j)| j.follows.is_none()) {
        let independent = joint.v_range().any(|k| closed.independent().contains(&k));
        let names = columns.names("q", joint, &q_names);
        let mut positions = columns.find(&names)?;
        let mut velocities = columns.find(&columns.names("dq", joint, &v_names))?;
        let mut accelerations = columns.find(&columns.names("ddq", joint, &v_names))?;
        if columns.base(joint)
            && positions.is_none()
            && mode == Mode::InverseDynamics
            && let Some(designed) = columns.designed_base()?
        {
            [positions, velocities, accelerations] = designed;
        }
        if mode == Mode::ForwardDynamics && velocities.is_none() {
            // The motion starts at rest; later rows do not prescribe it.
            velocities = Some(vec![vec![0.0; log.len()]; joint.joint_type.nv()]);
        }
        match positions {
            // Dependent coordinates of loops are not prescribed, even if the file contains them.
            _ if !independent => {}
            Some(positions) => {
                let accelerations = accelerations.filter(|_| velocities.is_some());
                motion.joint(j, positions, velocities.as_deref(), accelerations.as_deref())?;
            }
            None if mode == Mode::ForwardDynamics => {}
            None if columns.base(joint) => {
                if mode == Mode::InverseDynamics {
                    notes.push(Note::BaseRests);
                }
            }
            None => absent.push(names[0].clone()),
        }
        if mode == Mode::ForwardDynamics
            && let Some(forces) = columns.find(&columns.names("tau", joint, &v_names))?
        {
            for (k, values) in joint.v_range().zip(forces) {
                motion.force(k, values)?;
            }
        }
    }
    if let Some(name) = absent.first() {
        bail!("{}", columns.missing(name));
    }
    for (k, wheel) in mechanism.wheels().iter().enumerate() {
        let angles = columns.find(&[format!("q.{}", wheel.name)])?;
        let rates = columns.find(&[format!("dq.{}", wheel.name)])?;
        let first = |columns: Option<Vec<Vec<f64>>>| columns.and_then(|c| c.into_iter().next());
        if mode == Mode::FreeFlight {
            motion.wheel(k, first(angles), first(rates))?;
        } else if angles.is_some() || rates.is_some() {
            notes.push(Note::WheelsLocked);
        }
    }
    notes.dedup();
    let unused: Vec<String> = (0..log.names().len())
        .filter(|k| !columns.used.contains(k))
        .map(|k| log.names()[k].clone())
        .collect();
    if !unused.is_empty() {
        notes.push(Note::UnusedColumns(unused));
    }
    Ok(motion)
}
