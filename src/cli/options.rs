//! From flags as typed to options as meant.

use super::flags::{BuildFlags, CommonFlags, InputFlags, RegisterFlags, TargetFlags};
use crate::cluster::conninfo::ConnectOptions;
use crate::cluster::target::Target;
use crate::error::{Error, Result};
use crate::load::options::{
    BuildOptions, ForceColumns, InputFormat, InputOptions, ProgressMode, ReportMode, WalMode,
};
use crate::load::restore::options::RestoreOptions;
use crate::load::source_spec::{SourceSpec, column_list};
use crate::load::two_step::RegisterOptions;
use crate::record::format::{CopyOptions, Header, Kind};
use std::path::Path;
use std::time::Duration;

/// The least memory a build can work in.
const MIN_MEMORY_BYTES: u64 = 64 << 20;

/// TARGET's flags as the cluster reads them.
pub fn target(flags: &TargetFlags) -> Target {
    Target {
        connect: ConnectOptions {
            dbname: flags.dbname.clone(),
            host: flags.host.clone(),
            port: flags.port.map(|port| port.to_string()),
            user: flags.username.clone(),
        },
        pgdata: flags.pgdata.clone(),
        create_cluster: flags.create_cluster,
        database: flags.database.clone(),
        owner: flags.owner.clone(),
        pg_bin: flags.pg_bin.clone(),
        initdb_options: Vec::new(),
        settings: Vec::new(),
    }
}

/// The most threads; each has buffers of its own.
const MAX_JOBS: usize = 256;

/// Resolves the flags of `build`.
pub fn build_options(flags: &BuildFlags) -> Result<BuildOptions> {
    if flags.append {
        return Err(Error::unsupported("--append is not supported yet")
            .with_hint("A table that has rows can be replaced with --truncate."));
    }
    let sources = flags
        .sources
        .iter()
        .map(|s| SourceSpec::parse(s))
        .collect::<Result<Vec<_>>>()?;
    if sources.iter().filter(|s| s.is_stdin()).count() > 1 {
        return Err(Error::usage(
            "standard input can be the source of one table only",
        ));
    }
    Ok(BuildOptions {
        sources,
        input: input_options(&flags.input)?,
        schema: flags.schema.clone(),
        temp_dir: flags.temp_dir.clone(),
        native_only: flags.native_only,
        stage_only: flags.stage_only.clone(),
        progress: progress(&flags.progress)?,
        ..common_options(&flags.common)?
    })
}

/// The dump that the command names, if it does: one source, which is no `TABLE=PATH`.
pub fn dump(flags: &BuildFlags) -> Option<&str> {
    let [source] = flags.sources.as_slice() else {
        return None;
    };
    let is_file = Path::new(source).exists();
    (is_file || !source.contains('=')).then_some(source.as_str())
}

/// Resolves the flags of `build DUMP`.
pub fn restore_options(flags: &BuildFlags, dump: &str) -> Result<(RestoreOptions, BuildOptions)> {
    let without_sources = BuildOptions {
        temp_dir: flags.temp_dir.clone(),
        native_only: flags.native_only,
        progress: progress(&flags.progress)?,
        ..common_options(&flags.common)?
    };
    if flags.stage_only.is_some() || flags.schema.is_some() || flags.common.truncate {
        return Err(Error::usage(
            "--stage-only, --schema and --truncate are for data files, not for dumps",
        ));
    }
    Ok((flags.dump.options(dump.into()), without_sources))
}

/// Resolves the flags of `register`.
pub fn register_options(flags: &RegisterFlags) -> Result<RegisterOptions> {
    if flags.target.create_cluster {
        return Err(Error::usage(
            "a stage belongs to the cluster that it was built for, which --create-cluster is not",
        ));
    }
    Ok(RegisterOptions {
        stage: flags.stage.clone(),
        keep: flags.keep,
        common: common_options(&flags.common)?,
    })
}

/// Resolves what the commands have in common.
fn common_options(flags: &CommonFlags) -> Result<BuildOptions> {
    let memory_bytes = match &flags.memory {
        Some(text) => parse_size(text)?,
        None => (total_memory_bytes()? / 4).max(MIN_MEMORY_BYTES),
    };
    if memory_bytes < MIN_MEMORY_BYTES {
        return Err(Error::usage("--memory must be at least 64MB"));
    }
    let jobs = match flags.jobs {
        Some(n) if (1..=MAX_JOBS).contains(&n) => n,
        Some(_) => return Err(Error::usage(format!("--jobs must be from 1 to {MAX_JOBS}"))),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    Ok(BuildOptions {
        jobs,
        memory_bytes: memory_bytes as usize,
        truncate: flags.truncate,
        wal: match flags.wal.as_str() {
            "auto" => WalMode::Auto,
            "bypass" => WalMode::Bypass,
            "log" => return Err(Error::unsupported("--wal log is not supported yet")),
            other => return Err(unknown("--wal", other, "auto, bypass")),
        },
        trust_constraints: flags.trust_constraints,
        skip_triggers: flags.skip_triggers,
        skip_references: false,
        analyze: !flags.no_analyze,
        lock_timeout: Duration::from_secs(flags.lock_timeout),
        report: match flags.report.as_str() {
            "text" => ReportMode::Text,
            "json" => ReportMode::Json,
            other => return Err(unknown("--report", other, "text, json")),
        },
        ..BuildOptions::default()
    })
}

fn progress(mode: &str) -> Result<ProgressMode> {
    Ok(match mode {
        "auto" => ProgressMode::Auto,
        "plain" => ProgressMode::Plain,
        "json" => ProgressMode::Json,
        "none" => ProgressMode::None,
        other => return Err(unknown("--progress", other, "auto, plain, json, none")),
    })
}

fn unknown(flag: &str, value: &str, allowed: &str) -> Error {
    Error::usage(format!(
        "{flag} does not take \"{value}\"; it takes one of: {allowed}"
    ))
}

/// COPY's options as COPY reads them.
fn input_options(flags: &InputFlags) -> Result<InputOptions> {
    let force = |list: &Option<String>| -> Result<Option<ForceColumns>> {
        list.as_deref()
            .map(|list| match list.trim() {
                "*" => Ok(ForceColumns::All),
                names => column_list(names).map(ForceColumns::Named),
            })
            .transpose()
    };
    Ok(InputOptions {
        format: match flags
            .format
            .as_deref()
            .map(str::to_ascii_lowercase)
            .as_deref()
        {
            None => None,
            Some("csv") => Some(InputFormat::Csv),
            Some("text") => Some(InputFormat::Text),
            Some("binary") => Some(InputFormat::Binary),
            Some("fixed") => {
                return Err(Error::unsupported("--format fixed is not supported yet"));
            }
            Some(other) => {
                return Err(Error::new(
                    crate::error::Class::Usage,
                    "22023",
                    format!("COPY format \"{other}\" not recognized"),
                ));
            }
        },
        encoding: flags.encoding.clone(),
        force_null: force(&flags.force_null)?,
        force_not_null: force(&flags.force_not_null)?,
        copy: CopyOptions {
            kind: Kind::default(),
            delimiter: flags
                .delimiter
                .clone()
                .or_else(|| flags.trailing_delimiter.then(|| "|".to_owned())),
            null: flags.null.clone(),
            default: flags.default.clone(),
            quote: flags.quote.clone(),
            escape: flags.escape.clone(),
            header: match flags
                .header
                .as_deref()
                .map(str::to_ascii_lowercase)
                .as_deref()
            {
                None | Some("false" | "off" | "0" | "no") => Header::None,
                Some("true" | "on" | "1" | "yes") => Header::Skip,
                Some("match") => Header::Match,
                Some(_) => {
                    return Err(Error::usage("header requires a Boolean value or \"match\""));
                }
            },
            force_null: flags.force_null.is_some(),
            force_not_null: flags.force_not_null.is_some(),
            trailing_delimiter: flags.trailing_delimiter,
        },
    })
}

/// A size as PostgreSQL's settings write it: a number with B, kB, MB, GB or TB.
fn parse_size(text: &str) -> Result<u64> {
    let bad = || {
        Error::usage(format!("\"{text}\" is not a size"))
            .with_hint("Sizes are written as 512MB or 4GB.")
    };
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| bad())?;
    let shift = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(bad()),
    };
    number.checked_mul(1 << shift).ok_or_else(bad)
}

/// The memory of this machine, or of the control group that we live in when that is less.
fn total_memory_bytes() -> Result<u64> {
    let path = "/proc/meminfo";
    let meminfo = std::fs::read_to_string(path).map_err(|e| Error::io("read", path, &e))?;
    let total = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map_or(1 << 30, |kib| kib << 10);
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok());
    Ok(limit.map_or(total, |limit| limit.min(total)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_in_postgresql_conf() {
        assert_eq!(parse_size("512MB").unwrap(), 512 << 20);
        assert_eq!(parse_size("4 GB").unwrap(), 4 << 30);
        assert_eq!(parse_size("100").unwrap(), 100);
        assert!(parse_size("x").is_err());
        assert!(parse_size("99999999999TB").is_err());
    }
}
