//! Base that floats because the logs contain its motion.

use inertial::mechanism::write::{Syntax, describe};
use inertial::mechanism::{Base, read};
use inertial_data::{Columns, Reader};

use crate::logs::LogOptions;
use crate::summary_file::saved_summary;
use crate::{Context, Located, Model, Note, Result};

/// Columns of the pose of a base, and of its twist.
const POSE: [&str; 7] = ["base.x", "base.y", "base.z", "base.qx", "base.qy", "base.qz", "base.qw"];
const TWIST: [&str; 6] = ["base.vx", "base.vy", "base.vz", "base.wx", "base.wy", "base.wz"];

/// Change of a coordinate of the pose (m, or component of the quaternion) above which the base moves. Motion capture of a
/// base at rest has less noise.
const MOVED: f64 = 0.01;
/// Speed (m/s or rad/s) above which the base moves, for logs without its pose.
const SPEED: f64 = 0.1;

impl Model {
    /// Returns whether neither the model nor its options determine if the base floats.
    pub(crate) fn may_float(&self) -> bool {
        self.options.base.is_none() && self.mechanism.base() == Base::Fixed
    }

    /// Lets the base float if neither the model nor its options determine its type, and all logs contain its motion. A
    /// note reports the choice, also if the logged base does not move and remains fixed.
    pub fn float_logged_base(
        self,
        logs: &[String],
        options: &LogOptions,
        context: &Context<'_>,
    ) -> Result<Self> {
        // A pipe can be read only once.
        let is_pipe = |log: &String| log == "-" || context.inputs.size(log) == 0;
        if !self.may_float() || logs.is_empty() || logs.iter().any(is_pipe) {
            return Ok(self);
        }
        let Ok(mechanism) = self.with_base(Base::Floating) else { return Ok(self) };
        let mut moves = false;
        for log in logs {
            // Errors of unreadable logs are reported by the job.
            let is_log = matches!(saved_summary(context, log), Ok(None));
            let reader = options.reader(context, Some(&self.mechanism), log).ok().filter(|_| is_log);
            let Some(mut reader) = reader else { return Ok(self) };
            let Some(motion) = BaseMotion::new(reader.names()) else { return Ok(self) };
            // Logs without joints, such as those of free flights, are read in other ways.
            if Columns::matching(&mechanism, log, reader.names(), &inertial_data::Options::default()).is_err()
            {
                return Ok(self);
            }
            moves = moves || motion.moves_in(reader.as_mut());
        }
        if !moves {
            context.note(&Note::BaseDoesNotMove);
            return Ok(self);
        }
        let text = if self.is_scene {
            let described = read::model(&self.text, &self.mesh_files).at(&self.label)?;
            describe(&described, Some(Base::Floating), Syntax::Toml).at(&self.label)?
        } else {
            self.text.clone()
        };
        context.note(&Note::BaseFloats);
        let options = self.options.with(|o| o.base = Some(Base::Floating));
        Ok(Self { text, options, mechanism, ..self })
    }
}

/// Range of the logged motion of a base.
#[derive(Debug)]
pub(crate) struct BaseMotion {
    /// Places of the columns in a row.
    columns: Vec<usize>,
    is_pose: bool,
    /// Smallest and largest value of each column.
    ranges: Vec<[f64; 2]>,
}

impl BaseMotion {
    /// Finds the columns of the pose of a base, or else those of its twist.
    pub(crate) fn new(names: &[String]) -> Option<Self> {
        let place = |name: &&str| names.iter().position(|n| n == name);
        let found = |wanted: &[&str]| wanted.iter().map(place).collect::<Option<Vec<usize>>>();
        let (columns, is_pose) =
            found(&POSE).map(|c| (c, true)).or_else(|| found(&TWIST).map(|c| (c, false)))?;
        let ranges = vec![[f64::INFINITY, f64::NEG_INFINITY]; columns.len()];
        Some(Self { columns, is_pose, ranges })
    }

    /// Adds one value of a column, by the index of the column among those found.
    fn add(&mut self, k: usize, x: f64) {
        if x.is_finite() {
            let [least, most] = &mut self.ranges[k];
            (*least, *most) = (least.min(x), most.max(x));
        }
    }

    /// Adds a row of all columns of the file.
    pub(crate) fn add_row(&mut self, value: impl Fn(usize) -> f64) {
        for k in 0..self.columns.len() {
            self.add(k, value(self.columns[k]));
        }
    }

    /// Returns whether the base has moved.
    pub(crate) fn has_moved(&self) -> bool {
        self.ranges.iter().enumerate().any(|(k, [least, most])| match (self.is_pose, k) {
            (true, 0..3) => most - least > MOVED,
            // A quaternion and its negative are the same orientation.
            (true, _) => (most - least).min((most + least).abs()) > MOVED,
            (false, _) => most.max(-least) > SPEED,
        })
    }

    /// Reads the columns of a log until the base has moved, and returns whether it has.
    fn moves_in(mut self, reader: &mut dyn Reader) -> bool {
        reader.select(&self.columns);
        // Errors of unreadable rows are reported by the job.
        while let Ok(Some(rows)) = reader.next_rows() {
            for row in rows.values.chunks_exact(rows.width.max(1)) {
                row.iter().enumerate().for_each(|(k, &x)| self.add(k, x));
            }
            if self.has_moved() {
                return true;
            }
        }
        false
    }
}
