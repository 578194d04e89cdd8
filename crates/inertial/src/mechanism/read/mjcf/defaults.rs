//! Default classes: what an element says, then what its class says, then what the class around that one says.

use std::collections::HashMap;

use super::super::xml::{Element, quoted};
use super::schema;
use super::source::Source;
use crate::{Place, Result};

/// The top class, in force where no other is named.
const MAIN: &str = "main";

/// The shorthands that all set the one actuator of a class.
pub(super) const ACTUATORS: &[&str] = &[
    "adhesion",
    "cylinder",
    "damper",
    "dcmotor",
    "general",
    "intvelocity",
    "motor",
    "muscle",
    "orientation",
    "pid",
    "plugin",
    "position",
    "velocity",
];

/// Elements by the kind of element that they set, the most specific last.
type Class<'a> = HashMap<&'a str, Vec<Element<'a>>>;

/// All default classes of a model.
pub(super) struct Defaults<'a>(HashMap<&'a str, Class<'a>>);

impl<'a> Defaults<'a> {
    /// Reads the sections `<default>`.
    pub(super) fn read(source: &'a Source<'_>) -> Result<Self> {
        let mut classes: HashMap<&str, Class<'_>> = HashMap::from([(MAIN, Class::new())]);
        let mut open: Vec<(Element<'_>, Option<&str>)> =
            source.section("default")?.into_iter().rev().map(|e| (e, None)).collect();
        while let Some((element, parent)) = open.pop() {
            let name = match (element.attribute("class"), parent) {
                (None | Some(MAIN), None) => MAIN,
                (Some(name), None) => {
                    let message = format!("the outermost class is {}, expected \"{MAIN}\"", quoted(name));
                    return Err(element.error(message));
                }
                (name, Some(parent)) => {
                    let name = name.ok_or_else(|| element.error("it needs the attribute \"class\""))?;
                    let inherited = classes.get(parent).cloned().unwrap_or_default();
                    if classes.insert(name, inherited).is_some() {
                        return Err(element.error(format!("there is a class {} already", quoted(name))));
                    }
                    name
                }
            };
            let children = source.children(element);
            // A class hands down all that it says itself, wherever the inner classes stand.
            open.extend(children.iter().rev().filter(|e| e.tag() == "default").map(|&e| (e, Some(name))));
            let class = classes.entry(name).or_default();
            for child in children.into_iter().filter(|e| e.tag() != "default") {
                schema::check_attributes(child)?;
                class.entry(kind(child.tag())).or_default().push(child);
            }
        }
        Ok(Self(classes))
    }

    /// An element with what it inherits from its class, or else from `childclass`.
    pub(super) fn layered(&self, element: Element<'a>, childclass: Option<&str>) -> Result<Layered<'a>> {
        self.layered_as(element, kind(element.tag()), childclass)
    }

    /// The same for an element whose class speaks of it under another tag.
    pub(super) fn layered_as(
        &self,
        element: Element<'a>,
        tag: &str,
        childclass: Option<&str>,
    ) -> Result<Layered<'a>> {
        let name = element.attribute("class").or(childclass).unwrap_or(MAIN);
        let class = self.find(element, name)?;
        let mut layers = vec![element];
        layers.extend(class.get(tag).into_iter().flatten().rev());
        Ok(Layered(layers))
    }

    /// Refuses a class that does not exist.
    pub(super) fn check(&self, element: Element<'_>, class: &str) -> Result<()> {
        self.find(element, class).map(|_| ())
    }

    fn find(&self, element: Element<'_>, class: &str) -> Result<&Class<'a>> {
        self.0.get(class).ok_or_else(|| element.error(format!("there is no default class {}", quoted(class))))
    }
}

/// What kind of element of a class sets the defaults of `tag`.
fn kind(tag: &str) -> &str {
    match tag {
        "fixed" | "spatial" => "tendon",
        tag if ACTUATORS.contains(&tag) => "general",
        tag => tag,
    }
}

/// An element and what it inherits, the element first.
#[derive(Clone)]
pub(super) struct Layered<'a>(Vec<Element<'a>>);

impl<'a> Layered<'a> {
    /// An element that inherits nothing.
    pub(super) fn alone(element: Element<'a>) -> Self {
        Self(vec![element])
    }

    /// The element itself.
    pub(super) fn element(&self) -> Element<'a> {
        self.0[0]
    }

    /// Where the element stands.
    pub(super) fn place(&self) -> Place {
        self.element().place()
    }

    /// The nearest layer that has any of the attributes.
    pub(super) fn with_any(&self, names: &[&str]) -> Option<Element<'a>> {
        self.0.iter().copied().find(|e| names.iter().any(|n| e.attribute(n).is_some()))
    }

    fn with(&self, name: &str) -> Option<Element<'a>> {
        self.with_any(&[name])
    }

    /// An attribute's text.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.with(name)?.attribute(name)
    }

    /// An attribute of one number.
    pub(super) fn number(&self, name: &str) -> Result<Option<f64>> {
        self.with(name).map_or(Ok(None), |e| e.number(name))
    }

    /// An attribute of exactly `N` numbers.
    pub(super) fn numbers<const N: usize>(&self, name: &str) -> Result<Option<[f64; N]>> {
        self.with(name).map_or(Ok(None), |e| e.numbers(name))
    }

    /// An attribute that says yes or no.
    pub(super) fn boolean(&self, name: &str) -> Result<Option<bool>> {
        self.with(name).map_or(Ok(None), |e| e.boolean(name))
    }

    /// An attribute of up to `N` numbers: those that a layer leaves out come from the layer below, last from `base`.
    pub(super) fn overlay<const N: usize>(&self, name: &str, base: [f64; N]) -> Result<[f64; N]> {
        let mut out = base;
        for layer in self.0.iter().rev() {
            let Some(values) = layer.number_list(name)? else { continue };
            if values.is_empty() || values.len() > N {
                let message = format!("{name} has {} numbers, expected 1 to {N} numbers", values.len());
                return Err(layer.error(message));
            }
            out[..values.len()].copy_from_slice(&values);
        }
        Ok(out)
    }

    /// An attribute that takes one of a few words.
    pub(super) fn keyword<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>> {
        let Some((layer, text)) = self.with(name).and_then(|e| Some((e, e.attribute(name)?))) else {
            return Ok(None);
        };
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(Some(*value));
        }
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        Err(layer.error(format!("{name}={} is none of: {}", quoted(text), words.join(", "))))
    }
}
