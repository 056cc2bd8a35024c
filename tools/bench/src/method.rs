//! The ways to load.

use crate::workload::{self, DB, Prepared};
use clap::ValueEnum;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use support::Server;

/// A way to load.
#[derive(Clone, Copy, ValueEnum, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// COPY with indexes in place.
    Copy,
    /// COPY FREEZE, then CREATE INDEX, in one transaction that skips WAL.
    Freeze,
    /// pg_bulkload.
    Bulkload,
    /// pgpagewrite.
    Pgpagewrite,
    /// The bare reading and writing of the same bytes.
    Floor,
}

/// A measured load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) time: Duration,
    /// Bytes of all files of the tables.
    pub(crate) bytes: u64,
}

impl Method {
    pub(crate) const ALL: [Method; 5] = [
        Method::Copy,
        Method::Freeze,
        Method::Bulkload,
        Method::Pgpagewrite,
        Method::Floor,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Method::Copy => "copy",
            Method::Freeze => "freeze",
            Method::Bulkload => "bulkload",
            Method::Pgpagewrite => "pgpagewrite",
            Method::Floor => "floor",
        }
    }

    pub(crate) fn by_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }

    /// What is measured.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Method::Copy => "COPY into the empty table, indexes in place, WAL written",
            Method::Freeze => {
                "TRUNCATE, COPY FREEZE, constraints and CREATE INDEX in one transaction that \
                 skips WAL"
            }
            Method::Bulkload => "pg_bulkload, WRITER=PARALLEL, indexes in place",
            Method::Pgpagewrite => "pgpagewrite build --no-analyze, indexes in place",
            Method::Floor => {
                "no loader: the input read, as many bytes of pages written, made durable"
            }
        }
    }

    /// Whether this machine and server have it.
    pub(crate) fn can_run(self, server: &Server) -> bool {
        if self != Method::Bulkload {
            return true;
        }
        let sql = "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_bulkload'";
        server.value(DB, sql) != "0"
            && Command::new("pg_bulkload")
                .arg("--version")
                .output()
                .is_ok()
    }

    /// Loads into new tables and gives the time; all rows are there then.
    ///
    /// The floor writes as many bytes as the tables have that the method before it has loaded.
    pub(crate) fn load(
        self,
        prepared: &Prepared,
        server: &Server,
        program: &Path,
        options: &[String],
    ) -> Measured {
        let is_copy = !matches!(self, Method::Pgpagewrite | Method::Floor);
        prepared.warm(is_copy).expect("the input can be read");
        if self == Method::Floor {
            let bytes = prepared.loaded_bytes(server);
            let dir = server.dir().join("floor");
            workload::settle();
            let time = timed(&mut floor(prepared, &dir, bytes));
            fs::remove_dir_all(&dir).expect("the floor's files");
            return Measured { time, bytes };
        }
        prepared.reset(server);
        let mut command = match self {
            Method::Copy => psql(server, &copy(prepared, "")),
            Method::Freeze => {
                let (prepare, finish) = without_indexes(prepared, server);
                server.execute(DB, &prepare);
                let load = copy(prepared, ", FREEZE");
                psql(server, &format!("{load}{finish}"))
            }
            Method::Bulkload => bulkload(prepared, server),
            Method::Pgpagewrite | Method::Floor => build(prepared, server, program, options),
        };
        let time = timed(&mut command);
        Measured {
            time,
            bytes: prepared.loaded_bytes(server),
        }
    }
}

/// The command that builds all tables.
pub(crate) fn build(
    prepared: &Prepared,
    server: &Server,
    program: &Path,
    options: &[String],
) -> Command {
    let mut command = Command::new(program);
    command
        .args(["build", "--no-analyze", "-d"])
        .arg(server.conninfo(DB))
        .args(prepared.build_options())
        .args(options);
    for input in &prepared.inputs {
        command.arg(format!("{}={}", input.table, input.path.display()));
    }
    command
}

fn timed(command: &mut Command) -> Duration {
    let start = Instant::now();
    let ran = support::run(command);
    let time = start.elapsed();
    ran.expect_success();
    time
}

/// psql in one transaction.
fn psql(server: &Server, sql: &str) -> Command {
    let mut command = Command::new("psql");
    server.connection_environment(&mut command, DB);
    command.args(["-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-c", sql]);
    command
}

fn copy(prepared: &Prepared, more_options: &str) -> String {
    let mut sql = String::new();
    for input in &prepared.inputs {
        let (table, path) = (input.table, input.copy_path.display());
        let options = prepared.copy_options();
        if !more_options.is_empty() {
            let _ = write!(sql, "TRUNCATE {table}; ");
        }
        let _ = write!(
            sql,
            "COPY {table} FROM '{path}' WITH ({options}{more_options}); "
        );
    }
    sql
}

/// SQL that drops constraints and indexes of the tables, and SQL that makes them again.
fn without_indexes(prepared: &Prepared, server: &Server) -> (String, String) {
    let (mut drop, mut make) = (String::new(), String::new());
    let mut client = server.connect(DB);
    for input in &prepared.inputs {
        let rows = client
            .query(
                "SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid),
                        quote_ident(k.conname), pg_get_constraintdef(k.oid)
                   FROM pg_index i LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid
                  WHERE i.indrelid = $1::text::regclass ORDER BY i.indexrelid",
                &[&input.table],
            )
            .expect("the indexes");
        for row in rows {
            let (index, definition): (String, String) = (row.get(0), row.get(1));
            let constraint: Option<String> = row.get(2);
            let table = input.table;
            if let Some(name) = constraint {
                let rule: String = row.get(3);
                let _ = write!(drop, "ALTER TABLE {table} DROP CONSTRAINT {name}; ");
                let _ = write!(make, "ALTER TABLE {table} ADD CONSTRAINT {name} {rule}; ");
            } else {
                let _ = write!(drop, "DROP INDEX {index}; ");
                let _ = write!(make, "{definition}; ");
            }
        }
    }
    (drop, make)
}

/// pg_bulkload for each table, one after the other.
fn bulkload(prepared: &Prepared, server: &Server) -> Command {
    server.execute(DB, "CREATE EXTENSION IF NOT EXISTS pg_bulkload");
    let mut script = String::from("set -e\n");
    for input in &prepared.inputs {
        let _ = writeln!(
            script,
            "pg_bulkload -i '{}' -O {} -o TYPE=CSV -o WRITER=PARALLEL {}",
            input.copy_path.display(),
            input.table,
            if prepared.copy_options().contains('|') {
                "-o 'DELIMITER=|'"
            } else {
                ""
            }
        );
    }
    let mut command = Command::new("bash");
    server.connection_environment(&mut command, DB);
    command.args(["-c", &script]);
    command
}

fn floor(prepared: &Prepared, dir: &Path, bytes: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
    command.arg("floor").arg("--bytes").arg(bytes.to_string());
    command.arg("--dir").arg(dir);
    for input in &prepared.inputs {
        command.arg(&input.path);
    }
    command
}
