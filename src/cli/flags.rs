//! The command line as typed. What it means is worked out in [`super::options`].

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Builds PostgreSQL data files directly: initial loads and restores, without COPY.
#[derive(Parser, Debug)]
#[command(name = "pgpagewrite", version, about, disable_help_flag = true)]
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
    Build(Box<BuildFlags>),
    /// Cleans up after a crash; running it twice does no harm.
    Recover(RecoverFlags),
}

/// Which server or data directory.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Target")]
pub struct TargetFlags {
    /// A running server on this host: a database name, a keyword/value string, or a URI.
    #[arg(short = 'd', long, value_name = "CONNINFO")]
    pub dbname: Option<String>,
    /// Its host name or socket directory.
    #[arg(short = 'h', long)]
    pub host: Option<String>,
    /// Its port.
    #[arg(short = 'p', long)]
    pub port: Option<u16>,
    /// The role to connect as.
    #[arg(short = 'U', long)]
    pub username: Option<String>,
    /// A stopped cluster; it is started privately and stopped again.
    #[arg(short = 'D', long, value_name = "DIR", conflicts_with = "dbname")]
    pub pgdata: Option<PathBuf>,
    /// Make the cluster first: DIR must be absent or empty.
    #[arg(long, requires = "pgdata")]
    pub create_cluster: bool,
    /// The database of a stopped cluster; made when the cluster is new.
    #[arg(long, value_name = "NAME", requires = "pgdata")]
    pub database: Option<String>,
    /// Where the server's programs are.
    #[arg(long, value_name = "DIR", requires = "pgdata")]
    pub pg_bin: Option<PathBuf>,
    /// As root: the user who owns a new cluster; postgres by default.
    #[arg(long, value_name = "USER", requires = "pgdata")]
    pub owner: Option<String>,
}

/// COPY's options, with COPY's names.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Input")]
pub struct InputFlags {
    /// csv or text; by default .csv is csv, all else is text.
    #[arg(long)]
    pub format: Option<String>,
    /// The character between fields.
    #[arg(long, value_name = "CHAR", allow_hyphen_values = true)]
    pub delimiter: Option<String>,
    /// The string that stands for NULL.
    #[arg(long, value_name = "STRING", allow_hyphen_values = true)]
    pub null: Option<String>,
    /// The first line is a header; =match checks the column names.
    #[arg(long, value_name = "match", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub header: Option<String>,
    /// CSV's quote character.
    #[arg(long, value_name = "CHAR", allow_hyphen_values = true)]
    pub quote: Option<String>,
    /// CSV's escape character; the quote by default.
    #[arg(long, value_name = "CHAR", allow_hyphen_values = true)]
    pub escape: Option<String>,
    /// The input's encoding; UTF8 by default.
    #[arg(long)]
    pub encoding: Option<String>,
    /// CSV: columns whose quoted values are compared with the NULL string, too.
    #[arg(long, value_name = "COLUMN,...")]
    pub force_null: Option<String>,
    /// CSV: columns whose values are never NULL.
    #[arg(long, value_name = "COLUMN,...")]
    pub force_not_null: Option<String>,
    /// The string that stands for the column's default (16 and later).
    #[arg(long, value_name = "STRING", allow_hyphen_values = true)]
    pub default: Option<String>,
    /// Each line ends with a delimiter, as in dbgen's .tbl files; the delimiter is then |.
    #[arg(long)]
    pub trailing_delimiter: bool,
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
    /// glob, or end in .gz, .zst, .lz4. May repeat.
    #[arg(value_name = "SOURCE", required = true)]
    pub sources: Vec<String>,
    /// SQL to run first, in the load's own transaction.
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// How many threads; all cores by default.
    #[arg(short = 'j', long, value_name = "N", help_heading = "Behaviour")]
    pub jobs: Option<usize>,
    /// Memory to stay within, as 512MB or 4GB; a quarter of this machine's by default.
    #[arg(long, value_name = "SIZE", help_heading = "Behaviour")]
    pub memory: Option<String>,
    /// Where sorts spill; beside the staged files by default.
    #[arg(long, value_name = "DIR", help_heading = "Behaviour")]
    pub temp_dir: Option<PathBuf>,
    /// Add to the rows that are there (not built yet: refused).
    #[arg(long, help_heading = "Behaviour", conflicts_with = "truncate")]
    pub append: bool,
    /// Replace the rows that are there, in the same transaction.
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
    /// Go on where CHECK constraints and foreign keys are not checked.
    #[arg(long, help_heading = "Behaviour")]
    pub trust_constraints: bool,
    /// Go on where triggers would fire; they do not.
    #[arg(long, help_heading = "Behaviour")]
    pub skip_triggers: bool,
    /// Refuse what the server would have to do: its COPY for a table, its build of an index.
    #[arg(long, help_heading = "Behaviour")]
    pub native_only: bool,
    /// ANALYZE after the load (the default).
    #[arg(long, help_heading = "Behaviour", overrides_with = "no_analyze")]
    pub analyze: bool,
    /// No ANALYZE after the load.
    #[arg(long, help_heading = "Behaviour")]
    pub no_analyze: bool,
    /// How long to wait for a table's lock.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "60",
        help_heading = "Behaviour"
    )]
    pub lock_timeout: u64,
    /// auto, plain, json or none.
    #[arg(
        long,
        value_name = "HOW",
        default_value = "auto",
        help_heading = "Behaviour"
    )]
    pub progress: String,
    /// text or json.
    #[arg(
        long,
        value_name = "HOW",
        default_value = "text",
        help_heading = "Behaviour"
    )]
    pub report: String,
}

/// `recover`.
#[derive(Args, Debug)]
pub struct RecoverFlags {
    /// The target.
    #[command(flatten)]
    pub target: TargetFlags,
}
