//! Long work: on a thread of its own, observed and stopped from Python.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use inertial_app::{Note, Progress, Unit};
use pyo3::prelude::*;

use crate::errors::{spelled, wrong};
use crate::pool;

/// How often Python looks whether it was interrupted.
const GLANCE: Duration = Duration::from_millis(20);

/// How often the caller is told of progress.
const TELL: Duration = Duration::from_millis(100);

/// Time that interrupted work has to end by itself.
const GRACE: Duration = Duration::from_millis(150);

/// Observer of a job: keeps notes and progress, and passes on the request to stop.
pub struct Observer {
    stop: AtomicBool,
    notes: Mutex<Vec<String>>,
    done: Mutex<Done>,
    start: Instant,
}

/// Amount of work that is done.
#[derive(Clone, Copy, PartialEq, Default)]
struct Done {
    /// All work; zero where it is not known.
    total: f64,
    /// Parts before this one, and its own size.
    before: f64,
    part: f64,
    /// Share of the part, or of all work where there are no parts.
    share: f64,
}

impl Done {
    /// Work that is done, and all of it.
    fn amounts(&self) -> (f64, f64) {
        if self.total <= 0.0 {
            return (self.share, 1.0);
        }
        let whole = if self.before + self.part > 0.0 { self.part } else { self.total };
        ((self.before + self.share * whole).min(self.total), self.total)
    }
}

impl Observer {
    /// Creates an observer of work that begins now.
    pub fn new() -> Arc<Self> {
        let (stop, start) = (AtomicBool::new(false), Instant::now());
        Arc::new(Self { stop, notes: Mutex::default(), done: Mutex::default(), start })
    }

    /// The notes so far.
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one step: a panic while it was held leaves a whole value.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does long work on a thread of its own with the interpreter released, so that Ctrl-C is seen. `tell` is called with the work
/// that is done and all of it.
///
/// An interruption, or an exception of `tell`, stops the observer and gives the work a moment to end. Work that has not ended by
/// then is left to itself: it looks at the observer before it writes anything, and its result is dropped.
pub fn long<T: Send + 'static>(
    py: Python<'_>,
    observer: &Arc<Observer>,
    tell: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (send, receive) = channel();
    let started = std::thread::Builder::new().spawn(move || send.send(pool::run_alone(work)));
    started.map_err(|e| wrong(format!("the system gives no thread: {e}")))?;
    // A receiver cannot be shared between threads, but the one that waits is always this one.
    let receive = Mutex::new(receive);
    let wait = |time: Duration| {
        py.detach(|| receive.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(time))
    };
    let (mut told, mut when) = ((0.0, 1.0), Instant::now());
    let mut look = |ended: bool| -> PyResult<()> {
        py.check_signals()?;
        let Some(tell) = tell.filter(|_| ended || when.elapsed() >= TELL) else { return Ok(()) };
        let amounts = lock(&observer.done).amounts();
        if told != amounts {
            tell.call1(amounts)?;
            (told, when) = (amounts, Instant::now());
        }
        Ok(())
    };
    loop {
        match wait(GLANCE) {
            // Work that ends before the first report still reports once.
            Ok(done) => return look(true).and(done),
            Err(RecvTimeoutError::Disconnected) => return Err(wrong("the work ended unexpectedly")),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(interruption) = look(false) {
            observer.stop.store(true, Ordering::Relaxed);
            // Whether it ended or not, the caller is interrupted.
            let _ = wait(GRACE);
            return Err(interruption);
        }
    }
}
