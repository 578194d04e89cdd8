//! Joints coupled by constraints: linear equations between displacements, each solved for one joint.
//!
//! A displacement is a joint's coordinate minus its reference position. `<equality><joint>` couples two joints (or locks one);
//! `<equality><tendon>` couples the lengths of fixed tendons, which are linear combinations of coordinates.

use std::collections::{BTreeMap, HashMap};

use super::super::xml::{Element, quoted};
use super::body::Tree;
use super::defaults::Layered;
use super::joint::{Joint, name_of};
use super::source::Source;
use crate::Result;
use crate::mechanism::Mimic;

/// Rounding error of coefficients that cancel in the substitution, relative to the cancelled terms.
const ROUNDING: f64 = 1e-13;

/// Fixed tendons by name; `None` for spatial ones.
pub(super) type Tendons<'a> = HashMap<String, Option<Vec<(Element<'a>, f64)>>>;

/// Reads the `<tendon>` sections: for each fixed tendon its joints with their coefficients.
pub(super) fn fixed_tendons<'a>(source: &'a Source<'_>) -> Result<Tendons<'a>> {
    let mut out = HashMap::new();
    for section in source.section("tendon")? {
        for element in source.children(section) {
            let joints = (element.tag() == "fixed").then(|| source.children(element)).map(|joints| {
                joints.into_iter().map(|j| Ok((j, j.required_number("coef")?))).collect::<Result<_>>()
            });
            out.insert(name_of(element)?, joints.transpose()?);
        }
    }
    Ok(out)
}

/// Equation `Σ coefficient · displacement = constant`, by index of the joint.
#[derive(Default)]
struct Equation {
    terms: BTreeMap<usize, f64>,
    constant: f64,
    /// Magnitude of the numbers that were added up in each term.
    sizes: BTreeMap<usize, f64>,
}

impl Equation {
    fn add(&mut self, joint: usize, coefficient: f64) {
        *self.terms.entry(joint).or_default() += coefficient;
        *self.sizes.entry(joint).or_default() += coefficient.abs();
    }

    /// Removes the terms that have cancelled.
    fn remove_cancelled(&mut self) {
        let Self { terms, sizes, .. } = self;
        terms.retain(|joint, x| x.abs() > ROUNDING * sizes.get(joint).copied().unwrap_or(0.0));
    }
}

/// Solution for a joint's displacement: `Σ coefficient · displacement + constant` over joints that were free when it was solved.
struct Solution {
    terms: Vec<(usize, f64)>,
    constant: f64,
}

/// System of the equations so far, each solved for one joint.
pub(super) struct System<'t, 'a> {
    joints: Vec<&'t Joint<'a>>,
    by_name: HashMap<&'t str, usize>,
    solved: Vec<(usize, Solution)>,
    /// Index in `solved` for each joint.
    place: HashMap<usize, usize>,
}

impl<'t, 'a> System<'t, 'a> {
    pub(super) fn new(tree: &'t Tree<'a>) -> Self {
        let joints: Vec<&Joint<'_>> = tree.bodies.iter().flat_map(|b| &b.joints).collect();
        let by_name = joints.iter().enumerate().map(|(i, j)| (j.name.as_str(), i)).collect();
        Self { joints, by_name, solved: Vec::new(), place: HashMap::new() }
    }

    fn find(&self, element: Element<'_>, name: &str) -> Result<usize> {
        let missing = || element.error(format!("the joint {} does not exist", quoted(name)));
        let index = self.by_name.get(name).copied().ok_or_else(missing)?;
        match self.joints[index].kind.nv() {
            1 => Ok(index),
            _ => Err(element.error(format!("the joint {} is neither hinge nor slide", quoted(name)))),
        }
    }

    /// Adds `<joint joint1 joint2 polycoef>`: the first joint follows the second, or is locked.
    pub(super) fn joints(&mut self, element: Element<'_>) -> Result<()> {
        let leader = element.attribute("joint2");
        let (constant, slope) = line(element, leader.is_some())?;
        let follower = self.find(element, element.required("joint1")?)?;
        let mut equation = Equation { constant, ..Equation::default() };
        equation.add(follower, 1.0);
        if let Some(leader) = leader {
            equation.add(self.find(element, leader)?, -slope);
        }
        self.solve(element, equation, &[follower])
    }

    /// Adds `<tendon tendon1 tendon2 polycoef>`: the first tendon's length follows the second's, or is constant.
    pub(super) fn tendons(&mut self, element: Element<'_>, tendons: &Tendons<'_>) -> Result<()> {
        let leader = element.attribute("tendon2");
        let (constant, slope) = line(element, leader.is_some())?;
        let mut equation = Equation { constant, ..Equation::default() };
        let mut preferred = Vec::new();
        for (name, factor) in [(Some(element.required("tendon1")?), 1.0), (leader, -slope)] {
            let Some(name) = name else { continue };
            let tendon = tendons
                .get(name)
                .ok_or_else(|| element.error(format!("the tendon {} does not exist", quoted(name))))?;
            let Some(joints) = tendon else {
                return Err(element.unsupported(format!(
                    "a constraint on the spatial tendon {} (a fixed one couples joints)",
                    quoted(name)
                )));
            };
            for (joint, coefficient) in joints {
                let index = self.find(*joint, joint.required("joint")?)?;
                equation.add(index, factor * coefficient);
                preferred.push(index);
            }
        }
        // The outermost joint follows the joints before it.
        preferred.sort_unstable();
        preferred.reverse();
        self.solve(element, equation, &preferred)
    }

    /// Solves an equation for the first preferred joint that occurs in it, otherwise for its last joint.
    fn solve(&mut self, element: Element<'_>, mut equation: Equation, preferred: &[usize]) -> Result<()> {
        // Solutions contain joints that were free at that time: each joint is substituted after all solutions that contain it.
        let mut first = equation.terms.keys().filter_map(|j| self.place.get(j)).copied().min();
        let mut size = equation.constant.abs();
        while let Some(at) = first {
            let (joint, solution) = &self.solved[at];
            if let Some(factor) = equation.terms.remove(joint) {
                equation.constant -= factor * solution.constant;
                size += (factor * solution.constant).abs();
                solution.terms.iter().for_each(|&(other, x)| equation.add(other, factor * x));
            }
            first = equation.terms.keys().filter_map(|j| self.place.get(j)).copied().min();
        }
        equation.remove_cancelled();
        let chosen = preferred.iter().copied().find(|j| equation.terms.contains_key(j));
        let Some(joint) = chosen.or_else(|| equation.terms.keys().next_back().copied()) else {
            if equation.constant.abs() > ROUNDING * size {
                return Err(element.error("it contradicts the constraints before it"));
            }
            return Ok(());
        };
        let pivot = equation.terms.remove(&joint).unwrap_or(1.0);
        let terms = equation.terms.iter().map(|(&other, x)| (other, -x / pivot)).collect();
        self.place.insert(joint, self.solved.len());
        self.solved.push((joint, Solution { terms, constant: equation.constant / pivot }));
        Ok(())
    }

    /// Returns the joints that follow others, and the joints that are locked at a displacement.
    pub(super) fn solved(self) -> (HashMap<String, Mimic>, HashMap<String, f64>) {
        let (mut mimics, mut locked) = (HashMap::new(), HashMap::new());
        let mut held: HashMap<usize, f64> = HashMap::new();
        // A solution contains joints that are free or solved later.
        for (joint, Solution { terms, mut constant }) in self.solved.into_iter().rev() {
            let follower = self.joints[joint];
            let mut leaders = Vec::with_capacity(terms.len());
            let mut offset = follower.reference;
            for (leader, x) in terms {
                if let Some(displacement) = held.get(&leader) {
                    constant += x * displacement;
                } else {
                    offset -= x * self.joints[leader].reference;
                    leaders.push((self.joints[leader].name.clone(), x));
                }
            }
            if leaders.is_empty() {
                held.insert(joint, constant);
                locked.insert(follower.name.clone(), constant);
            } else {
                mimics.insert(follower.name.clone(), Mimic { leaders, offset: offset + constant });
            }
        }
        (mimics, locked)
    }
}

/// Returns the constant and slope of `polycoef`.
fn line(element: Element<'_>, led: bool) -> Result<(f64, f64)> {
    let [constant, slope, higher @ ..] =
        Layered::alone(element).overlay("polycoef", [0.0, 1.0, 0.0, 0.0, 0.0])?;
    if led && higher.iter().any(|&c| c != 0.0) {
        return Err(element.unsupported(
            "a coupling that is not linear (polycoef; keep its first two coefficients at the working point, or describe the \
             linkage by bodies and <connect>)",
        ));
    }
    Ok((constant, slope))
}
