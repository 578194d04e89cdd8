//! Plausibility checks of bodies that are consistent but unlikely.

use nalgebra::{Matrix3, Vector3};

use super::{central_second_moments, significant};
use crate::linalg::symmetric_eigen;
use crate::spatial::Inertia;

/// Range of densities of robot materials (kg/m³), from foam to osmium.
const DENSITIES: [f64; 2] = [1.0, 25_000.0];

/// Distance by which a link may extend beyond its shapes, relative to their size.
const BEYOND: f64 = 0.25;

/// Kind of implausibility of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Implausibility {
    /// Uniform ellipsoid with this inertia that is lighter or heavier than any material.
    Density,
    /// Centre of mass or inertia that extends beyond the shapes and meshes of the link.
    Size,
    /// Values that look like placeholders, not measured or computed.
    FilledIn,
}

impl Implausibility {
    /// Returns the name used in the output of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Density => "density",
            Self::Size => "size",
            Self::FilledIn => "filled-in",
        }
    }
}

/// Box along the axes of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extent {
    /// Corner with the smallest coordinates (m).
    pub lower: Vector3<f64>,
    /// Corner with the largest coordinates (m).
    pub upper: Vector3<f64>,
}

impl Extent {
    /// Returns the smallest box that contains both boxes.
    pub fn join(&self, other: &Self) -> Self {
        Self { lower: self.lower.inf(&other.lower), upper: self.upper.sup(&other.upper) }
    }
}

/// Returns the implausibilities of a consistent body, with explanations; `extent` is the box around its shapes and meshes.
///
/// ```
/// use inertial::consistency::{Implausibility, implausibilities};
/// use inertial::spatial::Inertia;
/// use nalgebra::{Matrix3, Vector3};
/// // A ball of 1.6 m that weighs 1 kg.
/// let found = implausibilities(&Inertia::from_com(1.0, Vector3::zeros(), Matrix3::identity()), None);
/// assert_eq!(found[0].0, Implausibility::Density);
/// ```
pub fn implausibilities(inertia: &Inertia<f64>, extent: Option<&Extent>) -> Vec<(Implausibility, String)> {
    let Some(com) = inertia.com().filter(|_| inertia.mass > 0.0) else { return Vec::new() };
    let moments = central_second_moments(inertia);
    let Ok(eigen) = symmetric_eigen(&moments) else { return Vec::new() };
    let mut out = Vec::new();
    // An ellipsoid with half axes a has the second moments m a²/5.
    let axes = eigen.values.map(|x| (5.0 * x.max(0.0) / inertia.mass).sqrt());
    let volume = 4.0 / 3.0 * std::f64::consts::PI * axes.product();
    let density = inertia.mass / volume;
    if !(DENSITIES[0]..=DENSITIES[1]).contains(&density) {
        let size = axes.map(|a| significant(2.0 * a, 2));
        let reported =
            if volume > 0.0 { format!("{} kg/m³", significant(density, 2)) } else { "infinite".into() };
        let reason = format!(
            "an ellipsoid with this inertia has the axes {} × {} × {} m and the density {reported}: expected {} to {} kg/m³",
            size[2], size[1], size[0], DENSITIES[0], DENSITIES[1]
        );
        out.push((Implausibility::Density, reason));
    }
    if let Some(Extent { lower, upper }) = extent {
        let margin = (upper - lower).amax() * BEYOND;
        for (k, axis) in ["x", "y", "z"].into_iter().enumerate() {
            let (least, most) = (lower[k] - margin, upper[k] + margin);
            // The largest second moment of mass between two walls about a point between them has all mass at the walls.
            let (spread, room) =
                (moments[(k, k)].max(0.0) / inertia.mass, (com[k] - least) * (most - com[k]));
            let reason = if room < 0.0 {
                let at = significant(com[k], 3);
                format!(
                    "the centre of mass is at {axis} = {at} m, outside of its shapes, {} m to {} m",
                    significant(lower[k], 3),
                    significant(upper[k], 3)
                )
            } else if spread > room {
                format!(
                    "the mass is spread over ±{} m along {axis}: more than its shapes allow, {} m to {} m",
                    significant(spread.sqrt(), 2),
                    significant(lower[k], 3),
                    significant(upper[k], 3)
                )
            } else {
                continue;
            };
            out.push((Implausibility::Size, reason));
            break;
        }
    }
    if let Some(reason) = filled_in(inertia, &com) {
        out.push((Implausibility::FilledIn, reason));
    }
    out
}

/// Checks whether mass and moments are powers of ten, the same for all axes, about the origin of the frame.
fn filled_in(inertia: &Inertia<f64>, com: &Vector3<f64>) -> Option<String> {
    let tensor = inertia.about_com();
    let moment = tensor[(0, 0)];
    let same = tensor == Matrix3::from_diagonal_element(moment) && *com == Vector3::zeros();
    let round = |x: f64| x > 0.0 && (x.log10() - x.log10().round()).abs() < 1e-9;
    (same && round(inertia.mass) && round(moment)).then(|| {
        format!(
            "mass {} kg and moments of {moment} kg m² about all axes look like placeholder values",
            inertia.mass
        )
    })
}

#[cfg(test)]
mod tests {
    use nalgebra::vector;

    use super::*;

    fn kinds(inertia: &Inertia<f64>, extent: Option<&Extent>) -> Vec<Implausibility> {
        implausibilities(inertia, extent).into_iter().map(|(kind, _)| kind).collect()
    }

    /// Creates a box of uniform density.
    fn brick(mass: f64, size: Vector3<f64>, com: Vector3<f64>) -> Inertia<f64> {
        let square = size.component_mul(&size) * (mass / 12.0);
        Inertia::from_com(mass, com, Matrix3::from_diagonal(&(Vector3::repeat(square.sum()) - square)))
    }

    #[test]
    fn densities_of_materials_are_plausible() {
        let size = vector![0.1, 0.2, 0.3];
        for density in [30.0, 1000.0, 7800.0, 19_300.0] {
            assert_eq!(kinds(&brick(density * size.product(), size, Vector3::zeros()), None), []);
        }
        for density in [0.01, 60_000.0] {
            let found = kinds(&brick(density * size.product(), size, Vector3::zeros()), None);
            assert_eq!(found, [Implausibility::Density], "{density}");
        }
        // A plate without thickness, and a body of zero inertia.
        assert_eq!(
            kinds(&brick(1.0, vector![0.1, 0.2, 0.0], Vector3::zeros()), None),
            [Implausibility::Density]
        );
        assert_eq!(kinds(&Inertia::zero(), None), []);
    }

    #[test]
    fn links_fit_into_their_shapes() {
        let extent = Extent { lower: vector![-0.1, -0.1, 0.0], upper: vector![0.1, 0.1, 0.5] };
        // Steel.
        let body = |size: Vector3<f64>, com| brick(7800.0 * size.product(), size, com);
        let centre = vector![0.0, 0.0, 0.25];
        assert_eq!(kinds(&body(vector![0.2, 0.2, 0.5], centre), Some(&extent)), []);
        // At the end of the shapes, and a quarter of their size beyond.
        assert_eq!(kinds(&body(vector![0.05, 0.05, 0.05], vector![0.0, 0.0, 0.5]), Some(&extent)), []);
        assert_eq!(
            kinds(&body(vector![0.05, 0.05, 0.05], vector![0.0, 0.0, 0.8]), Some(&extent)),
            [Implausibility::Size]
        );
        assert_eq!(kinds(&body(vector![0.2, 2.0, 0.2], centre), Some(&extent)), [Implausibility::Size]);
    }

    #[test]
    fn round_values_look_filled_in() {
        let ball =
            |mass: f64, moment: f64| Inertia::from_com(mass, Vector3::zeros(), Matrix3::identity() * moment);
        assert_eq!(kinds(&ball(1.0, 1.0), None), [Implausibility::Density, Implausibility::FilledIn]);
        assert_eq!(kinds(&ball(0.1, 1e-3), None), [Implausibility::FilledIn]);
        assert_eq!(kinds(&ball(0.123, 4.56e-4), None), []);
    }
}
