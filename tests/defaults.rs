//! Columns that the input does not give: constants, sequences, default markers, generated columns
//! and whatever the server must evaluate row by row. All are loaded through pages, and both the
//! files and the sequences are as the server's COPY leaves them.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use support::{File, Kind, Ran, Server};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgpagewrite");
const DB: &str = "postgres";

fn put(server: &Server, name: &str, bytes: &[u8]) -> PathBuf {
    let path = server.dir().join(name);
    std::fs::write(&path, bytes).expect("the input");
    path
}

/// `build --native-only` with these arguments.
fn build(server: &Server, arguments: &[&str]) -> Ran {
    let mut command = Command::new(PROGRAM);
    command
        .args(["build", "--no-analyze", "--native-only", "-d"])
        .arg(server.conninfo(DB))
        .args(arguments);
    support::run(&mut command)
}

/// Statements that put every sequence of the database where it stands now: two that are equal
/// tell of equal sequences, but for log_cnt, which no dump has.
fn sequences(server: &Server) -> String {
    let queries = server.value(
        DB,
        "SELECT coalesce(string_agg(format(
                    'SELECT format(''SELECT setval(%s::oid, %%s, %%L)'', last_value, is_called) FROM %s',
                    oid, oid::regclass), ' UNION ALL ' ORDER BY oid), 'SELECT ''SELECT 1''')
           FROM pg_class WHERE relkind = 'S'",
    );
    server.value(
        DB,
        &format!("SELECT string_agg(s, '; ' ORDER BY s) FROM ({queries}) AS n (s)"),
    )
}

/// COPY inserts row by row where a default is volatile, and then leaves it to VACUUM to mark pages
/// as all-visible, on the page and in the map. We mark them as always.
fn without_visibility(files: Vec<File>) -> Vec<File> {
    let mut files = files;
    files.retain(|file| file.kind != Kind::Map);
    for file in &mut files {
        if matches!(file.kind, Kind::Heap(_)) {
            file.pages.iter_mut().for_each(|page| page[10] &= !0x04);
        }
    }
    files
}

/// Loads `columns` of `t` from `input` by the server's COPY and by us, with several numbers of
/// threads; files and sequences must be the same. `schema` makes `t`; it has the word volatile
/// where COPY leaves pages unmarked.
fn prove(schema: &str, columns: &str, input: &str, copy_options: &str, flags: &[&str]) {
    prove_from(14, schema, columns, input, copy_options, flags);
}

fn prove_from(
    version: u32,
    schema: &str,
    columns: &str,
    input: &str,
    copy_options: &str,
    flags: &[&str],
) {
    support::each_version(&[("wal_level", "minimal")], |server| {
        if server.version() < version {
            return;
        }
        let schema = format!("DROP SCHEMA public CASCADE; CREATE SCHEMA public; {schema}");
        let path = put(server, "input.csv", input.as_bytes());
        server.execute(DB, &schema);
        let restore = sequences(server);
        server.execute(
            DB,
            &format!(
                "SET max_parallel_maintenance_workers = 0; BEGIN; TRUNCATE t;
                 COPY t{columns} FROM '{}' WITH (FORMAT csv, FREEZE{copy_options}); REINDEX TABLE t;
                 COMMIT",
                path.display()
            ),
        );
        let is_volatile = schema.contains("volatile");
        let files = |server: &Server| {
            let files = support::files(server, DB, "t");
            if is_volatile {
                without_visibility(files)
            } else {
                files
            }
        };
        let theirs = files(server);
        let their_sequences = sequences(server);
        for jobs in ["1", "2", "7"] {
            server.execute(DB, &format!("TRUNCATE t; {restore}"));
            let source = format!("t{columns}={}", path.display());
            let mut arguments = vec!["--jobs", jobs, source.as_str()];
            arguments.extend(flags);
            build(server, &arguments).expect_success();
            support::assert_same_files(&files(server), &theirs);
            assert_eq!(sequences(server), their_sequences);
        }
        support::assert_healthy(server, DB);
        support::assert_checksums(server, DB);
    });
}

/// `rows` lines of some hundred bytes, so that there are several chunks: a number, a text.
fn lines(rows: usize) -> String {
    let mut input = String::new();
    for i in 0..rows {
        writeln!(input, "{},{}", i * 7 % 1000, "text ".repeat(i % 40)).expect("a String");
    }
    input
}

#[test]
fn constants_sequences_and_missing_values_are_stored_as_copy_stores_them() {
    let schema = "
        CREATE SEQUENCE shared INCREMENT 3 START 5;
        CREATE TABLE t (
            id bigserial PRIMARY KEY,
            n int,
            small smallint GENERATED ALWAYS AS IDENTITY (MAXVALUE 300 CYCLE),
            a int DEFAULT nextval('shared'),
            v text,
            b bigint DEFAULT nextval('shared'),
            of int GENERATED BY DEFAULT AS IDENTITY (START 10 INCREMENT -2 MAXVALUE 10 CACHE 9),
            c varchar(5) DEFAULT 'abc', d numeric(9,3) DEFAULT 3.5, e text DEFAULT NULL,
            f char(7) DEFAULT 'x', g timestamptz DEFAULT '2001-02-03 04:05:06+07',
            h jsonb DEFAULT '{\"b\": [1.50, null], \"a\": \"\u{e9}\"}',
            i interval day to hour DEFAULT '1 day 2 hours 3 minutes',
            j text DEFAULT repeat('long ', 700),
            k text STORAGE EXTERNAL DEFAULT repeat('out of line ', 300),
            l bytea DEFAULT '\\x00ff', m bool DEFAULT true, o \"char\" DEFAULT 'q', p name DEFAULT current_schema()
        );
        CREATE INDEX ON t (a DESC); CREATE UNIQUE INDEX ON t (b); CREATE INDEX ON t (c, small);
        ALTER TABLE t ADD COLUMN missing numeric NOT NULL DEFAULT 12.25;
        ALTER TABLE t ADD COLUMN later text DEFAULT 'later';
        SELECT setval('shared', 40);";
    // STORAGE is part of CREATE TABLE from 16 on.
    let schema = schema.replace("k text STORAGE EXTERNAL", "k text")
        + "ALTER TABLE t ALTER COLUMN k SET STORAGE EXTERNAL;";
    prove(&schema, "(n, v)", &lines(1500), "", &[]);
    prove(&schema, "(v, n)", "", "", &[]);
}

#[test]
fn sequences_alone_need_no_transaction_and_number_many_chunks_in_order() {
    let schema = "
        CREATE TABLE t (id serial PRIMARY KEY, n int, v text);
        CREATE INDEX ON t (n, id);";
    let mut input = lines(30_000);
    // Records over several lines, and quotes that a chunk may begin within.
    for i in 0..20_000 {
        writeln!(input, "{i},\"a, \"\"b\"\"\n,{}\n\"", "x\n".repeat(i % 30)).expect("a String");
    }
    prove(schema, "(n, v)", &input, "", &[]);
}

#[test]
fn default_markers_take_the_default_and_only_they_draw() {
    let schema = "
        -- volatile
        CREATE SEQUENCE s;
        CREATE TABLE t (
            a int DEFAULT nextval('s'), b text DEFAULT 'const', c int DEFAULT nextval('s'),
            d int GENERATED ALWAYS AS (coalesce(a, 0) * 2 + c) STORED,
            e int GENERATED BY DEFAULT AS IDENTITY,
            f int DEFAULT length(set_config('x.y', 'abc', false)),
            g text GENERATED ALWAYS AS (b || f) STORED
        );";
    let mut input = String::new();
    for i in 0..30_000 {
        let pick = |n: usize, value: String| if i % n == 0 { "\\D".into() } else { value };
        writeln!(
            input,
            "{},{},{},{}",
            pick(3, i.to_string()),
            pick(2, format!("value {i}")),
            pick(5, format!("-{i}")),
            pick(7, String::new()),
        )
        .expect("a String");
    }
    let flags = ["--default", "\\D", "--force-null", "b"];
    let options = ", DEFAULT '\\D', FORCE_NULL (b)";
    // The order of the fields is the order of the draws within a row.
    prove_from(16, schema, "(c, b, a, f)", &input, options, &flags);
}

/// Values of each native type: the edges first.
const VALUES: &[(&str, &[&str])] = &[
    ("bool", &["t", "f"]),
    ("\"char\"", &["a", "", "\u{7f}"]),
    ("name", &["", "a name", "\u{e9}\u{e9}"]),
    ("int2", &["-32768", "0", "32767"]),
    ("int4", &["-2147483648", "7"]),
    ("int8", &["-9223372036854775808", "8"]),
    ("oid", &["0", "4294967295"]),
    (
        "float4",
        &["-0", "1e-45", "Infinity", "NaN", "3.4028235e38"],
    ),
    ("float8", &["-0", "5e-324", "-Infinity", "NaN", "0.1"]),
    (
        "numeric",
        &[
            "0",
            "0.000",
            "-0.00001",
            "1e100",
            "123456789012345678901234567890.5",
            "NaN",
            "Infinity",
            "-Infinity",
            "1e-200",
            "10000",
            "99990000.0001",
        ],
    ),
    ("numeric(10,2)", &["12345678.905", "-1"]),
    ("text", &["", "a,b\"c", "\u{1f600}", "back\\slash"]),
    ("varchar(6)", &["abc   ", "abcdef"]),
    ("char(6)", &["abc", "abcdef"]),
    ("bytea", &["\\x", "\\x0001ff"]),
    (
        "date",
        &["infinity", "-infinity", "0044-03-15 BC", "2024-02-29"],
    ),
    ("time", &["24:00:00", "00:00:00.000001"]),
    ("time(2)", &["12:13:14.567"]),
    ("timetz", &["01:02:03.5+05:45", "24:00:00-15:59"]),
    (
        "timestamp",
        &[
            "infinity",
            "4713-01-01 00:00:00 BC",
            "2001-02-03 04:05:06.789",
        ],
    ),
    (
        "timestamptz",
        &["-infinity", "1999-12-31 23:59:59.999999+00"],
    ),
    (
        "interval",
        &["-1 year 2 days -03:04:05.6", "178000000 years", "0"],
    ),
    ("interval hour", &["5", "1 day 7 hours"]),
    ("uuid", &["00000000-0000-0000-0000-00000000000f"]),
    ("json", &["{\"b\": 1, \"b\":2 }"]),
    (
        "jsonb",
        &[
            "null",
            "[]",
            "{\"b\": [1.20, {\"c\": \"\\u00e9\\n\"}], \"a\": -1e10}",
        ],
    ),
];

#[test]
fn generated_columns_of_every_native_type_are_stored_as_copy_stores_them() {
    let mut columns = Vec::new();
    let mut generated = Vec::new();
    for (i, (sql_type, _)) in VALUES.iter().enumerate() {
        columns.push(format!("c{i} {sql_type}"));
        generated.push(format!(
            "\"G {i}\" {sql_type} GENERATED ALWAYS AS (c{i}) STORED"
        ));
    }
    let schema = format!(
        "CREATE TABLE t (id int, {}, {}, n int GENERATED ALWAYS AS (num_nulls(c0, c1, c9)) STORED);
         CREATE INDEX ON t (\"G 9\"); CREATE INDEX ON t (\"G 11\" DESC, id)",
        generated.join(", "),
        columns.join(", ")
    );
    let longest = VALUES.iter().map(|(_, v)| v.len()).max().expect("some");
    let mut input = String::new();
    for row in 0..2_000 {
        write!(input, "{row}").expect("a String");
        for (i, (_, values)) in VALUES.iter().enumerate() {
            match values.get((row + i) % (longest + 1)) {
                Some(value) => write!(input, ",\"{}\"", value.replace('"', "\"\"")),
                None => write!(input, ","),
            }
            .expect("a String");
        }
        input.push('\n');
    }
    prove(&schema, "", &input, "", &[]);
}

#[test]
fn generated_columns_may_use_defaults_sequences_collations_and_functions() {
    let schema = "
        CREATE FUNCTION twice(text) RETURNS text IMMUTABLE LANGUAGE plpgsql
            AS $$ BEGIN RETURN $1 || $1; END $$;
        CREATE TABLE t (
            up text GENERATED ALWAYS AS (upper(\"V\") || '-' || id) STORED,
            id serial, \"V\" text COLLATE \"C\", n int,
            first bool GENERATED ALWAYS AS (\"V\" < 'text b') STORED,
            k int DEFAULT 4, product int GENERATED ALWAYS AS (k * id) STORED,
            wide text GENERATED ALWAYS AS (repeat(\"V\", 40)) STORED,
            code varchar(20) GENERATED ALWAYS AS (twice(n::text)) STORED,
            fixed char(4) GENERATED ALWAYS AS ('ab') STORED
        );
        CREATE UNIQUE INDEX ON t (up); CREATE INDEX ON t (product, code);";
    let mut input = lines(6_000);
    input.push_str("1,\n,\n");
    prove(schema, "(n, \"V\")", &input, "", &[]);
}

/// Types of users.
const TYPES: &str = "
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'h\u{e9}');
    CREATE DOMAIN code AS varchar(5) DEFAULT 'dflt' CHECK (VALUE <> 'bad');
    CREATE DOMAIN finer AS code CHECK (length(VALUE) < 5);
    CREATE DOMAIN price AS numeric(7,2) NOT NULL;
    CREATE DOMAIN list AS int[] CHECK (array_length(VALUE, 1) < 4);";

#[test]
fn defaults_of_domains_enums_arrays_and_networks_are_stored_as_copy_stores_them() {
    let schema = "
        CREATE TABLE t (
            id int PRIMARY KEY, v text,
            a code, b code DEFAULT 'abc', c finer DEFAULT 'c   ', d price DEFAULT 3.456,
            e list DEFAULT '{1,2}', f list, g mood DEFAULT 'ok', h mood[] DEFAULT '{h\u{e9},NULL}',
            i inet DEFAULT '10.0.0.1/8', j cidr DEFAULT inet '10.0.0.0/8', k bit(3) DEFAULT B'101',
            l varbit(4) DEFAULT B'11', m text[] DEFAULT ARRAY['a', repeat('long ', 700)],
            n code[] DEFAULT NULL, o numeric(5,1)[] DEFAULT '{1.25,2}', p timestamptz(0)[],
            q int4 GENERATED ALWAYS AS (id * 2) STORED, r price GENERATED ALWAYS AS (id / 8.0) STORED
        )";
    let schema = format!("{TYPES} {}", schema.replace("n code[] DEFAULT NULL, ", ""));
    prove(&schema, "(id, v)", &unique_lines(3000), "", &[]);
}

#[test]
fn domains_of_volatile_defaults_are_asked_for_row_by_row() {
    let schema = format!(
        "{TYPES} CREATE SEQUENCE seen;
         CREATE FUNCTION next_code() RETURNS text VOLATILE LANGUAGE sql
             AS $$ SELECT 'c' || nextval('seen') % 1000 -- volatile
             $$;
         CREATE TABLE t (id int PRIMARY KEY, v text, c code DEFAULT next_code(),
                         m mood DEFAULT CASE WHEN length(next_code()) > 3 THEN 'ok' ELSE 'sad' END
                                        ::mood,
                         l list DEFAULT ARRAY[length(next_code()), 7])"
    );
    prove(&schema, "(id, v)", &unique_lines(3000), "", &[]);
}

/// As [`lines`], with a number that no other has.
fn unique_lines(rows: usize) -> String {
    let mut input = String::new();
    for i in 0..rows {
        writeln!(input, "{i},{}", "text ".repeat(i % 40)).expect("a String");
    }
    input
}

#[test]
fn defaults_that_a_domain_or_a_length_refuses_are_refused_as_copy_refuses_them() {
    support::each_version(&[], |server| {
        server.execute(
            DB,
            &format!(
                "{TYPES}
                 CREATE DOMAIN short AS code CHECK (VALUE <> 'none');
                 CREATE DOMAIN bad_by_itself AS int DEFAULT -1 CHECK (VALUE > 0);
                 CREATE TABLE t0 (n int, c code DEFAULT 'bad');
                 CREATE TABLE t1 (n int, c code DEFAULT 'abcdef');
                 CREATE TABLE t2 (n int, c short DEFAULT 'abcdef');
                 CREATE TABLE t3 (n int, c bad_by_itself);
                 CREATE TABLE t4 (n int, c bit(3) DEFAULT B'10101');
                 CREATE TABLE t5 (n int, c varbit(3) DEFAULT B'10101');
                 CREATE TABLE t6 (n int, c price DEFAULT 1234567);
                 CREATE TABLE t7 (n int, c price DEFAULT nullif(1, 1));
                 CREATE TABLE t8 (n int, c list DEFAULT '{{1,2,3,4}}')"
            ),
        );
        let path = put(server, "input.csv", b"1\n2\n");
        for table in ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"] {
            let copied = server
                .connect(DB)
                .batch_execute(&format!(
                    "COPY {table}(n) FROM '{}' (FORMAT csv)",
                    path.display()
                ))
                .expect_err(table);
            let theirs = copied.as_db_error().expect("the server's error");
            let stderr =
                build(server, &[&format!("{table}(n)={}", path.display())]).expect_failure(1);
            let told = format!("ERROR {}: {}\n", theirs.code().code(), theirs.message());
            assert!(stderr.starts_with(&told), "{table}: {stderr}{told}");
            assert!(stderr.contains("input.csv, line 1"), "{table}: {stderr}");
        }
    });
}

#[test]
fn functions_of_the_user_are_called_row_by_row_in_the_order_of_the_input() {
    let schema = "
        -- volatile
        CREATE SEQUENCE own; CREATE TABLE called (n bigint);
        CREATE FUNCTION next_code() RETURNS text LANGUAGE plpgsql AS $$
            DECLARE n bigint := nextval('own');
            BEGIN INSERT INTO called VALUES (n); RETURN 'code ' || n; END $$;
        CREATE TABLE t (id serial, n int, v text, code text DEFAULT next_code() NOT NULL,
                        short text GENERATED ALWAYS AS (right(code, 3)) STORED);
        CREATE INDEX ON t (code);";
    prove(schema, "(n, v)", &lines(20_000), "", &[]);
    support::each_version(&[], |server| {
        server.execute(DB, schema);
        let path = put(server, "input.csv", lines(500).as_bytes());
        let source = format!("t(n, v)={}", path.display());
        let report = build(server, &[&source]).expect_success();
        assert!(
            report.contains("values by the server: code (default), short (generated): 1000 rows"),
            "{report}"
        );
        // What the function wrote belongs to the load.
        assert_eq!(server.value(DB, "SELECT count(*) FROM called"), "500");
    });
}

#[test]
fn volatile_defaults_differ_from_row_to_row() {
    support::each_version(&[], |server| {
        server.execute(
            DB,
            "CREATE TABLE t (n int, v text, r float8 DEFAULT random(), u uuid DEFAULT gen_random_uuid(),
                 c timestamptz DEFAULT clock_timestamp(), s text DEFAULT now() || '/' || current_user)",
        );
        let path = put(server, "input.csv", lines(20_000).as_bytes());
        let source = format!("t(n, v)={}", path.display());
        build(server, &["--jobs", "3", &source]).expect_success();
        let row = server.value(
            DB,
            "SELECT concat_ws(' ', count(*), count(DISTINCT u), count(DISTINCT r) > 19900,
                    count(DISTINCT s), bool_and(r >= 0 AND r < 1),
                    bool_and(c >= before), min(s) LIKE '%/postgres')
               FROM (SELECT *, lag(c, 1, c) OVER (ORDER BY ctid) AS before FROM t) AS t",
        );
        assert_eq!(row, "20000 20000 t 1 t t t");
    });
}

#[test]
fn now_is_the_transaction_of_the_load_for_every_table() {
    support::each_version(&[], |server| {
        server.execute(
            DB,
            "CREATE TABLE a (n int, at timestamptz DEFAULT now(), who text DEFAULT current_user);
             CREATE TABLE b (n int, at timestamp(0) DEFAULT now(), day date DEFAULT CURRENT_DATE);
             CREATE TABLE c (n int, at timestamptz DEFAULT now(), s int4range)",
        );
        let path = put(server, "input.csv", b"1\n2\n");
        let mut command = Command::new(PROGRAM);
        command.args(["build", "-d"]).arg(server.conninfo(DB));
        for table in ["a", "b", "c"] {
            command.arg(format!("{table}(n)={}", path.display()));
        }
        let report = support::run(&mut command).expect_success();
        // The server's COPY is in that transaction, too.
        assert!(
            report.contains("loaded by the server: column s: type int4range"),
            "{report}"
        );
        let row = server.value(
            DB,
            "SELECT concat_ws(' ', count(*), count(DISTINCT a.at), bool_and(a.at = c.at),
                    bool_and(b.at = a.at::timestamp(0)), bool_and(b.day = a.at::date), min(who))
               FROM a JOIN b USING (n) JOIN c USING (n)",
        );
        assert_eq!(row, "2 1 t t t postgres");
    });
}

/// What a table says, and where its sequence stands.
fn look(server: &Server, schema: &str) -> String {
    server.value(
        DB,
        &format!(
            "SET search_path = {schema};
             SELECT coalesce((SELECT string_agg(t::text, ' ' ORDER BY ctid) FROM t), '') || ' / '
                    || (SELECT last_value || is_called::text FROM s)"
        ),
    )
}

#[test]
fn sequences_end_where_copy_leaves_them() {
    support::each_version(&[], |server| {
        let mut loaded = Vec::new();
        let mut sources = Vec::new();
        for (number, (options, more)) in [
            ("", "SELECT 1"),
            ("START 100 INCREMENT 7", "SELECT 1"),
            ("INCREMENT -1", "SELECT 1"),
            (
                "INCREMENT -5 MINVALUE -22 MAXVALUE 30 START 3 CYCLE",
                "SELECT 1",
            ),
            ("CACHE 10", "SELECT setval('s', 4)"),
            ("CACHE 4 MAXVALUE 6 CYCLE", "SELECT 1"),
            ("CACHE 4 MAXVALUE 6 CYCLE START 3", "SELECT nextval('s')"),
            ("MAXVALUE 5", "SELECT 1"),
            ("MAXVALUE 5 CACHE 20", "SELECT 1"),
            (
                "MINVALUE -9223372036854775808 START -9223372036854775806 INCREMENT -1",
                "SELECT 1",
            ),
            ("INCREMENT 4611686018427387904", "SELECT 1"),
            ("START 2147483646", "SELECT 1"),
            ("", "SELECT setval('s', 7, false)"),
        ]
        .into_iter()
        .enumerate()
        {
            for rows in [0, 1, 2, 3, 5, 9] {
                let (theirs, ours) = (format!("a{number}_{rows}"), format!("b{number}_{rows}"));
                for schema in [&theirs, &ours] {
                    server.execute(
                        DB,
                        &format!(
                            "CREATE SCHEMA {schema}; SET search_path = {schema};
                             CREATE SEQUENCE s {options}; {more};
                             CREATE TABLE t (n int, b bigint DEFAULT nextval('s'),
                                             a int DEFAULT nextval('s'))"
                        ),
                    );
                }
                let input = "1\n".repeat(rows);
                let path = put(server, &format!("{rows}.csv"), input.as_bytes());
                let source = format!("{ours}.t(n)={}", path.display());
                let copy = format!(
                    "COPY {theirs}.t (n) FROM '{}' WITH (FORMAT csv)",
                    path.display()
                );
                let Err(error) = server.connect(DB).batch_execute(&copy) else {
                    loaded.push((theirs, ours));
                    sources.push(source);
                    continue;
                };
                let error = error.as_db_error().expect("of the server");
                let before = look(server, &ours);
                let stderr = build(server, &[&source]).expect_failure(1);
                assert_eq!(
                    stderr.lines().next().unwrap_or_default(),
                    format!("ERROR {}: {}", error.code().code(), error.message()),
                );
                assert_eq!(look(server, &ours), before);
            }
        }
        assert!((40..70).contains(&loaded.len()), "{}", loaded.len());
        let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
        build(server, &sources).expect_success();
        for (theirs, ours) in loaded {
            assert_eq!(look(server, &ours), look(server, &theirs), "{ours}");
        }
    });
}

#[test]
fn an_error_in_an_expression_is_the_servers_with_the_line() {
    support::each_version(&[], |server| {
        server.execute(
            DB,
            "CREATE TABLE div (n int, g int GENERATED ALWAYS AS (100 / n) STORED);
             CREATE TABLE wide (n int, g varchar(3) GENERATED ALWAYS AS (repeat('x', n)) STORED);
             CREATE TABLE long (n int, d varchar(3) DEFAULT 'abcdef');
             CREATE TABLE nulls (n int, g int GENERATED ALWAYS AS (nullif(n, 3000)) STORED NOT NULL);
             CREATE TABLE small (n int, g smallint DEFAULT nextval('big'));"
                .replace("CREATE TABLE small", "CREATE SEQUENCE big START 32760; CREATE TABLE small")
                .as_str(),
        );
        let mut input = String::new();
        for i in 0..200_000 {
            let n = if i == 150_000 { 0 } else { 1 + i % 3 };
            writeln!(input, "{n}").expect("a String");
        }
        let path = put(server, "input.csv", input.as_bytes());
        let load = |table: &str| build(server, &[&format!("{table}(n)={}", path.display())]);
        let stderr = load("div").expect_failure(1);
        assert!(
            stderr.starts_with("ERROR 22012: division by zero\n"),
            "{stderr}"
        );
        assert!(stderr.contains("input.csv, line 150001"), "{stderr}");
        let stderr = load("long").expect_failure(1);
        assert!(
            stderr.starts_with("ERROR 22001: value too long for type character varying(3)\n"),
            "{stderr}"
        );
        assert!(stderr.contains("input.csv, line 1:"), "{stderr}");
        let stderr = load("small").expect_failure(1);
        assert!(
            stderr.starts_with("ERROR 22003: smallint out of range\n"),
            "{stderr}"
        );
        assert!(stderr.contains("input.csv, line 9:"), "{stderr}");
        let path = put(server, "input.csv", b"1\n3\n3000\n4\nx\n");
        let load = |table: &str| build(server, &[&format!("{table}(n)={}", path.display())]);
        let stderr = load("nulls").expect_failure(1);
        assert!(
            stderr.starts_with("ERROR 23502: null value in column \"g\""),
            "{stderr}"
        );
        assert!(stderr.contains("input.csv, line 3"), "{stderr}");
        let stderr = load("wide").expect_failure(1);
        assert!(stderr.starts_with("ERROR 22001: "), "{stderr}");
        assert!(stderr.contains("input.csv, line 3"), "{stderr}");
        // Without rows no default is evaluated.
        let path = put(server, "input.csv", b"");
        build(server, &[&format!("long(n)={}", path.display())]).expect_success();
        for table in ["div", "wide", "long", "nulls", "small"] {
            assert_eq!(
                server.value(DB, &format!("SELECT count(*) FROM {table}")),
                "0"
            );
        }
        assert_eq!(
            server.value(DB, "SELECT last_value || is_called::text FROM big"),
            "32760false"
        );
    });
}

#[test]
fn a_default_that_fails_once_is_not_drawn_again() {
    support::each_version(&[], |server| {
        server.execute(
            DB,
            "CREATE SEQUENCE s; CREATE DOMAIN d AS int CHECK (VALUE <> 130);
             CREATE TABLE divided (k int, x int DEFAULT 1000 / (130 - nextval('s')));
             CREATE TABLE often (k int, x int DEFAULT 1000 / (13 - nextval('s') % 20));
             CREATE TABLE domains (k int, x d DEFAULT nextval('s') + 0)",
        );
        let path = put(server, "input.csv", "1\n".repeat(3000).as_bytes());
        for (table, sqlstate, line) in [
            ("divided", "22012", 130),
            ("often", "22012", 13),
            ("domains", "23514", 130),
        ] {
            let restart = "ALTER SEQUENCE s RESTART";
            server.execute(DB, restart);
            let copy = format!("COPY {table} (k) FROM '{}' (FORMAT csv)", path.display());
            let refused = server.connect(DB).batch_execute(&copy).expect_err(table);
            let refused = refused.as_db_error().expect("the server's error");
            assert_eq!(refused.code().code(), sqlstate, "{table}");
            let told = format!("line {line}");
            assert!(
                refused.where_().is_some_and(|w| w.contains(&told)),
                "{refused:?}"
            );
            server.execute(DB, restart);
            let stderr = build(server, &[&format!("{table}(k)={}", path.display())]);
            let stderr = stderr.expect_failure(1);
            assert!(
                stderr.starts_with(&format!("ERROR {sqlstate}: ")),
                "{stderr}"
            );
            assert!(
                stderr.contains(&format!("input.csv, line {line}")),
                "{stderr}"
            );
            assert_eq!(
                server.value(DB, &format!("SELECT count(*) FROM {table}")),
                "0"
            );
        }
    });
}

#[test]
fn large_generated_values_are_asked_for_in_parts() {
    let schema = "CREATE TABLE t (n int, v text, id serial,
                      g text GENERATED ALWAYS AS (repeat(md5(n::text), 400)) STORED)";
    let mut input = String::new();
    for i in 0..7_000 {
        writeln!(input, "{i},").expect("a String");
    }
    prove(schema, "(n, v)", &input, "", &[]);
}

#[test]
fn a_schema_script_may_make_the_functions_and_the_sequences() {
    support::each_version(&[], |server| {
        let script = put(
            server,
            "schema.sql",
            b"CREATE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 1';
              CREATE TABLE t (id serial PRIMARY KEY, n int, g int GENERATED ALWAYS AS (f(n)) STORED,
                              u uuid DEFAULT gen_random_uuid());
              SELECT setval('t_id_seq', 41);",
        );
        let path = put(server, "input.csv", b"1\n2\n3\n");
        let source = format!("t(n)={}", path.display());
        let script = script.display().to_string();
        build(server, &["--schema", &script, &source]).expect_success();
        assert_eq!(
            server.value(
                DB,
                "SELECT string_agg(concat_ws(',', id, n, g), ' ') FROM t"
            ),
            "42,1,2 43,2,3 44,3,4"
        );
        assert_eq!(server.value(DB, "SELECT nextval('t_id_seq')"), "45");
    });
}

#[test]
fn tables_that_share_a_sequence_draw_one_after_the_other() {
    let server = Server::start(15, &[]);
    server.execute(
        DB,
        "CREATE SEQUENCE s;
         CREATE TABLE a (n int, id int DEFAULT nextval('s'));
         CREATE TABLE b (n int, id int DEFAULT nextval('s'))",
    );
    let path = put(&server, "input.csv", b"1\n2\n3\n");
    let sources = ["a", "b"].map(|table| format!("{table}(n)={}", path.display()));
    let stderr = build(&server, &[&sources[0], &sources[1]]).expect_failure(1);
    assert!(
        stderr.contains("sequence s gives values to another table of the load too"),
        "{stderr}"
    );
    let mut command = Command::new(PROGRAM);
    command
        .args(["build", "-d"])
        .arg(server.conninfo(DB))
        .args(sources);
    support::run(&mut command).expect_success();
    assert_eq!(
        server.value(
            DB,
            "SELECT string_agg(id::text, ' ') FROM (TABLE a UNION ALL TABLE b) AS t"
        ),
        "1 2 3 4 5 6"
    );
    assert_eq!(server.value(DB, "SELECT nextval('s')"), "7");
}

#[test]
fn a_sequence_that_moves_meanwhile_stops_the_load() {
    support::each_version(&[], |server| {
        // A function that draws in secret stands for another session.
        server.execute(
            DB,
            "CREATE FUNCTION secret() RETURNS bigint LANGUAGE plpgsql
                 AS $$ BEGIN RETURN nextval('t_id_seq'); END $$;
             CREATE TABLE t (id serial, n int, b bigint DEFAULT secret())",
        );
        let path = put(server, "input.csv", b"1\n2\n3\n");
        let stderr = build(server, &[&format!("t(n)={}", path.display())]).expect_failure(1);
        assert!(
            stderr.starts_with("ERROR 55000: sequence \"t_id_seq\" moved since the plan"),
            "{stderr}"
        );
        assert_eq!(server.value(DB, "SELECT count(*) FROM t"), "0");
    });
}

#[test]
fn a_load_that_dies_at_its_commit_leaves_sequences_as_they_were() {
    support::each_version(&[], |server| {
        server.execute(DB, "CREATE TABLE t (id serial, n int)");
        let path = put(server, "input.csv", b"1\n2\n3\n");
        let source = format!("t(n)={}", path.display());
        let mut command = Command::new(PROGRAM);
        command
            .args(["build", "-d"])
            .arg(server.conninfo(DB))
            .arg(&source)
            .env("PGPAGEWRITE_FAULT", "committing");
        assert!(!support::run(&mut command).succeeded());
        let state = "SELECT last_value || is_called::text FROM t_id_seq";
        assert_eq!(server.value(DB, state), "1false");
        build(server, &[&source]).expect_success();
        assert_eq!(server.value(DB, state), "3true");
        // The sequence's new file survives a crash as well.
        server.stop_immediate();
        server.restart();
        assert_eq!(server.value(DB, state), "3true");
        assert_eq!(server.value(DB, "SELECT sum(id) FROM t"), "6");
    });
}

#[test]
fn virtual_columns_are_not_stored_but_may_not_be_null() {
    let schema =
        "CREATE TABLE t (n int, v text, g int GENERATED ALWAYS AS (n * 2) VIRTUAL NOT NULL,
                                  h int GENERATED ALWAYS AS (n + 1) VIRTUAL, id serial)";
    prove_from(18, schema, "(n, v)", &lines(2_000), "", &[]);
    let server = Server::start(18, &[]);
    server.execute(DB, schema);
    let path = put(&server, "input.csv", b"1,a\n,b\n");
    let stderr = build(&server, &[&format!("t(n, v)={}", path.display())]).expect_failure(1);
    assert!(
        stderr.starts_with("ERROR 23502: null value in column \"g\" of relation \"t\""),
        "{stderr}"
    );
    assert!(
        stderr.contains("Failing row contains (null, b, virtual, virtual, 2)."),
        "{stderr}"
    );
    assert!(stderr.contains("input.csv, line 2"), "{stderr}");
}

#[test]
fn what_pages_cannot_tell_goes_through_the_servers_copy_with_the_reason() {
    let server = Server::start(15, &[]);
    server.execute(
        DB,
        "CREATE TABLE row (n int, g oid GENERATED ALWAYS AS (tableoid) STORED);
         CREATE SEQUENCE s;
         CREATE TABLE beside (n int, id int DEFAULT nextval('s'), c text DEFAULT 'c' || currval('s'));
         CREATE TABLE alone (n int, c text DEFAULT 'c' || nextval('s'));
         CREATE TABLE cut (n int, c varchar(3)[] DEFAULT '{abcdef}')",
    );
    let path = put(&server, "input.csv", b"1\n2\n");
    for (table, reason) in [
        ("row", "generated column g looks at more than columns"),
        (
            "beside",
            "the default of column c looks at a sequence that other columns draw from",
        ),
        (
            "cut",
            "column c, which takes its default, is of type character varying(3)[]",
        ),
    ] {
        let source = format!("{table}(n)={}", path.display());
        let stderr = build(&server, &[&source]).expect_failure(1);
        assert!(stderr.contains(reason), "{stderr}");
    }
    build(&server, &[&format!("alone(n)={}", path.display())]).expect_success();
    assert_eq!(
        server.value(DB, "SELECT string_agg(c, ' ') FROM alone"),
        "c1 c2"
    );
}
