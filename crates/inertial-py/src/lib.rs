//! The Python package `inertial`.
