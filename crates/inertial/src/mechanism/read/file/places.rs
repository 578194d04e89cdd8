//! Locations of the entries of a mechanism file in its text, for messages with lines and for editing in place.

use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use toml::Spanned;

/// Returns whether a mechanism file is JSON; otherwise it is TOML.
pub fn is_json(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with('{')
}

/// Locations of the entries of a file's lists.
#[derive(Debug, Default, Deserialize)]
#[serde(bound = "B: Deserialize<'de>, E: Deserialize<'de>")]
pub(in crate::mechanism) struct Places<B = EntryPlace, E = B> {
    #[serde(default = "Vec::new")]
    pub bodies: Vec<B>,
    #[serde(default = "Vec::new")]
    pub loops: Vec<E>,
    #[serde(default = "Vec::new")]
    pub rotors: Vec<E>,
    #[serde(default = "Vec::new")]
    pub wheels: Vec<E>,
}

/// Location of one entry, of its `inertial` if present, and of its joint if it is a body.
#[derive(Debug)]
pub(in crate::mechanism) struct EntryPlace {
    pub span: Range<usize>,
    pub inertial: Option<InertialPlace<Range<usize>>>,
    pub joint: Option<JointPlace>,
}

/// Location of a joint, and of its `dynamics` if present.
#[derive(Debug)]
pub(in crate::mechanism) struct JointPlace {
    pub span: Range<usize>,
    pub dynamics: Option<DynamicsPlace>,
}

/// Location of the `dynamics` of a joint, and of the values of some of its keys.
#[derive(Debug)]
pub(in crate::mechanism) struct DynamicsPlace {
    pub span: Range<usize>,
    pub damping: Option<Range<usize>>,
    pub friction: Option<Range<usize>>,
    pub armature: Option<Range<usize>>,
}

/// Location of an `inertial`, and of its numeric values.
#[derive(Debug)]
pub(in crate::mechanism) struct InertialPlace<S> {
    pub span: S,
    pub mass: S,
    pub com: Option<S>,
    /// Order: `ixx ixy ixz iyy iyz izz`.
    pub tensor: [S; 6],
}

#[derive(Deserialize)]
#[serde(bound = "I: Deserialize<'de>")]
struct Entry<I> {
    inertial: Option<I>,
}

#[derive(Deserialize)]
#[serde(bound = "I: Deserialize<'de>, J: Deserialize<'de>")]
struct Body<I, J> {
    inertial: Option<I>,
    joint: Option<J>,
}

#[derive(Deserialize)]
#[serde(bound = "D: Deserialize<'de>")]
struct Joint<D> {
    dynamics: Option<D>,
}

#[derive(Deserialize)]
#[serde(bound = "S: Deserialize<'de>")]
struct Dynamics<S> {
    damping: Option<S>,
    friction: Option<S>,
    armature: Option<S>,
}

impl<S> Dynamics<S> {
    fn places(self, span: Range<usize>, place: impl Fn(S) -> Range<usize>) -> DynamicsPlace {
        DynamicsPlace {
            span,
            damping: self.damping.map(&place),
            friction: self.friction.map(&place),
            armature: self.armature.map(&place),
        }
    }
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

impl<B, E> Places<B, E> {
    fn map(
        self,
        body: impl Fn(B) -> Option<EntryPlace>,
        entry: impl Fn(E) -> Option<EntryPlace>,
    ) -> Option<Places> {
        let map = |list: Vec<E>| list.into_iter().map(&entry).collect::<Option<Vec<_>>>();
        Some(Places {
            bodies: self.bodies.into_iter().map(body).collect::<Option<Vec<_>>>()?,
            loops: map(self.loops)?,
            rotors: map(self.rotors)?,
            wheels: map(self.wheels)?,
        })
    }
}

impl Places {
    /// Finds the entries in a text that the reader accepts; returns `None` for other texts.
    pub fn find(text: &str) -> Option<Self> {
        if is_json(text) { Self::in_json(text) } else { Self::in_toml(text) }
    }

    fn in_json(text: &str) -> Option<Self> {
        type Raw<'t> = &'t RawValue;
        let span = |raw: &RawValue| span_within(text, raw.get());
        let json = text.trim_start_matches('\u{feff}');
        let inertial = |raw: &RawValue| {
            let fields: Inertial<Raw<'_>> = serde_json::from_str(raw.get()).ok()?;
            Some(fields.places(span(raw), span))
        };
        let joint = |raw: &RawValue| {
            let fields: Joint<Raw<'_>> = serde_json::from_str(raw.get()).ok()?;
            let dynamics = |raw: &RawValue| {
                let fields: Dynamics<Raw<'_>> = serde_json::from_str(raw.get()).ok()?;
                Some(fields.places(span(raw), span))
            };
            Some(JointPlace { span: span(raw), dynamics: given(fields.dynamics, dynamics)? })
        };
        serde_json::from_str::<Places<Raw<'_>>>(json).ok()?.map(
            |raw| {
                let body: Body<Raw<'_>, Raw<'_>> = serde_json::from_str(raw.get()).ok()?;
                Some(EntryPlace {
                    span: span(raw),
                    inertial: given(body.inertial, inertial)?,
                    joint: given(body.joint, joint)?,
                })
            },
            |raw| {
                let entry: Entry<Raw<'_>> = serde_json::from_str(raw.get()).ok()?;
                Some(EntryPlace { span: span(raw), inertial: given(entry.inertial, inertial)?, joint: None })
            },
        )
    }

    fn in_toml(text: &str) -> Option<Self> {
        type Value = Spanned<IgnoredAny>;
        type Inner = Spanned<Inertial<Value>>;
        type Moved = Spanned<Joint<Spanned<Dynamics<Value>>>>;
        let inertial = |i: Inner| {
            let span = i.span();
            i.into_inner().places(span, |value| value.span())
        };
        let joint = |j: Moved| {
            let span = j.span();
            let dynamics = j.into_inner().dynamics.map(|d| {
                let span = d.span();
                d.into_inner().places(span, |value| value.span())
            });
            JointPlace { span, dynamics }
        };
        toml::from_str::<Places<Spanned<Body<Inner, Moved>>, Spanned<Entry<Inner>>>>(text).ok()?.map(
            |body| {
                let (span, body) = (body.span(), body.into_inner());
                Some(EntryPlace { span, inertial: body.inertial.map(inertial), joint: body.joint.map(joint) })
            },
            |entry| {
                let span = entry.span();
                Some(EntryPlace { span, inertial: entry.into_inner().inertial.map(inertial), joint: None })
            },
        )
    }
}

/// Converts an optional value; the outer `None` is a failure.
#[allow(clippy::option_option)]
fn given<T, U>(value: Option<T>, to: impl Fn(T) -> Option<U>) -> Option<Option<U>> {
    value.map_or(Some(None), |value| to(value).map(Some))
}

/// Returns the byte range of `part`, a slice of `text`, in `text`.
fn span_within(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}
