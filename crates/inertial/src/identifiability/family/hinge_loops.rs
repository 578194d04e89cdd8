//! Loops of hinges, and relations of the points on them.

use super::relations::Relations;
use super::{Family, Locus};
use crate::linalg::Number;

/// Hinge of a path, the class of its direction, and the body after it.
#[derive(Debug, Clone, Copy)]
struct Step {
    item: usize,
    class: usize,
    body: usize,
}

impl<const N: usize> Relations<N> {
    /// Returns the loops of `length` hinges in different directions, each in its order from its smallest item.
    pub(super) fn loops_of_hinges(&self, length: usize) -> Vec<Vec<usize>> {
        let mut out = Vec::new();
        for item in 0..self.items.len() {
            let Some(class) = self.class_of(item) else { continue };
            let [start, body] = self.items[item].bodies;
            self.extend(&mut vec![Step { item, class, body }], start, length, &mut out);
        }
        out
    }

    /// Follows paths of hinges from the last body of `path` to `start`.
    fn extend(&self, path: &mut Vec<Step>, start: usize, length: usize, out: &mut Vec<Vec<usize>>) {
        let (first, last) = (path[0].item, path[path.len() - 1].body);
        if path.len() == length {
            if last == start {
                out.push(path.iter().map(|step| step.item).collect());
            }
            return;
        }
        let is_closing = path.len() + 1 == length;
        for (item, next) in self.items.iter().enumerate().skip(first + 1) {
            let body = match next.bodies {
                [a, b] if a == last => b,
                [a, b] if b == last => a,
                _ => continue,
            };
            let Some(class) = self.class_of(item) else { continue };
            let is_new = path.iter().all(|step| step.body != body && step.class != class);
            if is_new && (body == start) == is_closing {
                path.push(Step { item, class, body });
                self.extend(path, start, length, out);
                path.pop();
            }
        }
    }

    /// Returns the classes of the directions of hinges.
    pub(super) fn classes_of(&self, hinges: &[usize]) -> Vec<usize> {
        hinges.iter().filter_map(|&item| self.class_of(item)).collect()
    }

    /// Returns the class of the direction of an item if it is a hinge.
    fn class_of(&self, item: usize) -> Option<usize> {
        let item = &self.items[item];
        item.axis.filter(|_| item.locus == Locus::Line).map(|a| a.class)
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
