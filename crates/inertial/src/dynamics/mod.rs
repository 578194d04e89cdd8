//! Kinematics and dynamics of a mechanism, and their regressors.
