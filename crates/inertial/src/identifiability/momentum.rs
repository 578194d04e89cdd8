//! Minimal parameters of a free-flying tree with revolute joints in closed form (paper 002, section IV).
//!
//! Across a hinge, three parameters of the child can be moved to its parent without changing any momentum: the mass,
//! concentrated at the origin of the hinge; the first moment along the axis; and the disc `1 − zzᵀ` of rotational
//! inertia, which is the same at every angle. With `z` the axis and `b` the origin of the child in its parent these are
//! the paper's `k₂ = [−b̃², 1, b]`, `k₃ = [t₂, 0, t₃]` and `k₁ = [t₁, 0, 0]` (eqs 18–20), where for its frames `z = (0,
//! −Sα, Cα)` gives `t₁ = [1, C², S², 0, CS, 0]`, `t₂ = [2(b₃C−b₂S), 2b₃C, −2b₂S, b₁S, b₃S−b₂C, −b₁C]` (its fourth entry
//! is missing in print) and `t₃ = z`.
//!
//! [`super::analyze`] with [`super::Measured::Momentum`] covers all other joint types.

use nalgebra::{DMatrix, Matrix3, Vector3};

use crate::mechanism::{BodyKind, JointType, Mechanism};
use crate::spatial::{Inertia, Parameters, Pose, transfer_matrix};
use crate::{Error, Place, Result};

/// Order of the parameters of a link in the paper (`φ`, eq. 10), with their positions in the order of this library.
const PAPER_ORDER: [(&str, usize); 10] = [
    ("Ixx", 4),
    ("Iyy", 7),
    ("Izz", 9),
    ("Ixy", 5),
    ("Iyz", 8),
    ("Izx", 6),
    ("m", 0),
    ("hx", 1),
    ("hy", 2),
    ("hz", 3),
];

/// Positions, in the order of this library, of the parameters that move to the parent: `Iyy`, `m`, `hz` (the paper's 2,
/// 7, 10).
const REDUNDANT: [usize; 3] = [7, 0, 3];

/// Minimal parameters in closed form: `φ_m = regroup · π`, and the columns of the regressor that multiply them.
///
/// The base has ten parameters and each body has seven: `Ixx−Iyy Izz Ixy Iyz Izx hx hy`, in a frame whose `z` is the
/// axis of its hinge (the body frame itself if the axis is its `z`).
///
/// ```
/// use inertial::identifiability::momentum::MinimalParameters;
/// use inertial::mechanism::builtin;
///
/// let robot = builtin::get("space-dual-arm")?.build(&Default::default())?;
/// let minimal = MinimalParameters::new(&robot)?;
/// assert_eq!(minimal.len(), 10 + 7 * 6);
/// let values = minimal.values(&robot.parameters())?;
/// assert_eq!((minimal.names[6].as_str(), values[6]), ("L0.m", 2265.0)); // all the mass counts at the base
/// # Ok::<(), inertial::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MinimalParameters {
    /// Names of the form `BODY.NAME`, in the order of the paper (eq. 25).
    pub names: Vec<String>,
    /// Matrix that maps all parameters to the minimal ones (eqs 21–23): `(10 + 7n) × np`.
    pub regroup: DMatrix<f64>,
    /// Matrix that maps the momentum regressor `K` to the minimal one, `K_m = K · columns` (eq. 24): `np × (10 + 7n)`.
    pub columns: DMatrix<f64>,
}

impl MinimalParameters {
    /// Computes the minimal parameters of a floating base that carries a tree of hinges.
    pub fn new(mechanism: &Mechanism) -> Result<Self> {
        check(mechanism)?;
        let bodies = mechanism.bodies();
        let np = mechanism.parameter_count();
        // Frames whose z is the axis of the hinge, in the body frames.
        let aligned: Vec<Matrix3<f64>> = bodies.iter().map(|b| aligned(&b.joint_type)).collect();
        // φ̃ of each body as a linear map of all parameters, computed from the tips inward (eqs 21, 22).
        let mut grouped: Vec<SMatrixX> = (0..bodies.len())
            .map(|i| {
                let mut own = SMatrixX::zeros(np);
                let turn = transfer_matrix(&Pose::new(aligned[i].transpose(), Vector3::zeros()));
                own.columns_mut(10 * i, 10).copy_from(&turn);
                own
            })
            .collect();
        let mut names = Vec::with_capacity(10 + 7 * (bodies.len() - 1));
        let mut regroup = DMatrix::zeros(names.capacity(), np);
        let mut columns = DMatrix::zeros(np, names.capacity());
        for (j, body) in bodies.iter().enumerate().rev() {
            let Some(parent) = body.parent else { continue };
            let to_parent = aligned[parent].transpose();
            let axis = to_parent * (body.placement.rotation * aligned[j].column(2));
            let at = to_parent * body.placement.translation;
            for (&place, k) in REDUNDANT.iter().zip(dependence(&axis, &at)) {
                let moved = grouped[j].row(place).into_owned();
                grouped[parent] += k * moved;
            }
        }
        let mut row = 0;
        for (i, body) in bodies.iter().enumerate() {
            let back = transfer_matrix(&Pose::new(aligned[i], Vector3::zeros()));
            for (name, place) in PAPER_ORDER {
                let hinged = i > 0;
                if hinged && REDUNDANT.contains(&place) {
                    continue;
                }
                let mut combination = grouped[i].row(place).into_owned();
                let mut name = format!("{}.{name}", body.name);
                if hinged && place == 4 {
                    // Iyy moves to the parent as part of a disc, which subtracts it from Ixx (eq. 18).
                    combination -= grouped[i].row(7);
                    name.push_str("-Iyy");
                }
                regroup.set_row(row, &combination);
                columns.view_mut((10 * i, row), (10, 1)).copy_from(&back.column(place));
                names.push(name);
                row += 1;
            }
        }
        Ok(Self { names, regroup, columns })
    }

    /// Returns the number of minimal parameters.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns `false`: the base has ten parameters.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Computes `φ_m` from parameters in the order of [`Mechanism::parameters`].
    pub fn values(&self, parameters: &[f64]) -> Result<Vec<f64>> {
        let expected = self.regroup.ncols();
        if parameters.len() != expected {
            return Err(Error::Dimension { what: "parameter vector", expected, found: parameters.len() });
        }
        let product = &self.regroup * nalgebra::DVectorView::from_slice(parameters, expected);
        Ok(product.as_slice().to_vec())
    }
}

/// Matrix with ten rows and one column for each parameter.
type SMatrixX = nalgebra::OMatrix<f64, nalgebra::Const<10>, nalgebra::Dyn>;

/// Returns `k₁, k₂, k₃`: the parameters of the parent equivalent to a unit of the child's `Iyy` (with equal `Ixx`), `m`
/// and `hz`, for a hinge with axis `z` at `b`.
fn dependence(z: &Vector3<f64>, b: &Vector3<f64>) -> [Parameters; 3] {
    let (one, zero) = (Matrix3::identity(), Vector3::zeros());
    let disc = Inertia { mass: 0.0, first_moment: zero, rotational: one - z * z.transpose() };
    let point =
        Inertia { mass: 1.0, first_moment: *b, rotational: one * b.norm_squared() - b * b.transpose() };
    let spread = b * z.transpose();
    let along = Inertia {
        mass: 0.0,
        first_moment: *z,
        rotational: one * (2.0 * b.dot(z)) - spread - spread.transpose(),
    };
    [disc, point, along].map(|i| i.parameters())
}

/// Returns a frame whose `z` is the axis of the joint, in the body frame, obtained by the smallest rotation.
fn aligned(joint: &JointType) -> Matrix3<f64> {
    let JointType::Revolute { axis } = joint else { return Matrix3::identity() };
    let z = Vector3::z();
    if z.cross(axis).norm() == 0.0 {
        return Matrix3::identity(); // a disc is the same for both directions of its axis
    }
    nalgebra::Rotation3::rotation_between(&z, axis)
        .map_or_else(Matrix3::identity, nalgebra::Rotation3::into_inner)
}

fn check(mechanism: &Mechanism) -> Result<()> {
    if mechanism.base() != crate::mechanism::Base::Floating {
        return Err(Error::Numeric("the momentum model needs a robot with a floating base".into()));
    }
    if !mechanism.loops().is_empty() {
        return Err(Error::Numeric("the closed form is for trees: this mechanism has loops".into()));
    }
    let hinge = |b: &&crate::mechanism::Body| {
        b.kind == BodyKind::Link && matches!(b.joint_type, JointType::Revolute { .. }) && b.drive.ratio == 1.0
    };
    match mechanism.bodies()[1..].iter().find(|b| !hinge(b)) {
        None => Ok(()),
        Some(body) => Err(Error::model(
            Place::element(format!("joint \"{}\"", mechanism.joints()[body.joint].name)),
            "the closed form is for uncoupled revolute joints; use analyze for all others",
        )),
    }
}
