//! What a build is asked to do, resolved: no flag here needs another to be understood.

use super::source_spec::SourceSpec;
use crate::record::format::CopyOptions;
use std::path::PathBuf;
use std::time::Duration;

/// COPY's options as given, not yet checked against a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputOptions {
    /// FORMAT; by the file's extension when `None`.
    pub format: Option<InputFormat>,
    /// ENCODING.
    pub encoding: Option<String>,
    /// `FORCE_NULL`; `None` when not given.
    pub force_null: Option<ForceColumns>,
    /// `FORCE_NOT_NULL`; `None` when not given.
    pub force_not_null: Option<ForceColumns>,
    /// All that a record reader looks at; its `csv` is set per source.
    pub copy: CopyOptions,
}

/// The form of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    /// FORMAT csv.
    Csv,
    /// FORMAT text.
    Text,
    /// FORMAT binary: the server's COPY reads it.
    Binary,
}

/// The columns of `FORCE_NULL` and `FORCE_NOT_NULL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForceColumns {
    /// `*` (17 and later).
    All,
    /// These.
    Named(Vec<String>),
}

/// What to do about the write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WalMode {
    /// Refuse where somebody lives on the WAL: standbys, slots, an archive.
    #[default]
    Auto,
    /// Go on; the report says what must be made anew.
    Bypass,
}

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProgressMode {
    /// A line on a terminal, nothing in a pipe.
    #[default]
    Auto,
    /// A line of text now and then.
    Plain,
    /// A line of JSON now and then.
    Json,
    /// Nothing.
    None,
}

/// How the report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReportMode {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Everything that `build` is asked to do with its sources, but for the target.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own on the command line"
)]
pub struct BuildOptions {
    /// The sources in their order.
    pub sources: Vec<SourceSpec>,
    /// COPY's options, the same for all sources.
    pub input: InputOptions,
    /// SQL to run first.
    pub schema: Option<PathBuf>,
    /// Worker threads.
    pub jobs: usize,
    /// Memory to stay within.
    pub memory_bytes: usize,
    /// Where sorts spill; beside the staged files when `None`.
    pub temp_dir: Option<PathBuf>,
    /// Replace the rows that are there.
    pub truncate: bool,
    /// The write-ahead log.
    pub wal: WalMode,
    /// CHECK constraints and foreign keys need not be checked.
    pub trust_constraints: bool,
    /// Triggers need not fire.
    pub skip_triggers: bool,
    /// Foreign keys are not checked, as where their triggers are disabled.
    pub skip_references: bool,
    /// Nothing may be left to the server.
    pub native_only: bool,
    /// Build into this directory and register nothing.
    pub stage_only: Option<PathBuf>,
    /// ANALYZE after COMMIT.
    pub analyze: bool,
    /// How long to wait for a lock.
    pub lock_timeout: Duration,
    /// Progress.
    pub progress: ProgressMode,
    /// The report's form.
    pub report: ReportMode,
}
