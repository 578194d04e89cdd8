//! Loops of hinges, and relations of the points on them.

use super::relations::Relations;
use super::{Family, Locus};
use crate::linalg::Number;

impl<const N: usize> Relations<N> {
    /// Returns the loops of `length` hinges, each in its order from its smallest item.
    pub(super) fn loops_of_hinges(&self, length: usize) -> Vec<Vec<usize>> {
        let mut out = Vec::new();
        for first in (0..self.items.len()).filter(|&i| self.items[i].locus == Locus::Line) {
            let [start, end] = self.items[first].bodies;
            self.extend(&mut vec![(first, end)], start, length, &mut out);
        }
        out
    }

    /// Follows paths of hinges from the last body of `path` to `start`.
    fn extend(&self, path: &mut Vec<(usize, usize)>, start: usize, length: usize, out: &mut Vec<Vec<usize>>) {
        let (first, body) = (path[0].0, path[path.len() - 1].1);
        if path.len() == length {
            if body == start {
                out.push(path.iter().map(|p| p.0).collect());
            }
            return;
        }
        for (item, next) in self.items.iter().enumerate().skip(first + 1) {
            let [a, b] = next.bodies;
            let other = if a == body { b } else { a };
            let visited = path[..path.len() - 1].iter().any(|p| p.1 == other) || other == body;
            let is_last = path.len() + 1 == length;
            if (a == body || b == body)
                && next.locus == Locus::Line
                && !visited
                && (other == start) == is_last
            {
                path.push((item, other));
                self.extend(path, start, length, out);
                path.pop();
            }
        }
    }

    /// Returns the classes of hinges if they are all different.
    pub(super) fn classes_of(&self, items: &[usize]) -> Option<Vec<usize>> {
        let class = |&item: &usize| {
            let item = &self.items[item];
            item.axis.filter(|_| item.locus == Locus::Line).map(|a| a.class)
        };
        let classes: Vec<usize> = items.iter().map(class).collect::<Option<_>>()?;
        let distinct = (0..classes.len()).all(|i| !classes[..i].contains(&classes[i]));
        distinct.then_some(classes)
    }
}

impl Family {
    /// Returns the classes of hinges.
    pub(super) fn classes_of<'a>(&'a self, items: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
        items.iter().filter_map(|&item| self.items[item].axis.map(|a| a.class))
    }

    /// Returns an equation of the points on some items as an equation of all points.
    pub(super) fn spread<T: Number>(&self, items: &[usize], short: &[T]) -> Vec<T> {
        let mut row = vec![T::zero(); 3 * self.items.len()];
        for (n, &item) in items.iter().enumerate() {
            row[3 * item..3 * item + 3].copy_from_slice(&short[3 * n..3 * n + 3]);
        }
        row
    }
}
