//! Joint file: joint terms of an identified model that its format cannot represent, in a file beside it.

use std::path::{Path, PathBuf};

use inertial::estimation::JointEstimate;
use serde::{Deserialize, Serialize};

use crate::inputs::Checksum;
use crate::logs::TEXT_LIMIT;
use crate::{Context, Located, Model, Note, Result, ensure};

const SCHEMA: &str = "inertial/joints/1";

/// Content of a joint file.
#[derive(Debug, Serialize, Deserialize)]
struct JointFile {
    schema: String,
    /// Checksum of the model that the terms belong to.
    model_sha256: String,
    joints: Vec<JointEstimate>,
    /// Lag of the torques with which the terms were identified; absent in files of earlier versions and without a lag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lag: Option<Lag>,
}

/// Lag of the torques behind the motion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lag {
    /// Lag (s).
    pub value: f64,
    /// Standard error; absent if the lag was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub std_error: Option<f64>,
}

/// Content of a joint file that belongs to a model.
#[derive(Debug, Default)]
pub(crate) struct JointValues {
    /// Terms of the joints.
    pub joints: Vec<JointEstimate>,
    /// Lag of the torques.
    pub lag: Option<Lag>,
    /// Name of the file; empty if there is none.
    pub file: String,
}

/// Returns the path of the joint file of a model: `robot.joints.json` for `robot.urdf`.
pub fn joint_file(model: &Path) -> PathBuf {
    model.with_extension("joints.json")
}

/// Returns whether bytes are a joint file.
pub(crate) fn is_joint_file(bytes: &[u8]) -> bool {
    serde_json::from_slice::<JointFile>(bytes).is_ok_and(|file| file.schema == SCHEMA)
}

/// Returns whether bytes are the joint file of a model with this text.
pub(crate) fn is_joint_file_of(bytes: &[u8], model: &str) -> bool {
    let file = serde_json::from_slice::<JointFile>(bytes);
    file.is_ok_and(|file| {
        file.schema == SCHEMA && file.model_sha256 == Checksum::of_text("", model.as_bytes()).sha256
    })
}

/// Returns the text of the joint file for a model with this text.
pub(crate) fn text(model: &str, joints: &[JointEstimate], lag: Option<Lag>) -> Result<String> {
    let model_sha256 = Checksum::of_text("", model.as_bytes()).sha256;
    let file = JointFile { schema: SCHEMA.to_owned(), model_sha256, joints: joints.to_vec(), lag };
    Ok(serde_json::to_string_pretty(&file)? + "\n")
}

impl Model {
    /// Reads the joint terms and the lag from the joint file beside the model; empty if there is no such file, or if it belongs
    /// to another version of the model.
    pub(crate) fn joint_values(&self, context: &Context<'_>) -> Result<JointValues> {
        let path = joint_file(Path::new(&self.label));
        let name = path.to_string_lossy();
        if self.label.starts_with("builtin:") || context.inputs.size(&name) == 0 {
            return Ok(JointValues::default());
        }
        let text = context.inputs.text(&name, TEXT_LIMIT).at(&name)?;
        let file: JointFile = serde_json::from_str(&text).at(&name)?;
        ensure!(file.schema == SCHEMA, "{name}: has the schema {}, expected {SCHEMA}", file.schema);
        if file.model_sha256 != Checksum::of_text("", self.text.as_bytes()).sha256 {
            context.note(&Note::OtherJointFile(name.into_owned()));
            return Ok(JointValues::default());
        }
        let is_finite = file.lag.is_none_or(|lag| lag.value.is_finite());
        ensure!(is_finite, "{name}: the lag is not a finite number of seconds");
        context.note(&Note::JointFile(name.clone().into_owned()));
        // Locked joints have no terms.
        let names = self.mechanism.velocity_names();
        let joints = file.joints.into_iter().filter(|joint| names.contains(&joint.name)).collect();
        Ok(JointValues { joints, lag: file.lag, file: name.into_owned() })
    }
}
