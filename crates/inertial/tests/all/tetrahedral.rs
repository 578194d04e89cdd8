//! Tetrahedral-point model, compared with the torque regressor on trees and with loops.

#![allow(clippy::unwrap_used)]

use crate::common::{Features, Rng, cases};
use crate::machines;
use inertial::dynamics::{
    ClosedMechanism, InverseDynamics, Workspace, parameters_from_pseudo_inertia, tetrahedral_regressor,
};
use inertial::mechanism::Mechanism;
use nalgebra::DMatrix;

/// Returns the columns of the torque regressor in terms of pseudo-inertias: `Y_N = Y_π (∂π/∂N)`, body by body.
fn in_pseudo_inertias(robot: &Mechanism, y: &DMatrix<f64>) -> Vec<(usize, DMatrix<f64>)> {
    let map = DMatrix::from_column_slice(10, 10, parameters_from_pseudo_inertia().as_slice());
    let blocks = robot.parameter_blocks().iter().filter(|b| b.len == 10);
    blocks.map(|b| (b.body, y.columns(b.offset, 10) * &map)).collect()
}

fn compare(name: &str, expected: &[(usize, DMatrix<f64>)], found: &DMatrix<f64>) {
    for (body, y) in expected {
        let own = found.columns(10 * body, 10);
        let size = 1.0 + y.amax();
        // Rounding error of a chain of some ten joints.
        assert!((own - y).amax() < 1e-11 * size, "{name}: body {body}, {:.1e}", (own - y).amax());
    }
}

#[test]
fn on_trees_it_is_the_torque_regressor_in_other_coordinates() {
    for case in cases(40, Features::LINEAR) {
        let (robot, q, v, a) = (&case.mechanism, &case.q, &case.v, &case.a);
        let dynamics = InverseDynamics::new(robot);
        let y = dynamics.torque_regressor(&mut dynamics.scratch(), q, v, a).unwrap().to_vec();
        let y = DMatrix::from_row_slice(robot.nv(), robot.parameter_count(), &y);
        let found = tetrahedral_regressor(robot, &mut Workspace::new(robot), q, v, a).unwrap();
        compare(&case.label, &in_pseudo_inertias(robot, &y), &found);
    }
}

#[test]
fn with_loops_too() {
    for (name, robot, _) in machines::all() {
        let closed = ClosedMechanism::new(&robot).unwrap();
        let (mut ws, mut rng) = (closed.workspace(), Rng(9));
        let q = closed.assembled().to_vec();
        let (v, a) = (rng.values(closed.dof(), 1.0), rng.values(closed.dof(), 1.0));
        let y = closed.torque_regressor(&mut ws, &q, &v, &a).unwrap().to_vec();
        let y = DMatrix::from_row_slice(closed.dof(), robot.parameter_count(), &y);
        let (mut tree_v, mut tree_a) = (vec![0.0; robot.nv()], vec![0.0; robot.nv()]);
        closed.accelerations(&mut ws, &q, &v, &a, &mut tree_v, &mut tree_a).unwrap();
        let map = closed.velocity_map(&mut ws, &q).unwrap().clone();
        let tree = tetrahedral_regressor(&robot, &mut Workspace::new(&robot), &q, &tree_v, &tree_a).unwrap();
        compare(&name, &in_pseudo_inertias(&robot, &y), &(map.transpose() * tree));
    }
}
