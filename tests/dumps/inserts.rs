//! INSERT dumps, whose rows are built natively where COPY means the same by their constants.

use super::scripts::{same_as_psql, same_as_psql_of, server};
use super::{NOTHING, OURS, build, fresh, objects};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use support::each_version;

/// Types, as columns have them.
const TYPES: [&str; 54] = [
    "int2",
    "int4",
    "int8",
    "oid",
    "float4",
    "float8",
    "numeric",
    "numeric(6,2)",
    "bool",
    "text",
    "varchar(5)",
    "char(5)",
    "\"char\"",
    "name",
    "bytea",
    "bit(4)",
    "bit",
    "varbit(4)",
    "varbit",
    "date",
    "time(2)",
    "timetz",
    "timestamp(1)",
    "timestamptz",
    "interval",
    "interval(0)",
    "interval hour",
    "uuid",
    "json",
    "jsonb",
    "inet",
    "cidr",
    "macaddr",
    "money",
    "point",
    "int4range",
    "tsvector",
    "pg_lsn",
    "xid",
    "regclass",
    "int4[]",
    "float8[]",
    "numeric(4,1)[]",
    "text[]",
    "varchar(3)[]",
    "bit(4)[]",
    "interval(0)[]",
    "interval hour[]",
    "timestamp(1)[]",
    "d_int",
    "d_varchar",
    "d_numeric",
    "mood",
    "pair",
];

const DEFINITIONS: &str = "CREATE DOMAIN d_int AS int4 CHECK (VALUE <> 7);
CREATE DOMAIN d_varchar AS varchar(3);
CREATE DOMAIN d_numeric AS numeric(4,1);
CREATE TYPE mood AS ENUM ('one', 'true', '1');
CREATE TYPE pair AS (a int, b text);
";

/// Constants, each of which is tried with each type.
const CONSTANTS: [&str; 74] = [
    "NULL",
    "0",
    "-0",
    "7",
    "+7",
    "007",
    "-1",
    "32767",
    "32768",
    "-32768",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "16777217",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "123456789012345678901234567890",
    "1.5",
    "-1.5",
    "2.5",
    ".5",
    "5.",
    "0.1",
    "-0.0",
    "0.005",
    "123456.789",
    "123.45678901234567890123",
    "1e3",
    "1E+3",
    "-1.25e-3",
    "1e-320",
    "1e38",
    "3.4028235677973366e38",
    "1e300",
    "true",
    "FALSE",
    "''",
    "'1'",
    "'-0'",
    "' 7 '",
    "'1.5'",
    "'NaN'",
    "'one'",
    "'abcdef'",
    "'abc  '",
    "'it''s'",
    "'\\N'",
    "'\\.'",
    "'a\\b\tc\nd'",
    "E'a\\\\b\\tc\\nd\\'e'",
    "'\\x4142'",
    "'true'",
    "B'0101'",
    "B'01'",
    "b''",
    "X'A'",
    "x'a5'",
    "'0101'",
    "'2020-01-02'",
    "'2020-01-02 03:04:05.678'",
    "'03:04:05.678+01'",
    "'1.75 sec'",
    "'90 min'",
    "'(1,2)'",
    "'[1,5)'",
    "'{1,2}'",
    "'{\"1.75 sec\",90}'",
    "'{\"2020-01-02 03:04:05.678\"}'",
    "'{\"a\": 1}'",
    "'192.168.0.0/24'",
    "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
];

#[test]
fn constants_mean_what_insert_means_by_them() {
    let settings = [("fsync", "off"), ("max_locks_per_transaction", "256")];
    each_version(&settings, |server| {
        fresh(server, OURS);
        server.execute(OURS, DEFINITIONS);
        let mut trial = String::new();
        for (t, type_name) in TYPES.iter().enumerate() {
            let _ = writeln!(trial, "CREATE TABLE t{t} (v {type_name});");
        }
        server.execute(OURS, &trial);
        // The server says which constants it takes at all.
        let mut asked = String::from(
            "CREATE TABLE taken (t int, c int);
CREATE PROCEDURE try(t int, c int, sql text) LANGUAGE plpgsql AS $$
BEGIN EXECUTE sql; INSERT INTO taken VALUES (t, c); EXCEPTION WHEN others THEN NULL; END $$;\n",
        );
        for t in 0..TYPES.len() {
            for (c, constant) in CONSTANTS.iter().enumerate() {
                let _ = writeln!(
                    asked,
                    "CALL try({t}, {c}, $x$INSERT INTO t{t} VALUES ({constant})$x$);"
                );
            }
        }
        server.execute(OURS, &asked);
        let taken = "SELECT string_agg(t || ' ' || c, ',' ORDER BY t, c) FROM taken";
        let taken = server.value(OURS, taken);
        // A table for each type and each kind of constant.
        let mut tables: BTreeMap<(usize, char), String> = BTreeMap::new();
        for pair in taken.split(',') {
            let (t, c) = pair.split_once(' ').expect("a pair");
            let constant = CONSTANTS[c.parse::<usize>().expect("a constant")];
            let kind = constant.trim_start_matches(['+', '-']);
            let kind = match kind.chars().next().expect("a constant") {
                'E' | '\'' => 's',
                'B' | 'b' | 'X' | 'x' => 'b',
                '0'..='9' | '.' if kind.contains(['.', 'e', 'E']) => 'd',
                '0'..='9' => 'i',
                word => word.to_ascii_lowercase(),
            };
            let t = t.parse().expect("a type");
            let rows = tables.entry((t, kind)).or_default();
            let _ = writeln!(rows, "INSERT INTO t{t}{kind} VALUES ({constant});");
        }
        let mut script = DEFINITIONS.to_owned();
        for (t, kind) in tables.keys() {
            let _ = writeln!(script, "CREATE TABLE t{t}{kind} (v {});", TYPES[*t]);
        }
        script.extend(tables.values().map(String::as_str));
        let report = same_as_psql(server, &script);
        assert!(taken.split(',').count() > 800, "{taken}");
        // Numbers and bits that are cast, and arrays of cut intervals.
        let all = tables.len();
        let otherwise = report.matches("INSERT means something else").count();
        assert!(
            (20..all / 3).contains(&otherwise),
            "{otherwise} of {all}: {report}"
        );
    });
}

#[test]
fn columns_are_filled_as_insert_fills_them() {
    let server = server();
    let report = same_as_psql(
        &server,
        "CREATE TABLE a (x int, gone int, id int GENERATED ALWAYS AS IDENTITY, \"Q q\" text DEFAULT 'd',
    twice int GENERATED ALWAYS AS (x * 2) STORED, last serial);
ALTER TABLE a DROP COLUMN gone;
CREATE TABLE b (LIKE a INCLUDING ALL);
CREATE TABLE c (LIKE a INCLUDING ALL);
CREATE TABLE d (LIKE a INCLUDING ALL);
CREATE TABLE e (LIKE a INCLUDING ALL);
CREATE TABLE p (k int, v text) PARTITION BY LIST (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p2 PARTITION OF p DEFAULT;
CREATE VIEW w AS SELECT x FROM c;
INSERT INTO a OVERRIDING SYSTEM VALUE VALUES (1, 10, 'one', DEFAULT), (2, 20, NULL, DEFAULT);
INSERT INTO a (\"Q q\", x) VALUES ('three', 3);
INSERT INTO b VALUES (4);
INSERT INTO b (\"Q q\", x) VALUES (DEFAULT, 5), ('six', 6);
INSERT INTO c VALUES (7, DEFAULT, 'seven', DEFAULT, 70), (8, DEFAULT, 'eight', DEFAULT, 80);
INSERT INTO p VALUES (1, 'p1'), (2, 'p2'), (NULL, '');
INSERT INTO w VALUES (9);
CREATE INDEX ON a (x);
INSERT INTO d (\"Q q\") VALUES (DEFAULT);
INSERT INTO d DEFAULT VALUES;
INSERT INTO e VALUES (10);
UPDATE e SET x = 11;
INSERT INTO e VALUES (12);
",
    );
    assert!(report.contains("index a_x_idx: native"), "{report}");
    assert!(report.contains("partition public.p1: 1 rows"), "{report}");
}

#[test]
fn rows_that_meet_rows_triggers_and_rules_are_inserted() {
    let server = server();
    let report = same_as_psql(
        &server,
        "CREATE TABLE log (n int);
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO log VALUES (coalesce(NEW.id, -1)); RETURN NEW; END $$;
CREATE TABLE a (id int);
CREATE TRIGGER t AFTER INSERT ON a FOR EACH STATEMENT EXECUTE FUNCTION f();
CREATE TABLE b (id int);
CREATE RULE r AS ON INSERT TO b DO ALSO INSERT INTO log VALUES (NEW.id);
INSERT INTO a VALUES (1);
INSERT INTO a VALUES (2), (3);
INSERT INTO b VALUES (4), (5);
",
    );
    // One for each statement, one for each row.
    assert_eq!(server.value(OURS, "SELECT count(*) FROM log"), "4");
    assert!(report.contains("it has triggers that fire"), "{report}");
}

#[test]
fn a_refused_row_is_told_with_its_line() {
    let server = server();
    for (sql, sqlstate, line) in [
        (
            "CREATE TABLE a (b int);\nINSERT INTO a VALUES (1);\n\nINSERT INTO a VALUES (2),\n(3),\n('x');\n",
            "22P02",
            6,
        ),
        (
            "CREATE TABLE a (b int2);\nINSERT INTO a VALUES (1);\nINSERT INTO a VALUES (32768);\n",
            "22003",
            3,
        ),
        (
            "CREATE TABLE a (b varchar(2), c int);\nINSERT INTO a VALUES ('a\nb\n', 1);\nINSERT INTO a VALUES ('abc', 2);\n",
            "22001",
            2,
        ),
        (
            "CREATE TABLE a (b int NOT NULL);\nINSERT INTO a VALUES (1);\nINSERT INTO a VALUES (NULL);\n",
            "23502",
            3,
        ),
        (
            "CREATE TABLE a (b int);\nINSERT INTO a VALUES (1), (1.5);\nINSERT INTO a VALUES ('x');\n",
            "22P02",
            3,
        ),
        (
            "CREATE TABLE a (b int);\nINSERT INTO a (c) VALUES (1);\n",
            "42703",
            2,
        ),
        (
            "CREATE TABLE a (b int);\nINSERT INTO a VALUES (1, 2);\n",
            "42601",
            2,
        ),
        (
            "CREATE TABLE a (b int GENERATED ALWAYS AS IDENTITY);\nINSERT INTO a VALUES (1);\n",
            "428C9",
            2,
        ),
        ("SELECT 1;\nINSERT INTO nothing VALUES (1);\n", "42P01", 2),
    ] {
        let path = server.dir().join("script.sql");
        fs::write(&path, sql).expect("a script");
        fresh(&server, OURS);
        let stderr = build(&server, OURS, &[], &path).expect_failure(1);
        assert!(
            stderr.contains(&format!("ERROR {sqlstate}"))
                && stderr.contains(&format!("script.sql, line {line}")),
            "{sql}: {stderr}"
        );
        assert_eq!(objects(&server, OURS), NOTHING, "{sql}");
    }
}

#[test]
fn constants_of_other_encodings_are_converted() {
    let server = server();
    let sql = |encoding: &str, text: &[u8]| {
        let mut script = format!(
            "SET client_encoding = '{encoding}';\nCREATE TABLE a (t text);\nINSERT INTO a VALUES ('"
        )
        .into_bytes();
        script.extend_from_slice(text);
        script.extend_from_slice(b"');\nCREATE INDEX ON a (t);\n");
        script
    };
    for (encoding, text) in [
        ("LATIN1", b"\xe4''\\".as_slice()),
        ("WIN1252", b"\x80"),
        ("EUC_JP", b"\xa4\xa2"),
    ] {
        let report = same_as_psql_of(&server, &sql(encoding, text), encoding);
        assert!(report.contains("a_t_idx: native"), "{encoding}: {report}");
    }
}

#[test]
fn parameters_hold_for_the_rows_behind_them() {
    let server = server();
    same_as_psql(
        &server,
        "CREATE SCHEMA one; CREATE SCHEMA two;
SET search_path = one;
CREATE TABLE t (d date);
INSERT INTO t VALUES ('01/02/2020');
SET DateStyle = 'ISO, DMY';
INSERT INTO t VALUES ('01/02/2020');
SET search_path = two;
CREATE TABLE t (d date);
INSERT INTO t VALUES ('01/02/2021');
RESET DateStyle;
INSERT INTO one.t VALUES ('01/02/2022');
",
    );
}

#[test]
fn tables_of_one_name_in_two_schemas_get_their_own_rows() {
    let server = server();
    for rows in [
        "INSERT INTO t VALUES (#);\n",
        "COPY t FROM stdin;\n#\n\\.\n",
    ] {
        let mut script = String::from("CREATE SCHEMA one; CREATE SCHEMA two;\n");
        for (schema, n) in [("one", "1"), ("two", "2")] {
            let _ = write!(
                script,
                "SET search_path = {schema};\nCREATE TABLE t (a int);\n{}",
                rows.replace('#', n)
            );
        }
        same_as_psql(&server, &script);
    }
}
