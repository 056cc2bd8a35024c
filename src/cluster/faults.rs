//! Places where a test can make something go wrong. Release builds have none of it.
//!
//! A test arms its own thread with a closure; [`point`] calls it with the name of each place
//! that the registration passes. In a program under test (a build with debug assertions), the
//! environment variable `PGPAGEWRITE_FAULT=name` aborts the process at that place.

use crate::error::Result;

/// The places, in the order in which a registration passes them.
pub const POINTS: [&str; 8] = [
    "locked",
    "emptied",
    "checkpointed",
    "journalled",
    "half_renamed",
    "renamed",
    "updated",
    "committing",
];

#[cfg(debug_assertions)]
type Hook = Box<dyn FnMut(&str) -> Result<()>>;

#[cfg(debug_assertions)]
thread_local! {
    static HOOK: std::cell::RefCell<Option<Hook>> = const { std::cell::RefCell::new(None) };
}

/// Arms the calling thread: `hook` runs at every place.
#[cfg(debug_assertions)]
pub fn arm(hook: impl FnMut(&str) -> Result<()> + 'static) {
    HOOK.with(|h| *h.borrow_mut() = Some(Box::new(hook)));
}

/// Disarms the calling thread.
#[cfg(debug_assertions)]
pub fn disarm() {
    HOOK.with(|h| *h.borrow_mut() = None);
}

/// Passes a place.
#[cfg(debug_assertions)]
pub fn point(name: &str) -> Result<()> {
    debug_assert!(POINTS.contains(&name), "{name} is not listed");
    if std::env::var("PGPAGEWRITE_FAULT").is_ok_and(|armed| armed == name) {
        std::process::abort();
    }
    // The hook is taken out while it runs, so that it may pass places itself.
    let Some(mut hook) = HOOK.with(|h| h.borrow_mut().take()) else {
        return Ok(());
    };
    let result = hook(name);
    HOOK.with(|h| {
        h.borrow_mut().get_or_insert(hook);
    });
    result
}

/// Passes a place: nothing happens.
#[cfg(not(debug_assertions))]
#[expect(clippy::unnecessary_wraps, reason = "the other build can fail here")]
pub fn point(_name: &str) -> Result<()> {
    Ok(())
}
