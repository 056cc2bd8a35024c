//! Loads the same rows in several ways, in turn, and prints medians and ratios.
//!
//! ```text
//! cargo build --release -p pgpagewrite -p bench
//! target/release/bench run --rounds 5 --save 2-cores --picture
//! target/release/bench run customer wide@0.1 --rounds 3
//! target/release/bench run customer --breakdown
//! target/release/bench picture 2-cores
//! cargo bench -p bench
//! ```
//!
//! Every time is that of a whole command, from the start of the process to its end, when
//! everything is durable; every way writes new files, and finds its input in the page cache. What
//! is compared:
//!
//! - `copy`: COPY into the empty table with its indexes in place;
//! - `freeze`: TRUNCATE, COPY FREEZE, constraints and CREATE INDEX in one transaction that skips WAL
//!   (wal_level=minimal);
//! - `pgpagewrite`: `pgpagewrite build --no-analyze`;
//! - `bulkload`: pg_bulkload with WRITER=PARALLEL, where the server offers its extension;
//! - `floor`: no loader at all: reads the same input, and writes as many bytes of checksummed
//!   pages into new files as the loaded tables have. Nothing that writes such files can be quicker.
//!
//! Results are kept as text in `tools/bench/results`, with a picture beside it ([`picture`]).
//! `--breakdown` tells where the time of a row goes ([`breakdown`]); the benchmarks of the single
//! stages are in `benches/stages`.

mod breakdown;
mod facts;
mod floor;
mod method;
mod picture;
mod report;
mod results;
mod workload;

use clap::{Parser, Subcommand};
use method::Method;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};
use support::Server;
use workload::{Choice, Name, Prepared};

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
    /// Draws kept results, tools/bench/results/NAME.txt, as NAME.svg beside it.
    Picture {
        /// The results' name.
        name: String,
    },
    /// Reads files, writes pages, and makes them durable: the least that a load costs.
    Floor(floor::Arguments),
}

/// What to compare, and how.
#[derive(clap::Args)]
struct Run {
    /// What to load, as NAME or NAME@SCALE: customer, lineitem, bigint100, shadoks, shadoks-en-us,
    /// wide (all of these when none is named), tpch.
    workloads: Vec<Choice>,
    /// How much of each workload; 1 is 1 GB of customer, 6 M rows of lineitem, 1 M of bigint100,
    /// 10 M of shadoks, 100,000 of wide (10 GB).
    #[arg(long, default_value = "1", value_parser = workload::scale)]
    scale: f64,
    /// The same as bytes of input for each workload, as 300MB or 1GB.
    #[arg(long, value_parser = workload::size, conflicts_with = "scale")]
    size: Option<u64>,
    /// How often each way runs.
    #[arg(long, default_value_t = 5)]
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
    /// Do not compare: tell how many nanoseconds of pgpagewrite go into a row, a field, a page
    /// and an index entry, by stage.
    #[arg(long, conflicts_with_all = ["methods", "picture"])]
    breakdown: bool,
    /// Keep the results as tools/bench/results/NAME.txt too.
    #[arg(long, value_name = "NAME")]
    save: Option<String>,
    /// Draw what is kept as NAME.svg beside it.
    #[arg(long, requires = "save")]
    picture: bool,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(run) => compare(&run),
        Command::Picture { name } => draw(&name),
        Command::Floor(arguments) => floor::run(&arguments).map_err(|e| e.to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::FAILURE
        }
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

fn compare(run: &Run) -> Result<(), String> {
    if let Some(name) = &run.save {
        // A name that is none is better known before hours of work.
        results::path(name, "txt").map_err(|e| e.to_string())?;
    }
    let program = program(run)?;
    let mut settings = SETTINGS.to_vec();
    for setting in &run.settings {
        let pair = setting.split_once('=');
        settings.push(pair.ok_or_else(|| format!("--set {setting}: not name=value"))?);
    }
    let server = Server::start_in(&run.dir, run.version, &settings);
    let methods = methods(run, &server)?;
    let mut text = facts::describe(&server, &settings, &program, &run.options, &methods);
    print!("{text}");
    let mut all = Vec::new();
    for (name, scale) in workloads(run) {
        let prepared = Prepared::new(name, scale, &server)
            .map_err(|e| format!("the input of {}: {e}", name.label()))?;
        let told = if run.breakdown {
            breakdown::of(&prepared, &server, &program, &run.options, run.rounds)?
        } else {
            let times = report::rounds(run.rounds, &methods, |method| {
                method.load(&prepared, &server, &program, &run.options)
            });
            let table = report::table(&prepared, &times);
            all.push((name, times));
            table
        };
        print!("{told}");
        text += &told;
        prepared.remove(&server).map_err(|e| e.to_string())?;
    }
    if !run.breakdown {
        let summary = report::summary(run.rounds, &all);
        print!("{summary}");
        text += &summary;
    }
    if let Some(name) = &run.save {
        results::keep(name, "txt", &text).map_err(|e| e.to_string())?;
        if run.picture {
            draw(name)?;
        }
    }
    Ok(())
}

/// The program to measure, where there is one.
fn program(run: &Run) -> Result<PathBuf, String> {
    let beside =
        || -> io::Result<PathBuf> { Ok(std::env::current_exe()?.with_file_name("pgpagewrite")) };
    let program = match &run.program {
        Some(program) => program.clone(),
        None => beside().map_err(|e| e.to_string())?,
    };
    if Path::exists(&program) {
        return Ok(program);
    }
    Err(format!(
        "there is no {}: build it, or name it by --program",
        program.display()
    ))
}

/// The ways to run, in their order.
fn methods(run: &Run, server: &Server) -> Result<Vec<Method>, String> {
    if run.breakdown {
        return Ok(vec![Method::Pgpagewrite]);
    }
    let methods: Vec<Method> = Method::ALL
        .into_iter()
        .filter(|m| run.methods.is_empty() || run.methods.contains(m))
        .filter(|m| m.can_run(server))
        .collect();
    if methods == [Method::Floor] {
        return Err("the floor follows another method, whose bytes it writes".to_owned());
    }
    Ok(methods)
}

fn workloads(run: &Run) -> Vec<(Name, f64)> {
    let scale = |name: Name, own: Option<f64>| match (own, run.size) {
        (Some(scale), _) => scale,
        (None, Some(size)) => name.scale_of(size),
        (None, None) => run.scale,
    };
    if run.workloads.is_empty() {
        return Name::USUAL.map(|name| (name, scale(name, None))).to_vec();
    }
    let chosen = run.workloads.iter();
    chosen
        .map(|choice| (choice.name, scale(choice.name, choice.scale)))
        .collect()
}

fn draw(name: &str) -> Result<(), String> {
    let path = results::path(name, "txt").map_err(|e| e.to_string())?;
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let workloads = results::parse(&text);
    if workloads.is_empty() {
        return Err(format!("{} has no times of methods", path.display()));
    }
    results::keep(name, "svg", &picture::svg(&workloads)).map_err(|e| e.to_string())
}
