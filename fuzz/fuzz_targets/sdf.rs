#![no_main]

mod survive;

use inertial::mechanism::read::sdf;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| survive::survive(sdf::read(text)));
