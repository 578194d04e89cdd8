//! A command called by another program: its models may be given as texts, what it prints and says goes to the caller, and the
//! caller may stop it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, ensure};
use inertial::estimation::Summary;

/// What a call brings, and what it leaves.
#[derive(Debug, Default)]
pub struct Session {
    /// Texts of models, by the argument that names them.
    pub models: HashMap<String, String>,
    /// Summaries of logs, by the argument that names them.
    pub summaries: HashMap<String, Summary>,
    /// Arguments of the call, for pages to tell how they were obtained; those of the process are not the caller's to show.
    pub arguments: Vec<String>,
    /// Set by the caller to stop long work.
    pub stop: Arc<AtomicBool>,
    /// What would have gone to standard output.
    pub output: String,
    /// The lines that would have gone to standard error.
    pub messages: Vec<String>,
}

thread_local! {
    /// The call that this thread works for; none in the program itself.
    static CURRENT: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// Runs `work` for a caller, and gives the session back with what it left.
pub fn within<T>(session: Session, work: impl FnOnce() -> T) -> (T, Session) {
    CURRENT.with_borrow_mut(|current| *current = Some(session));
    let result = work();
    (result, CURRENT.with_borrow_mut(Option::take).unwrap_or_default())
}

/// Whether another program called.
pub fn has_caller() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// Keeps what is printed for the caller; false where there is none.
pub fn keep_output(text: &str) -> bool {
    CURRENT.with_borrow_mut(|current| current.as_mut().map(|s| s.output.push_str(text)).is_some())
}

/// Keeps a line for the caller; false where there is none.
pub fn keep_message(line: &str) -> bool {
    CURRENT.with_borrow_mut(|current| current.as_mut().map(|s| s.messages.push(line.to_owned())).is_some())
}

/// The text of a model that the caller gave.
pub fn model(argument: &str) -> Option<String> {
    CURRENT.with_borrow(|current| current.as_ref()?.models.get(argument).cloned())
}

/// Arguments of the command that runs now, without the program's name: the caller's, else those of the process.
pub fn arguments() -> Vec<String> {
    CURRENT.with_borrow(|current| match current {
        Some(session) => session.arguments.clone(),
        None => std::env::args().skip(1).collect(),
    })
}

/// A summary that the caller gave.
pub fn summary(argument: &str) -> Option<Summary> {
    CURRENT.with_borrow(|current| current.as_ref()?.summaries.get(argument).cloned())
}

/// What says that long work shall stop: the caller, or Ctrl-C in the program itself.
pub fn stop_flag() -> Result<Arc<AtomicBool>> {
    static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(flag) = CURRENT.with_borrow(|current| current.as_ref().map(|s| Arc::clone(&s.stop))) {
        return Ok(flag);
    }
    if let Some(flag) = INTERRUPTED.get() {
        return Ok(Arc::clone(flag));
    }
    let flag = Arc::clone(INTERRUPTED.get_or_init(Arc::default));
    let handler = Arc::clone(&flag);
    // A second Ctrl-C ends the program at once.
    ctrlc::set_handler(move || {
        if handler.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot listen to Ctrl-C")?;
    Ok(flag)
}

/// Gives up where the caller asked to; the program itself ends by the signal.
pub fn go_on() -> Result<()> {
    let stopped = CURRENT.with_borrow(|c| c.as_ref().is_some_and(|s| s.stop.load(Ordering::Relaxed)));
    ensure!(!stopped, "interrupted");
    Ok(())
}
