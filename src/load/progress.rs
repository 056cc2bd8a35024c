//! Progress: counters that workers bump, and a line on stderr for who watches.

use super::options::ProgressMode;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often a plain or JSON line is written.
const LINE_EVERY: Duration = Duration::from_secs(2);

/// What has been done so far; shared by all workers.
#[derive(Debug)]
pub struct Progress {
    bytes: AtomicU64,
    rows: AtomicU64,
    shown: Shown,
}

#[derive(Debug)]
enum Shown {
    Nothing,
    Bar(ProgressBar),
    Lines {
        json: bool,
        total_bytes: Option<u64>,
        started: Instant,
        last: Mutex<Instant>,
    },
}

impl Progress {
    /// Progress over `total_bytes` of input, where that is known.
    pub fn new(mode: ProgressMode, total_bytes: Option<u64>) -> Progress {
        let lines = |json| Shown::Lines {
            json,
            total_bytes,
            started: Instant::now(),
            last: Mutex::new(Instant::now()),
        };
        let shown = match mode {
            ProgressMode::Auto if std::io::stderr().is_terminal() => Shown::Bar(bar(total_bytes)),
            ProgressMode::Auto | ProgressMode::None => Shown::Nothing,
            ProgressMode::Plain => lines(false),
            ProgressMode::Json => lines(true),
        };
        Progress {
            bytes: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            shown,
        }
    }

    /// A chunk is done.
    pub fn add(&self, bytes: u64, rows: u64) {
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let rows = self.rows.fetch_add(rows, Ordering::Relaxed) + rows;
        match &self.shown {
            Shown::Nothing => {}
            Shown::Bar(bar) => {
                bar.set_position(bytes);
                bar.set_message(format!("{rows} rows"));
            }
            Shown::Lines {
                json,
                total_bytes,
                started,
                last,
            } => {
                let Ok(mut last) = last.try_lock() else {
                    return;
                };
                if last.elapsed() < LINE_EVERY {
                    return;
                }
                *last = Instant::now();
                let line = if *json {
                    serde_json::json!({
                        "rows": rows,
                        "bytes": bytes,
                        "total_bytes": total_bytes,
                        "seconds": started.elapsed().as_secs_f64(),
                    })
                    .to_string()
                } else {
                    format!("{rows} rows, {} MB read", bytes >> 20)
                };
                // A reader of stderr that went away is no reason to stop a load.
                let _ = writeln!(std::io::stderr(), "{line}");
            }
        }
    }

    /// A word on what is being done now, for a terminal.
    pub fn stage(&self, what: &str) {
        if let Shown::Bar(bar) = &self.shown {
            bar.set_message(what.to_owned());
        }
    }

    /// Takes the line off the terminal.
    pub fn finish(&self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

fn bar(total_bytes: Option<u64>) -> ProgressBar {
    let bar = match total_bytes {
        Some(total) => ProgressBar::new(total),
        None => ProgressBar::new_spinner(),
    };
    bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
    let template = match total_bytes {
        Some(_) => "{bytes}/{total_bytes} [{bar:30}] {bytes_per_sec}, {eta} left, {msg}",
        None => "{spinner} {bytes} {bytes_per_sec} {msg}",
    };
    bar.set_style(ProgressStyle::with_template(template).expect("our own template is right"));
    bar
}
