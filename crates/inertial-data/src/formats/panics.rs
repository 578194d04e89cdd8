//! Panics of crates that read files, as errors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is caught, so that its message is not written.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function that may panic on damaged files; returns `None` if it does. What it was reading must not be used afterwards.
pub(crate) fn caught<T>(read: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                usual(panic);
            }
        }));
    });
    let outer = IS_CAUGHT.replace(true);
    let out = catch_unwind(AssertUnwindSafe(read));
    IS_CAUGHT.set(outer);
    out.ok()
}
