//! Inertia of a body, from `<inertial>` or from its geoms, within the compiler's bounds.

use nalgebra::{Matrix3, Vector3};

use super::super::xml::Element;
use super::compiler::{FromGeoms, Settings};
use super::defaults::Layered;
use super::mesh::Meshes;
use super::{geometry, orientation};
use crate::Result;
use crate::spatial::{Inertia, Pose};

/// Reads `<inertial>` in its parent frame.
pub(super) fn explicit(element: Element<'_>, settings: &Settings) -> Result<Inertia<f64>> {
    let own = Layered::alone(element);
    element.required("pos")?;
    let mass = element.required_number("mass")?;
    let pose = orientation::pose(&own, settings)?;
    let turned = orientation::rotation(&own, settings)?.is_some();
    let inertia = match (element.numbers::<3>("diaginertia")?, element.numbers::<6>("fullinertia")?) {
        (Some(_), Some(_)) => return Err(element.error("it has both diaginertia and fullinertia")),
        (Some(d), None) => Matrix3::from_diagonal(&d.into()),
        (None, Some(_)) if turned => {
            return Err(
                element.error("fullinertia is given in the body's axes: it cannot have an orientation")
            );
        }
        (None, Some([xx, yy, zz, xy, xz, yz])) => Matrix3::new(xx, xy, xz, xy, yy, yz, xz, yz, zz),
        (None, None) => Matrix3::zeros(),
    };
    Ok(Inertia::from_com(mass, Vector3::zeros(), inertia).transformed(&pose))
}

/// Inertia data of a body as written in the model.
pub(super) struct Evidence<'a> {
    /// Inertia from `<inertial>`, in the body's frame.
    pub(super) explicit: Option<Inertia<f64>>,
    /// Element `<inertial>`, with its parent frame in the body's frame.
    pub(super) written: Option<(Element<'a>, Pose<f64>)>,
    /// Position of the compiler's minimum mass if the body has no mass: the position of `<inertial>`, or else the body's own position in
    /// its parent, interpreted in the body's frame (as in MuJoCo).
    pub(super) centre: Vector3<f64>,
    /// Geoms, each with its parent frame in the body's frame.
    pub(super) geoms: Vec<(Layered<'a>, Pose<f64>)>,
}

impl Evidence<'_> {
    /// Returns the body's inertia in its frame; `None` if it is unknown. `meshes` is `None` if the inertia has no effect.
    pub(super) fn inertia(
        &self,
        settings: &Settings,
        meshes: Option<&Meshes<'_>>,
    ) -> Result<Option<Inertia<f64>>> {
        let from_geoms = match settings.from_geoms {
            FromGeoms::Never => false,
            FromGeoms::Always => true,
            FromGeoms::Missing => self.explicit.is_none(),
        };
        let mut sum: Option<Inertia<f64>> = None;
        if from_geoms {
            for (geom, frame) in &self.geoms {
                if let Some(inertia) = geometry::inertia(geom, settings, meshes)? {
                    *sum.get_or_insert_with(Inertia::zero) += inertia.transformed(frame);
                }
            }
        }
        Ok(bounded(sum.or(self.explicit), self.centre, settings))
    }
}

/// Applies `boundmass`, `boundinertia` and `balanceinertia`.
fn bounded(inertia: Option<Inertia<f64>>, centre: Vector3<f64>, settings: &Settings) -> Option<Inertia<f64>> {
    let bounds = settings.bound_mass > 0.0 || settings.bound_inertia > 0.0;
    if !bounds && !settings.balance {
        return inertia;
    }
    let given = inertia.or(bounds.then(Inertia::zero))?;
    let central = given.about_com();
    if central.iter().any(|x| !x.is_finite()) {
        // Values beyond f64 have no principal axes; the mechanism's checks report the body.
        return Some(Inertia { rotational: central, ..given });
    }
    // Scaled, so that the iteration stays in the range of f64.
    let scale = central.amax().max(f64::MIN_POSITIVE);
    let eigen = (central / scale).symmetric_eigen();
    let principal = eigen.eigenvalues * scale;
    let mut moments = principal.map(|x| x.max(settings.bound_inertia));
    let total = moments.sum();
    if settings.balance && moments.iter().any(|m| total - m < *m) {
        moments = Vector3::repeat(total / 3.0);
    }
    // The tensor is rebuilt only if it changes, so that it stays exact otherwise.
    let central = if moments == principal {
        central
    } else {
        eigen.eigenvectors * Matrix3::from_diagonal(&moments) * eigen.eigenvectors.transpose()
    };
    let mass = given.mass.max(settings.bound_mass);
    Some(Inertia::from_com(mass, given.com().unwrap_or(centre), central))
}

/// Scales all inertias so that the masses sum to `settotalmass`.
pub(super) fn scale_to_total(inertias: &mut [Option<Inertia<f64>>], settings: &Settings) {
    let total: f64 = inertias.iter().flatten().map(|i| i.mass).sum();
    let Some(wanted) = settings.total_mass.filter(|_| total > 0.0) else { return };
    let scale = wanted / total;
    for inertia in inertias.iter_mut().flatten() {
        *inertia = Inertia::from_parameters(&(inertia.parameters() * scale));
    }
}
