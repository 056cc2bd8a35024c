//! Flags as typed, then resolved options, then the command.

mod dump_flags;
mod flags;
mod options;

use crate::cluster::conninfo::process_environment;
use crate::cluster::recover;
use crate::error::{Error, Result};
use crate::load;
use crate::load::options::ReportMode;
use crate::load::report::Report;
use clap::Parser;
use flags::{BuildFlags, Command, Flags, RecoverFlags, RegisterFlags};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The status of a run that a second signal ended: the environment's.
const EXIT_AT_ONCE: i32 = 3;

/// Runs the program. The exit status: 0 loaded, 1 refused, 2 usage, 3 environment.
pub fn main() -> ExitCode {
    let flags = match Flags::try_parse() {
        Ok(flags) => flags,
        Err(error) => {
            // Help and version go to stdout with status 0, usage errors to stderr with 2.
            let status = if error.use_stderr() { 2 } else { 0 };
            let _ = error.print();
            return ExitCode::from(status);
        }
    };
    let outcome = match &flags.command {
        Command::Build(flags) => build(flags),
        Command::Plan(flags) => plan(flags),
        Command::Register(flags) => register(flags),
        Command::Recover(flags) => recover(flags),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody may be there to read it; the exit status tells all the same.
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::from(error.exit_status())
        }
    }
}

fn build(flags: &BuildFlags) -> Result<()> {
    if let Some(dump) = options::dump(flags) {
        return restore(flags, dump);
    }
    let options = options::build_options(flags)?;
    let interrupted = interrupts()?;
    let report = load::build(&options::target(&flags.target), &options, &interrupted)?;
    print(&report, options.report);
    Ok(())
}

/// A dump as the only source.
fn restore(flags: &BuildFlags, dump: &str) -> Result<()> {
    let (restore, build) = options::restore_options(flags, dump)?;
    let interrupted = interrupts()?;
    if flags.dump.list {
        let list = load::restore::list(&restore, &interrupted)?;
        let _ = std::io::stdout().write_all(list.as_bytes());
        return Ok(());
    }
    let target = options::target(&flags.target);
    let restored = load::restore::restore(&target, &restore, &build, &interrupted)?;
    print(&restored.report, build.report);
    match restored.errors {
        0 => Ok(()),
        errors => Err(Error::refused(
            "0A000",
            format!("errors ignored on restore: {errors}"),
        )),
    }
}

fn plan(flags: &BuildFlags) -> Result<()> {
    if let Some(dump) = options::dump(flags) {
        load::restore::refuse_to_plan(&options::restore_options(flags, dump)?.0)?;
    }
    let options = options::build_options(flags)?;
    let outlook = load::plan_only(&options::target(&flags.target), &options)?;
    let text = match options.report {
        ReportMode::Text => outlook.to_text(),
        ReportMode::Json => format!("{:#}\n", outlook.to_json()),
    };
    let _ = std::io::stdout().write_all(text.as_bytes());
    outlook.refusal.map_or(Ok(()), Err)
}

fn register(flags: &RegisterFlags) -> Result<()> {
    let options = options::register_options(flags)?;
    let interrupted = interrupts()?;
    let target = options::target(&flags.target);
    let report = load::two_step::register(&target, &options, &interrupted)?;
    print(&report, options.common.report);
    Ok(())
}

/// What signals set: the first asks for a clean end; the second, when that takes too long, ends
/// at once.
fn interrupts() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let at_once = signal_hook::flag::register_conditional_shutdown(
            signal,
            EXIT_AT_ONCE,
            Arc::clone(&interrupted),
        );
        let asked =
            at_once.and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)));
        asked.map_err(|e| {
            Error::environment("58000", format!("could not watch for signals: {e}"))
        })?;
    }
    Ok(interrupted)
}

fn print(report: &Report, mode: ReportMode) {
    let text = match mode {
        ReportMode::Text => report.to_text(),
        ReportMode::Json => format!("{:#}\n", report.to_json()),
    };
    // The load is done and durable: a closed pipe is no failure of it.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn recover(flags: &RecoverFlags) -> Result<()> {
    let recovered = recover::run(&options::target(&flags.target()), &process_environment)?;
    println!("{recovered}");
    Ok(())
}
