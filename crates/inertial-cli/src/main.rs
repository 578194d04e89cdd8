//! The `inertial` program: weighs a robot by moving it.

fn main() -> std::process::ExitCode {
    inertial_cli::main()
}
