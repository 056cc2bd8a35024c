//! The command: writes one workload to standard output or to a file.

use clap::{Parser, Subcommand};
use generate::{TpchTable, Workload};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Makes input for demos, tests and benchmarks; the same arguments give the same bytes.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    workload: Command,
    /// Write here instead of to standard output.
    #[arg(long, short, global = true)]
    output: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// DBT-2's customer, as CSV: ascending c_id, random c_d_id, about 570 bytes a row.
    Customer {
        #[arg(long)]
        rows: u64,
    },
    /// A table of TPC-H, as dbgen's .tbl.
    Tpch {
        #[arg(long)]
        scale: f64,
        #[arg(long)]
        table: String,
    },
    /// 100 columns of bigint, as CSV.
    Bigint100 {
        #[arg(long)]
        rows: u64,
    },
    /// A small row: id, name, value, as CSV.
    Shadoks {
        #[arg(long)]
        rows: u64,
    },
    /// A text of 1 to 200 KB a row, every second one compressible, as CSV.
    Wide {
        #[arg(long)]
        rows: u64,
    },
    /// Every native type with nulls, short, long, compressible and out-of-line values, as CSV.
    Alltypes {
        #[arg(long)]
        rows: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("generate: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> io::Result<()> {
    let workload = match cli.workload {
        Command::Customer { rows } => Workload::Customer { rows },
        Command::Tpch { scale, table } => Workload::Tpch {
            scale,
            table: table.parse::<TpchTable>().map_err(io::Error::other)?,
        },
        Command::Bigint100 { rows } => Workload::Bigint100 { rows },
        Command::Shadoks { rows } => Workload::Shadoks { rows },
        Command::Wide { rows } => Workload::Wide { rows },
        Command::Alltypes { rows, seed } => Workload::AllTypes { rows, seed },
    };
    if let Some(path) = cli.output {
        let mut file = File::create(path)?;
        workload.write(&mut file)?;
        file.flush()
    } else {
        let mut out = BufWriter::new(io::stdout().lock());
        workload.write(&mut out)?;
        out.flush()
    }
}
