//! Default classes: an attribute comes from the element, otherwise from its class, otherwise from the parent classes.

use std::collections::HashMap;

use super::super::xml::{Element, quoted};
use super::schema;
use super::source::Source;
use crate::{Place, Result};

/// Top-level class, used if no other is named.
const MAIN: &str = "main";

/// Shorthands that all set the one actuator of a class.
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

/// Elements by the kind of element for which they set defaults, the most specific last.
type Class<'a> = HashMap<&'a str, Vec<Element<'a>>>;

/// All default classes of a model.
pub(super) struct Defaults<'a>(HashMap<&'a str, Class<'a>>);

impl<'a> Defaults<'a> {
    /// Reads the `<default>` sections.
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
            // A class passes all its own settings to the inner classes, regardless of their position.
            open.extend(children.iter().rev().filter(|e| e.tag() == "default").map(|&e| (e, Some(name))));
            let class = classes.entry(name).or_default();
            for child in children.into_iter().filter(|e| e.tag() != "default") {
                schema::check_attributes(child)?;
                class.entry(kind(child.tag())).or_default().push(child);
            }
        }
        Ok(Self(classes))
    }

    /// Returns an element with the defaults of its class, or else of `childclass`.
    pub(super) fn layered(&self, element: Element<'a>, childclass: Option<&str>) -> Result<Layered<'a>> {
        self.layered_as(element, kind(element.tag()), childclass)
    }

    /// Returns an element with its defaults, which its class stores under another tag.
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

    /// Rejects a class that does not exist.
    pub(super) fn check(&self, element: Element<'_>, class: &str) -> Result<()> {
        self.find(element, class).map(|_| ())
    }

    fn find(&self, element: Element<'_>, class: &str) -> Result<&Class<'a>> {
        self.0.get(class).ok_or_else(|| element.error(format!("there is no default class {}", quoted(class))))
    }
}

/// Returns the kind of element in a class that sets the defaults of `tag`.
fn kind(tag: &str) -> &str {
    match tag {
        "fixed" | "spatial" => "tendon",
        tag if ACTUATORS.contains(&tag) => "general",
        tag => tag,
    }
}

/// Element with its inherited defaults; the element is first.
#[derive(Clone)]
pub(super) struct Layered<'a>(Vec<Element<'a>>);

impl<'a> Layered<'a> {
    /// Creates an element without defaults.
    pub(super) fn alone(element: Element<'a>) -> Self {
        Self(vec![element])
    }

    /// Returns the element itself.
    pub(super) fn element(&self) -> Element<'a> {
        self.0[0]
    }

    /// Returns the location of the element.
    pub(super) fn place(&self) -> Place {
        self.element().place()
    }

    /// Returns the nearest layer that has any of the attributes.
    pub(super) fn with_any(&self, names: &[&str]) -> Option<Element<'a>> {
        self.0.iter().copied().find(|e| names.iter().any(|n| e.attribute(n).is_some()))
    }

    fn with(&self, name: &str) -> Option<Element<'a>> {
        self.with_any(&[name])
    }

    /// Returns the text of an attribute.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.with(name)?.attribute(name)
    }

    /// Returns an attribute as one number.
    pub(super) fn number(&self, name: &str) -> Result<Option<f64>> {
        self.with(name).map_or(Ok(None), |e| e.number(name))
    }

    /// Returns an attribute as exactly `N` numbers.
    pub(super) fn numbers<const N: usize>(&self, name: &str) -> Result<Option<[f64; N]>> {
        self.with(name).map_or(Ok(None), |e| e.numbers(name))
    }

    /// Returns an attribute as a boolean.
    pub(super) fn boolean(&self, name: &str) -> Result<Option<bool>> {
        self.with(name).map_or(Ok(None), |e| e.boolean(name))
    }

    /// Returns an attribute of up to `N` numbers; numbers missing in a layer come from the layer below, and finally from `base`.
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

    /// Returns an attribute that is one of a few keywords.
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
