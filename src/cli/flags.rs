//! The command line as typed. What it means is worked out in [`super::options`].

use super::dump_flags::DumpFlags;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// What stands below the options of `pgpagewrite build --help`.
const BUILD_EXAMPLES: &str = "\
Examples:
  A running server:
    pgpagewrite build -d shop --header orders=orders.csv
  A stopped cluster:
    pgpagewrite build -D /srv/pg15 --database shop --header orders=orders.csv
  A new cluster, its tables made by a script:
    pgpagewrite build -D /srv/new --create-cluster --database shop --schema shop.sql \\
        --header orders=orders.csv
  Several tables in one transaction; COPY's text format; a pattern for pgpagewrite to expand:
    pgpagewrite build -d shop customers=customers.txt.gz 'orders=orders-*.txt'
  Columns by name, from standard input:
    zcat orders.csv.gz | pgpagewrite build -d shop --format csv 'orders(id, customer)=-'
  A dump, in place of pg_restore or psql:
    pgpagewrite build -d shop shop.dump
    pgpagewrite build -d postgres -C shop.dump

Exit status: 0 loaded; 1 refused; 2 wrong usage; 3 no server, file, space or permission; 4 corruption.
Nothing is loaded unless it is 0, but for what --keep-going restores.";

/// Builds PostgreSQL data files directly: initial loads from data files, and restores of dumps.
#[derive(Parser, Debug)]
#[command(name = "pgpagewrite", version, disable_help_flag = true)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Flags {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Print help.
    #[arg(long, global = true, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Builds tables from data files and registers them in a cluster.
    #[command(after_help = BUILD_EXAMPLES)]
    Build(Box<BuildFlags>),
    /// Tells what "build" with the same arguments would do, and writes nothing.
    Plan(Box<BuildFlags>),
    /// Makes what "build --stage-only" left in a directory part of its cluster.
    Register(Box<RegisterFlags>),
    /// Cleans up at once what a crash left; the next build does the same. Twice does no harm.
    Recover(RecoverFlags),
}

/// Which server or data directory.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Target")]
pub struct TargetFlags {
    /// A database of a running server on this host: its name, a keyword/value string, or a URI.
    /// Without -d and -D, PGDATABASE and the other variables of psql decide.
    #[arg(short = 'd', long, value_name = "CONNINFO")]
    pub dbname: Option<String>,
    /// The running server's socket directory or host name; -h is not help.
    #[arg(short = 'h', long)]
    pub host: Option<String>,
    /// The running server's port.
    #[arg(short = 'p', long)]
    pub port: Option<u16>,
    /// The role to connect as; it must be a superuser.
    #[arg(short = 'U', long)]
    pub username: Option<String>,
    /// The data directory of a stopped cluster; it is started privately and stopped again.
    #[arg(short = 'D', long, value_name = "DIR", conflicts_with = "dbname")]
    pub pgdata: Option<PathBuf>,
    /// Make the cluster of -D first, by initdb; DIR must be absent or empty.
    #[arg(long, requires = "pgdata")]
    pub create_cluster: bool,
    /// With -D: the database, postgres by default; made when the cluster is new.
    #[arg(long, value_name = "NAME", requires = "pgdata")]
    pub database: Option<String>,
    /// With -D: where initdb and postgres are; by default pg_config, PATH and the usual places are
    /// looked at.
    #[arg(long, value_name = "DIR", requires = "pgdata")]
    pub pg_bin: Option<PathBuf>,
    /// With -D, as root: the user who owns a new cluster, postgres by default.
    #[arg(long, value_name = "USER", requires = "pgdata")]
    pub owner: Option<String>,
}

/// COPY's options, with COPY's names.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Input")]
pub struct InputFlags {
    /// csv, text (COPY's default) or binary; by default files named .csv (also
    /// .csv.gz and so on) are csv, all else is text.
    #[arg(long)]
    pub format: Option<String>,
    /// The character between fields; by default a tab in text, a comma in CSV.
    #[arg(long, value_name = "CHAR", allow_hyphen_values = true)]
    pub delimiter: Option<String>,
    /// The string that stands for NULL; by default \N in text, nothing without quotes in CSV.
    #[arg(long, value_name = "STRING", allow_hyphen_values = true)]
    pub null: Option<String>,
    /// The first line is a header and is not loaded; =match checks its column names.
    #[arg(long, value_name = "match", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub header: Option<String>,
    /// CSV: the quote character; " by default.
    #[arg(long, value_name = "CHAR", allow_hyphen_values = true)]
    pub quote: Option<String>,
    /// CSV: the escape character; the quote by default.
    #[arg(long, value_name = "CHAR", allow_hyphen_values = true)]
    pub escape: Option<String>,
    /// The input's encoding; UTF8 by default.
    #[arg(long, value_name = "NAME")]
    pub encoding: Option<String>,
    /// CSV: columns in which a quoted NULL string is NULL, too; * is all.
    #[arg(long, value_name = "COLUMN,...")]
    pub force_null: Option<String>,
    /// CSV: columns in which the NULL string is a value; * is all.
    #[arg(long, value_name = "COLUMN,...")]
    pub force_not_null: Option<String>,
    /// The string that stands for the column's default (16 and later).
    #[arg(long, value_name = "STRING", allow_hyphen_values = true)]
    pub default: Option<String>,
    /// Each line ends with a delimiter, as in dbgen's .tbl files; the delimiter is then |.
    #[arg(long)]
    pub trailing_delimiter: bool,
}

/// Options of every command that registers.
#[derive(Args, Debug, Clone)]
pub struct CommonFlags {
    /// How many threads, 256 at most; all cores by default.
    #[arg(short = 'j', long, value_name = "N", help_heading = "Behaviour")]
    pub jobs: Option<usize>,
    /// Memory to stay within, as 512MB or 4GB, at least 64MB; a quarter of this machine's by
    /// default.
    #[arg(long, value_name = "SIZE", help_heading = "Behaviour")]
    pub memory: Option<String>,
    /// Replace the rows that are there, in the same transaction; without it a table that has rows
    /// is refused.
    #[arg(long, help_heading = "Behaviour")]
    pub truncate: bool,
    /// What to do about the write-ahead log: auto refuses where standbys, slots or an archive
    /// would miss the load; bypass goes on.
    #[arg(
        long,
        value_name = "auto|bypass",
        default_value = "auto",
        help_heading = "Behaviour"
    )]
    pub wal: String,
    /// Do not check CHECK constraints and foreign keys; without it the server checks them before
    /// COMMIT.
    #[arg(long, help_heading = "Behaviour")]
    pub trust_constraints: bool,
    /// Do not fire INSERT triggers; without it a table that has them is refused.
    #[arg(long, help_heading = "Behaviour")]
    pub skip_triggers: bool,
    /// ANALYZE after the load (the default).
    #[arg(long, help_heading = "Behaviour", overrides_with = "no_analyze")]
    pub analyze: bool,
    /// No ANALYZE after the load.
    #[arg(long, help_heading = "Behaviour")]
    pub no_analyze: bool,
    /// How long to wait for the lock with which a table is registered.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "60",
        help_heading = "Behaviour"
    )]
    pub lock_timeout: u64,
    /// The report on stdout: text or json.
    #[arg(
        long,
        value_name = "HOW",
        default_value = "text",
        help_heading = "Behaviour"
    )]
    pub report: String,
}

/// `build`.
#[derive(Args, Debug)]
pub struct BuildFlags {
    /// The target.
    #[command(flatten)]
    pub target: TargetFlags,
    /// The input's form.
    #[command(flatten)]
    pub input: InputFlags,
    /// TABLE=PATH or TABLE(COLUMN, ...)=PATH, names as in SQL; PATH may be - (standard input), a
    /// pattern (quote it for the shell), or a compressed file (.gz, .zst, .lz4, .xz). May repeat; a
    /// table that is named twice gets the rows of both. Or one DUMP of pg_dump or pg_dumpall: a
    /// file or directory of any format, or - (standard input).
    #[arg(value_name = "SOURCE", required = true)]
    pub sources: Vec<String>,
    /// SQL to run first, in the load's own transaction. After a script of pg_dump, tables are
    /// named with their schema: it empties search_path.
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// For dumps.
    #[command(flatten)]
    pub dump: DumpFlags,
    /// What other commands have, too.
    #[command(flatten)]
    pub common: CommonFlags,
    /// Build the files into this directory, absent or empty, and register nothing; "register"
    /// does that later.
    #[arg(
        long,
        value_name = "DIR",
        help_heading = "Behaviour",
        conflicts_with_all = ["schema", "create_cluster", "truncate", "append", "wal", "analyze", "no_analyze"]
    )]
    pub stage_only: Option<PathBuf>,
    /// Where sorts of index keys spill when they outgrow --memory, in the cluster by default; where
    /// dumps are copied that cannot be read at any place.
    #[arg(long, value_name = "DIR", help_heading = "Behaviour")]
    pub temp_dir: Option<PathBuf>,
    /// Add to the rows that are there (not built yet: refused).
    #[arg(long, help_heading = "Behaviour", conflicts_with = "truncate")]
    pub append: bool,
    /// Refuse what the server would have to do: its COPY for a table, its build of an index.
    #[arg(long, help_heading = "Behaviour")]
    pub native_only: bool,
    /// Progress on stderr: auto (a bar on a terminal), plain, json or none.
    #[arg(
        long,
        value_name = "HOW",
        default_value = "auto",
        help_heading = "Behaviour"
    )]
    pub progress: String,
}

/// `register`.
#[derive(Args, Debug)]
pub struct RegisterFlags {
    /// The directory that "build --stage-only" made.
    #[arg(value_name = "STAGE")]
    pub stage: PathBuf,
    /// The target.
    #[command(flatten)]
    pub target: TargetFlags,
    /// What other commands have, too.
    #[command(flatten)]
    pub common: CommonFlags,
    /// Leave the stage where it is; by default it is removed when it is registered.
    #[arg(long, help_heading = "Behaviour")]
    pub keep: bool,
}

/// `recover`.
#[derive(Args, Debug)]
pub struct RecoverFlags {
    /// The cluster's data directory; the server may run, or is started privately.
    #[arg(short = 'D', long, value_name = "DIR")]
    pub pgdata: PathBuf,
    /// The role to connect as; it must be a superuser. By default the directory's owner.
    #[arg(short = 'U', long)]
    pub username: Option<String>,
    /// The database to connect to; postgres by default.
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
    /// Where postgres is; by default pg_config, PATH and the usual places are looked at.
    #[arg(long, value_name = "DIR")]
    pub pg_bin: Option<PathBuf>,
}

impl RecoverFlags {
    /// What `build` would call this target.
    pub fn target(&self) -> TargetFlags {
        TargetFlags {
            pgdata: Some(self.pgdata.clone()),
            username: self.username.clone(),
            database: self.database.clone(),
            pg_bin: self.pg_bin.clone(),
            ..TargetFlags::default()
        }
    }
}
