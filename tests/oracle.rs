//! Law 1: the files that pgpagewrite writes are the files that the server would have written.
//!
//! For each version and each table the server loads the rows first: TRUNCATE, COPY FREEZE and REINDEX
//! in one transaction. Its pages are kept, the table is emptied, pgpagewrite loads
//! the same rows, and every file must be the same under the mask. Then the server's checkers look at
//! it, and the table must live on: updates, deletes, VACUUM, REINDEX and a crash.

use generate::{TpchTable, Workload};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use support::{File, Ran, Server};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgpagewrite");
const DB: &str = "postgres";

/// A table and its input, for the server and for us.
struct Load {
    table: &'static str,
    /// What the server's COPY reads.
    theirs: PathBuf,
    /// What pgpagewrite reads.
    ours: PathBuf,
}

/// How a set of loads is read on both sides.
struct Format {
    copy_options: &'static str,
    our_options: &'static [&'static str],
}

const CSV: Format = Format {
    copy_options: "FORMAT csv",
    our_options: &["--format", "csv"],
};
const TBL: Format = Format {
    copy_options: "DELIMITER '|'",
    our_options: &["--trailing-delimiter"],
};

const BINARY: Format = Format {
    copy_options: "FORMAT binary",
    our_options: &["--format", "binary"],
};

/// Everything a table says, in one value.
fn contents(server: &Server, table: &str) -> String {
    server.value(
        DB,
        &format!("SELECT format('%s rows, %s', count(*), sum(hashtextextended(t::text, 0))) FROM {table} t"),
    )
}

/// The server's own load. Small relations would be logged at COMMIT, which has map pages written
/// that were made in memory only; with the threshold at 0 all are fsynced, as large ones are.
fn load_by_server(server: &Server, load: &Load, format: &Format) {
    server.execute(
        DB,
        &format!(
            "SET max_parallel_maintenance_workers = 0; SET wal_skip_threshold = 0;
             BEGIN; TRUNCATE {0};
             COPY {0} FROM '{1}' WITH ({2}, FREEZE); REINDEX TABLE {0}; COMMIT",
            load.table,
            load.theirs.display(),
            format.copy_options
        ),
    );
}

fn build(server: &Server, loads: &[Load], options: &[&str]) -> Ran {
    let mut command = Command::new(PROGRAM);
    command
        .args(["build", "--no-analyze", "--native-only", "-d"])
        .arg(server.conninfo(DB))
        .args(options);
    for load in loads {
        command.arg(format!("{}={}", load.table, load.ours.display()));
    }
    support::run(&mut command)
}

/// The whole story of this file for some tables.
fn prove(schema: &str, format: &Format, put_input: impl Fn(&Server) -> Vec<Load>) {
    support::each_version(&[("wal_level", "minimal")], |server| {
        server.execute(DB, schema);
        let loads = put_input(server);
        let theirs: Vec<(Vec<File>, String)> = loads
            .iter()
            .map(|load| {
                load_by_server(server, load, format);
                let kept = (
                    support::files(server, DB, load.table),
                    contents(server, load.table),
                );
                server.execute(DB, &format!("TRUNCATE {}", load.table));
                kept
            })
            .collect();

        build(server, &loads, format.our_options).expect_success();

        for (load, (their_files, their_contents)) in loads.iter().zip(&theirs) {
            assert_eq!(&contents(server, load.table), their_contents);
            for (ours, theirs) in support::files(server, DB, load.table)
                .iter()
                .zip(their_files)
            {
                support::assert_same_pages(&ours.what, &ours.kind, &ours.pages, &theirs.pages);
            }
        }
        support::assert_healthy(server, DB);
        let tables: Vec<&str> = loads.iter().map(|load| load.table).collect();
        live_on(server, &tables);
        support::assert_checksums(server, DB);
    });
}

/// Whatever may happen to tables later happens to these.
fn live_on(server: &mut Server, tables: &[&str]) {
    let mut left = Vec::new();
    for table in tables {
        let before = rows(server, table);
        let column = server.value(
            DB,
            &format!("SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum = 1"),
        );
        // Rows become their own new versions, then every fifth of them goes.
        server.execute(
            DB,
            &format!("UPDATE {table} SET {column} = {column} WHERE ctid < '(40,1)'"),
        );
        let gone = server
            .connect(DB)
            .execute(
                &format!(
                    "DELETE FROM {table} WHERE hashtextextended(({table}.*)::text, 1) % 5 = 0"
                ),
                &[],
            )
            .expect("a DELETE");
        left.push(before - gone);
    }
    for table in tables {
        server.execute(DB, &format!("VACUUM (FREEZE, ANALYZE) {table}"));
    }
    support::assert_healthy(server, DB);
    server.stop_immediate();
    server.restart();
    for (table, left) in tables.iter().zip(left) {
        assert_eq!(rows(server, table), left, "{table} after the crash");
        server.execute(DB, &format!("REINDEX TABLE {table}"));
    }
    support::assert_healthy(server, DB);
}

fn rows(server: &Server, table: &str) -> u64 {
    let count = server.value(DB, &format!("SELECT count(*) FROM {table}"));
    count.parse().expect("a number")
}

fn put(server: &Server, name: &str, bytes: &[u8]) -> PathBuf {
    let path = server.dir().join(name);
    std::fs::write(&path, bytes).expect("the input");
    path
}

fn put_csv(server: &Server, table: &'static str, workload: Workload) -> Vec<Load> {
    let path = put(server, table, &workload.bytes());
    vec![Load {
        table,
        theirs: path.clone(),
        ours: path,
    }]
}

#[test]
fn customer_of_dbt_2_is_written_as_the_server_writes_it() {
    prove(
        include_str!("../fixtures/schemas/customer.sql"),
        &CSV,
        |server| put_csv(server, "customer", Workload::Customer { rows: 20_000 }),
    );
}

#[test]
fn the_eight_tables_of_tpc_h_are_written_as_the_server_writes_them() {
    prove(
        include_str!("../fixtures/schemas/tpch.sql"),
        &TBL,
        |server| {
            TpchTable::ALL
                .into_iter()
                .map(|table| {
                    let bytes = Workload::Tpch { scale: 0.01, table }.bytes();
                    let text = String::from_utf8(bytes).expect("ASCII");
                    Load {
                        table: table.name(),
                        theirs: put(
                            server,
                            &format!("{}.copy", table.name()),
                            text.replace("|\n", "\n").as_bytes(),
                        ),
                        ours: put(server, &format!("{}.tbl", table.name()), text.as_bytes()),
                    }
                })
                .collect()
        },
    );
}

#[test]
fn a_hundred_bigints_are_written_as_the_server_writes_them() {
    prove(
        include_str!("../fixtures/schemas/bigint100.sql"),
        &CSV,
        |server| put_csv(server, "bigint100", Workload::Bigint100 { rows: 5_000 }),
    );
}

#[test]
fn an_index_of_three_levels_on_text_is_written_as_the_server_writes_it() {
    prove(
        include_str!("../fixtures/schemas/shadoks.sql"),
        &CSV,
        |server| put_csv(server, "shadoks", Workload::Shadoks { rows: 150_000 }),
    );
}

#[test]
fn values_out_of_line_are_written_as_the_server_writes_them() {
    prove(
        include_str!("../fixtures/schemas/wide.sql"),
        &CSV,
        |server| put_csv(server, "wide", Workload::Wide { rows: 120 }),
    );
}

#[test]
fn every_native_type_and_index_is_written_as_the_server_writes_it() {
    prove(
        include_str!("../fixtures/schemas/alltypes.sql"),
        &CSV,
        |server| {
            let workload = Workload::AllTypes {
                rows: 3_000,
                seed: 1,
            };
            put_csv(server, "alltypes", workload)
        },
    );
}

/// Rows of `madetypes`: few different values in some columns, nulls, arrays of all shapes.
fn made_rows(rows: u32) -> String {
    let mut state = 1_u32;
    let mut pick = move |from: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % from
    };
    let moods = ["sad", "ok", "happy", "so so", "first", "fine", ""];
    let mut csv = String::new();
    for id in 0..rows {
        let mood = moods[pick(7) as usize];
        let plain = ["a", "b", "c", "d", ""][pick(5) as usize];
        let feeling = moods[pick(7) as usize];
        let (x, y, z) = (pick(50), pick(3), pick(1000));
        let ints = match pick(8) {
            0 => String::new(),
            1 => "{}".to_owned(),
            2 => format!("\"{{{{{x},NULL}},{{{y},{z}}}}}\""),
            3 => format!("\"[{y}:{}]={{{x},{y}}}\"", y + 1),
            4 => format!("{{{x}}}"),
            _ => format!("\"{{{x},{y},NULL,-{z}}}\""),
        };
        let texts = match pick(5) {
            0 => String::new(),
            1 => format!("\"{{\"\"a b {x}\"\",\\\\,\"\"NULL\"\"}}\""),
            2 => format!("\"{{word{x},{}}}\"", "x".repeat(1 + z as usize)),
            _ => format!("\"{{é{x},NULL,{y}}}\""),
        };
        let tags = format!("\"{{tag {y},{}}}\"", "y".repeat(pick(20) as usize) + "z");
        let mood_array = format!("\"{{{},NULL,\"\"so so\"\"}}\"", moods[pick(6) as usize]);
        let codes = format!("\"{{c{x},c{y}}}\"");
        let citext = format!("Ab{x}É");
        let (inet, cidr) = match pick(3) {
            0 => (format!("10.{y}.{x}.1/{}", 8 + y), format!("10.{x}")),
            1 => (format!("2001:db8::{z}"), format!("2001:db8:{x}::/48")),
            _ => (format!("192.168.{y}.{x}"), String::new()),
        };
        let bits = format!("{z:011b}");
        let varbits = format!("{x:b}");
        // Some of these are compressed, some go out of line.
        let numbers: Vec<String> = (0..if pick(40) == 0 { z * 6 } else { y })
            .map(|i| format!("{}.{:02}", i.wrapping_mul(id) % 1000, i % 100))
            .collect();
        writeln!(
            csv,
            "{id},{mood},{plain},c{x},{feeling},{ints},{texts},{tags},{mood_array},{codes},\
             {citext},{inet},{cidr},{bits},{varbits},\"{{{}}}\"",
            numbers.join(",")
        )
        .expect("a String takes it");
    }
    csv
}

#[test]
fn enums_domains_arrays_and_their_indexes_are_written_as_the_server_writes_them() {
    prove(
        include_str!("../fixtures/schemas/madetypes.sql"),
        &CSV,
        |server| {
            let path = put(server, "madetypes", made_rows(4_000).as_bytes());
            vec![Load {
                table: "madetypes",
                theirs: path.clone(),
                ours: path,
            }]
        },
    );
}

#[test]
fn binary_input_is_written_as_the_server_writes_it() {
    prove(
        include_str!("../fixtures/schemas/alltypes.sql"),
        &BINARY,
        |server| {
            let (rows, seed) = (3_000, 2);
            let csv = put_csv(server, "alltypes", Workload::AllTypes { rows, seed });
            load_by_server(server, &csv[0], &CSV);
            let path = server.dir().join("alltypes.bin");
            server.execute(
                DB,
                &format!("COPY alltypes TO '{}' (FORMAT binary)", path.display()),
            );
            vec![Load {
                table: "alltypes",
                theirs: path.clone(),
                ours: path,
            }]
        },
    );
}

#[test]
fn any_number_of_threads_and_any_memory_give_the_same_files() {
    let mut server = Server::start(15, &[("wal_level", "minimal")]);
    let server = &mut server;
    server.execute(DB, include_str!("../fixtures/schemas/alltypes.sql"));
    let workload = Workload::AllTypes {
        rows: 6_000,
        seed: 7,
    };
    let loads = put_csv(server, "alltypes", workload);
    let mut first: Option<Vec<File>> = None;
    for memory in ["64MB", "1GB"] {
        for jobs in ["1", "2", "7"] {
            let options = ["--format", "csv", "--jobs", jobs, "--memory", memory];
            build(server, &loads, &options).expect_success();
            let files = support::files(server, DB, "alltypes");
            server.execute(DB, "TRUNCATE alltypes");
            let Some(first) = &first else {
                first = Some(files);
                continue;
            };
            for (ours, before) in files.iter().zip(first) {
                let what = format!("{} with {jobs} threads and {memory}", ours.what);
                support::assert_same_pages(&what, &ours.kind, &ours.pages, &before.pages);
            }
        }
    }
}

#[test]
fn a_crash_right_after_the_command_loses_nothing_at_any_wal_level() {
    support::each_version(&[], |server| {
        for wal_level in ["minimal", "replica", "logical"] {
            // Above minimal max_wal_senders may stay at 0 as well.
            server.restart_with(&[
                ("wal_level", wal_level),
                ("max_wal_senders", "0"),
                ("fsync", "on"),
            ]);
            server.execute(DB, "DROP TABLE IF EXISTS customer");
            server.execute(DB, include_str!("../fixtures/schemas/customer.sql"));
            let loads = put_csv(server, "customer", Workload::Customer { rows: 3_000 });
            build(server, &loads, CSV.our_options).expect_success();
            server.stop_immediate();
            server.restart();
            let ours = contents(server, "customer");
            support::assert_healthy(server, DB);
            support::assert_checksums(server, DB);
            load_by_server(server, &loads[0], &CSV);
            assert_eq!(ours, contents(server, "customer"), "{wal_level}");
        }
    });
}

#[test]
fn a_crash_right_after_a_load_of_many_small_tables_loses_none_of_them() {
    const TABLES: usize = 60;
    support::each_version(&[], |server| {
        for wal_level in ["minimal", "replica"] {
            server.restart_with(&[
                ("wal_level", wal_level),
                ("max_wal_senders", "0"),
                ("fsync", "on"),
            ]);
            let mut command = Command::new(PROGRAM);
            command
                .args(["build", "--no-analyze", "-d"])
                .arg(server.conninfo(DB));
            let mut schema = String::new();
            for i in 0..TABLES {
                write!(
                    schema,
                    "DROP TABLE IF EXISTS small_{i};
                     CREATE TABLE small_{i} (id int PRIMARY KEY, v text);
                     CREATE INDEX ON small_{i} (v);"
                )
                .expect("a String takes it");
                // Table 0 stays empty.
                let mut rows = String::new();
                for id in 0..i {
                    writeln!(rows, "{id}\tvalue {id}").expect("a String takes it");
                }
                let path = put(server, &format!("small_{i}"), rows.as_bytes());
                command.arg(format!("small_{i}={}", path.display()));
            }
            server.execute(DB, &schema);
            support::run(&mut command).expect_success();
            server.stop_immediate();
            server.restart();
            for i in 0..TABLES {
                let name = format!("small_{i}");
                let expected = i as u64;
                assert_eq!(rows(server, &name), expected, "{name}, {wal_level}");
            }
            support::assert_healthy(server, DB);
            support::assert_checksums(server, DB);
        }
    });
}
