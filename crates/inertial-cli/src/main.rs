//! The `inertial` program.

fn main() -> std::process::ExitCode {
    inertial_cli::main()
}
