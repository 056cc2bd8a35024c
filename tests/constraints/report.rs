//! What the reports say of constraints, and what `--trust-constraints` leaves out.

use crate::run::{DB, load};
use support::Server;

const TABLES: &str = "CREATE TABLE p (a int PRIMARY KEY);
    CREATE DOMAIN odd AS int CONSTRAINT is_odd CHECK (VALUE % 2 <> 0);
    CREATE TABLE t (a int CONSTRAINT positive CHECK (a > 0) CONSTRAINT small CHECK (a < 9)
                          CONSTRAINT known REFERENCES p, b odd, c odd)";

#[test]
fn the_reports_name_what_was_checked_and_how_long_it_took() {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    server.execute(DB, TABLES);
    let inputs = [("p", "1\n2\n"), ("t", "1,1,\n2,,\n2,,3\n")];
    let text = load(&server, &[], &inputs).expect_success();
    assert!(
        text.contains("  CHECK constraint positive, small, is_odd of domain odd: checked in 0."),
        "{text}"
    );
    assert!(
        text.contains("  foreign key known: checked in 0."),
        "{text}"
    );
    let arguments = ["--truncate", "--report", "json"];
    let json = load(&server, &arguments, &inputs).expect_success();
    let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        report["tables"][0]["constraints"].as_array().map(Vec::len),
        Some(0)
    );
    let constraints = &report["tables"][1]["constraints"];
    assert_eq!(constraints[0]["kind"], "CHECK constraint");
    assert_eq!(
        constraints[0]["names"],
        serde_json::json!(["positive", "small", "is_odd of domain odd"])
    );
    assert_eq!(constraints[1]["names"], serde_json::json!(["known"]));
    for constraint in constraints.as_array().expect("two of them") {
        assert_eq!(constraint["checked"], true);
        assert!(
            constraint["seconds"].as_f64().is_some_and(|s| s > 0.0),
            "{constraint}"
        );
    }
}

#[test]
fn trusted_constraints_are_not_checked_and_the_reports_say_so() {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    server.execute(DB, TABLES);
    let inputs = [("t", "-1,2,\n77,,\n")];
    let text = load(&server, &["--trust-constraints"], &inputs).expect_success();
    for note in [
        "NOTE: public.t: not checked: CHECK constraint positive, small, is_odd of domain odd\n",
        "NOTE: public.t: not checked: foreign key known\n",
    ] {
        assert!(text.contains(note), "{text}");
    }
    let arguments = ["--trust-constraints", "--truncate", "--report", "json"];
    let json = load(&server, &arguments, &inputs).expect_success();
    let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    for constraint in report["tables"][0]["constraints"]
        .as_array()
        .expect("two of them")
    {
        assert_eq!(constraint["checked"], false);
        assert!(constraint["seconds"].is_null());
    }
    assert_eq!(server.value(DB, "SELECT sum(a) FROM t"), "76");
}

#[test]
fn the_server_checks_in_parallel() {
    // Only 18 counts the workers. No catalog is as large as the tables.
    let server = Server::start(18, &[("wal_level", "minimal")]);
    server.execute(
        DB,
        "CREATE TABLE p (a int PRIMARY KEY);
         CREATE DOMAIN d AS int CHECK (VALUE > 0);
         CREATE TABLE t (a d CHECK (a > 0) REFERENCES p);
         ALTER ROLE postgres SET parallel_setup_cost = 0;
         ALTER ROLE postgres SET min_parallel_table_scan_size = '2MB'",
    );
    let launched = "SELECT parallel_workers_launched FROM pg_stat_database
                     WHERE datname = current_database()";
    let rows: String = (1..100_000).fold(String::new(), |rows, i| rows + &format!("{i}\n"));
    let inputs = [("p", rows.as_str()), ("t", rows.as_str())];
    let trusted = ["--no-analyze", "--jobs", "2", "--trust-constraints"];
    load(&server, &trusted, &inputs).expect_success();
    assert_eq!(server.value(DB, launched), "0");
    load(
        &server,
        &["--no-analyze", "--jobs", "2", "--truncate"],
        &inputs,
    )
    .expect_success();
    let launched: u64 = server.value(DB, launched).parse().expect("a number");
    assert!(launched >= 2, "one for each query: {launched}");
}
