//! Mutated inputs for the readers of bytes from outside.
//!
//! A [`Target`] is one such reader. [`run`] takes seeds that the reader understands, changes each in a
//! few places ([`mutate()`]), and executes the target on what comes out. Whatever the bytes are, the
//! reader gives data or an error: a panic, an execution over [`MAX_DURATION`] or a process over
//! [`MAX_MEMORY_BYTES`] is a finding, and the input is kept.
//!
//! ```sh
//! cargo run --release -p fuzz -- archive --executions 1000000 fixtures/dumps/archives/*
//! cargo run --release -p fuzz -- script --executions 1000000 fixtures/dumps/scripts/*
//! ```
//!
//! The same number of executions from the same [`Options::seed`] does the same.

pub mod archive;
mod input;
mod mutate;
mod random;
pub mod script;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use input::Input;
pub use mutate::mutate;
pub use random::Random;

/// How long one execution may take.
pub const MAX_DURATION: Duration = Duration::from_secs(10);
/// The most memory that the process may ever have had, in bytes.
pub const MAX_MEMORY_BYTES: u64 = 1 << 30;

/// A reader to be tried.
pub trait Target {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Reads an input to its end; whether it was taken without an error.
    ///
    /// # Panics
    /// When the reader does, or does what it must not.
    fn execute(&mut self, input: &Input) -> bool;

    /// Makes a mutated input plausible again, as by its checksums: for half of the executions.
    fn mend(&self, _input: &mut Input) {}
}

/// What [`run`] does.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many mutated inputs are executed; with 0 a finding is tried again.
    pub executions: u64,
    /// Where the random numbers begin.
    pub seed: u64,
    /// Where an input that was a finding is written.
    pub findings: PathBuf,
}

/// What came of a run.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Inputs that were executed.
    pub executions: u64,
    /// Those that were read without an error.
    pub taken: u64,
    /// The longest execution.
    pub slowest: Duration,
}

/// Executes a target on the seeds as they are, then on mutations of them.
///
/// # Errors
/// A finding: what it is, and where the input lies.
///
/// # Panics
/// Without seeds.
pub fn run(target: &mut dyn Target, seeds: &[Input], options: &Options) -> Result<Summary, String> {
    assert!(!seeds.is_empty(), "there are no seeds");
    let mut random = Random::new(options.seed);
    let mut summary = Summary::default();
    let name = target.name();
    let seeds_alone = seeds.len() as u64;
    for execution in 0..seeds_alone + options.executions {
        let mut input;
        if execution < seeds_alone {
            input = seeds[execution as usize].clone();
        } else {
            input = seeds[random.below(seeds.len())].clone();
            mutate(&mut input, seeds, &mut random);
            if random.below(2) == 0 {
                target.mend(&mut input);
            }
        }
        let found = |what: String| {
            let name = format!("{name}-{}-{execution}", options.seed);
            let kept = keep(&input, &options.findings.join(name));
            Err(format!("execution {execution}: {what}; the input: {kept}"))
        };
        let mut timed = || {
            let since = Instant::now();
            let taken = catch_unwind(AssertUnwindSafe(|| target.execute(&input)));
            taken.map(|taken| (taken, since.elapsed()))
        };
        let Ok((taken, mut duration)) = timed() else {
            return found("a panic".into());
        };
        if duration > MAX_DURATION {
            // What was slow because this process was stopped is not slow again.
            duration = timed().map_or(duration, |(_, again)| again.min(duration));
        }
        if duration > MAX_DURATION {
            return found(format!("it took {duration:?} at least twice"));
        }
        if execution % 1000 == 0 && peak_memory_bytes() > MAX_MEMORY_BYTES {
            return found(format!(
                "until here the process came to {} MB",
                peak_memory_bytes() >> 20
            ));
        }
        summary.executions += 1;
        summary.taken += u64::from(taken);
        summary.slowest = summary.slowest.max(duration);
    }
    Ok(summary)
}

fn keep(input: &Input, place: &Path) -> String {
    match input.write(place) {
        Ok(()) => place.display().to_string(),
        Err(e) => format!("could not be written to {}: {e}", place.display()),
    }
}

/// The most memory that this process ever had, in bytes; 0 where the system does not say.
pub fn peak_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}
