//! Many small tables in one command, and a crash of the server in the next moment.
//!
//! At wal_level minimal the server logs their pages at COMMIT, which spares it the sync of each
//! file; at the levels above the files are durable before.

use std::fmt::Write;
use std::process::Command;
use support::Server;

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgpagewrite");
const DB: &str = "postgres";
const ROWS: usize = 100;
/// The table that is too large to be logged, and the one that another references.
const LARGE: usize = 1;
const REFERENCED: usize = 2;

/// The input of table `number`; some values go out of line in every third.
fn input(number: usize) -> String {
    let rows = if number == LARGE { 200 * ROWS } else { ROWS };
    let mut csv = String::new();
    for id in 0..rows {
        let big = if number.is_multiple_of(3) && id % 50 == 0 {
            "x".repeat(5000 + number)
        } else {
            String::new()
        };
        writeln!(csv, "{id},{},value {id} of {number},{big}", id * 7 % 50).expect("a string");
    }
    csv
}

fn tables_sql(count: usize) -> String {
    (0..count).fold(String::new(), |mut sql, i| {
        write!(
            sql,
            "CREATE TABLE public.t{i} (id int PRIMARY KEY, k int, v text, big text);
             ALTER TABLE public.t{i} ALTER big SET STORAGE EXTERNAL;
             CREATE INDEX ON public.t{i} (k);"
        )
        .expect("a string");
        sql
    })
}

/// What COPY makes of the same inputs.
fn load_expected(server: &Server, count: usize) {
    let mut client = server.connect(DB);
    client
        .batch_execute("CREATE TABLE expected (t int, id int, k int, v text, big text)")
        .expect("the expected rows' table");
    let mut copy = client
        .copy_in("COPY expected FROM STDIN (FORMAT csv)")
        .expect("a COPY");
    for number in 0..count {
        for line in input(number).lines() {
            std::io::Write::write_all(&mut copy, format!("{number},{line}\n").as_bytes())
                .expect("a row");
        }
    }
    copy.finish().expect("the expected rows");
}

/// Loads the tables `0..count` with the program.
fn load(server: &Server, count: usize, arguments: &[&str]) {
    let mut command = Command::new(PROGRAM);
    command.args(["build", "--no-analyze", "-d"]);
    command.arg(server.conninfo(DB)).args(arguments);
    for number in 0..count {
        let path = server.dir().join(format!("t{number}.csv"));
        std::fs::write(&path, input(number)).expect("the input");
        command.arg(format!("public.t{number}={}", path.display()));
    }
    support::run(&mut command).expect_success();
}

/// Every table holds its rows.
fn check_rows(server: &Server, count: usize) {
    let all = (0..count)
        .map(|i| format!("SELECT {i}, * FROM t{i}"))
        .collect::<Vec<_>>()
        .join(" UNION ALL ");
    let different = server.value(
        DB,
        &format!(
            "WITH loaded AS MATERIALIZED ({all})
             SELECT count(*) FROM ((TABLE loaded EXCEPT ALL TABLE expected) UNION ALL
                                   (TABLE expected EXCEPT ALL TABLE loaded)) x"
        ),
    );
    assert_eq!(different, "0", "rows differ");
}

/// pd_lsn of a relation's first block, as the server has it.
fn lsn(server: &Server, relation: &str) -> String {
    let sql = format!("SELECT lsn FROM page_header(get_raw_page('{relation}', 0))");
    server.value(DB, &sql)
}

/// Crashes, recovers, compares and changes rows; the server's checkers find nothing in what a
/// checkpoint then wrote.
fn survives_a_crash(server: &mut Server, count: usize) {
    server.stop_immediate();
    server.restart();
    check_rows(server, count);
    server.execute(
        DB,
        "UPDATE t3 SET v = v || '!' WHERE id % 3 = 0; DELETE FROM t3 WHERE id % 5 = 0;
         INSERT INTO t3 SELECT id + 1000, k, v, big FROM t3",
    );
    server.execute(DB, "VACUUM t3");
    // Every block is read from its file, and its checksum looked at.
    server.restart();
    support::assert_healthy(server, DB);
}

/// `count` tables that were there before the load.
fn many_tables_survive_a_crash(major: u32, wal_level: &str, count: usize) {
    let settings = [
        ("wal_level", wal_level),
        ("max_locks_per_transaction", "200"),
    ];
    let mut server = Server::start(major, &settings);
    server.execute(
        DB,
        &format!(
            "CREATE EXTENSION pageinspect; {}
             CREATE TABLE child (id int REFERENCES t{REFERENCED});
             CREATE UNLOGGED TABLE u (id int PRIMARY KEY, k int, v text, big text)",
            tables_sql(count)
        ),
    );
    load_expected(&server, count);
    let u = server.dir().join("u.csv");
    std::fs::write(&u, input(0)).expect("the input");
    server.execute(DB, "CHECKPOINT");
    let checkpoint = "SELECT checkpoint_lsn FROM pg_control_checkpoint()";
    let before = server.value(DB, checkpoint);
    load(&server, count, &[&format!("u={}", u.display())]);
    let minimal = wal_level == "minimal";
    assert_eq!(server.value(DB, checkpoint) == before, minimal);
    assert_eq!(server.value(DB, "SELECT count(*) FROM u"), ROWS.to_string());
    // The pages of small relations were logged by COMMIT at wal_level minimal, and only these.
    for (relation, small) in [
        ("t0", true),
        ("t0_pkey", true),
        ("t2_k_idx", true),
        ("t1", false),
        ("t1_pkey", false),
        ("u", false),
    ] {
        let logged = lsn(&server, relation) != "0/0";
        assert_eq!(logged, small && minimal, "{relation} on {major}");
    }
    survives_a_crash(&mut server, count);
    assert_eq!(server.value(DB, "SELECT count(*) FROM u"), "0");
}

#[test]
fn three_hundred_tables_survive_a_crash_15_minimal() {
    many_tables_survive_a_crash(15, "minimal", 300);
}

#[test]
fn three_hundred_tables_survive_a_crash_15_replica() {
    many_tables_survive_a_crash(15, "replica", 300);
}

#[test]
fn forty_tables_survive_a_crash_14() {
    many_tables_survive_a_crash(14, "minimal", 40);
}

#[test]
fn forty_tables_survive_a_crash_16() {
    many_tables_survive_a_crash(16, "minimal", 40);
}

#[test]
fn forty_tables_survive_a_crash_17() {
    many_tables_survive_a_crash(17, "minimal", 40);
}

#[test]
fn forty_tables_survive_a_crash_18() {
    many_tables_survive_a_crash(18, "minimal", 40);
}

#[test]
fn tables_made_by_the_loads_own_script_survive_a_crash() {
    for major in support::VERSIONS {
        let mut server = Server::start(major, &[("wal_level", "minimal")]);
        let count = 30;
        server.execute(DB, "CREATE EXTENSION pageinspect");
        load_expected(&server, count);
        let script = server.dir().join("schema.sql");
        std::fs::write(&script, tables_sql(count)).expect("the script");
        load(&server, count, &["--schema", &script.display().to_string()]);
        assert_ne!(lsn(&server, "t0_pkey"), "0/0", "on {major}");
        survives_a_crash(&mut server, count);
    }
}
