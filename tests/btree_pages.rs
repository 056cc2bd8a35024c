//! Btree pages against those of the server's own index build, byte for byte, on every version.
//!
//! The server fills a table and builds its indexes; we read the table's heap pages, sort the
//! values ourselves, and build the same indexes.

mod btree_support;

use btree_support::{Heap, Table, assert_same_pages, build, build_with, index_of, version};
use pgpagewrite::build::btree::{BuildError, ToastIndexBuilder};
use support::{Fork, Server};

/// A statement that makes and fills the table `t`, and the indexes on it.
struct Case {
    table: &'static str,
    indexes: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        table: "CREATE TABLE t AS SELECT i AS asc_, (hashint4(i)) AS random, 7 AS same,
                       nullif(i % 10, 3) AS few, i::bigint * 1000000007 AS big,
                       (i % 1000)::smallint AS small, (i * 7919 % 65536)::oid AS o
                  FROM generate_series(1, 60000) i",
        indexes: &[
            "(asc_)",
            "UNIQUE (asc_)",
            "(random)",
            "(random DESC)",
            "(same)",
            "(few)",
            "(few NULLS FIRST)",
            "(few DESC)",
            "(few DESC NULLS LAST)",
            "(big)",
            "(small, asc_)",
            "(few, small DESC)",
            "(few, random, o)",
            "(o) WITH (fillfactor = 50)",
            "(small) WITH (deduplicate_items = off)",
            "(same) WITH (fillfactor = 100)",
            "(small) WITH (fillfactor = 10)",
            "(small) INCLUDE (random)",
            "UNIQUE (asc_) INCLUDE (few, big)",
        ],
    },
    Case {
        table: "CREATE TABLE t AS SELECT i, md5(i::text) AS hash, 'key ' || i AS key,
                       nullif((i % 50)::text, '7') AS few, repeat('same', 40) AS same,
                       md5((i % 700)::text)::char(40) AS padded, left(md5(i::text), 2)::bpchar AS free,
                       ('n' || i % 3000)::name AS name, decode(md5(i::text), 'hex') AS bytes,
                       repeat(md5(i::text), 1 + i % 12) AS wide, chr(65 + i % 60)::\"char\" AS c
                  FROM generate_series(1, 20000) i",
        indexes: &[
            "(hash)",
            "UNIQUE (hash)",
            "(key)",
            "(key DESC)",
            "(few)",
            "(few NULLS FIRST, key)",
            "(same)",
            "(padded)",
            "(free)",
            "(free bpchar_pattern_ops)",
            "(name)",
            "(name DESC, i)",
            "(bytes)",
            "(wide)",
            "(few, wide)",
            "(key text_pattern_ops)",
            "(c)",
            "(c, key)",
            "(key) INCLUDE (few, name)",
            "(few) INCLUDE (wide) WITH (fillfactor = 70)",
            "(hash COLLATE \"C\")",
            "(i, hash)",
        ],
    },
    Case {
        table: "CREATE TABLE t AS SELECT
                       CASE i % 100 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN '0'
                         WHEN 3 THEN 'Infinity' WHEN 4 THEN '-Infinity'
                         ELSE ((hashint4(i) % 5000) / 7.0)::text END::float8 AS f8,
                       CASE i % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN '0'
                         ELSE (hashint4(i) % 900)::text END::float4 AS f4,
                       CASE i % 200 WHEN 0 THEN 'NaN'::numeric WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity'
                         ELSE hashint4(i)::numeric * (10::numeric ^ (i % 40 - 20)) END AS num,
                       ((i % 300)::text || repeat('0', 0))::numeric(20, 0) AS whole,
                       (i % 400 / 4.0)::numeric(10, 2) AS money,
                       i % 3 = 0 AS b, '2000-01-01'::date + hashint4(i) % 9000 AS d,
                       '2000-01-01'::timestamp + make_interval(secs => hashint4(i)) AS ts,
                       '2000-01-01'::timestamptz + make_interval(secs => i / 10) AS tz,
                       '00:00'::time + make_interval(secs => i % 5000) AS ti,
                       (('00:00'::time + make_interval(secs => i % 5000))::text
                         || CASE i % 3 WHEN 0 THEN '+00' WHEN 1 THEN '+05:30' ELSE '-08' END)::timetz AS ttz,
                       CASE i % 3 WHEN 0 THEN make_interval(months => i % 50)
                         WHEN 1 THEN make_interval(days => i % 1500)
                         ELSE make_interval(hours => hashint4(i) % 9999) END AS iv,
                       md5((i % 15000)::text)::uuid AS u,
                       CASE i % 5 WHEN 0 THEN to_jsonb(i % 1000) WHEN 1 THEN to_jsonb((i % 99)::text)
                         WHEN 2 THEN jsonb_build_object('a', i % 77, 'b', (i % 5)::text)
                         WHEN 3 THEN jsonb_build_array(i % 10, i % 3 = 0, null)
                         ELSE 'null' END AS j
                  FROM generate_series(1, 20000) i",
        indexes: &[
            "(f8)",
            "(f8 DESC)",
            "(f4, f8)",
            "(num)",
            "(num DESC NULLS LAST)",
            "(whole)",
            "(money)",
            "(money, num)",
            "(b)",
            "(b, d)",
            "(d)",
            "(ts)",
            "(tz)",
            "(tz, ts)",
            "(ti)",
            "(ttz)",
            "(ttz DESC)",
            "(iv)",
            "(iv, b)",
            "(u)",
            "(u, b, d)",
            "(j)",
            "(b, j)",
        ],
    },
    // Values that the heap, the TOAST table or the index compresses.
    Case {
        table: "CREATE TABLE t (id int, long text, plain text);
                INSERT INTO t SELECT i, repeat(md5((i / 3)::text), 1 + i % 60) || repeat('x', i % 5000),
                       CASE WHEN i % 4 = 0 THEN repeat('y', i % 2500) END
                  FROM generate_series(1, 4000) i",
        indexes: &["(long)", "(long DESC, id)", "(plain)", "(id) INCLUDE (long)", "(plain, long)"],
    },
];

/// Runs a case on a server.
fn prove(server: &Server, case: &Case) {
    server.execute(
        "postgres",
        &format!("DROP TABLE IF EXISTS t; {}", case.table),
    );
    for (n, index) in case.indexes.iter().enumerate() {
        let (unique, columns) = match index.strip_prefix("UNIQUE ") {
            Some(columns) => ("UNIQUE", columns),
            None => ("", *index),
        };
        server.execute(
            "postgres",
            &format!("CREATE {unique} INDEX t{n} ON t {columns}"),
        );
    }
    let heap = Heap::read(server, "t");
    for (n, index) in case.indexes.iter().enumerate() {
        let name = format!("t{n}");
        let theirs = server.pages("postgres", &name, Fork::Main);
        let table = Table::new(&index_of(server, &name), server.version());
        let ours = build(&table, &heap).unwrap_or_else(|e| panic!("{index}: {e:?}"));
        assert_same_pages(
            &format!("index {index} on {}", server.version()),
            ours,
            theirs,
        );
    }
}

#[test]
fn indexes_on_integers_equal_the_servers() {
    support::each_version(&[], |server| prove(server, &CASES[0]));
}

#[test]
fn indexes_on_strings_equal_the_servers() {
    support::each_version(&[], |server| prove(server, &CASES[1]));
}

#[test]
fn indexes_on_all_other_types_equal_the_servers() {
    support::each_version(&[], |server| prove(server, &CASES[2]));
}

#[test]
fn indexes_on_values_that_are_compressed_equal_the_servers() {
    support::each_version(&[], |server| prove(server, &CASES[3]));
}

#[test]
fn an_empty_index_is_the_same_after_create_and_after_truncate() {
    support::each_version(&[], |server| {
        server.execute(
            "postgres",
            "CREATE TABLE e (i int, t text); CREATE INDEX e0 ON e (i); CREATE INDEX e1 ON e (i, t)
               INCLUDE (i); CREATE TABLE f (i int); CREATE INDEX f0 ON f (i);
             INSERT INTO f VALUES (1); TRUNCATE f",
        );
        for (table, index) in [("e", "e0"), ("e", "e1"), ("f", "f0")] {
            let heap = Heap::read(server, table);
            let theirs = server.pages("postgres", index, Fork::Main);
            let table = Table::new(&index_of(server, index), server.version());
            let ours = build(&table, &heap).expect("no row, no error");
            assert_eq!(ours.len(), 1);
            assert_same_pages(index, ours, theirs);
        }
    });
}

#[test]
fn text_under_a_locale_of_libc_is_ordered_by_its_strcoll() {
    support::each_version(&[], |server| {
        server.execute(
            "postgres",
            "CREATE COLLATION en (provider = libc, locale = 'en_US.utf8');
             CREATE TABLE t AS SELECT i, (CASE i % 3 WHEN 0 THEN upper(md5(i::text))
                   WHEN 1 THEN md5(i::text) ELSE 'Straße ' || (i % 500) || ' é-è' END) COLLATE en AS s,
                 (CASE i % 2 WHEN 0 THEN 'a b' ELSE 'ab' END || (i % 700))::char(12) COLLATE en AS p,
                 ('N-' || chr(97 + i % 26) || i % 40)::name COLLATE en AS n
               FROM generate_series(1, 10000) i;
             CREATE INDEX t0 ON t (s); CREATE INDEX t1 ON t (p DESC, i); CREATE INDEX t2 ON t (n);
             CREATE INDEX t3 ON t (s COLLATE \"C\", n)",
        );
        let heap = Heap::read(server, "t");
        for name in ["t0", "t1", "t2", "t3"] {
            let theirs = server.pages("postgres", name, Fork::Main);
            let table = Table::new(&index_of(server, name), server.version());
            let ours = build(&table, &heap).expect("no index is unique");
            assert_same_pages(name, ours, theirs);
        }
    });
}

#[test]
fn a_tree_of_three_levels_equals_the_servers() {
    support::each_version(&[], |server| {
        server.execute(
            "postgres",
            "CREATE TABLE t AS SELECT i, repeat(chr(97 + hashint4(i) % 13), 80) || i AS s
               FROM generate_series(1, 300000) i;
             CREATE INDEX t0 ON t (s) WITH (fillfactor = 40); CREATE UNIQUE INDEX t1 ON t (i)
               WITH (fillfactor = 10)",
        );
        let heap = Heap::read(server, "t");
        for name in ["t0", "t1"] {
            let theirs = server.pages("postgres", name, Fork::Main);
            let level = u32::from_le_bytes(theirs[0][36..40].try_into().expect("four bytes"));
            assert!(level >= 2, "{name} has {level} levels above the leaves");
            let table = Table::new(&index_of(server, name), server.version());
            let ours = build(&table, &heap).expect("no key twice");
            assert_same_pages(name, ours, theirs);
        }
    });
}

#[test]
fn the_index_of_a_toast_table_equals_a_reindexed_one() {
    support::each_version(&[], |server| {
        server.execute(
            "postgres",
            "CREATE TABLE t (s text); ALTER TABLE t ALTER s SET STORAGE EXTERNAL;
             INSERT INTO t SELECT repeat('x', 2500 + i % 7 * 1500) FROM generate_series(1, 5000) i;
             REINDEX TABLE t",
        );
        let toast = server.value(
            "postgres",
            "SELECT reltoastrelid::regclass::text FROM pg_class WHERE relname = 't'",
        );
        let chunks = Heap::read(server, &toast);
        let theirs = server.pages("postgres", &format!("{toast}_index"), Fork::Main);
        let mut keys: Vec<_> = chunks
            .rows()
            .map(|(tid, row)| {
                let word = |i: usize| row[i].as_deref().expect("not null").try_into();
                let id = u32::from_le_bytes(word(0).expect("four bytes"));
                let seq = i32::from_le_bytes(word(1).expect("four bytes"));
                (id, seq, tid)
            })
            .collect();
        keys.sort_unstable();
        let mut builder =
            ToastIndexBuilder::new(version(server.version()), btree_support::Pages::default());
        for (id, seq, tid) in keys {
            builder.add(id, seq, tid).expect("pages in memory");
        }
        let (built, pages) = builder.finish().expect("pages in memory");
        assert_eq!(built.blocks as usize, theirs.len());
        assert_same_pages(&toast, pages.0, theirs);
    });
}

#[test]
fn pages_do_not_depend_on_threads_or_memory() {
    let server = Server::start(15, &[]);
    server.execute(
        "postgres",
        "CREATE TABLE t AS SELECT hashint4(i) % 4000 AS k, i, md5((i % 9000)::text) AS s
           FROM generate_series(1, 40000) i;
         CREATE INDEX t0 ON t (k); CREATE INDEX t1 ON t (k, i); CREATE INDEX t2 ON t (s);
         CREATE INDEX t3 ON t (s, k DESC)",
    );
    let heap = Heap::read(&server, "t");
    for name in ["t0", "t1", "t2", "t3"] {
        let theirs = server.pages("postgres", name, Fork::Main);
        let table = Table::new(&index_of(&server, name), server.version());
        for threads in [1, 2, 7] {
            for budget_bytes in [64 << 10, 1 << 20, 1 << 30] {
                let ours = build_with(&table, &heap, threads, budget_bytes).expect("not unique");
                let what = format!("{name}, {threads} threads, {budget_bytes} bytes");
                assert_same_pages(&what, ours, theirs.clone());
            }
        }
    }
}

#[test]
fn a_key_that_stands_twice_in_a_unique_index_is_told_with_both_tids() {
    let server = Server::start(18, &[]);
    server.execute(
        "postgres",
        "CREATE TABLE t AS SELECT nullif(i, 9) AS i, 'k' || i AS s FROM generate_series(1, 3000) i;
         CREATE UNIQUE INDEX t0 ON t (i); CREATE UNIQUE INDEX t1 ON t (s, i);
         CREATE UNIQUE INDEX t2 ON t (i) NULLS NOT DISTINCT",
    );
    let tables = ["t0", "t1", "t2"].map(|name| Table::new(&index_of(&server, name), 18));
    server.execute(
        "postgres",
        "DROP INDEX t0, t1, t2; INSERT INTO t VALUES (NULL, 'k9')",
    );
    let heap = Heap::read(&server, "t");
    assert!(build(&tables[0], &heap).is_ok(), "nulls are distinct");
    assert!(build(&tables[1], &heap).is_ok(), "and in two columns, too");
    let Err(BuildError::Duplicate { first, second, key }) = build(&tables[2], &heap) else {
        panic!("the null stands twice");
    };
    assert_eq!(key, [None]);
    assert_eq!((first.block, first.offset), (0, 9));
    assert!(second > first);

    server.execute("postgres", "INSERT INTO t VALUES (100, 'k100'), (5, 'k5')");
    let heap = Heap::read(&server, "t");
    let Err(BuildError::Duplicate { first, key, .. }) = build(&tables[0], &heap) else {
        panic!("5 and 100 stand twice");
    };
    // COPY would stop at the second 100, which comes before the second 5.
    assert_eq!(key, [Some(100i32.to_le_bytes().to_vec())]);
    assert_eq!((first.block, first.offset), (0, 100));
    let Err(BuildError::Duplicate { key, .. }) = build(&tables[1], &heap) else {
        panic!("k100 stands twice");
    };
    assert_eq!(
        key,
        [
            Some(b"\x0bk100".to_vec()),
            Some(100i32.to_le_bytes().to_vec())
        ]
    );
}

#[test]
fn a_row_too_large_for_an_index_is_refused_in_the_servers_words() {
    let server = Server::start(17, &[]);
    server.execute(
        "postgres",
        "CREATE TABLE t (s text); ALTER TABLE t ALTER s SET STORAGE EXTERNAL;
         CREATE INDEX t0 ON t (s)",
    );
    let table = Table::new(&index_of(&server, "t0"), 17);
    server.execute(
        "postgres",
        "DROP INDEX t0; INSERT INTO t VALUES (repeat('x', 2690)), (repeat('x', 2693)), (repeat('x', 9000))",
    );
    let heap = Heap::read(&server, "t");
    let results = btree_support::extract_each(&table, &heap);
    assert_eq!(results[0], None);
    for (row, result) in results.iter().enumerate().skip(1) {
        let refusal = server
            .connect("postgres")
            .batch_execute(&format!(
                "CREATE TEMP TABLE x (s text); ALTER TABLE x ALTER s SET STORAGE EXTERNAL;
                 INSERT INTO x SELECT s FROM t WHERE ctid = '(0,{})'; CREATE INDEX t0 ON x (s)",
                row + 1
            ))
            .expect_err("the row is too large");
        let refusal = refusal.as_db_error().expect("the server's error");
        let ours = result.as_ref().expect("the row is too large");
        assert_eq!(ours.sqlstate, refusal.code().code());
        assert_eq!(ours.message, refusal.message());
        assert_eq!(ours.hint.as_deref(), refusal.hint());
    }
}
