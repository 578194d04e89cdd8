//! The `inertial` program.

// Sines and exponentials with the same bits on every processor.
use inertial_libm as _;

fn main() -> std::process::ExitCode {
    inertial_cli::main()
}
