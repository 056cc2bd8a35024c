//! Scripts of SQL, as psql runs them.

use super::{NOTHING, OURS, THEIRS, assert_same, build, fresh, objects};
use std::fs;
use std::path::PathBuf;
use support::{Server, run};

pub fn server() -> Server {
    Server::start(15, &[("wal_level", "minimal"), ("fsync", "off")])
}

fn script(server: &Server, sql: &str) -> PathBuf {
    let path = server.dir().join("script.sql");
    fs::write(&path, sql).expect("a script");
    path
}

/// Runs a script by psql and by us; our report.
#[track_caller]
pub fn same_as_psql(server: &Server, sql: &str) -> String {
    same_as_psql_of(server, sql.as_bytes(), sql)
}

/// The same of a script of any bytes.
#[track_caller]
pub fn same_as_psql_of(server: &Server, sql: &[u8], what: &str) -> String {
    let path = server.dir().join("script.sql");
    fs::write(&path, sql).expect("a script");
    for database in [THEIRS, OURS] {
        fresh(server, database);
    }
    let mut psql = server.client(18, "psql", THEIRS);
    psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"])
        .arg(&path);
    run(&mut psql).expect_success();
    let report = build(server, OURS, &[], &path).expect_success();
    assert_same(what, &server.dump(OURS), &server.dump(THEIRS));
    report
}

#[test]
fn statements_that_look_at_rows_find_them() {
    let server = server();
    let report = same_as_psql(
        &server,
        "BEGIN;
CREATE TABLE a (id int, t text);
COPY a FROM stdin;
1\tone
2\ttwo
\\.
CREATE TABLE b (id int DEFAULT 7, n int);
COPY b (n) FROM stdin WITH (FORMAT csv, HEADER);
n
5
\\.
CREATE INDEX ON a (id);
INSERT INTO b SELECT count(*), 1 FROM a;
UPDATE a SET t = 'changed' WHERE id = 2;
COPY a FROM stdin DELIMITER ';';
3;three
\\.
ALTER TABLE a ADD PRIMARY KEY (id);
CREATE TABLE c AS SELECT * FROM a;
CREATE VIEW v AS SELECT * FROM b;
COMMIT;
",
    );
    assert!(report.contains("public.b: 1 rows, 4 bytes in"), "{report}");
    assert!(report.contains("index a_id_idx: native"), "{report}");
    assert!(
        report.contains("a: 1 rows, 8 bytes in") && report.contains("statements before it"),
        "{report}"
    );
}

#[test]
fn tables_of_one_name_in_two_schemas_get_their_own_rows() {
    let server = server();
    same_as_psql(
        &server,
        "CREATE SCHEMA one;
CREATE SCHEMA two;
SET search_path = one, pg_catalog;
CREATE TABLE t (id int);
COPY t FROM stdin;
1
\\.
SET search_path = two, pg_catalog;
CREATE TABLE t (id int);
COPY t FROM stdin;
2
\\.
CREATE INDEX ON t (id);
SELECT pg_catalog.set_config('search_path', 'one', false);
COPY t FROM stdin;
3
\\.
ALTER TABLE t ADD PRIMARY KEY (id);
",
    );
    let rows = "SELECT (SELECT string_agg(id::text, ',' ORDER BY id) FROM one.t) || ' '
                    || (SELECT string_agg(id::text, ',' ORDER BY id) FROM two.t)";
    assert_eq!(server.value(OURS, rows), "1,3 2");
}

#[test]
fn triggers_fire_for_rows_behind_them_only() {
    let server = server();
    same_as_psql(
        &server,
        "CREATE TABLE a (id int);
CREATE TABLE log (n int);
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO log VALUES (NEW.id); RETURN NEW; END $$;
COPY a FROM stdin;
1
\\.
CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW EXECUTE FUNCTION f();
COPY a FROM stdin;
2
\\.
",
    );
    assert_eq!(
        server.value(OURS, "SELECT string_agg(n::text, ',') FROM log"),
        "2"
    );
}

#[test]
fn encodings_and_strings_are_read_as_the_script_says() {
    let server = server();
    let path = server.dir().join("latin1.sql");
    let mut text = b"SET client_encoding = 'LATIN1';\nCREATE TABLE a (t text DEFAULT '".to_vec();
    text.extend_from_slice(b"\xe4');\nCOPY a FROM stdin;\n\xfc x\n\\.\nSET standard_conforming_strings = off;\nSET escape_string_warning = off;\nINSERT INTO a VALUES ('a\\';b'), (DEFAULT);\n");
    fs::write(&path, text).expect("a script");
    for database in [THEIRS, OURS] {
        fresh(&server, database);
    }
    let mut psql = server.client(18, "psql", THEIRS);
    run(psql
        .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"])
        .arg(&path))
    .expect_success();
    build(&server, OURS, &[], &path).expect_success();
    assert_same("latin1", &server.dump(OURS), &server.dump(THEIRS));
}

#[test]
fn rows_mean_what_the_settings_of_their_place_say() {
    let server = server();
    let report = same_as_psql(
        &server,
        "SET datestyle = 'SQL, DMY';
SET timezone = 'Asia/Tokyo';
SET intervalstyle = sql_standard;
CREATE TABLE a (d date, t timestamptz, i interval);
COPY a FROM stdin;
03/04/2020\t01/02/2020 03:04:05\t-1 2:03:04
\\.
CREATE TABLE b (d date, t timestamptz);
SET datestyle = 'SQL, MDY';
COPY b FROM stdin;
03/04/2020\t01/02/2020 03:04:05
\\.
RESET timezone;
COPY b FROM stdin;
03/04/2020\t01/02/2020 03:04:05
\\.
",
    );
    assert!(report.contains("public.a: 1 rows, 42 bytes in"), "{report}");
    assert_eq!(
        server.value(OURS, "SELECT d || ' ' || i FROM a"),
        "2020-04-03 -1 days -02:03:04"
    );
}

#[test]
fn rows_are_computed_as_at_their_place() {
    let server = server();
    same_as_psql(
        &server,
        "CREATE TABLE a (x int DEFAULT 1, y int);
COPY a (y) FROM stdin;
1
\\.
ALTER TABLE a ALTER x SET DEFAULT 9;
COPY a (y) FROM stdin;
2
\\.
CREATE TABLE s (x int, n serial);
COPY s (x) FROM stdin;
1
\\.
SELECT setval('s_n_seq', 100);
COPY s (x) FROM stdin;
2
\\.
SELECT setval('s_n_seq', 200);
",
    );
    same_as_psql(
        &server,
        "CREATE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 1';
CREATE TABLE g (x int, y int GENERATED ALWAYS AS (f(x)) STORED, z int DEFAULT f(1));
COPY g (x) FROM stdin;
1
\\.
CREATE OR REPLACE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 2';
COPY g (x) FROM stdin;
2
\\.
",
    );
    same_as_psql(
        &server,
        "CREATE SCHEMA one;
SET search_path = one, public;
CREATE TABLE public.t (a int);
COPY t FROM stdin;
1
\\.
CREATE TABLE t (a int);
COPY t FROM stdin;
2
\\.
",
    );
    assert_eq!(server.value(OURS, "SELECT a FROM public.t"), "1");
}

#[test]
fn nothing_outside_of_the_database_is_touched() {
    let server = server();
    let victim = server.dir().join("victim");
    for (sql, what) in [
        (format!("\\! touch {}\n", victim.display()), "\\!"),
        (format!("SELECT 1 \\g {}\n", victim.display()), "\\g"),
        (format!("\\o {}\nSELECT 1;\n", victim.display()), "\\o"),
        ("\\copy t from '/etc/passwd'\n".to_owned(), "\\copy"),
        ("\\i /etc/passwd\n".to_owned(), "\\i"),
        (
            format!(
                "CREATE TABLE t (a text);\nCOPY t FROM PROGRAM 'touch {}';\n",
                victim.display()
            ),
            "COPY to or from a program",
        ),
        (
            format!("COPY (SELECT 1) TO '{}';\n", victim.display()),
            "COPY to or from a program",
        ),
        (
            "\\restrict k\n\\connect postgres\n".to_owned(),
            "restricted",
        ),
    ] {
        let path = script(&server, &sql);
        fresh(&server, OURS);
        let stderr = build(&server, OURS, &[], &path).expect_failure(1);
        assert!(
            stderr.contains(what) && stderr.contains("script.sql, line"),
            "{sql}: {stderr}"
        );
        assert!(!victim.exists(), "{sql}");
        assert_eq!(objects(&server, OURS), NOTHING, "{sql}");
    }
    let path = script(
        &server,
        "CREATE TABLE t (a text);\nCOPY t FROM PROGRAM 'echo one';\n",
    );
    build(&server, OURS, &["--trust-scripts"], &path).expect_success();
    assert_eq!(server.value(OURS, "SELECT a FROM t"), "one");
}

#[test]
fn a_script_that_fails_leaves_nothing_and_names_the_line() {
    let server = server();
    for (sql, line) in [
        (
            "CREATE TABLE a (b int);\nCOPY a FROM stdin;\n1\nx\n\\.\n",
            4,
        ),
        (
            "CREATE TABLE a (b int);\nCOPY a FROM stdin;\n1\n\\.\nSELECT 1/0;\n",
            5,
        ),
        (
            "CREATE TABLE a (b int);\n\nCREATE TABLE a (\n  c nothing);\n",
            4,
        ),
        (
            "CREATE TABLE a (b int);\nCOPY a FROM stdin;\n1\n1\n\\.\nALTER TABLE a ADD PRIMARY KEY (b);\n",
            4,
        ),
        (
            "CREATE TABLE a (b int);\nINSERT INTO a VALUES (1);\nINSERT INTO a\n VALUES ('y');\n",
            4,
        ),
    ] {
        let path = script(&server, sql);
        fresh(&server, OURS);
        let stderr = build(&server, OURS, &[], &path).expect_failure(1);
        assert!(
            stderr.contains(&format!("script.sql, line {line}")),
            "{sql}: {stderr}"
        );
        assert_eq!(objects(&server, OURS), NOTHING, "{sql}");
    }
}

#[test]
fn a_script_of_pg_dumpall_makes_roles_and_databases() {
    let source = server();
    source.execute(
        "postgres",
        "CREATE ROLE reader; CREATE ROLE \"Wri ter\" LOGIN CREATEDB; GRANT reader TO \"Wri ter\";
         CREATE TABLE here (a int); INSERT INTO here VALUES (1)",
    );
    source.execute("postgres", "CREATE DATABASE one OWNER \"Wri ter\"");
    source.execute("postgres", "CREATE DATABASE \"T-w.o\"");
    source.execute(
        "one",
        "CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t SELECT i, 'x' || i FROM generate_series(1, 500) i;
         GRANT SELECT ON t TO reader",
    );
    source.execute("T-w.o", "CREATE TABLE u (a int); INSERT INTO u VALUES (42)");
    for version in [15, 18] {
        let path = source.dir().join(format!("all{version}.sql"));
        let mut dumpall = source.client(version, "pg_dumpall", "postgres");
        run(dumpall.arg("-f").arg(&path)).expect_success();
        let target = server();
        if version == 15 {
            build(&target, "postgres", &[], &path).expect_success();
        } else {
            // It sets what this server does not know.
            let stderr = build(&target, "postgres", &[], &path).expect_failure(1);
            assert!(stderr.contains("ERROR 42704"), "{stderr}");
            assert_eq!(databases(&target), "");
            build(&target, "postgres", &["--keep-going"], &path).expect_failure(1);
        }
        for database in ["postgres", "one", "T-w.o"] {
            assert_same(database, &target.dump(database), &source.dump(database));
        }
        let roles = "SELECT string_agg(rolname || rolcreatedb, ' ' ORDER BY rolname) FROM pg_roles WHERE rolname !~ '^pg_'";
        assert_eq!(
            target.value("postgres", roles),
            source.value("postgres", roles)
        );
        assert_eq!(
            target.value(
                "one",
                "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'one'"
            ),
            "Wri ter"
        );
    }
}

/// The names of all databases but those that every server has.
fn databases(server: &Server) -> String {
    let names = "SELECT coalesce(string_agg(datname, ' ' ORDER BY datname), '') FROM pg_database
                  WHERE datname !~ '^(postgres|template[01])$'";
    server.value("template1", names)
}

#[test]
fn a_database_that_a_script_drops_stays_until_the_new_one_is_there() {
    let server = server();
    server.execute("postgres", "CREATE DATABASE vict");
    server.execute("vict", "CREATE TABLE a (b int); INSERT INTO a VALUES (1)");
    let path = server.dir().join("vict.sql");
    let mut dump = server.client(15, "pg_dump", "vict");
    run(dump.args(["-C", "-c", "--if-exists", "-f"]).arg(&path)).expect_success();
    server.execute("vict", "INSERT INTO a VALUES (2)");
    let good = fs::read_to_string(&path).expect("the script");
    fs::write(&path, good.replace("\n1\n", "\nx\n")).expect("written");
    let stderr = build(&server, "postgres", &[], &path).expect_failure(1);
    assert!(stderr.contains("22P02"), "{stderr}");
    assert_eq!(databases(&server), "vict");
    assert_eq!(server.value("vict", "SELECT sum(b) FROM a"), "3");
    fs::write(&path, good).expect("written");
    build(&server, "postgres", &[], &path).expect_success();
    assert_eq!(databases(&server), "vict");
    assert_eq!(server.value("vict", "SELECT sum(b) FROM a"), "1");
}

#[test]
fn a_script_of_pg_dumpall_replaces_what_is_there() {
    let source = server();
    source.execute("postgres", "CREATE ROLE reader");
    source.execute("postgres", "CREATE DATABASE one");
    source.execute(
        "one",
        "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 500);
         GRANT SELECT ON t TO reader",
    );
    source.execute("postgres", "CREATE TABLE here (a int)");
    let target = server();
    target.execute("postgres", "CREATE ROLE reader CREATEDB");
    target.execute("postgres", "CREATE DATABASE one");
    target.execute(
        "one",
        "CREATE TABLE t (other text); ALTER TABLE t OWNER TO reader",
    );
    for args in [vec!["-c"], vec!["-c", "--if-exists"]] {
        let path = source.dir().join("all.sql");
        let mut dumpall = source.client(15, "pg_dumpall", "postgres");
        run(dumpall.args(&args).arg("-f").arg(&path)).expect_success();
        let whole = fs::read_to_string(&path).expect("the script");
        let damaged = whole.replace("CREATE TABLE public.here", "CREATE TABLE nowhere.here");
        let before: Vec<Vec<String>> = ["one", "postgres"].map(|d| target.dump(d)).into();
        fs::write(&path, damaged).expect("written");
        build(&target, "postgres", &[], &path).expect_failure(1);
        assert_eq!(databases(&target), "one", "{args:?}");
        for (database, before) in ["one", "postgres"].into_iter().zip(&before) {
            assert_same(database, &target.dump(database), before);
        }
        fs::write(&path, whole).expect("written");
        build(&target, "postgres", &[], &path).expect_success();
        assert_eq!(databases(&target), "one", "{args:?}");
        for database in ["one", "postgres"] {
            assert_same(database, &target.dump(database), &source.dump(database));
        }
        let role = "SELECT rolcreatedb FROM pg_roles WHERE rolname = 'reader'";
        assert_eq!(target.value("postgres", role), "f");
    }
}
