//! Thread pools that survive a fork.
//!
//! The threads of Rayon's global pool do not exist in a forked child, which would wait for them forever. This module therefore never
//! uses the global pool: short work runs in a pool that belongs to the process, long work in a separate pool.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::value_error;

/// Thread pool of a process, with the process id.
static SHARED: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

fn build() -> PyResult<ThreadPool> {
    ThreadPoolBuilder::new().build().map_err(value_error)
}

/// Returns the pool of this process; the first call in a process builds it.
///
/// The caller holds the interpreter, so no other thread of Python can fork while the lock is held.
pub fn shared(_py: Python<'_>) -> PyResult<Arc<ThreadPool>> {
    let mut shared_pool = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let own = std::process::id();
    match shared_pool.as_ref() {
        Some((process, pool)) if *process == own => Ok(Arc::clone(pool)),
        other => {
            let pool = Arc::new(build()?);
            // The pool of the parent process has no threads here, so it must be leaked instead of dropped.
            if other.is_some() {
                std::mem::forget(shared_pool.take());
            }
            *shared_pool = Some((own, Arc::clone(&pool)));
            Ok(pool)
        }
    }
}

/// Runs long work in a separate pool; if the system provides no threads, on this thread, which must not belong to a pool.
pub fn run_alone<T: Send>(work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let alone = || ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().map_err(value_error);
    Ok(build().or_else(|_| alone())?.install(work))
}
