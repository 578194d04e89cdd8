#![no_main]

mod survive;

use inertial::mechanism::read::urdf;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| survive::survive(urdf::read(text)));
