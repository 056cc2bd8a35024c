//! Loads the same rows in several ways, in turn, and prints medians and ratios.
//!
//! ```text
//! cargo build --release -p pgpagewrite -p bench
//! target/release/bench run customer --size 1GB
//! ```
//!
//! Every time is that of a whole command, from the start of the process to its end, when
//! everything is durable. What is compared:
//!
//! - `copy`: COPY into the empty table with its indexes in place;
//! - `freeze`: TRUNCATE, COPY FREEZE, constraints and CREATE INDEX in one transaction that skips WAL
//!   (wal_level=minimal);
//! - `pgpagewrite`: `pgpagewrite build --no-analyze`;
//! - `bulkload`: pg_bulkload with WRITER=PARALLEL, where the server offers its extension;
//! - `floor`: no loader at all: reads the same input, and writes as many bytes of checksummed
//!   pages into new files as the loaded tables have. Nothing that writes such files can be quicker.

mod facts;
mod floor;
mod method;
mod report;
mod workload;

use clap::{Parser, Subcommand};
use method::Method;
use std::path::PathBuf;
use std::process::ExitCode;
use workload::{Name, Prepared};

/// Compares ways to load the same rows.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the comparison.
    Run(Run),
    /// Reads files, writes pages, and makes them durable: the least that a load costs.
    Floor(floor::Arguments),
}

/// What to compare, and how.
#[derive(clap::Args)]
struct Run {
    /// What to load; all of them when none is named.
    workloads: Vec<Name>,
    /// Bytes of input for each workload, as 300MB or 1GB.
    #[arg(long, default_value = "300MB", value_parser = workload::size)]
    size: u64,
    /// How often each way runs.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// The server's major version.
    #[arg(long, default_value_t = 15)]
    version: u32,
    /// Only these ways; all that can run by default.
    #[arg(long, value_delimiter = ',')]
    methods: Vec<Method>,
    /// The program; the one beside this by default.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Where the server and the input live; on the disk that is to be measured.
    #[arg(long, default_value = "/tmp")]
    dir: PathBuf,
    /// More options for `pgpagewrite build`, as --option=--jobs=1.
    #[arg(long = "option", allow_hyphen_values = true)]
    options: Vec<String>,
    /// Settings of the server, as --set name=value.
    #[arg(long = "set")]
    settings: Vec<String>,
    /// Keep the report in tools/results/ too.
    #[arg(long)]
    save: bool,
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(run) => compare(&run),
        Command::Floor(arguments) => match floor::run(&arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                eprintln!("bench: {e}");
                ExitCode::FAILURE
            }
        },
    }
}

/// What the server is started with: room for COPY to be at its best.
const SETTINGS: &[(&str, &str)] = &[
    ("wal_level", "minimal"),
    ("fsync", "on"),
    ("shared_buffers", "1GB"),
    ("maintenance_work_mem", "512MB"),
    ("max_wal_size", "16GB"),
    ("checkpoint_timeout", "1h"),
];

fn compare(run: &Run) -> ExitCode {
    let program = run.program.clone().unwrap_or_else(|| {
        let own = std::env::current_exe().expect("the path of this program");
        own.with_file_name("pgpagewrite")
    });
    if !program.exists() {
        eprintln!(
            "bench: there is no {}: build it, or name it by --program",
            program.display()
        );
        return ExitCode::FAILURE;
    }
    let mut settings = SETTINGS.to_vec();
    for setting in &run.settings {
        let Some(pair) = setting.split_once('=') else {
            eprintln!("bench: --set {setting}: not name=value");
            return ExitCode::FAILURE;
        };
        settings.push(pair);
    }
    let names = if run.workloads.is_empty() {
        Name::ALL.to_vec()
    } else {
        run.workloads.clone()
    };
    let server = support::Server::start_in(&run.dir, run.version, &settings);
    let mut text = facts::describe(&server, &settings);
    print!("{text}");
    for name in names {
        let prepared = Prepared::new(name, run.size, &server);
        let methods: Vec<Method> = Method::ALL
            .into_iter()
            .filter(|m| run.methods.is_empty() || run.methods.contains(m))
            .filter(|m| m.can_run(&server))
            .collect();
        let times = report::rounds(run.rounds, &methods, |method| {
            method.load(&prepared, &server, &program, &run.options)
        });
        let table = report::table(&prepared, &times);
        print!("{table}");
        text += &table;
    }
    if run.save {
        report::save(&text);
    }
    ExitCode::SUCCESS
}
