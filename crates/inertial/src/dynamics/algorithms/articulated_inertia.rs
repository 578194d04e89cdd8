//! Articulated-body inertias and the memory of the articulated-body algorithm.

use nalgebra::Matrix3;

use crate::mechanism::Mechanism;
use crate::spatial::{Force, Inertia, Motion, Pose, skew};

/// Memory of the articulated-body algorithm.
#[derive(Debug, Clone)]
pub(crate) struct ArticulatedScratch {
    pub bodies: Vec<ArticulatedBody>,
    /// Size of the terms whose difference the articulated inertia of each velocity coordinate is.
    pub scale: Vec<f64>,
    /// Empty until a coupled mechanism needs it.
    pub mass_matrix: Vec<f64>,
}

impl ArticulatedScratch {
    pub fn new(mechanism: &Mechanism) -> Self {
        let body =
            ArticulatedBody { inertia: ArticulatedInertia::rigid(&Inertia::zero()), factor: [0.0; 36] };
        Self {
            bodies: vec![body; mechanism.bodies().len()],
            scale: vec![0.0; mechanism.nv()],
            mass_matrix: Vec::new(),
        }
    }

    pub fn nv(&self) -> usize {
        self.scale.len()
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ArticulatedBody {
    /// Articulated inertia: the body with its children free to move in their joints.
    pub inertia: ArticulatedInertia,
    /// Factor of the inertia along the free modes, `ΦᵀIΦ = L D Lᵀ`.
    pub factor: [f64; 36],
}

/// A symmetric 6×6 matrix from motions to forces, in 3×3 blocks `[[angular, cross], [crossᵀ, linear]]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArticulatedInertia {
    angular: Matrix3<f64>,
    cross: Matrix3<f64>,
    linear: Matrix3<f64>,
}

impl ArticulatedInertia {
    pub fn rigid(inertia: &Inertia<f64>) -> Self {
        Self {
            angular: inertia.rotational,
            cross: skew(&inertia.first_moment),
            linear: Matrix3::from_diagonal_element(inertia.mass),
        }
    }

    pub fn apply(&self, m: &Motion<f64>) -> Force<f64> {
        Force::new(
            self.angular * m.angular + self.cross * m.linear,
            self.cross.tr_mul(&m.angular) + self.linear * m.linear,
        )
    }

    pub fn add(&mut self, o: &Self) {
        self.angular += o.angular;
        self.cross += o.cross;
        self.linear += o.linear;
    }

    /// Subtracts `scale f fᵀ`.
    pub fn remove(&mut self, f: &Force<f64>, scale: f64) {
        let (angular, linear) = (f.angular * scale, f.linear * scale);
        self.angular -= angular * f.angular.transpose();
        self.cross -= angular * f.linear.transpose();
        self.linear -= linear * f.linear.transpose();
    }

    /// Transforms the inertia to the parent of a frame at `pose`.
    pub fn pushed(&self, pose: &Pose<f64>) -> Self {
        let (r, p) = (&pose.rotation, skew(&pose.translation));
        let turned = |m: &Matrix3<f64>| r * m * r.transpose();
        let (angular, cross, linear) = (turned(&self.angular), turned(&self.cross), turned(&self.linear));
        let shifted = cross + p * linear;
        Self { angular: angular - cross * p + p * shifted.transpose(), cross: shifted, linear }
    }
}
