//! Signals that end the program.

use std::sync::Arc;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::low_level::{emulate_default_handler, register};

/// Installs handlers that end the program as by default, except while outputs have hidden names, which would be left behind.
///
/// A signal at that moment is ignored: the outputs are complete, and the program is about to end.
pub fn prepare() {
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        if is_ignored(signal) {
            continue;
        }
        let end = move || {
            if !inertial_app::disk::is_placing() {
                // Fails only for signals that cannot be handled, which does not apply to these.
                let _ = emulate_default_handler(signal);
            }
        };
        // SAFETY: the action may run at any point of the program. It reads an atomic number and calls a function that
        // is made for signal handlers; it neither locks nor allocates.
        let registered = unsafe { register(signal, end) };
        // If registration fails, the signal ends the program at once.
        drop(registered);
    }
}

/// Prevents the signal about a file above the size limit (`ulimit -f`) from ending the program, so that writing fails with an error instead.
pub fn ignore_file_size() {
    // A handler without effect suffices. If registration fails, the signal ends the program.
    let registered = flag::register(SIGXFSZ, Arc::default());
    drop(registered);
}

/// Returns whether the caller set a signal to be ignored (`nohup`); detected on Linux only.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
