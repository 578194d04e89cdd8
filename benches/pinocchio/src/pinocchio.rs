//! Pinocchio's kernels, through the C interface of `shim.cpp`.

use std::ffi::{c_int, c_void};
use std::path::Path;

use inertial::mechanism::{JointType, Mechanism};
use libloading::Library;
use nalgebra::Vector3;

type Evaluate = unsafe extern "C" fn(*mut c_void, *const f64, *const f64, *const f64) -> *const f64;
type AtPosition = unsafe extern "C" fn(*mut c_void, *const f64) -> *const f64;
type Stack = unsafe extern "C" fn(*mut c_void, usize, *const f64, *const f64, *const f64, *mut f64);
type Add = unsafe extern "C" fn(
    *mut c_void,
    usize,
    c_int,
    *const f64,
    *const f64,
    *const f64,
    f64,
    *const f64,
    *const f64,
);

/// Loaded shared library.
pub struct Pinocchio {
    library: Library,
}

/// A robot in Pinocchio.
pub struct Robot {
    pointer: *mut c_void,
    size: (usize, usize),
    rnea: Evaluate,
    aba: Evaluate,
    crba: AtPosition,
    kinematics: AtPosition,
    regressor: Evaluate,
    stack: Stack,
    free: unsafe extern "C" fn(*mut c_void),
}

impl Pinocchio {
    /// Loads the shared library that `run.py` builds.
    pub fn load(path: &Path) -> Result<Self, String> {
        // SAFETY: the initializers of the library are those of Pinocchio, which are safe to run.
        let library = unsafe { Library::new(path) }.map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self { library })
    }

    /// Copies a robot into Pinocchio, body by body.
    pub fn robot(&self, mechanism: &Mechanism) -> Result<Robot, String> {
        // SAFETY: the types are those of the functions in shim.cpp.
        let (new, add, finish, rnea, aba, crba, kinematics, regressor, stack, free) = unsafe {
            (
                self.symbol::<unsafe extern "C" fn(*const f64) -> *mut c_void>("pin_new")?,
                self.symbol::<Add>("pin_add")?,
                self.symbol::<unsafe extern "C" fn(*mut c_void)>("pin_finish")?,
                self.symbol::<Evaluate>("pin_rnea")?,
                self.symbol::<Evaluate>("pin_aba")?,
                self.symbol::<AtPosition>("pin_crba")?,
                self.symbol::<AtPosition>("pin_kinematics")?,
                self.symbol::<Evaluate>("pin_regressor")?,
                self.symbol::<Stack>("pin_stack")?,
                self.symbol::<unsafe extern "C" fn(*mut c_void)>("pin_free")?,
            )
        };
        let size = (mechanism.nv(), mechanism.parameter_count());
        // SAFETY: gravity has three numbers.
        let pointer = unsafe { new(mechanism.gravity().as_slice().as_ptr()) };
        let robot = Robot { pointer, size, rnea, aba, crba, kinematics, regressor, stack, free };
        for body in mechanism.bodies() {
            let (kind, axis) = match body.joint_type {
                JointType::Floating => (0, Vector3::zeros()),
                JointType::Revolute { axis } => (1, axis),
                JointType::Prismatic { axis } => (2, axis),
                other => return Err(format!("no {} joints here", other.name())),
            };
            let rotation = body.placement.rotation.transpose();
            let com = body.inertia.com().unwrap_or_else(Vector3::zeros);
            let inertia = body.inertia.about_com();
            // SAFETY: the arrays have the sizes that shim.cpp reads (nalgebra is column-major: hence the transpose).
            unsafe {
                add(
                    pointer,
                    body.parent.map_or(0, |p| p + 1),
                    kind,
                    axis.as_slice().as_ptr(),
                    rotation.as_slice().as_ptr(),
                    body.placement.translation.as_slice().as_ptr(),
                    body.inertia.mass,
                    com.as_slice().as_ptr(),
                    inertia.as_slice().as_ptr(),
                );
            }
        }
        // SAFETY: the robot is complete.
        unsafe { finish(pointer) };
        Ok(robot)
    }

    /// # Safety
    /// `T` must be the function's type.
    unsafe fn symbol<T: Copy>(&self, name: &str) -> Result<T, String> {
        // SAFETY: as for the caller.
        unsafe { self.library.get::<T>(name.as_bytes()) }.map(|s| *s).map_err(|e| format!("{name}: {e}"))
    }
}

impl Robot {
    /// Computes inverse dynamics.
    pub fn rnea(&mut self, q: &[f64], v: &[f64], a: &[f64]) -> &[f64] {
        // SAFETY: the arrays have the robot's sizes, and so has the result, which lives until the next call.
        unsafe {
            let tau = (self.rnea)(self.pointer, q.as_ptr(), v.as_ptr(), a.as_ptr());
            std::slice::from_raw_parts(tau, self.size.0)
        }
    }

    /// Computes forward dynamics.
    pub fn aba(&mut self, q: &[f64], v: &[f64], tau: &[f64]) -> &[f64] {
        // SAFETY: the arrays have the robot's sizes, and so has the result, which lives until the next call.
        unsafe {
            let a = (self.aba)(self.pointer, q.as_ptr(), v.as_ptr(), tau.as_ptr());
            std::slice::from_raw_parts(a, self.size.0)
        }
    }

    /// Computes the upper triangle of the mass matrix, column-major.
    pub fn crba(&mut self, q: &[f64]) -> &[f64] {
        // SAFETY: the array has the robot's size, and so has the result, which lives until the next call.
        unsafe {
            let h = (self.crba)(self.pointer, q.as_ptr());
            std::slice::from_raw_parts(h, self.size.0 * self.size.0)
        }
    }

    /// Computes forward kinematics of all bodies; returns the position of the last one.
    pub fn kinematics(&mut self, q: &[f64]) -> &[f64] {
        // SAFETY: the array has the robot's size; the result has three numbers and lives until the next call.
        unsafe {
            let p = (self.kinematics)(self.pointer, q.as_ptr());
            std::slice::from_raw_parts(p, 3)
        }
    }

    /// Computes the torque regressor, column-major.
    pub fn regressor(&mut self, q: &[f64], v: &[f64], a: &[f64]) -> &[f64] {
        // SAFETY: as above.
        unsafe {
            let y = (self.regressor)(self.pointer, q.as_ptr(), v.as_ptr(), a.as_ptr());
            std::slice::from_raw_parts(y, self.size.0 * self.size.1)
        }
    }

    /// Computes the regressors of several samples into `out`.
    pub fn stack(&mut self, count: usize, q: &[f64], v: &[f64], a: &[f64], out: &mut [f64]) {
        assert!(out.len() >= count * self.size.0 * self.size.1);
        // SAFETY: as above, and `out` has room.
        unsafe {
            (self.stack)(self.pointer, count, q.as_ptr(), v.as_ptr(), a.as_ptr(), out.as_mut_ptr());
        }
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        // SAFETY: made by pin_new, freed once.
        unsafe { (self.free)(self.pointer) };
    }
}
