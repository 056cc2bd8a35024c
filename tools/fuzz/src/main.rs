//! `fuzz TARGET SEED...`: executes a reader on mutations of seeds.

use clap::{Parser, ValueEnum};
use fuzz::archive::ArchiveTarget;
use fuzz::script::ScriptTarget;
use fuzz::{Input, Options, Target, peak_memory_bytes};
use std::path::PathBuf;
use std::process::ExitCode;

/// Executes a reader on mutated inputs until it panics, hangs or fills the memory.
#[derive(Parser)]
struct Arguments {
    /// The reader.
    target: TargetName,
    /// Inputs that the reader understands: files, or directories that are one archive.
    #[arg(required = true)]
    seeds: Vec<PathBuf>,
    /// How many mutated inputs; 0 tries only the seeds, as a finding.
    #[arg(long, default_value_t = 1_000_000)]
    executions: u64,
    /// Where the random numbers begin; the same gives the same inputs.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where an input that was a finding is written.
    #[arg(long, default_value = ".")]
    findings: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum TargetName {
    /// Archives of pg_dump: custom, directory, tar.
    Archive,
    /// Scripts of SQL.
    Script,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("fuzz: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<(), String> {
    let mut seeds = Vec::new();
    for path in &arguments.seeds {
        let seed = Input::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        seeds.push(seed);
    }
    let mut target: Box<dyn Target> = match arguments.target {
        TargetName::Archive => Box::new(ArchiveTarget::new().map_err(|e| e.to_string())?),
        TargetName::Script => Box::new(ScriptTarget),
    };
    let options = Options {
        executions: arguments.executions,
        seed: arguments.seed,
        findings: arguments.findings,
    };
    let summary = fuzz::run(target.as_mut(), &seeds, &options)?;
    println!(
        "{}: {} executions, {} of them read without an error; the slowest took {:?}; at most {} MB of memory",
        target.name(),
        summary.executions,
        summary.taken,
        summary.slowest,
        peak_memory_bytes() >> 20
    );
    Ok(())
}
