//! Partitioned tables as targets: every row must be where the server's COPY would have put it, in
//! files that are the server's.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Server, VERSIONS};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgpagewrite");
const DB: &str = "postgres";

/// Loads a CSV file natively, with more arguments.
fn load(server: &Server, arguments: &[&str], table: &str, csv: &Path) -> String {
    support::run(
        Command::new(PROGRAM)
            .args(["build", "--no-analyze", "--native-only", "-d"])
            .arg(server.conninfo(DB))
            .args(arguments)
            .arg(format!("{table}={}", csv.display())),
    )
    .expect_success()
}

/// Writes the rows of a query as CSV.
fn write_csv(server: &Server, name: &str, query: &str) -> PathBuf {
    let path = server.dir().join(name);
    server.execute(
        DB,
        &format!("COPY ({query}) TO '{}' (FORMAT csv)", path.display()),
    );
    path
}

/// Which leaf of the tree has which rows. Where in it the server's COPY looks for room in pages
/// that it has left, unless it freezes the rows.
fn places(server: &Server, table: &str) -> String {
    server.value(
        DB,
        &format!(
            "SELECT count(*) || ' ' || count(DISTINCT r.tableoid) || ' '
                    || md5(string_agg(c.relname || r::text, ',' ORDER BY c.relname, r.i))
               FROM {table} AS r JOIN pg_class c ON c.oid = r.tableoid"
        ),
    )
}

/// Rows that are not within the bounds of the partition that they are in, by the server's
/// own condition: for hash partitions that is `satisfies_hash_partition`.
fn strays(server: &Server, table: &str) -> u64 {
    let mut client = server.connect(DB);
    let leaves = client
        .query(
            "SELECT relid::regclass::text, coalesce(pg_get_partition_constraintdef(relid), 'true')
               FROM pg_partition_tree($1::text::regclass) WHERE isleaf",
            &[&table],
        )
        .expect("the leaves");
    let mut strays = 0;
    for leaf in &leaves {
        let (name, bounds): (String, String) = (leaf.get(0), leaf.get(1));
        let query = format!("SELECT count(*) FROM ONLY {name} WHERE ({bounds}) IS NOT TRUE");
        let count: i64 = client.query_one(&query, &[]).expect("a count").get(0);
        strays += count as u64;
    }
    strays
}

/// Each type that may be a partition key, with 4,000 values of it by `i`, some of them alike or
/// null; and whether it has an order.
const KEYS: &[(&str, &str)] = &[
    ("bool", "i % 2 = 0"),
    ("\"char\"", "chr(33 + i % 90)::\"char\""),
    ("int2", "(i * 37 % 65536 - 32768)::int2"),
    (
        "int4",
        "((i::int8 * 2654435761) % 4294967296 - 2147483648)::int4",
    ),
    ("int8", "i::int8 * 4611686018427 * (1 - 2 * (i % 2))"),
    ("oid", "(i::int8 * 1073741)::oid"),
    (
        "float4",
        "CASE i % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN '0' WHEN 3 THEN '-Infinity'
              ELSE ((i - 2000) / 7.0)::text END::float4",
    ),
    (
        "float8",
        "CASE i % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN '0' WHEN 3 THEN 'Infinity'
              ELSE ((i - 2000) / 7.0)::text END::float8",
    ),
    (
        "numeric",
        "CASE i % 40 WHEN 0 THEN 'NaN'::numeric WHEN 1 THEN 0.000
              WHEN 2 THEN round((i / 40)::numeric, 3)
              ELSE (i - 2000)::numeric * 10::numeric ^ (i % 37 - 18) END",
    ),
    ("numeric(12,2)", "((i - 2000) / 7.0)::numeric(12,2)"),
    ("text", "left(repeat(md5(i::text), 7), i % 200)"),
    ("text COLLATE \"C\"", "chr(200 + i % 700) || i % 300"),
    ("varchar(40)", "md5((i % 1500)::text)"),
    ("char(20)", "left(md5(i::text), i % 20)"),
    ("name", "left(md5(i::text), i % 30)::name"),
    ("bytea", "decode(left(md5(i::text), i % 16 * 2), 'hex')"),
    ("date", "'1990-01-01'::date + i * 3"),
    ("time", "'00:00'::time + i * '21.123456 s'::interval"),
    (
        "timetz",
        "('00:00'::time + i * '21.1 s'::interval)::text || '+0' || i % 8",
    ),
    (
        "timestamp",
        "'1999-12-30'::timestamp + i * '61.000001 s'::interval",
    ),
    (
        "timestamptz",
        "'1999-12-30'::timestamp + i * '61.000001 s'::interval",
    ),
    (
        "interval",
        "make_interval(months => i % 25 - 12, days => i % 61, secs => i * 7.25)",
    ),
    ("uuid", "md5(i::text)::uuid"),
    (
        "inet",
        "CASE i % 3 WHEN 0 THEN '10.0.0.0'::inet + i
                    WHEN 1 THEN set_masklen('192.168.0.0'::inet + i, i % 33)
                    ELSE '2001:db8::'::inet + i::int8 * 65537 END",
    ),
    (
        "mood",
        "CASE i % 3 WHEN 0 THEN 'sad' WHEN 1 THEN 'ok' ELSE 'glad' END::mood",
    ),
    ("counted", "(i % 1000)::counted"),
];

/// The values of a key as a query; every 97th is null.
fn values(expression: &str) -> String {
    format!(
        "SELECT CASE WHEN i % 97 <> 5 THEN ({expression})::text END AS v, i
           FROM generate_series(1, 4000) AS i"
    )
}

/// Trees of one level for a key of this type: `h` and `k` by hash, `r` by range, `l` by list.
fn make_trees(server: &Server, schema: &str, key: &str, expression: &str) {
    let mut sql = format!(
        "DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema};
         SET search_path = {schema}, public;
         CREATE TABLE h (v {key}, i int) PARTITION BY HASH (v);
         CREATE TABLE k (i int, v {key}) PARTITION BY HASH (v, i);
         CREATE TABLE r (i int, v {key}) PARTITION BY RANGE (v);
         CREATE TABLE l (v {key}, i int) PARTITION BY LIST (v);"
    );
    let mut partition = |table: &str, number: usize, bound: &str| {
        let _ = write!(
            sql,
            "CREATE TABLE {table}_{number} PARTITION OF {table} {bound};"
        );
    };
    let hashes = [(2, 1), (4, 0), (12, 2), (12, 6), (12, 10)];
    for (number, (modulus, remainder)) in hashes.into_iter().enumerate() {
        let bound = format!("FOR VALUES WITH (MODULUS {modulus}, REMAINDER {remainder})");
        partition("h", number, &bound);
    }
    for remainder in 0..3 {
        let bound = format!("FOR VALUES WITH (MODULUS 3, REMAINDER {remainder})");
        partition("k", remainder, &bound);
    }
    // Bounds are taken from among the values.
    let query = format!(
        "SELECT quote_literal(k::text)
           FROM (SELECT DISTINCT v::{key} AS k FROM ({}) x WHERE v IS NOT NULL) y ORDER BY k",
        values(expression)
    );
    let rows = server.connect(DB).query(&query, &[]).expect("the values");
    let bounds: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let (low, high) = (&bounds[bounds.len() / 3], &bounds[bounds.len() * 2 / 3]);
    partition("r", 0, &format!("FOR VALUES FROM ({low}) TO ({high})"));
    partition("r", 1, &format!("FOR VALUES FROM (MINVALUE) TO ({low})"));
    partition("r", 2, "DEFAULT");
    let few = bounds.len().min(8);
    let every_second = |first: usize| -> Vec<&str> {
        let some = bounds[..few].iter().skip(first).step_by(2);
        some.map(String::as_str).collect()
    };
    let bound = format!("FOR VALUES IN ({})", every_second(0).join(", "));
    partition("l", 0, &bound);
    let bound = format!("FOR VALUES IN ({}, NULL)", every_second(1).join(", "));
    partition("l", 1, &bound);
    partition("l", 2, "DEFAULT");
    server.execute(DB, &sql);
}

#[test]
fn keys_of_every_type_lead_to_the_partitions_that_copy_finds() {
    for version in VERSIONS {
        let server = Server::start(version, &[("wal_level", "minimal")]);
        server.execute(
            DB,
            "CREATE TYPE mood AS ENUM ('sad', 'glad'); ALTER TYPE mood ADD VALUE 'ok' BEFORE 'glad';
             CREATE DOMAIN counted AS int",
        );
        for (key, expression) in KEYS {
            make_trees(&server, "ours", key, expression);
            make_trees(&server, "theirs", key, expression);
            let v_first = write_csv(&server, "v.csv", &values(expression));
            let i_first = write_csv(
                &server,
                "i.csv",
                &format!("SELECT i, v FROM ({}) x", values(expression)),
            );
            for (table, csv) in [
                ("h", &v_first),
                ("k", &i_first),
                ("r", &i_first),
                ("l", &v_first),
            ] {
                let (ours, theirs) = (format!("ours.{table}"), format!("theirs.{table}"));
                load(&server, &[], &ours, csv);
                server.execute(
                    DB,
                    &format!("COPY {theirs} FROM '{}' (FORMAT csv)", csv.display()),
                );
                let what = format!("{key} in {table} on {version}");
                assert_eq!(strays(&server, &ours), 0, "{what}");
                assert_eq!(places(&server, &ours), places(&server, &theirs), "{what}");
            }
        }
        support::assert_healthy(&server, DB);
    }
}

/// A tree of three levels with every strategy, columns in other places, values out of line,
/// indexes of all kinds.
const DEEP: &str = "
CREATE TABLE t (id int8 NOT NULL, day date NOT NULL, kind text, payload text,
                PRIMARY KEY (id, day, kind)) PARTITION BY RANGE (day);
ALTER TABLE t ALTER payload SET STORAGE EXTERNAL;
CREATE INDEX ON t (kind, day DESC);
CREATE INDEX ON t (lower(kind), id);
CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (MINVALUE) TO ('2024-02-01');
CREATE TABLE t_2 (kind text NOT NULL, gone int, payload text COMPRESSION pglz,
                  id int8 NOT NULL, day date NOT NULL) PARTITION BY LIST (kind);
ALTER TABLE t_2 DROP gone;
ALTER TABLE t ATTACH PARTITION t_2 FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
CREATE TABLE t_2_a PARTITION OF t_2 FOR VALUES IN ('a', 'b') WITH (fillfactor = 70);
CREATE TABLE t_2_rest PARTITION OF t_2 DEFAULT PARTITION BY HASH (id, kind);
CREATE TABLE t_2_rest_0 PARTITION OF t_2_rest FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE t_2_rest_1 (payload text, day date NOT NULL, id int8 NOT NULL, more int,
                         kind text NOT NULL);
ALTER TABLE t_2_rest_1 DROP more;
ALTER TABLE t_2_rest ATTACH PARTITION t_2_rest_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE t_rest PARTITION OF t DEFAULT;";

const DEEP_LEAVES: [&str; 5] = ["t_1", "t_2_a", "t_2_rest_0", "t_2_rest_1", "t_rest"];

/// Rows for it in no order of the partitions.
const DEEP_ROWS: &str = "
SELECT i, '2023-12-01'::date + (i * 7919) % 120, chr(97 + i % 7),
       CASE i % 300 WHEN 0 THEN repeat(md5(i::text), 400) WHEN 1 THEN NULL
            ELSE left(md5(i::text), i % 30) END
  FROM generate_series(1, 60000) AS i";

#[test]
fn the_files_of_every_leaf_are_those_that_copy_writes() {
    for version in VERSIONS {
        let server = Server::start(version, &[("wal_level", "minimal")]);
        server.execute(DB, DEEP);
        let csv = write_csv(&server, "deep.csv", DEEP_ROWS);
        support::run(
            Command::new(PROGRAM)
                .args(["build", "--no-analyze", "--jobs", "2", "-d"])
                .arg(server.conninfo(DB))
                .arg(format!("t={}", csv.display())),
        )
        .expect_success();
        assert_eq!(server.value(DB, "SELECT count(*) FROM t"), "60000");
        assert_eq!(strays(&server, "t"), 0);
        support::assert_healthy(&server, DB);
        for leaf in DEEP_LEAVES {
            server.execute(DB, "CHECKPOINT");
            let ours = support::files(&server, DB, leaf);
            let rows = format!("SELECT * FROM ONLY {leaf} ORDER BY ctid");
            let of_leaf = write_csv(&server, leaf, &rows);
            server.execute(
                DB,
                &format!(
                    "BEGIN; TRUNCATE {leaf}; COPY {leaf} FROM '{}' (FORMAT csv, FREEZE); 
                     COMMIT; REINDEX TABLE {leaf}; CHECKPOINT",
                    of_leaf.display()
                ),
            );
            support::assert_same_files(&ours, &support::files(&server, DB, leaf));
        }
    }
}

#[test]
fn threads_and_memory_make_no_difference() {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    let deep = DEEP.replace("CREATE INDEX ON t (lower(kind), id);", "");
    server.execute(DB, &deep);
    let csv = write_csv(&server, "deep.csv", DEEP_ROWS);
    let mut first = None;
    for arguments in [
        ["--jobs", "1", "--memory", "64MB"],
        ["--jobs", "2", "--memory", "1GB"],
        ["--jobs", "7", "--memory", "64MB"],
    ] {
        let arguments: Vec<&str> = arguments.into_iter().chain(["--truncate"]).collect();
        load(&server, &arguments, "t", &csv);
        server.execute(DB, "CHECKPOINT");
        let files: Vec<support::File> = (DEEP_LEAVES.iter())
            .flat_map(|leaf| support::files(&server, DB, leaf))
            .collect();
        match &first {
            None => first = Some(files),
            Some(first) => support::assert_same_files(first, &files),
        }
    }
}

#[test]
fn a_thousand_partitions_are_loaded_and_the_empty_ones_are_left_alone() {
    let mut server = Server::start(16, &[("wal_level", "minimal")]);
    server.execute(
        DB,
        "CREATE TABLE t (a int PRIMARY KEY, b text) PARTITION BY RANGE (a)",
    );
    // Not all in one transaction, which would need too many locks.
    for hundred in 0..10 {
        let mut sql = String::new();
        for i in hundred * 100..hundred * 100 + 100 {
            let (from, to) = (i * 100, i * 100 + 100);
            let _ = write!(
                sql,
                "CREATE TABLE t_{i} PARTITION OF t FOR VALUES FROM ({from}) TO ({to});"
            );
        }
        server.execute(DB, &sql);
    }
    let csv = write_csv(
        &server,
        "many.csv",
        "SELECT (i::int8 * 7919) % 100000, md5(i::text) FROM generate_series(0, 99999) AS i
          WHERE (i::int8 * 7919) % 100000 / 100 NOT BETWEEN 500 AND 999
            AND (i::int8 * 7919) % 100000 / 100 NOT BETWEEN 50 AND 99
            AND (i::int8 * 7919) % 100000 / 100 NOT BETWEEN 5 AND 9",
    );
    // Of few locks the server has enough to route the rows itself.
    let by_copy = support::run(
        Command::new(PROGRAM)
            .args(["build", "--no-analyze", "-d"])
            .arg(server.conninfo(DB))
            .arg(format!("t={}", csv.display())),
    )
    .expect_success();
    assert!(by_copy.contains("need more locks"), "{by_copy}");
    assert_eq!(server.value(DB, "SELECT count(*) FROM t"), "44500");
    server.restart_with(&[("max_locks_per_transaction", "256")]);
    server.execute(DB, "TRUNCATE t");
    let files = "SELECT md5(string_agg(relfilenode::text, ' ' ORDER BY oid)) FROM pg_class
                  WHERE relname ~ '^t_[5-9]'";
    let before = server.value(DB, files);
    let report = load(&server, &["--memory", "64MB"], "t", &csv);
    assert_eq!(server.value(DB, "SELECT count(*) FROM t"), "44500");
    assert_eq!(strays(&server, "t"), 0);
    assert_eq!(server.value(DB, files), before);
    assert!(report.starts_with("public.t: 44500 rows"), "{report}");
    assert!(
        report.contains("\npartition public.t_0: 100 rows"),
        "{report}"
    );
    assert!(!report.contains("public.t_500"), "{report}");
    assert!(report.contains("\n44500 rows in "), "{report}");
    support::assert_healthy(&server, DB);
}

#[test]
fn a_partition_may_have_an_input_beside_its_parents() {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    server.execute(
        DB,
        "CREATE TABLE t (a int, b int, PRIMARY KEY (a, b)) PARTITION BY LIST (a);
         CREATE TABLE p PARTITION OF t FOR VALUES IN (3)",
    );
    let (of_parent, of_leaf) = (
        write_csv(&server, "t.csv", "VALUES (3, 1), (3, 2)"),
        write_csv(&server, "p.csv", "VALUES (3, 3)"),
    );
    let report = support::run(
        Command::new(PROGRAM)
            .args(["build", "--no-analyze", "-d"])
            .arg(server.conninfo(DB))
            .arg(format!("t={}", of_parent.display()))
            .arg(format!("p={}", of_leaf.display())),
    )
    .expect_success();
    assert!(
        report.contains("partition public.p is loaded by itself too"),
        "{report}"
    );
    let rows = "SELECT string_agg(b::text, ' ' ORDER BY b) FROM t WHERE a = 3";
    assert_eq!(server.value(DB, rows), "1 2 3");
    support::assert_healthy(&server, DB);
}

#[test]
fn the_plan_names_the_leaves() {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    server.execute(DB, DEEP);
    let csv = write_csv(&server, "few.csv", "SELECT 1, '2024-01-01', 'a', NULL");
    let plan = support::run(
        Command::new(PROGRAM)
            .args(["plan", "-d"])
            .arg(server.conninfo(DB))
            .arg(format!("t={}", csv.display())),
    )
    .expect_success();
    for name in [
        "public.t: native\n",
        "partition public.t_1: native\n",
        "partition public.t_2_rest_0: native\n",
        "partition public.t_rest: native\n",
    ] {
        assert!(plan.contains(name), "{name} in {plan}");
    }
    // How many of the rows a leaf has is not said.
    assert_eq!(plan.matches("about 1 rows").count(), 1, "{plan}");
    assert!(!plan.contains("about 0 rows"), "{plan}");
    assert_eq!(server.value(DB, "SELECT count(*) FROM t"), "0");
}
