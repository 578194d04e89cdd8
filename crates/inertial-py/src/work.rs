//! Long work on a separate thread that Python can observe and stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use inertial_app::{Note, Progress, Unit};
use pyo3::prelude::*;

use crate::errors::{spelled, value_error};
use crate::pool;

/// Interval at which Python checks for an interruption.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Interval at which the caller receives progress reports.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// Time for interrupted work to end by itself.
const GRACE: Duration = Duration::from_millis(150);

/// Observer of a job: stores notes and progress, and forwards the request to stop.
pub struct Observer {
    stop: AtomicBool,
    notes: Mutex<Vec<String>>,
    done: Mutex<Done>,
    start: Instant,
}

/// Amount of completed work.
#[derive(Clone, Copy, PartialEq, Default)]
struct Done {
    /// Total amount of work; zero if unknown.
    total: f64,
    /// Amount of the parts before this one, and the size of this part.
    before: f64,
    part: f64,
    /// Completed share of the part, or of all work if there are no parts.
    share: f64,
}

impl Done {
    /// Returns the completed work and the total work.
    fn amounts(&self) -> (f64, f64) {
        if self.total <= 0.0 {
            return (self.share, 1.0);
        }
        let amount = if self.before + self.part > 0.0 { self.part } else { self.total };
        ((self.before + self.share * amount).min(self.total), self.total)
    }
}

impl Observer {
    /// Creates an observer of work that starts now.
    pub fn new() -> Arc<Self> {
        let (stop, start) = (AtomicBool::new(false), Instant::now());
        Arc::new(Self { stop, notes: Mutex::default(), done: Mutex::default(), start })
    }

    /// Returns the notes so far.
    pub fn notes(&self) -> Vec<String> {
        lock(&self.notes).clone()
    }
}

impl Progress for Observer {
    fn begin(&self, _unit: Unit, total: u64) {
        *lock(&self.done) = Done { total: total as f64, ..Done::default() };
    }

    fn part(&self, _name: &str, size: u64) {
        let mut done = lock(&self.done);
        *done = Done { before: done.before + done.part, part: size as f64, share: 0.0, ..*done };
    }

    fn share(&self, share: f64) {
        lock(&self.done).share = share;
    }

    fn note(&self, note: &Note) {
        lock(&self.notes).push(note.message(&spelled));
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// Locks a mutex, also after a panic of another holder.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is atomic: after a panic while the lock was held, the value is still consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs long work on a separate thread with the interpreter released, so that Ctrl-C is detected. `tell` is called with the
/// completed work and the total work.
///
/// An interruption, or an exception raised by `tell`, stops the observer and gives the work a short time to end. Work that has not
/// ended by then is abandoned: it checks the observer before it writes anything, and its result is dropped.
pub fn long<T: Send + 'static>(
    py: Python<'_>,
    observer: &Arc<Observer>,
    tell: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (send, receive) = channel();
    let started = std::thread::Builder::new().spawn(move || send.send(pool::run_alone(work)));
    started.map_err(|e| value_error(format!("cannot start a thread: {e}")))?;
    // A receiver cannot be shared between threads, but only this thread ever waits.
    let receive = Mutex::new(receive);
    let wait = |time: Duration| py.detach(|| lock(&receive).recv_timeout(time));
    let (mut reported, mut when) = ((0.0, 1.0), Instant::now());
    let mut look = |ended: bool| -> PyResult<()> {
        py.check_signals()?;
        let Some(tell) = tell.filter(|_| ended || when.elapsed() >= REPORT_INTERVAL) else { return Ok(()) };
        let amounts = lock(&observer.done).amounts();
        if reported != amounts {
            tell.call1(amounts)?;
            (reported, when) = (amounts, Instant::now());
        }
        Ok(())
    };
    loop {
        match wait(CHECK_INTERVAL) {
            // Work that ends before the first report still reports once.
            Ok(done) => return look(true).and(done),
            Err(RecvTimeoutError::Disconnected) => return Err(value_error("the work ended unexpectedly")),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(interruption) = look(false) {
            observer.stop.store(true, Ordering::Relaxed);
            // The caller is interrupted whether or not the work has ended.
            let _ = wait(GRACE);
            return Err(interruption);
        }
    }
}
