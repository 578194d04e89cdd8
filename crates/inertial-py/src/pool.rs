//! Thread pools that survive a fork.
//!
//! The threads of Rayon's global pool do not exist in a forked child, which would wait for them for ever. So nothing here uses it:
//! short work runs in a pool that belongs to this process, long work in a pool of its own.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::wrong;

/// The pool of a process, with the process's number.
static SHARED: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

fn build() -> PyResult<ThreadPool> {
    ThreadPoolBuilder::new().build().map_err(wrong)
}

/// Gives the pool of this process; the first call in a process builds it.
///
/// The caller holds the interpreter, so no other thread of Python can fork while the lock is held.
pub fn shared(_py: Python<'_>) -> PyResult<Arc<ThreadPool>> {
    let mut held = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let own = std::process::id();
    match held.as_ref() {
        Some((process, pool)) if *process == own => Ok(Arc::clone(pool)),
        other => {
            let pool = Arc::new(build()?);
            // The pool of the parent process has no threads here: it can only be forgotten.
            if other.is_some() {
                std::mem::forget(held.take());
            }
            *held = Some((own, Arc::clone(&pool)));
            Ok(pool)
        }
    }
}

/// Runs long work in a pool of its own; on this thread, which must be of no pool, where the system gives no others.
pub fn run_alone<T: Send>(work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let alone = || ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().map_err(wrong);
    Ok(build().or_else(|_| alone())?.install(work))
}
