#![no_main]

mod survive;

use inertial::mechanism::read::file;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| survive::survive(file::read(text)));
