//! What `build` says and does beyond the equality of files: refusals, their places, signals' ends.

use std::path::PathBuf;
use std::process::Command;
use support::{Ran, Server};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgpagewrite");
const DB: &str = "postgres";

fn server() -> Server {
    Server::start(15, &[("wal_level", "minimal"), ("max_wal_senders", "0")])
}

fn put(server: &Server, name: &str, bytes: &[u8]) -> PathBuf {
    let path = server.dir().join(name);
    std::fs::write(&path, bytes).expect("the input");
    path
}

fn command(server: &Server) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["build", "-d"]).arg(server.conninfo(DB));
    command
}

fn build(server: &Server, table: &str, input: &[u8]) -> Ran {
    let path = put(server, "input.csv", input);
    let mut command = command(server);
    command.arg(format!("{table}={}", path.display()));
    support::run(&mut command)
}

#[test]
fn of_several_duplicates_the_first_in_the_input_is_told_as_copy_tells_it() {
    let server = server();
    server.execute(DB, "CREATE TABLE t (a int UNIQUE, b text UNIQUE)");
    let stderr = build(&server, "t", b"1,x\n2,y\n3,z\n2,w\n1,v\n").expect_failure(1);
    assert!(
        stderr
            .starts_with("ERROR 23505: duplicate key value violates unique constraint \"t_a_key\""),
        "{stderr}"
    );
    assert!(
        stderr.contains("DETAIL: Key (a)=(2) already exists."),
        "{stderr}"
    );
    assert!(stderr.contains("input.csv, line 4\n"), "{stderr}");
    assert!(stderr.contains("input.csv, line 2"), "{stderr}");
    // The later index has the earlier duplicate.
    let stderr = build(&server, "t", b"1,x\n2,y\n3,y\n1,v\n").expect_failure(1);
    assert!(stderr.contains("\"t_b_key\""), "{stderr}");
    assert!(stderr.contains("Key (b)=(y)"), "{stderr}");
    assert_eq!(server.value(DB, "SELECT count(*) FROM t"), "0");
}

#[test]
fn a_duplicate_whose_key_is_compressed_is_shown_as_text() {
    let server = server();
    server.execute(DB, "CREATE TABLE t (a text UNIQUE)");
    let value = "x".repeat(2000);
    let stderr = build(&server, "t", format!("{value}\n{value}\n").as_bytes()).expect_failure(1);
    assert!(
        stderr.contains(&format!("Key (a)=({value}) already exists.")),
        "{stderr}"
    );
}

#[test]
fn a_duplicate_behind_a_value_of_many_lines_names_the_line_its_record_begins_on() {
    let server = server();
    server.execute(DB, "CREATE TABLE t (a int UNIQUE, b text)");
    // COPY counts no lines within the first record, whose line end it does not know yet.
    let input = b"0,q\n1,\"a\nb\nc\"\n2,x\n1,y\n";
    let stderr = build(&server, "t", input).expect_failure(1);
    assert!(stderr.contains("line 6\n"), "{stderr}");
    assert!(stderr.contains("line 2"), "{stderr}");
}

#[test]
fn a_table_whose_rows_are_all_deleted_counts_as_empty() {
    let server = server();
    server.execute(DB, "CREATE TABLE t (a int); INSERT INTO t VALUES (1)");
    let stderr = build(&server, "t", b"2\n").expect_failure(1);
    assert!(
        stderr.starts_with("ERROR 55000: table public.t is not empty"),
        "{stderr}"
    );
    server.execute(DB, "DELETE FROM t");
    build(&server, "t", b"2\n").expect_success();
    assert_eq!(server.value(DB, "SELECT sum(a) FROM t"), "2");
}

#[test]
fn statistics_are_gathered_unless_told_otherwise() {
    let server = server();
    server.execute(DB, "CREATE TABLE t (a int)");
    build(&server, "t", b"1\n2\n").expect_success();
    let analyzed = "SELECT count(*) FROM pg_stats WHERE tablename = 't'";
    assert_eq!(server.value(DB, analyzed), "1");
}

#[test]
fn settings_of_the_role_do_not_stand_in_the_way() {
    let server = server();
    // A session keeps the settings that it began with.
    let mut client = server.connect(DB);
    client
        .batch_execute(
            "CREATE TABLE t (a int PRIMARY KEY, b text);
             ALTER ROLE postgres SET quote_all_identifiers = on;
             ALTER ROLE postgres SET statement_timeout = '1ms';
             ALTER ROLE postgres SET default_transaction_isolation = 'serializable';
             ALTER ROLE postgres SET default_transaction_read_only = on",
        )
        .expect("a table and settings");
    let path = put(&server, "input.csv", b"1,x\n2,y\n");
    support::run(command(&server).arg(format!("t={}", path.display()))).expect_success();
    let rows: i64 = client
        .query_one("SELECT count(*) FROM t", &[])
        .expect("a count")
        .get(0);
    assert_eq!(rows, 2);
}

#[test]
fn an_error_of_the_servers_copy_has_file_line_and_column() {
    let server = server();
    server.execute(DB, "CREATE TABLE t (a int, b money)");
    let stderr = build(&server, "t", b"1,2.50\n2,x\n").expect_failure(1);
    assert!(
        stderr.starts_with("ERROR 22P02: invalid input syntax for type money: \"x\"\n"),
        "{stderr}"
    );
    assert!(
        stderr.contains("input.csv, line 2, column b: \"x\""),
        "{stderr}"
    );
}

#[test]
fn the_json_report_tells_who_did_what() {
    let server = server();
    server.execute(
        DB,
        "CREATE TABLE t (a int PRIMARY KEY); CREATE INDEX t_hash ON t USING hash (a)",
    );
    let path = put(&server, "t.csv", b"1\n2\n3\n");
    let ran = support::run(
        command(&server)
            .args(["--report", "json"])
            .arg(format!("t={}", path.display())),
    );
    let report: serde_json::Value = serde_json::from_str(&ran.expect_success()).expect("JSON");
    assert_eq!(report["tables"][0]["rows"], 3);
    assert_eq!(report["tables"][0]["indexes"][0]["built"]["by"], "native");
    assert_eq!(
        report["tables"][0]["indexes"][1]["built"]["reason"],
        "its access method is hash"
    );
    assert_eq!(server.value(DB, "SELECT a FROM t WHERE a = 3"), "3");
    support::assert_healthy(&server, DB);
}

#[test]
fn enums_of_the_schema_are_native_but_labels_added_to_them_are_the_servers() {
    for version in [14, 15, 18] {
        let server = Server::start(
            version,
            &[("wal_level", "minimal"), ("max_wal_senders", "0")],
        );
        server.execute(DB, "CREATE TYPE old AS ENUM ('x')");
        let input = put(&server, "t.csv", b"1,ok,x\n2,sad,x\n");
        let run = |schema: &str, options: &[&str]| {
            let schema = put(&server, "schema.sql", schema.as_bytes());
            support::run(
                command(&server)
                    .args(options)
                    .arg("--schema")
                    .arg(schema)
                    .arg(format!("t={}", input.display())),
            )
        };
        let made = "CREATE TYPE mood AS ENUM ('sad', 'ok');
                    ALTER TYPE mood OWNER TO postgres;
                    CREATE TABLE t (id int, m mood UNIQUE, o old);";
        // A label that this transaction adds to an older type cannot be used, says the server.
        let added = format!("{made} ALTER TYPE old ADD VALUE 'y';");
        let stderr = run(&added, &["--native-only"]).expect_failure(1);
        assert!(
            stderr.contains("column o: enum old has labels that this transaction may have added"),
            "{stderr}"
        );
        let bad = put(&server, "bad.csv", b"1,ok,y\n");
        let schema = put(&server, "schema.sql", added.as_bytes());
        let stderr = support::run(
            command(&server)
                .arg("--schema")
                .arg(schema)
                .arg(format!("t={}", bad.display())),
        )
        .expect_failure(1);
        assert!(
            stderr.starts_with("ERROR 55P04: unsafe use of new value \"y\" of enum type old\n"),
            "{stderr}"
        );

        run(made, &["--native-only"]).expect_success();
        assert_eq!(
            server.value(DB, "SELECT string_agg(m::text, ',' ORDER BY m) FROM t"),
            "sad,ok"
        );
        support::assert_healthy(&server, DB);
    }
}

#[test]
fn a_duplicate_of_a_made_type_is_shown_as_its_output_function_writes_it() {
    let server = server();
    server.execute(
        DB,
        "CREATE TYPE mood AS ENUM ('so so', 'ok');
         CREATE DOMAIN moods AS mood[];
         CREATE TABLE t (a mood, b moods, c inet, UNIQUE (a, b, c))",
    );
    let row = "ok,\"[0:1]={so so,NULL}\",10.0.0.1/8\n";
    let stderr = build(&server, "t", row.repeat(2).as_bytes()).expect_failure(1);
    assert!(
        stderr.contains(
            "DETAIL: Key (a, b, c)=(ok, [0:1]={\"so so\",NULL}, 10.0.0.1/8) already exists."
        ),
        "{stderr}"
    );
}

#[test]
fn a_null_that_a_domain_refuses_is_told_with_its_column() {
    let server = server();
    server.execute(
        DB,
        "CREATE DOMAIN inner_d AS int NOT NULL; CREATE DOMAIN d AS inner_d;
         CREATE TABLE t (a int, b d, c int)",
    );
    let stderr = build(&server, "t", b"1,2,3\n4,,x\n").expect_failure(1);
    assert!(
        stderr.starts_with("ERROR 23502: domain d does not allow null values\n"),
        "{stderr}"
    );
    assert!(stderr.contains("input.csv, line 2, column b"), "{stderr}");
    // What stands before it in the row is looked at first.
    let stderr = build(&server, "t", b"1,2,3\nx,,3\n").expect_failure(1);
    assert!(stderr.contains("line 2, column a: \"x\""), "{stderr}");
}

#[test]
fn binary_files_with_types_of_users_arrays_and_addresses_load_natively() {
    let server = server();
    server.execute(
        DB,
        "CREATE TYPE mood AS ENUM ('sad', 'ok');
         CREATE DOMAIN code AS varchar(3) CHECK (VALUE <> 'bad');
         CREATE TABLE t (id int PRIMARY KEY, m mood, c code, l int[], n text[], w mood[],
                         i inet, j cidr, b bit(5), v varbit);
         CREATE TABLE s (LIKE t);
         INSERT INTO s SELECT n, CASE n % 3 WHEN 0 THEN 'sad' WHEN 1 THEN 'ok' END::mood,
                              'c' || n % 90, ARRAY[[n, NULL], [-n, 7]], ARRAY[n::text, repeat('x', n)],
                              '{sad,NULL,ok}', inet '10.0.0.0/9' + n, '2001:db8::/32',
                              n::bit(5), n::bit(9)::varbit
                         FROM generate_series(1, 3000) n",
    );
    let path = server.dir().join("all.bin");
    server.execute(
        DB,
        &format!("COPY s TO '{}' (FORMAT binary)", path.display()),
    );
    let load = |path: &std::path::Path| {
        let mut command = command(&server);
        command.args(["--native-only", "--truncate", "--format", "binary"]);
        command.arg(format!("t={}", path.display()));
        support::run(&mut command)
    };
    load(&path).expect_success();
    let differ = "SELECT count(*) FROM ((TABLE s EXCEPT ALL TABLE t) UNION ALL
                                        (TABLE t EXCEPT ALL TABLE s)) d";
    assert_eq!(server.value(DB, differ), "0");
    assert_eq!(server.value(DB, "SELECT count(*) FROM t"), "3000");
    // The domain's condition holds for what is received, too.
    let bytes = std::fs::read(&path).expect("the file");
    let at = bytes.windows(3).position(|b| b == b"c33").expect("row 33");
    let bad = [&bytes[..at], b"bad", &bytes[at + 3..]].concat();
    let ran = load(&put(&server, "bad.bin", &bad));
    assert_eq!(ran.sqlstate(), Some("23514"), "{}", ran.stderr);
    let stderr = ran.expect_failure(1);
    assert!(stderr.contains("bad.bin, line 33, column c"), "{stderr}");
}
