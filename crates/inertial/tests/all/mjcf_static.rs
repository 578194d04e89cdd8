//! MJCF: masses of bodies without joints whose geoms are meshes.

#![allow(clippy::unwrap_used)]

use inertial::mechanism::read::{self, ModelFiles};
use inertial::mechanism::{Base, BuildOptions, Mechanism};

/// Box of 0.2 m by 0.4 m by 0.6 m with its centre at (0.1, 0.2, 0.3), as an OBJ file.
const BOX: &str = "v 0 0 0\nv 0.2 0 0\nv 0.2 0.4 0\nv 0 0.4 0\nv 0 0 0.6\nv 0.2 0 0.6\nv 0.2 0.4 0.6\nv 0 0.4 0.6\n\
    f 1 3 2\nf 1 4 3\nf 5 6 7\nf 5 7 8\nf 1 2 6\nf 1 6 5\nf 2 3 7\nf 2 7 6\nf 3 4 8\nf 3 8 7\nf 4 1 5\nf 4 5 8\n";

struct Meshes;

impl ModelFiles for Meshes {
    fn text(&self, name: &str) -> Result<String, String> {
        read::no_includes(name)
    }

    fn mesh(&self, _: &str) -> Result<Vec<u8>, String> {
        Ok(BOX.as_bytes().to_vec())
    }
}

/// Returns a torso without joints, made of a mesh, that carries an arm.
fn robot(base: Base, geom: &str) -> Mechanism {
    let text = format!(
        "<mujoco><asset><mesh name='box' file='box.obj'/></asset><worldbody><body name='torso'>{geom}\
         <body name='arm' pos='0 0 1'><joint axis='0 1 0'/><inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/></body>\
         </body></worldbody></mujoco>"
    );
    let options = BuildOptions::default().with(|o| o.base = Some(base));
    read::model(&text, &Meshes).unwrap().build(&options).unwrap()
}

/// The torso of a floating base has the mass, centre and inertia of its box: density times volume, m (b² + c²) / 12.
#[test]
fn a_torso_made_of_a_mesh_weighs_density_times_volume() {
    for (geom, density) in [
        ("<geom type='mesh' mesh='box'/>", 1000.0),
        ("<geom type='mesh' mesh='box' density='500'/>", 500.0),
        ("<geom type='mesh' mesh='box' mass='3'/>", 3.0 / 0.048),
    ] {
        let floating = robot(Base::Floating, geom);
        // The torso is the body of the floating base, in the same frame.
        let torso = floating.bodies()[0].inertia;
        assert!(floating.links().iter().any(|l| l.name == "torso" && l.body == Some(0)));
        let mass = density * 0.2 * 0.4 * 0.6;
        // Sums over twelve triangles, and principal axes of the tensor.
        let near = |x: f64, y: f64| (x - y).abs() < 1e-9 * mass;
        assert!(near(torso.mass, mass), "{} {mass}", torso.mass);
        // MuJoCo moves a mesh to its centre of mass and the geom back, so the centre is where the file has it.
        let (centre, tensor) = (torso.com().unwrap(), torso.about_com());
        let sizes: [f64; 3] = [0.2, 0.4, 0.6];
        for k in 0..3 {
            assert!(near(centre[k], sizes[k] / 2.0), "{centre}");
            let others: f64 = (0..3).filter(|i| *i != k).map(|i| sizes[i] * sizes[i]).sum();
            assert!(near(tensor[(k, k)], mass * others / 12.0), "{tensor}");
        }
        // A torso that is fixed to the world is no body.
        let fixed = robot(Base::Fixed, geom);
        assert_eq!((floating.bodies().len(), fixed.bodies().len()), (2, 1));
    }
}
