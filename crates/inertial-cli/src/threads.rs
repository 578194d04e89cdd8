//! Threads, also where the system gives none (`ulimit -u`, containers with a limit of processes).

use std::io;
use std::sync::mpsc::channel;
use std::thread;

use rayon::ThreadPoolBuilder;

/// Prepares the work for a system that gives no threads: this one then does it alone.
pub fn prepare() {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|count| count.parse().ok());
    let wanted =
        asked.filter(|&count| count > 0).or_else(|| thread::available_parallelism().ok().map(Into::into));
    // Tried first: a pool of all threads that fails cannot be replaced by a smaller one.
    if ensure_available(wanted.unwrap_or(1)).is_err() {
        // Fails where the pool is there already.
        let _ = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    }
}

/// Fails where the system does not give so many threads now. For libraries that panic then.
pub fn ensure_available(count: usize) -> io::Result<()> {
    let (hold, wait) = (0..count).map(|_| channel::<()>()).unzip::<_, _, Vec<_>, Vec<_>>();
    let started: Vec<_> = wait
        .into_iter()
        .map(|wait| thread::Builder::new().spawn(move || wait.recv()))
        .collect::<io::Result<_>>()?;
    drop(hold);
    started.into_iter().for_each(|thread| drop(thread.join()));
    Ok(())
}
