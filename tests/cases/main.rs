//! The cases of `fixtures/cases`: a table, an input, and what PostgreSQL says of it.
//!
//! A folder a case. `schema.sql` runs first in an empty database; `load.sql` is the COPY whose options
//! are handed to pgpagewrite too; `expect.txt` is `ok` or `error: SQLSTATE`, `check.sql` and
//! `check.out` are what the table gives back, as PostgreSQL 15 says; `database.txt` has options
//! of CREATE DATABASE. Large inputs are made by [`inputs`].
//!
//! Each case is loaded by the server's own COPY and by pgpagewrite, on each version, and the two
//! must agree: both load the same, or both refuse with the same SQLSTATE and leave all tables as they
//! were. What we refuse and the server accepts stands in [`REFUSED`].

mod inputs;
mod load;

use load::Load;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Ran, Server};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgpagewrite");

/// What a session has set in all cases.
const SETTINGS: &str = "-c timezone=UTC -c datestyle=ISO,MDY -c intervalstyle=postgres \
    -c lc_monetary=C -c extra_float_digits=1 -c bytea_output=hex -c client_min_messages=warning";

/// Cases that need a later version than 14, which does not know what they are about.
const FROM_VERSION: &[(&str, u32)] = &[
    ("011-csv-bom-header-match", 15),
    ("027-csv-header-match-wrong-name", 15),
    ("058-typmod-rounding", 15),
    ("135-unique-nulls-not-distinct", 15),
    ("166-quoted-identifiers", 15),
];

/// Refused before anything is read (exit status 1, with this SQLSTATE), though the server accepts.
const REFUSED: &[(&str, &str)] = &[
    // Appending to a table that has rows, or only dead ones, is not built.
    ("126-append-to-existing-multilevel", "55000"),
    ("128-append-key-of-deleted-row", "55000"),
    // A trigger that would fire.
    ("153-triggers-fire", "0A000"),
];

/// How a load ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// Loaded; what `check.sql` says then.
    Ok(String),
    /// Refused with a SQLSTATE.
    Error(String),
}

struct Case {
    name: String,
    dir: PathBuf,
    load: Load,
}

fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/cases");
    let mut cases: Vec<Case> = fs::read_dir(root)
        .expect("fixtures/cases")
        .map(|entry| {
            let dir = entry.expect("a case").path();
            let name = dir.file_name().and_then(|n| n.to_str()).expect("a name");
            let load = fs::read_to_string(dir.join("load.sql")).expect("load.sql");
            Case {
                name: name.to_owned(),
                load: Load::parse(&load).unwrap_or_else(|e| panic!("{name}: {e}")),
                dir,
            }
        })
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(cases.len() > 80, "the cases are there");
    cases
}

impl Case {
    fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.dir.join(file)).ok()
    }

    /// An empty database with the case's tables.
    fn prepare(&self, server: &Server, database: &str) {
        if let Some(options) = self.text("database.txt") {
            create_database(server, database, &options);
        } else {
            empty_database(server, database);
        }
        let schema = inputs::schema(&self.name)
            .or_else(|| self.text("schema.sql"))
            .expect("a schema");
        let file = server.dir().join("schema.sql");
        fs::write(&file, schema).expect("schema.sql");
        let file = file.to_str().expect("a path in UTF-8");
        let ran = psql(server, database, "", &["-v", "ON_ERROR_STOP=1", "-f", file]);
        assert!(ran.succeeded(), "{}: {}", self.name, ran.stderr);
    }

    /// The folder with the input, which the server can read.
    fn put_input(&self, server: &Server) -> PathBuf {
        let dir = server.dir().join(&self.name);
        fs::create_dir(&dir).expect("a folder for the input");
        for entry in fs::read_dir(&self.dir).expect("the case") {
            let from = entry.expect("a file").path();
            fs::copy(&from, dir.join(from.file_name().expect("a name"))).expect("a copy");
        }
        for (name, bytes) in inputs::files(&self.name) {
            fs::write(dir.join(name), bytes).expect("the input");
        }
        dir
    }

    /// What the server's own COPY makes of it.
    fn by_server(&self, server: &Server, database: &str, input: &Path) -> Outcome {
        self.prepare(server, database);
        let file = input.join("server.sql");
        fs::write(&file, self.load.server_side(input)).expect("the COPY");
        let ran = psql(
            server,
            database,
            &self.load.settings,
            &[
                "-v",
                "ON_ERROR_STOP=1",
                "-v",
                "VERBOSITY=sqlstate",
                "-f",
                file.to_str().expect("a path in UTF-8"),
            ],
        );
        if ran.succeeded() {
            return Outcome::Ok(self.check(server, database));
        }
        let code = ran.stderr.split("ERROR:  ").nth(1).and_then(|s| s.get(..5));
        Outcome::Error(code.unwrap_or(&ran.stderr).to_owned())
    }

    fn check(&self, server: &Server, database: &str) -> String {
        let Some(_) = self.text("check.sql") else {
            return String::new();
        };
        let file = self.dir.join("check.sql");
        let file = file.to_str().expect("a path in UTF-8");
        let ran = psql(
            server,
            database,
            "",
            &["-A", "-t", "-P", "null=<NULL>", "-f", file],
        );
        format!("{}{}", ran.stdout, ran.stderr)
    }

    /// What pgpagewrite makes of it, and all that it said.
    fn by_us(&self, server: &Server, database: &str, input: &Path) -> (Outcome, Ran) {
        self.prepare(server, database);
        let before = all_tables(server, database);
        let mut command = Command::new(PROGRAM);
        server.connection_environment(&mut command, database);
        command
            .env("PGOPTIONS", format!("{SETTINGS}{}", self.load.settings))
            .current_dir(input)
            .args(["build", "-d"])
            .arg(format!("dbname={database}"))
            .args(&self.load.flags)
            .args(&self.load.sources);
        let ran = support::run(&mut command);
        if ran.succeeded() {
            return (Outcome::Ok(self.check(server, database)), ran);
        }
        assert_eq!(
            before,
            all_tables(server, database),
            "{}: a table was changed by a refused load",
            self.name
        );
        let code = ran.sqlstate().unwrap_or("none").to_owned();
        (Outcome::Error(code), ran)
    }
}

fn create_database(server: &Server, database: &str, options: &str) {
    for sql in [
        format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)"),
        format!("CREATE DATABASE {database} TEMPLATE template0 {options}"),
    ] {
        server.execute("postgres", &sql);
    }
}

/// Drops what the last case left, which is quicker than to make a new database; makes one
/// where there is none of the usual encoding.
fn empty_database(server: &Server, database: &str) {
    let usual = server.value(
        "postgres",
        &format!("SELECT count(*) FROM pg_database WHERE datname = '{database}' AND encoding = 6"),
    );
    if usual == "0" {
        let options = "encoding 'UTF8' lc_collate 'C' lc_ctype 'C.UTF-8'";
        return create_database(server, database, options);
    }
    server.execute(
        database,
        "DO $$ DECLARE s text; BEGIN
           FOR s IN SELECT nspname FROM pg_namespace
                     WHERE oid >= 16384 OR nspname = 'public' LOOP
             EXECUTE format('DROP SCHEMA %I CASCADE', s);
           END LOOP;
         END $$;
         CREATE SCHEMA public",
    );
}

fn psql(server: &Server, database: &str, settings: &str, args: &[&str]) -> Ran {
    let mut command = Command::new("psql");
    server.connection_environment(&mut command, database);
    command
        .env("PGOPTIONS", format!("{SETTINGS}{settings}"))
        .args(["-X", "-q"])
        .args(args);
    support::run(&mut command)
}

/// Name, file and rows of every table of a database.
fn all_tables(server: &Server, database: &str) -> Vec<(String, String)> {
    let mut client = server.connect(database);
    let names = client
        .query(
            "SELECT oid::regclass::text, coalesce(pg_relation_filenode(oid), 0)::text FROM pg_class
              WHERE oid >= 16384 AND relkind = 'r' ORDER BY oid",
            &[],
        )
        .expect("the tables");
    names
        .iter()
        .map(|row| {
            let (name, file): (String, String) = (row.get(0), row.get(1));
            let rows: i64 = client
                .query_one(&format!("SELECT count(*) FROM ONLY {name}"), &[])
                .expect("its rows")
                .get(0);
            (name, format!("{rows} rows in {file}"))
        })
        .collect()
}

/// One case; a line when it is not as it must be.
fn try_case(server: &Server, case: &Case) -> Option<String> {
    let input = case.put_input(server);
    let theirs = case.by_server(server, "by_server", &input);
    if server.version() == 15 {
        let recorded = case.text("expect.txt").expect("expect.txt");
        let said = match &theirs {
            Outcome::Ok(_) => "ok".to_owned(),
            Outcome::Error(code) => format!("error: {code}"),
        };
        assert_eq!(said, recorded.trim(), "{}: the server itself", case.name);
        if let (Outcome::Ok(check), Some(out)) = (&theirs, case.text("check.out")) {
            // The record has every line end as one.
            let check = check.replace("\r\n", "\n").replace('\r', "\n");
            assert_eq!(check, out, "{}: the server itself", case.name);
        }
    }
    let (ours, ran) = case.by_us(server, "by_us", &input);
    if let Some((_, code)) = REFUSED.iter().find(|(name, _)| *name == case.name) {
        let refused = ours == Outcome::Error((*code).to_owned()) && ran.status == Some(1);
        return (!refused).then(|| format!("{}: not refused: {ours:?} {}", case.name, ran.stderr));
    }
    if ours != theirs {
        return Some(format!(
            "{}: the server says {theirs:?}, we say {ours:?}\n    {}",
            case.name,
            ran.stderr.trim().replace('\n', "\n    ")
        ));
    }
    if let Outcome::Ok(_) = ours {
        let findings = support::findings(server, "by_us");
        return (!findings.is_empty()).then(|| format!("{}: {}", case.name, findings.join("; ")));
    }
    None
}

/// Whether the server was built with lz4; Debian's is, the packages of the other versions are not.
fn has_lz4(server: &Server) -> bool {
    let methods = server.value(
        "postgres",
        "SELECT enumvals FROM pg_settings WHERE name = 'default_toast_compression'",
    );
    assert!(methods.contains("lz4") || server.version() != 15);
    methods.contains("lz4")
}

fn try_all(version: u32) {
    let server = Server::start(version, &[("wal_level", "minimal")]);
    let wrong: Vec<String> = cases()
        .iter()
        .filter(|case| {
            let from = FROM_VERSION.iter().find(|(name, _)| *name == case.name);
            from.is_none_or(|(_, from)| version >= *from)
        })
        .filter(|case| case.name != "123-lz4-compression" || has_lz4(&server))
        .filter_map(|case| try_case(&server, case))
        .collect();
    assert!(
        wrong.is_empty(),
        "PostgreSQL {version}, {} cases differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn the_cases_come_out_as_postgresql_14_says() {
    try_all(14);
}

#[test]
fn the_cases_come_out_as_postgresql_15_says() {
    try_all(15);
}

#[test]
fn the_cases_come_out_as_postgresql_16_says() {
    try_all(16);
}

#[test]
fn the_cases_come_out_as_postgresql_17_says() {
    try_all(17);
}

#[test]
fn the_cases_come_out_as_postgresql_18_says() {
    try_all(18);
}
