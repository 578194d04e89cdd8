//! Streams of joint states on one topic: several publishers, each with its own joints.

use std::collections::{BTreeSet, HashMap};

/// Share of the messages of related joints that must name a joint: below it, the joint is a stream of its own. A log with more missing
/// values than this is refused.
const USUAL: f64 = 0.9;

/// Lists of joint names found in messages.
#[derive(Debug, Default)]
pub(super) struct NameLists {
    /// Different lists, with the number of messages.
    lists: Vec<(Vec<String>, usize)>,
    known: HashMap<Vec<String>, usize>,
}

/// Joints that are published together.
struct Stream {
    /// Lists that name the joints; `None` for those that most messages of the group name.
    lists: Option<BTreeSet<usize>>,
    group: usize,
    messages: usize,
    joints: Vec<String>,
}

impl NameLists {
    /// Adds the joint names of a message.
    pub fn add(&mut self, names: Vec<String>) {
        if let Some(&k) = self.known.get(&names) {
            self.lists[k].1 += 1;
        } else {
            self.known.insert(names.clone(), self.lists.len());
            self.lists.push((names, 1));
        }
    }

    /// Returns the joints of each stream, the stream with most joints first (of equal ones, that with most messages).
    ///
    /// Joints that appear in the same messages are one stream. Joints that are missing in a few messages stay in the stream of the others.
    pub fn streams(&self) -> Vec<Vec<String>> {
        // Joints in the order of their appearance, each with the numbers of its lists.
        let mut order: Vec<&str> = Vec::new();
        let mut of: HashMap<&str, BTreeSet<usize>> = HashMap::new();
        for (k, (names, _)) in self.lists.iter().enumerate() {
            for name in names {
                let lists = of.entry(name).or_default();
                if lists.is_empty() {
                    order.push(name);
                }
                lists.insert(k);
            }
        }
        let related = self.related();
        let mut total: HashMap<usize, usize> = HashMap::new();
        (0..self.lists.len()).for_each(|k| *total.entry(related[k]).or_default() += self.lists[k].1);
        // Joints that most messages of their group name share a stream; the others are grouped by their lists.
        let mut streams: Vec<Stream> = Vec::new();
        for name in order {
            let lists = &of[name];
            let Some(group) = lists.first().map(|&k| related[k]) else { continue };
            let messages: usize = lists.iter().map(|&k| self.lists[k].1).sum();
            let is_usual = messages as f64 >= USUAL * total[&group] as f64;
            let lists = (!is_usual).then(|| lists.clone());
            match streams.iter_mut().find(|stream| stream.lists == lists && stream.group == group) {
                Some(stream) => {
                    stream.messages = messages.max(stream.messages);
                    stream.joints.push(name.to_owned());
                }
                None => streams.push(Stream { lists, group, messages, joints: vec![name.to_owned()] }),
            }
        }
        streams.sort_by_key(|stream| std::cmp::Reverse((stream.joints.len(), stream.messages)));
        streams.into_iter().map(|stream| stream.joints).collect()
    }

    /// Returns the group of each list: lists with common joints, directly or through others, are in the same group.
    fn related(&self) -> Vec<usize> {
        let mut group: Vec<usize> = (0..self.lists.len()).collect();
        let mut first: HashMap<&str, usize> = HashMap::new();
        let root = |group: &[usize], mut k: usize| {
            while group[k] != k {
                k = group[k];
            }
            k
        };
        for (k, (names, _)) in self.lists.iter().enumerate() {
            for name in names {
                let other = *first.entry(name).or_insert(k);
                let (a, b) = (root(&group, other), root(&group, k));
                group[a.max(b)] = a.min(b);
            }
        }
        (0..group.len()).map(|k| root(&group, k)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::NameLists;

    fn streams(lists: &[(&str, usize)]) -> Vec<String> {
        let mut out = NameLists::default();
        for (names, count) in lists {
            for _ in 0..*count {
                out.add(names.split(' ').map(str::to_owned).collect());
            }
        }
        out.streams().iter().map(|joints| joints.join(" ")).collect()
    }

    #[test]
    fn publishers_are_separate_streams() {
        assert_eq!(streams(&[("a b", 5)]), ["a b"]);
        // Another order of the same joints is the same stream.
        assert_eq!(streams(&[("a b", 5), ("b a", 5)]), ["a b"]);
        assert_eq!(streams(&[("f", 50), ("a b", 5)]), ["a b", "f"]);
        assert_eq!(streams(&[("a", 5), ("b", 6), ("c", 5)]), ["b", "a", "c"]);
        // Joints that are sometimes missing, and joints that only some messages have.
        assert_eq!(streams(&[("a b c", 95), ("a b", 5)]), ["a b c"]);
        assert_eq!(streams(&[("a b", 80), ("a b f g", 20)]), ["a b", "f g"]);
        assert_eq!(streams(&[("a b", 50), ("b c", 50), ("x", 7)]), ["b", "a", "c", "x"]);
    }
}
