//! Reaction wheels: validation and placement on the bodies that carry them.

use std::collections::HashSet;

use super::Build;
use super::check::{checked_axis, finite, place};
use crate::mechanism::{Base, Wheel};
use crate::{Error, Result};

impl Build<'_> {
    pub(super) fn wheels(&self) -> Result<Vec<Wheel>> {
        let mut out = Vec::with_capacity(self.spec.wheels.len());
        let mut names: HashSet<&str> = self.described.iter().map(|j| j.name.as_str()).collect();
        for wheel in &self.spec.wheels {
            let here = || place(wheel.line, format!("wheel \"{}\"", wheel.name));
            if !names.insert(&wheel.name) {
                return Err(Error::model(here(), "the name is taken: joints and wheels need distinct names"));
            }
            finite(&here().element, wheel.line, &[wheel.inertia])?;
            if wheel.inertia <= 0.0 {
                return Err(Error::model(
                    here(),
                    "a wheel needs an inertia above zero (kg m², about its axis)",
                ));
            }
            let axis = checked_axis(&wheel.axis, here())?;
            let carrier = self.link_index.get(&wheel.carrier).map(|&l| &self.links[l]).ok_or_else(|| {
                Error::model(here(), format!("its carrier \"{}\" does not exist", wheel.carrier))
            })?;
            let Some(body) = carrier.body else {
                // Wheels of a base that the user fixed are dropped.
                if self.options.base == Some(Base::Fixed) {
                    continue;
                }
                return Err(Error::model(
                    here(),
                    "its carrier does not move: a reaction wheel needs a moving carrier",
                ));
            };
            out.push(Wheel {
                name: wheel.name.clone(),
                body,
                axis: carrier.pose.rotation * axis,
                inertia: wheel.inertia,
                limits: wheel.limits,
            });
        }
        Ok(out)
    }
}
