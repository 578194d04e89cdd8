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
    /// Lets the base float if neither the model nor its options say whether it does, and all logs contain its motion.
    /// A note reports the choice, also if the logged base does not move and remains fixed.
    pub fn float_logged_base(
        self,
        logs: &[String],
        options: &LogOptions,
        context: &Context<'_>,
    ) -> Result<Self> {
        let is_open = self.options.base.is_none() && self.mechanism.base() == Base::Fixed;
        // A pipe can be read only once.
        let is_pipe = |log: &String| log == "-" || context.inputs.size(log) == 0;
        if !is_open || logs.is_empty() || logs.iter().any(is_pipe) {
            return Ok(self);
        }
        let Ok(mechanism) = self.with_base(Base::Floating) else { return Ok(self) };
        let mut moves = false;
        for log in logs {
            // Errors of unreadable logs are reported by the job.
            let is_log = matches!(saved_summary(context, log), Ok(None));
            let reader = options.reader(context, Some(&self.mechanism), log).ok().filter(|_| is_log);
            let Some(mut reader) = reader else { return Ok(self) };
            let place = |name: &&str| reader.names().iter().position(|n| n == name);
            let found = |names: &[&str]| names.iter().map(place).collect::<Option<Vec<usize>>>();
            let Some((columns, is_pose)) =
                found(&POSE).map(|c| (c, true)).or_else(|| found(&TWIST).map(|c| (c, false)))
            else {
                return Ok(self);
            };
            // Logs without joints, such as those of free flights, are read in other ways.
            if Columns::matching(&mechanism, log, reader.names(), &inertial_data::Options::default()).is_err()
            {
                return Ok(self);
            }
            moves = moves || has_motion(reader.as_mut(), &columns, is_pose);
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

/// Returns whether the columns of a base change; reading ends with the first change.
fn has_motion(reader: &mut dyn Reader, columns: &[usize], is_pose: bool) -> bool {
    reader.select(columns);
    let (mut least, mut most) = (vec![f64::INFINITY; columns.len()], vec![f64::NEG_INFINITY; columns.len()]);
    // Errors of unreadable rows are reported by the job.
    while let Ok(Some(rows)) = reader.next_rows() {
        for row in rows.values.chunks_exact(rows.width.max(1)) {
            for (k, x) in row.iter().enumerate().filter(|(_, x)| x.is_finite()) {
                (least[k], most[k]) = (least[k].min(*x), most[k].max(*x));
            }
        }
        // A quaternion and its negative are the same orientation.
        let of_pose = |k: usize| {
            let change = most[k] - least[k];
            let turned = if k < 3 { change } else { change.min((most[k] + least[k]).abs()) };
            turned > MOVED
        };
        let of_twist = |k: usize| most[k].max(-least[k]) > SPEED;
        if (0..columns.len()).any(|k| if is_pose { of_pose(k) } else { of_twist(k) }) {
            return true;
        }
    }
    false
}
