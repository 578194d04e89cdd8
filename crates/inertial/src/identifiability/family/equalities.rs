//! Equal angles and equal distances between the axes of several links.

use super::super::mobility::{Heading, Inclination};
use super::Locus;
use super::relations::Relations;
use crate::linalg::Wide;
use crate::spatial::Field;

impl<const N: usize> Relations<N> {
    /// Returns the number of angles and distances between the axes of a body that also occur on other bodies, except
    /// right angles and parallel or intersecting axes.
    pub fn equal_links(&self) -> usize {
        let Some(view) = self.views.first() else { return 0 };
        let (mut cosines, mut distances) = (Vec::new(), Vec::new());
        let mut seen: Vec<[usize; 2]> = Vec::new();
        for body in 0..=self.last_body() {
            let on: Vec<usize> =
                (0..self.items.len()).filter(|&i| self.items[i].bodies.contains(&body)).collect();
            for (n, &j) in on.iter().enumerate() {
                for &i in &on[..n] {
                    let [Some(a), Some(b)] = [i, j].map(|i| self.items[i].axis.map(|a| a.class)) else {
                        continue;
                    };
                    if a == b {
                        continue;
                    }
                    let (u, v) = (view.directions[a], view.directions[b]);
                    // Bodies with parallel axes have trivially the same angle.
                    let pair = [a.min(b), a.max(b)];
                    if !seen.contains(&pair) {
                        seen.push(pair);
                        cosines.push((u.dot(&v).abs(), body));
                    }
                    if [i, j].iter().all(|&i| self.items[i].locus == Locus::Line) {
                        let normal = u.cross(&v);
                        let across = normal.dot(&(view.points[j] - view.points[i])).abs();
                        if let Some(scale) = normal.dot(&normal).sqrt().inverse() {
                            distances.push((across * scale, body));
                        }
                    }
                }
            }
        }
        self.common_values(cosines) + self.common_values(distances)
    }

    /// Returns the number of nonzero values that a body has in common with another one; the first of several such
    /// bodies is not counted.
    fn common_values(&self, mut values: Vec<(Wide<N>, usize)>) -> usize {
        values.retain(|&(x, _)| !self.zero(x));
        values.sort_by(|a, b| f64::from(a.0).total_cmp(&f64::from(b.0)));
        let (mut count, mut bodies) = (0, Vec::new());
        for (k, &(x, body)) in values.iter().enumerate() {
            if k == 0 || !self.zero(x - values[k - 1].0) {
                bodies.clear();
            }
            if !bodies.contains(&body) {
                count += usize::from(!bodies.is_empty());
                bodies.push(body);
            }
        }
        count
    }

    /// Returns the number of equal angles between axes of one body, except right angles.
    pub fn equal_angles(&self) -> usize {
        let Some(view) = self.views.first() else { return 0 };
        let mut cosines: Vec<Wide<N>> = Vec::new();
        for body in 0..=self.last_body() {
            let on = self.items.iter().filter(|item| item.bodies.contains(&body));
            let mut classes: Vec<usize> =
                on.flat_map(|i| [i.axis, i.second]).flatten().map(|a| a.class).collect();
            classes.sort_unstable();
            classes.dedup();
            for (n, &b) in classes.iter().enumerate() {
                cosines
                    .extend(classes[..n].iter().map(|&a| view.directions[a].dot(&view.directions[b]).abs()));
            }
        }
        cosines.retain(|&x| !self.zero(x));
        cosines.sort_by(|a, b| f64::from(*a).total_cmp(&f64::from(*b)));
        cosines.windows(2).filter(|pair| self.zero(pair[1] - pair[0])).count()
    }

    /// Returns the pairs of directions that are parallel or perpendicular.
    pub fn inclinations(&self) -> Vec<Inclination> {
        let bodies = self.last_body();
        let headings = self.items.iter().enumerate().filter_map(|(i, item)| {
            let heading = if i < bodies { Heading::Body(i) } else { Heading::Loop(i - bodies) };
            Some((item.axis.filter(|_| i < bodies || item.second.is_none())?.class, heading))
        });
        let gravity = self.gravity.map(|g| (g.class, Heading::Gravity));
        let mut firsts: Vec<(usize, Heading)> = Vec::new();
        let mut out = Vec::new();
        for (class, heading) in gravity.into_iter().chain(headings) {
            match firsts.iter().find(|f| f.0 == class) {
                Some(&(_, first)) => out.push(Inclination { headings: [first, heading], parallel: true }),
                None => firsts.push((class, heading)),
            }
        }
        for (n, &(a, first)) in firsts.iter().enumerate() {
            for &(b, second) in firsts[..n].iter().filter(|&&(b, _)| self.at_right_angles(a, b)) {
                debug_assert!(a != b);
                out.push(Inclination { headings: [first, second], parallel: false });
            }
        }
        out
    }
}
