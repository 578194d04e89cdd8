//! Random members of a family over GF(p).

use nalgebra::{Matrix3, Vector3};
use num_traits::{One, Zero};

use super::isogram::{Corners, random_isogram};
use super::{Family, Oriented, Turning, Values, level_turn};
use crate::linalg::{Echelon, Gf, Number, SplitMix};
use crate::mechanism::{Assembled, AssembledBody, AssembledLoop, Closing, ExactAssembly};
use crate::spatial::{Field, Pose, rotation_from_quaternion};

/// Maximum number of draws of the directions, since a square root may not exist in the field.
const REDRAWS: usize = 64;

/// Frames of the classes of directions, corners of the isograms, and maps of the symmetric loops.
type Directions<const P: u64> = (Vec<Matrix3<Gf<P>>>, Vec<Corners<Gf<P>>>, Vec<Matrix3<Gf<P>>>);

impl Family {
    /// Draws a random member over GF(p), in a closed configuration; `None` if the drawn directions are not compatible
    /// with the points.
    pub fn member<const P: u64>(
        &self,
        assembly: &ExactAssembly,
        source: &mut SplitMix,
    ) -> Option<Assembled<Gf<P>>> {
        let values = self.draw::<P>(source)?;
        let mut equations = self.span(&values);
        // The mechanism belongs to this family only if its own directions leave the same number of freedoms of the
        // points.
        if 3 * self.items.len() - equations.rank() != self.freedoms {
            return None;
        }
        let frames = &values.frames;
        let points = random_solution(&mut equations, source);
        let own = assembly.to::<Gf<P>>();
        let geometry = assembly.geometry().to::<Gf<P>>();
        let framed = |axis: Option<Oriented>| {
            axis.map_or_else(Matrix3::identity, |a| {
                let f = &frames[a.class];
                if a.against {
                    Matrix3::from_columns(&[f.column(0).into_owned(), -f.column(1), -f.column(2)])
                } else {
                    *f
                }
            })
        };
        let pose = |i: usize| Pose::new(framed(self.items[i].axis), points[i]);
        let mut bodies = Vec::with_capacity(geometry.bodies.len());
        for (i, (body, exact)) in own.bodies.iter().zip(&geometry.bodies).enumerate() {
            let parent = body.parent.map_or_else(Pose::identity, &pose);
            bodies.push(AssembledBody {
                parent: body.parent,
                kind: body.kind,
                v: body.v,
                pose: parent.inverse() * pose(i),
                modes: exact.modes_about_z().iter().map(|m| *m * exact.ratio).collect(),
            });
        }
        let world = |body: Option<usize>| body.map_or_else(Pose::identity, &pose);
        let loops = own.loops.iter().enumerate().map(|(l, joint)| {
            let item = &self.items[bodies.len() + l];
            let at = pose(bodies.len() + l);
            let closing = match &joint.closing {
                Closing::Fixed => Closing::Fixed,
                Closing::Free(pivoting, _, pitch) => Closing::Free(*pivoting, Matrix3::identity(), *pitch),
                Closing::Universal(_) => {
                    let first = Vector3::new(Gf::zero(), Gf::zero(), Gf::one());
                    let second = framed(item.second).column(2).into_owned();
                    Closing::Universal([first, at.rotation.tr_mul(&second)])
                }
            };
            let ends = [joint.predecessor, joint.successor].map(|b| world(b).inverse() * at);
            AssembledLoop::new(joint.predecessor, joint.successor, ends, closing)
        });
        let loops = loops.collect();
        let gravity = self.gravity.map_or_else(Vector3::zeros, |g| framed(Some(g)).column(2).into_owned());
        Some(Assembled { gravity, bodies, loops, nv: own.nv })
    }

    /// Draws random directions and factors.
    pub(super) fn draw<const P: u64>(&self, source: &mut SplitMix) -> Option<Values<Gf<P>>> {
        let (frames, isograms, symmetries) = (0..REDRAWS).find_map(|_| self.frames::<P>(source))?;
        let ratios = self.ratios.iter().map(|_| [0; 2].map(|_| Gf::random(source))).collect();
        let mut turns = Vec::with_capacity(self.turns.len());
        for &turning in &self.turns {
            turns.push(match turning {
                Turning::Planes([from, to]) => {
                    let about = random_turn(source)?;
                    frames[to] * about * frames[from].transpose()
                }
                Turning::Level([from, to], signs) => {
                    let axis = |c: usize| frames[c].column(2).into_owned();
                    level_turn(&axis(from), &axis(to), signs)?
                }
                Turning::Space => random_rotation(source)?,
            });
        }
        Some(Values { frames, ratios, turns, isograms, symmetries })
    }

    /// Draws a random orthonormal frame for each class of directions, with its third axis along the class, and the
    /// corners of the isograms and the maps of the symmetric loops.
    fn frames<const P: u64>(&self, source: &mut SplitMix) -> Option<Directions<P>> {
        let mut frames: Vec<Option<Matrix3<Gf<P>>>> = vec![None; self.classes];
        let mut isograms = Vec::with_capacity(self.isograms.len());
        for isogram in &self.isograms {
            let (corners, at) = random_isogram(source)?;
            self.classes_of(isogram).zip(at).for_each(|(class, frame)| frames[class] = Some(frame));
            isograms.push(corners);
        }
        let mut symmetries = Vec::with_capacity(self.symmetries.len());
        for found in &self.symmetries {
            let (map, at) = found.draw(source)?;
            self.classes_of(&found.items).zip(at).for_each(|(class, frame)| frames[class] = Some(frame));
            symmetries.push(map);
        }
        for &class in &self.order {
            if frames[class].is_some() {
                continue;
            }
            let across: Vec<Matrix3<Gf<P>>> =
                self.across(class).filter_map(|other| frames[other]).take(2).collect();
            let frame = match across.as_slice() {
                [] => random_rotation(source)?,
                [one] => {
                    // The random direction perpendicular to the first, then the first itself.
                    let turned = one * random_turn(source)?;
                    let (x, y, z) = (turned.column(0), turned.column(1), turned.column(2));
                    Matrix3::from_columns(&[y.into_owned(), z.into_owned(), x.into_owned()])
                }
                [one, two, ..] => {
                    let normal = one.column(2).cross(&two.column(2));
                    let root = normal.dot(&normal).sqrt()?.inverse()?;
                    let z = normal * root;
                    let x = one.column(2).into_owned();
                    Matrix3::from_columns(&[x, z.cross(&x), z])
                }
            };
            frames[class] = Some(frame);
        }
        Some((frames.into_iter().collect::<Option<_>>()?, isograms, symmetries))
    }
}
/// Draws a random rotation about the third axis.
pub(super) fn random_turn<const P: u64>(source: &mut SplitMix) -> Option<Matrix3<Gf<P>>> {
    let t = Gf::<P>::random(source);
    let scale = (Gf::one() + t * t).inverse()?;
    Some(turn_about_z((Gf::one() - t * t) * scale, (t + t) * scale))
}

fn turn_about_z<const P: u64>(c: Gf<P>, s: Gf<P>) -> Matrix3<Gf<P>> {
    let (o, i) = (Gf::zero(), Gf::one());
    Matrix3::new(c, -s, o, s, c, o, o, o, i)
}

pub(super) fn random_rotation<const P: u64>(source: &mut SplitMix) -> Option<Matrix3<Gf<P>>> {
    let [x, y, z, w] = [0; 4].map(|_| Gf::random(source));
    rotation_from_quaternion(x, y, z, w)
}

/// Draws random points that satisfy the equations.
fn random_solution<const P: u64>(
    equations: &mut Echelon<Gf<P>>,
    source: &mut SplitMix,
) -> Vec<Vector3<Gf<P>>> {
    equations.reduce();
    let mut x: Vec<Gf<P>> = (0..equations.width()).map(|_| Gf::random(source)).collect();
    for &p in equations.pivots() {
        x[p] = Gf::zero();
    }
    let solved: Vec<Gf<P>> = equations
        .rows()
        .map(|row| row.iter().zip(&x).fold(Gf::zero(), |sum, (&a, &b)| sum - a * b))
        .collect();
    for (&p, value) in equations.pivots().iter().zip(solved) {
        x[p] = value;
    }
    x.chunks_exact(3).map(|p| Vector3::new(p[0], p[1], p[2])).collect()
}
