//! Runs a case by the server's COPY and by us, and compares.

use postgres::{Client, NoTls};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Command;
use support::{Ran, Server, VERSIONS};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgpagewrite");

/// The database of all tests.
pub const DB: &str = "postgres";

/// Loads CSV into tables, with more arguments before.
pub fn load(server: &Server, arguments: &[&str], inputs: &[(&str, &str)]) -> Ran {
    support::run(command(server, inputs).args(arguments))
}

/// The program with these tables' inputs.
fn command(server: &Server, inputs: &[(&str, &str)]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(["build", "--format", "csv", "-d"])
        .arg(server.conninfo(DB));
    for (number, (table, csv)) in inputs.iter().enumerate() {
        let path = server.dir().join(format!("{number}.csv"));
        std::fs::write(&path, csv).expect("the input");
        command.arg(format!("{table}={}", path.display()));
    }
    command
}

/// Tables and what is loaded into them.
pub struct Case {
    /// What it is about.
    pub name: &'static str,
    /// Makes the tables, in the schema `s`.
    pub schema: &'static str,
    /// Table, perhaps with columns, and CSV, in the order of loading.
    pub inputs: &'static [(&'static str, &'static str)],
    /// Settings of both sessions.
    pub options: &'static str,
    /// COPY refuses it. Stands here so that no case passes for another reason than it was made for.
    pub refused: bool,
    /// The line of the bad row, where COPY does not tell it.
    pub line: Option<u64>,
    /// The first version that has what the case is about.
    pub since: u32,
}

impl Case {
    /// What COPY loads.
    pub const LOADED: Case = Case {
        name: "",
        schema: "",
        inputs: &[],
        options: "",
        refused: false,
        line: None,
        since: 14,
    };
    /// What COPY refuses.
    pub const REFUSED: Case = Case {
        refused: true,
        ..Case::LOADED
    };
}

/// Who we expect to load the tables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// We, their indexes too.
    NativeOnly,
    /// We, but for an index.
    Native,
    /// The server's COPY.
    ByCopy,
}

/// How a load ended.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// The rows of all tables with their places.
    Rows(String),
    Refused {
        sqlstate: String,
        message: String,
        detail: Option<String>,
        line: Option<u64>,
        column: Option<String>,
    },
}

/// The column of a field, in COPY's CONTEXT and in our words: `, line 7, column qty: "x"`.
fn column(place: &str) -> Option<String> {
    let (_, rest) = place.split_once(", column ")?;
    Some(rest.split(':').next()?.to_owned())
}

/// Asserts that COPY and we agree on each case on each version.
pub fn agree(cases: &[Case], load: Load) {
    let since = cases.iter().map(|case| case.since).min().expect("a case");
    for version in VERSIONS.into_iter().filter(|version| *version >= since) {
        let server = &Server::start(version, &[("wal_level", "minimal")]);
        for case in cases.iter().filter(|case| case.since <= version) {
            let by_copy = copy(server, case);
            let mut ours = build(server, case, load);
            // We also tell the column of a null that a table refuses.
            if let (Outcome::Refused { column: None, .. }, Outcome::Refused { column, .. }) =
                (&by_copy, &mut ours)
            {
                *column = None;
            }
            assert_eq!(ours, by_copy, "{}", case.name);
            assert_eq!(
                matches!(ours, Outcome::Refused { .. }),
                case.refused,
                "{}: {ours:?}",
                case.name
            );
        }
        support::assert_healthy(server, DB);
    }
}

fn options(case: &Case) -> String {
    format!(
        "-c search_path=s -c client_min_messages=warning {}",
        case.options
    )
}

fn connect(server: &Server, case: &Case) -> Client {
    let conninfo = format!("{} options='{}'", server.conninfo(DB), options(case));
    Client::connect(&conninfo, NoTls).expect("a connection")
}

/// The tables anew.
fn prepare(server: &Server, case: &Case) -> Client {
    server.execute(DB, "DROP SCHEMA IF EXISTS s CASCADE; CREATE SCHEMA s");
    let mut client = connect(server, case);
    client
        .batch_execute(case.schema)
        .unwrap_or_else(|e| panic!("{}: {e:?}", case.name));
    client
}

fn rows(client: &mut Client, case: &Case) -> String {
    let mut rows = String::new();
    for (target, _) in case.inputs {
        let table = target.split('(').next().expect("a table");
        let partitioned = "SELECT relkind = 'p' FROM pg_class WHERE oid = $1::text::regclass";
        let is_partitioned: bool = client
            .query_one(partitioned, &[&table])
            .expect("its kind")
            .get(0);
        let only = if is_partitioned { "" } else { "ONLY" };
        let query = format!(
            "SELECT tableoid::regclass::text || ctid::text || r::text FROM {only} {table} AS r
              ORDER BY tableoid::regclass::text, ctid"
        );
        for row in client.query(&query, &[]).expect("the rows") {
            let _ = writeln!(rows, "{table} {}", row.get::<_, &str>(0));
        }
    }
    rows
}

/// What the server says, in one transaction.
fn copy(server: &Server, case: &Case) -> Outcome {
    let mut client = prepare(server, case);
    client.batch_execute("BEGIN").expect("BEGIN");
    let error = case.inputs.iter().find_map(|(table, csv)| {
        let mut writer = client
            .copy_in(&format!("COPY {table} FROM STDIN (FORMAT csv)"))
            .expect("a COPY");
        writer.write_all(csv.as_bytes()).expect("its input");
        writer.finish().err()
    });
    let Some(error) = error.or_else(|| client.batch_execute("COMMIT").err()) else {
        return Outcome::Rows(rows(&mut client, case));
    };
    let error = error.as_db_error().expect("an error of the server");
    let line = error.where_().and_then(|context| {
        let (_, rest) = context.split_once(", line ")?;
        rest.split([':', ',']).next()?.parse().ok()
    });
    Outcome::Refused {
        sqlstate: error.code().code().to_owned(),
        message: error.message().to_owned(),
        detail: error.detail().map(str::to_owned),
        line: case.line.or(line),
        column: error.where_().and_then(column),
    }
}

/// What we say. After a refusal nothing may have changed.
fn build(server: &Server, case: &Case, load: Load) -> Outcome {
    let mut client = prepare(server, case);
    let state = "SELECT string_agg(c::text, ' ' ORDER BY oid) FROM pg_class c
                  WHERE relnamespace = 's'::regnamespace";
    let before: String = client.query_one(state, &[]).expect("pg_class").get(0);
    let mut command = command(server, case.inputs);
    command
        .args(["--report", "json"])
        .env("PGOPTIONS", options(case));
    if load == Load::NativeOnly {
        command.arg("--native-only");
    }
    let ran = support::run(&mut command);
    if ran.succeeded() {
        let report: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
        let by = if load == Load::ByCopy {
            "server"
        } else {
            "native"
        };
        for table in report["tables"].as_array().expect("tables") {
            assert_eq!(table["loaded"]["by"], by, "{}: {table}", case.name);
        }
        return Outcome::Rows(rows(&mut client, case));
    }
    let after: String = client.query_one(state, &[]).expect("pg_class").get(0);
    assert_eq!(after, before, "{}: something was left", case.name);
    assert_eq!(rows(&mut client, case), "", "{}", case.name);
    let stderr = &ran.stderr;
    let first = stderr.lines().next().expect("a line on stderr");
    let (sqlstate, message) = first
        .strip_prefix("ERROR ")
        .and_then(|rest| rest.split_once(": "))
        .unwrap_or_else(|| panic!("{}: {stderr}", case.name));
    let after = |prefix: &str| stderr.lines().find_map(|line| line.strip_prefix(prefix));
    Outcome::Refused {
        sqlstate: sqlstate.to_owned(),
        message: message.to_owned(),
        detail: after("  DETAIL: ").map(str::to_owned),
        line: after("  at ").and_then(|place| {
            let (_, rest) = place.split_once(", line ")?;
            rest.split([':', ',']).next()?.parse().ok()
        }),
        column: after("  at ").and_then(column),
    }
}
