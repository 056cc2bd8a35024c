//! SIGINT and SIGTERM while the server works for us: its statement is cancelled.

use crate::error::{Error, Result};
use postgres::{CancelToken, NoTls};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

/// How often the flag is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a cancelled statement has to end before it is cancelled again: the request may have
/// come between two statements.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The error of SIGINT and SIGTERM.
pub(super) fn interrupted() -> Error {
    Error::environment("57014", "canceling the load due to user request")
        .with_detail("Nothing was loaded; what was staged is removed.")
}

/// Does `work`; statements that it waits for are cancelled once `flag` is set.
pub(super) fn cancelling<T>(
    token: &CancelToken,
    flag: &AtomicBool,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let wait = if flag.load(Ordering::Relaxed) {
                    // A server that is gone has nothing to cancel.
                    let _ = token.cancel_query(NoTls);
                    AGAIN_AFTER
                } else {
                    LOOK_EVERY
                };
                thread::park_timeout(wait);
            }
        });
        let _end = End {
            done: &done,
            watcher: watcher.thread().clone(),
        };
        work()
    })
}

/// Sends the watcher home, also when the work panics.
struct End<'a> {
    done: &'a AtomicBool,
    watcher: Thread,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
        self.watcher.unpark();
    }
}
