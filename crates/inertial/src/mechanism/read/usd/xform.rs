//! Frames of prims.

use nalgebra::{Matrix3, Matrix4, Vector3};

use super::stage::{Node, Stage};
use crate::Result;
use crate::mechanism::rotation_about;
use crate::spatial::{Pose, rotation_from_quaternion};

/// Tolerance for deviations from right angles in a rotation: matrices may be in single precision.
const SKEW: f64 = 1e-4;

/// Frame in the world: a scaling followed by a rigid motion.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    /// Transformation matrix, whose columns are the images of the axes; lengths are in units of the scene.
    pub matrix: Matrix4<f64>,
}

impl Frame {
    pub fn identity() -> Self {
        Self { matrix: Matrix4::identity() }
    }

    /// Returns the scale factors along the axes.
    pub fn scale(&self) -> Vector3<f64> {
        Vector3::from_fn(|i, _| self.matrix.fixed_view::<3, 1>(0, i).norm())
    }

    /// Returns the rigid part, with lengths in metres.
    pub fn pose(&self, node: &Node, unit: f64) -> Result<Pose<f64>> {
        let scale = self.scale();
        let linear: Matrix3<f64> = self.matrix.fixed_view::<3, 3>(0, 0).into_owned();
        if !scale.iter().all(|s| s.is_normal()) {
            return Err(node.error("its frame is scaled to zero, or not finite"));
        }
        let rotation = Matrix3::from_fn(|i, j| linear[(i, j)] / scale[j]);
        let skew = (rotation.transpose() * rotation - Matrix3::identity()).amax();
        if rotation.determinant() < 0.0 || !(skew < SKEW) {
            return Err(node.unsupported("a frame that is mirrored or sheared (negative or uneven scales)"));
        }
        // Single-precision matrices are not exactly orthonormal.
        let x = rotation.column(0).into_owned();
        let y = rotation.column(1) - x * x.dot(&rotation.column(1));
        let (x, y) = (x.normalize(), y.normalize());
        let rotation = if skew < 1e-14 { rotation } else { Matrix3::from_columns(&[x, y, x.cross(&y)]) };
        Ok(Pose::new(rotation, self.matrix.fixed_view::<3, 1>(0, 3) * unit))
    }
}

impl Stage {
    /// Returns the frames of all prims in the world.
    pub fn frames(&self) -> Result<Vec<Frame>> {
        let mut out: Vec<Frame> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let parent = node.parent.map_or(Frame::identity(), |p| out[p]);
            let (own, resets) = local(node)?;
            out.push(if resets { own } else { Frame { matrix: parent.matrix * own.matrix } });
        }
        Ok(out)
    }
}

/// Returns the frame of a prim in its parent's frame, and whether it is in the world's frame instead.
fn local(node: &Node) -> Result<(Frame, bool)> {
    let mut matrix: Matrix4<f64> = Matrix4::identity();
    let mut resets = false;
    for op in node.texts("xformOpOrder").unwrap_or_default() {
        if op == "!resetXformStack!" {
            (matrix, resets) = (Matrix4::identity(), true);
            continue;
        }
        let (name, inverted) = match op.strip_prefix("!invert!") {
            Some(name) => (name, true),
            None => (op.as_str(), false),
        };
        let Some(mut step) = operation(node, name)? else { continue };
        if inverted {
            step = step.try_inverse().ok_or_else(|| node.error(format!("{name} has no inverse")))?;
        }
        matrix *= step;
    }
    if !matrix.iter().all(|x| x.is_finite()) {
        return Err(node.error("its frame is not finite"));
    }
    Ok((Frame { matrix }, resets))
}

fn operation(node: &Node, name: &str) -> Result<Option<Matrix4<f64>>> {
    let kind = name.split(':').nth(1).unwrap_or_default();
    let linear = |m: Matrix3<f64>| Some(m.to_homogeneous());
    let axis = |letter: char| match letter {
        'X' => Vector3::x(),
        'Y' => Vector3::y(),
        _ => Vector3::z(),
    };
    let turn = |letter: char, degrees: f64| rotation_about(&axis(letter), degrees.to_radians());
    Ok(match kind {
        "translate" => node.array::<3>(name)?.map(|t| Matrix4::new_translation(&t.into())),
        "scale" => node.array::<3>(name)?.map(|s| Matrix4::new_nonuniform_scaling(&s.into())),
        "translateX" | "translateY" | "translateZ" => node
            .number(name)?
            .map(|t| Matrix4::new_translation(&(axis(kind.chars().last().unwrap_or('Z')) * t))),
        "scaleX" | "scaleY" | "scaleZ" => node.number(name)?.map(|s| {
            let along = axis(kind.chars().last().unwrap_or('Z'));
            Matrix4::new_nonuniform_scaling(&(Vector3::repeat(1.0) + along * (s - 1.0)))
        }),
        "orient" => match node.array::<4>(name)? {
            Some(q) => linear(quaternion(node, name, q)?),
            None => None,
        },
        "rotateX" | "rotateY" | "rotateZ" => {
            node.number(name)?.and_then(|angle| linear(turn(kind.chars().last().unwrap_or('Z'), angle)))
        }
        "rotateXYZ" | "rotateXZY" | "rotateYXZ" | "rotateYZX" | "rotateZXY" | "rotateZYX" => {
            // The first letter is the rotation that is applied first.
            node.array::<3>(name)?.and_then(|angles| {
                let angle = |letter: char| angles[(letter as usize - 'X' as usize).min(2)];
                let letters = kind["rotate".len()..].chars();
                linear(letters.fold(Matrix3::identity(), |sum, letter| turn(letter, angle(letter)) * sum))
            })
        }
        // The rows are the images of the axes.
        "transform" => node.array::<16>(name)?.map(|m| Matrix4::from_column_slice(&m)),
        _ => return Err(node.unsupported(format!("the transformation {name}"))),
    })
}

/// Returns the rotation of a quaternion, real part first; all zeros mean the identity.
pub(super) fn quaternion(node: &Node, name: &str, [w, x, y, z]: [f64; 4]) -> Result<Matrix3<f64>> {
    if [w, x, y, z] == [0.0; 4] {
        return Ok(Matrix3::identity());
    }
    let rotation = rotation_from_quaternion(x, y, z, w);
    let rotation = rotation.filter(|r: &Matrix3<f64>| r.iter().all(|x| x.is_finite()));
    rotation.ok_or_else(|| node.error(format!("{name} is not a quaternion")))
}
