//! Runs the target that `INERTIAL_FUZZ_TARGET` names, one of those in `targets.rs`.

#![no_main]

#[path = "../targets.rs"]
mod targets;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

fn target() -> targets::Target {
    static TARGET: OnceLock<targets::Target> = OnceLock::new();
    *TARGET.get_or_init(|| {
        let wanted = std::env::var("INERTIAL_FUZZ_TARGET").expect("INERTIAL_FUZZ_TARGET names a target");
        let found = targets::TARGETS.iter().find(|(name, _)| *name == wanted);
        found.unwrap_or_else(|| panic!("there is no target {wanted}")).1
    })
}

fuzz_target!(|bytes: &[u8]| {
    target()(bytes);
});
