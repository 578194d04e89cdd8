//! Errors of the model of a robot whose payload is identified.
//!
//! The model gives the base parameters `β` of the robot without its payload. Their errors act like a payload, in part. If they were
//! neglected, the payload would be wrong by many of its stated errors. Errors of links are therefore unknowns with a prior. The data determine its width: only
//! a part of the errors looks like a payload, the others change the residual.

use nalgebra::{DMatrix, Matrix3};

use crate::estimation::equations::Equations;
use crate::mechanism::{Body, BodyKind};
use crate::spatial::{Inertia, Parameters};

/// Number of kinds of errors: the mass of a link at its centre of mass, its inertia about that point, and each of its parameters. Errors of one
/// kind have the same standard deviation in all links, relative to the size of the link.
pub(super) const KINDS: usize = 3;

/// Number of errors of a link, and kind of each.
const ERRORS: usize = 12;
const KIND: [usize; ERRORS] = [0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2];

/// Errors of the links of a model.
pub(super) struct LinkErrors {
    /// Changes of the base parameters, one column per error.
    pub columns: DMatrix<f64>,
    /// Kind of each error.
    pub kinds: Vec<usize>,
}

impl LinkErrors {
    /// Creates the errors of all links of the model.
    pub fn new(equations: &Equations<'_>) -> Self {
        let mechanism = equations.mechanism();
        let mut changes = Vec::new();
        for block in mechanism.parameter_blocks().iter().filter(|b| b.len == 10) {
            let body = &mechanism.bodies()[block.body];
            if body.kind == BodyKind::Link && body.inertia.mass > 0.0 {
                changes.push((block.offset, of_link(body)));
            }
        }
        let mut columns = DMatrix::zeros(equations.rank(), ERRORS * changes.len());
        for (row, combination) in equations.regrouping.combinations.iter().enumerate() {
            for &(parameter, x) in combination {
                for (link, (offset, own)) in changes.iter().enumerate() {
                    if let Some(of_parameter) = parameter.checked_sub(*offset).filter(|k| *k < 10) {
                        for (error, change) in own.iter().enumerate() {
                            columns[(row, ERRORS * link + error)] += x * change[of_parameter];
                        }
                    }
                }
            }
        }
        Self { columns, kinds: changes.iter().flat_map(|_| KIND).collect() }
    }
}

/// Returns the changes of the ten parameters of a link due to errors that are as large as the link.
fn of_link(body: &Body) -> [Parameters<f64>; ERRORS] {
    let (all, mass) = (body.inertia.parameters(), body.inertia.mass);
    let com = body.inertia.com().unwrap_or_default();
    let at_centre = Inertia::from_com(mass, com, Matrix3::zeros()).parameters();
    // Mass times powers of the radius of gyration about the origin of the link.
    let square = 0.5 * body.inertia.rotational.trace().max(0.0) / mass;
    let size = |parameter: usize| match parameter {
        0 => mass,
        1..=3 => mass * square.sqrt(),
        _ => mass * square,
    };
    std::array::from_fn(|error| match error {
        0 => at_centre,
        1 => all - at_centre,
        _ => {
            let mut change = Parameters::zeros();
            change[error - 2] = size(error - 2);
            change
        }
    })
}
