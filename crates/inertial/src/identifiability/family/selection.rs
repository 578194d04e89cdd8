//! Families to which a mechanism with given relations belongs.

use nalgebra::Matrix3;

use super::isogram::Isogram;
use super::relations::{Relations, clearly_new};
use super::symmetry::SymmetricLoop;
use super::{Along, Equation, Family, Item, Values, drawing_order};
use crate::linalg::{Echelon, First, Pivot, SplitMix, Wide};

/// Filter of the equations to keep.
type Keep<'a> = Box<dyn Fn(&Equation) -> bool + 'a>;

impl<const N: usize> Relations<N> {
    /// Returns whether an equation of two places concerns one body: both are joints of it, along directions of its
    /// joints.
    fn is_of_one_body(&self, equation: &Equation) -> bool {
        let classes = match equation.along {
            Along::Space => Vec::new(),
            Along::Axis(c) | Along::Across(c) => vec![c],
            Along::Normal(a, b) => vec![a, b],
        };
        let bodies = self.items[equation.terms[0].0].bodies;
        bodies.into_iter().any(|body| {
            let on = |item: &Item| item.bodies.contains(&body);
            let has = |class: usize| {
                let axes = self.items.iter().filter(|i| on(i)).flat_map(|i| [i.axis, i.second]);
                axes.flatten().any(|a| a.class == class)
            };
            equation.terms.iter().all(|t| on(&self.items[t.0])) && classes.iter().all(|&c| has(c))
        })
    }

    /// Returns families to which the mechanism belongs, the smallest first: with all relations, with fewer and fewer
    /// types of them, and with those of neighbouring joints only.
    ///
    /// If the mechanism contains Bennett linkages, families with such linkages come first; in other families these
    /// hinges do not move.
    pub fn families(&self) -> impl Iterator<Item = Family> + '_ {
        let (isograms, symmetries) = (self.isograms(), self.symmetric_loops());
        let bennett = (!isograms.is_empty()).then(|| self.families_with(isograms, Vec::new()));
        let symmetric = (!symmetries.is_empty()).then(|| self.families_with(Vec::new(), symmetries));
        let special = bennett.into_iter().flatten().chain(symmetric.into_iter().flatten());
        special.chain(self.families_with(Vec::new(), Vec::new()))
    }

    fn families_with(
        &self,
        isograms: Vec<Isogram>,
        symmetries: Vec<SymmetricLoop>,
    ) -> impl Iterator<Item = Family> + '_ {
        let near =
            |a: usize, b: usize| self.items[a].bodies.iter().any(|body| self.items[b].bodies.contains(body));
        let neighbours = move |e: &Equation| e.terms.len() > 2 || near(e.terms[0].0, e.terms[1].0);
        let keeps: [Keep<'_>; 7] = [
            Box::new(|_| true),
            Box::new(|e| e.is_plain() || e.has_turn()),
            Box::new(|e| !e.has_turn()),
            Box::new(Equation::is_plain),
            Box::new(move |e| e.is_plain() && neighbours(e)),
            // Symmetric machines have relations along axes of other bodies, which can exclude the relevant ones.
            Box::new(|e| e.is_plain() && (e.terms.len() > 2 || self.is_of_one_body(e))),
            Box::new(move |e| e.is_plain() && neighbours(e) && e.terms.len() == 2),
        ];
        let mut last = usize::MAX;
        keeps.into_iter().filter_map(move |keep| {
            let kept: Vec<Equation> = self.equations.iter().filter(|e| keep(e)).cloned().collect();
            let repeated = kept.len() == last;
            last = kept.len();
            (!repeated).then(|| self.family_of(kept, &isograms, &symmetries))
        })
    }

    /// Returns the family of all mechanisms with these relations, except for relations that random directions and
    /// factors do not satisfy.
    fn family_of(
        &self,
        equations: Vec<Equation>,
        isograms: &[Isogram],
        symmetries: &[SymmetricLoop],
    ) -> Family {
        let mut out = self.without_equations();
        out.freedoms = 3 * out.items.len();
        out.isograms = isograms.to_vec();
        out.symmetries = symmetries.to_vec();
        let drawn =
            isograms.iter().map(<[usize; 4]>::as_slice).chain(symmetries.iter().map(|s| s.items.as_slice()));
        let drawn: Vec<usize> = drawn.flat_map(|items| out.classes_of(items)).collect();
        // Right angles between hinges of these loops are not imposed; right angles with other axes are.
        out.perpendicular.retain(|(a, b)| !drawn.contains(a) || !drawn.contains(b));
        let own = self.own_values(&out);
        let mut source = SplitMix::new(1);
        let Some(random) = out.draw::<{ First::PRIME }>(&mut source) else {
            out.equations = equations;
            return out;
        };
        let width = 3 * out.items.len();
        let mut spans =
            (Echelon::<f64>::new(width, Pivot::Largest), Echelon::<First>::new(width, Pivot::Largest));
        for isogram in 0..isograms.len() {
            let rows = (out.rows_of_isogram(isogram, &own), out.rows_of_isogram(isogram, &random));
            out.freedoms -= insert(&mut spans, rows);
        }
        for (k, found) in symmetries.iter().enumerate() {
            let (Some(map), frames) = (own.symmetries.get(k), &random.frames) else { continue };
            let rows = out.rows_of_symmetry(found, map, &own.frames);
            let drawn = out.rows_of_symmetry(found, &random.symmetries[k], frames);
            out.freedoms -= insert(&mut spans, (rows, drawn));
        }
        for equation in equations {
            let before = (spans.0.rank(), spans.1.rank());
            let own_rows = out.rows(&equation, &own).into_iter();
            let gained = own_rows.filter(|row| clearly_new(&mut spans.0, row)).count();
            let random_rows = out.rows(&equation, &random).into_iter();
            // The points must have the same freedoms with the mechanism's own directions as with random ones, so that
            // it is a limit of members.
            if gained == random_rows.filter(|row| spans.1.insert(row)).count() {
                out.freedoms -= gained;
                out.equations.push(equation);
            } else {
                spans.0.truncate(before.0);
                spans.1.truncate(before.1);
            }
        }
        out
    }

    /// Returns the family without relations between points.
    pub(super) fn without_equations(&self) -> Family {
        let classes = self.views.first().map_or(0, |v| v.directions.len());
        let pairs = (0..classes).flat_map(|b| (0..b).map(move |a| (a, b)));
        let perpendicular: Vec<(usize, usize)> = pairs.filter(|&(a, b)| self.at_right_angles(a, b)).collect();
        Family {
            items: self.items.clone(),
            gravity: self.gravity,
            classes,
            order: drawing_order(classes, &perpendicular),
            perpendicular,
            equations: Vec::new(),
            ratios: self.ratios.iter().map(|r| self.zero(r[1])).collect(),
            turns: self.turns.iter().map(|t| t.0).collect(),
            isograms: Vec::new(),
            symmetries: Vec::new(),
            freedoms: 0,
        }
    }

    /// Returns the directions and factors of the mechanism itself, in double precision.
    fn own_values(&self, family: &Family) -> Values<f64> {
        let frames =
            self.views.first().map(|view| family.nearest_frames(&view.directions)).unwrap_or_default();
        let rounded = |m: &Matrix3<Wide<N>>| m.map(f64::from);
        Values {
            frames: frames.iter().map(rounded).collect(),
            ratios: self.ratios.iter().map(|r| r.map(f64::from)).collect(),
            turns: self.turns.iter().map(|t| rounded(&t.1)).collect(),
            isograms: family.isograms.iter().filter_map(|i| self.own_corners(i)).collect(),
            symmetries: family.symmetries.iter().filter_map(|s| self.own_map(s)).collect(),
        }
    }

    /// Returns the number of relations; it increases with fewer classes and with more equations.
    pub fn count(&self) -> usize {
        let family = self.without_equations();
        let values = self.own_values(&family);
        let mut span = Echelon::new(3 * self.items.len(), Pivot::Largest);
        for equation in self.equations.iter().filter(|e| !e.has_turn()) {
            for row in family.rows(equation, &values) {
                clearly_new(&mut span, &row);
            }
        }
        // Gravity and second axes of universal joints have classes, too.
        let axes = self.items.iter().flat_map(|i| [i.axis, i.second]).chain([self.gravity]);
        let parallel = 2 * (axes.flatten().count() - family.classes);
        let symmetric: usize = self.symmetric_loops().iter().map(SymmetricLoop::count).sum();
        parallel + family.perpendicular.len() + span.rank() + self.equal_lengths().len() + symmetric
    }
}

/// Adds the equations of a loop with the directions of the mechanism and with random ones; returns the number of
/// independent ones.
fn insert(
    spans: &mut (Echelon<f64>, Echelon<First>),
    (own, random): (Vec<Vec<f64>>, Vec<Vec<First>>),
) -> usize {
    random.iter().for_each(|row| {
        spans.1.insert(row);
    });
    own.iter().filter(|row| clearly_new(&mut spans.0, row)).count()
}
