//! Dumps, restored by pg_restore or psql into one database and by pgpagewrite into another: both dump
//! alike.

mod damage;
mod formats;
mod inserts;
mod many;
mod options;
mod scripts;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Ran, Server};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgpagewrite");
/// An object of each kind.
const KINDS: &str = include_str!("../../fixtures/dumps/kinds.sql");
/// The database that is dumped.
const SOURCE: &str = "source";
const THEIRS: &str = "theirs";
const OURS: &str = "ours";

/// A server with the database of all kinds.
fn server_with_kinds(version: u32) -> Server {
    let server = Server::start(version, &[("wal_level", "minimal"), ("fsync", "off")]);
    server.execute("postgres", &format!("CREATE DATABASE {SOURCE}"));
    // Each statement is a transaction, so that deferred triggers are done.
    let path = server.dir().join("kinds.sql");
    std::fs::write(&path, KINDS).expect("the schema");
    let path = path.display().to_string();
    server
        .psql(SOURCE, &["-q", "-v", "ON_ERROR_STOP=1", "-f", &path])
        .expect_success();
    server
}

/// Has pg_dump of a version write a dump; its path.
fn dumped(server: &Server, version: u32, name: &str, args: &[&str]) -> PathBuf {
    let path = server.dir().join(name);
    let mut command = server.client(version, "pg_dump", SOURCE);
    support::run(command.args(args).arg("-f").arg(&path)).expect_success();
    path
}

fn fresh(server: &Server, database: &str) {
    server.execute("postgres", &format!("DROP DATABASE IF EXISTS {database}"));
    server.execute("postgres", &format!("CREATE DATABASE {database}"));
}

/// `pgpagewrite build -d database ARGS DUMP`.
fn build(server: &Server, database: &str, args: &[&str], dump: &Path) -> Ran {
    let mut command = Command::new(PROGRAM);
    command.args(["build", "--no-analyze", "-d"]);
    command.arg(server.conninfo(database));
    support::run(command.args(args).arg(dump))
}

#[track_caller]
fn assert_same(what: &str, ours: &[String], theirs: &[String]) {
    for (number, (our, their)) in ours.iter().zip(theirs).enumerate() {
        assert_eq!(our, their, "{what}: line {} of the dump", number + 1);
    }
    assert_eq!(ours.len(), theirs.len(), "{what}: lines of the dump");
}

/// What is in a database beside what every new one has.
fn objects(server: &Server, database: &str) -> String {
    server.value(
        database,
        "SELECT count(*)::text || ' relations, ' ||
                (SELECT count(*) FROM pg_namespace WHERE nspname !~ '^pg_') || ' schemas, ' ||
                (SELECT count(*) FROM pg_largeobject_metadata) || ' large objects'
           FROM pg_class WHERE oid >= 16384",
    )
}

const NOTHING: &str = "0 relations, 2 schemas, 0 large objects";
