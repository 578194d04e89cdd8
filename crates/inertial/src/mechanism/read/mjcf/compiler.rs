//! `<compiler>` and `<option>`: settings for the interpretation of the model.

use nalgebra::Vector3;

use super::defaults::Layered;
use super::schema;
use super::source::Source;
use crate::Result;
use crate::mesh::MassDistribution;

/// Rule for computing a body's inertia from its geoms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FromGeoms {
    Never,
    Always,
    /// Only for bodies without `<inertial>`.
    Missing,
}

/// One elementary rotation of an Euler sequence.
#[derive(Debug, Clone, Copy)]
pub(super) struct EulerAxis {
    pub(super) axis: usize,
    /// Whether the rotation is about the moving axes (lower case) instead of the parent's axes (upper case).
    pub(super) intrinsic: bool,
}

/// Settings that affect motion and mass.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the format")]
pub(super) struct Settings {
    /// Radians per unit of the model's angles.
    pub(super) angle: f64,
    pub(super) euler: [EulerAxis; 3],
    pub(super) autolimits: bool,
    pub(super) from_geoms: FromGeoms,
    pub(super) geom_groups: [f64; 2],
    pub(super) balance: bool,
    pub(super) bound_mass: f64,
    pub(super) bound_inertia: f64,
    pub(super) total_mass: Option<f64>,
    pub(super) align_free: bool,
    discard_visual: bool,
    /// Folder of mesh files, and whether the folders in their names are removed.
    mesh_folder: String,
    strip_path: bool,
    /// Whether primitives are fitted to the axis-aligned bounding box.
    pub(super) fit_box: bool,
    /// Default mass distribution of meshes.
    pub(super) mesh_filling: MassDistribution,
    pub(super) gravity: Vector3<f64>,
    /// Whether equality constraints, joint limits, springs, dampers and dry friction are enabled.
    pub(super) equality: bool,
    pub(super) limits: bool,
    pub(super) spring: bool,
    pub(super) damper: bool,
    pub(super) friction: bool,
    /// Whether the robot moves in a fluid (air or water).
    pub(super) fluid: bool,
}

impl Settings {
    /// Reads all `<compiler>` and `<option>` sections; the last value of a setting counts.
    pub(super) fn read(source: &Source<'_>) -> Result<Self> {
        let intrinsic = |axis| EulerAxis { axis, intrinsic: true };
        let mut settings = Self {
            angle: 1_f64.to_radians(),
            euler: [intrinsic(0), intrinsic(1), intrinsic(2)],
            autolimits: true,
            from_geoms: FromGeoms::Missing,
            geom_groups: [0.0, 5.0],
            balance: false,
            bound_mass: 0.0,
            bound_inertia: 0.0,
            total_mass: None,
            align_free: false,
            discard_visual: false,
            mesh_folder: String::new(),
            strip_path: false,
            fit_box: false,
            mesh_filling: MassDistribution::Legacy,
            gravity: Vector3::new(0.0, 0.0, -9.81),
            equality: true,
            limits: true,
            spring: true,
            damper: true,
            friction: true,
            fluid: false,
        };
        for element in source.section("compiler")? {
            schema::check_attributes(element)?;
            settings.compiler(&Layered::alone(element))?;
        }
        for element in source.section("option")? {
            let option = Layered::alone(element);
            if let Some(gravity) = option.numbers::<3>("gravity")? {
                settings.gravity = gravity.into();
            }
            for medium in ["density", "viscosity"] {
                settings.fluid |= option.number(medium)?.is_some_and(|x| x > 0.0);
            }
        }
        for element in source.section("option")? {
            for flag in source.children(element).into_iter().filter(|e| e.tag() == "flag") {
                settings.flag(&Layered::alone(flag))?;
            }
        }
        Ok(settings)
    }

    fn compiler(&mut self, element: &Layered<'_>) -> Result<()> {
        let words = [("degree", 1_f64.to_radians()), ("radian", 1.0)];
        set(&mut self.angle, element.keyword("angle", &words)?);
        if element.keyword("coordinate", &[("local", false), ("global", true)])? == Some(true) {
            return Err(element.element().unsupported("coordinate=\"global\""));
        }
        if let Some(sequence) = element.text("eulerseq") {
            self.euler = euler_sequence(sequence)
                .ok_or_else(|| element.element().error("eulerseq needs three letters of x y z X Y Z"))?;
        }
        set(&mut self.autolimits, element.boolean("autolimits")?);
        let words = [("false", FromGeoms::Never), ("true", FromGeoms::Always), ("auto", FromGeoms::Missing)];
        set(&mut self.from_geoms, element.keyword("inertiafromgeom", &words)?);
        set(&mut self.geom_groups, element.numbers("inertiagrouprange")?);
        set(&mut self.balance, element.boolean("balanceinertia")?);
        set(&mut self.bound_mass, element.number("boundmass")?);
        set(&mut self.bound_inertia, element.number("boundinertia")?);
        set(&mut self.align_free, element.boolean("alignfree")?);
        set(&mut self.discard_visual, element.boolean("discardvisual")?);
        set(&mut self.strip_path, element.boolean("strippath")?);
        set(&mut self.fit_box, element.boolean("fitaabb")?);
        if let Some(folder) = element.text("meshdir").or_else(|| element.text("assetdir")) {
            folder.clone_into(&mut self.mesh_folder);
        }
        // Attribute of models before MuJoCo 3.2.7.
        if element.boolean("exactmeshinertia")? == Some(true) {
            self.mesh_filling = MassDistribution::Exact;
        }
        if let Some(mass) = element.number("settotalmass")? {
            self.total_mass = (mass > 0.0).then_some(mass);
        }
        if self.discard_visual && self.from_geoms == FromGeoms::Always {
            let feature = "discardvisual=\"true\" with inertiafromgeom=\"true\"";
            return Err(element.element().unsupported(feature));
        }
        Ok(())
    }

    /// Returns the path of a mesh file relative to the folder of the model.
    pub(super) fn mesh_path(&self, file: &str) -> String {
        let file = if self.strip_path { file.rsplit(['/', '\\']).next().unwrap_or(file) } else { file };
        match self.mesh_folder.trim_end_matches('/') {
            "" => file.to_owned(),
            _ if file.starts_with('/') => file.to_owned(),
            folder => format!("{folder}/{file}"),
        }
    }

    fn flag(&mut self, flag: &Layered<'_>) -> Result<()> {
        let words = [("enable", false), ("disable", true)];
        let off = |name| flag.keyword(name, &words).map(|word| word == Some(true));
        if off("gravity")? {
            self.gravity = Vector3::zeros();
        }
        let passive = !off("passive")?;
        let constraint = !off("constraint")?;
        self.spring &= passive && !off("spring")?;
        self.damper &= passive && !off("damper")?;
        self.friction &= constraint && !off("frictionloss")?;
        self.limits &= constraint && !off("limit")?;
        self.equality &= constraint && !off("equality")?;
        Ok(())
    }
}

fn set<T>(value: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *value = given;
    }
}

fn euler_sequence(text: &str) -> Option<[EulerAxis; 3]> {
    let axes: Option<Vec<EulerAxis>> = text
        .chars()
        .map(|c| {
            let axis = "xyz".find(c.to_ascii_lowercase())?;
            Some(EulerAxis { axis, intrinsic: c.is_ascii_lowercase() })
        })
        .collect();
    axes?.try_into().ok()
}
