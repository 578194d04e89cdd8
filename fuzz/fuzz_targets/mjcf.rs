#![no_main]

mod survive;

use inertial::mechanism::read::{self, mjcf};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| survive::survive(mjcf::read(text, &read::no_includes)));
