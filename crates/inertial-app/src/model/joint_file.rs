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
}

/// Returns the path of the joint file of a model: `robot.joints.json` for `robot.urdf`.
pub fn joint_file(model: &Path) -> PathBuf {
    model.with_extension("joints.json")
}

/// Returns whether bytes are a joint file.
pub(crate) fn is_joint_file(bytes: &[u8]) -> bool {
    serde_json::from_slice::<JointFile>(bytes).is_ok_and(|file| file.schema == SCHEMA)
}

/// Returns the text of the joint file for a model with this text.
pub(crate) fn text(model: &str, joints: &[JointEstimate]) -> Result<String> {
    let model_sha256 = Checksum::of_text("", model.as_bytes()).sha256;
    let file = JointFile { schema: SCHEMA.to_owned(), model_sha256, joints: joints.to_vec() };
    Ok(serde_json::to_string_pretty(&file)? + "\n")
}

impl Model {
    /// Reads the joint terms from the joint file beside the model; empty if there is no such file, or if it belongs
    /// to another version of the model.
    pub(crate) fn joint_values(&self, context: &Context<'_>) -> Result<Vec<JointEstimate>> {
        let path = joint_file(Path::new(&self.label));
        let name = path.to_string_lossy();
        if self.label.starts_with("builtin:") || context.inputs.size(&name) == 0 {
            return Ok(Vec::new());
        }
        let text = context.inputs.text(&name, TEXT_LIMIT).at(&name)?;
        let file: JointFile = serde_json::from_str(&text).at(&name)?;
        ensure!(file.schema == SCHEMA, "{name}: has the schema {}, expected {SCHEMA}", file.schema);
        if file.model_sha256 != Checksum::of_text("", self.text.as_bytes()).sha256 {
            context.note(&Note::OtherJointFile(name.into_owned()));
            return Ok(Vec::new());
        }
        context.note(&Note::JointFile(name.into_owned()));
        // Locked joints have no terms.
        let names = self.mechanism.velocity_names();
        Ok(file.joints.into_iter().filter(|joint| names.contains(&joint.name)).collect())
    }
}
