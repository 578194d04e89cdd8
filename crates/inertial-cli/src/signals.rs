//! Signals that end the program.

use std::sync::Arc;

use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use signal_hook::flag;
use signal_hook::low_level::{emulate_default_handler, register};

/// Signals that end a process by default and that users and batch systems send.
const ENDING: [i32; 9] = [SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGXCPU];

/// Installs handlers that end the program as by default, except while outputs have hidden names, which would be left behind.
///
/// A signal at that moment is ignored: the outputs are complete, and the program is about to end.
pub fn prepare() {
    for signal in ENDING {
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

/// Ends this process when its parent ends, also if that is killed. `parent` is the process number of the parent.
#[cfg(target_os = "linux")]
pub fn end_with(parent: i32) {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    // If the system refuses, the job ends at its time limit or by itself.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // The parent may have ended before.
    if getppid().is_none_or(|id| id.as_raw_nonzero().get() != parent) {
        std::process::exit(2);
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
