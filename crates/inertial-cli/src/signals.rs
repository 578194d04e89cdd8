//! Signals that end the program.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::{emulate_default_handler, register};

/// Lets signals end the program as ever, but not in the moment in which outputs have hidden names: they would be left behind.
///
/// A signal of that moment comes too late: the outputs are whole, and the program ends next.
pub fn prepare() {
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        if is_ignored(signal) {
            continue;
        }
        let end = move || {
            if !inertial_app::disk::is_placing() {
                // Fails for signals that cannot be handled, which these are not.
                let _ = emulate_default_handler(signal);
            }
        };
        // SAFETY: the action may run at any point of the program. It reads an atomic number and calls a function that is made for
        // handlers of signals; it takes no lock and no memory.
        let registered = unsafe { register(signal, end) };
        // Without it the signal ends the program at once.
        drop(registered);
    }
}

/// Whether the caller asked to ignore a signal (`nohup`); known on Linux only.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
