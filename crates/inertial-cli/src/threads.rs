//! Worker threads, also on systems that cannot start any (`ulimit -u`, containers with a process limit).

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use rayon::{ThreadBuilder, ThreadPoolBuilder};

/// Starts the worker threads, as many as the system provides; if there are none, the current thread does the work.
pub fn prepare() {
    let requested = std::env::var("RAYON_NUM_THREADS").ok().and_then(|count| count.parse().ok());
    let wanted =
        requested.filter(|&count| count > 0).or_else(|| thread::available_parallelism().ok().map(Into::into));
    // Threads are started before their pool, because a pool that fails to start them cannot be replaced by a smaller one.
    let workers: Vec<_> = (0..wanted.unwrap_or(1)).map_while(|_| worker().ok()).collect();
    // Fails if the pool already exists.
    let _ = if workers.is_empty() {
        ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global()
    } else {
        let (count, mut waiting) = (workers.len(), workers.into_iter());
        let give = move |thread| {
            let worker = waiting.next().ok_or_else(|| io::Error::other("no thread is left"))?;
            worker.send(thread).map_err(|_| io::Error::other("a thread has ended"))
        };
        ThreadPoolBuilder::new().num_threads(count).spawn_handler(give).build_global()
    };
}

/// Starts a thread that waits for its work in the pool.
fn worker() -> io::Result<Sender<ThreadBuilder>> {
    let (give, take) = channel::<ThreadBuilder>();
    thread::Builder::new().spawn(move || take.recv().map(ThreadBuilder::run))?;
    Ok(give)
}

/// Fails if the system cannot currently start `count` threads, for libraries that would panic.
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
