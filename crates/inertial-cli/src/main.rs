//! The `inertial` program.

// Sines and exponentials with identical results on every processor.
use inertial_libm as _;

fn main() -> std::process::ExitCode {
    inertial_cli::main()
}
