//! Graph of bodies, joints and loops with the principles that apply to them, as text and as a picture.

use std::fmt::Write as _;

use super::{Principle, Reason};
use crate::mechanism::{BodyKind, Mechanism};

/// Body with its annotations.
struct Entry {
    name: String,
    joint: String,
    /// Parent entry; `None` is the ground.
    parent: Option<usize>,
    depth: usize,
    notes: Vec<String>,
}

/// Loop joint with its annotations.
struct Connection {
    name: String,
    ends: [Option<usize>; 2],
    notes: Vec<String>,
}

struct Drawing {
    root: String,
    entries: Vec<Entry>,
    connections: Vec<Connection>,
    /// Annotations of null vectors that belong to no single joint or body.
    rest: Vec<String>,
}

impl Drawing {
    fn new(mechanism: &Mechanism, reasons: &[Reason]) -> Self {
        let root = mechanism.links().iter().find(|l| l.body.is_none()).map_or("ground", |l| &l.name);
        let mut entry_of: Vec<Option<usize>> = Vec::with_capacity(mechanism.bodies().len());
        let mut entries: Vec<Entry> = Vec::new();
        for body in mechanism.bodies() {
            // The massless piece of a universal joint is drawn as part of the joint.
            if body.kind == BodyKind::Massless {
                entry_of.push(body.parent.and_then(|p| entry_of[p]));
                continue;
            }
            let parent = body.parent.and_then(|p| entry_of[p]);
            let joint = &mechanism.joints()[body.joint];
            let rotor = body.kind != BodyKind::Link;
            let (label, kind) = (&joint.name, if rotor { "rotor" } else { joint.joint_type.name() });
            let at_joint = |r: &&Reason| !rotor && r.joint.as_ref() == Some(label);
            let own = |r: &&Reason| r.joint.is_none() && r.bodies == [body.name.clone()] && is_own(r);
            let mut notes = count(reasons.iter().filter(at_joint));
            notes.extend(count(reasons.iter().filter(own)));
            entry_of.push(Some(entries.len()));
            let depth = parent.map_or(1, |p| entries[p].depth + 1);
            entries.push(Entry {
                name: body.name.clone(),
                joint: format!("{label} ({kind})"),
                parent,
                depth,
                notes,
            });
        }
        let connections = mechanism.loops().iter().map(|l| Connection {
            name: format!("{} ({})", l.name, l.joint_type.name()),
            ends: [l.predecessor.body, l.successor.body].map(|b| b.and_then(|b| entry_of[b])),
            notes: count(reasons.iter().filter(|r| r.joint.as_ref() == Some(&l.name))),
        });
        let rest = reasons
            .iter()
            .filter(|r| r.joint.is_none() && !(is_own(r) && r.bodies.len() == 1))
            .map(|r| format!("{} on {}", r.principle, r.bodies.join(", ")));
        let mut lines: Vec<(String, usize)> = Vec::new();
        for line in rest {
            match lines.iter_mut().find(|(l, _)| *l == line) {
                Some((_, n)) => *n += 1,
                None => lines.push((line, 1)),
            }
        }
        let rest = lines.into_iter().map(|(line, n)| format!("{n} {line}")).collect();
        Self { root: root.to_owned(), entries, connections: connections.collect(), rest }
    }

    fn name(&self, end: Option<usize>) -> &str {
        end.map_or(&self.root, |e| &self.entries[e].name)
    }
}

/// Returns whether a reason concerns a single body.
fn is_own(reason: &Reason) -> bool {
    match reason.kind {
        Principle::FixedPoints
        | Principle::PlanarRotation
        | Principle::AxialMotion
        | Principle::AxialSliding(_) => true,
        Principle::SharedPoints(_)
        | Principle::NotMeasured
        | Principle::FreeFlight
        | Principle::Conservation
        | Principle::Computation => false,
    }
}

/// Counts the null vectors of each principle, formatted as `shared points 3`.
fn count<'a>(reasons: impl Iterator<Item = &'a Reason>) -> Vec<String> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for reason in reasons {
        match counts.iter_mut().find(|(name, _)| *name == reason.principle) {
            Some((_, n)) => *n += 1,
            None => counts.push((reason.principle, 1)),
        }
    }
    counts.into_iter().map(|(name, n)| format!("{name} {n}")).collect()
}

/// Returns the graph as indented text: each body with its joint and its number of null vectors for each principle.
pub fn text(mechanism: &Mechanism, reasons: &[Reason]) -> String {
    let drawing = Drawing::new(mechanism, reasons);
    let listed = |notes: &[String]| if notes.is_empty() { "nothing".into() } else { notes.join(", ") };
    let mut out = format!("{}\n", drawing.root);
    for entry in &drawing.entries {
        let _ = writeln!(
            out,
            "{:indent$}└ {} by {}: {}",
            "",
            entry.name,
            entry.joint,
            listed(&entry.notes),
            indent = 2 * entry.depth - 2
        );
    }
    for connection in &drawing.connections {
        let [a, b] = connection.ends.map(|e| drawing.name(e));
        let _ = writeln!(out, "loop {} between {a} and {b}: {}", connection.name, listed(&connection.notes));
    }
    for line in &drawing.rest {
        let _ = writeln!(out, "{line}");
    }
    out
}

const COLUMN: usize = 230;
const ROW: usize = 84;
const WIDTH: usize = 170;
const HEIGHT: usize = 60;

/// Returns the graph as an SVG picture: bodies as boxes by their distance from the ground, loop joints dashed.
pub fn svg(mechanism: &Mechanism, reasons: &[Reason]) -> String {
    let drawing = Drawing::new(mechanism, reasons);
    let columns = drawing.entries.iter().map(|e| e.depth).max().unwrap_or(0) + 1;
    let rows = drawing.entries.len() + 1;
    let place = |end: Option<usize>| match end {
        None => (20, 40),
        Some(i) => (20 + COLUMN * drawing.entries[i].depth, 40 + ROW * i),
    };
    let (width, height) =
        (40 + COLUMN * columns + 120, 60 + ROW * rows.max(2) + 18 * (drawing.rest.len() + 1));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\">\n<title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        escape(mechanism.name())
    );
    for (i, entry) in drawing.entries.iter().enumerate() {
        let ((x0, y0), (x1, y1)) = (place(entry.parent), place(Some(i)));
        let (ax, ay, by) = (x0 + WIDTH / 2, y0 + HEIGHT, y1 + HEIGHT / 2);
        let path = if y1 == y0 {
            format!("M{} {}H{x1}", x0 + WIDTH, y0 + HEIGHT / 2)
        } else {
            format!("M{ax} {ay}V{by}H{x1}")
        };
        let _ = writeln!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"#557\" stroke-width=\"1.5\"/>");
    }
    for (k, connection) in drawing.connections.iter().enumerate() {
        let [(x0, y0), (x1, y1)] = connection.ends.map(place);
        let (x0, y0, x1, y1) = (x0 + WIDTH, y0 + HEIGHT / 3, x1 + WIDTH, y1 + HEIGHT / 3);
        let bow = x0.max(x1) + 50 + 14 * k;
        let _ = writeln!(
            out,
            "<path d=\"M{x0} {y0}C{bow} {y0} {bow} {y1} {x1} {y1}\" fill=\"none\" stroke=\"#b40\" \
             stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/>"
        );
        let (x, y) = (bow - 30, y0.midpoint(y1));
        lines(
            &mut out,
            x,
            y,
            "#b40",
            std::iter::once(connection.name.as_str()).chain(connection.notes.iter().map(String::as_str)),
        );
    }
    boxed(&mut out, place(None), &drawing.root, &[], "#eee");
    for (i, entry) in drawing.entries.iter().enumerate() {
        let mut notes = vec![entry.joint.clone()];
        notes.extend(entry.notes.iter().cloned());
        boxed(&mut out, place(Some(i)), &entry.name, &notes, "#eef4ff");
    }
    lines(&mut out, 20, 50 + ROW * rows, "#333", drawing.rest.iter().map(String::as_str));
    out + "</svg>\n"
}

fn boxed(out: &mut String, (x, y): (usize, usize), name: &str, notes: &[String], fill: &str) {
    // The height of a box grows with its text, within its row.
    let height = HEIGHT.max(20 + 13 * notes.len());
    let _ = writeln!(
        out,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{height}\" rx=\"6\" fill=\"{fill}\" stroke=\"#557\"/>\n\
         <text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>",
        x + 8,
        y + 15,
        escape(name)
    );
    lines(out, x + 8, y + 28, "#333", notes.iter().map(String::as_str));
}

fn lines<'a>(out: &mut String, x: usize, y: usize, colour: &str, lines: impl Iterator<Item = &'a str>) {
    for (i, line) in lines.enumerate() {
        let _ =
            writeln!(out, "<text x=\"{x}\" y=\"{}\" fill=\"{colour}\">{}</text>", y + 13 * i, escape(line));
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
