//! Where the entries of a mechanism file stand in its text: for messages with lines, and for editing in place.

use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use toml::Spanned;

/// Whether a mechanism file is JSON; it is TOML otherwise.
pub(in crate::mechanism) fn is_json(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with('{')
}

/// The entries of a file's lists.
#[derive(Debug, Default, Deserialize)]
#[serde(bound = "E: Deserialize<'de>")]
pub(in crate::mechanism) struct Places<E = EntryPlace> {
    #[serde(default = "Vec::new")]
    pub bodies: Vec<E>,
    #[serde(default = "Vec::new")]
    pub loops: Vec<E>,
    #[serde(default = "Vec::new")]
    pub rotors: Vec<E>,
    #[serde(default = "Vec::new")]
    pub wheels: Vec<E>,
}

/// One entry, with its `inertial` if it has one.
#[derive(Debug)]
pub(in crate::mechanism) struct EntryPlace {
    pub span: Range<usize>,
    pub inertial: Option<InertialPlace<Range<usize>>>,
}

/// An `inertial`: itself, and the values in it that stand for numbers.
#[derive(Debug)]
pub(in crate::mechanism) struct InertialPlace<S> {
    pub span: S,
    pub mass: S,
    pub com: Option<S>,
    /// `ixx ixy ixz iyy iyz izz`.
    pub tensor: [S; 6],
}

#[derive(Deserialize)]
#[serde(bound = "I: Deserialize<'de>")]
struct Entry<I> {
    inertial: Option<I>,
}

#[derive(Deserialize)]
#[serde(bound = "S: Deserialize<'de>")]
struct Inertial<S> {
    mass: S,
    com: Option<S>,
    inertia: Tensor<S>,
}

#[derive(Deserialize)]
struct Tensor<S> {
    ixx: S,
    ixy: S,
    ixz: S,
    iyy: S,
    iyz: S,
    izz: S,
}

impl<S> Inertial<S> {
    fn places(self, span: Range<usize>, place: impl Fn(S) -> Range<usize>) -> InertialPlace<Range<usize>> {
        let t = self.inertia;
        InertialPlace {
            span,
            mass: place(self.mass),
            com: self.com.map(&place),
            tensor: [t.ixx, t.ixy, t.ixz, t.iyy, t.iyz, t.izz].map(place),
        }
    }
}

impl<E> Places<E> {
    fn map(self, place: impl Fn(E) -> Option<EntryPlace>) -> Option<Places> {
        let map = |list: Vec<E>| list.into_iter().map(&place).collect::<Option<Vec<_>>>();
        Some(Places {
            bodies: map(self.bodies)?,
            loops: map(self.loops)?,
            rotors: map(self.rotors)?,
            wheels: map(self.wheels)?,
        })
    }
}

impl Places {
    /// Finds them in a text that the reader accepts; `None` where it would not.
    pub fn find(text: &str) -> Option<Self> {
        if is_json(text) { Self::in_json(text) } else { Self::in_toml(text) }
    }

    fn in_json(text: &str) -> Option<Self> {
        let span = |raw: &RawValue| span_within(text, raw.get());
        let json = text.trim_start_matches('\u{feff}');
        serde_json::from_str::<Places<&RawValue>>(json).ok()?.map(|entry| {
            let inertial = serde_json::from_str::<Entry<&RawValue>>(entry.get()).ok()?.inertial;
            let inertial = match inertial {
                None => None,
                Some(raw) => {
                    let fields: Inertial<&RawValue> = serde_json::from_str(raw.get()).ok()?;
                    Some(fields.places(span(raw), span))
                }
            };
            Some(EntryPlace { span: span(entry), inertial })
        })
    }

    fn in_toml(text: &str) -> Option<Self> {
        type Value = Spanned<IgnoredAny>;
        toml::from_str::<Places<Spanned<Entry<Spanned<Inertial<Value>>>>>>(text).ok()?.map(|entry| {
            let span = entry.span();
            let inertial = entry.into_inner().inertial.map(|i| {
                let span = i.span();
                i.into_inner().places(span, |value| value.span())
            });
            Some(EntryPlace { span, inertial })
        })
    }
}

/// Where `part`, a slice of `text`, stands in it.
fn span_within(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}
